/*
 * Frames of the sensors that a planner chose. See sensors.h.
 *
 * Cameras of the built-in rig are those that every world shows; cameras and lidars of other rigs
 * are drawn from the scenes of two ticks, by worlds that say what from (slot_sight).
 */
#include "worker/given/sensors.h"

#include "base/check.h"
#include "base/jpeg/jpeg_encode.h"
#include "base/units.h"
#include "engine/rigs/frames.h"
#include "engine/rigs/scan.h"
#include "engine/trace/trace.h"
#include "worker/given/given.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Axes of a rig's cameras that an intervention's left, front or right camera stands for. */
#define FRONT_RAD (30.0 * PI_RAD / 180.0)
#define BEHIND_RAD (120.0 * PI_RAD / 180.0)

struct sensor {
    struct rig_chosen chosen;
    struct raster_rays *rays; /* NULL: no camera, one of the built-in rig, or of a world that makes
                                 its frames */
    struct scan *scan;        /* NULL: no lidar */
    uint32_t darkens;         /* enum sensor_mask: what makes it dark; 0: nothing */
    uint32_t width, height;
    size_t room_bytes; /* of a frame */
};

struct sensors {
    struct rig rig;
    struct rig_choice choice;
    struct sensor list[RIG_SENSORS_MAX];
    bool builtin;
    bool moves;     /* some are drawn of moments between ticks */
    uint8_t *drawn; /* room for the largest frame that is packed; at least a byte */
};

/* Scenes of the tick that was taken last and of the one before it, which is the same at first. */
struct moments {
    struct scene before, now;
    bool begun, moved; /* there is the one; there is the other */
};

struct shots {
    const struct sensors *sensors;
    struct moments *moments; /* NULL: none is needed */
    struct swerve_sensor list[RIG_SENSORS_MAX];
    uint8_t *frames[RIG_SENSORS_MAX]; /* owned; list[i].frames is the same */
    uint64_t digests[RIG_SENSORS_MAX];
};

_Static_assert(sizeof(struct swerve_point) == sizeof(struct scan_point) &&
                   sizeof(struct swerve_point) == RIG_POINT_BYTES,
               "points are shown as they are drawn");

/* ---- of a runner ---- */

static uint32_t darkens_of(const struct rig *rig, const struct rig_chosen *chosen)
{
    if (chosen->kind != RIG_CAMERA) {
        return SENSOR_LIDAR;
    }
    const double yaw_rad = remainder(rig->cameras[chosen->index].pose.yaw_rad, 2.0 * PI_RAD);
    if (fabs(yaw_rad) <= FRONT_RAD) {
        return SENSOR_CAMERA_FRONT;
    }
    if (fabs(yaw_rad) > BEHIND_RAD) {
        return 0;
    }
    return yaw_rad > 0 ? SENSOR_CAMERA_LEFT : SENSOR_CAMERA_RIGHT;
}

/* Bytes of a frame before it is packed; a lidar's are as many as it has points. */
static size_t drawn_bytes_of(const struct sensor *sensor)
{
    return sensor->chosen.kind == RIG_GRID    ? BEV_BYTES
           : sensor->chosen.kind == RIG_LIDAR ? 0
                                              : (size_t)sensor->width * sensor->height * 3;
}

/* `made`: frames are there without being drawn. */
static enum status prepare(const struct rig *rig, const struct rig_chosen *chosen, bool made,
                           struct sensor *out, struct error *error)
{
    const uint32_t index = chosen->index;
    *out = (struct sensor){.chosen = *chosen,
                           .darkens = darkens_of(rig, chosen),
                           .room_bytes = rig_chosen_bytes(rig, chosen)};
    rig_chosen_size(rig, chosen, &out->width, &out->height);
    if (chosen->kind == RIG_LIDAR) {
        return scan_create(&rig->lidars[index], index, &out->scan, error);
    }
    return chosen->kind == RIG_GRID || made
               ? STATUS_OK
               : raster_rays_create(&rig->cameras[index], index, &out->rays, error);
}

