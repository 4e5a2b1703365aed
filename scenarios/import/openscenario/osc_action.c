/*
 * Actions: what the storyboard has entities do.
 *
 * Ego is driven by a planner: an action of ego becomes a wait of the length that it would take, so
 * that what follows in the storyboard keeps its time, and a note. Controllers, lights and looks are
 * noted and left out: entities move as the storyboard says.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/dmath.h"
#include "base/units.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define STEADY_MAX_M 1e5

static struct story_action blank(const struct osc_entity *entity, enum story_action_kind kind)
{
    return (struct story_action){.kind = kind,
                                 .actor = (int32_t)entity->actor,
                                 .other = -1,
                                 .path = -1,
                                 .ways_on = -1,
                                 .variable = -1,
                                 .factor = 0.0,
                                 .time_s = NAN,
                                 .scale = 1.0,
                                 .accel_mps2 = INFINITY,
                                 .decel_mps2 = INFINITY,
                                 .speed_max_mps = 200.0};
}

/* For ego: wait as long as `seconds`. */
static enum status add_wait(struct osc_context *context, const struct osc_element *element,
                            const struct osc_entity *entity, double seconds)
{
    struct story_action wait = blank(entity, STORY_DO_WAIT);
    wait.actor = -1;
    wait.value = dmath_clamp(seconds, 0.0, 1e5);
    osc_note(context, element,
             "what the file has ego do after its start is the planner's to "
             "decide");
    return osc_add_action(context, element, &wait);
}

static enum status read_dynamics(struct osc_context *context, const struct osc_element *element,
                                 struct story_action *action)
{
    static const char *const shapes[] = {"step", "linear", "cubic", "sinusoidal", NULL};
    static const char *const dimensions[] = {"time", "distance", "rate", NULL};
    int shape;
    int by;
    double value = 0;
    TRY(osc_choice(context, element, "dynamicsShape", shapes, -1, &shape));
    TRY(osc_choice(context, element, "dynamicsDimension", dimensions, STORY_BY_TIME, &by));
    TRY(osc_number(context, element, "value", shape != STORY_STEP, -1e6, 1e6, &value));
    action->shape = (enum story_shape)shape;
    action->by = (enum story_by)by;
    action->value = fabs(value);
    if (action->value == 0.0) {
        action->shape = STORY_STEP;
    }
    return STATUS_OK;
}

/* ---- speed ---- */

static enum status read_speed(struct osc_context *context, const struct osc_element *element,
                              struct osc_entity *entity)
{
    static const char *const types[] = {"delta", "factor", NULL};
    const struct osc_element *dynamics;
    const struct osc_element *target;
    struct story_action action = blank(entity, STORY_DO_SPEED);
    double value = 0;
    TRY(osc_required_child(context, element, "SpeedActionDynamics", &dynamics));
    TRY(osc_required_child(context, element, "SpeedActionTarget", &target));
    TRY(read_dynamics(context, dynamics, &action));
    const struct osc_element *absolute = osc_child(target, "AbsoluteTargetSpeed");
    const struct osc_element *relative = osc_child(target, "RelativeTargetSpeed");
    if (absolute == NULL && relative == NULL) {
        return osc_fail(context, target, "expected a target speed, found none");
    }
    TRY(osc_number(context, absolute != NULL ? absolute : relative, "value", true, -200, 200,
                   &value));
    if (relative != NULL) {
        struct osc_entity *other;
        int type;
        TRY(osc_entity_named(context, relative, "entityRef", &other));
        TRY(osc_choice(context, relative, "speedTargetValueType", types, 0, &type));
        TRY(osc_bool(context, relative, "continuous", false, &action.continuous));
        action.other = (int32_t)other->actor;
        action.factor = type == 1 ? value : 1.0;
        action.target_mps = type == 1 ? 0.0 : value;
    } else {
        action.target_mps = value;
    }
    if (entity->is_ego) {
        double change_mps = fabs(action.target_mps - entity->speed_mps);
        double pace_mps = dmath_max(0.5 * (entity->speed_mps + action.target_mps), 0.1);
        double seconds = action.shape == STORY_STEP       ? 0.0
                         : action.by == STORY_BY_RATE     ? change_mps / action.value
                         : action.by == STORY_BY_DISTANCE ? action.value / pace_mps
                                                          : action.value;
        return add_wait(context, element, entity, seconds);
    }
    return osc_add_action(context, element, &action);
}

