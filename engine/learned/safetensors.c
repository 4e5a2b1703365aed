/*
 * Reading safetensors, see safetensors.h. The header is scanned once into a table of tensors; the
 * table is then checked as a whole: sorted by place it must tile the data without gap or overlap,
 * sorted by name no two may be equal.
 */
#include "engine/learned/safetensors.h"

#include "base/array.h"
#include "base/file.h"
#include "base/scan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *const safetensors_dtype_names[SAFETENSORS_DTYPE_COUNT] = {
    [SAFETENSORS_U8] = "U8",     [SAFETENSORS_I32] = "I32", [SAFETENSORS_I64] = "I64",
    [SAFETENSORS_BF16] = "BF16", [SAFETENSORS_F32] = "F32", [SAFETENSORS_F8_E4M3] = "F8_E4M3",
};
static const size_t dtype_bytes[SAFETENSORS_DTYPE_COUNT] = {
    [SAFETENSORS_U8] = 1,   [SAFETENSORS_I32] = 4, [SAFETENSORS_I64] = 8,
    [SAFETENSORS_BF16] = 2, [SAFETENSORS_F32] = 4, [SAFETENSORS_F8_E4M3] = 1,
};

enum { PREFIX_BYTES = 8 };

struct safetensors {
    void *mapped; /* NULL: borrowed */
    size_t bytes; /* of the file */
    const void *data;
    struct safetensors_tensor *tensors;
    size_t count;
    bool metadata_seen;
    size_t metadata_count;
    const char *keys[SAFETENSORS_METADATA_MAX];
    const char *values[SAFETENSORS_METADATA_MAX];
    char *texts; /* of the metadata; no longer than the header */
    size_t texts_bytes;
    size_t texts_used;
};

/* ---- the header ---- */

/* One text of the metadata into the pool; NULL when something failed. */
static const char *take_text(struct safetensors *file, struct scan *scan)
{
    char *at = file->texts + file->texts_used;
    size_t length;
    if (!scan_string(scan, at, file->texts_bytes - file->texts_used, &length)) {
        return NULL;
    }
    file->texts_used += length + 1;
    return at;
}

static bool take_metadata(struct safetensors *file, struct scan *scan)
{
    char key[SAFETENSORS_NAME_BYTES];
    if (file->metadata_seen) {
        return scan_fail(scan, STATUS_BAD_INPUT, "expected __metadata__ once, found it twice");
    }
    file->metadata_seen = true;
    scan_expect(scan, '{');
    for (bool first = true; scan_member(scan, &first, key, sizeof key);) {
        if (safetensors_metadata(file, key) != NULL) {
            return scan_fail(scan, STATUS_BAD_INPUT, "__metadata__ has \"%s\" twice", key);
        }
        if (file->metadata_count == SAFETENSORS_METADATA_MAX) {
            return scan_fail(scan, STATUS_LIMIT, "more than %d texts in __metadata__",
                             SAFETENSORS_METADATA_MAX);
        }
        size_t length = strlen(key) + 1; /* fits: the header has it with quotes */
        char *kept = file->texts + file->texts_used;
        memcpy(kept, key, length);
        file->texts_used += length;
        const char *value = take_text(file, scan);
        if (value == NULL) {
            return false;
        }
        file->keys[file->metadata_count] = kept;
        file->values[file->metadata_count++] = value;
    }
    return scan->status == STATUS_OK;
}

static bool take_dtype(struct scan *scan, struct safetensors_tensor *tensor)
{
    char text[16];
    if (!scan_string(scan, text, sizeof text, NULL)) {
        return false;
    }
    for (uint32_t i = 0; i < SAFETENSORS_DTYPE_COUNT; i++) {
        if (strcmp(text, safetensors_dtype_names[i]) == 0) {
            tensor->dtype = (enum safetensors_dtype)i;
            return true;
        }
    }
    return scan_fail(
        scan, STATUS_BAD_INPUT,
        "tensor \"%s\": expected dtype U8, I32, I64, BF16, F32 or F8_E4M3, found \"%s\"",
        tensor->name, text);
}

