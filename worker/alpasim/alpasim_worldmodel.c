/*
 * WorldModelService: a session with cameras and a scene, then frames along ego's poses, drawn. See
 * alpasim.h.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "worker/alpasim/alpasim_internal.h"
#include "worker/contract/contract_places.h"

#include "schemas/proto/worldmodel.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_MAX = 64 }; /* of a chunk */

/* ---- sessions ---- */

static struct alpasim_session *session_of(struct alpasim *alpasim, const char *id)
{
    for (int i = 0; i < ALPASIM_SESSIONS; i++) {
        if (id[0] != '\0' && strcmp(alpasim->sessions[i].id, id) == 0) {
            return &alpasim->sessions[i];
        }
    }
    return NULL;
}

static void session_end(struct alpasim_session *session)
{
    free(session->rig);
    *session = (struct alpasim_session){.id = ""};
}

/* A free session, or the one that was used longest ago, ended. */
static struct alpasim_session *session_take(struct alpasim *alpasim)
{
    struct alpasim_session *oldest = &alpasim->sessions[0];
    for (int i = 0; i < ALPASIM_SESSIONS; i++) {
        struct alpasim_session *session = &alpasim->sessions[i];
        oldest = session->used < oldest->used ? session : oldest;
    }
    session_end(oldest);
    return oldest;
}

/* The clip in whose name a map's first file is: "CLIP.TABLE.parquet" in a ZIP. */
static bool clip_of(const ProtobufCBinaryData *zip, char *clip, size_t room)
{
    enum { HEAD_BYTES = 30, LENGTH_AT = 26 };
    static const char end[] = ".parquet";
    const size_t end_bytes = strlen(end);
    if (zip->len < HEAD_BYTES || memcmp(zip->data, "PK\3\4", 4) != 0) {
        return false;
    }
    size_t bytes = zip->data[LENGTH_AT] | (size_t)zip->data[LENGTH_AT + 1] << 8;
    const char *name = (const char *)zip->data + HEAD_BYTES;
    if (bytes > zip->len - HEAD_BYTES || bytes <= end_bytes ||
        memcmp(name + bytes - end_bytes, end, end_bytes) != 0) {
        return false;
    }
    bytes -= end_bytes;
    while (bytes > 0 && name[bytes - 1] != '.') {
        bytes--;
    }
    if (bytes < 2 || bytes > room || memchr(name, '\0', bytes) != NULL) {
        return false;
    }
    snprintf(clip, room, "%.*s", (int)bytes - 1, name);
    return true;
}

/* Cameras of a session. False: *answer says what is wrong. */
static bool cameras_read(const Wm__Start *start, double rear_m, struct rig *rig,
                         struct grpc_answer *answer)
{
    const size_t count = start->n_cameras;
    if (count < 1 || count > RIG_CAMERAS_MAX || start->n_rig_to_camera != count ||
        start->n_initial_frames != count) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                       "expected 1 to %d cameras with an initial frame and a pose each, found %zu, "
                       "%zu and %zu",
                       RIG_CAMERAS_MAX, count, start->n_initial_frames, start->n_rig_to_camera);
        return false;
    }
    rig->camera_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct rig_camera *camera = &rig->cameras[i];
        const Ego__CameraSpec *spec = start->cameras[i];
        const char *reason = "";
        if (!contract_lens_read(spec, camera, &reason) ||
            !contract_pose_read(start->rig_to_camera[i], false, &camera->pose, &reason)) {
            alpasim_refuse(answer, GRPC_INVALID_ARGUMENT, "camera %.60s %s", spec->logical_id,
                           reason);
            return false;
        }
        if (strlen(spec->logical_id) >= sizeof camera->id) {
            alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                           "camera %zu: expected a name of at most %zu bytes, found %zu", i,
                           sizeof camera->id - 1, strlen(spec->logical_id));
            return false;
        }
        snprintf(camera->id, sizeof camera->id, "%s", spec->logical_id);
        camera->pose.x_m -= rear_m;
    }
    return true;
}

/* The scene whose files are named by a clip. */
static struct alpasim_scene *scene_of(struct alpasim *alpasim, const char *clip,
                                      struct grpc_answer *answer)
{
    char name[LIMIT_ID_BYTES];
    for (uint32_t i = 0; i < alpasim->scene_count; i++) {
        contract_clip(alpasim->scenes[i].scenario->id, name);
        if (strcmp(name, clip) == 0) {
            return &alpasim->scenes[i];
        }
    }
    return alpasim_find(alpasim, clip, answer); /* which says that there is none */
}

