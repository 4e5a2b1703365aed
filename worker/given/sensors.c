/*
 * Frames of the sensors that a planner chose. See sensors.h.
 *
 * Cameras of the built-in rig are those that every world shows; cameras of other rigs are drawn
 * from the scene, by worlds that have one (slot_picture).
 */
#include "worker/given/sensors.h"

#include "base/check.h"
#include "base/jpeg/jpeg_encode.h"
#include "base/units.h"
#include "engine/sensors/raster.h"
#include "engine/trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Axes of a rig's cameras that an intervention's left, front or right camera stands for. */
#define FRONT_RAD (30.0 * PI_RAD / 180.0)
#define BEHIND_RAD (120.0 * PI_RAD / 180.0)

struct sensor {
    struct rig_chosen chosen;
    struct raster_rays *rays; /* NULL: the grid, a camera of the built-in rig, or of a world that
                                 makes its frames */
    uint32_t darkens;         /* enum sensor_mask: what makes it dark; 0: nothing */
    uint32_t width, height;
    size_t room_bytes; /* of a frame */
};

struct sensors {
    struct rig rig;
    struct rig_choice choice;
    struct sensor list[RIG_SENSORS_MAX];
    uint8_t *drawn; /* room for the largest frame that is packed; at least a byte */
};

struct shots {
    const struct sensors *sensors;
    struct swerve_sensor list[RIG_SENSORS_MAX];
    uint8_t *frames[RIG_SENSORS_MAX]; /* owned; list[i].frames is the same */
    uint64_t digests[RIG_SENSORS_MAX];
};

/* ---- of a runner ---- */

