/*
 * swerve replay: run recorded outcomes again, each alone from tick 0, and compare everything that a
 * replay makes anew (replay_compare.h). Of one outcome, what its planner writes is shown as it
 * comes. Equal hashes mean the same drive to the last bit, however the first one was batched,
 * forked or retried. With --all, finished jobs whose outcomes are not all there are named as well.
 *
 * swerve debug: one outcome again with its planner at the terminal and no deadline, and if wanted
 * with what it saw and did at each tick in files; then the same comparison.
 */
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "cli/dump/debug_dump.h"
#include "cli/kept/replay_missing.h"
#include "cli/kept/replay_planner.h"
#include "report/report_drive.h"
#include "worker/run/prepared_cache.h"
#include "worker/run/replay_compare.h"
#include "worker/run/revision.h"
#include "worker/run/runner_open.h"
#include "worker/versions/versions.h"

#include "base/rng.h"
#include "base/text.h"
#include "schemas/job_context.h"
#include "schemas/json_record.h"
#include "worker/golden/golden_library.h"
#include "worker/world/world_source.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { REPLAY_IDS_MAX = 64, REPLAY_PAGE = 100, THREADS_MAX = 64 };

struct replay {
    struct store *store;
    struct prepared_cache *prepared_scenarios;
    struct models *models;
    struct replay_planner planner;
    struct job_spec spec; /* what the runner was opened for */
    uint32_t slot_count, thread_count;
    int64_t deadline_ms;
    int64_t world_deadline_ms;
    const char *world, *audit_world; /* the user's own, as they were named then; NULL: none */
    double share;                    /* of outcomes that are driven again; 0: all */
    uint64_t sample_seed;            /* nobody knows before which they are */
    int64_t passed_over;
    int64_t clips; /* of training data: no drives, and made again by datagen alone */
    bool json;
    const struct planner_confinement *confinement;
    const struct planner_confinement *kept_confinement; /* of files that the store kept */
    bool debug;
    bool stream;            /* one outcome: what the planner writes is shown as it comes */
    const char *store_url;  /* for commands that are shown */
    struct debug_dump dump; /* folder NULL: none */
    int64_t same;
    int64_t different;
    int64_t of_others; /* of these, recorded by another revision: no promise is broken */
    int64_t missing;
    int64_t last_job; /* the highest job that an outcome was seen of */
    json_t *results;
    json_t *missing_results;
    struct replay_artifact artifact;
    struct replay_differences differences;
};

static bool runner_fits(const struct replay *replay, const struct outcome *outcome)
{
    const struct job_context opened = job_context_of_spec(&replay->spec);
    const struct job_context asked = job_context_of_outcome(outcome);
    return replay->planner.open.runner != NULL &&
           job_context_differs(&opened, &asked, JOB_CONTEXT_RUNNER) == 0;
}

/* A line of the planner's, on stderr: stdout is the result's. */
static void show_said(void *context, uint32_t session, const char *line, size_t bytes)
{
    (void)context;
    (void)session; /* there is one */
    text_print(stderr, "planner: %.*s\n", (int)bytes, line);
}

static enum status use_runner(struct replay *replay, const struct outcome *outcome,
                              const struct rig *rig, struct error *error)
{
    if (runner_fits(replay, outcome)) {
        return STATUS_OK;
    }
    replay_planner_close(&replay->planner);
    const struct runner_source source = {
        .models = replay->models,
        .planner_config = {.tick_deadline_ms = replay->deadline_ms,
                           .open_deadline_ms = replay->debug ? replay->deadline_ms : 0,
                           .confinement = replay->confinement,
                           .debug = replay->debug,
                           .said = replay->stream || replay->debug ? show_said : NULL,
                           .observed = replay->dump.folder != NULL ? debug_dump_observed : NULL,
                           .observed_context = &replay->dump},
        .slot_count = replay->slot_count,
        .thread_count = replay->thread_count,
        .spill_bytes_max = UINT64_C(8) << 30,
        .clock = clock_system(),
    };
    /* Any version of the planner will do: a different result then names it as the cause. */
    replay->spec = (struct job_spec){.planner = ""};
    job_context_take(outcome, JOB_CONTEXT_RUNNER, &replay->spec);
    const struct replay_files files = {replay->stream || replay->debug ? replay->store : NULL,
                                       replay->store_url, replay->kept_confinement};
    enum status status =
        replay_planner_open(&source, &replay->spec, rig, &files, outcome, &replay->planner, error);
    return status == STATUS_OK ? status
                               : error_prefix(error, "outcome %lld", (long long)outcome->id);
}

