/*
 * Measures of pictures: what the renderer draws of a drive is fine in every weather and light, and
 * each way to spoil it is named by the first spoilt picture.
 */
#include "base/check.h"
#include "base/rng.h"
#include "engine/rigs/watch.h"
#include "engine/sensors/raster.h"
#include "schemas/rig/rig.h"
#include "tests/engine/road.h"
#include "tests/harness.h"

#include <math.h>
#include <stdlib.h>

enum { WIDTH = 210, HEIGHT = 124, BYTES = WIDTH * HEIGHT * 3, PICTURES = 16 };

struct world {
    struct scenario scenario;
    struct agent agents[1];
    struct road road;
    struct scene scene;
    struct raster_layers *layers;
    struct raster_rays *rays;
};

static uint8_t picture[BYTES];
static uint8_t spoilt[BYTES];

/* A road along x and a car ahead of ego, which drives 1 m a picture. */
static void world_init(struct world *world)
{
    struct error error;
    memset(world, 0, sizeof *world);
    world->scenario.agents = world->agents;
    world->scenario.agent_count = world->scene.agent_count = 1;
    world->agents[0] =
        (struct agent){.kind = AGENT_CAR, .length_m = 4.5, .width_m = 1.8, .height_m = 1.5};
    world->scene.agents[0] = (struct agent_state){.pose = {30.0, 1.0, 0.0}, .present = true};
    world->scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
    const struct rig_camera camera = {
        .id = "front",
        .width = WIDTH,
        .height = HEIGHT,
        .rate_hz = 10,
        .pose = {.z_m = 1.5, .pitch_rad = 0.05},
        .lens = {.fx = 120.0, .fy = 120.0, .cx = 104.5, .cy = 61.5, .max_angle_rad = NAN}};
    world->layers = road_init(&world->road);
    EXPECT_OK(raster_rays_create(&camera, 0, &world->rays, &error), error);
}

static void world_finish(struct world *world)
{
    raster_rays_destroy(world->rays);
    raster_layers_destroy(world->layers);
}

static enum watch_fault show(struct watch_camera *watch, const uint8_t *rgb, int index,
                             double moved_m)
{
    double found;
    double expected;
    return watch_picture(watch, rgb, BYTES, 0.1 * index, moved_m, NULL, NULL, &found, &expected);
}

static void draw(struct world *world, int index)
{
    world->scene.tick = (uint32_t)index;
    world->scene.ego.pose.x_m = index;
    raster_rays_draw(world->layers, &world->scenario, &world->scene, 5, world->rays, picture);
}

static void drives_are_fine_in_every_condition(void)
{
    struct world world;
    world_init(&world);
    for (int i = 0; i < WEATHER_COUNT * LIGHT_COUNT; i++) {
        struct watch_camera watch = {.width = WIDTH, .height = HEIGHT};
        world.scene.conditions.weather = (enum weather)(i / LIGHT_COUNT);
        world.scene.conditions.light = (enum light)(i % LIGHT_COUNT);
        for (int k = 0; k < PICTURES; k++) {
            draw(&world, k);
            EXPECT_INT(show(&watch, picture, k, 1.0), WATCH_FINE);
        }
    }
    world_finish(&world);
}

static void spoil(enum watch_fault fault)
{
    for (int32_t i = 0; i < BYTES; i++) {
        uint32_t counter[4] = {0, RNG_STREAM_TEST, (uint32_t)i, 0};
        uint32_t words[4];
        int32_t sum = 0;
        switch (fault) {
        case WATCH_DARK:
        case WATCH_BRIGHT:
            spoilt[i] = fault == WATCH_DARK ? 2 : 255;
            break;
        case WATCH_CONTRAST:
            spoilt[i] = (uint8_t)(picture[i] / 4 + 90);
            break;
        default: /* noise */
            rng_philox(1, counter, words);
            sum = picture[i] + (int32_t)(words[0] % 61) - 30;
            spoilt[i] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
        }
    }
}

static void spoilt_pictures_are_named(void)
{
    static const enum watch_fault faults[] = {WATCH_DARK, WATCH_BRIGHT, WATCH_CONTRAST,
                                              WATCH_SHARPNESS};
    struct world world;
    struct watch_camera watch = {.width = WIDTH, .height = HEIGHT};
    double found;
    double expected;
    world_init(&world);
    for (int k = 0; k < PICTURES; k++) {
        draw(&world, k);
        EXPECT_INT(show(&watch, picture, k, 1.0), WATCH_FINE);
    }
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        struct watch_camera own = watch;
        spoil(faults[i]);
        EXPECT_INT(show(&own, spoilt, PICTURES, 1.0), faults[i]);
    }
    struct watch_camera own = watch;
    EXPECT_INT(watch_picture(&own, NULL, 0, 2.0, 1.0, NULL, NULL, &found, &expected),
               WATCH_MISSING);
    EXPECT_INT(watch_picture(&own, picture, BYTES - 3, 2.0, 1.0, NULL, NULL, &found, &expected),
               WATCH_SIZE);
    EXPECT(found == BYTES - 3 && expected == BYTES);
    world_finish(&world);
}

