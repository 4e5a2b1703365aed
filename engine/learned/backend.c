/*
 * The two backends of learned worlds. See backend.h.
 */
#include "engine/learned/backend.h"

#include "base/check.h"
#include "base/clock.h"
#include "engine/learned/agent_measure.h"
#include "engine/learned/frame_measure.h"
#include "engine/learned/model_internal.h"

#include <stdlib.h>
#include <string.h>

enum { STAGED_PAGES = 8 }; /* on their way between device and host, beside the host tier */

/* A map that lies on the device. */
struct backend_map {
    const struct raster_map *source;
    uint32_t references; /* 0: the number is free */
};

/* A model on the CPU, and where its memory lies in that of a page. */
struct network {
    const struct model *model; /* NULL: none */
    struct workspace *workspace;
    size_t memory_at;
};

enum { NETWORK_OWN = 0, NETWORK_PREVIOUS, NETWORKS };

struct backend {
    const struct model *model;
    uint32_t batch;
    /* the CPU */
    struct network networks[NETWORKS];
    uint8_t *layout; /* [FRAME_BYTES] */
    struct backend_steps steps;
    /* a device */
    struct device device;
    struct device_session *session;
    struct page_backing backing;
    uint8_t *fetched; /* pinned [FRAME_BYTES] */
    bool *here;       /* by frame of the pool: its bytes are on the host */
    struct backend_map maps[DEVICE_MAPS_MAX];
    size_t buffer_bytes; /* of one page in its staging */
};

/* kernels/device.h repeats these numbers. */
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), "differs from device.h")
SAME(FRAME_BYTES, DEVICE_FRAME_BYTES);
SAME(NN_PAGES_MAX, DEVICE_PAGES_MAX);
SAME(COND_COUNT, DEVICE_COND);
SAME(MODEL_FEATURES, DEVICE_FEATURES);
SAME(MODEL_STEPS_MAX, DEVICE_STEPS_MAX);
SAME(CONDITIONING_AGENTS, 0);
SAME(CONDITIONING_MAP, 1);
SAME(CONDITIONING_NONE, 2);
SAME(CAMERA_COUNT, 3);
SAME(BEV_CELLS, DEVICE_VIEW_CELLS);
SAME(BEV_BYTES, DEVICE_VIEW_BEV_BYTES);
SAME(CAMERA_BYTES, DEVICE_VIEW_CAMERA_BYTES);
SAME(BEV_DRIVABLE, 2); /* the map's planes are the last two */
SAME(BEV_MARKING, 3);
_Static_assert(BACKEND_NO_MAP == DEVICE_NO_MAP, "differs from device.h");

static bool on_device(const struct backend *backend)
{
    return backend->device.ops != NULL;
}

/* ---- moving pages ---- */

/* The pool's page begins with what the caller keeps there; its frame is the last FRAME_BYTES. A
 * copy of the page lies in front of what is moved here, pinned like that: a frame that nobody asked
 * for so far goes straight there, and comes back from there. */
static bool save_page(void *context, uint32_t frame, void *out)
{
    struct backend *backend = context;
    struct device_text why;
    uint8_t *bytes = backend->here[frame] ? NULL : (uint8_t *)out - FRAME_BYTES;
    return backend->device.ops->page_save(backend->session, frame, bytes, out, &why) == DEVICE_OK;
}

static bool load_page(void *context, uint32_t frame, const void *page, const void *bytes)
{
    struct backend *backend = context;
    struct device_text why;
    (void)page;
    backend->here[frame] = true;
    return backend->device.ops->page_load(backend->session, frame,
                                          (const uint8_t *)bytes - FRAME_BYTES, bytes,
                                          &why) == DEVICE_OK;
}

static void start_pages(void *context)
{
    struct backend *backend = context;
    struct device_text why;
    backend->device.ops->page_start(backend->session, &why); /* else page_wait fails */
}

