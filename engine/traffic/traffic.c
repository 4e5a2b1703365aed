/*
 * Traffic: start and step. One tick reads a snapshot of all actors (struct actors) and then moves
 * each agent: manoeuvres, acceleration, integration along its track, pose.
 *
 * Integration is ballistic: constant acceleration over the tick, a stop inside it is exact.
 */
#include "engine/traffic/traffic.h"

#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"

#include <math.h>

#define SPEED_VARIATION 0.05
#define HEADWAY_VARIATION 0.10
#define CENTRE_DRIFT_S 4.0       /* time in which a driver settles on the centre line */
#define HEADING_ERROR_KEPT 0.7   /* per tick */
#define SCRIPT_RATE_MPS2 3.0     /* where a script gives none */
#define SHIFT_FULL_SPEED_MPS 2.0 /* below it a lateral programme slows down with the vehicle */
#define REANCHOR_M 200.0

static double quintic(double u)
{
    return u * u * u * (10.0 + u * (-15.0 + 6.0 * u));
}

static double quintic_slope(double u)
{
    return 30.0 * u * u * (1.0 - u) * (1.0 - u);
}

/* ---- start ---- */

static double variation(uint64_t seed, uint32_t agent, uint32_t parameter, double share)
{
    if (seed == 0) { /* the nominal rollout */
        return 1.0;
    }
    double u = rng_uniform(seed, RNG_STREAM_AGENT, 0, agent * 64 + parameter);
    return 1.0 + share * (2.0 * u - 1.0);
}

static void vary(uint64_t seed, uint32_t agent, struct agent_motion *motion)
{
    motion->speed_factor = variation(seed, agent, 0, SPEED_VARIATION);
    motion->headway_factor = variation(seed, agent, 1, HEADWAY_VARIATION);
}

void traffic_vary(uint64_t seed, uint32_t count, struct agent_motion *motion)
{
    for (uint32_t i = 0; i < count; i++) {
        vary(seed, i, &motion[i]);
    }
}

static void set_heading(struct agent_motion *motion, struct agent_state *state, double heading_rad)
{
    state->pose.heading_rad = dmath_wrap_angle(heading_rad);
    dmath_sincos(state->pose.heading_rad, &motion->uy, &motion->ux);
}

/* State of the log at time_s; moves the cursor. */
static void follow_log(const struct trajectory *log, double time_s, struct agent_motion *motion,
                       struct agent_state *state)
{
    bool go_on = !motion->log_ends;
    uint32_t last = log->point_count - 1;
    while (motion->log_index < last && log->points[motion->log_index + 1].t_s <= time_s) {
        motion->log_index++;
    }
    const struct trajectory_point *a = &log->points[motion->log_index];
    bool was_present = state->present;
    double before_mps = state->speed_mps;
    state->present = !motion->hidden && time_s >= log->points[0].t_s - 1e-9 &&
                     (go_on || time_s <= log->points[last].t_s + 1e-9);
    if (motion->log_index == last) {
        double s;
        double c;
        double past_m = go_on ? dmath_max(time_s - a->t_s, 0.0) * a->speed_mps : 0.0;
        dmath_sincos(a->heading_rad, &s, &c);
        state->pose.x_m = a->x_m + past_m * c;
        state->pose.y_m = a->y_m + past_m * s;
        state->speed_mps = a->speed_mps;
        set_heading(motion, state, a->heading_rad);
    } else {
        const struct trajectory_point *b = a + 1;
        double u = dmath_clamp((time_s - a->t_s) / (b->t_s - a->t_s), 0.0, 1.0);
        state->pose.x_m = a->x_m + u * (b->x_m - a->x_m);
        state->pose.y_m = a->y_m + u * (b->y_m - a->y_m);
        state->speed_mps = a->speed_mps + u * (b->speed_mps - a->speed_mps);
        set_heading(motion, state,
                    a->heading_rad + u * dmath_wrap_angle(b->heading_rad - a->heading_rad));
    }
    bool moved = was_present && state->present;
    state->accel_mps2 = moved ? (state->speed_mps - before_mps) / TICK_S : 0.0;
}

