/*
 * The layout of learned worlds, against models and properties: the window rule, the window's
 * planes against the observation's rasteriser (where cells coincide: the same bytes; where they do
 * not: the same areas in the same places), the conditionings, the conditions vector, the way back
 * to the observation, and the statistics and reproducibility of the sensor noise.
 */
#include "engine/sensors/layout.h"

#include "base/dmath.h"
#include "base/rng.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/raster.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"

#include <stdlib.h>

/* See bytes_do_not_depend_on_the_compiler. */
#define FRAME_HASH UINT64_C(0x571349DE60BE1C2A)

enum { CELLS = 2 * WINDOW_SIDE, AGENTS = 14 };

static uint8_t frame[FRAME_BEV_BYTES];
static uint8_t frame_other[FRAME_BEV_BYTES];
static uint8_t cameras[FRAME_CAMERA_BYTES];
static uint8_t cameras_other[FRAME_CAMERA_BYTES];
static uint8_t bev[BEV_BYTES];
static uint8_t bev_other[BEV_BYTES];

/* ---- scenes ---- */

struct rig {
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
    struct scene scene;
};

static double uniform(uint32_t element, double low, double high)
{
    return low + (high - low) * rng_uniform(99, RNG_STREAM_TEST, 0, element);
}

static void rig_init(struct rig *rig, uint32_t agents)
{
    struct error error;
    memset(rig, 0, sizeof *rig);
    arena_init(&rig->arena, 1 << 20);
    maps_motorway(&rig->arena, &rig->scenario.map, 3, 400.0);
    maps_scenario(&rig->arena, &rig->scenario, (struct pose){100.0, 3.5, 0.0}, 12.0, 0, agents);
    for (uint32_t i = 0; i < agents; i++) {
        static const enum agent_kind kinds[] = {AGENT_CAR, AGENT_PEDESTRIAN, AGENT_TRUCK,
                                                AGENT_CYCLIST, AGENT_VAN};
        maps_agent(&rig->scenario, i, kinds[i % 5], BEHAVIOUR_STATIC,
                   (struct pose){40.0 + 20.0 * i, 0.0, 0.0}, 0.0);
    }
    EXPECT_OK(prepared_create(&rig->scenario, &rig->prepared, &error), error);
    rig->scene.agent_count = agents;
    rig->scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
    rig->scene.ego.pose = rig->scenario.ego.pose;
    rig->scene.ego.speed_mps = 12.0;
}

static void rig_finish(struct rig *rig)
{
    prepared_unref(rig->prepared);
    arena_finish(&rig->arena);
}

/* Agents anywhere around ego, turned anyhow, not over it. */
static void scatter(struct rig *rig, uint32_t round)
{
    const struct pose *ego = &rig->scene.ego.pose;
    for (uint32_t i = 0; i < rig->scene.agent_count; i++) {
        uint32_t e = (round * 64 + i) * 8;
        double range = uniform(e, 9.0, 60.0);
        double bearing = ego->heading_rad + uniform(e + 1, -1.3, 1.3);
        rig->scene.agents[i] = (struct agent_state){
            .pose = {ego->x_m + range * cos(bearing), ego->y_m + range * sin(bearing),
                     uniform(e + 2, -3.0, 3.0)},
            .speed_mps = uniform(e + 3, -2.0, 20.0),
            .present = i % 7 != 6,
        };
    }
}

static uint8_t cell_of(const uint8_t *bytes, int channel, int32_t row, int32_t col)
{
    return bytes[((row / 2) * WINDOW_SIDE + col / 2) * FRAME_BEV_CHANNELS + channel +
                 2 * (row & 1) + (col & 1)];
}

/* ---- anchor and window ---- */

static void anchors_turn_and_shift(void)
{
    for (uint32_t n = 0; n < 200; n++) {
        struct pose origin = {uniform(n * 8, -1e4, 1e4), uniform(n * 8 + 1, -1e4, 1e4),
                              uniform(n * 8 + 2, -3.1, 3.1)};
        struct pose local = {uniform(n * 8 + 3, -200, 200), uniform(n * 8 + 4, -200, 200),
                             uniform(n * 8 + 5, -3.1, 3.1)};
        double c = cos(origin.heading_rad);
        double s = sin(origin.heading_rad);
        struct pose world = {origin.x_m + local.x_m * c - local.y_m * s,
                             origin.y_m + local.x_m * s + local.y_m * c,
                             origin.heading_rad + local.heading_rad};
        struct anchor anchor = anchor_make(origin);
        struct pose back = anchor_local(&anchor, world);
        EXPECT_NEAR(back.x_m, local.x_m, 1e-8);
        EXPECT_NEAR(back.y_m, local.y_m, 1e-8);
        EXPECT_NEAR(back.heading_rad, local.heading_rad, 1e-9);
    }
}

