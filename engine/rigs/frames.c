/*
 * Frames: bodies between ticks, and bands of a rolling shutter drawn at their own moments.
 */
#include "engine/rigs/frames.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"
#include "engine/sensors/raster_camera.h"

enum { SCAN_BAND_AZIMUTHS = 8 };

#define JUMP_M 2.0 /* farther from where its speed takes it, a body has jumped */

struct moving {
    struct pose pose;
    double speed_mps; /* along the heading */
};

/* Cubic with values a, b and slopes da, db at 0 and 1 (Hermite). */
static double curve(double a, double b, double da, double db, double t)
{
    double t2 = t * t;
    double t3 = t2 * t;
    return a * (2.0 * t3 - 3.0 * t2 + 1.0) + b * (3.0 * t2 - 2.0 * t3) + da * (t3 - 2.0 * t2 + t) +
           db * (t3 - t2);
}

/* False where it jumped. */
static bool move(const struct moving *a, const struct moving *b, double t, struct moving *out)
{
    double sa;
    double ca;
    double sb;
    double cb;
    dmath_sincos(a->pose.heading_rad, &sa, &ca);
    dmath_sincos(b->pose.heading_rad, &sb, &cb);
    double da = a->speed_mps * TICK_S;
    double db = b->speed_mps * TICK_S;
    double off_x = b->pose.x_m - a->pose.x_m - 0.5 * (da * ca + db * cb);
    double off_y = b->pose.y_m - a->pose.y_m - 0.5 * (da * sa + db * sb);
    if (off_x * off_x + off_y * off_y > JUMP_M * JUMP_M) {
        return false;
    }
    double turned = dmath_wrap_angle(b->pose.heading_rad - a->pose.heading_rad);
    out->pose.x_m = curve(a->pose.x_m, b->pose.x_m, da * ca, db * cb, t);
    out->pose.y_m = curve(a->pose.y_m, b->pose.y_m, da * sa, db * sb, t);
    out->pose.heading_rad = dmath_wrap_angle(a->pose.heading_rad + turned * t);
    out->speed_mps = a->speed_mps + (b->speed_mps - a->speed_mps) * t;
    return true;
}

void frames_scene(const struct scene *before, const struct scene *after, double share,
                  struct scene *out)
{
    CHECK(share >= 0.0 && share <= 1.0);
    if (share == 0.0 || share == 1.0) {
        *out = share == 0.0 ? *before : *after;
        return;
    }
    const struct scene *nearer = share < 0.5 ? before : after;
    *out = *after;
    struct moving moved;
    if (move(&(struct moving){before->ego.pose, before->ego.speed_mps},
             &(struct moving){after->ego.pose, after->ego.speed_mps}, share, &moved)) {
        out->ego.pose = moved.pose;
        out->ego.speed_mps = moved.speed_mps;
    } else {
        out->ego = nearer->ego;
    }
    for (uint32_t i = 0; i < after->agent_count; i++) {
        const struct agent_state *a = &before->agents[i];
        const struct agent_state *b = &after->agents[i];
        if (i < before->agent_count && a->present && b->present &&
            move(&(struct moving){a->pose, a->speed_mps}, &(struct moving){b->pose, b->speed_mps},
                 share, &moved)) {
            out->agents[i].pose = moved.pose;
            out->agents[i].speed_mps = moved.speed_mps;
        } else if (i < nearer->agent_count) {
            out->agents[i] = nearer->agents[i];
        }
    }
}

/* Whether a rolling shutter exposes row after row; else column after column. */
static bool by_rows(const struct rig_camera *camera)
{
    return camera->shutter == SHUTTER_ROLLING_TOP || camera->shutter == SHUTTER_ROLLING_BOTTOM;
}

/* Whether it begins at the last one. */
static bool backwards(const struct rig_camera *camera)
{
    return camera->shutter == SHUTTER_ROLLING_BOTTOM || camera->shutter == SHUTTER_ROLLING_RIGHT;
}

/* Area of band `index` in the order of exposure; false: there is none. */
static bool band_of(const struct rig_camera *camera, int32_t index, struct raster_area *out)
{
    bool rows = by_rows(camera);
    int32_t size = rows ? camera->height : camera->width;
    int32_t bands = (size + CAMERA_BAND_ROWS - 1) / CAMERA_BAND_ROWS;
    if (index >= bands) {
        return false;
    }
    int32_t first = (backwards(camera) ? bands - 1 - index : index) * CAMERA_BAND_ROWS;
    int32_t end = first + CAMERA_BAND_ROWS < size ? first + CAMERA_BAND_ROWS : size;
    *out = rows ? (struct raster_area){first, end, 0, camera->width}
                : (struct raster_area){0, camera->height, first, end};
    return true;
}

/* Share of the shutter's time at which the middle of a band is exposed: 0 the first row, 1 the
 * last. */
static double exposed_at(const struct rig_camera *camera, const struct raster_area *band)
{
    bool rows = by_rows(camera);
    double last = (rows ? camera->height : camera->width) - 1.0;
    double middle =
        (rows ? band->first_row + band->end_row - 1 : band->first_col + band->end_col - 1) / 2.0;
    double share = last > 0.0 ? middle / last : 1.0;
    return backwards(camera) ? 1.0 - share : share;
}

void frames_draw(const struct raster_layers *layers, const struct scenario *scenario,
                 const struct scene *before, const struct scene *after, uint64_t seed,
                 const struct rig_camera *camera, const struct raster_rays *rays, uint32_t index,
                 uint8_t *out)
{
    uint32_t count = rig_camera_frames(camera);
    CHECK(index < count);
    double time_share = (index + 1.0) / count;
    /* Drops of its own in each frame; those of the tick in its last. */
    uint64_t own = index + 1 == count ? seed : rng_mix(seed + index + 1);
    struct scene scene;
    if (camera->shutter == SHUTTER_GLOBAL || camera->shutter_ms == 0.0) {
        frames_scene(before, after, time_share, &scene);
        raster_rays_draw(layers, scenario, &scene, own, rays, out);
        return;
    }
    struct sky_ring ring;
    struct raster_area band;
    ring.made = false;
    for (int32_t i = 0; band_of(camera, i, &band); i++) {
        double early = (1.0 - exposed_at(camera, &band)) * camera->shutter_ms / 1000.0 / TICK_S;
        frames_scene(before, after, dmath_max(time_share - early, 0.0), &scene);
        scene.tick = after->tick;
        scene.conditions = after->conditions;
        raster_rays_draw_part(layers, scenario, &scene, own, rays, &band, &ring, out);
    }
}

uint32_t frames_scan(const struct raster_layers *layers, const struct scenario *scenario,
                     const struct scene *before, const struct scene *after, uint64_t seed,
                     const struct rig_lidar *lidar, const struct scan *scan, struct scan_point *out)
{
    uint32_t count = 0;
    struct scene scene;
    for (int32_t first = 0; first < lidar->azimuths; first += SCAN_BAND_AZIMUTHS) {
        int32_t end = first + SCAN_BAND_AZIMUTHS;
        end = end < lidar->azimuths ? end : lidar->azimuths;
        frames_scene(before, after, (first + end - 1) / 2.0 / lidar->azimuths, &scene);
        scene.tick = after->tick;
        scene.conditions = after->conditions;
        count += scan_points(scan, layers, scenario, &scene, seed, first, end, out + count);
    }
    return count;
}
