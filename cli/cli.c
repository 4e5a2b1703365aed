/*
 * Option parsing and printing shared by the commands.
 */
#include "cli/cli.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "schemas/json_read.h"
#include "store/api/label_pages.h"
#include "store/api/store_path.h"
#include "store/api/store_url.h"
#include "worker/golden/golden_library.h"
#include "worker/world/world_source.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool cli_signal_insists(void)
{
    static _Atomic int64_t first_ns; /* 0: none has come */
    int64_t now_ns = clock_now_ns(clock_system());
    int64_t before_ns = 0;
    return !atomic_compare_exchange_strong(&first_ns, &before_ns, now_ns) &&
           now_ns - before_ns > NS_PER_S;
}

bool cli_put_json(const json_t *json, bool one_line)
{
    char *text = json == NULL ? NULL
                 : one_line   ? json_compact_text(json)
                              : json_indented_text(json);
    bool good = text != NULL && text_put(stdout, text) >= 0 && fputc('\n', stdout) != EOF;
    free(text);
    return good;
}

enum status cli_write_json(json_t *json, struct error *error)
{
    errno = 0;
    bool failed = !cli_put_json(json, false) || fflush(stdout) != 0;
    bool reader_left = errno == EPIPE;
    json_decref(json);
    return !failed || reader_left ? STATUS_OK
                                  : error_set(error, STATUS_IO, "cannot write JSON to stdout");
}

int cli_print_json(json_t *json)
{
    struct error error;
    return cli_write_json(json, &error) == STATUS_OK ? 0 : cli_fail(&error);
}

enum status cli_put_text(const char *path, const char *text, size_t bytes, struct error *error)
{
    if (path != NULL) {
        return file_replace(path, text, bytes, 0644, error);
    }
    return text_put(stdout, text) >= 0 && fflush(stdout) == 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "stdout: cannot write: %s", strerror(errno));
}

const char *cli_date(int64_t seconds, char out[CLI_DATE_BYTES])
{
    time_t at = (time_t)seconds;
    struct tm parts;
    snprintf(out, CLI_DATE_BYTES, "-");
    if (seconds > 0 && gmtime_r(&at, &parts) != NULL) {
        strftime(out, CLI_DATE_BYTES, "%Y-%m-%d %H:%M:%S UTC", &parts);
    }
    return out;
}

const char *cli_store_url(const char *given)
{
    if (given != NULL) {
        return given;
    }
    const char *environment = getenv("SWERVE_STORE");
    return environment != NULL && environment[0] != '\0' ? environment : "swerve.db";
}

enum status cli_store_exists(const char *url, struct error *error)
{
    enum store_url_kind kind;
    TRY(store_url_kind(url, &kind, error));
    return kind == STORE_URL_PATH ? store_path_check(url, error) : STATUS_OK;
}

enum status cli_store_path(const char *given, const char **out, struct error *error)
{
    const char *url = cli_store_url(given);
    enum store_url_kind kind;
    TRY(store_url_kind(url, &kind, error));
    *out = url;
    if (kind == STORE_URL_PATH) {
        return STATUS_OK;
    }
    if (kind == STORE_URL_POSTGRES) {
        return error_set(error, STATUS_USAGE,
                         "this command reads a store's files, and a store in PostgreSQL has none: "
                         "back it up with pg_dump and a copy of its artifacts' folder "
                         "(docs/postgresql.md)");
    }
    return error_set(error, STATUS_USAGE,
                     "this command reads the store's files: run it on the machine that has them, "
                     "with --store PATH; a server may go on meanwhile");
}

enum status cli_store_open(const char *given, struct store **store, struct error *error)
{
    const char *url = cli_store_url(given);
    static const struct logger logger = {STDERR_FILENO, LOG_ERROR, "swerve"};
    const struct store_config config = {.logger = &logger, .intent = STORE_ASK};
    return store_open(url, &config, store, error);
}

enum status cli_store_make(const char *given, struct store **store, struct error *error)
{
    const char *url = cli_store_url(given);
    enum store_url_kind kind;
    TRY(store_url_kind(url, &kind, error));
    bool made = kind == STORE_URL_PATH && access(url, F_OK) != 0;
    TRY(made ? store_open(url, NULL, store, error) : cli_store_open(given, store, error));
    if (made) {
        text_print(stderr, "swerve: %s: a new store\n", url);
    }
    return STATUS_OK;
}

void cli_store_close(struct store *store)
{
    if (store != NULL) {
        store->ops->close(store);
    }
}

enum { NAMED_LOOKED_AT = 1000, NAMED_DIGITS = 8 };

/* "NAME-78370180", and "NAME-78370180-2" of jobs that were dead the first time. */
bool cli_is_run_of(const char *id, const char *name)
{
    size_t bytes = strlen(name);
    return strncmp(id, name, bytes) == 0 && id[bytes] == '-' &&
           strspn(id + bytes + 1, "0123456789abcdef") == NAMED_DIGITS &&
           (id[bytes + 1 + NAMED_DIGITS] == '\0' || id[bytes + 1 + NAMED_DIGITS] == '-');
}

