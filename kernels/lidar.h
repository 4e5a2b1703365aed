/*
 * Lidar geometry: what one agent's box is to a sensor at the origin of a grid, as the engine
 * (engine/sensors/raster_lidar.c, which has the method) and the device
 * (kernels/cuda/student/draw_list_bev.cu) draw it. Pure functions on plain structs; the same bits
 * on both (base/both.h).
 *
 * Frame: origin at the sensor, x along the grid's rows, metres. The grid's corner is at
 * (x_min_m, y_min_m); cells are LIDAR_CELL_M wide.
 */
#ifndef SWERVE_KERNELS_LIDAR_H
#define SWERVE_KERNELS_LIDAR_H

#include "base/both.h"
#include "base/geom.h"
#include "kernels/raster.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define LIDAR_CELL_M 0.5 /* as in schemas/observation.h, which C++ cannot read */
#define LIDAR_FAR_M 1e9
#define LIDAR_RETURN_DEPTH_M 1.0

enum {
    LIDAR_ROWS = 192,
    LIDAR_COLS = 96,
    LIDAR_STRIPS_PER_CELL = 4, /* along y */
    LIDAR_STRIPS = LIDAR_COLS * LIDAR_STRIPS_PER_CELL,
    LIDAR_WEIGHT_ONE = 256,  /* of a whole strip */
    LIDAR_LENGTH_ONE = 1024, /* a cell's length in fixed point */
    LIDAR_AREA_ONE = LIDAR_STRIPS_PER_CELL * LIDAR_WEIGHT_ONE * LIDAR_LENGTH_ONE,
};

#define LIDAR_STRIP_M (LIDAR_CELL_M / LIDAR_STRIPS_PER_CELL)

/* An agent in the sensor's frame: all that a layout shows of it. */
struct lidar_agent {
    double x_m, y_m; /* the box's centre */
    double cos_heading, sin_heading;
    double half_length_m, half_width_m;
    uint32_t agent;      /* index in the scenario */
    uint8_t low;         /* hides nothing */
    uint8_t vru;         /* a vulnerable road user */
    uint8_t velocity[2]; /* as a frame has it (engine/model.md) */
};

struct lidar_span {
    double low, high;
};

/* A convex region, intersection of at most RASTER_BOUNDS half planes, prepared for two uses: rows
 * of the grid (which columns have their centre inside) and strips along x (which part of the line
 * at constant y is inside, in metres). */
struct lidar_region {
    struct raster_region rows; /* offsets are y in metres, maybe none; see lidar_columns_of */
    double x_min, x_max;       /* outside, no row has any */
    struct raster_region strips;
    double y_min, y_max;
};

struct lidar_box {
    struct vec2 corners[4];
    struct lidar_region outline, core, shadow; /* the shadow's if it casts one */
    struct vec2 left, right;                   /* silhouette corners as the sensor sees them */
    double x_low, x_high, y_low, y_high;
    double range_min_m, range_max_m;
    bool has_core;
    bool casts;
};

/* The cells that a box may touch. */
struct lidar_patch {
    int32_t row, rows, col, cols;
};

/* ---- regions ---- */

/* Adds the bound v = offset + slope * u as an upper one if `upper`, else as a lower one. */
BOTH_FN void lidar_bound_add(struct raster_region *bounds, bool upper, double offset, double slope)
{
    if (upper) {
        bounds->high_offset[bounds->high_count] = offset;
        bounds->high_slope[bounds->high_count++] = slope;
    } else {
        bounds->low_offset[bounds->low_count] = offset;
        bounds->low_slope[bounds->low_count++] = slope;
    }
}

BOTH_FN void lidar_region_init(struct lidar_region *region)
{
    region->rows.low_count = region->rows.high_count = 0;
    region->strips.low_count = region->strips.high_count = 0;
    region->x_min = region->y_min = -LIDAR_FAR_M;
    region->x_max = region->y_max = LIDAR_FAR_M;
}

