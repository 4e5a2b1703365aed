/*
 * Files of backups. See keep_files.h.
 */
#include "store/keep/keep_files.h"

#include "base/file.h"
#include "store/artifacts/artifacts_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MARKER_BYTES_MAX = 1 << 16, BLOCK_BYTES = 1 << 16, TREE_DESCRIPTORS = 8 };

static enum status cannot(struct error *error, const char *what, const char *path)
{
    int cause = errno;
    return error_set(error, cause == ENOMEM ? STATUS_NO_MEMORY : STATUS_IO, "%s: cannot %s: %s",
                     path, what, strerror(cause));
}

/* Whether it is what writing a marker leaves when the process ends before it has its name. */
static bool is_marker_rest(int directory, const char *name)
{
    enum { BYTES = sizeof KEEP_MARKER "." - 1, DIGITS = 6 }; /* as file_replace names it */
    struct stat info;
    return strncmp(name, KEEP_MARKER ".", BYTES) == 0 && strlen(name) == BYTES + DIGITS &&
           fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

/* A directory without a marker: nothing in it, what a marker leaves, or something else. */
static enum status look_unmarked(const char *path, enum keep_place *out, struct error *error)
{
    DIR *directory = opendir(path);

    if (directory == NULL) {
        return cannot(error, "read the directory", path);
    }
    *out = KEEP_EMPTY;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            *out != KEEP_FOREIGN) {
            *out = is_marker_rest(dirfd(directory), entry->d_name) ? KEEP_PARTIAL : KEEP_FOREIGN;
        }
    }
    closedir(directory);
    return STATUS_OK;
}

static enum keep_place read_marker(const char *data)
{
    enum keep_place place = KEEP_FOREIGN;
    json_t *marker = json_loads(data, 0, NULL);

    if (json_integer_value(json_object_get(marker, "swerve_backup")) == 1) {
        place = json_is_true(json_object_get(marker, "complete")) ? KEEP_BACKUP : KEEP_PARTIAL;
    }
    json_decref(marker);
    return place;
}

enum status keep_look(const char *directory, enum keep_place *out, struct error *error)
{
    char path[KEEP_PATH_BYTES];
    struct stat info;
    struct error why;
    char *data = NULL;
    size_t bytes = 0;

    *out = KEEP_FOREIGN;
    if (lstat(directory, &info) != 0) {
        *out = KEEP_ABSENT;
        return errno == ENOENT ? STATUS_OK : cannot(error, "look at the directory", directory);
    }
    if (!S_ISDIR(info.st_mode)) {
        return STATUS_OK;
    }
    snprintf(path, sizeof path, "%s/" KEEP_MARKER, directory);
    enum status status = file_read(path, MARKER_BYTES_MAX, &data, &bytes, &why);
    if (status == STATUS_NOT_FOUND) {
        return look_unmarked(directory, out, error);
    }
    if (status == STATUS_NO_MEMORY || status == STATUS_IO) {
        *error = why;
        return status;
    }
    if (status == STATUS_OK) {
        *out = read_marker(data);
        free(data);
    }
    return STATUS_OK;
}

enum status keep_drop_rests(const char *directory, struct error *error)
{
    DIR *opened = NULL;
    TRY(keep_directory_read(directory, &opened, error));
    enum status status = STATUS_OK;
    for (struct dirent *entry = opened != NULL ? readdir(opened) : NULL; entry != NULL;
         entry = readdir(opened)) {
        if (is_marker_rest(dirfd(opened), entry->d_name) &&
            unlinkat(dirfd(opened), entry->d_name, 0) != 0) {
            status = cannot(error, "remove an unfinished " KEEP_MARKER " of", directory);
        }
    }
    if (opened != NULL) {
        closedir(opened);
    }
    return status;
}

void keep_artifact_path(const char *artifacts, const char *hash, char out[KEEP_PATH_BYTES])
{
    snprintf(out, KEEP_PATH_BYTES, "%s/%.2s/%.64s.zst", artifacts, hash, hash);
}

enum status keep_directory(const char *path, struct error *error)
{
    struct stat info;

    if (mkdir(path, 0777) == 0) {
        return STATUS_OK;
    }
    if (errno != EEXIST || lstat(path, &info) != 0) {
        return cannot(error, "create the directory", path);
    }
    return S_ISDIR(info.st_mode)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT, "%s: expected a directory, found %s", path,
                           S_ISLNK(info.st_mode) ? "a link" : "something else");
}

enum status keep_directory_read(const char *path, DIR **out, struct error *error)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    *out = fd >= 0 ? fdopendir(fd) : NULL;
    if (*out != NULL || (fd < 0 && errno == ENOENT)) {
        return STATUS_OK;
    }
    enum status status = cannot(error, "read the directory", path);
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

static bool named(const char *name, const char *digits, const char *ending, char *hash)
{
    struct error why;

    snprintf(hash, SHA256_HEX_BYTES, "%.64s", name);
    return strcmp(name + strlen(hash), ending) == 0 && strncmp(hash, digits, 2) == 0 &&
           artifacts_check_hash(hash, &why) == STATUS_OK;
}

bool keep_artifact_named(const char *name, const char *digits, char hash[SHA256_HEX_BYTES])
{
    return named(name, digits, ".zst", hash);
}

bool keep_mark_named(const char *name, const char *digits, char hash[SHA256_HEX_BYTES])
{
    return named(name, digits, ARTIFACTS_GONE, hash);
}

