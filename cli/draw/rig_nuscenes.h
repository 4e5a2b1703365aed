/*
 * A rig.json of the sensors of a sample of nuScenes (nuscenes.org, "nuScenes schema").
 */
#ifndef SWERVE_CLI_DRAW_RIG_NUSCENES_H
#define SWERVE_CLI_DRAW_RIG_NUSCENES_H

#include "schemas/rig/rig.h"

/* From the axle to the middle of ego's box where nobody says: half of the wheelbase of the car that
 * recorded it, a Renault Zoe (2.588 m), as the axle of Swerve's cars lies. */
#define RIG_NUSCENES_AXLE_M 1.294

/* Reads sample_data.json, calibrated_sensor.json and sensor.json of a folder such as v1.0-mini. The
 * cameras and the lidar are those of the key frames of a sample, of the first where `sample` is
 * NULL. nuScenes measures from the rear axle, rear_axle_m behind the middle of ego's box. Radars
 * are left out. BAD_INPUT: what is there is another format; NOT_FOUND: there is no such sample. */
enum status rig_nuscenes_read(const char *folder, const char *sample, double rear_axle_m,
                              struct rig *out, struct error *error);

#endif
