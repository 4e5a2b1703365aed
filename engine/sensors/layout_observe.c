/*
 * From a window to the observation: the only place where a learned frame is turned and blurred.
 * Bilinear in fixed point; with ego on the anchor's axes and a whole number of cells away it is a
 * copy.
 */
#include "engine/sensors/layout.h"

#include "engine/sensors/layout_internal.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/raster_view.h"

#include <math.h>
#include <stddef.h>

enum {
    BORDER = 2, /* cells around the window that read as unseen */
    PADDED = WINDOW_CELLS + 2 * BORDER,
    POSITION_BITS = 16,
    WEIGHT_BITS = 6,
    LANE_BITS = 32, /* two bytes are blended at once, each in its half of a word */
};

/* Two planes of cells, the first in the lower half of each word. */
struct padded {
    uint64_t cells[PADDED * PADDED];
};

static uint64_t pair(uint8_t low, uint8_t high)
{
    return (uint64_t)high << LANE_BITS | low;
}

/* Channels first_a and first_b of a frame; `outside` is what lies around the window. */
static void unpack(const uint8_t *bev, int first_a, int first_b, uint64_t outside,
                   struct padded *out)
{
    for (size_t i = 0; i < (size_t)PADDED * BORDER; i++) {
        out->cells[i] = outside;
        out->cells[(size_t)PADDED * PADDED - 1 - i] = outside;
    }
    for (size_t row = 0; row < WINDOW_CELLS; row++) {
        const uint8_t *from = bev + (row / 2) * WINDOW_SIDE * FRAME_BEV_CHANNELS + 2 * (row & 1);
        uint64_t *to = &out->cells[(row + BORDER) * PADDED];
        for (size_t k = 0; k < BORDER; k++) {
            to[k] = outside;
            to[PADDED - 1 - k] = outside;
        }
        to += BORDER;
        for (size_t col = 0; col < WINDOW_SIDE; col++) {
            to[2 * col] = pair(from[first_a], from[first_b]);
            to[2 * col + 1] = pair(from[first_a + 1], from[first_b + 1]);
            from += FRAME_BEV_CHANNELS;
        }
    }
}

static int64_t to_fixed(double cells)
{
    return (int64_t)floor(cells * (1 << POSITION_BITS) + 0.5);
}

struct layout_walk layout_walk(const struct scene *scene, const struct anchor *anchor,
                               struct window window)
{
    struct window_place place = layout_place(scene, anchor, window);
    struct anchor ego = anchor_make(anchor_local(anchor, scene->ego.pose));
    double c = ego.cos_heading;
    double s = ego.sin_heading;
    double x = BEV_X_MIN_M / BEV_CELL_M + 0.5;
    double y = BEV_Y_MIN_M / BEV_CELL_M + 0.5;
    return (struct layout_walk){
        .row = to_fixed(place.row + x * c - y * s + BORDER - 0.5),
        .col = to_fixed(place.col + x * s + y * c + BORDER - 0.5),
        .row_per_row = to_fixed(c),
        .col_per_row = to_fixed(s),
        .row_per_col = to_fixed(-s),
        .col_per_col = to_fixed(c),
    };
}

_Static_assert(BEV_MARKING == BEV_DRIVABLE + 1, "the planes of the map lie together");

/* Blends the four cells around a position; beyond the border everything is as on it. */
static uint64_t sample(const struct padded *from, int64_t row, int64_t col)
{
    const int64_t end = (int64_t)(PADDED - 1) << POSITION_BITS;
    const uint32_t one = 1u << WEIGHT_BITS;
    const uint64_t half = UINT64_C(1) << (2 * WEIGHT_BITS - 1);
    row = row < 0 ? 0 : row >= end ? end - 1 : row;
    col = col < 0 ? 0 : col >= end ? end - 1 : col;
    uint32_t fr = (uint32_t)(row >> (POSITION_BITS - WEIGHT_BITS)) & (one - 1);
    uint32_t fc = (uint32_t)(col >> (POSITION_BITS - WEIGHT_BITS)) & (one - 1);
    const uint64_t *near = &from->cells[(row >> POSITION_BITS) * PADDED + (col >> POSITION_BITS)];
    const uint64_t *far = near + PADDED;
    uint64_t low = near[0] * (one - fc) + near[1] * fc;
    uint64_t high = far[0] * (one - fc) + far[1] * fc;
    return (low * (one - fr) + high * fr + (half << LANE_BITS | half)) >> (2 * WEIGHT_BITS);
}

/* Two planes of the observation: [BEV_CELLS] each. */
static void resample(const struct padded *from, const struct layout_walk *walk, uint8_t *a,
                     uint8_t *b)
{
    for (int64_t r = 0; r < BEV_ROWS; r++) {
        int64_t row = walk->row + r * walk->row_per_row;
        int64_t col = walk->col + r * walk->col_per_row;
        for (int64_t c = 0; c < BEV_COLS; c++) {
            uint64_t both = sample(from, row, col);
            *a++ = (uint8_t)both;
            *b++ = (uint8_t)(both >> LANE_BITS);
            row += walk->row_per_col;
            col += walk->col_per_col;
        }
    }
}

void layout_observe_map(const struct prepared *prepared, const struct scene *scene, uint8_t *out)
{
    struct raster_view view = raster_view_ego(&scene->ego.pose);
    raster_map(prepared->layers, &view, out, out + BEV_CELLS);
}

void layout_observe_window(const struct prepared *prepared, const struct scene *scene,
                           struct raster_window *window)
{
    struct raster_view view = raster_view_ego(&scene->ego.pose);
    raster_map_window(prepared->layers, &view, window);
}

void layout_observe_bev(const struct prepared *prepared, const struct scene *scene,
                        const struct anchor *anchor, struct window window,
                        enum conditioning conditioning, const uint8_t *frame_bev, uint8_t *out)
{
    struct padded padded;
    struct layout_walk walk = layout_walk(scene, anchor, window);
    uint8_t *drivable = out + BEV_DRIVABLE * BEV_CELLS;
    uint8_t *marking = out + BEV_MARKING * BEV_CELLS;
    unpack(frame_bev, FRAME_OCCUPANCY, FRAME_UNSEEN, pair(0, 255), &padded);
    resample(&padded, &walk, out + BEV_OCCUPANCY * BEV_CELLS, out + BEV_UNSEEN * BEV_CELLS);
    if (conditioning == CONDITIONING_NONE) {
        unpack(frame_bev, FRAME_DRIVABLE, FRAME_MARKING, pair(0, 0), &padded);
        resample(&padded, &walk, drivable, marking);
    } else {
        layout_observe_map(prepared, scene, drivable);
    }
}
