/*
 * Goal: the contract of engine/worlds/world.h, which every world must keep; the program's arguments
 * name the world, and for a learned one the precision and conditioning, so that one suite serves
 * all of them. A learned world's ticks cost much more, so its rollouts are shorter. Method:
 * rollouts under random actions, each named by a key; everything that a rollout shows (scene bits
 * every tick, BEV and a camera now and then) is folded into a digest. Whatever the batch, slot,
 * fork or parking, equal keys must give equal digests.
 */
#include "base/rng.h"
#include "base/sha256.h"
#include "engine/learned/model.h"
#include "engine/worlds/foreign.h"
#include "engine/worlds/world.h"
#include "kernels/cpu.h"
#include "schemas/rig/rig.h"
#include "tests/engine/maps.h"
#include "tests/engine/world_dummy.h"
#include "tests/engine/world_rig_double.h"
#include "tests/harness.h"

#include <stdlib.h>

enum { AGENTS = 9, BATCH_MAX = 16 };

/* Length of rollouts, and their number. */
struct scale {
    uint32_t ticks;
    uint32_t fork_tick;
    uint32_t picture_period; /* observed at ticks with the remainder 7 */
    uint32_t park_period;
    uint32_t batches[3];
    uint32_t nasty_ticks;
};

static const struct scale long_rollouts = {80, 30, 20, 13, {1, 3, 16}, 400};
static const struct scale short_rollouts = {9, 3, 8, 4, {1, 2, 4}, 24};

const struct swerve_world_ops *swerve_world_entry(void); /* scripts/world/plugin.c */

static const struct world_ops *ops;
static const struct scale *scale = &long_rollouts;
static struct world_config base_config;

struct fixture {
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
};

static struct trajectory logged(struct arena *arena, struct pose start, double speed, double from_s,
                                double to_s)
{
    struct trajectory log = {.point_count = 41};
    log.points = arena_alloc(arena, log.point_count, sizeof *log.points);
    for (uint32_t i = 0; i < log.point_count; i++) {
        double t = from_s + (to_s - from_s) * i / (log.point_count - 1);
        double along = speed * (t - from_s);
        log.points[i] = (struct trajectory_point){t, start.x_m + along * cos(start.heading_rad),
                                                  start.y_m + along * sin(start.heading_rad),
                                                  start.heading_rad, speed};
    }
    return log;
}

/* A three-lane road with something of everything that the world accepts. */
static void setup(struct fixture *f)
{
    *f = (struct fixture){0};
    arena_init(&f->arena, 1 << 22);
    struct scenario *s = &f->scenario;
    maps_motorway(&f->arena, &s->map, 3, 600);
    maps_scenario(&f->arena, s, (struct pose){50, 3.5, 0}, 15, 1, AGENTS);
    struct pose walk = {110, -3, PI_RAD / 2};
    maps_agent(s, 0, AGENT_CAR, BEHAVIOUR_REPLAY, (struct pose){90, 3.5, 0}, 12);
    s->agents[0].trajectory = logged(&f->arena, s->agents[0].pose, 12, 0, 10);
    maps_agent(s, 1, AGENT_PEDESTRIAN, BEHAVIOUR_REPLAY, walk, 1.5);
    s->agents[1].trajectory = logged(&f->arena, walk, 1.5, 1.0, 6.0);
    maps_agent(s, 2, AGENT_OBJECT, BEHAVIOUR_STATIC, (struct pose){160, 0, 0.3}, 0);
    maps_agent(s, 3, AGENT_OBJECT, BEHAVIOUR_STATIC, (struct pose){140, 3.5, 0}, 0);
    s->agents[3].hidden = true;
    maps_agent(s, 4, AGENT_CAR, BEHAVIOUR_REPLAY, (struct pose){30, 0, 0}, 18);
    s->agents[4].trajectory = logged(&f->arena, s->agents[4].pose, 18, 2.05, 9.0);
    s->agent_count = 5;
    if (ops != &world_replay_ops) {
        s->agent_count = AGENTS;
        maps_agent(s, 5, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){20, 0.4, 0.02}, 22);
        s->agents[5].idm.lane_changes = true;
        maps_agent(s, 6, AGENT_TRUCK, BEHAVIOUR_IDM, (struct pose){60, 7, 0}, 14);
        s->agents[6].idm.lane_changes = true;
        struct agent *script =
            maps_agent(s, 7, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){75, 0, 0}, 16);
        script->manoeuvre_count = 2;
        script->manoeuvres = arena_alloc(&f->arena, 2, sizeof *script->manoeuvres);
        script->manoeuvres[0] = (struct manoeuvre){.trigger = {TRIGGER_TIME, 1.0},
                                                   .kind = MANOEUVRE_LANE_CHANGE,
                                                   .offset_m = 3.5,
                                                   .duration_s = 2.5};
        script->manoeuvres[1] = (struct manoeuvre){.trigger = {TRIGGER_AFTER, 0.5},
                                                   .kind = MANOEUVRE_SPEED,
                                                   .speed_mps = 5,
                                                   .rate_mps2 = 4};
        maps_agent(s, 8, AGENT_CYCLIST, BEHAVIOUR_IDM, (struct pose){100, -1.2, 0}, 5);
    }
    struct error error;
    EXPECT_OK(ops->accepts(s, &error), error);
    EXPECT_OK(prepared_create(s, &f->prepared, &error), error);
}

