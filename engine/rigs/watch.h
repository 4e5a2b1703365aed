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
    WATCH_FROZEN,    /* the same bytes as before, though ego moved */
    WATCH_DARK,      /* nearly all of it is black */
    WATCH_BRIGHT,    /* nearly all of it is white */
    WATCH_CONTRAST,  /* the spread of brightness fell under a fifth of the first second's, or rose
                        over five times */
    WATCH_SHARPNESS, /* the same of differences between neighbours */
    WATCH_FAULT_COUNT
};
extern const char *const watch_fault_names[WATCH_FAULT_COUNT];

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

/* One camera's pictures of a drive. Begins zeroed, with the size. */
struct watch {
    int32_t width, height;
    uint32_t pictures, first_pictures; /* so far; of the first second */
    uint64_t last_hash;
    /* Means of the first second's. */
    double contrast, sharpness; /* variance of brightness; mean step */
};

/* The verdict on the picture of a time after the drive's start, and what was found and is expected,
 * in the fault's own unit (bytes; share of pixels; metres of ego; variance; mean step). `rgb` NULL:
 * none came. `ego_moved_m`: since the picture before. Pictures of the first second that are neither
 * dark nor bright are what later ones are judged by. */
enum watch_fault watch_picture(struct watch *watch, const uint8_t *rgb, size_t bytes, double time_s,
                               double ego_moved_m, double *found, double *expected);

#endif