/* A camera that stands still is found in the third repeat of a picture, once ego has moved half a
 * metre; a picture that comes twice by chance is not, nor one that ego need not have changed. */
static void a_frozen_camera_is_named_and_chance_is_not(void)
{
    struct world world;
    struct watch_camera watch = {.width = WIDTH, .height = HEIGHT};
    world_init(&world);
    draw(&world, 0);
    EXPECT_INT(show(&watch, picture, 0, 1.0), WATCH_FINE);
    for (int k = 1; k < 12; k++) { /* each picture twice */
        draw(&world, k / 2);
        EXPECT_INT(show(&watch, picture, k, 1.0), WATCH_FINE);
    }
    for (int k = 12; k < 20; k++) { /* ego stands */
        EXPECT_INT(show(&watch, picture, k, 0.0), WATCH_FINE);
    }
    EXPECT_INT(show(&watch, picture, 20, 0.4), WATCH_FINE);
    EXPECT_INT(show(&watch, picture, 21, 0.2), WATCH_FROZEN);
    draw(&world, 11);
    EXPECT_INT(show(&watch, picture, 22, 1.0), WATCH_FINE);
    EXPECT_INT(show(&watch, picture, 23, 1.0), WATCH_FINE);
    EXPECT_INT(show(&watch, picture, 24, 1.0), WATCH_FINE);
    EXPECT_INT(show(&watch, picture, 25, 1.0), WATCH_FROZEN);
    world_finish(&world);
}

/* Bounds of a world's own hold in place of the usual ones; a tally has what pictures measure. */
static void own_bounds_hold(void)
{
    struct world world;
    struct watch_camera watch = {.width = WIDTH, .height = HEIGHT};
    struct watch_tally tally = {0};
    double bound[WATCH_MEASURE_COUNT];
    double measures[WATCH_MEASURE_COUNT];
    double found;
    double expected;
    world_init(&world);
    for (int k = 0; k < PICTURES; k++) {
        draw(&world, k);
        EXPECT_INT(
            watch_picture(&watch, picture, BYTES, 0.1 * k, 1.0, NULL, measures, &found, &expected),
            WATCH_FINE);
        watch_tally_add(&tally, measures);
    }
    EXPECT_INT(tally.pictures, PICTURES);
    EXPECT(tally.most[WATCH_CONTRAST_RATIO] < 2.0 && tally.least[WATCH_CONTRAST_RATIO] == 1.0);
    EXPECT(tally.mean[WATCH_CONTRAST_RATIO] > 1.0 &&
           tally.mean[WATCH_CONTRAST_RATIO] < tally.most[WATCH_CONTRAST_RATIO]);
    spoil(WATCH_CONTRAST); /* a spread of a sixteenth */
    for (int i = 0; i < WATCH_MEASURE_COUNT; i++) {
        bound[i] = watch_bounds[i].most;
    }
    struct watch_camera own = watch;
    EXPECT_INT(watch_picture(&own, spoilt, BYTES, 2.0, 1.0, bound, NULL, &found, &expected),
               WATCH_FINE);
    bound[WATCH_CONTRAST_RATIO] = 10.0;
    own = watch;
    EXPECT_INT(watch_picture(&own, spoilt, BYTES, 2.0, 1.0, bound, NULL, &found, &expected),
               WATCH_CONTRAST);
    EXPECT(found > 14.0 && found < 18.0 && expected == 10.0);
    world_finish(&world);
}

/* Sums of a picture that can be counted by hand. */
static void sums_are_whole_numbers(void)
{
    static const uint8_t rgb[2][2][3] = {{{0, 0, 0}, {255, 255, 255}}, {{8, 8, 8}, {80, 0, 0}}};
    struct watch_sums sums;
    watch_measure(&rgb[0][0][0], 2, 2, &sums);
    EXPECT_INT(sums.pixels, 4);
    EXPECT_INT(sums.sum, 0 + 255 + 8 + 20);
    EXPECT_INT(sums.squares, 255 * 255 + 64 + 400);
    EXPECT_INT(sums.steps, 255 + 8 + 235 + 12);
    EXPECT_INT(sums.dark, 1);
    EXPECT_INT(sums.bright, 1);
}

int main(void)
{
    return TEST_RUN(TEST(drives_are_fine_in_every_condition), TEST(spoilt_pictures_are_named),
                    TEST(a_frozen_camera_is_named_and_chance_is_not), TEST(own_bounds_hold),
                    TEST(sums_are_whole_numbers));
}
