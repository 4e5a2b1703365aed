/*
 * Observations on the device (observe.h). The grid: one thread blends four cells of a row from the
 * frame's cells, both planes at once in the halves of a word, as engine/sensors/layout_observe.c
 * does it. The cameras: one thread unpacks a position. The digest: four threads a view, one per
 * lane of the hash; each step needs the last one, so what they gain they gain by reading ahead.
 *
 * Everything is integers: what of a place is not has become one on the host.
 */
#include "kernels/cuda/student/observe.h"

#include "kernels/cuda/common/gpu.h"

#include "kernels/cuda/student/past.cuh"
#include "kernels/raster_cell.h"

enum {
    THREADS = 256,
    ROWS = 192, /* of a grid */
    COLS = 96,
    PER_THREAD = 4, /* cells */
    GRID_BLOCKS = ROWS * COLS / PER_THREAD / THREADS,
    CAMERA_BLOCKS = SHAPE_CAMERAS * SHAPE_CAMERA_POSITIONS / THREADS,
    BORDER = 2, /* cells around the window that read as unseen */
    WINDOW = 2 * SHAPE_BEV_SIDE,
    PADDED = WINDOW + 2 * BORDER,
    POSITION_BITS = 16,
    WEIGHT_BITS = 6,
    LANE_BITS = 32,
    OCCUPANCY = 0, /* channels of a position */
    UNSEEN = 8,
    DRIVABLE = 12,
    MARKING = 16,
    IMAGE_ROW_BYTES = 3 * 2 * SHAPE_CAMERA_COLS,
    PIXELS_BYTES = 6, /* two pixels side by side */
    LANES = 4,        /* of the digest */
    AHEAD = 8,        /* steps of it that are read at once */
    DIGEST_THREADS = 32,
};

static_assert(ROWS * COLS == DEVICE_VIEW_CELLS &&
                  GRID_BLOCKS * THREADS * PER_THREAD == DEVICE_VIEW_CELLS &&
                  CAMERA_BLOCKS * THREADS == SHAPE_CAMERAS * SHAPE_CAMERA_POSITIONS,
              "no thread is left over");
static_assert(DEVICE_VIEW_BEV_BYTES % (8 * LANES * AHEAD) == 0 &&
                  DEVICE_VIEW_CAMERAS_BYTES % (8 * LANES * AHEAD) == 0,
              "digests have no tail");
static_assert(2 * SHAPE_CAMERA_ROWS * IMAGE_ROW_BYTES == DEVICE_VIEW_CAMERA_BYTES,
              "an image is made of positions");

/* ---- the grid ---- */

/* Planes first_a and first_b of a cell, in the lower and upper half; `outside` around the window.
 */
GPU_FN uint64_t cell_at(const uint8_t *frame, int32_t row, int32_t col, int first_a, int first_b,
                        uint64_t outside)
{
    row -= BORDER;
    col -= BORDER;
    if (row < 0 || row >= WINDOW || col < 0 || col >= WINDOW) {
        return outside;
    }
    const uint8_t *at = frame + (row / 2 * SHAPE_BEV_SIDE + col / 2) * SHAPE_BEV_CHANNELS +
                        2 * (row & 1) + (col & 1);
    return (uint64_t)at[first_b] << LANE_BITS | at[first_a];
}

GPU_FN int64_t within(int64_t position)
{
    const int64_t end = (int64_t)(PADDED - 1) << POSITION_BITS;
    return position < 0 ? 0 : position >= end ? end - 1 : position;
}

/* The four cells around a position, blended. */
GPU_FN uint64_t sample(const uint8_t *frame, int64_t row, int64_t col, int first_a, int first_b,
                       uint64_t outside)
{
    const uint32_t one = 1u << WEIGHT_BITS;
    const uint64_t half = (uint64_t)1 << (2 * WEIGHT_BITS - 1);
    row = within(row);
    col = within(col);
    uint32_t fr = (uint32_t)(row >> (POSITION_BITS - WEIGHT_BITS)) & (one - 1);
    uint32_t fc = (uint32_t)(col >> (POSITION_BITS - WEIGHT_BITS)) & (one - 1);
    int32_t r = (int32_t)(row >> POSITION_BITS);
    int32_t c = (int32_t)(col >> POSITION_BITS);
    uint64_t low = cell_at(frame, r, c, first_a, first_b, outside) * (one - fc) +
                   cell_at(frame, r, c + 1, first_a, first_b, outside) * fc;
    uint64_t high = cell_at(frame, r + 1, c, first_a, first_b, outside) * (one - fc) +
                    cell_at(frame, r + 1, c + 1, first_a, first_b, outside) * fc;
    return (low * (one - fr) + high * fr + (half << LANE_BITS | half)) >> (2 * WEIGHT_BITS);
}

