/*
 * builtin:idm drives by a list of objects: it keeps the lane by pure pursuit on its route and the
 * gap to whatever stands in its way by the Intelligent Driver Model (Treiber, Hennecke, Helbing,
 * Phys. Rev. E 62, 2000). The reference planner reads a grid; this one is what the same manners
 * make of perfect, or of merely unoccluded, knowledge (`seen+builtin:idm`).
 *
 * In its way is what lies in the corridor of its own width along the route, now or within 2 s if it
 * goes on as it does: one that crosses counts as standing where it enters. So does the stop line
 * of a signal that tells it to stop. Memory is fixed per session and written at reset alone.
 */
#include "worker/planner/builtin/planner_builtin.h"

#include "base/check.h"
#include "base/dmath.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MARGIN_M 0.3
#define FORESIGHT_S 2.0
#define FORESIGHT_STEP_S 0.5
#define CROSSING_SIN 0.5 /* beyond 30 degrees it crosses, below it merges */
#define MIN_GAP_M 2.0
#define ACCEL_MPS2 1.5
#define DECEL_MPS2 2.0
#define DECEL_MAX_MPS2 9.0
#define BEND_LAT_MPS2 2.0
#define YELLOW_DECEL_MPS2 3.0
#define NO_LIMIT_MPS 13.9

struct idm_session {
    double wheelbase_m, length_m, width_m;
};

struct idm {
    struct planner_builtin base;
    double headway_s;
    double speed_factor;
    struct idm_session sessions[];
};

/* Something on the route, measured along it. */
struct idm_place {
    double s_m, offset_m;
    double cosine, sine; /* of a heading relative to the route's */
};

