/*
 * Choices of sensors: their JSON, and what each takes. See rig_choice.h.
 */
#include "schemas/rig/rig_choice.h"

#include "schemas/json_read.h"
#include "schemas/observation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ENCODING_BYTES = 16,
    JPEG_BLOCK = 16,        /* pixels: sides are filled up to it */
    JPEG_HEAD_BYTES = 2048, /* tables and markers */
    SENSOR_IDS_BYTES = 400,
};

/* Ids that a planner may choose. */
static const char *list_ids(const struct rig *rig, char out[SENSOR_IDS_BYTES])
{
    size_t used = 0;
    snprintf(out, SENSOR_IDS_BYTES, "%s", rig->bev ? RIG_BEV_ID : "");
    for (uint32_t i = 0; i < rig->camera_count + rig->lidar_count; i++) {
        bool camera = i < rig->camera_count;
        used = strlen(out);
        snprintf(out + used, SENSOR_IDS_BYTES - used, "%s%s", used > 0 ? ", " : "",
                 camera ? rig->cameras[i].id : rig->lidars[i - rig->camera_count].id);
    }
    return out[0] != '\0' ? out : "it has none that a planner can see";
}

/* The sensor of an id, plain. */
static enum status find_sensor(const struct json_cursor *at, const struct rig *rig, const char *id,
                               struct rig_chosen *out, struct error *error)
{
    if (rig->bev && strcmp(id, RIG_BEV_ID) == 0) {
        *out = (struct rig_chosen){.kind = RIG_GRID};
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        if (strcmp(rig->cameras[i].id, id) == 0) {
            *out = (struct rig_chosen){.kind = RIG_CAMERA, .index = i};
            return STATUS_OK;
        }
    }
    char ids[SENSOR_IDS_BYTES];
    for (uint32_t i = 0; i < rig->lidar_count; i++) {
        if (strcmp(rig->lidars[i].id, id) == 0) {
            *out = (struct rig_chosen){.kind = RIG_LIDAR, .index = i};
            return STATUS_OK;
        }
    }
    return json_fail(at, error, "expected a sensor of the rig %s (%s), found \"%s\"", rig->id,
                     list_ids(rig, ids), id);
}

/* "rgb", or "jpeg:" and a quality. */
static enum status decode_encoding(const struct json_cursor *sensor, struct rig_chosen *out,
                                   struct error *error)
{
    char text[ENCODING_BYTES];
    char letter;
    unsigned quality = 0;
    struct json_cursor encoding = json_cursor_member(sensor, "encoding");
    if (!json_cursor_present(&encoding)) {
        return STATUS_OK;
    }
    TRY(json_value_text(&encoding, text, sizeof text, error));
    if (strcmp(text, "rgb") == 0) {
        return STATUS_OK;
    }
    if (sscanf(text, "jpeg:%3u%c", &quality, &letter) != 1 || quality < 1 || quality > 100) {
        return json_fail(&encoding, error,
                         "expected \"rgb\", or \"jpeg:\" and a quality of 1 to 100, found \"%s\"",
                         text);
    }
    if (out->kind != RIG_CAMERA) {
        return json_fail(&encoding, error, "expected \"rgb\", found \"%s\": %s is no picture", text,
                         out->kind == RIG_GRID ? "the grid" : "a scan");
    }
    out->jpeg_quality = quality;
    return STATUS_OK;
}

static enum status decode_sensor(const struct json_cursor *cursor, const struct rig *rig,
                                 struct rig_chosen *out, struct error *error)
{
    static const char *const keys[] = {"id", "encoding", NULL};
    char id[RIG_ID_MAX];
    if (json_is_string(cursor->value)) {
        TRY(json_value_text(cursor, id, sizeof id, error));
        return find_sensor(cursor, rig, id, out, error);
    }
    TRY(json_object_begin(cursor, keys, error));
    struct json_cursor named = json_cursor_member(cursor, "id");
    TRY(json_value_text(&named, id, sizeof id, error));
    TRY(find_sensor(&named, rig, id, out, error));
    return decode_encoding(cursor, out, error);
}

