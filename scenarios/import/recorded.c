/*
 * Recorded drives: samples beside each other, and bodies beside ego's. See recorded.h.
 *
 * Both are looked at where ego was sampled, on straight lines between the other one's samples, as
 * the replay world has them.
 */
#include "scenarios/import/recorded.h"
#include "base/dmath.h"
#include "base/geom.h"

#include <math.h>

#define SPEED_MAX_MPS 100.0
#define FIT_FACTOR 2.0 /* between what speeds and places say */
#define FIT_MIN_M 5.0
#define FIT_STEP_S 1.0   /* ways of one who stands add up to nothing; longer gaps say nothing */
#define REVERSES_MPS 0.1 /* slower is noise */
#define REVERSES_M 0.5
#define SAME_M 1.0
#define SHRINK_STEP_M 0.1
#define SHRINK_MAX_M 0.3
#define CLEAR_M 0.02 /* of boxes, so that a driver on the recording keeps off them too */
#define SIZE_MIN_M 0.05

bool recorded_at(const struct trajectory *drive, double time_s, uint32_t *cursor, struct pose *out)
{
    const struct trajectory_point *points = drive->points;
    uint32_t count = drive->point_count;
    if (time_s < points[0].t_s - 1e-9 || time_s > points[count - 1].t_s + 1e-9) {
        return false;
    }
    while (*cursor + 2 < count && points[*cursor + 1].t_s <= time_s) {
        (*cursor)++;
    }
    const struct trajectory_point *a = &points[*cursor];
    const struct trajectory_point *b = *cursor + 1 < count ? a + 1 : a;
    double u = b->t_s > a->t_s ? dmath_clamp((time_s - a->t_s) / (b->t_s - a->t_s), 0, 1) : 0;
    *out = (struct pose){a->x_m + u * (b->x_m - a->x_m), a->y_m + u * (b->y_m - a->y_m),
                         a->heading_rad + u * dmath_wrap_angle(b->heading_rad - a->heading_rad)};
    return true;
}

static double apart_m(const struct trajectory_point *a, const struct trajectory_point *b)
{
    return sqrt((b->x_m - a->x_m) * (b->x_m - a->x_m) + (b->y_m - a->y_m) * (b->y_m - a->y_m));
}

/* From a to b along a's heading, negative behind it. */
static double along_m(const struct trajectory_point *a, const struct trajectory_point *b)
{
    return (b->x_m - a->x_m) * dmath_cos(a->heading_rad) +
           (b->y_m - a->y_m) * dmath_sin(a->heading_rad);
}

/* Whether nobody drives there from the sample before. */
static bool is_jump(const struct trajectory_point *point)
{
    return apart_m(point - 1, point) > SPEED_MAX_MPS * (point->t_s - point[-1].t_s);
}

uint32_t recorded_jump(const struct trajectory *drive)
{
    for (uint32_t i = 1; i < drive->point_count; i++) {
        if (is_jump(&drive->points[i])) {
            return i;
        }
    }
    return drive->point_count;
}

bool recorded_speeds_fit(const struct trajectory *drive)
{
    const struct trajectory_point *from = drive->points;
    double by_places_m = 0;
    double by_speeds_m = 0;
    for (uint32_t i = 1; i < drive->point_count; i++) {
        const struct trajectory_point *p = &drive->points[i];
        if (isnan(p->speed_mps) || isnan(p[-1].speed_mps)) {
            return true; /* they are to be made anyhow */
        }
        if (is_jump(p) || p->t_s - p[-1].t_s > FIT_STEP_S) {
            from = p;
            continue;
        }
        by_speeds_m += (fabs(p->speed_mps) + fabs(p[-1].speed_mps)) / 2 * (p->t_s - p[-1].t_s);
        if (p->t_s - from->t_s >= FIT_STEP_S || i + 1 == drive->point_count) {
            by_places_m += apart_m(from, p);
            from = p;
        }
    }
    return dmath_max(by_places_m, by_speeds_m) < FIT_MIN_M ||
           (by_speeds_m <= FIT_FACTOR * by_places_m && by_places_m <= FIT_FACTOR * by_speeds_m);
}

void recorded_take_speeds(struct trajectory *drive)
{
    for (uint32_t i = 0; i < drive->point_count; i++) {
        const struct trajectory_point *p = &drive->points[i];
        const struct trajectory_point *a = i > 0 && !is_jump(p) ? p - 1 : p;
        const struct trajectory_point *b =
            i + 1 < drive->point_count && !is_jump(p + 1) ? p + 1 : p;
        double speed_mps = b->t_s > a->t_s ? apart_m(a, b) / (b->t_s - a->t_s) : 0;
        drive->points[i].speed_mps = along_m(a, b) < 0 ? -speed_mps : speed_mps;
    }
}

bool recorded_reverses(const struct trajectory *drive)
{
    double back_m = 0;
    for (uint32_t i = 1; i < drive->point_count && back_m < REVERSES_M; i++) {
        const struct trajectory_point *p = &drive->points[i];
        double step_m = -along_m(p - 1, p);
        back_m = step_m > REVERSES_MPS * (p->t_s - p[-1].t_s) ? back_m + step_m : 0;
    }
    return back_m >= REVERSES_M;
}

bool recorded_is_same(const struct recorded *ego, const struct recorded *other)
{
    uint32_t cursor = 0;
    bool met = false;
    for (uint32_t i = 0; i < ego->drive.point_count; i++) {
        const struct trajectory_point *e = &ego->drive.points[i];
        struct pose pose;
        if (recorded_at(&other->drive, e->t_s, &cursor, &pose)) {
            double x = pose.x_m - e->x_m;
            double y = pose.y_m - e->y_m;
            met = true;
            if (x * x + y * y > SAME_M * SAME_M) {
                return false;
            }
        }
    }
    return met;
}

double recorded_touches_at_s(const struct recorded *ego, const struct recorded *other,
                             double shrink_m)
{
    uint32_t cursor = 0;
    struct pose pose;
    for (uint32_t i = 0; i < ego->drive.point_count; i++) {
        const struct trajectory_point *e = &ego->drive.points[i];
        if (!recorded_at(&other->drive, e->t_s, &cursor, &pose)) {
            continue;
        }
        struct box own =
            box_make((struct pose){e->x_m, e->y_m, e->heading_rad}, ego->length_m, ego->width_m);
        struct box box = box_make(pose, dmath_max(other->length_m - shrink_m, SIZE_MIN_M),
                                  dmath_max(other->width_m - shrink_m, SIZE_MIN_M));
        box.half_length_m += CLEAR_M;
        box.half_width_m += CLEAR_M;
        if (box_overlap(&own, &box)) {
            return e->t_s;
        }
    }
    return NAN;
}

double recorded_shrink_m(const struct recorded *ego, const struct recorded *other)
{
    for (double by_m = 0; by_m <= SHRINK_MAX_M + 1e-9; by_m += SHRINK_STEP_M) {
        if (isnan(recorded_touches_at_s(ego, other, by_m))) {
            return by_m;
        }
    }
    return NAN;
}
