/*
 * Previous frames for the tests of the motion-compensated frame, on the CPU
 * (tests/engine/test_motion.c) and on the device (tests/cuda/test_motion.c): from a street's few
 * returns to the largest sums there are.
 */
#ifndef SWERVE_TESTS_ENGINE_MOTION_INPUTS_H
#define SWERVE_TESTS_ENGINE_MOTION_INPUTS_H

#include "base/rng.h"
#include "engine/sensors/layout.h"

#include <stddef.h>

enum motion_kind {
    MOTION_SPARSE,   /* one position in 16, any velocity */
    MOTION_STANDING, /* the same, velocities that are noise */
    MOTION_DENSE,    /* every byte random */
    MOTION_FULL,     /* 255 everywhere, velocities at their ends */
    MOTION_MEETING,  /* 255 everywhere, all on their way to one position in 13 x 13 */
    MOTION_EMPTY,    /* 0 everywhere, velocities -128 */
    MOTION_KINDS,
};

/* Moves a position of a row or column of MOTION_MEETING to the middle one of its 13. */
static inline uint8_t motion_inputs_meeting(uint32_t place)
{
    int32_t cells = 2 * (6 - (int32_t)(place % 13));
    int32_t velocity = 128 + 20 * cells;
    return (uint8_t)(velocity < 0 ? 0 : velocity > 255 ? 255 : velocity);
}

static inline void motion_inputs_position(enum motion_kind kind, uint32_t position, uint64_t seed,
                                          uint8_t *out)
{
    static const uint8_t ends[8] = {0, 255, 1, 254, 125, 131, 0, 255};
    uint64_t word = rng_mix(seed << 32 | position);
    for (uint32_t i = 0; i < FRAME_BEV_CHANNELS; i++) {
        out[i] = (uint8_t)(rng_mix(word + i) >> 11);
    }
    switch (kind) {
    case MOTION_SPARSE:
    case MOTION_STANDING:
        for (uint32_t i = 0; i < FRAME_UNSEEN && word % 16 != 0; i++) {
            out[i] = 0;
        }
        for (uint32_t i = FRAME_VELOCITY; i < FRAME_BEV_CHANNELS && kind == MOTION_STANDING; i++) {
            out[i] = (uint8_t)(126 + out[i] % 5);
        }
        break;
    case MOTION_FULL:
    case MOTION_MEETING:
        for (uint32_t i = 0; i < FRAME_VELOCITY; i++) {
            out[i] = 255;
        }
        out[FRAME_VELOCITY] = kind == MOTION_FULL ? ends[word >> 20 & 7]
                                                  : motion_inputs_meeting(position / WINDOW_SIDE);
        out[FRAME_VELOCITY + 1] = kind == MOTION_FULL
                                      ? ends[word >> 23 & 7]
                                      : motion_inputs_meeting(position % WINDOW_SIDE);
        break;
    case MOTION_EMPTY:
        for (uint32_t i = 0; i < FRAME_BEV_CHANNELS; i++) {
            out[i] = 0;
        }
        break;
    default:
        break;
    }
}

/* bev[FRAME_BEV_BYTES] */
static inline void motion_inputs_fill(enum motion_kind kind, uint64_t seed, uint8_t *bev)
{
    for (uint32_t position = 0; position < WINDOW_POSITIONS; position++) {
        motion_inputs_position(kind, position, seed, bev + (size_t)position * FRAME_BEV_CHANNELS);
    }
}

#endif
