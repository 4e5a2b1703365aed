/*
 * Joining and counting pairs. See agreement.h.
 */
#include "scheduler/agreement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The job that an outcome is about: its own, or the one that its twin repeats. */
static int64_t subject(const struct outcome *outcome)
{
    return outcome->audit_of != 0 ? outcome->audit_of : outcome->job_id;
}

/* Order by subject, branch, student before twin, id. */
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

uint32_t agreement_join(const struct outcome *outcomes, uint32_t count,
                        const struct outcome **scratch, struct agreement_pair *pairs)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        scratch[i] = &outcomes[i];
    }
    qsort(scratch, count, sizeof *scratch, compare);
    for (uint32_t i = 1; i < count; i++) {
        const struct outcome *a = scratch[i - 1];
        const struct outcome *b = scratch[i];
        if (a->audit_of == 0 && b->audit_of != 0 && a->job_id == b->audit_of &&
            strcmp(a->branch_id, b->branch_id) == 0) {
            pairs[found++] = (struct agreement_pair){.student = a, .teacher = b};
        }
    }
    return found;
}

static bool judged(const struct outcome *outcome)
{
    return outcome->verdict == VERDICT_PASS || outcome->verdict == VERDICT_FAIL;
}

/* Counts one more pair of the present job, which now has `pairs`; `first`: its first one. */
static void count(struct agreement_count *count, bool agrees, bool first, int64_t pairs)
{
    double before = first ? 0.0 : (double)count->last / (double)(pairs - 1);
    count->last = (first ? 0 : count->last) + agrees;
    count->jobs += (double)count->last / (double)pairs - before;
    count->pairs += agrees;
}

void agreement_add(struct agreement *agreement, const struct agreement_pair *pair, int64_t job)
{
    const struct outcome *student = pair->student;
    const struct outcome *teacher = pair->teacher;
    const struct metrics *a = &student->metrics;
    const struct metrics *b = &teacher->metrics;
    if (!judged(student) || !judged(teacher)) {
        agreement->incomplete++;
        return;
    }
    bool first = agreement->jobs == 0 || agreement->last_job != job;
    agreement->pairs++;
    agreement->jobs += first;
    agreement->last_job = job;
    agreement->last_pairs = (first ? 0 : agreement->last_pairs) + 1;
    int64_t pairs = agreement->last_pairs;
    count(&agreement->verdict, student->verdict == teacher->verdict, first, pairs);
    count(&agreement->collision, (a->collision_count > 0) == (b->collision_count > 0), first,
          pairs);
    count(&agreement->at_fault, a->at_fault == b->at_fault, first, pairs);
    count(&agreement->interventions, (a->intervention_count > 0) == (b->intervention_count > 0),
          first, pairs);
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

double agreement_rate(const struct agreement *agreement, const struct agreement_count *count)
{
    return agreement->jobs > 0 ? count->jobs / (double)agreement->jobs : NAN;
}

struct agreement_interval agreement_interval95(const struct agreement *agreement,
                                               const struct agreement_count *count)
{
    return agreement_wilson(count->jobs, (double)agreement->jobs, AGREEMENT_Z95);
}

struct agreement_interval agreement_wilson(double hits, double n, double z)
{
    if (!(n > 0)) {
        return (struct agreement_interval){0.0, 1.0};
    }
    /* A sum of shares may be off its whole number by what rounding left. */
    double p = fmin(fmax(hits / n, 0.0), 1.0);
    double centre = p + z * z / (2.0 * n);
    double half = z * sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n));
    double scale = 1.0 / (1.0 + z * z / n);
    struct agreement_interval interval = {(centre - half) * scale, (centre + half) * scale};
    /* Exact at the ends, where rounding would leave a trace. */
    interval.low = p == 0.0 || interval.low < 0.0 ? 0.0 : interval.low;
    interval.high = p == 1.0 || interval.high > 1.0 ? 1.0 : interval.high;
    return interval;
}
