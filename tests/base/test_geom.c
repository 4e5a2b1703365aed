/*
 * Geometry: each answer is compared with a slow independent one (dense sampling, brute force over
 * edges) on random figures, plus exact cases at the boundaries and invariance under rigid motion.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "base/geom.h"
#include "base/rng.h"
#include "base/units.h"
#include "tests/harness.h"

static double draw(uint32_t tick, uint32_t element, double low, double high)
{
    return low + (high - low) * rng_uniform(21, RNG_STREAM_TEST, tick, element);
}

static struct box random_box(uint32_t tick, uint32_t element, double spread_m)
{
    return box_make((struct pose){draw(tick, element, -spread_m, spread_m),
                                  draw(tick, element + 1, -spread_m, spread_m),
                                  draw(tick, element + 2, -PI_RAD, PI_RAD)},
                    draw(tick, element + 3, 0.2, 6), draw(tick, element + 4, 0.2, 3));
}

/* Distance of two boxes from their edges alone: 0 if edges cross or one holds the other. */
static double brute_distance_m(const struct box *a, const struct box *b)
{
    struct vec2 p[4];
    struct vec2 q[4];
    box_corners(a, p);
    box_corners(b, q);
    if (polygon_contains(p, 4, q[0]) || polygon_contains(q, 4, p[0])) {
        return 0;
    }
    double best_m = INFINITY;
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            if (segments_intersect(p[i], p[(i + 1) % 4], q[j], q[(j + 1) % 4])) {
                return 0;
            }
            best_m = fmin(best_m, segment_distance_m(p[i], p[(i + 1) % 4], q[j]));
            best_m = fmin(best_m, segment_distance_m(q[j], q[(j + 1) % 4], p[i]));
        }
    }
    return best_m;
}

static void corners_are_ordered_and_sized(void)
{
    struct vec2 corners[4];
    struct box box = box_make((struct pose){10, 20, PI_RAD / 2}, 4, 2);
    box_corners(&box, corners);
    EXPECT_NEAR(corners[0].x_m, 9, 1e-12); /* front left */
    EXPECT_NEAR(corners[0].y_m, 22, 1e-12);
    EXPECT_NEAR(corners[1].x_m, 9, 1e-12); /* rear left */
    EXPECT_NEAR(corners[1].y_m, 18, 1e-12);
    EXPECT_NEAR(corners[2].x_m, 11, 1e-12); /* rear right */
    EXPECT_NEAR(corners[2].y_m, 18, 1e-12);
    EXPECT_NEAR(corners[3].x_m, 11, 1e-12); /* front right */
    EXPECT_NEAR(corners[3].y_m, 22, 1e-12);
}

static void box_overlap_and_distance_agree_with_edges(void)
{
    int overlapping = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        struct box a = random_box(i, 0, 5);
        struct box b = random_box(i, 10, 5);
        double expected_m = brute_distance_m(&a, &b);
        EXPECT_NEAR(box_distance_m(&a, &b), expected_m, 1e-9);
        EXPECT_NEAR(box_distance_m(&a, &b), box_distance_m(&b, &a), 1e-12);
        if (expected_m == 0 || expected_m > 1e-9) {
            EXPECT_INT(box_overlap(&a, &b), expected_m == 0);
            EXPECT_INT(box_overlap(&b, &a), expected_m == 0);
        }
        overlapping += expected_m == 0;
    }
    EXPECT(overlapping > 2000 && overlapping < 18000); /* both answers were exercised */
}

static void touching_boxes_overlap(void)
{
    struct box a = box_make((struct pose){0, 0, 0}, 4, 2);
    struct box touching = box_make((struct pose){4, 0, 0}, 4, 2);
    struct box apart = box_make((struct pose){4.0000001, 0, 0}, 4, 2);
    struct box corner = box_make((struct pose){4, 2, 0}, 4, 2);
    EXPECT(box_overlap(&a, &touching));
    EXPECT(!box_overlap(&a, &apart));
    struct box rounded = box_make((struct pose){4.00000000000027, 0, 0}, 4, 2);
    EXPECT(box_overlap(&a, &rounded) && box_distance_m(&a, &rounded) == 0);
    EXPECT(box_overlap(&a, &corner));
    EXPECT_NEAR(box_distance_m(&a, &apart), 1e-7, 1e-12);
    struct box diagonal = box_make((struct pose){5, 5, 0}, 4, 2);
    EXPECT_NEAR(box_distance_m(&a, &diagonal), sqrt(1 + 9), 1e-12);
    struct box inner = box_make((struct pose){0.2, 0.1, 0.3}, 0.5, 0.5);
    EXPECT(box_overlap(&a, &inner) && box_distance_m(&inner, &a) == 0);
}

