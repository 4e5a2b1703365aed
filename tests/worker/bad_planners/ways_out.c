/*
 * A planner that tries ways out of its sandbox that only C can: system calls by number, descriptors
 * that it inherits, the shared memory, the socket to the worker. One line on stderr each: "NAME
 * kept" or "NAME ESCAPED". Then it becomes the program in its arguments.
 *
 *   ways_out WORKER_PID SOCKET_PATH PROGRAM [ARGUMENT..]
 *
 * Every attempt is harmless outside of a sandbox, too: the test runs it there to see that they are
 * attempts at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHM_FD = 3, BYTES = 4096 };

static int worker;
static const char *socket_path;

static void tell(const char *name, bool escaped)
{
    char line[96];
    int bytes = snprintf(line, sizeof line, "%s %s\n", name, escaped ? "ESCAPED" : "kept");
    (void)!write(STDERR_FILENO, line, (size_t)bytes);
}

/* Whether a system call is let through to where it fails for its arguments, or does not fail. */
static bool answers(long number, long a, long b, long c, long d)
{
    errno = 0;
    long result = syscall(number, a, b, c, d, 0, 0);
    return result >= 0 || (errno != EPERM && errno != ENOSYS && errno != EACCES);
}

static bool in_child(int (*work)(void))
{
    int how = 0;
    pid_t child = fork();
    if (child == 0) {
        _exit(work());
    }
    return child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

static int run_from_memory(void)
{
    int fd = (int)syscall(SYS_memfd_create, "program", 0);
    return fd >= 0 && ftruncate(fd, BYTES) == 0 ? 0 : 1;
}

static int compatible_call(void)
{
#if defined(__x86_64__)
    long result = 20; /* getpid of 32-bit programs */
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
    return result > 0 ? 0 : 1;
#else
    return 1;
#endif
}

static int new_namespaces(void)
{
    static const int flags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (unshare(flags[i]) == 0) {
            return 0;
        }
        pid_t child = (pid_t)syscall(SYS_clone, flags[i] | SIGCHLD, 0, 0, 0, 0);
        if (child == 0) {
            _exit(0);
        }
        if (child > 0) {
            return 0;
        }
    }
    return 1;
}

/* Beyond 0 to 3 nothing is inherited, and those are no way to files. */
static bool descriptors(void)
{
    struct stat info;
    for (int fd = 0; fd < 4096; fd++) {
        if (fd > SHM_FD ? fcntl(fd, F_GETFD) >= 0
                        : fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
            return true;
        }
    }
    return false;
}

/* Anything but reading what the worker wrote. */
static bool shared_memory(void)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", SHM_FD);
    int again = open(path, O_RDWR | O_CLOEXEC);
    bool escaped = false;
    for (int i = 0; i < 2; i++) {
        int fd = i == 0 ? SHM_FD : again;
        if (fd < 0) {
            continue;
        }
        void *mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        void *readable = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
        escaped = escaped || mapped != MAP_FAILED || pwrite(fd, "x", 1, 0) == 1 ||
                  ftruncate(fd, 0) == 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) == 0 ||
                  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BYTES) == 0 ||
                  (readable != MAP_FAILED && (mprotect(readable, BYTES, PROT_WRITE) == 0 ||
                                              madvise(readable, BYTES, MADV_REMOVE) == 0));
    }
    if (again >= 0) {
        close(again);
    }
    return escaped;
}

/* A descriptor for the worker to hold. */
static bool pass_descriptor(void)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    int fd = STDERR_FILENO;
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    return sendmsg(STDIN_FILENO, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static bool connects(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    bool connected = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return connected;
}

/* The worker's root, directory and descriptors, by its number and by that of process 1. */
static bool others_proc(void)
{
    static const char *const names[] = {"root/etc/shadow", "cwd", "environ", "mem", "fd/0"};
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", worker, names[i]);
        if (access(path, F_OK) == 0) {
            return true;
        }
    }
    return access("/proc/1/root/etc/shadow", F_OK) == 0;
}

/* Sets the keeper's priority to what it is, as one of its user's or of its group's processes. */
static bool keeper_among_others(void)
{
    enum { IO_USER = 3 };
    const int priority = getpriority(PRIO_PROCESS, 1);
    bool escaped = setpriority(PRIO_USER, 0, priority) == 0 ||
                   syscall(SYS_ioprio_set, IO_USER, getuid(), 0) == 0;
    if (setpgid(0, 1) == 0) {
        escaped = escaped || setpriority(PRIO_PGRP, 0, priority) == 0;
        setpgid(0, 0);
    }
    return escaped;
}

/* Process 1 is the planner's keeper inside: its descriptors, when it runs, what it may open.
 * Nothing is changed by this. */
static bool keeper(void)
{
    static const char *const names[] = {"fd/0", "fd/5",    "fdinfo/5", "mem",
                                        "maps", "environ", "root"};
    char path[64];
    cpu_set_t processors;
    struct rlimit files;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "/proc/1/%s", names[i]);
        if (access(path, F_OK) == 0) {
            return true;
        }
    }
    return syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, NULL, &files) == 0 ||
           setpriority(PRIO_PROCESS, 1, getpriority(PRIO_PROCESS, 1)) == 0 ||
           (sched_getaffinity(1, sizeof processors, &processors) == 0 &&
            sched_setaffinity(1, sizeof processors, &processors) == 0) ||
           keeper_among_others();
}

