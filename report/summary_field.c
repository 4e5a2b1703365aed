/*
 * Figures by which the field compares: collisions per thousand kilometres, nuPlan's closed-loop
 * score and NAVSIM's PDM scores, over the main lines of each tier that have a result.
 *
 * Scenarios are chosen to be hard, so a rate per distance is one of this suite, to compare planners
 * on it; what happens on roads is a question of exposures (docs/risk.md).
 */
#include "base/text.h"
#include "report/summary.h"
#include "schemas/field/field.h"
#include "schemas/json_record.h"

#include <math.h>
#include <string.h>

/* A rate per 1,000 km of less than this is one contact more or less, and nothing else. */
#define RATE_DISTANCE_M 1e4

/* EPDMS in two stages of a main line; outcomes of a job stand together. */
static double two_stage(const struct summary *summary, uint32_t i)
{
    const struct kept_outcome *outcomes = summary->outcomes;
    struct field_stages stages = {.count = 0};
    uint32_t at = i;
    while (at > 0 && outcomes[at - 1].job_id == outcomes[i].job_id) {
        at--;
    }
    while (at < summary->outcome_count && outcomes[at].job_id == outcomes[i].job_id) {
        field_stages_add(&stages, outcomes[at].verdict, &outcomes[at].metrics);
        at++;
    }
    return field_stages_score(&stages, outcomes[i].verdict, &outcomes[i].metrics);
}

static void add(struct summary_field *row, const struct kept_outcome *outcome, double staged)
{
    const struct metrics *metrics = &outcome->metrics;
    double field[FIELD_SCORE_COUNT];
    field_scores_of(outcome->verdict, metrics, field);
    row->drives++;
    if (isfinite(metrics->total_cost)) {
        row->logs++;
        row->lataccel_cost += metrics->lataccel_cost;
        row->jerk_cost += metrics->jerk_cost;
        row->total_cost += metrics->total_cost;
        return;
    }
    row->collisions += metrics->collision_count;
    row->at_fault += metrics->at_fault;
    row->metres += isfinite(metrics->distance_m) ? metrics->distance_m : 0.0;
    if (isfinite(field[FIELD_PDMS]) && isfinite(metrics->score)) {
        row->nuplan += metrics->score;
        row->pdms += field[FIELD_PDMS];
        row->scored++;
    }
    if (isfinite(field[FIELD_EPDMS])) {
        row->epdms += field[FIELD_EPDMS];
        row->extended++;
        if (isfinite(metrics->extended_comfort)) {
            row->extended_comfort += metrics->extended_comfort;
            row->planned++;
        }
        if (isfinite(staged)) {
            row->two_stage += staged;
            row->staged++;
        }
    }
}

void summary_field(const struct summary *summary, const char *planner,
                   struct summary_field rows[TIER_COUNT])
{
    for (int t = 0; t < TIER_COUNT; t++) {
        rows[t] = (struct summary_field){.drives = 0};
    }
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        if (summary_is_sample(outcome) && outcome->verdict != VERDICT_PLANNER_ERROR &&
            strcmp(outcome->planner, planner) == 0) {
            add(&rows[outcome->tier], outcome, two_stage(summary, i));
        }
    }
    for (int t = 0; t < TIER_COUNT; t++) {
        struct summary_field *row = &rows[t];
        row->nuplan = row->scored > 0 ? row->nuplan / (double)row->scored : NAN;
        row->pdms = row->scored > 0 ? row->pdms / (double)row->scored : NAN;
        row->epdms = row->extended > 0 ? row->epdms / (double)row->extended : NAN;
        row->extended_comfort =
            row->planned > 0 ? row->extended_comfort / (double)row->planned : NAN;
        row->two_stage = row->staged > 0 ? row->two_stage / (double)row->staged : NAN;
    }
}

static double per_1000_km(int64_t count, double metres)
{
    return metres > 0.0 ? (double)count / (metres / 1e6) : NAN;
}

static void put_costs(json_t *tier, const struct summary_field *row)
{
    const double logs = (double)row->logs;
    if (row->logs > 0) {
        json_object_set_new(tier, "controls",
                            json_pack("{s:I, s:f, s:f, s:f}", "drives", (json_int_t)row->logs,
                                      "lataccel_cost", row->lataccel_cost / logs, "jerk_cost",
                                      row->jerk_cost / logs, "total_cost", row->total_cost / logs));
    }
}

