/*
 * Scoring as a whole: drivable area, direction, speed limit, progress, composition, verdict by
 * criteria on hand-computed rollouts; then the properties that make scores comparable: a forked
 * score equals one that saw everything, and moving the world rigidly changes nothing.
 */
#include "base/rng.h"
#include "tests/worker/rig.h"

static bool same(double a, double b, double tolerance)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance;
}

#define EXPECT_SAME(member)                                                           \
    do {                                                                              \
        if (!same(a->member, b->member, tolerance)) {                                 \
            TEST_FAIL("%s: %.17g differs from %.17g", #member, a->member, b->member); \
        }                                                                             \
    } while (0)

static void expect_same_metrics(const struct metrics *a, const struct metrics *b, double tolerance)
{
    EXPECT_SAME(no_at_fault_collision);
    EXPECT_SAME(drivable_area);
    EXPECT_SAME(driving_direction);
    EXPECT_SAME(lane_keeping);
    EXPECT_SAME(traffic_light);
    EXPECT_SAME(making_progress);
    EXPECT_SAME(progress);
    EXPECT_SAME(ttc);
    EXPECT_SAME(speed_limit);
    EXPECT_SAME(comfort);
    EXPECT_SAME(score);
    EXPECT_SAME(min_ttc_s);
    EXPECT_SAME(min_distance_m);
    EXPECT_SAME(impact_speed_mps);
    EXPECT_SAME(progress_m);
    EXPECT_SAME(distance_m);
    EXPECT_SAME(speed_max_mps);
    EXPECT_SAME(accel_min_mps2);
    EXPECT_SAME(jerk_max_mps3);
    EXPECT_INT(a->intervention_count, b->intervention_count);
    EXPECT_INT(a->collision_count, b->collision_count);
    EXPECT_INT(a->collision_tick, b->collision_tick);
    EXPECT_INT(a->collision_agent, b->collision_agent);
    EXPECT_INT(a->collision_kind, b->collision_kind);
    EXPECT_INT(a->at_fault, b->at_fault);
    EXPECT_INT(a->goal_reached, b->goal_reached);
}

/* ---- drivable area ---- */

static void corners_may_be_up_to_0_3_m_outside(void)
{
    const struct {
        double outside_m;
        double expected;
    } cases[] = {{-0.5, 1}, {0.29, 1}, {0.31, 0}, {2, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct stand rig;
        /* The right edge of the road is y = -1.75; ego's right side is 0.95 m from its centre. */
        double y_m = -1.75 + EGO_WIDTH_M / 2 - cases[i].outside_m;
        rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 0, 0, 10);
        rig_start(&rig);
        rig_tick(&rig);
        rig.scene.ego.pose.y_m = y_m;
        rig_tick(&rig);
        rig.scene.ego.pose.y_m = 0; /* coming back does not undo it */
        rig_tick(&rig);
        EXPECT_NEAR(rig_metrics(&rig)->drivable_area, cases[i].expected, 0);
        EXPECT_INT((rig.reasons & REASON_OFF_DRIVABLE) != 0, cases[i].expected == 0);
        rig_finish(&rig);
    }
}

static void each_corner_counts(void)
{
    /* Turned by 30 degrees near the right edge, one front or rear corner is outside. */
    for (int side = -1; side <= 1; side += 2) {
        struct stand rig;
        rig_motorway(&rig, 2, (struct pose){100, -0.2, side * PI_RAD / 6}, 0, 0, 10);
        rig_start(&rig);
        rig_tick(&rig);
        EXPECT_NEAR(rig_metrics(&rig)->drivable_area, 0, 0);
        rig_finish(&rig);
    }
}

/* ---- driving direction ---- */

/* Ego heads west on an eastbound lane for `ticks` at a speed, then stands. */
static double wrong_way(double speed_mps, uint32_t ticks)
{
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){500, 0, PI_RAD}, speed_mps, 0, 100);
    rig_start(&rig);
    rig_drive(&rig, ticks);
    rig.scene.ego.speed_mps = 0;
    rig_drive(&rig, 20);
    double direction = rig_metrics(&rig)->driving_direction;
    EXPECT_INT((rig.reasons & REASON_WRONG_DIRECTION) != 0, direction == 0);
    rig_finish(&rig);
    return direction;
}

static void wrong_way_is_metres_within_one_second(void)
{
    EXPECT_NEAR(wrong_way(1.99, 50), 1, 0); /* ten metres in all, but never 2 m within 1 s */
    EXPECT_NEAR(wrong_way(2.01, 50), 0.5, 0);
    EXPECT_NEAR(wrong_way(5.99, 50), 0.5, 0);
    EXPECT_NEAR(wrong_way(6.01, 50), 0, 0);
    EXPECT_NEAR(wrong_way(19, 1), 1, 0); /* 1.9 m */
    EXPECT_NEAR(wrong_way(19, 2), 0.5, 0);
    EXPECT_NEAR(wrong_way(19, 4), 0, 0);
}

