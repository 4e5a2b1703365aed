/*
 * Entities, and where the storyboard's Init puts them.
 *
 * Positions may refer to entities that stand later in the file: Init is gone through until nothing
 * new is placed. What Init asks for beyond place and speed becomes an event that starts at once.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/dmath.h"
#include "base/units.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define ROUTE_LANES_MAX 1024
#define SIZE_MIN_M 0.05
#define SIZE_MAX_M 50
#define OBJECT_MAX_M 1000

static const struct {
    const char *category;
    enum agent_kind kind;
} categories[] = {{"car", AGENT_CAR},
                  {"van", AGENT_VAN},
                  {"truck", AGENT_TRUCK},
                  {"trailer", AGENT_TRUCK},
                  {"semitrailer", AGENT_TRUCK},
                  {"bus", AGENT_BUS},
                  {"motorbike", AGENT_MOTORCYCLE},
                  {"bicycle", AGENT_CYCLIST},
                  {"train", AGENT_BUS},
                  {"tram", AGENT_BUS},
                  {"pedestrian", AGENT_PEDESTRIAN},
                  {"wheelchair", AGENT_PEDESTRIAN},
                  {"animal", AGENT_ANIMAL}};

struct osc_entity *osc_entity_find(struct osc_context *context, const char *name)
{
    for (uint32_t i = 0; i < context->entity_count; i++) {
        if (strcmp(context->entities[i].name, name) == 0) {
            return &context->entities[i];
        }
    }
    return NULL;
}

enum status osc_entity_named(struct osc_context *context, const struct osc_element *element,
                             const char *attribute, struct osc_entity **out)
{
    const char *name;
    TRY(osc_required_text(context, element, attribute, &name));
    *out = osc_entity_find(context, name);
    return *out != NULL
               ? STATUS_OK
               : osc_fail(context, element, "expected the name of an entity in %s, found \"%.60s\"",
                          attribute, name);
}

/* ---- who there is ---- */

static enum status read_box(struct osc_context *context, const struct osc_element *element,
                            struct osc_entity *entity)
{
    const struct osc_element *box = osc_child(element, "BoundingBox");
    const struct osc_element *centre = box != NULL ? osc_child(box, "Center") : NULL;
    const struct osc_element *size = box != NULL ? osc_child(box, "Dimensions") : NULL;
    if (size == NULL) {
        const struct agent_size *usual = &agent_sizes[entity->kind];
        entity->length_m = usual->length_m;
        entity->width_m = usual->width_m;
        entity->height_m = usual->height_m;
        osc_note(context, element,
                 "an entity has no bounding box: the usual one of its kind is taken");
        return STATUS_OK;
    }
    double longest_m = osc_is(element, "MiscObject") ? OBJECT_MAX_M : SIZE_MAX_M;
    TRY(osc_number(context, size, "length", true, 0, longest_m, &entity->length_m));
    TRY(osc_number(context, size, "width", true, 0, SIZE_MAX_M, &entity->width_m));
    TRY(osc_number(context, size, "height", true, 0, SIZE_MAX_M, &entity->height_m));
    if (entity->length_m < SIZE_MIN_M || entity->width_m < SIZE_MIN_M) {
        osc_note(context, size, "a box without a length or width is 5 cm long or wide");
    }
    entity->length_m = dmath_max(entity->length_m, SIZE_MIN_M);
    entity->width_m = dmath_max(entity->width_m, SIZE_MIN_M);
    entity->height_m = dmath_clamp(entity->height_m, 0.01, 20);
    entity->parts =
        entity->length_m > SIZE_MAX_M ? (uint32_t)ceil(entity->length_m / OSC_PART_MAX_M) : 1;
    double most_m = dmath_max(20, entity->length_m / 2);
    return centre != NULL
               ? osc_number(context, centre, "x", true, -most_m, most_m, &entity->centre_x_m)
               : STATUS_OK;
}

