/*
 * The golden world: the object world's table of functions with recorded pictures. See
 * golden_library.h.
 *
 * After every step, and whenever somebody intervenes, a slot looks for the recorded rollout that it
 * is in: the one that it followed where that is in exactly the same state, else another one that
 * is, else the one that it followed while it is near enough, else the nearest one that is. What the
 * object world knows (ego, everybody near, weather) is compared, so that a branch needs no name: it
 * is where it is. Ego is committed ahead of time as it was where frames were made in chunks.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "schemas/rig/rig.h"
#include "worker/golden/golden_library.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_ALIGN = 64 };

struct golden_slot {
    const struct recording *recording; /* taken; NULL: the slot is free */
    int32_t rollout;                   /* of the recording, that is followed */
    uint32_t last;                     /* newest frame that the recorded world had made */
    uint32_t committed_until;          /* ego does `committed` before this tick */
    struct action committed;
    struct frame_stats stats;
    uint8_t *shown; /* [REEL_FRAME_BYTES], of this slot; not part of a state */
    unsigned fresh; /* parts of `shown` that are the frame of now; of enum reel_part */
};

struct golden_world {
    struct world base;
    struct golden_library *library; /* borrowed */
    struct world *drives;           /* the object world under it */
    struct golden_slot *slots;
    uint8_t *frames; /* of all slots */
};

static struct golden_world *self_of(const struct world *world)
{
    return (struct golden_world *)(uintptr_t)world;
}

static struct golden_slot *slot_of(const struct world *world, uint32_t index)
{
    return &self_of(world)->slots[index];
}

/* ---- how far from a recording ---- */

struct apart {
    bool exact;
    bool near;
    int32_t agent; /* of `value`; -1: ego */
    double value, max;
    double ego_m;
};

static double distance_m(double x_m, double y_m, const struct pose *pose)
{
    double dx_m = pose->x_m - x_m;
    double dy_m = pose->y_m - y_m;
    return sqrt(dx_m * dx_m + dy_m * dy_m);
}

static bool same_ego(const struct trace_tick *tick, const struct ego_state *ego)
{
    return tick->x_m == ego->pose.x_m && tick->y_m == ego->pose.y_m &&
           tick->heading_rad == ego->pose.heading_rad && tick->speed_mps == ego->speed_mps &&
           tick->accel_mps2 == ego->accel_mps2 && tick->lat_accel_mps2 == ego->lat_accel_mps2 &&
           tick->yaw_rate_rps == ego->yaw_rate_rps && tick->steer_rad == ego->steer_rad;
}

static bool same_conditions(const struct trace_tick *tick, const struct conditions *now)
{
    return tick->weather == (uint8_t)now->weather && tick->light == (uint8_t)now->light &&
           tick->friction == (float)now->friction && tick->visibility_m == (float)now->visibility_m;
}

/* Too far: the first reason stays. */
static void refuse(struct apart *apart, int32_t agent, double value, double max)
{
    if (apart->near) {
        apart->near = false;
        apart->agent = agent;
        apart->value = value;
        apart->max = max;
    }
}

static void compare_agent(const struct trace_agent *was, const struct agent_state *is,
                          const struct pose *ego, int32_t index, struct apart *apart)
{
    bool there = was->present != 0;
    bool near = (is->present && distance_m(ego->x_m, ego->y_m, &is->pose) < GOLDEN_NEAR_M) ||
                (there && distance_m(was->x_m, was->y_m, ego) < GOLDEN_NEAR_M);
    double off_m = there && is->present ? distance_m(was->x_m, was->y_m, &is->pose) : GOLDEN_NEAR_M;
    if (there != is->present || was->x_m != is->pose.x_m || was->y_m != is->pose.y_m ||
        was->heading_rad != is->pose.heading_rad || was->speed_mps != is->speed_mps) {
        apart->exact = apart->exact && !there && !is->present;
    }
    if (near && !(off_m <= GOLDEN_APART_M)) {
        refuse(apart, index, off_m, GOLDEN_APART_M);
    }
}

