/*
 * Cameras: known points land on the pixels that the calibration formula gives, nearer surfaces hide
 * farther ones, light and weather change the picture the way they should, and the bytes depend on
 * nothing but the inputs.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "engine/sensors/raster.h"
#include "engine/sensors/raster_camera.h"
#include "tests/engine/road.h"
#include "tests/harness.h"

#include <stdlib.h>

#define CAMERA_HASH UINT64_C(0xA05995D5B99ED012)

static uint8_t image[CAMERA_BYTES];
static uint8_t other[CAMERA_BYTES];

struct world {
    struct scenario scenario;
    struct agent agents[3];
    struct road road;
    struct scene scene;
    struct raster_layers *layers;
};

/* A road 8 m wide along x, ego on its centre line. */
static void world_init(struct world *world)
{
    memset(world, 0, sizeof *world);
    world->scenario.agents = world->agents;
    world->scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
    world->layers = road_init(&world->road);
}

static void add(struct world *world, enum agent_kind kind, double x_m, double y_m, double length_m,
                double width_m, double height_m)
{
    uint32_t i = world->scene.agent_count++;
    CHECK(i < COUNT_OF(world->agents));
    world->scenario.agent_count = world->scene.agent_count;
    world->scene.agents[i].pose = (struct pose){x_m, y_m, 0.0};
    world->scene.agents[i].present = true;
    world->agents[i] = (struct agent){
        .kind = kind, .length_m = length_m, .width_m = width_m, .height_m = height_m};
}

static void draw(struct world *world, enum camera_index camera, uint8_t *out)
{
    raster_camera(world->layers, &world->scenario, &world->scene, 5, camera, out);
}

/* The formula of schemas/observation.md, in pixels; false behind the camera. */
static bool project(enum camera_index camera, double x, double y, double z, double *u, double *v)
{
    const struct camera_calibration *cal = &camera_calibrations[camera];
    double focal = CAMERA_COLS / 2.0 / tan(cal->hfov_rad / 2);
    double dx = x - cal->x_m;
    double dy = y - cal->y_m;
    double ahead = dx * cos(cal->yaw_rad) + dy * sin(cal->yaw_rad);
    double right = dx * sin(cal->yaw_rad) - dy * cos(cal->yaw_rad);
    *u = CAMERA_COLS / 2.0 + focal * right / ahead;
    *v = CAMERA_ROWS / 2.0 + focal * (cal->z_m - z) / ahead;
    return ahead > 0;
}

static int difference_at(int row, int col)
{
    int sum = 0;
    for (int k = 0; k < 3; k++) {
        int i = (row * CAMERA_COLS + col) * 3 + k;
        sum += abs(image[i] - other[i]);
    }
    return sum;
}

/* An object box appears exactly within the hull of its projected corners: the difference with the
 * empty scene fills it and (but for the contact shadow at its foot) nothing else. */
static void boxes_land_where_the_calibration_says(void)
{
    static const struct {
        enum camera_index camera;
        double x, y;
    } places[] = {{CAMERA_FRONT, 12.0, 0.0},
                  {CAMERA_FRONT, 20.0, 6.0},
                  {CAMERA_LEFT, 6.0, 9.0},
                  {CAMERA_RIGHT, 5.0, -10.0},
                  {CAMERA_LEFT, 2.0, 12.0}};
    for (size_t p = 0; p < COUNT_OF(places); p++) {
        struct world world;
        world_init(&world);
        draw(&world, places[p].camera, other);
        add(&world, AGENT_OBJECT, places[p].x, places[p].y, 2.0, 2.0, 2.0);
        draw(&world, places[p].camera, image);
        double u0 = INFINITY;
        double u1 = -INFINITY;
        double v0 = INFINITY;
        double v1 = -INFINITY;
        for (int k = 0; k < 8; k++) {
            double u;
            double v;
            EXPECT(project(places[p].camera, places[p].x + (k & 1 ? 1 : -1),
                           places[p].y + (k & 2 ? 1 : -1), k & 4 ? 2.0 : 0.0, &u, &v));
            u0 = fmin(u0, u);
            u1 = fmax(u1, u);
            v0 = fmin(v0, v);
            v1 = fmax(v1, v);
        }
        int filled = 0;
        for (int row = 0; row < CAMERA_ROWS; row++) {
            for (int col = 0; col < CAMERA_COLS; col++) {
                bool changed = difference_at(row, col) > 6;
                filled += changed;
                if (col + 1 < u0 - 1 || col > u1 + 1 || row + 1 < v0 - 0.5 || row > v1 + 1) {
                    EXPECT(!changed);
                }
            }
        }
        double u;
        double v;
        EXPECT(project(places[p].camera, places[p].x, places[p].y, 1.0, &u, &v));
        EXPECT(difference_at((int)v, (int)u) > 20);
        EXPECT(filled > 0.55 * (u1 - u0) * (v1 - v0));
        raster_layers_destroy(world.layers);
    }
}