static void box_distance_ignores_rigid_motion(void)
{
    for (uint32_t i = 0; i < 2000; i++) {
        double turn = draw(i, 30, -PI_RAD, PI_RAD);
        double s = dmath_sin(turn);
        double c = dmath_cos(turn);
        struct box before[2];
        struct box after[2];
        for (uint32_t k = 0; k < 2; k++) {
            struct pose pose = {draw(i, 40 + 10 * k, -5, 5), draw(i, 41 + 10 * k, -5, 5),
                                draw(i, 42 + 10 * k, -PI_RAD, PI_RAD)};
            struct pose moved = {c * pose.x_m - s * pose.y_m + 1000,
                                 s * pose.x_m + c * pose.y_m - 2000, pose.heading_rad + turn};
            before[k] = box_make(pose, 4.5, 1.9);
            after[k] = box_make(moved, 4.5, 1.9);
        }
        EXPECT_NEAR(box_distance_m(&after[0], &after[1]), box_distance_m(&before[0], &before[1]),
                    1e-9);
    }
}

static void containment_agrees_between_box_and_polygon(void)
{
    int inside = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        struct box box = random_box(i, 60, 2);
        struct vec2 corners[4];
        struct vec2 point = {draw(i, 70, -4, 4), draw(i, 71, -4, 4)};
        box_corners(&box, corners);
        inside += box_contains(&box, point);
        EXPECT_INT(polygon_contains(corners, 4, point), box_contains(&box, point));
    }
    EXPECT(inside > 1000 && inside < 19000);
}

static void concave_polygons_are_understood(void)
{
    /* A U, open at the top; both orientations. */
    const struct vec2 u[] = {{0, 0}, {3, 0}, {3, 3}, {2, 3}, {2, 1}, {1, 1}, {1, 3}, {0, 3}};
    struct vec2 reversed[COUNT_OF(u)];
    for (size_t i = 0; i < COUNT_OF(u); i++) {
        reversed[i] = u[COUNT_OF(u) - 1 - i];
    }
    const struct vec2 inside[] = {{0.5, 2}, {2.5, 2}, {1.5, 0.5}, {0.1, 0.1}};
    const struct vec2 outside[] = {{1.5, 2}, {-0.1, 1}, {3.1, 1}, {1.5, 3.5}, {1.5, -1}, {5, 3}};
    for (size_t i = 0; i < COUNT_OF(inside); i++) {
        EXPECT(polygon_contains(u, COUNT_OF(u), inside[i]));
        EXPECT(polygon_contains(reversed, COUNT_OF(u), inside[i]));
    }
    for (size_t i = 0; i < COUNT_OF(outside); i++) {
        EXPECT(!polygon_contains(u, COUNT_OF(u), outside[i]));
        EXPECT(!polygon_contains(reversed, COUNT_OF(u), outside[i]));
    }
}

static void segments_meet_as_they_should(void)
{
    const struct vec2 o = {0, 0};
    const struct vec2 east = {4, 0};
    EXPECT(segments_intersect(o, east, (struct vec2){2, -1}, (struct vec2){2, 1}));
    EXPECT(segments_intersect(o, east, (struct vec2){2, 0}, (struct vec2){2, 1}));  /* a T */
    EXPECT(segments_intersect(o, east, (struct vec2){4, 0}, (struct vec2){5, 5}));  /* end */
    EXPECT(segments_intersect(o, east, (struct vec2){3, 0}, (struct vec2){9, 0}));  /* overlap */
    EXPECT(segments_intersect(o, east, (struct vec2){1, 0}, (struct vec2){2, 0}));  /* inside */
    EXPECT(!segments_intersect(o, east, (struct vec2){5, 0}, (struct vec2){9, 0})); /* in line */
    EXPECT(!segments_intersect(o, east, (struct vec2){0, 1}, (struct vec2){4, 1})); /* parallel */
    EXPECT(!segments_intersect(o, east, (struct vec2){5, -1}, (struct vec2){5, 1}));
    EXPECT(!segments_intersect(o, east, (struct vec2){2, 0.1}, (struct vec2){2, 1}));
}

static void segment_distance_is_the_smallest_over_the_segment(void)
{
    for (uint32_t i = 0; i < 500; i++) {
        struct vec2 a = {draw(i, 80, -5, 5), draw(i, 81, -5, 5)};
        struct vec2 b = {draw(i, 82, -5, 5), draw(i, 83, -5, 5)};
        struct vec2 p = {draw(i, 84, -9, 9), draw(i, 85, -9, 9)};
        double best_m = INFINITY;
        for (int k = 0; k <= 2000; k++) {
            double t = k / 2000.0;
            best_m = fmin(best_m, hypot(a.x_m + t * (b.x_m - a.x_m) - p.x_m,
                                        a.y_m + t * (b.y_m - a.y_m) - p.y_m));
        }
        EXPECT_NEAR(segment_distance_m(a, b, p), best_m, 0.01);
        EXPECT(segment_distance_m(a, b, p) <= best_m + 1e-12);
        EXPECT_NEAR(segment_distance_m(a, a, p), hypot(a.x_m - p.x_m, a.y_m - p.y_m), 1e-12);
    }
}

