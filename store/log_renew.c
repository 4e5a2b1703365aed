/*
 * Rewriting the log in place. See log_renew.h.
 *
 * Being interrupted does no harm: on the disk are then some of the old bytes and some of the same
 * bytes that were read, and a frame that is not whole ends the log, as ever.
 */
#include "store/log_renew.h"

#include "schemas/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20 };

static enum status io_error(struct error *error, const char *path, const char *what)
{
    int cause = errno;
    return error_set(error, STATUS_IO, "%s: cannot %s the log: %s", path, what, strerror(cause));
}

static enum status write_chunk(int fd, const char *path, const uint8_t *data, size_t bytes,
                               off_t offset, struct error *error)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put = pwrite(fd, data + done, bytes - done, offset + (off_t)done);
        if (put < 0 && errno != EINTR) {
            return io_error(error, path, "write");
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return STATUS_OK;
}

static enum status renew(int fd, const char *path, uint8_t *chunk, struct error *error)
{
    off_t offset = 0;

    for (;;) {
        ssize_t got = pread(fd, chunk, CHUNK_BYTES, offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return io_error(error, path, "read");
        }
        if (got == 0) {
            break;
        }
        enum status status = write_chunk(fd, path, chunk, (size_t)got, offset, error);
        if (status != STATUS_OK) {
            return status;
        }
        offset += got;
    }
    return offset == 0 || fdatasync(fd) == 0 ? STATUS_OK : io_error(error, path, "sync");
}

enum status log_renew(const char *store_path, struct error *error)
{
    char path[LIMIT_PATH_BYTES + 8];

    snprintf(path, sizeof path, "%s-wal", store_path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? STATUS_OK : io_error(error, path, "open");
    }
    uint8_t *chunk = malloc(CHUNK_BYTES);
    enum status status = chunk == NULL
                             ? error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path)
                             : renew(fd, path, chunk, error);
    free(chunk);
    close(fd);
    return status;
}
