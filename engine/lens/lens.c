/*
 * Lens: the formulas of OpenCV's pinhole and fisheye models, and of f-theta lenses.
 *
 * All are a function of the angle to the axis, but for the tangential terms of a pinhole: the
 * inverse is found along the radius first, then in the plane.
 */
#include "engine/lens/lens.h"

#include "base/dmath.h"
#include "base/units.h"

#include <math.h>

#define STEPS 4096           /* of the angle, to find where a formula turns back */
#define PINHOLE_MAX_RAD 1.48 /* 85 degrees */
#define END_MIN_RAD 0.02
#define CLOSE 1e-9 /* pixels */

/* Rational distortion of a pinhole at a squared distance to the centre, in focal lengths. */
static double radial_at(const double *k, double q)
{
    return (1.0 + q * (k[0] + q * (k[1] + q * k[2]))) / (1.0 + q * (k[3] + q * (k[4] + q * k[5])));
}

/* Distance to the centre at an angle: in pixels of an f-theta lens, else in focal lengths, without
 * tangential terms. */
static double radius_at(const struct rig_lens *lens, double angle)
{
    const double *k = lens->k;
    double square = angle * angle;
    double sum = 0.0;
    switch (lens->model) {
    case LENS_FISHEYE:
        return angle * (1.0 + square * (k[0] + square * (k[1] + square * (k[2] + square * k[3]))));
    case LENS_FTHETA:
        for (int i = LENS_POLYNOMIAL_MAX; i-- > 0;) {
            sum = sum * angle + lens->angle_to_pixels[i];
        }
        return sum;
    default: {
        double r = dmath_tan(angle);
        return r * radial_at(k, r * r);
    }
    }
}

enum status lens_init(const struct rig_camera *camera, struct lens *out, struct error *error)
{
    const struct rig_lens *model = &camera->lens;
    double end = model->model == LENS_PINHOLE ? PINHOLE_MAX_RAD : PI_RAD;
    double last = radius_at(model, 0.0);
    int steps = 0;
    while (steps < STEPS) {
        double next = radius_at(model, end * (steps + 1) / STEPS);
        if (!(next > last)) { /* it turns back, or has a pole */
            break;
        }
        last = next;
        steps++;
    }
    *out = (struct lens){.model = *model, .end_rad = end * steps / STEPS};
    out->straight = model->model == LENS_PINHOLE && model->p[0] == 0.0 && model->p[1] == 0.0;
    for (int i = 0; i < LENS_RADIAL_MAX; i++) {
        out->straight = out->straight && model->k[i] == 0.0;
    }
    out->max_rad =
        isnan(model->max_angle_rad) ? out->end_rad : dmath_min(out->end_rad, model->max_angle_rad);
    if (out->end_rad < END_MIN_RAD) {
        return error_set(error, STATUS_BAD_INPUT,
                         "camera %s: expected a lens whose images move outwards with the angle to "
                         "the axis, found one that turns back at %.3f rad",
                         camera->id, out->end_rad);
    }
    return STATUS_OK;
}

/* Pinhole: x, y per z to focal lengths. */
static void distort(const struct rig_lens *lens, double x, double y, double *out_x, double *out_y)
{
    double q = x * x + y * y;
    double radial = radial_at(lens->k, q);
    *out_x = x * radial + 2.0 * lens->p[0] * x * y + lens->p[1] * (q + 2.0 * x * x);
    *out_y = y * radial + lens->p[0] * (q + 2.0 * y * y) + 2.0 * lens->p[1] * x * y;
}

