/*
 * Joining two sides, and counting. See compare.h.
 */
#include "report/compare/compare.h"

#include "base/check.h"
#include "schemas/scenario_id.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const compare_measure_names[COMPARE_MEASURE_COUNT] = {
    "score", "progress", "comfort",         "min_distance_m", "min_ttc_s", "jerk_max_mps3",
    "pdms",  "epdms",    "epdms_two_stage", "lataccel_cost",  "jerk_cost", "total_cost",
};

enum { ROWS_MAX = 2000 };
/* Share of a mean by which two sides differ without having driven otherwise. */
#define ROUNDING 1e-9

bool compare_passed(const struct compare_rollout *rollout)
{
    return rollout->verdict == VERDICT_PASS;
}

static const struct compare_rollout *side_a(const struct compare *compare, uint32_t pair)
{
    return &compare->a->rollouts[compare->pairs[pair].a];
}

static const struct compare_rollout *side_b(const struct compare *compare, uint32_t pair)
{
    return &compare->b->rollouts[compare->pairs[pair].b];
}

/* 1: fixed, -1: broken, 0: the same. */
static int change(const struct compare *compare, uint32_t pair)
{
    return (int)compare_passed(side_b(compare, pair)) - (int)compare_passed(side_a(compare, pair));
}

static bool is_main(const struct compare *compare, uint32_t pair)
{
    return side_a(compare, pair)->branch_id[0] == '\0';
}

static void join(struct compare *out)
{
    const struct compare_side *a = out->a;
    const struct compare_side *b = out->b;
    uint32_t i = 0;
    uint32_t k = 0;
    while (i < a->count || k < b->count) {
        int order = i == a->count   ? 1
                    : k == b->count ? -1
                                    : compare_rollout_order(&a->rollouts[i], &b->rollouts[k]);
        if (order < 0) {
            out->only_a++;
            i++;
        } else if (order > 0) {
            out->only_b++;
            k++;
        } else {
            if (strcmp(a->rollouts[i].scenario_hash, b->rollouts[k].scenario_hash) != 0) {
                out->changed++;
            } else if (!verdict_is_result(a->rollouts[i].verdict) ||
                       !verdict_is_result(b->rollouts[k].verdict)) {
                out->no_result++;
            } else {
                out->pairs[out->pair_count++] = (struct compare_pair){i, k};
            }
            i++;
            k++;
        }
    }
}

/* ---- clusters ---- */

/* Cases and logical scenarios of the main lines, numbered from 1 in the order of the pairs. */
struct numbering {
    int64_t logical;
    int64_t cases;
    const struct compare_rollout *last;
};

static bool same_logical(const char *a, const char *b)
{
    size_t bytes = scenario_id_logical_bytes(a);
    return bytes == scenario_id_logical_bytes(b) && memcmp(a, b, bytes) == 0;
}

/* Scenario ids of one logical scenario need not follow each other in the order of the key ("a/x=1",
 * "a-b", "a/x=2"), so pairs are numbered by looking all earlier ones up. */
struct names {
    uint32_t count;
    const char **ids; /* first id of every logical scenario; owned */
};

static int64_t logical_key(struct names *names, const char *id)
{
    for (uint32_t i = names->count; i-- > 0;) {
        if (same_logical(names->ids[i], id)) {
            return (int64_t)i + 1;
        }
    }
    names->ids[names->count++] = id;
    return (int64_t)names->count;
}

/* One main line as the statistics see it. */
struct sample {
    uint32_t pair;
    int64_t logical;
    int64_t case_key;
};

static int by_logical_then_case(const void *a, const void *b)
{
    const struct sample *x = a;
    const struct sample *y = b;
    int order = (x->logical > y->logical) - (x->logical < y->logical);
    if (order == 0) {
        order = (x->case_key > y->case_key) - (x->case_key < y->case_key);
    }
    return order != 0 ? order : (x->pair > y->pair) - (x->pair < y->pair);
}

struct samples {
    uint32_t count;
    struct sample *list;          /* owned; cases of a logical scenario follow one another */
    int32_t *net;                 /* scratch per cluster */
    struct paired_cluster *means; /* likewise */
    struct names names;
};

