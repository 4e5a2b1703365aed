/*
 * Forward: one tick of a world model for one slot, from what is known to the next frame. Called
 * by the learned world, by who compares layers (worker/frozen), and by tests. See engine/model.md.
 *
 * A workspace holds every intermediate array, sized at creation; it may serve any slots of any
 * world one after the other. Its threads share the rows of each product, which changes no bits.
 *
 * A tick may leave steps of the model's sampler out: those that are taken begin at times of the
 * schedule that are evenly chosen (model_time). The bits are those of a model whose schedule has
 * these times alone. With none taken the frame is the layout, drawn and not generated.
 */
#ifndef SWERVE_ENGINE_LEARNED_FORWARD_H
#define SWERVE_ENGINE_LEARNED_FORWARD_H

#include "engine/learned/model.h"
#include "engine/sensors/layout.h"

struct workspace;

enum status workspace_create(const struct model *model, uint32_t thread_count,
                             struct workspace **out, struct error *error);
void workspace_destroy(struct workspace *workspace); /* accepts NULL */

/* A committed frame as the next ticks see it. */
struct forward_page {
    const uint8_t *frame; /* [FRAME_BYTES]: BEV, then cameras */
    const void *memory;   /* [forward_memory_bytes()]: keys and values of all layers, as
                             kernels/page_layout.h has them; 64-byte aligned */
    struct window window;
};

struct forward_input {
    uint64_t seed;
    uint32_t tick;    /* of the frame to generate */
    uint32_t skipped; /* steps of the sampler that are left out; all of them in `agents` alone */
    enum conditioning conditioning;
    struct window window;          /* of the frame to generate */
    struct pose ego;               /* at that tick, in the anchor's frame */
    const float *cond;             /* [COND_COUNT] */
    const uint8_t *layout_bev;     /* [FRAME_BEV_BYTES] */
    const uint8_t *layout_cameras; /* [FRAME_CAMERA_BYTES] */
    uint32_t page_count;           /* 0..config.window; pages[0] is the newest, at tick - 1 */
    struct forward_page pages[NN_PAGES_MAX];
};

/* Called with named intermediate results (tests and the table of layer errors): "bev.h", "cam.h",
 * "embed", "block.0" .., "final", "bev.x0", "camera.x0" of each step. values are float, fixed order
 * as in model.md. NULL in production. */
typedef void (*forward_probe)(void *context, uint32_t step, const char *name, const float *values,
                              size_t count);

/* Called at the end of each phase of a tick ("context", "conv in", "tokens", ..), on the calling
 * thread, for benchmarks. NULL in production. */
typedef void (*forward_mark)(void *context, const char *phase);

struct forward_output {
    uint8_t *frame; /* [FRAME_BYTES] */
    struct nn_counts counts;
    forward_probe probe;
    forward_mark mark;
    void *probe_context; /* of both */
};

void forward_tick(const struct model *model, struct workspace *workspace,
                  const struct forward_input *input, struct forward_output *output);

/* The same in parts: what is known before the first step, then step by step while there is one
 * (false: none was left), then the counts. Input and output are borrowed until the end. */
void forward_begin(const struct model *model, struct workspace *workspace,
                   const struct forward_input *input, struct forward_output *output);
bool forward_advance(struct workspace *workspace);
void forward_finish(struct workspace *workspace);

/* K/V of a committed frame, memory[forward_memory_bytes(model)], 64-byte aligned. */
size_t forward_memory_bytes(const struct model *model);
void forward_memory(const struct model *model, struct workspace *workspace, const uint8_t *frame,
                    void *memory);

#endif
