/*
 * A learned world without weights: the object world moves the scene, the sensor model of the data
 * generator draws each frame as a perfect model would, and the frame statistics are measured on it
 * by the engine's own code. Faults are planted in the frame, or in the counts where a frame cannot
 * show them. With it a loader whose model files are a line of text: "student 4 100" is a tier, its
 * steps, and its trusted horizon in ticks.
 */
#ifndef SWERVE_TESTS_WORKER_LEARNED_DOUBLE_H
#define SWERVE_TESTS_WORKER_LEARNED_DOUBLE_H

#include "base/check.h"
#include "engine/learned/agent_measure.h"
#include "engine/learned/frame_measure.h"
#include "engine/sensors/layout.h"
#include "engine/worlds/world.h"
#include "tests/harness.h"
#include "worker/models/models.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum planted_fault {
    PLANTED_NONE = 0,
    PLANTED_NAN,       /* weights that are not numbers */
    PLANTED_FROZEN,    /* the same frame again */
    PLANTED_TELEPORT,  /* everything stands somewhere else from one tick to the next */
    PLANTED_JUMP,      /* one extracted agent does */
    PLANTED_BLOOM,     /* occupied area spreads */
    PLANTED_FADE,      /* .. or goes */
    PLANTED_MIRROR,    /* cameras are mirrored */
    PLANTED_SATURATED, /* latents at the end of their range */
    PLANTED_HORIZON,   /* driven for longer than the model is trusted */
    PLANTED_LOST,      /* agents vanish in view */
    PLANTED_BELIEF,    /* it draws another scene than the one that is there: `believe` */
    PLANTED_COUNT
};

enum { DOUBLE_MFLOP_PER_TICK = 5, DOUBLE_LAG_TICKS = 3 };

/* Scenes of a rollout that a model with a fault may take for the present one. */
struct double_memory {
    struct scene start;                        /* when the fault began */
    struct scene recent[DOUBLE_LAG_TICKS + 1]; /* by tick, modulo their number */
};

/* One test program, one thread: set by the test before it runs anything. */
static struct {
    enum planted_fault fault;
    uint32_t from_tick;
    uint32_t period; /* of a fault that comes and goes; 0: it stays */
    uint32_t ticks;  /* in each period that are sick, the first ones */
    bool in_tier[TIER_COUNT];
    /* Changes *scene, the true one, into what is drawn. */
    void (*believe)(const struct double_memory *memory, struct scene *scene);
    bool shown; /* the planner sees what was drawn, not what is there */
} planted;

/* ---- models ---- */

struct model {
    struct model_config config;
    char hash[SHA256_HEX_BYTES];
    enum nn_precision precision;
};

static enum status double_model_open(const char *path, enum nn_precision precision,
                                     struct model **out, struct error *error)
{
    char text[128] = "";
    char tier[16] = "";
    unsigned steps = 0;
    unsigned horizon = 0;
    FILE *stream = fopen(path, "r");
    if (stream == NULL || fgets(text, sizeof text, stream) == NULL ||
        sscanf(text, "%15s %u %u", tier, &steps, &horizon) != 3) {
        if (stream != NULL) {
            fclose(stream);
        }
        return error_set(error, STATUS_BAD_INPUT, "%s: not a model", path);
    }
    fclose(stream);
    struct model *model = calloc(1, sizeof *model);
    CHECK(model != NULL);
    snprintf(model->config.name, sizeof model->config.name, "double");
    model->config.tier = strcmp(tier, "teacher") == 0 ? TIER_TEACHER : TIER_STUDENT;
    model->config.steps = steps;
    for (int i = 0; i < CONDITIONING_COUNT; i++) {
        model->config.horizon_ticks[i] = horizon;
    }
    sha256_hex(text, strlen(text), model->hash);
    model->precision = precision;
    *out = model;
    return STATUS_OK;
}

static void double_model_close(struct model *model)
{
    free(model);
}

static const struct model_config *double_model_config(const struct model *model)
{
    return &model->config;
}

static const char *double_model_hash(const struct model *model)
{
    return model->hash;
}

static void double_model_sampler(const struct model *model, enum conditioning conditioning,
                                 char out[LIMIT_ID_BYTES])
{
    snprintf(out, LIMIT_ID_BYTES, "%s/euler%u/%s", conditioning_names[conditioning],
             model->config.steps, nn_precision_names[model->precision]);
}

static const struct model_loader double_loader = {
    double_model_open, double_model_close,   double_model_config,
    double_model_hash, double_model_sampler,
};

/* ---- the world ---- */

