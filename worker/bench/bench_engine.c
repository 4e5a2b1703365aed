/*
 * `swerve bench engine`: results from engine/bench/bench_model.h, engine/bench/bench_fanout.h and
 * worker/bench/bench_resume.h as rows of the report.
 */
#include "worker/bench/bench_engine.h"

#include "base/check.h"
#include "base/units.h"
#include "engine/bench/bench_fanout.h"
#include "engine/bench/bench_model.h"
#include "engine/bench/scale_ranks.h"
#include "engine/learned/device.h"
#include "worker/bench/bench_resume.h"
#include "worker/models/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next number of "1,8,32"; *text moves behind it. */
static enum status take_slots(const char **text, uint32_t *out, struct error *error)
{
    char *end;
    unsigned long value = strtoul(*text, &end, 10);
    if (end == *text || **text < '0' || **text > '9' || value < 1 || value > 1024 ||
        (*end != 0 && *end != ',')) {
        return error_set(error, STATUS_USAGE,
                         "--slots: expected numbers of 1 to 1024 with commas, found \"%s\"", *text);
    }
    *out = (uint32_t)value;
    *text = *end == ',' ? end + 1 : end;
    return STATUS_OK;
}

static struct bench_result *next_row(struct bench_result *results, uint32_t *count,
                                     const char *unit)
{
    CHECK(*count < BENCH_RESULTS_MAX);
    struct bench_result *row = &results[(*count)++];
    *row = (struct bench_result){0};
    snprintf(row->unit, sizeof row->unit, "%s", unit);
    return row;
}

static void finish_row(struct bench_result *row)
{
    row->ratio = row->baseline > 0.0 ? row->value / row->baseline : 0.0;
}

static void add_rows(const char *prefix, const struct bench_model_result *measured, bool phases,
                     struct bench_result *results, uint32_t *count)
{
    double seconds = measured->tick_ns / NS_PER_S;
    struct bench_result *row = next_row(results, count, "ticks/s");
    snprintf(row->name, sizeof row->name, "%s", prefix);
    snprintf(row->baseline_name, sizeof row->baseline_name, "products at their best alone");
    row->value = 1.0 / seconds;
    row->baseline = measured->peak_flops / measured->flop;
    finish_row(row);
    row = next_row(results, count, "GFLOP/s");
    snprintf(row->name, sizeof row->name, "%s.rate", prefix);
    snprintf(row->baseline_name, sizeof row->baseline_name, "a 512 x 512 x 512 product in cache");
    row->value = measured->flop / seconds * 1e-9;
    row->baseline = measured->peak_flops * 1e-9;
    finish_row(row);
    for (uint32_t i = 0; phases && i < measured->phase_count; i++) {
        row = next_row(results, count, "us");
        snprintf(row->name, sizeof row->name, "%s.%s", prefix, measured->phases[i].name);
        snprintf(row->baseline_name, sizeof row->baseline_name, "the whole tick");
        row->value = measured->phases[i].ns * 1e-3;
        row->baseline = measured->tick_ns * 1e-3;
        finish_row(row);
    }
}

static void add_fanout_row(const char *name, const char *unit, double value,
                           const char *baseline_name, double baseline, struct bench_result *results,
                           uint32_t *count)
{
    struct bench_result *row = next_row(results, count, unit);
    snprintf(row->name, sizeof row->name, "engine.fanout.%s", name);
    snprintf(row->baseline_name, sizeof row->baseline_name, "%s", baseline_name);
    row->value = value;
    row->baseline = baseline;
    finish_row(row);
}

enum { FANOUT_ROWS = 5, RESUME_ROWS = 2 };

