/*
 * Owning a database file. See ownership.h.
 *
 * What this process owns stands in one list: SQLite's locks are the process's, so this has to be
 * known process-wide.
 */
#include "store/sql/ownership.h"

#include "schemas/limits.h"
#include "store/sql/sqlite_db.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOCK_BYTE = 0x50000000,           /* SQLite's bytes are 0x40000000 to 0x400001ff */
    SQLITE_SHARED_FIRST = 0x40000002, /* held for reading by every connection with a log */
    SQLITE_SHARED_BYTES = 510,
    NAME_BYTES = LIMIT_PATH_BYTES + 16,
    STRAYS_MAX = 16,
    LOG_HEADER_BYTES = 32,
};

/* Target of the path. */
enum part { PART_DATABASE, PART_LOG, PART_SHARED_MEMORY, PART_COUNT };

enum finding { FOUND_NOTHING, FOUND_REMOVED, FOUND_REPLACED, FOUND_CUT_OFF };

static const char *const part_suffix[PART_COUNT] = {"", "-wal", "-shm"};

struct identity {
    dev_t device;
    ino_t inode;
};

struct ownership {
    struct ownership *next;
    int fd;
    int strays[STRAYS_MAX]; /* further descriptors of the file, see stray_descriptor */
    int stray_count;
    int log_fd;                           /* -1: not watched yet */
    uint8_t log_header[LOG_HEADER_BYTES]; /* when the log was last looked at; writer */
    struct identity parts[PART_COUNT];
    atomic_int lost; /* finding * PART_COUNT + part; 0: nothing was found */
    char path[LIMIT_PATH_BYTES];
    char names[PART_COUNT][NAME_BYTES]; /* of the parts */
};

static struct {
    pthread_mutex_t mutex;
    struct ownership *first;
} owned = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct identity identity_of(const struct stat *info)
{
    return (struct identity){.device = info->st_dev, .inode = info->st_ino};
}

static bool same(struct identity a, struct identity b)
{
    return a.device == b.device && a.inode == b.inode;
}

/* With the mutex held. */
static struct ownership *find(const struct stat *info)
{
    struct ownership *at = owned.first;

    while (at != NULL && !same(at->parts[PART_DATABASE], identity_of(info))) {
        at = at->next;
    }
    return at;
}

/* ---- taking ---- */

static enum status owned_by(const char *path, long pid, struct error *error)
{
    char who[64] = "another process";

    if (pid > 0) {
        snprintf(who, sizeof who, "process %ld", pid);
    }
    return error_set(error, STATUS_CONFLICT,
                     "%.600s: %s owns this database, perhaps under another name (a bind mount, or "
                     "its lock file was removed); stop it, or use the name that it uses",
                     path, who);
}

static enum status cannot(const char *path, const char *what, int reason, struct error *error)
{
    return error_set(error, reason == ENOMEM ? STATUS_NO_MEMORY : STATUS_STORE,
                     "%s: cannot %s the store's database: %s", path, what, strerror(reason));
}

/* Who has the file open with SQLite; 0: unknown. */
static long connected_pid(int fd)
{
    struct flock range = {.l_type = F_WRLCK,
                          .l_whence = SEEK_SET,
                          .l_start = SQLITE_SHARED_FIRST,
                          .l_len = SQLITE_SHARED_BYTES};
    return fcntl(fd, F_GETLK, &range) == 0 && range.l_type != F_UNLCK ? range.l_pid : 0;
}

struct ownership_use ownership_look(const char *path)
{
    struct ownership_use use = {.owned = false};
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd >= 0) {
        use.owned = fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
        use.pid = connected_pid(fd);
        close(fd);
    }
    return use;
}

static enum status lock_file(const char *path, int fd, struct error *error)
{
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};

    while (fcntl(fd, F_OFD_SETLK, &range) != 0) {
        if (errno == EAGAIN || errno == EACCES) {
            return owned_by(path, connected_pid(fd), error);
        }
        if (errno != EINTR) {
            return cannot(path, "lock", errno, error);
        }
    }
    return STATUS_OK;
}

/* A lock that is granted a second time keeps nobody out: some file systems only pretend. The file
 * must not be open here otherwise: closing a descriptor drops SQLite's locks. */