enum status sensors_check(const struct rig *rig, const struct rig_choice *choice,
                          const struct world_ops *ops, struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    uint32_t i = 0;
    TRY(rig_hash(rig, hash, error));
    const bool builtin = hash[0] == '\0';
    while (i < choice->count &&
           (choice->sensors[i].kind == RIG_GRID || builtin || ops->slot_sight != NULL ||
            (choice->sensors[i].kind == RIG_CAMERA &&
             (ops->slot_frame != NULL ||
              (ops->slot_shot != NULL && choice->sensors[i].jpeg_quality > 0))))) {
        i++;
    }
    if (i == choice->count) {
        return STATUS_OK;
    }
    return error_set(
        error, STATUS_BAD_INPUT,
        "world %s: expected %s, found sensor %s of the rig %s; the worlds object and replay draw "
        "any rig",
        ops->name,
        ops->slot_frame != NULL  ? "cameras, whose frames it makes"
        : ops->slot_shot != NULL ? "cameras in JPEG, as they were recorded"
                                 : "the built-in rig, whose pictures it makes",
        rig_chosen_id(rig, &choice->sensors[i]), rig->id);
}

enum status sensors_create(const struct rig *rig, const struct rig_choice *choice,
                           const struct world_ops *ops, struct sensors **out, struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    CHECK(choice->count > 0);
    TRY(rig_hash(rig, hash, error));
    const bool builtin = hash[0] == '\0';
    TRY(sensors_check(rig, choice, ops, error));
    struct sensors *sensors = calloc(1, sizeof *sensors);
    TRY(memory_check(sensors, error, "no memory for the sensors of rig %s", rig->id));
    enum status status = STATUS_OK;
    size_t room = 1;
    sensors->rig = *rig;
    sensors->choice = *choice;
    sensors->builtin = builtin;
    const bool made = builtin || ops->slot_frame != NULL || ops->slot_shot != NULL;
    for (uint32_t i = 0; i < choice->count; i++) {
        struct sensor *sensor = &sensors->list[i];
        THEN(status, prepare(rig, &choice->sensors[i], made, sensor, error));
        sensors->moves = sensors->moves || sensor->rays != NULL || sensor->scan != NULL;
        if (sensor->chosen.jpeg_quality > 0 && drawn_bytes_of(sensor) > room) {
            room = drawn_bytes_of(sensor);
        }
    }
    if (status == STATUS_OK) {
        sensors->drawn = malloc(room);
        status = memory_check(sensors->drawn, error, "no memory for a frame of rig %s", rig->id);
    }
    if (status != STATUS_OK) {
        sensors_destroy(sensors);
        return status;
    }
    *out = sensors;
    return STATUS_OK;
}

void sensors_destroy(struct sensors *sensors)
{
    if (sensors == NULL) {
        return;
    }
    for (uint32_t i = 0; i < sensors->choice.count; i++) {
        raster_rays_destroy(sensors->list[i].rays);
        scan_destroy(sensors->list[i].scan);
    }
    free(sensors->drawn);
    free(sensors);
}

uint32_t sensors_wants(const struct sensors *sensors)
{
    uint32_t wants = 0;
    for (uint32_t i = 0; sensors != NULL && i < sensors->choice.count; i++) {
        const enum rig_sensor_kind kind = sensors->list[i].chosen.kind;
        wants |= kind == RIG_GRID    ? SWERVE_WANTS_BEV
                 : kind == RIG_LIDAR ? GIVEN_LIDARS
                                     : SWERVE_WANTS_CAMERAS;
    }
    return wants;
}

bool sensors_are(const struct sensors *sensors, const struct rig *rig,
                 const struct rig_choice *choice)
{
    /* Decoders begin with zeros: equal members are equal bytes. */
    return memcmp(&sensors->rig, rig, sizeof *rig) == 0 &&
           memcmp(&sensors->choice, choice, sizeof *choice) == 0;
}

/* ---- of a rollout ---- */

static uint32_t format_of(const struct rig_chosen *chosen)
{
    return chosen->kind == RIG_GRID    ? SWERVE_FORMAT_GRID
           : chosen->kind == RIG_LIDAR ? SWERVE_FORMAT_POINTS
           : chosen->jpeg_quality > 0  ? SWERVE_FORMAT_JPEG
                                       : SWERVE_FORMAT_RGB8;
}

