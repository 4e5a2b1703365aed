/*
 * The network of the controls challenge as the user exported it, run by ONNX Runtime: logits for
 * the simulator of engine/tinyphysics, which decodes, draws, clips and counts costs as ever.
 *
 * One run for all drives of a thread: states [drives][20][4] of single precision (steering command,
 * roll's lateral acceleration, speed, acceleration), tokens [drives][20] of 64 bits, logits
 * [drives][20][1024], of which the last row of each drive counts.
 */
#ifndef SWERVE_WORKER_WORLD_WORLD_ONNX_CONTROLS_H
#define SWERVE_WORKER_WORLD_WORLD_ONNX_CONTROLS_H

#include "engine/tinyphysics/tinyphysics_model.h"
#include "worker/world/world_onnx.h"

struct world_onnx_controls;

/* Opens the file and runs it once. `host` is borrowed, outlives it. */
enum status world_onnx_controls_open(const struct world_onnx_host *host,
                                     struct world_onnx_controls **out, struct error *error);
void world_onnx_controls_close(struct world_onnx_controls *controls); /* accepts NULL */

/* Its network, as a model that the world tinyphysics takes. */
const struct tinyphysics_model *world_onnx_controls_model(
    const struct world_onnx_controls *controls);

#endif
