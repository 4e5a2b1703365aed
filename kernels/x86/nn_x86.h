/*
 * Prototypes of the vector kernels of one instruction set (NN_NAME adds its name), which
 * x86/nn_table.c puts into the table.
 */
#ifndef SWERVE_KERNELS_X86_NN_X86_H
#define SWERVE_KERNELS_X86_NN_X86_H

#include "kernels/x86/nn_lanes.h"

#if defined(__AVX2__)

size_t NN_NAME(packed_bytes_fp32)(uint32_t n, uint32_t k);
size_t NN_NAME(packed_bytes_bf16)(uint32_t n, uint32_t k);
void NN_NAME(pack_fp32)(const float *w, uint32_t n, uint32_t k, void *out);
void NN_NAME(pack_bf16)(const float *w, uint32_t n, uint32_t k, void *out);
void NN_NAME(gemm_fp32)(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row);
void NN_NAME(gemm_bf16)(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row);
void NN_NAME(conv3x3_fp32)(const struct nn_conv *c, uint32_t first_row, uint32_t end_row);
void NN_NAME(conv3x3_bf16)(const struct nn_conv *c, uint32_t first_row, uint32_t end_row);

void NN_NAME(attention_fp32)(const struct nn_attention *a, uint32_t first_head, uint32_t end_head);
void NN_NAME(attention_bf16)(const struct nn_attention *a, uint32_t first_head, uint32_t end_head);
void NN_NAME(temporal_fp32)(const struct nn_temporal *t, uint32_t first_token, uint32_t end_token);
void NN_NAME(temporal_bf16)(const struct nn_temporal *t, uint32_t first_token, uint32_t end_token);

void NN_NAME(norm_fp32)(const float *x, uint32_t width, float one, const float *scale,
                        const float *shift, void *out, uint32_t first_row, uint32_t end_row);
void NN_NAME(norm_bf16)(const float *x, uint32_t width, float one, const float *scale,
                        const float *shift, void *out, uint32_t first_row, uint32_t end_row);
void NN_NAME(silu)(float *x, size_t count);
void NN_NAME(to_act_bf16)(const float *x, void *out, size_t count);
void NN_NAME(noise)(uint64_t key, uint32_t tick, uint32_t stream, uint32_t first, uint32_t count,
                    float *out);
void NN_NAME(euler)(float *x, const float *base, const float *o, size_t positions,
                    uint32_t channels, uint32_t o_stride, float weight);
void NN_NAME(quantise)(const float *x, uint8_t *out, size_t count, struct nn_counts *counts);

#endif

#endif
