/*
 * SensorsimService: a picture at a time, of the scene that a question names, from where it says.
 * See alpasim.h.
 *
 * Poses of sensors are those of optical frames (x right, y down), in the scenario's frame.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "worker/alpasim/alpasim_internal.h"

#include "schemas/proto/sensorsim.pb-c.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 64 };

/* ---- a picture ---- */

/* Those whom the question places; ids of tracks are the scenario's ids of agents. */
static bool objects_place(const Sim__Render *ask, const struct scenario *scenario,
                          struct alpasim_moment *moment, struct grpc_answer *answer)
{
    uint32_t count = 0;
    for (size_t i = 0; i < ask->n_objects; i++) {
        const Sim__DynamicObject *object = ask->objects[i];
        const char *reason = "has no pose";
        struct rig_pose pose;
        uint32_t at = 0;
        while (at < scenario->agent_count &&
               strcmp(scenario->agents[at].id, object->track_id) != 0) {
            at++;
        }
        if (at == scenario->agent_count) {
            alpasim_refuse(answer, GRPC_NOT_FOUND, "scene %s has no agent %.60s", scenario->id,
                           object->track_id);
            return false;
        }
        if (count == LIMIT_AGENTS || object->pose == NULL ||
            !contract_pose_read(object->pose->start, false, &pose, &reason)) {
            alpasim_refuse(answer, GRPC_INVALID_ARGUMENT, "object %.60s: %s", object->track_id,
                           count == LIMIT_AGENTS ? "there are too many" : reason);
            return false;
        }
        moment->agents[count] = scenario->agents[at];
        moment->scene.agents[count++] =
            (struct agent_state){.pose = {pose.x_m, pose.y_m, pose.yaw_rad}, .present = true};
    }
    moment->scenario.agent_count = moment->scene.agent_count = count;
    return true;
}

/* A camera with its lens and the size that is asked for, upright over ego of the moment, which
 * stands below it. */
static bool camera_place(const Sim__Render *ask, struct rig_camera *camera,
                         struct alpasim_moment *moment, struct grpc_answer *answer)
{
    const char *reason = "has no intrinsics";
    const Ego__Pose *pose = ask->sensor_pose != NULL ? ask->sensor_pose->start : NULL;
    Ego__CameraSpec spec = ask->camera != NULL ? *ask->camera : (Ego__CameraSpec){.width = 0};
    spec.width = spec.width != 0 ? spec.width : ask->width;
    spec.height = spec.height != 0 ? spec.height : ask->height;
    memset(camera, 0, sizeof *camera);
    if (ask->camera == NULL || !contract_lens_read(&spec, camera, &reason) ||
        !contract_lens_scale(camera, ask->width != 0 ? ask->width : spec.width,
                             ask->height != 0 ? ask->height : spec.height, &reason) ||
        !contract_pose_read(pose, true, &camera->pose, &reason)) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT, "the camera %s", reason);
        return false;
    }
    moment->scene.ego.pose =
        (struct pose){camera->pose.x_m, camera->pose.y_m, camera->pose.yaw_rad};
    camera->pose.x_m = camera->pose.y_m = camera->pose.yaw_rad = 0;
    /* Floats of a turning ego differ in their last bits: rays are kept by these. */
    camera->pose.z_m = round(camera->pose.z_m * 1e4) / 1e4;
    camera->pose.roll_rad = round(camera->pose.roll_rad * 1e5) / 1e5;
    camera->pose.pitch_rad = round(camera->pose.pitch_rad * 1e5) / 1e5;
    return true;
}

/* Draws what a question asks for; the file is the caller's. False: *answer says why not. */
static bool render(struct alpasim *alpasim, const Sim__Render *ask, ProtobufCBinaryData *file,
                   struct grpc_answer *answer)
{
    struct rig_camera camera;
    struct error error;
    const float quality = ask->quality > 0 ? ask->quality : (float)ALPASIM_QUALITY;
    struct alpasim_scene *scene = alpasim_find(alpasim, ask->scene_id, answer);
    if (scene == NULL || alpasim_late(answer)) {
        return false;
    }
    if ((ask->format != ALPASIM_PNG && ask->format != ALPASIM_JPEG) ||
        !(quality >= 1 && quality <= 100)) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                       "image_format: expected PNG (1) or JPEG (2) of a quality of 1 to 100");
        return false;
    }
    struct alpasim_moment *moment = malloc(sizeof *moment);
    if (moment == NULL) {
        alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
        return false;
    }
    alpasim_moment_init(moment, scene);
    const bool placed = camera_place(ask, &camera, moment, answer) &&
                        objects_place(ask, scene->scenario, moment, answer);
    enum status status = STATUS_OK;
    if (placed) {
        status = alpasim_draw(alpasim, scene, moment, &camera, 0, ask->format, (uint32_t)quality,
                              &file->data, &file->len, &error);
    }
    if (status != STATUS_OK) {
        alpasim_refuse(answer, alpasim_code(status), "%s", error.text);
    }
    free(moment);
    return placed && status == STATUS_OK;
}

