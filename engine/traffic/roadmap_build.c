/*
 * Construction of a roadmap: centre lines to segments with continuous headings, joints, and the
 * grid. Everything is sized by counting first; the grid grows its cells rather than exceed
 * GRID_CELLS_MAX, so that far-apart coordinates cost time and not memory.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "engine/traffic/roadmap_internal.h"

#include <math.h>
#include <stdlib.h>

#define GRID_CELL_M 8.0
#define GRID_CELLS_MAX (1u << 17)
#define GRID_ENTRIES_PER_SEGMENT_MAX 64.0
#define LARGE_POLYGON_CELLS 4096.0
#define SEAM_GAP_MAX_M 1.0
#define SEGMENT_MIN_M 1e-6

static struct road_bounds bounds_empty(void)
{
    return (struct road_bounds){INFINITY, INFINITY, -INFINITY, -INFINITY};
}

static void bounds_add(struct road_bounds *bounds, double x, double y, double margin)
{
    bounds->x0 = dmath_min(bounds->x0, x - margin);
    bounds->y0 = dmath_min(bounds->y0, y - margin);
    bounds->x1 = dmath_max(bounds->x1, x + margin);
    bounds->y1 = dmath_max(bounds->y1, y + margin);
}

static struct road_bounds polygon_bounds(const struct polygon *polygon)
{
    struct road_bounds bounds = bounds_empty();
    for (uint32_t i = 0; i < polygon->point_count; i++) {
        bounds_add(&bounds, polygon->points[i].x_m, polygon->points[i].y_m, 0.0);
    }
    return bounds;
}

static enum status check_lane(const struct map *map, uint32_t index, struct error *error)
{
    const struct lane *lane = &map->lanes[index];
    bool linked = lane->left < (int32_t)map->lane_count && lane->right < (int32_t)map->lane_count;
    for (uint32_t i = 0; i < lane->successor_count; i++) {
        linked = linked && lane->successors[i] < map->lane_count;
    }
    if (!linked) {
        return error_set(error, STATUS_BAD_INPUT, "lane %s: expected links to lanes of the map",
                         lane->id);
    }
    double length_m = 0.0;
    for (uint32_t i = 0; i < lane->point_count; i++) {
        if (!isfinite(lane->centre_line[i].x_m) || !isfinite(lane->centre_line[i].y_m) ||
            !(lane->width_m[i] > 0.0) || !isfinite(lane->width_m[i])) {
            return error_set(error, STATUS_BAD_INPUT,
                             "lane %s: expected finite points and widths above 0 (point %u)",
                             lane->id, i);
        }
    }
    length_m =
        lane->point_count >= 2 ? polyline_length_m(lane->centre_line, lane->point_count) : 0.0;
    if (!(length_m > 0.01)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "lane %s: expected a centre line longer than 1 cm, found %.3g m", lane->id,
                         length_m);
    }
    return STATUS_OK;
}

/* Appends the segments of one lane; returns the new count. */
static uint32_t add_lane_segments(struct roadmap *roadmap, uint32_t index, uint32_t count)
{
    const struct lane *lane = &roadmap->map->lanes[index];
    double s_m = 0.0;
    for (uint32_t i = 0; i + 1 < lane->point_count; i++) {
        struct vec2 a = lane->centre_line[i];
        struct vec2 b = lane->centre_line[i + 1];
        double dx = b.x_m - a.x_m;
        double dy = b.y_m - a.y_m;
        double length_m = sqrt(dx * dx + dy * dy);
        if (length_m < SEGMENT_MIN_M) {
            continue;
        }
        roadmap->segments[count++] = (struct road_segment){
            .x_m = a.x_m,
            .y_m = a.y_m,
            .ux = dx / length_m,
            .uy = dy / length_m,
            .length_m = length_m,
            .s_m = s_m,
            .half_width0_m = lane->width_m[i] / 2,
            .half_width1_m = lane->width_m[i + 1] / 2,
            .heading_rad = dmath_atan2(dy, dx),
            .lane = (int32_t)index,
        };
        s_m += length_m;
    }
    return count;
}

