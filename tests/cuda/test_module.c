/*
 * Goal: the device backend computes what the CPU computes, within a tolerance, and a slot's bits
 * depend on its own record, layout and pages alone.
 * Method: the module under the SIMT emulator, opened by dlopen as the engine does it, with a small
 * random model. Rollouts are driven through struct device_ops directly: beside forward_tick over
 * several ticks; then one rollout in different company, slots, sessions, after a spill, from a
 * fork, by graph and by launches. argv[1]: the module; argv[2]: "checked" or "fast", for one that
 * checks every access: a tick of the plain kernels, ticks of a GPU's; "failures": a session goes on
 * beside allocations that fail.
 */
#include "base/check.h"
#include "engine/learned/backend.h"
#include "engine/learned/frame_measure.h"
#include "engine/learned/model_internal.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/raster_layers.h"
#include "kernels/capability.h"
#include "kernels/cpu.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { TICKS = 3, PAGES = 12, SLOTS = 3 };

static struct device device;
static struct model *model;
static struct model_device description;

static void create_model(uint32_t layers, uint32_t steps)
{
    struct error error = {0};
    struct model_config config = {
        .name = "random",
        .tier = TIER_STUDENT,
        .width = 32,
        .layers = layers,
        .bev_channels = 32,
        .camera_channels = 32,
        .window = 2,
        .steps = steps,
        .schedule = {0.0, 1.0},
        .joint = {true, false},
    };
    const double inner[] = {0.6, 0.8, 0.9};
    for (uint32_t step = 1; step < steps; step++) {
        config.schedule[step] = inner[step - 1];
        config.schedule[step + 1] = 1.0;
    }
    const struct model_open_options options = {
        .precision = NN_BF16, .cpu_flags = cpu_flags_detect(), .device = true};
    CHECK(model_random(&config, &options, 11, &model, &error) == STATUS_OK);
    CHECK(model_describe(model, &description, &error) == STATUS_OK);
}

/* ---- a place whose layouts are drawn ---- */

enum { GROUND_AGENTS = 12, GROUND_MAP = 3 };

static struct {
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
    struct scene scene;
    struct anchor anchor;
} ground;

static void create_ground(void)
{
    struct error error;
    arena_init(&ground.arena, 1 << 20);
    maps_motorway(&ground.arena, &ground.scenario.map, 2, 200);
    maps_scenario(&ground.arena, &ground.scenario, (struct pose){50, 3.5, 0.2}, 9, 0,
                  GROUND_AGENTS);
    ground.scene.agent_count = GROUND_AGENTS;
    ground.scene.ego.pose = ground.scenario.ego.pose;
    ground.scene.conditions = ground.scenario.conditions;
    for (uint32_t i = 0; i < GROUND_AGENTS; i++) {
        struct pose pose = {30.0 + 5.0 * i, 9.0 - 4.0 * (i % 5), 0.3 * i};
        maps_agent(&ground.scenario, i, i % 3 == 0 ? AGENT_PEDESTRIAN : AGENT_CAR, BEHAVIOUR_STATIC,
                   pose, 0);
        ground.scene.agents[i] = (struct agent_state){pose, 2.0, 0.0, true};
    }
    CHECK(prepared_create(&ground.scenario, &ground.prepared, &error) == STATUS_OK);
    ground.anchor = anchor_make(ground.scenario.ego.pose);
}

static void make_map(struct device_session *session)
{
    struct device_text why = {""};
    if (device.ops->map_make(session, GROUND_MAP, &ground.prepared->layers->map, &why) !=
        DEVICE_OK) {
        TEST_FAIL("map_make: %s", why.text);
    }
}

/* Parts of a slot's layout, drawn on the host. */
static void draw(const struct device_slot *slot, uint32_t parts, uint8_t *layout)
{
    enum conditioning conditioning = (enum conditioning)slot->conditioning;
    struct window window = {slot->window[0], slot->window[1]};
    if (parts & DEVICE_GIVEN_BEV) {
        layout_bev(ground.prepared, &ground.scene, &ground.anchor, window, conditioning, layout);
    }
    if (parts & DEVICE_GIVEN_CAMERAS) {
        layout_cameras(ground.prepared, &ground.scene, conditioning, layout + FRAME_BEV_BYTES);
    }
}

/* The part that is not given of a slot's layout is drawn by the device, from now on. */
static void describe(struct device_session *session, uint32_t index, uint32_t given)
{
    struct device_slot *slot = &device.ops->slots(session)[index];
    struct window window = {slot->window[0], slot->window[1]};
    struct draw_list *draw_list = device.ops->draw_list(session, index);
    enum conditioning conditioning = (enum conditioning)slot->conditioning;
    EXPECT(layout_describe(ground.prepared, &ground.scene, &ground.anchor, window, conditioning,
                           GROUND_MAP, draw_list));
    if (!(given & DEVICE_GIVEN_CAMERAS)) {
        EXPECT(layout_describe_cameras(ground.prepared, &ground.scene, conditioning, draw_list));
    }
    slot->given = given;
    draw(slot, given, device.ops->layout(session, index));
}

/* ---- a rollout's inputs, made up from its seed ---- */

struct rollout {
    uint64_t seed;
    uint32_t tick;
    uint32_t skips[TICKS + 1]; /* steps that a tick leaves out */
    uint32_t page_count;
    uint32_t page[NN_PAGES_MAX]; /* newest first */
    struct window window[NN_PAGES_MAX];
};

static void fill_bytes(uint8_t *out, uint32_t count, uint64_t seed)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (uint8_t)((i / 7 * UINT64_C(2654435761) + seed * 40503) >> 24);
    }
}

static struct window window_at(const struct rollout *rollout, uint32_t tick)
{
    return (struct window){(int32_t)(rollout->seed % 3) - 3 + (int32_t)tick / 2,
                           -6 + (int32_t)(tick == 2)};
}

static struct pose ego_at(const struct rollout *rollout, uint32_t tick)
{
    return (struct pose){6.0 + 2.5 * tick, -3.0 + 0.1 * (double)rollout->seed, 0.05 * tick + 0.3};
}

static void cond_at(const struct rollout *rollout, uint32_t tick, float cond[COND_COUNT])
{
    for (uint32_t i = 0; i < COND_COUNT; i++) {
        cond[i] = (float)((i * 7 + tick + rollout->seed) % 11 / 11.0);
    }
}

static uint64_t layout_seed(const struct rollout *rollout, uint32_t tick)
{
    return rollout->seed * 100 + tick;
}

/* ---- sessions ---- */

struct rig {
    struct device_session *session;
    uint32_t slots;
    uint32_t next_page;
};

static void rig_open_with(struct rig *rig, uint32_t slots, bool eager, bool plain)
{
    struct device_text why = {""};
    const struct device_options options = {
        .slot_count = slots, .page_count = PAGES, .eager = eager, .reference = plain};
    *rig = (struct rig){.slots = slots};
    int fault = device.ops->open(&description.description, &options, &rig->session, &why);
    if (fault != DEVICE_OK) {
        TEST_FAIL("open: %s", why.text);
    }
}

static bool emulated(void)
{
    return strcmp(device.ops->name, "cuda") != 0;
}

/* With the kernels that a product runs; under the emulator with the plain ones, which it runs ten
 * times faster. */
static void rig_open(struct rig *rig, uint32_t slots, bool eager)
{
    rig_open_with(rig, slots, eager, emulated());
}

static void rig_close(struct rig *rig)
{
    device.ops->close(rig->session);
}

/* A rollout begins with a page that was not generated. */
static void begin(struct rig *rig, struct rollout *rollout, uint64_t seed)
{
    static uint8_t frame[FRAME_BYTES];
    struct device_text why = {""};
    *rollout = (struct rollout){.seed = seed, .page_count = 1};
    rollout->page[0] = rig->next_page++;
    rollout->window[0] = window_at(rollout, 0);
    fill_bytes(frame, FRAME_BYTES, seed);
    if (device.ops->page_make(rig->session, rollout->page[0], frame, &why) != DEVICE_OK) {
        TEST_FAIL("page_make: %s", why.text);
    }
}

