/*
 * Whole drives of the controls challenge on a GPU (engine/tinyphysics/tinyphysics_episode.h has the
 * rules): a block is an episode, from its first row to its last, so nothing is launched in between.
 * Bits are those of the CPU in single precision: same operations, same order.
 */
#ifndef SWERVE_KERNELS_CUDA_TINYPHYSICS_ROLLOUT_H
#define SWERVE_KERNELS_CUDA_TINYPHYSICS_ROLLOUT_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ROLLOUT_ROW_NUMBERS = DEVICE_ROLLOUT_NUMBERS,
    ROLLOUT_CONTROL = 100, /* first row that the controller steers */
    ROLLOUT_ROWS = DEVICE_ROLLOUT_ROWS,
};

/* Pointers are the device's. Row `r` of episode `e` is number e * ROLLOUT_ROWS + r. */
struct rollout {
    uint32_t count;      /* of episodes */
    uint32_t controlled; /* 1: by the PID, 0: not steered */
    const struct tinyphysics_weights *weights;
    const struct tinyphysics_entry *entry;
    const double *rows;     /* [count][ROLLOUT_ROWS][ROLLOUT_ROW_NUMBERS] */
    const double *uniforms; /* [count][ROLLOUT_ROWS], read from ROLLOUT_CONTROL on */
    const uint32_t *ends;   /* [count]: row after the last */
    double *actions;        /* [count][ROLLOUT_ROWS]: clipped; those of the context are given */
    double *lataccel;       /* [count][ROLLOUT_ROWS]: those of the context are given */
};

void rollout_launch(const struct rollout *r, void *stream);

#ifdef __cplusplus
}
#endif

#endif
