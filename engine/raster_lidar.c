/*
 * Lidar: what one sensor sees of the agents, on a grid of cells that may lie and turn anywhere
 * around it. raster_bev.c draws the observation with it, layout.c the anchored window.
 *
 * Everything happens in the view's frame: origin at the sensor, x along the grid's rows. Every
 * agent is a convex box there. Three convex regions matter: its outline, its *core* (what lies
 * deeper than RETURN_DEPTH_M behind the faces that look at the sensor) and its *shadow* (all points
 * whose line of sight crosses the box). Occupancy is the area of outline minus core minus the
 * shadows of other boxes, integrated in thin strips along x; unseen cells are those whose centre
 * lies in a core or in a shadow outside its own outline. Plane geometry throughout: a box hides
 * what is behind it whatever the heights, unless it is low. See schemas/observation.md.
 *
 * Determinism: IEEE operations in a fixed order, integer accumulation, agents in index order.
 */
#include "base/dmath.h"
#include "engine/raster_view.h"

#include <math.h>
#include <string.h>

#define RETURN_DEPTH_M 1.0
#define LOW_HEIGHT_M 0.6
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
    uint32_t agent; /* index in the scenario */
    bool in_grid;   /* else it only hides */
    struct vec2 corners[4];
    struct region outline, core, shadow;
    bool has_core;
    bool casts;
    struct vec2 left, right; /* silhouette corners as the sensor sees them, if it casts */
    double x_low, x_high, y_low, y_high;
    double range_min_m, range_max_m;
};

