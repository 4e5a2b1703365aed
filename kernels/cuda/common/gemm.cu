/*
 * Matrix product on tensor cores through mma.sync: bf16, or fp8 e4m3 with a scale per row of the
 * activations and per channel of the weights; sums in float. What products run on where the vendor
 * library has no algorithm, and always under the emulator.
 *
 * An output is a chain over k in ascending order, one tensor-core instruction after the other, and
 * is never split, so its bits depend on its own row and channel alone: not on m, the tile, the
 * neighbours. In fp8 every 128 terms are summed on their own and then added in full single
 * precision, because tensor cores of Hopper keep only 14 bits of an fp8 sum.
 *
 * A block takes a tile of rows x channels: 8 warps of 64 x 32 outputs each; where that would leave
 * multiprocessors idle, 4 warps of 32 x 32; for few rows, 4 of 16 x 16. All give the same bits.
 * Operands pass through three stages of shared memory filled by cp.async, or two, where a block
 * cannot have as much (128 x 128 outputs on compute capabilities 8.6, 8.9 and 12.0): stages change
 * what is on its way, never the order of a sum. A row of 128 bytes is padded to 144, so that the 8
 * rows of an ldmatrix lie in different banks.
 */
#include "kernels/cuda/common/gemm_store.cuh"

enum {
    CHUNK_BYTES = 128, /* of k, per stage */
    PITCH = CHUNK_BYTES + 16,
    STAGES = 3,
    STAGES_SMALL = 2,
    ROWS16 = 16, /* of a tensor-core instruction */
    COLS8 = 8,
    LARGE_TILES_FROM = 132, /* as many as fill a large device */
    FLAT_ROWS_TO = 32,
};

/* On compute capability 12.0 one block may have all registers: else the assembler makes room for
 * two and spills, with 128 x 128 outputs of fp8. Elsewhere it chooses well on its own. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
#define GEMM_BOUNDS(threads) __launch_bounds__(threads, 1)
#else
#define GEMM_BOUNDS(threads) __launch_bounds__(threads)
#endif

/* Warps per block and instructions per warp, each way. */
template <int warp_rows, int warp_cols, int row_steps, int col_steps> struct tile_shape {
    static constexpr int threads = warp_rows * warp_cols * 32;
    static constexpr int warps_across = warp_cols;
    static constexpr int row_count = row_steps;
    static constexpr int col_count = col_steps;
    static constexpr int rows = warp_rows * row_steps * ROWS16;
    static constexpr int cols = warp_cols * col_steps * COLS8;
    static constexpr int stage_bytes = (rows + cols) * PITCH;
};
using large_tile = tile_shape<2, 4, 4, 4>; /* 128 x 128 */
using small_tile = tile_shape<2, 2, 2, 4>; /* 64 x 64 */
using flat_tile = tile_shape<1, 4, 1, 2>;  /* 16 x 64 */

/* Chunk `chunk` of the tile's rows of a and of b into one stage; beyond the ends zeros. */
template <class shape>
GPU_FN void load_stage(const struct gpu_gemm &g, uint8_t *stage, uint32_t first_row,
                       uint32_t first_col, uint32_t chunk, uint32_t element_bytes)
{
    const uint32_t pieces = CHUNK_BYTES / 16;
    const uint8_t *a = static_cast<const uint8_t *>(g.a);
    const uint8_t *b = static_cast<const uint8_t *>(g.b);
    const uint32_t row_bytes = g.k * element_bytes;
    for (uint32_t i = threadIdx.x; i < (shape::rows + shape::cols) * pieces; i += shape::threads) {
        uint32_t line = i / pieces;
        uint32_t at = chunk * CHUNK_BYTES + i % pieces * 16;
        bool inside = at < row_bytes;
        const uint8_t *from = a;
        if (line < shape::rows) {
            uint32_t row = first_row + line;
            inside = inside && row < g.items * g.rows;
            from += inside ? gemm_row_offset(g, row, g.a_item, g.lda) * element_bytes + at : 0;
        } else {
            uint32_t col = first_col + line - shape::rows;
            inside = inside && col < g.n;
            from = b + (inside ? (size_t)col * row_bytes + at : 0);
        }
        gpu_copy_async(stage + line * PITCH + i % pieces * 16, from, inside);
    }
}