/* One axis: where the window may lie, said in another way than the code does. */
static void check_axis(int32_t patch, double ego, double share)
{
    double low = patch * 8.0;
    double high = low + 96.0;
    double want_low = ego + 32.0 * share - 48.0; /* what a window that does not snap would cover */
    double want_high = want_low + 96.0;
    EXPECT(low <= ego - 7.9 && high >= ego + 7.9);
    if (share > 0.3801) {
        EXPECT(high >= want_high - 1e-9 && low < want_low + 8.0); /* nothing lost ahead */
    } else if (share < -0.3801) {
        EXPECT(low <= want_low + 1e-9 && high > want_high - 8.0);
    } else if (fabs(share) < 0.3799) {
        EXPECT(fabs(low - want_low) <= 4.0 + 1e-9);
    }
}

static void windows_give_up_what_is_behind(void)
{
    for (uint32_t n = 0; n < 5000; n++) {
        struct pose ego = {uniform(n * 4, -500, 500), uniform(n * 4 + 1, -500, 500),
                           uniform(n * 4 + 2, -3.2, 3.2)};
        struct window window = window_of(ego);
        check_axis(window.i, ego.x_m, cos(ego.heading_rad));
        check_axis(window.j, ego.y_m, sin(ego.heading_rad));
        ego.x_m += 8.0;
        ego.y_m -= 16.0;
        EXPECT_INT(window_of(ego).i, window.i + 1);
        EXPECT_INT(window_of(ego).j, window.j - 2);
    }
    /* Exact cases: along u ceil(-2) = -2 and then -1; across, halves go up. */
    struct pose ego = {0.0, 0.0, 0.0};
    EXPECT_INT(window_of(ego).i, -2);
    EXPECT_INT(window_of(ego).j, -6);
    ego.x_m = 0.01;
    EXPECT_INT(window_of(ego).i, -1);
    ego.y_m = 4.0;
    EXPECT_INT(window_of(ego).j, -5);
    ego.y_m = 3.99;
    EXPECT_INT(window_of(ego).j, -6);
}

/* ---- cameras ---- */

static void pictures_pack_and_unpack(void)
{
    static uint8_t image[CAMERA_BYTES];
    static uint8_t again[CAMERA_BYTES];
    static uint8_t packed[FRAME_CAMERA_BYTES / CAMERA_COUNT];
    for (int i = 0; i < CAMERA_BYTES; i++) {
        image[i] = (uint8_t)(rng_mix((uint64_t)i) & 255);
    }
    layout_camera_pack(image, packed);
    for (int row = 0; row < CAMERA_ROWS; row++) {
        for (int col = 0; col < CAMERA_COLS; col++) {
            for (int k = 0; k < 3; k++) {
                int s = 2 * (row & 1) + (col & 1);
                EXPECT_INT(packed[((row / 2) * FRAME_CAMERA_COLS + col / 2) * 12 + 3 * s + k],
                           image[(row * CAMERA_COLS + col) * 3 + k]);
            }
        }
    }
    layout_camera_unpack(packed, again);
    EXPECT(memcmp(image, again, sizeof image) == 0);
}

/* ---- the window against the observation ---- */

/* With ego a whole number of cells from the window's corner on parallel axes, both grids
 * have the same cells. Returns how many cells were compared. */
static int compare_cells(const struct window *window, const struct pose *ego, int tolerance,
                         int odd_max)
{
    static const int channels[][2] = {{FRAME_OCCUPANCY, BEV_OCCUPANCY},
                                      {FRAME_UNSEEN, BEV_UNSEEN},
                                      {FRAME_DRIVABLE, BEV_DRIVABLE},
                                      {FRAME_MARKING, BEV_MARKING}};
    int32_t row0 = (int32_t)lround((ego->x_m - 16.0 - 8.0 * window->i) * 2);
    int32_t col0 = (int32_t)lround((ego->y_m - 24.0 - 8.0 * window->j) * 2);
    int compared = 0;
    int odd = 0;
    for (int32_t r = 0; r < BEV_ROWS; r++) {
        for (int32_t c = 0; c < BEV_COLS; c++) {
            int32_t row = row0 + r;
            int32_t col = col0 + c;
            if (row < 0 || row >= CELLS || col < 0 || col >= CELLS) {
                continue;
            }
            for (int k = 0; k < 4; k++) {
                int found = cell_of(frame, channels[k][0], row, col);
                int expected = bev[channels[k][1] * BEV_CELLS + r * BEV_COLS + c];
                odd += abs(found - expected) > tolerance;
                compared++;
            }
        }
    }
    EXPECT(odd <= odd_max);
    return compared;
}

