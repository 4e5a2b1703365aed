/*
 * Prototypes of the plain C network kernels, which kernels/ref/nn_table.c puts into the table. Each
 * member of struct nn_kernels that depends on the precision has two.
 */
#ifndef SWERVE_KERNELS_REF_NN_REF_H
#define SWERVE_KERNELS_REF_NN_REF_H

#include "kernels/nn.h"

size_t nn_packed_bytes_ref(uint32_t n, uint32_t k);
void nn_pack_fp32_ref(const float *w, uint32_t n, uint32_t k, void *out);
void nn_pack_bf16_ref(const float *w, uint32_t n, uint32_t k, void *out);
void nn_gemm_fp32_ref(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row);
void nn_gemm_bf16_ref(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row);
void nn_conv3x3_fp32_ref(const struct nn_conv *c, uint32_t first_row, uint32_t end_row);
void nn_conv3x3_bf16_ref(const struct nn_conv *c, uint32_t first_row, uint32_t end_row);

size_t nn_packed_bytes_int8_ref(uint32_t n, uint32_t k);
void nn_pack_int8_ref(const float *w, uint32_t n, uint32_t k, void *out);
void nn_to_int8_ref(const void *act, uint32_t k, int8_t *q, size_t ldq, struct nn_int8_row *rows,
                    uint32_t first_row, uint32_t end_row);
void nn_gemm_int8_ref(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row);

/* Epilogues of one output of a product, and of one output's sum of a convolution
 * (ref/nn_gemm.c). */
void nn_gemm_store_ref(enum nn_precision precision, const struct nn_gemm *g, uint32_t row,
                       uint32_t col, float y);
void nn_conv_store_ref(enum nn_precision precision, const struct nn_conv *c, uint32_t row,
                       uint32_t col, uint32_t o, float total);
size_t nn_conv_packed_bytes_int8_ref(uint32_t n, uint32_t in_count, const uint32_t in_channels[2]);
void nn_conv_pack_int8_ref(const float *w, uint32_t n, uint32_t in_count,
                           const uint32_t in_channels[2], const uint32_t in_used[2], void *out);
void nn_conv3x3_int8_ref(const struct nn_conv *c, uint32_t first_row, uint32_t end_row);

void nn_attention_fp32_ref(const struct nn_attention *a, uint32_t first_head, uint32_t end_head);
void nn_attention_bf16_ref(const struct nn_attention *a, uint32_t first_head, uint32_t end_head);
void nn_temporal_fp32_ref(const struct nn_temporal *t, uint32_t first_token, uint32_t end_token);
void nn_temporal_bf16_ref(const struct nn_temporal *t, uint32_t first_token, uint32_t end_token);

void nn_turn_fp32_ref(const struct nn_heads *h, const float *cosine, const float *sine, float *qkv,
                      uint32_t first_token, uint32_t end_token);
void nn_turn_bf16_ref(const struct nn_heads *h, const float *cosine, const float *sine, float *qkv,
                      uint32_t first_token, uint32_t end_token);
void nn_attention_wide_fp32_ref(const struct nn_wide_attention *a, uint32_t first_head,
                                uint32_t end_head);
void nn_attention_wide_bf16_ref(const struct nn_wide_attention *a, uint32_t first_head,
                                uint32_t end_head);
void nn_temporal_wide_fp32_ref(const struct nn_temporal *t, const struct nn_heads *h,
                               uint32_t first_token, uint32_t end_token);
void nn_temporal_wide_bf16_ref(const struct nn_temporal *t, const struct nn_heads *h,
                               uint32_t first_token, uint32_t end_token);
size_t nn_packed_bytes_e4m3_ref(uint32_t n, uint32_t k);
void nn_pack_e4m3_ref(const float *w, uint32_t n, uint32_t k, void *out);
void nn_keep_e4m3_ref(const uint8_t *w, const float *scale, uint32_t n, uint32_t k, void *out);
void nn_to_e4m3_ref(const void *act, uint32_t k, int8_t *q, size_t ldq, struct nn_int8_row *rows,
                    uint32_t first_row, uint32_t end_row);
void nn_heads_to_e4m3_ref(const void *act, uint32_t dim, uint8_t *q, float *scale,
                          uint32_t first_row, uint32_t end_row);
void nn_heads_from_e4m3_ref(const uint8_t *q, uint32_t dim, const float *scale, float *out,
                            uint32_t first_row, uint32_t end_row);
void nn_gemm_e4m3_ref(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row);

void nn_norm_fp32_ref(const float *x, uint32_t width, float one, const float *scale,
                      const float *shift, void *out, uint32_t first_row, uint32_t end_row);
void nn_norm_bf16_ref(const float *x, uint32_t width, float one, const float *scale,
                      const float *shift, void *out, uint32_t first_row, uint32_t end_row);
void nn_to_act_fp32_ref(const float *x, void *out, size_t count);
void nn_to_act_bf16_ref(const float *x, void *out, size_t count);
void nn_silu_ref(float *x, size_t count);
void nn_noise_ref(uint64_t key, uint32_t tick, uint32_t stream, uint32_t first, uint32_t count,
                  float *out);
void nn_euler_ref(float *x, const float *base, const float *o, size_t positions, uint32_t channels,
                  uint32_t o_stride, float weight);
void nn_quantise_ref(const float *x, uint8_t *out, size_t count, struct nn_counts *counts);

#endif
