/*
 * Collisions: each class of contact from a hand-made scene, thresholds just inside and outside, the
 * at-fault rule for every class, one count per agent, impact speed and clearance.
 */
#include "base/rng.h"
#include "tests/worker/rig.h"

#define REAR_AXLE_M 1.4 /* half the wheelbase of the rig's ego */

/* Ego in the middle lane of three at (100, 3.5) heading east, shifted left by lateral_m; one car at
 * (x, y, heading) relative to ego; a single tick is scored. */
static struct metrics contact(double ego_mps, double lateral_m, struct pose relative,
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
    EXPECT_INT((rig.reasons & REASON_AT_FAULT_COLLISION) != 0, metrics.at_fault);
    EXPECT_INT(metrics.no_at_fault_collision, !metrics.at_fault);
    rig_finish(&rig);
    return metrics;
}

static const struct pose ahead = {4.4, 0, 0};     /* 0.15 m into ego's front */
static const struct pose behind = {-4.4, 0, 0};   /* and into its rear */
static const struct pose beside = {-0.3, 1.8, 0}; /* 0.05 m into its left side */
static const struct pose clear_by_1m = {5.55, 0, 0};

static void no_contact_is_no_collision(void)
{
    struct metrics metrics = contact(10, 0, clear_by_1m, 0);
    EXPECT_INT(metrics.collision_count, 0);
    EXPECT_INT(metrics.collision_kind, COLLISION_NONE);
    EXPECT_INT(metrics.collision_agent, -1);
    EXPECT_INT(metrics.collision_tick, UINT32_MAX);
    EXPECT(isnan(metrics.impact_speed_mps));
    EXPECT_NEAR(metrics.min_distance_m, 1.0, 1e-12);
    EXPECT(!metrics.at_fault);
}

static void stopped_ego_is_never_at_fault(void)
{
    struct metrics metrics = contact(0.05, 0, ahead, 8);
    EXPECT_INT(metrics.collision_kind, COLLISION_STOPPED_EGO);
    EXPECT(!metrics.at_fault);
    /* Also when the other stands too: the first rule decides. */
    EXPECT_INT(contact(0, 0, ahead, 0).collision_kind, COLLISION_STOPPED_EGO);
    EXPECT_INT(contact(0.051, 0, ahead, 0).collision_kind, COLLISION_STOPPED_TRACK);
}

static void hitting_a_stopped_track_is_at_fault_wherever_it_is(void)
{
    const struct pose places[] = {ahead, behind, beside};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct metrics metrics = contact(5, 0, places[i], -0.05);
        EXPECT_INT(metrics.collision_kind, COLLISION_STOPPED_TRACK);
        EXPECT(metrics.at_fault);
        EXPECT(contact(5, 0, places[i], 0.051).collision_kind != COLLISION_STOPPED_TRACK);
    }
}

static void being_rear_ended_is_not_at_fault(void)
{
    struct metrics metrics = contact(5, 0, behind, 12);
    EXPECT_INT(metrics.collision_kind, COLLISION_REAR);
    EXPECT(!metrics.at_fault);
    EXPECT(!contact(5, 1.75, behind, 12).at_fault); /* not in several lanes either */
}

static void rear_begins_at_150_degrees_from_the_rear_axle(void)
{
    for (int side = -1; side <= 1; side += 2) {
        for (int inside = 0; inside <= 1; inside++) {
            double bearing = (inside ? 150.5 : 149.5) * PI_RAD / 180;
            struct pose agent = {-REAR_AXLE_M + 3 * cos(bearing), side * 3 * sin(bearing), 0};
            EXPECT_INT(contact(5, 0, agent, 5).collision_kind,
                       inside ? COLLISION_REAR : COLLISION_LATERAL);
        }
    }
}

static void hitting_with_the_front_edge_is_at_fault(void)
{
    struct metrics metrics = contact(10, 0, ahead, 4);
    EXPECT_INT(metrics.collision_kind, COLLISION_FRONT);
    EXPECT(metrics.at_fault);
    /* A car crossing right in front, and one oncoming. */
    EXPECT_INT(contact(10, 0, (struct pose){3, 2.5, PI_RAD / 2}, 4).collision_kind,
               COLLISION_FRONT);
    EXPECT(contact(10, 0, (struct pose){4.4, 0.5, PI_RAD}, 4).at_fault);
}

