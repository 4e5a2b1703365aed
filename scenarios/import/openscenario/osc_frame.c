/*
 * References of relative quantities, decided here alone.
 *
 *   distances along a road or lane, steps between lanes, offsets that are relative to an entity
 *       the entity's: ahead of it, to its left, over the ends of roads too
 *   ids of lanes, s, t and offsets that a file gives without an entity
 *       the road's where the entity, or the place, then is
 *   headings of LanePosition and RelativeLanePosition    traffic's, in that lane
 *   headings of RoadPosition and RelativeRoadPosition    the road's, towards larger s; traffic's in
 *                                                        CARLA's files
 *   headings of positions relative to an entity's pose   the entity's
 *   y and headings of the plane                          left-handed in CARLA's files
 *
 * Headings are esmini's reading, as are those that a file leaves out.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/dmath.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

/* scenario_runner takes files for CARLA's whose description begins so. */
double osc_plane_sign(const struct osc_context *context)
{
    const struct osc_element *header = osc_child(context->root, "FileHeader");
    const char *text = header != NULL ? osc_attribute(header, "description") : NULL;
    return text != NULL && strncasecmp(text, "CARLA:", 6) == 0 ? -1.0 : 1.0;
}

bool osc_runs_with_s(const struct osc_context *context, const struct opendrive_place *place,
                     double heading_rad)
{
    double along = opendrive_road_pose(context->network, place->road, place->s_m, 0).heading_rad;
    return fabs(dmath_wrap_angle(heading_rad - along)) <= PI_RAD / 2;
}

/* Beside all lanes it is that of traffic on that side of the road. */
double osc_traffic_heading(const struct osc_context *context, const struct opendrive_place *place)
{
    if (place->lane != OPENDRIVE_NONE) {
        double heading =
            opendrive_lane_pose(context->network, place->lane, place->s_m, 0).heading_rad;
        return context->network->lanes[place->lane].against ? heading + PI_RAD : heading;
    }
    bool left_hand = context->network->roads[place->road].left_hand;
    double heading =
        opendrive_road_pose(context->network, place->road, place->s_m, place->t_m).heading_rad;
    return (place->t_m > 0) != left_hand ? heading + PI_RAD : heading;
}

double osc_road_heading(const struct osc_context *context, const struct opendrive_place *place)
{
    if (osc_plane_sign(context) < 0) {
        return osc_traffic_heading(context, place);
    }
    return opendrive_road_pose(context->network, place->road, place->s_m, place->t_m).heading_rad;
}

/* So far along the road, or along the lane's own middle, which is longer outside of a bend. */
static double walk(const struct osc_context *context, uint32_t *lane, double *s_m, double way_m,
                   bool along_lane)
{
    const struct opendrive_network *network = context->network;
    return along_lane ? opendrive_walk_lane(network, lane, s_m, way_m, OPENDRIVE_STRAIGHT)
                      : opendrive_walk(network, lane, s_m, way_m, OPENDRIVE_STRAIGHT);
}

double osc_walk_from(const struct osc_context *context, const struct osc_entity *entity,
                     double ahead_m, bool along_lane, struct osc_spot *out)
{
    const struct opendrive_network *network = context->network;
    bool with_s = osc_runs_with_s(context, &entity->place, entity->pose.heading_rad);
    *out = (struct osc_spot){entity->place.lane, entity->place.s_m, with_s};
    bool with_traffic = with_s != network->lanes[out->lane].against;
    double rest_m =
        walk(context, &out->lane, &out->s_m, with_traffic ? ahead_m : -ahead_m, along_lane);
    out->with_s = with_traffic != network->lanes[out->lane].against;
    return fabs(rest_m);
}

uint32_t osc_lane_left_of(const struct osc_context *context, uint32_t lane, bool with_s,
                          int32_t steps)
{
    for (int32_t i = 0; i < abs(steps) && lane != OPENDRIVE_NONE; i++) {
        lane = opendrive_neighbour(context->network, lane, (steps > 0) == with_s);
    }
    return lane;
}

/* ---- lanes that actions name ---- */

enum { WAYS_MAX = LIMIT_STORY_WAYS + 1 };

