/*
 * Effect of commands on the samples of a canvas: which columns of a row each one reaches, and what
 * it does there. 1/depth is linear on the screen for a plane, so the depth test needs no division
 * per sample.
 *
 * An image pixel is taken over from the backdrop, all PICTURE_SCALE^2 samples of it, when a command
 * first reaches it on any row, whether something hides it there or not; and it is averaged from its
 * samples then.
 */
#ifndef SWERVE_KERNELS_CAMERA_SCREEN_H
#define SWERVE_KERNELS_CAMERA_SCREEN_H

#include "base/dmath_inline.h"
#include "kernels/camera_tone.h"

/* Columns whose centre a polygon covers on canvas row `row`, of those before `cols`; false where
 * there are none. */
BOTH_FN bool screen_polygon_span(const struct screen_command *command,
                                 const struct screen_point *points, int32_t row, int32_t cols,
                                 int32_t *first, int32_t *end)
{
    double v = row + 0.5;
    double low = INFINITY;
    double high = -INFINITY;
    uint32_t count = command->points;
    for (uint32_t i = 0, j = count - 1; i < count; j = i++) {
        double va = points[j].v;
        double vb = points[i].v;
        if ((va > v) != (vb > v)) {
            double u = points[j].u + (v - va) / (vb - va) * (points[i].u - points[j].u);
            low = both_min(low, u);
            high = both_max(high, u);
        }
    }
    if (!(low < high)) {
        return false;
    }
    *first = (int32_t)(both_clamp(low, 0.0, cols) + 0.5);
    *end = (int32_t)(both_clamp(high, 0.0, cols) + 0.5);
    return *first < *end;
}

/* The same for a glow: all columns of its square, on the rows of its circle. */
BOTH_FN bool screen_glow_span(const struct screen_command *command,
                              const struct screen_point *middle, int32_t row, int32_t cols,
                              int32_t *first, int32_t *end)
{
    double radius = command->du;
    double dv = row + 0.5 - middle->v;
    if (dv * dv > radius * radius) {
        return false;
    }
    *first = (int32_t)both_clamp(middle->u - radius, 0.0, cols);
    *end = (int32_t)both_clamp(middle->u + radius + 1.0, 0.0, cols);
    return true;
}

/* Columns that a command reaches on a row of a canvas of `cols` columns. */
BOTH_FN bool screen_span(const struct screen_command *command, const struct screen_point *points,
                         int32_t row, int32_t cols, int32_t *first, int32_t *end)
{
    if (row < command->first_row || row >= command->end_row) {
        return false;
    }
    points += command->first_point;
    return command->kind == SCREEN_GLOW
               ? screen_glow_span(command, points, row, cols, first, end)
               : screen_polygon_span(command, points, row, cols, first, end);
}

/* 1/depth of a fill at the left edge of a row. */
BOTH_FN double screen_fill_start(const struct screen_command *command, int32_t row)
{
    return command->inverse_depth + command->dv * (row + 0.5);
}

BOTH_FN void screen_fill(const struct screen_command *command, double start, int32_t col,
                         struct rgb *colour, float *inverse_depth)
{
    float inverse = (float)(start + command->du * (col + 0.5));
    if (inverse > *inverse_depth) {
        *inverse_depth = inverse;
        *colour = command->colour;
    }
}

BOTH_FN void screen_shadow(const struct screen_command *command, struct rgb *colour)
{
    *colour = rgb_times(*colour, command->colour.r);
}

BOTH_FN void screen_glow(const struct screen_command *command, const struct screen_point *middle,
                         int32_t row, int32_t col, struct rgb *colour, float inverse_depth)
{
    double radius = command->du;
    double du = col + 0.5 - middle->u;
    double dv = row + 0.5 - middle->v;
    double q = 1.0 - (du * du + dv * dv) / (radius * radius);
    if (q > 0 && inverse_depth < command->inverse_depth) {
        *colour = rgb_add(*colour, rgb_times(command->colour, (float)(q * q * q)));
    }
}

/* Adds a sample of a pixel to the sum over them. */
BOTH_FN struct rgb screen_sum(struct rgb sum, struct rgb sample)
{
    sample.r = sample.r > 1.0f ? 1.0f : sample.r;
    sample.g = sample.g > 1.0f ? 1.0f : sample.g;
    sample.b = sample.b > 1.0f ? 1.0f : sample.b;
    return rgb_add(sum, sample);
}

/* The pixel's bytes. */
BOTH_FN void screen_average(struct rgb sum, uint8_t *pixel)
{
    const float part = 1.0f / (PICTURE_SCALE * PICTURE_SCALE);
    pixel[0] = rgb_byte(sum.r * part);
    pixel[1] = rgb_byte(sum.g * part);
    pixel[2] = rgb_byte(sum.b * part);
}

#endif
