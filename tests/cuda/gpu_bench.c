/*
 * Conduct of a device with a shipped model: whether it drives as the CPU does, whether its bits
 * depend on the batch, and how fast it is. scripts/gpu_check runs it on a machine with a GPU.
 *
 * Each line on stdout is one JSON object: {"name", "value", "unit"} for a figure, {"check", "ok",
 * "text"} for a check. Exit status 1 when a check fails. Rates are medians of repeats; a figure
 * that is a ratio has its baseline measured in the same run.
 *
 *   gpu_bench MODULE device                             only whether there is one
 *   gpu_bench MODULE MODEL.safetensors [quick]          quick: few ticks, small batches, plain ops
 *   gpu_bench MODULE MODEL.safetensors scale CONFIG N   a world step at full scale, shared by N
 *                                                       processes on the first N devices
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "engine/bench/bench_plan.h"
#include "engine/bench/scale_ranks.h"
#include "engine/learned/device.h"
#include "engine/learned/model_internal.h"
#include "engine/sensors/layout.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/raster_layers.h"
#include "engine/worlds/world.h"
#include "kernels/cpu.h"
#include "tests/engine/maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REPEATS_MAX = 5,
    BRANCHES_MAX = 16,
    PAST_TICKS = 12,
    AGENTS = 4,
    SPILL_PAGES = 64,
    RANKS_LIMIT_MS = 100000
};

static struct device device;
static struct model *model;
static struct model_device description;
static struct arena arena;
static struct scenario scenario;
static struct prepared *prepared;
static bool failed;
static bool quick; /* small numbers and plain kernels: a rehearsal */
/* Of layouts: what is not drawn on the device. */
static uint32_t given;
static uint32_t repeats = REPEATS_MAX;
static uint32_t branches = BRANCHES_MAX;

static void figure(const char *name, double value, const char *unit)
{
    printf("{\"name\": \"%s\", \"value\": %.15g, \"unit\": \"%s\"}\n", name, value, unit);
    fflush(stdout);
}

static void check(const char *name, bool good, const char *text)
{
    char plain[512];
    snprintf(plain, sizeof plain, "%s", text);
    for (char *c = plain; *c != '\0'; c++) { /* sentences of libraries may quote */
        *c = *c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? '\'' : *c;
    }
    printf("{\"check\": \"%s\", \"ok\": %s, \"text\": \"%s\"}\n", name, good ? "true" : "false",
           plain);
    fflush(stdout);
    failed |= !good;
}

static double now_s(void)
{
    return (double)clock_now_ns(clock_system()) * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, by_size);
    return values[count / 2];
}

/* The program is a measurement: what cannot be done ends it. */
static void must(int fault, const struct device_text *why)
{
    if (fault != DEVICE_OK) {
        check("device", false, why->text);
        exit(1);
    }
}

/* ---- worlds: the shipped model on a road ---- */

static void create_prepared(void)
{
    struct error error;
    arena_init(&arena, 1 << 22);
    maps_motorway(&arena, &scenario.map, 2, 600);
    maps_scenario(&arena, &scenario, (struct pose){50, 3.5, 0.02}, 18, 1, AGENTS);
    maps_agent(&scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){75, 3.5, 0}, 12);
    maps_agent(&scenario, 1, AGENT_TRUCK, BEHAVIOUR_IDM, (struct pose){60, 0, 0}, 14);
    maps_agent(&scenario, 2, AGENT_PEDESTRIAN, BEHAVIOUR_STATIC, (struct pose){95, 6, 1.0}, 0);
    maps_agent(&scenario, 3, AGENT_OBJECT, BEHAVIOUR_STATIC, (struct pose){120, 0, 0}, 0);
    CHECK(prepared_create(&scenario, &prepared, &error) == STATUS_OK);
}

static struct world *open_on(const struct device *on, uint32_t slots)
{
    struct world *world = NULL;
    struct error error;
    const struct world_config config = {
        .slot_count = slots, .model = model, .device = on, .thread_count = 8};
    if (world_student_ops.open(&config, &world, &error) != STATUS_OK) {
        check("world", false, error.text);
        exit(1);
    }
    return world;
}