static bool is_behind(const struct osc_path *path, uint32_t i)
{
    return i + 1 < path->lane_count && path->lane_s_m[i + 1] <= path->start_s_m + 1e-6;
}

/* The lane of `other` in the section of a lane, or of the same id elsewhere on that road. */
static bool find_beside(const struct osc_context *context, const struct osc_path *other,
                        uint32_t lane, uint32_t *found, bool *with_s)
{
    const struct opendrive_lane *lanes = context->network->lanes;
    bool any = false;
    for (uint32_t i = 0; i < other->lane_count; i++) {
        const struct opendrive_lane *at = &lanes[other->lanes[i]];
        if (at->road == lanes[lane].road && (!any || at->section == lanes[lane].section)) {
            *found = other->lanes[i];
            *with_s = other->with_s[i];
            any = true;
        }
    }
    return any;
}

/* The lane that the target is where an entity is in `lane`; OPENDRIVE_NONE: there is none. */
static uint32_t lane_at(const struct osc_context *context, const struct osc_lane_target *target,
                        const struct osc_path *own, uint32_t i)
{
    const struct opendrive_network *network = context->network;
    uint32_t lane = own->lanes[i];
    const struct opendrive_section *section = &network->sections[network->lanes[lane].section];
    double middle_m = 0.5 * (section->s_m + section->end_m);
    uint32_t road = network->lanes[lane].road;
    uint32_t found = OPENDRIVE_NONE;
    bool with_s = false;
    if (!target->relative) {
        return opendrive_lane_find(network, road, middle_m, target->number);
    }
    if (target->path == own) {
        return osc_lane_left_of(context, lane, own->with_s[i], target->number);
    }
    if (!find_beside(context, target->path, lane, &found, &with_s)) {
        return OPENDRIVE_NONE;
    }
    found = osc_lane_left_of(context, found, with_s, target->number);
    return found != OPENDRIVE_NONE
               ? opendrive_lane_find(network, road, middle_m, network->lanes[found].id)
               : OPENDRIVE_NONE;
}

static bool runs_along(const struct osc_path *path, uint32_t lane, bool with_s)
{
    for (uint32_t i = 0; i < path->lane_count; i++) {
        if (path->lanes[i] == lane && path->with_s[i] == with_s) {
            return true;
        }
    }
    return false;
}

/* Whether the way that was made last, for `entity`'s route, is right from a lane on too. */
static bool is_right_from(const struct osc_context *context, const struct osc_lane_target *target,
                          const struct osc_entity *entity, const struct osc_path *path,
                          uint32_t lane, bool with_s)
{
    return runs_along(path, lane, with_s) &&
           (target->acquire == NULL || osc_on_route(entity, context->network->lanes[lane].road));
}

/* A path along `lane` from beside where `own` is in its i-th one. */
static enum status path_beside(struct osc_context *context, const struct osc_entity *entity,
                               const struct osc_path *own, uint32_t i, uint32_t lane, bool with_s,
                               struct osc_path *out)
{
    const struct opendrive_section *section =
        &context->network->sections[context->network->lanes[lane].section];
    double along_m = dmath_max(own->start_s_m - own->lane_s_m[i], 0);
    double s_m = with_s ? section->s_m + along_m : section->end_m - along_m;
    return osc_path_along(context, entity, lane, dmath_clamp(s_m, section->s_m, section->end_m),
                          with_s, out);
}

/* On roads where the entity never is, the target's own way counts. */
static enum status take_other_way(struct osc_context *context, const struct osc_element *element,
                                  const struct osc_entity *entity,
                                  const struct osc_lane_target *target, struct osc_path *out)
{
    const struct osc_path *other = target->path;
    for (uint32_t i = 0; target->relative && i < other->lane_count; i++) {
        uint32_t lane = is_behind(other, i) ? OPENDRIVE_NONE
                                            : osc_lane_left_of(context, other->lanes[i],
                                                               other->with_s[i], target->number);
        if (lane != OPENDRIVE_NONE) {
            return path_beside(context, entity, other, i, lane, other->with_s[i], out);
        }
    }
    return target->relative
               ? osc_fail(context, element,
                          "expected a lane %d to the left of that of \"%.60s\", found none",
                          target->number, entity->name)
               : osc_fail(context, element, "expected lane %d on the way of \"%.60s\", found none",
                          target->number, entity->name);
}