/* A trailer is there, not only a place for the name of one. */
static bool tows(const struct osc_element *vehicle)
{
    const struct osc_element *trailer = osc_child(vehicle, "Trailer");
    const struct osc_element *ref = trailer != NULL ? osc_child(trailer, "TrailerRef") : NULL;
    const char *name = ref != NULL ? osc_attribute(ref, "entityRef") : NULL;
    return trailer != NULL && !(name != NULL && name[0] == '\0');
}

static enum status read_vehicle(struct osc_context *context, const struct osc_element *vehicle,
                                struct osc_entity *entity)
{
    const struct osc_element *performance = osc_child(vehicle, "Performance");
    const struct osc_element *axles = osc_child(vehicle, "Axles");
    const struct osc_element *front = axles != NULL ? osc_child(axles, "FrontAxle") : NULL;
    double front_m = entity->wheelbase_m;
    if (performance != NULL) {
        TRY(osc_number(context, performance, "maxSpeed", false, 0, 1e6, &entity->speed_max_mps));
        TRY(osc_number(context, performance, "maxAcceleration", false, 0, 1e9,
                       &entity->accel_max_mps2));
        TRY(osc_number(context, performance, "maxDeceleration", false, 0, 1e9,
                       &entity->decel_max_mps2));
    }
    if (front != NULL) {
        TRY(osc_number(context, front, "positionX", false, -20, 20, &front_m));
    }
    entity->wheelbase_m = front_m > 0.5 ? front_m : entity->wheelbase_m;
    if (tows(vehicle)) {
        osc_note(context, vehicle, "trailers are not towed");
    }
    return STATUS_OK;
}

static enum status read_object(struct osc_context *context,
                               const struct osc_element *scenario_object, struct osc_entity *entity)
{
    const struct osc_element *element = scenario_object->first;
    *entity = (struct osc_entity){.element = scenario_object,
                                  .parts = 1,
                                  .kind = AGENT_CAR,
                                  .centre_x_m = 1.4,
                                  .wheelbase_m = 2.8,
                                  .accel_max_mps2 = 1e3,
                                  .decel_max_mps2 = 1e3,
                                  .speed_max_mps = 200};
    TRY(osc_required_text(context, scenario_object, "name", &entity->name));
    if (element == NULL) {
        return osc_fail(context, scenario_object,
                        "expected a vehicle, pedestrian or object, found "
                        "none");
    }
    bool vehicle = osc_is(element, "Vehicle");
    bool pedestrian = osc_is(element, "Pedestrian");
    if (!vehicle && !pedestrian && !osc_is(element, "MiscObject")) {
        return osc_unsupported(context, element);
    }
    const char *category = osc_attribute(element, vehicle      ? "vehicleCategory"
                                                  : pedestrian ? "pedestrianCategory"
                                                               : "miscObjectCategory");
    entity->kind = vehicle ? AGENT_CAR : pedestrian ? AGENT_PEDESTRIAN : AGENT_OBJECT;
    for (size_t i = 0;
         i < sizeof categories / sizeof categories[0] && !osc_is(element, "MiscObject"); i++) {
        if (category != NULL && strcasecmp(category, categories[i].category) == 0) {
            entity->kind = categories[i].kind;
        }
    }
    entity->centre_x_m = vehicle ? entity->centre_x_m : 0;
    TRY(read_box(context, element, entity));
    if (vehicle) {
        TRY(read_vehicle(context, element, entity));
    }
    entity->accel_max_mps2 = dmath_clamp(entity->accel_max_mps2, 0.01, 1e4);
    entity->decel_max_mps2 = dmath_clamp(entity->decel_max_mps2, 0.01, 1e4);
    entity->speed_max_mps = dmath_clamp(entity->speed_max_mps, 0, 200);
    return STATUS_OK;
}

