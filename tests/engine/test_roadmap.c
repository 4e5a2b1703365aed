/*
 * Goal: the roadmap answers as the geometry says, at any place.
 * Method: random points against brute force over every segment; bends, seams and random polylines
 * for continuity and coverage; routes against the lanes they were made of.
 */
#include "base/dmath.h"
#include "base/rng.h"
#include "engine/traffic/roadmap.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"

static double uniform(uint32_t index, double low, double high)
{
    return low + (high - low) * rng_uniform(7, RNG_STREAM_TEST, 0, index);
}

static struct roadmap *make(const struct map *map)
{
    struct roadmap *roadmap = NULL;
    struct error error;
    EXPECT_OK(roadmap_create(map, &roadmap, &error), error);
    return roadmap;
}

/* Distance to the union of lane quads (without joints), by brute force. */
static double brute_off(const struct map *map, struct vec2 point)
{
    double best = INFINITY;
    for (uint32_t l = 0; l < map->lane_count; l++) {
        const struct lane *lane = &map->lanes[l];
        for (uint32_t i = 0; i + 1 < lane->point_count; i++) {
            struct vec2 a = lane->centre_line[i];
            struct vec2 b = lane->centre_line[i + 1];
            double heading = atan2(b.y_m - a.y_m, b.x_m - a.x_m);
            struct box box =
                box_make((struct pose){(a.x_m + b.x_m) / 2, (a.y_m + b.y_m) / 2, heading},
                         hypot(b.x_m - a.x_m, b.y_m - a.y_m), lane->width_m[i]);
            struct vec2 d = {point.x_m - box.center.x_m, point.y_m - box.center.y_m};
            double along = fabs(d.x_m * box.cos_heading + d.y_m * box.sin_heading);
            double across = fabs(-d.x_m * box.sin_heading + d.y_m * box.cos_heading);
            double u = fmax(along - box.half_length_m, 0.0);
            double v = fmax(across - box.half_width_m, 0.0);
            best = fmin(best, hypot(u, v));
        }
    }
    return best;
}

static void off_drivable_agrees_with_brute_force(void)
{
    struct arena arena;
    arena_init(&arena, 1 << 22);
    struct map map = {0};
    struct lane *lanes = maps_lanes(&arena, &map, 12);
    for (uint32_t i = 0; i < 12; i++) { /* straight lanes: no joints, brute force is exact */
        struct pose start = {uniform(4 * i, -150, 150), uniform(4 * i + 1, -150, 150),
                             uniform(4 * i + 2, -3, 3)};
        maps_straight(&arena, &lanes[i], start, uniform(4 * i + 3, 2, 200), 3.0 + 0.1 * i);
    }
    struct roadmap *roadmap = make(&map);
    uint32_t inside = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        struct vec2 point = {uniform(1000 + 2 * i, -300, 300), uniform(1001 + 2 * i, -300, 300)};
        double expected = brute_off(&map, point);
        double found = roadmap_off_drivable_m(roadmap, point);
        if (expected <= 5.0) {
            EXPECT_NEAR(found, expected, 1e-9);
        } else {
            EXPECT(found >= 5.0);
        }
        inside += expected == 0.0;
        int32_t found_lanes[12];
        uint32_t count = roadmap_lanes_at(roadmap, point, found_lanes, 12);
        EXPECT((count > 0) == (found == 0.0));
    }
    EXPECT(inside > 100);
    EXPECT(roadmap_off_drivable_m(roadmap, (struct vec2){1e9, -1e9}) >= 5.0);
    roadmap_destroy(roadmap);
    arena_finish(&arena);
}

/* A distance changes by no more than the way gone: nothing that is near is taken for far, joints
 * and polygons included. */
