/*
 * Rig codec: rig.json both ways, its canonical hash, and the built-in rig.
 *
 * Invariant: what decoding accepts, encoding writes and decoding reads back as the same record.
 */
#include "schemas/rig/rig.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "schemas/observation.h"
#include "schemas/scenario_members.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CENTRE_MAX 1e5  /* pixels, of focal lengths and principal points */
#define ANGLE_MAX 3.142 /* to the axis */
#define SHUTTER_MAX_MS 100.0
#define ID_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

const char *const lens_model_names[LENS_MODEL_COUNT] = {"pinhole", "fisheye", "ftheta"};
const char *const rig_shutter_names[SHUTTER_COUNT] = {"global", "rolling_top", "rolling_bottom",
                                                      "rolling_left", "rolling_right"};

enum { PINHOLE = 1 << LENS_PINHOLE, FISHEYE = 1 << LENS_FISHEYE, FTHETA = 1 << LENS_FTHETA };

/* A row each. */
/* clang-format off */
MEMBERS(rig_pose,
    NUMBER(struct rig_pose, x_m, -50, 50, .required = true),
    NUMBER(struct rig_pose, y_m, -50, 50, .required = true),
    NUMBER(struct rig_pose, z_m, 0.05, 20, .required = true),
    ANGLE(struct rig_pose, roll_rad, OPTIONAL(0)),
    ANGLE(struct rig_pose, pitch_rad, OPTIONAL(0)),
    ANGLE(struct rig_pose, yaw_rad, OPTIONAL(0)));

MEMBERS(rig_lens,
    CHOICE(struct rig_lens, model, lens_model_names, LENS_MODEL_COUNT, OPTIONAL(LENS_PINHOLE)),
    NUMBER(struct rig_lens, fx, 1, CENTRE_MAX, .kinds = PINHOLE | FISHEYE, .required = true),
    NUMBER(struct rig_lens, fy, 1, CENTRE_MAX, .kinds = PINHOLE | FISHEYE),
    NUMBER(struct rig_lens, cx, -CENTRE_MAX, CENTRE_MAX),
    NUMBER(struct rig_lens, cy, -CENTRE_MAX, CENTRE_MAX),
    OTHER("k", .kinds = PINHOLE | FISHEYE),
    OTHER("p", .kinds = PINHOLE),
    OTHER("angle_to_pixels", .kinds = FTHETA),
    NUMBER(struct rig_lens, max_angle_rad, 0.05, ANGLE_MAX, OPTIONAL(NAN)));

MEMBERS(rig_camera,
    OTHER("id"),
    OTHER("width"),
    OTHER("height"),
    NUMBER(struct rig_camera, rate_hz, TICK_HZ, 120, OPTIONAL(TICK_HZ)),
    CHOICE(struct rig_camera, shutter, rig_shutter_names, SHUTTER_COUNT, OPTIONAL(SHUTTER_GLOBAL)),
    NUMBER(struct rig_camera, shutter_ms, 0, SHUTTER_MAX_MS, OPTIONAL(0)),
    OTHER("pose"),
    OTHER("lens"));

MEMBERS(rig_lidar,
    OTHER("id"),
    NUMBER(struct rig_lidar, rate_hz, TICK_HZ, TICK_HZ, OPTIONAL(TICK_HZ)),
    OTHER("pose"),
    OTHER("azimuths"),
    OTHER("elevations_rad"),
    NUMBER(struct rig_lidar, range_m, 1, 1000, .required = true));
/* clang-format on */

/* ---- decoding ---- */

/* Numbers of an array of at most `max`, absent ones 0. */
static enum status decode_numbers(const struct json_cursor *object, const char *key, bool required,
                                  size_t max, double *out, struct error *error)
{
    struct json_cursor list = json_cursor_member(object, key);
    size_t count;
    if (!required && !json_cursor_present(&list)) {
        return STATUS_OK;
    }
    TRY(json_array_begin(&list, 1, max, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&list, i);
        TRY(json_value_number(&element, -1e9, 1e9, &out[i], error));
    }
    return STATUS_OK;
}

