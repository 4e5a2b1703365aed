/*
 * The lidar model against brute force: occupancy of random scenes compared with dense point
 * sampling where every point's line of sight is cast against every box, areas compared with closed
 * forms, the child behind the van, weather, determinism, and invariance under motion of the whole
 * scene.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "engine/sensors/raster.h"
#include "tests/harness.h"

#include <stdlib.h>

#define DEPTH_M 1.0

enum { AGENTS_MAX = 24, SIDE = 16 /* brute-force points per cell and direction */ };

static uint8_t bev[BEV_BYTES];
static uint8_t other[BEV_BYTES];

struct world {
    struct scenario scenario;
    struct agent agents[AGENTS_MAX];
    struct scene scene;
    struct raster_layers *layers;
};

static void world_init(struct world *world)
{
    static const struct map no_map = {0};
    struct error error;
    memset(world, 0, sizeof *world);
    world->scenario.agents = world->agents;
    world->scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
    EXPECT_OK(raster_layers_create(&no_map, &world->layers, &error), error);
}

static struct agent *add(struct world *world, double x_m, double y_m, double heading_rad,
                         double length_m, double width_m)
{
    uint32_t i = world->scene.agent_count++;
    CHECK(i < AGENTS_MAX);
    world->scenario.agent_count = world->scene.agent_count;
    world->scene.agents[i].pose = (struct pose){x_m, y_m, heading_rad};
    world->scene.agents[i].present = true;
    world->agents[i] = (struct agent){.length_m = length_m, .width_m = width_m, .height_m = 1.6};
    return &world->agents[i];
}

static void draw(struct world *world, uint64_t seed, uint8_t *out)
{
    raster_bev(world->layers, &world->scenario, &world->scene, seed, out);
}

static double occupied_m2(const uint8_t *grid)
{
    double sum = 0.0;
    for (int i = 0; i < BEV_CELLS; i++) {
        sum += grid[BEV_OCCUPANCY * BEV_CELLS + i];
    }
    return sum / 255.0 * BEV_CELL_M * BEV_CELL_M;
}

/* ---- brute force: one ray per sample point, ego at the origin ---- */

static bool inside(const struct box *box, double x, double y, double *along, double *across)
{
    double dx = x - box->center.x_m;
    double dy = y - box->center.y_m;
    *along = dx * box->cos_heading + dy * box->sin_heading;
    *across = -dx * box->sin_heading + dy * box->cos_heading;
    return fabs(*along) <= box->half_length_m && fabs(*across) <= box->half_width_m;
}

/* Whether the segment from the sensor to (x, y) meets the box: slab test (Ericson 5.3.3). */
static bool ray_meets(const struct box *box, double x, double y)
{
    double ox;
    double oy;
    double px;
    double py;
    inside(box, 0.0, 0.0, &ox, &oy);
    inside(box, x, y, &px, &py);
    double t0 = 0.0;
    double t1 = 1.0;
    double from[2] = {ox, oy};
    double delta[2] = {px - ox, py - oy};
    double half[2] = {box->half_length_m, box->half_width_m};
    for (int k = 0; k < 2; k++) {
        if (fabs(delta[k]) < 1e-15) {
            if (fabs(from[k]) > half[k]) {
                return false;
            }
            continue;
        }
        double a = (-half[k] - from[k]) / delta[k];
        double b = (half[k] - from[k]) / delta[k];
        t0 = fmax(t0, fmin(a, b));
        t1 = fmin(t1, fmax(a, b));
    }
    return t0 <= t1;
}

/* Whether a point of the box lies within the depth that returns, behind a face that looks at the
 * sensor. */
static bool in_skin(const struct box *box, double along, double across)
{
    double sx;
    double sy;
    inside(box, 0.0, 0.0, &sx, &sy);
    double hx = box->half_length_m;
    double hy = box->half_width_m;
    return (sx > hx && along >= hx - DEPTH_M) || (sx < -hx && along <= -hx + DEPTH_M) ||
           (sy > hy && across >= hy - DEPTH_M) || (sy < -hy && across <= -hy + DEPTH_M);
}

