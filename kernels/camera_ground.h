/*
 * Ground: the lower half of a picture: what a camera sees of the map. What has edges (coverage,
 * material, paint) is sampled below the pixel, into weights; what varies slowly (noise, headlights,
 * wetness, haze) is computed once per pixel and applied to the weighted sum, which is the same
 * thing because all of it is affine in the colour.
 *
 * Positions run along a row in fixed point, so a sample costs shifts and additions, and the bits do
 * not depend on how a compiler orders them.
 */
#ifndef SWERVE_KERNELS_CAMERA_GROUND_H
#define SWERVE_KERNELS_CAMERA_GROUND_H

#include "base/dmath_inline.h"
#include "kernels/camera_tone.h"
#include "kernels/raster.h"

#include <stddef.h>

#define GROUND_MAX_M 400.0        /* ahead */
#define GROUND_PATCHES_PER_M 0.16 /* cells of noise */
#define GROUND_GRAIN_PER_M 2.1
#define GROUND_FAR_M 510.0 /* in any direction: the tiles below reach 512 m */

enum {
    /* Tiles around ego's own. */
    GROUND_REACH_TILES = 32,
    GROUND_TILES = 2 * GROUND_REACH_TILES + 1, /* per side */
    GROUND_TILE_UNKNOWN = 0xFFFF,
    GROUND_DEPTHS_MAX = 4,                                /* per canvas row */
    GROUND_LINES_MAX = PICTURE_SCALE * GROUND_DEPTHS_MAX, /* per image row */
    /* A position is in units of 2^-16 paint samples from the corner of the tiles. */
    GROUND_POSITION_BITS = 16,
    GROUND_TEXEL_BITS = GROUND_POSITION_BITS + 3,
    GROUND_TILE_BITS = GROUND_TEXEL_BITS + RASTER_TILE_BITS,
};

/* Part of the ground that is looked at. */
struct ground_map {
    const struct raster_map *map;
    const struct ground_place *place;
    float colours[MATERIAL_COUNT][4]; /* r, g, b, 1 */
};

/* One line of samples across the image at one depth. */
struct ground_line {
    int32_t x, y, dx, dy; /* centre of canvas column 0 and the step to the next column */
    int32_t offset;       /* canvas column 0..2 of a pixel where its coverage is sampled */
    float weight;         /* of this line in its pixels */
    float sharp;          /* slope of the road's edge over the blurred coverage */
    float blend;          /* 0: paint as it is .. 1: as coverage */
};

/* Weighted sums of one pixel; [3] is the sum of the weights. */
struct ground_sum {
    float off[4], on[4];
    float paint;
};

BOTH_FN struct rgb ground_material(int material)
{
    switch (material) {
    case MATERIAL_SIDEWALK:
        return rgb_make(0.62f, 0.60f, 0.57f);
    case MATERIAL_ROAD:
        return rgb_make(0.33f, 0.335f, 0.35f);
    case MATERIAL_SHOULDER:
        return rgb_make(0.38f, 0.38f, 0.385f);
    case MATERIAL_CYCLE:
        return rgb_make(0.50f, 0.30f, 0.25f);
    case MATERIAL_WATER:
        return rgb_make(0.26f, 0.36f, 0.45f);
    case MATERIAL_ICE:
        return rgb_make(0.68f, 0.77f, 0.83f);
    case MATERIAL_OIL:
        return rgb_make(0.11f, 0.10f, 0.13f);
    case MATERIAL_GRAVEL:
        return rgb_make(0.52f, 0.47f, 0.40f);
    default: /* MATERIAL_SNOW */
        return rgb_make(0.88f, 0.90f, 0.93f);
    }
}

/* Fills the row of ground_map.colours of a material. */
BOTH_FN void ground_colour(const struct ground_place *place, int material, float out[4])
{
    struct rgb colour = material == MATERIAL_NONE ? place->terrain : ground_material(material);
    out[0] = colour.r;
    out[1] = colour.g;
    out[2] = colour.b;
    out[3] = 1.0f;
}

