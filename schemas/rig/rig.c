/*
 * The built-in rig, and sizes of any: what needs no JSON, so that the engine builds with libc
 * alone. See rig.h.
 */
#include "schemas/rig/rig.h"

#include "base/dmath.h"
#include "base/units.h"
#include "schemas/observation.h"

#include <math.h>
#include <string.h>

void rig_swerve(struct rig *out)
{
    static const char *const ids[CAMERA_COUNT] = {"left", "front", "right"};
    memset(out, 0, sizeof *out);
    memcpy(out->id, "swerve", sizeof "swerve");
    out->bev = true;
    out->camera_count = CAMERA_COUNT;
    for (int i = 0; i < CAMERA_COUNT; i++) {
        const struct camera_calibration *calibration = &camera_calibrations[i];
        struct rig_camera *camera = &out->cameras[i];
        double focal = CAMERA_COLS / 2.0 / dmath_tan(calibration->hfov_rad / 2);
        strcpy(camera->id, ids[i]);
        camera->width = CAMERA_COLS;
        camera->height = CAMERA_ROWS;
        camera->rate_hz = TICK_HZ;
        camera->pose = (struct rig_pose){calibration->x_m, calibration->y_m, calibration->z_m,
                                         .yaw_rad = calibration->yaw_rad};
        camera->lens = (struct rig_lens){.fx = focal,
                                         .fy = focal,
                                         .cx = (CAMERA_COLS - 1) / 2.0,
                                         .cy = (CAMERA_ROWS - 1) / 2.0,
                                         .max_angle_rad = NAN};
    }
}

uint32_t rig_camera_frames(const struct rig_camera *camera)
{
    return (uint32_t)(camera->rate_hz / TICK_HZ + 0.5);
}

void rig_camera_shrink(const struct rig_camera *camera, int32_t width, struct rig_camera *out)
{
    struct rig_lens *lens = &out->lens;
    *out = *camera;
    out->rate_hz = TICK_HZ;
    out->shutter = SHUTTER_GLOBAL;
    out->shutter_ms = 0.0;
    if (camera->width <= width) {
        return;
    }
    out->width = width;
    out->height = (int32_t)fmax(2.0, round((double)camera->height * width / camera->width));
    double across = (double)out->width / camera->width;
    double down = (double)out->height / camera->height;
    lens->fx *= across;
    lens->fy *= down;
    lens->cx = (lens->cx + 0.5) * across - 0.5;
    lens->cy = (lens->cy + 0.5) * down - 0.5;
    for (int i = 0; i < LENS_POLYNOMIAL_MAX; i++) {
        lens->angle_to_pixels[i] *= across;
    }
}

uint64_t rig_bytes(const struct rig *rig)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        bytes += (uint64_t)rig->cameras[i].width * (uint64_t)rig->cameras[i].height * 3;
    }
    return bytes;
}