/* With the rig of the outcome's scenario, where it is not the built-in one. */
static enum status use_runner_of(struct replay *replay, const struct outcome *outcome,
                                 struct error *error)
{
    struct prepared *prepared = NULL;
    if (outcome->rig[0] == '\0' || runner_fits(replay, outcome)) {
        return use_runner(replay, outcome, NULL, error);
    }
    TRY(prepared_cache_get(replay->prepared_scenarios, replay->store, outcome->scenario_hash,
                           &prepared, error));
    enum status status = use_runner(replay, outcome, prepared_scenario(prepared)->rig, error);
    prepared_cache_put(replay->prepared_scenarios, prepared);
    return status;
}

static enum status find_branch(const struct scenario *scenario, const struct outcome *outcome,
                               int32_t *branch, struct error *error)
{
    const struct branch *found = report_branch(scenario, outcome->branch_id);
    if (found == NULL && outcome->branch_id[0] != '\0') {
        return error_set(error, STATUS_STORE, "outcome %lld: its scenario has no branch \"%s\"",
                         (long long)outcome->id, outcome->branch_id);
    }
    *branch = found != NULL ? (int32_t)(found - scenario->branches) : ROLLOUT_MAIN;
    return STATUS_OK;
}

/* Queues one outcome in the runner. */
static enum status begin(struct replay *replay, const struct outcome *outcome, struct error *error)
{
    struct prepared *prepared = NULL;
    struct job_run *job = NULL;
    int32_t branch = ROLLOUT_MAIN;
    TRY(prepared_cache_get(replay->prepared_scenarios, replay->store, outcome->scenario_hash,
                           &prepared, error));
    struct job_lease lease = {.job_id = outcome->id};
    lease.spec.seed = outcome->seed;
    lease.spec.tier = outcome->tier;
    enum status status = find_branch(prepared_scenario(prepared), outcome, &branch, error);
    THEN(status, job_run_create(&lease, prepared, &job, error));
    if (status == STATUS_OK) {
        job->owner = (void *)(uintptr_t)outcome;
        status = runner_add(replay->planner.open.runner, job, branch, error);
    }
    if (status != STATUS_OK) {
        job_run_destroy(job);
        prepared_cache_put(replay->prepared_scenarios, prepared);
    }
    return status;
}

static void report_json(struct replay *replay, const struct outcome *outcome,
                        const struct rollout_result *found, const char *fault)
{
    const struct replay_differences *differences = &replay->differences;
    json_t *rows = json_array();
    for (uint32_t i = 0; i < differences->count; i++) {
        const struct replay_difference *row = &differences->rows[i];
        json_array_append_new(rows,
                              json_pack("{s:s, s:o, s:o}", "field", row->field, "stored",
                                        json_text_new(row->stored, sizeof row->stored), "replayed",
                                        json_text_new(row->replayed, sizeof row->replayed)));
    }
    json_t *result =
        json_pack("{s:I, s:b, s:s, s:s, s:o}", "outcome", (json_int_t)outcome->id, "identical",
                  found != NULL && differences->count == 0, "recorded", outcome->trace_hash,
                  "replayed", found != NULL ? found->trace_hash : "", "differences", rows);
    if (found == NULL) {
        json_object_set_new(result, "error", json_text_new(fault, OUTCOME_ERROR_BYTES));
    }
    json_array_append_new(replay->results, result);
}

