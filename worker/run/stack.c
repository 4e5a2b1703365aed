/*
 * The delay line and the ego overrides. Overrides steer by pure pursuit (Coulter 1992) on the
 * route, shifted sideways where a swerve asks for it, so that "brake" means braking in the lane.
 */
#include "worker/run/stack.h"

#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"

#include <math.h>
#include <stddef.h>

void stack_init(struct stack *stack, uint64_t seed)
{
    *stack = (struct stack){.seed = seed};
}

static uint32_t ticks_from_s(double duration_s)
{
    return (uint32_t)floor(duration_s / TICK_S + 0.5);
}

bool stack_intervene(struct stack *stack, const struct intervention *intervention,
                     const struct scene *scene, const struct route *route)
{
    uint32_t tick = scene->tick;
    uint32_t until =
        intervention->duration_s > 0 ? tick + ticks_from_s(intervention->duration_s) : UINT32_MAX;
    switch (intervention->kind) {
    case INTERVENE_EGO_PLANNER:
        stack->override = NULL;
        return true;
    case INTERVENE_EGO_BRAKE:
    case INTERVENE_EGO_SWERVE:
    case INTERVENE_EGO_MAINTAIN:
    case INTERVENE_EGO_ACTIONS: {
        struct vec2 at = {scene->ego.pose.x_m, scene->ego.pose.y_m};
        stack->override = intervention;
        stack->override_tick = tick;
        stack->override_speed_mps = scene->ego.speed_mps;
        stack->override_offset_m = route_project(route, at, -1.0).offset_m;
        return true;
    }
    case INTERVENE_STACK_LATENCY:
        stack->latency_ms = intervention->latency_ms;
        stack->jitter_ms = intervention->jitter_ms;
        stack->latency_until_tick = until;
        return true;
    case INTERVENE_STACK_DROPOUT:
        for (int bit = 0; bit < 4; bit++) {
            if (intervention->sensors & (1u << bit)) {
                stack->dark_until_tick[bit] = until;
            }
        }
        return true;
    default:
        return false;
    }
}

uint32_t stack_sensors_dark(const struct stack *stack, uint32_t tick)
{
    uint32_t dark = 0;
    for (int bit = 0; bit < 4; bit++) {
        if (tick < stack->dark_until_tick[bit]) {
            dark |= 1u << bit;
        }
    }
    return dark;
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

static struct action override_action(const struct stack *stack, const struct scene *scene,
                                     const struct route *route, double wheelbase_m,
                                     double route_s_m)
{
    const struct intervention *what = stack->override;
    uint32_t elapsed = scene->tick - stack->override_tick;
    double offset_m = stack->override_offset_m;
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
            dmath_clamp(stack->override_speed_mps - scene->ego.speed_mps, -2.0, 2.0);
        break;
    }
    action.steer_rad = pursuit_steer_rad(scene, route, route_s_m, offset_m, wheelbase_m);
    return action;
}

static int64_t delay_us(const struct stack *stack, uint32_t tick)
{
    if (tick >= stack->latency_until_tick) {
        return 0;
    }
    double jitter = 2.0 * rng_uniform(stack->seed, RNG_STREAM_STACK, tick, 0) - 1.0;
    double delay_ms = stack->latency_ms + jitter * stack->jitter_ms;
    return (int64_t)floor(dmath_max(delay_ms, 0.0) * 1000.0);
}

/* Moves every answer that is due by now into `held`; the newest issued wins, so an answer overtaken
 * by a later one with less jitter is dropped, as a control loop would. */
static void receive_due(struct stack *stack, int64_t now_us)
{
    uint32_t newest = UINT32_MAX;
    for (uint32_t i = 0; i < stack->pending_count; i++) {
        uint32_t at = (stack->pending_head + i) % STACK_DELAY_TICKS_MAX;
        if (stack->pending[at].due_us <= now_us) {
            newest = i;
        }
    }
    if (newest != UINT32_MAX) {
        uint32_t at = (stack->pending_head + newest) % STACK_DELAY_TICKS_MAX;
        stack->held = stack->pending[at].action;
        stack->pending_head = (stack->pending_head + newest + 1) % STACK_DELAY_TICKS_MAX;
        stack->pending_count -= newest + 1;
    }
}

struct action stack_drive(struct stack *stack, const struct action *answer,
                          const struct scene *scene, const struct route *route, double wheelbase_m,
                          double route_s_m)
{
    int64_t now_us = (int64_t)scene->tick * (TICK_NS / 1000);
    if (stack->pending_count == STACK_DELAY_TICKS_MAX) {
        /* Only for latencies beyond what scenarios may ask for. */
        stack->pending_head = (stack->pending_head + 1) % STACK_DELAY_TICKS_MAX;
        stack->pending_count--;
    }
    uint32_t tail = (stack->pending_head + stack->pending_count) % STACK_DELAY_TICKS_MAX;
    stack->pending[tail] = (struct stack_pending){*answer, now_us + delay_us(stack, scene->tick)};
    stack->pending_count++;
    receive_due(stack, now_us);
    if (stack->override != NULL) {
        return override_action(stack, scene, route, wheelbase_m, route_s_m);
    }
    return stack->held;
}
