/*
 * The sandbox's root and privileges. See planner_sandbox.h; the filter of system calls is
 * base/program/syscall_filter.h.
 *
 * The new root is assembled in a tmpfs: pivot_root puts the old root below it at /old, what is to
 * be seen is bound from there, a second pivot_root makes the assembly the root and the old one is
 * detached. What is bound is what was judged (planner_sight.c): it is opened by its real path, no
 * link on the way, compared with the file that was looked at, and bound by its descriptor. Binding
 * comes before giving up root, so that a directory can be shown whose parents
 * only root may enter.
 */
#include "worker/planner/planner_sandbox.h"

#include "base/check.h"
#include "base/program/syscall_filter.h"
#include "schemas/limits.h"
#include "worker/planner/planner_sight.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* sys/mount.h and linux/mount.h of Debian 12 cannot both be included. */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
          const void *data);
int umount2(const char *target, int flags);

enum {
    PLACE_BYTES = LIMIT_PATH_BYTES + 8,
    DETACH = 2, /* MNT_DETACH */
};

struct sandbox {
    bool as_root;
    rlim_t processes;
    char tmp_options[64];
    struct planner_sight *sight;
};

/* ---- preparing ---- */

uint32_t sandbox_processes(const struct planner_confinement *confinement)
{
    return confinement->processes > 0 ? confinement->processes : SANDBOX_PROCESSES_MAX;
}

int64_t sandbox_tmp_bytes(const struct planner_confinement *confinement)
{
    return confinement->tmp_bytes > 0 ? confinement->tmp_bytes : SANDBOX_TMP_BYTES;
}

enum status sandbox_prepare(const struct planner_confinement *confinement,
                            const struct planner_argv *words, const char *program,
                            struct sandbox **out, struct error *error)
{
    struct sandbox *sandbox = calloc(1, sizeof *sandbox);
    TRY(memory_check(sandbox, error, "planner sandbox: out of memory"));
    sandbox->as_root = geteuid() == 0;
    snprintf(sandbox->tmp_options, sizeof sandbox->tmp_options, "mode=1777,size=%lld,nr_inodes=%d",
             (long long)sandbox_tmp_bytes(confinement), SANDBOX_TMP_FILES);
    sandbox->processes = sandbox_processes(confinement);
    enum status status = planner_sight_make(confinement, words, program, &sandbox->sight, error);
    if (status != STATUS_OK) {
        free(sandbox);
        return status;
    }
    *out = sandbox;
    return STATUS_OK;
}

void sandbox_free(struct sandbox *sandbox)
{
    if (sandbox != NULL) {
        planner_sight_free(sandbox->sight);
    }
    free(sandbox);
}

const char *sandbox_unseen(const struct sandbox *sandbox)
{
    return sandbox->sight->unseen;
}

/* ---- the parent's part ---- */

pid_t sandbox_clone(void)
{
    const unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | SIGCHLD;
    return (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
}

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t wrote = write(fd, text, strlen(text));
    int code = errno;
    close(fd);
    errno = code;
    return wrote == (ssize_t)strlen(text) ? 0 : -1;
}