/* Who reported the outcome, for whoever decides what to believe. */
static void report_author(const struct replay *replay, const struct outcome *outcome)
{
    struct store_job *job = malloc(sizeof *job);
    struct error ignored;

    if (job != NULL &&
        replay->store->ops->job(replay->store, outcome->job_id, job, &ignored) == STATUS_OK) {
        text_print(stdout, "  reported by worker %s%s%s\n", job->worker_id,
                   job->token[0] != '\0' ? ", token " : "", job->token);
    }
    free(job);
}

static bool is_of_another(const struct outcome *outcome)
{
    return strcmp(outcome->revision, revision_hash) != 0;
}

static void report_text(const struct replay *replay, const struct outcome *outcome,
                        const struct rollout_result *found, const char *fault)
{
    text_print(stdout, "outcome %" PRId64 ": %s (%s%s%s, seed %" PRIu64 ")\n", outcome->id,
               is_of_another(outcome) ? "OF ANOTHER REVISION" : "DIFFERENT", outcome->scenario_id,
               outcome->branch_id[0] != '\0' ? ", branch " : "", outcome->branch_id, outcome->seed);
    report_author(replay, outcome);
    if (found == NULL) {
        text_print(stdout, "  the replay broke: %s\n", fault);
    }
    for (uint32_t i = 0; found != NULL && i < replay->differences.count; i++) {
        const struct replay_difference *row = &replay->differences.rows[i];
        text_print(stdout, "  %-24s stored   %s\n", row->field, row->stored);
        text_print(stdout, "  %-24s replayed %s\n", "", row->replayed);
    }
    if (!replay_planner_is(&replay->planner, outcome)) {
        text_print(stdout,
                   "  recorded with another version of the planner (hash %.12s, now %.12s)\n",
                   outcome->planner_hash, replay->planner.hash);
    }
    if (is_of_another(outcome)) {
        text_print(stdout, "  recorded by simulation revision %.12s, this is %.12s\n",
                   outcome->revision, revision_hash);
    }
}

static enum status compare(struct replay *replay, const struct outcome *outcome,
                           const struct job_run *job, struct error *error)
{
    const struct rollout_result *found = NULL;
    enum status status = STATUS_OK;
    replay->differences.count = 0;
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        if (job->results[i].finished) {
            found = &job->results[i];
        }
    }
    if (found != NULL) {
        status = replay_compare(replay->store, &replay->artifact, outcome, job,
                                (uint32_t)(found - job->results), &replay->differences, error);
        if (status != STATUS_OK) {
            return error_prefix(error, "outcome %" PRId64, outcome->id);
        }
    }
    bool same = found != NULL && replay->differences.count == 0;
    replay->same += same;
    replay->different += !same;
    replay->of_others += !same && is_of_another(outcome);
    if (replay->json) {
        report_json(replay, outcome, found, job->error);
    } else if (!same) {
        report_text(replay, outcome, found, job->error);
    }
    return STATUS_OK;
}

static enum status collect(struct replay *replay, struct error *error)
{
    struct job_run *job;
    enum status status = STATUS_OK;
    while ((job = runner_take(replay->planner.open.runner)) != NULL) {
        struct prepared *prepared = job->prepared;
        THEN(status, compare(replay, job->owner, job, error));
        job_run_destroy(job);
        prepared_cache_put(replay->prepared_scenarios, prepared);
    }
    return status;
}

/* Everything that was begun comes to its end; `status` is what has gone wrong before. */
static enum status finish_running(struct replay *replay, enum status status, struct error *error)
{
    struct error later;
    while (replay->planner.open.runner != NULL && runner_busy(replay->planner.open.runner)) {
        runner_tick(replay->planner.open.runner);
        enum status collected = collect(replay, &later);
        if (status == STATUS_OK && collected != STATUS_OK) {
            status = collected;
            *error = later;
        }
    }
    return status;
}

