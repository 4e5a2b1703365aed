/*
 * Positions of OpenSCENARIO on the road network.
 *
 * osc_frame.c says what the parts of a position are relative to. Positions relative to an entity
 * are those of its start.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/dmath.h"
#include "base/units.h"

#include <math.h>
#include <stddef.h>

#define REACH_M 30.0
#define PLACE_MAX_M 9e4
#define HEADING_MAX_RAD 1e6

/* <Orientation> of a position, onto `base` where it is relative. */
static enum status orient(struct osc_context *context, const struct osc_element *element,
                          double base_rad, struct osc_position *out)
{
    static const char *const types[] = {"absolute", "relative", NULL};
    const struct osc_element *orientation = osc_child(element, "Orientation");
    double h = 0;
    int type = 0;
    out->pose.heading_rad = dmath_wrap_angle(base_rad);
    if (orientation == NULL) {
        return STATUS_OK;
    }
    TRY(osc_choice(context, orientation, "type", types, 0, &type));
    TRY(osc_number(context, orientation, "h", false, -HEADING_MAX_RAD, HEADING_MAX_RAD, &h));
    h *= osc_plane_sign(context);
    out->has_heading = true;
    out->pose.heading_rad = dmath_wrap_angle(type == 0 ? h : base_rad + h);
    return STATUS_OK;
}

static enum status find_road(struct osc_context *context, const struct osc_element *element,
                             const char *attribute, uint32_t *road)
{
    const char *id;
    TRY(osc_required_text(context, element, attribute, &id));
    if (context->network == NULL) {
        return osc_fail(context, element, "expected a road network (<LogicFile>), found none");
    }
    *road = opendrive_road_find(context->network, id);
    if (*road == OPENDRIVE_NONE) {
        return osc_fail(context, element, "expected the id of a road of %s, found \"%.40s\"",
                        context->network->name, id);
    }
    return STATUS_OK;
}

/* Finds lane and offset of a place from road, s and t. */
static void settle(struct osc_context *context, struct osc_position *out)
{
    struct opendrive_place *place = &out->place;
    uint32_t section = opendrive_section_at(context->network, place->road, place->s_m);
    const struct opendrive_section *at = &context->network->sections[section];
    place->lane = OPENDRIVE_NONE;
    for (uint32_t i = 0; i < at->left_count + at->right_count; i++) {
        uint32_t lane =
            i < at->left_count ? at->left_first + i : at->right_first + (i - at->left_count);
        double inner_m;
        double outer_m;
        opendrive_lane_borders(context->network, lane, place->s_m, &inner_m, &outer_m);
        if (place->t_m >= dmath_min(inner_m, outer_m) &&
            place->t_m <= dmath_max(inner_m, outer_m) && fabs(outer_m - inner_m) > 1e-6) {
            place->lane = lane;
            place->offset_m =
                place->t_m - opendrive_lane_centre_t_m(context->network, lane, place->s_m);
            break;
        }
    }
    struct pose pose = opendrive_road_pose(context->network, place->road, place->s_m, place->t_m);
    out->pose.x_m = pose.x_m;
    out->pose.y_m = pose.y_m;
    out->on_road = true;
}

static enum status check_s(struct osc_context *context, const struct osc_element *element,
                           uint32_t road, double s_m)
{
    double length_m = context->network->roads[road].length_m;
    if (!(s_m >= -1e-6 && s_m <= length_m + 1e-6)) {
        return osc_fail(context, element, "expected an s from 0 to %g m on road %s, found %g",
                        length_m, context->network->roads[road].id, s_m);
    }
    return STATUS_OK;
}