static uint32_t darkens_of(const struct rig *rig, const struct rig_chosen *chosen)
{
    if (chosen->kind == RIG_GRID) {
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

static size_t drawn_bytes_of(const struct sensor *sensor)
{
    return sensor->chosen.kind == RIG_GRID ? BEV_BYTES : (size_t)sensor->width * sensor->height * 3;
}

/* `made`: frames are there without being drawn. */
static enum status prepare(const struct rig *rig, const struct rig_chosen *chosen, bool made,
                           struct sensor *out, struct error *error)
{
    *out = (struct sensor){.chosen = *chosen,
                           .darkens = darkens_of(rig, chosen),
                           .room_bytes = rig_chosen_bytes(rig, chosen)};
    rig_chosen_size(rig, chosen, &out->width, &out->height);
    return chosen->kind == RIG_GRID || made
               ? STATUS_OK
               : raster_rays_create(&rig->cameras[chosen->index], chosen->index, &out->rays, error);
}

/* Whether the world makes pictures of this rig's cameras. */
static enum status check_world(const struct rig *rig, const struct rig_choice *choice,
                               const struct world_ops *ops, bool builtin, struct error *error)
{
    uint32_t i = 0;
    while (i < choice->count && choice->sensors[i].kind == RIG_GRID) {
        i++;
    }
    if (builtin || ops->slot_picture != NULL || ops->slot_frame != NULL || i == choice->count) {
        return STATUS_OK;
    }
    return error_set(
        error, STATUS_BAD_INPUT,
        "world %s: expected the built-in rig, whose pictures it makes, found camera %s "
        "of the rig %s; the worlds object and replay draw any rig",
        ops->name, rig_chosen_id(rig, &choice->sensors[i]), rig->id);
}

enum status sensors_create(const struct rig *rig, const struct rig_choice *choice,
                           const struct world_ops *ops, struct sensors **out, struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    CHECK(choice->count > 0);
    TRY(rig_hash(rig, hash, error));
    const bool builtin = hash[0] == '\0';
    TRY(check_world(rig, choice, ops, builtin, error));
    struct sensors *sensors = calloc(1, sizeof *sensors);
    TRY(memory_check(sensors, error, "no memory for the sensors of rig %s", rig->id));
    enum status status = STATUS_OK;
    size_t room = 1;
    sensors->rig = *rig;
    sensors->choice = *choice;
    for (uint32_t i = 0; i < choice->count; i++) {
        struct sensor *sensor = &sensors->list[i];
        THEN(status,
             prepare(rig, &choice->sensors[i], builtin || ops->slot_frame != NULL, sensor, error));
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
    }
    free(sensors->drawn);
    free(sensors);
}

uint32_t sensors_wants(const struct sensors *sensors)
{
    uint32_t wants = 0;
    for (uint32_t i = 0; sensors != NULL && i < sensors->choice.count; i++) {
        wants |= sensors->list[i].chosen.kind == RIG_GRID ? SWERVE_WANTS_BEV : SWERVE_WANTS_CAMERAS;
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
    return chosen->kind == RIG_GRID   ? SWERVE_FORMAT_GRID
           : chosen->jpeg_quality > 0 ? SWERVE_FORMAT_JPEG
                                      : SWERVE_FORMAT_RGB8;
}

enum status shots_create(const struct sensors *sensors, struct shots **out, struct error *error)
{
    struct shots *shots = calloc(1, sizeof *shots);
    TRY(memory_check(shots, error, "rollout: no memory for frames"));
    shots->sensors = sensors;
    for (uint32_t i = 0; i < sensors->choice.count; i++) {
        const struct sensor *sensor = &sensors->list[i];
        struct swerve_sensor *shot = &shots->list[i];
        shots->frames[i] = calloc(1, sensor->room_bytes);
        if (shots->frames[i] == NULL) {
            shots_destroy(shots);
            return error_set(error, STATUS_NO_MEMORY, "rollout: no memory for a frame of %s",
                             rig_chosen_id(&sensors->rig, &sensor->chosen));
        }
        strcpy(shot->id, rig_chosen_id(&sensors->rig, &sensor->chosen));
        shot->format = format_of(&sensor->chosen);
        shot->width = sensor->width;
        shot->height = sensor->height;
        shot->count = 1;
        shot->frames = shots->frames[i];
        shot->stride = sensor->room_bytes;
        shot->time_ns[0] = -1;
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
    free(shots);
}

void shots_copy(struct shots *to, const struct shots *from)
{
    CHECK(to->sensors == from->sensors);
    for (uint32_t i = 0; i < from->sensors->choice.count; i++) {
        to->list[i] = from->list[i];
        to->list[i].frames = to->frames[i];
        to->digests[i] = from->digests[i];
        memcpy(to->frames[i], from->frames[i], from->list[i].bytes[0]);
    }
}

static void draw(const struct sensor *sensor, const struct world *world, uint32_t slot,
                 uint8_t *out)
{
    struct observation_buffers buffers = {0};
    if (sensor->rays != NULL) {
        world->ops->slot_picture(world, slot, sensor->rays, out);
        return;
    }
    if (sensor->chosen.kind == RIG_GRID) {
        buffers.bev = out;
    } else if (world->ops->slot_frame != NULL) {
        memcpy(out, world->ops->slot_frame(world, slot, sensor->chosen.index, 0),
               drawn_bytes_of(sensor));
        return;
    } else {
        buffers.camera[sensor->chosen.index] = out;
    }
    world->ops->slot_observe(world, slot, &buffers);
}

/* Takes what was drawn for sensor i, in its own room where it is not packed. */
static enum status keep(struct shots *shots, uint32_t i, const uint8_t *drawn, struct error *error)
{
    const struct sensor *sensor = &shots->sensors->list[i];
    struct swerve_sensor *shot = &shots->list[i];
    size_t bytes = drawn_bytes_of(sensor);
    shots->digests[i] = trace_digest(i + 1, drawn, bytes);
    if (sensor->chosen.jpeg_quality > 0) {
        TRY(jpeg_encode(drawn, sensor->width, sensor->height, sensor->chosen.jpeg_quality,
                        shots->frames[i], sensor->room_bytes, &bytes, error));
    }
    shot->bytes[0] = (uint32_t)bytes;
    return STATUS_OK;
}

enum status shots_take(struct shots *shots, const struct world *world, uint32_t slot, uint32_t dark,
                       int64_t now_ns, struct error *error)
{
    const struct sensors *sensors = shots->sensors;
    for (uint32_t i = 0; i < sensors->choice.count; i++) {
        const struct sensor *sensor = &sensors->list[i];
        const bool is_dark = (sensor->darkens & dark) != 0;
        /* Plain frames are drawn where they stay. */
        uint8_t *drawn = sensor->chosen.jpeg_quality > 0 ? sensors->drawn : shots->frames[i];
        if (is_dark && shots->list[i].bytes[0] > 0) {
            continue;
        }
        if (is_dark) {
            memset(drawn, 0, drawn_bytes_of(sensor));
        } else {
            draw(sensor, world, slot, drawn);
            shots->list[i].time_ns[0] = now_ns;
        }
        TRY(keep(shots, i, drawn, error));
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
