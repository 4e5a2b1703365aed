/*
 * Actions: what they set when they start, and how actors move under them.
 *
 * An actor has at most one action for its speed and one for its way; a new one takes the place of
 * the old, which has then been stopped. Without either it keeps its speed and its offset.
 * Invariant: the distance an actor covers in a sub-step is its mean speed times the sub-step; what
 * a lateral movement takes of it is missing along the path.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "engine/story/story_internal.h"

#include <math.h>
#include <stddef.h>

#define WHOLE_EPSILON 1e-9
#define GAP_REACHED_M 0.01
#define GAP_SPRING 0.4 /* per second squared and per m/s2 of bound, esmini's damped spring */
#define STRETCH_MIN 0.3
#define LIMIT_SLACK (1.0 + 1e-6) /* for rounding where a change of speed is as hard as may be */

/* ---- transitions ---- */

static double shape_at(enum story_shape shape, double u)
{
    switch (shape) {
    case STORY_LINEAR:
        return u;
    case STORY_CUBIC:
        return u * u * (3.0 - 2.0 * u);
    case STORY_SINUSOIDAL:
        return 0.5 * (1.0 - dmath_cos(PI_RAD * u));
    case STORY_STEP:
    case STORY_SHAPE_COUNT:
        break;
    }
    return 1.0;
}

/* Greatest slope of a shape: of a change by 1 within 1. */
static double shape_slope(enum story_shape shape)
{
    return shape == STORY_CUBIC ? 1.5 : shape == STORY_SINUSOIDAL ? PI_RAD / 2.0 : 1.0;
}

/* Greatest second derivative; of the straight one, which has none, the cubic's, as esmini has it.
 */
static double shape_bend(enum story_shape shape)
{
    return shape == STORY_SINUSOIDAL ? PI_RAD * PI_RAD / 2.0 : 6.0;
}

/* Seconds or metres that a change takes; 0: at once. */
static double transition_whole(const struct story_action *action, double change)
{
    if (action->shape == STORY_STEP || fabs(change) < WHOLE_EPSILON) {
        return 0.0;
    }
    switch (action->by) {
    case STORY_BY_TIME:
    case STORY_BY_DISTANCE:
        return action->value;
    case STORY_BY_RATE:
        return action->value > 0.0 ? shape_slope(action->shape) * fabs(change) / action->value
                                   : 0.0;
    case STORY_BY_ACCEL:
        return action->value > 0.0 ? sqrt(shape_bend(action->shape) * fabs(change) / action->value)
                                   : 0.0;
    case STORY_BY_COUNT:
        break;
    }
    return 0.0;
}

static double transition_value(const struct story_transition *transition, enum story_shape shape)
{
    double u = transition->whole > 0.0 ? transition->done / transition->whole : 1.0;
    u = dmath_clamp(u, 0.0, 1.0);
    return u >= 1.0 ? transition->to
                    : transition->from + (transition->to - transition->from) * shape_at(shape, u);
}

/* ---- start ---- */

static double speed_target(const struct story_run *run, const struct story_action *action)
{
    const struct story_actor *record = &run->board->actors[action->actor];
    double target_mps = action->target_mps;
    if (action->other >= 0) {
        target_mps += action->factor * run->state->actors[action->other].speed_mps;
    }
    return dmath_clamp(target_mps, -record->speed_max_mps, record->speed_max_mps);
}

static void start_speed(const struct story_run *run, const struct story_action *action)
{
    const struct story_actor *record = &run->board->actors[action->actor];
    struct story_actor_state *self = &run->state->actors[action->actor];
    double target_mps = speed_target(run, action);
    double change_mps = target_mps - self->speed_mps;
    double whole_s = transition_whole(action, change_mps);
    if (action->by == STORY_BY_DISTANCE && whole_s > 0.0) {
        double sum_mps = fabs(self->speed_mps + target_mps); /* shapes are over time */
        whole_s = sum_mps > WHOLE_EPSILON ? 2.0 * whole_s / sum_mps : 0.0;
    }
    if (whole_s > 0.0) { /* no harder than the vehicle can */
        double bound_mps2 = change_mps > 0.0 ? record->accel_max_mps2 : record->decel_max_mps2;
        whole_s = dmath_max(whole_s, shape_slope(action->shape) * fabs(change_mps) / bound_mps2);
    }
    self->speed = (struct story_transition){self->speed_mps, target_mps, 0.0, whole_s};
    if (whole_s == 0.0) {
        self->speed_mps = target_mps;
    }
}

