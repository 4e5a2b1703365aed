/*
 * Stand-ins for the CUDA toolkit's vector types and number formats, so that the emulator needs no
 * toolkit. Conversions give the hardware's bits: round to nearest even, saturation where the
 * intrinsic saturates. Kernels see these through kernels/cuda/common/gpu.h alone.
 */
#ifndef SWERVE_TESTS_SIMT_TYPES_H
#define SWERVE_TESTS_SIMT_TYPES_H

#include <cmath>
#include <cstdint>
#include <cstring>

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(4) uchar4 {
    unsigned char x, y, z, w;
};

static inline float2 make_float2(float x, float y)
{
    return {x, y};
}

static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

static inline int2 make_int2(int x, int y)
{
    return {x, y};
}

static inline int4 make_int4(int x, int y, int z, int w)
{
    return {x, y, z, w};
}

static inline uint32_t simt_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float simt_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* cvt.rn.bf16.f32: denormals stay, every NaN becomes 0x7fff (PTX ISA, cvt). */
static inline uint16_t simt_float_to_bf16(float x)
{
    uint32_t bits = simt_bits(x);
    if (x != x) {
        return 0x7fff;
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* OCP FP8 E4M3: bias 7, no infinity, NaN = S.1111.111, largest 448. */
static inline float simt_e4m3_to_float(uint8_t byte)
{
    int exponent = byte >> 3 & 15;
    int mantissa = byte & 7;
    float magnitude;
    if (exponent == 15 && mantissa == 7) {
        magnitude = NAN;
    } else if (exponent == 0) {
        magnitude = ldexpf((float)mantissa, -9);
    } else {
        magnitude = ldexpf((float)(8 + mantissa), exponent - 10);
    }
    return byte & 0x80 ? -magnitude : magnitude;
}

/* cvt.rn.satfinite.e4m3: to nearest even, beyond 448 (infinities too) to 448, NaN to 0x7f. */
static inline uint8_t simt_float_to_e4m3(float x)
{
    uint8_t sign = std::signbit(x) ? 0x80 : 0;
    float a = fabsf(x);
    if (x != x) {
        return 0x7f;
    }
    if (a >= 448.0f) {
        return sign | 0x7e;
    }
    int exponent;
    frexpf(a, &exponent);
    exponent -= 1; /* a = 1.m * 2^exponent */
    exponent = a == 0.0f || exponent < -6 ? -6 : exponent;
    int mantissa = (int)nearbyintf(ldexpf(a, 3 - exponent));
    if (mantissa >= 16) {
        mantissa = 8;
        exponent++;
    }
    if (mantissa < 8) {
        return sign | (uint8_t)mantissa;
    }
    return sign | (uint8_t)((exponent + 7) << 3 | (mantissa - 8));
}

#endif