/* Puts a rollout's next tick into a slot; the page comes first in its table once it is done. */
static void load_slot(struct rig *rig, struct rollout *rollout, uint32_t index)
{
    struct device_slot *slot = &device.ops->slots(rig->session)[index];
    uint32_t tick = rollout->tick + 1;
    struct pose ego = ego_at(rollout, tick);
    struct window window = window_at(rollout, tick);
    *slot = (struct device_slot){
        .seed = rollout->seed,
        .ego = {ego.x_m, ego.y_m, ego.heading_rad},
        .active = 1,
        .tick = tick,
        .window = {window.i, window.j},
        .conditioning = (uint32_t)(rollout->seed % CONDITIONING_COUNT),
        .page_count = rollout->page_count,
        .write_page = rig->next_page++,
        .deliver = 1,
        .given = DEVICE_GIVEN_ALL,
        .skipped = rollout->skips[tick],
    };
    for (uint32_t i = 0; i < rollout->page_count; i++) {
        slot->page[i] = rollout->page[i];
        slot->page_window[i][0] = rollout->window[i].i;
        slot->page_window[i][1] = rollout->window[i].j;
    }
    cond_at(rollout, tick, slot->cond);
    fill_bytes(device.ops->layout(rig->session, index), FRAME_BYTES, layout_seed(rollout, tick));
}

static void advance(struct rollout *rollout, const struct device_slot *slot)
{
    uint32_t keep = model->config.window - 1;
    rollout->page_count = rollout->page_count < keep ? rollout->page_count : keep;
    for (uint32_t i = rollout->page_count; i > 0; i--) {
        rollout->page[i] = rollout->page[i - 1];
        rollout->window[i] = rollout->window[i - 1];
    }
    rollout->page[0] = slot->write_page;
    rollout->window[0] = (struct window){slot->window[0], slot->window[1]};
    rollout->page_count++;
    rollout->tick++;
}

static void run_tick(struct rig *rig)
{
    struct device_text why = {""};
    if (device.ops->tick_start(rig->session, &why) != DEVICE_OK ||
        device.ops->tick_finish(rig->session, &why) != DEVICE_OK) {
        TEST_FAIL("tick: %s", why.text);
    }
}

/* One tick of one rollout in slot `index`, the others as they are. */
static void step(struct rig *rig, struct rollout *rollout, uint32_t index)
{
    load_slot(rig, rollout, index);
    run_tick(rig);
    advance(rollout, &device.ops->slots(rig->session)[index]);
}

/* ---- beside the CPU ---- */

struct twin {
    struct workspace *workspace;
    uint8_t frame[TICKS + 1][FRAME_BYTES];
    void *memory[TICKS + 1];
    struct window window[TICKS + 1];
    struct nn_counts counts;
};

static void twin_begin(struct twin *twin, const struct rollout *rollout)
{
    struct error error = {0};
    EXPECT_OK(workspace_create(model, 1, &twin->workspace, &error), error);
    for (uint32_t i = 0; i <= TICKS; i++) {
        twin->memory[i] = aligned_alloc(64, (forward_memory_bytes(model) + 63) / 64 * 64);
        EXPECT(twin->memory[i] != NULL);
    }
    fill_bytes(twin->frame[0], FRAME_BYTES, rollout->seed);
    twin->window[0] = window_at(rollout, 0);
    forward_memory(model, twin->workspace, twin->frame[0], twin->memory[0]);
}

static void twin_end(struct twin *twin)
{
    workspace_destroy(twin->workspace);
    for (uint32_t i = 0; i <= TICKS; i++) {
        free(twin->memory[i]);
    }
}

/* slot NULL: a made-up layout, else that of the ground in its window. */
static void twin_step(struct twin *twin, const struct rollout *rollout, uint32_t tick,
                      const struct device_slot *slot)
{
    static uint8_t layout[FRAME_BYTES];
    float cond[COND_COUNT];
    uint32_t window = model->config.window;
    struct forward_output output = {.frame = twin->frame[tick]};
    cond_at(rollout, tick, cond);
    fill_bytes(layout, FRAME_BYTES, layout_seed(rollout, tick));
    if (slot != NULL) {
        draw(slot, DEVICE_GIVEN_ALL, layout);
    }
    struct forward_input input = {
        .seed = rollout->seed,
        .tick = tick,
        .conditioning = (enum conditioning)(rollout->seed % CONDITIONING_COUNT),
        .window = window_at(rollout, tick),
        .ego = ego_at(rollout, tick),
        .cond = cond,
        .layout_bev = layout,
        .layout_cameras = layout + FRAME_BEV_BYTES,
        .page_count = tick < window ? tick : window,
        .skipped = rollout->skips[tick],
    };
    for (uint32_t i = 0; i < input.page_count; i++) {
        uint32_t at = tick - 1 - i;
        input.pages[i] = (struct forward_page){twin->frame[at], twin->memory[at], twin->window[at]};
    }
    forward_tick(model, twin->workspace, &input, &output);
    forward_memory(model, twin->workspace, twin->frame[tick], twin->memory[tick]);
    twin->window[tick] = input.window;
    twin->counts = output.counts;
}

/* Both go on from the device's frame: whether a lone return is 0 or 1 decides on the velocity of
 * what the next tick begins with, so frames of their own would part for good. */
static void twin_take(struct twin *twin, uint32_t tick, const uint8_t *frame)
{
    memcpy(twin->frame[tick], frame, FRAME_BYTES);
    forward_memory(model, twin->workspace, twin->frame[tick], twin->memory[tick]);
}

/* Sums run in another order than on the CPU and are rounded to bf16 at the same places, so
 * activations differ by a unit of bf16 here and there: a byte or two of a frame. */
static void expect_near(const uint8_t *device_frame, const uint8_t *cpu_frame)
{
    uint32_t equal = 0;
    int largest = 0;
    for (uint32_t i = 0; i < FRAME_BYTES; i++) {
        int difference = abs(device_frame[i] - cpu_frame[i]);
        equal += difference == 0;
        largest = difference > largest ? difference : largest;
    }
    printf("# %.1f%% of the bytes equal, largest difference %d\n", 100.0 * equal / FRAME_BYTES,
           largest);
    EXPECT(largest <= 8);
    EXPECT(equal >= FRAME_BYTES / 2);
}

static void device_agrees_with_the_cpu(void)
{
    static struct twin twin;
    struct rig rig;
    struct rollout rollout;
    rig_open(&rig, 1, false);
    begin(&rig, &rollout, 7);
    twin_begin(&twin, &rollout);
    for (uint32_t tick = 1; tick <= TICKS; tick++) {
        twin_step(&twin, &rollout, tick, NULL);
        step(&rig, &rollout, 0);
        expect_near(device.ops->frame(rig.session, 0), twin.frame[tick]);
        const struct device_counts *counts = device.ops->counts(rig.session);
        EXPECT_INT(counts->not_finite, 0);
        EXPECT_NEAR((double)counts->saturated, (double)twin.counts.saturated, FRAME_BYTES / 200);
        twin_take(&twin, tick, device.ops->frame(rig.session, 0));
    }
    twin_end(&twin);
    rig_close(&rig);
}

/* One tick with the other kernels: those of a GPU under the emulator, the plain ones on a GPU. */
static void other_kernels_agree_too(void)
{
    static struct twin twin;
    struct rig rig;
    struct rollout rollout;
    rig_open_with(&rig, 1, false, !emulated());
    begin(&rig, &rollout, 7);
    twin_begin(&twin, &rollout);
    twin_step(&twin, &rollout, 1, NULL);
    step(&rig, &rollout, 0);
    expect_near(device.ops->frame(rig.session, 0), twin.frame[1]);
    twin_end(&twin);
    rig_close(&rig);
}