static void teardown(struct fixture *f)
{
    prepared_unref(f->prepared);
    arena_finish(&f->arena);
}

static struct world *open_world(uint32_t slots)
{
    struct world *world = NULL;
    struct error error;
    struct world_config config = base_config;
    config.slot_count = slots;
    EXPECT_OK(ops->open(&config, &world, &error), error);
    return world;
}

static void reset(struct world *world, uint32_t slot, struct fixture *f, uint32_t key)
{
    struct error error;
    EXPECT_OK(ops->slot_reset(world, slot, f->prepared, key % 3, &error), error);
}

/* Plausible driving, different for every key and tick. */
static struct action action_of(uint32_t key, uint32_t tick)
{
    return (struct action){
        4.0 * rng_uniform(key, RNG_STREAM_TEST, tick, 1) - 2.0,
        0.1 * rng_uniform(key, RNG_STREAM_TEST, tick, 2) - 0.05,
    };
}

/* Record of a rollout so far. */
struct record {
    struct sha256 hash;
};

static void record_scene(struct record *record, const struct scene *scene)
{
    sha256_update(&record->hash, &scene->tick, sizeof scene->tick);
    sha256_update(&record->hash, &scene->ego, sizeof scene->ego);
    sha256_update(&record->hash, &scene->conditions, sizeof scene->conditions);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        const struct agent_state *a = &scene->agents[i];
        uint8_t present = a->present;
        sha256_update(&record->hash, &a->pose, sizeof a->pose);
        sha256_update(&record->hash, &a->speed_mps, sizeof a->speed_mps);
        sha256_update(&record->hash, &a->accel_mps2, sizeof a->accel_mps2);
        sha256_update(&record->hash, &present, 1);
    }
}

static void record_slot(struct record *record, const struct world *world, uint32_t slot)
{
    static uint8_t bev[BEV_BYTES];
    static uint8_t camera[CAMERA_BYTES];
    const struct scene *scene = ops->slot_scene(world, slot);
    record_scene(record, scene);
    if (scene->tick % scale->picture_period == 7) {
        struct observation_buffers buffers = {.bev = bev, .camera = {NULL, camera, NULL}};
        ops->slot_observe(world, slot, &buffers);
        sha256_update(&record->hash, bev, sizeof bev);
        sha256_update(&record->hash, camera, sizeof camera);
    }
}

static void finish(struct record *record, char hex[SHA256_HEX_BYTES])
{
    uint8_t digest[SHA256_BYTES];
    sha256_final(&record->hash, digest);
    sha256_to_hex(digest, hex);
}

/* Steps one slot by one tick as its key says; the others are inactive. */
static void step_one(struct world *world, uint32_t slot, uint32_t key)
{
    struct action actions[32] = {0};
    uint8_t active[32] = {0};
    actions[slot] = action_of(key, ops->slot_scene(world, slot)->tick);
    active[slot] = 1;
    ops->step(world, actions, active);
}