static enum status decode_lens(const struct json_cursor *cursor, struct rig_camera *camera,
                               struct error *error)
{
    struct rig_lens *lens = &camera->lens;
    TRY(member_decode(cursor, &rig_lens_members, "model", lens, error));
    uint32_t kinds = 1u << lens->model;
    TRY(members_begin(cursor, &rig_lens_members, kinds, error));
    lens->fy = NAN;
    lens->cx = (camera->width - 1) / 2.0;
    lens->cy = (camera->height - 1) / 2.0;
    TRY(members_decode(cursor, &rig_lens_members, kinds, lens, error));
    lens->fy = isnan(lens->fy) ? lens->fx : lens->fy;
    if (lens->model == LENS_FTHETA) {
        lens->fx = lens->fy = 0.0;
        return decode_numbers(cursor, "angle_to_pixels", true, LENS_POLYNOMIAL_MAX,
                              lens->angle_to_pixels, error);
    }
    TRY(decode_numbers(cursor, "k", false, lens->model == LENS_FISHEYE ? 4 : LENS_RADIAL_MAX,
                       lens->k, error));
    return decode_numbers(cursor, "p", false, 2, lens->p, error);
}

/* 1 to RIG_ID_MAX - 1 letters, digits, _ and -: ids name files. */
static enum status decode_sensor_id(const struct json_cursor *object, char out[RIG_ID_MAX],
                                    struct error *error)
{
    struct json_cursor id = json_cursor_member(object, "id");
    TRY(json_value_text(&id, out, RIG_ID_MAX, error));
    if (out[0] == '\0' || strspn(out, ID_LETTERS) != strlen(out)) {
        return json_fail(&id, error, "expected letters, digits, _ and -, found \"%s\"", out);
    }
    return STATUS_OK;
}

static enum status decode_side(const struct json_cursor *cursor, const char *key, int32_t *out,
                               struct error *error)
{
    int64_t pixels = 0;
    TRY(json_member_integer(cursor, key, true, 2, RIG_SIDE_MAX, &pixels, error));
    *out = (int32_t)pixels;
    return STATUS_OK;
}

static enum status decode_pose_of(const struct json_cursor *sensor, struct rig_pose *out,
                                  struct error *error)
{
    struct json_cursor pose = json_cursor_member(sensor, "pose");
    return members_read(&pose, &rig_pose_members, out, error);
}

static enum status decode_timing(const struct json_cursor *cursor, struct rig_camera *out,
                                 struct error *error)
{
    TRY(members_decode(cursor, &rig_camera_members, MEMBER_KINDS_ALL, out, error));
    struct json_cursor rate = json_cursor_member(cursor, "rate_hz");
    if (fmod(out->rate_hz, TICK_HZ) != 0.0) {
        return json_fail(&rate, error, "expected a multiple of %d Hz, the rate of ticks, found %g",
                         TICK_HZ, out->rate_hz);
    }
    struct json_cursor shutter = json_cursor_member(cursor, "shutter_ms");
    if (out->shutter_ms > 1000.0 / out->rate_hz) {
        return json_fail(&shutter, error, "expected at most %g ms, the time of a frame, found %g",
                         1000.0 / out->rate_hz, out->shutter_ms);
    }
    return STATUS_OK;
}

static enum status decode_camera(const struct json_cursor *cursor, struct rig_camera *out,
                                 struct errors *errors, struct error *error)
{
    struct json_cursor lens = json_cursor_member(cursor, "lens");
    uint32_t before = errors_count(errors);
    TRY(errors_keep(errors, members_begin(cursor, &rig_camera_members, MEMBER_KINDS_ALL, error),
                    error));
    TRY(errors_keep(errors, decode_sensor_id(cursor, out->id, error), error));
    TRY(errors_keep(errors, decode_side(cursor, "width", &out->width, error), error));
    TRY(errors_keep(errors, decode_side(cursor, "height", &out->height, error), error));
    TRY(errors_keep(errors, decode_timing(cursor, out, error), error));
    TRY(errors_keep(errors, decode_pose_of(cursor, &out->pose, error), error));
    TRY(errors_keep(errors, decode_lens(&lens, out, error), error));
    return errors_end(errors, before, error);
}

static enum status decode_rays(const struct json_cursor *cursor, struct rig_lidar *out,
                               struct error *error)
{
    int64_t azimuths = 0;
    size_t count;
    TRY(json_member_integer(cursor, "azimuths", true, 1, 8192, &azimuths, error));
    out->azimuths = (int32_t)azimuths;
    struct json_cursor list = json_cursor_member(cursor, "elevations_rad");
    TRY(json_array_begin(&list, 1, RIG_ELEVATIONS_MAX, &count, error));
    out->elevation_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&list, i);
        TRY(json_value_angle(&element, &out->elevations_rad[i], error));
    }
    return STATUS_OK;
}

