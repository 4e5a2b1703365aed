/*
 * Artifact files. See artifacts.h.
 */
#include "store/artifacts/artifacts_internal.h"
#include "store/artifacts/zstd_frame.h"
#include "store/objects/object_storage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { UNFINISHED_S = 86400 }; /* where others write too, nothing takes this long */

enum status artifacts_io_error(struct error *error, const char *what, const char *path)
{
    int cause = errno;
    return error_set(error, cause == ENOMEM ? STATUS_NO_MEMORY : STATUS_IO, "%s: cannot %s: %s",
                     path, what, strerror(cause));
}

static enum status sync_directory(const char *path, struct error *error)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum status status = STATUS_OK;

    if (fd < 0) {
        return artifacts_io_error(error, "open the directory", path);
    }
    if (fsync(fd) != 0) {
        status = artifacts_io_error(error, "sync the directory", path);
    }
    close(fd);
    return status;
}

/* The directory exists afterwards, and its entry in `parent` is on the disk. One that is there
 * already may be there for us alone: an earlier sync failed, or whoever made it died before it. */
static enum status make_directory(const char *path, const char *parent, struct error *error)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return artifacts_io_error(error, "create the directory", path);
    }
    return sync_directory(parent, error);
}

static void unfinished_path(const struct artifacts *artifacts, char out[ARTIFACT_NAME_BYTES])
{
    snprintf(out, ARTIFACT_NAME_BYTES, "%s/unfinished", artifacts->path);
}

static void directory_path(const struct artifacts *artifacts, const char *hash,
                           char out[ARTIFACT_NAME_BYTES])
{
    snprintf(out, ARTIFACT_NAME_BYTES, "%s/%.2s", artifacts->path, hash);
}

void artifacts_file_path(const struct artifacts *artifacts, const char *hash,
                         char out[ARTIFACT_NAME_BYTES])
{
    snprintf(out, ARTIFACT_NAME_BYTES, "%s/%.2s/%.64s.zst", artifacts->path, hash, hash);
}

enum status artifacts_check_hash(const char *hash, struct error *error)
{
    if (!sha256_is_hex(hash, strnlen(hash, SHA256_HEX_BYTES))) {
        return error_set(error, STATUS_BAD_INPUT,
                         "\"%.64s\" is not an artifact's name (64 lower-case hexadecimal digits)",
                         hash);
    }
    return STATUS_OK;
}

