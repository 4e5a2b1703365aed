/*
 * Goal: a learned world on a device drives as one on the CPU does, keeps its bits through company,
 * forks and spills, whoever draws its layouts, tells the frame statistics of its frames, brings
 * down what somebody looks at and nothing else, shows planners on the device the same bytes there,
 * says what the device reaches at the most, and says so when the device fails. Method: the emulated
 * module (argv[1]) with a small random model. The same rollout on both backends, then in several
 * ways on the device: everything it shows must have one digest. Tables of device functions stand
 * between world and module: one looks at every frame in its page, those of another fail.
 */
#include "base/check.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "engine/learned/device.h"
#include "engine/learned/frame_measure.h"
#include "engine/learned/model.h"
#include "engine/worlds/world.h"
#include "kernels/cpu.h"
#include "tests/cuda/digest.h"
#include "tests/cuda/folder.h"
#include "tests/engine/maps.h"
#include "tests/engine/small_model.h"
#include "tests/engine/spill_in_memory.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <unistd.h>

enum { TICKS = 4, SLOTS_MAX = 3, KEY = 3, FORK_TICK = 2, HOST_PAGES = 2 };

static char cache[64] = "/tmp/swerve-world-XXXXXX"; /* what is kept of devices */
static const struct world_ops *const ops = &world_student_ops;
static struct device device;
static struct model *model;
static struct arena arena;
static struct scenario scenario;
static struct prepared *prepared;

/* ---- the scene, the model, the spill ---- */

static void create_prepared(void)
{
    struct error error;
    arena_init(&arena, 1 << 22);
    maps_motorway(&arena, &scenario.map, 2, 400);
    maps_scenario(&arena, &scenario, (struct pose){50, 3.5, 0.05}, 18, 1, 2);
    maps_agent(&scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){75, 3.5, 0}, 12);
    maps_agent(&scenario, 1, AGENT_PEDESTRIAN, BEHAVIOUR_STATIC, (struct pose){90, 6, 1.0}, 0);
    CHECK(prepared_create(&scenario, &prepared, &error) == STATUS_OK);
}

/* ---- driving ---- */

static struct world *open_on(const struct device *on, uint32_t slots,
                             enum conditioning conditioning, size_t page_bytes_max,
                             size_t host_bytes_max, const struct spill_ops *spill)
{
    struct world *world = NULL;
    struct error error;
    const struct world_config config = {
        .slot_count = slots,
        .model = model,
        .conditioning = conditioning,
        .device = on,
        .thread_count = 2,
        .page_bytes_max = page_bytes_max,
        .host_bytes_max = host_bytes_max,
        .spill = spill,
    };
    EXPECT_OK(ops->open(&config, &world, &error), error);
    return world;
}

static void reset(struct world *world, uint32_t slot, uint64_t seed)
{
    struct error error;
    EXPECT_OK(ops->slot_reset(world, slot, prepared, seed, &error), error);
}

static struct action action_of(uint64_t seed, uint32_t tick)
{
    return (struct action){4.0 * rng_uniform(seed, RNG_STREAM_TEST, tick, 1) - 2.0,
                           0.1 * rng_uniform(seed, RNG_STREAM_TEST, tick, 2) - 0.05};
}

/* One tick of the slots in the mask; the action is that of the rollout's seed. */
static void step(struct world *world, uint32_t mask, const uint64_t seeds[SLOTS_MAX])
{
    struct action actions[SLOTS_MAX] = {0};
    uint8_t active[SLOTS_MAX] = {0};
    for (uint32_t i = 0; i < world->slot_count; i++) {
        active[i] = mask >> i & 1;
        if (active[i]) {
            actions[i] = action_of(seeds[i], ops->slot_scene(world, i)->tick);
        }
    }
    ops->step(world, actions, active);
}

struct view {
    uint8_t pictures[BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES];
    struct frame_stats frame_stats;
    struct ego_state ego;
};

static void look(const struct world *world, uint32_t slot, struct view *view)
{
    struct observation_buffers buffers = {.bev = view->pictures};
    for (size_t c = 0; c < CAMERA_COUNT; c++) {
        buffers.camera[c] = view->pictures + BEV_BYTES + c * CAMERA_BYTES;
    }
    ops->slot_observe(world, slot, &buffers);
    view->frame_stats = *ops->slot_frame_stats(world, slot);
    view->ego = ops->slot_scene(world, slot)->ego;
}

static struct sha256 hash;

static void record(const struct world *world, uint32_t slot)
{
    static struct view view;
    look(world, slot, &view);
    sha256_update(&hash, view.pictures, sizeof view.pictures);
    sha256_update(&hash, &view.ego, sizeof view.ego);
    sha256_update(&hash, &view.frame_stats.saturated_share,
                  sizeof view.frame_stats.saturated_share);
    sha256_update(&hash, &view.frame_stats.bev_change, sizeof view.frame_stats.bev_change);
    sha256_update(&hash, &view.frame_stats.camera_change, sizeof view.frame_stats.camera_change);
}

static void digest(char hex[SHA256_HEX_BYTES])
{
    uint8_t bytes[SHA256_BYTES];
    sha256_final(&hash, bytes);
    sha256_to_hex(bytes, hex);
}

/* ---- beside the CPU ---- */

static double mean_difference(const uint8_t *a, const uint8_t *b, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += abs(a[i] - b[i]);
    }
    return sum / (double)count;
}

static void both_backends_see_the_same(void)
{
    static struct view views[2];
    const uint64_t seeds[SLOTS_MAX] = {KEY, 8};
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT;
         conditioning += 2) { /* agents, none */
        struct world *worlds[2] = {
            open_on(NULL, 2, (enum conditioning)conditioning, 0, 0, NULL),
            open_on(&device, 2, (enum conditioning)conditioning, 0, 0, NULL)};
        for (uint32_t i = 0; i < 2; i++) {
            reset(worlds[i], 0, seeds[0]);
            reset(worlds[i], 1, seeds[1]);
        }
        for (uint32_t tick = 0; tick < 2; tick++) {
            for (uint32_t i = 0; i < 2; i++) {
                step(worlds[i], 3, seeds);
            }
            for (uint32_t slot = 0; slot < 2; slot++) {
                look(worlds[0], slot, &views[0]);
                look(worlds[1], slot, &views[1]);
                EXPECT(mean_difference(views[0].pictures, views[1].pictures,
                                       sizeof views[0].pictures) < 1.0);
                EXPECT(memcmp(&views[0].ego, &views[1].ego, sizeof views[0].ego) == 0);
                EXPECT_INT(views[1].frame_stats.not_finite, 0);
                EXPECT_NEAR(views[1].frame_stats.camera_change, views[0].frame_stats.camera_change,
                            0.01);
                EXPECT_NEAR(views[1].frame_stats.saturated_share,
                            views[0].frame_stats.saturated_share, 0.01);
            }
        }
        ops->close(worlds[0]);
        ops->close(worlds[1]);
    }
}

/* A tick by none of the sampler's steps beside one by all of them: drawn by both to the same bytes.
 */
static void ticks_are_drawn_by_both(void)
{
    static struct view views[2];
    const uint64_t seeds[SLOTS_MAX] = {KEY, 8};
    for (uint32_t i = 0; i < 2; i++) {
        struct world *world = open_on(i == 0 ? NULL : &device, 2, CONDITIONING_AGENTS, 0, 0, NULL);
        struct error error = {0};
        reset(world, 0, seeds[0]);
        reset(world, 1, seeds[1]);
        EXPECT_OK(ops->slot_skip(world, 0, model_config(model)->steps, &error), error);
        step(world, 3, seeds);
        look(world, 0, &views[i]);
        ops->close(world);
    }
    EXPECT(memcmp(views[0].pictures, views[1].pictures, sizeof views[0].pictures) == 0);
}