static void off_drivable_is_a_distance(void)
{
    struct arena arena;
    arena_init(&arena, 1 << 22);
    struct map map = {0};
    struct lane *lanes = maps_lanes(&arena, &map, 2);
    maps_arc(&arena, &lanes[0], (struct vec2){0, 0}, 20, -2.0, 2.0, 9, 6);
    maps_arc(&arena, &lanes[1], (struct vec2){50, 10}, 4, -3.0, 3.0, 12,
             9); /* discs reach behind the start */
    lanes[1].width_m[0] = 2.0;
    struct vec2 yard[] = {{-30, -30}, {-5, -28}, {-12, 0}};
    struct polygon polygon = {.point_count = 3, .points = yard};
    map.drivable_count = 1;
    map.drivable = &polygon;
    struct roadmap *roadmap = make(&map);
    uint32_t between = 0;
    for (uint32_t i = 0; i < 40000; i++) {
        struct vec2 a = {uniform(4 * i, -40, 70), uniform(4 * i + 1, -40, 40)};
        struct vec2 b = {a.x_m + uniform(4 * i + 2, -1, 1), a.y_m + uniform(4 * i + 3, -1, 1)};
        double at_a = roadmap_off_drivable_m(roadmap, a);
        double at_b = roadmap_off_drivable_m(roadmap, b);
        EXPECT(fabs(at_a - at_b) <= hypot(a.x_m - b.x_m, a.y_m - b.y_m) + 1e-9);
        between += at_a > 0.0 && at_a < 5.0;
        double far_m = uniform(4 * i + 2, 1e-3, 5.0);
        EXPECT(roadmap_leaves_drivable(roadmap, a, far_m) == (at_a >= far_m));
        EXPECT(at_a == 0.0 || roadmap_leaves_drivable(roadmap, a, at_a));
    }
    EXPECT(between > 4000);
    roadmap_destroy(roadmap);
    arena_finish(&arena);
}

static void bends_and_seams_have_no_gaps(void)
{
    struct arena arena;
    arena_init(&arena, 1 << 22);
    struct map map = {0};
    struct lane *lanes = maps_lanes(&arena, &map, 3);
    /* Straight, a coarse 180 degree bend of 30 degree corners, straight back. */
    maps_straight(&arena, &lanes[0], (struct pose){0, 0, 0}, 50, 4);
    maps_arc(&arena, &lanes[1], (struct vec2){50, 20}, 20, -PI_RAD / 2, PI_RAD / 2, 7, 4);
    maps_straight(&arena, &lanes[2], (struct pose){50, 40, PI_RAD}, 50, 4);
    maps_successor(&arena, &lanes[0], 1);
    maps_successor(&arena, &lanes[1], 2);
    struct roadmap *roadmap = make(&map);
    for (int i = 0; i <= 4000; i++) {
        double length = roadmap_lane_length_m(roadmap, 1);
        double s = length * i / 4000.0;
        for (int side = -1; side <= 1; side++) {
            struct pose pose = roadmap_lane_pose(roadmap, 1, s, side * 1.9);
            EXPECT(roadmap_off_drivable_m(roadmap, (struct vec2){pose.x_m, pose.y_m}) == 0.0);
            struct lane_position at;
            EXPECT(roadmap_locate(roadmap, pose, &at));
            EXPECT(fabs(at.offset_m) <= 2.0 + 1e-9);
            EXPECT(at.lane != 1 || fabs(at.s_m - s) < 1.1);
        }
    }
    roadmap_destroy(roadmap);
    arena_finish(&arena);
}

/* A lane's end is not wider than the lane: past the seam a point is in the successor alone. */
static void seams_belong_to_one_lane(void)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct map map = {0};
    struct lane *lanes = maps_lanes(&arena, &map, 2);
    maps_straight(&arena, &lanes[0], (struct pose){0, 0, 0}, 50, 4);
    maps_straight(&arena, &lanes[1], (struct pose){50, 0, 0.1}, 50, 4);
    maps_successor(&arena, &lanes[0], 1);
    struct roadmap *roadmap = make(&map);
    for (double x = 48.0; x < 53.0; x += 0.01) {
        for (double y = -1.5; y <= 1.5; y += 0.5) {
            struct lane_position at;
            int32_t lane = -1;
            EXPECT(roadmap_locate(roadmap, (struct pose){x, y, 0.05}, &at));
            EXPECT(roadmap_lanes_at(roadmap, (struct vec2){x, y}, &lane, 1) == 1);
            bool past = (x - 50.0) * cos(0.1) + y * sin(0.1) >= 0.0;
            EXPECT(x < 50.0 || !past || at.lane == 1);
            EXPECT(x >= 50.0 || past || at.lane == 0);
            EXPECT(fabs(at.offset_m - y) < 0.5 * fabs(x - 50.0) + 0.25);
        }
    }
    roadmap_destroy(roadmap);
    arena_finish(&arena);
}

