/*
 * A small world for planner tests: a straight road or a constant bend, agents that move by simple
 * rules, ego as a kinematic bicycle with actuator lag, the real rasteriser for the BEV grid. It
 * shares no physics with the engine, so a planner that only works on one of them is found out.
 */
#ifndef SWERVE_TESTS_WORKER_DRIVE_H
#define SWERVE_TESTS_WORKER_DRIVE_H

#include "base/arena.h"
#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "engine/sensors/raster.h"
#include "schemas/observation.h"
#include "schemas/planner.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"
#include "worker/planner/planner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRIVE_AGENTS = 16, DRIVE_LANES = 3 };

/* Motion of an agent: straight on at its speed, changed by one event. */
struct drive_agent {
    double accel_mps2;   /* from event_s on; never below 0 m/s, nor beyond speed_max */
    double event_s;      /* when it starts; < 0: at the start */
    double event_ttc_s;  /* > 0: starts instead once ego is that many seconds before x_m */
    double speed_to_mps; /* speed set at the event, < 0: kept */
    double shift_m;      /* sideways move after the event, left of its heading positive .. */
    double shift_s;      /* .. within this time */
    bool started;
    double since_s;
    double base_x_m, base_y_m; /* unshifted position */
};

struct drive {
    struct arena arena;
    struct scenario scenario;
    struct scene scene;
    struct raster_layers *layers;
    struct drive_agent moves[DRIVE_AGENTS];
    uint64_t seed;
    double radius_m; /* of the bend, left positive; 0: straight */
    double limit_mps;
    double actuator_mps2;
    double grip_mps2;
    double route_offset_m; /* which lane the route follows: y of its centre at the start */
    double adjacent_left_m;
    double adjacent_right_m;
    struct swerve_route_point route[SWERVE_ROUTE_POINTS];
    uint8_t bev[BEV_BYTES];
    bool bev_dark; /* the lidar is dark: the old grid stays */
    int64_t bev_time_ns;
    /* results */
    bool collided;
    double impact_mps;
    double clearance_min_m;
    double accel_min_mps2;
    double command_min_mps2;
    double offset_max_m; /* from the route's centre */
    double jerk_max_mps3;
};

/* Left of the road axis at arc length s: the axis bends with the given radius. */
static struct pose drive_pose(const struct drive *drive, double s_m, double left_m)
{
    if (drive->radius_m == 0.0) {
        return (struct pose){s_m, left_m, 0.0};
    }
    double angle = s_m / drive->radius_m;
    double radius = drive->radius_m - left_m;
    return (struct pose){radius * dmath_sin(angle), drive->radius_m - radius * dmath_cos(angle),
                         angle};
}

/* Place of a point along and across the road axis. */
static void drive_locate(const struct drive *drive, double x_m, double y_m, double *s_m,
                         double *d_m)
{
    *s_m = x_m;
    *d_m = y_m;
    if (drive->radius_m != 0.0) {
        double r = drive->radius_m;
        double dx = r > 0 ? x_m : -x_m;
        double dy = r > 0 ? r - y_m : y_m - r;
        *s_m = fabs(r) * dmath_atan2(r > 0 ? dx : -dx, dy);
        *d_m = r > 0 ? r - sqrt(dx * dx + dy * dy) : sqrt(dx * dx + dy * dy) + r;
    }
}

static void drive_lane(struct drive *drive, struct lane *lane, double left_m)
{
    enum { POINTS = 160 };
    lane->point_count = POINTS;
    lane->centre_line = arena_alloc(&drive->arena, POINTS, sizeof *lane->centre_line);
    lane->width_m = arena_alloc(&drive->arena, POINTS, sizeof *lane->width_m);
    CHECK(lane->centre_line != NULL && lane->width_m != NULL);
    lane->left = lane->right = -1;
    for (int i = 0; i < POINTS; i++) {
        struct pose pose = drive_pose(drive, -100.0 + 5.0 * i, left_m);
        lane->centre_line[i] = (struct vec2){pose.x_m, pose.y_m};
        lane->width_m[i] = 3.5;
    }
}

/* A road of three lanes (y = -3.5, 0, 3.5); ego starts in the middle one, whose direction it has.
 */
