/*
 * Stop and yield signs, and the right of way without them, for agents that drive by IDM.
 *
 * At a stop sign they come to a standstill before the line; then, as at a yield sign, they wait
 * while somebody will be on their way behind the line within the critical headway. 6.5 s is the
 * Highway Capacity Manual's for going through from the minor road of a two-way stop (6th edition,
 * chapter 20, base critical headways of two-lane roads; 7.1 s for left turns and 6.2 s for right
 * ones are taken as 6.5 s too). Others are taken to go straight on at their speed.
 * Of several who stand at stop signs, who stood first goes first.
 * A road of lower rank without a plate is like a yield sign; by priority to the right only who
 * comes from there is waited for, also while it waits itself. Where all wait in a circle, the first
 * of the scenario's agents begins: the law leaves that to a sign of the hand.
 * Who turns across oncoming traffic waits for those who come towards it and would be on its way
 * within 4.1 s, the manual's base critical headway for left turns from the major road; not for one
 * that a red light stops first, nor for one that turns across as well: they pass each other.
 */
#include "base/dmath.h"
#include "engine/traffic/traffic.h"

#include <math.h>
#include <stddef.h>

#define CRITICAL_HEADWAY_S 6.5
#define TURN_HEADWAY_S 4.1
#define ONCOMING_COS 0.5 /* within 60 degrees of the opposite direction */
#define TURNS_M 40.0     /* before the line of its own turn */
#define RED_M 60.0       /* before a red light */
#define HALT_MPS 0.1
#define HALT_WITHIN_M                                                          \
    4.0 /* of the stop line; a driver who keeps larger gaps stands farther off \
         */
#define HALT_SLACK_M 1.0
#define WAY_M 20.0 /* behind the line, on which others are looked for */
#define WAY_STEP_M 1.0
#define SIDE_M 0.3
#define DECIDE_S 4.0 /* before a yield sign's line, and not farther off than that */
#define DECIDE_M 5.0
#define START_MPS 4.0 /* who goes first is about to drive at */
#define MOVING_MPS 0.3
#define ALONG_COS 0.5
#define WAIT_MPS 2.0
#define WAIT_M 8.0      /* of the line, farther off than anybody stands */
#define TOGETHER_M 40.0 /* who waits at the same junction */
#define RIGHT_SINE 0.5  /* who comes from the right crosses at 30 degrees or more */

enum { CIRCLE_MAX = 8 };

static const struct track_stop *stop_of(const struct traffic_plan *plan, int32_t track,
                                        uint32_t signal)
{
    for (uint32_t i = plan->stops.first[track]; i < plan->stops.first[track + 1]; i++) {
        if (plan->stops.stops[i].signal == signal) {
            return &plan->stops.stops[i];
        }
    }
    return NULL;
}

static enum traffic_sign sign_of(const struct traffic_plan *plan, const struct track_stop *stop)
{
    return roadmap_map(plan->roadmap)->signals[stop->signal].sign;
}

/* The next line of such a sign on the agent's way, NULL: none; *gap_m from its front edge. */
static const struct track_stop *next_line(const struct traffic_plan *plan, uint32_t agent,
                                          const struct agent_motion *motion, enum traffic_sign sign,
                                          double *gap_m)
{
    const struct track_stop *next = NULL;
    for (uint32_t i = plan->stops.first[motion->track]; i < plan->stops.first[motion->track + 1];
         i++) {
        const struct track_stop *stop = &plan->stops.stops[i];
        double ahead_m = stop->s_m - motion->s_m - plan->agents[agent].half_length_m;
        if (sign_of(plan, stop) == sign && ahead_m > 0.0 && (next == NULL || ahead_m < *gap_m)) {
            next = stop;
            *gap_m = ahead_m;
        }
    }
    return next;
}

static bool obeys(const struct agent_motion *motion)
{
    return motion->mode == MOTION_TRACK && motion->reactive && motion->direction > 0;
}

void traffic_signs_update(const struct traffic_plan *plan, const struct scene *scene,
                          struct agent_motion *motion)
{
    for (uint32_t i = 0; i < plan->agent_count; i++) {
        const struct track_stop *halted = NULL;
        const struct track_stop *stop;
        double gap_m = 0.0;
        if (!obeys(&motion[i]) || !scene->agents[i].present) {
            continue;
        }
        if (motion[i].halt_sign != 0) {
            halted = stop_of(plan, motion[i].track, motion[i].halt_sign - 1);
        }
        if (halted == NULL || motion[i].s_m > halted->s_m + WAY_M) {
            motion[i].halt_sign = 0;
        }
        stop = next_line(plan, i, &motion[i], TRAFFIC_SIGN_STOP, &gap_m);
        double within_m = dmath_max(HALT_WITHIN_M, plan->agents[i].driver.min_gap_m + HALT_SLACK_M);
        if (stop != NULL && stop->signal + 1 != motion[i].halt_sign && gap_m <= within_m &&
            fabs(scene->agents[i].speed_mps) < HALT_MPS) {
            motion[i].halt_sign = stop->signal + 1;
            motion[i].halt_tick = scene->tick;
        }
    }
}

