/*
 * Joining two sides, and counting. See compare.h.
 */
#include "report/compare/compare.h"

#include "schemas/scenario_id.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const compare_measure_names[COMPARE_MEASURE_COUNT] = {
    [COMPARE_SCORE] = "score",
    [COMPARE_PROGRESS] = "progress",
    [COMPARE_COMFORT] = "comfort",
    [COMPARE_MIN_DISTANCE] = "min_distance_m",
    [COMPARE_MIN_TTC] = "min_ttc_s",
    [COMPARE_JERK] = "jerk_max_mps3",
    [COMPARE_PDMS] = "pdms",
    [COMPARE_EPDMS] = "epdms",
    [COMPARE_EXTENDED_COMFORT] = "extended_comfort",
    [COMPARE_AT_FAULT] = "at_fault",
    [COMPARE_TWO_STAGE] = "epdms_two_stage",
    [COMPARE_LATACCEL_COST] = "lataccel_cost",
    [COMPARE_JERK_COST] = "jerk_cost",
    [COMPARE_TOTAL_COST] = "total_cost",
};

const char *const compare_loss_names[COMPARE_LOSS_COUNT] = {"invalid", "flagged", "missing",
                                                            "changed"};

enum { ROWS_MAX = 2000, NAMED_MAX = 3 };
/* Share of a mean by which two sides differ without having driven otherwise. */
#define ROUNDING 1e-9

bool compare_drove(const struct compare_rollout *rollout)
{
    return rollout->verdict == VERDICT_PASS || rollout->verdict == VERDICT_FAIL;
}

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

/* ---- joining ---- */

/* Rates of the sides over the main lines of both; a case is what has one scenario's id, and each
 * its own logical scenario, as only the range comes from here. */
struct joining {
    struct compare *out;
    const char *scenario; /* of the case that is open */
    int64_t case_key;
    struct rate rates[2];
};

static enum compare_loss_kind loss_kind(const struct compare_rollout *b, bool changed)
{
    return b == NULL                       ? COMPARE_LOST_MISSING
           : changed                       ? COMPARE_LOST_CHANGED
           : b->verdict == VERDICT_FLAGGED ? COMPARE_LOST_FLAGGED
                                           : COMPARE_LOST_INVALID;
}

static void count_end(struct joining *joining, struct compare_ends *ends, struct rate *rate,
                      const struct compare_rollout *rollout, bool changed)
{
    bool counts = rollout != NULL && !changed && verdict_is_result(rollout->verdict);
    if (changed) {
        ends->changed++;
    } else if (rollout == NULL) {
        ends->missing++;
    } else {
        ends->verdicts[rollout->verdict]++;
    }
    rate_add(rate, joining->case_key, joining->case_key,
             counts ? (double)compare_passed(rollout) : (double)NAN);
}

/* A key that one side has, or both; UINT32_MAX: it has not. */
static void join_one(struct joining *joining, uint32_t at_a, uint32_t at_b)
{
    struct compare *out = joining->out;
    const struct compare_rollout *a = at_a != UINT32_MAX ? &out->a->rollouts[at_a] : NULL;
    const struct compare_rollout *b = at_b != UINT32_MAX ? &out->b->rollouts[at_b] : NULL;
    const struct compare_rollout *any = a != NULL ? a : b;
    bool changed = a != NULL && b != NULL && strcmp(a->scenario_hash, b->scenario_hash) != 0;
    bool results =
        a != NULL && b != NULL && verdict_is_result(a->verdict) && verdict_is_result(b->verdict);
    out->only_a += b == NULL;
    out->only_b += a == NULL;
    out->changed += changed;
    if (results && !changed) {
        out->pairs[out->pair_count++] = (struct compare_pair){at_a, at_b};
    } else {
        out->no_result += a != NULL && b != NULL && !changed;
    }
    if (any->branch_id[0] != '\0') {
        return;
    }
    joining->case_key +=
        joining->scenario == NULL || strcmp(joining->scenario, any->scenario_id) != 0;
    joining->scenario = any->scenario_id;
    count_end(joining, &out->ends_a, &joining->rates[0], a, changed);
    count_end(joining, &out->ends_b, &joining->rates[1], b, changed);
    if (a != NULL && compare_passed(a) && (!results || changed)) {
        enum compare_loss_kind kind = loss_kind(b, changed);
        out->lost[kind]++;
        out->losses[out->loss_count++] = (struct compare_loss){at_a, at_b, kind};
    }
}

