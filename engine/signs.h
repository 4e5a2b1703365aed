/*
 * Signs: what a learned world measures of each frame it commits, for the worker's health checks.
 * Sums of bytes in integers, so the figures do not depend on the machine.
 */
#ifndef SWERVE_ENGINE_SIGNS_H
#define SWERVE_ENGINE_SIGNS_H

#include "engine/layout.h"

struct signs_input {
    enum layout_degree degree;
    const uint8_t *frame; /* [FRAME_BYTES] */
    struct window window;
    const uint8_t *before; /* the frame one tick earlier; NULL: none */
    struct window before_window;
    const uint8_t *layout; /* [FRAME_BYTES] given to the model; NULL: none */
};

/* Fills the members that are measured on the pictures: changes, cells, overlap, correlation. */
void signs_measure(const struct signs_input *input, struct world_signs *signs);

#endif
