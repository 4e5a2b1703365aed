/*
 * Records of the planner's ABI as messages of the contract, and its answers as trajectories. See
 * egodriver_internal.h.
 *
 * The rig stands on the rear axle, half a wheelbase behind the centre of ego's box. Poses are
 * floats on the wire: at 1 km from the origin that is 0.06 mm.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "schemas/rig/rig.h"
#include "worker/egodriver/egodriver_internal.h"

#include "schemas/proto/egodriver.pb-c.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UUID_AT = 2 }; /* behind the tag of field 1 and its length */
enum { REVISION_BODY = 1 };
enum { LIGHT_NONE = 1, LIGHT_RED, LIGHT_YELLOW, LIGHT_GREEN, LIGHT_OFF };

static uint64_t us_of(int64_t ns)
{
    return (uint64_t)(ns / 1000);
}

/* ---- packing ---- */

static struct ego_message *pack(struct ego_block **block, enum ego_call call,
                                const ProtobufCMessage *record)
{
    struct ego_message *message =
        ego_message_make(block, call, protobuf_c_message_get_packed_size(record));
    if (message != NULL) {
        protobuf_c_message_pack(record, message->data);
    }
    return message;
}

void ego_message_address(struct ego_message *message, const char *uuid)
{
    CHECK(message->bytes >= UUID_AT + EGODRIVER_UUID_BYTES - 1);
    CHECK(message->data[1] == EGODRIVER_UUID_BYTES - 1);
    memcpy(message->data + UUID_AT, uuid, EGODRIVER_UUID_BYTES - 1);
}

/* The generated records take text that they do not write to. */
static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Holds the place of a session's id until ego_message_address writes it. */
static const char nobody[EGODRIVER_UUID_BYTES] = "00000000-0000-0000-0000-000000000000";

/* ---- start ---- */

struct ego_message *ego_message_start(struct ego_block **block, const struct ego_cameras *cameras,
                                      bool tell_scene, const struct swerve_episode *episode,
                                      int revision)
{
    struct contract_camera records[RIG_CAMERAS_MAX];
    Ego__Camera *list[RIG_CAMERAS_MAX];
    Ego__StartSession start = EGO__START_SESSION__INIT;
    Ego__SessionDebug debug = EGO__SESSION_DEBUG__INIT;
    Ego__RolloutSpec spec = EGO__ROLLOUT_SPEC__INIT;
    Ego__Vehicle vehicle = EGO__VEHICLE__INIT;
    for (uint32_t i = 0; i < cameras->count; i++) {
        contract_camera_fill(&records[i], &cameras->cameras[i], episode->ego_wheelbase_m / 2,
                             revision != REVISION_BODY);
        list[i] = &records[i].camera;
    }
    vehicle.available_cameras = list;
    vehicle.n_available_cameras = cameras->count;
    spec.vehicle = &vehicle;
    start.session_uuid = text_of(nobody);
    start.random_seed = episode->seed;
    start.rollout_spec = &spec;
    if (tell_scene) {
        debug.scene_id = text_of(episode->scenario_id);
        start.debug_info = &debug;
    }
    return pack(block, EGO_START, &start.base);
}

struct ego_message *ego_message_close(struct ego_block **block)
{
    Ego__CloseSession close = EGO__CLOSE_SESSION__INIT;
    close.session_uuid = text_of(nobody);
    return pack(block, EGO_CLOSE, &close.base);
}

struct ego_message *ego_message_fork(struct ego_block **block, const char *fork_uuid)
{
    Ego__ForkSession fork = EGO__FORK_SESSION__INIT;
    fork.session_uuid = text_of(nobody);
    fork.fork_uuid = text_of(fork_uuid);
    return pack(block, EGO_FORK, &fork.base);
}

/* ---- a tick ---- */

struct ego_message *ego_message_motion(struct ego_block **block, const struct ego_frame *frame,
                                       const struct swerve_observation *seen)
{
    Ego__SubmitEgomotion motion = EGO__SUBMIT_EGOMOTION__INIT;
    Ego__Trajectory trajectory = EGO__TRAJECTORY__INIT;
    struct contract_pose place;
    Ego__DynamicState state = EGO__DYNAMIC_STATE__INIT;
    Ego__Vec3 speed = EGO__VEC3__INIT;
    Ego__Vec3 acceleration = EGO__VEC3__INIT;
    Ego__Vec3 turning = EGO__VEC3__INIT;
    Ego__PoseAtTime *poses[] = {&place.at};
    Ego__DynamicState *states[] = {&state};
    contract_pose_fill(
        &place, us_of(seen->time_ns), seen->x_m - frame->rear_m * dmath_cos(seen->heading_rad),
        seen->y_m - frame->rear_m * dmath_sin(seen->heading_rad), 0, seen->heading_rad);
    trajectory.poses = poses;
    trajectory.n_poses = 1;
    speed.x = (float)seen->speed_mps;
    acceleration.x = (float)seen->accel_mps2;
    acceleration.y = (float)seen->lat_accel_mps2;
    turning.z = (float)seen->yaw_rate_rps;
    state.linear_velocity = &speed;
    state.linear_acceleration = &acceleration;
    state.angular_velocity = &turning;
    motion.session_uuid = text_of(nobody);
    motion.trajectory = &trajectory;
    motion.dynamic_states = states;
    motion.n_dynamic_states = 1;
    return pack(block, EGO_MOTION, &motion.base);
}

