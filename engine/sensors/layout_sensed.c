/*
 * Sensors' record of a scene: the layout seen through a lidar that loses returns, measures
 * range with an error and reflects each agent a little differently each tick, and through cameras
 * with weather, light and noise. The learned worlds are trained to draw this.
 *
 * Noise belongs to the cell of the anchored grid, not to its place in the window: (seed, tick,
 * cell) name a number, so a window that moves changes nothing. Integers from Philox, IEEE
 * arithmetic in a fixed order.
 */
#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"
#include "engine/sensors/layout.h"
#include "engine/sensors/layout_internal.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/raster_view.h"

#include <math.h>
#include <string.h>

/* Last word of the counter: what the numbers are for. */
enum sensor_use { USE_CELL = 0, USE_AGENT, USE_STRAY, USE_CAMERA };

/* The lidar in any weather; weather's own losses and strays come on top. */
#define LOST_NEAR (0.5 / 256) /* chance to lose a return at no range */
#define LOST_FAR (6.0 / 256)  /* at RANGE_M */
#define RANGE_M 80.0
#define SIGMA_NEAR_M 0.04 /* of measured range */
#define SIGMA_FAR_M 0.08

enum {
    GAIN_MIN = 240, /* reflectivity of an agent in a tick, in 1/256 */
    SPECKLE = 9,    /* a cell's return is weakened by less than this, in 1/256 */
    SHARE_ONE = 256,
    VALUE_MIN = 4, /* weaker returns are below the receiver's threshold */
};

struct sensor {
    uint64_t seed;
    uint32_t tick;
    struct window window;
    struct window_place place;
    const struct raster_weather *weather;
    double visibility_m;
};

static void draw_words(const struct sensor *sensor, enum sensor_use use, uint32_t element,
                       uint32_t words[4])
{
    const uint32_t counter[4] = {sensor->tick, RNG_STREAM_SENSOR, element, (uint32_t)use};
    rng_philox(sensor->seed, counter, words);
}

/* Of the anchored grid, so that it does not change as the window moves; repeats after 32 km. */
static uint32_t cell_element(const struct sensor *sensor, int32_t row, int32_t col)
{
    uint32_t u = (uint32_t)(sensor->window.i * 2 * WINDOW_PATCH + row);
    uint32_t v = (uint32_t)(sensor->window.j * 2 * WINDOW_PATCH + col);
    return (u & 0xFFFF) << 16 | (v & 0xFFFF);
}

/* Nearly normal, mean 0, variance 1: the sum of a word's four bytes. */
static double normal(uint32_t word)
{
    uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
    return ((double)sum - 510.0) / 147.80;
}

/* ---- lidar ---- */

/* Sums of what is measured, in cells; a return may end in three cells. */
struct measured {
    uint16_t occupancy[WINDOW_PLANE];
    uint16_t vru[WINDOW_PLANE];
};

static void add_return(struct measured *out, int32_t row, int32_t col, uint32_t occupancy,
                       uint32_t vru)
{
    if (row >= 0 && row < WINDOW_CELLS && col >= 0 && col < WINDOW_CELLS) {
        out->occupancy[row * WINDOW_CELLS + col] += (uint16_t)occupancy;
        out->vru[row * WINDOW_CELLS + col] += (uint16_t)vru;
    }
}

