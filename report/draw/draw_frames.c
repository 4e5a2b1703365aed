/*
 * Frames of a recorded tick. See draw_frames.h.
 */
#include "report/draw/draw_frames.h"

#include "base/base64.h"
#include "base/jpeg/jpeg_decode.h"
#include "base/jpeg/jpeg_encode.h"
#include "engine/rigs/watch.h"
#include "report/draw/draw_sensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JPEG_QUALITY = 90, JPEG_HEAD_BYTES = 2048 };

struct sent_picture {
    const char *id;
    uint32_t width, height;
    const uint8_t *jpeg; /* [bytes] */
    size_t bytes;
};

struct frames_asked {
    struct report_drive *drive;
    const struct outcome *outcome;
    int32_t rollout;
    uint32_t tick;
    uint32_t width_max; /* 0: pictures as they are */
};

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

static enum status add_text(const struct sent_picture *picture, json_t *list, struct error *error)
{
    char *text = malloc(base64_bytes(picture->bytes) + 1);
    TRY(memory_check(text, error, "no memory for a frame of camera %s", picture->id));
    base64_encode(picture->jpeg, picture->bytes, text);
    json_t *made = json_pack("{s:s, s:i, s:i, s:s}", "id", picture->id, "width",
                             (int)picture->width, "height", (int)picture->height, "jpeg", text);
    free(text);
    return json_array_append_new(list, made) == 0
               ? STATUS_OK
               : error_set(error, STATUS_NO_MEMORY, "no memory for a frame of camera %s",
                           picture->id);
}

/* Adds pixels [height][width][3], of at most width_max columns (0: as they are). */
static enum status add_pixels(const uint8_t *rgb, struct sent_picture picture, uint32_t width_max,
                              json_t *list, struct error *error)
{
    uint8_t *small = NULL;
    enum status status = STATUS_OK;
    size_t bytes = 0;
    if (width_max > 0 && picture.width > width_max) {
        const uint32_t rows = (picture.height * width_max + picture.width / 2) / picture.width;
        small = malloc((size_t)width_max * (rows > 0 ? rows : 1) * 3);
        status = memory_check(small, error, "no memory for a frame of camera %s", picture.id);
        if (status == STATUS_OK) {
            watch_shrink(rgb, picture.width, picture.height, width_max, rows > 0 ? rows : 1, small);
            picture.width = width_max;
            picture.height = rows > 0 ? rows : 1;
            rgb = small;
        }
    }
    const size_t room = (size_t)picture.width * picture.height * 3 + JPEG_HEAD_BYTES;
    uint8_t *packed = malloc(room);
    THEN(status, memory_check(packed, error, "no memory for a frame of camera %s", picture.id));
    THEN(status, jpeg_encode(rgb, picture.width, picture.height, JPEG_QUALITY, packed, room, &bytes,
                             error));
    picture.jpeg = packed;
    picture.bytes = bytes;
    THEN(status, add_text(&picture, list, error));
    free(packed);
    free(small);
    return status;
}

/* The newest frames of a tick of an opened drive, drawn again. */
static enum status add_drawn(const struct frames_asked *asked, const struct rig *rig, json_t *list,
                             struct error *error)
{
    const struct outcome *outcome = asked->outcome;
    struct draw_sensors *sight = NULL;
    TRY(draw_sensors_create(rig, &sight, error));
    enum status status = STATUS_OK;
    if (!draw_sensors_look(sight, asked->drive, asked->rollout, asked->tick, outcome->seed)) {
        status = error_set(error, STATUS_NOT_FOUND,
                           "outcome %lld: expected a recorded tick, found %u of %u",
                           (long long)outcome->id, asked->tick, outcome->ticks);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < rig->camera_count; i++) {
        const struct rig_camera *camera = &rig->cameras[i];
        int64_t time_ns = 0;
        const uint8_t *rgb =
            draw_sensors_frame(sight, i, draw_sensors_frames(sight, i) - 1, &time_ns);
        const struct sent_picture picture = {
            .id = camera->id, .width = (uint32_t)camera->width, .height = (uint32_t)camera->height};
        status = add_pixels(rgb, picture, asked->width_max, list, error);
    }
    draw_sensors_destroy(sight);
    return status;
}

