/*
 * Ground: what cameras see of the map, at image resolution. What has edges (coverage, material,
 * paint) is sampled below the pixel, into weights; what varies slowly (noise, headlights, wetness,
 * haze) is computed once per pixel and applied to the weighted sum, which is the same thing because
 * all of it is affine in the colour.
 *
 * Positions run along a row in fixed point, so a sample costs shifts and additions, and the bits do
 * not depend on how a compiler orders them.
 */
#include "base/dmath.h"
#include "engine/raster_camera.h"

#include <math.h>
#include <stddef.h>

#define GROUND_MAX_M 400.0

enum {
    /* Tiles around ego's own; 400 m ahead at the image's edge are 505 m away. */
    GROUND_REACH_TILES = 32,
    GROUND_TILES = 2 * GROUND_REACH_TILES + 1, /* per side */
    GROUND_TILE_UNKNOWN = 0xFFFF,
    GROUND_DEPTHS_MAX = 4, /* per canvas row */
    /* A position is in units of 2^-16 paint samples from the corner of the tiles. */
    POSITION_BITS = 16,
    POSITION_TEXEL_BITS = POSITION_BITS + 3,
    POSITION_TILE_BITS = POSITION_TEXEL_BITS + RASTER_TILE_BITS,
};

_Static_assert((int)RASTER_TILES_MAX < (int)GROUND_TILE_UNKNOWN, "tile numbers fit the grid");
_Static_assert((int)RASTER_TILE_SAMPLES == 1 << (POSITION_TILE_BITS - POSITION_BITS), "tile size");