static void render_rgb(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    Sim__RenderAnswer said = SIM__RENDER_ANSWER__INIT;
    if (render(alpasim, question, &said.image, answer)) {
        alpasim_answer(answer, &said.base);
    }
    free(said.image.data);
}

static void render_batch(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    const Sim__Batch *ask = question;
    Sim__BatchAnswer said = SIM__BATCH_ANSWER__INIT;
    Sim__BatchAnswerItem items[BATCH_MAX];
    Sim__RenderAnswer results[BATCH_MAX];
    Sim__BatchAnswerItem *list[BATCH_MAX];
    struct grpc_answer each[BATCH_MAX];
    if (ask->n_items > BATCH_MAX) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT, "expected at most %d items, found %zu",
                       BATCH_MAX, ask->n_items);
        return;
    }
    for (size_t i = 0; i < ask->n_items; i++) {
        sim__batch_answer_item__init(&items[i]);
        sim__render_answer__init(&results[i]);
        each[i] = (struct grpc_answer){.code = GRPC_OK, .deadline_ns = answer->deadline_ns};
        list[i] = &items[i];
        items[i].camera_name = ask->items[i]->camera_name;
        if (ask->items[i]->request == NULL) {
            alpasim_refuse(&each[i], GRPC_INVALID_ARGUMENT, "item %zu has no request", i);
        }
        items[i].success = ask->items[i]->request != NULL &&
                           render(alpasim, ask->items[i]->request, &results[i].image, &each[i]);
        grpc_sentence_clean(each[i].sentence);
        items[i].error_message = each[i].sentence;
        items[i].result = items[i].success ? &results[i] : NULL;
    }
    said.items = list;
    said.n_items = ask->n_items;
    if (!alpasim_late(answer)) {
        alpasim_answer(answer, &said.base);
    }
    for (size_t i = 0; i < ask->n_items; i++) {
        free(results[i].image.data);
    }
}

static void render_aggregated(struct alpasim *alpasim, const void *question,
                              struct grpc_answer *answer)
{
    const Sim__Aggregated *ask = question;
    Sim__AggregatedAnswer said = SIM__AGGREGATED_ANSWER__INIT;
    Sim__RenderAnswer results[BATCH_MAX];
    Sim__RenderAnswer *list[BATCH_MAX];
    bool good = ask->n_rgb <= BATCH_MAX;
    if (!good) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT, "expected at most %d requests, found %zu",
                       BATCH_MAX, ask->n_rgb);
    }
    for (size_t i = 0; i < ask->n_rgb && good; i++) {
        sim__render_answer__init(&results[i]);
        list[i] = &results[i];
        good = render(alpasim, ask->rgb[i], &results[i].image, answer);
        said.n_rgb = i + 1;
    }
    said.rgb = list;
    if (good) {
        alpasim_answer(answer, &said.base);
    }
    for (size_t i = 0; i < said.n_rgb; i++) {
        free(results[i].image.data);
    }
}

/* ---- what there is ---- */

void alpasim_tell_scenes(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    Sim__Scenes said = SIM__SCENES__INIT;
    char **ids = malloc((alpasim->scene_count + 1) * sizeof *ids);
    (void)question;
    if (ids == NULL) {
        alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
        return;
    }
    for (uint32_t i = 0; i < alpasim->scene_count; i++) {
        ids[i] = (char *)(uintptr_t)alpasim->scenes[i].scenario->id;
    }
    said.scene_ids = ids;
    said.n_scene_ids = alpasim->scene_count;
    alpasim_answer(answer, &said.base);
    free(ids);
}

/* Scenes that are ready; any number can be. */
static void tell_loaded(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    Sim__LoadedScenes said = SIM__LOADED_SCENES__INIT;
    Sim__LoadedScene *scenes = calloc(alpasim->scene_count + 1, sizeof *scenes);
    Sim__LoadedScene **list = calloc(alpasim->scene_count + 1, sizeof *list);
    (void)question;
    if (scenes == NULL || list == NULL) {
        alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
    }
    for (uint32_t i = 0; i < alpasim->scene_count && answer->code == GRPC_OK; i++) {
        if (alpasim->scenes[i].prepared != NULL) {
            Sim__LoadedScene *scene = &scenes[said.n_scenes];
            sim__loaded_scene__init(scene);
            scene->scene_id = (char *)(uintptr_t)alpasim->scenes[i].scenario->id;
            scene->loaded = scene->reusable = 1;
            list[said.n_scenes++] = scene;
        }
    }
    said.scenes = list;
    said.capacity = alpasim->scene_count;
    if (answer->code == GRPC_OK) {
        alpasim_answer(answer, &said.base);
    }
    free(scenes);
    free(list);
}

