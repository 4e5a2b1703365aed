/*
 * One synthetic scene for all (engine/bench/bench.h): a three-lane motorway, 20 IDM drivers, 16
 * slots. Baselines are what the machine could do at best: a bare loop of the same IDM arithmetic, a
 * memset of the same frame.
 */
#include "cli/bench/bench.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "engine/bench/bench.h"
#include "engine/sensors/raster.h"
#include "engine/worlds/world.h"
#include "worker/run/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BENCH_AGENTS = 20 /* of the scene in engine/bench/bench.c */,
    BENCH_SLOTS = 16,
    BENCH_TICKS = 300,
    BENCH_FRAMES = 2000
};

struct bench {
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
    struct raster_layers *layers;
    struct world *world;
    uint8_t *frame;
};

static void bench_close(struct bench *bench)
{
    world_object_ops.close(bench->world);
    raster_layers_destroy(bench->layers);
    prepared_unref(bench->prepared);
    arena_finish(&bench->arena);
    free(bench->frame);
}

static enum status bench_open(struct bench *bench, struct error *error)
{
    *bench = (struct bench){0};
    arena_init(&bench->arena, LIMIT_SCENARIO_ARENA_BYTES);
    enum status status = engine_bench_scenario(&bench->arena, &bench->scenario, error);
    THEN(status, prepared_create(&bench->scenario, &bench->prepared, error));
    THEN(status, raster_layers_create(&bench->scenario.map, &bench->layers, error));
    const struct world_config config = {.slot_count = 1};
    THEN(status, world_object_ops.open(&config, &bench->world, error));
    bench->frame = malloc(BEV_BYTES);
    if (status == STATUS_OK && bench->frame == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "bench: out of memory");
    }
    THEN(status, world_object_ops.slot_reset(bench->world, 0, bench->prepared, 0, error));
    if (status != STATUS_OK) {
        bench_close(bench);
    }
    return status;
}

static double elapsed_s(int64_t start_ns)
{
    return (double)(clock_thread_cpu_ns(clock_system()) - start_ns) / (double)NS_PER_S;
}

static int64_t now_ns(void)
{
    return clock_thread_cpu_ns(clock_system());
}

/* Agent-steps per second of the object world's step(). */
static enum status physics_rate(struct bench *bench, double *rate, struct error *error)
{
    int64_t steps = 0;
    int64_t ns = 0;
    TRY(engine_bench_physics(bench->prepared, BENCH_SLOTS, BENCH_TICKS, clock_system(), &steps, &ns,
                             error));
    *rate = (double)steps * (double)NS_PER_S / (double)ns;
    return STATUS_OK;
}

/* The bare IDM formula over arrays: no lanes, no neighbours, no boxes. */
static double bare_idm_rate(void)
{
    static volatile double sink;
    double gap[BENCH_AGENTS];
    double speed[BENCH_AGENTS];
    for (int i = 0; i < BENCH_AGENTS; i++) {
        gap[i] = 20.0 + i;
        speed[i] = 20.0 + i % 5;
    }
    const int rounds = BENCH_TICKS * BENCH_SLOTS;
    int64_t start_ns = now_ns();
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < BENCH_AGENTS; i++) {
            double ratio = speed[i] / 30.0;
            double wanted = 2.0 + 1.5 * speed[i] + speed[i] * 0.5 / (2.0 * sqrt(1.5 * 2.0));
            double close = wanted / gap[i];
            double accel = 1.5 * (1.0 - ratio * ratio * ratio * ratio - close * close);
            speed[i] += accel * TICK_S;
            gap[i] += (20.0 - speed[i]) * TICK_S * 0.01;
        }
    }
    sink = speed[3];
    (void)sink;
    return (double)rounds * BENCH_AGENTS / elapsed_s(start_ns);
}

static double bev_rate(struct bench *bench)
{
    const struct scene *scene = world_object_ops.slot_scene(bench->world, 0);
    int64_t start_ns = now_ns();
    for (int i = 0; i < BENCH_FRAMES; i++) {
        raster_bev(bench->layers, &bench->scenario, scene, 0, bench->frame);
    }
    return BENCH_FRAMES / elapsed_s(start_ns);
}

