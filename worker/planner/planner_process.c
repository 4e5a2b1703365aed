/*
 * Processes of an exec planner. Between fork and exec, and in the keeper, only async-signal-safe
 * calls are made, because the worker has threads; everything that allocates is prepared before.
 */
#include "worker/planner/planner_process.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "worker/planner/planner_environment.h"
#include "worker/planner/planner_memory.h"
#include "worker/planner/planner_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEPER_GRACE_NS (5 * NS_PER_S)
#define ABANDONED_STEP_NS (50 * NS_PER_MS) /* between looks whether a start is given up */

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* ---- start ---- */

/* Both ends of everything between us and the child. */
struct plumbing {
    int in[2];  /* socket pair: ours, child's */
    int out[2]; /* pipe: ours (read), child's (write) */
    int err[2];
    int start[2]; /* carries a struct sandbox_fault if exec fails, closes if it succeeds */
    int line[2];  /* socket pair with the keeper; bytes in turn while a sandbox is made */
};

static void plumbing_close(struct plumbing *plumbing, int end)
{
    close_fd(&plumbing->in[end]);
    close_fd(&plumbing->out[end]);
    close_fd(&plumbing->err[end]);
    close_fd(&plumbing->start[end]);
    close_fd(&plumbing->line[end]);
}

static int plumbing_open(struct plumbing *plumbing)
{
    *plumbing = (struct plumbing){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, plumbing->in) == 0 &&
        pipe2(plumbing->out, O_CLOEXEC) == 0 && pipe2(plumbing->err, O_CLOEXEC) == 0 &&
        pipe2(plumbing->start, O_CLOEXEC) == 0 &&
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, plumbing->line) == 0 &&
        shutdown(plumbing->in[0], SHUT_RD) == 0 && /* nothing comes back, descriptors neither */
        fcntl(plumbing->out[0], F_SETFL, O_NONBLOCK) == 0 &&
        fcntl(plumbing->err[0], F_SETFL, O_NONBLOCK) == 0) {
        return 0;
    }
    int code = errno;
    plumbing_close(plumbing, 0);
    plumbing_close(plumbing, 1);
    return code;
}

static void limit(int resource, rlim_t value)
{
    struct rlimit bounds;
    if (getrlimit(resource, &bounds) == 0) {
        bounds.rlim_cur = bounds.rlim_max < value ? bounds.rlim_max : value;
        bounds.rlim_max = bounds.rlim_cur;
        setrlimit(resource, &bounds);
    }
}

/* Descriptors of the keeper; the planner has those below. */
enum { START_FD = 4, LINE_FD, KEEPER_FD_COUNT };

/* Puts the child's descriptors where they are to be and closes all others, before anything is
 * waited for: among them are lines of other planners, whose ends the worker alone is to hold. */
static bool arrange_descriptors(const struct plumbing *plumbing, int shm_fd)
{
    enum { ABOVE = 16 };
    const int sources[KEEPER_FD_COUNT] = {plumbing->in[1], plumbing->out[1],   plumbing->err[1],
                                          shm_fd,          plumbing->start[1], plumbing->line[1]};
    int raised[KEEPER_FD_COUNT];
    for (int i = 0; i < KEEPER_FD_COUNT; i++) {
        raised[i] = fcntl(sources[i], F_DUPFD, ABOVE);
        if (raised[i] < 0) {
            return false;
        }
    }
    for (int i = 0; i < KEEPER_FD_COUNT; i++) {
        if (dup3(raised[i], i, i >= START_FD ? O_CLOEXEC : 0) < 0) {
            return false;
        }
    }
    if (syscall(SYS_close_range, KEEPER_FD_COUNT, ~0u, 0) != 0) {
        for (int fd = KEEPER_FD_COUNT; fd < 65536; fd++) {
            close(fd);
        }
    }
    return true;
}

/* Inputs of the child, all of it made before the fork. */
struct child_plan {
    const char *path;
    char *const *argv;
    char *const *environment;
    const struct plumbing *plumbing;
    const struct process_limits *limits;
    const struct sandbox *sandbox; /* NULL: none */
    int shm_fd;
};

/* A byte to the other side of a line, and one from there. False: it is gone. */
static bool pass_turn(int fd)
{
    return send(fd, "", 1, MSG_NOSIGNAL) == 1;
}

