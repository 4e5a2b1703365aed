/*
 * Tables of nuScenes are arrays of flat objects that name each other by tokens, of up to a gigabyte
 * (sample_data.json): they are read object by object, and of each only what a sample needs is kept.
 *
 * Rotations are quaternions w, x, y, z from the sensor's frame to the car's. A camera's frame is x
 * right, y down, z ahead, the lidar's x right, y ahead, z up; a rig's turn from x ahead, y left.
 */
#include "cli/draw/rig_nuscenes.h"

#include "base/file.h"
#include "base/units.h"
#include "schemas/json_read.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKEN_BYTES = 64, RECORD_BYTES_MAX = 64 << 10 };

/* The Velodyne HDL-32E of nuScenes: 32 beams 4/3 degrees apart, some 1,080 azimuths, usable to 70 m
 * (nuscenes.org, "Car setup"). */
enum { BEAMS = 32, AZIMUTHS = 1080 };
#define LOWEST_DEG (-30.67)
#define HIGHEST_DEG 10.67
#define RANGE_M 70.0

struct found {
    char calibration[TOKEN_BYTES], sensor[TOKEN_BYTES];
    int64_t width, height; /* 0: no pictures */
    double translation_m[3], rotation[4];
    double intrinsic[3][3];
    bool calibrated;
};

struct reader {
    char sample[TOKEN_BYTES]; /* empty: the first */
    double rear_axle_m;
    uint32_t count;
    struct found found[RIG_SENSORS_MAX];
    struct rig *rig;
};

typedef enum status (*take_fn)(struct reader *reader, const struct json_cursor *record,
                               struct error *error);

/* Reads on past spaces to what comes next. */
static int next_of(FILE *file)
{
    int c = fgetc(file);
    while (c != EOF && isspace(c)) {
        c = fgetc(file);
    }
    return c;
}

/* Bytes that one record may still have. */
struct record_bytes {
    FILE *file;
    size_t left;
};

/* One byte for the parser, which so reads none of the next record. */
static size_t give_byte(void *buffer, size_t capacity, void *context)
{
    struct record_bytes *bytes = context;
    int c = bytes->left > 0 && capacity > 0 ? fgetc(bytes->file) : EOF;
    if (c == EOF) {
        return 0;
    }
    bytes->left--;
    *(char *)buffer = (char)c;
    return 1;
}

static enum status read_records(const char *path, FILE *file, struct reader *reader, take_fn take,
                                struct error *error)
{
    int c = next_of(file);
    if (c != '[') {
        return error_set(error, STATUS_BAD_INPUT, "%s: expected an array of records", path);
    }
    for (size_t index = 0;; index++) {
        json_error_t found;
        c = next_of(file);
        if (c == ']') {
            return STATUS_OK;
        }
        if (c != (index == 0 ? '{' : ',')) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: record %zu: expected an object or the end of the array", path,
                             index);
        }
        if (index == 0) {
            ungetc(c, file);
        }
        struct record_bytes bytes = {file, RECORD_BYTES_MAX};
        json_t *record = json_load_callback(give_byte, &bytes, JSON_DISABLE_EOF_CHECK, &found);
        if (record == NULL && bytes.left == 0) {
            return error_set(error, STATUS_LIMIT, "%s: record %zu: expected at most %d bytes", path,
                             index, RECORD_BYTES_MAX);
        }
        if (record == NULL) {
            return error_set(error, STATUS_BAD_INPUT, "%s: record %zu: %s", path, index,
                             found.text);
        }
        const struct json_cursor root = json_cursor_root(path, record);
        const struct json_cursor at = {
            .file = path, .value = record, .parent = &root, .index = index};
        enum status status = take(reader, &at, error);
        json_decref(record);
        TRY(status);
    }
}

static enum status read_table(const char *folder, const char *name, struct reader *reader,
                              take_fn take, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        return error_set(error, STATUS_LIMIT, "%s: the path is too long", folder);
    }
    int fd;
    size_t bytes;
    TRY(file_open(path, &fd, &bytes, error));
    FILE *file = fdopen(fd, "r");
    if (file == NULL) {
        close(fd);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path);
    }
    enum status status = read_records(path, file, reader, take, error);
    fclose(file);
    return status;
}

/* ---- tables ---- */

static enum status take_data(struct reader *reader, const struct json_cursor *record,
                             struct error *error)
{
    char sample[TOKEN_BYTES];
    bool key_frame = false;
    TRY(json_member_bool(record, "is_key_frame", true, &key_frame, error));
    TRY(json_member_text(record, "sample_token", true, sample, sizeof sample, error));
    if (key_frame && reader->sample[0] == '\0') {
        memcpy(reader->sample, sample, sizeof sample);
    }
    if (!key_frame || strcmp(sample, reader->sample) != 0) {
        return STATUS_OK;
    }
    if (reader->count == RIG_SENSORS_MAX) {
        return json_fail_status(record, STATUS_LIMIT, error,
                                "expected at most %d sensors of a sample", RIG_SENSORS_MAX);
    }
    struct found *found = &reader->found[reader->count++];
    TRY(json_member_text(record, "calibrated_sensor_token", true, found->calibration,
                         sizeof found->calibration, error));
    TRY(json_member_integer(record, "width", false, 0, RIG_SIDE_MAX, &found->width, error));
    return json_member_integer(record, "height", false, 0, RIG_SIDE_MAX, &found->height, error);
}