/* ---- lane keeping ---- */

/* Ego drives beside the middle of its lane for so many ticks, before and after in it. */
static double beside_the_middle(double offset_m, uint32_t ticks, bool junction)
{
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 10, 0, 100);
    for (uint32_t i = 0; i < rig.scenario.map.lane_count; i++) {
        rig.scenario.map.lanes[i].intersection = junction;
    }
    rig_start(&rig);
    rig_drive(&rig, 10);
    rig.scene.ego.pose.y_m += offset_m;
    rig_drive(&rig, ticks);
    rig.scene.ego.pose.y_m -= offset_m;
    rig_drive(&rig, 10);
    double keeping = rig_metrics(&rig)->lane_keeping;
    rig_finish(&rig);
    return keeping;
}

static void lanes_are_kept_but_for_two_seconds(void)
{
    for (int side = -1; side <= 1; side += 2) {
        EXPECT_NEAR(beside_the_middle(0.49 * side, 80, false), 1, 0);
        EXPECT_NEAR(beside_the_middle(0.51 * side, 19, false), 1, 0);
        EXPECT_NEAR(beside_the_middle(0.51 * side, 20, false), 0, 0);
        EXPECT_NEAR(beside_the_middle(0.51 * side, 80, true), 1, 0);
    }
}

static void right_way_and_no_lane_are_compliant(void)
{
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 25, 0, 100);
    rig_start(&rig);
    rig_drive(&rig, 50);
    EXPECT_NEAR(rig_metrics(&rig)->driving_direction, 1, 0);
    rig.scene.ego.pose = (struct pose){500, 40, PI_RAD}; /* a field */
    rig_drive(&rig, 40);
    EXPECT_NEAR(rig_metrics(&rig)->driving_direction, 1, 0);
    rig_finish(&rig);
}

static void direction_holds_on_shoulders_but_not_on_cycle_lanes(void)
{
    for (enum lane_kind kind = LANE_DRIVING; kind < LANE_KIND_COUNT; kind++) {
        struct stand rig;
        rig_motorway(&rig, 2, (struct pose){500, 0, PI_RAD}, 10, 0, 100);
        rig.scenario.map.lanes[0].kind = kind;
        rig_start(&rig);
        rig_drive(&rig, 30);
        EXPECT_NEAR(rig_metrics(&rig)->driving_direction, kind > LANE_SHOULDER, 0);
        rig_finish(&rig);
    }
}

/* ---- speed limit ---- */

/* 41 ticks = 4 s at a speed; the motorway's limit is 30 m/s. */
static double speed_limit_metric(double speed_mps, double limit_mps)
{
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){100, 0, 0}, speed_mps, 0, 100);
    rig.scenario.map.lanes[0].speed_limit_mps = limit_mps;
    rig_start(&rig);
    rig_drive(&rig, 41);
    double metric = rig_metrics(&rig)->speed_limit;
    rig_finish(&rig);
    return metric;
}

static void overspeed_is_averaged_over_the_rollout(void)
{
    EXPECT_NEAR(speed_limit_metric(30, 30), 1, 0);
    EXPECT_NEAR(speed_limit_metric(31, 30), 1 - 41 * 1.0 * 0.1 / (2.23 * 4.0), 1e-12);
    EXPECT_NEAR(speed_limit_metric(33, 30), 0, 0);
    EXPECT_NEAR(speed_limit_metric(60, 0), 1, 0); /* none posted */
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 32, 0, 100);
    rig_start(&rig);
    rig_drive(&rig, 10); /* 10 samples 2 m/s over, 31 below */
    rig.scene.ego.speed_mps = 20;
    rig_drive(&rig, 31);
    EXPECT_NEAR(rig_metrics(&rig)->speed_limit, 1 - 10 * 2.0 * 0.1 / (2.23 * 4.0), 1e-12);
    rig_finish(&rig);
}

/* nuPlan's: the highest of those before and after, whatever the junction lane itself says; none
 * where one of them says nothing. Ego drives 15 m/s: 1 too fast where the limit is 14. */