void cli_run_name(const char *id, char out[LIMIT_ID_BYTES])
{
    snprintf(out, LIMIT_ID_BYTES, "%s", id);
    for (char *at = strrchr(out, '-'); at != NULL; at = strrchr(out, '-')) {
        *at = '\0';
        if (cli_is_run_of(id, out)) {
            return;
        }
    }
    snprintf(out, LIMIT_ID_BYTES, "%s", id);
}

struct baseline_search {
    const char *name;
    char *id; /* [LIMIT_ID_BYTES] */
};

static enum status look_at_baseline(void *context, const struct label *label, struct error *error)
{
    const struct baseline_search *search = context;
    if (strcmp(label->text, search->name) != 0) {
        return STATUS_OK;
    }
    if (search->id[0] != '\0') {
        return error_set(error, STATUS_USAGE,
                         "baseline %s: two tenants have one of this name, suites %s and %s: name "
                         "the suite",
                         search->name, search->id, label->suite);
    }
    memcpy(search->id, label->suite, LIMIT_ID_BYTES);
    return STATUS_OK;
}

enum status cli_baseline_find(struct store *store, const char *name, char id[LIMIT_ID_BYTES],
                              struct error *error)
{
    struct baseline_search search = {name, id};
    id[0] = '\0';
    return labels_each(store, LABEL_BASELINE, look_at_baseline, &search, error);
}

/* The suite with that id, else the runs of that name. */
static enum status runs_named(struct store *store, const char *name, char (*ids)[LIMIT_ID_BYTES],
                              uint32_t max, uint32_t *count, struct error *error)
{
    struct store_suite_status ignored;
    struct error unneeded;
    uint32_t all = 0;
    *count = 0;
    if (strlen(name) >= LIMIT_ID_BYTES) {
        return STATUS_OK;
    }
    if (store->ops->suite_status(store, name, &ignored, &unneeded) == STATUS_OK) {
        snprintf(ids[(*count)++], LIMIT_ID_BYTES, "%s", name);
        return STATUS_OK;
    }
    char(*listed)[LIMIT_ID_BYTES] = calloc(NAMED_LOOKED_AT, sizeof *listed);
    TRY(memory_check(listed, error, "suites: out of memory"));
    enum status status = store->ops->suites(store, listed, NAMED_LOOKED_AT, &all, error);
    for (uint32_t i = 0; status == STATUS_OK && i < all && *count < max; i++) {
        if (cli_is_run_of(listed[i], name)) {
            memcpy(ids[(*count)++], listed[i], LIMIT_ID_BYTES);
        }
    }
    free(listed);
    return status;
}

enum status cli_suites_named(struct store *store, const char *name, char (*ids)[LIMIT_ID_BYTES],
                             uint32_t max, uint32_t *count, struct error *error)
{
    TRY(runs_named(store, name, ids, max, count, error));
    if (*count == 0) {
        TRY(cli_baseline_find(store, name, ids[0], error));
        *count = ids[0][0] != '\0' ? 1 : 0;
    }
    return STATUS_OK;
}

enum { RUNS_LOOKED_AT = 8 };

enum status cli_tell_other_revision(struct store *store, const char *suite_id,
                                    const struct job_spec *spec, struct error *error)
{
    struct store_outcome_filter filter = {.limit = 1};
    char name[LIMIT_ID_BYTES];
    char ids[RUNS_LOOKED_AT][LIMIT_ID_BYTES];
    struct outcome *outcome = malloc(sizeof *outcome);
    uint32_t runs = 0;
    bool found = false;
    cli_run_name(suite_id, name);
    enum status status = memory_check(outcome, error, "suites: out of memory");
    THEN(status, runs_named(store, name, ids, RUNS_LOOKED_AT, &runs, error));
    for (uint32_t i = 0; status == STATUS_OK && i < runs && !found; i++) {
        uint32_t count = 0;
        memcpy(filter.suite_id, ids[i], sizeof filter.suite_id);
        status = store->ops->outcomes(store, &filter, outcome, &count, error);
        found = status == STATUS_OK && count == 1 &&
                strcmp(outcome->planner_hash, spec->planner_hash) == 0;
    }
    if (found && strcmp(outcome->revision, spec->revision) != 0) {
        text_print(stderr,
                   "swerve: results of this planner in suite %s are of simulation revision %.12s, "
                   "this program's is %.12s: bits may differ, so everything is driven anew\n",
                   filter.suite_id, outcome->revision, spec->revision);
    }
    free(outcome);
    return status;
}