/* The stage's products into sum: 128 bytes of k are four instructions of 32 bytes each. */
template <class shape, bool fp8>
GPU_FN void multiply_stage(const uint8_t *stage, float sum[shape::row_count][shape::col_count][4])
{
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = threadIdx.x / 32;
    const uint8_t *a = stage + warp / shape::warps_across * (shape::row_count * ROWS16) * PITCH;
    const uint8_t *b =
        stage + (shape::rows + warp % shape::warps_across * (shape::col_count * COLS8)) * PITCH;
    /* ldmatrix takes row `lane % 8` of matrix `lane / 8`: of a the matrices are (rows 0..7, low
     * half of k), (8..15, low), (0..7, high), (8..15, high); of b (0..7, low), (0..7, high), then
     * the next eight channels. */
    const uint32_t a_at = (lane % 16) * PITCH + lane / 16 * 16;
    const uint32_t b_at = (lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 16;
#pragma unroll
    for (int step = 0; step < CHUNK_BYTES / 32; step++) {
        uint32_t weights[shape::col_count][2];
#pragma unroll
        for (int j = 0; j < shape::col_count; j += 2) {
            uint32_t four[4];
            gpu_ldmatrix_x4(four, b + j * COLS8 * PITCH + b_at + step * 32);
            weights[j][0] = four[0];
            weights[j][1] = four[1];
            weights[j + 1][0] = four[2];
            weights[j + 1][1] = four[3];
        }
#pragma unroll
        for (int i = 0; i < shape::row_count; i++) {
            uint32_t rows[4];
            gpu_ldmatrix_x4(rows, a + i * ROWS16 * PITCH + a_at + step * 32);
#pragma unroll
            for (int j = 0; j < shape::col_count; j++) {
                if (fp8) {
                    gpu_mma_e4m3(sum[i][j], rows, weights[j]);
                } else {
                    gpu_mma_bf16(sum[i][j], rows, weights[j]);
                }
            }
        }
    }
}

template <class shape>
GPU_FN void add_part(float sum[shape::row_count][shape::col_count][4],
                     const float part[shape::row_count][shape::col_count][4])
{
#pragma unroll
    for (int i = 0; i < shape::row_count; i++) {
#pragma unroll
        for (int j = 0; j < shape::col_count; j++) {
#pragma unroll
            for (int l = 0; l < 4; l++) {
                sum[i][j][l] += part[i][j][l];
            }
        }
    }
}

/* Outputs of this thread: rows lane / 4 and 8 below it, columns 2 (lane % 4) and the next. */
template <class shape, bool fp8>
GPU_FN void store_tile(const struct gpu_gemm &g, uint32_t first_row, uint32_t first_col,
                       const float sum[shape::row_count][shape::col_count][4])
{
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = threadIdx.x / 32;
    first_row += warp / shape::warps_across * (shape::row_count * ROWS16) + lane / 4;
    first_col += warp % shape::warps_across * (shape::col_count * COLS8) + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2 * shape::row_count; i++) {
        uint32_t row = first_row + i * 8;
        if (!gemm_row_wanted(g, row)) {
            continue;
        }
        float row_scale = fp8 ? g.a_scale[row] : 1.0f;
#pragma unroll
        for (int j = 0; j < shape::col_count; j++) {
            uint32_t col = first_col + j * COLS8;
            if (col < g.n) {
                float y0 = sum[i / 2][j][i % 2 * 2];
                float y1 = sum[i / 2][j][i % 2 * 2 + 1];
                if (fp8) {
                    y0 *= row_scale * g.b_scale[col];
                    y1 *= row_scale * g.b_scale[col + 1];
                }
                gemm_store_pair(g, row, col, y0, y1);
            }
        }
    }
}

