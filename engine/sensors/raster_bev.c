/*
 * BEV grid: the observation's view of the lidar (raster_lidar.c), the weather's returns and losses
 * in it, and the map under it. The sensor is at ego's box centre and the grid turns with ego.
 */
#include "base/dmath.h"
#include "base/rng.h"
#include "engine/sensors/raster.h"
#include "engine/sensors/raster_view.h"

#include <string.h>

/* ---- weather ---- */

const struct raster_weather raster_weather_noise[WEATHER_COUNT] = {
    [WEATHER_CLEAR] = {0, 0, 0}, [WEATHER_RAIN] = {3, 16, 2}, [WEATHER_HEAVY_RAIN] = {8, 40, 5},
    [WEATHER_FOG] = {5, 80, 3},  [WEATHER_SNOW] = {8, 32, 8},
};

enum {
    NOISE_LOSS = 0,        /* element numbers of the BEV stream: loss by groups of 16 cells .. */
    NOISE_STRAY = 1 << 16, /* .. and one per stray return */
    STRAY_VALUE_MAX = 96,
};

/* Squared range of a cell's centre. */
static double range_squared(int32_t row, int32_t col)
{
    double x = BEV_X_MIN_M + (row + 0.5) * BEV_CELL_M;
    double y = BEV_Y_MIN_M + (col + 0.5) * BEV_CELL_M;
    return x * x + y * y;
}

/* Loses returns: a cell that gave none is empty and unseen. One random block serves 16 cells. */
static void drop_returns(const struct scene *scene, uint64_t seed, uint8_t *occupancy,
                         uint8_t *unseen)
{
    enum { GROUP = 16 };
    uint32_t near = raster_weather_noise[scene->conditions.weather].lost_near;
    uint32_t far = raster_weather_noise[scene->conditions.weather].lost_far;
    double visibility = scene->conditions.visibility_m;
    double scale = (far - near) / (visibility * visibility);
    for (int32_t group = 0; group < BEV_CELLS / GROUP; group++) {
        uint64_t halves[2];
        memcpy(halves, occupancy + group * GROUP, sizeof halves);
        if ((halves[0] | halves[1]) == 0) {
            continue;
        }
        uint32_t counter[4] = {scene->tick, RNG_STREAM_BEV, NOISE_LOSS + (uint32_t)group, 0};
        uint32_t words[4];
        rng_philox(seed, counter, words);
        for (int32_t k = 0; k < GROUP; k++) {
            int32_t cell = group * GROUP + k;
            uint32_t byte = words[k / 4] >> (8 * (k % 4)) & 255;
            if (occupancy[cell] != 0 &&
                byte < near + scale * range_squared(cell / BEV_COLS, cell % BEV_COLS)) {
                occupancy[cell] = 0;
                unseen[cell] = 255;
            }
        }
    }
}

/* Drops, flakes and fog near the sensor return now and then: single weak cells 3 to 18 m away. */
static void add_strays(const struct scene *scene, uint64_t seed, uint8_t *occupancy,
                       const uint8_t *unseen)
{
    for (uint32_t i = 0; i < raster_weather_noise[scene->conditions.weather].strays; i++) {
        uint32_t counter[4] = {scene->tick, RNG_STREAM_BEV, NOISE_STRAY + i, 0};
        uint32_t words[4];
        rng_philox(seed, counter, words);
        double angle = words[0] * (2 * PI_RAD / 4294967296.0);
        double range = 3.0 + words[1] * (15.0 / 4294967296.0);
        double sine;
        double cosine;
        dmath_sincos(angle, &sine, &cosine);
        double x = range * cosine;
        double y = range * sine;
        int32_t row = (int32_t)((x - BEV_X_MIN_M) / BEV_CELL_M);
        int32_t col = (int32_t)((y - BEV_Y_MIN_M) / BEV_CELL_M);
        if (x < BEV_X_MIN_M || row >= BEV_ROWS || col >= BEV_COLS) {
            continue;
        }
        int32_t cell = row * BEV_COLS + col;
        if (unseen[cell] == 0 && occupancy[cell] == 0) {
            occupancy[cell] = (uint8_t)(32 + words[2] % (STRAY_VALUE_MAX - 31));
        }
    }
}

/* ---- the whole ---- */

void raster_map_window(const struct raster_layers *layers, const struct raster_view *view,
                       struct raster_window *window)
{
    double c = view->cos_heading;
    double s = view->sin_heading;
    double middle_x = view->x_min_m + BEV_ROWS * BEV_CELL_M / 2;
    double middle_y = view->y_min_m + BEV_COLS * BEV_CELL_M / 2;
    double first_x = view->x_min_m + BEV_CELL_M / 2;
    double first_y = view->y_min_m + BEV_CELL_M / 2;
    double x = view->sensor.x_m;
    double y = view->sensor.y_m;
    raster_layers_window(
        layers, (struct vec2){x + middle_x * c - middle_y * s, y + middle_x * s + middle_y * c},
        (struct vec2){x + first_x * c - first_y * s, y + first_x * s + first_y * c},
        (struct vec2){BEV_CELL_M * c, BEV_CELL_M * s},
        (struct vec2){-BEV_CELL_M * s, BEV_CELL_M * c}, window);
}

void raster_map(const struct raster_layers *layers, const struct raster_view *view,
                uint8_t *drivable, uint8_t *marking)
{
    struct raster_window window;
    raster_map_window(layers, view, &window);
    raster_plain_map(layers, &window, drivable, marking);
}

struct raster_view raster_view_ego(const struct pose *ego)
{
    struct raster_view view = {
        .sensor = {ego->x_m, ego->y_m},
        .heading_rad = ego->heading_rad,
        .x_min_m = BEV_X_MIN_M,
        .y_min_m = BEV_Y_MIN_M,
        .x_low_m = BEV_X_MIN_M,
        .x_high_m = BEV_X_MIN_M + BEV_ROWS * BEV_CELL_M,
        .y_low_m = BEV_Y_MIN_M,
        .y_high_m = BEV_Y_MIN_M + BEV_COLS * BEV_CELL_M,
    };
    dmath_sincos(ego->heading_rad, &view.sin_heading, &view.cos_heading);
    return view;
}

void raster_bev(const struct raster_layers *layers, const struct scenario *scenario,
                const struct scene *scene, uint64_t seed, uint8_t *out)
{
    struct raster_view view = raster_view_ego(&scene->ego.pose);
    raster_map(layers, &view, out + BEV_DRIVABLE * BEV_CELLS, out + BEV_MARKING * BEV_CELLS);
    raster_stop_lines(layers, scene, &view, out + BEV_MARKING * BEV_CELLS);
    raster_returns(layers, scenario, scene, seed, out);
}

void raster_returns(const struct raster_layers *layers, const struct scenario *scenario,
                    const struct scene *scene, uint64_t seed, uint8_t *out)
{
    uint8_t *occupancy = out + BEV_OCCUPANCY * BEV_CELLS;
    uint8_t *unseen = out + BEV_UNSEEN * BEV_CELLS;
    struct raster_view view = raster_view_ego(&scene->ego.pose);
    raster_lidar(&layers->kernels, scenario, scene, &view,
                 &(struct raster_planes){.occupancy = occupancy, .unseen = unseen});
    if (scene->conditions.weather != WEATHER_CLEAR) {
        drop_returns(scene, seed, occupancy, unseen);
        add_strays(scene, seed, occupancy, unseen);
    }
}
