/*
 * Goal: signals show what their phases say, and reactive drivers obey them; so do they obey stop
 * and yield signs. Method: phases against sums by hand; an hour of IDM traffic on a figure of eight
 * whose road crosses itself at two alternating signals, every passage of a stop line looked at; a
 * branch's change of a light. Two roads that cross, one or both with signs, cars at all distances
 * on the other: who passes a line has stood where it must and has left others their headway.
 */
#include "engine/traffic/signals.h"

#include "base/dmath.h"
#include "base/units.h"
#include "engine/worlds/world.h"
#include "tests/engine/traffic_run.h"

#include <string.h>

static struct signal_phase cycle[] = {
    {TRAFFIC_LIGHT_GREEN, 25.0},
    {TRAFFIC_LIGHT_YELLOW, 3.0},
    {TRAFFIC_LIGHT_RED, 31.0},
    {TRAFFIC_LIGHT_RED_YELLOW, 1.0},
};

static void phases_follow_one_another(void)
{
    struct traffic_signal signal = {.repeats = true, .phase_count = 4, .phases = cycle};
    for (int k = 0; k < 2000; k++) {
        int in_cycle = k % 600; /* tenths of a second */
        enum traffic_light expected = in_cycle < 250   ? TRAFFIC_LIGHT_GREEN
                                      : in_cycle < 280 ? TRAFFIC_LIGHT_YELLOW
                                      : in_cycle < 590 ? TRAFFIC_LIGHT_RED
                                                       : TRAFFIC_LIGHT_RED_YELLOW;
        EXPECT(signal_light_at(&signal, k * TICK_S) == expected);
    }
    signal.offset_s = 26.0;
    EXPECT(signal_light_at(&signal, 0.0) == TRAFFIC_LIGHT_YELLOW);
    EXPECT(signal_light_at(&signal, 2.0) == TRAFFIC_LIGHT_RED);
    signal.offset_s = 0.0;
    signal.repeats = false;
    EXPECT(signal_light_at(&signal, 59.9) == TRAFFIC_LIGHT_RED_YELLOW);
    EXPECT(signal_light_at(&signal, 500.0) == TRAFFIC_LIGHT_RED_YELLOW);
}

/* ---- a figure of eight ---- */

enum { CARS = 30, EAST_IN = 0, EAST_OUT, LOOP_RIGHT, SOUTH_IN, SOUTH_OUT, LOOP_LEFT, LANES };
#define ARM_M 120.0

/* Eastwards over the crossing at the origin, round to the north, southwards over it, round to the
 * west. The lanes EAST_IN and SOUTH_IN end 10 m before the crossing. */
static void figure_of_eight(struct run *run, struct traffic_signal *signals, uint32_t *controlled)
{
    struct map *map = &run->scenario.map;
    struct lane *lanes = maps_lanes(&run->arena, map, LANES);
    struct arena *arena = &run->arena;
    maps_straight(arena, &lanes[EAST_IN], (struct pose){-ARM_M, 0, 0}, ARM_M - 10, 3.5);
    maps_straight(arena, &lanes[EAST_OUT], (struct pose){-10, 0, 0}, ARM_M + 10, 3.5);
    maps_arc(arena, &lanes[LOOP_RIGHT], (struct vec2){ARM_M, ARM_M}, ARM_M, -PI_RAD / 2, PI_RAD,
             120, 3.5);
    maps_straight(arena, &lanes[SOUTH_IN], (struct pose){0, ARM_M, -PI_RAD / 2}, ARM_M - 10, 3.5);
    maps_straight(arena, &lanes[SOUTH_OUT], (struct pose){0, 10, -PI_RAD / 2}, ARM_M + 10, 3.5);
    maps_arc(arena, &lanes[LOOP_LEFT], (struct vec2){-ARM_M, -ARM_M}, ARM_M, 0, -1.5 * PI_RAD, 120,
             3.5);
    for (uint32_t i = 0; i < LANES; i++) {
        maps_successor(arena, &lanes[i], (i + 1) % LANES);
    }
    controlled[0] = EAST_IN;
    controlled[1] = SOUTH_IN;
    for (uint32_t i = 0; i < 2; i++) {
        signals[i] = (struct traffic_signal){.lane_count = 1,
                                             .lanes = &controlled[i],
                                             .stop_m = 1.0,
                                             .offset_s = i == 0 ? 0.0 : 30.0,
                                             .repeats = true,
                                             .phase_count = 4,
                                             .phases = cycle};
    }
    map->signal_count = 2;
    map->signals = signals;
}

