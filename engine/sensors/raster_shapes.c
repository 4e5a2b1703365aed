/*
 * Shapes: turns a map's lanes, boundaries and areas into polygons in a fixed order. A lane becomes
 * one quad per segment of its centre line, mitred so that neighbours share corners; a marking
 * becomes thin quads along a boundary, dashed by arc length.
 */
#include "engine/sensors/raster_layers.h"

#include "base/dmath.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MARKING_WIDTH_M 0.1875 /* three samples: the same coverage at every alignment */
#define DASH_M 3.0
#define DASH_PERIOD_M 9.0 /* 3 m of paint, 6 m of gap */
#define MITRE_MAX 2.0
#define SAME_BOUNDARY_M 0.6 /* neighbours whose facing edges are this close share one marking */

struct walk {
    const struct map *map;
    raster_shape_visit visit;
    void *context;
    /* Boundaries of the lane at hand and of the neighbour it is compared with. */
    struct vec2 *left;
    struct vec2 *right;
    struct vec2 *other_left;
    struct vec2 *other_right;
};

/* Unit direction from a to b; false when they coincide. */
static bool direction(struct vec2 a, struct vec2 b, struct vec2 *out)
{
    double dx = b.x_m - a.x_m;
    double dy = b.y_m - a.y_m;
    double length = sqrt(dx * dx + dy * dy);
    if (!(length > 1e-9)) {
        return false;
    }
    *out = (struct vec2){dx / length, dy / length};
    return true;
}

/* Left and right edge of a lane at each of its points. */
static void lane_boundaries(const struct lane *lane, struct vec2 *left, struct vec2 *right)
{
    struct vec2 incoming = {1.0, 0.0};
    for (uint32_t i = 0; i + 1 < lane->point_count; i++) {
        if (direction(lane->centre_line[i], lane->centre_line[i + 1], &incoming)) {
            break;
        }
    }
    for (uint32_t i = 0; i < lane->point_count; i++) {
        struct vec2 p = lane->centre_line[i];
        struct vec2 outgoing = incoming;
        if (i + 1 < lane->point_count) {
            direction(p, lane->centre_line[i + 1], &outgoing);
        }
        struct vec2 mean = {incoming.x_m + outgoing.x_m, incoming.y_m + outgoing.y_m};
        struct vec2 along = outgoing;
        direction((struct vec2){0.0, 0.0}, mean, &along);
        double cosine = along.x_m * outgoing.x_m + along.y_m * outgoing.y_m;
        double scale = cosine > 1.0 / MITRE_MAX ? 1.0 / cosine : MITRE_MAX;
        double half = lane->width_m[i] / 2 * scale;
        left[i] = (struct vec2){p.x_m - along.y_m * half, p.y_m + along.x_m * half};
        right[i] = (struct vec2){p.x_m + along.y_m * half, p.y_m - along.x_m * half};
        incoming = outgoing;
    }
}

static bool walk_lane(const struct walk *walk, const struct lane *lane)
{
    static const enum raster_material materials[LANE_KIND_COUNT] = {
        [LANE_DRIVING] = MATERIAL_ROAD,
        [LANE_SHOULDER] = MATERIAL_SHOULDER,
        [LANE_CYCLE] = MATERIAL_CYCLE,
        [LANE_SIDEWALK] = MATERIAL_SIDEWALK,
    };
    enum raster_shape shape = lane->kind == LANE_SIDEWALK ? SHAPE_MATERIAL : SHAPE_DRIVABLE;
    lane_boundaries(lane, walk->left, walk->right);
    for (uint32_t i = 0; i + 1 < lane->point_count; i++) {
        struct vec2 quad[4] = {walk->right[i], walk->right[i + 1], walk->left[i + 1],
                               walk->left[i]};
        if (!walk->visit(walk->context, shape, materials[lane->kind], quad, 4)) {
            return false;
        }
    }
    return true;
}

/* Paints the part [from_m, to_m] of segment a-b (direction u). */
static bool paint(const struct walk *walk, struct vec2 a, struct vec2 u, double from_m, double to_m)
{
    double nx = -u.y_m * MARKING_WIDTH_M / 2;
    double ny = u.x_m * MARKING_WIDTH_M / 2;
    struct vec2 p = {a.x_m + u.x_m * from_m, a.y_m + u.y_m * from_m};
    struct vec2 q = {a.x_m + u.x_m * to_m, a.y_m + u.y_m * to_m};
    struct vec2 quad[4] = {{p.x_m - nx, p.y_m - ny},
                           {q.x_m - nx, q.y_m - ny},
                           {q.x_m + nx, q.y_m + ny},
                           {p.x_m + nx, p.y_m + ny}};
    return walk->visit(walk->context, SHAPE_MARKING, MATERIAL_NONE, quad, 4);
}

static bool near_polyline(const struct vec2 *points, uint32_t count, struct vec2 point)
{
    for (uint32_t i = 0; i + 1 < count; i++) {
        if (segment_distance_m(points[i], points[i + 1], point) < SAME_BOUNDARY_M) {
            return true;
        }
    }
    return false;
}

/* A boundary as paint. Segments that run along `shared` (the facing edge of a neighbour that has
 * painted already) are left out. */