static void join(struct compare *out)
{
    const struct compare_side *a = out->a;
    const struct compare_side *b = out->b;
    struct joining joining = {.out = out};
    uint32_t i = 0;
    uint32_t k = 0;
    while (i < a->count || k < b->count) {
        int order = i == a->count   ? 1
                    : k == b->count ? -1
                                    : compare_rollout_order(&a->rollouts[i], &b->rollouts[k]);
        join_one(&joining, order <= 0 ? i : UINT32_MAX, order >= 0 ? k : UINT32_MAX);
        i += order <= 0;
        k += order >= 0;
    }
    out->ends_a.rate = rate_estimate(&joining.rates[0]);
    out->ends_b.rate = rate_estimate(&joining.rates[1]);
}

/* ---- clusters ---- */

/* Cases and logical scenarios of the main lines, numbered from 1 in the order of the pairs. */
struct numbering {
    int64_t logical;
    int64_t cases;
    const struct compare_rollout *last;
};

/* Scenario ids of one logical scenario need not follow each other in the order of the key ("a/x=1",
 * "a-b", "a/x=2"), so pairs are numbered by looking all earlier ones up. */
struct names {
    uint32_t count;
    const char **ids; /* first id of every logical scenario; owned */
};

static int64_t logical_key(struct names *names, const char *id)
{
    for (uint32_t i = names->count; i-- > 0;) {
        if (scenario_id_compare_logical(names->ids[i], id) == 0) {
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
    row->changed = changed_clusters(samples->net, clusters);
    row->p_least = paired_least_p(row->changed);
    if (row->p >= PAIRED_FINDING_P) {
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
    case COMPARE_EXTENDED_COMFORT:
    case COMPARE_AT_FAULT:
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
            const struct compare_rollout *of_a = side_a(compare, samples->list[i].pair);
            const struct compare_rollout *of_b = side_b(compare, samples->list[i].pair);
            double x = of_a->measure[measure];
            double y = of_b->measure[measure];
            if (isfinite(x) && isfinite(y) && compare_drove(of_a) && compare_drove(of_b)) {
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
    if (a->count > 0 && b->count > 0 && strcmp(a->rig, b->rig) != 0) {
        return error_set(error, STATUS_CONFLICT,
                         "compare: expected two sides of one rig, found \"%.12s\" and \"%.12s\" "
                         "(\"\": the built-in one): who sees more is another question",
                         a->rig, b->rig);
    }
    size_t most = a->count < b->count ? a->count : b->count;
    compare.pairs = calloc(most + 1, sizeof *compare.pairs);
    compare.flips = calloc(most + 1, sizeof *compare.flips);
    compare.losses = calloc((size_t)a->count + 1, sizeof *compare.losses);
    enum status status = compare.pairs == NULL || compare.flips == NULL || compare.losses == NULL
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
    free(compare->losses);
    free(compare->rows);
    *compare = (struct compare){0};
}

/* ---- in words ---- */

/* Adds to a sentence what fits. */
__attribute__((format(printf, 2, 3))) static void add_words(char out[COMPARE_REGRESSION_BYTES],
                                                            const char *format, ...)
{
    size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + used, COMPARE_REGRESSION_BYTES - used, format, arguments);
    va_end(arguments);
}

/* The first `NAMED_MAX` of `all`, one call each; the last says how many more there are. */
static void add_name(char out[COMPARE_REGRESSION_BYTES], const struct compare_rollout *rollout,
                     int64_t nth, int64_t all)
{
    if (nth < NAMED_MAX) {
        add_words(out, "%s%s (seed %llu)", nth == 0 ? ": " : ", ", rollout->scenario_id,
                  (unsigned long long)rollout->seed);
    } else if (nth == NAMED_MAX) {
        add_words(out, " and %lld more", (long long)(all - nth));
    }
}

static void add_broken(const struct compare *compare, char out[COMPARE_REGRESSION_BYTES])
{
    int64_t all = compare->all.broken;
    add_words(out, "%lld main line%s passed with A and not with B", (long long)all,
              all == 1 ? "" : "s");
    for (int64_t i = 0; i < all; i++) { /* flips begin with these */
        add_name(out, side_a(compare, compare->flips[i]), i, all);
    }
}

static void add_lost(const struct compare *compare, char out[COMPARE_REGRESSION_BYTES])
{
    uint32_t all = compare->loss_count;
    const char *separator = " (";
    add_words(out, "%u main line%s passed with A and %s no result with B", all, all == 1 ? "" : "s",
              all == 1 ? "has" : "have");
    for (int k = 0; k < COMPARE_LOSS_COUNT; k++) {
        if (compare->lost[k] > 0) {
            add_words(out, "%s%lld %s", separator, (long long)compare->lost[k],
                      compare_loss_names[k]);
            separator = ", ";
        }
    }
    add_words(out, ")");
    for (uint32_t i = 0; i < all; i++) {
        add_name(out, &compare->a->rollouts[compare->losses[i].a], i, all);
    }
}

const char *compare_regression(const struct compare *compare, const struct compare_limits *limits,
                               char out[COMPARE_REGRESSION_BYTES])
{
    const struct compare_row *all = &compare->all;
    out[0] = '\0';
    if (isnan(limits->margin) && all->broken > 0) {
        add_broken(compare, out);
    } else if (all->difference.value < -limits->margin) {
        add_words(out,
                  "the rate of passes fell by %.2f percentage points, more than the margin of "
                  "%.2f",
                  -100 * all->difference.value, 100 * limits->margin);
    }
    if (compare->loss_count > limits->allow_invalid) {
        add_words(out, "%s", out[0] != '\0' ? "; " : "");
        add_lost(compare, out);
    }
    return out;
}

const char *compare_words(const struct compare *compare, char out[COMPARE_WORDS_BYTES])
{
    const struct compare_row *all = &compare->all;
    const char *drawn = compare->by_case ? "scenario" : "logical scenario";
    const char *plural = all->changed == 1 ? "" : "s";
    if (all->changed == 0) {
        snprintf(out, COMPARE_WORDS_BYTES, "no %s changed", drawn);
    } else if (all->p < PAIRED_FINDING_P) {
        snprintf(out, COMPARE_WORDS_BYTES, "B passes %s often than A, beyond chance%s",
                 all->difference.value < 0 ? "less" : "more",
                 compare->by_case ? " if each scenario is a draw of its own (too few logical ones)"
                                  : "");
    } else if (all->p_least >= PAIRED_FINDING_P) {
        snprintf(out, COMPARE_WORDS_BYTES,
                 "%u %s%s that changed %s too few to tell whether B passes more or less often: "
                 "were they all for the worse, p would be %.4g; it takes %d",
                 all->changed, drawn, plural, all->changed == 1 ? "is" : "are", all->p_least,
                 PAIRED_CHANGED_MIN);
    } else {
        snprintf(out, COMPARE_WORDS_BYTES,
                 "%u %s%s changed, for the better and for the worse as by chance: no difference "
                 "is shown",
                 all->changed, drawn, plural);
    }
    return out;
}

bool compare_is_rewritten(const struct compare *compare)
{
    const char *planner = compare->a->planner;
    size_t word = strcspn(planner, "+:");
    while (planner[word] == '+') { /* "guarded+seen+exec:.." */
        planner += word + 1;
        word = strcspn(planner, "+:");
    }
    return strcmp(compare->a->planner, compare->b->planner) == 0 &&
           strcmp(compare->a->planner_hash, compare->b->planner_hash) != 0 &&
           (strncmp(planner, "exec:", strlen("exec:")) == 0 ||
            strncmp(planner, "plugin:", strlen("plugin:")) == 0);
}

const char *compare_command(const struct compare *compare, bool of_b, int64_t id,
                            char out[COMPARE_COMMAND_BYTES])
{
    snprintf(out, COMPARE_COMMAND_BYTES, "swerve %s %lld",
             !of_b && compare_is_rewritten(compare) ? "show" : "replay", (long long)id);
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

void compare_note(const struct compare *compare, struct compare_notes *out)
{
    out->count = 0;
    if (compare_revisions(compare, out->text[0])[0] != '\0') {
        out->count++;
    }
    if (compare_is_rewritten(compare)) {
        snprintf(out->text[out->count++], COMPARE_NOTE_BYTES,
                 "A and B are two versions of one planner, whose files have changed since A: "
                 "\"swerve show ID --video FILE.png\" shows what A drove; \"swerve replay\" of A "
                 "drives B's files, or A's where \"run --keep-planner\" kept them");
    }
    if (compare->a->undriven + compare->b->undriven > 0) {
        snprintf(out->text[out->count++], COMPARE_NOTE_BYTES,
                 "%lld jobs of A's suite and %lld of B's are dead, cancelled or wait: what neither "
                 "side has driven is in no figure here",
                 (long long)compare->a->undriven, (long long)compare->b->undriven);
    }
}
