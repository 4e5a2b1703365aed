/*
 * Softmax attention on tensor cores, the part that all patterns of attention.cu share: one pass
 * over the keys with a running maximum and sum (Dao, FlashAttention-2, 2023), so nothing of size
 * tokens x tokens is ever stored. Private to attention.cu.
 *
 * A block of four warps takes 64 queries of one head, a warp 16 of them. A *walk* names, one after
 * the other, tiles of 64 tokens: where each of their rows lies, if it is there at all, and which
 * query sees it. Tile shapes and order are fixed by the pattern, so a query's bits depend on what
 * it sees alone.
 *
 * Queries are kept in registers as operands. Keys and values come by cp.async into two stages, the
 * next tile under way while this one is used.
 */
#ifndef SWERVE_KERNELS_CUDA_COMMON_FLASH_CUH
#define SWERVE_KERNELS_CUDA_COMMON_FLASH_CUH

#include "kernels/cuda/common/gpu.h"
#include "kernels/cuda/common/matrix.h"

enum {
    TILE = 64,     /* queries per block and keys per step */
    TILE_SIDE = 8, /* of a tile of a grid: 8 x 8 */
    WARPS = 4,
    THREADS = WARPS * 32,
    PIECE = 8, /* numbers that a thread loads at a time */
};

#define LOG2E 1.4426950408889634f

/* Bytes of shared memory, and what is where in it. */
template <int dim> struct layout {
    static constexpr int pitch = dim + 8; /* 16 bytes more, so that 8 rows miss each other */
    static constexpr int tile = TILE * pitch;
    static constexpr int bytes = 2 * 2 * tile * 2; /* stages of keys and values */
};

struct place {
    uint32_t item, head, kv_head;
};

/* 64 tokens: consecutive ones (pitch 0), or a square of 8 x 8 of a grid. */
struct tile_rows {
    uint32_t first;       /* token of the tile's row 0 */
    uint32_t count;       /* consecutive: how many are there, may exceed 64 */
    uint32_t pitch;       /* square: tokens from one of its rows to the next */
    uint32_t rows, cols;  /* square: so many are in the grid, 1 to 8 */
    uint32_t corner[2];   /* square: row and column in the grid */
    bool whole;           /* square of keys: all of it is there, and seen by every query */
    const int16_t *there; /* of keys: by token, -1: it is not there; NULL: all are */
};

/* Whether row `row` of the tile is there, and which token it is. */
GPU_FN bool tile_find(const struct tile_rows &t, uint32_t row, uint32_t *token)
{
    if (t.pitch == 0) {
        *token = t.first + row;
        return row < t.count;
    }
    uint32_t y = row / TILE_SIDE;
    uint32_t x = row % TILE_SIDE;
    *token = t.first + y * t.pitch + x;
    return y < t.rows && x < t.cols;
}

/* Keys and values of a tile: head 0 of token 0, rows of tokens so far apart. */
struct key_tile {
    struct tile_rows rows;
    const uint16_t *k, *v;
    size_t row;
};

/* Queries of a tile into shared memory; zeros where no token is. */
template <int dim>
GPU_FN void fill_queries(const struct gpu_attention &a, const struct place &at,
                         const struct tile_rows &rows, uint16_t *tile)
{
    const uint16_t *from =
        static_cast<const uint16_t *>(a.q) + at.item * a.q_item + (size_t)at.head * dim;
    for (uint32_t i = threadIdx.x; i < TILE * (dim / PIECE); i += THREADS) {
        uint32_t row = i / (dim / PIECE);
        uint32_t column = i % (dim / PIECE) * PIECE;
        uint32_t token;
        uint4 bits = {};
        if (tile_find(rows, row, &token)) {
            bits = *reinterpret_cast<const uint4 *>(from + token * a.q_row + column);
        }
        *reinterpret_cast<uint4 *>(tile + row * layout<dim>::pitch + column) = bits;
    }
}

/* Starts the copies of a tile's keys and values. */
template <int dim>
GPU_FN void start_copy(const struct place &at, const struct key_tile &tile, uint16_t *keys,
                       uint16_t *values)
{
    for (uint32_t i = threadIdx.x; i < TILE * (dim / PIECE); i += THREADS) {
        uint32_t row = i / (dim / PIECE);
        uint32_t column = i % (dim / PIECE) * PIECE;
        uint32_t token;
        bool inside = tile_find(tile.rows, row, &token);
        size_t from = inside ? token * tile.row + (size_t)at.kv_head * dim + column : 0;
        uint32_t to = row * layout<dim>::pitch + column;
        gpu_copy_async(keys + to, tile.k + from, inside);
        gpu_copy_async(values + to, tile.v + from, inside);
    }
}

