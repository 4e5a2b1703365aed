/*
 * Scripts and interventions: what scenario authors and branches prescribe to agents.
 *
 * Manoeuvres start in order. The next one is considered as soon as the one before it has started,
 * so that a lane change may begin while a braking is under way; "after" waits for completion.
 * Scripted vehicles do not react to anybody.
 */
#include "base/dmath.h"
#include "base/rng.h"
#include "engine/traffic/traffic.h"

#include <math.h>

#define TIME_JITTER_S 0.1
#define RATE_MIN_MPS2 0.01
#define BRAKE_MIN_MPS2 0.1
#define PATH_JOIN_MIN_S 1.5 /* to slide from where the agent is onto the path it is given */
#define PATH_JOIN_PACE_MIN_MPS 1.0
#define CUT_IN_MIN_S 0.5
#define TIME_EPSILON_S 1e-9

static bool trigger_holds(const struct traffic_plan *plan, uint32_t self, uint64_t seed,
                          const struct scene *scene, const struct agent_motion *motion)
{
    const struct agent *agent = &plan->scenario->agents[self];
    const struct trigger *trigger = &agent->manoeuvres[motion->manoeuvre].trigger;
    const struct agent_state *state = &scene->agents[self];
    const struct ego_state *ego = &scene->ego;
    double time_s = traffic_time_s(scene) + TIME_EPSILON_S;
    double hx;
    double hy;
    double dx = state->pose.x_m - ego->pose.x_m;
    double dy = state->pose.y_m - ego->pose.y_m;
    switch (trigger->kind) {
    case TRIGGER_TIME: {
        double jitter_s = 0.0;
        if (seed != 0 && trigger->value > 0.0) {
            uint32_t element = self * 64 + 16 + motion->manoeuvre;
            jitter_s =
                TIME_JITTER_S * (2.0 * rng_uniform(seed, RNG_STREAM_AGENT, 0, element) - 1.0);
        }
        return time_s >= trigger->value + jitter_s;
    }
    case TRIGGER_AFTER: /* not while the one before runs: NAN compares false */
        return time_s >= motion->completed_s + trigger->value;
    case TRIGGER_EGO_DISTANCE: {
        const struct ego *body = &plan->scenario->ego;
        double ego_radius =
            sqrt(body->length_m * body->length_m + body->width_m * body->width_m) / 2;
        double reach = trigger->value + plan->agents[self].radius_m + ego_radius;
        if (dx * dx + dy * dy > reach * reach) {
            return false;
        }
        struct box a = box_make(state->pose, agent->length_m, agent->width_m);
        struct box b = box_make(ego->pose, body->length_m, body->width_m);
        return box_distance_m(&a, &b) < trigger->value;
    }
    case TRIGGER_EGO_TTA: {
        dmath_sincos(ego->pose.heading_rad, &hy, &hx);
        double along = dx * hx + dy * hy;
        double to_bumper = along - plan->scenario->ego.length_m / 2;
        return along > 0.0 && to_bumper < trigger->value * ego->speed_mps;
    }
    case TRIGGER_EGO_PASSED:
        dmath_sincos(ego->pose.heading_rad, &hy, &hx);
        return -(dx * hx + dy * hy) > trigger->value;
    case TRIGGER_COUNT:
        break;
    }
    return false;
}

