/*
 * Goal: what a learned rollout shows depends on the scenario, the model, its precision and the seed
 * alone. A matrix of 36 cases (12 ways of running the same rollout, in every precision) must give
 * the same digest of everything it shows: scene, frame statistics, BEV and all cameras of every
 * tick. Beside it: what is shared, what is refused, and what happens to a rollout whose pages are
 * lost. Method: a small model with random weights.
 */
#include "base/rng.h"
#include "base/sha256.h"
#include "engine/learned/model.h"
#include "engine/worlds/world.h"
#include "kernels/cpu.h"
#include "tests/engine/maps.h"
#include "tests/engine/spill_in_memory.h"
#include "tests/harness.h"

#include <stdlib.h>

enum { TICKS = 5, FORK_TICK = 2, SLOTS_MAX = 8, KEY = 3, AGENTS = 4 };

static const struct world_ops *const ops = &world_student_ops;

/* A model in every precision, and one whose tokens and heads are of other sizes. */
enum { WIDE = NN_PRECISION_COUNT, MODELS };
static struct model *models[MODELS];
static struct arena arena;
static struct scenario scenario;
static struct prepared *prepared;

/* ---- the scene ---- */

static void create_prepared(void)
{
    struct error error;
    arena_init(&arena, 1 << 22);
    maps_motorway(&arena, &scenario.map, 2, 400);
    maps_scenario(&arena, &scenario, (struct pose){50, 3.5, 0.05}, 18, 1, AGENTS);
    maps_agent(&scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){75, 3.5, 0}, 12);
    maps_agent(&scenario, 1, AGENT_TRUCK, BEHAVIOUR_IDM, (struct pose){60, 0, 0}, 14);
    maps_agent(&scenario, 2, AGENT_PEDESTRIAN, BEHAVIOUR_STATIC, (struct pose){90, 6, 1.0}, 0);
    maps_agent(&scenario, 3, AGENT_OBJECT, BEHAVIOUR_STATIC, (struct pose){85, 0, 0}, 0);
    scenario.agents[3].hidden = true;
    CHECK(prepared_create(&scenario, &prepared, &error) == STATUS_OK);
}

static struct action action_of(uint32_t key, uint32_t tick)
{
    return (struct action){
        4.0 * rng_uniform(key, RNG_STREAM_TEST, tick, 1) - 2.0,
        0.1 * rng_uniform(key, RNG_STREAM_TEST, tick, 2) - 0.05,
    };
}

/* ---- running and recording ---- */

struct record {
    struct sha256 hash;
};

static void record_frame_stats(struct record *record, const struct frame_stats *frame_stats)
{
    const double values[] = {
        frame_stats->saturated_share, frame_stats->bev_change,  frame_stats->camera_change,
        frame_stats->occupancy_cells, frame_stats->vru_cells,   frame_stats->layout_cells,
        frame_stats->layout_iou,      frame_stats->ego_step_m,  frame_stats->camera_layout_corr,
        frame_stats->jump_m,          frame_stats->lost_agents,
    };
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        double value = isnan(values[i]) ? -7.0 : values[i];
        sha256_update(&record->hash, &value, sizeof value);
    }
    sha256_update(&record->hash, &frame_stats->not_finite, sizeof frame_stats->not_finite);
}

static void record_slot(struct record *record, const struct world *world, uint32_t slot)
{
    static uint8_t pictures[BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES];
    const struct scene *scene = ops->slot_scene(world, slot);
    struct observation_buffers buffers = {.bev = pictures};
    for (size_t c = 0; c < CAMERA_COUNT; c++) {
        buffers.camera[c] = pictures + BEV_BYTES + c * CAMERA_BYTES;
    }
    ops->slot_observe(world, slot, &buffers);
    sha256_update(&record->hash, pictures, sizeof pictures);
    sha256_update(&record->hash, &scene->tick, sizeof scene->tick);
    sha256_update(&record->hash, &scene->ego, sizeof scene->ego);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        sha256_update(&record->hash, &scene->agents[i].pose, sizeof scene->agents[i].pose);
    }
    record_frame_stats(record, ops->slot_frame_stats(world, slot));
}

static void finish(struct record *record, char hex[SHA256_HEX_BYTES])
{
    uint8_t digest[SHA256_BYTES];
    sha256_final(&record->hash, digest);
    sha256_to_hex(digest, hex);
}

