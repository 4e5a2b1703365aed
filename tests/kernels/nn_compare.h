/*
 * Parts that tests of network kernels share: buffers with guard bytes, inputs from tame to
 * pathological, and comparison bit by bit. Two NaN count as equal whatever their payload; in
 * bfloat16 there is only one NaN, so bits are compared.
 */
#ifndef SWERVE_TESTS_KERNELS_NN_COMPARE_H
#define SWERVE_TESTS_KERNELS_NN_COMPARE_H

#include "base/check.h"
#include "base/rng.h"
#include "kernels/cpu.h"
#include "kernels/nn.h"
#include "tests/harness.h"

#include <float.h>
#include <stdlib.h>

enum { GUARD_BYTES = 128, GUARD_BYTE = 0xA5 };

struct variant {
    const char *name;
    uint32_t flags; /* given to nn_kernels_init */
    uint32_t needs; /* what the machine must have */
};

static const struct variant variants[] = {
    {"avx2", CPU_FLAG_AVX2, CPU_FLAG_AVX2},
    {"avx512", CPU_FLAG_AVX2 | CPU_FLAG_AVX512, CPU_FLAG_AVX2 | CPU_FLAG_AVX512},
    {"avx512bf16", CPU_FLAG_ALL & ~CPU_FLAG_AMX, CPU_FLAG_ALL & ~CPU_FLAG_AMX},
    {"amx", CPU_FLAG_ALL, CPU_FLAG_ALL},
};

static const struct variant int8_variants[] = {
    {"avx2", CPU_FLAG_AVX2, CPU_FLAG_AVX2},
    {"avx512", CPU_FLAG_AVX2 | CPU_FLAG_AVX512, CPU_FLAG_AVX2 | CPU_FLAG_AVX512},
    {"avx512vnni", CPU_FLAG_AVX2 | CPU_FLAG_AVX512 | CPU_FLAG_AVX512_VNNI,
     CPU_FLAG_AVX2 | CPU_FLAG_AVX512 | CPU_FLAG_AVX512_VNNI},
};

/* NN_FP32 and NN_BF16: what NN_INT8 has beside the latter is test_nn_int8.c's. */
enum { FLOAT_PRECISIONS = NN_BF16 + 1 };

static inline bool variant_runs(const struct variant *variant)
{
    return (cpu_flags_detect() & variant->needs) == variant->needs;
}

/* The same for what NN_INT8 has of its own. */
static inline void for_each_int8_variant(void (*check)(const struct nn_kernels *found,
                                                       const struct nn_kernels *reference))
{
    for (size_t i = 0; i < COUNT_OF(int8_variants); i++) {
        struct nn_kernels found;
        struct nn_kernels reference;
        if (!variant_runs(&int8_variants[i])) {
            printf("# %s: not on this machine\n", int8_variants[i].name);
            continue;
        }
        nn_kernels_init(&found, NN_INT8, int8_variants[i].flags);
        nn_kernels_init(&reference, NN_INT8, 0);
        EXPECT_TEXT(found.name, int8_variants[i].name);
        check(&found, &reference);
    }
}

/* A call per variant that this machine has and per precision; the others are named and skipped. */
static inline void for_each_variant(void (*check)(const struct nn_kernels *found,
                                                  const struct nn_kernels *reference))
{
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        if (!variant_runs(&variants[i])) {
            printf("# %s: not on this machine\n", variants[i].name);
            continue;
        }
        for (int p = 0; p < FLOAT_PRECISIONS; p++) {
            struct nn_kernels found;
            struct nn_kernels reference;
            nn_kernels_init(&found, (enum nn_precision)p, variants[i].flags);
            nn_kernels_init(&reference, (enum nn_precision)p, 0);
            check(&found, &reference);
        }
    }
}

/* `bytes` of memory at a multiple of 64, every byte GUARD_BYTE, guards on both sides. */
struct buffer {
    uint8_t *memory;
    void *data;
    size_t bytes;
};

static inline struct buffer buffer_make(size_t bytes)
{
    size_t all = (GUARD_BYTES + bytes + GUARD_BYTES + 63) / 64 * 64;
    struct buffer buffer = {aligned_alloc(64, all), NULL, bytes};
    EXPECT(buffer.memory != NULL);
    memset(buffer.memory, GUARD_BYTE, all);
    buffer.data = buffer.memory + GUARD_BYTES;
    return buffer;
}

