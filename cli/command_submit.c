/*
 * swerve submit: put a suite's jobs into a store, for workers elsewhere. Prints the suite id.
 *
 * swerve retry: jobs of a suite again, chosen by how they ended: those without an answer, with a
 * planner error, or failed for a given reason. They become a suite of their own under keys of their
 * own, driven by the planner as it is now; the first suite stays as it is.
 */
#include "cli/budget/budget.h"
#include "cli/budget/routes.h"
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "cli/kept/kept_pack.h"
#include "cli/label/label_options.h"
#include "cli/suite_options.h"
#include "report/summary.h"
#include "worker/submission/submission.h"

#include "base/array.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Files of the planners, packed and tried on this machine. */
static enum status pack_planners(const struct submission *submission, const char *url,
                                 struct kept_list *kept, struct error *error)
{
    struct confinement_options options = CONFINEMENT_OPTIONS_DEFAULT;
    const struct planner_confinement *confinement = NULL;
    options.level = "off"; /* the copies are in the sandbox all the same */
    TRY(kept_check_store(url, error));
    TRY(confinement_options_settle(&options, url, &confinement, error));
    return kept_pack(submission, confinement, kept, error);
}

/* State of a submission in the store. */
struct sent {
    struct store_suite_status now;
    int64_t known; /* jobs that have their answers */
    int64_t forecast_uusd;
};

static enum status send_all(struct submission *submission, struct store *store, uint32_t weight,
                            struct sent *sent, struct error *error)
{
    TRY(submission_send(submission, store, weight, error));
    TRY(budget_tell(store, submission, 0, &sent->forecast_uusd, error));
    TRY(store->ops->suite_status(store, submission->suite_id, &sent->now, error));
    /* Teachers that answered for flagged jobs are no jobs of the submission. */
    sent->known = sent->now.jobs[JOB_DONE] < submission->job_count ? sent->now.jobs[JOB_DONE]
                                                                   : submission->job_count;
    return STATUS_OK;
}

static int tell_sent(struct submission *submission, const struct sent *sent, bool json)
{
    const int64_t *jobs = sent->now.jobs;
    if (json) {
        json_t *told = json_pack(
            "{s:s, s:i, s:I, s:i, s:I, s:I, s:I, s:i}", "suite", submission->suite_id, "jobs",
            (int)submission->job_count, "rollouts", (json_int_t)submission->rollout_count,
            "memoised", (int)submission->memoised_count, "known", (json_int_t)sent->known, "open",
            (json_int_t)store_jobs_open(&sent->now), "cancelled", (json_int_t)jobs[JOB_CANCELLED],
            "audits", (int)submission->audit_count);
        routes_put(submission, told);
        if (sent->now.budget_uusd > 0) {
            budget_put(sent->now.budget_uusd, sent->forecast_uusd, told);
        }
        return cli_print_json(told);
    }
    text_print(stdout, "%s: %u jobs, %lld rollouts, %lld known already", submission->suite_id,
               submission->job_count, (long long)submission->rollout_count, (long long)sent->known);
    if (sent->now.stopped_by_budget) {
        char budget[SUMMARY_BUDGET_BYTES];
        text_print(stdout, ", none queued: %s, %lld cancelled",
                   summary_budget_text(&sent->now, budget), (long long)jobs[JOB_CANCELLED]);
    }
    text_print(stdout, "\n");
    routes_tell_reasons(submission);
    routes_tell(submission);
    return 0;
}