static void front_edge_is_told_from_the_side(void)
{
    /* Alongside, the other's nose 1 cm short of ego's front edge, then 1 cm past it. */
    double nose_m = EGO_LENGTH_M / 2 - CAR_LENGTH_M / 2;
    struct pose short_of = {nose_m - 0.01, 1.8, 0};
    struct pose past = {nose_m + 0.01, 1.8, 0};
    EXPECT_INT(contact(10, 0, short_of, 4).collision_kind, COLLISION_LATERAL);
    EXPECT_INT(contact(10, 0, past, 4).collision_kind, COLLISION_FRONT);
    /* Deep inside, its centre just ahead of ego's rear axle: neither rear nor front. */
    EXPECT_INT(contact(10, 0, (struct pose){-0.9, 0.1, 0}, 4).collision_kind, COLLISION_LATERAL);
}

static void a_reversing_car_is_not_a_stopped_one(void)
{
    EXPECT_INT(contact(10, 0, ahead, -4).collision_kind, COLLISION_FRONT);
    EXPECT_INT(contact(10, 0, beside, -4).collision_kind, COLLISION_LATERAL);
}

static void lateral_contact_is_at_fault_only_across_lanes(void)
{
    struct metrics inside = contact(10, 0, beside, 4);
    EXPECT_INT(inside.collision_kind, COLLISION_LATERAL);
    EXPECT(!inside.at_fault);
    /* Ego is 1.9 m wide in a lane of 3.5 m: its side leaves the lane from 0.8 m on. */
    EXPECT(!contact(10, 0.79, beside, 4).at_fault);
    EXPECT(contact(10, 0.81, beside, 4).at_fault);
    EXPECT(contact(10, 1.75, beside, 4).at_fault);
    EXPECT(!contact(10, 3.5, beside, 4).at_fault);      /* fully in the next one */
    EXPECT(contact(10, 3.5 + 1.0, beside, 4).at_fault); /* a wheel off the road */
}

/* Ego turned in its lane so that a single corner is in the next one. */
static void one_corner_across_the_line_is_several_lanes(void)
{
    for (int side = -1; side <= 1; side += 2) {
        for (int front = -1; front <= 1; front += 2) {
            for (int across = 0; across <= 1; across++) {
                /* That corner is 0.5 + 2.3 sin 0.15 + 0.95 cos 0.15 = 1.78 m off centre. */
                double offset_m = across ? 0.5 : 0.45;
                struct stand rig;
                struct pose ego = {100, 3.5 + side * offset_m, side * front * 0.15};
                rig_motorway(&rig, 3, ego, 10, 1, 10);
                rig_start(&rig);
                rig_agent(&rig, 0, (struct pose){99.7, ego.y_m + side * 1.8, 0}, 4);
                rig_tick(&rig);
                EXPECT_INT(rig_metrics(&rig)->collision_kind, COLLISION_LATERAL);
                EXPECT_INT(rig.metrics.at_fault, across);
                rig_finish(&rig);
            }
        }
    }
}

/* nuPlan's lanes are driving lanes: on the shoulder ego is in none. */
static void the_shoulder_is_not_a_lane(void)
{
    for (enum lane_kind kind = LANE_DRIVING; kind <= LANE_CYCLE; kind++) {
        struct stand rig;
        rig_motorway(&rig, 3, (struct pose){100, 0, 0}, 10, 1, 10);
        rig.scenario.map.lanes[0].kind = kind;
        rig_start(&rig);
        rig_agent(&rig, 0, (struct pose){99.7, 1.8, 0}, 4);
        rig_tick(&rig);
        EXPECT_INT(rig_metrics(&rig)->at_fault, kind != LANE_DRIVING);
        EXPECT_NEAR(rig.metrics.drivable_area, 1, 0);
        rig_finish(&rig);
    }
}

