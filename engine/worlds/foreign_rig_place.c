/*
 * Places of the shared memory of a world of the form RIG: what lies there for the world, whether
 * what it answers can be believed, and rollouts that are lost. See foreign_rig_internal.h.
 */
#include "engine/worlds/foreign_rig_internal.h"

#include "engine/sensors/raster.h"

#include <string.h>

#define CONTEXT_SEED 0 /* of the first frame, which rollouts of a scenario share */

/* ---- faults ---- */

/* Whether the instance that holds the slot's state, or held it, is gone. */
static bool is_gone(const struct rig_world *self, const struct rig_slot *slot)
{
    return self->instance == NULL || slot->generation != self->generation ||
           (self->foreign->ended != NULL && self->foreign->ended(self->instance));
}

void rig_lose(const struct rig_world *self, struct rig_slot *slot, const char *format, ...)
{
    va_list args;
    if (slot->frame_stats.fault[0] == '\0') {
        slot->frame_stats.outage = self->foreign->outside && is_gone(self, slot);
    }
    va_start(args, format);
    foreign_fault(&self->foreign->declared, &slot->frame_stats, slot->drive.scene.tick, format,
                  args);
    va_end(args);
}

void rig_die(struct rig_world *self)
{
    if (self->instance != NULL) {
        self->foreign->ops->close(self->instance);
        self->instance = NULL;
    }
    for (uint32_t i = 0; i < self->state_count; i++) {
        self->cell_of[i] = FOREIGN_NO_CELL;
    }
    for (uint32_t i = 0; i < self->cell_count; i++) {
        self->cells[i].state = RIG_NO_STATE;
    }
}

bool rig_lost(const struct rig_world *self, struct rig_slot *slot)
{
    if (self->instance == NULL || slot->generation != self->generation) {
        rig_lose(self, slot, "it ended while this rollout was in it");
    }
    return slot->frame_stats.fault[0] != '\0';
}

/* ---- what is given ---- */

void rig_address(const struct rig_world *self, uint32_t place, struct swerve_world_chunk *chunk)
{
    const uint64_t base = place * self->place_bytes;
    chunk->bodies = base + self->bodies_at;
    for (uint32_t c = 0; c < self->rig.camera_count; c++) {
        chunk->frames[c] = base + self->camera_at[c] * chunk->frame_count;
    }
}

void rig_clear_place(struct rig_world *self, uint32_t place, uint32_t frame_count)
{
    uint8_t *memory = rig_place(self, place);
    memset(memory, 0, frame_count * self->frame_bytes);
    memset(memory + self->guard_at, FOREIGN_GUARD, FOREIGN_GUARD_BYTES);
    memset(memory + self->bodies_guard_at, FOREIGN_GUARD, FOREIGN_GUARD_BYTES);
}

void rig_put_frame(const struct rig_world *self, uint32_t place, const struct drive *drive,
                   const struct scene *scene, double time_s, uint32_t index,
                   struct swerve_world_chunk *chunk)
{
    const struct scenario *scenario = drive->prepared->scenario;
    uint8_t *bodies = rig_place(self, place) + self->bodies_at;
    chunk->poses[index] =
        (struct swerve_world_pose){time_s, scene->ego.pose.x_m, scene->ego.pose.y_m,
                                   scene->ego.pose.heading_rad, scene->ego.speed_mps};
    for (uint32_t i = 0; i < chunk->body_count; i++) {
        const struct agent_state *agent = &scene->agents[i];
        const struct agent *as = &scenario->agents[i];
        const struct swerve_world_body body = {
            agent->present,
            (uint32_t)as->kind,
            agent->pose.x_m,
            agent->pose.y_m,
            agent->pose.heading_rad,
            agent->speed_mps,
            as->length_m,
            as->width_m,
            as->height_m,
        };
        memcpy(bodies + (index * (size_t)chunk->body_count + i) * sizeof body, &body, sizeof body);
    }
}

struct swerve_world_chunk rig_chunk_of(const struct rig_world *self, const struct drive *drive,
                                       uint32_t first, uint32_t count)
{
    const struct conditions *conditions = &drive->scene.conditions;
    return (struct swerve_world_chunk){
        .first_frame = first,
        .frame_count = count,
        .camera_count = self->rig.camera_count,
        .body_count = drive->scene.agent_count,
        .weather = (uint32_t)conditions->weather,
        .light = (uint32_t)conditions->light,
        .seed = drive->seed,
        .friction = conditions->friction,
        .visibility_m = conditions->visibility_m,
    };
}

void rig_draw_first(struct rig_world *self, const struct drive *drive, uint32_t place,
                    struct swerve_world_chunk *out)
{
    const struct prepared *prepared = drive->prepared;
    *out = rig_chunk_of(self, drive, 0, 1);
    rig_clear_place(self, place, 1);
    rig_address(self, place, out);
    rig_put_frame(self, place, drive, &drive->scene, 0.0, 0, out);
    for (uint32_t c = 0; c < self->rig.camera_count; c++) {
        raster_rays_draw(prepared->layers, prepared->scenario, &drive->scene, CONTEXT_SEED,
                         self->rays[c], self->memory + out->frames[c]);
    }
}

/* ---- what came back ---- */

bool rig_check_made(const struct rig_world *self, struct rig_slot *slot, uint32_t place,
                    const struct swerve_world_chunk *chunk, const struct swerve_world_made *made)
{
    const uint8_t *memory = rig_place(self, place);
    const uint32_t first = chunk->first_frame;
    if (made->state != chunk->state) {
        rig_lose(self, slot, "frame %u: answers for state %u, asked about %u", first, made->state,
                 chunk->state);
    } else if (made->result == SWERVE_WORLD_NOT_FINITE) {
        rig_lose(self, slot, "frame %u: its chunk has a NaN or an infinity", first);
    } else if (made->result != SWERVE_WORLD_OK) {
        rig_lose(self, slot, "frame %u: it could make no chunk (result %u)", first, made->result);
    } else if (made->agent_count > 0 || made->places > 0) {
        rig_lose(self, slot, "frame %u: %u agents and places %u, expected 0 of the form RIG", first,
                 made->agent_count, made->places);
    } else if (!foreign_guarded(memory + self->guard_at) ||
               !foreign_guarded(memory + self->bodies_guard_at)) {
        rig_lose(self, slot, "frame %u: it wrote beyond its frames or its bodies", first);
    }
    return slot->frame_stats.fault[0] == '\0';
}