/* The memory of a frame by a session of such pages, with the small model's weights. */
static void make_page(enum model_type pages, const uint8_t *frame, void *memory)
{
    struct error error = {0};
    struct device_text why = {""};
    struct model *other = NULL;
    struct model_device described;
    struct model_config config = *model_config(model);
    struct device_session *session = NULL;
    const struct device_options options = {.slot_count = 1, .page_count = 2};
    const struct model_open_options how = {
        .precision = NN_BF16, .cpu_flags = cpu_flags_detect(), .device = true};
    config.pages = pages;
    EXPECT_OK(model_random(&config, &how, 11, &other, &error), error);
    EXPECT_OK(model_describe(other, &described, &error), error);
    EXPECT_INT(device.ops->open(&described.description, &options, &session, &why), DEVICE_OK);
    EXPECT_INT(device.ops->memory_bytes(session), forward_memory_bytes(other));
    uint8_t *pinned = device.ops->host_alloc(forward_memory_bytes(other));
    EXPECT(pinned != NULL);
    EXPECT_INT(device.ops->page_make(session, 1, frame, &why), DEVICE_OK);
    EXPECT_INT(device.ops->page_save(session, 1, NULL, pinned, &why), DEVICE_OK);
    EXPECT_INT(device.ops->page_wait(session, &why), DEVICE_OK);
    memcpy(memory, pinned, forward_memory_bytes(other));
    device.ops->host_free(pinned);
    device.ops->close(session);
    model_close(other);
}

/* The device's keys and values in bf16, rounded on the CPU, are the bytes and scales that the
 * device stores in e4m3. */
static void pages_of_e4m3_have_the_bytes_of_the_cpu(void)
{
    static uint8_t frame[FRAME_BYTES];
    struct model_config config = *model_config(model);
    const struct page_layout in = model_page_layout(&config, 2);
    config.pages = MODEL_E4M3;
    const struct page_layout out = model_page_layout(&config, 2);
    uint8_t *memory = calloc(1, in.memory_bytes);
    uint8_t *found = calloc(1, out.memory_bytes);
    uint8_t *expected_page = calloc(1, out.memory_bytes);
    EXPECT(memory != NULL && found != NULL && expected_page != NULL);
    fill_bytes(frame, FRAME_BYTES, 3);
    make_page(MODEL_BF16, frame, memory);
    make_page(MODEL_E4M3, frame, found);
    const uint32_t rows = model_tokens(&config) * config.kv_heads;
    for (uint32_t layer = 0; layer < config.layers; layer++) {
        const uint8_t *from = memory + layer * in.layer_bytes;
        uint8_t *to = expected_page + layer * out.layer_bytes;
        const struct nn_kernels *k = &model->kernels;
        k->heads_to_e4m3(from + in.k, config.head_dim, to + out.k, (float *)(to + out.k_scale), 0,
                         rows);
        k->heads_to_e4m3(from + in.v, config.head_dim, to + out.v, (float *)(to + out.v_scale), 0,
                         rows);
    }
    EXPECT(memcmp(found, expected_page, out.memory_bytes) == 0);
    EXPECT(out.memory_bytes < in.memory_bytes * 6 / 10);
    free(memory);
    free(found);
    free(expected_page);
}

/* ---- steps that are left out ---- */

enum { MIXED_STEPS = 4 };

static uint64_t steps_taken(const struct rig *rig)
{
    struct device_stats stats;
    device.ops->stats(rig->session, &stats);
    return stats.steps;
}

/* Steps that slots take in a tick, and the passes over the network that they take together: of
 * mixed steps as many as the slot that takes most; by queues of equal steps each queue its own. */
struct passes {
    uint32_t slot_steps, lockstep, mixed, queues;
};

static void count_passes(struct passes *passes, const uint32_t taken[SLOTS])
{
    bool queued[MIXED_STEPS + 1] = {false};
    uint32_t most = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        passes->slot_steps += taken[i];
        passes->queues += queued[taken[i]] ? 0 : taken[i];
        queued[taken[i]] = true;
        most = taken[i] > most ? taken[i] : most;
    }
    passes->lockstep += SLOTS * most;
    passes->mixed += most;
}

/* Three steps of four, all of them, then none: each tick beside one of four steps, and of one. */
static void drive_mixed(void)
{
    static struct twin twin;
    struct rig mixed;
    struct rig alone;
    struct rollout rollout;
    struct rollout same;
    struct rollout others[2];
    rig_open(&mixed, SLOTS, false);
    rig_open(&alone, 1, true);
    begin(&mixed, &rollout, 6);
    begin(&mixed, &others[0], 3);
    begin(&mixed, &others[1], 4);
    begin(&alone, &same, 6);
    const uint32_t skips[TICKS + 1] = {0, 1, MIXED_STEPS, 0};
    memcpy(rollout.skips, skips, sizeof skips);
    memcpy(same.skips, skips, sizeof skips);
    others[1].skips[1] = others[1].skips[2] = others[1].skips[3] = MIXED_STEPS - 1;
    twin_begin(&twin, &rollout);
    struct passes passes = {0};
    uint64_t steps = steps_taken(&mixed);
    for (uint32_t tick = 1; tick <= TICKS; tick++) {
        load_slot(&mixed, &others[0], 0);
        load_slot(&mixed, &rollout, 1);
        load_slot(&mixed, &others[1], 2);
        count_passes(&passes, (const uint32_t[SLOTS]){MIXED_STEPS - others[0].skips[tick],
                                                      MIXED_STEPS - skips[tick],
                                                      MIXED_STEPS - others[1].skips[tick]});
        run_tick(&mixed);
        twin_step(&twin, &rollout, tick, NULL);
        step(&alone, &same, 0);
        const uint8_t *frame = device.ops->frame(mixed.session, 1);
        expect_near(frame, twin.frame[tick]);
        EXPECT(skips[tick] < MIXED_STEPS || memcmp(frame, twin.frame[tick], FRAME_BYTES) == 0);
        EXPECT(memcmp(frame, device.ops->frame(alone.session, 0), FRAME_BYTES) == 0);
        twin_take(&twin, tick, frame);
        advance(&others[0], &device.ops->slots(mixed.session)[0]);
        advance(&rollout, &device.ops->slots(mixed.session)[1]);
        advance(&others[1], &device.ops->slots(mixed.session)[2]);
    }
    /* In lockstep each slot would take as many as the one that takes most. Queues of equal steps
     * take no more than mixed ones, but more passes, one after the other. */
    EXPECT_INT(steps_taken(&mixed) - steps, passes.slot_steps);
    EXPECT_INT(passes.slot_steps, 22);
    EXPECT_INT(passes.lockstep, 36);
    EXPECT_INT(passes.mixed, 12);
    EXPECT_INT(passes.queues, 18);
    twin_end(&twin);
    rig_close(&mixed);
    rig_close(&alone);
}

static void ticks_leave_steps_out(void)
{
    struct model *other = model;
    const struct model_device others_description = description;
    create_model(1, MIXED_STEPS);
    drive_mixed();
    model_close(model);
    model = other;
    description = others_description;
}

/* ---- bits ---- */

static uint8_t expected[TICKS + 1][FRAME_BYTES];

/* The rollout of seed 5, alone in a session of one slot, by graph. */
static void make_reference(void)
{
    struct rig rig;
    struct rollout rollout;
    struct device_stats stats;
    rig_open(&rig, 1, false);
    begin(&rig, &rollout, 5);
    for (uint32_t tick = 1; tick <= TICKS; tick++) {
        step(&rig, &rollout, 0);
        memcpy(expected[tick], device.ops->frame(rig.session, 0), FRAME_BYTES);
    }
    device.ops->stats(rig.session, &stats);
    EXPECT_INT(stats.captures, 1);
    EXPECT_INT(stats.replays, TICKS);
    rig_close(&rig);
}

/* The sums of a slot's tick are those of the frames that there are; `before` NULL: the frame that
 * the rollout began with. */