/* Files for CARLA say which vehicle is ego in a property. */
static bool is_marked_ego(const struct osc_entity *entity)
{
    const struct osc_element *list = osc_child(entity->element->first, "Properties");
    const struct osc_element *at = list != NULL ? osc_child(list, "Property") : NULL;
    for (; at != NULL; at = osc_next(at)) {
        const char *name = osc_attribute(at, "name");
        const char *value = osc_attribute(at, "value");
        if (name != NULL && value != NULL && strcmp(name, "type") == 0 &&
            strcmp(value, "ego_vehicle") == 0) {
            return true;
        }
    }
    return false;
}

/* The entity that the options name, else "Ego" in any spelling, else the one marked as ego, else
 * the first vehicle. */
static enum status choose_ego(struct osc_context *context, const struct osc_element *entities)
{
    const char *wanted = context->options->ego;
    for (uint32_t i = 0; i < context->entity_count && context->ego == NULL; i++) {
        struct osc_entity *entity = &context->entities[i];
        bool named = wanted != NULL ? strcmp(entity->name, wanted) == 0
                                    : strcasecmp(entity->name, "Ego") == 0;
        context->ego = named ? entity : NULL;
    }
    for (uint32_t i = 0; i < context->entity_count && context->ego == NULL && wanted == NULL; i++) {
        struct osc_entity *entity = &context->entities[i];
        context->ego = is_marked_ego(entity) ? entity : NULL;
    }
    for (uint32_t i = 0; i < context->entity_count && context->ego == NULL && wanted == NULL; i++) {
        struct osc_entity *entity = &context->entities[i];
        context->ego = entity->kind <= AGENT_CYCLIST ? entity : NULL;
    }
    if (context->ego == NULL) {
        return osc_fail(context, entities, "expected %s%.60s, found none",
                        wanted != NULL ? "the entity " : "a vehicle to be ego",
                        wanted != NULL ? wanted : "");
    }
    context->ego->is_ego = true;
    return STATUS_OK;
}

enum status osc_entities_read(struct osc_context *context)
{
    const struct osc_element *entities;
    TRY(osc_required_child(context, context->root, "Entities", &entities));
    context->entities = osc_alloc(context, OSC_ENTITIES_MAX, sizeof *context->entities);
    if (context->entities == NULL) {
        return STATUS_LIMIT;
    }
    for (const struct osc_element *at = entities->first; at != NULL; at = at->next) {
        if (osc_is(at, "EntitySelection")) {
            continue; /* looked at where one is named */
        }
        if (!osc_is(at, "ScenarioObject")) {
            return osc_unsupported(context, at);
        }
        if (context->entity_count == OSC_ENTITIES_MAX) {
            return osc_fail(context, at, "expected at most %d entities, found more",
                            OSC_ENTITIES_MAX);
        }
        struct osc_entity *entity = &context->entities[context->entity_count];
        TRY(read_object(context, at, entity));
        if (osc_entity_find(context, entity->name) != NULL) {
            return osc_fail(context, at,
                            "expected an entity of its own name, found \"%.60s\" again",
                            entity->name);
        }
        context->entity_count++;
    }
    return choose_ego(context, entities);
}

/* ---- routes ---- */

