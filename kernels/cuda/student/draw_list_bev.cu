/*
 * The BEV of a layout on the device. engine/sensors/raster_lidar.c has the method and says what is
 * drawn; the geometry of a box is the same code (kernels/lidar.h), in double precision, and all
 * that is added up are integers, so the bytes are the engine's.
 *
 * One thread per agent prepares its box. Then one block draws a tile, all rows of 16 columns of one
 * half of the window, from beginning to end: which cells no ray reaches (a thread per row), what
 * returns one (box after box in index order: a thread per strip, then one per column), and the map
 * under them (a thread per cell), and packs it. Nothing of it lies in device memory in between.
 */
#include "kernels/cuda/common/gpu.h"

#include "kernels/cuda/student/draw_list.h"
#include "kernels/cuda/student/shape.h"
#include "kernels/raster_cell.h"

enum {
    THREADS = LIDAR_ROWS,
    BLOCKS_AT_LEAST = 4, /* of a multiprocessor; for more the compiler would spill */
    COLS = 16,           /* of a tile */
    TILES = LIDAR_COLS / COLS,
    STRIPS = COLS * LIDAR_STRIPS_PER_CELL,
    POSITION_COLS = COLS / 2, /* of a tile */
    POSITIONS = POSITION_COLS * SHAPE_BEV_SIDE,
    STILL = 128,
    OWNER_SHIFT = 16, /* of a cell: occupancy, vru, 1 + agent of the last return */
    VRU_SHIFT = 8,
};

static_assert(TILES * COLS == LIDAR_COLS && STRIPS <= THREADS && POSITIONS % THREADS == 0 &&
                  (int)LIDAR_ROWS == 2 * (int)SHAPE_BEV_SIDE &&
                  DRAW_LIST_HALVES * LIDAR_COLS == 2 * SHAPE_BEV_SIDE && SHAPE_BEV_CHANNELS == 22,
              "tiles cover the window");
static_assert((int)DRAW_LIST_AGENTS_MAX <= (int)THREADS, "a thread per agent that may hide");

/* State that a block keeps of its tile. */
struct tile_cells {
    int32_t area[LIDAR_ROWS + 2][COLS]; /* of one box, as differences along the rows */
    uint32_t cell[LIDAR_ROWS][COLS];
    uint32_t shade[LIDAR_ROWS]; /* a bit per column: no ray */
    uint32_t hider[DRAW_LIST_AGENTS_MAX];
    uint32_t hider_count;
};

/* Which tile of which half, and what all of it needs. */
struct tile {
    const struct draw_list *draw_list;
    const struct lidar_box *boxes;
    double x_min_m, y_min_m, visibility_m;
    uint32_t half, first_col, count;
    bool limited; /* the lidar's reach may end inside the half */
};

GPU_FN const struct draw_list *draw_list_at(const struct draw_list_slots *s, uint32_t slot)
{
    return (const struct draw_list *)(s->draw_lists + (size_t)slot * DRAW_LIST_BYTES_MAX);
}

/* ---- boxes ---- */

__global__ void __launch_bounds__(DRAW_LIST_AGENTS_MAX) k_boxes(struct draw_list_slots s)
{
    const struct device_slot *slot = &s.slots[blockIdx.x];
    if (!slot->active || (slot->given & DEVICE_GIVEN_BEV) ||
        slot->conditioning != CONDITION_AGENTS) {
        return;
    }
    const struct draw_list *draw_list = draw_list_at(&s, blockIdx.x);
    if (threadIdx.x >= draw_list->agent_count) {
        return;
    }
    const struct lidar_agent *agent = &draw_list_agents_of(draw_list)[threadIdx.x];
    struct lidar_box *box = &s.boxes[(size_t)blockIdx.x * DRAW_LIST_AGENTS_MAX + threadIdx.x];
    lidar_box_place(agent, box);
    lidar_box_regions(draw_list->x_min_m, agent, box);
}

/* ---- unseen ---- */

/* Columns from `column` on, as bits of a tile. */
GPU_FN uint32_t columns_from(uint32_t column, uint32_t first_col)
{
    uint32_t shift = column > first_col ? column - first_col : 0;
    return shift < COLS ? ((1u << COLS) - 1) & (((1u << COLS) - 1) << shift) : 0;
}