/* Measures one cell's return: lost, or weakened and displaced along its ray. False: lost. */
static bool measure_cell(const struct sensor *sensor, const struct window_planes *clean,
                         const uint16_t *gains, int32_t row, int32_t col, struct measured *out)
{
    int32_t cell = row * WINDOW_CELLS + col;
    uint32_t words[4];
    draw_words(sensor, USE_CELL, cell_element(sensor, row, col), words);
    double du = (row + 0.5 - sensor->place.row) * BEV_CELL_M;
    double dv = (col + 0.5 - sensor->place.col) * BEV_CELL_M;
    double range_squared = du * du + dv * dv;
    double far = dmath_min(range_squared / (RANGE_M * RANGE_M), 1.0);
    const struct raster_weather *weather = sensor->weather;
    double edge = range_squared / (sensor->visibility_m * sensor->visibility_m);
    double lost = LOST_NEAR + (LOST_FAR - LOST_NEAR) * far +
                  (weather->lost_near + (weather->lost_far - weather->lost_near) * edge) / 256;
    if (words[0] * (1.0 / 4294967296.0) < lost) {
        return false;
    }
    uint32_t gain = gains[clean->owner[cell]] * (256 - words[1] % SPECKLE);
    uint32_t occupancy = clean->occupancy[cell] * gain >> 16;
    uint32_t vru = clean->vru[cell] * gain >> 16;
    double range = sqrt(range_squared);
    double error_m = normal(words[2]) * (SIGMA_NEAR_M + (SIGMA_FAR_M - SIGMA_NEAR_M) * far);
    double scale = range > 0.25 ? error_m / (range * BEV_CELL_M) : 0.0;
    int32_t along_u = (int32_t)floor(dmath_clamp(du * scale, -0.7, 0.7) * SHARE_ONE + 0.5);
    int32_t along_v = (int32_t)floor(dmath_clamp(dv * scale, -0.7, 0.7) * SHARE_ONE + 0.5);
    /* The part that moves to the next row and column; the rest, never negative, stays. */
    uint32_t to_row = (uint32_t)(along_u < 0 ? -along_u : along_u);
    uint32_t to_col = (uint32_t)(along_v < 0 ? -along_v : along_v);
    to_col = to_row + to_col > SHARE_ONE ? SHARE_ONE - to_row : to_col;
    uint32_t stays = SHARE_ONE - to_row - to_col;
    add_return(out, row + (along_u < 0 ? -1 : 1), col, occupancy * to_row / SHARE_ONE,
               vru * to_row / SHARE_ONE);
    add_return(out, row, col + (along_v < 0 ? -1 : 1), occupancy * to_col / SHARE_ONE,
               vru * to_col / SHARE_ONE);
    add_return(out, row, col, occupancy * stays / SHARE_ONE, vru * stays / SHARE_ONE);
    return true;
}

/* Drops, flakes and fog near the sensor: single weak cells, as in the observation. */
static void add_strays(const struct sensor *sensor, struct window_planes *planes)
{
    for (uint32_t i = 0; i < sensor->weather->strays; i++) {
        uint32_t words[4];
        draw_words(sensor, USE_STRAY, i, words);
        double sine;
        double cosine;
        dmath_sincos(words[0] * (2 * PI_RAD / 4294967296.0), &sine, &cosine);
        double cells = (3.0 + words[1] * (15.0 / 4294967296.0)) / BEV_CELL_M;
        double row = floor(sensor->place.row + cells * cosine);
        double col = floor(sensor->place.col + cells * sine);
        if (!(row >= 0 && row < WINDOW_CELLS && col >= 0 && col < WINDOW_CELLS)) {
            continue;
        }
        int32_t cell = (int32_t)row * WINDOW_CELLS + (int32_t)col;
        if (planes->unseen[cell] == 0 && planes->occupancy[cell] == 0) {
            planes->occupancy[cell] = (uint8_t)(32 + words[2] % 65);
        }
    }
}

/* Turns the planes of a perfect sensor into those of this one. */
static void measure(const struct sensor *sensor, uint32_t agent_count, struct window_planes *planes)
{
    struct measured measured;
    uint16_t gains[LIMIT_AGENTS + 1] = {0};
    memset(&measured, 0, sizeof measured);
    for (uint32_t i = 0; i < agent_count; i++) {
        uint32_t words[4];
        draw_words(sensor, USE_AGENT, i, words);
        gains[i + 1] = (uint16_t)(GAIN_MIN + words[0] % (257 - GAIN_MIN));
    }
    for (int32_t row = 0; row < WINDOW_CELLS; row++) {
        const uint8_t *line = planes->occupancy + (size_t)row * WINDOW_CELLS;
        for (int32_t col = 0; col < WINDOW_CELLS; col++) {
            if (line[col] != 0 && !measure_cell(sensor, planes, gains, row, col, &measured)) {
                planes->unseen[row * WINDOW_CELLS + col] = 255;
            }
        }
    }
    for (int32_t cell = 0; cell < WINDOW_PLANE; cell++) {
        uint16_t occupancy = measured.occupancy[cell] < 255 ? measured.occupancy[cell] : 255;
        uint16_t vru = measured.vru[cell] < occupancy ? measured.vru[cell] : occupancy;
        bool heard = occupancy >= VALUE_MIN;
        planes->occupancy[cell] = heard ? (uint8_t)occupancy : 0;
        planes->vru[cell] = heard ? (uint8_t)vru : 0;
        planes->unseen[cell] = heard ? 0 : planes->unseen[cell];
    }
    add_strays(sensor, planes);
}