static double camera_rate(struct bench *bench)
{
    const struct scene *scene = world_object_ops.slot_scene(bench->world, 0);
    int64_t start_ns = now_ns();
    for (int i = 0; i < BENCH_FRAMES / 10; i++) {
        raster_camera(bench->layers, &bench->scenario, scene, 0, CAMERA_FRONT, bench->frame);
    }
    return BENCH_FRAMES / 10 / elapsed_s(start_ns);
}

static double memset_rate(struct bench *bench, size_t bytes)
{
    int64_t start_ns = now_ns();
    for (int i = 0; i < BENCH_FRAMES; i++) {
        memset(bench->frame, i, bytes);
        __asm__ volatile("" : : "r"(bench->frame) : "memory");
    }
    return BENCH_FRAMES / elapsed_s(start_ns);
}

/* Rollout-ticks per second of the whole loop as a worker runs it, traces and hashes included. */
static enum status loop_rate(struct bench *bench, double *rate, struct error *error)
{
    const struct runner_config config = {
        .world = &world_object_ops,
        .planner = "builtin:reference",
        .slot_count = BENCH_SLOTS,
        .clock = clock_system(),
    };
    struct runner *runner = NULL;
    enum status status = runner_create(&config, &runner, error);
    for (uint32_t i = 0; status == STATUS_OK && i < BENCH_SLOTS; i++) {
        struct job_lease lease = {.job_id = i + 1};
        struct job_run *job = NULL;
        lease.spec.seed = i;
        status = job_run_create(&lease, bench->prepared, &job, error);
        THEN(status, runner_add(runner, job, ROLLOUT_ALL, error));
    }
    int64_t start_ns = now_ns();
    while (status == STATUS_OK && runner_busy(runner)) {
        runner_tick(runner);
    }
    if (status == STATUS_OK) {
        *rate = (double)runner_stats(runner)->ticks / elapsed_s(start_ns);
    }
    runner_destroy(runner);
    return status;
}

enum status bench_world(struct bench_report *report, struct error *error)
{
    struct bench bench;
    enum { PHYSICS, IDM, BEV, FRAME, CAMERA, IMAGE, LOOP, KINDS };
    double samples[KINDS][BENCH_REPEATS];
    static const struct {
        const char *name;
        const char *unit;
        int value;
        int baseline;
        const char *baseline_name;
    } rows[] = {
        {"object.physics", "agent-steps/s/core", PHYSICS, IDM, "bare IDM formula over arrays"},
        {"object.bev", "frames/s/core", BEV, FRAME, "memset of the same frame"},
        {"object.camera", "images/s/core", CAMERA, IMAGE, "memset of the same image"},
        {"object.closed_loop", "rollout-ticks/s/core", LOOP, FRAME,
         "memset of one BEV frame per tick"},
    };
    TRY(bench_open(&bench, error));
    enum status status = STATUS_OK;
    for (int i = 0; status == STATUS_OK && i < BENCH_REPEATS; i++) {
        status = physics_rate(&bench, &samples[PHYSICS][i], error);
        samples[IDM][i] = bare_idm_rate();
        samples[BEV][i] = bev_rate(&bench);
        samples[FRAME][i] = memset_rate(&bench, BEV_BYTES);
        samples[CAMERA][i] = camera_rate(&bench);
        samples[IMAGE][i] = memset_rate(&bench, CAMERA_BYTES);
        THEN(status, loop_rate(&bench, &samples[LOOP][i], error));
    }
    for (size_t i = 0; status == STATUS_OK && i < COUNT_OF(rows); i++) {
        bench_add(report, engine_bench_median(samples[rows[i].value], BENCH_REPEATS), rows[i].unit,
                  engine_bench_median(samples[rows[i].baseline], BENCH_REPEATS),
                  rows[i].baseline_name, "%s", rows[i].name);
    }
    bench_close(&bench);
    return status;
}