/* ---- bits ---- */

static struct view reference_views[TICKS + 1]; /* of KEY */

static const char *alone(uint64_t key)
{
    static char digests[2 * KEY][SHA256_HEX_BYTES];
    char *hex = digests[key];
    const uint64_t seeds[SLOTS_MAX] = {key};
    if (hex[0] == '\0') {
        struct world *world = open_on(&device, 1, CONDITIONING_AGENTS, 0, 0, NULL);
        sha256_init(&hash);
        reset(world, 0, key);
        record(world, 0);
        for (uint32_t tick = 0; tick < TICKS; tick++) {
            step(world, 1, seeds);
            record(world, 0);
            if (key == KEY) {
                look(world, 0, &reference_views[tick + 1]);
            }
        }
        digest(hex);
        ops->close(world);
    }
    return hex;
}

static const char *reference(void)
{
    return alone(KEY);
}

/* The rollout of reference() after a number of ticks, seen now. */
static void expect_view(const struct world *world, uint32_t slot, uint32_t tick)
{
    static struct view view;
    const struct view *expected = &reference_views[tick];
    look(world, slot, &view);
    EXPECT_INT(view.frame_stats.tick, tick);
    EXPECT(memcmp(view.pictures, expected->pictures, sizeof view.pictures) == 0);
    EXPECT(memcmp(&view.ego, &expected->ego, sizeof view.ego) == 0);
    EXPECT(view.frame_stats.camera_change == expected->frame_stats.camera_change);
    EXPECT(view.frame_stats.layout_iou == expected->frame_stats.layout_iou);
}

/* Slot 2 of 3; neighbours stand still, go, and are replaced. */
static void company_changes_nothing(void)
{
    char hex[SHA256_HEX_BYTES];
    uint64_t seeds[SLOTS_MAX] = {71, 72, KEY};
    struct world *world = open_on(&device, 3, CONDITIONING_AGENTS, 0, 0, NULL);
    sha256_init(&hash);
    reset(world, 0, seeds[0]);
    step(world, 1, seeds);
    reset(world, 2, KEY);
    record(world, 2);
    for (uint32_t tick = 0; tick < TICKS; tick++) {
        if (tick == 2) {
            ops->slot_release(world, 0);
            reset(world, 1, seeds[1]);
        }
        step(world, tick == 1 ? 5 : tick == 2 ? 6 : 4, seeds);
        record(world, 2);
    }
    digest(hex);
    EXPECT_TEXT(hex, reference());
    ops->close(world);
}

/* Parked while others need all of the memory, so that its pages leave the device; restored, forked,
 * and the branch goes on. `watched`: somebody looks at every tick, else after the fork alone and at
 * the end: then pages leave whose frames nobody has seen. */
static void spill_and_fork(bool watched)
{
    static struct spill_store store;
    const struct spill_ops spill = {&store, spill_store_write, spill_store_read, spill_store_drop,
                                    NULL};
    char hex[SHA256_HEX_BYTES];
    const char *expected = reference();
    struct world_cost cost;
    uint64_t seeds[SLOTS_MAX] = {KEY, 91};
    store = (struct spill_store){0};
    struct world *world = open_on(&device, 1, CONDITIONING_AGENTS, 0, 0, NULL);
    ops->cost(world, &cost);
    ops->close(world);
    /* As much as two slots with two pages each and two that are being written need. */
    world = open_on(&device, 2, CONDITIONING_AGENTS, 6 * cost.page_bytes, 0, &spill);
    void *state = malloc(ops->slot_state_bytes(world));
    EXPECT(state != NULL);
    sha256_init(&hash);
    reset(world, 0, KEY);
    if (watched) {
        record(world, 0);
    }
    for (uint32_t tick = 0; tick < FORK_TICK; tick++) {
        step(world, 1, seeds);
        if (watched) {
            record(world, 0);
        }
    }
    ops->slot_save(world, 0, state);
    ops->slot_release(world, 0);
    for (uint32_t i = 0; i < 2; i++) {
        seeds[i] = 90 + i;
        reset(world, i, seeds[i]);
    }
    for (uint32_t tick = 0; tick < 3; tick++) {
        step(world, 3, seeds);
    }
    EXPECT(store.writes >= 2);
    ops->slot_release(world, 0);
    ops->slot_release(world, 1);
    ops->slot_restore(world, 1, state);
    ops->slot_fork(world, 1, 0);
    EXPECT_INT(store.reads, store.writes);
    seeds[0] = KEY;
    seeds[1] = 55; /* the main line turns elsewhere */
    if (!watched) {
        expect_view(world, 0, FORK_TICK);
    }
    for (uint32_t tick = FORK_TICK; tick < TICKS; tick++) {
        step(world, 3, seeds);
        if (watched) {
            record(world, 0);
        }
    }
    digest(hex);
    if (watched) {
        EXPECT_TEXT(hex, expected);
    }
    expect_view(world, 0, TICKS);
    ops->close(world);
    free(state);
}

static void spills_and_forks_change_nothing(void)
{
    spill_and_fork(true);
}

static void frames_that_nobody_saw_spill_too(void)
{
    spill_and_fork(false);
}

/* ---- layouts ---- */

static int no_room_for_maps(struct device_session *session, uint32_t map,
                            const struct raster_map *source, struct device_text *why)
{
    (void)session, (void)map, (void)source;
    snprintf(why->text, sizeof why->text, "no room");
    return DEVICE_FAULT_MEMORY;
}

/* A prepared scenario of its own with more agents around ego than are described. */
static struct {
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
} crowd;

static void create_crowd(void)
{
    struct error error;
    arena_init(&crowd.arena, 1 << 22);
    maps_motorway(&crowd.arena, &crowd.scenario.map, 1, 300);
    maps_scenario(&crowd.arena, &crowd.scenario, (struct pose){50, 0, 0}, 9, 0, LIMIT_AGENTS);
    for (uint32_t i = 0; i < LIMIT_AGENTS; i++) {
        maps_agent(&crowd.scenario, i, AGENT_PEDESTRIAN, BEHAVIOUR_STATIC,
                   (struct pose){60.0 + i % 16 * 2.0, 5.0 + i / 16 * 2.0, 0.1 * i}, 0);
    }
    CHECK(prepared_create(&crowd.scenario, &crowd.prepared, &error) == STATUS_OK);
}

struct drive_result {
    char hex[SHA256_HEX_BYTES];
    uint64_t up_bytes; /* of the last tick */
};

/* Two ticks of one rollout. */
static void drive(const struct device *on, enum conditioning conditioning, struct prepared *where,
                  struct drive_result *out)
{
    struct world_cost before;
    struct world_cost after;
    struct error error;
    const uint64_t seeds[SLOTS_MAX] = {KEY};
    struct world *world = open_on(on, 1, conditioning, 0, 0, NULL);
    EXPECT_OK(ops->slot_reset(world, 0, where, KEY, &error), error);
    sha256_init(&hash);
    for (uint32_t tick = 0; tick < 2; tick++) {
        ops->cost(world, &before);
        step(world, 1, seeds);
        ops->cost(world, &after);
        record(world, 0);
        sha256_update(&hash, ops->slot_frame_stats(world, 0), sizeof(struct frame_stats));
    }
    out->up_bytes = after.up_bytes - before.up_bytes;
    digest(out->hex);
    ops->close(world);
}