/* Vertex headings are the mean of the two segments'; joints inside the lane get discs. */
static void join_segments(struct roadmap *roadmap, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i + 1 < end; i++) {
        struct road_segment *a = &roadmap->segments[i];
        struct road_segment *b = a + 1;
        double turn = dmath_wrap_angle(b->heading_rad - a->heading_rad);
        a->turn1_rad = turn / 2;
        b->turn0_rad = -turn / 2;
        a->joint_m = dmath_min(a->half_width1_m, b->half_width0_m);
    }
}

/* A disc at the seam to each successor that begins where this lane ends. */
static void join_successors(struct roadmap *roadmap, uint32_t index)
{
    const struct lane *lane = &roadmap->map->lanes[index];
    struct road_segment *last = &roadmap->segments[roadmap->lane_first[index + 1] - 1];
    for (uint32_t i = 0; i < lane->successor_count; i++) {
        const struct road_segment *next =
            &roadmap->segments[roadmap->lane_first[lane->successors[i]]];
        double dx = last->x_m + last->ux * last->length_m - next->x_m;
        double dy = last->y_m + last->uy * last->length_m - next->y_m;
        if (dx * dx + dy * dy <= SEAM_GAP_MAX_M * SEAM_GAP_MAX_M) {
            double radius = dmath_min(last->half_width1_m, next->half_width0_m);
            last->joint_m = dmath_max(last->joint_m, radius);
        }
    }
}

/* Calls that visit every cell an item touches; the first pass counts, the second fills. `last`
 * remembers the last item put in each cell, since one item may reach a cell several times. */
struct grid_pass {
    struct road_grid *grid;
    uint32_t *last;
    uint32_t *count; /* per cell */
    bool fill;
};

static void visit_box(struct grid_pass *pass, const struct road_bounds *bounds, uint32_t item)
{
    const struct road_grid *grid = pass->grid;
    uint32_t c0 = (uint32_t)dmath_clamp((bounds->x0 - grid->x0_m) * grid->inverse_cell, 0.0,
                                        grid->columns - 1.0);
    uint32_t c1 = (uint32_t)dmath_clamp((bounds->x1 - grid->x0_m) * grid->inverse_cell, 0.0,
                                        grid->columns - 1.0);
    uint32_t r0 = (uint32_t)dmath_clamp((bounds->y0 - grid->y0_m) * grid->inverse_cell, 0.0,
                                        grid->rows - 1.0);
    uint32_t r1 = (uint32_t)dmath_clamp((bounds->y1 - grid->y0_m) * grid->inverse_cell, 0.0,
                                        grid->rows - 1.0);
    for (uint32_t row = r0; row <= r1; row++) {
        for (uint32_t column = c0; column <= c1; column++) {
            uint32_t cell = row * grid->columns + column;
            if (pass->last[cell] == item) {
                continue;
            }
            pass->last[cell] = item;
            if (pass->fill) {
                pass->grid->items[grid->start[cell] + pass->count[cell]] = item;
            }
            pass->count[cell]++;
        }
    }
}

/* Long diagonal segments are visited in chunks, so that they touch a band and not a rectangle. */
static void visit_segment(struct grid_pass *pass, const struct road_segment *segment, uint32_t item)
{
    double half_width = dmath_max(segment->half_width0_m, segment->half_width1_m);
    double cell_m = 1.0 / pass->grid->inverse_cell;
    uint32_t chunks = (uint32_t)(segment->length_m / cell_m) + 1;
    double chunk_m = segment->length_m / chunks;
    for (uint32_t i = 0; i < chunks; i++) {
        struct road_bounds bounds = bounds_empty();
        for (uint32_t end = 0; end < 2; end++) {
            double along = (i + end) * chunk_m;
            bounds_add(&bounds, segment->x_m + along * segment->ux,
                       segment->y_m + along * segment->uy, half_width);
        }
        visit_box(pass, &bounds, item);
    }
}

