/*
 * Neural-network kernels: what a world model's tick is made of (engine/model.md). One table per
 * precision, filled plain C first and then overwritten by each instruction set that the flags
 * allow. Every variant of a precision gives the same bits (tests/kernels/test_nn.c), so a model's
 * output does not depend on the machine; a CUDA table will be compared within a tolerance instead.
 *
 * An *activation* (`act`) is float in NN_FP32 and bfloat16 (uint16_t, round to nearest even) in
 * NN_BF16 and NN_INT8. Products take activations and packed weights and sum in float:
 *   NN_FP32  one chain of fused multiply-adds per output, k ascending, starting from 0
 *   NN_BF16  in blocks of 32 terms, each summed as TDPBF16PS does (Intel SDM vol. 2), denormals
 *            flushed; the block's sum is added to the total
 *   NN_INT8  as NN_BF16, and has beside them products of integers (the members with int8 in
 *            their names), whose sums are exact, so that any order gives the same bits
 * Whole numbers: the largest magnitude of a row (of activations: one row of a matrix; of weights:
 * all of one output) is 127 steps, scale = largest / 127; an element is its value * (127 / largest)
 * rounded to nearest even. A row whose largest is below NN_INT8_LEAST is zero, with scale 0. A row
 * with a NaN or an infinity is zero with scale NaN, so all that it is multiplied with is NaN.
 * A *map* is [rows + 2][cols + 2][channels] act, channels last, with a border that the caller keeps
 * zero. Functions take a range of rows, tokens or heads so that threads can share one call; ranges
 * do not change bits. Nothing allocates. Pointers alias only where stated. 64-byte alignment of
 * every base pointer; channel counts, n are multiples of 32 and k of 32 unless stated.
 */
#ifndef SWERVE_KERNELS_NN_H
#define SWERVE_KERNELS_NN_H

#include <stddef.h>
#include <stdint.h>

enum nn_precision { NN_FP32 = 0, NN_BF16, NN_INT8, NN_PRECISION_COUNT };

extern const char *const nn_precision_names[NN_PRECISION_COUNT]; /* "fp32", "bf16", "int8" */

enum {
    NN_HEAD = 32,              /* head dimension */
    NN_TOKENS_MAX = 256,       /* of one attention call */
    NN_PAGES_MAX = 16,         /* memory frames */
    NN_INT8_TERMS_MAX = 65536, /* 255 * 127 times as many is a sum of 32 bits */
    NN_CONV_INT8_COLS_MAX = 96,
    NN_CONV_INT8_CHANNELS_MAX = 256, /* of one input */
    NN_WIDE_HEAD_MAX = 128,          /* dimension of a head, a multiple of 16 */
    NN_WIDE_TOKENS_MAX = 13824,      /* of one attention call */
    NN_E4M3_TERMS_MAX = 24576,
};

static inline size_t nn_act_bytes(enum nn_precision precision)
{
    return precision == NN_FP32 ? 4 : 2;
}

enum nn_epilogue {
    NN_STORE = 0, /* c = y (float) */
    NN_ADD_GATED, /* c += gate[n] * y; gate NULL: c += y */
    NN_STORE_ACT, /* out = act(y) */
    NN_SILU_ACT,  /* out = act(silu(y)) */
};

#define NN_INT8_LEAST 0x1p-100f

/* Scale of a row q of integers: element i stands for q[i] * scale. */
struct nn_int8_row {
    float scale;
    int32_t sum; /* of q, for instructions that take one side as bytes without a sign */
};

/* y[m][n] = sum_k a[m][k] * w[n][k] + bias[n]; of integers:
 * y[m][n] = (float) (sum_k a[m][k] * w[n][k]) * (rows[m].scale * scale of w[n]) + bias[n], each
 * operation rounded. */
struct nn_gemm {
    uint32_t m, n, k;
    const void *a;                  /* act [m][lda]; gemm_int8: int8_t [m][lda] */
    size_t lda;                     /* elements */
    const struct nn_int8_row *rows; /* [m], gemm_int8 alone */
    const void *b;                  /* packed by pack() or pack_int8() */
    const float *bias;              /* [n] or NULL */
    enum nn_epilogue epilogue;
    const float *gate; /* [n] or NULL, NN_ADD_GATED */
    float *c;          /* [m][ldc], NN_STORE and NN_ADD_GATED */
    void *out;         /* act [m][ldc], NN_STORE_ACT and NN_SILU_ACT */
    size_t ldc;        /* elements */
};

/* 3 x 3 convolution with zero border: y = sum over dy, dx, c (in that order, inputs one after the
 * other) + bias + add, then y * (1 + scale) + shift, then silu. */
