/*
 * Goal: the motion-compensated frame is what engine/model.md says, and what it is for: returns go
 * on as their velocities say, nothing else changes, none are made or lost. Method: a second
 * implementation from the page alone, which adds in another order, on inputs up to the largest
 * sums; properties of single agents; and the engine's own pictures of a car that drives on, whose
 * second must lie where the first one was moved to.
 */
#include "engine/learned/motion.h"

#include "base/dmath.h"
#include "tests/engine/maps.h"
#include "tests/engine/motion_inputs.h"
#include "tests/harness.h"

#include <stdlib.h>

static uint8_t past[FRAME_BEV_BYTES];
static uint8_t layout[FRAME_BEV_BYTES];
static uint8_t found[FRAME_BEV_BYTES];
static uint8_t expected[FRAME_BEV_BYTES];
static struct motion_sums sums;

static struct forward_input input_of(enum conditioning conditioning, struct window from,
                                     struct window to)
{
    return (struct forward_input){
        .conditioning = conditioning,
        .window = to,
        .layout_bev = layout,
        .page_count = 1,
        .pages = {{.frame = past, .window = from}},
    };
}

/* In the window that the past is in. */
static void move(enum conditioning conditioning)
{
    struct forward_input input =
        input_of(conditioning, (struct window){4, -7}, (struct window){4, -7});
    motion_frame(&input, &sums, found);
}

static uint8_t *position_at(uint8_t *bev, int32_t row, int32_t col)
{
    return bev + ((ptrdiff_t)row * WINDOW_SIDE + col) * FRAME_BEV_CHANNELS;
}

static uint8_t *cell_at(uint8_t *bev, int32_t row, int32_t col, int channel)
{
    return position_at(bev, row / 2, col / 2) + channel + 2 * (row % 2) + col % 2;
}

/* ---- the page again ---- */

static int64_t reference_cells[2][MOTION_SIDE][MOTION_SIDE];
static int64_t reference_positions[3][WINDOW_SIDE][WINDOW_SIDE];

/* floor(a / b) for b > 0 */
static int32_t floor_divide(int32_t a, int32_t b)
{
    return a / b - (a % b < 0);
}

static void reference_return(int32_t row, int32_t col, const uint8_t *position, int s)
{
    int32_t a = position[20] - 128;
    int32_t b = position[21] - 128;
    if (a >= -2 && a <= 2 && b >= -2 && b <= 2) {
        a = b = 0;
    }
    int32_t row20 = 20 * (2 * row + s / 2) + a;
    int32_t col20 = 20 * (2 * col + s % 2) + b;
    int32_t q = floor_divide(row20, 20);
    int32_t p = floor_divide(col20, 20);
    for (int32_t r = q; r <= q + 1; r++) {
        for (int32_t c = p; c <= p + 1; c++) {
            int64_t w = (20 - labs((long)row20 - 20 * r)) * (20 - labs((long)col20 - 20 * c));
            if (r >= 0 && r < MOTION_SIDE && c >= 0 && c < MOTION_SIDE) {
                reference_cells[0][r][c] += w * position[s];
                reference_cells[1][r][c] += w * position[4 + s];
                reference_positions[0][r / 2][c / 2] += w * position[s];
                reference_positions[1][r / 2][c / 2] += w * position[s] * a;
                reference_positions[2][r / 2][c / 2] += w * position[s] * b;
            }
        }
    }
}

static uint8_t reference_mean(int64_t sum, int64_t weight)
{
    return (uint8_t)(weight == 0 ? 128 : 128 + (int)round((double)sum / (double)weight));
}