static void expect_sums(const struct rig *rig, const struct rollout *rollout, uint32_t index,
                        const uint8_t *before)
{
    static uint8_t first[FRAME_BYTES];
    const struct device_slot *slot = &device.ops->slots(rig->session)[index];
    struct frame_sums sums;
    fill_bytes(first, FRAME_BYTES, rollout->seed);
    const struct frame_measure_input input = {
        .conditioning = (enum conditioning)slot->conditioning,
        .frame = device.ops->frame(rig->session, index),
        .window = {slot->window[0], slot->window[1]},
        .before = before != NULL ? before : first,
        .before_window = rollout->window[0],
        .layout = device.ops->layout(rig->session, index),
    };
    frame_measure_sum(&input, &sums);
    EXPECT(sums.bev_change > 0 && sums.camera_change > 0);
    EXPECT((sums.layout > 0) == (slot->conditioning == CONDITIONING_AGENTS));
    EXPECT(memcmp(&device.ops->counts(rig->session)[index].sums, &sums, sizeof sums) == 0);
}

static void expect_reference(const struct rig *rig, uint32_t index, uint32_t tick)
{
    EXPECT(memcmp(device.ops->frame(rig->session, index), expected[tick], FRAME_BYTES) == 0);
}

/* Launched one by one, in the last of three slots, beside others that come and go. */
static void bits_do_not_depend_on_company_slot_or_graph(void)
{
    struct rig rig;
    struct rollout rollout;
    struct rollout others[2];
    make_reference();
    rig_open(&rig, SLOTS, true);
    begin(&rig, &rollout, 5);
    begin(&rig, &others[0], 3);
    begin(&rig, &others[1], 4);
    for (uint32_t tick = 1; tick <= TICKS; tick++) {
        struct device_slot *slots = device.ops->slots(rig.session);
        memset(slots, 0xff, (SLOTS - 1) * sizeof *slots); /* not read of inactive slots */
        slots[0].active = slots[1].active = 0;
        if (tick != 2) {
            load_slot(&rig, &others[tick / 2], tick / 2);
        }
        load_slot(&rig, &rollout, 2);
        run_tick(&rig);
        expect_reference(&rig, 2, tick);
        expect_sums(&rig, &rollout, 2, tick > 1 ? expected[tick - 1] : NULL);
        if (tick != 2) {
            expect_sums(&rig, &others[tick / 2], tick / 2, NULL);
            advance(&others[tick / 2], &slots[tick / 2]);
            EXPECT(memcmp(device.ops->frame(rig.session, tick / 2), expected[tick], FRAME_BYTES) !=
                   0);
        }
        advance(&rollout, &slots[2]);
    }
    rig_close(&rig);
}

/* Every page leaves the device, its place is overwritten, and it comes back elsewhere. */
static void spill(struct rig *rig, struct rollout *rollout)
{
    static uint8_t frame[FRAME_BYTES];
    struct device_text why = {""};
    void *memory = device.ops->host_alloc(device.ops->memory_bytes(rig->session));
    EXPECT(memory != NULL);
    for (uint32_t i = 0; i < rollout->page_count; i++) {
        const uint8_t *kept = expected[rollout->tick - i];
        if (i == rollout->tick) { /* the first page was not generated */
            fill_bytes(frame, FRAME_BYTES, rollout->seed);
            kept = frame;
        }
        EXPECT_INT(device.ops->page_save(rig->session, rollout->page[i], NULL, memory, &why), 0);
        EXPECT_INT(device.ops->page_wait(rig->session, &why), 0);
        uint8_t *garbage = calloc(1, FRAME_BYTES);
        EXPECT_INT(device.ops->page_make(rig->session, rollout->page[i], garbage, &why), 0);
        free(garbage);
        rollout->page[i] = rig->next_page++;
        EXPECT_INT(device.ops->page_load(rig->session, rollout->page[i], kept, memory, &why), 0);
        EXPECT_INT(device.ops->page_wait(rig->session, &why), 0);
    }
    device.ops->host_free(memory);
}

static void bits_survive_spills_and_forks(void)
{
    struct rig rig;
    struct rollout rollout;
    rig_open(&rig, 2, false);
    begin(&rig, &rollout, 5);
    step(&rig, &rollout, 1);
    expect_reference(&rig, 1, 1);
    spill(&rig, &rollout);
    struct rollout branch = rollout; /* a fork: the table is copied, the pages are shared */
    device.ops->slots(rig.session)[1].active = 0;
    for (uint32_t tick = 2; tick <= TICKS; tick++) {
        load_slot(&rig, &rollout, 1);
        load_slot(&rig, &branch, 0);
        run_tick(&rig);
        expect_reference(&rig, 0, tick);
        expect_reference(&rig, 1, tick);
        advance(&rollout, &device.ops->slots(rig.session)[1]);
        advance(&branch, &device.ops->slots(rig.session)[0]);
    }
    rig_close(&rig);
}

/* ---- pages over the bus ---- */

enum { MOTION = 20, GAP = 64 }; /* more than go at once; between the buffers, the host's own */

struct moves {
    struct rig rig;
    size_t bytes, apart;
    uint8_t *buffers; /* [MOVED][GAP, frame, memory]: pinned */
    uint8_t *kept;    /* [PAGES][frame, memory]: as they are on the device */
};

static uint8_t *frame_in(const struct moves *m, uint32_t buffer)
{
    return m->buffers + buffer * m->apart + GAP;
}

static void move(struct moves *m, bool back, uint32_t page, uint32_t buffer, bool whole)
{
    struct device_text why = {""};
    uint8_t *frame = frame_in(m, buffer);
    uint8_t *memory = frame + FRAME_BYTES;
    EXPECT_INT(
        back ? device.ops->page_load(m->rig.session, page, frame, memory, &why)
             : device.ops->page_save(m->rig.session, page, whole ? frame : NULL, memory, &why),
        0);
}

static void wait_for_moves(struct moves *m)
{
    struct device_text why = {""};
    EXPECT_INT(device.ops->page_wait(m->rig.session, &why), 0);
}

static uint64_t launches(const struct moves *m)
{
    struct device_stats stats;
    device.ops->stats(m->rig.session, &stats);
    return stats.launches;
}

/* The buffer holds the page, and nothing else of it was touched. */
static void expect_page(const struct moves *m, uint32_t page, uint32_t buffer, bool whole)
{
    const uint8_t *frame = frame_in(m, buffer);
    const uint8_t *kept = m->kept + page * (FRAME_BYTES + m->bytes);
    EXPECT(memcmp(frame + FRAME_BYTES, kept + FRAME_BYTES, m->bytes) == 0);
    for (uint32_t i = 0; i < GAP; i++) {
        EXPECT_INT(frame[(int)i - GAP], 0xC3);
    }
    if (whole) {
        EXPECT(memcmp(frame, kept, FRAME_BYTES) == 0);
    } else {
        EXPECT(frame[0] == 0xC3 && frame[FRAME_BYTES - 1] == 0xC3);
    }
}

/* Five pages of their own, known by saving them one by one. */
static void moves_begin(struct moves *m)
{
    struct device_text why = {""};
    uint8_t *frame = calloc(1, FRAME_BYTES);
    rig_open(&m->rig, 1, false);
    m->bytes = device.ops->memory_bytes(m->rig.session);
    m->apart = GAP + FRAME_BYTES + m->bytes;
    m->buffers = device.ops->host_alloc(MOTION * m->apart);
    m->kept = calloc(PAGES, FRAME_BYTES + m->bytes);
    EXPECT(frame != NULL && m->buffers != NULL && m->kept != NULL);
    for (uint32_t page = 0; page < 5; page++) {
        fill_bytes(frame, FRAME_BYTES, 31 + page);
        EXPECT_INT(device.ops->page_make(m->rig.session, page, frame, &why), 0);
        move(m, false, page, 0, true);
        wait_for_moves(m);
        memcpy(m->kept + page * (FRAME_BYTES + m->bytes), frame_in(m, 0), FRAME_BYTES + m->bytes);
        EXPECT(memcmp(frame, frame_in(m, 0), FRAME_BYTES) == 0);
    }
    free(frame);
    memset(m->buffers, 0xC3, MOTION * m->apart);
}

