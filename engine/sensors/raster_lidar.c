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
 * The geometry of one box is in kernels/lidar.h, which the device draws with as well.
 *
 * Determinism: IEEE operations in a fixed order, integer accumulation, agents in index order.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "engine/sensors/raster_view.h"
#include "engine/sensors/visible.h"
#include "kernels/lidar.h"

#include <string.h>

_Static_assert((int)LIDAR_ROWS == (int)BEV_ROWS && (int)LIDAR_COLS == (int)BEV_COLS,
               "kernels/lidar.h repeats the grid");

struct lidar {
    const struct raster_view *view;
    uint32_t count;
    double visibility_m;
    bool limited; /* visibility may end inside the grid */
    struct lidar_agent agents[LIMIT_AGENTS];
    struct lidar_box boxes[LIMIT_AGENTS];
};

/* ---- boxes ---- */

static bool is_vulnerable(enum agent_kind kind)
{
    return kind == AGENT_PEDESTRIAN || kind == AGENT_CYCLIST || kind == AGENT_MOTORCYCLE ||
           kind == AGENT_ANIMAL;
}

/* One agent in the view's frame, its box placed; false: it can neither fill nor hide a cell. */
static bool find_box(const struct raster_view *view, double visibility_m, const struct agent *agent,
                     const struct agent_state *state, struct lidar_agent *out,
                     struct lidar_box *box)
{
    double dx = state->pose.x_m - view->sensor.x_m;
    double dy = state->pose.y_m - view->sensor.y_m;
    double reach = agent->length_m + agent->width_m;
    *out = (struct lidar_agent){
        .x_m = dx * view->cos_heading + dy * view->sin_heading,
        .y_m = -dx * view->sin_heading + dy * view->cos_heading,
        .half_length_m = agent->length_m / 2,
        .half_width_m = agent->width_m / 2,
        .low = visible_is_low(agent),
        .vru = is_vulnerable(agent->kind),
    };
    if (!state->present || out->x_m < view->x_low_m - reach || out->x_m > view->x_high_m + reach ||
        out->y_m < view->y_low_m - reach || out->y_m > view->y_high_m + reach) {
        return false;
    }
    dmath_sincos(state->pose.heading_rad - view->heading_rad, &out->sin_heading, &out->cos_heading);
    lidar_box_place(out, box);
    return box->x_high > view->x_low_m && box->x_low < view->x_high_m &&
           box->y_high > view->y_low_m && box->y_low < view->y_high_m &&
           box->range_min_m <= visibility_m;
}

bool raster_lidar_agents(const struct scenario *scenario, const struct scene *scene,
                         const struct raster_view *view, uint32_t capacity,
                         struct lidar_agent *agents, uint32_t *count)
{
    struct lidar_agent agent;
    struct lidar_box box;
    *count = 0;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        if (!find_box(view, scene->conditions.visibility_m, &scenario->agents[i], &scene->agents[i],
                      &agent, &box)) {
            continue;
        }
        if (*count == capacity) {
            return false;
        }
        agent.agent = i;
        agents[(*count)++] = agent;
    }
    return true;
}

/* The agents that may fill or hide a cell of the grid, in index order. */
static void find_boxes(struct lidar *lidar, const struct scenario *scenario,
                       const struct scene *scene)
{
    lidar->count = 0;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        struct lidar_agent *agent = &lidar->agents[lidar->count];
        struct lidar_box *box = &lidar->boxes[lidar->count];
        if (find_box(lidar->view, lidar->visibility_m, &scenario->agents[i], &scene->agents[i],
                     agent, box)) {
            agent->agent = i;
            lidar_box_regions(lidar->view->x_min_m, agent, box);
            lidar->count++;
        }
    }
}

/* ---- unseen ---- */

/* Marks of the whole grid, one bit per cell. */
struct shade {
    uint64_t low[BEV_ROWS];
    uint64_t high[BEV_ROWS];
};

/* Marks the cells of a region, whose columns are given, in rows first..end-1. */
static void shade_region(const struct raster_kernels *kernels, const struct raster_view *view,
                         const struct lidar_region *region, const struct raster_region *columns,
                         uint32_t first, uint32_t end, struct shade *shade)
{
    uint32_t low = lidar_first_row(view->x_min_m, region->x_min);
    uint32_t high = lidar_first_row(view->x_min_m, region->x_max);
    first = first > low ? first : low;
    end = end < high ? end : high;
    if (first < end) {
        kernels->shade(columns, first, end, &(struct raster_marks){shade->low, shade->high});
    }
}

