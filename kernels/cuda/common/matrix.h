/*
 * Launchers of products and of attention, part of kernels/cuda/common/kernels.h, whose rules hold
 * here. Batches here are `items` (slots) of the same shape at fixed strides, with a flag each that
 * leaves an item's output alone.
 */
#ifndef SWERVE_KERNELS_CUDA_COMMON_MATRIX_H
#define SWERVE_KERNELS_CUDA_COMMON_MATRIX_H

#include "kernels/cuda/common/kernels.h"
#include "kernels/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- products (gemm.cu) ---- */

enum gpu_tile {
    GPU_TILE_AUTO = 0, /* by size; bits are the same in all cases */
    GPU_TILE_FLAT,     /* 16 x 64 outputs per block */
    GPU_TILE_SMALL,    /* 64 x 64 */
    GPU_TILE_LARGE,    /* 128 x 128 */
};

/* y[item][row][n] = sum_k a[item][row][k] * b[n][k] (* a_scale[row] * b_scale[n]) + bias[n], then
 * the epilogue of kernels/nn.h. a and b are bf16 or fp8 e4m3; a row of a or b is a multiple of 16
 * bytes at a multiple of 16 bytes; n, ldc and c_item are even. `out` may not alias a. */
struct gpu_gemm {
    enum gpu_type type; /* GPU_BF16 or GPU_E4M3 */
    enum nn_epilogue epilogue;
    enum gpu_tile tile;
    uint32_t items, rows, n, k; /* items (slots) of `rows` rows each */
    const void *a;              /* element (item, row, k) at item * a_item + row * lda + k */
    size_t lda, a_item;
    const void *b;        /* [n][k], as stored */
    const float *a_scale; /* GPU_E4M3: [items * rows] */
    const float *b_scale; /* GPU_E4M3: [n] */
    const float *bias;    /* [n] or NULL */
    const float *gate;    /* NN_ADD_GATED: [n] of item i at i * gate_item, or NULL: 1 */
    size_t gate_item;
    float *c;  /* NN_STORE, NN_ADD_GATED; strides ldc, c_item */
    void *out; /* bf16, NN_STORE_ACT, NN_SILU_ACT; strides ldc, c_item */
    size_t ldc, c_item;
    const uint32_t *active; /* [items], 0: the item's output is left alone; NULL: all are */
    /* Not 0: on a warpgroup's tensor cores where it suits: GPU_E4M3, rows of `a` of all items
     * evenly spaced; for devices that gpu_wgmma_choose named. Other bits. */
    uint32_t wgmma;
};

void gpu_gemm_launch(const struct gpu_gemm *g, void *stream);

/* Launch of what suits (gemm_wgmma.cu). */
int gpu_gemm_wgmma_suits(const struct gpu_gemm *g);
void gpu_gemm_wgmma_launch(const struct gpu_gemm *g, void *stream);

/* ---- attention over tokens (attention.cu) ---- */

enum { GPU_RANGES_MAX = 8, GPU_PAGES_MAX = 16 };

struct gpu_range {
    uint32_t first, count; /* tokens; any number but 0 */
};

/* Keys and values of past frames, in pages of one arena. A page has k and v at the same offsets,
 * element (token, kv head, c) at token * kv_row + kv_head * head_dim + c;
 * fp8 pages also their scales, float [tokens][kv_heads]. Offsets are bytes, multiples of 16. */
struct gpu_pages {
    const uint8_t *arena;
    size_t page_bytes, k_offset, v_offset, k_scale_offset, v_scale_offset;
    const int32_t *table; /* [items][table_stride]: pages, newest first; -1: none */
    uint32_t table_stride;
};

/* Tokens of one image, `first` the one at its corner. rows 0: no window. */
struct gpu_grid {
    uint32_t first, rows, cols;
    uint32_t reach_rows, reach_cols; /* a token sees those at most so far away */
    uint32_t past;                   /* and in so many past frames, 0..GPU_PAGES_MAX */
};

/* Keys and values of past frames as windows take them (gpu_gather): a row for each token of the
 * present, kv_tokens of them for each of grid.past frames of each item, `row` elements apart. */
struct gpu_past {
    const void *k, *v; /* bf16 */
    size_t row;
    const int32_t *table; /* [items][stride], newest first; -1: no such frame */
    const int16_t
        *index; /* [items][stride][kv_tokens], -1: the token is not there; NULL: all are */
    uint32_t stride;
};

/* Softmax attention, q . k / sqrt(head_dim), of `heads` query heads that share `kv_heads` heads of
 * keys and values (heads a multiple of kv_heads; head h uses h * kv_heads / heads). Head h of token
 * t of item i is at i * item + t * row + h * head_dim of q, k, v and out, in elements; rows are
 * multiples of 16 bytes (of out: 4). All are bf16; queries and keys were turned before
 * (gpu_rotate). Softmax weights are rounded to bf16; sums are float. The bits of a token's output
 * depend on what it attends to alone; but a window's keys come in squares of 8 x 8, and a NaN or
 * infinite value reaches all that see its square. */
