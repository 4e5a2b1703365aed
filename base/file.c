/*
 * File: see file.h.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a directory";
    case S_IFIFO:
        return "a pipe";
    case S_IFSOCK:
        return "a socket";
    case S_IFCHR:
    case S_IFBLK:
        return "a device";
    default:
        return "something else";
    }
}

static enum status refuse_kind(const char *path, mode_t mode, struct error *error)
{
    return error_set(error, STATUS_BAD_INPUT, "%s: expected a regular file, found %s", path,
                     kind_name(mode));
}

static enum status refuse_open(const char *path, struct error *error)
{
    return error_set(error, errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO,
                     "%s: cannot open: %s", path, strerror(errno));
}

enum status file_open(const char *path, int *fd, size_t *bytes, struct error *error)
{
    struct stat info;
    /* The kind is asked before the file is opened, because opening a device can have effects, and
     * again afterwards, because the name may have changed hands. Without O_NONBLOCK a pipe that
     * nobody writes to would be waited for. */
    if (stat(path, &info) != 0) {
        return refuse_open(path, error);
    }
    if (!S_ISREG(info.st_mode)) {
        return refuse_kind(path, info.st_mode, error);
    }
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opened < 0) {
        return refuse_open(path, error);
    }
    if (fstat(opened, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(opened);
        return refuse_kind(path, info.st_mode, error);
    }
    *fd = opened;
    *bytes = (size_t)info.st_size;
    return STATUS_OK;
}

enum status file_read(const char *path, size_t limit_bytes, char **data, size_t *bytes,
                      struct error *error)
{
    int fd = -1;
    size_t size = 0;
    size_t used = 0;
    TRY(file_open(path, &fd, &size, error));
    enum status status = STATUS_OK;
    char *text = NULL;
    if (size > limit_bytes) {
        status = error_set(error, STATUS_LIMIT, "%s: expected at most %zu bytes, found %zu", path,
                           limit_bytes, size);
    } else if ((text = malloc(size + 1)) == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "%s: out of memory for %zu bytes", path, size);
    }
    while (status == STATUS_OK && used < size) {
        ssize_t got = read(fd, text + used, size - used);
        if (got < 0 && errno != EINTR) {
            status = error_set(error, STATUS_IO, "%s: cannot read: %s", path, strerror(errno));
        }
        if (got == 0) {
            break; /* it became shorter; what is there is judged by whoever asked */
        }
        used += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (status != STATUS_OK) {
        free(text);
        return status;
    }
    text[used] = '\0';
    *data = text;
    *bytes = used;
    return STATUS_OK;
}

bool file_program(char *out, size_t capacity)
{
    ssize_t bytes = readlink("/proc/self/exe", out, capacity - 1);
    out[bytes > 0 ? bytes : 0] = '\0';
    return bytes > 0;
}

bool file_near_program(const char *const *names, size_t count, mode_t kind, char *out,
                       size_t capacity)
{
    char folder[PATH_MAX];
    char *slash = file_program(folder, sizeof folder) ? strrchr(folder, '/') : NULL;
    for (int level = 0; level < FILE_FOLDERS_ABOVE && slash != NULL; level++) {
        *slash = '\0';
        for (size_t i = 0; i < count; i++) {
            struct stat about;
            int bytes = snprintf(out, capacity, "%s/%s", folder, names[i]);
            if (bytes > 0 && (size_t)bytes < capacity && stat(out, &about) == 0 &&
                (about.st_mode & S_IFMT) == kind) {
                return true;
            }
        }
        slash = strrchr(folder, '/');
    }
    out[0] = '\0';
    return false;
}

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

/* ---- removing ---- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

bool file_remove_tree(const char *folder)
{
    enum { FOLDERS_OPEN = 8 };
    return nftw(folder, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS) == 0;
}