static enum status read_profile(struct osc_context *context, const struct osc_element *element,
                                struct osc_entity *entity)
{
    struct story_action action = blank(entity, STORY_DO_PROFILE);
    double total_s = 0;
    double before_mps = entity->speed_mps;
    const struct osc_element *constraints = osc_child(element, "DynamicConstraints");
    double accel_mps2 = entity->accel_max_mps2;
    double decel_mps2 = entity->decel_max_mps2;
    const char *mode = osc_attribute(element, "followingMode");
    if (mode != NULL && strcmp(mode, "follow") == 0) {
        osc_note(context, element, "speed profiles are followed without bounds on jerk");
    }
    if (osc_attribute(element, "entityRef") != NULL) {
        return osc_fail(context, element,
                        "expected a profile of absolute speeds, found one "
                        "relative to an entity");
    }
    if (constraints != NULL) {
        TRY(osc_number(context, constraints, "maxAcceleration", false, 0.01, 1e9, &accel_mps2));
        TRY(osc_number(context, constraints, "maxDeceleration", false, 0.01, 1e9, &decel_mps2));
    }
    action.steps = osc_alloc(context, LIMIT_STORY_STEPS, sizeof *action.steps);
    if (action.steps == NULL) {
        return STATUS_LIMIT;
    }
    const struct osc_element *entry = osc_child(element, "SpeedProfileEntry");
    for (; entry != NULL; entry = osc_next(entry)) {
        struct vec2 step = {NAN, 0};
        TRY(osc_number(context, entry, "time", false, 0, 1e5, &step.x_m));
        TRY(osc_number(context, entry, "speed", true, -200, 200, &step.y_m));
        if (action.step_count == LIMIT_STORY_STEPS) {
            return osc_fail(context, entry, "expected at most %d entries, found more",
                            LIMIT_STORY_STEPS);
        }
        if (fabs(step.y_m) > entity->speed_max_mps) {
            osc_note(context, entry, "speeds above what an entity's <Performance> gives are cut");
        }
        step.y_m = dmath_clamp(step.y_m, -entity->speed_max_mps, entity->speed_max_mps);
        double change_mps = step.y_m - before_mps;
        double least_s = fabs(change_mps) / (change_mps > 0 ? accel_mps2 : decel_mps2);
        bool first_at_once = action.step_count == 0 && step.x_m == 0;
        step.x_m = isnan(step.x_m) || (step.x_m < least_s && !first_at_once) ? least_s : step.x_m;
        before_mps = step.y_m;
        total_s += step.x_m;
        action.steps[action.step_count++] = step;
    }
    if (action.step_count == 0) {
        return osc_fail(context, element, "expected at least one <SpeedProfileEntry>, found none");
    }
    return entity->is_ego ? add_wait(context, element, entity, total_s)
                          : osc_add_action(context, element, &action);
}

static enum status read_gap(struct osc_context *context, const struct osc_element *element,
                            struct osc_entity *entity)
{
    static const char *const sides[] = {"any", "trailingReferencedEntity",
                                        "leadingReferencedEntity", NULL};
    struct story_action action = blank(entity, STORY_DO_GAP);
    struct osc_entity *other;
    int side;
    const struct osc_element *constraints = osc_child(element, "DynamicConstraints");
    TRY(osc_entity_named(context, element, "entityRef", &other));
    TRY(osc_bool(context, element, "continuous", false, &action.continuous));
    TRY(osc_bool(context, element, "freespace", false, &action.freespace));
    TRY(osc_choice(context, element, "displacement", sides, 1, &side));
    TRY(osc_number(context, element, "distance", false, 0, 1e5, &action.value));
    TRY(osc_number(context, element, "timeGap", false, 0, 1e4, &action.time_s));
    action.other = (int32_t)other->actor;
    action.factor = side == 1 ? 1.0 : side == 2 ? -1.0 : 0.0;
    if (constraints != NULL) {
        TRY(osc_number(context, constraints, "maxAcceleration", false, 0.01, INFINITY,
                       &action.accel_mps2));
        TRY(osc_number(context, constraints, "maxDeceleration", false, 0.01, INFINITY,
                       &action.decel_mps2));
        TRY(osc_number(context, constraints, "maxSpeed", false, 0, INFINITY,
                       &action.speed_max_mps));
        if (osc_attribute(constraints, "maxAccelerationRate") != NULL ||
            osc_attribute(constraints, "maxDecelerationRate") != NULL) {
            osc_note(context, constraints, "bounds on jerk are left out");
        }
    }
    /* Bounds that are given hold beside what the vehicle can do; without any it is there at once.
     */
    action.accel_mps2 =
        action.accel_mps2 > 1e4 ? INFINITY : dmath_min(action.accel_mps2, entity->accel_max_mps2);
    action.decel_mps2 =
        action.decel_mps2 > 1e4 ? INFINITY : dmath_min(action.decel_mps2, entity->decel_max_mps2);
    action.speed_max_mps = dmath_min(action.speed_max_mps, entity->speed_max_mps);
    return entity->is_ego ? add_wait(context, element, entity, 1e5)
                          : osc_add_action(context, element, &action);
}

