/*
 * The planner of test_runner.c: drives by a simple law over its own memory and what it is shown, so
 * that any mix-up of sessions, frames or forks changes its actions, and misbehaves as its config
 * says: "MODE,TICK,SCENARIO".
 *
 *   nan      answers NaN at TICK           nanslow  .. once it is slower than TICK m/s
 *   die      act fails as a whole at TICK  dieslow  .. once it is slower than TICK m/s
 *   crash    the process ends itself at TICK    hang    act never returns at TICK
 *   trap     an instruction fails at TICK       quit    the process exits with 0 at TICK
 *   nofork   fork fails                    noreset  reset fails
 *   twin     a fork()ed copy of the process returns from act too, at TICK
 *   chatty   prints to stdout at open and at TICK
 *   echo     accel is 0.01 x tick          age      accel is the age of the lidar frame in seconds
 */
#include "schemas/planner.h"

#include "schemas/observation.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session {
    int known; /* reset or forked, and not ended */
    int targeted;
    uint32_t ticks;
    double memory;
};

struct moody {
    char mode[16];
    uint32_t tick;
    char scenario[64];
    uint32_t session_count;
    struct session *sessions;
};

const struct swerve_planner_ops *swerve_planner_entry(void);

static int moody_open(void **planner, const char *config, uint32_t session_count, char *error_text,
                      uint32_t error_bytes)
{
    struct moody *self = calloc(1, sizeof *self);
    struct session *sessions = calloc(session_count, sizeof *sessions);
    if (self == NULL || sessions == NULL ||
        sscanf(config, "%15[a-z],%u,%63s", self->mode, &self->tick, self->scenario) < 1) {
        snprintf(error_text, error_bytes, "config \"%s\"", config);
        free(self);
        free(sessions);
        return 1;
    }
    if (strcmp(self->mode, "chatty") == 0) {
        printf("opened with %s\n", config);
        fflush(stdout);
    }
    self->session_count = session_count;
    self->sessions = sessions;
    *planner = self;
    return 0;
}

static void moody_close(void *planner)
{
    struct moody *self = planner;
    free(self->sessions);
    free(self);
}

static int moody_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                       uint32_t error_bytes)
{
    struct moody *self = planner;
    struct session *session = &self->sessions[episode->session];
    int targeted = strcmp(self->scenario, episode->scenario_id) == 0;
    if (session->known) {
        snprintf(error_text, error_bytes, "session %u is in use", episode->session);
        return 1;
    }
    if (targeted && strcmp(self->mode, "noreset") == 0) {
        snprintf(error_text, error_bytes, "this episode is not to my taste");
        return 1;
    }
    *session = (struct session){1, targeted, 0, (double)(episode->seed % 97)};
    return 0;
}

static double seen(const struct swerve_observation *observation)
{
    uint32_t sum = 0;
    if (observation->bev == NULL) {
        return 0.0;
    }
    for (uint32_t i = 0; i < BEV_BYTES; i += 61) {
        sum = sum * 31 + observation->bev[i];
    }
    return (double)(sum % 1024);
}

static int misbehaves(const struct moody *self, const struct session *session,
                      const struct swerve_observation *observation, const char *mode)
{
    char slow[24];
    snprintf(slow, sizeof slow, "%sslow", mode);
    return session->targeted &&
           ((strcmp(self->mode, mode) == 0 && observation->tick == self->tick) ||
            (strcmp(self->mode, slow) == 0 && observation->speed_mps < self->tick));
}

static int moody_act(void *planner, uint32_t count, const struct swerve_observation *observations,
                     struct swerve_action *actions, uint8_t *failed, char *error_text,
                     uint32_t error_bytes)
{
    struct moody *self = planner;
    for (uint32_t i = 0; i < count; i++) {
        const struct swerve_observation *o = &observations[i];
        struct session *session = &self->sessions[o->session];
        if (!session->known || session->ticks != o->tick) {
            /* A rollout that was not reset or forked, or whose past is another's. */
            failed[i] = 1;
            continue;
        }
        session->ticks++;
        session->memory = 0.75 * session->memory + 0.01 * seen(o) + o->speed_mps;
        actions[i] =
            (struct swerve_action){fmod(session->memory, 3.0) - 1.4,
                                   0.004 * o->route[3].y_m + 0.001 * fmod(session->memory, 1.0)};
        if (strcmp(self->mode, "echo") == 0) {
            actions[i] = (struct swerve_action){0.01 * o->tick, 0.0};
        } else if (strcmp(self->mode, "age") == 0) {
            actions[i] = (struct swerve_action){(double)(o->time_ns - o->bev_time_ns) * 1e-9, 0.0};
        }
        if (misbehaves(self, session, o, "nan")) {
            actions[i].accel_mps2 = (double)NAN;
        }
        if (misbehaves(self, session, o, "crash")) {
            raise(SIGSEGV);
        }
        if (misbehaves(self, session, o, "trap")) {
            __builtin_trap();
        }
        if (misbehaves(self, session, o, "twin")) {
            self->mode[0] = '\0'; /* or the copy would make more of them */
            failed[i] = fork() < 0 ? 1 : 0;
        }
        if (misbehaves(self, session, o, "chatty")) {
            printf("{\"planner\": \"tick %u\"}\n", o->tick);
            fflush(stdout);
        }
        if (misbehaves(self, session, o, "quit")) {
            exit(0);
        }
        while (misbehaves(self, session, o, "hang")) {
            pause();
        }
        if (misbehaves(self, session, o, "die")) {
            snprintf(error_text, error_bytes, "out of sorts");
            return 1;
        }
    }
    return 0;
}

static int moody_fork(void *planner, uint32_t from, uint32_t to, char *error_text,
                      uint32_t error_bytes)
{
    struct moody *self = planner;
    if (strcmp(self->mode, "nofork") == 0 || !self->sessions[from].known ||
        self->sessions[to].known) {
        snprintf(error_text, error_bytes, "cannot fork %u to %u", from, to);
        return 1;
    }
    self->sessions[to] = self->sessions[from];
    return 0;
}

static void moody_end(void *planner, uint32_t session)
{
    ((struct moody *)planner)->sessions[session].known = 0;
}

static const struct swerve_planner_ops moody_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .wants = SWERVE_WANTS_BEV,
    .name = "moody",
    .open = moody_open,
    .close = moody_close,
    .reset = moody_reset,
    .act = moody_act,
    .fork = moody_fork,
    .end = moody_end,
};

const struct swerve_planner_ops *swerve_planner_entry(void)
{
    return &moody_ops;
}
