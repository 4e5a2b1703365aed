/*
 * Foreign worlds: open and close, the beginning of a rollout, branches. See foreign.h.
 */
#include "engine/worlds/foreign_internal.h"

#include "engine/learned/frame_measure.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT_SEED 0 /* of the first frame, which rollouts of a scenario share */

enum {
    PARKED_MAX = 64 + 16, /* beside a main line for each slot: what the worker and learners park */
    CALL_TEXT_BYTES = 400,
};

/* ---- open and close ---- */

static void set_guards(struct foreign_world *self)
{
    for (uint32_t i = 0; i < self->cell_count; i++) {
        uint8_t *cell = foreign_memory(self, (int32_t)i);
        memset(cell + self->layout.guard, FOREIGN_GUARD, FOREIGN_GUARD_BYTES);
        memset(cell + self->layout.agents_guard, FOREIGN_GUARD, FOREIGN_GUARD_BYTES);
    }
}

static enum status open_instance(struct foreign_world *self, struct error *error)
{
    const struct swerve_world_setup setup = {
        .state_count = self->cell_count,
        .batch_max = self->base.slot_count,
        .thread_count = self->thread_count,
        .memory = self->memory,
        .memory_bytes = self->memory_bytes,
        .memory_fd = self->memory_fd,
        .conditioning = (uint32_t)self->conditioning,
    };
    set_guards(self);
    TRY(foreign_instance_open(self->foreign, &setup, &self->instance, &self->declared, error));
    self->generation++;
    return STATUS_OK;
}

static void close_world(struct world *world)
{
    if (world == NULL) {
        return;
    }
    struct foreign_world *self = foreign_of(world);
    for (uint32_t i = 0; self->slots != NULL && i < world->slot_count; i++) {
        drive_release(&self->slots[i].drive);
    }
    if (self->instance != NULL) {
        self->foreign->ops->close(self->instance);
    }
    foreign_instance_unshare(self->memory_bytes, self->memory_fd, self->memory);
    threads_destroy(self->threads);
    free(self->cells);
    free(self->frames);
    free(self->slots);
    free(self->steps);
    free(self->given);
    free(self->made);
    free(self->layouts);
    free(self->expected);
    free(self->scratch);
    free(self);
}

static enum status create_parts(struct foreign_world *self, uint32_t cells, struct error *error)
{
    uint32_t n = self->base.slot_count;
    bool ego = self->foreign->declared.form == SWERVE_WORLD_FORM_EGO;
    size_t shown = (size_t)self->layout.bev_bytes + self->layout.cameras_bytes;
    size_t each = shown + (ego ? (size_t)FRAME_BYTES : 0);
    self->cell_count = cells;
    self->cells = calloc(cells, sizeof *self->cells);
    self->frames = calloc(cells, each);
    self->slots = calloc(n, sizeof *self->slots);
    self->steps = calloc(n, sizeof *self->steps);
    self->given = calloc(n, sizeof *self->given);
    self->made = calloc(n, sizeof *self->made);
    self->layouts = malloc((size_t)n * FRAME_BYTES);
    self->expected = malloc(sizeof *self->expected);
    self->scratch = malloc(2 * (size_t)FRAME_BYTES);
    if (self->cells == NULL || self->frames == NULL || self->slots == NULL || self->steps == NULL ||
        self->given == NULL || self->made == NULL || self->layouts == NULL ||
        self->expected == NULL || self->scratch == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "world: no memory for %u slots", n);
    }
    for (uint32_t i = 0; i < cells; i++) {
        self->cells[i].shown = self->frames + i * each;
        self->cells[i].measured = self->cells[i].shown + (ego ? shown : 0);
    }
    self->memory_bytes = self->cell_count * self->layout.stride;
    TRY(foreign_instance_share(self->memory_bytes, &self->memory_fd, &self->memory, error));
    return threads_create(self->thread_count, &self->threads, error);
}

