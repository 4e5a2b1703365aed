/*
 * Goal: traffic lights are drawn where they stand, as they show, and nowhere else.
 * Method: one lane with one signal, ego before, beyond and beside it; lamps by the camera's
 * formula, stop lines by the grid's; what a scene does not know changes no byte; lights of recorded
 * scenes beside those of a world that drives them.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "engine/sensors/raster.h"
#include "engine/traffic/signals.h"
#include "tests/harness.h"

#include <math.h>

#define STOP_X_M 30.0

struct world {
    struct scenario scenario;
    struct vec2 points[2];
    double widths[2];
    struct lane lane;
    uint32_t controlled;
    struct signal_phase phases[2];
    struct traffic_signal signal;
    struct scene scene;
    struct raster_layers *layers;
};

static void world_init(struct world *world, bool signals)
{
    struct error error;
    memset(world, 0, sizeof *world);
    world->points[0] = (struct vec2){-100, 0};
    world->points[1] = (struct vec2){STOP_X_M + 1, 0};
    world->widths[0] = world->widths[1] = 4.0;
    world->lane = (struct lane){.point_count = 2,
                                .centre_line = world->points,
                                .width_m = world->widths,
                                .left = -1,
                                .right = -1};
    world->phases[0] = (struct signal_phase){TRAFFIC_LIGHT_GREEN, 5.0};
    world->phases[1] = (struct signal_phase){TRAFFIC_LIGHT_RED, 5.0};
    world->signal = (struct traffic_signal){.lane_count = 1,
                                            .lanes = &world->controlled,
                                            .stop_m = 1.0,
                                            .repeats = true,
                                            .phase_count = 2,
                                            .phases = world->phases};
    world->scenario.map = (struct map){.lane_count = 1,
                                       .lanes = &world->lane,
                                       .signal_count = signals ? 1 : 0,
                                       .signals = &world->signal};
    world->scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
    world->scene.ego.pose.x_m = 15.0;
    EXPECT_OK(raster_layers_create(&world->scenario.map, &world->layers, &error), error);
}

static void photograph(struct world *world, enum traffic_light light, uint8_t *out)
{
    world->scene.signal_light[0] = (uint8_t)light;
    raster_camera(world->layers, &world->scenario, &world->scene, 5, CAMERA_FRONT, out);
}

/* The pixel of a point of ego's frame, front camera (schemas/observation.md). */
static const uint8_t *pixel(const uint8_t *image, double x_m, double y_m, double z_m)
{
    const struct camera_calibration *cal = &camera_calibrations[CAMERA_FRONT];
    double focal = CAMERA_COLS / 2.0 / tan(cal->hfov_rad / 2);
    double u = CAMERA_COLS / 2.0 - focal * (y_m - cal->y_m) / (x_m - cal->x_m);
    double v = CAMERA_ROWS / 2.0 - focal * (z_m - cal->z_m) / (x_m - cal->x_m);
    CHECK(u >= 0 && u < CAMERA_COLS && v >= 0 && v < CAMERA_ROWS);
    return image + ((int)v * CAMERA_COLS + (int)u) * 3;
}

