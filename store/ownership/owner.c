/*
 * The owner behind a path.
 *
 * One process owns a database at a time: the one that holds the lock on PATH.lock and then the one
 * on the database file (store/sql/ownership.h, taken by the embedded backend). It serves it on
 * PATH.sock; every other process is its client. PATH is the file's real path, however it was
 * called. The kernel drops both locks when their holder dies, however it dies; a client whose call
 * is not answered tries them and becomes the owner, or finds the new one. flock() belongs to the
 * open file description, so two handles of one process exclude each other as well; a child that was
 * forked without exec would keep the lock alive, so processes must exec (descriptors are
 * close-on-exec).
 *
 * Invariant: only who holds both locks opens the database or touches the socket file. The lock file
 * keeps those who take turns from trying the database, says who the owner is, and excludes programs
 * that know no other lock; should somebody remove it, the lock on the database still holds, and
 * whoever meets that one becomes a client.
 */
#include "store/ownership/owner.h"

#include "base/units.h"
#include "schemas/limits.h"
#include "store/api/store_path.h"
#include "store/api/store_url.h"
#include "store/client/http_client.h"
#include "store/client/retry.h"
#include "store/postgres/postgres_store.h"
#include "store/server/server.h"
#include "store/wire/http_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ELSEWHERE_MS = 3000, /* how long an owner that uses another name is waited for */
};

struct store_owner {
    char path[LIMIT_PATH_BYTES];
    char lock_path[LIMIT_PATH_BYTES + 8];
    char socket_path[LIMIT_PATH_BYTES + 8];
    struct store_config config;
    store_embedded_open embedded;
    struct store *client; /* raw HTTP backend to whoever owns the path */
    pthread_mutex_t mutex;
    int lock_fd;                 /* -1: not the owner */
    struct store *owned;         /* the embedded backend, once owner */
    struct store_server *server; /* on owned */
    ino_t socket_inode;          /* of the socket file, while owner */
    struct error elsewhere;      /* CONFLICT: the last try met an owner that has no PATH.lock */
};

/* ---- the lock ---- */

/* The owner's process id as it wrote it, 0 when unknown. */
static long owner_pid(const struct store_owner *owner)
{
    char text[32] = "";
    int fd = open(owner->lock_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    return bytes > 0 ? strtol(text, NULL, 10) : 0;
}

enum { OWNER_NAME_BYTES = 48 };

/* "process 123"; a process that owns the store since a moment has not said its id yet. */
static const char *owner_name(const struct store_owner *owner, char out[OWNER_NAME_BYTES])
{
    long pid = owner_pid(owner);
    snprintf(out, OWNER_NAME_BYTES, pid > 0 ? "process %ld" : "another process", pid);
    return out;
}

static void write_pid(int fd)
{
    char text[32];
    int bytes = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* Only for messages, so a failure is one message less. */
    if (ftruncate(fd, 0) == 0) {
        ssize_t written = pwrite(fd, text, (size_t)bytes, 0);
        (void)written;
    }
}

/* *fd: the lock, held; -1: somebody else holds it. */
static enum status try_lock(const struct store_owner *owner, int *fd, struct error *error)
{
    int lock = open(owner->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) {
        return store_path_say_read_only(owner->path, "lock file", owner->lock_path, errno, error);
    }
    if (lock < 0) {
        return error_set(error, STATUS_STORE, "%s: cannot open the store's lock file: %s",
                         owner->lock_path, strerror(errno));
    }
    while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) {
            continue;
        }
        int reason = errno;
        close(lock);
        if (reason == EWOULDBLOCK) {
            *fd = -1;
            return STATUS_OK;
        }
        return error_set(error, STATUS_STORE, "%s: cannot lock: %s", owner->lock_path,
                         strerror(reason));
    }
    struct stat mine;
    struct stat named;
    if (fstat(lock, &mine) != 0 || stat(owner->lock_path, &named) != 0 ||
        mine.st_ino != named.st_ino || mine.st_dev != named.st_dev) {
        close(lock); /* somebody removed the file meanwhile: as if the lock were taken */
        *fd = -1;
        return STATUS_OK;
    }
    *fd = lock;
    return STATUS_OK;
}

/* ---- owning ---- */

/* 0: there is no such file. */
static ino_t inode_of(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 ? info.st_ino : 0;
}