/* Whether an outcome is in the sample. */
static bool is_drawn(const struct replay *replay, const struct outcome *outcome)
{
    uint64_t draw = rng_mix(replay->sample_seed ^ rng_mix((uint64_t)outcome->id));
    return replay->share == 0.0 || (double)(draw >> 11) * 0x1p-53 < replay->share;
}

/* Whether an outcome is of a job that made a clip. */
static enum status find_clip(const struct replay *replay, const struct outcome *outcome, bool *clip,
                             struct error *error)
{
    *clip = false;
    if (!outcome_is_made(outcome)) {
        return STATUS_OK;
    }
    struct store_job *job = malloc(sizeof *job);
    TRY(memory_check(job, error, "replay: out of memory"));
    enum status status = replay->store->ops->job(replay->store, outcome->job_id, job, error);
    *clip = status == STATUS_OK && job_clip_ticks(&job->spec) > 0;
    free(job);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Runs a page of outcomes, as many at a time as there are slots. */
static enum status replay_page(struct replay *replay, const struct outcome *outcomes,
                               uint32_t count, struct error *error)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        bool clip = false;
        status = find_clip(replay, &outcomes[i], &clip, error);
        if (clip || status != STATUS_OK) {
            replay->clips += clip;
            continue;
        }
        if (!is_drawn(replay, &outcomes[i])) {
            replay->passed_over++;
            continue;
        }
        if (!runner_fits(replay, &outcomes[i])) {
            status = finish_running(replay, status, error);
        }
        THEN(status, use_runner_of(replay, &outcomes[i], error));
        THEN(status, begin(replay, &outcomes[i], error));
        while (status == STATUS_OK && runner_free_slots(replay->planner.open.runner) == 0) {
            runner_tick(replay->planner.open.runner);
            status = collect(replay, error);
        }
        replay->last_job =
            outcomes[i].job_id > replay->last_job ? outcomes[i].job_id : replay->last_job;
    }
    return finish_running(replay, status, error);
}

/* An outcome that is not there. */
static void miss(void *context, const struct store_job *job, const char *branch_id, uint32_t found)
{
    struct replay *replay = context;
    replay->missing++;
    if (replay->json) {
        json_array_append_new(replay->missing_results,
                              json_pack("{s:I, s:s, s:s, s:s, s:I, s:I}", "job",
                                        (json_int_t)job->id, "suite", job->spec.suite_id,
                                        "scenario", job->spec.scenario_id, "branch", branch_id,
                                        "rollouts", (json_int_t)job->spec.rollout_count, "outcomes",
                                        (json_int_t)found));
        return;
    }
    text_print(stdout,
               "job %" PRId64 ": OUTCOME MISSING (%s%s%s, seed %" PRIu64
               "): the job is done, with %u "
               "rollouts; the store has %u outcomes of it\n",
               job->id, job->spec.scenario_id, branch_id[0] != '\0' ? ", branch " : "", branch_id,
               job->spec.seed, job->spec.rollout_count, found);
}

/* Outcomes of the store, of a suite, or (outcome_id > 0) one alone, page by page. */
static enum status replay_pages(struct replay *replay, const char *suite, int64_t outcome_id,
                                struct error *error)
{
    struct store_outcome_filter filter = {.outcome_id = outcome_id, .limit = REPLAY_PAGE};
    struct outcome *page = calloc(REPLAY_PAGE, sizeof *page);
    TRY(memory_check(page, error, "replay: out of memory"));
    if (suite != NULL) {
        snprintf(filter.suite_id, sizeof filter.suite_id, "%s", suite);
    }
    enum status status;
    for (;;) {
        uint32_t count = 0;
        status = replay->store->ops->outcomes(replay->store, &filter, page, &count, error);
        if (status != STATUS_OK || count == 0) {
            break;
        }
        filter.after_id = page[count - 1].id;
        status = replay_page(replay, page, count, error);
        if (status != STATUS_OK) {
            break;
        }
    }
    free(page);
    return status;
}

