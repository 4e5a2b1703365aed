/*
 * Launchers of what a tick knows before its first step: conditions, the tokens' places, context
 * maps, residual base; and of what surrounds a page: its frame to the host, its memory.
 * Host side of context.cu. All pointers are to device memory; launches are asynchronous on `stream`
 * and return what gpu_launch_error() says.
 *
 * Slots that are not active in `slots` are left alone. `arena` is the pages one after the other,
 * each `page_bytes`: the frame, then its memory (kernels/page_layout.h).
 */
#ifndef SWERVE_KERNELS_CUDA_STUDENT_CONTEXT_H
#define SWERVE_KERNELS_CUDA_STUDENT_CONTEXT_H

#include "kernels/cuda/student/shape.h"
#include "kernels/page_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

struct context_slots {
    const struct device_slot *slots; /* [count] */
    uint32_t count, window;          /* pages that a slot may name */
    uint32_t steps;                  /* of the model's sampler; 0: no steps are taken */
    const float *step_weights;       /* as struct device_model has them */
    /* Pointers that kernels which know nothing of slots want to read, filled by context_unpack. */
    uint32_t *active; /* [count] */
    int32_t *table;   /* [count][window]: pages, newest first, -1: none */
    uint64_t *keys;   /* [count] of the noise */
    uint32_t *ticks;  /* [count] */
    int32_t *write;   /* [count]: the page that is written */
    /* [steps][count]: whether a slot takes part in a step, and its weight there. A slot that leaves
     * steps out takes the last ones, so that all end together. */
    uint32_t *runs;
    float *weights;
    uint8_t *arena;
    size_t page_bytes;
    uint8_t *layouts; /* [count][DEVICE_FRAME_BYTES] */
};

void context_unpack(const struct context_slots *s, void *stream);

/* Rows [count][steps][128] bf16 of the time MLP: conditions, then the features of the time at which
 * the slot's step begins. */
void context_conditions(const struct context_slots *s, const float *features, uint16_t *rows,
                        void *stream);

/* Rotary cosine and sine [count][tokens][pairs], and the place of each token in each page
 * index[count][window][tokens] (row in the page, -1: not there). */
struct context_places {
    struct shape_part bev, camera;
    uint32_t pairs; /* numbers of a head by two, at least DEVICE_PAGES_MAX */
    double ratio;   /* of a pair's frequency to the one before */
    double camera_yaw_rad[SHAPE_CAMERAS];
    float *cosine;
    float *sine;
    int16_t *index;
};
void context_places_fill(const struct context_slots *s, const struct context_places *p,
                         void *stream);

/* For the conditionings map and none: the motion-compensated frame in place of the layout's BEV
 * (motion.cu). */
void context_move(const struct context_slots *s, void *stream);

/* Context map (bordered, bf16) and base [count][positions][channels] of one part. */
void context_fill(const struct context_slots *s, const struct shape_part *part, uint16_t *map,
                  float *base, void *stream);

/* x[slot][i] = values[i], i < values_count */
void context_spread(const struct context_slots *s, const float *values, uint32_t values_count,
                    float *x, void *stream);

/* K and V kv[count][tokens][2 * layers * width], bf16, into the write pages, as they are or in e4m3
 * with the bits of kernels/ref. */
struct context_memory {
    const uint16_t *kv;
    struct page_shape shape; /* head_dim 32, 64 or 128; number_bytes 2 or 1 */
    struct page_layout layout;
};
void context_store_memory(const struct context_slots *s, const struct context_memory *m,
                          void *stream);

/* The layouts to the write pages of slots that take no steps. */
void context_draw(const struct context_slots *s, void *stream);

/* The sums of the frames in the write pages, added to what counts[count] have. The layouts' BEV is
 * read in the conditioning `agents` alone, where context_move leaves it (frame_sums.cu). */
void context_sums(const struct context_slots *s, struct device_counts *counts, void *stream);

/* Measures in these frames of the agents of the slots' gates, into counts[count].agents; in the
 * conditioning `agents` alone (agent_sums.cu). */
void context_agents(const struct context_slots *s, struct device_counts *counts, void *stream);

/* The frames to be delivered from the write pages to frames[count][DEVICE_FRAME_BYTES]. */
void context_copy_frames(const struct context_slots *s, uint8_t *frames, void *stream);

#ifdef __cplusplus
}
#endif

#endif
