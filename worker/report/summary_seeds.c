/*
 * Which main lines are one sample: drives of one scenario and planner under different seeds that
 * are the same drive.
 *
 * A seed draws a learned world's noise to the last bit, so two seeds hardly ever give equal bits,
 * and yet often the same drive, a millionth of a metre per second apart. As evidence of how the
 * planner drives these are one. So drives are compared by what came of them, within tolerances that
 * stand in worker/METRICS.md. Near equality does not carry over from neighbour to neighbour; it is
 * asked of the first drive of a sample alone, so that a sample never spans more than a tolerance.
 */
#include "worker/report/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct drive_key {
    const struct outcome *outcome;
    uint32_t index;
};

bool summary_is_sample(const struct outcome *outcome)
{
    return outcome->branch_id[0] == '\0' && outcome->verdict != VERDICT_FLAGGED;
}

/* Within a tolerance; infinite or missing on both sides. */
static bool near(double x, double y, double tolerance)
{
    return x == y || fabs(x - y) <= tolerance || (isnan(x) && isnan(y));
}

static int compare_pairs(const struct outcome *x, const struct outcome *y)
{
    int order = strcmp(x->scenario_hash, y->scenario_hash);
    return order != 0 ? order : strcmp(x->planner, y->planner);
}

static int compare_counts(uint32_t x, uint32_t y)
{
    return x < y ? -1 : x > y;
}

/* What must be equal: the verdict, why, and when the drive failed and ended. */
static int compare_ends(const struct outcome *x, const struct outcome *y)
{
    int order = (int)x->verdict - (int)y->verdict;
    if (order == 0) {
        order = compare_counts(x->reasons, y->reasons);
    }
    if (order == 0) {
        order = compare_counts(x->ticks, y->ticks);
    }
    return order != 0 ? order
                      : compare_counts(x->metrics.collision_tick, y->metrics.collision_tick);
}

/* Missing before every number, so that the order is a total one. */
static double sort_distance(const struct outcome *outcome)
{
    return isnan(outcome->metrics.distance_m) ? -INFINITY : outcome->metrics.distance_m;
}

/* By scenario and planner, then by how it ended, then by how far it went, then by index: what may
 * be the same drive lies close together. */
static int compare_drives(const void *a, const void *b)
{
    const struct drive_key *x = a;
    const struct drive_key *y = b;
    int order = compare_pairs(x->outcome, y->outcome);
    if (order == 0) {
        order = compare_ends(x->outcome, y->outcome);
    }
    if (order == 0) {
        double from = sort_distance(x->outcome);
        double to = sort_distance(y->outcome);
        order = from < to ? -1 : from > to;
    }
    return order != 0 ? order : compare_counts(x->index, y->index);
}

static bool same_drive(const struct outcome *x, const struct outcome *y)
{
    const struct metrics *a = &x->metrics;
    const struct metrics *b = &y->metrics;
    const double lengths_m[][2] = {{a->distance_m, b->distance_m},
                                   {a->progress_m, b->progress_m},
                                   {a->min_distance_m, b->min_distance_m}};
    const double speeds_mps[][2] = {{a->impact_speed_mps, b->impact_speed_mps},
                                    {a->speed_max_mps, b->speed_max_mps}};
    const double scores[][2] = {{a->score, b->score},
                                {a->progress, b->progress},
                                {a->speed_limit, b->speed_limit},
                                {a->drivable_area, b->drivable_area},
                                {a->driving_direction, b->driving_direction},
                                {a->comfort, b->comfort}};
    bool same = x->trace_hash[0] != '\0' && y->trace_hash[0] != '\0' && compare_pairs(x, y) == 0 &&
                compare_ends(x, y) == 0 && a->collision_kind == b->collision_kind &&
                a->collision_agent == b->collision_agent &&
                a->collision_count == b->collision_count && a->at_fault == b->at_fault &&
                a->goal_reached == b->goal_reached;
    for (size_t i = 0; same && i < sizeof lengths_m / sizeof *lengths_m; i++) {
        same = near(lengths_m[i][0], lengths_m[i][1], SUMMARY_SAME_M);
    }
    for (size_t i = 0; same && i < sizeof speeds_mps / sizeof *speeds_mps; i++) {
        same = near(speeds_mps[i][0], speeds_mps[i][1], SUMMARY_SAME_MPS);
    }
    for (size_t i = 0; same && i < sizeof scores / sizeof *scores; i++) {
        same = near(scores[i][0], scores[i][1], SUMMARY_SAME_SCORE);
    }
    return same;
}

/* The first drive of the sample that keys[at] belongs to, among keys[first .. at); `at`: none of
 * them. firsts[] says of each whether it is one. */