/* The front edge of a car, along a stop line's direction and beside it. */
static struct vec2 front_at(const struct stop_line *line, const struct agent_state *car)
{
    double dx = car->pose.x_m + 2.25 * cos(car->pose.heading_rad) - line->pose.x_m;
    double dy = car->pose.y_m + 2.25 * sin(car->pose.heading_rad) - line->pose.y_m;
    double c = cos(line->pose.heading_rad);
    double s = sin(line->pose.heading_rad);
    return (struct vec2){dx * c + dy * s, dy * c - dx * s};
}

struct passages {
    uint32_t green, yellow, red;
    uint32_t queued;   /* cars that left a queue as its fifth or later */
    double headways_s; /* between them and the car before */
    uint32_t in_queue; /* passages since the light turned green */
    double last_s;
};

static void note_passage(struct passages *p, enum traffic_light light, double time_s)
{
    p->green += light == TRAFFIC_LIGHT_GREEN;
    p->yellow += light == TRAFFIC_LIGHT_YELLOW;
    p->red += signal_stops(light);
    p->in_queue++;
    /* A gap above 3 s is not a queue's. */
    if (light == TRAFFIC_LIGHT_GREEN && p->in_queue >= 5 && time_s - p->last_s < 3.0) {
        p->queued++;
        p->headways_s += time_s - p->last_s;
    }
    p->last_s = time_s;
}

/* An hour of traffic; returns cars an hour and lane that leave a queue at its signal. */
static double hour_at_signals(double headway_s, double accel_mps2, double decel_mps2)
{
    struct run run;
    struct traffic_signal signals[2];
    uint32_t controlled[2];
    struct passages seen[2] = {0};
    struct vec2 before[CARS][2];
    begin(&run);
    figure_of_eight(&run, signals, controlled);
    maps_scenario(&run.arena, &run.scenario, (struct pose){-1e4, -1e4, 0}, 0, EAST_IN, CARS);
    for (uint32_t i = 0; i < CARS; i++) {
        /* On the straight arms; they spread by themselves. */
        bool east = i < CARS / 2;
        double along_m = 12.0 + 7.0 * (i % (CARS / 2));
        struct pose pose = east ? (struct pose){-ARM_M + along_m, 0, 0}
                                : (struct pose){0, ARM_M - along_m, -PI_RAD / 2};
        maps_agent(&run.scenario, i, AGENT_CAR, BEHAVIOUR_IDM, pose, 0.0);
        struct idm *idm = &run.scenario.agents[i].idm;
        idm->desired_speed_mps = 15.0;
        idm->time_headway_s = headway_s;
        idm->accel_max_mps2 = accel_mps2;
        idm->decel_comfort_mps2 = decel_mps2;
    }
    start(&run, &world_object_ops, 3);
    for (int k = 0; k < 36000; k++) {
        enum traffic_light light[2];
        for (uint32_t i = 0; i < 2; i++) {
            struct stop_line line =
                signal_stop_line(prepared_roadmap(run.prepared), &signals[i], 0);
            light[i] = (enum traffic_light)run.scene->signal_light[i];
            EXPECT(light[i] == signal_light_at(&signals[i], k * TICK_S));
            for (uint32_t car = 0; car < CARS; car++) {
                before[car][i] = front_at(&line, &run.scene->agents[car]);
            }
        }
        tick(&run, 0.0);
        for (uint32_t i = 0; i < 2; i++) {
            struct stop_line line =
                signal_stop_line(prepared_roadmap(run.prepared), &signals[i], 0);
            seen[i].in_queue = light[i] == TRAFFIC_LIGHT_RED ? 0 : seen[i].in_queue;
            for (uint32_t car = 0; car < CARS; car++) {
                struct vec2 after = front_at(&line, &run.scene->agents[car]);
                if (before[car][i].x_m < 0.0 && after.x_m >= 0.0 && after.x_m < 5.0 &&
                    fabs(after.y_m) < 1.75) {
                    note_passage(&seen[i], light[i], k * TICK_S);
                }
            }
        }
        for (uint32_t a = 0; k % 10 == 0 && a < CARS; a++) {
            for (uint32_t b = 0; b < a; b++) {
                struct box one = body(&run, a);
                struct box other = body(&run, b);
                EXPECT(!box_overlap(&one, &other));
            }
        }
    }
    double queued = 0.0;
    double headways_s = 0.0;
    for (uint32_t i = 0; i < 2; i++) {
        printf("# headway %g s, signal %u: %u on green, %u on yellow, %u on red\n", headway_s, i,
               seen[i].green, seen[i].yellow, seen[i].red);
        EXPECT(seen[i].red == 0);
        EXPECT(seen[i].green > 300);
        queued += seen[i].queued;
        headways_s += seen[i].headways_s;
    }
    end(&run);
    EXPECT(queued > 200.0);
    return 3600.0 * queued / headways_s;
}