/* Roads that a route leads over, so that junctions are passed its way. */
enum status osc_route_read(struct osc_context *context, struct osc_entity *entity,
                           const struct osc_element *route)
{
    uint32_t *lanes = osc_alloc(context, ROUTE_LANES_MAX, sizeof *lanes);
    uint32_t before = OPENDRIVE_NONE;
    entity->route_roads = osc_alloc(context, ROUTE_LANES_MAX, sizeof *entity->route_roads);
    entity->route_road_count = 0;
    if (lanes == NULL || entity->route_roads == NULL) {
        return STATUS_LIMIT;
    }
    const struct osc_element *first = osc_child(route, "Waypoint");
    const struct osc_element *waypoint = first;
    bool closed = false;
    TRY(osc_bool(context, route, "closed", false, &closed));
    while (waypoint != NULL) {
        const struct osc_element *position;
        struct osc_position at;
        TRY(osc_required_child(context, waypoint, "Position", &position));
        TRY(osc_position_read(context, position, &at));
        if (!at.on_road || at.place.lane == OPENDRIVE_NONE) {
            return osc_fail(context, waypoint, "expected a waypoint in a lane, found one beside");
        }
        uint32_t count = 0;
        if (before != OPENDRIVE_NONE) {
            count =
                opendrive_route(context->network, before, at.place.lane, lanes, ROUTE_LANES_MAX);
        }
        if (before != OPENDRIVE_NONE && count == 0) {
            osc_note(context, waypoint,
                     "a route has waypoints that no lanes connect: its junctions "
                     "are passed straight on");
        }
        for (uint32_t i = 0; i < count && entity->route_road_count < ROUTE_LANES_MAX; i++) {
            entity->route_roads[entity->route_road_count++] =
                context->network->lanes[lanes[i]].road;
        }
        before = at.place.lane;
        waypoint = osc_next(waypoint);
        if (waypoint == NULL && closed) { /* back to where it begins */
            waypoint = first;
            closed = false;
        }
    }
    return STATUS_OK;
}

enum status osc_route_to(struct osc_context *context, struct osc_entity *entity,
                         const struct osc_element *acquire, uint32_t from)
{
    const struct osc_element *position;
    struct osc_position at;
    uint32_t *lanes = osc_alloc(context, ROUTE_LANES_MAX, sizeof *lanes);
    entity->route_roads = osc_alloc(context, ROUTE_LANES_MAX, sizeof *entity->route_roads);
    if (lanes == NULL || entity->route_roads == NULL) {
        return STATUS_LIMIT;
    }
    TRY(osc_required_child(context, acquire, "Position", &position));
    TRY(osc_position_read(context, position, &at));
    entity->route_road_count = 0;
    if (from != OPENDRIVE_NONE && at.on_road && at.place.lane != OPENDRIVE_NONE) {
        entity->route_road_count =
            opendrive_route(context->network, from, at.place.lane, lanes, ROUTE_LANES_MAX);
    }
    for (uint32_t i = 0; i < entity->route_road_count; i++) {
        entity->route_roads[i] = context->network->lanes[lanes[i]].road;
    }
    return STATUS_OK;
}

enum status osc_route_begin(struct osc_context *context, struct osc_entity *entity,
                            const struct osc_element *acquire, uint32_t from)
{
    TRY(osc_route_to(context, entity, acquire, from));
    if (entity->route_road_count == 0) {
        osc_note(context, acquire,
                 "no lanes lead to a position that is to be acquired: junctions are passed "
                 "straight on");
    }
    return STATUS_OK;
}

static enum status read_assigned_route(struct osc_context *context, struct osc_entity *entity,
                                       const struct osc_element *action)
{
    const struct osc_element *routing = osc_child(action, "RoutingAction");
    const struct osc_element *assign =
        routing != NULL ? osc_child(routing, "AssignRouteAction") : NULL;
    const struct osc_element *acquire =
        routing != NULL ? osc_child(routing, "AcquirePositionAction") : NULL;
    const struct osc_element *route = assign != NULL ? osc_child(assign, "Route") : NULL;
    uint32_t from = entity->on_road ? entity->place.lane : OPENDRIVE_NONE;
    TRY(acquire != NULL ? osc_route_begin(context, entity, acquire, from) : STATUS_OK);
    return route != NULL ? osc_route_read(context, entity, route) : STATUS_OK;
}

/* ---- Init ---- */

static const struct osc_element *init_actions(const struct osc_context *context)
{
    const struct osc_element *storyboard = osc_child(context->root, "Storyboard");
    const struct osc_element *init = storyboard != NULL ? osc_child(storyboard, "Init") : NULL;
    return init != NULL ? osc_child(init, "Actions") : NULL;
}