/* (road, lane id, s, offset) to a place. */
static enum status place_on_lane(struct osc_context *context, const struct osc_element *element,
                                 uint32_t road, int32_t lane_id, double s_m, double offset_m,
                                 struct osc_position *out)
{
    TRY(check_s(context, element, road, s_m));
    uint32_t lane =
        lane_id == 0 ? OPENDRIVE_NONE : opendrive_lane_find(context->network, road, s_m, lane_id);
    if (lane == OPENDRIVE_NONE && lane_id != 0) {
        return osc_fail(context, element, "expected a lane of road %s at s = %g m, found lane %d",
                        context->network->roads[road].id, s_m, lane_id);
    }
    double centre_m =
        lane != OPENDRIVE_NONE ? opendrive_lane_centre_t_m(context->network, lane, s_m) : 0.0;
    out->place = (struct opendrive_place){
        .road = road, .lane = lane, .s_m = s_m, .t_m = centre_m + offset_m, .offset_m = offset_m};
    if (lane == OPENDRIVE_NONE) {
        settle(context, out);
        return STATUS_OK;
    }
    struct pose pose = opendrive_lane_pose(context->network, lane, s_m, offset_m);
    out->pose.x_m = pose.x_m;
    out->pose.y_m = pose.y_m;
    out->on_road = true;
    return STATUS_OK;
}

static enum status read_lane_id(struct osc_context *context, const struct osc_element *element,
                                const char *name, int32_t *out)
{
    double value = NAN;
    TRY(osc_number(context, element, name, true, -1000, 1000, &value));
    if (value != floor(value)) {
        return osc_fail(context, element, "expected a whole number in %s, found %g", name, value);
    }
    *out = (int32_t)value;
    return STATUS_OK;
}

static enum status read_world(struct osc_context *context, const struct osc_element *element,
                              struct osc_position *out)
{
    double h = 0;
    double sign = osc_plane_sign(context);
    struct vec2 origin = context->network != NULL ? context->network->origin : (struct vec2){0, 0};
    TRY(osc_number(context, element, "x", true, origin.x_m - PLACE_MAX_M, origin.x_m + PLACE_MAX_M,
                   &out->pose.x_m));
    TRY(osc_number(context, element, "y", true, sign * origin.y_m - PLACE_MAX_M,
                   sign * origin.y_m + PLACE_MAX_M, &out->pose.y_m));
    TRY(osc_number(context, element, "h", false, -HEADING_MAX_RAD, HEADING_MAX_RAD, &h));
    out->has_heading = osc_attribute(element, "h") != NULL;
    out->pose.x_m -= origin.x_m;
    out->pose.y_m = sign * out->pose.y_m - origin.y_m;
    out->pose.heading_rad = dmath_wrap_angle(sign * h);
    struct vec2 point = {out->pose.x_m, out->pose.y_m};
    out->on_road =
        context->network != NULL &&
        opendrive_locate(context->network, point, out->pose.heading_rad, REACH_M, &out->place);
    return STATUS_OK;
}

/* Degrees; radians in the attributes of before 1.2. */
static enum status read_geo(struct osc_context *context, const struct osc_element *element,
                            struct osc_position *out)
{
    bool old = osc_attribute(element, "latitudeDeg") == NULL;
    double unit = old ? 1 : PI_RAD / 180;
    double latitude = 0;
    double longitude = 0;
    TRY(osc_number(context, element, old ? "latitude" : "latitudeDeg", true, -PI_RAD / 2 / unit,
                   PI_RAD / 2 / unit, &latitude));
    TRY(osc_number(context, element, old ? "longitude" : "longitudeDeg", true, -PI_RAD / unit,
                   PI_RAD / unit, &longitude));
    struct vec2 point;
    if (context->network == NULL ||
        !opendrive_geo_place(context->network, latitude * unit, longitude * unit, &point)) {
        return osc_fail(context, element,
                        "expected a road network whose <geoReference> is transverse Mercator or "
                        "UTM in metres on WGS 84, and a place within 20 degrees of its meridian");
    }
    if (!(fabs(point.x_m) <= PLACE_MAX_M && fabs(point.y_m) <= PLACE_MAX_M)) {
        return osc_fail(context, element,
                        "expected a place within 90 km of the roads' origin, found "
                        "(%.0f, %.0f) m",
                        point.x_m, point.y_m);
    }
    out->pose = (struct pose){point.x_m, point.y_m, 0};
    out->on_road = opendrive_locate(context->network, point, 0, REACH_M, &out->place);
    return orient(context, element, 0, out);
}