void artifacts_hash_bytes(const char *hash, uint8_t out[SHA256_BYTES])
{
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        char digits[3] = {hash[2 * i], hash[2 * i + 1], '\0'};
        out[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

/* Removes what unfinished writes left, unless it was written to after `since_s`. */
static enum status remove_unfinished(const char *unfinished, int64_t since_s, struct error *error)
{
    enum status status = STATUS_OK;
    struct stat info;
    DIR *directory = opendir(unfinished);

    if (directory == NULL) {
        return artifacts_io_error(error, "read the directory", unfinished);
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        bool there = entry->d_name[0] != '.' &&
                     fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                     (int64_t)info.st_mtime <= since_s;
        if (there && unlinkat(dirfd(directory), entry->d_name, 0) != 0 && errno != ENOENT) {
            status = artifacts_io_error(error, "remove an unfinished artifact", unfinished);
        }
    }
    closedir(directory);
    return status;
}

static enum status open_directories(const char *store_path, int64_t since_s, struct artifacts *out,
                                    struct error *error)
{
    char parent[LIMIT_PATH_BYTES];
    char unfinished[ARTIFACT_NAME_BYTES];
    int bytes = snprintf(out->path, sizeof out->path, "%s.artifacts", store_path);

    out->objects = NULL;
    if (bytes < 0 || (size_t)bytes >= sizeof out->path) {
        return error_set(error, STATUS_LIMIT, "%s: the path is too long", store_path);
    }
    memcpy(parent, out->path, (size_t)bytes + 1);
    char *slash = strrchr(parent, '/');
    if (slash == NULL) {
        memcpy(parent, ".", 2);
    } else {
        slash[slash == parent ? 1 : 0] = '\0';
    }
    enum status status = make_directory(out->path, parent, error);
    if (status == STATUS_OK) {
        unfinished_path(out, unfinished);
        status = make_directory(unfinished, out->path, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    return remove_unfinished(unfinished, since_s, error);
}

enum status artifacts_open(const char *store_path, struct artifacts *out, struct error *error)
{
    return open_directories(store_path, INT64_MAX, out, error);
}

enum status artifacts_open_shared(const char *store_path, struct artifacts *out,
                                  struct error *error)
{
    return open_directories(store_path, (int64_t)time(NULL) - UNFINISHED_S, out, error);
}

/* Keeps the collector (store/keep/gc.h) out of directory ab until the descriptor is closed; it is
 * -1 where there is none. */
static enum status hold_directory(const char *path, int *fd, struct error *error)
{
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0) {
        return errno == ENOENT ? STATUS_OK : artifacts_io_error(error, "open the directory", path);
    }
    while (flock(*fd, LOCK_SH) != 0) {
        if (errno != EINTR) {
            enum status status = artifacts_io_error(error, "lock the directory", path);
            close(*fd);
            *fd = -1;
            return status;
        }
    }
    return STATUS_OK;
}

/* The name of an artifact's object: that of its file in the folder. */
static const char *key_of(const struct artifacts *artifacts, const char *path)
{
    return path + strlen(artifacts->path) + 1;
}

/* Makes an artifact that somebody relies on from here on look as young as it is now. */
static enum status renew(const struct artifacts *artifacts, const char *hash, const char *path,
                         bool *exists, struct error *error)
{
    char directory[ARTIFACT_NAME_BYTES];
    int held = -1;
    enum status status = STATUS_OK;

    directory_path(artifacts, hash, directory);
    TRY(hold_directory(directory, &held, error));
    *exists = utimensat(AT_FDCWD, path, NULL, 0) == 0;
    if (!*exists && errno != ENOENT && errno != ENOTDIR) {
        status = artifacts_io_error(error, "renew the time of the artifact", path);
    }
    if (held >= 0) {
        close(held);
    }
    return status;
}

enum status artifacts_exists(const struct artifacts *artifacts, const char *hash, bool *exists,
                             struct error *error)
{
    char path[ARTIFACT_NAME_BYTES];
    TRY(artifacts_check_hash(hash, error));

    artifacts_file_path(artifacts, hash, path);
    struct stat info;
    bool here = stat(path, &info) == 0;
    if (!here && errno != ENOENT && errno != ENOTDIR) {
        return artifacts_io_error(error, "look for the artifact", path);
    }
    bool old = here && (int64_t)info.st_mtime < (int64_t)time(NULL) - ARTIFACTS_FRESH_S;
    *exists = here && info.st_size > 0; /* an empty one was cut off: it may be written again */
    if (artifacts->objects != NULL && (!*exists || old)) { /* a bucket's rule may have let it go */
        int64_t bytes = *exists ? (int64_t)info.st_size : -1;
        TRY(object_storage_exists(artifacts->objects, key_of(artifacts, path), bytes, exists,
                                  error));
    }
    if (!*exists || !old) {
        return STATUS_OK;
    }
    bool renewed = false;
    TRY(renew(artifacts, hash, path, &renewed, error));
    *exists = renewed || artifacts->objects != NULL; /* a copy may go at any time */
    return STATUS_OK;
}

/* ---- writing ---- */

enum status artifacts_write_all(int fd, const char *path, const uint8_t *data, size_t bytes,
                                struct error *error)
{
    while (bytes > 0) {
        ssize_t written = write(fd, data, bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return artifacts_io_error(error, "write the artifact", path);
        }
        data += written;
        bytes -= (size_t)written;
    }
    return STATUS_OK;
}

/* make_directory for directory ab, without the sync when nothing is new. */
static enum status keep_directory(struct artifacts *artifacts, const char *hash,
                                  char path[ARTIFACT_NAME_BYTES], struct error *error)
{
    char digits[3] = {hash[0], hash[1], '\0'};
    atomic_bool *synced = &artifacts->synced[strtoul(digits, NULL, 16)];
    struct stat info;

    directory_path(artifacts, hash, path);
    if (atomic_load(synced) && stat(path, &info) == 0) {
        return STATUS_OK;
    }
    TRY(make_directory(path, artifacts->path, error));
    atomic_store(synced, true);
    return STATUS_OK;
}

enum status artifacts_create_unfinished(const struct artifacts *artifacts, int *fd,
                                        char temporary[ARTIFACT_TEMPORARY_BYTES],
                                        struct error *error)
{
    static atomic_uint_fast64_t serial; /* only to keep two threads' names apart */
    char unfinished[ARTIFACT_NAME_BYTES];
    uint64_t machine = 0; /* on another one, or in a container, a process may have the same id */

    unfinished_path(artifacts, unfinished);
    if (getrandom(&machine, sizeof machine, 0) != (ssize_t)sizeof machine) {
        return artifacts_io_error(error, "draw a name in", unfinished);
    }
    snprintf(temporary, ARTIFACT_TEMPORARY_BYTES, "%s/%ld.%" PRIuFAST64 ".%016" PRIx64, unfinished,
             (long)getpid(), atomic_fetch_add(&serial, 1), machine);
    int created = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (created < 0 && errno == ENOENT) { /* somebody tidied up */
        TRY(make_directory(unfinished, artifacts->path, error));
        created = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (created < 0) {
        return artifacts_io_error(error, "create the artifact", temporary);
    }
    *fd = created;
    return STATUS_OK;
}

enum status artifacts_finish(struct artifacts *artifacts, int fd, const char *temporary,
                             const char *hash, struct error *error)
{
    char directory[ARTIFACT_NAME_BYTES];
    char path[ARTIFACT_NAME_BYTES];
    char gone[ARTIFACT_MARK_BYTES];
    enum status status = STATUS_OK;

    artifacts_file_path(artifacts, hash, path);
    if (fsync(fd) != 0) {
        status = artifacts_io_error(error, "sync the artifact", temporary);
    }
    if (artifacts->objects != NULL) {
        THEN(status, object_storage_put(artifacts->objects, key_of(artifacts, path), fd, error));
    }
    if (close(fd) != 0 && status == STATUS_OK) {
        status = artifacts_io_error(error, "close the artifact", temporary);
    }
    THEN(status, keep_directory(artifacts, hash, directory, error));
    int held = -1;
    THEN(status, hold_directory(directory, &held, error));
    if (status == STATUS_OK && rename(temporary, path) != 0) {
        status = artifacts_io_error(error, "name the artifact", path);
    } else if (status == STATUS_OK) {
        artifacts_mark_path(path, gone);
        unlink(gone); /* it is back; one that stays would only excuse another loss */
    }
    if (held >= 0) {
        close(held);
    }
    if (status == STATUS_OK) {
        return sync_directory(directory, error);
    }
    unlink(temporary); /* a failure to do so is cleaned up at the next open */
    return status;
}

/* Writes a whole file under a name of its own and moves it to where it belongs. */
static enum status write_file(struct artifacts *artifacts, const char *hash, const uint8_t *data,
                              size_t bytes, struct error *error)
{
    char temporary[ARTIFACT_TEMPORARY_BYTES];
    int fd = -1;
    TRY(artifacts_create_unfinished(artifacts, &fd, temporary, error));
    enum status status = artifacts_write_all(fd, temporary, data, bytes, error);
    if (status != STATUS_OK) {
        close(fd);
        unlink(temporary);
        return status;
    }
    return artifacts_finish(artifacts, fd, temporary, hash, error);
}

/* Whether the file of an artifact has its contents, as far as can be told. */
static bool is_whole(const struct artifacts *artifacts, const char *hash)
{
    void *data = NULL;
    size_t bytes = 0;
    struct error error;
    enum status status = artifacts_get(artifacts, hash, &data, &bytes, &error);
    free(data);
    return status == STATUS_OK || status == STATUS_NO_MEMORY;
}

enum status artifacts_put(struct artifacts *artifacts, const void *data, size_t bytes,
                          char hash[SHA256_HEX_BYTES], struct error *error)
{
    char name[SHA256_HEX_BYTES];
    char directory[ARTIFACT_NAME_BYTES];
    char path[ARTIFACT_NAME_BYTES];
    bool exists = false;

    if (bytes > LIMIT_ARTIFACT_BYTES) {
        return error_set(error, STATUS_LIMIT, "an artifact has at most %d bytes, this one has %zu",
                         LIMIT_ARTIFACT_BYTES, bytes);
    }
    sha256_hex(data, bytes, name);
    /* An object that was never written or read from here may be what is left of a put that failed:
     * it is written again. */
    artifacts_file_path(artifacts, name, path);
    if (artifacts->objects == NULL || access(path, F_OK) == 0) {
        TRY(artifacts_exists(artifacts, name, &exists, error));
    }
    exists = exists && (artifacts->objects != NULL || is_whole(artifacts, name));
    TRY(keep_directory(artifacts, name, directory, error));
    enum status status = STATUS_OK;
    if (exists) {
        /* Another thread may have named it a moment ago and not yet synced the directory. */
        status = sync_directory(directory, error);
    } else {
        size_t capacity = ZSTD_compressBound(bytes);
        uint8_t *packed = malloc(capacity);
        TRY(memory_check(packed, error, "out of memory for an artifact of %zu bytes", bytes));
        size_t packed_bytes =
            ZSTD_compress(packed, capacity, data, bytes, ZSTD_FRAME_COMPRESSION_LEVEL);
        if (ZSTD_isError(packed_bytes)) {
            status = error_set(error, STATUS_NO_MEMORY, "cannot compress an artifact: %s",
                               ZSTD_getErrorName(packed_bytes));
        } else {
            status = write_file(artifacts, name, packed, packed_bytes, error);
        }
        free(packed);
    }
    if (status == STATUS_OK) {
        memcpy(hash, name, sizeof name);
    }
    return status;
}

/* ---- reading ---- */

enum status artifacts_damaged(struct error *error, const char *path, const char *how)
{
    return error_set(
        error, STATUS_IO,
        "%s: the artifact is damaged (%s); delete this file and give the command again that made "
        "it (run, golden make, model add), or restore it",
        path, how);
}

void artifacts_mark_path(const char *path, char out[ARTIFACT_MARK_BYTES])
{
    snprintf(out, ARTIFACT_MARK_BYTES, "%.*s" ARTIFACTS_GONE, (int)(strlen(path) - strlen(".zst")),
             path);
}

bool artifacts_mark(int directory, const char *path, const struct timespec times[2])
{
    char name[ARTIFACT_MARK_BYTES];

    artifacts_mark_path(path, name);
    int fd =
        openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    bool good = fd >= 0 && futimens(fd, times) == 0;
    int cause = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = cause;
    return good;
}

bool artifacts_let_go(const char *path, int64_t *at_s)
{
    char gone[ARTIFACT_MARK_BYTES];
    struct stat info;

    artifacts_mark_path(path, gone);
    if (lstat(gone, &info) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    *at_s = (int64_t)info.st_mtime;
    return true;
}

static enum status not_there(const char *path, struct error *error)
{
    char date[32] = "";
    struct tm utc;
    int64_t at_s = 0;

    if (!artifacts_let_go(path, &at_s)) {
        return error_set(error, STATUS_NOT_FOUND, "%s: there is no such artifact", path);
    }
    time_t at = (time_t)at_s;
    if (gmtime_r(&at, &utc) != NULL) {
        strftime(date, sizeof date, " on %Y-%m-%d", &utc);
    }
    return error_set(error, STATUS_GONE, "%s: retention let the artifact go%s", path, date);
}

static enum status open_file(const char *path, int *out, struct error *error)
{
    struct stat info;
    int fd = -1;

    /* The kind is asked first, because opening a device can have effects, and again afterwards,
     * because the name may have changed hands; a pipe is not waited for. */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        return artifacts_damaged(error, path, "it is no file");
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return not_there(path, error);
        }
        return artifacts_io_error(error, "open the artifact", path);
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return artifacts_damaged(error, path, "it is no file");
    }
    *out = fd;
    return STATUS_OK;
}

/* Copies an object into the folder, whole or not at all. One that is damaged would stay here when
 * the bucket's has been mended. */
static enum status bring(const struct artifacts *artifacts, const char *path, struct error *error)
{
    const char *key = key_of(artifacts, path);
    char temporary[ARTIFACT_TEMPORARY_BYTES];
    char directory[ARTIFACT_NAME_BYTES];
    int fd = -1;

    TRY(artifacts_create_unfinished(artifacts, &fd, temporary, error));
    enum status status = object_storage_get(artifacts->objects, key,
                                            ZSTD_compressBound(LIMIT_ARTIFACT_BYTES), fd, error);
    char place[ARTIFACT_NAME_BYTES];
    char hash[SHA256_HEX_BYTES];
    snprintf(place, sizeof place, "%.512s: %s", object_storage_place(artifacts->objects), key);
    snprintf(hash, sizeof hash, "%s", key + strlen("ab/"));
    THEN(status, artifacts_verify(fd, place, hash, error));
    directory_path(artifacts, key, directory); /* both begin with the digits */
    if (status == STATUS_OK && mkdir(directory, 0777) != 0 && errno != EEXIST) {
        status = artifacts_io_error(error, "create the directory", directory);
    }
    if (status == STATUS_OK && (fsync(fd) != 0 || rename(temporary, path) != 0)) {
        status = artifacts_io_error(error, "name the artifact", path);
    }
    close(fd);
    if (status != STATUS_OK) {
        unlink(temporary);
    }
    return status;
}

enum status artifacts_file_open(const struct artifacts *artifacts, const char *path, int *out,
                                struct error *error)
{
    enum status status = open_file(path, out, error);
    if (status != STATUS_NOT_FOUND || artifacts->objects == NULL) {
        return status;
    }
    TRY(bring(artifacts, path, error));
    return open_file(path, out, error);
}

/* The whole file; *data is malloc'ed. */
static enum status read_file(const struct artifacts *artifacts, const char *path, uint8_t **data,
                             size_t *bytes, struct error *error)
{
    struct stat info;
    size_t used = 0;
    enum status status = STATUS_OK;
    int fd = -1;

    TRY(artifacts_file_open(artifacts, path, &fd, error));
    if (fstat(fd, &info) != 0 || info.st_size < 0 ||
        (size_t)info.st_size > ZSTD_compressBound(LIMIT_ARTIFACT_BYTES)) {
        close(fd);
        return artifacts_damaged(error, path, "its size is impossible");
    }
    size_t capacity = (size_t)info.st_size;
    uint8_t *buffer = malloc(capacity + 1);
    if (buffer == NULL) {
        close(fd);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path);
    }
    while (used < capacity) {
        ssize_t got = read(fd, buffer + used, capacity - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            status = got < 0 ? artifacts_io_error(error, "read the artifact", path)
                             : artifacts_damaged(error, path, "it ends early");
            break;
        }
        used += (size_t)got;
    }
    close(fd);
    if (status != STATUS_OK) {
        free(buffer);
        return status;
    }
    *data = buffer;
    *bytes = used;
    return STATUS_OK;
}

static enum status unpack(const char *path, const char *hash, const uint8_t *packed,
                          size_t packed_bytes, void **data, size_t *bytes, struct error *error)
{
    char found[SHA256_HEX_BYTES];
    unsigned long long size = ZSTD_getFrameContentSize(packed, packed_bytes);

    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
        return artifacts_damaged(error, path, "not a zstd file");
    }
    if (size > LIMIT_ARTIFACT_BYTES) {
        return artifacts_damaged(error, path, "it claims to expand beyond the limit");
    }
    char *buffer = malloc((size_t)size + 1);
    TRY(memory_check(buffer, error, "%s: out of memory", path));
    size_t got = ZSTD_decompress(buffer, (size_t)size, packed, packed_bytes);
    if (ZSTD_isError(got) && ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation) {
        free(buffer);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path);
    }
    if (ZSTD_isError(got) || got != size) {
        free(buffer);
        return artifacts_damaged(error, path, "its contents do not unpack");
    }
    sha256_hex(buffer, got, found);
    if (strcmp(found, hash) != 0) {
        free(buffer);
        return artifacts_damaged(error, path, "its contents are not those of its name");
    }
    buffer[got] = '\0';
    *data = buffer;
    *bytes = got;
    return STATUS_OK;
}

enum status artifacts_get(const struct artifacts *artifacts, const char *hash, void **data,
                          size_t *bytes, struct error *error)
{
    char path[ARTIFACT_NAME_BYTES];
    uint8_t *packed = NULL;
    size_t packed_bytes = 0;
    TRY(artifacts_check_hash(hash, error));
    artifacts_file_path(artifacts, hash, path);
    enum status status = read_file(artifacts, path, &packed, &packed_bytes, error);
    if (status == STATUS_OK) {
        status = unpack(path, hash, packed, packed_bytes, data, bytes, error);
        free(packed);
    }
    return status;
}
