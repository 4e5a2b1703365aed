/*
 * Points of a lidar against a ray caster in doubles over the corners of boxes: ranges, order, what
 * sectors, instruction sets and weather do, and the grid that points make against the
 * observation's.
 */
#include "base/check.h"
#include "base/rng.h"
#include "engine/rigs/scan.h"
#include "engine/sensors/raster_layers.h"
#include "kernels/cpu.h"
#include "schemas/observation.h"
#include "tests/harness.h"

#include <math.h>
#include <stdlib.h>

enum { AGENTS_MAX = 40, AZIMUTHS = 900, ELEVATIONS = 48, POINTS_MAX = AZIMUTHS * ELEVATIONS };

struct world {
    struct scenario scenario;
    struct agent agents[AGENTS_MAX];
    struct vec2 points[2];
    double widths[2];
    struct lane lane;
    struct map map;
    struct scene scene;
    struct raster_layers *layers;
    struct rig_lidar lidar;
};

static struct scan_point found[POINTS_MAX];
static struct scan_point other[POINTS_MAX];

/* A road 8 m wide along x with solid lines, a lidar on ego's roof that leans. */
static void world_init(struct world *world)
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
    world->scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
    world->scene.ego.pose = (struct pose){10.0, 1.0, 0.4};
    world->lidar = (struct rig_lidar){.id = "roof",
                                      .rate_hz = 10,
                                      .pose = {0.3, -0.2, 1.9, 0.04, -0.03, 0.5},
                                      .azimuths = AZIMUTHS,
                                      .elevation_count = ELEVATIONS,
                                      .range_m = 120.0};
    for (int i = 0; i < ELEVATIONS; i++) {
        world->lidar.elevations_rad[i] = 0.1 - 0.5 * i / ELEVATIONS;
    }
    EXPECT_OK(raster_layers_create(&world->map, &world->layers, &error), error);
}

static void add(struct world *world, double x_m, double y_m, double heading_rad)
{
    uint32_t i = world->scene.agent_count++;
    CHECK(i < AGENTS_MAX);
    world->scenario.agent_count = world->scene.agent_count;
    world->scene.agents[i] = (struct agent_state){.pose = {x_m, y_m, heading_rad}, .present = true};
    world->agents[i] = (struct agent){.length_m = 4.5, .width_m = 1.8, .height_m = 1.5};
}

static double uniform(uint32_t *element)
{
    return rng_uniform(3, RNG_STREAM_TEST, 0, (*element)++);
}

/* Boxes around ego, none of them over it. */
static void add_some(struct world *world, uint32_t count, uint32_t *element)
{
    const struct pose *ego = &world->scene.ego.pose;
    for (uint32_t i = 0; i < count; i++) {
        double angle = 6.28 * uniform(element);
        double distance = 6.0 + 60.0 * uniform(element);
        add(world, ego->x_m + distance * cos(angle), ego->y_m + distance * sin(angle),
            6.28 * uniform(element));
        world->agents[i].height_m = 0.3 + 3.0 * uniform(element);
    }
}

static uint32_t turn(const struct world *world, struct scan_point *out)
{
    struct scan *scan = NULL;
    struct error error;
    EXPECT_OK(scan_create(&world->lidar, 0, &scan, &error), error);
    EXPECT_INT(scan_points_max(scan), POINTS_MAX);
    uint32_t count =
        scan_points(scan, world->layers, &world->scenario, &world->scene, 7, 0, AZIMUTHS, out);
    scan_destroy(scan);
    return count;
}

/* Rz(yaw) Ry(pitch) Rx(roll) v, from the words of schemas/rig/rig.h. */
static void to_ego(const struct rig_pose *pose, const double v[3], double out[3])
{
    double y = v[1] * cos(pose->roll_rad) - v[2] * sin(pose->roll_rad);
    double z = v[1] * sin(pose->roll_rad) + v[2] * cos(pose->roll_rad);
    double x = v[0] * cos(pose->pitch_rad) + z * sin(pose->pitch_rad);
    out[2] = z * cos(pose->pitch_rad) - v[0] * sin(pose->pitch_rad);
    out[0] = x * cos(pose->yaw_rad) - y * sin(pose->yaw_rad);
    out[1] = x * sin(pose->yaw_rad) + y * cos(pose->yaw_rad);
}

/* Range to the nearest of boxes and ground along a direction of the lidar's, INFINITY: none. The
 * planes of a box are those through its faces, in the world. */