/* ---- way ---- */

static enum status read_lane_change(struct osc_context *context, const struct osc_element *element,
                                    struct osc_entity *entity)
{
    const struct osc_element *dynamics;
    const struct osc_element *target;
    struct story_action action = blank(entity, STORY_DO_LATERAL);
    double lane = NAN;
    double offset_m = 0;
    struct osc_path path;
    TRY(osc_required_child(context, element, "LaneChangeActionDynamics", &dynamics));
    TRY(osc_required_child(context, element, "LaneChangeTarget", &target));
    TRY(read_dynamics(context, dynamics, &action));
    TRY(osc_number(context, element, "targetLaneOffset", false, -100, 100, &offset_m));
    if (entity->is_ego) {
        double seconds = action.by == STORY_BY_TIME ? action.value
                         : action.by == STORY_BY_DISTANCE
                             ? action.value / dmath_max(entity->speed_mps, 1.0)
                             : 3.5 / dmath_max(action.value, 0.01);
        return add_wait(context, element, entity, seconds);
    }
    const struct osc_element *absolute = osc_child(target, "AbsoluteTargetLane");
    const struct osc_element *relative = osc_child(target, "RelativeTargetLane");
    if (absolute == NULL && relative == NULL) {
        return osc_fail(context, target, "expected a target lane, found none");
    }
    TRY(osc_number(context, absolute != NULL ? absolute : relative, "value", true, -100, 100,
                   &lane));
    if (lane != floor(lane)) {
        return osc_fail(context, absolute != NULL ? absolute : relative,
                        "expected a whole number in value, found %g", lane);
    }
    struct osc_entity *other = entity;
    if (relative != NULL) {
        TRY(osc_entity_named(context, relative, "entityRef", &other));
    }
    if (other->path.lane_count == 0 || entity->path.lane_count == 0) {
        return osc_fail(context, target,
                        "expected entities in lanes, found \"%.60s\" or \"%.60s\" "
                        "beside them",
                        entity->name, other->name);
    }
    struct osc_lane_target to = {relative != NULL, (int32_t)lane, offset_m, &other->path, NULL};
    TRY(osc_lane_ways(context, target, entity, &to, &path, &action));
    entity->path = path; /* where the next one is relative to */
    return osc_add_action(context, element, &action);
}

static enum status read_lane_offset(struct osc_context *context, const struct osc_element *element,
                                    struct osc_entity *entity)
{
    static const char *const shapes[] = {"step", "linear", "cubic", "sinusoidal", NULL};
    const struct osc_element *dynamics;
    const struct osc_element *target = osc_child(element, "LaneOffsetTarget");
    struct story_action action = blank(entity, STORY_DO_LATERAL);
    int shape;
    bool continuous;
    double value = 0;
    TRY(osc_required_child(context, element, "LaneOffsetActionDynamics", &dynamics));
    target = target != NULL ? target : element;
    TRY(osc_choice(context, dynamics, "dynamicsShape", shapes, -1, &shape));
    TRY(osc_number(context, dynamics, "maxLateralAcc", false, 0, INFINITY, &action.value));
    TRY(osc_bool(context, element, "continuous", false, &continuous));
    if (continuous && osc_child(target, "RelativeTargetLaneOffset") == NULL) {
        osc_note(context, element, "a lane offset ends where it is reached, and is kept then");
    }
    action.shape = (enum story_shape)shape;
    action.by = STORY_BY_ACCEL;
    if (action.value == 0.0 && action.shape != STORY_STEP) {
        osc_note(context, dynamics, "a lane offset without a bound on acceleration takes 0.5 m/s2");
        action.value = 0.5;
    }
    action.value = dmath_min(action.value, 1e3);
    const struct osc_element *absolute = osc_child(target, "AbsoluteTargetLaneOffset");
    const struct osc_element *relative = osc_child(target, "RelativeTargetLaneOffset");
    if (absolute == NULL && relative == NULL) {
        return osc_fail(context, element, "expected a target offset, found none");
    }
    TRY(osc_number(context, absolute != NULL ? absolute : relative, "value", true, -1e3, 1e3,
                   &value));
    if (entity->is_ego) {
        return add_wait(context, element, entity,
                        action.value > 0 ? sqrt(6 * fabs(value) / action.value) : 0);
    }
    struct osc_entity *other = NULL;
    TRY(relative != NULL ? osc_entity_named(context, relative, "entityRef", &other) : STATUS_OK);
    TRY(osc_offset_ways(context, &entity->path, other != NULL ? &other->path : NULL, value,
                        &action));
    if (other != NULL) {
        action.other = (int32_t)other->actor;
        action.continuous = continuous;
    }
    return osc_add_action(context, element, &action);
}

