/*
 * swerve golden: drives of a world model that are recorded once and shown to any planner
 * (docs/goldens.md): making a set, what sets there are, whether one still holds, letting one go.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "cli/golden/golden_futures.h"
#include "cli/kept/golden_doubts.h"
#include "cli/pool.h"
#include "cli/suite_options.h"
#include "report/outcome_text.h"
#include "report/trust/decisions.h"
#include "worker/golden/golden_make.h"
#include "worker/versions/versions.h"
#include "worker/world/world_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SETS_PAGE = 100, THREADS_MAX = 64 };

#define EVERY_VERB "make ls verify expire"

struct golden_command {
    struct suite_options suite;
    struct confinement_options confinement_options;
    const struct planner_confinement *confinement;
    const char *store_url;
    const char *name;
    const char *model; /* hash, or how one begins */
    int64_t workers, slots, threads, planner_deadline_ms;
    bool futures; /* make: are driven, too */
    bool json;
    struct store *store;
    struct models *models;
    const atomic_int *interrupted;
    int64_t shown;                      /* jobs that have ended, of progress */
    int64_t cost_uusd;                  /* of what was made */
    bool headed;                        /* the table has begun */
    char model_found[SHA256_HEX_BYTES]; /* that `model` tells */
};

static int fail(const struct golden_command *golden, const struct error *error)
{
    int code = cli_fail(error);
    bool stopped = error->status == STATUS_CANCELLED && atomic_load(golden->interrupted) != 0;
    return stopped ? 128 + atomic_load(golden->interrupted) : code; /* as shells report it */
}

static double mib(int64_t bytes)
{
    return (double)bytes / (1024.0 * 1024.0);
}

