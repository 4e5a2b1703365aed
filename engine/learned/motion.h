/*
 * Motion-compensated frame: what a tick of the conditionings `map` and `none` begins with
 * (engine/model.md, "The motion-compensated frame"): the previous BEV frame in the present window,
 * its returns carried on by the velocities that the frame itself holds. It stands in the context's
 * layout slot and is the residual base.
 *
 * Integers alone, and sums whose order does not matter, so that every backend and the trainer get
 * the same bits. kernels/cuda/student/motion.cu gathers what this file scatters.
 */
#ifndef SWERVE_ENGINE_LEARNED_MOTION_H
#define SWERVE_ENGINE_LEARNED_MOTION_H

#include "engine/learned/forward.h"

enum { MOTION_SIDE = 2 * WINDOW_SIDE, MOTION_CELLS = MOTION_SIDE * MOTION_SIDE };

/* Scratch of one call. A return goes at most 6.4 cells, so 15 x 15 cells can reach a cell: its sums
 * are at most 225 * 400 * 255 and fit 32 bits. Those of a position are weighted by velocities too.
 */
struct motion_sums {
    uint32_t occupancy[MOTION_CELLS];
    uint32_t vru[MOTION_CELLS];
    int64_t weight[WINDOW_POSITIONS];
    int64_t velocity[WINDOW_POSITIONS][2];
};

/* Of input: conditioning (map or none), window, the newest page and, in `map`, channels 12..19 of
 * layout_bev. out[FRAME_BEV_BYTES], not aliased. */
void motion_frame(const struct forward_input *input, struct motion_sums *sums, uint8_t *out);

#endif
