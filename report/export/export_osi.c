/*
 * One drive as a trace of ASAM OSI 3.7 GroundTruth messages, one per tick, each with its length in
 * four bytes, little-endian, in front ("single channel binary trace file"). Every message is whole:
 * roads and boundaries, which do not change, are encoded once and written into each.
 *
 * Numbers of fields and enumerations are those of osi_*.proto of the standard. Positions are those
 * of boxes' centres, half their height above the ground, which is level at 0; time starts at 0.
 */
#include "report/draw/draw_scene.h"
#include "report/export/export.h"
#include "report/export/protobuf.h"
#include "report/report_drive.h"

#include "base/units.h"
#include "engine/traffic/roadmap.h"
#include "engine/traffic/signals.h"

#include <math.h>
#include <stdlib.h>

/* GroundTruth */
enum {
    TRUTH_VERSION = 1,
    TRUTH_TIMESTAMP = 2,
    TRUTH_HOST_VEHICLE_ID = 3,
    TRUTH_STATIONARY_OBJECT = 4,
    TRUTH_MOVING_OBJECT = 5,
    TRUTH_TRAFFIC_LIGHT = 7,
    TRUTH_LANE_BOUNDARY = 9,
    TRUTH_LANE = 10,
    TRUTH_ENVIRONMENT = 12,
    TRUTH_MAP_REFERENCE = 15,
};
/* BaseMoving; BaseStationary has the first three. */
enum {
    BASE_DIMENSION = 1,
    BASE_POSITION = 2,
    BASE_ORIENTATION = 3,
    BASE_VELOCITY = 4,
    BASE_ACCELERATION = 5,
    BASE_ORIENTATION_RATE = 6,
};
/* MovingObject, its attributes and classifications */
enum {
    OBJECT_ID = 1,
    OBJECT_BASE = 2,
    OBJECT_TYPE = 3,
    OBJECT_ATTRIBUTES = 5,
    OBJECT_VEHICLE = 6,
    OBJECT_CLASSIFICATION = 9,
    OBJECT_SOURCE = 10,
    ATTRIBUTES_TO_REAR = 4,
    ATTRIBUTES_TO_FRONT = 5,
    OBJECT_LANE = 1, /* in MovingObjectClassification */
    TYPE_OTHER = 1,
    TYPE_VEHICLE = 2,
    TYPE_PEDESTRIAN = 3,
    TYPE_ANIMAL = 4,
};
/* Lane, LaneBoundary, TrafficLight: id 1; EnvironmentalConditions */
enum {
    LANE_CLASSIFICATION = 2,
    LANE_SOURCE = 3,
    BOUNDARY_LINE = 2,
    BOUNDARY_CLASSIFICATION = 3,
    LIGHT_BASE = 2,
    LIGHT_CLASSIFICATION = 3,
    LIGHT_SOURCE = 5,
    ENVIRONMENT_ILLUMINATION = 1,
    ENVIRONMENT_PRECIPITATION = 6,
    ENVIRONMENT_FOG = 7,
};

/* Ids are unique over everything of a message. */
enum { ID_EGO = 1, ID_AGENT = 1000, ID_LIGHT = 100000, ID_LANE = 10000000, ID_BOUNDARY = 20000000 };
enum { BULBS = 3 };
_Static_assert(ID_AGENT + LIMIT_AGENTS < ID_LIGHT &&
                   ID_LIGHT + LIMIT_SIGNALS * LIMIT_LANES * BULBS < ID_LANE &&
                   ID_LANE + LIMIT_LANES < ID_BOUNDARY,
               "ids do not meet");

/* Nobody says where a signal hangs: above its stop line. */
static const double bulb_height_m = 5.0;
static const double bulb_m = 0.3;

struct osi {
    const struct export_request *request;
    struct report_drive from;
    int32_t rollout;
    const struct scenario *scenario;
    const struct branch *branch; /* NULL: the main line */
    struct roadmap *roadmap;
    struct protobuf road;    /* lanes and boundaries */
    size_t *host_at;         /* [lane_count], byte of `road` that is is_host_vehicle_lane */
    struct protobuf message; /* the rest of the tick's message */
    struct scene scene;
    struct agent_state before[LIMIT_AGENTS]; /* a tick ago */
};

static void put_id(struct protobuf *out, uint32_t field, uint64_t id)
{
    size_t at = protobuf_begin(out, field);
    protobuf_number(out, 1, id);
    protobuf_end(out, at);
}

