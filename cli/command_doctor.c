/*
 * swerve doctor: what this machine has, what it lacks, and what that means for Swerve.
 */
#include "cli/cli.h"
#include "worker/models/models.h"
#include "worker/onnx/ort.h"
#include "worker/planner/planner.h"
#include "worker/run/revision.h"

#include "base/array.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/bench/machine.h"
#include "engine/learned/device.h"
#include "store/api/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { FSYNC_SAMPLES = 31 };

/* Median time of a 4 KiB write and fdatasync in `directory`, ns; -1 with errno when it cannot. */
static int64_t fsync_p50_ns(const char *directory)
{
    char path[LIMIT_PATH_BYTES];
    char block[4096] = {1};
    int64_t samples[FSYNC_SAMPLES];
    const struct clock *clock = clock_system();
    snprintf(path, sizeof path, "%s/swerve-doctor-XXXXXX", directory);
    int fd = mkstemp(path);
    if (fd < 0) {
        return -1;
    }
    bool good = true;
    for (int i = 0; i < FSYNC_SAMPLES && good; i++) {
        int64_t start_ns = clock_now_ns(clock);
        good = write(fd, block, sizeof block) == (ssize_t)sizeof block && fdatasync(fd) == 0;
        samples[i] = clock_now_ns(clock) - start_ns;
    }
    close(fd);
    unlink(path);
    if (!good) {
        return -1;
    }
    qsort(samples, FSYNC_SAMPLES, sizeof *samples, array_compare_int64);
    return samples[FSYNC_SAMPLES / 2];
}

static void check_line(bool json, json_t *list, const char *what, bool good, const char *text)
{
    if (json) {
        json_array_append_new(
            list, json_pack("{s:s, s:b, s:s}", "check", what, "ok", good, "text", text));
    } else {
        text_print(stdout, "%-4s %-10s %s\n", good ? "ok" : "BAD", what, text);
    }
}

/* Something that one may do without is not here. */
static void none_line(bool json, json_t *list, const char *what, const char *text)
{
    if (json) {
        json_array_append_new(list, json_pack("{s:s, s:b, s:b, s:s}", "check", what, "ok", 1,
                                              "none", 1, "text", text));
    } else {
        text_print(stdout, "none %-10s %s\n", what, text);
    }
}

static bool check_disk(bool json, json_t *list)
{
    char text[256];
    struct statvfs disk;
    if (statvfs(".", &disk) != 0) {
        snprintf(text, sizeof text, "cannot ask about the disk here: %s", strerror(errno));
        check_line(json, list, "disk", false, text);
        return false;
    }
    double free_gb = (double)disk.f_bavail * (double)disk.f_frsize / 1e9;
    int64_t fsync_ns = fsync_p50_ns(".");
    bool good = free_gb > 1.0 && fsync_ns >= 0;
    if (fsync_ns < 0) {
        snprintf(text, sizeof text, "cannot write here: %s", strerror(errno));
    } else {
        snprintf(text, sizeof text, "%.1f GB free, a durable write takes %.2f ms", free_gb,
                 (double)fsync_ns / (double)NS_PER_MS);
    }
    check_line(json, list, "disk", good, text);
    return good;
}

static bool check_store(bool json, json_t *list)
{
    char directory[] = "/tmp/swerve-doctor-XXXXXX";
    char path[64];
    char text[ERROR_TEXT_BYTES + 32];
    struct error error = {0};
    const struct store_config config = {0};
    struct store *store = NULL;
    if (mkdtemp(directory) == NULL) {
        snprintf(text, sizeof text, "cannot create a directory in /tmp: %s", strerror(errno));
        check_line(json, list, "store", false, text);
        return false;
    }
    snprintf(path, sizeof path, "%s/doctor.db", directory);
    bool good = store_open(path, &config, &store, &error) == STATUS_OK;
    if (good) {
        store->ops->close(store);
        snprintf(text, sizeof text, "a job store opens and closes");
    } else {
        snprintf(text, sizeof text, "%s", error.text);
    }
    if (!file_remove_tree(directory)) {
        snprintf(text, sizeof text, "cannot remove %s: %s", directory, strerror(errno));
        good = false;
    }
    check_line(json, list, "store", good, text);
    return good;
}

/* Whether the commands of a shared store could be run here. A machine that cannot is still good for
 * its owner's planners. */