enum status keep_mark_copy(const char *from, const char *to, const char *hash, struct error *error)
{
    char path[KEEP_PATH_BYTES];
    char mark[ARTIFACT_MARK_BYTES];
    char directory[KEEP_PATH_BYTES];
    struct stat info;

    keep_artifact_path(from, hash, path);
    artifacts_mark_path(path, mark);
    keep_artifact_path(to, hash, path);
    if (lstat(path, &info) == 0) {
        return STATUS_OK; /* there it is back */
    }
    if (lstat(mark, &info) != 0 || !S_ISREG(info.st_mode)) {
        return STATUS_OK;
    }
    snprintf(directory, sizeof directory, "%s/%.2s", to, hash);
    TRY(keep_directory(directory, error));
    const struct timespec times[2] = {info.st_mtim, info.st_mtim};
    return artifacts_mark(AT_FDCWD, path, times) ? STATUS_OK
                                                 : cannot(error, "mark an artifact", path);
}

void keep_mark_drop(const char *artifacts, const char *hash)
{
    char path[KEEP_PATH_BYTES];
    char mark[ARTIFACT_MARK_BYTES];
    keep_artifact_path(artifacts, hash, path);
    artifacts_mark_path(path, mark);
    unlink(mark);
}

static enum status copy_bytes(int from, int to, const char *from_path, const char *to_path,
                              int64_t *bytes, struct error *error)
{
    char block[BLOCK_BYTES];

    *bytes = 0;
    for (;;) {
        ssize_t got = read(from, block, sizeof block);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return cannot(error, "read", from_path);
        }
        if (got == 0) {
            return STATUS_OK;
        }
        if (!file_write_at(to, block, (size_t)got, (off_t)*bytes)) {
            return cannot(error, "write", to_path);
        }
        *bytes += got;
    }
}

/* The next bytes of a file, as many as there are up to a block; -1: errno. */
static ssize_t next_block(int fd, char block[BLOCK_BYTES])
{
    size_t used = 0;

    while (used < BLOCK_BYTES) {
        ssize_t got = read(fd, block + used, BLOCK_BYTES - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? got : (ssize_t)used;
        }
        used += (size_t)got;
    }
    return (ssize_t)used;
}

bool keep_same(const char *a, const char *b)
{
    char left[BLOCK_BYTES];
    char right[BLOCK_BYTES];
    struct error why;
    size_t size = 0;
    int fds[2] = {-1, -1};
    ssize_t bytes = 0;
    bool same = file_open(a, &fds[0], &size, &why) == STATUS_OK &&
                file_open(b, &fds[1], &size, &why) == STATUS_OK;

    while (same && (bytes = next_block(fds[0], left)) > 0) {
        same = next_block(fds[1], right) == bytes && memcmp(left, right, (size_t)bytes) == 0;
    }
    same = same && bytes == 0 && next_block(fds[1], right) == 0;
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    return same;
}

enum status keep_copy(const char *from, const char *unfinished, const char *to, int64_t *bytes,
                      struct error *error)
{
    size_t size = 0;
    int source = -1;
    TRY(file_open(from, &source, &size, error));
    int target = open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    enum status status = target < 0 ? cannot(error, "create", unfinished)
                                    : copy_bytes(source, target, from, unfinished, bytes, error);

    close(source);
    if (target >= 0 && close(target) != 0 && status == STATUS_OK) {
        status = cannot(error, "write", unfinished);
    }
    if (status == STATUS_OK && rename(unfinished, to) != 0) {
        status = cannot(error, "name the file", to);
    }
    if (status != STATUS_OK && target >= 0) {
        unlink(unfinished);
    }
    return status;
}

enum status keep_sync(const char *directory, struct error *error)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum status status = STATUS_OK;

    if (fd < 0) {
        return cannot(error, "open the directory", directory);
    }
    if (syncfs(fd) != 0 || fsync(fd) != 0) {
        status = cannot(error, "sync", directory);
    }
    close(fd);
    return status;
}

enum status keep_lock(const char *directory, bool exclusive, const char *who, int *fd,
                      struct error *error)
{
    struct stat held;
    struct stat named;

    *fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0) {
        return errno == ENOENT ? STATUS_OK : cannot(error, "open the directory", directory);
    }
    bool locked = flock(*fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK) {
        enum status status = cannot(error, "lock the directory", directory);
        close(*fd);
        *fd = -1;
        return status;
    }
    /* The name may have gone to another directory between the two. */
    if (!locked || fstat(*fd, &held) != 0 || stat(directory, &named) != 0 ||
        held.st_ino != named.st_ino || held.st_dev != named.st_dev) {
        close(*fd);
        *fd = -1;
        return error_set(error, STATUS_BUSY, "%s is in use: %s. Try again when it is done",
                         directory, who);
    }
    return STATUS_OK;
}

/* The marker goes last: until then it says that the rest may go. */
static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    char marker[KEEP_PATH_BYTES];

    (void)info;
    (void)kind;
    if (at->level == 1 && strcmp(path + at->base, KEEP_MARKER) == 0) {
        return 0;
    }
    if (at->level == 0 &&
        (size_t)snprintf(marker, sizeof marker, "%s/" KEEP_MARKER, path) < sizeof marker &&
        remove(marker) != 0 && errno != ENOENT && errno != ENOTDIR) {
        return -1;
    }
    return remove(path);
}

enum status keep_remove_tree(const char *path, struct error *error)
{
    if (nftw(path, remove_entry, TREE_DESCRIPTORS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0 &&
        errno != ENOENT) {
        return cannot(error, "remove", path);
    }
    return STATUS_OK;
}