/* The reference: the rollout alone in a world of one slot, optionally with an intervention. */
static void run_alone(struct fixture *f, uint32_t key, const struct intervention *intervention,
                      char hex[SHA256_HEX_BYTES])
{
    struct world *world = open_world(1);
    struct record record;
    struct error error;
    sha256_init(&record.hash);
    reset(world, 0, f, key);
    for (uint32_t tick = 0; tick < scale->ticks; tick++) {
        record_slot(&record, world, 0);
        if (intervention != NULL && tick == scale->fork_tick) {
            EXPECT_OK(ops->slot_intervene(world, 0, intervention, &error), error);
        }
        step_one(world, 0, key);
    }
    record_slot(&record, world, 0);
    finish(&record, hex);
    ops->close(world);
}

/* ---- the contract ---- */

static void batch_is_alone_whatever_slot_and_number(void)
{
    struct fixture f;
    setup(&f);
    char alone[BATCH_MAX][SHA256_HEX_BYTES];
    for (uint32_t key = 0; key < scale->batches[2]; key++) {
        run_alone(&f, key, NULL, alone[key]);
    }
    EXPECT(strcmp(alone[0], alone[1]) != 0); /* the digest tells rollouts apart */
    for (int k = 0; k < 3; k++) {
        uint32_t n = scale->batches[k];
        struct world *world = open_world(n);
        struct record records[BATCH_MAX];
        struct action actions[BATCH_MAX];
        uint8_t active[BATCH_MAX];
        for (uint32_t slot = 0; slot < n; slot++) {
            sha256_init(&records[slot].hash);
            reset(world, slot, &f, n - 1 - slot); /* not the slot of its number */
            active[slot] = 1;
        }
        for (uint32_t tick = 0; tick <= scale->ticks; tick++) {
            for (uint32_t slot = 0; slot < n; slot++) {
                record_slot(&records[slot], world, slot);
                actions[slot] = action_of(n - 1 - slot, tick);
            }
            if (tick < scale->ticks) {
                ops->step(world, actions, active);
            }
        }
        for (uint32_t slot = 0; slot < n; slot++) {
            char hex[SHA256_HEX_BYTES];
            finish(&records[slot], hex);
            EXPECT_TEXT(hex, alone[n - 1 - slot]);
        }
        ops->close(world);
    }
    teardown(&f);
}

static void fork_is_a_rerun_and_leaves_its_source_alone(void)
{
    struct fixture f;
    setup(&f);
    char expected[SHA256_HEX_BYTES];
    run_alone(&f, 5, NULL, expected);
    struct world *world = open_world(3);
    struct record main_line;
    sha256_init(&main_line.hash);
    reset(world, 1, &f, 5);
    for (uint32_t tick = 0; tick < scale->fork_tick; tick++) {
        record_slot(&main_line, world, 1);
        step_one(world, 1, 5);
    }
    struct record branch = main_line;
    ops->slot_fork(world, 1, 2);
    /* The branch runs first and far, then the source: neither may notice the other. */
    uint32_t order[2] = {2, 1};
    struct record *records[2] = {&branch, &main_line};
    for (int i = 0; i < 2; i++) {
        for (uint32_t tick = scale->fork_tick; tick <= scale->ticks; tick++) {
            record_slot(records[i], world, order[i]);
            if (tick < scale->ticks) {
                step_one(world, order[i], 5);
            }
        }
        char hex[SHA256_HEX_BYTES];
        finish(records[i], hex);
        EXPECT_TEXT(hex, expected);
    }
    ops->close(world);
    teardown(&f);
}

static void parked_rollouts_continue_bit_for_bit(void)
{
    struct fixture f;
    setup(&f);
    char expected[SHA256_HEX_BYTES];
    run_alone(&f, 7, NULL, expected);
    struct world *world = open_world(2);
    void *state = malloc(ops->slot_state_bytes(world));
    void *spare = malloc(ops->slot_state_bytes(world));
    EXPECT(state != NULL && spare != NULL);
    memset(state, 0xA5, ops->slot_state_bytes(world)); /* what was there must not matter */
    struct record record;
    sha256_init(&record.hash);
    reset(world, 0, &f, 7);
    uint32_t slot = 0;
    for (uint32_t tick = 0; tick <= scale->ticks; tick++) {
        record_slot(&record, world, slot);
        if (tick % scale->park_period == 1) {
            ops->slot_save(world, slot, state);
            ops->slot_save(world, slot, spare);
            ops->slot_state_drop(world, spare);
            step_one(world, slot, 999); /* where it goes after the save is lost */
            ops->slot_release(world, slot);
            slot = 1 - slot;
            ops->slot_restore(world, slot, state);
        }
        if (tick < scale->ticks) {
            step_one(world, slot, 7);
        }
    }
    char hex[SHA256_HEX_BYTES];
    finish(&record, hex);
    EXPECT_TEXT(hex, expected);
    free(state);
    free(spare);
    ops->close(world);
    teardown(&f);
}