/* Red lamps stand above green ones: what the brightest of the head's pixels look like. */
static void lamps_show_what_the_scene_says(void)
{
    static const struct {
        enum traffic_light light;
        double lamp_z_m;
        int colour; /* the strongest channel; -1: both red and green */
    } cases[] = {{TRAFFIC_LIGHT_RED, 3.117, 0},
                 {TRAFFIC_LIGHT_GREEN, 2.383, 1},
                 {TRAFFIC_LIGHT_YELLOW, 2.75, -1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct world world;
        uint8_t image[CAMERA_BYTES];
        world_init(&world, true);
        world.scene.ego.pose.x_m = STOP_X_M - 9.0;
        photograph(&world, cases[i].light, image);
        const uint8_t *lamp = pixel(image, 9.0 - 0.13, -2.6, cases[i].lamp_z_m);
        if (cases[i].colour >= 0) {
            int strong = lamp[cases[i].colour];
            EXPECT(strong > 140 && strong > lamp[1 - cases[i].colour] + 60);
        } else {
            EXPECT(lamp[0] > 140 && lamp[1] > 90 && lamp[2] < 110);
        }
        raster_layers_destroy(world.layers);
    }
}

static void every_light_looks_otherwise_and_off_is_dark(void)
{
    static uint8_t images[TRAFFIC_LIGHT_COUNT][CAMERA_BYTES];
    struct world world;
    world_init(&world, true);
    for (int light = 0; light < TRAFFIC_LIGHT_COUNT; light++) {
        photograph(&world, (enum traffic_light)light, images[light]);
        for (int other = 0; other < light; other++) {
            EXPECT(memcmp(images[light], images[other], CAMERA_BYTES) != 0);
        }
    }
    raster_layers_destroy(world.layers);
}

/* Traffic lights look at their traffic: from behind the head is seen, but not what it shows. */
static void from_behind_lamps_are_not_seen(void)
{
    uint8_t red[CAMERA_BYTES];
    uint8_t green[CAMERA_BYTES];
    struct world world;
    world_init(&world, true);
    world.scene.ego.pose = (struct pose){STOP_X_M + 12, -4.0, PI_RAD};
    photograph(&world, TRAFFIC_LIGHT_RED, red);
    photograph(&world, TRAFFIC_LIGHT_GREEN, green);
    EXPECT(memcmp(red, green, CAMERA_BYTES) == 0);
    photograph(&world, TRAFFIC_LIGHT_COUNT, green);
    EXPECT(memcmp(red, green, CAMERA_BYTES) != 0);
    raster_layers_destroy(world.layers);
}

static void what_is_not_known_or_not_there_changes_no_byte(void)
{
    static uint8_t with[BEV_BYTES];
    static uint8_t without[BEV_BYTES];
    struct world world;
    struct world plain;
    uint8_t image[CAMERA_BYTES];
    uint8_t other[CAMERA_BYTES];
    world_init(&world, true);
    world_init(&plain, false);
    photograph(&world, TRAFFIC_LIGHT_COUNT, image);
    photograph(&plain, TRAFFIC_LIGHT_RED, other);
    EXPECT(memcmp(image, other, CAMERA_BYTES) == 0);
    raster_bev(world.layers, &world.scenario, &world.scene, 1, with);
    raster_bev(plain.layers, &plain.scenario, &plain.scene, 1, without);
    EXPECT(memcmp(with, without, BEV_BYTES) == 0);
    /* A light far off, and one in fog. */
    world.scene.ego.pose.x_m = plain.scene.ego.pose.x_m = -99.0;
    photograph(&world, TRAFFIC_LIGHT_RED, image);
    photograph(&plain, TRAFFIC_LIGHT_RED, other);
    EXPECT(memcmp(image, other, CAMERA_BYTES) == 0);
    raster_layers_destroy(world.layers);
    raster_layers_destroy(plain.layers);
}

static void the_grid_has_the_stop_lines_that_hold_traffic(void)
{
    static const uint8_t expected[TRAFFIC_LIGHT_COUNT] = {
        [TRAFFIC_LIGHT_RED] = 255, [TRAFFIC_LIGHT_RED_YELLOW] = 255, [TRAFFIC_LIGHT_YELLOW] = 128};
    static uint8_t bev[BEV_BYTES];
    struct world world;
    world_init(&world, true);
    int row = (int)((STOP_X_M - world.scene.ego.pose.x_m - BEV_X_MIN_M) / BEV_CELL_M);
    for (int light = 0; light < TRAFFIC_LIGHT_COUNT; light++) {
        world.scene.signal_light[0] = (uint8_t)light;
        raster_bev(world.layers, &world.scenario, &world.scene, 1, bev);
        const uint8_t *marking = bev + BEV_MARKING * BEV_CELLS;
        for (double y_m = -1.9; y_m < 2.0; y_m += 0.5) {
            int col = (int)((y_m - BEV_Y_MIN_M) / BEV_CELL_M);
            EXPECT_INT(marking[row * BEV_COLS + col], expected[light]);
            EXPECT_INT(marking[(row - 2) * BEV_COLS + col], 0);
        }
        EXPECT_INT(marking[row * BEV_COLS + (int)((3.0 - BEV_Y_MIN_M) / BEV_CELL_M)], 0);
    }
    raster_layers_destroy(world.layers);
}

/* By the phases, and in a branch that turns it from then on by what it does. */
static void recorded_scenes_show_what_was_driven(void)
{
    struct world world;
    struct intervention turn = {
        .kind = INTERVENE_SIGNAL, .tick = 20, .light = TRAFFIC_LIGHT_YELLOW};
    struct branch branch = {.id = "turns", .intervention_count = 1, .interventions = &turn};
    world_init(&world, true);
    world.scenario.branches = &branch;
    world.scenario.branch_count = 1;
    for (uint32_t tick = 0; tick < 200; tick++) {
        enum traffic_light phase = tick % 100 < 50 ? TRAFFIC_LIGHT_GREEN : TRAFFIC_LIGHT_RED;
        world.scene.tick = tick;
        signals_recorded(&world.scenario, "", &world.scene);
        EXPECT_INT(world.scene.signal_light[0], phase);
        signals_recorded(&world.scenario, "turns", &world.scene);
        EXPECT_INT(world.scene.signal_light[0], tick >= 20 ? TRAFFIC_LIGHT_YELLOW : phase);
    }
    raster_layers_destroy(world.layers);
}

/* Each sign has a plate of its own; where none stands, there is nothing to see. */
static void plates_stand_where_signs_do(void)
{
    static uint8_t pictures[TRAFFIC_SIGN_COUNT][CAMERA_BYTES];
    static uint8_t without[CAMERA_BYTES];
    struct world world;
    world_init(&world, false);
    photograph(&world, TRAFFIC_LIGHT_OFF, without);
    raster_layers_destroy(world.layers);
    for (int sign = TRAFFIC_SIGN_STOP; sign < TRAFFIC_SIGN_COUNT; sign++) {
        struct error error;
        world_init(&world, true);
        raster_layers_destroy(world.layers);
        world.signal.sign = (enum traffic_sign)sign;
        EXPECT_OK(raster_layers_create(&world.scenario.map, &world.layers, &error), error);
        photograph(&world, TRAFFIC_LIGHT_OFF, pictures[sign]);
        raster_layers_destroy(world.layers);
        bool plate = memcmp(pictures[sign], without, CAMERA_BYTES) != 0;
        EXPECT(plate == (sign < TRAFFIC_SIGN_GIVE_WAY));
        for (int other = TRAFFIC_SIGN_STOP; plate && other < sign; other++) {
            EXPECT(memcmp(pictures[sign], pictures[other], CAMERA_BYTES) != 0);
        }
    }
}

int main(void)
{
    return TEST_RUN(
        TEST(lamps_show_what_the_scene_says), TEST(every_light_looks_otherwise_and_off_is_dark),
        TEST(from_behind_lamps_are_not_seen), TEST(what_is_not_known_or_not_there_changes_no_byte),
        TEST(the_grid_has_the_stop_lines_that_hold_traffic),
        TEST(recorded_scenes_show_what_was_driven), TEST(plates_stand_where_signs_do));
}