/* Adds a * x + b * y <= c; (a, b) need not have unit length. */
BOTH_FN void lidar_region_add(double x_min_m, struct lidar_region *region, double a, double b,
                              double c)
{
    const double parallel = 1e-9;
    if (fabs(a) > parallel) {
        lidar_bound_add(&region->strips, a > 0, c / a, -b / a);
    } else if (b > 0) {
        region->y_max = both_min(region->y_max, c / b);
    } else {
        region->y_min = both_max(region->y_min, c / b);
    }
    if (fabs(b) > parallel) {
        /* Column and row numbers as functions of the coordinates of cell centres. */
        double slope = -a / b;
        double y = c / b + slope * (x_min_m + LIDAR_CELL_M / 2);
        lidar_bound_add(&region->rows, b > 0, y, slope);
    } else if (a > 0) {
        region->x_max = both_min(region->x_max, c / a);
    } else {
        region->x_min = both_max(region->x_min, c / a);
    }
}

/* Bounds the strips in directions without a bound. */
BOTH_FN void lidar_region_close(struct lidar_region *region)
{
    if (region->strips.low_count == 0) {
        lidar_bound_add(&region->strips, false, -LIDAR_FAR_M, 0.0);
    }
    if (region->strips.high_count == 0) {
        lidar_bound_add(&region->strips, true, LIDAR_FAR_M, 0.0);
    }
}

/* A bound of a row, from metres to column numbers of a grid. */
BOTH_FN double lidar_column(double y_m, double y_min_m)
{
    return (y_m - y_min_m) / LIDAR_CELL_M - 0.5;
}

/* The region's rows in a grid that begins at y_min_m; the grid's edges where it has no bound. */
BOTH_FN void lidar_columns_of(const struct lidar_region *region, double y_min_m,
                              struct raster_region *out)
{
    const struct raster_region *rows = &region->rows;
    out->low_count = out->high_count = 0;
    for (uint32_t i = 0; i < rows->low_count; i++) {
        lidar_bound_add(out, false, lidar_column(rows->low_offset[i], y_min_m), rows->low_slope[i]);
    }
    for (uint32_t i = 0; i < rows->high_count; i++) {
        lidar_bound_add(out, true, lidar_column(rows->high_offset[i], y_min_m),
                        rows->high_slope[i]);
    }
    if (out->low_count == 0) {
        lidar_bound_add(out, false, 0.0, 0.0);
    }
    if (out->high_count == 0) {
        lidar_bound_add(out, true, LIDAR_COLS, 0.0);
    }
}

/* The part of the line at constant y that lies in the region; empty when low >= high. */
BOTH_FN struct lidar_span lidar_region_span(const struct lidar_region *region, double y)
{
    const struct raster_region *bounds = &region->strips;
    struct lidar_span span = {0.0, 0.0};
    if (y < region->y_min || y > region->y_max) {
        return span;
    }
    span.low = bounds->low_offset[0] + bounds->low_slope[0] * y;
    span.high = bounds->high_offset[0] + bounds->high_slope[0] * y;
    for (uint32_t i = 1; i < bounds->low_count; i++) {
        double bound = bounds->low_offset[i] + bounds->low_slope[i] * y;
        span.low = bound > span.low ? bound : span.low;
    }
    for (uint32_t i = 1; i < bounds->high_count; i++) {
        double bound = bounds->high_offset[i] + bounds->high_slope[i] * y;
        span.high = bound < span.high ? bound : span.high;
    }
    return span;
}

/* Smallest row whose centre is at or above x, clamped to [0, LIDAR_ROWS]. */
BOTH_FN uint32_t lidar_first_row(double x_min_m, double x_m)
{
    double k = (x_m - x_min_m) * (1.0 / LIDAR_CELL_M) - 0.5;
    if (!(k > 0)) {
        return 0;
    }
    if (k > LIDAR_ROWS) {
        return LIDAR_ROWS;
    }
    uint32_t i = (uint32_t)k;
    return i + (i < k);
}

/* ---- boxes ---- */

BOTH_FN double lidar_cross(struct vec2 a, struct vec2 b)
{
    return a.x_m * b.y_m - a.y_m * b.x_m;
}