/* Two lanes in a row: passing from one to the next is one lane if the map links them. */
static void successive_lanes_count_as_one(void)
{
    for (int linked = 0; linked <= 1; linked++) {
        struct stand rig;
        rig_init(&rig);
        struct lane *lanes = maps_lanes(&rig.arena, &rig.scenario.map, 2);
        maps_straight(&rig.arena, &lanes[0], (struct pose){0, 0, 0}, 100, 3.5);
        maps_straight(&rig.arena, &lanes[1], (struct pose){100, 0, 0}, 100, 3.5);
        if (linked) {
            maps_successor(&rig.arena, &lanes[0], 1);
        }
        rig_scenario(&rig, (struct pose){100.3, 0, 0}, 10, 1, 5);
        rig_start(&rig);
        rig_agent(&rig, 0, (struct pose){100, 1.8, 0}, 4);
        rig_tick(&rig);
        EXPECT_INT(rig_metrics(&rig)->collision_kind, COLLISION_LATERAL);
        EXPECT_INT(rig.metrics.at_fault, !linked);
        rig_finish(&rig);
    }
}

static void each_agent_counts_once(void)
{
    struct stand rig;
    rig_motorway(&rig, 3, (struct pose){100, 3.5, 0}, 10, 3, 20);
    rig_start(&rig);
    rig_agent(&rig, 1, (struct pose){104.4, 3.5, 0}, 9); /* overlaps for all ticks */
    rig_agent(&rig, 2, (struct pose){95.6, 3.5, 0}, 11);
    rig.scene.agents[2].present = false;
    rig.scene.tick = 0;
    for (uint32_t i = 0; i < 10; i++) {
        rig.scene.agents[2].present = i >= 4 && i != 6; /* appears, vanishes, comes back */
        rig_tick(&rig);
        EXPECT_INT(rig_metrics(&rig)->collision_count, i < 4 ? 1 : 2);
    }
    EXPECT_INT(rig.metrics.collision_tick, 0);
    EXPECT_INT(rig.metrics.collision_agent, 1);
    EXPECT_INT(rig.metrics.collision_kind, COLLISION_FRONT);
    EXPECT(rig.metrics.at_fault); /* the later rear contact does not take it back */
    rig_finish(&rig);
}

static void class_is_that_of_the_first_tick(void)
{
    struct stand rig;
    rig_motorway(&rig, 3, (struct pose){100, 3.5, 0}, 10, 1, 20);
    rig_start(&rig);
    rig_agent(&rig, 0, (struct pose){104.56, 3.5, 0}, 8); /* 1 cm apart */
    rig_drive(&rig, 5);
    EXPECT_INT(rig_metrics(&rig)->collision_kind, COLLISION_FRONT);
    EXPECT_INT(rig.metrics.collision_tick, 1);
    rig.scene.ego.speed_mps = 0; /* ego stops, still in contact */
    rig_drive(&rig, 5);
    EXPECT_INT(rig_metrics(&rig)->collision_kind, COLLISION_FRONT);
    EXPECT(rig.metrics.at_fault);
    rig_finish(&rig);
}

static void impact_speed_is_relative(void)
{
    EXPECT_NEAR(contact(10, 0, (struct pose){4.4, 0, PI_RAD}, 5).impact_speed_mps, 15, 1e-9);
    EXPECT_NEAR(contact(10, 0, ahead, 4).impact_speed_mps, 6, 1e-9);
    EXPECT_NEAR(contact(10, 0, ahead, -4).impact_speed_mps, 14, 1e-9); /* reversing */
    struct pose crossing = {3, 2.5, -PI_RAD / 2};
    EXPECT_NEAR(contact(8, 0, crossing, 6).impact_speed_mps, 10, 1e-9);
}

/* The metric is that of the first contact, the criterion looks at all of them. */
static void every_impact_is_judged(void)
{
    for (int limit_mps = 5; limit_mps <= 9; limit_mps += 2) {
        struct stand rig;
        rig_motorway(&rig, 3, (struct pose){100, 3.5, 0}, 10, 3, 10);
        rig.scenario.criteria.no_at_fault_collision = false;
        rig.scenario.criteria.impact_speed_max_mps = limit_mps;
        rig_start(&rig);
        rig_agent(&rig, 0, (struct pose){104.4, 3.5, 0}, 6);
        rig_tick(&rig);
        rig_agent(&rig, 1, (struct pose){95.6, 3.5, 0}, 18);
        rig_agent(&rig, 2, (struct pose){99.7, 5.3, 0}, 7);
        rig_tick(&rig);
        EXPECT_NEAR(rig_metrics(&rig)->impact_speed_mps, 4, 1e-9);
        EXPECT_INT(rig.metrics.collision_count, 3);
        EXPECT_INT(rig.reasons, limit_mps < 8 ? REASON_IMPACT_SPEED : 0);
        rig_finish(&rig);
    }
}