static enum status decode_lidar(const struct json_cursor *cursor, struct rig_lidar *out,
                                struct errors *errors, struct error *error)
{
    uint32_t before = errors_count(errors);
    TRY(errors_keep(errors, members_begin(cursor, &rig_lidar_members, MEMBER_KINDS_ALL, error),
                    error));
    TRY(errors_keep(errors, decode_sensor_id(cursor, out->id, error), error));
    TRY(errors_keep(
        errors, members_decode(cursor, &rig_lidar_members, MEMBER_KINDS_ALL, out, error), error));
    TRY(errors_keep(errors, decode_pose_of(cursor, &out->pose, error), error));
    TRY(errors_keep(errors, decode_rays(cursor, out, error), error));
    return errors_end(errors, before, error);
}

/* No two sensors have one id. */
static enum status check_ids(const struct json_cursor *root, const struct rig *rig,
                             struct error *error)
{
    const char *ids[RIG_SENSORS_MAX] = {RIG_BEV_ID};
    uint32_t count = 1;
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        ids[count++] = rig->cameras[i].id;
    }
    for (uint32_t i = 0; i < rig->lidar_count; i++) {
        ids[count++] = rig->lidars[i].id;
    }
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(ids[i], ids[k]) == 0) {
                return json_fail(root, error, "expected sensors of different ids, found %s twice%s",
                                 ids[i], k == 0 ? ": it is the grid's" : "");
            }
        }
    }
    return STATUS_OK;
}

static enum status decode_cameras(const struct json_cursor *root, struct rig *out,
                                  struct errors *errors, struct error *error)
{
    size_t count = 0;
    uint32_t before = errors_count(errors);
    struct json_cursor cameras = json_cursor_member(root, "cameras");
    if (json_cursor_present(&cameras)) {
        TRY(json_array_begin(&cameras, 0, RIG_CAMERAS_MAX, &count, error));
    }
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&cameras, i);
        out->cameras[i].rate_hz = TICK_HZ;
        out->cameras[i].lens.max_angle_rad = NAN;
        TRY(errors_keep(errors, decode_camera(&element, &out->cameras[i], errors, error), error));
    }
    out->camera_count = (uint32_t)count;
    return errors_end(errors, before, error);
}

static enum status decode_lidars(const struct json_cursor *root, struct rig *out,
                                 struct errors *errors, struct error *error)
{
    size_t count = 0;
    uint32_t before = errors_count(errors);
    struct json_cursor lidars = json_cursor_member(root, "lidars");
    if (json_cursor_present(&lidars)) {
        TRY(json_array_begin(&lidars, 0, RIG_LIDARS_MAX, &count, error));
    }
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&lidars, i);
        out->lidars[i].rate_hz = TICK_HZ;
        TRY(errors_keep(errors, decode_lidar(&element, &out->lidars[i], errors, error), error));
    }
    out->lidar_count = (uint32_t)count;
    return errors_end(errors, before, error);
}

static enum status decode_at(const struct json_cursor *root, struct rig *out, struct errors *errors,
                             struct error *error)
{
    static const char *const keys[] = {"$schema", "id", "bev", "cameras", "lidars", NULL};
    uint32_t before = errors_count(errors);
    memset(out, 0, sizeof *out);
    TRY(errors_keep(errors, json_object_begin(root, keys, error), error));
    TRY(errors_keep(errors, decode_sensor_id(root, out->id, error), error));
    TRY(errors_keep(errors, json_member_bool(root, "bev", false, &out->bev, error), error));
    TRY(errors_keep(errors, decode_cameras(root, out, errors, error), error));
    TRY(errors_keep(errors, decode_lidars(root, out, errors, error), error));
    TRY(errors_end(errors, before, error));
    if (out->camera_count + out->lidar_count == 0 && !out->bev) {
        return json_fail(root, error, "expected a camera, a lidar or \"bev\": true, found none");
    }
    return check_ids(root, out, error);
}

enum status rig_decode(const char *file, const json_t *document, struct rig *out,
                       struct error *error)
{
    const struct json_cursor root = json_cursor_root(file, document);
    return decode_at(&root, out, NULL, error);
}

enum status decode_rig(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                       const struct rig **out)
{
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    struct rig *rig = arena_alloc(decoder->arena, 1, sizeof *rig);
    TRY(memory_check(rig, decoder->error, "no memory for a rig"));
    TRY(decode_at(cursor, rig, decoder->errors, decoder->error));
    *out = rig;
    return STATUS_OK;
}

