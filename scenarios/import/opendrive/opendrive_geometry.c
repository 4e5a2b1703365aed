/*
 * OpenDRIVE: where a piece of a reference line is, ds metres behind its beginning.
 *
 * Lines and arcs are closed forms (an arc by its chord, so that it becomes a line without a jump).
 * A spiral integrates the cosine and sine of a quadratic by Gauss-Legendre with 8 nodes on pieces
 * that turn by at most 1 rad, whose remainder is below 1e-20 of the length; where the pieces of one
 * that turns further begin is kept, so that every place costs the same. Polynomials are
 * functions of a parameter; s is the length of their curve, as of every other reference line, so
 * the parameter is found by Newton's method on the curve's length, stretched to the length that the
 * file gives.
 */
#include "base/dmath.h"
#include "scenarios/import/opendrive/opendrive_internal.h"

#include <math.h>

enum { ARC_PIECES = 32, NEWTON_STEPS = 8, SAMPLES_MAX = 4096 };

static const double SAMPLE_M = 5.0;
static const double SAMPLE_TURN_RAD = 0.1;

/* Gauss-Legendre, 8 nodes, the positive half (Abramowitz and Stegun, table 25.4). */
static const double nodes[4] = {0.18343464249564980, 0.52553240991632899, 0.79666647741362674,
                                0.96028985649753623};
static const double weights[4] = {0.36268378337836198, 0.31370664587788729, 0.22238103445337447,
                                  0.10122853629037626};

/* ---- lines, arcs, spirals ---- */

/* sin(x) / x. */
static double sinc(double x)
{
    if (fabs(x) < 1e-3) {
        return 1 - x * x / 6 * (1 - x * x / 20);
    }
    return dmath_sin(x) / x;
}

static void arc_at(const struct opendrive_geometry *geometry, double ds_m, struct pose *pose)
{
    double half = geometry->curvature_start * ds_m / 2;
    double chord_m = ds_m * sinc(half);
    double sine;
    double cosine;
    dmath_sincos(geometry->start.heading_rad + half, &sine, &cosine);
    pose->x_m = geometry->start.x_m + chord_m * cosine;
    pose->y_m = geometry->start.y_m + chord_m * sine;
    pose->heading_rad = geometry->start.heading_rad + 2 * half;
}

/* From one place of a spiral to another one, between which it turns by at most 1 rad; in the file's
 * axes. */
static struct vec2 spiral_piece(const struct opendrive_geometry *geometry, double from_m,
                                double to_m)
{
    double rate = (geometry->curvature_end - geometry->curvature_start) / geometry->length_m;
    double half_m = (to_m - from_m) / 2;
    struct vec2 sum = {0, 0};
    for (int k = 0; k < 8; k++) {
        double node = k < 4 ? nodes[k] : -nodes[k - 4];
        double s_m = from_m + (1 + node) * half_m;
        double sine;
        double cosine;
        dmath_sincos(geometry->start.heading_rad +
                         s_m * (geometry->curvature_start + rate * s_m / 2),
                     &sine, &cosine);
        sum.x_m += weights[k & 3] * cosine;
        sum.y_m += weights[k & 3] * sine;
    }
    return (struct vec2){sum.x_m * half_m, sum.y_m * half_m};
}

static void spiral_at(const struct opendrive_geometry *geometry, double ds_m, struct pose *pose)
{
    double rate = (geometry->curvature_end - geometry->curvature_start) / geometry->length_m;
    struct vec2 first = {0, 0};
    double from_m = 0;
    if (geometry->turn_count > 0) {
        double piece_m = geometry->length_m / geometry->turn_count;
        uint32_t piece = (uint32_t)dmath_min(ds_m / piece_m, geometry->turn_count - 1);
        first = geometry->turns[piece];
        from_m = piece * piece_m;
    }
    struct vec2 rest = spiral_piece(geometry, from_m, ds_m);
    pose->x_m = geometry->start.x_m + (first.x_m + rest.x_m);
    pose->y_m = geometry->start.y_m + (first.y_m + rest.y_m);
    pose->heading_rad =
        geometry->start.heading_rad + ds_m * (geometry->curvature_start + rate * ds_m / 2);
}

