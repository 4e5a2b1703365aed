/*
 * Hand-backs. See handback.h.
 */
#include "store/turns/handback.h"

#include <stdlib.h>

void handback_keep_since(struct handback_look *now, const struct handback_look *before,
                         int64_t began_ns)
{
    for (uint32_t i = 0; i < now->count; i++) {
        struct handback_waiting *row = &now->rows[i];
        row->since_ns = began_ns;
        for (uint32_t k = 0; before != NULL && k < before->count; k++) {
            const struct handback_waiting *was = &before->rows[k];
            if (was->tenant == row->tenant && was->of_class == row->of_class &&
                was->since_ns < row->since_ns) {
                row->since_ns = was->since_ns;
            }
        }
    }
}

static bool is_above(const struct handback_waiting *row, const struct handback_job *job)
{
    return row->tenant == job->tenant &&
           suite_class_rank(row->of_class) < suite_class_rank(job->of_class);
}

bool handback_concerns(const struct handback_look *look, const struct handback_job *jobs,
                       uint32_t count)
{
    bool found = false;
    for (uint32_t i = 0; i < look->count && !found; i++) {
        for (uint32_t k = 0; k < count && !found; k++) {
            found = is_above(&look->rows[i], &jobs[k]);
        }
    }
    return found;
}

/* Lower classes first, then what has the least to lose, then what was claimed last. */
static int compare(const void *left, const void *right)
{
    const struct handback_job *a = left;
    const struct handback_job *b = right;
    int ranks = suite_class_rank(b->of_class) - suite_class_rank(a->of_class);
    if (ranks != 0) {
        return ranks;
    }
    if (a->ticks != b->ticks) {
        return a->ticks < b->ticks ? -1 : 1;
    }
    return a->id > b->id ? -1 : a->id < b->id;
}

static bool goes_on(const struct handback_job *job)
{
    bool ends_soon = job->ticks_planned > 0 &&
                     job->ticks_planned - job->ticks < job->ticks_planned / HANDBACK_LAST_PART;
    return job->times >= HANDBACK_TIMES_MAX || ends_soon;
}

/* The row that the job makes way for: of the highest class, and there the oldest suite; NULL: none.
 */
static struct handback_waiting *row_for(struct handback_look *look, const struct handback_job *job,
                                        int64_t now_ns)
{
    struct handback_waiting *best = NULL;
    for (uint32_t i = 0; i < look->count; i++) {
        struct handback_waiting *row = &look->rows[i];
        bool due = row->jobs > 0 && is_above(row, job) && job->claimed_ns < row->since_ns &&
                   now_ns - row->since_ns >= HANDBACK_IDLE_NS;
        int higher = due && best != NULL
                         ? suite_class_rank(best->of_class) - suite_class_rank(row->of_class)
                         : 0;
        if (due && (best == NULL || higher > 0 || (higher == 0 && row->suite < best->suite))) {
            best = row;
        }
    }
    return best;
}

void handback_choose(struct handback_look *look, struct handback_job *jobs, uint32_t count,
                     int64_t now_ns)
{
    qsort(jobs, count, sizeof *jobs, compare);
    for (uint32_t i = 0; i < count; i++) {
        struct handback_waiting *row =
            jobs[i].asked || goes_on(&jobs[i]) ? NULL : row_for(look, &jobs[i], now_ns);
        if (row != NULL) {
            row->jobs--;
            jobs[i].for_suite = row->suite;
        }
    }
}

void handback_owe(struct handback_owed *owed, int64_t pool, int64_t suite)
{
    struct handback_owed *free_row = NULL;
    for (int i = 0; i < HANDBACK_SUITES_MAX; i++) {
        if (owed[i].jobs > 0 && owed[i].pool == pool && owed[i].suite == suite) {
            owed[i].jobs++;
            return;
        }
        free_row = owed[i].jobs == 0 && free_row == NULL ? &owed[i] : free_row;
    }
    if (free_row != NULL) {
        *free_row = (struct handback_owed){pool, suite, 1};
    }
}

struct handback_owed *handback_owed_next(struct handback_owed *owed, int64_t pool,
                                         struct handback_owed *after)
{
    for (struct handback_owed *at = after == NULL ? owed : after + 1;
         at < owed + HANDBACK_SUITES_MAX; at++) {
        if (at->jobs > 0 && at->pool == pool) {
            return at;
        }
    }
    return NULL;
}
