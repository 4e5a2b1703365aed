/*
 * Watch: one pass over a picture gives the sums that all verdicts come from.
 */
#include "engine/rigs/watch.h"

#include "base/check.h"
#include "schemas/rig/rig.h"

#include <stdbool.h>
#include <string.h>

#define FIRST_S 1.0
#define RATIO_SHOWN_MAX 1000.0
#define MOVED_M 0.5 /* ego, while a picture stays the same: less need not show */
/* Below these a first second says nothing: fog, or a wall. */
#define CONTRAST_MIN 20.0
#define SHARPNESS_MIN 0.2

/* Repeats in a row: a view to the side of a plain world can be the same by chance, once. */
enum { FROZEN_PICTURES = 3 };

const char *const watch_fault_names[WATCH_FAULT_COUNT] = {
    "fine", "missing", "size", "frozen", "dark", "bright", "contrast", "sharpness",
};

const struct watch_bound_info watch_bounds[WATCH_MEASURE_COUNT] = {
    [WATCH_DARK_SHARE] = {"dark", WATCH_DARK, 0.98, 0.5, 0.998, 0.05},
    [WATCH_BRIGHT_SHARE] = {"bright", WATCH_BRIGHT, 0.98, 0.5, 0.998, 0.05},
    [WATCH_CONTRAST_RATIO] = {"contrast", WATCH_CONTRAST, 5.0, 1.5, 25.0, 0.5},
    [WATCH_SHARPNESS_RATIO] = {"sharpness", WATCH_SHARPNESS, 5.0, 1.5, 25.0, 0.5},
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

/* Distance of a value from the first second's, which must have been worth something. */
static double ratio_to(double value, double first, double least)
{
    if (first < least) {
        return 1.0;
    }
    const double ratio = value < first ? first / (value > 0.0 ? value : 1e-9) : value / first;
    return ratio < RATIO_SHOWN_MAX ? ratio : RATIO_SHOWN_MAX;
}

static void measure(const struct watch_camera *watch, const struct watch_sums *sums, double time_s,
                    double out[WATCH_MEASURE_COUNT])
{
    const bool judged = time_s > FIRST_S;
    out[WATCH_DARK_SHARE] = (double)sums->dark / (double)sums->pixels;
    out[WATCH_BRIGHT_SHARE] = (double)sums->bright / (double)sums->pixels;
    out[WATCH_CONTRAST_RATIO] =
        judged ? ratio_to(contrast_of(sums), watch->contrast, CONTRAST_MIN) : 1.0;
    out[WATCH_SHARPNESS_RATIO] =
        judged ? ratio_to(sharpness_of(sums), watch->sharpness, SHARPNESS_MIN) : 1.0;
}

/* Follows how long the picture stays the same; whether that is too long. */
static bool stands(struct watch_camera *watch, uint64_t hash, double ego_moved_m)
{
    const bool same = watch->pictures > 0 && hash == watch->last_hash;
    watch->same = same ? watch->same + 1 : 0;
    watch->still_m = same ? watch->still_m + ego_moved_m : 0.0;
    watch->last_hash = hash;
    watch->pictures++;
    return watch->same >= FROZEN_PICTURES && watch->still_m > MOVED_M;
}

enum watch_fault watch_picture(struct watch_camera *watch, const uint8_t *rgb, size_t bytes,
                               double time_s, double ego_moved_m,
                               const double bound[WATCH_MEASURE_COUNT],
                               double measures[WATCH_MEASURE_COUNT], double *found,
                               double *expected)
{
    double own[WATCH_MEASURE_COUNT];
    struct watch_sums sums;
    CHECK(watch->width > 0 && watch->height > 0);
    *found = (double)bytes;
    *expected = (double)watch->width * watch->height * 3.0;
    if (rgb == NULL) {
        return WATCH_MISSING;
    }
    if (*found != *expected) {
        return WATCH_SIZE;
    }
    watch_measure(rgb, watch->width, watch->height, &sums);
    measure(watch, &sums, time_s, own);
    const bool frozen = stands(watch, sums.hash, ego_moved_m);
    if (measures != NULL) {
        memcpy(measures, own, sizeof own);
    }
    for (int i = 0; i < WATCH_MEASURE_COUNT; i++) {
        *found = own[i];
        *expected = bound != NULL ? bound[i] : watch_bounds[i].usual;
        if (own[i] > *expected) {
            return watch_bounds[i].fault;
        }
    }
    if (time_s <= FIRST_S) {
        double count = ++watch->first_pictures;
        watch->contrast += (contrast_of(&sums) - watch->contrast) / count;
        watch->sharpness += (sharpness_of(&sums) - watch->sharpness) / count;
    }
    *found = watch->still_m;
    *expected = MOVED_M;
    return frozen ? WATCH_FROZEN : WATCH_FINE;
}

void watch_tally_add(struct watch_tally *tally, const double measures[WATCH_MEASURE_COUNT])
{
    tally->pictures++;
    for (int i = 0; i < WATCH_MEASURE_COUNT; i++) {
        const double value = measures[i];
        const bool first = tally->pictures == 1;
        tally->least[i] = first || value < tally->least[i] ? value : tally->least[i];
        tally->most[i] = first || value > tally->most[i] ? value : tally->most[i];
        tally->mean[i] += (value - tally->mean[i]) / (double)tally->pictures;
    }
}
