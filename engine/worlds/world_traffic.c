/*
 * The object and the replay world: ego's bicycle model among agents. They differ in one thing: in
 * the object world agents react, in the replay world every moving agent follows its log exactly.
 *
 * Interventions on a logged agent of the replay world take it off its log: it brakes along its
 * logged path, or cuts in at the speed it had.
 *
 * A slot is one plain struct, so fork, save and restore are copies plus a reference on the prepared
 * scenario.
 */
#include "base/check.h"
#include "engine/worlds/drive.h"
#include "engine/worlds/world_internal.h"

#include <stdlib.h>
#include <string.h>

struct traffic_world {
    struct world base;
    bool follow_logs;
    struct drive *slots;
};

static struct drive *occupied(const struct world *world, uint32_t index)
{
    const struct traffic_world *self = (const struct traffic_world *)world;
    CHECK(index < world->slot_count);
    CHECK(self->slots[index].prepared != NULL);
    return &self->slots[index];
}

static struct drive *vacant(const struct world *world, uint32_t index)
{
    const struct traffic_world *self = (const struct traffic_world *)world;
    CHECK(index < world->slot_count);
    CHECK(self->slots[index].prepared == NULL);
    return &self->slots[index];
}

static void step(struct world *world, const struct action *actions, const uint8_t *active)
{
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (active[i]) {
            drive_step(occupied(world, i), &actions[i], true);
        }
    }
}

static enum status open_world(const struct world_ops *ops, bool follow_logs,
                              const struct world_config *config, struct world **out,
                              struct error *error)
{
    TRY(world_check_slots(ops->name, config->slot_count, error));
    struct traffic_world *self = calloc(1, sizeof *self);
    struct drive *slots = calloc(config->slot_count, sizeof *slots);
    if (self == NULL || slots == NULL) {
        free(self);
        free(slots);
        return error_set(error, STATUS_NO_MEMORY, "world %s: no memory for %u slots", ops->name,
                         config->slot_count);
    }
    self->base = (struct world){ops, config->slot_count};
    self->follow_logs = follow_logs;
    self->slots = slots;
    *out = &self->base;
    return STATUS_OK;
}

static enum status object_open(const struct world_config *config, struct world **out,
                               struct error *error)
{
    return open_world(&world_object_ops, false, config, out, error);
}

static enum status replay_open(const struct world_config *config, struct world **out,
                               struct error *error)
{
    return open_world(&world_replay_ops, true, config, out, error);
}

static void slot_release(struct world *world, uint32_t index)
{
    drive_release(occupied(world, index));
}

static void close_world(struct world *world)
{
    if (world == NULL) {
        return;
    }
    struct traffic_world *self = (struct traffic_world *)world;
    for (uint32_t i = 0; i < world->slot_count; i++) {
        drive_release(&self->slots[i]);
    }
    free(self->slots);
    free(self);
}

static enum status object_accepts(const struct scenario *scenario, struct error *error)
{
    if (scenario->controls.log.count > 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "scenario %s: a log of the controls challenge, which the world "
                         "tinyphysics alone drives",
                         scenario->id);
    }
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        const struct agent *agent = &scenario->agents[i];
        if (agent->behaviour == BEHAVIOUR_REPLAY && agent->trajectory.point_count == 0) {
            return error_set(error, STATUS_BAD_INPUT,
                             "scenario %s: agent %s: behaviour \"replay\" needs a trajectory",
                             scenario->id, agent->id);
        }
    }
    return STATUS_OK;
}

static enum status replay_accepts(const struct scenario *scenario, struct error *error)
{
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        const struct agent *agent = &scenario->agents[i];
        if (agent->behaviour != BEHAVIOUR_STATIC && agent->trajectory.point_count == 0) {
            return error_set(error, STATUS_BAD_INPUT,
                             "scenario %s: agent %s moves but has no trajectory, which the replay "
                             "world needs",
                             scenario->id, agent->id);
        }
    }
    return STATUS_OK;
}

static enum status slot_reset(struct world *world, uint32_t index, struct prepared *prepared,
                              uint64_t seed, struct error *error)
{
    const struct traffic_world *self = (const struct traffic_world *)world;
    struct drive *slot = vacant(world, index);
    TRY(world->ops->accepts(prepared->scenario, error));
    drive_reset(slot, prepared, seed, self->follow_logs);
    return STATUS_OK;
}

static void slot_observe(const struct world *world, uint32_t index,
                         const struct observation_buffers *buffers)
{
    const struct drive *slot = occupied(world, index);
    const struct prepared *prepared = slot->prepared;
    if (buffers->bev != NULL) {
        (buffers->returns_alone ? raster_returns : raster_bev)(
            prepared->layers, prepared->scenario, &slot->scene, slot->seed, buffers->bev);
    }
    for (int camera = 0; camera < CAMERA_COUNT; camera++) {
        if (buffers->camera[camera] != NULL) {
            raster_camera(prepared->layers, prepared->scenario, &slot->scene, slot->seed,
                          (enum camera_index)camera, buffers->camera[camera]);
        }
    }
}

static void slot_sight(const struct world *world, uint32_t index, struct world_sight *out)
{
    const struct drive *slot = occupied(world, index);
    *out = (struct world_sight){slot->prepared->layers, slot->prepared->scenario, slot->seed};
}

static const struct scene *slot_scene(const struct world *world, uint32_t index)
{
    return &occupied(world, index)->scene;
}

static enum status slot_intervene(struct world *world, uint32_t index,
                                  const struct intervention *intervention, struct error *error)
{
    return drive_intervene(occupied(world, index), intervention, error);
}

static void slot_fork(struct world *world, uint32_t from, uint32_t to)
{
    drive_copy(vacant(world, to), occupied(world, from));
}

static size_t slot_state_bytes(const struct world *world)
{
    (void)world;
    return sizeof(struct drive);
}

static void slot_save(const struct world *world, uint32_t index, void *state)
{
    memset(state, 0, sizeof(struct drive));
    drive_copy(state, occupied(world, index));
}

static void slot_restore(struct world *world, uint32_t index, void *state)
{
    struct drive *slot = vacant(world, index);
    struct drive *parked = state;
    CHECK(parked->prepared != NULL);
    *slot = *parked; /* the reference moves along */
    parked->prepared = NULL;
}

static void slot_state_drop(struct world *world, void *state)
{
    (void)world;
    drive_release(state);
}

/* The two tables differ in what they say of themselves and in how they begin. */
#define TRAFFIC_OPS(NAME, TIER, OPEN, ACCEPTS)                                                    \
    {                                                                                             \
        .name = NAME, .tier = TIER, .has_truth = true, .open = OPEN, .close = close_world,        \
        .accepts = ACCEPTS, .slot_reset = slot_reset, .slot_release = slot_release, .step = step, \
        .slot_observe = slot_observe, .slot_sight = slot_sight, .slot_scene = slot_scene,         \
        .slot_intervene = slot_intervene, .slot_fork = slot_fork,                                 \
        .slot_state_bytes = slot_state_bytes, .slot_save = slot_save,                             \
        .slot_restore = slot_restore, .slot_state_drop = slot_state_drop,                         \
    }

const struct world_ops world_object_ops =
    TRAFFIC_OPS("object", TIER_OBJECT, object_open, object_accepts);
const struct world_ops world_replay_ops =
    TRAFFIC_OPS("replay", TIER_REPLAY, replay_open, replay_accepts);
