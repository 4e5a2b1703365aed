/*
 * The object and the replay world: ego's bicycle model among agents. They differ in one thing: in
 * the object world agents react, in the replay world every moving agent follows its log exactly.
 *
 * Interventions on a logged agent of the replay world take it off its log: it brakes along its
 * logged path, or cuts in at the speed it had.
 *
 * A slot is one plain struct, so fork, save and restore are copies plus a reference on the stage.
 */
#include "base/check.h"
#include "engine/ego_model.h"
#include "engine/stage_internal.h"
#include "engine/traffic.h"
#include "engine/world.h"

#include <stdlib.h>
#include <string.h>

struct slot {
    struct stage *stage; /* NULL: free */
    uint64_t seed;
    double actuator_mps2; /* what ego's drivetrain and brakes give */
    struct scene scene;
    struct agent_motion motion[LIMIT_AGENTS];
};

struct traffic_world {
    struct world base;
    bool follow_logs;
    struct slot *slots;
};

static struct slot *occupied(const struct world *world, uint32_t index)
{
    const struct traffic_world *self = (const struct traffic_world *)world;
    CHECK(index < world->slot_count);
    CHECK(self->slots[index].stage != NULL);
    return &self->slots[index];
}

static struct slot *vacant(const struct world *world, uint32_t index)
{
    const struct traffic_world *self = (const struct traffic_world *)world;
    CHECK(index < world->slot_count);
    CHECK(self->slots[index].stage == NULL);
    return &self->slots[index];
}

static void step(struct world *world, const struct action *actions, const uint8_t *active)
{
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (!active[i]) {
            continue;
        }
        struct slot *slot = occupied(world, i);
        const struct stage *stage = slot->stage;
        struct ego_state *ego = &slot->scene.ego;
        struct vec2 place = {ego->pose.x_m, ego->pose.y_m};
        double friction = roadmap_friction(stage->roadmap, place, slot->scene.conditions.friction);
        traffic_step(stage->traffic, slot->seed, &slot->scene, slot->motion);
        ego_model_step(ego, &slot->actuator_mps2, &actions[i], stage->scenario->ego.wheelbase_m,
                       friction);
        slot->scene.tick++;
    }
}

static enum status open_world(const struct world_ops *ops, bool follow_logs,
                              const struct world_config *config, struct world **out,
                              struct error *error)
{
    if (config->slot_count < 1 || config->slot_count > LIMIT_SLOTS) {
        return error_set(error, STATUS_LIMIT, "world %s: expected 1..%d slots, found %u", ops->name,
                         LIMIT_SLOTS, config->slot_count);
    }
    struct traffic_world *self = calloc(1, sizeof *self);
    struct slot *slots = calloc(config->slot_count, sizeof *slots);
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
    struct slot *slot = occupied(world, index);
    stage_unref(slot->stage);
    slot->stage = NULL;
}

static void close_world(struct world *world)
{
    if (world == NULL) {
        return;
    }
    struct traffic_world *self = (struct traffic_world *)world;
    for (uint32_t i = 0; i < world->slot_count; i++) {
        stage_unref(self->slots[i].stage);
    }
    free(self->slots);
    free(self);
}