static void a_junctions_limit_is_that_of_its_neighbours(void)
{
    const struct {
        bool junction;
        double own_mps, before_mps, after_mps;
        double over_mps;
    } cases[] = {
        {false, 0, 12, 14, 0}, {false, 10, 12, 14, 5}, {true, 0, 12, 14, 1}, {true, 0, 14, 12, 1},
        {true, 10, 12, 14, 1}, {true, 30, 12, 14, 1},  {true, 0, 0, 14, 0},  {true, 0, 14, 0, 0},
    };
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        struct stand rig;
        rig_init(&rig);
        struct lane *lanes = maps_lanes(&rig.arena, &rig.scenario.map, 4);
        maps_straight(&rig.arena, &lanes[0], (struct pose){0, 0, 0}, 500, 3.5);
        maps_straight(&rig.arena, &lanes[1], (struct pose){500, 0, 0}, 100, 3.5);
        maps_straight(&rig.arena, &lanes[2], (struct pose){500, 0, 0.5}, 100, 3.5);
        maps_straight(&rig.arena, &lanes[3], (struct pose){-100, 0, 0}, 100, 3.5);
        maps_successor(&rig.arena, &lanes[0], 1);
        maps_successor(&rig.arena, &lanes[0], 2);
        maps_successor(&rig.arena, &lanes[3], 0);
        lanes[0].speed_limit_mps = cases[k].own_mps;
        lanes[0].intersection = cases[k].junction;
        lanes[1].speed_limit_mps = 10;
        lanes[2].speed_limit_mps = cases[k].after_mps;
        lanes[3].speed_limit_mps = cases[k].before_mps;
        rig_scenario(&rig, (struct pose){100, 0, 0}, 15, 0, 50);
        rig_start(&rig);
        rig_drive(&rig, 5);
        EXPECT_NEAR(rig_metrics(&rig)->speed_limit,
                    dmath_max(0.0, 1 - 5 * cases[k].over_mps * 0.1 / (2.23 * 0.4)), 1e-12);
        rig_finish(&rig);
    }
}

/* ---- progress ---- */

/* Drives 50 m along the route of 1,000 m; what is expected is set up by the caller's scenario. */
static double progress_of(struct stand *rig)
{
    rig_start(rig);
    rig_drive(rig, 51);
    EXPECT_NEAR(rig_metrics(rig)->progress_m, 50, 1e-6);
    EXPECT_NEAR(rig->metrics.distance_m, 50, 1e-9);
    double progress = rig->metrics.progress;
    rig_finish(rig);
    return progress;
}

static void open_straight(struct stand *rig, double speed_mps, uint32_t horizon_ticks)
{
    rig_motorway(rig, 2, (struct pose){100, 0, 0}, speed_mps, 0, horizon_ticks);
    rig->scene.ego.speed_mps = 10;
}

static void expected_progress_comes_from_figure_log_or_free_flow(void)
{
    struct stand rig;
    struct trajectory_point log[] = {
        {0, 100, 0, 0, 10}, {4, 140, 0, 0, 10}, {20, 300, 0, 0, 10}, {30, 900, 0, 0, 0}};

    open_straight(&rig, 10, 100);
    rig.scenario.criteria.expected_progress_m = 200;
    rig.scenario.ego.log = (struct trajectory){4, log};
    EXPECT_NEAR(progress_of(&rig), 50.0 / 200, 1e-6); /* the figure wins */

    open_straight(&rig, 10, 80);
    rig.scenario.ego.log = (struct trajectory){4, log};
    EXPECT_NEAR(progress_of(&rig), 50.0 / 80, 1e-6); /* log at 8 s, interpolated */

    open_straight(&rig, 10, 600);
    rig.scenario.ego.log = (struct trajectory){2, log};
    EXPECT_NEAR(progress_of(&rig), 1, 0); /* the log ends after 40 m */

    open_straight(&rig, 10, 100);
    EXPECT_NEAR(progress_of(&rig), 50.0 / 100, 1e-6); /* initial speed for 10 s */

    open_straight(&rig, 45, 100);
    EXPECT_NEAR(progress_of(&rig), 50.0 / 300, 1e-6); /* not faster than the limit of 30 */

    open_straight(&rig, 10, 6000);
    EXPECT_NEAR(progress_of(&rig), 50.0 / 900, 1e-6); /* what is left of the route */

    open_straight(&rig, 10, 600);
    rig.scenario.ego.has_goal = true;
    rig.scenario.ego.goal = (struct vec2){350, 0};
    rig.scenario.ego.goal_radius_m = 5;
    EXPECT_NEAR(progress_of(&rig), 50.0 / 250, 1e-6); /* up to the goal */

    open_straight(&rig, 0, 100); /* standing start: 1 m/s2 for 10 s */
    EXPECT_NEAR(progress_of(&rig), 50.0 / 50, 1e-6);
    open_straight(&rig, 0, 400); /* .. up to the limit: 450 m in 30 s, then 300 m in 10 s */
    EXPECT_NEAR(progress_of(&rig), 50.0 / 750, 1e-6);
}

