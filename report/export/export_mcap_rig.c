/*
 * Messages of a rig's sensors. A camera's frame of reference is x right, y down, z along its axis,
 * as calibrations have it; a lidar's x ahead, y left, z up.
 */
#include "report/export/export_mcap_rig.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/jpeg/jpeg_encode.h"
#include "base/units.h"
#include "report/draw/draw_sensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { JPEG_QUALITY = 90, JPEG_HEAD_BYTES = 2048, TOPIC_BYTES = RIG_ID_MAX + 32 };

struct mcap_rig {
    const struct rig *rig;
    struct mcap *file;
    struct draw_sensors *sight;
    uint16_t tf, images[RIG_CAMERAS_MAX], calibrations[RIG_CAMERAS_MAX], clouds[RIG_LIDARS_MAX];
    uint8_t *packed; /* room for the largest JPEG file */
    size_t packed_bytes;
    bool looked; /* the tick has pictures */
    bool told;   /* places and lenses are written */
    uint32_t tick;
};

static void open_channels(struct mcap_rig *sensors, const char *(*schema)(const char *name))
{
    static const char image[] = "foxglove.CompressedImage";
    static const char calibration[] = "foxglove.CameraCalibration";
    static const char cloud[] = "foxglove.PointCloud";
    char topic[TOPIC_BYTES];
    for (uint32_t i = 0; i < sensors->rig->camera_count; i++) {
        snprintf(topic, sizeof topic, "/camera/%s", sensors->rig->cameras[i].id);
        sensors->images[i] = mcap_channel(sensors->file, topic, image, schema(image));
        snprintf(topic, sizeof topic, "/camera/%s/calibration", sensors->rig->cameras[i].id);
        sensors->calibrations[i] =
            mcap_channel(sensors->file, topic, calibration, schema(calibration));
    }
    for (uint32_t i = 0; i < sensors->rig->lidar_count; i++) {
        snprintf(topic, sizeof topic, "/lidar/%s", sensors->rig->lidars[i].id);
        sensors->clouds[i] = mcap_channel(sensors->file, topic, cloud, schema(cloud));
    }
}

enum status mcap_rig_create(const struct rig *rig, struct mcap *file, uint16_t tf,
                            const char *(*schema)(const char *name), struct mcap_rig **out,
                            struct error *error)
{
    struct mcap_rig *sensors = calloc(1, sizeof *sensors);
    TRY(memory_check(sensors, error, "export: out of memory"));
    *sensors = (struct mcap_rig){.rig = rig, .file = file, .tf = tf};
    enum status status = draw_sensors_create(rig, &sensors->sight, error);
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        /* Files of noise stay below the bytes of their pixels. */
        const size_t bytes =
            (size_t)(rig->cameras[i].width + 15) * (size_t)(rig->cameras[i].height + 15) * 3 +
            JPEG_HEAD_BYTES;
        sensors->packed_bytes = bytes > sensors->packed_bytes ? bytes : sensors->packed_bytes;
    }
    if (status == STATUS_OK) {
        sensors->packed = malloc(sensors->packed_bytes + 1);
        status = memory_check(sensors->packed, error, "export: out of memory");
    }
    if (status != STATUS_OK) {
        mcap_rig_destroy(sensors);
        return status;
    }
    open_channels(sensors, schema);
    *out = sensors;
    return STATUS_OK;
}

void mcap_rig_destroy(struct mcap_rig *sensors)
{
    if (sensors != NULL) {
        draw_sensors_destroy(sensors->sight);
        free(sensors->packed);
        free(sensors);
    }
}

/* ---- messages ---- */

/* One message; init/finish by begin and send. */
struct message {
    char *text;
    size_t bytes;
    FILE *out;
};

static enum status begin(struct message *message, int64_t time_ns, struct error *error)
{
    *message = (struct message){0};
    message->out = open_memstream(&message->text, &message->bytes);
    TRY(memory_check(message->out, error, "export: out of memory"));
    fprintf(message->out, "{\"timestamp\":{\"sec\":%" PRId64 ",\"nsec\":%" PRId64 "}",
            time_ns / NS_PER_S, time_ns % NS_PER_S);
    return STATUS_OK;
}

static enum status send(struct message *message, struct mcap *file, uint16_t channel,
                        int64_t time_ns, struct error *error)
{
    bool bad = fputs("}", message->out) < 0;
    bad = fclose(message->out) != 0 || bad || message->text == NULL;
    if (!bad) {
        mcap_message(file, channel, (uint64_t)time_ns, message->text, message->bytes);
    }
    free(message->text);
    return bad ? error_set(error, STATUS_NO_MEMORY, "export: out of memory") : STATUS_OK;
}

static enum status put_data(FILE *out, const void *data, size_t bytes, struct error *error)
{
    char *base64 = malloc(base64_bytes(bytes) + 1);
    TRY(memory_check(base64, error, "export: out of memory"));
    base64_encode(data, bytes, base64);
    fprintf(out, ",\"data\":\"%s\"", base64);
    free(base64);
    return STATUS_OK;
}

