/*
 * The disk of the store's tests. See disk.h.
 *
 * The names that are live now are kept in a list, the open descriptors in a table; both only exist
 * to tell which node a call is about. One mutex makes the call and its entry one step.
 */
#include "tests/store/faults/disk.h"

#include "base/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 4096 };

/* Facts about an open descriptor. */
struct descriptor {
    bool on_disk;
    bool lies; /* see disk_lie */
    int node;  /* -1: nobody records */
};

struct live_name {
    int directory;
    int node;
    char name[DISK_NAME_BYTES];
};

static struct {
    pthread_mutex_t mutex;
    char root[PATH_MAX];
    size_t root_bytes;
    struct descriptor descriptors[DESCRIPTORS_MAX];
    bool recording;
    bool killed;
    struct disk_log log;
    size_t entry_capacity;
    size_t node_capacity;
    struct live_name *names;
    size_t name_count;
    size_t name_capacity;
    unsigned fail_calls_mask;
    int64_t fail_at; /* 0: never */
    bool fail_forever;
    int fail_code;
    int64_t fail_calls;
    int64_t fail_hits;
    int64_t syncs;
    char lie[64];  /* "": none */
    bool pretends; /* to have locks */
} disk = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void lock(void)
{
    pthread_mutex_lock(&disk.mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&disk.mutex);
}

/* ---- growing ---- */

static void *grow(void *items, size_t *capacity, size_t count, size_t item_bytes)
{
    if (count < *capacity) {
        return items;
    }
    *capacity = *capacity == 0 ? 256 : *capacity * 2;
    void *grown = realloc(items, *capacity * item_bytes);
    CHECK(grown != NULL);
    return grown;
}

static int add_node(bool directory)
{
    disk.log.nodes =
        grow(disk.log.nodes, &disk.node_capacity, disk.log.node_count, sizeof *disk.log.nodes);
    disk.log.nodes[disk.log.node_count].directory = directory;
    return (int)disk.log.node_count++;
}

static struct disk_entry *add_entry(enum disk_kind kind, int node)
{
    disk.log.entries =
        grow(disk.log.entries, &disk.entry_capacity, disk.log.count, sizeof *disk.log.entries);
    struct disk_entry *entry = &disk.log.entries[disk.log.count++];
    memset(entry, 0, sizeof *entry);
    entry->kind = kind;
    entry->node = node;
    return entry;
}

static void add_write(int node, const void *data, size_t bytes, int64_t offset)
{
    struct disk_entry *entry = add_entry(DISK_WRITE, node);
    entry->offset = offset;
    entry->bytes = bytes;
    entry->data = malloc(bytes + 1);
    CHECK(entry->data != NULL);
    memcpy(entry->data, data, bytes);
}

/* ---- names ---- */

static struct live_name *find_name(int directory, const char *name, size_t bytes)
{
    for (size_t i = 0; i < disk.name_count; i++) {
        struct live_name *live = &disk.names[i];
        if (live->directory == directory && strlen(live->name) == bytes &&
            memcmp(live->name, name, bytes) == 0) {
            return live;
        }
    }
    return NULL;
}

/* The directory and last name of a path on the disk. False: there is no such directory. */
static bool split(const char *path, int *directory, const char **last)
{
    const char *at = path + disk.root_bytes;
    *directory = 0;
    for (;;) {
        at += strspn(at, "/");
        size_t bytes = strcspn(at, "/");
        if (at[bytes] == '\0') {
            *last = at;
            return bytes < DISK_NAME_BYTES;
        }
        const struct live_name *live = find_name(*directory, at, bytes);
        if (live == NULL) {
            return false;
        }
        *directory = live->node;
        at += bytes;
    }
}

static void record_link(int directory, const char *name, int node)
{
    struct live_name *live = find_name(directory, name, strlen(name));
    struct disk_entry *entry = add_entry(DISK_LINK, directory);
    entry->target = node;
    snprintf(entry->name, sizeof entry->name, "%s", name);
    if (live == NULL) {
        disk.names = grow(disk.names, &disk.name_capacity, disk.name_count, sizeof *disk.names);
        live = &disk.names[disk.name_count++];
        live->directory = directory;
        snprintf(live->name, sizeof live->name, "%s", name);
    }
    live->node = node;
}

static void record_unlink(const char *path)
{
    int directory;
    const char *name;
    if (!disk.recording || !split(path, &directory, &name)) {
        return;
    }
    struct live_name *live = find_name(directory, name, strlen(name));
    if (live != NULL) {
        struct disk_entry *entry = add_entry(DISK_UNLINK, directory);
        snprintf(entry->name, sizeof entry->name, "%s", name);
        *live = disk.names[--disk.name_count];
    }
}