/* Beside an entity: to the side that the file says, or on which the entity starts. */
static enum status read_lateral_gap(struct osc_context *context, const struct osc_element *element,
                                    struct osc_entity *entity)
{
    static const char *const sides[] = {"any", "leftToReferencedEntity", "rightToReferencedEntity",
                                        NULL};
    struct story_action action = blank(entity, STORY_DO_LATERAL);
    const struct osc_element *constraints = osc_child(element, "DynamicConstraints");
    struct osc_entity *other;
    double distance_m = 0;
    bool freespace;
    int side;
    TRY(osc_entity_named(context, element, "entityRef", &other));
    TRY(osc_number(context, element, "distance", false, -1e3, 1e3, &distance_m));
    TRY(osc_bool(context, element, "freespace", false, &freespace));
    TRY(osc_bool(context, element, "continuous", false, &action.continuous));
    TRY(osc_choice(context, element, "displacement", sides, 0, &side));
    if (entity->is_ego) {
        return add_wait(context, element, entity, action.continuous ? 1e5 : 0);
    }
    action.by = STORY_BY_ACCEL;
    if (constraints != NULL) {
        TRY(osc_number(context, constraints, "maxAcceleration", false, 0.01, INFINITY,
                       &action.value));
        action.value = dmath_min(action.value, 1e3);
        action.shape = action.value > 0 ? STORY_SINUSOIDAL : STORY_STEP;
        osc_note(context, constraints,
                 "of a lateral distance's bounds that on acceleration alone is kept");
    }
    double dx = entity->pose.x_m - other->pose.x_m;
    double dy = entity->pose.y_m - other->pose.y_m;
    double turn = dmath_wrap_angle(entity->pose.heading_rad - other->pose.heading_rad);
    double c = dmath_cos(other->pose.heading_rad);
    double s = dmath_sin(other->pose.heading_rad);
    bool left = side == 1 || (side == 0 && c * dy - s * dx >= 0);
    bool oncoming = fabs(turn) > PI_RAD / 2;
    distance_m += freespace ? copysign((entity->width_m + other->width_m) / 2, distance_m) : 0;
    action.target_m = left != oncoming ? distance_m : -distance_m;
    action.other = (int32_t)other->actor;
    return osc_add_action(context, element, &action);
}

static enum status read_times(struct osc_context *context, const struct osc_element *follow,
                              struct story_action *action, bool *timed)
{
    static const char *const domains[] = {"absolute", "relative", NULL};
    const struct osc_element *reference = osc_child(follow, "TimeReference");
    const struct osc_element *timing = reference != NULL ? osc_child(reference, "Timing") : NULL;
    int domain;
    *timed = timing != NULL;
    if (timing == NULL) {
        return STATUS_OK;
    }
    TRY(osc_choice(context, timing, "domainAbsoluteRelative", domains, -1, &domain));
    TRY(osc_number(context, timing, "offset", false, -1e5, 1e5, &action->start_s));
    TRY(osc_number(context, timing, "scale", false, 1e-3, 1e3, &action->scale));
    action->absolute = domain == 0;
    return STATUS_OK;
}

