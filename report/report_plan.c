/*
 * The plan: outcomes grouped by job, failures and fanouts chosen for cards, branches counted by
 * what they change. Scenarios are read once each for the kinds of their branches; no trace is.
 */
#include "report/report_internal.h"

#include <stdlib.h>
#include <string.h>

static void count_job(struct report *report, struct report_job *job)
{
    struct report_plan *plan = &report->plan;
    const struct outcome *outcomes = report->summary->outcomes;
    uint32_t counted = 0;
    for (uint32_t i = job->first; i < job->first + job->count; i++) {
        if (outcomes[i].branch_id[0] == '\0') {
            job->main = (int32_t)i;
        }
    }
    plan->branches += job->count - (job->main >= 0);
    if (job->main < 0) {
        return;
    }
    enum verdict verdict = outcomes[job->main].verdict;
    job->flagged = !verdict_is_result(verdict);
    job->failure = verdict != VERDICT_PASS && !job->flagged;
    job->repeat = summary_is_repeat(report->summary, (uint32_t)job->main);
    for (uint32_t i = job->first; i < job->first + job->count; i++) {
        if ((int32_t)i != job->main && verdict_is_result(outcomes[i].verdict)) {
            counted++;
            job->changed += outcomes[i].verdict != verdict;
            job->rescues += job->failure && outcomes[i].verdict == VERDICT_PASS;
        }
    }
    plan->fanouts += job->count > 1 && !job->flagged;
    if (!job->flagged) {
        plan->mains++;
        plan->failures += job->failure;
        plan->failures_with_branch += job->failure && counted > 0;
        plan->failures_rescued += job->rescues > 0;
    }
}

static enum status group_jobs(struct report *report, struct error *error)
{
    const struct summary *summary = report->summary;
    struct report_plan *plan = &report->plan;
    size_t most = summary->outcome_count > 0 ? summary->outcome_count : 1;
    plan->jobs = calloc(most, sizeof *plan->jobs);
    TRY(memory_check(plan->jobs, error, "report: out of memory"));
    for (uint32_t i = 0; i < summary->outcome_count;) {
        struct report_job *job = &plan->jobs[plan->job_count++];
        *job = (struct report_job){.first = i, .main = -1};
        while (i < summary->outcome_count &&
               summary->outcomes[i].job_id == summary->outcomes[job->first].job_id) {
            i++;
        }
        job->count = i - job->first;
        count_job(report, job);
    }
    return STATUS_OK;
}

/* Failures in order; their fanouts first, then those whose branches disagree, then the others. */
static void choose_cards(struct report_plan *plan)
{
    uint32_t failures = 0;
    uint32_t fanouts = 0;
    for (uint32_t j = 0; j < plan->job_count; j++) {
        struct report_job *job = &plan->jobs[j];
        job->failure_card = job->failure && !job->repeat && failures < REPORT_FAILURE_CARDS_MAX;
        failures += job->failure_card;
    }
    for (int pass = 0; pass < 3; pass++) {
        for (uint32_t j = 0; j < plan->job_count && fanouts < REPORT_FANOUT_CARDS_MAX; j++) {
            struct report_job *job = &plan->jobs[j];
            int rank = job->failure_card ? 0 : job->changed > 0 ? 1 : 2;
            if (job->count > 1 && !job->flagged && rank == pass) {
                job->fanout_card = true;
                fanouts++;
            }
        }
    }
}

static void count_kinds(struct report *report, struct report_job *job,
                        const struct scenario *scenario)
{
    const struct outcome *outcomes = report->summary->outcomes;
    report->plan.degraded +=
        scenario->question == QUESTION_PERCEPTION && outcomes[job->first].tier < TIER_STUDENT;
    for (uint32_t i = job->first; i < job->first + job->count; i++) {
        const struct branch *branch = report_branch(scenario, outcomes[i].branch_id);
        if (branch == NULL || branch->intervention_count == 0 ||
            !verdict_is_result(outcomes[i].verdict)) {
            continue;
        }
        enum intervention_kind kind = branch->interventions[0].kind;
        struct report_kind *row = &report->plan.kinds[kind];
        bool passed = outcomes[i].verdict == VERDICT_PASS;
        row->branches++;
        row->passed += passed;
        if (job->main >= 0) {
            row->rescued += job->failure && passed;
            row->broke += !job->failure && !passed;
            job->rescue_kinds |= (uint16_t)(job->failure && passed ? 1u << kind : 0u);
        }
    }
}

static enum status read_scenarios(struct report *report, struct error *error)
{
    struct report_plan *plan = &report->plan;
    struct scenario_document *document = NULL;
    const char *loaded = "";
    uint32_t read = 0;
    enum status status = STATUS_OK;
    for (uint32_t j = 0; status == STATUS_OK && j < plan->job_count; j++) {
        struct report_job *job = &plan->jobs[j];
        const char *hash = report->summary->outcomes[job->first].scenario_hash;
        if (strcmp(loaded, hash) != 0) {
            if (read == REPORT_SCENARIOS_MAX) {
                plan->truncated = true;
                break;
            }
            document = NULL;
            loaded = hash;
            read++;
            status = report_drive_scenario(&report->drive, report->store, hash, &document, error);
            if (status == STATUS_NOT_FOUND || status == STATUS_BAD_INPUT) {
                status = STATUS_OK; /* its card says so */
            }
        }
        if (document != NULL) {
            count_kinds(report, job, &document->scenario);
        }
    }
    return status;
}

enum status report_plan_make(struct report *report, struct error *error)
{
    TRY(group_jobs(report, error));
    choose_cards(&report->plan);
    return read_scenarios(report, error);
}

void report_plan_finish(struct report_plan *plan)
{
    free(plan->jobs);
    *plan = (struct report_plan){0};
}

const struct report_job *report_job_of(const struct report *report, uint32_t index)
{
    uint32_t low = 0;
    uint32_t high = report->plan.job_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (report->plan.jobs[middle].first <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &report->plan.jobs[low];
}
