/*
 * swerve controls: comma.ai's controls challenge, digit for digit (docs/controls.md).
 */
#include "engine/bench/machine.h"
#include "engine/tinyphysics/tinyphysics_run.h"
#include "worker/cli/cli.h"

#include "base/array.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

#include <dirent.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_BYTES_MAX = 64 << 20, ARGUMENTS_MAX = 256, DIGEST_BYTES = 16, SEEDS = 10000 };

struct controls {
    const char *model_path;
    const char *controller_name;
    enum tinyphysics_controller controller;
    int64_t threads;
    bool json;
    char **paths; /* owned */
    uint32_t count;
    struct controls_log *logs;
    struct tinyphysics_drive *drives;
};

/* The path as Python's pathlib writes it, which is what the reference hashes: no "." between
 * slashes, no doubled slashes, none at the end. `out` has room for the path. */
static void path_plain(const char *path, char *out)
{
    char *to = out;
    if (*path == '/') {
        *to++ = '/';
    }
    while (*path != 0) {
        const size_t length = strcspn(path, "/");
        if (length > 0 && !(length == 1 && path[0] == '.')) {
            if (to != out && to[-1] != '/') {
                *to++ = '/';
            }
            memmove(to, path, length);
            to += length;
        }
        path += length + (path[length] == '/');
    }
    if (to == out) {
        *to++ = '.';
    }
    *to = 0;
}

/* int(md5(path).hexdigest(), 16) % 10000. */
static enum status path_seed(const char *path, uint32_t *out, struct error *error)
{
    uint8_t digest[DIGEST_BYTES];
    const int code = gnutls_hash_fast(GNUTLS_DIG_MD5, path, strlen(path), digest);
    if (code < 0) { /* where only approved algorithms are allowed */
        return error_set(error, STATUS_DEVICE, "MD5, which seeds are made with: %s",
                         gnutls_strerror(code));
    }
    *out = 0;
    for (int i = 0; i < DIGEST_BYTES; i++) {
        *out = (*out * 256 + digest[i]) % SEEDS;
    }
    return STATUS_OK;
}

static enum status add_path(struct controls *controls, const char *folder, const char *name,
                            struct error *error)
{
    const size_t bytes = strlen(folder) + strlen(name) + 2;
    char *path = malloc(2 * bytes);
    TRY(memory_check(path, error, "controls: no memory for a path"));
    snprintf(path + bytes, bytes, "%s%s%s", folder, folder[0] != 0 ? "/" : "", name);
    path_plain(path + bytes, path);
    enum status status = array_room(&controls->paths, controls->count, sizeof path, error);
    if (status == STATUS_OK) {
        controls->paths[controls->count++] = path;
    } else {
        free(path);
    }
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every .csv of a folder, in the order of their names. */
static enum status add_folder(struct controls *controls, const char *folder, struct error *error)
{
    const uint32_t first = controls->count;
    enum status status = STATUS_OK;
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        return error_set(error, STATUS_IO, "%s: cannot open: %s", folder, strerror(errno));
    }
    for (const struct dirent *entry; status == STATUS_OK && (entry = readdir(directory)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length > 4 && strcmp(entry->d_name + length - 4, ".csv") == 0) {
            status = add_path(controls, folder, entry->d_name, error);
        }
    }
    closedir(directory);
    TRY(status);
    if (controls->count == first) {
        return error_set(error, STATUS_NOT_FOUND, "%s: expected .csv files, found none", folder);
    }
    qsort(controls->paths + first, controls->count - first, sizeof *controls->paths, by_name);
    return STATUS_OK;
}

static enum status read_log(struct controls *controls, uint32_t index, struct error *error)
{
    const char *path = controls->paths[index];
    struct tinyphysics_drive *drive = &controls->drives[index];
    char *text;
    size_t bytes;
    TRY(file_read(path, LOG_BYTES_MAX, &text, &bytes, error));
    enum status status = controls_log_parse(path, text, bytes, &controls->logs[index], error);
    free(text);
    drive->log = &controls->logs[index];
    THEN(status, path_seed(path, &drive->seed, error));
    return status;
}

static enum status read_logs(struct controls *controls, struct error *error)
{
    controls->logs = calloc(controls->count, sizeof *controls->logs);
    controls->drives = calloc(controls->count, sizeof *controls->drives);
    TRY(memory_check(controls->logs, error, "controls: no memory for %u logs", controls->count));
    TRY(memory_check(controls->drives, error, "controls: no memory for %u logs", controls->count));
    for (uint32_t i = 0; i < controls->count; i++) {
        TRY(read_log(controls, i, error));
    }
    return STATUS_OK;
}

static json_t *costs_json(const struct tinyphysics_costs *costs)
{
    return json_pack("{s:f, s:f, s:f}", "lataccel_cost", costs->lataccel, "jerk_cost", costs->jerk,
                     "total_cost", costs->total);
}

