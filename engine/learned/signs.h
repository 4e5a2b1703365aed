/*
 * Signs: what a learned world measures of each frame it commits, for the worker's health checks.
 * Sums of bytes in whole numbers (kernels/sums.h), made here or by a device, and the figures that
 * follow from them: neither depends on the machine.
 */
#ifndef SWERVE_ENGINE_LEARNED_SIGNS_H
#define SWERVE_ENGINE_LEARNED_SIGNS_H

#include "engine/learned/frame_signs.h"
#include "engine/sensors/layout.h"
#include "kernels/sums.h"

struct signs_input {
    enum layout_degree degree;
    const uint8_t *frame; /* [FRAME_BYTES] */
    struct window window;
    const uint8_t *before; /* the frame one tick earlier; NULL: none */
    struct window before_window;
    const uint8_t *layout; /* [FRAME_BYTES] given to the model; NULL: none, as in LAYOUT_NONE */
};

/* The sums of a frame: what every device's kernel is compared with. */
void signs_sum(const struct signs_input *input, struct frame_sums *sums);

/* Fills the members that are measured on the pictures: changes, cells, overlap, correlation.
 * `given`: the degree of the layout that the sums are of; LAYOUT_NONE: there was none. */
void signs_conclude(const struct frame_sums *sums, enum layout_degree given,
                    struct world_signs *signs);

/* Both. */
void signs_measure(const struct signs_input *input, struct world_signs *signs);

#endif
