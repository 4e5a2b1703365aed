/*
 * swerve controls: comma.ai's controls challenge, digit for digit (docs/controls.md).
 */
#include "cli/cli.h"
#include "cli/controls/controls_files.h"
#include "engine/bench/machine.h"
#include "engine/tinyphysics/tinyphysics_device.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 256 };

struct controls_command {
    const char *model_path;
    const char *controller_name;
    enum tinyphysics_controller controller;
    const char *precision_name;
    enum nn_precision precision;
    const char *device_name;
    struct device device;
    int64_t threads;
    bool json;
    struct controls_files files;
    struct controls_log *logs;
    struct tinyphysics_drive *drives;
};

static enum status read_logs(struct controls_command *controls, struct error *error)
{
    controls->logs = calloc(controls->files.count, sizeof *controls->logs);
    controls->drives = calloc(controls->files.count, sizeof *controls->drives);
    TRY(memory_check(controls->logs, error, "controls: no memory for %u logs",
                     controls->files.count));
    TRY(memory_check(controls->drives, error, "controls: no memory for %u logs",
                     controls->files.count));
    for (uint32_t i = 0; i < controls->files.count; i++) {
        TRY(controls_file_read(controls->files.paths[i], &controls->logs[i],
                               &controls->drives[i].seed, error));
        controls->drives[i].log = &controls->logs[i];
    }
    return STATUS_OK;
}

static json_t *costs_json(const struct tinyphysics_costs *costs)
{
    return json_pack("{s:f, s:f, s:f}", "lataccel_cost", costs->lataccel, "jerk_cost", costs->jerk,
                     "total_cost", costs->total);
}

static int print(const struct controls_command *controls, double seconds)
{
    struct tinyphysics_costs mean = {0};
    json_t *list = json_array();
    if (!controls->json) {
        text_print(stdout, "%14s %14s %14s  %s\n", "lataccel_cost", "jerk_cost", "total_cost",
                   "log");
    }
    for (uint32_t i = 0; i < controls->files.count; i++) {
        const struct tinyphysics_costs *costs = &controls->drives[i].costs;
        mean.lataccel += costs->lataccel / controls->files.count;
        mean.jerk += costs->jerk / controls->files.count;
        mean.total += costs->total / controls->files.count;
        if (controls->json) {
            json_t *row = costs_json(costs);
            json_object_set_new(row, "log", json_string(controls->files.paths[i]));
            json_object_set_new(row, "seed", json_integer(controls->drives[i].seed));
            json_array_append_new(list, row);
        } else {
            text_print(stdout, "%14.6f %14.6f %14.6f  %s\n", costs->lataccel, costs->jerk,
                       costs->total, controls->files.paths[i]);
        }
    }
    if (controls->json) {
        return cli_print_json(json_pack(
            "{s:s, s:s, s:o, s:o, s:f}", "controller", controls->controller_name, "precision",
            controls->precision_name, "logs", list, "mean", costs_json(&mean), "seconds", seconds));
    }
    json_decref(list);
    text_print(stdout, "%14.6f %14.6f %14.6f  mean of %u, %s, %s, %.1f s\n", mean.lataccel,
               mean.jerk, mean.total, controls->files.count, controls->controller_name,
               controls->precision_name, seconds);
    return 0;
}

static enum status drive_on_cpu(struct controls_command *controls, double *seconds,
                                struct error *error)
{
    struct tinyphysics_model *model = NULL;
    struct threads *threads = NULL;
    enum status status =
        tinyphysics_model_load(controls->model_path, controls->precision,
                               machine_cpu_flags(controls->precision), &model, error);
    THEN(status, read_logs(controls, error));
    THEN(status, threads_create((uint32_t)controls->threads, &threads, error));
    const int64_t start_ns = clock_now_ns(clock_system());
    THEN(status, tinyphysics_run(model, controls->controller, threads, controls->drives,
                                 controls->files.count, error));
    *seconds = (double)(clock_now_ns(clock_system()) - start_ns) / (double)NS_PER_S;
    threads_destroy(threads);
    tinyphysics_model_free(model);
    return status;
}