static void reset(struct world *world, uint32_t slot, uint64_t seed)
{
    struct error error;
    CHECK(world_student_ops.slot_reset(world, slot, prepared, seed, &error) == STATUS_OK);
}

static void observe(const struct world *world, uint32_t slot, uint8_t *pictures)
{
    struct observation_buffers buffers = {.bev = pictures};
    for (size_t c = 0; c < CAMERA_COUNT; c++) {
        buffers.camera[c] = pictures + BEV_BYTES + c * CAMERA_BYTES;
    }
    world_student_ops.slot_observe(world, slot, &buffers);
}

enum { PICTURE_BYTES = BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES };

/* Closed loop on both: each goes on from its own frames. */
static void measure_agreement(uint32_t ticks)
{
    static uint8_t pictures[2][PICTURE_BYTES];
    struct world *worlds[2] = {open_on(NULL, 1), open_on(&device, 1)};
    const uint8_t active[1] = {1};
    double worst = 0.0;
    double sum = 0.0;
    bool finite = true;
    reset(worlds[0], 0, 7);
    reset(worlds[1], 0, 7);
    for (uint32_t tick = 0; tick < ticks; tick++) {
        const struct action action = {rng_uniform(7, RNG_STREAM_TEST, tick, 1) - 0.5, 0.0};
        double difference = 0.0;
        for (int i = 0; i < 2; i++) {
            world_student_ops.step(worlds[i], &action, active);
            observe(worlds[i], 0, pictures[i]);
        }
        for (uint32_t i = 0; i < PICTURE_BYTES; i++) {
            difference += abs(pictures[0][i] - pictures[1][i]) / (double)PICTURE_BYTES;
        }
        finite &= world_student_ops.slot_frame_stats(worlds[1], 0)->not_finite == 0;
        worst = difference > worst ? difference : worst;
        sum += difference;
    }
    char text[128];
    snprintf(text, sizeof text, "mean difference of a byte %.3f, worst tick %.3f, of 255, %u ticks",
             sum / ticks, worst, ticks);
    check("trajectory agrees with the CPU", finite && worst < 4.0, text);
    figure("trajectory, mean difference of a byte", sum / ticks, "of 255");
    figure("trajectory, the worst tick's", worst, "of 255");
    world_student_ops.close(worlds[0]);
    world_student_ops.close(worlds[1]);
}

static double step_s(struct world *world, const uint8_t *active)
{
    const struct action actions[BRANCHES_MAX + 1] = {0};
    double start = now_s();
    world_student_ops.step(world, actions, active);
    return now_s() - start;
}

static uint32_t past_ticks(void)
{
    return quick ? model->config.window : PAST_TICKS;
}

/* Cost of rollouts from their beginning to the first tick in which they are all under way. */
struct fanout {
    double start_s, tick_s;
    uint64_t pages;
};

/* One rollout drives for a while, then branches fork off it. */
static struct fanout run_branches(double *fork_s)
{
    struct world *world = open_on(&device, branches + 1);
    uint8_t active[BRANCHES_MAX + 1] = {1};
    struct world_cost cost;
    struct fanout result;
    double start = now_s();
    reset(world, 0, 7);
    for (uint32_t tick = 0; tick < past_ticks(); tick++) {
        step_s(world, active);
    }
    double forked = now_s();
    for (uint32_t i = 1; i <= branches; i++) {
        world_student_ops.slot_fork(world, 0, i);
    }
    *fork_s = (now_s() - forked) / branches;
    result.start_s = now_s() - start;
    memset(active, 1, sizeof active);
    result.tick_s = step_s(world, active);
    world_student_ops.cost(world, &cost);
    result.pages = cost.pages_peak;
    figure("bytes of a page", (double)cost.page_bytes, "bytes");
    world_student_ops.close(world);
    return result;
}

