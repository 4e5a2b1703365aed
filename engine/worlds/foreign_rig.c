/*
 * Foreign worlds of the form RIG: open and close, the rig, the beginning of a rollout, looking,
 * branches. See foreign.h and foreign_rig_internal.h.
 */
#include "engine/worlds/foreign_rig_internal.h"

#include "base/dmath.h"
#include "base/units.h"
#include "engine/sensors/raster.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARKED_MAX = 64 + 16 }; /* beside a main line for each slot, as in foreign.c */

/* A camera stands for one of the built-in rig's when its axis is no farther from it. */
#define STANDS_FOR_RAD (45.0 * PI_RAD / 180.0)

/* ---- open and close ---- */

static enum status open_instance(struct rig_world *self, struct error *error)
{
    const struct swerve_world_setup setup = {
        .state_count = self->state_count,
        .batch_max = self->batch_max,
        .thread_count = self->thread_count,
        .memory = self->memory,
        .memory_bytes = self->memory_bytes,
        .memory_fd = self->memory_fd,
        .conditioning = CONDITIONING_AGENTS,
        .rig = self->text,
    };
    TRY(foreign_instance_open(self->foreign, &setup, &self->instance, &self->declared, error));
    self->generation++;
    return STATUS_OK;
}

/* Forgets the rig and all that follows from it. */
static void leave_rig(struct rig_world *self)
{
    rig_die(self);
    foreign_instance_unshare(self->memory_bytes, self->memory_fd, self->memory);
    self->memory = NULL;
    self->memory_fd = -1;
    for (uint32_t i = 0; i < RIG_CAMERAS_MAX; i++) {
        raster_rays_destroy(self->rays[i]);
        actors_destroy(self->actors[i]);
        self->rays[i] = NULL;
        self->actors[i] = NULL;
    }
    free(self->text);
    self->text = NULL;
    self->taken = false;
}

static void close_world(struct world *world)
{
    if (world == NULL) {
        return;
    }
    struct rig_world *self = rig_world_of(world);
    for (uint32_t i = 0; self->slots != NULL && i < world->slot_count; i++) {
        struct rig_slot *slot = &self->slots[i];
        drive_release(&slot->drive);
        rig_reel_leave(slot->reel);
        rig_reel_leave(slot->before);
        rig_log_leave(slot->log);
    }
    leave_rig(self);
    free(self->cell_of);
    free(self->cells);
    free(self->slots);
    free(self->due);
    free(self->chunks);
    free(self->made);
    free(self);
}

static enum status create_parts(struct rig_world *self, struct error *error)
{
    const uint32_t n = self->base.slot_count;
    self->cell_of = calloc(self->state_count, sizeof *self->cell_of);
    self->cells = calloc(self->cell_count, sizeof *self->cells);
    self->slots = calloc(n, sizeof *self->slots);
    self->due = calloc(n, sizeof *self->due);
    self->chunks = calloc(n, sizeof *self->chunks);
    self->made = calloc(n, sizeof *self->made);
    if (self->cell_of == NULL || self->cells == NULL || self->slots == NULL || self->due == NULL ||
        self->chunks == NULL || self->made == NULL) {
        self->state_count = self->cell_count = 0;
        return error_set(error, STATUS_NO_MEMORY, "world: no memory for %u slots", n);
    }
    rig_die(self); /* nobody has a state yet */
    return STATUS_OK;
}

static enum status rig_take(struct world *world, const struct rig *rig, struct error *error);

