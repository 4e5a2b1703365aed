/*
 * Cells of a foreign world: who holds which state, and rollouts that are lost with theirs.
 */
#include "engine/worlds/foreign_internal.h"

#include <stdio.h>
#include <string.h>

enum { CALL_TEXT_BYTES = 400 };

void foreign_fault(const struct swerve_world_declared *declared, struct frame_stats *frame_stats,
                   uint32_t tick, const char *format, va_list args)
{
    struct error said; /* printable */
    if (frame_stats->fault[0] != '\0') {
        return;
    }
    error_setv(&said, STATUS_DEVICE, format, args);
    snprintf(frame_stats->fault, sizeof frame_stats->fault, "world %s %s: %.300s", declared->name,
             declared->version, said.text);
    frame_stats->tick = tick;
}

void foreign_lose(const struct foreign_world *self, struct foreign_slot *slot, const char *format,
                  ...)
{
    va_list args;
    va_start(args, format);
    foreign_fault(&self->declared, &slot->frame_stats, slot->drive.scene.tick, format, args);
    va_end(args);
}

void foreign_die(struct foreign_world *self)
{
    if (self->instance != NULL) {
        self->foreign->ops->close(self->instance);
        self->instance = NULL;
    }
}

bool foreign_lost(const struct foreign_world *self, struct foreign_slot *slot)
{
    if (self->instance == NULL || slot->generation != self->generation) {
        foreign_lose(self, slot, "it ended while this rollout was in it");
    }
    slot->frame_stats.tick = slot->drive.scene.tick;
    return slot->frame_stats.fault[0] != '\0';
}

int32_t foreign_take_cell(struct foreign_world *self)
{
    for (uint32_t i = 0; i < self->cell_count; i++) {
        if (self->cells[i].references == 0) {
            self->cells[i].references = 1;
            return (int32_t)i;
        }
    }
    CHECK(false); /* there is one for every slot and everything that can be parked */
    return FOREIGN_NO_CELL;
}

void foreign_leave_cell(struct foreign_world *self, struct foreign_slot *slot)
{
    if (slot->cell == FOREIGN_NO_CELL) {
        return;
    }
    struct foreign_cell *cell = &self->cells[slot->cell];
    CHECK(cell->references > 0);
    cell->references--;
    if (cell->references == 0 && self->instance != NULL && slot->generation == self->generation) {
        self->foreign->ops->drop(self->instance, (uint32_t)slot->cell);
    }
    slot->cell = FOREIGN_NO_CELL;
}

void foreign_own(struct foreign_world *self, struct foreign_slot *slot)
{
    char text[CALL_TEXT_BYTES] = "";
    struct foreign_cell *from = &self->cells[slot->cell];
    if (from->references == 1) {
        return;
    }
    int32_t index = foreign_take_cell(self);
    struct foreign_cell *to = &self->cells[index];
    if (self->foreign->ops->fork(self->instance, (uint32_t)slot->cell, (uint32_t)index, text,
                                 sizeof text) != 0) {
        to->references = 0;
        text[sizeof text - 1] = '\0';
        foreign_lose(self, slot, "fork: %s", text);
        return;
    }
    to->window = from->window;
    memcpy(to->shown, from->shown, (size_t)self->layout.bev_bytes + self->layout.cameras_bytes);
    if (to->measured != to->shown) {
        memcpy(to->measured, from->measured, FRAME_BYTES);
    }
    from->references--;
    slot->cell = index;
}
