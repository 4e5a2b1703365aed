/*
 * `swerve bench engine`: results from engine/bench/bench_model.h, engine/bench/bench_fanout.h and
 * cli/bench/bench_resume.h as rows of the report.
 */
#include "cli/bench/bench.h"

#include "base/check.h"
#include "base/units.h"
#include "cli/bench/bench_resume.h"
#include "engine/bench/bench_fanout.h"
#include "engine/bench/bench_model.h"
#include "engine/bench/scale_ranks.h"
#include "engine/learned/device.h"
#include "worker/models/models.h"

#include <stdio.h>
#include <stdlib.h>

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

static void add_rows(const char *prefix, const struct bench_model_result *measured, bool phases,
                     struct bench_report *report)
{
    double seconds = measured->tick_ns / NS_PER_S;
    bench_add(report, 1.0 / seconds, "ticks/s", measured->peak_flops / measured->flop,
              "products at their best alone", "%s", prefix);
    bench_add(report, measured->flop / seconds * 1e-9, "GFLOP/s", measured->peak_flops * 1e-9,
              "a 512 x 512 x 512 product in cache", "%s.rate", prefix);
    for (uint32_t i = 0; phases && i < measured->phase_count; i++) {
        bench_add(report, measured->phases[i].ns * 1e-3, "us", measured->tick_ns * 1e-3,
                  "the whole tick", "%s.%s", prefix, measured->phases[i].name);
    }
}

enum { FANOUT_ROWS = 5, RESUME_ROWS = 2 };

static enum status add_fanout(const struct model *model, struct bench_report *report,
                              struct error *error)
{
    struct bench_fanout_result m;
    const double mib = 1024.0 * 1024.0;
    TRY(bench_fanout_run(model, clock_system(), &m, error));
    bench_add(report, m.fork_ns, "ns", 50e3, "the limit, 50 us", "engine.fanout.fork");
    bench_add(report, m.fork_p99_ns, "ns", 50e3, "the limit, 50 us", "engine.fanout.fork_p99");
    bench_add(report, m.fanout_ns * 1e-6, "ms processor time", m.apart_ns * 1e-6,
              "16 rollouts apart; forks at half are 0.531", "engine.fanout.cost");
    bench_add(report, (double)m.pages_shared, "pages", (double)m.pages_expected, "as computed",
              "engine.fanout.pages_shared");
    bench_add(report, (double)(m.fanout_pages * m.page_bytes) / mib, "MiB",
              (double)(m.apart_pages * m.page_bytes) / mib, "16 rollouts apart",
              "engine.fanout.memory_forked");
    return STATUS_OK;
}

static enum status add_resume(const struct model *model, struct bench_report *report,
                              struct error *error)
{
    struct bench_resume_result m;
    char wanted[96];
    TRY(bench_resume_run(model, clock_system(), &m, error));
    snprintf(wanted, sizeof wanted, "%u pages read when they are wanted", m.pages);
    bench_add(report, m.ahead_ns * 1e-3, "us", m.wanted_ns * 1e-3, wanted,
              "engine.resume.read_ahead");
    bench_add(report, m.ready * 100.0, "% of pages", 100.0, "all that were announced",
              "engine.resume.in_time");
    return STATUS_OK;
}

/* ---- a world step at full scale ---- */

static enum status run_scale(const struct bench_engine_options *options, struct device_scale *out,
                             struct error *error)
{
    const int64_t ranks = options->ranks != 0 ? options->ranks : 1;
    if (ranks < 1 || ranks > DEVICE_RANKS_MAX || options->limit_s < 1 || options->limit_s > 86400) {
        return error_set(
            error, STATUS_USAGE,
            "bench engine: expected --ranks 1 to %d and --limit 1 to 86400, found %lld "
            "and %lld",
            DEVICE_RANKS_MAX, (long long)ranks, (long long)options->limit_s);
    }
    const struct scale_ranks_options shared = {.device = options->device,
                                               .config = options->config,
                                               .ranks = (uint32_t)ranks,
                                               .limit_ms = options->limit_s * 1000};
    return scale_ranks_run(&shared, out, error);
}

