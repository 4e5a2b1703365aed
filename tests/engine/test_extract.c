/*
 * Goal: agents are found again in generated frames, and the frame statistics measure what they say.
 * Method: frames that a perfect model would generate (the noise-free layout of a scene driven by
 * the object world) and frames that the sensors would record stand in for the model; the tracked
 * scene is compared with the true one. Faults are planted in the frames.
 */
#include "base/check.h"
#include "base/units.h"
#include "engine/learned/frame_measure.h"
#include "engine/sensors/extract.h"
#include "engine/worlds/world.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

enum { AGENTS = 5, CAR = 0, WALKER = 1, HIDDEN_CAR = 2, CRATE = 3, FAR_CAR = 4 };

struct rig {
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
    struct world *truth;
    struct anchor anchor;
    struct window window;
    struct scene scene; /* as tracked */
    struct extract_track tracks[LIMIT_AGENTS];
    struct window_planes expected;
    uint8_t frame[FRAME_BYTES];
};

/* A car ahead that cuts its speed, a pedestrian who crosses, a car hidden behind a parked crate
 * of van size, and one beyond the window. */
static struct rig *setup(void)
{
    struct rig *rig = calloc(1, sizeof *rig);
    struct error error;
    CHECK(rig != NULL);
    arena_init(&rig->arena, 1 << 22);
    struct scenario *s = &rig->scenario;
    maps_motorway(&rig->arena, &s->map, 3, 600);
    maps_scenario(&rig->arena, s, (struct pose){50, 3.5, 0}, 10, 1, AGENTS);
    maps_agent(s, CAR, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){72, 3.5, 0}, 14);
    s->agents[CAR].manoeuvre_count = 2;
    s->agents[CAR].manoeuvres = arena_alloc(&rig->arena, 2, sizeof *s->agents[CAR].manoeuvres);
    s->agents[CAR].manoeuvres[0] = (struct manoeuvre){
        .trigger = {TRIGGER_TIME, 0.5}, .kind = MANOEUVRE_SPEED, .speed_mps = 8, .rate_mps2 = 3};
    s->agents[CAR].manoeuvres[1] = (struct manoeuvre){.trigger = {TRIGGER_TIME, 0.6},
                                                      .kind = MANOEUVRE_LANE_CHANGE,
                                                      .offset_m = 3.5,
                                                      .duration_s = 2.5};
    maps_agent(s, WALKER, AGENT_PEDESTRIAN, BEHAVIOUR_SCRIPT, (struct pose){95, -4, PI_RAD / 2},
               1.4);
    maps_agent(s, HIDDEN_CAR, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){70, -12, 0}, 10);
    maps_agent(s, CRATE, AGENT_OBJECT, BEHAVIOUR_STATIC, (struct pose){60, -5, 0}, 0);
    s->agents[CRATE].length_m = 8;
    s->agents[CRATE].height_m = 3;
    maps_agent(s, FAR_CAR, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){400, 0, 0}, 10);
    const struct world_config config = {.slot_count = 1};
    EXPECT_OK(prepared_create(s, &rig->prepared, &error), error);
    EXPECT_OK(world_object_ops.open(&config, &rig->truth, &error), error);
    EXPECT_OK(world_object_ops.slot_reset(rig->truth, 0, rig->prepared, 0, &error), error);
    rig->anchor = anchor_make(s->ego.pose);
    rig->scene = *world_object_ops.slot_scene(rig->truth, 0);
    rig->window = window_of(anchor_local(&rig->anchor, rig->scene.ego.pose));
    extract_start(rig->prepared, &rig->anchor, rig->window, &rig->expected, &rig->scene,
                  rig->tracks);
    return rig;
}

static void teardown(struct rig *rig)
{
    world_object_ops.close(rig->truth);
    prepared_unref(rig->prepared);
    arena_finish(&rig->arena);
    free(rig);
}

static const struct scene *true_scene(const struct rig *rig)
{
    return world_object_ops.slot_scene(rig->truth, 0);
}

