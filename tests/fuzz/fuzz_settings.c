/*
 * Fuzz target: files that people write to steer a fleet and to weigh its results. The first byte
 * chooses the reader, the rest is the file: policies of audits, trust and scaling, exposures,
 * registers of traceability, fleets on paper, manifests of ONNX worlds, logs of the controls
 * challenge. What is accepted keeps its promises; what is refused names the file.
 *
 * The file is in memory (memfd); three quarters of the mutations act on the parsed document
 * (json_mutator.h) where there is one, and leave the first byte alone.
 */
#include "base/check.h"
#include "engine/tinyphysics/controls_log.h"
#include "report/plan/plan_mix.h"
#include "report/risk/exposure.h"
#include "report/traceability/traceability.h"
#include "scheduler/audit.h"
#include "scheduler/scale.h"
#include "scheduler/trust.h"
#include "tests/fuzz/json_mutator.h"
#include "worker/world/world_onnx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed);

static char path[32];

static bool share(double value)
{
    return value >= 0.0 && value <= 1.0;
}

static enum status read_audit(struct error *error)
{
    struct audit_policy policy;
    TRY(audit_policy_load(path, &policy, error));
    CHECK(share(policy.rate) && share(policy.safety_critical_rate));
    CHECK(policy.rule_count <= AUDIT_RULES_MAX);
    for (uint32_t i = 0; i < policy.rule_count; i++) {
        /* The value may be empty: scenarios that do not say. */
        CHECK(share(policy.rules[i].rate) && policy.rules[i].kind < SLICE_KIND_COUNT);
    }
    return STATUS_OK;
}

static enum status read_trust(struct error *error)
{
    static struct trust_policy policy;
    return trust_policy_load(path, &policy, error);
}

static enum status read_scale(struct error *error)
{
    static struct scale_plan plan;
    TRY(scale_plan_load(path, &plan, error));
    CHECK(plan.count <= SCALE_POOLS_MAX);
    return STATUS_OK;
}

static enum status read_exposure(struct error *error)
{
    struct exposure_file *file = NULL;
    enum status status = exposure_load(path, &file, error);
    CHECK((status == STATUS_OK) == (file != NULL));
    if (file != NULL) {
        uint32_t class_index;
        uint32_t member;
        CHECK(isfinite(file->mean_speed_kmh) && file->mean_speed_kmh > 0.0);
        if (exposure_find(file, "ccrs", &class_index, &member)) {
            CHECK(class_index < file->class_count);
        }
    }
    exposure_destroy(file);
    return status;
}

static enum status read_register(struct error *error)
{
    struct trace_register *items = NULL;
    enum status status = trace_register_load(path, &items, error);
    CHECK((status == STATUS_OK) == (items != NULL));
    for (uint32_t kind = 0; items != NULL && kind < TRACE_KIND_COUNT; kind++) {
        for (uint32_t i = 0; i < items->count[kind]; i++) {
            const struct trace_item *item = &items->items[kind][i];
            CHECK(item->id[0] != '\0' && memchr(item->text, '\0', sizeof item->text) != NULL);
            for (uint32_t h = 0; h < item->hazard_count; h++) {
                CHECK(item->hazards[h] < items->count[0]);
            }
        }
    }
    trace_register_destroy(items);
    return status;
}

static enum status read_mix(struct error *error)
{
    static struct day_inputs inputs;
    return plan_mix_load(path, plan_card_find("h100"), &inputs, error);
}

static enum status read_manifest(struct error *error)
{
    static struct world_onnx_manifest manifest;
    TRY(world_onnx_manifest_load(path, &manifest, error));
    CHECK(manifest.state_count <= WORLD_ONNX_STATES_MAX);
    return STATUS_OK;
}

static enum status read_controls(const uint8_t *data, size_t bytes, struct error *error)
{
    struct controls_log log = {0};
    char *text = malloc(bytes + 1);
    CHECK(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    enum status status = controls_log_parse(path, text, bytes, &log, error);
    free(text);
    if (status == STATUS_OK) {
        controls_log_free(&log);
    }
    return status;
}

static enum status (*const readers[])(struct error *error) = {
    read_audit, read_trust, read_scale, read_exposure, read_register, read_mix, read_manifest,
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed)
{
    static const char *const texts[] = {"",       "weather", "fog",     "bulk",   "count",
                                        "factor", "float",   "student", "hazard", "collision"};
    if (bytes < 2 || max < 2 || seed % 16 == 0) {
        return LLVMFuzzerMutate(data, bytes, max);
    }
    return 1 + json_mutate(data + 1, bytes - 1, max - 1, seed / 16, texts, COUNT_OF(texts));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int fd = -1;
    struct error error = {0};
    if (bytes == 0) {
        return 0;
    }
    if (fd < 0) {
        fd = memfd_create("settings", MFD_CLOEXEC);
        CHECK(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    CHECK(ftruncate(fd, 0) == 0);
    CHECK(pwrite(fd, data + 1, bytes - 1, 0) == (ssize_t)(bytes - 1));
    size_t choice = data[0] % (COUNT_OF(readers) + 1);
    enum status status = choice < COUNT_OF(readers) ? readers[choice](&error)
                                                    : read_controls(data + 1, bytes - 1, &error);
    if (status != STATUS_OK) {
        CHECK(status == error.status && strstr(error.text, path) != NULL);
    }
    return 0;
}