static enum status drive(struct controls_command *controls, double *seconds, struct error *error)
{
    if (controls->device.ops == NULL) {
        return drive_on_cpu(controls, seconds, error);
    }
    struct tinyphysics_weights *weights = malloc(sizeof *weights);
    TRY(memory_check(weights, error, "controls: no memory for the weights"));
    enum status status = tinyphysics_weights_load(controls->model_path, weights, error);
    THEN(status, read_logs(controls, error));
    THEN(status, tinyphysics_device_run(&controls->device, weights, controls->controller,
                                        controls->drives, controls->files.count, seconds, error));
    free(weights);
    return status;
}

static enum status settle(struct controls_command *controls, struct error *error)
{
    if (controls->model_path == NULL) {
        return error_set(error, STATUS_USAGE,
                         "controls: expected --model FILE, the challenge's tinyphysics.onnx");
    }
    if (controls->threads < 1 || controls->threads > THREADS_MAX) {
        return error_set(error, STATUS_USAGE, "controls: expected --threads 1 to %d, found %lld",
                         THREADS_MAX, (long long)controls->threads);
    }
    controls->precision =
        (enum nn_precision)cli_name(controls->precision_name, nn_precision_names, NN_BF16 + 1);
    if (controls->precision > NN_BF16) {
        return error_set(error, STATUS_USAGE,
                         "controls: expected --precision fp32 or bf16, found \"%s\"",
                         controls->precision_name);
    }
    TRY(device_choose(controls->device_name, &controls->device, error));
    if (controls->device.ops != NULL && controls->precision != NN_FP32) {
        return error_set(error, STATUS_USAGE, "controls: --device %s drives in fp32 alone",
                         controls->device_name);
    }
    controls->controller = (enum tinyphysics_controller)cli_name(
        controls->controller_name, tinyphysics_controller_names, TINYPHYSICS_CONTROLLER_COUNT);
    return controls->controller < TINYPHYSICS_CONTROLLER_COUNT
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "controls: expected --controller pid or zero, found \"%s\"",
                           controls->controller_name);
}

static void release(struct controls_command *controls)
{
    for (uint32_t i = 0; controls->logs != NULL && i < controls->files.count; i++) {
        controls_log_free(&controls->logs[i]);
    }
    controls_files_free(&controls->files);
    free(controls->logs);
    free(controls->drives);
}

int command_controls(int argc, char **argv)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct controls_command controls = {
        .controller_name = "pid",
        .precision_name = nn_precision_names[NN_FP32],
        .device_name = "cpu",
        .threads = cores < 1             ? 1
                   : cores > THREADS_MAX ? THREADS_MAX
                                         : cores,
    };
    const struct cli_option rows[] = {
        {"--model", "FILE", "the challenge's tinyphysics.onnx", .text = &controls.model_path},
        {"--controller", "NAME", "pid or zero (pid)", .text = &controls.controller_name},
        {"--precision", "NAME", "of the network: fp32 or bf16 (fp32)",
         .text = &controls.precision_name},
        {"--device", "NAME", "cpu, cuda:N, or auto (cpu)", .text = &controls.device_name},
        {"--threads", "N", "1 to 64 (one for each core)", .number = &controls.threads},
        {"--json", NULL, "print one JSON object", .flag = &controls.json},
    };
    const struct cli_command command = {
        "controls",
        "FILE.csv|FOLDER... --model FILE [options]",
        "Drives logs of comma.ai's controls challenge: its simulator, its costs.",
        CLI_ROWS(rows, 1, ARGUMENTS_MAX),
    };
    const char *arguments[ARGUMENTS_MAX] = {NULL};
    uint32_t count = 0;
    double seconds = 0.0;
    struct error error;
    int code = 0;
    CLI_PARSE(&command, argc, argv, arguments, &count);
    enum status status = settle(&controls, &error);
    THEN(status, controls_files_find(arguments, count, &controls.files, &error));
    THEN(status, drive(&controls, &seconds, &error));
    code = status == STATUS_OK ? print(&controls, seconds) : cli_fail(&error);
    release(&controls);
    return code;
}
