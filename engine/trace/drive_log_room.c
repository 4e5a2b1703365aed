/*
 * Room in a folder of drives' logs. See drive_log.h.
 */
#include "engine/trace/drive_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct kept_log {
    char name[256];
    uint64_t bytes;
    struct timespec touched;
};

static int by_age(const void *a, const void *b)
{
    const struct timespec *first = &((const struct kept_log *)a)->touched;
    const struct timespec *second = &((const struct kept_log *)b)->touched;
    if (first->tv_sec != second->tv_sec) {
        return first->tv_sec < second->tv_sec ? -1 : 1;
    }
    return (first->tv_nsec > second->tv_nsec) - (first->tv_nsec < second->tv_nsec);
}

static bool is_log(const char *name)
{
    size_t length = strlen(name);
    size_t tail = strlen(DRIVE_LOG_SUFFIX);
    return length > tail && length < sizeof((struct kept_log *)NULL)->name &&
           strcmp(name + length - tail, DRIVE_LOG_SUFFIX) == 0;
}

/* Logs in a folder, malloc'ed. A file that goes meanwhile is left out. */
static enum status list_logs(DIR *directory, struct kept_log **out, size_t *count,
                             struct error *error)
{
    struct kept_log *logs = NULL;
    size_t capacity = 0;
    *count = 0;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        struct stat status;
        if (!is_log(entry->d_name) ||
            fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode)) {
            continue;
        }
        if (*count == capacity) {
            capacity = capacity == 0 ? 64 : 2 * capacity;
            struct kept_log *more = realloc(logs, capacity * sizeof *logs);
            if (more == NULL) {
                free(logs);
                return memory_check(NULL, error, "drive: out of memory for a list of logs");
            }
            logs = more;
        }
        struct kept_log *log = &logs[(*count)++];
        strcpy(log->name, entry->d_name);
        log->bytes = (uint64_t)status.st_size;
        log->touched = status.st_mtim;
    }
    *out = logs;
    return STATUS_OK;
}

/* Removes one unless somebody goes on with it; whether it is gone. NFS locks for one alone only
 * what is open for writing. */
static bool remove_idle(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return errno == ENOENT;
    }
    bool gone =
        flock(fd, LOCK_EX | LOCK_NB) == 0 && (unlinkat(directory, name, 0) == 0 || errno == ENOENT);
    close(fd);
    return gone;
}

enum status drive_log_make_room(const char *folder, size_t count_max, uint64_t bytes_max,
                                struct error *error)
{
    struct kept_log *logs = NULL;
    size_t count = 0;
    uint64_t bytes = 0;
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        return error_set(error, STATUS_IO, "%s: cannot be listed: %s", folder, strerror(errno));
    }
    enum status status = list_logs(directory, &logs, &count, error);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        bytes += logs[i].bytes;
    }
    if (status == STATUS_OK && count > 0) {
        qsort(logs, count, sizeof *logs, by_age);
    }
    size_t left = count;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        if (left <= count_max && bytes <= bytes_max) {
            break;
        }
        if (remove_idle(dirfd(directory), logs[i].name)) {
            bytes -= logs[i].bytes;
            left--;
        }
    }
    closedir(directory);
    free(logs);
    return status;
}
