/*
 * The tinyphysics world: logs of comma.ai's controls challenge in its learned simulator, which
 * answers a steering command with the lateral acceleration that follows (docs/controls.md). One of
 * the user's model files behind the table of functions that all tiers fill.
 *
 * Tick t asks for the action of row CONTROLS_CONTEXT + t and then makes that row. The scene shows
 * what the simulator knows: speed and acceleration of the log, the lateral acceleration that was
 * drawn, the steering command; ego goes straight on by the log's speed, because the simulator has
 * no place. Nothing is to be seen: pictures are empty.
 *
 * A slot is plain memory. Bits depend on model, log, seed and actions alone, not on the batch or
 * threads.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "engine/learned/threads.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/tinyphysics/tinyphysics_episode.h"
#include "engine/worlds/foreign.h"
#include "engine/worlds/world_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 10000 };

struct tiny_slot {
    struct prepared *prepared; /* a reference of its own; NULL: the slot is free */
    struct scene scene;
    struct tinyphysics_episode episode; /* its log is the prepared scenario's */
    double values[TINYPHYSICS_EPISODE_VALUES];
    struct frame_stats frame_stats; /* fault: not "", the rollout is lost */
};

struct tiny_world {
    struct world base;
    const struct tinyphysics_model *model;        /* borrowed */
    const struct swerve_world_declared *declared; /* borrowed */
    struct threads *threads;
    uint32_t lane_count;                       /* parts of a step that may go on at a time */
    struct tinyphysics_workspace **workspaces; /* [lane_count] */
    struct tiny_slot *slots;
    uint32_t *due; /* [slot_count]: slots that are stepped now */
    uint32_t due_count;
    const struct action *actions; /* of the step that is under way */
    double flop;
    uint64_t ticks;
};

static struct tiny_world *self_of(const struct world *world)
{
    return (struct tiny_world *)world;
}

static struct tiny_slot *occupied(const struct world *world, uint32_t index)
{
    CHECK(index < world->slot_count && self_of(world)->slots[index].prepared != NULL);
    return &self_of(world)->slots[index];
}

static struct tiny_slot *vacant(const struct world *world, uint32_t index)
{
    CHECK(index < world->slot_count && self_of(world)->slots[index].prepared == NULL);
    return &self_of(world)->slots[index];
}

/* ---- life ---- */

static void close_world(struct world *world)
{
    struct tiny_world *self = self_of(world);
    if (self == NULL) {
        return;
    }
    for (uint32_t i = 0; self->slots != NULL && i < world->slot_count; i++) {
        prepared_unref(self->slots[i].prepared);
    }
    for (uint32_t i = 0; self->workspaces != NULL && i < self->lane_count; i++) {
        tinyphysics_workspace_free(self->workspaces[i]);
    }
    threads_destroy(self->threads);
    free(self->workspaces);
    free(self->slots);
    free(self->due);
    free(self);
}

static enum status open_parts(struct tiny_world *self, uint32_t thread_count, struct error *error)
{
    const uint32_t count = self->base.slot_count;
    TRY(threads_create(thread_count, &self->threads, error));
    self->lane_count = threads_count(self->threads);
    self->workspaces = calloc(self->lane_count, sizeof(struct tinyphysics_workspace *));
    self->slots = calloc(count, sizeof *self->slots);
    self->due = calloc(count, sizeof *self->due);
    TRY(memory_check(self->workspaces, error, "world tinyphysics: no memory for %u slots", count));
    TRY(memory_check(self->slots, error, "world tinyphysics: no memory for %u slots", count));
    TRY(memory_check(self->due, error, "world tinyphysics: no memory for %u slots", count));
    for (uint32_t i = 0; i < self->lane_count; i++) {
        TRY(tinyphysics_workspace_make(&self->workspaces[i], error));
    }
    return STATUS_OK;
}

static enum status open_world(const struct world_config *config, struct world **out,
                              struct error *error)
{
    TRY(world_check_slots("tinyphysics", config->slot_count, error));
    CHECK(config->foreign != NULL && config->foreign->host != NULL);
    struct tiny_world *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "world tinyphysics: out of memory"));
    self->base = (struct world){&world_tinyphysics_ops, config->slot_count};
    self->model = config->foreign->host;
    self->declared = &config->foreign->declared;
    enum status status = open_parts(self, config->thread_count, error);
    if (status != STATUS_OK) {
        close_world(&self->base);
        return status;
    }
    *out = &self->base;
    return STATUS_OK;
}