static const struct osc_element *find_teleport(const struct osc_element *private)
{
    const struct osc_element *action = osc_child(private, "PrivateAction");
    for (; action != NULL; action = osc_next(action)) {
        const struct osc_element *teleport = osc_child(action, "TeleportAction");
        if (teleport != NULL) {
            return osc_child(teleport, "Position");
        }
    }
    return NULL;
}

/* The trajectory that Init has an entity follow, which places it too. */
static const struct osc_element *find_follow(const struct osc_element *private)
{
    const struct osc_element *action = osc_child(private, "PrivateAction");
    for (; action != NULL; action = osc_next(action)) {
        const struct osc_element *routing = osc_child(action, "RoutingAction");
        const struct osc_element *follow =
            routing != NULL ? osc_child(routing, "FollowTrajectoryAction") : NULL;
        if (follow != NULL) {
            return follow;
        }
    }
    return NULL;
}

static const struct osc_element *trajectory_of(const struct osc_element *follow)
{
    const struct osc_element *reference = osc_child(follow, "TrajectoryRef");
    return osc_child(reference != NULL ? reference : follow, "Trajectory");
}

/* Whether the position refers to an entity that has no place yet. */
static bool must_wait(struct osc_context *context, const struct osc_element *position)
{
    const struct osc_element *at = position->first;
    const char *name = at != NULL ? osc_attribute(at, "entityRef") : NULL;
    const struct osc_entity *entity = name != NULL ? osc_entity_find(context, name) : NULL;
    return entity != NULL && !entity->placed;
}

static enum status place_on_trajectory(struct osc_context *context, struct osc_entity *entity,
                                       const struct osc_element *follow)
{
    const struct osc_element *trajectory = trajectory_of(follow);
    double s_m = 0;
    uint32_t path;
    if (trajectory == NULL) {
        return osc_fail(context, follow, "expected a <Trajectory>, found none");
    }
    TRY(osc_number(context, follow, "initialDistanceOffset", false, 0, 1e6, &s_m));
    TRY(osc_trajectory_read(context, trajectory, false, &path));
    entity->pose = osc_path_pose(&context->board, path, s_m);
    entity->path = (struct osc_path){.index = path, .start_s_m = s_m};
    entity->on_path = true;
    entity->placed = true;
    struct vec2 point = {entity->pose.x_m, entity->pose.y_m};
    entity->on_road =
        context->network != NULL &&
        opendrive_locate(context->network, point, entity->pose.heading_rad, 30.0, &entity->place);
    return STATUS_OK;
}

/* Places what can be placed; *placed counts. */
static enum status place_some(struct osc_context *context, uint32_t *placed)
{
    const struct osc_element *private = osc_child(init_actions(context), "Private");
    for (; private != NULL; private = osc_next(private)) {
        struct osc_entity *entity;
        TRY(osc_entity_named(context, private, "entityRef", &entity));
        const struct osc_element *position = find_teleport(private);
        const struct osc_element *follow = find_follow(private);
        if (entity->placed || (position != NULL && must_wait(context, position))) {
            continue;
        }
        if (position != NULL) {
            struct osc_position at;
            TRY(osc_position_read(context, position, &at));
            entity->pose = at.pose;
            entity->place = at.place;
            entity->on_road = at.on_road;
            entity->placed = true;
        }
        const struct osc_element *trajectory = follow != NULL ? trajectory_of(follow) : NULL;
        bool from_there =
            position != NULL && trajectory != NULL && osc_trajectory_is_own(trajectory, entity);
        if (follow != NULL && !from_there) {
            TRY(place_on_trajectory(context, entity, follow));
        }
        *placed += entity->placed;
    }
    return STATUS_OK;
}