static enum status object_accepts(const struct scenario *scenario, struct error *error)
{
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

static enum status slot_reset(struct world *world, uint32_t index, struct stage *stage,
                              uint64_t seed, struct error *error)
{
    const struct traffic_world *self = (const struct traffic_world *)world;
    const struct scenario *scenario = stage->scenario;
    struct slot *slot = vacant(world, index);
    enum status status = world->ops->accepts(scenario, error);
    if (status != STATUS_OK) {
        return status;
    }
    /* What lies beyond agent_count is never read, but a saved state is compared as bytes. */
    memset(slot, 0, sizeof *slot);
    slot->stage = stage_ref(stage);
    slot->seed = seed;
    slot->scene.conditions = scenario->conditions;
    slot->scene.ego = (struct ego_state){
        .pose = scenario->ego.pose,
        .speed_mps = scenario->ego.speed_mps,
    };
    traffic_reset(stage->traffic, seed, self->follow_logs, &slot->scene, slot->motion);
    return STATUS_OK;
}

static void slot_observe(const struct world *world, uint32_t index,
                         const struct observation_buffers *buffers)
{
    const struct slot *slot = occupied(world, index);
    const struct stage *stage = slot->stage;
    if (buffers->bev != NULL) {
        raster_bev(stage->layers, stage->scenario, &slot->scene, slot->seed, buffers->bev);
    }
    for (int camera = 0; camera < CAMERA_COUNT; camera++) {
        if (buffers->camera[camera] != NULL) {
            raster_camera(stage->layers, stage->scenario, &slot->scene, slot->seed,
                          (enum camera_index)camera, buffers->camera[camera]);
        }
    }
}

static const struct scene *slot_scene(const struct world *world, uint32_t index)
{
    return &occupied(world, index)->scene;
}

static enum status slot_intervene(struct world *world, uint32_t index,
                                  const struct intervention *intervention, struct error *error)
{
    struct slot *slot = occupied(world, index);
    if (intervention->kind == INTERVENE_CONDITIONS) {
        slot->scene.conditions = intervention->conditions;
        return STATUS_OK;
    }
    return traffic_intervene(slot->stage->traffic, intervention, &slot->scene, slot->motion, error);
}

/* Copies what is in use; the rest of `to` was zeroed or belongs to nobody. */
static void copy_slot(struct slot *to, const struct slot *from)
{
    uint32_t agents = from->scene.agent_count;
    memset(to, 0, sizeof *to);
    to->stage = stage_ref(from->stage);
    to->seed = from->seed;
    to->actuator_mps2 = from->actuator_mps2;
    memcpy(&to->scene, &from->scene,
           offsetof(struct scene, agents) + agents * sizeof from->scene.agents[0]);
    memcpy(to->motion, from->motion, agents * sizeof from->motion[0]);
}

static void slot_fork(struct world *world, uint32_t from, uint32_t to)
{
    copy_slot(vacant(world, to), occupied(world, from));
}

static size_t slot_state_bytes(const struct world *world)
{
    (void)world;
    return sizeof(struct slot);
}

static void slot_save(const struct world *world, uint32_t index, void *state)
{
    copy_slot(state, occupied(world, index));
}

static void slot_restore(struct world *world, uint32_t index, void *state)
{
    struct slot *slot = vacant(world, index);
    struct slot *parked = state;
    CHECK(parked->stage != NULL);
    *slot = *parked; /* the reference moves along */
    parked->stage = NULL;
}

static void slot_state_drop(struct world *world, void *state)
{
    struct slot *parked = state;
    (void)world;
    stage_unref(parked->stage);
    parked->stage = NULL;
}

const char *const layout_degree_names[LAYOUT_DEGREE_COUNT] = {"agents", "map", "none"};

const struct world_ops world_object_ops = {
    .name = "object",
    .tier = TIER_OBJECT,
    .has_truth = true,
    .open = object_open,
    .close = close_world,
    .accepts = object_accepts,
    .slot_reset = slot_reset,
    .slot_release = slot_release,
    .step = step,
    .slot_observe = slot_observe,
    .slot_scene = slot_scene,
    .slot_intervene = slot_intervene,
    .slot_fork = slot_fork,
    .slot_state_bytes = slot_state_bytes,
    .slot_save = slot_save,
    .slot_restore = slot_restore,
    .slot_state_drop = slot_state_drop,
};

const struct world_ops world_replay_ops = {
    .name = "replay",
    .tier = TIER_REPLAY,
    .has_truth = true,
    .open = replay_open,
    .close = close_world,
    .accepts = replay_accepts,
    .slot_reset = slot_reset,
    .slot_release = slot_release,
    .step = step,
    .slot_observe = slot_observe,
    .slot_scene = slot_scene,
    .slot_intervene = slot_intervene,
    .slot_fork = slot_fork,
    .slot_state_bytes = slot_state_bytes,
    .slot_save = slot_save,
    .slot_restore = slot_restore,
    .slot_state_drop = slot_state_drop,
};

const struct world_ops *world_ops_for_tier(enum tier tier)
{
    switch (tier) {
    case TIER_OBJECT:
        return &world_object_ops;
    case TIER_REPLAY:
        return &world_replay_ops;
    case TIER_STUDENT:
        return &world_student_ops;
    case TIER_TEACHER:
        return &world_teacher_ops;
    case TIER_COUNT:
        break;
    }
    return NULL;
}