/* Last position first. */
static void reference(const struct forward_input *in, uint8_t *out)
{
    memset(reference_cells, 0, sizeof reference_cells);
    memset(reference_positions, 0, sizeof reference_positions);
    for (int32_t at = WINDOW_POSITIONS - 1; at >= 0; at--) {
        int32_t row = at / WINDOW_SIDE;
        int32_t col = at % WINDOW_SIDE;
        int32_t r = row + 8 * (in->window.i - in->pages[0].window.i);
        int32_t c = col + 8 * (in->window.j - in->pages[0].window.j);
        bool valid = in->page_count > 0 && r >= 0 && r < 96 && c >= 0 && c < 96;
        const uint8_t *from = valid ? position_at(past, r, c) : NULL;
        uint8_t *to = position_at(out, row, col);
        for (int s = 3; s >= 0 && valid; s--) {
            if (from[s] > 0) {
                reference_return(row, col, from, s);
            }
        }
        for (int k = 8; k < 20; k++) {
            bool given = k >= 12 && in->conditioning == CONDITIONING_MAP;
            to[k] = given ? position_at(layout, row, col)[k] : valid ? from[k] : 0;
        }
    }
    for (int32_t at = 0; at < 4 * WINDOW_POSITIONS; at++) {
        int32_t row = at / MOTION_SIDE;
        int32_t col = at % MOTION_SIDE;
        const int64_t *o = &reference_cells[0][row][col];
        const int64_t *v = &reference_cells[1][row][col];
        *cell_at(out, row, col, 0) = (uint8_t)(*o >= 254 * 400 + 200 ? 255 : (*o + 200) / 400);
        *cell_at(out, row, col, 4) = (uint8_t)(*v >= 254 * 400 + 200 ? 255 : (*v + 200) / 400);
    }
    for (int32_t at = 0; at < WINDOW_POSITIONS; at++) {
        int32_t row = at / WINDOW_SIDE;
        int32_t col = at % WINDOW_SIDE;
        int64_t weight = reference_positions[0][row][col];
        out[at * 22 + 20] = reference_mean(reference_positions[1][row][col], weight);
        out[at * 22 + 21] = reference_mean(reference_positions[2][row][col], weight);
    }
}

static void expect_equal(uint32_t one_case)
{
    for (uint32_t k = 0; k < FRAME_BEV_BYTES; k++) {
        if (found[k] != expected[k]) {
            TEST_FAIL("case %u, position %u, channel %u: expected %u, found %u", one_case, k / 22,
                      k % 22, expected[k], found[k]);
        }
    }
}

static void it_is_what_the_page_says(void)
{
    static const struct window places[] = {{4, -7}, {5, -7},  {4, -8}, {1, 0},
                                           {15, 4}, {16, -7}, {4, 5},  {-40, 2000}};
    motion_inputs_fill(MOTION_DENSE, 77, layout);
    for (uint32_t i = 0; i < COUNT_OF(places) * MOTION_KINDS; i++) {
        enum conditioning conditioning = i % 3 == 0 ? CONDITIONING_NONE : CONDITIONING_MAP;
        motion_inputs_fill((enum motion_kind)(i % MOTION_KINDS), i, past);
        struct forward_input input =
            input_of(conditioning, (struct window){4, -7}, places[i / MOTION_KINDS]);
        motion_frame(&input, &sums, found);
        reference(&input, expected);
        expect_equal(i);
    }
}

/* Cells fit 32 bits with room; a position's mass times a velocity of 128 does not. */
static void the_largest_sums_fit(void)
{
    const int64_t per_axis = 14 * 20 + 7 + 8; /* all that can come to two cells of a row */
    uint32_t largest = 0;
    int64_t heaviest = 0;
    motion_inputs_fill(MOTION_MEETING, 0, past);
    move(CONDITIONING_NONE);
    for (uint32_t i = 0; i < MOTION_CELLS; i++) {
        largest = sums.occupancy[i] > largest ? sums.occupancy[i] : largest;
        heaviest = sums.weight[i / 4] > heaviest ? sums.weight[i / 4] : heaviest;
    }
    EXPECT_INT(heaviest, per_axis * per_axis * 255);
    EXPECT(largest >= heaviest / 4 && largest <= 225u * 400 * 255);
    EXPECT_INT(position_at(found, 6, 6)[FRAME_OCCUPANCY], 255);
    EXPECT_INT(position_at(found, 6, 6)[FRAME_VELOCITY], 128);
}