/* Vector3d, Dimension3d (length, width, height) and Orientation3d (roll, pitch, yaw) alike. */
static void put_three(struct protobuf *out, uint32_t field, double a, double b, double c)
{
    size_t at = protobuf_begin(out, field);
    protobuf_double(out, 1, a);
    protobuf_double(out, 2, b);
    protobuf_double(out, 3, c);
    protobuf_end(out, at);
}

/* ExternalReference: our name of a thing. */
static void put_source(struct protobuf *out, uint32_t field, const char *id)
{
    size_t at = protobuf_begin(out, field);
    protobuf_text(out, 2, "swerve");
    protobuf_text(out, 3, id);
    protobuf_end(out, at);
}

static void put_box(struct protobuf *out, const double size_m[3], const struct pose *pose)
{
    put_three(out, BASE_DIMENSION, size_m[0], size_m[1], size_m[2]);
    put_three(out, BASE_POSITION, pose->x_m, pose->y_m, size_m[2] / 2);
    put_three(out, BASE_ORIENTATION, 0, 0, pose->heading_rad);
}

/* ---- roads ---- */

static void put_boundary(struct protobuf *out, uint64_t id, const struct lane *lane, double side)
{
    static const uint64_t types[MARKING_COUNT] = {
        [MARKING_NONE] = 2, [MARKING_DASHED] = 4, [MARKING_SOLID] = 3};
    enum { COLOR_NONE = 2, COLOR_WHITE = 3 };
    enum marking marking = side > 0 ? lane->left_marking : lane->right_marking;
    size_t at = protobuf_begin(out, TRUTH_LANE_BOUNDARY);
    put_id(out, 1, id);
    for (uint32_t i = 0; i < lane->point_count; i++) {
        struct vec2 point = draw_lane_border(lane, i, side);
        size_t line = protobuf_begin(out, BOUNDARY_LINE);
        put_three(out, 1, point.x_m, point.y_m, 0);
        protobuf_double(out, 2, marking == MARKING_NONE ? 0 : 0.12);
        protobuf_double(out, 3, 0);
        protobuf_end(out, line);
    }
    size_t classification = protobuf_begin(out, BOUNDARY_CLASSIFICATION);
    protobuf_number(out, 1, types[marking]);
    protobuf_number(out, 2, marking == MARKING_NONE ? COLOR_NONE : COLOR_WHITE);
    protobuf_end(out, classification);
    protobuf_end(out, at);
}

static void put_pairing(struct protobuf *out, int32_t before, int32_t after)
{
    size_t at = protobuf_begin(out, 7);
    if (before >= 0) {
        put_id(out, 1, ID_LANE + (uint64_t)before);
    }
    if (after >= 0) {
        put_id(out, 2, ID_LANE + (uint64_t)after);
    }
    protobuf_end(out, at);
}

static bool leads_to(const struct lane *lane, uint32_t to)
{
    bool leads = false;
    for (uint32_t i = 0; i < lane->successor_count; i++) {
        leads = leads || lane->successors[i] == to;
    }
    return leads;
}

/* Every lane that leads here with every one that this leads to; -1 where there is none. */
static void put_pairings(struct protobuf *out, const struct map *map, uint32_t index)
{
    const struct lane *lane = &map->lanes[index];
    bool any = false;
    for (uint32_t before = 0; before <= map->lane_count; before++) {
        bool none = before == map->lane_count;
        if (none ? any : !leads_to(&map->lanes[before], index)) {
            continue;
        }
        for (uint32_t i = 0; i < lane->successor_count; i++) {
            put_pairing(out, none ? -1 : (int32_t)before, (int32_t)lane->successors[i]);
        }
        if (lane->successor_count == 0 && !none) {
            put_pairing(out, (int32_t)before, -1);
        }
        any = true;
    }
}

/* Lanes within junctions are driving lanes too: the standard's intersections have no centre lines,
 * of which traffic needs one. */