/* The route's place beside the rear axle: its first segment drawn out behind its first point, which
 * lies beside the centre of ego's box. */
static void route_begin(const struct ego_frame *frame, const struct swerve_observation *seen,
                        Ego__Vec3 *out)
{
    const struct swerve_route_point *first = &seen->route[0];
    const struct swerve_route_point *next = &seen->route[seen->route_count > 1 ? 1 : 0];
    double heading_rad =
        dmath_atan2((double)next->y_m - (double)first->y_m, (double)next->x_m - (double)first->x_m);
    out->x = (float)((double)first->x_m + frame->rear_m * (1 - dmath_cos(heading_rad)));
    out->y = (float)((double)first->y_m - frame->rear_m * dmath_sin(heading_rad));
}

struct ego_message *ego_message_route(struct ego_block **block, const struct ego_frame *frame,
                                      const struct swerve_observation *seen)
{
    Ego__SubmitRoute submit = EGO__SUBMIT_ROUTE__INIT;
    Ego__Route route = EGO__ROUTE__INIT;
    Ego__Vec3 points[1 + SWERVE_ROUTE_POINTS];
    Ego__Vec3 *addresses[1 + SWERVE_ROUTE_POINTS];
    CHECK(seen->route_count <= SWERVE_ROUTE_POINTS);
    for (uint32_t i = 0; i <= seen->route_count; i++) {
        ego__vec3__init(&points[i]);
        addresses[i] = &points[i];
        if (i > 0) {
            points[i].x = (float)((double)seen->route[i - 1].x_m + frame->rear_m);
            points[i].y = seen->route[i - 1].y_m;
        }
    }
    if (seen->route_count > 0) {
        route_begin(frame, seen, &points[0]);
        route.n_waypoints = 1 + seen->route_count;
    }
    route.waypoints = addresses;
    route.timestamp_us = us_of(seen->time_ns);
    submit.session_uuid = text_of(nobody);
    submit.route = &route;
    return pack(block, EGO_ROUTE, &submit.base);
}

struct ego_message *ego_message_image(struct ego_block **block, const struct swerve_sensor *sensor,
                                      uint32_t frame)
{
    Ego__SubmitImage submit = EGO__SUBMIT_IMAGE__INIT;
    Ego__Image image = EGO__IMAGE__INIT;
    const uint8_t *data = sensor->frames + frame * sensor->stride;
    const int64_t start_ns = sensor->time_ns[frame] - sensor->shutter_ns;
    image.frame_start_us = us_of(start_ns > 0 ? start_ns : 0); /* at the first tick nothing rolls */
    image.frame_end_us = us_of(sensor->time_ns[frame]);
    image.logical_id = text_of(sensor->id);
    image.image_bytes = (ProtobufCBinaryData){sensor->bytes[frame], (uint8_t *)(uintptr_t)data};
    submit.session_uuid = text_of(nobody);
    submit.camera_image = &image;
    return pack(block, EGO_IMAGE, &submit.base);
}

static uint32_t light_of(uint32_t light)
{
    switch (light) {
    case SWERVE_SIGNAL_RED:
    case SWERVE_SIGNAL_RED_YELLOW:
        return LIGHT_RED;
    case SWERVE_SIGNAL_YELLOW:
        return LIGHT_YELLOW;
    case SWERVE_SIGNAL_GREEN:
        return LIGHT_GREEN;
    case SWERVE_SIGNAL_OFF:
        return LIGHT_OFF;
    default:
        return LIGHT_NONE; /* a sign */
    }
}

