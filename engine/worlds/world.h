/*
 * World: anything that, given a batch of slots and one action per slot, yields the next state per
 * slot and can fork a slot. Every tier implements this one table;
 * tests/engine/test_world_conformance.c is the contract that each of them must pass, the dummy
 * included.
 *
 * Slots are static: their number is fixed at open, a rollout occupies one from reset to release.
 * Slots are independent: the bits of one never depend on the others, on its index or on their
 * number. Nothing is allocated between open and close except by reset, which prepares a scenario.
 */
#ifndef SWERVE_ENGINE_WORLDS_WORLD_H
#define SWERVE_ENGINE_WORLDS_WORLD_H

#include "base/status.h"
#include "engine/learned/frame_stats.h"
#include "engine/learned/spill_ops.h"
#include "engine/sensors/conditioning.h"
#include "engine/sensors/prepared.h"
#include "schemas/observation.h"
#include "schemas/outcome.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stddef.h>
#include <stdint.h>

struct world;

/* A loaded model (engine/learned/model.h); NULL for worlds without one. */
struct model;
struct device;
struct foreign;
struct rig;           /* schemas/rig/rig.h */
struct raster_layers; /* engine/sensors/raster.h */
struct watch_tally;   /* engine/rigs/watch.h */

#define WORLD_HOST_DEFAULT SIZE_MAX

struct world_config {
    uint32_t slot_count; /* 1..LIMIT_SLOTS */
    /* Learned worlds only. */
    const struct model *model; /* borrowed, outlives the world; its precision and sampler hold */
    /* A model that can take over for a tick (slot_skip), on the CPU; borrowed likewise, of the same
     * tier and precision. NULL: none. */
    const struct model *previous;
    enum conditioning conditioning;
    const struct device *device; /* engine/learned/device.h; borrowed during open; NULL: the CPU */
    uint32_t thread_count;       /* 0 counts as 1 */
    /* Of the page pool; 0: what slot_count slots need, and half more. Less than they need is
     * refused. Pages of parked rollouts that find no room go to the spill, or without one (or when
     * it refuses) to the heap. */
    size_t page_bytes_max;
    /* Of the host tier (engine/learned/pages.h), on a device in pinned memory, and less where that
     * is short; 0: none. WORLD_HOST_DEFAULT: half of page_bytes_max, at most 4 GiB. */
    size_t host_bytes_max;
    const struct spill_ops *spill; /* borrowed; NULL: none */
    const struct foreign *foreign; /* engine/worlds/foreign.h; borrowed, outlives the world */
    const struct rig *rig;         /* rig_take at once, borrowed during open; NULL: later */
    /* Of foreign worlds that make pictures of a rig (engine/rigs/watch.h), borrowed: bounds of
     * measures [WATCH_MEASURE_COUNT], NULL: the usual ones; and who adds every picture's, which
     * then ends no rollout, NULL: nobody. */
    const double *picture_bounds;
    struct watch_tally *picture_tally;
};

/* Cost of running so far; all slots together. */
struct world_cost {
    double flop;       /* counted from the model's shapes */
    int64_t steps_ns;  /* that passed in steps of the sampler, on the CPU .. */
    uint64_t steps;    /* .. and their number */
    double peak_flops; /* that a core, or the device, does in a second at the most; 0: not known */
    uint64_t ticks;    /* slot-ticks */
    uint64_t pages_shared;   /* pages that forks, parking and equal starts did not have to copy */
    uint64_t page_bytes;     /* of one page */
    uint64_t pages_peak;     /* in use at once */
    uint64_t frames_peak;    /* of these, in the pool's memory .. */
    uint64_t frames_max;     /* .. which has room for so many; 0: a world without a pool */
    uint64_t spills;         /* moves of a page out of the pool's memory and back */
    uint64_t pages_host;     /* in the host tier now */
    uint64_t pages_host_max; /* that have room there */
    uint64_t pages_spill;    /* in the spill now */
    uint64_t pages_ahead;    /* that were announced while they lay in the spill */
    uint64_t ahead_used;     /* of these, came back without a wait for the spill */
    /* Of a device; 0 on the CPU. */
    uint64_t captures; /* of a tick's graph: one, unless the model or the number of slots changed */
    uint64_t batches;  /* ticks of all slots at once */
    uint64_t up_bytes, down_bytes; /* over the bus */
    int64_t foreign_ns;            /* in a foreign world's own step; 0 of ours */
};