/* A sensor that has taken nothing yet. */
static void describe(const struct rig *rig, const struct sensor *sensor, struct swerve_sensor *out)
{
    strcpy(out->id, rig_chosen_id(rig, &sensor->chosen));
    out->format = format_of(&sensor->chosen);
    out->width = sensor->width;
    out->height = sensor->height;
    out->count = 1;
    out->stride = sensor->room_bytes;
    out->time_ns[0] = -1;
    if (sensor->chosen.kind == RIG_CAMERA) {
        const struct rig_camera *camera = &rig->cameras[sensor->chosen.index];
        out->shutter_ns = (int64_t)(camera->shutter_ms * (double)NS_PER_MS + 0.5);
        out->shutter = out->shutter_ns > 0 ? (uint32_t)camera->shutter : 0;
        out->shutter_ns = out->shutter > 0 ? out->shutter_ns : 0;
    } else if (sensor->scan != NULL) {
        out->shutter_ns = TICK_NS;
    }
}

enum status shots_create(const struct sensors *sensors, struct shots **out, struct error *error)
{
    struct shots *shots = calloc(1, sizeof *shots);
    TRY(memory_check(shots, error, "rollout: no memory for frames"));
    shots->sensors = sensors;
    enum status status = STATUS_OK;
    if (sensors->moves) {
        shots->moments = calloc(1, sizeof *shots->moments);
        status = memory_check(shots->moments, error, "rollout: no memory for scenes");
    }
    for (uint32_t i = 0; i < sensors->choice.count && status == STATUS_OK; i++) {
        const struct sensor *sensor = &sensors->list[i];
        describe(&sensors->rig, sensor, &shots->list[i]);
        shots->frames[i] =
            calloc(rig_chosen_frames(&sensors->rig, &sensor->chosen), sensor->room_bytes);
        shots->list[i].frames = shots->frames[i];
        status = memory_check(shots->frames[i], error, "rollout: no memory for the frames of %s",
                              shots->list[i].id);
    }
    if (status != STATUS_OK) {
        shots_destroy(shots);
        return status;
    }
    *out = shots;
    return STATUS_OK;
}

void shots_destroy(struct shots *shots)
{
    if (shots == NULL) {
        return;
    }
    for (uint32_t i = 0; i < shots->sensors->choice.count; i++) {
        free(shots->frames[i]);
    }
    free(shots->moments);
    free(shots);
}

void shots_copy(struct shots *to, const struct shots *from)
{
    CHECK(to->sensors == from->sensors);
    if (from->moments != NULL) {
        *to->moments = *from->moments;
    }
    for (uint32_t i = 0; i < from->sensors->choice.count; i++) {
        const struct swerve_sensor *shot = &from->list[i];
        to->list[i] = *shot;
        to->list[i].frames = to->frames[i];
        to->digests[i] = from->digests[i];
        for (uint32_t k = 0; k < shot->count; k++) {
            memcpy(to->frames[i] + k * shot->stride, from->frames[i] + k * shot->stride,
                   shot->bytes[k]);
        }
    }
}

/* Takes up the scene of a tick; one that is seen again may have been changed meanwhile. */
static void follow(struct moments *moments, const struct scene *scene)
{
    if (!moments->begun) {
        moments->before = *scene;
    } else if (scene->tick != moments->now.tick) {
        moments->before = moments->now;
        moments->moved = true;
    }
    moments->now = *scene;
    moments->begun = true;
}

/* Takes what was drawn as frame `index`, in its own room where it is not packed. */
static enum status keep(struct shots *shots, uint32_t i, uint32_t index, const uint8_t *drawn,
                        size_t bytes, struct error *error)
{
    const struct sensor *sensor = &shots->sensors->list[i];
    struct swerve_sensor *shot = &shots->list[i];
    shots->digests[i] = trace_digest(index == 0 ? i + 1 : shots->digests[i], drawn, bytes);
    if (sensor->chosen.jpeg_quality > 0) {
        TRY(jpeg_encode(drawn, sensor->width, sensor->height, sensor->chosen.jpeg_quality,
                        shots->frames[i] + index * shot->stride, sensor->room_bytes, &bytes,
                        error));
    }
    shot->bytes[index] = (uint32_t)bytes;
    shot->count = index + 1;
    return STATUS_OK;
}

/* Room for frame `index`: plain ones are drawn where they stay. */
static uint8_t *room_of(const struct shots *shots, uint32_t i, uint32_t index)
{
    return shots->list[i].format == SWERVE_FORMAT_JPEG
               ? shots->sensors->drawn
               : shots->frames[i] + index * shots->list[i].stride;
}

