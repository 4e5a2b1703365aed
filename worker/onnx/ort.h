/*
 * ONNX Runtime, opened at run time: the few functions of its C API that running a model takes. The
 * library is found by $SWERVE_ONNXRUNTIME (a file), else as libonnxruntime.so.1 or
 * libonnxruntime.so where the system looks; the PyPI wheel onnxruntime carries it as
 * capi/libonnxruntime.so.VERSION.
 *
 * The API is a table of function pointers to which versions append, so an old place keeps its
 * meaning: https://onnxruntime.ai/docs/api/c/struct_ort_api.html. Version 1 of it is asked for.
 */
#ifndef SWERVE_WORKER_ONNX_ORT_H
#define SWERVE_WORKER_ONNX_ORT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { ORT_NAME_BYTES = 64, ORT_DIMS_MAX = 8, ORT_TENSORS_MAX = 32 };

struct ort;         /* the library */
struct ort_session; /* a model */

enum ort_type { ORT_FLOAT = 0, ORT_INT64 };

/* A tensor in memory of the caller's; outputs are of single precision. */
struct ort_tensor {
    char name[ORT_NAME_BYTES];
    enum ort_type type;
    uint32_t dim_count;
    int64_t dims[ORT_DIMS_MAX];
    size_t count; /* of elements */
    void *data;   /* float or int64_t */
};

/* STATUS_DEVICE: the library is not there, or too old; a sentence says where was looked. */
enum status ort_open(struct ort **out, struct error *error);
void ort_close(struct ort *ort); /* accepts NULL */
/* "1.32.0". */
const char *ort_version(const struct ort *ort);
/* The file it was found in. */
const char *ort_path(const struct ort *ort);

/* Basic graph optimisations alone: others change bits from machine to machine. */
enum status ort_session_open(const struct ort *ort, const char *model, uint32_t thread_count,
                             struct ort_session **out, struct error *error);
void ort_session_close(struct ort_session *session); /* accepts NULL */

/* Runs the model, from any thread; outputs are copied to their data. STATUS_BAD_INPUT: an output
 * has another type or number of elements than expected. */
enum status ort_session_run(struct ort_session *session, const struct ort_tensor *inputs,
                            uint32_t input_count, const struct ort_tensor *outputs,
                            uint32_t output_count, struct error *error);

#endif