static void the_window_is_the_observation_on_parallel_axes(void)
{
    struct rig rig;
    rig_init(&rig, AGENTS);
    for (uint32_t round = 0; round < 24; round++) {
        bool turned = round % 2 == 1;
        rig.scene.ego.pose.heading_rad = turned ? uniform(round * 3, -3.0, 3.0) : 0.0;
        rig.scene.conditions.visibility_m = round % 3 == 0 ? 41.3 : 200.0;
        scatter(&rig, round);
        struct pose origin = rig.scene.ego.pose;
        double u = 0.5 * floor(uniform(round * 3 + 1, -80, 80));
        double v = 0.5 * floor(uniform(round * 3 + 2, -80, 80));
        origin.x_m -= u * cos(origin.heading_rad) - v * sin(origin.heading_rad);
        origin.y_m -= u * sin(origin.heading_rad) + v * cos(origin.heading_rad);
        struct anchor anchor = anchor_make(origin);
        struct pose local = anchor_local(&anchor, rig.scene.ego.pose);
        struct window window = window_of(local);
        layout_bev(rig.prepared, &rig.scene, &anchor, window, CONDITIONING_AGENTS, frame);
        raster_bev(rig.prepared->layers, &rig.scenario, &rig.scene, 7, bev);
        int compared = compare_cells(&window, &local, turned ? 3 : 1, turned ? 8 : 2);
        EXPECT(compared > 4 * 170 * 96);
    }
    rig_finish(&rig);
}

struct moments {
    double area_m2, x_m, y_m;
};

/* Area and centre of the occupancy in ego's frame, from a frame and from an observation. */
static struct moments frame_moments(const struct anchor *anchor, struct window window,
                                    const struct pose *ego, int channel)
{
    struct moments sum = {0};
    struct pose local = anchor_local(anchor, *ego);
    for (int32_t row = 0; row < CELLS; row++) {
        for (int32_t col = 0; col < CELLS; col++) {
            double weight = cell_of(frame, channel, row, col) / 255.0 * 0.25;
            double du = 8.0 * window.i + 0.5 * row + 0.25 - local.x_m;
            double dv = 8.0 * window.j + 0.5 * col + 0.25 - local.y_m;
            double c = cos(local.heading_rad);
            double s = sin(local.heading_rad);
            sum.area_m2 += weight;
            sum.x_m += weight * (du * c + dv * s);
            sum.y_m += weight * (-du * s + dv * c);
        }
    }
    return (struct moments){sum.area_m2, sum.x_m / sum.area_m2, sum.y_m / sum.area_m2};
}

static struct moments bev_moments(const uint8_t *occupancy)
{
    struct moments sum = {0};
    for (int r = 0; r < BEV_ROWS; r++) {
        for (int c = 0; c < BEV_COLS; c++) {
            double weight = occupancy[r * BEV_COLS + c] / 255.0 * 0.25;
            sum.area_m2 += weight;
            sum.x_m += weight * (BEV_X_MIN_M + (r + 0.5) * BEV_CELL_M);
            sum.y_m += weight * (BEV_Y_MIN_M + (c + 0.5) * BEV_CELL_M);
        }
    }
    return (struct moments){sum.area_m2, sum.x_m / sum.area_m2, sum.y_m / sum.area_m2};
}

static void on_turned_axes_agents_keep_area_and_place(void)
{
    struct rig rig;
    rig_init(&rig, 1);
    for (uint32_t round = 0; round < 60; round++) {
        rig.scene.ego.pose.heading_rad = uniform(round * 7, -3.0, 3.0);
        scatter(&rig, 100 + round);
        struct pose *agent = &rig.scene.agents[0].pose;
        double bearing = rig.scene.ego.pose.heading_rad + uniform(round * 7 + 1, -0.3, 0.3);
        double range = uniform(round * 7 + 2, 8.0, 36.0);
        agent->x_m = rig.scene.ego.pose.x_m + range * cos(bearing);
        agent->y_m = rig.scene.ego.pose.y_m + range * sin(bearing);
        struct pose origin = {rig.scene.ego.pose.x_m + uniform(round * 7 + 3, -90, 90),
                              rig.scene.ego.pose.y_m + uniform(round * 7 + 4, -90, 90),
                              uniform(round * 7 + 5, -3.1, 3.1)};
        struct anchor anchor = anchor_make(origin);
        struct window window = window_of(anchor_local(&anchor, rig.scene.ego.pose));
        layout_bev(rig.prepared, &rig.scene, &anchor, window, CONDITIONING_AGENTS, frame);
        raster_bev(rig.prepared->layers, &rig.scenario, &rig.scene, 0, bev);
        struct moments found = frame_moments(&anchor, window, &rig.scene.ego.pose, FRAME_OCCUPANCY);
        struct moments expected = bev_moments(bev + BEV_OCCUPANCY * BEV_CELLS);
        EXPECT(expected.area_m2 > 0.5);
        EXPECT_NEAR(found.area_m2 / expected.area_m2, 1.0, 0.02);
        EXPECT_NEAR(found.x_m, expected.x_m, 0.02);
        EXPECT_NEAR(found.y_m, expected.y_m, 0.02);
    }
    rig_finish(&rig);
}