static enum status open_world(const struct world_ops *ops, const struct foreign *foreign,
                              const struct world_config *config, uint32_t cells, struct world **out,
                              struct error *error)
{
    struct foreign_world *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "world: no memory"));
    self->base = (struct world){ops, config->slot_count};
    self->foreign = foreign;
    self->conditioning = conditioning_of_network(config->conditioning);
    self->foresees = conditioning_foresees(config->conditioning);
    self->by_tokens = config->conditioning == CONDITIONING_TOKENS;
    self->memory_fd = -1;
    self->thread_count = config->thread_count > 0 ? config->thread_count : 1;
    self->layout = foreign_layout_of((enum swerve_world_form)foreign->declared.form);
    enum status status = create_parts(self, cells, error);
    THEN(status, open_instance(self, error));
    if (status != STATUS_OK) {
        close_world(&self->base);
        return status;
    }
    *out = &self->base;
    return STATUS_OK;
}

static enum status open_tier(const struct world_ops *ops, const struct world_config *config,
                             struct world **out, struct error *error)
{
    const struct foreign *foreign = config->foreign;
    TRY(world_check_slots(ops->name, config->slot_count, error));
    CHECK(foreign != NULL && (unsigned)config->conditioning < CONDITIONING_CHOICES);
    if (!foreign_drives_in(foreign, config->conditioning)) {
        return error_set(error, STATUS_DEVICE,
                         "world %s: in conditioning \"%s\" somebody must say where agents are: "
                         "expected SWERVE_WORLD_MOVES_AGENTS, frames in the WINDOW form, or "
                         "conditioning \"agents\"",
                         foreign->declared.name, conditioning_names[config->conditioning]);
    }
    return open_world(ops, foreign, config, 2 * config->slot_count + PARKED_MAX, out, error);
}

static enum status student_open(const struct world_config *config, struct world **out,
                                struct error *error)
{
    return open_tier(&world_foreign_student_ops, config, out, error);
}

static enum status teacher_open(const struct world_config *config, struct world **out,
                                struct error *error)
{
    return open_tier(&world_foreign_teacher_ops, config, out, error);
}

enum status foreign_ask(const struct foreign *foreign, struct swerve_world_declared *declared,
                        struct error *error)
{
    struct foreign unknown = *foreign;
    const struct world_config config = {.slot_count = 1};
    struct world *world = NULL;
    unknown.declared = (struct swerve_world_declared){.form = SWERVE_WORLD_FORM_WINDOW};
    TRY(open_world(&world_foreign_student_ops, &unknown, &config, 1, &world, error));
    *declared = foreign_of(world)->declared;
    close_world(world);
    return STATUS_OK;
}

/* ---- faults ---- */

/* The slot is free, and zeros but for what nobody reads. */

/* ---- the beginning of a rollout ---- */

static void leave_slot(struct foreign_world *self, struct foreign_slot *slot)
{
    const size_t first = offsetof(struct foreign_slot, cell);
    foreign_leave_cell(self, slot);
    drive_release(&slot->drive);
    memset((char *)slot + first, 0, offsetof(struct foreign_slot, tracks) - first);
}

/* The first frame: what the sensors saw, for the world and as what is shown at tick 0. */
static void draw_first(struct foreign_world *self, struct foreign_slot *slot)
{
    struct foreign_cell *cell = &self->cells[slot->cell];
    uint8_t *frame = cell->measured;
    cell->window = window_of(anchor_local(&slot->anchor, slot->drive.scene.ego.pose));
    layout_sensed(slot->drive.prepared, &slot->drive.scene, CONTEXT_SEED, &slot->anchor,
                  cell->window, frame, frame + FRAME_BEV_BYTES);
    if (cell->shown != cell->measured) {
        foreign_to_ego(slot, self->conditioning, cell->window, frame, cell->shown);
    }
    memcpy(foreign_memory(self, slot->cell) + self->layout.raster, cell->shown,
           (size_t)self->layout.bev_bytes + self->layout.cameras_bytes);
    slot->frame_stats.horizon_ticks = self->declared.horizon_ticks;
    if (self->foresees && slot->frame_stats.horizon_ticks > SCENE_FORESEEN_TICKS) {
        slot->frame_stats.horizon_ticks = SCENE_FORESEEN_TICKS;
    }
    frame_measure(&(struct frame_measure_input){.conditioning = self->conditioning, .frame = frame},
                  &slot->frame_stats);
}

