/*
 * Counting pairs by slice, and judging the slices. See table.h.
 */
#include "report/trust/table.h"

#include "base/array.h"
#include "schemas/scenario_id.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const table_difference_names[TABLE_DIFFERENCES] = {"min_distance_m", "progress_m",
                                                               "interventions"};

_Static_assert(sizeof((struct pairs_pair *)0)->slice == sizeof(((struct trust_slice *)0)->value),
               "a pair has the kinds of slices that there are");

/* A pair in the order of rates, with the keys of its case (scheduler/rate.h). */
struct placed {
    const struct pairs_pair *pair;
    int64_t logical_key;
    int64_t case_key;
};

/* The pairs of one student and one teacher. */
struct group {
    const struct pairs *pairs;
    const struct trust_policy *policy;
    const struct pairs_pair *first;
    struct placed *placed; /* [pairs->count] */
    uint32_t count;
    struct trust_fact *facts; /* [pairs->count], in the order of audit jobs */
    uint32_t fact_count;
    bool *used; /* scratch of trust_judge, as the next */
    struct trust_seen *seen;
    struct paired_cluster *clusters; /* scratch */
    struct day_pair *day_pairs;      /* scratch, [pairs->count]; NULL: days are not asked for */
    int64_t *day_scratch;
    int64_t before; /* the days that are asked for */
    double *parts;  /* scratch of measures, [pairs->count]; NULL: none is asked for */
};

static int compare_logical(const struct pairs_pair *a, const struct pairs_pair *b)
{
    return scenario_id_compare_logical(a->scenario_id, b->scenario_id);
}

static int compare_placed(const void *a, const void *b)
{
    const struct pairs_pair *x = ((const struct placed *)a)->pair;
    const struct pairs_pair *y = ((const struct placed *)b)->pair;
    int order = compare_logical(x, y);
    order = order != 0 ? order : strcmp(x->scenario_id, y->scenario_id);
    return order != 0 ? order : (x->job_id > y->job_id) - (x->job_id < y->job_id);
}

static bool same_models(const struct pairs_pair *a, const struct pairs_pair *b)
{
    return a->shadow == b->shadow && strcmp(a->student_hash, b->student_hash) == 0 &&
           strcmp(a->student_sampler, b->student_sampler) == 0 &&
           strcmp(a->teacher_hash, b->teacher_hash) == 0 &&
           strcmp(a->teacher_sampler, b->teacher_sampler) == 0;
}

static bool has_slice(const struct trust_slice *slice, const struct pairs_pair *pair)
{
    return trust_slice_has(slice, (const char(*)[LIMIT_ID_BYTES])pair->slice,
                           pair->safety_critical);
}

static bool is_past(const struct pairs *pairs, const struct pairs_pair *pair)
{
    const struct drives_student student =
        drives_student_of(pair->student_hash, pair->student_sampler);
    return decisions_are_past(&pairs->decisions, &student,
                              (const char(*)[LIMIT_ID_BYTES])pair->slice, pair->safety_critical,
                              pair->teacher.outcome_id);
}

/* Places the group's pairs in the order of their cases, and numbers these. */
static void place_group(struct group *group)
{
    group->count = 0;
    for (uint32_t i = 0; i < group->pairs->count; i++) {
        struct pairs_pair *pair = &group->pairs->pairs[i];
        if (same_models(pair, group->first)) {
            group->placed[group->count++] = (struct placed){.pair = pair};
        }
    }
    qsort(group->placed, group->count, sizeof *group->placed, compare_placed);
    for (uint32_t i = 0; i < group->count; i++) {
        struct placed *at = &group->placed[i];
        const struct placed *before = i > 0 ? &group->placed[i - 1] : NULL;
        bool logical = before == NULL || compare_logical(before->pair, at->pair) != 0;
        bool other =
            before == NULL || strcmp(before->pair->scenario_id, at->pair->scenario_id) != 0;
        at->logical_key = (before != NULL ? before->logical_key : 0) + logical;
        at->case_key = (before != NULL ? before->case_key : 0) + other;
    }
}