static void road_users_are_told_apart_and_move(void)
{
    static const struct {
        enum agent_kind kind;
        bool vulnerable;
    } cases[] = {{AGENT_CAR, false},       {AGENT_PEDESTRIAN, true}, {AGENT_CYCLIST, true},
                 {AGENT_MOTORCYCLE, true}, {AGENT_ANIMAL, true},     {AGENT_OBJECT, false}};
    struct rig rig;
    rig_init(&rig, 1);
    struct anchor anchor = anchor_make((struct pose){80.0, 0.0, 0.5});
    struct window window = window_of(anchor_local(&anchor, rig.scene.ego.pose));
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        rig.scenario.agents[0].kind = cases[k].kind;
        rig.scene.agents[0] =
            (struct agent_state){.pose = {120.0, 3.5, 2.0}, .speed_mps = 5.0, .present = true};
        layout_bev(rig.prepared, &rig.scene, &anchor, window, CONDITIONING_AGENTS, frame);
        int occupied = 0;
        for (int p = 0; p < WINDOW_POSITIONS; p++) {
            const uint8_t *at = frame + (size_t)p * FRAME_BEV_CHANNELS;
            bool any = false;
            for (int s = 0; s < 4; s++) {
                EXPECT_INT(at[FRAME_VRU + s], cases[k].vulnerable ? at[FRAME_OCCUPANCY + s] : 0);
                any = any || at[FRAME_OCCUPANCY + s] > 0;
            }
            occupied += any;
            /* Along u and v: 5 m/s at 1.5 rad from the anchor's heading. */
            EXPECT_INT(at[FRAME_VELOCITY], any ? (int)floor(128.5 + 20.0 * cos(1.5)) : 128);
            EXPECT_INT(at[FRAME_VELOCITY + 1], any ? (int)floor(128.5 + 20.0 * sin(1.5)) : 128);
        }
        EXPECT(occupied >= 1);
    }
    /* Faster than a byte can say. */
    rig.scene.agents[0].speed_mps = 60.0;
    rig.scene.agents[0].pose.heading_rad = 0.5;
    layout_bev(rig.prepared, &rig.scene, &anchor, window, CONDITIONING_AGENTS, frame);
    bool capped = false;
    for (int p = 0; p < WINDOW_POSITIONS; p++) {
        capped = capped || frame[(size_t)p * FRAME_BEV_CHANNELS + FRAME_VELOCITY] == 255;
    }
    EXPECT(capped);
    rig_finish(&rig);
}

/* The map keeps its bytes while the window stays, and its place when the window follows ego; the
 * tolerance is a step of the interpolation's weights. */
static void the_map_does_not_move(void)
{
    struct rig rig;
    rig_init(&rig, 0);
    struct anchor anchor = anchor_make((struct pose){60.0, 1.0, 0.3});
    struct window first = {0, 0};
    int moves = 0;
    for (int step = 0; step < 40; step++) {
        rig.scene.ego.pose.x_m = 100.0 + 1.3 * step;
        struct window window = window_of(anchor_local(&anchor, rig.scene.ego.pose));
        layout_bev(rig.prepared, &rig.scene, &anchor, window, CONDITIONING_MAP, frame);
        if (step == 0) {
            first = window;
            memcpy(frame_other, frame, sizeof frame);
        }
        moves += window.i != first.i;
        for (int32_t row = 0; row < CELLS; row += 3) {
            int32_t before = row + 16 * (window.i - first.i);
            for (int32_t col = 0; col < CELLS; col++) {
                int32_t beside = col + 16 * (window.j - first.j);
                if (before < 0 || before >= CELLS || beside < 0 || beside >= CELLS) {
                    continue;
                }
                int now = cell_of(frame, FRAME_DRIVABLE, row, col);
                int then = cell_of(frame_other, FRAME_DRIVABLE, before, beside);
                EXPECT(abs(now - then) <= (window.i == first.i && window.j == first.j ? 0 : 8));
            }
        }
    }
    EXPECT(moves > 10);
    rig_finish(&rig);
}

/* ---- conditionings ---- */

