/*
 * swerve run: the main job. Creates the store, submits, runs a pool of worker processes, shows
 * progress, prints verdicts by slice and cost by tier, writes the report. Running it again resumes:
 * finished work is found by its key and not repeated.
 */
#include "cli/budget/budget.h"
#include "cli/budget/routes.h"
#include "cli/careful_answers.h"
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "cli/gate_options.h"
#include "cli/kept/golden_doubts.h"
#include "cli/kept/kept_pack.h"
#include "cli/label/label_options.h"
#include "cli/pool.h"
#include "cli/serving/serving.h"
#include "cli/suite_options.h"
#include "report/draw/draw_frames.h"
#include "report/export/export.h"
#include "report/report.h"
#include "report/summary.h"
#include "worker/golden/golden_library.h"
#include "worker/planner/planner_spec.h"
#include "worker/planner/planner_trial.h"
#include "worker/world/world_source.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "store/api/progress.h"
#include "store/api/store_url.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PROGRESS_MS = 250,
    PROGRESS_LINE_MS = 10000, /* where there is no terminal */
};

struct run_options {
    struct suite_options suite;
    struct confinement_options confinement_options;
    const struct planner_confinement *confinement;
    const char *store_url;
    const char *report;
    const char *summary; /* Markdown */
    const char *junit;
    const char *budget;
    int64_t budget_uusd;
    struct gate_options gate;
    struct label_options labels;
    bool keep_planner;
    struct serving_options dashboard; /* without an address: none */
    int64_t workers;
    int64_t slots;
    int64_t planner_deadline_ms;
    int64_t world_deadline_ms;
    int64_t keep_every_ms;
    bool json;
    bool verbose;
    bool overlap;
};

/* The first signal stops in order; with one that insists the workers are left to themselves: they
 * see that their parent is gone and hand back. Either way what is finished is in the store. */
static const atomic_int *interrupted;

/* Suites that planners have been tried for: a suite's jobs name few of them. */
struct trials {
    uint32_t count;
    struct {
        const char *planner;
        bool on_device;
    } list[2 * LIMIT_PLANNERS];
};

static bool is_on_device(const struct job_spec *spec)
{
    return spec->backend[0] != '\0' && strcmp(spec->backend, "cpu") != 0;
}

/* Whether a job before this one has its planner, in the same kind of place. */
static bool tried(struct trials *trials, const struct job_spec *spec)
{
    bool on_device = is_on_device(spec);
    for (uint32_t i = 0; i < trials->count; i++) {
        if (strcmp(trials->list[i].planner, spec->planner) == 0 &&
            trials->list[i].on_device == on_device) {
            return true;
        }
    }
    if (trials->count < COUNT_OF(trials->list)) {
        trials->list[trials->count].planner = spec->planner;
        trials->list[trials->count++].on_device = on_device;
    }
    return false;
}

/* A planner that cannot even start is told to the user now, not job by job. Those that tell what
 * they loaded were started already, to learn it. */
static enum status try_planners(const struct submission *submission,
                                const struct planner_confinement *confinement, struct error *error)
{
    struct trials trials = {0};
    for (uint32_t i = 0; i < submission->kind_count; i++) {
        const struct job_spec *spec = &submission->kinds[i];
        const struct scenario_document *example = submission_example(submission, i);
        if (!planner_spec_tells_loaded(spec->planner) && !tried(&trials, spec)) {
            TRY(planner_try(spec->planner, confinement,
                            example != NULL ? example->scenario.rig : NULL, is_on_device(spec),
                            PLANNER_TRY_MS, NULL, error));
        }
    }
    return STATUS_OK;
}

/* On a terminal one line that changes, elsewhere a line each time. The store said how long it takes
 * `since_ms` ago. */
