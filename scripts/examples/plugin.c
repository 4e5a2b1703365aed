/*
 * A Swerve planner as a shared object: keeps the lane at the posted speed. It needs nothing but
 * schemas/planner.h.
 *
 *   cc -shared -fPIC -O2 -Ischemas -o plugin.so scripts/examples/plugin.c -lm
 *   swerve run SUITE --planner 'plugin:plugin.so?0.9'      # config: share of the speed limit
 */
#include "planner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct session {
    double wheelbase_m;
};

struct example {
    double share; /* of the speed limit */
    struct session sessions[];
};

static int example_open(void **planner, const char *config, uint32_t session_count,
                        char *error_text, uint32_t error_bytes)
{
    double share = config[0] != '\0' ? atof(config) : 1.0;
    if (!(share > 0.0 && share <= 2.0)) {
        snprintf(error_text, error_bytes, "expected a share of the speed limit, found \"%s\"",
                 config);
        return 1;
    }
    struct example *self = calloc(1, sizeof *self + session_count * sizeof self->sessions[0]);
    if (self == NULL) {
        snprintf(error_text, error_bytes, "out of memory");
        return 1;
    }
    self->share = share;
    *planner = self;
    return 0;
}

static int example_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                         uint32_t error_bytes)
{
    (void)error_text;
    (void)error_bytes;
    struct example *self = planner;
    self->sessions[episode->session].wheelbase_m = episode->ego_wheelbase_m;
    return 0;
}

static struct swerve_action drive(const struct example *self, const struct swerve_observation *seen)
{
    double wheelbase_m = self->sessions[seen->session].wheelbase_m;
    const struct swerve_route_point *target = &seen->route[seen->route_count > 3 ? 3 : 0];
    double ahead_m = target->x_m + wheelbase_m / 2;
    double left_m = target->y_m;
    double limit_mps = seen->route[0].speed_limit_mps > 0 ? seen->route[0].speed_limit_mps : 13.9;
    double accel = self->share * limit_mps - seen->speed_mps;
    return (struct swerve_action){
        .accel_mps2 = accel > 1.5    ? 1.5
                      : accel < -3.0 ? -3.0
                                     : accel,
        .steer_rad = atan(2 * wheelbase_m * left_m / (ahead_m * ahead_m + left_m * left_m)),
    };
}

static int example_act(void *planner, uint32_t count, const struct swerve_observation *observations,
                       struct swerve_action *actions, uint8_t *failed, char *error_text,
                       uint32_t error_bytes)
{
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        failed[i] = observations[i].route_count == 0;
        if (!failed[i]) {
            actions[i] = drive(planner, &observations[i]);
        }
    }
    return 0;
}

/* The target session was never reset: it takes over what the source knows. */
static int example_fork(void *planner, uint32_t from, uint32_t to, char *error_text,
                        uint32_t error_bytes)
{
    (void)error_text;
    (void)error_bytes;
    struct example *self = planner;
    self->sessions[to] = self->sessions[from];
    return 0;
}

const struct swerve_planner_ops *swerve_planner_entry(void);

const struct swerve_planner_ops *swerve_planner_entry(void)
{
    static const struct swerve_planner_ops ops = {
        .abi_version = SWERVE_PLANNER_ABI_VERSION,
        .wants = 0,
        .name = "example",
        .open = example_open,
        .close = free,
        .reset = example_reset,
        .act = example_act,
        .fork = example_fork,
    };
    return &ops;
}