/* The flow that leaves a queue: 1,900 cars an hour and lane before adjustments (Highway Capacity
 * Manual, 6th edition, chapter 19), 1,500 to 2,000 in the field. Drivers who keep 1 s (Treiber and
 * Kesting, Traffic Flow Dynamics, table 11.2) and pull away at 2 m/s2 reach that; the scenarios'
 * default, 1.5 s and 1.5 m/s2, is a calmer driver. */
static void nobody_passes_on_red_for_an_hour(void)
{
    double brisk = hour_at_signals(1.0, 2.0, 2.0);
    double calm = hour_at_signals(1.5, 1.5, 2.0);
    printf("# saturation flow: brisk %.0f, calm %.0f cars an hour of green and lane\n", brisk,
           calm);
    EXPECT(brisk > 1500.0 && brisk < 2100.0);
    EXPECT(calm > 1200.0 && calm < brisk);
}

/* A signal that a branch turns yellow and then red stops who can stop, in the fork alone. */
static void branches_turn_lights(void)
{
    struct run run;
    struct error error;
    struct traffic_signal signals[2];
    uint32_t controlled[2];
    struct signal_phase green[] = {{TRAFFIC_LIGHT_GREEN, 1000.0}};
    begin(&run);
    figure_of_eight(&run, signals, controlled);
    signals[0].phase_count = 1;
    signals[0].phases = green;
    maps_scenario(&run.arena, &run.scenario, (struct pose){-1e4, -1e4, 0}, 0, EAST_IN, 1);
    maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){-110, 0, 0}, 13.9);
    EXPECT_OK(prepared_create(&run.scenario, &run.prepared, &error), error);
    EXPECT_OK(world_object_ops.open(&(struct world_config){.slot_count = 2}, &run.world, &error),
              error);
    EXPECT_OK(world_object_ops.slot_reset(run.world, 0, run.prepared, 0, &error), error);
    world_object_ops.slot_fork(run.world, 0, 1);
    struct intervention turn = {
        .kind = INTERVENE_SIGNAL, .signal = 0, .light = TRAFFIC_LIGHT_YELLOW};
    EXPECT_OK(world_object_ops.slot_intervene(run.world, 1, &turn, &error), error);
    for (int k = 0; k < 150; k++) {
        struct action actions[2] = {{0, 0}, {0, 0}};
        uint8_t active[2] = {1, 1};
        if (k == 30) {
            turn.light = TRAFFIC_LIGHT_RED;
            EXPECT_OK(world_object_ops.slot_intervene(run.world, 1, &turn, &error), error);
        }
        world_object_ops.step(run.world, actions, active);
    }
    const struct scene *free = world_object_ops.slot_scene(run.world, 0);
    const struct scene *held = world_object_ops.slot_scene(run.world, 1);
    EXPECT(free->signal_light[0] == TRAFFIC_LIGHT_GREEN);
    EXPECT(held->signal_light[0] == TRAFFIC_LIGHT_RED);
    EXPECT(free->agents[0].pose.x_m > 20.0);
    EXPECT(held->agents[0].speed_mps < 0.1);
    EXPECT(held->agents[0].pose.x_m + 2.25 < -11.0);
    run.ops = &world_object_ops;
    end(&run);
}

