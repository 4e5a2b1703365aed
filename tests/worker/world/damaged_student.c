/*
 * The shipped student as a plugin, damaged in what it generates, to see who notices. The engine's
 * own forward pass on one thread, in bf16 and the conditioning `agents`; what is spoilt is shown to
 * the planner and remembered by the network. The drives of scripts/damage/drive.py, through a
 * store.
 *
 *     plugin:damaged_student.so?KIND[@rain]:WEIGHTS.safetensors
 *
 *     none      as generated
 *     frozen    from 0.5 s on the same frame for ever
 *     mirrored  the cameras' images are mirrored
 *     drift     returns move to the left of where ego began, by 0.3 m/s from 3 s on
 *
 * With "@rain" all other weather is healthy. Invariant: a state's pages are its own, so that forks
 * are copies and a frame depends on its state alone.
 */
#include "base/check.h"
#include "engine/learned/forward.h"
#include "kernels/cpu.h"
#include "schemas/world/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NONE = 0, FROZEN, MIRRORED, DRIFT, KIND_COUNT };
static const char *const kind_names[KIND_COUNT] = {"none", "frozen", "mirrored", "drift"};

enum { FROZEN_TICK = 5, DRIFT_TICK = 30 };
#define DRIFT_M_PER_TICK 0.03
#define CELL_M 0.5

struct state {
    uint32_t page_count;
    struct window window[NN_PAGES_MAX]; /* the newest first */
    uint8_t *frame[NN_PAGES_MAX];       /* owned */
    void *memory[NN_PAGES_MAX];         /* owned */
};

struct damaged {
    struct model *model;
    struct workspace *workspace;
    uint8_t *base; /* of all frames and rasters */
    struct state *states;
    uint32_t state_count;
    enum kind kind;
    bool rain_alone;
};

/* ---- damage ---- */

static void mirror(uint8_t *cameras)
{
    for (int camera = 0; camera < CAMERA_COUNT; camera++) {
        uint8_t *packed = cameras + (size_t)camera * FRAME_CAMERA_POSITIONS * FRAME_CAMERA_CHANNELS;
        uint8_t image[CAMERA_BYTES];
        uint8_t mirrored[CAMERA_BYTES];
        layout_camera_unpack(packed, image);
        for (int pixel = 0; pixel < CAMERA_ROWS * CAMERA_COLS; pixel++) {
            int from = pixel - pixel % CAMERA_COLS + CAMERA_COLS - 1 - pixel % CAMERA_COLS;
            memcpy(mirrored + (size_t)pixel * 3, image + (size_t)from * 3, 3);
        }
        layout_camera_pack(mirrored, packed);
    }
}

/* Occupancy, whose it is and shadows, by whole cells; a velocity goes with its position. */
static void move_left(uint8_t *bev, int cells)
{
    enum { COLS = 2 * WINDOW_SIDE };
    for (int row = 0; row < WINDOW_SIDE; row++) {
        uint8_t line[WINDOW_SIDE * FRAME_BEV_CHANNELS];
        uint8_t *there = bev + (size_t)row * sizeof line;
        memcpy(line, there, sizeof line);
        for (int col = 0; col < COLS; col++) {
            int from = col - cells > 0 ? col - cells : 0;
            uint8_t *to = there + (size_t)(col / 2) * FRAME_BEV_CHANNELS;
            const uint8_t *of = line + (size_t)(from / 2) * FRAME_BEV_CHANNELS;
            for (int channel = FRAME_OCCUPANCY; channel < FRAME_DRIVABLE; channel += 2) {
                to[channel + col % 2] = of[channel + from % 2];
            }
            memcpy(to + FRAME_VELOCITY, of + FRAME_VELOCITY, 2);
        }
    }
}

static void spoil(const struct damaged *self, const struct state *state,
                  const struct swerve_world_given *given, uint8_t *frame)
{
    bool rain = given->weather == WEATHER_RAIN || given->weather == WEATHER_HEAVY_RAIN;
    if (self->rain_alone && !rain) {
        return;
    }
    if (self->kind == FROZEN && given->tick > FROZEN_TICK) {
        memcpy(frame, state->frame[0], FRAME_BYTES);
    } else if (self->kind == MIRRORED) {
        mirror(frame + FRAME_BEV_BYTES);
    } else if (self->kind == DRIFT && given->tick > DRIFT_TICK) {
        move_left(frame, (int)lround(DRIFT_M_PER_TICK * (given->tick - DRIFT_TICK) / CELL_M));
    }
}

