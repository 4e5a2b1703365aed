/*
 * Rows of a report, and the benchmarks that are no more than rows of another room's. See bench.h.
 */
#include "cli/bench/bench.h"

#include "base/check.h"
#include "engine/bench/bench_nn.h"

#include <stdarg.h>
#include <stdio.h>

struct bench_result *bench_add(struct bench_report *report, double value, const char *unit,
                               double baseline, const char *baseline_name, const char *format, ...)
{
    CHECK(report->count < BENCH_RESULTS_MAX);
    struct bench_result *row = &report->results[report->count++];
    va_list args;
    *row = (struct bench_result){
        .value = value, .baseline = baseline, .ratio = baseline > 0.0 ? value / baseline : 0.0};
    va_start(args, format);
    vsnprintf(row->name, sizeof row->name, format, args);
    va_end(args);
    snprintf(row->unit, sizeof row->unit, "%s", unit);
    snprintf(row->baseline_name, sizeof row->baseline_name, "%s", baseline_name);
    return row;
}

enum status bench_kernels(struct bench_report *report, struct error *error)
{
    struct engine_bench_nn_row rows[ENGINE_BENCH_NN_MAX];
    _Static_assert((int)ENGINE_BENCH_NN_MAX <= (int)BENCH_RESULTS_MAX, "all rows fit");
    uint32_t count = 0;
    TRY(engine_bench_nn(clock_system(), rows, &count, error));
    for (uint32_t i = 0; i < count; i++) {
        bench_add(report, rows[i].value, rows[i].unit, rows[i].baseline, rows[i].baseline_name,
                  "%s", rows[i].name);
    }
    return STATUS_OK;
}