/* Ego drives back and forth; expected_m is given. */
static const struct metrics *progress_case(struct stand *rig, double moved_m, double expected_m)
{
    rig_motorway(rig, 2, (struct pose){100, 0, 0}, 0, 0, 10);
    rig->scenario.criteria.expected_progress_m = expected_m;
    rig_start(rig);
    rig_tick(rig);
    rig->scene.ego.pose.x_m += moved_m;
    rig_tick(rig);
    const struct metrics *metrics = rig_metrics(rig);
    rig_finish(rig);
    return metrics;
}

static void progress_ratio_has_a_floor_and_a_ceiling(void)
{
    struct stand rig;
    EXPECT_NEAR(progress_case(&rig, 50, 40)->progress, 1, 0);
    EXPECT_NEAR(progress_case(&rig, 0, 0)->progress, 1, 0); /* nothing expected, nothing done */
    EXPECT_NEAR(progress_case(&rig, -0.09, 0)->progress, 1, 0);
    EXPECT_NEAR(progress_case(&rig, -0.11, 0)->progress, 0, 0);
    EXPECT_NEAR(progress_case(&rig, 0, 10)->progress, 0.01, 1e-12);
    EXPECT_NEAR(progress_case(&rig, -5, 10)->progress, 0, 0);
    EXPECT_NEAR(progress_case(&rig, 19.9, 100)->making_progress, 0, 0);
    EXPECT_NEAR(progress_case(&rig, 20.1, 100)->making_progress, 1, 0);
}

/* All that a goal asks for must hold at one tick: ego passes an area at 10 m/s between 2.5 and
 * 3.5 s. */
static void a_goal_is_a_whole_state(void)
{
    static struct vec2 area[4] = {{125, -1}, {135, -1}, {135, 1}, {125, 1}};
    const struct {
        struct goal_bounds bounds;
        bool reached;
    } cases[] = {
        {{NAN, NAN, NAN, NAN, NAN, NAN}, true},
        {{3.0, 3.2, NAN, NAN, NAN, NAN}, true},
        {{3.6, NAN, NAN, NAN, NAN, NAN}, false}, /* gone by then */
        {{NAN, 2.4, NAN, NAN, NAN, NAN}, false}, /* not yet there */
        {{NAN, NAN, 9.0, 11.0, NAN, NAN}, true},
        {{NAN, NAN, NAN, 9.9, NAN, NAN}, false},
        {{NAN, NAN, 10.1, NAN, NAN, NAN}, false},
        {{NAN, NAN, NAN, NAN, -0.1, 0.1}, true},
        {{NAN, NAN, NAN, NAN, 2 * PI_RAD - 0.1, 2 * PI_RAD}, true},
        {{NAN, NAN, NAN, NAN, 0.1, 1.0}, false},
        {{NAN, NAN, NAN, NAN, -4.0, 2.4}, true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct stand rig;
        rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 10, 0, 100);
        rig.scenario.ego.has_goal = true;
        rig.scenario.ego.goal = (struct vec2){130, 0};
        rig.scenario.ego.goal_radius_m = 20;
        rig.scenario.ego.goal_area = (struct polygon){4, area};
        rig.scenario.ego.goal_bounds = cases[i].bounds;
        rig.scenario.criteria.reach_goal = true;
        rig_start(&rig);
        rig_drive(&rig, 24); /* in the circle, which the area replaces */
        EXPECT(!rig_metrics(&rig)->goal_reached);
        rig_drive(&rig, 40);
        EXPECT_INT(rig_metrics(&rig)->goal_reached, cases[i].reached);
        rig_finish(&rig);
    }
}

/* Who is run into from behind did not fail to reach what lay ahead; who has driven badly before
 * that did. */
static void a_contact_without_fault_is_no_failure_to_arrive(void)
{
    for (int k = 0; k < 2; k++) {
        struct stand rig;
        rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 5, 1, 100);
        rig.scenario.ego.has_goal = true;
        rig.scenario.ego.goal = (struct vec2){200, 0};
        rig.scenario.ego.goal_radius_m = 5;
        rig.scenario.criteria.reach_goal = true;
        rig.scenario.criteria.progress_min = 0.9;
        rig.scenario.criteria.speed_max_mps = k == 0 ? 30 : 4;
        rig_start(&rig);
        rig_agent(&rig, 0, (struct pose){80, 0, 0}, 20);
        rig_drive(&rig, 12);
        rig_metrics(&rig);
        EXPECT(score_ended(rig.score) && !rig.metrics.at_fault);
        EXPECT((rig.reasons & REASON_GOAL_NOT_REACHED) != 0);
        EXPECT_INT(score_cut_short(rig.score, rig.reasons), k == 0);
        rig_finish(&rig);
    }
}

