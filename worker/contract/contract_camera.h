/*
 * Cameras of a rig and poses as AlpaSim's contracts have them, and back.
 *
 * The contract's rig stands on the rear axle, ours below the centre of ego's box. Its principal
 * points count from the corner of the first pixel, ours from its centre. A camera stands there as
 * its body (x ahead, y left) or as its optical frame (x right, y down).
 */
#ifndef SWERVE_WORKER_CONTRACT_CAMERA_H
#define SWERVE_WORKER_CONTRACT_CAMERA_H

#include "schemas/proto/egodriver.pb-c.h"
#include "schemas/rig/rig.h"

#include <stdbool.h>
#include <stddef.h>

enum contract_shutter { CONTRACT_SHUTTER_GLOBAL = 5 };

/* A camera and the records that it points to; of the rig's camera it borrows id and lens. */
struct contract_camera {
    Ego__Camera camera;
    Ego__CameraSpec spec;
    Ego__Pinhole pinhole;
    Ego__Fisheye fisheye;
    Ego__Ftheta ftheta;
    Ego__Pose pose;
    Ego__Vec3 vec;
    Ego__Quat quat;
};

/* `rear_m`: from the rear axle to the centre of ego's box. `optical`: its frame, else its body's.
 * The address of *out must not change while the record is used. */
void contract_camera_fill(struct contract_camera *out, const struct rig_camera *camera,
                          double rear_m, bool optical);

/* A pose on the ground at a time, and the records that it points to. */
struct contract_pose {
    Ego__PoseAtTime at;
    Ego__Pose pose;
    Ego__Vec3 vec;
    Ego__Quat quat;
};

/* The address of *out must not change while the record is used. */
void contract_pose_fill(struct contract_pose *out, uint64_t time_us, double x_m, double y_m,
                        double z_m, double heading_rad);

/* Orientation and place of a pose, of a camera as above: relative to what the pose is in. False: it
 * is no pose (a place that is not finite, a quaternion that is not of unit length), and `reason`
 * says which. */
bool contract_pose_read(const Ego__Pose *pose, bool optical, struct rig_pose *out,
                        const char **reason);

/* Size and lens. False: `reason` says what of it is not drawn here. Leaves id, pose and rate. */
bool contract_lens_read(const Ego__CameraSpec *spec, struct rig_camera *out, const char **reason);

/* Makes the camera one that sees the same in pictures of another size. False: `reason` says why it
 * cannot. */
bool contract_lens_scale(struct rig_camera *camera, uint32_t width, uint32_t height,
                         const char **reason);

#endif