static void start_profile(const struct story_run *run, const struct story_action *action)
{
    struct story_actor_state *self = &run->state->actors[action->actor];
    if (action->steps[0].x_m == 0.0) { /* at once */
        self->speed_mps = action->steps[0].y_m;
    }
    self->speed = (struct story_transition){.from = self->speed_mps, .to = self->speed_mps};
}

/* The path and the target for where the actor is. */
static struct story_way way_of(const struct story_run *run, const struct story_action *action)
{
    const struct story_actor_state *self = &run->state->actors[action->actor];
    struct story_way way = {0.0, action->path, action->target_m};
    double s_m = self->s_m;
    double offset_m;
    if (action->way_count > 0 && (self->path != action->ways_on || self->framed)) {
        story_path_project(&run->board->paths[action->ways_on], (struct vec2){self->x_m, self->y_m},
                           &s_m, &offset_m);
    }
    for (uint32_t i = 0; i < action->way_count && s_m >= action->ways[i].from_s_m; i++) {
        way = action->ways[i];
    }
    return way;
}

/* With another: beside where it is now. */
static double lateral_target(const struct story_run *run, const struct story_action *action,
                             double target_m)
{
    const struct story_actor_state *self = &run->state->actors[action->actor];
    double s_m;
    double offset_m = 0.0;
    if (action->other >= 0) {
        const struct story_actor_state *to = &run->state->actors[action->other];
        story_own_project(run, self, (struct vec2){to->x_m, to->y_m}, &s_m, &offset_m);
    }
    return target_m + offset_m;
}

static void start_lateral(const struct story_run *run, const struct story_action *action)
{
    struct story_actor_state *self = &run->state->actors[action->actor];
    uint32_t actor = (uint32_t)action->actor;
    struct story_way way = way_of(run, action);
    bool reversed = fabs(dmath_wrap_angle(self->turn_rad)) > PI_RAD / 2;
    bool backing = self->backing;
    if (way.path >= 0) {
        story_change_path(run, actor, (uint32_t)way.path);
    }
    reversed = backing ? self->backing : reversed; /* it may face the new path's way */
    self->turn_rad = reversed ? PI_RAD : 0.0;
    double target_m = lateral_target(run, action, way.target_m);
    self->lateral = (struct story_transition){self->offset_m, target_m, 0.0,
                                              transition_whole(action, target_m - self->offset_m)};
}

static void start_follow(const struct story_run *run, const struct story_action *action)
{
    struct story_actor_state *self = &run->state->actors[action->actor];
    const struct story_path *path = &run->board->paths[action->path];
    story_enter_path(self, (uint32_t)action->path);
    if (action->relative) {
        self->frame = (struct pose){self->x_m, self->y_m, self->heading_rad};
        self->framed = 1;
    }
    self->s_m = path->points[0].s_m + action->s_m;
    self->offset_m = 0.0;
    self->turn_rad = action->heading_rad;
    self->backing = self->speed_mps < 0.0 && !path->timed;
    if (self->backing) { /* as in esmini: from its beginning too, tail first */
        self->turn_rad += PI_RAD;
    }
    story_place(run, (uint32_t)action->actor);
}

static void place_at(const struct story_run *run, const struct story_action *action)
{
    struct story_actor_state *self = &run->state->actors[action->actor];
    story_enter_path(self, (uint32_t)action->path);
    self->s_m = action->s_m;
    self->offset_m = action->offset_m;
    self->turn_rad = action->heading_rad;
    self->backing = 0;
    story_place(run, (uint32_t)action->actor);
}

/* Gives an actor's speed or way to an action; what had it is stopped. */
static void take(const struct story_run *run, int16_t *slot, uint32_t action)
{
    if (*slot >= 0 && (uint32_t)*slot != action) {
        struct story_action_state *old = &run->state->actions[*slot];
        old->running = 0;
        old->stopped = 1;
        old->end_s = run->time_s;
    }
    *slot = (int16_t)action;
}

