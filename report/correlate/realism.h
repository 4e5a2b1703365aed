/*
 * Realism: how likely recorded traffic is under simulated traffic, as the Waymo Open Sim Agents
 * Challenge measures it. Pure functions over arrays, checked against the original's on the same
 * arrays (tests/report/correlate/test_correlate_realism.c).
 *
 * Source: Montali et al., "The Waymo Open Sim Agents Challenge", NeurIPS 2023, with the
 * configuration of the challenge of 2025. Of an object's feature at all steps of all rollouts a
 * histogram is made; the likelihood is that of the recording's features in it, a geometric mean
 * over valid steps and objects. Of the challenge's ten features the distance to the road's edge and
 * red lights are not here; the weighted mean is over those that are.
 */
#ifndef SWERVE_REPORT_CORRELATE_REALISM_H
#define SWERVE_REPORT_CORRELATE_REALISM_H

#include <stdbool.h>
#include <stdint.h>

enum realism_feature {
    REALISM_SPEED = 0,
    REALISM_ACCEL,
    REALISM_YAW_RATE,
    REALISM_YAW_ACCEL,
    REALISM_NEAREST,
    REALISM_TTC,
    REALISM_COLLISION, /* from here on once per object: whether it ever happened */
    REALISM_OFF_ROAD,
    REALISM_FEATURES
};
extern const char *const realism_names[REALISM_FEATURES];

struct realism_object {
    double length_m;
    double width_m;
    bool vehicle;   /* time to collision counts for these alone */
    bool evaluated; /* else only in the way of others */
};

struct realism_state {
    double x_m;
    double y_m;
    double heading_rad;
    bool valid;
    bool off_road;
};

/* A recording or a rollout: states[object * steps + step], borrowed. */
struct realism_scene {
    uint32_t objects;
    uint32_t steps;
    double step_s;
    const struct realism_object *object;
    const struct realism_state *states;
};

/* One feature that has steps, of one object: out[steps]; NAN where a difference has no neighbour.
 */
void realism_series(const struct realism_scene *scene, uint32_t object,
                    enum realism_feature feature, double *out);

/* Likelihoods of a recording under `rollouts` >= 1 scenes with the same objects and steps; NAN
 * where no object says anything. scratch: steps values. */
void realism_likelihoods(const struct realism_scene *recorded, const struct realism_scene *rollout,
                         uint32_t rollouts, double *scratch, double out[REALISM_FEATURES]);

/* Mean of the likelihoods that there are, by the challenge's weights; NAN without any. */
double realism_score(const double likelihoods[REALISM_FEATURES]);

#endif
