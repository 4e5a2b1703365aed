/*
 * Lists of objects. See given.h.
 */
#include "worker/given/given.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "engine/sensors/visible.h"
#include "engine/traffic/signals.h"
#include "schemas/observation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(SWERVE_OBJECT_CAR == (int)AGENT_CAR && SWERVE_OBJECT_VAN == (int)AGENT_VAN &&
                   SWERVE_OBJECT_TRUCK == (int)AGENT_TRUCK && SWERVE_OBJECT_BUS == (int)AGENT_BUS &&
                   SWERVE_OBJECT_MOTORCYCLE == (int)AGENT_MOTORCYCLE &&
                   SWERVE_OBJECT_CYCLIST == (int)AGENT_CYCLIST &&
                   SWERVE_OBJECT_PEDESTRIAN == (int)AGENT_PEDESTRIAN &&
                   SWERVE_OBJECT_ANIMAL == (int)AGENT_ANIMAL &&
                   SWERVE_OBJECT_OTHER == (int)AGENT_OBJECT &&
                   SWERVE_OBJECT_KIND_COUNT == (int)AGENT_KIND_COUNT,
               "kinds of agents are those of objects");

enum swerve_objects_source given_of_world(enum tier tier, enum conditioning conditioning)
{
    if (tier < TIER_STUDENT) {
        return SWERVE_OBJECTS_TRUE;
    }
    return conditioning == CONDITIONING_AGENTS ? SWERVE_OBJECTS_NONE : SWERVE_OBJECTS_GENERATED;
}

enum swerve_objects_source given_source(uint32_t wants, enum swerve_objects_source of_world)
{
    if ((wants & SWERVE_WANTS_OBJECTS) == 0) {
        return SWERVE_OBJECTS_NONE;
    }
    bool seen = (wants & SWERVE_WANTS_SEEN) != 0;
    return of_world == SWERVE_OBJECTS_TRUE && seen ? SWERVE_OBJECTS_SEEN : of_world;
}

void given_text(uint32_t wants, enum swerve_objects_source source, char out[LIMIT_ID_BYTES])
{
    static const char *const sources[] = {
        [SWERVE_OBJECTS_NONE] = "objects:none",
        [SWERVE_OBJECTS_TRUE] = "objects:true",
        [SWERVE_OBJECTS_SEEN] = "objects:seen",
        [SWERVE_OBJECTS_GENERATED] = "objects:generated",
    };
    const struct {
        uint32_t bit;
        const char *name;
    } parts[] = {
        {SWERVE_WANTS_BEV, "bev"},
        {SWERVE_WANTS_CAMERAS, "cameras"},
        {GIVEN_LIDARS, "lidars"},
        {SWERVE_WANTS_OBJECTS, sources[source]},
        {SWERVE_WANTS_MAP, "map"},
        {SWERVE_WANTS_SIGNALS, "signals"},
        {SWERVE_WANTS_CONTROLS, "controls"},
    };
    size_t used = 0;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if ((wants & parts[i].bit) != 0) {
            used += (size_t)snprintf(out + used, LIMIT_ID_BYTES - used, "%s%s", used > 0 ? "," : "",
                                     parts[i].name);
            CHECK(used < LIMIT_ID_BYTES);
        }
    }
    if (used == 0) {
        snprintf(out, LIMIT_ID_BYTES, "route");
    }
}

void given_chunks(const struct foreign *world, char out[GIVEN_CHUNKS_BYTES])
{
    out[0] = '\0';
    if (world != NULL && world->declared.form == SWERVE_WORLD_FORM_RIG) {
        snprintf(out, GIVEN_CHUNKS_BYTES, ",chunks:%u+%u@%u", world->declared.first_frames,
                 world->declared.chunk_frames, world->declared.rate_hz);
    }
}

void given_init(struct given_objects *given)
{
    memset(given, 0, sizeof *given);
    given->time_ns = -1;
}

/* ---- sensors ---- */

static bool in_view(const struct ego_state *ego, const struct pose *pose, uint32_t dark)
{
    double dx_m = pose->x_m - ego->pose.x_m;
    double dy_m = pose->y_m - ego->pose.y_m;
    double sine;
    double cosine;
    dmath_sincos(ego->pose.heading_rad, &sine, &cosine);
    double ahead_m = cosine * dx_m + sine * dy_m;
    double left_m = cosine * dy_m - sine * dx_m;
    for (int i = 0; i < CAMERA_COUNT; i++) {
        const struct camera_calibration *camera = &camera_calibrations[i];
        double bearing_rad = dmath_atan2(left_m - camera->y_m, ahead_m - camera->x_m);
        double off_rad = dmath_wrap_angle(bearing_rad - camera->yaw_rad);
        if (!(dark & (uint32_t)SENSOR_CAMERA_LEFT << i) && fabs(off_rad) <= camera->hfov_rad / 2) {
            return true;
        }
    }
    return false;
}

static bool is_seen(const struct scenario *scenario, const struct scene *scene, uint32_t agent,
                    uint32_t dark)
{
    bool in_reach =
        !(dark & SENSOR_LIDAR) || in_view(&scene->ego, &scene->agents[agent].pose, dark);
    return in_reach && visible_agent(scenario, scene, agent);
}

/* ---- lists ---- */

