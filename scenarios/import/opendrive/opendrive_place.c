/*
 * OpenDRIVE: places, from roads and lanes to the plane and back.
 *
 * The way back finds the nearest chord of the sampled reference line and then the foot of the
 * perpendicular by Newton's method on the line itself, so that (s, t) -> (x, y) -> (s, t) is exact
 * wherever the point is nearer than the centre of the line's curvature.
 */
#include "base/dmath.h"
#include "scenarios/import/opendrive/opendrive_internal.h"

#include <math.h>
#include <string.h>

enum { NEWTON_STEPS = 12 };

uint32_t opendrive_road_find(const struct opendrive_network *network, const char *id)
{
    uint32_t low = 0;
    uint32_t high = network->road_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(network->road_names[middle].id, id);
        if (order == 0) {
            return network->road_names[middle].index;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return OPENDRIVE_NONE;
}

uint32_t opendrive_section_at(const struct opendrive_network *network, uint32_t road, double s_m)
{
    const struct opendrive_road *at = &network->roads[road];
    const struct opendrive_section *sections = &network->sections[at->section_first];
    uint32_t low = 0;
    uint32_t high = at->section_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (sections[middle].s_m <= s_m) {
            low = middle;
        } else {
            high = middle;
        }
    }
    /* The end of the road belongs to the last section that has a length. */
    while (low > 0 && sections[low].end_m <= sections[low].s_m) {
        low--;
    }
    return at->section_first + low;
}

uint32_t od_lane_in(const struct opendrive_network *network, uint32_t section, int32_t lane_id)
{
    const struct opendrive_section *at = &network->sections[section];
    uint32_t first = lane_id > 0 ? at->left_first : at->right_first;
    uint32_t count = lane_id > 0 ? at->left_count : at->right_count;
    for (uint32_t i = 0; i < count; i++) {
        if (network->lanes[first + i].id == lane_id) {
            return first + i;
        }
    }
    return OPENDRIVE_NONE;
}

uint32_t opendrive_lane_find(const struct opendrive_network *network, uint32_t road, double s_m,
                             int32_t lane_id)
{
    return od_lane_in(network, opendrive_section_at(network, road, s_m), lane_id);
}

/* ---- the reference line ---- */

const struct opendrive_geometry *od_geometry_find(const struct opendrive_road *road, double s_m)
{
    uint32_t low = 0;
    uint32_t high = road->geometry_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (road->geometries[middle].s_m <= s_m) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &road->geometries[low];
}

struct pose od_reference_pose(const struct opendrive_road *road, double s_m, double *curvature)
{
    struct pose pose;
    const struct opendrive_geometry *geometry = od_geometry_find(road, s_m);
    od_geometry_at(geometry, s_m - geometry->s_m, &pose, curvature);
    return pose;
}

static struct pose shift(struct pose pose, double t_m)
{
    double sine;
    double cosine;
    dmath_sincos(pose.heading_rad, &sine, &cosine);
    return (struct pose){pose.x_m - t_m * sine, pose.y_m + t_m * cosine,
                         dmath_wrap_angle(pose.heading_rad)};
}

struct pose opendrive_road_pose(const struct opendrive_network *network, uint32_t road, double s_m,
                                double t_m)
{
    double curvature;
    return shift(od_reference_pose(&network->roads[road], s_m, &curvature), t_m);
}

double opendrive_curvature(const struct opendrive_network *network, uint32_t road, double s_m)
{
    double curvature;
    od_reference_pose(&network->roads[road], s_m, &curvature);
    return curvature;
}

/* ---- lanes ---- */

/* t of the outer border and its slope over s, and the same of the inner one. */
static void borders(const struct opendrive_network *network, uint32_t lane, double s_m,
                    double t_m[2], double slope[2])
{
    const struct opendrive_lane *target = &network->lanes[lane];
    const struct opendrive_section *section = &network->sections[target->section];
    double s = dmath_clamp(s_m, section->s_m, section->end_m);
    double end_m = section->end_m > section->s_m ? section->end_m : INFINITY;
    uint32_t first = target->id > 0 ? section->left_first : section->right_first;
    double side = target->id > 0 ? 1 : -1;
    double centre_slope = 0;
    double centre_m = 0;
    const struct opendrive_cubics *offsets = &network->roads[target->road].offsets;
    if (offsets->count > 0 && s >= offsets->items[0].s_m) {
        centre_m = od_cubics_at(offsets, s, end_m, &centre_slope);
    }
    t_m[0] = t_m[1] = centre_m;
    slope[0] = slope[1] = centre_slope;
    for (uint32_t i = first; i <= lane; i++) {
        double rate;
        double value_m = od_cubics_at(&network->lanes[i].widths, s, end_m, &rate);
        t_m[0] = t_m[1];
        slope[0] = slope[1];
        if (network->lanes[i].is_border) {
            t_m[1] = centre_m + value_m;
            slope[1] = centre_slope + rate;
        } else if (value_m > 0) {
            t_m[1] += side * value_m;
            slope[1] += side * rate;
        }
        if (side * (t_m[1] - t_m[0]) < 0) {
            t_m[1] = t_m[0]; /* a lane is never narrower than nothing */
            slope[1] = slope[0];
        }
    }
}