static enum status send_image(struct mcap_rig *sensors, uint32_t camera, uint32_t index,
                              struct error *error)
{
    const struct rig_camera *of = &sensors->rig->cameras[camera];
    struct message message;
    int64_t time_ns = 0;
    size_t bytes = 0;
    const uint8_t *rgb = draw_sensors_frame(sensors->sight, camera, index, &time_ns);
    TRY(jpeg_encode(rgb, (uint32_t)of->width, (uint32_t)of->height, JPEG_QUALITY, sensors->packed,
                    sensors->packed_bytes, &bytes, error));
    TRY(begin(&message, time_ns, error));
    fprintf(message.out, ",\"frame_id\":\"%s\",\"format\":\"jpeg\"", of->id);
    enum status status = put_data(message.out, sensors->packed, bytes, error);
    enum status sent = send(&message, sensors->file, sensors->images[camera], time_ns, error);
    return status != STATUS_OK ? status : sent;
}

static enum status send_cloud(struct mcap_rig *sensors, uint32_t lidar, struct error *error)
{
    /* foxglove.NumericType: 1 UINT8, 3 UINT16, 7 FLOAT32 */
    static const char fields[] =
        "[{\"name\":\"x\",\"offset\":0,\"type\":7},{\"name\":\"y\",\"offset\":4,\"type\":7},"
        "{\"name\":\"z\",\"offset\":8,\"type\":7},{\"name\":\"intensity\",\"offset\":12,\"type\":1}"
        ",{\"name\":\"ring\",\"offset\":13,\"type\":1},"
        "{\"name\":\"time_2us\",\"offset\":14,\"type\":3}]";
    const int64_t time_ns = sensors->tick * TICK_NS;
    struct message message;
    uint32_t count = 0;
    const struct scan_point *points = draw_sensors_turn(sensors->sight, lidar, &count);
    TRY(begin(&message, time_ns, error));
    fprintf(message.out,
            ",\"frame_id\":\"%s\",\"pose\":{\"position\":{\"x\":0,\"y\":0,\"z\":0},"
            "\"orientation\":{\"x\":0,\"y\":0,\"z\":0,\"w\":1}},\"point_stride\":%zu,\"fields\":%s",
            sensors->rig->lidars[lidar].id, sizeof *points, fields);
    enum status status = put_data(message.out, points, count * sizeof *points, error);
    enum status sent = send(&message, sensors->file, sensors->clouds[lidar], time_ns, error);
    return status != STATUS_OK ? status : sent;
}

/* ---- places and lenses ---- */

/* Quaternion x, y, z, w of Rz(yaw) Ry(pitch) Rx(roll), and for cameras then of the turn from x
 * right, y down, z ahead to x ahead, y left, z up. */
static void quaternion_of(const struct rig_pose *pose, bool camera, double out[4])
{
    const double cr = cos(pose->roll_rad / 2);
    const double sr = sin(pose->roll_rad / 2);
    const double cp = cos(pose->pitch_rad / 2);
    const double sp = sin(pose->pitch_rad / 2);
    const double cy = cos(pose->yaw_rad / 2);
    const double sy = sin(pose->yaw_rad / 2);
    const double x = sr * cp * cy - cr * sp * sy;
    const double y = cr * sp * cy + sr * cp * sy;
    const double z = cr * cp * sy - sr * sp * cy;
    const double w = cr * cp * cy + sr * sp * sy;
    if (!camera) {
        out[0] = x;
        out[1] = y;
        out[2] = z;
        out[3] = w;
        return;
    }
    /* Times (-1/2, 1/2, -1/2, 1/2). */
    out[0] = 0.5 * (-w + x - y - z);
    out[1] = 0.5 * (w + x + y - z);
    out[2] = 0.5 * (-w + x + y + z);
    out[3] = 0.5 * (w + x - y + z);
}

static enum status send_place(struct mcap_rig *sensors, const char *id, const struct rig_pose *pose,
                              bool camera, int64_t time_ns, struct error *error)
{
    struct message message;
    double q[4];
    quaternion_of(pose, camera, q);
    TRY(begin(&message, time_ns, error));
    fprintf(message.out,
            ",\"parent_frame_id\":\"ego\",\"child_frame_id\":\"%s\",\"translation\":{\"x\":%.9g,"
            "\"y\":%.9g,\"z\":%.9g},\"rotation\":{\"x\":%.9g,\"y\":%.9g,\"z\":%.9g,\"w\":%.9g}",
            id, pose->x_m, pose->y_m, pose->z_m, q[0], q[1], q[2], q[3]);
    return send(&message, sensors->file, sensors->tf, time_ns, error);
}