static uint32_t light_shown(const struct scenario *scenario, const struct scene *scene,
                            uint32_t signal)
{
    static const uint32_t signs[TRAFFIC_SIGN_COUNT] = {
        [TRAFFIC_SIGN_STOP] = SWERVE_SIGNAL_STOP_SIGN,
        [TRAFFIC_SIGN_YIELD] = SWERVE_SIGNAL_YIELD_SIGN,
        [TRAFFIC_SIGN_PRIORITY] = SWERVE_SIGNAL_PRIORITY_SIGN,
        [TRAFFIC_SIGN_GIVE_WAY] = SWERVE_SIGNAL_GIVE_WAY,
        [TRAFFIC_SIGN_GIVE_WAY_RIGHT] = SWERVE_SIGNAL_GIVE_WAY_RIGHT,
        [TRAFFIC_SIGN_GIVE_WAY_ONCOMING] = SWERVE_SIGNAL_GIVE_WAY_ONCOMING,
    };
    static const uint32_t lights[] = {
        [TRAFFIC_LIGHT_OFF] = SWERVE_SIGNAL_OFF,
        [TRAFFIC_LIGHT_RED] = SWERVE_SIGNAL_RED,
        [TRAFFIC_LIGHT_RED_YELLOW] = SWERVE_SIGNAL_RED_YELLOW,
        [TRAFFIC_LIGHT_GREEN] = SWERVE_SIGNAL_GREEN,
        [TRAFFIC_LIGHT_YELLOW] = SWERVE_SIGNAL_YELLOW,
    };
    enum traffic_sign sign = scenario->map.signals[signal].sign;
    return sign != TRAFFIC_SIGN_NONE ? signs[sign] : lights[scene->signal_light[signal]];
}

static struct swerve_object describe(const struct given_objects *given, const struct agent *agent,
                                     const struct scene *scene, uint32_t index)
{
    const struct agent_state *state = &scene->agents[index];
    double sine;
    double cosine;
    dmath_sincos(state->pose.heading_rad, &sine, &cosine);
    bool follows = given->known[index] && given->tick + 1 == scene->tick;
    double yaw_rate_rps =
        follows ? dmath_wrap_angle(state->pose.heading_rad - given->heading_rad[index]) / TICK_S
                : 0.0;
    double across_mps2 = state->speed_mps * yaw_rate_rps;
    return (struct swerve_object){
        .id = index,
        .kind = (uint32_t)agent->kind,
        .length_m = agent->length_m,
        .width_m = agent->width_m,
        .height_m = agent->height_m,
        .x_m = state->pose.x_m,
        .y_m = state->pose.y_m,
        .heading_rad = state->pose.heading_rad,
        .vx_mps = state->speed_mps * cosine,
        .vy_mps = state->speed_mps * sine,
        .ax_mps2 = state->accel_mps2 * cosine - across_mps2 * sine,
        .ay_mps2 = state->accel_mps2 * sine + across_mps2 * cosine,
        .yaw_rate_rps = yaw_rate_rps,
    };
}

static void list(struct given_objects *given, enum swerve_objects_source source,
                 const struct scenario *scenario, const struct scene *scene, uint32_t dark)
{
    given->count = 0;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        if (scene->agents[i].present &&
            (source != SWERVE_OBJECTS_SEEN || is_seen(scenario, scene, i, dark))) {
            given->objects[given->count++] = describe(given, &scenario->agents[i], scene, i);
        }
    }
    given->time_ns = (int64_t)scene->tick * TICK_NS;
}

void given_look(struct given_objects *given, uint32_t wants, enum swerve_objects_source source,
                const struct scenario *scenario, const struct scene *scene, uint32_t dark,
                struct swerve_surroundings *out)
{
    bool sensed = source == SWERVE_OBJECTS_SEEN || source == SWERVE_OBJECTS_GENERATED;
    if (source != SWERVE_OBJECTS_NONE && !(sensed && (dark & SENSOR_ALL) == SENSOR_ALL)) {
        list(given, source, scenario, scene, dark);
    }
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        given->known[i] = scene->agents[i].present;
        given->heading_rad[i] = scene->agents[i].pose.heading_rad;
    }
    given->tick = scene->tick;
    uint32_t signals = (wants & SWERVE_WANTS_SIGNALS) != 0 ? scenario->map.signal_count : 0;
    for (uint32_t i = 0; i < signals; i++) {
        given->signals[i] = (struct swerve_signal_state){i, light_shown(scenario, scene, i), -1.0};
    }
    *out = (struct swerve_surroundings){
        .objects_source = source,
        .object_count = given->count,
        .objects = given->objects,
        .objects_time_ns = given->time_ns,
        .signal_count = signals,
        .signals = given->signals,
    };
}

void given_stops(struct given_objects *given, const struct prepared *prepared, double front_s_m)
{
    uint32_t count;
    const struct track_stop *stops = prepared_route_stops(prepared, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct swerve_signal_state *signal = &given->signals[stops[i].signal];
        double ahead_m = stops[i].s_m - front_s_m;
        if (ahead_m >= 0.0 && (signal->stop_ahead_m < 0.0 || ahead_m < signal->stop_ahead_m)) {
            signal->stop_ahead_m = ahead_m;
        }
    }
}