/* The device's drawing is what the host draws, for a fraction of the bytes; where it has no room
 * for a map, or a crowd does not fit, the host does. */
static void drawn_layouts_are_those_of_the_host(void)
{
    struct device_ops giving_ops = *device.ops;
    struct device giving = device;
    struct drive_result drawn;
    struct drive_result given;
    giving_ops.map_make = no_room_for_maps;
    giving.ops = &giving_ops;
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
        drive(&device, (enum conditioning)conditioning, prepared, &drawn);
        drive(&giving, (enum conditioning)conditioning, prepared, &given);
        EXPECT_TEXT(drawn.hex, given.hex);
        EXPECT(drawn.up_bytes < FRAME_BYTES / 16);
        if (conditioning != CONDITIONING_NONE) { /* which needs no map */
            EXPECT_INT(given.up_bytes, FRAME_BYTES + sizeof(struct device_slot));
        }
    }
    drive(&device, CONDITIONING_AGENTS, crowd.prepared, &drawn);
    drive(&giving, CONDITIONING_AGENTS, crowd.prepared, &given);
    EXPECT_TEXT(drawn.hex, given.hex);
    EXPECT_INT(drawn.up_bytes, FRAME_BYTES + sizeof(struct device_slot));
}

/* Of the world's session. */
static struct device_session *mapped_session;

static int remember_open(const struct device_model *description,
                         const struct device_options *options, struct device_session **out,
                         struct device_text *why)
{
    int fault = device.ops->open(description, options, out, why);
    mapped_session = *out;
    return fault;
}

static uint64_t map_bytes(void)
{
    struct device_stats stats;
    device.ops->stats(mapped_session, &stats);
    return stats.map_bytes;
}

static void maps_stay_as_long_as_somebody_drives_there(void)
{
    struct device_ops remembering_ops = *device.ops;
    struct device remembering = device;
    struct error error;
    const uint64_t seeds[SLOTS_MAX] = {KEY, 4, 9};
    remembering_ops.open = remember_open;
    remembering.ops = &remembering_ops;
    struct world *world = open_on(&remembering, 3, CONDITIONING_AGENTS, 0, 0, NULL);
    void *state = malloc(ops->slot_state_bytes(world));
    EXPECT(state != NULL);
    EXPECT_INT(map_bytes(), 0);
    reset(world, 0, KEY);
    uint64_t one = map_bytes();
    EXPECT(one > 0);
    reset(world, 1, 4);
    EXPECT_INT(map_bytes(), one); /* the same prepared scenario */
    EXPECT_OK(ops->slot_reset(world, 2, crowd.prepared, 9, &error), error);
    uint64_t both = map_bytes();
    EXPECT(both > one);
    step(world, 7, seeds);
    ops->slot_save(world, 2, state);
    ops->slot_release(world, 2);
    EXPECT_INT(map_bytes(), both); /* a parked rollout goes on there */
    ops->slot_restore(world, 2, state);
    ops->slot_release(world, 0);
    ops->slot_fork(world, 2, 0);
    ops->slot_release(world, 2);
    EXPECT_INT(map_bytes(), both); /* its branch does */
    ops->slot_save(world, 0, state);
    ops->slot_release(world, 0);
    ops->slot_state_drop(world, state);
    EXPECT_INT(map_bytes(), one);
    step(world, 2, seeds);
    ops->slot_release(world, 1);
    EXPECT_INT(map_bytes(), 0);
    reset(world, 1, 4); /* a number that was used before */
    step(world, 2, seeds);
    EXPECT_INT(ops->slot_frame_stats(world, 1)->not_finite, 0);
    EXPECT_INT(map_bytes(), one);
    ops->close(world);
    free(state);
}

/* ---- frame statistics, and what comes down ---- */

enum { PAGES_MAX = 64, EXTRA_CELLS = 3 };

/* Stands between a world and the module. */
static struct {
    struct device_session *session;
    uint8_t *pinned; /* [FRAME_BYTES] */
    uint8_t frames[PAGES_MAX][FRAME_BYTES];
    struct frame_stats frame_stats[SLOTS_MAX]; /* of the last tick, by the slots of the device */
    bool shift;                                /* the occupancy that is told by EXTRA_CELLS */
} watch;

static int watch_open(const struct device_model *description, const struct device_options *options,
                      struct device_session **out, struct device_text *why)
{
    CHECK(options->page_count <= PAGES_MAX);
    int fault = device.ops->open(description, options, out, why);
    watch.session = *out;
    return fault;
}

static int watch_make(struct device_session *session, uint32_t page, const uint8_t *frame,
                      struct device_text *why)
{
    memcpy(watch.frames[page], frame, FRAME_BYTES);
    return device.ops->page_make(session, page, frame, why);
}

/* The tick's statistics of a frame are what the engine finds in it. */
static void watch_slot(struct device_session *session, uint32_t index)
{
    const struct device_slot *slot = &device.ops->slots(session)[index];
    struct device_counts *counts = (struct device_counts *)&device.ops->counts(session)[index];
    struct device_text why = {""};
    struct frame_sums sums;
    if (!slot->active) {
        return;
    }
    EXPECT_INT(device.ops->page_frame(session, slot->write_page, watch.pinned, &why), 0);
    memcpy(watch.frames[slot->write_page], watch.pinned, FRAME_BYTES);
    const struct frame_measure_input input = {
        .conditioning = (enum conditioning)slot->conditioning,
        .frame = watch.frames[slot->write_page],
        .window = {slot->window[0], slot->window[1]},
        .before = watch.frames[slot->page[0]],
        .before_window = {slot->page_window[0][0], slot->page_window[0][1]},
        .layout = device.ops->layout(session, index),
    };
    frame_measure_sum(&input, &sums);
    EXPECT(memcmp(&counts->sums, &sums, sizeof sums) == 0);
    frame_measure(&input, &watch.frame_stats[index]);
    counts->sums.occupancy += watch.shift ? 255 * EXTRA_CELLS : 0;
}

static int watch_finish(struct device_session *session, struct device_text *why)
{
    int fault = device.ops->tick_finish(session, why);
    for (uint32_t i = 0; i < SLOTS_MAX - 1; i++) {
        watch_slot(session, i);
    }
    return fault;
}

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0; /* NAN too */
}

static void expect_frame_stats(const struct frame_stats *found, const struct frame_stats *expected)
{
    EXPECT(same(found->occupancy_cells, expected->occupancy_cells));
    EXPECT(same(found->vru_cells, expected->vru_cells));
    EXPECT(same(found->bev_change, expected->bev_change));
    EXPECT(same(found->camera_change, expected->camera_change));
    EXPECT(same(found->layout_cells, expected->layout_cells));
    EXPECT(same(found->layout_iou, expected->layout_iou));
    EXPECT(same(found->camera_layout_corr, expected->camera_layout_corr));
}

