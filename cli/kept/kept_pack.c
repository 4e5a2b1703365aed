/*
 * Packing of planners' files. See kept_pack.h.
 */
#include "cli/kept/kept_pack.h"

#include "base/check.h"
#include "base/file.h"
#include "cli/kept/replay_planner.h"
#include "store/api/store_url.h"
#include "worker/planner/planner_spec.h"
#include "worker/planner/planner_trial.h"
#include "worker/run/runner.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 16 };

/* Files that are gathered. */
struct pack {
    json_t *files; /* of {"path", "bytes", "executable"} */
    FILE *contents;
    char *text;
    size_t bytes;
};

static bool is_packed(const struct pack *pack, const char *path)
{
    size_t index;
    const json_t *row;
    json_array_foreach (pack->files, index, row) {
        if (strcmp(json_string_value(json_object_get(row, "path")), path) == 0) {
            return true;
        }
    }
    return false;
}

static enum status add_file(struct pack *pack, const char *path, struct error *error)
{
    char *data = NULL;
    size_t bytes = 0;
    long used = ftell(pack->contents);
    while (strncmp(path, "./", 2) == 0) {
        path += 2;
    }
    if (is_packed(pack, path)) {
        return STATUS_OK;
    }
    if (json_array_size(pack->files) == KEPT_FILES_MAX) {
        return error_set(error, STATUS_LIMIT, "--keep-planner: expected at most %d files",
                         KEPT_FILES_MAX);
    }
    enum status status =
        file_read(path, (size_t)KEPT_BYTES_MAX - (size_t)used, &data, &bytes, error);
    if (status != STATUS_OK) {
        return error_prefix(error, "--keep-planner (%d MiB in all)", KEPT_BYTES_MAX >> 20);
    }
    json_t *row = json_pack("{s:s, s:I, s:b}", "path", path, "bytes", (json_int_t)bytes,
                            "executable", access(path, X_OK) == 0);
    bool good = row != NULL && json_array_append_new(pack->files, row) == 0 &&
                fwrite(data, 1, bytes, pack->contents) == bytes;
    free(data);
    return good ? STATUS_OK
                : error_set(error, STATUS_BAD_INPUT,
                            "--keep-planner: %s: the name is no UTF-8, or memory ran out", path);
}

static bool is_python(const char *name)
{
    size_t bytes = strlen(name);
    return bytes > 3 && strcmp(name + bytes - 3, ".py") == 0;
}

/* Python files in a folder and below it, in the order of their names; hidden ones and links to
 * folders are passed over. */
static enum status add_folder(struct pack *pack, const char *folder, int depth, struct error *error)
{
    struct dirent **items = NULL;
    enum status status = STATUS_OK;
    int count = scandir(folder, &items, NULL, alphasort);
    if (count < 0) {
        return error_set(error, STATUS_IO, "--keep-planner: %s: %s", folder, strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        char path[LIMIT_PATH_BYTES];
        struct stat info;
        const char *name = items[i]->d_name;
        bool fits = (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path;
        if (status == STATUS_OK && name[0] != '.' && fits && lstat(path, &info) == 0) {
            if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX) {
                status = add_folder(pack, path, depth + 1, error);
            } else if (is_python(name) && stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
                status = add_file(pack, path, error);
            }
        }
        free(items[i]);
    }
    free(items);
    return status;
}

/* A word of the command line, or a plugin: a file of this folder, or none. */
static enum status add_named(struct pack *pack, const char *word, struct error *error)
{
    char folder[LIMIT_PATH_BYTES];
    struct stat info;
    if (stat(word, &info) != 0 || !S_ISREG(info.st_mode) || !kept_is_within(word)) {
        return STATUS_OK;
    }
    TRY(add_file(pack, word, error));
    if (!is_python(word)) {
        return STATUS_OK;
    }
    snprintf(folder, sizeof folder, "%s", word);
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        strcpy(folder, ".");
    } else {
        *slash = '\0';
    }
    return add_folder(pack, folder, 0, error);
}

static enum status gather(struct pack *pack, const struct planner_spec *spec, struct error *error)
{
    struct planner_argv words;
    if (spec->kind == PLANNER_SPEC_PLUGIN) {
        return add_named(pack, spec->target, error);
    }
    TRY(planner_argv_parse(spec->target, &words, error));
    for (uint32_t i = 0; i < words.count; i++) {
        if (i > 0 || strchr(words.argv[0], '/') != NULL) {
            TRY(add_named(pack, words.argv[i], error));
        }
    }
    return STATUS_OK;
}

/* The head and the contents behind each other. */
static enum status join(const struct pack *pack, const char *planner, struct kept *out,
                        struct error *error)
{
    json_t *head = json_pack("{s:s, s:s, s:O}", "planner", planner, "planner_hash",
                             out->planner_hash, "files", pack->files);
    char *text = head != NULL ? json_dumps(head, JSON_COMPACT) : NULL;
    size_t bytes = text != NULL ? strlen(text) + 1 : 0;
    out->data = text != NULL ? malloc(bytes + pack->bytes) : NULL;
    if (out->data != NULL) {
        memcpy(out->data, text, bytes - 1);
        out->data[bytes - 1] = '\n';
        memcpy(out->data + bytes, pack->text, pack->bytes);
        out->bytes = bytes + pack->bytes;
    }
    free(text);
    json_decref(head);
    return memory_check(out->data, error, "--keep-planner: out of memory");
}

