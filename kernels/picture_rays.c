/*
 * Rays of a picture: where the directions of a row of a tile meet the ground, how far apart those
 * of neighbours do, and which part of the sky the others see (kernels/picture_rows.h).
 */
#include "kernels/picture_rows.h"

#define RAY_MAX_M 420.0f /* of the ground, to the side */
#define STEP_MAX_M 8.0f

_Static_assert((int)RAY_MAX_M + 4 * (int)STEP_MAX_M + 50 <= GROUND_REACH_TILES * (int)RASTER_TILE_M,
               "samples lie in the tiles around ego, wherever the camera is on it");

static void look(const struct ray *restrict rays, const float *origin, struct ray_row *restrict out)
{
    const float x = origin[0];
    const float y = origin[1];
    const float z = origin[2];
    for (int32_t i = 0; i < RAY_COLS; i++) {
        float side = sqrtf(rays[i].x * rays[i].x + rays[i].y * rays[i].y + 1e-12f);
        float per_side = 1.0f / side;
        float slope = rays[i].z * per_side;
        float down = slope < 0.0f ? -slope : 1e-9f;
        float far = z / down;
        far = far < RAY_MAX_M ? far : RAY_MAX_M;
        out->slope[i] = slope;
        out->cosine[i] = rays[i].x * per_side;
        out->sine[i] = rays[i].y * per_side;
        out->hits[i] = slope < 0.0f ? 1.0f : 0.0f;
        out->distance_m[i] = far;
        out->x_m[i] = x + rays[i].x * per_side * far;
        out->y_m[i] = y + rays[i].y * per_side * far;
    }
}

/* A third of the step to the next pixel, or from the one before, no longer than what keeps samples
 * within the tiles around ego. */
struct third {
    float x_m, y_m, length_m;
};

static inline struct third third_of(float x_m, float y_m)
{
    float length = sqrtf(x_m * x_m + y_m * y_m) * (1.0f / PICTURE_SCALE);
    float kept = length > STEP_MAX_M ? STEP_MAX_M : length;
    float scale = kept / (length + 1e-20f) * (1.0f / PICTURE_SCALE);
    return (struct third){x_m * scale, y_m * scale, kept};
}

/* Step between values before, at and after a pixel, of those that are there. */
static inline float step_of(float before, float at, float after, float has_before, float has_after)
{
    float back = has_before > 0.0f ? at - before : 0.0f;
    return has_after > 0.0f ? after - at : back;
}

static inline int32_t rounded(float metres)
{
    float step = metres * ((1 << GROUND_POSITION_BITS) / (float)RASTER_SAMPLE_M);
    return (int32_t)(step + (step < 0.0f ? -0.5f : 0.5f));
}

static void find_spots(const struct picture *picture, const struct ray_row *restrict above,
                       const struct ray_row *restrict own, const struct ray_row *restrict below,
                       int32_t cols, struct ground_places *restrict places,
                       struct ray_spots *restrict out)
{
    const struct ground_place place = picture->ground;
    const double cosine = picture->ego_cos;
    const double sine = picture->ego_sin;
    const float c = (float)cosine;
    const float s = (float)sine;
    for (int32_t i = 0; i < cols; i++) {
        double x = (double)own->x_m[i + 1] * own->hits[i + 1];
        double y = (double)own->y_m[i + 1] * own->hits[i + 1];
        out->x[i] = ground_position(place.ego_x + x * cosine - y * sine);
        out->y[i] = ground_position(place.ego_y + x * sine + y * cosine);
    }
    for (int32_t i = 0; i < cols; i++) {
        const struct third right = third_of(
            step_of(own->x_m[i], own->x_m[i + 1], own->x_m[i + 2], own->hits[i], own->hits[i + 2]),
            step_of(own->y_m[i], own->y_m[i + 1], own->y_m[i + 2], own->hits[i], own->hits[i + 2]));
        out->right_x[i] = rounded(right.x_m * c - right.y_m * s);
        out->right_y[i] = rounded(right.x_m * s + right.y_m * c);
        out->footprint_m[i] = right.length_m;
    }
    for (int32_t i = 0; i < cols; i++) {
        const struct third down =
            third_of(step_of(above->x_m[i + 1], own->x_m[i + 1], below->x_m[i + 1],
                             above->hits[i + 1], below->hits[i + 1]),
                     step_of(above->y_m[i + 1], own->y_m[i + 1], below->y_m[i + 1],
                             above->hits[i + 1], below->hits[i + 1]));
        out->down_x[i] = rounded(down.x_m * c - down.y_m * s);
        out->down_y[i] = rounded(down.x_m * s + down.y_m * c);
        out->step_m[i] = down.length_m;
    }
    float most = 0.0f;
    for (int32_t i = 0; i < cols; i++) {
        double fine = ground_grain((double)out->footprint_m[i]);
        places->x_m[i] = own->x_m[i + 1];
        places->y_m[i] = own->y_m[i + 1];
        places->distance_m[i] = own->distance_m[i + 1];
        places->patches[i] = ground_patches_left((double)out->step_m[i]);
        places->grain[i] = (float)fine * ground_grain_left((double)out->step_m[i]);
    }
    for (int32_t i = 0; i < cols; i++) {
        most = places->grain[i] > most ? places->grain[i] : most;
    }
    places->grained = most > 0.0f;
}

