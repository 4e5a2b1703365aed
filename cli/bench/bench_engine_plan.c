/*
 * `swerve bench engine --plan`: a world step on GPUs that are not here (engine/bench/bench_plan.h),
 * as tables or JSON.
 */
#include "cli/bench/bench.h"

#include "base/embedded.h"
#include "base/text.h"
#include "engine/bench/bench_plan.h"

#include <stdio.h>

extern const struct embedded_text machine_code_texts[];

enum { SHOWN = 1 }; /* the H200, of which rows say cycles */

static json_t *row_json(const struct bench_plan *plan, const struct bench_plan_row *row)
{
    json_t *on = json_object();
    for (int i = 0; i < BENCH_PLAN_DEVICES; i++) {
        if (plan->devices[i].runs != 0) {
            json_object_set_new(on, plan->devices[i].name,
                                json_pack("{s:f, s:f, s:f}", "tensor_cycles",
                                          row->on[i].tensor_cycles, "issue_cycles",
                                          row->on[i].issue_cycles, "ms", row->on[i].s * 1e3));
        }
    }
    return json_pack("{s:s, s:s, s:s, s:i, s:f, s:f, s:o}", "kernel", row->kernel, "weights",
                     row->name, "type", row->type, "launches", (int)row->launches, "flop",
                     row->flop, "bytes", row->bytes, "on", on);
}

static json_t *device_json(const struct bench_plan_device *d)
{
    return json_pack("{s:s, s:s, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i}", "name", d->name,
                     "code", d->code, "runs", d->runs != 0, "usd_per_hour", d->usd_per_hour,
                     "compute_ms", d->compute_s * 1e3, "exchange_ms", d->exchange_s * 1e3,
                     "step_ms", d->step_s * 1e3, "chunked_ms", d->chunked_s * 1e3,
                     "miles_per_gpu_hour", d->miles_per_hour, "usd_per_mile", d->usd_per_mile,
                     "slots", (int)d->slots);
}

static json_t *plan_json(const struct bench_plan *plan)
{
    json_t *rows = json_array();
    json_t *devices = json_array();
    for (uint32_t i = 0; i < plan->row_count; i++) {
        json_array_append_new(rows, row_json(plan, &plan->rows[i]));
    }
    for (int i = 0; i < BENCH_PLAN_DEVICES; i++) {
        json_array_append_new(devices, device_json(&plan->devices[i]));
    }
    return json_pack(
        "{s:s, s:b, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}",
        "name", plan->name, "measured", 0, "tokens", (int)plan->tokens, "steps", (int)plan->steps,
        "ranks", (int)plan->ranks, "launches", (int)plan->launches, "exchanges",
        (int)plan->exchanges, "parameters", plan->parameters, "flop", plan->flop, "bytes",
        plan->bytes, "exchanged_bytes", plan->exchanged_bytes, "weight_bytes", plan->weight_bytes,
        "workspace_bytes", plan->workspace_bytes, "page_bytes", plan->page_bytes, "window_bytes",
        plan->window_bytes, "rows", rows, "devices", devices);
}

static void print_rows(const struct bench_plan *plan)
{
    text_print(stdout, "%-12s %-12s %-5s %8s %10s %9s %12s %11s %8s\n", "kernel", "weights", "type",
               "launches", "GFLOP", "GB", "tensor kcyc", "issue kcyc", "ms");
    for (uint32_t i = 0; i < plan->row_count; i++) {
        const struct bench_plan_row *row = &plan->rows[i];
        const struct bench_plan_time *on = &row->on[SHOWN];
        text_print(stdout, "%-12s %-12s %-5s %8u %10.1f %9.2f %12.1f %11.1f %8.2f\n", row->kernel,
                   row->name, row->type, row->launches, row->flop * 1e-9, row->bytes * 1e-9,
                   on->tensor_cycles * 1e-3, on->issue_cycles * 1e-3, on->s * 1e3);
    }
}

static void print_devices(const struct bench_plan *plan)
{
    text_print(stdout, "\n%-6s %12s %12s %11s %13s %8s %9s %12s\n", "GPU", "exchange ms",
               "one by one", "in chunks", "miles/GPU h", "$/hour", "$/mile", "slots at 80%");
    for (int i = 0; i < BENCH_PLAN_DEVICES; i++) {
        const struct bench_plan_device *d = &plan->devices[i];
        if (d->runs == 0) {
            text_print(stdout, "%-6s has no e4m3, of which the model is\n", d->name);
            continue;
        }
        text_print(stdout, "%-6s %12.1f %12.1f %11.1f %13.3f %8.2f %9.4f %12u\n", d->name,
                   d->exchange_s * 1e3, d->step_s * 1e3, d->chunked_s * 1e3, d->miles_per_hour,
                   d->usd_per_hour, d->usd_per_mile, d->slots);
    }
}

enum status bench_engine_plan(const struct bench_engine_options *options, json_t **json,
                              struct error *error)
{
    struct bench_plan plan;
    if ((options->model != NULL) == (options->config != NULL)) {
        return error_set(error, STATUS_USAGE,
                         "bench engine --plan: expected --model or --config, found %s",
                         options->model != NULL ? "both" : "none");
    }
    if (options->ranks < 0 || options->ranks > UINT32_MAX) {
        return error_set(error, STATUS_USAGE,
                         "bench engine --plan: expected some --ranks, found %lld",
                         (long long)options->ranks);
    }
    TRY(bench_plan_make(options->model, options->config, (uint32_t)options->ranks,
                        machine_code_texts[0].text, &plan, error));
    if (json != NULL) {
        *json = plan_json(&plan);
        return STATUS_OK;
    }
    text_print(
        stdout,
        "%s: a plan, nothing is measured. %u tokens, %u steps, %.3f G parameters; a world "
        "step of %s: %u launches, %.3f TFLOP, %.1f GB; %.2f GB of weights, %.3f GB a page\n\n",
        plan.name, plan.tokens, plan.steps, plan.parameters * 1e-9,
        plan.ranks > 1 ? "each rank" : "one GPU", plan.launches, plan.flop * 1e-12,
        plan.bytes * 1e-9, plan.weight_bytes * 1e-9, plan.page_bytes * 1e-9);
    print_rows(&plan);
    print_devices(&plan);
    return STATUS_OK;
}