struct double_slot {
    bool used;
    struct prepared *prepared;
    uint64_t seed;
    struct anchor anchor;
    struct window window;
    struct double_memory memory;
    struct frame_stats frame_stats;
    uint8_t frame[FRAME_BYTES];
};

struct double_world {
    struct world base;
    struct world *inner;
    enum conditioning conditioning;
    uint32_t horizon_ticks;
    struct double_slot *slots;
    struct world_cost cost;
    uint8_t frame[FRAME_BYTES];
    uint8_t layout[FRAME_BYTES];
};

static const struct world_ops *const double_inner = &world_object_ops;

static void shift_rows(uint8_t *bev, int32_t rows)
{
    const size_t row = (size_t)WINDOW_SIDE * FRAME_BEV_CHANNELS;
    memmove(bev + (size_t)rows * row, bev, (size_t)(WINDOW_SIDE - rows) * row);
    memset(bev, 0, (size_t)rows * row);
}

static void fill_occupancy(uint8_t *bev, uint32_t every)
{
    for (uint32_t i = 0; i < WINDOW_POSITIONS; i++) {
        if (every == 0 || i % every == 0) {
            memset(bev + (size_t)i * FRAME_BEV_CHANNELS, every == 0 ? 0 : 255, 4);
        }
    }
}

/* Left and right of every camera row, sub-pixels included. */
static void mirror_cameras(uint8_t *cameras)
{
    for (int camera = 0; camera < CAMERA_COUNT; camera++) {
        uint8_t *packed = cameras + (size_t)camera * FRAME_CAMERA_POSITIONS * FRAME_CAMERA_CHANNELS;
        static uint8_t image[CAMERA_BYTES];
        layout_camera_unpack(packed, image);
        for (int row = 0; row < CAMERA_ROWS; row++) {
            for (int col = 0; col < CAMERA_COLS / 2; col++) {
                uint8_t *a = image + (row * CAMERA_COLS + col) * 3;
                uint8_t *b = image + (row * CAMERA_COLS + CAMERA_COLS - 1 - col) * 3;
                for (int c = 0; c < 3; c++) {
                    uint8_t swap = a[c];
                    a[c] = b[c];
                    b[c] = swap;
                }
            }
        }
        layout_camera_pack(image, packed);
    }
}

/* Faults in the frame itself. */
static void corrupt_frame(uint8_t *frame, const uint8_t *before, uint32_t ticks_sick)
{
    switch (planted.fault) {
    case PLANTED_FROZEN:
        memcpy(frame, before, FRAME_BYTES);
        break;
    case PLANTED_TELEPORT:
        shift_rows(frame, 20); /* 20 m */
        break;
    case PLANTED_BLOOM:
        fill_occupancy(frame, ticks_sick < 4 ? 16 >> ticks_sick : 2);
        break;
    case PLANTED_FADE:
        fill_occupancy(frame, 0);
        break;
    case PLANTED_MIRROR:
        mirror_cameras(frame + FRAME_BEV_BYTES);
        break;
    default:
        break;
    }
}

/* .. and those that only counts can show. */
static void corrupt_frame_stats(struct frame_stats *frame_stats, uint32_t ticks_sick)
{
    switch (planted.fault) {
    case PLANTED_NAN:
        frame_stats->not_finite = 7;
        break;
    case PLANTED_SATURATED:
        frame_stats->saturated_share = 0.995;
        break;
    case PLANTED_JUMP:
        frame_stats->jump_m = 20.0;
        break;
    case PLANTED_LOST:
        frame_stats->lost_agents = 5 + ticks_sick;
        break;
    case PLANTED_HORIZON:
        frame_stats->horizon_ticks = planted.from_tick;
        break;
    default:
        break;
    }
}

/* Measures in the frame of single agents, as the engine measures them. */
static void measure_agents(struct double_world *self, struct double_slot *slot,
                           const struct scene *scene)
{
    struct agent_gate gates[AGENT_GATES_MAX];
    struct agent_sums sums[AGENT_GATES_MAX];
    uint32_t count = agent_measure_gates(prepared_scenario(slot->prepared), scene, &slot->anchor,
                                         slot->window, gates);
    agent_measure_sum(self->frame, self->layout, gates, count, sums);
    agent_measure_conclude(gates, sums, count, &slot->frame_stats);
}

