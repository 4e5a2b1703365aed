/*
 * Main lines of a suite without a result: those that were driven and flagged or found invalid, and
 * those of jobs that are dead, cancelled or not done yet, which have no outcome. Who says how many
 * there are, or names them, has it from here; store/sql/mains.c counts the same for a status.
 */
#include "report/summary.h"

#include "base/array.h"
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct flagged_jobs {
    int64_t *ids; /* malloc'ed */
    size_t count;
};

/* Jobs whose main line was flagged, ascending: dead or not, that outcome is what they count as. */
static enum status find_flagged(const struct summary *summary, struct flagged_jobs *flagged,
                                struct error *error)
{
    flagged->ids = malloc((summary->outcome_count + 1) * sizeof *flagged->ids);
    TRY(memory_check(flagged->ids, error, "summary: out of memory"));
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        if (outcome->branch_id[0] == '\0' && outcome->verdict == VERDICT_FLAGGED) {
            flagged->ids[flagged->count++] = outcome->job_id;
        }
    }
    qsort(flagged->ids, flagged->count, sizeof *flagged->ids, array_compare_int64);
    return STATUS_OK;
}

/* Takes a page of jobs; no audits, and none with a flagged main line. */
static enum status take_undriven(struct summary *summary, const struct store_job *jobs,
                                 uint32_t count, const struct flagged_jobs *flagged,
                                 struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct job_spec *spec = &jobs[i].spec;
        bool shown = bsearch(&jobs[i].id, flagged->ids, flagged->count, sizeof *flagged->ids,
                             array_compare_int64) != NULL;
        if (spec->audit_key[0] != '\0' || spec->makes[0] != '\0' || shown) {
            continue;
        }
        struct summary_undriven undriven = {
            .job_id = jobs[i].id,
            .parent_job_id = spec->parent_job_id,
            .lack = jobs[i].state == JOB_CANCELLED ? SUMMARY_CANCELLED
                    : jobs[i].state == JOB_QUEUED || jobs[i].state == JOB_LEASED
                        ? SUMMARY_WAITING
                        : SUMMARY_NO_ANSWER,
            .tier = spec->tier,
            .seed = spec->seed,
            .scenario_id = spec->scenario_id,
            .scenario_hash = spec->scenario_hash,
            .planner = spec->planner,
            .error = jobs[i].error,
        };
        const char **const texts[] = {&undriven.scenario_id, &undriven.scenario_hash,
                                      &undriven.planner, &undriven.error};
        for (size_t k = 0; k < COUNT_OF(texts); k++) {
            TRY(kept_texts_copy(&summary->texts, texts[k], error));
        }
        TRY(array_room(&summary->undriven, summary->undriven_count, sizeof undriven, error));
        summary->undriven[summary->undriven_count++] = undriven;
    }
    return STATUS_OK;
}

enum status summary_load_undriven(struct store *store, const char *suite_id,
                                  struct summary *summary, struct error *error)
{
    enum { PAGE = 256 };
    static const enum job_state states[] = {JOB_DEAD, JOB_CANCELLED, JOB_LEASED, JOB_QUEUED};
    struct flagged_jobs flagged = {NULL, 0};
    struct store_job *page = calloc(PAGE, sizeof *page);
    enum status status = memory_check(page, error, "summary: out of memory");
    THEN(status, find_flagged(summary, &flagged, error));
    for (size_t k = 0; status == STATUS_OK && k < COUNT_OF(states); k++) {
        int64_t after = 0;
        uint32_t count = summary->status.jobs[states[k]] > 0 ? PAGE : 0;
        while (status == STATUS_OK && count == PAGE) {
            status = store->ops->jobs_in_state(store, suite_id, job_state_names[states[k]], after,
                                               page, PAGE, &count, error);
            THEN(status, take_undriven(summary, page, count, &flagged, error));
            after = count > 0 ? page[count - 1].id : after;
        }
    }
    free(flagged.ids);
    free(page);
    return status;
}

/* ---- counted ---- */

/* Whether the job that was to answer for a flagged one has no outcome, and counts itself. */
static bool is_answer_undriven(const struct summary *summary, int64_t flagged_job)
{
    for (uint32_t i = 0; i < summary->undriven_count; i++) {
        if (summary->undriven[i].parent_job_id == flagged_job) {
            return true;
        }
    }
    return false;
}

bool summary_lacks(const struct summary *summary, uint32_t index)
{
    const struct kept_outcome *outcome = &summary->outcomes[index];
    bool flagged = outcome->verdict == VERDICT_FLAGGED && !summary_is_answered(summary, index) &&
                   !is_answer_undriven(summary, outcome->job_id);
    return outcome->branch_id[0] == '\0' && (flagged || outcome->verdict == VERDICT_INVALID);
}

int64_t summary_lacking(const struct summary *summary, int64_t lacking[SUMMARY_LACK_COUNT])
{
    int64_t counts[SUMMARY_LACK_COUNT] = {0};
    int64_t sum = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        if (summary_lacks(summary, i)) {
            counts[summary->outcomes[i].verdict == VERDICT_FLAGGED ? SUMMARY_FLAGGED
                                                                   : SUMMARY_INVALID]++;
        }
    }
    for (uint32_t i = 0; i < summary->undriven_count; i++) {
        counts[summary->undriven[i].lack]++;
    }
    for (int k = 0; k < SUMMARY_LACK_COUNT; k++) {
        sum += counts[k];
    }
    if (lacking != NULL) {
        memcpy(lacking, counts, sizeof counts);
    }
    return sum;
}

const char *const summary_lack_names[SUMMARY_LACK_COUNT] = {[SUMMARY_FLAGGED] = "flagged",
                                                            [SUMMARY_INVALID] = "invalid",
                                                            [SUMMARY_NO_ANSWER] =
                                                                "without an answer",
                                                            [SUMMARY_CANCELLED] = "cancelled",
                                                            [SUMMARY_WAITING] = "not finished"};

const char *summary_lacking_text(const int64_t lacking[SUMMARY_LACK_COUNT],
                                 char out[SUMMARY_SEEDS_BYTES])
{
    size_t used = 0;
    out[0] = '\0';
    for (int k = 0; k < SUMMARY_LACK_COUNT; k++) {
        if (lacking[k] > 0) {
            used += (size_t)snprintf(out + used, SUMMARY_SEEDS_BYTES - used, "%s%lld %s",
                                     used > 0 ? ", " : "", (long long)lacking[k],
                                     summary_lack_names[k]);
        }
    }
    return out;
}