static void show_progress(const struct store_suite_status *status, int64_t since_ms, bool terminal)
{
    int64_t done = 0;
    int64_t flagged = status->rollouts[VERDICT_FLAGGED]; /* another tier drives them again */
    char eta[PROGRESS_TEXT_BYTES];
    char flags[PROGRESS_TEXT_BYTES] = "";
    for (int v = 0; v < VERDICT_COUNT; v++) {
        done += v == VERDICT_FLAGGED ? 0 : status->rollouts[v];
    }
    if (flagged > 0) {
        snprintf(flags, sizeof flags, "  flagged %lld", (long long)flagged);
    }
    char rates[PROGRESS_RATES_BYTES];
    char bar[PROGRESS_BAR_BYTES];
    progress_bar_text(status, bar);
    int64_t eta_ms = status->eta_ms > since_ms ? status->eta_ms - since_ms : 0;
    fprintf(stderr, "%s%s%s%lld/%lld rollouts%s%s  %.2f miles  $%.6f  ETA %s%s",
            terminal ? "\r\033[K" : "", bar, bar[0] != '\0' ? "  " : "", (long long)done,
            (long long)status->rollouts_total, flags, progress_rates_text(status, rates),
            (double)status->metres_mm / (double)MM_PER_M / M_PER_MILE,
            (double)status->cost_uusd / (double)UUSD_PER_USD,
            progress_eta_text(status->eta_ms < 0 ? -1 : eta_ms, eta), terminal ? "" : "\n");
}

/* Progress of a suite as it was shown last. */
struct supervision {
    bool terminal;
    int64_t period_ns, shown_ns;
    int64_t finished; /* jobs; -1: not looked at yet */
    int64_t eta_ms;
    int64_t changed_ns; /* when the store last said another time */
};

static enum status look_at(void *context, const struct store_suite_status *now, struct error *error)
{
    struct supervision *seen = context;
    const int64_t finished = store_jobs_ended(now);
    const int64_t open = store_jobs_open(now);
    const int64_t now_ns = clock_now_ns(clock_system());
    if (finished != seen->finished || now->eta_ms != seen->eta_ms) {
        seen->changed_ns = now_ns;
    }
    seen->finished = finished;
    seen->eta_ms = now->eta_ms;
    if ((open == 0 && seen->terminal) || now_ns - seen->shown_ns > seen->period_ns) {
        seen->shown_ns = now_ns;
        show_progress(now, (now_ns - seen->changed_ns) / NS_PER_MS, seen->terminal);
    }
    if (open == 0 && seen->terminal) {
        fputc('\n', stderr);
    }
    return open == 0 || atomic_load(interrupted) == 0
               ? STATUS_OK
               : error_set(error, STATUS_CANCELLED,
                           "interrupted with %lld of %lld jobs finished; they are kept: run the "
                           "same command again to go on",
                           (long long)finished, (long long)(finished + open));
}

/* Waits until every job of the suite has ended, successors of flagged ones included, keeping the
 * pools alive. */
static enum status supervise(struct pools *pools, struct store *store, const char *suite_id,
                             struct error *error)
{
    const bool terminal = isatty(STDERR_FILENO) == 1;
    const int64_t start_ns = clock_now_ns(clock_system());
    struct supervision seen = {
        .terminal = terminal,
        .period_ns = (terminal ? PROGRESS_MS : PROGRESS_LINE_MS) * NS_PER_MS,
        .shown_ns = terminal ? 0 : start_ns,
        .finished = -1,
        .eta_ms = -1,
        .changed_ns = start_ns,
    };
    return pools_wait(pools, store, suite_id, look_at, &seen, error);
}

/* Device that workers get: the CPU unless a job was made for a device; "auto" may not change its
 * mind. */
static const char *device_of(const struct run_options *options, const struct submission *submission)
{
    const char *given = options->suite.device;
    for (uint32_t i = 0; i < submission->kind_count; i++) {
        if (strcmp(submission->kinds[i].backend, "cpu") != 0) {
            return strcmp(given, "auto") == 0 ? "cuda:0" : given;
        }
    }
    return "cpu";
}

