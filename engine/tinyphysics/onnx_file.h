/*
 * ONNX file: the weights of an exported network by the names that its exporter gave. Reads what
 * tinyphysics needs of the format (ModelProto.graph, its nodes and initialisers; onnx.proto3 of
 * ONNX 1.14) and nothing runs it.
 *
 * Everything in the file is untrusted: lengths are checked against what is there, there is no
 * recursion, and nothing is allocated by what the file says.
 */
#ifndef SWERVE_ENGINE_TINYPHYSICS_ONNX_FILE_H
#define SWERVE_ENGINE_TINYPHYSICS_ONNX_FILE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { ONNX_FILE_BYTES_MAX = 64 << 20, ONNX_NAME_BYTES = 128, ONNX_RANK_MAX = 4 };

struct onnx_file {
    const char *path; /* borrowed, for errors */
    char *data;
    const uint8_t *graph; /* in data */
    size_t graph_bytes;
};

/* NOT_FOUND, IO, LIMIT, BAD_INPUT; zero the struct before, onnx_file_close it after in every case.
 */
enum status onnx_file_open(const char *path, struct onnx_file *file, struct error *error);
void onnx_file_close(struct onnx_file *file);

/* The second input of the node of that name, which must be of type `operation`: for a MatMul its
 * weights. BAD_INPUT names the file, the node and what was found. */
enum status onnx_file_weights(const struct onnx_file *file, const char *node, const char *operation,
                              char out[ONNX_NAME_BYTES], struct error *error);

/* Copies an initialiser of floats whose dimensions are dims[0 .. rank - 1]. BAD_INPUT: it is not
 * there, has another type or shape, or holds a number that is not finite. */
enum status onnx_file_floats(const struct onnx_file *file, const char *name, const uint32_t *dims,
                             uint32_t rank, float *out, struct error *error);

#endif