uint32_t traffic_signs_turn(const struct traffic_plan *plan, uint32_t agent,
                            const struct agent_motion *motion)
{
    double gap_m;
    if (!obeys(motion)) {
        return 0;
    }
    const struct track_stop *stop = next_line(plan, agent, motion, TRAFFIC_SIGN_STOP, &gap_m);
    if (stop != NULL && stop->signal + 1 != motion->halt_sign) {
        return TRAFFIC_SIGNS_AHEAD;
    }
    return motion->halt_sign != 0 ? motion->halt_tick + 1 : 0;
}

bool traffic_signs_wait(const struct traffic_plan *plan, uint32_t agent,
                        const struct agent_motion *motion, double speed_mps)
{
    double gap_m = 0.0;
    return obeys(motion) && fabs(speed_mps) < WAIT_MPS &&
           next_line(plan, agent, motion, TRAFFIC_SIGN_GIVE_WAY_RIGHT, &gap_m) != NULL &&
           gap_m < WAIT_M;
}

/* Whether somebody at a place, on the way along a track, has such a line within `most_m` ahead. */
static bool comes_to_turn(const struct traffic_plan *plan, int32_t track, double x_m, double y_m,
                          double ux, double uy, double most_m)
{
    for (uint32_t i = plan->stops.first[track]; i < plan->stops.first[track + 1]; i++) {
        const struct track_stop *stop = &plan->stops.stops[i];
        if (sign_of(plan, stop) != TRAFFIC_SIGN_GIVE_WAY_ONCOMING) {
            continue;
        }
        struct track_pose line = track_at(plan->tracks[track], stop->s_m);
        double dx = line.x_m - x_m;
        double dy = line.y_m - y_m;
        double ahead_m = dx * ux + dy * uy;
        if (ahead_m > -WAY_M / 2.0 && ahead_m < most_m && fabs(dy * ux - dx * uy) < WAY_M / 2.0 &&
            line.ux * ux + line.uy * uy > ALONG_COS) {
            return true;
        }
    }
    return false;
}

/* Whether a red light stops the agent before it has come so far. */
static bool red_ahead(const struct traffic_plan *plan, const struct scene *scene, uint32_t agent,
                      const struct agent_motion *motion)
{
    for (uint32_t i = plan->stops.first[motion->track]; i < plan->stops.first[motion->track + 1];
         i++) {
        const struct track_stop *stop = &plan->stops.stops[i];
        double ahead_m = stop->s_m - motion->s_m - plan->agents[agent].half_length_m;
        if (signal_stops((enum traffic_light)scene->signal_light[stop->signal]) && ahead_m > 0.0 &&
            ahead_m < RED_M) {
            return true;
        }
    }
    return false;
}

bool traffic_signs_harmless(const struct traffic_plan *plan, const struct scene *scene,
                            uint32_t agent, const struct agent_motion *motion)
{
    const struct agent_state *state = &scene->agents[agent];
    return obeys(motion) && (red_ahead(plan, scene, agent, motion) ||
                             comes_to_turn(plan, motion->track, state->pose.x_m, state->pose.y_m,
                                           motion->ux, motion->uy, TURNS_M));
}

bool traffic_signs_ego_turns(const struct traffic_plan *plan, const struct scene *scene, double ux,
                             double uy)
{
    return comes_to_turn(plan, TRAFFIC_TRACK_ROUTE, scene->ego.pose.x_m, scene->ego.pose.y_m, ux,
                         uy, TURNS_M);
}

/* Whoever waits to the right of an actor; actors->count: nobody. */
static uint32_t waits_to_the_right(const struct actors *actors, uint32_t of)
{
    for (uint32_t j = 0; j < actors->count; j++) {
        double dx = actors->x_m[j] - actors->x_m[of];
        double dy = actors->y_m[j] - actors->y_m[of];
        if (actors->waits[j] && dx * dx + dy * dy < TOGETHER_M * TOGETHER_M &&
            actors->ux[of] * actors->uy[j] - actors->uy[of] * actors->ux[j] > RIGHT_SINE) {
            return j;
        }
    }
    return actors->count;
}

/* Whether everybody waits for the next one in a circle, which `self` is to open. */
static bool opens_the_circle(const struct actors *actors, uint32_t self)
{
    uint32_t at = self;
    for (int i = 0; i < CIRCLE_MAX && actors->waits[self]; i++) {
        at = waits_to_the_right(actors, at);
        if (at == self) {
            return true;
        }
        if (at == actors->count || at < self) {
            return false;
        }
    }
    return false;
}

