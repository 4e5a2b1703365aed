/*
 * Tags of an operational design domain, derived from resolved scenarios.
 */
#include "base/geom.h"
#include "base/units.h"
#include "scenarios/coverage/coverage.h"

#include "base/check.h"

#include <math.h>
#include <string.h>

#define CURVED_RAD 0.09 /* 5 degrees along the route */
#define TURNED_RAD 0.52 /* 30 degrees: a turn, not a bend */
#define NARROW_M 3.2
#define WIDE_M 3.6

const struct odd_axis odd_axes[ODD_ATTRIBUTE_COUNT] = {
    {"road_type",
     "scenery",
     "drivable area type",
     5,
     {"motorway", "rural_road", "urban_road", "parking", "other"}},
    {"geometry", "scenery", "drivable area geometry, horizontal plane", 2, {"straight", "curved"}},
    {"lanes", "scenery", "number of lanes in ego's direction", 3, {"1", "2", "3_or_more"}},
    {"lane_width", "scenery", "lane dimensions", 3, {"narrow", "standard", "wide"}},
    {"traffic_side", "scenery", "direction of travel", 3, {"right_hand", "left_hand", "one_way"}},
    {"edge", "scenery", "drivable area edge", 3, {"line_markers", "shoulder", "sidewalk"}},
    {"surface",
     "scenery",
     "drivable area surface condition",
     7,
     {"dry", "wet", "snow", "ice", "standing_water", "oil", "gravel"}},
    {"junction", "scenery", "junctions", 3, {"none", "intersection", "roundabout"}},
    {"manoeuvre",
     "dynamic",
     "subject vehicle manoeuvre prescribed by the route",
     4,
     {"keep_lane", "change_lane", "turn_left", "turn_right"}},
    {"structure",
     "scenery",
     "special and temporary structures",
     5,
     {"none", "pedestrian_crossing", "tunnel", "road_works", "traffic_lights"}},
    {"precipitation",
     "environment",
     "rainfall, snowfall",
     4,
     {"none", "rain", "heavy_rain", "snow"}},
    {"particulates", "environment", "particulates", 2, {"none", "fog"}},
    {"illumination", "environment", "illumination", 3, {"day", "dusk", "night"}},
    {"agent",
     "dynamic",
     "traffic agents",
     9,
     {"car", "van", "truck", "bus", "motorcycle", "cyclist", "pedestrian", "animal", "object"}},
    {"density",
     "dynamic",
     "traffic agent density: agents in the scene",
     4,
     {"0", "1_to_2", "3_to_5", "6_or_more"}},
    {"ego_speed",
     "dynamic",
     "subject vehicle speed at the start, km/h",
     5,
     {"below_30", "30_to_60", "60_to_90", "90_to_130", "above_130"}},
};

const char *const odd_not_expressible[] = {
    "scenery: gradients, cross slopes and other vertical geometry",
    "scenery: radial, distributor, minor and slip roads as types of their own",
    "scenery: traffic signs but for those of priority, speed limits that change with time",
    "scenery: lane types for buses, trams, bicycles beside driving, shoulder and cycle lanes",
    "scenery: bridges, rail crossings, toll plazas; grade-separated junctions",
    "scenery: buildings, street furniture and vegetation as fixed structures",
    "scenery: surface features (cracks, potholes, ruts) and induced unevenness",
    "environment: wind; rainfall and snowfall in mm/h; temperature",
    "environment: dust, smoke, sand, spray other than as visibility",
    "environment: artificial illumination, position of the sun, cloudiness",
    "environment: connectivity and positioning",
    "dynamic: special vehicles as a class of their own; flow rate and volume of traffic",
    NULL,
};

static uint32_t bit(uint32_t value)
{
    return UINT32_C(1) << value;
}

/* ---- ego's route ---- */

/* Change of heading along one lane of the route. */
static double lane_turn_rad(const struct lane *lane)
{
    double sum = 0.0;
    double before = 0.0;
    for (uint32_t i = 1; i < lane->point_count; i++) {
        const struct vec2 *a = &lane->centre_line[i - 1];
        const struct vec2 *b = &lane->centre_line[i];
        double heading = atan2(b->y_m - a->y_m, b->x_m - a->x_m);
        sum += i > 1 ? remainder(heading - before, 2 * PI_RAD) : 0.0;
        before = heading;
    }
    return sum;
}