/* Outputs that an observation call should fill; NULL members are not drawn. */
struct observation_buffers {
    uint8_t *bev;                  /* [BEV_BYTES] */
    bool returns_alone;            /* nobody looks at its drivable and marking: they may stay */
    uint8_t *camera[CAMERA_COUNT]; /* [CAMERA_BYTES] each */
};

/* Fate of a part of a view; see world_view. */
enum view_update {
    VIEW_KEEP = 0, /* it stays as it is */
    VIEW_DRAW,     /* what the sensors see now */
    VIEW_CLEAR,    /* zeros */
};

/* An observation that stays on the world's device, for a planner that reads it there
 * (schemas/planner.h): the same bytes as in observation_buffers, in memory that outlasts ticks. */
struct world_view {
    uint32_t slot;        /* that is looked at */
    uint32_t view;        /* below the count of views_open */
    enum view_update bev; /* a part that views do not have is ignored */
    enum view_update cameras[CAMERA_COUNT];
    uint64_t
        digest; /* out: of all of the view's bytes afterwards, as engine/trace/trace.h trace_digest:
                   of the grid from 1, then of the cameras from that, or from 0 */
};

/* Remains of a tick, of a rollout that is driven again without its frames being generated again. */
struct world_past {
    const struct frame_stats *frame_stats; /* of its frame */
    const uint8_t
        *frame; /* [FRAME_BYTES]; NULL: it was not kept, and is not to be looked back at */
};

/* Frames of a camera of a rig at a tick, packed as a planner was shown them; the frames lie behind
 * it, one after the other. Little-endian. */
enum { WORLD_SHOT_FRAMES = 12 };
struct world_shot {
    uint64_t digest; /* of them before they were packed */
    uint32_t camera; /* in the rig's order */
    uint32_t jpeg_quality;
    uint32_t count;
    uint32_t bytes[WORLD_SHOT_FRAMES];
    uint32_t reserved;
};

/* Borrowed from the slot, valid until it is released. */
struct world_sight {
    const struct raster_layers *layers;
    const struct scenario *scenario;
    uint64_t seed;
};

struct world_ops {
    const char *name; /* "object", "replay", "dummy" */
    enum tier tier;
    /* slot_scene gives true agents. Of learned worlds this holds in the conditioning `agents`; in
     * the others the scene's agents are those found in the generated frames. */
    bool has_truth;

    enum status (*open)(const struct world_config *config, struct world **out, struct error *error);
    void (*close)(struct world *world); /* accepts NULL; releases occupied slots */

    /* Whether this world can run the scenario; a sentence says what is missing. Pure. */
    enum status (*accepts)(const struct scenario *scenario, struct error *error);

    /* Occupies a free slot at tick 0. Takes its own reference on the prepared scenario. */
    enum status (*slot_reset)(struct world *world, uint32_t slot, struct prepared *prepared,
                              uint64_t seed, struct error *error);
    void (*slot_release)(struct world *world, uint32_t slot);

    /* Advances every slot whose active[slot] != 0 by one tick under actions[slot]; both arrays have
     * slot_count elements. A non-finite action is the caller's bug for the loop, but worlds clamp
     * finite nonsense to the vehicle's limits. Inactive slots keep their bits. */
    void (*step)(struct world *world, const struct action *actions, const uint8_t *active);

    /* Draws what the sensors see now. Pure: state is not changed, any number of calls agree. (Where
     * a device that holds the picture fails in it, the rollouts are lost as in a step that fails:
     * nothing is seen, and frame statistics say so.) */
    void (*slot_observe)(const struct world *world, uint32_t slot,
                         const struct observation_buffers *buffers);

    /* Gives what sensors of any rig are drawn from (engine/rigs), beside slot_scene. Pure. NULL
     * member: a world that shows the sensors of the built-in rig alone. */
    void (*slot_sight)(const struct world *world, uint32_t slot, struct world_sight *out);

    /* Before any rollout: whose cameras are made from now on; the built-in rig where nobody says.
     * A sentence says why it cannot. This and the next three are NULL in worlds that draw. */
    enum status (*rig_take)(struct world *world, const struct rig *rig, struct error *error);
    /* Whose cameras are made, once a rollout has begun; borrowed from the world. */
    const struct rig *(*rig_made)(const struct world *world);
    /* A camera's frame [height][width][3] of the newest tick, in the rig's order; `back` 0: at the
     * tick itself, 1: the one before it .. Borrowed until the next step or release; NULL: there is
     * none, as before the first tick. */
    const uint8_t *(*slot_frame)(const struct world *world, uint32_t slot, uint32_t camera,
                                 uint32_t back);
    /* Frames of a camera that were recorded at the tick, packed so, 1 to frames_max, each of at
     * most bytes_max; *frames is borrowed until the next step. False: there are none, or others,
     * and the rollout is lost. NULL member: a world that is no recording. */
    bool (*slot_shot)(const struct world *world, uint32_t slot, uint32_t camera,
                      uint32_t jpeg_quality, uint32_t frames_max, size_t bytes_max,
                      struct world_shot *out, const uint8_t **frames);
    /* Before a step, what the planner wants from now on. *action becomes what ego does in this
     * tick: where frames that show its motion are made already, what was wanted when they were. */
    void (*slot_commit)(struct world *world, uint32_t slot, struct action *action);

