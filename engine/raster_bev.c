/*
 * BEV grid: what a lidar at ego's box centre sees, and the map under it.
 *
 * Every agent is a convex box in ego's frame. Three convex regions matter: its outline, its *core*
 * (what lies deeper than RETURN_DEPTH_M behind the faces that look at the sensor) and its *shadow*
 * (all points whose line of sight crosses the box). Occupancy is the area of outline minus core
 * minus the shadows of other boxes, integrated in thin strips along x; unseen cells are those whose
 * centre lies in a core or in a shadow outside its own outline. Plane geometry throughout: a box
 * hides what is behind it whatever the heights, unless it is low. See schemas/observation.md.
 *
 * Determinism: IEEE operations in a fixed order, integer accumulation, agents in index order.
 */
#include "base/dmath.h"
#include "base/rng.h"
#include "engine/raster.h"
#include "engine/raster_layers.h"

#include <math.h>
#include <string.h>

#define RETURN_DEPTH_M 1.0
#define LOW_HEIGHT_M 0.6
#define GRID_X_MAX_M (BEV_X_MIN_M + BEV_ROWS * BEV_CELL_M)
#define GRID_Y_MAX_M (BEV_Y_MIN_M + BEV_COLS * BEV_CELL_M)
#define FAR_M 1e9

enum {
    STRIPS_PER_CELL = 4, /* along y */
    STRIPS = BEV_COLS * STRIPS_PER_CELL,
    WEIGHT_ONE = 256,  /* of a whole strip */
    LENGTH_ONE = 1024, /* a cell's length in fixed point */
    AREA_ONE = STRIPS_PER_CELL * WEIGHT_ONE * LENGTH_ONE,
};

struct span {
    double low;
    double high;
};

/* A convex region, intersection of at most RASTER_BOUNDS half planes, prepared for two uses: rows
 * of the grid (which columns have their centre inside) and strips along x (which part of the line
 * at constant y is inside, in metres). */
struct region {
    struct raster_region rows;
    double x_min, x_max; /* outside, no row has any */
    struct raster_region strips;
    double y_min, y_max;
};

struct lidar_box {
    struct vec2 corners[4];
    struct region outline, core, shadow;
    bool has_core;
    bool casts;
    struct vec2 left, right; /* silhouette corners as the sensor sees them, if it casts */
    double x_low, x_high, y_low, y_high;
    double range_min_m, range_max_m;
};

struct lidar {
    uint32_t count;
    double visibility_m;
    bool limited; /* visibility ends inside the grid */
    struct lidar_box boxes[LIMIT_AGENTS];
};

/* ---- regions ---- */

static void region_init(struct region *region)
{
    region->rows.low_count = region->rows.high_count = 0;
    region->strips.low_count = region->strips.high_count = 0;
    region->x_min = region->y_min = -FAR_M;
    region->x_max = region->y_max = FAR_M;
}

/* Adds the bound v = offset + slope * u as an upper one if `upper`, else as a lower one. */
static void add_bound(struct raster_region *bounds, bool upper, double offset, double slope)
{
    if (upper) {
        bounds->high_offset[bounds->high_count] = offset;
        bounds->high_slope[bounds->high_count++] = slope;
    } else {
        bounds->low_offset[bounds->low_count] = offset;
        bounds->low_slope[bounds->low_count++] = slope;
    }
}

/* Adds a * x + b * y <= c; (a, b) need not have unit length. */
static void region_add(struct region *region, double a, double b, double c)
{
    const double parallel = 1e-9;
    if (fabs(a) > parallel) {
        add_bound(&region->strips, a > 0, c / a, -b / a);
    } else if (b > 0) {
        region->y_max = dmath_min(region->y_max, c / b);
    } else {
        region->y_min = dmath_max(region->y_min, c / b);
    }
    if (fabs(b) > parallel) {
        /* Column and row numbers as functions of the coordinates of cell centres. */
        double slope = -a / b;
        double y = c / b + slope * (BEV_X_MIN_M + BEV_CELL_M / 2);
        add_bound(&region->rows, b > 0, (y - BEV_Y_MIN_M) / BEV_CELL_M - 0.5, slope);
    } else if (a > 0) {
        region->x_max = dmath_min(region->x_max, c / a);
    } else {
        region->x_min = dmath_max(region->x_min, c / a);
    }
}

