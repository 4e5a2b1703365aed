/*
 * Attention of tokens over tokens, two patterns of one descriptor (struct gpu_attention):
 *   ranges   tokens attend within their range: a view, or all views jointly
 *   window   tokens of a grid attend to those at most so many rows and columns away, in the present
 *            frame and in past frames, whose rows were gathered to the present's tokens. What a
 *            square of 8 x 8 queries needs is a short list of such squares of each frame
 * How a block works is told in flash.cuh; this file says which keys a tile of queries walks over.
 * What attention_wgmma.cu does instead, where it may, is decided here too.
 */
#include "kernels/cuda/common/flash.cuh"

/* Tiles of a range from its start, so that bits do not depend on where the range lies. */
struct range_walk {
    struct key_tile tile;
    uint32_t end; /* past the range's last token */

    __device__ range_walk(const struct gpu_attention &a, const struct place &at,
                          const struct gpu_range &range)
    {
        tile = {};
        tile.rows.first = range.first;
        end = range.first + range.count;
        tile.k = static_cast<const uint16_t *>(a.k) + at.item * a.kv_item;
        tile.v = static_cast<const uint16_t *>(a.v) + at.item * a.kv_item;
        tile.row = a.kv_row;
    }

    __device__ bool next(struct key_tile *out)
    {
        if (tile.rows.first >= end) {
            return false;
        }
        tile.rows.count = end - tile.rows.first;
        *out = tile;
        tile.rows.first += TILE;
        return true;
    }

    __device__ uint32_t look(const struct tile_rows &rows) const
    {
        return rows.count;
    }

    __device__ bool sees(int, const struct tile_rows &, uint32_t there, int, uint32_t key) const
    {
        return key < there;
    }
};

/* The square of a grid whose corner is at (row, column). */
GPU_FN struct tile_rows square_at(const struct gpu_grid &g, uint32_t row, uint32_t col)
{
    struct tile_rows t = {};
    t.rows = min(g.rows - row, (uint32_t)TILE_SIDE);
    t.cols = min(g.cols - col, (uint32_t)TILE_SIDE);
    t.corner[0] = row;
    t.corner[1] = col;
    t.pitch = g.cols;
    t.first = g.first + row * g.cols + col;
    return t;
}

/* Squares of 8 x 8 tokens that the window of any query of the block's square can reach, in reading
 * order: the present frame first, then past ones, newest first. Which query sees which key is asked
 * only in squares that the border of somebody's window crosses, and at the grid's edges. */
struct window_walk {
    const struct gpu_attention *a;
    struct key_tile tile;
    uint32_t item;
    uint32_t low[2], high[2]; /* first and last square, in squares */
    uint32_t corner[2];       /* of the queries' square */
    uint32_t next_square[2];
    uint32_t frame; /* 0: the present */
    uint32_t frames;
    int query[2][2];      /* this thread's two queries: row, column */
    const int16_t *there; /* of `frame`, as in struct tile_rows */

    __device__ window_walk(const struct gpu_attention &attention, const struct place &at,
                           const struct tile_rows &rows)
        : a(&attention), item(at.item), there(NULL)
    {
        const uint32_t size[2] = {a->grid.rows, a->grid.cols};
        const uint32_t reach[2] = {a->grid.reach_rows, a->grid.reach_cols};
#pragma unroll
        for (int i = 0; i < 2; i++) {
            corner[i] = rows.corner[i];
            uint32_t last = corner[i] + TILE_SIDE - 1 + reach[i];
            low[i] = (corner[i] > reach[i] ? corner[i] - reach[i] : 0) / TILE_SIDE;
            high[i] = (last < size[i] ? last : size[i] - 1) / TILE_SIDE;
            next_square[i] = low[i];
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            query[half][0] = (int)(rows.corner[0] + query_row(half) / TILE_SIDE);
            query[half][1] = (int)(rows.corner[1] + query_row(half) % TILE_SIDE);
        }
        tile.rows = {};
        frame = 0;
        frames = 1 + a->grid.past;
        enter_frame();
    }

    /* Points the tile at `frame`, or at the next one that is there. */
    __device__ void enter_frame()
    {
        if (frame == 0) {
            tile.k = static_cast<const uint16_t *>(a->k) + item * a->kv_item;
            tile.v = static_cast<const uint16_t *>(a->v) + item * a->kv_item;
            tile.row = a->kv_row;
            return;
        }
        const struct gpu_past &past = a->past;
        for (; frame < frames; frame++) {
            const size_t known = (size_t)item * past.stride + frame - 1;
            if (past.table[known] >= 0) {
                const size_t at = ((size_t)item * a->grid.past + frame - 1) * a->kv_tokens;
                tile.k = static_cast<const uint16_t *>(past.k) + at * past.row;
                tile.v = static_cast<const uint16_t *>(past.v) + at * past.row;
                tile.row = past.row;
                there = past.index != NULL ? past.index + known * a->kv_tokens : NULL;
                return;
            }
        }
    }

    /* Whether the queries' square and one at `at` lie so that each sees all of the other. */
    __device__ bool sees_all(int side, uint32_t at, uint32_t reach) const
    {
        uint32_t apart = at > corner[side] ? at - corner[side] : corner[side] - at;
        return apart + TILE_SIDE - 1 <= reach;
    }

