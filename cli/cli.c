/*
 * Option parsing and printing shared by the commands.
 */
#include "cli/cli.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "schemas/json_read.h"
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

static void print_usage(const struct cli_command *command, FILE *stream)
{
    text_print_lines(stream, "usage: swerve %s %s\n%s\n", command->name, command->usage,
                     command->help);
    for (uint32_t i = 0; i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];
        if (option->help == NULL) {
            continue;
        }
        if (option->group != NULL) {
            text_print(stream, "%s:\n", option->group);
        }
        char left[64];
        snprintf(left, sizeof left, "%s %s", option->name,
                 option->value != NULL ? option->value : "");
        text_print(stream, "  %-26s %s\n", left, option->help);
    }
}

static const struct cli_option *find_option(const struct cli_command *command, const char *name,
                                            size_t bytes)
{
    if (bytes == 2 && strncmp(name, "-o", 2) == 0) {
        name = "--output";
        bytes = strlen(name);
    }
    for (uint32_t i = 0; i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];
        if (strlen(option->name) == bytes && strncmp(option->name, name, bytes) == 0) {
            return option;
        }
    }
    return NULL;
}

static bool parse_number(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 0 || value > 1000000000000LL) {
        return false;
    }
    *out = value;
    return true;
}

/* One line of what is wrong and one of what is right; all options only where somebody asks. */
static int usage_error(const struct cli_command *command, const char *what, const char *which)
{
    text_print(stderr, "swerve %s: %s%s\n", command->name, what, which);
    text_print_lines(stderr, "usage: swerve %s %s   (swerve %s --help for more)\n", command->name,
                     command->usage, command->name);
    return 2;
}

static int number_error(const struct cli_command *command, const char *option, const char *found)
{
    char what[256];
    snprintf(what, sizeof what, "%s: expected a whole number from 0 to 10^12, found \"%.64s\"",
             option, found);
    return usage_error(command, what, "");
}

enum { OPTIONS_MAX = 64 };

/* The option that a word is a slip of, or NULL. */
static const char *nearest_option(const struct cli_command *command, const char *word, size_t bytes)
{
    const char *names[OPTIONS_MAX + 1];
    char name[64];
    for (uint32_t i = 0; i < command->option_count; i++) {
        names[i] = command->options[i].name;
    }
    names[command->option_count] = NULL;
    snprintf(name, sizeof name, "%.*s", (int)bytes, word);
    return bytes < sizeof name ? json_nearest_key(name, names) : NULL;
}

static int unknown_option(const struct cli_command *command, const char *word, size_t bytes)
{
    const char *nearest = nearest_option(command, word, bytes);
    char meant[80] = "";
    if (nearest != NULL) {
        snprintf(meant, sizeof meant, "; did you mean %s?", nearest);
    }
    text_print(stderr, "swerve %s: unknown option %s%s\n", command->name, word, meant);
    text_print(stderr, "usage: swerve %s %s   (swerve %s --help for more)\n", command->name,
               command->usage, command->name);
    return 2;
}