/* Road edges of the map appear where their points project: marking bright, road dark beside it. */
static void markings_land_where_the_calibration_says(void)
{
    struct world world;
    world_init(&world);
    draw(&world, CAMERA_FRONT, image);
    for (double x = 6.5; x < 12.0; x += 0.5) {
        for (int side = -1; side <= 1; side += 2) {
            double u;
            double v;
            EXPECT(project(CAMERA_FRONT, x, side * 4.0, 0.0, &u, &v));
            if (u < 1 || u > CAMERA_COLS - 1 || v > CAMERA_ROWS - 1) {
                continue;
            }
            const uint8_t *line = image + ((int)v * CAMERA_COLS + (int)u) * 3;
            EXPECT(project(CAMERA_FRONT, x, side * 3.0, 0.0, &u, &v));
            const uint8_t *road = image + ((int)v * CAMERA_COLS + (int)u) * 3;
            EXPECT(line[0] > road[0] + 15);
            EXPECT(abs(road[0] - road[1]) < 15);
        }
    }
    raster_layers_destroy(world.layers);
}

/* A person right behind a truck changes no pixel; beside it, it does. */
static void nearer_surfaces_hide_farther_ones(void)
{
    struct world world;
    world_init(&world);
    add(&world, AGENT_TRUCK, 20.0, 0.0, 8.0, 2.5, 3.6);
    draw(&world, CAMERA_FRONT, other);
    add(&world, AGENT_PEDESTRIAN, 27.0, 0.3, 0.5, 0.5, 1.7);
    draw(&world, CAMERA_FRONT, image);
    EXPECT(memcmp(image, other, CAMERA_BYTES) == 0);
    world.scene.agents[1].pose.y_m = 4.0;
    draw(&world, CAMERA_FRONT, image);
    EXPECT(memcmp(image, other, CAMERA_BYTES) != 0);
    raster_layers_destroy(world.layers);
}

static double brightness(const uint8_t *pixels, int first_row, int end_row)
{
    double sum = 0.0;
    for (int i = first_row * CAMERA_COLS * 3; i < end_row * CAMERA_COLS * 3; i++) {
        sum += pixels[i];
    }
    return sum / ((end_row - first_row) * CAMERA_COLS * 3);
}

/* Night is darker than dusk, dusk than day; headlights reach the road ahead; fog takes contrast
 * with distance; rain and snow leave marks that change from tick to tick. */
