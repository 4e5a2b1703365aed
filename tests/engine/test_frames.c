/*
 * Frames of a camera between ticks: moments against arcs that are known, rates and shutters against
 * pictures of a single moment, a pole's lean against where the lens puts it, and parts of a picture
 * that threads draw.
 */
#include "base/check.h"
#include "base/units.h"
#include "engine/lens/lens.h"
#include "engine/rigs/frames.h"
#include "tests/engine/road.h"
#include "tests/harness.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

struct world {
    struct scenario scenario;
    struct agent agents[2];
    struct road road;
    struct scene before, after;
    struct raster_layers *layers;
};

/* A road along x; a pole 10 m ahead of ego that drives to the left at 10 m/s. */
static void world_init(struct world *world)
{
    memset(world, 0, sizeof *world);
    world->scenario.agents = world->agents;
    world->scenario.agent_count = 1;
    world->agents[0] =
        (struct agent){.kind = AGENT_OBJECT, .length_m = 0.4, .width_m = 0.4, .height_m = 3.0};
    world->before.agent_count = 1;
    world->before.tick = 6;
    world->before.conditions = (struct conditions){WEATHER_RAIN, LIGHT_DAY, 1.0, 200.0};
    world->before.agents[0] =
        (struct agent_state){.pose = {10.0, -0.5, PI_RAD / 2}, .speed_mps = 10.0, .present = true};
    world->after = world->before;
    world->after.tick = 7;
    world->after.agents[0].pose.y_m = 0.5;
    world->layers = road_init(&world->road);
}

static struct rig_camera camera_of(bool level, enum rig_shutter shutter, double shutter_ms)
{
    return (struct rig_camera){.id = "front",
                               .width = 320,
                               .height = 200,
                               .rate_hz = 30.0,
                               .shutter = shutter,
                               .shutter_ms = shutter_ms,
                               .pose = {0.0, 0.0, 1.5, level ? 0.0 : 0.05, 0.0, 0.0},
                               .lens = {.model = level ? LENS_PINHOLE : LENS_FISHEYE,
                                        .fx = 200.0,
                                        .fy = 200.0,
                                        .cx = 159.5,
                                        .cy = 99.5,
                                        .max_angle_rad = NAN}};
}

static struct raster_rays *rays_of(const struct rig_camera *camera)
{
    struct raster_rays *rays = NULL;
    struct error error;
    EXPECT_OK(raster_rays_create(camera, 0, &rays, &error), error);
    return rays;
}

enum { BYTES = 320 * 200 * 3 };
static uint8_t found[BYTES];
static uint8_t expected[BYTES];

static void moments_lie_on_the_arc(void)
{
    struct world world;
    static struct scene scene;
    const double radius_m = 40.0;
    const double from_mps = 12.0;
    const double accel_mps2 = -6.0;
    world_init(&world);
    world.before.ego = (struct ego_state){.pose = {100.0, 200.0, 3.1}, .speed_mps = from_mps};
    world.after.ego = world.before.ego;
    double way_m = (from_mps + 0.5 * accel_mps2 * TICK_S) * TICK_S;
    for (int i = 0; i <= 20; i++) {
        double t = i / 20.0;
        double s = (from_mps + 0.5 * accel_mps2 * TICK_S * t) * TICK_S * t;
        double end = 3.1 + way_m / radius_m;
        world.after.ego.pose.x_m = 100.0 + radius_m * (sin(end) - sin(3.1));
        world.after.ego.pose.y_m = 200.0 - radius_m * (cos(end) - cos(3.1));
        world.after.ego.pose.heading_rad = end > PI_RAD ? end - 2 * PI_RAD : end;
        world.after.ego.speed_mps = from_mps + accel_mps2 * TICK_S;
        frames_scene(&world.before, &world.after, t, &scene);
        double at = 3.1 + s / radius_m;
        EXPECT(fabs(scene.ego.pose.x_m - 100.0 - radius_m * (sin(at) - sin(3.1))) < 1e-3);
        EXPECT(fabs(scene.ego.pose.y_m - 200.0 + radius_m * (cos(at) - cos(3.1))) < 1e-3);
        EXPECT(fabs(remainder(scene.ego.pose.heading_rad - at, 2 * PI_RAD)) < 1e-3);
        EXPECT(fabs(scene.agents[0].pose.y_m - (t - 0.5)) < 1e-12);
    }
    frames_scene(&world.before, &world.after, 0.0, &scene);
    EXPECT(memcmp(&scene, &world.before, sizeof scene) == 0);
    frames_scene(&world.before, &world.after, 1.0, &scene);
    EXPECT(memcmp(&scene, &world.after, sizeof scene) == 0);
    raster_layers_destroy(world.layers);
}