/* Whoever could stop only by braking hard goes on at yellow, whoever need not stops. */
static void yellow_is_decided_by_braking(void)
{
    for (double gap_m = 15.0; gap_m <= 60.0; gap_m += 5.0) {
        struct run run;
        struct traffic_signal signals[2];
        uint32_t controlled[2];
        struct signal_phase change[] = {{TRAFFIC_LIGHT_YELLOW, 3.0}, {TRAFFIC_LIGHT_RED, 60.0}};
        begin(&run);
        figure_of_eight(&run, signals, controlled);
        signals[0].phase_count = 2;
        signals[0].phases = change;
        maps_scenario(&run.arena, &run.scenario, (struct pose){-1e4, -1e4, 0}, 0, EAST_IN, 1);
        maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_IDM,
                   (struct pose){-11.0 - gap_m - 2.25, 0, 0}, 13.9);
        start(&run, &world_object_ops, 0);
        for (int k = 0; k < 100; k++) {
            tick(&run, 0.0);
        }
        bool stopped = run.scene->agents[0].pose.x_m + 2.25 < -11.0;
        EXPECT(stopped == (13.9 * 13.9 / (2.0 * gap_m) <= 3.0));
        end(&run);
    }
}

/* ---- signs ---- */

enum { CROSSING_CARS = 4 };

/* A drive over the crossing of two straight roads. Cars 0 and 2 come from the west, 1 and 3 from
 * the north; lines are 11 m before the crossing of the middles. */
struct crossing {
    struct run run;
    struct traffic_signal signals[2];
    uint32_t controlled[2];
    double slowest_mps[CROSSING_CARS]; /* with the front within 4 m before the line */
    int passed_tick[CROSSING_CARS];    /* -1: not yet */
    double other_s[CROSSING_CARS];     /* car 0's time to the crossing then; below 0: it is over */
};

static void crossing_begin(struct crossing *crossing, enum traffic_sign west,
                           enum traffic_sign north)
{
    struct run *run = &crossing->run;
    *crossing = (struct crossing){.controlled = {0, 2}};
    begin(run);
    struct map *map = &run->scenario.map;
    struct lane *lanes = maps_lanes(&run->arena, map, 4);
    maps_straight(&run->arena, &lanes[0], (struct pose){-300, 0, 0}, 290, 3.5);
    maps_straight(&run->arena, &lanes[1], (struct pose){-10, 0, 0}, 400, 3.5);
    maps_straight(&run->arena, &lanes[2], (struct pose){0, 300, -PI_RAD / 2}, 290, 3.5);
    maps_straight(&run->arena, &lanes[3], (struct pose){0, 10, -PI_RAD / 2}, 400, 3.5);
    maps_successor(&run->arena, &lanes[0], 1);
    maps_successor(&run->arena, &lanes[2], 3);
    enum traffic_sign signs[2] = {west, north};
    for (uint32_t i = 0; i < 2; i++) {
        if (signs[i] != TRAFFIC_SIGN_NONE) {
            crossing->signals[map->signal_count++] = (struct traffic_signal){
                .sign = signs[i], .lane_count = 1, .lanes = &crossing->controlled[i], .stop_m = 1};
        }
    }
    map->signals = crossing->signals;
    maps_scenario(&run->arena, &run->scenario, (struct pose){-1e4, -1e4, 0}, 0, 0, CROSSING_CARS);
    for (uint32_t i = 0; i < CROSSING_CARS; i++) {
        crossing->slowest_mps[i] = 100.0;
        crossing->passed_tick[i] = -1;
        maps_agent(&run->scenario, i, AGENT_CAR, BEHAVIOUR_STATIC,
                   (struct pose){900, 900.0 + 9 * i, 0}, 0);
    }
}