static int compare_facts(const void *a, const void *b)
{
    int64_t x = ((const struct trust_fact *)a)->outcome_id;
    int64_t y = ((const struct trust_fact *)b)->outcome_id;
    return (x > y) - (x < y);
}

static bool agrees(const struct pairs_pair *pair, enum gate_property property)
{
    const struct pairs_side *a = &pair->student;
    const struct pairs_side *b = &pair->teacher;
    switch (property) {
    case GATE_COLLISION:
        return a->collided == b->collided;
    case GATE_AT_FAULT:
        return a->at_fault == b->at_fault;
    case GATE_INTERVENTION:
        return a->intervened == b->intervened;
    case GATE_COMFORT:
        return a->comfortable == b->comfortable;
    default:
        return a->verdict == b->verdict;
    }
}

static bool has_verdict(const struct pairs_side *side)
{
    return side->outcome_id != 0 &&
           (side->verdict == VERDICT_PASS || side->verdict == VERDICT_FAIL);
}

/* The student answers as the teacher does, or as the object world, which needs no drawing; or, of
 * verdicts, as futures where these arbitrate. */
static bool holds(const struct pairs_pair *pair, enum gate_property property)
{
    struct pairs_pair arbiter = *pair;
    arbiter.teacher = pair->object;
    return agrees(pair, property) || (has_verdict(&pair->object) && agrees(&arbiter, property)) ||
           (property == GATE_VERDICT && forecast_says(pair->arbiter, pair->student.verdict));
}

/* Collects the facts: the main lines with a verdict on both sides, in the order of audit jobs. What
 * the object world confirms is no disagreement of the student's. */
static void fill_group(struct group *group)
{
    uint32_t logical = 0; /* with a fact */
    int64_t last = 0;
    place_group(group);
    group->fact_count = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct pairs_pair *pair = group->placed[i].pair;
        if (pair->branch_id[0] == '\0' && pairs_judged(pair) && !is_past(group->pairs, pair)) {
            logical += group->placed[i].logical_key != last;
            last = group->placed[i].logical_key;
            group->facts[group->fact_count++] = (struct trust_fact){
                .outcome_id = pair->teacher.outcome_id,
                .at_ms = pair->at_ms,
                .logical = logical - 1,
                .slice = (char(*)[LIMIT_ID_BYTES])pair->slice,
                .safety_critical = pair->safety_critical,
                .agrees = holds(pair, GATE_VERDICT),
            };
        }
    }
    qsort(group->facts, group->fact_count, sizeof *group->facts, compare_facts);
}

/* ---- one row ---- */

static bool is_optimistic(const struct pairs_pair *pair)
{
    bool vindicated = (has_verdict(&pair->object) && pair->object.verdict == VERDICT_PASS) ||
                      pair->arbiter == FORECAST_PASS;
    return pair->student.verdict == VERDICT_PASS && pair->teacher.verdict == VERDICT_FAIL &&
           !vindicated;
}

static double difference(const struct pairs_pair *pair, enum table_difference kind)
{
    const struct pairs_side *a = &pair->student;
    const struct pairs_side *b = &pair->teacher;
    switch (kind) {
    case TABLE_DISTANCE:
        return b->min_distance_m - a->min_distance_m; /* of nobody at all no number */
    case TABLE_PROGRESS:
        return b->progress_m - a->progress_m;
    default:
        return b->interventions - a->interventions;
    }
}

static void count_pair(struct table_row *row, const struct pairs_pair *pair)
{
    row->pairs++;
    row->optimistic += is_optimistic(pair);
    row->pessimistic +=
        pair->student.verdict == VERDICT_FAIL && pair->teacher.verdict == VERDICT_PASS;
    if (has_verdict(&pair->object)) {
        row->with_object++;
        row->student_as_object += pair->object.verdict == pair->student.verdict;
        row->teacher_as_object += pair->object.verdict == pair->teacher.verdict;
        row->teacher_wrong += pair->object.verdict != pair->teacher.verdict;
    }
}

