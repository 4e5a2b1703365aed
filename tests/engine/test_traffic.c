/*
 * Goal: agents move as their models say.
 * Method: scenarios on small maps run in the object world; closed forms where there are any (IDM
 * equilibrium), properties (no collisions, order, bounds) elsewhere.
 */
#include "base/dmath.h"
#include "base/rng.h"
#include "engine/traffic/roadmap.h"
#include "engine/traffic/traffic.h"
#include "engine/worlds/world.h"
#include "tests/engine/traffic_run.h"

static const struct manoeuvre brake = {.kind = MANOEUVRE_SPEED, .speed_mps = 0, .rate_mps2 = 5};

/* Two cars behind one that holds its speed settle at the equilibrium gap. */
static void idm_settles_at_the_equilibrium_gap(void)
{
    for (double speed = 5.0; speed <= 25.0; speed += 10.0) {
        struct run run;
        begin(&run);
        maps_motorway(&run.arena, &run.scenario.map, 1, 9000);
        maps_scenario(&run.arena, &run.scenario, (struct pose){10, 0, 0}, 0, 0, 3);
        maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){300, 0, 0}, speed);
        for (uint32_t i = 1; i < 3; i++) {
            struct agent *car = maps_agent(&run.scenario, i, AGENT_CAR, BEHAVIOUR_IDM,
                                           (struct pose){300 - 80.0 * i, 0, 0}, speed);
            car->idm.desired_speed_mps = 30.0;
        }
        start(&run, &world_object_ops, 0);
        for (int i = 0; i < 2500; i++) {
            tick(&run, -1.0);
        }
        double ratio = speed / 30.0;
        double expected = (2.0 + speed * 1.5) / sqrt(1.0 - ratio * ratio * ratio * ratio);
        for (uint32_t i = 1; i < 3; i++) {
            double gap = run.scene->agents[i - 1].pose.x_m - run.scene->agents[i].pose.x_m - 4.5;
            EXPECT_NEAR(gap, expected, 0.02 * expected);
            EXPECT_NEAR(run.scene->agents[i].speed_mps, speed, 0.05);
        }
        end(&run);
    }
}

/* A leader that brakes to a stop and leaves again, 15 followers, 60 s: nobody touches anybody. */
static void idm_platoon_never_collides(void)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct run run;
        begin(&run);
        maps_motorway(&run.arena, &run.scenario.map, 1, 3000);
        maps_scenario(&run.arena, &run.scenario, (struct pose){5, 0, 0}, 0, 0, 16);
        for (uint32_t i = 0; i < 16; i++) {
            maps_agent(&run.scenario, i, AGENT_CAR, i == 0 ? BEHAVIOUR_SCRIPT : BEHAVIOUR_IDM,
                       (struct pose){700 - 35.0 * i, 0, 0}, 20);
            run.scenario.agents[i].idm.desired_speed_mps = 25;
        }
        struct manoeuvre *m = script(&run, &run.scenario.agents[0], 2);
        m[0] = (struct manoeuvre){.trigger = {TRIGGER_TIME, 5},
                                  .kind = MANOEUVRE_SPEED,
                                  .speed_mps = 0,
                                  .rate_mps2 = 4 + (double)seed};
        m[1] = (struct manoeuvre){.trigger = {TRIGGER_AFTER, 10},
                                  .kind = MANOEUVRE_SPEED,
                                  .speed_mps = 20,
                                  .rate_mps2 = 2};
        start(&run, &world_object_ops, seed);
        double slowest[16] = {[1 ... 15] = 99};
        for (int i = 0; i < 600; i++) {
            tick(&run, 0.0);
            for (uint32_t k = 1; k < 16; k++) {
                const struct agent_state *a = &run.scene->agents[k];
                double gap = run.scene->agents[k - 1].pose.x_m - a->pose.x_m - 4.5;
                EXPECT(gap > 0.3);
                EXPECT(a->speed_mps >= 0.0 && a->accel_mps2 > -9.1);
                slowest[k] = fmin(slowest[k], a->speed_mps);
            }
        }
        EXPECT(slowest[1] < 0.5 && slowest[5] < 3.0); /* the jam reached the cars behind */
        EXPECT(run.scene->agents[4].speed_mps > 5.0); /* and they left again */
        end(&run);
    }
}

