/*
 * Worlds as ONNX files. See world_onnx.h.
 */
#include "worker/world/world_onnx.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory of a state: its model's own tensors, then the last grid. */
struct block {
    uint32_t references;
    float values[];
};

struct onnx_world {
    const struct world_onnx_host *host;
    struct ort_session *session;
    uint8_t *memory;
    uint32_t state_count;
    struct block **states;                      /* NULL: free */
    float *bev, *cameras, *motion, *conditions; /* inputs of a run */
    float *made_cameras;
};

static int report(const char *sentence, char *error_text, uint32_t error_bytes)
{
    snprintf(error_text, error_bytes, "%s", sentence);
    return 1;
}

static size_t bev_count(const struct onnx_world *self)
{
    return self->host->manifest->outputs[WORLD_ONNX_BEV].count;
}

static size_t cameras_count(const struct onnx_world *self)
{
    return self->host->manifest->outputs[WORLD_ONNX_CAMERAS].count;
}

static size_t own_count(const struct onnx_world *self)
{
    size_t count = 0;
    for (uint32_t i = 0; i < self->host->manifest->state_count; i++) {
        count += self->host->manifest->state_in[i].count;
    }
    return count;
}

static struct block *new_block(const struct onnx_world *self)
{
    struct block *block =
        calloc(1, sizeof *block + (own_count(self) + bev_count(self)) * sizeof(float));
    if (block != NULL) {
        block->references = 1;
    }
    return block;
}

static void leave(struct block *block)
{
    if (block != NULL && --block->references == 0) {
        free(block);
    }
}

/* ---- open and close ---- */

static void onnx_close(void *world)
{
    struct onnx_world *self = world;
    for (uint32_t i = 0; self->states != NULL && i < self->state_count; i++) {
        leave(self->states[i]);
    }
    ort_session_close(self->session);
    free(self->states);
    free(self->bev);
    free(self->cameras);
    free(self->motion);
    free(self->conditions);
    free(self->made_cameras);
    free(self);
}

static bool allocate(struct onnx_world *self)
{
    const struct world_onnx_manifest *manifest = self->host->manifest;
    self->states = calloc(self->state_count, sizeof *self->states);
    self->bev = calloc(bev_count(self), sizeof(float));
    self->cameras = calloc(cameras_count(self), sizeof(float));
    self->made_cameras = calloc(cameras_count(self), sizeof(float));
    self->motion = calloc(manifest->inputs[WORLD_ONNX_MOTION].count, sizeof(float));
    self->conditions = calloc(manifest->inputs[WORLD_ONNX_CONDITIONS].count, sizeof(float));
    return self->states != NULL && self->bev != NULL && self->cameras != NULL &&
           self->made_cameras != NULL && self->motion != NULL && self->conditions != NULL;
}

static int onnx_open(void **world, const struct swerve_world_setup *setup,
                     struct swerve_world_declared *declared, char *error_text, uint32_t error_bytes)
{
    struct onnx_world *self = calloc(1, sizeof *self);
    struct error error;
    if (self == NULL) {
        return report("out of memory", error_text, error_bytes);
    }
    self->host = setup->host;
    self->memory = setup->memory;
    self->state_count = setup->state_count;
    enum status status = STATUS_OK;
    if (!allocate(self)) {
        status = error_set(&error, STATUS_NO_MEMORY, "out of memory");
    } else {
        status = ort_session_open(self->host->ort, self->host->model, setup->thread_count,
                                  &self->session, &error);
    }
    if (status != STATUS_OK) {
        onnx_close(self);
        return report(error.text, error_text, error_bytes);
    }
    *declared = self->host->manifest->declared;
    *world = self;
    return 0;
}

/* ---- a tick ---- */

static void to_floats(const uint8_t *bytes, size_t count, float *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)bytes[i] / 255.0f;
    }
}

/* False: there is one that is not finite. */
static bool to_bytes(const float *values, size_t count, uint8_t *out)
{
    bool finite = true;
    for (size_t i = 0; i < count; i++) {
        float value = values[i];
        finite = finite && isfinite(value);
        value = value > 0.0f ? value < 1.0f ? value : 1.0f : 0.0f;
        out[i] = (uint8_t)(value * 255.0f + 0.5f);
    }
    return finite;
}

static int onnx_reset(void *world, const struct swerve_world_given *given, char *error_text,
                      uint32_t error_bytes)
{
    struct onnx_world *self = world;
    struct block *block = new_block(self);
    if (block == NULL) {
        return report("out of memory", error_text, error_bytes);
    }
    to_floats(self->memory + given->raster_bev, bev_count(self), block->values + own_count(self));
    leave(self->states[given->state]);
    self->states[given->state] = block;
    return 0;
}