/* Of frames that nobody but the watch sees; and from what the device says, not from a look. */
static void frame_stats_are_those_of_the_frames(void)
{
    struct device_ops watching_ops = *device.ops;
    struct device watching = device;
    const uint64_t seeds[SLOTS_MAX] = {KEY, 8};
    watching_ops.open = watch_open;
    watching_ops.page_make = watch_make;
    watching_ops.tick_finish = watch_finish;
    watching_ops.map_make = no_room_for_maps; /* layouts are given: they lie on the host too */
    watching.ops = &watching_ops;
    watch.pinned = device.ops->host_alloc(FRAME_BYTES);
    EXPECT(watch.pinned != NULL);
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
        struct world *world = open_on(&watching, 2, (enum conditioning)conditioning, 0, 0, NULL);
        reset(world, 0, seeds[0]);
        reset(world, 1, seeds[1]);
        watch.shift = false;
        step(world, 3, seeds);
        EXPECT(ops->slot_frame_stats(world, 0)->camera_change > 0.0);
        EXPECT(isnan(ops->slot_frame_stats(world, 0)->layout_iou) ==
               (conditioning != CONDITIONING_AGENTS));
        expect_frame_stats(ops->slot_frame_stats(world, 0), &watch.frame_stats[0]);
        expect_frame_stats(ops->slot_frame_stats(world, 1), &watch.frame_stats[1]);
        watch.shift = true;
        step(world, 2, seeds); /* slot 1 is the device's first */
        EXPECT_NEAR(ops->slot_frame_stats(world, 1)->occupancy_cells -
                        watch.frame_stats[0].occupancy_cells,
                    EXTRA_CELLS, 1e-9);
        ops->close(world);
    }
    device.ops->host_free(watch.pinned);
}

/* Since the last call. */
static uint64_t down_bytes(void)
{
    static uint64_t before;
    struct device_stats stats;
    device.ops->stats(watch.session, &stats);
    uint64_t bytes = stats.down_bytes - before;
    before = stats.down_bytes;
    return bytes;
}

static void frames_come_down_when_somebody_looks(void)
{
    static struct view view;
    const uint64_t counts = 2 * sizeof(struct device_counts);
    const uint64_t seeds[SLOTS_MAX] = {KEY, 8};
    struct device_ops counting_ops = *device.ops;
    struct device counting = device;
    counting_ops.open = watch_open;
    counting.ops = &counting_ops;
    reference();
    struct world *world = open_on(&counting, 2, CONDITIONING_AGENTS, 0, 0, NULL);
    reset(world, 0, seeds[0]);
    reset(world, 1, seeds[1]);
    down_bytes();
    for (uint32_t tick = 1; tick < TICKS; tick++) {
        step(world, 3, seeds);
        EXPECT_INT(down_bytes(), counts);
    }
    expect_view(world, 0, TICKS - 1);
    EXPECT_INT(down_bytes(), FRAME_BYTES);
    look(world, 0, &view);
    EXPECT_INT(down_bytes(), 0);
    step(world, 3, seeds);
    EXPECT_INT(down_bytes(), counts + FRAME_BYTES); /* who looked once looks again */
    expect_view(world, 0, TICKS);
    EXPECT_INT(down_bytes(), 0);
    look(world, 1, &view);
    EXPECT_INT(down_bytes(), FRAME_BYTES);
    step(world, 1, seeds);
    EXPECT_INT(down_bytes(), counts + FRAME_BYTES);
    step(world, 1, seeds); /* nobody looked */
    EXPECT_INT(down_bytes(), counts);
    struct device_stats stats;
    struct world_cost cost;
    device.ops->stats(watch.session, &stats);
    ops->cost(world, &cost);
    EXPECT_INT(cost.captures, 1);
    EXPECT_INT(cost.batches, TICKS + 2);
    EXPECT_INT(cost.down_bytes, stats.down_bytes);
    EXPECT(cost.up_bytes == stats.up_bytes && cost.up_bytes > 0);
    ops->slot_release(world, 1);
    ops->slot_fork(world, 0, 1); /* a page in two slots comes once */
    look(world, 1, &view);
    EXPECT_INT(down_bytes(), FRAME_BYTES);
    look(world, 0, &view);
    EXPECT_INT(down_bytes(), 0);
    ops->close(world);

    world = open_on(&counting, 2, CONDITIONING_NONE, 0, 0, NULL); /* the engine looks for agents */
    reset(world, 0, seeds[0]);
    down_bytes();
    step(world, 1, seeds);
    EXPECT_INT(down_bytes(), counts + FRAME_BYTES);
    ops->close(world);
}

/* ---- views: observations that stay on the device ---- */

/* Both parts of what a slot shows, as the host sees it. */
static uint64_t seen_digest(const struct world *world, uint32_t slot)
{
    static struct view view;
    look(world, slot, &view);
    return digest_of(digest_of(1, view.pictures, BEV_BYTES), view.pictures + BEV_BYTES,
                     CAMERA_COUNT * CAMERA_BYTES);
}

static struct world_view view_request(uint32_t slot, uint32_t view, enum view_update look)
{
    return (struct world_view){slot, view, look, {look, look, look}, 0};
}

static uint64_t draw_one(struct world *world, struct world_view request)
{
    struct error error = {0};
    EXPECT_OK(ops->views_draw(world, &request, 1, &error), error);
    return request.digest;
}

/* Without its map on the device the host samples it, and the planes go up: to the same view. */
static void views_need_no_map_on_the_device(void)
{
    const uint64_t seeds[SLOTS_MAX] = {KEY};
    uint64_t digests[2][2];
    uint64_t up_bytes[2];
    for (int without = 0; without < 2; without++) {
        struct device_ops poor_ops = *device.ops;
        struct device poor = device;
        struct error error = {0};
        struct world_cost before;
        struct world_cost after;
        poor_ops.map_make = without ? no_room_for_maps : device.ops->map_make;
        poor.ops = &poor_ops;
        struct world *world = open_on(&poor, 1, CONDITIONING_MAP, 0, 0, NULL);
        EXPECT_OK(ops->views_open(world, 1, true, false, &error), error);
        reset(world, 0, seeds[0]);
        ops->cost(world, &before);
        digests[without][0] = draw_one(world, view_request(0, 0, VIEW_DRAW));
        ops->cost(world, &after);
        up_bytes[without] = after.up_bytes - before.up_bytes;
        step(world, 1, seeds);
        digests[without][1] = draw_one(world, view_request(0, 0, VIEW_DRAW));
        ops->close(world);
    }
    EXPECT(digests[0][0] == digests[1][0] && digests[0][1] == digests[1][1]);
    EXPECT_INT(up_bytes[0], sizeof(struct device_view));
    EXPECT_INT(up_bytes[1], sizeof(struct device_view) + 2 * BEV_CELLS);
}

/* In every conditioning; each tick brings down counts and a digest per view, in `agents`. */
static void views_show_what_the_host_would_see(void)
{
    const uint64_t seeds[SLOTS_MAX] = {KEY, 8};
    struct device_ops counting_ops = *device.ops;
    struct device counting = device;
    counting_ops.open = watch_open;
    counting.ops = &counting_ops;
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
        struct error error = {0};
        struct observation_buffers there;
        uint64_t digests[TICKS][2];
        struct world *world = open_on(&counting, 2, (enum conditioning)conditioning, 0, 0, NULL);
        EXPECT_OK(ops->views_open(world, 3, true, true, &error), error);
        EXPECT(ops->views_open(world, 3, true, true, &error) != STATUS_OK);
        ops->view_address(world, 2, &there);
        EXPECT(there.bev != NULL && there.camera[0] == there.bev + BEV_BYTES);
        EXPECT(there.camera[2] == there.camera[1] + CAMERA_BYTES);
        reset(world, 0, seeds[0]);
        reset(world, 1, seeds[1]);
        for (uint32_t tick = 0; tick < TICKS; tick++) {
            struct world_view both[2] = {view_request(1, 0, VIEW_DRAW),
                                         view_request(0, 2, VIEW_DRAW)};
            down_bytes();
            EXPECT_OK(ops->views_draw(world, both, 2, &error), error);
            EXPECT_INT(down_bytes(), sizeof digests[tick]);
            digests[tick][1] = both[0].digest;
            digests[tick][0] = both[1].digest;
            EXPECT((both[0].digest != both[1].digest) == (tick > 0)); /* one beginning */
            step(world, 3, seeds);
            if (conditioning == CONDITIONING_AGENTS) {
                EXPECT_INT(down_bytes(), 2 * sizeof(struct device_counts));
            }
        }
        ops->close(world);
        world = open_on(&device, 2, (enum conditioning)conditioning, 0, 0, NULL);
        reset(world, 0, seeds[0]);
        reset(world, 1, seeds[1]);
        for (uint32_t tick = 0; tick < TICKS; tick++) {
            EXPECT(digests[tick][0] == seen_digest(world, 0));
            EXPECT(digests[tick][1] == seen_digest(world, 1));
            step(world, 3, seeds);
        }
        ops->close(world);
    }
}