/* As many rollouts that drive the same way each on its own. */
static struct fanout run_independent(void)
{
    struct world *world = open_on(&device, branches + 1);
    uint8_t active[BRANCHES_MAX + 1];
    struct world_cost cost;
    struct fanout result;
    memset(active, 1, sizeof active);
    double start = now_s();
    for (uint32_t i = 0; i <= branches; i++) {
        reset(world, i, 7 + i);
    }
    for (uint32_t tick = 0; tick < past_ticks(); tick++) {
        step_s(world, active);
    }
    result.start_s = now_s() - start;
    result.tick_s = step_s(world, active);
    world_student_ops.cost(world, &cost);
    result.pages = cost.pages_peak;
    world_student_ops.close(world);
    return result;
}

/* Branches of one past against independent rollouts: time and memory of both. */
static void measure_fanout(void)
{
    double fork_s = 0.0;
    struct fanout shared = run_branches(&fork_s);
    struct fanout alone = run_independent();
    double shared_s = shared.start_s + shared.tick_s;
    double alone_s = alone.start_s + alone.tick_s;
    figure("branches", branches, "");
    figure("frames before the fork", past_ticks(), "");
    figure("fork", fork_s * 1e6, "us");
    figure("branches: past, forks and a tick", shared_s * 1e3, "ms");
    figure("independent rollouts: pasts and a tick", alone_s * 1e3, "ms");
    figure("branches, time of independent rollouts over theirs", alone_s / shared_s, "ratio");
    figure("branches: pages", (double)shared.pages, "pages");
    figure("independent rollouts: pages", (double)alone.pages, "pages");
    figure("branches, memory of independent rollouts over theirs",
           (double)alone.pages / (double)shared.pages, "ratio");
    check("branches share their past", shared.pages <= 2 * (branches + 2) + model->config.window,
          "");
}

/* ---- sessions: the device alone ---- */

static struct device_session *open_session(uint32_t slots, bool eager, uint32_t pages)
{
    struct device_session *session = NULL;
    struct device_text why = {""};
    const struct device_options options = {.slot_count = slots,
                                           .page_count = pages,
                                           .eager = eager,
                                           .reference = quick && model->config.reach == 0,
                                           .device = device.index,
                                           .wgmma = device.wgmma};
    must(device.ops->open(&description.description, &options, &session, &why), &why);
    must(device.ops->map_make(session, 0, &prepared->layers->map, &why), &why);
    return session;
}

/* Every slot gets a full memory of its own pages and made-up inputs; frames come down or not. */
static void fill_slots(struct device_session *session, uint32_t slots, uint32_t tick, bool deliver)
{
    uint32_t window = model->config.window;
    struct device_slot *records = device.ops->slots(session);
    for (uint32_t i = 0; i < slots; i++) {
        struct device_slot *slot = &records[i];
        *slot = (struct device_slot){
            .seed = i + 1,
            .ego = {6.0, -3.0, 0.3},
            .active = 1,
            .tick = tick,
            .window = {-3, -6},
            .page_count = window,
            .write_page = i * (window + 1) + tick % (window + 1),
            .deliver = deliver,
            .given = given,
        };
        for (uint32_t p = 0; p < window; p++) {
            slot->page[p] = i * (window + 1) + (tick + window - p) % (window + 1);
            slot->page_window[p][0] = -3;
            slot->page_window[p][1] = -6;
        }
        for (uint32_t c = 0; c < DEVICE_COND; c++) {
            slot->cond[c] = (float)((c * 7 + i) % 11 / 11.0);
        }
    }
}