/* Gives unbounded directions the edges of the grid. */
static void region_close(struct region *region)
{
    if (region->rows.low_count == 0) {
        add_bound(&region->rows, false, 0.0, 0.0);
    }
    if (region->rows.high_count == 0) {
        add_bound(&region->rows, true, BEV_COLS, 0.0);
    }
    if (region->strips.low_count == 0) {
        add_bound(&region->strips, false, -FAR_M, 0.0);
    }
    if (region->strips.high_count == 0) {
        add_bound(&region->strips, true, FAR_M, 0.0);
    }
}

/* The part of the line at constant y that lies in the region; empty when low >= high. */
static struct span region_span(const struct region *region, double y)
{
    const struct raster_region *bounds = &region->strips;
    if (y < region->y_min || y > region->y_max) {
        return (struct span){0.0, 0.0};
    }
    struct span span = {bounds->low_offset[0] + bounds->low_slope[0] * y,
                        bounds->high_offset[0] + bounds->high_slope[0] * y};
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

/* ---- boxes ---- */

static double cross(struct vec2 a, struct vec2 b)
{
    return a.x_m * b.y_m - a.y_m * b.x_m;
}

/* The rectangle [x0, x1] x [y0, y1] of a box's own frame. */
static void region_rectangle(struct region *region, const struct box *box, double x0, double x1,
                             double y0, double y1)
{
    double c = box->cos_heading;
    double s = box->sin_heading;
    double along = box->center.x_m * c + box->center.y_m * s;
    double across = -box->center.x_m * s + box->center.y_m * c;
    region_init(region);
    region_add(region, c, s, along + x1);
    region_add(region, -c, -s, -along - x0);
    region_add(region, -s, c, across + y1);
    region_add(region, s, -c, -across - y0);
    region_close(region);
}

/* Silhouette as seen from the origin: the corners with everything else to their right, left. */
static void find_silhouette(struct lidar_box *box)
{
    box->left = box->corners[0];
    box->right = box->corners[0];
    for (int i = 1; i < 4; i++) {
        if (cross(box->left, box->corners[i]) > 0) {
            box->left = box->corners[i];
        }
        if (cross(box->right, box->corners[i]) < 0) {
            box->right = box->corners[i];
        }
    }
}

/* Core and shadow, from the faces that look at the sensor. */
static void find_hidden(struct lidar_box *out, const struct box *box, bool low)
{
    double c = box->cos_heading;
    double s = box->sin_heading;
    /* The sensor in the box's frame. */
    double sensor_x = -(box->center.x_m * c + box->center.y_m * s);
    double sensor_y = box->center.x_m * s - box->center.y_m * c;
    double half_x = box->half_length_m;
    double half_y = box->half_width_m;
    bool front = sensor_x > half_x;
    bool rear = sensor_x < -half_x;
    bool left = sensor_y > half_y;
    bool right = sensor_y < -half_y;
    out->casts = !low && (front || rear || left || right);
    out->has_core = false;
    if (!out->casts) {
        return;
    }
    double x0 = rear ? -half_x + RETURN_DEPTH_M : -half_x;
    double x1 = front ? half_x - RETURN_DEPTH_M : half_x;
    double y0 = right ? -half_y + RETURN_DEPTH_M : -half_y;
    double y1 = left ? half_y - RETURN_DEPTH_M : half_y;
    if (x0 < x1 && y0 < y1) {
        out->has_core = true;
        region_rectangle(&out->core, box, x0, x1, y0, y1);
    }
    find_silhouette(out);
    region_init(&out->shadow);
    region_add(&out->shadow, -out->left.y_m, out->left.x_m, 0.0);
    region_add(&out->shadow, out->right.y_m, -out->right.x_m, 0.0);
    double along = box->center.x_m * c + box->center.y_m * s;
    double across = -box->center.x_m * s + box->center.y_m * c;
    if (front) {
        region_add(&out->shadow, c, s, along + half_x);
    } else if (rear) {
        region_add(&out->shadow, -c, -s, half_x - along);
    }
    if (left) {
        region_add(&out->shadow, -s, c, across + half_y);
    } else if (right) {
        region_add(&out->shadow, s, -c, half_y - across);
    }
    region_close(&out->shadow);
}

static void find_extent(struct lidar_box *box)
{
    box->x_low = box->y_low = FAR_M;
    box->x_high = box->y_high = -FAR_M;
    box->range_max_m = 0.0;
    for (int i = 0; i < 4; i++) {
        struct vec2 p = box->corners[i];
        box->x_low = dmath_min(box->x_low, p.x_m);
        box->x_high = dmath_max(box->x_high, p.x_m);
        box->y_low = dmath_min(box->y_low, p.y_m);
        box->y_high = dmath_max(box->y_high, p.y_m);
        box->range_max_m = dmath_max(box->range_max_m, sqrt(p.x_m * p.x_m + p.y_m * p.y_m));
    }
    /* Distance to the axis-aligned hull: a lower bound is all that is asked of it. */
    double dx = dmath_max(dmath_max(box->x_low, -box->x_high), 0.0);
    double dy = dmath_max(dmath_max(box->y_low, -box->y_high), 0.0);
    box->range_min_m = sqrt(dx * dx + dy * dy);
}

/* The agents that reach into the grid, in index order. A box outside cannot hide a cell inside. */
static void find_boxes(struct lidar *lidar, const struct scenario *scenario,
                       const struct scene *scene, double cos_ego, double sin_ego)
{
    lidar->count = 0;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        const struct agent_state *state = &scene->agents[i];
        const struct agent *agent = &scenario->agents[i];
        double dx = state->pose.x_m - scene->ego.pose.x_m;
        double dy = state->pose.y_m - scene->ego.pose.y_m;
        double x = dx * cos_ego + dy * sin_ego;
        double y = -dx * sin_ego + dy * cos_ego;
        double reach = agent->length_m + agent->width_m;
        if (!state->present || x < BEV_X_MIN_M - reach || x > GRID_X_MAX_M + reach ||
            y < BEV_Y_MIN_M - reach || y > GRID_Y_MAX_M + reach) {
            continue;
        }
        struct pose pose = {x, y, state->pose.heading_rad - scene->ego.pose.heading_rad};
        struct box box = box_make(pose, agent->length_m, agent->width_m);
        struct lidar_box *out = &lidar->boxes[lidar->count];
        box_corners(&box, out->corners);
        find_extent(out);
        if (out->x_high <= BEV_X_MIN_M || out->x_low >= GRID_X_MAX_M ||
            out->y_high <= BEV_Y_MIN_M || out->y_low >= GRID_Y_MAX_M ||
            out->range_min_m > lidar->visibility_m) {
            continue;
        }
        region_rectangle(&out->outline, &box, -box.half_length_m, box.half_length_m,
                         -box.half_width_m, box.half_width_m);
        find_hidden(out, &box, agent->low || agent->height_m < LOW_HEIGHT_M);
        lidar->count++;
    }
}

