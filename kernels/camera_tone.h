/*
 * Tone of a colour after light, distance and chance, one pixel at a time: shared by the CPU's
 * cameras, which call it in loops over the columns of a row, and the GPU's.
 */
#ifndef SWERVE_KERNELS_CAMERA_TONE_H
#define SWERVE_KERNELS_CAMERA_TONE_H

#include "base/both.h"
#include "kernels/draw_list_camera.h"

BOTH_FN struct rgb rgb_make(float r, float g, float b)
{
    struct rgb out = {r, g, b};
    return out;
}

BOTH_FN struct rgb rgb_mix(struct rgb a, struct rgb b, float t)
{
    return rgb_make(a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t);
}

BOTH_FN struct rgb rgb_scale(struct rgb a, struct rgb b)
{
    return rgb_make(a.r * b.r, a.g * b.g, a.b * b.b);
}

BOTH_FN struct rgb rgb_times(struct rgb a, float t)
{
    return rgb_make(a.r * t, a.g * t, a.b * t);
}

BOTH_FN struct rgb rgb_add(struct rgb a, struct rgb b)
{
    return rgb_make(a.r + b.r, a.g + b.g, a.b + b.b);
}

BOTH_FN float clamp_unit(float x)
{
    return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x;
}

BOTH_FN uint8_t rgb_byte(float value)
{
    return (uint8_t)(clamp_unit(value) * 255.0f + 0.5f);
}

/* Uniform in 0..1, from two integers. */
BOTH_FN float mood_hash(int32_t a, int32_t b)
{
    uint32_t h = (uint32_t)a * 0x9E3779B1u ^ (uint32_t)b * 0x85EBCA77u;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 14;
    return (float)(int32_t)(h >> 8) * (1.0f / 16777216.0f);
}

/* exp(-x) for x >= 0 as (1 - x/64)^64: within 0.01, smooth, and a tenth of the cost. */
BOTH_FN float mood_decay(float x)
{
    float t = 1.0f - x * (1.0f / 64.0f);
    t = t > 0.0f ? t : 0.0f;
    t *= t;
    t *= t;
    t *= t;
    t *= t;
    t *= t;
    return t * t;
}

/* Integer part towards minus infinity, without a call. */
BOTH_FN int32_t floor_int(float x)
{
    int32_t i = (int32_t)x;
    return i - (i > x);
}

/* Smooth noise in 0..1 with cells of unit size at a position relative to the corner of a cell; |x|,
 * |y| < 2^20. */
BOTH_FN float mood_noise(int32_t cell_x, int32_t cell_y, float x, float y)
{
    int32_t ix = floor_int(x);
    int32_t iy = floor_int(y);
    float tx = x - (float)ix;
    float ty = y - (float)iy;
    ix = (int32_t)((uint32_t)ix + (uint32_t)cell_x);
    iy = (int32_t)((uint32_t)iy + (uint32_t)cell_y);
    tx = tx * tx * (3.0f - 2.0f * tx);
    ty = ty * ty * (3.0f - 2.0f * ty);
    float low = mood_hash(ix, iy) * (1.0f - tx) + mood_hash(ix + 1, iy) * tx;
    float high = mood_hash(ix, iy + 1) * (1.0f - tx) + mood_hash(ix + 1, iy + 1) * tx;
    return low * (1.0f - ty) + high * ty;
}

/* Light of ego's headlamps on the ground at a point of ego's frame: `strength` times 0..1. */
BOTH_FN float mood_headlight_at(float strength, float x_m, float y_m)
{
    float ahead = x_m - 2.0f;
    ahead = ahead > 0.0f ? ahead : 0.0f;
    float across = y_m / (1.6f + 0.30f * ahead);
    across *= across;
    float reach = ahead * (1.0f / 30.0f);
    float near = ahead * (1.0f / 3.0f);
    near = near < 1.0f ? near : 1.0f;
    return strength * near / ((1.0f + across * across) * (1.0f + reach * reach));
}

#endif