static void rate_row(const struct group *group, struct table_row *row)
{
    struct rate rates[GATE_PROPERTIES] = {0};
    for (uint32_t i = 0; i < group->count; i++) {
        const struct placed *at = &group->placed[i];
        if (!has_slice(&row->verdict.slice, at->pair)) {
            continue;
        }
        if (!pairs_judged(at->pair)) {
            row->incomplete++;
            row->student_flagged += at->pair->student.verdict == VERDICT_FLAGGED;
            row->teacher_flagged += at->pair->teacher.verdict == VERDICT_FLAGGED;
            continue;
        }
        count_pair(row, at->pair);
        for (int p = 0; p < GATE_PROPERTIES; p++) {
            bool same = agrees(at->pair, (enum gate_property)p);
            row->agree[p] += same;
            rate_add(&rates[p], at->logical_key, at->case_key, same);
        }
    }
    for (int p = 0; p < GATE_PROPERTIES; p++) {
        row->rate[p] = rate_estimate(&rates[p]);
    }
}

/* ---- for the gate ---- */

/* Draws as they come: the share of a case is the mean of its rollouts, that of a logical scenario
 * the mean of its cases. */
struct draw {
    int64_t logical_key;
    int64_t case_key;
    double sum;   /* over cases that are closed */
    double cases; /* .. so many */
    double agree; /* of the open one .. */
    double pairs; /* .. of so many */
};

static void close_case(struct draw *draw)
{
    draw->sum += draw->pairs > 0 ? draw->agree / draw->pairs : 0.0;
    draw->cases += draw->pairs > 0;
    draw->agree = draw->pairs = 0.0;
}

static void close_draw(struct draw *draw, struct looks *looks, double *parts)
{
    close_case(draw);
    bool any = draw->cases > 0;
    bool one = any && draw->sum >= draw->cases;
    bool zero = any && draw->sum <= 0.0;
    looks->ones += one;
    looks->zeros += zero;
    if (any && !one && !zero) {
        parts[looks->part_count++] = draw->sum / draw->cases;
    }
    *draw = (struct draw){.pairs = 0.0};
}

static void measure_row(const struct group *group, struct table_row *row)
{
    const struct gate_bands bands = trust_gate_bands(group->policy);
    for (int p = 0; p < GATE_PROPERTIES; p++) {
        struct looks looks = {.parts = group->parts};
        struct draw draw = {.pairs = 0.0};
        for (uint32_t i = 0; i < group->count; i++) {
            const struct placed *at = &group->placed[i];
            if (!has_slice(&row->verdict.slice, at->pair) || !pairs_judged(at->pair)) {
                continue;
            }
            if (at->logical_key != draw.logical_key) {
                close_draw(&draw, &looks, group->parts);
            } else if (at->case_key != draw.case_key) {
                close_case(&draw);
            }
            draw.logical_key = at->logical_key;
            draw.case_key = at->case_key;
            draw.agree += holds(at->pair, (enum gate_property)p);
            draw.pairs += 1.0;
        }
        close_draw(&draw, &looks, group->parts);
        double band = gate_band(&bands, (enum gate_property)p, row->verdict.slice.safety_critical);
        row->measure[p] = gate_measure(&looks, band);
    }
}

struct table_judgement table_judge(const struct trust_policy *policy, const struct table_row *row,
                                   double incumbent, uint32_t reported)
{
    struct gate_bands bands = trust_gate_bands(policy);
    struct gate_agreement slice = {
        .safety_critical = row->verdict.slice.safety_critical,
        .optimistic = row->optimistic,
        .incumbent = incumbent,
    };
    struct table_judgement judged = {.decides = trust_decides(policy, &row->verdict.slice),
                                     .incumbent = incumbent};
    memcpy(slice.measure, row->measure, sizeof slice.measure);
    if (!judged.decides) {
        bands.below *= reported;
    }
    judged.result = gate_judge(&bands, &slice, &judged.property);
    judged.band = gate_band(&bands, judged.property, slice.safety_critical);
    judged.needed = looks_needed(row->measure[judged.property].value, judged.band);
    return judged;
}

