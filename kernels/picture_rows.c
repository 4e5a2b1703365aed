/*
 * Rows of a picture: sky, ground and bytes of the columns of a tile (kernels/picture_rows.h).
 */
#include "kernels/picture_rows.h"

/* ---- sky ---- */

/* Row of a tile. */
struct sky_shares {
    float slope[PICTURE_TILE_COLS]; /* in the middle of the row */
    float cloud[PICTURE_TILE_COLS];
    float stars[PICTURE_TILE_COLS]; /* share of the pixel */
    float solid[PICTURE_TILE_COLS]; /* share of the pixel that the skyline covers */
};

/* Adds `weight` times the clouds on the canvas rows that lie `up` and `more` rows over the horizon.
 */
static void add_clouds(const struct sky_columns *restrict columns, const float *restrict up,
                       float more, float weight, int32_t cols, float *restrict out)
{
    float x[PICTURE_TILE_COLS], y[PICTURE_TILE_COLS];
    float coarse[PICTURE_TILE_COLS], fine[PICTURE_TILE_COLS];
    for (int32_t col = 0; col < cols; col++) {
        sky_cloud_place(columns, col, up[col] + more, &x[col], &y[col]);
    }
    for (int32_t col = 0; col < cols; col++) {
        coarse[col] = mood_noise(0, 0, x[col], y[col]);
    }
    for (int32_t col = 0; col < cols; col++) {
        fine[col] = sky_cloud_fine(x[col], y[col]);
    }
    for (int32_t col = 0; col < cols; col++) {
        out[col] +=
            sky_cloud(coarse[col], fine[col], (up[col] + more) * columns->scale[col]) * weight;
    }
}

static void draw_sky(const struct picture *picture, const struct sky_row *sky, int32_t cols,
                     struct rgb_row *restrict out)
{
    const struct mood mood = picture->mood;
    const struct sky_columns *restrict columns = sky->columns;
    const float *restrict up = sky->up;
    const float part = 1.0f / PICTURE_SCALE;
    struct sky_shares shares = {0};
    for (int32_t col = 0; col < cols; col++) {
        shares.slope[col] = up[col] * columns->scale[col];
    }
    bool once = sky->least > SKY_STEEP;
    for (int32_t r = once ? 0 : -1; r <= (once ? 0 : 1) && mood.grey <= 0; r++) {
        add_clouds(columns, up, (float)r, sky_cloud_share(&mood, once), cols, shares.cloud);
    }
    for (int32_t r = -1; r <= 1 && mood.stars; r++) {
        for (int32_t col = 0; col < cols; col++) {
            shares.stars[col] += sky_star(columns, col, up[col] + (float)r) ? part : 0.0f;
        }
    }
    bool low = sky->least < sky->skyline_max * 2.0f;
    for (int32_t r = -1; r <= 1 && low; r++) {
        for (int32_t col = 0; col < cols; col++) {
            float slope = (up[col] + (float)r) * columns->scale[col];
            shares.solid[col] += slope < columns->skyline[col] ? part : 0.0f;
        }
    }
    for (int32_t col = 0; col < cols; col++) {
        const struct rgb colour =
            sky_colour(picture, shares.slope[col], columns->halo[col], shares.cloud[col],
                       shares.stars[col], shares.solid[col]);
        out->r[col] = colour.r;
        out->g[col] = colour.g;
        out->b[col] = colour.b;
    }
}

/* ---- ground ---- */

static void add_times(float *restrict sums, float value, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sums[i] += value;
    }
}

static void add_share(const struct ground_share *share, int32_t col, int32_t count,
                      struct ground_sums *sums)
{
    for (int k = 0; k < 4 && share->off_weight != 0.0f; k++) {
        add_times(&sums->off[k][col], share->off[k] * share->off_weight, count);
    }
    for (int k = 0; k < 4 && share->on_weight != 0.0f; k++) {
        add_times(&sums->on[k][col], share->on[k] * share->on_weight, count);
    }
    if (share->paint != 0.0f) {
        add_times(&sums->paint[col], share->paint, count);
    }
}

/* A line crosses many columns of one flat cell, and many such cells in a row look alike: what it
 * sees there is computed once. */
static void sum_line(const struct ground_map *ground, uint16_t *tiles,
                     const struct ground_line *line, int32_t first_col, int32_t cols,
                     struct ground_sums *sums)
{
    /* Coverage and material change at multiples of half a texel. */
    enum { HALF_BITS = GROUND_TEXEL_BITS - 1 };
    const int32_t step_x = PICTURE_SCALE * line->dx;
    const int32_t step_y = PICTURE_SCALE * line->dy;
    int32_t x = line->x + first_col * step_x;
    int32_t y = line->y + first_col * step_y;
    const int32_t aside_x = line->offset * line->dx;
    const int32_t aside_y = line->offset * line->dy;
    int32_t col = 0;
    while (col < cols) {
        struct ground_cell cell = ground_cell_at(ground, tiles, x + aside_x, y + aside_y);
        const struct ground_share share = ground_share_at(ground, tiles, line, x, y, &cell);
        const struct ground_cell first = cell;
        bool flat = ground_cell_is_flat(&cell, line);
        int32_t end = col;
        do {
            int32_t place_x = (x + aside_x) >> HALF_BITS;
            int32_t place_y = (y + aside_y) >> HALF_BITS;
            do {
                end++;
                x += step_x;
                y += step_y;
            } while (flat && end < cols && (x + aside_x) >> HALF_BITS == place_x &&
                     (y + aside_y) >> HALF_BITS == place_y);
            if (flat && end < cols) {
                cell = ground_cell_at(ground, tiles, x + aside_x, y + aside_y);
            }
        } while (flat && end < cols && cell.texel == first.texel &&
                 cell.material == first.material);
        add_share(&share, col, end - col, sums);
        col = end;
    }
}