void opendrive_lane_borders(const struct opendrive_network *network, uint32_t lane, double s_m,
                            double *inner_t_m, double *outer_t_m)
{
    double t_m[2];
    double slope[2];
    borders(network, lane, s_m, t_m, slope);
    *inner_t_m = t_m[0];
    *outer_t_m = t_m[1];
}

double opendrive_lane_width_m(const struct opendrive_network *network, uint32_t lane, double s_m)
{
    double t_m[2];
    double slope[2];
    borders(network, lane, s_m, t_m, slope);
    return fabs(t_m[1] - t_m[0]);
}

double opendrive_lane_centre_t_m(const struct opendrive_network *network, uint32_t lane, double s_m)
{
    double t_m[2];
    double slope[2];
    borders(network, lane, s_m, t_m, slope);
    return (t_m[0] + t_m[1]) / 2;
}

/* Pose beside the lane's centre. */
static struct pose lane_pose(const struct opendrive_network *network, uint32_t lane, double s_m,
                             double offset_m, double *width_m)
{
    const struct opendrive_lane *target = &network->lanes[lane];
    double t_m[2];
    double slope[2];
    double curvature;
    borders(network, lane, s_m, t_m, slope);
    *width_m = fabs(t_m[1] - t_m[0]);
    double centre_m = (t_m[0] + t_m[1]) / 2;
    struct pose pose = od_reference_pose(&network->roads[target->road], s_m, &curvature);
    double turn = dmath_atan2((slope[0] + slope[1]) / 2, 1 - curvature * (centre_m + offset_m));
    pose = shift(pose, centre_m + offset_m);
    pose.heading_rad = dmath_wrap_angle(pose.heading_rad + turn);
    return pose;
}

struct pose opendrive_lane_pose(const struct opendrive_network *network, uint32_t lane, double s_m,
                                double offset_m)
{
    double width_m;
    return lane_pose(network, lane, s_m, offset_m, &width_m);
}

struct pose od_lane_look(const struct opendrive_network *network, uint32_t lane, double s_m,
                         double *width_m)
{
    return lane_pose(network, lane, s_m, 0, width_m);
}

static double limit_at(const struct opendrive_speed *speeds, uint32_t count, double s_m)
{
    double limit = 0;
    for (uint32_t i = 0; i < count && speeds[i].s_m <= s_m + 1e-9; i++) {
        limit = speeds[i].limit_mps;
    }
    return limit;
}

double opendrive_speed_limit_mps(const struct opendrive_network *network, uint32_t lane, double s_m)
{
    const struct opendrive_lane *target = &network->lanes[lane];
    const struct opendrive_road *road = &network->roads[target->road];
    double own = limit_at(target->speeds, target->speed_count, s_m);
    return own > 0 ? own : limit_at(road->speeds, road->speed_count, s_m);
}

/* ---- back from the plane ---- */

static double square(double x)
{
    return x * x;
}

/* Sampled chord nearest the point: index of its first sample and the fraction along it. */
static uint32_t nearest_chord(const struct opendrive_road *road, struct vec2 point,
                              double *fraction)
{
    double best = INFINITY;
    uint32_t chord = 0;
    *fraction = 0;
    for (uint32_t i = 0; i + 1 < road->sample_count; i++) {
        double x = road->samples[i + 1].x_m - road->samples[i].x_m;
        double y = road->samples[i + 1].y_m - road->samples[i].y_m;
        double px = point.x_m - road->samples[i].x_m;
        double py = point.y_m - road->samples[i].y_m;
        double length2 = x * x + y * y;
        double f = length2 > 0 ? dmath_clamp((px * x + py * y) / length2, 0, 1) : 0;
        double miss = square(px - f * x) + square(py - f * y);
        if (miss < best) {
            best = miss;
            chord = i;
            *fraction = f;
        }
    }
    return chord;
}