/* Four cells of two planes, from cell (row, col) on. */
GPU_FN void draw_cells(const struct device_view *view, const uint8_t *frame, uint32_t row,
                       uint32_t col, int first_a, int first_b, uint64_t outside, uint8_t *a,
                       uint8_t *b)
{
    uint32_t four_a = 0;
    uint32_t four_b = 0;
    int64_t at_row = view->row + row * view->row_per_row + col * view->row_per_col;
    int64_t at_col = view->col + row * view->col_per_row + col * view->col_per_col;
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        uint64_t both = sample(frame, at_row, at_col, first_a, first_b, outside);
        four_a |= (uint32_t)(both & 255) << 8 * i;
        four_b |= (uint32_t)(both >> LANE_BITS & 255) << 8 * i;
        at_row += view->row_per_col;
        at_col += view->col_per_col;
    }
    *(uint32_t *)a = four_a;
    *(uint32_t *)b = four_b;
}

/* Drivable area and markings of four cells. */
GPU_FN void draw_ground(const struct device_view *view, const struct raster_map *map, uint32_t row,
                        uint32_t col, uint8_t *drivable, uint8_t *marking)
{
    uint32_t four_a = 0;
    uint32_t four_b = 0;
#pragma unroll
    for (uint32_t i = 0; i < PER_THREAD; i++) {
        uint32_t ground = raster_cell_ground(&view->window, map, row, col + i);
        four_a |= (ground & 255) << 8 * i;
        four_b |= (ground >> 8) << 8 * i;
    }
    *(uint32_t *)drivable = four_a;
    *(uint32_t *)marking = four_b;
}

__global__ void __launch_bounds__(THREADS) k_grid(struct observe_views v)
{
    const struct device_view *view = &v.records[blockIdx.y];
    uint32_t first = (blockIdx.x * THREADS + threadIdx.x) * PER_THREAD;
    uint8_t *out = v.views + view->view * v.view_bytes + first;
    if (view->bev == DEVICE_VIEW_KEEP) {
        return;
    }
    if (view->bev == DEVICE_VIEW_DRAW) {
        const uint8_t *frame = v.arena + view->page * v.page_bytes;
        uint32_t row = first / COLS;
        uint32_t col = first % COLS;
        draw_cells(view, frame, row, col, OCCUPANCY, UNSEEN, (uint64_t)255 << LANE_BITS, out,
                   out + DEVICE_VIEW_CELLS);
        if (view->conditioning == CONDITION_NONE) {
            draw_cells(view, frame, row, col, DRIVABLE, MARKING, 0, out + 2 * DEVICE_VIEW_CELLS,
                       out + 3 * DEVICE_VIEW_CELLS);
        } else if (view->map != DEVICE_NO_MAP) {
            draw_ground(view, &v.maps[view->map], row, col, out + 2 * DEVICE_VIEW_CELLS,
                        out + 3 * DEVICE_VIEW_CELLS);
        }
        return;
    }
    uint32_t unseen = view->bev == DEVICE_VIEW_NOTHING ? 0xffffffffu : 0u;
#pragma unroll
    for (int plane = 0; plane < 4; plane++) {
        *(uint32_t *)(out + plane * DEVICE_VIEW_CELLS) = plane == 1 ? unseen : 0;
    }
}

/* ---- the cameras ---- */