static void clearance_is_the_smallest_ever(void)
{
    struct stand rig;
    rig_motorway(&rig, 3, (struct pose){100, 3.5, 0}, 10, 4, 50);
    rig_start(&rig);
    rig_tick(&rig);
    EXPECT(isinf(rig_metrics(&rig)->min_distance_m));
    rig_agent(&rig, 0, (struct pose){130, 7, 0}, 0); /* passed at 3.5 - (1.9 + 1.8) / 2 */
    rig_agent(&rig, 1, (struct pose){300, 3.5, 0}, 0);
    rig_agent(&rig, 2, (struct pose){100, 60, 0}, 0);
    rig_drive(&rig, 45);
    EXPECT_NEAR(rig_metrics(&rig)->min_distance_m, 1.65, 1e-12);
    EXPECT_INT(rig.metrics.collision_count, 0);
    rig_finish(&rig);
}

/* Skipping far agents must never change the clearance: compare with all distances. */
static void clearance_agrees_with_all_pairs(void)
{
    for (uint32_t round = 0; round < 50; round++) {
        struct stand rig;
        double expected_m = INFINITY;
        rig_motorway(&rig, 3, (struct pose){100, 3.5, 0}, 0, 20, 20);
        rig_start(&rig);
        for (uint32_t tick = 0; tick < 20; tick++) {
            struct box ego = box_make(rig.scene.ego.pose, EGO_LENGTH_M, EGO_WIDTH_M);
            for (uint32_t i = 0; i < 20; i++) {
                double draw[3];
                for (uint32_t k = 0; k < 3; k++) {
                    draw[k] = rng_uniform(round, RNG_STREAM_TEST, tick, 3 * i + k) - 0.5;
                }
                struct pose pose = {100 + 200 * draw[0], 200 * draw[1], 6 * draw[2]};
                struct box box = box_make(pose, CAR_LENGTH_M, CAR_WIDTH_M);
                rig_agent(&rig, i, pose, 3);
                expected_m = fmin(expected_m, box_distance_m(&ego, &box));
            }
            rig_tick(&rig);
        }
        EXPECT_NEAR(rig_metrics(&rig)->min_distance_m, expected_m, 0);
        EXPECT_INT(rig.metrics.collision_count > 0, expected_m == 0);
        rig_finish(&rig);
    }
}

static void rollout_ends_at_contact_with_road_users_only(void)
{
    for (enum agent_kind kind = 0; kind < AGENT_KIND_COUNT; kind++) {
        struct stand rig;
        rig_motorway(&rig, 3, (struct pose){100, 3.5, 0}, 10, 1, 5);
        rig.scenario.agents[0].kind = kind;
        rig_start(&rig);
        rig_agent(&rig, 0, (struct pose){110, 3.5, 0}, 0);
        rig_tick(&rig);
        EXPECT(!score_ended(rig.score));
        rig_agent(&rig, 0, (struct pose){104.4, 3.5, 0}, 0);
        rig_tick(&rig);
        EXPECT_INT(score_ended(rig.score), kind != AGENT_OBJECT);
        EXPECT_INT(rig_metrics(&rig)->collision_count, 1);
        rig_finish(&rig);
    }
}

int main(void)
{
    return TEST_RUN(
        TEST(no_contact_is_no_collision), TEST(stopped_ego_is_never_at_fault),
        TEST(hitting_a_stopped_track_is_at_fault_wherever_it_is),
        TEST(being_rear_ended_is_not_at_fault), TEST(rear_begins_at_150_degrees_from_the_rear_axle),
        TEST(hitting_with_the_front_edge_is_at_fault), TEST(front_edge_is_told_from_the_side),
        TEST(a_reversing_car_is_not_a_stopped_one),
        TEST(one_corner_across_the_line_is_several_lanes), TEST(the_shoulder_is_not_a_lane),
        TEST(every_impact_is_judged), TEST(lateral_contact_is_at_fault_only_across_lanes),
        TEST(successive_lanes_count_as_one), TEST(each_agent_counts_once),
        TEST(class_is_that_of_the_first_tick), TEST(impact_speed_is_relative),
        TEST(clearance_is_the_smallest_ever), TEST(clearance_agrees_with_all_pairs),
        TEST(rollout_ends_at_contact_with_road_users_only));
}