/* Bytes that ranks exchange, and that they compute what one does. */
static void add_all_to_all(const char *config, const struct device_scale *scale,
                           struct bench_report *report)
{
    char over[96];
    double all_ms;
    double all_to_all_ms = scale_ranks_all_to_all_ms(scale, &all_ms);
    snprintf(over, sizeof over, "all launches, one by one; over %.60s", scale->all_to_all);
    bench_add(report, all_to_all_ms, "ms", all_ms, over, "engine.%.24s.exchange", config);
    bench_add(report, scale->all_to_all_bytes * 1e-6, "MB between ranks", scale->moved_bytes * 1e-6,
              "operands of all launches", "engine.%.24s.exchanged", config);
}

/* A world step at full scale on devices, beside what one large product reaches there. */
static enum status bench_scale(const struct bench_engine_options *options,
                               struct bench_report *report, struct error *error)
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
    const struct {
        const char *name;
        double value;
        const char *unit;
        double baseline;
        const char *baseline_name;
    } rows[] = {
        {"world_step", scale.step_ms, "ms", scale.eager_ms, eager},
        {"rate", timed ? flop / scale.step_ms * 1e-9 : 0.0, "TFLOP/s",
         timed ? flop / least_s * devices * 1e-12 : 0.0, "its products at their best alone"},
        /* 48 bits fit a number of a report. */
        {"latents", (double)(scale.latents_sum & 0xFFFFFFFFFFFF), "sum of bits", 0.0,
         "none: equal for equal latents"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bench_add(report, rows[i].value, rows[i].unit, rows[i].baseline, rows[i].baseline_name,
                  "engine.%.24s.%s", options->config, rows[i].name);
    }
    add_all_to_all(options->config, &scale, report);
    return STATUS_OK;
}

/* ---- products of a served model ---- */

static enum status tune_model(const struct device *device, const char *path, uint32_t slots,
                              struct device_tuning *out, struct error *error)
{
    const struct model_open_options open = {.precision = NN_BF16, .device = true};
    struct model *model = NULL;
    TRY(model_open(path, &open, &model, error));
    enum status status = device_tune(device, model, slots, out, error);
    model_close(model);
    return status;
}

static enum status bench_tune(const struct bench_engine_options *options,
                              struct bench_report *report, struct error *error)
{
    struct device device;
    struct device_tuning tuned;
    const char *text = options->slots;
    uint32_t slots = 0;
    TRY(take_slots(&text, &slots, error));
    if (options->model == NULL || *text != 0) {
        return error_set(error, STATUS_USAGE,
                         "bench engine --tune: expected --model and one number of --slots, found "
                         "%s and \"%s\"",
                         options->model == NULL ? "no model" : "a model", options->slots);
    }
    TRY(device_choose(options->device, &device, error));
    if (device.ops == NULL) {
        return error_set(error, STATUS_DEVICE, "bench engine --tune: expected a device, found %s",
                         device.backend);
    }
    TRY(tune_model(&device, options->model, slots, &tuned, error));
    bench_add(report, tuned.chosen_ms, "ms of a tick", tuned.own_ms, "our kernels, not tuned",
              "engine.tune.products");
    bench_add(report, tuned.on_library, "shapes", tuned.shapes, tuned.library,
              "engine.tune.library");
    bench_add(report, tuned.on_tiles, "shapes", tuned.shapes, tuned.path, "engine.tune.tiles");
    return STATUS_OK;
}

enum status bench_engine(const struct bench_engine_options *options, struct bench_report *report,
                         struct error *error)
{
    enum nn_precision precision = NN_BF16;
    struct model *model = NULL;
    if (options->tune) {
        return bench_tune(options, report, error);
    }
    if (options->config != NULL) {
        return bench_scale(options, report, error);
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
            report->count + 2 + BENCH_PHASES_MAX + FANOUT_ROWS + RESUME_ROWS > BENCH_RESULTS_MAX) {
            status = error_set(error, STATUS_USAGE, "--slots: expected fewer numbers");
        }
        THEN(status, bench_model_run(model, slots, options->threads, options->ticks, clock_system(),
                                     &measured, error));
        if (status == STATUS_OK) {
            snprintf(prefix, sizeof prefix, "engine.%s.slots_%u", options->precision, slots);
            add_rows(prefix, &measured, *text == 0, report);
        }
    }
    if (!options->ticks_only) {
        THEN(status, add_fanout(model, report, error));
        THEN(status, add_resume(model, report, error));
    }
    model_close(model);
    return status;
}