static void lane_poses_are_continuous(void)
{
    struct arena arena;
    arena_init(&arena, 1 << 22);
    struct map map = {0};
    struct lane *lanes = maps_lanes(&arena, &map, 1);
    maps_arc(&arena, &lanes[0], (struct vec2){0, 0}, 30, 0, 4.0, 41, 3.5);
    struct roadmap *roadmap = make(&map);
    double length = roadmap_lane_length_m(roadmap, 0);
    struct pose before = roadmap_lane_pose(roadmap, 0, 0.0, 1.5);
    for (double s = 0.01; s < length; s += 0.01) {
        struct pose pose = roadmap_lane_pose(roadmap, 0, s, 1.5);
        EXPECT(hypot(pose.x_m - before.x_m, pose.y_m - before.y_m) < 0.012);
        EXPECT(fabs(dmath_wrap_angle(pose.heading_rad - before.heading_rad)) < 0.001);
        before = pose;
    }
    roadmap_destroy(roadmap);
    arena_finish(&arena);
}

static void locate_prefers_driving_lanes_and_heading(void)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct map map = {0};
    struct lane *lanes = maps_lanes(&arena, &map, 3);
    maps_straight(&arena, &lanes[0], (struct pose){-50, 0, 0}, 100, 4);
    maps_straight(&arena, &lanes[1], (struct pose){0, -50, PI_RAD / 2}, 100, 4);
    maps_straight(&arena, &lanes[2], (struct pose){0, -50, PI_RAD / 2}, 100, 4);
    lanes[2].kind = LANE_SIDEWALK;
    struct roadmap *roadmap = make(&map);
    struct lane_position at;
    EXPECT(roadmap_locate(roadmap, (struct pose){0.5, 0.25, 0.1}, &at));
    EXPECT_INT(at.lane, 0);
    EXPECT_NEAR(at.s_m, 50.5, 1e-9);
    EXPECT_NEAR(at.offset_m, 0.25, 1e-9);
    EXPECT_NEAR(at.heading_error_rad, 0.1, 1e-9);
    EXPECT_NEAR(at.width_m, 4.0, 1e-9);
    EXPECT(roadmap_locate(roadmap, (struct pose){0.5, 0.25, 1.5}, &at));
    EXPECT_INT(at.lane, 1);
    EXPECT(!roadmap_locate(roadmap, (struct pose){20, 20, 0}, &at));
    EXPECT_INT(at.lane, -1);
    roadmap_destroy(roadmap);
    arena_finish(&arena);
}

static void polygons_count_as_drivable_and_patches_as_friction(void)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct map map = {0};
    struct lane *lanes = maps_lanes(&arena, &map, 1);
    maps_straight(&arena, &lanes[0], (struct pose){0, 0, 0}, 50, 4);
    struct vec2 square[4] = {{20, 1}, {30, 1}, {30, 12}, {20, 12}};
    struct polygon area = {4, square};
    struct surface ice[2] = {{"ice", 0.1, {4, square}}, {"water", 0.4, {4, square}}};
    map.drivable = &area;
    map.drivable_count = 1;
    map.surfaces = ice;
    map.surface_count = 2;
    struct roadmap *roadmap = make(&map);
    EXPECT(roadmap_off_drivable_m(roadmap, (struct vec2){25, 10}) == 0.0);
    EXPECT_NEAR(roadmap_off_drivable_m(roadmap, (struct vec2){25, 13}), 1.0, 1e-9);
    EXPECT_NEAR(roadmap_off_drivable_m(roadmap, (struct vec2){33, 16}), 5.0, 1e-9);
    EXPECT_NEAR(roadmap_friction(roadmap, (struct vec2){25, 5}, 0.9), 0.1, 0.0);
    EXPECT_NEAR(roadmap_friction(roadmap, (struct vec2){25, -1}, 0.9), 0.9, 0.0);
    roadmap_destroy(roadmap);
    arena_finish(&arena);
}

