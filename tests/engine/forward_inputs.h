/*
 * Procedural inputs of the three ticks that scripts/train/fixture.py computes in PyTorch, shared by
 * the tests of the forward pass. Byte k of buffer b is ((k * 2654435761 + b * 40503) mod 2^32)
 * >> 24.
 */
#ifndef SWERVE_TESTS_ENGINE_FORWARD_INPUTS_H
#define SWERVE_TESTS_ENGINE_FORWARD_INPUTS_H

#include "engine/learned/forward.h"

#include <stdlib.h>
#include <string.h>

struct forward_inputs {
    uint8_t layout_bev[FRAME_BEV_BYTES];
    uint8_t layout_cameras[FRAME_CAMERA_BYTES];
    uint8_t pages[2][FRAME_BYTES];
    float cond[COND_COUNT];
    void *memory[2]; /* of the pages, aligned; NULL until asked for */
    struct forward_input input;
};

static inline void forward_inputs_fill(uint8_t *out, uint32_t count, uint32_t buffer)
{
    for (uint32_t k = 0; k < count; k++) {
        out[k] = (uint8_t)((k * 2654435761u + buffer * 40503u) >> 24);
    }
}

/* The tick of fixture.py in that conditioning with that many pages (their memory made by
 * `workspace`). */
static inline void forward_inputs_make(struct forward_inputs *in, const struct model *model,
                                       struct workspace *workspace, enum conditioning conditioning,
                                       uint32_t pages)
{
    memset(in, 0, sizeof *in);
    forward_inputs_fill(in->layout_bev, sizeof in->layout_bev, 0);
    forward_inputs_fill(in->layout_cameras, sizeof in->layout_cameras, 1);
    for (uint32_t k = 0; k < COND_COUNT; k++) {
        in->cond[k] = (float)((k * 7 + 3) % 11 / 11.0);
    }
    for (uint32_t k = 0; k < CONDITIONING_COUNT; k++) {
        in->cond[k] = k == (uint32_t)conditioning;
    }
    in->input = (struct forward_input){
        .seed = 1234,
        .tick = 7,
        .conditioning = conditioning,
        .window = {conditioning == CONDITIONING_NONE ? -4 : -3,
                   conditioning == CONDITIONING_NONE ? -5 : -6},
        .ego = {6.0, -3.0, 0.3},
        .cond = in->cond,
        .layout_bev = in->layout_bev,
        .layout_cameras = in->layout_cameras,
        .page_count = pages,
    };
    for (uint32_t i = 0; i < pages; i++) {
        forward_inputs_fill(in->pages[i], FRAME_BYTES, 2 + i);
        in->memory[i] = aligned_alloc(64, (forward_memory_bytes(model) + 63) / 64 * 64);
        forward_memory(model, workspace, in->pages[i], in->memory[i]);
        in->input.pages[i] = (struct forward_page){
            .frame = in->pages[i],
            .memory = in->memory[i],
            .window = {i == 0 ? -3 : -4, -6},
        };
    }
}

static inline void forward_inputs_finish(struct forward_inputs *in)
{
    free(in->memory[0]);
    free(in->memory[1]);
}

#endif