static void samples_finish(struct samples *samples)
{
    free(samples->list);
    free(samples->net);
    free(samples->means);
    free(samples->names.ids);
}

static enum status samples_make(struct compare *compare, struct samples *out, struct error *error)
{
    size_t count = compare->pair_count > 0 ? compare->pair_count : 1;
    const char *last = "";
    int64_t cases = 0;
    *out = (struct samples){
        .list = calloc(count, sizeof *out->list),
        .net = calloc(count, sizeof *out->net),
        .means = calloc(count, sizeof *out->means),
        .names = {.ids = calloc(count, sizeof *out->names.ids)},
    };
    if (out->list == NULL || out->net == NULL || out->means == NULL || out->names.ids == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "compare: out of memory");
    }
    for (uint32_t i = 0; i < compare->pair_count; i++) {
        const char *id = side_a(compare, i)->scenario_id;
        if (!is_main(compare, i)) {
            continue;
        }
        cases += strcmp(id, last) != 0; /* pairs are in order of the scenario's id */
        last = id;
        out->list[out->count++] = (struct sample){i, logical_key(&out->names, id), cases};
    }
    compare->by_case = out->names.count < COMPARE_LOGICAL_MIN;
    for (uint32_t i = 0; i < out->count && compare->by_case; i++) {
        out->list[i].logical = out->list[i].case_key;
    }
    qsort(out->list, out->count, sizeof *out->list, by_logical_then_case);
    return STATUS_OK;
}

/* ---- rows ---- */

static bool in_row(const struct compare *compare, const struct compare_row *row, int slice,
                   uint32_t pair)
{
    const struct compare_rollout *a = side_a(compare, pair);
    if (slice >= 0) {
        return strcmp(a->slice[slice], row->value) == 0;
    }
    if (strcmp(row->group, "world") == 0) {
        return strcmp(tier_names[a->tier], row->value) == 0;
    }
    return strcmp(row->group, "safety_critical") != 0 || a->safety_critical;
}

static uint32_t changed_clusters(const int32_t *net, uint32_t count)
{
    uint32_t changed = 0;
    for (uint32_t i = 0; i < count; i++) {
        changed += net[i] != 0;
    }
    return changed;
}

/* Counts the main lines of a row; slice -1: by its group. */
static void count_row(const struct compare *compare, const struct samples *samples, int slice,
                      struct compare_row *row)
{
    struct rate a = {0};
    struct rate b = {0};
    struct rate gains = {0};
    struct rate losses = {0};
    uint32_t clusters = 0;
    int64_t cluster_key = 0;
    int64_t case_key = 0;
    int case_net = 0;
    for (uint32_t i = 0; i < samples->count; i++) {
        const struct sample *sample = &samples->list[i];
        if (!in_row(compare, row, slice, sample->pair)) {
            continue;
        }
        int step = change(compare, sample->pair);
        bool passed = compare_passed(side_a(compare, sample->pair));
        row->mains++;
        row->fixed += step > 0;
        row->broken += step < 0;
        rate_add(&a, sample->logical, sample->case_key, passed);
        rate_add(&b, sample->logical, sample->case_key, passed + step);
        rate_add(&gains, sample->logical, sample->case_key, step > 0);
        rate_add(&losses, sample->logical, sample->case_key, step < 0);
        if (sample->logical != cluster_key) {
            samples->net[clusters++] = 0;
        }
        if (sample->case_key != case_key || sample->logical != cluster_key) {
            case_net = 0;
        }
        /* A case counts once, by the sign of what its seeds gave together. */
        int before = (case_net > 0) - (case_net < 0);
        case_net += step;
        samples->net[clusters - 1] += (case_net > 0) - (case_net < 0) - before;
        cluster_key = sample->logical;
        case_key = sample->case_key;
    }
    row->a = rate_estimate(&a);
    row->b = rate_estimate(&b);
    row->difference = rate_difference(&gains, &losses);
    row->p = paired_exact_p(samples->net, clusters);
    row->p_least = paired_least_p(changed_clusters(samples->net, clusters));
    if (row->p >= 0.05) {
        row->difference.low = fmin(row->difference.low, 0);
        row->difference.high = fmax(row->difference.high, 0);
    }
}

