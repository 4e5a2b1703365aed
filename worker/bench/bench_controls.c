/*
 * `swerve bench controls`: episodes of the controls challenge per second of one core, beside what
 * the same core's multiply-adds would allow, measured in turns.
 */
#include "worker/bench/bench.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/dmath.h"
#include "base/units.h"
#include "engine/bench/bench.h"
#include "engine/bench/bench_nn.h"
#include "engine/bench/machine.h"
#include "engine/tinyphysics/tinyphysics_run.h"

#include <stdlib.h>

enum { ROWS = 600, EPISODES_MAX = 64 };

/* A road that swings from side to side. */
static void fill_log(struct controls_row rows[ROWS])
{
    for (int i = 0; i < ROWS; i++) {
        const double phase = 0.05 * i;
        rows[i] = (struct controls_row){
            .target_mps2 = 1.5 * dmath_sin(phase),
            .roll_lataccel_mps2 = 0.2 * dmath_sin(0.3 * phase),
            .v_ego_mps = 25.0 + 3.0 * dmath_sin(0.1 * phase),
            .a_ego_mps2 = 0.15 * dmath_cos(0.1 * phase),
            .steer = -0.4 * dmath_sin(phase),
        };
    }
}

static enum status measure(const struct tinyphysics_model *model, struct threads *alone,
                           struct tinyphysics_drive *drives, uint32_t count,
                           struct bench_report *report, struct error *error)
{
    const double flop =
        tinyphysics_model_flop() * (TINYPHYSICS_COST_END - TINYPHYSICS_CONTROL_STEP);
    double rates[BENCH_REPEATS];
    double peaks[BENCH_REPEATS];
    double ratios[BENCH_REPEATS];
    for (int i = 0; i < BENCH_REPEATS; i++) {
        peaks[i] = engine_peak_flops(NN_FP32, machine_cpu_flags());
        const int64_t start_ns = clock_thread_cpu_ns(clock_system());
        TRY(tinyphysics_run(model, TINYPHYSICS_PID, alone, drives, count, error));
        const int64_t ns = clock_thread_cpu_ns(clock_system()) - start_ns;
        rates[i] = count / ((double)ns / (double)NS_PER_S);
        ratios[i] = rates[i] * flop / peaks[i];
    }
    const double rate = engine_bench_median(rates, BENCH_REPEATS);
    const double peak = engine_bench_median(peaks, BENCH_REPEATS);
    struct bench_result *row =
        bench_add(report, rate, "episodes/s of a core", peak / flop,
                  "multiply-adds in registers, one core", "controls.episodes_%u", count);
    row->ratio = engine_bench_median(ratios, BENCH_REPEATS);
    bench_add(report, rate * flop * 1e-9, "GFLOP/s", peak * 1e-9,
              "multiply-adds in registers, one core", "controls.rate_%u", count);
    return STATUS_OK;
}

enum status bench_controls(const char *model_path, struct bench_report *report, struct error *error)
{
    static const uint32_t counts[] = {1, 8, EPISODES_MAX};
    static struct controls_row rows[ROWS];
    const struct controls_log log = {ROWS, rows};
    struct tinyphysics_drive drives[EPISODES_MAX];
    struct tinyphysics_model *model = NULL;
    struct threads *alone = NULL;
    if (model_path == NULL) {
        return error_set(error, STATUS_USAGE,
                         "bench controls: expected --model FILE, the challenge's tinyphysics.onnx");
    }
    fill_log(rows);
    for (uint32_t i = 0; i < EPISODES_MAX; i++) {
        drives[i] = (struct tinyphysics_drive){.log = &log, .seed = i};
    }
    enum status status = tinyphysics_model_load(model_path, NN_FP32, machine_cpu_flags(), &model, error);
    THEN(status, threads_create(1, &alone, error));
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        THEN(status, measure(model, alone, drives, counts[i], report, error));
    }
    threads_destroy(alone);
    tinyphysics_model_free(model);
    return status;
}