static void routes_follow_their_lanes(void)
{
    struct arena arena;
    arena_init(&arena, 1 << 22);
    struct map map = {0};
    struct lane *lanes = maps_lanes(&arena, &map, 3);
    maps_straight(&arena, &lanes[0], (struct pose){0, 0, 0}, 60, 4);
    maps_arc(&arena, &lanes[1], (struct vec2){60, 50}, 50, -PI_RAD / 2, 0, 60, 4);
    maps_straight(&arena, &lanes[2], (struct pose){110, 50, PI_RAD / 2}, 60, 4);
    maps_successor(&arena, &lanes[0], 1);
    maps_successor(&arena, &lanes[1], 2);
    struct roadmap *roadmap = make(&map);
    struct route *route = NULL;
    struct error error;
    uint32_t ids[2] = {0, 1};
    EXPECT_OK(route_create(roadmap, ids, 2, (struct pose){0}, &route, &error), error);
    EXPECT_NEAR(route_length_m(route), 60 + 50 * PI_RAD / 2, 0.05);
    double hint = -1.0;
    for (double s = 0.0; s < 190.0; s += 0.7) {
        struct pose pose = route_pose_at(route, s, 1.2);
        struct polyline_projection foot =
            route_project(route, (struct vec2){pose.x_m, pose.y_m}, hint);
        EXPECT_NEAR(foot.s_m, s, 0.05);
        EXPECT_NEAR(foot.offset_m, 1.2, 0.02);
        EXPECT_NEAR(dmath_wrap_angle(foot.heading_rad - pose.heading_rad), 0.0, 0.01);
        hint = foot.s_m;
    }
    EXPECT_INT(route_lane_at(route, 59.9), 0);
    EXPECT_INT(route_lane_at(route, 60.1), 1);
    EXPECT_INT(route_lane_at(route, 150.0), 2); /* the extension */
    struct pose far = route_pose_at(route, route_length_m(route) + 160.0, 0.0);
    EXPECT_NEAR(far.x_m, 110.0, 0.01); /* straight on, past the last lane's end */
    EXPECT_NEAR(far.y_m, 210.0, 0.05);
    route_destroy(route);
    uint32_t broken[2] = {0, 2};
    EXPECT_INT(route_create(roadmap, broken, 2, (struct pose){0}, &route, &error),
               STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "lane2");
    roadmap_destroy(roadmap);
    arena_finish(&arena);
}

static void neighbour_step_blends_over_40_m(void)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct map map = {0};
    maps_motorway(&arena, &map, 2, 500);
    struct roadmap *roadmap = make(&map);
    struct route *route = NULL;
    struct error error;
    uint32_t ids[2] = {0, 1};
    EXPECT_OK(route_create(roadmap, ids, 2, (struct pose){100, 0, 0}, &route, &error), error);
    EXPECT_NEAR(route_pose_at(route, 100, 0).y_m, 0.0, 1e-9);
    EXPECT_NEAR(route_pose_at(route, 125, 0).y_m, 1.75, 0.1);
    EXPECT_NEAR(route_pose_at(route, 150, 0).y_m, 3.5, 1e-6);
    EXPECT_INT(route_lane_at(route, 110), 0);
    EXPECT_INT(route_lane_at(route, 140), 1);
    for (double s = 0.0; s < 500.0; s += 1.0) {
        EXPECT(fabs(route_pose_at(route, s, 0.0).heading_rad) < 0.18);
    }
    route_destroy(route);
    roadmap_destroy(roadmap);
    arena_finish(&arena);
}

static void broken_maps_are_errors(void)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct map map = {0};
    struct roadmap *roadmap = NULL;
    struct error error;
    EXPECT_INT(roadmap_create(&map, &roadmap, &error), STATUS_BAD_INPUT);
    maps_motorway(&arena, &map, 1, 100);
    map.lanes[0].centre_line[1] = map.lanes[0].centre_line[0];
    EXPECT_INT(roadmap_create(&map, &roadmap, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "lane0");
    map.lanes[0].centre_line[1].x_m = NAN;
    EXPECT_INT(roadmap_create(&map, &roadmap, &error), STATUS_BAD_INPUT);
    EXPECT(roadmap == NULL);
    /* Far-apart coordinates must not cost memory in proportion. */
    map.lanes[0].centre_line[1] = (struct vec2){1e7, 1e7};
    EXPECT_OK(roadmap_create(&map, &roadmap, &error), error);
    EXPECT(roadmap_off_drivable_m(roadmap, (struct vec2){5e6, 5e6}) == 0.0);
    roadmap_destroy(roadmap);
    arena_finish(&arena);
}

int main(void)
{
    return TEST_RUN(TEST(off_drivable_agrees_with_brute_force), TEST(off_drivable_is_a_distance),
                    TEST(bends_and_seams_have_no_gaps), TEST(seams_belong_to_one_lane),
                    TEST(lane_poses_are_continuous), TEST(locate_prefers_driving_lanes_and_heading),
                    TEST(polygons_count_as_drivable_and_patches_as_friction),
                    TEST(routes_follow_their_lanes), TEST(neighbour_step_blends_over_40_m),
                    TEST(broken_maps_are_errors));
}
