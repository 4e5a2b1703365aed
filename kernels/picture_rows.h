/*
 * Rows of a picture: the loops over the columns of a tile that draw sky and ground, one thing at a
 * time, so that compilers take many columns at once. The formulas are in kernels/camera_*.h.
 *
 * picture_rows.c, picture_rays.c and picture_scan.c are compiled plain and once per instruction
 * set, from the same lines. Nothing is contracted or reordered, so every variant gives the same
 * bits (tests/engine/test_raster_rays.c compares them). Arrays do not overlap.
 */
#ifndef SWERVE_KERNELS_PICTURE_ROWS_H
#define SWERVE_KERNELS_PICTURE_ROWS_H

#include "kernels/camera_ground.h"
#include "kernels/camera_sky.h"

#include <stdint.h>

/* Colours of the pixels of a row of a tile. */
struct rgb_row {
    float r[PICTURE_TILE_COLS], g[PICTURE_TILE_COLS], b[PICTURE_TILE_COLS];
};

/* struct ground_sum of such pixels. */
struct ground_sums {
    float off[4][PICTURE_TILE_COLS], on[4][PICTURE_TILE_COLS];
    float paint[PICTURE_TILE_COLS];
};

/* Their middles on the ground, ego's frame, and the amplitudes of both noises there. */
struct ground_places {
    float x_m[PICTURE_TILE_COLS], y_m[PICTURE_TILE_COLS], distance_m[PICTURE_TILE_COLS];
    float patches[PICTURE_TILE_COLS], grain[PICTURE_TILE_COLS];
    bool grained; /* otherwise no grain is seen */
};

/* Sky over a row: `up`, canvas rows over the horizon, by column; `least`: the lowest slope. */
struct sky_row {
    const struct sky_columns *columns;
    const float *up; /* [cols] */
    float least;
    float skyline_max;
};

/* Direction of a pixel of a camera that need not look level: of length 1, ego's frame; all 0 where
 * it sees nothing. */
struct ray {
    float x, y, z;
};

enum {
    RAY_COLS = PICTURE_TILE_COLS + 2, /* of a tile and one to each side */
    SKY_RING = 8192,                  /* azimuths */
};

/* Ends of the directions of a row of a tile. */
struct ray_row {
    float slope[RAY_COLS];              /* up per metre to the side */
    float x_m[RAY_COLS], y_m[RAY_COLS]; /* on the ground, ego's frame; maybe infinite above it */
    float distance_m[RAY_COLS];         /* to the side */
    float cosine[RAY_COLS], sine[RAY_COLS]; /* of the azimuth in ego's frame */
    float hits[RAY_COLS];                   /* 1: it meets the ground, else 0 */
};

/* Sky by azimuth of the world, from -pi on. */
struct sky_ring {
    float skyline[SKY_RING], halo[SKY_RING];
};

/* Pixels of a tile's row along rays: the positions that their samples lie around. */
struct ray_spots {
    int32_t x[PICTURE_TILE_COLS], y[PICTURE_TILE_COLS]; /* kernels/camera_ground.h, of the middle */
    int32_t right_x[PICTURE_TILE_COLS], right_y[PICTURE_TILE_COLS];  /* to the next canvas column */
    int32_t down_x[PICTURE_TILE_COLS], down_y[PICTURE_TILE_COLS];    /* to the next canvas row */
    float footprint_m[PICTURE_TILE_COLS], step_m[PICTURE_TILE_COLS]; /* lengths of these steps */
};

/* A box in its own axes, from its middle: where the lidar is, half its sides, and the two axes that
 * the directions of an azimuth's beams are sums of. */
struct slabs {
    float at[3], half[3];
    float level[3], up[3];
};

struct picture_kernels {
    /* Columns 0..cols-1 of a row of the sky. */
    void (*sky)(const struct picture *picture, const struct sky_row *sky, int32_t cols,
                struct rgb_row *out);
    /* Adds what a line sees in columns first_col..first_col+cols-1 to sums 0..cols-1. */
    void (*sum)(const struct ground_map *ground, uint16_t *tiles, const struct ground_line *line,
                int32_t first_col, int32_t cols, struct ground_sums *sums);
    /* The places of these columns in a row of a camera that looks level. */
    void (*places)(const struct ground_row *row, int32_t first_col, int32_t cols,
                   struct ground_places *out);
    /* Colours from sums and places. */
    void (*ground)(const struct picture *picture, const struct ground_row *row,
                   const struct ground_sums *sums, const struct ground_places *places, int32_t cols,
                   struct rgb_row *out);
    /* out[cols][3], RGB. */
    void (*bytes)(const struct rgb_row *row, int32_t cols, uint8_t *out);

    /* rays[RAY_COLS], from the column before the tile on; `origin` of the camera in ego's frame. */
    void (*look)(const struct ray *rays, const float origin[3], struct ray_row *out);
    /* Row `own` between its neighbours: places and spots of columns 0..cols-1. */
    void (*spots)(const struct picture *picture, const struct ray_row *above,
                  const struct ray_row *own, const struct ray_row *below, int32_t cols,
                  struct ground_places *places, struct ray_spots *spots);
    /* The same for the sky: its columns and `up`. Returns the lowest slope. */
    float (*sky_columns)(const struct picture *picture, const struct sky_ring *ring,
                         const struct ray_row *above, const struct ray_row *own,
                         const struct ray_row *below, int32_t cols, struct sky_columns *columns,
                         float *up);

    /* Beams [count] of a lidar whose directions are cosine * level + sine * up, of length 1: where
     * one meets the box nearer than range_m, that becomes the range and `id` the hit. */
    void (*beams)(const struct slabs *slabs, const float *cosine, const float *sine, int32_t count,
                  int32_t id, float *range_m, int32_t *hit);
};

/* `flags`: of kernels/cpu.h. */
void picture_kernels_init(struct picture_kernels *kernels, uint32_t flags);

#if defined(__AVX512F__)
#define PICTURE_NAME(name) picture_##name##_avx512
#elif defined(__AVX2__)
#define PICTURE_NAME(name) picture_##name##_avx2
#else
#define PICTURE_NAME(name) picture_##name##_ref
#endif

/* Fill the table's members, each from its own file. */
void picture_rows_ref(struct picture_kernels *kernels);
void picture_rays_ref(struct picture_kernels *kernels);
void picture_scan_ref(struct picture_kernels *kernels);
void picture_rows_avx2(struct picture_kernels *kernels);
void picture_rays_avx2(struct picture_kernels *kernels);
void picture_scan_avx2(struct picture_kernels *kernels);
void picture_rows_avx512(struct picture_kernels *kernels);
void picture_rays_avx512(struct picture_kernels *kernels);
void picture_scan_avx512(struct picture_kernels *kernels);

#endif