static void record_rename(const char *from, const char *to)
{
    int directory;
    int to_directory;
    const char *name;
    const char *to_name;
    if (!disk.recording || !split(from, &directory, &name) || !split(to, &to_directory, &to_name)) {
        return;
    }
    struct live_name *live = find_name(directory, name, strlen(name));
    CHECK(live != NULL);
    record_link(to_directory, to_name, live->node);
    record_unlink(from);
}

static bool shared_memory(const char *path)
{
    size_t bytes = strlen(path);
    return bytes >= 4 && strcmp(path + bytes - 4, "-shm") == 0;
}

/* The node of a path that is there; a new one where it is new. */
static int record_name(const char *path, bool is_directory)
{
    int directory;
    const char *name;
    if (!disk.recording || shared_memory(path) || !split(path, &directory, &name)) {
        return -1;
    }
    if (name[0] == '\0') {
        return 0;
    }
    const struct live_name *live = find_name(directory, name, strlen(name));
    if (live != NULL) {
        return live->node;
    }
    int node = add_node(is_directory);
    record_link(directory, name, node);
    return node;
}

static bool on_disk(const char *path)
{
    if (disk.root_bytes == 0 || strncmp(path, disk.root, disk.root_bytes) != 0 ||
        (path[disk.root_bytes] != '/' && path[disk.root_bytes] != '\0')) {
        return false;
    }
    return true;
}

/* ---- refusing ---- */

/* With the mutex held. True: the call fails, errno is set; *half: it does half of its work. */
static bool refused(enum disk_call call, bool *half)
{
    *half = false;
    if (disk.killed && (call & DISK_CALL_CHANGE) != 0) {
        errno = EIO;
        return true;
    }
    if (disk.fail_at == 0 || (disk.fail_calls_mask & call) == 0) {
        return false;
    }
    int64_t number = ++disk.fail_calls;
    if (number < disk.fail_at || (number > disk.fail_at && !disk.fail_forever)) {
        return false;
    }
    disk.fail_hits++;
    errno = disk.fail_code == DISK_SHORT ? ENOSPC : disk.fail_code;
    *half = disk.fail_code == DISK_SHORT && call == DISK_CALL_WRITE;
    return !*half;
}

/* With the mutex held: what the descriptor stands for; NULL: no file of the disk. */
static const struct descriptor *descriptor_of(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS_MAX && disk.descriptors[fd].on_disk ? &disk.descriptors[fd]
                                                                           : NULL;
}

/* ---- the calls ---- */

static int open_file(const char *path, int flags, unsigned mode)
{
    bool half;
    lock();
    bool ours = on_disk(path);
    bool creates = (flags & O_CREAT) != 0 && ours && faccessat(AT_FDCWD, path, F_OK, 0) != 0;
    if (ours && (refused(DISK_CALL_OPEN, &half) || (disk.killed && creates))) {
        errno = disk.killed ? EIO : errno;
        unlock();
        return -1;
    }
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && fd < DESCRIPTORS_MAX) {
        disk.descriptors[fd] = (struct descriptor){.on_disk = ours, .node = -1};
        if (ours) {
            disk.descriptors[fd].lies = disk.lie[0] != '\0' && fnmatch(disk.lie, path, 0) == 0;
            disk.descriptors[fd].node = record_name(path, (flags & O_DIRECTORY) != 0);
            if (disk.descriptors[fd].node >= 0 && (flags & O_TRUNC) != 0) {
                add_entry(DISK_TRUNCATE, disk.descriptors[fd].node);
            }
        }
    }
    unlock();
    return fd;
}

/* With 64-bit offsets, which the build sets, open is open64 (and so on). */
int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    return open_file(path, flags, mode);
}

int close(int fd)
{
    lock();
    if (fd >= 0 && fd < DESCRIPTORS_MAX) {
        disk.descriptors[fd].on_disk = false;
    }
    unlock();
    return (int)syscall(SYS_close, fd);
}

ssize_t pread64(int fd, void *data, size_t bytes, off64_t offset)
{
    bool half;
    lock();
    bool fails = descriptor_of(fd) != NULL && refused(DISK_CALL_READ, &half);
    unlock();
    return fails ? -1 : syscall(SYS_pread64, fd, data, bytes, offset);
}

ssize_t read(int fd, void *data, size_t bytes)
{
    bool half;
    lock();
    bool fails = descriptor_of(fd) != NULL && refused(DISK_CALL_READ, &half);
    unlock();
    return fails ? -1 : syscall(SYS_read, fd, data, bytes);
}