static enum status replay_one(struct replay *replay, int64_t id, struct error *error)
{
    const int64_t driven = replay->same + replay->different;
    const int64_t clips = replay->clips;
    TRY(replay_pages(replay, NULL, id, error));
    if (replay->clips > clips) {
        return error_set(error, STATUS_USAGE,
                         "outcome %" PRId64 ": a clip of training data, not a drive; swerve "
                         "datagen makes it again",
                         id);
    }
    if (replay->same + replay->different == driven) {
        return error_set(error, STATUS_NOT_FOUND, "outcome %" PRId64 ": the store has none", id);
    }
    return STATUS_OK;
}

static enum status replay_all(struct replay *replay, const char *suite, struct error *error)
{
    enum status status = replay_pages(replay, suite, 0, error);
    if (status == STATUS_OK && replay->share == 0.0) {
        status = replay_missing_find(replay->store, replay->prepared_scenarios, suite,
                                     replay->last_job, miss, replay, error);
    }
    if (status == STATUS_OK &&
        replay->same + replay->different + replay->missing + replay->passed_over + replay->clips ==
            0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "replay --all: expected outcomes to drive again, found none%s%s",
                         suite != NULL ? " in suite " : " in the store",
                         suite != NULL ? suite : "");
    }
    return status;
}

/* Meaning of a sample in which nothing differs: n of n identical leave, with 95% confidence, at
 * most 1 - 0.05^(1/n) of all that do not (exact, Clopper and Pearson 1934). */
static void print_sample(const struct replay *replay)
{
    if (replay->share == 0.0) {
        return;
    }
    int64_t driven = replay->same + replay->different;
    text_print(stdout, "sample: %" PRId64 " of %" PRId64 " outcomes", driven,
               driven + replay->passed_over);
    if (driven > 0 && replay->different == 0) {
        text_print(stdout, "; with 95%% confidence fewer than %.2g%% of all differ",
                   100.0 * (1.0 - pow(0.05, 1.0 / (double)driven)));
    }
    text_print(stdout, "\n");
}

static int finish(struct replay *replay, enum status status, const struct error *error)
{
    replay_planner_close(&replay->planner);
    models_close(replay->models);
    prepared_cache_destroy(replay->prepared_scenarios);
    replay_artifact_finish(&replay->artifact);
    replay->store->ops->close(replay->store);
    if (status != STATUS_OK) {
        json_decref(replay->results);
        json_decref(replay->missing_results);
        return cli_fail(error);
    }
    bool same = replay->different == 0 && replay->missing == 0;
    if (replay->json) {
        int code = cli_print_json(json_pack(
            "{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "identical", (json_int_t)replay->same,
            "different", (json_int_t)replay->different, "of_another_revision",
            (json_int_t)replay->of_others, "missing", (json_int_t)replay->missing, "passed_over",
            (json_int_t)replay->passed_over, "clips", (json_int_t)replay->clips, "outcomes",
            replay->results, "missing_outcomes", replay->missing_results));
        return code != 0 || same ? code : status_exit_code(STATUS_MISMATCH);
    }
    json_decref(replay->results);
    json_decref(replay->missing_results);
    text_print(stdout, "%" PRId64 " identical, %" PRId64 " different", replay->same,
               replay->different - replay->of_others);
    if (replay->of_others > 0) {
        text_print(stdout, ", %" PRId64 " of another revision, which may differ",
                   replay->of_others);
    }
    if (replay->missing > 0) {
        text_print(stdout, ", %" PRId64 " missing", replay->missing);
    }
    if (replay->clips > 0) {
        text_print(stdout, ", %" PRId64 " clips of training data left out", replay->clips);
    }
    text_print(stdout, "\n");
    print_sample(replay);
    return same ? 0 : status_exit_code(STATUS_MISMATCH);
}

/* Replays from a store that is open, closes it and says how it went: the outcomes `ids`, or where
 * their count is 0 all of a suite, or of the store. */