/* Draws the frame as the sensors of the scene, or of what the model takes for it, record it. */
static void draw_frame(struct double_world *self, struct double_slot *slot,
                       const struct scene *scene, bool sick)
{
    struct scene believed = *scene;
    slot->memory.recent[scene->tick % (DOUBLE_LAG_TICKS + 1)] = *scene;
    if (scene->tick <= planted.from_tick) {
        slot->memory.start = *scene;
    }
    if (sick && planted.fault == PLANTED_BELIEF) {
        planted.believe(&slot->memory, &believed);
    }
    layout_sensed(slot->prepared, &believed, slot->seed, &slot->anchor, slot->window, self->frame,
                  self->frame + FRAME_BEV_BYTES);
}

static void generate(struct double_world *self, uint32_t index, bool first)
{
    struct double_slot *slot = &self->slots[index];
    const struct scene *scene = double_inner->slot_scene(self->inner, index);
    struct window before = slot->window;
    struct pose local = anchor_local(&slot->anchor, scene->ego.pose);
    bool sick =
        planted.fault != PLANTED_NONE && planted.in_tier[self->base.ops->tier] &&
        scene->tick >= planted.from_tick && !first &&
        (planted.period == 0 || (scene->tick - planted.from_tick) % planted.period < planted.ticks);
    slot->window = window_of(local);
    draw_frame(self, slot, scene, sick);
    layout_bev(slot->prepared, scene, &slot->anchor, slot->window, self->conditioning,
               self->layout);
    layout_cameras(slot->prepared, scene, self->conditioning, self->layout + FRAME_BEV_BYTES);
    if (sick) {
        corrupt_frame(self->frame, slot->frame, scene->tick - planted.from_tick);
        if (planted.fault == PLANTED_FROZEN) {
            slot->window = before;
        }
    }
    slot->frame_stats = (struct frame_stats){
        .tick = scene->tick,
        .saturated_share = 0.4,
        .ego_step_m = first ? 0.0 : scene->ego.speed_mps * 0.1,
        .horizon_ticks = self->horizon_ticks,
    };
    const struct frame_measure_input input = {
        .conditioning = self->conditioning,
        .frame = self->frame,
        .window = slot->window,
        .before = first ? NULL : slot->frame,
        .before_window = before,
        .layout = self->layout,
    };
    frame_measure(&input, &slot->frame_stats);
    if (self->conditioning == CONDITIONING_AGENTS && !first) {
        measure_agents(self, slot, scene);
    }
    if (sick) {
        corrupt_frame_stats(&slot->frame_stats, scene->tick - planted.from_tick);
    }
    memcpy(slot->frame, self->frame, FRAME_BYTES);
    self->cost.flop += first ? 0.0 : DOUBLE_MFLOP_PER_TICK * 1e6;
}

static void double_close(struct world *world)
{
    struct double_world *self = (struct double_world *)world;
    if (self != NULL) {
        double_inner->close(self->inner);
        free(self->slots);
        free(self);
    }
}

static enum status double_open(const struct world_config *config, const struct world_ops *ops,
                               struct world **out, struct error *error)
{
    struct double_world *self = calloc(1, sizeof *self);
    CHECK(self != NULL && config->model != NULL);
    self->base = (struct world){ops, config->slot_count};
    self->conditioning = config->conditioning;
    self->horizon_ticks = config->model->config.horizon_ticks[config->conditioning];
    self->slots = calloc(config->slot_count, sizeof *self->slots);
    CHECK(self->slots != NULL);
    const struct world_config inner = {.slot_count = config->slot_count};
    enum status status = double_inner->open(&inner, &self->inner, error);
    if (status != STATUS_OK) {
        double_close(&self->base);
        return status;
    }
    *out = &self->base;
    return STATUS_OK;
}

static enum status double_reset(struct world *world, uint32_t index, struct prepared *prepared,
                                uint64_t seed, struct error *error)
{
    struct double_world *self = (struct double_world *)world;
    struct double_slot *slot = &self->slots[index];
    enum status status = double_inner->slot_reset(self->inner, index, prepared, seed, error);
    if (status == STATUS_OK) {
        memset(slot, 0, sizeof *slot);
        slot->prepared = prepared;
        slot->seed = seed;
        slot->anchor = anchor_make(double_inner->slot_scene(self->inner, index)->ego.pose);
        generate(self, index, true);
    }
    return status;
}

static void double_release(struct world *world, uint32_t index)
{
    double_inner->slot_release(((struct double_world *)world)->inner, index);
}

static void double_step(struct world *world, const struct action *actions, const uint8_t *active)
{
    struct double_world *self = (struct double_world *)world;
    double_inner->step(self->inner, actions, active);
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (active[i]) {
            generate(self, i, false);
        }
    }
}

