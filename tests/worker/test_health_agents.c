/*
 * Health of single agents in the conditioning `agents`. Goal: an agent that the model erases, moves
 * or doubles is flagged within five ticks, and one for which it does so now and then within a
 * stated number of them, whatever the weather, the light and the place, and a healthy sensor never
 * is. Method: random scenes in each weather and light; frames are what the
 * sensor model of the data generator makes of a scene that differs from the true one by the fault,
 * so that the fault lies in the frame; the judgement is the worker's own, with built-in bounds.
 * Faults are planted where they can be seen: the agent's returns are due.
 */
#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"
#include "engine/learned/agent_measure.h"
#include "engine/learned/frame_measure.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"
#include "worker/models/health_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CAR = 0, TRUCK, CHILD, WALKER, CYCLIST, CLONE, CLONE_WALKER, AGENTS };
enum { SCENES = 4, HEALTHY_TICKS = 30, SICK_TICKS = 5 };

/* When a fault is there: in the first `ticks` of each `period`, of 0 in every second tick at
 * random. It is found after so many ticks, of which a period is for a tick that strays hide. */
struct flicker {
    uint32_t period, ticks, within;
};
static const struct flicker always = {1, 1, SICK_TICKS};
static const struct flicker flickers[] = {{2, 1, 9},  {3, 1, 19}, {3, 2, 8}, {4, 1, 25},
                                          {4, 2, 10}, {4, 3, 7},  {0, 0, 24}};

enum fault {
    HEALTHY = 0,
    ERASED_WALKER,
    UNSEEN_WALKER, /* erased from the occupancy, which planners see, and not from its own channel */
    ERASED_CHILD,  /* beside a truck */
    ERASED_CAR,
    SHIFTED_CAR, /* 3 m, any direction */
    CLONED_CAR,
    CLONED_WALKER,
    FAULT_COUNT
};

static const struct {
    const char *name;
    int agent; /* that is flagged, -1: nobody */
    bool check[HEALTH_CHECK_COUNT];
} faults[FAULT_COUNT] = {
    [HEALTHY] = {"healthy", -1, {false}},
    [ERASED_WALKER] = {"erased walker", WALKER, {[HEALTH_ABSENT] = true}},
    [UNSEEN_WALKER] = {"unseen walker", WALKER, {[HEALTH_ABSENT] = true}},
    [ERASED_CHILD] = {"erased child", CHILD, {[HEALTH_ABSENT] = true}},
    [ERASED_CAR] = {"erased car", CAR, {[HEALTH_ABSENT] = true}},
    [SHIFTED_CAR] = {"shifted car",
                     CAR,
                     {[HEALTH_ABSENT] = true, [HEALTH_OFFSET] = true, [HEALTH_PHANTOM] = true}},
    [CLONED_CAR] = {"cloned car", -1, {[HEALTH_PHANTOM] = true}},
    [CLONED_WALKER] = {"cloned walker", -1, {[HEALTH_PHANTOM] = true}},
};

struct rig {
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
    struct anchor anchor;
    struct scene scene;
    struct health_world health;
    uint64_t state;
    uint8_t frame[FRAME_BYTES];
    uint8_t raster[FRAME_BYTES];
};

static double draw(struct rig *rig, double low, double high)
{
    return low + (high - low) * (double)(rng_mix(++rig->state) >> 11) * 0x1p-53;
}

/* Everybody on free ground in front of ego, each in a lane of his own, and who is not there behind
 * it, so that nobody hides in another's shadow: who is hidden is not judged. */