static int submit(const struct suite_options *options, const struct label_options *labels,
                  const char *url, const char *tenant, int64_t budget_uusd, const char *path,
                  bool keep, bool json)
{
    struct sent sent = {.forecast_uusd = -1};
    struct error error;
    struct suite *suite = NULL;
    struct submission submission = {0};
    if (suite_options_build(options, path, &suite, &submission, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    static const struct logger logger = {STDERR_FILENO, LOG_ERROR, "swerve submit"};
    const struct store_config config = {.logger = &logger};
    struct store *store = NULL;
    struct kept_list kept = {0};
    enum status status =
        keep ? pack_planners(&submission, cli_store_url(url), &kept, &error) : STATUS_OK;
    THEN(status, store_open(cli_store_url(url), &config, &store, &error));
    if (status == STATUS_OK) {
        submission.tenant = tenant;
        submission.budget_uusd = budget_uusd;
        status = keep ? kept_ask(store, &error) : STATUS_OK;
        THEN(status, send_all(&submission, store, (uint32_t)options->weight, &sent, &error));
        THEN(status, label_options_send(labels, store, submission.suite_id, &error));
        THEN(status, kept_send(&kept, store, submission.suite_id, &error));
        if (sent.known == 0 && submission.kind_count > 0) {
            THEN(status,
                 cli_tell_other_revision(store, submission.suite_id, submission.kinds, &error));
        }
        store->ops->close(store);
    }
    kept_finish(&kept);
    int code = status != STATUS_OK ? cli_fail(&error) : tell_sent(&submission, &sent, json);
    submission_finish(&submission);
    suite_destroy(suite);
    return code;
}

int command_submit(int argc, char **argv)
{
    struct suite_options options = SUITE_OPTIONS_DEFAULT;
    options.untried = true;
    struct label_options labels = LABEL_OPTIONS_DEFAULT;
    const char *url = NULL;
    const char *tenant = NULL;
    const char *budget = NULL;
    int64_t budget_uusd = 0;
    bool keep = false;
    bool json = false;
    const struct cli_option rows[] = {
        SUITE_OPTION_ROWS(options),
        SUITE_OPTION_ROW_EVALUATION(options),
        CHOICE_OPTION_ROWS(options.choice),
        LABEL_OPTION_ROWS(labels),
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &url,
         .group = "Store"},
        {"--tenant", "NAME", "whose suite it is (a server takes it from the token)",
         .text = &tenant},
        BUDGET_OPTION_ROW(budget),
        {"--planner-start-ms", "MS",
         "longest start of an exec planner here, which is asked once (20000)",
         .number = &options.start_ms},
        {"--keep-planner", NULL, "keep the planner's files with the suite, up to 8 MiB, for replay",
         .flag = &keep},
        {"--json", NULL, "print one JSON object", .flag = &json},
    };
    const struct cli_command command = {
        "submit",
        "SUITE --store URL [options]",
        "Puts a suite's jobs into a store.",
        CLI_ROWS(rows, 1, 1),
    };
    const char *path = NULL;
    struct error error;
    CLI_PARSE(&command, argc, argv, &path, NULL);
    options.store_url = url;
    enum status status = label_options_check(&labels, &error);
    THEN(status, budget_read(budget, &budget_uusd, &error));
    return status == STATUS_OK
               ? submit(&options, &labels, url, tenant, budget_uusd, path, keep, json)
               : cli_fail(&error);
}

/* ---- retry ---- */

enum { RETRY_PAGE = 100, RETRY_BATCH = 1000 };

/* Selection of jobs; one is driven again as a whole when one of its outcomes is meant. */
struct retry {
    struct suite_options options; /* how planners are started, how often jobs are tried */
    const char *store_url;
    const char *tenant; /* NULL: whoever the token says */
    struct cli_texts verdict_names;
    struct cli_texts reason_names;
    bool dead;
    bool verdicts[VERDICT_COUNT];
    uint32_t reasons; /* 0: any */
    const char *budget_text;
    int64_t budget_uusd; /* 0: none */
    bool json;
    struct store *store;
    char suite[LIMIT_ID_BYTES];
    int64_t *jobs; /* ids, ascending, each once; owned */
    uint32_t job_count;
    struct job_spec *specs; /* [job_count], owned */
};

static enum status read_verdicts(struct retry *retry, struct error *error)
{
    for (uint32_t i = 0; i < retry->verdict_names.count; i++) {
        const char *name = retry->verdict_names.values[i];
        size_t v = cli_name(name, verdict_names, VERDICT_COUNT);
        if (strcmp(name, "dead") == 0) {
            retry->dead = true;
        } else if (v < VERDICT_COUNT) {
            retry->verdicts[v] = true;
        } else {
            return error_set(error, STATUS_USAGE,
                             "--verdict: expected dead, planner_error, flagged, invalid, fail or "
                             "pass, found \"%.64s\"",
                             name);
        }
    }
    return STATUS_OK;
}

static enum status read_reasons(struct retry *retry, struct error *error)
{
    for (uint32_t i = 0; i < retry->reason_names.count; i++) {
        const char *name = retry->reason_names.values[i];
        size_t bit = cli_name(name, reason_names, REASON_BIT_COUNT);
        if (bit == REASON_BIT_COUNT) {
            return error_set(error, STATUS_USAGE,
                             "--reason: expected a reason as `swerve show` names it, found "
                             "\"%.64s\"",
                             name);
        }
        retry->reasons |= UINT32_C(1) << bit;
    }
    if (retry->reasons != 0 && retry->verdict_names.count == 0) {
        retry->verdicts[VERDICT_FAIL] = true;
    } else if (retry->verdict_names.count == 0) {
        retry->dead = true;
        retry->verdicts[VERDICT_PLANNER_ERROR] = true;
    }
    return STATUS_OK;
}

/* ---- which jobs ---- */

static enum status choose(struct retry *retry, int64_t job, struct error *error)
{
    TRY(array_room(&retry->jobs, retry->job_count, sizeof *retry->jobs, error));
    retry->jobs[retry->job_count++] = job;
    return STATUS_OK;
}

static bool is_meant(const struct retry *retry, const struct outcome *outcome)
{
    return outcome->verdict != VERDICT_FAIL || retry->reasons == 0 ||
           (outcome->reasons & retry->reasons) != 0;
}

static enum status choose_by_verdict(struct retry *retry, enum verdict verdict, struct error *error)
{
    struct store_outcome_filter filter = {
        .by_verdict = true, .verdict = verdict, .limit = RETRY_PAGE};
    struct outcome *page = calloc(RETRY_PAGE, sizeof *page);
    uint32_t count = RETRY_PAGE;
    enum status status = STATUS_OK;
    TRY(memory_check(page, error, "retry: out of memory"));
    snprintf(filter.suite_id, sizeof filter.suite_id, "%s", retry->suite);
    while (status == STATUS_OK && count > 0) {
        status = retry->store->ops->outcomes(retry->store, &filter, page, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
            filter.after_id = page[i].id;
            if (is_meant(retry, &page[i])) {
                status = choose(retry, page[i].job_id, error);
            }
        }
    }
    free(page);
    return status;
}

static enum status choose_dead(struct retry *retry, struct error *error)
{
    struct store_job *page = calloc(RETRY_PAGE, sizeof *page);
    uint32_t count = RETRY_PAGE;
    int64_t after = 0;
    enum status status = STATUS_OK;
    TRY(memory_check(page, error, "retry: out of memory"));
    while (status == STATUS_OK && count > 0) {
        status = retry->store->ops->dead_jobs(retry->store, retry->suite, after, page, RETRY_PAGE,
                                              &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
            after = page[i].id;
            status = choose(retry, page[i].id, error);
        }
    }
    free(page);
    return status;
}

static enum status choose_jobs(struct retry *retry, struct error *error)
{
    for (int v = 0; v < VERDICT_COUNT; v++) {
        if (retry->verdicts[v]) {
            TRY(choose_by_verdict(retry, (enum verdict)v, error));
        }
    }
    if (retry->dead) {
        TRY(choose_dead(retry, error));
    }
    return STATUS_OK;
}

static void sort_jobs(struct retry *retry)
{
    uint32_t kept = 0;
    if (retry->job_count > 0) {
        qsort(retry->jobs, retry->job_count, sizeof *retry->jobs, array_compare_int64);
    }
    for (uint32_t i = 0; i < retry->job_count; i++) {
        if (i == 0 || retry->jobs[i] != retry->jobs[i - 1]) {
            retry->jobs[kept++] = retry->jobs[i];
        }
    }
    retry->job_count = kept;
}

/* A teacher's job that answered for a flagged one is made again by that one. */
static enum status take_parents(struct retry *retry, struct error *error)
{
    struct store_job job;
    sort_jobs(retry);
    for (uint32_t i = 0; i < retry->job_count; i++) {
        TRY(retry->store->ops->job(retry->store, retry->jobs[i], &job, error));
        if (job.spec.parent_job_id != 0) {
            retry->jobs[i] = job.spec.parent_job_id;
        }
    }
    sort_jobs(retry);
    return STATUS_OK;
}

/* ---- again ---- */

/* Reads the jobs but those that audit others: they come again with these. */
static enum status read_specs(struct retry *retry, struct error *error)
{
    struct store_job job;
    uint32_t kept = 0;
    retry->specs = calloc(retry->job_count > 0 ? retry->job_count : 1, sizeof *retry->specs);
    TRY(memory_check(retry->specs, error, "retry: out of memory"));
    for (uint32_t i = 0; i < retry->job_count; i++) {
        TRY(retry->store->ops->job(retry->store, retry->jobs[i], &job, error));
        if (job.spec.audit_key[0] == '\0') {
            job.spec.attempts_max = (uint32_t)retry->options.attempts;
            retry->specs[kept++] = job.spec;
        }
    }
    retry->job_count = kept;
    return STATUS_OK;
}

static enum status send(struct retry *retry, struct error *error)
{
    struct store_submit_result *results = calloc(RETRY_BATCH, sizeof *results);
    enum status status = STATUS_OK;
    TRY(memory_check(results, error, "retry: out of memory"));
    for (uint32_t i = 0; status == STATUS_OK && i < retry->job_count; i += RETRY_BATCH) {
        uint32_t left = retry->job_count - i;
        status = retry->store->ops->submit_as(
            retry->store, retry->tenant, retry->specs[0].suite_id, (uint32_t)retry->options.weight,
            SUITE_CLASS_SAME, retry->budget_uusd, retry->specs + i,
            left < RETRY_BATCH ? left : RETRY_BATCH, results, error);
    }
    free(results);
    return status;
}

static int tell(const struct retry *retry)
{
    if (retry->json) {
        return cli_print_json(json_pack("{s:s, s:s, s:i}", "suite", retry->specs[0].suite_id, "of",
                                        retry->suite, "jobs", (int)retry->job_count));
    }
    char url[LIMIT_PATH_BYTES];
    char word[4 * LIMIT_ID_BYTES];
    text_shell_word(cli_store_url(retry->store_url), url, sizeof url);
    text_print(stdout, "%s: %u job%s of %s again\n", retry->specs[0].suite_id, retry->job_count,
               retry->job_count == 1 ? "" : "s", retry->suite);
    for (uint32_t i = 0; i < retry->job_count; i++) {
        if (i == 0 || strcmp(retry->specs[i].pool, retry->specs[i - 1].pool) != 0) {
            text_print(stdout, "  swerve worker --store %s --pool %s --drain\n", url,
                       text_shell_word(retry->specs[i].pool, word, sizeof word));
        }
    }
    text_print(stdout, "  swerve report %s --store %s\n",
               text_shell_word(retry->specs[0].suite_id, word, sizeof word), url);
    return 0;
}

enum { RETRY_SUITES_MAX = 4096 };

/* Twice the same question at the same time would be two drives of each: a retry that has jobs left
 * is in the way of the next. */
static enum status check_none_under_way(struct retry *retry, struct error *error)
{
    char(*ids)[LIMIT_ID_BYTES] = calloc(RETRY_SUITES_MAX, sizeof *ids);
    char start[LIMIT_ID_BYTES];
    uint32_t count = 0;
    TRY(memory_check(ids, error, "retry: out of memory"));
    submission_renewed_prefix(retry->suite, retry->specs, retry->job_count, start);
    enum status status =
        retry->store->ops->suites(retry->store, ids, RETRY_SUITES_MAX, &count, error);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        struct store_suite_status at;
        char word[4 * LIMIT_ID_BYTES];
        if (strncmp(ids[i], start, strlen(start)) != 0) {
            continue;
        }
        status = retry->store->ops->suite_status(retry->store, ids[i], &at, error);
        if (status == STATUS_OK && store_jobs_open(&at) > 0) {
            status =
                error_set(error, STATUS_CONFLICT,
                          "suite %s: %s drives these jobs again and has %lld left; let workers "
                          "finish it, or swerve cancel %s",
                          retry->suite, ids[i], (long long)store_jobs_open(&at),
                          text_shell_word(ids[i], word, sizeof word));
        }
    }
    free(ids);
    return status;
}