static double turn_most_rad(const struct opendrive_geometry *geometry)
{
    return dmath_max(fabs(geometry->curvature_start), fabs(geometry->curvature_end)) *
           geometry->length_m;
}

static bool tabulate_turns(const struct od_reader *reader, struct opendrive_geometry *geometry)
{
    uint32_t count = (uint32_t)turn_most_rad(geometry) + 1;
    if (count == 1) {
        return true;
    }
    geometry->turns = od_alloc(reader, count, sizeof *geometry->turns);
    if (geometry->turns == NULL) {
        return false;
    }
    double piece_m = geometry->length_m / count;
    struct vec2 at = {0, 0};
    for (uint32_t i = 0; i < count; i++) {
        geometry->turns[i] = at;
        struct vec2 piece = spiral_piece(geometry, i * piece_m, (i + 1) * piece_m);
        at = (struct vec2){at.x_m + piece.x_m, at.y_m + piece.y_m};
    }
    geometry->turn_count = count;
    return true;
}

/* ---- polynomials ---- */

static double cubic_at(const double k[4], double p)
{
    return k[0] + p * (k[1] + p * (k[2] + p * k[3]));
}

static double cubic_slope(const double k[4], double p)
{
    return k[1] + p * (2 * k[2] + p * 3 * k[3]);
}

static double cubic_bend(const double k[4], double p)
{
    return 2 * k[2] + p * 6 * k[3];
}

static double curve_speed(const struct opendrive_geometry *geometry, double p)
{
    double u = cubic_slope(geometry->u, p);
    double v = cubic_slope(geometry->v, p);
    return sqrt(u * u + v * v);
}

/* Length of the curve between two parameters. */
static double curve_length_m(const struct opendrive_geometry *geometry, double from, double to)
{
    double sum = 0;
    for (int k = 0; k < 8; k++) {
        double node = k < 4 ? nodes[k] : -nodes[k - 4];
        sum += weights[k & 3] * curve_speed(geometry, from + (to - from) * (1 + node) / 2);
    }
    return sum * (to - from) / 2;
}

/* Parameter where the curve is arc_m long (its own length, within the table). */
static double parameter_at(const struct opendrive_geometry *geometry, double arc_m)
{
    uint32_t low = 0;
    uint32_t high = geometry->arc_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (geometry->arc_m[middle] <= arc_m) {
            low = middle;
        } else {
            high = middle;
        }
    }
    double step = geometry->p_end / geometry->arc_count;
    double first = low * step;
    double piece_m = geometry->arc_m[low + 1] - geometry->arc_m[low];
    double rest_m = arc_m - geometry->arc_m[low];
    double p = first + (piece_m > 0 ? step * rest_m / piece_m : 0);
    for (int i = 0; i < NEWTON_STEPS; i++) {
        double speed = curve_speed(geometry, p);
        double miss_m = curve_length_m(geometry, first, p) - rest_m;
        if (!(speed > 0) || fabs(miss_m) < 1e-13 * geometry->length_m) {
            break;
        }
        p = dmath_clamp(p - miss_m / speed, first, first + step);
    }
    return p;
}

static void curve_at(const struct opendrive_geometry *geometry, double ds_m, struct pose *pose,
                     double *curvature)
{
    double p = parameter_at(geometry, ds_m / geometry->p_scale);
    double u = cubic_at(geometry->u, p);
    double v = cubic_at(geometry->v, p);
    double du = cubic_slope(geometry->u, p);
    double dv = cubic_slope(geometry->v, p);
    double cube = (du * du + dv * dv) * sqrt(du * du + dv * dv);
    double sine;
    double cosine;
    dmath_sincos(geometry->start.heading_rad, &sine, &cosine);
    pose->x_m = geometry->start.x_m + u * cosine - v * sine;
    pose->y_m = geometry->start.y_m + u * sine + v * cosine;
    pose->heading_rad = geometry->start.heading_rad + dmath_atan2(dv, du);
    *curvature =
        cube > 0 ? (du * cubic_bend(geometry->v, p) - dv * cubic_bend(geometry->u, p)) / cube : 0;
}