/* Dense traffic with lane changes around a truck: no overlaps, and some do change. */
static void mobil_overtakes_without_touching(void)
{
    struct run run;
    begin(&run);
    maps_motorway(&run.arena, &run.scenario.map, 3, 3000);
    maps_scenario(&run.arena, &run.scenario, (struct pose){5, 0, 0}, 15, 0, 14);
    for (uint32_t i = 0; i < 14; i++) {
        struct agent *car = maps_agent(&run.scenario, i, AGENT_CAR, BEHAVIOUR_IDM,
                                       (struct pose){60 + 25.0 * i, 3.5 * (i % 3), 0}, 20);
        car->idm.lane_changes = true;
        car->idm.desired_speed_mps = 18 + 2.0 * (i % 7);
    }
    run.scenario.agents[12].idm.desired_speed_mps = 12; /* the slow ones ahead */
    run.scenario.agents[13].idm.desired_speed_mps = 12;
    start(&run, &world_object_ops, 0);
    uint32_t changed = 0;
    for (int i = 0; i < 600; i++) {
        tick(&run, 0.0);
        for (uint32_t a = 0; a < 14; a++) {
            struct box box_a = body(&run, a);
            for (uint32_t b = a + 1; b < 14; b++) {
                struct box box_b = body(&run, b);
                EXPECT(!box_overlap(&box_a, &box_b));
            }
            changed += fabs(run.scene->agents[a].pose.y_m - 3.5 * (a % 3)) > 3.0;
        }
    }
    EXPECT(changed > 100);
    for (uint32_t a = 0; a < 14;
         a++) { /* everybody ends up in the middle of a lane or on the way */
        EXPECT(run.scene->agents[a].pose.y_m > -0.1 && run.scene->agents[a].pose.y_m < 7.1);
    }
    end(&run);
}

static void idm_stops_for_ego_pedestrian_and_debris(void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct run run;
        begin(&run);
        maps_motorway(&run.arena, &run.scenario.map, 1, 1000);
        maps_scenario(&run.arena, &run.scenario, (struct pose){kind == 0 ? 200 : 900, 0, 0}, 0, 0,
                      2);
        maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){50, 0, 0}, 15);
        maps_agent(&run.scenario, 1, kind == 1 ? AGENT_PEDESTRIAN : AGENT_OBJECT, BEHAVIOUR_STATIC,
                   (struct pose){kind == 0 ? 800 : 200, 0.5, 0}, 0);
        start(&run, &world_object_ops, 0);
        for (int i = 0; i < 300; i++) {
            tick(&run, -1.0);
        }
        double front = run.scene->agents[0].pose.x_m + 2.25;
        double rear = kind == 0 ? 200 - 2.3 : 200 - run.scenario.agents[1].length_m / 2;
        EXPECT(front < rear);
        EXPECT_NEAR(rear - front, 2.0, 0.7); /* the minimum gap */
        EXPECT(run.scene->agents[0].speed_mps < 0.1);
        end(&run);
    }
}

static void distracted_drivers_ignore_ego(void)
{
    struct run run;
    begin(&run);
    maps_motorway(&run.arena, &run.scenario.map, 1, 1000);
    maps_scenario(&run.arena, &run.scenario, (struct pose){200, 0, 0}, 0, 0, 1);
    maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){150, 0, 0}, 15)
        ->idm.sees_ego = false;
    start(&run, &world_object_ops, 0);
    for (int i = 0; i < 60; i++) {
        tick(&run, -1.0);
    }
    EXPECT_NEAR(run.scene->agents[0].pose.x_m, 150 + 90, 0.5);
    end(&run);
}

