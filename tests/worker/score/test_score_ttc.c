/*
 * Time to collision: analytic head-on and following cases, the rules of relevance, and the closed
 * form against the plain stepwise search on random boxes.
 */
#include "base/rng.h"
#include "tests/worker/rig.h"
#include "worker/score/score_internal.h"

#define BOTH_HALVES_M (EGO_LENGTH_M / 2 + CAR_LENGTH_M / 2)

/* One tick with ego at (100, 3.5) in the middle lane and one car relative to it. */
static struct metrics one_tick(double ego_mps, double lateral_m, struct pose relative,
                               double agent_mps)
{
    struct stand rig;
    struct pose ego = {100, 3.5 + lateral_m, 0};
    rig_motorway(&rig, 3, ego, ego_mps, 1, 10);
    rig_start(&rig);
    rig_agent(&rig, 0,
              (struct pose){ego.x_m + relative.x_m, ego.y_m + relative.y_m, relative.heading_rad},
              agent_mps);
    rig_tick(&rig);
    struct metrics metrics = *rig_metrics(&rig);
    rig_finish(&rig);
    return metrics;
}

static struct metrics following(double gap_m, double ego_mps, double lead_mps)
{
    return one_tick(ego_mps, 0, (struct pose){BOTH_HALVES_M + gap_m, 0, 0}, lead_mps);
}

/* The boxes touch at gap / closing speed; TTC is the next step of 0.1 s. */
static void following_is_gap_over_closing_speed(void)
{
    for (int i = 1; i <= 28; i++) {
        double contact_s = 0.1 * i + 0.05;
        EXPECT_NEAR(following(10 * contact_s, 15, 5).min_ttc_s, 0.1 * (i + 1), 1e-12);
    }
    EXPECT(isinf(following(10, 5, 5).min_ttc_s));
    EXPECT(isinf(following(10, 5, 8).min_ttc_s));
    EXPECT(isinf(following(31, 15, 5).min_ttc_s)); /* beyond 3.0 s */
    EXPECT_NEAR(following(0.001, 15, 5).min_ttc_s, 0.1, 1e-12);
}

static void head_on_closes_with_both_speeds(void)
{
    struct pose oncoming = {BOTH_HALVES_M + 29.5, 0.4, PI_RAD};
    EXPECT_NEAR(one_tick(12, 0, oncoming, 8).min_ttc_s, 1.5, 1e-12); /* 29.5 / 20 = 1.475 */
    struct pose passing = {BOTH_HALVES_M + 29.5, 1.86, PI_RAD};      /* 1 cm clear */
    EXPECT(isinf(one_tick(12, 0, passing, 8).min_ttc_s));
    struct pose reversing = {BOTH_HALVES_M + 29.5, 0, 0};
    EXPECT_NEAR(one_tick(12, 0, reversing, -8).min_ttc_s, 1.5, 1e-12);
}

static void bound_is_0_95_s(void)
{
    EXPECT_INT(following(8.95, 15, 5).ttc, 0); /* 0.9 s */
    EXPECT_NEAR(following(8.95, 15, 5).min_ttc_s, 0.9, 1e-12);
    EXPECT_INT(following(9.05, 15, 5).ttc, 1); /* 1.0 s */
    EXPECT_INT(following(40, 15, 5).ttc, 1);
}

static void standing_ego_has_no_ttc(void)
{
    struct pose oncoming = {BOTH_HALVES_M + 5, 0, PI_RAD};
    EXPECT(isinf(one_tick(0.005, 0, oncoming, 8).min_ttc_s));
    EXPECT_NEAR(one_tick(0.006, 0, oncoming, 8).min_ttc_s, 0.7, 1e-12);
}

static void agents_behind_never_count(void)
{
    struct pose behind = {-BOTH_HALVES_M - 5, 0, 0};
    EXPECT(isinf(one_tick(5, 0, behind, 15).min_ttc_s));
    EXPECT(isinf(one_tick(5, 1.75, behind, 15).min_ttc_s)); /* not even across lanes */
}