/* Speed that Init sets at once; false in *done where it asks for something else. */
static enum status init_speed(struct osc_context *context, struct osc_entity *entity,
                              const struct osc_element *action, bool *done)
{
    const struct osc_element *longitudinal = osc_child(action, "LongitudinalAction");
    const struct osc_element *speed =
        longitudinal != NULL ? osc_child(longitudinal, "SpeedAction") : NULL;
    const struct osc_element *dynamics =
        speed != NULL ? osc_child(speed, "SpeedActionDynamics") : NULL;
    const struct osc_element *target = speed != NULL ? osc_child(speed, "SpeedActionTarget") : NULL;
    const struct osc_element *absolute =
        target != NULL ? osc_child(target, "AbsoluteTargetSpeed") : NULL;
    const char *shape = dynamics != NULL ? osc_attribute(dynamics, "dynamicsShape") : NULL;
    double value = 0;
    *done = false;
    if (absolute == NULL) {
        return STATUS_OK;
    }
    if (dynamics != NULL) {
        TRY(osc_number(context, dynamics, "value", false, -1e6, 1e6, &value));
    }
    if (shape == NULL || strcmp(shape, "step") == 0 || value == 0 || entity->is_ego) {
        *done = true;
        TRY(osc_number(context, absolute, "value", true, -200, 200, &entity->speed_mps));
        if (fabs(entity->speed_mps) > entity->speed_max_mps) {
            osc_note(context, absolute,
                     "speeds above what an entity's <Performance> gives are cut");
        }
        entity->speed_mps =
            dmath_clamp(entity->speed_mps, -entity->speed_max_mps, entity->speed_max_mps);
    }
    return STATUS_OK;
}

static bool is_placing(const struct osc_element *action)
{
    const struct osc_element *routing = osc_child(action, "RoutingAction");
    return osc_child(action, "TeleportAction") != NULL ||
           (routing != NULL && (osc_child(routing, "AssignRouteAction") != NULL ||
                                osc_child(routing, "AcquirePositionAction") != NULL));
}

static enum status read_start_path(struct osc_context *context, struct osc_entity *entity)
{
    if (entity->on_path) {
        return STATUS_OK;
    }
    if (!entity->on_road || entity->place.lane == OPENDRIVE_NONE) {
        return osc_path_straight(context, entity->pose, &entity->path);
    }
    bool with_s = osc_runs_with_s(context, &entity->place, entity->pose.heading_rad);
    return osc_path_along(context, entity, entity->place.lane, entity->place.s_m, with_s,
                          &entity->path);
}

/* Actors of the storyboard, in the order of the entities. */
static void add_actor(struct osc_context *context, struct osc_entity *entity)
{
    struct storyboard *board = &context->board;
    struct story_actor *actor = &board->actors[board->actor_count];
    struct vec2 point = {entity->pose.x_m, entity->pose.y_m};
    double s_m = entity->path.start_s_m;
    double offset_m = 0;
    if (!entity->on_path) {
        osc_path_project(&context->board, entity->path.index, point, &s_m, &offset_m);
    }
    double along = osc_path_pose(board, entity->path.index, s_m).heading_rad;
    *actor = (struct story_actor){
        .agent = STORY_EGO,
        .path = entity->path.index,
        .s_m = s_m,
        .offset_m = offset_m,
        .heading_rad = dmath_wrap_angle(entity->pose.heading_rad - along),
        .speed_mps = entity->speed_mps,
        .reference_m = entity->centre_x_m,
        .accel_max_mps2 = entity->accel_max_mps2,
        .decel_max_mps2 = entity->decel_max_mps2,
        .speed_max_mps = entity->speed_max_mps,
    };
    if (fabs(actor->heading_rad) < 1e-9) {
        actor->heading_rad = 0;
    }
    entity->actor = board->actor_count++;
}