static enum status check_lock(const char *path, int fd, struct error *error)
{
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};
    char same_file[32];
    snprintf(same_file, sizeof same_file, "/proc/self/fd/%d", fd);
    int second = open(same_file, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (second < 0) {
        return cannot(path, "open", errno, error);
    }
    int answer = fcntl(second, F_OFD_SETLK, &range);
    int reason = errno;
    close(second);
    if (answer == 0) {
        return error_set(error, STATUS_STORE,
                         "%.600s: the file system grants the same lock twice, so it would not keep "
                         "a second process from writing to the store; put it on a file system that "
                         "keeps locks on byte ranges, such as a local disk",
                         path);
    }
    return reason == EAGAIN || reason == EACCES ? STATUS_OK : cannot(path, "lock", reason, error);
}

/* The locked file is still what the path leads to, and has no second name, under which another log
 * would lie beside it. */
static enum status check_names(const char *path, const struct stat *mine, struct error *error)
{
    struct stat named;

    if (!S_ISREG(mine->st_mode)) {
        return error_set(error, STATUS_STORE, "%s: expected a database file, found something else",
                         path);
    }
    if (mine->st_nlink > 1) {
        return error_set(error, STATUS_STORE,
                         "%.600s: the database has %lu names (hard links); its log lies beside one "
                         "of them, so a store may have one alone. Find the others (find DIRECTORY "
                         "-samefile FILE) and remove them, or open a copy",
                         path, (unsigned long)mine->st_nlink);
    }
    if (stat(path, &named) != 0 || !same(identity_of(&named), identity_of(mine))) {
        return error_set(error, STATUS_CONFLICT,
                         "%.600s: the database was replaced while it was being opened", path);
    }
    return STATUS_OK;
}

/* A descriptor of a file that this process has open already cannot be closed before that one is:
 * SQLite's locks would go with it. With the mutex held. */
static void stray_descriptor(struct ownership *owner, int fd)
{
    if (owner->stray_count < STRAYS_MAX) {
        owner->strays[owner->stray_count++] = fd;
    } /* else it stays open: better than a lock lost */
}

/* With the mutex held, on an ownership whose path is set. On failure nothing is open. */
static enum status take(struct ownership *ownership, struct error *error)
{
    struct stat info;
    const char *path = ownership->path;

    if (stat(path, &info) == 0 && find(&info) != NULL) {
        return owned_by(path, getpid(), error);
    }
    TRY(sqlite_db_log_check(path, error));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
    if (fd < 0) {
        return cannot(path, "open", errno, error);
    }
    if (fstat(fd, &info) != 0) {
        enum status status = cannot(path, "look at", errno, error);
        close(fd);
        return status;
    }
    struct ownership *other = find(&info); /* moved here meanwhile */
    if (other != NULL) {
        stray_descriptor(other, fd);
        return owned_by(path, getpid(), error);
    }
    enum status status = check_names(path, &info, error);
    THEN(status, lock_file(path, fd, error));
    THEN(status, check_lock(path, fd, error));
    if (status == STATUS_OK && fstat(fd, &info) == 0) {
        status = check_names(path, &info, error);
    }
    if (status != STATUS_OK) {
        close(fd);
        return status;
    }
    ownership->fd = fd;
    ownership->parts[PART_DATABASE] = identity_of(&info);
    return STATUS_OK;
}

enum status ownership_take(const char *path, struct ownership **out, struct error *error)
{
    struct ownership *ownership = calloc(1, sizeof *ownership);

    TRY(memory_check(ownership, error, "%s: out of memory", path));
    if (snprintf(ownership->path, sizeof ownership->path, "%s", path) >=
        (int)sizeof ownership->path) {
        free(ownership);
        return error_set(error, STATUS_LIMIT, "the store's path is too long");
    }
    for (enum part part = PART_DATABASE; part < PART_COUNT; part++) {
        snprintf(ownership->names[part], NAME_BYTES, "%s%s", path, part_suffix[part]);
    }
    ownership->log_fd = -1;
    pthread_mutex_lock(&owned.mutex);
    enum status status = take(ownership, error);
    if (status == STATUS_OK) {
        ownership->next = owned.first;
        owned.first = ownership;
    }
    pthread_mutex_unlock(&owned.mutex);
    if (status != STATUS_OK) {
        free(ownership);
        return status;
    }
    *out = ownership;
    return STATUS_OK;
}