static enum status read_lane(struct osc_context *context, const struct osc_element *element,
                             struct osc_position *out)
{
    uint32_t road = OPENDRIVE_NONE;
    int32_t lane = 0;
    double s_m = 0;
    double offset_m = 0;
    TRY(find_road(context, element, "roadId", &road));
    TRY(read_lane_id(context, element, "laneId", &lane));
    TRY(osc_number(context, element, "s", true, -1e6, 1e6, &s_m));
    TRY(osc_number(context, element, "offset", false, -1e4, 1e4, &offset_m));
    TRY(place_on_lane(context, element, road, lane, s_m, offset_m, out));
    return orient(context, element, osc_traffic_heading(context, &out->place), out);
}

static enum status read_road(struct osc_context *context, const struct osc_element *element,
                             struct osc_position *out)
{
    uint32_t road = OPENDRIVE_NONE;
    double s_m = 0;
    double t_m = 0;
    TRY(find_road(context, element, "roadId", &road));
    TRY(osc_number(context, element, "s", true, -1e6, 1e6, &s_m));
    TRY(osc_number(context, element, "t", true, -1e4, 1e4, &t_m));
    TRY(check_s(context, element, road, s_m));
    out->place = (struct opendrive_place){.road = road, .s_m = s_m, .t_m = t_m};
    settle(context, out);
    return orient(context, element, osc_road_heading(context, &out->place), out);
}

/* An entity that others are placed by has a place itself. */
static enum status placed_entity(struct osc_context *context, const struct osc_element *element,
                                 bool on_road, struct osc_entity **out)
{
    TRY(osc_entity_named(context, element, "entityRef", out));
    if (!(*out)->placed) {
        return osc_fail(context, element,
                        "expected an entity that Init has placed before, found "
                        "\"%.60s\"",
                        (*out)->name);
    }
    if (on_road && (context->network == NULL || !(*out)->on_road)) {
        return osc_fail(context, element, "expected an entity on a road, found \"%.60s\"",
                        (*out)->name);
    }
    return STATUS_OK;
}

/* So far ahead of an entity along its lane, over the ends of roads. */
static enum status go_ahead(struct osc_context *context, const struct osc_element *element,
                            const struct osc_entity *entity, double ahead_m, bool along_lane,
                            struct osc_spot *out)
{
    if (entity->place.lane == OPENDRIVE_NONE) {
        return osc_fail(context, element, "expected an entity in a lane, found \"%.60s\"",
                        entity->name);
    }
    double left_m = osc_walk_from(context, entity, ahead_m, along_lane, out);
    return left_m <= 1e-6
               ? STATUS_OK
               : osc_fail(context, element,
                          "expected a lane for %g m from \"%.60s\" on, found one %g m shorter",
                          ahead_m, entity->name, left_m);
}

static enum status read_relative_lane(struct osc_context *context,
                                      const struct osc_element *element, struct osc_position *out)
{
    struct osc_entity *entity;
    struct osc_spot spot;
    int32_t steps = 0;
    double ahead_m = 0;
    double offset_m = 0;
    bool along_lane = osc_attribute(element, "ds") == NULL;
    TRY(placed_entity(context, element, true, &entity));
    TRY(read_lane_id(context, element, "dLane", &steps));
    TRY(osc_number(context, element, along_lane ? "dsLane" : "ds", false, -1e5, 1e5, &ahead_m));
    TRY(osc_number(context, element, "offset", false, -1e4, 1e4, &offset_m));
    TRY(go_ahead(context, element, entity, ahead_m, along_lane, &spot));
    spot.lane = osc_lane_left_of(context, spot.lane, spot.with_s, steps);
    if (spot.lane == OPENDRIVE_NONE) {
        return osc_fail(context, element, "expected a lane %d beside that of \"%.60s\", found none",
                        steps, entity->name);
    }
    const struct opendrive_lane *record = &context->network->lanes[spot.lane];
    TRY(place_on_lane(context, element, record->road, record->id, spot.s_m, offset_m, out));
    out->relative_to_moving = true;
    return orient(context, element, osc_traffic_heading(context, &out->place), out);
}

