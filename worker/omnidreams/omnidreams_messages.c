/*
 * Records of the world's ABI as messages of the contract, and its answers as frames. See
 * omnidreams_internal.h.
 *
 * The contract's rig stands on the rear axle; cameras stand on it as their bodies. Frame f has the
 * time f * (1,000,000 / rate) us, in whole numbers, as AlpaSim's runtime asks for it.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "base/jpeg/jpeg_decode.h"
#include "base/png/png_decode.h"
#include "worker/contract/contract_call.h"
#include "worker/contract/contract_camera.h"
#include "worker/omnidreams/omnidreams_internal.h"

#include "schemas/proto/worldmodel.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of an answer that was read: its pictures, and what thousands of empty parts take. */
enum { ANSWER_SPARE_BYTES = 4 << 20, SESSION_MEMORY_BYTES = 1 << 16 };

/* Classes of actors. */
enum { ACTOR_CAR = 1, ACTOR_TRUCK, ACTOR_PEDESTRIAN, ACTOR_CYCLIST, ACTOR_OTHER };

static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text;
}

static enum status pack(const ProtobufCMessage *record, struct omnidreams_message *out,
                        struct error *error)
{
    out->bytes = protobuf_c_message_get_packed_size(record);
    out->data = malloc(out->bytes + 1);
    TRY(memory_check(out->data, error, "no memory for a message of %zu bytes", out->bytes));
    protobuf_c_message_pack(record, out->data);
    return STATUS_OK;
}

/* ---- start and close ---- */

/* The view in words: "A photorealistic driving video .."; models are told of weather and
 * light in no other way. */
static void make_prompt(const struct omnidreams_start *start, char *text, size_t bytes)
{
    static const char *const weathers[WEATHER_COUNT] = {"clear weather", "rain", "heavy rain",
                                                        "fog", "snow"};
    static const char *const lights[LIGHT_COUNT] = {"in daylight", "at dusk", "at night"};
    const char *road = start->scenario->slices.value[SLICE_ROAD];
    snprintf(text, bytes,
             "A photorealistic driving video from a camera on a car%s%s, %s, %s. The scene is "
             "sharp and stable.",
             road[0] != '\0' ? ", road type " : "", road, weathers[start->conditions.weather],
             lights[start->conditions.light]);
}

enum status omnidreams_message_start(const struct omnidreams_start *from,
                                     struct omnidreams_message *out, struct error *error)
{
    const struct rig *rig = from->rig;
    const double rear_m = from->scenario->ego.wheelbase_m / 2;
    struct contract_camera *records = calloc(RIG_CAMERAS_MAX, sizeof *records);
    Wm__Picture pictures[RIG_CAMERAS_MAX];
    Ego__CameraSpec *cameras[RIG_CAMERAS_MAX];
    Ego__Pose *poses[RIG_CAMERAS_MAX];
    Wm__Picture *first[RIG_CAMERAS_MAX];
    Wm__Start start = WM__START__INIT;
    Wm__StaticMap map = WM__STATIC_MAP__INIT;
    Wm__Prompt prompt = WM__PROMPT__INIT;
    char made[LIMIT_PROMPT_BYTES];
    TRY(memory_check(records, error, "out of memory"));
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        contract_camera_fill(&records[i], &rig->cameras[i], rear_m, false);
        cameras[i] = &records[i].spec;
        poses[i] = &records[i].pose;
        wm__picture__init(&pictures[i]);
        pictures[i].data = (ProtobufCBinaryData){from->first[i].bytes, from->first[i].data};
        pictures[i].format = from->first[i].format;
        first[i] = &pictures[i];
    }
    make_prompt(from, made, sizeof made);
    prompt.positive = text_of(from->prompt[0] != '\0' ? from->prompt : made);
    map.hdmap_parquets = (ProtobufCBinaryData){from->map_bytes, (uint8_t *)(uintptr_t)from->map};
    start.static_map = &map;
    start.prompt = &prompt;
    start.n_cameras = start.n_rig_to_camera = start.n_initial_frames = rig->camera_count;
    start.cameras = cameras;
    start.rig_to_camera = poses;
    start.initial_frames = first;
    start.random_seed = from->seed;
    enum status status = pack(&start.base, out, error);
    free(records);
    return status;
}

enum status omnidreams_message_close(const char *session, struct omnidreams_message *out,
                                     struct error *error)
{
    Wm__Close close = WM__CLOSE__INIT;
    close.session_id = text_of(session);
    return pack(&close.base, out, error);
}

