/*
 * Past of a rollout in a world of the form RIG: reels of frames, logs, and which cells the instance
 * keeps the state of. See foreign_rig_internal.h.
 */
#include "engine/worlds/foreign_rig_internal.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

struct rig_reel *rig_reel_create(const struct rig_world *self, uint32_t first, uint32_t count)
{
    struct rig_reel *reel = malloc(sizeof *reel + count * self->frame_bytes);
    if (reel != NULL) {
        reel->references = 1;
        reel->first = first;
        reel->count = count;
    }
    return reel;
}

void rig_reel_leave(struct rig_reel *reel)
{
    if (reel != NULL && --reel->references == 0) {
        free(reel);
    }
}

/* ---- logs ---- */

static size_t bodies_bytes(const struct swerve_world_chunk *chunk)
{
    return (size_t)chunk->frame_count * chunk->body_count * sizeof(struct swerve_world_body);
}

bool rig_log_keep(const struct rig_world *self, struct rig_slot *slot, uint32_t place,
                  const struct swerve_world_chunk *chunk)
{
    if (self->state_count == self->cell_count) {
        return true; /* no state ever has to go */
    }
    struct rig_log *log = malloc(sizeof *log + bodies_bytes(chunk));
    if (log == NULL) {
        return false;
    }
    log->references = 1;
    log->before = slot->log; /* the reference moves along */
    log->hash = 0;
    log->chunk = *chunk;
    memcpy(log->bodies, rig_place(self, place) + self->bodies_at, bodies_bytes(chunk));
    slot->log = log;
    return true;
}

void rig_log_leave(struct rig_log *log)
{
    while (log != NULL && --log->references == 0) {
        struct rig_log *before = log->before;
        free(log);
        log = before;
    }
}

uint64_t rig_hash_frames(const struct rig_world *self, const uint8_t *frames, uint32_t count)
{
    uint64_t hash = 0;
    for (uint32_t c = 0; c < self->rig.camera_count; c++) {
        const struct rig_camera *camera = &self->rig.cameras[c];
        const size_t bytes = self->camera_at[c + 1] - self->camera_at[c];
        for (uint32_t i = 0; i < count; i++) {
            struct watch_sums sums;
            watch_measure(frames + self->camera_at[c] * count + i * bytes, camera->width,
                          camera->height, &sums);
            hash = (hash ^ sums.hash) * UINT64_C(1099511628211);
        }
    }
    return hash;
}

/* ---- states ---- */

int rig_reset_state(struct rig_world *self, struct prepared *prepared,
                    const struct swerve_world_chunk *chunk, char text[RIG_CALL_TEXT_BYTES])
{
    if (self->foreign->meet != NULL) {
        self->foreign->meet(self->instance, prepared);
    }
    int failed = self->foreign->ops->reset_rig(self->instance, chunk, text, RIG_CALL_TEXT_BYTES);
    text[RIG_CALL_TEXT_BYTES - 1] = '\0';
    return failed;
}

int32_t rig_take_cell(struct rig_world *self)
{
    for (uint32_t i = 0; i < self->cell_count; i++) {
        if (self->cells[i].references == 0) {
            self->cells[i] = (struct rig_cell){1, RIG_NO_STATE, 0};
            return (int32_t)i;
        }
    }
    CHECK(false); /* there is one for every slot and everything that can be parked */
    return FOREIGN_NO_CELL;
}

static int32_t free_state(const struct rig_world *self)
{
    for (uint32_t i = 0; i < self->state_count; i++) {
        if (self->cell_of[i] == FOREIGN_NO_CELL) {
            return (int32_t)i;
        }
    }
    return RIG_NO_STATE;
}

static void give_state(struct rig_world *self, int32_t cell, int32_t state)
{
    self->cells[cell].state = state;
    self->cell_of[state] = cell;
}

/* The state of the cell that was stepped longest ago, free again. */
static int32_t push_out(struct rig_world *self, uint64_t started)
{
    int32_t state = RIG_NO_STATE;
    for (uint32_t i = 0; i < self->state_count; i++) {
        const struct rig_cell *cell = &self->cells[self->cell_of[i]];
        if (cell->used <= started &&
            (state < 0 || cell->used < self->cells[self->cell_of[state]].used)) {
            state = (int32_t)i;
        }
    }
    CHECK(state >= 0); /* a batch is no larger than what the world keeps */
    self->foreign->ops->drop(self->instance, (uint32_t)state);
    self->cells[self->cell_of[state]].state = RIG_NO_STATE;
    self->cell_of[state] = FOREIGN_NO_CELL;
    return state;
}

void rig_take_state(struct rig_world *self, int32_t cell, uint64_t started)
{
    int32_t state = free_state(self);
    give_state(self, cell, state >= 0 ? state : push_out(self, started));
}

