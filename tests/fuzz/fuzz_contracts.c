/*
 * Fuzz target: messages of AlpaSim's contracts, as a driver, a world model and a caller may send
 * them. The first byte chooses who: an answer to drive, answers of a world model, or a question to
 * one of the services, with sessions open, so that steps are in reach. Each is taken or refused
 * with a sentence, and nothing of it is kept but by sessions, whose number is bounded.
 */
#include "base/check.h"
#include "scenarios/scenarios.h"
#include "schemas/proto/sensorsim.pb-c.h"
#include "schemas/proto/worldmodel.pb-c.h"
#include "worker/alpasim/alpasim.h"
#include "worker/egodriver/egodriver_internal.h"
#include "worker/omnidreams/omnidreams_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SENSORSIM "/nre.grpc.protos.sensorsim.SensorsimService/"
#define WORLDMODEL "/omnidreams.video_model.WorldModelService/"
#define TRAFFIC "/traffic.TrafficService/"

enum { SIDE = 16, PICTURE_BYTES = 3 * SIDE * SIDE };

static const char *const methods[] = {
    SENSORSIM "render_rgb",
    SENSORSIM "batch_render_rgb",
    SENSORSIM "render_aggregated",
    SENSORSIM "get_available_cameras",
    SENSORSIM "get_available_trajectories",
    WORLDMODEL "start_session",
    WORLDMODEL "render_video_chunk",
    WORLDMODEL "close_session",
    TRAFFIC "start_session",
    TRAFFIC "simulate",
    TRAFFIC "close_session",
};

static const char scene_text[] =
    "{\"id\": \"s\", \"title\": \"A lane\", \"map\": {\"lanes\": [{\"id\": \"l\", \"centre_line\":"
    " [[0, 0], [300, 0]], \"width_m\": 3.5}]}, \"horizon_s\": 5, \"ego\": {\"pose\": {\"x_m\": 20,"
    " \"y_m\": 0, \"heading_rad\": 0}, \"speed_mps\": 10, \"route\": [\"l\"]}, \"agents\": [{"
    "\"id\": \"a\", \"kind\": \"car\", \"behaviour\": \"idm\", \"pose\": {\"x_m\": 60, \"y_m\": 0,"
    " \"heading_rad\": 0}, \"speed_mps\": 8}]}";

static struct alpasim *alpasim;
static struct rig rig;

static void begin(void)
{
    static struct suite_entry entry;
    static struct suite suite = {.entry_count = 1, .entries = &entry};
    static struct scenario_document *document;
    struct error error = {STATUS_OK, ""};
    rig_swerve(&rig);
    enum status status =
        scenario_load_text("scene", scene_text, strlen(scene_text), &document, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "%s\n", error.text);
    }
    CHECK(status == STATUS_OK);
    entry.document = document;
    CHECK(alpasim_create(&suite, &rig, &alpasim, &error) == STATUS_OK);
}

static void read_drive(const uint8_t *data, size_t bytes)
{
    static struct ego_told told;
    struct swerve_answer answer;
    uint8_t digest[SHA256_BYTES], again[SHA256_BYTES];
    char reason[EGODRIVER_REASON_BYTES] = "";
    const struct ego_frame frame = {1.4};
    const struct swerve_observation seen = {.tick = 3, .time_ns = 300000000, .speed_mps = 5};
    memset(&answer, 0, sizeof answer);
    if (ego_answer_read(data, bytes, &frame, &seen, &answer, digest, &told, reason)) {
        CHECK(ego_answer_digest(data, bytes, again) && memcmp(digest, again, sizeof digest) == 0);
        CHECK(answer.point_count <= SWERVE_TRAJECTORY_POINTS);
        for (uint32_t i = 0; i < answer.point_count; i++) {
            CHECK(isfinite(answer.points[i].x_m) && isfinite(answer.points[i].heading_rad));
        }
    } else {
        CHECK(reason[0] != '\0');
    }
}

