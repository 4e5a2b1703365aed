/*
 * World: anything that, given a batch of slots and one action per slot, yields the next state per
 * slot and can fork a slot. Every tier implements this one table; tests/engine/test_conformance.c
 * is the contract that each of them must pass, the dummy included.
 *
 * Slots are static: their number is fixed at open, a rollout occupies one from reset to release.
 * Slots are independent: the bits of one never depend on the others, on its index or on their
 * number. Nothing is allocated between open and close except by reset, which prepares a scenario.
 */
#ifndef SWERVE_ENGINE_WORLD_H
#define SWERVE_ENGINE_WORLD_H

#include "base/status.h"
#include "schemas/observation.h"
#include "schemas/outcome.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stddef.h>
#include <stdint.h>

struct world;
struct roadmap;
struct route;

/* A scenario made ready for worlds: roadmap, route, precomputed raster layers. Immutable and
 * reference-counted; shared by all rollouts of a scenario, main line and branches, any seed. */
struct stage;

/* The scenario is borrowed and must outlive the stage. */
enum status stage_create(const struct scenario *scenario, struct stage **out, struct error *error);
struct stage *stage_ref(struct stage *stage);
void stage_unref(struct stage *stage); /* accepts NULL */
const struct scenario *stage_scenario(const struct stage *stage);
const struct roadmap *stage_roadmap(const struct stage *stage);
const struct route *stage_route(const struct stage *stage); /* ego's */

struct world_config {
    uint32_t slot_count; /* 1..LIMIT_SLOTS */
};

/* What an observation call should fill; NULL members are not drawn. */
struct observation_buffers {
    uint8_t *bev;                  /* [BEV_BYTES] */
    uint8_t *camera[CAMERA_COUNT]; /* [CAMERA_BYTES] each */
};

struct world_ops {
    const char *name; /* "object", "replay", "dummy" */
    enum tier tier;
    bool has_truth; /* slot_scene gives true agents */

    enum status (*open)(const struct world_config *config, struct world **out, struct error *error);
    void (*close)(struct world *world); /* accepts NULL; releases occupied slots */

    /* Whether this world can run the scenario; a sentence says what is missing. Pure. */
    enum status (*accepts)(const struct scenario *scenario, struct error *error);

    /* Occupies a free slot at tick 0. Takes its own reference on the stage. */
    enum status (*slot_reset)(struct world *world, uint32_t slot, struct stage *stage,
                              uint64_t seed, struct error *error);
    void (*slot_release)(struct world *world, uint32_t slot);

    /* Advances every slot whose active[slot] != 0 by one tick under actions[slot]; both arrays have
     * slot_count elements. A non-finite action is the caller's bug for the loop, but worlds clamp
     * finite nonsense to the vehicle's limits. Inactive slots keep their bits. */
    void (*step)(struct world *world, const struct action *actions, const uint8_t *active);

    /* Draws what the sensors see now. Pure: state is not changed, any number of calls agree. */
    void (*slot_observe)(const struct world *world, uint32_t slot,
                         const struct observation_buffers *buffers);

    /* The true state now; borrowed, valid until the next step, reset, restore or release. */
    const struct scene *(*slot_scene)(const struct world *world, uint32_t slot);

    /* Applies a world intervention (agent_brake, agent_cut_in, agent_appear, conditions) before the
     * next step. STATUS_BAD_INPUT when this world cannot (an agent that is not there). */
    enum status (*slot_intervene)(struct world *world, uint32_t slot,
                                  const struct intervention *intervention, struct error *error);

    /* Makes free slot `to` an exact copy of occupied slot `from`. */
    void (*slot_fork)(struct world *world, uint32_t from, uint32_t to);

    /* A slot's state as bytes, to park a branch until a slot is free. Size is constant per world.
     * Restore occupies a free slot; a restored rollout continues bit for bit. The blob is only
     * valid within this process (it may hold references; drop releases one that is not restored).
     */
    size_t (*slot_state_bytes)(const struct world *world);
    void (*slot_save)(const struct world *world, uint32_t slot, void *state);
    void (*slot_restore)(struct world *world, uint32_t slot, void *state); /* consumes state */
    void (*slot_state_drop)(struct world *world, void *state);
};

/* First member of every world's own struct. */
struct world {
    const struct world_ops *ops;
    uint32_t slot_count;
};

extern const struct world_ops world_object_ops;
extern const struct world_ops world_replay_ops;
extern const struct world_ops world_dummy_ops; /* conformance and scheduling tests */

/* The ops table of a tier, or NULL if this build has none for it. */
const struct world_ops *world_ops_for_tier(enum tier tier);

#endif