static bool await_turn(int fd)
{
    char byte;
    ssize_t got;
    do {
        got = recv(fd, &byte, 1, 0);
    } while (got < 0 && errno == EINTR);
    return got == 1;
}

/* Makes the caller's process group the one that reads from the terminal, if there is one. Whoever
 * is in the background is stopped for that, unless the signal is ignored. Async-signal-safe. */
static void take_terminal(void)
{
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (terminal >= 0) {
        void (*before)(int) = signal(SIGTTOU, SIG_IGN);
        tcsetpgrp(terminal, getpgrp());
        signal(SIGTTOU, before);
        close(terminal);
    }
}

/* Writes why the program could not be started. */
_Noreturn static void tell_start(const struct sandbox_fault *fault)
{
    ssize_t wrote = write(START_FD, fault, sizeof *fault);
    _exit(wrote == (ssize_t)sizeof *fault ? 127 : 126);
}

/* Everything of the planner's between fork and exec. */
static int settle(const struct child_plan *plan, pid_t keeper, struct sandbox_fault *fault)
{
    sigset_t none;
    sigemptyset(&none);
    if (setpgid(0, 0) != 0) {
        *fault = (struct sandbox_fault){errno, SANDBOX_EXEC, 0};
        return -1;
    }
    if (plan->limits->debug) {
        take_terminal();
    }
    /* Should somebody kill the keeper. In a sandbox the kernel ends all others with it. */
    if (plan->sandbox == NULL && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != keeper)) {
        *fault = (struct sandbox_fault){ECHILD, SANDBOX_EXEC, 0};
        return -1;
    }
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_DATA, (rlim_t)plan->limits->memory_bytes);
    limit(RLIMIT_NOFILE, plan->limits->files);
    if (plan->sandbox == NULL) {
        return 0;
    }
    return sandbox_limit(plan->sandbox, fault) == 0 ? sandbox_filter(fault) : -1;
}

_Noreturn static void planner_main(const struct child_plan *plan, pid_t keeper)
{
    struct sandbox_fault fault = {.code = 0};
    close(LINE_FD);
    if (settle(plan, keeper, &fault) == 0) {
        execve(plan->path, plan->argv, plan->environment);
        fault = (struct sandbox_fault){errno, SANDBOX_EXEC, 0};
    }
    tell_start(&fault);
}

_Noreturn static void child_main(const struct child_plan *plan)
{
    struct sandbox_fault fault = {.code = 0};
    const bool sandbox = plan->sandbox != NULL;
    if (!arrange_descriptors(plan->plumbing, plan->shm_fd)) {
        _exit(126);
    }
    /* First its users are made known, later its watch is: nobody can look into it from then on. */
    if (sandbox && !await_turn(LINE_FD)) {
        _exit(126); /* our parent gave up, or died */
    }
    int memory_fd = keeper_prepare();
    if (sandbox) {
        if (sandbox_enter(plan->sandbox, &fault) != 0) {
            tell_start(&fault);
        }
        if (!pass_turn(LINE_FD) || !await_turn(LINE_FD)) {
            _exit(126);
        }
    }
    const pid_t keeper = getpid();
    const pid_t planner = keeper_fork(sandbox);
    if (planner == 0) {
        planner_main(plan, keeper);
    }
    if (planner < 0) {
        fault = (struct sandbox_fault){errno, SANDBOX_EXEC, 0};
        tell_start(&fault);
    }
    for (int fd = 0; fd < LINE_FD; fd++) {
        close(fd);
    }
    keeper_wait(LINE_FD, memory_fd, planner, sandbox);
}

/* The child's fault if its start failed; code 0 once exec has happened. */
static void start_result(int fd, struct sandbox_fault *fault)
{
    *fault = (struct sandbox_fault){.code = 0};
    for (;;) {
        ssize_t got = read(fd, fault, sizeof *fault);
        if (got > 0 && (got != (ssize_t)sizeof *fault || fault->code == 0)) {
            fault->code = ECHILD;
        }
        if (got >= 0 || errno != EINTR) {
            return;
        }
    }
}

static enum status tell_fault(const struct child_plan *plan, const struct sandbox_fault *fault,
                              struct error *error)
{
    char text[ERROR_TEXT_BYTES / 2];
    if (plan->sandbox == NULL) {
        return error_set(error, STATUS_PLANNER, "planner program %s: cannot be started: %s",
                         plan->path, strerror(fault->code));
    }
    sandbox_fault_text(plan->sandbox, fault, text, sizeof text);
    return error_set(error, STATUS_PLANNER, "planner program %.400s: cannot be started: %s",
                     plan->path, text);
}

