/*
 * One tick of a world of the form RIG, and the chunks that it needs: who has no frames for the tick
 * yet is driven ahead, the world is asked, and what it gives back is checked, copied out of the
 * shared memory and judged picture by picture. See foreign_rig_internal.h.
 */
#include "engine/worlds/foreign_rig_internal.h"

#include "base/clock.h"
#include "base/dmath.h"
#include "engine/rigs/frames.h"

#include <math.h>
#include <string.h>

/* Bodies so near a camera can fill its picture: a lorry beside it, or whoever is run over. */
#define FILLS_M 2.0

/* ---- what is given ---- */

/* The tick at whose end, or on the way to which, a frame is seen. */
static uint32_t tick_of(const struct rig_world *self, uint32_t frame)
{
    return (frame + self->tick_frames - 1) / self->tick_frames;
}

static uint32_t frames_of_next(const struct rig_world *self, const struct rig_slot *slot)
{
    return slot->last == 0 ? self->declared.first_frames : self->declared.chunk_frames;
}

/* Whether somebody stands close before a camera, or around it. */
static bool is_filled(const struct rig_camera *camera, const struct scenario *scenario,
                      const struct scene *scene)
{
    const struct pose *ego = &scene->ego.pose;
    const double c = dmath_cos(ego->heading_rad), s = dmath_sin(ego->heading_rad);
    const struct box lens =
        box_make((struct pose){ego->x_m + c * camera->pose.x_m - s * camera->pose.y_m,
                               ego->y_m + s * camera->pose.x_m + c * camera->pose.y_m, 0},
                 0, 0);
    bool filled = false;
    for (uint32_t i = 0; i < scene->agent_count && !filled; i++) {
        const struct agent *as = &scenario->agents[i];
        const struct box body = box_make(scene->agents[i].pose, as->length_m, as->width_m);
        filled = scene->agents[i].present && box_distance_m(&lens, &body) < FILLS_M;
    }
    return filled;
}

/* Drives ahead of the slot until its next chunk's last frame, and fills the record. */
static void look_ahead(struct rig_world *self, struct rig_slot *slot, uint32_t place,
                       struct swerve_world_chunk *out)
{
    const uint32_t count = frames_of_next(self, slot);
    const uint32_t end = slot->last + 1 + count;
    struct scene *before = &self->scenes[0];
    struct drive *ahead = &self->ahead;
    *out = rig_chunk_of(self, &slot->drive, slot->last + 1, count);
    rig_clear_place(self, place, count);
    rig_address(self, place, out);
    out->state = (uint32_t)self->cells[slot->cell].state;
    drive_copy(ahead, &slot->drive);
    for (uint32_t frame = slot->last + 1; frame < end;) {
        const uint32_t tick = ahead->scene.tick;
        *before = ahead->scene;
        drive_step(ahead, tick < slot->committed_until ? &slot->committed : &slot->wanted, true);
        for (; frame < end && tick_of(self, frame) == ahead->scene.tick; frame++) {
            const uint32_t part = frame - tick * self->tick_frames;
            frames_scene(before, &ahead->scene, (double)part / self->tick_frames, &self->scenes[1]);
            const uint32_t index = frame - slot->last - 1;
            rig_put_frame(self, place, ahead, &self->scenes[1],
                          (double)frame / self->declared.rate_hz, index, out);
            for (uint32_t c = 0; c < self->rig.camera_count; c++) {
                slot->filled[c][index] =
                    is_filled(&self->rig.cameras[c], ahead->prepared->scenario, &self->scenes[1]);
            }
        }
    }
    drive_release(ahead);
}

/* ---- what came back ---- */

static double between(double x_m, double y_m)
{
    return sqrt(x_m * x_m + y_m * y_m);
}

/* Judges a camera's frames of a chunk, each by the one before it and by its first second; how one
 * that a body fills looks says nothing. */