static void start_session(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    const Wm__Start *start = question;
    char clip[LIMIT_ID_BYTES];
    Wm__SessionId id = WM__SESSION_ID__INIT;
    if (start->static_map == NULL ||
        !clip_of(&start->static_map->hdmap_parquets, clip, sizeof clip)) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                       "static_world_map: expected a ZIP of files SCENE.TABLE.parquet");
        return;
    }
    struct alpasim_scene *scene = scene_of(alpasim, clip, answer);
    struct rig *rig = scene != NULL ? calloc(1, sizeof *rig) : NULL;
    if (rig == NULL || !cameras_read(start, scene->scenario->ego.wheelbase_m / 2, rig, answer)) {
        if (answer->code == GRPC_OK) {
            alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
        }
        free(rig);
        return;
    }
    struct alpasim_session *session = session_take(alpasim);
    snprintf(session->id, sizeof session->id, "swerve-%llu",
             (unsigned long long)++alpasim->started);
    session->scene = scene;
    session->rig = rig;
    session->seed = start->random_seed;
    session->used = ++alpasim->uses;
    id.session_id = session->id;
    alpasim_answer(answer, &id.base);
}

/* ---- a chunk ---- */

static enum agent_kind kind_of(uint32_t class_id)
{
    static const enum agent_kind kinds[] = {AGENT_OBJECT,     AGENT_CAR,     AGENT_TRUCK,
                                            AGENT_PEDESTRIAN, AGENT_CYCLIST, AGENT_OBJECT};
    return class_id < COUNT_OF(kinds) ? kinds[class_id] : AGENT_OBJECT;
}

/* Place of an actor at a time: the nearest of its poses, within half a frame at 10 Hz. */
static const Ego__PoseAtTime *pose_at(const Ego__Trajectory *trajectory, uint64_t time_us)
{
    const Ego__PoseAtTime *nearest = NULL;
    uint64_t least_us = 50000;
    for (size_t i = 0; trajectory != NULL && i < trajectory->n_poses; i++) {
        const uint64_t at = trajectory->poses[i]->timestamp_us;
        const uint64_t off_us = at > time_us ? at - time_us : time_us - at;
        if (off_us < least_us) {
            least_us = off_us;
            nearest = trajectory->poses[i];
        }
    }
    return nearest;
}

/* Those who are there at a time. False: *answer says which is nowhere. */
static bool actors_place(const Wm__Dynamic *dynamic, uint64_t time_us,
                         struct alpasim_moment *moment, struct grpc_answer *answer)
{
    uint32_t count = 0;
    for (size_t i = 0; dynamic != NULL && i < dynamic->n_actors; i++) {
        const Wm__Actor *actor = dynamic->actors[i];
        const Ego__PoseAtTime *at = pose_at(actor->trajectory, time_us);
        const char *reason = "has no box";
        struct rig_pose pose;
        if (at == NULL) {
            continue;
        }
        if (count == LIMIT_AGENTS || actor->box == NULL ||
            !contract_pose_read(at->pose, false, &pose, &reason)) {
            alpasim_refuse(answer, GRPC_INVALID_ARGUMENT, "actor %zu: %s", i,
                           count == LIMIT_AGENTS ? "there are too many" : reason);
            return false;
        }
        struct agent *agent = &moment->agents[count];
        agent->kind = kind_of(actor->class_id);
        agent->length_m = (double)actor->box->size_x;
        agent->width_m = (double)actor->box->size_y;
        agent->height_m = (double)actor->box->size_z;
        moment->scene.agents[count] =
            (struct agent_state){.pose = {pose.x_m, pose.y_m, pose.yaw_rad}, .present = true};
        if (!(agent->length_m > 0 && agent->length_m < 100 && agent->width_m > 0 &&
              agent->width_m < 100 && agent->height_m > 0 && agent->height_m < 100)) {
            alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                           "actor %zu: expected a box of more than 0 and less than 100 m", i);
            return false;
        }
        count++;
    }
    moment->scenario.agent_count = moment->scene.agent_count = count;
    return true;
}

/* Pictures of all cameras in a row of frames, as they are packed. */
struct chunk_record {
    Wm__CameraOutput outputs[RIG_CAMERAS_MAX];
    Wm__CameraOutput *output_list[RIG_CAMERAS_MAX];
    Wm__Picture pictures[RIG_CAMERAS_MAX][FRAMES_MAX];
    Wm__Picture *picture_list[RIG_CAMERAS_MAX][FRAMES_MAX];
    struct alpasim_moment moment;
};