static inline bool buffer_intact(const struct buffer *buffer)
{
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        if (buffer->memory[i] != GUARD_BYTE ||
            buffer->memory[GUARD_BYTES + buffer->bytes + i] != GUARD_BYTE) {
            return false;
        }
    }
    return true;
}

/* Checks the guards and frees. */
static inline void buffer_end(struct buffer *buffer)
{
    bool intact = buffer_intact(buffer);
    free(buffer->memory);
    EXPECT(intact);
}

static inline uint32_t random_word(uint32_t *element)
{
    const uint32_t counter[4] = {0, RNG_STREAM_TEST, (*element)++, 0};
    uint32_t out[4];
    rng_philox(11, counter, out);
    return out[0];
}

enum input_kind {
    INPUT_TAME = 0, /* uniform in -1 .. 1 */
    INPUT_WIDE,     /* exponents from -40 to 8, both signs, some zeros of both signs */
    INPUT_TINY,     /* about the smallest normal numbers and its square root, denormals, zeros */
    INPUT_HUGE,     /* up to the largest float: sums overflow, infinities meet */
    INPUT_WILD,     /* tame, with now and then NaN or an infinity */
    INPUT_KIND_COUNT,
};

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float random_float(enum input_kind kind, uint32_t *element)
{
    uint32_t word = random_word(element);
    uint32_t choice = random_word(element);
    float tame = (float)(int32_t)word * 0x1p-31f;
    switch (kind) {
    case INPUT_WIDE:
        return choice % 17 == 0 ? (choice & 32 ? -0.0f : 0.0f)
                                : ldexpf(tame, 8 - (int)(choice / 17 % 49));
    case INPUT_TINY:
        if (choice % 4 == 0) {
            return float_of((word & 0x807FFFFF) | (choice & 0x40 ? 0x00800000u : 0));
        }
        return ldexpf(tame, choice % 4 == 1 ? -62 : -124 + (int)(choice / 4 % 8));
    case INPUT_HUGE:
        return ldexpf(tame, choice % 3 == 0 ? 127 : 60 + (int)(choice / 3 % 8));
    case INPUT_WILD:
        if (choice % 97 == 0) {
            return choice & 1024 ? NAN : (choice & 2048 ? INFINITY : -INFINITY);
        }
        return tame;
    default:
        return tame;
    }
}

static inline void fill_floats(float *out, size_t count, enum input_kind kind, uint32_t *element)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = random_float(kind, element);
    }
}

/* Activations: random floats, rounded by truncation so that the test does not rely on to_act; any
 * 16 bits are a bfloat16, denormals and NaN included. */
static inline void fill_act(enum nn_precision precision, void *out, size_t count,
                            enum input_kind kind, uint32_t *element)
{
    for (size_t i = 0; i < count; i++) {
        float x = random_float(kind, element);
        if (precision == NN_BF16) {
            uint32_t bits;
            memcpy(&bits, &x, sizeof bits);
            ((uint16_t *)out)[i] = (uint16_t)(bits >> 16);
        } else {
            ((float *)out)[i] = x;
        }
    }
}

static inline double act_value(enum nn_precision precision, const void *act, size_t index)
{
    return precision == NN_BF16 ? float_of((uint32_t)((const uint16_t *)act)[index] << 16)
                                : ((const float *)act)[index];
}

/* The first float that differs, or -1. */
static inline long first_difference(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool both_nan = a[i] != a[i] && b[i] != b[i];
        if (!both_nan && memcmp(&a[i], &b[i], sizeof a[i]) != 0) {
            return (long)i;
        }
    }
    return -1;
}

static inline void expect_same_floats(const char *what, const struct nn_kernels *found,
                                      const float *a, const float *b, size_t count)
{
    long at = first_difference(a, b, count);
    if (at >= 0) {
        TEST_FAIL("%s %s precision %d: element %ld: found %a, expected %a", found->name, what,
                  found->precision, at, (double)a[at], (double)b[at]);
    }
}

static inline void expect_same_act(const char *what, const struct nn_kernels *found, const void *a,
                                   const void *b, size_t count)
{
    if (found->precision == NN_FP32) {
        expect_same_floats(what, found, a, b, count);
        return;
    }
    const uint16_t *x = a;
    const uint16_t *y = b;
    for (size_t i = 0; i < count; i++) {
        if (x[i] != y[i]) {
            TEST_FAIL("%s %s bf16: element %zu: found %04x, expected %04x", found->name, what, i,
                      x[i], y[i]);
        }
    }
}

#endif