/* ---- unseen ---- */

/* Marks of the whole grid, one bit per cell. */
struct shade {
    uint64_t low[BEV_ROWS];
    uint64_t high[BEV_ROWS];
};

/* Smallest row whose centre is at or above x, clamped to [0, BEV_ROWS]. */
static uint32_t first_row(double x_m)
{
    double k = (x_m - BEV_X_MIN_M) * (1.0 / BEV_CELL_M) - 0.5;
    if (!(k > 0)) {
        return 0;
    }
    if (k > BEV_ROWS) {
        return BEV_ROWS;
    }
    uint32_t i = (uint32_t)k;
    return i + (i < k);
}

/* Marks the cells of a region in rows first..end-1. */
static void shade_region(const struct raster_kernels *kernels, const struct region *region,
                         uint32_t first, uint32_t end, struct shade *shade)
{
    uint32_t low = first_row(region->x_min);
    uint32_t high = first_row(region->x_max);
    first = first > low ? first : low;
    end = end < high ? end : high;
    if (first < end) {
        kernels->shade(&region->rows, first, end, &(struct raster_marks){shade->low, shade->high});
    }
}

/* Cells whose centre lies in the box's core, or in its shadow but outside its outline. */
static void shade_box(const struct raster_kernels *kernels, const struct lidar_box *box,
                      struct shade *shade)
{
    uint32_t first = 0;
    uint32_t end = BEV_ROWS;
    uint32_t box_first = first_row(box->x_low);
    uint32_t box_end = first_row(box->x_high);
    if (box->left.x_m >= 0 && box->right.x_m >= 0) {
        first = box_first;
    } else if (box->left.x_m <= 0 && box->right.x_m <= 0) {
        end = box_end;
    }
    shade_region(kernels, &box->shadow, first, box_first, shade);
    shade_region(kernels, &box->shadow, box_end, end, shade);
    if (box_first >= box_end) {
        return;
    }
    struct shade shadow;
    struct shade outline;
    struct shade core;
    size_t bytes = (box_end - box_first) * sizeof(uint64_t);
    struct shade *parts[3] = {&shadow, &outline, &core};
    for (int i = 0; i < 3; i++) {
        memset(parts[i]->low + box_first, 0, bytes);
        memset(parts[i]->high + box_first, 0, bytes);
    }
    shade_region(kernels, &box->shadow, box_first, box_end, &shadow);
    shade_region(kernels, &box->outline, box_first, box_end, &outline);
    if (box->has_core) {
        shade_region(kernels, &box->core, box_first, box_end, &core);
    }
    for (uint32_t r = box_first; r < box_end; r++) {
        shade->low[r] |= (shadow.low[r] & ~outline.low[r]) | core.low[r];
        shade->high[r] |= (shadow.high[r] & ~outline.high[r]) | core.high[r];
    }
}