static enum status slot_reset(struct world *world, uint32_t index, struct prepared *prepared,
                              uint64_t seed, struct error *error)
{
    struct foreign_world *self = foreign_of(world);
    struct swerve_world_given given;
    char text[CALL_TEXT_BYTES] = "";
    CHECK(index < world->slot_count && self->slots[index].drive.prepared == NULL);
    struct foreign_slot *slot = &self->slots[index];
    TRY(world_object_ops.accepts(prepared->scenario, error));
    if (self->instance != NULL && self->foreign->ended != NULL &&
        self->foreign->ended(self->instance)) {
        foreign_die(self); /* while it began or forked a rollout: no step has told of it */
    }
    if (self->instance == NULL) { /* it died; whoever was in it is lost, the next may go on */
        TRY(open_instance(self, error));
    }
    drive_reset(&slot->drive, prepared, seed, false);
    slot->anchor = anchor_make(prepared->scenario->ego.pose);
    slot->generation = self->generation;
    slot->cell = foreign_take_cell(self);
    draw_first(self, slot);
    struct window window = self->cells[slot->cell].window;
    if (self->conditioning != CONDITIONING_AGENTS || self->foresees) {
        extract_start(prepared, &slot->anchor, window, self->expected, &slot->drive.scene,
                      slot->tracks);
    }
    if (self->foresees && drive_foresee(&slot->drive, self->by_tokens, error) != STATUS_OK) {
        leave_slot(self, slot);
        return error_prefix(error, "world %s", self->declared.name);
    }
    foreign_give(self, slot, window, &slot->drive.scene.ego, &(struct action){0}, &given);
    if (self->foreign->ops->reset(self->instance, &given, text, sizeof text) != 0) {
        text[sizeof text - 1] = '\0';
        foreign_lose(self, slot, "reset: %s", text);
    }
    return STATUS_OK;
}

static void slot_release(struct world *world, uint32_t index)
{
    leave_slot(foreign_of(world), foreign_occupied(world, index));
}

/* ---- looking ---- */

static void slot_observe(const struct world *world, uint32_t index,
                         const struct observation_buffers *buffers)
{
    const struct foreign_world *self = foreign_of(world);
    const struct foreign_slot *slot = foreign_occupied(world, index);
    const struct foreign_cell *cell = &self->cells[slot->cell];
    bool ego = self->declared.form == SWERVE_WORLD_FORM_EGO;
    const uint8_t *cameras = cell->shown + self->layout.bev_bytes;
    if (buffers->bev != NULL && ego) {
        memcpy(buffers->bev, cell->shown, BEV_BYTES);
    } else if (buffers->bev != NULL) {
        layout_observe_bev(slot->drive.prepared, &slot->drive.scene, &slot->anchor, cell->window,
                           self->conditioning, cell->shown, buffers->bev);
    }
    for (size_t camera = 0; camera < CAMERA_COUNT; camera++) {
        if (buffers->camera[camera] != NULL && ego) {
            memcpy(buffers->camera[camera], cameras + camera * CAMERA_BYTES, CAMERA_BYTES);
        } else if (buffers->camera[camera] != NULL) {
            layout_camera_unpack(cameras + camera * FRAME_CAMERA_POSITIONS * FRAME_CAMERA_CHANNELS,
                                 buffers->camera[camera]);
        }
    }
}

static const struct scene *slot_scene(const struct world *world, uint32_t index)
{
    return &foreign_occupied(world, index)->drive.scene;
}

static const struct frame_stats *slot_frame_stats(const struct world *world, uint32_t index)
{
    return &foreign_occupied(world, index)->frame_stats;
}

static void cost(const struct world *world, struct world_cost *out)
{
    const struct foreign_world *self = foreign_of(world);
    *out = (struct world_cost){
        .ticks = self->ticks, .pages_shared = self->forks_shared, .foreign_ns = self->step_ns};
}

