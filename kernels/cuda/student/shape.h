/*
 * Shapes of engine/model.md for device code: the frame, its patches, the tokens; and where things
 * lie in a slot's arrays. Every array of a tick is [slots][..], so that a slot's part of it is the
 * same whatever the number of slots.
 */
#ifndef SWERVE_KERNELS_CUDA_STUDENT_SHAPE_H
#define SWERVE_KERNELS_CUDA_STUDENT_SHAPE_H

#include "kernels/device.h"

enum {
    SHAPE_STRIDE = 8,   /* positions of a window's step, whatever the patch */
    SHAPE_STRIDES = 12, /* of the BEV, per side */
    SHAPE_BEV_SIDE = 96,
    SHAPE_BEV_POSITIONS = SHAPE_BEV_SIDE * SHAPE_BEV_SIDE,
    SHAPE_BEV_CHANNELS = 22,
    SHAPE_BEV_BYTES = SHAPE_BEV_POSITIONS * SHAPE_BEV_CHANNELS,
    SHAPE_CAMERAS = 3,
    SHAPE_CAMERA_ROWS = 32,
    SHAPE_CAMERA_COLS = 48,
    SHAPE_CAMERA_POSITIONS = SHAPE_CAMERA_ROWS * SHAPE_CAMERA_COLS, /* of one */
    SHAPE_CAMERA_CHANNELS = 12,
    SHAPE_LATENT = 32, /* channels of x and of a frame, padded */
    SHAPE_CONTEXT_BEV = 64,
    SHAPE_CONTEXT_CAMERA = 32,
    SHAPE_PARTS = 2, /* BEV, cameras */
};

/* struct device_slot.conditioning, as in enum conditioning. */
enum { CONDITION_AGENTS = 0, CONDITION_MAP, CONDITION_NONE };

/* Shape of a part (the BEV, or the three cameras). */
struct shape_part {
    uint32_t images, rows, cols; /* of positions */
    uint32_t patch;              /* positions per side of a token's */
    uint32_t token_cols, image_tokens, tokens;
    uint32_t first_token;
    uint32_t channels;      /* of a latent: 22 or 12 */
    uint32_t first_element; /* of the noise, and of the frame's bytes */
    uint32_t context_channels;
};

static inline struct shape_part shape_part_of(int part, uint32_t patch)
{
    const bool bev = part == 0;
    struct shape_part out;
    out.images = bev ? 1 : SHAPE_CAMERAS;
    out.rows = bev ? SHAPE_BEV_SIDE : SHAPE_CAMERA_ROWS;
    out.cols = bev ? SHAPE_BEV_SIDE : SHAPE_CAMERA_COLS;
    out.patch = patch;
    out.token_cols = out.cols / patch;
    out.image_tokens = out.token_cols * (out.rows / patch);
    out.tokens = out.images * out.image_tokens;
    out.first_token = bev ? 0 : SHAPE_BEV_POSITIONS / (patch * patch);
    out.channels = bev ? SHAPE_BEV_CHANNELS : SHAPE_CAMERA_CHANNELS;
    out.first_element = bev ? 0 : SHAPE_BEV_BYTES;
    out.context_channels = bev ? SHAPE_CONTEXT_BEV : SHAPE_CONTEXT_CAMERA;
    return out;
}

/* Positions of all images of a part, and of its maps with their borders. */
static inline uint32_t shape_positions(const struct shape_part *p)
{
    return p->images * p->rows * p->cols;
}

static inline uint32_t shape_map_positions(const struct shape_part *p)
{
    return p->images * (p->rows + 2) * (p->cols + 2);
}

#endif