struct how {
    uint32_t model; /* precision, or WIDE */
    enum conditioning conditioning;
    uint32_t slots, threads;
    bool tight; /* a pool that holds no parked page beside full slots */
    bool ahead; /* the parked rollout is announced; its pages are read before it is restored */
    const struct spill_ops *spill;
};

static size_t tight_bytes(const struct how *how)
{
    struct world_cost cost;
    struct world *world = NULL;
    struct error error;
    const struct world_config config = {.slot_count = 1, .model = models[how->model]};
    EXPECT_OK(ops->open(&config, &world, &error), error);
    ops->cost(world, &cost);
    ops->close(world);
    return cost.page_bytes * (how->slots * model_config(models[how->model])->window + 1);
}

static struct world *open_world(const struct how *how)
{
    struct world *world = NULL;
    struct error error;
    const struct world_config config = {
        .slot_count = how->slots,
        .model = models[how->model],
        .conditioning = how->conditioning,
        .thread_count = how->threads,
        .page_bytes_max = how->tight ? tight_bytes(how) : 0,
        .host_bytes_max = how->ahead ? WORLD_HOST_DEFAULT : 0,
        .spill = how->spill,
    };
    EXPECT_OK(ops->open(&config, &world, &error), error);
    return world;
}

static void reset(struct world *world, uint32_t slot, uint32_t key)
{
    struct error error;
    EXPECT_OK(ops->slot_reset(world, slot, prepared, key, &error), error);
}

static void step_one(struct world *world, uint32_t slot, uint32_t key)
{
    struct action actions[SLOTS_MAX] = {0};
    uint8_t active[SLOTS_MAX] = {0};
    actions[slot] = action_of(key, ops->slot_scene(world, slot)->tick);
    active[slot] = 1;
    ops->step(world, actions, active);
}

/* From the slot's tick to `end`, recorded before every step, and after the last one of all. */
static void drive(struct world *world, uint32_t slot, uint32_t end, struct record *record)
{
    while (ops->slot_scene(world, slot)->tick < end) {
        record_slot(record, world, slot);
        step_one(world, slot, KEY);
    }
    if (end == TICKS) {
        record_slot(record, world, slot);
    }
}

static void run_alone(const struct how *how, uint32_t seed, char hex[SHA256_HEX_BYTES])
{
    struct world *world = open_world(how);
    struct record record;
    sha256_init(&record.hash);
    reset(world, 0, seed);
    drive(world, 0, TICKS, &record);
    finish(&record, hex);
    ops->close(world);
}

/* Reference for every other way: one slot, one thread; computed once. */
static const char *reference(uint32_t model, enum conditioning conditioning)
{
    static char known[MODELS][CONDITIONING_CHOICES][SHA256_HEX_BYTES];
    char *hex = known[model][conditioning];
    if (hex[0] == '\0') {
        run_alone(&(struct how){.model = model, .conditioning = conditioning, .slots = 1}, KEY,
                  hex);
    }
    return hex;
}

/* ---- ways of running the same rollout ---- */

/* A full batch of 4: the rollout in two of the slots, other seeds and actions in the others. */
static void run_batch(const struct how *how, uint32_t parity, char hex[4][SHA256_HEX_BYTES])
{
    struct world *world = open_world(how);
    struct record records[4];
    struct action actions[4];
    const uint8_t active[4] = {1, 1, 1, 1};
    for (uint32_t i = 0; i < 4; i++) {
        sha256_init(&records[i].hash);
        reset(world, i, i % 2 == parity ? KEY : 10 + i);
    }
    for (uint32_t tick = 0; tick <= TICKS; tick++) {
        for (uint32_t i = 0; i < 4; i++) {
            record_slot(&records[i], world, i);
            actions[i] = action_of(i % 2 == parity ? KEY : 10 + i, tick);
        }
        if (tick < TICKS) {
            ops->step(world, actions, active);
        }
    }
    for (uint32_t i = parity; i < 4; i += 2) {
        finish(&records[i], hex[i]);
    }
    ops->close(world);
}

static const char *in_batch(const struct how *how, uint32_t slot)
{
    static char known[MODELS][4][SHA256_HEX_BYTES];
    char(*hex)[SHA256_HEX_BYTES] = known[how->model];
    if (hex[slot][0] == '\0') {
        run_batch(how, slot % 2, hex);
    }
    return hex[slot];
}