static enum status open_tier(const struct world_ops *ops, const struct world_config *config,
                             struct world **out, struct error *error)
{
    const struct foreign *foreign = config->foreign;
    TRY(world_check_slots(ops->name, config->slot_count, error));
    if (config->conditioning != CONDITIONING_AGENTS) {
        return error_set(error, STATUS_DEVICE,
                         "world %s: it is of the form RIG, which is given the agents: expected "
                         "conditioning \"agents\", found \"%s\"",
                         foreign->declared.name, conditioning_names[config->conditioning]);
    }
    struct rig_world *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "world: no memory"));
    self->base = (struct world){ops, config->slot_count};
    self->foreign = foreign;
    self->declared = foreign->declared;
    self->memory_fd = -1;
    self->picture_bounds = config->picture_bounds;
    self->picture_tally = config->picture_tally;
    self->thread_count = config->thread_count > 0 ? config->thread_count : 1;
    self->tick_frames = foreign->declared.rate_hz / FOREIGN_TICK_HZ;
    self->cell_count = 2 * config->slot_count + PARKED_MAX;
    self->state_count = self->cell_count;
    if (foreign->declared.states_max > 0 && foreign->declared.states_max < self->cell_count) {
        self->state_count = foreign->declared.states_max;
    }
    self->batch_max =
        self->state_count < config->slot_count ? self->state_count : config->slot_count;
    enum status status = create_parts(self, error);
    if (status == STATUS_OK && config->rig != NULL) {
        status = rig_take(&self->base, config->rig, error);
    }
    if (status != STATUS_OK) {
        close_world(&self->base);
        return status;
    }
    *out = &self->base;
    return STATUS_OK;
}

static enum status student_open(const struct world_config *config, struct world **out,
                                struct error *error)
{
    return open_tier(&world_foreign_rig_student_ops, config, out, error);
}

static enum status teacher_open(const struct world_config *config, struct world **out,
                                struct error *error)
{
    return open_tier(&world_foreign_rig_teacher_ops, config, out, error);
}

/* ---- the rig ---- */

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Whether its cameras have the world's rate, and there are some. */
static enum status check_rig(const struct rig_world *self, const struct rig *rig,
                             struct error *error)
{
    const struct swerve_world_declared *declared = &self->foreign->declared;
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        if (fabs(rig->cameras[i].rate_hz - declared->rate_hz) > 1e-6) {
            return error_set(error, STATUS_BAD_INPUT,
                             "world %s: expected cameras of %u Hz, which it makes, found camera %s "
                             "of the rig %s with %g Hz",
                             declared->name, declared->rate_hz, rig->cameras[i].id, rig->id,
                             rig->cameras[i].rate_hz);
        }
    }
    if (rig->camera_count == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "world %s: expected a rig with a camera, found %s with none",
                         declared->name, rig->id);
    }
    return STATUS_OK;
}

/* Which camera's pictures stand for the built-in rig's, where those of 64 x 96 pixels are shown. */
static void choose_stand_ins(struct rig_world *self)
{
    for (int i = 0; i < CAMERA_COUNT; i++) {
        double nearest_rad = STANDS_FOR_RAD;
        self->stands_for[i] = self->builtin ? i : -1;
        for (uint32_t c = 0; c < self->rig.camera_count && !self->builtin; c++) {
            double off_rad = fabs(dmath_wrap_angle(self->rig.cameras[c].pose.yaw_rad -
                                                   camera_calibrations[i].yaw_rad));
            if (off_rad < nearest_rad) {
                nearest_rad = off_rad;
                self->stands_for[i] = (int32_t)c;
            }
        }
    }
}

/* Sizes of frames, and of a place of the shared memory. */
static void lay_out(struct rig_world *self)
{
    self->frame_bytes = 0;
    for (uint32_t c = 0; c < self->rig.camera_count; c++) {
        const struct rig_camera *camera = &self->rig.cameras[c];
        self->camera_at[c] = self->frame_bytes;
        self->frame_bytes += (size_t)camera->width * (size_t)camera->height * 3;
    }
    self->camera_at[self->rig.camera_count] = self->frame_bytes;
    const size_t bodies = (size_t)self->foreign->declared.chunk_frames * LIMIT_AGENTS *
                          sizeof(struct swerve_world_body);
    self->guard_at = aligned(self->foreign->declared.chunk_frames * self->frame_bytes);
    self->bodies_at = self->guard_at + FOREIGN_GUARD_BYTES;
    self->bodies_guard_at = self->bodies_at + aligned(bodies);
    self->place_bytes = self->bodies_guard_at + FOREIGN_GUARD_BYTES;
    self->memory_bytes = self->batch_max * self->place_bytes;
}