static void inactive_slots_keep_their_bits(void)
{
    struct fixture f;
    setup(&f);
    struct world *world = open_world(3);
    struct scene before;
    reset(world, 0, &f, 1);
    reset(world, 2, &f, 2);
    step_one(world, 0, 1);
    memcpy(&before, ops->slot_scene(world, 0), sizeof before);
    for (uint32_t i = 0; i < scale->ticks; i++) {
        step_one(world, 2, 2);
    }
    EXPECT(memcmp(&before, ops->slot_scene(world, 0), sizeof before) == 0);
    EXPECT_INT(ops->slot_scene(world, 2)->tick, scale->ticks);
    ops->close(world);
    teardown(&f);
}

static void release_and_reuse_leave_no_trace(void)
{
    struct fixture f;
    setup(&f);
    char expected[SHA256_HEX_BYTES];
    run_alone(&f, 4, NULL, expected);
    struct world *world = open_world(1);
    for (uint32_t round = 0; round < 3; round++) {
        reset(world, 0, &f, 11 + round);
        for (uint32_t i = 0; i < scale->ticks * 3 / 4; i++) {
            step_one(world, 0, 11 + round);
        }
        ops->slot_release(world, 0);
    }
    struct record record;
    sha256_init(&record.hash);
    reset(world, 0, &f, 4);
    for (uint32_t tick = 0; tick <= scale->ticks; tick++) {
        record_slot(&record, world, 0);
        if (tick < scale->ticks) {
            step_one(world, 0, 4);
        }
    }
    char hex[SHA256_HEX_BYTES];
    finish(&record, hex);
    EXPECT_TEXT(hex, expected);
    ops->close(world);
    teardown(&f);
}

static void observing_changes_nothing(void)
{
    struct fixture f;
    setup(&f);
    static uint8_t first[BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES];
    static uint8_t again[BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES];
    struct world *world = open_world(1);
    reset(world, 0, &f, 3);
    for (uint32_t tick = 0; tick < scale->ticks / 2; tick++) {
        struct scene before;
        memcpy(&before, ops->slot_scene(world, 0), sizeof before);
        for (int k = 0; k < 2; k++) {
            uint8_t *out = k == 0 ? first : again;
            memset(out, k == 0 ? 0x00 : 0xFF, sizeof first); /* every byte must be written */
            struct observation_buffers buffers = {.bev = out};
            for (int c = 0; c < CAMERA_COUNT; c++) {
                buffers.camera[c] = out + BEV_BYTES + (size_t)c * CAMERA_BYTES;
            }
            ops->slot_observe(world, 0, &buffers);
        }
        EXPECT(memcmp(first, again, sizeof first) == 0);
        EXPECT(memcmp(&before, ops->slot_scene(world, 0), sizeof before) == 0);
        step_one(world, 0, 3);
    }
    struct observation_buffers nothing = {0};
    ops->slot_observe(world, 0, &nothing);
    ops->close(world);
    teardown(&f);
}

