/*
 * Conditions: what a storyboard waits for.
 *
 * The edge of a condition is taken first and its delay after it, as the standard has it; the first
 * look at a condition is no edge. Of two things the standard leaves open, esmini's reading is
 * taken: a headway is defined only towards what is ahead of a moving actor, and an equality of
 * times holds in the first sub-step that reaches it.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "engine/story/story_internal.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define TIME_EPSILON_S 1e-9
#define EQUAL_TOLERANCE 1e-6
#define END_M 0.1 /* from the end of a road one is there */

static bool compare(double value, enum story_rule rule, double bound)
{
    switch (rule) {
    case STORY_GREATER:
        return value > bound + 1e-12;
    case STORY_GREATER_EQUAL:
        return value >= bound - TIME_EPSILON_S;
    case STORY_LESS:
        return value < bound - 1e-12;
    case STORY_LESS_EQUAL:
        return value <= bound + TIME_EPSILON_S;
    case STORY_EQUAL:
        return fabs(value - bound) < EQUAL_TOLERANCE;
    case STORY_NOT_EQUAL:
        return fabs(value - bound) >= EQUAL_TOLERANCE;
    case STORY_RULE_COUNT:
        break;
    }
    return false;
}

/* Distances of a box's corners from a point along an axis: low to high. */
static void box_extent(const struct box *box, struct vec2 origin, struct vec2 axis, double *low,
                       double *high)
{
    double centre =
        (box->center.x_m - origin.x_m) * axis.x_m + (box->center.y_m - origin.y_m) * axis.y_m;
    double along = fabs(box->cos_heading * axis.x_m + box->sin_heading * axis.y_m);
    double across = fabs(box->cos_heading * axis.y_m - box->sin_heading * axis.x_m);
    double half_m = box->half_length_m * along + box->half_width_m * across;
    *low = centre - half_m;
    *high = centre + half_m;
}

/* Signed gap between two boxes along an axis, 0 where they overlap in it. */
static double box_gap(const struct box *from, const struct box *to, struct vec2 axis)
{
    double from_low;
    double from_high;
    double to_low;
    double to_high;
    box_extent(from, from->center, axis, &from_low, &from_high);
    box_extent(to, from->center, axis, &to_low, &to_high);
    return to_low > from_high ? to_low - from_high : to_high < from_low ? to_high - from_low : 0.0;
}

/* Along the actor's path: signed difference of arc lengths (or of offsets). */
static double road_distance(const struct story_run *run, uint32_t actor, struct vec2 point,
                            enum story_measure measure, double *heading_rad)
{
    const struct story_actor_state *self = &run->state->actors[actor];
    const struct story_actor *record = &run->board->actors[actor];
    double s_m = self->s_m;
    double offset_m = self->offset_m;
    double other_s_m;
    double other_offset_m;
    double curvature;
    uint32_t hint = self->hint;
    if (record->agent == STORY_EGO) {
        story_own_project(run, self, (struct vec2){self->x_m, self->y_m}, &s_m, &offset_m);
    }
    *heading_rad = story_own_pose(run, self, s_m, &hint, &curvature).heading_rad;
    story_own_project(run, self, point, &other_s_m, &other_offset_m);
    return measure == STORY_LATERAL ? other_offset_m - offset_m : other_s_m - s_m;
}

static double point_distance(const struct story_run *run, uint32_t actor, struct vec2 point,
                             enum story_measure measure, bool along, bool freespace)
{
    const struct story_actor_state *self = &run->state->actors[actor];
    double dx = point.x_m - self->x_m;
    double dy = point.y_m - self->y_m;
    double heading_rad;
    if (measure == STORY_EUCLIDEAN) {
        if (!freespace) {
            return sqrt(dx * dx + dy * dy);
        }
        struct box box = story_box(run, actor);
        struct box dot = {point, 1.0, 0.0, 0.0, 0.0};
        return box_distance_m(&box, &dot);
    }
    struct vec2 axis = {self->ux, self->uy};
    if (measure == STORY_LATERAL) {
        axis = (struct vec2){-self->uy, self->ux};
    }
    double distance_m = along ? road_distance(run, actor, point, measure, &heading_rad)
                              : dx * axis.x_m + dy * axis.y_m;
    if (!freespace) {
        return distance_m;
    }
    double low;
    double high;
    struct box box = story_box(run, actor);
    box_extent(&box, (struct vec2){self->x_m, self->y_m}, axis, &low, &high);
    return distance_m > high ? distance_m - high : distance_m < low ? distance_m - low : 0.0;
}