json_t *encode_rig(const struct rig *rig)
{
    return rig_encode(rig);
}

enum status rig_read(const char *path, struct rig *out, struct errors *errors, struct error *error)
{
    json_t *document = NULL;
    TRY(json_read_file(path, RIG_FILE_BYTES_MAX, &document, error));
    const struct json_cursor root = json_cursor_root(path, document);
    enum status status = decode_at(&root, out, errors, error);
    json_decref(document);
    return status;
}

/* ---- encoding ---- */

/* Numbers up to the last one that is not 0; none: nothing, unless they are required. */
static void encode_numbers(struct json_builder *builder, json_t *object, const char *key,
                           const double *values, size_t count, bool required)
{
    while (count > 0 && values[count - 1] == 0.0) {
        count--;
    }
    if (count > 0 || required) {
        build_member(builder, object, key, encode_row(builder, values, count));
    }
}

static json_t *encode_camera(struct json_builder *builder, const struct rig_camera *camera)
{
    const struct rig_lens *lens = &camera->lens;
    json_t *object = json_object();
    json_t *of_lens = json_object();
    build_member(builder, object, "id", json_string(camera->id));
    build_member(builder, object, "width", json_integer(camera->width));
    build_member(builder, object, "height", json_integer(camera->height));
    members_encode(builder, object, &rig_camera_members, MEMBER_KINDS_ALL, camera);
    build_member(builder, object, "pose",
                 members_object(builder, &rig_pose_members, &camera->pose));
    members_encode(builder, of_lens, &rig_lens_members, 1u << lens->model, lens);
    if (lens->model == LENS_FTHETA) {
        encode_numbers(builder, of_lens, "angle_to_pixels", lens->angle_to_pixels,
                       LENS_POLYNOMIAL_MAX, true);
    } else {
        encode_numbers(builder, of_lens, "k", lens->k, LENS_RADIAL_MAX, false);
        encode_numbers(builder, of_lens, "p", lens->p, 2, false);
    }
    build_member(builder, object, "lens", of_lens);
    return object;
}

static json_t *encode_lidar(struct json_builder *builder, const struct rig_lidar *lidar)
{
    json_t *object = json_object();
    build_member(builder, object, "id", json_string(lidar->id));
    members_encode(builder, object, &rig_lidar_members, MEMBER_KINDS_ALL, lidar);
    build_member(builder, object, "pose", members_object(builder, &rig_pose_members, &lidar->pose));
    build_member(builder, object, "azimuths", json_integer(lidar->azimuths));
    build_member(builder, object, "elevations_rad",
                 encode_row(builder, lidar->elevations_rad, lidar->elevation_count));
    return object;
}

json_t *rig_encode(const struct rig *rig)
{
    struct json_builder builder = {0};
    json_t *object = json_object();
    json_t *cameras = json_array();
    json_t *lidars = json_array();
    build_member(&builder, object, "id", json_string(rig->id));
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        build_element(&builder, cameras, encode_camera(&builder, &rig->cameras[i]));
    }
    for (uint32_t i = 0; i < rig->lidar_count; i++) {
        build_element(&builder, lidars, encode_lidar(&builder, &rig->lidars[i]));
    }
    build_member(&builder, object, "cameras", cameras);
    build_member(&builder, object, "lidars", lidars);
    build_member(&builder, object, "bev", json_boolean(rig->bev));
    if (builder.failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}

enum status rig_text(const struct rig *rig, char **out, struct error *error)
{
    json_t *document = rig_encode(rig);
    char *text = document != NULL ? json_canonical_text(document) : NULL;
    json_decref(document);
    TRY(memory_check(text, error, "no memory for the text of the rig %s", rig->id));
    *out = text;
    return STATUS_OK;
}

enum status rig_hash(const struct rig *rig, char out[SHA256_HEX_BYTES], struct error *error)
{
    struct rig builtin;
    char *text = NULL;
    char *usual = NULL;
    rig_swerve(&builtin);
    enum status status = rig_text(rig, &text, error);
    THEN(status, rig_text(&builtin, &usual, error));
    if (status == STATUS_OK && strcmp(text, usual) == 0) {
        out[0] = '\0';
    } else if (status == STATUS_OK) {
        sha256_hex(text, strlen(text), out);
    }
    free(usual);
    free(text);
    return status;
}