__global__ void __launch_bounds__(THREADS) k_cameras(struct observe_views v)
{
    const struct device_view *view = &v.records[blockIdx.y];
    uint32_t position = blockIdx.x * THREADS + threadIdx.x;
    uint32_t camera = position / SHAPE_CAMERA_POSITIONS;
    uint32_t inside = position % SHAPE_CAMERA_POSITIONS;
    uint32_t look = view->camera[camera];
    if (look == DEVICE_VIEW_KEEP) {
        return;
    }
    const uint16_t *from =
        (const uint16_t *)(v.arena + view->page * v.page_bytes + SHAPE_BEV_BYTES) +
        position * (SHAPE_CAMERA_CHANNELS / 2);
    uint16_t *high = (uint16_t *)(v.views + view->view * v.view_bytes +
                                  (v.bev ? (size_t)DEVICE_VIEW_BEV_BYTES : 0) +
                                  camera * DEVICE_VIEW_CAMERA_BYTES +
                                  2 * (inside / SHAPE_CAMERA_COLS) * IMAGE_ROW_BYTES +
                                  inside % SHAPE_CAMERA_COLS * PIXELS_BYTES);
    uint16_t *low = high + IMAGE_ROW_BYTES / 2;
#pragma unroll
    for (int i = 0; i < PIXELS_BYTES / 2; i++) {
        high[i] = look == DEVICE_VIEW_DRAW ? from[i] : (uint16_t)0;
        low[i] = look == DEVICE_VIEW_DRAW ? from[PIXELS_BYTES / 2 + i] : (uint16_t)0;
    }
}

void observe_draw(const struct observe_views *v, void *stream)
{
    if (v->bev) {
        LAUNCH(k_grid, dim3(GRID_BLOCKS, v->count), dim3(THREADS), 0, (cudaStream_t)stream, *v);
    }
    if (v->cameras) {
        LAUNCH(k_cameras, dim3(CAMERA_BLOCKS, v->count), dim3(THREADS), 0, (cudaStream_t)stream,
               *v);
    }
}

/* ---- the digest ---- */

constexpr uint64_t PRIME = 0x9E3779B185EBCA87u;

/* All of one array by the four threads of a view; each returns the digest. */
GPU_FN uint64_t digest_of(uint64_t seed, const uint8_t *data, uint32_t bytes)
{
    uint32_t own = threadIdx.x % LANES;
    const uint64_t *words = (const uint64_t *)data + own;
    uint64_t lane = own == 0 ? seed : own == 1 ? seed ^ PRIME : own == 2 ? ~seed : seed + PRIME;
    for (uint32_t step = 0; step < bytes / (8 * LANES); step += AHEAD) {
        uint64_t word[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            word[i] = words[(step + i) * LANES];
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            lane = (lane ^ word[i]) * PRIME;
            lane ^= lane >> 29;
        }
    }
    uint64_t digest = bytes;
#pragma unroll
    for (int k = 0; k < LANES; k++) {
        digest = (digest ^ __shfl_sync(0xffffffffu, lane, k, LANES)) * PRIME;
        digest ^= digest >> 32;
    }
    return digest;
}

__global__ void __launch_bounds__(DIGEST_THREADS)
    k_digest(struct observe_views v, uint64_t *digests)
{
    uint32_t index = blockIdx.x * (DIGEST_THREADS / LANES) + threadIdx.x / LANES;
    /* Those who are too many do the last one's work again: all must meet in the shuffles. */
    const struct device_view *view = &v.records[index < v.count ? index : v.count - 1];
    const uint8_t *data = v.views + view->view * v.view_bytes;
    uint64_t digest = 0;
    if (v.bev) {
        digest = digest_of(1, data, DEVICE_VIEW_BEV_BYTES);
        data += DEVICE_VIEW_BEV_BYTES;
    }
    if (v.cameras) {
        digest = digest_of(digest, data, DEVICE_VIEW_CAMERAS_BYTES);
    }
    if (index < v.count && threadIdx.x % LANES == 0) {
        digests[index] = digest;
    }
}

void observe_digest(const struct observe_views *v, uint64_t *digests, void *stream)
{
    const uint32_t per_block = DIGEST_THREADS / LANES;
    LAUNCH(k_digest, dim3((v->count + per_block - 1) / per_block), dim3(DIGEST_THREADS), 0,
           (cudaStream_t)stream, *v, digests);
}