/* Corners in the order front-left, rear-left, rear-right, front-right, and how far they reach. */
BOTH_FN void lidar_box_place(const struct lidar_agent *agent, struct lidar_box *box)
{
    double lx = agent->half_length_m * agent->cos_heading;
    double ly = agent->half_length_m * agent->sin_heading;
    double wx = -agent->half_width_m * agent->sin_heading;
    double wy = agent->half_width_m * agent->cos_heading;
    box->corners[0].x_m = agent->x_m + lx + wx;
    box->corners[0].y_m = agent->y_m + ly + wy;
    box->corners[1].x_m = agent->x_m - lx + wx;
    box->corners[1].y_m = agent->y_m - ly + wy;
    box->corners[2].x_m = agent->x_m - lx - wx;
    box->corners[2].y_m = agent->y_m - ly - wy;
    box->corners[3].x_m = agent->x_m + lx - wx;
    box->corners[3].y_m = agent->y_m + ly - wy;
    box->x_low = box->y_low = LIDAR_FAR_M;
    box->x_high = box->y_high = -LIDAR_FAR_M;
    box->range_max_m = 0.0;
    for (int i = 0; i < 4; i++) {
        struct vec2 p = box->corners[i];
        box->x_low = both_min(box->x_low, p.x_m);
        box->x_high = both_max(box->x_high, p.x_m);
        box->y_low = both_min(box->y_low, p.y_m);
        box->y_high = both_max(box->y_high, p.y_m);
        box->range_max_m = both_max(box->range_max_m, sqrt(p.x_m * p.x_m + p.y_m * p.y_m));
    }
    /* Distance to the axis-aligned hull: a lower bound is all that is asked of it. */
    double dx = both_max(both_max(box->x_low, -box->x_high), 0.0);
    double dy = both_max(both_max(box->y_low, -box->y_high), 0.0);
    box->range_min_m = sqrt(dx * dx + dy * dy);
}

/* Whether the box reaches into a grid; else it only hides. */
BOTH_FN bool lidar_box_in_grid(const struct lidar_box *box, double x_min_m, double y_min_m)
{
    return box->x_high > x_min_m && box->x_low < x_min_m + LIDAR_ROWS * LIDAR_CELL_M &&
           box->y_high > y_min_m && box->y_low < y_min_m + LIDAR_COLS * LIDAR_CELL_M;
}

/* The rectangle [x0, x1] x [y0, y1] of a box's own frame. */
BOTH_FN void lidar_rectangle(double x_min_m, const struct lidar_agent *agent, double x0, double x1,
                             double y0, double y1, struct lidar_region *region)
{
    double c = agent->cos_heading;
    double s = agent->sin_heading;
    double along = agent->x_m * c + agent->y_m * s;
    double across = -agent->x_m * s + agent->y_m * c;
    lidar_region_init(region);
    lidar_region_add(x_min_m, region, c, s, along + x1);
    lidar_region_add(x_min_m, region, -c, -s, -along - x0);
    lidar_region_add(x_min_m, region, -s, c, across + y1);
    lidar_region_add(x_min_m, region, s, -c, -across - y0);
    lidar_region_close(region);
}

/* Silhouette as seen from the origin: the corners with everything else to their right, left. */
BOTH_FN void lidar_silhouette(struct lidar_box *box)
{
    box->left = box->corners[0];
    box->right = box->corners[0];
    for (int i = 1; i < 4; i++) {
        if (lidar_cross(box->left, box->corners[i]) > 0) {
            box->left = box->corners[i];
        }
        if (lidar_cross(box->right, box->corners[i]) < 0) {
            box->right = box->corners[i];
        }
    }
}

/* Outline, core and shadow of a placed box; the latter two from the faces that look at the
 * sensor. */