/* Who comes, goes or is moved far is where the nearer tick has it, not on the way. */
static void jumps_have_no_middle(void)
{
    struct world world;
    static struct scene scene;
    world_init(&world);
    world.after.agents[0].pose.x_m = 80.0;
    frames_scene(&world.before, &world.after, 0.4, &scene);
    EXPECT(scene.agents[0].pose.x_m == 10.0);
    frames_scene(&world.before, &world.after, 0.6, &scene);
    EXPECT(scene.agents[0].pose.x_m == 80.0);
    world.after.agents[0].present = false;
    frames_scene(&world.before, &world.after, 0.4, &scene);
    EXPECT(scene.agents[0].present);
    frames_scene(&world.before, &world.after, 0.6, &scene);
    EXPECT(!scene.agents[0].present);
    raster_layers_destroy(world.layers);
}

/* The last of a tick's frames is that of a slow camera; the others show bodies on their way. */
static void fast_cameras_meet_slow_ones_at_ticks(void)
{
    for (int level = 0; level < 2; level++) {
        const struct rig_camera camera = camera_of(level == 1, SHUTTER_GLOBAL, 0.0);
        struct raster_rays *rays = rays_of(&camera);
        struct world world;
        static struct scene middle;
        world_init(&world);
        EXPECT_INT(rig_camera_frames(&camera), 3);
        raster_rays_draw(world.layers, &world.scenario, &world.after, 5, rays, expected);
        frames_draw(world.layers, &world.scenario, &world.before, &world.after, 5, &camera, rays, 2,
                    found);
        EXPECT(memcmp(found, expected, BYTES) == 0);
        world.before.conditions.weather = world.after.conditions.weather = WEATHER_CLEAR;
        frames_scene(&world.before, &world.after, 2.0 / 3.0, &middle);
        raster_rays_draw(world.layers, &world.scenario, &middle, 5, rays, expected);
        frames_draw(world.layers, &world.scenario, &world.before, &world.after, 5, &camera, rays, 1,
                    found);
        EXPECT(memcmp(found, expected, BYTES) == 0);
        raster_rays_destroy(rays);
        raster_layers_destroy(world.layers);
    }
}

/* A shutter that rolls from any side takes the picture of one that does not, if nothing moves.
 */
static void still_scenes_do_not_lean(void)
{
    for (int i = SHUTTER_GLOBAL + 1; i < SHUTTER_COUNT; i++) {
        for (int level = 0; level < 2; level++) {
            const struct rig_camera camera = camera_of(level == 1, (enum rig_shutter)i, 30.0);
            struct raster_rays *rays = rays_of(&camera);
            struct world world;
            int different = 0;
            world_init(&world);
            world.before.agents[0].pose.y_m = 0.5;
            world.before.agents[0].speed_mps = world.after.agents[0].speed_mps = 0.0;
            raster_rays_draw(world.layers, &world.scenario, &world.after, 5, rays, expected);
            frames_draw(world.layers, &world.scenario, &world.before, &world.after, 5, &camera,
                        rays, 2, found);
            for (int k = 0; k < BYTES; k++) {
                different += found[k] != expected[k];
            }
            /* Clouds of a tile of columns are looked at alike, and a band is a tile of its own. */
            EXPECT(different <= (i < SHUTTER_ROLLING_LEFT || level == 1 ? 0 : BYTES / 50));
            raster_rays_destroy(rays);
            raster_layers_destroy(world.layers);
        }
    }
}