static void without_a_past_it_is_empty(void)
{
    for (int conditioning = CONDITIONING_MAP; conditioning <= CONDITIONING_NONE; conditioning++) {
        struct forward_input input =
            input_of((enum conditioning)conditioning, (struct window){0, 0}, (struct window){0, 0});
        input.page_count = 0;
        motion_inputs_fill(MOTION_DENSE, 5, layout);
        motion_frame(&input, &sums, found);
        for (uint32_t k = 0; k < FRAME_BEV_BYTES; k++) {
            uint32_t channel = k % FRAME_BEV_CHANNELS;
            bool map = channel >= FRAME_DRIVABLE && channel < FRAME_VELOCITY;
            uint8_t empty = channel >= FRAME_VELOCITY ? 128 : 0;
            EXPECT_INT(found[k], map && conditioning == CONDITIONING_MAP ? layout[k] : empty);
        }
    }
}

/* ---- one agent ---- */

struct blob {
    double mass, row, col, vru; /* sum of bytes, its centre in cells */
};

static struct blob blob_of(uint8_t *bev)
{
    struct blob blob = {0};
    for (int32_t row = 0; row < MOTION_SIDE; row++) {
        for (int32_t col = 0; col < MOTION_SIDE; col++) {
            double mass = *cell_at(bev, row, col, FRAME_OCCUPANCY);
            blob.mass += mass;
            blob.row += mass * row;
            blob.col += mass * col;
            blob.vru += *cell_at(bev, row, col, FRAME_VRU);
        }
    }
    blob.row /= blob.mass > 0.0 ? blob.mass : 1.0;
    blob.col /= blob.mass > 0.0 ? blob.mass : 1.0;
    return blob;
}

/* An empty world with an agent of 9 x 4 cells. */
static void put_agent(int32_t row, int32_t col, int32_t u, int32_t v)
{
    memset(past, 0, sizeof past);
    for (uint32_t i = 0; i < WINDOW_POSITIONS; i++) {
        past[i * FRAME_BEV_CHANNELS + FRAME_VELOCITY] = 128;
        past[i * FRAME_BEV_CHANNELS + FRAME_VELOCITY + 1] = 128;
    }
    for (int32_t r = row; r < row + 9; r++) {
        for (int32_t c = col; c < col + 4; c++) {
            *cell_at(past, r, c, FRAME_OCCUPANCY) = (uint8_t)(200 - r % 5);
            *cell_at(past, r, c, FRAME_VRU) = (uint8_t)(100 + c % 3);
            position_at(past, r / 2, c / 2)[FRAME_VELOCITY] = (uint8_t)(128 + u);
            position_at(past, r / 2, c / 2)[FRAME_VELOCITY + 1] = (uint8_t)(128 + v);
        }
    }
}

/* A velocity's unit of 0.25 m/s is 0.025 m or a twentieth of a cell in a tick of 0.1 s. */
static void an_agent_moves_by_its_velocity(void)
{
    static const int32_t velocities[][2] = {{0, 0},  {3, 0},    {0, -3},     {40, 0},     {0, 60},
                                            {-7, 9}, {77, -91}, {-128, 127}, {127, -128}, {2, 40}};
    for (size_t i = 0; i < COUNT_OF(velocities); i++) {
        int32_t u = velocities[i][0];
        int32_t v = velocities[i][1];
        put_agent(81, 90, u, v);
        struct blob before = blob_of(past);
        move(CONDITIONING_NONE);
        struct blob after = blob_of(found);
        EXPECT_NEAR(after.row - before.row, u / 20.0, 0.02);
        EXPECT_NEAR(after.col - before.col, v / 20.0, 0.02);
        EXPECT_NEAR(after.mass / before.mass, 1.0, 0.005);
        EXPECT_NEAR(after.vru / before.vru, 1.0, 0.01);
        for (uint32_t k = 0; k < FRAME_BEV_BYTES; k += FRAME_BEV_CHANNELS) {
            const uint8_t *at = found + k;
            bool any = at[0] > 0 || at[1] > 0 || at[2] > 0 || at[3] > 0;
            EXPECT(!any || (at[FRAME_VELOCITY] == 128 + u && at[FRAME_VELOCITY + 1] == 128 + v));
        }
    }
    /* By whole cells not a byte is lost. */
    put_agent(81, 90, 60, -100);
    move(CONDITIONING_NONE);
    for (int32_t row = 70; row < 100; row++) {
        for (int32_t col = 80; col < 110; col++) {
            EXPECT_INT(*cell_at(found, row + 3, col - 5, FRAME_OCCUPANCY),
                       *cell_at(past, row, col, FRAME_OCCUPANCY));
            EXPECT_INT(*cell_at(found, row + 3, col - 5, FRAME_VRU),
                       *cell_at(past, row, col, FRAME_VRU));
        }
    }
}