/* Answers of a world model with one small camera and two frames. */
static void read_world(const uint8_t *data, size_t bytes)
{
    static struct rig small = {.camera_count = 1};
    static uint8_t memory[2 * PICTURE_BYTES];
    static const struct swerve_world_chunk chunk = {
        .first_frame = 1, .frame_count = 2, .camera_count = 1};
    char session[OMNIDREAMS_SESSION_BYTES];
    struct error error = {STATUS_OK, ""};
    memcpy(small.cameras[0].id, "c", 2);
    small.cameras[0].width = small.cameras[0].height = SIDE;
    CHECK(omnidreams_session_read(data, bytes, session, &error) == STATUS_OK ||
          error.text[0] != '\0');
    error.text[0] = '\0';
    CHECK(omnidreams_chunk_read(data, bytes, &small, &chunk, memory, &error) == STATUS_OK ||
          error.text[0] != '\0');
}

static bool is_small(const Ego__CameraSpec *camera, uint32_t width, uint32_t height)
{
    const uint32_t sides[] = {camera != NULL ? camera->width : 0,
                              camera != NULL ? camera->height : 0, width, height};
    bool small = true;
    for (size_t i = 0; i < COUNT_OF(sides); i++) {
        small = small && (sides[i] <= 2 * SIDE || sides[i] > RIG_SIDE_MAX);
    }
    return small;
}

/* Whether a question has small pictures alone: others take long, and tell nothing else. */
static bool is_quick(const char *method, const uint8_t *data, size_t bytes)
{
    bool quick = true;
    if (strcmp(method, SENSORSIM "render_rgb") == 0) {
        Sim__Render *one = sim__render__unpack(NULL, bytes, data);
        quick = one == NULL || is_small(one->camera, one->width, one->height);
        sim__render__free_unpacked(one, NULL);
    } else if (strcmp(method, SENSORSIM "batch_render_rgb") == 0) {
        Sim__Batch *batch = sim__batch__unpack(NULL, bytes, data);
        for (size_t i = 0; batch != NULL && i < batch->n_items; i++) {
            const Sim__Render *one = batch->items[i]->request;
            quick = quick && (one == NULL || is_small(one->camera, one->width, one->height));
        }
        sim__batch__free_unpacked(batch, NULL);
    } else if (strcmp(method, SENSORSIM "render_aggregated") == 0) {
        Sim__Aggregated *all = sim__aggregated__unpack(NULL, bytes, data);
        for (size_t i = 0; all != NULL && i < all->n_rgb; i++) {
            const Sim__Render *one = all->rgb[i];
            quick = quick && is_small(one->camera, one->width, one->height);
        }
        sim__aggregated__free_unpacked(all, NULL);
    } else if (strcmp(method, WORLDMODEL "start_session") == 0) {
        Wm__Start *start = wm__start__unpack(NULL, bytes, data);
        for (size_t i = 0; start != NULL && i < start->n_cameras; i++) {
            quick = quick && is_small(start->cameras[i], 0, 0);
        }
        wm__start__free_unpacked(start, NULL);
    }
    return quick;
}

static void ask(const char *method, const uint8_t *data, size_t bytes)
{
    struct grpc_answer answer = {.code = GRPC_OK, .deadline_ns = INT64_MAX};
    alpasim_serve(alpasim, method, data, bytes, &answer);
    CHECK(answer.code == GRPC_OK || (answer.sentence[0] != '\0' && answer.message == NULL));
    free(answer.message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (alpasim == NULL) {
        begin();
    }
    if (bytes < 1) {
        return 0;
    }
    /* A copy of its own, so that AddressSanitizer sees a single byte too far. */
    uint8_t *copy = malloc(bytes);
    CHECK(copy != NULL);
    memcpy(copy, data + 1, bytes - 1);
    const uint32_t who = data[0] % (2 + COUNT_OF(methods));
    if (who == 0) {
        read_drive(copy, bytes - 1);
    } else if (who == 1) {
        read_world(copy, bytes - 1);
    } else if (is_quick(methods[who - 2], copy, bytes - 1)) {
        ask(methods[who - 2], copy, bytes - 1);
    }
    free(copy);
    return 0;
}