static enum status accepts(const struct scenario *scenario, struct error *error)
{
    if (scenario->controls.log.count == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "scenario %s: the world tinyphysics drives logs of the controls challenge "
                         "(swerve import controls), found none",
                         scenario->id);
    }
    return STATUS_OK;
}

/* ---- slots ---- */

/* Fills the scene: it is before the row that the episode is about. */
static void show(struct tiny_slot *slot)
{
    const struct controls_log *log = slot->episode.log;
    const uint32_t step = slot->episode.step;
    const struct controls_row *row = &log->rows[step < log->count ? step : log->count - 1];
    struct ego_state *ego = &slot->scene.ego;
    ego->speed_mps = dmath_max(row->v_ego_mps, 0.0);
    ego->accel_mps2 = row->a_ego_mps2;
    ego->lat_accel_mps2 = tinyphysics_episode_lataccel(&slot->episode);
    ego->steer_rad = slot->episode.actions[step - 1];
}

/* Seeds 0 and 1 are the log's own draws, as the challenge makes them; the others begin further on.
 */
static uint32_t generator_seed(const struct controls *controls, uint64_t seed)
{
    return seed < 2 ? controls->seed : (uint32_t)(controls->seed + (seed - 1) * SEEDS);
}

/* Measures of a picture that is not there. */
static struct frame_stats unseen(void)
{
    return (struct frame_stats){
        .bev_change = (double)NAN,
        .camera_change = (double)NAN,
        .occupancy_cells = (double)NAN,
        .vru_cells = (double)NAN,
        .layout_cells = (double)NAN,
        .layout_iou = (double)NAN,
        .surplus_cells = (double)NAN,
        .surplus_vru_cells = (double)NAN,
        .camera_layout_corr = (double)NAN,
        .horizon_ticks = CONTROLS_COST_END - CONTROLS_CONTEXT,
    };
}

static enum status slot_reset(struct world *world, uint32_t index, struct prepared *prepared,
                              uint64_t seed, struct error *error)
{
    const struct scenario *scenario = prepared->scenario;
    struct tiny_slot *slot = vacant(world, index);
    TRY(accepts(scenario, error));
    memset(slot, 0, sizeof *slot);
    slot->prepared = prepared_ref(prepared);
    slot->frame_stats = unseen();
    slot->scene.conditions = scenario->conditions;
    slot->scene.ego.pose = scenario->ego.pose;
    tinyphysics_episode_begin(&slot->episode, &scenario->controls.log,
                              generator_seed(&scenario->controls, seed), slot->values);
    show(slot);
    return STATUS_OK;
}

static void release(struct tiny_slot *slot)
{
    prepared_unref(slot->prepared);
    slot->prepared = NULL;
}

static void slot_release(struct world *world, uint32_t index)
{
    release(occupied(world, index));
}

/* The copy's episode is in the copy's memory. */
static void move_slot(struct tiny_slot *to, const struct tiny_slot *from)
{
    *to = *from;
    to->episode.lataccel_mps2 = to->values;
    to->episode.actions = to->values + (from->episode.actions - from->episode.lataccel_mps2);
}

static void copy_slot(struct tiny_slot *to, const struct tiny_slot *from)
{
    move_slot(to, from);
    prepared_ref(to->prepared);
}

static void slot_fork(struct world *world, uint32_t from, uint32_t to)
{
    copy_slot(vacant(world, to), occupied(world, from));
}

static size_t slot_state_bytes(const struct world *world)
{
    (void)world;
    return sizeof(struct tiny_slot);
}

static void slot_save(const struct world *world, uint32_t index, void *state)
{
    copy_slot(state, occupied(world, index));
}

static void slot_restore(struct world *world, uint32_t index, void *state)
{
    struct tiny_slot *parked = state;
    CHECK(parked->prepared != NULL);
    move_slot(vacant(world, index), parked); /* the reference moves along */
    parked->prepared = NULL;
}

static void slot_state_drop(struct world *world, void *state)
{
    (void)world;
    release(state);
}

static const struct scene *slot_scene(const struct world *world, uint32_t index)
{
    return &occupied(world, index)->scene;
}

static void slot_observe(const struct world *world, uint32_t index,
                         const struct observation_buffers *buffers)
{
    (void)occupied(world, index);
    if (buffers->bev != NULL) {
        memset(buffers->bev, 0, BEV_BYTES);
    }
    for (int camera = 0; camera < CAMERA_COUNT; camera++) {
        if (buffers->camera[camera] != NULL) {
            memset(buffers->camera[camera], 0, CAMERA_BYTES);
        }
    }
}

