/*
 * Scan: the beams of an azimuth lie in a plane, so their directions are sums of two axes. Boxes are
 * taken in their own frame and only at the azimuths that their corners span; there the beams are
 * tested against three slabs (Kay and Kajiya 1986), all elevations at once
 * (kernels/picture_scan.c).
 */
#include "engine/rigs/scan.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"
#include "engine/sensors/raster_camera.h"
#include "engine/sensors/raster_view.h"

#include <math.h>
#include <stdlib.h>

enum { SCAN_GROUND = -1, SCAN_NOTHING = -2, NOISE_AZIMUTH = 1 << 20 };

struct scan {
    struct rig_lidar lidar;
    uint32_t stream;
    struct vec3 ahead, left, up;           /* the lidar's axes in ego's frame */
    float *cosine, *sine;                  /* [elevations], of the elevation */
    double *azimuth_cosine, *azimuth_sine; /* [azimuths] */
};

/* An agent that beams may meet. */
struct target {
    struct vec3 at;               /* the lidar in the box's axes, from its middle */
    double half[3];               /* of length, width and height */
    double cosine, sine;          /* of its heading in ego's frame */
    double middle_rad, reach_rad; /* azimuths that it spans */
    float returns;                /* share of the light */
};

enum status scan_create(const struct rig_lidar *lidar, uint32_t stream, struct scan **out,
                        struct error *error)
{
    struct scan *scan = calloc(1, sizeof *scan);
    *out = NULL;
    TRY(memory_check(scan, error, "no memory for lidar %s", lidar->id));
    scan->lidar = *lidar;
    scan->stream = stream;
    rays_axes(&lidar->pose, &scan->ahead, &scan->left, &scan->up);
    scan->cosine = calloc(lidar->elevation_count, sizeof *scan->cosine);
    scan->sine = calloc(lidar->elevation_count, sizeof *scan->sine);
    scan->azimuth_cosine = calloc((size_t)lidar->azimuths, sizeof *scan->azimuth_cosine);
    scan->azimuth_sine = calloc((size_t)lidar->azimuths, sizeof *scan->azimuth_sine);
    if (scan->cosine == NULL || scan->sine == NULL || scan->azimuth_cosine == NULL ||
        scan->azimuth_sine == NULL) {
        scan_destroy(scan);
        return error_set(error, STATUS_NO_MEMORY, "no memory for lidar %s", lidar->id);
    }
    for (uint32_t i = 0; i < lidar->elevation_count; i++) {
        double sine;
        double cosine;
        dmath_sincos(lidar->elevations_rad[i], &sine, &cosine);
        scan->sine[i] = (float)sine;
        scan->cosine[i] = (float)cosine;
    }
    for (int32_t i = 0; i < lidar->azimuths; i++) {
        dmath_sincos(2.0 * PI_RAD * i / lidar->azimuths, &scan->azimuth_sine[i],
                     &scan->azimuth_cosine[i]);
    }
    *out = scan;
    return STATUS_OK;
}

void scan_destroy(struct scan *scan)
{
    if (scan != NULL) {
        free(scan->cosine);
        free(scan->sine);
        free(scan->azimuth_cosine);
        free(scan->azimuth_sine);
        free(scan);
    }
}

uint32_t scan_points_max(const struct scan *scan)
{
    return (uint32_t)scan->lidar.azimuths * scan->lidar.elevation_count;
}

struct vec3 scan_place(const struct scan *scan, const struct scan_point *point)
{
    const struct rig_pose *pose = &scan->lidar.pose;
    const double x = (double)point->x_m;
    const double y = (double)point->y_m;
    const double z = (double)point->z_m;
    return (struct vec3){
        pose->x_m + x * scan->ahead.x + y * scan->left.x + z * scan->up.x,
        pose->y_m + x * scan->ahead.y + y * scan->left.y + z * scan->up.y,
        pose->z_m + x * scan->ahead.z + y * scan->left.z + z * scan->up.z,
    };
}

/* ---- agents ---- */

static float returns_of(enum agent_kind kind)
{
    switch (kind) {
    case AGENT_PEDESTRIAN:
    case AGENT_ANIMAL:
        return 0.3f;
    case AGENT_CYCLIST:
    case AGENT_MOTORCYCLE:
        return 0.4f;
    case AGENT_OBJECT: /* cones and barriers are made to shine */
        return 0.8f;
    default:
        return 0.55f;
    }
}

/* Azimuths that are looked at. */
struct sector {
    double middle_rad, reach_rad;
};