static int replay_store(struct replay *replay, const char *models, const char *suite,
                        const int64_t *ids, uint32_t count)
{
    struct error error;
    const struct world_source_options how = {.confinement = replay->confinement,
                                             .step_ms = replay->world_deadline_ms};
    replay->results = json_array();
    replay->missing_results = json_array();
    replay->prepared_scenarios = prepared_cache_create();
    enum status status = models_open(models, NULL, &replay->models, &error);
    if (status == STATUS_OK) { /* without a place for them those of the directory remain */
        versions_fetch_from(replay->store, replay->models, NULL);
    }
    /* Outcomes name worlds by hash: those given here must be the same. */
    const char *world = golden_spec_is(replay->world) ? NULL : replay->world;
    THEN(status, world_source_lend(world, replay->audit_world, &how, replay->models, &error));
    if (status == STATUS_OK && golden_spec_is(replay->world)) {
        status = golden_library_lend(replay->world, replay->store, false, replay->models, &error);
    }
    if (status == STATUS_OK && (replay->prepared_scenarios == NULL || replay->results == NULL ||
                                replay->missing_results == NULL)) {
        status = error_set(&error, STATUS_NO_MEMORY, "replay: out of memory");
    }
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = replay_one(replay, ids[i], &error);
    }
    if (status == STATUS_OK && count == 0) {
        status = replay_all(replay, suite, &error);
    }
    if (status == STATUS_OK && replay->dump.folder != NULL) {
        status = replay->dump.status;
        error = replay->dump.error;
        text_print(
            stdout, "%s: %u ticks, each tNNNN.npz with what the planner was given and did%s\n",
            replay->dump.folder, replay->dump.ticks,
            replay->dump.pictures > 0 ? ", and tNNNN.png, its cameras above the grid around ego"
                                      : "; no pictures, for it asked for neither cameras nor grid");
    }
    return finish(replay, status, &error);
}

/* A share of all outcomes instead of all. */
static enum status choose_sample(struct replay *replay, const char *share, bool all,
                                 struct error *error)
{
    if (share == NULL) {
        return STATUS_OK;
    }
    if (!all) {
        return error_set(error, STATUS_USAGE, "replay: --sample goes with --all");
    }
    TRY(cli_parse_share("--sample", share, &replay->share, error));
    if (replay->share == 0.0) {
        return error_set(error, STATUS_USAGE, "--sample: expected a share above 0, found \"%s\"",
                         share);
    }
    bool drawn = getrandom(&replay->sample_seed, sizeof replay->sample_seed, 0) ==
                 (ssize_t)sizeof replay->sample_seed;
    return drawn ? STATUS_OK
                 : error_set(error, STATUS_IO, "replay: the system gives no random numbers");
}

static enum status check_choice(uint32_t outcomes, bool all, int64_t slots, int64_t threads,
                                struct error *error)
{
    if ((outcomes > 0) == all) {
        return error_set(error, STATUS_USAGE, "replay: expected outcomes or --all, found %s",
                         all ? "both" : "neither");
    }
    const struct cli_bounds bounds[] = {
        {"replay: --slots", slots, 1, LIMIT_SLOTS},
        {"replay: --threads", threads, 1, THREADS_MAX},
    };
    return cli_bounds_check(bounds, COUNT_OF(bounds), error);
}

