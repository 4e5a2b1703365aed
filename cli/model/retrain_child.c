/*
 * Start, watch and end of a child. See retrain_child.h.
 */
#include "cli/model/retrain_child.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 20, BEAT_S = 10, GRACE_S = 10, LOG_BYTES_MAX = 64 << 20, UNSTARTED = 127 };

/* The child: only what may be called between fork and exec. */
_Noreturn static void become(const struct retrain_child *child, int out, int log, int told,
                             pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
        dup2(out, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        execvp(child->words[0], (char *const *)(uintptr_t)child->words);
    }
    int failure = errno;
    ssize_t wrote = write(told, &failure, sizeof failure);
    _exit(wrote == (ssize_t)sizeof failure ? UNSTARTED : UNSTARTED - 1);
}

static enum status start(const struct retrain_child *child, pid_t *pid, struct error *error)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    const pid_t parent = getpid();
    int told[2] = {-1, -1};
    int failure = 0;
    int out = open(child->out, flags, 0666);
    int log = open(child->log, flags, 0666);
    *pid = out >= 0 && log >= 0 && pipe2(told, O_CLOEXEC) == 0 ? fork() : -1;
    if (*pid == 0) {
        become(child, out, log, told[1], parent);
    }
    if (*pid < 0) {
        failure = errno;
    }
    const int all[] = {out, log, told[1]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i] >= 0) {
            close(all[i]);
        }
    }
    if (*pid > 0 && read(told[0], &failure, sizeof failure) == (ssize_t)sizeof failure) {
        waitpid(*pid, NULL, 0);
    }
    if (told[0] >= 0) {
        close(told[0]);
    }
    return failure == 0        ? STATUS_OK
           : failure == ENOENT ? error_set(error, STATUS_NOT_FOUND,
                                           "%.200s: there is no such "
                                           "program",
                                           child->words[0])
                               : error_set(error, STATUS_IO, "cannot start %.200s: %s",
                                           child->words[0], strerror(failure));
}

static enum status beat(const struct retrain_child *child, int64_t *since_ns, struct error *error)
{
    int64_t now_ns = clock_now_ns(clock_system());
    double seconds = (double)(now_ns - *since_ns) / (double)NS_PER_S;
    *since_ns = now_ns;
    return child->spent != NULL ? child->spent(child->context, seconds, error) : STATUS_OK;
}

/* Until it has ended, or is to be stopped. */
static enum status watch(const struct retrain_child *child, pid_t pid, int *how, bool *ended,
                         struct error *error)
{
    const struct timespec pause = {0, LOOK_MS * NS_PER_MS};
    int64_t since_ns = clock_now_ns(clock_system());
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !*ended) {
        int64_t now_ns = clock_now_ns(clock_system());
        *ended = waitpid(pid, how, WNOHANG) == pid;
        if (*ended) {
            break;
        }
        if (atomic_load(child->interrupted) != 0) {
            status = error_set(error, STATUS_CANCELLED, "interrupted");
        } else if (now_ns > child->until_ns) {
            status = error_set(error, STATUS_TIMEOUT, "out of time");
        } else if (now_ns - since_ns > BEAT_S * NS_PER_S) {
            status = beat(child, &since_ns, error);
        }
        nanosleep(&pause, NULL);
    }
    struct error second;
    enum status beaten = beat(child, &since_ns, status == STATUS_OK ? error : &second);
    return status != STATUS_OK ? status : beaten;
}

static void stop(pid_t pid)
{
    const struct timespec pause = {0, LOOK_MS * NS_PER_MS};
    const int64_t until_ns = clock_now_ns(clock_system()) + GRACE_S * NS_PER_S;
    kill(pid, SIGTERM);
    while (waitpid(pid, NULL, WNOHANG) != pid) {
        if (clock_now_ns(clock_system()) > until_ns) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

enum status retrain_child_run(const struct retrain_child *child, int *code, struct error *error)
{
    pid_t pid = -1;
    int how = 0;
    bool ended = false;
    TRY(start(child, &pid, error));
    enum status status = watch(child, pid, &how, &ended, error);
    if (!ended) {
        stop(pid);
        return status;
    }
    TRY(status);
    if (!WIFEXITED(how) && atomic_load(child->interrupted) != 0) { /* it got the signal, too */
        return error_set(error, STATUS_CANCELLED, "interrupted");
    }
    *code = WIFEXITED(how) ? WEXITSTATUS(how) : RETRAIN_CHILD_SIGNAL + WTERMSIG(how);
    return STATUS_OK;
}

const char *retrain_child_last_words(const char *log, char out[RETRAIN_WORDS_BYTES])
{
    static const char own[] = "swerve: ";
    struct error ignored;
    char *text = NULL;
    size_t bytes = 0;
    out[0] = '\0';
    if (file_read(log, LOG_BYTES_MAX, &text, &bytes, &ignored) != STATUS_OK) {
        return out;
    }
    while (bytes > 0 && (text[bytes - 1] == '\n' || text[bytes - 1] == '\0')) {
        text[--bytes] = '\0';
    }
    const char *line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    line += strncmp(line, own, sizeof own - 1) == 0 ? sizeof own - 1 : 0;
    snprintf(out, RETRAIN_WORDS_BYTES, "%s", line);
    free(text);
    return out;
}