bool table_refuses(const struct table_judgement *judged)
{
    return judged->decides ? judged->result != GATE_PASSED : judged->result == GATE_BELOW;
}

static void judge_slices(const struct group *group, struct table_row *rows, uint32_t count)
{
    uint32_t reported = 0;
    for (uint32_t i = 0; i < count; i++) {
        reported += !trust_decides(group->policy, &rows[i].verdict.slice);
    }
    for (uint32_t i = 0; i < count; i++) {
        rows[i].judgement = table_judge(group->policy, &rows[i], (double)NAN, reported);
    }
}

/* Clusters are logical scenarios, as in every interval. */
static struct paired_mean mean_of(const struct group *group, const struct trust_slice *slice,
                                  enum table_difference kind)
{
    uint32_t count = 0;
    int64_t last = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct placed *at = &group->placed[i];
        double value = difference(at->pair, kind);
        if (!has_slice(slice, at->pair) || !pairs_judged(at->pair) || !isfinite(value)) {
            continue;
        }
        if (count == 0 || at->logical_key != last) {
            group->clusters[count++] = (struct paired_cluster){0};
            last = at->logical_key;
        }
        group->clusters[count - 1].sum += value;
        group->clusters[count - 1].cases += 1.0;
    }
    return paired_mean(group->clusters, count);
}

/* The pairs of the row by day. */
static enum status add_days(const struct group *group, struct table_row *row, struct error *error)
{
    uint32_t count = 0;
    if (group->day_pairs == NULL) {
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < group->count; i++) {
        const struct placed *at = &group->placed[i];
        if (has_slice(&row->verdict.slice, at->pair) && pairs_judged(at->pair)) {
            group->day_pairs[count++] = (struct day_pair){
                .day = day_of_ms(at->pair->at_ms),
                .logical_key = at->logical_key,
                .case_key = at->case_key,
                .agrees = agrees(at->pair, GATE_VERDICT),
                .optimistic = is_optimistic(at->pair),
            };
        }
    }
    row->days = malloc(sizeof *row->days);
    TRY(memory_check(row->days, error, "agreement: out of memory for days"));
    day_table_make(group->day_pairs, count, group->before, group->day_scratch, row->days);
    return STATUS_OK;
}

/* ---- which rows ---- */

static enum status add_row(struct table *table, const struct group *group, uint32_t begin,
                           const struct trust_slice *slice, struct error *error)
{
    for (uint32_t i = begin; i < table->count; i++) {
        if (trust_slice_equal(&table->rows[i].verdict.slice, slice)) {
            return STATUS_OK;
        }
    }
    bool any = false;
    for (uint32_t i = 0; i < group->count && !any; i++) {
        any = has_slice(slice, group->placed[i].pair);
    }
    if (!any) {
        return STATUS_OK;
    }
    TRY(array_room(&table->rows, table->count, sizeof *table->rows, error));
    struct table_row *row = &table->rows[table->count++];
    *row = (struct table_row){.shadow = group->first->shadow, .verdict = {.slice = *slice}};
    memcpy(row->student.hash, group->first->student_hash, sizeof row->student.hash);
    memcpy(row->student.sampler, group->first->student_sampler, sizeof row->student.sampler);
    memcpy(row->teacher_hash, group->first->teacher_hash, sizeof row->teacher_hash);
    memcpy(row->teacher_sampler, group->first->teacher_sampler, sizeof row->teacher_sampler);
    memcpy(row->answer_sampler, group->first->answer_sampler, sizeof row->answer_sampler);
    return STATUS_OK;
}

