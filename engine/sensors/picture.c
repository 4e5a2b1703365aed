/*
 * BEV picture: layers blended from the ground up (terrain, road, paint, shadow, returns, ego),
 * each sampled bilinearly so that an enlarged picture has smooth edges.
 */
#include "engine/sensors/picture.h"

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { SCALE_MAX = 16 };

struct colour {
    double r, g, b;
};

static struct colour mix(struct colour a, struct colour b, double t)
{
    return (struct colour){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static int32_t clamp(int32_t value, int32_t high)
{
    return value < 0 ? 0 : value > high ? high : value;
}

/* The two cells of a row or column that a position lies between, (0.5) being the centre of the
 * first, and the share of the second. */
struct between {
    int32_t low, high;
    double share;
};

static struct between between_at(double position, int32_t count)
{
    double shifted = position - 0.5 + 1.0;
    int32_t index = (int32_t)shifted;
    return (struct between){clamp(index - 1, count - 1), clamp(index, count - 1), shifted - index};
}

static bool is_cell(const struct between *at)
{
    return !(at->share > 0.0);
}

/* Values of a cell in all channels that a picture has. */
static uint32_t cell_key(const uint8_t *bev, const struct between *row, const struct between *col)
{
    const uint8_t *cell = bev + row->low * BEV_COLS + col->low;
    return (uint32_t)cell[BEV_DRIVABLE * BEV_CELLS] << 24 |
           (uint32_t)cell[BEV_MARKING * BEV_CELLS] << 16 |
           (uint32_t)cell[BEV_UNSEEN * BEV_CELLS] << 8 | cell[BEV_OCCUPANCY * BEV_CELLS];
}

/* Value 0..1 of a channel; most of most channels is 0. */
static double sample(const uint8_t *channel, const struct between *row, const struct between *col)
{
    const uint8_t *low = channel + row->low * BEV_COLS;
    const uint8_t *high = channel + row->high * BEV_COLS;
    if ((low[col->low] | low[col->high] | high[col->low] | high[col->high]) == 0) {
        return 0.0;
    }
    double a = low[col->low] + (low[col->high] - low[col->low]) * col->share;
    double b = high[col->low] + (high[col->high] - high[col->low]) * col->share;
    return (a + (b - a) * row->share) / 255.0;
}

static double ahead_m(double row)
{
    return BEV_X_MIN_M + row * BEV_CELL_M;
}

static bool beside_ego(double row)
{
    return ahead_m(row) > -2.3 && ahead_m(row) < 2.3;
}

static bool in_ego(double row, double col)
{
    double x = ahead_m(row);
    double y = BEV_Y_MIN_M + col * BEV_CELL_M;
    double corner = x > 1.9 ? x - 1.9 : 0.0; /* a slightly pointed bonnet shows the way ahead */
    return beside_ego(row) && y > -0.95 + corner && y < 0.95 - corner;
}

/* Colour beside ego. */
static struct colour colour_at(const uint8_t *bev, const struct between *row,
                               const struct between *col)
{
    const struct colour terrain = {0.235, 0.275, 0.235};
    const struct colour road = {0.47, 0.48, 0.50};
    const struct colour paint = {0.96, 0.96, 0.94};
    const struct colour shade = {0.05, 0.06, 0.10};
    const struct colour faint = {0.92, 0.30, 0.16};
    const struct colour strong = {1.00, 0.62, 0.18};
    struct colour out = mix(terrain, road, sample(bev + BEV_DRIVABLE * BEV_CELLS, row, col));
    double marking = 2.0 * sample(bev + BEV_MARKING * BEV_CELLS, row, col);
    out = mix(out, paint, marking < 1.0 ? marking * 0.9 : 0.9);
    out = mix(out, shade, 0.55 * sample(bev + BEV_UNSEEN * BEV_CELLS, row, col));
    double occupied = sample(bev + BEV_OCCUPANCY * BEV_CELLS, row, col);
    double opacity = 1.6 * occupied;
    return mix(out, mix(faint, strong, occupied), opacity < 1.0 ? opacity : 1.0);
}

void picture_bev(const uint8_t *bev, uint32_t scale, uint8_t *rgb)
{
    CHECK(scale >= 1 && scale <= SCALE_MAX);
    uint32_t height = BEV_ROWS * scale;
    uint32_t width = BEV_COLS * scale;
    const struct colour ego = {0.20, 0.56, 1.00};
    struct between cols[BEV_COLS * SCALE_MAX];
    for (uint32_t u = 0; u < width; u++) {
        cols[u] = between_at(BEV_COLS - (u + 0.5) / scale, BEV_COLS);
    }
    for (uint32_t v = 0; v < height; v++) {
        double row = BEV_ROWS - (v + 0.5) / scale;
        const struct between rows = between_at(row, BEV_ROWS);
        bool beside = beside_ego(row);
        uint32_t last = 0;
        bool alike = false; /* the pixel before this one shows a cell of key `last`, nothing else */
        for (uint32_t u = 0; u < width; u++) {
            uint8_t *pixel = rgb + ((size_t)v * width + u) * 3;
            bool own = beside && in_ego(row, BEV_COLS - (u + 0.5) / scale);
            bool cell = !own && is_cell(&rows) && is_cell(&cols[u]);
            uint32_t key = cell ? cell_key(bev, &rows, &cols[u]) : 0;
            if (cell && alike && key == last) {
                memcpy(pixel, pixel - 3, 3);
                continue;
            }
            alike = cell;
            last = key;
            struct colour colour = own ? ego : colour_at(bev, &rows, &cols[u]);
            pixel[0] = (uint8_t)(colour.r * 255.0 + 0.5);
            pixel[1] = (uint8_t)(colour.g * 255.0 + 0.5);
            pixel[2] = (uint8_t)(colour.b * 255.0 + 0.5);
        }
    }
}