double opendrive_project(const struct opendrive_network *network, uint32_t road, struct vec2 point,
                         double *s_m, double *t_m)
{
    const struct opendrive_road *at = &network->roads[road];
    double fraction;
    uint32_t chord = nearest_chord(at, point, &fraction);
    uint32_t before = chord > 0 ? chord - 1 : 0;
    uint32_t after = chord + 2 < at->sample_count ? chord + 2 : at->sample_count - 1;
    double low = at->sample_s_m[before];
    double high = at->sample_s_m[after];
    double s =
        at->sample_s_m[chord] + fraction * (at->sample_s_m[chord + 1] - at->sample_s_m[chord]);
    double t = 0;
    double along = 0;
    for (int i = 0; i < NEWTON_STEPS; i++) {
        double curvature;
        double sine;
        double cosine;
        struct pose pose = od_reference_pose(at, s, &curvature);
        dmath_sincos(pose.heading_rad, &sine, &cosine);
        double x = point.x_m - pose.x_m;
        double y = point.y_m - pose.y_m;
        along = x * cosine + y * sine;
        t = y * cosine - x * sine;
        double next = dmath_clamp(s + along / dmath_max(1 - curvature * t, 0.1), low, high);
        if (fabs(next - s) < 1e-12) {
            break;
        }
        s = next;
    }
    *s_m = s;
    *t_m = t;
    return fabs(along);
}

/* The lane at (s, t) and how far t is from it. */
static uint32_t lane_at(const struct opendrive_network *network, uint32_t road, double s_m,
                        double t_m, double *miss_m)
{
    const struct opendrive_section *section =
        &network->sections[opendrive_section_at(network, road, s_m)];
    uint32_t found = OPENDRIVE_NONE;
    *miss_m = INFINITY;
    for (uint32_t i = 0; i < section->left_count + section->right_count; i++) {
        uint32_t lane = i < section->left_count ? section->left_first + i
                                                : section->right_first + i - section->left_count;
        double inner;
        double outer;
        opendrive_lane_borders(network, lane, s_m, &inner, &outer);
        double below = dmath_min(inner, outer) - t_m;
        double above = t_m - dmath_max(inner, outer);
        double miss = dmath_max(dmath_max(below, above), 0);
        if (fabs(outer - inner) > 1e-6 && miss < *miss_m) {
            *miss_m = miss;
            found = lane;
        }
    }
    return found;
}

/* Smaller is better: beside every lane, no lane to drive on, the wrong way. */
static double rank_place(const struct opendrive_network *network,
                         const struct opendrive_place *place, double heading_rad)
{
    double turn = 0;
    if (place->lane == OPENDRIVE_NONE) {
        return 1000 + place->distance_m;
    }
    const struct opendrive_lane *lane = &network->lanes[place->lane];
    if (!isnan(heading_rad)) {
        struct pose pose = opendrive_lane_pose(network, place->lane, place->s_m, 0);
        double travel = pose.heading_rad + (lane->against ? 3.14159265358979323846 : 0);
        turn = fabs(dmath_wrap_angle(travel - heading_rad));
    }
    double kind = lane->type == OPENDRIVE_LANE_DRIVING ? 0 : 10;
    return (place->distance_m > 1e-3 ? 1000 + place->distance_m : 0) + kind + turn;
}

bool opendrive_locate(const struct opendrive_network *network, struct vec2 point,
                      double heading_rad, double reach_m, struct opendrive_place *out)
{
    enum { ROAD_HALF_WIDTH_MAX_M = 100 };
    double reach = reach_m + ROAD_HALF_WIDTH_MAX_M;
    double best = INFINITY;
    for (uint32_t road = 0; road < network->road_count; road++) {
        const struct opendrive_road *at = &network->roads[road];
        struct opendrive_place place = {.road = road};
        double miss_m;
        if (point.x_m < at->low.x_m - reach || point.x_m > at->high.x_m + reach ||
            point.y_m < at->low.y_m - reach || point.y_m > at->high.y_m + reach) {
            continue;
        }
        double along_m = opendrive_project(network, road, point, &place.s_m, &place.t_m);
        place.lane = lane_at(network, road, place.s_m, place.t_m, &miss_m);
        if (place.lane != OPENDRIVE_NONE) {
            place.offset_m = place.t_m - opendrive_lane_centre_t_m(network, place.lane, place.s_m);
        } else {
            miss_m = fabs(place.t_m);
        }
        place.distance_m = sqrt(square(along_m) + square(miss_m));
        double rank = rank_place(network, &place, heading_rad);
        if (place.distance_m <= reach_m + 1e-3 && rank < best) {
            best = rank;
            *out = place;
        }
    }
    return best < INFINITY;
}