static struct apart compare(const struct recording *recording, int32_t rollout,
                            const struct scene *scene)
{
    struct trace_tick tick;
    struct trace_agent agents[LIMIT_AGENTS];
    struct apart apart = {.exact = true, .near = true, .agent = -1};
    if (recording->reader.header.agent_count != scene->agent_count ||
        !trace_reader_tick(&recording->reader, rollout, scene->tick, &tick, agents)) {
        apart.exact = false;
        refuse(&apart, -1, scene->tick, trace_reader_last_tick(&recording->reader, rollout));
        return apart;
    }
    double turned_rad = fabs(dmath_wrap_angle(scene->ego.pose.heading_rad - tick.heading_rad));
    apart.ego_m = distance_m(tick.x_m, tick.y_m, &scene->ego.pose);
    apart.exact = same_ego(&tick, &scene->ego) && same_conditions(&tick, &scene->conditions);
    if (!same_conditions(&tick, &scene->conditions)) {
        refuse(&apart, -1, scene->tick, scene->tick > 0 ? scene->tick - 1.0 : 0.0);
    }
    if (!(apart.ego_m <= GOLDEN_APART_M)) {
        refuse(&apart, -1, apart.ego_m, GOLDEN_APART_M);
    }
    if (!(turned_rad <= GOLDEN_TURNED_RAD)) {
        refuse(&apart, -1, turned_rad, GOLDEN_TURNED_RAD);
    }
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        compare_agent(&agents[i], &scene->agents[i], &scene->ego.pose, (int32_t)i, &apart);
    }
    return apart;
}

/* Finds the rollout that the slot is in now. Once it has left them all it stays lost. */
static void follow(const struct golden_world *self, uint32_t index)
{
    struct golden_slot *slot = &self->slots[index];
    const struct scene *scene = self->drives->ops->slot_scene(self->drives, index);
    const struct apart own = compare(slot->recording, slot->rollout, scene);
    struct apart best = own;
    int32_t found = slot->rollout;
    const uint32_t count = slot->recording->reader.header.rollout_count;
    for (uint32_t i = 0; !best.exact && i < count; i++) {
        const struct apart other = compare(slot->recording, (int32_t)i, scene);
        if (other.exact || (!own.near && other.near && (!best.near || other.ego_m < best.ego_m))) {
            best = other;
            found = (int32_t)i;
        }
    }
    slot->rollout = found;
    slot->fresh = 0;
    slot->stats.tick = scene->tick;
    if (!best.near && !slot->stats.diverged) {
        slot->stats.diverged = true;
        slot->stats.diverged_agent = own.agent;
        slot->stats.diverged_by = own.value;
        slot->stats.diverged_max = own.max;
    }
}

/* ---- life ---- */

static void close_world(struct world *world)
{
    struct golden_world *self = self_of(world);
    if (self == NULL) {
        return;
    }
    for (uint32_t i = 0; self->slots != NULL && i < world->slot_count; i++) {
        if (self->slots[i].recording != NULL) {
            golden_library_give_back(self->library, self->slots[i].recording);
        }
    }
    world_object_ops.close(self->drives);
    free(self->slots);
    free(self->frames);
    free(self);
}

/* Whether it is the rig that was recorded. */
static enum status rig_take(struct world *world, const struct rig *rig, struct error *error)
{
    const struct golden_list *list = golden_library_list(self_of(world)->library);
    char hash[SHA256_HEX_BYTES];
    TRY(rig_hash(rig, hash, error));
    if (strcmp(hash, list->rig) == 0) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "golden \"%s\": expected the rig %.12s that was recorded, found %s (%.12s)",
                     list->name, list->rig[0] != '\0' ? list->rig : "swerve", rig->id, hash);
}

static enum status open_world(const struct world_config *config, struct world **out,
                              struct error *error)
{
    struct golden_world *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "world golden: out of memory"));
    self->base = (struct world){&world_golden_ops, config->slot_count};
    self->library = (struct golden_library *)(uintptr_t)config->foreign->host;
    enum status status = world_object_ops.open(config, &self->drives, error);
    if (status == STATUS_OK) {
        self->slots = calloc(config->slot_count, sizeof *self->slots);
        self->frames = malloc((size_t)config->slot_count * REEL_FRAME_BYTES);
        status = self->slots != NULL && self->frames != NULL
                     ? STATUS_OK
                     : error_set(error, STATUS_NO_MEMORY, "world golden: no memory for %u slots",
                                 config->slot_count);
    }
    if (config->rig != NULL) {
        THEN(status, rig_take(&self->base, config->rig, error));
    }
    if (status != STATUS_OK) {
        close_world(&self->base);
        return status;
    }
    for (uint32_t i = 0; i < config->slot_count; i++) {
        self->slots[i].shown = self->frames + (size_t)i * REEL_FRAME_BYTES;
    }
    *out = &self->base;
    return STATUS_OK;
}

static enum status accepts(const struct scenario *scenario, struct error *error)
{
    return world_object_ops.accepts(scenario, error);
}

/* ---- slots ---- */

