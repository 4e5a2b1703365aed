/*
 * The screen: places and speeds of all bodies in single precision, for the first look of each at
 * all others (traffic_idm.c). Many bodies lie in slices of the map, so that one looks only at those
 * that may be near; what it finds is the same.
 */
#include "base/dmath.h"
#include "engine/traffic/traffic.h"

#include <math.h>

/* Slice of a coordinate, clamped to those that there are. */
static uint32_t slice_of(const struct actors *actors, double coordinate_m)
{
    double slice = (coordinate_m - actors->slices_low_m) * actors->slices_per_m;
    return (uint32_t)dmath_clamp(slice, 0.0, SCREEN_SLICES - 1);
}

/* Cuts the extent of many bodies into slices and orders screen_actor by them: a counting sort. */
static void slice_screen(struct actors *actors)
{
    double speed2 = 0.0;
    struct vec2 low = {INFINITY, INFINITY};
    struct vec2 high = {-INFINITY, -INFINITY};
    actors->radius_max_m = 0.0;
    for (uint32_t i = 0; i < actors->count; i++) {
        double vx = actors->vx_mps[i];
        double vy = actors->vy_mps[i];
        low.x_m = dmath_min(low.x_m, actors->x_m[i]);
        low.y_m = dmath_min(low.y_m, actors->y_m[i]);
        high.x_m = dmath_max(high.x_m, actors->x_m[i]);
        high.y_m = dmath_max(high.y_m, actors->y_m[i]);
        speed2 = dmath_max(speed2, vx * vx + vy * vy);
        actors->radius_max_m = dmath_max(actors->radius_max_m, actors->radius_m[i]);
    }
    actors->speed_max_mps = sqrt(speed2);
    actors->slices_y = high.y_m - low.y_m > high.x_m - low.x_m;
    const double *coordinates = actors->slices_y ? actors->y_m : actors->x_m;
    double origin_m = actors->slices_y ? actors->origin_y_m : actors->origin_x_m;
    double extent_m = actors->slices_y ? high.y_m - low.y_m : high.x_m - low.x_m;
    actors->slices_low_m = (actors->slices_y ? low.y_m : low.x_m) - origin_m;
    actors->slices_per_m = SCREEN_SLICES / dmath_max(extent_m, 1.0);
    uint16_t next[SCREEN_SLICES] = {0};
    for (uint32_t i = 0; i < actors->count; i++) {
        next[slice_of(actors, coordinates[i] - origin_m)]++;
    }
    uint16_t first = 0;
    for (uint32_t k = 0; k < SCREEN_SLICES; k++) {
        actors->slice_first[k] = first;
        first = (uint16_t)(first + next[k]);
        next[k] = actors->slice_first[k];
    }
    actors->slice_first[SCREEN_SLICES] = first;
    for (uint32_t i = 0; i < actors->count; i++) {
        uint32_t k = slice_of(actors, coordinates[i] - origin_m);
        actors->screen_actor[next[k]++] = (uint16_t)i;
    }
}

void traffic_screen_range(const struct actors *actors, struct vec2 low, struct vec2 high,
                          uint32_t *first, uint32_t *end)
{
    *first = 0;
    *end = actors->padded_count;
    if (actors->sliced) {
        uint32_t from = slice_of(actors, actors->slices_y ? low.y_m : low.x_m);
        uint32_t to = slice_of(actors, actors->slices_y ? high.y_m : high.x_m);
        *first = actors->slice_first[from] / SCREEN_LANES * SCREEN_LANES;
        *end = (actors->slice_first[to + 1] + SCREEN_LANES - 1u) / SCREEN_LANES * SCREEN_LANES;
    }
}

void traffic_screen_fill(struct actors *actors)
{
    for (uint32_t i = 0; i < actors->count; i++) {
        actors->screen_actor[i] = (uint16_t)i;
    }
    actors->sliced = actors->count >= SCREEN_SLICED_MIN;
    if (actors->sliced) {
        slice_screen(actors);
    }
    for (uint32_t i = 0; i < actors->count; i++) {
        uint32_t j = actors->screen_actor[i];
        actors->screen_x_m[i] = (float)(actors->x_m[j] - actors->origin_x_m);
        actors->screen_y_m[i] = (float)(actors->y_m[j] - actors->origin_y_m);
        actors->screen_vx_mps[i] = (float)actors->vx_mps[j];
        actors->screen_vy_mps[i] = (float)actors->vy_mps[j];
        actors->screen_radius_m[i] = (float)actors->radius_m[j];
        actors->screen_long_x_m[i] = (float)(actors->half_length_m[j] * actors->ux[j]);
        actors->screen_long_y_m[i] = (float)(actors->half_length_m[j] * actors->uy[j]);
        actors->screen_half_width_m[i] = (float)actors->half_width_m[j];
    }
    actors->padded_count = (actors->count + SCREEN_LANES - 1) / SCREEN_LANES * SCREEN_LANES;
    for (uint32_t i = actors->count; i < actors->padded_count; i++) {
        actors->screen_x_m[i] = 1e9f;
        actors->screen_y_m[i] = 1e9f;
        actors->screen_vx_mps[i] = 0.0f;
        actors->screen_vy_mps[i] = 0.0f;
        actors->screen_radius_m[i] = 0.0f;
        actors->screen_long_x_m[i] = 0.0f;
        actors->screen_long_y_m[i] = 0.0f;
        actors->screen_half_width_m[i] = 0.0f;
        actors->screen_actor[i] = (uint16_t)actors->ego;
    }
}
