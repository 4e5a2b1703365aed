/*
 * Guardian: the RSS distance just kept and just broken for a leading, standing and oncoming car;
 * what is not in ego's way; braking as the proper response; leaving the road; onsets, not ticks.
 */
#include "tests/worker/rig.h"

#define BOTH_HALVES_M (EGO_LENGTH_M / 2 + CAR_LENGTH_M / 2)

/* The stopping part of the RSS distance with the product's parameters, written out again. */
static double stopping_m(double speed_mps, double brake_mps2)
{
    double after_mps = speed_mps + 0.3 * 2.0;
    return speed_mps * 0.3 + 0.5 * 2.0 * 0.3 * 0.3 + after_mps * after_mps / (2 * brake_mps2);
}

/* One tick in the right lane of a two-lane road, one car relative to ego. */
static bool active(double ego_mps, double accel_mps2, struct pose relative, double agent_mps,
                   double friction)
{
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){300, 0, 0}, ego_mps, 1, 10);
    rig_start(&rig);
    rig.scene.conditions.friction = friction;
    rig.scene.ego.accel_mps2 = accel_mps2;
    rig_agent(&rig, 0, (struct pose){300 + relative.x_m, relative.y_m, relative.heading_rad},
              agent_mps);
    rig_tick(&rig);
    bool is_active = score_guardian_active(rig.score);
    EXPECT_INT(rig_metrics(&rig)->intervention_count, is_active);
    rig_finish(&rig);
    return is_active;
}

static void lead_distance_is_that_of_rss(void)
{
    double safe_m = stopping_m(20, 6) - 10.0 * 10.0 / (2 * 8);
    EXPECT_NEAR(safe_m, 35.2033, 1e-4);
    EXPECT(active(20, 0, (struct pose){BOTH_HALVES_M + safe_m - 0.01, 0, 0}, 10, 1));
    EXPECT(!active(20, 0, (struct pose){BOTH_HALVES_M + safe_m + 0.01, 0, 0}, 10, 1));
    double standing_m = stopping_m(20, 6);
    EXPECT(active(20, 0, (struct pose){BOTH_HALVES_M + standing_m - 0.01, 0, 0}, 0, 1));
    EXPECT(!active(20, 0, (struct pose){BOTH_HALVES_M + standing_m + 0.01, 0, 0}, 0, 1));
    EXPECT(!active(10, 0, (struct pose){BOTH_HALVES_M + 1, 0, 0}, 30, 1)); /* it pulls away */
}

/* A thing that ego's sensors cannot see is nothing that it could override for. */
static void what_is_out_of_sight_is_unknown(void)
{
    for (int fog = 0; fog < 2; fog++) {
        struct stand rig;
        rig_motorway(&rig, 2, (struct pose){300, 0, 0}, 20, 1, 10);
        rig_start(&rig);
        rig.scene.conditions.visibility_m = fog ? 15 : 100;
        rig_agent(&rig, 0, (struct pose){330, 0, 0}, 0);
        rig_tick(&rig);
        EXPECT_INT(score_guardian_active(rig.score), !fog);
        rig_finish(&rig);
    }
}

static void ice_asks_for_more_distance(void)
{
    double ice_mps2 = 0.2 * 9.80665;
    double safe_m = stopping_m(10, ice_mps2);
    EXPECT(safe_m > 2 * stopping_m(10, 6));
    EXPECT(active(10, 0, (struct pose){BOTH_HALVES_M + safe_m - 0.01, 0, 0}, 0, 0.2));
    EXPECT(!active(10, 0, (struct pose){BOTH_HALVES_M + safe_m + 0.01, 0, 0}, 0, 0.2));
}

static void oncoming_in_ego_lane_needs_both_to_stop(void)
{
    double safe_m = stopping_m(15, 6) + stopping_m(10, 6);
    EXPECT(active(15, 0, (struct pose){BOTH_HALVES_M + safe_m - 0.01, 0, PI_RAD}, 10, 1));
    EXPECT(!active(15, 0, (struct pose){BOTH_HALVES_M + safe_m + 0.01, 0, PI_RAD}, 10, 1));
    EXPECT(!active(15, 0, (struct pose){30, 3.5, PI_RAD}, 10, 1)); /* in its own lane */
}