static void judge(const struct rig_world *self, struct rig_slot *slot, uint32_t c,
                  const struct swerve_world_chunk *chunk)
{
    _Static_assert(WATCH_MEASURE_COUNT == 4, "each has no bound here");
    static const double any[WATCH_MEASURE_COUNT] = {INFINITY, INFINITY, INFINITY, INFINITY};
    const struct rig_camera *camera = &self->rig.cameras[c];
    const size_t bytes = self->camera_at[c + 1] - self->camera_at[c];
    const uint8_t *frames = slot->reel->bytes + self->camera_at[c] * chunk->frame_count;
    for (uint32_t i = 0; i < chunk->frame_count; i++) {
        const struct swerve_world_pose *pose = &chunk->poses[i];
        double moved_m = 0.0; /* into a chunk's first frame: that of the next, near enough */
        double found;
        double expected;
        if (chunk->frame_count > 1) {
            const struct swerve_world_pose *from = &chunk->poses[i > 0 ? i - 1 : 1];
            moved_m = between(pose->x_m - from->x_m, pose->y_m - from->y_m);
        }
        double measures[WATCH_MEASURE_COUNT];
        enum watch_fault fault = watch_picture(
            &slot->watches[c], frames + i * bytes, bytes, pose->time_s, moved_m,
            slot->filled[c][i] ? any : self->picture_bounds, measures, &found, &expected);
        if (self->picture_tally != NULL) {
            if (!slot->filled[c][i]) {
                watch_tally_add(self->picture_tally, measures);
            }
        } else if (fault != WATCH_FINE) {
            rig_lose(self, slot, "camera %s, frame %u: %s, found %.3g, expected %.3g", camera->id,
                     chunk->first_frame + i, watch_fault_names[fault], found, expected);
            return;
        }
    }
}

/* Whether actors are where they should be at a tick, in its frame of each camera. */
static void look_for_actors(struct rig_world *self, struct rig_slot *slot,
                            const struct drive *drive, const struct rig_reel *reel)
{
    const struct prepared *prepared = drive->prepared;
    const uint32_t tick = drive->scene.tick;
    const uint32_t index = tick * self->tick_frames - reel->first;
    for (uint32_t c = 0; c < self->rig.camera_count; c++) {
        const size_t bytes = self->camera_at[c + 1] - self->camera_at[c];
        const uint8_t *frame = reel->bytes + self->camera_at[c] * reel->count + index * bytes;
        struct actors_finding finding;
        enum actors_fault fault =
            actors_look(self->actors[c], prepared->layers, prepared->scenario, &drive->scene,
                        drive->seed, frame, &slot->seen[c], &finding);
        if (fault != ACTORS_FINE) {
            rig_lose(self, slot, "camera %s, frame %u: agent %s %s, found %.3g, expected %.3g",
                     self->rig.cameras[c].id, tick * self->tick_frames,
                     prepared->scenario->agents[finding.agent].id, actors_fault_names[fault],
                     finding.found, finding.expected);
            return;
        }
    }
}

/* Drives ahead once more, as for the chunk, whose memory the world could write since, and looks at
 * some of its ticks. */
static void look_again(struct rig_world *self, struct rig_slot *slot, const struct rig_reel *reel)
{
    struct drive *ahead = &self->ahead;
    drive_copy(ahead, &slot->drive);
    while ((ahead->scene.tick + 1) * self->tick_frames < reel->first + reel->count) {
        drive_step(ahead,
                   ahead->scene.tick < slot->committed_until ? &slot->committed : &slot->wanted,
                   true);
        const uint32_t tick = ahead->scene.tick;
        if (tick % ACTORS_LOOK_TICKS == 0 && tick * self->tick_frames >= reel->first) {
            look_for_actors(self, slot, ahead, reel);
        }
    }
    drive_release(ahead);
}

