/*
 * A plugin of version 1 of the ABI: its table ends where that version's did, and what lies behind
 * it is nothing to call. It sets a bit of `wants` that meant nothing then.
 */
#include "schemas/planner.h"

#include <stdio.h>
#include <stdlib.h>

/* As schemas/planner.h had it. */
struct old_ops {
    uint32_t abi_version;
    uint32_t wants;
    const char *name;
    int (*open)(void **planner, const char *config, uint32_t session_count, char *error_text,
                uint32_t error_bytes);
    void (*close)(void *planner);
    int (*reset)(void *planner, const struct swerve_episode *episode, char *error_text,
                 uint32_t error_bytes);
    int (*act)(void *planner, uint32_t count, const struct swerve_observation *observations,
               struct swerve_action *actions, uint8_t *failed, char *error_text,
               uint32_t error_bytes);
    int (*fork)(void *planner, uint32_t from, uint32_t to, char *error_text, uint32_t error_bytes);
    void (*end)(void *planner, uint32_t session);
};

static int old_open(void **planner, const char *config, uint32_t session_count, char *error_text,
                    uint32_t error_bytes)
{
    (void)config, (void)session_count, (void)error_text, (void)error_bytes;
    *planner = malloc(1);
    return 0;
}

static int old_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                     uint32_t error_bytes)
{
    (void)planner, (void)episode, (void)error_text, (void)error_bytes;
    return 0;
}

static int old_act(void *planner, uint32_t count, const struct swerve_observation *observations,
                   struct swerve_action *actions, uint8_t *failed, char *error_text,
                   uint32_t error_bytes)
{
    (void)planner, (void)failed, (void)error_text, (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        actions[i] = (struct swerve_action){0.25 * observations[i].session, 0.125};
    }
    return 0;
}

const struct swerve_planner_ops *swerve_planner_entry(void);

const struct swerve_planner_ops *swerve_planner_entry(void)
{
    static const struct {
        struct old_ops ops;
        void *behind[4];
    } table = {
        {.abi_version = 1,
         .wants = 7,
         .name = "old",
         .open = old_open,
         .close = free,
         .reset = old_reset,
         .act = old_act},
        {(void *)8, (void *)8, (void *)8, (void *)8},
    };
    return (const struct swerve_planner_ops *)(const void *)&table.ops;
}
