/*
 * Watch: one pass over a picture gives the sums that all verdicts come from.
 */
#include "engine/rigs/watch.h"

#include "base/check.h"

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

static int32_t brightness_of(const uint8_t *pixel)
{
    return (2 * pixel[0] + 5 * pixel[1] + pixel[2]) / 8;
}

static uint64_t step_between(int32_t a, int32_t b)
{
    return (uint64_t)(a < b ? b - a : a - b);
}

void watch_measure(const uint8_t *rgb, int32_t width, int32_t height, struct watch_sums *out)
{
    const size_t line = (size_t)width * 3;
    struct watch_sums sums = {.pixels = (uint64_t)width * (uint64_t)height,
                              .hash = UINT64_C(14695981039346656037)};
    for (int32_t row = 0; row < height; row++) {
        const uint8_t *pixel = rgb + (size_t)row * line;
        for (int32_t col = 0; col < width; col++, pixel += 3) {
            int32_t here = brightness_of(pixel);
            sums.sum += (uint64_t)here;
            sums.squares += (uint64_t)(here * here);
            sums.dark += here <= 3;
            sums.bright += here >= 252;
            if (col + 1 < width) {
                sums.steps += step_between(here, brightness_of(pixel + 3));
            }
            if (row + 1 < height) {
                sums.steps += step_between(here, brightness_of(pixel + line));
            }
            uint64_t word = (uint64_t)pixel[0] | (uint64_t)pixel[1] << 8 | (uint64_t)pixel[2] << 16;
            sums.hash =
                (sums.hash ^ word) * UINT64_C(1099511628211); /* FNV-1a, a pixel at a time */
        }
    }
    *out = sums;
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