/* ---- the map ---- */

/* `tiles` remembers tiles that were looked up, [GROUND_TILES][GROUND_TILES], GROUND_TILE_UNKNOWN at
 * first; NULL: nothing does. */
BOTH_FN size_t ground_tile_at(const struct ground_map *ground, uint16_t *tiles, int32_t x,
                              int32_t y)
{
    int32_t tile_x = x >> GROUND_TILE_BITS;
    int32_t tile_y = y >> GROUND_TILE_BITS;
    const struct ground_place *place = ground->place;
    if (tiles == NULL) {
        return raster_map_tile(ground->map, place->tile_x + tile_x, place->tile_y + tile_y);
    }
    uint16_t *tile = &tiles[tile_y * GROUND_TILES + tile_x];
    if (*tile == GROUND_TILE_UNKNOWN) {
        *tile =
            (uint16_t)raster_map_tile(ground->map, place->tile_x + tile_x, place->tile_y + tile_y);
    }
    return *tile;
}

/* Of the texel at a position in its tile. */
BOTH_FN size_t ground_texel_index(int32_t x, int32_t y)
{
    const int32_t mask = RASTER_TILE_TEXELS - 1;
    return (size_t)((y >> GROUND_TEXEL_BITS & mask) * RASTER_TILE_TEXELS +
                    (x >> GROUND_TEXEL_BITS & mask));
}

/* Interpolates both layers of a texel at once: drivable in the lower half of the result, marking in
 * the upper, in 1 / (255 * 65536). */
BOTH_FN uint64_t ground_interpolate(uint64_t texel, int32_t x, int32_t y)
{
    const uint64_t bytes = UINT64_C(0x00FF00FF00FF00FF);
    const uint64_t words = UINT64_C(0x0000FFFF0000FFFF);
    uint32_t tx = (uint32_t)x >> (GROUND_TEXEL_BITS - 8) & 255;
    uint32_t ty = (uint32_t)y >> (GROUND_TEXEL_BITS - 8) & 255;
    uint64_t across = (texel & bytes) * (256 - tx) + (texel >> 8 & bytes) * tx;
    return (across & words) * (256 - ty) + (across >> 16 & words) * ty;
}

BOTH_FN uint32_t ground_paint_at(const struct ground_map *ground, uint16_t *tiles, int32_t x,
                                 int32_t y)
{
    size_t tile = ground_tile_at(ground, tiles, x, y);
    uint32_t column = (uint32_t)x >> GROUND_POSITION_BITS & (RASTER_TILE_SAMPLES - 1);
    uint32_t row = (uint32_t)y >> GROUND_POSITION_BITS & (RASTER_TILE_SAMPLES - 1);
    return ground->map->details[tile].paint.rows[row][column / 64] >> (column & 63) & 1;
}

/* ---- samples ---- */

/* Share of paint in the part of a pixel that a line crosses, three canvas columns from (x, y). */
BOTH_FN float ground_paint(const struct ground_map *ground, uint16_t *tiles,
                           const struct ground_line *line, int32_t x, int32_t y, float marking)
{
    if (line->blend >= 1.0f) {
        return marking;
    }
    uint32_t count = 0;
    for (int32_t k = 0; k < PICTURE_SCALE; k++) {
        count += ground_paint_at(ground, tiles, x + k * line->dx, y + k * line->dy);
    }
    return (float)count * (1.0f / PICTURE_SCALE) * (1.0f - line->blend) + marking * line->blend;
}

/* Map at a sample. */
struct ground_cell {
    uint64_t texel; /* kernels/raster.h */
    int material;
};