/* Jobs that were cancelled have no answer either, and are not retried: who sent them says how they
 * go on. */
static enum status nothing_to_retry(const struct retry *retry,
                                    const struct store_suite_status *known, struct error *error)
{
    char budget[SUMMARY_BUDGET_BYTES];
    long long cancelled = (long long)known->jobs[JOB_CANCELLED];
    if (cancelled == 0) {
        return error_set(error, STATUS_NOT_FOUND, "suite %s: no job ended like that", retry->suite);
    }
    return known->stopped_by_budget
               ? error_set(
                     error, STATUS_NOT_FOUND,
                     "suite %s: no job ended like that; %s, %lld job%s cancelled: the command "
                     "that sent it goes on with a larger --budget",
                     retry->suite, summary_budget_text(known, budget), cancelled,
                     cancelled == 1 ? " was" : "s were")
               : error_set(error, STATUS_NOT_FOUND,
                           "suite %s: no job ended like that; %lld job%s cancelled: the command "
                           "that sent it sends them again, as a suite of their own",
                           retry->suite, cancelled, cancelled == 1 ? " was" : "s were");
}

static enum status run_retry(struct retry *retry, const char *suite, struct error *error)
{
    struct store_suite_status known;
    TRY(cli_suite_id(retry->store, cli_store_url(retry->store_url), suite, retry->suite, error));
    TRY(retry->store->ops->suite_status(retry->store, retry->suite, &known, error));
    TRY(choose_jobs(retry, error));
    TRY(take_parents(retry, error));
    TRY(read_specs(retry, error));
    if (retry->job_count == 0) {
        return nothing_to_retry(retry, &known, error);
    }
    TRY(check_none_under_way(retry, error));
    if (known.budget_uusd > 0 && retry->budget_uusd == 0) {
        char budget[SUMMARY_BUDGET_BYTES];
        text_print(stderr,
                   "swerve: warning: %s has its %s; what is driven again is a suite of its own, "
                   "without a limit unless --budget sets one\n",
                   retry->suite, summary_budget_text(&known, budget));
    }
    TRY(suite_options_renew(&retry->options, retry->suite, retry->specs, retry->job_count, error));
    return send(retry, error);
}