/* ---- cameras ---- */

/* Adds the same error to the three colours of a pixel, and a little to each of them. */
static void add_camera_noise(const struct sensor *sensor, enum light light, uint32_t camera,
                             uint8_t *image)
{
    /* Standard deviations in 1/64 of a grey level: more gain in the dark. */
    static const int32_t luma[LIGHT_COUNT] = {
        [LIGHT_DAY] = 90, [LIGHT_DUSK] = 160, [LIGHT_NIGHT] = 260};
    enum { PIXELS_PER_BLOCK = 4, CHROMA_SHIFT = 2 };
    for (uint32_t block = 0; block < CAMERA_ROWS * CAMERA_COLS / PIXELS_PER_BLOCK; block++) {
        uint32_t words[4];
        draw_words(sensor, USE_CAMERA, camera << 16 | block, words);
        for (uint32_t k = 0; k < PIXELS_PER_BLOCK; k++) {
            uint8_t *pixel = image + (size_t)(block * PIXELS_PER_BLOCK + k) * 3;
            int32_t bytes[4];
            for (int b = 0; b < 4; b++) {
                bytes[b] = (int32_t)(words[k] >> (8 * b) & 255);
            }
            /* Two bytes make a triangle of standard deviation 104.5. */
            int32_t common = (bytes[0] + bytes[1] - 255) * luma[light] / 104;
            for (int colour = 0; colour < 3; colour++) {
                int32_t own =
                    (bytes[2 + (colour & 1)] - 127) * luma[light] / (colour == 1 ? 300 : -300);
                int32_t value = pixel[colour] * 64 + common + own + 32;
                value = value < 0 ? 0 : value >> 6;
                pixel[colour] = (uint8_t)(value > 255 ? 255 : value);
            }
        }
    }
}

static void sense_cameras(const struct prepared *prepared, const struct scene *scene,
                          const struct sensor *sensor, uint8_t *cameras)
{
    uint8_t image[CAMERA_BYTES];
    for (uint32_t camera = 0; camera < CAMERA_COUNT; camera++) {
        raster_camera(prepared->layers, prepared->scenario, scene, sensor->seed,
                      (enum camera_index)camera, image);
        add_camera_noise(sensor, scene->conditions.light, camera, image);
        layout_camera_pack(image, cameras + (size_t)camera * (FRAME_CAMERA_BYTES / CAMERA_COUNT));
    }
}

/* ---- the whole ---- */

void layout_sensed(const struct prepared *prepared, const struct scene *scene, uint64_t seed,
                   const struct anchor *anchor, struct window window, uint8_t *bev,
                   uint8_t *cameras)
{
    const struct sensor sensor = {
        .seed = seed,
        .tick = scene->tick,
        .window = window,
        .place = layout_place(scene, anchor, window),
        .weather = &raster_weather_noise[scene->conditions.weather],
        .visibility_m = scene->conditions.visibility_m,
    };
    if (bev != NULL) {
        struct window_planes planes;
        layout_planes(prepared, scene, anchor, window, &planes);
        layout_pack_velocity(&planes, scene, anchor, bev);
        layout_pack_map(prepared, anchor, window, bev);
        measure(&sensor, scene->agent_count, &planes);
        layout_pack_returns(&planes, bev);
    }
    if (cameras != NULL) {
        sense_cameras(prepared, scene, &sensor, cameras);
    }
}