static double cast(const struct world *world, const double direction[3])
{
    const struct pose *ego = &world->scene.ego.pose;
    const struct rig_pose *lidar = &world->lidar.pose;
    double d[3];
    to_ego(lidar, direction, d);
    double c = cos(ego->heading_rad);
    double s = sin(ego->heading_rad);
    const double from[3] = {ego->x_m + lidar->x_m * c - lidar->y_m * s,
                            ego->y_m + lidar->x_m * s + lidar->y_m * c, lidar->z_m};
    const double along[3] = {d[0] * c - d[1] * s, d[0] * s + d[1] * c, d[2]};
    double best = along[2] < 0.0 ? -from[2] / along[2] : INFINITY;
    for (uint32_t i = 0; i < world->scene.agent_count; i++) {
        const struct pose *pose = &world->scene.agents[i].pose;
        const struct agent *agent = &world->agents[i];
        const double axes[3][3] = {{cos(pose->heading_rad), sin(pose->heading_rad), 0},
                                   {-sin(pose->heading_rad), cos(pose->heading_rad), 0},
                                   {0, 0, 1}};
        const double half[3] = {agent->length_m / 2, agent->width_m / 2, agent->height_m / 2};
        const double off[3] = {from[0] - pose->x_m, from[1] - pose->y_m, from[2] - half[2]};
        double near = 0.0;
        double far = INFINITY;
        for (int k = 0; k < 3; k++) {
            double at = off[0] * axes[k][0] + off[1] * axes[k][1] + off[2] * axes[k][2];
            double by = along[0] * axes[k][0] + along[1] * axes[k][1] + along[2] * axes[k][2];
            double t = (-half[k] - at) / by;
            double u = (half[k] - at) / by;
            near = fmax(near, fmin(t, u));
            far = fmin(far, fmax(t, u));
        }
        if (near < far) {
            best = fmin(best, near);
        }
    }
    return best;
}

static double range_of(const struct scan_point *point)
{
    return sqrt((double)point->x_m * point->x_m + (double)point->y_m * point->y_m +
                (double)point->z_m * point->z_m);
}

/* Every beam that has a point has it within 1 mm of the ray caster's, and the others have none. */
static void ranges_are_those_of_the_boxes(void)
{
    uint32_t element = 0;
    for (int round = 0; round < 3; round++) {
        struct world world;
        uint32_t at = 0;
        uint32_t grazing = 0;
        world_init(&world);
        add_some(&world, AGENTS_MAX, &element);
        uint32_t count = turn(&world, found);
        for (int i = 0; i < POINTS_MAX; i++) {
            double azimuth = 2.0 * 3.14159265358979323846 * (i / ELEVATIONS) / AZIMUTHS;
            double elevation = world.lidar.elevations_rad[i % ELEVATIONS];
            const double direction[3] = {cos(elevation) * cos(azimuth),
                                         cos(elevation) * sin(azimuth), sin(elevation)};
            double range = cast(&world, direction);
            uint16_t time = (uint16_t)(i / ELEVATIONS * 50000.0 / AZIMUTHS + 0.5);
            bool here =
                at < count && found[at].ring == i % ELEVATIONS && found[at].time_2us == time;
            if (here != (range <= world.lidar.range_m) ||
                (here && fabs(range_of(&found[at]) - range) >= 1e-3)) {
                grazing++; /* an edge of a box, which single precision may miss */
            } else if (here) {
                EXPECT(fabs((double)found[at].x_m - range * direction[0]) < 1e-3);
                EXPECT(fabs((double)found[at].z_m - range * direction[2]) < 1e-3);
            }
            at += here;
        }
        EXPECT_INT(at, count);
        EXPECT(count > POINTS_MAX / 2);
        EXPECT(grazing < 5);
        raster_layers_destroy(world.layers);
    }
}

