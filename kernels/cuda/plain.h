/*
 * The plain kernels: every operation of a step as simply as it can be written, one thread per
 * number or per small group of numbers. They are the definition that the fast kernels are compared
 * with on a device, and what a session falls back to. Host side of plain.cu: structs of device
 * pointers, launches asynchronous on `stream`.
 *
 * Rows are [slots][rows of a slot]; a row's modulation is its slot's. Slots that are not active are
 * left alone. Activations are bf16; sums are float, in eight interleaved partial sums.
 */
#ifndef SWERVE_KERNELS_CUDA_PLAIN_H
#define SWERVE_KERNELS_CUDA_PLAIN_H

#include "kernels/cuda/shape.h"

enum plain_epilogue {
    PLAIN_STORE = 0, /* c = y */
    PLAIN_ADD,       /* c += gate[slot][n] * y; gate NULL: c += y */
    PLAIN_ACT,       /* out = bf16(y) */
    PLAIN_SILU_ACT,  /* out = bf16(silu(y)) */
};

/* y[row][n] = sum_k a[row][k] * w[n][k] + bias[n] */
struct plain_gemm {
    const struct device_slot *slots;
    uint32_t slot_count, slot_rows;
    uint32_t n, k;
    const uint16_t *a; /* [slot_count][slot_rows][k], slots a_stride apart (elements) */
    size_t a_stride;
    const uint16_t *w; /* [n][k] */
    const float *bias; /* [n] or NULL */
    enum plain_epilogue epilogue;
    const float *gate; /* [slot_count][n], slots gate_stride apart; NULL: none */
    size_t gate_stride;
    float *c;      /* [slot_rows][n] per slot, slots out_stride apart, or */
    uint16_t *out; /* the same */
    size_t out_stride;
};
void plain_gemm_launch(const struct plain_gemm *g, void *stream);

/* 3 x 3 convolution of a part's images, as struct nn_conv (kernels/nn.h); weights [out][3][3][in]
 * with both inputs' channels one after the other. */
struct plain_conv {
    const struct device_slot *slots;
    uint32_t slot_count;
    struct shape_part part;
    uint32_t in_count;
    const uint16_t *in[2]; /* bordered maps [slots][images][rows + 2][cols + 2][in_channels] */
    uint32_t in_channels[2];
    uint32_t out_channels;
    const uint16_t *w;
    const float *bias;
    const float *add;   /* [slots][positions][out_channels] or NULL */
    const float *scale; /* [out_channels] per slot, slots mod_stride apart, or NULL, with shift */
    const float *shift;
    size_t mod_stride;
    uint32_t silu;
    uint16_t *out;  /* bordered map, or NULL */
    float *out_f32; /* [slots][positions][out_channels], or NULL; exactly one of the two */
};
void plain_conv_launch(const struct plain_conv *c, void *stream);

/* out = bf16(LN(x) * (one + scale) + shift), scale and shift per slot; both NULL: plain LN. */
struct plain_norm {
    const struct device_slot *slots;
    uint32_t slot_count, slot_rows, width;
    const float *x; /* [slot_count][slot_rows][width] */
    float one;
    const float *scale; /* [width], slots mod_stride apart (0: shared) */
    const float *shift;
    size_t mod_stride;
    uint16_t *out;
};
void plain_norm_launch(const struct plain_norm *n, void *stream);

/* Rotary self-attention over ranges of tokens: all 216, or the BEV's and each camera's. */
struct plain_attention {
    const struct device_slot *slots;
    uint32_t slot_count, width, joint;
    const float *qkv;    /* [slots][216][3 width] */
    const float *cosine; /* [slots][216][16] */
    const float *sine;
    uint16_t *out; /* [slots][216][width] */
};
void plain_attention_launch(const struct plain_attention *a, void *stream);

/* Attention of every token over its own past pages and the learned sink. */
struct plain_temporal {
    const struct device_slot *slots;
    uint32_t slot_count, width, layer;
    const float *q; /* [slots][216][width] */
    const uint8_t *arena;
    size_t page_bytes;
    const int16_t *index; /* [slots][DEVICE_PAGES_MAX][216] */
    const float *bias;    /* [heads][bias_stride] */
    uint32_t bias_stride;
    const float *null_k; /* [width] */
    const float *null_v;
    uint16_t *out; /* [slots][216][width] */
};
void plain_temporal_launch(const struct plain_temporal *t, void *stream);

/* Patches of a part's map of `channels` to rows [slots][tokens][64 channels], or back. */
struct plain_patches {
    const struct device_slot *slots;
    uint32_t slot_count;
    struct shape_part part;
    uint32_t channels;
    uint16_t *map;
    uint16_t *rows;
    uint32_t back; /* 1: rows to map */
};
void plain_patches_launch(const struct plain_patches *p, void *stream);

/* table[slot][layer][i] = ada[slot][i] + own[layer][i], i < 6 width; ada of slots ada_stride
 * apart. */
void plain_table(const struct device_slot *slots, uint32_t slot_count, const float *ada,
                 size_t ada_stride, const float *own, uint32_t layers, uint32_t width, float *table,
                 void *stream);

/* X[slot][i] = pos[i], i < 216 width */
void plain_start(const struct device_slot *slots, uint32_t slot_count, const float *pos,
                 uint32_t count, float *x, void *stream);

/* x += (base + o - x) * weight over [slots][positions][channels]; o has SHAPE_LATENT per position.
 */
struct plain_euler {
    const struct device_slot *slots;
    uint32_t slot_count;
    struct shape_part part;
    float *x;
    const float *base;
    const float *o;
    float weight;
};
void plain_euler_launch(const struct plain_euler *e, void *stream);

/* A part's x to bytes of the slots' write pages; what is wrong with x is counted per slot. */
struct plain_quantise {
    const struct device_slot *slots;
    uint32_t slot_count;
    struct shape_part part;
    const float *x;
    uint8_t *arena;
    size_t page_bytes;
    struct device_counts *counts; /* [slots], added to */
};
void plain_quantise_launch(const struct plain_quantise *q, void *stream);

#endif