static void idm_yields_to_a_crossing_pedestrian(void)
{
    struct run run;
    begin(&run);
    maps_motorway(&run.arena, &run.scenario.map, 1, 1000);
    maps_scenario(&run.arena, &run.scenario, (struct pose){900, 0, 0}, 0, 0, 2);
    maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){100, 0, 0}, 13);
    maps_agent(&run.scenario, 1, AGENT_PEDESTRIAN, BEHAVIOUR_SCRIPT,
               (struct pose){160, -5, PI_RAD / 2}, 1.4);
    start(&run, &world_object_ops, 0);
    for (int i = 0; i < 150; i++) {
        tick(&run, 0.0);
        struct box car = body(&run, 0);
        struct box walker = body(&run, 1);
        EXPECT(!box_overlap(&car, &walker));
    }
    EXPECT(run.scene->agents[1].pose.y_m > 5.0);
    EXPECT(run.scene->agents[0].pose.x_m > 160.0); /* and went on when the road was clear */
    end(&run);
}

/* Two lanes merge into one: the cars on them end up one behind the other. */
static void merging_lanes_zip(void)
{
    struct run run;
    begin(&run);
    struct lane *lanes = maps_lanes(&run.arena, &run.scenario.map, 3);
    maps_straight(&run.arena, &lanes[0], (struct pose){0, 0, 0}, 300, 3.5);
    maps_points(&run.arena, &lanes[1], 3, 3.5);
    lanes[1].centre_line[0] = (struct vec2){0, -10};
    lanes[1].centre_line[1] = (struct vec2){180, -10};
    lanes[1].centre_line[2] = (struct vec2){300, 0};
    maps_straight(&run.arena, &lanes[2], (struct pose){300, 0, 0}, 1500, 3.5);
    maps_successor(&run.arena, &lanes[0], 2);
    maps_successor(&run.arena, &lanes[1], 2);
    maps_scenario(&run.arena, &run.scenario, (struct pose){1700, 0, 0}, 20, 2, 6);
    for (uint32_t i = 0; i < 6; i++) {
        double y = i % 2 == 0 ? 0 : -10;
        maps_agent(&run.scenario, i, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){150 - 18.0 * i, y, 0},
                   15);
    }
    start(&run, &world_object_ops, 0);
    for (int i = 0; i < 400; i++) {
        tick(&run, 0.0);
        for (uint32_t a = 0; a < 6; a++) {
            struct box box_a = body(&run, a);
            for (uint32_t b = a + 1; b < 6; b++) {
                struct box box_b = body(&run, b);
                EXPECT(!box_overlap(&box_a, &box_b));
            }
        }
    }
    for (uint32_t a = 0; a < 6; a++) {
        EXPECT(run.scene->agents[a].pose.x_m > 320.0);
        EXPECT_NEAR(run.scene->agents[a].pose.y_m, 0.0, 0.05);
    }
    end(&run);
}

/* Lateral acceleration in a bend stays near the comfortable limit; the car keeps its lane. */
static void bends_slow_drivers_down(void)
{
    struct run run;
    begin(&run);
    struct lane *lanes = maps_lanes(&run.arena, &run.scenario.map, 3);
    maps_straight(&run.arena, &lanes[0], (struct pose){0, 0, 0}, 200, 3.5);
    maps_arc(&run.arena, &lanes[1], (struct vec2){200, 25}, 25, -PI_RAD / 2, PI_RAD / 2, 60, 3.5);
    maps_straight(&run.arena, &lanes[2], (struct pose){200, 50, PI_RAD}, 500, 3.5);
    maps_successor(&run.arena, &lanes[0], 1);
    maps_successor(&run.arena, &lanes[1], 2);
    maps_scenario(&run.arena, &run.scenario, (struct pose){-50, 0, 0}, 0, 0, 1);
    maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){20, 0, 0}, 20);
    start(&run, &world_object_ops, 0);
    double heading = 0.0;
    for (int i = 0; i < 400; i++) {
        tick(&run, 0.0);
        const struct agent_state *a = &run.scene->agents[0];
        double yaw_rate = dmath_wrap_angle(a->pose.heading_rad - heading) / 0.1;
        heading = a->pose.heading_rad;
        EXPECT(fabs(yaw_rate * a->speed_mps) < 3.8);
        EXPECT(a->accel_mps2 > -3.0);
        struct vec2 place = {a->pose.x_m, a->pose.y_m};
        EXPECT(roadmap_off_drivable_m(prepared_roadmap(run.prepared), place) == 0.0);
    }
    EXPECT(run.scene->agents[0].pose.x_m < 100.0); /* through the bend and on */
    EXPECT_NEAR(run.scene->agents[0].pose.y_m, 50.0, 0.05);
    end(&run);
}