/* The sample's coverage is that of the texel half a texel below it. */
BOTH_FN struct ground_cell ground_cell_at(const struct ground_map *ground, uint16_t *tiles,
                                          int32_t x, int32_t y)
{
    const int32_t half_texel = 1 << (GROUND_TEXEL_BITS - 1);
    int32_t low_x = x - half_texel;
    int32_t low_y = y - half_texel;
    struct ground_cell cell;
    cell.texel =
        ground->map->texels[ground_tile_at(ground, tiles, low_x, low_y) * RASTER_TILE_CELLS +
                            ground_texel_index(low_x, low_y)];
    cell.material = ground->map->details[ground_tile_at(ground, tiles, x, y)]
                        .material[ground_texel_index(x, y)];
    return cell;
}

/* Whether samples of a line look alike wherever they lie in the cell: one coverage, no paint. */
BOTH_FN bool ground_cell_is_flat(const struct ground_cell *cell, const struct ground_line *line)
{
    return cell->texel == 0 ||
           (line->blend <= 0.0f && cell->texel == (cell->texel & 255) * UINT64_C(0x01010101));
}

/* Weights of a sample, and the colours that they are of. */
struct ground_share {
    const float *off, *on; /* [4], rows of ground_map.colours */
    float off_weight, on_weight, paint;
};

BOTH_FN struct ground_share ground_share_make(const struct ground_map *ground,
                                              const struct ground_line *line, int material,
                                              float drivable, float cover)
{
    float road = (drivable - 0.5f) * line->sharp + 0.5f;
    road = road < 0.0f ? 0.0f : road > 1.0f ? 1.0f : road;
    road = material > MATERIAL_CYCLE ? 1.0f : road; /* a patch shows wherever it lies */
    bool pavement = material == MATERIAL_SIDEWALK || (ground->place->paved && drivable > 0.01f);
    struct ground_share share;
    share.off = ground->colours[pavement ? MATERIAL_SIDEWALK : MATERIAL_NONE];
    share.on = ground->colours[material > MATERIAL_SIDEWALK ? material : MATERIAL_ROAD];
    share.paint = cover * ground->place->paint * line->weight;
    float bare = line->weight - share.paint;
    share.on_weight = bare * road;
    share.off_weight = bare - share.on_weight;
    return share;
}

/* View of a line in the three canvas columns from (x, y) on; `cell` lies at its offset. */
BOTH_FN struct ground_share ground_share_at(const struct ground_map *ground, uint16_t *tiles,
                                            const struct ground_line *line, int32_t x, int32_t y,
                                            const struct ground_cell *cell)
{
    const int32_t half_texel = 1 << (GROUND_TEXEL_BITS - 1);
    const float unit = 1.0f / (255.0f * 65536.0f);
    float drivable = 0.0f;
    float cover = 0.0f;
    if (cell->texel != 0) {
        uint64_t both = ground_interpolate(cell->texel, x + line->offset * line->dx - half_texel,
                                           y + line->offset * line->dy - half_texel);
        drivable = (float)(int32_t)(uint32_t)both * unit;
        /* No coverage within half a metre: no paint in the pixel, as long as that is narrower. */
        if (cell->texel >> 32 != 0 || line->blend > 0.0f) {
            float marking = (float)(int32_t)(uint32_t)(both >> 32) * unit;
            cover = ground_paint(ground, tiles, line, x, y, marking);
        }
    }
    return ground_share_make(ground, line, cell->material, drivable, cover);
}

/* Adds what a line sees in image column `col`. */
BOTH_FN void ground_add(const struct ground_map *ground, uint16_t *tiles,
                        const struct ground_line *line, int32_t col, struct ground_sum *sum)
{
    int32_t x = line->x + col * PICTURE_SCALE * line->dx;
    int32_t y = line->y + col * PICTURE_SCALE * line->dy;
    const struct ground_cell cell =
        ground_cell_at(ground, tiles, x + line->offset * line->dx, y + line->offset * line->dy);
    const struct ground_share share = ground_share_at(ground, tiles, line, x, y, &cell);
    for (int k = 0; k < 4; k++) {
        sum->off[k] += share.off[k] * share.off_weight;
        sum->on[k] += share.on[k] * share.on_weight;
    }
    sum->paint += share.paint;
}

