/*
 * File: see file.h.
 */
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_write_at(int fd, const void *data, size_t bytes, off_t at)
{
    const char *from = data;
    while (bytes > 0) {
        ssize_t wrote = pwrite(fd, from, bytes, at);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            errno = wrote < 0 ? errno : ENOSPC; /* a device that takes nothing is full */
            return false;
        }
        from += wrote;
        at += wrote;
        bytes -= (size_t)wrote;
    }
    return true;
}

enum status file_replace(const char *path, const void *data, size_t bytes, mode_t mode,
                         struct error *error)
{
    enum { NAME_BYTES_MAX = 4096 };
    char temporary[NAME_BYTES_MAX];
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= sizeof temporary) {
        return error_set(error, STATUS_BAD_INPUT, "%.200s..: the name is too long", path);
    }
    int fd = mkstemp(temporary);
    if (fd < 0) {
        return error_set(error, STATUS_BAD_INPUT, "%s: cannot create: %s", path, strerror(errno));
    }
    bool good = fchmod(fd, mode) == 0 && file_write_at(fd, data, bytes, 0) && fsync(fd) == 0;
    int cause = errno;
    if (close(fd) != 0 && good) {
        cause = errno;
        good = false;
    }
    if (good && rename(temporary, path) != 0) {
        cause = errno;
        good = false;
    }
    if (!good) {
        unlink(temporary);
        return error_set(error, STATUS_IO, "%s: cannot be written: %s", path, strerror(cause));
    }
    return STATUS_OK;
}
