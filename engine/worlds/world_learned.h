/*
 * Learned worlds, inside: what world_learned.c (life cycle, branches), world_learned_tick.c (one
 * tick) and world_learned_observe.c (what is seen of it, on the host and on a device) share; nobody
 * else includes it.
 */
#ifndef SWERVE_ENGINE_WORLDS_WORLD_LEARNED_H
#define SWERVE_ENGINE_WORLDS_WORLD_LEARNED_H

#include "base/check.h"
#include "base/sha256.h"
#include "engine/learned/backend.h"
#include "engine/learned/pages.h"
#include "engine/learned/threads.h"
#include "engine/sensors/extract.h"
#include "engine/worlds/drive.h"
#include "engine/worlds/world_internal.h"

/* A page: this header, the frame, the model's memory of it (K and V of every layer). */
struct page_header {
    struct window window;
    uint32_t tick;
    uint8_t padding[PAGE_ALIGN - sizeof(struct window) - sizeof(uint32_t)];
};

struct learned_slot {
    struct drive drive; /* its agents are the scene in `agents` alone */
    bool lost;
    bool watched;     /* somebody looked at the newest frame */
    uint32_t skipped; /* steps of the sampler that its ticks leave out */
    uint32_t map;     /* of the prepared scenario on the backend's device; BACKEND_NO_MAP: none */
    struct anchor anchor;
    struct page_table pages; /* newest first */
    struct frame_stats frame_stats;
    struct extract_track tracks[LIMIT_AGENTS]; /* map, none */
};

/* The page of a scenario's start. Not a reference: the page may be gone. */
struct context {
    const struct prepared *prepared; /* alive as long as the page */
    uint8_t scene[SHA256_BYTES];
    uint32_t page;
    uint64_t serial; /* 0: empty */
};

/* One slot's part in a batch. */
struct learned_step {
    struct learned_slot *slot;
    struct ego_state before;
    uint32_t page;
    float cond[COND_COUNT];
    struct backend_slot *tick; /* in batch */
};

struct learned_world {
    struct world base;
    const struct model *model;
    const struct model *previous;   /* NULL: none */
    enum conditioning conditioning; /* of the network */
    bool foresees;                  /* who was in the first frame is moved by foresee.h */
    bool by_tokens;                 /* .. and by tokens.h */
    struct page_pool *pool;
    struct backend *backend;
    struct threads *threads;    /* draw the layouts of a batch */
    struct learned_step *steps; /* [batch] */
    struct backend_slot *batch; /* [batch] */
    struct error fault;         /* of the device: then the world is of no more use */
    struct learned_slot *slots;
    uint64_t *digests;        /* [batch]: of views */
    struct context *contexts; /* [slot_count], replaced in turn */
    uint32_t next_context;
    uint64_t ticks;
    double flop;
    struct window_planes *expected; /* scratch of the extraction */
};

static inline const struct learned_world *learned_of(const struct world *world)
{
    return (const struct learned_world *)world;
}

static inline struct learned_slot *learned_occupied(const struct world *world, uint32_t index)
{
    CHECK(index < world->slot_count && learned_of(world)->slots[index].drive.prepared != NULL);
    return &learned_of(world)->slots[index];
}

static inline struct learned_slot *learned_vacant(const struct world *world, uint32_t index)
{
    CHECK(index < world->slot_count && learned_of(world)->slots[index].drive.prepared == NULL);
    return &learned_of(world)->slots[index];
}

_Static_assert(sizeof(struct page_header) == PAGE_ALIGN && FRAME_BYTES % PAGE_ALIGN == 0,
               "the parts of a page are aligned");

static inline const uint8_t *learned_frame(const struct page_header *page)
{
    return (const uint8_t *)(page + 1);
}

static inline const struct page_header *learned_newest(const struct learned_world *self,
                                                       const struct learned_slot *slot)
{
    return page_read(self->pool, slot->pages.page[0]);
}

static inline void learned_push(struct learned_world *self, struct learned_slot *slot,
                                uint32_t page)
{
    slot->watched = false;
    page_table_push(self->pool, &slot->pages, page, model_config(self->model)->window);
}

/* The rollout goes on in the dark; see world_learned.c. */
void learned_lose(struct learned_slot *slot);
/* The device failed: what every slot remembers lay on it. */
void learned_lose_all(const struct learned_world *self);

/* Of struct world_ops. */
const uint8_t *learned_memory(const struct world *world, uint32_t index, uint32_t back);
enum status learned_retrace(struct world *world, uint32_t index, const struct action *action,
                            const struct world_past *past, struct error *error);
void learned_step(struct world *world, const struct action *actions, const uint8_t *active);
void learned_observe(const struct world *world, uint32_t index,
                     const struct observation_buffers *buffers);
enum status learned_views_open(struct world *world, uint32_t count, bool bev, bool cameras,
                               struct error *error);
void learned_view_address(const struct world *world, uint32_t view,
                          struct observation_buffers *out);
enum status learned_views_draw(struct world *world, struct world_view *views, uint32_t count,
                               struct error *error);
void learned_view_copy(struct world *world, uint32_t from, uint32_t to);

#endif