/* Within its road, wherever the entity is beside it; beyond its end as far from the lane's middle.
 */
static enum status read_relative_road(struct osc_context *context,
                                      const struct osc_element *element, struct osc_position *out)
{
    struct osc_entity *entity;
    struct osc_spot spot;
    double ahead_m = 0;
    double left_m = 0;
    TRY(placed_entity(context, element, true, &entity));
    TRY(osc_number(context, element, "ds", true, -1e5, 1e5, &ahead_m));
    TRY(osc_number(context, element, "dt", true, -1e4, 1e4, &left_m));
    const struct opendrive_place *from = &entity->place;
    double sign = osc_runs_with_s(context, from, entity->pose.heading_rad) ? 1 : -1;
    double s_m = from->s_m + sign * ahead_m;
    out->place =
        (struct opendrive_place){.road = from->road, .s_m = s_m, .t_m = from->t_m + sign * left_m};
    if (s_m < 0 || s_m > context->network->roads[from->road].length_m) {
        TRY(go_ahead(context, element, entity, ahead_m, false, &spot));
        double beside_m = sign * from->offset_m + left_m;
        double centre_m = opendrive_lane_centre_t_m(context->network, spot.lane, spot.s_m);
        out->place =
            (struct opendrive_place){.road = context->network->lanes[spot.lane].road,
                                     .s_m = spot.s_m,
                                     .t_m = centre_m + (spot.with_s ? beside_m : -beside_m)};
    }
    settle(context, out);
    out->relative_to_moving = true;
    return orient(context, element, osc_road_heading(context, &out->place), out);
}

static enum status read_relative_object(struct osc_context *context,
                                        const struct osc_element *element, struct osc_position *out)
{
    struct osc_entity *entity;
    double dx = 0;
    double dy = 0;
    double s = 0;
    double c = 1;
    TRY(placed_entity(context, element, false, &entity));
    TRY(osc_number(context, element, "dx", true, -1e5, 1e5, &dx));
    TRY(osc_number(context, element, "dy", true, -1e5, 1e5, &dy));
    dy *= osc_plane_sign(context);
    if (osc_is(element, "RelativeObjectPosition")) {
        dmath_sincos(entity->pose.heading_rad, &s, &c);
    }
    out->pose.x_m = entity->pose.x_m + c * dx - s * dy;
    out->pose.y_m = entity->pose.y_m + s * dx + c * dy;
    struct vec2 point = {out->pose.x_m, out->pose.y_m};
    out->on_road =
        context->network != NULL &&
        opendrive_locate(context->network, point, entity->pose.heading_rad, REACH_M, &out->place);
    out->relative_to_moving = true;
    return orient(context, element, entity->pose.heading_rad, out);
}

static enum status read_on_trajectory(struct osc_context *context,
                                      const struct osc_element *element, struct osc_position *out)
{
    const struct osc_element *trajectory;
    uint32_t path;
    double s_m = 0;
    double t_m = 0;
    double sin_h;
    double cos_h;
    const struct osc_element *reference = osc_child(element, "TrajectoryRef");
    TRY(osc_required_child(context, reference != NULL ? reference : element, "Trajectory",
                           &trajectory));
    TRY(osc_number(context, element, "s", true, -1e6, 1e6, &s_m));
    TRY(osc_number(context, element, "t", false, -1e4, 1e4, &t_m));
    TRY(osc_trajectory_read(context, trajectory, false, &path));
    struct pose pose = osc_path_pose(&context->board, path, s_m);
    dmath_sincos(pose.heading_rad, &sin_h, &cos_h);
    out->pose = (struct pose){pose.x_m - t_m * sin_h, pose.y_m + t_m * cos_h, pose.heading_rad};
    struct vec2 point = {out->pose.x_m, out->pose.y_m};
    out->on_road =
        context->network != NULL &&
        opendrive_locate(context->network, point, pose.heading_rad, REACH_M, &out->place);
    return orient(context, element, pose.heading_rad, out);
}