/* Lengths up to each of ARC_PIECES parameters; the whole. */
static double tabulate(struct opendrive_geometry *geometry)
{
    double step = geometry->p_end / geometry->arc_count;
    geometry->arc_m[0] = 0;
    for (uint32_t i = 0; i < geometry->arc_count; i++) {
        geometry->arc_m[i + 1] =
            geometry->arc_m[i] + curve_length_m(geometry, i * step, (i + 1) * step);
    }
    return geometry->arc_m[geometry->arc_count];
}

bool od_geometry_prepare(const struct od_reader *reader, struct opendrive_geometry *geometry)
{
    if (geometry->shape == OPENDRIVE_SPIRAL) {
        return tabulate_turns(reader, geometry);
    }
    if (geometry->shape != OPENDRIVE_POLY3 && geometry->shape != OPENDRIVE_PARAM_POLY3) {
        return true;
    }
    geometry->arc_count = ARC_PIECES;
    geometry->arc_m = od_alloc(reader, ARC_PIECES + 1, sizeof *geometry->arc_m);
    if (geometry->arc_m == NULL) {
        return false;
    }
    double own_m = tabulate(geometry);
    geometry->p_scale = 1;
    if (geometry->shape == OPENDRIVE_POLY3) {
        /* The file gives the curve's length, not where its parameter ends. */
        geometry->p_end = parameter_at(geometry, dmath_min(geometry->length_m, own_m));
        own_m = geometry->p_end > 0 ? tabulate(geometry) : 0;
    }
    if (!(own_m > 1e-9) || !isfinite(own_m)) {
        return false;
    }
    geometry->p_scale = geometry->length_m / own_m;
    return true;
}

/* ---- all ---- */

void od_geometry_at(const struct opendrive_geometry *geometry, double ds_m, struct pose *pose,
                    double *curvature)
{
    double ds = dmath_clamp(ds_m, 0, geometry->length_m);
    double rate = (geometry->curvature_end - geometry->curvature_start) / geometry->length_m;
    *curvature = geometry->curvature_start + rate * ds;
    switch (geometry->shape) {
    case OPENDRIVE_LINE:
    case OPENDRIVE_ARC:
        arc_at(geometry, ds, pose);
        break;
    case OPENDRIVE_SPIRAL:
        spiral_at(geometry, ds, pose);
        break;
    case OPENDRIVE_POLY3:
    case OPENDRIVE_PARAM_POLY3:
        curve_at(geometry, ds, pose, curvature);
        break;
    }
    if (ds_m > ds) {
        double sine;
        double cosine;
        dmath_sincos(pose->heading_rad, &sine, &cosine);
        pose->x_m += (ds_m - ds) * cosine;
        pose->y_m += (ds_m - ds) * sine;
        *curvature = 0;
    }
}

uint32_t od_geometry_samples(const struct opendrive_geometry *geometry)
{
    double turn = turn_most_rad(geometry);
    if (geometry->arc_count > 0) {
        struct pose pose;
        double before = 0;
        turn = 0;
        for (uint32_t i = 0; i <= geometry->arc_count; i++) {
            double curvature;
            od_geometry_at(geometry, geometry->length_m * i / geometry->arc_count, &pose,
                           &curvature);
            turn += i > 0 ? fabs(dmath_wrap_angle(pose.heading_rad - before)) : 0;
            before = pose.heading_rad;
        }
    }
    double count = dmath_max(geometry->length_m / SAMPLE_M, turn / SAMPLE_TURN_RAD);
    return 1 + (uint32_t)dmath_min(count, SAMPLES_MAX);
}
