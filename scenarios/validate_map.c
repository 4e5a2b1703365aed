/*
 * Map validation: geometry and links of lanes, shape of polygons.
 *
 * The self-intersection test gives what comparing every two segments gives, but compares blocks of
 * them by their bounds first, so that the largest legal map is checked in about a second.
 */
#include "base/dmath.h"
#include "scenarios/resolve.h"
#include "schemas/scenario_json.h"

#include <math.h>

enum { BLOCK_SEGMENTS = 16, BLOCKS_MAX = LIMIT_LANE_POINTS / BLOCK_SEGMENTS + 1 };

static const double SEGMENT_MIN_M = 1e-3;
static const double SUCCESSOR_GAP_MAX_M = 1.5;
static const double AREA_MIN_M2 = 1e-4;

struct bounds {
    double x_min, y_min, x_max, y_max;
};

/* A polyline, or with `closed` a polygon: segment i runs from point i to the next one. */
struct chain {
    const struct vec2 *points;
    uint32_t point_count;
    uint32_t segment_count;
    struct bounds blocks[BLOCKS_MAX];
};

static struct vec2 chain_end(const struct chain *chain, uint32_t segment)
{
    uint32_t next = segment + 1;
    return chain->points[next == chain->point_count ? 0 : next];
}

static struct bounds segment_bounds(struct vec2 a, struct vec2 b)
{
    return (struct bounds){dmath_min(a.x_m, b.x_m), dmath_min(a.y_m, b.y_m),
                           dmath_max(a.x_m, b.x_m), dmath_max(a.y_m, b.y_m)};
}

static bool bounds_touch(const struct bounds *a, const struct bounds *b)
{
    return a->x_min <= b->x_max && b->x_min <= a->x_max && a->y_min <= b->y_max &&
           b->y_min <= a->y_max;
}

static void chain_init(struct chain *chain, const struct vec2 *points, uint32_t count, bool closed)
{
    chain->points = points;
    chain->point_count = count;
    chain->segment_count = closed ? count : count - 1;
    for (uint32_t i = 0; i < chain->segment_count; i++) {
        struct bounds b = segment_bounds(points[i], chain_end(chain, i));
        struct bounds *block = &chain->blocks[i / BLOCK_SEGMENTS];
        if (i % BLOCK_SEGMENTS == 0) {
            *block = b;
        }
        block->x_min = dmath_min(block->x_min, b.x_min);
        block->y_min = dmath_min(block->y_min, b.y_min);
        block->x_max = dmath_max(block->x_max, b.x_max);
        block->y_max = dmath_max(block->y_max, b.y_max);
    }
}

/* Neighbouring segments share a point and conflict only when they fold straight back. */
static bool folds_back(const struct chain *chain, uint32_t first, uint32_t second)
{
    struct vec2 a = chain->points[first];
    struct vec2 b = chain_end(chain, first);
    struct vec2 c = chain_end(chain, second);
    double ux = b.x_m - a.x_m;
    double uy = b.y_m - a.y_m;
    double vx = c.x_m - b.x_m;
    double vy = c.y_m - b.y_m;
    return ux * vy - uy * vx == 0 && ux * vx + uy * vy < 0;
}

static bool segments_conflict(const struct chain *chain, uint32_t i, uint32_t j)
{
    if (j == i + 1) {
        return folds_back(chain, i, j);
    }
    if (i == 0 && j + 1 == chain->point_count) {
        return folds_back(chain, j, i); /* the closing segment of a polygon */
    }
    struct vec2 a = chain->points[i];
    struct vec2 b = chain_end(chain, i);
    struct vec2 c = chain->points[j];
    struct vec2 d = chain_end(chain, j);
    struct bounds first = segment_bounds(a, b);
    struct bounds second = segment_bounds(c, d);
    return bounds_touch(&first, &second) && segments_intersect(a, b, c, d);
}

static bool blocks_conflict(const struct chain *chain, uint32_t p, uint32_t q, uint32_t *first,
                            uint32_t *second)
{
    uint32_t p_end = p * BLOCK_SEGMENTS + BLOCK_SEGMENTS;
    uint32_t q_end = q * BLOCK_SEGMENTS + BLOCK_SEGMENTS;
    p_end = p_end < chain->segment_count ? p_end : chain->segment_count;
    q_end = q_end < chain->segment_count ? q_end : chain->segment_count;
    for (uint32_t i = p * BLOCK_SEGMENTS; i < p_end; i++) {
        uint32_t j = q * BLOCK_SEGMENTS;
        for (j = j > i ? j : i + 1; j < q_end; j++) {
            if (segments_conflict(chain, i, j)) {
                *first = i;
                *second = j;
                return true;
            }
        }
    }
    return false;
}

