/*
 * CommonRoad import: from the two bounds of a lanelet to a centre line with widths, and boxes
 * around polygons.
 *
 * Real bounds have different numbers of points, doubled points, small spikes and kinks; a centre
 * line made here has points at least LINE_SPACING_MIN_M apart and no sharp corner that a vehicle
 * could not follow. Loops are found here and removed or split by commonroad_map.c.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/import/commonroad.h"
#include "scenarios/resolve.h"

#include <math.h>

enum { BOX_EDGES_MAX = 64, SPIKE_ROUNDS = 8, SMOOTH_ROUNDS = 2 };

static const double LINE_SPACING_MIN_M = 0.05;
static const double FRACTION_MIN = 1e-6;
static const double SPIKE_COSINE = -0.17; /* a turn of more than 100 degrees .. */
static const double SPIKE_M = 2.0;        /* .. next to a segment shorter than this */
static const double CORNER_COSINE = 0.98; /* 11.5 degrees */
static const double CORNER_CUT_M = 3.0;
static const double WIDTH_MIN_M = 0.5; /* of a scenario document */
static const double WIDTH_MAX_M = 50.0;

static struct vec2 between(struct vec2 a, struct vec2 b, double t)
{
    return (struct vec2){a.x_m + t * (b.x_m - a.x_m), a.y_m + t * (b.y_m - a.y_m)};
}

/* ---- pairing the bounds ---- */

/* Walks along a polyline by fraction of its length; fractions must not go down. */
struct walker {
    const struct vec2 *points;
    uint32_t count;
    bool reversed;
    double length_m;
    uint32_t segment;
    double before_m; /* length before the segment */
};

static struct vec2 walker_point(const struct walker *w, uint32_t i)
{
    return w->points[w->reversed ? w->count - 1 - i : i];
}

static struct walker walker_make(const struct vec2 *points, uint32_t count, bool reversed)
{
    struct walker w = {.points = points, .count = count, .reversed = reversed};
    for (uint32_t i = 0; i + 1 < count; i++) {
        w.length_m += points_distance_m(points[i], points[i + 1]);
    }
    return w;
}

static double walker_segment_m(const struct walker *w)
{
    return points_distance_m(walker_point(w, w->segment), walker_point(w, w->segment + 1));
}

static struct vec2 walker_at(struct walker *w, double fraction)
{
    double s = fraction * w->length_m;
    if (w->count == 1) {
        return w->points[0];
    }
    double segment_m = walker_segment_m(w);
    while (w->segment + 2 < w->count && w->before_m + segment_m < s) {
        w->before_m += segment_m;
        w->segment++;
        segment_m = walker_segment_m(w);
    }
    double t = segment_m > 0 ? (s - w->before_m) / segment_m : 0;
    return between(walker_point(w, w->segment), walker_point(w, w->segment + 1),
                   dmath_clamp(t, 0, 1));
}

/* Fraction of the next vertex after `fraction`. */
static double walker_next(const struct walker *w, double fraction)
{
    double at_m = w->before_m;
    for (uint32_t i = w->segment; i + 1 < w->count && w->length_m > 0; i++) {
        at_m += points_distance_m(walker_point(w, i), walker_point(w, i + 1));
        if (at_m / w->length_m > fraction + FRACTION_MIN) {
            return dmath_min(at_m / w->length_m, 1.0);
        }
    }
    return 1.0;
}

/* The bounds run in opposite directions, which the format does not allow but files do. */
static bool bounds_oppose(const struct vec2 *left, uint32_t left_count, const struct vec2 *right,
                          uint32_t right_count)
{
    struct vec2 a = left[0];
    struct vec2 b = left[left_count - 1];
    struct vec2 c = right[0];
    struct vec2 d = right[right_count - 1];
    double dot = (b.x_m - a.x_m) * (d.x_m - c.x_m) + (b.y_m - a.y_m) * (d.y_m - c.y_m);
    return dot < 0 && points_distance_m(a, c) + points_distance_m(b, d) >
                          points_distance_m(a, d) + points_distance_m(b, c);
}

/* The line being made; across[i] leads from the right bound to the left one at point i. */
struct pairing {
    struct cr_line *line;
    struct vec2 *across;
};

static void add_pair(const struct pairing *pairing, struct vec2 left, struct vec2 right)
{
    uint32_t at = pairing->line->count++;
    pairing->line->points[at] = between(left, right, 0.5);
    pairing->line->width_m[at] = points_distance_m(left, right);
    pairing->across[at] = (struct vec2){left.x_m - right.x_m, left.y_m - right.y_m};
}

static void pair_points(const struct vec2 *left, const struct vec2 *right, uint32_t count,
                        bool reversed, const struct pairing *pairing)
{
    for (uint32_t i = 0; i < count; i++) {
        add_pair(pairing, left[i], right[reversed ? count - 1 - i : i]);
    }
}

