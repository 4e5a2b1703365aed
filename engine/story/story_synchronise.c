/*
 * Synchronisation: an actor reaches a point when another reaches its own.
 *
 * With a final speed there are two stretches of constant and opposite acceleration (or one, where
 * that is enough), computed anew in every sub-step, since the other may change its mind; where that
 * would need a negative speed, the actor stops and waits. Without one it accelerates evenly to be
 * there in time. The last steady_m are driven at the final speed.
 */
#include "base/dmath.h"
#include "engine/story/story_internal.h"

#include <math.h>

#define ON_LINE_MPS 0.1
#define STOP_DECEL_MPS2 8.0

enum { PHASE_OPEN = 0, PHASE_FASTER, PHASE_SLOWER, PHASE_LINE, PHASE_STEADY, PHASE_STOPPED };

static double way_to(const struct story_run *run, int32_t actor, double x_m, double y_m)
{
    const struct story_actor_state *self = &run->state->actors[actor];
    double s_m = self->s_m;
    double to_m;
    double offset_m;
    if (run->board->actors[actor].agent == STORY_EGO) {
        story_own_project(run, self, (struct vec2){self->x_m, self->y_m}, &s_m, &offset_m);
    }
    story_own_project(run, self, (struct vec2){x_m, y_m}, &to_m, &offset_m);
    return to_m - s_m;
}

/* Acceleration now that covers s_m in t_s from v0 to v1 in two parts: +-a then -+a. */
static double two_part_accel(double s_m, double t_s, double v0, double v1, double *apex_mps)
{
    double half = 0.5 * (v0 + v1);
    double excess_m = s_m - half * t_s; /* beyond what one straight change of speed covers */
    double side = excess_m >= 0.0 ? 1.0 : -1.0;
    /* vx from (vx - (v0 + v1) / 2)^2 + .. : the area between the line and the two parts. */
    double mean = s_m / t_s;
    double root =
        sqrt(dmath_max(2.0 * (mean - v0) * (mean - v0) + 2.0 * (mean - v1) * (mean - v1), 0.0));
    *apex_mps = mean + side * 0.5 * root;
    double total = fabs(*apex_mps - v0) + fabs(*apex_mps - v1);
    return total > 0.0 ? side * total / t_s : 0.0;
}

/* With a final speed: the next speed. */
static double final_speed(const struct story_action *action, struct story_actor_state *self,
                          double v1, double way_m, double time_s)
{
    double v0 = self->speed_mps;
    if (action->steady_m > 0.0 && v1 > 0.0 && self->phase != PHASE_STEADY) {
        double steady_s = action->steady_m / v1;
        if (way_m <= action->steady_m || time_s <= steady_s) {
            self->phase = PHASE_STEADY;
        } else {
            way_m -= action->steady_m;
            time_s -= steady_s;
        }
    }
    if (self->phase == PHASE_STEADY) {
        return v1;
    }
    if (self->phase == PHASE_STOPPED) {
        if (v1 <= 0.0 || time_s >= 2.0 * way_m / v1) {
            return 0.0;
        }
        self->phase = PHASE_LINE;
    }
    double on_line_mps = 2.0 * way_m / time_s - v1;
    if ((self->phase == PHASE_FASTER || self->phase == PHASE_SLOWER) &&
        fabs(v0 - on_line_mps) < ON_LINE_MPS) {
        self->phase = PHASE_LINE;
    }
    if (self->phase == PHASE_LINE) {
        double accel_mps2 = (v1 - on_line_mps) / time_s;
        return dmath_max(0.0, on_line_mps + accel_mps2 * STORY_STEP_S);
    }
    double apex_mps;
    double accel_mps2 = two_part_accel(way_m, time_s, v0, v1, &apex_mps);
    if (self->phase == PHASE_OPEN) {
        self->phase = accel_mps2 >= 0.0 ? PHASE_FASTER : PHASE_SLOWER;
    }
    if ((self->phase == PHASE_FASTER) != (accel_mps2 >= 0.0)) {
        self->phase = PHASE_LINE;
        return v0;
    }
    if (apex_mps < 0.0) { /* stop on the way: both parts in proportion to the squares of speeds */
        double squares = v0 * v0 + v1 * v1;
        double stop_s = squares > 0.0 ? 2.0 * v0 * way_m / squares : 0.0;
        accel_mps2 = stop_s > 0.0 ? -v0 / stop_s : -STOP_DECEL_MPS2;
        if (v0 + accel_mps2 * STORY_STEP_S <= 0.0) {
            self->phase = PHASE_STOPPED;
            return 0.0;
        }
    }
    return v0 + accel_mps2 * STORY_STEP_S;
}

double story_synchronise(const struct story_run *run, const struct story_action *action,
                         struct story_actor_state *self, bool *done)
{
    const struct story_actor_state *other = &run->state->actors[action->other];
    double most_mps = run->board->actors[action->actor].speed_max_mps;
    double final_mps =
        dmath_clamp(action->target_mps + action->factor * other->speed_mps, -most_mps, most_mps);
    double way_m = fabs(way_to(run, action->actor, action->x_m, action->y_m));
    double other_signed_m = way_to(run, action->other, action->other_x_m, action->other_y_m);
    double other_way_m = fabs(other_signed_m);
    double closing_mps = other_signed_m >= 0.0 ? other->speed_mps : -other->speed_mps;
    bool arrived =
        way_m <= action->tolerance_m + 1e-6 || other_way_m <= action->other_tolerance_m + 1e-6;
    bool passed = way_m > self->last_m + 1e-9 || other_way_m > self->last_other_m + 1e-9;
    self->last_m = way_m;
    self->last_other_m = other_way_m;
    *done = arrived || passed;
    way_m = dmath_max(way_m - action->tolerance_m, 1e-6);
    other_way_m = dmath_max(other_way_m - action->other_tolerance_m, 1e-6);
    if (!*done && closing_mps <= 1e-6) {
        return 0.0; /* the other stands: it waits too */
    }
    double time_s = *done ? 0.0 : other_way_m / closing_mps;
    *done = *done || time_s < STORY_STEP_S;
    if (*done) {
        return action->ends_speed ? final_mps : self->speed_mps;
    }
    if (action->ends_speed) {
        return final_speed(action, self, final_mps, way_m, time_s);
    }
    double accel_mps2 = 2.0 * (way_m / time_s - self->speed_mps) / time_s;
    return self->speed_mps + accel_mps2 * STORY_STEP_S;
}