/* The columns of a row that a region holds. */
GPU_FN uint32_t region_columns(const struct tile *t, const struct lidar_region *region,
                               uint32_t row)
{
    if (row < lidar_first_row(t->x_min_m, region->x_min) ||
        row >= lidar_first_row(t->x_min_m, region->x_max)) {
        return 0;
    }
    const struct raster_region *rows = &region->rows;
    double low = 0.0;
    double high = LIDAR_COLS;
    for (uint32_t i = 0; i < rows->low_count; i++) {
        double bound = lidar_column(rows->low_offset[i], t->y_min_m) + rows->low_slope[i] * row;
        low = i == 0 || bound > low ? bound : low;
    }
    for (uint32_t i = 0; i < rows->high_count; i++) {
        double bound = lidar_column(rows->high_offset[i], t->y_min_m) + rows->high_slope[i] * row;
        high = i == 0 || bound < high ? bound : high;
    }
    return columns_from(raster_cell_ceil(low), t->first_col) &
           ~columns_from(raster_cell_ceil(high), t->first_col);
}

/* Stretch of a row that a box shades: its core, and its shadow but for its outline. */
GPU_FN uint32_t box_shade(const struct tile *t, const struct lidar_box *box, uint32_t row)
{
    uint32_t first;
    uint32_t end;
    uint32_t first_all;
    uint32_t end_all;
    lidar_shaded_rows(box, t->x_min_m, &first, &end, &first_all, &end_all);
    bool beside = (row >= first_all && row < first) || (row >= end && row < end_all);
    bool within = row >= first && row < end;
    uint32_t shade = beside || within ? region_columns(t, &box->shadow, row) : 0;
    if (within) {
        shade &= ~region_columns(t, &box->outline, row);
        shade |= box->has_core ? region_columns(t, &box->core, row) : 0;
    }
    return shade;
}

GPU_FN uint32_t row_shade(const struct tile *t, uint32_t row)
{
    uint32_t shade = 0;
    if (t->limited) {
        int32_t first;
        int32_t end;
        lidar_reach_columns(t->x_min_m, t->y_min_m, t->visibility_m, (int32_t)row, &first, &end);
        shade = (1u << COLS) - 1;
        if (first < end) {
            shade &= ~(columns_from((uint32_t)first, t->first_col) &
                       ~columns_from((uint32_t)end, t->first_col));
        }
    }
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->boxes[i].casts) {
            shade |= box_shade(t, &t->boxes[i], row);
        }
    }
    return shade;
}

/* ---- occupancy ---- */

/* A line at constant y through a box. */
struct strip {
    const struct lidar_box *box;
    double y, reach; /* of the lidar on it, to either side; LIDAR_FAR_M: all of it */
};

/* Part `index` of what hides the box there: the shadows of others, its core, and what lies beyond
 * the lidar's reach on either side. May be empty. */
GPU_FN struct lidar_span cut_of(const struct tile *t, const struct tile_cells *cells,
                                const struct strip *strip, uint32_t index)
{
    struct lidar_span none = {0.0, 0.0};
    if (index < cells->hider_count) {
        return lidar_region_span(&t->boxes[cells->hider[index]].shadow, strip->y);
    }
    if (index == cells->hider_count) {
        return strip->box->has_core ? lidar_region_span(&strip->box->core, strip->y) : none;
    }
    struct lidar_span beyond = {strip->reach, LIDAR_FAR_M};
    struct lidar_span before = {-LIDAR_FAR_M, -strip->reach};
    return index == cells->hider_count + 1 ? beyond : before;
}

/* Moves *at past what hides it, and lowers *end to where what is seen from there on ends. One look
 * at every cut: where one that was passed over covers the place that a later one led to, *end is
 * not beyond it, nothing is seen, and the caller looks again from there. */
GPU_FN void find_seen(const struct tile *t, const struct tile_cells *cells,
                      const struct strip *strip, double *at, double *end)
{
    for (uint32_t i = 0; i < cells->hider_count + 3; i++) {
        struct lidar_span cut = cut_of(t, cells, strip, i);
        if (!(cut.low < cut.high)) {
            continue;
        }
        if (cut.low <= *at && *at < cut.high) {
            *at = cut.high;
        } else if (cut.low > *at && cut.low < *end) {
            *end = cut.low;
        }
    }
}

/* Adds `weight` times the part of each cell that lies beyond x. */
GPU_FN void add_step(const struct tile *t, struct tile_cells *cells, uint32_t col, double x_m,
                     int32_t weight)
{
    uint32_t position = lidar_position(t->x_min_m, x_m);
    uint32_t row = position / LIDAR_LENGTH_ONE;
    int32_t part = (int32_t)(position % LIDAR_LENGTH_ONE);
    atomicAdd(&cells->area[row][col], weight * (LIDAR_LENGTH_ONE - part));
    atomicAdd(&cells->area[row + 1][col], weight * part);
}