static void goal_is_reached_once_inside_its_radius(void)
{
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 10, 0, 100);
    rig.scenario.ego.has_goal = true;
    rig.scenario.ego.goal = (struct vec2){130, 1};
    rig.scenario.ego.goal_radius_m = 3;
    rig.scenario.criteria.reach_goal = true;
    rig_start(&rig);
    rig_drive(&rig, 28); /* last scored at x = 127: sqrt(9 + 1) > 3 */
    EXPECT(!rig_metrics(&rig)->goal_reached);
    EXPECT_INT(rig.reasons & REASON_GOAL_NOT_REACHED, REASON_GOAL_NOT_REACHED);
    rig_drive(&rig, 20); /* through and past */
    EXPECT(rig_metrics(&rig)->goal_reached);
    EXPECT_INT(rig.reasons, 0);
    rig_finish(&rig);

    rig_motorway(&rig, 2, (struct pose){980, 0, 0}, 10, 0, 100); /* no goal: the route's end */
    rig_start(&rig);
    rig_drive(&rig, 20);
    EXPECT(!rig_metrics(&rig)->goal_reached);
    rig_drive(&rig, 2);
    EXPECT(rig_metrics(&rig)->goal_reached);
    rig_finish(&rig);
}

/* ---- composition ---- */

static void score_is_gates_times_weighted_mean(void)
{
    struct stand rig;
    /* 51 ticks at 31 m/s of 30 allowed, 155 m of 200 expected, a lead 0.9 s ahead at first, one
     * uncomfortable swing of yaw: 5 * 0.775 + 5 * 0 + 4 * L + 2 * 0. */
    rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 31, 1, 100);
    rig.scenario.criteria.expected_progress_m = 200;
    rig_start(&rig);
    rig_agent(&rig, 0, (struct pose){100 + 4.55 + 8.5, 0, 0}, 21);
    rig_tick(&rig);
    rig.scene.agents[0].present = false;
    rig_advance(&rig);
    for (int i = 0; i < 50; i++) {
        rig.scene.ego.lat_accel_mps2 = 6;
        rig_drive(&rig, 1);
    }
    const struct metrics *metrics = rig_metrics(&rig);
    double limit = 1 - 51 * 0.1 / (2.23 * 5.0);
    EXPECT_NEAR(metrics->ttc, 0, 0);
    EXPECT_NEAR(metrics->comfort, 0, 0);
    EXPECT_NEAR(metrics->progress, 0.775, 1e-9);
    EXPECT_NEAR(metrics->score, (5 * 0.775 + 4 * limit) / 16, 1e-9);
    EXPECT_INT(rig.verdict, VERDICT_PASS); /* none of these is a criterion here */
    rig_finish(&rig);

    /* A perfect drive. */
    rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 20, 0, 50);
    rig_start(&rig);
    rig_drive(&rig, 51);
    EXPECT_NEAR(rig_metrics(&rig)->score, 1, 1e-9);
    rig_finish(&rig);
}

static void each_gate_zeroes_the_score(void)
{
    for (int gate = 0; gate < 5; gate++) {
        struct stand rig;
        rig_motorway(&rig, 2, (struct pose){500, 0, 0}, 20, 1, 50);
        rig.scenario.criteria.expected_progress_m = 40;
        rig_start(&rig);
        if (gate == 1) {
            rig_agent(&rig, 0, (struct pose){540, 0, 0}, 0); /* driven into */
        } else if (gate == 2) {
            rig.scene.ego.pose.y_m = -2; /* off the road */
        } else if (gate == 3) {
            rig.scene.ego.speed_mps = 0.1; /* hardly moves */
        } else if (gate == 4) {
            rig.scene.ego.pose.heading_rad = PI_RAD; /* 4 m of wrong way within a second: half */
            rig_drive(&rig, 2);
            rig.scene.ego.pose.heading_rad = 0;
        }
        rig_drive(&rig, 40);
        rig_metrics(&rig);
        EXPECT_INT(rig.metrics.no_at_fault_collision == 0, gate == 1);
        EXPECT_INT(rig.metrics.drivable_area == 0, gate == 2);
        EXPECT_INT(rig.metrics.making_progress == 0, gate == 3);
        EXPECT_INT(rig.metrics.driving_direction == 0.5, gate == 4);
        EXPECT_INT(rig.metrics.score == 0, gate >= 1 && gate <= 3);
        if (gate == 4) {
            /* Turning about at once is not comfortable: half of 14 / 16. */
            EXPECT_NEAR(rig.metrics.score, 0.5 * 14 / 16, 1e-9);
        }
        rig_finish(&rig);
    }
}