/* The frames of a tick; at the first one nothing was taken before it. */
static enum status take_camera(struct shots *shots, uint32_t i, const struct world_sight *sight,
                               int64_t now_ns, struct error *error)
{
    const struct sensor *sensor = &shots->sensors->list[i];
    const struct moments *moments = shots->moments;
    const struct rig_camera *camera = &shots->sensors->rig.cameras[sensor->chosen.index];
    const uint32_t frames = rig_camera_frames(camera);
    const uint32_t first = moments->moved ? 0 : frames - 1;
    for (uint32_t k = first; k < frames; k++) {
        uint8_t *drawn = room_of(shots, i, k - first);
        frames_draw(sight->layers, sight->scenario, &moments->before, &moments->now, sight->seed,
                    camera, sensor->rays, k, drawn);
        TRY(keep(shots, i, k - first, drawn, drawn_bytes_of(sensor), error));
        shots->list[i].time_ns[k - first] = now_ns - TICK_NS * (frames - 1 - k) / frames;
    }
    return STATUS_OK;
}

static enum status take_lidar(struct shots *shots, uint32_t i, const struct world_sight *sight,
                              int64_t now_ns, struct error *error)
{
    const struct sensor *sensor = &shots->sensors->list[i];
    const struct moments *moments = shots->moments;
    struct scan_point *points = (struct scan_point *)(void *)shots->frames[i];
    uint32_t count =
        frames_scan(sight->layers, sight->scenario, &moments->before, &moments->now, sight->seed,
                    &shots->sensors->rig.lidars[sensor->chosen.index], sensor->scan, points);
    shots->list[i].time_ns[0] = now_ns;
    return keep(shots, i, 0, shots->frames[i], count * sizeof *points, error);
}

/* The frames of a tick that the world has made. */
static enum status take_made(struct shots *shots, uint32_t i, const struct world *world,
                             uint32_t slot, int64_t now_ns, struct error *error)
{
    const struct sensor *sensor = &shots->sensors->list[i];
    const uint32_t camera = sensor->chosen.index;
    const uint32_t frames = rig_camera_frames(&shots->sensors->rig.cameras[camera]);
    uint32_t taken = 0;
    for (uint32_t back = frames; back-- > 0;) {
        const uint8_t *made = world->ops->slot_frame(world, slot, camera, back);
        if (made == NULL) { /* before the drive's first tick */
            continue;
        }
        if (sensor->chosen.jpeg_quality == 0) {
            memcpy(room_of(shots, i, taken), made, drawn_bytes_of(sensor));
        }
        TRY(keep(shots, i, taken, made, drawn_bytes_of(sensor), error));
        shots->list[i].time_ns[taken++] = now_ns - TICK_NS * back / frames;
    }
    CHECK(taken > 0);
    return STATUS_OK;
}

/* The frames of a tick as they were shown when the world's drives were recorded. False: there are
 * none. */
static bool take_recorded(struct shots *shots, uint32_t i, const struct world *world, uint32_t slot,
                          int64_t now_ns)
{
    const struct sensor *sensor = &shots->sensors->list[i];
    struct swerve_sensor *shown = &shots->list[i];
    const uint32_t frames = rig_camera_frames(&shots->sensors->rig.cameras[sensor->chosen.index]);
    struct world_shot shot;
    const uint8_t *at;
    if (!world->ops->slot_shot(world, slot, sensor->chosen.index, sensor->chosen.jpeg_quality,
                               frames, sensor->room_bytes, &shot, &at)) {
        return false;
    }
    for (uint32_t k = 0; k < shot.count; at += shot.bytes[k++]) {
        memcpy(shots->frames[i] + k * shown->stride, at, shot.bytes[k]);
        shown->bytes[k] = shot.bytes[k];
        shown->time_ns[k] = now_ns - TICK_NS * (shot.count - 1 - k) / frames;
    }
    shown->count = shot.count;
    shots->digests[i] = shot.digest;
    return true;
}

/* The grid, or a camera of the built-in rig. */
static enum status take_builtin(struct shots *shots, uint32_t i, const struct world *world,
                                uint32_t slot, int64_t now_ns, struct error *error)
{
    const struct sensor *sensor = &shots->sensors->list[i];
    struct observation_buffers buffers = {0};
    uint8_t *drawn = room_of(shots, i, 0);
    if (sensor->chosen.kind == RIG_GRID) {
        buffers.bev = drawn;
    } else {
        buffers.camera[sensor->chosen.index] = drawn;
    }
    world->ops->slot_observe(world, slot, &buffers);
    shots->list[i].time_ns[0] = now_ns;
    return keep(shots, i, 0, drawn, drawn_bytes_of(sensor), error);
}