static void give(struct onnx_world *self, const struct swerve_world_given *given)
{
    const float motion[] = {
        (float)given->speed_mps, (float)given->accel_mps2,        (float)given->yaw_rate_rps,
        (float)given->steer_rad, (float)given->action_accel_mps2, (float)given->action_steer_rad,
        (float)given->moved_x_m, (float)given->moved_y_m,         (float)given->turned_rad,
    };
    memcpy(self->motion, motion, sizeof motion);
    memcpy(self->conditions, given->conditions, sizeof given->conditions);
    if (given->raster_cameras != 0) { /* the world reads rasters */
        to_floats(self->memory + given->raster_bev, bev_count(self), self->bev);
        to_floats(self->memory + given->raster_cameras, cameras_count(self), self->cameras);
    }
}

/* Those tensors that the model has, with their data. */
static uint32_t list_inputs(struct onnx_world *self, struct block *past, struct ort_tensor *list)
{
    const struct world_onnx_manifest *manifest = self->host->manifest;
    float *const data[WORLD_ONNX_INPUTS] = {
        self->bev, self->cameras, past->values + own_count(self), self->motion, self->conditions};
    uint32_t count = 0;
    size_t at = 0;
    for (int i = 0; i < WORLD_ONNX_INPUTS; i++) {
        if (manifest->inputs[i].name[0] != '\0') {
            list[count] = manifest->inputs[i];
            list[count++].data = data[i];
        }
    }
    for (uint32_t i = 0; i < manifest->state_count; i++) {
        list[count] = manifest->state_in[i];
        list[count++].data = past->values + at;
        at += manifest->state_in[i].count;
    }
    return count;
}

static uint32_t list_outputs(struct onnx_world *self, struct block *next, struct ort_tensor *list)
{
    const struct world_onnx_manifest *manifest = self->host->manifest;
    float *const data[WORLD_ONNX_OUTPUTS] = {next->values + own_count(self), self->made_cameras};
    uint32_t count = 0;
    size_t at = 0;
    for (int i = 0; i < WORLD_ONNX_OUTPUTS; i++) {
        if (manifest->outputs[i].name[0] != '\0') {
            list[count] = manifest->outputs[i];
            list[count++].data = data[i];
        }
    }
    for (uint32_t i = 0; i < manifest->state_count; i++) {
        list[count] = manifest->state_out[i];
        list[count++].data = next->values + at;
        at += manifest->state_out[i].count;
    }
    return count;
}

static enum status step_one(struct onnx_world *self, const struct swerve_world_given *given,
                            struct swerve_world_made *made, struct error *error)
{
    const uint32_t flags = self->host->manifest->declared.flags;
    struct ort_tensor inputs[WORLD_ONNX_INPUTS + WORLD_ONNX_STATES_MAX];
    struct ort_tensor outputs[WORLD_ONNX_OUTPUTS + WORLD_ONNX_STATES_MAX];
    struct block *past = self->states[given->state];
    struct block *next = new_block(self);
    TRY(memory_check(next, error, "out of memory"));
    give(self, given);
    uint32_t input_count = list_inputs(self, past, inputs);
    uint32_t output_count = list_outputs(self, next, outputs);
    enum status status =
        ort_session_run(self->session, inputs, input_count, outputs, output_count, error);
    if (status != STATUS_OK) {
        leave(next);
        return status;
    }
    bool finite = true;
    if ((flags & SWERVE_WORLD_BEV) != 0) {
        finite = to_bytes(next->values + own_count(self), bev_count(self),
                          self->memory + given->frame_bev);
    }
    if ((flags & SWERVE_WORLD_CAMERAS) != 0) {
        finite = to_bytes(self->made_cameras, cameras_count(self),
                          self->memory + given->frame_cameras) &&
                 finite;
    }
    made->result = finite ? SWERVE_WORLD_OK : SWERVE_WORLD_NOT_FINITE;
    leave(past);
    self->states[given->state] = next;
    return STATUS_OK;
}

static int onnx_step(void *world, uint32_t count, const struct swerve_world_given *given,
                     struct swerve_world_made *made, char *error_text, uint32_t error_bytes)
{
    struct onnx_world *self = world;
    for (uint32_t i = 0; i < count; i++) {
        struct error error;
        if (step_one(self, &given[i], &made[i], &error) != STATUS_OK) {
            return report(error.text, error_text, error_bytes);
        }
    }
    return 0;
}

static int onnx_fork(void *world, uint32_t from, uint32_t to, char *error_text,
                     uint32_t error_bytes)
{
    struct onnx_world *self = world;
    (void)error_text;
    (void)error_bytes;
    self->states[to] = self->states[from];
    self->states[to]->references++;
    return 0;
}

static void onnx_drop(void *world, uint32_t state)
{
    struct onnx_world *self = world;
    leave(self->states[state]);
    self->states[state] = NULL;
}

const struct swerve_world_ops world_onnx_ops = {
    .abi_version = SWERVE_WORLD_ABI_VERSION,
    .open = onnx_open,
    .close = onnx_close,
    .reset = onnx_reset,
    .step = onnx_step,
    .fork = onnx_fork,
    .drop = onnx_drop,
};
