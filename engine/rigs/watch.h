/*
 * Watch: measures of the pictures that a world makes for a camera of any size, in whole numbers, so
 * that the same pictures give the same verdicts everywhere. A picture is judged against its own
 * camera: what its first second looked like, and the picture before. Pure.
 */
#ifndef SWERVE_ENGINE_RIGS_WATCH_H
#define SWERVE_ENGINE_RIGS_WATCH_H

#include <stddef.h>
#include <stdint.h>

enum watch_fault {
    WATCH_FINE = 0,
    WATCH_MISSING,   /* no picture came */
    WATCH_SIZE,      /* not the bytes of width x height x 3 */
    WATCH_FROZEN,    /* the same bytes, picture after picture, though ego moved on */
    WATCH_DARK,      /* nearly all of it is black */
    WATCH_BRIGHT,    /* nearly all of it is white */
    WATCH_CONTRAST,  /* the spread of brightness is far from the first second's */
    WATCH_SHARPNESS, /* the same of differences between neighbours */
    WATCH_FAULT_COUNT
};
extern const char *const watch_fault_names[WATCH_FAULT_COUNT];

/* Measures of pictures that have a bound, each the larger the worse. */
enum watch_measure {
    WATCH_DARK_SHARE, /* of the pixels, as the next one */
    WATCH_BRIGHT_SHARE,
    WATCH_CONTRAST_RATIO, /* to the first second's, or its inverse, the larger one: 1 or more; 1
                             within that second, and where it says nothing (fog, a wall) */
    WATCH_SHARPNESS_RATIO,
    WATCH_MEASURE_COUNT
};

/* Bounds: a measure beyond its own is a fault. Those that a world has for itself lie within least
 * and most, so that a fault that must never pass does not become healthy by calibration. */
struct watch_bound_info {
    const char *name; /* in files */
    enum watch_fault fault;
    double usual, least, most;
    double slack; /* that calibration leaves beyond the worst healthy picture, at least */
};
extern const struct watch_bound_info watch_bounds[WATCH_MEASURE_COUNT];

/* Sums over the pixels of a picture; brightness is (2 r + 5 g + b) / 8, 0..255. */
struct watch_sums {
    uint64_t pixels;
    uint64_t sum, squares;
    uint64_t steps;        /* of |difference| to the neighbours right and below */
    uint64_t dark, bright; /* pixels of 0..3, of 252..255 */
    uint64_t hash;         /* of the bytes */
};

/* rgb[height][width][3]; both sides 1..4096. */
void watch_measure(const uint8_t *rgb, int32_t width, int32_t height, struct watch_sums *out);

/* A picture rgb[height][width][3] in another size, out[rows][cols][3]: means of the pixels that
 * fall into each, at least one. */
void watch_shrink(const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t cols, uint32_t rows,
                  uint8_t *out);

/* Measures of many pictures, of healthy worlds. Begins zeroed. */
struct watch_tally {
    uint64_t pictures;
    double least[WATCH_MEASURE_COUNT], most[WATCH_MEASURE_COUNT], mean[WATCH_MEASURE_COUNT];
};
void watch_tally_add(struct watch_tally *tally, const double measures[WATCH_MEASURE_COUNT]);

/* One camera's pictures of a drive. Begins zeroed, with the size. */
struct watch_camera {
    int32_t width, height;
    uint32_t pictures, first_pictures; /* so far; of the first second */
    uint64_t last_hash;
    uint32_t same;  /* pictures in a row that repeat the one before .. */
    double still_m; /* .. while ego moved so far */
    /* Means of the first second's. */
    double contrast, sharpness; /* variance of brightness; mean step */
};

/* The verdict on the picture of a time after the drive's start, and what was found and is expected,
 * in the fault's own unit (bytes; metres of ego; the measure). `rgb` NULL: none came.
 * `ego_moved_m`: since the picture before. `bound`: of the measures, NULL: the usual ones.
 * `measures`, unless NULL, receives them; not where a picture is missing or of another size.
 * Pictures of the first second that are neither dark nor bright are what later ones are judged by.
 */
enum watch_fault watch_picture(struct watch_camera *watch, const uint8_t *rgb, size_t bytes,
                               double time_s, double ego_moved_m,
                               const double bound[WATCH_MEASURE_COUNT],
                               double measures[WATCH_MEASURE_COUNT], double *found,
                               double *expected);

#endif