/* Puts a car with its front so far before its road's line. */
static void crossing_car(struct crossing *crossing, uint32_t car, double before_m, double speed_mps)
{
    double from_m = 11.0 + before_m + 2.25;
    struct pose pose =
        car % 2 == 0 ? (struct pose){-from_m, 0, 0} : (struct pose){0, from_m, -PI_RAD / 2};
    maps_agent(&crossing->run.scenario, car, AGENT_CAR, BEHAVIOUR_IDM, pose, speed_mps);
    crossing->run.scenario.agents[car].idm.desired_speed_mps = 10.0;
}

/* Metres of a car's front beyond its line. */
static double beyond(const struct crossing *crossing, uint32_t car)
{
    struct pose pose = crossing->run.scene->agents[car].pose;
    return (car % 2 == 0 ? pose.x_m : -pose.y_m) + 2.25 + 11.0;
}

static void crossing_drive(struct crossing *crossing, int ticks)
{
    struct run *run = &crossing->run;
    start(run, &world_object_ops, 0);
    for (int k = 0; k < ticks; k++) {
        tick(run, 0.0);
        for (uint32_t i = 0; i < CROSSING_CARS; i++) {
            const struct agent_state *car = &run->scene->agents[i];
            double at_m = beyond(crossing, i);
            if (at_m <= 0.0 && at_m > -4.0) {
                crossing->slowest_mps[i] = dmath_min(crossing->slowest_mps[i], car->speed_mps);
            }
            if (at_m > 0.0 && at_m < 20.0 && crossing->passed_tick[i] < 0) {
                const struct agent_state *first = &run->scene->agents[0];
                crossing->passed_tick[i] = k;
                crossing->other_s[i] = -first->pose.x_m / first->speed_mps;
            }
            for (uint32_t other = 0; other < i; other++) {
                struct box a = body(run, i);
                struct box b = body(run, other);
                EXPECT(!box_overlap(&a, &b));
            }
        }
    }
}

/* Alone, at every speed: a standstill near the line at a stop sign, none at the others. */
static void signs_without_others(void)
{
    for (int speed_mps = 2; speed_mps <= 20; speed_mps += 2) {
        for (int sign = TRAFFIC_SIGN_STOP; sign < TRAFFIC_SIGN_COUNT; sign++) {
            struct crossing crossing;
            crossing_begin(&crossing, TRAFFIC_SIGN_NONE, (enum traffic_sign)sign);
            crossing_car(&crossing, 1, 90.0, speed_mps);
            crossing_drive(&crossing, 600);
            EXPECT((crossing.slowest_mps[1] < 0.1) == (sign == TRAFFIC_SIGN_STOP));
            EXPECT(crossing.passed_tick[1] >= 0);
            EXPECT(beyond(&crossing, 1) > 60.0);
            end(&crossing.run);
        }
    }
}

/* A car on the road without signs, or with priority signs, keeps its speed; whoever has another
 * one, or gives way without, leaves it 6.5 s, less what a car that is on its way over a yield
 * sign's line cannot undo. The car from the west is on the other's right. */
static void signs_give_way(void)
{
    uint32_t after = 0;
    for (int before_m = 10; before_m <= 240; before_m += 10) {
        for (int sign = TRAFFIC_SIGN_STOP; sign < TRAFFIC_SIGN_COUNT; sign++) {
            static const enum traffic_sign other[TRAFFIC_SIGN_COUNT] = {
                [TRAFFIC_SIGN_GIVE_WAY] = TRAFFIC_SIGN_PRIORITY,
                [TRAFFIC_SIGN_GIVE_WAY_RIGHT] = TRAFFIC_SIGN_GIVE_WAY_RIGHT,
            };
            struct crossing crossing;
            if (sign == TRAFFIC_SIGN_PRIORITY || sign == TRAFFIC_SIGN_GIVE_WAY_ONCOMING) {
                continue;
            }
            crossing_begin(&crossing, other[sign], (enum traffic_sign)sign);
            crossing_car(&crossing, 0, before_m, 10.0);
            crossing_car(&crossing, 1, 60.0, 10.0);
            crossing_drive(&crossing, 500);
            double left_s = crossing.other_s[1];
            EXPECT(crossing.passed_tick[1] >= 0 && crossing.passed_tick[0] >= 0);
            EXPECT(left_s < 0.3 || left_s > 5.0);
            EXPECT(sign != TRAFFIC_SIGN_STOP || crossing.slowest_mps[1] < 0.1);
            EXPECT(crossing.slowest_mps[0] > 9.0 || crossing.slowest_mps[0] == 100.0);
            after += left_s < 0.3;
            end(&crossing.run);
        }
    }
    EXPECT(after > 16 && after < 80);
}