json_t *summary_field_json(const struct summary *summary)
{
    struct summary_field rows[TIER_COUNT];
    json_t *json = json_object();
    for (uint32_t i = 0; i < summary->total.part_count; i++) {
        const struct summary_part *part = &summary->total.parts[i];
        const struct summary_field *row = &rows[part->tier];
        char name[SUMMARY_PART_BYTES];
        summary_field(summary, part->planner, rows);
        if (row->drives > 0) {
            json_object_set_new(
                json, summary_part_text(&summary->total, part, name),
                json_pack(
                    "{s:I, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:I}", "drives",
                    (json_int_t)row->drives, "km", row->metres / 1e3, "collisions_per_1000_km",
                    json_finite_new(per_1000_km(row->collisions, row->metres)),
                    "at_fault_drives_per_1000_km",
                    json_finite_new(per_1000_km(row->at_fault, row->metres)), "nuplan_score",
                    json_finite_new(row->nuplan), "pdms", json_finite_new(row->pdms), "epdms",
                    json_finite_new(row->epdms), "extended_comfort",
                    json_finite_new(row->extended_comfort), "extended_comfort_drives",
                    (json_int_t)row->planned, "epdms_two_stage", json_finite_new(row->two_stage),
                    "epdms_two_stage_drives", (json_int_t)row->staged));
            put_costs(json_object_get(json, name), row);
        }
    }
    return json;
}

/* `name`: of the part, where there are several planners. */
static void print_costs(const struct summary_field *row, const char *name, FILE *stream)
{
    const double logs = (double)row->logs;
    if (row->logs > 0) {
        text_print(stream,
                   "%s%scontrols challenge: lataccel_cost %.6g, jerk_cost %.6g, total_cost %.6g, "
                   "mean of %lld drive%s\n",
                   name, name[0] != '\0' ? ": " : "", row->lataccel_cost / logs,
                   row->jerk_cost / logs, row->total_cost / logs, (long long)row->logs,
                   summary_plural(row->logs));
    }
}

void summary_print_field(const struct summary *summary, FILE *stream)
{
    struct summary_field rows[TIER_COUNT];
    for (uint32_t i = 0; i < summary->total.part_count; i++) {
        const struct summary_part *part = &summary->total.parts[i];
        const struct summary_field *row = &rows[part->tier];
        char name[SUMMARY_PART_BYTES];
        summary_field(summary, part->planner, rows);
        summary_part_text(&summary->total, part, name);
        print_costs(row, summary->total.planners ? name : "", stream);
        if (row->drives == 0 || !(row->metres > 0.0) || row->scored == 0) {
            continue;
        }
        text_print(stream, "%s: nuPlan score %.3f, PDMS %.3f, ", name, row->nuplan, row->pdms);
        if (row->extended > 0) {
            text_print(stream, "EPDMS %.3f, ", row->epdms);
        }
        if (row->planned > 0) {
            text_print(stream, "extended comfort %.3f (%lld drive%s), ", row->extended_comfort,
                       (long long)row->planned, summary_plural(row->planned));
        }
        if (row->staged > 0) {
            text_print(stream, "EPDMS in two stages %.3f (%lld drive%s), ", row->two_stage,
                       (long long)row->staged, summary_plural(row->staged));
        }
        text_print(stream, "%lld collision%s in %.3g km", (long long)row->collisions,
                   summary_plural(row->collisions), row->metres / 1e3);
        if (row->metres < RATE_DISTANCE_M) {
            text_print(stream, " (too little distance for a rate; %lld drive%s at fault)\n",
                       (long long)row->at_fault, summary_plural(row->at_fault));
        } else {
            text_print(stream,
                       ": %.0f per 1,000 km of these scenarios (%lld drive%s at fault: %.0f)\n",
                       per_1000_km(row->collisions, row->metres), (long long)row->at_fault,
                       summary_plural(row->at_fault), per_1000_km(row->at_fault, row->metres));
        }
    }
}