/* Cells whose centre lies in the box's core, or in its shadow but outside its outline. */
static void shade_box(const struct raster_kernels *kernels, const struct raster_view *view,
                      const struct lidar_box *box, struct shade *shade)
{
    struct raster_region shadow_columns;
    uint32_t first;
    uint32_t end;
    uint32_t box_first;
    uint32_t box_end;
    lidar_shaded_rows(box, view->x_min_m, &box_first, &box_end, &first, &end);
    lidar_columns_of(&box->shadow, view->y_min_m, &shadow_columns);
    shade_region(kernels, view, &box->shadow, &shadow_columns, first, box_first, shade);
    shade_region(kernels, view, &box->shadow, &shadow_columns, box_end, end, shade);
    if (box_first >= box_end) {
        return;
    }
    struct raster_region columns;
    struct shade shadow;
    struct shade outline;
    struct shade core;
    size_t bytes = (box_end - box_first) * sizeof(uint64_t);
    struct shade *parts[3] = {&shadow, &outline, &core};
    for (int i = 0; i < 3; i++) {
        memset(parts[i]->low + box_first, 0, bytes);
        memset(parts[i]->high + box_first, 0, bytes);
    }
    shade_region(kernels, view, &box->shadow, &shadow_columns, box_first, box_end, &shadow);
    lidar_columns_of(&box->outline, view->y_min_m, &columns);
    shade_region(kernels, view, &box->outline, &columns, box_first, box_end, &outline);
    if (box->has_core) {
        lidar_columns_of(&box->core, view->y_min_m, &columns);
        shade_region(kernels, view, &box->core, &columns, box_first, box_end, &core);
    }
    for (uint32_t r = box_first; r < box_end; r++) {
        shade->low[r] |= (shadow.low[r] & ~outline.low[r]) | core.low[r];
        shade->high[r] |= (shadow.high[r] & ~outline.high[r]) | core.high[r];
    }
}

