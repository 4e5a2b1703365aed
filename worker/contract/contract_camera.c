/*
 * Cameras of a rig and poses as AlpaSim's contracts have them. See contract_camera.h.
 */
#include "worker/contract/contract_camera.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

#define PLACE_MAX_M 1e6

enum { ANGLE_TO_PIXELS = 2 }; /* the polynomial that is meant */
enum { FTHETA_NUMBERS = 6 };  /* that servers read; more are sent where they are not 0 */

/* The generated records take text that they do not write to. */
static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* ---- to the contract ---- */

struct quaternion {
    double w, x, y, z;
};

static struct quaternion multiply(struct quaternion a, struct quaternion b)
{
    return (struct quaternion){
        a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
        a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
        a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
        a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
    };
}

/* From a camera's body to its optical frame. */
static const struct quaternion to_optical = {0.5, -0.5, 0.5, -0.5};

static struct quaternion camera_turn(const struct rig_pose *pose, bool optical)
{
    struct quaternion yaw = {dmath_cos(pose->yaw_rad / 2), 0, 0, dmath_sin(pose->yaw_rad / 2)};
    struct quaternion pitch = {dmath_cos(pose->pitch_rad / 2), 0, dmath_sin(pose->pitch_rad / 2),
                               0};
    struct quaternion roll = {dmath_cos(pose->roll_rad / 2), dmath_sin(pose->roll_rad / 2), 0, 0};
    struct quaternion body = multiply(multiply(yaw, pitch), roll);
    return optical ? multiply(body, to_optical) : body;
}

/* Angle to the axis beyond which nothing is seen, a half turn where there is no limit. */
static double limit_to(const struct rig_lens *lens)
{
    return isnan(lens->max_angle_rad) ? PI_RAD : lens->max_angle_rad;
}

/* Coefficients are borrowed from the lens. */
static void lens_fill(struct contract_camera *record, const struct rig_lens *lens)
{
    double *k = (double *)(uintptr_t)lens->k;
    double *p = (double *)(uintptr_t)lens->p;
    double cx = lens->cx + 0.5, cy = lens->cy + 0.5;
    switch (lens->model) {
    case LENS_PINHOLE:
        record->spec.model_case = EGO__CAMERA_SPEC__MODEL_PINHOLE;
        record->spec.pinhole = &record->pinhole;
        record->pinhole = (Ego__Pinhole)EGO__PINHOLE__INIT;
        record->pinhole.principal_x = cx;
        record->pinhole.principal_y = cy;
        record->pinhole.focal_x = lens->fx;
        record->pinhole.focal_y = lens->fy;
        record->pinhole.n_radial = LENS_RADIAL_MAX;
        record->pinhole.radial = k;
        record->pinhole.n_tangential = COUNT_OF(lens->p);
        record->pinhole.tangential = p;
        break;
    case LENS_FISHEYE:
        record->spec.model_case = EGO__CAMERA_SPEC__MODEL_FISHEYE;
        record->spec.fisheye = &record->fisheye;
        record->fisheye = (Ego__Fisheye)EGO__FISHEYE__INIT;
        record->fisheye.principal_x = cx;
        record->fisheye.principal_y = cy;
        record->fisheye.focal_x = lens->fx;
        record->fisheye.focal_y = lens->fy;
        record->fisheye.n_radial = 4;
        record->fisheye.radial = k;
        record->fisheye.max_angle = limit_to(lens);
        break;
    case LENS_FTHETA:
        record->spec.model_case = EGO__CAMERA_SPEC__MODEL_FTHETA;
        record->spec.ftheta = &record->ftheta;
        record->ftheta = (Ego__Ftheta)EGO__FTHETA__INIT;
        record->ftheta.principal_x = cx;
        record->ftheta.principal_y = cy;
        record->ftheta.reference = ANGLE_TO_PIXELS;
        record->ftheta.n_angle_to_pixels = LENS_POLYNOMIAL_MAX;
        while (record->ftheta.n_angle_to_pixels > FTHETA_NUMBERS &&
               lens->angle_to_pixels[record->ftheta.n_angle_to_pixels - 1] == 0) {
            record->ftheta.n_angle_to_pixels--;
        }
        record->ftheta.angle_to_pixels = (double *)(uintptr_t)lens->angle_to_pixels;
        record->ftheta.max_angle = limit_to(lens);
        break;
    case LENS_MODEL_COUNT:
        CHECK(false);
    }
}