/* The content of a view stays there through ticks and copies, until it is drawn or cleared. */
static void views_keep_what_they_show(void)
{
    static uint8_t zeros[BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES];
    const uint64_t blank =
        digest_of(digest_of(1, zeros, BEV_BYTES), zeros + BEV_BYTES, CAMERA_COUNT * CAMERA_BYTES);
    const uint64_t seeds[SLOTS_MAX] = {KEY, 8};
    struct error error = {0};
    struct world *world = open_on(&device, 2, CONDITIONING_AGENTS, 0, 0, NULL);
    EXPECT_OK(ops->views_open(world, 4, true, true, &error), error);
    reset(world, 0, seeds[0]);
    EXPECT(draw_one(world, view_request(0, 1, VIEW_KEEP)) == blank);
    uint64_t first = draw_one(world, view_request(0, 1, VIEW_DRAW));
    ops->view_copy(world, 1, 3);
    step(world, 1, seeds);
    EXPECT(draw_one(world, view_request(0, 1, VIEW_KEEP)) == first);
    uint64_t second = draw_one(world, view_request(0, 1, VIEW_DRAW));
    EXPECT(second != first && second == seen_digest(world, 0));
    EXPECT(draw_one(world, view_request(0, 3, VIEW_KEEP)) == first);
    struct world_view lidar = view_request(0, 3, VIEW_KEEP);
    lidar.bev = VIEW_DRAW;
    uint64_t mixed = draw_one(world, lidar);
    EXPECT(mixed != first && mixed != second);
    for (int i = 0; i < CAMERA_COUNT; i++) {
        lidar.cameras[i] = VIEW_DRAW;
    }
    EXPECT(draw_one(world, lidar) == second);
    EXPECT(draw_one(world, view_request(0, 3, VIEW_CLEAR)) == blank);
    EXPECT(draw_one(world, view_request(0, 1, VIEW_KEEP)) == second);
    ops->close(world);

    world = open_on(NULL, 1, CONDITIONING_AGENTS, 0, 0, NULL);
    EXPECT_INT(ops->views_open(world, 1, true, true, &error), STATUS_DEVICE);
    EXPECT_CONTAINS(error.text, "runs on the CPU");
    ops->close(world);
}

/* Announces a parked rollout and waits until those of its pages that are in the spill were read. */
static uint64_t announce(struct world *world, struct spill_store *store, const void *state)
{
    struct world_cost before;
    struct world_cost cost;
    ops->cost(world, &before);
    EXPECT(ops->slot_state_prefetch(world, state));
    ops->cost(world, &cost);
    for (uint64_t i = before.pages_ahead; i < cost.pages_ahead; i++) {
        EXPECT_INT(sem_wait(&store->peeked), 0);
    }
    return cost.pages_ahead - before.pages_ahead;
}

/* Three rollouts take turns in one slot, tick by tick. Their six pages share three of the device's,
 * two of the host tier's, and the spill. */
static void all_tiers_change_nothing(bool ahead)
{
    enum { ROLLOUTS = 3 };
    static struct spill_store store;
    static struct sha256 hashes[ROLLOUTS];
    const struct spill_ops spill = {&store, spill_store_write, spill_store_read, spill_store_drop,
                                    spill_store_peek};
    char hex[SHA256_HEX_BYTES];
    struct world_cost cost;
    void *states[ROLLOUTS];
    uint64_t announced = 0;
    uint64_t host = 0;
    store = (struct spill_store){0};
    EXPECT_INT(sem_init(&store.peeked, 0, 0), 0);
    struct world *world = open_on(&device, 1, CONDITIONING_AGENTS, 0, 0, NULL);
    ops->cost(world, &cost);
    ops->close(world);
    world = open_on(&device, 1, CONDITIONING_AGENTS, 3 * cost.page_bytes,
                    HOST_PAGES * cost.page_bytes + cost.page_bytes / 2, &spill);
    for (uint32_t turn = 0; turn < TICKS * ROLLOUTS; turn++) {
        uint32_t i = turn % ROLLOUTS;
        const uint64_t seeds[SLOTS_MAX] = {KEY + i};
        if (turn < ROLLOUTS) {
            states[i] = malloc(ops->slot_state_bytes(world));
            EXPECT(states[i] != NULL);
            sha256_init(&hash);
            reset(world, 0, seeds[0]);
            record(world, 0);
        } else {
            hash = hashes[i];
            announced += ahead ? announce(world, &store, states[i]) : 0;
            ops->slot_restore(world, 0, states[i]);
        }
        step(world, 1, seeds);
        record(world, 0);
        hashes[i] = hash;
        if (turn / ROLLOUTS == TICKS - 1) {
            digest(hex);
            EXPECT_TEXT(hex, alone(seeds[0]));
            ops->slot_release(world, 0);
            free(states[i]);
            continue;
        }
        ops->slot_save(world, 0, states[i]);
        ops->slot_release(world, 0);
        ops->cost(world, &cost);
        EXPECT(cost.pages_host <= HOST_PAGES);
        host = cost.pages_host > host ? cost.pages_host : host;
    }
    ops->cost(world, &cost);
    EXPECT_INT(host, HOST_PAGES);
    /* Pages that left came back: some from the spill, read when wanted or before, some not. */
    EXPECT_INT(cost.ahead_used, announced);
    EXPECT((announced > 0) == ahead && (store.reads > 0) == !ahead);
    EXPECT(cost.spills / 2 > store.reads + cost.ahead_used);
    ops->close(world);
    for (uint32_t i = 0; i < SPILL_RECORDS; i++) {
        EXPECT(store.data[i] == NULL);
    }
    sem_destroy(&store.peeked);
}

static void three_tiers_change_nothing(void)
{
    all_tiers_change_nothing(false);
}

static void reading_ahead_changes_nothing(void)
{
    all_tiers_change_nothing(true);
}

/* Pinned memory for the host tier's default is not to be had: it is smaller then. */
static size_t pinned_bytes_max;

static void *scarce_alloc(size_t bytes)
{
    return bytes <= pinned_bytes_max ? device.ops->host_alloc(bytes) : NULL;
}