static void what_stands_keeps_its_bytes(void)
{
    motion_inputs_fill(MOTION_STANDING, 3, past);
    move(CONDITIONING_NONE);
    for (uint32_t k = 0; k < FRAME_BEV_BYTES; k++) {
        uint32_t channel = k % FRAME_BEV_CHANNELS;
        bool vru = channel >= FRAME_VRU && channel < FRAME_UNSEEN;
        bool seen = !vru || past[k - FRAME_VRU] > 0; /* road users without a return are dropped */
        EXPECT_INT(found[k], channel >= FRAME_VELOCITY ? 128 : seen ? past[k] : 0);
    }
}

/* A velocity of 0.75 m/s along one axis is one, and what it says of the other then counts too. */
static void slow_walkers_walk(void)
{
    put_agent(81, 90, 3, -1);
    struct blob before = blob_of(past);
    move(CONDITIONING_MAP);
    EXPECT_NEAR(blob_of(found).row - before.row, 0.15, 0.02);
    EXPECT_NEAR(blob_of(found).col - before.col, -0.05, 0.02);
}

static void mass_is_kept(void)
{
    for (uint32_t seed = 0; seed < 10; seed++) {
        uint32_t touched = 0;
        motion_inputs_fill(MOTION_SPARSE, seed, past);
        for (int32_t row = 0; row < MOTION_SIDE; row++) { /* nothing near the edge, no cell full */
            for (int32_t col = 0; col < MOTION_SIDE; col++) {
                bool inside =
                    row >= 14 && row < MOTION_SIDE - 14 && col >= 14 && col < MOTION_SIDE - 14;
                uint8_t *mass = cell_at(past, row, col, FRAME_OCCUPANCY);
                *mass = inside ? *mass / 4 : 0;
            }
        }
        move(CONDITIONING_MAP);
        for (uint32_t i = 0; i < MOTION_CELLS; i++) {
            touched += sums.occupancy[i] > 0;
            EXPECT(sums.occupancy[i] < 255 * 400);
        }
        EXPECT(touched > 1000);
        EXPECT_NEAR(blob_of(found).mass, blob_of(past).mass, 0.5 * touched);
        EXPECT_NEAR(blob_of(found).mass / blob_of(past).mass, 1.0, 0.01);
    }
}

