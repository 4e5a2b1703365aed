/*
 * The fp8 product of gemm.cu on the tensor cores of Hopper's warpgroups, where e4m3 is computed as
 * it is: through mma.sync it is converted first. The same order and scales: chunks of 128 numbers
 * of k, ascending, each summed on its own and then added in full single precision; an output's bits
 * depend on its own row and channel alone.
 *
 * A block of two warpgroups takes 128 rows x 128 channels, a warpgroup 64 rows. A chunk of both is
 * a tile of rows of 128 bytes (gpu.h, products of a warpgroup), four stages of which are filled by
 * cp.async: while chunk j is multiplied, chunk j - 1 is added and chunks j + 1 and j + 2 are on
 * their way.
 */
#include "kernels/cuda/common/gemm_store.cuh"

enum {
    GROUP = 128, /* threads of a warpgroup */
    GROUPS = 2,
    BLOCK = GROUP * GROUPS,
    GROUP_ROWS = 64,
    ROWS = GROUP_ROWS * GROUPS,
    COLS = 128,
    CHUNK = 128, /* numbers and bytes of k */
    PIECES = CHUNK / 16,
    STAGES = 4,
    AHEAD = STAGES - 2, /* chunks under way */
    TILE_BYTES = 128 * CHUNK,
    STAGE_BYTES = 2 * TILE_BYTES,
    ALIGNMENT = 1024,
    SHARED_BYTES = ALIGNMENT + STAGES * STAGE_BYTES,
};

/* Bytes k .. k + 127 of 128 rows, zeros beyond the ends. */
GPU_FN void load_tile(const uint8_t *from, size_t stride, uint32_t first, uint32_t rows, uint32_t k,
                      uint32_t k_end, uint8_t *tile)
{
    const uint32_t piece = threadIdx.x % PIECES;
    const uint32_t at = k + piece * 16;
#pragma unroll
    for (uint32_t i = 0; i < 128 * PIECES / BLOCK; i++) {
        uint32_t row = threadIdx.x / PIECES + i * (BLOCK / PIECES);
        bool inside = first + row < rows && at < k_end;
        size_t offset = inside ? (first + row) * stride + at : 0;
        gpu_copy_async(tile + wgmma_place(row, piece), from + offset, inside);
    }
}

/* Starts the copies of a chunk, and a group of them in any case. */
GPU_FN void load_chunk(const struct gpu_gemm &g, uint32_t chunk, uint32_t first_row,
                       uint32_t first_col, uint8_t *stages)
{
    uint8_t *stage = stages + chunk % STAGES * STAGE_BYTES;
    if (chunk * CHUNK < g.k) {
        load_tile(static_cast<const uint8_t *>(g.a), g.lda, first_row, g.items * g.rows,
                  chunk * CHUNK, g.k, stage);
        load_tile(static_cast<const uint8_t *>(g.b), g.k, first_col, g.n, chunk * CHUNK, g.k,
                  stage + TILE_BYTES);
    }
    gpu_copy_commit();
}

/* part = 64 rows times 128 channels of a chunk, in flight on return. */
GPU_FN void start_part(float part[COLS / 2], const uint8_t *stage)
{
    const uint8_t *rows = stage + threadIdx.x / GROUP * (GROUP_ROWS * CHUNK);
#pragma unroll
    for (uint32_t k = 0; k < CHUNK / 32; k++) {
        uint64_t a = gpu_wgmma_tile(rows + k * 32, 16, 8 * CHUNK);
        uint64_t b = gpu_wgmma_tile(stage + TILE_BYTES + k * 32, 16, 8 * CHUNK);
        if (k == 0) {
            gpu_wgmma_e4m3<false>(part, a, b);
        } else {
            gpu_wgmma_e4m3<true>(part, a, b);
        }
    }
    gpu_wgmma_commit();
}