/* The rig's text, and whether it is the built-in one's. */
static enum status write_rig(struct rig_world *self, struct error *error)
{
    struct rig *usual = malloc(sizeof *usual);
    char *text = NULL;
    TRY(memory_check(usual, error, "world: no memory"));
    rig_swerve(usual);
    enum status status = self->foreign->rig_text(usual, &text, error);
    THEN(status, self->foreign->rig_text(&self->rig, &self->text, error));
    self->builtin = status == STATUS_OK && strcmp(text, self->text) == 0;
    free(text);
    free(usual);
    return status;
}

static enum status rig_take(struct world *world, const struct rig *rig, struct error *error)
{
    struct rig_world *self = rig_world_of(world);
    for (uint32_t i = 0; i < world->slot_count; i++) {
        CHECK(self->slots[i].drive.prepared == NULL);
    }
    TRY(check_rig(self, rig, error));
    leave_rig(self);
    self->rig = *rig;
    enum status status = write_rig(self, error);
    choose_stand_ins(self);
    lay_out(self);
    for (uint32_t c = 0; c < rig->camera_count; c++) {
        THEN(status, raster_rays_create(&self->rig.cameras[c], c, &self->rays[c], error));
        THEN(status, actors_create(&self->rig.cameras[c], c, &self->actors[c], error));
    }
    THEN(status,
         foreign_instance_share(self->memory_bytes, &self->memory_fd, &self->memory, error));
    THEN(status, open_instance(self, error));
    if (status != STATUS_OK) {
        leave_rig(self);
        return error_prefix(error, "rig %s", rig->id);
    }
    self->taken = true;
    return STATUS_OK;
}

static const struct rig *rig_made(const struct world *world)
{
    return &rig_world_of(world)->rig;
}

/* The rig, where nobody gave one, and an instance, where it ended. */
static enum status revive(struct rig_world *self, struct error *error)
{
    if (!self->taken) {
        struct rig *rig = malloc(sizeof *rig);
        TRY(memory_check(rig, error, "world: no memory"));
        rig_swerve(rig);
        enum status status = rig_take(&self->base, rig, error);
        free(rig);
        return status;
    }
    if (self->instance != NULL && self->foreign->ended != NULL &&
        self->foreign->ended(self->instance)) {
        rig_die(self);
    }
    return self->instance == NULL ? open_instance(self, error) : STATUS_OK;
}

/* ---- the beginning of a rollout ---- */

static void leave_slot(struct rig_world *self, struct rig_slot *slot)
{
    const size_t first = offsetof(struct rig_slot, cell);
    rig_leave_cell(self, slot);
    rig_reel_leave(slot->reel);
    rig_reel_leave(slot->before);
    rig_log_leave(slot->log);
    drive_release(&slot->drive);
    memset((char *)slot + first, 0, sizeof *slot - first);
}

/* Statistics that are measured on a grid, or on small pictures: none. */
static void forget_grid(const struct rig_world *self, struct frame_stats *out)
{
    *out = (struct frame_stats){.horizon_ticks = self->foreign->declared.horizon_ticks};
    out->bev_change = out->camera_change = out->layout_iou = (double)NAN;
    out->surplus_cells = out->surplus_vru_cells = out->camera_layout_corr = (double)NAN;
}