static bool wait_for_pages(void *context)
{
    struct backend *backend = context;
    struct device_text why;
    return backend->device.ops->page_wait(backend->session, &why) == DEVICE_OK;
}

/* ---- create and destroy ---- */

static void create_device(struct backend *backend, const struct backend_config *config)
{
    backend->device = *config->device;
    backend->batch = config->slot_count;
    backend->buffer_bytes = config->page_bytes + forward_memory_bytes(config->model);
    backend->backing = (struct page_backing){
        .context = backend,
        .bytes = forward_memory_bytes(config->model),
        .save = save_page,
        .load = load_page,
        .start = start_pages,
        .wait = wait_for_pages,
    };
}

static size_t aligned(size_t bytes)
{
    return (bytes + PAGE_ALIGN - 1) / PAGE_ALIGN * PAGE_ALIGN;
}

size_t backend_models_bytes(const struct model *model, const struct model *previous)
{
    return previous != NULL ? aligned(forward_memory_bytes(model)) + forward_memory_bytes(previous)
                            : forward_memory_bytes(model);
}

static enum status create_networks(struct backend *backend, const struct backend_config *config,
                                   struct error *error)
{
    backend->layout = aligned_alloc(PAGE_ALIGN, FRAME_BYTES);
    TRY(memory_check(backend->layout, error, "no memory for a layout"));
    backend->networks[NETWORK_OWN].model = config->model;
    backend->networks[NETWORK_PREVIOUS].model = config->previous;
    backend->networks[NETWORK_PREVIOUS].memory_at = aligned(forward_memory_bytes(config->model));
    for (int i = 0; i < NETWORKS; i++) {
        struct network *network = &backend->networks[i];
        if (network->model != NULL) {
            TRY(workspace_create(network->model, config->thread_count, &network->workspace, error));
        }
    }
    return STATUS_OK;
}

enum status backend_create(const struct backend_config *config, struct backend **out,
                           struct error *error)
{
    CHECK(config->slot_count > 0 && config->page_bytes % PAGE_ALIGN == 0);
    struct backend *backend = calloc(1, sizeof *backend);
    TRY(memory_check(backend, error, "no memory for a backend"));
    enum status status = STATUS_OK;
    backend->model = config->model;
    backend->batch = 1;
    if (config->device == NULL || config->device->ops == NULL) {
        status = create_networks(backend, config, error);
    } else if (config->previous != NULL) {
        status = error_set(error, STATUS_DEVICE, "a device has one model, two are to be driven");
    } else {
        create_device(backend, config);
    }
    if (status != STATUS_OK) {
        backend_destroy(backend);
        return status;
    }
    *out = backend;
    return STATUS_OK;
}

enum status backend_buffers(struct backend *backend, uint32_t *host_pages, struct error *error)
{
    struct page_backing *backing = &backend->backing;
    if (!on_device(backend)) {
        return STATUS_OK;
    }
    CHECK(backing->staging == NULL);
    for (;;) {
        backing->buffers = STAGED_PAGES + *host_pages;
        backing->staging =
            backend->device.ops->host_alloc(backing->buffers * backend->buffer_bytes);
        if (backing->staging != NULL || *host_pages == 0) {
            break;
        }
        *host_pages /= 2;
    }
    backend->fetched = backend->device.ops->host_alloc(FRAME_BYTES);
    if (backing->staging == NULL || backend->fetched == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no pinned memory for %d pages of %zu bytes",
                         STAGED_PAGES, backend->buffer_bytes);
    }
    return STATUS_OK;
}

