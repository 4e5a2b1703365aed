/*
 * Health checks on true scenes. Thresholds are physical bounds, far outside what the object and
 * replay worlds produce (tests/worker/test_health.c plants each fault).
 */
#include "worker/models/health.h"

#include "base/dmath.h"
#include "base/units.h"
#include "engine/story/story.h"

#include <math.h>
#include <stddef.h>

const char *const health_check_names[HEALTH_CHECK_COUNT] = {
    "ok",     "not_finite", "teleport", "kinematics", "frozen", "saturated", "mass",  "layout",
    "camera", "permanence", "horizon",  "absent",     "offset", "phantom",   "world", "diverged",
};

/* 100 m/s is beyond any road vehicle; a tenth of a second of it, plus slack for sparse logs. */
#define STEP_M_MAX (100.0 * TICK_S + 2.0)
/* Tyres give about 1.2 g; three times that is not a car any more. */
#define SPEED_STEP_MPS_MAX (3.0 * 1.2 * 9.81 * TICK_S)

static bool ego_finite(const struct ego_state *ego)
{
    return isfinite(ego->pose.x_m) && isfinite(ego->pose.y_m) && isfinite(ego->pose.heading_rad) &&
           isfinite(ego->speed_mps) && isfinite(ego->accel_mps2) && isfinite(ego->lat_accel_mps2) &&
           isfinite(ego->yaw_rate_rps) && isfinite(ego->steer_rad);
}

static bool agent_finite(const struct agent_state *agent)
{
    return isfinite(agent->pose.x_m) && isfinite(agent->pose.y_m) &&
           isfinite(agent->pose.heading_rad) && isfinite(agent->speed_mps) &&
           isfinite(agent->accel_mps2);
}

static double step_m(double x0_m, double y0_m, double x1_m, double y1_m)
{
    return sqrt((x1_m - x0_m) * (x1_m - x0_m) + (y1_m - y0_m) * (y1_m - y0_m));
}

/* A teleport that the scenario asks for is no fault of the world. */
static bool is_put(const struct scenario *scenario, const struct agent_state *agent, uint32_t index)
{
    struct vec2 at = {agent->pose.x_m, agent->pose.y_m};
    return scenario->storyboard != NULL && story_may_put(scenario, index, at, STEP_M_MAX);
}

/* Change of the speed along a car that slides which its turning alone makes: part of what it does
 * across. */
static double slip_step_mps(const struct health *health, const struct ego_state *ego)
{
    double s;
    double c;
    double turned_rad = dmath_wrap_angle(ego->pose.heading_rad - health->ego_pose.heading_rad);
    dmath_sincos(health->ego_pose.heading_rad + turned_rad / 2, &s, &c);
    double across_m =
        c * (ego->pose.y_m - health->ego_pose.y_m) - s * (ego->pose.x_m - health->ego_pose.x_m);
    return fabs(across_m / TICK_S * turned_rad);
}

static bool check_motion(const struct health *health, const struct scenario *scenario,
                         const struct scene *scene, bool true_agents, struct health_verdict *out)
{
    const struct ego_state *ego = &scene->ego;
    double moved_m =
        step_m(health->ego_pose.x_m, health->ego_pose.y_m, ego->pose.x_m, ego->pose.y_m);
    if (moved_m > STEP_M_MAX) {
        *out = (struct health_verdict){HEALTH_TELEPORT, scene->tick, -1, moved_m, STEP_M_MAX, ""};
        return false;
    }
    double speed_step = fabs(ego->speed_mps - health->ego_speed_mps) - slip_step_mps(health, ego);
    if (speed_step > SPEED_STEP_MPS_MAX) {
        *out = (struct health_verdict){HEALTH_KINEMATICS, scene->tick,        -1,
                                       speed_step,        SPEED_STEP_MPS_MAX, ""};
        return false;
    }
    for (uint32_t i = 0; true_agents && i < scene->agent_count; i++) {
        const struct agent_state *agent = &scene->agents[i];
        if (!agent->present || !health->agent_present[i]) {
            continue;
        }
        moved_m = step_m(health->agent_position[i].x_m, health->agent_position[i].y_m,
                         agent->pose.x_m, agent->pose.y_m);
        if (moved_m > STEP_M_MAX && !is_put(scenario, agent, i)) {
            *out = (struct health_verdict){HEALTH_TELEPORT, scene->tick, (int32_t)i,
                                           moved_m,         STEP_M_MAX,  ""};
            return false;
        }
    }
    return true;
}

bool health_update(struct health *health, const struct scenario *scenario,
                   const struct scene *scene, bool true_agents, struct health_verdict *out)
{
    if (!ego_finite(&scene->ego) || !isfinite(scene->conditions.friction) ||
        !isfinite(scene->conditions.visibility_m)) {
        *out = (struct health_verdict){HEALTH_NOT_FINITE, scene->tick, -1, NAN, 0.0, ""};
        return false;
    }
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        if (!agent_finite(&scene->agents[i])) {
            *out =
                (struct health_verdict){HEALTH_NOT_FINITE, scene->tick, (int32_t)i, NAN, 0.0, ""};
            return false;
        }
    }
    if (health->started) {
        if (scene->tick != health->tick + 1) {
            *out = (struct health_verdict){HEALTH_FROZEN, scene->tick,        -1,
                                           scene->tick,   health->tick + 1.0, ""};
            return false;
        }
        if (!check_motion(health, scenario, scene, true_agents, out)) {
            return false;
        }
    }
    health->started = true;
    health->tick = scene->tick;
    health->ego_pose = scene->ego.pose;
    health->ego_speed_mps = scene->ego.speed_mps;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        health->agent_present[i] = scene->agents[i].present;
        health->agent_position[i] =
            (struct vec2){scene->agents[i].pose.x_m, scene->agents[i].pose.y_m};
    }
    return true;
}