/* Azimuths that a box spans; all of them where the lidar's axis may pass through it. False where it
 * is beside the sector. */
static bool find_reach(const struct scan *scan, struct vec3 middle, const struct sector *sector,
                       struct target *target)
{
    const double *h = target->half;
    double radius = sqrt(h[0] * h[0] + h[1] * h[1] + h[2] * h[2]);
    double x = vec3_dot(middle, scan->ahead);
    double y = vec3_dot(middle, scan->left);
    target->middle_rad = dmath_atan2(y, x);
    target->reach_rad = PI_RAD;
    if (x * x + y * y <= radius * radius * 1.01) {
        return true;
    }
    /* A ball spans asin(radius / distance), which is below pi / 2 of that. */
    double most_rad = radius / sqrt(x * x + y * y) * (PI_RAD / 2.0) + sector->reach_rad + 1e-3;
    if (fabs(dmath_wrap_angle(target->middle_rad - sector->middle_rad)) > most_rad) {
        return false;
    }
    target->reach_rad = 0.0;
    for (int i = 0; i < 8; i++) {
        double a = i & 1 ? h[0] : -h[0];
        double b = i & 2 ? h[1] : -h[1];
        const struct vec3 corner = {middle.x + a * target->cosine - b * target->sine,
                                    middle.y + a * target->sine + b * target->cosine,
                                    middle.z + (i & 4 ? h[2] : -h[2])};
        double azimuth_rad =
            dmath_atan2(vec3_dot(corner, scan->left), vec3_dot(corner, scan->ahead));
        double off = fabs(dmath_wrap_angle(azimuth_rad - target->middle_rad));
        target->reach_rad = dmath_max(target->reach_rad, off);
    }
    target->reach_rad += 1e-6;
    return true;
}

/* False where no beam of the sector can meet the agent. */
static bool find_target(const struct scan *scan, const struct scenario *scenario,
                        const struct scene *scene, uint32_t index, double range_m,
                        const struct sector *sector, struct target *out)
{
    const struct agent *agent = &scenario->agents[index];
    const struct agent_state *state = &scene->agents[index];
    const struct pose *ego = &scene->ego.pose;
    const struct rig_pose *lidar = &scan->lidar.pose;
    double ego_sine;
    double ego_cosine;
    if (!state->present) {
        return false;
    }
    dmath_sincos(ego->heading_rad, &ego_sine, &ego_cosine);
    dmath_sincos(state->pose.heading_rad - ego->heading_rad, &out->sine, &out->cosine);
    double dx = state->pose.x_m - ego->x_m;
    double dy = state->pose.y_m - ego->y_m;
    out->half[0] = agent->length_m / 2;
    out->half[1] = agent->width_m / 2;
    out->half[2] = agent->height_m / 2;
    out->returns = returns_of(agent->kind);
    const struct vec3 middle = {dx * ego_cosine + dy * ego_sine - lidar->x_m,
                                dy * ego_cosine - dx * ego_sine - lidar->y_m,
                                out->half[2] - lidar->z_m};
    double far = range_m + out->half[0] + out->half[1] + out->half[2];
    if (vec3_dot(middle, middle) > far * far) {
        return false;
    }
    out->at = (struct vec3){-middle.x * out->cosine - middle.y * out->sine,
                            middle.x * out->sine - middle.y * out->cosine, -middle.z};
    return find_reach(scan, middle, sector, out);
}

static struct vec3 in_box(const struct target *target, struct vec3 v)
{
    return (struct vec3){v.x * target->cosine + v.y * target->sine,
                         v.y * target->cosine - v.x * target->sine, v.z};
}

/* ---- an azimuth ---- */

/* Beams of an azimuth: directions are cosine * level + sine * up, by elevation. */
struct beams {
    struct vec3 level; /* ego's frame */
    float range_m[RIG_ELEVATIONS_MAX];
    int32_t hit[RIG_ELEVATIONS_MAX]; /* which target, or ground, or nothing */
};

static void meet_ground(const struct scan *scan, struct beams *beams, double range_m)
{
    const float level = (float)beams->level.z;
    const float up = (float)scan->up.z;
    const float z = (float)scan->lidar.pose.z_m;
    for (uint32_t i = 0; i < scan->lidar.elevation_count; i++) {
        float down = -(scan->cosine[i] * level + scan->sine[i] * up);
        float range = down > 1e-6f ? z / down : INFINITY;
        bool hits = range <= (float)range_m;
        beams->range_m[i] = hits ? range : (float)range_m;
        beams->hit[i] = hits ? SCAN_GROUND : SCAN_NOTHING;
    }
}

