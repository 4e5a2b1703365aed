/*
 * Parts that all variants of the causal transformer's kernels share, beside kernels/nn_internal.h.
 */
#ifndef SWERVE_KERNELS_NN_CAUSAL_INTERNAL_H
#define SWERVE_KERNELS_NN_CAUSAL_INTERNAL_H

#include "kernels/nn_causal.h"

void nn_causal_table_avx2(struct nn_causal_kernels *kernels);
void nn_causal_table_avx512(struct nn_causal_kernels *kernels);

#define NN_CAUSAL_EPSILON 1e-5f
#define NN_GELU_CUBE 0.044715f
#define NN_GELU_FACTOR 0x1.988454p+0f /* 2 sqrt(2 / pi) */

#endif