static bool of_speed(enum story_action_kind kind)
{
    return kind == STORY_DO_SPEED || kind == STORY_DO_PROFILE || kind == STORY_DO_GAP ||
           kind == STORY_DO_SYNCHRONISE;
}

static void complete(const struct story_run *run, uint32_t index, double time_s)
{
    struct story_action_state *state = &run->state->actions[index];
    const struct story_action *action = &run->board->actions[index];
    state->running = 0;
    state->stopped = 0;
    state->end_s = time_s;
    if (action->actor >= 0) {
        struct story_actor_state *self = &run->state->actors[action->actor];
        self->speed_action = self->speed_action == (int16_t)index ? -1 : self->speed_action;
        self->lateral_action = self->lateral_action == (int16_t)index ? -1 : self->lateral_action;
    }
}

static double gap_speed(const struct story_run *run, const struct story_action *action,
                        struct story_actor_state *self, bool *done)
{
    const struct story_actor_state *to = &run->state->actors[action->other];
    double distance_m = story_distance(run, (uint32_t)action->actor, (uint32_t)action->other,
                                       STORY_LONGITUDINAL, true, action->freespace);
    double wanted_m = isnan(action->time_s) ? action->value : fabs(to->speed_mps) * action->time_s;
    double side = action->factor < 0.0   ? -1.0
                  : action->factor > 0.0 ? 1.0
                  : distance_m < 0.0     ? -1.0
                                         : 1.0;
    double excess_m = distance_m - side * wanted_m;
    *done = !action->continuous && fabs(excess_m) < GAP_REACHED_M;
    if (!isfinite(action->accel_mps2) && !isfinite(action->decel_mps2)) {
        self->s_m += excess_m; /* unbounded: there at once */
        return to->speed_mps;
    }
    double accel_max = dmath_min(action->accel_mps2, 1e3);
    double decel_max = dmath_min(action->decel_mps2, 1e3);
    double spring = (excess_m < 0.0 ? accel_max : decel_max) * GAP_SPRING;
    double accel_mps2 = excess_m * spring - (self->speed_mps - to->speed_mps) * 2.0 * sqrt(spring);
    accel_mps2 = dmath_clamp(accel_mps2, -decel_max, accel_max);
    double speed_mps = self->speed_mps + accel_mps2 * STORY_STEP_S;
    return dmath_clamp(speed_mps, -action->speed_max_mps, action->speed_max_mps);
}

/* Conditions look at when the action that sets a variable began: it is over then. */
static void end_set(const struct story_run *run, uint32_t index)
{
    if (run->board->actions[index].kind == STORY_DO_SET) {
        complete(run, index, run->time_s);
    }
}

void story_action_start(const struct story_run *run, uint32_t index)
{
    const struct story_action *action = &run->board->actions[index];
    struct story_actor_state *self = action->actor >= 0 ? &run->state->actors[action->actor] : NULL;
    run->state->actions[index] =
        (struct story_action_state){.start_s = run->time_s, .end_s = -1.0, .running = 1};
    if (self == NULL || action->kind == STORY_DO_WAIT || action->kind == STORY_DO_SET) {
        end_set(run, index);
        return;
    }
    if (of_speed(action->kind)) {
        take(run, &self->speed_action, index);
    } else if (action->kind == STORY_DO_LATERAL || action->kind == STORY_DO_FOLLOW) {
        take(run, &self->lateral_action, index);
    }
    switch (action->kind) {
    case STORY_DO_SPEED:
        start_speed(run, action);
        if (self->speed.whole == 0.0 && !action->continuous) {
            complete(run, index, run->time_s);
        }
        return;
    case STORY_DO_PROFILE:
        start_profile(run, action);
        return;
    case STORY_DO_LATERAL:
        start_lateral(run, action);
        if (self->lateral.whole == 0.0) {
            self->offset_m = self->lateral.to;
            story_place(run, (uint32_t)action->actor);
        }
        if (self->lateral.whole == 0.0 && !action->continuous) {
            complete(run, index, run->time_s);
        }
        return;
    case STORY_DO_FOLLOW:
        start_follow(run, action);
        return;
    case STORY_DO_SYNCHRONISE:
        self->phase = 0;
        self->last_m = INFINITY;
        self->last_other_m = INFINITY;
        return;
    case STORY_DO_PLACE:
        place_at(run, action);
        break;
    case STORY_DO_PATH:
        story_change_path(run, (uint32_t)action->actor, (uint32_t)way_of(run, action).path);
        break;
    case STORY_DO_SHOW:
        self->present = 1;
        break;
    case STORY_DO_HIDE:
        self->present = 0;
        break;
    case STORY_DO_GAP:
        if (isfinite(action->accel_mps2) || isfinite(action->decel_mps2)) {
            return;
        }
        bool done; /* unbounded: there at once */
        self->speed_mps = gap_speed(run, action, self, &done);
        story_place(run, (uint32_t)action->actor);
        if (action->continuous) {
            return;
        }
        break;
    case STORY_DO_WAIT:
    case STORY_DO_SET:
    case STORY_ACTION_COUNT:
        return;
    }
    complete(run, index, run->time_s);
}