static void meet_target(const struct scan *scan, const struct raster_layers *layers,
                        const struct target *target, int32_t id, struct beams *beams)
{
    const struct vec3 level = in_box(target, beams->level);
    const struct vec3 up = in_box(target, scan->up);
    const struct slabs slabs = {
        .at = {(float)target->at.x, (float)target->at.y, (float)target->at.z},
        .half = {(float)target->half[0], (float)target->half[1], (float)target->half[2]},
        .level = {(float)level.x, (float)level.y, (float)level.z},
        .up = {(float)up.x, (float)up.y, (float)up.z},
    };
    layers->rows.beams(&slabs, scan->cosine, scan->sine, (int32_t)scan->lidar.elevation_count, id,
                       beams->range_m, beams->hit);
}

/* Share of the light that a side of a box returns: that of its surface by the angle. */
static float box_returns(const struct target *target, struct vec3 direction, double range_m)
{
    const struct vec3 d = in_box(target, direction);
    const double along[3] = {d.x, d.y, d.z};
    const double from[3] = {target->at.x, target->at.y, target->at.z};
    double least = INFINITY;
    double facing = 0.0;
    for (int k = 0; k < 3; k++) {
        double off = fabs(fabs(from[k] + along[k] * range_m) - target->half[k]);
        if (off < least) {
            least = off;
            facing = fabs(along[k]);
        }
    }
    return target->returns * (float)facing;
}

/* Place of ego in the map, for what the ground is made of. */
struct footing {
    const struct raster_map *map;
    double x_m, y_m, cosine, sine;
    bool snow;
};

static float ground_returns(const struct footing *footing, double x_m, double y_m)
{
    double x = footing->x_m + x_m * footing->cosine - y_m * footing->sine;
    double y = footing->y_m + x_m * footing->sine + y_m * footing->cosine;
    if (!(fabs(x) < 4e6 && fabs(y) < 4e6)) {
        return 0.2f;
    }
    if (footing->snow) {
        return 0.8f;
    }
    double tile_x = floor(x / RASTER_TILE_M);
    double tile_y = floor(y / RASTER_TILE_M);
    const struct raster_detail *detail =
        &footing->map->details[raster_map_tile(footing->map, (int32_t)tile_x, (int32_t)tile_y)];
    int32_t col = (int32_t)((x - tile_x * RASTER_TILE_M) / RASTER_SAMPLE_M);
    int32_t row = (int32_t)((y - tile_y * RASTER_TILE_M) / RASTER_SAMPLE_M);
    col = col < RASTER_TILE_SAMPLES ? col : RASTER_TILE_SAMPLES - 1;
    row = row < RASTER_TILE_SAMPLES ? row : RASTER_TILE_SAMPLES - 1;
    if (detail->paint.rows[row][col / 64] >> (col & 63) & 1) {
        return 0.9f;
    }
    switch (detail->material[row / 8 * RASTER_TILE_TEXELS + col / 8]) {
    case MATERIAL_NONE: /* plants */
        return 0.35f;
    case MATERIAL_SIDEWALK:
    case MATERIAL_GRAVEL:
        return 0.25f;
    case MATERIAL_WATER:
    case MATERIAL_OIL:
        return 0.03f;
    case MATERIAL_ICE:
    case MATERIAL_SNOW:
        return 0.8f;
    default:
        return 0.12f;
    }
}

/* ---- the whole ---- */

_Static_assert(RASTER_TILE_SAMPLES == 8 * RASTER_TILE_TEXELS, "samples a texel");

/* Turn of the lidar: shared by its azimuths. */
struct turn {
    const struct scan *scan;
    const struct raster_layers *layers;
    const struct scene *scene;
    uint64_t seed;
    double range_m;
    struct footing footing;
    uint32_t target_count;
    struct target targets[LIMIT_AGENTS];
};

/* Whether weather loses a return. */
static bool is_lost(const struct turn *turn, const uint32_t *words, uint32_t ring, float range_m)
{
    const struct raster_weather *noise = &raster_weather_noise[turn->scene->conditions.weather];
    if (noise->lost_far == 0) {
        return false;
    }
    double far = range_m / turn->scene->conditions.visibility_m;
    double lost = noise->lost_near + (noise->lost_far - noise->lost_near) * far;
    return (double)mood_hash((int32_t)words[0], (int32_t)(words[1] + ring)) * 256.0 < lost;
}

