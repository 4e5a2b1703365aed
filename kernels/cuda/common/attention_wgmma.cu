/*
 * Attention of tokens within ranges on the tensor cores of Hopper's warpgroups, for heads of 128
 * numbers. The other shapes and GPUs are attention.cu's, whose formulas, rounding and tolerance are
 * these; one pass over the keys with a running maximum and sum (Shah et al., FlashAttention-3,
 * 2024), the softmax of a tile beside the values' product of the last.
 *
 * A block of two warpgroups takes 128 queries of one head, a warpgroup 64 of them. Keys and values
 * come by cp.async in tiles of 128, two stages each; step j of the walk, behind one barrier, reads
 * keys j and values j - 1 while keys j + 1 and values j are on their way. Tiles begin where the
 * range does, so a query's bits depend on what it sees alone. Layouts in shared memory: gpu.h,
 * products of a warpgroup.
 */
#include "kernels/cuda/common/flash.cuh"

enum {
    GROUP = 128, /* threads of a warpgroup, and numbers of a head */
    GROUPS = 2,
    BLOCK = GROUP * GROUPS,
    GROUP_QUERIES = 64,
    QUERIES = GROUP_QUERIES * GROUPS,
    KEYS = 128,                         /* per step */
    HEAD = GROUP,                       /* numbers of a head */
    PIECES = HEAD / PIECE,              /* of 16 bytes, of a row */
    TILE_BYTES = 2 * WGMMA_PANEL_BYTES, /* 128 rows of queries, keys or values */
    STAGES = 2,
    ALIGNMENT = 1024,
    SHARED_BYTES = ALIGNMENT + (1 + 2 * STAGES) * TILE_BYTES,
};

/* Share of a warpgroup's thread: of each eight columns two numbers of two rows (gpu.h). */
struct wide {
    float logits[KEYS / 2];
    float out[HEAD / 2];
    uint32_t weight[KEYS / 16][4]; /* operands */
    float maximum[2], sum[2];      /* of logits as products; of this thread's weights */
    float shrink[2];               /* of what was summed before this tile */
};

/* A thread's copies of a range's keys or values, tile after tile: the same 16 bytes of each
 * sixteenth row. */
struct walk {
    const uint16_t *from; /* its first row of the next tile */
    size_t next;          /* numbers from one of its rows to the one after it */
    int32_t there;        /* rows of the range from there on */
    uint32_t place;       /* in a tile */
};

enum { ROWS_AT_ONCE = BLOCK / PIECES, WALK_BYTES = ROWS_AT_ONCE * WGMMA_ROW_BYTES };
static_assert(ROWS_AT_ONCE % 8 == 0, "a thread's rows lie alike in the swizzle");

/* `first`: the head's first number of row 0. */
GPU_FN struct walk walk_begin(const uint16_t *first, size_t row_numbers, uint32_t rows)
{
    const uint32_t row = threadIdx.x / PIECES;
    const uint32_t piece = threadIdx.x % PIECES;
    return {first + row * row_numbers + piece * PIECE, ROWS_AT_ONCE * row_numbers,
            (int32_t)(rows - row), wgmma_tile_place(row, piece)};
}

/* Starts the copy of the next 128 rows, zeros behind the range, to a tile. */
GPU_FN void walk_on(struct walk &w, uint8_t *tile)
{
#pragma unroll
    for (int32_t i = 0; i < KEYS / ROWS_AT_ONCE; i++) {
        gpu_copy_async(tile + w.place + i * WALK_BYTES, w.from, i * ROWS_AT_ONCE < w.there);
        w.from += w.next;
    }
    w.there -= KEYS;
}

/* Queries; zeros where no token is. */
GPU_FN void fill_wide(const struct gpu_attention &a, const struct place &at, uint32_t first,
                      uint32_t there, uint8_t *tile)
{
    const uint32_t piece = threadIdx.x % PIECES;
    for (uint32_t row = threadIdx.x / PIECES; row < QUERIES; row += BLOCK / PIECES) {
        uint4 bits = {};
        if (row < there) {
            bits = *reinterpret_cast<const uint4 *>(
                static_cast<const uint16_t *>(a.q) + at.item * a.q_item +
                (size_t)(first + row) * a.q_row + (size_t)at.head * HEAD + piece * PIECE);
        }
        *reinterpret_cast<uint4 *>(tile + wgmma_tile_place(row, piece)) = bits;
    }
}