static enum status take_numbers(const struct json_cursor *object, const char *key, size_t count,
                                double *out, struct error *error)
{
    const struct json_cursor list = json_cursor_member(object, key);
    size_t size = 0;
    TRY(json_array_begin(&list, count, count, &size, error));
    for (size_t i = 0; i < count; i++) {
        const struct json_cursor element = json_cursor_element(&list, i);
        TRY(json_value_number(&element, -1e6, 1e6, &out[i], error));
    }
    return STATUS_OK;
}

static enum status take_intrinsic(const struct json_cursor *record, struct found *found,
                                  struct error *error)
{
    const struct json_cursor rows = json_cursor_member(record, "camera_intrinsic");
    size_t count = 0;
    TRY(json_array_begin(&rows, 0, 3, &count, error));
    for (size_t i = 0; i < count; i++) {
        const struct json_cursor row = json_cursor_element(&rows, i);
        size_t size = 0;
        TRY(json_array_begin(&row, 3, 3, &size, error));
        for (size_t k = 0; k < size; k++) {
            const struct json_cursor element = json_cursor_element(&row, k);
            TRY(json_value_number(&element, -1e6, 1e6, &found->intrinsic[i][k], error));
        }
    }
    return STATUS_OK;
}

static enum status take_calibration(struct reader *reader, const struct json_cursor *record,
                                    struct error *error)
{
    char token[TOKEN_BYTES];
    TRY(json_member_text(record, "token", true, token, sizeof token, error));
    for (uint32_t i = 0; i < reader->count; i++) {
        struct found *found = &reader->found[i];
        if (strcmp(found->calibration, token) != 0) {
            continue;
        }
        double norm = 0.0;
        TRY(json_member_text(record, "sensor_token", true, found->sensor, sizeof found->sensor,
                             error));
        TRY(take_numbers(record, "translation", 3, found->translation_m, error));
        TRY(take_numbers(record, "rotation", 4, found->rotation, error));
        TRY(take_intrinsic(record, found, error));
        for (int k = 0; k < 4; k++) {
            norm += found->rotation[k] * found->rotation[k];
        }
        if (!(fabs(norm - 1.0) < 1e-3)) {
            return json_fail(record, error, "rotation: expected a quaternion of length 1, found %g",
                             sqrt(norm));
        }
        for (int k = 0; k < 4; k++) {
            found->rotation[k] /= sqrt(norm);
        }
        found->calibrated = true;
    }
    return STATUS_OK;
}

/* ---- the rig ---- */

/* Axes ahead, left and up of a sensor in its own frame, as rows. */
static const double camera_axes[3][3] = {{0, 0, 1}, {-1, 0, 0}, {0, -1, 0}};
static const double lidar_axes[3][3] = {{0, 1, 0}, {-1, 0, 0}, {0, 0, 1}};

