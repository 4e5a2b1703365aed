/*
 * A double of ONNX Runtime for the network of the controls challenge: runtime_double.c with a
 * session that reads the file as the engine does and has the engine compute it. It gives the last
 * token's logits alone, NaN for the others, so that whoever takes another row is found out. Where
 * $SWERVE_CONTROLS_RUNS is set, it fails after so many runs.
 */
#include "engine/bench/machine.h"
#include "engine/tinyphysics/tinyphysics_model.h"

#define OrtGetApiBase ego_api_base
#include "tests/worker/world/runtime_double.c"
#undef OrtGetApiBase

#include <stdatomic.h>

enum { TYPE_INT64 = 7, CONTEXT = TINYPHYSICS_CONTEXT, BINS = TINYPHYSICS_BINS };

static atomic_int runs;

static void *open_network(void *env, const char *path, void *options, void **out)
{
    struct tinyphysics_model *model = NULL;
    struct error error;
    (void)env;
    (void)options;
    if (tinyphysics_model_load(path, NN_FP32, machine_cpu_flags(NN_FP32), &model, &error) !=
        STATUS_OK) {
        return fail(error.text);
    }
    *out = model;
    return NULL;
}

static void close_network(void *model)
{
    tinyphysics_model_free(model);
}

static void *wrap_typed(void *info, void *data, size_t bytes, const int64_t *dims, size_t dim_count,
                        int type, void **out)
{
    if (type != TYPE_INT64) {
        return wrap(info, data, bytes, dims, dim_count, type, out);
    }
    struct value *value = calloc(1, sizeof *value);
    *value = (struct value){data, bytes / sizeof(int64_t), 0};
    *out = value;
    return dim_count == 2 && (size_t)(dims[0] * dims[1]) == value->count ? NULL : fail("shape");
}

static struct tinyphysics_window window_of(const float *states, const int64_t *tokens)
{
    struct tinyphysics_window window;
    memcpy(window.inputs, states, sizeof window.inputs);
    for (int t = 0; t < CONTEXT; t++) {
        window.tokens[t] = (uint16_t)tokens[t];
    }
    return window;
}

static void *run_network(void *session, void *options, const char *const *in_names,
                         const void *const *in, size_t in_count, const char *const *out_names,
                         size_t out_count, void **out)
{
    const struct value *states = named(in_names, in, in_count, "states");
    const struct value *tokens = named(in_names, in, in_count, "tokens");
    const char *limit = getenv("SWERVE_CONTROLS_RUNS");
    struct tinyphysics_workspace *workspace = NULL;
    struct error error;
    (void)options;
    if (states == NULL || tokens == NULL || out_count != 1 || strcmp(out_names[0], "output") != 0 ||
        states->count != tokens->count * TINYPHYSICS_INPUTS || tokens->count % CONTEXT != 0) {
        return fail("inputs");
    }
    if (limit != NULL && atomic_fetch_add(&runs, 1) >= atoi(limit)) {
        return fail("the runtime is tired");
    }
    if (tinyphysics_workspace_make(&workspace, &error) != STATUS_OK) {
        return fail(error.text);
    }
    struct value *logits = make(tokens->count * BINS);
    for (size_t i = 0; i < logits->count; i++) {
        logits->data[i] = NAN;
    }
    for (size_t i = 0; i < tokens->count / CONTEXT; i++) {
        const struct tinyphysics_window window =
            window_of(states->data + i * CONTEXT * TINYPHYSICS_INPUTS,
                      (const int64_t *)(const void *)tokens->data + i * CONTEXT);
        const float *found = NULL;
        if (tinyphysics_model_logits(session, workspace, &window, 1, &found, &error) == STATUS_OK) {
            memcpy(logits->data + ((i + 1) * CONTEXT - 1) * BINS, found, BINS * sizeof *found);
        }
    }
    tinyphysics_workspace_free(workspace);
    out[0] = logits;
    return NULL;
}

static void *const *get_controls_api(uint32_t version)
{
    static void *table[PLACES];
    memcpy(table, get_api(version), sizeof table);
    PLACE(7, open_network);
    PLACE(9, run_network);
    PLACE(49, wrap_typed);
    PLACE(95, close_network);
    return table;
}

const struct api_base *OrtGetApiBase(void);
const struct api_base *OrtGetApiBase(void)
{
    static const struct api_base base = {get_controls_api, get_version};
    return &base;
}
