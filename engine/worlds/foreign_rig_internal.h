/*
 * Foreign worlds of the form RIG, inside: what foreign_rig.c (life cycle, looking, branches),
 * foreign_rig_chunk.c (a tick, chunks), foreign_rig_past.c (states, logs) and foreign_rig_place.c
 * (memory, faults) share; nobody else includes it. Each calls those behind it.
 *
 * Ego and everybody else are driven tick by tick, as anywhere. Frames are made in chunks, by a
 * drive that runs ahead of the rollout's own with the action that ego is committed to until the
 * last tick that the chunk shows a part of. Frame f is of the time f / rate; frame 0 is the
 * sensors'.
 *
 * A cell is what one or more rollouts remember together, as in foreign.c. Where the world keeps
 * fewer states than there are cells, a cell's state may have to go; whoever steps the cell then has
 * it made anew from the rollout's log, to the same frames.
 */
#ifndef SWERVE_ENGINE_WORLDS_FOREIGN_RIG_INTERNAL_H
#define SWERVE_ENGINE_WORLDS_FOREIGN_RIG_INTERNAL_H

#include "base/check.h"
#include "engine/rigs/actors.h"
#include "engine/rigs/watch.h"
#include "engine/worlds/drive.h"
#include "engine/worlds/foreign_internal.h"
#include "schemas/rig/rig.h"

enum { RIG_NO_STATE = -1, RIG_CALL_TEXT_BYTES = 400 };

/* Frames of a chunk, or frame 0: of each camera one after the other. Immutable. */
struct rig_reel {
    uint32_t references;
    uint32_t first, count;
    uint8_t bytes[]; /* [count * frame_bytes], camera c at camera_at[c] * count */
};

/* Input that a chunk was made of, and a hash of its frames; the first is the reset. Immutable. */
struct rig_log {
    uint32_t references;
    struct rig_log *before; /* a reference; NULL: this is the reset */
    uint64_t hash;
    struct swerve_world_chunk chunk;
    struct swerve_world_body bodies[]; /* [frame_count][body_count] */
};

struct rig_cell {
    uint32_t references; /* 0: free */
    int32_t state;       /* of the instance; RIG_NO_STATE: it keeps none */
    uint64_t used;       /* when it was last stepped */
};

struct rig_slot {
    struct drive drive;
    int32_t cell;
    uint32_t generation; /* of the instance that holds its state */
    /* References: the newest chunk, the one before it, and the past (NULL: none is kept). */
    struct rig_reel *reel, *before;
    struct rig_log *log;
    uint32_t last;            /* newest frame that is made */
    uint32_t committed_until; /* ego does `committed` before this tick */
    uint32_t wanted_for;      /* tick + 1 of the step that `wanted` and `now` are for; 0: none */
    struct action committed, wanted, now;
    struct frame_stats frame_stats; /* fault: not "", the rollout is lost */
    struct watch_camera watches[RIG_CAMERAS_MAX];
    bool filled[RIG_CAMERAS_MAX][SWERVE_WORLD_FRAMES]; /* a body fills the picture; of a chunk */
    struct actors_seen seen[RIG_CAMERAS_MAX];
};

struct rig_world {
    struct world base;
    const struct foreign *foreign;
    uint32_t thread_count;
    bool taken; /* the rig is known, and what follows from it */
    struct rig rig;
    char *text; /* its JSON */
    bool builtin;
    struct raster_rays *rays[RIG_CAMERAS_MAX];
    struct actors *actors[RIG_CAMERAS_MAX];
    int32_t stands_for[CAMERA_COUNT]; /* camera that a small picture is of; -1: none */
    size_t camera_at[RIG_CAMERAS_MAX + 1];
    size_t frame_bytes; /* of all cameras */
    void *instance;     /* NULL: not open, or closed after a fault */
    struct swerve_world_declared declared;
    uint32_t generation;
    /* Places of the shared memory, one for each member of a batch. */
    size_t guard_at, bodies_at, bodies_guard_at, place_bytes;
    uint8_t *memory;
    size_t memory_bytes;
    int memory_fd;
    uint32_t tick_frames, state_count, batch_max;
    int32_t *cell_of; /* [state_count], FOREIGN_NO_CELL: free */
    uint32_t cell_count;
    struct rig_cell *cells;
    struct rig_slot *slots;
    /* Of a step. */
    struct rig_slot **due;             /* [slot_count] */
    struct swerve_world_chunk *chunks; /* [slot_count] */
    struct swerve_world_made *made;    /* [slot_count] */
    struct drive ahead;
    const double *picture_bounds; /* as in struct world_config */
    struct watch_tally *picture_tally;
    struct scene scenes[2];
    uint64_t uses, ticks, forks_shared;
    int64_t step_ns; /* in the world's own step */
};