static enum status add_rows(struct table *table, const struct group *group, struct error *error)
{
    uint32_t begin = table->count;
    TRY(add_row(table, group, begin, &(struct trust_slice){0}, error));
    TRY(add_row(table, group, begin, &(struct trust_slice){.safety_critical = true}, error));
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        for (uint32_t i = 0; i < group->count; i++) {
            struct trust_slice slice = {.safety_critical = false};
            memcpy(slice.value[kind], group->placed[i].pair->slice[kind], sizeof slice.value[kind]);
            if (slice.value[kind][0] != '\0') {
                TRY(add_row(table, group, begin, &slice, error));
            }
        }
    }
    for (uint32_t i = 0; i < group->policy->crossed_count; i++) {
        TRY(add_row(table, group, begin, &group->policy->crossed[i], error));
    }
    for (uint32_t i = 0; group->parts != NULL && i < group->policy->decides_count; i++) {
        TRY(add_row(table, group, begin, &group->policy->decides[i], error));
    }
    return STATUS_OK;
}

static enum status judge_rows(struct table *table, const struct group *group, uint32_t begin,
                              struct error *error)
{
    uint32_t count = table->count - begin;
    struct trust_verdict *verdicts = calloc(count > 0 ? count : 1, sizeof *verdicts);
    TRY(memory_check(verdicts, error, "agreement: out of memory"));
    for (uint32_t i = 0; i < count; i++) {
        verdicts[i] = table->rows[begin + i].verdict;
    }
    for (uint32_t i = 0; i < group->fact_count; i++) {
        table->thawed += trust_is_thawed(group->policy, &group->facts[i]);
    }
    table->frozen += trust_judge(group->policy, group->facts, group->fact_count, verdicts, count,
                                 group->used, group->seen);
    for (uint32_t i = 0; i < count; i++) {
        table->rows[begin + i].verdict = verdicts[i];
    }
    free(verdicts);
    return STATUS_OK;
}

static enum status add_group(struct table *table, struct group *group, struct error *error)
{
    uint32_t begin = table->count;
    fill_group(group);
    TRY(add_rows(table, group, error));
    for (uint32_t i = begin; i < table->count; i++) {
        struct table_row *row = &table->rows[i];
        rate_row(group, row);
        TRY(add_days(group, row, error));
        if (group->parts != NULL) {
            measure_row(group, row);
        }
        if (!row->shadow) {
            row->flags = drives_flags(&group->pairs->drives, group->policy, &row->student,
                                      &row->verdict.slice);
        }
        table->sounding += row->flags.alarm != TRUST_QUIET;
        for (int kind = 0; kind < TABLE_DIFFERENCES; kind++) {
            row->difference[kind] =
                mean_of(group, &row->verdict.slice, (enum table_difference)kind);
        }
    }
    if (group->parts != NULL) {
        judge_slices(group, &table->rows[begin], table->count - begin);
    }
    return group->first->shadow ? STATUS_OK : judge_rows(table, group, begin, error);
}

/* Whether an earlier pair has the same models: then its group is counted already. */
static bool grouped(const struct pairs *pairs, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        if (same_models(&pairs->pairs[i], &pairs->pairs[index])) {
            return true;
        }
    }
    return false;
}

static void fill_student(const struct drives *drives, const struct trust_policy *policy,
                         uint32_t number, struct table_student *student)
{
    student->student = drives->students[number];
    for (uint32_t i = 0; i < drives->count; i++) {
        student->drives += drives->drives[i].student == number;
        student->flagged += drives->drives[i].student == number && drives->drives[i].flagged;
    }
    for (int kind = 0; kind < SLICE_KIND_COUNT && policy->evaluated_until > 0; kind++) {
        struct drives_drift *drift = &student->drift[kind];
        *drift =
            drives_drift(drives, (enum slice_kind)kind, &student->student, policy->evaluated_until);
        student->drifted |= drift->unseen > 0 || drift->index > TRUST_DRIFT_INDEX;
    }
}

static enum status add_students(struct table *table, const struct pairs *pairs,
                                const struct trust_policy *policy, struct error *error)
{
    uint32_t count = pairs->drives.student_count;
    table->students = calloc((size_t)count + 1, sizeof *table->students);
    TRY(memory_check(table->students, error, "agreement: out of memory"));
    table->student_count = count;
    for (uint32_t i = 0; i < count; i++) {
        fill_student(&pairs->drives, policy, i, &table->students[i]);
    }
    return STATUS_OK;
}

