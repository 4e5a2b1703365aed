/*
 * Memory of a sandboxed planner. See planner_memory.h.
 *
 * The sandbox's own /proc, reached through its first process, lists exactly its processes; where a
 * sandbox has none, this machine's is searched for those of the same process namespace. The cheap
 * figure (status) counts pages that processes share once for each, so it can only be too high;
 * where it is beyond the limit the exact one (smaps_rollup) decides, which takes longer.
 */
#include "worker/planner/planner_memory.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

enum {
    LOOK_MS_MIN = 2,
    LOOK_MS_MAX = 100,
    EXACT_SHARE = 8,                /* an exact look may take this part of the time */
    GROWTH_BYTES_PER_US = 16 << 10, /* what a machine can clear: 16 GiB/s */
    TEXT_BYTES = 4096,
    PLACES = 2, /* file systems in memory */
};

struct memory_watch {
    pid_t leader;
    int64_t limit_bytes;
    int proc_fd; /* the sandbox's /proc, or ours */
    bool own_proc;
    struct stat space; /* its process namespace, where the /proc is ours */
    int place_fds[PLACES];
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ending;
    bool ends;
    int64_t killed_at_bytes;
};

/* ---- looking ---- */

/* "Name:  123 kB" in the text of a status or smaps file, in bytes. */
static int64_t field_bytes(const char *text, const char *name)
{
    char line[32];
    snprintf(line, sizeof line, "\n%s:", name);
    const char *at = strstr(text, line);
    return at != NULL ? strtoll(at + strlen(line), NULL, 10) * 1024 : 0;
}

