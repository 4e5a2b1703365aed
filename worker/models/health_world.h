/*
 * Health of a learned world: judges the frame statistics of every frame that it committed. What a
 * sign may be is in health_bounds.h; what the world cannot know (its own past over several ticks)
 * is kept here, as a plain value that a fork copies.
 */
#ifndef SWERVE_WORKER_MODELS_HEALTH_WORLD_H
#define SWERVE_WORKER_MODELS_HEALTH_WORLD_H

#include "engine/learned/frame_stats.h"
#include "worker/models/health.h"
#include "worker/models/health_bounds.h"

/* One tick's statistic per measure, NAN where it does not apply (yet). */
void health_world_measure(struct health_world *state, const struct frame_stats *frame_stats,
                          double statistic[MEASURE_COUNT]);

/* The measures of the drive so far. */
void health_world_drive(const struct health_world *state, struct drive_health *out);

/* Whether the frame is believable; *out is written when it is not. `state` as measuring left it. */
bool health_world_judge(const struct health_world *state, const struct frame_stats *frame_stats,
                        const double statistic[MEASURE_COUNT], const struct health_bounds *bounds,
                        enum conditioning conditioning, struct health_verdict *out);

#endif