/* The layout at the scenario's start, where all slots' window is. */
static void describe(struct device_session *session, uint32_t slot)
{
    static struct scene scene;
    const struct anchor anchor = anchor_make(scenario.ego.pose);
    const struct window window = {-3, -6};
    scene.agent_count = scenario.agent_count;
    scene.ego.pose = scenario.ego.pose;
    scene.conditions = scenario.conditions;
    for (uint32_t i = 0; i < scenario.agent_count; i++) {
        scene.agents[i] = (struct agent_state){.pose = scenario.agents[i].pose, .present = true};
    }
    struct draw_list *draw_list = device.ops->draw_list(session, slot);
    CHECK(layout_describe(prepared, &scene, &anchor, window, CONDITIONING_AGENTS, 0, draw_list));
    CHECK(layout_describe_cameras(prepared, &scene, CONDITIONING_AGENTS, draw_list));
}

static void fill_inputs(struct device_session *session, uint32_t slots)
{
    static uint8_t frame[FRAME_BYTES];
    struct device_text why = {""};
    uint32_t window = model->config.window;
    for (uint32_t i = 0; i < slots; i++) {
        uint8_t *layout = device.ops->layout(session, i);
        for (uint32_t k = 0; k < FRAME_BYTES; k++) {
            layout[k] = (uint8_t)((k / 7 * 2654435761u + i * 40503u) >> 24);
        }
        describe(session, i);
        for (uint32_t p = 0; p <= window; p++) {
            for (uint32_t k = 0; k < FRAME_BYTES; k += 61) {
                frame[k] = (uint8_t)(k + p * 31 + i);
            }
            must(device.ops->page_make(session, i * (window + 1) + p, frame, &why), &why);
        }
    }
}

static void run_tick(struct device_session *session)
{
    struct device_text why = {""};
    must(device.ops->tick_start(session, &why), &why);
    must(device.ops->tick_finish(session, &why), &why);
}

/* Ticks whose frames nobody looks at: only counts come down. */
static void measure_unseen(struct device_session *session, uint32_t slots, uint32_t ticks)
{
    char name[96];
    struct device_stats before;
    struct device_stats after;
    device.ops->stats(session, &before);
    double start = now_s();
    for (uint32_t t = 0; t < ticks; t++) {
        fill_slots(session, slots, t, false);
        run_tick(session);
    }
    double tick_s = (now_s() - start) / ticks;
    device.ops->stats(session, &after);
    const char *how = given == DEVICE_GIVEN_ALL ? ", layouts given" : "";
    snprintf(name, sizeof name, "tick, graph, frames unseen%s, %u slots", how, slots);
    figure(name, tick_s * 1e3, "ms");
    snprintf(name, sizeof name, "bytes up a slot-tick%s, %u slots", how, slots);
    figure(name, (double)(after.up_bytes - before.up_bytes) / slots / ticks, "bytes");
    uint64_t bytes = (after.down_bytes - before.down_bytes) / ((uint64_t)slots * ticks);
    check("only counts come down unseen", bytes == sizeof(struct device_counts), "");
}

/* Work that a planner on the device waits for before it is asked: grid and images of all slots. */
static void measure_observations(struct device_session *session, uint32_t slots, uint32_t looks)
{
    char name[64];
    struct device_text why = {""};
    uint64_t *digests = calloc(slots, sizeof *digests);
    CHECK(digests != NULL);
    must(device.ops->views_open(session, slots, 1, 1, &why), &why);
    struct device_view *views = device.ops->views(session);
    for (uint32_t i = 0; i < slots; i++) {
        views[i] = (struct device_view){
            .view = i,
            .page = i * (model->config.window + 1),
            .conditioning = CONDITIONING_NONE, /* all four planes are turned */
            .bev = DEVICE_VIEW_DRAW,
            .camera = {DEVICE_VIEW_DRAW, DEVICE_VIEW_DRAW, DEVICE_VIEW_DRAW},
            .row = 60 << 16,
            .col = 50 << 16,
            .row_per_row = 63000,
            .col_per_row = 18000,
            .row_per_col = -18000,
            .col_per_col = 63000,
            .map = DEVICE_NO_MAP,
        };
    }
    must(device.ops->views_draw(session, slots, digests, &why), &why);
    double start = now_s();
    for (uint32_t i = 0; i < looks; i++) {
        must(device.ops->views_draw(session, slots, digests, &why), &why);
    }
    snprintf(name, sizeof name, "look of a planner on the device, %u slots", slots);
    figure(name, (now_s() - start) * 1e6 / looks, "us");
    free(digests);
}