/* Chunk `chunk` into `part` while the one before, in `last`, is added. */
GPU_FN void step(const struct gpu_gemm &g, uint32_t chunk, uint32_t first_row, uint32_t first_col,
                 uint8_t *stages, float part[COLS / 2], float last[COLS / 2], float sum[COLS / 2])
{
    gpu_copy_wait<AHEAD - 1>();
    gpu_proxy_fence();
    __syncthreads(); /* the chunk is there, and nobody multiplies the one before the last */
    load_chunk(g, chunk + AHEAD, first_row, first_col, stages);
    gpu_wgmma_hold(part);
    gpu_wgmma_fence();
    start_part(part, stages + chunk % STAGES * STAGE_BYTES);
    gpu_wgmma_wait<1>();
    if (chunk > 0) {
        gpu_wgmma_hold(last);
#pragma unroll
        for (uint32_t i = 0; i < COLS / 2; i++) {
            sum[i] += last[i];
        }
    }
}

GPU_FN void add_last(float last[COLS / 2], float sum[COLS / 2])
{
    gpu_wgmma_wait<0>();
    gpu_wgmma_hold(last);
#pragma unroll
    for (uint32_t i = 0; i < COLS / 2; i++) {
        sum[i] += last[i];
    }
}

/* Outputs of this thread: rows lane / 4 and 8 below, of each eight channels two. */
GPU_FN void store_sums(const struct gpu_gemm &g, uint32_t first_row, uint32_t first_col,
                       const float sum[COLS / 2])
{
    const uint32_t own = first_row + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t row = own + 8 * half;
        if (!gemm_row_wanted(g, row)) {
            continue;
        }
        float scale = g.a_scale[row];
#pragma unroll
        for (uint32_t n = 0; n < COLS / 8; n++) {
            uint32_t col = first_col + n * 8 + threadIdx.x % 4 * 2;
            if (col < g.n) {
                gemm_store_pair(g, row, col, sum[4 * n + 2 * half] * (scale * g.b_scale[col]),
                                sum[4 * n + 2 * half + 1] * (scale * g.b_scale[col + 1]));
            }
        }
    }
}

/* Grid: x over tiles of rows (so that blocks that run together share the weights), y of channels.
 */
static __global__ void __launch_bounds__(BLOCK, 1) wide_gemm_kernel(const struct gpu_gemm g)
{
    SHARED_DYNAMIC(uint8_t, room);
    uint32_t beyond = gpu_shared_address(room) % ALIGNMENT;
    uint8_t *stages = room + (ALIGNMENT - beyond) % ALIGNMENT;
    const uint32_t first_row = blockIdx.x * ROWS;
    const uint32_t first_col = blockIdx.y * COLS;
    const uint32_t chunks = (g.k + CHUNK - 1) / CHUNK;
    if (!gemm_tile_active(g, first_row, ROWS)) {
        return;
    }
    float sum[COLS / 2];
    float even[COLS / 2];
    float odd[COLS / 2];
#pragma unroll
    for (uint32_t i = 0; i < COLS / 2; i++) {
        sum[i] = 0.0f;
    }
    for (uint32_t chunk = 0; chunk < AHEAD; chunk++) {
        load_chunk(g, chunk, first_row, first_col, stages);
    }
    uint32_t chunk = 0;
    for (; chunk + 1 < chunks; chunk += 2) {
        step(g, chunk, first_row, first_col, stages, even, odd, sum);
        step(g, chunk + 1, first_row, first_col, stages, odd, even, sum);
    }
    if (chunk < chunks) {
        step(g, chunk, first_row, first_col, stages, even, odd, sum);
        add_last(even, sum);
    } else {
        add_last(odd, sum);
    }
    gpu_copy_wait<0>(); /* of nothing */
    store_sums(g, first_row, first_col, sum);
}

extern "C" int gpu_gemm_wgmma_suits(const struct gpu_gemm *g)
{
    bool dense = g->items == 1 || g->a_item == g->rows * g->lda;
    return g->type == GPU_E4M3 && dense && g->k > 0;
}

extern "C" void gpu_gemm_wgmma_launch(const struct gpu_gemm *g, void *stream)
{
    const uint32_t rows = g->items * g->rows;
    const dim3 grid((rows + ROWS - 1) / ROWS, (g->n + COLS - 1) / COLS);
    LAUNCH_DYNAMIC(wide_gemm_kernel, grid, BLOCK, SHARED_BYTES, stream, *g);
}