static void find_places(const struct ground_row *row, int32_t first_col, int32_t cols,
                        struct ground_places *restrict out)
{
    const struct ground_row own = *row;
    for (int32_t i = 0; i < cols; i++) {
        const struct ground_point point = ground_point_at(&own, first_col + i);
        out->x_m[i] = point.x_m;
        out->y_m[i] = point.y_m;
        out->distance_m[i] = point.distance_m;
        out->patches[i] = own.patches.amplitude;
        out->grain[i] = own.grain.amplitude;
    }
    out->grained = own.grained;
}

/* Noise about 0 at each place, times the amplitude there. */
static void find_noise(const struct ground_noise *noise, const float *restrict x,
                       const float *restrict y, const float *restrict amplitude, int32_t cols,
                       float *restrict out)
{
    struct ground_noise unit = *noise;
    unit.amplitude = 1.0f;
    for (int32_t i = 0; i < cols; i++) {
        out[i] = ground_noise_at(&unit, x[i], y[i]) * amplitude[i];
    }
}

/* struct ground_tone of the pixels of a row. */
struct tone_row {
    float patches[PICTURE_TILE_COLS], grain[PICTURE_TILE_COLS];
    float lamp[PICTURE_TILE_COLS], mirror[PICTURE_TILE_COLS], left[PICTURE_TILE_COLS];
};

static void find_tones(const struct ground_row *row, const struct ground_places *restrict places,
                       int32_t cols, struct tone_row *restrict out)
{
    const struct ground_row own = *row;
    float x[PICTURE_TILE_COLS], y[PICTURE_TILE_COLS];
    for (int32_t i = 0; i < cols; i++) {
        x[i] = places->x_m[i] * own.ego_cos - places->y_m[i] * own.ego_sin;
        y[i] = places->x_m[i] * own.ego_sin + places->y_m[i] * own.ego_cos;
        out->grain[i] = 0.0f;
    }
    find_noise(&own.patches, x, y, places->patches, cols, out->patches);
    if (places->grained) {
        find_noise(&own.grain, x, y, places->grain, cols, out->grain);
    }
    for (int32_t i = 0; i < cols; i++) {
        out->lamp[i] = mood_headlight_at(own.headlights, places->x_m[i], places->y_m[i]);
    }
    for (int32_t i = 0; i < cols; i++) {
        out->left[i] = mood_decay(own.haze_per_m * places->distance_m[i]);
    }
    for (int32_t i = 0; i < cols; i++) {
        out->mirror[i] = ground_mirror_at(&own, places->distance_m[i]);
    }
}

static void draw_ground(const struct picture *picture, const struct ground_row *row,
                        const struct ground_sums *restrict sums, const struct ground_places *places,
                        int32_t cols, struct rgb_row *restrict out)
{
    const struct mood mood = picture->mood;
    const struct rgb light = picture->ground.light;
    struct tone_row tones;
    find_tones(row, places, cols, &tones);
    for (int32_t i = 0; i < cols; i++) {
        const struct ground_sum sum = {
            .off = {sums->off[0][i], sums->off[1][i], sums->off[2][i], sums->off[3][i]},
            .on = {sums->on[0][i], sums->on[1][i], sums->on[2][i], sums->on[3][i]},
            .paint = sums->paint[i],
        };
        const struct ground_tone tone = {tones.patches[i], tones.grain[i], tones.lamp[i],
                                         tones.mirror[i], tones.left[i]};
        const struct rgb colour = ground_finish(&mood, light, &sum, tone);
        out->r[i] = colour.r;
        out->g[i] = colour.g;
        out->b[i] = colour.b;
    }
}

static void write_bytes(const struct rgb_row *restrict row, int32_t cols, uint8_t *restrict out)
{
    for (int32_t i = 0; i < cols; i++) {
        out[3 * i] = rgb_byte(row->r[i]);
        out[3 * i + 1] = rgb_byte(row->g[i]);
        out[3 * i + 2] = rgb_byte(row->b[i]);
    }
}

void PICTURE_NAME(rows)(struct picture_kernels *kernels)
{
    kernels->sky = draw_sky;
    kernels->sum = sum_line;
    kernels->places = find_places;
    kernels->ground = draw_ground;
    kernels->bytes = write_bytes;
}
