/*
 * Watch: one pass over a picture gives the sums that all verdicts come from.
 */
#include "engine/rigs/watch.h"

#include "base/check.h"
#include "schemas/rig/rig.h"

#include <stdbool.h>

#define FIRST_S 1.0
#define MOVED_M 0.05    /* ego in a picture: less need not show */
#define FLAT_SHARE 0.98 /* of the pixels black or white */
#define RATIO_MAX 5.0
/* Below these a first second says nothing: fog, or a wall. */
#define CONTRAST_MIN 20.0
#define SHARPNESS_MIN 0.2

const char *const watch_fault_names[WATCH_FAULT_COUNT] = {
    "fine", "missing", "size", "frozen", "dark", "bright", "contrast", "sharpness",
};

static uint32_t step_between(int32_t a, int32_t b)
{
    return (uint32_t)(a < b ? b - a : a - b);
}

/* Brightness of a row's pixels, and the hash of the bytes so far (FNV-1a, a pixel at a time). */
static uint64_t read_row(const uint8_t *rgb, int32_t width, uint64_t hash, uint8_t *out)
{
    for (int32_t col = 0; col < width; col++, rgb += 3) {
        uint64_t word = (uint64_t)rgb[0] | (uint64_t)rgb[1] << 8 | (uint64_t)rgb[2] << 16;
        hash = (hash ^ word) * UINT64_C(1099511628211);
        out[col] = (uint8_t)((2 * rgb[0] + 5 * rgb[1] + rgb[2]) / 8);
    }
    return hash;
}

/* Sums of a row, apart from what only the bytes tell; `above` NULL: it is the first. Those of a row
 * fit 32 bits: 4096 x 255 x 255. */
static void add_row(const uint8_t *row, const uint8_t *above, int32_t width,
                    struct watch_sums *sums)
{
    uint32_t sum = 0;
    uint32_t squares = 0;
    uint32_t dark = 0;
    uint32_t bright = 0;
    uint32_t steps = 0;
    for (int32_t col = 0; col < width; col++) {
        const uint32_t here = row[col];
        sum += here;
        squares += here * here;
        dark += here <= 3;
        bright += here >= 252;
    }
    for (int32_t col = 0; col + 1 < width; col++) {
        steps += step_between(row[col], row[col + 1]);
    }
    for (int32_t col = 0; col < width && above != NULL; col++) {
        steps += step_between(row[col], above[col]);
    }
    sums->sum += sum;
    sums->squares += squares;
    sums->dark += dark;
    sums->bright += bright;
    sums->steps += steps;
}

void watch_measure(const uint8_t *rgb, int32_t width, int32_t height, struct watch_sums *out)
{
    uint8_t rows[2][RIG_SIDE_MAX];
    struct watch_sums sums = {.pixels = (uint64_t)width * (uint64_t)height,
                              .hash = UINT64_C(14695981039346656037)};
    CHECK(width <= RIG_SIDE_MAX);
    for (int32_t i = 0; i < height; i++) {
        sums.hash = read_row(rgb + (size_t)i * (size_t)width * 3, width, sums.hash, rows[i % 2]);
        add_row(rows[i % 2], i > 0 ? rows[(i + 1) % 2] : NULL, width, &sums);
    }
    *out = sums;
}

void watch_shrink(const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t cols, uint32_t rows,
                  uint8_t *out)
{
    for (uint32_t row = 0; row < rows; row++) {
        const uint32_t first_row = row * height / rows;
        const uint32_t end_row = (row + 1) * height / rows;
        for (uint32_t col = 0; col < cols; col++) {
            const uint32_t first_col = col * width / cols;
            const uint32_t end_col = (col + 1) * width / cols;
            uint32_t sum[3] = {0};
            uint32_t count = 0;
            for (uint32_t y = first_row; y < end_row || y == first_row; y++) {
                for (uint32_t x = first_col; x < end_col || x == first_col; x++, count++) {
                    const uint8_t *pixel = rgb + ((size_t)y * width + x) * 3;
                    for (int i = 0; i < 3; i++) {
                        sum[i] += pixel[i];
                    }
                }
            }
            for (int i = 0; i < 3; i++) {
                *out++ = (uint8_t)((sum[i] + count / 2) / count);
            }
        }
    }
}

static double contrast_of(const struct watch_sums *sums)
{
    double mean = (double)sums->sum / (double)sums->pixels;
    return (double)sums->squares / (double)sums->pixels - mean * mean;
}

static double sharpness_of(const struct watch_sums *sums)
{
    return (double)sums->steps / (double)sums->pixels;
}

/* Whether a measure left what it was in the first second; that must have been worth something. */
static bool has_left(double found, double first, double least)
{
    return first >= least && (found * RATIO_MAX < first || found > first * RATIO_MAX);
}

static enum watch_fault judge(const struct watch *watch, const struct watch_sums *sums,
                              double time_s, double ego_moved_m, double *found, double *expected)
{
    double dark = (double)sums->dark / (double)sums->pixels;
    double bright = (double)sums->bright / (double)sums->pixels;
    *expected = FLAT_SHARE;
    if (dark > FLAT_SHARE) {
        *found = dark;
        return WATCH_DARK;
    }
    if (bright > FLAT_SHARE) {
        *found = bright;
        return WATCH_BRIGHT;
    }
    if (watch->pictures > 0 && ego_moved_m > MOVED_M && sums->hash == watch->last_hash) {
        *found = 0.0;
        *expected = ego_moved_m;
        return WATCH_FROZEN;
    }
    *found = contrast_of(sums);
    *expected = watch->contrast;
    if (time_s > FIRST_S && has_left(*found, *expected, CONTRAST_MIN)) {
        return WATCH_CONTRAST;
    }
    *found = sharpness_of(sums);
    *expected = watch->sharpness;
    return time_s > FIRST_S && has_left(*found, *expected, SHARPNESS_MIN) ? WATCH_SHARPNESS
                                                                          : WATCH_FINE;
}

enum watch_fault watch_picture(struct watch *watch, const uint8_t *rgb, size_t bytes, double time_s,
                               double ego_moved_m, double *found, double *expected)
{
    CHECK(watch->width > 0 && watch->height > 0);
    *found = (double)bytes;
    *expected = (double)watch->width * watch->height * 3.0;
    if (rgb == NULL) {
        return WATCH_MISSING;
    }
    if (*found != *expected) {
        return WATCH_SIZE;
    }
    struct watch_sums sums;
    watch_measure(rgb, watch->width, watch->height, &sums);
    enum watch_fault fault = judge(watch, &sums, time_s, ego_moved_m, found, expected);
    if (time_s <= FIRST_S && fault != WATCH_DARK && fault != WATCH_BRIGHT) {
        double count = ++watch->first_pictures;
        watch->contrast += (contrast_of(&sums) - watch->contrast) / count;
        watch->sharpness += (sharpness_of(&sums) - watch->sharpness) / count;
    }
    watch->pictures++;
    watch->last_hash = sums.hash;
    return fault;
}