/* ---- states ---- */

/* The oldest page is the next one to be written. */
static void commit(const struct damaged *self, struct state *state,
                   const struct swerve_world_given *given, const uint8_t *frame)
{
    const uint32_t last = model_config(self->model)->window - 1;
    uint8_t *oldest_frame = state->frame[last];
    void *oldest = state->memory[last];
    memmove(state->window + 1, state->window, last * sizeof *state->window);
    memmove(state->frame + 1, state->frame, last * sizeof *state->frame);
    memmove(state->memory + 1, state->memory, last * sizeof *state->memory);
    state->window[0] = (struct window){given->window_i, given->window_j};
    state->frame[0] = oldest_frame;
    state->memory[0] = oldest;
    state->page_count += state->page_count <= last;
    memcpy(oldest_frame, frame, FRAME_BYTES);
    forward_memory(self->model, self->workspace, frame, oldest);
}

static size_t memory_bytes(const struct damaged *self)
{
    return (forward_memory_bytes(self->model) + 63) / 64 * 64;
}

static bool states_create(struct damaged *self)
{
    bool there = true;
    self->states = calloc(self->state_count, sizeof *self->states);
    for (uint32_t i = 0; self->states != NULL && i < self->state_count; i++) {
        for (uint32_t page = 0; page < model_config(self->model)->window; page++) {
            self->states[i].frame[page] = malloc(FRAME_BYTES);
            self->states[i].memory[page] = aligned_alloc(64, memory_bytes(self));
            there = there && self->states[i].frame[page] != NULL &&
                    self->states[i].memory[page] != NULL;
        }
    }
    return there && self->states != NULL;
}

static void damaged_close(void *world)
{
    struct damaged *self = world;
    for (uint32_t i = 0; self->states != NULL && i < self->state_count; i++) {
        for (uint32_t page = 0; page < NN_PAGES_MAX; page++) {
            free(self->states[i].frame[page]);
            free(self->states[i].memory[page]);
        }
    }
    free(self->states);
    workspace_destroy(self->workspace);
    model_close(self->model);
    free(self);
}

/* ---- the table of functions ---- */

/* "KIND[@rain]:WEIGHTS"; returns WEIGHTS, or NULL. */
static const char *parse(struct damaged *self, const char *config)
{
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        size_t bytes = strlen(kind_names[kind]);
        const char *rest = config + bytes;
        if (strncmp(config, kind_names[kind], bytes) == 0) {
            self->kind = (enum kind)kind;
            self->rain_alone = strncmp(rest, "@rain", 5) == 0;
            rest += self->rain_alone ? 5 : 0;
            return *rest == ':' ? rest + 1 : NULL;
        }
    }
    return NULL;
}

static int damaged_open(void **world, const struct swerve_world_setup *setup,
                        struct swerve_world_declared *declared, char *error_text,
                        uint32_t error_bytes)
{
    const struct model_open_options options = {.precision = NN_BF16,
                                               .cpu_flags = cpu_flags_detect()};
    struct error error = {.text = "no memory"};
    struct damaged *self = calloc(1, sizeof *self);
    CHECK(self != NULL);
    self->base = setup->memory;
    self->state_count = setup->state_count;
    const char *weights = parse(self, setup->config);
    enum status status = weights != NULL
                             ? model_open(weights, &options, &self->model, &error)
                             : error_set(&error, STATUS_USAGE,
                                         "expected KIND[@rain]:FILE, found \"%s\"", setup->config);
    THEN(status, workspace_create(self->model, 1, &self->workspace, &error));
    if (status != STATUS_OK || !states_create(self)) {
        snprintf(error_text, error_bytes, "%s", error.text);
        damaged_close(self);
        return 1;
    }
    *declared = (struct swerve_world_declared){
        .name = "damaged-student",
        .version = "1",
        .form = SWERVE_WORLD_FORM_WINDOW,
        .flags = SWERVE_WORLD_DETERMINISTIC | SWERVE_WORLD_BEV | SWERVE_WORLD_CAMERAS |
                 SWERVE_WORLD_READS_RASTER,
        .bev_bytes = FRAME_BEV_BYTES,
        .cameras_bytes = FRAME_CAMERA_BYTES,
        .horizon_ticks = model_config(self->model)->horizon_ticks[CONDITIONING_AGENTS],
        .tick_s = 0.1,
    };
    *world = self;
    return 0;
}

