/*
 * The planner of test_planner_device.c: drives by sums over the grid and the images, wherever they
 * lie, so that its actions are those of another instance only if every look showed the same bytes.
 * PLUGIN_WANTS at compile time is what it asks for beside both sensors. On a device it reads by a
 * plain copy: the emulator's device memory is memory of the process.
 *
 * Config "TICK": act fails as a whole at that tick; "": never.
 */
#include "schemas/planner.h"

#include "schemas/observation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the latest instance; the test looks at it. */
struct device_plugin_seen {
    struct swerve_place place; /* device -2: opened without one */
    char backend[64];
    uint64_t queries;
    const uint8_t *low, *high; /* where pictures lay */
};
extern struct device_plugin_seen device_plugin_seen;
struct device_plugin_seen device_plugin_seen;

struct instance {
    uint32_t failing_tick;
    uint8_t picture[BEV_BYTES];
    double memory[]; /* of sessions */
};

static int own_open(void **planner, const char *config, uint32_t session_count, char *error_text,
                    uint32_t error_bytes)
{
    struct instance *self = calloc(1, sizeof *self + session_count * sizeof self->memory[0]);
    if (self == NULL) {
        snprintf(error_text, error_bytes, "out of memory");
        return 1;
    }
    self->failing_tick = config[0] != '\0' ? (uint32_t)atoi(config) : UINT32_MAX;
    memset(&device_plugin_seen, 0, sizeof device_plugin_seen);
    device_plugin_seen.place.device = -2;
    *planner = self;
    return 0;
}

#if PLUGIN_WANTS != 0
static int own_open_on(void **planner, const struct swerve_place *place, const char *config,
                       uint32_t session_count, char *error_text, uint32_t error_bytes)
{
    int failed = own_open(planner, config, session_count, error_text, error_bytes);
    device_plugin_seen.place = *place;
    snprintf(device_plugin_seen.backend, sizeof device_plugin_seen.backend, "%s", place->backend);
    return failed;
}
#endif

static int own_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                     uint32_t error_bytes)
{
    (void)error_text, (void)error_bytes;
    ((struct instance *)planner)->memory[episode->session] = (double)(episode->seed % 7);
    return 0;
}

static uint32_t sum_of(struct instance *self, const uint8_t *picture, size_t bytes, uint32_t sum)
{
    struct device_plugin_seen *seen = &device_plugin_seen;
    memcpy(self->picture, picture, bytes); /* elsewhere a copy from the device */
    for (size_t i = 0; i < bytes; i++) {
        sum = sum * 31 + self->picture[i];
    }
    seen->low = seen->low == NULL || picture < seen->low ? picture : seen->low;
    seen->high = picture + bytes > seen->high ? picture + bytes : seen->high;
    return sum;
}

static int own_act(void *planner, uint32_t count, const struct swerve_observation *observations,
                   struct swerve_action *actions, uint8_t *failed, char *error_text,
                   uint32_t error_bytes)
{
    struct instance *self = planner;
    for (uint32_t i = 0; i < count; i++) {
        const struct swerve_observation *o = &observations[i];
        double *memory = &self->memory[o->session];
        uint32_t sum = sum_of(self, o->bev, BEV_BYTES, 0);
        if (o->tick == self->failing_tick) {
            snprintf(error_text, error_bytes, "tired of it");
            return 1;
        }
        for (int camera = 0; camera < CAMERA_COUNT; camera++) {
            failed[i] |= o->camera[camera] == NULL;
            sum = sum_of(self, o->camera[camera], CAMERA_BYTES, sum);
        }
        *memory = 0.5 * *memory + (double)(sum % 1024) / 256.0 +
                  1e-9 * (double)(o->time_ns - o->bev_time_ns);
        actions[i] = (struct swerve_action){fmod(*memory, 2.0) - 1.0, 0.0};
        device_plugin_seen.queries++;
    }
    return 0;
}

static int own_fork(void *planner, uint32_t from, uint32_t to, char *error_text,
                    uint32_t error_bytes)
{
    (void)error_text, (void)error_bytes;
    struct instance *self = planner;
    self->memory[to] = self->memory[from];
    return 0;
}

const struct swerve_planner_ops *swerve_planner_entry(void);

const struct swerve_planner_ops *swerve_planner_entry(void)
{
    static const struct swerve_planner_ops ops = {
        .abi_version = SWERVE_PLANNER_ABI_VERSION,
        .wants = SWERVE_WANTS_BEV | SWERVE_WANTS_CAMERAS | PLUGIN_WANTS,
        .name = "device",
        .close = free,
        .reset = own_reset,
        .act = own_act,
        .fork = own_fork,
#if PLUGIN_WANTS == 0 || defined PLUGIN_NO_OPEN_ON
        .open = own_open,
#endif
#if PLUGIN_WANTS != 0 && !defined PLUGIN_NO_OPEN_ON
        .open_on = own_open_on,
#endif
    };
#ifdef PLUGIN_NO_OPEN_ON
    (void)own_open_on;
#endif
    return &ops;
}