static const struct lane *route_lane(const struct scenario *scenario, uint32_t index)
{
    return &scenario->map.lanes[scenario->ego.route[index]];
}

static uint32_t geometry_tags(const struct scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->ego.route_count; i++) {
        if (fabs(lane_turn_rad(route_lane(scenario, i))) > CURVED_RAD) {
            return bit(1);
        }
    }
    return bit(0);
}

static uint32_t manoeuvre_tags(const struct scenario *scenario)
{
    uint32_t tags = 0;
    for (uint32_t i = 0; i < scenario->ego.route_count; i++) {
        const struct lane *lane = route_lane(scenario, i);
        double turn_rad = lane_turn_rad(lane);
        if (lane->intersection && fabs(turn_rad) > TURNED_RAD) {
            tags |= bit(turn_rad > 0.0 ? 2 : 3);
        }
        if (i > 0) {
            const struct lane *before = route_lane(scenario, i - 1);
            int32_t here = (int32_t)scenario->ego.route[i];
            tags |= before->left == here || before->right == here ? bit(1) : 0;
        }
    }
    return tags != 0 ? tags : bit(0);
}

static uint32_t junction_tags(const struct scenario *scenario)
{
    if (strcmp(scenario->slices.value[SLICE_ROAD], "roundabout") == 0) {
        return bit(2);
    }
    for (uint32_t i = 0; i < scenario->ego.route_count; i++) {
        if (route_lane(scenario, i)->intersection) {
            return bit(1);
        }
    }
    return bit(0);
}

/* ---- the lane that ego starts in ---- */

/* The neighbour of the same direction, or NULL. */
static const struct lane *neighbour(const struct scenario *scenario, const struct lane *lane,
                                    bool left)
{
    int32_t index = left ? lane->left : lane->right;
    bool opposite = left ? lane->left_opposite : lane->right_opposite;
    return index >= 0 && !opposite ? &scenario->map.lanes[index] : NULL;
}

static uint32_t lanes_tags(const struct scenario *scenario)
{
    const struct lane *first = route_lane(scenario, 0);
    uint32_t count = 1;
    for (int side = 0; side < 2; side++) {
        const struct lane *lane = neighbour(scenario, first, side == 0);
        for (uint32_t i = 0; lane != NULL && i < scenario->map.lane_count; i++) {
            count += lane->kind == LANE_DRIVING;
            lane = neighbour(scenario, lane, side == 0);
        }
    }
    return bit(count >= 3 ? 2 : count - 1);
}

static uint32_t side_tags(const struct scenario *scenario)
{
    bool right_hand = false;
    bool left_hand = false;
    for (uint32_t i = 0; i < scenario->map.lane_count; i++) {
        const struct lane *lane = &scenario->map.lanes[i];
        right_hand = right_hand || (lane->left >= 0 && lane->left_opposite);
        left_hand = left_hand || (lane->right >= 0 && lane->right_opposite);
    }
    return right_hand ? bit(0) : left_hand ? bit(1) : bit(2);
}

static uint32_t edge_tags(const struct scenario *scenario)
{
    uint32_t tags = 0;
    for (uint32_t i = 0; i < scenario->map.lane_count; i++) {
        tags |= scenario->map.lanes[i].kind == LANE_SHOULDER   ? bit(1)
                : scenario->map.lanes[i].kind == LANE_SIDEWALK ? bit(2)
                                                               : 0;
    }
    return tags != 0 ? tags : bit(0);
}

/* ---- surroundings ---- */

static uint32_t road_type_tags(const struct scenario *scenario)
{
    static const struct {
        const char *road;
        uint32_t value;
    } known[] = {{"motorway", 0}, {"tunnel", 0},     {"rural", 1},  {"urban", 2},
                 {"junction", 2}, {"roundabout", 2}, {"parking", 3}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (strcmp(scenario->slices.value[SLICE_ROAD], known[i].road) == 0) {
            return bit(known[i].value);
        }
    }
    return bit(4);
}