static void light_and_weather_show(void)
{
    struct world world;
    world_init(&world);
    double levels[LIGHT_COUNT];
    for (int light = 0; light < LIGHT_COUNT; light++) {
        world.scene.conditions.light = (enum light)light;
        draw(&world, CAMERA_FRONT, image);
        levels[light] = brightness(image, 0, CAMERA_ROWS);
    }
    EXPECT(levels[LIGHT_DAY] > 1.2 * levels[LIGHT_DUSK]);
    EXPECT(levels[LIGHT_DUSK] > 2.0 * levels[LIGHT_NIGHT]);
    draw(&world, CAMERA_LEFT, other); /* still night */
    EXPECT(brightness(image, 48, 60) > 1.5 * brightness(other, 48, 60));

    world.scene.conditions.light = LIGHT_DAY;
    double contrast[2];
    for (int fog = 0; fog < 2; fog++) {
        world.scene.conditions.weather = fog ? WEATHER_FOG : WEATHER_CLEAR;
        world.scene.conditions.visibility_m = fog ? 50.0 : 200.0;
        world.scene.agent_count = world.scenario.agent_count = 0;
        draw(&world, CAMERA_FRONT, other);
        add(&world, AGENT_CAR, 45.0, 0.0, 4.5, 1.8, 1.5);
        draw(&world, CAMERA_FRONT, image);
        int largest = 0;
        for (int i = 0; i < CAMERA_ROWS * CAMERA_COLS; i++) {
            int difference = difference_at(i / CAMERA_COLS, i % CAMERA_COLS);
            largest = difference > largest ? difference : largest;
        }
        contrast[fog] = largest;
    }
    EXPECT(contrast[0] > 60 && contrast[1] < 0.5 * contrast[0]);

    const enum weather wet[] = {WEATHER_RAIN, WEATHER_HEAVY_RAIN, WEATHER_SNOW};
    for (size_t k = 0; k < COUNT_OF(wet); k++) {
        world.scene.conditions.weather = wet[k];
        world.scene.tick = 1;
        draw(&world, CAMERA_FRONT, image);
        world.scene.tick = 2;
        draw(&world, CAMERA_FRONT, other);
        int changed = 0;
        for (int i = 0; i < CAMERA_ROWS * CAMERA_COLS; i++) {
            changed += difference_at(i / CAMERA_COLS, i % CAMERA_COLS) > 0;
        }
        EXPECT(changed > 50 && changed < CAMERA_ROWS * CAMERA_COLS / 4);
    }
    raster_layers_destroy(world.layers);
}

/* A braking car lights up red. */
static void brake_lamps_show(void)
{
    struct world world;
    world_init(&world);
    add(&world, AGENT_CAR, 12.0, 0.0, 4.5, 1.8, 1.5);
    world.scene.agents[0].speed_mps = 10.0;
    draw(&world, CAMERA_FRONT, other);
    world.scene.agents[0].accel_mps2 = -4.0;
    draw(&world, CAMERA_FRONT, image);
    int redder = 0;
    for (int i = 0; i < CAMERA_ROWS * CAMERA_COLS; i++) {
        redder += image[i * 3] > other[i * 3] + 60 && image[i * 3] > image[i * 3 + 1] + 60;
    }
    EXPECT(redder >= 4);
    raster_layers_destroy(world.layers);
}

/* Every kind at every heading, close by and all around, in every weather and light: each draws
 * something, the same twice over, and nothing depends on what the buffer held. */
static void every_kind_draws_and_repeats(void)
{
    struct world world;
    world_init(&world);
    add(&world, AGENT_CAR, 0, 0, 3.0, 1.4, 1.6);
    for (int kind = 0; kind < AGENT_KIND_COUNT; kind++) {
        world.agents[0].kind = (enum agent_kind)kind;
        for (int k = 0; k < 12; k++) {
            double angle = -0.5 + k / 12.0;
            double range = 2.5 + k;
            world.scene.agents[0].pose =
                (struct pose){1.0 + range * cos(angle), range * sin(angle), k * 0.6};
            world.scene.conditions.weather = (enum weather)(k % WEATHER_COUNT);
            world.scene.conditions.light = (enum light)(k % LIGHT_COUNT);
            memset(image, 0, sizeof image);
            memset(other, 0xFF, sizeof other);
            draw(&world, CAMERA_FRONT, image);
            draw(&world, CAMERA_FRONT, other);
            EXPECT(memcmp(image, other, CAMERA_BYTES) == 0);
            world.scene.agents[0].present = false;
            draw(&world, CAMERA_FRONT, other);
            EXPECT(memcmp(image, other, CAMERA_BYTES) != 0);
            world.scene.agents[0].present = true;
        }
    }
    raster_layers_destroy(world.layers);
}

/* A crowd is drawn the same however short the lists of commands are that it is cut into, down to
 * one at a time, and when it is more than the longest holds. */
