/*
 * Views of a learned world: newest frames as observations, in host memory or, for planners
 * that stay there, on the device.
 */
#include "engine/worlds/views.h"
#include "engine/worlds/world_learned.h"

#include <string.h>

/* Request for views, while it is prepared. */
struct view_batch {
    struct learned_world *world;
    const struct world_view *views;
};

/* ---- looking ---- */

/* The slot's newest frame, brought to the host if it must be; NULL: it is lost. Looking does not
 * change what a rollout is, but where its frame lies, and it finds out whether the device lives. */
static const struct page_header *look(struct learned_world *self, struct learned_slot *slot)
{
    if (slot->lost) {
        return NULL;
    }
    slot->watched = true;
    struct page_header *page = page_complete(self->pool, slot->pages.page[0]);
    if (backend_frame(self->backend, page_frame(self->pool, slot->pages.page[0]),
                      (uint8_t *)(page + 1), &self->fault) != STATUS_OK) {
        learned_lose_all(self);
        return NULL;
    }
    return page;
}

/* Sight of a lost rollout: nothing was seen. */
static void observe_nothing(const struct observation_buffers *buffers)
{
    if (buffers->bev != NULL) {
        memset(buffers->bev, 0, BEV_BYTES);
        memset(buffers->bev + (size_t)BEV_UNSEEN * BEV_CELLS, 255, BEV_CELLS);
    }
    for (int camera = 0; camera < CAMERA_COUNT; camera++) {
        if (buffers->camera[camera] != NULL) {
            memset(buffers->camera[camera], 0, CAMERA_BYTES);
        }
    }
}

void learned_observe(const struct world *world, uint32_t index,
                     const struct observation_buffers *buffers)
{
    struct learned_world *self = (struct learned_world *)world;
    const struct learned_slot *slot = learned_occupied(world, index);
    const struct page_header *page = look(self, learned_occupied(world, index));
    if (page == NULL) {
        observe_nothing(buffers);
        return;
    }
    const uint8_t *cameras = learned_frame(page) + FRAME_BEV_BYTES;
    if (buffers->bev != NULL) {
        layout_observe_bev(slot->drive.prepared, &slot->drive.scene, &slot->anchor, page->window,
                           self->conditioning, learned_frame(page), buffers->bev);
    }
    for (int camera = 0; camera < CAMERA_COUNT; camera++) {
        if (buffers->camera[camera] != NULL) {
            layout_camera_unpack(cameras + (size_t)camera * FRAME_CAMERA_POSITIONS *
                                               FRAME_CAMERA_CHANNELS,
                                 buffers->camera[camera]);
        }
    }
}

/* ---- looking from the device ---- */

enum status learned_views_open(struct world *world, uint32_t count, bool bev, bool cameras,
                               struct error *error)
{
    enum status status = backend_views_open(learned_of(world)->backend, count, bev, cameras, error);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, "world %s", world->ops->name);
}

void learned_view_address(const struct world *world, uint32_t view, struct observation_buffers *out)
{
    const struct backend *backend = learned_of(world)->backend;
    uint8_t *cameras = backend_view_address(backend, view, true);
    *out = (struct observation_buffers){.bev = backend_view_address(backend, view, false)};
    for (int i = 0; i < CAMERA_COUNT && cameras != NULL; i++) {
        out->camera[i] = cameras + (size_t)i * CAMERA_BYTES;
    }
}

/* The records of some views; any thread. */
static void prepare_views(void *context, uint32_t first, uint32_t end)
{
    const struct view_batch *batch = context;
    struct learned_world *self = batch->world;
    for (uint32_t i = first; i < end; i++) {
        const struct learned_slot *slot = learned_occupied(&self->base, batch->views[i].slot);
        struct views_source source = {
            .prepared = slot->drive.prepared,
            .scene = &slot->drive.scene,
            .anchor = &slot->anchor,
            .conditioning = self->conditioning,
            .map = slot->map,
            .lost = slot->lost,
        };
        if (!slot->lost) { /* else it may have no page */
            source.window = learned_newest(self, slot)->window;
            source.page_frame = page_frame(self->pool, slot->pages.page[0]);
        }
        views_record(&batch->views[i], &source, backend_view(self->backend, i),
                     backend_view_map(self->backend, i));
    }
}

/* Nobody looks at the frames on the host by this: they stay where they are. */
enum status learned_views_draw(struct world *world, struct world_view *views, uint32_t count,
                               struct error *error)
{
    struct learned_world *self = (struct learned_world *)world;
    struct view_batch batch = {self, views};
    CHECK(count <= world->slot_count);
    if (self->fault.status == STATUS_OK && count > 0) {
        threads_run(self->threads, count, 1, prepare_views, &batch);
        if (backend_views_draw(self->backend, count, self->digests, &self->fault) != STATUS_OK) {
            learned_lose_all(self);
        }
    }
    if (self->fault.status != STATUS_OK) {
        return error_set(error, self->fault.status, "world %s: %s", world->ops->name,
                         self->fault.text);
    }
    for (uint32_t i = 0; i < count; i++) {
        views[i].digest = self->digests[i];
    }
    return STATUS_OK;
}

void learned_view_copy(struct world *world, uint32_t from, uint32_t to)
{
    struct learned_world *self = (struct learned_world *)world;
    if (self->fault.status == STATUS_OK &&
        backend_view_copy(self->backend, from, to, &self->fault) != STATUS_OK) {
        learned_lose_all(self);
    }
}
