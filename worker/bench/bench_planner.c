/*
 * The same planner confined and not, by turns: a start, then ticks with one full observation. See
 * bench_planner.h.
 */
#include "worker/bench/bench_planner.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "schemas/observation.h"
#include "worker/planner/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 7, WARM_TICKS = 20, TICKS = 400, MODES = 2 };

/* [0] without the sandbox, [1] with it. */
struct samples {
    int64_t start_ns[MODES][REPEATS];
    int64_t tick_ns[MODES][REPEATS * TICKS];
};

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double quantile_us(int64_t *values, size_t count, double fraction)
{
    qsort(values, count, sizeof *values, compare);
    return (double)values[(size_t)((double)(count - 1) * fraction)] / 1e3;
}

static enum status drive(struct planner *planner, const uint8_t *pixels, int64_t *tick_ns,
                         struct error *error)
{
    const struct clock *clock = clock_system();
    struct swerve_route_point route[SWERVE_ROUTE_POINTS] = {{.x_m = 0.0f}};
    struct swerve_episode episode = {.horizon_ticks = TICKS,
                                     .tick_s = 0.1,
                                     .scenario_id = "bench",
                                     .prompt = "",
                                     .ego_length_m = 4.5,
                                     .ego_width_m = 2.0,
                                     .ego_wheelbase_m = 2.7};
    struct swerve_observation seen = {.speed_mps = 10.0,
                                      .route_count = SWERVE_ROUTE_POINTS,
                                      .route = route,
                                      .bev = pixels,
                                      .camera = {pixels, pixels, pixels}};
    for (int i = 0; i < SWERVE_ROUTE_POINTS; i++) {
        route[i] = (struct swerve_route_point){.x_m = 2.0f * (float)i, .speed_limit_mps = 15.0f};
    }
    enum status status = planner_reset(planner, &episode, error);
    for (int i = -WARM_TICKS; i < TICKS && status == STATUS_OK; i++) {
        struct swerve_action action;
        uint8_t failed = 0;
        seen.tick = (uint32_t)(i + WARM_TICKS);
        int64_t start_ns = clock_now_ns(clock);
        status = planner_act(planner, 1, &seen, &action, &failed, error);
        if (i >= 0) {
            tick_ns[i] = clock_now_ns(clock) - start_ns;
        }
    }
    return status;
}

static enum status measure(const char *spec, const uint8_t *pixels, struct samples *samples,
                           struct error *error)
{
    const struct clock *clock = clock_system();
    const struct planner_confinement confined = {.sandbox = true, .environment_listed = true};
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        for (int mode = 0; mode < MODES; mode++) {
            struct planner *planner = NULL;
            const struct planner_config config = {.session_count = 1,
                                                  .tick_deadline_ms = 10000,
                                                  .confinement = mode == 1 ? &confined : NULL};
            int64_t start_ns = clock_now_ns(clock);
            enum status status = planner_open(spec, &config, &planner, error);
            samples->start_ns[mode][repeat] = clock_now_ns(clock) - start_ns;
            THEN(status, drive(planner, pixels, &samples->tick_ns[mode][repeat * TICKS], error));
            planner_close(planner);
            if (status != STATUS_OK) {
                return status;
            }
        }
    }
    return STATUS_OK;
}

static void add(struct bench_result *results, uint32_t *count, const char *name, double value,
                double baseline)
{
    struct bench_result *result = &results[(*count)++];
    *result = (struct bench_result){
        .value = value, .baseline = baseline, .ratio = value / baseline, .unit = "us"};
    snprintf(result->name, sizeof result->name, "%s", name);
    snprintf(result->baseline_name, sizeof result->baseline_name, "the same planner unconfined");
}

enum status bench_planner(const char *spec, struct bench_result *results, uint32_t *count,
                          struct error *error)
{
    _Static_assert((int)BEV_BYTES >= (int)CAMERA_BYTES, "one buffer serves grid and images");
    uint8_t *pixels = calloc(1, BEV_BYTES);
    struct samples *samples = calloc(1, sizeof *samples);
    enum status status = pixels != NULL && samples != NULL
                             ? measure(spec, pixels, samples, error)
                             : error_set(error, STATUS_NO_MEMORY, "bench: out of memory");
    if (status == STATUS_OK) {
        double base[3] = {quantile_us(samples->start_ns[0], REPEATS, 0.5),
                          quantile_us(samples->tick_ns[0], REPEATS * TICKS, 0.5),
                          quantile_us(samples->tick_ns[0], REPEATS * TICKS, 0.99)};
        *count = 0;
        add(results, count, "sandboxed planner: start, median",
            quantile_us(samples->start_ns[1], REPEATS, 0.5), base[0]);
        add(results, count, "sandboxed planner: tick, median",
            quantile_us(samples->tick_ns[1], REPEATS * TICKS, 0.5), base[1]);
        add(results, count, "sandboxed planner: tick, 99th percentile",
            quantile_us(samples->tick_ns[1], REPEATS * TICKS, 0.99), base[2]);
    }
    free(pixels);
    free(samples);
    return status;
}