enum status backend_start(struct backend *backend, uint32_t frame_count, struct error *error)
{
    if (!on_device(backend)) {
        return STATUS_OK;
    }
    struct model_device model;
    struct device_text why = {""};
    backend->here = calloc(frame_count, sizeof *backend->here);
    TRY(memory_check(backend->here, error, "no memory for %u frames", frame_count));
    struct device_options options = {
        .device = backend->device.index,
        .slot_count = backend->batch,
        .page_count = frame_count,
        .reference = backend->device.reference,
        .wgmma = backend->device.wgmma,
    };
    memcpy(options.products, backend->device.products, sizeof options.products);
    TRY(model_describe(backend->model, &model, error));
    int fault = backend->device.ops->open(&model.description, &options, &backend->session, &why);
    return fault == DEVICE_OK ? STATUS_OK
                              : device_error(error, fault, backend->device.backend, &why);
}

void backend_destroy(struct backend *backend)
{
    if (backend == NULL) {
        return;
    }
    if (on_device(backend)) {
        backend->device.ops->close(backend->session);
        backend->device.ops->host_free(backend->backing.staging);
        backend->device.ops->host_free(backend->fetched);
    }
    free(backend->here);
    for (int i = 0; i < NETWORKS; i++) {
        workspace_destroy(backend->networks[i].workspace);
    }
    free(backend->layout);
    free(backend);
}

uint32_t backend_batch(const struct backend *backend)
{
    return backend->batch;
}

struct device_stats backend_stats(const struct backend *backend)
{
    struct device_stats stats = {0};
    if (on_device(backend)) {
        backend->device.ops->stats(backend->session, &stats);
    }
    return stats;
}

struct backend_steps backend_steps(const struct backend *backend)
{
    return backend->steps;
}

size_t backend_memory_bytes(const struct backend *backend)
{
    return on_device(backend) ? 0
                              : backend_models_bytes(backend->networks[NETWORK_OWN].model,
                                                     backend->networks[NETWORK_PREVIOUS].model);
}

const struct page_backing *backend_backing(const struct backend *backend)
{
    return on_device(backend) ? &backend->backing : NULL;
}

uint8_t *backend_layout(struct backend *backend, uint32_t index)
{
    CHECK(index < backend->batch);
    return on_device(backend) ? backend->device.ops->layout(backend->session, index)
                              : backend->layout;
}

struct draw_list *backend_draw_list(struct backend *backend, uint32_t index)
{
    CHECK(index < backend->batch);
    return on_device(backend) ? backend->device.ops->draw_list(backend->session, index) : NULL;
}

/* ---- maps ---- */

uint32_t backend_map_take(struct backend *backend, const struct raster_map *map)
{
    struct device_text why;
    uint32_t vacant = DEVICE_MAPS_MAX;
    if (!on_device(backend)) {
        return BACKEND_NO_MAP;
    }
    for (uint32_t i = 0; i < DEVICE_MAPS_MAX; i++) {
        if (backend->maps[i].references == 0) {
            vacant = vacant < i ? vacant : i;
        } else if (backend->maps[i].source == map) {
            backend->maps[i].references++;
            return i;
        }
    }
    /* A device that failed says so in the next tick. */
    if (vacant == DEVICE_MAPS_MAX ||
        backend->device.ops->map_make(backend->session, vacant, map, &why) != DEVICE_OK) {
        return BACKEND_NO_MAP;
    }
    backend->maps[vacant] = (struct backend_map){map, 1};
    return vacant;
}

void backend_map_share(struct backend *backend, uint32_t number)
{
    if (number != BACKEND_NO_MAP) {
        CHECK(backend->maps[number].references > 0);
        backend->maps[number].references++;
    }
}

void backend_map_release(struct backend *backend, uint32_t number)
{
    if (number == BACKEND_NO_MAP) {
        return;
    }
    CHECK(backend->maps[number].references > 0);
    if (--backend->maps[number].references == 0) {
        backend->device.ops->map_drop(backend->session, number);
    }
}

/* ---- ticks ---- */