static void conditionings_give_less_and_less(void)
{
    struct rig rig;
    rig_init(&rig, AGENTS);
    scatter(&rig, 3);
    struct anchor anchor = anchor_make((struct pose){90.0, 2.0, -0.4});
    struct window window = window_of(anchor_local(&anchor, rig.scene.ego.pose));
    layout_bev(rig.prepared, &rig.scene, &anchor, window, CONDITIONING_AGENTS, frame_other);
    for (int conditioning = CONDITIONING_MAP; conditioning <= CONDITIONING_NONE; conditioning++) {
        memset(frame, 77, sizeof frame);
        layout_bev(rig.prepared, &rig.scene, &anchor, window, (enum conditioning)conditioning,
                   frame);
        for (int i = 0; i < FRAME_BEV_BYTES; i++) {
            int channel = i % FRAME_BEV_CHANNELS;
            bool map = channel >= FRAME_DRIVABLE && channel < FRAME_VELOCITY;
            int empty = channel >= FRAME_VELOCITY ? 128 : 0;
            EXPECT_INT(frame[i], map && conditioning == CONDITIONING_MAP ? frame_other[i] : empty);
        }
    }
    rig_finish(&rig);
}

static void camera_layouts_know_no_weather(void)
{
    struct rig rig;
    rig_init(&rig, AGENTS);
    scatter(&rig, 4);
    layout_cameras(rig.prepared, &rig.scene, CONDITIONING_AGENTS, cameras);
    rig.scene.conditions = (struct conditions){WEATHER_SNOW, LIGHT_NIGHT, 0.4, 45.0};
    rig.scene.tick = 9;
    layout_cameras(rig.prepared, &rig.scene, CONDITIONING_AGENTS, cameras_other);
    EXPECT(memcmp(cameras, cameras_other, sizeof cameras) == 0);
    layout_cameras(rig.prepared, &rig.scene, CONDITIONING_MAP, cameras_other);
    EXPECT(memcmp(cameras, cameras_other, sizeof cameras) != 0);
    rig.scene.agent_count = 0;
    layout_cameras(rig.prepared, &rig.scene, CONDITIONING_AGENTS, cameras);
    EXPECT(memcmp(cameras, cameras_other, sizeof cameras) == 0);
    layout_cameras(rig.prepared, &rig.scene, CONDITIONING_NONE, cameras);
    for (int i = 0; i < FRAME_CAMERA_BYTES; i++) {
        EXPECT_INT(cameras[i], 128);
    }
    rig_finish(&rig);
}

/* ---- conditions ---- */

static uint32_t naive_bucket(const char *word)
{
    uint32_t hash = 2166136261u;
    for (; *word != '\0'; word++) {
        hash ^= (uint8_t)*word;
        hash *= 16777619u;
    }
    return 24 + hash % 16;
}

static void conditions_say_what_the_page_says(void)
{
    struct rig rig;
    float cond[COND_COUNT];
    rig_init(&rig, 0);
    snprintf(rig.scenario.slices.value[SLICE_WEATHER], LIMIT_ID_BYTES, "heavy_rain");
    snprintf(rig.scenario.prompt, sizeof rig.scenario.prompt, "A Child, a child: a RAIN-coat! 42.");
    rig.scene.conditions = (struct conditions){WEATHER_FOG, LIGHT_DUSK, 0.8, 50.0};
    rig.scene.ego = (struct ego_state){.pose = {103.0, 4.0, 0.8},
                                       .speed_mps = 10.0,
                                       .accel_mps2 = -2.5,
                                       .yaw_rate_rps = 0.25,
                                       .steer_rad = 0.05};
    struct ego_state before = rig.scene.ego;
    before.pose = (struct pose){103.0 - cos(0.75), 4.0 - sin(0.75), 0.75};
    struct anchor anchor = anchor_make((struct pose){100.0, 4.0, 0.3});
    struct window window = {-1, -3};
    layout_conditions(rig.prepared, &rig.scene, &before, &anchor, window, CONDITIONING_MAP, cond);
    float expected[COND_COUNT] = {0};
    expected[1] = 1.0f;
    expected[3 + WEATHER_FOG] = 1.0f;
    expected[8 + LIGHT_DUSK] = 1.0f;
    expected[11] = 0.25f;
    expected[12] = 0.8f;
    expected[13] = 0.5f;
    expected[14] = -0.5f;
    expected[15] = 0.25f;
    expected[16] = 0.1f;
    expected[17] = (float)cos(0.5);
    expected[18] = (float)sin(0.5);
    expected[19] = 0.5f;
    expected[21] = 0.5f;
    expected[22] = (float)((3.0 * cos(0.3) + 8.0 - 48.0) / 48.0);
    expected[23] = (float)((-3.0 * sin(0.3) + 24.0 - 48.0) / 48.0);
    static const char *const words[] = {"heavy", "rain", "a",    "child", "a",
                                        "child", "a",    "rain", "coat",  "42"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        expected[naive_bucket(words[i])] += 0.25f;
    }
    for (int i = 0; i < COND_COUNT; i++) {
        float most = i >= 24 && i < 40 && expected[i] > 1.0f ? 1.0f : expected[i];
        EXPECT_NEAR(cond[i], most, 1e-6);
    }
    rig_finish(&rig);
}

/* ---- back to the observation ---- */