double story_distance(const struct story_run *run, uint32_t actor, uint32_t other,
                      enum story_measure measure, bool along, bool freespace)
{
    const struct story_actor_state *self = &run->state->actors[actor];
    const struct story_actor_state *to = &run->state->actors[other];
    struct vec2 point = {to->x_m, to->y_m};
    struct box a = story_box(run, actor);
    struct box b = story_box(run, other);
    if (measure == STORY_EUCLIDEAN) {
        return freespace ? box_distance_m(&a, &b)
                         : point_distance(run, actor, point, measure, along, false);
    }
    struct vec2 axis = {self->ux, self->uy};
    if (measure == STORY_LATERAL) {
        axis = (struct vec2){-self->uy, self->ux};
    }
    if (!freespace) {
        return point_distance(run, actor, point, measure, along, false);
    }
    if (!along) {
        return box_gap(&a, &b, axis);
    }
    /* Along the road: reference points there, boxes as they reach along their own headings. */
    double heading_rad;
    double low;
    double high;
    double distance_m = road_distance(run, actor, point, measure, &heading_rad);
    box_extent(&a, (struct vec2){self->x_m, self->y_m}, axis, &low, &high);
    struct vec2 other_axis = {to->ux, to->uy};
    double other_low;
    double other_high;
    bool same_way = self->ux * to->ux + self->uy * to->uy >= 0.0;
    if (measure == STORY_LATERAL) {
        other_axis = (struct vec2){-to->uy, to->ux};
    }
    box_extent(&b, point, other_axis, &other_low, &other_high);
    double near_m = same_way ? other_low : -other_high;
    double far_m = same_way ? other_high : -other_low;
    double ahead_m = distance_m + near_m - high;
    double behind_m = distance_m + far_m - low;
    return ahead_m > 0.0 ? ahead_m : behind_m < 0.0 ? behind_m : 0.0;
}

static double distance_of(const struct story_run *run, const struct story_condition *condition)
{
    if (condition->other >= 0) {
        return story_distance(run, (uint32_t)condition->actor, (uint32_t)condition->other,
                              condition->measure, condition->along, condition->freespace);
    }
    struct vec2 point = {condition->x_m, condition->y_m};
    return point_distance(run, (uint32_t)condition->actor, point, condition->measure,
                          condition->along, condition->freespace);
}

/* Time until the distance would be used up at the present closing speed; negative: never. */
static double time_to_collision(const struct story_run *run,
                                const struct story_condition *condition)
{
    const struct story_actor_state *self = &run->state->actors[condition->actor];
    double distance_m = distance_of(run, condition);
    double vx = self->speed_mps * self->ux;
    double vy = self->speed_mps * self->uy;
    double dx = condition->x_m - self->x_m;
    double dy = condition->y_m - self->y_m;
    if (condition->other >= 0) {
        const struct story_actor_state *to = &run->state->actors[condition->other];
        vx -= to->speed_mps * to->ux;
        vy -= to->speed_mps * to->uy;
        dx = to->x_m - self->x_m;
        dy = to->y_m - self->y_m;
    }
    double reach_m = sqrt(dx * dx + dy * dy);
    double closing_mps = 0.0;
    if (condition->measure == STORY_EUCLIDEAN) {
        closing_mps = reach_m > 1e-9 ? (vx * dx + vy * dy) / reach_m : 0.0;
    } else {
        double ax = condition->measure == STORY_LATERAL ? -self->uy : self->ux;
        double ay = condition->measure == STORY_LATERAL ? self->ux : self->uy;
        closing_mps = (vx * ax + vy * ay) * (distance_m < 0.0 ? -1.0 : 1.0);
    }
    return closing_mps > 1e-6 ? fabs(distance_m) / closing_mps : -1.0;
}