static enum status run_jobs(const struct run_options *options, struct store *store,
                            const struct submission *submission, const struct logger *logger,
                            struct error *error)
{
    const char *world = options->suite.world;
    const struct pool_config config = {
        .store_url = cli_store_url(options->store_url),
        .models = options->suite.models,
        .world = world_spec_is(world) || golden_spec_is(world) ? world : NULL,
        .audit_world = options->suite.audit_world,
        .device = device_of(options, submission),
        .worker_count = (uint32_t)options->workers,
        .slot_count = (uint32_t)options->slots,
        .planner_deadline_ms = options->planner_deadline_ms,
        .world_deadline_ms = options->world_deadline_ms,
        .keep_every_ms = options->keep_every_ms,
        .confinement = options->confinement,
        .verbose = options->verbose,
        .overlap = options->overlap,
        .logger = logger,
    };
    struct store_suite_status now;
    enum status status = store->ops->suite_status(store, submission->suite_id, &now, error);
    if (status != STATUS_OK || store_jobs_open(&now) == 0) {
        return status;
    }
    struct pools *pools = calloc(1, sizeof *pools);
    TRY(memory_check(pools, error, "run: out of memory"));
    pools->config = config;
    for (uint32_t i = 0; i < submission->kind_count; i++) {
        pools_want(pools, submission->kinds[i].pool);
    }
    status = supervise(pools, store, submission->suite_id, error);
    pools_stop(pools);
    free(pools);
    return status;
}

/* A world of the user's that workers did not find, so that the error names it, may be another one
 * at each start. */
static void explain_world(const struct run_options *options, const struct job_spec *spec,
                          struct error *error)
{
    const struct world_source_options how = {.confinement = options->confinement};
    struct error why;
    char named[16];
    snprintf(named, sizeof named, "%.12s", spec->model_hash);
    if (world_spec_is(options->suite.world) && strstr(error->text, named) != NULL &&
        world_source_varies(options->suite.world, &how, spec->model_hash, &why)) {
        why.status = error->status;
        *error = why;
    }
}

/* Whoever runs a suite again must not take old results for new ones. */
static void tell_known(const struct submission *submission, const struct summary *summary,
                       int64_t known)
{
    if (known == 0) {
        return;
    }
    text_print(stdout, "%lld of %u jobs were known already and were not run again\n",
               (long long)known, submission->job_count);
    if (summary->total.verdicts[VERDICT_PLANNER_ERROR] > 0) {
        text_print(
            stdout,
            "planner errors are results like others, kept until the planner's files or what it "
            "imports change; --fresh drives everything again\n");
    }
}

/* Tables, failures and what else a person wants to know; `known` jobs had results before. Returns
 * the exit code, `code` unless dead jobs cannot be read. */
static int present_to_people(const struct run_options *options, struct store *store,
                             const struct submission *submission, const struct summary *summary,
                             int64_t known, double wall_s, int code)
{
    struct error error;
    summary_print_planner_errors(summary, stdout);
    summary_print(summary, stdout);
    summary_print_failures(summary, stdout);
    if (summary_print_dead(store, submission->suite_id, summary, stdout, &error) != STATUS_OK &&
        code == 0) {
        code = cli_fail(&error);
    }
    text_print(stdout, "\nsuite %s in %s, %.1f s\n", submission->suite_id,
               cli_store_url(options->store_url), wall_s);
    tell_known(submission, summary, known);
    if (submission->audit_count > 0) {
        text_print(stdout, "%u of %u jobs repeat others on the teacher, as an audit\n",
                   submission->audit_count, submission->job_count);
    }
    if (submission->degraded_count > 0) {
        bool one = submission->degraded_count == 1;
        bool asked = strcmp(options->suite.world, "object") == 0;
        text_print(stdout, "%u scenario%s about perception; %sthe object world answered %s%s\n",
                   submission->degraded_count, one ? " asks" : "s ask",
                   asked ? "" : "without a world model ", one ? "it" : "them",
                   asked ? ", as --world object says" : ", as --allow-degraded says");
    }
    routes_tell(submission);
    golden_doubts_tell(store, summary, NULL);
    if (options->report != NULL && code == 0) {
        text_print(stdout, "report: %s\n", options->report);
    }
    return code;
}

/* A planner that answered nowhere is broken, whatever a gate asks for. */
static bool planner_failed_everywhere(const struct summary *summary)
{
    const int64_t *verdicts = summary->total.verdicts;
    return verdicts[VERDICT_PLANNER_ERROR] > 0 && verdicts[VERDICT_PASS] == 0 &&
           verdicts[VERDICT_FAIL] == 0;
}