static int print(const struct controls *controls, double seconds)
{
    struct tinyphysics_costs mean = {0};
    json_t *list = json_array();
    if (!controls->json) {
        text_print(stdout, "%14s %14s %14s  %s\n", "lataccel_cost", "jerk_cost", "total_cost",
                   "log");
    }
    for (uint32_t i = 0; i < controls->count; i++) {
        const struct tinyphysics_costs *costs = &controls->drives[i].costs;
        mean.lataccel += costs->lataccel / controls->count;
        mean.jerk += costs->jerk / controls->count;
        mean.total += costs->total / controls->count;
        if (controls->json) {
            json_t *row = costs_json(costs);
            json_object_set_new(row, "log", json_string(controls->paths[i]));
            json_object_set_new(row, "seed", json_integer(controls->drives[i].seed));
            json_array_append_new(list, row);
        } else {
            text_print(stdout, "%14.6f %14.6f %14.6f  %s\n", costs->lataccel, costs->jerk,
                       costs->total, controls->paths[i]);
        }
    }
    if (controls->json) {
        return cli_print_json(json_pack("{s:s, s:o, s:o, s:f}", "controller",
                                        controls->controller_name, "logs", list, "mean",
                                        costs_json(&mean), "seconds", seconds));
    }
    json_decref(list);
    text_print(stdout, "%14.6f %14.6f %14.6f  mean of %u, %s, %.1f s\n", mean.lataccel, mean.jerk,
               mean.total, controls->count, controls->controller_name, seconds);
    return 0;
}

static enum status drive(struct controls *controls, double *seconds, struct error *error)
{
    struct tinyphysics_model *model = NULL;
    struct threads *threads = NULL;
    enum status status =
        tinyphysics_model_load(controls->model_path, machine_cpu_flags(), &model, error);
    THEN(status, read_logs(controls, error));
    THEN(status, threads_create((uint32_t)controls->threads, &threads, error));
    const int64_t start_ns = clock_now_ns(clock_system());
    THEN(status, tinyphysics_run(model, controls->controller, threads, controls->drives,
                                 controls->count, error));
    *seconds = (double)(clock_now_ns(clock_system()) - start_ns) / (double)NS_PER_S;
    threads_destroy(threads);
    tinyphysics_model_free(model);
    return status;
}

static enum status settle(struct controls *controls, struct error *error)
{
    if (controls->model_path == NULL) {
        return error_set(error, STATUS_USAGE,
                         "controls: expected --model FILE, the challenge's tinyphysics.onnx");
    }
    if (controls->threads < 1 || controls->threads > THREADS_MAX) {
        return error_set(error, STATUS_USAGE, "controls: expected --threads 1 to %d, found %lld",
                         THREADS_MAX, (long long)controls->threads);
    }
    for (int i = 0; i < TINYPHYSICS_CONTROLLER_COUNT; i++) {
        if (strcmp(controls->controller_name, tinyphysics_controller_names[i]) == 0) {
            controls->controller = (enum tinyphysics_controller)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_USAGE,
                     "controls: expected --controller pid or zero, found \"%s\"",
                     controls->controller_name);
}

static enum status gather(struct controls *controls, const char *const *arguments, uint32_t count,
                          struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        struct stat info;
        if (stat(arguments[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            TRY(add_folder(controls, arguments[i], error));
        } else {
            TRY(add_path(controls, "", arguments[i], error));
        }
    }
    return STATUS_OK;
}

static void release(struct controls *controls)
{
    for (uint32_t i = 0; i < controls->count; i++) {
        if (controls->logs != NULL) {
            controls_log_free(&controls->logs[i]);
        }
        free(controls->paths[i]);
    }
    free(controls->paths);
    free(controls->logs);
    free(controls->drives);
}

int command_controls(int argc, char **argv)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct controls controls = {
        .controller_name = "pid",
        .threads = cores < 1             ? 1
                   : cores > THREADS_MAX ? THREADS_MAX
                                         : cores,
    };
    const struct cli_option rows[] = {
        {"--model", "FILE", "the challenge's tinyphysics.onnx", .text = &controls.model_path},
        {"--controller", "NAME", "pid or zero (pid)", .text = &controls.controller_name},
        {"--threads", "N", "1 to 64 (one for each core)", .number = &controls.threads},
        {"--json", NULL, "print one JSON object", .flag = &controls.json},
    };
    const struct cli_command command = {
        "controls",
        "FILE.csv|FOLDER... --model FILE [options]",
        "Drives logs of comma.ai's controls challenge: its simulator, its costs.",
        rows,
        COUNT_OF(rows),
        1,
        ARGUMENTS_MAX,
    };
    const char *arguments[ARGUMENTS_MAX] = {NULL};
    uint32_t count = 0;
    bool help;
    double seconds = 0.0;
    struct error error;
    int code = cli_parse(&command, argc, argv, arguments, &count, &help);
    if (code != 0 || help) {
        return code;
    }
    enum status status = settle(&controls, &error);
    THEN(status, gather(&controls, arguments, count, &error));
    THEN(status, drive(&controls, &seconds, &error));
    code = status == STATUS_OK ? print(&controls, seconds) : cli_fail(&error);
    release(&controls);
    return code;
}