/* The truth one tick on, and the frame that shows it: noise-free, or as the sensors record it. */
static void advance(struct rig *rig, bool noisy)
{
    const struct action action = {0};
    const uint8_t active = 1;
    world_object_ops.step(rig->truth, &action, &active);
    const struct scene *truth = true_scene(rig);
    rig->scene.ego = truth->ego;
    rig->scene.tick = truth->tick;
    rig->window = window_of(anchor_local(&rig->anchor, truth->ego.pose));
    if (noisy) {
        layout_sensed(rig->prepared, truth, 1, &rig->anchor, rig->window, rig->frame, NULL);
    } else {
        layout_bev(rig->prepared, truth, &rig->anchor, rig->window, CONDITIONING_AGENTS,
                   rig->frame);
    }
}

static struct extract_frame_stats track(struct rig *rig)
{
    return extract_step(rig->prepared, &rig->anchor, rig->window, rig->frame, &rig->expected,
                        &rig->scene, rig->tracks);
}

static double distance(const struct rig *rig, int agent)
{
    const struct pose *a = &rig->scene.agents[agent].pose;
    const struct pose *b = &true_scene(rig)->agents[agent].pose;
    return hypot(a->x_m - b->x_m, a->y_m - b->y_m);
}

static void follow(bool noisy, double car_m, double walker_m)
{
    struct rig *rig = setup();
    double worst[AGENTS] = {0};
    for (int tick = 0; tick < 30; tick++) {
        advance(rig, noisy);
        struct extract_frame_stats frame_stats = track(rig);
        EXPECT_INT(frame_stats.vanished, 0);
        EXPECT(frame_stats.jump_m < 0.5);
        for (int i = 0; i < AGENTS; i++) {
            EXPECT_INT(rig->scene.agents[i].present, i != HIDDEN_CAR && i != FAR_CAR);
            worst[i] = fmax(worst[i], distance(rig, i));
        }
    }
    EXPECT_NEAR(worst[CAR], 0, car_m);
    EXPECT_NEAR(worst[WALKER], 0, walker_m);
    EXPECT(worst[CRATE] == 0.0);
    const struct agent_state *car = &rig->scene.agents[CAR];
    EXPECT_NEAR(car->speed_mps, true_scene(rig)->agents[CAR].speed_mps, 0.7);
    EXPECT_NEAR(car->pose.heading_rad, true_scene(rig)->agents[CAR].pose.heading_rad, 0.1);
    teardown(rig);
}

static void agents_are_followed_through_perfect_frames(void)
{
    follow(false, 0.3, 0.1);
}

static void agents_are_followed_through_sensor_noise(void)
{
    follow(true, 0.5, 0.3);
}

/* A car that was seen and is then driven past out of the window. */
static void what_cannot_be_seen_any_more_keeps_its_velocity(void)
{
    struct rig *rig = setup();
    advance(rig, false);
    track(rig);
    rig->window = (struct window){-100, -100}; /* that shows nobody */
    for (int tick = 1; tick <= 8; tick++) {
        double before_m = rig->scene.agents[CAR].pose.x_m;
        double step_m = rig->tracks[CAR].vx_mps * TICK_S;
        track(rig);
        EXPECT_NEAR(rig->scene.agents[CAR].pose.x_m, before_m + step_m, 1e-9);
        EXPECT_INT(rig->tracks[CAR].missed_ticks, 0);
        EXPECT(rig->scene.agents[CAR].present);
    }
    teardown(rig);
}

/* Nobody can draw whom no frame showed: such an agent is not in the scene, and stays out of it also
 * where the truth comes into sight, moving or parked. */
