/*
 * The same planner confined and not, by turns: a start, then ticks with one full observation. See
 * bench.h.
 */
#include "cli/bench/bench.h"

#include "base/array.h"
#include "base/check.h"
#include "base/clock.h"
#include "schemas/observation.h"
#include "worker/planner/planner.h"

#include <stdlib.h>

enum { REPEATS = 7, WARM_TICKS = 20, TICKS = 400, MODES = 2 };

/* [0] without the sandbox, [1] with it. */
struct samples {
    int64_t start_ns[MODES][REPEATS];
    int64_t tick_ns[MODES][REPEATS * TICKS];
};

static double quantile_us(int64_t *values, size_t count, double fraction)
{
    qsort(values, count, sizeof *values, array_compare_int64);
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
            TRY(status);
        }
    }
    return STATUS_OK;
}

enum status bench_planner(const char *spec, struct bench_report *report, struct error *error)
{
    _Static_assert((int)BEV_BYTES >= (int)CAMERA_BYTES, "one buffer serves grid and images");
    uint8_t *pixels = calloc(1, BEV_BYTES);
    TRY(memory_check(pixels, error, "bench: out of memory"));
    struct samples *samples = calloc(1, sizeof *samples);
    if (samples == NULL) {
        free(pixels);
        return error_set(error, STATUS_NO_MEMORY, "bench: out of memory");
    }
    enum status status = measure(spec, pixels, samples, error);
    const struct {
        const char *name;
        int64_t *samples[MODES];
        size_t count;
        double fraction;
    } rows[] = {
        {"start, median", {samples->start_ns[0], samples->start_ns[1]}, REPEATS, 0.5},
        {"tick, median", {samples->tick_ns[0], samples->tick_ns[1]}, REPEATS * TICKS, 0.5},
        {"tick, 99th percentile",
         {samples->tick_ns[0], samples->tick_ns[1]},
         REPEATS * TICKS,
         0.99},
    };
    for (size_t i = 0; status == STATUS_OK && i < COUNT_OF(rows); i++) {
        bench_add(report, quantile_us(rows[i].samples[1], rows[i].count, rows[i].fraction), "us",
                  quantile_us(rows[i].samples[0], rows[i].count, rows[i].fraction),
                  "the same planner unconfined", "sandboxed planner: %s", rows[i].name);
    }
    free(pixels);
    free(samples);
    return status;
}