static void fill_record(const struct backend_slot *slot, struct device_slot *record)
{
    const struct forward_input *input = &slot->input;
    *record = (struct device_slot){
        .seed = input->seed,
        .ego = {input->ego.x_m, input->ego.y_m, input->ego.heading_rad},
        .active = 1,
        .tick = input->tick,
        .window = {input->window.i, input->window.j},
        .conditioning = (uint32_t)input->conditioning,
        .page_count = input->page_count,
        .write_page = slot->write_frame,
        .deliver = slot->deliver,
        .given = slot->given,
        .skipped = input->skipped,
    };
    for (uint32_t i = 0; i < input->page_count; i++) {
        record->page[i] = slot->page_frames[i];
        record->page_window[i][0] = input->pages[i].window.i;
        record->page_window[i][1] = input->pages[i].window.j;
    }
    memcpy(record->cond, input->cond, sizeof record->cond);
    record->gate_count = slot->gate_count;
    memcpy(record->gates, slot->gates, slot->gate_count * sizeof *slot->gates);
}

/* Slots are packed into the session's first ones: its bits do not depend on where a slot is. */
static enum status tick_device(struct backend *backend, struct backend_slot *slots, uint32_t count,
                               struct error *error)
{
    const struct device_ops *ops = backend->device.ops;
    struct device_slot *records = ops->slots(backend->session);
    struct device_text why = {""};
    for (uint32_t i = 0; i < count; i++) {
        fill_record(&slots[i], &records[i]);
    }
    for (uint32_t i = count; i < backend->batch; i++) {
        records[i].active = 0;
    }
    int fault = ops->tick_start(backend->session, &why);
    if (fault == DEVICE_OK) {
        fault = ops->tick_finish(backend->session, &why);
    }
    if (fault != DEVICE_OK) {
        return device_error(error, fault, backend->device.backend, &why);
    }
    const struct device_counts *counts = ops->counts(backend->session);
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].deliver) {
            memcpy(slots[i].frame, ops->frame(backend->session, i), FRAME_BYTES);
        }
        backend->here[slots[i].write_frame] = slots[i].deliver;
        slots[i].counts = (struct nn_counts){counts[i].not_finite, counts[i].saturated};
        slots[i].sums = counts[i].sums;
        memcpy(slots[i].agents, counts[i].agents, slots[i].gate_count * sizeof *slots[i].agents);
    }
    return STATUS_OK;
}

static void sum_slot(const struct backend *backend, struct backend_slot *slot)
{
    const struct forward_input *input = &slot->input;
    struct frame_measure_input frame_stats = {
        .conditioning = input->conditioning,
        .frame = slot->frame,
        .window = input->window,
        .layout = backend->layout,
    };
    if (input->page_count > 0) {
        frame_stats.before = input->pages[0].frame;
        frame_stats.before_window = input->pages[0].window;
    }
    frame_measure_sum(&frame_stats, &slot->sums);
    agent_measure_sum(slot->frame, backend->layout, slot->gates, slot->gate_count, slot->agents);
}

/* The network that makes a tick; *input becomes what it is given. */
static const struct network *network_of(const struct backend *backend, struct forward_input *input)
{
    if (!model_skips_past(backend->model, input->skipped)) {
        return &backend->networks[NETWORK_OWN];
    }
    const struct network *previous = &backend->networks[NETWORK_PREVIOUS];
    uint32_t window = model_config(previous->model)->window;
    input->skipped = model_previous_skips(backend->model, input->skipped);
    input->page_count = input->page_count < window ? input->page_count : window;
    for (uint32_t i = 0; i < input->page_count; i++) {
        input->pages[i].memory = (const uint8_t *)input->pages[i].memory + previous->memory_at;
    }
    return previous;
}

static void remember(const struct backend *backend, const uint8_t *frame, void *memory)
{
    for (int i = 0; i < NETWORKS; i++) {
        const struct network *network = &backend->networks[i];
        if (network->model != NULL) {
            forward_memory(network->model, network->workspace, frame,
                           (uint8_t *)memory + network->memory_at);
        }
    }
}