static uint32_t write_points(const struct turn *turn, int32_t azimuth, const struct beams *beams,
                             struct scan_point *out)
{
    const struct scan *scan = turn->scan;
    const struct rig_lidar *lidar = &scan->lidar;
    const float cosine = (float)scan->azimuth_cosine[azimuth];
    const float sine = (float)scan->azimuth_sine[azimuth];
    const double time_s = azimuth / (lidar->rate_hz * lidar->azimuths);
    uint32_t counter[4] = {turn->scene->tick, RNG_STREAM_BEV, NOISE_AZIMUTH + (uint32_t)azimuth,
                           scan->stream};
    uint32_t words[4];
    uint32_t count = 0;
    rng_philox(turn->seed, counter, words);
    for (uint32_t i = 0; i < lidar->elevation_count; i++) {
        float range = beams->range_m[i];
        int32_t hit = beams->hit[i];
        if (hit == SCAN_NOTHING || is_lost(turn, words, i, range)) {
            continue;
        }
        const float c = scan->cosine[i];
        const float s = scan->sine[i];
        const struct vec3 d = {(double)c * beams->level.x + (double)s * scan->up.x,
                               (double)c * beams->level.y + (double)s * scan->up.y,
                               (double)c * beams->level.z + (double)s * scan->up.z};
        float returns;
        if (hit == SCAN_GROUND) {
            returns = ground_returns(&turn->footing, lidar->pose.x_m + d.x * (double)range,
                                     lidar->pose.y_m + d.y * (double)range) *
                      (float)-d.z;
        } else {
            returns = box_returns(&turn->targets[hit], d, (double)range);
        }
        out[count++] = (struct scan_point){
            .x_m = range * c * cosine,
            .y_m = range * c * sine,
            .z_m = range * s,
            .intensity = (uint8_t)(returns * 255.0f + 0.5f),
            .ring = (uint8_t)i,
            .time_2us = (uint16_t)(time_s * 5e5 + 0.5),
        };
    }
    return count;
}

static void turn_init(struct turn *turn, const struct scan *scan,
                      const struct raster_layers *layers, const struct scenario *scenario,
                      const struct scene *scene, uint64_t seed, const struct sector *sector)
{
    const struct pose *ego = &scene->ego.pose;
    turn->scan = scan;
    turn->layers = layers;
    turn->scene = scene;
    turn->seed = seed;
    turn->range_m = dmath_min(scan->lidar.range_m, scene->conditions.visibility_m);
    turn->footing = (struct footing){
        .map = &layers->map,
        .x_m = ego->x_m - layers->map.anchor.x_m,
        .y_m = ego->y_m - layers->map.anchor.y_m,
        .snow = scene->conditions.weather == WEATHER_SNOW,
    };
    dmath_sincos(ego->heading_rad, &turn->footing.sine, &turn->footing.cosine);
    turn->target_count = 0;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        turn->target_count += find_target(scan, scenario, scene, i, turn->range_m, sector,
                                          &turn->targets[turn->target_count]);
    }
}

uint32_t scan_points(const struct scan *scan, const struct raster_layers *layers,
                     const struct scenario *scenario, const struct scene *scene, uint64_t seed,
                     int32_t first, int32_t end, struct scan_point *out)
{
    struct turn turn;
    uint32_t count = 0;
    CHECK(first >= 0 && end <= scan->lidar.azimuths);
    const double step_rad = 2.0 * PI_RAD / scan->lidar.azimuths;
    const struct sector sector = {(first + end - 1) / 2.0 * step_rad,
                                  (end - first) / 2.0 * step_rad};
    turn_init(&turn, scan, layers, scenario, scene, seed, &sector);
    for (int32_t i = first; i < end; i++) {
        double c = scan->azimuth_cosine[i];
        double s = scan->azimuth_sine[i];
        double azimuth_rad = dmath_wrap_angle(2.0 * PI_RAD * i / scan->lidar.azimuths);
        struct beams beams;
        beams.level = (struct vec3){c * scan->ahead.x + s * scan->left.x,
                                    c * scan->ahead.y + s * scan->left.y,
                                    c * scan->ahead.z + s * scan->left.z};
        meet_ground(scan, &beams, turn.range_m);
        for (uint32_t k = 0; k < turn.target_count; k++) {
            double off = fabs(azimuth_rad - turn.targets[k].middle_rad);
            off = dmath_min(off, 2.0 * PI_RAD - off);
            if (off <= turn.targets[k].reach_rad) {
                meet_target(scan, layers, &turn.targets[k], (int32_t)k, &beams);
            }
        }
        count += write_points(&turn, i, &beams, out + count);
    }
    return count;
}
