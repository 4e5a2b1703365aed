/*
 * Keeper of a planner's processes. See planner_keeper.h.
 *
 * A copy of the worker would keep every page that the worker changes from then on, and the
 * worker's secrets. So it gives back what it has inherited: private memory without a file is
 * dropped where it lies (its addresses stay, for the libraries), shared memory is unmapped. Its
 * stack and its thread's own data stay. The loader's memory does not, so every function must be
 * bound by then: meson.build links with -z now.
 */
#include "worker/planner/planner_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEPS_MEMORY 1 /* a sanitizer's own, without which nothing goes on */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KEEPS_MEMORY 1
#endif
#endif
#ifndef KEEPS_MEMORY
#define KEEPS_MEMORY 0
#endif

enum {
    LINE_BYTES = 512, /* of /proc/self/maps; of longer ones the start */
    BLOCK_BYTES = 4096,
    ROUNDS_MAX = 5000, /* of killing what descends from the planner, a millisecond each */
};

/* isdigit() reads a table that is gone. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- memory ---- */

static uintptr_t read_number(const char **at, unsigned base)
{
    uintptr_t number = 0;
    for (;; (*at)++) {
        char c = **at;
        unsigned digit = is_digit(c)            ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                : base;
        if (digit >= base) {
            return number;
        }
        number = number * base + digit;
    }
}

static void skip_word(const char **at)
{
    while (**at != '\0' && **at != ' ') {
        (*at)++;
    }
    while (**at == ' ') {
        (*at)++;
    }
}

/* One line: "from-to rwxp offset device inode name". */
static void give_back(const char *line)
{
    const uintptr_t here = (uintptr_t)&line;
    const uintptr_t thread = (uintptr_t)&errno;
    uintptr_t from = read_number(&line, 16);
    line += *line == '-';
    uintptr_t to = read_number(&line, 16);
    skip_word(&line);
    bool writes = line[0] != '\0' && line[1] == 'w';
    bool shared = writes && strnlen(line, 4) == 4 && line[3] == 's';
    skip_word(&line);
    skip_word(&line); /* the offset */
    skip_word(&line); /* the device */
    bool of_file = read_number(&line, 10) != 0;
    if ((from <= here && here < to) || (from <= thread && thread < to) || from >= to) {
        return;
    }
    if (shared) {
        (void)syscall(SYS_munmap, from, to - from);
    } else if (writes && !of_file) {
        (void)syscall(SYS_madvise, from, to - from, MADV_DONTNEED);
    }
}

static void forget_memory(int fd)
{
    char block[BLOCK_BYTES];
    char line[LINE_BYTES];
    size_t bytes = 0;
    ssize_t got;
    while (!KEEPS_MEMORY && fd >= 0 && (got = read(fd, block, sizeof block)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (block[i] == '\n') {
                line[bytes] = '\0';
                give_back(line);
                bytes = 0;
            } else if (bytes + 1 < sizeof line) {
                line[bytes++] = block[i];
            }
        }
    }
}

/* ---- lists of processes ---- */

/* A field of /proc/PROCESS/stat, from the third on, which is behind the name in brackets; 0: there
 * is none. */
static uintptr_t read_stat(const char *process, int field)
{
    char path[64] = "/proc/";
    char text[LINE_BYTES];
    strncat(path, process, 20);
    strcat(path, "/stat");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    text[bytes > 0 ? bytes : 0] = '\0';
    const char *at = strrchr(text, ')');
    for (int i = 2; at != NULL && i < field; i++) {
        skip_word(&at);
    }
    return at != NULL ? read_number(&at, 10) : 0;
}

/* It is no worker: lists that have the command lines of processes show its name instead. */
static void wipe_command_line(void)
{
    enum { ARGUMENTS_START = 48, ARGUMENTS_END = 49 };
    uintptr_t from = read_stat("self", ARGUMENTS_START);
    uintptr_t to = read_stat("self", ARGUMENTS_END);
    (void)prctl(PR_SET_NAME, "planner-keeper");
    if (from != 0 && to > from) {
        memset((void *)from, 0, to - from);
    }
}

/* ---- the end of all ---- */

struct entry { /* of getdents64 */
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static void kill_children(void)
{
    _Alignas(struct entry) char block[BLOCK_BYTES];
    enum { PARENT = 4 };
    const uintptr_t self = (uintptr_t)getpid();
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long got;
    while (fd >= 0 && (got = syscall(SYS_getdents64, fd, block, sizeof block)) > 0) {
        for (long at = 0; at < got;) {
            const struct entry *entry = (const struct entry *)(const void *)(block + at);
            const char *name = entry->name;
            if (is_digit(name[0]) && read_stat(name, PARENT) == self) {
                kill((pid_t)read_number(&name, 10), SIGKILL);
            }
            at += entry->bytes;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Whoever loses its parent on the way becomes the keeper's child, and is next. */
static void kill_descendants(pid_t planner)
{
    siginfo_t info = {.si_pid = 0};
    kill(-planner, SIGKILL);
    for (int round = 0; round < ROUNDS_MAX && waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0;) {
        if (info.si_pid == 0) {
            kill_children();
            (void)poll(NULL, 0, 1);
            round++;
        }
        info.si_pid = 0;
    }
}

/* ---- the keeper ---- */

int keeper_prepare(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setpgid(0, 0);
    wipe_command_line();
    return open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
}

pid_t keeper_fork(bool sandbox)
{
    if (prctl(PR_SET_DUMPABLE, 0) != 0 || (!sandbox && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)) {
        return -1;
    }
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* Takes ended processes off the list; true: the planner's own was among them. */
static bool reap(pid_t planner, struct keeper_report *report)
{
    siginfo_t info = {.si_pid = 0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
        if (info.si_pid == planner) {
            *report = (struct keeper_report){info.si_code, info.si_status};
            return true;
        }
        info.si_pid = 0;
    }
    return false;
}

/* Until the line ends, or the planner. */
static void watch(int line_fd, int child_fd, pid_t planner, struct keeper_report *report)
{
    struct signalfd_siginfo drained;
    struct pollfd watched[2] = {{.fd = line_fd, .events = POLLIN},
                                {.fd = child_fd, .events = POLLIN}};
    for (;;) {
        if (poll(watched, 2, -1) < 0 && errno != EINTR) {
            return;
        }
        if (watched[0].revents != 0) {
            return;
        }
        if (watched[1].revents != 0) {
            if (read(child_fd, &drained, sizeof drained) < 0 && errno != EAGAIN) {
                return;
            }
            if (reap(planner, report)) {
                return;
            }
        }
    }
}

void keeper_wait(int line_fd, int memory_fd, pid_t planner, bool sandbox)
{
    struct keeper_report report = {0};
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    forget_memory(memory_fd);
    if (memory_fd >= 0) {
        close(memory_fd);
    }
    int child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (child_fd >= 0) {
        watch(line_fd, child_fd, planner, &report);
    }
    if (report.code != 0) {
        (void)send(line_fd, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (!sandbox) {
        kill_descendants(planner);
    }
    _exit(0); /* in a sandbox all others end with this */
}

bool keeper_hear(int line_fd, struct keeper_report *report)
{
    struct keeper_report heard;
    if (recv(line_fd, &heard, sizeof heard, MSG_DONTWAIT) != (ssize_t)sizeof heard ||
        heard.code == 0) {
        return false;
    }
    *report = heard;
    return true;
}