/* Cells whose centre is farther than the lidar reaches: in every row all but a run of columns. */
static void shade_horizon(const struct raster_view *view, double visibility_m, struct shade *shade)
{
    for (int32_t r = 0; r < BEV_ROWS; r++) {
        int32_t first;
        int32_t end;
        lidar_reach_columns(view->x_min_m, view->y_min_m, visibility_m, r, &first, &end);
        shade->low[r] = shade->high[r] = ~UINT64_C(0);
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
    struct lidar_span spans[LIMIT_AGENTS + 2]; /* each subtraction adds at most one */
};

static void list_subtract(struct span_list *list, struct lidar_span cut)
{
    if (!(cut.low < cut.high)) {
        return;
    }
    uint32_t count = list->count;
    for (uint32_t i = 0; i < count; i++) {
        struct lidar_span span = list->spans[i];
        if (cut.high <= span.low || cut.low >= span.high) {
            continue;
        }
        bool keeps_low = cut.low > span.low;
        bool keeps_high = cut.high < span.high;
        if (keeps_low) {
            list->spans[i].high = cut.low;
            if (keeps_high) {
                list->spans[list->count++] = (struct lidar_span){cut.high, span.high};
            }
        } else if (keeps_high) {
            list->spans[i].low = cut.high;
        } else {
            list->spans[i].high = span.low; /* nothing left */
        }
    }
}

/* Visible spans of box `index` on the strip at y. */
static void visible_spans(const struct lidar *lidar, const struct lidar_box *box, double y,
                          const struct lidar_box *const *hiders, uint32_t hider_count,
                          struct span_list *list)
{
    list->count = 1;
    list->spans[0] = lidar_region_span(&box->outline, y);
    if (box->has_core) {
        list_subtract(list, lidar_region_span(&box->core, y));
    }
    for (uint32_t i = 0; i < hider_count; i++) {
        list_subtract(list, lidar_region_span(&hiders[i]->shadow, y));
    }
    if (lidar->limited) {
        double half = lidar_half_reach(lidar->visibility_m, y);
        list_subtract(list, (struct lidar_span){half, LIDAR_FAR_M});
        list_subtract(list, (struct lidar_span){-LIDAR_FAR_M, -half});
    }
}

/* Cells of the grid that a box may touch, and its covered area per cell. The area is built as
 * differences along x: row r holds what changes there, a running sum over rows gives the area. */
struct patch {
    const struct raster_view *view;
    struct lidar_patch at; /* at.rows + 1 rows of differences are in use */
    int32_t area[(BEV_ROWS + 2) * BEV_COLS];
};

/* Adds `weight` times the part of each cell that lies beyond x (in metres, inside the grid). */
static void patch_step(struct patch *patch, int32_t col, double x_m, int32_t weight)
{
    uint32_t position = lidar_position(patch->view->x_min_m, x_m);
    int32_t row = (int32_t)(position / LIDAR_LENGTH_ONE);
    int32_t part = (int32_t)(position % LIDAR_LENGTH_ONE);
    int32_t *cell = &patch->area[(row - patch->at.row) * patch->at.cols + col - patch->at.col];
    cell[0] += weight * (LIDAR_LENGTH_ONE - part);
    cell[patch->at.cols] += weight * part;
}

static void patch_prepare(struct patch *patch, const struct raster_view *view,
                          const struct lidar_box *box)
{
    patch->view = view;
    patch->at = lidar_patch_of(box, view->x_min_m, view->y_min_m);
    memset(patch->area, 0,
           (size_t)(patch->at.rows + 2) * (size_t)patch->at.cols * sizeof patch->area[0]);
}

/* Sums the differences, adds the areas to the occupancy, clears `unseen` where a ray returned and
 * says whose return it was. */
static void patch_resolve(const struct patch *patch, uint32_t agent, bool vru,
                          const struct raster_planes *planes)
{
    int32_t sums[BEV_COLS] = {0};
    for (int32_t r = 0; r < patch->at.rows; r++) {
        const int32_t *area = &patch->area[r * patch->at.cols];
        size_t first = (size_t)(patch->at.row + r) * BEV_COLS + (size_t)patch->at.col;
        for (int32_t c = 0; c < patch->at.cols; c++) {
            sums[c] += area[c];
            uint32_t covered = lidar_covered(sums[c]);
            size_t cell = first + (size_t)c;
            if (covered == 0) {
                continue;
            }
            planes->occupancy[cell] = lidar_add_covered(planes->occupancy[cell], covered);
            planes->unseen[cell] = 0;
            if (planes->owner != NULL) {
                planes->owner[cell] = (uint16_t)(agent + 1);
            }
            if (vru && planes->vru != NULL) {
                planes->vru[cell] = lidar_add_covered(planes->vru[cell], covered);
            }
        }
    }
}

/* Data that one box is drawn with: its rivals for the light and the cells it fills. */
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
    const double x_min = canvas->lidar->view->x_min_m;
    const double x_max = x_min + BEV_ROWS * BEV_CELL_M;
    struct span_list list;
    int32_t weight = lidar_weight(low, high);
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
        if (i != index && lidar_may_hide(&lidar->boxes[i], box)) {
            canvas->hiders[canvas->hider_count++] = &lidar->boxes[i];
        }
    }
    patch_prepare(&canvas->patch, lidar->view, box);
    double end = dmath_min(box->y_high, y_min + BEV_COLS * BEV_CELL_M);
    double y = dmath_max(box->y_low, y_min);
    int32_t k = lidar_clamp_index((y - y_min) / LIDAR_STRIP_M, LIDAR_STRIPS - 1);
    while (y < end && k < LIDAR_STRIPS) {
        double line = y_min + (k + 1) * LIDAR_STRIP_M;
        double next = lidar_strip_end(box, y, line, end);
        draw_strip(canvas, k / LIDAR_STRIPS_PER_CELL, y, next);
        k += next >= line;
        y = next;
    }
}

/* ---- the whole ---- */

void raster_lidar(const struct raster_kernels *kernels, const struct scenario *scenario,
                  const struct scene *scene, const struct raster_view *view,
                  const struct raster_planes *planes)
{
    struct lidar lidar;
    struct box_canvas canvas;
    CHECK(LIDAR_CELL_M == BEV_CELL_M); /* doubles: no static assertion for clang */
    lidar.view = view;
    lidar.visibility_m = scene->conditions.visibility_m;
    lidar.limited = lidar_is_limited(view->x_min_m, view->y_min_m, lidar.visibility_m);
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
        const struct lidar_agent *agent = &lidar.agents[i];
        if (lidar_box_in_grid(&lidar.boxes[i], view->x_min_m, view->y_min_m)) {
            draw_box(&canvas, &lidar, i);
            patch_resolve(&canvas.patch, agent->agent, agent->vru, planes);
        }
    }
}