/* Beside neighbours that come, go and stand still. */
static void in_company(const struct how *how, char hex[SHA256_HEX_BYTES])
{
    struct world *world = open_world(how);
    struct record record;
    uint32_t last = how->slots - 1;
    sha256_init(&record.hash);
    reset(world, 0, 77);
    step_one(world, 0, 77);
    reset(world, last, KEY);
    for (uint32_t tick = 1; tick <= TICKS; tick++) {
        if (tick == 3) {
            ops->slot_release(world, 0);
            reset(world, 0, 78);
        }
        if (tick % 2 == 0) {
            step_one(world, 0, 78);
        }
        drive(world, last, tick, &record);
    }
    finish(&record, hex);
    ops->close(world);
}

/* The branch goes on as the main line would have; or the main line, after a branch that did not. */
static void through_fork(const struct how *how, bool branch, char hex[SHA256_HEX_BYTES])
{
    struct world *world = open_world(how);
    struct record record;
    sha256_init(&record.hash);
    reset(world, 0, KEY);
    drive(world, 0, FORK_TICK, &record);
    ops->slot_fork(world, 0, 1);
    for (int i = 0; i < 2; i++) {
        step_one(world, branch ? 0 : 1, 55);
    }
    drive(world, branch ? 1 : 0, TICKS, &record);
    finish(&record, hex);
    ops->close(world);
}

/* Twice, and until its pages were read. */
static void announce(struct world *world, const struct how *how, const void *state)
{
    struct spill_store *store = how->spill->context;
    struct world_cost cost;
    ops->cost(world, &cost);
    EXPECT(cost.pages_spill > 0 && cost.pages_host == 0);
    EXPECT(ops->slot_state_prefetch(world, state));
    EXPECT(ops->slot_state_prefetch(world, state));
    for (uint64_t i = 0; i < cost.pages_spill; i++) {
        EXPECT_INT(sem_wait(&store->peeked), 0);
    }
    EXPECT_INT(sem_trywait(&store->peeked), -1);
}

/* Parked while two other rollouts fill both slots; restored into the other slot. */
static void through_parking(const struct how *how, char hex[SHA256_HEX_BYTES],
                            struct world_cost *cost)
{
    struct world *world = open_world(how);
    struct record record;
    void *state = malloc(ops->slot_state_bytes(world));
    EXPECT(state != NULL);
    sha256_init(&record.hash);
    reset(world, 0, KEY);
    drive(world, 0, FORK_TICK, &record);
    ops->slot_save(world, 0, state);
    ops->slot_release(world, 0);
    for (uint32_t i = 0; i < 2; i++) {
        reset(world, i, 90 + i);
        for (uint32_t tick = 0; tick <= model_config(models[how->model])->window; tick++) {
            step_one(world, i, 90 + i);
        }
    }
    ops->slot_release(world, 1);
    if (how->ahead) {
        announce(world, how, state);
    }
    ops->slot_restore(world, 1, state);
    drive(world, 1, TICKS, &record);
    finish(&record, hex);
    ops->cost(world, cost);
    ops->close(world);
    free(state);
}

static void through_spill(struct how how, bool refuses, char hex[SHA256_HEX_BYTES])
{
    struct spill_store store = {.refuses = refuses};
    const struct spill_ops spill = {&store, spill_store_write, spill_store_read, spill_store_drop,
                                    spill_store_peek};
    struct world_cost cost;
    EXPECT_INT(sem_init(&store.peeked, 0, 0), 0);
    how.tight = true;
    how.spill = &spill;
    through_parking(&how, hex, &cost);
    sem_destroy(&store.peeked);
    EXPECT(cost.spills > 0); /* it did what it is for */
    EXPECT((store.writes > 0) == !refuses);
    EXPECT_INT(cost.ahead_used, how.ahead ? store.writes : 0);
    EXPECT_INT(store.reads, how.ahead || refuses ? 0 : store.writes);
    for (int i = 0; i < SPILL_RECORDS; i++) {
        EXPECT(store.data[i] == NULL);
    }
}

/* ---- the matrix ---- */

enum { WAYS = 13, CASES = WAYS * MODELS };

static const char *const ways[WAYS] = {
    "alone again",
    "alone, 2 threads",
    "batch of 4, slot 0",
    "batch of 4, slot 1, 2 threads",
    "batch of 4, slot 2",
    "batch of 4, slot 3, 2 threads",
    "slot 7 of 8, company changes",
    "branch of a fork",
    "main line after a fork",
    "parked in memory",
    "parked and spilled",
    "parked, spill refuses",
    "parked, spilled and read ahead",
};