int sandbox_map_users(pid_t child)
{
    char path[64];
    char map[96];
    const struct {
        const char *file;
        unsigned id;
    } maps[] = {{"uid_map", (unsigned)geteuid()}, {"gid_map", (unsigned)getegid()}};
    bool root = geteuid() == 0;
    if (!root) {
        /* Without this an ordinary user may not map its group. */
        snprintf(path, sizeof path, "/proc/%d/setgroups", (int)child);
        if (write_file(path, "deny") != 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < COUNT_OF(maps); i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", (int)child, maps[i].file);
        if (root) {
            snprintf(map, sizeof map, "0 0 1\n%d %d 1\n", SANDBOX_UID_OF_ROOT, SANDBOX_UID_OF_ROOT);
        } else {
            snprintf(map, sizeof map, "%u %u 1\n", maps[i].id, maps[i].id);
        }
        if (write_file(path, map) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- the child's part: system calls alone ---- */

static int fail(struct sandbox_fault *fault, enum sandbox_step step, uint32_t item)
{
    *fault = (struct sandbox_fault){errno, (int)step, (int)item};
    return -1;
}

/* Joins two texts; false: too long. */
static bool join(char out[PLACE_BYTES], const char *a, const char *b)
{
    size_t a_bytes = strlen(a);
    size_t b_bytes = strlen(b);
    if (a_bytes + b_bytes >= PLACE_BYTES) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(out, a, a_bytes);
    memcpy(out + a_bytes, b, b_bytes + 1);
    return true;
}

/* Creates the directories above `place`, which is changed meanwhile and as before afterwards. */
static int make_parents(char *place)
{
    for (char *at = strchr(place + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        int result = mkdir(place, 0755);
        int code = errno;
        *at = '/';
        if (result != 0 && code != EEXIST) {
            errno = code;
            return -1;
        }
    }
    return 0;
}

static int restrict_mount(int fd, const char *place, unsigned int flags, bool read_only)
{
    struct mount_attr attributes = {.attr_set =
                                        MOUNT_ATTR_NOSUID | (read_only ? MOUNT_ATTR_RDONLY : 0)};
    return (int)syscall(SYS_mount_setattr, fd, place, flags, &attributes, sizeof attributes);
}

/* The item as it was judged; -1: another thing stands there by now (ESTALE), or a link (ELOOP). */
static int open_source(const struct sight_item *item)
{
    char from[PLACE_BYTES];
    struct stat info;
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                                 .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    if (!join(from, "/old", item->source)) {
        return -1;
    }
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, from, &how, sizeof how);
    if (fd >= 0 &&
        (fstat(fd, &info) != 0 || info.st_dev != item->device || info.st_ino != item->inode)) {
        close(fd);
        errno = ESTALE;
        return -1;
    }
    return fd;
}

static int bind_source(const struct sight_item *item, const char *to)
{
    int result = -1;
    int source = open_source(item);
    if (source < 0) {
        return -1;
    }
    int tree = (int)syscall(SYS_open_tree, source, "",
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
    if (tree >= 0 &&
        restrict_mount(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, item->kind != SIGHT_DEVICE) == 0) {
        result = (int)syscall(SYS_move_mount, tree, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH);
    }
    int code = errno;
    if (tree >= 0) {
        close(tree);
    }
    close(source);
    errno = code;
    return result;
}

static int show(const struct sight_item *item)
{
    char to[PLACE_BYTES];
    if (!join(to, "/new", item->place) || make_parents(to) != 0) {
        return -1;
    }
    if (item->kind == SIGHT_LINK) {
        return symlink(item->source, to);
    }
    if (item->kind == SIGHT_DIRECTORY || item->kind == SIGHT_EMPTY) {
        if (mkdir(to, 0755) != 0 && errno != EEXIST) {
            return -1;
        }
    } else {
        int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) {
            return -1;
        }
        close(fd);
    }
    return item->kind == SIGHT_EMPTY ? 0 : bind_source(item, to);
}

static int mount_at(const char *place, const char *type, const char *options)
{
    if (mkdir(place, 0755) != 0 && errno != EEXIST) {
        return -1;
    }
    return mount(type, place, type, MS_NOSUID | MS_NODEV, options);
}

static int enter_root(const struct sandbox *sandbox, struct sandbox_fault *fault)
{
    if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) != 0) {
        return fail(fault, SANDBOX_PRIVATE, 0);
    }
    if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0 ||
        chdir("/tmp") != 0 || mkdir("old", 0755) != 0 || mkdir("new", 0755) != 0 ||
        syscall(SYS_pivot_root, ".", "old") != 0 || chdir("/") != 0 ||
        mount("tmpfs", "/new", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0 ||
        mount_at("/new/tmp", "tmpfs", sandbox->tmp_options) != 0 || mkdir("/new/dev", 0755) != 0 ||
        mount_at("/new/dev/shm", "tmpfs", sandbox->tmp_options) != 0) {
        return fail(fault, SANDBOX_ROOT, 0);
    }
    /* Refused where the outer /proc is covered in part (containers): then there is none. The keeper
     * is not on its list. Nothing is written there: autogroup is of the worker's whole session. */
    if (mount_at("/new/proc", "proc", "hidepid=2") == 0 &&
        restrict_mount(AT_FDCWD, "/new/proc", 0, true) != 0) {
        return fail(fault, SANDBOX_ROOT, 0);
    }
    for (uint32_t i = 0; i < sandbox->sight->count; i++) {
        if (show(&sandbox->sight->items[i]) != 0) {
            return fail(fault, SANDBOX_SHOW, i);
        }
    }
    if (restrict_mount(AT_FDCWD, "/new", 0, true) != 0 || chdir("/new") != 0 ||
        syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", DETACH) != 0 ||
        chdir(sandbox->sight->directory) != 0) {
        return fail(fault, SANDBOX_TURN, 0);
    }
    return 0;
}

/* A loopback of its own, for planners that talk among themselves. They can do without. */
static void raise_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        (void)ioctl(fd, SIOCSIFFLAGS, &request);
        close(fd);
    }
}