/* Cells whose centre is farther than the lidar reaches: all but a centred run of columns, the grid
 * being symmetric about y = 0. */
static void shade_horizon(double visibility_m, struct shade *shade)
{
    for (int32_t r = 0; r < BEV_ROWS; r++) {
        double x = BEV_X_MIN_M + (r + 0.5) * BEV_CELL_M;
        double left = visibility_m * visibility_m - x * x;
        double half = left > 0 ? sqrt(left) * (1.0 / BEV_CELL_M) + 0.5 : 0.0;
        int32_t kept = half < BEV_COLS / 2 ? (int32_t)half : BEV_COLS / 2; /* to either side */
        if (kept == 0) {
            shade->low[r] = shade->high[r] = ~UINT64_C(0);
            continue;
        }
        int32_t first = BEV_COLS / 2 - kept;
        int32_t end = BEV_COLS / 2 + kept;
        uint64_t low = ~UINT64_C(0) << first;
        uint64_t high = 0;
        if (end >= 64) {
            high = ~(~UINT64_C(0) << (end - 64));
        } else {
            low &= ~(~UINT64_C(0) << end);
        }
        shade->low[r] = ~low;
        shade->high[r] = ~high;
    }
}

static void draw_unseen(const struct raster_kernels *kernels, const struct lidar *lidar,
                        uint8_t *unseen)
{
    struct shade shade = {0};
    if (lidar->limited) {
        shade_horizon(lidar->visibility_m, &shade);
    }
    for (uint32_t i = 0; i < lidar->count; i++) {
        if (lidar->boxes[i].casts) {
            shade_box(kernels, &lidar->boxes[i], &shade);
        }
    }
    kernels->expand(&(struct raster_marks){shade.low, shade.high}, BEV_ROWS, BEV_COLS, unseen);
}

/* ---- occupancy ---- */

/* Disjoint spans along one strip. */
struct span_list {
    uint32_t count;
    struct span spans[LIMIT_AGENTS + 2]; /* each subtraction adds at most one */
};

static void list_subtract(struct span_list *list, struct span cut)
{
    if (!(cut.low < cut.high)) {
        return;
    }
    uint32_t count = list->count;
    for (uint32_t i = 0; i < count; i++) {
        struct span span = list->spans[i];
        if (cut.high <= span.low || cut.low >= span.high) {
            continue;
        }
        bool keeps_low = cut.low > span.low;
        bool keeps_high = cut.high < span.high;
        if (keeps_low) {
            list->spans[i].high = cut.low;
            if (keeps_high) {
                list->spans[list->count++] = (struct span){cut.high, span.high};
            }
        } else if (keeps_high) {
            list->spans[i].low = cut.high;
        } else {
            list->spans[i].high = span.low; /* nothing left */
        }
    }
}

/* Whether box `a` may hide a part of box `b`; errs on the side of yes. */
static bool may_hide(const struct lidar_box *a, const struct lidar_box *b)
{
    if (!a->casts || a->range_min_m >= b->range_max_m) {
        return false;
    }
    bool all_left = true;
    bool all_right = true;
    for (int i = 0; i < 4; i++) {
        all_left = all_left && cross(a->left, b->corners[i]) >= 0;
        all_right = all_right && cross(a->right, b->corners[i]) <= 0;
    }
    return !all_left && !all_right;
}