static double seconds(int64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

/* A line for each tenth. */
static void show_progress(void *context, uint32_t done, uint32_t count)
{
    bool terminal = *(const bool *)context;
    if (terminal && (uint64_t)done * 10 / count != ((uint64_t)done - 1) * 10 / count) {
        text_print(stderr, "%u/%u drives\n", done, count);
    }
}

static struct golden_options options_of(const struct golden_command *golden, bool *terminal)
{
    *terminal = isatty(STDERR_FILENO) != 0;
    return (struct golden_options){
        .store = golden->store,
        .models = golden->models,
        .device = golden->suite.device,
        .slot_count = (uint32_t)golden->slots,
        .thread_count = (uint32_t)golden->threads,
        .confinement = golden->confinement,
        .planner_deadline_ms = golden->planner_deadline_ms,
        .stop = golden->interrupted,
        .progress = show_progress,
        .context = terminal,
    };
}

/* ---- make ---- */

/* The models that jobs name, and the world of the user's among them. */
static enum status open_models(struct golden_command *golden, struct error *error)
{
    const struct world_source_options how = {.confinement = golden->confinement};
    struct error unneeded;
    TRY(models_open(golden->suite.models, NULL, &golden->models, error));
    versions_fetch_from(golden->store, golden->models, &unneeded); /* else the directory's alone */
    const char *world = world_spec_is(golden->suite.world) ? golden->suite.world : NULL;
    return world_source_lend(world, golden->suite.audit_world, &how, golden->models, error);
}

static int show_made(const struct golden_command *golden, const struct golden_made *made)
{
    const struct golden_set *set = &made->set;
    if (golden->json) {
        return cli_print_json(json_pack(
            "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:i, s:f, s:I, s:I, s:s}", "name",
            set->name, "hash", set->hash, "model_hash", set->model_hash, "sampler", set->sampler,
            "recordings", (json_int_t)set->recordings, "rollouts", (json_int_t)made->rollouts,
            "bytes", (json_int_t)set->bytes, "left_out", (int)made->left_out, "futures",
            (int)made->futures, "doubtful", (int)made->doubtful, "device_s",
            seconds(made->device_ns), "cost_uusd", (json_int_t)golden->cost_uusd, "ticks",
            (json_int_t)made->ticks, "reason", made->reason));
    }
    text_print(stdout,
               "golden %s: %lld recordings of %lld rollouts, %.1f MiB; %lld ticks of model %.12s "
               "(%s) took %.1f s, $%.6f\n",
               set->name, (long long)set->recordings, (long long)made->rollouts, mib(set->bytes),
               (long long)made->ticks, set->model_hash, set->sampler, seconds(made->device_ns),
               (double)golden->cost_uusd / (double)UUSD_PER_USD);
    if (made->futures > 0) {
        text_print(stdout, "%u of %u with futures have a verdict in doubt (swerve golden ls)\n",
                   made->doubtful, made->futures);
    }
    if (made->left_out > 0) {
        text_print(stdout, "%u left out, which are no results; the first: %s\n", made->left_out,
                   made->reason);
    }
    return 0;
}

/* Pictures of a student where it is frozen would answer other planners for as long as they are
 * kept. */
static enum status check_freeze(const struct trust_event *event,
                                const struct submission *submission, struct error *error)
{
    for (uint32_t i = 0; i < submission->page_count; i++) {
        const struct slices *slices = &submission->documents[i]->scenario.slices;
        char slice[TRUST_SLICE_TEXT_BYTES];
        if (trust_freeze_is_of(event, &submission->specs[i]) &&
            trust_find_slice(&event->slice, 1, slices) != NULL) {
            return error_set(error, STATUS_MISMATCH,
                             "golden make: scenario \"%s\" is of the slice %s, in which "
                             "student %.12s is frozen (freeze %lld, swerve trust ls): "
                             "expected --world teacher, or a suite without such scenarios",
                             submission->specs[i].scenario_id,
                             trust_slice_text(&event->slice, slice), event->student_hash,
                             (long long)event->id);
        }
    }
    return STATUS_OK;
}

static enum status check_freezes(const struct golden_command *golden, struct submission *submission,
                                 struct error *error)
{
    struct decisions decisions;
    enum status status = decisions_read(golden->store, &decisions, error);
    bool more = status == STATUS_OK && submission_first(submission);
    for (; more; more = status == STATUS_OK && submission_next(submission)) {
        for (uint32_t e = 0; status == STATUS_OK && e < decisions.count; e++) {
            const struct trust_event *event = &decisions.events[e];
            status =
                decisions_holds(event, NULL) ? check_freeze(event, submission, error) : STATUS_OK;
        }
    }
    decisions_finish(&decisions);
    return status;
}

static enum status look_at(void *context, const struct store_suite_status *now, struct error *error)
{
    struct golden_command *golden = context;
    bool terminal = isatty(STDERR_FILENO) != 0;
    const int64_t ended = store_jobs_ended(now);
    const int64_t count = ended + store_jobs_open(now);
    while (golden->shown < ended) {
        show_progress(&terminal, (uint32_t)++golden->shown, (uint32_t)count);
    }
    golden->cost_uusd = now->cost_uusd;
    return ended == count || atomic_load(golden->interrupted) == 0
               ? STATUS_OK
               : error_set(error, STATUS_CANCELLED,
                           "golden: interrupted with %lld of %lld jobs driven, which are kept: "
                           "the same command goes on",
                           (long long)ended, (long long)count);
}

static enum status drive(struct golden_command *golden, const struct submission *submission,
                         const struct logger *logger, struct error *error)
{
    const char *backend = submission->kinds[0].backend;
    bool on_device = strcmp(backend, "cpu") != 0;
    bool automatic = strcmp(golden->suite.device, "auto") == 0;
    struct pools *pools = calloc(1, sizeof *pools);
    TRY(memory_check(pools, error, "golden: out of memory"));
    pools->config = (struct pool_config){
        .store_url = cli_store_url(golden->store_url),
        .models = golden->suite.models,
        .world = world_spec_is(golden->suite.world) ? golden->suite.world : NULL,
        .audit_world = golden->suite.audit_world,
        .device = !on_device  ? "cpu"
                  : automatic ? "cuda:0"
                              : golden->suite.device,
        .worker_count = (uint32_t)golden->workers,
        .slot_count = (uint32_t)golden->slots,
        .thread_count = (uint32_t)golden->threads,
        .planner_deadline_ms = golden->planner_deadline_ms,
        .keep_every_ms = KEEP_EVERY_MS,
        .confinement = golden->confinement,
        .logger = logger,
    };
    pools_want(pools, submission->kinds[0].pool);
    if (golden->futures) { /* of the object world, whichever made the pictures */
        pools_want(pools, "bulk");
    }
    enum status status =
        pools_wait(pools, golden->store, submission->suite_id, look_at, golden, error);
    pools_stop(pools);
    free(pools);
    return status;
}

static int make(struct golden_command *golden, const char *path)
{
    static const struct logger logger = {STDERR_FILENO, LOG_ERROR, "swerve"};
    const struct store_config config = {.logger = &logger};
    struct suite *suite = NULL;
    struct submission submission = {.job_count = 0};
    char suite_id[LIMIT_ID_BYTES]; /* of its first round */
    struct golden_made made;
    struct error error;
    if (strcmp(golden->suite.world, "auto") == 0) {
        golden->suite.world = "student";
    }
    golden->suite.audit = "off";
    golden->suite.store_url = golden->store_url;
    golden->suite.makes = JOB_MAKES_GOLDEN;
    enum status status =
        golden->name != NULL && golden->name[0] != '\0'
            ? STATUS_OK
            : error_set(&error, STATUS_USAGE, "golden make: --name NAME is missing");
    THEN(status, golden_name_check(golden->name, &error)); /* before hours of driving */
    THEN(status, suite_options_build(&golden->suite, path, &suite, &submission, &error));
    THEN(status, store_open(cli_store_url(golden->store_url), &config, &golden->store, &error));
    THEN(status, golden_check(golden->store, golden->name, &submission, &error));
    THEN(status, check_freezes(golden, &submission, &error));
    THEN(status, open_models(golden, &error));
    THEN(status, pool_check_rights(golden->store, &error));
    memcpy(suite_id, submission.suite_id, sizeof suite_id);
    THEN(status,
         submission_send(&submission, golden->store, (uint32_t)golden->suite.weight, &error));
    THEN(status, drive(golden, &submission, &logger, &error));
    if (golden->futures) {
        THEN(status, golden_futures_ask(golden->store, submission.suite_id, &error));
        THEN(status, drive(golden, &submission, &logger, &error));
    }
    THEN(status, check_freezes(golden, &submission, &error)); /* made meanwhile */
    THEN(status, golden_collect(golden->store, golden->models, golden->name, suite_id, &submission,
                                &made, &error));
    submission_finish(&submission);
    suite_destroy(suite);
    return status == STATUS_OK ? show_made(golden, &made) : fail(golden, &error);
}

/* ---- ls, expire ---- */

/* Calls `visit` for each set of the store. */
static enum status each_set(struct golden_command *golden,
                            enum status (*visit)(struct golden_command *golden,
                                                 const struct golden_set *set, json_t *list,
                                                 struct error *error),
                            json_t *list, struct error *error)
{
    struct golden_set *page = calloc(SETS_PAGE, sizeof *page);
    char after[LIMIT_ID_BYTES] = "";
    uint32_t count = SETS_PAGE;
    enum status status = memory_check(page, error, "golden: out of memory");
    while (status == STATUS_OK && count > 0) {
        status = golden->store->ops->goldens(golden->store, after, page, SETS_PAGE, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
            memcpy(after, page[i].name, sizeof after);
            status = visit(golden, &page[i], list, error);
        }
    }
    free(page);
    return status;
}

/* A table that cannot be read has no head. */
static void begin_table(struct golden_command *golden)
{
    if (!golden->headed && !golden->json) {
        text_print(stdout, "%-24s %10s %9s %8s  %-20s  %-12s  %s\n", "name", "recordings", "MiB",
                   "in doubt", "made", "model", "sampler");
    }
    golden->headed = true;
}

static uint32_t count_futures(const struct golden_list *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->entry_count; i++) {
        count += list->entries[i].futures.state != FUTURES_NONE;
    }
    return count;
}