/* An agent that enters with its log begins at the log's first point. */
static void start_on_log(const struct traffic_plan *plan, const struct agent_plan *prepared,
                         const struct agent *agent, struct agent_motion *motion,
                         struct agent_state *state)
{
    const struct trajectory_point *first = &agent->trajectory.points[0];
    motion->mode = MOTION_TRACK;
    motion->reactive = 1;
    motion->on_log = 1;
    motion->track = prepared->log_track;
    motion->heading_error_rad = dmath_wrap_angle(
        first->heading_rad - track_at(plan->tracks[motion->track], 0.0).heading_rad);
    motion->s_m = 0.0;
    motion->offset_m = 0.0;
    state->pose = (struct pose){first->x_m, first->y_m, 0.0};
    state->speed_mps = first->speed_mps;
    set_heading(motion, state, first->heading_rad);
    motion->waiting = first->t_s > 1e-9;
    state->present = !motion->hidden && !motion->waiting;
}

static void start_agent(const struct traffic_plan *plan, uint32_t i, uint64_t seed,
                        bool follow_logs, double grip_mps2, struct agent_motion *motion,
                        struct agent_state *state)
{
    const struct agent *agent = &plan->scenario->agents[i];
    const struct agent_plan *prepared = &plan->agents[i];
    *motion = (struct agent_motion){
        .track = prepared->track,
        .direction = prepared->direction,
        .hidden = agent->hidden,
        .s_m = prepared->s_m,
        .offset_m = prepared->offset_m,
        .heading_error_rad = prepared->heading_error_rad,
        .target_speed_mps = agent->speed_mps,
        .rate_mps2 = SCRIPT_RATE_MPS2,
    };
    vary(seed, i, motion);
    *state = (struct agent_state){.pose = agent->pose, .present = !agent->hidden};
    set_heading(motion, state, agent->pose.heading_rad);
    if (!prepared->moves) {
        motion->mode = MOTION_STATIC;
        return;
    }
    bool logged = agent->trajectory.point_count > 0;
    if (logged && (follow_logs || prepared->exact_log)) {
        motion->mode = MOTION_LOG;
        motion->log_ends = follow_logs || prepared->leaves;
        follow_log(&agent->trajectory, 0.0, motion, state);
    } else if (logged && agent->behaviour == BEHAVIOUR_REPLAY) {
        start_on_log(plan, prepared, agent, motion, state);
    } else {
        motion->mode = MOTION_TRACK;
        motion->reactive = prepared->reactive;
        motion->target_speed_mps =
            prepared->reactive ? prepared->driver.desired_speed_mps : agent->speed_mps;
        state->speed_mps = agent->speed_mps;
        if (!prepared->keeps_offset && fabs(motion->offset_m) > 0.01) {
            traffic_shift(motion, 0.0, CENTRE_DRIFT_S, grip_mps2);
        }
    }
}

void traffic_reset(const struct traffic_plan *plan, uint64_t seed, bool follow_logs,
                   struct scene *scene, struct agent_motion *motion)
{
    scene->agent_count = plan->agent_count;
    for (uint32_t i = 0; i < plan->agent_count; i++) {
        double grip_mps2 = traffic_grip_mps2(plan, scene, plan->scenario->agents[i].pose);
        start_agent(plan, i, seed, follow_logs, grip_mps2, &motion[i], &scene->agents[i]);
    }
}

/* ---- step ---- */