static void place_agents(struct rig *rig)
{
    struct scenario *s = &rig->scenario;
    double truck_m = 50 + draw(rig, 14, 26);
    maps_agent(s, CAR, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){50 + draw(rig, 12, 34), 3.5, 0},
               10);
    maps_agent(s, TRUCK, AGENT_TRUCK, BEHAVIOUR_STATIC, (struct pose){truck_m, -6, 0}, 0);
    s->agents[TRUCK].length_m = 9;
    s->agents[TRUCK].width_m = 2.5;
    s->agents[TRUCK].height_m = 3.5;
    maps_agent(s, CHILD, AGENT_PEDESTRIAN, BEHAVIOUR_STATIC,
               (struct pose){truck_m - draw(rig, 0, 4), -4.2, 0}, 0);
    s->agents[CHILD].length_m = s->agents[CHILD].width_m = 0.4;
    s->agents[CHILD].height_m = 1.1;
    maps_agent(s, WALKER, AGENT_PEDESTRIAN, BEHAVIOUR_STATIC,
               (struct pose){50 + draw(rig, 8, 34), draw(rig, 10, 13), draw(rig, -3, 3)}, 1.4);
    maps_agent(s, CYCLIST, AGENT_CYCLIST, BEHAVIOUR_SCRIPT,
               (struct pose){50 + draw(rig, 8, 34), 16, 0}, 6);
    s->agents[CYCLIST].length_m = 1.8;
    s->agents[CYCLIST].width_m = 0.6;
    maps_agent(s, CLONE, AGENT_CAR, BEHAVIOUR_STATIC, (struct pose){50 + draw(rig, -7, 0), 24, 0},
               10);
    maps_agent(s, CLONE_WALKER, AGENT_PEDESTRIAN, BEHAVIOUR_STATIC,
               (struct pose){50 - draw(rig, 6, 9), draw(rig, 2, 5), 0}, 0);
}

static struct rig *setup(enum weather weather, enum light light, uint64_t seed)
{
    struct rig *rig = calloc(1, sizeof *rig);
    struct error error;
    CHECK(rig != NULL);
    rig->state = seed << 16;
    arena_init(&rig->arena, 1 << 22);
    struct scenario *s = &rig->scenario;
    maps_motorway(&rig->arena, &s->map, 3, 600);
    maps_scenario(&rig->arena, s, (struct pose){50, 3.5, 0}, 10, 1, AGENTS);
    place_agents(rig);
    s->conditions.weather = weather;
    s->conditions.light = light;
    s->conditions.visibility_m = weather == WEATHER_FOG ? 60.0 : 120.0;
    EXPECT_OK(prepared_create(s, &rig->prepared, &error), error);
    rig->anchor = anchor_make(s->ego.pose);
    rig->scene.agent_count = AGENTS;
    rig->scene.conditions = s->conditions;
    rig->scene.ego = (struct ego_state){.pose = s->ego.pose, .speed_mps = 10};
    for (uint32_t i = 0; i < AGENTS; i++) {
        rig->scene.agents[i] = (struct agent_state){
            .pose = s->agents[i].pose, .speed_mps = s->agents[i].speed_mps, .present = i < CLONE};
    }
    return rig;
}

static void teardown(struct rig *rig)
{
    prepared_unref(rig->prepared);
    arena_finish(&rig->arena);
    free(rig);
}

static void advance(struct rig *rig)
{
    rig->scene.tick++;
    rig->scene.ego.pose.x_m += 1.0;
    for (int i = 0; i < CLONE; i++) {
        struct agent_state *agent = &rig->scene.agents[i];
        agent->pose.x_m += cos(agent->pose.heading_rad) * agent->speed_mps * TICK_S;
        agent->pose.y_m += sin(agent->pose.heading_rad) * agent->speed_mps * TICK_S;
    }
    rig->scene.agents[CLONE].pose.x_m += 1.0;
    rig->scene.agents[CLONE_WALKER].pose.x_m += 1.0;
}

/* The scene as a model with the fault believes it to be. */
static void corrupt(struct scene *scene, enum fault fault, double shift_rad)
{
    switch (fault) {
    case ERASED_WALKER:
    case UNSEEN_WALKER:
    case ERASED_CHILD:
    case ERASED_CAR:
        scene->agents[faults[fault].agent].present = false;
        break;
    case SHIFTED_CAR:
        scene->agents[CAR].pose.x_m += 3.0 * cos(shift_rad);
        scene->agents[CAR].pose.y_m += 3.0 * sin(shift_rad);
        break;
    case CLONED_CAR:
        scene->agents[CLONE].present = true;
        break;
    case CLONED_WALKER:
        scene->agents[CLONE_WALKER].present = true;
        break;
    default:
        break;
    }
}

static void restore_vru_channels(struct rig *rig, struct window window, uint64_t seed)
{
    static uint8_t whole[FRAME_BYTES];
    layout_sensed(rig->prepared, &rig->scene, seed, &rig->anchor, window, whole, NULL);
    for (size_t i = 0; i < WINDOW_POSITIONS; i++) {
        memcpy(rig->frame + i * FRAME_BEV_CHANNELS + FRAME_VRU,
               whole + i * FRAME_BEV_CHANNELS + FRAME_VRU, 4);
    }
}