/* The next light on ego's route, and the speed limit where ego is. */
static void carla_fill(Ego__CarlaData *data, const struct swerve_observation *seen,
                       const struct swerve_surroundings *around)
{
    data->snapshot_timestamp_us = us_of(seen->time_ns);
    data->frame_id = seen->tick;
    data->ego_traffic_light = LIGHT_NONE;
    data->ego_traffic_light_distance_m = -1;
    data->speed_limit_mps = seen->route_count > 0 ? seen->route[0].speed_limit_mps : 0;
    for (uint32_t i = 0; i < around->signal_count; i++) {
        const struct swerve_signal_state *signal = &around->signals[i];
        uint32_t light = light_of(signal->light);
        float distance_m = (float)signal->stop_ahead_m;
        bool nearer = data->ego_traffic_light == LIGHT_NONE ||
                      distance_m < data->ego_traffic_light_distance_m;
        if (light != LIGHT_NONE && distance_m >= 0 && nearer) {
            data->ego_traffic_light = light;
            data->ego_traffic_light_distance_m = distance_m;
        }
    }
}

struct ego_message *ego_message_drive(struct ego_block **block, bool carla,
                                      const struct swerve_observation *seen,
                                      const struct swerve_surroundings *around)
{
    Ego__Drive drive = EGO__DRIVE__INIT;
    Ego__CarlaData data = EGO__CARLA_DATA__INIT;
    uint8_t packed[128];
    drive.session_uuid = text_of(nobody);
    drive.time_now_us = us_of(seen->time_ns);
    drive.time_query_us = us_of(seen->time_ns + TICK_NS);
    if (carla) {
        carla_fill(&data, seen, around);
        CHECK(ego__carla_data__get_packed_size(&data) <= sizeof packed);
        drive.renderer_data.len = ego__carla_data__pack(&data, packed);
        drive.renderer_data.data = packed;
    }
    return pack(block, EGO_DRIVE, &drive.base);
}

/* ---- answers ---- */

/* As many bytes as an answer may have that are not read, and 60,000 poses. */
enum { ANSWER_MEMORY_BYTES_MAX = 2 * GRPC_REPLY_BYTES_MAX };

static bool digest_of(const Ego__Trajectory *trajectory, uint8_t digest[SHA256_BYTES])
{
    struct sha256 hash;
    size_t bytes = trajectory != NULL ? ego__trajectory__get_packed_size(trajectory) : 0;
    uint8_t *packed = malloc(bytes > 0 ? bytes : 1);
    if (packed == NULL) {
        return false;
    }
    if (bytes > 0) {
        ego__trajectory__pack(trajectory, packed);
    }
    sha256_init(&hash);
    sha256_update(&hash, packed, bytes);
    sha256_final(&hash, digest);
    free(packed);
    return true;
}

bool ego_answer_digest(const uint8_t *data, size_t bytes, uint8_t digest[SHA256_BYTES])
{
    struct contract_memory memory;
    contract_memory_init(&memory, ANSWER_MEMORY_BYTES_MAX);
    Ego__DriveAnswer *read = ego__drive_answer__unpack(&memory.allocator, bytes, data);
    bool read_whole = read != NULL && digest_of(read->trajectory, digest);
    ego__drive_answer__free_unpacked(read, &memory.allocator);
    return read_whole;
}

/* A pose's place and heading; NULL where it has them, else what is wrong. */
static const char *pose_read(const Ego__Pose *pose, double *x_m, double *y_m, double *heading_rad)
{
    if (pose == NULL || pose->vec == NULL || pose->quat == NULL) {
        return "has no position or no orientation";
    }
    double w = (double)pose->quat->w, x = (double)pose->quat->x;
    double y = (double)pose->quat->y, z = (double)pose->quat->z;
    double norm = w * w + x * x + y * y + z * z;
    if (!isfinite((double)pose->vec->x) || !isfinite((double)pose->vec->y) || !isfinite(norm)) {
        return "is not finite";
    }
    if (norm < 0.5 || norm > 2) {
        return "has an orientation that is no unit quaternion";
    }
    *x_m = (double)pose->vec->x;
    *y_m = (double)pose->vec->y;
    *heading_rad = dmath_atan2(2 * (w * z + x * y), norm - 2 * (y * y + z * z));
    return NULL;
}

/* Speeds of points that have places and times: the mean of the ways before and behind. */
static void speeds_fill(struct swerve_answer *answer, const struct swerve_observation *seen,
                        const struct ego_frame *frame)
{
    double before_x_m = seen->x_m - frame->rear_m * dmath_cos(seen->heading_rad);
    double before_y_m = seen->y_m - frame->rear_m * dmath_sin(seen->heading_rad);
    double before_s = 0;
    double speed_mps = seen->speed_mps; /* on the way to the point */
    for (uint32_t i = 0; i < answer->point_count; i++) {
        struct swerve_trajectory_point *point = &answer->points[i];
        double dt_s = point->t_s - before_s;
        double dx_m = point->x_m - before_x_m, dy_m = point->y_m - before_y_m;
        double way_m = sqrt(dx_m * dx_m + dy_m * dy_m);
        double now_mps = dt_s > 0 ? way_m / dt_s : speed_mps;
        if (i > 0) {
            answer->points[i - 1].speed_mps = (speed_mps + now_mps) / 2;
        }
        point->speed_mps = now_mps;
        speed_mps = now_mps;
        before_s = point->t_s;
        before_x_m = point->x_m;
        before_y_m = point->y_m;
    }
}