static void lists_may_be_short(void)
{
    static struct agent agents[LIMIT_AGENTS];
    static const uint32_t bounds[][2] = {{1, SCREEN_POINTS_MAX}, {7, 1000}, {1000, 20}, {60, 300}};
    const struct raster_level front = {camera_calibrations[CAMERA_FRONT], CAMERA_ROWS, CAMERA_COLS,
                                       CAMERA_FRONT};
    struct world world;
    world_init(&world);
    for (uint32_t count = 12; count <= LIMIT_AGENTS; count += LIMIT_AGENTS - 12) {
        for (uint32_t i = 0; i < count; i++) {
            agents[i] = (struct agent){.kind = (enum agent_kind)(i % AGENT_KIND_COUNT),
                                       .length_m = 2.0 + i % 3,
                                       .width_m = 1.5,
                                       .height_m = 1.0 + i % 4 * 0.5};
            world.scene.agents[i] =
                (struct agent_state){.pose = {1.5 + i % 16 * 2.5, i / 16 * 2.0 - 9.0, i * 0.7},
                                     .accel_mps2 = -2.0,
                                     .speed_mps = 3.0,
                                     .present = true};
        }
        world.scenario.agents = agents;
        world.scenario.agent_count = world.scene.agent_count = count;
        draw(&world, CAMERA_FRONT, image);
        for (size_t k = 0; k < COUNT_OF(bounds); k++) {
            memset(other, 0, sizeof other);
            raster_level_bounded(world.layers, &world.scenario, &world.scene, 5, &front,
                                 bounds[k][0], bounds[k][1], other);
            EXPECT(memcmp(image, other, CAMERA_BYTES) == 0);
        }
    }
    raster_layers_destroy(world.layers);
}

/* An image ten times as fine, averaged down, is the small one but for its edges; nor do sizes that
 * no tile and no band divides write beside the image. */
static void any_size_shows_the_same(void)
{
    enum { TIMES = 10 };
    static const int32_t sizes[][2] = {{2, 2}, {6, 97}, {10, 95}, {66, 193}, {190, 1000}};
    struct raster_level level = {camera_calibrations[CAMERA_FRONT], CAMERA_ROWS * TIMES,
                                 CAMERA_COLS * TIMES, CAMERA_FRONT};
    uint8_t *large = malloc((size_t)CAMERA_BYTES * TIMES * TIMES + 1);
    struct world world;
    CHECK(large != NULL);
    world_init(&world);
    add(&world, AGENT_CAR, 14.0, 2.5, 4.5, 1.8, 1.5);
    add(&world, AGENT_BUS, 26.0, 9.0, 12.0, 2.5, 3.2);
    draw(&world, CAMERA_FRONT, image);
    raster_level(world.layers, &world.scenario, &world.scene, 5, &level, large);
    double difference = 0.0;
    for (int i = 0; i < CAMERA_BYTES; i++) {
        int row = i / 3 / CAMERA_COLS;
        int col = i / 3 % CAMERA_COLS;
        int sum = 0;
        for (int k = 0; k < TIMES * TIMES; k++) {
            int r = row * TIMES + k / TIMES;
            int c = col * TIMES + k % TIMES;
            sum += large[(r * CAMERA_COLS * TIMES + c) * 3 + i % 3];
        }
        difference += fabs(image[i] - (double)sum / (TIMES * TIMES));
    }
    EXPECT(difference / CAMERA_BYTES < 2.0);
    for (size_t k = 0; k < COUNT_OF(sizes); k++) {
        level.rows = sizes[k][0];
        level.cols = sizes[k][1];
        size_t bytes = (size_t)(level.rows * level.cols) * 3;
        large[bytes] = 77;
        raster_level(world.layers, &world.scenario, &world.scene, 5, &level, large);
        EXPECT(large[bytes] == 77);
    }
    free(large);
    raster_layers_destroy(world.layers);
}

/* Moving map, ego and agents by the same exact amount changes no byte; a town's pavement, paint and
 * texture included. */