void contract_camera_fill(struct contract_camera *record, const struct rig_camera *camera,
                          double rear_m, bool optical)
{
    struct quaternion turn = camera_turn(&camera->pose, optical);
    ego__camera__init(&record->camera);
    ego__camera_spec__init(&record->spec);
    ego__pose__init(&record->pose);
    ego__vec3__init(&record->vec);
    ego__quat__init(&record->quat);
    record->vec.x = (float)(camera->pose.x_m + rear_m);
    record->vec.y = (float)camera->pose.y_m;
    record->vec.z = (float)camera->pose.z_m;
    record->quat.w = (float)turn.w;
    record->quat.x = (float)turn.x;
    record->quat.y = (float)turn.y;
    record->quat.z = (float)turn.z;
    record->pose.vec = &record->vec;
    record->pose.quat = &record->quat;
    lens_fill(record, &camera->lens);
    record->spec.logical_id = text_of(camera->id);
    record->spec.width = (uint32_t)camera->width;
    record->spec.height = (uint32_t)camera->height;
    record->spec.shutter =
        CONTRACT_SHUTTER_GLOBAL; /* as planners' frames are, whatever the rig says */
    record->camera.intrinsics = &record->spec;
    record->camera.rig_to_camera = &record->pose;
    record->camera.logical_id = text_of(camera->id);
}

void contract_pose_fill(struct contract_pose *record, uint64_t time_us, double x_m, double y_m,
                        double z_m, double heading_rad)
{
    ego__pose_at_time__init(&record->at);
    ego__pose__init(&record->pose);
    ego__vec3__init(&record->vec);
    ego__quat__init(&record->quat);
    record->vec.x = (float)x_m;
    record->vec.y = (float)y_m;
    record->vec.z = (float)z_m;
    record->quat.w = (float)dmath_cos(heading_rad / 2);
    record->quat.z = (float)dmath_sin(heading_rad / 2);
    record->pose.vec = &record->vec;
    record->pose.quat = &record->quat;
    record->at.pose = &record->pose;
    record->at.timestamp_us = time_us;
}

/* ---- from the contract ---- */

bool contract_pose_read(const Ego__Pose *pose, bool optical, struct rig_pose *out,
                        const char **reason)
{
    const struct quaternion back = {to_optical.w, -to_optical.x, -to_optical.y, -to_optical.z};
    if (pose == NULL || pose->vec == NULL || pose->quat == NULL) {
        *reason = "has no position or no orientation";
        return false;
    }
    const struct vec3_read {
        double x, y, z;
    } at = {(double)pose->vec->x, (double)pose->vec->y, (double)pose->vec->z};
    struct quaternion q = {(double)pose->quat->w, (double)pose->quat->x, (double)pose->quat->y,
                           (double)pose->quat->z};
    double norm = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z;
    if (!isfinite(at.x) || !isfinite(at.y) || !isfinite(at.z) || !isfinite(norm)) {
        *reason = "is not finite";
        return false;
    }
    if (fabs(at.x) > PLACE_MAX_M || fabs(at.y) > PLACE_MAX_M || fabs(at.z) > PLACE_MAX_M) {
        *reason = "is more than 1,000 km away";
        return false;
    }
    if (norm < 0.5 || norm > 2) {
        *reason = "has an orientation that is no unit quaternion";
        return false;
    }
    q = optical ? multiply(q, back) : q;
    double ahead_z = 2 * (q.x * q.z - q.w * q.y) / norm; /* of the camera's axis */
    double sine = ahead_z < -1 ? 1 : ahead_z > 1 ? -1 : -ahead_z;
    *out = (struct rig_pose){
        .x_m = at.x,
        .y_m = at.y,
        .z_m = at.z,
        .roll_rad = dmath_atan2(2 * (q.w * q.x + q.y * q.z), norm - 2 * (q.x * q.x + q.y * q.y)),
        .pitch_rad = dmath_atan2(sine, sqrt(1 - sine * sine)),
        .yaw_rad = dmath_atan2(2 * (q.w * q.z + q.x * q.y), norm - 2 * (q.y * q.y + q.z * q.z)),
    };
    return true;
}

/* Copies as many coefficients as there are; false: more than fit, or one is not finite. */
static bool coefficients_read(const double *from, size_t count, double *to, size_t room)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(from[i]) || (i >= room && from[i] != 0)) {
            return false;
        }
        if (i < room) {
            to[i] = from[i];
        }
    }
    return true;
}

/* The same limit as a rig has it: NAN, none, for what the contract leaves out or more than there
 * is. */
static double limit_from(double max_angle)
{
    return max_angle == 0 || max_angle >= PI_RAD ? (double)NAN : max_angle;
}