static void print_set(const struct golden_set *set, const struct golden_list *known)
{
    char made[CLI_DATE_BYTES];
    char doubts[32] = "-";
    char text[FUTURES_TEXT_BYTES];
    uint32_t doubtful = 0;
    for (uint32_t i = 0; i < known->entry_count; i++) {
        doubtful += golden_entry_doubtful(&known->entries[i]);
    }
    if (count_futures(known) > 0) {
        snprintf(doubts, sizeof doubts, "%u", doubtful);
    }
    text_print(stdout, "%-24s %10lld %9.1f %8s  %-20s  %.12s  %s\n", set->name,
               (long long)set->recordings, mib(set->bytes), doubts, cli_date(set->made_s, made),
               set->model_hash, set->sampler);
    for (uint32_t i = 0; i < known->entry_count; i++) {
        const struct golden_entry *entry = &known->entries[i];
        if (golden_entry_doubtful(entry)) {
            text_print(stdout, "  in doubt: %s, seed %llu: %s\n", entry->scenario_id,
                       (unsigned long long)entry->seed,
                       outcome_text_futures(&entry->futures, text));
        }
    }
}

/* Tells what its list says of futures; that one is damaged is for `verify` and `check` to tell. */
static enum status list_set(struct golden_command *golden, const struct golden_set *set,
                            json_t *list, struct error *error)
{
    struct golden_list known = {.name = ""};
    if (golden_doubts_list(golden->store, set->hash, &known, error) != STATUS_OK) {
        known = (struct golden_list){.name = ""};
    }
    begin_table(golden);
    if (golden->json) {
        json_t *json = json_record_encode(&golden_set_fields, set, NULL);
        json_object_set_new(json, "futures", json_integer(count_futures(&known)));
        json_object_set_new(json, "doubts", golden_doubts_json(&known));
        json_array_append_new(list, json);
    } else {
        print_set(set, &known);
    }
    golden_list_finish(&known);
    return STATUS_OK;
}