/* Holding the lock: opens the database and serves it. On failure nothing is left open. */
static enum status become_owner(struct store_owner *owner, int lock_fd, struct error *error)
{
    struct store *owned = NULL;
    int listen_fd = -1;
    if (faccessat(AT_FDCWD, owner->path, W_OK, AT_EACCESS) != 0 && errno != ENOENT) {
        return store_path_say_read_only(owner->path, "database", owner->path, errno, error);
    }
    TRY(owner->embedded(owner->path, &owner->config, &owned, error));
    write_pid(lock_fd);
    enum status status = unix_listen(owner->socket_path, &listen_fd, error);
    if (status == STATUS_OK) {
        owner->socket_inode = inode_of(owner->socket_path);
    }
    THEN(status, store_server_start(owned, listen_fd, &owner->config, &owner->server, error));
    if (status != STATUS_OK) {
        owned->ops->close(owned);
        return status;
    }
    owner->owned = owned;
    owner->lock_fd = lock_fd;
    log_event(owner->config.logger, LOG_INFO, "%s: this process owns the store", owner->path);
    return STATUS_OK;
}

static enum status owner_locate(void *context, bool lost, struct store **inner, struct error *error)
{
    struct store_owner *owner = context;
    enum status status = STATUS_OK;
    int lock_fd = -1;
    pthread_mutex_lock(&owner->mutex);
    if (owner->owned == NULL && lost) {
        status = try_lock(owner, &lock_fd, error);
        if (status == STATUS_OK && lock_fd >= 0) {
            status = become_owner(owner, lock_fd, error);
            if (status != STATUS_OK) {
                close(lock_fd);
            }
            owner->elsewhere.status = status == STATUS_CONFLICT ? status : STATUS_OK;
            if (status == STATUS_CONFLICT) {
                owner->elsewhere = *error;
                status = STATUS_OK; /* a client, if that owner serves this path */
            }
        } else {
            owner->elsewhere.status = STATUS_OK;
        }
    }
    if (status == STATUS_OK) {
        *inner = owner->owned != NULL ? owner->owned : owner->client;
    }
    pthread_mutex_unlock(&owner->mutex);
    return status;
}

static void owner_describe(void *context, char *text, size_t capacity)
{
    const struct store_owner *owner = context;
    snprintf(text, capacity, "%s: the process that owns the store (process id %ld)", owner->path,
             owner_pid(owner));
}

/* Hands over: new clients find no socket, requests in progress are answered, then the database is
 * closed, and only then the lock is free. */
static void owner_close(void *context)
{
    struct store_owner *owner = context;
    if (owner->owned != NULL) {
        /* Not that of somebody who took over a path that was emptied. */
        if (owner->socket_path[0] != '\0' && inode_of(owner->socket_path) == owner->socket_inode) {
            unlink(owner->socket_path);
        }
        store_server_stop(owner->server);
        owner->owned->ops->close(owner->owned);
        if (owner->lock_fd >= 0) {
            close(owner->lock_fd);
        }
    }
    if (owner->client != NULL) {
        owner->client->ops->close(owner->client);
    }
    pthread_mutex_destroy(&owner->mutex);
    free(owner);
}

/* Becomes the owner or hears from one, within the deadline. */
static enum status settle(struct store_owner *owner, int64_t deadline_ms, struct error *error)
{
    struct error last = {.status = STATUS_OK, .text = ""};
    char name[OWNER_NAME_BYTES];
    int64_t start_ns = clock_now_ns(clock_system());
    int64_t end_ns = start_ns + deadline_ms * NS_PER_MS;
    struct timespec pause = {.tv_nsec = 5 * NS_PER_MS};
    for (;;) {
        struct store *inner = NULL;
        enum status status = owner_locate(owner, true, &inner, error);
        if (status != STATUS_OK || inner != owner->client) {
            return status;
        }
        status = http_client_ping(inner, &last);
        if (status != HTTP_UNREACHED && status != HTTP_LOST) {
            return status == STATUS_OK ? status : error_set(error, status, "%s", last.text);
        }
        bool elsewhere = owner->elsewhere.status != STATUS_OK;
        int64_t until_ns = elsewhere && inode_of(owner->socket_path) == 0
                               ? start_ns + ELSEWHERE_MS * NS_PER_MS
                               : end_ns;
        if (elsewhere && clock_now_ns(clock_system()) >= until_ns) {
            return error_set(error, STATUS_CONFLICT, "%s", owner->elsewhere.text);
        }
        if (clock_now_ns(clock_system()) >= end_ns) {
            return error_set(error, STATUS_TIMEOUT,
                             "%.400s: %s owns the store and did not answer for %lld s: "
                             "%.400s",
                             owner->path, owner_name(owner, name), (long long)(deadline_ms / 1000),
                             last.text);
        }
        nanosleep(&pause, NULL);
    }
}

