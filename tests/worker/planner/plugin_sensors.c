/*
 * A planner of version 4 whose choice of sensors is its config, and whose actions are those of the
 * law in eyes.h.
 */
#include "tests/worker/planner/eyes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct swerve_planner_ops *swerve_planner_entry(void);

static int open_rig(void **planner, const struct swerve_offer *offer, char *error_text,
                    uint32_t error_bytes)
{
    if (strstr(offer->rig, "\"cameras\"") == NULL ||
        snprintf(offer->choice, offer->choice_bytes, "%s", offer->config) < 1) {
        snprintf(error_text, error_bytes, "expected a rig and a config");
        return 1;
    }
    *planner = malloc(1);
    return 0;
}

static int reset(void *planner, const struct swerve_episode *episode, char *error_text,
                 uint32_t error_bytes)
{
    (void)planner;
    (void)episode;
    (void)error_text;
    (void)error_bytes;
    return 0;
}

static int drive(void *planner, uint32_t count, const struct swerve_observation *observations,
                 const struct swerve_surroundings *surroundings,
                 const struct swerve_sensors *sensors, struct swerve_answer *answers,
                 uint8_t *failed, char *error_text, uint32_t error_bytes)
{
    (void)planner;
    (void)observations;
    (void)surroundings;
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        answers[i].action = eyes_law(&sensors[i]);
        failed[i] = 0;
    }
    return 0;
}

const struct swerve_planner_ops *swerve_planner_entry(void)
{
    static const struct swerve_planner_ops ops = {
        .abi_version = SWERVE_PLANNER_ABI_VERSION,
        .name = "sensors",
        .close = free,
        .reset = reset,
        .open_rig = open_rig,
        .drive = drive,
    };
    return &ops;
}