/* ---- branches ---- */

static enum status slot_intervene(struct world *world, uint32_t index,
                                  const struct intervention *intervention, struct error *error)
{
    const struct foreign_world *self = foreign_of(world);
    if (intervention->kind != INTERVENE_CONDITIONS && self->conditioning != CONDITIONING_AGENTS) {
        return error_set(error, STATUS_BAD_INPUT,
                         "world %s: in conditioning \"%s\" the world moves the agents; expected "
                         "an intervention on conditions (or conditioning \"agents\"), found kind "
                         "%d of agent %d",
                         self->declared.name, conditioning_names[self->conditioning],
                         (int)intervention->kind, intervention->agent);
    }
    return drive_intervene(&foreign_occupied(world, index)->drive, intervention, error);
}

static void share_slot(struct foreign_world *self, struct foreign_slot *to,
                       const struct foreign_slot *from)
{
    drive_copy(&to->drive, &from->drive);
    to->cell = from->cell;
    to->generation = from->generation;
    to->anchor = from->anchor;
    to->frame_stats = from->frame_stats;
    memcpy(to->tracks, from->tracks, from->drive.scene.agent_count * sizeof from->tracks[0]);
    self->cells[to->cell].references++;
    self->forks_shared++;
}

static void slot_fork(struct world *world, uint32_t from, uint32_t to)
{
    CHECK(to < world->slot_count && foreign_of(world)->slots[to].drive.prepared == NULL);
    share_slot(foreign_of(world), &foreign_of(world)->slots[to], foreign_occupied(world, from));
}

static size_t slot_state_bytes(const struct world *world)
{
    (void)world;
    return sizeof(struct foreign_slot);
}

static void slot_save(const struct world *world, uint32_t index, void *state)
{
    struct foreign_world *self = foreign_of(world);
    const struct foreign_slot *slot = foreign_occupied(world, index);
    memset(state, 0, sizeof *slot);
    share_slot(self, state, slot);
    if (self->foreign->ops->park != NULL && self->instance != NULL &&
        slot->generation == self->generation) {
        self->foreign->ops->park(self->instance, (uint32_t)slot->cell);
    }
}

static void slot_restore(struct world *world, uint32_t index, void *state)
{
    struct foreign_world *self = foreign_of(world);
    CHECK(index < world->slot_count && self->slots[index].drive.prepared == NULL);
    struct foreign_slot *slot = &self->slots[index];
    struct foreign_slot *parked = state;
    CHECK(parked->drive.prepared != NULL);
    *slot = *parked; /* the references move along */
    parked->drive.prepared = NULL;
    if (self->foreign->ops->restore != NULL && self->instance != NULL &&
        slot->generation == self->generation) {
        self->foreign->ops->restore(self->instance, (uint32_t)slot->cell);
    }
}

static void slot_state_drop(struct world *world, void *state)
{
    leave_slot(foreign_of(world), state);
}

static enum status accepts(const struct scenario *scenario, struct error *error)
{
    return world_object_ops.accepts(scenario, error);
}

#define FOREIGN_OPS(TIER, OPEN)                                                                 \
    {                                                                                           \
        .name = "foreign", .tier = TIER, .has_truth = true, .open = OPEN, .close = close_world, \
        .accepts = accepts, .slot_reset = slot_reset, .slot_release = slot_release,             \
        .step = foreign_step_world, .slot_observe = slot_observe, .slot_scene = slot_scene,     \
        .slot_intervene = slot_intervene, .slot_fork = slot_fork,                               \
        .slot_state_bytes = slot_state_bytes, .slot_save = slot_save,                           \
        .slot_restore = slot_restore, .slot_state_drop = slot_state_drop,                       \
        .slot_frame_stats = slot_frame_stats, .cost = cost,                                     \
    }

const struct world_ops world_foreign_student_ops = FOREIGN_OPS(TIER_STUDENT, student_open);
const struct world_ops world_foreign_teacher_ops = FOREIGN_OPS(TIER_TEACHER, teacher_open);
