/*
 * Rig: the sensors that a planner, a scenario or a world declares; its JSON is described by
 * rig.schema.json.
 *
 * Vehicle frame: x ahead, y left, z up, origin on the ground below the centre of ego's box.
 * Camera frame: x right, y down, z along the optical axis. Without rotation the axis is x of the
 * vehicle; yaw turns it left, then pitch turns it down, then roll turns the image about it:
 * vehicle = Rz(yaw) Ry(pitch) Rx(roll) sensor. Pixels: the centre of the upper left one is (0, 0),
 * as OpenCV has it.
 */
#ifndef SWERVE_SCHEMAS_RIG_H
#define SWERVE_SCHEMAS_RIG_H

#include "base/errors.h"
#include "base/sha256.h"
#include "base/status.h"
#include "schemas/limits.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    RIG_CAMERAS_MAX = 16,
    RIG_LIDARS_MAX = 4,
    RIG_ELEVATIONS_MAX = 256,
    RIG_SIDE_MAX = 4096, /* pixels */
    RIG_ID_MAX = 48,
    RIG_SENSORS_MAX = RIG_CAMERAS_MAX + RIG_LIDARS_MAX + 1,
    LENS_RADIAL_MAX = 6,
    LENS_POLYNOMIAL_MAX = 8,
    RIG_POINT_BYTES = 16,
    RIG_FILE_BYTES_MAX = 1 << 20,
};

#define RIG_BEV_ID "bev" /* no other sensor's */

enum lens_model {
    LENS_PINHOLE = 0, /* OpenCV's, with rational radial and tangential distortion */
    LENS_FISHEYE,     /* OpenCV's fisheye: theta (1 + k1 theta^2 + .. + k4 theta^8) */
    LENS_FTHETA,      /* pixels from the centre are a polynomial of the angle to the axis */
    LENS_MODEL_COUNT
};
extern const char *const lens_model_names[LENS_MODEL_COUNT];

enum rig_shutter {
    SHUTTER_GLOBAL = 0,
    SHUTTER_ROLLING_TOP, /* the top row first */
    SHUTTER_ROLLING_BOTTOM,
    SHUTTER_ROLLING_LEFT,
    SHUTTER_ROLLING_RIGHT,
    SHUTTER_COUNT
};
extern const char *const rig_shutter_names[SHUTTER_COUNT];

struct rig_pose {
    double x_m, y_m, z_m;
    double roll_rad, pitch_rad, yaw_rad;
};

struct rig_lens {
    enum lens_model model;
    double fx, fy; /* pixels; of LENS_FTHETA unused */
    double cx, cy; /* pixels */
    double k[LENS_RADIAL_MAX];
    double p[2]; /* tangential, of LENS_PINHOLE */
    /* Of LENS_FTHETA: pixels from the centre by the angle in radians, from the constant term on. */
    double angle_to_pixels[LENS_POLYNOMIAL_MAX];
    double max_angle_rad; /* to the axis, beyond which nothing is seen */
};

struct rig_camera {
    char id[RIG_ID_MAX];
    int32_t width, height; /* pixels */
    double rate_hz;
    enum rig_shutter shutter;
    double shutter_ms; /* from the first row to the last */
    struct rig_pose pose;
    struct rig_lens lens;
};

/* A lidar that turns. A point is 16 bytes: x, y, z as float in m, intensity, ring, time in 2 us. */
struct rig_lidar {
    char id[RIG_ID_MAX];
    double rate_hz;
    struct rig_pose pose;
    int32_t azimuths;
    uint32_t elevation_count;
    double elevations_rad[RIG_ELEVATIONS_MAX];
    double range_m;
};

struct rig {
    char id[RIG_ID_MAX];
    uint32_t camera_count, lidar_count;
    struct rig_camera cameras[RIG_CAMERAS_MAX];
    struct rig_lidar lidars[RIG_LIDARS_MAX];
    bool bev; /* the grid of schemas/observation.h, too: the sensor RIG_BEV_ID */
};

/* The three cameras and the grid of schemas/observation.h: what nobody has to ask for. */
void rig_swerve(struct rig *out);

/* Reads a file of at most RIG_FILE_BYTES_MAX. Errors name file, place, expected and found; `errors`
 * (NULL: the first stops) takes all that are in the file. */
enum status rig_read(const char *path, struct rig *out, struct errors *errors, struct error *error);
enum status rig_decode(const char *file, const json_t *document, struct rig *out,
                       struct error *error);
/* New reference, NULL where memory runs out. */
json_t *rig_encode(const struct rig *rig);
/* Canonical text of its JSON, to be freed. */
enum status rig_text(const struct rig *rig, char **out, struct error *error);
/* SHA-256 of the canonical text, in hexadecimal; of the built-in rig the empty text. */
enum status rig_hash(const struct rig *rig, char out[SHA256_HEX_BYTES], struct error *error);

/* Frames that a camera takes in a tick. */
uint32_t rig_camera_frames(const struct rig_camera *camera);

/* The camera with at most `width` columns, one picture a tick, all of it at once: the same view. */
void rig_camera_shrink(const struct rig_camera *camera, int32_t width, struct rig_camera *out);

/* Bytes of all images of one time, RGB. */
uint64_t rig_bytes(const struct rig *rig);

#endif
