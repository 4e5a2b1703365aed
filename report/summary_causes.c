/*
 * Causes by which main lines have no result of the planner's: flagged ones that nobody answered;
 * invalid parts of a suite, which are neither passes nor failures because something in them lies
 * beyond what the models hold for, by the check that did not hold; and jobs that are dead,
 * cancelled or not done yet, which have no outcome. Who says how many there are, or names them, has
 * it from here; store/sql/mains.c counts the same for a status. Errors of the planner stand here by
 * its words, so that one cause is told once and not once a scenario.
 */
#include "report/summary.h"

#include "base/array.h"
#include "base/check.h"
#include "base/text.h"

#include <stdio.h>

#include <stdlib.h>
#include <string.h>

/* ---- not driven ---- */

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

bool summary_names(const struct summary *summary, uint32_t index)
{
    const struct kept_outcome *outcome = &summary->outcomes[index];
    return outcome->branch_id[0] == '\0' &&
           (outcome->verdict != VERDICT_FLAGGED || summary_lacks(summary, index));
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

/* ---- invalid ---- */

static int by_count(const void *a, const void *b)
{
    const struct summary_invalid *x = a;
    const struct summary_invalid *y = b;
    return x->rollouts != y->rollouts ? (x->rollouts < y->rollouts ? 1 : -1)
                                      : strcmp(x->check, y->check);
}

uint32_t summary_invalid_checks(const struct summary *summary,
                                struct summary_invalid out[SUMMARY_INVALID_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        uint32_t k = 0;
        if (outcome->verdict != VERDICT_INVALID) {
            continue;
        }
        while (k < count && strcmp(out[k].check, outcome->health_check) != 0) {
            k++;
        }
        if (k ==
            SUMMARY_INVALID_MAX) { /* names that a newer program wrote: the last row has them */
            k--;
        } else if (k == count) {
            out[k] = (struct summary_invalid){.example = i};
            snprintf(out[k].check, sizeof out[k].check, "%s", outcome->health_check);
            count++;
        }
        out[k].rollouts++;
        out[k].mains += outcome->branch_id[0] == '\0';
    }
    if (count > 0) {
        qsort(out, count, sizeof *out, by_count);
    }
    return count;
}

int64_t summary_invalid_mains(const struct summary *summary)
{
    struct summary_invalid checks[SUMMARY_INVALID_MAX];
    uint32_t count = summary_invalid_checks(summary, checks);
    int64_t mains = 0;
    for (uint32_t i = 0; i < count; i++) {
        mains += checks[i].mains;
    }
    return mains;
}

void summary_print_invalid(const struct summary *summary, FILE *stream)
{
    struct summary_invalid checks[SUMMARY_INVALID_MAX];
    uint32_t count = summary_invalid_checks(summary, checks);
    long long mains = (long long)summary_invalid_mains(summary);
    long long rollouts = (long long)summary->total.verdicts[VERDICT_INVALID];
    if (count == 0) {
        return;
    }
    text_print(stream,
               "\ninvalid, neither pass nor fail, in no rate: %lld rollout%s, of them %lld main "
               "line%s\n",
               rollouts, rollouts == 1 ? "" : "s", mains, mains == 1 ? "" : "s");
    for (uint32_t i = 0; i < count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[checks[i].example];
        text_print(stream, "  %-18s %6lld  such as %lld, %s%s%s: %s\n", checks[i].check,
                   (long long)checks[i].rollouts, (long long)outcome->id, outcome->scenario_id,
                   outcome->branch_id[0] != '\0' ? " " : "", outcome->branch_id, outcome->error);
    }
}

json_t *summary_invalid_json(const struct summary *summary)
{
    struct summary_invalid checks[SUMMARY_INVALID_MAX];
    uint32_t count = summary_invalid_checks(summary, checks);
    json_t *json = json_object();
    for (uint32_t i = 0; i < count; i++) {
        json_object_set_new(json, checks[i].check, json_integer((json_int_t)checks[i].rollouts));
    }
    return json;
}

/* ---- errors of the planner ---- */

/* Words of an error without the tick at which it came, which differs from drive to drive. */
static const char *words_of(const char *error)
{
    static const char tick[] = "tick ";
    if (strncmp(error, tick, sizeof tick - 1) != 0) {
        return error;
    }
    const char *at = error + sizeof tick - 1;
    size_t digits = strspn(at, "0123456789");
    return digits > 0 && strncmp(at + digits, ": ", 2) == 0 ? at + digits + 2 : error;
}

bool summary_is_error(const struct summary *summary, uint32_t index)
{
    const struct kept_outcome *outcome = &summary->outcomes[index];
    return outcome->verdict == VERDICT_PLANNER_ERROR && outcome->branch_id[0] == '\0';
}

static int by_mains(const void *a, const void *b)
{
    const struct summary_error *x = a;
    const struct summary_error *y = b;
    if (x->mains != y->mains) {
        return x->mains < y->mains ? 1 : -1;
    }
    return x->example < y->example ? -1 : x->example > y->example;
}

uint32_t summary_errors(const struct summary *summary, struct summary_error out[SUMMARY_ERRORS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const char *words = words_of(summary->outcomes[i].error);
        uint32_t k = 0;
        if (!summary_is_error(summary, i) || summary_is_repeat(summary, i)) {
            continue;
        }
        while (k < count && strcmp(out[k].words, words) != 0) {
            k++;
        }
        if (k == SUMMARY_ERRORS_MAX) { /* of many causes the first ones are told */
            continue;
        }
        if (k == count) {
            out[count++] = (struct summary_error){.words = words, .example = i};
        }
        out[k].mains++;
    }
    if (count > 0) {
        qsort(out, count, sizeof *out, by_mains);
    }
    return count;
}

const struct summary_error *summary_error_of(const struct summary *summary,
                                             const struct summary_error *errors, uint32_t count,
                                             uint32_t index)
{
    const char *words = words_of(summary->outcomes[index].error);
    for (uint32_t k = 0; summary_is_error(summary, index) && k < count; k++) {
        if (strcmp(errors[k].words, words) == 0) {
            return &errors[k];
        }
    }
    return NULL;
}