/* The map around ego. */
struct ground {
    const struct painter *painter;
    const struct raster_layers *layers;
    int32_t tile_x, tile_y;           /* of the grid's corner */
    double ego_x, ego_y;              /* from that corner */
    bool paved;                       /* a town: what is not road is pavement */
    float paint;                      /* share of it that snow leaves bare */
    float colours[MATERIAL_COUNT][4]; /* r, g, b, 1 */
    uint16_t tiles[GROUND_TILES * GROUND_TILES];
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

/* What a row's pixels are made from besides their sums. */
struct ground_tone {
    float patches[CAMERA_COLS], grain[CAMERA_COLS]; /* noise about 0 */
    float lamp[CAMERA_COLS];
    float mirror[CAMERA_COLS]; /* share of the sky that wet ground shows */
    float left[CAMERA_COLS];   /* share that haze leaves */
};

static const struct rgb material_colours[MATERIAL_COUNT] = {
    [MATERIAL_SIDEWALK] = {0.62f, 0.60f, 0.57f},  [MATERIAL_ROAD] = {0.33f, 0.335f, 0.35f},
    [MATERIAL_SHOULDER] = {0.38f, 0.38f, 0.385f}, [MATERIAL_CYCLE] = {0.50f, 0.30f, 0.25f},
    [MATERIAL_WATER] = {0.26f, 0.36f, 0.45f},     [MATERIAL_ICE] = {0.68f, 0.77f, 0.83f},
    [MATERIAL_OIL] = {0.11f, 0.10f, 0.13f},       [MATERIAL_GRAVEL] = {0.52f, 0.47f, 0.40f},
    [MATERIAL_SNOW] = {0.88f, 0.90f, 0.93f},
};

/* ---- the map ---- */

static uint32_t tile_at(struct ground *ground, int32_t x, int32_t y)
{
    int32_t tile_x = x >> POSITION_TILE_BITS;
    int32_t tile_y = y >> POSITION_TILE_BITS;
    uint16_t *tile = &ground->tiles[tile_y * GROUND_TILES + tile_x];
    if (*tile == GROUND_TILE_UNKNOWN) {
        *tile = (uint16_t)raster_layers_tile(ground->layers, ground->tile_x + tile_x,
                                             ground->tile_y + tile_y);
    }
    return *tile;
}

static uint64_t texel_at(struct ground *ground, int32_t x, int32_t y)
{
    const int32_t mask = RASTER_TILE_TEXELS - 1;
    size_t tile = tile_at(ground, x, y);
    int32_t column = x >> POSITION_TEXEL_BITS & mask;
    int32_t row = y >> POSITION_TEXEL_BITS & mask;
    return ground->layers->map
        .texels[tile * RASTER_TILE_CELLS + (size_t)(row * RASTER_TILE_TEXELS + column)];
}

/* Interpolates both layers of a texel at once: drivable in the lower half of the result, marking in
 * the upper, in 1 / (255 * 65536). */
static uint64_t interpolate(uint64_t texel, int32_t x, int32_t y)
{
    const uint64_t bytes = UINT64_C(0x00FF00FF00FF00FF);
    const uint64_t words = UINT64_C(0x0000FFFF0000FFFF);
    uint32_t tx = (uint32_t)x >> (POSITION_TEXEL_BITS - 8) & 255;
    uint32_t ty = (uint32_t)y >> (POSITION_TEXEL_BITS - 8) & 255;
    uint64_t across = (texel & bytes) * (256 - tx) + (texel >> 8 & bytes) * tx;
    return (across & words) * (256 - ty) + (across >> 16 & words) * ty;
}

static enum raster_material material_at(struct ground *ground, int32_t x, int32_t y)
{
    const int32_t mask = RASTER_TILE_TEXELS - 1;
    size_t tile = tile_at(ground, x, y);
    return ground->layers->map.details[tile]
        .material[(y >> POSITION_TEXEL_BITS & mask) * RASTER_TILE_TEXELS +
                  (x >> POSITION_TEXEL_BITS & mask)];
}

static uint32_t paint_at(struct ground *ground, int32_t x, int32_t y)
{
    size_t tile = tile_at(ground, x, y);
    uint32_t column = (uint32_t)x >> POSITION_BITS & (RASTER_TILE_SAMPLES - 1);
    uint32_t row = (uint32_t)y >> POSITION_BITS & (RASTER_TILE_SAMPLES - 1);
    return ground->layers->map.details[tile].paint.rows[row][column / 64] >> (column & 63) & 1;
}

/* ---- samples ---- */

/* Share of paint in the part of a pixel that a line crosses, three canvas columns from (x, y). */
static float paint_cover(struct ground *ground, const struct ground_line *line, int32_t x,
                         int32_t y, float marking)
{
    if (line->blend >= 1.0f) {
        return marking;
    }
    uint32_t count = 0;
    for (int32_t k = 0; k < CAMERA_SCALE; k++) {
        count += paint_at(ground, x + k * line->dx, y + k * line->dy);
    }
    return (float)count * (1.0f / CAMERA_SCALE) * (1.0f - line->blend) + marking * line->blend;
}

static void add_line(struct ground *ground, const struct ground_line *line,
                     struct ground_sum sums[CAMERA_COLS])
{
    const int32_t half_texel = 1 << (POSITION_TEXEL_BITS - 1);
    const float unit = 1.0f / (255.0f * 65536.0f);
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        struct ground_sum *sum = &sums[col];
        int32_t first_x = line->x + col * CAMERA_SCALE * line->dx;
        int32_t first_y = line->y + col * CAMERA_SCALE * line->dy;
        int32_t x = first_x + line->offset * line->dx;
        int32_t y = first_y + line->offset * line->dy;
        uint64_t texel = texel_at(ground, x - half_texel, y - half_texel);
        enum raster_material material = material_at(ground, x, y);
        float drivable = 0.0f;
        float cover = 0.0f;
        if (texel != 0) {
            uint64_t both = interpolate(texel, x - half_texel, y - half_texel);
            drivable = (float)(int32_t)(uint32_t)both * unit;
            /* No coverage within half a metre: no paint in the pixel, as long as that is narrower.
             */
            if (texel >> 32 != 0 || line->blend > 0.0f) {
                float marking = (float)(int32_t)(uint32_t)(both >> 32) * unit;
                cover = paint_cover(ground, line, first_x, first_y, marking);
            }
        }
        float road = (drivable - 0.5f) * line->sharp + 0.5f;
        road = road < 0.0f ? 0.0f : road > 1.0f ? 1.0f : road;
        road = material > MATERIAL_CYCLE ? 1.0f : road; /* a patch shows wherever it lies */
        bool pavement = material == MATERIAL_SIDEWALK || (ground->paved && drivable > 0.01f);
        const float *off = ground->colours[pavement ? MATERIAL_SIDEWALK : MATERIAL_NONE];
        const float *on = ground->colours[material > MATERIAL_SIDEWALK ? material : MATERIAL_ROAD];
        float paint = cover * ground->paint * line->weight;
        float bare = line->weight - paint;
        float on_weight = bare * road;
        float off_weight = bare - on_weight;
        for (int k = 0; k < 4; k++) {
            sum->off[k] += off[k] * off_weight;
            sum->on[k] += on[k] * on_weight;
        }
        sum->paint += paint;
    }
}

