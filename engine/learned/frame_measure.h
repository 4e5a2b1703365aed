/*
 * Frame statistics: what a learned world measures of each frame it commits, for the worker's health
 * checks. Sums of bytes in integers (kernels/frame_sums.h), made here or by a device, and the
 * figures that follow from them: neither depends on the machine.
 */
#ifndef SWERVE_ENGINE_LEARNED_FRAME_MEASURE_H
#define SWERVE_ENGINE_LEARNED_FRAME_MEASURE_H

#include "engine/learned/frame_stats.h"
#include "engine/sensors/layout.h"
#include "kernels/frame_sums.h"

struct frame_measure_input {
    enum conditioning conditioning;
    const uint8_t *frame; /* [FRAME_BYTES] */
    struct window window;
    const uint8_t *before; /* the frame one tick earlier; NULL: none */
    struct window before_window;
    const uint8_t
        *layout; /* [FRAME_BYTES] given to the model; NULL: none, as in CONDITIONING_NONE */
};

/* The sums of a frame: what every device's kernel is compared with. */
void frame_measure_sum(const struct frame_measure_input *input, struct frame_sums *sums);

/* Fills the members that are measured on the pictures: changes, cells, overlap, correlation.
 * `given`: the conditioning of the layout that the sums are of; CONDITIONING_NONE: there was none.
 */
void frame_measure_conclude(const struct frame_sums *sums, enum conditioning given,
                            struct frame_stats *frame_stats);

/* Both. */
void frame_measure(const struct frame_measure_input *input, struct frame_stats *frame_stats);

#endif