static void bad_but_finite_actions_stay_bounded(void)
{
    static const double nasty[] = {1e9, -1e9, 1e308, -1e308, 5e-324, -5e-324, 0.0, -0.0, 3.0, -7.0};
    struct fixture f;
    setup(&f);
    struct world *world = open_world(1);
    reset(world, 0, &f, 1);
    uint8_t active = 1;
    for (uint32_t tick = 0; tick < scale->nasty_ticks; tick++) {
        struct action action = {nasty[tick / 7 % COUNT_OF(nasty)],
                                nasty[tick / 3 % COUNT_OF(nasty)]};
        const struct scene *before = ops->slot_scene(world, 0);
        struct vec2 from = {before->ego.pose.x_m, before->ego.pose.y_m};
        ops->step(world, &action, &active);
        const struct scene *scene = ops->slot_scene(world, 0);
        const struct ego_state *ego = &scene->ego;
        double motion = hypot(ego->pose.x_m - from.x_m, ego->pose.y_m - from.y_m);
        EXPECT(isfinite(motion) && motion <= 10.0);
        EXPECT(ego->speed_mps >= 0.0 && ego->speed_mps <= 100.0);
        EXPECT(fabs(ego->accel_mps2) <= 15.0 && fabs(ego->lat_accel_mps2) <= 15.0);
        EXPECT(fabs(ego->steer_rad) <= 1.0 && fabs(ego->yaw_rate_rps) <= 5.0);
        EXPECT(fabs(ego->pose.heading_rad) <= 3.1416);
        for (uint32_t i = 0; i < scene->agent_count; i++) {
            const struct agent_state *a = &scene->agents[i];
            EXPECT(isfinite(a->pose.x_m) && isfinite(a->pose.y_m) && fabs(a->speed_mps) < 100.0);
            EXPECT(fabs(a->pose.heading_rad) <= 3.1416);
        }
    }
    ops->close(world);
    teardown(&f);
}

/* An intervention on a fork equals the same intervention in a rollout from the start. */
static void interventions_are_fork_consistent(void)
{
    const struct intervention interventions[] = {
        {.kind = INTERVENE_CONDITIONS,
         .agent = -1,
         .conditions = {WEATHER_FOG, LIGHT_NIGHT, 0.5, 50.0}},
        {.kind = INTERVENE_AGENT_APPEAR, .agent = 3},
        {.kind = INTERVENE_AGENT_BRAKE, .agent = 0, .decel_mps2 = 5.0},
        {.kind = INTERVENE_AGENT_CUT_IN, .agent = 4, .duration_s = 2.0},
    };
    struct fixture f;
    setup(&f);
    struct world *world = open_world(2);
    uint32_t accepted = 0;
    for (uint32_t k = 0; k < COUNT_OF(interventions); k++) {
        struct record record;
        struct error error;
        sha256_init(&record.hash);
        reset(world, 0, &f, 6);
        for (uint32_t tick = 0; tick <= scale->fork_tick; tick++) {
            record_slot(&record, world, 0);
            if (tick < scale->fork_tick) {
                step_one(world, 0, 6);
            }
        }
        ops->slot_fork(world, 0, 1);
        struct scene before;
        memcpy(&before, ops->slot_scene(world, 0), sizeof before);
        enum status status = ops->slot_intervene(world, 1, &interventions[k], &error);
        EXPECT(memcmp(&before, ops->slot_scene(world, 0), sizeof before) == 0);
        if (status == STATUS_OK) {
            char expected[SHA256_HEX_BYTES];
            char hex[SHA256_HEX_BYTES];
            accepted++;
            for (uint32_t tick = scale->fork_tick; tick < scale->ticks; tick++) {
                step_one(world, 1, 6);
                record_slot(&record, world, 1);
            }
            finish(&record, hex);
            run_alone(&f, 6, &interventions[k], expected);
            EXPECT_TEXT(hex, expected);
            char plain[SHA256_HEX_BYTES];
            run_alone(&f, 6, NULL, plain);
            EXPECT(strcmp(plain, expected) != 0); /* it did something */
        } else {
            EXPECT_INT(status, STATUS_BAD_INPUT);
            EXPECT(memcmp(&before, ops->slot_scene(world, 1), sizeof before) == 0);
        }
        ops->slot_release(world, 0);
        ops->slot_release(world, 1);
    }
    EXPECT(accepted >= (base_config.conditioning == CONDITIONING_AGENTS ? 2u : 1u));
    ops->close(world);
    teardown(&f);
}