/* Black, or no points, where the sensor has taken nothing yet. */
static enum status take_dark(struct shots *shots, uint32_t i, struct error *error)
{
    const size_t bytes = drawn_bytes_of(&shots->sensors->list[i]);
    uint8_t *drawn = room_of(shots, i, 0);
    if (shots->list[i].time_ns[0] >= 0 || shots->list[i].bytes[0] > 0) {
        return STATUS_OK;
    }
    memset(drawn, 0, bytes);
    return keep(shots, i, 0, drawn, bytes, error);
}

enum status shots_take(struct shots *shots, const struct world *world, uint32_t slot, uint32_t dark,
                       int64_t now_ns, struct error *error)
{
    const struct sensors *sensors = shots->sensors;
    struct world_sight sight = {0};
    if (shots->moments != NULL) {
        follow(shots->moments, world->ops->slot_scene(world, slot));
        world->ops->slot_sight(world, slot, &sight);
    }
    for (uint32_t i = 0; i < sensors->choice.count; i++) {
        const struct sensor *sensor = &sensors->list[i];
        if ((sensor->darkens & dark) != 0) {
            TRY(take_dark(shots, i, error));
        } else if (sensor->rays != NULL) {
            TRY(take_camera(shots, i, &sight, now_ns, error));
        } else if (sensor->scan != NULL) {
            TRY(take_lidar(shots, i, &sight, now_ns, error));
        } else if (sensor->chosen.kind == RIG_CAMERA && world->ops->slot_frame != NULL) {
            TRY(take_made(shots, i, world, slot, now_ns, error));
        } else if (sensor->chosen.kind == RIG_CAMERA && world->ops->slot_shot != NULL &&
                   !sensors->builtin) {
            if (!take_recorded(shots, i, world, slot, now_ns)) {
                TRY(take_dark(shots, i, error));
            }
        } else {
            TRY(take_builtin(shots, i, world, slot, now_ns, error));
        }
    }
    return STATUS_OK;
}

_Static_assert((int)WORLD_SHOT_FRAMES == (int)SWERVE_SENSOR_FRAMES &&
                   sizeof(struct world_shot) == 72,
               "frames of a tick, and the layout of what is recorded");

enum status sensors_check_kept(const struct rig *rig, const struct rig_choice *choice,
                               struct error *error)
{
    for (uint32_t i = 0; i < choice->count; i++) {
        const struct rig_chosen *chosen = &choice->sensors[i];
        if (chosen->kind == RIG_CAMERA && chosen->jpeg_quality == 0) {
            return error_set(error, STATUS_BAD_INPUT,
                             "golden: sensor %s of the rig %s: expected JPEG (\"jpeg:90\"), which "
                             "is what goldens keep, found plain bytes",
                             rig_chosen_id(rig, chosen), rig->id);
        }
    }
    return STATUS_OK;
}

enum status shots_keep(const struct shots *shots, const struct world *world, struct reel *reel,
                       struct error *error)
{
    const struct sensors *sensors = shots->sensors;
    if (world->ops->slot_frame == NULL || sensors->builtin) {
        return STATUS_OK;
    }
    TRY(sensors_check_kept(&sensors->rig, &sensors->choice, error));
    for (uint32_t i = 0; i < sensors->choice.count; i++) {
        const struct rig_chosen *chosen = &sensors->list[i].chosen;
        const struct swerve_sensor *shown = &shots->list[i];
        struct world_shot shot = {.digest = shots->digests[i],
                                  .camera = chosen->index,
                                  .jpeg_quality = chosen->jpeg_quality,
                                  .count = shown->count};
        if (chosen->kind != RIG_CAMERA) {
            continue;
        }
        memcpy(shot.bytes, shown->bytes, shown->count * sizeof shot.bytes[0]);
        TRY(reel_add(reel, &shot, sizeof shot, error));
        for (uint32_t k = 0; k < shown->count; k++) {
            TRY(reel_add(reel, shown->frames + k * shown->stride, shown->bytes[k], error));
        }
    }
    return STATUS_OK;
}

uint64_t shots_digest(const struct shots *shots)
{
    return trace_digest(1, (const uint8_t *)shots->digests,
                        shots->sensors->choice.count * sizeof shots->digests[0]);
}

struct swerve_sensors shots_show(const struct shots *shots)
{
    return (struct swerve_sensors){.count = shots->sensors->choice.count, .sensors = shots->list};
}