static bool take_shape(struct scan *scan, struct safetensors_tensor *tensor)
{
    tensor->count = 1;
    scan_expect(scan, '[');
    for (bool first = true; scan_element(scan, &first);) {
        uint64_t side;
        if (tensor->rank == SAFETENSORS_RANK_MAX) {
            return scan_fail(scan, STATUS_LIMIT, "tensor \"%s\": more than %d dimensions",
                             tensor->name, SAFETENSORS_RANK_MAX);
        }
        if (!scan_integer(scan, &side)) {
            return false;
        }
        if (side > 0 && tensor->count > SAFETENSORS_FILE_BYTES_MAX / side) {
            return scan_fail(scan, STATUS_LIMIT, "tensor \"%s\": more than %llu elements",
                             tensor->name, (unsigned long long)SAFETENSORS_FILE_BYTES_MAX);
        }
        tensor->shape[tensor->rank++] = side;
        tensor->count *= side;
    }
    return scan->status == STATUS_OK;
}

/* The tensor's place; data and bytes hold it until the table is checked. */
static bool take_offsets(struct scan *scan, uint64_t offsets[2])
{
    return scan_expect(scan, '[') && scan_integer(scan, &offsets[0]) && scan_expect(scan, ',') &&
           scan_integer(scan, &offsets[1]) && scan_expect(scan, ']');
}

/* A tensor's entry in the header must agree with itself and with the data's size. */
static bool check_tensor(struct scan *scan, struct safetensors_tensor *tensor,
                         const uint64_t offsets[2], const uint8_t *data, uint64_t data_bytes)
{
    size_t size = dtype_bytes[tensor->dtype];
    if (offsets[0] > offsets[1] || offsets[1] > data_bytes) {
        return scan_fail(scan, STATUS_BAD_INPUT,
                         "tensor \"%s\": expected a place within the %llu bytes of data, found "
                         "bytes %llu to %llu",
                         tensor->name, (unsigned long long)data_bytes,
                         (unsigned long long)offsets[0], (unsigned long long)offsets[1]);
    }
    if (offsets[1] - offsets[0] != tensor->count * size) {
        return scan_fail(scan, STATUS_BAD_INPUT,
                         "tensor \"%s\": expected %llu bytes for its shape and %s, found %llu",
                         tensor->name, (unsigned long long)(tensor->count * size),
                         safetensors_dtype_names[tensor->dtype],
                         (unsigned long long)(offsets[1] - offsets[0]));
    }
    if (((uintptr_t)data + offsets[0]) % size != 0) {
        return scan_fail(scan, STATUS_BAD_INPUT,
                         "tensor \"%s\": expected a place that is a multiple of %zu bytes, found "
                         "byte %llu after a header of %zu",
                         tensor->name, size, (unsigned long long)offsets[0], scan->bytes);
    }
    tensor->data = data + offsets[0];
    tensor->bytes = (size_t)(offsets[1] - offsets[0]);
    return true;
}

static bool check_name(struct scan *scan, const char *name)
{
    bool printable = *name != 0;
    for (const char *c = name; *c != 0; c++) {
        printable &= *c > ' ' && *c <= '~';
    }
    return printable || scan_fail(scan, STATUS_BAD_INPUT,
                                  "expected a tensor name of printable ASCII without spaces");
}

static bool take_tensor(struct scan *scan, struct safetensors_tensor *tensor, const uint8_t *data,
                        uint64_t data_bytes)
{
    static const char *const names[] = {"dtype", "shape", "data_offsets"};
    uint64_t offsets[2] = {0, 0};
    unsigned seen = 0;
    char key[16];
    if (!check_name(scan, tensor->name)) {
        return false;
    }
    scan_expect(scan, '{');
    for (bool first = true; scan_member(scan, &first, key, sizeof key);) {
        unsigned which = 0;
        while (which < 3 && strcmp(key, names[which]) != 0) {
            which++;
        }
        if (which == 3 || (seen & 1u << which) != 0) {
            return scan_fail(scan, STATUS_BAD_INPUT,
                             "tensor \"%s\": expected dtype, shape and data_offsets once each, "
                             "found \"%s\"%s",
                             tensor->name, key, which < 3 ? " twice" : "");
        }
        seen |= 1u << which;
        if (!(which == 0   ? take_dtype(scan, tensor)
              : which == 1 ? take_shape(scan, tensor)
                           : take_offsets(scan, offsets))) {
            return false;
        }
    }
    if (scan->status == STATUS_OK && seen != 7) {
        const char *missing = names[!(seen & 1) ? 0 : !(seen & 2) ? 1 : 2];
        return scan_fail(scan, STATUS_BAD_INPUT, "tensor \"%s\": expected \"%s\", found none",
                         tensor->name, missing);
    }
    return scan->status == STATUS_OK && check_tensor(scan, tensor, offsets, data, data_bytes);
}