/* Cells of the observation's grid that hold a point of an agent against those that are occupied. */
static void the_grid_of_points_is_the_observations(void)
{
    static uint8_t bev[BEV_BYTES];
    static uint8_t cells[BEV_CELLS];
    uint32_t element = 5000;
    int equal = 0;
    int occupied = 0;
    enum { ROUNDS = 4 };
    for (int round = 0; round < ROUNDS; round++) {
        struct world world;
        world_init(&world);
        world.lidar.pose = (struct rig_pose){.z_m = 1.2};
        add_some(&world, 20, &element);
        for (uint32_t i = 0; i < world.scene.agent_count; i++) {
            world.agents[i].height_m = 1.6;
        }
        memset(cells, 0, sizeof cells);
        uint32_t count = turn(&world, found);
        for (uint32_t i = 0; i < count; i++) {
            double x = (double)found[i].x_m;
            double y = (double)found[i].y_m;
            /* Returns reach a metre into a body (schemas/observation.md). */
            for (int k = 0; k < 4 && (double)found[i].z_m + 1.2 > 0.05; k++) {
                double deep = 1.0 + (0.1 + 0.25 * k) / hypot(x, y);
                int row = (int)floor((x * deep - BEV_X_MIN_M) / BEV_CELL_M);
                int col = (int)floor((y * deep - BEV_Y_MIN_M) / BEV_CELL_M);
                if (row >= 0 && row < BEV_ROWS && col >= 0 && col < BEV_COLS) {
                    cells[row * BEV_COLS + col] = 1;
                }
            }
        }
        raster_bev(world.layers, &world.scenario, &world.scene, 7, bev);
        for (int i = 0; i < BEV_CELLS; i++) {
            bool is = bev[BEV_OCCUPANCY * BEV_CELLS + i] >= 64;
            equal += is == (cells[i] != 0);
            occupied += is;
        }
        raster_layers_destroy(world.layers);
    }
    printf("# %d of %d cells equal, %d occupied\n", equal, ROUNDS * BEV_CELLS, occupied);
    EXPECT(occupied > ROUNDS * 100);
    EXPECT(equal > 0.99 * ROUNDS * BEV_CELLS);
}

/* Sectors that follow each other are the turn, whatever the instruction set. */
static void sectors_and_instruction_sets_agree(void)
{
    static const uint32_t flags[] = {0, CPU_FLAG_AVX2, CPU_FLAG_AVX2 | CPU_FLAG_AVX512};
    uint32_t element = 9000;
    struct world world;
    struct scan *scan = NULL;
    struct error error;
    world_init(&world);
    add_some(&world, 30, &element);
    world.scene.conditions.weather = WEATHER_SNOW;
    uint32_t count = turn(&world, found);
    EXPECT_OK(scan_create(&world.lidar, 0, &scan, &error), error);
    for (size_t k = 0; k < COUNT_OF(flags); k++) {
        uint32_t sum = 0;
        if ((flags[k] & ~cpu_flags_detect()) != 0) {
            continue;
        }
        picture_kernels_init(&world.layers->rows, flags[k]);
        for (int32_t first = 0; first < AZIMUTHS; first += 300) {
            sum += scan_points(scan, world.layers, &world.scenario, &world.scene, 7, first,
                               first + 300, other + sum);
        }
        EXPECT_INT(sum, count);
        EXPECT(memcmp(found, other, count * sizeof *found) == 0);
    }
    scan_destroy(scan);
    raster_layers_destroy(world.layers);
}

/* Snow loses some points and moves none; fog ends the view; lines shine. */
static void weather_and_surfaces_show(void)
{
    struct world world;
    double nearest_m = INFINITY;
    uint32_t bright = 0;
    world_init(&world);
    uint32_t clear = turn(&world, found);
    for (uint32_t i = 0; i < clear; i++) {
        double v[3];
        const double at[3] = {(double)found[i].x_m, (double)found[i].y_m, (double)found[i].z_m};
        to_ego(&world.lidar.pose, at, v);
        double x = v[0] + world.lidar.pose.x_m;
        double y = v[1] + world.lidar.pose.y_m;
        double side = 1.0 + x * sin(0.4) + y * cos(0.4); /* of the road's middle */
        double shine = found[i].intensity / 255.0 / (world.lidar.pose.z_m / range_of(&found[i]));
        if (shine > 0.8) {
            bright++;
            EXPECT(fabs(fabs(side) - 4.0) < 0.4);
        }
        nearest_m = fmin(nearest_m, range_of(&found[i]));
    }
    EXPECT(bright > 20);
    EXPECT(nearest_m > 1.9);
    world.scene.conditions.weather = WEATHER_SNOW;
    uint32_t snow = turn(&world, other);
    EXPECT(snow < clear * 99 / 100 && snow > clear * 8 / 10);
    world.scene.conditions.visibility_m = 20.0;
    uint32_t foggy = turn(&world, other);
    for (uint32_t i = 0; i < foggy; i++) {
        EXPECT(range_of(&other[i]) < 20.001);
    }
    EXPECT(foggy < snow);
    raster_layers_destroy(world.layers);
}

int main(void)
{
    return TEST_RUN(TEST(ranges_are_those_of_the_boxes),
                    TEST(the_grid_of_points_is_the_observations),
                    TEST(sectors_and_instruction_sets_agree), TEST(weather_and_surfaces_show));
}
