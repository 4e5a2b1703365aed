/*
 * Raster kernels against their plain C reference, in the manner of checkasm: every variant that
 * this machine can run must give the same bits on random and on pathological windows, odd sizes
 * included, and must not touch a byte outside its output.
 */
#include "base/check.h"
#include "base/rng.h"
#include "kernels/cpu.h"
#include "kernels/raster.h"
#include "tests/harness.h"

#include <stdlib.h>

enum {
    TILES = 24,
    CELLS = RASTER_TILE_TEXELS * RASTER_TILE_TEXELS,
    ROWS_MAX = 40,
    COLS_MAX = 100,
    STRIDE_MAX = COLS_MAX + 3,
    GUARD = 64,
    GUARD_BYTE = 0xA5,
};

static uint64_t texels[TILES * CELLS];

static uint32_t random_word(uint32_t *element)
{
    uint32_t counter[4] = {0, RNG_STREAM_TEST, (*element)++, 0};
    uint32_t out[4];
    rng_philox(7, counter, out);
    return out[0];
}

/* Tile 0 is empty; the others are random, all ones, all zero or single spikes. */
static void fill_texels(uint32_t *element)
{
    for (uint32_t i = CELLS; i < TILES * CELLS; i++) {
        uint64_t word = (uint64_t)random_word(element) << 32 | random_word(element);
        switch (i / CELLS % 4) {
        case 0:
            texels[i] = UINT64_MAX;
            break;
        case 1:
            texels[i] = word % 50 == 0 ? UINT64_C(0xFF) << (word >> 61) * 8 : 0;
            break;
        default:
            texels[i] = word;
        }
    }
}

struct buffer {
    uint8_t bytes[GUARD + ROWS_MAX * STRIDE_MAX + GUARD];
};

/* Bytes before the first row, between rows and behind the last one are as they were. */
static void expect_guards(const struct buffer *buffer, uint32_t rows, uint32_t cols,
                          uint32_t stride)
{
    for (uint32_t i = 0; i < sizeof buffer->bytes; i++) {
        uint32_t at = i - GUARD;
        if (i < GUARD || at / stride >= rows || at % stride >= cols) {
            EXPECT_INT(buffer->bytes[i], GUARD_BYTE);
        }
    }
}

static void compare(const struct raster_window *window, uint32_t rows, uint32_t cols,
                    uint32_t stride, uint32_t flags)
{
    static struct buffer expected[2];
    static struct buffer found[2];
    struct raster_kernels kernels;
    raster_kernels_init(&kernels, flags);
    memset(expected, GUARD_BYTE, sizeof expected);
    memset(found, GUARD_BYTE, sizeof found);
    raster_sample_ref(window, rows, cols, stride, expected[0].bytes + GUARD,
                      expected[1].bytes + GUARD);
    kernels.sample(window, rows, cols, stride, found[0].bytes + GUARD, found[1].bytes + GUARD);
    expect_guards(&expected[0], rows, cols, stride);
    expect_guards(&found[0], rows, cols, stride);
    expect_guards(&found[1], rows, cols, stride);
    EXPECT(memcmp(expected, found, sizeof expected) == 0);
}

static void random_directory(struct raster_window *window, uint32_t *element)
{
    uint32_t density = random_word(element) % 5;
    for (uint32_t i = 0; i < COUNT_OF(window->directory); i++) {
        uint32_t word = random_word(element);
        window->directory[i] = word % 4 < density ? (uint16_t)((word >> 8) % TILES) : 0;
    }
}

/* Grids turned by about a multiple of 90 degrees, mirrored ones too: steps of exactly a texel along
 * one axis, of any part of one along the other. */
static void compare_straight(uint32_t flags)
{
    static const int32_t drifts[] = {0,     1,    -1,    57,   -57,   300,
                                     -2000, 8191, -8191, 8192, -8192, 65536};
    uint32_t element = 8000000;
    for (int round = 0; round < 1500; round++) {
        struct raster_window window = {.texels = texels,
                                       .x0 = (int32_t)random_word(&element),
                                       .y0 = (int32_t)random_word(&element)};
        random_directory(&window, &element);
        uint32_t word = random_word(&element);
        int32_t texel[2] = {word & 1 ? 65536 : -65536, word & 2 ? 65536 : -65536};
        int32_t drift[2] = {drifts[(word >> 3) % COUNT_OF(drifts)],
                            drifts[(word >> 8) % COUNT_OF(drifts)]};
        bool turned = (word & 4) != 0;
        window.row_dx = turned ? drift[0] : texel[0];
        window.col_dy = turned ? drift[1] : texel[1];
        window.col_dx = turned ? texel[0] : drift[0];
        window.row_dy = turned ? texel[1] : drift[1];
        uint32_t rows = 8 * (1 + (word >> 16) % (ROWS_MAX / 8));
        uint32_t cols = 8 * (1 + (word >> 20) % (COLS_MAX / 8));
        uint32_t more = word >> 24 & 1; /* no longer whole blocks */
        compare(&window, rows - more, cols - more, cols + (word >> 28) % 4, flags);
    }
}