    __device__ bool next(struct key_tile *out)
    {
        if (frame >= frames) {
            return false;
        }
        tile.rows = square_at(a->grid, next_square[0] * TILE_SIDE, next_square[1] * TILE_SIDE);
        tile.rows.there = there;
        tile.rows.whole = there == NULL && tile.rows.rows == TILE_SIDE &&
                          tile.rows.cols == TILE_SIDE &&
                          sees_all(0, tile.rows.corner[0], a->grid.reach_rows) &&
                          sees_all(1, tile.rows.corner[1], a->grid.reach_cols);
        *out = tile;
        if (++next_square[1] > high[1]) {
            next_square[1] = low[1];
            if (++next_square[0] > high[0]) {
                next_square[0] = low[0];
                frame++;
                enter_frame();
            }
        }
        return true;
    }

    /* Keys of the square that are there, a bit each, from this thread's first column on. A lane
     * asks for two of them. */
    struct square {
        uint32_t half[2];
    };
    __device__ struct square look(const struct tile_rows &rows) const
    {
        struct square out = {};
        const uint32_t lane = threadIdx.x % 32;
        for (uint32_t half = 0; half < 2 && !rows.whole; half++) {
            uint32_t token;
            bool found = tile_find(rows, half * 32 + lane, &token) &&
                         (rows.there == NULL || rows.there[token] >= 0);
            out.half[half] = __ballot_sync(0xFFFFFFFFu, found) >> lane % 4 * 2;
        }
        return out;
    }

    __device__ bool sees(int half, const struct tile_rows &rows, const struct square &keys, int y,
                         uint32_t key) const
    {
        if (rows.whole) {
            return true;
        }
        return (keys.half[y / 4] >> (y % 4 * TILE_SIDE + key % 2) & 1) != 0 &&
               abs((int)rows.corner[0] + y - query[half][0]) <= (int)a->grid.reach_rows &&
               abs((int)(rows.corner[1] + key % TILE_SIDE) - query[half][1]) <=
                   (int)a->grid.reach_cols;
    }
};

/* Grid: x over tiles of queries of all ranges, y over heads, z over items. */
template <int dim>
static __global__ void __launch_bounds__(THREADS, dim > 64 ? 2 : 3)
    range_kernel(const struct gpu_attention a)
{
    SHARED_DYNAMIC(uint16_t, tiles);
    if (a.active != NULL && a.active[blockIdx.z] == 0) {
        return;
    }
    const struct place at = place_of(a, blockIdx.y, blockIdx.z);
    uint32_t tile;
    const struct gpu_range range = range_of_block(a, blockIdx.x, TILE, &tile);
    struct tile_rows rows = {};
    rows.first = range.first + tile * TILE;
    rows.count = range.count - tile * TILE;
    range_walk w(a, at, range);
    attend<dim>(a, at, rows, w, tiles);
}

/* Grid: x over squares of queries, y over heads, z over items. */
template <int dim>
static __global__ void __launch_bounds__(THREADS, dim > 32 ? 2 : 3)
    window_kernel(const struct gpu_attention a)
{
    SHARED_DYNAMIC(uint16_t, tiles);
    if (a.active != NULL && a.active[blockIdx.z] == 0) {
        return;
    }
    const struct place at = place_of(a, blockIdx.y, blockIdx.z);
    const uint32_t across = (a.grid.cols + TILE_SIDE - 1) / TILE_SIDE;
    const struct tile_rows rows =
        square_at(a.grid, blockIdx.x / across * TILE_SIDE, blockIdx.x % across * TILE_SIDE);
    window_walk w(a, at, rows);
    attend<dim>(a, at, rows, w, tiles);
}

template <int dim> static void launch_range(const struct gpu_attention *a, void *stream)
{
    const size_t bytes = layout<dim>::bytes;
    uint32_t tiles = 0;
    for (uint32_t i = 0; i < a->range_count; i++) {
        tiles += (a->range[i].count + TILE - 1) / TILE;
    }
    if (tiles != 0) {
        LAUNCH_DYNAMIC((range_kernel<dim>), dim3(tiles, a->heads, a->items), THREADS, bytes, stream,
                       *a);
    }
}

template <int dim> static void launch_window(const struct gpu_attention *a, void *stream)
{
    const size_t bytes = layout<dim>::bytes;
    const uint32_t down = (a->grid.rows + TILE_SIDE - 1) / TILE_SIDE;
    const uint32_t across = (a->grid.cols + TILE_SIDE - 1) / TILE_SIDE;
    LAUNCH_DYNAMIC((window_kernel<dim>), dim3(down * across, a->heads, a->items), THREADS, bytes,
                   stream, *a);
}

template <int dim> static void launch(const struct gpu_attention *a, void *stream)
{
    a->grid.rows == 0 ? launch_range<dim>(a, stream) : launch_window<dim>(a, stream);
}

extern "C" void gpu_attention_launch(const struct gpu_attention *a, void *stream)
{
    if (a->items == 0) {
        return;
    }
    if (a->wgmma != 0 && gpu_attention_wgmma_suits(a)) {
        gpu_attention_wgmma_launch(a, stream);
        return;
    }
    if (a->head_dim == 32) {
        launch<32>(a, stream);
    } else if (a->head_dim == 64) {
        launch<64>(a, stream);
    } else {
        launch<128>(a, stream);
    }
}