/* Stop signs on both roads: one after the other, in the order in which they came to stand. */
static void all_way_stops_are_first_come_first_served(void)
{
    for (int late_m = 0; late_m <= 60; late_m += 5) {
        struct crossing crossing;
        crossing_begin(&crossing, TRAFFIC_SIGN_STOP, TRAFFIC_SIGN_STOP);
        crossing_car(&crossing, 0, 40.0, 10.0);
        crossing_car(&crossing, 1, 40.0 + late_m, 10.0);
        crossing_car(&crossing, 2, 52.0, 10.0);
        crossing_car(&crossing, 3, 52.0 + late_m, 10.0);
        crossing_drive(&crossing, 900);
        for (uint32_t i = 0; i < CROSSING_CARS; i++) {
            EXPECT(crossing.slowest_mps[i] < 0.1);
            EXPECT(crossing.passed_tick[i] >= 0);
        }
        EXPECT(crossing.passed_tick[0] < crossing.passed_tick[1]);
        EXPECT(crossing.passed_tick[1] < crossing.passed_tick[3]);
        EXPECT(crossing.passed_tick[1] < crossing.passed_tick[2] || late_m > 20);
        end(&crossing.run);
    }
}

/* Four roads, priority to the right, everybody at once: somebody has to begin, and all pass. */
static void priority_to_the_right_of_four(void)
{
    for (int apart_m = 0; apart_m <= 12; apart_m += 3) {
        struct run run;
        struct traffic_signal signal = {
            .sign = TRAFFIC_SIGN_GIVE_WAY_RIGHT, .lane_count = 4, .stop_m = 1};
        uint32_t approaches[4] = {0, 2, 4, 6};
        int passed = 0;
        begin(&run);
        struct map *map = &run.scenario.map;
        struct lane *lanes = maps_lanes(&run.arena, map, 8);
        for (uint32_t i = 0; i < 4; i++) { /* right-hand traffic, 1.75 m from the middle */
            double heading_rad = i * PI_RAD / 2;
            double ux = i == 0 ? 1.0 : i == 2 ? -1.0 : 0.0;
            double uy = i == 1 ? 1.0 : i == 3 ? -1.0 : 0.0;
            struct pose in = {-300 * ux + 1.75 * uy, -300 * uy - 1.75 * ux, heading_rad};
            struct pose on = {-10 * ux + 1.75 * uy, -10 * uy - 1.75 * ux, heading_rad};
            maps_straight(&run.arena, &lanes[2 * i], in, 290, 3.5);
            maps_straight(&run.arena, &lanes[2 * i + 1], on, 400, 3.5);
            maps_successor(&run.arena, &lanes[2 * i], 2 * i + 1);
        }
        signal.lanes = approaches;
        map->signals = &signal;
        map->signal_count = 1;
        maps_scenario(&run.arena, &run.scenario, (struct pose){-1e4, -1e4, 0}, 0, 0, 4);
        for (uint32_t i = 0; i < 4; i++) {
            const struct vec2 *from = lanes[2 * i].centre_line;
            double ux = i == 0 ? 1.0 : i == 2 ? -1.0 : 0.0;
            double uy = i == 1 ? 1.0 : i == 3 ? -1.0 : 0.0;
            double at_m = 240.0 - apart_m * i;
            struct pose pose = {from->x_m + at_m * ux, from->y_m + at_m * uy, i * PI_RAD / 2};
            maps_agent(&run.scenario, i, AGENT_CAR, BEHAVIOUR_IDM, pose, 10.0);
        }
        start(&run, &world_object_ops, 0);
        for (int k = 0; k < 600; k++) {
            tick(&run, 0.0);
            for (uint32_t i = 0; i < 4; i++) {
                for (uint32_t other = 0; other < i; other++) {
                    struct box a = body(&run, i);
                    struct box b = body(&run, other);
                    EXPECT(!box_overlap(&a, &b));
                }
            }
        }
        for (uint32_t i = 0; i < 4; i++) {
            struct pose pose = run.scene->agents[i].pose;
            double ux = i == 0 ? 1.0 : i == 2 ? -1.0 : 0.0;
            double uy = i == 1 ? 1.0 : i == 3 ? -1.0 : 0.0;
            passed += pose.x_m * ux + pose.y_m * uy > 20.0;
        }
        EXPECT_INT(passed, 4);
        end(&run);
    }
}