static inline struct rig_world *rig_world_of(const struct world *world)
{
    return (struct rig_world *)world;
}

static inline struct rig_slot *rig_occupied(const struct world *world, uint32_t index)
{
    CHECK(index < world->slot_count && rig_world_of(world)->slots[index].drive.prepared != NULL);
    return &rig_world_of(world)->slots[index];
}

static inline uint8_t *rig_place(const struct rig_world *self, uint32_t place)
{
    return self->memory + place * self->place_bytes;
}

/* ---- places, faults (foreign_rig_place.c) ---- */

/* The rollout is lost; the first reason stays. */
void rig_lose(const struct rig_world *self, struct rig_slot *slot, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void rig_die(struct rig_world *self); /* the instance is gone, with every state that it held */
bool rig_lost(const struct rig_world *self, struct rig_slot *slot);

/* A record for frames of a drive whose poses and places follow. */
struct swerve_world_chunk rig_chunk_of(const struct rig_world *self, const struct drive *drive,
                                       uint32_t first, uint32_t count);
/* Ego and agents at a time, as frame `index` of the chunk. */
void rig_put_frame(const struct rig_world *self, uint32_t place, const struct drive *drive,
                   const struct scene *scene, double time_s, uint32_t index,
                   struct swerve_world_chunk *chunk);
/* Frame 0 of a drive that was just reset, in a place of the shared memory, and its record. */
void rig_draw_first(struct rig_world *self, const struct drive *drive, uint32_t place,
                    struct swerve_world_chunk *out);
/* Place of a record of a drive that is given in a place. */
void rig_address(const struct rig_world *self, uint32_t place, struct swerve_world_chunk *chunk);
/* Whether the answer about a chunk in a place can be believed; else the slot is lost. */
bool rig_check_made(const struct rig_world *self, struct rig_slot *slot, uint32_t place,
                    const struct swerve_world_chunk *chunk, const struct swerve_world_made *made);
/* Puts bodies and empty frames into a place, and the guards behind them. */
void rig_clear_place(struct rig_world *self, uint32_t place, uint32_t frame_count);

/* ---- chunks (foreign_rig_chunk.c) ---- */

void rig_step_world(struct world *world, const struct action *actions, const uint8_t *active);
void rig_commit(struct world *world, uint32_t slot, struct action *action);

/* ---- states and logs (foreign_rig_past.c) ---- */

struct rig_reel *rig_reel_create(const struct rig_world *self, uint32_t first, uint32_t count);
void rig_reel_leave(struct rig_reel *reel); /* accepts NULL */

/* Keeps a chunk that is about to be asked for as the newest of the slot's past, where one is kept;
 * its hash follows. The bodies are copied while the world has not written in them. False: no
 * memory. */
bool rig_log_keep(const struct rig_world *self, struct rig_slot *slot, uint32_t place,
                  const struct swerve_world_chunk *chunk);
void rig_log_leave(struct rig_log *log); /* accepts NULL */
uint64_t rig_hash_frames(const struct rig_world *self, const uint8_t *frames, uint32_t count);

/* A cell with one reference, which the caller holds, and no state. */
/* A reset of the chunk's state. Not 0: the sentence is in `text`. */
int rig_reset_state(struct rig_world *self, struct prepared *prepared,
                    const struct swerve_world_chunk *chunk, char text[RIG_CALL_TEXT_BYTES]);
int32_t rig_take_cell(struct rig_world *self);
/* Gives the cell a state, taking one from a cell that was not used since `started` where the world
 * keeps no more. */
void rig_take_state(struct rig_world *self, int32_t cell, uint64_t started);
void rig_leave_cell(struct rig_world *self, struct rig_slot *slot);
/* Before a chunk: the slot alone holds its cell, whose state the instance keeps. False: it is lost.
 */
bool rig_own(struct rig_world *self, struct rig_slot *slot, uint64_t started);

#endif