static void what_leaves_the_window_is_gone(void)
{
    static const struct {
        int32_t row, col, u, v;
        double left; /* share of the mass */
    } cases[] = {
        {0, 90, -40, 0, 7.0 / 9},  {0, 90, -127, 0, (9 - 6.35) / 9},
        {183, 90, 30, 0, 7.5 / 9}, {81, 0, 0, -80, 0.0},
        {81, 188, 0, 10, 3.5 / 4}, {0, 0, -40, -40, 7.0 / 9 * 2 / 4},
        {183, 188, 127, 127, 0.0}, {0, 188, -20, 20, 8.0 / 9 * 3 / 4},
        {183, 0, -128, 127, 1.0},  {0, 0, 127, 127, 1.0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        put_agent(cases[i].row, cases[i].col, cases[i].u, cases[i].v);
        double before = blob_of(past).mass;
        move(CONDITIONING_NONE);
        EXPECT_NEAR(blob_of(found).mass / before, cases[i].left, 0.01);
    }
}

/* An agent in what only the present window has, or only the past one had, is not there. */
static void windows_overlap_in_part(void)
{
    for (int32_t step = -2; step <= 2; step++) {
        put_agent(4, 90, 0, 60); /* in the first patch of rows */
        struct blob before = blob_of(past);
        struct forward_input input =
            input_of(CONDITIONING_NONE, (struct window){0, 0}, (struct window){step, 0});
        motion_frame(&input, &sums, found);
        struct blob after = blob_of(found);
        EXPECT_NEAR(after.mass, step > 0 ? 0.0 : before.mass, 1e-9);
        if (step <= 0) {
            EXPECT_NEAR(after.row, before.row - 16 * step, 1e-9);
            EXPECT_NEAR(after.col, before.col + 3, 1e-9);
        }
    }
}

/* ---- the engine's own frames ---- */

/* Cars in all directions, seen from a standing ego: a tick later they are drawn where the frame
 * before says that they go. */
static void a_drawn_car_moves_to_where_it_is_drawn_next(void)
{
    struct arena arena;
    struct scenario scenario = {0};
    struct scene scene = {0};
    struct prepared *prepared = NULL;
    struct error error;
    arena_init(&arena, 1 << 20);
    maps_motorway(&arena, &scenario.map, 3, 400.0);
    maps_scenario(&arena, &scenario, (struct pose){100.0, 3.5, 0.0}, 0.0, 0, 1);
    maps_agent(&scenario, 0, AGENT_CAR, BEHAVIOUR_STATIC, (struct pose){130.0, 3.5, 0.0}, 0.0);
    EXPECT_OK(prepared_create(&scenario, &prepared, &error), error);
    scene.agent_count = 1;
    scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
    scene.ego.pose = scenario.ego.pose;
    struct anchor anchor = anchor_make((struct pose){90.0, -2.0, 0.7});
    struct window window = window_of(anchor_local(&anchor, scene.ego.pose));
    for (int i = 0; i < 16; i++) {
        double speed_mps = 3.0 + 1.7 * i;
        double heading_rad = 0.4 * i - 3.0;
        struct agent_state *car = &scene.agents[0];
        *car = (struct agent_state){
            .pose = {128.0, 8.0, heading_rad}, .speed_mps = speed_mps, .present = true};
        layout_bev(prepared, &scene, &anchor, window, CONDITIONING_AGENTS, past);
        car->pose.x_m += speed_mps * 0.1 * cos(heading_rad);
        car->pose.y_m += speed_mps * 0.1 * sin(heading_rad);
        layout_bev(prepared, &scene, &anchor, window, CONDITIONING_AGENTS, layout);
        struct forward_input input = input_of(CONDITIONING_NONE, window, window);
        motion_frame(&input, &sums, found);
        struct blob before = blob_of(past);
        struct blob next = blob_of(layout);
        struct blob motion = blob_of(found);
        double way = hypot(next.row - before.row, next.col - before.col);
        double off = hypot(next.row - motion.row, next.col - motion.col);
        EXPECT_NEAR(way, speed_mps * 0.2, 0.1);
        EXPECT_NEAR(off, 0.0, 0.1);
    }
    prepared_unref(prepared);
    arena_finish(&arena);
}

int main(void)
{
    return TEST_RUN(TEST(it_is_what_the_page_says), TEST(the_largest_sums_fit),
                    TEST(without_a_past_it_is_empty), TEST(an_agent_moves_by_its_velocity),
                    TEST(what_stands_keeps_its_bytes), TEST(slow_walkers_walk), TEST(mass_is_kept),
                    TEST(what_leaves_the_window_is_gone), TEST(windows_overlap_in_part),
                    TEST(a_drawn_car_moves_to_where_it_is_drawn_next));
}
