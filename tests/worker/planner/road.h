/*
 * A straight road for tests of planners that drive by a list of objects: ego anywhere on it,
 * objects anywhere, no world behind it.
 */
#ifndef SWERVE_TESTS_WORKER_PLANNER_ROAD_H
#define SWERVE_TESTS_WORKER_PLANNER_ROAD_H

#include "base/check.h"
#include "base/dmath.h"
#include "base/geom.h"
#include "tests/harness.h"
#include "worker/planner/planner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define EGO_LENGTH_M 4.3
#define EGO_WIDTH_M 1.9

/* Of a drive: both cars, and the width of the lanes. */
struct sizes {
    double length_m, width_m, lane_m;
};

static const struct sizes OWN_SIZES = {EGO_LENGTH_M, EGO_WIDTH_M, 3.5};

struct road {
    struct sizes sizes;
    struct planner *planner;
    struct swerve_route_point route[SWERVE_ROUTE_POINTS];
    uint32_t tick;
    uint32_t light;  /* of a signal; OFF: there is none */
    double stop_x_m; /* its stop line */
};

static inline void road_reset(struct road *road, uint32_t session,
                              enum swerve_objects_source source, enum status wanted)
{
    struct error error = {0};
    const struct swerve_episode episode = {.session = session,
                                           .ego_length_m = road->sizes.length_m,
                                           .ego_width_m = road->sizes.width_m,
                                           .ego_wheelbase_m = 2.8,
                                           .objects_source = (uint32_t)source};
    EXPECT_INT(planner_reset(road->planner, &episode, &error), wanted);
}

static inline void road_open_sized(struct road *road, const char *spec, double limit_mps,
                                   struct sizes sizes)
{
    struct planner_config config = {.session_count = 2};
    struct error error = {0};
    *road = (struct road){.sizes = sizes};
    EXPECT_OK(planner_open(spec, &config, &road->planner, &error), error);
    for (uint32_t i = 0; i < SWERVE_ROUTE_POINTS; i++) {
        road->route[i] = (struct swerve_route_point){.x_m = (float)(4.0 * i),
                                                     .speed_limit_mps = (float)limit_mps,
                                                     .left_m = (float)(0.5 * sizes.lane_m),
                                                     .right_m = (float)(0.5 * sizes.lane_m)};
    }
    road_reset(road, 0, SWERVE_OBJECTS_SEEN, STATUS_OK);
}

static inline void road_open(struct road *road, const char *spec, double limit_mps)
{
    road_open_sized(road, spec, limit_mps, OWN_SIZES);
}

/* Ego on its lane, or beside it, looking along it. */
struct road_ego {
    double x_m, y_m, speed_mps, accel_mps2;
};

static inline struct swerve_action road_ask(struct road *road, uint32_t session,
                                            struct road_ego ego,
                                            const struct swerve_object *objects, uint32_t count)
{
    struct swerve_route_point route[SWERVE_ROUTE_POINTS];
    for (uint32_t i = 0; i < SWERVE_ROUTE_POINTS; i++) {
        route[i] = road->route[i];
        route[i].y_m -= (float)ego.y_m;
    }
    const struct swerve_signal_state signal = {
        0, road->light, road->stop_x_m - ego.x_m - 0.5 * road->sizes.length_m};
    const struct swerve_observation seen = {.session = session,
                                            .tick = road->tick,
                                            .x_m = ego.x_m,
                                            .y_m = ego.y_m,
                                            .speed_mps = ego.speed_mps,
                                            .accel_mps2 = ego.accel_mps2,
                                            .route_count = SWERVE_ROUTE_POINTS,
                                            .route = route};
    struct swerve_surroundings around = {.objects_source = SWERVE_OBJECTS_SEEN,
                                         .object_count = count,
                                         .objects = objects,
                                         .signal_count = road->light != SWERVE_SIGNAL_OFF,
                                         .signals = &signal};
    struct swerve_action action;
    uint8_t failed = 0;
    struct error error = {0};
    EXPECT_OK(planner_plan(road->planner, 1, &seen, &around, &action, &failed, &error), error);
    EXPECT(failed == 0);
    return action;
}

static inline double road_accel(struct road *road, uint32_t session, double x_m, double speed_mps,
                                double accel_mps2, const struct swerve_object *objects,
                                uint32_t count)
{
    struct swerve_action action =
        road_ask(road, session, (struct road_ego){x_m, 0.0, speed_mps, accel_mps2}, objects, count);
    EXPECT(action.steer_rad == 0.0);
    return action.accel_mps2;
}

static inline struct swerve_object car_at(double x_m, double y_m, double vx_mps, double vy_mps)
{
    return (struct swerve_object){.id = 7,
                                  .length_m = EGO_LENGTH_M,
                                  .width_m = EGO_WIDTH_M,
                                  .height_m = 1.5,
                                  .x_m = x_m,
                                  .y_m = y_m,
                                  .vx_mps = vx_mps,
                                  .vy_mps = vy_mps};
}

#endif
