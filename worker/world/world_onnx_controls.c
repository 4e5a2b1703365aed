/*
 * The network of the controls challenge by ONNX Runtime. See world_onnx_controls.h.
 */
#include "worker/world/world_onnx_controls.h"

#include "engine/bench/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = TINYPHYSICS_CONTEXT, INPUTS = TINYPHYSICS_INPUTS, BINS = TINYPHYSICS_BINS };

struct world_onnx_controls {
    const struct world_onnx_host *host;
    struct ort_session *session;
    struct tinyphysics_model *model;
};

/* Tensors of a run, of `count` drives at most TINYPHYSICS_BATCH. */
struct tensors {
    float states[TINYPHYSICS_BATCH][CONTEXT][INPUTS];
    int64_t tokens[TINYPHYSICS_BATCH][CONTEXT];
    float logits[TINYPHYSICS_BATCH][CONTEXT][BINS];
};

static struct ort_tensor tensor_of(const char *name, enum ort_type type, uint32_t count,
                                   int64_t depth, void *data)
{
    struct ort_tensor tensor = {
        .type = type,
        .dim_count = depth > 1 ? 3 : 2,
        .dims = {count, CONTEXT, depth},
        .count = (size_t)count * CONTEXT * (size_t)depth,
        .data = data,
    };
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    return tensor;
}

static enum status run(const struct world_onnx_controls *self, struct tensors *tensors,
                       const struct tinyphysics_window *windows, uint32_t count, float *logits,
                       struct error *error)
{
    const struct world_onnx_manifest *manifest = self->host->manifest;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(tensors->states[i], windows[i].inputs, sizeof tensors->states[i]);
        for (uint32_t t = 0; t < CONTEXT; t++) {
            tensors->tokens[i][t] = windows[i].tokens[t];
        }
    }
    const struct ort_tensor inputs[] = {
        tensor_of(manifest->states, ORT_FLOAT, count, INPUTS, tensors->states),
        tensor_of(manifest->tokens, ORT_INT64, count, 1, tensors->tokens),
    };
    const struct ort_tensor output =
        tensor_of(manifest->logits, ORT_FLOAT, count, BINS, tensors->logits);
    TRY(ort_session_run(self->session, inputs, 2, &output, 1, error));
    for (uint32_t i = 0; i < count; i++) {
        memcpy(logits + (size_t)i * BINS, tensors->logits[i][CONTEXT - 1],
               sizeof tensors->logits[i][0]);
    }
    return STATUS_OK;
}

static enum status make_logits(void *context, const struct tinyphysics_window *windows,
                               uint32_t count, float *logits, struct error *error)
{
    struct tensors *tensors = malloc(sizeof *tensors);
    TRY(memory_check(tensors, error, "no memory for %u drives", count));
    enum status status = run(context, tensors, windows, count, logits, error);
    free(tensors);
    return status;
}

/* Whether the file is such a network at all, and takes several drives at once. */
static enum status try_out(const struct world_onnx_controls *self, struct error *error)
{
    static const struct tinyphysics_window windows[2];
    float logits[2 * BINS];
    return make_logits((void *)(uintptr_t)self, windows, 2, logits, error);
}

enum status world_onnx_controls_open(const struct world_onnx_host *host,
                                     struct world_onnx_controls **out, struct error *error)
{
    struct world_onnx_controls *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "no memory for %s", host->model));
    self->host = host;
    const struct tinyphysics_outside outside = {make_logits, self};
    /* Drives are shared out between threads, each with a run of its own. */
    enum status status = ort_session_open(host->ort, host->model, 1, &self->session, error);
    THEN(status,
         tinyphysics_model_outside(&outside, machine_cpu_flags(NN_FP32), &self->model, error));
    THEN(status, try_out(self, error));
    if (status != STATUS_OK) {
        world_onnx_controls_close(self);
        return status;
    }
    *out = self;
    return STATUS_OK;
}

void world_onnx_controls_close(struct world_onnx_controls *controls)
{
    if (controls != NULL) {
        tinyphysics_model_free(controls->model);
        ort_session_close(controls->session);
        free(controls);
    }
}

const struct tinyphysics_model *world_onnx_controls_model(
    const struct world_onnx_controls *controls)
{
    return controls->model;
}