/* Angle of a direction of length 1, within 1e-5 rad (Abramowitz and Stegun 4.4.49). */
static inline float angle_of(float cosine, float sine)
{
    float a = cosine < 0.0f ? -cosine : cosine;
    float b = sine < 0.0f ? -sine : sine;
    float ratio = a > b ? b / a : a / (b + 1e-20f);
    float square = ratio * ratio;
    float angle =
        ratio * (0.9998660f +
                 square * (-0.3302995f +
                           square * (0.1801410f + square * (-0.0851330f + 0.0208351f * square))));
    angle = a > b ? angle : (float)(PI_RAD / 2) - angle;
    angle = cosine < 0.0f ? (float)PI_RAD - angle : angle;
    return sine < 0.0f ? -angle : angle;
}

static float find_sky(const struct picture *picture, const struct sky_ring *ring,
                      const struct ray_row *restrict above, const struct ray_row *restrict own,
                      const struct ray_row *restrict below, int32_t cols,
                      struct sky_columns *restrict columns, float *restrict up)
{
    const float c = (float)picture->ego_cos;
    const float s = (float)picture->ego_sin;
    int32_t places[PICTURE_TILE_COLS];
    for (int32_t i = 0; i < cols; i++) {
        columns->cosine[i] = own->cosine[i + 1] * c - own->sine[i + 1] * s;
        columns->sine[i] = own->cosine[i + 1] * s + own->sine[i + 1] * c;
    }
    for (int32_t i = 0; i < cols; i++) {
        float azimuth = angle_of(columns->cosine[i], columns->sine[i]);
        int32_t place = (int32_t)((azimuth + (float)PI_RAD) * (float)(SKY_RING / (2.0 * PI_RAD)));
        columns->azimuth_rad[i] = azimuth;
        places[i] = place < SKY_RING ? place : SKY_RING - 1;
    }
    for (int32_t i = 0; i < cols; i++) {
        columns->skyline[i] = ring->skyline[places[i]];
        columns->halo[i] = ring->halo[places[i]];
    }
    /* Slope of a third of a pixel's height, or width in an image that lies on its side. */
    for (int32_t i = 0; i < cols; i++) {
        float across = own->slope[i + 2] - own->slope[i];
        float down = below->slope[i + 1] - above->slope[i + 1];
        float step = sqrtf(across * across + down * down) * (1.0f / (2 * PICTURE_SCALE));
        float slope = own->slope[i + 1] > 0.0f ? own->slope[i + 1] : 0.0f;
        step = step > 1e-6f ? step : 1e-6f;
        columns->scale[i] = step;
        up[i] = slope / step;
    }
    float least = INFINITY;
    for (int32_t i = 0; i < cols; i++) {
        float slope = own->slope[i + 1] > 0.0f ? own->slope[i + 1] : 0.0f;
        least = slope < least ? slope : least;
    }
    return least;
}

void PICTURE_NAME(rays)(struct picture_kernels *kernels)
{
    kernels->look = look;
    kernels->spots = find_spots;
    kernels->sky_columns = find_sky;
}
