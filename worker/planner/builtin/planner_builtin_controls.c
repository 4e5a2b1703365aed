/*
 * builtin:pid and builtin:zero: the baselines of comma.ai's controls challenge, for logs that the
 * tinyphysics world drives (docs/controls.md). Their answer is the challenge's steering command in
 * place of a front-wheel angle; the simulator clips it to -2 .. 2, and so do they, because no
 * planner may answer more.
 *
 * The PID is controllers/pid.py of the challenge (commit be8edfa), in its order of operations.
 */
#include "worker/planner/builtin/planner_builtin.h"

#include "base/dmath.h"
#include "schemas/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICKS_MAX = CONTROLS_COST_END - CONTROLS_CONTEXT };

#define GAIN 0.195
#define GAIN_SUM 0.100
#define GAIN_CHANGE -0.053
#define STEER_MAX 2.0

struct pid_session {
    double error_sum, last_error;
    uint32_t count;
    double target_mps2[TICKS_MAX]; /* by tick */
};

struct pid {
    struct planner_builtin base;
    struct pid_session sessions[];
};

static int pid_open(void **planner, const char *config, uint32_t session_count, char *error_text,
                    uint32_t error_bytes)
{
    if (planner_config_read(config, NULL, 0, error_text, error_bytes) != 0) {
        return 1;
    }
    *planner = planner_builtin_create(sizeof(struct pid), sizeof(struct pid_session), session_count,
                                      error_text, error_bytes);
    return *planner == NULL;
}

static int pid_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                     uint32_t error_bytes)
{
    struct pid *self = planner;
    struct pid_session *session = &self->sessions[episode->session];
    if (episode->controls_count == 0) {
        snprintf(error_text, error_bytes,
                 "it steers logs of the controls challenge (--world tinyphysics), this scenario "
                 "has none");
        return 1;
    }
    memset(session, 0, sizeof *session);
    session->count = episode->controls_count < TICKS_MAX ? episode->controls_count : TICKS_MAX;
    for (uint32_t i = 0; i < session->count; i++) {
        session->target_mps2[i] = episode->controls[i].target_mps2;
    }
    return 0;
}

static double pid_update(struct pid_session *session, double target_mps2, double lataccel_mps2)
{
    const double error = target_mps2 - lataccel_mps2;
    const double change = error - session->last_error;
    session->error_sum += error;
    session->last_error = error;
    return GAIN * error + GAIN_SUM * session->error_sum + GAIN_CHANGE * change;
}

static int pid_plan(void *planner, uint32_t count, const struct swerve_observation *observations,
                    const struct swerve_surroundings *surroundings, struct swerve_answer *answers,
                    uint8_t *failed, char *error_text, uint32_t error_bytes)
{
    struct pid *self = planner;
    (void)surroundings;
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        const struct swerve_observation *seen = &observations[i];
        struct pid_session *session = &self->sessions[seen->session];
        failed[i] = seen->tick >= session->count;
        if (!failed[i]) {
            const double steer =
                pid_update(session, session->target_mps2[seen->tick], seen->lat_accel_mps2);
            answers[i].action =
                (struct swerve_action){0.0, dmath_clamp(steer, -STEER_MAX, STEER_MAX)};
        }
    }
    return 0;
}

static int zero_act(void *planner, uint32_t count, const struct swerve_observation *observations,
                    struct swerve_action *actions, uint8_t *failed, char *error_text,
                    uint32_t error_bytes)
{
    (void)planner;
    (void)observations;
    (void)failed;
    (void)error_text;
    (void)error_bytes;
    memset(actions, 0, count * sizeof *actions);
    return 0;
}

static int zero_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                      uint32_t error_bytes)
{
    (void)planner;
    (void)episode;
    (void)error_text;
    (void)error_bytes;
    return 0;
}

const struct swerve_planner_ops planner_builtin_pid_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .wants = SWERVE_WANTS_CONTROLS,
    .name = "pid",
    .open = pid_open,
    .close = free,
    .reset = pid_reset,
    .plan = pid_plan,
    .fork = planner_builtin_fork,
};

const struct swerve_planner_ops planner_builtin_zero_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .name = "zero",
    .open = pid_open,
    .close = free,
    .reset = zero_reset,
    .act = zero_act,
};