BOTH_FN void lidar_box_regions(double x_min_m, const struct lidar_agent *agent,
                               struct lidar_box *box)
{
    double c = agent->cos_heading;
    double s = agent->sin_heading;
    /* The sensor in the box's frame. */
    double sensor_x = -(agent->x_m * c + agent->y_m * s);
    double sensor_y = agent->x_m * s - agent->y_m * c;
    double half_x = agent->half_length_m;
    double half_y = agent->half_width_m;
    bool front = sensor_x > half_x;
    bool rear = sensor_x < -half_x;
    bool left = sensor_y > half_y;
    bool right = sensor_y < -half_y;
    lidar_rectangle(x_min_m, agent, -half_x, half_x, -half_y, half_y, &box->outline);
    box->casts = !agent->low && (front || rear || left || right);
    box->has_core = false;
    if (!box->casts) {
        return;
    }
    double x0 = rear ? -half_x + LIDAR_RETURN_DEPTH_M : -half_x;
    double x1 = front ? half_x - LIDAR_RETURN_DEPTH_M : half_x;
    double y0 = right ? -half_y + LIDAR_RETURN_DEPTH_M : -half_y;
    double y1 = left ? half_y - LIDAR_RETURN_DEPTH_M : half_y;
    if (x0 < x1 && y0 < y1) {
        box->has_core = true;
        lidar_rectangle(x_min_m, agent, x0, x1, y0, y1, &box->core);
    }
    lidar_silhouette(box);
    struct lidar_region *shadow = &box->shadow;
    lidar_region_init(shadow);
    lidar_region_add(x_min_m, shadow, -box->left.y_m, box->left.x_m, 0.0);
    lidar_region_add(x_min_m, shadow, box->right.y_m, -box->right.x_m, 0.0);
    double along = agent->x_m * c + agent->y_m * s;
    double across = -agent->x_m * s + agent->y_m * c;
    if (front) {
        lidar_region_add(x_min_m, shadow, c, s, along + half_x);
    } else if (rear) {
        lidar_region_add(x_min_m, shadow, -c, -s, half_x - along);
    }
    if (left) {
        lidar_region_add(x_min_m, shadow, -s, c, across + half_y);
    } else if (right) {
        lidar_region_add(x_min_m, shadow, s, -c, half_y - across);
    }
    lidar_region_close(shadow);
}

/* Whether box `a` may hide a part of box `b`; errs on the side of yes. */
BOTH_FN bool lidar_may_hide(const struct lidar_box *a, const struct lidar_box *b)
{
    if (!a->casts || a->range_min_m >= b->range_max_m) {
        return false;
    }
    bool all_left = true;
    bool all_right = true;
    for (int i = 0; i < 4; i++) {
        all_left = all_left && lidar_cross(a->left, b->corners[i]) >= 0;
        all_right = all_right && lidar_cross(a->right, b->corners[i]) <= 0;
    }
    return !all_left && !all_right;
}

/* Rows [*first, *end) of its own in which a box may shade cells, and those [*first_all, *end_all)
 * in which its shadow may. */
BOTH_FN void lidar_shaded_rows(const struct lidar_box *box, double x_min_m, uint32_t *first,
                               uint32_t *end, uint32_t *first_all, uint32_t *end_all)
{
    *first = lidar_first_row(x_min_m, box->x_low);
    *end = lidar_first_row(x_min_m, box->x_high);
    *first_all = 0;
    *end_all = LIDAR_ROWS;
    if (box->left.x_m >= 0 && box->right.x_m >= 0) {
        *first_all = *first;
    } else if (box->left.x_m <= 0 && box->right.x_m <= 0) {
        *end_all = *end;
    }
}

/* ---- the lidar's reach ---- */

/* Whether any part of the grid is farther than the lidar reaches. */
BOTH_FN bool lidar_is_limited(double x_min_m, double y_min_m, double visibility_m)
{
    double x = both_max(-x_min_m, x_min_m + LIDAR_ROWS * LIDAR_CELL_M);
    double y = both_max(-y_min_m, y_min_m + LIDAR_COLS * LIDAR_CELL_M);
    return !(visibility_m * visibility_m > x * x + y * y);
}

/* Half of what the lidar reaches of the line at constant y, which passes the sensor in its middle.
 */
BOTH_FN double lidar_half_reach(double visibility_m, double y)
{
    double left = visibility_m * visibility_m - y * y;
    return left > 0 ? sqrt(left) : 0.0;
}