/* ---- turns across oncoming traffic ---- */

enum { WEST_IN = 0, WEST_LEFT, NORTH_OUT, EAST_IN_2, EAST_ON, EAST_LEFT, SOUTH_OUT_2, TURN_LANES };

/* Right-hand traffic, 1.75 m from the middle: from the west to the north, from the east straight on
 * or, `both_turn`, to the south. Who turns left gives way to who comes towards it. */
struct turning {
    struct run run;
    struct traffic_signal signals[2];
    uint32_t turns[2];
    uint32_t approach;
};

static void turning_begin(struct turning *turning, bool both_turn)
{
    struct run *run = &turning->run;
    *turning = (struct turning){.turns = {WEST_LEFT, EAST_LEFT}, .approach = EAST_IN_2};
    begin(run);
    struct map *map = &run->scenario.map;
    struct arena *arena = &run->arena;
    struct lane *lanes = maps_lanes(arena, map, TURN_LANES);
    maps_straight(arena, &lanes[WEST_IN], (struct pose){-300, -1.75, 0}, 290, 3.5);
    maps_arc(arena, &lanes[WEST_LEFT], (struct vec2){-10, 10}, 11.75, -PI_RAD / 2, 0, 24, 3.5);
    maps_straight(arena, &lanes[NORTH_OUT], (struct pose){1.75, 10, PI_RAD / 2}, 300, 3.5);
    maps_straight(arena, &lanes[EAST_IN_2], (struct pose){300, 1.75, PI_RAD}, 290, 3.5);
    maps_straight(arena, &lanes[EAST_ON], (struct pose){10, 1.75, PI_RAD}, 300, 3.5);
    maps_arc(arena, &lanes[EAST_LEFT], (struct vec2){10, -10}, 11.75, PI_RAD / 2, PI_RAD, 24, 3.5);
    maps_straight(arena, &lanes[SOUTH_OUT_2], (struct pose){-1.75, -10, -PI_RAD / 2}, 300, 3.5);
    maps_successor(arena, &lanes[WEST_IN], WEST_LEFT);
    maps_successor(arena, &lanes[WEST_LEFT], NORTH_OUT);
    maps_successor(arena, &lanes[EAST_IN_2], both_turn ? EAST_LEFT : EAST_ON);
    maps_successor(arena, &lanes[EAST_LEFT], SOUTH_OUT_2);
    turning->signals[0] = (struct traffic_signal){
        .sign = TRAFFIC_SIGN_GIVE_WAY_ONCOMING, .lane_count = 2, .lanes = turning->turns};
    map->signals = turning->signals;
    map->signal_count = 1;
    maps_scenario(arena, &run->scenario, (struct pose){-1e4, -1e4, 0}, 0, 0, 2);
}

/* Of 10 m/s: one who eases off has been left its way, as by drivers who accept a gap of 4.1 s. */
#define HINDERED_MPS 5.0

/* Car 0 comes from the west, car 1 from the east, so far before the middle; their lowest speeds. */
static void turning_drive(struct turning *turning, double west_m, double east_m, double slowest[2])
{
    struct run *run = &turning->run;
    maps_agent(&run->scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){-west_m, -1.75, 0}, 8.0);
    maps_agent(&run->scenario, 1, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){east_m, 1.75, PI_RAD},
               10.0);
    run->scenario.agents[0].idm.desired_speed_mps = 8.0;
    run->scenario.agents[1].idm.desired_speed_mps = 10.0;
    start(run, &world_object_ops, 0);
    slowest[0] = slowest[1] = 100.0;
    for (int k = 0; k < 500; k++) {
        tick(run, 0.0);
        struct box a = body(run, 0);
        struct box b = body(run, 1);
        EXPECT(!box_overlap(&a, &b));
        for (int i = 0; i < 2; i++) {
            slowest[i] = dmath_min(slowest[i], run->scene->agents[i].speed_mps);
        }
    }
    EXPECT(run->scene->agents[0].pose.y_m > 20.0); /* it has turned */
}