/* Our side of making a sandbox, in turns with the keeper. Where the keeper has failed, what is
 * wrong is in the start pipe. */
static enum status make_sandbox(struct planner_process *process, const struct child_plan *plan,
                                struct sandbox_fault *fault, struct error *error)
{
    planner_cgroup_enter(&process->cgroup, process->pid, plan->limits->memory_bytes);
    if (sandbox_map_users(process->pid) != 0 || !pass_turn(process->line_fd)) {
        *fault = (struct sandbox_fault){errno, SANDBOX_USERS, 0};
        return tell_fault(plan, fault, error);
    }
    if (!await_turn(process->line_fd)) {
        return STATUS_OK;
    }
    TRY(memory_watch_start(process->pid, plan->limits->memory_bytes, &process->watch, error));
    (void)pass_turn(process->line_fd);
    return STATUS_OK;
}

/* Afterwards exec has happened, or nothing is left of it but open descriptors. */
static enum status launch(const struct child_plan *plan, struct plumbing *plumbing,
                          struct planner_process *process, struct error *error)
{
    struct sandbox_fault fault;
    enum status status = STATUS_OK;
    if (process->sandbox) {
        planner_cgroup_prepare(&process->cgroup);
    }
    pid_t pid = process->sandbox ? sandbox_clone() : fork();
    if (pid == 0) {
        child_main(plan);
    }
    fault = (struct sandbox_fault){errno, process->sandbox ? SANDBOX_USERS : SANDBOX_EXEC, 0};
    plumbing_close(plumbing, 1);
    process->line_fd = plumbing->line[0];
    process->in_fd = plumbing->in[0];
    process->out_fd = plumbing->out[0];
    process->err_fd = plumbing->err[0];
    if (pid < 0) {
        close_fd(&plumbing->start[0]);
        return tell_fault(plan, &fault, error);
    }
    process->pid = pid;
    process->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process->sandbox) {
        status = make_sandbox(process, plan, &fault, error);
    }
    if (status == STATUS_OK) {
        start_result(plumbing->start[0], &fault);
        status = fault.code != 0 ? tell_fault(plan, &fault, error) : STATUS_OK;
    }
    close_fd(&plumbing->start[0]);
    if (status != STATUS_OK) {
        process_end(process, 0);
    }
    return status;
}

void process_init(struct planner_process *process)
{
    memset(process, 0, sizeof *process);
    process->pid_fd = process->line_fd = -1;
    process->in_fd = process->out_fd = process->err_fd = process->closed_fd = -1;
}

enum status process_start(struct planner_process *process, const struct planner_argv *words,
                          int shm_fd, size_t shm_bytes, const struct process_limits *limits,
                          struct error *error)
{
    process_init(process);
    const struct planner_confinement *confinement = limits->confinement;
    char path[LIMIT_PATH_BYTES];
    char **environment = NULL;
    struct sandbox *sandbox = NULL;
    struct plumbing plumbing;
    enum status status = planner_program_find(words->argv[0], path, error);
    if (status == STATUS_OK && confinement != NULL && confinement->sandbox) {
        status = sandbox_prepare(confinement, words, path, &sandbox, error);
    }
    THEN(status,
         planner_environment_make(confinement, PROCESS_SHM_FD, shm_bytes, &environment, error));
    if (status != STATUS_OK) {
        goto done;
    }
    int code = plumbing_open(&plumbing);
    if (code != 0) {
        status = error_set(error, STATUS_IO, "planner program %s: pipes: %s", path, strerror(code));
        goto done;
    }
    const struct child_plan plan = {
        .path = path,
        .argv = words->argv,
        .environment = environment,
        .plumbing = &plumbing,
        .limits = limits,
        .sandbox = sandbox,
        .shm_fd = shm_fd,
    };
    process->sandbox = sandbox != NULL;
    process->memory_bytes = limits->memory_bytes;
    process->debug = limits->debug;
    process->output = limits->output;
    if (sandbox != NULL) {
        snprintf(process->unseen, sizeof process->unseen, "%s", sandbox_unseen(sandbox));
    }
    status = launch(&plan, &plumbing, process, error);
    if (status != STATUS_OK) {
        process_finish(process);
    }
done:
    free(environment);
    sandbox_free(sandbox);
    return status;
}