static bool state_holds(const struct story_run *run, const struct story_condition *condition)
{
    double start_s;
    double end_s;
    bool running;
    bool stopped;
    bool ever_ends;
    if (condition->action >= 0) {
        const struct story_action_state *at = &run->state->actions[condition->action];
        start_s = at->start_s;
        end_s = at->end_s;
        running = at->running;
        stopped = at->stopped;
        ever_ends = true;
    } else {
        const struct story_event_state *at = &run->state->events[condition->event];
        start_s = at->start_s;
        end_s = at->end_s;
        running = at->running;
        stopped = at->stopped;
        ever_ends = at->runs >= run->board->events[condition->event].repeats || stopped;
    }
    double moment_s = run->time_s - 1.5 * STORY_STEP_S; /* of this sub-step or the one before */
    switch (condition->state) {
    case STORY_STANDBY:
        return start_s < 0.0 || (!running && !ever_ends);
    case STORY_RUNNING:
        return running;
    case STORY_COMPLETE:
        return start_s >= 0.0 && !running && end_s >= 0.0 && ever_ends;
    case STORY_STARTS:
        return start_s >= 0.0 && start_s >= moment_s;
    case STORY_ENDS:
        return !stopped && end_s >= 0.0 && end_s >= moment_s;
    case STORY_STOPS:
        return stopped && end_s >= 0.0 && end_s >= moment_s;
    case STORY_STATE_COUNT:
        break;
    }
    return false;
}

/* All of a speed, or what of it is along or across the actor, left positive. Nobody slips: an
 * actor's own speed is along it. */
static double speed_of(const struct story_actor_state *self, const struct story_actor_state *to,
                       enum story_measure measure)
{
    double other_mps = to != NULL ? to->speed_mps : 0.0;
    if (measure == STORY_LONGITUDINAL && to != NULL) {
        return self->speed_mps - other_mps * (to->ux * self->ux + to->uy * self->uy);
    }
    if (measure == STORY_LATERAL) {
        return to != NULL ? -other_mps * (to->uy * self->ux - to->ux * self->uy) : 0.0;
    }
    return self->speed_mps - other_mps;
}

static double acceleration_of(const struct story_actor_state *self, enum story_measure measure)
{
    return measure == STORY_LONGITUDINAL ? self->accel_mps2
           : measure == STORY_LATERAL    ? self->lat_accel_mps2
                                         : fabs(self->accel_mps2);
}

static bool angle_holds(const struct story_run *run, const struct story_condition *condition)
{
    const struct story_actor_state *self = &run->state->actors[condition->actor];
    double reference_rad = 0.0;
    if (condition->other >= 0) {
        reference_rad = run->state->actors[condition->other].heading_rad;
    } else if (condition->along) {
        road_distance(run, (uint32_t)condition->actor, (struct vec2){self->x_m, self->y_m},
                      STORY_LONGITUDINAL, &reference_rad);
    }
    double off_rad = dmath_wrap_angle(self->heading_rad - reference_rad - condition->value);
    return fabs(off_rad) <= condition->tolerance_rad;
}

/* Whether the other is out of an area beside the actor's path. */
static bool is_clear(const struct story_run *run, const struct story_condition *condition)
{
    const struct story_actor_state *self = &run->state->actors[condition->actor];
    const struct story_actor_state *to = &run->state->actors[condition->other];
    double s_m;
    double offset_m;
    if (!to->present) {
        return true;
    }
    story_own_project(run, self, (struct vec2){to->x_m, to->y_m}, &s_m, &offset_m);
    double ahead_m = story_distance(run, (uint32_t)condition->actor, (uint32_t)condition->other,
                                    STORY_LONGITUDINAL, true, condition->freespace);
    bool beside = offset_m >= condition->low_m && offset_m <= condition->high_m;
    bool near = ahead_m >= -condition->behind_m && ahead_m <= condition->ahead_m;
    bool counts = !condition->same_way || to->ux * self->ux + to->uy * self->uy >= 0.0;
    return !(beside && near && counts);
}

/* Whether a point is on a lane or a drivable area of the map; sidewalks are none. */
static bool on_road(const struct map *map, struct vec2 point)
{
    for (uint32_t i = 0; i < map->lane_count; i++) {
        const struct lane *lane = &map->lanes[i];
        struct polyline_projection at =
            polyline_project(lane->centre_line, lane->point_count, point);
        double width_m = dmath_max(lane->width_m[at.segment], lane->width_m[at.segment + 1]);
        if (lane->kind != LANE_SIDEWALK && !at.beyond_end && at.distance_m <= width_m / 2) {
            return true;
        }
    }
    for (uint32_t i = 0; i < map->drivable_count; i++) {
        if (polygon_contains(map->drivable[i].points, map->drivable[i].point_count, point)) {
            return true;
        }
    }
    return false;
}