static enum status make_table(const struct pairs *pairs, const struct trust_policy *policy,
                              const int64_t *before, bool judged, struct table *out,
                              struct error *error)
{
    struct table table = {
        .tiers = pairs->tiers, .missing = pairs->missing, .unlike = pairs->unlike};
    size_t room = (size_t)pairs->count + 1;
    struct group group = {
        .pairs = pairs,
        .policy = policy,
        .placed = calloc(room, sizeof *group.placed),
        .facts = calloc(room, sizeof *group.facts),
        .used = calloc(room, sizeof *group.used),
        .seen = calloc(room, sizeof *group.seen),
        .clusters = calloc(room, sizeof *group.clusters),
        .day_pairs = before != NULL ? calloc(room, sizeof *group.day_pairs) : NULL,
        .day_scratch = before != NULL ? calloc(room, sizeof *group.day_scratch) : NULL,
        .before = before != NULL ? *before : 0,
        .parts = judged ? calloc(room, sizeof *group.parts) : NULL,
    };
    bool enough = group.placed != NULL && group.facts != NULL && group.used != NULL &&
                  group.seen != NULL && group.clusters != NULL &&
                  (!judged || group.parts != NULL) &&
                  (before == NULL || (group.day_pairs != NULL && group.day_scratch != NULL));
    enum status status =
        memory_check(enough ? group.placed : NULL, error, "agreement: out of memory");
    for (uint32_t i = 0; status == STATUS_OK && i < pairs->count; i++) {
        if (!grouped(pairs, i)) {
            group.first = &pairs->pairs[i];
            status = add_group(&table, &group, error);
        }
    }
    THEN(status, add_students(&table, pairs, policy, error));
    free(group.placed);
    free(group.facts);
    free(group.used);
    free(group.seen);
    free(group.clusters);
    free(group.day_pairs);
    free(group.day_scratch);
    free(group.parts);
    if (status != STATUS_OK) {
        table_finish(&table);
        return status;
    }
    *out = table;
    return STATUS_OK;
}

enum status table_make(const struct pairs *pairs, const struct trust_policy *policy,
                       struct table *out, struct error *error)
{
    return make_table(pairs, policy, NULL, false, out, error);
}

enum status table_make_by_day(const struct pairs *pairs, const struct trust_policy *policy,
                              int64_t before, struct table *out, struct error *error)
{
    return make_table(pairs, policy, &before, false, out, error);
}

enum status table_make_judged(const struct pairs *pairs, const struct trust_policy *policy,
                              struct table *out, struct error *error)
{
    return make_table(pairs, policy, NULL, true, out, error);
}

void table_finish(struct table *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        free(table->rows[i].days);
    }
    free(table->rows);
    free(table->students);
    table->students = NULL;
    table->student_count = 0;
    table->rows = NULL;
    table->count = 0;
}

enum status table_frozen_slices(const struct table *table, const struct drives_student *student,
                                struct trust_slice **out, uint32_t *count, struct error *error)
{
    struct trust_slice *slices = calloc((size_t)table->count + 1, sizeof *slices);
    uint32_t found = 0;
    TRY(memory_check(slices, error, "agreement: out of memory"));
    for (uint32_t i = 0; i < table->count; i++) {
        const struct table_row *row = &table->rows[i];
        if (row->verdict.frozen && drives_same(&row->student, student)) {
            slices[found++] = row->verdict.slice;
        }
    }
    *out = slices;
    *count = found;
    return STATUS_OK;
}

bool table_drifted(const struct table *table, const struct drives_student *student)
{
    for (uint32_t i = 0; i < table->student_count; i++) {
        if (drives_same(&table->students[i].student, student)) {
            return table->students[i].drifted;
        }
    }
    return false;
}

bool table_same_models(const struct table_row *a, const struct table_row *b)
{
    return a->shadow == b->shadow && drives_same(&a->student, &b->student) &&
           strcmp(a->teacher_hash, b->teacher_hash) == 0 &&
           strcmp(a->teacher_sampler, b->teacher_sampler) == 0;
}