static enum status read_follow(struct osc_context *context, const struct osc_element *element,
                               struct osc_entity *entity)
{
    struct story_action action = blank(entity, STORY_DO_FOLLOW);
    const struct osc_element *reference = osc_child(element, "TrajectoryRef");
    const struct osc_element *trajectory =
        osc_child(reference != NULL ? reference : element, "Trajectory");
    struct osc_path after;
    uint32_t index;
    bool timed;
    if (trajectory == NULL) {
        return osc_fail(context, element, "expected a <Trajectory>, found none");
    }
    TRY(read_times(context, element, &action, &timed));
    if (timed && !osc_trajectory_has_times(trajectory)) {
        osc_note(context, trajectory,
                 "a trajectory without times is followed at the entity's speed");
        timed = false;
    }
    TRY(osc_number(context, element, "initialDistanceOffset", false, 0, 1e6, &action.s_m));
    action.relative = osc_trajectory_is_own(trajectory, entity);
    TRY(action.relative ? osc_trajectory_read_own(context, trajectory, entity, timed, &index)
                        : osc_trajectory_read(context, trajectory, timed, &index));
    struct story_path *path = &context->board.paths[index];
    const struct story_point *last = &path->points[path->point_count - 1];
    if (entity->is_ego) {
        double seconds =
            timed ? last->t_s - path->points[0].t_s : last->s_m / dmath_max(entity->speed_mps, 0.1);
        return add_wait(context, element, entity, seconds);
    }
    action.path = (int32_t)index;
    if (action.relative) {
        osc_note(context, trajectory,
                 "behind the end of a trajectory relative to itself an entity goes straight on");
        return osc_add_action(context, element, &action);
    }
    /* Behind its end the entity keeps to the lane there. */
    struct pose end = {last->x_m, last->y_m, last->heading_rad};
    bool on_foot = entity->kind >= AGENT_PEDESTRIAN;
    TRY(on_foot ? osc_path_straight(context, end, &after)
                : osc_path_from(context, entity, end, &after));
    path = &context->board.paths[index];
    if (after.index != index) {
        path->next = (int32_t)after.index;
        osc_path_project(&context->board, after.index, (struct vec2){end.x_m, end.y_m},
                         &path->next_s_m, &path->next_offset_m);
    }
    entity->path = after;
    return osc_add_action(context, element, &action);
}

static enum status read_teleport(struct osc_context *context, const struct osc_element *element,
                                 struct osc_entity *entity)
{
    const struct osc_element *position;
    struct osc_position at;
    struct story_action action = blank(entity, STORY_DO_PLACE);
    TRY(osc_required_child(context, element, "Position", &position));
    TRY(osc_position_read(context, position, &at));
    if (entity->is_ego) {
        return add_wait(context, element, entity, 0);
    }
    if (at.relative_to_moving) {
        osc_note(context, position,
                 "positions relative to an entity in actions are those of its "
                 "start");
    }
    if (!entity->placed) { /* others may be placed by it from now on */
        entity->pose = at.pose;
        entity->place = at.place;
        entity->on_road = at.on_road;
    }
    TRY(osc_path_from(context, entity, at.pose, &entity->path));
    action.path = (int32_t)entity->path.index;
    osc_path_project(&context->board, entity->path.index, (struct vec2){at.pose.x_m, at.pose.y_m},
                     &action.s_m, &action.offset_m);
    double along = osc_path_pose(&context->board, entity->path.index, action.s_m).heading_rad;
    action.heading_rad = dmath_wrap_angle(at.pose.heading_rad - along);
    return osc_add_action(context, element, &action);
}

static enum status read_routing(struct osc_context *context, const struct osc_element *element,
                                struct osc_entity *entity)
{
    const struct osc_element *at = element->first;
    if (at == NULL) {
        return osc_fail(context, element, "expected a routing action, found none");
    }
    if (osc_is(at, "FollowTrajectoryAction")) {
        return read_follow(context, at, entity);
    }
    if (entity->is_ego) {
        return add_wait(context, at, entity, 0);
    }
    if (osc_is(at, "RandomRouteAction")) { /* any way that there is may be drawn */
        return osc_nothing_happens(context, at,
                                   "of random routes the way straightest ahead is taken");
    }
    const struct osc_element *route = osc_child(at, "Route");
    bool acquires = osc_is(at, "AcquirePositionAction");
    if (!acquires && (!osc_is(at, "AssignRouteAction") || route == NULL)) {
        return osc_unsupported(context, at);
    }
    if (entity->path.lane_count == 0) {
        return osc_fail(context, at, "expected an entity in a lane, found \"%.60s\" beside",
                        entity->name);
    }
    struct story_action action = blank(entity, STORY_DO_PATH);
    struct osc_lane_target own = {
        .relative = true, .path = &entity->path, .acquire = acquires ? at : NULL};
    struct osc_path path;
    TRY(acquires ? osc_route_begin(context, entity, at, osc_lane_of_start(&entity->path))
                 : osc_route_read(context, entity, route));
    TRY(osc_lane_ways(context, at, entity, &own, &path, &action));
    entity->path = path;
    return osc_add_action(context, at, &action);
}