static enum status decode_choice(const struct json_cursor *root, struct rig *rig,
                                 struct rig_choice *out, struct error *error)
{
    static const char *const keys[] = {"sensors", "rig", NULL};
    size_t count = 0;
    TRY(json_object_begin(root, keys, error));
    struct json_cursor own = json_cursor_member(root, "rig");
    if (json_cursor_present(&own)) {
        TRY(rig_decode(root->file, own.value, rig, error));
    }
    struct json_cursor sensors = json_cursor_member(root, "sensors");
    TRY(json_array_begin(&sensors, 0, RIG_SENSORS_MAX, &count, error));
    out->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&sensors, i);
        struct rig_chosen *chosen = &out->sensors[i];
        TRY(decode_sensor(&element, rig, chosen, error));
        for (size_t k = 0; k < i; k++) {
            if (out->sensors[k].kind == chosen->kind && out->sensors[k].index == chosen->index) {
                return json_fail(&element, error, "expected each sensor once, found %s twice",
                                 rig_chosen_id(rig, chosen));
            }
        }
    }
    return STATUS_OK;
}

enum status rig_choice_decode(const char *source, const char *text, size_t bytes, struct rig *rig,
                              struct rig_choice *out, struct error *error)
{
    json_t *document = NULL;
    struct rig_choice choice = {0};
    struct rig *of = malloc(sizeof *of);
    TRY(memory_check(of, error, "%s: no memory for a rig", source));
    *of = *rig;
    enum status status = json_read_text(source, text, bytes, &document, error);
    if (status == STATUS_OK) {
        const struct json_cursor root = json_cursor_root(source, document);
        status = decode_choice(&root, of, &choice, error);
    }
    if (status == STATUS_OK) {
        *rig = *of;
        *out = choice;
    }
    json_decref(document);
    free(of);
    return status;
}

const char *rig_chosen_id(const struct rig *rig, const struct rig_chosen *chosen)
{
    return chosen->kind == RIG_GRID    ? RIG_BEV_ID
           : chosen->kind == RIG_LIDAR ? rig->lidars[chosen->index].id
                                       : rig->cameras[chosen->index].id;
}

void rig_chosen_size(const struct rig *rig, const struct rig_chosen *chosen, uint32_t *width,
                     uint32_t *height)
{
    if (chosen->kind == RIG_GRID) {
        *width = BEV_COLS;
        *height = BEV_ROWS;
    } else if (chosen->kind == RIG_LIDAR) {
        *width = (uint32_t)rig->lidars[chosen->index].azimuths;
        *height = rig->lidars[chosen->index].elevation_count;
    } else {
        *width = (uint32_t)rig->cameras[chosen->index].width;
        *height = (uint32_t)rig->cameras[chosen->index].height;
    }
}

uint32_t rig_chosen_frames(const struct rig *rig, const struct rig_chosen *chosen)
{
    return chosen->kind == RIG_CAMERA ? rig_camera_frames(&rig->cameras[chosen->index]) : 1;
}

static size_t filled_up(uint32_t side)
{
    return ((size_t)side + JPEG_BLOCK - 1) / JPEG_BLOCK * JPEG_BLOCK;
}

size_t rig_chosen_bytes(const struct rig *rig, const struct rig_chosen *chosen)
{
    uint32_t width;
    uint32_t height;
    rig_chosen_size(rig, chosen, &width, &height);
    if (chosen->kind == RIG_GRID) {
        return BEV_BYTES;
    }
    if (chosen->kind == RIG_LIDAR) {
        return (size_t)width * height * RIG_POINT_BYTES;
    }
    if (chosen->jpeg_quality > 0) {
        /* Noise at quality 100 stays below its pixels' bytes. */
        return filled_up(width) * filled_up(height) * 3 + JPEG_HEAD_BYTES;
    }
    return (size_t)width * height * 3;
}

size_t rig_chosen_tick_bytes(const struct rig *rig, const struct rig_chosen *chosen)
{
    return rig_chosen_frames(rig, chosen) * rig_chosen_bytes(rig, chosen);
}