/* An integer part that is safe for any finite value. */
BOTH_FN int32_t lidar_floor_column(double k)
{
    return (int32_t)floor(both_clamp(k, -4.0 * LIDAR_COLS, 4.0 * LIDAR_COLS));
}

/* The run of columns [*first, *end) of a row whose centres are within reach; empty where first >=
 * end. It is counted from the sensor's column to either side, so a grid that is symmetric about it
 * is marked symmetrically. */
BOTH_FN void lidar_reach_columns(double x_min_m, double y_min_m, double visibility_m, int32_t row,
                                 int32_t *first, int32_t *end)
{
    double sensor_col = -y_min_m * (1.0 / LIDAR_CELL_M);
    int32_t whole = lidar_floor_column(sensor_col);
    double part = both_clamp(sensor_col - whole, 0.0, 1.0);
    double x = x_min_m + (row + 0.5) * LIDAR_CELL_M;
    double left = visibility_m * visibility_m - x * x;
    *first = *end = 0;
    if (!(left > 0)) {
        return;
    }
    double half = sqrt(left) * (1.0 / LIDAR_CELL_M) + 0.5;
    int32_t low = whole - lidar_floor_column(half - part);
    int32_t high = whole + lidar_floor_column(half + part);
    *first = low > 0 ? low : 0;
    *end = high < LIDAR_COLS ? high : (int32_t)LIDAR_COLS;
}

/* ---- area ---- */

BOTH_FN int32_t lidar_clamp_index(double value, int32_t high)
{
    return value < 0 ? 0 : value > high ? high : (int32_t)value;
}

BOTH_FN struct lidar_patch lidar_patch_of(const struct lidar_box *box, double x_min_m,
                                          double y_min_m)
{
    struct lidar_patch patch;
    patch.row = lidar_clamp_index((box->x_low - x_min_m) / LIDAR_CELL_M - 0.01, LIDAR_ROWS - 1);
    patch.rows =
        lidar_clamp_index((box->x_high - x_min_m) / LIDAR_CELL_M + 1.01, LIDAR_ROWS) - patch.row;
    patch.col = lidar_clamp_index((box->y_low - y_min_m) / LIDAR_CELL_M, LIDAR_COLS - 1);
    patch.cols =
        lidar_clamp_index((box->y_high - y_min_m) / LIDAR_CELL_M + 1.0, LIDAR_COLS) - patch.col;
    return patch;
}

/* Position along the rows at which x (inside the grid) lies, in 1 / LIDAR_LENGTH_ONE of a cell. */
BOTH_FN uint32_t lidar_position(double x_min_m, double x_m)
{
    double offset = both_clamp((x_m - x_min_m) * (1.0 / LIDAR_CELL_M), 0.0, LIDAR_ROWS);
    return (uint32_t)(offset * LIDAR_LENGTH_ONE + 0.5);
}

/* Of a strip low..high within one column, against LIDAR_WEIGHT_ONE. */
BOTH_FN int32_t lidar_weight(double low, double high)
{
    const double unit = LIDAR_WEIGHT_ONE * LIDAR_STRIPS_PER_CELL / LIDAR_CELL_M;
    return (int32_t)((high - low) * unit + 0.5);
}

/* A strip that begins at y ends at the next grid line or corner: between those, edges are straight
 * and the length along the middle times the width is the exact area. */
BOTH_FN double lidar_strip_end(const struct lidar_box *box, double y, double line, double end)
{
    double next = both_min(line, end);
    for (int i = 0; i < 4; i++) {
        double corner = box->corners[i].y_m;
        next = corner > y && corner < next ? corner : next;
    }
    return next;
}

/* A cell's share in 255ths, of its area. */
BOTH_FN uint32_t lidar_covered(int32_t area)
{
    return ((uint32_t)area * 255 + LIDAR_AREA_ONE / 2) / LIDAR_AREA_ONE;
}

BOTH_FN uint8_t lidar_add_covered(uint8_t before, uint32_t covered)
{
    covered += before;
    return (uint8_t)(covered > 255 ? 255 : covered);
}

#endif
