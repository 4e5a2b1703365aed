/*
 * Scores of the field: composition and two stages. See field.h.
 */
#include "schemas/field/field.h"

#include "base/dmath.h"

#include <math.h>

#define STAGE_VARIANCE_M2 0.1
#define NOTHING 1e-8 /* numpy.isclose(x, 0) */

double field_pdms(const struct field_parts *parts)
{
    double weighted = 5.0 * parts->progress + 5.0 * parts->ttc + 2.0 * parts->history_comfort;
    return parts->no_at_fault_collision * parts->drivable_area * weighted / 12.0;
}

double field_epdms(const struct field_parts *parts)
{
    double product = parts->no_at_fault_collision * parts->drivable_area *
                     parts->driving_direction * parts->traffic_light;
    double weighted = 5.0 * parts->progress + 5.0 * parts->ttc + 2.0 * parts->lane_keeping +
                      2.0 * parts->history_comfort;
    return isnan(parts->extended_comfort)
               ? product * weighted / 14.0
               : product * (weighted + 2.0 * parts->extended_comfort) / 16.0;
}

const char *const field_score_names[FIELD_SCORE_COUNT] = {"pdms", "epdms"};

struct field_parts field_parts_of(const struct metrics *metrics)
{
    return (struct field_parts){
        .no_at_fault_collision = metrics->no_at_fault_collision,
        .drivable_area = metrics->drivable_area,
        .driving_direction = metrics->driving_direction,
        .traffic_light = metrics->traffic_light,
        .progress = metrics->progress,
        .ttc = metrics->ttc,
        .lane_keeping = metrics->lane_keeping,
        .history_comfort = metrics->comfort,
        .extended_comfort = metrics->extended_comfort,
    };
}

static bool is_scored(enum verdict verdict, const struct metrics *metrics)
{
    return (verdict == VERDICT_PASS || verdict == VERDICT_FAIL) && !isfinite(metrics->total_cost);
}

void field_scores_of(enum verdict verdict, const struct metrics *metrics,
                     double scores[FIELD_SCORE_COUNT])
{
    const struct field_parts parts = field_parts_of(metrics);
    bool scored = is_scored(verdict, metrics);
    scores[FIELD_PDMS] = scored ? field_pdms(&parts) : NAN;
    scores[FIELD_EPDMS] = scored ? field_epdms(&parts) : NAN;
}

void field_stage_weights(double end_x_m, double end_y_m, const double *x_m, const double *y_m,
                         uint32_t count, double *weights)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        double x = end_x_m - x_m[i];
        double y = end_y_m - y_m[i];
        weights[i] = dmath_exp(-(x * x + y * y) / (2.0 * STAGE_VARIANCE_M2));
        sum += weights[i];
    }
    bool none = isnan(sum) || sum <= NOTHING;
    for (uint32_t i = 0; i < count; i++) {
        weights[i] = none ? 1.0 / count : weights[i] / sum;
    }
}

double field_two_stage(double first, const double *second, const double *weights, uint32_t count)
{
    double sum = 0.0;
    double total = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        sum += weights[i] * second[i];
        total += weights[i];
    }
    return total > 0.0 ? first * sum / total : NAN;
}

void field_stages_add(struct field_stages *stages, enum verdict verdict,
                      const struct metrics *metrics)
{
    if (stages->count < LIMIT_BRANCHES && is_scored(verdict, metrics) &&
        isfinite(metrics->stage_distance_m) && isfinite(metrics->stage_epdms)) {
        stages->distance_m[stages->count] = metrics->stage_distance_m;
        stages->epdms[stages->count++] = metrics->stage_epdms;
    }
}

double field_stages_score(const struct field_stages *stages, enum verdict verdict,
                          const struct metrics *main_line)
{
    static const double nowhere[LIMIT_BRANCHES] = {0}; /* along the other axis */
    double weights[LIMIT_BRANCHES];
    double first[FIELD_SCORE_COUNT];
    field_scores_of(verdict, main_line, first);
    if (stages->count == 0) {
        return NAN;
    }
    field_stage_weights(0.0, 0.0, stages->distance_m, nowhere, stages->count, weights);
    return field_two_stage(first[FIELD_EPDMS], stages->epdms, weights, stages->count);
}