static void put_lane(struct osi *osi, uint32_t index)
{
    static const struct {
        uint64_t type, subtype;
    } kinds[LANE_KIND_COUNT] = {
        [LANE_DRIVING] = {2, 2},
        [LANE_SHOULDER] = {3, 9},
        [LANE_CYCLE] = {3, 3},
        [LANE_SIDEWALK] = {3, 4},
    };
    const struct map *map = &osi->scenario->map;
    const struct lane *lane = &map->lanes[index];
    struct protobuf *out = &osi->road;
    size_t at = protobuf_begin(out, TRUTH_LANE);
    put_id(out, 1, ID_LANE + index);
    put_source(out, LANE_SOURCE, lane->id);
    size_t classification = protobuf_begin(out, LANE_CLASSIFICATION);
    protobuf_number(out, 1, kinds[lane->kind].type);
    protobuf_number(out, 12, kinds[lane->kind].subtype);
    for (uint32_t i = 0; lane->kind == LANE_DRIVING && i < lane->point_count; i++) {
        put_three(out, 3, lane->centre_line[i].x_m, lane->centre_line[i].y_m, 0);
    }
    protobuf_number(out, 4, 1);
    if (lane->left >= 0) {
        put_id(out, 5, ID_LANE + (uint64_t)lane->left);
    }
    if (lane->right >= 0) {
        put_id(out, 6, ID_LANE + (uint64_t)lane->right);
    }
    put_pairings(out, map, index);
    put_id(out, 8, ID_BOUNDARY + 2 * (uint64_t)index + 1);
    put_id(out, 9, ID_BOUNDARY + 2 * (uint64_t)index);
    protobuf_number(out, 2, 0); /* the message's last byte, set by mark_host_lane() */
    protobuf_end(out, classification);
    protobuf_end(out, at);
    osi->host_at[index] = out->bytes - 1;
}

static void put_road(struct osi *osi)
{
    const struct map *map = &osi->scenario->map;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        put_lane(osi, i);
        put_boundary(&osi->road, ID_BOUNDARY + 2 * (uint64_t)i, &map->lanes[i], 1);
        put_boundary(&osi->road, ID_BOUNDARY + 2 * (uint64_t)i + 1, &map->lanes[i], -1);
    }
}

static void mark_host_lane(struct osi *osi, int32_t host)
{
    for (uint32_t i = 0; !osi->road.failed && i < osi->scenario->map.lane_count; i++) {
        osi->road.data[osi->host_at[i]] = (int32_t)i == host;
    }
}

/* ---- objects ---- */

/* Motion of a box: forwards and to its left. */
struct motion {
    double speed_mps;
    double accel_mps2;
    double lat_accel_mps2;
    double yaw_rate_rps;
};

static void put_moving_base(struct protobuf *out, const double size_m[3], const struct pose *pose,
                            const struct motion *motion)
{
    double ahead_x = cos(pose->heading_rad);
    double ahead_y = sin(pose->heading_rad);
    size_t at = protobuf_begin(out, OBJECT_BASE);
    put_box(out, size_m, pose);
    put_three(out, BASE_VELOCITY, motion->speed_mps * ahead_x, motion->speed_mps * ahead_y, 0);
    put_three(out, BASE_ACCELERATION,
              motion->accel_mps2 * ahead_x - motion->lat_accel_mps2 * ahead_y,
              motion->accel_mps2 * ahead_y + motion->lat_accel_mps2 * ahead_x, 0);
    put_three(out, BASE_ORIENTATION_RATE, 0, 0, motion->yaw_rate_rps);
    protobuf_end(out, at);
}

/* Kind of the thing, and its lane. */
static void put_kind(struct osi *osi, enum agent_kind kind, const struct pose *pose)
{
    static const struct {
        uint64_t type, vehicle;
    } kinds[AGENT_KIND_COUNT] = {
        [AGENT_CAR] = {TYPE_VEHICLE, 4},           [AGENT_VAN] = {TYPE_VEHICLE, 6},
        [AGENT_TRUCK] = {TYPE_VEHICLE, 7},         [AGENT_BUS] = {TYPE_VEHICLE, 12},
        [AGENT_MOTORCYCLE] = {TYPE_VEHICLE, 10},   [AGENT_CYCLIST] = {TYPE_VEHICLE, 11},
        [AGENT_PEDESTRIAN] = {TYPE_PEDESTRIAN, 0}, [AGENT_ANIMAL] = {TYPE_ANIMAL, 0},
        [AGENT_OBJECT] = {TYPE_OTHER, 0},
    };
    struct protobuf *out = &osi->message;
    struct lane_position lane;
    protobuf_number(out, OBJECT_TYPE, kinds[kind].type);
    if (kinds[kind].vehicle != 0) {
        size_t at = protobuf_begin(out, OBJECT_VEHICLE);
        protobuf_number(out, 1, kinds[kind].vehicle);
        protobuf_end(out, at);
    }
    if (roadmap_locate(osi->roadmap, *pose, &lane)) {
        size_t at = protobuf_begin(out, OBJECT_CLASSIFICATION);
        put_id(out, OBJECT_LANE, ID_LANE + (uint64_t)lane.lane);
        protobuf_end(out, at);
    }
}