/* Files of /proc that change more than who writes them: autogroup, where there is one, sets when
 * the worker's session runs. */
static bool written_proc(void)
{
    return open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC) >= 0 ||
           open("/proc/self/comm", O_WRONLY | O_CLOEXEC) >= 0;
}

/* More of anything than it was given. */
static bool limits(void)
{
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit data;
    return getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_max == RLIM_INFINITY ||
           setrlimit(RLIMIT_DATA, &all) == 0 || setpriority(PRIO_PROCESS, 0, -10) == 0;
}

static bool path_socket(void)
{
    char path[160];
    const char *slash = strrchr(socket_path, '/');
    bool escaped = connects(socket_path) || connects(slash + 1);
    snprintf(path, sizeof path, "/proc/%d/root%.80s", worker, socket_path);
    escaped = escaped || connects(path);
    snprintf(path, sizeof path, "/proc/1/root%.80s", socket_path);
    return escaped || connects(path);
}

static bool domains(void)
{
    static const int refused[] = {AF_VSOCK, AF_PACKET, AF_ALG, AF_KEY, AF_BLUETOOTH, AF_TIPC, 44};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        int fd = socket(refused[i], SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 || errno != EAFNOSUPPORT) {
            return true;
        }
    }
    return socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER) >= 0;
}

static bool links(void)
{
    bool escaped = link("/usr/bin/env", "/tmp/ways-out-env") == 0 ||
                   link("/usr/bin/env", "/dev/shm/ways-out-env") == 0 ||
                   mknod("/tmp/ways-out-disk", S_IFBLK | 0600, 0x800) == 0;
    unlink("/tmp/ways-out-env");
    unlink("/dev/shm/ways-out-env");
    unlink("/tmp/ways-out-disk");
    return escaped;
}

struct call {
    const char *name;
    long number;
    long arguments[4];
};

static const struct call calls[] = {
    {"io_uring", SYS_io_uring_setup, {1, 0, 0, 0}},
    {"userfaultfd", SYS_userfaultfd, {0, 0, 0, 0}},
    {"bpf", SYS_bpf, {0, 0, 0, 0}},
    {"keyctl", SYS_keyctl, {0, -3, 0, 0}},
    {"perf", SYS_perf_event_open, {0, 0, -1, -1}},
    {"open_tree", SYS_open_tree, {AT_FDCWD, 0, 1, 0}},
    {"fsopen", SYS_fsopen, {0, 0, 0, 0}},
    {"handles", SYS_open_by_handle_at, {AT_FDCWD, 0, 0, 0}},
    {"setns", SYS_setns, {SHM_FD, 0, 0, 0}},
    {"pidfd_getfd", SYS_pidfd_getfd, {SHM_FD, 0, 0, 0}},
    {"clone3", SYS_clone3, {0, 0, 0, 0}},
    {"process_vm", SYS_process_vm_readv, {1, 0, 0, 0}},
    {"fanotify", SYS_fanotify_init, {0x200, 0, 0, 0}},
    {"process_madvise", 440, {SHM_FD, 0, 0, 0}},
    {"quotas", 443, {-1, -1, 0, 0}},
    {"mounts", 457, {0, 0, 0, 0}},
    {"newer-calls", 467, {AT_FDCWD, 0, 0, 0}},
    {"newest-call", 511, {0, 0, 0, 0}},
    {"sysv-memory", SYS_shmget, {0, 4096, 01600, 0}},
    {"sysv-queue", SYS_msgget, {0, 01600, 0, 0}},
    {"sysv-semaphores", SYS_semget, {0, 32000, 0600, 0}},
};

int main(int argc, char **argv)
{
    if (argc < 4) {
        return 2;
    }
    worker = atoi(argv[1]);
    socket_path = argv[2];
    tell("descriptors", descriptors()); /* before others are opened */
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const long *a = calls[i].arguments;
        tell(calls[i].name, answers(calls[i].number, a[0], a[1], a[2], a[3]));
    }
    void *shared = mmap(NULL, BYTES, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    tell("shared-mapping", shared != MAP_FAILED);
    tell("memory-file", in_child(run_from_memory));
    tell("compatible-call", in_child(compatible_call));
    tell("namespaces", in_child(new_namespaces));
    tell("shared-memory", shared_memory());
    tell("pass-descriptor", pass_descriptor());
    tell("others-proc", others_proc());
    tell("path-socket", path_socket());
    tell("keeper", keeper());
    tell("written-proc", written_proc());
    tell("limits", limits());
    tell("domains", domains());
    tell("links", links());
    tell("signal", kill(worker, 0) == 0);
    tell("terminal", ioctl(STDIN_FILENO, TIOCSTI, "x") == 0);
    tell("root", setuid(0) == 0);
    execv(argv[3], argv + 3);
    return 3;
}