/* Sign of an offset to the left of the road on a path where it begins. */
static double road_sign(const struct osc_path *path)
{
    for (uint32_t i = 0; i < path->lane_count; i++) {
        if (!is_behind(path, i)) {
            return path->with_s[i] ? 1.0 : -1.0;
        }
    }
    return 1.0;
}

enum status osc_lane_ways(struct osc_context *context, const struct osc_element *element,
                          const struct osc_entity *entity, const struct osc_lane_target *target,
                          struct osc_path *first, struct story_action *action)
{
    const struct osc_path *own = &entity->path;
    struct osc_entity from = *entity; /* whose route begins where the action may */
    struct osc_path path = {0};
    uint32_t count = 0;
    action->ways = osc_alloc(context, WAYS_MAX, sizeof *action->ways);
    if (action->ways == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < own->lane_count && count < WAYS_MAX; i++) {
        bool with_s = own->with_s[i];
        uint32_t lane = is_behind(own, i) ? OPENDRIVE_NONE : lane_at(context, target, own, i);
        if (lane == OPENDRIVE_NONE ||
            (count > 0 && is_right_from(context, target, &from, &path, lane, with_s))) {
            continue;
        }
        TRY(count > 0 && target->acquire != NULL
                ? osc_route_to(context, &from, target->acquire, lane)
                : STATUS_OK);
        TRY(path_beside(context, &from, own, i, lane, with_s, &path));
        *first = count == 0 ? path : *first;
        action->ways[count++] = (struct story_way){own->lane_s_m[i], (int32_t)path.index,
                                                   with_s ? target->offset_m : -target->offset_m};
    }
    if (count == 0) {
        TRY(take_other_way(context, element, entity, target, first));
        action->ways[count++] =
            (struct story_way){0, (int32_t)first->index, road_sign(first) * target->offset_m};
    }
    action->path = action->ways[0].path;
    action->target_m = action->ways[0].target_m;
    action->ways_on = count > 1 ? (int32_t)own->index : -1;
    action->ways++; /* the first is the action's own path */
    action->way_count = count - 1;
    return STATUS_OK;
}

uint32_t osc_lane_of_start(const struct osc_path *path)
{
    uint32_t i = 0;
    while (i < path->lane_count && is_behind(path, i)) {
        i++;
    }
    return i < path->lane_count ? path->lanes[i] : OPENDRIVE_NONE;
}

/* +1 where larger offsets are to the left of who is on the path's i-th lane: of a road that runs
 * his way, or of another entity that does. */
static double side_sign(const struct osc_context *context, const struct osc_path *path,
                        const struct osc_path *other, uint32_t i)
{
    uint32_t lane;
    bool with_s = true;
    if (other == NULL) {
        return path->with_s[i] ? 1.0 : -1.0;
    }
    bool met = find_beside(context, other, path->lanes[i], &lane, &with_s);
    return !met || with_s == path->with_s[i] ? 1.0 : -1.0;
}

enum status osc_offset_ways(struct osc_context *context, const struct osc_path *path,
                            const struct osc_path *other, double offset_m,
                            struct story_action *action)
{
    double sign = 0;
    action->ways = osc_alloc(context, LIMIT_STORY_WAYS, sizeof *action->ways);
    if (action->ways == NULL) {
        return STATUS_LIMIT;
    }
    action->target_m = offset_m;
    for (uint32_t i = 0; i < path->lane_count && action->way_count < LIMIT_STORY_WAYS; i++) {
        double here = side_sign(context, path, other, i);
        if (is_behind(path, i) || here == sign) {
            continue;
        }
        if (sign == 0) {
            action->target_m = here * offset_m;
        } else {
            action->ways[action->way_count++] =
                (struct story_way){path->lane_s_m[i], -1, here * offset_m};
            action->ways_on = (int32_t)path->index;
        }
        sign = here;
    }
    return STATUS_OK;
}
