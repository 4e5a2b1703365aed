/*
 * Places of earlier frames in the present window: both begin at whole patches of the
 * world, so a row of the window is a stretch of a row of the frame, or nothing of it.
 */
#ifndef SWERVE_ENGINE_LEARNED_FORWARD_PAST_H
#define SWERVE_ENGINE_LEARNED_FORWARD_PAST_H

#include "engine/learned/forward.h"

#include <stdbool.h>
#include <stddef.h>

/* A previous frame seen from the present window: line `row` starts `shift` bytes after `line`, and
 * holds for columns first .. end - 1. */
struct past_line {
    const uint8_t *line; /* of column 0, valid for the columns below only */
    int32_t first, end;
};

static inline struct past_line past_bev(const struct forward_input *input, uint32_t page,
                                        uint32_t row)
{
    struct past_line past = {NULL, 0, 0};
    if (page >= input->page_count) {
        return past;
    }
    const struct forward_page *from = &input->pages[page];
    int64_t di = ((int64_t)input->window.i - from->window.i) * WINDOW_PATCH;
    int64_t dj = ((int64_t)input->window.j - from->window.j) * WINDOW_PATCH;
    int64_t there = row + di;
    if (there < 0 || there >= WINDOW_SIDE || dj <= -WINDOW_SIDE || dj >= WINDOW_SIDE) {
        return past;
    }
    past.first = dj < 0 ? (int32_t)-dj : 0;
    past.end = dj > 0 ? (int32_t)(WINDOW_SIDE - dj) : WINDOW_SIDE;
    past.line = from->frame + (there * WINDOW_SIDE + dj) * FRAME_BEV_CHANNELS;
    return past;
}

static inline bool past_has(const struct past_line *past, int32_t col)
{
    return col >= past->first && col < past->end;
}

#endif