static bool ftheta_read(const Ego__Ftheta *from, struct rig_lens *out, const char **reason)
{
    out->model = LENS_FTHETA;
    out->cx = from->principal_x - 0.5;
    out->cy = from->principal_y - 0.5;
    out->max_angle_rad = limit_from(from->max_angle);
    *reason = "has a lens f-theta without angle_to_pixeldist_poly of at most 8 numbers";
    return from->n_angle_to_pixels > 0 &&
           coefficients_read(from->angle_to_pixels, from->n_angle_to_pixels, out->angle_to_pixels,
                             LENS_POLYNOMIAL_MAX);
}

static bool pinhole_read(const Ego__Pinhole *from, struct rig_lens *out, const char **reason)
{
    out->model = LENS_PINHOLE;
    out->max_angle_rad = NAN;
    out->fx = from->focal_x;
    out->fy = from->focal_y;
    out->cx = from->principal_x - 0.5;
    out->cy = from->principal_y - 0.5;
    *reason = "has a pinhole with more than 6 radial or 2 tangential coefficients";
    return coefficients_read(from->radial, from->n_radial, out->k, LENS_RADIAL_MAX) &&
           coefficients_read(from->tangential, from->n_tangential, out->p, 2);
}

static bool fisheye_read(const Ego__Fisheye *from, struct rig_lens *out, const char **reason)
{
    out->model = LENS_FISHEYE;
    out->fx = from->focal_x;
    out->fy = from->focal_y;
    out->cx = from->principal_x - 0.5;
    out->cy = from->principal_y - 0.5;
    out->max_angle_rad = limit_from(from->max_angle);
    *reason = "has a fisheye with more than 4 coefficients";
    return coefficients_read(from->radial, from->n_radial, out->k, 4);
}

bool contract_lens_read(const Ego__CameraSpec *spec, struct rig_camera *out, const char **reason)
{
    bool good = false;
    *reason = "has no size from 1 to 4096 pixels";
    if (spec->width < 1 || spec->height < 1 || spec->width > RIG_SIDE_MAX ||
        spec->height > RIG_SIDE_MAX) {
        return false;
    }
    out->width = (int32_t)spec->width;
    out->height = (int32_t)spec->height;
    out->shutter = SHUTTER_GLOBAL;
    memset(&out->lens, 0, sizeof out->lens);
    *reason = "has no lens f-theta, OpenCV pinhole or OpenCV fisheye";
    if (spec->model_case == EGO__CAMERA_SPEC__MODEL_FTHETA) {
        good = ftheta_read(spec->ftheta, &out->lens, reason);
    } else if (spec->model_case == EGO__CAMERA_SPEC__MODEL_PINHOLE) {
        good = pinhole_read(spec->pinhole, &out->lens, reason);
    } else if (spec->model_case == EGO__CAMERA_SPEC__MODEL_FISHEYE) {
        good = fisheye_read(spec->fisheye, &out->lens, reason);
    }
    const struct rig_lens *lens = &out->lens;
    const double numbers[] = {lens->cx, lens->cy, lens->fx, lens->fy};
    for (size_t i = 0; i < COUNT_OF(numbers) && good; i++) {
        *reason = "has a lens with a number that is not finite";
        good = isfinite(numbers[i]);
    }
    if (good && lens->model != LENS_FTHETA && (lens->fx <= 0 || lens->fy <= 0)) {
        *reason = "has a focal length that is not positive";
        good = false;
    }
    return good;
}

bool contract_lens_scale(struct rig_camera *camera, uint32_t width, uint32_t height,
                         const char **reason)
{
    struct rig_lens *lens = &camera->lens;
    const double across = (double)width / camera->width, down = (double)height / camera->height;
    const double apart_pixels = fabs(across - down) * fmax(camera->width, camera->height) / 2;
    *reason = "has no size from 1 to 4096 pixels";
    if (width < 1 || height < 1 || width > RIG_SIDE_MAX || height > RIG_SIDE_MAX) {
        return false;
    }
    *reason = "has a lens f-theta, which is scaled alike across and down alone";
    if (lens->model == LENS_FTHETA && apart_pixels > 0.5) {
        return false;
    }
    camera->width = (int32_t)width;
    camera->height = (int32_t)height;
    lens->cx = (lens->cx + 0.5) * across - 0.5; /* from the middle of the first pixel */
    lens->cy = (lens->cy + 0.5) * down - 0.5;
    lens->fx *= across;
    lens->fy *= down;
    for (int i = 0; i < LENS_POLYNOMIAL_MAX; i++) {
        lens->angle_to_pixels[i] *= (across + down) / 2;
    }
    return true;
}