/* One frame of all cameras. False: *answer says why not. */
static bool draw_frame(struct alpasim *alpasim, const struct alpasim_session *session,
                       const Wm__Chunk *ask, size_t frame, struct chunk_record *record,
                       struct grpc_answer *answer)
{
    const Ego__PoseAtTime *at = ask->rig_trajectory->poses[frame];
    const double rear_m = session->scene->scenario->ego.wheelbase_m / 2;
    const char *reason = "";
    struct rig_pose pose;
    struct error error;
    alpasim_moment_init(&record->moment, session->scene);
    record->moment.grain = true;
    if (!contract_pose_read(at->pose, false, &pose, &reason)) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT, "pose %zu of the rig %s", frame, reason);
        return false;
    }
    record->moment.scene.ego.pose =
        (struct pose){pose.x_m + rear_m * dmath_cos(pose.yaw_rad),
                      pose.y_m + rear_m * dmath_sin(pose.yaw_rad), pose.yaw_rad};
    if (!actors_place(ask->dynamic, at->timestamp_us, &record->moment, answer)) {
        return false;
    }
    for (uint32_t c = 0; c < session->rig->camera_count; c++) {
        Wm__Picture *picture = &record->pictures[c][frame];
        wm__picture__init(picture);
        picture->format = ALPASIM_JPEG;
        const enum status status =
            alpasim_draw(alpasim, session->scene, &record->moment, &session->rig->cameras[c],
                         rng_mix(session->seed ^ at->timestamp_us) + c, ALPASIM_JPEG,
                         ALPASIM_QUALITY, &picture->data.data, &picture->data.len, &error);
        if (status != STATUS_OK) {
            alpasim_refuse(answer, alpasim_code(status), "camera %s: %s",
                           session->rig->cameras[c].id, error.text);
            return false;
        }
        record->picture_list[c][frame] = picture;
        record->outputs[c].n_frames = frame + 1;
    }
    return true;
}

static void render_chunk(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    const Wm__Chunk *ask = question;
    Wm__ChunkAnswer said = WM__CHUNK_ANSWER__INIT;
    struct alpasim_session *session =
        session_of(alpasim, ask->session != NULL ? ask->session->session_id : "");
    const size_t frames = ask->rig_trajectory != NULL ? ask->rig_trajectory->n_poses : 0;
    if (session == NULL) {
        alpasim_refuse(answer, GRPC_NOT_FOUND, "there is no such session");
        return;
    }
    if (frames < 1 || frames > FRAMES_MAX) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                       "rig_trajectory: expected 1 to %d poses, found %zu", FRAMES_MAX, frames);
        return;
    }
    struct chunk_record *record = calloc(1, sizeof *record);
    if (record == NULL) {
        alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
        return;
    }
    session->used = ++alpasim->uses;
    for (uint32_t c = 0; c < session->rig->camera_count; c++) {
        wm__camera_output__init(&record->outputs[c]);
        record->outputs[c].logical_id = session->rig->cameras[c].id;
        record->outputs[c].frames = record->picture_list[c];
        record->output_list[c] = &record->outputs[c];
    }
    bool good = true;
    for (size_t f = 0; f < frames && good; f++) {
        good = !alpasim_late(answer) && draw_frame(alpasim, session, ask, f, record, answer);
    }
    said.outputs = record->output_list;
    said.n_outputs = session->rig->camera_count;
    if (good) {
        alpasim_answer(answer, &said.base);
    }
    for (uint32_t c = 0; c < session->rig->camera_count; c++) {
        for (size_t f = 0; f < frames; f++) {
            free(record->pictures[c][f].data.data);
        }
    }
    free(record);
}

static void close_session(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    struct alpasim_session *session =
        session_of(alpasim, ((const Wm__Close *)question)->session_id);
    (void)answer; /* an empty one, of a session that is gone too */
    if (session != NULL) {
        session_end(session);
    }
}

bool alpasim_worldmodel(struct alpasim *alpasim, const char *method, const uint8_t *message,
                        size_t bytes, struct grpc_answer *answer)
{
    static const struct alpasim_method rows[] = {
        {"start_session", &wm__start__descriptor, start_session},
        {"render_video_chunk", &wm__chunk__descriptor, render_chunk},
        {"close_session", &wm__close__descriptor, close_session},
        {NULL, NULL, NULL},
    };
    return alpasim_dispatch(alpasim, rows, method, message, bytes, answer);
}
