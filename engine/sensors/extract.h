/*
 * Extract: where the scenario's agents are in a generated world. In the conditionings `map` and
 * `none` nobody but the model moves agents; scoring still needs boxes. Each agent of the scenario
 * is tracked from its true start through the generated frames, by their returns and velocity
 * channels.
 *
 * Only agents of the scenario are followed; what the model invents beside them is not in the scene.
 * Static agents stay where the scenario put them. Who is hidden or outside the window at the start
 * is in no frame that the model is ever given, so nobody will draw him: he is not in the scene
 * either, lest a planner is judged by what it could not be shown.
 */
#ifndef SWERVE_ENGINE_SENSORS_EXTRACT_H
#define SWERVE_ENGINE_SENSORS_EXTRACT_H

#include "engine/sensors/layout_internal.h"

#define EXTRACT_LOST_TICKS 5  /* without a return though it should be seen: it vanished */
#define EXTRACT_GONE_TICKS 15 /* then it is not present any more */

struct extract_track {
    double vx_mps; /* world axes */
    double vy_mps;
    uint32_t missed_ticks;
};

struct extract_frame_stats {
    double jump_m;     /* largest distance between where returns are and where they should be */
    uint32_t vanished; /* agents that reached EXTRACT_LOST_TICKS in this tick */
};

/* Tracks of the agents as they are in `scene`; those without a return in the window are made
 * absent. `expected` is overwritten with these returns. */
void extract_start(const struct prepared *prepared, const struct anchor *anchor,
                   struct window window, struct window_planes *expected, struct scene *scene,
                   struct extract_track *tracks);

/* Moves the agents of `scene` (ego already at the new tick) to where the new frame shows them.
 * `expected` is overwritten with the returns that the predicted scene would give. */
struct extract_frame_stats extract_step(const struct prepared *prepared,
                                        const struct anchor *anchor, struct window window,
                                        const uint8_t *frame_bev, struct window_planes *expected,
                                        struct scene *scene, struct extract_track *tracks);

#endif