/* The one who turns lets the other pass, or goes first where that leaves the other its way; one
 * that is far off is not waited for. */
static void who_turns_left_gives_way_to_oncoming_traffic(void)
{
    uint32_t stood = 0;
    uint32_t went = 0;
    for (int east_m = 20; east_m <= 200; east_m += 4) {
        struct turning turning;
        double slowest[2];
        turning_begin(&turning, false);
        turning_drive(&turning, 60.0, east_m, slowest);
        EXPECT(slowest[1] > HINDERED_MPS);
        stood += slowest[0] < 2.0;
        went += slowest[0] > 4.0;
        end(&turning.run);
    }
    EXPECT(stood >= 6 && went >= 20);
}

/* Without the sign they meet: what the sign is for. */
static void without_the_rule_the_other_has_to_brake(void)
{
    uint32_t hindered = 0;
    for (int east_m = 20; east_m <= 200; east_m += 4) {
        struct turning turning;
        double slowest[2];
        turning_begin(&turning, false);
        turning.run.scenario.map.signal_count = 0;
        maps_agent(&turning.run.scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){-60, -1.75, 0},
                   8.0);
        maps_agent(&turning.run.scenario, 1, AGENT_CAR, BEHAVIOUR_IDM,
                   (struct pose){east_m, 1.75, PI_RAD}, 10.0);
        turning.run.scenario.agents[0].idm.desired_speed_mps = 8.0;
        turning.run.scenario.agents[1].idm.desired_speed_mps = 10.0;
        start(&turning.run, &world_object_ops, 0);
        slowest[1] = 100.0;
        for (int k = 0; k < 500; k++) {
            tick(&turning.run, 0.0);
            slowest[1] = dmath_min(slowest[1], turning.run.scene->agents[1].speed_mps);
        }
        hindered += slowest[1] < HINDERED_MPS;
        end(&turning.run);
    }
    EXPECT(hindered > 0);
}

/* Two who both turn left pass each other, and nobody waits for one that stops at red. */
static void turns_that_are_in_nobodys_way_are_not_held(void)
{
    for (int east_m = 40; east_m <= 80; east_m += 10) {
        struct turning turning;
        double slowest[2];
        turning_begin(&turning, true);
        turning_drive(&turning, 60.0, east_m, slowest);
        EXPECT(slowest[0] > 3.0 && slowest[1] > 3.0);
        EXPECT(turning.run.scene->agents[1].pose.y_m < -20.0);
        end(&turning.run);
    }
    struct signal_phase red = {TRAFFIC_LIGHT_RED, 100.0};
    struct turning turning;
    double slowest[2];
    turning_begin(&turning, false);
    turning.signals[1] = (struct traffic_signal){
        .lane_count = 1, .lanes = &turning.approach, .stop_m = 1, .phase_count = 1, .phases = &red};
    turning.run.scenario.map.signal_count = 2;
    turning_drive(&turning, 60.0, 70.0, slowest);
    EXPECT(slowest[0] > 3.0 && slowest[1] < 0.1);
    end(&turning.run);
}

int main(void)
{
    return TEST_RUN(
        TEST(phases_follow_one_another), TEST(nobody_passes_on_red_for_an_hour),
        TEST(branches_turn_lights), TEST(yellow_is_decided_by_braking), TEST(signs_without_others),
        TEST(signs_give_way), TEST(all_way_stops_are_first_come_first_served),
        TEST(priority_to_the_right_of_four), TEST(who_turns_left_gives_way_to_oncoming_traffic),
        TEST(without_the_rule_the_other_has_to_brake),
        TEST(turns_that_are_in_nobodys_way_are_not_held));
}