/* The digits tell one model, before the first set goes. */
static enum status tell_model(struct golden_command *golden, const struct golden_set *set,
                              json_t *list, struct error *error)
{
    (void)list;
    if (golden->model[0] == '\0' ||
        strncmp(golden->model, set->model_hash, strlen(golden->model)) != 0) {
        return STATUS_OK;
    }
    if (golden->model_found[0] != '\0' && strcmp(golden->model_found, set->model_hash) != 0) {
        return error_set(error, STATUS_USAGE,
                         "golden expire: --model: expected digits that tell one model, found "
                         "\"%.64s\", with which %.12s and %.12s begin; nothing was let go",
                         golden->model, golden->model_found, set->model_hash);
    }
    memcpy(golden->model_found, set->model_hash, sizeof golden->model_found);
    return STATUS_OK;
}

static enum status expire_set(struct golden_command *golden, const struct golden_set *set,
                              json_t *list, struct error *error)
{
    bool named = golden->name != NULL && strcmp(golden->name, set->name) == 0;
    bool of_model =
        golden->model_found[0] != '\0' && strcmp(golden->model_found, set->model_hash) == 0;
    if (!named && !of_model) {
        return STATUS_OK;
    }
    TRY(golden->store->ops->golden_drop(golden->store, set->name, error));
    json_array_append_new(list, json_string(set->name));
    if (!golden->json) {
        text_print(stdout, "%s: let go; swerve store gc --apply takes its %lld recordings\n",
                   set->name, (long long)set->recordings);
    }
    return STATUS_OK;
}

static int list_or_expire(struct golden_command *golden, bool expire)
{
    struct error error;
    json_t *list = json_array();
    enum status status = cli_store_open(golden->store_url, &golden->store, &error);
    if (golden->model != NULL && expire) {
        THEN(status, each_set(golden, tell_model, list, &error));
    }
    THEN(status, each_set(golden, expire ? expire_set : list_set, list, &error));
    if (status == STATUS_OK && expire && json_array_size(list) == 0) {
        status = error_set(&error, STATUS_NOT_FOUND, "golden: the store has no set %s \"%s\"",
                           golden->name != NULL ? "of the name" : "of a model that begins with",
                           golden->name != NULL ? golden->name : golden->model);
    }
    int code = 0;
    if (status == STATUS_OK && !expire) {
        begin_table(golden);
    }
    if (status != STATUS_OK) {
        code = cli_fail(&error);
    } else if (golden->json) {
        code = cli_print_json(json_pack("{s:O}", expire ? "expired" : "goldens", list));
    }
    json_decref(list);
    return code;
}

/* ---- verify ---- */

static int show_tried(const struct golden_command *golden, const struct golden_tried *tried)
{
    bool good = tried->damaged + tried->differ == 0;
    int code = good ? 0 : status_exit_code(STATUS_MISMATCH);
    if (golden->json) {
        int printed = cli_print_json(
            json_pack("{s:s, s:b, s:i, s:i, s:i, s:I, s:I, s:f, s:s}", "name", golden->name, "ok",
                      good, "recordings", (int)tried->recordings, "damaged", (int)tried->damaged,
                      "differ", (int)tried->differ, "rollouts", (json_int_t)tried->rollouts,
                      "ticks", (json_int_t)tried->ticks, "device_s", seconds(tried->device_ns),
                      "reason", tried->reason));
        return printed != 0 ? printed : code;
    }
    text_print(stdout,
               "golden %s: %u recordings, %u damaged; %lld rollouts shown to their planner, %u "
               "recordings differ; %lld ticks took %.2f s\n",
               golden->name, tried->recordings, tried->damaged, (long long)tried->rollouts,
               tried->differ, (long long)tried->ticks, seconds(tried->device_ns));
    if (!good) {
        text_print(stdout, "the first: %s\n", tried->reason);
    }
    return code;
}

static int verify(struct golden_command *golden)
{
    struct golden_tried tried;
    struct error error;
    bool terminal;
    enum status status = cli_store_open(golden->store_url, &golden->store, &error);
    THEN(status, models_open(golden->suite.models, NULL, &golden->models, &error));
    THEN(status, golden_library_lend(golden->name, golden->store, false, golden->models, &error));
    if (status == STATUS_OK) {
        const struct golden_options options = options_of(golden, &terminal);
        status = golden_verify(&options, &tried, &error);
    }
    return status == STATUS_OK ? show_tried(golden, &tried) : fail(golden, &error);
}