static void pages_move_together(void)
{
    static const uint32_t order[] = {3, 0, 4, 1};
    struct moves m;
    struct device_text why = {""};
    moves_begin(&m);
    /* A run with frames, a run without, a run at another distance, and one alone. */
    uint64_t before = launches(&m);
    for (uint32_t i = 0; i < 4; i++) {
        move(&m, false, order[i], i, true);
    }
    for (uint32_t i = 0; i < 3; i++) {
        move(&m, false, order[i], 4 + i, false);
    }
    move(&m, false, 2, 8, true);
    move(&m, false, 1, 11, true);
    move(&m, false, 0, 9, true);
    EXPECT_INT(device.ops->page_start(m.rig.session, &why), 0);
    EXPECT_INT(launches(&m) - before, 3);
    wait_for_moves(&m);
    for (uint32_t i = 0; i < 4; i++) {
        expect_page(&m, order[i], i, true);
    }
    for (uint32_t i = 0; i < 3; i++) {
        expect_page(&m, order[i], 4 + i, false);
    }
    expect_page(&m, 2, 8, true);
    expect_page(&m, 1, 11, true);
    expect_page(&m, 0, 9, true);
    /* Back to other pages, and at once out again; a page that is saved may be written over. */
    before = launches(&m);
    for (uint32_t i = 0; i < 4; i++) {
        move(&m, true, 5 + i, i, true);
    }
    for (uint32_t i = 0; i < 4; i++) {
        move(&m, false, 5 + i, 12 + i, true);
    }
    EXPECT_INT(launches(&m) - before, 1); /* the loads; the saves wait for more */
    uint8_t *garbage = calloc(1, FRAME_BYTES);
    EXPECT(garbage != NULL);
    EXPECT_INT(device.ops->page_make(m.rig.session, 6, garbage, &why), 0);
    free(garbage);
    wait_for_moves(&m);
    for (uint32_t i = 0; i < 4; i++) {
        expect_page(&m, order[i], 12 + i, true);
    }
    /* More than go at once. */
    memset(m.buffers, 0xC3, MOTION * m.apart);
    for (uint32_t i = 0; i < MOTION; i++) {
        move(&m, false, i % 5, i, i < 18);
    }
    wait_for_moves(&m);
    for (uint32_t i = 0; i < MOTION; i++) {
        expect_page(&m, i % 5, i, i < 18);
    }
    device.ops->host_free(m.buffers);
    free(m.kept);
    rig_close(&m.rig);
}

/* Pages whose places on the host are further apart than a copy's rows may be go one by one: a rank
 * of buffers that anything else lies between. The emulator's limit is lowered; on a GPU the places
 * are 2 GiB apart. */
static void pages_far_apart_move_one_by_one(void)
{
    const size_t far = emulated() ? (size_t)1 << 20 : (size_t)1 << 31;
    struct device_text why = {""};
    struct rig rig;
    char limit[32];
    snprintf(limit, sizeof limit, "%zu", far - 1);
    setenv("SIMT_PITCH_MAX", limit, 1);
    rig_open(&rig, 1, false);
    const size_t bytes = FRAME_BYTES + device.ops->memory_bytes(rig.session);
    uint8_t *buffers = device.ops->host_alloc(far + bytes);
    uint8_t *frames = calloc(2, FRAME_BYTES);
    EXPECT(bytes < far && buffers != NULL && frames != NULL);
    for (uint32_t page = 0; page < 2; page++) {
        fill_bytes(frames + page * FRAME_BYTES, FRAME_BYTES, 51 + page);
        EXPECT_INT(device.ops->page_make(rig.session, page, frames + page * FRAME_BYTES, &why), 0);
    }
    for (int back = 0; back < 2; back++) {
        for (uint32_t page = 0; page < 2; page++) {
            uint8_t *frame = buffers + page * far;
            uint8_t *memory = frame + FRAME_BYTES;
            EXPECT_INT(back ? device.ops->page_load(rig.session, 2 + page, frame, memory, &why)
                            : device.ops->page_save(rig.session, page, frame, memory, &why),
                       0);
        }
        EXPECT_INT(device.ops->page_start(rig.session, &why), 0);
        EXPECT_INT(device.ops->page_wait(rig.session, &why), 0);
    }
    for (uint32_t page = 0; page < 2; page++) {
        memset(buffers, 0, FRAME_BYTES);
        EXPECT_INT(device.ops->page_frame(rig.session, 2 + page, buffers, &why), 0);
        EXPECT(memcmp(buffers, frames + page * FRAME_BYTES, FRAME_BYTES) == 0);
    }
    device.ops->host_free(buffers);
    free(frames);
    rig_close(&rig);
    unsetenv("SIMT_PITCH_MAX");
}

/* ---- what comes down ---- */

static uint64_t down_bytes(const struct rig *rig)
{
    struct device_stats stats;
    device.ops->stats(rig->session, &stats);
    return stats.down_bytes;
}

static void expect_frame(const struct rig *rig, uint32_t page, uint8_t *pinned,
                         const uint8_t *frame)
{
    struct device_text why = {""};
    uint64_t before = down_bytes(rig);
    memset(pinned, 0, FRAME_BYTES);
    EXPECT_INT(device.ops->page_frame(rig->session, page, pinned, &why), 0);
    EXPECT(memcmp(pinned, frame, FRAME_BYTES) == 0);
    EXPECT_INT(down_bytes(rig) - before, FRAME_BYTES);
}

/* Slots 0 and 2 of three deliver, then none. */
static void frames_come_down_when_asked_for(void)
{
    struct rig rig;
    struct rollout rollout[SLOTS];
    struct device_text why = {""};
    rig_open(&rig, SLOTS, false);
    size_t bytes = device.ops->memory_bytes(rig.session);
    uint8_t *pinned = device.ops->host_alloc(FRAME_BYTES + 2 * bytes);
    EXPECT(pinned != NULL);
    for (uint32_t i = 0; i < SLOTS; i++) {
        begin(&rig, &rollout[i], i == 1 ? 5 : 6 + i);
        load_slot(&rig, &rollout[i], i);
    }
    struct device_slot *slots = device.ops->slots(rig.session);
    slots[1].deliver = 0;
    uint64_t before = down_bytes(&rig);
    run_tick(&rig);
    EXPECT_INT(down_bytes(&rig) - before, SLOTS * sizeof(struct device_counts) + 2 * FRAME_BYTES);
    for (uint32_t i = 0; i < FRAME_BYTES; i++) {
        EXPECT_INT(device.ops->frame(rig.session, 1)[i], 0); /* as it was */
    }
    expect_sums(&rig, &rollout[0], 0, NULL);
    expect_sums(&rig, &rollout[2], 2, NULL);
    expect_frame(&rig, slots[0].write_page, pinned, device.ops->frame(rig.session, 0));
    expect_frame(&rig, slots[1].write_page, pinned, expected[1]);

    /* On its way to the spill it takes its frame along. */
    before = down_bytes(&rig);
    memset(pinned, 0, FRAME_BYTES);
    EXPECT_INT(
        device.ops->page_save(rig.session, slots[1].write_page, pinned, pinned + FRAME_BYTES, &why),
        0);
    EXPECT_INT(device.ops->page_save(rig.session, slots[1].write_page, NULL,
                                     pinned + FRAME_BYTES + bytes, &why),
               0);
    EXPECT_INT(device.ops->page_wait(rig.session, &why), 0);
    EXPECT_INT(down_bytes(&rig) - before, FRAME_BYTES + 2 * bytes);
    EXPECT(memcmp(pinned, expected[1], FRAME_BYTES) == 0);
    EXPECT(memcmp(pinned + FRAME_BYTES, pinned + FRAME_BYTES + bytes, bytes) == 0);

    for (uint32_t i = 0; i < SLOTS; i++) {
        advance(&rollout[i], &slots[i]);
        load_slot(&rig, &rollout[i], i);
        slots[i].deliver = 0;
    }
    before = down_bytes(&rig);
    EXPECT_INT(device.ops->tick_start(rig.session, &why), 0);
    EXPECT_INT(device.ops->page_frame(rig.session, 0, pinned, &why), DEVICE_FAULT_INPUT);
    EXPECT_INT(device.ops->tick_finish(rig.session, &why), 0);
    EXPECT_INT(down_bytes(&rig) - before, SLOTS * sizeof(struct device_counts));
    expect_frame(&rig, slots[1].write_page, pinned, expected[2]);
    EXPECT_INT(device.ops->page_frame(rig.session, PAGES, pinned, &why), DEVICE_FAULT_INPUT);
    device.ops->host_free(pinned);
    rig_close(&rig);
}