static uint32_t find_first(const struct drive_key *keys, const bool *firsts, uint32_t first,
                           uint32_t at)
{
    const struct outcome *outcome = keys[at].outcome;
    for (uint32_t k = at; k > first; k--) {
        const struct outcome *other = keys[k - 1].outcome;
        if (compare_ends(other, outcome) != 0 ||
            !near(sort_distance(other), sort_distance(outcome), SUMMARY_SAME_M)) {
            break;
        }
        if (firsts[k - 1] && same_drive(other, outcome)) {
            return k - 1;
        }
    }
    return at;
}

/* keys[first .. end), all main lines of one scenario and planner; same_as[] by outcome. */
static void group_drives(struct summary *summary, const struct drive_key *keys, bool *firsts,
                         uint32_t first, uint32_t end)
{
    int64_t distinct = 0;
    uint32_t *same_as = summary->same_as;
    for (uint32_t k = first; k < end; k++) {
        uint32_t sample = find_first(keys, firsts, first, k);
        firsts[k] = sample == k;
        distinct += firsts[k];
        /* Until all are known: of a sample's first its lowest index, of the others their first. */
        uint32_t *lowest = &same_as[keys[sample].index];
        same_as[keys[k].index] = keys[sample].index;
        *lowest = keys[k].index < *lowest ? keys[k].index : *lowest;
    }
    for (uint32_t k = first; k < end; k++) {
        if (!firsts[k]) {
            same_as[keys[k].index] = same_as[same_as[keys[k].index]];
        }
    }
    if (end - first > 1) {
        summary->seed_groups++;
        summary->seed_still += distinct == 1;
        summary->seed_drives += end - first;
        summary->seed_distinct += distinct;
    }
}

enum status summary_find_repeats(struct summary *summary, struct error *error)
{
    size_t most = summary->outcome_count > 0 ? summary->outcome_count : 1;
    struct drive_key *keys = malloc(most * sizeof *keys);
    bool *firsts = calloc(most, sizeof *firsts);
    summary->same_as = malloc(most * sizeof *summary->same_as);
    if (keys == NULL || firsts == NULL || summary->same_as == NULL) {
        free(keys);
        free(firsts);
        return error_set(error, STATUS_NO_MEMORY, "summary: out of memory");
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        summary->same_as[i] = i;
        if (summary_is_sample(&summary->outcomes[i])) {
            keys[count++] = (struct drive_key){&summary->outcomes[i], i};
        }
    }
    qsort(keys, count, sizeof *keys, compare_drives);
    for (uint32_t first = 0; first < count;) {
        uint32_t end = first + 1;
        while (end < count && compare_pairs(keys[first].outcome, keys[end].outcome) == 0) {
            end++;
        }
        group_drives(summary, keys, firsts, first, end);
        first = end;
    }
    free(keys);
    free(firsts);
    return STATUS_OK;
}

bool summary_is_repeat(const struct summary *summary, uint32_t index)
{
    return summary->same_as != NULL && summary->same_as[index] != index;
}

const char *summary_seeds_text(const struct summary *summary, char out[SUMMARY_SEEDS_BYTES])
{
    long long groups = (long long)summary->seed_groups;
    long long still = (long long)summary->seed_still;
    out[0] = '\0';
    if (summary->seed_distinct == summary->seed_drives) {
        return out;
    }
    int bytes = snprintf(out, SUMMARY_SEEDS_BYTES,
                         "%lld drives of %lld scenario%s under several seeds are %lld sample%s: "
                         "drives that agree to 1 mm, 1 mm/s and 0.001 of a score count once.",
                         (long long)summary->seed_drives, groups, summary_plural(groups),
                         (long long)summary->seed_distinct, summary_plural(summary->seed_distinct));
    size_t left = SUMMARY_SEEDS_BYTES - (size_t)bytes;
    if (still == groups) {
        snprintf(out + bytes, left,
                 " The seeds varied nothing; only variations (grids) give more samples.");
    } else if (still > 0) {
        snprintf(out + bytes, left,
                 " In %lld of these scenarios the seeds varied nothing; only variations (grids) "
                 "give more samples there.",
                 still);
    }
    return out;
}

const char *summary_advice_text(const struct summary *summary, char out[SUMMARY_SEEDS_BYTES])
{
    long long vary = (long long)(summary->seed_groups - summary->seed_still);
    if (vary == 0) {
        snprintf(out, SUMMARY_SEEDS_BYTES, "add variations (grids)");
    } else if (summary->seed_still == 0) {
        snprintf(out, SUMMARY_SEEDS_BYTES, "run more seeds");
    } else {
        snprintf(out, SUMMARY_SEEDS_BYTES,
                 "add variations (grids); more seeds help in %lld of %lld scenarios", vary,
                 (long long)summary->seed_groups);
    }
    return out;
}
