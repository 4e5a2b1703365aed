/*
 * Validity checks. See validity.h.
 *
 * A recorded drive is what it is: agents that follow their log are measured boxes, which overlap
 * and jump within the accuracy of the measurement. Of them only steps are looked at.
 */
#include "worker/score/validity.h"

#include "base/dmath.h"
#include "base/units.h"
#include "engine/traffic/roadmap.h"
#include "engine/traffic/traffic.h"

#include <math.h>
#include <stdio.h>

const char *const validity_check_names[VALIDITY_CHECK_COUNT] = {
    "ok",      "import",           "friction_use", "teleport",
    "overlap", "agent_infeasible", "sideslip",     "cut_short",
};

/* Polack et al., IV 2017: the kinematic bicycle agrees with a full model below half the friction.
 */
#define FRICTION_SHARE_MAX 0.5
/* The brush tyre slides altogether from near 8 degrees; beyond twice that its force is a guess.
 * Looked at from 0.3 m a tick on, 3 m/s: slower, the model is the kinematic one. */
#define SIDESLIP_MAX_RAD 0.28
#define SLIDING_M 0.3
/* Boxes that touch are not in one place. */
#define TOUCH_M 0.01
/* Distance beyond its speed that a body may step: rounding of the path it is on, and of sparse
 * logs. */
#define STEP_FACTOR 2.0
#define STEP_SLACK_M 1.0
/* Over the friction where a body was or is, for the difference over a tick. */
#define GRIP_FACTOR 1.05
#define GRIP_SLACK_MPS2 0.1

static void found(struct validity *validity, enum validity_check check, uint32_t tick,
                  int32_t agent, int32_t other, double value, double threshold)
{
    validity->check = check;
    validity->tick = tick;
    validity->agent = agent;
    validity->other = other;
    validity->value = value;
    validity->threshold = threshold;
}

static double grip_mps2(const struct roadmap *roadmap, struct pose pose, double friction)
{
    struct vec2 place = {pose.x_m, pose.y_m};
    return GRAVITY_MPS2 * roadmap_friction(roadmap, place, friction);
}

static double step_m(struct pose a, struct pose b)
{
    return sqrt((b.x_m - a.x_m) * (b.x_m - a.x_m) + (b.y_m - a.y_m) * (b.y_m - a.y_m));
}

static double step_max_m(double before_mps, double now_mps)
{
    return STEP_FACTOR * dmath_max(fabs(before_mps), fabs(now_mps)) * TICK_S + STEP_SLACK_M;
}

static bool on_foot(const struct agent *agent)
{
    return agent->kind == AGENT_PEDESTRIAN || agent->kind == AGENT_ANIMAL;
}

static bool follows_log(const struct agent *agent, bool follows_logs)
{
    return agent->trajectory.point_count > 0 &&
           (follows_logs || on_foot(agent) || traffic_leaves_with_log(agent));
}

/* The angle between where ego heads and where it goes. */
static double sideslip_rad(const struct ego_state *before, const struct ego_state *now)
{
    double dx = now->pose.x_m - before->pose.x_m;
    double dy = now->pose.y_m - before->pose.y_m;
    if (dx * dx + dy * dy < SLIDING_M * SLIDING_M) {
        return 0.0;
    }
    double turn = dmath_wrap_angle(now->pose.heading_rad - before->pose.heading_rad);
    double heading = before->pose.heading_rad + 0.5 * turn;
    return fabs(dmath_wrap_angle(dmath_atan2(dy, dx) - heading));
}

static void check_ego(struct validity *validity, const struct roadmap *roadmap,
                      const struct scenario *scenario, const struct scene *scene)
{
    const struct ego_state *ego = &scene->ego;
    /* Lateral accelerations of the controls challenge are a learned simulator's, not a car's here.
     */
    bool kinematic =
        scenario->ego.dynamics == DYNAMICS_KINEMATIC && scenario->controls.log.count == 0;
    double limit = FRICTION_SHARE_MAX * grip_mps2(roadmap, ego->pose, scene->conditions.friction);
    if (kinematic && fabs(ego->lat_accel_mps2) > limit) {
        found(validity, VALIDITY_FRICTION_USE, scene->tick, -1, -1, fabs(ego->lat_accel_mps2),
              limit);
        return;
    }
    if (!validity->started) {
        return;
    }
    double moved_m = step_m(validity->ego.pose, ego->pose);
    double most_m = step_max_m(validity->ego.speed_mps, ego->speed_mps);
    if (moved_m > most_m) {
        found(validity, VALIDITY_TELEPORT, scene->tick, -1, -1, moved_m, most_m);
        return;
    }
    double slip_rad = kinematic ? 0.0 : sideslip_rad(&validity->ego, ego);
    if (slip_rad > SIDESLIP_MAX_RAD) {
        found(validity, VALIDITY_SIDESLIP, scene->tick, -1, -1, slip_rad, SIDESLIP_MAX_RAD);
    }
}