static void snapshot(const struct traffic_plan *plan, const struct scene *scene,
                     const struct agent_motion *motion, struct actors *actors)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->agent_count; i++) {
        const struct agent_state *state = &scene->agents[i];
        if (!state->present) {
            continue;
        }
        actors->x_m[n] = state->pose.x_m;
        actors->y_m[n] = state->pose.y_m;
        actors->ux[n] = motion[i].ux;
        actors->uy[n] = motion[i].uy;
        actors->vx_mps[n] = state->speed_mps * motion[i].ux;
        actors->vy_mps[n] = state->speed_mps * motion[i].uy;
        actors->radius_m[n] = plan->agents[i].radius_m;
        actors->half_length_m[n] = plan->agents[i].half_length_m;
        actors->half_width_m[n] = plan->agents[i].half_width_m;
        actors->agent[n] = (uint16_t)i;
        actors->yielded_to[n] = plan->agents[i].yielded_to;
        actors->turn[n] = plan->has_signs ? traffic_signs_turn(plan, i, &motion[i]) : 0;
        actors->waits[n] =
            plan->has_signs && traffic_signs_wait(plan, i, &motion[i], state->speed_mps);
        actors->harmless[n] = plan->has_turns && traffic_signs_harmless(plan, scene, i, &motion[i]);
        n++;
    }
    const struct ego *ego = &plan->scenario->ego;
    actors->x_m[n] = scene->ego.pose.x_m;
    actors->y_m[n] = scene->ego.pose.y_m;
    dmath_sincos(scene->ego.pose.heading_rad, &actors->uy[n], &actors->ux[n]);
    actors->vx_mps[n] = scene->ego.speed_mps * actors->ux[n];
    actors->vy_mps[n] = scene->ego.speed_mps * actors->uy[n];
    actors->half_length_m[n] = ego->length_m / 2;
    actors->half_width_m[n] = ego->width_m / 2;
    actors->radius_m[n] = sqrt(ego->length_m * ego->length_m + ego->width_m * ego->width_m) / 2;
    actors->agent[n] = (uint16_t)plan->agent_count;
    actors->yielded_to[n] = 0;
    actors->turn[n] = 0;
    actors->waits[n] = 0;
    actors->harmless[n] =
        plan->has_turns && traffic_signs_ego_turns(plan, scene, actors->ux[n], actors->uy[n]);
    actors->ego = n;
    actors->count = n + 1;
    actors->origin_x_m = scene->ego.pose.x_m;
    actors->origin_y_m = scene->ego.pose.y_m;
    traffic_screen_fill(actors);
}

/* A script's acceleration: towards the target speed at the given rate, never past it, and no
 * harder than the surface lets anybody (the conditions may have changed since it was written). */
static double script_accel(const struct agent_motion *motion, double speed_mps, double grip_mps2)
{
    double wanted = (motion->target_speed_mps - speed_mps) / TICK_S;
    double rate = dmath_min(motion->rate_mps2, grip_mps2);
    return dmath_clamp(wanted, -rate, rate);
}

/* Advances the lateral programme; returns the offset's rate. */
static double advance_shift(struct agent_motion *motion, double speed_mps)
{
    double before_m = motion->offset_m;
    double pace = dmath_min(1.0, fabs(speed_mps) / SHIFT_FULL_SPEED_MPS);
    double span_m = motion->shift_to_m - motion->shift_from_m;
    motion->shift_elapsed_s += TICK_S * pace;
    double u = motion->shift_elapsed_s / motion->shift_duration_s;
    if (u >= 1.0 - 1e-9) {
        motion->offset_m = motion->shift_to_m;
        motion->shift_duration_s = 0.0;
        return (motion->offset_m - before_m) / TICK_S;
    }
    motion->offset_m = motion->shift_from_m + span_m * quintic(u);
    return span_m * quintic_slope(u) / motion->shift_duration_s * pace;
}

/* The rest of a change of track disappears at half the agent's speed. */
static void close_gap(struct agent_motion *motion, double speed_mps)
{
    double gap_m = sqrt(motion->gap_x_m * motion->gap_x_m + motion->gap_y_m * motion->gap_y_m);
    double step_m = 0.5 * fabs(speed_mps) * TICK_S;
    double kept = gap_m > step_m ? (gap_m - step_m) / gap_m : 0.0;
    motion->gap_x_m *= kept;
    motion->gap_y_m *= kept;
}

/* The position that (s, offset) give. A body far beside a sharp corner of its track would be flung
 * around it: what exceeds a plausible way for this tick is left as a gap. */
static void place(struct agent_motion *motion, struct agent_state *state,
                  const struct track_pose *at, double speed_mps, double fastest_mps)
{
    if (motion->gap_x_m != 0.0 || motion->gap_y_m != 0.0) {
        close_gap(motion, speed_mps);
    }
    double x_m = at->x_m - at->uy * motion->offset_m + motion->gap_x_m;
    double y_m = at->y_m + at->ux * motion->offset_m + motion->gap_y_m;
    double dx = x_m - state->pose.x_m;
    double dy = y_m - state->pose.y_m;
    double limit_m = 1.5 * TICK_S * fastest_mps + 0.05;
    double way2 = dx * dx + dy * dy;
    if (way2 > limit_m * limit_m) {
        double excess = 1.0 - limit_m / sqrt(way2);
        motion->gap_x_m -= excess * dx;
        motion->gap_y_m -= excess * dy;
        x_m -= excess * dx;
        y_m -= excess * dy;
    }
    state->pose.x_m = x_m;
    state->pose.y_m = y_m;
}