/* From the rear axle to the centre of the box. */
static void centre(struct swerve_answer *answer, const struct ego_frame *frame)
{
    for (uint32_t i = 0; i < answer->point_count; i++) {
        struct swerve_trajectory_point *point = &answer->points[i];
        point->x_m += frame->rear_m * dmath_cos(point->heading_rad);
        point->y_m += frame->rear_m * dmath_sin(point->heading_rad);
    }
}

static int64_t after_us(const Ego__PoseAtTime *at, uint64_t now_us)
{
    return (int64_t)(at->timestamp_us - now_us);
}

/* The poses from now on, of many every second, third ..; headings go on from ego's. */
static bool poses_read(const Ego__Trajectory *trajectory, const struct swerve_observation *seen,
                       struct swerve_answer *answer, char reason[EGODRIVER_REASON_BYTES])
{
    uint64_t now_us = us_of(seen->time_ns);
    size_t first = 0;
    while (first < trajectory->n_poses && after_us(trajectory->poses[first], now_us) < 0) {
        first++;
    }
    size_t step =
        (trajectory->n_poses - first + SWERVE_TRAJECTORY_POINTS - 1) / SWERVE_TRAJECTORY_POINTS;
    double heading_rad = seen->heading_rad;
    for (size_t i = first; i < trajectory->n_poses; i += step) {
        const Ego__PoseAtTime *at = trajectory->poses[i];
        struct swerve_trajectory_point *point = &answer->points[answer->point_count];
        double turned_rad = 0;
        const char *wrong = pose_read(at->pose, &point->x_m, &point->y_m, &turned_rad);
        if (wrong != NULL) {
            snprintf(reason, EGODRIVER_REASON_BYTES, "pose %zu of the answer to drive %s", i,
                     wrong);
            return false;
        }
        heading_rad += dmath_wrap_angle(turned_rad - heading_rad);
        point->heading_rad = heading_rad;
        point->t_s = (double)after_us(at, now_us) / 1e6;
        answer->point_count++;
    }
    return true;
}

/* No poses: the contract's word for "hold". Ego brakes to a stand. */
static void hold(const struct swerve_observation *seen, struct swerve_answer *answer)
{
    answer->action = (struct swerve_action){seen->speed_mps > 0 ? -3.0 : 0.0, 0.0};
}

bool ego_answer_read(const uint8_t *data, size_t bytes, const struct ego_frame *frame,
                     const struct swerve_observation *seen, struct swerve_answer *answer,
                     uint8_t digest[SHA256_BYTES], struct ego_told *told,
                     char reason[EGODRIVER_REASON_BYTES])
{
    struct contract_memory memory;
    contract_memory_init(&memory, ANSWER_MEMORY_BYTES_MAX);
    Ego__DriveAnswer *read = ego__drive_answer__unpack(&memory.allocator, bytes, data);
    bool good = false;
    answer->point_count = 0;
    if (read != NULL && read->debug_info != NULL) {
        const ProtobufCBinaryData *debug = &read->debug_info->unstructured_debug_info;
        ego_told_add(told, seen->tick, debug->data, debug->len);
    }
    if (read == NULL) {
        snprintf(reason, EGODRIVER_REASON_BYTES, "the answer to drive is no DriveResponse");
    } else if (!digest_of(read->trajectory, digest)) {
        snprintf(reason, EGODRIVER_REASON_BYTES, "out of memory");
    } else if (read->terminate_session) {
        snprintf(reason, EGODRIVER_REASON_BYTES,
                 "the driver ended the session (terminate_session)");
    } else if (read->trajectory == NULL || read->trajectory->n_poses == 0) {
        hold(seen, answer);
        good = true;
    } else {
        good = poses_read(read->trajectory, seen, answer, reason);
        if (good && answer->point_count == 0) {
            snprintf(reason, EGODRIVER_REASON_BYTES,
                     "all %zu poses of the answer to drive are of the past",
                     read->trajectory->n_poses);
            good = false;
        }
        speeds_fill(answer, seen, frame);
        centre(answer, frame);
    }
    ego__drive_answer__free_unpacked(read, &memory.allocator);
    return good;
}