struct nn_conv {
    uint32_t rows, cols; /* cols a multiple of 16 */
    uint32_t in_count;   /* 1 or 2 input maps, concatenated channels */
    const void *in[2];   /* maps of in_channels each */
    uint32_t in_channels[2];
    uint32_t out_channels;
    const void *b;      /* packed: k = dy, dx, channel of all inputs ([out][3][3][in] as stored) */
    const float *bias;  /* [out_channels] */
    const float *add;   /* [rows][cols][out_channels] or NULL */
    const float *scale; /* [out_channels] or NULL, with shift */
    const float *shift;
    int silu;       /* nonzero: apply */
    void *out;      /* map of out_channels, or NULL */
    float *out_f32; /* [rows][cols][out_channels], or NULL; exactly one of the two */
};

/* Channels of all inputs. */
static inline uint32_t nn_conv_depth(uint32_t in_count, const uint32_t in_channels[2])
{
    return in_channels[0] + (in_count > 1 ? in_channels[1] : 0);
}

/* Rotary self-attention of some heads over one range of tokens. */
struct nn_attention {
    uint32_t tokens;     /* 1..NN_TOKENS_MAX, any number */
    uint32_t width;      /* d = heads * 32 */
    const float *qkv;    /* [tokens][3 d]: q, k, v */
    const float *cosine; /* [tokens][16] */
    const float *sine;
    void *out; /* act [tokens][d] */
};

/* Attention of every token over its own past. */
struct nn_temporal {
    uint32_t tokens, width, pages; /* pages 0..NN_PAGES_MAX, newest first */
    const float *q;                /* [tokens][d] */
    const void *k[NN_PAGES_MAX];   /* act [page tokens][d] of this layer */
    const void *v[NN_PAGES_MAX];
    const int16_t *index[NN_PAGES_MAX]; /* [tokens]: row in the page, -1: not there */
    const float *bias;                  /* [heads][bias_stride], by age - 1 */
    uint32_t bias_stride;
    const float *null_k; /* [d] */
    const float *null_v;
    void *out; /* act [tokens][d] */
    /* temporal_wide: not NULL: k and v are bytes of e4m3, times these [page tokens][kv_heads] */
    const float *k_scale[NN_PAGES_MAX];
    const float *v_scale[NN_PAGES_MAX];
};

/* Heads that the members above do not have: of another dimension, or with keys and values that
 * heads / kv_heads of them share. */
struct nn_heads {
    uint32_t heads, kv_heads, dim;
};

/* Attention of such heads, or over more tokens; q, k, v were turned and rounded by turn(). With
 * windows a token sees those of a grid at most `reach` rows and columns away, of the present and
 * then of each past frame, at most NN_WIDE_TOKENS_MAX together. */
struct nn_wide_attention {
    struct nn_heads heads;
    uint32_t tokens;                    /* 1..NN_WIDE_TOKENS_MAX, or any number with windows */
    const float *qkv;                   /* [tokens][(heads + 2 kv_heads) dim]: q, k, v */
    void *out;                          /* act [tokens][heads dim] */
    uint32_t cols, reach;               /* of the grid; cols 0: no windows */
    uint32_t pages;                     /* past frames, 0..NN_PAGES_MAX */
    const float *past[NN_PAGES_MAX];    /* [tokens][2 kv_heads dim] each: k, turned, and v */
    const int16_t *index[NN_PAGES_MAX]; /* [tokens] each; -1: the token is not there */
};

struct nn_counts {
    uint64_t not_finite;
    uint64_t saturated; /* |x| > NN_SATURATION */
};
#define NN_SATURATION 1.5f

struct nn_kernels {
    enum nn_precision precision;
    const char *name; /* "c", "avx2", "avx512", "avx512bf16", "amx"; of NN_INT8 that of its own
                         members: "c", "avx2", "avx512", "avx512vnni" */

    /* Weights w[n][k] (float) into this table's order; bytes by packed_bytes. */
    size_t (*packed_bytes)(uint32_t n, uint32_t k);
    void (*pack)(const float *w, uint32_t n, uint32_t k, void *out);

    void (*gemm)(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row);
    void (*conv3x3)(const struct nn_conv *c, uint32_t first_row, uint32_t end_row);

    /* NN_INT8 alone, NULL else. k at most NN_INT8_TERMS_MAX. */
    size_t (*packed_bytes_int8)(uint32_t n, uint32_t k);
    void (*pack_int8)(const float *w, uint32_t n, uint32_t k, void *out);
    /* Rows of k activations, one after the other, to integers: q [row][ldq]. */
    void (*to_int8)(const void *act, uint32_t k, int8_t *q, size_t ldq, struct nn_int8_row *rows,
                    uint32_t first_row, uint32_t end_row);
    void (*gemm_int8)(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row);