BOTH_FN int32_t ground_position(double metres)
{
    return (int32_t)(metres * ((1 << GROUND_POSITION_BITS) / RASTER_SAMPLE_M) + 0.5);
}

BOTH_FN int32_t ground_step(double metres)
{
    double step = metres * ((1 << GROUND_POSITION_BITS) / RASTER_SAMPLE_M);
    return (int32_t)(step < 0 ? step - 0.5 : step + 0.5);
}

/* Depth up to which a camera shows the map, given how far its image reaches to the side per metre
 * of depth. */
BOTH_FN double ground_max_m(double side)
{
    return both_min(GROUND_MAX_M, GROUND_FAR_M / sqrt(1.0 + side * side));
}

/* Number of depths of canvas row `r` of an image row: several where it spans many
 * metres. 1..GROUND_DEPTHS_MAX. */
BOTH_FN int32_t ground_depths(const struct camera_view *view, int32_t row, int32_t r)
{
    double v = row * PICTURE_SCALE + r + 0.5 - camera_view_middle(view).v;
    double scale = view->origin.z * view->focal;
    return (int32_t)both_clamp(scale / (v * v) + 0.5, 1.0, GROUND_DEPTHS_MAX);
}

/* Look of a line that is depth `k` of `depths` of canvas row `r` of a pixel whose canvas columns
 * are footprint_m wide. */
BOTH_FN void ground_line_look(struct ground_line *line, double footprint_m, int32_t r, int32_t k,
                              int32_t depths)
{
    /* Another column on every line: edges are smooth at any slope for a third of the cost. */
    line->offset = (r * 2 + k + 1) % PICTURE_SCALE;
    line->weight = 1.0f / (float)(PICTURE_SCALE * depths);
    /* Close by, the edge of the blurred coverage is made as sharp as a pixel. */
    line->sharp = (float)both_clamp(0.5 / (footprint_m * 2.0 + 0.05), 1.0, 5.0);
    line->blend = (float)both_clamp((footprint_m - 0.12) * 6.0, 0.0, 1.0);
}

/* Depth `k` of `depths` of canvas row `r` of an image row, starting at the left edge of the
 * image. */
BOTH_FN struct ground_line ground_line_make(const struct picture *picture, int32_t row, int32_t r,
                                            int32_t k, int32_t depths)
{
    const struct camera_view *view = &picture->view;
    double v = row * PICTURE_SCALE + r + 0.5 - camera_view_middle(view).v;
    double scale = view->origin.z * view->focal;
    double z = both_min(scale / (v + (k + 0.5) / depths - 0.5), view->ground_max_m);
    double footprint_m = z / view->focal;
    double right = (0.5 - camera_view_middle(view).u) * footprint_m;
    double x = view->origin.x + z * view->cos_yaw + right * view->sin_yaw;
    double y = view->origin.y + z * view->sin_yaw - right * view->cos_yaw;
    double dx = footprint_m * view->sin_yaw;
    double dy = -footprint_m * view->cos_yaw;
    double c = picture->ego_cos;
    double s = picture->ego_sin;
    struct ground_line line;
    line.x = ground_position(picture->ground.ego_x + x * c - y * s);
    line.y = ground_position(picture->ground.ego_y + x * s + y * c);
    line.dx = ground_step(dx * c - dy * s);
    line.dy = ground_step(dx * s + dy * c);
    ground_line_look(&line, footprint_m, r, k, depths);
    return line;
}

/* ---- tone ---- */

/* Smooth noise about 0, anchored in the world. */
struct ground_noise {
    int32_t cell_x, cell_y;
    float first_x, first_y; /* of ego, from the corner of that cell */
    float per_m;            /* cells a metre */
    float amplitude;
};