static struct drive *drive_create(double speed_mps, double limit_mps, double radius_m)
{
    struct drive *drive = calloc(1, sizeof *drive);
    CHECK(drive != NULL);
    arena_init(&drive->arena, 16 << 20);
    drive->radius_m = radius_m;
    drive->limit_mps = limit_mps;
    drive->grip_mps2 = 9.81;
    drive->seed = 1;
    struct scenario *scenario = &drive->scenario;
    scenario->ego =
        (struct ego){.length_m = 4.6, .width_m = 1.9, .height_m = 1.5, .wheelbase_m = 2.8};
    scenario->agents = arena_alloc(&drive->arena, DRIVE_AGENTS, sizeof *scenario->agents);
    scenario->map.lane_count = DRIVE_LANES;
    scenario->map.lanes = arena_alloc(&drive->arena, DRIVE_LANES, sizeof *scenario->map.lanes);
    CHECK(scenario->agents != NULL && scenario->map.lanes != NULL);
    for (int i = 0; i < DRIVE_LANES; i++) {
        drive_lane(drive, &scenario->map.lanes[i], 3.5 * (i - 1));
    }
    scenario->conditions = (struct conditions){.friction = 1.0, .visibility_m = 200.0};
    drive->scene.conditions = scenario->conditions;
    drive->scene.ego = (struct ego_state){.speed_mps = speed_mps};
    struct error error;
    CHECK(raster_layers_create(&scenario->map, &drive->layers, &error) == STATUS_OK);
    drive->clearance_min_m = 1e9;
    return drive;
}

static void drive_destroy(struct drive *drive)
{
    raster_layers_destroy(drive->layers);
    arena_finish(&drive->arena);
    free(drive);
}

/* Adds a box at a pose; returns its motion for the caller to fill. */
static struct drive_agent *drive_add(struct drive *drive, struct pose pose, double length_m,
                                     double width_m, double speed_mps)
{
    uint32_t i = drive->scene.agent_count++;
    CHECK(i < DRIVE_AGENTS);
    drive->scenario.agent_count = drive->scene.agent_count;
    drive->scenario.agents[i] =
        (struct agent){.length_m = length_m, .width_m = width_m, .height_m = 1.6};
    drive->scene.agents[i] =
        (struct agent_state){.pose = pose, .speed_mps = speed_mps, .present = true};
    drive->moves[i] = (struct drive_agent){
        .event_s = 1e9, .speed_to_mps = -1.0, .base_x_m = pose.x_m, .base_y_m = pose.y_m};
    return &drive->moves[i];
}

static void drive_route(struct drive *drive)
{
    const struct ego_state *ego = &drive->scene.ego;
    double s;
    double d;
    drive_locate(drive, ego->pose.x_m, ego->pose.y_m, &s, &d);
    double c = dmath_cos(ego->pose.heading_rad);
    double sine = dmath_sin(ego->pose.heading_rad);
    for (int i = 0; i < SWERVE_ROUTE_POINTS; i++) {
        struct pose pose = drive_pose(drive, s + SWERVE_ROUTE_STEP_M * i, drive->route_offset_m);
        double dx = pose.x_m - ego->pose.x_m;
        double dy = pose.y_m - ego->pose.y_m;
        drive->route[i] = (struct swerve_route_point){
            .x_m = (float)(c * dx + sine * dy),
            .y_m = (float)(c * dy - sine * dx),
            .speed_limit_mps = (float)drive->limit_mps,
            .left_m = 1.75f,
            .right_m = 1.75f,
            .adjacent_left_m = (float)drive->adjacent_left_m,
            .adjacent_right_m = (float)drive->adjacent_right_m,
        };
    }
    drive->offset_max_m = fmax(drive->offset_max_m, fabs(d - drive->route_offset_m));
}

/* Sight of ego now; points into the drive. */
static struct swerve_observation drive_observe(struct drive *drive, uint32_t session)
{
    const struct ego_state *ego = &drive->scene.ego;
    int64_t now_ns = drive->scene.tick * TICK_NS;
    drive_route(drive);
    if (!drive->bev_dark) {
        raster_bev(drive->layers, &drive->scenario, &drive->scene, drive->seed, drive->bev);
        drive->bev_time_ns = now_ns;
    }
    return (struct swerve_observation){
        .session = session,
        .tick = drive->scene.tick,
        .time_ns = now_ns,
        .bev_time_ns = drive->bev_time_ns,
        .x_m = ego->pose.x_m,
        .y_m = ego->pose.y_m,
        .heading_rad = ego->pose.heading_rad,
        .speed_mps = ego->speed_mps,
        .accel_mps2 = ego->accel_mps2,
        .lat_accel_mps2 = ego->lat_accel_mps2,
        .yaw_rate_rps = ego->yaw_rate_rps,
        .steer_rad = ego->steer_rad,
        .route_count = SWERVE_ROUTE_POINTS,
        .route = drive->route,
        .bev = drive->bev,
    };
}

static struct swerve_episode drive_episode(const struct drive *drive, uint32_t session)
{
    return (struct swerve_episode){
        .session = session,
        .horizon_ticks = 600,
        .seed = drive->seed,
        .tick_s = TICK_S,
        .scenario_id = "drive",
        .prompt = "",
        .ego_length_m = drive->scenario.ego.length_m,
        .ego_width_m = drive->scenario.ego.width_m,
        .ego_wheelbase_m = drive->scenario.ego.wheelbase_m,
    };
}