static int drop_privileges(const struct sandbox *sandbox, struct sandbox_fault *fault)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    const int id = SANDBOX_UID_OF_ROOT;
    /* By number: glibc's own would tell this process's threads, which are not here. */
    if (sandbox->as_root &&
        (syscall(SYS_setgroups, 0, NULL) != 0 || syscall(SYS_setresgid, id, id, id) != 0)) {
        return fail(fault, SANDBOX_PRIVILEGES, 0);
    }
    for (int capability = 0; capability <= CAP_LAST_CAP; capability++) {
        (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0); /* an older kernel has fewer */
    }
    if ((sandbox->as_root && syscall(SYS_setresuid, id, id, id) != 0) ||
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 ||
        syscall(SYS_capset, &header, none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return fail(fault, SANDBOX_PRIVILEGES, 0);
    }
    return 0;
}

int sandbox_enter(const struct sandbox *sandbox, struct sandbox_fault *fault)
{
    if (enter_root(sandbox, fault) != 0) {
        return -1;
    }
    raise_loopback();
    return drop_privileges(sandbox, fault);
}

int sandbox_limit(const struct sandbox *sandbox, struct sandbox_fault *fault)
{
    const struct rlimit none = {0, 0};
    const rlim_t count = sandbox->processes + 1; /* with the keeper */
    const struct rlimit processes = {count, count};
    /* Nothing runs before the keeper. */
    if (setrlimit(RLIMIT_NPROC, &processes) != 0 || setrlimit(RLIMIT_RTPRIO, &none) != 0 ||
        setrlimit(RLIMIT_NICE, &none) != 0) {
        return fail(fault, SANDBOX_PRIVILEGES, 0);
    }
    return 0;
}

int sandbox_filter(struct sandbox_fault *fault)
{
    if (syscall_filter_enter() != 0) {
        *fault = (struct sandbox_fault){errno, SANDBOX_FILTER, 0};
        return -1;
    }
    return 0;
}

/* ---- words ---- */

void sandbox_fault_text(const struct sandbox *sandbox, const struct sandbox_fault *fault,
                        char *text, size_t bytes)
{
    static const char *const steps[SANDBOX_STEPS] = {
        [SANDBOX_EXEC] = "exec",
        [SANDBOX_USERS] = "new namespaces",
        [SANDBOX_PRIVATE] = "private mounts",
        [SANDBOX_ROOT] = "a root of its own",
        [SANDBOX_SHOW] = "a bind mount",
        [SANDBOX_TURN] = "changing the root",
        [SANDBOX_PRIVILEGES] = "giving up privileges",
        [SANDBOX_FILTER] = "the filter of system calls",
    };
    const char *path = "";
    if (fault->step == SANDBOX_EXEC) {
        snprintf(text, bytes,
                 "%s (in the sandbox a planner sees the system's directories, the code and the "
                 "named files "
                 "of the worker's directory (%.200s), and what --planner-path names)",
                 strerror(fault->code), sandbox->sight->directory);
        return;
    }
    if (fault->step == SANDBOX_SHOW && fault->item >= 0 &&
        (uint32_t)fault->item < sandbox->sight->count) {
        path = sandbox->sight->items[fault->item].place;
        if (fault->code == ESTALE || fault->code == ELOOP || fault->code == ENOENT) {
            snprintf(text, bytes, "%.300s was replaced while the sandbox was made: try again",
                     path);
            return;
        }
    }
    bool known = fault->step > 0 && fault->step < SANDBOX_STEPS;
    snprintf(text, bytes,
             "the sandbox cannot be set up here (%s%s%.200s: %s). It needs user namespaces, which "
             "containers and some systems forbid: allow them, or go on with planners that may do "
             "whatever this worker may: --planner-sandbox off",
             known ? steps[fault->step] : "unknown step", path[0] != '\0' ? " of " : "", path,
             strerror(fault->code));
}
