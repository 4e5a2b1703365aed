/*
 * The dummy world: the smallest thing that keeps the contract of engine/worlds/world.h. Ego is a
 * point that drives straight on, agents stand where the scenario put them, and the observation is a
 * pattern of the state's numbers. For conformance and scheduling tests, where pictures and traffic
 * would only be in the way.
 */
#include "tests/engine/world_dummy.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/worlds/world_internal.h"

#include <stdlib.h>
#include <string.h>

struct dummy_slot {
    struct prepared *prepared; /* NULL: free */
    uint64_t seed;
    struct scene scene;
};

struct dummy_world {
    struct world base;
    struct dummy_slot *slots;
};

static struct dummy_slot *slot_at(const struct world *world, uint32_t index, bool occupied)
{
    const struct dummy_world *self = (const struct dummy_world *)world;
    CHECK(index < world->slot_count);
    CHECK((self->slots[index].prepared != NULL) == occupied);
    return &self->slots[index];
}

static void dummy_step(struct world *world, const struct action *actions, const uint8_t *active)
{
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (!active[i]) {
            continue;
        }
        struct scene *scene = &slot_at(world, i, true)->scene;
        struct ego_state *ego = &scene->ego;
        double s;
        double c;
        double before_mps = ego->speed_mps;
        dmath_sincos(ego->pose.heading_rad, &s, &c);
        ego->speed_mps = dmath_clamp(
            ego->speed_mps + TICK_S * dmath_clamp(actions[i].accel_mps2, -8.0, 3.0), 0.0, 50.0);
        ego->accel_mps2 = (ego->speed_mps - before_mps) / TICK_S;
        ego->steer_rad = dmath_clamp(actions[i].steer_rad, -0.5, 0.5);
        ego->pose.x_m += ego->speed_mps * c * TICK_S;
        ego->pose.y_m += ego->speed_mps * s * TICK_S;
        scene->tick++;
    }
}

static enum status dummy_open(const struct world_config *config, struct world **out,
                              struct error *error)
{
    TRY(world_check_slots("dummy", config->slot_count, error));
    struct dummy_world *self = calloc(1, sizeof *self);
    struct dummy_slot *slots = calloc(config->slot_count, sizeof *slots);
    if (self == NULL || slots == NULL) {
        free(self);
        free(slots);
        return error_set(error, STATUS_NO_MEMORY, "world dummy: no memory for %u slots",
                         config->slot_count);
    }
    self->base = (struct world){&world_dummy_ops, config->slot_count};
    self->slots = slots;
    *out = &self->base;
    return STATUS_OK;
}

static void dummy_close(struct world *world)
{
    if (world == NULL) {
        return;
    }
    struct dummy_world *self = (struct dummy_world *)world;
    for (uint32_t i = 0; i < world->slot_count; i++) {
        prepared_unref(self->slots[i].prepared);
    }
    free(self->slots);
    free(self);
}

static enum status dummy_accepts(const struct scenario *scenario, struct error *error)
{
    (void)scenario;
    (void)error;
    return STATUS_OK;
}

static enum status dummy_reset(struct world *world, uint32_t index, struct prepared *prepared,
                               uint64_t seed, struct error *error)
{
    struct dummy_slot *slot = slot_at(world, index, false);
    const struct scenario *scenario = prepared->scenario;
    (void)error;
    memset(slot, 0, sizeof *slot);
    slot->prepared = prepared_ref(prepared);
    slot->seed = seed;
    slot->scene.conditions = scenario->conditions;
    slot->scene.ego.pose = scenario->ego.pose;
    slot->scene.ego.speed_mps = scenario->ego.speed_mps;
    slot->scene.agent_count = scenario->agent_count;
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        slot->scene.agents[i].pose = scenario->agents[i].pose;
        slot->scene.agents[i].present = !scenario->agents[i].hidden;
    }
    return STATUS_OK;
}

static void dummy_release(struct world *world, uint32_t index)
{
    struct dummy_slot *slot = slot_at(world, index, true);
    prepared_unref(slot->prepared);
    slot->prepared = NULL;
}