/* Grid: x over tiles of rows (so that blocks that run together share the weights), y of columns.
 * One block may have all registers: for two, the assembler spills 128 x 128 outputs of fp8 on 12.0.
 */
template <class shape, int stage_count, bool fp8>
static __global__ void GEMM_BOUNDS(shape::threads) gemm_kernel(const struct gpu_gemm g)
{
    SHARED_DYNAMIC(uint8_t, stages);
    const uint32_t first_row = blockIdx.x * shape::rows;
    const uint32_t first_col = blockIdx.y * shape::cols;
    if (!gemm_tile_active(g, first_row, shape::rows)) {
        return;
    }
    const uint32_t element_bytes = fp8 ? 1 : 2;
    const uint32_t chunks = (g.k * element_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    float sum[shape::row_count][shape::col_count][4] = {};
    for (uint32_t chunk = 0; chunk < stage_count - 1; chunk++) {
        if (chunk < chunks) {
            load_stage<shape>(g, stages + chunk * shape::stage_bytes, first_row, first_col, chunk,
                              element_bytes);
        }
        gpu_copy_commit();
    }
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        gpu_copy_wait<stage_count - 2>();
        __syncthreads(); /* the chunk is there, and nobody reads the stage that is filled next */
        uint32_t next = chunk + stage_count - 1;
        if (next < chunks) {
            load_stage<shape>(g, stages + next % stage_count * shape::stage_bytes, first_row,
                              first_col, next, element_bytes);
        }
        gpu_copy_commit();
        const uint8_t *stage = stages + chunk % stage_count * shape::stage_bytes;
        if (fp8) {
            float part[shape::row_count][shape::col_count][4] = {};
            multiply_stage<shape, fp8>(stage, part);
            add_part<shape>(sum, part);
        } else {
            multiply_stage<shape, fp8>(stage, sum);
        }
    }
    gpu_copy_wait<0>();
    store_tile<shape, fp8>(g, first_row, first_col, sum);
}

template <class shape, int stage_count, bool fp8>
static void launch(const struct gpu_gemm *g, void *stream)
{
    const size_t bytes = stage_count * shape::stage_bytes;
    const uint32_t rows = g->items * g->rows;
    const dim3 grid((rows + shape::rows - 1) / shape::rows, (g->n + shape::cols - 1) / shape::cols);
    LAUNCH_DYNAMIC((gemm_kernel<shape, stage_count, fp8>), grid, shape::threads, bytes, stream, *g);
}

template <bool fp8> static void launch_tiles(const struct gpu_gemm *g, void *stream)
{
    const uint64_t rows = (uint64_t)g->items * g->rows;
    const uint64_t large_tiles = (rows + 127) / 128 * ((g->n + 127) / 128);
    if (g->tile == GPU_TILE_LARGE ||
        (g->tile == GPU_TILE_AUTO && large_tiles >= LARGE_TILES_FROM)) {
        if (gpu_shared_max() >= STAGES * large_tile::stage_bytes) {
            launch<large_tile, STAGES, fp8>(g, stream);
        } else {
            launch<large_tile, STAGES_SMALL, fp8>(g, stream);
        }
    } else if (g->tile == GPU_TILE_FLAT || (g->tile == GPU_TILE_AUTO && rows <= FLAT_ROWS_TO)) {
        launch<flat_tile, STAGES, fp8>(g, stream);
    } else {
        launch<small_tile, STAGES, fp8>(g, stream);
    }
}

extern "C" void gpu_gemm_launch(const struct gpu_gemm *g, void *stream)
{
    if (g->items == 0 || g->rows == 0) {
        return;
    }
    if (g->wgmma != 0 && gpu_gemm_wgmma_suits(g)) {
        gpu_gemm_wgmma_launch(g, stream);
        return;
    }
    if (g->type == GPU_E4M3) {
        launch_tiles<true>(g, stream);
    } else {
        launch_tiles<false>(g, stream);
    }
}