static void only_what_is_in_the_way_counts(void)
{
    EXPECT(!active(20, 0, (struct pose){15, 3.5, 0}, 0, 1));  /* next lane */
    EXPECT(!active(20, 0, (struct pose){-10, 0, 0}, 30, 1));  /* behind */
    EXPECT(!active(20, 0, (struct pose){15, 1.96, 0}, 0, 1)); /* passed with 11 cm */
    EXPECT(active(20, 0, (struct pose){15, 1.94, 0}, 0, 1));  /* with 9 cm */
    EXPECT(!active(0.4, 0, (struct pose){BOTH_HALVES_M + 0.01, 0, 0}, 0, 1)); /* ego stands */
}

static void crossing_agent_that_cannot_stop_counts(void)
{
    /* Its nose 2.7 m from ego's corridor, 12 m ahead: at 8 m/s it needs 2.4 + 8.0 m to stop, at
     * 3 m/s 0.9 + 1.1 m. */
    struct pose crossing = {12, 6, -PI_RAD / 2};
    EXPECT(active(10, 0, crossing, 8, 1));
    EXPECT(!active(10, 0, crossing, 3, 1));
    EXPECT(!active(10, 0, (struct pose){12, 6, PI_RAD / 2}, 8, 1)); /* going away */
}

static void braking_is_the_proper_response(void)
{
    struct pose near = {BOTH_HALVES_M + 15, 0, 0};
    EXPECT(active(20, 0, near, 0, 1));
    EXPECT(active(20, -5.3, near, 0, 1));
    EXPECT(!active(20, -5.5, near, 0, 1));
}

static void onsets_are_counted_not_ticks(void)
{
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){300, 0, 0}, 20, 1, 60);
    rig_start(&rig);
    rig_drive(&rig, 5);
    rig_agent(&rig, 0, (struct pose){rig.scene.ego.pose.x_m + 30, 0, 0}, 20);
    rig_drive(&rig, 5); /* safe: same speed, 25 m */
    EXPECT_INT(rig_metrics(&rig)->intervention_count, 0);
    rig.scene.agents[0].speed_mps = 5; /* brakes at once */
    rig_drive(&rig, 5);
    EXPECT(score_guardian_active(rig.score));
    rig.scene.ego.accel_mps2 = -8; /* an override under way stays until the distance is safe */
    rig_drive(&rig, 3);
    EXPECT(score_guardian_active(rig.score));
    EXPECT_INT(rig_metrics(&rig)->intervention_count, 1);
    rig.scene.agents[0].present = false;
    rig.scene.ego.accel_mps2 = 0;
    rig_drive(&rig, 5);
    EXPECT(!score_guardian_active(rig.score));
    rig_agent(&rig, 0, (struct pose){rig.scene.ego.pose.x_m + 25, 0, 0}, 0);
    rig_drive(&rig, 2);
    EXPECT_INT(rig_metrics(&rig)->intervention_count, 2);
    rig_finish(&rig);
}

static bool leaving(struct pose pose, double speed_mps, double accel_mps2, double yaw_rate_rps)
{
    struct stand rig;
    rig_motorway(&rig, 2, pose, speed_mps, 0, 10);
    rig_start(&rig);
    rig.scene.ego.accel_mps2 = accel_mps2;
    rig.scene.ego.yaw_rate_rps = yaw_rate_rps;
    rig_tick(&rig);
    bool is_active = score_guardian_active(rig.score);
    rig_finish(&rig);
    return is_active;
}

static void leaving_the_road_is_foreseen_for_a_second(void)
{
    /* Heading 0.2 rad to the right in the right lane: the corner starts 1.75 - 0.93 - 0.46 m inside
     * and moves 0.199 v in a second; 0.3 m outside is the limit: v = 3.3 m/s. */
    EXPECT(!leaving((struct pose){300, 0, -0.2}, 3.0, 0, 0));
    EXPECT(leaving((struct pose){300, 0, -0.2}, 3.7, 0, 0));
    EXPECT(!leaving((struct pose){300, 0, -0.2}, 3.7, -6, 0)); /* stops before */
    EXPECT(!leaving((struct pose){300, 0, -0.2}, 6, -6, 0));   /* after 3 m */
    EXPECT(leaving((struct pose){300, 0, -0.2}, 6, -4, 0));    /* 4 m after a second */
    EXPECT(!leaving((struct pose){300, 0, 0}, 30, 0, 0));
    EXPECT(leaving((struct pose){300, 0, 0}, 10, 0, 0.95)); /* turns off the road to the left */
    EXPECT(!leaving((struct pose){300, 0, 0}, 10, 0, 0.1));
    EXPECT(leaving((struct pose){300, -3, 0}, 0, 0, 0)); /* is outside already */
}

