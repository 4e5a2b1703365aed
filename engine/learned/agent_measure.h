/*
 * Agents in generated frames, each that the model was given (conditioning `agents`): gates made
 * from the scene on the host, integer sums over them made here or by a device
 * (kernels/agent_sums.h), and the figures that follow. Neither depends on the machine.
 *
 * Gates are those of the present agents whose box lies near the window and within the visibility,
 * in index order, the first AGENT_GATES_MAX of them. An agent that others hide has no returns in
 * the conditioning raster either, and is then not judged: what is due decides, not geometry.
 */
#ifndef SWERVE_ENGINE_LEARNED_AGENT_MEASURE_H
#define SWERVE_ENGINE_LEARNED_AGENT_MEASURE_H

#include "engine/learned/frame_stats.h"
#include "engine/sensors/layout.h"
#include "kernels/agent_sums.h"

/* Gates of the scene's agents in a window; gates[AGENT_GATES_MAX]. Returns how many. */
uint32_t agent_measure_gates(const struct scenario *scenario, const struct scene *scene,
                             const struct anchor *anchor, struct window window,
                             struct agent_gate *gates);

/* sums[count]: of a frame and its conditioning raster, both [FRAME_BEV_BYTES] or more. */
void agent_measure_sum(const uint8_t *frame, const uint8_t *raster, const struct agent_gate *gates,
                       uint32_t count, struct agent_sums *sums);

/* Fills the frame statistics' agents. */
void agent_measure_conclude(const struct agent_gate *gates, const struct agent_sums *sums,
                            uint32_t count, struct frame_stats *frame_stats);

#endif