/* Values that the pixels of an image row share. */
struct ground_row {
    float ahead;  /* depth, m */
    float unit;   /* to the right per column and metre of depth */
    float middle; /* of the columns */
    float x, y;   /* of the middle, ego's frame */
    float sin_yaw, cos_yaw;
    float ego_cos, ego_sin;
    float headlights;
    float haze_per_m;
    float wet; /* share of the sky that is mirrored at most */
    struct ground_noise patches, grain;
    bool grained; /* otherwise the grain is too fine to be seen */
};

/* One pixel of it on the ground. */
struct ground_point {
    float x_m, y_m;         /* ego's frame */
    float world_x, world_y; /* from ego, world's axes */
    float distance_m;
};

/* Inputs of a pixel besides its sums. */
struct ground_tone {
    float patches, grain; /* noise about 0 */
    float lamp;
    float mirror; /* share of the sky that wet ground shows */
    float left;   /* share that haze leaves */
};

/* Of amplitude 1. */
BOTH_FN struct ground_noise ground_noise_make(const struct ground_place *place, double per_m)
{
    double corner_x = (place->tile_x * RASTER_TILE_M + place->ego_x) * per_m;
    double corner_y = (place->tile_y * RASTER_TILE_M + place->ego_y) * per_m;
    double cell_x = floor(corner_x);
    double cell_y = floor(corner_y);
    struct ground_noise noise;
    noise.cell_x = (int32_t)cell_x;
    noise.cell_y = (int32_t)cell_y;
    noise.first_x = (float)(corner_x - cell_x);
    noise.first_y = (float)(corner_y - cell_y);
    noise.per_m = (float)per_m;
    noise.amplitude = 1.0f;
    return noise;
}

/* Rest of noise when it is averaged over samples that lie `cells` apart. */
BOTH_FN float ground_noise_left(double cells, double least)
{
    return (float)both_max(1.0 - 0.42 * cells, least);
}

/* Share of the grain that a pixel with such canvas columns shows. */
BOTH_FN double ground_grain(double footprint_m)
{
    return both_clamp(1.2 - footprint_m * 9.0, 0.0, 1.0);
}

/* Amplitudes of both noises where canvas rows lie step_m apart. */
BOTH_FN float ground_patches_left(double step_m)
{
    return ground_noise_left(step_m * GROUND_PATCHES_PER_M, 0.35);
}

BOTH_FN float ground_grain_left(double step_m)
{
    return ground_noise_left(step_m * GROUND_GRAIN_PER_M, 0.58);
}

/* Fills what all pixels of the ground share, row or not: from ego_cos on, noise of amplitude 1. */
BOTH_FN void ground_row_begin(const struct picture *picture, struct ground_row *out)
{
    const struct mood *mood = &picture->mood;
    out->ego_cos = (float)picture->ego_cos;
    out->ego_sin = (float)picture->ego_sin;
    out->headlights = (float)mood->headlights * 1.25f;
    out->haze_per_m = (float)mood->haze_per_m;
    out->wet = (float)(0.42 * mood->wet);
    out->patches = ground_noise_make(&picture->ground, GROUND_PATCHES_PER_M);
    out->grain = ground_noise_make(&picture->ground, GROUND_GRAIN_PER_M);
    out->grained = true;
}

BOTH_FN struct ground_row ground_row_make(const struct picture *picture, int32_t row)
{
    const struct camera_view *view = &picture->view;
    double z = view->origin.z * view->focal / ((row + 0.5 - view->rows / 2.0) * PICTURE_SCALE);
    double footprint_m = z / view->focal;
    double step_m = z * footprint_m / view->origin.z; /* along the ground, per canvas row */
    double fine = ground_grain(footprint_m);
    struct ground_row out;
    ground_row_begin(picture, &out);
    out.ahead = (float)z;
    out.unit = (float)(PICTURE_SCALE / view->focal);
    out.middle = (float)view->cols / 2.0f;
    out.x = (float)(view->origin.x + z * view->cos_yaw);
    out.y = (float)(view->origin.y + z * view->sin_yaw);
    out.sin_yaw = (float)view->sin_yaw;
    out.cos_yaw = (float)view->cos_yaw;
    out.patches.amplitude = ground_patches_left(step_m);
    out.grain.amplitude = (float)fine * ground_grain_left(step_m);
    out.grained = fine > 0;
    return out;
}