static enum status add_kept_small(const struct trace_picture_view *view,
                                  const struct sent_picture *picture, uint32_t width_max,
                                  json_t *list, struct error *error)
{
    uint8_t *rgb = malloc((size_t)picture->width * picture->height * 3);
    enum status status =
        memory_check(rgb, error, "no memory for a frame of camera %s", picture->id);
    THEN(status,
         jpeg_decode(view->jpeg, view->head.bytes, picture->width, picture->height, rgb, error));
    THEN(status, add_pixels(rgb, *picture, width_max, list, error));
    free(rgb);
    return status;
}

/* The kept ones that are nearest to the tick, which is moved there. */
static enum status add_kept(struct frames_asked *asked, json_t *list, struct error *error)
{
    struct trace_picture_view views[TRACE_CAMERAS_MAX];
    uint32_t count =
        trace_reader_pictures(&asked->drive->reader, asked->rollout, asked->tick, views);
    if (count == 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "outcome %lld: its pictures are a world model's, and none of them were "
                         "kept",
                         (long long)asked->outcome->id);
    }
    asked->tick = views[0].head.tick;
    for (uint32_t i = 0; i < count; i++) {
        const struct sent_picture picture = {.id = views[i].head.id,
                                             .width = views[i].head.width,
                                             .height = views[i].head.height,
                                             .jpeg = views[i].jpeg,
                                             .bytes = views[i].head.bytes};
        TRY(asked->width_max > 0 && picture.width > asked->width_max
                ? add_kept_small(&views[i], &picture, asked->width_max, list, error)
                : add_text(&picture, list, error));
    }
    return STATUS_OK;
}

static enum status write_frames(const struct frames_asked *asked, const char *rig, json_t *list,
                                char **json, size_t *bytes, struct error *error)
{
    json_t *told =
        json_pack("{s:s, s:i, s:O}", "rig", rig, "tick", (int)asked->tick, "cameras", list);
    char *text = told != NULL ? json_dumps(told, JSON_COMPACT) : NULL;
    json_decref(told);
    TRY(memory_check(text, error, "no memory for frames of a tick"));
    *json = text;
    *bytes = strlen(text);
    return STATUS_OK;
}

enum status draw_frames(struct report_drive *drive, const struct outcome *outcome, uint32_t tick,
                        uint32_t width_max, char **json, size_t *bytes, struct error *error)
{
    struct frames_asked asked = {drive, outcome, report_drive_rollout(drive, outcome->branch_id),
                                 tick, width_max};
    const bool made = report_drive_has_keyframes(drive);
    char name[REPORT_RIG_BYTES] = "swerve";
    struct rig *rig = malloc(sizeof *rig);
    json_t *list = json_array();
    enum status status =
        memory_check(rig != NULL ? list : NULL, error, "no memory for frames of a tick");
    if (status == STATUS_OK && asked.rollout < 0) {
        status = error_set(error, STATUS_NOT_FOUND, "outcome %lld: not in its trace",
                           (long long)outcome->id);
    }
    if (status == STATUS_OK && made) {
        if (outcome->rig[0] != '\0' && find_rig(drive, outcome, rig, error) == STATUS_OK) {
            snprintf(name, sizeof name, "%s", rig->id);
        } else if (outcome->rig[0] != '\0') {
            snprintf(name, sizeof name, "%.12s", outcome->rig);
        }
        status = add_kept(&asked, list, error);
    } else {
        THEN(status, find_rig(drive, outcome, rig, error));
        THEN(status, check_size(rig, error));
        if (status == STATUS_OK) {
            snprintf(name, sizeof name, "%s", rig->id);
        }
        THEN(status, add_drawn(&asked, rig, list, error));
    }
    THEN(status, write_frames(&asked, name, list, json, bytes, error));
    json_decref(list);
    free(rig);
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
    uint32_t count = 0;
    enum status status = memory_check(outcome, error, "no memory for frames of a tick");
    THEN(status, store->ops->outcomes(store, &filter, outcome, &count, error));
    if (status == STATUS_OK && count == 0) {
        status = error_set(error, STATUS_NOT_FOUND, "outcome %lld: there is none",
                           (long long)outcome_id);
    }
    THEN(status, open_drive(store, outcome, &drive, error));
    THEN(status, draw_frames(&drive, outcome, tick, 0, json, bytes, error));
    report_drive_close(&drive);
    free(outcome);
    return status;
}