/* At every vertex of either bound; evenly where there are too many. */
static void pair_fractions(const struct vec2 *left, uint32_t left_count, const struct vec2 *right,
                           uint32_t right_count, bool reversed, const struct pairing *pairing)
{
    struct walker a = walker_make(left, left_count, false);
    struct walker b = walker_make(right, right_count, reversed);
    bool every = left_count + right_count <= LIMIT_LANE_POINTS / 2;
    double fraction = 0;
    while (fraction < 1.0 && pairing->line->count + 1 < LIMIT_LANE_POINTS / 2) {
        struct vec2 on_left = walker_at(&a, fraction);
        add_pair(pairing, on_left, walker_at(&b, fraction));
        fraction = every ? dmath_min(walker_next(&a, fraction), walker_next(&b, fraction))
                         : fraction + 2.2 / LIMIT_LANE_POINTS;
    }
    struct vec2 left_end = walker_at(&a, 1.0);
    add_pair(pairing, left_end, walker_at(&b, 1.0));
}

/* A pair may stand askew; what counts is the extent across the line. */
static void correct_widths(struct cr_line *line, const struct vec2 *across)
{
    for (uint32_t i = 0; i < line->count; i++) {
        struct vec2 a = line->points[i > 0 ? i - 1 : 0];
        struct vec2 b = line->points[i + 1 < line->count ? i + 1 : i];
        double length = points_distance_m(a, b);
        if (length > 0) {
            double ux = (b.x_m - a.x_m) / length;
            double uy = (b.y_m - a.y_m) / length;
            line->width_m[i] = fabs(across[i].x_m * uy - across[i].y_m * ux);
        }
        line->width_m[i] = dmath_clamp(line->width_m[i], WIDTH_MIN_M, WIDTH_MAX_M);
    }
}

/* ---- cleaning ---- */

static void drop_doubled(struct cr_line *line)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < line->count; i++) {
        if (kept > 0 &&
            points_distance_m(line->points[kept - 1], line->points[i]) < LINE_SPACING_MIN_M) {
            if (i + 1 < line->count || kept == 1) {
                continue;
            }
            kept--; /* the last point stays where it is */
        }
        line->points[kept] = line->points[i];
        line->width_m[kept] = line->width_m[i];
        kept++;
    }
    line->count = kept;
}

static double turn_cosine(struct vec2 a, struct vec2 b, struct vec2 c)
{
    double ux = b.x_m - a.x_m;
    double uy = b.y_m - a.y_m;
    double vx = c.x_m - b.x_m;
    double vy = c.y_m - b.y_m;
    double lengths = sqrt((ux * ux + uy * uy) * (vx * vx + vy * vy));
    return lengths > 0 ? (ux * vx + uy * vy) / lengths : 1.0;
}

static bool drop_spikes(struct cr_line *line)
{
    uint32_t kept = 1;
    bool found = false;
    for (uint32_t i = 1; i < line->count; i++) {
        if (i + 1 < line->count) {
            struct vec2 a = line->points[kept - 1];
            struct vec2 b = line->points[i];
            struct vec2 c = line->points[i + 1];
            bool near = dmath_min(points_distance_m(a, b), points_distance_m(b, c)) < SPIKE_M;
            double cosine = turn_cosine(a, b, c);
            if ((cosine < SPIKE_COSINE && near) || cosine < -0.9999) {
                found = true;
                continue;
            }
        }
        line->points[kept] = line->points[i];
        line->width_m[kept] = line->width_m[i];
        kept++;
    }
    line->count = kept;
    return found;
}

/* Cuts corners (Chaikin), at most CORNER_CUT_M from each; the ends stay. */
static void smooth_corners(struct cr_line *line, struct vec2 *points, double *widths)
{
    uint32_t made = 0;
    if (2 * line->count > LIMIT_LANE_POINTS) {
        return;
    }
    for (uint32_t i = 0; i < line->count; i++) {
        bool corner =
            i > 0 && i + 1 < line->count &&
            turn_cosine(line->points[i - 1], line->points[i], line->points[i + 1]) < CORNER_COSINE;
        if (!corner) {
            points[made] = line->points[i];
            widths[made++] = line->width_m[i];
            continue;
        }
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t other = side == 0 ? i - 1 : i + 1;
            double length = points_distance_m(line->points[i], line->points[other]);
            double t = dmath_min(0.25, CORNER_CUT_M / length);
            if (t * length < LINE_SPACING_MIN_M) {
                t = side == 0 ? 0 : -1; /* too short to cut: keep the vertex, once */
            }
            if (t >= 0) {
                points[made] = between(line->points[i], line->points[other], t);
                widths[made++] = line->width_m[i] + t * (line->width_m[other] - line->width_m[i]);
            }
        }
    }
    for (uint32_t i = 0; i < made; i++) {
        line->points[i] = points[i];
        line->width_m[i] = widths[i];
    }
    line->count = made;
}

