/*
 * Cameras of a rig: lenses land where OpenCV lands them and back, pictures along rays are those of
 * the rows where both can be drawn, and boxes appear where the lens puts their corners.
 */
#include "engine/sensors/raster.h"
#include "engine/sensors/raster_camera.h"

#include "base/check.h"
#include "kernels/cpu.h"
#include "tests/harness.h"

#include <math.h>
#include <stdlib.h>

struct world {
    struct scenario scenario;
    struct agent agents[2];
    struct vec2 points[2];
    double widths[2];
    struct lane lane;
    struct map map;
    struct scene scene;
    struct raster_layers *layers;
};

/* A road 8 m wide along x, ego on its centre line, an object of 2 m x 2 m x 2 m ahead. */
static void world_init(struct world *world, double x_m, double y_m)
{
    struct error error;
    memset(world, 0, sizeof *world);
    world->points[0] = (struct vec2){-100, 0};
    world->points[1] = (struct vec2){300, 0};
    world->widths[0] = world->widths[1] = 8.0;
    world->lane = (struct lane){.point_count = 2,
                                .centre_line = world->points,
                                .width_m = world->widths,
                                .left = -1,
                                .right = -1,
                                .left_marking = MARKING_SOLID,
                                .right_marking = MARKING_SOLID};
    world->map = (struct map){.lane_count = 1, .lanes = &world->lane};
    world->scenario.agents = world->agents;
    world->scenario.agent_count = world->scene.agent_count = 1;
    world->agents[0] =
        (struct agent){.kind = AGENT_OBJECT, .length_m = 2.0, .width_m = 2.0, .height_m = 2.0};
    world->scene.agents[0].pose = (struct pose){x_m, y_m, 0.0};
    world->scene.agents[0].present = true;
    world->scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
    EXPECT_OK(raster_layers_create(&world->map, &world->layers, &error), error);
}

static struct rig_camera camera_of(enum lens_model model)
{
    struct rig_camera camera = {.id = "front",
                                .width = 640,
                                .height = 400,
                                .rate_hz = 10,
                                .pose = {1.2, 0.1, 1.4, 0.05, 0.1, 0.2}};
    struct rig_lens *lens = &camera.lens;
    *lens = (struct rig_lens){
        .model = model, .fx = 417.0, .fy = 415.0, .cx = 325.5, .cy = 190.25, .max_angle_rad = NAN};
    if (model == LENS_PINHOLE) {
        lens->k[0] = -0.25;
        lens->k[1] = 0.08;
        lens->p[0] = 0.001;
        lens->p[1] = -0.002;
    } else if (model == LENS_FISHEYE) {
        lens->fx = lens->fy = 250.0;
        lens->k[0] = -0.012;
        lens->k[1] = 0.004;
    } else {
        lens->fx = lens->fy = 0.0;
        lens->angle_to_pixels[1] = 320.0;
        lens->angle_to_pixels[3] = -9.0;
        lens->max_angle_rad = 1.2;
    }
    return camera;
}

/* Pixels by OpenCV 5.0.0, cv2.projectPoints and cv2.fisheye.projectPoints. */
static void lenses_land_where_opencv_lands_them(void)
{
    static const struct vec3 points[] = {
        {0.3, -0.2, 1.0}, {-1.1, 0.5, 1.4}, {0.05, 0.6, 1.2}, {0.9, 0.4, 1.3}};
    static const double pixels[2][4][2] = {{{878.360701513, 200.987308908},
                                            {95.339954678, 605.715371850},
                                            {671.140406441, 742.587371005},
                                            {1128.052502745, 576.492882239}},
                                           {{589.134376548, 431.535516458},
                                            {300.118134421, 579.389983873},
                                            {511.942796336, 631.002047066},
                                            {682.843461121, 569.953054684}}};
    const struct rig_lens models[2] = {{.model = LENS_PINHOLE,
                                        .fx = 834.0,
                                        .fy = 830.0,
                                        .cx = 639.5,
                                        .cy = 359.5,
                                        .k = {-0.3, 0.12, 0.01, 0.05, -0.02, 0.003},
                                        .p = {0.001, -0.002},
                                        .max_angle_rad = NAN},
                                       {.model = LENS_FISHEYE,
                                        .fx = 310.0,
                                        .fy = 305.0,
                                        .cx = 500.0,
                                        .cy = 490.0,
                                        .k = {-0.012, 0.004, -0.002, 0.0003},
                                        .max_angle_rad = NAN}};
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        struct rig_camera camera = camera_of(LENS_PINHOLE);
        struct lens lens;
        struct error error;
        camera.lens = models[m];
        EXPECT_OK(lens_init(&camera, &lens, &error), error);
        for (size_t i = 0; i < COUNT_OF(points); i++) {
            double u = 0.0;
            double v = 0.0;
            EXPECT(lens_project(&lens, points[i], &u, &v));
            EXPECT(fabs(u - pixels[m][i][0]) < 1e-7 && fabs(v - pixels[m][i][1]) < 1e-7);
        }
    }
}

