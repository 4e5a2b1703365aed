/*
 * One tick of a learned world: everybody is moved, a page taken for each slot, layouts and
 * conditions drawn by threads, the batch computed by the backend, and what came of it told in the
 * slots' frame statistics.
 */
#include "engine/learned/agent_measure.h"
#include "engine/learned/frame_measure.h"
#include "engine/worlds/world_learned.h"

#include <math.h>
#include <string.h>

void learned_lose(struct learned_slot *slot)
{
    slot->lost = true;
    slot->frame_stats.not_finite = FRAME_BYTES;
}

void learned_lose_all(const struct learned_world *self)
{
    for (uint32_t i = 0; i < self->base.slot_count; i++) {
        if (self->slots[i].drive.prepared != NULL) {
            learned_lose(&self->slots[i]);
        }
    }
}

/* A new page for the next frame, and all that the frame depends on but the layout. */
static void begin(struct learned_world *self, struct learned_step *step)
{
    const struct learned_slot *slot = step->slot;
    struct pose ego = anchor_local(&slot->anchor, slot->drive.scene.ego.pose);
    struct window window = window_of(ego);
    step->page = page_take(self->pool, slot->drive.scene.tick);
    struct page_header *header = page_write(self->pool, step->page);
    *header = (struct page_header){.window = window, .tick = slot->drive.scene.tick};
    uint8_t *frame = (uint8_t *)(header + 1);
    *step->tick = (struct backend_slot){
        .input = {.seed = slot->drive.seed,
                  .tick = slot->drive.scene.tick,
                  .skipped = slot->skipped,
                  .conditioning = self->conditioning,
                  .window = window,
                  .ego = ego,
                  .cond = step->cond,
                  .page_count = slot->pages.count},
        .write_frame = page_frame(self->pool, step->page),
        .deliver = slot->watched ||
                   self->conditioning != CONDITIONING_AGENTS, /* or agents are sought in it */
        .frame = frame,
        .memory = frame + FRAME_BYTES,
    };
    if (self->conditioning == CONDITIONING_AGENTS) {
        step->tick->gate_count =
            agent_measure_gates(prepared_scenario(slot->drive.prepared), &slot->drive.scene,
                                &slot->anchor, window, step->tick->gates);
    }
    for (uint32_t i = 0; i < slot->pages.count; i++) {
        uint32_t page = slot->pages.page[i];
        const struct page_header *past = page_read(self->pool, page);
        step->tick->input.pages[i] = (struct forward_page){
            learned_frame(past), learned_frame(past) + FRAME_BYTES, past->window};
        step->tick->page_frames[i] = page_frame(self->pool, page);
    }
}

/* The layout of the batch's slot number `index`: described where a device draws it. */
static void draw_layout(const struct learned_world *self, uint32_t index)
{
    const struct learned_slot *slot = self->steps[index].slot;
    struct backend_slot *tick = self->steps[index].tick;
    struct window window = tick->input.window;
    struct draw_list *draw_list = backend_draw_list(self->backend, index);
    uint8_t *layout = backend_layout(self->backend, index);
    bool mapped = slot->map != BACKEND_NO_MAP || self->conditioning == CONDITIONING_NONE;
    const struct prepared *prepared = slot->drive.prepared;
    const struct scene *scene = &slot->drive.scene;
    bool described = draw_list != NULL && mapped;
    tick->given = 0;
    if (!described || !layout_describe(prepared, scene, &slot->anchor, window, self->conditioning,
                                       slot->map, draw_list)) {
        layout_bev(prepared, scene, &slot->anchor, window, self->conditioning, layout);
        tick->given |= DEVICE_GIVEN_BEV;
    }
    if (!described || !layout_describe_cameras(prepared, scene, self->conditioning, draw_list)) {
        layout_cameras(prepared, scene, self->conditioning, layout + FRAME_BEV_BYTES);
        tick->given |= DEVICE_GIVEN_CAMERAS;
    }
}

/* Layouts and conditions of some slots of the batch; any thread. */
static void draw(void *context, uint32_t first, uint32_t end)
{
    struct learned_world *self = context;
    for (uint32_t i = first; i < end; i++) {
        struct learned_step *step = &self->steps[i];
        const struct learned_slot *slot = step->slot;
        draw_layout(self, i);
        layout_conditions(slot->drive.prepared, &slot->drive.scene, &step->before, &slot->anchor,
                          step->tick->input.window, self->conditioning, step->cond);
    }
}

/* Everything that is told of the tick. */
static void measure(const struct learned_world *self, const struct learned_step *step,
                    const struct extract_frame_stats *extracted)
{
    struct learned_slot *slot = step->slot;
    struct frame_stats *frame_stats = &slot->frame_stats;
    double dx = slot->drive.scene.ego.pose.x_m - step->before.pose.x_m;
    double dy = slot->drive.scene.ego.pose.y_m - step->before.pose.y_m;
    frame_stats->tick = slot->drive.scene.tick;
    frame_stats->not_finite = step->tick->counts.not_finite;
    frame_stats->saturated_share = (double)step->tick->counts.saturated / FRAME_BYTES;
    frame_stats->ego_step_m = sqrt(dx * dx + dy * dy);
    frame_stats->jump_m = extracted->jump_m;
    frame_stats->lost_agents += extracted->vanished;
    agent_measure_conclude(step->tick->gates, step->tick->agents, step->tick->gate_count,
                           frame_stats);
    frame_measure_conclude(&step->tick->sums, self->conditioning, frame_stats);
}