static bool at_road_end(const struct story_run *run, uint32_t actor)
{
    const struct story_actor_state *self = &run->state->actors[actor];
    const struct story_path *path = &run->board->paths[self->path];
    double s_m;
    double offset_m;
    story_own_project(run, self, (struct vec2){self->x_m, self->y_m}, &s_m, &offset_m);
    return path->next < 0 && s_m >= path->points[path->point_count - 1].s_m - END_M;
}

static bool is_of_type(const struct story_run *run, uint32_t actor, enum story_type type)
{
    int32_t agent = run->board->actors[actor].agent;
    enum agent_kind kind = agent == STORY_EGO ? AGENT_CAR : run->scenario->agents[agent].kind;
    switch (kind) {
    case AGENT_PEDESTRIAN:
        return type == STORY_PEDESTRIAN;
    case AGENT_ANIMAL:
    case AGENT_OBJECT:
        return type == STORY_MISC;
    default:
        return type == STORY_VEHICLE;
    }
}

/* Overlap with the other, or with anybody of a type. */
static bool touches(const struct story_run *run, const struct story_condition *condition)
{
    uint32_t actor = (uint32_t)condition->actor;
    bool one = condition->type == STORY_OTHER;
    uint32_t first = one ? (uint32_t)condition->other : 0;
    uint32_t end = one ? first + 1 : run->board->actor_count;
    struct box own = story_box(run, actor);
    for (uint32_t i = first; i < end; i++) {
        if (!one && (i == actor || !run->state->actors[i].present ||
                     !is_of_type(run, i, condition->type))) {
            continue;
        }
        struct box box = story_box(run, i);
        if (box_overlap(&own, &box)) {
            return true;
        }
    }
    return false;
}

static bool entity_holds(const struct story_run *run, const struct story_condition *condition)
{
    const struct story_actor_state *self = &run->state->actors[condition->actor];
    const struct story_actor_state *to =
        condition->other >= 0 ? &run->state->actors[condition->other] : NULL;
    double value = condition->value;
    if (self->present && condition->kind == STORY_CLEARANCE) {
        return is_clear(run, condition);
    }
    if (!self->present || (to != NULL && !to->present)) {
        return false;
    }
    switch (condition->kind) {
    case STORY_DISTANCE:
    case STORY_RELATIVE_DISTANCE:
        return compare(fabs(distance_of(run, condition)), condition->rule, value);
    case STORY_HEADWAY: {
        double ahead_m = distance_of(run, condition);
        return ahead_m >= 0.0 && self->speed_mps > STORY_STILL_MPS &&
               compare(ahead_m / self->speed_mps, condition->rule, value);
    }
    case STORY_TTC: {
        double time_s = time_to_collision(run, condition);
        return time_s >= 0.0 && compare(time_s, condition->rule, value);
    }
    case STORY_SPEED:
        return compare(speed_of(self, NULL, condition->measure), condition->rule, value);
    case STORY_RELATIVE_SPEED:
        return to != NULL &&
               compare(speed_of(self, to, condition->measure), condition->rule, value);
    case STORY_ACCELERATION:
        return compare(acceleration_of(self, condition->measure), condition->rule, value);
    case STORY_ANGLE:
        return angle_holds(run, condition);
    case STORY_OFF_ROAD:
        return !on_road(&run->scenario->map, (struct vec2){self->x_m, self->y_m});
    case STORY_ROAD_END:
        return at_road_end(run, (uint32_t)condition->actor);
    case STORY_STANDSTILL:
        return fabs(self->speed_mps) < STORY_STILL_MPS && self->standing_s >= value - 1e-9;
    case STORY_TRAVELLED:
        return self->travelled_m >= value - 1e-9;
    case STORY_REACH:
        return distance_of(run, condition) <= value;
    case STORY_COLLISION:
        return touches(run, condition);
    case STORY_TIME:
    case STORY_STATE:
    case STORY_CONSTANT:
    case STORY_CLEARANCE:
    case STORY_VARIABLE:
    case STORY_CONDITION_COUNT:
        break;
    }
    return false;
}