static void put_ego(struct osi *osi)
{
    const struct ego *ego = &osi->scenario->ego;
    const struct ego_state *state = &osi->scene.ego;
    const double size_m[3] = {ego->length_m, ego->width_m, ego->height_m};
    const struct motion motion = {state->speed_mps, state->accel_mps2, state->lat_accel_mps2,
                                  state->yaw_rate_rps};
    struct protobuf *out = &osi->message;
    size_t at = protobuf_begin(out, TRUTH_MOVING_OBJECT);
    put_id(out, OBJECT_ID, ID_EGO);
    put_moving_base(out, size_m, &state->pose, &motion);
    put_kind(osi, AGENT_CAR, &state->pose);
    size_t attributes = protobuf_begin(out, OBJECT_ATTRIBUTES);
    put_three(out, ATTRIBUTES_TO_REAR, -ego->wheelbase_m / 2, 0, -ego->height_m / 2);
    put_three(out, ATTRIBUTES_TO_FRONT, ego->wheelbase_m / 2, 0, -ego->height_m / 2);
    protobuf_end(out, attributes);
    put_source(out, OBJECT_SOURCE, "ego");
    protobuf_end(out, at);
}

/* Things that never move; a parked car is a vehicle that stands. */
static bool stationary(const struct agent *agent)
{
    return agent->kind == AGENT_OBJECT && agent->behaviour == BEHAVIOUR_STATIC;
}

static void put_stationary(struct protobuf *out, uint64_t id, const struct agent *agent,
                           const struct pose *pose)
{
    const double size_m[3] = {agent->length_m, agent->width_m, agent->height_m};
    enum { OBJECT_STATIONARY_OTHER = 1, STATIONARY_CLASSIFICATION = 3, STATIONARY_SOURCE = 5 };
    size_t at = protobuf_begin(out, TRUTH_STATIONARY_OBJECT);
    put_id(out, OBJECT_ID, id);
    size_t base = protobuf_begin(out, OBJECT_BASE);
    put_box(out, size_m, pose);
    protobuf_end(out, base);
    size_t classification = protobuf_begin(out, STATIONARY_CLASSIFICATION);
    protobuf_number(out, 1, OBJECT_STATIONARY_OTHER);
    protobuf_end(out, classification);
    put_source(out, STATIONARY_SOURCE, agent->id);
    protobuf_end(out, at);
}

/* Recordings hold poses and speeds of agents: their rates are those of the last tick, 0 where there
 * is none. */
static struct motion agent_motion(const struct agent_state *before, const struct agent_state *now)
{
    struct motion motion = {.speed_mps = now->speed_mps};
    if (before->present) {
        motion.accel_mps2 = (now->speed_mps - before->speed_mps) / TICK_S;
        motion.yaw_rate_rps =
            remainder(now->pose.heading_rad - before->pose.heading_rad, 2 * PI_RAD) / TICK_S;
        motion.lat_accel_mps2 = now->speed_mps * motion.yaw_rate_rps;
    }
    return motion;
}

static void put_agent(struct osi *osi, uint32_t index)
{
    const struct agent *agent = &osi->scenario->agents[index];
    const struct agent_state *state = &osi->scene.agents[index];
    const double size_m[3] = {agent->length_m, agent->width_m, agent->height_m};
    const struct motion motion = agent_motion(&osi->before[index], state);
    struct protobuf *out = &osi->message;
    size_t at = protobuf_begin(out, TRUTH_MOVING_OBJECT);
    put_id(out, OBJECT_ID, ID_AGENT + index);
    put_moving_base(out, size_m, &state->pose, &motion);
    put_kind(osi, agent->kind, &state->pose);
    put_source(out, OBJECT_SOURCE, agent->id);
    protobuf_end(out, at);
}

static void put_agents(struct osi *osi)
{
    for (uint32_t i = 0; i < osi->scene.agent_count; i++) {
        const struct agent *agent = &osi->scenario->agents[i];
        const struct agent_state *state = &osi->scene.agents[i];
        if (state->present && stationary(agent)) {
            put_stationary(&osi->message, ID_AGENT + i, agent, &state->pose);
        } else if (state->present) {
            put_agent(osi, i);
        }
        osi->before[i] = *state;
    }
}

