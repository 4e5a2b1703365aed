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

static enum status tell(const struct rig *rig, const struct rig_choice *choice,
                        struct planner_trial *told, struct error *error)
{
    memcpy(told->rig_id, rig->id, sizeof told->rig_id);
    told->seen = *rig;
    told->choice = *choice;
    for (uint32_t i = 0; i < choice->count; i++) {
        told->session_bytes += rig_chosen_tick_bytes(rig, &choice->sensors[i]);
    }
    return rig_hash(rig, told->rig, error);
}

static enum status try_here(const char *spec, const struct planner_confinement *confinement,
                            const struct rig *rig, bool on_device, struct planner_trial *told,
                            struct rig_choice *choice, struct error *error)
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
    if (status == STATUS_OK && choice != NULL) {
        *choice = *planner_choice(planner);
    }
    if (status == STATUS_OK && told != NULL) {
        snprintf(told->loaded, sizeof told->loaded, "%s", planner_loaded(planner));
        status = tell(planner_rig(planner), planner_choice(planner), told, error);
    }
    planner_close(planner);
    return status;
}

/* Text of the child's pipe. The plugin shared the process that wrote it. */
struct answer {
    struct error error;
    struct rig_choice choice;
};

/* The child: tries, and writes its answer to the pipe. */
_Noreturn static void try_and_tell(int fd, const char *spec,
                                   const struct planner_confinement *confinement,
                                   const struct rig *rig, bool on_device)
{
    struct answer answer = {.error = {.status = STATUS_OK, .text = ""}};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    /* Text that a plugin prints is no part of what the command prints. */
    answer.error.status =
        dup2(STDERR_FILENO, STDOUT_FILENO) >= 0
            ? try_here(spec, confinement, rig, on_device, NULL, &answer.choice, &answer.error)
            : error_set(&answer.error, STATUS_IO, "stdout: %s", strerror(errno));
    ssize_t wrote = write(fd, &answer, sizeof answer);
    _exit(wrote == (ssize_t)sizeof answer ? 0 : 1);
}

/* Whether it is a choice of sensors that the rig has. */
static bool is_of(const struct rig_choice *choice, const struct rig *rig)
{
    bool good = choice->count <= RIG_SENSORS_MAX;
    for (uint32_t i = 0; good && i < choice->count; i++) {
        const struct rig_chosen *chosen = &choice->sensors[i];
        good = chosen->kind == RIG_CAMERA  ? chosen->index < rig->camera_count
               : chosen->kind == RIG_LIDAR ? chosen->index < rig->lidar_count
                                           : chosen->kind == RIG_GRID;
    }
    return good;
}

/* A plugin picks of the rig that it is offered. */
static enum status tell_of_plugin(const char *spec, const struct rig *rig,
                                  const struct rig_choice *choice, struct planner_trial *told,
                                  struct error *error)
{
    struct rig usual;
    if (rig == NULL) {
        rig_swerve(&usual);
        rig = &usual;
    }
    if (!is_of(choice, rig)) {
        return error_set(error, STATUS_PLANNER,
                         "planner %s: expected sensors of the rig %s, found others", spec, rig->id);
    }
    return told != NULL ? tell(rig, choice, told, error) : STATUS_OK;
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
                             struct planner_trial *told, struct error *error)
{
    int ends[2];
    int how = 0;
    struct answer answer = {.error = {.status = STATUS_OK, .text = ""}};
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
    ssize_t got = status == STATUS_OK ? read(ends[0], &answer, sizeof answer) : 0;
    close(ends[0]);
    if (status != STATUS_OK) {
        kill(child, SIGKILL);
    }
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (got != (ssize_t)sizeof answer) {
        return error_set(error, STATUS_PLANNER, "planner %s: does not start: its process %s %d",
                         spec, WIFSIGNALED(how) ? "was ended by signal" : "exited with status",
                         WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    }
    answer.error.text[sizeof answer.error.text - 1] = '\0';
    if ((unsigned)answer.error.status >= STATUS_COUNT) {
        answer.error.status = STATUS_PLANNER;
    }
    return answer.error.status == STATUS_OK
               ? tell_of_plugin(spec, rig, &answer.choice, told, error)
               : error_set(error, answer.error.status, "%s", answer.error.text);
}

enum status planner_try(const char *spec, const struct planner_confinement *confinement,
                        const struct rig *rig, bool on_device, int64_t deadline_ms,
                        struct planner_trial *told, struct error *error)
{
    if (told != NULL) {
        memset(told, 0, sizeof *told);
    }
    return strncmp(planner_spec_bare(spec), "plugin:", strlen("plugin:")) == 0
               ? try_apart(spec, confinement, rig, on_device, deadline_ms, told, error)
               : try_here(spec, confinement, rig, on_device, told, NULL, error);
}
