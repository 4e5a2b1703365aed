/*
 * The newest page of a slot, in the positions of the window that the slot has now: what the moved
 * frame (motion.cu) and the sums of a frame (frame_sums.cu) look back at.
 */
#ifndef SWERVE_KERNELS_CUDA_STUDENT_PAST_CUH
#define SWERVE_KERNELS_CUDA_STUDENT_PAST_CUH

#include "kernels/cuda/common/gpu.h"

#include "kernels/cuda/student/context.h"

/* Positions [first, end) of the present window are in the page, `shift` further on there. */
struct past {
    const uint8_t *frame;
    int32_t shift[2], first[2], end[2];
};

GPU_FN void past_axis(struct past *past, int axis, int64_t strides)
{
    bool there = strides > -SHAPE_STRIDES && strides < SHAPE_STRIDES;
    int32_t shift = there ? (int32_t)strides * SHAPE_STRIDE : (int32_t)SHAPE_BEV_SIDE;
    past->shift[axis] = shift;
    past->first[axis] = shift < 0 ? -shift : 0;
    past->end[axis] = shift > 0 ? SHAPE_BEV_SIDE - shift : (int32_t)SHAPE_BEV_SIDE;
}

GPU_FN struct past past_of(const struct context_slots *s, const struct device_slot *slot)
{
    struct past past = {};
    if (slot->page_count > 0) {
        past.frame = s->arena + slot->page[0] * s->page_bytes;
        past_axis(&past, 0, (int64_t)slot->window[0] - slot->page_window[0][0]);
        past_axis(&past, 1, (int64_t)slot->window[1] - slot->page_window[0][1]);
    }
    return past;
}

GPU_FN bool past_has(const struct past *past, int32_t row, int32_t col)
{
    return row >= past->first[0] && row < past->end[0] && col >= past->first[1] &&
           col < past->end[1];
}

/* A position of the present window that the page has. */
GPU_FN const uint8_t *past_at(const struct past *past, int32_t row, int32_t col)
{
    int32_t there = (row + past->shift[0]) * SHAPE_BEV_SIDE + col + past->shift[1];
    return past->frame + there * SHAPE_BEV_CHANNELS;
}

#endif