void ownership_release(struct ownership *ownership)
{
    if (ownership == NULL) {
        return;
    }
    pthread_mutex_lock(&owned.mutex);
    struct ownership **at = &owned.first;
    while (*at != ownership) {
        at = &(*at)->next;
    }
    *at = ownership->next;
    for (int i = 0; i < ownership->stray_count; i++) {
        close(ownership->strays[i]);
    }
    if (ownership->log_fd >= 0) {
        close(ownership->log_fd);
    }
    close(ownership->fd);
    pthread_mutex_unlock(&owned.mutex);
    free(ownership);
}

int ownership_file(const struct ownership *ownership)
{
    return ownership->fd;
}

/* ---- watching ---- */

enum status ownership_watch(struct ownership *ownership, struct error *error)
{
    const char *name = ownership->names[PART_LOG];
    struct stat info;

    for (enum part part = PART_LOG; part < PART_COUNT; part++) {
        if (stat(ownership->names[part], &info) != 0) {
            return cannot(ownership->names[part], "find a file of", errno, error);
        }
        ownership->parts[part] = identity_of(&info);
    }
    /* SQLite holds no lock on the log itself, so this descriptor can be closed at any time. */
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return cannot(name, "open a file of", errno, error);
    }
    if (ownership->log_fd >= 0) {
        close(ownership->log_fd);
    }
    ownership->log_fd = fd;
    return STATUS_OK;
}

/* The log still holds what was written to it. SQLite itself makes it shorter in two ways: to
 * nothing (a truncating checkpoint, of any program), and after a new header with new salts. Zeros
 * where the header was mean that it was cut off by somebody else and then written to again. What
 * cannot be read is left to SQLite, which will not get further either. */
static bool log_is_whole(struct ownership *ownership, int64_t size, int64_t log_bytes)
{
    uint8_t header[LOG_HEADER_BYTES];
    ssize_t got = pread(ownership->log_fd, header, sizeof header, 0);

    if (size == 0 || got <= 0) {
        return true;
    }
    if (got < LOG_HEADER_BYTES || header[0] != 0x37 || header[1] != 0x7f || header[2] != 0x06 ||
        (header[3] & 0xfe) != 0x82) {
        return false;
    }
    if (size < log_bytes) {
        return memcmp(header, ownership->log_header, sizeof header) != 0;
    }
    memcpy(ownership->log_header, header, sizeof header);
    return true;
}

static enum finding look(struct ownership *ownership, enum part part, int64_t log_bytes)
{
    struct stat info;

    if (stat(ownership->names[part], &info) != 0) {
        return errno == ENOENT || errno == ENOTDIR ? FOUND_REMOVED : FOUND_NOTHING;
    }
    if (!same(identity_of(&info), ownership->parts[part])) {
        return FOUND_REPLACED;
    }
    if (part == PART_LOG && log_bytes > 0 && !log_is_whole(ownership, info.st_size, log_bytes)) {
        return FOUND_CUT_OFF;
    }
    return FOUND_NOTHING;
}

static enum status say_lost(const struct ownership *ownership, enum finding finding, enum part part,
                            struct error *error)
{
    static const char *const what[] = {"", "was removed", "was replaced by another file",
                                       "was cut off"};

    return error_set(error, STATUS_STORE,
                     "%.500s%s %s while this process had the store open: the store has stopped "
                     "answering, because nobody would find what it writes. Stop this process; put "
                     "back the files that were there, if they were moved, before the store is "
                     "opened again",
                     ownership->path, part_suffix[part], what[finding]);
}

enum status ownership_check(struct ownership *ownership, int64_t log_bytes, struct error *error)
{
    int lost = atomic_load(&ownership->lost);
    enum part last = ownership->log_fd >= 0 ? PART_COUNT : PART_LOG;

    for (enum part part = PART_DATABASE; part < last && lost == 0; part++) {
        enum finding finding = look(ownership, part, log_bytes);
        if (finding != FOUND_NOTHING) {
            lost = (int)finding * PART_COUNT + (int)part;
            atomic_store(&ownership->lost, lost);
        }
    }
    return lost == 0 ? STATUS_OK
                     : say_lost(ownership, (enum finding)(lost / PART_COUNT),
                                (enum part)(lost % PART_COUNT), error);
}