/* ---- layouts ---- */

/* One rollout in four slots, its layout drawn, in whole, in part, not at all, in every
 * conditioning. */
static void drawn_layouts_are_those_that_are_given(void)
{
    enum { WAYS = DEVICE_GIVEN_ALL + 1 }; /* slot i is given the parts i */
    for (uint32_t conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
        struct rig rig;
        struct rollout rollout[WAYS];
        struct device_stats before;
        struct device_stats after;
        rig_open(&rig, WAYS, conditioning == 1);
        make_map(rig.session);
        uint64_t bytes = WAYS * sizeof(struct device_slot);
        for (uint32_t i = 0; i < WAYS; i++) {
            begin(&rig, &rollout[i], 6 + conditioning);
            load_slot(&rig, &rollout[i], i);
            EXPECT_INT(device.ops->slots(rig.session)[i].conditioning, conditioning);
            describe(rig.session, i, i);
            bytes += i & DEVICE_GIVEN_BEV ? FRAME_BEV_BYTES : 0;
            bytes += i & DEVICE_GIVEN_CAMERAS ? FRAME_CAMERA_BYTES : 0;
            bytes += i != DEVICE_GIVEN_ALL ? device.ops->draw_list(rig.session, i)->bytes : 0;
        }
        device.ops->stats(rig.session, &before);
        run_tick(&rig);
        device.ops->stats(rig.session, &after);
        for (uint32_t i = 0; i + 1 < WAYS; i++) {
            EXPECT(memcmp(device.ops->frame(rig.session, i),
                          device.ops->frame(rig.session, DEVICE_GIVEN_ALL), FRAME_BYTES) == 0);
        }
        EXPECT_INT(after.up_bytes - before.up_bytes, bytes);
        rig_close(&rig);
    }
}

static void bad_draw_lists_are_refused(void)
{
    struct rig rig;
    struct rollout rollout;
    struct device_text why = {""};
    struct device_stats stats;
    rig_open(&rig, 1, false);
    begin(&rig, &rollout, 6);
    load_slot(&rig, &rollout, 0);
    describe(rig.session, 0, DEVICE_GIVEN_CAMERAS);
    struct device_slot *slot = device.ops->slots(rig.session);
    struct draw_list *draw_list = device.ops->draw_list(rig.session, 0);
    const struct draw_list good = *draw_list;
    const struct raster_map *map = &ground.prepared->layers->map;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    EXPECT_CONTAINS(why.text, "map");
    make_map(rig.session);
    EXPECT_INT(device.ops->map_make(rig.session, GROUND_MAP, map, &why), DEVICE_FAULT_INPUT);
    EXPECT_INT(device.ops->map_make(rig.session, DEVICE_MAPS_MAX, map, &why), DEVICE_FAULT_INPUT);
    struct raster_map huge = *map;
    huge.tile_count = 1u << 27; /* two terabytes */
    EXPECT_INT(device.ops->map_make(rig.session, 0, &huge, &why), DEVICE_FAULT_MEMORY);
    EXPECT_CONTAINS(why.text, "map of 134217728 tiles");
    draw_list->agent_count = DRAW_LIST_AGENTS_MAX + 1;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    draw_list->agent_count = good.agent_count + 1;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    *draw_list = good;
    draw_list->bytes = DRAW_LIST_BYTES_MAX + DRAW_LIST_ALIGN;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    draw_list->bytes = good.bytes + 1;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    *draw_list = good;
    draw_list->map = DEVICE_MAPS_MAX;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    *draw_list = good;
    slot->given = 0;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    describe(rig.session, 0, 0);
    const struct draw_list whole = *draw_list;
    draw_list->camera_bytes += DRAW_LIST_ALIGN;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    draw_list->camera_bytes = DRAW_LIST_ALIGN;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    *draw_list = whole;
    draw_list->camera_at += 8;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    *draw_list = whole;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), 0);
    EXPECT_INT(device.ops->map_make(rig.session, 0, map, &why), DEVICE_FAULT_INPUT);
    EXPECT_INT(device.ops->tick_finish(rig.session, &why), 0);
    device.ops->map_drop(rig.session, GROUND_MAP);
    device.ops->map_drop(rig.session, GROUND_MAP); /* which is not there */
    device.ops->stats(rig.session, &stats);
    EXPECT_INT(stats.map_bytes, 0);
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    rig_close(&rig);
}

/* ---- what goes wrong ---- */

static void bad_numbers_are_counted(void)
{
    struct rig rig;
    struct rollout rollout;
    rig_open(&rig, 1, false);
    begin(&rig, &rollout, 5);
    load_slot(&rig, &rollout, 0);
    device.ops->slots(rig.session)[0].cond[60] = INFINITY;
    run_tick(&rig);
    EXPECT_INT(device.ops->counts(rig.session)->not_finite, FRAME_BYTES);
    for (uint32_t i = 0; i < FRAME_BYTES; i++) {
        EXPECT_INT(device.ops->frame(rig.session, 0)[i], 128);
    }
    rig_close(&rig);
}

static void bad_requests_are_refused(void)
{
    struct rig rig;
    struct rollout rollout;
    struct device_text why = {""};
    struct device_session *session = NULL;
    struct device_options options = {.slot_count = 0, .page_count = 1};
    EXPECT_INT(device.ops->open(&description.description, &options, &session, &why),
               DEVICE_FAULT_INPUT);
    options = (struct device_options){.device = 77, .slot_count = 1, .page_count = 1};
    EXPECT_INT(device.ops->open(&description.description, &options, &session, &why),
               DEVICE_FAULT_INPUT);
    EXPECT(session == NULL && why.text[0] != '\0');

    rig_open(&rig, 1, true);
    begin(&rig, &rollout, 5);
    EXPECT_INT(device.ops->tick_finish(rig.session, &why), DEVICE_FAULT_INPUT);
    EXPECT_INT(device.ops->page_make(rig.session, PAGES, expected[0], &why), DEVICE_FAULT_INPUT);
    load_slot(&rig, &rollout, 0);
    struct device_slot *slot = device.ops->slots(rig.session);
    const struct device_slot good = *slot;
    slot->write_page = slot->page[0];
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    *slot = good;
    slot->page[0] = PAGES;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    *slot = good;
    slot->page_count = model->config.window + 1;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    *slot = good;
    slot->skipped = model->config.steps; /* the model moves the agents: nothing can be drawn */
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    EXPECT_CONTAINS(why.text, "expected at most 1 steps to be left out, of the sampler's 2");
    rig_close(&rig);
    device.ops->close(NULL);
}

/* Pages of slots that run side by side: nobody writes or reads what another one writes. */
static void pages_of_other_slots_are_refused(void)
{
    struct rig rig;
    struct rollout rollout[SLOTS];
    struct device_text why = {""};
    rig_open(&rig, SLOTS, true);
    struct device_slot *slots = device.ops->slots(rig.session);
    for (uint32_t i = 0; i < SLOTS; i++) {
        begin(&rig, &rollout[i], 5 + i);
        load_slot(&rig, &rollout[i], i);
    }
    const struct device_slot good = slots[2];
    slots[2].write_page = slots[0].write_page;
    EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
    EXPECT_CONTAINS(why.text, "slot 2: ");
    EXPECT_CONTAINS(why.text, "writes page");
    slots[2] = good;
    for (uint32_t writer = 0; writer < SLOTS; writer++) {
        const uint32_t reader = (writer + 1) % SLOTS;
        const uint32_t kept = slots[reader].page[0];
        char name[16];
        slots[reader].page[0] = slots[writer].write_page;
        snprintf(name, sizeof name, "slot %u: ", reader);
        EXPECT_INT(device.ops->tick_start(rig.session, &why), DEVICE_FAULT_INPUT);
        EXPECT_CONTAINS(why.text, name);
        EXPECT_CONTAINS(why.text, "reads page");
        slots[reader].page[0] = kept;
    }
    /* A past that is shared is a fork's; a slot that rests neither writes nor reads. */
    slots[1].page[0] = slots[0].page[0];
    slots[2].active = 0;
    slots[2].write_page = slots[0].page[0];
    run_tick(&rig);
    slots[2].write_page = UINT32_MAX;
    for (uint32_t i = 0; i < 2; i++) {
        advance(&rollout[i], &slots[i]);
        load_slot(&rig, &rollout[i], i);
    }
    run_tick(&rig);
    rig_close(&rig);
}