/* ---- synchronise ---- */

/* Absolute, or relative to the master's, which is looked at while it is being reached. */
static enum status read_final_speed(struct osc_context *context, const struct osc_element *element,
                                    const struct osc_entity *entity,
                                    const struct osc_entity *master, struct story_action *action)
{
    static const char *const types[] = {"delta", "factor", NULL};
    const struct osc_element *final = osc_child(element, "FinalSpeed");
    const struct osc_element *absolute = final != NULL ? osc_child(final, "AbsoluteSpeed") : NULL;
    const struct osc_element *relative =
        final != NULL ? osc_child(final, "RelativeSpeedToMaster") : NULL;
    const struct osc_element *speed = absolute != NULL ? absolute : relative;
    double value = 0;
    double steady_s = 0;
    int type = 0;
    if (final == NULL) {
        return STATUS_OK;
    }
    if (speed == NULL) {
        return osc_unsupported(context, final->first != NULL ? final->first : final);
    }
    TRY(osc_number(context, speed, "value", true, -200, 200, &value));
    TRY(relative != NULL ? osc_choice(context, speed, "speedTargetValueType", types, 0, &type)
                         : STATUS_OK);
    action->factor = relative == NULL ? 0.0 : type == 1 ? value : 1.0;
    action->target_mps = relative != NULL && type == 1 ? 0.0 : value;
    double expected_mps = action->factor * master->speed_mps + action->target_mps;
    const struct osc_element *time = osc_child(speed, "TargetTimeSteadyState");
    const struct osc_element *distance = osc_child(speed, "TargetDistanceSteadyState");
    if (time != NULL) {
        TRY(osc_number(context, time, "time", true, 0, 1e4, &steady_s));
        action->steady_m = dmath_min(
            steady_s * dmath_min(fabs(expected_mps), entity->speed_max_mps), STEADY_MAX_M);
    } else if (distance != NULL) {
        TRY(osc_number(context, distance, "distance", true, 0, STEADY_MAX_M, &action->steady_m));
    }
    action->ends_speed = true;
    return STATUS_OK;
}

static enum status read_synchronise(struct osc_context *context, const struct osc_element *element,
                                    struct osc_entity *entity)
{
    struct story_action action = blank(entity, STORY_DO_SYNCHRONISE);
    struct osc_entity *master;
    const struct osc_element *of_master;
    const struct osc_element *own;
    struct osc_position at;
    TRY(osc_entity_named(context, element, "masterEntityRef", &master));
    TRY(osc_required_child(context, element, "TargetPositionMaster", &of_master));
    TRY(osc_required_child(context, element, "TargetPosition", &own));
    TRY(osc_position_read(context, of_master, &at));
    action.other_x_m = at.pose.x_m;
    action.other_y_m = at.pose.y_m;
    TRY(osc_position_read(context, own, &at));
    action.x_m = at.pose.x_m;
    action.y_m = at.pose.y_m;
    action.other = (int32_t)master->actor;
    TRY(osc_number(context, element, "targetToleranceMaster", false, 0, 1e4,
                   &action.other_tolerance_m));
    TRY(osc_number(context, element, "targetTolerance", false, 0, 1e4, &action.tolerance_m));
    TRY(read_final_speed(context, element, entity, master, &action));
    return entity->is_ego ? add_wait(context, element, entity, 0)
                          : osc_add_action(context, element, &action);
}

/* ---- all ---- */