/* ---- criteria ---- */

/* One rollout with known metrics: 20 m/s, 60 m of 100 expected, passes a parked car at 1.65 m,
 * follows at a TTC of 1.5 s for a tick, ends in the rear of a standing cyclist at 20 m/s. */
static void criteria_rollout(struct stand *rig, const struct criteria *criteria)
{
    rig_motorway(rig, 2, (struct pose){100, 0, 0}, 20, 3, 50);
    rig->scenario.criteria = *criteria;
    rig->scenario.criteria.expected_progress_m = 100;
    rig_start(rig);
    rig_agent(rig, 0, (struct pose){120, 3.5, 0}, 0);
    rig_drive(rig, 30);
    rig_agent(rig, 1, (struct pose){rig->scene.ego.pose.x_m + 4.55 + 14.5, 0, 0}, 10);
    rig_tick(rig);
    rig->scene.agents[1].present = false;
    rig_metrics(rig);
}

static struct criteria no_criteria(void)
{
    return (struct criteria){
        .min_ttc_s = NAN,
        .min_distance_m = NAN,
        .impact_speed_max_mps = NAN,
        .progress_min = NAN,
        .score_min = NAN,
        .speed_max_mps = NAN,
    };
}

static uint32_t reasons_for(const struct criteria *criteria)
{
    struct stand rig;
    criteria_rollout(&rig, criteria);
    EXPECT_INT(rig.verdict, rig.reasons == 0 ? VERDICT_PASS : VERDICT_FAIL);
    rig_finish(&rig);
    return rig.reasons;
}

static void absent_criteria_are_not_applied(void)
{
    struct criteria criteria = no_criteria();
    EXPECT_INT(reasons_for(&criteria), 0);
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){500, -20, PI_RAD}, 30, 1, 50);
    rig.scenario.criteria = criteria; /* everything goes wrong, and nothing was asked */
    rig.scenario.criteria.expected_progress_m = NAN;
    rig_start(&rig);
    rig_agent(&rig, 0, (struct pose){495, -20, 0}, 0);
    rig_drive(&rig, 20);
    EXPECT_NEAR(rig_metrics(&rig)->score, 0, 0);
    EXPECT_INT(rig.reasons, 0);
    EXPECT_INT(rig.verdict, VERDICT_PASS);
    rig_finish(&rig);
}

static void numeric_criteria_hold_just_inside_and_fail_just_outside(void)
{
    struct criteria criteria = no_criteria();
    const struct {
        double *number;
        double kept;
        double broken;
        uint32_t reason;
    } cases[] = {
        {&criteria.min_ttc_s, 1.499, 1.501, REASON_TTC},
        {&criteria.min_distance_m, 1.649, 1.651, REASON_DISTANCE},
        {&criteria.progress_min, 0.5999, 0.6001, REASON_PROGRESS},
        {&criteria.score_min, 0.8749, 0.8751, REASON_SCORE}, /* (5 * 0.6 + 5 + 4 + 2) / 16 */
        {&criteria.speed_max_mps, 20.001, 19.999, REASON_SPEED},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        *cases[i].number = cases[i].kept;
        EXPECT_INT(reasons_for(&criteria), 0);
        *cases[i].number = cases[i].broken;
        EXPECT_INT(reasons_for(&criteria), cases[i].reason);
        *cases[i].number = NAN;
    }
}

/* Ego at 10 m/s touches a car that moves at 4 m/s: relative 6 m/s, at fault by its front edge. */
static uint32_t contact_reasons(const struct criteria *criteria)
{
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 10, 1, 50);
    rig.scenario.criteria = *criteria;
    rig.scenario.criteria.expected_progress_m = 0;
    rig_start(&rig);
    rig_agent(&rig, 0, (struct pose){104.5, 0, 0}, 4);
    rig_tick(&rig);
    rig_metrics(&rig);
    rig_finish(&rig);
    return rig.reasons;
}

static void contact_criteria_are_told_apart(void)
{
    struct criteria criteria = no_criteria();
    criteria.no_at_fault_collision = true;
    EXPECT_INT(contact_reasons(&criteria), REASON_AT_FAULT_COLLISION);
    criteria.no_collision = true;
    EXPECT_INT(contact_reasons(&criteria), REASON_AT_FAULT_COLLISION | REASON_COLLISION);
    criteria.no_at_fault_collision = false;
    EXPECT_INT(contact_reasons(&criteria), REASON_COLLISION);
    criteria.no_collision = false;
    criteria.impact_speed_max_mps = 6.01;
    EXPECT_INT(contact_reasons(&criteria), 0);
    criteria.impact_speed_max_mps = 5.99;
    EXPECT_INT(contact_reasons(&criteria), REASON_IMPACT_SPEED);
    EXPECT_INT(reasons_for(&criteria), 0); /* no contact: nothing to exceed */
}