/* ---- signals, surroundings ---- */

/* A traffic light of the standard is one bulb. */
static void put_bulb(struct osi *osi, uint32_t signal, uint32_t lane, uint32_t bulb,
                     enum traffic_light light)
{
    enum { MODE_OFF = 2, MODE_CONSTANT = 3, ICON_NONE = 2 };
    static const uint64_t colours[BULBS] = {2, 3, 4}; /* red, yellow, green */
    static const bool lit[TRAFFIC_LIGHT_COUNT][BULBS] = {
        [TRAFFIC_LIGHT_RED] = {true, false, false},
        [TRAFFIC_LIGHT_RED_YELLOW] = {true, true, false},
        [TRAFFIC_LIGHT_YELLOW] = {false, true, false},
        [TRAFFIC_LIGHT_GREEN] = {false, false, true},
    };
    const struct traffic_signal *record = &osi->scenario->map.signals[signal];
    struct pose pose = signal_stop_line(osi->roadmap, record, lane).pose;
    struct protobuf *out = &osi->message;
    size_t at = protobuf_begin(out, TRUTH_TRAFFIC_LIGHT);
    put_id(out, 1, ID_LIGHT + ((uint64_t)signal * LIMIT_LANES + lane) * BULBS + bulb);
    size_t base = protobuf_begin(out, LIGHT_BASE);
    put_three(out, BASE_DIMENSION, bulb_m, bulb_m, bulb_m);
    put_three(out, BASE_POSITION, pose.x_m, pose.y_m,
              bulb_height_m + bulb_m * (double)(BULBS - 1 - bulb));
    put_three(out, BASE_ORIENTATION, 0, 0, remainder(pose.heading_rad + PI_RAD, 2 * PI_RAD));
    protobuf_end(out, base);
    size_t classification = protobuf_begin(out, LIGHT_CLASSIFICATION);
    protobuf_number(out, 1, colours[bulb]);
    protobuf_number(out, 2, ICON_NONE);
    protobuf_number(out, 3, lit[light][bulb] ? MODE_CONSTANT : MODE_OFF);
    put_id(out, 5, ID_LANE + (uint64_t)record->lanes[lane]);
    protobuf_number(out, 6, light == TRAFFIC_LIGHT_OFF);
    protobuf_end(out, classification);
    put_source(out, LIGHT_SOURCE, record->id);
    protobuf_end(out, at);
}

/* Recordings hold no lights: they are functions of time, and of what the branch intervened. */
static void set_lights(struct osi *osi)
{
    const struct branch *branch = osi->branch;
    for (uint32_t i = 0; branch != NULL && i < branch->intervention_count; i++) {
        const struct intervention *change = &branch->interventions[i];
        if (change->kind == INTERVENE_SIGNAL && change->tick <= osi->scene.tick) {
            signals_hold(&osi->scenario->map, change->signal, change->light, &osi->scene);
        }
    }
    signals_update(&osi->scenario->map, &osi->scene);
}

static void put_lights(struct osi *osi)
{
    const struct map *map = &osi->scenario->map;
    for (uint32_t i = 0; i < map->signal_count; i++) {
        bool light = map->signals[i].sign == TRAFFIC_SIGN_NONE;
        for (uint32_t k = 0; light && k < map->signals[i].lane_count; k++) {
            for (uint32_t bulb = 0; bulb < BULBS; bulb++) {
                put_bulb(osi, i, k, bulb, (enum traffic_light)osi->scene.signal_light[i]);
            }
        }
    }
}

/* Amounts that no scenario states are OTHER, "unspecified but known". */
static void put_environment(struct protobuf *out, const struct conditions *conditions)
{
    enum { OTHER = 1, NONE = 2, MODERATE = 5, HEAVY = 6 };
    enum { FOG_LIGHT = 7, FOG_THICK = 8, FOG_DENSE = 9 };
    enum { LUX_0_01 = 3, LUX_3 = 5, LUX_1000 = 9 }; /* least illumination of the level */
    static const uint64_t precipitation[WEATHER_COUNT] = {
        [WEATHER_CLEAR] = NONE, [WEATHER_RAIN] = MODERATE, [WEATHER_HEAVY_RAIN] = HEAVY,
        [WEATHER_FOG] = NONE,   [WEATHER_SNOW] = OTHER,
    };
    static const uint64_t illumination[LIGHT_COUNT] = {
        [LIGHT_DAY] = LUX_1000, [LIGHT_DUSK] = LUX_3, [LIGHT_NIGHT] = LUX_0_01};
    uint64_t fog = OTHER;
    if (conditions->weather == WEATHER_FOG) {
        fog = conditions->visibility_m < 50    ? FOG_DENSE
              : conditions->visibility_m < 200 ? FOG_THICK
                                               : FOG_LIGHT;
    }
    size_t at = protobuf_begin(out, TRUTH_ENVIRONMENT);
    protobuf_number(out, ENVIRONMENT_ILLUMINATION, illumination[conditions->light]);
    protobuf_number(out, ENVIRONMENT_PRECIPITATION, precipitation[conditions->weather]);
    protobuf_number(out, ENVIRONMENT_FOG, fog);
    protobuf_end(out, at);
}