static void finish(struct learned_world *self, const struct learned_step *step)
{
    struct learned_slot *slot = step->slot;
    struct extract_frame_stats extracted = {0};
    page_commit(self->pool, step->page);
    if (self->conditioning != CONDITIONING_AGENTS) {
        const struct page_header *header = page_read(self->pool, step->page);
        extracted =
            extract_step(slot->drive.prepared, &slot->anchor, header->window, learned_frame(header),
                         self->expected, &slot->drive.scene, slot->tracks);
    }
    measure(self, step, &extracted);
    learned_push(self, slot, step->page);
    self->ticks++;
    self->flop +=
        model_skips_past(self->model, slot->skipped)
            ? model_tick_flop(self->previous, model_previous_skips(self->model, slot->skipped))
            : model_tick_flop(self->model, slot->skipped);
}

static void fail_batch(struct learned_world *self, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        page_release(self->pool, self->steps[i].page);
        self->steps[i].slot->frame_stats.tick = self->steps[i].slot->drive.scene.tick;
    }
    learned_lose_all(self);
}

/* Steps active slots from `first` on, as many as the backend takes at once; returns the first slot
 * that was not looked at. */
static uint32_t step_batch(struct learned_world *self, uint32_t first, const struct action *actions,
                           const uint8_t *active)
{
    uint32_t count = 0;
    uint32_t index = first;
    for (; index < self->base.slot_count && count < backend_batch(self->backend); index++) {
        if (!active[index]) {
            continue;
        }
        struct learned_step *step = &self->steps[count];
        step->tick = &self->batch[count];
        step->slot = learned_occupied(&self->base, index);
        step->before = step->slot->drive.scene.ego;
        drive_step(&step->slot->drive, &actions[index], self->conditioning == CONDITIONING_AGENTS);
        if (step->slot->lost) {
            step->slot->frame_stats.tick = step->slot->drive.scene.tick;
            continue;
        }
        begin(self, step);
        count++;
    }
    page_pool_start(self->pool); /* pages that make room leave while this is drawn */
    threads_run(self->threads, count, 1, draw, self);
    if (backend_tick(self->backend, self->batch, count, &self->fault) != STATUS_OK) {
        fail_batch(self, count);
        return index;
    }
    page_pool_settle(self->pool); /* pages that made room had the tick's time to leave */
    for (uint32_t i = 0; i < count; i++) {
        finish(self, &self->steps[i]);
    }
    return index;
}

void learned_step(struct world *world, const struct action *actions, const uint8_t *active)
{
    for (uint32_t next = 0; next < world->slot_count;) {
        next = step_batch((struct learned_world *)world, next, actions, active);
    }
}

/* ---- pasts ---- */

const uint8_t *learned_memory(const struct world *world, uint32_t index, uint32_t back)
{
    const struct learned_world *self = learned_of(world);
    const struct learned_slot *slot = learned_occupied(world, index);
    struct error ignored;
    if (slot->lost || back >= slot->pages.count || self->conditioning != CONDITIONING_AGENTS) {
        return NULL;
    }
    uint32_t page = slot->pages.page[back];
    struct page_header *header = page_complete(self->pool, page);
    uint8_t *frame = (uint8_t *)(header + 1);
    return backend_frame(self->backend, page_frame(self->pool, page), frame, &ignored) == STATUS_OK
               ? frame
               : NULL;
}

static enum status check_past(const struct learned_world *self, const struct learned_slot *slot,
                              const struct world_past *past, struct error *error)
{
    const struct frame_stats *frame_stats = past->frame_stats;
    uint32_t agents = slot->drive.scene.agent_count;
    bool fits = frame_stats->tick == slot->drive.scene.tick + 1 &&
                frame_stats->agent_count <= AGENT_GATES_MAX;
    for (uint32_t i = 0; fits && i < frame_stats->agent_count; i++) {
        fits = frame_stats->agents[i].agent < agents;
    }
    if (!fits || self->conditioning != CONDITIONING_AGENTS) {
        return error_set(error, STATUS_BAD_INPUT,
                         "world %s: expected the past of tick %u of this scenario in conditioning "
                         "agents, found that of tick %u in %s",
                         self->base.ops->name, slot->drive.scene.tick + 1, frame_stats->tick,
                         conditioning_names[self->conditioning]);
    }
    return STATUS_OK;
}

/* The frame of the slot's tick becomes its newest page. */
static enum status push_frame(struct learned_world *self, struct learned_slot *slot,
                              const uint8_t *bytes, struct error *error)
{
    const struct scene *scene = &slot->drive.scene;
    uint32_t page = page_take(self->pool, scene->tick);
    struct page_header *header = page_write(self->pool, page);
    uint8_t *frame = (uint8_t *)(header + 1);
    *header = (struct page_header){
        .window = window_of(anchor_local(&slot->anchor, scene->ego.pose)), .tick = scene->tick};
    memcpy(frame, bytes, FRAME_BYTES);
    enum status status = backend_memory(self->backend, page_frame(self->pool, page), frame,
                                        frame + FRAME_BYTES, &self->fault);
    if (status != STATUS_OK) {
        page_release(self->pool, page);
        learned_lose_all(self);
        return error_set(error, status, "world %s: %s", self->base.ops->name, self->fault.text);
    }
    page_commit(self->pool, page);
    learned_push(self, slot, page);
    return STATUS_OK;
}

enum status learned_retrace(struct world *world, uint32_t index, const struct action *action,
                            const struct world_past *past, struct error *error)
{
    struct learned_world *self = (struct learned_world *)world;
    struct learned_slot *slot = learned_occupied(world, index);
    uint32_t horizon_ticks = slot->frame_stats.horizon_ticks;
    TRY(check_past(self, slot, past, error));
    drive_step(&slot->drive, action, true);
    slot->frame_stats = *past->frame_stats;
    slot->frame_stats.horizon_ticks = horizon_ticks;
    return past->frame != NULL ? push_frame(self, slot, past->frame, error) : STATUS_OK;
}