struct gpu_attention {
    uint32_t items, heads, kv_heads, head_dim; /* head_dim 32, 64 or 128 */
    /* Either ranges, within which tokens attend, or a window: grid.rows != 0. */
    uint32_t range_count;
    struct gpu_range range[GPU_RANGES_MAX];
    struct gpu_grid grid;
    struct gpu_past past; /* where grid.past != 0 */
    const void *q, *k, *v;
    size_t q_row, q_item, kv_row, kv_item;
    uint32_t kv_tokens;
    void *out; /* bf16 */
    size_t out_row, out_item;
    const uint32_t *active; /* [items] or NULL, as in gpu_gemm */
    /* Not 0: on a warpgroup's tensor cores where it suits: ranges, head_dim 128; for devices that
     * gpu_wgmma_choose named. Other bits, the same tolerance. */
    uint32_t wgmma;
};

void gpu_attention_launch(const struct gpu_attention *a, void *stream);

/* Launch by gpu_attention_launch of what suits (attention_wgmma.cu). */
int gpu_attention_wgmma_suits(const struct gpu_attention *a);
void gpu_attention_wgmma_launch(const struct gpu_attention *a, void *stream);

/* Whether attention and fp8 products on the present device should ask for wgmma (wgmma_choice.cu):
 * runs both kernels of each on fixed inputs and compares, attention's outputs of up to 1, products
 * in units of the root of the mean square. Returns 1 or 0, or -1 where it could not be tried, as
 * for want of memory; `why` gets a sentence in any case. Waits for the stream, which must not be
 * captured. */
struct device_text;
#define GPU_WGMMA_TOLERANCE 0.01f /* attention's two roundings to bf16; fp8 sums of 14 bits */
int gpu_wgmma_choose(float tolerance, void *stream, struct device_text *why);

/* Whether the machine code that the present device runs has products of e4m3 on mma.sync: 1 or 0.
 * Returns a cudaError_t. Waits for the device. */
int gpu_e4m3_there(uint32_t *there);

/* ---- attention over the past (temporal.cu) ---- */

/* struct nn_temporal on the device: every token over the same place in at most 16 pages, with a
 * bias by age and a learned sink. Head dimension, heads and layouts as in gpu_attention. */
struct gpu_temporal {
    enum gpu_type q_type;  /* GPU_F32 or GPU_BF16 */
    enum gpu_type kv_type; /* GPU_BF16 or GPU_E4M3 */
    uint32_t items, tokens, heads, kv_heads, head_dim;
    uint32_t page_count; /* entries of the table that are looked at, 0..GPU_PAGES_MAX */
    const void *q;
    size_t q_row, q_item;
    struct gpu_pages pages;
    size_t kv_row;        /* elements between tokens of a page */
    const int16_t *index; /* [items][page_count][tokens]: row in the page, -1: not there; NULL: t */
    const float *bias;    /* [heads][bias_stride] by place in the table, or NULL */
    uint32_t bias_stride;
    const float *null_k; /* [kv_heads * head_dim], or NULL: no sink */
    const float *null_v;
    void *out; /* bf16; 0 where a token has no past and no sink; rows of 16 bytes */
    size_t out_row, out_item;
    const uint32_t *active; /* [items] or NULL, as in gpu_gemm */
};

void gpu_temporal_launch(const struct gpu_temporal *t, void *stream);

/* ---- rows between products (rows.cu): width a multiple of 4 ---- */

/* x = x_in + gate * y, and of the sum out = LN(x) * (one + scale) + shift, eps 1e-6. x may be x_in.
 */
struct gpu_residual {
    uint32_t rows, width;          /* at most 6144 */
    enum gpu_type in_type, x_type; /* GPU_F32 or GPU_BF16 */
    const void *x_in;              /* [rows][width]; may be x where the types are the same */
    void *x;
    const void *y;     /* bf16 [rows][width] */
    const float *gate; /* gate[group * group_stride + column], as scale and shift; NULL: 1 */
    float one;         /* 1 or 0 */
    const float *scale, *shift;
    uint32_t group_rows;    /* rows that share gate, scale, shift; not 0 */
    size_t group_stride;    /* floats */
    enum gpu_type out_type; /* GPU_BF16 or GPU_E4M3 */
    void *out;              /* [rows][width], or NULL: no norm */
    float *row_scale;       /* GPU_E4M3: [rows], largest magnitude / 448, 1 for a row of zeros */
};
void gpu_residual_launch(const struct gpu_residual *r, void *stream);

