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
#include "engine/rigs/frames.h"
#include "engine/sensors/raster.h"
#include "engine/worlds/world.h"
#include "schemas/rig/rig.h"
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

/* Sensors of a rig: a picture by rows, one along rays, and a lidar of 1800 x 128 beams. */
struct bench_sensors {
    struct raster_rays *level, *leaning;
    struct rig_lidar lidar;
    struct scan *scan;
    uint8_t *picture;
    struct scan_point *points;
};

enum { PICTURE_WIDTH = 1280, PICTURE_HEIGHT = 720 };

static void sensors_close(struct bench_sensors *sensors)
{
    raster_rays_destroy(sensors->level);
    raster_rays_destroy(sensors->leaning);
    scan_destroy(sensors->scan);
    free(sensors->picture);
    free(sensors->points);
}

static enum status sensors_open(struct bench_sensors *sensors, struct error *error)
{
    struct rig_camera camera = {.id = "camera",
                                .width = PICTURE_WIDTH,
                                .height = PICTURE_HEIGHT,
                                .rate_hz = 1 / TICK_S,
                                .pose = {.x_m = 1.2, .z_m = 1.5},
                                .lens = {.fx = PICTURE_WIDTH / 2.0,
                                         .fy = PICTURE_WIDTH / 2.0,
                                         .cx = (PICTURE_WIDTH - 1) / 2.0,
                                         .cy = (PICTURE_HEIGHT - 1) / 2.0,
                                         .max_angle_rad = NAN}};
    struct rig_lidar lidar = {.id = "lidar",
                              .rate_hz = 1 / TICK_S,
                              .pose = {.z_m = 1.9},
                              .azimuths = 1800,
                              .elevation_count = 128,
                              .range_m = 200.0};
    for (uint32_t i = 0; i < lidar.elevation_count; i++) {
        lidar.elevations_rad[i] = 0.1 - 0.5 * i / lidar.elevation_count;
    }
    *sensors = (struct bench_sensors){.lidar = lidar};
    enum status status = raster_rays_create(&camera, 0, &sensors->level, error);
    camera.pose.pitch_rad = 1e-9;
    THEN(status, raster_rays_create(&camera, 0, &sensors->leaning, error));
    THEN(status, scan_create(&lidar, 0, &sensors->scan, error));
    if (status == STATUS_OK) {
        sensors->picture = malloc((size_t)PICTURE_WIDTH * PICTURE_HEIGHT * 3);
        sensors->points = malloc(scan_points_max(sensors->scan) * sizeof *sensors->points);
        if (sensors->picture == NULL || sensors->points == NULL) {
            status = error_set(error, STATUS_NO_MEMORY, "bench: out of memory");
        }
    }
    return status;
}

static double picture_rate(const struct bench *bench, const struct bench_sensors *sensors,
                           const struct raster_rays *rays)
{
    enum { PICTURES = 5 };
    const struct scene *scene = world_object_ops.slot_scene(bench->world, 0);
    int64_t start_ns = now_ns();
    for (int i = 0; i < PICTURES; i++) {
        raster_rays_draw(bench->layers, &bench->scenario, scene, 0, rays, sensors->picture);
    }
    return PICTURES / elapsed_s(start_ns);
}

static double turn_rate(const struct bench *bench, const struct bench_sensors *sensors)
{
    enum { TURNS = 10 };
    const struct scene *scene = world_object_ops.slot_scene(bench->world, 0);
    int64_t start_ns = now_ns();
    for (int i = 0; i < TURNS; i++) {
        frames_scan(bench->layers, &bench->scenario, scene, scene, 0, &sensors->lidar,
                    sensors->scan, sensors->points);
    }
    return TURNS / elapsed_s(start_ns);
}

static enum status bench_rig(struct bench *bench, struct bench_report *report, struct error *error)
{
    enum { LEVEL, LEANING, TURN, KINDS };
    static const char *const names[KINDS] = {"rig.picture.rows", "rig.picture.rays", "rig.lidar"};
    static const char *const units[KINDS] = {"images of 1280 x 720/s/core",
                                             "images of 1280 x 720/s/core",
                                             "turns of 1800 x 128 beams/s/core"};
    double samples[2][KINDS][BENCH_REPEATS];
    struct bench_sensors sensors;
    enum status status = sensors_open(&sensors, error);
    for (int i = 0; status == STATUS_OK && i < 2 * BENCH_REPEATS; i++) {
        double(*own)[BENCH_REPEATS] = samples[i % 2];
        raster_layers_use(bench->layers, i % 2 == 0 ? 0 : UINT32_MAX);
        own[LEVEL][i / 2] = picture_rate(bench, &sensors, sensors.level);
        own[LEANING][i / 2] = picture_rate(bench, &sensors, sensors.leaning);
        own[TURN][i / 2] = turn_rate(bench, &sensors);
    }
    for (int i = 0; status == STATUS_OK && i < KINDS; i++) {
        bench_add(report, engine_bench_median(samples[1][i], BENCH_REPEATS), units[i],
                  engine_bench_median(samples[0][i], BENCH_REPEATS), "the same in plain C", "%s",
                  names[i]);
    }
    sensors_close(&sensors);
    return status;
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
    THEN(status, bench_rig(&bench, report, error));
    bench_close(&bench);
    return status;
}