static void comfort_counts_only_when_asked(void)
{
    for (int asked = 0; asked <= 1; asked++) {
        struct stand rig;
        rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 10, 0, 50);
        rig.scenario.criteria.comfortable = asked;
        rig_start(&rig);
        rig.scene.ego.accel_mps2 = -8;
        rig_drive(&rig, 20);
        EXPECT_NEAR(rig_metrics(&rig)->comfort, 0, 0);
        EXPECT_INT(rig.reasons, asked ? REASON_UNCOMFORTABLE : 0);
        rig_finish(&rig);
    }
}

static void a_score_without_ticks_or_with_one_is_defined(void)
{
    struct stand rig;
    rig_motorway(&rig, 2, (struct pose){100, 0, 0}, 10, 0, 50);
    rig_start(&rig);
    const struct metrics *metrics = rig_metrics(&rig);
    EXPECT(isfinite(metrics->score) && metrics->distance_m == 0 && metrics->progress_m == 0);
    EXPECT(isnan(metrics->accel_min_mps2) && isinf(metrics->min_distance_m));
    rig_tick(&rig);
    metrics = rig_metrics(&rig);
    EXPECT_NEAR(metrics->comfort, 1, 0);
    EXPECT_NEAR(metrics->speed_limit, 1, 0);
    EXPECT_NEAR(metrics->speed_max_mps, 10, 0);
    EXPECT_INT(metrics->making_progress, 0);
    rig_finish(&rig);
}

/* ---- properties ---- */

enum { WORLD_AGENTS = 12, WORLD_TICKS = 60 };

static double draw(uint32_t seed, uint32_t tick, uint32_t element)
{
    return 2 * rng_uniform(seed, RNG_STREAM_TEST, tick, element) - 1;
}

/* One tick of an eventful random world: a wandering ego among cars. */
static void random_step(struct scene *scene, uint32_t seed, uint32_t tick)
{
    struct ego_state *ego = &scene->ego;
    ego->accel_mps2 = 3 * draw(seed, tick, 0);
    ego->lat_accel_mps2 = 2 * draw(seed, tick, 1);
    ego->yaw_rate_rps = 0.3 * draw(seed, tick, 2);
    ego->speed_mps = fmax(0, ego->speed_mps + 3 * draw(seed, tick, 3));
    ego->pose = rig_moved(ego->pose, ego->speed_mps * TICK_S);
    ego->pose.heading_rad = dmath_wrap_angle(ego->pose.heading_rad + ego->yaw_rate_rps * TICK_S);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        struct agent_state *agent = &scene->agents[i];
        if (tick == 0) {
            agent->pose = (struct pose){60 * draw(seed, i, 20) + 530, 6 * draw(seed, i, 21) + 3.5,
                                        3 * draw(seed, i, 22)};
            agent->speed_mps = 8 * draw(seed, i, 23);
        }
        agent->present = draw(seed, tick, 100 + i) > -0.9;
        agent->pose = rig_moved(agent->pose, agent->speed_mps * TICK_S);
    }
}

static void open_random(struct stand *rig)
{
    rig_motorway(rig, 3, (struct pose){500, 3.5, 0}, 12, WORLD_AGENTS, WORLD_TICKS);
    rig_start(rig);
}

/* Scores ticks [from, to) of the world: `seed` up to tick 30, `later` from there on. */
static void run_random(struct stand *rig, uint32_t seed, uint32_t later, uint32_t from, uint32_t to)
{
    for (uint32_t tick = from; tick < to; tick++) {
        random_step(&rig->scene, tick < 30 ? seed : later, tick);
        rig_tick(rig);
    }
}

static void a_fork_equals_a_score_that_saw_everything(void)
{
    for (uint32_t seed = 0; seed < 20; seed++) {
        struct stand trunk;
        struct stand whole;
        open_random(&trunk);
        run_random(&trunk, seed, seed, 0, 30);
        struct scene at_fork = trunk.scene;
        struct score *fork =
            score_init(malloc(score_bytes(WORLD_TICKS, WORLD_AGENTS)), trunk.prepared);
        score_copy(fork, trunk.score);
        /* The trunk goes on first, so that anything shared would show. */
        run_random(&trunk, seed, seed + 1000, 30, WORLD_TICKS);
        struct score *trunk_score = trunk.score;
        struct metrics trunk_metrics = *rig_metrics(&trunk);
        trunk.score = fork;
        trunk.scene = at_fork;
        run_random(&trunk, seed, seed + 2000, 30, WORLD_TICKS);
        struct metrics fork_metrics = *rig_metrics(&trunk);
        for (uint32_t which = 1; which <= 2; which++) {
            open_random(&whole);
            run_random(&whole, seed, seed + 1000 * which, 0, WORLD_TICKS);
            expect_same_metrics(which == 1 ? &trunk_metrics : &fork_metrics, rig_metrics(&whole),
                                0);
            rig_finish(&whole);
        }
        free(trunk_score);
        rig_finish(&trunk);
    }
}

