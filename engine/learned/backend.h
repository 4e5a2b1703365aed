/*
 * Backend: what computes a learned world's ticks, the CPU (engine/learned/forward.h) or a device
 * (kernels/device.h), behind one interface, so that the world steps its slots the same way on both.
 *
 * A call takes a batch of slots: one on the CPU, whose threads share each product; all of them on a
 * device. The bits of a slot depend on its own input alone, on either; between the two they agree
 * within a tolerance (tests/cuda/test_backend.c).
 *
 * On the CPU a page holds the model's memory of its frame; on a device this part lies there, in
 * the arena's page of the same number as the pool's frame, and `backing` moves it. A device's
 * frames come to the host when somebody wants to see them: with the tick, or when backend_frame
 * asks.
 */
#ifndef SWERVE_ENGINE_LEARNED_BACKEND_H
#define SWERVE_ENGINE_LEARNED_BACKEND_H

#include "engine/learned/device.h"
#include "engine/learned/forward.h"
#include "engine/learned/pages.h"
#include "kernels/agent_sums.h"
#include "kernels/frame_sums.h"

struct backend;

struct backend_config {
    const struct model *model;    /* borrowed, outlives the backend */
    const struct model *previous; /* the same, see below; NULL: none */
    const struct device *device;  /* borrowed during create; NULL: the CPU */
    uint32_t thread_count;        /* of the CPU's */
    uint32_t slot_count;
    size_t page_bytes; /* of a page, without the model's memory; a multiple of PAGE_ALIGN */
};

/* Two models side by side, on the CPU: input.skipped says which makes a tick (model_skips_past).
 * Each remembers every frame, whichever made it: its past has no gaps when it takes over. */

/* STATUS_DEVICE: the model was not opened for devices, or a device is to have two. */
enum status backend_create(const struct backend_config *config, struct backend **out,
                           struct error *error);
/* Before backend_backing: pinned buffers for pages on their way and for *host_pages that stay (the
 * host tier of engine/learned/pages.h). Where pinned memory is short *host_pages is halved until
 * they fit; on the CPU nothing is done. STATUS_NO_MEMORY: not even for those on their way. */
enum status backend_buffers(struct backend *backend, uint32_t *host_pages, struct error *error);
/* Before the first tick: how many frames the pool has. STATUS_NO_MEMORY, STATUS_DEVICE. */
enum status backend_start(struct backend *backend, uint32_t frame_count, struct error *error);
void backend_destroy(struct backend *backend); /* accepts NULL; after the pool */

uint32_t backend_batch(const struct backend *backend);
/* Counts of its device since backend_start; zeros on the CPU. */
struct device_stats backend_stats(const struct backend *backend);
/* Time that passed in the CPU's steps of the sampler so far, and their number. */
struct backend_steps {
    int64_t elapsed_ns;
    uint64_t count;
};
struct backend_steps backend_steps(const struct backend *backend);
/* Of the models' memory in a page of the pool: 0 on a device. */
size_t backend_memory_bytes(const struct backend *backend);
/* The same before there is a backend, on the CPU or a device; `previous` may be NULL. */
size_t backend_models_bytes(const struct model *model, const struct model *previous);
/* For page_pool_config, after backend_buffers; NULL on the CPU. Valid until destroy. */
const struct page_backing *backend_backing(const struct backend *backend);
/* Place where the layout [FRAME_BYTES] of a batch's slot `index` is drawn before backend_tick;
 * stays as it is until the next one is drawn there. */
uint8_t *backend_layout(struct backend *backend, uint32_t index);
/* Its description instead (DRAW_LIST_BYTES_MAX), for a device that draws it; NULL: the CPU.
 * Any thread, as backend_layout. */
struct draw_list *backend_draw_list(struct backend *backend, uint32_t index);

/* Maps on a device, so that it can draw layouts: each goes there once, for all that take it, and
 * leaves with the last of them. The number is what draw lists name; BACKEND_NO_MAP where there is
 * no device, or it has no room: then the host draws. `map` is borrowed until the last release. */
#define BACKEND_NO_MAP UINT32_MAX
uint32_t backend_map_take(struct backend *backend, const struct raster_map *map);
void backend_map_share(struct backend *backend, uint32_t number); /* one more; accepts NO_MAP */
void backend_map_release(struct backend *backend, uint32_t number);

/* One slot's tick. */
struct backend_slot {
    struct forward_input input; /* all but the layouts; pages[].memory NULL on a device */
    uint32_t page_frames[NN_PAGES_MAX];
    uint32_t write_frame;    /* of the page that is being written */
    bool deliver;            /* the frame is wanted now; the CPU's always is */
    uint32_t given;          /* enum device_given: what was drawn; the rest is described */
    uint8_t *frame;          /* out: [FRAME_BYTES], where it is delivered */
    void *memory;            /* out: what the models remember of it; NULL on a device */
    struct nn_counts counts; /* out */
    struct frame_sums sums;  /* out: of the frame, the newest page and the layout */
    uint32_t gate_count;     /* of the agents that are compared with the layout */
    struct agent_gate gates[AGENT_GATES_MAX];
    struct agent_sums agents[AGENT_GATES_MAX]; /* out: [gate_count] */
};

/* Frames and their memory of `count` slots, at most a batch. STATUS_DEVICE: the device failed, and
 * everything on it is lost. */
enum status backend_tick(struct backend *backend, struct backend_slot *slots, uint32_t count,
                         struct error *error);

/* The frame of a page of the pool, where it was not delivered, into its place there. STATUS_DEVICE
 * as above. */
enum status backend_frame(struct backend *backend, uint32_t page_frame, uint8_t *frame,
                          struct error *error);

/* Views for planners on the device: kernels/device.h has the records, the planes of the map and the
 * digests; device_view.page is a page_frame of the pool. STATUS_DEVICE on the CPU. */
enum status backend_views_open(struct backend *backend, uint32_t count, bool bev, bool cameras,
                               struct error *error);
/* Address on the device of a view's grid, or of its cameras; NULL where it has none. */
uint8_t *backend_view_address(const struct backend *backend, uint32_t view, bool cameras);
/* Record `index` below the batch, and the planes of the map that go with it. Any thread. */
struct device_view *backend_view(struct backend *backend, uint32_t index);
uint8_t *backend_view_map(struct backend *backend, uint32_t index);
/* Draws the first `count` records. STATUS_DEVICE as above. */
enum status backend_views_draw(struct backend *backend, uint32_t count, uint64_t *digests,
                               struct error *error);
enum status backend_view_copy(struct backend *backend, uint32_t from, uint32_t to,
                              struct error *error);

/* The model's memory of a frame that was not generated. */
enum status backend_memory(struct backend *backend, uint32_t page_frame, const uint8_t *frame,
                           void *memory, struct error *error);

#endif