static void observing_an_aligned_window_copies_it(void)
{
    struct rig rig;
    rig_init(&rig, AGENTS);
    scatter(&rig, 5);
    struct anchor anchor = anchor_make((struct pose){61.5, 1.5, 0.0});
    struct pose local = anchor_local(&anchor, rig.scene.ego.pose);
    struct window window = window_of(local);
    layout_bev(rig.prepared, &rig.scene, &anchor, window, CONDITIONING_AGENTS, frame);
    raster_bev(rig.prepared->layers, &rig.scenario, &rig.scene, 0, bev);
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
        memset(bev_other, 99, sizeof bev_other);
        layout_observe_bev(rig.prepared, &rig.scene, &anchor, window,
                           (enum conditioning)conditioning, frame, bev_other);
        int outside = 0;
        for (int r = 0; r < BEV_ROWS; r++) {
            double u = local.x_m - 16.0 + 0.5 * r + 0.25 - 8.0 * window.i;
            for (int c = 0; c < BEV_COLS; c++) {
                double v = local.y_m - 24.0 + 0.5 * c + 0.25 - 8.0 * window.j;
                bool in = u > 0 && u < 96 && v > 0 && v < 96;
                outside += !in;
                for (int k = 0; k < BEV_CHANNELS; k++) {
                    int i = k * BEV_CELLS + r * BEV_COLS + c;
                    bool map = k >= BEV_DRIVABLE && conditioning != CONDITIONING_NONE;
                    int expected = in || map ? bev[i] : k == BEV_UNSEEN ? 255 : 0;
                    EXPECT(abs(bev_other[i] - expected) <= 1);
                }
            }
        }
        EXPECT(outside > 0 && outside < BEV_CELLS / 8);
    }
    rig_finish(&rig);
}

static void observing_a_turned_window_keeps_the_scene(void)
{
    struct rig rig;
    rig_init(&rig, AGENTS);
    for (uint32_t round = 0; round < 12; round++) {
        rig.scene.ego.pose.heading_rad = uniform(round * 5, -3.0, 3.0);
        scatter(&rig, 40 + round);
        struct anchor anchor = anchor_make((struct pose){uniform(round * 5 + 1, 50, 150),
                                                         uniform(round * 5 + 2, -20, 20),
                                                         uniform(round * 5 + 3, -3.0, 3.0)});
        struct window window = window_of(anchor_local(&anchor, rig.scene.ego.pose));
        layout_bev(rig.prepared, &rig.scene, &anchor, window, CONDITIONING_AGENTS, frame);
        raster_bev(rig.prepared->layers, &rig.scenario, &rig.scene, 0, bev);
        layout_observe_bev(rig.prepared, &rig.scene, &anchor, window, CONDITIONING_AGENTS, frame,
                           bev_other);
        EXPECT(memcmp(bev + BEV_DRIVABLE * BEV_CELLS, bev_other + BEV_DRIVABLE * BEV_CELLS,
                      2 * (size_t)BEV_CELLS) == 0);
        double both = 0.0;
        double either = 0.0;
        int unseen_differs = 0;
        int inside = 0;
        for (int r = 40; r < BEV_ROWS - 20; r++) {
            for (int c = 12; c < BEV_COLS - 12; c++) {
                int i = r * BEV_COLS + c;
                double a = bev[BEV_OCCUPANCY * BEV_CELLS + i];
                double b = bev_other[BEV_OCCUPANCY * BEV_CELLS + i];
                both += a < b ? a : b;
                either += a > b ? a : b;
                inside++;
                unseen_differs += abs(bev[BEV_UNSEEN * BEV_CELLS + i] -
                                      bev_other[BEV_UNSEEN * BEV_CELLS + i]) > 200;
            }
        }
        EXPECT(either == 0.0 || both / either > 0.6);
        EXPECT(unseen_differs < inside / 50);
    }
    rig_finish(&rig);
}

/* ---- sensors ---- */

struct overlap {
    double both, either, sensed, clean;
};

static void sense(struct rig *rig, uint64_t seed, const struct anchor *anchor, struct window window)
{
    layout_bev(rig->prepared, &rig->scene, anchor, window, CONDITIONING_AGENTS, frame_other);
    layout_sensed(rig->prepared, &rig->scene, seed, anchor, window, frame, NULL);
}

