/*
 * Example of a world as a plugin: what the sensors would see, with returns that come and go.
 *
 *     cc -O2 -fPIC -shared -I schemas -o my_world.so scripts/world/plugin.c
 *     swerve world check plugin:./my_world.so
 *     swerve run smoke --world plugin:./my_world.so
 *
 * Each frame is the conditioning raster, with one in sixteen of its returns lost. Which ones
 * follows from a number that the state carries from tick to tick, so that a frame depends on the
 * rollout's whole past, as that of a recurrent network does.
 */
#include "world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OCCUPANCY_BYTES = 192 * 96,
    BEV_BYTES = 4 * OCCUPANCY_BYTES,
    CAMERAS_BYTES = 3 * 64 * 96 * 3
};

struct example {
    uint8_t *memory;
    uint64_t *past; /* [state_count]: all that a state remembers */
};

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static int example_open(void **world, const struct swerve_world_setup *setup,
                        struct swerve_world_declared *declared, char *error_text,
                        uint32_t error_bytes)
{
    struct example *self = calloc(1, sizeof *self);
    uint64_t *past = calloc(setup->state_count, sizeof *past);
    if (self == NULL || past == NULL) {
        free(self);
        free(past);
        snprintf(error_text, error_bytes, "no memory for %u states", setup->state_count);
        return 1;
    }
    self->memory = setup->memory;
    self->past = past;
    *declared = (struct swerve_world_declared){
        .name = "example",
        .version = "1.0",
        .form = SWERVE_WORLD_FORM_EGO,
        .flags = SWERVE_WORLD_DETERMINISTIC | SWERVE_WORLD_BEV | SWERVE_WORLD_CAMERAS |
                 SWERVE_WORLD_READS_RASTER,
        .bev_bytes = BEV_BYTES,
        .cameras_bytes = CAMERAS_BYTES,
        .horizon_ticks = 600,
        .tick_s = 0.1,
    };
    *world = self;
    return 0;
}

static void example_close(void *world)
{
    struct example *self = world;
    free(self->past);
    free(self);
}

static int example_reset(void *world, const struct swerve_world_given *given, char *error_text,
                         uint32_t error_bytes)
{
    struct example *self = world;
    (void)error_text;
    (void)error_bytes;
    self->past[given->state] = mix(given->seed);
    return 0;
}

static int example_step(void *world, uint32_t count, const struct swerve_world_given *given,
                        struct swerve_world_made *made, char *error_text, uint32_t error_bytes)
{
    struct example *self = world;
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *frame = self->memory + given[i].frame_bev;
        uint64_t past = mix(self->past[given[i].state]);
        self->past[given[i].state] = past;
        memcpy(frame, self->memory + given[i].raster_bev, BEV_BYTES);
        memcpy(self->memory + given[i].frame_cameras, self->memory + given[i].raster_cameras,
               CAMERAS_BYTES);
        for (uint32_t cell = 0; cell < OCCUPANCY_BYTES; cell++) {
            if (frame[cell] != 0 && mix(past + cell) % 16 == 0) {
                frame[cell] = 0;
            }
        }
        made[i].result = SWERVE_WORLD_OK;
    }
    return 0;
}

static int example_fork(void *world, uint32_t from, uint32_t to, char *error_text,
                        uint32_t error_bytes)
{
    struct example *self = world;
    (void)error_text;
    (void)error_bytes;
    self->past[to] = self->past[from];
    return 0;
}

static void example_drop(void *world, uint32_t state)
{
    struct example *self = world;
    self->past[state] = 0;
}

const struct swerve_world_ops *swerve_world_entry(void);
const struct swerve_world_ops *swerve_world_entry(void)
{
    static const struct swerve_world_ops ops = {
        .abi_version = SWERVE_WORLD_ABI_VERSION,
        .open = example_open,
        .close = example_close,
        .reset = example_reset,
        .step = example_step,
        .fork = example_fork,
        .drop = example_drop,
    };
    return &ops;
}
