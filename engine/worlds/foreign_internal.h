/*
 * Foreign worlds, inside: what foreign.c (life cycle, branches), foreign_tick.c (one tick),
 * foreign_cell.c (states), foreign_frame.c (forms of frames) and foreign_instance.c share; of it
 * foreign_rig.c, the world of the form RIG, uses the instances.
 *
 * A cell is one state of the world: its part of the shared memory, and a private copy of the newest
 * frame. Cell `i` is state `i`. Slots and parked rollouts hold references on cells.
 */
#ifndef SWERVE_ENGINE_WORLDS_FOREIGN_INTERNAL_H
#define SWERVE_ENGINE_WORLDS_FOREIGN_INTERNAL_H

#include "base/check.h"
#include "engine/learned/threads.h"
#include "engine/sensors/extract.h"
#include "engine/worlds/drive.h"
#include "engine/worlds/foreign.h"
#include "engine/worlds/world_internal.h"

#include <stdarg.h>

enum { FOREIGN_GUARD_BYTES = 64, FOREIGN_GUARD = 0xA5, FOREIGN_NO_CELL = -1, FOREIGN_TICK_HZ = 10 };

/* Offsets of a cell's parts in its stretch of the shared memory. */
struct foreign_layout {
    uint32_t bev_bytes, cameras_bytes;
    size_t raster, frame, guard, agents, agents_guard;
    size_t stride;
};
struct foreign_layout foreign_layout_of(enum swerve_world_form form);

/* ---- instances (foreign_instance.c) ---- */

/* Memory that another process can map; *fd -1 and *memory NULL where there is none yet. */
enum status foreign_instance_share(size_t bytes, int *fd, uint8_t **memory, struct error *error);
void foreign_instance_unshare(size_t bytes, int fd, uint8_t *memory); /* accepts -1 and NULL */

/* Opens one. Of `setup` version, config and host are filled in here. It must declare what it
 * declared before, where it did. */
enum status foreign_instance_open(const struct foreign *foreign,
                                  const struct swerve_world_setup *setup, void **out,
                                  struct swerve_world_declared *declared, struct error *error);

struct foreign_cell {
    uint32_t references; /* 0: free */
    struct window window;
    uint8_t *shown;    /* [bev + cameras], in the world's form */
    uint8_t *measured; /* [FRAME_BYTES], WINDOW form; the same as shown where that is its form */
};

struct foreign_slot {
    struct drive drive;
    int32_t cell;
    uint32_t generation; /* of the instance that holds its state */
    struct anchor anchor;
    struct frame_stats frame_stats; /* fault: not "", the rollout is lost */
    struct extract_track tracks[LIMIT_AGENTS];
};

/* One slot's part in a tick. */
struct foreign_step {
    struct foreign_slot *slot;
    struct ego_state before;
    struct window window;
    uint8_t *layout; /* [FRAME_BYTES] */
};

struct foreign_world {
    struct world base;
    const struct foreign *foreign;
    struct swerve_world_declared declared;
    enum conditioning conditioning; /* that it is given */
    bool foresees;                  /* who was in the first frame is moved by foresee.h */
    bool by_tokens;                 /* .. and by tokens.h */
    void *instance;                 /* NULL: closed after a fault */
    uint32_t generation;            /* of the instance; those before took their states with them */
    uint32_t thread_count;
    struct threads *threads;
    struct foreign_layout layout;
    uint8_t *memory;
    size_t memory_bytes;
    int memory_fd;
    uint32_t cell_count;
    struct foreign_cell *cells;
    uint8_t *frames; /* of all cells */
    struct foreign_slot *slots;
    struct foreign_step *steps;       /* [slot_count] */
    uint32_t step_count;              /* of this tick */
    struct swerve_world_given *given; /* [slot_count] */
    struct swerve_world_made *made;   /* [slot_count] */
    uint8_t *layouts;                 /* [slot_count][FRAME_BYTES] */
    struct window_planes *expected;
    uint8_t *scratch; /* the frame before, and a frame in the EGO form */
    uint64_t ticks, forks_shared;
    int64_t step_ns; /* in the world's own step */
};

static inline struct foreign_world *foreign_of(const struct world *world)
{
    return (struct foreign_world *)world;
}

static inline struct foreign_slot *foreign_occupied(const struct world *world, uint32_t index)
{
    CHECK(index < world->slot_count && foreign_of(world)->slots[index].drive.prepared != NULL);
    return &foreign_of(world)->slots[index];
}

static inline uint8_t *foreign_memory(const struct foreign_world *self, int32_t cell)
{
    return self->memory + (size_t)cell * self->layout.stride;
}

static inline bool foreign_declares(const struct foreign_world *self, uint32_t flag)
{
    return (self->declared.flags & flag) != 0;
}

/* The rollout is lost; the first reason stays. */
/* Writes the first fault of a rollout down. */
void foreign_fault(const struct swerve_world_declared *declared, struct frame_stats *frame_stats,
                   uint32_t tick, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
bool foreign_guarded(const uint8_t *guard); /* its bytes are as they were set */
void foreign_lose(const struct foreign_world *self, struct foreign_slot *slot, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));
/* The instance is gone, with every state that it held. */
void foreign_die(struct foreign_world *self);
bool foreign_lost(const struct foreign_world *self, struct foreign_slot *slot);

/* A cell with one reference, which the caller holds. */
int32_t foreign_take_cell(struct foreign_world *self);
/* Gives the slot's reference back, if it has one. */
void foreign_leave_cell(struct foreign_world *self, struct foreign_slot *slot);
/* Before a step: the slot alone holds its cell. */
void foreign_own(struct foreign_world *self, struct foreign_slot *slot);

/* Fills the record for a slot but tick-dependent motion: from its scene as it is. */
void foreign_give(const struct foreign_world *self, const struct foreign_slot *slot,
                  struct window window, const struct ego_state *before, const struct action *action,
                  struct swerve_world_given *given);

void foreign_step_world(struct world *world, const struct action *actions, const uint8_t *active);

/* ---- forms (foreign_frame.c) ---- */

/* A frame in the WINDOW form, around ego in the EGO form: frame[FRAME_BYTES] to out[bev, cameras].
 */
void foreign_to_ego(const struct foreign_slot *slot, enum conditioning conditioning,
                    struct window window, const uint8_t *frame, uint8_t *out);
/* And back, for measuring: nearest cells; what the EGO form lacks (kinds, velocities) is empty. */
void foreign_from_ego(const struct foreign_slot *slot, struct window window, const uint8_t *shown,
                      uint8_t *frame);

#endif
