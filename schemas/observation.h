/*
 * Observation: what every world, learned or not, shows the planner each tick. Documented for users
 * in schemas/observation.md; the shapes below are the contract.
 *
 * BEV grid: uint8 [BEV_CHANNELS][BEV_ROWS][BEV_COLS], ego-centred and ego-aligned. Row r covers
 * x in [BEV_X_MIN_M + r * BEV_CELL_M, + BEV_CELL_M) ahead of ego's box centre, column c covers
 * y in [BEV_Y_MIN_M + c * BEV_CELL_M, + BEV_CELL_M) to ego's left. Row 0 is the rearmost.
 * 255 is "all of this cell", so edges are antialiased.
 *
 * Cameras: three pinhole images, uint8 RGB [CAMERA_ROWS][CAMERA_COLS][3], row 0 at the top.
 */
#ifndef SWERVE_SCHEMAS_OBSERVATION_H
#define SWERVE_SCHEMAS_OBSERVATION_H

#include "base/units.h"

#define BEV_CELL_M 0.5
#define BEV_X_MIN_M (-16.0)
#define BEV_Y_MIN_M (-24.0)

enum {
    BEV_ROWS = 192, /* x from -16 m to +80 m */
    BEV_COLS = 96,  /* y from -24 m to +24 m */
    BEV_CELLS = BEV_ROWS * BEV_COLS,
};

enum bev_channel {
    BEV_OCCUPANCY = 0, /* coverage by surfaces that returned a lidar ray (first return only) */
    BEV_UNSEEN,   /* 255: no ray reached this cell (behind a first return, beyond visibility) */
    BEV_DRIVABLE, /* coverage by drivable area, from the map */
    BEV_MARKING,  /* coverage by lane markings and (at half value) crosswalks, from the map */
    BEV_CHANNELS
};
enum { BEV_BYTES = BEV_CHANNELS * BEV_CELLS };

enum camera_index { CAMERA_LEFT = 0, CAMERA_FRONT, CAMERA_RIGHT, CAMERA_COUNT };
enum { CAMERA_ROWS = 64, CAMERA_COLS = 96, CAMERA_BYTES = CAMERA_ROWS * CAMERA_COLS * 3 };

/* Pinhole calibration; the camera looks along its yaw, without roll or pitch. Vehicle frame: x
 * ahead, y left, z up, origin on the ground below ego's box centre. Square pixels, principal point
 * in the image centre, focal length from the horizontal field of view. */
struct camera_calibration {
    double x_m;
    double y_m;
    double z_m;
    double yaw_rad;
    double hfov_rad;
};

static const struct camera_calibration camera_calibrations[CAMERA_COUNT] = {
    [CAMERA_LEFT] = {0.6, 0.5, 1.5, 60.0 * PI_RAD / 180.0, 75.0 * PI_RAD / 180.0},
    [CAMERA_FRONT] = {0.8, 0.0, 1.5, 0.0, 75.0 * PI_RAD / 180.0},
    [CAMERA_RIGHT] = {0.6, -0.5, 1.5, -60.0 * PI_RAD / 180.0, 75.0 * PI_RAD / 180.0},
};

#endif
