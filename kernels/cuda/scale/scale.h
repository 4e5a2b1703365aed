/*
 * A world model at full scale: what a 3B student would compute per world step, the operations of
 * its trunk (kernels/trunk/trunk.h) as launches, with random weights. It exists to measure what
 * several GPUs gain that share a step (all_to_all.h), which served models do not yet; no weights of
 * that size are shipped. Tests run it at toy size against plain C.
 *
 * The list never changes: pages, tick and seed lie in device memory, so it can be captured.
 */
#ifndef SWERVE_KERNELS_CUDA_SCALE_SCALE_H
#define SWERVE_KERNELS_CUDA_SCALE_SCALE_H

#include "kernels/cuda/scale/all_to_all.h"
#include "kernels/trunk/trunk.h"

#ifdef __cplusplus
extern "C" {
#endif

struct scale_options {
    uint64_t seed;                /* of the weights */
    uint32_t page_count;          /* of the arena, at least window + 1 */
    struct all_to_all all_to_all; /* ranks 0: none; one rank exchanges with itself */
    uint32_t wgmma;               /* as in gpu_attention and gpu_gemm */
};

/* A model with its memory on the present device; everything is allocated at open. */
struct scale;
int scale_open(const struct trunk_config *config, const struct scale_options *options,
               struct scale **out, struct device_text *why);
void scale_close(struct scale *scale); /* accepts NULL */

/* Queues the inputs of the next step; they are read before it returns. Not to be captured. */
int scale_begin(struct scale *scale, const struct trunk_inputs *inputs, void *stream,
                struct device_text *why);
/* Queues all launches of a world step; may be captured. */
int scale_step(struct scale *scale, void *stream, struct device_text *why);

/* The same one by one, for ranks in one process and for measuring. */
uint32_t scale_op_count(const struct scale *scale);
const struct trunk_op *scale_op_at(const struct scale *scale, uint32_t index);
int scale_op_run(struct scale *scale, uint32_t index, void *stream, struct device_text *why);

/* Random numbers, evenly distributed, as weights have them; on the default stream. */
void scale_fill(enum gpu_type type, void *out, uint64_t count, uint64_t seed);

/* Its share: configuration, tokens, weights and latents in device memory, pages. */
const struct trunk *scale_trunk(const struct scale *scale);

#ifdef __cplusplus
}
#endif

#endif
