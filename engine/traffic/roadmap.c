/*
 * Roadmap queries. Construction (segments, joints, grid) is in roadmap_build.c.
 *
 * Every lane is a row of trapezoids (segment x width) joined by discs, so that the outer side of a
 * bend and the seam to a successor have no gaps. A uniform grid lists, per cell, what touches it;
 * containment looks into one cell, distance into those within 5 m.
 */
#include "engine/traffic/roadmap.h"

#include "base/check.h"
#include "base/dmath.h"
#include "engine/traffic/roadmap_internal.h"

#include <math.h>

#define REACH_SLACK_M 1e-6

/* Local coordinates of a point in a segment's frame. */
struct local {
    double along;
    double across; /* left positive */
};

static struct local to_local(const struct road_segment *segment, struct vec2 point)
{
    double dx = point.x_m - segment->x_m;
    double dy = point.y_m - segment->y_m;
    return (struct local){dx * segment->ux + dy * segment->uy, segment->ux * dy - segment->uy * dx};
}

static double half_width_at(const struct road_segment *segment, double along)
{
    double t = dmath_clamp(along / segment->length_m, 0.0, 1.0);
    return segment->half_width0_m + t * (segment->half_width1_m - segment->half_width0_m);
}

/* Which part of a segment covers a point. A disc reaches into the next segment or lane, so its
 * claim is weaker than a trapezoid's. */
enum cover { COVER_NONE = 0, COVER_JOINT, COVER_TRAPEZOID };

/* *distance is to the centre line. */
static enum cover segment_covers(const struct road_segment *segment, struct local at,
                                 double *distance)
{
    double across = fabs(at.across);
    if (at.along >= 0.0 && at.along <= segment->length_m) {
        *distance = across;
        return across <= half_width_at(segment, at.along) ? COVER_TRAPEZOID : COVER_NONE;
    }
    if (at.along > segment->length_m && segment->joint_m > 0.0) {
        double past = at.along - segment->length_m;
        *distance = sqrt(past * past + across * across);
        return *distance <= segment->joint_m ? COVER_JOINT : COVER_NONE;
    }
    return COVER_NONE;
}

/* Whether trapezoid or disc may be within reach: false is certain, by more than sums can be off. */
static bool segment_reaches(const struct road_segment *segment, struct local at, double reach_m)
{
    double side_m = dmath_max(segment->half_width0_m, segment->half_width1_m);
    double away_m = fabs(at.across) - dmath_max(side_m, segment->joint_m);
    double past_m = at.along - segment->length_m - segment->joint_m;
    double before_m = dmath_min(0.0, segment->length_m - segment->joint_m) - at.along;
    return dmath_max(away_m, dmath_max(past_m, before_m)) <= reach_m + REACH_SLACK_M;
}

/* Distance to trapezoid and joint disc, 0 inside. */
static double segment_outside_m(const struct road_segment *segment, struct local at)
{
    double unused;
    if (segment_covers(segment, at, &unused) != COVER_NONE) {
        return 0.0;
    }
    struct vec2 point = {at.along, fabs(at.across)};
    struct vec2 near_axis = {0.0, 0.0};
    struct vec2 near_side = {0.0, segment->half_width0_m};
    struct vec2 far_axis = {segment->length_m, 0.0};
    struct vec2 far_side = {segment->length_m, segment->half_width1_m};
    double best = segment_distance_m(near_axis, near_side, point);
    best = dmath_min(best, segment_distance_m(near_side, far_side, point));
    best = dmath_min(best, segment_distance_m(far_axis, far_side, point));
    if (segment->joint_m > 0.0) {
        double past = at.along - segment->length_m;
        double to_disc = sqrt(past * past + at.across * at.across) - segment->joint_m;
        best = dmath_min(best, dmath_max(to_disc, 0.0));
    }
    return best;
}

