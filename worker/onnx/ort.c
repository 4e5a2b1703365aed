/*
 * ONNX Runtime by dlopen. See ort.h.
 */
#include "worker/onnx/ort.h"

#include "base/check.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Places in the table of version 1. */
enum ort_place {
    GET_ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_SESSION_OPTIONS = 10,
    SET_GRAPH_OPTIMIZATION_LEVEL = 23,
    SET_INTRA_OP_THREADS = 24,
    SET_INTER_OP_THREADS = 25,
    CREATE_TENSOR_WITH_DATA = 49,
    GET_TENSOR_DATA = 51,
    GET_TENSOR_ELEMENT_TYPE = 60,
    GET_TENSOR_ELEMENT_COUNT = 64,
    GET_TENSOR_TYPE_AND_SHAPE = 65,
    CREATE_CPU_MEMORY_INFO = 69,
    RELEASE_ENV = 92,
    RELEASE_STATUS = 93,
    RELEASE_MEMORY_INFO = 94,
    RELEASE_SESSION = 95,
    RELEASE_VALUE = 96,
    RELEASE_TENSOR_TYPE_AND_SHAPE = 99,
    RELEASE_SESSION_OPTIONS = 100,
};

enum {
    API_VERSION = 1,
    TYPE_FLOAT = 1,
    TYPE_INT64 = 7,
    ARENA_ALLOCATOR = 1,
    MEMORY_DEFAULT = 0,
    LEVEL_WARNING = 2,
    OPTIMIZE_BASIC = 1,
    PATH_BYTES = 4096,
};

typedef void *ort_status; /* NULL: good */

struct ort {
    void *library;
    void *const *api;
    void *env;
    const char *version;
    char path[PATH_BYTES];
};

struct ort_session {
    const struct ort *ort;
    void *session;
    void *memory_info;
};

/* A function of the table; ISO C has no cast from an object's address to a function's. */
#define FUNCTION(ort, place, type, name) \
    __typeof__(type) name;               \
    memcpy(&(name), &(ort)->api[place], sizeof(name))

static enum status check(const struct ort *ort, ort_status status, const char *what,
                         struct error *error)
{
    if (status == NULL) {
        return STATUS_OK;
    }
    FUNCTION(ort, GET_ERROR_MESSAGE, const char *(*)(ort_status), message);
    FUNCTION(ort, RELEASE_STATUS, void (*)(ort_status), release);
    error_set(error, STATUS_DEVICE, "%s: %.600s", what, message(status));
    release(status);
    return STATUS_DEVICE;
}

static void release(const struct ort *ort, enum ort_place place, void *object)
{
    FUNCTION(ort, place, void (*)(void *), function);
    if (object != NULL) {
        function(object);
    }
}

/* ---- the library ---- */

struct api_base {
    void *const *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
};

static void find_library(struct ort *ort)
{
    const char *given = getenv("SWERVE_ONNXRUNTIME");
    const char *const names[] = {given != NULL && given[0] != '\0' ? given : NULL,
                                 "libonnxruntime.so.1", "libonnxruntime.so"};
    for (size_t i = 0; i < COUNT_OF(names) && ort->library == NULL; i++) {
        if (names[i] != NULL) {
            ort->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
            snprintf(ort->path, sizeof ort->path, "%s", names[i]);
        }
    }
}

static enum status open_library(struct ort *ort, struct error *error)
{
    const struct api_base *(*get_base)(void) = NULL;
    find_library(ort);
    if (ort->library == NULL) {
        return error_set(error, STATUS_DEVICE,
                         "ONNX Runtime: no libonnxruntime.so.1 where the system looks; pip install "
                         "onnxruntime and name its file with "
                         "SWERVE_ONNXRUNTIME=.../onnxruntime/capi/libonnxruntime.so.VERSION");
    }
    void *symbol = dlsym(ort->library, "OrtGetApiBase");
    memcpy(&get_base, &symbol, sizeof get_base);
    const struct api_base *base = get_base != NULL ? get_base() : NULL;
    ort->api = base != NULL ? base->get_api(API_VERSION) : NULL;
    if (ort->api == NULL) {
        return error_set(error, STATUS_DEVICE, "ONNX Runtime: %s has no API of version %d",
                         ort->path, API_VERSION);
    }
    ort->version = base->get_version();
    FUNCTION(ort, CREATE_ENV, ort_status(*)(int, const char *, void **), create);
    return check(ort, create(LEVEL_WARNING, "swerve", &ort->env), "ONNX Runtime", error);
}

enum status ort_open(struct ort **out, struct error *error)
{
    struct ort *ort = calloc(1, sizeof *ort);
    TRY(memory_check(ort, error, "ONNX Runtime: out of memory"));
    enum status status = open_library(ort, error);
    if (status != STATUS_OK) {
        ort_close(ort);
        return status;
    }
    *out = ort;
    return STATUS_OK;
}

void ort_close(struct ort *ort)
{
    if (ort == NULL) {
        return;
    }
    if (ort->env != NULL) {
        release(ort, RELEASE_ENV, ort->env);
    }
    if (ort->library != NULL) {
        dlclose(ort->library);
    }
    free(ort);
}

const char *ort_version(const struct ort *ort)
{
    return ort->version;
}

const char *ort_path(const struct ort *ort)
{
    return ort->path;
}

/* ---- a model ---- */