static void scarce_pinned_memory_makes_the_host_tier_smaller(void)
{
    struct device_ops scarce_ops = *device.ops;
    struct device scarce = device;
    struct world *world = open_on(&device, 1, CONDITIONING_AGENTS, 0, 0, NULL);
    struct world_cost cost;
    struct error error = {0};
    ops->cost(world, &cost);
    ops->close(world);
    scarce_ops.host_alloc = scarce_alloc;
    scarce.ops = &scarce_ops;
    pinned_bytes_max = 10 * cost.page_bytes;
    world = open_on(&scarce, 1, CONDITIONING_AGENTS, 0, 40 * cost.page_bytes, NULL);
    ops->cost(world, &cost);
    EXPECT_INT(cost.pages_host_max, 2); /* of 40, 20, 10, 5, 2, with eight for copies */
    ops->close(world);
    pinned_bytes_max = 7 * cost.page_bytes;
    const struct world_config config = {.slot_count = 1, .model = model, .device = &scarce};
    EXPECT_INT(ops->open(&config, &world, &error), STATUS_NO_MEMORY);
    EXPECT_CONTAINS(error.text, "pinned");
}

/* ---- a device that fails ---- */

static uint32_t ticks_until_failure;

static int failing_tick(struct device_session *session, struct device_text *why)
{
    if (ticks_until_failure-- > 0) {
        return device.ops->tick_start(session, why);
    }
    snprintf(why->text, sizeof why->text, "the device fell off the bus");
    return DEVICE_FAULT_LOST;
}

static void a_failed_device_loses_its_rollouts_and_says_so(void)
{
    static struct view view;
    struct device_ops failing_ops = *device.ops;
    struct device failing = device;
    struct error error = {0};
    const uint64_t seeds[SLOTS_MAX] = {KEY, 8};
    failing_ops.tick_start = failing_tick;
    failing.ops = &failing_ops;
    ticks_until_failure = 1;
    struct world *world = open_on(&failing, 3, CONDITIONING_AGENTS, 0, 0, NULL);
    reset(world, 0, seeds[0]);
    reset(world, 1, seeds[1]);
    step(world, 3, seeds);
    EXPECT_INT(ops->slot_frame_stats(world, 0)->not_finite, 0);
    step(world, 1, seeds);
    for (uint32_t slot = 0; slot < 2; slot++) {
        EXPECT(ops->slot_frame_stats(world, slot)->not_finite > 0);
    }
    EXPECT_INT(ops->slot_frame_stats(world, 0)->tick, 2);
    look(world, 1, &view); /* shows nothing, but does not fail */
    step(world, 3, seeds);
    EXPECT_INT(ops->slot_scene(world, 0)->tick, 3);
    EXPECT_INT(ops->slot_reset(world, 2, prepared, 5, &error), STATUS_DEVICE);
    EXPECT(strstr(error.text, "fell off the bus") != NULL);
    ops->close(world);
}

static int failing_frame(struct device_session *session, uint32_t page, uint8_t *frame,
                         struct device_text *why)
{
    (void)session, (void)page, (void)frame;
    snprintf(why->text, sizeof why->text, "the device fell silent");
    return DEVICE_FAULT_LOST;
}

/* Found out by somebody who looks. */
static void a_frame_that_does_not_come_loses_the_rollouts(void)
{
    static struct view view;
    struct device_ops failing_ops = *device.ops;
    struct device failing = device;
    struct error error = {0};
    const uint64_t seeds[SLOTS_MAX] = {KEY, 8};
    failing_ops.page_frame = failing_frame;
    failing.ops = &failing_ops;
    struct world *world = open_on(&failing, 3, CONDITIONING_AGENTS, 0, 0, NULL);
    reset(world, 0, seeds[0]);
    reset(world, 1, seeds[1]);
    look(world, 0, &view); /* the first frame was made on the host */
    EXPECT_INT(view.frame_stats.not_finite, 0);
    step(world, 2, seeds); /* the other slot, at which nobody looked */
    EXPECT_INT(ops->slot_frame_stats(world, 1)->not_finite, 0);
    look(world, 1, &view);
    EXPECT_INT(view.pictures[0], 0);
    EXPECT_INT(view.pictures[BEV_UNSEEN * BEV_CELLS], 255);
    EXPECT(ops->slot_frame_stats(world, 0)->not_finite > 0);
    EXPECT(ops->slot_frame_stats(world, 1)->not_finite > 0);
    step(world, 3, seeds);
    EXPECT_INT(ops->slot_scene(world, 1)->tick, 2);
    EXPECT_INT(ops->slot_reset(world, 2, prepared, 5, &error), STATUS_DEVICE);
    EXPECT(strstr(error.text, "fell silent") != NULL);
    ops->close(world);
}

static int failing_views(struct device_session *session, uint32_t count, uint64_t *digests,
                         struct device_text *why)
{
    (void)session, (void)count, (void)digests;
    snprintf(why->text, sizeof why->text, "the device went blind");
    return DEVICE_FAULT_LOST;
}

/* Found out by a planner's look: all rollouts are lost, and every later look says so too. */
static void a_view_that_fails_loses_the_rollouts(void)
{
    static struct view view;
    struct device_ops failing_ops = *device.ops;
    struct device failing = device;
    const uint64_t seeds[SLOTS_MAX] = {KEY, 8};
    failing_ops.views_draw = failing_views;
    failing.ops = &failing_ops;
    struct world *world = open_on(&failing, 3, CONDITIONING_AGENTS, 0, 0, NULL);
    struct error error = {0};
    EXPECT_OK(ops->views_open(world, 2, true, false, &error), error);
    reset(world, 0, seeds[0]);
    reset(world, 1, seeds[1]);
    struct world_view request = view_request(0, 0, VIEW_DRAW);
    for (int again = 0; again < 2; again++) {
        EXPECT_INT(ops->views_draw(world, &request, 1, &error), STATUS_DEVICE);
        EXPECT_CONTAINS(error.text, "went blind");
        EXPECT(ops->slot_frame_stats(world, 0)->not_finite > 0);
        EXPECT(ops->slot_frame_stats(world, 1)->not_finite > 0);
    }
    ops->view_copy(world, 0, 1); /* of no use, but does not fail */
    look(world, 1, &view);
    EXPECT_INT(view.pictures[BEV_UNSEEN * BEV_CELLS], 255);
    EXPECT_INT(ops->slot_reset(world, 2, prepared, 5, &error), STATUS_DEVICE);
    ops->close(world);
}

/* Parked, its pages gone in the spill, restored: the device goes on, this rollout sees nothing. */
static void a_lost_rollout_sees_nothing_in_its_view(void)
{
    static struct spill_store store = {.fails = true};
    static uint8_t nothing[BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES];
    const struct spill_ops spill = {&store, spill_store_write, spill_store_read, spill_store_drop,
                                    NULL};
    const uint64_t seeds[SLOTS_MAX] = {KEY, 91};
    struct error error = {0};
    struct world_cost cost;
    memset(nothing + BEV_CELLS, 255, BEV_CELLS);
    struct world *world = open_on(&device, 1, CONDITIONING_AGENTS, 0, 0, NULL);
    ops->cost(world, &cost);
    ops->close(world);
    world = open_on(&device, 2, CONDITIONING_AGENTS, 6 * cost.page_bytes, 0, &spill);
    EXPECT_OK(ops->views_open(world, 2, true, true, &error), error);
    void *state = malloc(ops->slot_state_bytes(world));
    EXPECT(state != NULL);
    reset(world, 0, seeds[0]);
    step(world, 1, seeds);
    step(world, 1, seeds);
    ops->slot_save(world, 0, state);
    ops->slot_release(world, 0);
    reset(world, 0, 90);
    reset(world, 1, seeds[1]);
    for (uint32_t tick = 0; tick < 3; tick++) {
        step(world, 3, seeds);
    }
    ops->slot_release(world, 0);
    ops->slot_restore(world, 0, state);
    EXPECT(ops->slot_frame_stats(world, 0)->not_finite > 0);
    struct world_view both[2] = {view_request(0, 0, VIEW_DRAW), view_request(1, 1, VIEW_DRAW)};
    EXPECT_OK(ops->views_draw(world, both, 2, &error), error);
    EXPECT(both[0].digest == digest_of(digest_of(1, nothing, BEV_BYTES), nothing + BEV_BYTES,
                                       CAMERA_COUNT * CAMERA_BYTES));
    EXPECT(both[0].digest == seen_digest(world, 0));
    EXPECT(both[1].digest == seen_digest(world, 1));
    ops->close(world);
    free(state);
}

