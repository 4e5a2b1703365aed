/*
 * Sequential ranks within scenarios, by a tree of counts over the sorted values. See drift.h.
 */
#include "scheduler/drift.h"

#include <math.h>
#include <stdlib.h>

/* A fact in the order of scenarios and values. */
struct placed {
    uint64_t scenario;
    double value;
    uint32_t index;
};

/* Of each fact: where its scenario begins and ends among the placed, and where values equal to its
 * own do. */
struct range {
    uint32_t begin, end;
    uint32_t equal, after;
};

struct ranking {
    struct placed *placed; /* [count]; those that apply, first */
    struct range *ranges;  /* [count], by fact */
    uint32_t *tree;        /* [count + 1], counts of a Fenwick tree over the placed */
    uint32_t count;        /* of the placed */
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a;
    const struct placed *y = b;
    int order = (x->scenario > y->scenario) - (x->scenario < y->scenario);
    order = order != 0 ? order : (x->value > y->value) - (x->value < y->value);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static void place(struct ranking *ranking, const struct drift_fact *facts, uint32_t count)
{
    ranking->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!isnan(facts[i].value)) {
            ranking->placed[ranking->count++] =
                (struct placed){facts[i].scenario, facts[i].value, i};
        }
    }
    qsort(ranking->placed, ranking->count, sizeof *ranking->placed, compare_placed);
    uint32_t begin = 0;
    uint32_t equal = 0;
    for (uint32_t i = 0; i < ranking->count; i++) {
        const struct placed *at = &ranking->placed[i];
        bool scenario = i == 0 || at[-1].scenario != at->scenario;
        begin = scenario ? i : begin;
        equal = scenario || at[-1].value < at->value ? i : equal;
        ranking->ranges[at->index] = (struct range){.begin = begin, .equal = equal};
    }
    struct range next = {.begin = ranking->count, .equal = ranking->count};
    for (uint32_t i = ranking->count; i-- > 0;) {
        struct range *range = &ranking->ranges[ranking->placed[i].index];
        range->end = next.begin == range->begin ? next.end : i + 1;
        range->after = next.equal == range->equal ? next.after : i + 1;
        next = *range;
    }
}

/* Facts that were counted at places below. */
static uint32_t counted_below(const struct ranking *ranking, uint32_t place)
{
    uint32_t sum = 0;
    for (uint32_t i = place; i > 0; i &= i - 1) {
        sum += ranking->tree[i];
    }
    return sum;
}

/* Counts the fact at the first place of its value. */
static void count_fact(struct ranking *ranking, uint32_t place)
{
    for (uint32_t i = place + 1; i <= ranking->count; i += i & -i) {
        ranking->tree[i]++;
    }
}

static double evidence_of(const struct ranking *ranking, const struct range *range)
{
    uint32_t before = counted_below(ranking, range->begin);
    uint32_t worse_from = counted_below(ranking, range->equal);
    uint32_t upto = counted_below(ranking, range->after);
    uint32_t all = counted_below(ranking, range->end) - before;
    double below = worse_from - before;
    double equal = upto - worse_from;
    return all > 0 ? log(2.0 * (below + 0.5 * equal + 0.5) / (all + 1.0)) : (double)NAN;
}

enum status drift_evidence(const struct drift_fact *facts, uint32_t count, double *evidence,
                           struct error *error)
{
    struct ranking ranking = {
        .placed = calloc(count + 1, sizeof *ranking.placed),
        .ranges = calloc(count + 1, sizeof *ranking.ranges),
        .tree = calloc(count + 1, sizeof *ranking.tree),
    };
    bool made = ranking.placed != NULL && ranking.ranges != NULL && ranking.tree != NULL;
    if (made) {
        place(&ranking, facts, count);
        for (uint32_t i = 0; i < count; i++) {
            evidence[i] = (double)NAN;
            if (!isnan(facts[i].value)) {
                evidence[i] = evidence_of(&ranking, &ranking.ranges[i]);
                count_fact(&ranking, ranking.ranges[i].equal);
            }
        }
    }
    free(ranking.placed);
    free(ranking.ranges);
    free(ranking.tree);
    return made ? STATUS_OK
                : error_set(error, STATUS_NO_MEMORY, "drift: out of memory for %u drives", count);
}

void drift_monitor_add(struct drift_monitor *monitor, uint32_t measures, double evidence,
                       int64_t outcome_id, int64_t at_ms)
{
    if (isnan(evidence)) {
        return;
    }
    monitor->drives++;
    monitor->sum = monitor->sum + evidence > 0.0 ? monitor->sum + evidence : 0.0;
    if (!monitor->alarm && monitor->sum >= log(DRIFT_FALSE_ALARM_DRIVES * measures)) {
        monitor->alarm = true;
        monitor->alarm_drives = monitor->drives;
        monitor->alarm_outcome = outcome_id;
        monitor->alarm_at_ms = at_ms;
    }
}