static void impossible_interventions_are_refused(void)
{
    const struct intervention interventions[] = {
        {.kind = INTERVENE_AGENT_BRAKE, .agent = -1, .decel_mps2 = 3.0},
        {.kind = INTERVENE_AGENT_BRAKE, .agent = 100, .decel_mps2 = 3.0},
        {.kind = INTERVENE_AGENT_CUT_IN, .agent = 2, .duration_s = 1.0},
        {.kind = INTERVENE_AGENT_BRAKE, .agent = 3, .decel_mps2 = 3.0}, /* hidden */
        {.kind = INTERVENE_AGENT_APPEAR, .agent = 1000},
        {.kind = INTERVENE_EGO_BRAKE, .agent = 0, .decel_mps2 = 3.0},
    };
    struct fixture f;
    setup(&f);
    struct world *world = open_world(1);
    reset(world, 0, &f, 1);
    struct scene before;
    memcpy(&before, ops->slot_scene(world, 0), sizeof before);
    for (uint32_t k = 0; k < COUNT_OF(interventions); k++) {
        struct error error = {0};
        EXPECT_INT(ops->slot_intervene(world, 0, &interventions[k], &error), STATUS_BAD_INPUT);
        EXPECT(error.text[0] != '\0');
        EXPECT(memcmp(&before, ops->slot_scene(world, 0), sizeof before) == 0);
    }
    ops->close(world);
    teardown(&f);
}

static void slots_hold_their_scenario(void)
{
    struct fixture f;
    setup(&f);
    struct world *world = open_world(2);
    void *state = malloc(ops->slot_state_bytes(world));
    EXPECT(state != NULL);
    reset(world, 0, &f, 1);
    ops->slot_save(world, 0, state);
    ops->slot_release(world, 0);
    prepared_unref(f.prepared); /* only the parked state holds it now */
    f.prepared = NULL;
    ops->slot_restore(world, 1, state);
    step_one(world, 1, 1);
    EXPECT_INT(ops->slot_scene(world, 1)->tick, 1);
    free(state);
    ops->close(world); /* releases the occupied slot */
    ops->close(NULL);
    teardown(&f);
}

/* A slot that had more agents before is forked into and reset as one that never was in use. */
static void slots_forget_the_agents_before(void)
{
    struct fixture f;
    struct error error;
    setup(&f);
    struct world *world = open_world(4);
    for (uint32_t slot = 0; slot < 2; slot++) {
        reset(world, slot, &f, 1);
        ops->slot_release(world, slot);
    }
    prepared_unref(f.prepared);
    f.scenario.agent_count = 2;
    EXPECT_OK(prepared_create(&f.scenario, &f.prepared, &error), error);
    reset(world, 3, &f, 1);
    reset(world, 0, &f, 1);
    ops->slot_fork(world, 3, 1);
    ops->slot_fork(world, 3, 2);
    for (uint32_t slot = 0; slot < 3; slot++) {
        EXPECT(memcmp(ops->slot_scene(world, slot), ops->slot_scene(world, 3),
                      sizeof(struct scene)) == 0);
    }
    ops->close(world);
    teardown(&f);
}

static void opening_checks_the_number_of_slots(void)
{
    struct world *world = NULL;
    struct error error;
    EXPECT_INT(ops->open(&(struct world_config){0}, &world, &error), STATUS_LIMIT);
    EXPECT_INT(ops->open(&(struct world_config){.slot_count = LIMIT_SLOTS + 1}, &world, &error),
               STATUS_LIMIT);
    EXPECT(world == NULL);
}

/* Worlds whose frames are generated tell of them. */
static bool tells(void)
{
    return base_config.model != NULL || base_config.foreign != NULL;
}

static void frame_stats_and_cost_follow_the_ticks(void)
{
    struct fixture f;
    setup(&f);
    struct world *world = open_world(2);
    reset(world, 1, &f, 1);
    for (uint32_t tick = 0; tick <= 2; tick++) {
        const struct frame_stats *frame_stats =
            ops->slot_frame_stats ? ops->slot_frame_stats(world, 1) : NULL;
        EXPECT((frame_stats == NULL) == !tells());
        EXPECT(frame_stats == NULL || frame_stats->fault[0] == '\0');
        EXPECT(frame_stats == NULL || frame_stats->tick == tick);
        EXPECT(frame_stats == NULL || frame_stats->horizon_ticks > 0);
        step_one(world, 1, 1);
    }
    struct world_cost cost = {0};
    EXPECT((ops->cost != NULL) == tells());
    if (ops->cost != NULL) {
        ops->cost(world, &cost);
        EXPECT(cost.ticks == 3 && cost.spills == 0);
        EXPECT(base_config.model == NULL || /* what it computes it does not say */
               (cost.flop > 0.0 && cost.page_bytes > 0 && cost.pages_peak >= 2));
    }
    ops->close(world);
    teardown(&f);
}