int command_replay(int argc, char **argv)
{
    const char *url = NULL;
    const char *suite = NULL;
    const char *models = NULL;
    const char *sample = NULL;
    bool all = false;
    int64_t slots = 1;
    int64_t threads = 1;
    struct replay replay = {.deadline_ms = 1000};

    struct confinement_options confinement = CONFINEMENT_OPTIONS_DEFAULT;
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &url},
        {"--all", NULL, "every outcome of the store, or of --suite", .flag = &all},
        {"--suite", "ID", "with --all: only this suite's", .text = &suite},
        {"--sample", "SHARE", "with --all: a share of them from 0 to 1, drawn anew each time",
         .text = &sample},
        {"--slots", "N", "rollouts at a time, 1 to 1024 (1)", .number = &slots},
        {"--threads", "N", "of each world model's kernels, 1 to 64 (1); bits are the same",
         .number = &threads},
        {"--models", "DIR", "world models ($SWERVE_MODELS, else the shipped ones)",
         .text = &models},
        {"--world", "SPEC",
         "the world of yours that was driven in: plugin:, exec: or onnx:", .text = &replay.world},
        {"--audit-world", "SPEC", "another, that audited", .text = &replay.audit_world},
        {"--planner-deadline-ms", "MS", "longest answer of an exec planner (1000)",
         .number = &replay.deadline_ms},
        {"--world-deadline-ms", "MS", "longest step of a world's process (10000)",
         .number = &replay.world_deadline_ms},
        {"--json", NULL, "print one JSON object", .flag = &replay.json},
        CONFINEMENT_OPTION_ROWS(confinement),
    };
    const struct cli_command command = {
        "replay",
        "OUTCOME..|--all --store URL",
        "Runs outcomes again and compares.",
        CLI_ROWS(rows, 0, REPLAY_IDS_MAX),
    };
    const char *arguments[REPLAY_IDS_MAX];
    int64_t ids[REPLAY_IDS_MAX];
    uint32_t count = 0;
    struct error error;
    CLI_PARSE(&command, argc, argv, arguments, &count);
    if (check_choice(count, all, slots, threads, &error) != STATUS_OK ||
        choose_sample(&replay, sample, all, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (cli_parse_id(arguments[i], &ids[i], &error) != STATUS_OK) {
            return cli_fail(&error);
        }
    }
    if (confinement_options_settle(&confinement, cli_store_url(url), &replay.confinement, &error) !=
            STATUS_OK ||
        cli_store_open(url, &replay.store, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    replay.slot_count = (uint32_t)slots;
    replay.thread_count = (uint32_t)threads;
    replay.stream = !all;
    replay.store_url = cli_store_url(url);
    replay.kept_confinement = replay.confinement;
    return replay_store(&replay, models, suite, ids, count);
}

enum { DEBUG_DEADLINE_MS = 24 * 60 * 60 * 1000 };

int command_debug(int argc, char **argv)
{
    const char *url = NULL;
    const char *models = NULL;
    const char *folder = NULL;
    const char *argument = NULL;
    int64_t id = 0;
    struct error error;
    struct replay replay = {.deadline_ms = DEBUG_DEADLINE_MS, .slot_count = 1, .debug = true};
    struct confinement_options kept = CONFINEMENT_OPTIONS_DEFAULT;
    kept.level = "off"; /* without a trial: only kept files need the sandbox, which is tried then */
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &url},
        {"--dump", "DIR", "what the planner saw and did at each tick, as npz and PNG",
         .text = &folder},
        {"--models", "DIR", "world models ($SWERVE_MODELS, else the shipped ones)",
         .text = &models},
        {"--world", "SPEC",
         "the world of yours that was driven in: plugin:, exec: or onnx:", .text = &replay.world},
        {"--audit-world", "SPEC", "another, that audited", .text = &replay.audit_world},
    };
    const struct cli_command command = {
        "debug",
        "OUTCOME [--dump DIR]",
        "Runs one outcome again with its planner at this terminal: no deadline, no sandbox,\n"
        "breakpoint() and pdb work. Says at which tick it first differs from what is stored.\n"
        "Where its files have changed and the store kept them, those drive, in the sandbox.",
        CLI_ROWS(rows, 1, 1),
    };
    CLI_PARSE(&command, argc, argv, &argument, NULL);
    enum status status = cli_parse_id(argument, &id, &error);
    if (folder != NULL) {
        THEN(status, debug_dump_open(&replay.dump, folder, &error));
    }
    replay.store_url = cli_store_url(url);
    THEN(status,
         confinement_options_settle(&kept, replay.store_url, &replay.kept_confinement, &error));
    THEN(status, cli_store_open(url, &replay.store, &error));
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    setenv("SWERVE_DEBUG", "1", 1);
    return replay_store(&replay, models, NULL, &id, 1);
}