static int32_t to_position(double metres)
{
    return (int32_t)(metres * ((1 << POSITION_BITS) / RASTER_SAMPLE_M) + 0.5);
}

static int32_t to_step(double metres)
{
    double step = metres * ((1 << POSITION_BITS) / RASTER_SAMPLE_M);
    return (int32_t)(step < 0 ? step - 0.5 : step + 0.5);
}

/* A line at depth z of the view, starting at the left edge of the image. */
static struct ground_line line_make(const struct ground *ground, double z)
{
    const struct painter *painter = ground->painter;
    const struct camera_view *view = &painter->view;
    double footprint_m = z / view->focal;
    double right = (0.5 - CANVAS_COLS / 2.0) * footprint_m;
    double x = view->origin.x + z * view->cos_yaw + right * view->sin_yaw;
    double y = view->origin.y + z * view->sin_yaw - right * view->cos_yaw;
    double dx = footprint_m * view->sin_yaw;
    double dy = -footprint_m * view->cos_yaw;
    double c = painter->ego_cos;
    double s = painter->ego_sin;
    return (struct ground_line){
        .x = to_position(ground->ego_x + x * c - y * s),
        .y = to_position(ground->ego_y + x * s + y * c),
        .dx = to_step(dx * c - dy * s),
        .dy = to_step(dx * s + dy * c),
        /* Close by, the edge of the blurred coverage is made as sharp as a pixel. */
        .sharp = (float)dmath_clamp(0.5 / (footprint_m * 2.0 + 0.05), 1.0, 5.0),
        .blend = (float)dmath_clamp((footprint_m - 0.12) * 6.0, 0.0, 1.0),
    };
}

/* All samples of one image row, several depths where a canvas row spans many metres. */
static void sum_row(struct ground *ground, int32_t row, struct ground_sum sums[CAMERA_COLS])
{
    const struct camera_view *view = &ground->painter->view;
    double scale = view->origin.z * view->focal;
    for (int32_t r = 0; r < CAMERA_SCALE; r++) {
        double v = row * CAMERA_SCALE + r + 0.5 - CANVAS_ROWS / 2.0;
        int32_t depths = (int32_t)dmath_clamp(scale / (v * v) + 0.5, 1.0, GROUND_DEPTHS_MAX);
        for (int32_t k = 0; k < depths; k++) {
            double z = dmath_min(scale / (v + (k + 0.5) / depths - 0.5), GROUND_MAX_M);
            struct ground_line line = line_make(ground, z);
            line.weight = 1.0f / (float)(CAMERA_SCALE * depths);
            /* Another column on every line: edges are smooth at any slope for a third of the cost.
             */
            line.offset = (r * 2 + k + 1) % CAMERA_SCALE;
            add_line(ground, &line, sums);
        }
    }
}

/* ---- tone ---- */