/* Seconds per tick of all slots; host_s: of tick_start. */
static double time_ticks(uint32_t slots, bool eager, double *host_s)
{
    uint32_t pages = slots * (model->config.window + 1);
    struct device_session *session = open_session(slots, eager, pages);
    uint32_t ticks = quick ? 1 : slots >= 1024 ? 4 : 20;
    double times[REPEATS_MAX];
    struct device_stats before;
    struct device_stats after;
    fill_inputs(session, slots);
    fill_slots(session, slots, 0, true);
    run_tick(session);
    device.ops->stats(session, &before);
    for (uint32_t r = 0; r < repeats; r++) {
        double start = now_s();
        for (uint32_t t = 0; t < ticks; t++) {
            fill_slots(session, slots, 1 + r * ticks + t, true);
            run_tick(session);
        }
        times[r] = (now_s() - start) / ticks;
    }
    device.ops->stats(session, &after);
    *host_s =
        (double)(after.host_ns - before.host_ns) * 1e-9 / (double)(after.ticks - before.ticks);
    if (!eager) {
        char name[64];
        snprintf(name, sizeof name, "device memory, %u slots", slots);
        figure(name, (double)(after.weight_bytes + after.workspace_bytes + after.arena_bytes) / 1e9,
               "GB");
        check("one capture", after.captures == 1, "");
        measure_unseen(session, slots, ticks);
        given = DEVICE_GIVEN_ALL;
        measure_unseen(session, slots, ticks);
        given = 0;
        measure_observations(session, slots, ticks);
    }
    device.ops->close(session);
    return median(times, repeats);
}

static void measure_rates(void)
{
    const uint32_t counts[] = {1, quick ? 2 : 64, 1024};
    double flop = model_tick_flop(model, 0);
    for (size_t i = 0; i < (quick ? 2 : COUNT_OF(counts)); i++) {
        uint32_t slots = counts[i];
        char name[96];
        double host_graph;
        double host_eager;
        double graph = time_ticks(slots, false, &host_graph);
        double eager = time_ticks(slots, true, &host_eager);
        snprintf(name, sizeof name, "slot-ticks per second, %u slots", slots);
        figure(name, slots / graph, "1/s");
        snprintf(name, sizeof name, "rate of arithmetic, %u slots", slots);
        figure(name, slots * flop / graph * 1e-12, "TFLOP/s");
        snprintf(name, sizeof name, "tick, graph, %u slots", slots);
        figure(name, graph * 1e3, "ms");
        snprintf(name, sizeof name, "tick, kernel by kernel, %u slots", slots);
        figure(name, eager * 1e3, "ms");
        snprintf(name, sizeof name, "graph, time kernel by kernel over its, %u slots", slots);
        figure(name, eager / graph, "ratio");
        snprintf(name, sizeof name, "host time of a tick, graph, %u slots", slots);
        figure(name, host_graph * 1e6, "us");
        snprintf(name, sizeof name, "host time of a tick, kernel by kernel, %u slots", slots);
        figure(name, host_eager * 1e6, "us");
    }
}

/* The same slot record in sessions of 1, 3 and 64 slots, by graph and by launches. */
static void check_bits(void)
{
    static uint8_t expected[FRAME_BYTES];
    const uint32_t counts[] = {1, 1, 3, quick ? 2 : 64};
    uint32_t different = 0;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        uint32_t slots = counts[i];
        struct device_session *session =
            open_session(slots, i == 1, slots * (model->config.window + 1));
        fill_inputs(session, slots);
        for (uint32_t tick = 0; tick < 3; tick++) {
            fill_slots(session, slots, tick, true);
            run_tick(session);
        }
        if (i == 0) {
            memcpy(expected, device.ops->frame(session, 0), FRAME_BYTES);
        } else {
            different += memcmp(expected, device.ops->frame(session, 0), FRAME_BYTES) != 0;
        }
        device.ops->close(session);
    }
    figure("determinism, runs whose bits differ", different, "");
    check("bits do not depend on slot count, company or graph", different == 0, "");
}