/* ---- talk ---- */

void process_drain(struct planner_process *process)
{
    char block[4096];
    /* Bounded, so that a child which writes without end cannot keep us here. */
    for (int round = 0; round < 64 && process->err_fd >= 0; round++) {
        ssize_t got = read(process->err_fd, block, sizeof block);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
            close_fd(&process->err_fd);
        }
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return;
        }
        if (process->debug && write(STDERR_FILENO, block, (size_t)got) < 0) {
            process->debug = false; /* nobody reads it any more */
        }
        if (process->output != NULL) {
            planner_output_put(process->output, block, (size_t)got);
        }
    }
}

/* Sends what fits. */
static enum process_result send_some(struct planner_process *process, struct process_talk *talk)
{
    ssize_t wrote = send(process->in_fd, talk->question + talk->sent_bytes,
                         talk->question_bytes - talk->sent_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote < 0 && (errno == EPIPE || errno == ECONNRESET)) {
        talk->sent_bytes = talk->question_bytes; /* what is left of it, nobody reads */
        process->closed_fd = STDIN_FILENO;
        return PROCESS_CLOSED;
    }
    if (wrote < 0 && errno != EAGAIN && errno != EINTR) {
        return PROCESS_FAULT;
    }
    talk->sent_bytes += wrote > 0 ? (size_t)wrote : 0;
    return PROCESS_OK;
}

static enum process_result receive_some(struct planner_process *process, struct process_talk *talk)
{
    ssize_t got =
        read(process->out_fd, talk->answer + talk->got_bytes, talk->room_bytes - talk->got_bytes);
    if (got == 0) {
        process->closed_fd = STDOUT_FILENO;
        return PROCESS_CLOSED;
    }
    if (got < 0 && errno != EAGAIN && errno != EINTR) {
        return PROCESS_FAULT;
    }
    talk->got_bytes += got > 0 ? (size_t)got : 0;
    return PROCESS_OK;
}

/* Takes what a planner had written that has exited, or has closed its stdin. Others that hold its
 * descriptors answer nothing that can be relied on, and may keep them open for ever. */
static enum process_result receive_rest(struct planner_process *process, struct process_talk *talk,
                                        size_t want_bytes)
{
    enum process_result result = PROCESS_OK;
    size_t before_bytes;
    do {
        before_bytes = talk->got_bytes;
        if (talk->got_bytes < want_bytes) {
            result = receive_some(process, talk);
        }
    } while (result == PROCESS_OK && talk->got_bytes > before_bytes);
    return result == PROCESS_OK && talk->got_bytes < want_bytes ? PROCESS_CLOSED : result;
}

enum process_result process_exchange(struct planner_process *process, struct process_talk *talk,
                                     size_t want_bytes, int64_t deadline_ns)
{
    enum process_result result = PROCESS_OK;
    CHECK(want_bytes <= talk->room_bytes);
    if (talk->sent_bytes < talk->question_bytes) {
        result = send_some(process, talk);
    }
    while (result == PROCESS_OK &&
           (talk->got_bytes < want_bytes || talk->sent_bytes < talk->question_bytes)) {
        int64_t left_ns = deadline_ns - clock_monotonic_ns();
        if (left_ns <= 0) {
            return PROCESS_TIMEOUT;
        }
        if (process->abandoned != NULL) {
            if (atomic_load(process->abandoned)) {
                return PROCESS_ABANDONED;
            }
            left_ns = left_ns < ABANDONED_STEP_NS ? left_ns : ABANDONED_STEP_NS;
        }
        struct pollfd watched[4] = {
            {.fd = talk->got_bytes < want_bytes ? process->out_fd : -1, .events = POLLIN},
            {.fd = process->err_fd, .events = POLLIN},
            {.fd = talk->sent_bytes < talk->question_bytes ? process->in_fd : -1,
             .events = POLLOUT},
            {.fd = process->pid_fd, .events = POLLIN},
        };
        struct timespec wait = {left_ns / NS_PER_S, left_ns % NS_PER_S};
        int ready = ppoll(watched, 4, &wait, NULL);
        if (ready < 0 && errno != EINTR) {
            return PROCESS_FAULT;
        }
        if (ready <= 0) {
            continue;
        }
        if (watched[3].revents != 0) {
            process_drain(process);
            return receive_rest(process, talk, want_bytes);
        }
        if (watched[1].revents != 0) {
            process_drain(process);
        }
        if (watched[2].revents != 0) {
            result = send_some(process, talk);
        }
        if (result == PROCESS_OK && watched[0].revents != 0) {
            result = receive_some(process, talk);
        }
    }
    /* Of an answer that was there before, the question need not have been read to its end. */
    return result == PROCESS_CLOSED ? receive_rest(process, talk, want_bytes) : result;
}