static void run_case(uint32_t way, uint32_t model)
{
    char hex[SHA256_HEX_BYTES];
    struct world_cost cost;
    struct how how = {.model = model, .slots = 1, .threads = 1 + way % 2};
    if (way < 2) {
        run_alone(&how, KEY, hex);
    } else if (way < 6) {
        how.slots = 4;
        snprintf(hex, sizeof hex, "%s", in_batch(&how, way - 2));
    } else if (way == 6) {
        how.slots = 8;
        in_company(&how, hex);
    } else {
        how.slots = 2;
        if (way < 9) {
            through_fork(&how, way == 7, hex);
        } else if (way == 9) {
            through_parking(&how, hex, &cost);
        } else {
            how.ahead = way == 12;
            through_spill(how, way == 11, hex);
        }
    }
    EXPECT_TEXT(hex, reference(model, CONDITIONING_AGENTS));
}

/* The wide model is slow, as single precision is under a sanitizer: of them only the ways that
 * differ in what they touch. */
static bool is_run(uint32_t way, uint32_t model)
{
    if (model == WIDE) {
        return way == 7 || way == 10;
    }
#if defined(TEST_WITH_ASAN)
    return model == NN_BF16 || way == 1 || way == 7 || way == 10;
#else
    (void)way;
    return true;
#endif
}

static void next_case(void)
{
    static uint32_t next;
    while (!is_run(next % WAYS, next / WAYS)) {
        next++;
    }
    uint32_t index = next++;
    run_case(index % WAYS, index / WAYS);
}

/* ---- beside the matrix ---- */

static void the_digest_tells_rollouts_apart(void)
{
    char other[SHA256_HEX_BYTES];
    struct how how = {.model = NN_BF16, .slots = 1};
    run_alone(&how, KEY + 1, other); /* another seed, the same actions */
    EXPECT(strcmp(other, reference(NN_BF16, CONDITIONING_AGENTS)) != 0);
    EXPECT(strcmp(reference(NN_FP32, CONDITIONING_AGENTS),
                  reference(NN_BF16, CONDITIONING_AGENTS)) != 0);
    EXPECT(strcmp(reference(NN_INT8, CONDITIONING_AGENTS),
                  reference(NN_BF16, CONDITIONING_AGENTS)) != 0);
    EXPECT(strcmp(reference(NN_BF16, CONDITIONING_MAP), reference(NN_BF16, CONDITIONING_AGENTS)) !=
           0);
}

static void freer_conditionings_keep_their_bits_too(void)
{
    for (int conditioning = CONDITIONING_MAP; conditioning < CONDITIONING_CHOICES; conditioning++) {
        char hex[SHA256_HEX_BYTES];
        struct how how = {
            .model = NN_BF16,
            .conditioning = (enum conditioning)conditioning,
            .slots = 2,
            .threads = 2,
        };
        const char *expected = reference(NN_BF16, how.conditioning);
        through_fork(&how, true, hex);
        EXPECT_TEXT(hex, expected);
        through_spill(how, false, hex);
        EXPECT_TEXT(hex, expected);
    }
}

static void rollouts_of_one_scenario_share_their_start(void)
{
    struct world_cost cost;
    struct how how = {.model = NN_BF16, .slots = 3};
    struct world *world = open_world(&how);
    reset(world, 0, 1);
    reset(world, 1, 2);
    reset(world, 2, 3);
    ops->cost(world, &cost);
    EXPECT_INT(cost.pages_peak, 1);
    EXPECT_INT(cost.pages_shared, 2);
    step_one(world, 0, 1);
    ops->slot_release(world, 0);
    ops->slot_fork(world, 1, 0);
    ops->cost(world, &cost);
    EXPECT_INT(cost.pages_peak, 2);
    EXPECT_INT(cost.pages_shared, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ops->slot_release(world, i);
    }
    reset(world, 0, 1); /* nobody holds the page any more: it is drawn again */
    ops->cost(world, &cost);
    EXPECT_INT(cost.pages_shared, 3);
    ops->close(world);
}