/* ---- messages ---- */

static void put_head(struct osi *osi, uint32_t tick)
{
    struct protobuf *out = &osi->message;
    uint64_t time_ns = (uint64_t)tick * (uint64_t)llround(TICK_S * 1e9);
    size_t at = protobuf_begin(out, TRUTH_VERSION);
    protobuf_number(out, 1, 3);
    protobuf_number(out, 2, 7);
    protobuf_number(out, 3, 0);
    protobuf_end(out, at);
    at = protobuf_begin(out, TRUTH_TIMESTAMP);
    protobuf_number(out, 1, time_ns / 1000000000);
    protobuf_number(out, 2, time_ns % 1000000000);
    protobuf_end(out, at);
    put_id(out, TRUTH_HOST_VEHICLE_ID, ID_EGO);
    if (osi->scenario->map.id[0] != '\0') {
        protobuf_text(out, TRUTH_MAP_REFERENCE, osi->scenario->map.id);
    }
}

static enum status write_message(const struct osi *osi, struct error *error)
{
    FILE *out = osi->request->out;
    uint64_t bytes = (uint64_t)osi->message.bytes + osi->road.bytes;
    if (osi->message.failed || osi->road.failed) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", osi->request->place);
    }
    if (bytes > INT32_MAX) {
        return error_set(error, STATUS_LIMIT, "%s: a message of %llu bytes; readers take 2 GiB",
                         osi->request->place, (unsigned long long)bytes);
    }
    for (uint32_t i = 0; i < 4; i++) {
        putc((int)(bytes >> (8 * i) & 0xff), out);
    }
    fwrite(osi->message.data, 1, osi->message.bytes, out);
    fwrite(osi->road.data, 1, osi->road.bytes, out);
    return export_stream_check(osi->request, error);
}

static enum status write_ticks(struct osi *osi, struct error *error)
{
    uint32_t last = trace_reader_last_tick(&osi->from.reader, osi->rollout);
    const struct scene *scene = &osi->scene;
    struct lane_position host;
    put_road(osi);
    for (uint32_t t = 0; t <= last; t++) {
        if (!trace_reader_scene(&osi->from.reader, osi->rollout, t, &osi->scene, NULL)) {
            continue;
        }
        protobuf_clear(&osi->message);
        put_head(osi, t);
        put_ego(osi);
        put_agents(osi);
        set_lights(osi);
        put_lights(osi);
        put_environment(&osi->message, &scene->conditions);
        mark_host_lane(osi, roadmap_locate(osi->roadmap, scene->ego.pose, &host) ? host.lane : -1);
        TRY(write_message(osi, error));
    }
    return STATUS_OK;
}

enum status export_osi(const struct export_request *request, const struct outcome *outcome,
                       struct error *error)
{
    struct osi *osi = calloc(1, sizeof *osi);
    TRY(memory_check(osi, error, "export: out of memory"));
    osi->request = request;
    enum status status =
        export_drive_open(&osi->from, request->store, outcome, &osi->rollout, error);
    if (status == STATUS_OK) {
        osi->scenario = &osi->from.document->scenario;
        osi->branch = report_branch(osi->scenario, outcome->branch_id);
        osi->host_at = calloc(osi->scenario->map.lane_count, sizeof *osi->host_at);
        status = memory_check(osi->host_at, error, "export: out of memory");
    }
    THEN(status, roadmap_create(&osi->scenario->map, &osi->roadmap, error));
    THEN(status, write_ticks(osi, error));
    roadmap_destroy(osi->roadmap);
    protobuf_finish(&osi->road);
    protobuf_finish(&osi->message);
    free(osi->host_at);
    report_drive_close(&osi->from);
    free(osi);
    return status;
}