/* ---- end ---- */

/* True once the keeper has exited; it is left unreaped, so its number stays ours. */
static bool keeper_exited(struct planner_process *process)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    if (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
        return false;
    }
    if (!keeper_hear(process->line_fd, &process->exit) && process->exit.code == 0) {
        process->exit = (struct keeper_report){info.si_code, info.si_status};
    }
    return true;
}

/* Keeps both pipes empty while waiting, or a child that still writes would never exit. */
static void wait_for_exit(struct planner_process *process, int64_t wait_ns)
{
    int64_t deadline_ns = clock_monotonic_ns() + wait_ns;
    while (!keeper_exited(process)) {
        int64_t left_ns = deadline_ns - clock_monotonic_ns();
        if (left_ns <= 0) {
            return;
        }
        struct pollfd watched[3] = {
            {.fd = process->pid_fd, .events = POLLIN},
            {.fd = process->err_fd, .events = POLLIN},
            {.fd = process->out_fd, .events = POLLIN},
        };
        /* Without a pid descriptor, look again every 10 ms. */
        int64_t step_ns =
            process->pid_fd >= 0 || left_ns < 10 * NS_PER_MS ? left_ns : 10 * NS_PER_MS;
        struct timespec wait = {step_ns / NS_PER_S, step_ns % NS_PER_S};
        if (ppoll(watched, 3, &wait, NULL) <= 0) {
            continue;
        }
        if (watched[1].revents != 0) {
            process_drain(process);
        }
        char ignored[4096];
        if (watched[2].revents != 0 && read(process->out_fd, ignored, sizeof ignored) == 0) {
            close_fd(&process->out_fd);
        }
    }
}

void process_end(struct planner_process *process, int64_t wait_ns)
{
    if (process->pid == 0) {
        return;
    }
    wait_for_exit(process, wait_ns);
    const struct keeper_report ended = process->exit;
    process->killed_at_bytes = memory_watch_end(process->watch);
    process->watch = NULL;
    if (!process->sandbox) {
        /* The keeper does it; one that was stopped does nothing. */
        (void)shutdown(process->line_fd, SHUT_WR);
        wait_for_exit(process, KEEPER_GRACE_NS);
    }
    kill(process->pid, SIGKILL);
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    process->exit = ended;
    if (planner_cgroup_leave(&process->cgroup) && process->killed_at_bytes == 0) {
        process->killed_at_bytes = process->memory_bytes;
    }
    process->pid = 0;
    process_drain(process);
    if (process->debug) {
        take_terminal();
    }
}

void process_finish(struct planner_process *process)
{
    close_fd(&process->pid_fd);
    close_fd(&process->line_fd);
    close_fd(&process->in_fd);
    close_fd(&process->out_fd);
    close_fd(&process->err_fd);
}

/* ---- report ---- */

void process_exit_text(const struct planner_process *process, char *text, size_t bytes)
{
    if (process->exit.code == CLD_EXITED) {
        snprintf(text, bytes, "exited with status %d", process->exit.value);
    } else if (process->exit.code == CLD_KILLED || process->exit.code == CLD_DUMPED) {
        const char *name = sigdescr_np(process->exit.value);
        snprintf(text, bytes, "was killed by signal %d (%s)", process->exit.value,
                 name != NULL ? name : "unknown");
    } else if (process->closed_fd >= 0) {
        snprintf(text, bytes, "closed descriptor %d and had to be killed", process->closed_fd);
    } else {
        snprintf(text, bytes, "had to be killed");
    }
}

bool process_failure(enum process_result result, int64_t deadline_ms, const char *limit, char *text,
                     size_t bytes)
{
    if (result == PROCESS_TIMEOUT) {
        snprintf(text, bytes, "no answer within %lld ms%s", (long long)deadline_ms, limit);
    } else {
        snprintf(text, bytes, "%s",
                 result == PROCESS_CLOSED      ? "the process"
                 : result == PROCESS_ABANDONED ? "its start was given up"
                                               : strerror(errno));
    }
    return result == PROCESS_CLOSED;
}