static double polygon_outside_m(const struct polygon *polygon, struct vec2 point)
{
    if (polygon_contains(polygon->points, polygon->point_count, point)) {
        return 0.0;
    }
    double best = INFINITY;
    for (uint32_t i = 0, j = polygon->point_count - 1; i < polygon->point_count; j = i++) {
        best = dmath_min(best, segment_distance_m(polygon->points[j], polygon->points[i], point));
    }
    return best;
}

static bool box_reaches(const struct road_bounds *bounds, struct vec2 point, double reach_m)
{
    return point.x_m >= bounds->x0 - reach_m && point.x_m <= bounds->x1 + reach_m &&
           point.y_m >= bounds->y0 - reach_m && point.y_m <= bounds->y1 + reach_m;
}

/* Items of the cell that holds the point; an empty range outside the grid. */
static void cell_items(const struct roadmap *roadmap, struct vec2 point, uint32_t *first,
                       uint32_t *end)
{
    const struct road_grid *grid = &roadmap->grid;
    double column = floor((point.x_m - grid->x0_m) * grid->inverse_cell);
    double row = floor((point.y_m - grid->y0_m) * grid->inverse_cell);
    if (!(column >= 0.0 && column < grid->columns && row >= 0.0 && row < grid->rows)) {
        *first = *end = 0;
        return;
    }
    uint32_t cell = (uint32_t)row * grid->columns + (uint32_t)column;
    *first = grid->start[cell];
    *end = grid->start[cell + 1];
}

double road_segment_heading(const struct road_segment *segment, double along)
{
    double blend_m = dmath_min(segment->length_m / 2, ROAD_BLEND_M);
    if (along < blend_m) {
        double t = dmath_max(along, 0.0) / blend_m;
        return segment->heading_rad + (1.0 - t) * segment->turn0_rad;
    }
    if (along > segment->length_m - blend_m) {
        double t = dmath_max(segment->length_m - along, 0.0) / blend_m;
        return segment->heading_rad + (1.0 - t) * segment->turn1_rad;
    }
    return segment->heading_rad;
}

bool roadmap_locate(const struct roadmap *roadmap, struct pose pose, struct lane_position *out)
{
    struct vec2 point = {pose.x_m, pose.y_m};
    struct lane_position best = {.lane = -1};
    bool best_driving = false;
    enum cover best_cover = COVER_NONE;
    double best_center_m = INFINITY;
    uint32_t item;
    uint32_t end;
    for (cell_items(roadmap, point, &item, &end); item < end; item++) {
        uint32_t id = roadmap->grid.items[item];
        if (id >= roadmap->segment_count) {
            continue;
        }
        const struct road_segment *segment = &roadmap->segments[id];
        struct local at = to_local(segment, point);
        double center_m;
        enum cover cover = segment_covers(segment, at, &center_m);
        if (cover == COVER_NONE) {
            continue;
        }
        bool driving = roadmap->map->lanes[segment->lane].kind == LANE_DRIVING;
        double along = dmath_min(at.along, segment->length_m);
        double error_rad =
            dmath_wrap_angle(pose.heading_rad - road_segment_heading(segment, along));
        bool better;
        if (best.lane < 0) {
            better = true;
        } else if (driving != best_driving) {
            better = driving;
        } else if (cover != best_cover) {
            better = cover > best_cover;
        } else if (segment->lane == best.lane) {
            better = center_m < best_center_m; /* where two trapezoids of a bend overlap */
        } else {
            better = fabs(error_rad) < fabs(best.heading_error_rad);
        }
        if (better) {
            best = (struct lane_position){
                .lane = segment->lane,
                .s_m = segment->s_m + along,
                .offset_m = at.across < 0 ? -center_m : center_m,
                .heading_error_rad = error_rad,
                .width_m = 2.0 * half_width_at(segment, along),
            };
            best_driving = driving;
            best_cover = cover;
            best_center_m = center_m;
        }
    }
    *out = best;
    return best.lane >= 0;
}

