/*
 * Animated PNG (PNG 3rd edition, W3C 2025, animation chunks): what every browser shows, written
 * with zlib alone, for machines without ffmpeg. A frame after the first holds the rectangle that
 * changed.
 */
#ifndef SWERVE_REPORT_DRAW_APNG_H
#define SWERVE_REPORT_DRAW_APNG_H

#include "base/status.h"

#include <stdint.h>
#include <stdio.h>

struct apng {
    FILE *out; /* borrowed */
    const char *place;
    uint32_t width;
    uint32_t height;
    uint16_t frames_a_second;
    uint32_t frame_count; /* all there will be */
    uint32_t added;
    uint32_t sequence;
    uint8_t *before; /* the last frame; owned */
    uint8_t *lines;  /* of a rectangle, each behind the byte of its filter; owned */
    uint8_t *packed; /* owned */
    size_t packed_capacity;
};

/* Begins a file of frame_count >= 1 frames. */
enum status apng_begin(struct apng *apng, struct error *error);
/* The next frame, rgb [height][width][3]. */
enum status apng_add(struct apng *apng, const uint8_t *rgb, struct error *error);
/* Ends the file after its last frame; after a failure only releases. */
enum status apng_end(struct apng *apng, enum status so_far, struct error *error);

#endif