static void tell_cameras(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    const struct alpasim_scene *scene =
        alpasim_find(alpasim, ((const Sim__OfScene *)question)->scene_id, answer);
    struct contract_camera *records = calloc(RIG_CAMERAS_MAX, sizeof *records);
    Ego__Camera *list[RIG_CAMERAS_MAX];
    Sim__Cameras said = SIM__CAMERAS__INIT;
    if (scene != NULL && records == NULL) {
        alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
    } else if (scene != NULL) {
        const struct rig *rig = scene->scenario->rig != NULL ? scene->scenario->rig : alpasim->rig;
        for (uint32_t i = 0; i < rig->camera_count; i++) {
            contract_camera_fill(&records[i], &rig->cameras[i],
                                 scene->scenario->ego.wheelbase_m / 2, true);
            list[i] = &records[i].camera;
        }
        said.cameras = list;
        said.n_cameras = rig->camera_count;
        alpasim_answer(answer, &said.base);
    }
    free(records);
}

/* Ego's drive where the scenario has one, else where it begins. */
static void tell_trajectories(struct alpasim *alpasim, const void *question,
                              struct grpc_answer *answer)
{
    const struct alpasim_scene *scene =
        alpasim_find(alpasim, ((const Sim__OfScene *)question)->scene_id, answer);
    if (scene == NULL) {
        return;
    }
    const struct ego *ego = &scene->scenario->ego;
    const struct trajectory_point start = {0, ego->pose.x_m, ego->pose.y_m, ego->pose.heading_rad,
                                           ego->speed_mps};
    const struct trajectory_point *points = ego->log.point_count > 0 ? ego->log.points : &start;
    const uint32_t count = ego->log.point_count > 0 ? ego->log.point_count : 1;
    struct contract_pose *records = calloc(count, sizeof *records);
    Ego__PoseAtTime **list = calloc(count, sizeof *list);
    Ego__Trajectory trajectory = EGO__TRAJECTORY__INIT;
    Sim__DrivenTrajectory driven = SIM__DRIVEN_TRAJECTORY__INIT;
    Sim__DrivenTrajectory *only[] = {&driven};
    Sim__Trajectories said = SIM__TRAJECTORIES__INIT;
    if (records == NULL || list == NULL) {
        alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
    }
    for (uint32_t i = 0; i < count && answer->code == GRPC_OK; i++) {
        const struct trajectory_point *point = &points[i];
        contract_pose_fill(&records[i], (uint64_t)(point->t_s > 0 ? point->t_s * 1e6 + 0.5 : 0),
                           point->x_m - ego->wheelbase_m / 2 * dmath_cos(point->heading_rad),
                           point->y_m - ego->wheelbase_m / 2 * dmath_sin(point->heading_rad), 0,
                           point->heading_rad);
        list[i] = &records[i].at;
    }
    trajectory.poses = list;
    trajectory.n_poses = count;
    driven.trajectory = &trajectory;
    said.trajectories = only;
    said.n_trajectories = 1;
    if (answer->code == GRPC_OK) {
        alpasim_answer(answer, &said.base);
    }
    free(records);
    free(list);
}

static void tell_nothing(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    (void)alpasim;
    (void)question;
    (void)answer; /* an empty list */
}

bool alpasim_sensorsim(struct alpasim *alpasim, const char *method, const uint8_t *message,
                       size_t bytes, struct grpc_answer *answer)
{
    static const struct alpasim_method rows[] = {
        {"render_rgb", &sim__render__descriptor, render_rgb},
        {"batch_render_rgb", &sim__batch__descriptor, render_batch},
        {"render_aggregated", &sim__aggregated__descriptor, render_aggregated},
        {"get_available_scenes", &sim__empty__descriptor, alpasim_tell_scenes},
        {"get_loaded_scenes", &sim__empty__descriptor, tell_loaded},
        {"get_available_cameras", &sim__of_scene__descriptor, tell_cameras},
        {"get_available_trajectories", &sim__of_scene__descriptor, tell_trajectories},
        {"get_available_ego_masks", &sim__empty__descriptor, tell_nothing},
        {NULL, NULL, NULL},
    };
    return alpasim_dispatch(alpasim, rows, method, message, bytes, answer);
}
