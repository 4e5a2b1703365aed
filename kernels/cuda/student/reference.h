/*
 * The plain kernels: the heavy operations of a step as simply as they can be written, one thread
 * per number or per few numbers, no shared memory. They take the same descriptions as the fast ones
 * (kernels.h, matrix.h), of which they know the cases that a world model needs: bf16 activations
 * and weights, tiles and fp8 not at all. On a device they are what the fast kernels are compared
 * with in place; under the emulator they make a whole tick affordable.
 */
#ifndef SWERVE_KERNELS_CUDA_STUDENT_REFERENCE_H
#define SWERVE_KERNELS_CUDA_STUDENT_REFERENCE_H

#include "kernels/cuda/common/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/* n % 4 == 0, k % 8 == 0; rows of a and b begin at multiples of 16 bytes, as those of maps do. */
void reference_gemm_launch(const struct gpu_gemm *g, void *stream);
void reference_conv_launch(const struct gpu_conv *c, void *stream); /* GPU_BF16 */
void reference_norm_launch(const struct gpu_norm *n, void *stream); /* GPU_F32 to GPU_BF16 */
/* Ranges of at most 256 tokens, head_dim 32, GPU_F32, heads not shared. */
void reference_attention_launch(const struct gpu_attention *a, void *stream);
/* q GPU_F32, pages GPU_BF16, head_dim 32, heads not shared, with index, bias and sink. */
void reference_temporal_launch(const struct gpu_temporal *t, void *stream);

#ifdef __cplusplus
}
#endif

#endif