/* Statistics that nobody measures are none. */
static void forget(struct frame_stats *stats)
{
    *stats = (struct frame_stats){
        .camera_change = (double)NAN,
        .bev_change = (double)NAN,
        .layout_cells = (double)NAN,
        .layout_iou = (double)NAN,
        .surplus_cells = (double)NAN,
        .surplus_vru_cells = (double)NAN,
        .camera_layout_corr = (double)NAN,
        .horizon_ticks = LIMIT_HORIZON_TICKS,
        .diverged_agent = -1,
    };
}

static enum status slot_reset(struct world *world, uint32_t index, struct prepared *prepared,
                              uint64_t seed, struct error *error)
{
    struct golden_world *self = self_of(world);
    struct golden_slot *slot = &self->slots[index];
    const struct recording *recording = NULL;
    TRY(golden_library_take(self->library, prepared_scenario(prepared)->id, seed, &recording,
                            error));
    enum status status = self->drives->ops->slot_reset(self->drives, index, prepared, seed, error);
    if (status != STATUS_OK) {
        golden_library_give_back(self->library, recording);
        return status;
    }
    slot->recording = recording;
    slot->rollout = 0;
    slot->last = 0;
    slot->committed_until = 0;
    forget(&slot->stats);
    follow(self, index);
    return STATUS_OK;
}

static void slot_release(struct world *world, uint32_t index)
{
    struct golden_world *self = self_of(world);
    self->drives->ops->slot_release(self->drives, index);
    golden_library_give_back(self->library, self->slots[index].recording);
    self->slots[index].recording = NULL;
}

static void step(struct world *world, const struct action *actions, const uint8_t *active)
{
    struct golden_world *self = self_of(world);
    self->drives->ops->step(self->drives, actions, active);
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (active[i]) {
            follow(self, i);
        }
    }
}

/* Makes parts of the slot's frame those of now. What is lost or damaged is black, and the drive a
 * fault. */
static void refresh(const struct golden_world *self, uint32_t index, unsigned parts)
{
    struct golden_slot *slot = &self->slots[index];
    const struct scene *scene = self->drives->ops->slot_scene(self->drives, index);
    if (parts == 0) {
        return;
    }
    slot->fresh |= parts;
    if (!slot->stats.diverged &&
        recording_frame(slot->recording, slot->rollout, scene->tick, parts, slot->shown)) {
        return;
    }
    if ((parts & REEL_GRID) != 0) {
        memset(slot->shown, 0, BEV_BYTES);
    }
    if ((parts & REEL_CAMERAS) != 0) {
        memset(slot->shown + BEV_BYTES, 0, REEL_FRAME_BYTES - BEV_BYTES);
    }
    if (!slot->stats.diverged) {
        snprintf(slot->stats.fault, sizeof slot->stats.fault,
                 "golden %.31s: tick %u: its frame is damaged",
                 golden_library_list(self->library)->name, scene->tick);
    }
}

static void slot_observe(const struct world *world, uint32_t index,
                         const struct observation_buffers *buffers)
{
    const struct golden_world *self = self_of(world);
    const struct golden_slot *slot = &self->slots[index];
    const struct observation_buffers shown = reel_buffers(slot->shown);
    unsigned wanted = buffers->bev != NULL ? REEL_GRID : 0;
    for (int i = 0; i < CAMERA_COUNT; i++) {
        wanted |= buffers->camera[i] != NULL ? REEL_CAMERAS : 0;
    }
    refresh(self, index, wanted & ~slot->fresh);
    if (buffers->bev != NULL) {
        memcpy(buffers->bev, shown.bev, BEV_BYTES);
    }
    for (int i = 0; i < CAMERA_COUNT; i++) {
        if (buffers->camera[i] != NULL) {
            memcpy(buffers->camera[i], shown.camera[i], CAMERA_BYTES);
        }
    }
}

/* Whether a planner that is shown so many frames, of so many bytes, can be shown these. */
static bool fits(const struct world_shot *shot, uint32_t frames_max, size_t bytes_max)
{
    for (uint32_t k = 0; k < shot->count; k++) {
        if (shot->bytes[k] > bytes_max) {
            return false;
        }
    }
    return shot->count >= 1 && shot->count <= frames_max;
}

static bool slot_shot(const struct world *world, uint32_t index, uint32_t camera,
                      uint32_t jpeg_quality, uint32_t frames_max, size_t bytes_max,
                      struct world_shot *out, const uint8_t **frames)
{
    const struct golden_world *self = self_of(world);
    struct golden_slot *slot = &self->slots[index];
    const uint32_t tick = self->drives->ops->slot_scene(self->drives, index)->tick;
    if (slot->stats.diverged) {
        return false;
    }
    if (recording_shot(slot->recording, slot->rollout, tick, camera, jpeg_quality, out, frames) &&
        fits(out, frames_max, bytes_max)) {
        return true;
    }
    snprintf(slot->stats.fault, sizeof slot->stats.fault,
             "golden %.31s: tick %u: no frames of camera %u in jpeg:%u were recorded that fit",
             golden_library_list(self->library)->name, tick, camera, jpeg_quality);
    return false;
}