/* A recording of 3 s ends 12 m before a bend of 7 m, which its 12 m/s cannot take, and begins
 * askew: its driver, on its own from there, neither turns nor brakes harder than the surface lets
 * it. */
static void logs_that_end_before_a_bend_stay_on_their_tyres(void)
{
    enum { POINTS = 4 };
    static const double friction[] = {1.0, 0.5};
    for (uint32_t k = 0; k < 2; k++) {
        struct run run;
        begin(&run);
        struct lane *lanes = maps_lanes(&run.arena, &run.scenario.map, 3);
        maps_straight(&run.arena, &lanes[0], (struct pose){0, 0, 0}, 60, 3.5);
        maps_arc(&run.arena, &lanes[1], (struct vec2){60, 7}, 7, -PI_RAD / 2, PI_RAD / 2, 40, 3.5);
        maps_straight(&run.arena, &lanes[2], (struct pose){60, 14, PI_RAD}, 500, 3.5);
        maps_successor(&run.arena, &lanes[0], 1);
        maps_successor(&run.arena, &lanes[1], 2);
        maps_scenario(&run.arena, &run.scenario, (struct pose){-50, 0, 0}, 0, 0, 1);
        run.scenario.conditions.friction = friction[k];
        struct agent *car = maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_REPLAY,
                                       (struct pose){12, 0, 0.5}, 12);
        struct trajectory_point *points = arena_alloc(&run.arena, POINTS, sizeof *points);
        for (uint32_t i = 0; i < POINTS; i++) {
            points[i] = (struct trajectory_point){i, 12 + 12.0 * i, 0, i == 0 ? 0.5 : 0, 12};
        }
        car->trajectory.points = points;
        car->trajectory.point_count = POINTS;
        start(&run, &world_object_ops, 0);
        struct agent_state before = run.scene->agents[0];
        double grip = 9.81 * friction[k];
        for (int i = 0; i < 200; i++) {
            tick(&run, 0.0);
            struct agent_state now = run.scene->agents[0];
            double turn = dmath_wrap_angle(now.pose.heading_rad - before.pose.heading_rad) / 0.1;
            EXPECT(fabs(0.5 * (now.speed_mps + before.speed_mps) * turn) <= grip + 0.01);
            EXPECT(fabs(now.speed_mps - before.speed_mps) / 0.1 <= grip + 0.01);
            before = now;
        }
        EXPECT(before.pose.x_m < 50.0); /* through the bend and on */
        EXPECT_NEAR(before.pose.y_m, 14.0, 0.1);
        EXPECT_NEAR(fabs(before.pose.heading_rad), PI_RAD, 0.01);
        end(&run);
    }
}