/* Of 64 queries and 128 keys, in flight on return. */
GPU_FN void start_logits(struct wide &w, const uint8_t *queries, const uint8_t *keys)
{
#pragma unroll
    for (uint32_t k = 0; k < HEAD / 16; k++) {
        uint32_t step = wgmma_step_k_major(k);
        uint64_t a = gpu_wgmma_tile(queries + step, 16, WGMMA_ROWS_BYTES);
        uint64_t b = gpu_wgmma_tile(keys + step, 16, WGMMA_ROWS_BYTES);
        if (k == 0) {
            gpu_wgmma<false>(w.logits, a, b);
        } else {
            gpu_wgmma<true>(w.logits, a, b);
        }
    }
    gpu_wgmma_commit();
}

/* out += weights values, in flight on return. */
GPU_FN void start_values(struct wide &w, const uint8_t *values)
{
#pragma unroll
    for (uint32_t k = 0; k < KEYS / 16; k++) {
        uint64_t b =
            gpu_wgmma_tile(values + wgmma_step_mn_major(k), WGMMA_PANEL_BYTES, WGMMA_ROWS_BYTES);
        gpu_wgmma_values<true>(w.out, w.weight[k], b);
    }
    gpu_wgmma_commit();
}

/* Logits to weights 2^(scale (logit - maximum)), and how what was summed before shrinks. Keys from
 * `there` on are not seen. A maximum of -inf counts as 0, as in flash.cuh. */
GPU_FN void update_weights(struct wide &w, uint32_t there)
{
    const float scale = LOG2E * rsqrtf((float)HEAD);
    if (there < KEYS) {
#pragma unroll
        for (uint32_t i = 0; i < KEYS / 2; i++) {
            uint32_t key = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
            w.logits[i] = key < there ? w.logits[i] : -INFINITY;
        }
    }
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        float maximum = w.maximum[half];
#pragma unroll
        for (uint32_t i = 2 * half; i < KEYS / 2; i += 4) {
            maximum = fmaxf(maximum, fmaxf(w.logits[i], w.logits[i + 1]));
        }
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFFu, maximum, 1));
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFFu, maximum, 2));
        float from = maximum == -INFINITY ? 0.0f : maximum * scale;
        w.shrink[half] = gpu_exp2(fmaf(w.maximum[half], scale, -from));
        w.maximum[half] = maximum;
        w.sum[half] *= w.shrink[half];
#pragma unroll
        for (uint32_t i = 2 * half; i < KEYS / 2; i += 4) {
            w.logits[i] = gpu_exp2(fmaf(w.logits[i], scale, -from));
            w.logits[i + 1] = gpu_exp2(fmaf(w.logits[i + 1], scale, -from));
            w.sum[half] += w.logits[i] + w.logits[i + 1];
        }
    }
}

/* A barrier of the warpgroup on sums that are never negative: all weights are computed before it,
 * hence before the wait behind it. Else the assembler, which sees no use of the values' product in
 * the softmax and none of the softmax in the wait, moves the wait ahead of the softmax: then
 * nothing is computed beside the product. */
GPU_FN void weights_are_there(const struct wide &w)
{
    const int own = 1 + (int)(threadIdx.x / GROUP);
    (void)gpu_barrier_any(own, GROUP, w.sum[0] < 0.0f || w.sum[1] < 0.0f);
}

/* Rescaling of earlier sums to the new maximum. */
GPU_FN void shrink_out(struct wide &w)
{
#pragma unroll
    for (uint32_t i = 0; i < HEAD / 2; i++) {
        w.out[i] *= w.shrink[i / 2 % 2];
    }
}

/* Sums' registers are laid out as operands are. */
GPU_FN void pack_weights(struct wide &w)
{
#pragma unroll
    for (uint32_t i = 0; i < KEYS / 4; i++) {
        w.weight[i / 4][i % 4] = gpu_pack_bf16(w.logits[2 * i], w.logits[2 * i + 1]);
    }
}

GPU_FN void store_wide(const struct gpu_attention &a, const struct place &at, uint32_t first,
                       uint32_t there, const struct wide &w)
{
    const uint32_t own = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    uint16_t *out = static_cast<uint16_t *>(a.out);
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        float sum = w.sum[half];
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        float inverse = 1.0f / sum;
        uint32_t row = own + 8 * half;
        if (row < there) {
            size_t to = at.item * a.out_item + (size_t)(first + row) * a.out_row +
                        (size_t)at.head * HEAD + threadIdx.x % 4 * 2;
#pragma unroll
            for (uint32_t n = 0; n < HEAD / 8; n++) {
                *reinterpret_cast<uint32_t *>(out + to + n * 8) = gpu_pack_bf16(
                    w.out[4 * n + 2 * half] * inverse, w.out[4 * n + 2 * half + 1] * inverse);
            }
        }
    }
}