/* Bytes per second of pages whose buffers [frame, memory] lie behind each other: gathered, as a
 * session moves them, or each begun alone. */
static double move_pages(struct device_session *session, uint8_t *buffers, uint32_t pages,
                         bool back, bool alone)
{
    size_t bytes = FRAME_BYTES + device.ops->memory_bytes(session);
    struct device_text why = {""};
    double start = now_s();
    for (uint32_t i = 0; i < pages; i++) {
        uint8_t *frame = buffers + i * bytes;
        uint8_t *memory = frame + FRAME_BYTES;
        must(back ? device.ops->page_load(session, i, frame, memory, &why)
                  : device.ops->page_save(session, i, frame, memory, &why),
             &why);
        if (alone) {
            must(device.ops->page_start(session, &why), &why);
        }
    }
    must(device.ops->page_wait(session, &why), &why);
    return (double)(bytes * pages) / (now_s() - start);
}

static void measure_spill(void)
{
    uint32_t pages = quick ? 4 : SPILL_PAGES;
    struct device_session *session = open_session(1, true, pages + 1);
    size_t bytes = FRAME_BYTES + device.ops->memory_bytes(session);
    uint8_t *buffers = device.ops->host_alloc(bytes * pages);
    struct device_text why = {""};
    double rates[2][2][REPEATS_MAX]; /* back, alone */
    double bus[2];
    CHECK(buffers != NULL);
    memset(buffers, 1, bytes * pages); /* touched before it is timed */
    for (uint32_t i = 0; i < pages; i++) {
        must(device.ops->page_make(session, i, buffers, &why), &why);
    }
    for (uint32_t r = 0; r < repeats; r++) {
        for (int which = 0; which < 4; which++) {
            rates[which % 2][which / 2][r] =
                move_pages(session, buffers, pages, which % 2 == 1, which >= 2);
        }
    }
    for (int back = 0; back < 2; back++) {
        const char *way = back ? "host to device" : "device to host";
        char name[64];
        must(device.ops->bus_rate(session, back, &bus[back], &why), &why);
        double together = median(rates[back][0], repeats);
        double alone = median(rates[back][1], repeats);
        snprintf(name, sizeof name, "spill, %s", way);
        figure(name, together / 1e9, "GB/s");
        snprintf(name, sizeof name, "bus, %s", way);
        figure(name, bus[back] / 1e9, "GB/s");
        snprintf(name, sizeof name, "spill beside the bus, %s", back ? "up" : "down");
        figure(name, together / bus[back], "ratio");
        snprintf(name, sizeof name, "spill, pages together over one by one, %s",
                 back ? "up" : "down");
        figure(name, together / alone, "ratio");
    }
    device.ops->host_free(buffers);
    device.ops->close(session);
}

/* ---- windows, and products that are timed ---- */

enum { WINDOW_SLOTS = 8 };

/* Milliseconds of a tick of a random model of 864 tokens, with heads of 128 numbers in e4m3 or of
 * 32 in bf16, whose layers are joint or, reach not 0, have windows. */
static double time_random(enum model_type type, uint32_t reach, uint32_t past)
{
    struct error error = {0};
    struct model *shipped = model;
    const struct model_device shipped_description = description;
    const struct model_open_options options = {
        .precision = NN_BF16, .cpu_flags = cpu_flags_detect(), .device = true};
    struct model_config config = shipped->config;
    double host_s;
    config.patch = 4;
    config.layers = 2;
    config.window = 4;
    config.joint[0] = config.joint[1] = true;
    config.reach = reach;
    config.past = past;
    config.type = type;
    if (type == MODEL_E4M3) {
        config.width = 512;
        config.heads = 4;
        config.kv_heads = 2;
        config.head_dim = 128;
    }
    CHECK(model_random(&config, &options, 3, &model, &error) == STATUS_OK);
    CHECK(model_describe(model, &description, &error) == STATUS_OK);
    const double tick_s = time_ticks(quick ? 1 : WINDOW_SLOTS, true, &host_s);
    model_close(model);
    model = shipped;
    description = shipped_description;
    return tick_s * 1e3;
}