/* Random positions, steps from tiny to absurd, directories from empty to full, sizes 1..max. */
static void compare_many(uint32_t flags)
{
    uint32_t element = 0;
    fill_texels(&element);
    static const int32_t extremes[] = {0,      1,         -1,        65535,    65536,
                                       -65536, INT32_MAX, INT32_MIN, 33 << 16, 0x00FFFFFF};
    for (int round = 0; round < 1500; round++) {
        struct raster_window window = {.texels = texels};
        random_directory(&window, &element);
        int32_t *members[] = {&window.x0,     &window.y0,     &window.row_dx,
                              &window.row_dy, &window.col_dx, &window.col_dy};
        for (uint32_t i = 0; i < COUNT_OF(members); i++) {
            uint32_t word = random_word(&element);
            uint32_t shift = i < 2 ? 8 : 15; /* positions in the window, steps of about a texel */
            *members[i] = round % 3 == 0 ? extremes[word % COUNT_OF(extremes)]
                                         : (int32_t)(random_word(&element) >> shift) - (1 << 16);
        }
        uint32_t rows = 1 + random_word(&element) % ROWS_MAX;
        uint32_t cols = 1 + random_word(&element) % COLS_MAX;
        compare(&window, rows, cols, cols, flags);
    }
}

/* Bounds as the grid makes them, steep ones, crossing ones, huge ones and exact integers. */
static struct raster_region random_region(uint32_t *element)
{
    static const double scales[] = {1.0, 100.0, 1e6, 1e12, 0.0};
    struct raster_region region = {.low_count = 1 + random_word(element) % RASTER_BOUNDS,
                                   .high_count = 1 + random_word(element) % RASTER_BOUNDS};
    double *members[] = {region.low_offset, region.low_slope, region.high_offset,
                         region.high_slope};
    for (uint32_t i = 0; i < COUNT_OF(members) * RASTER_BOUNDS; i++) {
        double scale = scales[random_word(element) % COUNT_OF(scales)];
        double unit = (int32_t)random_word(element) / 2147483648.0;
        bool slope = i / RASTER_BOUNDS % 2 != 0;
        double value = unit * scale * (slope ? 0.1 : 1.0);
        members[i / RASTER_BOUNDS][i % RASTER_BOUNDS] =
            random_word(element) % 4 == 0 ? floor(value) : value;
    }
    return region;
}

enum { MARK_ROWS = 37 };

struct marks {
    uint64_t low[MARK_ROWS];
    uint64_t high[MARK_ROWS];
};

/* Random prior marks, any row range; rows outside it and prior marks must survive. */
static void compare_shade(uint32_t flags)
{
    struct raster_kernels kernels;
    raster_kernels_init(&kernels, flags);
    uint32_t element = 5000000;
    for (int round = 0; round < 4000; round++) {
        struct raster_region region = random_region(&element);
        struct marks expected;
        for (uint32_t r = 0; r < MARK_ROWS; r++) {
            uint32_t word = random_word(&element);
            expected.low[r] = round % 2 == 0 ? 0 : (uint64_t)word << (word & 31);
            expected.high[r] = round % 2 == 0 ? 0 : (uint64_t)word * 0x10001;
        }
        struct marks found = expected;
        uint32_t first = random_word(&element) % MARK_ROWS;
        uint32_t end = first + random_word(&element) % (MARK_ROWS + 1 - first);
        raster_shade_ref(&region, first, end, &(struct raster_marks){expected.low, expected.high});
        kernels.shade(&region, first, end, &(struct raster_marks){found.low, found.high});
        EXPECT(memcmp(&expected, &found, sizeof expected) == 0);
    }
}

/* Every width 0..128, guard bytes on both sides. */
static void compare_expand(uint32_t flags)
{
    struct raster_kernels kernels;
    raster_kernels_init(&kernels, flags);
    uint32_t element = 6000000;
    struct marks marks;
    for (uint32_t r = 0; r < MARK_ROWS; r++) {
        marks.low[r] = (uint64_t)random_word(&element) << 32 | random_word(&element);
        marks.high[r] = (uint64_t)random_word(&element) << 32 | random_word(&element);
    }
    marks.low[3] = marks.high[4] = UINT64_MAX;
    const struct raster_marks view = {marks.low, marks.high};
    for (uint32_t cols = 0; cols <= RASTER_COLS_MAX; cols++) {
        static uint8_t expected[GUARD + MARK_ROWS * RASTER_COLS_MAX + GUARD];
        static uint8_t found[sizeof expected];
        memset(expected, GUARD_BYTE, sizeof expected);
        memset(found, GUARD_BYTE, sizeof found);
        raster_expand_ref(&view, MARK_ROWS, cols, expected + GUARD);
        kernels.expand(&view, MARK_ROWS, cols, found + GUARD);
        EXPECT_INT(expected[GUARD - 1], GUARD_BYTE);
        EXPECT_INT(expected[GUARD + MARK_ROWS * cols], GUARD_BYTE);
        EXPECT(memcmp(expected, found, sizeof expected) == 0);
    }
}