bool lens_project(const struct lens *lens, struct vec3 direction, double *u, double *v)
{
    const struct rig_lens *model = &lens->model;
    double side = sqrt(direction.x * direction.x + direction.y * direction.y);
    double angle = dmath_atan2(side, direction.z);
    if (!(angle <= lens->end_rad)) {
        return false;
    }
    if (model->model == LENS_PINHOLE) {
        double x;
        double y;
        distort(model, direction.x / direction.z, direction.y / direction.z, &x, &y);
        *u = model->fx * x + model->cx;
        *v = model->fy * y + model->cy;
        return true;
    }
    bool pixels = model->model == LENS_FTHETA;
    double radius = radius_at(model, angle);
    double per_side = side > 0.0 ? radius / side : 0.0;
    *u = (pixels ? 1.0 : model->fx) * direction.x * per_side + model->cx;
    *v = (pixels ? 1.0 : model->fy) * direction.y * per_side + model->cy;
    return true;
}

/* The angle at a distance to the centre, by the Illinois method; the formula grows up to the
 * largest angle. */
static bool angle_at(const struct lens *lens, double radius, double *out)
{
    if (lens->straight) {
        *out = dmath_atan(radius);
        return *out <= lens->max_rad;
    }
    double low = 0.0;
    double high = lens->max_rad;
    double below = radius_at(&lens->model, low) - radius;
    double above = radius_at(&lens->model, high) - radius;
    double angle = 0.0;
    int side = 0;
    if (!(above >= 0.0) || below > CLOSE) {
        return false;
    }
    for (int i = 0; i < 100; i++) {
        angle = above > below ? low - below * (high - low) / (above - below) : high;
        double off = radius_at(&lens->model, angle) - radius;
        if (fabs(off) < 1e-14 * (1.0 + radius)) {
            break;
        }
        if (off < 0.0) {
            low = angle;
            below = off;
            above = side < 0 ? 0.5 * above : above;
            side = -1;
        } else {
            high = angle;
            above = off;
            below = side > 0 ? 0.5 * below : below;
            side = 1;
        }
    }
    *out = angle;
    return true;
}

/* Moves a direction of a pinhole until it lands at (u, v): Newton's steps in the plane, for the
 * tangential terms. */
static bool refine(const struct lens *lens, double u, double v, double *x, double *y)
{
    const struct rig_lens *model = &lens->model;
    const double step = 1e-6;
    for (int i = 0; i < 20; i++) {
        double at[2];
        double right[2];
        double below[2];
        distort(model, *x, *y, &at[0], &at[1]);
        double off_x = (u - model->cx) / model->fx - at[0];
        double off_y = (v - model->cy) / model->fy - at[1];
        if (fabs(off_x) * model->fx + fabs(off_y) * model->fy < CLOSE) {
            return true;
        }
        distort(model, *x + step, *y, &right[0], &right[1]);
        distort(model, *x, *y + step, &below[0], &below[1]);
        double a = (right[0] - at[0]) / step;
        double b = (below[0] - at[0]) / step;
        double c = (right[1] - at[1]) / step;
        double d = (below[1] - at[1]) / step;
        double scale = 1.0 / (a * d - b * c);
        *x += (d * off_x - b * off_y) * scale;
        *y += (a * off_y - c * off_x) * scale;
    }
    return false;
}

bool lens_direction(const struct lens *lens, double u, double v, struct vec3 *out)
{
    const struct rig_lens *model = &lens->model;
    bool pixels = model->model == LENS_FTHETA;
    double x = (u - model->cx) / (pixels ? 1.0 : model->fx);
    double y = (v - model->cy) / (pixels ? 1.0 : model->fy);
    double radius = sqrt(x * x + y * y);
    double angle;
    if (!angle_at(lens, radius, &angle)) {
        return false;
    }
    double sine;
    double cosine;
    dmath_sincos(angle, &sine, &cosine);
    double per_radius = radius > 0.0 ? sine / radius : 0.0;
    *out = (struct vec3){x * per_radius, y * per_radius, cosine};
    if (model->model != LENS_PINHOLE || (model->p[0] == 0.0 && model->p[1] == 0.0)) {
        return true;
    }
    x = out->x / out->z;
    y = out->y / out->z;
    if (!refine(lens, u, v, &x, &y)) {
        return false;
    }
    double length = sqrt(x * x + y * y + 1.0);
    *out = (struct vec3){x / length, y / length, 1.0 / length};
    return true;
}