static struct rig_pose pose_of(const struct found *found, const double axes[3][3],
                               double rear_axle_m)
{
    const double w = found->rotation[0];
    const double x = found->rotation[1];
    const double y = found->rotation[2];
    const double z = found->rotation[3];
    const double turn[3][3] = {
        {1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
        {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
        {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)},
    };
    double m[3][3]; /* columns: ahead, left, up in the car's frame */
    for (int row = 0; row < 3; row++) {
        for (int col = 0; col < 3; col++) {
            m[row][col] = turn[row][0] * axes[col][0] + turn[row][1] * axes[col][1] +
                          turn[row][2] * axes[col][2];
        }
    }
    return (struct rig_pose){
        .x_m = found->translation_m[0] - rear_axle_m,
        .y_m = found->translation_m[1],
        .z_m = found->translation_m[2],
        .roll_rad = atan2(m[2][1], m[2][2]),
        .pitch_rad = -asin(fmax(-1.0, fmin(1.0, m[2][0]))),
        .yaw_rad = atan2(m[1][0], m[0][0]),
    };
}

static enum status add_camera(struct reader *reader, const struct json_cursor *record,
                              const struct found *found, const char *channel, struct error *error)
{
    struct rig *rig = reader->rig;
    if (rig->camera_count == RIG_CAMERAS_MAX || found->width < 2 || found->height < 2) {
        return json_fail(record, error,
                         "camera %s: expected one of %d with a picture, found %lld x %lld", channel,
                         RIG_CAMERAS_MAX, (long long)found->width, (long long)found->height);
    }
    struct rig_camera *camera = &rig->cameras[rig->camera_count++];
    *camera = (struct rig_camera){
        .width = (int32_t)found->width,
        .height = (int32_t)found->height,
        .rate_hz = 1 / TICK_S,
        .pose = pose_of(found, camera_axes, reader->rear_axle_m),
        .lens = {.model = LENS_PINHOLE,
                 .fx = found->intrinsic[0][0],
                 .fy = found->intrinsic[1][1],
                 .cx = found->intrinsic[0][2],
                 .cy = found->intrinsic[1][2],
                 .max_angle_rad = NAN},
    };
    snprintf(camera->id, sizeof camera->id, "%s", channel);
    return STATUS_OK;
}

static enum status add_lidar(struct reader *reader, const struct json_cursor *record,
                             const struct found *found, const char *channel, struct error *error)
{
    struct rig *rig = reader->rig;
    if (rig->lidar_count == RIG_LIDARS_MAX) {
        return json_fail(record, error, "expected at most %d lidars", RIG_LIDARS_MAX);
    }
    struct rig_lidar *lidar = &rig->lidars[rig->lidar_count++];
    *lidar = (struct rig_lidar){
        .rate_hz = 1 / TICK_S,
        .pose = pose_of(found, lidar_axes, reader->rear_axle_m),
        .azimuths = AZIMUTHS,
        .elevation_count = BEAMS,
        .range_m = RANGE_M,
    };
    for (int i = 0; i < BEAMS; i++) {
        double share = i / (BEAMS - 1.0);
        lidar->elevations_rad[i] =
            (HIGHEST_DEG + share * (LOWEST_DEG - HIGHEST_DEG)) * PI_RAD / 180.0;
    }
    snprintf(lidar->id, sizeof lidar->id, "%s", channel);
    return STATUS_OK;
}

static enum status take_sensor(struct reader *reader, const struct json_cursor *record,
                               struct error *error)
{
    char token[TOKEN_BYTES];
    char channel[RIG_ID_MAX];
    char modality[TOKEN_BYTES];
    TRY(json_member_text(record, "token", true, token, sizeof token, error));
    TRY(json_member_text(record, "channel", true, channel, sizeof channel, error));
    TRY(json_member_text(record, "modality", true, modality, sizeof modality, error));
    for (uint32_t i = 0; i < reader->count; i++) {
        const struct found *found = &reader->found[i];
        if (!found->calibrated || strcmp(found->sensor, token) != 0) {
            continue;
        }
        if (strcmp(modality, "camera") == 0) {
            TRY(add_camera(reader, record, found, channel, error));
        } else if (strcmp(modality, "lidar") == 0) {
            TRY(add_lidar(reader, record, found, channel, error));
        }
    }
    return STATUS_OK;
}

static enum status read_all(struct reader *reader, const char *folder, struct error *error)
{
    TRY(read_table(folder, "sample_data.json", reader, take_data, error));
    TRY(read_table(folder, "calibrated_sensor.json", reader, take_calibration, error));
    for (uint32_t i = 0; i < reader->count; i++) {
        if (!reader->found[i].calibrated) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s/calibrated_sensor.json: expected the record %s, which "
                             "sample_data.json names",
                             folder, reader->found[i].calibration);
        }
    }
    TRY(read_table(folder, "sensor.json", reader, take_sensor, error));
    if (reader->rig->camera_count + reader->rig->lidar_count == 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "%s: expected a sample with cameras or a lidar, found none of \"%s\"",
                         folder, reader->sample);
    }
    return STATUS_OK;
}

enum status rig_nuscenes_read(const char *folder, const char *sample, double rear_axle_m,
                              struct rig *out, struct error *error)
{
    json_t *document = NULL;
    struct reader *reader = calloc(1, sizeof *reader);
    struct rig *rig = calloc(1, sizeof *rig);
    enum status status = STATUS_OK;
    if (reader == NULL || rig == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "%s: no memory for a rig", folder);
    } else if (sample != NULL && strlen(sample) >= sizeof reader->sample) {
        status = error_set(error, STATUS_USAGE, "--sample: expected a token, found \"%s\"", sample);
    } else {
        snprintf(reader->sample, sizeof reader->sample, "%s", sample != NULL ? sample : "");
        reader->rear_axle_m = rear_axle_m;
        reader->rig = rig;
        snprintf(rig->id, sizeof rig->id, "nuscenes");
        status = read_all(reader, folder, error);
    }
    if (status == STATUS_OK) {
        document = rig_encode(rig);
        status = memory_check(document, error, "%s: no memory for a rig", folder);
    }
    THEN(status, rig_decode(folder, document, out, error)); /* all that a rig.json must be */
    json_decref(document);
    free(rig);
    free(reader);
    return status;
}