static int damaged_reset(void *world, const struct swerve_world_given *given, char *error_text,
                         uint32_t error_bytes)
{
    struct damaged *self = world;
    struct state *state = &self->states[given->state];
    uint8_t frame[FRAME_BYTES];
    (void)error_text;
    (void)error_bytes;
    state->page_count = 0;
    memcpy(frame, self->base + given->raster_bev, FRAME_BEV_BYTES);
    memcpy(frame + FRAME_BEV_BYTES, self->base + given->raster_cameras, FRAME_CAMERA_BYTES);
    commit(self, state, given, frame);
    return 0;
}

static void step_one(struct damaged *self, const struct swerve_world_given *given,
                     struct swerve_world_made *made)
{
    struct state *state = &self->states[given->state];
    uint8_t frame[FRAME_BYTES];
    struct forward_output output = {.frame = frame};
    struct forward_input input = {
        .seed = given->seed,
        .tick = given->tick,
        .conditioning = CONDITIONING_AGENTS,
        .window = {given->window_i, given->window_j},
        .ego = {given->local_x_m, given->local_y_m, given->local_heading_rad},
        .cond = given->conditions,
        .layout_bev = self->base + given->raster_bev,
        .layout_cameras = self->base + given->raster_cameras,
        .page_count = state->page_count,
    };
    for (uint32_t i = 0; i < state->page_count; i++) {
        input.pages[i] = (struct forward_page){
            .frame = state->frame[i], .memory = state->memory[i], .window = state->window[i]};
    }
    forward_tick(self->model, self->workspace, &input, &output);
    spoil(self, state, given, frame);
    commit(self, state, given, frame);
    memcpy(self->base + given->frame_bev, frame, FRAME_BEV_BYTES);
    memcpy(self->base + given->frame_cameras, frame + FRAME_BEV_BYTES, FRAME_CAMERA_BYTES);
    made->result = output.counts.not_finite > 0 ? SWERVE_WORLD_NOT_FINITE : SWERVE_WORLD_OK;
}

static int damaged_step(void *world, uint32_t count, const struct swerve_world_given *given,
                        struct swerve_world_made *made, char *error_text, uint32_t error_bytes)
{
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        step_one(world, &given[i], &made[i]);
    }
    return 0;
}

static int damaged_fork(void *world, uint32_t from, uint32_t to, char *error_text,
                        uint32_t error_bytes)
{
    const struct damaged *self = world;
    const struct state *source = &self->states[from];
    struct state *target = &self->states[to];
    (void)error_text;
    (void)error_bytes;
    target->page_count = source->page_count;
    memcpy(target->window, source->window, sizeof target->window);
    for (uint32_t i = 0; i < source->page_count; i++) {
        memcpy(target->frame[i], source->frame[i], FRAME_BYTES);
        memcpy(target->memory[i], source->memory[i], forward_memory_bytes(self->model));
    }
    return 0;
}

static void damaged_drop(void *world, uint32_t state)
{
    struct damaged *self = world;
    self->states[state].page_count = 0;
}

const struct swerve_world_ops *swerve_world_entry(void);
const struct swerve_world_ops *swerve_world_entry(void)
{
    static const struct swerve_world_ops ops = {
        .abi_version = SWERVE_WORLD_ABI_VERSION,
        .open = damaged_open,
        .close = damaged_close,
        .reset = damaged_reset,
        .step = damaged_step,
        .fork = damaged_fork,
        .drop = damaged_drop,
    };
    return &ops;
}