static void an_agent_that_was_never_in_view_is_in_no_scene(void)
{
    struct rig *rig = setup();
    EXPECT(true_scene(rig)->agents[HIDDEN_CAR].present && true_scene(rig)->agents[FAR_CAR].present);
    for (int tick = 0; tick < 60; tick++) {
        EXPECT(!rig->scene.agents[HIDDEN_CAR].present && !rig->scene.agents[FAR_CAR].present);
        EXPECT(rig->scene.agents[CAR].present && rig->scene.agents[CRATE].present);
        advance(rig, false);
        EXPECT_INT(track(rig).vanished, 0);
    }
    teardown(rig);
}

static void clear_returns(uint8_t *frame)
{
    for (int i = 0; i < WINDOW_POSITIONS; i++) {
        memset(frame + i * FRAME_BEV_CHANNELS, 0, FRAME_UNSEEN);
    }
}

static void an_agent_that_is_not_drawn_vanishes_once_and_then_goes(void)
{
    struct rig *rig = setup();
    uint32_t vanished = 0;
    for (int tick = 1; tick <= EXTRACT_GONE_TICKS; tick++) {
        advance(rig, false);
        clear_returns(rig->frame);
        uint32_t now = track(rig).vanished;
        EXPECT(tick > EXTRACT_LOST_TICKS || (now > 0) == (tick == EXTRACT_LOST_TICKS));
        vanished += tick <= EXTRACT_LOST_TICKS ? now : 0;
        EXPECT_INT(rig->scene.agents[CAR].present, tick < EXTRACT_GONE_TICKS);
    }
    EXPECT_INT(vanished, 3); /* car, walker, crate: the others were not in view */
    EXPECT(rig->scene.agents[CRATE].present && !rig->scene.agents[FAR_CAR].present);
    teardown(rig);
}

static void a_shifted_agent_pulls_its_track_and_shows_as_a_jump(void)
{
    struct rig *rig = setup();
    advance(rig, false);
    EXPECT(track(rig).jump_m < 0.3);
    struct scene motion = *true_scene(rig);
    motion.agents[CAR].pose.y_m += 0.8;
    layout_bev(rig->prepared, &motion, &rig->anchor, rig->window, CONDITIONING_AGENTS, rig->frame);
    double before_m = rig->scene.agents[CAR].pose.y_m;
    struct extract_frame_stats frame_stats = track(rig);
    EXPECT(frame_stats.jump_m > 0.5);
    double step_m = rig->scene.agents[CAR].pose.y_m - before_m;
    EXPECT(step_m > 0.2 && step_m < 0.8);
    teardown(rig);
}

static void the_anchor_may_point_anywhere(void)
{
    struct rig *rig = setup();
    rig->anchor = anchor_make((struct pose){60, 10, 2.0});
    /* The window must still hold the scene: chosen by hand, since ego drives out of its middle. */
    struct pose middle = anchor_local(&rig->anchor, (struct pose){80, 3.5, 0});
    double worst = 0;
    for (int tick = 0; tick < 20; tick++) {
        advance(rig, false);
        rig->window = (struct window){(int32_t)floor((middle.x_m - 48) / 8),
                                      (int32_t)floor((middle.y_m - 48) / 8)};
        layout_bev(rig->prepared, true_scene(rig), &rig->anchor, rig->window, CONDITIONING_AGENTS,
                   rig->frame);
        track(rig);
        worst = fmax(worst, fmax(distance(rig, CAR), distance(rig, WALKER)));
    }
    EXPECT_NEAR(worst, 0, 0.4);
    teardown(rig);
}

/* ---- frame statistics ---- */

static void fill(uint8_t *frame, uint8_t occupancy, uint8_t camera)
{
    memset(frame, 0, FRAME_BEV_BYTES);
    for (int i = 0; i < WINDOW_POSITIONS; i++) {
        memset(frame + i * FRAME_BEV_CHANNELS, occupancy, 4);
    }
    for (int i = 0; i < FRAME_CAMERA_BYTES; i++) {
        frame[FRAME_BEV_BYTES + i] = (uint8_t)(camera + i % 50);
    }
}

