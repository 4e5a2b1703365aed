/*
 * Prototypes of the tile kernels (AMX, with AVX-512 for the rest), NN_BF16 alone.
 */
#ifndef SWERVE_KERNELS_X86_NN_AMX_H
#define SWERVE_KERNELS_X86_NN_AMX_H

#include "kernels/nn.h"

size_t nn_packed_bytes_amx(uint32_t n, uint32_t k);
void nn_pack_bf16_amx(const float *w, uint32_t n, uint32_t k, void *out);
void nn_gemm_bf16_amx(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row);
void nn_conv3x3_bf16_amx(const struct nn_conv *c, uint32_t first_row, uint32_t end_row);
void nn_attention_bf16_amx(const struct nn_attention *a, uint32_t first_head, uint32_t end_head);

#endif