static void wrong_way_drivers_follow_the_lane_backwards(void)
{
    struct run run;
    begin(&run);
    struct lane *lanes = maps_lanes(&run.arena, &run.scenario.map, 2);
    maps_arc(&run.arena, &lanes[0], (struct vec2){0, 200}, 200, -PI_RAD / 2, 0, 60, 3.5);
    maps_straight(&run.arena, &lanes[1], (struct pose){200, 200, PI_RAD / 2}, 300, 3.5);
    maps_successor(&run.arena, &lanes[0], 1);
    maps_scenario(&run.arena, &run.scenario, (struct pose){0, 0, 0}, 0, 0, 1);
    maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_SCRIPT,
               (struct pose){200.5, 350, -PI_RAD / 2}, 20);
    start(&run, &world_object_ops, 0);
    for (int i = 0; i < 200; i++) {
        struct pose before = run.scene->agents[0].pose;
        tick(&run, 0.0);
        struct pose after = run.scene->agents[0].pose;
        EXPECT_NEAR(hypot(after.x_m - before.x_m, after.y_m - before.y_m), 2.0, 0.02);
        double course = atan2(after.y_m - before.y_m, after.x_m - before.x_m);
        EXPECT_NEAR(dmath_wrap_angle(course - after.heading_rad), 0.0, 0.02);
        struct lane_position at;
        EXPECT(roadmap_locate(prepared_roadmap(run.prepared), after, &at));
        EXPECT_NEAR(at.offset_m, -0.5, 0.05);
    }
    end(&run);
}

/* Lanes that lead into each other have no end: a driver goes round for ever, inside its lane. */
static void roundabouts_never_end(void)
{
    struct run run;
    begin(&run);
    struct lane *lanes = maps_lanes(&run.arena, &run.scenario.map, 3);
    struct vec2 center = {0, 0};
    maps_arc(&run.arena, &lanes[0], center, 20, 0, PI_RAD, 40, 4);
    maps_arc(&run.arena, &lanes[1], center, 20, PI_RAD, 2 * PI_RAD, 40, 4);
    maps_straight(&run.arena, &lanes[2], (struct pose){200, 0, 0}, 50, 4);
    maps_successor(&run.arena, &lanes[0], 1);
    maps_successor(&run.arena, &lanes[1], 0);
    maps_scenario(&run.arena, &run.scenario, (struct pose){210, 0, 0}, 0, 2, 1);
    maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){20, 0.01, PI_RAD / 2}, 7);
    start(&run, &world_object_ops, 0);
    double turned = 0.0;
    for (int i = 0; i < 6000; i++) {
        struct pose before = run.scene->agents[0].pose;
        tick(&run, 0.0);
        struct pose after = run.scene->agents[0].pose;
        EXPECT_NEAR(hypot(after.x_m, after.y_m), 20.0, 0.1);
        EXPECT_NEAR(hypot(after.x_m - before.x_m, after.y_m - before.y_m), 0.7, 0.02);
        turned += dmath_wrap_angle(after.heading_rad - before.heading_rad);
    }
    EXPECT_NEAR(turned, 6000 * 0.7 / 20, 3.0);
    end(&run);
}

/* A winding road of many lanes, longer than one chain: the passage to the next chain shows
 * neither in the pose nor in how a follower sees its leader. */