BOTH_FN struct ground_point ground_point_at(const struct ground_row *row, int32_t col)
{
    float right = ((float)col + 0.5f - row->middle) * row->unit;
    float across = right * row->ahead;
    struct ground_point point;
    point.x_m = row->x + across * row->sin_yaw;
    point.y_m = row->y - across * row->cos_yaw;
    point.world_x = point.x_m * row->ego_cos - point.y_m * row->ego_sin;
    point.world_y = point.x_m * row->ego_sin + point.y_m * row->ego_cos;
    point.distance_m = row->ahead * sqrtf(1.0f + right * right);
    return point;
}

BOTH_FN float ground_noise_at(const struct ground_noise *noise, float world_x, float world_y)
{
    float x = noise->first_x + world_x * noise->per_m;
    float y = noise->first_y + world_y * noise->per_m;
    return (mood_noise(noise->cell_x, noise->cell_y, x, y) - 0.5f) * noise->amplitude;
}

BOTH_FN float ground_mirror_at(const struct ground_row *row, float distance_m)
{
    float grazing = distance_m / (distance_m + 9.0f);
    return row->wet * grazing * grazing;
}

/* One pixel: the sums under noise and snow, then light, wetness and haze. */
BOTH_FN struct rgb ground_finish(const struct mood *mood, struct rgb light,
                                 const struct ground_sum *sum, struct ground_tone tone)
{
    const struct rgb snow = ground_material(MATERIAL_SNOW);
    float off_snow = (float)mood->snow;
    float on_snow = off_snow * (0.45f + 0.5f * tone.patches);
    float off_gain = (1.0f + 0.16f * tone.patches + 0.14f * tone.grain) * (1.0f - off_snow);
    float on_gain = (1.0f + 0.07f * tone.patches + 0.06f * tone.grain) * (1.0f - on_snow);
    float white = sum->off[3] * off_snow + sum->on[3] * on_snow;
    struct rgb colour = rgb_make(sum->off[0] * off_gain + sum->on[0] * on_gain + snow.r * white,
                                 sum->off[1] * off_gain + sum->on[1] * on_gain + snow.g * white,
                                 sum->off[2] * off_gain + sum->on[2] * on_gain + snow.b * white);
    light = rgb_add(light, rgb_times(rgb_make(0.95f, 0.9f, 0.78f), tone.lamp));
    /* Paint under headlights is whiter than white; it must not spill into its pixel's rest. */
    struct rgb paint = rgb_make(0.93f * light.r, 0.93f * light.g, 0.90f * light.b);
    paint.r = paint.r < 1.0f ? paint.r : 1.0f;
    paint.g = paint.g < 1.0f ? paint.g : 1.0f;
    paint.b = paint.b < 1.0f ? paint.b : 1.0f;
    colour = rgb_add(rgb_scale(colour, light), rgb_times(paint, sum->paint));
    /* Wet ground is darker and mirrors the sky at grazing angles. */
    colour = rgb_times(colour, 1.0f - 0.28f * (float)mood->wet);
    colour = rgb_mix(colour, mood->horizon, tone.mirror);
    float grey = colour.r * 0.3f + colour.g * 0.55f + colour.b * 0.15f;
    colour = rgb_mix(colour, rgb_make(grey, grey, grey), (float)mood->grey);
    return rgb_mix(mood->haze, colour, tone.left);
}

#endif