/* Coefficients in the order of ROS and OpenCV: k1 k2 p1 p2 k3 .. of pinholes, k1 .. k4 of fisheyes;
 * of an f-theta lens its polynomial, under a name that is ours. */
static void put_distortion(FILE *out, const struct rig_lens *lens)
{
    const double *k = lens->k;
    const double rational[8] = {k[0], k[1], lens->p[0], lens->p[1], k[2], k[3], k[4], k[5]};
    static const char *const names[LENS_MODEL_COUNT] = {"rational_polynomial", "kannala_brandt",
                                                        "ftheta"};
    const double *values = lens->model == LENS_PINHOLE   ? rational
                           : lens->model == LENS_FISHEYE ? k
                                                         : lens->angle_to_pixels;
    const int count = lens->model == LENS_FISHEYE ? 4 : 8;
    _Static_assert(LENS_POLYNOMIAL_MAX == 8, "as many as a rational pinhole has");
    fprintf(out, ",\"distortion_model\":\"%s\",\"D\":[", names[lens->model]);
    for (int i = 0; i < count; i++) {
        fprintf(out, "%s%.9g", i > 0 ? "," : "", values[i]);
    }
    fputs("]", out);
}

static enum status send_calibration(struct mcap_rig *sensors, uint32_t camera, int64_t time_ns,
                                    struct error *error)
{
    const struct rig_camera *of = &sensors->rig->cameras[camera];
    const struct rig_lens *lens = &of->lens;
    struct message message;
    TRY(begin(&message, time_ns, error));
    fprintf(message.out, ",\"frame_id\":\"%s\",\"width\":%d,\"height\":%d", of->id, of->width,
            of->height);
    put_distortion(message.out, lens);
    fprintf(message.out,
            ",\"K\":[%.9g,0,%.9g,0,%.9g,%.9g,0,0,1],\"R\":[1,0,0,0,1,0,0,0,1],"
            "\"P\":[%.9g,0,%.9g,0,0,%.9g,%.9g,0,0,0,1,0]",
            lens->fx, lens->cx, lens->fy, lens->cy, lens->fx, lens->cx, lens->fy, lens->cy);
    return send(&message, sensors->file, sensors->calibrations[camera], time_ns, error);
}

static enum status tell(struct mcap_rig *sensors, struct error *error)
{
    const struct rig *rig = sensors->rig;
    const int64_t time_ns = sensors->tick * TICK_NS;
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        TRY(send_place(sensors, rig->cameras[i].id, &rig->cameras[i].pose, true, time_ns, error));
        TRY(send_calibration(sensors, i, time_ns, error));
    }
    for (uint32_t i = 0; i < rig->lidar_count; i++) {
        TRY(send_place(sensors, rig->lidars[i].id, &rig->lidars[i].pose, false, time_ns, error));
    }
    return STATUS_OK;
}

/* ---- ticks ---- */

/* A frame that was taken before its tick; sorted by time. */
struct early {
    uint32_t camera, index;
    int64_t before_ns; /* the tick */
};

static int compare_early(const void *a, const void *b)
{
    const struct early *x = a;
    const struct early *y = b;
    return x->before_ns != y->before_ns ? (x->before_ns > y->before_ns ? -1 : 1)
                                        : (x->camera > y->camera) - (x->camera < y->camera);
}

enum status mcap_rig_before(struct mcap_rig *sensors, struct report_drive *drive, int32_t rollout,
                            uint32_t tick, uint64_t seed, struct error *error)
{
    struct early list[RIG_CAMERAS_MAX * 12] = {{0}};
    uint32_t count = 0;
    sensors->tick = tick;
    sensors->looked = draw_sensors_look(sensors->sight, drive, rollout, tick, seed);
    for (uint32_t i = 0; i < sensors->rig->camera_count && sensors->looked; i++) {
        const uint32_t frames = draw_sensors_frames(sensors->sight, i);
        CHECK(frames <= 12);
        for (uint32_t k = 0; k + 1 < frames; k++) {
            list[count++] = (struct early){i, k, TICK_NS * (frames - 1 - k) / frames};
        }
    }
    qsort(list, count, sizeof *list, compare_early);
    for (uint32_t i = 0; i < count && sensors->told; i++) {
        TRY(send_image(sensors, list[i].camera, list[i].index, error));
    }
    return STATUS_OK;
}

enum status mcap_rig_at(struct mcap_rig *sensors, struct error *error)
{
    if (!sensors->looked) {
        return STATUS_OK;
    }
    if (!sensors->told) {
        TRY(tell(sensors, error));
        sensors->told = true;
    }
    for (uint32_t i = 0; i < sensors->rig->camera_count; i++) {
        TRY(send_image(sensors, i, draw_sensors_frames(sensors->sight, i) - 1, error));
    }
    for (uint32_t i = 0; i < sensors->rig->lidar_count; i++) {
        TRY(send_cloud(sensors, i, error));
    }
    return STATUS_OK;
}