/* Middle of the pixels of a row that the pole changes; -1: none. */
static double middle_of(int32_t row)
{
    double sum = 0.0;
    double count = 0.0;
    for (int32_t col = 0; col < 320; col++) {
        int change = 0;
        for (int k = 0; k < 3; k++) {
            change += abs(found[(row * 320 + col) * 3 + k] - expected[(row * 320 + col) * 3 + k]);
        }
        sum += change * col;
        count += change;
    }
    return count > 100.0 ? sum / count : -1.0;
}

/* A pole that crosses leans by what it drives between rows: within half a pixel of where the lens
 * puts its axis at a row's own time. */
static void poles_lean_as_they_move(void)
{
    static const enum rig_shutter shutters[] = {SHUTTER_ROLLING_TOP, SHUTTER_ROLLING_BOTTOM};
    for (size_t i = 0; i < COUNT_OF(shutters); i++) {
        struct rig_camera camera = camera_of(true, shutters[i], 45.0);
        struct world world;
        int rows = 0;
        camera.rate_hz = 10.0;
        struct raster_rays *rays = rays_of(&camera);
        world_init(&world);
        world.before.conditions.weather = world.after.conditions.weather = WEATHER_CLEAR;
        frames_draw(world.layers, &world.scenario, &world.before, &world.after, 5, &camera, rays, 0,
                    found);
        world.scenario.agent_count = world.before.agent_count = world.after.agent_count = 0;
        raster_rays_draw(world.layers, &world.scenario, &world.after, 5, rays, expected);
        for (int32_t row = 72; row < 118; row++) { /* from the pole's top to half a metre of foot */
            double share = row / 199.0;
            double exposed = shutters[i] == SHUTTER_ROLLING_TOP ? share : 1.0 - share;
            double y_m = 0.5 - 10.0 * 0.045 * (1.0 - exposed);
            double u = 159.5 - y_m / (10.0 - 0.2) * 200.0;
            EXPECT(fabs(middle_of(row) - u) < 0.5);
            rows++;
        }
        EXPECT(rows == 46);
        raster_rays_destroy(rays);
        raster_layers_destroy(world.layers);
    }
}

struct half {
    const struct world *world;
    const struct raster_rays *rays;
    struct raster_area area;
};

static void *draw_half(void *context)
{
    const struct half *half = context;
    raster_rays_draw_area(half->world->layers, &half->world->scenario, &half->world->after, 5,
                          half->rays, &half->area, found);
    return NULL;
}

/* Two threads that draw a picture's halves make the picture. */
static void threads_share_a_picture(void)
{
    for (int level = 0; level < 2; level++) {
        const struct rig_camera camera = camera_of(level == 1, SHUTTER_GLOBAL, 0.0);
        struct raster_rays *rays = rays_of(&camera);
        struct world world;
        pthread_t thread;
        world_init(&world);
        raster_rays_draw(world.layers, &world.scenario, &world.after, 5, rays, expected);
        memset(found, 0xA5, sizeof found);
        struct half left = {&world, rays, {0, 200, 0, 192}};
        struct half right = {&world, rays, {0, 200, 192, 320}};
        CHECK(pthread_create(&thread, NULL, draw_half, &left) == 0);
        draw_half(&right);
        CHECK(pthread_join(thread, NULL) == 0);
        EXPECT(memcmp(found, expected, BYTES) == 0);
        raster_rays_destroy(rays);
        raster_layers_destroy(world.layers);
    }
}

int main(void)
{
    return TEST_RUN(TEST(moments_lie_on_the_arc), TEST(jumps_have_no_middle),
                    TEST(fast_cameras_meet_slow_ones_at_ticks), TEST(still_scenes_do_not_lean),
                    TEST(poles_lean_as_they_move), TEST(threads_share_a_picture));
}