static struct pose turned(struct pose pose, double turn_rad)
{
    double s = dmath_sin(turn_rad);
    double c = dmath_cos(turn_rad);
    return (struct pose){c * pose.x_m - s * pose.y_m + 1234, s * pose.x_m + c * pose.y_m - 777,
                         dmath_wrap_angle(pose.heading_rad + turn_rad)};
}

/* The rig's motorway turned and shifted as a whole. */
static void open_turned(struct stand *rig, double turn_rad)
{
    rig_init(rig);
    maps_motorway(&rig->arena, &rig->scenario.map, 3, 1000);
    for (uint32_t i = 0; i < 3; i++) {
        struct lane *lane = &rig->scenario.map.lanes[i];
        for (uint32_t k = 0; k < lane->point_count; k++) {
            struct pose moved = turned(
                (struct pose){lane->centre_line[k].x_m, lane->centre_line[k].y_m, 0}, turn_rad);
            lane->centre_line[k] = (struct vec2){moved.x_m, moved.y_m};
        }
    }
    rig_scenario(rig, turned((struct pose){500, 3.5, 0}, turn_rad), 12, WORLD_AGENTS, WORLD_TICKS);
    rig_start(rig);
}

static void moving_the_world_rigidly_changes_nothing(void)
{
    uint32_t collisions = 0;
    uint32_t interventions = 0;
    for (uint32_t seed = 0; seed < 40; seed++) {
        double turn_rad = 0.1 + seed;
        struct stand still;
        struct stand moved;
        open_random(&still);
        open_turned(&moved, turn_rad);
        for (uint32_t tick = 0; tick < WORLD_TICKS; tick++) {
            random_step(&still.scene, seed, tick);
            moved.scene = still.scene;
            moved.scene.ego.pose = turned(still.scene.ego.pose, turn_rad);
            for (uint32_t i = 0; i < WORLD_AGENTS; i++) {
                moved.scene.agents[i].pose = turned(still.scene.agents[i].pose, turn_rad);
            }
            rig_tick(&still);
            rig_tick(&moved);
            EXPECT_INT(score_guardian_active(still.score), score_guardian_active(moved.score));
        }
        expect_same_metrics(rig_metrics(&still), rig_metrics(&moved), 1e-6);
        EXPECT_INT(still.reasons, moved.reasons);
        EXPECT_INT(still.verdict, moved.verdict);
        collisions += still.metrics.collision_count;
        interventions += still.metrics.intervention_count;
        rig_finish(&still);
        rig_finish(&moved);
    }
    EXPECT(collisions > 20 && interventions > 20); /* the worlds were eventful */
}

int main(void)
{
    return TEST_RUN(TEST(corners_may_be_up_to_0_3_m_outside), TEST(each_corner_counts),
                    TEST(wrong_way_is_metres_within_one_second),
                    TEST(lanes_are_kept_but_for_two_seconds),
                    TEST(right_way_and_no_lane_are_compliant),
                    TEST(direction_holds_on_shoulders_but_not_on_cycle_lanes),
                    TEST(overspeed_is_averaged_over_the_rollout),
                    TEST(a_junctions_limit_is_that_of_its_neighbours),
                    TEST(expected_progress_comes_from_figure_log_or_free_flow),
                    TEST(progress_ratio_has_a_floor_and_a_ceiling),
                    TEST(goal_is_reached_once_inside_its_radius), TEST(a_goal_is_a_whole_state),
                    TEST(a_contact_without_fault_is_no_failure_to_arrive),
                    TEST(score_is_gates_times_weighted_mean), TEST(each_gate_zeroes_the_score),
                    TEST(absent_criteria_are_not_applied),
                    TEST(numeric_criteria_hold_just_inside_and_fail_just_outside),
                    TEST(contact_criteria_are_told_apart), TEST(comfort_counts_only_when_asked),
                    TEST(a_score_without_ticks_or_with_one_is_defined),
                    TEST(a_fork_equals_a_score_that_saw_everything),
                    TEST(moving_the_world_rigidly_changes_nothing));
}