struct lidar {
    const struct raster_view *view;
    uint32_t count;
    double visibility_m;
    bool limited; /* visibility may end inside the grid */
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
static void region_add(const struct raster_view *view, struct region *region, double a, double b,
                       double c)
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
        double y = c / b + slope * (view->x_min_m + BEV_CELL_M / 2);
        add_bound(&region->rows, b > 0, (y - view->y_min_m) / BEV_CELL_M - 0.5, slope);
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
static void region_rectangle(const struct raster_view *view, struct region *region,
                             const struct box *box, double x0, double x1, double y0, double y1)
{
    double c = box->cos_heading;
    double s = box->sin_heading;
    double along = box->center.x_m * c + box->center.y_m * s;
    double across = -box->center.x_m * s + box->center.y_m * c;
    region_init(region);
    region_add(view, region, c, s, along + x1);
    region_add(view, region, -c, -s, -along - x0);
    region_add(view, region, -s, c, across + y1);
    region_add(view, region, s, -c, -across - y0);
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
static void find_hidden(const struct raster_view *view, const struct box *box, bool low,
                        struct lidar_box *out)
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
        region_rectangle(view, &out->core, box, x0, x1, y0, y1);
    }
    find_silhouette(out);
    region_init(&out->shadow);
    region_add(view, &out->shadow, -out->left.y_m, out->left.x_m, 0.0);
    region_add(view, &out->shadow, out->right.y_m, -out->right.x_m, 0.0);
    double along = box->center.x_m * c + box->center.y_m * s;
    double across = -box->center.x_m * s + box->center.y_m * c;
    if (front) {
        region_add(view, &out->shadow, c, s, along + half_x);
    } else if (rear) {
        region_add(view, &out->shadow, -c, -s, half_x - along);
    }
    if (left) {
        region_add(view, &out->shadow, -s, c, across + half_y);
    } else if (right) {
        region_add(view, &out->shadow, s, -c, half_y - across);
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

/* The agents that may fill or hide a cell of the grid, in index order. */
static void find_boxes(struct lidar *lidar, const struct scenario *scenario,
                       const struct scene *scene)
{
    const struct raster_view *view = lidar->view;
    double x_max = view->x_min_m + BEV_ROWS * BEV_CELL_M;
    double y_max = view->y_min_m + BEV_COLS * BEV_CELL_M;
    lidar->count = 0;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        const struct agent_state *state = &scene->agents[i];
        const struct agent *agent = &scenario->agents[i];
        double dx = state->pose.x_m - view->sensor.x_m;
        double dy = state->pose.y_m - view->sensor.y_m;
        double x = dx * view->cos_heading + dy * view->sin_heading;
        double y = -dx * view->sin_heading + dy * view->cos_heading;
        double reach = agent->length_m + agent->width_m;
        if (!state->present || x < view->x_low_m - reach || x > view->x_high_m + reach ||
            y < view->y_low_m - reach || y > view->y_high_m + reach) {
            continue;
        }
        struct pose pose = {x, y, state->pose.heading_rad - view->heading_rad};
        struct box box = box_make(pose, agent->length_m, agent->width_m);
        struct lidar_box *out = &lidar->boxes[lidar->count];
        box_corners(&box, out->corners);
        find_extent(out);
        if (out->x_high <= view->x_low_m || out->x_low >= view->x_high_m ||
            out->y_high <= view->y_low_m || out->y_low >= view->y_high_m ||
            out->range_min_m > lidar->visibility_m) {
            continue;
        }
        out->agent = i;
        out->in_grid = out->x_high > view->x_min_m && out->x_low < x_max &&
                       out->y_high > view->y_min_m && out->y_low < y_max;
        region_rectangle(view, &out->outline, &box, -box.half_length_m, box.half_length_m,
                         -box.half_width_m, box.half_width_m);
        find_hidden(view, &box, agent->low || agent->height_m < LOW_HEIGHT_M, out);
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
static uint32_t first_row(const struct raster_view *view, double x_m)
{
    double k = (x_m - view->x_min_m) * (1.0 / BEV_CELL_M) - 0.5;
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
static void shade_region(const struct raster_kernels *kernels, const struct raster_view *view,
                         const struct region *region, uint32_t first, uint32_t end,
                         struct shade *shade)
{
    uint32_t low = first_row(view, region->x_min);
    uint32_t high = first_row(view, region->x_max);
    first = first > low ? first : low;
    end = end < high ? end : high;
    if (first < end) {
        kernels->shade(&region->rows, first, end, &(struct raster_marks){shade->low, shade->high});
    }
}

/* Cells whose centre lies in the box's core, or in its shadow but outside its outline. */
static void shade_box(const struct raster_kernels *kernels, const struct raster_view *view,
                      const struct lidar_box *box, struct shade *shade)
{
    uint32_t first = 0;
    uint32_t end = BEV_ROWS;
    uint32_t box_first = first_row(view, box->x_low);
    uint32_t box_end = first_row(view, box->x_high);
    if (box->left.x_m >= 0 && box->right.x_m >= 0) {
        first = box_first;
    } else if (box->left.x_m <= 0 && box->right.x_m <= 0) {
        end = box_end;
    }
    shade_region(kernels, view, &box->shadow, first, box_first, shade);
    shade_region(kernels, view, &box->shadow, box_end, end, shade);
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
    shade_region(kernels, view, &box->shadow, box_first, box_end, &shadow);
    shade_region(kernels, view, &box->outline, box_first, box_end, &outline);
    if (box->has_core) {
        shade_region(kernels, view, &box->core, box_first, box_end, &core);
    }
    for (uint32_t r = box_first; r < box_end; r++) {
        shade->low[r] |= (shadow.low[r] & ~outline.low[r]) | core.low[r];
        shade->high[r] |= (shadow.high[r] & ~outline.high[r]) | core.high[r];
    }
}

/* An integer part that is safe for any finite value. */
static int32_t floor_column(double k)
{
    return (int32_t)floor(dmath_clamp(k, -4.0 * BEV_COLS, 4.0 * BEV_COLS));
}

/* Cells whose centre is farther than the lidar reaches: in every row all but a run of columns. The
 * run is counted from the sensor's column to either side, so a grid that is symmetric about it is
 * marked symmetrically. */
static void shade_horizon(const struct raster_view *view, double visibility_m, struct shade *shade)
{
    double sensor_col = -view->y_min_m * (1.0 / BEV_CELL_M);
    int32_t whole = floor_column(sensor_col);
    double part = dmath_clamp(sensor_col - whole, 0.0, 1.0);
    for (int32_t r = 0; r < BEV_ROWS; r++) {
        double x = view->x_min_m + (r + 0.5) * BEV_CELL_M;
        double left = visibility_m * visibility_m - x * x;
        shade->low[r] = shade->high[r] = ~UINT64_C(0);
        if (!(left > 0)) {
            continue;
        }
        double half = sqrt(left) * (1.0 / BEV_CELL_M) + 0.5;
        int32_t first = whole - floor_column(half - part);
        int32_t end = whole + floor_column(half + part);
        first = first > 0 ? first : 0;
        end = end < BEV_COLS ? end : BEV_COLS;
        if (first < end) {
            uint64_t low = first < 64 ? ~UINT64_C(0) << first : 0;
            uint64_t high = first > 64 ? ~UINT64_C(0) << (first - 64) : ~UINT64_C(0);
            low &= end < 64 ? ~(~UINT64_C(0) << end) : ~UINT64_C(0);
            high &= end > 64 ? ~(~UINT64_C(0) << (end - 64)) : 0;
            shade->low[r] = ~low;
            shade->high[r] = ~high;
        }
    }
}

static void draw_unseen(const struct raster_kernels *kernels, const struct lidar *lidar,
                        uint8_t *unseen)
{
    struct shade shade = {0};
    if (lidar->limited) {
        shade_horizon(lidar->view, lidar->visibility_m, &shade);
    }
    for (uint32_t i = 0; i < lidar->count; i++) {
        if (lidar->boxes[i].casts) {
            shade_box(kernels, lidar->view, &lidar->boxes[i], &shade);
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
    const struct raster_view *view;
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
    double offset = dmath_clamp((x_m - patch->view->x_min_m) * (1.0 / BEV_CELL_M), 0.0, BEV_ROWS);
    uint32_t position = (uint32_t)(offset * LENGTH_ONE + 0.5);
    int32_t row = (int32_t)(position / LENGTH_ONE);
    int32_t part = (int32_t)(position % LENGTH_ONE);
    int32_t *cell = &patch->area[(row - patch->row) * patch->cols + col - patch->col];
    cell[0] += weight * (LENGTH_ONE - part);
    cell[patch->cols] += weight * part;
}

static void patch_prepare(struct patch *patch, const struct raster_view *view,
                          const struct lidar_box *box)
{
    double x = view->x_min_m;
    double y = view->y_min_m;
    patch->view = view;
    patch->row = clamp_index((box->x_low - x) / BEV_CELL_M - 0.01, BEV_ROWS - 1);
    patch->rows = clamp_index((box->x_high - x) / BEV_CELL_M + 1.01, BEV_ROWS) - patch->row;
    patch->col = clamp_index((box->y_low - y) / BEV_CELL_M, BEV_COLS - 1);
    patch->cols = clamp_index((box->y_high - y) / BEV_CELL_M + 1.0, BEV_COLS) - patch->col;
    memset(patch->area, 0, (size_t)(patch->rows + 2) * (size_t)patch->cols * sizeof patch->area[0]);
}

static uint8_t add_covered(uint8_t before, uint32_t covered)
{
    covered += before;
    return (uint8_t)(covered > 255 ? 255 : covered);
}

/* Sums the differences, adds the areas to the occupancy, clears `unseen` where a ray returned and
 * says whose return it was. */
static void patch_resolve(const struct patch *patch, uint32_t agent, bool vru,
                          const struct raster_planes *planes)
{
    int32_t sums[BEV_COLS] = {0};
    for (int32_t r = 0; r < patch->rows; r++) {
        const int32_t *area = &patch->area[r * patch->cols];
        size_t first = (size_t)(patch->row + r) * BEV_COLS + (size_t)patch->col;
        for (int32_t c = 0; c < patch->cols; c++) {
            sums[c] += area[c];
            uint32_t covered = ((uint32_t)sums[c] * 255 + AREA_ONE / 2) / AREA_ONE;
            size_t cell = first + (size_t)c;
            if (covered == 0) {
                continue;
            }
            planes->occupancy[cell] = add_covered(planes->occupancy[cell], covered);
            planes->unseen[cell] = 0;
            if (planes->owner != NULL) {
                planes->owner[cell] = (uint16_t)(agent + 1);
            }
            if (vru && planes->vru != NULL) {
                planes->vru[cell] = add_covered(planes->vru[cell], covered);
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
    const double x_min = canvas->lidar->view->x_min_m;
    const double x_max = x_min + BEV_ROWS * BEV_CELL_M;
    struct span_list list;
    int32_t weight = (int32_t)((high - low) * unit + 0.5);
    visible_spans(canvas->lidar, canvas->box, (low + high) / 2, canvas->hiders, canvas->hider_count,
                  &list);
    for (uint32_t i = 0; i < list.count; i++) {
        double from = dmath_max(list.spans[i].low, x_min);
        double to = dmath_min(list.spans[i].high, x_max);
        if (from < to) {
            patch_step(&canvas->patch, col, from, weight);
            patch_step(&canvas->patch, col, to, -weight);
        }
    }
}

/* Accumulates the box's visible area in canvas->patch. */
static void draw_box(struct box_canvas *canvas, const struct lidar *lidar, uint32_t index)
{
    const struct lidar_box *box = &lidar->boxes[index];
    const double y_min = lidar->view->y_min_m;
    canvas->lidar = lidar;
    canvas->box = box;
    canvas->hider_count = 0;
    for (uint32_t i = 0; i < lidar->count; i++) {
        if (i != index && may_hide(&lidar->boxes[i], box)) {
            canvas->hiders[canvas->hider_count++] = &lidar->boxes[i];
        }
    }
    patch_prepare(&canvas->patch, lidar->view, box);
    const double strip_m = BEV_CELL_M / STRIPS_PER_CELL;
    double end = dmath_min(box->y_high, y_min + BEV_COLS * BEV_CELL_M);
    double y = dmath_max(box->y_low, y_min);
    int32_t k = clamp_index((y - y_min) / strip_m, STRIPS - 1);
    while (y < end && k < STRIPS) {
        /* A strip ends at the next grid line or corner: between those, edges are straight and the
         * length along the middle times the width is the exact area. */
        double line = y_min + (k + 1) * strip_m;
        double next = dmath_min(line, end);
        for (int i = 0; i < 4; i++) {
            double corner = box->corners[i].y_m;
            next = corner > y && corner < next ? corner : next;
        }
        draw_strip(canvas, k / STRIPS_PER_CELL, y, next);
        k += next >= line;
        y = next;
    }
}

/* ---- the whole ---- */

static bool is_vulnerable(enum agent_kind kind)
{
    return kind == AGENT_PEDESTRIAN || kind == AGENT_CYCLIST || kind == AGENT_MOTORCYCLE ||
           kind == AGENT_ANIMAL;
}

/* Whether any part of the grid is farther than the lidar reaches. */
static bool is_limited(const struct raster_view *view, double visibility_m)
{
    double x = dmath_max(-view->x_min_m, view->x_min_m + BEV_ROWS * BEV_CELL_M);
    double y = dmath_max(-view->y_min_m, view->y_min_m + BEV_COLS * BEV_CELL_M);
    return !(visibility_m * visibility_m > x * x + y * y);
}

void raster_lidar(const struct raster_kernels *kernels, const struct scenario *scenario,
                  const struct scene *scene, const struct raster_view *view,
                  const struct raster_planes *planes)
{
    struct lidar lidar;
    struct box_canvas canvas;
    lidar.view = view;
    lidar.visibility_m = scene->conditions.visibility_m;
    lidar.limited = is_limited(view, lidar.visibility_m);
    find_boxes(&lidar, scenario, scene);
    memset(planes->occupancy, 0, BEV_CELLS);
    if (planes->vru != NULL) {
        memset(planes->vru, 0, BEV_CELLS);
    }
    if (planes->owner != NULL) {
        memset(planes->owner, 0, BEV_CELLS * sizeof planes->owner[0]);
    }
    draw_unseen(kernels, &lidar, planes->unseen);
    for (uint32_t i = 0; i < lidar.count; i++) {
        uint32_t agent = lidar.boxes[i].agent;
        if (lidar.boxes[i].in_grid) {
            draw_box(&canvas, &lidar, i);
            patch_resolve(&canvas.patch, agent, is_vulnerable(scenario->agents[agent].kind),
                          planes);
        }
    }
}