/* 16 branches at half of the horizon: the past is simulated once. */
static void a_fanout_pays_for_its_past_once(void)
{
    enum { BRANCHES = 16, HALF = 1 };
    struct world_cost cost;
    struct how how = {.model = NN_BF16, .slots = 2};
    struct world *world = open_world(&how);
    reset(world, 0, KEY);
    for (uint32_t i = 0; i < HALF; i++) {
        step_one(world, 0, KEY);
    }
    for (uint32_t branch = 0; branch < BRANCHES; branch++) {
        ops->slot_fork(world, 0, 1);
        for (uint32_t i = 0; i < HALF; i++) {
            step_one(world, 1, branch);
        }
        ops->slot_release(world, 1);
    }
    ops->cost(world, &cost);
    EXPECT_INT(cost.ticks, HALF + BRANCHES * HALF);
    EXPECT((double)cost.ticks / (2 * BRANCHES * HALF) <= 0.56);
    EXPECT(cost.flop == model_tick_flop(models[NN_BF16], 0) * (double)cost.ticks);
    EXPECT_INT(cost.pages_shared, BRANCHES * (HALF + 1));
    ops->close(world);
}

/* The slot's frames when every other tick is drawn: digest after the last of TICKS ticks. */
static void drive_mixed(struct world *world, uint32_t slot, struct record *record)
{
    struct error error;
    for (uint32_t tick = ops->slot_scene(world, slot)->tick; tick < TICKS; tick++) {
        record_slot(record, world, slot);
        EXPECT_OK(ops->slot_skip(world, slot, tick % 2, &error), error);
        step_one(world, slot, KEY);
    }
    record_slot(record, world, slot);
}