/* The chunk's frames, out of the memory that the world can write at any time. */
static void take_chunk(struct rig_world *self, struct rig_slot *slot, uint32_t place,
                       const struct swerve_world_chunk *chunk)
{
    const uint8_t *memory = rig_place(self, place);
    struct rig_reel *reel = rig_reel_create(self, chunk->first_frame, chunk->frame_count);
    if (reel == NULL) {
        rig_lose(self, slot, "frame %u: no memory for %u frames of %zu bytes", chunk->first_frame,
                 chunk->frame_count, self->frame_bytes);
        return;
    }
    memcpy(reel->bytes, memory, chunk->frame_count * self->frame_bytes);
    if (self->picture_tally == NULL) {
        look_again(self, slot, reel);
    }
    rig_reel_leave(slot->before);
    slot->before = slot->reel;
    slot->reel = reel;
    slot->last = chunk->first_frame + chunk->frame_count - 1;
    slot->committed = slot->wanted;
    slot->committed_until = tick_of(self, slot->last);
    for (uint32_t c = 0; c < self->rig.camera_count; c++) {
        judge(self, slot, c, chunk);
    }
    if (slot->log != NULL) {
        slot->log->hash = rig_hash_frames(self, reel->bytes, chunk->frame_count);
    }
}

/* Chunks of as many slots as the world keeps states at once. */
static void make_chunks(struct rig_world *self, struct rig_slot **due, uint32_t due_count)
{
    char text[RIG_CALL_TEXT_BYTES] = "";
    const uint64_t started = self->uses;
    uint32_t count = 0;
    for (uint32_t i = 0; i < due_count; i++) {
        if (!rig_lost(self, due[i]) && rig_own(self, due[i], started)) {
            due[count++] = due[i];
        }
    }
    if (count == 0 || self->instance == NULL) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        look_ahead(self, due[i], i, &self->chunks[i]);
        if (!rig_log_keep(self, due[i], i, &self->chunks[i])) {
            rig_lose(self, due[i], "frame %u: no memory for its log", self->chunks[i].first_frame);
        }
        self->made[i] =
            (struct swerve_world_made){self->chunks[i].state, SWERVE_WORLD_FAILED, 0, 0};
    }
    int64_t start_ns = clock_now_ns(clock_system());
    int failed = self->foreign->ops->step_rig(self->instance, count, self->chunks, self->made, text,
                                              sizeof text);
    self->step_ns += clock_now_ns(clock_system()) - start_ns;
    if (failed != 0) {
        text[sizeof text - 1] = '\0';
        for (uint32_t i = 0; i < count; i++) {
            rig_lose(self, due[i], "frame %u: %s", self->chunks[i].first_frame, text);
        }
        rig_die(self);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (rig_check_made(self, due[i], i, &self->chunks[i], &self->made[i])) {
            take_chunk(self, due[i], i, &self->chunks[i]);
        }
    }
}

/* ---- a tick ---- */

void rig_commit(struct world *world, uint32_t index, struct action *action)
{
    struct rig_slot *slot = rig_occupied(world, index);
    const uint32_t tick = slot->drive.scene.tick;
    slot->wanted = *action;
    slot->wanted_for = tick + 1;
    slot->now = tick < slot->committed_until ? slot->committed : slot->wanted;
    *action = slot->now;
}

/* Moves ego and traffic of a slot whose frames are made. */
static void advance(struct rig_world *self, struct rig_slot *slot)
{
    const struct pose before = slot->drive.scene.ego.pose;
    drive_step(&slot->drive, &slot->now, true);
    const struct pose *now = &slot->drive.scene.ego.pose;
    slot->frame_stats.tick = slot->drive.scene.tick;
    slot->frame_stats.ego_step_m = between(now->x_m - before.x_m, now->y_m - before.y_m);
    if (!rig_lost(self, slot)) {
        self->ticks++;
    }
}

void rig_step_world(struct world *world, const struct action *actions, const uint8_t *active)
{
    struct rig_world *self = rig_world_of(world);
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (!active[i]) {
            continue;
        }
        struct rig_slot *slot = rig_occupied(world, i);
        const uint32_t tick = slot->drive.scene.tick;
        if (slot->wanted_for != tick + 1) { /* nobody asked what ego is committed to */
            struct action action = actions[i];
            rig_commit(world, i, &action);
        }
        if (slot->last < (tick + 1) * self->tick_frames && !rig_lost(self, slot)) {
            self->due[count++] = slot;
        }
    }
    for (uint32_t i = 0; i < count; i += self->batch_max) {
        make_chunks(self, self->due + i, count - i < self->batch_max ? count - i : self->batch_max);
    }
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (active[i]) {
            advance(self, rig_occupied(world, i));
        }
    }
}