/* Every pixel's direction lands on the pixel, has length 1, and ends where the lens does. */
static void directions_are_the_inverse(void)
{
    for (int model = 0; model < LENS_MODEL_COUNT; model++) {
        const struct rig_camera camera = camera_of((enum lens_model)model);
        struct lens lens;
        struct error error;
        int seen = 0;
        EXPECT_OK(lens_init(&camera, &lens, &error), error);
        for (int32_t v = 0; v < camera.height; v += 7) {
            for (int32_t u = 0; u < camera.width; u += 7) {
                struct vec3 d;
                double found_u = NAN;
                double found_v = NAN;
                if (!lens_direction(&lens, u, v, &d)) {
                    continue;
                }
                seen++;
                EXPECT(lens_project(&lens, d, &found_u, &found_v));
                EXPECT(fabs(found_u - u) < 1e-6 && fabs(found_v - v) < 1e-6);
                EXPECT(fabs(d.x * d.x + d.y * d.y + d.z * d.z - 1.0) < 1e-9);
            }
        }
        EXPECT(seen > 4500); /* of 5,336 */
    }
}

static void lenses_that_turn_back_are_refused(void)
{
    struct rig_camera camera = camera_of(LENS_PINHOLE);
    struct lens lens;
    struct error error;
    camera.lens.k[0] = -4000.0;
    EXPECT(lens_init(&camera, &lens, &error) == STATUS_BAD_INPUT);
    EXPECT(strstr(error.text, "front") != NULL);
}

static uint8_t *draw(const struct world *world, const struct rig_camera *camera)
{
    struct raster_rays *rays = NULL;
    struct error error;
    uint8_t *out = malloc((size_t)camera->width * (size_t)camera->height * 3);
    CHECK(out != NULL);
    EXPECT_OK(raster_rays_create(camera, 1, &rays, &error), error);
    raster_rays_draw(world->layers, &world->scenario, &world->scene, 5, rays, out);
    raster_rays_destroy(rays);
    return out;
}

/* A camera that looks level but for a hair is drawn along rays, and looks the same. */
static void rays_show_what_rows_show(void)
{
    for (int weather = 0; weather < WEATHER_COUNT; weather++) {
        struct rig_camera camera = camera_of(LENS_PINHOLE);
        struct world world;
        double difference = 0.0;
        world_init(&world, 12.0, 1.0);
        world.scene.conditions.weather = (enum weather)weather;
        world.scene.conditions.light = (enum light)(weather % LIGHT_COUNT);
        world.agents[0].kind = AGENT_CAR;
        world.scene.agents[0].accel_mps2 = -4.0;
        world.scene.agents[0].speed_mps = 8.0;
        camera.pose.roll_rad = camera.pose.pitch_rad = 0.0;
        camera.lens = (struct rig_lens){.fx = 400.0,
                                        .fy = 400.0,
                                        .cx = (camera.width - 1) / 2.0,
                                        .cy = (camera.height - 1) / 2.0,
                                        .max_angle_rad = NAN};
        uint8_t *rows = draw(&world, &camera);
        camera.pose.pitch_rad = 1e-9;
        uint8_t *rays = draw(&world, &camera);
        for (int32_t i = 0; i < camera.width * camera.height * 3; i++) {
            difference += abs(rows[i] - rays[i]);
        }
        EXPECT(difference / (camera.width * camera.height * 3) < 0.5);
        free(rays);
        free(rows);
        raster_layers_destroy(world.layers);
    }
}

