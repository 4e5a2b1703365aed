/*
 * The physics benchmark. Processor time rather than wall time, so that neighbours on the machine
 * do not count; the agents are counted as present before each step.
 */
#include "engine/bench/bench.h"

#include "base/array.h"
#include "base/dmath.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 3
#define LANE_WIDTH_M 3.5
#define STRAIGHT_M 700.0
#define BEND_RADIUS_M 600.0
#define BEND_RAD 0.8
#define BEND_POINTS 100
#define AGENTS 20

/* Straight, then a left bend; lane 0 is the rightmost. */
static void draw_lane(struct lane *lane, uint32_t index)
{
    double offset_m = LANE_WIDTH_M * index;
    lane->centre_line[0] = (struct vec2){0.0, offset_m};
    for (uint32_t i = 0; i < BEND_POINTS; i++) {
        double angle = BEND_RAD * i / (BEND_POINTS - 1);
        double radius_m = BEND_RADIUS_M - offset_m;
        lane->centre_line[i + 1] = (struct vec2){STRAIGHT_M + radius_m * dmath_sin(angle),
                                                 BEND_RADIUS_M - radius_m * dmath_cos(angle)};
    }
    for (uint32_t i = 0; i < lane->point_count; i++) {
        lane->width_m[i] = LANE_WIDTH_M;
    }
}

static enum status make_lanes(struct arena *arena, struct map *map, struct error *error)
{
    snprintf(map->id, sizeof map->id, "bench");
    map->lane_count = LANES;
    map->lanes = arena_alloc(arena, LANES, sizeof *map->lanes);
    for (uint32_t i = 0; map->lanes != NULL && i < LANES; i++) {
        struct lane *lane = &map->lanes[i];
        snprintf(lane->id, sizeof lane->id, "lane%u", i);
        lane->speed_limit_mps = 33.0;
        lane->right = (int32_t)i - 1;
        lane->left = i + 1 < LANES ? (int32_t)i + 1 : -1;
        lane->point_count = BEND_POINTS + 1;
        lane->centre_line = arena_alloc(arena, lane->point_count, sizeof *lane->centre_line);
        lane->width_m = arena_alloc(arena, lane->point_count, sizeof *lane->width_m);
        if (lane->centre_line == NULL || lane->width_m == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the bench map");
        }
        draw_lane(lane, i);
    }
    return map->lanes != NULL ? STATUS_OK
                              : error_set(error, STATUS_NO_MEMORY, "no memory for the bench map");
}

enum status engine_bench_scenario(struct arena *arena, struct scenario *out, struct error *error)
{
    memset(out, 0, sizeof *out);
    TRY(make_lanes(arena, &out->map, error));
    snprintf(out->id, sizeof out->id, "bench");
    out->ego = (struct ego){
        .pose = {200.0, LANE_WIDTH_M, 0.0},
        .speed_mps = 25.0,
        .length_m = 4.6,
        .width_m = 1.9,
        .height_m = 1.5,
        .wheelbase_m = 2.8,
        .route_count = 1,
        .route = arena_alloc(arena, 1, sizeof(uint32_t)),
    };
    out->agents = arena_alloc(arena, AGENTS, sizeof *out->agents);
    if (out->ego.route == NULL || out->agents == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the bench scenario");
    }
    out->ego.route[0] = 1;
    out->agent_count = AGENTS;
    out->conditions = (struct conditions){.friction = 1.0, .visibility_m = 200.0};
    out->horizon_ticks = 200;
    for (uint32_t i = 0; i < AGENTS; i++) {
        struct agent *agent = &out->agents[i];
        bool truck = i % 7 == 3;
        snprintf(agent->id, sizeof agent->id, "vehicle%u", i);
        agent->kind = truck ? AGENT_TRUCK : AGENT_CAR;
        agent->behaviour = BEHAVIOUR_IDM;
        agent->length_m = truck ? 12.0 : 4.5;
        agent->width_m = truck ? 2.5 : 1.8;
        agent->height_m = truck ? 3.5 : 1.5;
        agent->pose = (struct pose){40.0 + 18.0 * i, LANE_WIDTH_M * (i % LANES), 0.0};
        if (i % LANES == 1 && agent->pose.x_m > 170.0 && agent->pose.x_m < 230.0) {
            agent->pose.x_m += 380.0; /* not where ego is */
        }
        agent->speed_mps = 22.0 + i % 5;
        agent->idm = (struct idm){
            .desired_speed_mps = truck ? 23.0 : 26.0 + 2.0 * (i % 4),
            .time_headway_s = 1.2,
            .min_gap_m = 2.0,
            .accel_max_mps2 = truck ? 0.8 : 1.5,
            .decel_comfort_mps2 = 2.0,
            .politeness = 0.2,
            .lane_changes = true,
            .sees_ego = true,
        };
    }
    return STATUS_OK;
}

static enum status start_all(struct world *world, struct prepared *prepared, bool release,
                             struct error *error)
{
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (release) {
            world->ops->slot_release(world, i);
        }
        TRY(world->ops->slot_reset(world, i, prepared, i, error));
    }
    return STATUS_OK;
}

enum status engine_bench_physics(struct prepared *prepared, uint32_t slots, uint32_t ticks,
                                 const struct clock *clock, int64_t *agent_steps, int64_t *ns,
                                 struct error *error)
{
    const struct world_ops *ops = &world_object_ops;
    struct world *world = NULL;
    TRY(ops->open(&(struct world_config){.slot_count = slots}, &world, error));
    enum status status = STATUS_OK;
    struct action *actions = calloc(slots, sizeof *actions);
    uint8_t *active = malloc(slots);
    if (actions == NULL || active == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for %u slots", slots);
        goto done;
    }
    memset(active, 1, slots);
    status = start_all(world, prepared, false, error);
    int64_t total_ns = 0;
    int64_t steps = 0;
    uint32_t horizon = prepared_scenario(prepared)->horizon_ticks;
    for (uint32_t tick = 0; tick < ticks && status == STATUS_OK;) {
        for (uint32_t i = 0; i < slots; i++) {
            const struct scene *scene = ops->slot_scene(world, i);
            for (uint32_t k = 0; k < scene->agent_count; k++) {
                steps += scene->agents[k].present;
            }
        }
        int64_t start_ns = clock->thread_cpu_ns(clock->context);
        ops->step(world, actions, active);
        total_ns += clock->thread_cpu_ns(clock->context) - start_ns;
        tick++;
        if (horizon > 0 && tick % horizon == 0) {
            status = start_all(world, prepared, true, error);
        }
    }
    if (status == STATUS_OK) {
        *agent_steps = steps;
        *ns = total_ns;
    }
done:
    free(actions);
    free(active);
    ops->close(world);
    return status;
}

double engine_bench_median(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, array_compare_double);
    return values[count / 2];
}
