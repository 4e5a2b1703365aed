/*
 * builtin:idm drives by a list of objects: it keeps the lane by pure pursuit on its route and the
 * gap to whatever stands in its way by the Intelligent Driver Model (Treiber, Hennecke, Helbing,
 * Phys. Rev. E 62, 2000). The reference planner reads a grid; this one is what the same manners
 * make of perfect, or of merely unoccluded, knowledge (`seen+builtin:idm`).
 *
 * In its way is what lies in the corridor of its own width along the route, now or within 2 s if it
 * goes on as it does: one that crosses counts as standing where it enters. So does the stop line
 * of a light or sign that tells it to stop. Memory is fixed per session: its body, and the stop
 * sign that it stood at.
 */
#include "worker/planner/builtin/planner_builtin.h"
#include "worker/planner/builtin/planner_builtin_follow.h"

#include "base/check.h"
#include "base/dmath.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MARGIN_M 0.3
#define FORESIGHT_S 2.0
#define FORESIGHT_STEP_S 0.5
#define CROSSING_SIN 0.5 /* beyond 30 degrees it crosses, below it merges */
#define DECEL_MAX_MPS2 9.0

struct idm_session {
    double wheelbase_m, length_m, width_m;
    struct planner_halts halts;
};

struct idm {
    struct planner_builtin base;
    struct planner_manners manners;
    struct idm_session sessions[];
};

static int idm_open(void **planner, const char *config, uint32_t session_count, char *error_text,
                    uint32_t error_bytes)
{
    struct planner_manners manners = {.headway_s = 1.5,
                                      .speed_factor = 1.0,
                                      .min_gap_m = 2.0,
                                      .accel_mps2 = 1.5,
                                      .decel_mps2 = 2.0};
    const struct planner_parameter parameters[] = {
        {"headway_s", 0.3, 5.0, &manners.headway_s},
        {"speed_factor", 0.2, 1.5, &manners.speed_factor},
    };
    if (planner_config_read(config, parameters, COUNT_OF(parameters), error_text, error_bytes) !=
        0) {
        return 1;
    }
    struct idm *self = planner_builtin_create(sizeof *self, sizeof self->sessions[0], session_count,
                                              error_text, error_bytes);
    if (self == NULL) {
        return 1;
    }
    self->manners = manners;
    *planner = self;
    return 0;
}

static int idm_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                     uint32_t error_bytes)
{
    struct idm *self = planner;
    struct idm_session *session = &self->sessions[episode->session];
    if (episode->objects_source == SWERVE_OBJECTS_NONE) {
        snprintf(error_text, error_bytes,
                 "it drives by a list of objects, and this world has none (expected the object or "
                 "replay world, or a learned one with --layout map or none)");
        return 1;
    }
    *session = (struct idm_session){.wheelbase_m = episode->ego_wheelbase_m,
                                    .length_m = episode->ego_length_m,
                                    .width_m = episode->ego_width_m};
    return 0;
}

/* Acceleration that one object asks for, if it is or comes in the way. */
static double yield_to(const struct idm *self, const struct idm_session *session,
                       const struct planner_route *route, const struct swerve_object *object)
{
    double speed_mps = route->seen->speed_mps;
    double half_m = 0.5 * (session->width_m + object->length_m + object->width_m);
    if (planner_route_misses(route, object, FORESIGHT_S, half_m + MARGIN_M)) {
        return self->manners.accel_mps2;
    }
    for (double t_s = 0.0; t_s <= FORESIGHT_S; t_s += FORESIGHT_STEP_S) {
        struct planner_place at;
        if (!planner_place_find(route, object->x_m + t_s * object->vx_mps,
                                object->y_m + t_s * object->vy_mps, object->heading_rad, &at)) {
            continue;
        }
        struct planner_half half = planner_place_half(&at, object->length_m, object->width_m);
        double along_m = half.along_m;
        double across_m = half.across_m;
        double front_m = 0.5 * session->length_m;
        bool in_way = fabs(at.offset_m) < 0.5 * session->width_m + across_m + MARGIN_M;
        bool passed = t_s > 0.0 && speed_mps * t_s + front_m > at.s_m + along_m;
        if (!in_way || passed || at.s_m + along_m < front_m) {
            continue;
        }
        double own_mps = sqrt(object->vx_mps * object->vx_mps + object->vy_mps * object->vy_mps);
        bool crosses = fabs(at.sine) > CROSSING_SIN;
        double lead_mps = crosses ? 0.0 : own_mps * at.cosine;
        /* One that merges is where it is now, as much as later. */
        double gap_m = at.s_m - along_m - front_m - (crosses ? 0.0 : lead_mps * t_s);
        return planner_idm_behind(&self->manners, speed_mps, gap_m, lead_mps);
    }
    return self->manners.accel_mps2;
}

static struct swerve_action drive(const struct idm *self, struct idm_session *session,
                                  const struct swerve_observation *seen,
                                  const struct swerve_surroundings *around)
{
    const struct planner_manners *manners = &self->manners;
    double accel_mps2 = planner_idm_free(manners, seen->speed_mps,
                                         planner_allowed_mps(manners, seen, PLANNER_NO_LIMIT_MPS));
    accel_mps2 = dmath_min(accel_mps2, planner_idm_signals(manners, seen, around, session->length_m,
                                                           session->width_m, &session->halts));
    struct planner_route route;
    planner_route_take(seen, &route);
    for (uint32_t i = 0; i < around->object_count; i++) {
        accel_mps2 = dmath_min(accel_mps2, yield_to(self, session, &route, &around->objects[i]));
    }
    return (struct swerve_action){dmath_clamp(accel_mps2, -DECEL_MAX_MPS2, manners->accel_mps2),
                                  planner_keep_lane(seen, session->wheelbase_m, 0.0)};
}

static int idm_plan(void *planner, uint32_t count, const struct swerve_observation *observations,
                    const struct swerve_surroundings *surroundings, struct swerve_answer *answers,
                    uint8_t *failed, char *error_text, uint32_t error_bytes)
{
    struct idm *self = planner;
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        struct idm_session *session = &self->sessions[observations[i].session];
        failed[i] = observations[i].route_count < 2;
        if (!failed[i]) {
            answers[i].action = drive(self, session, &observations[i], &surroundings[i]);
        }
    }
    return 0;
}

const struct swerve_planner_ops planner_builtin_idm_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .wants = SWERVE_WANTS_OBJECTS | SWERVE_WANTS_SIGNALS,
    .name = "idm",
    .open = idm_open,
    .close = free,
    .reset = idm_reset,
    .plan = idm_plan,
    .fork = planner_builtin_fork,
};