/* One tick, measured and judged. */
static bool judge(struct rig *rig, enum fault fault, double shift_rad, uint64_t seed,
                  struct health_verdict *out)
{
    struct frame_stats frame_stats = {.tick = rig->scene.tick, .horizon_ticks = 1000};
    struct agent_gate gates[AGENT_GATES_MAX];
    struct agent_sums sums[AGENT_GATES_MAX];
    struct frame_sums whole;
    double statistic[MEASURE_COUNT];
    struct scene believed = rig->scene;
    const struct health_bounds bounds = health_bounds_builtin();
    struct window window = window_of(anchor_local(&rig->anchor, rig->scene.ego.pose));
    corrupt(&believed, fault, shift_rad);
    layout_sensed(rig->prepared, &believed, seed, &rig->anchor, window, rig->frame, NULL);
    if (fault == UNSEEN_WALKER) {
        restore_vru_channels(rig, window, seed);
    }
    layout_bev(rig->prepared, &rig->scene, &rig->anchor, window, CONDITIONING_AGENTS, rig->raster);
    uint32_t count = agent_measure_gates(&rig->scenario, &rig->scene, &rig->anchor, window, gates);
    agent_measure_sum(rig->frame, rig->raster, gates, count, sums);
    agent_measure_conclude(gates, sums, count, &frame_stats);
    frame_measure_sum(&(struct frame_measure_input){.conditioning = CONDITIONING_AGENTS,
                                                    .frame = rig->frame,
                                                    .window = window,
                                                    .layout = rig->raster},
                      &whole);
    frame_measure_conclude(&whole, CONDITIONING_AGENTS, &frame_stats);
    health_world_measure(&rig->health, &frame_stats, statistic);
    return health_world_judge(&rig->health, &frame_stats, statistic, &bounds, CONDITIONING_AGENTS,
                              out);
}

static bool is_sick(const struct flicker *flicker, uint64_t seed, uint32_t tick)
{
    return flicker->period > 0 ? (tick - 1) % flicker->period < flicker->ticks
                               : rng_mix(seed * 1000 + tick) % 2 == 0;
}

static void drive(enum weather weather, enum light light, uint64_t seed, enum fault fault,
                  const struct flicker *flicker)
{
    struct rig *rig = setup(weather, light, seed);
    struct health_verdict verdict = {.agent = -1};
    double shift_rad = draw(rig, 0, 2 * PI_RAD);
    uint32_t ticks = fault == HEALTHY ? HEALTHY_TICKS : flicker->within;
    bool healthy = true;
    while (healthy && rig->scene.tick < ticks) {
        advance(rig);
        bool sick = is_sick(flicker, seed, rig->scene.tick);
        healthy = judge(rig, sick ? fault : HEALTHY, shift_rad, seed, &verdict);
    }
    if (healthy != (fault == HEALTHY) || !(healthy || faults[fault].check[verdict.check]) ||
        (!healthy && verdict.check != HEALTH_PHANTOM && verdict.agent != faults[fault].agent)) {
        TEST_FAIL(
            "%s, %u of %u ticks, weather %d, light %d, scene %d: check %s, agent %d, tick %u, "
            "%g",
            faults[fault].name, flicker->ticks, flicker->period, (int)weather, (int)light,
            (int)seed, healthy ? "none" : health_check_names[verdict.check], verdict.agent,
            rig->scene.tick, healthy ? 0.0 : verdict.value);
    }
    teardown(rig);
}

static void each_fault_is_flagged_and_nothing_else(void)
{
    for (int weather = 0; weather < WEATHER_COUNT; weather++) {
        for (int light = 0; light < LIGHT_COUNT; light++) {
            for (uint64_t scene = 0; scene < SCENES; scene++) {
                uint64_t seed = scene * 100 + (uint64_t)(weather * LIGHT_COUNT + light) + 1;
                for (int fault = 0; fault < FAULT_COUNT; fault++) {
                    drive((enum weather)weather, (enum light)light, seed, (enum fault)fault,
                          &always);
                }
            }
        }
    }
}

