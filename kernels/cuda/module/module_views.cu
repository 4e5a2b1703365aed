/*
 * Views of a session: what planners on the device are shown (kernels/device.h). Their memory and
 * their records are placed once, like everything else of a session; drawing them is a few launches
 * behind a tick, outside of its graph.
 */
#include "kernels/cuda/module/module.cuh"
#include "kernels/cuda/student/observe.h"

#include <stdio.h>
#include <string.h>

enum { MAP_BYTES = 2 * DEVICE_VIEW_CELLS }; /* drivable area and markings, the last two planes */

static cudaError_t allocate(struct device_session *session, struct module_views *views)
{
    size_t slots = session->options.slot_count;
    views->drawn = module_bits_create(views->count);
    if (views->drawn == NULL) {
        return cudaErrorMemoryAllocation;
    }
    cudaError_t error = cudaMalloc(&views->memory, views->count * views->bytes);
    if (error == cudaSuccess) {
        error = cudaMalloc(&views->records, slots * sizeof *views->records);
    }
    if (error == cudaSuccess) {
        error = cudaMalloc(&views->digests, slots * sizeof *views->digests);
    }
    if (error == cudaSuccess) {
        error = cudaMallocHost(&views->host_records, slots * sizeof *views->host_records);
    }
    if (error == cudaSuccess) {
        error = cudaMallocHost(&views->host_digests, slots * sizeof *views->host_digests);
    }
    if (error == cudaSuccess && views->bev) {
        error = cudaMallocHost(&views->host_maps, slots * MAP_BYTES);
    }
    return error;
}

static void free_views(struct module_views *views)
{
    cudaFree(views->memory);
    cudaFree(views->records);
    cudaFree(views->digests);
    cudaFreeHost(views->host_records);
    cudaFreeHost(views->host_digests);
    cudaFreeHost(views->host_maps);
    free(views->drawn);
    *views = {};
}

void module_views_close(struct device_session *session)
{
    free_views(&session->views);
}

int module_views_open(struct device_session *session, uint32_t count, int bev, int cameras,
                      struct device_text *why)
{
    struct module_views *views = &session->views;
    if (session->lost || session->running || views->memory != NULL || count == 0 ||
        count > DEVICE_VIEWS_MAX || (!bev && !cameras)) {
        return module_refuse(why, "expected 1 to 65536 views of a grid or images, once a session");
    }
    cudaError_t error = module_enter(session);
    if (error != cudaSuccess) {
        return module_check(session, error, "choosing the device", why);
    }
    views->count = count;
    views->bev = bev != 0;
    views->cameras = cameras != 0;
    views->bytes = (bev ? (size_t)DEVICE_VIEW_BEV_BYTES : 0) +
                   (cameras ? (size_t)DEVICE_VIEW_CAMERAS_BYTES : 0);
    error = allocate(session, views);
    if (error != cudaSuccess) {
        char what[96];
        snprintf(what, sizeof what, "%.2f GB for observations of %u rollouts",
                 (double)count * (double)views->bytes / 1e9, count);
        free_views(views);
        return module_fault(why, DEVICE_FAULT_MEMORY, what, error);
    }
    session->stats.workspace_bytes += count * views->bytes;
    return module_check(session,
                        cudaMemsetAsync(views->memory, 0, count * views->bytes, session->stream),
                        "clearing observations", why);
}

uint8_t *module_view_address(const struct device_session *session, uint32_t view, int cameras)
{
    const struct module_views *views = &session->views;
    if (view >= views->count || !(cameras ? views->cameras : views->bev)) {
        return NULL;
    }
    return views->memory + view * views->bytes +
           (cameras && views->bev ? (size_t)DEVICE_VIEW_BEV_BYTES : 0);
}

struct device_view *module_view_records(struct device_session *session)
{
    return session->views.host_records;
}

uint8_t *module_view_map(struct device_session *session, uint32_t index)
{
    uint8_t *maps = session->views.host_maps;
    return maps != NULL ? maps + (size_t)index * MAP_BYTES : NULL;
}

/* Records of a call are drawn side by side, so each has a view of its own. Their numbers are valid.
 */
static int check_drawn(const struct device_session *session, uint32_t count,
                       struct device_text *why)
{
    const struct module_views *views = &session->views;
    int fault = DEVICE_OK;
    uint32_t seen = 0;
    for (; seen < count && fault == DEVICE_OK; seen++) {
        const uint32_t view = views->host_records[seen].view;
        if (!module_bit_set(views->drawn, view)) {
            snprintf(why->text, sizeof why->text,
                     "record %u: expected a view of its own, found view %u, which an earlier one "
                     "names",
                     seen, view);
            fault = DEVICE_FAULT_INPUT;
        }
    }
    for (uint32_t i = 0; i < seen; i++) {
        views->drawn[views->host_records[i].view / 64] = 0;
    }
    return fault;
}