static uint32_t surface_tags(const struct scenario *scenario)
{
    static const char *const kinds[] = {"snow", "ice", "water", "oil", "gravel"};
    enum weather weather = scenario->conditions.weather;
    uint32_t tags = weather == WEATHER_RAIN || weather == WEATHER_HEAVY_RAIN ? bit(1)
                    : weather == WEATHER_SNOW                                ? bit(2)
                                                                             : bit(0);
    for (uint32_t i = 0; i < scenario->map.surface_count; i++) {
        for (uint32_t k = 0; k < COUNT_OF(kinds); k++) {
            tags |= strcmp(scenario->map.surfaces[i].kind, kinds[k]) == 0 ? bit(2 + k) : 0;
        }
    }
    return tags;
}

static uint32_t structure_tags(const struct scenario *scenario)
{
    const char *type = scenario->slices.value[SLICE_SCENARIO_TYPE];
    uint32_t tags = scenario->map.crosswalk_count > 0 ? bit(1) : 0;
    tags |= strcmp(scenario->slices.value[SLICE_ROAD], "tunnel") == 0 ? bit(2) : 0;
    tags |= strcmp(type, "lane_closure") == 0 ? bit(3) : 0;
    tags |= scenario->map.signal_count > 0 ? bit(4) : 0;
    return tags != 0 ? tags : bit(0);
}

static uint32_t precipitation_tags(const struct scenario *scenario)
{
    switch (scenario->conditions.weather) {
    case WEATHER_RAIN:
        return bit(1);
    case WEATHER_HEAVY_RAIN:
        return bit(2);
    case WEATHER_SNOW:
        return bit(3);
    default:
        return bit(0);
    }
}

static uint32_t agent_tags(const struct scenario *scenario)
{
    uint32_t tags = 0;
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        tags |= bit((uint32_t)scenario->agents[i].kind);
    }
    return tags;
}

static uint32_t ego_speed_tags(const struct scenario *scenario)
{
    static const double bounds_kph[] = {30, 60, 90, 130};
    double kph = 3.6 * scenario->ego.speed_mps;
    uint32_t band = 0;
    while (band < COUNT_OF(bounds_kph) && kph >= bounds_kph[band] - 0.05) {
        band++;
    }
    return bit(band);
}

uint32_t odd_tags(const struct scenario *scenario, enum odd_attribute attribute)
{
    uint32_t agents = scenario->agent_count;
    double width_m = route_lane(scenario, 0)->width_m[0];
    switch (attribute) {
    case ODD_ROAD_TYPE:
        return road_type_tags(scenario);
    case ODD_GEOMETRY:
        return geometry_tags(scenario);
    case ODD_LANES:
        return lanes_tags(scenario);
    case ODD_LANE_WIDTH:
        return bit(width_m < NARROW_M ? 0 : width_m > WIDE_M ? 2 : 1);
    case ODD_TRAFFIC_SIDE:
        return side_tags(scenario);
    case ODD_EDGE:
        return edge_tags(scenario);
    case ODD_SURFACE:
        return surface_tags(scenario);
    case ODD_JUNCTION:
        return junction_tags(scenario);
    case ODD_MANOEUVRE:
        return manoeuvre_tags(scenario);
    case ODD_STRUCTURE:
        return structure_tags(scenario);
    case ODD_PRECIPITATION:
        return precipitation_tags(scenario);
    case ODD_PARTICULATES:
        return bit(scenario->conditions.weather == WEATHER_FOG);
    case ODD_ILLUMINATION:
        return bit((uint32_t)scenario->conditions.light);
    case ODD_AGENT:
        return agent_tags(scenario);
    case ODD_DENSITY:
        return bit(agents == 0 ? 0 : agents <= 2 ? 1 : agents <= 5 ? 2 : 3);
    case ODD_EGO_SPEED:
        return ego_speed_tags(scenario);
    case ODD_ATTRIBUTE_COUNT:
        break;
    }
    return 0;
}

int odd_attribute_find(const char *name)
{
    for (int i = 0; i < ODD_ATTRIBUTE_COUNT; i++) {
        if (strcmp(odd_axes[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}