/* ---- the command ---- */

static enum status check_numbers(const struct golden_command *golden, struct error *error)
{
    if (golden->slots < 1 || golden->slots > LIMIT_SLOTS || golden->threads < 1 ||
        golden->threads > THREADS_MAX || golden->workers < 0 ||
        golden->workers > POOL_WORKERS_MAX) {
        return error_set(error, STATUS_USAGE,
                         "golden: expected --slots 1 to %d, --threads 1 to %d, --workers 0 to %d",
                         LIMIT_SLOTS, THREADS_MAX, POOL_WORKERS_MAX);
    }
    return STATUS_OK;
}

static int act(struct golden_command *golden, const struct cli_command *command,
               const char *const arguments[2])
{
    struct error error;
    const char *verb = arguments[0];
    const char *what = arguments[1];
    if (strcmp(verb, "make") == 0 && what != NULL) {
        return make(golden, what);
    }
    if (strcmp(verb, "ls") == 0 && what == NULL) {
        return list_or_expire(golden, false);
    }
    if (strcmp(verb, "verify") == 0 && what != NULL) {
        golden->name = what;
        return verify(golden);
    }
    if (strcmp(verb, "expire") == 0 && (what != NULL) != (golden->model != NULL)) {
        golden->name = what;
        return list_or_expire(golden, true);
    }
    error_set(&error, STATUS_USAGE, "golden: expected %s", command->usage);
    return cli_fail(&error);
}

/* Of the options that no other verb has, `make` has all, and `verify` what it needs to drive. */
static void bind_options(struct cli_option *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *name = rows[i].name;
        bool verify = strcmp(name, "--device") == 0 || strcmp(name, "--models") == 0 ||
                      strncmp(name, "--planner-", strlen("--planner-")) == 0;
        if (rows[i].verbs == NULL) {
            rows[i].verbs = verify ? "make verify" : "make";
        }
    }
}

int command_golden(int argc, char **argv)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct golden_command golden = {
        .suite = SUITE_OPTIONS_DEFAULT,
        .confinement_options = CONFINEMENT_OPTIONS_DEFAULT,
        .workers = 1,
        .slots = 16,
        .threads = cores < 1             ? 1
                   : cores > THREADS_MAX ? THREADS_MAX
                                         : cores,
        .planner_deadline_ms = 1000,
    };
    struct cli_option rows[] = {
        {"--name", "NAME", "make: of the set", .text = &golden.name},
        {"--futures", NULL, "make: says of each drive how sure its verdict is",
         .flag = &golden.futures},
        {"--model", "HASH", "expire: all sets of that model, or as many digits as tell it",
         .text = &golden.model, .verbs = "expire"},
        SUITE_OPTION_ROWS_DRIVE(golden.suite),
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &golden.store_url,
         .group = "Store", .verbs = EVERY_VERB},
        {"--workers", "N", "processes that drive here; 0: workers elsewhere do (1)",
         .number = &golden.workers},
        {"--slots", "N", "rollouts at a time, 1 to 1024 (16)", .number = &golden.slots,
         .verbs = "make verify"},
        {"--threads", "N", "of the world model, 1 to 64 (one per core)", .number = &golden.threads,
         .verbs = "make verify"},
        {"--planner-deadline-ms", "MS", "longest answer of an exec planner (1000)",
         .number = &golden.planner_deadline_ms},
        {"--json", NULL, "print one JSON object", .flag = &golden.json, .verbs = EVERY_VERB},
        CONFINEMENT_OPTION_ROWS(golden.confinement_options),
    };
    const struct cli_command command = {
        "golden",
        "make SUITE --name NAME [--world student|teacher|SPEC] | ls | verify NAME | expire NAME |\n"
        "       expire --model HASH [options]",
        "Records drives of a world model once and keeps them in a store; run --world golden:NAME\n"
        "shows them to any planner at the object world's price (docs/goldens.md).",
        CLI_ROWS(rows, 1, 2),
    };
    const char *arguments[2] = {NULL, NULL};
    struct error error;
    int code = 0;
    bind_options(rows, COUNT_OF(rows));
    CLI_PARSE(&command, argc, argv, arguments, NULL);
    enum status status = check_numbers(&golden, &error);
    THEN(status,
         confinement_options_settle(&golden.confinement_options, cli_store_url(golden.store_url),
                                    &golden.confinement, &error));
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    golden.suite.confinement = golden.confinement;
    golden.interrupted = cli_catch_interrupts();
    code = act(&golden, &command, arguments);
    models_close(golden.models);
    cli_store_close(golden.store);
    return code;
}