static enum status read_visibility(struct osc_context *context, const struct osc_element *element,
                                   struct osc_entity *entity)
{
    bool sensors;
    bool traffic;
    TRY(osc_bool(context, element, "sensors", true, &sensors));
    TRY(osc_bool(context, element, "traffic", true, &traffic));
    if (sensors != traffic) {
        osc_note(context, element,
                 "an entity is there for all who look or for nobody: for "
                 "sensors decides");
    }
    struct story_action action = blank(entity, sensors ? STORY_DO_SHOW : STORY_DO_HIDE);
    return entity->is_ego ? add_wait(context, element, entity, 0)
                          : osc_add_action(context, element, &action);
}

static enum status read_longitudinal(struct osc_context *context, const struct osc_element *element,
                                     struct osc_entity *entity)
{
    const struct osc_element *at = element->first;
    if (at == NULL) {
        return osc_fail(context, element, "expected a longitudinal action, found none");
    }
    return osc_is(at, "SpeedAction")                  ? read_speed(context, at, entity)
           : osc_is(at, "SpeedProfileAction")         ? read_profile(context, at, entity)
           : osc_is(at, "LongitudinalDistanceAction") ? read_gap(context, at, entity)
                                                      : osc_unsupported(context, at);
}

static enum status read_lateral(struct osc_context *context, const struct osc_element *element,
                                struct osc_entity *entity)
{
    const struct osc_element *at = element->first;
    if (at == NULL) {
        return osc_fail(context, element, "expected a lateral action, found none");
    }
    if (osc_is(at, "LaneChangeAction")) {
        return read_lane_change(context, at, entity);
    }
    if (osc_is(at, "LaneOffsetAction")) {
        return read_lane_offset(context, at, entity);
    }
    if (osc_is(at, "LateralDistanceAction")) {
        return read_lateral_gap(context, at, entity);
    }
    return entity->is_ego ? add_wait(context, at, entity, 0) : osc_unsupported(context, at);
}

enum status osc_private_action(struct osc_context *context, const struct osc_element *action,
                               struct osc_entity *entity)
{
    const struct osc_element *at = action->first;
    if (at == NULL) {
        return osc_nothing_happens(context, action, "an action that says nothing does nothing");
    }
    if (osc_is(at, "LongitudinalAction")) {
        return read_longitudinal(context, at, entity);
    }
    if (osc_is(at, "LateralAction")) {
        return read_lateral(context, at, entity);
    }
    if (osc_is(at, "RoutingAction")) {
        return read_routing(context, at, entity);
    }
    if (osc_is(at, "TeleportAction")) {
        return read_teleport(context, at, entity);
    }
    if (osc_is(at, "SynchronizeAction")) {
        return read_synchronise(context, at, entity);
    }
    if (osc_is(at, "VisibilityAction")) {
        return read_visibility(context, at, entity);
    }
    if (osc_is(at, "AppearanceAction") || osc_is(at, "LightStateAction") ||
        osc_is(at, "AnimationAction")) {
        return osc_nothing_happens(context, at, "lights and animations are left out");
    }
    if (osc_is(at, "ControllerAction") || osc_is(at, "ActivateControllerAction") ||
        osc_is(at, "AssignControllerAction") || osc_is(at, "OverrideControllerValueAction")) {
        return osc_nothing_happens(context, at,
                                   entity->is_ego
                                       ? "ego's controllers are left out: a planner drives"
                                       : "controllers are not run: entities do what the storyboard "
                                         "says");
    }
    return entity->is_ego ? add_wait(context, at, entity, 0) : osc_unsupported(context, at);
}

enum status osc_entity_action(struct osc_context *context, const struct osc_element *element)
{
    struct osc_entity *entity;
    const struct osc_element *add = osc_child(element, "AddEntityAction");
    if (add == NULL && osc_child(element, "DeleteEntityAction") == NULL) {
        return osc_fail(context, element,
                        "expected <AddEntityAction> or <DeleteEntityAction>, found %s%s%s",
                        element->first != NULL ? "<" : "",
                        element->first != NULL ? element->first->name : "none",
                        element->first != NULL ? ">" : "");
    }
    TRY(osc_entity_named(context, element, "entityRef", &entity));
    if (entity->is_ego) {
        return add_wait(context, element, entity, 0);
    }
    struct story_action action = blank(entity, add != NULL ? STORY_DO_SHOW : STORY_DO_HIDE);
    if (add != NULL && osc_child(add, "Position") != NULL) {
        TRY(read_teleport(context, add, entity));
        entity->placed = true;
    }
    return osc_add_action(context, element, &action);
}
