/*
 * `swerve bench controls`: episodes of the controls challenge per second of one core, in each
 * precision and from one to 5,000 at a time, beside what the same core's multiply-adds would allow,
 * measured in turns.
 */
#include "cli/bench/bench.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/dmath.h"
#include "base/units.h"
#include "engine/bench/bench.h"
#include "engine/bench/machine.h"
#include "engine/tinyphysics/tinyphysics_run.h"

#include <stdlib.h>

/* Episodes are short, so that a piece ends before a busy machine turns to others. */
enum { STEPS = 40, ROWS = TINYPHYSICS_CONTROL_STEP + STEPS, PIECES = 24, EPISODES_MAX = 5000 };

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

/* The best of some pieces beside the best that the multiply-adds did between them; a piece of many
 * episodes is one. Rates are those of whole episodes, of 400 steps of the network. */
static enum status measure(const struct tinyphysics_model *model, enum nn_precision precision,
                           struct threads *alone, struct tinyphysics_drive *drives, uint32_t count,
                           struct bench_report *report, struct error *error)
{
    const char *name = nn_precision_names[precision];
    const int whole = TINYPHYSICS_COST_END - TINYPHYSICS_CONTROL_STEP;
    const double flop = tinyphysics_model_flop() * whole;
    const int pieces = count <= 64 ? PIECES : 1;
    double rate = 0.0;
    double peak = machine_peak_flops(precision);
    for (int i = 0; i < pieces; i++) {
        const int64_t start_ns = clock_thread_cpu_ns(clock_system());
        TRY(tinyphysics_run(model, TINYPHYSICS_PID, alone, drives, count, error));
        const int64_t ns = clock_thread_cpu_ns(clock_system()) - start_ns;
        rate = dmath_max(rate, count / ((double)ns / (double)NS_PER_S) * STEPS / whole);
        peak = dmath_max(peak, machine_peak_flops(precision));
    }
    bench_add(report, rate, "episodes/s of a core", peak / flop,
              "multiply-adds in registers, one core", "controls.%s.episodes_%u", name, count);
    bench_add(report, rate * flop * 1e-9, "GFLOP/s", peak * 1e-9,
              "multiply-adds in registers, one core", "controls.%s.rate_%u", name, count);
    return STATUS_OK;
}

static enum status measure_precision(const char *model_path, enum nn_precision precision,
                                     struct threads *alone, struct tinyphysics_drive *drives,
                                     struct bench_report *report, struct error *error)
{
    static const uint32_t counts[] = {1, TINYPHYSICS_BATCH, 64, 512, EPISODES_MAX};
    struct tinyphysics_model *model = NULL;
    TRY(tinyphysics_model_load(model_path, precision, machine_cpu_flags(precision), &model, error));
    enum status status = STATUS_OK;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        THEN(status, measure(model, precision, alone, drives, counts[i], report, error));
    }
    tinyphysics_model_free(model);
    return status;
}

enum status bench_controls(const char *model_path, struct bench_report *report, struct error *error)
{
    static struct controls_row rows[ROWS];
    const struct controls_log log = {ROWS, rows};
    struct threads *alone = NULL;
    if (model_path == NULL) {
        return error_set(error, STATUS_USAGE,
                         "bench controls: expected --model FILE, the challenge's tinyphysics.onnx");
    }
    struct tinyphysics_drive *drives = calloc(EPISODES_MAX, sizeof *drives);
    TRY(memory_check(drives, error, "bench controls: no memory for %d episodes", EPISODES_MAX));
    fill_log(rows);
    for (uint32_t i = 0; i < EPISODES_MAX; i++) {
        drives[i] = (struct tinyphysics_drive){.log = &log, .seed = i};
    }
    enum status status = threads_create(1, &alone, error);
    THEN(status, measure_precision(model_path, NN_FP32, alone, drives, report, error));
    THEN(status, measure_precision(model_path, NN_BF16, alone, drives, report, error));
    threads_destroy(alone);
    free(drives);
    return status;
}