static enum status slot_reset(struct world *world, uint32_t index, struct prepared *prepared,
                              uint64_t seed, struct error *error)
{
    struct rig_world *self = rig_world_of(world);
    struct swerve_world_chunk chunk;
    char text[RIG_CALL_TEXT_BYTES] = "";
    CHECK(index < world->slot_count && self->slots[index].drive.prepared == NULL);
    struct rig_slot *slot = &self->slots[index];
    TRY(world_object_ops.accepts(prepared->scenario, error));
    TRY(revive(self, error));
    struct rig_reel *reel = rig_reel_create(self, 0, 1);
    TRY(memory_check(reel, error, "world: no memory for a frame"));
    drive_reset(&slot->drive, prepared, seed, false);
    slot->reel = reel;
    slot->generation = self->generation;
    slot->cell = rig_take_cell(self);
    rig_take_state(self, slot->cell, self->uses);
    self->cells[slot->cell].used = ++self->uses;
    forget_grid(self, &slot->frame_stats);
    for (uint32_t c = 0; c < self->rig.camera_count; c++) {
        slot->watches[c].width = self->rig.cameras[c].width;
        slot->watches[c].height = self->rig.cameras[c].height;
    }
    rig_draw_first(self, &slot->drive, 0, &chunk);
    chunk.state = (uint32_t)self->cells[slot->cell].state;
    memcpy(reel->bytes, rig_place(self, 0), self->frame_bytes);
    if (!rig_log_keep(self, slot, 0, &chunk)) {
        rig_lose(self, slot, "reset: no memory for its log");
    } else if (rig_reset_state(self, prepared, &chunk, text) != 0) {
        rig_lose(self, slot, "reset: %s", text);
    } else if (self->foreign->writes_first) {
        memcpy(reel->bytes, rig_place(self, 0), self->frame_bytes);
    }
    return STATUS_OK;
}

static void slot_release(struct world *world, uint32_t index)
{
    leave_slot(rig_world_of(world), rig_occupied(world, index));
}

/* ---- looking ---- */

static const uint8_t *slot_frame(const struct world *world, uint32_t index, uint32_t camera,
                                 uint32_t back)
{
    const struct rig_world *self = rig_world_of(world);
    const struct rig_slot *slot = rig_occupied(world, index);
    const uint32_t now = slot->drive.scene.tick * self->tick_frames;
    CHECK(camera < self->rig.camera_count && back < self->tick_frames);
    if (back > now) {
        return NULL;
    }
    /* Of a rollout that is lost there is no newer frame than the last one made. */
    const uint32_t frame = now - back < slot->last ? now - back : slot->last;
    const struct rig_reel *reel = frame >= slot->reel->first ? slot->reel : slot->before;
    const size_t bytes = self->camera_at[camera + 1] - self->camera_at[camera];
    return reel->bytes + self->camera_at[camera] * reel->count + (frame - reel->first) * bytes;
}

/* The small pictures, of the cameras that stand for the built-in ones; a grid nobody makes is
 * unseen. */
static void slot_observe(const struct world *world, uint32_t index,
                         const struct observation_buffers *buffers)
{
    const struct rig_world *self = rig_world_of(world);
    if (buffers->bev != NULL) {
        memset(buffers->bev, 0, BEV_BYTES);
        memset(buffers->bev + (size_t)BEV_UNSEEN * BEV_CELLS, 255, BEV_CELLS);
    }
    for (int i = 0; i < CAMERA_COUNT; i++) {
        const int32_t c = self->stands_for[i];
        if (buffers->camera[i] != NULL && c < 0) {
            memset(buffers->camera[i], 0, CAMERA_BYTES);
        } else if (buffers->camera[i] != NULL) {
            const struct rig_camera *camera = &self->rig.cameras[c];
            watch_shrink(slot_frame(world, index, (uint32_t)c, 0), (uint32_t)camera->width,
                         (uint32_t)camera->height, CAMERA_COLS, CAMERA_ROWS, buffers->camera[i]);
        }
    }
}

static const struct scene *slot_scene(const struct world *world, uint32_t index)
{
    return &rig_occupied(world, index)->drive.scene;
}

static const struct frame_stats *slot_frame_stats(const struct world *world, uint32_t index)
{
    return &rig_occupied(world, index)->frame_stats;
}

static void cost(const struct world *world, struct world_cost *out)
{
    const struct rig_world *self = rig_world_of(world);
    *out = (struct world_cost){
        .ticks = self->ticks, .pages_shared = self->forks_shared, .foreign_ns = self->step_ns};
}