/* Value that the action which set it last gave; of several of one moment the last one's. */
static double variable_of(const struct story_run *run, int32_t variable)
{
    double value = run->board->variables[variable];
    double since_s = 0.0;
    for (uint32_t i = 0; i < run->board->action_count; i++) {
        const struct story_action *action = &run->board->actions[i];
        double start_s = run->state->actions[i].start_s; /* -1: not yet */
        if (action->kind == STORY_DO_SET && action->variable == variable && start_s >= since_s) {
            since_s = start_s;
            value = action->set_to;
        }
    }
    return value;
}

static bool holds_now(const struct story_run *run, const struct story_condition *condition)
{
    switch (condition->kind) {
    case STORY_TIME:
        return compare(run->time_s, condition->rule, condition->value);
    case STORY_STATE:
        return state_holds(run, condition);
    case STORY_CONSTANT:
        return condition->value != 0.0;
    case STORY_VARIABLE:
        return compare(variable_of(run, condition->variable), condition->rule, condition->value);
    default:
        return entity_holds(run, condition);
    }
}

static bool begins_tick(double time_s)
{
    double ticks = time_s / TICK_S;
    return fabs(ticks - floor(ticks + 0.5)) < 0.5 / STORY_SUBSTEPS;
}

/* Tells what held so much later, and for as long: an edge for a moment. What turns oftener than
 * STORY_TURNS within the delay is late. */
static bool tell_later(const struct story_condition *condition, double time_s, bool fires,
                       struct story_condition_state *state)
{
    bool latest = (state->told + state->turn_count) % 2 != 0;
    double until_s = time_s - condition->delay_s + TIME_EPSILON_S;
    uint32_t due = 0;
    bool told = false;
    if (fires != latest && state->turn_count < STORY_TURNS) {
        state->turned_s[state->turn_count++] = time_s;
    }
    for (; due < state->turn_count && state->turned_s[due] <= until_s; due++) {
        state->told = !state->told;
        told = told || state->told;
    }
    state->turn_count -= (uint8_t)due;
    memmove(state->turned_s, state->turned_s + due, state->turn_count * sizeof state->turned_s[0]);
    return told || state->told;
}

/* Whether an actor has been off the road, or at its end, for as long as it has to be. The road is
 * looked for once a tick. */
static bool has_lasted(const struct story_run *run, const struct story_condition *condition,
                       struct story_condition_state *state)
{
    const bool waits =
        condition->kind == STORY_OFF_ROAD && state->known && !begins_tick(run->time_s);
    const bool now = waits ? state->lasts : holds_now(run, condition);
    state->since_s = now && state->lasts ? state->since_s : run->time_s;
    state->lasts = now;
    return now && run->time_s - state->since_s >= condition->value - TIME_EPSILON_S;
}

static bool evaluate(const struct story_run *run, uint32_t index)
{
    const struct story_condition *condition = &run->board->conditions[index];
    struct story_condition_state *state = &run->state->conditions[index];
    bool before = state->last;
    bool known = state->known;
    bool road = condition->kind == STORY_OFF_ROAD || condition->kind == STORY_ROAD_END;
    bool now = road ? has_lasted(run, condition, state) : holds_now(run, condition);
    bool fires = now;
    if (condition->edge != STORY_EDGE_NONE) {
        bool rises = now && !before && condition->edge != STORY_EDGE_FALLING;
        bool falls = !now && before && condition->edge != STORY_EDGE_RISING;
        fires = known && (rises || falls);
    }
    state->known = 1;
    state->last = now;
    return condition->delay_s <= 0.0 ? fires : tell_later(condition, run->time_s, fires, state);
}

bool story_trigger_holds(const struct story_run *run, const struct story_trigger *trigger)
{
    bool any = false;
    for (uint32_t i = 0; i < trigger->count; i++) {
        const struct story_group *group = &trigger->groups[i];
        bool all = group->count > 0;
        for (uint32_t k = 0; k < group->count; k++) { /* all, because edges have memories */
            all = evaluate(run, group->conditions[k]) && all;
        }
        any = any || all;
    }
    return any;
}