/* A body's own motion since the tick before. */
static void check_agent(struct validity *validity, const struct prepared *prepared,
                        const struct scene *scene, uint32_t index, bool logged)
{
    const struct agent *record = &prepared_scenario(prepared)->agents[index];
    const struct roadmap *roadmap = prepared_roadmap(prepared);
    const struct agent_state *before = &validity->agents[index];
    const struct agent_state *now = &scene->agents[index];
    int32_t self = (int32_t)index;
    double moved_m = step_m(before->pose, now->pose);
    double most_m = step_max_m(before->speed_mps, now->speed_mps);
    if (moved_m > most_m) {
        found(validity, VALIDITY_TELEPORT, scene->tick, self, -1, moved_m, most_m);
        return;
    }
    if (logged) {
        return;
    }
    double grip = dmath_max(grip_mps2(roadmap, before->pose, validity->friction),
                            grip_mps2(roadmap, now->pose, scene->conditions.friction));
    double most = GRIP_FACTOR * grip + GRIP_SLACK_MPS2;
    double lon = fabs(now->speed_mps - before->speed_mps) / TICK_S;
    double turn = dmath_wrap_angle(now->pose.heading_rad - before->pose.heading_rad) / TICK_S;
    /* Who walks turns on his feet. */
    double lat = on_foot(record) ? 0.0 : fabs(0.5 * (before->speed_mps + now->speed_mps) * turn);
    if (lon > most || lat > most) {
        found(validity, VALIDITY_AGENT, scene->tick, self, -1, dmath_max(lon, lat), most);
    }
}

static struct box body(const struct agent *agent, const struct agent_state *state)
{
    return box_make(state->pose, dmath_max(agent->length_m - TOUCH_M, TOUCH_M),
                    dmath_max(agent->width_m - TOUCH_M, TOUCH_M));
}

/* Agents that are there, side by side for the first look at every pair. */
struct bodies {
    uint32_t count;
    double x_m[LIMIT_AGENTS];
    double y_m[LIMIT_AGENTS];
    double reach_m[LIMIT_AGENTS]; /* no point of the body is farther from its centre */
    uint16_t agent[LIMIT_AGENTS];
};

static void bodies_add(struct bodies *bodies, const struct scenario *scenario,
                       const struct scene *scene, uint32_t index)
{
    uint32_t k = bodies->count++;
    bodies->x_m[k] = scene->agents[index].pose.x_m;
    bodies->y_m[k] = scene->agents[index].pose.y_m;
    bodies->reach_m[k] = 0.5 * (scenario->agents[index].length_m + scenario->agents[index].width_m);
    bodies->agent[k] = (uint16_t)index;
}

/* Whether two agents that may touch are looked at. */
static bool are_compared(const struct agent *a, const struct agent *b)
{
    return a->behaviour != b->behaviour ||
           (a->behaviour != BEHAVIOUR_STATIC && a->behaviour != BEHAVIOUR_REPLAY &&
            a->behaviour != BEHAVIOUR_STORYBOARD);
}

/* The newest of the bodies against those before. */
static void check_overlaps(struct validity *validity, const struct scenario *scenario,
                           const struct scene *scene, const struct bodies *bodies)
{
    const uint32_t newest = bodies->count - 1;
    const uint32_t index = bodies->agent[newest];
    const struct agent *a = &scenario->agents[index];
    const struct agent_state *state = &scene->agents[index];
    for (uint32_t k = 0; k < newest; k++) {
        double reach_m = bodies->reach_m[newest] + bodies->reach_m[k];
        if (fabs(bodies->x_m[newest] - bodies->x_m[k]) > reach_m ||
            fabs(bodies->y_m[newest] - bodies->y_m[k]) > reach_m) {
            continue;
        }
        const uint32_t j = bodies->agent[k];
        const struct agent *b = &scenario->agents[j];
        struct box one = body(a, state);
        struct box two = body(b, &scene->agents[j]);
        if (are_compared(a, b) && box_overlap(&one, &two)) {
            found(validity, VALIDITY_OVERLAP, scene->tick, (int32_t)index, (int32_t)j,
                  step_m(state->pose, scene->agents[j].pose), 0.0);
            return;
        }
    }
}