static void double_observe(const struct world *world, uint32_t index,
                           const struct observation_buffers *buffers)
{
    const struct double_world *self = (const struct double_world *)world;
    const struct double_slot *slot = &self->slots[index];
    if (!planted.shown) {
        double_inner->slot_observe(self->inner, index, buffers);
        return;
    }
    if (buffers->bev != NULL) {
        layout_observe_bev(slot->prepared, double_inner->slot_scene(self->inner, index),
                           &slot->anchor, slot->window, self->conditioning, slot->frame,
                           buffers->bev);
    }
    for (int i = 0; i < CAMERA_COUNT; i++) {
        if (buffers->camera[i] != NULL) {
            layout_camera_unpack(slot->frame + FRAME_BEV_BYTES +
                                     (size_t)i * FRAME_CAMERA_POSITIONS * FRAME_CAMERA_CHANNELS,
                                 buffers->camera[i]);
        }
    }
}

static const struct scene *double_scene(const struct world *world, uint32_t index)
{
    return double_inner->slot_scene(((const struct double_world *)world)->inner, index);
}

static enum status double_intervene(struct world *world, uint32_t index,
                                    const struct intervention *intervention, struct error *error)
{
    return double_inner->slot_intervene(((struct double_world *)world)->inner, index, intervention,
                                        error);
}

static void double_fork(struct world *world, uint32_t from, uint32_t to)
{
    struct double_world *self = (struct double_world *)world;
    double_inner->slot_fork(self->inner, from, to);
    self->slots[to] = self->slots[from];
}

static size_t double_state_bytes(const struct world *world)
{
    const struct double_world *self = (const struct double_world *)world;
    return sizeof(struct double_slot) + double_inner->slot_state_bytes(self->inner);
}

static void double_save(const struct world *world, uint32_t index, void *state)
{
    const struct double_world *self = (const struct double_world *)world;
    memcpy(state, &self->slots[index], sizeof self->slots[index]);
    double_inner->slot_save(self->inner, index, (uint8_t *)state + sizeof(struct double_slot));
}

static void double_restore(struct world *world, uint32_t index, void *state)
{
    struct double_world *self = (struct double_world *)world;
    memcpy(&self->slots[index], state, sizeof self->slots[index]);
    double_inner->slot_restore(self->inner, index, (uint8_t *)state + sizeof(struct double_slot));
}

static void double_drop(struct world *world, void *state)
{
    struct double_world *self = (struct double_world *)world;
    double_inner->slot_state_drop(self->inner, (uint8_t *)state + sizeof(struct double_slot));
}

static const struct frame_stats *double_frame_stats(const struct world *world, uint32_t index)
{
    return &((const struct double_world *)world)->slots[index].frame_stats;
}

static void double_cost(const struct world *world, struct world_cost *out)
{
    *out = ((const struct double_world *)world)->cost;
}

static enum status double_accepts(const struct scenario *scenario, struct error *error)
{
    return double_inner->accepts(scenario, error);
}

static enum status double_open_student(const struct world_config *config, struct world **out,
                                       struct error *error);
static enum status double_open_teacher(const struct world_config *config, struct world **out,
                                       struct error *error);

#define DOUBLE_OPS(its_tier, its_open)                                                         \
    {                                                                                          \
        .name = "double", .tier = its_tier, .open = its_open, .close = double_close,           \
        .accepts = double_accepts, .slot_reset = double_reset, .slot_release = double_release, \
        .step = double_step, .slot_observe = double_observe, .slot_scene = double_scene,       \
        .slot_intervene = double_intervene, .slot_fork = double_fork,                          \
        .slot_state_bytes = double_state_bytes, .slot_save = double_save,                      \
        .slot_restore = double_restore, .slot_state_drop = double_drop,                        \
        .slot_frame_stats = double_frame_stats, .cost = double_cost,                           \
    }

static const struct world_ops double_student_ops = DOUBLE_OPS(TIER_STUDENT, double_open_student);
static const struct world_ops double_teacher_ops = DOUBLE_OPS(TIER_TEACHER, double_open_teacher);

static enum status double_open_student(const struct world_config *config, struct world **out,
                                       struct error *error)
{
    return double_open(config, &double_student_ops, out, error);
}

static enum status double_open_teacher(const struct world_config *config, struct world **out,
                                       struct error *error)
{
    return double_open(config, &double_teacher_ops, out, error);
}

static __attribute__((unused)) const struct world_ops *double_world_for_tier(enum tier tier)
{
    return tier == TIER_STUDENT   ? &double_student_ops
           : tier == TIER_TEACHER ? &double_teacher_ops
                                  : world_ops_for_tier(tier);
}

#endif