static bool lane_is_drivable(const struct lane *lane)
{
    return lane->kind != LANE_SIDEWALK;
}

/* Lanes that cover the point at least so well. */
static uint32_t lanes_covering(const struct roadmap *roadmap, struct vec2 point, enum cover least,
                               int32_t *lanes, uint32_t max)
{
    uint32_t count = 0;
    uint32_t item;
    uint32_t end;
    /* Items ascend, and so do the lanes of segments. */
    for (cell_items(roadmap, point, &item, &end); item < end && count < max; item++) {
        uint32_t id = roadmap->grid.items[item];
        if (id >= roadmap->segment_count) {
            break;
        }
        const struct road_segment *segment = &roadmap->segments[id];
        double unused;
        if ((count == 0 || lanes[count - 1] != segment->lane) &&
            segment_covers(segment, to_local(segment, point), &unused) >= least &&
            lane_is_drivable(&roadmap->map->lanes[segment->lane])) {
            lanes[count++] = segment->lane;
        }
    }
    return count;
}

uint32_t roadmap_lanes_at(const struct roadmap *roadmap, struct vec2 point, int32_t *lanes,
                          uint32_t max)
{
    uint32_t count = lanes_covering(roadmap, point, COVER_TRAPEZOID, lanes, max);
    return count > 0 ? count : lanes_covering(roadmap, point, COVER_JOINT, lanes, max);
}

/* Distance from the point to one item of the grid; INFINITY may stand for any beyond reach_m. */
static double item_outside_m(const struct roadmap *roadmap, uint32_t id, struct vec2 point,
                             double reach_m)
{
    if (id < roadmap->segment_count) {
        const struct road_segment *segment = &roadmap->segments[id];
        struct local at = to_local(segment, point);
        if (!segment_reaches(segment, at, reach_m) ||
            !lane_is_drivable(&roadmap->map->lanes[segment->lane])) {
            return INFINITY;
        }
        return segment_outside_m(segment, at);
    }
    uint32_t polygon = id - roadmap->segment_count;
    if (!box_reaches(&roadmap->drivable_bounds[polygon], point, reach_m + REACH_SLACK_M)) {
        return INFINITY;
    }
    return polygon_outside_m(&roadmap->map->drivable[polygon], point);
}

/* Cells within reach of a point: rows r0 to r1 of columns c0 to c1. False: none. */
struct cells {
    uint32_t c0, c1, r0, r1;
};

static bool cells_around(const struct road_grid *grid, struct vec2 point, double reach_m,
                         struct cells *out)
{
    double column0 = floor((point.x_m - reach_m - grid->x0_m) * grid->inverse_cell);
    double column1 = floor((point.x_m + reach_m - grid->x0_m) * grid->inverse_cell);
    double row0 = floor((point.y_m - reach_m - grid->y0_m) * grid->inverse_cell);
    double row1 = floor((point.y_m + reach_m - grid->y0_m) * grid->inverse_cell);
    if (!(column1 >= 0.0 && row1 >= 0.0 && column0 < grid->columns && row0 < grid->rows)) {
        return false;
    }
    *out = (struct cells){
        .c0 = (uint32_t)dmath_max(column0, 0.0),
        .c1 = (uint32_t)dmath_min(column1, grid->columns - 1.0),
        .r0 = (uint32_t)dmath_max(row0, 0.0),
        .r1 = (uint32_t)dmath_min(row1, grid->rows - 1.0),
    };
    return true;
}