static void long_roads_are_seamless(void)
{
    enum { LANES = 90 };
    struct run run;
    begin(&run);
    struct lane *lanes = maps_lanes(&run.arena, &run.scenario.map, LANES);
    struct pose at = {0, 0, 0};
    for (uint32_t i = 0; i < LANES; i++) { /* alternating bends of 40 m, R = 100 */
        double side = i % 4 < 2 ? 1.0 : -1.0;
        struct vec2 center = {at.x_m - side * 100 * sin(at.heading_rad),
                              at.y_m + side * 100 * cos(at.heading_rad)};
        double from = at.heading_rad - side * PI_RAD / 2;
        maps_arc(&run.arena, &lanes[i], center, 100, from, from + side * 0.4, 21, 3.5);
        at = (struct pose){center.x_m + 100 * cos(from + side * 0.4),
                           center.y_m + 100 * sin(from + side * 0.4), at.heading_rad + side * 0.4};
        if (i + 1 < LANES) {
            maps_successor(&run.arena, &lanes[i], i + 1);
        }
    }
    maps_scenario(&run.arena, &run.scenario, (struct pose){1, 0, 0}, 0, 0, 2);
    for (uint32_t i = 0; i < 2; i++) {
        struct vec2 p = lanes[1 + i].centre_line[10];
        struct vec2 q = lanes[1 + i].centre_line[11];
        struct pose pose = {p.x_m, p.y_m, atan2(q.y_m - p.y_m, q.x_m - p.x_m)};
        maps_agent(&run.scenario, i, AGENT_CAR, BEHAVIOUR_IDM, pose, 15);
        run.scenario.agents[i].idm.desired_speed_mps = i == 0 ? 20 : 14; /* the first follows */
    }
    start(&run, &world_object_ops, 0);
    for (int i = 0; i < 2200; i++) {
        struct agent_state before = run.scene->agents[0];
        tick(&run, 0.0);
        const struct agent_state *a = &run.scene->agents[0];
        struct lane_position on;
        EXPECT(roadmap_locate(prepared_roadmap(run.prepared), a->pose, &on));
        EXPECT(fabs(on.offset_m) < 0.05);
        EXPECT_NEAR(hypot(a->pose.x_m - before.pose.x_m, a->pose.y_m - before.pose.y_m),
                    0.05 * (a->speed_mps + before.speed_mps), 0.02);
        EXPECT(fabs(a->accel_mps2 - before.accel_mps2) < 1.0);
    }
    EXPECT(fabs(run.scene->agents[0].speed_mps - 14) < 0.2);
    end(&run);
}

struct draws {
    uint64_t seed;
    uint32_t count;
};

static double draw(struct draws *draws, double low, double high)
{
    return low + (high - low) * rng_uniform(draws->seed, RNG_STREAM_TEST, 1, draws->count++);
}

static struct pose draw_pose(struct draws *draws)
{
    double x = draw(draws, -80, 80);
    double y = draw(draws, -80, 80);
    return (struct pose){x, y, draw(draws, -3.1, 3.1)};
}

static void random_map(struct run *run, struct draws *draws)
{
    struct lane *lanes = maps_lanes(&run->arena, &run->scenario.map, 6);
    for (uint32_t i = 0; i < 6; i++) {
        struct pose pose = draw_pose(draws);
        double size = draw(draws, 5, 60);
        double width = draw(draws, 1, 6);
        if (i % 2 == 0) {
            maps_straight(&run->arena, &lanes[i], pose, 2 * size, width);
        } else {
            maps_arc(&run->arena, &lanes[i], (struct vec2){pose.x_m, pose.y_m}, size, 0,
                     draw(draws, -6, 6) + 0.1, 30, width);
        }
        maps_successor(&run->arena, &lanes[i], (uint32_t)draw(draws, 0, 5.99));
        lanes[i].left = (int32_t)draw(draws, -1, 5.99);
    }
}

static void random_agent(struct run *run, struct draws *draws, uint32_t i)
{
    struct pose pose = draw_pose(draws);
    struct agent *agent =
        maps_agent(&run->scenario, i, (enum agent_kind)(i % AGENT_KIND_COUNT),
                   i % 3 == 0 ? BEHAVIOUR_SCRIPT : BEHAVIOUR_IDM, pose, draw(draws, 0, 30));
    agent->idm.lane_changes = i % 2 == 0;
    agent->idm.desired_speed_mps = i == 4 ? 0.0 : draw(draws, 0, 40);
    agent->idm.time_headway_s = draw(draws, 0, 4);
    agent->idm.min_gap_m = draw(draws, 0, 8);
    struct manoeuvre *m = script(run, agent, 2);
    m[0] = (struct manoeuvre){.trigger = {(enum trigger_kind)(i % TRIGGER_COUNT), 3},
                              .kind = (enum manoeuvre_kind)((i / 2) % MANOEUVRE_COUNT),
                              .speed_mps = draw(draws, 0, 20),
                              .rate_mps2 = draw(draws, 0.5, 8),
                              .offset_m = draw(draws, -4, 4),
                              .duration_s = draw(draws, 1, 5)};
    m[0].path_count = 1 + i % 3;
    m[0].path = arena_alloc(&run->arena, 3, sizeof *m[0].path);
    for (uint32_t k = 0; k < 3; k++) {
        m[0].path[k] = (struct vec2){pose.x_m + 10.0 * (k + 1), pose.y_m + draw(draws, -5, 5)};
    }
    m[1] = brake;
    m[1].trigger = (struct trigger){TRIGGER_AFTER, 1.0};
}