/* "..:PORT": what no file is called and every address ends in. */
static bool is_address(const char *word)
{
    const char *colon = strrchr(word, ':');
    return word[0] != '-' && colon != NULL && colon[1] != '\0' &&
           strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

/* Whether an option goes with what the command was asked to do. */
static bool goes_with(const struct cli_option *option, const char *verb)
{
    size_t bytes = strlen(verb);
    for (const char *at = option->verbs; at != NULL; at = strchr(at, ' ')) {
        at += at[0] == ' ';
        if (strcspn(at, " ") == bytes && strncmp(at, verb, bytes) == 0) {
            return true;
        }
    }
    return option->verbs == NULL;
}

/* Handles argv[*index], which starts with '-'; may consume the next word. Its bit in *given. */
static int take_option(const struct cli_command *command, int argc, char **argv, int *index,
                       uint64_t *given)
{
    const char *word = argv[*index];
    const char *equals = strchr(word, '=');
    size_t bytes = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const struct cli_option *option = find_option(command, word, bytes);
    if (option == NULL) {
        return unknown_option(command, word, bytes);
    }
    *given |= UINT64_C(1) << (option - command->options);
    if (option->flag != NULL) {
        if (equals != NULL) {
            return usage_error(command, "takes no value: ", option->name);
        }
        *option->flag = true;
        return 0;
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (value == NULL && option->implied != NULL &&
        (*index + 1 >= argc || !is_address(argv[*index + 1]))) {
        value = option->implied;
    }
    if (value == NULL) {
        if (*index + 1 >= argc) {
            return usage_error(command, "needs a value: ", option->name);
        }
        value = argv[++*index];
    }
    if (option->text != NULL) {
        *option->text = value;
        return 0;
    }
    if (option->texts != NULL) {
        if (option->texts->count == option->texts->max) {
            return usage_error(command, "given too often: ", option->name);
        }
        option->texts->values[option->texts->count++] = value;
        return 0;
    }
    CHECK(option->number != NULL);
    if (!parse_number(value, option->number)) {
        return number_error(command, option->name, value);
    }
    return 0;
}

int cli_parse(const struct cli_command *command, int argc, char **argv, const char **arguments,
              uint32_t *argument_count, bool *help)
{
    uint32_t count = 0;
    bool options = true;
    uint64_t given = 0;
    CHECK(command->option_count <= OPTIONS_MAX);
    *help = false;
    for (int i = 1; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            print_usage(command, stdout);
            *help = true;
            return 0;
        } else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            int code = take_option(command, argc, argv, &i, &given);
            if (code != 0) {
                return code;
            }
        } else if (count == command->argument_max) {
            return usage_error(command, "one argument too many: ", argv[i]);
        } else {
            arguments[count++] = argv[i];
        }
    }
    if (count < command->argument_min) {
        return usage_error(command, "an argument is missing", "");
    }
    for (uint32_t i = 0; i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];
        if ((given >> i & 1) != 0 && !goes_with(option, count > 0 ? arguments[0] : "")) {
            char what[96];
            snprintf(what, sizeof what, "%.32s goes with %.40s alone", option->name, option->verbs);
            return usage_error(command, what, "");
        }
    }
    if (argument_count != NULL) {
        *argument_count = count;
    }
    return 0;
}

bool cli_signal_insists(void)
{
    static _Atomic int64_t first_ns; /* 0: none has come */
    int64_t now_ns = clock_now_ns(clock_system());
    int64_t before_ns = 0;
    return !atomic_compare_exchange_strong(&first_ns, &before_ns, now_ns) &&
           now_ns - before_ns > NS_PER_S;
}

int cli_fail(const struct error *error)
{
    text_print_lines(stderr, "swerve: %s\n", error->text);
    return status_exit_code(error->status);
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

enum status cli_suite_id(struct store *store, const char *url, const char *given,
                         char id[LIMIT_ID_BYTES], struct error *error)
{
    char ids[1][LIMIT_ID_BYTES];
    uint32_t count = 0;
    if (given != NULL) {
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
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum world_choice)i;
            return STATUS_OK;
        }
    }
    if (world_spec_is(name)) {
        *out = WORLD_STUDENT;
        return STATUS_OK;
    }
    return error_set(
        error, STATUS_USAGE,
        "--world: expected auto, replay, object, student, teacher, plugin:FILE.so, "
        "exec:COMMAND, onnx:MODEL.onnx, tinyphysics[-bf16] or golden:NAME, found \"%s\"",
        name);
}

enum status cli_parse_id(const char *text, int64_t *out, struct error *error)
{
    if (!parse_number(text, out) || *out == 0) {
        return error_set(error, STATUS_USAGE, "expected the number of an outcome, found \"%s\"",
                         text);
    }
    return STATUS_OK;
}

enum status cli_parse_share(const char *option, const char *text, double *out, struct error *error)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= 0.0 && value <= 1.0)) {
        return error_set(error, STATUS_USAGE, "%s: expected 0 to 1, found \"%s\"", option, text);
    }
    *out = value;
    return STATUS_OK;
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