/* The strip low..high, cut along its middle. The engine keeps a list of what is left of it after
 * every cut; here what is left is found from its near end on, which is the same set. */
GPU_FN void draw_strip(const struct tile *t, struct tile_cells *cells, const struct lidar_box *box,
                       uint32_t col, double low, double high)
{
    int32_t weight = lidar_weight(low, high);
    struct strip strip;
    strip.box = box;
    strip.y = (low + high) / 2;
    strip.reach = t->limited ? lidar_half_reach(t->visibility_m, strip.y) : LIDAR_FAR_M;
    struct lidar_span span = lidar_region_span(&box->outline, strip.y);
    double at = both_max(span.low, t->x_min_m);
    double last = both_min(span.high, t->x_min_m + LIDAR_ROWS * LIDAR_CELL_M);
    while (at < last) {
        double end = last;
        find_seen(t, cells, &strip, &at, &end);
        if (at < end) {
            add_step(t, cells, col, at, weight);
            add_step(t, cells, col, end, -weight);
        }
        at = end > at ? end : at;
    }
}

/* Strip `index` of the tile, in parts between the box's corners. */
GPU_FN void draw_strips(const struct tile *t, struct tile_cells *cells, const struct lidar_box *box,
                        uint32_t index)
{
    int32_t k = (int32_t)(t->first_col * LIDAR_STRIPS_PER_CELL + index);
    double end = both_min(box->y_high, t->y_min_m + LIDAR_COLS * LIDAR_CELL_M);
    double begin = both_max(box->y_low, t->y_min_m);
    int32_t first = lidar_clamp_index((begin - t->y_min_m) / LIDAR_STRIP_M, LIDAR_STRIPS - 1);
    double line = t->y_min_m + (k + 1) * LIDAR_STRIP_M;
    double y = k == first ? begin : t->y_min_m + k * LIDAR_STRIP_M;
    while (k >= first && y < end) {
        double next = lidar_strip_end(box, y, line, end);
        draw_strip(t, cells, box, index / LIDAR_STRIPS_PER_CELL, y, next);
        if (next >= line) {
            return;
        }
        y = next;
    }
}

/* Sums the differences of one column and adds them to its cells. */
GPU_FN void add_column(struct tile_cells *cells, const struct lidar_patch *patch, uint32_t number,
                       bool vru, uint32_t col)
{
    int32_t sum = 0;
    for (int32_t row = patch->row; row < patch->row + patch->rows; row++) {
        sum += cells->area[row][col];
        uint32_t covered = lidar_covered(sum);
        uint32_t cell = cells->cell[row][col];
        if (covered != 0) {
            uint32_t vulnerable = cell >> VRU_SHIFT & 255;
            vulnerable = vru ? lidar_add_covered((uint8_t)vulnerable, covered) : vulnerable;
            cells->cell[row][col] = lidar_add_covered((uint8_t)cell, covered) |
                                    vulnerable << VRU_SHIFT | (number + 1) << OWNER_SHIFT;
        }
    }
}

/* Called by all threads of the block. */
GPU_FN void draw_box(const struct tile *t, struct tile_cells *cells, uint32_t number)
{
    const struct lidar_box *box = &t->boxes[number];
    struct lidar_patch patch = lidar_patch_of(box, t->x_min_m, t->y_min_m);
    int32_t *area = &cells->area[patch.row][0];
    for (int32_t i = (int32_t)threadIdx.x; i < (patch.rows + 2) * COLS; i += THREADS) {
        area[i] = 0;
    }
    if (threadIdx.x == 0) {
        cells->hider_count = 0;
    }
    __syncthreads();
    if (threadIdx.x < t->count && threadIdx.x != number &&
        lidar_may_hide(&t->boxes[threadIdx.x], box)) {
        cells->hider[atomicAdd(&cells->hider_count, 1u)] = threadIdx.x;
    }
    __syncthreads();
    if (threadIdx.x < STRIPS) {
        draw_strips(t, cells, box, threadIdx.x);
    }
    __syncthreads();
    if (threadIdx.x < COLS) {
        bool vru = draw_list_agents_of(t->draw_list)[number].vru != 0;
        add_column(cells, &patch, number, vru, threadIdx.x);
    }
    __syncthreads();
}

/* Whether a box reaches into the tile; it may be wrong on the side of yes. */
GPU_FN bool box_in_tile(const struct tile *t, const struct lidar_box *box)
{
    double low = t->y_min_m + t->first_col * LIDAR_CELL_M;
    return lidar_box_in_grid(box, t->x_min_m, t->y_min_m) && box->y_high >= low - LIDAR_CELL_M &&
           box->y_low <= low + (COLS + 1) * LIDAR_CELL_M;
}

