/*
 * World of the form RIG for tests: pictures of the built-in rig in chunks of three frames at 10 Hz,
 * the first of two. What a picture shows follows from all poses and bodies of the rollout so far.
 * Config "N": it keeps N states at the most, and says so where it is asked for more.
 */
#include "tests/engine/world_rig_double.h"

#include "base/sha256.h"
#include "schemas/observation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HZ = 10, CHUNK = 3, FIRST = 2 };

struct rig_double {
    uint8_t *memory;
    uint32_t state_count;
    uint8_t (*past)[SHA256_BYTES]; /* [state_count] */
};

static int rig_open(void **world, const struct swerve_world_setup *setup,
                    struct swerve_world_declared *declared, char *error_text, uint32_t error_bytes)
{
    const uint32_t most = (uint32_t)strtoul(setup->config, NULL, 10);
    struct rig_double *self = calloc(1, sizeof *self);
    if (setup->rig != NULL && most > 0 && setup->state_count > most) {
        snprintf(error_text, error_bytes, "asked for %u states", setup->state_count);
        free(self);
        return 1;
    }
    if (self != NULL) {
        self->past = calloc(setup->state_count, sizeof *self->past);
    }
    if (self == NULL || self->past == NULL) {
        snprintf(error_text, error_bytes, "no memory");
        free(self);
        return 1;
    }
    self->memory = setup->memory;
    self->state_count = setup->state_count;
    *declared = (struct swerve_world_declared){
        .name = "rig-double",
        .version = "1",
        .form = SWERVE_WORLD_FORM_RIG,
        .flags = SWERVE_WORLD_DETERMINISTIC | SWERVE_WORLD_CAMERAS,
        .horizon_ticks = 600,
        .tick_s = 0.1,
        .rate_hz = HZ,
        .chunk_frames = CHUNK,
        .first_frames = FIRST,
        .states_max = most,
    };
    *world = self;
    return 0;
}

static void rig_close(void *world)
{
    struct rig_double *self = world;
    free(self->past);
    free(self);
}

/* Adds a frame's inputs to what the state remembers. */
static void remember(struct rig_double *self, const struct swerve_world_chunk *chunk,
                     uint32_t frame)
{
    const size_t bytes = chunk->body_count * sizeof(struct swerve_world_body);
    uint8_t *past = self->past[chunk->state];
    struct sha256 hash;
    sha256_init(&hash);
    sha256_update(&hash, past, SHA256_BYTES);
    sha256_update(&hash, &chunk->seed, sizeof chunk->seed);
    sha256_update(&hash, &chunk->poses[frame], sizeof chunk->poses[frame]);
    sha256_update(&hash, self->memory + chunk->bodies + frame * bytes, bytes);
    sha256_final(&hash, past);
}

static int rig_reset(void *world, const struct swerve_world_chunk *first, char *error_text,
                     uint32_t error_bytes)
{
    struct rig_double *self = world;
    (void)error_text;
    (void)error_bytes;
    memcpy(self->past[first->state], self->memory + first->frames[0], SHA256_BYTES);
    remember(self, first, 0);
    return 0;
}

/* Stripes, and the past in the first pixels. */
static void draw(const uint8_t past[SHA256_BYTES], uint32_t camera, uint8_t *out)
{
    for (uint32_t i = 0; i < CAMERA_BYTES; i++) {
        out[i] = (uint8_t)(40 + 15 * ((i / 3 + past[camera]) % 11));
    }
    memcpy(out, past, SHA256_BYTES);
}

static int rig_step(void *world, uint32_t count, const struct swerve_world_chunk *chunks,
                    struct swerve_world_made *made, char *error_text, uint32_t error_bytes)
{
    struct rig_double *self = world;
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t frame = 0; frame < chunks[i].frame_count; frame++) {
            remember(self, &chunks[i], frame);
            for (uint32_t c = 0; c < chunks[i].camera_count; c++) {
                draw(self->past[chunks[i].state], c,
                     self->memory + chunks[i].frames[c] + (size_t)frame * CAMERA_BYTES);
            }
        }
        made[i].result = SWERVE_WORLD_OK;
    }
    return 0;
}

static int rig_fork(void *world, uint32_t from, uint32_t to, char *error_text, uint32_t error_bytes)
{
    struct rig_double *self = world;
    (void)error_text;
    (void)error_bytes;
    memcpy(self->past[to], self->past[from], SHA256_BYTES);
    return 0;
}

static void rig_drop(void *world, uint32_t state)
{
    struct rig_double *self = world;
    memset(self->past[state], 0xEE, SHA256_BYTES);
}

const struct swerve_world_ops world_rig_double_ops = {
    .abi_version = SWERVE_WORLD_ABI_VERSION,
    .open = rig_open,
    .close = rig_close,
    .fork = rig_fork,
    .drop = rig_drop,
    .reset_rig = rig_reset,
    .step_rig = rig_step,
};