/* Along a route: from its first waypoint so far along the lanes that lead to the others. */
static enum status read_on_route(struct osc_context *context, const struct osc_element *element,
                                 struct osc_position *out)
{
    const struct osc_element *reference;
    const struct osc_element *in_route;
    const struct osc_element *route;
    const struct osc_element *first;
    struct osc_entity along = {.name = "route"};
    struct osc_position start = {0};
    double s_m = 0;
    double offset_m = 0;
    double t_m = NAN;
    int32_t lane_id = 0;
    TRY(osc_required_child(context, element, "RouteRef", &reference));
    TRY(osc_required_child(context, reference, "Route", &route));
    TRY(osc_required_child(context, element, "InRoutePosition", &in_route));
    const struct osc_element *at = in_route->first;
    if (at == NULL || osc_is(at, "FromCurrentEntity")) {
        return osc_unsupported(context, at != NULL ? at : in_route);
    }
    bool in_lane = osc_is(at, "FromLaneCoordinates") || osc_is(at, "LanePosition");
    TRY(osc_number(context, at, "pathS", true, -1e6, 1e6, &s_m));
    if (in_lane) {
        TRY(read_lane_id(context, at, "laneId", &lane_id));
        TRY(osc_number(context, at, "laneOffset", false, -1e4, 1e4, &offset_m));
    } else {
        TRY(osc_number(context, at, "t", true, -1e4, 1e4, &t_m));
    }
    TRY(osc_route_read(context, &along, route));
    TRY(osc_required_child(context, route, "Waypoint", &first));
    TRY(osc_required_child(context, first, "Position", &first));
    TRY(osc_position_read(context, first, &start));
    if (!start.on_road || start.place.lane == OPENDRIVE_NONE) {
        return osc_fail(context, first, "expected a waypoint in a lane, found none there");
    }
    struct osc_path path;
    bool with_s = !context->network->lanes[start.place.lane].against;
    TRY(osc_path_along(context, &along, start.place.lane, start.place.s_m, with_s, &path));
    struct pose pose = osc_path_pose(&context->board, path.index, path.start_s_m + s_m);
    struct vec2 point = {pose.x_m, pose.y_m};
    if (!opendrive_locate(context->network, point, pose.heading_rad, REACH_M, &out->place)) {
        return osc_fail(context, at, "expected a place on the route at %g m, found none", s_m);
    }
    if (in_lane) {
        TRY(place_on_lane(context, at, out->place.road, lane_id, out->place.s_m, offset_m, out));
    } else {
        out->place.t_m = t_m;
        settle(context, out);
    }
    return orient(context, element, pose.heading_rad, out);
}

enum status osc_position_read(struct osc_context *context, const struct osc_element *position,
                              struct osc_position *out)
{
    static const struct {
        const char *name;
        enum status (*read)(struct osc_context *context, const struct osc_element *element,
                            struct osc_position *out);
    } kinds[] = {
        {"WorldPosition", read_world},
        {"GeoPosition", read_geo},
        {"LanePosition", read_lane},
        {"RoadPosition", read_road},
        {"RelativeLanePosition", read_relative_lane},
        {"RelativeRoadPosition", read_relative_road},
        {"RelativeObjectPosition", read_relative_object},
        {"RelativeWorldPosition", read_relative_object},
        {"TrajectoryPosition", read_on_trajectory},
        {"RoutePosition", read_on_route},
    };
    const struct osc_element *element = position->first;
    *out = (struct osc_position){.place = {.road = OPENDRIVE_NONE, .lane = OPENDRIVE_NONE}};
    if (element == NULL) {
        return osc_fail(context, position, "expected a position, found none");
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (osc_is(element, kinds[i].name)) {
            return kinds[i].read(context, element, out);
        }
    }
    return osc_unsupported(context, element);
}