/* An agent near the end of its chain moves on to the chain of the lane it is in. */
static void reanchor(const struct traffic_plan *plan, struct agent_motion *motion)
{
    const struct track *track = plan->tracks[motion->track];
    if (motion->direction < 0 || track->span_count == 0 || motion->s_m >= track->length_m) {
        return;
    }
    uint32_t span = track->sample_span[track_sample_index(track, motion->s_m)];
    int32_t lane = track->spans[span].lane;
    if (plan->lane_track[lane] >= 0) {
        motion->s_m += plan->lane_s_m[lane] - track->spans[span].s_m;
        motion->track = plan->lane_track[lane];
    }
}

static void turn_direction(struct agent_motion *motion, double by_rad)
{
    double s;
    double c;
    dmath_sincos(by_rad, &s, &c);
    double ux = motion->ux * c - motion->uy * s;
    motion->uy = motion->uy * c + motion->ux * s;
    motion->ux = ux;
}

/* Turns the body towards a heading, at its mean speed no faster than the surface bears; the rest,
 * behind a kink of the track or a start askew, remains as an error of heading. */
static void turn_within(double heading_rad, double speed_mps, double grip_mps2,
                        struct agent_motion *motion, struct agent_state *state)
{
    double turn_rad = dmath_wrap_angle(heading_rad - state->pose.heading_rad);
    double most_rad = grip_mps2 * TICK_S / dmath_max(speed_mps, 0.1);
    double excess_rad = turn_rad - dmath_clamp(turn_rad, -most_rad, most_rad);
    if (excess_rad != 0.0) {
        turn_direction(motion, -excess_rad);
        motion->heading_error_rad -= excess_rad;
        heading_rad -= excess_rad;
    }
    state->pose.heading_rad =
        fabs(heading_rad) < PI_RAD ? heading_rad : dmath_wrap_angle(heading_rad);
}

/* Moves the agent along its track under an acceleration. */
static void integrate(const struct traffic_plan *plan, double accel_mps2, double grip_mps2,
                      struct agent_motion *motion, struct agent_state *state)
{
    double v = state->speed_mps;
    double v1 = v + accel_mps2 * TICK_S;
    double travelled_m = 0.5 * (v + v1) * TICK_S;
    bool stops = motion->reactive || motion->brake_mps2 > 0.0;
    if (stops && ((v >= 0.0 && v1 < 1e-6) || (v < 0.0 && v1 > -1e-6))) {
        travelled_m = accel_mps2 != 0.0 ? v * v / (-2.0 * accel_mps2) : 0.0;
        travelled_m = v * travelled_m < 0.0 ? 0.0 : travelled_m;
        v1 = 0.0;
    }
    bool arrived = fabs(v1 - motion->target_speed_mps) < 1e-9;
    if (!motion->reactive && motion->brake_mps2 == 0.0 && arrived) {
        v1 = motion->target_speed_mps; /* exactly, so that a stop is 0 */
    }
    const struct track *track = plan->tracks[motion->track];
    uint32_t sample = track_sample_index(track, motion->s_m);
    double stretch = 1.0;
    if (motion->offset_m != 0.0 && sample + 1 < track->count && motion->s_m > 0.0) {
        /* Beside the centre line of a bend the same distance is more or less arc length. */
        double curvature =
            (track->samples[sample + 1].heading_rad - track->samples[sample].heading_rad) *
            track->inverse_step;
        stretch = 1.0 / dmath_max(fabs(1.0 - curvature * motion->offset_m), 0.3);
    }
    double turn_rad = 0.0;
    double rate = 0.0;
    if (motion->shift_duration_s > 0.0) {
        rate = advance_shift(motion, v1);
        turn_rad = fabs(v1) > 0.1 ? dmath_atan2(rate * motion->direction, fabs(v1)) : 0.0;
        turn_rad = v1 < 0.0 ? -turn_rad : turn_rad;
        travelled_m *= dmath_cos(turn_rad);
    }
    motion->s_m += motion->direction * travelled_m * stretch;
    if (motion->s_m > track->length_m - REANCHOR_M) {
        reanchor(plan, motion);
    }
    if (fabs(motion->heading_error_rad) < 1e-4) {
        motion->heading_error_rad = 0.0;
    } else if (fabs(v1) > 0.5) { /* nothing turns on the spot */
        motion->heading_error_rad *= HEADING_ERROR_KEPT;
    }
    turn_rad += motion->heading_error_rad;