static struct compare_row *find_row(struct compare *compare, const char *group, const char *value)
{
    for (uint32_t i = 0; i < compare->row_count; i++) {
        struct compare_row *row = &compare->rows[i];
        if (strcmp(row->group, group) == 0 && strcmp(row->value, value) == 0) {
            return row;
        }
    }
    if (compare->row_count == ROWS_MAX) {
        return NULL;
    }
    struct compare_row *row = &compare->rows[compare->row_count++];
    snprintf(row->group, sizeof row->group, "%s", group);
    snprintf(row->value, sizeof row->value, "%s", value);
    return row;
}

static int by_group_then_value(const void *a, const void *b)
{
    const struct compare_row *x = a;
    const struct compare_row *y = b;
    int order = strcmp(x->group, y->group);
    return order != 0 ? order : strcmp(x->value, y->value);
}

static enum status make_rows(struct compare *compare, const struct samples *samples,
                             struct error *error)
{
    compare->rows = calloc(ROWS_MAX, sizeof *compare->rows);
    double *p = calloc(2 * (size_t)ROWS_MAX, sizeof *p);
    uint32_t *scratch = calloc(ROWS_MAX, sizeof *scratch);
    if (compare->rows == NULL || p == NULL || scratch == NULL) {
        free(p);
        free(scratch);
        return error_set(error, STATUS_NO_MEMORY, "compare: out of memory");
    }
    for (uint32_t i = 0; i < samples->count; i++) {
        const struct compare_rollout *a = side_a(compare, samples->list[i].pair);
        for (int s = 0; s < SLICE_KIND_COUNT; s++) {
            find_row(compare, slice_names[s], a->slice[s]);
        }
        find_row(compare, "world", tier_names[a->tier]);
        if (a->safety_critical) {
            find_row(compare, "safety_critical", "true");
        }
    }
    qsort(compare->rows, compare->row_count, sizeof *compare->rows, by_group_then_value);
    for (uint32_t i = 0; i < compare->row_count; i++) {
        struct compare_row *row = &compare->rows[i];
        int slice = -1;
        for (int s = 0; s < SLICE_KIND_COUNT; s++) {
            slice = strcmp(row->group, slice_names[s]) == 0 ? s : slice;
        }
        count_row(compare, samples, slice, row);
        p[ROWS_MAX + i] = row->p_least;
        p[i] = row->mains == compare->all.mains ? NAN : row->p; /* the whole under another name */
    }
    paired_holm(p, p + ROWS_MAX, compare->row_count, scratch);
    for (uint32_t i = 0; i < compare->row_count; i++) {
        compare->rows[i].p = p[i];
    }
    free(p);
    free(scratch);
    return STATUS_OK;
}

/* ---- measures and flips ---- */

/* The largest difference that there can be, so that no interval of few scenarios goes beyond it. */
static double difference_most(enum compare_measure measure)
{
    switch (measure) {
    case COMPARE_SCORE:
    case COMPARE_PROGRESS:
    case COMPARE_COMFORT:
    case COMPARE_PDMS:
    case COMPARE_EPDMS:
    case COMPARE_TWO_STAGE:
        return 1.0;
    case COMPARE_MIN_TTC:
        return COMPARE_TTC_MOST_S;
    default:
        return INFINITY;
    }
}

static void count_measure(struct compare *compare, const struct samples *samples,
                          enum compare_measure measure)
{
    uint32_t clusters = 0;
    double a_sum = 0;
    double b_sum = 0;
    int64_t cases = 0;
    int64_t cluster_key = 0;
    uint32_t i = 0;
    while (i < samples->count) { /* a case at a time */
        const struct sample *first = &samples->list[i];
        double a = 0;
        double b = 0;
        int64_t drives = 0;
        for (; i < samples->count && samples->list[i].case_key == first->case_key; i++) {
            double x = side_a(compare, samples->list[i].pair)->measure[measure];
            double y = side_b(compare, samples->list[i].pair)->measure[measure];
            if (isfinite(x) && isfinite(y)) {
                a += x;
                b += y;
                drives++;
            }
        }
        if (drives == 0) {
            continue;
        }
        if (first->logical != cluster_key) {
            samples->means[clusters++] = (struct paired_cluster){0};
            cluster_key = first->logical;
        }
        bool same = fabs(b - a) <= ROUNDING * fmax(1, fabs(a));
        samples->means[clusters - 1].sum += same ? 0 : (b - a) / (double)drives;
        samples->means[clusters - 1].cases += 1;
        a_sum += a / (double)drives;
        b_sum += b / (double)drives;
        cases++;
    }
    compare->measures[measure].a = cases > 0 ? a_sum / (double)cases : NAN;
    compare->measures[measure].b = cases > 0 ? b_sum / (double)cases : NAN;
    compare->measures[measure].cases = cases;
    struct paired_mean difference = paired_mean(samples->means, clusters);
    double most = difference_most(measure);
    if (isfinite(difference.low)) {
        difference.low = fmax(difference.low, -most);
        difference.high = fmin(difference.high, most);
    }
    compare->measures[measure].difference = difference;
}