/* Distance to what is drivable, at most reach_m. Stops at the first that is below `enough_m`. */
static double drivable_within_m(const struct roadmap *roadmap, struct vec2 point, double reach_m,
                                double enough_m)
{
    const struct road_grid *grid = &roadmap->grid;
    double best = reach_m;
    for (uint32_t i = 0; i < roadmap->large_count && best > 0.0; i++) {
        uint32_t id = roadmap->segment_count + roadmap->large[i];
        best = dmath_min(best, item_outside_m(roadmap, id, point, best));
    }
    struct cells cells;
    if (!cells_around(grid, point, reach_m + REACH_SLACK_M, &cells)) {
        return best;
    }
    for (uint32_t row = cells.r0; row <= cells.r1; row++) {
        for (uint32_t column = cells.c0; column <= cells.c1; column++) {
            uint32_t cell = row * grid->columns + column;
            for (uint32_t i = grid->start[cell]; i < grid->start[cell + 1]; i++) {
                best = dmath_min(best, item_outside_m(roadmap, grid->items[i], point, best));
                if (best < enough_m) {
                    return best;
                }
            }
        }
    }
    return best;
}

double roadmap_off_drivable_m(const struct roadmap *roadmap, struct vec2 point)
{
    uint32_t item;
    uint32_t end;
    for (cell_items(roadmap, point, &item, &end); item < end; item++) {
        if (item_outside_m(roadmap, roadmap->grid.items[item], point, 0.0) == 0.0) {
            return 0.0;
        }
    }
    return drivable_within_m(roadmap, point, ROAD_REACH_M, 0.0);
}

bool roadmap_leaves_drivable(const struct roadmap *roadmap, struct vec2 point, double far_m)
{
    CHECK(far_m <= ROAD_REACH_M);
    return drivable_within_m(roadmap, point, far_m, far_m) >= far_m;
}

double roadmap_friction(const struct roadmap *roadmap, struct vec2 point, double otherwise)
{
    double friction = otherwise;
    bool found = false;
    for (uint32_t i = 0; i < roadmap->map->surface_count; i++) {
        const struct surface *surface = &roadmap->map->surfaces[i];
        if (box_reaches(&roadmap->surface_bounds[i], point, 0.0) &&
            polygon_contains(surface->area.points, surface->area.point_count, point)) {
            /* Of patches that overlap the slippery one decides. */
            friction = found ? dmath_min(friction, surface->friction) : surface->friction;
            found = true;
        }
    }
    return friction;
}

/* Last segment of the lane that begins at or before s_m. */
static const struct road_segment *segment_at(const struct roadmap *roadmap, int32_t lane,
                                             double s_m)
{
    CHECK(lane >= 0 && (uint32_t)lane < roadmap->map->lane_count);
    uint32_t low = roadmap->lane_first[lane];
    uint32_t high = roadmap->lane_first[lane + 1] - 1;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (roadmap->segments[middle].s_m <= s_m) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return &roadmap->segments[low];
}

double roadmap_lane_length_m(const struct roadmap *roadmap, int32_t lane)
{
    CHECK(lane >= 0 && (uint32_t)lane < roadmap->map->lane_count);
    const struct road_segment *last = &roadmap->segments[roadmap->lane_first[lane + 1] - 1];
    return last->s_m + last->length_m;
}

double roadmap_lane_width_m(const struct roadmap *roadmap, int32_t lane, double s_m)
{
    const struct road_segment *segment = segment_at(roadmap, lane, s_m);
    return 2.0 * half_width_at(segment, s_m - segment->s_m);
}

struct pose roadmap_lane_pose(const struct roadmap *roadmap, int32_t lane, double s_m,
                              double offset_m)
{
    const struct road_segment *segment = segment_at(roadmap, lane, s_m);
    double along = s_m - segment->s_m;
    double heading = road_segment_heading(segment, along);
    double normal_x = -segment->uy;
    double normal_y = segment->ux;
    if (heading != segment->heading_rad && offset_m != 0.0) {
        double s;
        double c;
        dmath_sincos(heading, &s, &c);
        normal_x = -s;
        normal_y = c;
    }
    return (struct pose){
        .x_m = segment->x_m + segment->ux * along + normal_x * offset_m,
        .y_m = segment->y_m + segment->uy * along + normal_y * offset_m,
        .heading_rad = dmath_wrap_angle(heading),
    };
}
