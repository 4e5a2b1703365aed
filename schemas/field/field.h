/*
 * Field: the scores that others publish, from subscores, by their definitions. Pure functions over
 * plain arrays, each checked against the original code on the same arrays
 * (tests/schemas/test_field.c).
 *
 * Sources: [N] NAVSIM v1, Dauner et al., NeurIPS 2024, section 3: PDMS. [E] navsim 2.1.2: EPDMS,
 * pdm_scorer.py, scene_aggregator.py, run_pdm_score.py (two stages, Cao et
 * al., "Pseudo-Simulation for Autonomous Driving", CoRL 2025).
 */
#ifndef SWERVE_SCHEMAS_FIELD_FIELD_H
#define SWERVE_SCHEMAS_FIELD_FIELD_H

#include "schemas/outcome.h"

#include <stdbool.h>
#include <stdint.h>

/* Subscores, 0 to 1. */
struct field_parts {
    double no_at_fault_collision;
    double drivable_area;
    double driving_direction;
    double traffic_light;
    double progress;
    double ttc;
    double lane_keeping;
    double history_comfort;
    double extended_comfort; /* NAN: there is no earlier frame to compare with */
};
enum { FIELD_PARTS = 9 };

/* [N]: collision * area * (5 progress + 5 ttc + 2 comfort) / 12. */
double field_pdms(const struct field_parts *parts);

/* [E]: collision * area * direction * light * (5 progress + 5 ttc + 2 lane keeping + 2 history
 * comfort + 2 extended comfort) / 16; without the last term / 14 where it is NAN. */
double field_epdms(const struct field_parts *parts);

/* Parts of metrics of ours: they stand for the whole drive instead of 4 s, and progress is measured
 * against what was expected of it. */
struct field_parts field_parts_of(const struct metrics *metrics);

/* Both scores of an outcome of ours. NAN where a subscore is, where the verdict is no result or a
 * planner's error, and of logs of the controls challenge. */
enum field_score { FIELD_PDMS = 0, FIELD_EPDMS, FIELD_SCORE_COUNT };
extern const char *const field_score_names[FIELD_SCORE_COUNT];
void field_scores_of(enum verdict verdict, const struct metrics *metrics,
                     double scores[FIELD_SCORE_COUNT]);

/* ---- two stages ---- */

/* [E]: how much follow-up scenes that start at (x, y) count after a first stage that ended at
 * (end_x_m, end_y_m): a Gaussian of their distance with variance 0.1 m2, summing to 1; equal where
 * all are far. */
void field_stage_weights(double end_x_m, double end_y_m, const double *x_m, const double *y_m,
                         uint32_t count, double *weights);

/* [E]: the first stage's score times the weighted mean of the second's. */
double field_two_stage(double first, const double *second, const double *weights, uint32_t count);

/* Second stages of one main line. */
struct field_stages {
    uint32_t count;
    double distance_m[LIMIT_BRANCHES];
    double epdms[LIMIT_BRANCHES];
};

/* Takes an outcome of the main line's job where it is a follow-up scene (stage.h) with a result. */
void field_stages_add(struct field_stages *stages, enum verdict verdict,
                      const struct metrics *metrics);

/* EPDMS of the main line in two stages. NAN: it has none, or there is no follow-up scene. */
double field_stages_score(const struct field_stages *stages, enum verdict verdict,
                          const struct metrics *main_line);

#endif