enum status omnidreams_session_read(const uint8_t *data, size_t bytes,
                                    char session[OMNIDREAMS_SESSION_BYTES], struct error *error)
{
    struct contract_memory memory;
    contract_memory_init(&memory, SESSION_MEMORY_BYTES);
    Wm__SessionId *read = wm__session_id__unpack(&memory.allocator, bytes, data);
    bool good = read != NULL && strlen(read->session_id) < OMNIDREAMS_SESSION_BYTES;
    if (good) {
        snprintf(session, OMNIDREAMS_SESSION_BYTES, "%s", read->session_id);
    }
    wm__session_id__free_unpacked(read, &memory.allocator);
    return good ? STATUS_OK
                : error_set(error, STATUS_BAD_INPUT, "the answer to start_session is no SessionId");
}

/* ---- a chunk ---- */

/* An actor and its poses, one for each frame in which it is there. */
struct actor_record {
    Wm__Actor actor;
    Wm__Box box;
    Ego__Trajectory trajectory;
    Ego__PoseAtTime *list[SWERVE_WORLD_FRAMES];
    struct contract_pose poses[SWERVE_WORLD_FRAMES];
};

static uint32_t class_of(uint32_t kind)
{
    static const uint32_t classes[AGENT_KIND_COUNT] = {
        [AGENT_CAR] = ACTOR_CAR,
        [AGENT_VAN] = ACTOR_CAR,
        [AGENT_TRUCK] = ACTOR_TRUCK,
        [AGENT_BUS] = ACTOR_TRUCK,
        [AGENT_MOTORCYCLE] = ACTOR_CYCLIST,
        [AGENT_CYCLIST] = ACTOR_CYCLIST,
        [AGENT_PEDESTRIAN] = ACTOR_PEDESTRIAN,
        [AGENT_ANIMAL] = ACTOR_OTHER,
        [AGENT_OBJECT] = ACTOR_OTHER,
    };
    return kind < AGENT_KIND_COUNT ? classes[kind] : ACTOR_OTHER;
}

/* Fills an actor; false: it is in no frame of the chunk. */
static bool actor_fill(struct actor_record *record, uint32_t index, uint64_t interval_us,
                       const struct swerve_world_chunk *chunk,
                       const struct swerve_world_body *bodies)
{
    wm__actor__init(&record->actor);
    wm__box__init(&record->box);
    ego__trajectory__init(&record->trajectory);
    for (uint32_t f = 0; f < chunk->frame_count; f++) {
        const struct swerve_world_body *body = &bodies[f * chunk->body_count + index];
        if (body->present == 0) {
            continue;
        }
        const size_t n = record->trajectory.n_poses++;
        contract_pose_fill(&record->poses[n], (chunk->first_frame + f) * interval_us, body->x_m,
                           body->y_m, body->height_m / 2, body->heading_rad);
        record->list[n] = &record->poses[n].at;
        record->actor.class_id = class_of(body->kind);
        record->box.size_x = (float)body->length_m;
        record->box.size_y = (float)body->width_m;
        record->box.size_z = (float)body->height_m;
    }
    record->trajectory.poses = record->list;
    record->actor.box = &record->box;
    record->actor.trajectory = &record->trajectory;
    return record->trajectory.n_poses > 0;
}

enum status omnidreams_message_chunk(const char *session, uint32_t rate_hz, double rear_m,
                                     const struct swerve_world_chunk *chunk,
                                     const struct swerve_world_body *bodies,
                                     struct omnidreams_message *out, struct error *error)
{
    const uint64_t interval_us = 1000000 / rate_hz;
    struct contract_pose poses[SWERVE_WORLD_FRAMES];
    Ego__PoseAtTime *list[SWERVE_WORLD_FRAMES];
    Ego__Trajectory trajectory = EGO__TRAJECTORY__INIT;
    Wm__SessionId id = WM__SESSION_ID__INIT;
    Wm__Dynamic dynamic = WM__DYNAMIC__INIT;
    Wm__Chunk ask = WM__CHUNK__INIT;
    struct actor_record *actors = malloc((chunk->body_count + 1) * sizeof *actors);
    Wm__Actor **present = calloc(chunk->body_count + 1, sizeof(Wm__Actor *));
    enum status status = memory_check(actors != NULL ? present : NULL, error,
                                      "no memory for %u actors", chunk->body_count);
    for (uint32_t f = 0; f < chunk->frame_count; f++) {
        const struct swerve_world_pose *at = &chunk->poses[f];
        contract_pose_fill(&poses[f], (chunk->first_frame + f) * interval_us,
                           at->x_m - rear_m * dmath_cos(at->heading_rad),
                           at->y_m - rear_m * dmath_sin(at->heading_rad), 0, at->heading_rad);
        list[f] = &poses[f].at;
    }
    for (uint32_t i = 0; i < chunk->body_count && status == STATUS_OK; i++) {
        if (actor_fill(&actors[i], i, interval_us, chunk, bodies)) {
            present[dynamic.n_actors++] = &actors[i].actor;
        }
    }
    id.session_id = text_of(session);
    trajectory.poses = list;
    trajectory.n_poses = chunk->frame_count;
    dynamic.actors = present;
    ask.session = &id;
    ask.rig_trajectory = &trajectory;
    ask.dynamic = &dynamic;
    THEN(status, pack(&ask.base, out, error));
    free(actors);
    free(present);
    return status;
}