/* A file of a process; false: it has ended, or may not be looked at. */
static bool read_of(const struct memory_watch *watch, const char *process, const char *name,
                    char text[TEXT_BYTES])
{
    char path[96];
    snprintf(path, sizeof path, "%.20s/%.63s", process, name);
    int fd = openat(watch->proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t bytes = read(fd, text, TEXT_BYTES - 1);
    close(fd);
    text[bytes > 0 ? bytes : 0] = '\0';
    return bytes > 0;
}

static bool is_inside(const struct memory_watch *watch, const char *process)
{
    char path[64];
    struct stat space;
    /* The keeper's memory is ours: what it has left of the worker's. */
    if (strtol(process, NULL, 10) == (watch->own_proc ? 1 : (long)watch->leader)) {
        return false;
    }
    if (watch->own_proc) {
        return true;
    }
    snprintf(path, sizeof path, "%.20s/ns/pid", process);
    return fstatat(watch->proc_fd, path, &space, 0) == 0 && space.st_dev == watch->space.st_dev &&
           space.st_ino == watch->space.st_ino;
}

/* The status of any thread that has the process's memory: the first thread may have ended, and its
 * own status says nothing of the memory that the others go on with. */
static bool read_thread_status(const struct memory_watch *watch, const char *process,
                               char text[TEXT_BYTES])
{
    char path[64];
    bool found = false;
    snprintf(path, sizeof path, "%.20s/task", process);
    int fd = openat(watch->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (stream == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    const struct dirent *entry;
    while (!found && (entry = readdir(stream)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            snprintf(path, sizeof path, "task/%.20s/status", entry->d_name);
            found = read_of(watch, process, path, text) && strstr(text, "\nRssAnon:") != NULL;
        }
    }
    closedir(stream);
    return found;
}

static int64_t process_bytes(const struct memory_watch *watch, const char *process, bool exact)
{
    char text[TEXT_BYTES];
    if (!read_of(watch, process, "status", text)) {
        return 0;
    }
    if (strstr(text, "\nRssAnon:") == NULL && !read_thread_status(watch, process, text)) {
        return 0; /* a zombie: its memory is gone */
    }
    int64_t tables = field_bytes(text, "VmPTE");
    int64_t huge = field_bytes(text, "HugetlbPages");
    int64_t bytes = field_bytes(text, "RssAnon") + field_bytes(text, "VmSwap");
    if (exact && bytes > 0 && read_of(watch, process, "smaps_rollup", text)) {
        bytes = field_bytes(text, "Pss_Anon") + field_bytes(text, "SwapPss");
    }
    return bytes + huge + tables;
}

static int64_t processes_bytes(const struct memory_watch *watch, bool exact)
{
    int64_t bytes = 0;
    int fd = openat(watch->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (stream == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return 0;
    }
    const struct dirent *entry;
    while ((entry = readdir(stream)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) && is_inside(watch, entry->d_name)) {
            bytes += process_bytes(watch, entry->d_name, exact);
        }
    }
    closedir(stream);
    return bytes;
}

static int64_t places_bytes(const struct memory_watch *watch)
{
    int64_t bytes = 0;
    for (int i = 0; i < PLACES; i++) {
        struct statfs info;
        if (watch->place_fds[i] >= 0 && fstatfs(watch->place_fds[i], &info) == 0) {
            bytes += (int64_t)(info.f_blocks - info.f_bfree) * (int64_t)info.f_bsize;
        }
    }
    return bytes;
}

/* One look: what there is, at most. *pause_ns: until the next. */
static int64_t look(const struct memory_watch *watch, int64_t *pause_ns)
{
    int64_t start_ns = clock_now_ns(clock_system());
    int64_t places = places_bytes(watch);
    int64_t bytes = processes_bytes(watch, false) + places;
    *pause_ns = LOOK_MS_MIN * NS_PER_MS;
    if (bytes > watch->limit_bytes) {
        bytes = processes_bytes(watch, true) + places;
        *pause_ns = EXACT_SHARE * (clock_now_ns(clock_system()) - start_ns);
    }
    int64_t room_ns = (watch->limit_bytes - bytes) / GROWTH_BYTES_PER_US * 1000;
    *pause_ns = *pause_ns > room_ns ? *pause_ns : room_ns;
    if (*pause_ns > LOOK_MS_MAX * NS_PER_MS) {
        *pause_ns = LOOK_MS_MAX * NS_PER_MS;
    }
    return bytes;
}

/* ---- the thread ---- */

static void *keep_watch(void *context)
{
    struct memory_watch *watch = context;
    pthread_mutex_lock(&watch->mutex);
    while (!watch->ends) {
        int64_t pause_ns;
        pthread_mutex_unlock(&watch->mutex);
        int64_t bytes = look(watch, &pause_ns);
        pthread_mutex_lock(&watch->mutex);
        if (bytes > watch->limit_bytes && !watch->ends) {
            watch->killed_at_bytes = bytes;
            kill(watch->leader, SIGKILL); /* the first of its namespace: all others end with it */
            break;
        }
        struct timespec until = clock_moment_in(pause_ns);
        while (!watch->ends && pthread_cond_timedwait(&watch->ending, &watch->mutex, &until) == 0) {
        }
    }
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

static void destroy(struct memory_watch *watch)
{
    pthread_cond_destroy(&watch->ending);
    pthread_mutex_destroy(&watch->mutex);
    for (int i = 0; i < PLACES; i++) {
        if (watch->place_fds[i] >= 0) {
            close(watch->place_fds[i]);
        }
    }
    if (watch->proc_fd >= 0) {
        close(watch->proc_fd);
    }
    free(watch);
}

/* Below the root of the sandbox's first process. */
static int open_inside(pid_t leader, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/root/%s", (int)leader, name);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static enum status open_places(struct memory_watch *watch, struct error *error)
{
    char path[64];
    struct statfs info;
    enum { PROC_MAGIC = 0x9fa0 };
    watch->place_fds[0] = open_inside(watch->leader, "tmp");
    watch->place_fds[1] = open_inside(watch->leader, "dev/shm");
    watch->proc_fd = open_inside(watch->leader, "proc");
    watch->own_proc =
        watch->proc_fd >= 0 && fstatfs(watch->proc_fd, &info) == 0 && info.f_type == PROC_MAGIC;
    if (watch->own_proc) {
        return STATUS_OK;
    }
    if (watch->proc_fd >= 0) {
        close(watch->proc_fd);
    }
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)watch->leader);
    watch->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (watch->proc_fd < 0 || stat(path, &watch->space) != 0) {
        return error_set(error, STATUS_PLANNER,
                         "planner memory: the sandbox's processes cannot be seen in /proc: %s",
                         strerror(errno));
    }
    return STATUS_OK;
}

enum status memory_watch_start(pid_t leader, int64_t limit_bytes, struct memory_watch **out,
                               struct error *error)
{
    sigset_t all;
    sigset_t before;
    struct memory_watch *watch = calloc(1, sizeof *watch);
    TRY(memory_check(watch, error, "planner memory: out of memory"));
    *watch = (struct memory_watch){
        .leader = leader, .limit_bytes = limit_bytes, .proc_fd = -1, .place_fds = {-1, -1}};
    clock_condition_init(&watch->ending);
    pthread_mutex_init(&watch->mutex, NULL);
    enum status status = open_places(watch, error);
    if (status == STATUS_OK) {
        /* Signals belong to the program's own threads. */
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        int reason = pthread_create(&watch->thread, NULL, keep_watch, watch);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (reason != 0) {
            status = error_set(error, STATUS_NO_MEMORY, "planner memory: cannot be watched: %s",
                               strerror(reason));
        }
    }
    if (status != STATUS_OK) {
        destroy(watch);
        return status;
    }
    *out = watch;
    return STATUS_OK;
}

int64_t memory_watch_end(struct memory_watch *watch)
{
    if (watch == NULL) {
        return 0;
    }
    pthread_mutex_lock(&watch->mutex);
    watch->ends = true;
    pthread_cond_broadcast(&watch->ending);
    pthread_mutex_unlock(&watch->mutex);
    pthread_join(watch->thread, NULL);
    int64_t bytes = watch->killed_at_bytes;
    destroy(watch);
    return bytes;
}