static void start_manoeuvre(const struct traffic_plan *plan, uint32_t self,
                            const struct manoeuvre *manoeuvre, struct scene *scene,
                            struct agent_motion *motion)
{
    struct agent_state *state = &scene->agents[self];
    bool moves = motion->mode == MOTION_TRACK;
    double grip_mps2 = traffic_grip_mps2(plan, scene, state->pose);
    motion->completed_s = NAN;
    switch (manoeuvre->kind) {
    case MANOEUVRE_SPEED:
        motion->target_speed_mps = manoeuvre->speed_mps;
        motion->rate_mps2 = dmath_max(manoeuvre->rate_mps2, RATE_MIN_MPS2);
        break;
    case MANOEUVRE_LANE_CHANGE:
        if (moves) {
            double shift_m = motion->direction * manoeuvre->offset_m;
            traffic_shift(motion, motion->offset_m + shift_m, manoeuvre->duration_s, grip_mps2);
        }
        break;
    case MANOEUVRE_PATH: {
        int32_t path = plan->agents[self].path_track[motion->manoeuvre];
        motion->target_speed_mps = manoeuvre->speed_mps;
        motion->rate_mps2 = dmath_max(manoeuvre->rate_mps2, RATE_MIN_MPS2);
        if (moves && path >= 0) {
            struct vec2 point = {state->pose.x_m, state->pose.y_m};
            const struct track *track = plan->tracks[path];
            double s_m = track_project_window(track, point, 0.0, track->length_m).s_m;
            traffic_change_track(plan, motion, state, path, s_m);
            /* A path is followed the way it is drawn, whichever way the agent faces now. */
            double heading = track_at(track, motion->s_m).heading_rad;
            motion->direction = 1;
            motion->heading_error_rad = dmath_wrap_angle(state->pose.heading_rad - heading);
            if (motion->offset_m != 0.0) {
                /* A quintic's fastest moment is 1.875 times its mean: stay below half the speed. */
                double pace_mps = 0.5 * dmath_max(fabs(state->speed_mps), PATH_JOIN_PACE_MIN_MPS);
                double needed_s = 1.875 * fabs(motion->offset_m) / pace_mps;
                traffic_shift(motion, 0.0, dmath_max(PATH_JOIN_MIN_S, needed_s), grip_mps2);
            }
        }
        break;
    }
    case MANOEUVRE_APPEAR:
        motion->hidden = 0;
        state->present = true;
        break;
    case MANOEUVRE_VANISH:
        motion->hidden = 1;
        state->present = false;
        break;
    case MANOEUVRE_COUNT:
        break;
    }
}

/* Whether the manoeuvre that started last has done its work. */
static bool completed(const struct traffic_plan *plan, uint32_t self, const struct scene *scene,
                      const struct agent_motion *motion)
{
    if (motion->manoeuvre == 0) {
        return true; /* "after" of the first one counts from the start */
    }
    const struct manoeuvre *last = &plan->scenario->agents[self].manoeuvres[motion->manoeuvre - 1];
    switch (last->kind) {
    case MANOEUVRE_SPEED:
        return motion->mode != MOTION_TRACK ||
               fabs(scene->agents[self].speed_mps - last->speed_mps) < 0.05;
    case MANOEUVRE_LANE_CHANGE:
        return motion->shift_duration_s == 0.0;
    case MANOEUVRE_PATH:
        return motion->mode != MOTION_TRACK || motion->s_m >= plan->tracks[motion->track]->length_m;
    case MANOEUVRE_APPEAR:
    case MANOEUVRE_VANISH:
    case MANOEUVRE_COUNT:
        break;
    }
    return true;
}

void traffic_script_update(const struct traffic_plan *plan, uint32_t self, uint64_t seed,
                           struct scene *scene, struct agent_motion *motion)
{
    const struct agent *agent = &plan->scenario->agents[self];
    while (motion->manoeuvre < agent->manoeuvre_count) {
        if (isnan(motion->completed_s) && completed(plan, self, scene, motion)) {
            motion->completed_s = traffic_time_s(scene);
        }
        const struct manoeuvre *next = &agent->manoeuvres[motion->manoeuvre];
        bool wakes = next->kind == MANOEUVRE_APPEAR;
        if ((!scene->agents[self].present && !wakes) ||
            !trigger_holds(plan, self, seed, scene, motion)) {
            return;
        }
        start_manoeuvre(plan, self, next, scene, motion);
        motion->manoeuvre++;
    }
}

/* ---- interventions ---- */

