/*
 * Lens: where a direction lands in the image of a camera of a rig (schemas/rig/rig.h), and which
 * direction a pixel looks in. Pure and deterministic.
 *
 * Directions are in the camera's frame, x right, y down, z along the axis. Pixels as in the rig:
 * the centre of the upper left one is (0, 0).
 */
#ifndef SWERVE_ENGINE_LENS_LENS_H
#define SWERVE_ENGINE_LENS_LENS_H

#include "kernels/draw_list_camera.h"
#include "schemas/rig/rig.h"

#include <stdbool.h>

struct lens {
    struct rig_lens model;
    double end_rad; /* to the axis, up to which the formula is one to one */
    bool straight;  /* a pinhole without distortion */
    double max_rad; /* up to which something is seen: as declared, at most end_rad */
};

/* Fails where the formula is not one to one near the axis. */
enum status lens_init(const struct rig_camera *camera, struct lens *out, struct error *error);

/* False beyond end_rad. `direction` need not have length 1. */
bool lens_project(const struct lens *lens, struct vec3 direction, double *u, double *v);

/* Of length 1; within 1e-6 pixels of what lands there. False where nothing is seen. */
bool lens_direction(const struct lens *lens, double u, double v, struct vec3 *out);

#endif