static enum status add_fanout(const struct model *model, struct bench_result *results,
                              uint32_t *count, struct error *error)
{
    struct bench_fanout_result m;
    const double mib = 1024.0 * 1024.0;
    TRY(bench_fanout_run(model, clock_system(), &m, error));
    add_fanout_row("fork", "ns", m.fork_ns, "the limit, 50 us", 50e3, results, count);
    add_fanout_row("fork_p99", "ns", m.fork_p99_ns, "the limit, 50 us", 50e3, results, count);
    add_fanout_row("cost", "ms processor time", m.fanout_ns * 1e-6,
                   "16 rollouts apart; forks at half are 0.531", m.apart_ns * 1e-6, results, count);
    add_fanout_row("pages_shared", "pages", (double)m.pages_shared, "as computed",
                   (double)m.pages_expected, results, count);
    add_fanout_row("memory_forked", "MiB", (double)(m.fanout_pages * m.page_bytes) / mib,
                   "16 rollouts apart", (double)(m.apart_pages * m.page_bytes) / mib, results,
                   count);
    return STATUS_OK;
}

static enum status add_resume(const struct model *model, struct bench_result *results,
                              uint32_t *count, struct error *error)
{
    struct bench_resume_result m;
    TRY(bench_resume_run(model, clock_system(), &m, error));
    struct bench_result *row = next_row(results, count, "us");
    snprintf(row->name, sizeof row->name, "engine.resume.read_ahead");
    snprintf(row->baseline_name, sizeof row->baseline_name, "%u pages read when they are wanted",
             m.pages);
    row->value = m.ahead_ns * 1e-3;
    row->baseline = m.wanted_ns * 1e-3;
    finish_row(row);
    row = next_row(results, count, "% of pages");
    snprintf(row->name, sizeof row->name, "engine.resume.in_time");
    snprintf(row->baseline_name, sizeof row->baseline_name, "all that were announced");
    row->value = m.ready * 100.0;
    row->baseline = 100.0;
    finish_row(row);
    return STATUS_OK;
}

/* ---- a world step at full scale ---- */

static enum status run_scale(const struct bench_engine_options *options, struct device_scale *out,
                             struct error *error)
{
    struct device device;
    if (options->ranks != 0) {
        if (options->ranks < 1 || options->ranks > DEVICE_RANKS_MAX || options->limit_s < 1 ||
            options->limit_s > 86400) {
            return error_set(error, STATUS_USAGE,
                             "bench engine: expected --ranks 1 to %d and --limit 1 to 86400, found "
                             "%lld and %lld",
                             DEVICE_RANKS_MAX, (long long)options->ranks,
                             (long long)options->limit_s);
        }
        const struct scale_ranks_options ranks = {.device = options->device,
                                                  .config = options->config,
                                                  .ranks = (uint32_t)options->ranks,
                                                  .limit_ms = options->limit_s * 1000};
        return scale_ranks_run(&ranks, out, error);
    }
    TRY(device_choose(options->device, &device, error));
    if (device.ops == NULL) {
        return error_set(error, STATUS_DEVICE, "bench engine --config: expected a device, found %s",
                         device.backend);
    }
    return device_scale_run(&device, options->config, NULL, out, error);
}

static void add_scale_row(const struct bench_engine_options *options, const char *name,
                          const char *unit, double value, const char *baseline_name,
                          double baseline, struct bench_result *results, uint32_t *count)
{
    struct bench_result *row = next_row(results, count, unit);
    snprintf(row->name, sizeof row->name, "engine.%.24s.%s", options->config, name);
    snprintf(row->baseline_name, sizeof row->baseline_name, "%s", baseline_name);
    row->value = value;
    row->baseline = baseline;
    finish_row(row);
}

/* What ranks exchange, and that they compute what one does. */
static void add_all_to_all(const struct bench_engine_options *options,
                           const struct device_scale *scale, struct bench_result *results,
                           uint32_t *count)
{
    char over[96];
    double all_ms;
    double all_to_all_ms = scale_ranks_all_to_all_ms(scale, &all_ms);
    snprintf(over, sizeof over, "all launches, one by one; over %.60s", scale->all_to_all);
    add_scale_row(options, "exchange", "ms", all_to_all_ms, over, all_ms, results, count);
    add_scale_row(options, "exchanged", "MB between ranks", scale->all_to_all_bytes * 1e-6,
                  "operands of all launches", scale->moved_bytes * 1e-6, results, count);
}