/* Does what rig_commit does (engine/worlds/foreign_rig_chunk.c), and counts the chunk that a step
 * then makes. */
static void slot_commit(struct world *world, uint32_t index, struct action *action)
{
    const struct golden_world *self = self_of(world);
    const struct golden_list *list = golden_library_list(self->library);
    struct golden_slot *slot = &self->slots[index];
    const uint32_t tick = self->drives->ops->slot_scene(self->drives, index)->tick;
    const uint32_t frames = list->rate_hz / 10;
    const struct action wanted = *action;
    if (list->chunk_frames == 0) {
        return;
    }
    *action = tick < slot->committed_until ? slot->committed : wanted;
    if (slot->last < (tick + 1) * frames) {
        slot->last += slot->last == 0 ? list->first_frames : list->chunk_frames;
        slot->committed = wanted;
        slot->committed_until = (slot->last + frames - 1) / frames;
    }
}

static const struct scene *slot_scene(const struct world *world, uint32_t index)
{
    const struct world *drives = self_of(world)->drives;
    return drives->ops->slot_scene(drives, index);
}

static const struct frame_stats *slot_frame_stats(const struct world *world, uint32_t index)
{
    return &slot_of(world, index)->stats;
}

static enum status slot_intervene(struct world *world, uint32_t index,
                                  const struct intervention *intervention, struct error *error)
{
    struct golden_world *self = self_of(world);
    TRY(self->drives->ops->slot_intervene(self->drives, index, intervention, error));
    follow(self, index);
    return STATUS_OK;
}

/* ---- branches ---- */

/* All but the memory of pictures. */
static void copy(struct golden_world *self, struct golden_slot *to, const struct golden_slot *from)
{
    uint8_t *shown = to->shown;
    *to = *from;
    to->shown = shown;
    to->fresh = 0;
    golden_library_share(self->library, to->recording);
}

static void slot_fork(struct world *world, uint32_t from, uint32_t to)
{
    struct golden_world *self = self_of(world);
    self->drives->ops->slot_fork(self->drives, from, to);
    copy(self, &self->slots[to], &self->slots[from]);
}

/* A state: the slot, and behind it that of the object world. */
static size_t own_bytes(void)
{
    return (sizeof(struct golden_slot) + STATE_ALIGN - 1) / STATE_ALIGN * STATE_ALIGN;
}

static void *state_of_drive(void *state)
{
    return (uint8_t *)state + own_bytes();
}

static size_t slot_state_bytes(const struct world *world)
{
    const struct world *drives = self_of(world)->drives;
    return own_bytes() + drives->ops->slot_state_bytes(drives);
}

static void slot_save(const struct world *world, uint32_t index, void *state)
{
    struct golden_world *self = self_of(world);
    struct golden_slot *saved = state;
    memset(saved, 0, own_bytes());
    copy(self, saved, &self->slots[index]);
    self->drives->ops->slot_save(self->drives, index, state_of_drive(state));
}

static void slot_restore(struct world *world, uint32_t index, void *state)
{
    struct golden_world *self = self_of(world);
    struct golden_slot *saved = state;
    self->drives->ops->slot_restore(self->drives, index, state_of_drive(state));
    copy(self, &self->slots[index], saved);
    golden_library_give_back(self->library, saved->recording);
    saved->recording = NULL;
}

static void slot_state_drop(struct world *world, void *state)
{
    struct golden_world *self = self_of(world);
    struct golden_slot *saved = state;
    self->drives->ops->slot_state_drop(self->drives, state_of_drive(state));
    golden_library_give_back(self->library, saved->recording);
    saved->recording = NULL;
}

const struct world_ops world_golden_ops = {
    .name = "golden",
    .tier = TIER_GOLDEN,
    .has_truth = true,
    .open = open_world,
    .close = close_world,
    .accepts = accepts,
    .slot_reset = slot_reset,
    .slot_release = slot_release,
    .step = step,
    .slot_observe = slot_observe,
    .rig_take = rig_take,
    .slot_shot = slot_shot,
    .slot_commit = slot_commit,
    .slot_scene = slot_scene,
    .slot_intervene = slot_intervene,
    .slot_fork = slot_fork,
    .slot_state_bytes = slot_state_bytes,
    .slot_save = slot_save,
    .slot_restore = slot_restore,
    .slot_state_drop = slot_state_drop,
    .slot_frame_stats = slot_frame_stats,
};
