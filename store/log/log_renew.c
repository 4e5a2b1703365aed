/*
 * Replacing the log by a copy. See log_renew.h.
 */
#include "store/log/log_renew.h"

#include "schemas/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20, NAME_BYTES = LIMIT_PATH_BYTES + 16 };

static enum status io_error(struct error *error, const char *path, const char *what)
{
    int cause = errno;
    return error_set(error, cause == ENOMEM ? STATUS_NO_MEMORY : STATUS_IO, "%s: cannot %s: %s",
                     path, what, strerror(cause));
}

static void log_path(const char *store_path, const char *suffix, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "%.*s%s", LIMIT_PATH_BYTES, store_path, suffix);
}

bool log_left(const char *store_path)
{
    char path[NAME_BYTES];
    struct stat info;

    log_path(store_path, "-wal", path);
    return stat(path, &info) == 0 && info.st_size > 0;
}

static enum status write_chunk(int fd, const char *path, const uint8_t *data, size_t bytes,
                               struct error *error)
{
    while (bytes > 0) {
        ssize_t put = write(fd, data, bytes);
        if (put < 0 && errno != EINTR) {
            return io_error(error, path, "write a copy of the log");
        }
        data += put > 0 ? put : 0;
        bytes -= put > 0 ? (size_t)put : 0;
    }
    return STATUS_OK;
}

/* At most `bytes`. */
static enum status copy_bytes(int from, const char *from_path, int to, const char *to_path,
                              int64_t bytes, struct error *error)
{
    enum status status = STATUS_OK;
    uint8_t *chunk = malloc(CHUNK_BYTES);

    TRY(memory_check(chunk, error, "%s: out of memory", from_path));
    while (status == STATUS_OK && bytes > 0) {
        ssize_t got = read(from, chunk, bytes < CHUNK_BYTES ? (size_t)bytes : CHUNK_BYTES);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            status = io_error(error, from_path, "read the log");
        } else if (got == 0) {
            break;
        } else {
            status = write_chunk(to, to_path, chunk, (size_t)got, error);
            bytes -= got;
        }
    }
    free(chunk);
    return status;
}

/* The copy has the log's permissions: others may be allowed to read the store. */
static enum status copy_file(const char *from_path, const char *to_path, int64_t bytes,
                             struct error *error)
{
    struct stat info;
    int from = open(from_path, O_RDONLY | O_CLOEXEC);
    if (from < 0) {
        return io_error(error, from_path, "open the log");
    }
    int to = open(to_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to < 0) {
        enum status status = io_error(error, to_path, "create a copy of the log");
        close(from);
        return status;
    }
    enum status status = STATUS_OK;
    if (fstat(from, &info) != 0 || fchmod(to, info.st_mode & 0777) != 0) {
        status = io_error(error, to_path, "set the permissions of a copy of the log");
    }
    THEN(status, copy_bytes(from, from_path, to, to_path, bytes, error));
    if (status == STATUS_OK && fsync(to) != 0) {
        status = io_error(error, to_path, "sync a copy of the log");
    }
    if (close(to) != 0 && status == STATUS_OK) {
        status = io_error(error, to_path, "close a copy of the log");
    }
    close(from);
    return status;
}

/* Makes the names in the file's directory durable. */
static enum status sync_directory_of(const char *path, struct error *error)
{
    char directory[NAME_BYTES];
    const char *slash = strrchr(path, '/');
    int bytes = slash == NULL ? 0 : slash == path ? 1 : (int)(slash - path);

    snprintf(directory, sizeof directory, "%.*s", bytes > 0 ? bytes : 1, bytes > 0 ? path : ".");
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return io_error(error, directory, "open the directory");
    }
    enum status status =
        fsync(fd) == 0 ? STATUS_OK : io_error(error, directory, "sync the directory");
    close(fd);
    return status;
}

enum status log_renew(const char *store_path, int64_t bytes, struct error *error)
{
    char path[NAME_BYTES];
    char copy_path[NAME_BYTES];

    if (!log_left(store_path)) {
        return STATUS_OK;
    }
    log_path(store_path, "-wal", path);
    log_path(store_path, "-wal-copy", copy_path);
    enum status status = copy_file(path, copy_path, bytes, error);
    if (status == STATUS_OK && rename(copy_path, path) != 0) {
        status = io_error(error, path, "replace the log by its copy");
    }
    if (status != STATUS_OK) {
        unlink(copy_path); /* a copy that stays is overwritten by the next one */
        return status;
    }
    return sync_directory_of(path, error);
}

enum status log_keep(const char *store_path, struct error *error)
{
    char path[NAME_BYTES];
    char kept_path[NAME_BYTES];

    log_path(store_path, "-wal", path);
    log_path(store_path, "-wal-damaged", kept_path);
    enum status status = copy_file(path, kept_path, INT64_MAX, error);
    return status == STATUS_OK ? sync_directory_of(kept_path, error) : status;
}