static ssize_t write_file(int fd, const void *data, size_t bytes, off64_t offset, bool positioned)
{
    bool half = false;
    lock();
    const struct descriptor *file = descriptor_of(fd);
    if (file == NULL) {
        unlock();
        return positioned ? syscall(SYS_pwrite64, fd, data, bytes, offset)
                          : syscall(SYS_write, fd, data, bytes);
    }
    if (refused(DISK_CALL_WRITE, &half) || (half && bytes < 2)) {
        unlock();
        return -1;
    }
    bytes = half ? bytes / 2 : bytes;
    off64_t at = positioned ? offset : lseek64(fd, 0, SEEK_CUR);
    ssize_t done = positioned ? syscall(SYS_pwrite64, fd, data, bytes, offset)
                              : syscall(SYS_write, fd, data, bytes);
    if (done > 0 && disk.recording && file->node >= 0) {
        add_write(file->node, data, (size_t)done, at);
    }
    unlock();
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset)
{
    return write_file(fd, data, bytes, offset, true);
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    return write_file(fd, data, bytes, 0, false);
}

int ftruncate64(int fd, off64_t bytes)
{
    bool half;
    lock();
    const struct descriptor *file = descriptor_of(fd);
    int result = file != NULL && refused(DISK_CALL_TRUNCATE, &half)
                     ? -1
                     : (int)syscall(SYS_ftruncate, fd, bytes);
    if (result == 0 && file != NULL && disk.recording && file->node >= 0) {
        add_entry(DISK_TRUNCATE, file->node)->offset = bytes;
    }
    unlock();
    return result;
}

static int sync_file(int fd, long number)
{
    bool half;
    lock();
    disk.syncs++;
    const struct descriptor *file = descriptor_of(fd);
    bool fails = file != NULL && refused(DISK_CALL_SYNC, &half);
    int result = fails ? -1 : (int)syscall(number, fd);
    if (file != NULL && disk.recording && file->node >= 0 && !disk.killed && !file->lies) {
        add_entry(result == 0 ? DISK_SYNC : DISK_SYNC_FAILED, file->node);
    }
    if (fails) {
        errno = disk.fail_code > 0 && !disk.killed ? disk.fail_code : EIO;
    }
    unlock();
    return result;
}

int fdatasync(int fd)
{
    return sync_file(fd, SYS_fdatasync);
}

int fsync(int fd)
{
    return sync_file(fd, SYS_fsync);
}

int rename(const char *from, const char *to)
{
    bool half;
    lock();
    bool ours = on_disk(from) && on_disk(to);
    int result = ours && refused(DISK_CALL_NAME, &half) ? -1 : (int)syscall(SYS_rename, from, to);
    if (result == 0 && ours) {
        record_rename(from, to);
    }
    unlock();
    return result;
}

int unlink(const char *path)
{
    bool half;
    lock();
    bool ours = on_disk(path);
    int result = ours && refused(DISK_CALL_NAME, &half) ? -1 : (int)syscall(SYS_unlink, path);
    if (result == 0 && ours) {
        record_unlink(path);
    }
    unlock();
    return result;
}

int unlinkat(int directory, const char *name, int flags)
{
    char link[64];
    char path[PATH_MAX + DISK_NAME_BYTES];
    if (directory != AT_FDCWD && name[0] != '/' && flags == 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        ssize_t bytes = readlink(link, path, PATH_MAX);
        if (bytes > 0) {
            snprintf(path + bytes, sizeof path - (size_t)bytes, "/%s", name);
            return unlink(path);
        }
    }
    return (int)syscall(SYS_unlinkat, directory, name, flags);
}

int mkdir(const char *path, mode_t mode)
{
    bool half;
    lock();
    bool ours = on_disk(path);
    int result = ours && refused(DISK_CALL_NAME, &half) ? -1 : (int)syscall(SYS_mkdir, path, mode);
    if (result == 0 && ours) {
        record_name(path, true);
    }
    unlock();
    return result;
}

/* ---- locks and sockets: only refused ---- */

static bool refused_beside(enum disk_call call)
{
    bool half;
    lock();
    bool fails = disk.root_bytes > 0 && refused(call, &half);
    unlock();
    return fails;
}

void disk_pretend_locks(bool pretends)
{
    lock();
    disk.pretends = pretends;
    unlock();
}

static bool pretends(void)
{
    lock();
    bool pretended = disk.pretends;
    unlock();
    return pretended;
}

int flock(int fd, int operation)
{
    if (pretends()) {
        return 0;
    }
    return refused_beside(DISK_CALL_LOCK) ? -1 : (int)syscall(SYS_flock, fd, operation);
}