static bool polygon_is_large(const struct road_grid *grid, const struct road_bounds *bounds)
{
    double cells = ((bounds->x1 - bounds->x0) * grid->inverse_cell + 1.0) *
                   ((bounds->y1 - bounds->y0) * grid->inverse_cell + 1.0);
    return cells > LARGE_POLYGON_CELLS;
}

static void visit_all(struct roadmap *roadmap, struct grid_pass *pass)
{
    uint32_t cells = pass->grid->columns * pass->grid->rows;
    for (uint32_t cell = 0; cell < cells; cell++) {
        pass->last[cell] = UINT32_MAX;
        pass->count[cell] = 0;
    }
    for (uint32_t i = 0; i < roadmap->segment_count; i++) {
        visit_segment(pass, &roadmap->segments[i], i);
    }
    for (uint32_t i = 0; i < roadmap->map->drivable_count; i++) {
        if (!polygon_is_large(pass->grid, &roadmap->drivable_bounds[i])) {
            visit_box(pass, &roadmap->drivable_bounds[i], roadmap->segment_count + i);
        }
    }
}

/* Chooses origin and cell size: at most GRID_CELLS_MAX cells, and long lanes in few enough chunks
 * that the item list stays in proportion to the map. */
static void lay_out_grid(struct roadmap *roadmap)
{
    struct road_grid *grid = &roadmap->grid;
    struct road_bounds bounds = bounds_empty();
    double total_m = 0.0;
    for (uint32_t i = 0; i < roadmap->segment_count; i++) {
        const struct road_segment *segment = &roadmap->segments[i];
        double half_width = dmath_max(segment->half_width0_m, segment->half_width1_m);
        bounds_add(&bounds, segment->x_m, segment->y_m, half_width);
        bounds_add(&bounds, segment->x_m + segment->ux * segment->length_m,
                   segment->y_m + segment->uy * segment->length_m, half_width);
        total_m += segment->length_m;
    }
    for (uint32_t i = 0; i < roadmap->map->drivable_count; i++) {
        const struct road_bounds *b = &roadmap->drivable_bounds[i];
        bounds_add(&bounds, b->x0, b->y0, 0.0);
        bounds_add(&bounds, b->x1, b->y1, 0.0);
    }
    double cell_m = GRID_CELL_M;
    double chunks_max = GRID_CELLS_MAX + GRID_ENTRIES_PER_SEGMENT_MAX * roadmap->segment_count;
    while (total_m / cell_m > chunks_max ||
           (floor((bounds.x1 - bounds.x0) / cell_m) + 1.0) *
                   (floor((bounds.y1 - bounds.y0) / cell_m) + 1.0) >
               GRID_CELLS_MAX) {
        cell_m *= 2.0;
    }
    grid->x0_m = bounds.x0;
    grid->y0_m = bounds.y0;
    grid->inverse_cell = 1.0 / cell_m;
    grid->columns = (uint32_t)((bounds.x1 - bounds.x0) / cell_m) + 1;
    grid->rows = (uint32_t)((bounds.y1 - bounds.y0) / cell_m) + 1;
}