void story_action_end(const struct story_run *run, uint32_t index, bool stopped)
{
    if (run->state->actions[index].running) {
        complete(run, index, run->time_s);
        run->state->actions[index].stopped = stopped;
    }
}

/* ---- speed ---- */

/* Speed of a profile `elapsed_s` after its start: straight from one to the next. */
static double profile_speed(const struct story_action *action, double from_mps, double elapsed_s,
                            bool *done)
{
    double speed_mps = from_mps;
    for (uint32_t i = 0; i < action->step_count; i++) {
        double step_s = action->steps[i].x_m;
        double to_mps = action->steps[i].y_m;
        if (step_s > 0.0 && elapsed_s < step_s - WHOLE_EPSILON) {
            *done = false;
            return speed_mps + (to_mps - speed_mps) * elapsed_s / step_s;
        }
        elapsed_s -= step_s;
        speed_mps = to_mps;
    }
    *done = true;
    return speed_mps;
}

/* No faster, and no harder, than the vehicle can; jumps that a file prescribes are set apart. */
static double within_limits(const struct story_actor *record, double before_mps, double speed_mps)
{
    double up_mps = STORY_STEP_S * record->accel_max_mps2 * LIMIT_SLACK;
    double down_mps = STORY_STEP_S * record->decel_max_mps2 * LIMIT_SLACK;
    double low_mps = before_mps - (before_mps > 0.0 ? down_mps : up_mps);
    double high_mps = before_mps + (before_mps < 0.0 ? down_mps : up_mps);
    speed_mps = dmath_clamp(speed_mps, low_mps, high_mps);
    return dmath_clamp(speed_mps, -record->speed_max_mps, record->speed_max_mps);
}

static double next_speed(const struct story_run *run, struct story_actor_state *self)
{
    if (self->braked_mps2 > 0.0) {
        double less_mps = self->braked_mps2 * STORY_STEP_S;
        return self->speed_mps > less_mps    ? self->speed_mps - less_mps
               : self->speed_mps < -less_mps ? self->speed_mps + less_mps
                                             : 0.0;
    }
    if (self->speed_action < 0) {
        return self->speed_mps;
    }
    uint32_t index = (uint32_t)self->speed_action;
    const struct story_action *action = &run->board->actions[index];
    const struct story_actor *record = &run->board->actors[action->actor];
    double end_s = run->time_s + STORY_STEP_S;
    double wanted_mps = self->speed_mps;
    double speed_mps = self->speed_mps;
    bool done = false;
    switch (action->kind) {
    case STORY_DO_SPEED:
        if (action->other >= 0 && action->other != action->actor) { /* as esmini: anew until then */
            self->speed.to = speed_target(run, action);
        }
        self->speed.done += STORY_STEP_S;
        wanted_mps = transition_value(&self->speed, action->shape);
        speed_mps = action->shape == STORY_STEP
                        ? wanted_mps
                        : within_limits(record, self->speed_mps, wanted_mps);
        done = !action->continuous && self->speed.done >= self->speed.whole - WHOLE_EPSILON;
        break;
    case STORY_DO_PROFILE:
        wanted_mps = profile_speed(action, self->speed.from,
                                   end_s - run->state->actions[index].start_s, &done);
        speed_mps = within_limits(record, self->speed_mps, wanted_mps);
        done = done && speed_mps == wanted_mps;
        break;
    case STORY_DO_GAP:
        speed_mps = gap_speed(run, action, self, &done);
        break;
    case STORY_DO_SYNCHRONISE:
        wanted_mps = story_synchronise(run, action, self, &done);
        speed_mps = within_limits(record, self->speed_mps, wanted_mps);
        break;
    default:
        break;
    }
    if (done) {
        complete(run, index, end_s);
    }
    return speed_mps;
}