/* Whether the other drives ahead of `self` on its way, so that it follows. */
static bool leads(const struct actors *actors, const struct track *track, double own_s_m,
                  uint32_t other, double side_m)
{
    struct vec2 place = {actors->x_m[other], actors->y_m[other]};
    struct track_position at =
        track_project_window(track, place, own_s_m, own_s_m + 2.0 * WAY_M + DECIDE_M);
    return at.s_m > own_s_m && fabs(at.offset_m) < side_m &&
           at.ux * actors->ux[other] + at.uy * actors->uy[other] > ALONG_COS;
}

/* Whether the other, going straight on, comes to the way behind the line in less than the critical
 * headway. */
static bool comes(const struct actors *actors, const struct track *track, double line_m,
                  uint32_t other, double speed_mps, double headway_s, double side_m)
{
    double half_m = actors->half_length_m[other];
    for (double s_m = line_m; s_m <= line_m + WAY_M; s_m += WAY_STEP_M) {
        struct track_pose at = track_at(track, s_m);
        double dx = at.x_m - actors->x_m[other];
        double dy = at.y_m - actors->y_m[other];
        double along_m = dx * actors->ux[other] + dy * actors->uy[other];
        double across_m = fabs(dy * actors->ux[other] - dx * actors->uy[other]);
        if (across_m < side_m && along_m > -half_m && along_m - half_m < headway_s * speed_mps) {
            return true;
        }
    }
    return false;
}

/* Whether somebody has the right of way over `self`: from the right alone, or who comes towards it,
 * where the sign says so. */
static bool must_wait(const struct traffic_plan *plan, const struct actors *actors, uint32_t self,
                      const struct track_stop *stop, const struct agent_motion *motion,
                      enum traffic_sign sign)
{
    bool right = sign == TRAFFIC_SIGN_GIVE_WAY_RIGHT;
    bool turns = sign == TRAFFIC_SIGN_GIVE_WAY_ONCOMING;
    double headway_s = turns ? TURN_HEADWAY_S : CRITICAL_HEADWAY_S;
    const struct track *track = plan->tracks[motion->track];
    struct track_pose line = track_at(track, stop->s_m);
    double line_uy;
    double line_ux;
    dmath_sincos(line.heading_rad, &line_uy, &line_ux);
    bool opens = right && opens_the_circle(actors, self);
    double half_m = plan->agents[actors->agent[self]].half_width_m;
    for (uint32_t j = 0; j < actors->count; j++) {
        double speed_mps = actors->vx_mps[j] * actors->ux[j] + actors->vy_mps[j] * actors->uy[j];
        uint32_t turn = actors->turn[j];
        bool first = turn != 0 && motion->halt_sign != 0 &&
                     (turn < motion->halt_tick + 1 || (turn == motion->halt_tick + 1 && j < self));
        if (first || (right && actors->waits[j])) {
            speed_mps = dmath_max(speed_mps, START_MPS);
        }
        double sine = line_ux * actors->uy[j] - line_uy * actors->ux[j];
        double cosine = line_ux * actors->ux[j] + line_uy * actors->uy[j];
        if (turns && (cosine > -ONCOMING_COS || actors->harmless[j])) {
            continue;
        }
        if (j == self || turn == TRAFFIC_SIGNS_AHEAD || speed_mps < MOVING_MPS ||
            (right && (sine < RIGHT_SINE || (opens && actors->waits[j])))) {
            continue;
        }
        speed_mps =
            turns ? dmath_max(speed_mps, START_MPS) : speed_mps; /* it may be pulling away */
        double side_m = half_m + actors->half_width_m[j] + SIDE_M;
        double dx = actors->x_m[self] - actors->x_m[j];
        double dy = actors->y_m[self] - actors->y_m[j];
        bool behind =
            dx * actors->ux[j] + dy * actors->uy[j] > 0.0 &&
            fabs(dy * actors->ux[j] - dx * actors->uy[j]) < side_m &&
            actors->ux[self] * actors->ux[j] + actors->uy[self] * actors->uy[j] > ALONG_COS;
        if (!behind && comes(actors, track, stop->s_m, j, speed_mps, headway_s, side_m) &&
            !leads(actors, track, motion->s_m, j, side_m)) {
            return true;
        }
    }
    return false;
}

bool traffic_signs_hold(const struct traffic_plan *plan, const struct actors *actors, uint32_t self,
                        const struct track_stop *stop, const struct agent_motion *motion,
                        double speed_mps, double gap_m)
{
    enum traffic_sign sign = sign_of(plan, stop);
    if (sign == TRAFFIC_SIGN_NONE || sign == TRAFFIC_SIGN_PRIORITY) {
        return false;
    }
    if (sign == TRAFFIC_SIGN_STOP && motion->halt_sign != stop->signal + 1) {
        return true;
    }
    return gap_m < dmath_max(DECIDE_S * speed_mps, DECIDE_M) &&
           must_wait(plan, actors, self, stop, motion, sign);
}