/* A row of gpu_residual and of gpu_activate is a block's: so many warps, each thread with as many
 * vectors of four columns as the row needs, rounded up to what there is a kernel for. */
enum { GPU_ROW_WARPS = 8, GPU_ROW_COLUMNS = GPU_ROW_WARPS * 32 * 4 };
static inline uint32_t gpu_residual_vectors(uint32_t width)
{
    return width <= GPU_ROW_COLUMNS ? 1 : width <= 3 * GPU_ROW_COLUMNS ? 3 : 6;
}
static inline uint32_t gpu_activate_vectors(uint32_t width)
{
    return width <= GPU_ROW_COLUMNS       ? 1
           : width <= 3 * GPU_ROW_COLUMNS ? 3
           : width <= 9 * GPU_ROW_COLUMNS ? 9
                                          : 12;
}

/* out = x or silu(x). out may be x where out_type is GPU_BF16. */
struct gpu_activate {
    uint32_t rows, width;   /* at most 12288 */
    const void *x;          /* bf16 [rows][width] */
    uint32_t silu;          /* 0: only quantised */
    enum gpu_type out_type; /* GPU_BF16 or GPU_E4M3 */
    void *out;
    float *row_scale; /* as in gpu_residual */
};
void gpu_activate_launch(const struct gpu_activate *a, void *stream);

/* Rotary turn of the first `heads` heads of each row: of pairs (2 p, 2 p + 1), in float, before
 * they are rounded. The numbers behind them are rounded alone. */
struct gpu_rotate {
    uint32_t rows, heads, head_dim; /* head_dim a multiple of 8 */
    uint32_t width;                 /* of a row, at least heads * head_dim, a multiple of 8 */
    enum gpu_type type;             /* of x: GPU_F32 or GPU_BF16 */
    const void *x;                  /* rows `row` elements apart, of out too */
    size_t row;
    void *out;                  /* bf16; may be x where that is bf16 */
    const float *cosine, *sine; /* [rows][head_dim / 2] */
};
void gpu_rotate_launch(const struct gpu_rotate *r, void *stream);

/* Rows of past frames for windows (struct gpu_past): of each token of the present the row of the
 * page that the index names, its keys turned by the token's angles; zeros where there is none. */
struct gpu_gather {
    uint32_t items, tokens, heads, head_dim; /* head_dim a multiple of 8 */
    uint32_t page_count;                     /* frames, the newest first */
    struct gpu_pages pages;                  /* rows of heads * head_dim, .. */
    enum gpu_type type;                      /* .. GPU_BF16 or GPU_E4M3 */
    const int16_t *index;                    /* [items][pages.table_stride][tokens] */
    const float *cosine, *sine;              /* [items][tokens][head_dim / 2] */
    void *out;              /* bf16 [items][page_count][tokens][2 heads * head_dim]: keys, values */
    const uint32_t *active; /* [items] or NULL, as in gpu_gemm */
};
void gpu_gather_launch(const struct gpu_gather *g, void *stream);

/* Keys, then values, of a row of kv (`heads` heads each) to a page of struct gpu_pages, kv_row of
 * which is heads * head_dim; in e4m3 with a scale per token and head. */
struct gpu_page_store {
    uint32_t rows, heads, head_dim; /* head_dim a multiple of 4, at most 128 */
    const void *kv;                 /* bf16, rows kv_row elements apart */
    size_t kv_row;
    enum gpu_type type; /* GPU_BF16 or GPU_E4M3 */
    uint8_t *arena;
    size_t page_bytes, k_offset, v_offset, k_scale_offset, v_scale_offset;
    const int32_t *page; /* in device memory: which page; -1: none is written */
};
void gpu_page_store_launch(const struct gpu_page_store *p, void *stream);

/* ---- what goes into and comes out of an exchange of heads (all_to_all.cu) ---- */

/* Rows of q, k and v heads side by side -> one part per rank, each with its share of q, k and v
 * heads side by side: in [tokens][heads + 2 kv_heads][head_dim] ->
 * out [ranks][tokens][(heads + 2 kv_heads) / ranks][head_dim], bf16. */
struct gpu_heads_out {
    uint32_t ranks, tokens, heads, kv_heads, head_dim;
    const void *in;
    void *out;
};
void gpu_heads_out_launch(const struct gpu_heads_out *h, void *stream);

/* The way back: in [ranks][tokens][heads / ranks][head_dim] -> out [tokens][heads][head_dim]. */
struct gpu_heads_in {
    uint32_t ranks, tokens, heads, head_dim;
    const void *in;
    void *out;
};
void gpu_heads_in_launch(const struct gpu_heads_in *h, void *stream);

#ifdef __cplusplus
}
#endif

#endif