enum status cli_suite_id(struct store *store, const char *url, const char *given,
                         char id[LIMIT_ID_BYTES], struct error *error)
{
    char ids[1][LIMIT_ID_BYTES];
    uint32_t count = 0;
    if (given != NULL) {
        TRY(cli_suites_named(store, given, ids, 1, &count, error));
        given = count > 0 ? ids[0] : given;
        return snprintf(id, LIMIT_ID_BYTES, "%s", given) < LIMIT_ID_BYTES
                   ? STATUS_OK
                   : error_set(error, STATUS_USAGE, "suite: the name is too long");
    }
    TRY(store->ops->suites(store, ids, 1, &count, error));
    if (count == 0) {
        return error_set(error, STATUS_NOT_FOUND, "%s: the store has no suite", url);
    }
    memcpy(id, ids[0], LIMIT_ID_BYTES);
    return STATUS_OK;
}

enum status cli_outcome_find(struct store *store, int64_t id, struct outcome *out,
                             struct error *error)
{
    struct store_outcome_filter filter = {.outcome_id = id, .limit = 1};
    uint32_t count = 0;
    TRY(store->ops->outcomes(store, &filter, out, &count, error));
    return count > 0 ? STATUS_OK
                     : error_set(error, STATUS_NOT_FOUND, "outcome %lld: the store has none",
                                 (long long)id);
}

enum status cli_world_choice(const char *name, enum world_choice *out, struct error *error)
{
    static const char *const names[] = {"auto", "replay", "object", "student", "teacher"};
    if (golden_spec_is(name)) {
        *out = WORLD_GOLDEN;
        return STATUS_OK;
    }
    size_t choice = cli_name(name, names, COUNT_OF(names));
    if (choice < COUNT_OF(names) || world_spec_is(name)) {
        *out = choice < COUNT_OF(names) ? (enum world_choice)choice : WORLD_STUDENT;
        return STATUS_OK;
    }
    return error_set(
        error, STATUS_USAGE,
        "--world: expected auto, replay, object, student, teacher, plugin:FILE.so, "
        "exec:COMMAND, onnx:MODEL.onnx, omnidreams:NAME, tinyphysics[-bf16] or golden:NAME, found "
        "\"%s\"",
        name);
}

enum status cli_parse_id(const char *text, int64_t *out, struct error *error)
{
    if (!cli_number(text, out) || *out == 0) {
        return error_set(error, STATUS_USAGE, "expected the number of an outcome, found \"%s\"",
                         text);
    }
    return STATUS_OK;
}

enum status cli_parse_share(const char *option, const char *text, double *out, struct error *error)
{
    return cli_real(text, 0.0, 1.0, out)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "%s: expected 0 to 1, found \"%s\"", option, text);
}

/* ---- the library ---- */

static bool folder_without_json(const char *path)
{
    bool found = false;
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return false;
    }
    for (const struct dirent *item = readdir(folder); item != NULL && !found;
         item = readdir(folder)) {
        const char *end = strrchr(item->d_name, '.');
        found = end != NULL && strcmp(end, ".json") == 0;
    }
    closedir(folder);
    return !found;
}

const char *cli_suite_path(const char *given, char out[LIMIT_PATH_BYTES])
{
    static const char *const forms[] = {"scenarios/%s", "scenarios/%s.json",
                                        "share/swerve/scenarios/%s",
                                        "share/swerve/scenarios/%s.json"};
    char names[COUNT_OF(forms)][LIMIT_PATH_BYTES];
    const char *list[COUNT_OF(forms)];
    if (given[0] == '/' || (access(given, F_OK) == 0 && !folder_without_json(given))) {
        return given;
    }
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        snprintf(names[i], sizeof names[i], forms[i], given);
        list[i] = names[i];
    }
    bool found = file_near_program(list, COUNT_OF(list), S_IFREG, out, LIMIT_PATH_BYTES);
    return found ? out : given;
}

enum status cli_suite_load(const char *given, struct suite **out, struct error *error)
{
    char found[LIMIT_PATH_BYTES];
    const char *path = cli_suite_path(given, found);
    if (path == given && strchr(given, '/') == NULL && access(given, F_OK) != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%.256s: there is no such file, and no suite of the library has that name "
                         "(such as demo, longtail, ncap, smoke)",
                         given);
    }
    return suite_load(path, out, error);
}

static atomic_int interrupted; /* the signal's number; 0: none */

static void on_interrupt(int number)
{
    if (cli_signal_insists()) {
        _exit(128 + number);
    }
    atomic_store(&interrupted, number);
}

const atomic_int *cli_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &interrupted;
}

enum status cli_device_choose(const char *name, bool bf16, const char *precision,
                              const char *previous, struct device *out, struct error *error)
{
    bool fits = bf16 && previous == NULL;
    TRY(device_choose(strcmp(name, "auto") == 0 && !fits ? "cpu" : name, out, error));
    return out->ops == NULL || fits
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "--device %s: expected bf16 and no --previous, as devices have neither "
                           "another precision nor a second model, found %s%s%s",
                           name, precision, previous != NULL ? " and --previous " : "",
                           previous != NULL ? previous : "");
}