/* ---- way ---- */

/* Along the path by a distance, beside bends a little more or less; over its end onto the next. */
static void advance(const struct story_run *run, struct story_actor_state *self, double distance_m)
{
    const struct story_path *path = &run->board->paths[self->path];
    double curvature;
    story_path_pose(path, self->s_m, &self->hint, &curvature);
    self->s_m += distance_m / dmath_max(1.0 - curvature * self->offset_m, STRETCH_MIN);
    double past_m = self->s_m - path->points[path->point_count - 1].s_m;
    if (past_m > 0.0 && path->next >= 0) {
        story_enter_path(self, (uint32_t)path->next);
        self->s_m = path->next_s_m + past_m;
        self->offset_m += path->next_offset_m;
    }
}

/* One sub-step of a lateral action; returns the distance left along the path. */
static double move_aside(const struct story_run *run, struct story_actor_state *self,
                         double distance_m)
{
    uint32_t index = (uint32_t)self->lateral_action;
    const struct story_action *action = &run->board->actions[index];
    double way_m = fabs(distance_m);
    double before_m = self->offset_m;
    double along_m = way_m;
    if (self->speed_mps == 0.0 && way_m == 0.0) {
        return 0.0;
    }
    struct story_transition *change = &self->lateral;
    if (action->continuous) { /* beside an actor that moves aside itself */
        change->to = lateral_target(run, action, way_of(run, action).target_m);
    }
    if (action->by == STORY_BY_DISTANCE) {
        double u = dmath_clamp(change->done / change->whole, 0.0, 1.0);
        double ahead = dmath_clamp(u + way_m / change->whole, 0.0, 1.0);
        double slope = (shape_at(action->shape, ahead) - shape_at(action->shape, u)) *
                       (change->to - change->from) / dmath_max(way_m, WHOLE_EPSILON);
        along_m = way_m / sqrt(1.0 + slope * slope);
        change->done += along_m;
        self->offset_m = transition_value(change, action->shape);
    } else {
        struct story_transition ahead = *change;
        ahead.done += STORY_STEP_S;
        double to_m = transition_value(&ahead, action->shape);
        double aside_m = fabs(to_m - before_m);
        if (aside_m > way_m) { /* slower than it should move aside: it only does that */
            double whole_m = fabs(change->to - change->from);
            change->done += whole_m > 0.0 ? way_m * change->whole / whole_m : STORY_STEP_S;
            to_m = before_m + (change->to > before_m ? way_m : -way_m);
            bool past = (change->to - before_m) * (change->to - to_m) <= 0.0;
            to_m = past ? change->to : to_m;
            along_m = 0.0;
        } else {
            *change = ahead;
            /* An offset leaves the speed along the lane as it is; a change of lanes does not. */
            along_m =
                action->by == STORY_BY_ACCEL ? way_m : sqrt(way_m * way_m - aside_m * aside_m);
        }
        self->offset_m = to_m;
    }
    bool reversed = fabs(self->turn_rad) > PI_RAD / 2;
    double aside_m = self->offset_m - before_m;
    double turn_rad = dmath_atan2(aside_m, dmath_max(along_m, 1e-12));
    bool done = change->done >= change->whole - WHOLE_EPSILON;
    turn_rad = done ? 0.0 : distance_m < 0.0 ? -turn_rad : turn_rad;
    self->turn_rad = reversed ? PI_RAD + turn_rad : turn_rad;
    if (done && !action->continuous) {
        self->offset_m = change->to;
        complete(run, index, run->time_s + STORY_STEP_S);
    }
    return distance_m < 0.0 ? -along_m : along_m;
}