void rig_leave_cell(struct rig_world *self, struct rig_slot *slot)
{
    if (slot->cell == FOREIGN_NO_CELL) {
        return;
    }
    struct rig_cell *cell = &self->cells[slot->cell];
    CHECK(cell->references > 0);
    cell->references--;
    if (cell->references == 0 && cell->state >= 0) {
        if (self->instance != NULL && slot->generation == self->generation) {
            self->foreign->ops->drop(self->instance, (uint32_t)cell->state);
        }
        self->cell_of[cell->state] = FOREIGN_NO_CELL;
        cell->state = RIG_NO_STATE;
    }
    slot->cell = FOREIGN_NO_CELL;
}

/* A cell of the slot's own, with a copy of the state, or the state itself: who goes on first has
 * it, and the others make theirs anew. */
static bool part(struct rig_world *self, struct rig_slot *slot, uint64_t started)
{
    char text[RIG_CALL_TEXT_BYTES] = "";
    struct rig_cell *from = &self->cells[slot->cell];
    int32_t index = rig_take_cell(self);
    int32_t to = from->state >= 0 ? free_state(self) : RIG_NO_STATE;
    if (to >= 0 && self->foreign->ops->fork(self->instance, (uint32_t)from->state, (uint32_t)to,
                                            text, sizeof text) != 0) {
        self->cells[index].references = 0;
        text[sizeof text - 1] = '\0';
        rig_lose(self, slot, "fork: %s", text);
        return false;
    }
    if (to >= 0) {
        give_state(self, index, to);
    } else if (from->state >= 0 && from->used <= started) {
        give_state(self, index, from->state);
        from->state = RIG_NO_STATE;
    }
    from->references--;
    slot->cell = index;
    return true;
}

/* Asks the world again what an entry of the log asked; its answer. */
static int ask_again(struct rig_world *self, struct prepared *prepared, const struct rig_log *log,
                     const struct swerve_world_chunk *chunk, struct swerve_world_made *made,
                     char *text)
{
    int64_t start_ns = clock_now_ns(clock_system());
    int failed = log->before == NULL ? rig_reset_state(self, prepared, chunk, text)
                                     : self->foreign->ops->step_rig(self->instance, 1, chunk, made,
                                                                    text, RIG_CALL_TEXT_BYTES);
    self->step_ns += clock_now_ns(clock_system()) - start_ns;
    text[RIG_CALL_TEXT_BYTES - 1] = '\0';
    return failed;
}

/* One entry of the log, done again. False: the slot is lost. */
static bool repeat(struct rig_world *self, struct rig_slot *slot, const struct rig_log *log)
{
    char text[RIG_CALL_TEXT_BYTES] = "";
    const uint32_t state = (uint32_t)self->cells[slot->cell].state;
    struct swerve_world_chunk chunk = log->chunk;
    struct swerve_world_made made = {state, SWERVE_WORLD_FAILED, 0, 0};
    if (log->before == NULL) {
        drive_reset(&self->ahead, slot->drive.prepared, slot->drive.seed, false);
        rig_draw_first(self, &self->ahead, 0, &chunk);
        drive_release(&self->ahead);
    } else {
        rig_clear_place(self, 0, chunk.frame_count);
        memcpy(rig_place(self, 0) + self->bodies_at, log->bodies, bodies_bytes(&chunk));
        rig_address(self, 0, &chunk);
    }
    chunk.state = state;
    if (ask_again(self, slot->drive.prepared, log, &chunk, &made, text) != 0) {
        rig_lose(self, slot, "its past made anew, frame %u: %s", chunk.first_frame, text);
        if (log->before != NULL) {
            rig_die(self);
        }
        return false;
    }
    if (log->before != NULL && !rig_check_made(self, slot, 0, &chunk, &made)) {
        return false;
    }
    if (log->before != NULL &&
        rig_hash_frames(self, rig_place(self, 0), chunk.frame_count) != log->hash) {
        rig_lose(self, slot,
                 "its past made anew: frames %u to %u differ from those that were shown, and it "
                 "declares to be deterministic",
                 chunk.first_frame, chunk.first_frame + chunk.frame_count - 1);
        return false;
    }
    return true;
}

/* The cell's state from its log, oldest entry first. False: the slot is lost. */
static bool make_anew(struct rig_world *self, struct rig_slot *slot, uint64_t started)
{
    uint32_t count = 0;
    for (const struct rig_log *log = slot->log; log != NULL; log = log->before) {
        count++;
    }
    const struct rig_log **past = calloc(count + 1, sizeof *past);
    if (past == NULL || count == 0) {
        free(past);
        rig_lose(self, slot, "its past made anew: no memory for %u chunks", count);
        return false;
    }
    for (const struct rig_log *log = slot->log; log != NULL; log = log->before) {
        past[--count] = log;
    }
    rig_take_state(self, slot->cell, started);
    bool good = true;
    for (uint32_t i = 0; past[i] != NULL && good; i++) {
        good = repeat(self, slot, past[i]);
    }
    free(past);
    return good;
}

bool rig_own(struct rig_world *self, struct rig_slot *slot, uint64_t started)
{
    if (self->cells[slot->cell].references > 1 && !part(self, slot, started)) {
        return false;
    }
    if (self->cells[slot->cell].state < 0 && !make_anew(self, slot, started)) {
        return false;
    }
    self->cells[slot->cell].used = ++self->uses;
    return true;
}