/* Two records of a call name the same view. */
static void views_of_other_records_are_refused(void)
{
    struct rig rig;
    struct rollout rollout[2];
    struct device_text why = {""};
    uint64_t digests[2];
    rig_open(&rig, 2, true);
    EXPECT_INT(device.ops->views_open(rig.session, 2, 1, 0, &why), DEVICE_OK);
    struct device_view *records = device.ops->views(rig.session);
    for (uint32_t i = 0; i < 2; i++) {
        begin(&rig, &rollout[i], 5 + i);
        records[i] = (struct device_view){
            .view = 1, .page = rollout[i].page[0], .bev = DEVICE_VIEW_CLEAR, .map = DEVICE_NO_MAP};
    }
    EXPECT_INT(device.ops->views_draw(rig.session, 2, digests, &why), DEVICE_FAULT_INPUT);
    EXPECT_CONTAINS(why.text, "record 1: ");
    records[0].view = 0;
    EXPECT_INT(device.ops->views_draw(rig.session, 2, digests, &why), DEVICE_OK);
    EXPECT_INT(device.ops->views_draw(rig.session, 2, digests, &why), DEVICE_OK);
    rig_close(&rig);
}

/* ---- memory that is not there ---- */

/* The emulator's; on a GPU NULL: there only what is too large fails. */
static struct {
    void (*fail_allocations)(uint64_t after, uint64_t count);
    int (*keeps_error)(void);
    void (*leave_error)(void);
} simt;

static void find_controls(void)
{
    void *module = dlopen(getenv("SWERVE_CUDA_MODULE"), RTLD_NOW | RTLD_NOLOAD);
    EXPECT(module != NULL);
    *(void **)&simt.fail_allocations = dlsym(module, "simt_fail_allocations");
    *(void **)&simt.keeps_error = dlsym(module, "simt_keeps_error");
    *(void **)&simt.leave_error = dlsym(module, "simt_leave_error");
    EXPECT(!emulated() ||
           (simt.fail_allocations != NULL && simt.keeps_error != NULL && simt.leave_error != NULL));
}

/* Nobody is told again of what failed: neither who asks the runtime next, such as a planner on the
 * device, nor the session, whose next launches are checked. */
static void expect_untouched(struct rig *rig, const char *what)
{
    static const uint8_t frame[FRAME_BYTES];
    struct device_text why = {""};
    if (simt.keeps_error != NULL && simt.keeps_error() != 0) {
        TEST_FAIL("%s: the runtime still keeps its error", what);
    }
    if (device.ops->page_make(rig->session, PAGES - 1, frame, &why) != DEVICE_OK) {
        TEST_FAIL("%s: the session beside it is lost: %s", what, why.text);
    }
}

static int open_second(struct rig *rig, struct device_text *why)
{
    const struct device_options options = {
        .slot_count = 2, .page_count = PAGES, .eager = 1, .reference = emulated()};
    struct device_session *second = NULL;
    int fault = device.ops->open(&description.description, &options, &second, why);
    (void)rig;
    EXPECT((second != NULL) == (fault == DEVICE_OK));
    device.ops->close(second);
    return fault;
}

static int make_another_map(struct rig *rig, struct device_text *why)
{
    int fault = device.ops->map_make(rig->session, 0, &ground.prepared->layers->map, why);
    device.ops->map_drop(rig->session, 0);
    return fault;
}

static int open_views(struct rig *rig, struct device_text *why)
{
    return device.ops->views_open(rig->session, 2, 1, 1, why);
}

static int time_bus(struct rig *rig, struct device_text *why)
{
    double rate;
    return device.ops->bus_rate(rig->session, 1, &rate, why);
}

/* Who cannot try wgmma does not say that the device has none. */
static int describe_device(struct rig *rig, struct device_text *why)
{
    struct device_info info = {.wgmma = 7};
    (void)rig;
    int fault = device.ops->describe(0, &info, why);
    EXPECT(fault != DEVICE_OK ? info.wgmma == 7
                              : info.wgmma == (info.major == 9 && info.minor == 0 ? 1u : 0u));
    return fault;
}

static int allocate_on_host(struct rig *rig, struct device_text *why)
{
    void *memory = device.ops->host_alloc(4096);
    (void)rig;
    (void)why;
    device.ops->host_free(memory);
    return memory != NULL ? DEVICE_OK : DEVICE_FAULT_MEMORY;
}

/* Calls that allocate, each with its first allocation failing, its second .. until none fails. */
static void fail_each_allocation(struct rig *rig)
{
    static const struct {
        const char *name;
        int (*run)(struct rig *rig, struct device_text *why);
        uint64_t allocations; /* at least */
    } calls[] = {
        {"a second session", open_second, 10},
        {"a map", make_another_map, 1},
        {"views", open_views, 6},
        {"timing the bus", time_bus, 2},
        {"describing the device", describe_device, 6},
        {"pinned memory", allocate_on_host, 1},
    };
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        uint64_t failed = 0;
        int fault = DEVICE_FAULT_MEMORY;
        while (fault != DEVICE_OK) {
            struct device_text why = {""};
            simt.fail_allocations(failed, 1);
            fault = calls[i].run(rig, &why);
            simt.fail_allocations(0, 0);
            if (fault != DEVICE_OK && fault != DEVICE_FAULT_MEMORY) {
                TEST_FAIL("%s: %s", calls[i].name, why.text);
            }
            failed += fault != DEVICE_OK ? 1 : 0;
            expect_untouched(rig, calls[i].name);
        }
        if (failed < calls[i].allocations) {
            TEST_FAIL("%s: only %d allocations failed", calls[i].name, (int)failed);
        }
    }
}

static void wait_for_nobody(void *context)
{
    (void)context;
}

/* Work that is no session's, with all allocations failing from one on: the drives of the controls
 * challenge, and a world step at full scale, which goes on without trying wgmma. */
static void fail_work_of_others(struct rig *rig)
{
    static const uint32_t ends[1];
    static struct device_scale scale;
    struct device_text why = {""};
    struct device_rollouts rollouts = {.count = 1, .ends = ends};
    _Alignas(64) static uint8_t shared[4096];
    const struct device_ranks one = {
        .ranks = 1, .shared = shared, .shared_bytes = sizeof shared, .wait = wait_for_nobody};
    simt.fail_allocations(0, 1);
    EXPECT_INT(device.ops->rollouts_run(0, &rollouts, &why), DEVICE_FAULT_MEMORY);
    expect_untouched(rig, "drives");
    for (uint64_t after = 0; after < 4; after++) {
        simt.fail_allocations(after, UINT64_MAX);
        EXPECT(device.ops->scale_run(0, "student-3b", &one, &scale, &why) != DEVICE_OK);
        EXPECT_CONTAINS(why.text, "out of memory");
        simt.fail_allocations(0, 0);
        expect_untouched(rig, "a world step at full scale");
    }
}

/* A model, a map and numbers of slots that fit on no device. */
static void fail_for_want_of_memory(struct rig *rig)
{
    const struct device_options options = {
        .slot_count = 1, .page_count = 1u << 30, .eager = 1, .reference = emulated()};
    struct raster_map huge = ground.prepared->layers->map;
    struct device_session *second = NULL;
    struct device_text why = {""};
    huge.tile_count = 1u << 27; /* two terabytes */
    EXPECT_INT(device.ops->open(&description.description, &options, &second, &why),
               DEVICE_FAULT_MEMORY);
    expect_untouched(rig, "a session that does not fit");
    EXPECT_INT(device.ops->map_make(rig->session, 0, &huge, &why), DEVICE_FAULT_MEMORY);
    expect_untouched(rig, "a map that does not fit");
    const struct device_options elsewhere = {.device = 77, .slot_count = 1, .page_count = 1};
    EXPECT_INT(device.ops->open(&description.description, &elsewhere, &second, &why),
               DEVICE_FAULT_INPUT);
    expect_untouched(rig, "a device that is not there");
}