static bool walk_marking(const struct walk *walk, const struct vec2 *points, uint32_t count,
                         enum marking marking, const struct vec2 *shared, uint32_t shared_count)
{
    double start_m = 0.0;
    for (uint32_t i = 0; i + 1 < count && marking != MARKING_NONE; i++) {
        struct vec2 a = points[i];
        struct vec2 b = points[i + 1];
        struct vec2 u;
        if (!direction(a, b, &u)) {
            continue;
        }
        double length_m = (b.x_m - a.x_m) * u.x_m + (b.y_m - a.y_m) * u.y_m;
        struct vec2 middle = {(a.x_m + b.x_m) / 2, (a.y_m + b.y_m) / 2};
        if (shared_count != 0 && near_polyline(shared, shared_count, middle)) {
            start_m += length_m;
            continue;
        }
        if (marking == MARKING_SOLID) {
            if (!paint(walk, a, u, 0.0, length_m)) {
                return false;
            }
            start_m += length_m;
            continue;
        }
        double dash = floor(start_m / DASH_PERIOD_M);
        for (; dash * DASH_PERIOD_M < start_m + length_m; dash += 1.0) {
            double from_m = dmath_max(dash * DASH_PERIOD_M - start_m, 0.0);
            double to_m = dmath_min(dash * DASH_PERIOD_M + DASH_M - start_m, length_m);
            if (from_m < to_m && !paint(walk, a, u, from_m, to_m)) {
                return false;
            }
        }
        start_m += length_m;
    }
    return true;
}

/* Both boundaries of lane `index`. Of two neighbours the lower index paints their common edge. */
static bool walk_lane_markings(const struct walk *walk, uint32_t index)
{
    const struct lane *lane = &walk->map->lanes[index];
    lane_boundaries(lane, walk->left, walk->right);
    for (int side = 0; side < 2; side++) {
        int32_t neighbour = side == 0 ? lane->left : lane->right;
        bool opposite = side == 0 ? lane->left_opposite : lane->right_opposite;
        const struct vec2 *shared = NULL;
        uint32_t shared_count = 0;
        if (neighbour >= 0 && (uint32_t)neighbour < index) {
            const struct lane *other = &walk->map->lanes[neighbour];
            lane_boundaries(other, walk->other_left, walk->other_right);
            shared = (side == 0) == opposite ? walk->other_left : walk->other_right;
            shared_count = other->point_count;
        }
        if (!walk_marking(walk, side == 0 ? walk->left : walk->right, lane->point_count,
                          side == 0 ? lane->left_marking : lane->right_marking, shared,
                          shared_count)) {
            return false;
        }
    }
    return true;
}

static enum raster_material surface_material(const char *kind)
{
    static const struct {
        const char *name;
        enum raster_material material;
    } names[] = {{"water", MATERIAL_WATER},
                 {"ice", MATERIAL_ICE},
                 {"oil", MATERIAL_OIL},
                 {"gravel", MATERIAL_GRAVEL},
                 {"snow", MATERIAL_SNOW}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(kind, names[i].name) == 0) {
            return names[i].material;
        }
    }
    return MATERIAL_GRAVEL;
}

static bool walk_lanes(const struct walk *walk, bool sidewalks)
{
    for (uint32_t i = 0; i < walk->map->lane_count; i++) {
        const struct lane *lane = &walk->map->lanes[i];
        if ((lane->kind == LANE_SIDEWALK) == sidewalks && !walk_lane(walk, lane)) {
            return false;
        }
    }
    return true;
}

static bool walk_all(const struct walk *walk)
{
    const struct map *map = walk->map;
    bool more = walk_lanes(walk, true);
    for (uint32_t i = 0; more && i < map->drivable_count; i++) {
        more = walk->visit(walk->context, SHAPE_DRIVABLE, MATERIAL_ROAD, map->drivable[i].points,
                           map->drivable[i].point_count);
    }
    more = more && walk_lanes(walk, false);
    for (uint32_t i = 0; more && i < map->surface_count; i++) {
        more = walk->visit(walk->context, SHAPE_MATERIAL, surface_material(map->surfaces[i].kind),
                           map->surfaces[i].area.points, map->surfaces[i].area.point_count);
    }
    for (uint32_t i = 0; more && i < map->crosswalk_count; i++) {
        more = walk->visit(walk->context, SHAPE_CROSSWALK, MATERIAL_NONE, map->crosswalks[i].points,
                           map->crosswalks[i].point_count);
    }
    for (uint32_t i = 0; more && i < map->lane_count; i++) {
        more = map->lanes[i].kind == LANE_SIDEWALK || walk_lane_markings(walk, i);
    }
    return more;
}

enum status raster_shapes_walk(const struct map *map, raster_shape_visit visit, void *context,
                               struct error *error)
{
    uint32_t points_max = 1;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        if (map->lanes[i].point_count > points_max) {
            points_max = map->lanes[i].point_count;
        }
    }
    struct vec2 *points = calloc(points_max, 4 * sizeof *points);
    TRY(memory_check(points, error, "no memory to draw the map's lanes"));
    struct walk walk = {
        .map = map,
        .visit = visit,
        .context = context,
        .left = points,
        .right = points + points_max,
        .other_left = points + 2 * (size_t)points_max,
        .other_right = points + 3 * (size_t)points_max,
    };
    walk_all(&walk);
    free(points);
    return STATUS_OK;
}