static void drive_move_agents(struct drive *drive)
{
    double now_s = drive->scene.tick * TICK_S;
    const struct ego_state *ego = &drive->scene.ego;
    for (uint32_t i = 0; i < drive->scene.agent_count; i++) {
        struct drive_agent *move = &drive->moves[i];
        struct agent_state *agent = &drive->scene.agents[i];
        double tta_s = (agent->pose.x_m - ego->pose.x_m) / fmax(ego->speed_mps, 0.1);
        if (!move->started &&
            (now_s >= move->event_s || (move->event_ttc_s > 0 && tta_s <= move->event_ttc_s))) {
            move->started = true;
            agent->speed_mps = move->speed_to_mps >= 0 ? move->speed_to_mps : agent->speed_mps;
        }
        if (move->started) {
            agent->speed_mps = fmax(agent->speed_mps + move->accel_mps2 * TICK_S, 0.0);
            move->since_s += TICK_S;
        }
        double c = dmath_cos(agent->pose.heading_rad);
        double s = dmath_sin(agent->pose.heading_rad);
        move->base_x_m += agent->speed_mps * TICK_S * c;
        move->base_y_m += agent->speed_mps * TICK_S * s;
        double u = move->shift_s > 0 ? dmath_clamp(move->since_s / move->shift_s, 0.0, 1.0) : 0.0;
        double shift = move->shift_m * u * u * (3.0 - 2.0 * u);
        agent->pose.x_m = move->base_x_m - s * shift;
        agent->pose.y_m = move->base_y_m + c * shift;
    }
}

static void drive_judge(struct drive *drive)
{
    const struct ego_state *ego = &drive->scene.ego;
    struct box box = box_make(ego->pose, drive->scenario.ego.length_m, drive->scenario.ego.width_m);
    for (uint32_t i = 0; i < drive->scene.agent_count; i++) {
        const struct agent_state *agent = &drive->scene.agents[i];
        struct box other = box_make(agent->pose, drive->scenario.agents[i].length_m,
                                    drive->scenario.agents[i].width_m);
        double distance = box_distance_m(&box, &other);
        drive->clearance_min_m = fmin(drive->clearance_min_m, distance);
        if (distance <= 0.0 && !drive->collided) {
            drive->collided = true;
            drive->impact_mps = ego->speed_mps;
        }
    }
}

/* One tick of physics under an action. */
static void drive_step(struct drive *drive, struct swerve_action action)
{
    enum { SUBSTEPS = 10 };
    struct ego_state *ego = &drive->scene.ego;
    double before_mps = ego->speed_mps;
    double before_mps2 = ego->accel_mps2;
    for (int i = 0; i < SUBSTEPS; i++) {
        double dt = TICK_S / SUBSTEPS;
        double command = dmath_clamp(action.accel_mps2, -drive->grip_mps2, 4.0);
        drive->actuator_mps2 += (command - drive->actuator_mps2) * dt / 0.2;
        ego->steer_rad += dmath_clamp(action.steer_rad - ego->steer_rad, -0.8 * dt, 0.8 * dt);
        double next = fmax(ego->speed_mps + drive->actuator_mps2 * dt, 0.0);
        double mean = 0.5 * (ego->speed_mps + next);
        double beta = dmath_atan(0.5 * dmath_tan(ego->steer_rad));
        double yaw_rate = mean * dmath_sin(beta) / (0.5 * drive->scenario.ego.wheelbase_m);
        ego->pose.x_m += mean * dt * dmath_cos(ego->pose.heading_rad + beta);
        ego->pose.y_m += mean * dt * dmath_sin(ego->pose.heading_rad + beta);
        ego->pose.heading_rad += yaw_rate * dt;
        ego->yaw_rate_rps = yaw_rate;
        ego->speed_mps = next;
    }
    ego->accel_mps2 = (ego->speed_mps - before_mps) / TICK_S;
    ego->lat_accel_mps2 = ego->speed_mps * ego->yaw_rate_rps;
    drive_move_agents(drive);
    drive->scene.tick++;
    drive_judge(drive);
    drive->accel_min_mps2 = fmin(drive->accel_min_mps2, ego->accel_mps2);
    drive->command_min_mps2 = fmin(drive->command_min_mps2, action.accel_mps2);
    if (ego->speed_mps > 0.0) {
        drive->jerk_max_mps3 =
            fmax(drive->jerk_max_mps3, fabs(ego->accel_mps2 - before_mps2) / TICK_S);
    }
}

/* Drives `ticks` ticks in session 0; stops at a collision. The planner's failure fails the test. */
static void drive_run(struct drive *drive, struct planner *planner, uint32_t ticks)
{
    struct error error = {0};
    for (uint32_t i = 0; i < ticks && !drive->collided; i++) {
        struct swerve_observation seen = drive_observe(drive, 0);
        struct swerve_action action;
        uint8_t failed = 0;
        CHECK(planner_act(planner, 1, &seen, &action, &failed, &error) == STATUS_OK);
        CHECK(failed == 0);
        drive_step(drive, action);
    }
}

#endif