static void check_sandbox(bool json, json_t *list)
{
    char text[ERROR_TEXT_BYTES + 64];
    struct error error = {0};
    const struct planner_confinement confined = {.sandbox = true, .environment_listed = true};
    if (planner_confinement_check(&confined, &error) == STATUS_OK) {
        snprintf(
            text, sizeof text,
            "exec planners can be confined; by default those of a remote store are, those of a "
            "store that is a path are not");
        check_line(json, list, "sandbox", true, text);
    } else {
        snprintf(text, sizeof text, "exec planners cannot be confined: %s", error.text);
        none_line(json, list, "sandbox", text);
    }
}

/* Only worlds of the user's need it, so that nothing is bad without it. */
static void check_onnx(bool json, json_t *list)
{
    char text[LIMIT_PATH_BYTES + 64];
    struct ort *ort = NULL;
    struct error error;
    if (ort_open(&ort, &error) == STATUS_OK) {
        snprintf(text, sizeof text, "ONNX Runtime %s (%s)", ort_version(ort), ort_path(ort));
        check_line(json, list, "onnx", true, text);
    } else {
        snprintf(text, sizeof text, "no --world onnx: here: %s", error.text);
        none_line(json, list, "onnx", text);
    }
    ort_close(ort);
}

/* Both promoted models are there and their files are what was promoted. */
static bool check_models(bool json, json_t *list)
{
    static const enum tier tiers[] = {TIER_STUDENT, TIER_TEACHER};
    char text[ERROR_TEXT_BYTES] = "";
    struct error error;
    struct models *models = NULL;
    enum status status = models_open(NULL, NULL, &models, &error);
    for (size_t i = 0; i < COUNT_OF(tiers) && status == STATUS_OK; i++) {
        const struct models_model *model = NULL;
        if (!models_available(models, tiers[i])) {
            status = models_missing(NULL, tiers[i], &error);
            break;
        }
        status = models_promoted(models, tiers[i], NN_BF16, &model, &error);
        if (status == STATUS_OK) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, "%s%s %.12s answers for the %s",
                     used > 0 ? ", " : "", model->name, model->hash, tier_names[tiers[i]]);
        }
    }
    if (status == STATUS_OK) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, " (%.400s)", models_registry(models)->directory);
    }
    check_line(json, list, "models", status == STATUS_OK, status == STATUS_OK ? text : error.text);
    models_close(models);
    return status == STATUS_OK;
}

int command_doctor(int argc, char **argv)
{
    bool json = false;
    const struct cli_option rows[] = {
        {"--json", NULL, "print one JSON object", .flag = &json},
    };
    const struct cli_command command = {
        "doctor",
        "",
        "What this machine has and what it lacks.",
        CLI_ROWS(rows, 0, 0),
    };
    char text[512];
    int code = 0;
    CLI_PARSE(&command, argc, argv, NULL, NULL);
    json_t *list = json_array();
    snprintf(text, sizeof text, "%s, simulation revision %.12s", SWERVE_VERSION, revision_hash);
    check_line(json, list, "swerve", true, text);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    double memory_gb = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1e9;
    snprintf(text, sizeof text, "%ld cores, %.0f GB memory%s%s", cores, memory_gb,
             __builtin_cpu_supports("avx2") ? ", AVX2" : "",
             __builtin_cpu_supports("avx512f") ? ", AVX-512" : "");
    check_line(json, list, "machine", memory_gb > 1.0, text);
    machine_describe(text, sizeof text);
    check_line(json, list, "products", true, text);
    bool good = memory_gb > 1.0;
    good = check_disk(json, list) && good;
    good = check_store(json, list) && good;
    bool python = access("/usr/bin/python3", X_OK) == 0;
    check_line(json, list, "python", true,
               python ? "python3 is there for exec: planners"
                      : "no /usr/bin/python3: exec: planners in Python need one");
    good = check_models(json, list) && good;
    check_onnx(json, list);
    check_sandbox(json, list);
    char gpu[ERROR_TEXT_BYTES];
    if (device_describe(gpu, sizeof gpu) > 0) {
        check_line(json, list, "gpu", true, gpu);
    } else {
        none_line(json, list, "gpu", gpu);
    }
    if (json) {
        code = cli_print_json(json_pack("{s:b, s:O}", "ok", good, "checks", list));
    }
    json_decref(list);
    return code != 0 ? code : good ? 0 : status_exit_code(STATUS_DEVICE);
}