static enum status read_init_actions(struct osc_context *context)
{
    struct storyboard *board = &context->board;
    uint32_t first = board->action_count;
    const struct osc_element *at = init_actions(context)->first;
    for (; at != NULL; at = at->next) {
        if (osc_is(at, "GlobalAction")) {
            TRY(osc_global_action(context, at));
            continue;
        }
        if (osc_is(at, "UserDefinedAction")) {
            TRY(osc_user_action(context, at));
            continue;
        }
        struct osc_entity *entity;
        TRY(osc_entity_named(context, at, "entityRef", &entity));
        const struct osc_element *action = osc_child(at, "PrivateAction");
        for (; action != NULL; action = osc_next(action)) {
            bool done;
            TRY(init_speed(context, entity, action, &done));
            if (!done && !is_placing(action) && !(entity->is_ego && entity->on_path)) {
                TRY(osc_private_action(context, action, entity));
            }
        }
    }
    if (board->action_count == first) {
        return STATUS_OK;
    }
    uint32_t count = board->action_count - first;
    uint32_t *actions = osc_alloc(context, count, sizeof *actions);
    if (actions == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < count; i++) {
        actions[i] = first + i;
    }
    uint32_t act = board->event_count;
    board->events[act] = (struct story_event){.parent = -1, .repeats = 1};
    board->events[act + 1] = (struct story_event){.parent = (int32_t)act,
                                                  .priority = STORY_PARALLEL,
                                                  .repeats = 1,
                                                  .action_count = count,
                                                  .actions = actions};
    board->event_count += 2;
    return STATUS_OK;
}

/* The position by which Init would place an entity, if others were; NULL: it does not wait. */
static const struct osc_element *waiting_for(struct osc_context *context, const char *name)
{
    const struct osc_element *private = osc_child(init_actions(context), "Private");
    for (; private != NULL; private = osc_next(private)) {
        const char *entity = osc_attribute(private, "entityRef");
        const struct osc_element *position = find_teleport(private);
        if (position != NULL && strcmp(entity, name) == 0 && must_wait(context, position)) {
            return position->first;
        }
    }
    return NULL;
}

/* Entities that wait for one another wait for ever. */
static enum status check_circles(struct osc_context *context)
{
    for (uint32_t i = 0; i < context->entity_count; i++) {
        const struct osc_element *at = waiting_for(context, context->entities[i].name);
        const char *other = at != NULL ? osc_attribute(at, "entityRef") : NULL;
        if (other != NULL && waiting_for(context, other) != NULL) {
            return osc_fail(context, at,
                            "expected a position that leads back to a place, found one relative "
                            "to \"%.60s\", which waits for one too",
                            other);
        }
    }
    return STATUS_OK;
}

enum status osc_init_read(struct osc_context *context)
{
    const struct osc_element *actions = init_actions(context);
    uint32_t placed = 0;
    uint32_t before;
    if (actions == NULL) {
        return osc_fail(context, context->root,
                        "expected a <Storyboard> with <Init> and <Actions>, "
                        "found none");
    }
    do {
        before = placed;
        placed = 0;
        for (uint32_t i = 0; i < context->entity_count; i++) {
            placed += context->entities[i].placed;
        }
        TRY(place_some(context, &placed));
    } while (placed != before && placed < context->entity_count);
    TRY(check_circles(context));
    const struct osc_element *private = osc_child(actions, "Private");
    for (; private != NULL; private = osc_next(private)) {
        struct osc_entity *entity;
        TRY(osc_entity_named(context, private, "entityRef", &entity));
        const struct osc_element *action = osc_child(private, "PrivateAction");
        for (; action != NULL; action = osc_next(action)) {
            bool done;
            TRY(read_assigned_route(context, entity, action));
            TRY(init_speed(context, entity, action, &done));
        }
    }
    for (uint32_t i = 0; i < context->entity_count; i++) {
        struct osc_entity *entity = &context->entities[i];
        if (!entity->placed && entity->is_ego) {
            return osc_fail(context, entity->element,
                            "expected <Init> to place ego, found no "
                            "position");
        }
        entity->present = entity->placed;
        if (!entity->placed) {
            osc_note(context, entity->element,
                     "an entity that Init does not place is not there until an action adds it");
            entity->pose = (struct pose){0, 0, 0};
        }
        TRY(read_start_path(context, entity));
        add_actor(context, entity);
    }
    return read_init_actions(context);
}