static void a_fault_that_comes_and_goes_is_flagged(void)
{
    for (int weather = 0; weather < WEATHER_COUNT; weather++) {
        for (int light = 0; light < LIGHT_COUNT; light++) {
            uint64_t seed = (uint64_t)(weather * LIGHT_COUNT + light) + 1;
            for (size_t f = 0; f < sizeof flickers / sizeof *flickers; f++) {
                for (int fault = HEALTHY + 1; fault < FAULT_COUNT; fault++) {
                    drive((enum weather)weather, (enum light)light, seed, (enum fault)fault,
                          &flickers[f]);
                }
            }
        }
    }
}

/* Ticks are one agent's: ten that are missing in turn are not one that is. A fork judges as its
 * origin does. */
static void absence_counts_for_one_agent(void)
{
    struct health_world memory = {0};
    const struct health_bounds bounds = health_bounds_builtin();
    struct health_verdict verdict;
    double statistic[MEASURE_COUNT];
    double again[MEASURE_COUNT];
    for (uint32_t tick = 0; tick < 40; tick++) {
        bool in_turn = tick < 36;
        struct frame_stats frame_stats = {
            .tick = tick,
            .horizon_ticks = 100,
            .layout_cells = 0.0,
            .surplus_cells = (double)NAN,
            .surplus_vru_cells = (double)NAN,
            .camera_layout_corr = (double)NAN,
            .agent_count = 10,
        };
        for (uint32_t i = 0; i < 10; i++) {
            frame_stats.agents[i] = (struct agent_stats){
                .agent = 20 * i + 20, .vru = i < 5, .due_cells = 4.0, .offset_m = (double)NAN};
        }
        uint32_t sick = in_turn ? tick / 2 % 9 : 9;
        frame_stats.agents[sick].missing_share = 1.0;
        struct health_world twin = memory;
        health_world_measure(&memory, &frame_stats, statistic);
        health_world_measure(&twin, &frame_stats, again);
        EXPECT(memcmp(statistic, again, sizeof statistic) == 0);
        bool healthy = health_world_judge(&memory, &frame_stats, statistic, &bounds,
                                          CONDITIONING_AGENTS, &verdict);
        EXPECT_INT(healthy, tick < 38);
        if (!healthy) {
            EXPECT_INT(verdict.check, HEALTH_ABSENT);
            EXPECT_INT(verdict.agent, 200);
        }
    }
}

/* Somebody of whom too little is due is hidden, and whoever comes out is judged from then on. */
static void who_is_hidden_is_not_judged(void)
{
    struct health_world memory = {0};
    double statistic[MEASURE_COUNT];
    for (uint32_t tick = 0; tick < 10; tick++) {
        struct frame_stats frame_stats = {
            .tick = tick,
            .agent_count = 1,
            .agents = {{.agent = 0,
                        .vru = true,
                        .due_cells = tick < 6 ? 0.1 : 0.3,
                        .missing_share = 1.0,
                        .offset_m = (double)NAN}},
        };
        health_world_measure(&memory, &frame_stats, statistic);
        EXPECT_NEAR(statistic[MEASURE_ABSENT_VRU], tick < 8 ? 0.0 : 1.0, 1e-9);
    }
}

/* Whoever steps behind something every few ticks, or out of view, is missing in none of them. */
static void who_comes_and_goes_honestly_is_well(void)
{
    for (uint32_t period = 2; period <= 4; period++) {
        struct health_world memory = {0};
        double statistic[MEASURE_COUNT];
        for (uint32_t tick = 0; tick < 60; tick++) {
            bool hidden = tick % period == 0;
            struct frame_stats frame_stats = {
                .tick = tick,
                .agent_count = tick % (2 * period) == 1 ? 0 : 1, /* out of view */
                .agents = {{.agent = 0,
                            .vru = true,
                            .due_cells = hidden ? 0.1 : 2.0,
                            .missing_share = hidden ? 1.0 : 0.0,
                            .offset_m = (double)NAN}},
            };
            health_world_measure(&memory, &frame_stats, statistic);
            EXPECT(!(statistic[MEASURE_ABSENT_VRU] > 0.0));
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(each_fault_is_flagged_and_nothing_else),
                    TEST(a_fault_that_comes_and_goes_is_flagged),
                    TEST(absence_counts_for_one_agent), TEST(who_is_hidden_is_not_judged),
                    TEST(who_comes_and_goes_honestly_is_well));
}