double points_distance_m(struct vec2 a, struct vec2 b)
{
    double x = b.x_m - a.x_m;
    double y = b.y_m - a.y_m;
    return sqrt(x * x + y * y);
}

bool points_self_intersect(const struct vec2 *points, uint32_t count, bool closed, uint32_t *first,
                           uint32_t *second)
{
    struct chain chain;
    chain_init(&chain, points, count, closed);
    uint32_t blocks = (chain.segment_count + BLOCK_SEGMENTS - 1) / BLOCK_SEGMENTS;
    for (uint32_t p = 0; p < blocks; p++) {
        for (uint32_t q = p; q < blocks; q++) {
            /* The block after this one shares a point with it, so the bounds always touch. */
            if (bounds_touch(&chain.blocks[p], &chain.blocks[q]) &&
                blocks_conflict(&chain, p, q, first, second)) {
                return true;
            }
        }
    }
    return false;
}

/* Area of a polygon, taken about its first point, since coordinates may be large. */
static double area_m2(const struct vec2 *points, uint32_t count)
{
    double twice_m2 = 0.0;
    for (uint32_t i = 0, j = count - 1; i < count; j = i++) {
        struct vec2 a = points[j];
        struct vec2 b = points[i];
        struct vec2 origin = points[0];
        twice_m2 += (a.x_m - origin.x_m) * (b.y_m - origin.y_m) -
                    (b.x_m - origin.x_m) * (a.y_m - origin.y_m);
    }
    return fabs(twice_m2) / 2;
}

bool points_form_polygon(const struct vec2 *points, uint32_t count, double area_min_m2)
{
    uint32_t first;
    uint32_t second;
    return area_m2(points, count) > area_min_m2 &&
           !points_self_intersect(points, count, true, &first, &second);
}

static enum status check_centre_line(const char *name, const char *path, uint32_t index,
                                     const struct lane *lane, struct error *error)
{
    uint32_t first;
    uint32_t second;
    for (uint32_t i = 0; i + 1 < lane->point_count; i++) {
        double length_m = points_distance_m(lane->centre_line[i], lane->centre_line[i + 1]);
        if (length_m < SEGMENT_MIN_M) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: %s.lanes[%u].centre_line[%u]: lane \"%s\": expected points at "
                             "least 1 mm apart, found %g m",
                             name, path, index, i + 1, lane->id, length_m);
        }
    }
    if (points_self_intersect(lane->centre_line, lane->point_count, false, &first, &second)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: %s.lanes[%u].centre_line: lane \"%s\": expected a line that does not "
                         "cross itself, found that segments %u and %u do",
                         name, path, index, lane->id, first, second);
    }
    return STATUS_OK;
}

static enum status check_successors(const char *name, const char *path, uint32_t index,
                                    const struct map *map, struct error *error)
{
    const struct lane *lane = &map->lanes[index];
    struct vec2 end = lane->centre_line[lane->point_count - 1];
    for (uint32_t i = 0; i < lane->successor_count; i++) {
        const struct lane *next = &map->lanes[lane->successors[i]];
        for (uint32_t j = 0; j < i; j++) {
            if (lane->successors[j] == lane->successors[i]) {
                return error_set(error, STATUS_BAD_INPUT,
                                 "%s: %s.lanes[%u].successors[%u]: lane \"%s\": expected each "
                                 "successor once, found \"%s\" again",
                                 name, path, index, i, lane->id, next->id);
            }
        }
        double gap_m = points_distance_m(end, next->centre_line[0]);
        if (gap_m > SUCCESSOR_GAP_MAX_M) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: %s.lanes[%u].successors[%u]: lane \"%s\": expected \"%s\" to "
                             "begin within %g m of this lane's end, found a gap of %g m",
                             name, path, index, i, lane->id, next->id, SUCCESSOR_GAP_MAX_M, gap_m);
        }
    }
    return STATUS_OK;
}

/* Side by side the same way, a's left is not b's left, and so on: only contradictions count, since
 * a lane beside two shorter ones can name only one of them. */