/* ---- the map, and packing ---- */

/* One position: four cells of five planes, and the velocity of their last return. */
GPU_FN void pack_position(const struct tile *t, const struct tile_cells *cells,
                          const struct raster_map *map, uint32_t row, uint32_t col, uint8_t *out)
{
    uint32_t planes[5] = {}; /* occupancy, vru, unseen, drivable, marking */
    uint32_t owner = 0;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t r = 2 * row + i / 2;
        uint32_t c = 2 * col + i % 2;
        uint32_t cell = cells->cell[r][c];
        uint32_t unseen = cell == 0 && (cells->shade[r] >> c & 1) ? 255 : 0;
        uint32_t ground = map != NULL ? raster_cell_ground(&t->draw_list->windows[t->half], map, r,
                                                           t->first_col + c)
                                      : 0;
        planes[0] |= (cell & 255) << 8 * i;
        planes[1] |= (cell >> VRU_SHIFT & 255) << 8 * i;
        planes[2] |= unseen << 8 * i;
        planes[3] |= (ground & 255) << 8 * i;
        planes[4] |= (ground >> 8) << 8 * i;
        owner = cell >> OWNER_SHIFT > owner ? cell >> OWNER_SHIFT : owner;
    }
    uint16_t *pairs = (uint16_t *)out; /* a position has an even number of bytes */
#pragma unroll
    for (int i = 0; i < 5; i++) {
        pairs[2 * i] = (uint16_t)planes[i];
        pairs[2 * i + 1] = (uint16_t)(planes[i] >> 16);
    }
    const uint8_t *velocity = draw_list_agents_of(t->draw_list)[owner > 0 ? owner - 1 : 0].velocity;
    pairs[10] =
        owner > 0 ? (uint16_t)(velocity[0] | velocity[1] << 8) : (uint16_t)(STILL | STILL << 8);
}

/* ---- the whole ---- */

/* blockIdx.x: the tile, half after half; y: the slot. */
__global__ void __launch_bounds__(THREADS, BLOCKS_AT_LEAST) k_bev(struct draw_list_slots s)
{
    SHARED(struct tile_cells, cells);
    const struct device_slot *slot = &s.slots[blockIdx.y];
    if (!slot->active || (slot->given & DEVICE_GIVEN_BEV)) {
        return;
    }
    struct tile t;
    bool agents = slot->conditioning == CONDITION_AGENTS;
    t.draw_list = draw_list_at(&s, blockIdx.y);
    t.boxes = s.boxes + (size_t)blockIdx.y * DRAW_LIST_AGENTS_MAX;
    t.half = blockIdx.x / TILES;
    t.first_col = blockIdx.x % TILES * COLS;
    t.x_min_m = t.draw_list->x_min_m;
    t.y_min_m = t.draw_list->y_min_m[t.half];
    t.visibility_m = t.draw_list->visibility_m;
    t.count = agents ? t.draw_list->agent_count : 0;
    t.limited = agents && lidar_is_limited(t.x_min_m, t.y_min_m, t.visibility_m);
    for (uint32_t c = 0; c < COLS; c++) {
        cells.cell[threadIdx.x][c] = 0;
    }
    cells.shade[threadIdx.x] = row_shade(&t, threadIdx.x);
    __syncthreads();
    for (uint32_t i = 0; i < t.count; i++) {
        if (box_in_tile(&t, &t.boxes[i])) {
            draw_box(&t, &cells, i);
        }
    }
    const struct raster_map *map =
        slot->conditioning != CONDITION_NONE ? &s.maps[t.draw_list->map] : NULL;
    uint8_t *bev = s.layouts + (size_t)blockIdx.y * DEVICE_FRAME_BYTES;
    uint32_t first = (t.half * LIDAR_COLS + t.first_col) / 2;
    for (uint32_t i = threadIdx.x; i < POSITIONS; i += THREADS) {
        uint32_t row = i / POSITION_COLS;
        uint32_t col = i % POSITION_COLS;
        pack_position(&t, &cells, map, row, col,
                      bev + (size_t)(row * SHAPE_BEV_SIDE + first + col) * SHAPE_BEV_CHANNELS);
    }
}

void draw_list_bev(const struct draw_list_slots *s, void *stream)
{
    LAUNCH(k_boxes, dim3(s->count), dim3(DRAW_LIST_AGENTS_MAX), 0, (cudaStream_t)stream, *s);
    LAUNCH(k_bev, dim3(DRAW_LIST_HALVES * TILES, s->count), dim3(THREADS), 0, (cudaStream_t)stream,
           *s);
}