/* Visible spans of box `index` on the strip at y. */
static void visible_spans(const struct lidar *lidar, const struct lidar_box *box, double y,
                          const struct lidar_box *const *hiders, uint32_t hider_count,
                          struct span_list *list)
{
    list->count = 1;
    list->spans[0] = region_span(&box->outline, y);
    if (box->has_core) {
        list_subtract(list, region_span(&box->core, y));
    }
    for (uint32_t i = 0; i < hider_count; i++) {
        list_subtract(list, region_span(&hiders[i]->shadow, y));
    }
    if (lidar->limited) {
        double left = lidar->visibility_m * lidar->visibility_m - y * y;
        double half = left > 0 ? sqrt(left) : 0.0;
        list_subtract(list, (struct span){half, FAR_M});
        list_subtract(list, (struct span){-FAR_M, -half});
    }
}

/* Cells of the grid that a box may touch, and its covered area per cell. The area is built as
 * differences along x: row r holds what changes there, a running sum over rows gives the area. */
struct patch {
    int32_t row, rows; /* rows + 1 rows of differences are in use */
    int32_t col, cols;
    int32_t area[(BEV_ROWS + 2) * BEV_COLS];
};

static int32_t clamp_index(double value, int32_t high)
{
    return value < 0 ? 0 : value > high ? high : (int32_t)value;
}

/* Adds `weight` times the part of each cell that lies beyond x (in metres, inside the grid). */
static void patch_step(struct patch *patch, int32_t col, double x_m, int32_t weight)
{
    double offset = dmath_clamp((x_m - BEV_X_MIN_M) * (1.0 / BEV_CELL_M), 0.0, BEV_ROWS);
    uint32_t position = (uint32_t)(offset * LENGTH_ONE + 0.5);
    int32_t row = (int32_t)(position / LENGTH_ONE);
    int32_t part = (int32_t)(position % LENGTH_ONE);
    int32_t *cell = &patch->area[(row - patch->row) * patch->cols + col - patch->col];
    cell[0] += weight * (LENGTH_ONE - part);
    cell[patch->cols] += weight * part;
}

static void patch_prepare(struct patch *patch, const struct lidar_box *box)
{
    patch->row = clamp_index((box->x_low - BEV_X_MIN_M) / BEV_CELL_M - 0.01, BEV_ROWS - 1);
    patch->rows =
        clamp_index((box->x_high - BEV_X_MIN_M) / BEV_CELL_M + 1.01, BEV_ROWS) - patch->row;
    patch->col = clamp_index((box->y_low - BEV_Y_MIN_M) / BEV_CELL_M, BEV_COLS - 1);
    patch->cols =
        clamp_index((box->y_high - BEV_Y_MIN_M) / BEV_CELL_M + 1.0, BEV_COLS) - patch->col;
    memset(patch->area, 0, (size_t)(patch->rows + 2) * (size_t)patch->cols * sizeof patch->area[0]);
}

/* Sums the differences, adds the areas to the occupancy and clears `unseen` where a ray returned.
 */
static void patch_resolve(struct patch *patch, uint8_t *occupancy, uint8_t *unseen)
{
    int32_t sums[BEV_COLS] = {0};
    for (int32_t r = 0; r < patch->rows; r++) {
        const int32_t *area = &patch->area[r * patch->cols];
        size_t first = (size_t)(patch->row + r) * BEV_COLS + (size_t)patch->col;
        for (int32_t c = 0; c < patch->cols; c++) {
            sums[c] += area[c];
            uint32_t covered = ((uint32_t)sums[c] * 255 + AREA_ONE / 2) / AREA_ONE;
            covered += occupancy[first + (size_t)c];
            occupancy[first + (size_t)c] = (uint8_t)(covered > 255 ? 255 : covered);
            if (covered > 0) {
                unseen[first + (size_t)c] = 0;
            }
        }
    }
}

/* What one box is drawn with: its rivals for the light and the cells it fills. */
struct box_canvas {
    const struct lidar *lidar;
    const struct lidar_box *box;
    const struct lidar_box *hiders[LIMIT_AGENTS];
    uint32_t hider_count;
    struct patch patch;
};