static void a_session_goes_on_beside_what_fails(void)
{
    static uint8_t undisturbed[TICKS + 1][FRAME_BYTES];
    struct rig rig;
    struct rollout rollout;
    find_controls();
    for (int disturbed = 0; disturbed < 2; disturbed++) {
        rig_open(&rig, 1, true);
        begin(&rig, &rollout, 5);
        for (uint32_t tick = 1; tick <= TICKS; tick++) {
            if (disturbed != 0 && simt.fail_allocations != NULL && tick == 1) {
                fail_each_allocation(&rig);
            } else if (disturbed != 0 && simt.fail_allocations != NULL && tick == 2) {
                fail_work_of_others(&rig);
            } else if (disturbed != 0) {
                fail_for_want_of_memory(&rig);
            }
            if (disturbed != 0 && simt.leave_error != NULL) {
                simt.leave_error(); /* a planner's own, of which it never asked */
            }
            step(&rig, &rollout, 0);
            if (disturbed == 0) {
                memcpy(undisturbed[tick], device.ops->frame(rig.session, 0), FRAME_BYTES);
            }
            EXPECT(memcmp(device.ops->frame(rig.session, 0), undisturbed[tick], FRAME_BYTES) == 0);
        }
        rig_close(&rig);
    }
}

static void modules_that_cannot_be_used_are_named(void)
{
    struct error error = {0};
    struct device found = {.index = 9};
    char path[4096];
    snprintf(path, sizeof path, "%s", getenv("SWERVE_CUDA_MODULE"));
    EXPECT_INT(device_choose("cuda:99", &found, &error), STATUS_DEVICE);
    EXPECT(strstr(error.text, "cuda:99") != NULL);
    EXPECT_INT(device_choose("gpu", &found, &error), STATUS_USAGE);
    EXPECT_INT(device_choose("cuda:1x", &found, &error), STATUS_USAGE);
    EXPECT_OK(device_choose("cpu", &found, &error), error);
    EXPECT(found.ops == NULL);
    setenv("SWERVE_CUDA_MODULE", "/nonexistent/swerve_cuda.so", 1);
    EXPECT_INT(device_choose("cuda:0", &found, &error), STATUS_DEVICE);
    EXPECT(strstr(error.text, "/nonexistent/swerve_cuda.so") != NULL);
    found.ops = device.ops;
    EXPECT_OK(device_choose("auto", &found, &error), error);
    EXPECT(found.ops == NULL);
    setenv("SWERVE_CUDA_MODULE", path, 1);
}

/* ---- ticks under every check, and on every capability ---- */

#define NAME_OF(major, minor, code, block, multiprocessor, threads, e4m3, wgmma) #major "." #minor,

/* The kernels that a GPU runs, by graph: a layer with joint and one with separate attention, a past
 * of one page and of two. */
static void ticks_of_fast_kernels_break_no_rule(void)
{
    static struct twin twin;
    struct rig rig;
    struct rollout rollout;
    rig_open_with(&rig, 1, false, false);
    begin(&rig, &rollout, 7);
    twin_begin(&twin, &rollout);
    for (uint32_t tick = 1; tick <= 2; tick++) {
        twin_step(&twin, &rollout, tick, NULL);
        step(&rig, &rollout, 0);
        expect_near(device.ops->frame(rig.session, 0), twin.frame[tick]);
        twin_take(&twin, tick, device.ops->frame(rig.session, 0));
    }
    twin_end(&twin);
    rig_close(&rig);
}

/* Sessions on each capability: they open, which runs a tick and captures it, and a rollout's frames
 * have the same bytes on all. On a GPU there is the one. */
static void every_capability_ticks(void)
{
    static const char *const capability[] = {GPU_CAPABILITIES(NAME_OF)};
    uint8_t *first = calloc(1, FRAME_BYTES);
    struct rollout rollout;
    struct rig rig;
    EXPECT(first != NULL);
    for (uint32_t i = 0; i < (emulated() ? COUNT_OF(capability) : 1); i++) {
        struct device_info info;
        struct device_text why = {""};
        char found[32];
        setenv("SIMT_CAPABILITY", capability[i], 1);
        rig_open_with(&rig, 1, false, false);
        EXPECT_INT(device.ops->describe(0, &info, &why), DEVICE_OK);
        snprintf(found, sizeof found, "%u.%u", info.major, info.minor);
        EXPECT(!emulated() || strcmp(found, capability[i]) == 0);
        EXPECT(!emulated() || info.wgmma == (strcmp(found, "9.0") == 0 ? 1u : 0u));
        begin(&rig, &rollout, 7);
        step(&rig, &rollout, 0);
        if (i == 0) {
            memcpy(first, device.ops->frame(rig.session, 0), FRAME_BYTES);
        }
        EXPECT(memcmp(first, device.ops->frame(rig.session, 0), FRAME_BYTES) == 0);
        rig_close(&rig);
    }
    free(first);
    unsetenv("SIMT_CAPABILITY");
}

static void a_tick_breaks_no_rule(void)
{
    static struct twin twin;
    struct rig rig;
    struct rollout rollout;
    rig_open(&rig, 1, true);
    make_map(rig.session);
    begin(&rig, &rollout, 6); /* conditioning agents */
    twin_begin(&twin, &rollout);
    load_slot(&rig, &rollout, 0);
    describe(rig.session, 0, 0);
    run_tick(&rig);
    twin_step(&twin, &rollout, 1, device.ops->slots(rig.session));
    expect_near(device.ops->frame(rig.session, 0), twin.frame[1]);
    twin_end(&twin);
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    struct error error = {0};
    if (argc > 1) {
        setenv("SWERVE_CUDA_MODULE", argv[1], 1);
    }
    if (device_choose("cuda:0", &device, &error) != STATUS_OK) {
        printf("1..0 # SKIP %s\n", error.text);
        return 0;
    }
    const char *which = argc > 2 ? argv[2] : "";
    bool checked = strcmp(which, "checked") == 0;
    bool fast = strcmp(which, "fast") == 0;
    bool failures = strcmp(which, "failures") == 0;
    create_ground();
    create_model(checked || failures ? 1 : 2, checked || fast || failures ? 1 : 2);
    int status =
        checked ? TEST_RUN(TEST(a_tick_breaks_no_rule))
        : fast  ? TEST_RUN(TEST(ticks_of_fast_kernels_break_no_rule))
        : failures
            ? TEST_RUN(TEST(a_session_goes_on_beside_what_fails),
                       TEST(pages_of_other_slots_are_refused),
                       TEST(views_of_other_records_are_refused))
            : TEST_RUN(TEST(device_agrees_with_the_cpu), TEST(other_kernels_agree_too),
                       TEST(pages_of_e4m3_have_the_bytes_of_the_cpu), TEST(ticks_leave_steps_out),
                       TEST(bits_do_not_depend_on_company_slot_or_graph),
                       TEST(bits_survive_spills_and_forks), TEST(pages_move_together),
                       TEST(pages_far_apart_move_one_by_one), TEST(frames_come_down_when_asked_for),
                       TEST(every_capability_ticks), TEST(drawn_layouts_are_those_that_are_given),
                       TEST(bad_draw_lists_are_refused), TEST(bad_numbers_are_counted),
                       TEST(bad_requests_are_refused), TEST(pages_of_other_slots_are_refused),
                       TEST(views_of_other_records_are_refused),
                       TEST(a_session_goes_on_beside_what_fails),
                       TEST(modules_that_cannot_be_used_are_named));
    model_close(model);
    prepared_unref(ground.prepared);
    arena_finish(&ground.arena);
    return status;
}
