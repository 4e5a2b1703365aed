/*
 * Frames of a recorded tick. See draw_frames.h.
 */
#include "report/draw/draw_frames.h"

#include "base/base64.h"
#include "base/jpeg/jpeg_encode.h"
#include "report/draw/draw_sensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { JPEG_QUALITY = 90, JPEG_HEAD_BYTES = 2048 };

/* The rig that the planner saw by: the built-in one, or the scenario's. */
static enum status find_rig(const struct report_drive *drive, const struct outcome *outcome,
                            struct rig *out, struct error *error)
{
    const struct rig *own = drive->document->scenario.rig;
    char hash[SHA256_HEX_BYTES] = "";
    if (outcome->rig[0] == '\0') {
        rig_swerve(out);
        return STATUS_OK;
    }
    if (own != NULL) {
        TRY(rig_hash(own, hash, error));
    }
    if (strcmp(hash, outcome->rig) != 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "outcome %lld: its planner brought the rig %.12s, of which the store has "
                         "no more than the hash",
                         (long long)outcome->id, outcome->rig);
    }
    *out = *own;
    return STATUS_OK;
}

static enum status check_size(const struct rig *rig, struct error *error)
{
    const uint64_t pixels = rig_bytes(rig) / 3;
    if (pixels > DRAW_FRAMES_PIXELS_MAX) {
        return error_set(error, STATUS_LIMIT,
                         "rig %s: expected at most %d pixels to be shown at once, found %llu",
                         rig->id, DRAW_FRAMES_PIXELS_MAX, (unsigned long long)pixels);
    }
    return STATUS_OK;
}

/* One camera's newest frame, added to the list. */
static enum status add_camera(struct draw_sensors *sight, const struct rig *rig, uint32_t index,
                              json_t *list, struct error *error)
{
    const struct rig_camera *camera = &rig->cameras[index];
    const uint32_t width = (uint32_t)camera->width;
    const uint32_t height = (uint32_t)camera->height;
    const size_t room = (size_t)width * height * 3 + JPEG_HEAD_BYTES;
    int64_t time_ns = 0;
    size_t bytes = 0;
    const uint8_t *rgb =
        draw_sensors_frame(sight, index, draw_sensors_frames(sight, index) - 1, &time_ns);
    uint8_t *packed = malloc(room);
    TRY(memory_check(packed, error, "no memory for a frame of camera %s", camera->id));
    enum status status = jpeg_encode(rgb, width, height, JPEG_QUALITY, packed, room, &bytes, error);
    char *text = status == STATUS_OK ? malloc(base64_bytes(bytes) + 1) : NULL;
    THEN(status, memory_check(text, error, "no memory for a frame of camera %s", camera->id));
    if (status == STATUS_OK) {
        base64_encode(packed, bytes, text);
        json_t *made = json_pack("{s:s, s:i, s:i, s:s}", "id", camera->id, "width", (int)width,
                                 "height", (int)height, "jpeg", text);
        if (json_array_append_new(list, made) != 0) {
            status = error_set(error, STATUS_NO_MEMORY, "no memory for a frame of camera %s",
                               camera->id);
        }
    }
    free(text);
    free(packed);
    return status;
}

/* The cameras at a tick of an opened drive. */
static enum status draw_cameras(struct report_drive *drive, const struct outcome *outcome,
                                uint32_t tick, const struct rig *rig, json_t *list,
                                struct error *error)
{
    struct draw_sensors *sight = NULL;
    const int32_t rollout = report_drive_rollout(drive, outcome->branch_id);
    if (report_drive_has_keyframes(drive)) {
        return error_set(error, STATUS_NOT_FOUND,
                         "outcome %lld: its pictures are a world model's, of which the drive has "
                         "those that were kept",
                         (long long)outcome->id);
    }
    TRY(draw_sensors_create(rig, &sight, error));
    enum status status = STATUS_OK;
    if (rollout < 0 || !draw_sensors_look(sight, drive, rollout, tick, outcome->seed)) {
        status = error_set(error, STATUS_NOT_FOUND,
                           "outcome %lld: expected a recorded tick, found %u of %u",
                           (long long)outcome->id, tick, outcome->ticks);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < rig->camera_count; i++) {
        status = add_camera(sight, rig, i, list, error);
    }
    draw_sensors_destroy(sight);
    return status;
}

static enum status open_drive(struct store *store, const struct outcome *outcome,
                              struct report_drive *drive, struct error *error)
{
    if (outcome->artifact_hash[0] == '\0') {
        return error_set(error, STATUS_NOT_FOUND, "outcome %lld: no trace of it was kept",
                         (long long)outcome->id);
    }
    return report_drive_open(drive, store, outcome->scenario_hash, outcome->artifact_hash, error);
}

enum status draw_frames_fetch(struct store *store, int64_t outcome_id, uint32_t tick, char **json,
                              size_t *bytes, struct error *error)
{
    const struct store_outcome_filter filter = {.outcome_id = outcome_id, .limit = 1};
    struct report_drive drive = {0};
    struct outcome *outcome = calloc(1, sizeof *outcome);
    json_t *list = json_array();
    struct rig rig;
    uint32_t count = 0;
    enum status status =
        memory_check(list != NULL ? outcome : NULL, error, "no memory for frames of a tick");
    THEN(status, store->ops->outcomes(store, &filter, outcome, &count, error));
    if (status == STATUS_OK && count == 0) {
        status = error_set(error, STATUS_NOT_FOUND, "outcome %lld: there is none",
                           (long long)outcome_id);
    }
    THEN(status, open_drive(store, outcome, &drive, error));
    THEN(status, find_rig(&drive, outcome, &rig, error));
    THEN(status, check_size(&rig, error));
    THEN(status, draw_cameras(&drive, outcome, tick, &rig, list, error));
    if (status == STATUS_OK) {
        json_t *told =
            json_pack("{s:s, s:i, s:O}", "rig", rig.id, "tick", (int)tick, "cameras", list);
        char *text = told != NULL ? json_dumps(told, JSON_COMPACT) : NULL;
        json_decref(told);
        status = memory_check(text, error, "no memory for frames of a tick");
        if (status == STATUS_OK) {
            *json = text;
            *bytes = strlen(text);
        }
    }
    report_drive_close(&drive);
    json_decref(list);
    free(outcome);
    return status;
}