static void list_flips(struct compare *compare)
{
    for (int round = 0; round < 4; round++) { /* broken and fixed main lines, then branches */
        for (uint32_t i = 0; i < compare->pair_count; i++) {
            if (change(compare, i) == (round % 2 == 0 ? -1 : 1) &&
                is_main(compare, i) == (round < 2)) {
                compare->flips[compare->flip_count++] = i;
            }
        }
    }
}

enum status compare_make(const struct compare_side *a, const struct compare_side *b,
                         struct compare *out, struct error *error)
{
    struct compare compare = {.a = a, .b = b, .all = {.group = "all"}};
    struct samples samples = {0};
    size_t most = a->count < b->count ? a->count : b->count;
    compare.pairs = calloc(most + 1, sizeof *compare.pairs);
    compare.flips = calloc(most + 1, sizeof *compare.flips);
    enum status status = compare.pairs == NULL || compare.flips == NULL
                             ? error_set(error, STATUS_NO_MEMORY, "compare: out of memory")
                             : STATUS_OK;
    if (status == STATUS_OK) {
        join(&compare);
        list_flips(&compare);
        status = samples_make(&compare, &samples, error);
    }
    if (status == STATUS_OK) {
        count_row(&compare, &samples, -1, &compare.all);
        status = make_rows(&compare, &samples, error);
    }
    for (int m = 0; status == STATUS_OK && m < COMPARE_MEASURE_COUNT; m++) {
        count_measure(&compare, &samples, (enum compare_measure)m);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < compare.pair_count; i++) {
        if (!is_main(&compare, i)) {
            compare.branch_pairs++;
            compare.branch_fixed += change(&compare, i) > 0;
            compare.branch_broken += change(&compare, i) < 0;
        }
    }
    samples_finish(&samples);
    if (status != STATUS_OK) {
        compare_finish(&compare);
        return status;
    }
    *out = compare;
    return STATUS_OK;
}

void compare_finish(struct compare *compare)
{
    free(compare->pairs);
    free(compare->flips);
    free(compare->rows);
    *compare = (struct compare){0};
}

const char *compare_regression(const struct compare *compare, double margin,
                               char out[COMPARE_REGRESSION_BYTES])
{
    const struct compare_row *all = &compare->all;
    out[0] = '\0';
    if (!isnan(margin)) {
        if (all->difference.value < -margin) {
            snprintf(out, COMPARE_REGRESSION_BYTES,
                     "the rate of passes fell by %.2f percentage points, more than the margin of "
                     "%.2f",
                     -100 * all->difference.value, 100 * margin);
        }
        return out;
    }
    if (all->broken > 0) {
        snprintf(out, COMPARE_REGRESSION_BYTES, "%lld main line%s passed with A and not with B",
                 (long long)all->broken, all->broken == 1 ? "" : "s");
    }
    return out;
}

const char *compare_revisions(const struct compare *compare, char out[COMPARE_REVISIONS_BYTES])
{
    out[0] = '\0';
    if (strcmp(compare->a->revision, compare->b->revision) != 0) {
        snprintf(
            out, COMPARE_REVISIONS_BYTES,
            "A and B were simulated by different revisions (%.12s, %.12s): what differs may be "
            "the simulation's doing and not the planner's; drive both sides with one revision",
            compare->a->revision, compare->b->revision);
    }
    return out;
}
