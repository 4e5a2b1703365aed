/*
 * Writing safetensors; see shard_file.h.
 */
#include "worker/datagen/shard_file.h"

#include "base/check.h"
#include "base/file.h"
#include "schemas/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct shard_file {
    int fd;
    uint32_t count;
    uint64_t start[SHARD_TENSORS_MAX + 1]; /* in the file; the last is its end */
    char path[LIMIT_PATH_BYTES];
    char temporary[LIMIT_PATH_BYTES + 32];
};

static uint64_t element_bytes(const char *dtype)
{
    if (strcmp(dtype, "U8") == 0) {
        return 1;
    }
    if (strcmp(dtype, "I64") == 0) {
        return 8;
    }
    CHECK(strcmp(dtype, "I32") == 0 || strcmp(dtype, "F32") == 0);
    return 4;
}

uint64_t shard_tensor_bytes(const struct shard_tensor *tensor)
{
    uint64_t bytes = element_bytes(tensor->dtype);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        bytes *= tensor->shape[i];
    }
    return bytes;
}

/* The JSON header, padded with blanks to a multiple of 8; NULL when memory is short. */
static char *header_make(const struct shard_tensor *tensors, uint32_t count, const json_t *metadata,
                         size_t *bytes)
{
    json_t *root = json_object();
    json_object_set(root, "__metadata__", (json_t *)(uintptr_t)metadata);
    uint64_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        json_t *shape = json_array();
        for (uint32_t k = 0; k < tensors[i].rank; k++) {
            json_array_append_new(shape, json_integer((json_int_t)tensors[i].shape[k]));
        }
        uint64_t end = offset + shard_tensor_bytes(&tensors[i]);
        json_object_set_new(root, tensors[i].name,
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype", tensors[i].dtype, "shape",
                                      shape, "data_offsets", (json_int_t)offset, (json_int_t)end));
        offset = end;
    }
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    if (text == NULL) {
        return NULL;
    }
    size_t length = strlen(text);
    *bytes = (length + 7) / 8 * 8;
    char *padded = malloc(*bytes);
    if (padded != NULL) {
        memset(padded, ' ', *bytes);
        memcpy(padded, text, length);
    }
    free(text);
    return padded;
}

static enum status write_at(struct shard_file *file, uint64_t place, const void *data, size_t bytes,
                            struct error *error)
{
    if (!file_write_at(file->fd, data, bytes, (off_t)place)) {
        return error_set(error, STATUS_IO, "%s: cannot write: %s", file->temporary,
                         strerror(errno));
    }
    return STATUS_OK;
}

static enum status open_file(struct shard_file *file, const char *path, struct error *error)
{
    if (path == NULL) {
        snprintf(file->temporary, sizeof file->temporary, "a clip in memory");
        file->fd = memfd_create("swerve-clip", MFD_CLOEXEC);
        return file->fd >= 0 ? STATUS_OK
                             : error_set(error, STATUS_NO_MEMORY, "%s: memfd_create: %s",
                                         file->temporary, strerror(errno));
    }
    if (strlen(path) >= sizeof file->path) {
        return error_set(error, STATUS_LIMIT, "%.64s..: a file name longer than %d bytes", path,
                         LIMIT_PATH_BYTES - 1);
    }
    snprintf(file->path, sizeof file->path, "%s", path);
    snprintf(file->temporary, sizeof file->temporary, "%s.%ld.tmp", path, (long)getpid());
    file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file->fd < 0) {
        return error_set(error, STATUS_IO, "%s: cannot create: %s", file->temporary,
                         strerror(errno));
    }
    return STATUS_OK;
}

enum status shard_create(const char *path, const struct shard_tensor *tensors, uint32_t count,
                         const json_t *metadata, struct shard_file **out, struct error *error)
{
    CHECK(count >= 1 && count <= SHARD_TENSORS_MAX);
    size_t header_bytes = 0;
    char *header = header_make(tensors, count, metadata, &header_bytes);
    struct shard_file *file = calloc(1, sizeof *file);
    if (header == NULL || file == NULL) {
        free(header);
        free(file);
        return error_set(error, STATUS_NO_MEMORY, "%s: no memory for a shard's header",
                         path != NULL ? path : "a clip");
    }
    file->count = count;
    file->start[0] = sizeof(uint64_t) + header_bytes;
    for (uint32_t i = 0; i < count; i++) {
        file->start[i + 1] = file->start[i] + shard_tensor_bytes(&tensors[i]);
    }
    enum status status = open_file(file, path, error);
    if (status != STATUS_OK) {
        free(header);
        free(file);
        return status;
    }
    uint64_t length = header_bytes;
    if (ftruncate(file->fd, (off_t)file->start[count]) != 0) {
        status = error_set(error, STATUS_IO, "%s: cannot take %llu bytes: %s", file->temporary,
                           (unsigned long long)file->start[count], strerror(errno));
    }
    THEN(status, write_at(file, 0, &length, sizeof length, error));
    THEN(status, write_at(file, sizeof length, header, header_bytes, error));
    free(header);
    if (status != STATUS_OK) {
        shard_abandon(file);
        return status;
    }
    *out = file;
    return STATUS_OK;
}

enum status shard_write(struct shard_file *file, uint32_t tensor, uint64_t offset, const void *data,
                        size_t bytes, struct error *error)
{
    CHECK(tensor < file->count);
    CHECK(offset + bytes <= file->start[tensor + 1] - file->start[tensor]);
    return write_at(file, file->start[tensor] + offset, data, bytes, error);
}

uint64_t shard_bytes(const struct shard_file *file)
{
    return file->start[file->count];
}

enum status shard_commit(struct shard_file *file, struct error *error)
{
    const char *failed = NULL;
    if (fsync(file->fd) != 0) {
        failed = "cannot write";
    } else if (rename(file->temporary, file->path) != 0) {
        failed = "cannot rename to its final name";
    }
    if (failed != NULL) {
        enum status status =
            error_set(error, STATUS_IO, "%s: %s: %s", file->temporary, failed, strerror(errno));
        shard_abandon(file);
        return status;
    }
    close(file->fd);
    free(file);
    return STATUS_OK;
}

enum status shard_take(const struct shard_file *file, uint8_t **data, size_t *bytes,
                       struct error *error)
{
    *bytes = (size_t)shard_bytes(file);
    *data = malloc(*bytes);
    TRY(memory_check(*data, error, "%s: out of memory", file->temporary));
    for (size_t done = 0; done < *bytes;) {
        ssize_t count = pread(file->fd, *data + done, *bytes - done, (off_t)done);
        if (count <= 0) {
            free(*data);
            *data = NULL;
            return error_set(error, STATUS_IO, "%s: cannot read: %s", file->temporary,
                             strerror(errno));
        }
        done += (size_t)count;
    }
    return STATUS_OK;
}

void shard_abandon(struct shard_file *file)
{
    if (file == NULL) {
        return;
    }
    close(file->fd);
    if (file->path[0] != '\0') {
        unlink(file->temporary);
    }
    free(file);
}