/* A straight of 100 m into a bend of 30 m radius to the left; ego at 15 m/s needs 24.9 m to stop. A
 * car on the verge straight ahead is not in the way, because the route turns before it; one parked
 * on the route round the bend is, once ego turns towards it. */
static void bends_are_followed(void)
{
    const struct pose verge = {116, 0, 0};
    const struct pose round_the_bend = {100 + 30 * 0.7174, 30 - 30 * 0.6967, 0.8};
    for (int on_route = 0; on_route <= 1; on_route++) {
        struct stand rig;
        rig_init(&rig);
        struct lane *lanes = maps_lanes(&rig.arena, &rig.scenario.map, 2);
        maps_straight(&rig.arena, &lanes[0], (struct pose){0, 0, 0}, 100, 3.5);
        maps_arc(&rig.arena, &lanes[1], (struct vec2){100, 30}, 30, -PI_RAD / 2, 0, 40, 3.5);
        maps_successor(&rig.arena, &lanes[0], 1);
        rig_scenario(&rig, (struct pose){88, 0, 0}, 15, 1, 10);
        rig.scenario.ego.route = arena_alloc(&rig.arena, 2, sizeof(uint32_t));
        rig.scenario.ego.route[1] = 1;
        rig.scenario.ego.route_count = 2;
        rig_start(&rig);
        rig_agent(&rig, 0, on_route ? round_the_bend : verge, 0);
        rig_tick(&rig);
        EXPECT(!score_guardian_active(rig.score));
        rig.scene.ego.pose = (struct pose){100, 0, 0}; /* into the bend, turning with it */
        rig.scene.ego.yaw_rate_rps = 15.0 / 30;
        rig_tick(&rig);
        EXPECT_INT(score_guardian_active(rig.score), on_route);
        rig_finish(&rig);
    }
}

/* Ego is in the lane beside its route: what counts is its own parallel path. */
static void the_route_is_taken_at_egos_offset(void)
{
    for (int lane = 0; lane <= 1; lane++) {
        struct stand rig;
        rig_motorway(&rig, 2, (struct pose){300, 3.5, 0}, 20, 1, 10);
        rig_start(&rig);
        rig_agent(&rig, 0, (struct pose){300 + BOTH_HALVES_M + 35, 3.5 * lane, 0}, 0);
        rig_tick(&rig);
        EXPECT_INT(score_guardian_active(rig.score), lane);
        rig_finish(&rig);
    }
}

/* The same verge car without a bend ahead of ego: the route leads into it, so it counts. */
static void the_route_excuses_only_what_it_avoids(void)
{
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){88, 0, 0}, 15, 1, 10);
    rig_start(&rig);
    rig_agent(&rig, 0, (struct pose){116, 0, 0}, 0);
    rig_tick(&rig);
    EXPECT(score_guardian_active(rig.score));
    rig_finish(&rig);
}

int main(void)
{
    return TEST_RUN(
        TEST(lead_distance_is_that_of_rss), TEST(what_is_out_of_sight_is_unknown),
        TEST(ice_asks_for_more_distance), TEST(oncoming_in_ego_lane_needs_both_to_stop),
        TEST(only_what_is_in_the_way_counts), TEST(crossing_agent_that_cannot_stop_counts),
        TEST(braking_is_the_proper_response), TEST(onsets_are_counted_not_ticks),
        TEST(leaving_the_road_is_foreseen_for_a_second), TEST(bends_are_followed),
        TEST(the_route_excuses_only_what_it_avoids), TEST(the_route_is_taken_at_egos_offset));
}