/* Random maps, agents of every kind and behaviour, odd parameters: whatever is accepted moves
 * continuously and finitely. */
static void random_scenes_stay_sane(void)
{
    for (uint32_t seed = 0; seed < 60; seed++) {
        struct run run;
        struct draws draws = {seed, 0};
        begin(&run);
        random_map(&run, &draws);
        maps_scenario(&run.arena, &run.scenario, draw_pose(&draws), 10, 0, 12);
        for (uint32_t i = 0; i < 12; i++) {
            random_agent(&run, &draws, i);
        }
        start(&run, &world_object_ops, seed);
        for (int i = 0; i < 200; i++) {
            struct scene before = *run.scene;
            tick(&run, 0.5);
            for (uint32_t k = 0; k < 12; k++) {
                const struct agent_state *a = &run.scene->agents[k];
                const struct agent_state *b = &before.agents[k];
                double motion = hypot(a->pose.x_m - b->pose.x_m, a->pose.y_m - b->pose.y_m);
                EXPECT(isfinite(a->pose.x_m) && isfinite(a->pose.y_m));
                EXPECT(a->speed_mps >= 0.0 && a->speed_mps < 60.0);
                /* A sideways programme of 4 m in 1 s moves 1.875 * 4 m/s at most. */
                EXPECT(motion <= 0.15 * (fmax(a->speed_mps, b->speed_mps) + 7.5) + 0.06);
            }
        }
        end(&run);
    }
}

/* ---- seeds ---- */

static void seeds_vary_drivers_a_little(void)
{
    double speeds[4];
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct run run;
        begin(&run);
        maps_motorway(&run.arena, &run.scenario.map, 1, 5000);
        maps_scenario(&run.arena, &run.scenario, (struct pose){10, 0, 0}, 0, 0, 1);
        maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){100, 0, 0}, 20);
        start(&run, &world_object_ops, seed);
        for (int i = 0; i < 600; i++) {
            tick(&run, 0.0);
        }
        speeds[seed] = run.scene->agents[0].speed_mps;
        EXPECT_NEAR(speeds[seed], 20.0, 1.0 + 1e-9);
        end(&run);
    }
    EXPECT_NEAR(speeds[0], 20.0, 1e-6);
    EXPECT(speeds[1] != speeds[2] && speeds[2] != speeds[3]);
}

/* A crowd drives to the bit as it does beside another one kilometres away: who is not near is not
 * looked at, and who is, is. */
static void crowds_do_not_see_each_other(void)
{
    enum { NEAR = SCREEN_SLICED_MIN - 8, ALL = 3 * NEAR };
    struct run runs[2];
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t count = k == 0 ? NEAR : ALL;
        begin(&runs[k]);
        maps_motorway(&runs[k].arena, &runs[k].scenario.map, 3, 9000);
        maps_scenario(&runs[k].arena, &runs[k].scenario, (struct pose){300, 0, 0}, 20, 0, count);
        for (uint32_t i = 0; i < count; i++) {
            double x_m = i < NEAR ? 20.0 + 14.0 * i : 6000.0 + 14.0 * i;
            x_m += x_m > 270.0 && x_m < 330.0 ? 600.0 : 0.0; /* not where ego is */
            struct agent *car =
                maps_agent(&runs[k].scenario, i, i % 5 == 0 ? AGENT_TRUCK : AGENT_CAR,
                           BEHAVIOUR_IDM, (struct pose){x_m, 3.5 * (i % 3), 0}, 15 + i % 7);
            car->idm.desired_speed_mps = 8 + 2.5 * (i % 11);
            car->idm.lane_changes = true;
        }
        start(&runs[k], &world_object_ops, 5);
    }
    uint32_t changes = 0;
    for (int t = 0; t < 150; t++) {
        for (uint32_t i = 0; i < NEAR; i++) {
            const struct agent_state *a = &runs[0].scene->agents[i];
            const struct agent_state *b = &runs[1].scene->agents[i];
            EXPECT(a->pose.x_m == b->pose.x_m && a->pose.y_m == b->pose.y_m);
            EXPECT(a->pose.heading_rad == b->pose.heading_rad && a->speed_mps == b->speed_mps);
            changes += a->pose.heading_rad != 0.0;
        }
        tick(&runs[0], 0.0);
        tick(&runs[1], 0.0);
    }
    EXPECT(changes > 100); /* some change lanes */
    end(&runs[0]);
    end(&runs[1]);
}

