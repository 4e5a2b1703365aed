/*
 * Safetensors: a strict reader of the format that model weights come in
 * (github.com/huggingface/safetensors): 8 bytes of header length, little endian; a JSON header; the
 * tensors' bytes one after the other.
 *
 * A file comes from outside, so everything is checked before anything is used: the header's
 * grammar, names, dtypes, shapes against byte counts, offsets that overlap, leave holes, reach
 * beyond the end or are not aligned, and bytes that no tensor owns. Errors name the file, the
 * tensor, what was expected and what was found. Values are not looked at here.
 */
#ifndef SWERVE_ENGINE_LEARNED_SAFETENSORS_H
#define SWERVE_ENGINE_LEARNED_SAFETENSORS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    SAFETENSORS_RANK_MAX = 8,
    SAFETENSORS_NAME_BYTES = 128, /* terminator included; printable ASCII */
    SAFETENSORS_TENSORS_MAX = 16384,
    SAFETENSORS_METADATA_MAX = 64,
    SAFETENSORS_HEADER_BYTES_MAX = 8 << 20,
};
#define SAFETENSORS_FILE_BYTES_MAX (16ull << 30)

enum safetensors_dtype {
    SAFETENSORS_U8 = 0,
    SAFETENSORS_I32,
    SAFETENSORS_I64,
    SAFETENSORS_BF16,
    SAFETENSORS_F32,
    SAFETENSORS_F8_E4M3,
    SAFETENSORS_DTYPE_COUNT
};

extern const char *const safetensors_dtype_names[SAFETENSORS_DTYPE_COUNT]; /* "U8", .. */

struct safetensors_tensor {
    char name[SAFETENSORS_NAME_BYTES];
    enum safetensors_dtype dtype;
    uint32_t rank; /* 0: one number */
    uint64_t shape[SAFETENSORS_RANK_MAX];
    uint64_t count;   /* product of the shape */
    const void *data; /* aligned for the dtype */
    size_t bytes;
};

struct safetensors;

/* Checks `bytes` bytes at data (8-byte aligned), which are borrowed and must outlive the result.
 * `source` names them in errors and is only used during the call. */
enum status safetensors_parse(const char *source, const void *data, size_t bytes,
                              struct safetensors **out, struct error *error);

/* Ways to hold a file's bytes. A mapped file must not change while it is open (its values would
 * change too, and one that shrinks ends the process); a copied one may be replaced at any time. */
enum safetensors_mode { SAFETENSORS_MAP = 0, SAFETENSORS_COPY };

enum status safetensors_open(const char *path, enum safetensors_mode mode, struct safetensors **out,
                             struct error *error);

void safetensors_close(struct safetensors *file); /* accepts NULL */

/* Tensors in the order of their names. */
size_t safetensors_count(const struct safetensors *file);
const struct safetensors_tensor *safetensors_at(const struct safetensors *file, size_t index);
/* NULL when there is none. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name);
/* A text of __metadata__, or NULL. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);
/* The whole file, as it was checked. */
const void *safetensors_bytes(const struct safetensors *file, size_t *bytes);
/* All of it behind the header: the tensors. */
const void *safetensors_data(const struct safetensors *file, size_t *bytes);

#endif