    /* Views on the device of this world, numbered below `count`, with a grid, cameras or both; once
     * per world. STATUS_DEVICE: it is on none. STATUS_NO_MEMORY. This member and the next three are
     * NULL in a world that never is on one. */
    enum status (*views_open)(struct world *world, uint32_t count, bool bev, bool cameras,
                              struct error *error);
    /* Addresses on the device, of the parts that views have; valid until close. */
    void (*view_address)(const struct world *world, uint32_t view, struct observation_buffers *out);
    /* As slot_observe, of at most slot_count slots, each into a view of its own; nothing comes to
     * the host but the digests. When it returns the device has finished. STATUS_DEVICE: it failed;
     * all rollouts are lost as in a step that fails. */
    enum status (*views_draw)(struct world *world, struct world_view *views, uint32_t count,
                              struct error *error);
    /* View `to` becomes a copy of another one. A device that fails in it has lost all rollouts. */
    void (*view_copy)(struct world *world, uint32_t from, uint32_t to);

    /* Leaves out so many steps of the model's sampler in the slot's ticks from the next one on,
     * until it says otherwise or the slot is released; forks and saved states go on like that. With
     * all of them left out a frame is drawn, not generated; one more, and the previous model makes
     * it, by all of its own steps, and so on down to one. STATUS_BAD_INPUT: there are not so many,
     * or in this conditioning nothing could be drawn. STATUS_DEVICE: a device takes all of them.
     * NULL member: a world without a sampler of ours. */
    enum status (*slot_skip)(struct world *world, uint32_t slot, uint32_t steps,
                             struct error *error);

    /* The state now, true where has_truth; borrowed, valid until the next step, reset, restore or
     * release. */
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
    /* A saved state is going to be restored soon, those that are told first in a tick before the
     * others: what lies far away may begin to come nearer. Changes no bit. False: telling of more
     * before the next step is of no use. NULL member: a world that keeps nothing far away. */
    bool (*slot_state_prefetch)(struct world *world, const void *state);

    /* A frame of the slot's memory [FRAME_BYTES], `back` 0: the newest; borrowed until the next
     * step or release. NULL: it does not remember so many, is lost, or frames move its agents. With
     * slot_retrace a rollout goes on in another process bit for bit: from tick 0 through each
     * tick's past, with the frames of the last ticks, as many as the memory holds. NULL members: a
     * world that is stepped again.
     */
    const uint8_t *(*slot_memory)(const struct world *world, uint32_t slot, uint32_t back);
    /* One tick as it was: everybody is moved, nothing is generated. BAD_INPUT: the past is of
     * another tick or scenario, or in this conditioning frames move agents. STATUS_DEVICE. */
    enum status (*slot_retrace)(struct world *world, uint32_t slot, const struct action *action,
                                const struct world_past *past, struct error *error);

    /* Statistics of the newest frame; borrowed until the next step, reset, restore or release. NULL
     * member: a world with nothing to tell (object, replay). */
    const struct frame_stats *(*slot_frame_stats)(const struct world *world, uint32_t slot);
    /* NULL member: a world that keeps no such account. */
    void (*cost)(const struct world *world, struct world_cost *out);
};

/* First member of every world's own struct. */
struct world {
    const struct world_ops *ops;
    uint32_t slot_count;
};

extern const struct world_ops world_object_ops;
extern const struct world_ops world_replay_ops;
extern const struct world_ops world_student_ops; /* both need config.model of their tier */
extern const struct world_ops world_teacher_ops;
extern const struct world_ops world_tinyphysics_ops; /* config.foreign->host: tinyphysics_model */
/* The same of a network that is computed outside, which may fail: it has statistics to say so. */
extern const struct world_ops world_tinyphysics_outside_ops;

/* The ops table of a tier, or NULL if this build has none for it. */
const struct world_ops *world_ops_for_tier(enum tier tier);

#endif