static enum status write_markdown(const void *context, const struct export_request *request,
                                  const char *path, struct error *error)
{
    (void)context;
    (void)path;
    return export_markdown(request, error);
}

static enum status write_junit(const void *context, const struct export_request *request,
                               const char *path, struct error *error)
{
    (void)context;
    (void)path;
    return export_junit(request, error);
}

/* The files for a CI system. */
static enum status write_exports(const struct run_options *options, struct store *store,
                                 const char *suite_id, struct error *error)
{
    struct export_request request = {
        .store = store, .store_url = cli_store_url(options->store_url), .suite_id = suite_id};
    if (options->summary != NULL) {
        TRY(export_to_file(&request, options->summary, write_markdown, NULL, error));
    }
    return options->junit != NULL
               ? export_to_file(&request, options->junit, write_junit, NULL, error)
               : STATUS_OK;
}

/* Says that main lines were not driven, which nothing else fails on. Returns the exit code. */
static int tell_undriven(const struct summary *summary)
{
    char names[SUMMARY_SEEDS_BYTES];
    char budget[SUMMARY_BUDGET_BYTES];
    int64_t lacking[SUMMARY_LACK_COUNT];
    long long missing = (long long)summary_lacking(summary, lacking);
    if (lacking[SUMMARY_CANCELLED] + lacking[SUMMARY_WAITING] == 0) {
        return 0;
    }
    text_print(stderr, "swerve: %lld main line%s without a result (%.100s)%s%s\n", missing,
               summary_plural(missing), summary_lacking_text(lacking, names),
               summary->status.stopped_by_budget ? ": " : "",
               summary->status.stopped_by_budget ? summary_budget_text(&summary->status, budget)
                                                 : "");
    return status_exit_code(STATUS_MISMATCH);
}

/* Prints or writes everything that the finished suite has to show, of which `known` jobs were done
 * before. Returns the exit code. */