/* A slot's steps are its own, go along with forks and saved states, and leave no other's bits. */
static void steps_left_out_are_the_slots_own(void)
{
    char mixed[2][SHA256_HEX_BYTES];
    char whole[SHA256_HEX_BYTES];
    struct error error;
    struct record records[2];
    struct record beside;
    struct how how = {.model = NN_BF16, .slots = 3};
    struct world *world = open_world(&how);
    void *state = malloc(ops->slot_state_bytes(world));
    sha256_init(&records[0].hash);
    sha256_init(&beside.hash);
    reset(world, 0, KEY);
    reset(world, 2, KEY);
    EXPECT_OK(ops->slot_skip(world, 0, 1, &error), error);
    ops->slot_fork(world, 0, 1);
    ops->slot_save(world, 1, state);
    ops->slot_release(world, 1);
    ops->slot_restore(world, 1, state);
    records[1] = records[0];
    drive_mixed(world, 0, &records[0]);
    drive(world, 2, TICKS, &beside);
    drive_mixed(world, 1, &records[1]);
    finish(&beside, whole);
    for (int i = 0; i < 2; i++) {
        finish(&records[i], mixed[i]);
    }
    EXPECT_TEXT(mixed[0], mixed[1]);
    EXPECT_TEXT(whole, reference(NN_BF16, CONDITIONING_AGENTS));
    EXPECT(strcmp(mixed[0], whole) != 0);
    EXPECT_INT(ops->slot_skip(world, 0, 2, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "at most the sampler's 1 steps");
    ops->close(world);
    how.conditioning = CONDITIONING_MAP;
    world = open_world(&how);
    reset(world, 0, KEY);
    EXPECT_INT(ops->slot_skip(world, 0, 1, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "the model moves the agents");
    ops->close(world);
    free(state);
}

static void a_lost_rollout_says_so_and_disturbs_nobody(void)
{
    char hex[SHA256_HEX_BYTES];
    struct spill_store store = {.fails = true};
    const struct spill_ops spill = {&store, spill_store_write, spill_store_read, spill_store_drop,
                                    NULL};
    struct how how = {.model = NN_BF16, .slots = 2, .tight = true, .spill = &spill};
    struct world *world = open_world(&how);
    void *state = malloc(ops->slot_state_bytes(world));
    EXPECT(state != NULL);
    reset(world, 0, 5);
    for (int i = 0; i < 3; i++) {
        step_one(world, 0, 5);
    }
    ops->slot_save(world, 0, state);
    ops->slot_release(world, 0);
    reset(world, 1, 6);
    for (uint32_t i = 0; i < 4; i++) {
        step_one(world, 1, 6);
    }
    struct record record;
    sha256_init(&record.hash);
    reset(world, 0, KEY);
    drive(world, 0, 4, &record);
    EXPECT(store.writes > 0);
    ops->slot_release(world, 1);
    ops->slot_restore(world, 1, state);
    EXPECT(ops->slot_frame_stats(world, 1)->not_finite > 0); /* before it is looked at again */
    static uint8_t bev[BEV_BYTES];
    static uint8_t camera[CAMERA_BYTES];
    ops->slot_observe(world, 1, &(struct observation_buffers){.bev = bev, .camera = {camera}});
    EXPECT(bev[0] == 0 && bev[BEV_UNSEEN * BEV_CELLS] == 255);
    step_one(world, 1, 5);
    EXPECT_INT(ops->slot_scene(world, 1)->tick, 4);
    EXPECT_INT(ops->slot_frame_stats(world, 1)->tick, 4);
    EXPECT(ops->slot_frame_stats(world, 1)->not_finite > 0);
    ops->slot_save(world, 1, state); /* stays lost */
    ops->slot_release(world, 1);
    ops->slot_restore(world, 1, state);
    EXPECT(ops->slot_frame_stats(world, 1)->not_finite > 0);
    drive(world, 0, TICKS, &record);
    finish(&record, hex);
    EXPECT_TEXT(hex, reference(NN_BF16, CONDITIONING_AGENTS));
    ops->close(world);
    free(state);
}

static void what_cannot_be_is_refused(void)
{
    struct error error = {0};
    struct world *world = NULL;
    struct world_config config = {.slot_count = 2};
    EXPECT_INT(ops->open(&config, &world, &error), STATUS_DEVICE);
    EXPECT_CONTAINS(error.text, "student");
    config.model = models[NN_BF16];
    EXPECT_INT(world_teacher_ops.open(&config, &world, &error), STATUS_DEVICE);
    EXPECT_CONTAINS(error.text, "teacher");
    config.page_bytes_max = 1000000;
    EXPECT_INT(ops->open(&config, &world, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "1000000");
    EXPECT(world == NULL);
    config.page_bytes_max = 0;
    config.conditioning = CONDITIONING_MAP;
    EXPECT_OK(ops->open(&config, &world, &error), error);
    reset(world, 0, 1);
    const struct intervention appear = {.kind = INTERVENE_AGENT_APPEAR, .agent = 3};
    EXPECT_INT(ops->slot_intervene(world, 0, &appear, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "\"map\"");
    EXPECT(!ops->slot_scene(world, 0)->agents[3].present);
    ops->close(world);
    EXPECT(world_ops_for_tier(TIER_STUDENT) == ops);
    EXPECT(world_ops_for_tier(TIER_TEACHER) == &world_teacher_ops);
}

static bool create_models(void)
{
    struct model_config config = {
        .name = "test",
        .tier = TIER_STUDENT,
        .width = 64,
        .layers = 2,
        .bev_channels = 32,
        .camera_channels = 32,
        .window = 2,
        .steps = 1,
        .schedule = {0.0, 1.0},
        .joint = {true, false},
        .horizon_ticks = {100, 50, 20},
    };
    for (int p = 0; p < MODELS; p++) {
        struct error error;
        const struct model_open_options options = {.precision =
                                                       p == WIDE ? NN_BF16 : (enum nn_precision)p,
                                                   .cpu_flags = cpu_flags_detect()};
        if (p == WIDE) {
            config.layers = 1;
            config.joint[0] = false;
            config.patch = 4;
            config.heads = 8;
            config.kv_heads = 4;
            config.head_dim = 16;
            config.type = MODEL_E4M3;
            config.pages = MODEL_E4M3;
        }
        if (model_random(&config, &options, 1, &models[p], &error) != STATUS_OK) {
            printf("Bail out! %s\n", error.text);
            return false;
        }
    }
    return true;
}

int main(void)
{
    static char names[CASES][64];
    struct test_case cases[CASES + 7];
    if (!create_models()) {
        return 2;
    }
    create_prepared();
    uint32_t count = 0;
    for (uint32_t i = 0; i < CASES; i++) {
        if (is_run(i % WAYS, i / WAYS)) {
            snprintf(names[i], sizeof names[i], "%s: %s",
                     i / WAYS == WIDE ? "wide" : nn_precision_names[i / WAYS], ways[i % WAYS]);
            cases[count++] = (struct test_case){names[i], next_case};
        }
    }
    const struct test_case others[] = {
        TEST(the_digest_tells_rollouts_apart),
        TEST(freer_conditionings_keep_their_bits_too),
        TEST(rollouts_of_one_scenario_share_their_start),
        TEST(a_fanout_pays_for_its_past_once),
        TEST(steps_left_out_are_the_slots_own),
        TEST(a_lost_rollout_says_so_and_disturbs_nobody),
        TEST(what_cannot_be_is_refused),
    };
    memcpy(&cases[count], others, sizeof others);
    int code = test_run(cases, count + COUNT_OF(others));
    prepared_unref(prepared);
    arena_finish(&arena);
    for (int p = 0; p < MODELS; p++) {
        model_close(models[p]);
    }
    return code;
}