/* A world step at full scale on devices, beside what one large product reaches there. */
static enum status bench_scale(const struct bench_engine_options *options,
                               struct bench_result *results, uint32_t *count, struct error *error)
{
    struct device_scale scale;
    TRY(run_scale(options, &scale, error));
    if (scale.finite == 0 || scale.same_bits == 0) {
        return error_set(error, STATUS_DEVICE, "%s: %s", options->config,
                         scale.finite == 0 ? "latents are not finite"
                                           : "a step gave other bits when it was run again");
    }
    /* The least time: fp8 products at the rate of a large one, all else at that of bf16. */
    double flop = scale.matmul_flop + scale.attention_flop;
    double fp8 = scale.peak_fp8_flops > 0.0 ? scale.matmul_fp8_flop : 0.0;
    double least_s = (flop - fp8) / scale.peak_bf16_flops;
    least_s += fp8 > 0.0 ? fp8 / scale.peak_fp8_flops : 0.0;
    double devices = options->ranks > 0 ? (double)options->ranks : 1.0;
    bool timed = scale.step_ms > 0.0 && scale.peak_bf16_flops > 0.0; /* an emulator has no clock */
    const char *eager = scale.captured ? "launch by launch" : "launch by launch, as it ran itself";
    add_scale_row(options, "world_step", "ms", scale.step_ms, eager, scale.eager_ms, results,
                  count);
    add_scale_row(options, "rate", "TFLOP/s", timed ? flop / scale.step_ms * 1e-9 : 0.0,
                  "its products at their best alone",
                  timed ? flop / least_s * devices * 1e-12 : 0.0, results, count);
    add_scale_row(options, "host_time", "us", scale.host_us, eager, scale.eager_host_us, results,
                  count);
    double matmuls =
        (double)(scale.gemm_tuner_matmuls + scale.own_matmuls + scale.expanded_matmuls);
    add_scale_row(options, "products_library", "products", (double)scale.gemm_tuner_matmuls,
                  "all that ran", matmuls, results, count);
    add_scale_row(options, "products_own", "products", (double)scale.own_matmuls, "all that ran",
                  matmuls, results, count);
    add_scale_row(options, "products_bf16", "products", (double)scale.expanded_matmuls,
                  "all that ran", matmuls, results, count);
    /* 48 bits fit a number of a report. */
    add_scale_row(options, "latents", "sum of bits", (double)(scale.latents_sum & 0xFFFFFFFFFFFF),
                  "none: equal for equal latents", 0.0, results, count);
    if (options->ranks > 0) {
        add_all_to_all(options, &scale, results, count);
    }
    return STATUS_OK;
}

enum status bench_engine(const struct bench_engine_options *options, struct bench_result *results,
                         uint32_t *count, struct error *error)
{
    enum nn_precision precision = NN_BF16;
    struct model *model = NULL;
    *count = 0;
    if (options->config != NULL) {
        return bench_scale(options, results, count, error);
    }
    if (options->ranks != 0) {
        return error_set(error, STATUS_USAGE, "bench engine: --ranks share a --config, found none");
    }
    enum status status = models_parse_precision(options->precision, &precision, error);
    THEN(status, bench_model_open(options->model, options->shape, precision, &model, error));
    const char *text = options->slots;
    while (status == STATUS_OK && *text != 0) {
        struct bench_model_result measured;
        uint32_t slots = 0;
        char prefix[48];
        status = take_slots(&text, &slots, error);
        if (status == STATUS_OK &&
            *count + 2 + BENCH_PHASES_MAX + FANOUT_ROWS + RESUME_ROWS > BENCH_RESULTS_MAX) {
            status = error_set(error, STATUS_USAGE, "--slots: expected fewer numbers");
        }
        THEN(status, bench_model_run(model, slots, options->threads, options->ticks, clock_system(),
                                     &measured, error));
        if (status == STATUS_OK) {
            snprintf(prefix, sizeof prefix, "engine.%s.slots_%u", options->precision, slots);
            add_rows(prefix, &measured, *text == 0, results, count);
        }
    }
    THEN(status, add_fanout(model, results, count, error));
    THEN(status, add_resume(model, results, count, error));
    model_close(model);
    return status;
}