/* Room for one more tensor. */
static bool grow(struct safetensors *file, struct scan *scan)
{
    if (file->count >= SAFETENSORS_TENSORS_MAX) {
        return scan_fail(scan, STATUS_LIMIT, "more than %d tensors", SAFETENSORS_TENSORS_MAX);
    }
    return array_room(&file->tensors, file->count, sizeof *file->tensors, NULL) == STATUS_OK ||
           scan_fail(scan, STATUS_NO_MEMORY, "no memory for the table of tensors");
}

static bool take_header(struct safetensors *file, struct scan *scan, const uint8_t *data,
                        uint64_t data_bytes)
{
    char key[SAFETENSORS_NAME_BYTES];
    if (scan->bytes == 0 || scan->text[0] != '{') {
        return scan_fail(scan, STATUS_BAD_INPUT, "expected a header that begins with '{'");
    }
    scan_expect(scan, '{');
    for (bool first = true; scan_member(scan, &first, key, sizeof key);) {
        if (strcmp(key, "__metadata__") == 0) {
            if (!take_metadata(file, scan)) {
                return false;
            }
            continue;
        }
        if (!grow(file, scan)) {
            return false;
        }
        struct safetensors_tensor *tensor = &file->tensors[file->count];
        *tensor = (struct safetensors_tensor){0};
        memcpy(tensor->name, key, sizeof key);
        if (!take_tensor(scan, tensor, data, data_bytes)) {
            return false;
        }
        file->count++;
    }
    return scan_end(scan);
}

/* ---- the table as a whole ---- */

static int by_place(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a;
    const struct safetensors_tensor *y = b;
    if (x->data != y->data) {
        return (const uint8_t *)x->data < (const uint8_t *)y->data ? -1 : 1;
    }
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct safetensors_tensor *)a)->name,
                  ((const struct safetensors_tensor *)b)->name);
}

static enum status check_tiling(const char *source, struct safetensors *file, const uint8_t *data,
                                uint64_t data_bytes, struct error *error)
{
    uint64_t end = 0;
    if (file->count > 0) {
        qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
    }
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        uint64_t start = (uint64_t)((const uint8_t *)tensor->data - data);
        if (start != end) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: tensor \"%s\": expected to start at byte %llu of the data, where "
                             "%s%s%s ends, found byte %llu: %s",
                             source, tensor->name, (unsigned long long)end, i > 0 ? "\"" : "",
                             i > 0 ? file->tensors[i - 1].name : "the header", i > 0 ? "\"" : "",
                             (unsigned long long)start,
                             start < end ? "they overlap" : "a hole between them");
        }
        end = start + tensor->bytes;
    }
    if (end != data_bytes) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected the file to end after the last tensor, found %llu bytes "
                         "more",
                         source, (unsigned long long)(data_bytes - end));
    }
    return STATUS_OK;
}

static enum status check_names(const char *source, struct safetensors *file, struct error *error)
{
    if (file->count > 0) {
        qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
    }
    for (size_t i = 1; i < file->count; i++) {
        if (strcmp(file->tensors[i - 1].name, file->tensors[i].name) == 0) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: expected every tensor once, found \"%s\" twice", source,
                             file->tensors[i].name);
        }
    }
    return STATUS_OK;
}

static uint64_t read_u64(const uint8_t *p)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) {
        value = value << 8 | p[i];
    }
    return value;
}

enum status safetensors_parse(const char *source, const void *data, size_t bytes,
                              struct safetensors **out, struct error *error)
{
    const uint8_t *at = data;
    if (bytes < PREFIX_BYTES + 2) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected a safetensors file, found only %zu bytes", source, bytes);
    }
    uint64_t header_bytes = read_u64(at);
    uint64_t header_most = bytes - PREFIX_BYTES;
    if (header_most > SAFETENSORS_HEADER_BYTES_MAX) {
        header_most = SAFETENSORS_HEADER_BYTES_MAX;
    }
    if (header_bytes > header_most) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected a header of at most %llu bytes, found a length of %llu: not "
                         "a safetensors file, or cut short",
                         source, (unsigned long long)header_most, (unsigned long long)header_bytes);
    }
    struct safetensors *file = calloc(1, sizeof *file);
    char *texts = malloc((size_t)header_bytes + 1);
    if (file == NULL || texts == NULL) {
        free(file);
        free(texts);
        return error_set(error, STATUS_NO_MEMORY, "%s: no memory for its header", source);
    }
    file->data = data;
    file->bytes = bytes;
    file->texts = texts;
    file->texts_bytes = (size_t)header_bytes + 1;
    const uint8_t *tensors = at + PREFIX_BYTES + header_bytes;
    uint64_t data_bytes = bytes - PREFIX_BYTES - header_bytes;
    struct scan scan =
        scan_begin(source, "header", (const char *)at + PREFIX_BYTES, (size_t)header_bytes, error);
    enum status status = STATUS_OK;
    if (!take_header(file, &scan, tensors, data_bytes)) {
        status = scan.status;
    }
    THEN(status, check_tiling(source, file, tensors, data_bytes, error));
    THEN(status, check_names(source, file, error));
    if (status != STATUS_OK) {
        safetensors_close(file);
        return status;
    }
    *out = file;
    return STATUS_OK;
}