/* The copies of the last step have come, for every thread and for products. */
GPU_FN void meet_tiles(void)
{
    gpu_copy_wait<0>();
    gpu_proxy_fence();
    __syncthreads();
}

/* 128 queries from `row` of the range on, over all of its keys. */
GPU_FN void attend_wide(const struct gpu_attention &a, const struct place &at,
                        const struct gpu_range &range, uint32_t row, uint8_t *tiles)
{
    const size_t offset = at.item * a.kv_item + range.first * a.kv_row + (size_t)at.kv_head * HEAD;
    struct walk k = walk_begin(static_cast<const uint16_t *>(a.k) + offset, a.kv_row, range.count);
    struct walk v = walk_begin(static_cast<const uint16_t *>(a.v) + offset, a.kv_row, range.count);
    uint8_t *keys = tiles + TILE_BYTES;
    uint8_t *values = keys + STAGES * TILE_BYTES;
    const uint8_t *queries = tiles + threadIdx.x / GROUP * GROUP_QUERIES * 128;
    const uint32_t steps = (range.count + KEYS - 1) / KEYS;
    auto start = [&](struct walk &from, uint32_t step, uint8_t *ring) {
        if (step < steps) {
            walk_on(from, ring + step % STAGES * TILE_BYTES);
        }
    };
    struct wide w;
#pragma unroll
    for (uint32_t i = 0; i < HEAD / 2; i++) {
        w.out[i] = 0.0f;
    }
    w.maximum[0] = w.maximum[1] = -INFINITY;
    w.sum[0] = w.sum[1] = 0.0f;
    start(k, 0, keys);
    gpu_copy_commit();
    fill_wide(a, at, range.first + row, range.count - row, tiles);
    meet_tiles();
    start(k, 1, keys);
    start(v, 0, values);
    gpu_copy_commit();
    gpu_wgmma_fence();
    start_logits(w, queries, keys);
    gpu_wgmma_wait<0>();
    gpu_wgmma_hold(w.logits);
    update_weights(w, range.count);
    pack_weights(w);
    for (uint32_t step = 1; step < steps; step++) {
        meet_tiles();
        start(k, step + 1, keys);
        start(v, step, values);
        gpu_copy_commit();
        gpu_wgmma_hold(w.out);
        gpu_wgmma_fence();
        start_logits(w, queries, keys + step % STAGES * TILE_BYTES);
        start_values(w, values + (step - 1) % STAGES * TILE_BYTES);
        gpu_wgmma_wait<1>();
        gpu_wgmma_hold(w.logits);
        update_weights(w, range.count - step * KEYS);
        weights_are_there(w);
        gpu_wgmma_wait<0>();
        gpu_wgmma_hold(w.out);
        shrink_out(w);
        pack_weights(w);
    }
    meet_tiles();
    gpu_wgmma_hold(w.out);
    gpu_wgmma_fence();
    start_values(w, values + (steps - 1) % STAGES * TILE_BYTES);
    gpu_wgmma_wait<0>();
    gpu_wgmma_hold(w.out);
    store_wide(a, at, range.first + row, range.count - row, w);
}

/* Grid: x over tiles of queries of all ranges, y over heads, z over items. */
static __global__ void __launch_bounds__(BLOCK, 1) wide_kernel(const struct gpu_attention a)
{
    SHARED_DYNAMIC(uint8_t, room);
    if (a.active != NULL && a.active[blockIdx.z] == 0) {
        return;
    }
    uint32_t tile;
    const struct gpu_range range = range_of_block(a, blockIdx.x, QUERIES, &tile);
    uint32_t beyond = gpu_shared_address(room) % ALIGNMENT;
    attend_wide(a, place_of(a, blockIdx.y, blockIdx.z), range, tile * QUERIES,
                room + (ALIGNMENT - beyond) % ALIGNMENT);
}

extern "C" int gpu_attention_wgmma_suits(const struct gpu_attention *a)
{
    return a->head_dim == HEAD && a->grid.rows == 0;
}

extern "C" void gpu_attention_wgmma_launch(const struct gpu_attention *a, void *stream)
{
    uint32_t tiles = 0;
    for (uint32_t i = 0; i < a->range_count; i++) {
        tiles += (a->range[i].count + QUERIES - 1) / QUERIES;
    }
    if (tiles != 0 && a->items != 0) {
        LAUNCH_DYNAMIC(wide_kernel, dim3(tiles, a->heads, a->items), BLOCK, SHARED_BYTES, stream,
                       *a);
    }
}