/* A byte pattern that any change of seed, tick, ego or presence changes. */
static void pattern(const struct dummy_slot *slot, uint32_t plane, uint8_t *out, size_t bytes)
{
    uint64_t key = rng_mix(slot->seed ^ plane);
    uint64_t bits[3];
    memcpy(bits, &slot->scene.ego.pose, sizeof bits);
    for (int i = 0; i < 3; i++) {
        key = rng_mix(key ^ bits[i]);
    }
    key = rng_mix(key ^ slot->scene.tick);
    for (uint32_t i = 0; i < slot->scene.agent_count; i++) {
        key = rng_mix(key ^ slot->scene.agents[i].present);
    }
    CHECK(bytes % sizeof key == 0);
    for (size_t i = 0; i < bytes; i += sizeof key) {
        memcpy(out + i, &key, sizeof key);
    }
}

static void dummy_observe(const struct world *world, uint32_t index,
                          const struct observation_buffers *buffers)
{
    const struct dummy_slot *slot = slot_at(world, index, true);
    if (buffers->bev != NULL) {
        pattern(slot, CAMERA_COUNT, buffers->bev, BEV_BYTES);
    }
    for (uint32_t camera = 0; camera < CAMERA_COUNT; camera++) {
        if (buffers->camera[camera] != NULL) {
            pattern(slot, camera, buffers->camera[camera], CAMERA_BYTES);
        }
    }
}

static const struct scene *dummy_scene(const struct world *world, uint32_t index)
{
    return &slot_at(world, index, true)->scene;
}

static enum status dummy_intervene(struct world *world, uint32_t index,
                                   const struct intervention *intervention, struct error *error)
{
    struct scene *scene = &slot_at(world, index, true)->scene;
    if (intervention->kind == INTERVENE_CONDITIONS) {
        scene->conditions = intervention->conditions;
        return STATUS_OK;
    }
    if (intervention->kind == INTERVENE_AGENT_APPEAR && intervention->agent >= 0 &&
        (uint32_t)intervention->agent < scene->agent_count) {
        scene->agents[intervention->agent].present = true;
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "world dummy: agents only appear, found intervention kind %d of agent %d",
                     (int)intervention->kind, intervention->agent);
}

static void dummy_fork(struct world *world, uint32_t from, uint32_t to)
{
    struct dummy_slot *source = slot_at(world, from, true);
    *slot_at(world, to, false) = *source;
    prepared_ref(source->prepared);
}

static size_t dummy_state_bytes(const struct world *world)
{
    (void)world;
    return sizeof(struct dummy_slot);
}

static void dummy_save(const struct world *world, uint32_t index, void *state)
{
    const struct dummy_slot *slot = slot_at(world, index, true);
    memcpy(state, slot, sizeof *slot);
    prepared_ref(slot->prepared);
}

static void dummy_restore(struct world *world, uint32_t index, void *state)
{
    struct dummy_slot *parked = state;
    CHECK(parked->prepared != NULL);
    *slot_at(world, index, false) = *parked;
    parked->prepared = NULL;
}

static void dummy_drop(struct world *world, void *state)
{
    struct dummy_slot *parked = state;
    (void)world;
    prepared_unref(parked->prepared);
    parked->prepared = NULL;
}

const struct world_ops world_dummy_ops = {
    .name = "dummy",
    .tier = TIER_OBJECT,
    .has_truth = true,
    .open = dummy_open,
    .close = dummy_close,
    .accepts = dummy_accepts,
    .slot_reset = dummy_reset,
    .slot_release = dummy_release,
    .step = dummy_step,
    .slot_observe = dummy_observe,
    .slot_scene = dummy_scene,
    .slot_intervene = dummy_intervene,
    .slot_fork = dummy_fork,
    .slot_state_bytes = dummy_state_bytes,
    .slot_save = dummy_save,
    .slot_restore = dummy_restore,
    .slot_state_drop = dummy_drop,
};