/* Adds the present frames' overlap; checks what must hold cell by cell. */
static void check_sensed(struct overlap *sum)
{
    for (int p = 0; p < WINDOW_POSITIONS; p++) {
        const uint8_t *found = frame + (size_t)p * FRAME_BEV_CHANNELS;
        const uint8_t *clean = frame_other + (size_t)p * FRAME_BEV_CHANNELS;
        EXPECT(memcmp(found + FRAME_DRIVABLE, clean + FRAME_DRIVABLE, 10) == 0);
        for (int s = 0; s < 4; s++) {
            double a = found[FRAME_OCCUPANCY + s];
            double b = clean[FRAME_OCCUPANCY + s];
            sum->both += a < b ? a : b;
            sum->either += a > b ? a : b;
            sum->sensed += a;
            sum->clean += b;
            EXPECT(found[FRAME_VRU + s] <= found[FRAME_OCCUPANCY + s]);
            if (found[FRAME_OCCUPANCY + s] > 0) {
                EXPECT_INT(found[FRAME_UNSEEN + s], 0);
            } else if (clean[FRAME_OCCUPANCY + s] > 32) {
                EXPECT_INT(found[FRAME_UNSEEN + s], 255); /* lost */
            } else {
                EXPECT(found[FRAME_UNSEEN + s] >= clean[FRAME_UNSEEN + s]);
            }
        }
    }
}

static double overlap_in(struct rig *rig, enum weather weather, double visibility_m)
{
    struct overlap sum = {0};
    rig->scene.conditions = (struct conditions){weather, LIGHT_DAY, 1.0, visibility_m};
    for (uint32_t round = 0; round < 12; round++) {
        rig->scene.tick = round;
        scatter(rig, 60 + round);
        struct anchor anchor = anchor_make((struct pose){90.0, 3.0, uniform(round, -3.0, 3.0)});
        struct window window = window_of(anchor_local(&anchor, rig->scene.ego.pose));
        sense(rig, 5, &anchor, window);
        check_sensed(&sum);
    }
    EXPECT(sum.clean > 0 && sum.sensed > 0.8 * sum.clean && sum.sensed < 1.1 * sum.clean);
    return sum.both / sum.either;
}

static void sensors_are_good_but_not_perfect(void)
{
    struct rig rig;
    rig_init(&rig, AGENTS);
    double clear = overlap_in(&rig, WEATHER_CLEAR, 200.0);
    double snow = overlap_in(&rig, WEATHER_SNOW, 80.0);
    double fog = overlap_in(&rig, WEATHER_FOG, 50.0);
    printf("# overlap with the noise-free scene: clear %.3f, snow %.3f, fog %.3f\n", clear, snow,
           fog);
    EXPECT(clear > 0.86 && clear < 0.95);
    EXPECT(snow < clear - 0.03 && snow > 0.6);
    EXPECT(fog < clear - 0.03 && fog > 0.6);
    rig_finish(&rig);
}

static void noise_belongs_to_seed_tick_and_cell(void)
{
    struct rig rig;
    rig_init(&rig, AGENTS);
    scatter(&rig, 8);
    rig.scene.conditions = (struct conditions){WEATHER_RAIN, LIGHT_DUSK, 0.7, 120.0};
    rig.scene.tick = 31;
    struct anchor anchor = anchor_make((struct pose){90.0, 3.0, 0.2});
    struct window window = window_of(anchor_local(&anchor, rig.scene.ego.pose));
    layout_sensed(rig.prepared, &rig.scene, 5, &anchor, window, frame, cameras);
    layout_sensed(rig.prepared, &rig.scene, 5, &anchor, window, frame_other, cameras_other);
    EXPECT(memcmp(frame, frame_other, sizeof frame) == 0);
    EXPECT(memcmp(cameras, cameras_other, sizeof cameras) == 0);
    layout_sensed(rig.prepared, &rig.scene, 6, &anchor, window, frame_other, cameras_other);
    EXPECT(memcmp(frame, frame_other, sizeof frame) != 0);
    EXPECT(memcmp(cameras, cameras_other, sizeof cameras) != 0);
    rig.scene.tick = 32;
    layout_sensed(rig.prepared, &rig.scene, 5, &anchor, window, frame_other, cameras_other);
    EXPECT(memcmp(frame, frame_other, sizeof frame) != 0);
    EXPECT(memcmp(cameras, cameras_other, sizeof cameras) != 0);
    /* A window one patch on holds the same noise where both reach. */
    rig.scene.tick = 31;
    struct window next = {window.i + 1, window.j - 1};
    layout_sensed(rig.prepared, &rig.scene, 5, &anchor, next, frame_other, NULL);
    int compared = 0;
    for (int32_t row = 18; row < CELLS - 2; row++) {
        for (int32_t col = 2; col < CELLS - 18; col++) {
            for (int channel = 0; channel < 12; channel += 4) {
                int a = cell_of(frame, channel, row, col);
                int b = cell_of(frame_other, channel, row - 16, col + 16);
                EXPECT(abs(a - b) <= 1);
                compared += a > 0 && a < 255;
            }
        }
    }
    EXPECT(compared > 100);
    rig_finish(&rig);
}