/* A car that comes from the left at a right angle and would hit ego's front third in 1.5 s: its
 * bearing from ego's rear axle is about 40 degrees. */
static void crossing_agents_count_across_lanes_and_in_junctions(void)
{
    struct pose crossing = {15, 15, -PI_RAD / 2};
    EXPECT(isinf(one_tick(10, 0, crossing, 10).min_ttc_s));
    EXPECT(one_tick(10, 1.75, crossing, 10).min_ttc_s < 2);
    struct pose nearer_ahead = {15, 7, -PI_RAD / 2}; /* bearing 23 degrees: ahead */
    EXPECT(one_tick(10, 0, nearer_ahead, 5).min_ttc_s < 2);
    for (int junction = 0; junction <= 1; junction++) {
        struct stand rig;
        rig_motorway(&rig, 3, (struct pose){100, 3.5, 0}, 10, 1, 10);
        rig.scenario.map.lanes[1].intersection = junction;
        rig_start(&rig);
        rig_agent(&rig, 0, (struct pose){115, 18.5, -PI_RAD / 2}, 10);
        rig_tick(&rig);
        EXPECT_INT(rig_metrics(&rig)->min_ttc_s < 2, junction);
        rig_finish(&rig);
    }
}

static void ahead_ends_at_30_degrees_from_the_rear_axle(void)
{
    for (int inside = 0; inside <= 1; inside++) {
        double bearing = (inside ? 29.5 : 30.5) * PI_RAD / 180;
        struct pose agent = {-1.4 + 14 * cos(bearing), 14 * sin(bearing), -PI_RAD / 2};
        EXPECT_INT(one_tick(8, 0, agent, 6).min_ttc_s < 3, inside);
    }
}

static void an_at_fault_contact_is_ttc_zero(void)
{
    struct metrics front = following(-0.1, 15, 5);
    EXPECT(front.at_fault);
    EXPECT_NEAR(front.min_ttc_s, 0, 0);
    EXPECT_INT(front.ttc, 0);
    struct metrics rear = one_tick(5, 0, (struct pose){-BOTH_HALVES_M + 0.1, 0, 0}, 15);
    EXPECT_INT(rear.collision_count, 1);
    EXPECT(isinf(rear.min_ttc_s));
    EXPECT_INT(rear.ttc, 1);
}

/* In a junction what is beside ego counts, but not what ego is touching without fault. */
static void a_contact_without_fault_has_no_ttc(void)
{
    struct stand rig;
    rig_motorway(&rig, 3, (struct pose){100, 3.5, 0}, 10, 1, 10);
    rig.scenario.map.lanes[1].intersection = true;
    rig_start(&rig);
    rig_agent(&rig, 0, (struct pose){99.7, 5.3, 0}, 4);
    rig_tick(&rig);
    EXPECT_INT(rig_metrics(&rig)->collision_count, 1);
    EXPECT(!rig.metrics.at_fault);
    EXPECT(isinf(rig.metrics.min_ttc_s));
    rig_finish(&rig);
}

static void an_agent_once_touched_no_longer_counts(void)
{
    struct stand rig;
    rig_motorway(&rig, 3, (struct pose){100, 3.5, 0}, 5, 1, 10);
    rig_start(&rig);
    rig_agent(&rig, 0, (struct pose){100 - BOTH_HALVES_M + 0.1, 3.5, 0}, 15);
    rig_tick(&rig);
    rig_agent(&rig, 0, (struct pose){112, 3.5, 0}, 0); /* now right ahead */
    rig_tick(&rig);
    EXPECT(isinf(rig_metrics(&rig)->min_ttc_s));
    rig_finish(&rig);
}