static enum status check_neighbour(const char *name, const char *path, uint32_t index,
                                   const struct map *map, bool left_side, struct error *error)
{
    const struct lane *lane = &map->lanes[index];
    int32_t side = left_side ? lane->left : lane->right;
    bool opposite = left_side ? lane->left_opposite : lane->right_opposite;
    const char *key = left_side ? "left" : "right";
    const char *found = NULL;
    if (side < 0) {
        return STATUS_OK;
    }
    const struct lane *other = &map->lanes[side];
    int32_t me = (int32_t)index;
    bool left_is_me = other->left == me;
    bool right_is_me = other->right == me;
    if (side == me) {
        found = "the lane itself";
    } else if (lane->left == lane->right) {
        found = "the same lane on both sides";
    } else if ((left_is_me && other->left_opposite != opposite) ||
               (right_is_me && other->right_opposite != opposite)) {
        found = "one that runs the same way seen from one lane and the other way seen from the "
                "other";
    } else if ((left_is_me || right_is_me) && !(opposite == left_side ? left_is_me : right_is_me)) {
        /* Same way: my left's right is me. Opposite ways: my left's left is me. */
        found = "that lane naming this one on the wrong side";
    }
    if (found == NULL) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "%s: %s.lanes[%u].%s: lane \"%s\": expected a neighbour on its %s side, found "
                     "%s (\"%s\")",
                     name, path, index, key, lane->id, key, found, other->id);
}

static enum status check_polygon(const char *name, const char *path, const char *list,
                                 uint32_t index, const struct polygon *polygon, struct error *error)
{
    uint32_t first;
    uint32_t second;
    double found_m2 = area_m2(polygon->points, polygon->point_count);
    if (found_m2 < AREA_MIN_M2) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: %s.%s[%u]: expected a polygon with an area, found one of %g m2", name,
                         path, list, index, found_m2);
    }
    if (points_self_intersect(polygon->points, polygon->point_count, true, &first, &second)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: %s.%s[%u]: expected a polygon that does not cross itself, found that "
                         "sides %u and %u do",
                         name, path, list, index, first, second);
    }
    return STATUS_OK;
}

static double lane_length_m(const struct lane *lane)
{
    double length_m = 0.0;
    for (uint32_t i = 1; i < lane->point_count; i++) {
        struct vec2 a = lane->centre_line[i - 1];
        struct vec2 b = lane->centre_line[i];
        length_m += sqrt((b.x_m - a.x_m) * (b.x_m - a.x_m) + (b.y_m - a.y_m) * (b.y_m - a.y_m));
    }
    return length_m;
}

static enum status check_signal(const char *name, const char *path, uint32_t index,
                                const struct map *map, struct error *error)
{
    const struct traffic_signal *signal = &map->signals[index];
    for (uint32_t i = 0; i < signal->lane_count; i++) {
        const struct lane *lane = &map->lanes[signal->lanes[i]];
        if (lane->kind != LANE_DRIVING && lane->kind != LANE_CYCLE) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: %s.signals[%u].lanes[%u]: signal \"%s\": expected a driving or "
                             "cycle lane, found \"%s\", a %s",
                             name, path, index, i, signal->id, lane->id,
                             lane_kind_names[lane->kind]);
        }
        double length_m = lane_length_m(lane);
        if (signal->stop_m >= length_m) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: %s.signals[%u].stop_m: signal \"%s\": expected less than the "
                             "%.2f m of lane \"%s\", found %g",
                             name, path, index, signal->id, length_m, lane->id, signal->stop_m);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (signal->lanes[k] == signal->lanes[i]) {
                return error_set(error, STATUS_BAD_INPUT,
                                 "%s: %s.signals[%u].lanes[%u]: signal \"%s\": expected each lane "
                                 "once, found \"%s\" again",
                                 name, path, index, i, signal->id, lane->id);
            }
        }
    }
    return STATUS_OK;
}

enum status map_validate(const char *name, const char *path, const struct map *map, bool lanes_too,
                         struct error *error)
{
    for (uint32_t i = 0; i < map->lane_count && lanes_too; i++) {
        TRY(check_centre_line(name, path, i, &map->lanes[i], error));
        TRY(check_successors(name, path, i, map, error));
        TRY(check_neighbour(name, path, i, map, true, error));
        TRY(check_neighbour(name, path, i, map, false, error));
    }
    for (uint32_t i = 0; i < map->drivable_count; i++) {
        TRY(check_polygon(name, path, "drivable", i, &map->drivable[i], error));
    }
    for (uint32_t i = 0; i < map->crosswalk_count; i++) {
        TRY(check_polygon(name, path, "crosswalks", i, &map->crosswalks[i], error));
    }
    for (uint32_t i = 0; i < map->surface_count; i++) {
        TRY(check_polygon(name, path, "surfaces", i, &map->surfaces[i].area, error));
    }
    for (uint32_t i = 0; i < map->signal_count; i++) {
        TRY(check_signal(name, path, i, map, error));
    }
    return STATUS_OK;
}