/* The reference against the definition, column by column. */
static void reference_shades_the_region(void)
{
    uint32_t element = 7000000;
    for (int round = 0; round < 500; round++) {
        struct raster_region region = random_region(&element);
        struct marks marks = {0};
        raster_shade_ref(&region, 0, MARK_ROWS, &(struct raster_marks){marks.low, marks.high});
        for (uint32_t r = 0; r < MARK_ROWS; r++) {
            for (uint32_t c = 0; c < RASTER_COLS_MAX; c++) {
                bool inside = true;
                for (uint32_t i = 0; i < region.low_count; i++) {
                    inside = inside && region.low_offset[i] + region.low_slope[i] * r <= c;
                }
                for (uint32_t i = 0; i < region.high_count; i++) {
                    inside = inside && region.high_offset[i] + region.high_slope[i] * r > c;
                }
                uint64_t word = c < 64 ? marks.low[r] : marks.high[r];
                EXPECT_INT(word >> (c & 63) & 1, inside);
            }
        }
    }
}

static void compare_all(uint32_t flag, const char *name)
{
    if (cpu_flags_detect() & flag) {
        compare_many(flag);
        compare_straight(flag);
        compare_shade(flag);
        compare_expand(flag);
    } else {
        printf("# no %s here\n", name);
    }
}

static void avx2_equals_reference(void)
{
    compare_all(CPU_FLAG_AVX2, "AVX2");
}

static void avx512_equals_reference(void)
{
    compare_all(CPU_FLAG_AVX512, "AVX-512");
}

/* The mask decides: without flags the table holds the reference itself. */
static void masked_table_is_the_reference(void)
{
    struct raster_kernels kernels;
    raster_kernels_init(&kernels, 0);
    EXPECT(kernels.sample == raster_sample_ref);
    EXPECT(kernels.shade == raster_shade_ref);
    EXPECT(kernels.expand == raster_expand_ref);
}

/* The reference against the definition: bilinear interpolation in real numbers, within the rounding
 * of 6-bit weights. Texels are made consistent (neighbour bytes agree), as the layers make them. */
static void reference_interpolates(void)
{
    static uint8_t plane[2][RASTER_TILE_TEXELS + 1][RASTER_TILE_TEXELS + 1];
    uint32_t element = 1000000;
    for (uint32_t i = 0; i < sizeof plane; i++) {
        (&plane[0][0][0])[i] = (uint8_t)random_word(&element);
    }
    for (uint32_t y = 0; y < RASTER_TILE_TEXELS; y++) {
        for (uint32_t x = 0; x < RASTER_TILE_TEXELS; x++) {
            uint64_t texel = 0;
            for (uint32_t k = 0; k < 8; k++) {
                texel |= (uint64_t)plane[k / 4][y + (k >> 1 & 1)][x + (k & 1)] << (8 * k);
            }
            texels[CELLS + y * RASTER_TILE_TEXELS + x] = texel;
        }
    }
    for (int round = 0; round < 2000; round++) {
        struct raster_window window = {.texels = texels};
        window.directory[0] = 1;
        window.x0 = (int32_t)(random_word(&element) % (RASTER_TILE_TEXELS << 16));
        window.y0 = (int32_t)(random_word(&element) % (RASTER_TILE_TEXELS << 16));
        uint8_t out[2];
        raster_sample_ref(&window, 1, 1, 1, &out[0], &out[1]);
        double x = window.x0 / 65536.0;
        double y = window.y0 / 65536.0;
        for (int layer = 0; layer < 2; layer++) {
            const uint8_t(*p)[RASTER_TILE_TEXELS + 1] = &plane[layer][(int)y];
            double fx = x - floor(x);
            double fy = y - floor(y);
            double low = p[0][(int)x] * (1 - fx) + p[0][(int)x + 1] * fx;
            double high = p[1][(int)x] * (1 - fx) + p[1][(int)x + 1] * fx;
            /* Two weights off by up to 1/64 of at most 255 each, and half for rounding. */
            EXPECT_NEAR(out[layer], low * (1 - fy) + high * fy, 2 * 255.0 / 64 + 0.5);
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(avx2_equals_reference), TEST(avx512_equals_reference),
                    TEST(masked_table_is_the_reference), TEST(reference_interpolates),
                    TEST(reference_shades_the_region));
}
