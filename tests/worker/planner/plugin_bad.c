/*
 * A plugin that is wrong in the way its compile-time macro says; used by test_planner.c.
 */
#include "schemas/planner.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int bad_open(void **planner, const char *config, uint32_t session_count, char *error_text,
                    uint32_t error_bytes)
{
    (void)session_count;
    if (strcmp(config, "fail") == 0) {
        snprintf(error_text, error_bytes, "the weights are missing");
        return 1;
    }
    while (strcmp(config, "hang") == 0) {
        pause();
    }
    if (strcmp(config, "trap") == 0) {
        raise(SIGTRAP); /* the address sanitizer leaves this one alone */
    }
    *planner = malloc(1);
    return 0;
}

static int bad_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                     uint32_t error_bytes)
{
    (void)planner;
    if (episode->session == 1) {
        /* Not terminated on purpose: the host must cope. */
        memset(error_text, 'e', error_bytes);
        return 1;
    }
    return 0;
}

/* Answers session 0 only; a tick of 99 fails the whole batch. */
static int bad_act(void *planner, uint32_t count, const struct swerve_observation *observations,
                   struct swerve_action *actions, uint8_t *failed, char *error_text,
                   uint32_t error_bytes)
{
    (void)planner;
    (void)failed;
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        if (observations[i].tick == 99) {
            return 1;
        }
        if (observations[i].session == 0) {
            actions[i].accel_mps2 = 1.0;
            actions[i].steer_rad = 0.0;
        }
    }
    return 0;
}

#ifndef PLUGIN_NO_ENTRY
const struct swerve_planner_ops *swerve_planner_entry(void);

const struct swerve_planner_ops *swerve_planner_entry(void)
{
    static const struct swerve_planner_ops ops = {
#ifdef PLUGIN_WRONG_ABI
        .abi_version = SWERVE_PLANNER_ABI_VERSION + 1,
#else
        .abi_version = SWERVE_PLANNER_ABI_VERSION,
#endif
        .name = "bad",
        .open = bad_open,
        .close = free,
        .reset = bad_reset,
#ifndef PLUGIN_NO_ACT
        .act = bad_act,
#endif
    };
    (void)bad_act;
    return &ops;
}
#else
int unused_plugin(void);
int unused_plugin(void)
{
    return bad_open(NULL, "fail", 0, NULL, 0) + bad_reset(NULL, NULL, NULL, 0) +
           bad_act(NULL, 0, NULL, NULL, NULL, NULL, 0);
}
#endif