int command_retry(int argc, char **argv)
{
    struct retry retry = {
        .options = SUITE_OPTIONS_DEFAULT,
        .verdict_names = {.max = VERDICT_COUNT + 1},
        .reason_names = {.max = REASON_BIT_COUNT},
    };
    retry.options.untried = true;
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &retry.store_url},
        {"--verdict", "NAME",
         "dead, planner_error, flagged, invalid, fail, pass; repeatable (dead "
         "and planner_error)",
         .texts = &retry.verdict_names},
        {"--reason", "NAME", "of what failed, only this reason; repeatable",
         .texts = &retry.reason_names},
        {"--attempts", "N", "tries per job before it is dead (3)",
         .number = &retry.options.attempts},
        {"--tenant", "NAME", "whose suite it becomes (a server takes it from the token)",
         .text = &retry.tenant},
        BUDGET_OPTION_ROW(retry.budget_text),
        {"--json", NULL, "print one JSON object", .flag = &retry.json},
    };
    const struct cli_command command = {
        "retry",
        "[SUITE] [--verdict NAME] [--reason NAME]",
        "Puts jobs of a suite (the newest) into the store again, as a suite of their own, for the\n"
        "planner as it is now. Without a choice: those that are dead, and planner errors. Jobs "
        "that\n"
        "were cancelled go on with the command that sent them.",
        CLI_ROWS(rows, 0, 1),
    };
    const char *suite = NULL;
    struct error error;
    int code = 0;
    CLI_PARSE(&command, argc, argv, &suite, NULL);
    enum status status = read_verdicts(&retry, &error);
    THEN(status, read_reasons(&retry, &error));
    THEN(status, budget_read(retry.budget_text, &retry.budget_uusd, &error));
    THEN(status, cli_store_open(retry.store_url, &retry.store, &error));
    THEN(status, run_retry(&retry, suite, &error));
    cli_store_close(retry.store);
    code = status == STATUS_OK ? tell(&retry) : cli_fail(&error);
    free(retry.jobs);
    free(retry.specs);
    return code;
}