enum sight { SIGHT_FREE, SIGHT_RETURN, SIGHT_HIDDEN };

static enum sight look(const struct world *world, const struct box *boxes, double x, double y)
{
    uint32_t count = world->scene.agent_count;
    for (uint32_t i = 0; i < count; i++) {
        double along;
        double across;
        bool low = world->agents[i].low;
        if (!inside(&boxes[i], x, y, &along, &across)) {
            if (!low && ray_meets(&boxes[i], x, y)) {
                return SIGHT_HIDDEN;
            }
        } else if (!low && !in_skin(&boxes[i], along, across)) {
            return SIGHT_HIDDEN;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        double along;
        double across;
        if (inside(&boxes[i], x, y, &along, &across)) {
            return SIGHT_RETURN;
        }
    }
    return SIGHT_FREE;
}

/* Random disjoint boxes that leave the sensor free. */
static void random_world(struct world *world, uint32_t round, uint32_t count, struct box *boxes)
{
    world_init(world);
    uint32_t element = 0;
    while (world->scene.agent_count < count) {
        double u[5];
        for (int k = 0; k < 5; k++) {
            u[k] = rng_uniform(11, RNG_STREAM_TEST, round, element++);
        }
        struct pose pose = {-20 + 105 * u[0], -28 + 56 * u[1], 2 * PI_RAD * u[2]};
        double length_m = 0.4 + 11 * u[3] * u[3];
        double width_m = dmath_min(length_m, 0.4 + 2.2 * u[4]);
        struct box box = box_make(pose, length_m + 0.2, width_m + 0.2);
        bool clear = sqrt(pose.x_m * pose.x_m + pose.y_m * pose.y_m) > length_m / 2 + 2.0;
        for (uint32_t i = 0; i < world->scene.agent_count; i++) {
            clear = clear && !box_overlap(&box, &boxes[i]);
        }
        if (clear) {
            boxes[world->scene.agent_count] = box_make(pose, length_m, width_m);
            struct agent *agent =
                add(world, pose.x_m, pose.y_m, pose.heading_rad, length_m, width_m);
            agent->low = element % 7 == 0;
        }
    }
}

/* Fraction of a cell's points that return, by dense ray casting. */
static double ray_cast_cell(const struct world *world, const struct box *boxes, double x0,
                            double y0)
{
    int returns = 0;
    for (int k = 0; k < SIDE * SIDE; k++) {
        double x = x0 + (k / SIDE + 0.5) * BEV_CELL_M / SIDE;
        double y = y0 + (k % SIDE + 0.5) * BEV_CELL_M / SIDE;
        returns += look(world, boxes, x, y) == SIGHT_RETURN;
    }
    return (double)returns / (SIDE * SIDE);
}

/* Occupancy of every cell against dense ray casting: one cell may be off by what thin strips
 * cannot resolve, the total by almost nothing; cells that touch no box are empty. */
static void random_scenes_equal_ray_casting(void)
{
    for (uint32_t round = 0; round < 12; round++) {
        struct world world;
        struct box boxes[AGENTS_MAX];
        random_world(&world, round, 2 + 2 * round, boxes);
        draw(&world, 1, bev);
        double total = 0.0;
        for (int i = 0; i < BEV_CELLS; i++) {
            double x0 = BEV_X_MIN_M + i / BEV_COLS * BEV_CELL_M;
            double y0 = BEV_Y_MIN_M + i % BEV_COLS * BEV_CELL_M;
            struct box cell = box_make((struct pose){x0 + 0.25, y0 + 0.25, 0.0}, 0.5, 0.5);
            bool touches = false;
            for (uint32_t k = 0; k < world.scene.agent_count; k++) {
                touches = touches || box_overlap(&cell, &boxes[k]);
            }
            double expected = touches ? ray_cast_cell(&world, boxes, x0, y0) : 0.0;
            EXPECT_NEAR(bev[i], 255.0 * expected, touches ? 48.0 : 0.0);
            total += expected * BEV_CELL_M * BEV_CELL_M;
            if (bev[i] != 0) {
                EXPECT_INT(bev[BEV_UNSEEN * BEV_CELLS + i], 0);
            }
        }
        EXPECT_NEAR(occupied_m2(bev), total, 0.01 * total + 0.05);
        raster_layers_destroy(world.layers);
    }
}

/* Unseen cells are exactly those whose centre a ray cannot reach, unless something returned there.
 */
static void unseen_equals_ray_casting_at_centres(void)
{
    for (uint32_t round = 20; round < 32; round++) {
        struct world world;
        struct box boxes[AGENTS_MAX];
        random_world(&world, round, round - 12, boxes);
        draw(&world, 1, bev);
        int differences = 0;
        for (int i = 0; i < BEV_CELLS; i++) {
            double x = BEV_X_MIN_M + (i / BEV_COLS + 0.5) * BEV_CELL_M;
            double y = BEV_Y_MIN_M + (i % BEV_COLS + 0.5) * BEV_CELL_M;
            bool hidden = look(&world, boxes, x, y) == SIGHT_HIDDEN && bev[i] == 0;
            differences += (bev[BEV_UNSEEN * BEV_CELLS + i] != 0) != hidden;
        }
        EXPECT_INT(differences, 0);
        raster_layers_destroy(world.layers);
    }
}

/* A low box returns from its whole footprint and hides nothing: the sum of coverage is its area, at
 * any angle. */
static void low_box_returns_its_whole_area(void)
{
    for (int k = 0; k < 40; k++) {
        struct world world;
        world_init(&world);
        add(&world, 20.1 + 0.13 * k, -3.0 + 0.07 * k, k * 0.16, 3.7, 1.3)->low = true;
        draw(&world, 1, bev);
        EXPECT_NEAR(occupied_m2(bev), 3.7 * 1.3, 0.03);
        for (int i = 0; i < BEV_CELLS; i++) {
            EXPECT_INT(bev[BEV_UNSEEN * BEV_CELLS + i], 0);
        }
        raster_layers_destroy(world.layers);
    }
}

/* A car straight ahead shows its rear face, one metre deep; its position can be read from the grid
 * to a few millimetres, wherever it stands between cells. */
static void leading_car_can_be_located(void)
{
    for (int k = 0; k < 50; k++) {
        struct world world;
        world_init(&world);
        double rear = 15.0 + k * 0.037;
        double y = -0.4 + k * 0.013;
        add(&world, rear + 2.25, y, 0.0, 4.5, 1.8);
        draw(&world, 1, bev);
        EXPECT_NEAR(occupied_m2(bev), 1.8 * DEPTH_M, 0.02);
        double moment_x = 0.0;
        double moment_y = 0.0;
        double mass = 0.0;
        for (int i = 0; i < BEV_CELLS; i++) {
            moment_x += bev[i] * (BEV_X_MIN_M + (i / BEV_COLS + 0.5) * BEV_CELL_M);
            moment_y += bev[i] * (BEV_Y_MIN_M + (i % BEV_COLS + 0.5) * BEV_CELL_M);
            mass += bev[i];
        }
        /* The centroid of coverage: exact for full cells, partial ones pull it to their centre. */
        EXPECT_NEAR(moment_x / mass, rear + DEPTH_M / 2, 0.13);
        EXPECT_NEAR(moment_y / mass, y, 0.08);
        double front_area = 0.0; /* summed along a column, coverage gives the rear face exactly */
        for (int r = 0; r < BEV_ROWS; r++) {
            front_area += bev[r * BEV_COLS + (int)((y - BEV_Y_MIN_M) / BEV_CELL_M)];
        }
        EXPECT_NEAR(front_area / 255.0 * BEV_CELL_M, DEPTH_M, 0.01);
        raster_layers_destroy(world.layers);
    }
}

/* A child walks out behind a parked van: no return at all while the van hides it, part of it as it
 * emerges, all of it afterwards; and the space behind the van is marked unseen. */
static void child_behind_the_van_is_invisible_until_it_emerges(void)
{
    struct world world;
    world_init(&world);
    add(&world, 15.0, -3.2, 0.0, 5.5, 2.0)->height_m = 2.4;
    add(&world, 18.6, -4.6, PI_RAD / 2, 0.4, 0.4)->height_m = 1.1;
    double previous = 0.0;
    int hidden_steps = 0;
    int partial_steps = 0;
    int traces = 0;
    for (int step = 0; step <= 80; step++) {
        world.scene.agents[1].pose.y_m = -4.6 + 0.05 * step;
        world.scene.agents[1].present = true;
        draw(&world, 1, bev);
        double with = occupied_m2(bev);
        world.scene.agents[1].present = false;
        draw(&world, 1, other);
        double child = with - occupied_m2(other);
        EXPECT(child >= previous - 0.012); /* it only ever comes further out */
        previous = child;
        if (child < 1e-9) {
            hidden_steps++;
            traces += memcmp(bev, other, BEV_BYTES) != 0;
        } else if (child < 0.14) {
            partial_steps++;
        }
    }
    EXPECT(hidden_steps >= 25);
    /* Hidden means no trace at all, but for the step at which the sliver that shows is less than
     * half a grey level. */
    EXPECT(traces <= 1);
    EXPECT(partial_steps >= 3);
    EXPECT_NEAR(previous, 0.16, 0.005);
    int row = (int)((18.6 - BEV_X_MIN_M) / BEV_CELL_M);
    int col = (int)((-4.6 - BEV_Y_MIN_M) / BEV_CELL_M);
    EXPECT_INT(other[BEV_UNSEEN * BEV_CELLS + row * BEV_COLS + col], 255);
    raster_layers_destroy(world.layers);
}

/* Beyond visibility nothing returns and every cell is unseen. */
static void visibility_ends_the_world(void)
{
    struct world world;
    world_init(&world);
    add(&world, 38.0, 0.0, 0.0, 4.0, 2.0)->low = true;
    world.scene.conditions.visibility_m = 38.0;
    draw(&world, 1, bev);
    EXPECT_NEAR(occupied_m2(bev), 4.0, 0.1); /* the near half of it */
    for (int i = 0; i < BEV_CELLS; i++) {
        double x = BEV_X_MIN_M + (i / BEV_COLS + 0.5) * BEV_CELL_M;
        double y = BEV_Y_MIN_M + (i % BEV_COLS + 0.5) * BEV_CELL_M;
        double range = sqrt(x * x + y * y);
        if (range > 38.5) {
            EXPECT_INT(bev[i], 0);
            EXPECT_INT(bev[BEV_UNSEEN * BEV_CELLS + i], 255);
        } else if (range < 37.5) {
            EXPECT_INT(bev[BEV_UNSEEN * BEV_CELLS + i], 0);
        }
    }
    raster_layers_destroy(world.layers);
}

/* Moving and turning the whole scene changes no more than rounding: only positions relative to ego
 * matter, also 100 km away. */
static void only_relative_positions_matter(void)
{
    struct world world;
    struct box boxes[AGENTS_MAX];
    random_world(&world, 3, 14, boxes);
    draw(&world, 1, bev);
    const double angle = 0.7;
    const double shift[2] = {1e5, -7e4};
    double c;
    double s;
    dmath_sincos(angle, &s, &c);
    for (uint32_t i = 0; i < world.scene.agent_count; i++) {
        struct pose *pose = &world.scene.agents[i].pose;
        *pose = (struct pose){pose->x_m * c - pose->y_m * s + shift[0],
                              pose->x_m * s + pose->y_m * c + shift[1], pose->heading_rad + angle};
    }
    world.scene.ego.pose = (struct pose){shift[0], shift[1], angle};
    draw(&world, 1, other);
    int changed = 0;
    for (int i = 0; i < BEV_BYTES; i++) {
        changed += abs(bev[i] - other[i]) > 1;
    }
    EXPECT(changed <= 2); /* a cell centre that lies on the edge of a shadow to 1e-10 m */
    raster_layers_destroy(world.layers);
}

/* Same inputs, same bytes, whatever the buffer held; in clear weather not even the seed matters,
 * while in rain seed and tick do, and strays are few, weak and single. */
static void weather_is_reproducible(void)
{
    struct world world;
    struct box boxes[AGENTS_MAX];
    random_world(&world, 5, 16, boxes);
    for (int weather = 0; weather < WEATHER_COUNT; weather++) {
        world.scene.conditions.weather = (enum weather)weather;
        world.scene.tick = 7;
        memset(bev, 0x55, BEV_BYTES);
        draw(&world, 1, bev);
        draw(&world, 1, other);
        EXPECT(memcmp(bev, other, BEV_BYTES) == 0);
        memset(other, 0xAA, BEV_BYTES);
        raster_returns(world.layers, &world.scenario, &world.scene, 1, other);
        for (int i = 0; i < BEV_BYTES; i++) {
            bool of_the_map = i / BEV_CELLS == BEV_DRIVABLE || i / BEV_CELLS == BEV_MARKING;
            EXPECT_INT(other[i], of_the_map ? 0xAA : bev[i]);
        }
        draw(&world, 2, other);
        EXPECT_INT(memcmp(bev, other, BEV_BYTES) == 0, weather == WEATHER_CLEAR);
        world.scene.tick = 8;
        draw(&world, 1, other);
        EXPECT_INT(memcmp(bev, other, BEV_BYTES) == 0, weather == WEATHER_CLEAR);
        /* Every cell is the clear one, or lost and unseen, or a weak stray. */
        world.scene.tick = 7;
        world.scene.conditions.weather = WEATHER_CLEAR;
        draw(&world, 1, other);
        int lost = 0;
        int strays = 0;
        int returns = 0;
        for (int i = 0; i < BEV_CELLS; i++) {
            returns += other[i] != 0;
            if (bev[i] == other[i]) {
                continue;
            }
            if (other[i] != 0) {
                EXPECT_INT(bev[i], 0);
                EXPECT_INT(bev[BEV_UNSEEN * BEV_CELLS + i], 255);
                lost++;
            } else {
                EXPECT(bev[i] <= 96);
                strays++;
            }
        }
        EXPECT(strays <= 8);
        EXPECT(lost * 3 < returns);
        EXPECT(weather == WEATHER_CLEAR || lost + strays > 0);
    }
    raster_layers_destroy(world.layers);
}

/* A box around the sensor, boxes on top of each other, boxes across the grid's edges and a full
 * house: nothing breaks, and what reaches over the edge is cut there. */
static void awkward_boxes(void)
{
    struct world world;
    world_init(&world);
    add(&world, 0.5, 0.2, 0.3, 4.0, 2.0);
    add(&world, 80.0, 24.0, 0.4, 12.0, 2.5)->low = true;
    add(&world, -16.0, -24.0, 1.4, 12.0, 2.5)->low = true;
    add(&world, 30.0, 0.0, 0.0, 500.0, 0.01)->low = true;
    add(&world, 79.99, -23.99, 0.0, 1.0, 1.0)->low = true;
    add(&world, 30.0, 5.0, PI_RAD / 2, 4.0, 2.0);
    add(&world, 30.5, 5.5, PI_RAD / 2, 4.0, 2.0);
    draw(&world, 1, bev);
    EXPECT(occupied_m2(bev) > 8.0 + 1.0 + 0.9);
    EXPECT(bev[BEV_CELLS - BEV_COLS] > 250); /* the corner cell is covered to the edge */
    raster_layers_destroy(world.layers);
}

int main(void)
{
    return TEST_RUN(
        TEST(random_scenes_equal_ray_casting), TEST(unseen_equals_ray_casting_at_centres),
        TEST(low_box_returns_its_whole_area), TEST(leading_car_can_be_located),
        TEST(child_behind_the_van_is_invisible_until_it_emerges), TEST(visibility_ends_the_world),
        TEST(only_relative_positions_matter), TEST(weather_is_reproducible), TEST(awkward_boxes));
}