static enum status create_session(struct ort_session *self, const char *model,
                                  uint32_t thread_count, struct error *error)
{
    const struct ort *ort = self->ort;
    void *options = NULL;
    FUNCTION(ort, CREATE_SESSION_OPTIONS, ort_status(*)(void **), create_options);
    FUNCTION(ort, SET_GRAPH_OPTIMIZATION_LEVEL, ort_status(*)(void *, int), set_level);
    FUNCTION(ort, SET_INTRA_OP_THREADS, ort_status(*)(void *, int), set_intra);
    FUNCTION(ort, SET_INTER_OP_THREADS, ort_status(*)(void *, int), set_inter);
    FUNCTION(ort, CREATE_SESSION, ort_status(*)(void *, const char *, void *, void **), create);
    FUNCTION(ort, CREATE_CPU_MEMORY_INFO, ort_status(*)(int, int, void **), create_info);
    TRY(check(ort, create_options(&options), "ONNX Runtime", error));
    enum status status = check(ort, set_level(options, OPTIMIZE_BASIC), model, error);
    THEN(status, check(ort, set_intra(options, (int)thread_count), model, error));
    THEN(status, check(ort, set_inter(options, 1), model, error));
    THEN(status, check(ort, create(ort->env, model, options, &self->session), model, error));
    THEN(status, check(ort, create_info(ARENA_ALLOCATOR, MEMORY_DEFAULT, &self->memory_info), model,
                       error));
    release(ort, RELEASE_SESSION_OPTIONS, options);
    return status;
}

enum status ort_session_open(const struct ort *ort, const char *model, uint32_t thread_count,
                             struct ort_session **out, struct error *error)
{
    struct ort_session *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "ONNX Runtime: out of memory"));
    self->ort = ort;
    enum status status = create_session(self, model, thread_count, error);
    if (status != STATUS_OK) {
        ort_session_close(self);
        return status;
    }
    *out = self;
    return STATUS_OK;
}

void ort_session_close(struct ort_session *session)
{
    if (session != NULL) {
        release(session->ort, RELEASE_MEMORY_INFO, session->memory_info);
        release(session->ort, RELEASE_SESSION, session->session);
        free(session);
    }
}

/* Copies an output out of the runtime's memory. */
static enum status take_output(const struct ort *ort, void *value, const struct ort_tensor *tensor,
                               struct error *error)
{
    void *about = NULL;
    float *data = NULL;
    int type = 0;
    size_t count = 0;
    FUNCTION(ort, GET_TENSOR_TYPE_AND_SHAPE, ort_status(*)(void *, void **), get_about);
    FUNCTION(ort, GET_TENSOR_ELEMENT_TYPE, ort_status(*)(void *, int *), get_type);
    FUNCTION(ort, GET_TENSOR_ELEMENT_COUNT, ort_status(*)(void *, size_t *), get_count);
    FUNCTION(ort, GET_TENSOR_DATA, ort_status(*)(void *, float **), get_data);
    TRY(check(ort, get_about(value, &about), tensor->name, error));
    enum status status = check(ort, get_type(about, &type), tensor->name, error);
    THEN(status, check(ort, get_count(about, &count), tensor->name, error));
    release(ort, RELEASE_TENSOR_TYPE_AND_SHAPE, about);
    if (status == STATUS_OK && (type != TYPE_FLOAT || count != tensor->count)) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "output \"%s\": expected %zu elements of single precision, found %zu of "
                           "type %d",
                           tensor->name, tensor->count, count, type);
    }
    THEN(status, check(ort, get_data(value, &data), tensor->name, error));
    if (status == STATUS_OK) {
        memcpy(tensor->data, data, count * sizeof *data);
    }
    return status;
}

enum status ort_session_run(struct ort_session *session, const struct ort_tensor *inputs,
                            uint32_t input_count, const struct ort_tensor *outputs,
                            uint32_t output_count, struct error *error)
{
    const struct ort *ort = session->ort;
    void *in[ORT_TENSORS_MAX] = {NULL};
    void *out[ORT_TENSORS_MAX] = {NULL};
    const char *in_names[ORT_TENSORS_MAX] = {NULL};
    const char *out_names[ORT_TENSORS_MAX] = {NULL};
    enum status status = STATUS_OK;
    FUNCTION(ort, CREATE_TENSOR_WITH_DATA,
             ort_status(*)(void *, void *, size_t, const int64_t *, size_t, int, void **), wrap);
    FUNCTION(ort, RUN,
             ort_status(*)(void *, void *, const char *const *, void *const *, size_t,
                           const char *const *, size_t, void **),
             run);
    CHECK(input_count <= ORT_TENSORS_MAX && output_count <= ORT_TENSORS_MAX);
    for (uint32_t i = 0; i < input_count; i++) {
        const bool whole = inputs[i].type == ORT_INT64;
        const size_t bytes = inputs[i].count * (whole ? sizeof(int64_t) : sizeof(float));
        in_names[i] = inputs[i].name;
        THEN(status, check(ort,
                           wrap(session->memory_info, inputs[i].data, bytes, inputs[i].dims,
                                inputs[i].dim_count, whole ? TYPE_INT64 : TYPE_FLOAT, &in[i]),
                           inputs[i].name, error));
    }
    for (uint32_t i = 0; i < output_count; i++) {
        out_names[i] = outputs[i].name;
    }
    THEN(status,
         check(ort,
               run(session->session, NULL, in_names, in, input_count, out_names, output_count, out),
               "run", error));
    for (uint32_t i = 0; i < output_count; i++) {
        THEN(status, take_output(ort, out[i], &outputs[i], error));
        release(ort, RELEASE_VALUE, out[i]);
    }
    for (uint32_t i = 0; i < input_count; i++) {
        release(ort, RELEASE_VALUE, in[i]);
    }
    return status;
}