/* The built-in rig's cameras are those that nobody asks for. */
static void the_builtin_rig_has_the_usual_bytes(void)
{
    struct rig rig;
    struct world world;
    rig_swerve(&rig);
    world_init(&world, 12.0, 1.0);
    for (int i = 0; i < CAMERA_COUNT; i++) {
        static uint8_t usual[CAMERA_BYTES];
        uint8_t *found = draw(&world, &rig.cameras[i]);
        raster_camera(world.layers, &world.scenario, &world.scene, 5, (enum camera_index)i, usual);
        EXPECT(memcmp(found, usual, CAMERA_BYTES) == 0);
        free(found);
    }
    raster_layers_destroy(world.layers);
}

/* A point of ego's frame in the camera's, from the words of rig.h. */
static struct vec3 to_camera(const struct rig_pose *pose, double x, double y, double z)
{
    double dx = x - pose->x_m;
    double dy = y - pose->y_m;
    double dz = z - pose->z_m;
    double ax = dx * cos(pose->yaw_rad) + dy * sin(pose->yaw_rad);
    double ay = dy * cos(pose->yaw_rad) - dx * sin(pose->yaw_rad);
    double bx = ax * cos(pose->pitch_rad) - dz * sin(pose->pitch_rad);
    double bz = ax * sin(pose->pitch_rad) + dz * cos(pose->pitch_rad);
    double cy = ay * cos(pose->roll_rad) + bz * sin(pose->roll_rad);
    double cz = bz * cos(pose->roll_rad) - ay * sin(pose->roll_rad);
    return (struct vec3){-cy, -cz, bx};
}

/* Changed pixels end within 0.6 pixels of where the lens puts the edges of the box, but for its
 * shadow at the foot. */
static void boxes_land_where_the_lens_says(void)
{
    for (int model = 0; model < LENS_MODEL_COUNT; model++) {
        const struct rig_camera camera = camera_of((enum lens_model)model);
        struct lens lens;
        struct error error;
        struct world world;
        double low[2] = {INFINITY, INFINITY};
        double high[2] = {-INFINITY, -INFINITY};
        int32_t first[2] = {camera.width, camera.height};
        int32_t last[2] = {-1, -1};
        world_init(&world, 9.0, 1.5);
        EXPECT_OK(lens_init(&camera, &lens, &error), error);
        for (int k = 0; k < 12 * 64; k++) { /* along the twelve edges */
            double t = k / 12 / 63.0 * 2.0 - 1.0;
            int edge = k % 12;
            double a = edge & 1 ? 1.0 : -1.0;
            double b = edge & 2 ? 1.0 : -1.0;
            double p[3] = {edge / 4 == 0 ? t : a,
                           edge / 4 == 1   ? t
                           : edge / 4 == 0 ? a
                                           : b,
                           edge / 4 == 2 ? t : b};
            /* An object stands a little narrower at its top (raster_solids.c). */
            double narrow = 1.0 - 0.05 * (p[2] + 1.0) / 2.0;
            double uv[2] = {0.0, 0.0};
            struct vec3 at =
                to_camera(&camera.pose, 9.0 + p[0] * narrow, 1.5 + p[1] * narrow, p[2] + 1.0);
            EXPECT(lens_project(&lens, at, &uv[0], &uv[1]));
            for (int axis = 0; axis < 2; axis++) {
                low[axis] = fmin(low[axis], uv[axis]);
                high[axis] = fmax(high[axis], uv[axis]);
            }
        }
        uint8_t *with = draw(&world, &camera);
        world.scene.agents[0].present = false;
        uint8_t *without = draw(&world, &camera);
        for (int32_t i = 0; i < camera.width * camera.height; i++) {
            int change = 0;
            for (int k = 0; k < 3; k++) {
                change += abs(with[i * 3 + k] - without[i * 3 + k]);
            }
            bool brown = with[i * 3] > with[i * 3 + 2] + 20; /* not the shadow */
            if (change > 40 && brown) {
                int32_t uv[2] = {i % camera.width, i / camera.width};
                for (int axis = 0; axis < 2; axis++) {
                    first[axis] = uv[axis] < first[axis] ? uv[axis] : first[axis];
                    last[axis] = uv[axis] > last[axis] ? uv[axis] : last[axis];
                }
            }
        }
        /* A pixel reaches half a pixel to either side of its centre. */
        for (int axis = 0; axis < 2; axis++) {
            EXPECT(fabs(first[axis] - 0.5 - low[axis]) < 1.1);
            EXPECT(fabs(last[axis] + 0.5 - high[axis]) < 1.1);
        }
        free(without);
        free(with);
        raster_layers_destroy(world.layers);
    }
}