static int idm_open(void **planner, const char *config, uint32_t session_count, char *error_text,
                    uint32_t error_bytes)
{
    double headway_s = 1.5;
    double speed_factor = 1.0;
    const struct planner_parameter parameters[] = {
        {"headway_s", 0.3, 5.0, &headway_s},
        {"speed_factor", 0.2, 1.5, &speed_factor},
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
    self->headway_s = headway_s;
    self->speed_factor = speed_factor;
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

/* The foot of a point (world frame) on the route ahead, with the direction of a heading there.
 * False: it lies behind ego's foot point or past the route's end. */
static bool find_place(const struct swerve_observation *seen, double x_m, double y_m,
                       double heading_rad, struct idm_place *out)
{
    double sine;
    double cosine;
    double best = 1e300;
    bool found = false;
    dmath_sincos(seen->heading_rad, &sine, &cosine);
    double px = cosine * (x_m - seen->x_m) + sine * (y_m - seen->y_m);
    double py = cosine * (y_m - seen->y_m) - sine * (x_m - seen->x_m);
    for (uint32_t i = 0; i + 1 < seen->route_count; i++) {
        const struct swerve_route_point *a = &seen->route[i];
        double dx = (double)a[1].x_m - (double)a->x_m;
        double dy = (double)a[1].y_m - (double)a->y_m;
        double length = sqrt(dx * dx + dy * dy);
        if (length < 1e-6) {
            continue;
        }
        double along = ((px - (double)a->x_m) * dx + (py - (double)a->y_m) * dy) / length;
        double share = dmath_clamp(along, 0.0, length);
        double ex = px - (double)a->x_m - share * dx / length;
        double ey = py - (double)a->y_m - share * dy / length;
        double squared = ex * ex + ey * ey;
        if (squared < best) {
            best = squared;
            double off = ((py - (double)a->y_m) * dx - (px - (double)a->x_m) * dy) / length;
            dmath_sincos(heading_rad - seen->heading_rad - dmath_atan2(dy, dx), &out->sine,
                         &out->cosine);
            out->s_m = i * SWERVE_ROUTE_STEP_M + share;
            out->offset_m = off;
            found = (i > 0 || along >= 0.0) && (i + 2 < seen->route_count || along <= length);
        }
    }
    return found;
}

/* IDM's acceleration behind a leader. */
static double behind(const struct idm *self, double speed_mps, double gap_m, double lead_mps)
{
    double wanted_m = speed_mps * self->headway_s +
                      speed_mps * (speed_mps - lead_mps) / (2.0 * sqrt(ACCEL_MPS2 * DECEL_MPS2));
    double ratio = (MIN_GAP_M + dmath_max(wanted_m, 0.0)) / dmath_max(gap_m, 0.1);
    return ACCEL_MPS2 * (1.0 - ratio * ratio);
}

/* What one object asks for, if it is or comes in the way. */
static double yield_to(const struct idm *self, const struct idm_session *session,
                       const struct swerve_observation *seen, const struct swerve_object *object)
{
    double speed_mps = seen->speed_mps;
    for (double t_s = 0.0; t_s <= FORESIGHT_S; t_s += FORESIGHT_STEP_S) {
        struct idm_place at;
        if (!find_place(seen, object->x_m + t_s * object->vx_mps,
                        object->y_m + t_s * object->vy_mps, object->heading_rad, &at)) {
            continue;
        }
        double along_m =
            0.5 * (fabs(at.cosine) * object->length_m + fabs(at.sine) * object->width_m);
        double across_m =
            0.5 * (fabs(at.sine) * object->length_m + fabs(at.cosine) * object->width_m);
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
        return behind(self, speed_mps, gap_m, lead_mps);
    }
    return ACCEL_MPS2;
}

/* What the signals ask for. */
static double obey(const struct idm *self, const struct swerve_observation *seen,
                   const struct swerve_surroundings *around)
{
    double accel_mps2 = ACCEL_MPS2;
    for (uint32_t i = 0; i < around->signal_count; i++) {
        const struct swerve_signal_state *signal = &around->signals[i];
        double gap_m = signal->stop_ahead_m;
        bool stops = signal->light == SWERVE_SIGNAL_RED ||
                     signal->light == SWERVE_SIGNAL_RED_YELLOW ||
                     signal->light == SWERVE_SIGNAL_YELLOW;
        double needed_mps2 = seen->speed_mps * seen->speed_mps / (2.0 * dmath_max(gap_m, 0.1));
        if (stops && gap_m > 0.0 &&
            (signal->light != SWERVE_SIGNAL_YELLOW || needed_mps2 < YELLOW_DECEL_MPS2)) {
            accel_mps2 = dmath_min(accel_mps2, behind(self, seen->speed_mps, gap_m + 1.0, 0.0));
        }
    }
    return accel_mps2;
}

/* The speed that limits and bends ahead allow. */
static double allowed_mps(const struct idm *self, const struct swerve_observation *seen)
{
    double limit = (double)seen->route[0].speed_limit_mps;
    double allowed = self->speed_factor * (limit > 0.0 ? limit : NO_LIMIT_MPS);
    for (uint32_t i = 1; i + 1 < seen->route_count; i++) {
        const struct swerve_route_point *at = &seen->route[i];
        double ax = (double)at->x_m - (double)at[-1].x_m;
        double ay = (double)at->y_m - (double)at[-1].y_m;
        double bx = (double)at[1].x_m - (double)at->x_m;
        double by = (double)at[1].y_m - (double)at->y_m;
        double turn_rad = fabs(dmath_atan2(ax * by - ay * bx, ax * bx + ay * by));
        double bend = BEND_LAT_MPS2 * SWERVE_ROUTE_STEP_M / dmath_max(turn_rad, 1e-4);
        double ahead_m = (i - 1) * SWERVE_ROUTE_STEP_M;
        allowed = dmath_min(allowed, sqrt(bend + 2.0 * DECEL_MPS2 * ahead_m));
    }
    return allowed;
}

static struct swerve_action drive(const struct idm *self, const struct idm_session *session,
                                  const struct swerve_observation *seen,
                                  const struct swerve_surroundings *around)
{
    double ratio = seen->speed_mps / dmath_max(allowed_mps(self, seen), 0.1);
    double accel_mps2 = ACCEL_MPS2 * (1.0 - ratio * ratio * ratio * ratio);
    accel_mps2 = dmath_max(accel_mps2, -DECEL_MPS2);
    accel_mps2 = dmath_min(accel_mps2, obey(self, seen, around));
    for (uint32_t i = 0; i < around->object_count; i++) {
        accel_mps2 = dmath_min(accel_mps2, yield_to(self, session, seen, &around->objects[i]));
    }
    return (struct swerve_action){dmath_clamp(accel_mps2, -DECEL_MAX_MPS2, ACCEL_MPS2),
                                  planner_keep_lane(seen, session->wheelbase_m, 0.0)};
}

static int idm_plan(void *planner, uint32_t count, const struct swerve_observation *observations,
                    const struct swerve_surroundings *surroundings, struct swerve_answer *answers,
                    uint8_t *failed, char *error_text, uint32_t error_bytes)
{
    const struct idm *self = planner;
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        const struct idm_session *session = &self->sessions[observations[i].session];
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