static enum status check_path(const char *path, const struct store_config *config,
                              struct error *error)
{
    struct stat info;
    size_t bytes = strlen(path);
    if (bytes == 0) {
        return error_set(error, STATUS_USAGE, "store: expected a path or URL, found nothing");
    }
    if (bytes >= LIMIT_PATH_BYTES) {
        return error_set(error, STATUS_LIMIT, "store path: expected at most %d bytes, found %zu",
                         LIMIT_PATH_BYTES - 1, bytes);
    }
    if (stat(path, &info) != 0 ? path[bytes - 1] == '/' : S_ISDIR(info.st_mode)) {
        return error_set(error, STATUS_STORE,
                         "%s: expected a database file (it may not exist yet), found a directory",
                         path);
    }
    char lock[LIMIT_PATH_BYTES + 8];
    snprintf(lock, sizeof lock, "%s.lock", path);
    /* With a lock file an empty one may be being made at this moment: its owner will say. */
    bool begun = access(path, F_OK) == 0 && access(lock, F_OK) == 0;
    return config != NULL && config->intent != STORE_MAKE && !begun ? store_path_check(path, error)
                                                                    : STATUS_OK;
}

/* Neither owner nor client yet. */
static enum status owner_create(const char *path, const struct store_config *config,
                                store_embedded_open embedded, struct store_owner **out,
                                struct error *error)
{
    TRY(check_path(path, config, error));
    struct store_owner *owner = calloc(1, sizeof *owner);
    TRY(memory_check(owner, error, "%s: out of memory", path));
    enum status status = store_path_resolve(path, owner->path, error);
    if (status != STATUS_OK) {
        free(owner);
        return status;
    }
    snprintf(owner->lock_path, sizeof owner->lock_path, "%s.lock", owner->path);
    snprintf(owner->socket_path, sizeof owner->socket_path, "%s.sock", owner->path);
    if (config != NULL) {
        owner->config = *config;
    }
    owner->embedded = embedded;
    owner->lock_fd = -1;
    pthread_mutex_init(&owner->mutex, NULL);
    *out = owner;
    return STATUS_OK;
}

enum status store_shared_open(const char *path, const struct store_config *config,
                              store_embedded_open embedded, int64_t deadline_ms, struct store **out,
                              struct error *error)
{
    char url[LIMIT_PATH_BYTES + 16];
    struct store_owner *owner = NULL;
    TRY(owner_create(path, config, embedded, &owner, error));
    snprintf(url, sizeof url, "unix:%s", owner->socket_path);
    enum status status = http_client_open(url, &owner->config, &owner->client, error);
    THEN(status, settle(owner, deadline_ms, error));
    if (status != STATUS_OK) {
        owner_close(owner);
        return status;
    }
    struct retry_source source = {
        .locate = owner_locate,
        .describe = owner_describe,
        .close = owner_close,
        .context = owner,
        .stop = owner->config.stop,
    };
    return retry_create(&source, deadline_ms, out, error);
}

/* ---- owning for good ---- */

/* A database that several processes serve: nobody owns it, and there is no socket beside it. */
static enum status peer_open(const char *url, const struct store_config *config,
                             struct store_owner **out, struct error *error)
{
    struct store_owner *owner = calloc(1, sizeof *owner);
    TRY(memory_check(owner, error, "out of memory for a store"));

    owner->lock_fd = -1;
    pthread_mutex_init(&owner->mutex, NULL);
    enum status status = postgres_store_open(url, config, &owner->owned, error);
    if (status != STATUS_OK) {
        owner_close(owner);
        return status;
    }
    *out = owner;
    return STATUS_OK;
}

enum status store_owner_open(const char *path, const struct store_config *config,
                             struct store_owner **out, struct error *error)
{
    struct store *embedded = NULL;
    struct store_owner *owner = NULL;
    char name[OWNER_NAME_BYTES];
    enum store_url_kind kind;
    TRY(store_url_kind(path, &kind, error));
    if (kind == STORE_URL_POSTGRES) {
        return peer_open(path, config, out, error);
    }
    TRY(owner_create(path, config, store_sqlite_open, &owner, error));
    enum status status = owner_locate(owner, true, &embedded, error);
    if (status == STATUS_OK && embedded == NULL && owner->elsewhere.status != STATUS_OK) {
        status = error_set(error, STATUS_CONFLICT, "%s", owner->elsewhere.text);
    } else if (status == STATUS_OK && embedded == NULL) {
        status = error_set(error, STATUS_CONFLICT,
                           "%.600s: %s owns the store (it holds %.200s.lock); stop it, or "
                           "name another store",
                           path, owner_name(owner, name), path);
    }
    if (status != STATUS_OK) {
        owner_close(owner);
        return status;
    }
    *out = owner;
    return STATUS_OK;
}

struct store *store_owner_store(struct store_owner *owner)
{
    return owner->owned;
}

void store_owner_close(struct store_owner *owner)
{
    if (owner != NULL) {
        owner_close(owner);
    }
}