/* Beyond the lens's largest angle the image is black, whatever stands or falls there. */
static void nothing_is_seen_beyond_the_lens(void)
{
    struct rig_camera camera = camera_of(LENS_FTHETA);
    struct world world;
    struct lens lens;
    struct error error;
    camera.lens.max_angle_rad = 0.5;
    world_init(&world, 3.5, 0.0);
    world.agents[0].kind = AGENT_CAR;
    world.scene.agents[0].accel_mps2 = -4.0;
    world.scene.conditions.light = LIGHT_NIGHT;
    world.scene.conditions.weather = WEATHER_SNOW;
    EXPECT_OK(lens_init(&camera, &lens, &error), error);
    uint8_t *out = draw(&world, &camera);
    int black = 0;
    for (int32_t i = 0; i < camera.width * camera.height; i++) {
        struct vec3 d;
        if (!lens_direction(&lens, i % camera.width, i / camera.width, &d)) {
            black++;
            EXPECT(out[i * 3] == 0 && out[i * 3 + 1] == 0 && out[i * 3 + 2] == 0);
        }
    }
    EXPECT(black > camera.width * camera.height / 4);
    free(out);
    raster_layers_destroy(world.layers);
}

/* Every instruction set draws the same bytes, of any size, by rows and along rays. */
static void instruction_sets_draw_the_same(void)
{
    static const uint32_t flags[] = {0, CPU_FLAG_AVX2, CPU_FLAG_AVX2 | CPU_FLAG_AVX512};
    for (int i = 0; i < 2 * WEATHER_COUNT; i++) {
        struct rig_camera camera = camera_of((enum lens_model)(i % LENS_MODEL_COUNT));
        struct world world;
        world_init(&world, 9.0, 1.5);
        world.scene.conditions.weather = (enum weather)(i / 2);
        world.scene.conditions.light = (enum light)(i % LIGHT_COUNT);
        world.scene.ego.pose = (struct pose){1.0, -3.9, 0.3 * i};
        camera.width = 203;
        camera.height = 122;
        camera.lens.cx = (camera.width - 1) / 2.0;
        camera.lens.cy = (camera.height - 1) / 2.0;
        if (i % 2 == 0) { /* it looks level */
            camera.pose.roll_rad = camera.pose.pitch_rad = 0.0;
            camera.lens = (struct rig_lens){.fx = 90.0,
                                            .fy = 90.0,
                                            .cx = camera.lens.cx,
                                            .cy = camera.lens.cy,
                                            .max_angle_rad = NAN};
        }
        uint8_t *expected = NULL;
        for (size_t k = 0; k < COUNT_OF(flags); k++) {
            if ((flags[k] & ~cpu_flags_detect()) != 0) {
                continue;
            }
            picture_kernels_init(&world.layers->rows, flags[k]);
            uint8_t *found = draw(&world, &camera);
            if (expected == NULL) {
                expected = found;
                continue;
            }
            EXPECT(memcmp(expected, found, (size_t)(camera.width * camera.height * 3)) == 0);
            free(found);
        }
        free(expected);
        raster_layers_destroy(world.layers);
    }
}

int main(void)
{
    return TEST_RUN(TEST(lenses_land_where_opencv_lands_them), TEST(directions_are_the_inverse),
                    TEST(lenses_that_turn_back_are_refused), TEST(rays_show_what_rows_show),
                    TEST(the_builtin_rig_has_the_usual_bytes), TEST(boxes_land_where_the_lens_says),
                    TEST(nothing_is_seen_beyond_the_lens), TEST(instruction_sets_draw_the_same));
}