/* ---- packing ---- */

/* Trial of one planner: what is driven, and whose sandbox it is in. */
struct trial {
    const struct job_spec *spec;
    const struct scenario *example; /* NULL: none */
    const struct planner_confinement *confinement;
};

/* The first ticks of the main line. PLANNER: the planner's own sentence of what went wrong. */
static enum status drive_ticks(struct runner *runner, const struct trial *trial,
                               struct error *error)
{
    struct prepared *prepared = NULL;
    struct job_run *job = NULL;
    struct job_lease lease = {.job_id = 1};
    lease.spec.seed = 1;
    lease.spec.tier = TIER_OBJECT;
    TRY(prepared_create(trial->example, &prepared, error));
    enum status status = job_run_create(&lease, prepared, &job, error);
    THEN(status, runner_add(runner, job, ROLLOUT_MAIN, error));
    if (status != STATUS_OK) {
        job_run_destroy(job);
        prepared_unref(prepared);
        return status;
    }
    /* One that died is asked once more from the start, before it counts as dead. */
    for (int tick = 0; runner_busy(runner) &&
                       (tick < KEPT_TRIAL_TICKS || runner_stats(runner)->planner_restarts > 0);
         tick++) {
        runner_tick(runner);
    }
    runner_cancel_all(runner);
    job = runner_take(runner);
    CHECK(job != NULL);
    const struct rollout_result *result = &job->results[0];
    if (job->failure != STATUS_OK) {
        status = error_set(error, job->failure, "%s", job->error);
    } else if (result->finished && result->verdict == VERDICT_PLANNER_ERROR) {
        status = error_set(error, STATUS_PLANNER, "%s", result->error);
    }
    job_run_destroy(job);
    prepared_unref(prepared);
    return status;
}

/* Whether the trial can drive: of a drive of the controls challenge the object world knows nothing,
 * and a plugin without a sandbox would share this process. */
static bool is_driven(const struct trial *trial, bool sandbox)
{
    const char *planner = planner_spec_bare(trial->spec->planner);
    return trial->example != NULL && trial->example->controls.log.count == 0 &&
           (sandbox || strncmp(planner, "plugin:", strlen("plugin:")) != 0);
}

static enum status drive(const struct trial *trial, struct replay_planner *planner, bool sandbox,
                         struct error *error)
{
    const struct runner_source source = {
        .planner_config = {.tick_deadline_ms = PLANNER_TRY_MS, .confinement = trial->confinement},
        .slot_count = 1,
        .clock = clock_system(),
    };
    const struct rig *rig = trial->example->rig;
    struct job_spec spec = {.tier = TIER_OBJECT};
    snprintf(spec.planner, sizeof spec.planner, "%s", trial->spec->planner);
    enum status status =
        sandbox ? replay_planner_open_kept(&source, &spec, rig, trial->confinement, planner, error)
                : replay_planner_open_here(&source, &spec, rig, planner, error);
    THEN(status, drive_ticks(planner->open.runner, trial, error));
    runner_close(&planner->open);
    return status;
}

/* The identity of a planner that is started and no more. */
static enum status start(const struct trial *trial, char found[SHA256_HEX_BYTES],
                         struct error *error)
{
    struct planner_trial told;
    const char *planner = trial->spec->planner;
    TRY(planner_identity(planner, found, error));
    TRY(planner_try(planner, trial->confinement, NULL, false, PLANNER_TRY_MS, &told, error));
    planner_identity_extend(found, told.loaded);
    return STATUS_OK;
}

/* Drives a copy of the files; found: the identity that the planner has from it. */
static enum status try_copy(const struct trial *trial, const struct kept *kept,
                            char found[SHA256_HEX_BYTES], struct error *error)
{
    struct planner_confinement confinement = *trial->confinement;
    struct replay_planner planner = {.kept = ""};
    struct error ignored;
    int back = -1;
    confinement.sandbox = true;
    bool sandbox = planner_confinement_check(&confinement, &ignored) == STATUS_OK;
    bool driven = is_driven(trial, sandbox);
    enum status status = kept_put(kept->data, kept->bytes, planner.kept, error);
    if (status == STATUS_OK && (!driven || !sandbox)) {
        status = kept_enter(planner.kept, &back, error);
    }
    if (status == STATUS_OK) {
        status = driven ? drive(trial, &planner, sandbox, error) : start(trial, found, error);
    }
    status = kept_leave(back, status, error);
    if (driven) {
        memcpy(found, planner.hash, sizeof planner.hash);
    }
    replay_planner_close(&planner);
    return status;
}

/* Whether the planner fails by its own files as well, which is then no matter of the copy. */
static bool fails_here(const struct trial *trial)
{
    struct replay_planner planner = {.kept = ""};
    struct error ignored;
    bool failed = is_driven(trial, false) && drive(trial, &planner, false, &ignored) != STATUS_OK;
    replay_planner_close(&planner);
    return failed;
}