static enum status slot_intervene(struct world *world, uint32_t index,
                                  const struct intervention *intervention, struct error *error)
{
    (void)intervention;
    return error_set(error, STATUS_BAD_INPUT,
                     "scenario %s: the world tinyphysics has nobody and nothing beside ego that an "
                     "intervention could change",
                     occupied(world, index)->prepared->scenario->id);
}

/* ---- one tick ---- */

/* The network could not be computed: evidence, never a result. */
static void lose(const struct tiny_world *self, struct tiny_slot *slot, const struct error *error)
{
    struct frame_stats *frame_stats = &slot->frame_stats;
    slot->scene.tick++;
    frame_stats->tick = slot->scene.tick;
    snprintf(frame_stats->fault, sizeof frame_stats->fault, "world %s %s: tick %u: %.100s",
             self->declared->name, self->declared->version, slot->scene.tick, error->text);
}

static void step_batch(struct tiny_world *self, struct tinyphysics_workspace *workspace,
                       const uint32_t *indices, uint32_t count)
{
    struct tinyphysics_episode *episodes[TINYPHYSICS_BATCH];
    double steer[TINYPHYSICS_BATCH];
    CHECK(count >= 1 && count <= TINYPHYSICS_BATCH);
    struct error error;
    for (uint32_t i = 0; i < count; i++) {
        episodes[i] = &self->slots[indices[i]].episode;
        steer[i] = self->actions[indices[i]].steer_rad;
    }
    if (tinyphysics_episode_step(self->model, workspace, episodes, steer, count, &error) !=
        STATUS_OK) {
        for (uint32_t i = 0; i < count; i++) {
            lose(self, &self->slots[indices[i]], &error);
        }
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct tiny_slot *slot = &self->slots[indices[i]];
        slot->scene.ego.pose.x_m += slot->scene.ego.speed_mps * TICK_S;
        slot->frame_stats.tick = ++slot->scene.tick;
        slot->frame_stats.ego_step_m = slot->scene.ego.speed_mps * TICK_S;
        show(slot);
    }
}

/* Each lane takes an equal share of the slots that are due, in a workspace of its own. */
static void step_lanes(void *context, uint32_t first, uint32_t end)
{
    struct tiny_world *self = context;
    const uint32_t share = (self->due_count + self->lane_count - 1) / self->lane_count;
    const uint32_t part = tinyphysics_part(share, TINYPHYSICS_BATCH);
    for (uint32_t lane = first; lane < end; lane++) {
        const uint32_t limit = (lane + 1) * share;
        const uint32_t until = limit < self->due_count ? limit : self->due_count;
        for (uint32_t at = lane * share; at < until; at += part) {
            step_batch(self, self->workspaces[lane], self->due + at,
                       until - at < part ? until - at : part);
        }
    }
}

static void step(struct world *world, const struct action *actions, const uint8_t *active)
{
    struct tiny_world *self = self_of(world);
    self->actions = actions;
    self->due_count = 0;
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (active[i] && occupied(world, i)->frame_stats.fault[0] == '\0') {
            const struct tinyphysics_episode *episode = &occupied(world, i)->episode;
            CHECK(!tinyphysics_episode_done(episode)); /* decoding checks the horizon */
            self->flop +=
                episode->step >= TINYPHYSICS_CONTROL_STEP ? tinyphysics_model_flop() : 0.0;
            self->due[self->due_count++] = i;
        }
    }
    self->ticks += self->due_count;
    if (self->due_count > 0) {
        threads_run(self->threads, self->lane_count, 1, step_lanes, self);
    }
}

static void cost(const struct world *world, struct world_cost *out)
{
    *out = (struct world_cost){.flop = self_of(world)->flop, .ticks = self_of(world)->ticks};
}

/* Statistics of a world that shows nothing and moves nobody: whether it failed. */
static const struct frame_stats *slot_frame_stats(const struct world *world, uint32_t index)
{
    return &occupied(world, index)->frame_stats;
}

#define OPERATIONS                                                                              \
    .name = "tinyphysics", .tier = TIER_STUDENT, .has_truth = true, .open = open_world,         \
    .close = close_world, .accepts = accepts, .slot_reset = slot_reset,                         \
    .slot_release = slot_release, .step = step, .slot_observe = slot_observe,                   \
    .slot_scene = slot_scene, .slot_intervene = slot_intervene, .slot_fork = slot_fork,         \
    .slot_state_bytes = slot_state_bytes, .slot_save = slot_save, .slot_restore = slot_restore, \
    .slot_state_drop = slot_state_drop, .cost = cost

const struct world_ops world_tinyphysics_ops = {OPERATIONS};
const struct world_ops world_tinyphysics_outside_ops = {OPERATIONS,
                                                        .slot_frame_stats = slot_frame_stats};