void validity_update(struct validity *validity, const struct prepared *prepared,
                     const struct scene *scene, bool follows_logs, bool true_agents)
{
    const struct scenario *scenario = prepared_scenario(prepared);
    struct bodies bodies;
    bodies.count = 0;
    if (scenario->invalid[0] != '\0') {
        found(validity, VALIDITY_IMPORT, scene->tick, -1, -1, NAN, 0.0);
    } else {
        check_ego(validity, prepared_roadmap(prepared), scenario, scene);
    }
    for (uint32_t i = 0; true_agents && i < scene->agent_count; i++) {
        const struct agent *record = &scenario->agents[i];
        if (validity->check != VALIDITY_OK) {
            break;
        }
        if (!scene->agents[i].present) {
            continue;
        }
        if (validity->started && validity->agents[i].present &&
            record->behaviour != BEHAVIOUR_STATIC &&
            record->behaviour != BEHAVIOUR_STORYBOARD) { /* which may prescribe jumps */
            check_agent(validity, prepared, scene, i, follows_log(record, follows_logs));
        }
        bodies_add(&bodies, scenario, scene, i);
        if (validity->check == VALIDITY_OK) {
            check_overlaps(validity, scenario, scene, &bodies);
        }
    }
    validity->started = true;
    validity->friction = scene->conditions.friction;
    validity->ego = scene->ego;
    for (uint32_t i = 0; true_agents && i < scene->agent_count; i++) {
        validity->agents[i] = scene->agents[i];
    }
}

void validity_cut_short(struct validity *validity, uint32_t tick, int32_t agent, double impact_mps)
{
    found(validity, VALIDITY_CUT_SHORT, tick, agent, -1, impact_mps, 0.0);
}

void validity_sentence(const struct validity *validity, const struct scenario *scenario, char *out,
                       size_t bytes)
{
    const char *who = validity->agent < 0 ? "ego" : scenario->agents[validity->agent].id;
    switch (validity->check) {
    case VALIDITY_IMPORT:
        snprintf(out, bytes, "invalid: import: %s", scenario->invalid);
        return;
    case VALIDITY_FRICTION_USE:
        snprintf(out, bytes,
                 "invalid: friction_use at tick %u: ego turned with %.2f m/s2, the kinematic "
                 "bicycle holds up to half the friction, %.2f",
                 validity->tick, validity->value, validity->threshold);
        return;
    case VALIDITY_TELEPORT:
        snprintf(out, bytes,
                 "invalid: teleport at tick %u: %s moved %.2f m in a tick, its speed allows %.2f",
                 validity->tick, who, validity->value, validity->threshold);
        return;
    case VALIDITY_OVERLAP:
        snprintf(out, bytes, "invalid: overlap at tick %u: %s and %s are in one place",
                 validity->tick, scenario->agents[validity->other].id, who);
        return;
    case VALIDITY_AGENT:
        snprintf(out, bytes,
                 "invalid: agent_infeasible at tick %u: %s took %.2f m/s2, the surface under it "
                 "gives %.2f",
                 validity->tick, who, validity->value, validity->threshold);
        return;
    case VALIDITY_SIDESLIP:
        snprintf(out, bytes,
                 "invalid: sideslip at tick %u: ego slid at %.2f rad to its heading, the "
                 "single-track model holds up to %.2f",
                 validity->tick, validity->value, validity->threshold);
        return;
    case VALIDITY_CUT_SHORT:
        snprintf(out, bytes,
                 "invalid: cut_short at tick %u: %s ran into ego, which could not go on to do what "
                 "was asked of it",
                 validity->tick, who);
        return;
    case VALIDITY_OK:
    case VALIDITY_CHECK_COUNT:
        break;
    }
    snprintf(out, bytes, "invalid");
}