/* A model of other tokens and heads: patches of their own, two heads that share one of keys and
 * values, the layer in the middle joint and in e4m3, as pages are. */
static struct model *wide_model(uint32_t patch)
{
    struct error error;
    struct model *wide = NULL;
    struct model_config config = *model_config(model);
    const struct model_open_options options = {
        .precision = NN_BF16, .cpu_flags = cpu_flags_detect(), .device = true};
    config.patch = patch;
    config.heads = 2;
    config.kv_heads = 1;
    config.layers = 3;
    config.joint[1] = true;
    config.type = MODEL_E4M3;
    config.reference_layers = 1;
    config.pages = MODEL_E4M3;
    EXPECT_OK(model_random(&config, &options, 4, &wide, &error), error);
    return wide;
}

/* Fills what the first slot sees after each tick, beside another one where there is company. */
static void drive_wide(const struct device *on, bool company, uint32_t ticks, struct view *views)
{
    const uint64_t seeds[SLOTS_MAX] = {KEY, 8};
    struct world *world = open_on(on, 2, CONDITIONING_AGENTS, 0, 0, NULL);
    for (uint32_t slot = 0; slot < (company ? 2 : 1); slot++) {
        reset(world, slot, seeds[slot]);
    }
    for (uint32_t tick = 0; tick < ticks; tick++) {
        step(world, company ? 3 : 1, seeds);
        look(world, 0, &views[tick]);
    }
    ops->close(world);
}

/* The same with windows of space and time in place of what is joint. */
static struct model *window_model(uint32_t reach, uint32_t past)
{
    struct error error;
    struct model *wide = NULL;
    struct model_config config = *model_config(model);
    const struct model_open_options options = {
        .precision = NN_BF16, .cpu_flags = cpu_flags_detect(), .device = true};
    config.patch = 4;
    config.heads = 2;
    config.kv_heads = 1;
    config.layers = 2;
    config.joint[0] = true;
    config.joint[1] = false;
    config.window = 2;
    config.reach = reach;
    config.past = past;
    config.pages = MODEL_E4M3;
    EXPECT_OK(model_random(&config, &options, 6, &wide, &error), error);
    return wide;
}

/* Fills what the CPU shows; bytes of the device's pictures differ from it by less than `limit` in
 * the mean. */
static void drives_as_on_the_cpu(struct model *wide, double limit, struct view cpu[2])
{
    static struct view alone[2];
    static struct view beside[1];
    struct model *small = model;
    struct device fast = device;
    fast.reference = false;
    model = wide;
    drive_wide(NULL, false, 2, cpu);
    drive_wide(&fast, false, 2, alone);
    for (uint32_t tick = 0; tick < 2; tick++) {
        EXPECT(mean_difference(cpu[tick].pictures, alone[tick].pictures,
                               sizeof cpu[tick].pictures) < limit);
        EXPECT_NEAR(alone[tick].frame_stats.camera_change, cpu[tick].frame_stats.camera_change,
                    0.01);
        EXPECT_NEAR(alone[tick].frame_stats.bev_change, cpu[tick].frame_stats.bev_change, 0.01);
    }
    drive_wide(&fast, true, 1, beside);
    EXPECT(memcmp(alone[0].pictures, beside[0].pictures, sizeof alone[0].pictures) == 0);
    model_close(model);
    model = small;
}

static void a_wide_model_drives_as_on_the_cpu(void)
{
    static struct view cpu[2];
    drives_as_on_the_cpu(wide_model(4), 1.0, cpu);
}

/* Parked while others need the memory, so that its pages spill; restored beside a branch that
 * shares them: pages of e4m3 are as whole as others. */
static void pages_of_a_wide_model_spill_and_are_shared(void)
{
    static struct spill_store store;
    static struct view views[2];
    const struct spill_ops spill = {&store, spill_store_write, spill_store_read, spill_store_drop,
                                    NULL};
    uint64_t seeds[SLOTS_MAX] = {KEY, 91};
    struct world_cost cost;
    struct model *small = model;
    struct device fast = device;
    fast.reference = false; /* which have no e4m3 */
    model = wide_model(8);
    struct world *world = open_on(&fast, 1, CONDITIONING_AGENTS, 0, 0, NULL);
    ops->cost(world, &cost);
    reset(world, 0, KEY);
    for (uint32_t tick = 0; tick < 2; tick++) {
        step(world, 1, seeds);
    }
    look(world, 0, &views[0]);
    ops->close(world);
    store = (struct spill_store){0};
    world = open_on(&fast, 2, CONDITIONING_AGENTS, 6 * cost.page_bytes, 0, &spill);
    void *state = malloc(ops->slot_state_bytes(world));
    EXPECT(state != NULL);
    reset(world, 0, KEY);
    step(world, 1, seeds);
    ops->slot_save(world, 0, state);
    ops->slot_release(world, 0);
    for (uint32_t i = 0; i < 2; i++) {
        seeds[i] = 90 + i;
        reset(world, i, seeds[i]);
    }
    for (uint32_t tick = 0; tick < 3; tick++) {
        step(world, 3, seeds);
    }
    EXPECT(store.writes > 0);
    ops->slot_release(world, 0);
    ops->slot_release(world, 1);
    ops->slot_restore(world, 1, state);
    ops->slot_fork(world, 1, 0);
    EXPECT_INT(store.reads, store.writes);
    seeds[0] = KEY;
    step(world, 3, seeds);
    look(world, 0, &views[1]);
    EXPECT(memcmp(views[0].pictures, views[1].pictures, sizeof views[0].pictures) == 0);
    look(world, 1, &views[1]);
    EXPECT(memcmp(views[0].pictures, views[1].pictures, sizeof views[0].pictures) != 0);
    ops->close(world);
    free(state);
    model_close(model);
    model = small;
}

static void a_model_with_windows_drives_as_on_the_cpu(void)
{
    static const uint32_t others[][2] = {{4, 2},
                                         {5, 1}}; /* which look at less, and are further off */
    static struct view cpu[2];
    static struct view other[2];
    struct model *small = model;
    drives_as_on_the_cpu(window_model(5, 2), 0.2, cpu);
    for (int i = 0; i < 2; i++) {
        model = window_model(others[i][0], others[i][1]);
        drive_wide(NULL, false, 2, other);
        double apart = mean_difference(cpu[1].pictures, other[1].pictures, sizeof cpu[1].pictures);
        printf("# reach %u, past %u: %.3f from reach 5, past 2\n", others[i][0], others[i][1],
               apart);
        EXPECT(apart > 0.3);
        model_close(model);
        model = small;
    }
}