/* With 64-bit offsets, fcntl is fcntl64. SQLite's locks are not refused: they belong to the
 * process, and what it does about them is its own affair. */
int fcntl64(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (command == F_OFD_SETLK && pretends()) {
        return 0;
    }
    return command == F_OFD_SETLK && refused_beside(DISK_CALL_LOCK)
               ? -1
               : (int)syscall(SYS_fcntl, fd, command, argument);
}

int socket(int domain, int type, int protocol)
{
    return refused_beside(DISK_CALL_SOCKET) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int bind(int fd, const struct sockaddr *address, socklen_t bytes)
{
    return refused_beside(DISK_CALL_SOCKET) ? -1 : (int)syscall(SYS_bind, fd, address, bytes);
}

int listen(int fd, int backlog)
{
    return refused_beside(DISK_CALL_SOCKET) ? -1 : (int)syscall(SYS_listen, fd, backlog);
}

int fchmodat(int directory, const char *name, mode_t mode, int flags)
{
    CHECK(flags == 0); /* which is all that the system call can do */
    return refused_beside(DISK_CALL_SOCKET) ? -1
                                            : (int)syscall(SYS_fchmodat, directory, name, mode);
}

int renameat(int directory, const char *from, int to_directory, const char *to)
{
    return refused_beside(DISK_CALL_SOCKET)
               ? -1
               : (int)syscall(SYS_renameat, directory, from, to_directory, to);
}

/* ---- what the test says ---- */

void disk_mount(const char *root)
{
    lock();
    disk.root_bytes = root != NULL ? strlen(root) : 0;
    CHECK(disk.root_bytes < sizeof disk.root);
    if (root != NULL) {
        memcpy(disk.root, root, disk.root_bytes + 1);
    }
    unlock();
}

static void load_file(const char *path)
{
    static uint8_t buffer[1 << 16];
    int node = record_name(path, false);
    int64_t offset = 0;
    ssize_t got;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    CHECK(fd >= 0);
    while ((got = syscall(SYS_read, fd, buffer, sizeof buffer)) > 0) {
        add_write(node, buffer, (size_t)got, offset);
        offset += got;
    }
    syscall(SYS_close, fd);
    add_entry(DISK_SYNC, node);
}

/* Every directory below, as deep as artifacts are. */
static void load_directory(const char *path, int depth)
{
    char below[PATH_MAX];
    struct stat info;
    int node = record_name(path, true);
    DIR *directory = opendir(path);
    CHECK(directory != NULL && depth < 4);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        CHECK(snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below);
        CHECK(stat(below, &info) == 0);
        if (S_ISDIR(info.st_mode)) {
            load_directory(below, depth + 1);
        } else if (!shared_memory(below) && S_ISREG(info.st_mode)) {
            load_file(below);
        }
    }
    closedir(directory);
    add_entry(DISK_SYNC, node);
}

void disk_record(size_t *first)
{
    lock();
    for (size_t i = 0; i < disk.log.count; i++) {
        free(disk.log.entries[i].data);
    }
    disk.log.count = 0;
    disk.log.node_count = 0;
    disk.name_count = 0;
    add_node(true);
    disk.recording = true;
    load_directory(disk.root, 0);
    *first = disk.log.count;
    unlock();
}

const struct disk_log *disk_record_end(void)
{
    lock();
    disk.recording = false;
    unlock();
    return &disk.log;
}

size_t disk_position(void)
{
    lock();
    size_t position = disk.log.count;
    unlock();
    return position;
}

void disk_fail(unsigned calls, int64_t at, bool forever, int code)
{
    lock();
    disk.fail_calls_mask = calls;
    disk.fail_at = at;
    disk.fail_forever = forever;
    disk.fail_code = code;
    disk.fail_calls = 0;
    disk.fail_hits = 0;
    unlock();
}

void disk_is_well(void)
{
    lock();
    disk.fail_at = 0;
    unlock();
}

int64_t disk_fail_calls(void)
{
    lock();
    int64_t calls = disk.fail_calls;
    unlock();
    return calls;
}

int64_t disk_fail_hits(void)
{
    lock();
    int64_t hits = disk.fail_hits;
    unlock();
    return hits;
}

void disk_kill(bool killed)
{
    lock();
    disk.killed = killed;
    unlock();
}

void disk_lie(const char *pattern)
{
    lock();
    snprintf(disk.lie, sizeof disk.lie, "%s", pattern != NULL ? pattern : "");
    unlock();
}

int64_t disk_sync_count(void)
{
    lock();
    int64_t syncs = disk.syncs;
    unlock();
    return syncs;
}
