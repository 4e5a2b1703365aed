/*
 * Actors in pictures: whoever is drawn where it is, is found in every weather, light and style, and
 * one that is left out or drawn elsewhere is named at the third look in a row, where it covers 200
 * pixels and nothing hides it.
 */
#include "base/check.h"
#include "base/rng.h"
#include "engine/rigs/actors.h"
#include "tests/engine/road.h"
#include "tests/harness.h"

#include <math.h>
#include <stdlib.h>

enum { PIXELS_MAX = 640 * 360, LOOKS = 6 };

struct stage {
    struct scenario scenario;
    struct agent agents[2];
    struct road road;
    struct scene scene;
    struct raster_layers *layers;
    struct rig_camera camera;
    struct raster_rays *rays;
    struct actors *actors;
};

static uint8_t picture[PIXELS_MAX * 3];

/* A road along x, a car ahead of ego and, where it is present, a truck before it. */
static void stage_init(struct stage *stage, int32_t width, int32_t height, enum lens_model model)
{
    struct error error;
    memset(stage, 0, sizeof *stage);
    stage->scenario.agents = stage->agents;
    stage->scenario.agent_count = stage->scene.agent_count = 2;
    stage->agents[0] =
        (struct agent){.kind = AGENT_CAR, .length_m = 4.5, .width_m = 1.8, .height_m = 1.5};
    stage->agents[1] =
        (struct agent){.kind = AGENT_TRUCK, .length_m = 8, .width_m = 2.6, .height_m = 3.5};
    stage->scene.agents[0] = (struct agent_state){.pose = {18.0, 0.0, 0.0}, .present = true};
    stage->scene.agents[1] = (struct agent_state){.pose = {12.0, 0.5, 0.0}};
    stage->scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
    stage->camera = (struct rig_camera){.id = "front",
                                        .width = width,
                                        .height = height,
                                        .rate_hz = 10,
                                        .pose = {.z_m = 1.5, .pitch_rad = 0.05},
                                        .lens = {.model = model,
                                                 .fx = 0.5 * width,
                                                 .fy = 0.5 * width,
                                                 .cx = 0.5 * width - 0.5,
                                                 .cy = 0.5 * height - 0.5,
                                                 .max_angle_rad = NAN}};
    stage->layers = road_init(&stage->road);
    EXPECT_OK(raster_rays_create(&stage->camera, 0, &stage->rays, &error), error);
    EXPECT_OK(actors_create(&stage->camera, 0, &stage->actors, &error), error);
}

static void stage_finish(struct stage *stage)
{
    actors_destroy(stage->actors);
    raster_rays_destroy(stage->rays);
    raster_layers_destroy(stage->layers);
}

/* Draws the scene with the car `away_m` to the left, or without it; ego drives a metre a look. */
static void draw(struct stage *stage, int index, bool present, double away_m)
{
    stage->scene.tick = (uint32_t)(ACTORS_LOOK_TICKS * index);
    struct scene shown = stage->scene;
    shown.agents[0].present = present;
    shown.agents[0].pose.y_m += away_m;
    raster_rays_draw(stage->layers, &stage->scenario, &shown, 5, stage->rays, picture);
}

static enum actors_fault look(struct stage *stage, struct actors_seen *seen,
                              struct actors_finding *finding)
{
    return actors_look(stage->actors, stage->layers, &stage->scenario, &stage->scene, 5, picture,
                       seen, finding);
}

static void drives_are_fine_in_every_condition(void)
{
    static const struct {
        int32_t width, height;
        enum lens_model model;
    } cameras[] = {{640, 360, LENS_PINHOLE}, {210, 124, LENS_PINHOLE}, {320, 240, LENS_FISHEYE}};
    for (size_t k = 0; k < COUNT_OF(cameras); k++) {
        struct stage stage;
        stage_init(&stage, cameras[k].width, cameras[k].height, cameras[k].model);
        for (int i = 0; i < WEATHER_COUNT * LIGHT_COUNT; i++) {
            struct actors_seen seen = {{0}};
            struct actors_finding finding;
            stage.scene.conditions.weather = (enum weather)(i / LIGHT_COUNT);
            stage.scene.conditions.light = (enum light)(i % LIGHT_COUNT);
            stage.scene.agents[1].present = i % 2 == 1;
            draw(&stage, i, true, 0.0);
            EXPECT_INT(look(&stage, &seen, &finding), ACTORS_FINE);
            EXPECT_INT(seen.missed[0] + seen.missed[1], 0);
        }
        stage_finish(&stage);
    }
}