/* One layer of bf16 whose one head is as wide as warpgroups take it. */
static struct model *wide_head_model(void)
{
    struct error error;
    struct model *wide = NULL;
    struct model_config config = *model_config(model);
    const struct model_open_options options = {
        .precision = NN_BF16, .cpu_flags = cpu_flags_detect(), .device = true};
    config.heads = config.kv_heads = 1;
    config.head_dim = 128;
    config.layers = 1;
    EXPECT_OK(model_random(&config, &options, 4, &wide, &error), error);
    return wide;
}

/* Products of e4m3, and attention with heads of 128 numbers, run on a warpgroup where the device
 * has that. The emulator sums exactly on either kind of tensor cores, so products give the same
 * frames; attention has larger tiles there, so its sums differ. A device of another capability
 * traps. */
static void wide_models_run_on_warpgroups(void)
{
    static struct view views[2];
    struct model *small = model;
    if (!device.reference) {
        return; /* a GPU's sums differ, and it is of one capability */
    }
    struct error error = {0};
    struct world *world = NULL;
    struct device fast = device;
    struct model *wide[2] = {wide_model(4), wide_head_model()};
    fast.reference = false;
    for (int which = 0; which < 2; which++) {
        model = wide[which];
        for (int i = 0; i < 2; i++) {
            fast.wgmma = i == 0;
            drive_wide(&fast, false, 1, &views[i]);
        }
        double apart =
            mean_difference(views[0].pictures, views[1].pictures, sizeof views[0].pictures);
        EXPECT(which == 0 ? apart == 0.0 : apart > 0.0 && apart < 0.1);
    }
    model = small;
    setenv("SIMT_CAPABILITY", "8.9", 1);
    const struct world_config config = {.slot_count = 1, .model = wide[0], .device = &fast};
    EXPECT_OK(device_choose("cuda:0", &fast, &error), error);
    EXPECT(!fast.wgmma);
    fast.wgmma = true;
    EXPECT_INT(ops->open(&config, &world, &error), STATUS_DEVICE);
    unsetenv("SIMT_CAPABILITY");
    model_close(wide[0]);
    model_close(wide[1]);
}

static void a_model_for_the_cpu_alone_is_refused(void)
{
    struct error error = {0};
    struct world *world = NULL;
    struct model *other = NULL;
    struct model_config config = *model_config(model);
    const struct model_open_options options = {
        .precision = NN_FP32, .cpu_flags = cpu_flags_detect(), .device = true};
    EXPECT_OK(model_random(&config, &options, 4, &other, &error), error);
    const struct world_config world_config = {.slot_count = 1, .model = other, .device = &device};
    EXPECT_INT(ops->open(&world_config, &world, &error), STATUS_DEVICE);
    EXPECT(strstr(error.text, "bf16") != NULL);
    model_close(other);
    config.heads = config.kv_heads = 2;
    config.head_dim = 16;
    const struct model_open_options in_bf16 = {
        .precision = NN_BF16, .cpu_flags = cpu_flags_detect(), .device = true};
    EXPECT_OK(model_random(&config, &in_bf16, 4, &other, &error), error);
    const struct world_config narrow = {.slot_count = 1, .model = other, .device = &device};
    EXPECT_INT(ops->open(&narrow, &world, &error), STATUS_DEVICE);
    EXPECT(strstr(error.text, "heads of 32, 64 or 128") != NULL);
    model_close(other);
}

/* A file of the gemm tuner's, which keeps what a device reaches. */
static void keep_peaks(const char *path, const char *lines)
{
    char text[256];
    uint64_t sum = UINT64_C(0xCBF29CE484222325);
    int length = snprintf(text, sizeof text, "swerve products 3\nSIMT emulator\n0\n%s", lines);
    for (int i = 0; i < length; i++) {
        sum = (sum ^ (uint8_t)text[i]) * UINT64_C(0x100000001B3);
    }
    FILE *file = fopen(path, "wb");
    EXPECT(file != NULL);
    fprintf(file, "%ssum %016llx\n", text, (unsigned long long)sum);
    fclose(file);
}

static double peak_of(const struct model *of)
{
    struct world *world = NULL;
    struct world_cost cost;
    struct error error;
    struct device served = device;
    served.reference = false; /* which have no e4m3 */
    const struct world_config config = {.slot_count = 1, .model = of, .device = &served};
    EXPECT_OK(ops->open(&config, &world, &error), error);
    ops->cost(world, &cost);
    ops->close(world);
    return cost.peak_flops;
}

/* A world says what was measured on its device and kept, by the type of its layers; the emulator
 * measures nothing. */
static void the_peak_is_the_devices(void)
{
    char path[128];
    if (!device.reference) {
        EXPECT(peak_of(model) > 1e11);
        return;
    }
    struct model *wide = wide_model(4);
    snprintf(path, sizeof path, "%s/products-SIMT-emulator", cache);
    EXPECT(peak_of(model) == 0.0 && access(path, F_OK) != 0);
    keep_peaks(path, "peak 1 788000000000000\npeak 2 1380000000000000\n");
    EXPECT(peak_of(model) == 788e12 && peak_of(wide) == 1380e12);
    keep_peaks(path, "peak 1 788000000000000\n");
    EXPECT(peak_of(model) == 788e12 && peak_of(wide) == 0.0);
    keep_peaks(path, "peak 1 788000000000000");
    EXPECT(peak_of(model) == 0.0);
    unlink(path);
    model_close(wide);
}

int main(int argc, char **argv)
{
    struct error error = {0};
    if (mkdtemp(cache) == NULL || setenv("SWERVE_CACHE", cache, 1) != 0) {
        return 1;
    }
    if (argc > 1) {
        setenv("SWERVE_CUDA_MODULE", argv[1], 1);
    }
    if (device_choose("cuda:0", &device, &error) != STATUS_OK) {
        printf("1..0 # SKIP %s\n", error.text);
        return folder_remove(cache, 0);
    }
    device.reference = strcmp(device.ops->name, "cuda") != 0; /* the emulator runs them faster */
    create_prepared();
    create_crowd();
    model = small_model();
    int status = TEST_RUN(
        TEST(both_backends_see_the_same), TEST(ticks_are_drawn_by_both),
        TEST(company_changes_nothing), TEST(spills_and_forks_change_nothing),
        TEST(frames_that_nobody_saw_spill_too), TEST(drawn_layouts_are_those_of_the_host),
        TEST(maps_stay_as_long_as_somebody_drives_there), TEST(frame_stats_are_those_of_the_frames),
        TEST(frames_come_down_when_somebody_looks), TEST(views_show_what_the_host_would_see),
        TEST(views_need_no_map_on_the_device), TEST(views_keep_what_they_show),
        TEST(three_tiers_change_nothing), TEST(reading_ahead_changes_nothing),
        TEST(scarce_pinned_memory_makes_the_host_tier_smaller),
        TEST(a_failed_device_loses_its_rollouts_and_says_so),
        TEST(a_frame_that_does_not_come_loses_the_rollouts),
        TEST(a_view_that_fails_loses_the_rollouts), TEST(a_lost_rollout_sees_nothing_in_its_view),
        TEST(a_model_for_the_cpu_alone_is_refused), TEST(a_wide_model_drives_as_on_the_cpu),
        TEST(pages_of_a_wide_model_spill_and_are_shared),
        TEST(a_model_with_windows_drives_as_on_the_cpu), TEST(the_peak_is_the_devices),
        TEST(wide_models_run_on_warpgroups));
    model_close(model);
    prepared_unref(prepared);
    arena_finish(&arena);
    prepared_unref(crowd.prepared);
    arena_finish(&crowd.arena);
    return folder_remove(cache, status);
}