static void frame_stats_measure_what_they_say(void)
{
    static uint8_t a[FRAME_BYTES];
    static uint8_t b[FRAME_BYTES];
    struct frame_stats frame_stats = {0};
    fill(a, 255, 100);
    fill(b, 51, 151);
    b[FRAME_VRU] = 255;
    struct frame_measure_input input = {
        .conditioning = CONDITIONING_AGENTS, .frame = b, .before = a, .layout = a};
    frame_measure(&input, &frame_stats);
    EXPECT_NEAR(frame_stats.occupancy_cells, 0.2 * 4 * WINDOW_POSITIONS, 1e-6);
    EXPECT_NEAR(frame_stats.vru_cells, 1.0, 1e-12);
    EXPECT_NEAR(frame_stats.layout_cells, 4.0 * WINDOW_POSITIONS, 1e-6);
    EXPECT_NEAR(frame_stats.bev_change, 0.8, 1e-9);
    EXPECT_NEAR(frame_stats.camera_change, 0.2, 1e-9);
    EXPECT_NEAR(frame_stats.layout_iou, 0.2, 1e-9);
    EXPECT_NEAR(frame_stats.camera_layout_corr, 1.0, 1e-9);
    for (int i = 0; i < FRAME_CAMERA_BYTES; i++) {
        b[FRAME_BEV_BYTES + i] = (uint8_t)(255 - a[FRAME_BEV_BYTES + i]);
    }
    frame_measure(&input, &frame_stats);
    EXPECT_NEAR(frame_stats.camera_layout_corr, -1.0, 1e-9);
    memset(b + FRAME_BEV_BYTES, 7, FRAME_CAMERA_BYTES);
    frame_measure(&input, &frame_stats);
    EXPECT_NEAR(frame_stats.camera_layout_corr, -1.0, 0.0); /* a blank picture of something */
    input.conditioning = CONDITIONING_NONE;
    frame_measure(&input, &frame_stats);
    EXPECT(isnan(frame_stats.layout_iou) && isnan(frame_stats.layout_cells));
}

/* One occupied position that stays where it is in the world while the window moves. */
static void change_is_measured_in_the_world(void)
{
    static uint8_t now[FRAME_BYTES];
    static uint8_t before[FRAME_BYTES];
    const int row = 40, col = 50, i = -1, j = 2;
    struct frame_stats frame_stats = {0};
    before[((row + WINDOW_PATCH * i) * WINDOW_SIDE + col + WINDOW_PATCH * j) * FRAME_BEV_CHANNELS] =
        255;
    now[(row * WINDOW_SIDE + col) * FRAME_BEV_CHANNELS] = 255;
    struct frame_measure_input input = {.conditioning = CONDITIONING_MAP,
                                        .frame = now,
                                        .before = before,
                                        .window = {5 + i, 7 + j},
                                        .before_window = {5, 7}};
    frame_measure(&input, &frame_stats);
    EXPECT(frame_stats.bev_change == 0.0);
    input.window.j -= 1;
    frame_measure(&input, &frame_stats);
    EXPECT_NEAR(frame_stats.bev_change, 2.0 / (4.0 * 88 * 88), 1e-12);
    input.window.i = 100; /* nothing in common */
    frame_measure(&input, &frame_stats);
    EXPECT(frame_stats.bev_change == 0.0);
}

int main(void)
{
    return TEST_RUN(TEST(agents_are_followed_through_perfect_frames),
                    TEST(agents_are_followed_through_sensor_noise),
                    TEST(what_cannot_be_seen_any_more_keeps_its_velocity),
                    TEST(an_agent_that_was_never_in_view_is_in_no_scene),
                    TEST(an_agent_that_is_not_drawn_vanishes_once_and_then_goes),
                    TEST(a_shifted_agent_pulls_its_track_and_shows_as_a_jump),
                    TEST(the_anchor_may_point_anywhere), TEST(frame_stats_measure_what_they_say),
                    TEST(change_is_measured_in_the_world));
}