/* Reads the whole of fd into at[bytes]. */
static enum status read_all(const char *path, int fd, uint8_t *at, size_t bytes,
                            struct error *error)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = read(fd, at + done, bytes - done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return error_set(error, STATUS_IO, "%s: expected %zu bytes, found %zu: %s", path, bytes,
                             done, got < 0 ? strerror(errno) : "it became shorter");
        }
        done += (size_t)got;
    }
    return STATUS_OK;
}

/* The file's bytes, mapped or copied; the caller unmaps them. */
static enum status map_file(const char *path, int fd, enum safetensors_mode mode, void **out,
                            size_t bytes, struct error *error)
{
    if (bytes == 0 || bytes > SAFETENSORS_FILE_BYTES_MAX) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected a file of 1 to %llu bytes, found %zu", path,
                         (unsigned long long)SAFETENSORS_FILE_BYTES_MAX, bytes);
    }
    bool copy = mode == SAFETENSORS_COPY;
    void *at = mmap(NULL, bytes, copy ? PROT_READ | PROT_WRITE : PROT_READ,
                    copy ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE, copy ? -1 : fd, 0);
    if (at == MAP_FAILED) {
        return error_set(error, errno == ENOMEM ? STATUS_NO_MEMORY : STATUS_IO,
                         "%s: cannot be mapped: %s", path, strerror(errno));
    }
    enum status status = copy ? read_all(path, fd, at, bytes, error) : STATUS_OK;
    if (status != STATUS_OK) {
        munmap(at, bytes);
        return status;
    }
    *out = at;
    return STATUS_OK;
}

enum status safetensors_open(const char *path, enum safetensors_mode mode, struct safetensors **out,
                             struct error *error)
{
    void *mapped = NULL;
    size_t bytes = 0;
    int fd = -1;
    TRY(file_open(path, &fd, &bytes, error));
    enum status status = map_file(path, fd, mode, &mapped, bytes, error);
    close(fd);
    if (status != STATUS_OK) {
        return status;
    }
    struct safetensors *file;
    status = safetensors_parse(path, mapped, bytes, &file, error);
    if (status != STATUS_OK) {
        munmap(mapped, bytes);
        return status;
    }
    file->mapped = mapped;
    *out = file;
    return STATUS_OK;
}

void safetensors_close(struct safetensors *file)
{
    if (file == NULL) {
        return;
    }
    if (file->mapped != NULL) {
        munmap(file->mapped, file->bytes);
    }
    free(file->tensors);
    free(file->texts);
    free(file);
}

size_t safetensors_count(const struct safetensors *file)
{
    return file->count;
}

const struct safetensors_tensor *safetensors_at(const struct safetensors *file, size_t index)
{
    return index < file->count ? &file->tensors[index] : NULL;
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name)
{
    size_t low = 0;
    size_t high = file->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, file->tensors[middle].name);
        if (order == 0) {
            return &file->tensors[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
    for (size_t i = 0; i < file->metadata_count; i++) {
        if (strcmp(file->keys[i], key) == 0) {
            return file->values[i];
        }
    }
    return NULL;
}

const void *safetensors_bytes(const struct safetensors *file, size_t *bytes)
{
    *bytes = file->bytes;
    return file->data;
}

const void *safetensors_data(const struct safetensors *file, size_t *bytes)
{
    size_t first = PREFIX_BYTES + (size_t)read_u64(file->data); /* was checked */
    *bytes = file->bytes - first;
    return (const uint8_t *)file->data + first;
}