static int present(const struct run_options *options, struct store *store,
                   struct submission *submission, int64_t known, double wall_s)
{
    struct summary summary = {0};
    struct error error;
    if (summary_load(store, submission->suite_id, &summary, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    int code = 0;
    struct careful_answers answers = careful_answers_begin();
    if (options->report != NULL &&
        report_write(store, cli_store_url(options->store_url), submission->suite_id, &summary,
                     &answers.careful, draw_frames, options->report, &error) != STATUS_OK) {
        code = cli_fail(&error);
    }
    careful_answers_end(&answers);
    if (write_exports(options, store, submission->suite_id, &error) != STATUS_OK) {
        code = cli_fail(&error);
    }
    int64_t dead = summary.status.jobs[JOB_DEAD] - summary.status.audits_dead;
    int64_t invalid = summary_invalid_mains(&summary);
    bool all_invalid = invalid > 0 && summary.total.main_total == 0;
    json_t *missed = gate_missed(&options->gate, &summary);
    if (options->json) {
        json_t *json = summary_json(&summary);
        if (json != NULL) {
            json_object_set_new(json, "store", json_string(cli_store_url(options->store_url)));
            json_object_set_new(json, "suite", json_string(submission->suite_id));
            json_object_set_new(json, "wall_s", json_real(wall_s));
            json_object_set_new(json, "known_jobs", json_integer((json_int_t)known));
            routes_put(submission, json);
            golden_doubts_tell(store, &summary, json);
            gate_put(&options->gate, missed, json);
        }
        int json_code = cli_print_json(json);
        code = code != 0 ? code : json_code;
        if (summary_print_dead(store, submission->suite_id, &summary, stderr, &error) !=
                STATUS_OK &&
            code == 0) {
            code = cli_fail(&error);
        }
    } else {
        code = present_to_people(options, store, submission, &summary, known, wall_s, code);
    }
    bool failed_everywhere = planner_failed_everywhere(&summary);
    int64_t planner_errors = summary.total.verdicts[VERDICT_PLANNER_ERROR];
    if (code == 0 && !options->gate.asked) {
        code = tell_undriven(&summary);
    }
    summary_finish(&summary);
    if (all_invalid) {
        text_print(stderr, "swerve: not one of %lld main lines is valid\n", (long long)invalid);
    }
    if (failed_everywhere) {
        text_print(stderr, "swerve: the planner failed in every one of %lld rollouts\n",
                   (long long)planner_errors);
    }
    if (code == 0 && options->gate.asked) {
        code = gate_tell(missed, options->json);
    }
    json_decref(missed);
    if (all_invalid && (code == 0 || code == status_exit_code(STATUS_MISMATCH))) {
        code = status_exit_code(STATUS_BAD_INPUT);
    }
    /* A job without any answer weighs more than a rate among those that have one. */
    if ((dead > 0 || failed_everywhere) &&
        (code == 0 || code == status_exit_code(STATUS_MISMATCH))) {
        code = status_exit_code(STATUS_PLANNER);
    }
    return code;
}

/* ---- the store ---- */

/* The store that is worked on, opened like anybody's, or owned and shown to browsers as well. */
struct run_store {
    struct store *store; /* NULL: not open */
    struct serving dashboard;
};

static bool is_shown(const struct run_options *options)
{
    return options->dashboard.listen != NULL;
}

static enum status open_store(const struct run_options *options, const struct store_config *config,
                              struct run_store *out, struct error *error)
{
    if (!is_shown(options)) {
        return store_open(cli_store_url(options->store_url), config, &out->store, error);
    }
    TRY(serving_start(&options->dashboard, config, &out->dashboard, error));
    out->store = serving_store(&out->dashboard);
    text_print(stderr,
               "dashboard: %s://%s/ (read-only, until the run ends; then: swerve serve "
               "--store %s)\n",
               serving_scheme(&out->dashboard), out->dashboard.place.text,
               cli_store_url(options->store_url));
    return STATUS_OK;
}

static void close_store(const struct run_options *options, struct run_store *opened)
{
    if (!is_shown(options) && opened->store != NULL) {
        opened->store->ops->close(opened->store);
    }
    serving_stop(&opened->dashboard);
}

/* Jobs do not go away with the command that gave up. */
static void tell_left(const struct run_options *options, struct store *store, const char *suite_id)
{
    const char *url = cli_store_url(options->store_url);
    char word[4 * LIMIT_ID_BYTES];
    char place[LIMIT_PATH_BYTES];
    struct store_suite_status now;
    struct error unneeded;
    if (store->ops->suite_status(store, suite_id, &now, &unneeded) == STATUS_OK &&
        store_jobs_open(&now) > 0) {
        text_print(stderr,
                   "swerve: %lld jobs of suite %s stay queued in %s: the same command goes on with "
                   "them, \"swerve cancel %s --store %s\" lets them go\n",
                   (long long)(store_jobs_open(&now)), suite_id, url,
                   text_shell_word(suite_id, word, sizeof word),
                   text_shell_word(url, place, sizeof place));
    }
}

/* Puts the suite into the store, and says what it will cost where that is limited. */
static enum status send(const struct run_options *options, struct store *store,
                        struct submission *submission, struct error *error)
{
    int64_t forecast_uusd = -1;
    submission->budget_uusd = options->budget_uusd;
    TRY(submission_send(submission, store, (uint32_t)options->suite.weight, error));
    return budget_tell(store, submission, options->workers * options->slots, &forecast_uusd, error);
}

static int run(const struct run_options *options, const char *path)
{
    const struct clock *clock = clock_system();
    int64_t start_ns = clock_now_ns(clock);
    struct error error;
    struct suite *suite = NULL;
    struct submission submission = {0};
    enum status status = suite_options_build(&options->suite, path, &suite, &submission, &error);
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    const struct logger logger = {STDERR_FILENO, options->verbose ? LOG_INFO : LOG_ERROR,
                                  "swerve run"};
    const struct store_config store_config = {.logger = &logger};
    struct run_store opened = {.store = NULL};
    int code;
    /* Before hours of driving, not after. */
    const char *const files[] = {options->report, options->summary, options->junit};
    for (size_t i = 0; i < COUNT_OF(files) && status == STATUS_OK; i++) {
        status = files[i] != NULL ? report_check(files[i], &error) : STATUS_OK;
    }
    if (status == STATUS_OK && is_shown(options)) {
        status = serving_prepare(&options->dashboard, &logger, &opened.dashboard, &error);
    }
    THEN(status, try_planners(&submission, options->confinement, &error));
    struct kept_list kept = {0};
    if (options->keep_planner) {
        THEN(status, kept_pack(&submission, options->confinement, &kept, &error));
    }
    THEN(status, open_store(options, &store_config, &opened, &error));
    struct store *store = opened.store;
    THEN(status, pool_check_rights(store, &error));
    if (options->keep_planner) {
        THEN(status, kept_ask(store, &error));
    }
    THEN(status, send(options, store, &submission, &error));
    bool sent = status == STATUS_OK;
    THEN(status, label_options_send(&options->labels, store, submission.suite_id, &error));
    THEN(status, kept_send(&kept, store, submission.suite_id, &error));
    kept_finish(&kept);
    struct store_suite_status before = {0};
    THEN(status, store->ops->suite_status(store, submission.suite_id, &before, &error));
    if (before.jobs[JOB_DONE] == 0 && submission.kind_count > 0) {
        THEN(status, cli_tell_other_revision(store, submission.suite_id, submission.kinds, &error));
    }
    THEN(status, run_jobs(options, store, &submission, &logger, &error));
    if (status != STATUS_OK && submission.kind_count > 0) {
        explain_world(options, &submission.kinds[0], &error);
    }
    if (status == STATUS_OK) {
        double wall_s = (double)(clock_now_ns(clock) - start_ns) / (double)NS_PER_S;
        /* Teachers that answered for flagged jobs are no jobs of the submission. */
        int64_t known = before.jobs[JOB_DONE] < submission.job_count ? before.jobs[JOB_DONE]
                                                                     : submission.job_count;
        code = present(options, store, &submission, known, wall_s);
    } else {
        bool stopped = status == STATUS_CANCELLED && atomic_load(interrupted) != 0;
        if (sent && !stopped && status != STATUS_TIMEOUT) { /* a silent store says no more */
            tell_left(options, store, submission.suite_id);
        }
        code = cli_fail(&error);
        code = stopped ? 128 + atomic_load(interrupted) : code; /* as shells report it */
    }
    close_store(options, &opened);
    submission_finish(&submission);
    suite_destroy(suite);
    return code;
}

/* Settles what is served, if anything. */
static enum status check_dashboard(struct run_options *options, struct error *error)
{
    struct serving_options *dashboard = &options->dashboard;
    const char *url = cli_store_url(options->store_url);
    dashboard->store_path = url;
    dashboard->read_only = true;
    dashboard->trust_path = options->suite.trust;
    if (dashboard->listen == NULL &&
        (dashboard->tokens_path != NULL || dashboard->cert_path != NULL ||
         dashboard->key_path != NULL || dashboard->insecure)) {
        return error_set(error, STATUS_USAGE,
                         "--tokens, --tls-cert, --tls-key and --insecure go with --dashboard");
    }
    enum store_url_kind kind;
    TRY(store_url_kind(url, &kind, error));
    if (dashboard->listen != NULL && kind != STORE_URL_PATH) {
        return error_set(error, STATUS_USAGE,
                         "--dashboard: expected --store with the path of a database, found an "
                         "address, whose server has a dashboard of its own");
    }
    return STATUS_OK;
}

static enum status check_options(struct run_options *options, struct error *error)
{
    if (options->workers < 1 || options->workers > POOL_WORKERS_MAX || options->slots < 1 ||
        options->slots > LIMIT_SLOTS) {
        return error_set(error, STATUS_USAGE, "expected --workers 1 to %d and --slots 1 to %d",
                         POOL_WORKERS_MAX, LIMIT_SLOTS);
    }
    options->suite.store_url = options->store_url;
    TRY(label_options_check(&options->labels, error));
    TRY(budget_read(options->budget, &options->budget_uusd, error));
    if (options->keep_planner) {
        TRY(kept_check_store(cli_store_url(options->store_url), error));
    }
    TRY(check_dashboard(options, error));
    return gate_options_read(&options->gate, error);
}

int command_run(int argc, char **argv)
{
    struct run_options options = {
        .suite = SUITE_OPTIONS_DEFAULT,
        .confinement_options = CONFINEMENT_OPTIONS_DEFAULT,
        .workers = sysconf(_SC_NPROCESSORS_ONLN),
        .slots = 16,
        .planner_deadline_ms = 1000,
        .keep_every_ms = KEEP_EVERY_MS,
        .gate = GATE_OPTIONS_DEFAULT,
        .labels = LABEL_OPTIONS_DEFAULT,
    };
    const struct cli_option rows[] = {
        SUITE_OPTION_ROWS(options.suite),
        SUITE_OPTION_ROW_EVALUATION(options.suite),
        CHOICE_OPTION_ROWS(options.suite.choice),
        LABEL_OPTION_ROWS(options.labels),
        {"--store", "PATH", "job store ($SWERVE_STORE, else swerve.db)", .text = &options.store_url,
         .group = "Store and workers"},
        {"--workers", "N", "worker processes (one per core)", .number = &options.workers},
        SLOTS_OPTION_ROWS(options.slots, options.overlap),
        {"--world-deadline-ms", "MS", "longest step of a world's process (10000)",
         .number = &options.world_deadline_ms},
        KEEP_EVERY_OPTION_ROW(options.keep_every_ms),
        BUDGET_OPTION_ROW(options.budget),
        CONFINEMENT_OPTION_ROWS(options.confinement_options),
        {"--planner-deadline-ms", "MS", "longest answer of an exec planner (1000)",
         .number = &options.planner_deadline_ms},
        {"--report", "FILE.html", "write a self-contained report", .text = &options.report,
         .group = "Results"},
        {"--summary", "FILE.md", "write Markdown for a CI page", .text = &options.summary},
        {"--junit", "FILE.xml", "write JUnit for a CI system", .text = &options.junit},
        {"--json", NULL, "print one JSON object", .flag = &options.json},
        {"--keep-planner", NULL, "keep the planner's files with the suite, up to 8 MiB, for replay",
         .flag = &options.keep_planner},
        {"--verbose", NULL, "say what is going on", .flag = &options.verbose},
        GATE_OPTION_ROWS(options.gate),
        {"--dashboard", "[ADDR:PORT]",
         "show the run to a browser while it lasts (127.0.0.1, a free port)",
         .text = &options.dashboard.listen, .implied = "127.0.0.1:0", .group = "Dashboard"},
        {"--tokens", "FILE", "who may look there, see swerve token (STORE.tokens)",
         .text = &options.dashboard.tokens_path},
        {"--tls-cert", "FILE", "the dashboard's certificate chain in PEM",
         .text = &options.dashboard.cert_path},
        {"--tls-key", "FILE", "its private key in PEM", .text = &options.dashboard.key_path},
        {"--insecure", NULL, "allow other machines to look in the clear",
         .flag = &options.dashboard.insecure},
    };
    const struct cli_command command = {
        "run",
        "SUITE [options]",
        "Runs a suite in closed loop and reports on it. Exits 1 when a gate is not met or main\n"
        "lines were cancelled, as by --budget, 6 when a planner cannot start or fails in every\n"
        "rollout, or when jobs are dead (attempts used up, no answer), 130 or 143 when a signal\n"
        "interrupted it: what is finished is kept, and the same command goes on.",
        CLI_ROWS(rows, 1, 1),
    };
    const char *path = NULL;
    struct error error;
    int code = 0;
    CLI_PARSE(&command, argc, argv, &path, NULL);
    if (check_options(&options, &error) != STATUS_OK ||
        confinement_options_settle(&options.confinement_options, cli_store_url(options.store_url),
                                   &options.confinement, &error) != STATUS_OK) {
        gate_options_finish(&options.gate);
        return cli_fail(&error);
    }
    options.suite.confinement = options.confinement;
    interrupted = cli_catch_interrupts();
    code = run(&options, path);
    gate_options_finish(&options.gate);
    return code;
}