static void tick_cpu(struct backend *backend, struct backend_slot *slot)
{
    struct forward_output output = {.frame = slot->frame};
    slot->input.layout_bev = backend->layout;
    slot->input.layout_cameras = backend->layout + FRAME_BEV_BYTES;
    const struct network *network = network_of(backend, &slot->input);
    forward_begin(network->model, network->workspace, &slot->input, &output);
    int64_t begin_ns = clock_now_ns(clock_system());
    while (forward_advance(network->workspace)) {
        backend->steps.count++;
    }
    backend->steps.elapsed_ns += clock_now_ns(clock_system()) - begin_ns;
    forward_finish(network->workspace);
    slot->counts = output.counts;
    sum_slot(backend, slot);
    remember(backend, slot->frame, slot->memory);
}

enum status backend_tick(struct backend *backend, struct backend_slot *slots, uint32_t count,
                         struct error *error)
{
    CHECK(count <= backend->batch);
    if (on_device(backend)) {
        return count > 0 ? tick_device(backend, slots, count, error) : STATUS_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        tick_cpu(backend, &slots[i]);
    }
    return STATUS_OK;
}

enum status backend_frame(struct backend *backend, uint32_t page_frame, uint8_t *frame,
                          struct error *error)
{
    if (!on_device(backend) || backend->here[page_frame]) {
        return STATUS_OK;
    }
    struct device_text why = {""};
    int fault =
        backend->device.ops->page_frame(backend->session, page_frame, backend->fetched, &why);
    if (fault != DEVICE_OK) {
        return device_error(error, fault, backend->device.backend, &why);
    }
    memcpy(frame, backend->fetched, FRAME_BYTES);
    backend->here[page_frame] = true;
    return STATUS_OK;
}

/* ---- views ---- */

enum status backend_views_open(struct backend *backend, uint32_t count, bool bev, bool cameras,
                               struct error *error)
{
    if (!on_device(backend)) {
        return error_set(error, STATUS_DEVICE, "views: this world runs on the CPU");
    }
    struct device_text why = {""};
    int fault = backend->device.ops->views_open(backend->session, count, bev, cameras, &why);
    return fault == DEVICE_OK ? STATUS_OK
                              : device_error(error, fault, backend->device.backend, &why);
}

uint8_t *backend_view_address(const struct backend *backend, uint32_t view, bool cameras)
{
    return backend->device.ops->view_address(backend->session, view, cameras);
}

struct device_view *backend_view(struct backend *backend, uint32_t index)
{
    CHECK(index < backend->batch);
    return &backend->device.ops->views(backend->session)[index];
}

uint8_t *backend_view_map(struct backend *backend, uint32_t index)
{
    CHECK(index < backend->batch);
    return backend->device.ops->view_map(backend->session, index);
}

enum status backend_views_draw(struct backend *backend, uint32_t count, uint64_t *digests,
                               struct error *error)
{
    struct device_text why = {""};
    int fault = backend->device.ops->views_draw(backend->session, count, digests, &why);
    return fault == DEVICE_OK ? STATUS_OK
                              : device_error(error, fault, backend->device.backend, &why);
}

enum status backend_view_copy(struct backend *backend, uint32_t from, uint32_t to,
                              struct error *error)
{
    struct device_text why = {""};
    int fault = backend->device.ops->view_copy(backend->session, from, to, &why);
    return fault == DEVICE_OK ? STATUS_OK
                              : device_error(error, fault, backend->device.backend, &why);
}

enum status backend_memory(struct backend *backend, uint32_t page_frame, const uint8_t *frame,
                           void *memory, struct error *error)
{
    if (!on_device(backend)) {
        remember(backend, frame, memory);
        return STATUS_OK;
    }
    struct device_text why = {""};
    backend->here[page_frame] = true;
    int fault = backend->device.ops->page_make(backend->session, page_frame, frame, &why);
    return fault == DEVICE_OK ? STATUS_OK
                              : device_error(error, fault, backend->device.backend, &why);
}