/* ---- branches ---- */

static enum status slot_intervene(struct world *world, uint32_t index,
                                  const struct intervention *intervention, struct error *error)
{
    return drive_intervene(&rig_occupied(world, index)->drive, intervention, error);
}

/* Shares all that the slot remembers with a free one. */
static void share_slot(struct rig_world *self, struct rig_slot *to, const struct rig_slot *from)
{
    const size_t first = offsetof(struct rig_slot, cell);
    drive_copy(&to->drive, &from->drive);
    memcpy((char *)to + first, (const char *)from + first, sizeof *to - first);
    self->cells[to->cell].references++;
    to->reel->references++;
    if (to->before != NULL) {
        to->before->references++;
    }
    if (to->log != NULL) {
        to->log->references++;
    }
    self->forks_shared++;
}

static void slot_fork(struct world *world, uint32_t from, uint32_t to)
{
    CHECK(to < world->slot_count && rig_world_of(world)->slots[to].drive.prepared == NULL);
    share_slot(rig_world_of(world), &rig_world_of(world)->slots[to], rig_occupied(world, from));
}

static size_t slot_state_bytes(const struct world *world)
{
    (void)world;
    return sizeof(struct rig_slot);
}

/* Tells the instance of a state that rests, or goes on, if it keeps it. */
static void hint(const struct rig_world *self, const struct rig_slot *slot,
                 void (*tell)(void *world, uint32_t state))
{
    if (tell != NULL && self->instance != NULL && self->cells[slot->cell].state >= 0 &&
        slot->generation == self->generation) {
        tell(self->instance, (uint32_t)self->cells[slot->cell].state);
    }
}

static void slot_save(const struct world *world, uint32_t index, void *state)
{
    struct rig_world *self = rig_world_of(world);
    const struct rig_slot *slot = rig_occupied(world, index);
    memset(state, 0, sizeof *slot);
    share_slot(self, state, slot);
    hint(self, slot, self->foreign->ops->park);
}

static void slot_restore(struct world *world, uint32_t index, void *state)
{
    struct rig_world *self = rig_world_of(world);
    CHECK(index < world->slot_count && self->slots[index].drive.prepared == NULL);
    struct rig_slot *slot = &self->slots[index];
    struct rig_slot *parked = state;
    CHECK(parked->drive.prepared != NULL);
    *slot = *parked; /* the references move along */
    parked->drive.prepared = NULL;
    hint(self, slot, self->foreign->ops->restore);
}

static void slot_state_drop(struct world *world, void *state)
{
    leave_slot(rig_world_of(world), state);
}

static enum status accepts(const struct scenario *scenario, struct error *error)
{
    return world_object_ops.accepts(scenario, error);
}

#define FOREIGN_RIG_OPS(TIER, OPEN)                                                             \
    {                                                                                           \
        .name = "foreign", .tier = TIER, .has_truth = true, .open = OPEN, .close = close_world, \
        .accepts = accepts, .slot_reset = slot_reset, .slot_release = slot_release,             \
        .step = rig_step_world, .slot_observe = slot_observe, .slot_scene = slot_scene,         \
        .rig_take = rig_take, .rig_made = rig_made, .slot_frame = slot_frame,                   \
        .slot_commit = rig_commit, .slot_intervene = slot_intervene, .slot_fork = slot_fork,    \
        .slot_state_bytes = slot_state_bytes, .slot_save = slot_save,                           \
        .slot_restore = slot_restore, .slot_state_drop = slot_state_drop,                       \
        .slot_frame_stats = slot_frame_stats, .cost = cost,                                     \
    }

const struct world_ops world_foreign_rig_student_ops = FOREIGN_RIG_OPS(TIER_STUDENT, student_open);
const struct world_ops world_foreign_rig_teacher_ops = FOREIGN_RIG_OPS(TIER_TEACHER, teacher_open);