static void measure_windows(void)
{
    const double joint_ms = quick ? 0.0 : time_random(MODEL_BF16, 0, 0); /* no such reference */
    const double window_ms = time_random(MODEL_BF16, 3, 3);
    figure("tick of windows, reach 3, past 3", window_ms, "ms");
    if (joint_ms > 0.0) {
        figure("tick of joint layers over that of windows", joint_ms / window_ms, "ratio");
    }
}

/* Products of e4m3 and attention on a warpgroup's tensor cores, where the device has them that
 * agree, beside mma.sync. */
static void measure_wgmma(void)
{
    const bool there = device.wgmma;
    if (quick || !there) {
        return;
    }
    const double wgmma_ms = time_random(MODEL_E4M3, 0, 0);
    device.wgmma = false;
    figure("tick in e4m3 on wgmma", wgmma_ms, "ms");
    figure("tick in e4m3 on mma.sync over that on wgmma", time_random(MODEL_E4M3, 0, 0) / wgmma_ms,
           "ratio");
    device.wgmma = there;
}

/* Last: other sessions of this program go on with the choices that they began with. */
static void measure_products(void)
{
    struct device_tuning tuned;
    struct error error = {0};
    if (quick) { /* reference kernels have nothing to choose from */
        return;
    }
    enum status status = device_tune(&device, model, 64, &tuned, &error);
    check("products are timed", status == STATUS_OK, error.text);
    if (status != STATUS_OK) {
        return;
    }
    figure("products of a tick on our kernels, 64 slots", tuned.own_ms, "ms");
    figure("products of a tick as chosen, 64 slots", tuned.chosen_ms, "ms");
    figure("products, shapes that the library has", tuned.on_library, "");
    figure("products, shapes in another tile", tuned.on_tiles, "");
    check("products, library", true, tuned.library);
}

/* ---- full scale ---- */

static void print_scale(const char *config, const struct device_scale *s)
{
    char name[96];
    double all_ms;
    double all_to_all_ms = scale_ranks_all_to_all_ms(s, &all_ms);
    double flop = s->matmul_flop + s->attention_flop;
    snprintf(name, sizeof name, "%s, world step", config);
    figure(name, s->step_ms, "ms");
    figure("world step, launch by launch", s->eager_ms, "ms");
    figure("captured", s->captured, "");
    figure("arithmetic of a world step", flop * 1e-12, "TFLOP");
    figure("of it in fp8", s->matmul_fp8_flop * 1e-12, "TFLOP");
    figure("rate of a world step", s->step_ms > 0.0 ? flop / s->step_ms * 1e-9 : 0.0, "TFLOP/s");
    figure("one large product, bf16", s->peak_bf16_flops * 1e-12, "TFLOP/s");
    figure("one large product, fp8", s->peak_fp8_flops * 1e-12, "TFLOP/s");
    figure("memory traffic of a world step", s->moved_bytes / 1e9, "GB");
    figure("exchanged in a world step", s->all_to_all_bytes * 1e-9, "GB");
    figure("exchange in a world step", all_to_all_ms, "ms");
    figure("exchange, share of all launches", all_ms > 0.0 ? all_to_all_ms / all_ms : 0.0, "ratio");
    for (int i = 0; i < DEVICE_SCALE_KINDS_MAX; i++) {
        if (s->kind[i].launches > 0) {
            snprintf(name, sizeof name, "kind %s, %u launches", s->kind[i].name,
                     s->kind[i].launches);
            figure(name, s->kind[i].ms, "ms");
        }
    }
    figure("latents", (double)(s->latents_sum & UINT64_C(0xFFFFFFFFFFFF)), "sum of bits");
    check("exchange", true, s->all_to_all);
    check("full scale: graph and launches give the same bits", s->same_bits, "");
    check("full scale: every latent is finite", s->finite, "");
}