/* Share that a thread holds of its warp's 16 queries: rows lane / 4 and 8 below, and of each 8
 * columns the two at 2 (lane % 4). */
template <int dim> struct running {
    uint32_t query[dim / 16][4];
    float out[dim / 8][4];
    float maximum[2], sum[2]; /* maximum of logits times log2 e */
};

/* Row of the tile of queries that half `half` of this thread's numbers belongs to. */
GPU_FN uint32_t query_row(int half)
{
    return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + half * 8;
}

/* Logits of 16 queries and 64 keys, times log2 e / sqrt(dim); -inf where the query does not see
 * the key. */
template <int dim, class walk>
GPU_FN void compute_logits(const struct running<dim> &r, const walk &w,
                           const struct tile_rows &rows, const uint16_t *keys,
                           float logits[TILE / 8][4])
{
    const uint32_t lane = threadIdx.x % 32;
    const float scale = LOG2E * rsqrtf((float)dim);
    const auto there = w.look(rows);
#pragma unroll
    for (int n = 0; n < TILE / 8; n++) {
        float dot[4] = {};
#pragma unroll
        for (int k = 0; k < dim / 16; k += 2) {
            uint32_t four[4]; /* keys n * 8 .., columns k * 16 .. k * 16 + 31 */
            gpu_ldmatrix_x4(four, keys + (n * 8 + lane % 8) * (dim + 8) + k * 16 + lane / 8 * 8);
            gpu_mma_bf16(dot, r.query[k], four);
            gpu_mma_bf16(dot, r.query[k + 1], four + 2);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            uint32_t key = n * 8 + lane % 4 * 2 + j % 2;
            logits[n][j] = w.sees(j / 2, rows, there, n, key) ? dot[j] * scale : -INFINITY;
        }
    }
}

/* Logits become weights 2^(logit - maximum); what was summed so far is brought to the new maximum.
 * A maximum of -inf (none was finite) counts as 0, so that weights are 0 and not NaN: a row that
 * never sees a finite logit ends as 0 / 0. */
template <int dim> GPU_FN void update_softmax(struct running<dim> &r, float logits[TILE / 8][4])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float maximum = r.maximum[half];
#pragma unroll
        for (int n = 0; n < TILE / 8; n++) {
            maximum = fmaxf(maximum, fmaxf(logits[n][2 * half], logits[n][2 * half + 1]));
        }
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFFu, maximum, 1));
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFFu, maximum, 2));
        float from = maximum == -INFINITY ? 0.0f : maximum;
        float shrink = gpu_exp2(r.maximum[half] - from);
        r.maximum[half] = maximum;
        r.sum[half] *= shrink;
#pragma unroll
        for (int n = 0; n < dim / 8; n++) {
            r.out[n][2 * half] *= shrink;
            r.out[n][2 * half + 1] *= shrink;
        }
#pragma unroll
        for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
            for (int j = 2 * half; j < 2 * half + 2; j++) {
                logits[n][j] = gpu_exp2(logits[n][j] - from);
                r.sum[half] += logits[n][j];
            }
        }
    }
}

/* out += weights * values: the weights' registers are already laid out as an operand. */
template <int dim>
GPU_FN void add_values(struct running<dim> &r, const uint16_t *values,
                       const float weights[TILE / 8][4])
{
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < TILE / 16; k++) {
        uint32_t operand[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int n = 2 * k + i / 2;
            operand[i] = gpu_pack_bf16(weights[n][i % 2 * 2], weights[n][i % 2 * 2 + 1]);
        }
#pragma unroll
        for (int n = 0; n < dim / 8; n += 2) {
            uint32_t four[4]; /* keys k * 16 .. + 15, columns n * 8 .. n * 8 + 15, transposed */
            gpu_ldmatrix_x4_transposed(four, values + (k * 16 + lane % 16) * (dim + 8) +
                                                 (n + lane / 16) * 8);
            gpu_mma_bf16(r.out[n], operand, four);
            gpu_mma_bf16(r.out[n + 1], operand, four + 2);
        }
    }
}