static void smallest_over_agents_and_ticks_is_kept(void)
{
    struct stand rig;
    rig_motorway(&rig, 3, (struct pose){100, 3.5, 0}, 15, 2, 10);
    rig_start(&rig);
    rig_agent(&rig, 0, (struct pose){100 + BOTH_HALVES_M + 28.5, 3.5, 0}, 5);
    rig_agent(&rig, 1, (struct pose){100 + BOTH_HALVES_M + 20.5, 3.5, 0}, 5);
    rig_tick(&rig);
    EXPECT_NEAR(rig_metrics(&rig)->min_ttc_s, 2.1, 1e-12);
    rig_advance(&rig);
    rig_tick(&rig);
    EXPECT_NEAR(rig_metrics(&rig)->min_ttc_s, 2.0, 1e-12);
    rig.scene.ego.speed_mps = 5;
    rig_tick(&rig);
    EXPECT_NEAR(rig_metrics(&rig)->min_ttc_s, 2.0, 1e-12);
    rig_finish(&rig);
}

static double draw(uint32_t round, uint32_t element, double low, double high)
{
    return low + (high - low) * rng_uniform(77, RNG_STREAM_TEST, round, element);
}

/* The definition: 30 steps, box against box. `grow_m` widens one box to find near misses. */
static double stepwise_s(struct box a, struct vec2 va, struct box b, struct vec2 vb, double grow_m)
{
    struct vec2 at_a = a.center;
    struct vec2 at_b = b.center;
    a.half_length_m += grow_m;
    a.half_width_m += grow_m;
    for (int k = 1; k <= TTC_STEPS; k++) {
        double t = k * TTC_STEP_S;
        a.center = (struct vec2){at_a.x_m + va.x_m * t, at_a.y_m + va.y_m * t};
        b.center = (struct vec2){at_b.x_m + vb.x_m * t, at_b.y_m + vb.y_m * t};
        if (box_overlap(&a, &b)) {
            return t;
        }
    }
    return INFINITY;
}

static void closed_form_is_the_stepwise_search(void)
{
    int hits = 0;
    int compared = 0;
    for (uint32_t i = 0; i < 50000; i++) {
        struct pose pose_a = {draw(i, 0, -20, 20), draw(i, 1, -20, 20), draw(i, 2, -4, 4)};
        struct pose pose_b = {draw(i, 3, -20, 20), draw(i, 4, -20, 20), draw(i, 5, -4, 4)};
        struct box a = box_make(pose_a, draw(i, 6, 0.5, 6), draw(i, 7, 0.5, 2.5));
        struct box b = box_make(pose_b, draw(i, 8, 0.5, 12), draw(i, 9, 0.5, 2.5));
        double speed_a = draw(i, 10, 0, 15);
        double speed_b = i % 5 == 0 ? 0 : draw(i, 11, -5, 15);
        struct vec2 va = {speed_a * a.cos_heading, speed_a * a.sin_heading};
        struct vec2 vb = {speed_b * b.cos_heading, speed_b * b.sin_heading};
        if (i % 7 == 0) {
            vb = va; /* no relative motion at all */
        }
        double expected_s = stepwise_s(a, va, b, vb, 0);
        if (stepwise_s(a, va, b, vb, 1e-7) != stepwise_s(a, va, b, vb, -1e-7)) {
            continue; /* grazes within rounding: either answer is right */
        }
        double found_s = ttc_boxes_s(&a, va, &b, vb);
        EXPECT(isinf(expected_s) == isinf(found_s));
        if (!isinf(expected_s)) {
            EXPECT_NEAR(found_s, expected_s, 1e-12);
            hits++;
        }
        compared++;
    }
    EXPECT(compared > 49000);
    EXPECT(hits > 3000);
}

int main(void)
{
    return TEST_RUN(
        TEST(following_is_gap_over_closing_speed), TEST(head_on_closes_with_both_speeds),
        TEST(bound_is_0_95_s), TEST(standing_ego_has_no_ttc), TEST(agents_behind_never_count),
        TEST(crossing_agents_count_across_lanes_and_in_junctions),
        TEST(ahead_ends_at_30_degrees_from_the_rear_axle), TEST(an_at_fault_contact_is_ttc_zero),
        TEST(a_contact_without_fault_has_no_ttc), TEST(an_agent_once_touched_no_longer_counts),
        TEST(smallest_over_agents_and_ticks_is_kept), TEST(closed_form_is_the_stepwise_search));
}
