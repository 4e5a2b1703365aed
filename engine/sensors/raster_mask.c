/*
 * Sample masks: polygons as one bit per sample point of a tile. A union of polygons is an OR of
 * bits, so lanes that overlap or abut leave neither a double edge nor a seam.
 */
#include "engine/sensors/raster_layers.h"

enum { N = RASTER_TILE_SAMPLES };

/* Smallest integer >= x, clamped to [0, N]. */
static int32_t ceil_clamped(double x)
{
    if (!(x > 0)) {
        return 0;
    }
    if (x > N) {
        return N;
    }
    int32_t k = (int32_t)x;
    return k + (k < x);
}

/* Bit i of the result is the parity of bits 0..i. */
static uint64_t prefix_parity(uint64_t x)
{
    for (int shift = 1; shift < 64; shift <<= 1) {
        x ^= x << shift;
    }
    return x;
}

/* Toggles, in every sample row that edge a-b crosses, the first sample right of the crossing. */
static void toggle_edge(struct raster_mask *toggles, struct vec2 a, struct vec2 b, int32_t *low,
                        int32_t *high)
{
    if (a.y_m > b.y_m) {
        struct vec2 swap = a;
        a = b;
        b = swap;
    }
    int32_t first = ceil_clamped(a.y_m);
    int32_t end = ceil_clamped(b.y_m);
    if (first >= end || (a.x_m > N && b.x_m > N)) {
        return;
    }
    double slope = (b.x_m - a.x_m) / (b.y_m - a.y_m);
    for (int32_t row = first; row < end; row++) {
        int32_t column = ceil_clamped(a.x_m + (row - a.y_m) * slope);
        if (column < N) {
            toggles->rows[row][column >> 6] ^= UINT64_C(1) << (column & 63);
        }
    }
    *low = first < *low ? first : *low;
    *high = end > *high ? end : *high;
}

void raster_mask_fill(struct raster_mask *mask, struct vec2 corner, const struct vec2 *points,
                      uint32_t count)
{
    struct raster_mask toggles;
    double y_min = N;
    double y_max = 0;
    for (uint32_t i = 0; i < count; i++) {
        double y = (points[i].y_m - corner.y_m) / RASTER_SAMPLE_M - 0.5;
        y_min = y < y_min ? y : y_min;
        y_max = y > y_max ? y : y_max;
    }
    int32_t clear_first = ceil_clamped(y_min);
    int32_t clear_end = ceil_clamped(y_max);
    if (clear_first >= clear_end) {
        return;
    }
    for (int32_t row = clear_first; row < clear_end; row++) {
        for (int32_t w = 0; w < RASTER_MASK_WORDS; w++) {
            toggles.rows[row][w] = 0;
        }
    }
    int32_t low = N;
    int32_t high = 0;
    /* In sample units, shifted so that sample points have integer coordinates. */
    struct vec2 a = {(points[count - 1].x_m - corner.x_m) / RASTER_SAMPLE_M - 0.5,
                     (points[count - 1].y_m - corner.y_m) / RASTER_SAMPLE_M - 0.5};
    for (uint32_t i = 0; i < count; i++) {
        struct vec2 b = {(points[i].x_m - corner.x_m) / RASTER_SAMPLE_M - 0.5,
                         (points[i].y_m - corner.y_m) / RASTER_SAMPLE_M - 0.5};
        toggle_edge(&toggles, a, b, &low, &high);
        a = b;
    }
    for (int32_t row = low; row < high; row++) {
        uint64_t carry = 0;
        for (int32_t w = 0; w < RASTER_MASK_WORDS; w++) {
            uint64_t inside = prefix_parity(toggles.rows[row][w]) ^ carry;
            mask->rows[row][w] |= inside;
            carry = inside >> 63 ? ~UINT64_C(0) : 0;
        }
    }
}

/* Population count of each byte. */
static uint64_t count_bytes(uint64_t x)
{
    x -= x >> 1 & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
    return (x + (x >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
}

void raster_mask_count(const struct raster_mask *mask, uint8_t counts[RASTER_TILE_CELLS])
{
    for (int32_t ty = 0; ty < RASTER_TILE_TEXELS; ty++) {
        for (int32_t w = 0; w < RASTER_MASK_WORDS; w++) {
            uint64_t sum = 0;
            for (int32_t k = 0; k < 8; k++) {
                sum += count_bytes(mask->rows[ty * 8 + k][w]);
            }
            for (int32_t k = 0; k < 8; k++) {
                counts[ty * RASTER_TILE_TEXELS + w * 8 + k] = (uint8_t)(sum >> (8 * k));
            }
        }
    }
}