    struct track_pose at = track_at(plan->tracks[motion->track], motion->s_m);
    place(motion, state, &at, v1, dmath_max(fabs(v), fabs(v1)) + fabs(rate));
    motion->ux = motion->direction * at.ux;
    motion->uy = motion->direction * at.uy;
    double heading = motion->direction < 0 ? at.heading_rad + PI_RAD : at.heading_rad;
    if (turn_rad != 0.0) {
        turn_direction(motion, turn_rad);
        heading += turn_rad;
    }
    turn_within(heading, 0.5 * fabs(v + v1), grip_mps2, motion, state);
    state->accel_mps2 = (v1 - v) / TICK_S;
    state->speed_mps = v1;
}

/* A logged vehicle enters when its log begins, unless somebody stands where it would. */
static void try_to_enter(const struct traffic_plan *plan, uint32_t i, double time_s,
                         const struct actors *actors, struct agent_motion *motion,
                         struct agent_state *state)
{
    const struct trajectory *log = &plan->scenario->agents[i].trajectory;
    double next_s = time_s + TICK_S;
    if (motion->hidden || next_s < log->points[0].t_s - 1e-9 ||
        next_s > log->points[log->point_count - 1].t_s) {
        return;
    }
    struct box body = {{state->pose.x_m, state->pose.y_m},
                       motion->ux,
                       motion->uy,
                       plan->agents[i].half_length_m,
                       plan->agents[i].half_width_m};
    for (uint32_t k = 0; k < actors->count; k++) {
        struct box other = {{actors->x_m[k], actors->y_m[k]},
                            actors->ux[k],
                            actors->uy[k],
                            actors->half_length_m[k],
                            actors->half_width_m[k]};
        if (box_overlap(&body, &other)) {
            return;
        }
    }
    motion->waiting = 0;
    state->present = true;
}

void traffic_step(const struct traffic_plan *plan, uint64_t seed, struct scene *scene,
                  struct agent_motion *motion)
{
    struct actors actors;
    double time_s = traffic_time_s(scene);
    if (plan->has_signs) {
        traffic_signs_update(plan, scene, motion);
    }
    snapshot(plan, scene, motion, &actors);
    uint32_t actor = 0; /* index of agent i among the actors, if it is one */
    for (uint32_t i = 0; i < plan->agent_count; i++) {
        const struct agent *agent = &plan->scenario->agents[i];
        bool was_actor = actor < actors.ego && actors.agent[actor] == i;
        uint32_t self = actor;
        actor += was_actor;
        if (agent->manoeuvre_count > motion[i].manoeuvre) {
            traffic_script_update(plan, i, seed, scene, &motion[i]);
        }
        struct agent_state *state = &scene->agents[i];
        if (motion[i].mode == MOTION_LOG) {
            follow_log(&agent->trajectory, time_s + TICK_S, &motion[i], state);
            continue;
        }
        if (motion[i].waiting) {
            try_to_enter(plan, i, time_s, &actors, &motion[i], state);
            continue;
        }
        if (motion[i].mode == MOTION_STATIC || !state->present) {
            continue;
        }
        double accel_mps2;
        double grip_mps2 = traffic_grip_mps2(plan, scene, state->pose);
        if (motion[i].brake_mps2 > 0.0) {
            double rate = dmath_min(motion[i].brake_mps2, grip_mps2);
            accel_mps2 = state->speed_mps > 0.0 ? -rate : state->speed_mps < 0.0 ? rate : 0.0;
        } else if (motion[i].reactive && was_actor) {
            accel_mps2 = traffic_idm_accel(plan, &actors, self, scene, grip_mps2, &motion[i]);
            if (motion[i].observed || motion[i].habit_mps2 != 0.0) {
                accel_mps2 = traffic_habit(&motion[i], accel_mps2);
                accel_mps2 = dmath_clamp(accel_mps2, -grip_mps2, grip_mps2);
            }
            if (plan->agents[i].driver.changes_lanes) {
                traffic_mobil_decide(plan, &actors, self, scene, grip_mps2, &motion[i], accel_mps2);
            }
        } else {
            accel_mps2 = script_accel(&motion[i], state->speed_mps, grip_mps2);
        }
        integrate(plan, accel_mps2, grip_mps2, &motion[i], state);
    }
}
