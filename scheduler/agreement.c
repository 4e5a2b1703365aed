/*
 * Joining and counting pairs. See agreement.h.
 */
#include "scheduler/agreement.h"

#include "schemas/job_context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The job that an outcome is about: its own, or the one that its audit job repeats. */
static int64_t subject(const struct outcome *outcome)
{
    return outcome->audit_of != 0 ? outcome->audit_of : outcome->job_id;
}

/* Order by subject, branch, student before audit job, id. */
static int compare(const void *left, const void *right)
{
    const struct outcome *a = *(const struct outcome *const *)left;
    const struct outcome *b = *(const struct outcome *const *)right;
    if (subject(a) != subject(b)) {
        return subject(a) < subject(b) ? -1 : 1;
    }
    int branch = strcmp(a->branch_id, b->branch_id);
    if (branch != 0) {
        return branch;
    }
    if ((a->audit_of != 0) != (b->audit_of != 0)) {
        return a->audit_of != 0 ? 1 : -1;
    }
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Rows that are older than the store's own comparison may have been audited by anything. */
static bool same_question(const struct outcome *a, const struct outcome *b)
{
    const struct job_context left = job_context_of_outcome(a);
    const struct job_context right = job_context_of_outcome(b);
    return job_context_differs(&left, &right, JOB_CONTEXT_ASKED) == 0;
}

uint32_t agreement_join(const struct outcome *outcomes, uint32_t count,
                        const struct outcome **scratch, struct agreement_pair *pairs)
{
    uint32_t found = 0;
    uint32_t looked_at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!outcome_is_made(&outcomes[i])) {
            scratch[looked_at++] = &outcomes[i];
        }
    }
    qsort(scratch, looked_at, sizeof *scratch, compare);
    for (uint32_t i = 1; i < looked_at; i++) {
        const struct outcome *a = scratch[i - 1];
        const struct outcome *b = scratch[i];
        bool instead = a->freeze != 0 && !a->in_flight; /* the teacher, repeating itself */
        bool excused = a->in_flight && a->verdict == b->verdict;
        if (!instead && !excused && a->audit_of == 0 && b->audit_of != 0 &&
            a->job_id == b->audit_of && strcmp(a->branch_id, b->branch_id) == 0 &&
            same_question(a, b)) {
            pairs[found++] = (struct agreement_pair){.student = a, .teacher = b};
        }
    }
    return found;
}

static bool judged(const struct outcome *outcome)
{
    return outcome->verdict == VERDICT_PASS || outcome->verdict == VERDICT_FAIL;
}

void agreement_add(struct agreement *agreement, const struct agreement_pair *pair,
                   int64_t logical_key, int64_t case_key)
{
    const struct outcome *student = pair->student;
    const struct outcome *teacher = pair->teacher;
    const struct metrics *a = &student->metrics;
    const struct metrics *b = &teacher->metrics;
    if (!judged(student) || !judged(teacher)) {
        agreement->incomplete++;
        return;
    }
    agreement->pairs++;
    agreement->jobs += agreement->jobs == 0 || agreement->last_job != student->job_id;
    agreement->last_job = student->job_id;
    const struct {
        struct agreement_count *count;
        bool agrees;
    } properties[] = {
        {&agreement->verdict, student->verdict == teacher->verdict},
        {&agreement->collision, (a->collision_count > 0) == (b->collision_count > 0)},
        {&agreement->at_fault, a->at_fault == b->at_fault},
        {&agreement->interventions, (a->intervention_count > 0) == (b->intervention_count > 0)},
    };
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        properties[i].count->pairs += properties[i].agrees;
        rate_add(&properties[i].count->rate, logical_key, case_key, properties[i].agrees);
    }
    agreement->student_only_passes +=
        student->verdict == VERDICT_PASS && teacher->verdict == VERDICT_FAIL;
    agreement->teacher_only_passes +=
        student->verdict == VERDICT_FAIL && teacher->verdict == VERDICT_PASS;
    agreement->intervention_difference_sum +=
        (double)b->intervention_count - (double)a->intervention_count;
    if (isfinite(a->min_distance_m) && isfinite(b->min_distance_m)) {
        agreement->distance_pairs++;
        agreement->distance_difference_sum_m += b->min_distance_m - a->min_distance_m;
        agreement->distance_difference_abs_sum_m += fabs(b->min_distance_m - a->min_distance_m);
    }
    if (isfinite(a->progress_m) && isfinite(b->progress_m)) {
        agreement->progress_difference_abs_sum_m += fabs(b->progress_m - a->progress_m);
    }
}