/* Each body is at one place of the screen; those in a rectangle are at the places that are given
 * for it, whichever way the crowd is spread. */
static void screen_ranges_hold_who_is_there(void)
{
    for (uint32_t round = 0; round < 200; round++) {
        static struct actors actors;
        uint32_t counter[4] = {round, RNG_STREAM_TEST, 0, 0};
        uint32_t words[4];
        rng_philox(3, counter, words);
        actors = (struct actors){.count = 1 + words[0] % ACTORS_MAX};
        actors.ego = actors.count - 1;
        double spread_m[2] = {words[1] % 3 == 0 ? 5.0 : 2000.0, words[1] % 5 == 0 ? 5.0 : 1000.0};
        for (uint32_t i = 0; i < actors.count; i++) {
            counter[2] = 1 + i;
            rng_philox(3, counter, words);
            actors.x_m[i] = 4e5 + words[0] * (spread_m[0] / 4294967296.0);
            actors.y_m[i] = words[1] * (spread_m[1] / 4294967296.0);
        }
        actors.origin_x_m = 4e5;
        traffic_screen_fill(&actors);
        struct vec2 low = {words[2] % 1500, words[3] % 900};
        struct vec2 high = {low.x_m + words[2] % 300, low.y_m + words[3] % 300};
        uint32_t first;
        uint32_t end;
        traffic_screen_range(&actors, low, high, &first, &end);
        EXPECT(first % SCREEN_LANES == 0 && end % SCREEN_LANES == 0 && end <= actors.padded_count);
        uint32_t seen[ACTORS_MAX] = {0};
        for (uint32_t k = 0; k < actors.count; k++) {
            uint32_t i = actors.screen_actor[k];
            double x_m = actors.x_m[i] - actors.origin_x_m;
            double y_m = actors.y_m[i] - actors.origin_y_m;
            seen[i]++;
            EXPECT(actors.screen_x_m[k] == (float)x_m && actors.screen_y_m[k] == (float)y_m);
            if (x_m >= low.x_m && x_m <= high.x_m && y_m >= low.y_m && y_m <= high.y_m) {
                EXPECT(k >= first && k < end);
            }
        }
        for (uint32_t i = 0; i < actors.count; i++) {
            EXPECT_INT(seen[i], 1);
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(idm_settles_at_the_equilibrium_gap), TEST(idm_platoon_never_collides),
                    TEST(mobil_overtakes_without_touching),
                    TEST(idm_stops_for_ego_pedestrian_and_debris),
                    TEST(distracted_drivers_ignore_ego), TEST(idm_yields_to_a_crossing_pedestrian),
                    TEST(merging_lanes_zip), TEST(bends_slow_drivers_down),
                    TEST(logs_that_end_before_a_bend_stay_on_their_tyres),
                    TEST(wrong_way_drivers_follow_the_lane_backwards), TEST(roundabouts_never_end),
                    TEST(long_roads_are_seamless), TEST(random_scenes_stay_sane),
                    TEST(seeds_vary_drivers_a_little), TEST(crowds_do_not_see_each_other),
                    TEST(screen_ranges_hold_who_is_there));
}