static double camera_error(struct rig *rig, enum light light, double *mean)
{
    static uint8_t image[CAMERA_BYTES];
    double sum = 0.0;
    double squares = 0.0;
    int count = 0;
    rig->scene.conditions = (struct conditions){WEATHER_CLEAR, light, 1.0, 200.0};
    raster_camera(rig->prepared->layers, &rig->scenario, &rig->scene, 5, CAMERA_LEFT, image);
    layout_camera_pack(image, cameras_other);
    struct anchor anchor = anchor_make(rig->scene.ego.pose);
    layout_sensed(rig->prepared, &rig->scene, 5, &anchor, (struct window){-2, -6}, NULL, cameras);
    for (int i = 0; i < CAMERA_BYTES; i++) {
        if (cameras_other[i] > 24 && cameras_other[i] < 231) {
            double error = cameras[i] - cameras_other[i];
            sum += error;
            squares += error * error;
            count++;
        }
    }
    EXPECT(count > CAMERA_BYTES / 8);
    *mean = sum / count;
    return sqrt(squares / count);
}

static void pictures_are_noisier_at_night(void)
{
    struct rig rig;
    double mean_day;
    double mean_night;
    rig_init(&rig, AGENTS);
    scatter(&rig, 9);
    double day = camera_error(&rig, LIGHT_DAY, &mean_day);
    double night = camera_error(&rig, LIGHT_NIGHT, &mean_night);
    EXPECT(fabs(mean_day) < 0.2 && fabs(mean_night) < 0.4);
    EXPECT(day > 0.8 && day < 2.5);
    EXPECT(night > 2.0 * day && night < 8.0);
    rig_finish(&rig);
}

static uint64_t fold(uint64_t hash, const void *data, size_t bytes)
{
    const uint8_t *from = data;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ from[i]) * UINT64_C(0x100000001B3);
    }
    return hash;
}

/* Learned worlds are trained on these bytes and given them as conditions, so their hash over
 * weathers, lights and headings is fixed here. A change that means to alter them updates it, and
 * asks for new weights. */
static void bytes_do_not_depend_on_the_compiler(void)
{
    static float cond[COND_COUNT];
    struct rig rig;
    rig_init(&rig, 4);
    uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
    for (int k = 0; k < WEATHER_COUNT * LIGHT_COUNT; k++) {
        for (int i = 0; i < 4; i++) {
            rig.scene.agents[i] = (struct agent_state){
                .pose = {110.0 + 9.0 * i + k * 0.25, 6.0 - 4.0 * i, 0.5 * i - 0.125 * k},
                .speed_mps = 3.0 * i,
                .present = true};
        }
        rig.scene.tick = (uint32_t)k;
        rig.scene.ego.pose = (struct pose){100.0 + k * 0.375, 0.25, k * 0.0625 - 0.5};
        rig.scene.conditions = (struct conditions){
            (enum weather)(k % WEATHER_COUNT), (enum light)(k / WEATHER_COUNT), 0.7, 40.0 + 8 * k};
        struct anchor anchor = anchor_make((struct pose){90.0, 3.0, 0.375 * k});
        struct window window = window_of(anchor_local(&anchor, rig.scene.ego.pose));
        layout_sensed(rig.prepared, &rig.scene, 11, &anchor, window, frame, cameras);
        layout_bev(rig.prepared, &rig.scene, &anchor, window, CONDITIONING_AGENTS, frame_other);
        layout_observe_bev(rig.prepared, &rig.scene, &anchor, window, CONDITIONING_NONE, frame,
                           bev);
        layout_conditions(rig.prepared, &rig.scene, &rig.scene.ego, &anchor, window,
                          CONDITIONING_AGENTS, cond);
        hash = fold(hash, frame, sizeof frame);
        hash = fold(hash, cameras, sizeof cameras);
        hash = fold(hash, frame_other, sizeof frame_other);
        hash = fold(hash, bev, sizeof bev);
        hash = fold(hash, cond, sizeof cond);
    }
    if (hash != FRAME_HASH) {
        printf("# hash is now 0x%016llX\n", (unsigned long long)hash);
    }
    EXPECT(hash == FRAME_HASH);
    rig_finish(&rig);
}

int main(void)
{
    return TEST_RUN(
        TEST(anchors_turn_and_shift), TEST(windows_give_up_what_is_behind),
        TEST(pictures_pack_and_unpack), TEST(the_window_is_the_observation_on_parallel_axes),
        TEST(on_turned_axes_agents_keep_area_and_place), TEST(road_users_are_told_apart_and_move),
        TEST(the_map_does_not_move), TEST(conditionings_give_less_and_less),
        TEST(camera_layouts_know_no_weather), TEST(conditions_say_what_the_page_says),
        TEST(observing_an_aligned_window_copies_it),
        TEST(observing_a_turned_window_keeps_the_scene), TEST(sensors_are_good_but_not_perfect),
        TEST(noise_belongs_to_seed_tick_and_cell), TEST(pictures_are_noisier_at_night),
        TEST(bytes_do_not_depend_on_the_compiler));
}