/* Adds the strip low..high, which lies within one column, cut along its middle. */
static void draw_strip(struct box_canvas *canvas, int32_t col, double low, double high)
{
    const double unit = WEIGHT_ONE * STRIPS_PER_CELL / BEV_CELL_M;
    struct span_list list;
    int32_t weight = (int32_t)((high - low) * unit + 0.5);
    visible_spans(canvas->lidar, canvas->box, (low + high) / 2, canvas->hiders, canvas->hider_count,
                  &list);
    for (uint32_t i = 0; i < list.count; i++) {
        double from = dmath_max(list.spans[i].low, BEV_X_MIN_M);
        double to = dmath_min(list.spans[i].high, GRID_X_MAX_M);
        if (from < to) {
            patch_step(&canvas->patch, col, from, weight);
            patch_step(&canvas->patch, col, to, -weight);
        }
    }
}

static void draw_box(struct box_canvas *canvas, const struct lidar *lidar, uint32_t index,
                     uint8_t *occupancy, uint8_t *unseen)
{
    const struct lidar_box *box = &lidar->boxes[index];
    canvas->lidar = lidar;
    canvas->box = box;
    canvas->hider_count = 0;
    for (uint32_t i = 0; i < lidar->count; i++) {
        if (i != index && may_hide(&lidar->boxes[i], box)) {
            canvas->hiders[canvas->hider_count++] = &lidar->boxes[i];
        }
    }
    patch_prepare(&canvas->patch, box);
    const double strip_m = BEV_CELL_M / STRIPS_PER_CELL;
    double end = dmath_min(box->y_high, GRID_Y_MAX_M);
    double y = dmath_max(box->y_low, BEV_Y_MIN_M);
    int32_t k = clamp_index((y - BEV_Y_MIN_M) / strip_m, STRIPS - 1);
    while (y < end && k < STRIPS) {
        /* A strip ends at the next grid line or corner: between those, edges are straight and the
         * length along the middle times the width is the exact area. */
        double line = BEV_Y_MIN_M + (k + 1) * strip_m;
        double next = dmath_min(line, end);
        for (int i = 0; i < 4; i++) {
            double corner = box->corners[i].y_m;
            next = corner > y && corner < next ? corner : next;
        }
        draw_strip(canvas, k / STRIPS_PER_CELL, y, next);
        k += next >= line;
        y = next;
    }
    patch_resolve(&canvas->patch, occupancy, unseen);
}

/* ---- weather ---- */

/* Per weather: chance that a cell's return is lost, at no range and at the edge of visibility, in
 * 1/256, and the number of stray returns per frame. */
static const struct {
    uint16_t lost_near, lost_far;
    uint32_t strays;
} weather_noise[WEATHER_COUNT] = {
    [WEATHER_CLEAR] = {0, 0, 0}, [WEATHER_RAIN] = {3, 16, 2}, [WEATHER_HEAVY_RAIN] = {8, 40, 5},
    [WEATHER_FOG] = {5, 80, 3},  [WEATHER_SNOW] = {8, 32, 8},
};

enum {
    NOISE_LOSS = 0,        /* element numbers of the BEV stream: loss by groups of 16 cells .. */
    NOISE_STRAY = 1 << 16, /* .. and one per stray return */
    STRAY_VALUE_MAX = 96,
};

/* Squared range of a cell's centre. */
static double range_squared(int32_t row, int32_t col)
{
    double x = BEV_X_MIN_M + (row + 0.5) * BEV_CELL_M;
    double y = BEV_Y_MIN_M + (col + 0.5) * BEV_CELL_M;
    return x * x + y * y;
}

/* Loses returns: a cell that gave none is empty and unseen. One random block serves 16 cells. */
static void drop_returns(const struct scene *scene, uint64_t seed, uint8_t *occupancy,
                         uint8_t *unseen)
{
    enum { GROUP = 16 };
    uint32_t near = weather_noise[scene->conditions.weather].lost_near;
    uint32_t far = weather_noise[scene->conditions.weather].lost_far;
    double visibility = scene->conditions.visibility_m;
    double scale = (far - near) / (visibility * visibility);
    for (int32_t group = 0; group < BEV_CELLS / GROUP; group++) {
        uint64_t halves[2];
        memcpy(halves, occupancy + group * GROUP, sizeof halves);
        if ((halves[0] | halves[1]) == 0) {
            continue;
        }
        uint32_t counter[4] = {scene->tick, RNG_STREAM_BEV, NOISE_LOSS + (uint32_t)group, 0};
        uint32_t words[4];
        rng_philox(seed, counter, words);
        for (int32_t k = 0; k < GROUP; k++) {
            int32_t cell = group * GROUP + k;
            uint32_t byte = words[k / 4] >> (8 * (k % 4)) & 255;
            if (occupancy[cell] != 0 &&
                byte < near + scale * range_squared(cell / BEV_COLS, cell % BEV_COLS)) {
                occupancy[cell] = 0;
                unseen[cell] = 255;
            }
        }
    }
}