/* Other colours, darkness and noise of a world's own. */
static void restyle(int style, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        uint32_t counter[4] = {0, RNG_STREAM_TEST, (uint32_t)i, 0};
        uint32_t words[4];
        rng_philox(1, counter, words);
        int32_t noisy = picture[i] + (int32_t)(words[0] % 31) - 15;
        picture[i] = style == 0   ? (uint8_t)(255 - picture[i])
                     : style == 1 ? (uint8_t)(picture[i] / 2)
                     : style == 2 ? (uint8_t)(noisy < 0     ? 0
                                              : noisy > 255 ? 255
                                                            : noisy)
                                  : (uint8_t)(picture[i] / 3 + 120);
    }
}

static void styles_of_worlds_are_fine(void)
{
    struct stage stage;
    struct actors_finding finding;
    stage_init(&stage, 640, 360, LENS_PINHOLE);
    for (int style = 0; style < 4; style++) {
        struct actors_seen seen = {{0}};
        draw(&stage, 0, true, 0.0);
        restyle(style, sizeof picture);
        EXPECT_INT(look(&stage, &seen, &finding), ACTORS_FINE);
        EXPECT_INT(seen.missed[0], 0);
        draw(&stage, 0, false, 0.0);
        restyle(style, sizeof picture);
        look(&stage, &seen, &finding);
        EXPECT_INT(seen.missed[0], style != 2); /* noise may hide that nobody is there */
    }
    stage_finish(&stage);
}

static void who_is_not_there_is_named(void)
{
    static const struct {
        double away_m;
        bool present;
        enum actors_fault fault;
    } cases[] = {
        {0, false, ACTORS_ABSENT}, {-6, true, ACTORS_DISPLACED}, {6, true, ACTORS_DISPLACED}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct stage stage;
        struct actors_seen seen = {{0}};
        struct actors_finding finding = {0};
        stage_init(&stage, 640, 360, LENS_PINHOLE);
        for (int n = 0; n < LOOKS; n++) { /* once in a while it is seen, which begins anew */
            draw(&stage, n, n == 2 || cases[i].present, n == 2 ? 0.0 : cases[i].away_m);
            EXPECT_INT(look(&stage, &seen, &finding),
                       n == LOOKS - 1 ? cases[i].fault : ACTORS_FINE);
        }
        EXPECT_INT(finding.agent, 0);
        EXPECT(finding.found < finding.expected && finding.expected <= 15.0);
        stage_finish(&stage);
    }
}

/* Left out behind a truck, far away, behind the camera, and in fog: nobody can tell. */
static void who_cannot_be_seen_is_not_missed(void)
{
    for (int i = 0; i < 4; i++) {
        struct stage stage;
        struct actors_seen seen = {{0}};
        struct actors_finding finding;
        stage_init(&stage, 640, 360, LENS_PINHOLE);
        stage.scene.agents[1].present = i == 0;
        stage.scene.agents[0].pose.x_m = i == 0 ? 20.0 : i == 1 ? 80.0 : i == 2 ? -15.0 : 50.0;
        stage.scene.agents[0].pose.y_m = i == 0 ? 0.5 : 1.0;
        if (i == 3) {
            stage.scene.conditions = (struct conditions){WEATHER_FOG, LIGHT_DAY, 0.8, 40.0};
        }
        for (int n = 0; n <= ACTORS_LOOKS; n++) {
            draw(&stage, n, false, 0.0);
            EXPECT_INT(look(&stage, &seen, &finding), ACTORS_FINE);
            EXPECT_INT(seen.missed[0], 0);
        }
        stage_finish(&stage);
    }
}

int main(void)
{
    return TEST_RUN(TEST(drives_are_fine_in_every_condition), TEST(styles_of_worlds_are_fine),
                    TEST(who_is_not_there_is_named), TEST(who_cannot_be_seen_is_not_missed));
}