/* A lanelet shorter than a point spacing still links others: a stub across its width. */
static bool make_stub(struct cr_line *line, struct vec2 across)
{
    double width_m = sqrt(across.x_m * across.x_m + across.y_m * across.y_m);
    if (line->count == 0 || width_m < LINE_SPACING_MIN_M) {
        return false;
    }
    struct vec2 middle = line->points[0];
    double x = across.y_m / width_m * LINE_SPACING_MIN_M;
    double y = -across.x_m / width_m * LINE_SPACING_MIN_M;
    line->points[0] = (struct vec2){middle.x_m + x, middle.y_m + y};
    line->points[1] = (struct vec2){middle.x_m - x, middle.y_m - y};
    line->width_m[0] = dmath_clamp(width_m, WIDTH_MIN_M, WIDTH_MAX_M);
    line->width_m[1] = line->width_m[0];
    line->count = 2;
    return true;
}

bool cr_line_between(const struct vec2 *left, uint32_t left_count, const struct vec2 *right,
                     uint32_t right_count, struct cr_line *line, bool *repaired)
{
    struct vec2 scratch[LIMIT_LANE_POINTS];
    double widths[LIMIT_LANE_POINTS];
    struct pairing pairing = {line, scratch};
    struct vec2 across = {left[0].x_m - right[0].x_m, left[0].y_m - right[0].y_m};
    bool reversed = bounds_oppose(left, left_count, right, right_count);
    line->count = 0;
    if (left_count == right_count && left_count <= LIMIT_LANE_POINTS) {
        pair_points(left, right, left_count, reversed, &pairing);
    } else {
        pair_fractions(left, left_count, right, right_count, reversed, &pairing);
    }
    correct_widths(line, scratch);
    *repaired = reversed;
    drop_doubled(line);
    for (int round = 0; round < SPIKE_ROUNDS && line->count > 2 && drop_spikes(line); round++) {
        *repaired = true;
        drop_doubled(line); /* a spike's two feet may be one point */
    }
    if (line->count < 2) {
        return make_stub(line, across);
    }
    for (int round = 0; round < SMOOTH_ROUNDS; round++) {
        smooth_corners(line, scratch, widths);
    }
    return true;
}

/* ---- loops ---- */

bool cr_line_crosses(const struct cr_line *line, uint32_t *first, uint32_t *second)
{
    return points_self_intersect(line->points, line->count, false, first, second);
}

void cr_line_cut_loop(struct cr_line *line, uint32_t first, uint32_t second)
{
    uint32_t kept = first + 1;
    for (uint32_t i = second + 1; i < line->count; i++) {
        bool doubled =
            points_distance_m(line->points[kept - 1], line->points[i]) < LINE_SPACING_MIN_M;
        if (doubled && i + 1 < line->count) {
            continue;
        }
        if (doubled && kept > 1) {
            kept--;
        }
        line->points[kept] = line->points[i];
        line->width_m[kept] = line->width_m[i];
        kept++;
    }
    line->count = kept;
}

/* ---- boxes ---- */

static double box_along(const struct vec2 *points, uint32_t count, struct vec2 u, struct pose *pose,
                        double *length_m, double *width_m)
{
    struct vec2 low = {INFINITY, INFINITY};
    struct vec2 high = {-INFINITY, -INFINITY};
    for (uint32_t i = 0; i < count; i++) {
        double along = points[i].x_m * u.x_m + points[i].y_m * u.y_m;
        double left = points[i].y_m * u.x_m - points[i].x_m * u.y_m;
        low.x_m = dmath_min(low.x_m, along);
        low.y_m = dmath_min(low.y_m, left);
        high.x_m = dmath_max(high.x_m, along);
        high.y_m = dmath_max(high.y_m, left);
    }
    double along = (low.x_m + high.x_m) / 2;
    double left = (low.y_m + high.y_m) / 2;
    *pose = (struct pose){along * u.x_m - left * u.y_m, along * u.y_m + left * u.x_m,
                          dmath_atan2(u.y_m, u.x_m)};
    *length_m = high.x_m - low.x_m;
    *width_m = high.y_m - low.y_m;
    return *length_m * *width_m;
}

void cr_points_box(const struct vec2 *points, uint32_t count, struct pose *pose, double *length_m,
                   double *width_m)
{
    uint32_t stride = count / BOX_EDGES_MAX + 1;
    double best_m2 = box_along(points, count, (struct vec2){1, 0}, pose, length_m, width_m);
    for (uint32_t i = 0; i < count; i += stride) {
        struct vec2 a = points[i];
        struct vec2 b = points[i + 1 < count ? i + 1 : 0];
        double length = points_distance_m(a, b);
        struct pose candidate;
        double along_m;
        double across_m;
        if (length < 1e-6) {
            continue;
        }
        struct vec2 u = {(b.x_m - a.x_m) / length, (b.y_m - a.y_m) / length};
        double area_m2 = box_along(points, count, u, &candidate, &along_m, &across_m);
        if (area_m2 < best_m2 * (1 - 1e-9)) {
            best_m2 = area_m2;
            *pose = candidate;
            *length_m = along_m;
            *width_m = across_m;
        }
    }
    if (*width_m > *length_m) {
        double swap = *length_m;
        *length_m = *width_m;
        *width_m = swap;
        pose->heading_rad = dmath_wrap_angle(pose->heading_rad + PI_RAD / 2);
    }
}