    /* conv3x3 with integers, NN_INT8 alone, NULL else. Each line of an input map, its border
     * included, has steps of its own: from the smallest to the largest of its elements and 0 it is
     * 254 steps, scale = (largest - smallest) / 254, and a is an element * (254 / (largest -
     * smallest)) rounded to nearest even. A line less than NN_INT8_LEAST wide is zero; one that is
     * not finite, or infinitely wide, is zero with scale NaN. total = fma((float) sum over dx, c of
     * a * w, scale of the line, total) for dy, then inputs, ascending, from 0; then total * scale
     * of w takes the place of the sum. b is packed by conv_pack_int8, w as stored, [n][3][3][in].
     * Channels from in_used on, a multiple of 4, have weights of zero whatever w says, but for the
     * scale: an input that is padded with zeros costs what it holds. */
    size_t (*conv_packed_bytes_int8)(uint32_t n, uint32_t in_count, const uint32_t in_channels[2]);
    void (*conv_pack_int8)(const float *w, uint32_t n, uint32_t in_count,
                           const uint32_t in_channels[2], const uint32_t in_used[2], void *out);
    void (*conv3x3_int8)(const struct nn_conv *c, uint32_t first_row, uint32_t end_row);

    /* out[r][i] = act(LN(x[r])[i] * (one + scale[i]) + shift[i]), one = 1 or 0. width a multiple of
     * 16; scale and shift NULL: plain LN. Mean and variance in 16 interleaved partial sums. */
    void (*norm)(const float *x, uint32_t width, float one, const float *scale, const float *shift,
                 void *out, uint32_t first_row, uint32_t end_row);

    void (*attention)(const struct nn_attention *a, uint32_t first_head, uint32_t end_head);
    void (*temporal)(const struct nn_temporal *t, uint32_t first_token, uint32_t end_token);

    /* Heads as struct nn_heads says; plain C alone. turn: rotary of q and k in place, q, k and v
     * rounded; cosine, sine [tokens][dim / 2]. temporal_wide: rows of q and out have heads * dim
     * numbers, those of k and v and the sink kv_heads * dim. */
    void (*turn)(const struct nn_heads *h, const float *cosine, const float *sine, float *qkv,
                 uint32_t first_token, uint32_t end_token);
    void (*attention_wide)(const struct nn_wide_attention *a, uint32_t first_head,
                           uint32_t end_head);
    void (*temporal_wide)(const struct nn_temporal *t, const struct nn_heads *h,
                          uint32_t first_token, uint32_t end_token);

    /* Products of e4m3, plain C alone; NULL in NN_FP32. Steps of a row as of whole numbers, with
     * 448 for 127; k at most NN_E4M3_TERMS_MAX. Chunks of 128 terms, ascending, each summed in 16
     * partial sums and then added; y = total * (rows[m].scale * scale of w[n]) + bias[n]. */
    size_t (*packed_bytes_e4m3)(uint32_t n, uint32_t k);
    void (*pack_e4m3)(const float *w, uint32_t n, uint32_t k, void *out);
    /* The same of numbers that are e4m3 already: bytes [n][k], none of them NaN, scales [n]. */
    void (*keep_e4m3)(const uint8_t *w, const float *scale, uint32_t n, uint32_t k, void *out);
    void (*to_e4m3)(const void *act, uint32_t k, int8_t *q, size_t ldq, struct nn_int8_row *rows,
                    uint32_t first_row, uint32_t end_row);
    void (*gemm_e4m3)(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row);
    /* Heads of keys or values as pages have them: rows of dim activations to bytes of e4m3 with a
     * scale each, the steps of to_e4m3; and back to what they stand for, not rounded. */
    void (*heads_to_e4m3)(const void *act, uint32_t dim, uint8_t *q, float *scale,
                          uint32_t first_row, uint32_t end_row);
    void (*heads_from_e4m3)(const uint8_t *q, uint32_t dim, const float *scale, float *out,
                            uint32_t first_row, uint32_t end_row);

    /* x[i] = silu(x[i]) in place; to_act converts. count any number. */
    void (*silu)(float *x, size_t count);
    void (*to_act)(const float *x, void *out, size_t count);

    /* Standardised sum of four bytes per element, see model.md; writes elements first .. first +
     * count - 1 to out[0..count - 1]; first a multiple of 4. */
    void (*noise)(uint64_t key, uint32_t tick, uint32_t stream, uint32_t first, uint32_t count,
                  float *out);

    /* One sampler step on [positions][channels] inside wider rows: x += (base + o - x) * weight;
     * x and base are [positions][channels], o is [positions][o_stride]. weight 1 gives base + o
     * exactly. */
    void (*euler)(float *x, const float *base, const float *o, size_t positions, uint32_t channels,
                  uint32_t o_stride, float weight);

    /* Latents to bytes (model.md); NaN and infinities become 128 and are counted. */
    void (*quantise)(const float *x, uint8_t *out, size_t count, struct nn_counts *counts);
};

/* The best variants that `flags` (enum cpu_flag) allows. */
void nn_kernels_init(struct nn_kernels *kernels, enum nn_precision precision, uint32_t flags);

#endif