static enum nn_precision precision_named(const char *name)
{
    uint32_t i = 0;
    for (; strcmp(name, nn_precision_names[i]) != 0; i++) {
        CHECK(i + 1 < NN_PRECISION_COUNT);
    }
    return (enum nn_precision)i;
}

/* The smallest model of the tier, random weights; arguments: precision, conditioning. */
static bool create_model(char **arguments, struct model **model)
{
    struct error error;
    const struct model_open_options options = {
        .precision = precision_named(arguments[0]),
        .cpu_flags = cpu_flags_detect(),
    };
    const struct model_config config = {.name = "test",
                                        .tier = ops->tier,
                                        .width = 32,
                                        .layers = 1,
                                        .bev_channels = 32,
                                        .camera_channels = 32,
                                        .window = 3,
                                        .steps = 1,
                                        .schedule = {0.0, 1.0},
                                        .horizon_ticks = {100, 50, 20}};
    if (model_random(&config, &options, 1, model, &error) != STATUS_OK) {
        printf("Bail out! %s\n", error.text);
        return false;
    }
    base_config.model = *model;
    scale = &short_rollouts;
    for (int i = 0; i < CONDITIONING_CHOICES; i++) {
        if (strcmp(arguments[1], conditioning_names[i]) == 0) {
            base_config.conditioning = (enum conditioning)i;
        }
    }
    return true;
}

/* The example plugin, linked into this program, or the double of the form RIG, that keeps so many
 * states ("0": all). */
static bool ask_example(struct foreign *example, const char *rig_states)
{
    struct swerve_world_declared declared;
    struct error error;
    *example = (struct foreign){.ops = swerve_world_entry(), .config = ""};
    if (rig_states != NULL) {
        *example = (struct foreign){
            .ops = &world_rig_double_ops, .config = rig_states, .rig_text = rig_text};
    }
    if (foreign_ask(example, &declared, &error) != STATUS_OK) {
        printf("Bail out! %s\n", error.text);
        return false;
    }
    example->declared = declared;
    base_config.foreign = example;
    base_config.thread_count = 2;
    ops = foreign_world_ops(example, TIER_STUDENT);
    scale = &short_rollouts;
    return true;
}

int main(int argc, char **argv)
{
    static const struct world_ops *const all[] = {&world_object_ops,  &world_replay_ops,
                                                  &world_dummy_ops,   &world_student_ops,
                                                  &world_teacher_ops, &world_foreign_student_ops};
    struct foreign example;
    struct model *model = NULL;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (argc >= 2 && strcmp(argv[1], all[i]->name) == 0) {
            ops = all[i];
        }
    }
    if (ops == NULL || (argc == 4 && !create_model(argv + 2, &model))) {
        printf("Bail out! expected: WORLD [PRECISION CONDITIONING], foreign [STATES]\n");
        return 2;
    }
    if (ops == &world_foreign_student_ops && !ask_example(&example, argc == 3 ? argv[2] : NULL)) {
        return 2;
    }
    int code =
        TEST_RUN(TEST(batch_is_alone_whatever_slot_and_number),
                 TEST(fork_is_a_rerun_and_leaves_its_source_alone),
                 TEST(parked_rollouts_continue_bit_for_bit), TEST(inactive_slots_keep_their_bits),
                 TEST(release_and_reuse_leave_no_trace), TEST(observing_changes_nothing),
                 TEST(bad_but_finite_actions_stay_bounded), TEST(interventions_are_fork_consistent),
                 TEST(impossible_interventions_are_refused), TEST(slots_hold_their_scenario),
                 TEST(slots_forget_the_agents_before), TEST(opening_checks_the_number_of_slots),
                 TEST(frame_stats_and_cost_follow_the_ticks));
    model_close(model);
    return code;
}
