/*
 * Cgroup of a sandboxed planner. See planner_cgroup.h.
 */
#include "worker/planner/planner_cgroup.h"

#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define TREE "/sys/fs/cgroup"
#define OWN "swerve-worker"

enum { TEXT_BYTES = 1024, CGROUP2_MAGIC = 0x63677270, REMOVALS_MAX = 100 };

/* ---- files ---- */

static bool put(const char *directory, const char *name, const char *text)
{
    char path[LIMIT_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool well = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return well;
}

static bool put_number(const char *directory, const char *name, int64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return put(directory, name, text);
}

static bool get(const char *directory, const char *name, char text[TEXT_BYTES])
{
    char path[LIMIT_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t bytes = read(fd, text, TEXT_BYTES - 1);
    close(fd);
    text[bytes > 0 ? bytes : 0] = '\0';
    return bytes >= 0;
}

static bool has_word(const char *text, const char *word)
{
    size_t bytes = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += bytes) {
        if ((at == text || at[-1] == ' ') && strchr(" \n", at[bytes]) != NULL) {
            return true;
        }
    }
    return false;
}

/* ---- the part that is ours ---- */

/* The cgroup of this process, in the tree of version 2. */
static bool find_own(char path[LIMIT_PATH_BYTES])
{
    char text[TEXT_BYTES];
    struct statfs info;
    if (statfs(TREE, &info) != 0 || info.f_type != CGROUP2_MAGIC ||
        !get("/proc/self", "cgroup", text)) {
        return false;
    }
    const char *line = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
    if (line == NULL) {
        return false;
    }
    line = strchr(line, '/');
    int bytes = (int)strcspn(line, "\n");
    snprintf(path, LIMIT_PATH_BYTES, TREE "%.*s", bytes > 1 ? bytes : 0, line);
    return true;
}

static bool are_alone(const char *path)
{
    char text[TEXT_BYTES];
    char *end = NULL;
    return get(path, "cgroup.procs", text) && strtol(text, &end, 10) == (long)getpid() &&
           strcmp(end, "\n") == 0;
}

/* The cgroup in which planners' may be made. */
static bool find_base(char base[LIMIT_PATH_BYTES])
{
    char text[TEXT_BYTES];
    char own[LIMIT_PATH_BYTES + sizeof OWN];
    if (!find_own(base)) {
        return false;
    }
    size_t bytes = strlen(base);
    size_t own_bytes = strlen("/" OWN);
    if (bytes > own_bytes && strcmp(base + bytes - own_bytes, "/" OWN) == 0) {
        base[bytes - own_bytes] = '\0'; /* moved already */
    }
    if (!get(base, "cgroup.controllers", text) || !has_word(text, "memory") ||
        !get(base, "cgroup.subtree_control", text)) {
        return false;
    }
    if (has_word(text, "memory")) {
        return true;
    }
    if (!are_alone(base)) {
        return false;
    }
    snprintf(own, sizeof own, "%s/" OWN, base);
    return (mkdir(own, 0755) == 0 || errno == EEXIST) &&
           put_number(own, "cgroup.procs", getpid()) &&
           put(base, "cgroup.subtree_control", "+memory");
}

/* ---- planners ---- */

void planner_cgroup_prepare(struct planner_cgroup *cgroup)
{
    cgroup->path[0] = '\0';
    if (!find_base(cgroup->base) || strlen(cgroup->base) + 40 > sizeof cgroup->path) {
        cgroup->base[0] = '\0';
    }
}

void planner_cgroup_enter(struct planner_cgroup *cgroup, pid_t child, int64_t memory_bytes)
{
    if (cgroup->base[0] == '\0') {
        return;
    }
    snprintf(cgroup->path, sizeof cgroup->path, "%.*s/swerve-planner-%d",
             (int)sizeof cgroup->path - 40, cgroup->base, (int)child);
    if (mkdir(cgroup->path, 0755) != 0) {
        cgroup->path[0] = '\0';
        return;
    }
    (void)put(cgroup->path, "memory.oom.group", "1");
    (void)put(cgroup->path, "memory.swap.max", "0"); /* a kernel without swap has none */
    if (!put_number(cgroup->path, "memory.max", memory_bytes) ||
        !put_number(cgroup->path, "cgroup.procs", child)) {
        rmdir(cgroup->path);
        cgroup->path[0] = '\0';
    }
}

bool planner_cgroup_leave(struct planner_cgroup *cgroup)
{
    char text[TEXT_BYTES];
    if (cgroup->path[0] == '\0') {
        return false;
    }
    const char *killed =
        get(cgroup->path, "memory.events", text) ? strstr(text, "oom_kill ") : NULL;
    /* The processes of a namespace are reaped before its first, but leave a moment later. */
    for (int i = 0; i < REMOVALS_MAX && rmdir(cgroup->path) != 0 && errno == EBUSY; i++) {
        struct timespec pause = {.tv_nsec = NS_PER_MS};
        nanosleep(&pause, NULL);
    }
    cgroup->path[0] = '\0';
    return killed != NULL && strtoll(killed + strlen("oom_kill "), NULL, 10) > 0;
}