static void a_moved_world_looks_the_same(void)
{
    struct world world;
    for (int motion = 0; motion < 2; motion++) {
        struct error error;
        double x = motion ? 524288.0 : 0.0;
        double y = motion ? -262144.0 : 0.0;
        world_init(&world);
        raster_layers_destroy(world.layers);
        for (int i = 0; i < 2; i++) {
            world.road.points[i].x_m += x;
            world.road.points[i].y_m += y;
        }
        EXPECT_OK(raster_layers_create(&world.road.map, &world.layers, &error), error);
        snprintf(world.scenario.slices.value[SLICE_ROAD],
                 sizeof world.scenario.slices.value[SLICE_ROAD], "urban");
        add(&world, AGENT_VAN, 14.0 + x, 3.0 + y, 5.0, 2.0, 2.2);
        world.scene.ego.pose = (struct pose){x + 3.25, y - 1.5, 0.25};
        draw(&world, CAMERA_FRONT, motion ? other : image);
        raster_layers_destroy(world.layers);
    }
    EXPECT(memcmp(image, other, CAMERA_BYTES) == 0);
}

/* Beside the map, and absurdly far from it, the ground is open land: no road, no paint, nothing out
 * of bounds. */
static void off_the_map_is_open_land(void)
{
    static const double places_m[] = {-700.0, 1e5, 1e9, -1e12};
    struct world world;
    world_init(&world);
    for (size_t p = 0; p < COUNT_OF(places_m); p++) {
        world.scene.ego.pose = (struct pose){places_m[p], places_m[p], 1.0};
        draw(&world, CAMERA_FRONT, image);
        for (int i = (CAMERA_ROWS / 2 + 8) * CAMERA_COLS; i < CAMERA_ROWS * CAMERA_COLS; i++) {
            EXPECT(image[i * 3 + 1] > image[i * 3] + 8 && image[i * 3 + 1] > image[i * 3 + 2] + 8);
        }
    }
    raster_layers_destroy(world.layers);
}

/* The bytes are a contract between machines and compilers, so their hash over cameras, weathers and
 * lights is fixed here. A change that means to alter pictures updates it. */
static void bytes_do_not_depend_on_the_compiler(void)
{
    struct world world;
    world_init(&world);
    add(&world, AGENT_CAR, 14.0, 2.5, 4.5, 1.8, 1.5);
    add(&world, AGENT_PEDESTRIAN, 9.0, -4.5, 0.5, 0.5, 1.7);
    add(&world, AGENT_BUS, 6.0, 9.0, 12.0, 2.5, 3.2);
    world.scene.agents[0].accel_mps2 = -3.0;
    world.scene.agents[0].speed_mps = 8.0;
    uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
    for (int k = 0; k < WEATHER_COUNT * LIGHT_COUNT * CAMERA_COUNT; k++) {
        world.scene.tick = (uint32_t)k;
        world.scene.ego.pose = (struct pose){k * 0.375, 0.25, k * 0.0625 - 1.0};
        world.scene.conditions.weather = (enum weather)(k % WEATHER_COUNT);
        world.scene.conditions.light = (enum light)(k / WEATHER_COUNT % LIGHT_COUNT);
        world.scene.conditions.visibility_m = 40.0 + k * 8.0;
        draw(&world, (enum camera_index)(k / WEATHER_COUNT / LIGHT_COUNT), image);
        for (int i = 0; i < CAMERA_BYTES; i++) {
            hash = (hash ^ image[i]) * UINT64_C(0x100000001B3);
        }
    }
    if (hash != CAMERA_HASH) {
        printf("# hash is now 0x%016llX\n", (unsigned long long)hash);
    }
    EXPECT(hash == CAMERA_HASH);
    raster_layers_destroy(world.layers);
}

int main(void)
{
    return TEST_RUN(
        TEST(boxes_land_where_the_calibration_says), TEST(markings_land_where_the_calibration_says),
        TEST(nearer_surfaces_hide_farther_ones), TEST(light_and_weather_show),
        TEST(brake_lamps_show), TEST(every_kind_draws_and_repeats), TEST(lists_may_be_short),
        TEST(any_size_shows_the_same), TEST(a_moved_world_looks_the_same),
        TEST(off_the_map_is_open_land), TEST(bytes_do_not_depend_on_the_compiler));
}