/* Whether a copy is the same planner, and does as well. */
static enum status check_copy(const struct trial *trial, const struct kept *kept, size_t files,
                              struct error *error)
{
    char found[SHA256_HEX_BYTES] = "";
    enum status status = try_copy(trial, kept, found, error);
    if (status != STATUS_OK && found[0] != '\0' && fails_here(trial)) {
        status = STATUS_OK;
    }
    if (status != STATUS_OK) {
        error_prefix(error,
                     "--keep-planner: a copy of the planner's files does not drive the "
                     "first %d ticks (name what it opens on its command line, by a path "
                     "below this folder)",
                     KEPT_TRIAL_TICKS);
        return error->status = STATUS_BAD_INPUT;
    }
    return strcmp(found, kept->planner_hash) == 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT,
                           "--keep-planner: planner %s: a copy of %zu files is another planner "
                           "(%.12s, expected %.12s): it loads files that are not Python, or not "
                           "below the file that it names",
                           trial->spec->planner, files, found, kept->planner_hash);
}

static enum status pack_one(const struct trial *trial, struct kept *out, struct error *error)
{
    struct planner_spec spec;
    struct pack pack = {.files = NULL};
    const char *planner = trial->spec->planner;
    memset(out, 0, sizeof *out);
    snprintf(out->planner_hash, sizeof out->planner_hash, "%s", trial->spec->planner_hash);
    TRY(planner_spec_parse(planner, &spec, error));
    if (spec.kind == PLANNER_SPEC_BUILTIN || spec.kind == PLANNER_SPEC_EGODRIVER) {
        return STATUS_OK;
    }
    pack.files = json_array();
    pack.contents = open_memstream(&pack.text, &pack.bytes);
    enum status status = pack.files != NULL && pack.contents != NULL
                             ? gather(&pack, &spec, error)
                             : error_set(error, STATUS_NO_MEMORY, "--keep-planner: out of memory");
    if (status == STATUS_OK && json_array_size(pack.files) == 0) {
        status =
            error_set(error, STATUS_BAD_INPUT,
                      "--keep-planner: planner %s: expected a file below this folder, named by "
                      "a relative path; found none",
                      planner);
    }
    if (pack.contents != NULL && fclose(pack.contents) != 0 && status == STATUS_OK) {
        status = error_set(error, STATUS_NO_MEMORY, "--keep-planner: out of memory");
    }
    THEN(status, join(&pack, planner, out, error));
    THEN(status, check_copy(trial, out, json_array_size(pack.files), error));
    json_decref(pack.files);
    free(pack.text);
    return status;
}

enum status kept_check_store(const char *store_url, struct error *error)
{
    enum store_url_kind kind;
    TRY(store_url_kind(store_url, &kind, error));
    return kind != STORE_URL_POSTGRES
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "--keep-planner: expected --store with the path of a database or the "
                           "address of a server, found a database where others could read the "
                           "files");
}

enum status kept_pack(const struct submission *submission,
                      const struct planner_confinement *confinement, struct kept_list *out,
                      struct error *error)
{
    for (uint32_t i = 0; i < submission->kind_count; i++) {
        const struct job_spec *spec = &submission->kinds[i];
        const struct scenario_document *example = submission_example(submission, i);
        uint32_t known = 0;
        while (known < out->count &&
               strcmp(out->list[known].planner_hash, spec->planner_hash) != 0) {
            known++;
        }
        if (known == out->count && out->count < KEPT_PLANNERS_MAX) {
            const struct trial trial = {spec, example != NULL ? &example->scenario : NULL,
                                        confinement};
            TRY(pack_one(&trial, &out->list[out->count++], error));
        }
    }
    uint32_t packs = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        packs += out->list[i].data != NULL;
    }
    return packs <= LABELS_MAX
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT,
                           "--keep-planner: a suite keeps the files of at most %d planners, this "
                           "one has %u",
                           LABELS_MAX, packs);
}

void kept_finish(struct kept_list *kept)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        free(kept->list[i].data);
    }
    kept->count = 0;
}

/* ---- the store ---- */

enum status kept_ask(struct store *store, struct error *error)
{
    char nobody[SHA256_HEX_BYTES];
    void *data = NULL;
    size_t bytes = 0;
    memset(nobody, '0', sizeof nobody - 1);
    nobody[sizeof nobody - 1] = '\0';
    enum status status = store->ops->planner_kept(store, "none", nobody, &data, &bytes, error);
    free(data);
    return status == STATUS_OK || status == STATUS_NOT_FOUND
               ? STATUS_OK
               : error_prefix(error, "--keep-planner");
}

enum status kept_send(const struct kept_list *kept, struct store *store, const char *suite_id,
                      struct error *error)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        if (kept->list[i].data != NULL) {
            TRY(store->ops->planner_keep(store, suite_id, kept->list[i].planner_hash,
                                         kept->list[i].data, kept->list[i].bytes, error));
        }
    }
    return STATUS_OK;
}