enum { WAVE_POINTS = 60 };

/* A gentle wave, so that offsets up to 2 m have one nearest point. */
static void make_wave(struct vec2 *points)
{
    for (int i = 0; i < WAVE_POINTS; i++) {
        points[i] = (struct vec2){2.0 * i, 6.0 * sin(0.05 * 2.0 * i)};
    }
}

static void projection_inverts_pose_at(void)
{
    struct vec2 points[WAVE_POINTS];
    make_wave(points);
    double length_m = polyline_length_m(points, WAVE_POINTS);
    for (uint32_t i = 0; i < 3000; i++) {
        double s_m = draw(i, 90, 1, length_m - 1);
        double offset_m = draw(i, 91, -0.5, 0.5);
        struct pose pose = polyline_pose_at(points, WAVE_POINTS, s_m, offset_m);
        struct polyline_projection found =
            polyline_project(points, WAVE_POINTS, (struct vec2){pose.x_m, pose.y_m});
        /* At a kink the foot may jump by about offset * kink angle. */
        EXPECT_NEAR(found.s_m, s_m, 0.02);
        EXPECT_NEAR(fabs(found.offset_m), fabs(offset_m), 0.02);
        EXPECT(fabs(offset_m) < 0.05 || found.offset_m * offset_m > 0);
        EXPECT_NEAR(found.distance_m, fabs(offset_m), 0.02);
        EXPECT(!found.beyond_end);
    }
}

static void projection_finds_the_nearest_point(void)
{
    struct vec2 points[WAVE_POINTS];
    make_wave(points);
    for (uint32_t i = 0; i < 500; i++) {
        struct vec2 p = {draw(i, 95, -20, 140), draw(i, 96, -20, 20)};
        struct polyline_projection found = polyline_project(points, WAVE_POINTS, p);
        double best_m = INFINITY;
        for (uint32_t k = 0; k + 1 < WAVE_POINTS; k++) {
            best_m = fmin(best_m, segment_distance_m(points[k], points[k + 1], p));
        }
        EXPECT_NEAR(found.distance_m, best_m, 1e-12);
        struct pose foot = polyline_pose_at(points, WAVE_POINTS, found.s_m, 0);
        EXPECT_NEAR(hypot(foot.x_m - p.x_m, foot.y_m - p.y_m), best_m, 1e-9);
    }
}

static void ends_are_clamped_when_projecting_and_straight_when_posing(void)
{
    const struct vec2 line[] = {{0, 0}, {10, 0}, {10, 0}, {10, 10}}; /* with a double point */
    struct polyline_projection before = polyline_project(line, 4, (struct vec2){-3, 1});
    struct polyline_projection after = polyline_project(line, 4, (struct vec2){9, 14});
    EXPECT(before.beyond_end && after.beyond_end);
    EXPECT_NEAR(before.s_m, 0, 0);
    EXPECT_NEAR(after.s_m, 20, 1e-12);
    EXPECT_NEAR(before.offset_m, 1, 1e-12);
    EXPECT_NEAR(after.offset_m, 1, 1e-12);
    EXPECT_NEAR(after.heading_rad, PI_RAD / 2, 1e-12);
    struct pose behind = polyline_pose_at(line, 4, -5, 0);
    struct pose beyond = polyline_pose_at(line, 4, 25, -1);
    EXPECT_NEAR(behind.x_m, -5, 1e-12);
    EXPECT_NEAR(beyond.x_m, 11, 1e-12);
    EXPECT_NEAR(beyond.y_m, 15, 1e-12);
}

int main(void)
{
    return TEST_RUN(
        TEST(corners_are_ordered_and_sized), TEST(box_overlap_and_distance_agree_with_edges),
        TEST(touching_boxes_overlap), TEST(box_distance_ignores_rigid_motion),
        TEST(containment_agrees_between_box_and_polygon), TEST(concave_polygons_are_understood),
        TEST(segments_meet_as_they_should), TEST(segment_distance_is_the_smallest_over_the_segment),
        TEST(projection_inverts_pose_at), TEST(projection_finds_the_nearest_point),
        TEST(ends_are_clamped_when_projecting_and_straight_when_posing));
}