/* Plans of the GPU that is here, where there is one: a measured step is held against it. Of another
 * GPU only that it is planned at all. From the root of the sources. */
static void print_plan(const char *config, const struct device_scale *s)
{
    static struct bench_plan plan;
    struct error error = {0};
    char *table = NULL;
    size_t bytes;
    char text[512];
    char name[96];
    enum status status =
        file_read("kernels/cuda/machine_code.txt", 1 << 16, &table, &bytes, &error);
    THEN(status, bench_plan_make(NULL, config, 0, table, &plan, &error));
    snprintf(name, sizeof name, "%s: planned", config);
    check(name, status == STATUS_OK, error.text);
    free(table);
    device_describe(text, sizeof text);
    for (int i = 0; status == STATUS_OK && i < BENCH_PLAN_DEVICES; i++) {
        const struct bench_plan_device *gpu = &plan.devices[i];
        if (gpu->runs != 0 && strstr(text, gpu->name) != NULL) {
            snprintf(name, sizeof name, "%s, world step as planned", config);
            figure(name, gpu->step_s * 1e3, "ms");
            snprintf(name, sizeof name, "%s, world step over its plan", config);
            figure(name, s->step_ms / (gpu->step_s * 1e3), "ratio");
        }
    }
}

/* Before anything else of a device: its library does not survive the forks. */
static int run_scale(const char *config, const char *ranks)
{
    static struct device_scale scale;
    struct error error = {0};
    const struct scale_ranks_options options = {.device = "cuda:0",
                                                .config = config,
                                                .ranks = (uint32_t)strtoul(ranks, NULL, 10),
                                                .limit_ms = RANKS_LIMIT_MS};
    if (scale_ranks_run(&options, &scale, &error) != STATUS_OK) {
        check("full scale", false, error.text);
        return 1;
    }
    figure("ranks", options.ranks, "");
    print_scale(config, &scale);
    if (options.ranks == 1) {
        print_plan(config, &scale);
    }
    return failed;
}

int main(int argc, char **argv)
{
    struct error error = {0};
    const struct model_open_options options = {
        .precision = NN_BF16, .cpu_flags = cpu_flags_detect(), .device = true};
    if (argc < 3) {
        fprintf(stderr, "usage: gpu_bench MODULE device|MODEL.safetensors "
                        "[quick|scale CONFIG N]\n");
        return 2;
    }
    quick = argc > 3 && strcmp(argv[3], "quick") == 0;
    setenv("SWERVE_CUDA_MODULE", argv[1], 1);
    if (argc > 5 && strcmp(argv[3], "scale") == 0) {
        return run_scale(argv[4], argv[5]);
    }
    if (device_choose("cuda:0", &device, &error) != STATUS_OK) {
        check("start", false, error.text);
        return 1;
    }
    if (strcmp(argv[2], "device") == 0) {
        check("start", true, device.backend);
        return 0;
    }
    if (model_open(argv[2], &options, &model, &error) != STATUS_OK ||
        model_describe(model, &description, &error) != STATUS_OK) {
        check("start", false, error.text);
        return 1;
    }
    char text[512];
    device.reference = quick;
    repeats = quick ? 1 : REPEATS_MAX;
    branches = quick ? 2 : BRANCHES_MAX;
    device_describe(text, sizeof text);
    check("device", true, text);
    create_prepared();
    figure("floating-point operations of a tick", model_tick_flop(model, 0) * 1e-9, "GFLOP");
    measure_agreement(quick ? 2 : 50);
    check_bits();
    measure_rates();
    measure_fanout();
    measure_spill();
    measure_windows();
    measure_wgmma();
    measure_products();
    model_close(model);
    prepared_unref(prepared);
    arena_finish(&arena);
    return failed;
}
