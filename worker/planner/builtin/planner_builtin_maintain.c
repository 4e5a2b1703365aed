/*
 * builtin:maintain keeps the speed that ego had at its first tick; builtin:brake slows at a
 * constant comfortable rate until it stands. Both keep the lane. They are the two baselines that
 * every planner is compared with: did it do better than doing nothing, and than just stopping?
 */
#include "worker/planner/builtin/planner_builtin.h"

#include "base/dmath.h"

#include <stdlib.h>

struct maintain_session {
    double wheelbase_m;
    double speed_mps; /* < 0: not known before the first tick */
};

struct maintain {
    struct planner_builtin base;
    double decel_mps2; /* brake only */
    struct maintain_session sessions[];
};

static int open_with(void **planner, const char *config, uint32_t session_count,
                     const struct planner_parameter *parameter, double *value, char *error_text,
                     uint32_t error_bytes)
{
    if (planner_config_read(config, parameter, parameter != NULL ? 1 : 0, error_text,
                            error_bytes) != 0) {
        return 1;
    }
    struct maintain *self = planner_builtin_create(sizeof *self, sizeof self->sessions[0],
                                                   session_count, error_text, error_bytes);
    if (self == NULL) {
        return 1;
    }
    self->decel_mps2 = *value;
    *planner = self;
    return 0;
}

static int maintain_open(void **planner, const char *config, uint32_t session_count,
                         char *error_text, uint32_t error_bytes)
{
    double unused = 0.0;
    return open_with(planner, config, session_count, NULL, &unused, error_text, error_bytes);
}

static int brake_open(void **planner, const char *config, uint32_t session_count, char *error_text,
                      uint32_t error_bytes)
{
    double decel_mps2 = 4.0;
    const struct planner_parameter parameter = {"decel_mps2", 0.1, 12.0, &decel_mps2};
    return open_with(planner, config, session_count, &parameter, &decel_mps2, error_text,
                     error_bytes);
}

static int maintain_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                          uint32_t error_bytes)
{
    (void)error_text;
    (void)error_bytes;
    struct maintain *self = planner;
    self->sessions[episode->session] = (struct maintain_session){episode->ego_wheelbase_m, -1.0};
    return 0;
}

static int maintain_act(void *planner, uint32_t count,
                        const struct swerve_observation *observations,
                        struct swerve_action *actions, uint8_t *failed, char *error_text,
                        uint32_t error_bytes)
{
    (void)failed;
    (void)error_text;
    (void)error_bytes;
    struct maintain *self = planner;
    for (uint32_t i = 0; i < count; i++) {
        const struct swerve_observation *seen = &observations[i];
        struct maintain_session *session = &self->sessions[seen->session];
        if (session->speed_mps < 0.0) {
            session->speed_mps = seen->speed_mps;
        }
        actions[i].accel_mps2 =
            dmath_clamp(1.5 * (session->speed_mps - seen->speed_mps), -2.0, 2.0);
        actions[i].steer_rad = planner_keep_lane(seen, session->wheelbase_m, 0.0);
    }
    return 0;
}

static int brake_act(void *planner, uint32_t count, const struct swerve_observation *observations,
                     struct swerve_action *actions, uint8_t *failed, char *error_text,
                     uint32_t error_bytes)
{
    (void)failed;
    (void)error_text;
    (void)error_bytes;
    struct maintain *self = planner;
    for (uint32_t i = 0; i < count; i++) {
        const struct swerve_observation *seen = &observations[i];
        const struct maintain_session *session = &self->sessions[seen->session];
        actions[i].accel_mps2 = -self->decel_mps2;
        actions[i].steer_rad = planner_keep_lane(seen, session->wheelbase_m, 0.0);
    }
    return 0;
}

const struct swerve_planner_ops planner_builtin_maintain_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .name = "maintain",
    .open = maintain_open,
    .close = free,
    .reset = maintain_reset,
    .act = maintain_act,
    .fork = planner_builtin_fork,
};

const struct swerve_planner_ops planner_builtin_brake_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .name = "brake",
    .open = brake_open,
    .close = free,
    .reset = maintain_reset,
    .act = brake_act,
    .fork = planner_builtin_fork,
};
