/*
 * The delay line and the ego overrides. Overrides steer by pure pursuit (Coulter 1992) on the
 * route, shifted sideways where a swerve asks for it, so that "brake" means braking in the lane.
 */
#include "worker/run/actuation.h"

#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"

#include <math.h>
#include <stddef.h>

void actuation_init(struct actuation *actuation, uint64_t seed)
{
    *actuation = (struct actuation){.seed = seed};
}

static uint32_t ticks_from_s(double duration_s)
{
    return (uint32_t)floor(duration_s / TICK_S + 0.5);
}

bool actuation_intervene(struct actuation *actuation, const struct intervention *intervention,
                         const struct scene *scene, const struct route *route)
{
    uint32_t tick = scene->tick;
    uint32_t until =
        intervention->duration_s > 0 ? tick + ticks_from_s(intervention->duration_s) : UINT32_MAX;
    switch (intervention->kind) {
    case INTERVENE_EGO_PLANNER:
        actuation->override = NULL;
        return true;
    case INTERVENE_EGO_BRAKE:
    case INTERVENE_EGO_SWERVE:
    case INTERVENE_EGO_MAINTAIN:
    case INTERVENE_EGO_ACTIONS: {
        struct vec2 at = {scene->ego.pose.x_m, scene->ego.pose.y_m};
        actuation->override = intervention;
        actuation->override_tick = tick;
        actuation->override_speed_mps = scene->ego.speed_mps;
        actuation->override_offset_m = route_project(route, at, -1.0).offset_m;
        return true;
    }
    case INTERVENE_STACK_LATENCY:
        actuation->latency_ms = intervention->latency_ms;
        actuation->jitter_ms = intervention->jitter_ms;
        actuation->latency_until_tick = until;
        return true;
    case INTERVENE_STACK_DROPOUT:
        for (int bit = 0; bit < 4; bit++) {
            if (intervention->sensors & (1u << bit)) {
                actuation->dark_until_tick[bit] = until;
            }
        }
        return true;
    default:
        return false;
    }
}

uint32_t actuation_sensors_dark(const struct actuation *actuation, uint32_t tick)
{
    uint32_t dark = 0;
    for (int bit = 0; bit < 4; bit++) {
        if (tick < actuation->dark_until_tick[bit]) {
            dark |= 1u << bit;
        }
    }
    return dark;
}

uint32_t actuation_skipped(const struct actuation *actuation, uint32_t tick)
{
    const struct intervention *what = actuation->override;
    uint32_t elapsed = tick - actuation->override_tick;
    return what != NULL && elapsed < what->skipped_count ? what->skipped[elapsed] : 0;
}

/* Pure pursuit towards a point on the route, `offset_m` to its left. */
static double pursuit_steer_rad(const struct scene *scene, const struct route *route,
                                double route_s_m, double offset_m, double wheelbase_m)
{
    const struct pose *pose = &scene->ego.pose;
    double ahead_m = dmath_clamp(0.9 * scene->ego.speed_mps, 4.0, 25.0);
    struct pose target = route_pose_at(route, route_s_m + ahead_m, offset_m);
    double s;
    double c;
    dmath_sincos(pose->heading_rad, &s, &c);
    double dx = target.x_m - pose->x_m;
    double dy = target.y_m - pose->y_m;
    double x = c * dx + s * dy;
    double y = -s * dx + c * dy;
    double squared = x * x + y * y;
    if (squared < 1e-6) {
        return 0.0;
    }
    return dmath_atan(wheelbase_m * 2.0 * y / squared);
}

/* Minimum-jerk (quintic) step from 0 to 1 for u in 0..1. */
static double smooth_step(double u)
{
    u = dmath_clamp(u, 0.0, 1.0);
    return u * u * u * (10.0 + u * (-15.0 + 6.0 * u));
}

static struct action override_action(const struct actuation *actuation, const struct scene *scene,
                                     const struct route *route, double wheelbase_m,
                                     double route_s_m)
{
    const struct intervention *what = actuation->override;
    uint32_t elapsed = scene->tick - actuation->override_tick;
    double offset_m = actuation->override_offset_m;
    struct action action = {0};
    switch (what->kind) {
    case INTERVENE_EGO_ACTIONS:
        return what->actions[elapsed < what->action_count ? elapsed : what->action_count - 1];
    case INTERVENE_EGO_BRAKE:
        action.accel_mps2 = -what->decel_mps2;
        break;
    case INTERVENE_EGO_SWERVE:
        /* The lead accounts for pure pursuit's lag: aim where the profile is half a second on. */
        offset_m += what->offset_m * smooth_step((elapsed * TICK_S + 0.5) / what->duration_s);
        action.accel_mps2 = 0.0;
        break;
    default:
        action.accel_mps2 =
            dmath_clamp(actuation->override_speed_mps - scene->ego.speed_mps, -2.0, 2.0);
        break;
    }
    action.steer_rad = pursuit_steer_rad(scene, route, route_s_m, offset_m, wheelbase_m);
    return action;
}

static int64_t delay_us(const struct actuation *actuation, uint32_t tick)
{
    if (tick >= actuation->latency_until_tick) {
        return 0;
    }
    double jitter = 2.0 * rng_uniform(actuation->seed, RNG_STREAM_STACK, tick, 0) - 1.0;
    double delay_ms = actuation->latency_ms + jitter * actuation->jitter_ms;
    return (int64_t)floor(dmath_max(delay_ms, 0.0) * 1000.0);
}

/* Moves every answer that is due by now into `held`; the newest issued wins, so an answer overtaken
 * by a later one with less jitter is dropped, as a control loop would. */
static void receive_due(struct actuation *actuation, int64_t now_us)
{
    uint32_t newest = UINT32_MAX;
    for (uint32_t i = 0; i < actuation->pending_count; i++) {
        uint32_t at = (actuation->pending_head + i) % ACTUATION_DELAY_TICKS_MAX;
        if (actuation->pending[at].due_us <= now_us) {
            newest = i;
        }
    }
    if (newest != UINT32_MAX) {
        uint32_t at = (actuation->pending_head + newest) % ACTUATION_DELAY_TICKS_MAX;
        actuation->held = actuation->pending[at].action;
        actuation->pending_head =
            (actuation->pending_head + newest + 1) % ACTUATION_DELAY_TICKS_MAX;
        actuation->pending_count -= newest + 1;
    }
}

struct action actuation_drive(struct actuation *actuation, const struct action *answer,
                              const struct scene *scene, const struct route *route,
                              double wheelbase_m, double route_s_m)
{
    int64_t now_us = (int64_t)scene->tick * (TICK_NS / 1000);
    if (actuation->pending_count == ACTUATION_DELAY_TICKS_MAX) {
        /* Only for latencies beyond what scenarios may ask for. */
        actuation->pending_head = (actuation->pending_head + 1) % ACTUATION_DELAY_TICKS_MAX;
        actuation->pending_count--;
    }
    uint32_t tail =
        (actuation->pending_head + actuation->pending_count) % ACTUATION_DELAY_TICKS_MAX;
    actuation->pending[tail] =
        (struct actuation_pending){*answer, now_us + delay_us(actuation, scene->tick)};
    actuation->pending_count++;
    receive_due(actuation, now_us);
    if (actuation->override != NULL) {
        return override_action(actuation, scene, route, wheelbase_m, route_s_m);
    }
    return actuation->held;
}