/* ---- pictures ---- */

/* Planes red, green, blue as pixels. */
static enum status planes_read(const uint8_t *data, size_t bytes, const struct rig_camera *camera,
                               uint8_t *rgb, struct error *error)
{
    const size_t pixels = (size_t)camera->width * (size_t)camera->height;
    if (bytes != 3 * pixels) {
        return error_set(error, STATUS_BAD_INPUT, "planes of %zu bytes, expected %zu", bytes,
                         3 * pixels);
    }
    for (size_t i = 0; i < pixels; i++) {
        rgb[3 * i] = data[i];
        rgb[3 * i + 1] = data[pixels + i];
        rgb[3 * i + 2] = data[2 * pixels + i];
    }
    return STATUS_OK;
}

enum status omnidreams_picture_read(const uint8_t *data, size_t bytes, uint32_t format,
                                    const struct rig_camera *camera, uint8_t *rgb,
                                    struct error *error)
{
    const uint32_t width = (uint32_t)camera->width, height = (uint32_t)camera->height;
    switch (format) {
    case OMNIDREAMS_JPEG:
        return jpeg_decode(data, bytes, width, height, rgb, error);
    case OMNIDREAMS_PNG:
        return png_decode(data, bytes, width, height, rgb, error);
    case OMNIDREAMS_PLANES:
        return planes_read(data, bytes, camera, rgb, error);
    default:
        return error_set(error, STATUS_BAD_INPUT,
                         "a picture of format %u, expected 1 (PNG), 2 (JPEG) or 4 (planes)",
                         format);
    }
}

/* One camera's frames of a chunk. */
static enum status output_read(const Wm__ChunkAnswer *answer, const struct rig_camera *camera,
                               const struct swerve_world_chunk *chunk, uint8_t *frames,
                               struct error *error)
{
    const size_t frame_bytes = (size_t)camera->width * (size_t)camera->height * 3;
    const Wm__CameraOutput *output = NULL;
    for (size_t i = 0; i < answer->n_outputs && output == NULL; i++) {
        output =
            strcmp(answer->outputs[i]->logical_id, camera->id) == 0 ? answer->outputs[i] : NULL;
    }
    if (output == NULL || output->n_frames != chunk->frame_count) {
        return error_set(error, STATUS_BAD_INPUT, "camera %s: %zu frames, expected %u", camera->id,
                         output != NULL ? output->n_frames : 0, chunk->frame_count);
    }
    for (uint32_t f = 0; f < chunk->frame_count; f++) {
        const Wm__Picture *picture = output->frames[f];
        if (omnidreams_picture_read(picture->data.data, picture->data.len, picture->format, camera,
                                    frames + f * frame_bytes, error) != STATUS_OK) {
            return error_prefix(error, "camera %s, frame %u", camera->id, chunk->first_frame + f);
        }
    }
    return STATUS_OK;
}

enum status omnidreams_chunk_read(const uint8_t *data, size_t bytes, const struct rig *rig,
                                  const struct swerve_world_chunk *chunk, uint8_t *memory,
                                  struct error *error)
{
    struct contract_memory bound;
    contract_memory_init(&bound, bytes + ANSWER_SPARE_BYTES);
    Wm__ChunkAnswer *answer = wm__chunk_answer__unpack(&bound.allocator, bytes, data);
    enum status status = STATUS_OK;
    if (answer == NULL) {
        return error_set(error, STATUS_BAD_INPUT,
                         "the answer to render_video_chunk is no VideoChunkReturn");
    }
    for (uint32_t c = 0; c < rig->camera_count; c++) {
        THEN(status,
             output_read(answer, &rig->cameras[c], chunk, memory + chunk->frames[c], error));
    }
    wm__chunk_answer__free_unpacked(answer, &bound.allocator);
    return status;
}