/* One tile of keys, all in shared memory. */
template <int dim, class walk>
GPU_FN void use_tile(struct running<dim> &r, const walk &w, const struct tile_rows &rows,
                     const uint16_t *keys, const uint16_t *values)
{
    float logits[TILE / 8][4];
    compute_logits<dim>(r, w, rows, keys, logits);
    update_softmax<dim>(r, logits);
    add_values<dim>(r, values, logits);
}

/* Queries of this block to registers, by way of `tile`, which is free again afterwards. */
template <int dim>
GPU_FN void load_queries(const struct gpu_attention &a, const struct place &at,
                         const struct tile_rows &rows, uint16_t *tile, struct running<dim> &r)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = threadIdx.x / 32;
    fill_queries<dim>(a, at, rows, tile);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < dim / 16; k++) {
        gpu_ldmatrix_x4(r.query[k],
                        tile + (warp * 16 + lane % 16) * (dim + 8) + k * 16 + lane / 16 * 8);
    }
#pragma unroll
    for (int n = 0; n < dim / 8; n++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            r.out[n][j] = 0.0f;
        }
    }
    r.maximum[0] = r.maximum[1] = -INFINITY;
    r.sum[0] = r.sum[1] = 0.0f;
    __syncthreads();
}

/* Which range block number `block` of a grid over `size` queries each works on; *tile becomes its
 * number within the range. */
GPU_FN struct gpu_range range_of_block(const struct gpu_attention &a, uint32_t block, uint32_t size,
                                       uint32_t *tile)
{
    for (uint32_t i = 0; i < a.range_count; i++) {
        uint32_t count = (a.range[i].count + size - 1) / size;
        if (block < count) {
            *tile = block;
            return a.range[i];
        }
        block -= count;
    }
    *tile = 0;
    return {};
}

template <int dim>
GPU_FN void store_out(const struct gpu_attention &a, const struct place &at,
                      const struct tile_rows &rows, const struct running<dim> &r)
{
    uint16_t *out = static_cast<uint16_t *>(a.out);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = r.sum[half];
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        float inverse = 1.0f / sum;
        uint32_t token;
        if (tile_find(rows, query_row(half), &token)) {
            size_t to = at.item * a.out_item + token * a.out_row + (size_t)at.head * dim +
                        threadIdx.x % 4 * 2;
#pragma unroll
            for (int n = 0; n < dim / 8; n++) {
                *reinterpret_cast<uint32_t *>(out + to + n * 8) =
                    gpu_pack_bf16(r.out[n][2 * half] * inverse, r.out[n][2 * half + 1] * inverse);
            }
        }
    }
}

/* ---- the walk over the keys ---- */

template <int dim, class walk>
GPU_FN void walk_keys(const struct place &at, walk &w, uint16_t *tiles, struct running<dim> &r)
{
    using l = layout<dim>;
    auto start = [&](const struct key_tile &tile, uint32_t stage) {
        uint16_t *keys = tiles + stage * 2 * l::tile;
        start_copy<dim>(at, tile, keys, keys + l::tile);
    };
    struct key_tile tile = {}, coming = {};
    bool more = w.next(&tile);
    if (more) {
        start(tile, 0);
    }
    gpu_copy_commit();
    for (uint32_t stage = 0; more; stage ^= 1) {
        more = w.next(&coming);
        if (more) {
            start(coming, stage ^ 1);
        }
        gpu_copy_commit();
        gpu_copy_wait<1>();
        uint16_t *keys = tiles + stage * 2 * l::tile;
        __syncthreads();
        use_tile<dim>(r, w, tile.rows, keys, keys + l::tile);
        __syncthreads(); /* before the stage is filled again */
        tile = coming;
    }
    gpu_copy_wait<0>();
}

/* A block's whole work: queries of `rows`, the keys that the walk names, the outputs. */
template <int dim, class walk>
GPU_FN void attend(const struct gpu_attention &a, const struct place &at,
                   const struct tile_rows &rows, walk &w, uint16_t *tiles)
{
    struct running<dim> r;
    load_queries<dim>(a, at, rows, tiles, r);
    walk_keys<dim>(at, w, tiles, r);
    store_out<dim>(a, at, rows, r);
}

GPU_FN struct place place_of(const struct gpu_attention &a, uint32_t head, uint32_t item)
{
    struct place at;
    at.item = item;
    at.head = head;
    at.kv_head = head / (a.heads / a.kv_heads);
    return at;
}

#endif