/* Takes an exactly logged agent off its schedule and onto its path. */
static void leave_log(const struct traffic_plan *plan, uint32_t self,
                      const struct agent_state *state, struct agent_motion *motion)
{
    motion->on_log = 0;
    if (motion->mode != MOTION_LOG) {
        motion->target_speed_mps = motion->reactive
                                       ? dmath_max(motion->target_speed_mps, state->speed_mps)
                                       : motion->target_speed_mps;
        return;
    }
    const struct track *track = plan->tracks[plan->agents[self].log_track];
    struct vec2 point = {state->pose.x_m, state->pose.y_m};
    double s_m = track_project_window(track, point, 0.0, track->length_m).s_m;
    motion->mode = MOTION_TRACK;
    motion->target_speed_mps = state->speed_mps;
    traffic_change_track(plan, motion, state, plan->agents[self].log_track, s_m);
}

static enum status cut_in(const struct traffic_plan *plan, uint32_t self, double duration_s,
                          struct scene *scene, struct agent_motion *motion, struct error *error)
{
    const struct agent *agent = &plan->scenario->agents[self];
    struct agent_state *state = &scene->agents[self];
    if (motion->mode == MOTION_STATIC || agent->kind >= AGENT_PEDESTRIAN) {
        return error_set(error, STATUS_BAD_INPUT,
                         "agent_cut_in: expected a moving vehicle, found agent %s", agent->id);
    }
    const struct track *route = plan->tracks[TRAFFIC_TRACK_ROUTE];
    struct vec2 ego = {scene->ego.pose.x_m, scene->ego.pose.y_m};
    struct vec2 point = {state->pose.x_m, state->pose.y_m};
    double ego_offset_m = track_project_window(route, ego, 0.0, route->length_m).offset_m;
    double s_m = track_project_window(route, point, 0.0, route->length_m).s_m;
    double speed_mps = motion->target_speed_mps;
    leave_log(plan, self, state, motion);
    if (motion->reactive && speed_mps <= 0.0) {
        motion->target_speed_mps = state->speed_mps;
    }
    traffic_change_track(plan, motion, state, TRAFFIC_TRACK_ROUTE, s_m);
    traffic_shift(motion, ego_offset_m, dmath_max(duration_s, CUT_IN_MIN_S),
                  traffic_grip_mps2(plan, scene, state->pose));
    motion->lane_change_tick = UINT32_MAX; /* it stays in ego's lane */
    return STATUS_OK;
}

enum status traffic_intervene(const struct traffic_plan *plan,
                              const struct intervention *intervention, struct scene *scene,
                              struct agent_motion *motion, struct error *error)
{
    if (intervention->agent < 0 || (uint32_t)intervention->agent >= plan->agent_count) {
        return error_set(error, STATUS_BAD_INPUT,
                         "intervention: expected an agent below %u, found %d", plan->agent_count,
                         intervention->agent);
    }
    uint32_t self = (uint32_t)intervention->agent;
    const struct agent *agent = &plan->scenario->agents[self];
    struct agent_state *state = &scene->agents[self];
    struct agent_motion *m = &motion[self];
    if (intervention->kind == INTERVENE_AGENT_APPEAR) {
        m->hidden = 0;
        state->present = state->present || (m->mode != MOTION_LOG && !m->waiting);
        return STATUS_OK;
    }
    if (!state->present) {
        return error_set(error, STATUS_BAD_INPUT,
                         "intervention: expected agent %s to be present at tick %u", agent->id,
                         scene->tick);
    }
    if (intervention->kind == INTERVENE_AGENT_CUT_IN) {
        return cut_in(plan, self, intervention->duration_s, scene, m, error);
    }
    if (intervention->kind != INTERVENE_AGENT_BRAKE) {
        return error_set(error, STATUS_BAD_INPUT, "intervention: kind %d is not the world's",
                         (int)intervention->kind);
    }
    if (m->mode != MOTION_STATIC) {
        if (m->mode == MOTION_LOG) {
            leave_log(plan, self, state, m);
        }
        m->brake_mps2 = dmath_max(intervention->decel_mps2, BRAKE_MIN_MPS2);
    }
    return STATUS_OK;
}
