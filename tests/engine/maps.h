/*
 * Small maps and scenarios built in memory for the engine's tests: straight roads of several lanes,
 * arcs, and chains of them. Everything comes from one arena that the test finishes.
 */
#ifndef SWERVE_TESTS_ENGINE_MAPS_H
#define SWERVE_TESTS_ENGINE_MAPS_H

#include "base/arena.h"
#include "base/check.h"
#include "base/units.h"
#include "schemas/scenario.h"

#include <math.h>
#include <stdio.h>

static inline struct lane *maps_lanes(struct arena *arena, struct map *map, uint32_t count)
{
    map->lanes = arena_alloc(arena, count, sizeof *map->lanes);
    map->lane_count = count;
    CHECK(map->lanes != NULL);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(map->lanes[i].id, sizeof map->lanes[i].id, "lane%u", i);
        map->lanes[i].left = -1;
        map->lanes[i].right = -1;
        map->lanes[i].speed_limit_mps = 30.0;
    }
    snprintf(map->id, sizeof map->id, "map");
    return map->lanes;
}

static inline void maps_points(struct arena *arena, struct lane *lane, uint32_t count, double width)
{
    lane->point_count = count;
    lane->centre_line = arena_alloc(arena, count, sizeof *lane->centre_line);
    lane->width_m = arena_alloc(arena, count, sizeof *lane->width_m);
    CHECK(lane->centre_line != NULL && lane->width_m != NULL);
    for (uint32_t i = 0; i < count; i++) {
        lane->width_m[i] = width;
    }
}

static inline void maps_straight(struct arena *arena, struct lane *lane, struct pose start,
                                 double length, double width)
{
    maps_points(arena, lane, 2, width);
    lane->centre_line[0] = (struct vec2){start.x_m, start.y_m};
    lane->centre_line[1] = (struct vec2){start.x_m + length * cos(start.heading_rad),
                                         start.y_m + length * sin(start.heading_rad)};
}

/* An arc about `center`, from angle0 to angle1 (either way), `count` points. */
static inline void maps_arc(struct arena *arena, struct lane *lane, struct vec2 center,
                            double radius, double angle0, double angle1, uint32_t count,
                            double width)
{
    maps_points(arena, lane, count, width);
    for (uint32_t i = 0; i < count; i++) {
        double angle = angle0 + (angle1 - angle0) * i / (count - 1);
        lane->centre_line[i] =
            (struct vec2){center.x_m + radius * cos(angle), center.y_m + radius * sin(angle)};
    }
}

static inline void maps_successor(struct arena *arena, struct lane *lane, uint32_t next)
{
    if (lane->successors == NULL) {
        lane->successors = arena_alloc(arena, LIMIT_LANE_LINKS, sizeof *lane->successors);
        CHECK(lane->successors != NULL);
    }
    lane->successors[lane->successor_count++] = next;
}

/* `count` parallel eastbound lanes of 3.5 m; lane 0 is the rightmost, centred on y = 0. */
static inline void maps_motorway(struct arena *arena, struct map *map, uint32_t count,
                                 double length)
{
    struct lane *lanes = maps_lanes(arena, map, count);
    for (uint32_t i = 0; i < count; i++) {
        maps_straight(arena, &lanes[i], (struct pose){0.0, 3.5 * i, 0.0}, length, 3.5);
        lanes[i].right = (int32_t)i - 1;
        lanes[i].left = i + 1 < count ? (int32_t)i + 1 : -1;
    }
}

/* A scenario on scenario->map with ego at a pose and a route of one lane; `agents` empty agents. */
static inline void maps_scenario(struct arena *arena, struct scenario *scenario, struct pose pose,
                                 double speed_mps, uint32_t lane, uint32_t agents)
{
    snprintf(scenario->id, sizeof scenario->id, "test");
    scenario->ego = (struct ego){
        .pose = pose,
        .speed_mps = speed_mps,
        .length_m = 4.6,
        .width_m = 1.9,
        .height_m = 1.5,
        .wheelbase_m = 2.8,
        .goal_bounds = {(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN,
                        (double)NAN},
        .route_count = 1,
        .route = arena_alloc(arena, 1, sizeof(uint32_t)),
    };
    scenario->agents = arena_alloc(arena, agents, sizeof *scenario->agents);
    CHECK(scenario->ego.route != NULL && scenario->agents != NULL);
    scenario->ego.route[0] = lane;
    scenario->agent_count = agents;
    scenario->conditions = (struct conditions){.friction = 1.0, .visibility_m = 200.0};
    scenario->horizon_ticks = 600;
    for (uint32_t i = 0; i < agents; i++) {
        snprintf(scenario->agents[i].id, sizeof scenario->agents[i].id, "agent%u", i);
    }
}

static inline struct agent *maps_agent(struct scenario *scenario, uint32_t index,
                                       enum agent_kind kind, enum behaviour_kind behaviour,
                                       struct pose pose, double speed_mps)
{
    struct agent *agent = &scenario->agents[index];
    bool person = kind == AGENT_PEDESTRIAN;
    agent->kind = kind;
    agent->behaviour = behaviour;
    agent->pose = pose;
    agent->speed_mps = speed_mps;
    agent->length_m = person ? 0.5 : 4.5;
    agent->width_m = person ? 0.5 : 1.8;
    agent->height_m = 1.6;
    agent->idm = (struct idm){
        .desired_speed_mps = speed_mps,
        .time_headway_s = 1.5,
        .min_gap_m = 2.0,
        .accel_max_mps2 = 1.5,
        .decel_comfort_mps2 = 2.0,
        .politeness = 0.2,
        .lane_changes = false,
        .sees_ego = true,
    };
    return agent;
}

#endif