/* Smooth noise about 0 with `per_m` cells a metre, anchored in the world. */
static void noise_row(const struct ground *ground, double per_m, const float x_m[CAMERA_COLS],
                      const float y_m[CAMERA_COLS], float amplitude, float out[CAMERA_COLS])
{
    double corner_x = (ground->tile_x * RASTER_TILE_M + ground->ego_x) * per_m;
    double corner_y = (ground->tile_y * RASTER_TILE_M + ground->ego_y) * per_m;
    double cell_x = floor(corner_x);
    double cell_y = floor(corner_y);
    float first_x = (float)(corner_x - cell_x);
    float first_y = (float)(corner_y - cell_y);
    float x[CAMERA_COLS];
    float y[CAMERA_COLS];
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        x[col] = first_x + x_m[col] * (float)per_m;
        y[col] = first_y + y_m[col] * (float)per_m;
    }
    mood_noise_row((int32_t)cell_x, (int32_t)cell_y, x, y, out);
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        out[col] = (out[col] - 0.5f) * amplitude;
    }
}

/* What is left of noise when it is averaged over samples that lie `cells` apart. */
static float noise_amplitude(double cells, double least)
{
    return (float)dmath_max(1.0 - 0.42 * cells, least);
}

static void tone_make(const struct ground *ground, double z, struct ground_tone *tone)
{
    const struct painter *painter = ground->painter;
    const struct camera_view *view = &painter->view;
    const struct mood *mood = &painter->mood;
    double footprint_m = z / view->focal;
    double step_m = z * footprint_m / view->origin.z; /* along the ground, per canvas row */
    float x_m[CAMERA_COLS], y_m[CAMERA_COLS];         /* ego's frame */
    float world_x[CAMERA_COLS], world_y[CAMERA_COLS];
    float distance_m[CAMERA_COLS];
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        float right =
            ((float)col + 0.5f - CAMERA_COLS / 2.0f) * (float)(CAMERA_SCALE / view->focal);
        float across = right * (float)z;
        x_m[col] = (float)(view->origin.x + z * view->cos_yaw) + across * (float)view->sin_yaw;
        y_m[col] = (float)(view->origin.y + z * view->sin_yaw) - across * (float)view->cos_yaw;
        world_x[col] = x_m[col] * (float)painter->ego_cos - y_m[col] * (float)painter->ego_sin;
        world_y[col] = x_m[col] * (float)painter->ego_sin + y_m[col] * (float)painter->ego_cos;
        distance_m[col] = (float)z * sqrtf(1.0f + right * right);
        tone->grain[col] = 0.0f;
    }
    noise_row(ground, 0.16, world_x, world_y, noise_amplitude(step_m * 0.16, 0.35), tone->patches);
    double fine = dmath_clamp(1.2 - footprint_m * 9.0, 0.0, 1.0);
    if (fine > 0) {
        noise_row(ground, 2.1, world_x, world_y, (float)fine * noise_amplitude(step_m * 2.1, 0.58),
                  tone->grain);
    }
    mood_headlight_row(mood, x_m, y_m, tone->lamp);
    mood_haze_row(mood, distance_m, tone->left);
    float wet = (float)(0.42 * mood->wet);
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        float grazing = distance_m[col] / (distance_m[col] + 9.0f);
        tone->mirror[col] = wet * grazing * grazing;
    }
}

