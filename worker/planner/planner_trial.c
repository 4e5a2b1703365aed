/*
 * Trial of a planner. See planner_trial.h.
 */
#include "worker/planner/planner_trial.h"

#include "worker/planner/planner_spec.h"

#include "base/clock.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static enum status tell(const struct planner *planner, struct planner_trial *told,
                        struct error *error)
{
    const struct rig *rig = planner_rig(planner);
    const struct rig_choice *choice = planner_choice(planner);
    snprintf(told->loaded, sizeof told->loaded, "%s", planner_loaded(planner));
    memcpy(told->rig_id, rig->id, sizeof told->rig_id);
    told->sensor_count = choice->count;
    for (uint32_t i = 0; i < choice->count; i++) {
        told->session_bytes += rig_chosen_tick_bytes(rig, &choice->sensors[i]);
    }
    return rig_hash(rig, told->rig, error);
}

static enum status try_here(const char *spec, const struct planner_confinement *confinement,
                            const struct rig *rig, bool on_device, struct planner_trial *told,
                            struct error *error)
{
    static const struct swerve_place somewhere = {0, "a device"}; /* nobody is told of it */
    struct planner *planner = NULL;
    const struct planner_config config = {
        .session_count = 1,
        .confinement = confinement,
        .place = on_device ? &somewhere : NULL,
        .trial = true,
        .rig = rig,
    };
    enum status status = planner_open(spec, &config, &planner, error);
    if (status == STATUS_OK && told != NULL) {
        status = tell(planner, told, error);
    }
    planner_close(planner);
    return status;
}

/* The child: tries, and writes its error to the pipe. */
_Noreturn static void try_and_tell(int fd, const char *spec,
                                   const struct planner_confinement *confinement,
                                   const struct rig *rig, bool on_device)
{
    struct error error = {.status = STATUS_OK, .text = ""};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    /* Text that a plugin prints is no part of what the command prints. */
    error.status = dup2(STDERR_FILENO, STDOUT_FILENO) >= 0
                       ? try_here(spec, confinement, rig, on_device, NULL, &error)
                       : error_set(&error, STATUS_IO, "stdout: %s", strerror(errno));
    ssize_t wrote = write(fd, &error, sizeof error);
    _exit(wrote == (ssize_t)sizeof error ? 0 : 1);
}

/* Whether the child's answer, or its end, came in time. */
static enum status await(int fd, const char *spec, int64_t deadline_ms, struct error *error)
{
    int64_t end_ns = clock_now_ns(clock_system()) + deadline_ms * NS_PER_MS;
    for (;;) {
        int64_t left_ms = (end_ns - clock_now_ns(clock_system())) / NS_PER_MS;
        if (left_ms <= 0) {
            return error_set(error, STATUS_PLANNER,
                             "planner %s: does not start: no return within %.0f s", spec,
                             (double)deadline_ms / 1000.0);
        }
        struct pollfd watched = {.fd = fd, .events = POLLIN};
        int ready = poll(&watched, 1, (int)left_ms);
        if (ready > 0) {
            return STATUS_OK;
        }
        if (ready < 0) {
            return error_set(error, errno == EINTR ? STATUS_CANCELLED : STATUS_IO,
                             "interrupted while planner %s was tried; nothing was submitted", spec);
        }
    }
}

static enum status try_apart(const char *spec, const struct planner_confinement *confinement,
                             const struct rig *rig, bool on_device, int64_t deadline_ms,
                             struct error *error)
{
    int ends[2];
    int how = 0;
    struct error told = {.status = STATUS_OK, .text = ""};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return error_set(error, STATUS_IO, "planner %s: pipe: %s", spec, strerror(errno));
    }
    fflush(NULL); /* or the child's end would print it once more */
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        try_and_tell(ends[1], spec, confinement, rig, on_device);
    }
    int code = errno;
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return error_set(error, STATUS_IO, "planner %s: fork: %s", spec, strerror(code));
    }
    enum status status = await(ends[0], spec, deadline_ms, error);
    ssize_t got = status == STATUS_OK ? read(ends[0], &told, sizeof told) : 0;
    close(ends[0]);
    if (status != STATUS_OK) {
        kill(child, SIGKILL);
    }
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (got != (ssize_t)sizeof told) {
        return error_set(error, STATUS_PLANNER, "planner %s: does not start: its process %s %d",
                         spec, WIFSIGNALED(how) ? "was ended by signal" : "exited with status",
                         WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    }
    told.text[sizeof told.text - 1] = '\0'; /* the plugin shared the process that wrote it */
    if ((unsigned)told.status >= STATUS_COUNT) {
        told.status = STATUS_PLANNER;
    }
    return told.status == STATUS_OK ? STATUS_OK : error_set(error, told.status, "%s", told.text);
}

enum status planner_try(const char *spec, const struct planner_confinement *confinement,
                        const struct rig *rig, bool on_device, int64_t deadline_ms,
                        struct planner_trial *told, struct error *error)
{
    if (told != NULL) {
        memset(told, 0, sizeof *told);
    }
    return strncmp(planner_spec_bare(spec), "plugin:", strlen("plugin:")) == 0
               ? try_apart(spec, confinement, rig, on_device, deadline_ms, error)
               : try_here(spec, confinement, rig, on_device, told, error);
}