/* Numbers become addresses on the device without another look. */
static int check_records(const struct device_session *session, uint32_t count,
                         struct device_text *why)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct device_view *record = &session->views.host_records[i];
        bool mapped = record->map < DEVICE_MAPS_MAX && session->map_memory[record->map] != NULL;
        if (record->view >= session->views.count || record->page >= session->options.page_count) {
            snprintf(why->text, sizeof why->text,
                     "record %u: expected a view below %u and a page below %u, found %u and %u", i,
                     session->views.count, session->options.page_count, record->view, record->page);
            return DEVICE_FAULT_INPUT;
        }
        if (!mapped && record->map != DEVICE_NO_MAP) {
            snprintf(why->text, sizeof why->text, "record %u: map %u was not made", i, record->map);
            return DEVICE_FAULT_INPUT;
        }
    }
    return check_drawn(session, count, why);
}

/* The planes that the host drew, each to its place. */
static cudaError_t copy_maps(struct device_session *session, uint32_t count)
{
    const struct module_views *views = &session->views;
    cudaError_t error = cudaSuccess;
    for (uint32_t i = 0; i < count && views->bev && error == cudaSuccess; i++) {
        const struct device_view *record = &views->host_records[i];
        if (record->bev != DEVICE_VIEW_DRAW || record->conditioning == CONDITION_NONE ||
            record->map != DEVICE_NO_MAP) {
            continue;
        }
        uint8_t *to = views->memory + record->view * views->bytes + 2 * DEVICE_VIEW_CELLS;
        error = cudaMemcpyAsync(to, module_view_map(session, i), MAP_BYTES, cudaMemcpyHostToDevice,
                                session->stream);
        session->stats.up_bytes += MAP_BYTES;
    }
    return error;
}

int module_views_draw(struct device_session *session, uint32_t count, uint64_t *digests,
                      struct device_text *why)
{
    struct module_views *views = &session->views;
    if (session->lost || session->running || views->memory == NULL || count == 0 ||
        count > session->options.slot_count) {
        return module_refuse(why, "no such views, or a tick is under way");
    }
    int fault = check_records(session, count, why);
    if (fault != DEVICE_OK) {
        return fault;
    }
    struct observe_views v = {};
    v.count = count;
    v.records = views->records;
    v.arena = session->arena;
    v.page_bytes = session->page_bytes;
    v.views = views->memory;
    v.view_bytes = views->bytes;
    v.bev = views->bev;
    v.cameras = views->cameras;
    v.maps = session->buffers.maps;
    cudaError_t error = module_enter(session);
    if (error == cudaSuccess) {
        error = module_follow_copies(session);
    }
    if (error == cudaSuccess) {
        error = cudaMemcpyAsync(views->records, views->host_records, count * sizeof *views->records,
                                cudaMemcpyHostToDevice, session->stream);
    }
    if (error == cudaSuccess) {
        error = copy_maps(session, count);
    }
    if (error == cudaSuccess) {
        observe_draw(&v, session->stream);
        observe_digest(&v, views->digests, session->stream);
        session->stats.launches += 1 + (views->bev ? 1 : 0) + (views->cameras ? 1 : 0);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess) {
        error = cudaMemcpyAsync(views->host_digests, views->digests, count * sizeof *views->digests,
                                cudaMemcpyDeviceToHost, session->stream);
    }
    if (error == cudaSuccess) {
        error = cudaStreamSynchronize(session->stream);
    }
    session->stats.up_bytes += count * sizeof *views->records;
    session->stats.down_bytes += count * sizeof *views->digests;
    if (error == cudaSuccess) {
        memcpy(digests, views->host_digests, count * sizeof *digests);
    }
    return module_check(session, error, "drawing observations", why);
}

int module_view_copy(struct device_session *session, uint32_t from, uint32_t to,
                     struct device_text *why)
{
    const struct module_views *views = &session->views;
    if (session->lost || session->running || from >= views->count || to >= views->count ||
        from == to) {
        return module_refuse(why, "no such views, or a tick is under way");
    }
    cudaError_t error = module_enter(session);
    if (error == cudaSuccess) {
        error =
            cudaMemcpyAsync(views->memory + to * views->bytes, views->memory + from * views->bytes,
                            views->bytes, cudaMemcpyDeviceToDevice, session->stream);
    }
    return module_check(session, error, "copying an observation", why);
}