/* One pixel: the sums under noise and snow, then light, wetness and haze. */
static struct rgb finish(const struct mood *mood, struct rgb light, const struct ground_sum *sum,
                         const struct ground_tone *tone, int32_t col)
{
    const struct rgb snow = material_colours[MATERIAL_SNOW];
    float patches = tone->patches[col];
    float grain = tone->grain[col];
    float off_snow = (float)mood->snow;
    float on_snow = off_snow * (0.45f + 0.5f * patches);
    float off_gain = (1.0f + 0.16f * patches + 0.14f * grain) * (1.0f - off_snow);
    float on_gain = (1.0f + 0.07f * patches + 0.06f * grain) * (1.0f - on_snow);
    float white = sum->off[3] * off_snow + sum->on[3] * on_snow;
    struct rgb colour = {
        sum->off[0] * off_gain + sum->on[0] * on_gain + snow.r * white,
        sum->off[1] * off_gain + sum->on[1] * on_gain + snow.g * white,
        sum->off[2] * off_gain + sum->on[2] * on_gain + snow.b * white,
    };
    light = rgb_add(light, rgb_times((struct rgb){0.95f, 0.9f, 0.78f}, tone->lamp[col]));
    /* Paint under headlights is whiter than white; it must not spill into its pixel's rest. */
    struct rgb paint = {0.93f * light.r, 0.93f * light.g, 0.90f * light.b};
    paint.r = paint.r < 1.0f ? paint.r : 1.0f;
    paint.g = paint.g < 1.0f ? paint.g : 1.0f;
    paint.b = paint.b < 1.0f ? paint.b : 1.0f;
    colour = rgb_add(rgb_scale(colour, light), rgb_times(paint, sum->paint));
    /* Wet ground is darker and mirrors the sky at grazing angles. */
    colour = rgb_times(colour, 1.0f - 0.28f * (float)mood->wet);
    colour = rgb_mix(colour, mood->horizon, tone->mirror[col]);
    float grey = colour.r * 0.3f + colour.g * 0.55f + colour.b * 0.15f;
    colour = rgb_mix(colour, (struct rgb){grey, grey, grey}, (float)mood->grey);
    return rgb_mix(mood->haze, colour, tone->left[col]);
}

static void ground_init(struct ground *ground, const struct painter *painter,
                        const struct raster_layers *layers, const struct ground_place *place)
{
    /* Far outside any map the tile numbers would overflow; nothing is there anyway. */
    double x = dmath_clamp(place->ego_x, -4e6, 4e6);
    double y = dmath_clamp(place->ego_y, -4e6, 4e6);
    ground->painter = painter;
    ground->layers = layers;
    ground->tile_x = (int32_t)floor(x / RASTER_TILE_M) - GROUND_REACH_TILES;
    ground->tile_y = (int32_t)floor(y / RASTER_TILE_M) - GROUND_REACH_TILES;
    ground->ego_x = x - ground->tile_x * RASTER_TILE_M;
    ground->ego_y = y - ground->tile_y * RASTER_TILE_M;
    ground->paved = place->town;
    ground->paint = 1.0f - 0.6f * (float)painter->mood.snow;
    for (int m = 0; m < MATERIAL_COUNT; m++) {
        struct rgb colour = m == MATERIAL_NONE ? place->terrain : material_colours[m];
        const float parts[4] = {colour.r, colour.g, colour.b, 1.0f};
        for (int k = 0; k < 4; k++) {
            ground->colours[m][k] = parts[k];
        }
    }
    for (int32_t i = 0; i < GROUND_TILES * GROUND_TILES; i++) {
        ground->tiles[i] = GROUND_TILE_UNKNOWN;
    }
}

void ground_draw(const struct painter *painter, const struct raster_layers *layers,
                 const struct ground_place *place, struct backdrop *out)
{
    struct ground ground;
    ground_init(&ground, painter, layers, place);
    const struct mood *mood = &painter->mood;
    double scale = painter->view.origin.z * painter->view.focal;
    struct rgb light = rgb_add(mood->ambient, rgb_times(mood->sun, (float)mood->sun_direction.z));
    for (int32_t row = CAMERA_ROWS / 2; row < CAMERA_ROWS; row++) {
        struct ground_sum sums[CAMERA_COLS] = {0};
        struct ground_tone tone;
        sum_row(&ground, row, sums);
        tone_make(&ground, scale / ((row + 0.5 - CAMERA_ROWS / 2.0) * CAMERA_SCALE), &tone);
        for (int32_t col = 0; col < CAMERA_COLS; col++) {
            out->colour[row][col] = finish(mood, light, &sums[col], &tone, col);
        }
    }
}