/* A timed path prescribes place and speed. */
static void follow_times(const struct story_run *run, struct story_actor_state *self)
{
    uint32_t index = (uint32_t)self->lateral_action;
    const struct story_action *action = &run->board->actions[index];
    const struct story_path *path = &run->board->paths[action->path];
    const struct story_point *last = &path->points[path->point_count - 1];
    double end_s = run->time_s + STORY_STEP_S;
    double clock_s = action->absolute ? end_s : end_s - run->state->actions[index].start_s;
    double at_s = (clock_s - action->start_s) / action->scale;
    double s_m = story_path_at_time(path, at_s);
    double speed_mps = (s_m - self->s_m) / STORY_STEP_S;
    bool done = at_s >= last->t_s - WHOLE_EPSILON;
    if (!done) {
        self->s_m = s_m;
        self->speed_mps = at_s < path->points[0].t_s ? 0.0 : speed_mps;
        return;
    }
    double past_s = (at_s - last->t_s) * action->scale;
    advance(run, self, last->s_m - self->s_m + past_s * self->speed_mps);
    complete(run, index, end_s);
}

static void follow_path(const struct story_run *run, struct story_actor_state *self,
                        double distance_m)
{
    uint32_t index = (uint32_t)self->lateral_action;
    const struct story_path *path = &run->board->paths[self->path];
    double end_m = path->points[path->point_count - 1].s_m;
    bool done = distance_m > 0.0   ? self->s_m + distance_m > end_m - 1e-6
                : distance_m < 0.0 ? self->s_m + distance_m < path->points[0].s_m + 1e-6
                                   : false;
    advance(run, self, distance_m);
    if (done) {
        complete(run, index, run->time_s + STORY_STEP_S);
    }
}

static void move_actor(const struct story_run *run, uint32_t actor)
{
    struct story_actor_state *self = &run->state->actors[actor];
    double before_mps = self->speed_mps;
    double x_m = self->x_m;
    double y_m = self->y_m;
    struct vec2 ahead = {self->ux, self->uy};
    self->speed_mps = next_speed(run, self);
    double distance_m = 0.5 * (before_mps + self->speed_mps) * STORY_STEP_S;
    distance_m = self->backing ? -distance_m : distance_m;
    const struct story_action *way =
        self->lateral_action >= 0 ? &run->board->actions[self->lateral_action] : NULL;
    if (way == NULL) {
        advance(run, self, distance_m);
    } else if (way->kind == STORY_DO_LATERAL) {
        advance(run, self, move_aside(run, self, distance_m));
    } else if (run->board->paths[way->path].timed && self->braked_mps2 == 0.0) {
        follow_times(run, self);
    } else {
        follow_path(run, self, distance_m);
    }
    story_place(run, actor);
    double dx = self->x_m - x_m;
    double dy = self->y_m - y_m;
    self->travelled_m += sqrt(dx * dx + dy * dy);
    self->accel_mps2 = (self->speed_mps - before_mps) / STORY_STEP_S;
    double turn = ahead.x_m * self->uy - ahead.y_m * self->ux;
    self->lat_accel_mps2 = self->speed_mps * turn / STORY_STEP_S;
    self->standing_s =
        fabs(self->speed_mps) < STORY_STILL_MPS ? self->standing_s + STORY_STEP_S : 0.0;
}

void story_actors_move(const struct story_run *run)
{
    for (uint32_t i = 0; i < run->board->actor_count; i++) {
        if (run->board->actors[i].agent != STORY_EGO) {
            move_actor(run, i);
        }
    }
    for (uint32_t i = 0; i < run->board->action_count; i++) {
        const struct story_action_state *state = &run->state->actions[i];
        const struct story_action *action = &run->board->actions[i];
        bool waits = action->kind == STORY_DO_WAIT;
        double end_s = run->time_s + STORY_STEP_S;
        if (waits && state->running && end_s >= state->start_s + action->value - WHOLE_EPSILON) {
            complete(run, i, end_s);
        }
    }
}
