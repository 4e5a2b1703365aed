/*
 * Shard file: writes a safetensors file of known shapes piece by piece, in any order. The file
 * appears under its name only when it is complete: it grows beside it under a temporary name.
 *
 * Format: 8 bytes little-endian header length, a JSON object {"__metadata__": {string: string},
 * name: {"dtype", "shape", "data_offsets"}}, then the tensors without gaps. Little-endian machines
 * only. See https://github.com/huggingface/safetensors.
 */
#ifndef SWERVE_WORKER_DATAGEN_SHARD_FILE_H
#define SWERVE_WORKER_DATAGEN_SHARD_FILE_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { SHARD_RANK_MAX = 6, SHARD_TENSORS_MAX = 64 };

struct shard_tensor {
    const char *name;
    const char *dtype; /* "U8", "I32", "I64", "F32" */
    uint32_t rank;
    uint64_t shape[SHARD_RANK_MAX];
};

struct shard_file;

/* Creates the temporary file beside `path` (NULL: in memory) with its header and full size.
 * `metadata` is an object of strings, borrowed. Tensors lie in the order given: put those with
 * large elements first, so that all are aligned. */
enum status shard_create(const char *path, const struct shard_tensor *tensors, uint32_t count,
                         const json_t *metadata, struct shard_file **out, struct error *error);

/* Writes `bytes` bytes at `offset` of a tensor's data; both must lie inside it. */
enum status shard_write(struct shard_file *file, uint32_t tensor, uint64_t offset, const void *data,
                        size_t bytes, struct error *error);

uint64_t shard_bytes(const struct shard_file *file);
uint64_t shard_tensor_bytes(const struct shard_tensor *tensor);

/* Puts the file under its name and frees the record, on failure too (then there is no file). */
enum status shard_commit(struct shard_file *file, struct error *error);

/* The bytes of a file in memory, malloc'ed, the caller's. */
enum status shard_take(const struct shard_file *file, uint8_t **data, size_t *bytes,
                       struct error *error);

/* Removes the unfinished file; accepts NULL. */
void shard_abandon(struct shard_file *file);

#endif