static enum status build_grid(struct roadmap *roadmap, struct error *error)
{
    struct road_grid *grid = &roadmap->grid;
    lay_out_grid(roadmap);
    uint32_t cells = grid->columns * grid->rows;
    struct grid_pass pass = {.grid = grid};
    enum status status = STATUS_OK;
    pass.last = calloc(cells, sizeof *pass.last);
    pass.count = calloc(cells, sizeof *pass.count);
    grid->start = calloc((size_t)cells + 1, sizeof *grid->start);
    roadmap->large = calloc((size_t)roadmap->map->drivable_count + 1, sizeof *roadmap->large);
    if (pass.last == NULL || pass.count == NULL || grid->start == NULL || roadmap->large == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to index map %s", roadmap->map->id);
        goto done;
    }
    for (uint32_t i = 0; i < roadmap->map->drivable_count; i++) {
        if (polygon_is_large(grid, &roadmap->drivable_bounds[i])) {
            roadmap->large[roadmap->large_count++] = i;
        }
    }
    visit_all(roadmap, &pass);
    for (uint32_t cell = 0; cell < cells; cell++) {
        grid->start[cell + 1] = grid->start[cell] + pass.count[cell];
    }
    grid->items = calloc((size_t)grid->start[cells] + 1, sizeof *grid->items);
    if (grid->items == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to index map %s", roadmap->map->id);
        goto done;
    }
    pass.fill = true;
    visit_all(roadmap, &pass);
done:
    free(pass.last);
    free(pass.count);
    return status;
}

static enum status build_lanes(struct roadmap *roadmap, struct error *error)
{
    const struct map *map = roadmap->map;
    size_t points = 0;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        TRY(check_lane(map, i, error));
        points += map->lanes[i].point_count;
    }
    roadmap->segments = calloc(points, sizeof *roadmap->segments);
    roadmap->lane_first = calloc((size_t)map->lane_count + 1, sizeof *roadmap->lane_first);
    if (roadmap->segments == NULL || roadmap->lane_first == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the lanes of map %s", map->id);
    }
    for (uint32_t i = 0; i < map->lane_count; i++) {
        uint32_t end = add_lane_segments(roadmap, i, roadmap->lane_first[i]);
        roadmap->lane_first[i + 1] = end;
        roadmap->segment_count = end;
        join_segments(roadmap, roadmap->lane_first[i], end);
    }
    for (uint32_t i = 0; i < map->lane_count; i++) {
        join_successors(roadmap, i);
    }
    return STATUS_OK;
}

static enum status build_bounds(struct roadmap *roadmap, struct error *error)
{
    const struct map *map = roadmap->map;
    roadmap->drivable_bounds =
        calloc((size_t)map->drivable_count + 1, sizeof *roadmap->drivable_bounds);
    roadmap->surface_bounds =
        calloc((size_t)map->surface_count + 1, sizeof *roadmap->surface_bounds);
    if (roadmap->drivable_bounds == NULL || roadmap->surface_bounds == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the areas of map %s", map->id);
    }
    for (uint32_t i = 0; i < map->drivable_count; i++) {
        roadmap->drivable_bounds[i] = polygon_bounds(&map->drivable[i]);
    }
    for (uint32_t i = 0; i < map->surface_count; i++) {
        roadmap->surface_bounds[i] = polygon_bounds(&map->surfaces[i].area);
    }
    return STATUS_OK;
}

enum status roadmap_create(const struct map *map, struct roadmap **out, struct error *error)
{
    if (map->lane_count == 0) {
        return error_set(error, STATUS_BAD_INPUT, "map %s: expected at least one lane", map->id);
    }
    struct roadmap *roadmap = calloc(1, sizeof *roadmap);
    TRY(memory_check(roadmap, error, "no memory for map %s", map->id));
    roadmap->map = map;
    enum status status = build_lanes(roadmap, error);
    THEN(status, build_bounds(roadmap, error));
    THEN(status, build_grid(roadmap, error));
    if (status != STATUS_OK) {
        roadmap_destroy(roadmap);
        return status;
    }
    *out = roadmap;
    return STATUS_OK;
}

void roadmap_destroy(struct roadmap *roadmap)
{
    if (roadmap == NULL) {
        return;
    }
    free(roadmap->segments);
    free(roadmap->lane_first);
    free(roadmap->grid.start);
    free(roadmap->grid.items);
    free(roadmap->drivable_bounds);
    free(roadmap->surface_bounds);
    free(roadmap->large);
    free(roadmap);
}

const struct map *roadmap_map(const struct roadmap *roadmap)
{
    return roadmap->map;
}