/* Drops, flakes and fog near the sensor return now and then: single weak cells 3 to 18 m away. */
static void add_strays(const struct scene *scene, uint64_t seed, uint8_t *occupancy,
                       const uint8_t *unseen)
{
    for (uint32_t i = 0; i < weather_noise[scene->conditions.weather].strays; i++) {
        uint32_t counter[4] = {scene->tick, RNG_STREAM_BEV, NOISE_STRAY + i, 0};
        uint32_t words[4];
        rng_philox(seed, counter, words);
        double angle = words[0] * (2 * PI_RAD / 4294967296.0);
        double range = 3.0 + words[1] * (15.0 / 4294967296.0);
        double sine;
        double cosine;
        dmath_sincos(angle, &sine, &cosine);
        double x = range * cosine;
        double y = range * sine;
        int32_t row = (int32_t)((x - BEV_X_MIN_M) / BEV_CELL_M);
        int32_t col = (int32_t)((y - BEV_Y_MIN_M) / BEV_CELL_M);
        if (x < BEV_X_MIN_M || row >= BEV_ROWS || col >= BEV_COLS) {
            continue;
        }
        int32_t cell = row * BEV_COLS + col;
        if (unseen[cell] == 0 && occupancy[cell] == 0) {
            occupancy[cell] = (uint8_t)(32 + words[2] % (STRAY_VALUE_MAX - 31));
        }
    }
}

/* ---- the whole ---- */

static void draw_map(const struct raster_layers *layers, struct vec2 ego, double c, double s,
                     uint8_t *drivable, uint8_t *marking)
{
    struct raster_window window;
    const double middle_x = (BEV_X_MIN_M + GRID_X_MAX_M) / 2;
    const double first_x = BEV_X_MIN_M + BEV_CELL_M / 2;
    const double first_y = BEV_Y_MIN_M + BEV_CELL_M / 2;
    raster_layers_window(
        layers, (struct vec2){ego.x_m + middle_x * c, ego.y_m + middle_x * s},
        (struct vec2){ego.x_m + first_x * c - first_y * s, ego.y_m + first_x * s + first_y * c},
        (struct vec2){BEV_CELL_M * c, BEV_CELL_M * s},
        (struct vec2){-BEV_CELL_M * s, BEV_CELL_M * c}, &window);
    layers->kernels.sample(&window, BEV_ROWS, BEV_COLS, drivable, marking);
}

void raster_bev(const struct raster_layers *layers, const struct scenario *scenario,
                const struct scene *scene, uint64_t seed, uint8_t *out)
{
    uint8_t *occupancy = out + BEV_OCCUPANCY * BEV_CELLS;
    uint8_t *unseen = out + BEV_UNSEEN * BEV_CELLS;
    double c;
    double s;
    dmath_sincos(scene->ego.pose.heading_rad, &s, &c);
    draw_map(layers, (struct vec2){scene->ego.pose.x_m, scene->ego.pose.y_m}, c, s,
             out + BEV_DRIVABLE * BEV_CELLS, out + BEV_MARKING * BEV_CELLS);

    struct lidar lidar;
    struct box_canvas canvas;
    lidar.visibility_m = scene->conditions.visibility_m;
    lidar.limited = lidar.visibility_m < 84.0; /* the farthest corner is 83.5 m away */
    find_boxes(&lidar, scenario, scene, c, s);
    memset(occupancy, 0, BEV_CELLS);
    draw_unseen(&layers->kernels, &lidar, unseen);
    for (uint32_t i = 0; i < lidar.count; i++) {
        draw_box(&canvas, &lidar, i, occupancy, unseen);
    }
    if (scene->conditions.weather != WEATHER_CLEAR) {
        drop_returns(scene, seed, occupancy, unseen);
        add_strays(scene, seed, occupancy, unseen);
    }
}
