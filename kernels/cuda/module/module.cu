/*
 * The device backend on CUDA: sessions, ticks, pages. Fills struct device_ops (kernels/device.h);
 * the shared module exports one symbol that returns it. Compiled by nvcc for GPUs and, for tests
 * without one, by a C++ compiler against the SIMT emulator.
 *
 * A tick is captured as a graph when the session opens, after one warm-up run with no slot active,
 * and replayed from then on. All its pointers are fixed at open; what varies lies in pinned records
 * that the graph itself copies to the device first.
 */
#include "kernels/capability.h"
#include "kernels/cuda/module/module.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int module_fault(struct device_text *why, int fault, const char *what, cudaError_t error)
{
    snprintf(why->text, sizeof why->text, "%s: %s", what,
             error == cudaSuccess ? "out of host memory" : gpu_error_text(error));
    return fault;
}

int module_check(struct device_session *session, cudaError_t error, const char *what,
                 struct device_text *why)
{
    if (error == cudaSuccess && session->product_fault == DEVICE_OK) {
        return DEVICE_OK;
    }
    session->lost = true;
    if (session->product_fault != DEVICE_OK) {
        *why = session->product_why;
        return session->product_fault;
    }
    return module_fault(why, DEVICE_FAULT_LOST, what, error);
}

int module_refuse(struct device_text *why, const char *sentence)
{
    snprintf(why->text, sizeof why->text, "%s", sentence);
    return DEVICE_FAULT_INPUT;
}

cudaError_t module_enter(const struct device_session *session)
{
    return gpu_device_enter((int)session->options.device);
}

cudaError_t module_follow_copies(struct device_session *session)
{
    cudaError_t error = module_moves_start(session);
    if (error != cudaSuccess) {
        return error;
    }
    bool pending = session->copy_pending;
    session->copy_pending = false;
    return pending ? cudaStreamWaitEvent(session->stream, session->copied, 0) : cudaSuccess;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- devices ---- */

static uint32_t count_devices(struct device_text *why)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        snprintf(why->text, sizeof why->text, "%s", gpu_error_text(error));
        return 0;
    }
    if (count == 0) {
        snprintf(why->text, sizeof why->text, "no device");
    }
    return (uint32_t)count;
}

static int describe(uint32_t device, struct device_info *out, struct device_text *why)
{
    cudaDeviceProp properties;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    cudaError_t error = cudaGetDeviceProperties(&properties, (int)device);
    if (error == cudaSuccess) {
        error = gpu_device_enter((int)device);
    }
    if (error == cudaSuccess) {
        error = cudaMemGetInfo(&free_bytes, &total_bytes);
    }
    if (error != cudaSuccess) {
        return module_fault(why, DEVICE_FAULT_LOST, "asking about the device", error);
    }
    const int wgmma = gpu_wgmma_choose(GPU_WGMMA_TOLERANCE, NULL, why);
    if (wgmma < 0) {
        return DEVICE_FAULT_MEMORY; /* not another backend: nobody knows */
    }
    *out = {};
    snprintf(out->name, sizeof out->name, "%.127s", properties.name);
    out->major = (uint32_t)properties.major;
    out->minor = (uint32_t)properties.minor;
    out->multiprocessors = (uint32_t)properties.multiProcessorCount;
    out->wgmma = (uint32_t)wgmma;
    out->memory_bytes = properties.totalGlobalMem;
    out->free_bytes = free_bytes;
    module_products_digest(out);
    return DEVICE_OK;
}

/* ---- open and close ---- */

void module_session_close(struct device_session *session)
{
    if (session == NULL) {
        return;
    }
    module_enter(session);
    if (session->stream != NULL) {
        cudaStreamSynchronize(session->stream);
    }
    if (session->copies != NULL) {
        cudaStreamSynchronize(session->copies);
    }
    if (session->graph != NULL) {
        cudaGraphExecDestroy(session->graph);
    }
    if (session->copied != NULL) {
        cudaEventDestroy(session->copied);
    }
    if (session->copies != NULL) {
        cudaStreamDestroy(session->copies);
    }
    if (session->stream != NULL) {
        cudaStreamDestroy(session->stream);
    }
    gemm_tuner_destroy(session->products);
    cudaFree(session->weight_memory);
    cudaFree(session->buffer_memory);
    cudaFree(session->arena);
    cudaFree(session->staging);
    for (void *memory : session->map_memory) {
        cudaFree(memory);
    }
    cudaFreeHost(session->host_draw_lists);
    cudaFreeHost(session->host_maps);
    cudaFreeHost(session->host_slots);
    cudaFreeHost(session->host_counts);
    cudaFreeHost(session->host_layouts);
    cudaFreeHost(session->host_frames);
    module_views_close(session);
    gpu_error_take(); /* of what a device that failed cannot free */
    free(session->written);
    free(session);
}

/* Whether tokens and heads are such that kernels have them. */
static bool suits(const struct device_model *m)
{
    const bool patch = m->patch == 1 || m->patch == 2 || m->patch == 4 || m->patch == 8;
    const bool head = m->head_dim == DEVICE_HEAD_MIN || m->head_dim == 2 * DEVICE_HEAD_MIN ||
                      m->head_dim == 4 * DEVICE_HEAD_MIN;
    return patch && head && m->kv_heads != 0 && m->heads != 0 && m->heads % m->kv_heads == 0 &&
           m->tokens == shape_part_of(0, m->patch).tokens + shape_part_of(1, m->patch).tokens;
}

/* Limits of engine/model.md, for a caller that did not check. */
static int check_model(const struct device_model *model, const struct device_options *options,
                       struct device_text *why)
{
    if (model->width == 0 || model->width % 32 != 0 || model->layers == 0 ||
        model->layers > DEVICE_LAYERS_MAX || model->steps == 0 || model->steps > DEVICE_STEPS_MAX ||
        model->window == 0 || model->window > DEVICE_PAGES_MAX || model->past > model->window ||
        model->part[0].channels % 32 != 0 || model->part[1].channels % 32 != 0 || !suits(model)) {
        return module_refuse(why, "the model's dimensions are not those of engine/model.md");
    }
    uint32_t runs = 1;
    bool e4m3 = module_block_e4m3(&model->blocks[0]);
    for (uint32_t layer = 1; layer < model->layers; layer++) {
        runs += module_block_e4m3(&model->blocks[layer]) !=
                module_block_e4m3(&model->blocks[layer - 1]);
        e4m3 = e4m3 || module_block_e4m3(&model->blocks[layer]);
    }
    if (runs > MODULE_MEMORIES_MAX) {
        return module_refuse(why, "expected reference layers at the model's ends alone");
    }
    if (e4m3 && (4 * model->width > DEVICE_E4M3_TERMS_MAX ||
                 model->heads * model->head_dim > DEVICE_E4M3_TERMS_MAX)) {
        return module_refuse(why, "expected products of e4m3 of at most 12288 terms");
    }
    if (options->reference &&
        (e4m3 || model->pages_e4m3 != 0 || model->reach != 0 || model->tokens > 256 ||
         model->kv_heads != model->heads || model->head_dim != DEVICE_HEAD_MIN)) {
        return module_refuse(why, "no reference kernels for such tokens, heads, products or pages");
    }
    if (e4m3) {
        int fault = module_e4m3_check(options->device, "the model", why);
        if (fault != DEVICE_OK) {
            return fault;
        }
    }
    if (options->slot_count == 0 || options->slot_count > DEVICE_SLOTS_MAX ||
        options->page_count == 0) {
        return module_refuse(why, "expected 1 to 4096 slots and at least one page");
    }
    return DEVICE_OK;
}

static int open_memory(struct device_session *session, struct device_text *why)
{
    size_t slots = session->options.slot_count;
    const struct module_weights *w = &session->weights;
    session->page_bytes = (DEVICE_FRAME_BYTES + module_memory_bytes(session) + 255) / 256 * 256;
    size_t buffer_bytes =
        module_buffers_place(w, session->options.slot_count, NULL, &session->buffers);
    size_t arena_bytes = session->page_bytes * session->options.page_count;
    cudaError_t error = cudaMalloc(&session->buffer_memory, buffer_bytes);
    if (error == cudaSuccess) {
        error = cudaMalloc(&session->arena, arena_bytes);
    }
    if (error == cudaSuccess) {
        error = cudaMalloc(&session->staging, GPU_MOVE_MAX * session->page_bytes);
    }
    if (error == cudaSuccess) {
        error = cudaMallocHost(&session->host_slots, (slots + 1) * sizeof *session->host_slots);
    }
    if (error == cudaSuccess) {
        error = cudaMallocHost(&session->host_counts, slots * sizeof *session->host_counts);
    }
    if (error == cudaSuccess) {
        error = cudaMallocHost(&session->host_layouts, slots * DEVICE_FRAME_BYTES);
    }
    if (error == cudaSuccess) {
        error = cudaMallocHost(&session->host_frames, slots * DEVICE_FRAME_BYTES);
    }
    if (error == cudaSuccess) {
        error = cudaMallocHost(&session->host_draw_lists, slots * DRAW_LIST_BYTES_MAX);
    }
    if (error == cudaSuccess) {
        error = cudaMallocHost(&session->host_maps, DEVICE_MAPS_MAX * sizeof *session->host_maps);
    }
    if (error == cudaSuccess) {
        error = cudaMemset(session->buffer_memory, 0, buffer_bytes); /* the maps' borders */
    }
    if (error != cudaSuccess) {
        char what[128];
        snprintf(what, sizeof what, "%.2f GB of buffers for %zu slots and %.2f GB of pages",
                 (double)buffer_bytes / 1e9, slots, (double)arena_bytes / 1e9);
        return module_fault(why, DEVICE_FAULT_MEMORY, what, error);
    }
    module_buffers_place(w, session->options.slot_count, session->buffer_memory, &session->buffers);
    session->buffers.slots.arena = session->buffers.maker.arena = session->arena;
    session->buffers.slots.page_bytes = session->buffers.maker.page_bytes = session->page_bytes;
    memset(session->host_slots, 0, (slots + 1) * sizeof *session->host_slots);
    memset(session->host_counts, 0, slots * sizeof *session->host_counts);
    memset(session->host_layouts, 0, slots * DEVICE_FRAME_BYTES);
    memset(session->host_frames, 0, slots * DEVICE_FRAME_BYTES);
    memset(session->host_draw_lists, 0, slots * DRAW_LIST_BYTES_MAX);
    memset(session->host_maps, 0, DEVICE_MAPS_MAX * sizeof *session->host_maps);
    session->stats.workspace_bytes = buffer_bytes + GPU_MOVE_MAX * session->page_bytes;
    session->stats.arena_bytes = arena_bytes;
    session->stats.pinned_bytes = (slots + 1) * sizeof *session->host_slots +
                                  slots * (sizeof *session->host_counts +
                                           2 * (size_t)DEVICE_FRAME_BYTES + DRAW_LIST_BYTES_MAX) +
                                  DEVICE_MAPS_MAX * sizeof *session->host_maps;
    return DEVICE_OK;
}

static int capture(struct device_session *session, struct device_text *why)
{
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamBeginCapture(session->stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) {
        return module_check(session, error, "beginning to capture a tick", why);
    }
    module_plan_tick(session);
    error = cudaStreamEndCapture(session->stream, &graph);
    if (error == cudaSuccess) {
        error = cudaGetLastError(); /* of a launch that the graph lacks */
    }
    if (error == cudaSuccess) {
        error = cudaGraphInstantiate(&session->graph, graph, 0);
    }
    if (graph != NULL) {
        cudaGraphDestroy(graph);
    }
    session->stats.captures++;
    return module_check(session, error, "capturing a tick", why);
}

/* Streams, one tick with no slot active, and the graph of it. */
static int warm_up(struct device_session *session, struct device_text *why)
{
    int pitch_max = 0;
    cudaError_t error =
        cudaDeviceGetAttribute(&pitch_max, cudaDevAttrMaxPitch, (int)session->options.device);
    session->pitch_max = (size_t)pitch_max;
    if (error == cudaSuccess) {
        error = cudaStreamCreateWithFlags(&session->stream, cudaStreamNonBlocking);
    }
    if (error == cudaSuccess) {
        error = cudaStreamCreateWithFlags(&session->copies, cudaStreamNonBlocking);
    }
    if (error == cudaSuccess) {
        error = cudaEventCreateWithFlags(&session->copied, cudaEventDisableTiming);
    }
    if (error == cudaSuccess) {
        /* Weights and cleared buffers were copied on the default stream, which this one ignores. */
        error = cudaDeviceSynchronize();
    }
    if (error == cudaSuccess) {
        module_plan_tick(session);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess) {
        error = cudaStreamSynchronize(session->stream);
    }
    int fault = module_check(session, error, "the first tick", why);
    return fault != DEVICE_OK || session->options.eager ? fault : capture(session, why);
}

int module_session_open(const struct device_model *model, const struct device_options *options,
                        bool timing, struct device_session **out, struct device_text *why)
{
    int fault = check_model(model, options, why);
    if (fault != DEVICE_OK) {
        return fault;
    }
    cudaError_t error = gpu_device_enter((int)options->device);
    if (error != cudaSuccess) {
        return module_fault(why, DEVICE_FAULT_INPUT, "choosing the device", error);
    }
    struct device_session *session = (struct device_session *)calloc(1, sizeof *session);
    if (session == NULL) {
        return module_fault(why, DEVICE_FAULT_MEMORY, "a session", cudaSuccess);
    }
    session->options = *options;
    session->timing = timing;
    session->written = module_bits_create(options->page_count);
    if (session->written == NULL) {
        fault = module_fault(why, DEVICE_FAULT_MEMORY, "a session", cudaSuccess);
    } else if (!module_kernels_init(&session->kernels, options->reference != 0)) {
        fault = module_fault(why, DEVICE_FAULT_INPUT, "no reference kernels in this module",
                             cudaSuccess);
    }
    if (fault == DEVICE_OK) {
        session->stats.peak_flops = module_peak(module_type(model), options->wgmma);
        fault = module_weights_load(model, &session->weights, &session->weight_memory,
                                    &session->stats.weight_bytes, why);
    }
    if (fault == DEVICE_OK) {
        fault = open_memory(session, why);
    }
    if (fault == DEVICE_OK) {
        fault = module_products_open(session, why);
    }
    if (fault == DEVICE_OK) {
        fault = warm_up(session, why);
    }
    if (fault != DEVICE_OK) {
        module_session_close(session);
        return fault;
    }
    *out = session;
    return DEVICE_OK;
}

static int open_session(const struct device_model *model, const struct device_options *options,
                        struct device_session **out, struct device_text *why)
{
    return module_session_open(model, options, false, out, why);
}

static struct device_slot *slots_of(struct device_session *session)
{
    return session->host_slots;
}

static uint8_t *layout_of(struct device_session *session, uint32_t slot)
{
    return session->host_layouts + (size_t)slot * DEVICE_FRAME_BYTES;
}

static struct draw_list *draw_list_of(struct device_session *session, uint32_t slot)
{
    return (struct draw_list *)(session->host_draw_lists + (size_t)slot * DRAW_LIST_BYTES_MAX);
}

static const uint8_t *frame_of(const struct device_session *session, uint32_t slot)
{
    return session->host_frames + (size_t)slot * DEVICE_FRAME_BYTES;
}

static const struct device_counts *counts_of(const struct device_session *session)
{
    return session->host_counts;
}

/* ---- ticks ---- */

/* Frames to be delivered, behind the tick. What lies together comes in one copy; with all slots
 * looked at, or none, the tick costs the host the same call or none. */
static cudaError_t queue_frames(struct device_session *session)
{
    const struct device_slot *slots = session->host_slots;
    cudaError_t error = cudaSuccess;
    for (uint32_t i = 0; i < session->options.slot_count && error == cudaSuccess; i++) {
        uint32_t first = i;
        while (i < session->options.slot_count && slots[i].active && slots[i].deliver) {
            i++;
        }
        size_t bytes = (size_t)(i - first) * DEVICE_FRAME_BYTES;
        if (bytes > 0) {
            size_t at = (size_t)first * DEVICE_FRAME_BYTES;
            error = cudaMemcpyAsync(session->host_frames + at, session->buffers.frames + at, bytes,
                                    cudaMemcpyDeviceToHost, session->stream);
            session->stats.down_bytes += bytes;
        }
    }
    return error;
}

static int tick_start(struct device_session *session, struct device_text *why)
{
    if (session->lost || session->running) {
        return module_refuse(why, "the session is lost or a tick is under way");
    }
    int fault = module_slots_check(session, why);
    if (fault == DEVICE_OK) {
        fault = module_draw_lists_check(session, why);
    }
    if (fault != DEVICE_OK) {
        return fault;
    }
    uint64_t start_ns = now_ns();
    cudaError_t error = module_enter(session);
    if (error == cudaSuccess) {
        error = module_follow_copies(session);
    }
    if (error == cudaSuccess) {
        error = module_given_copy(session);
    }
    if (error == cudaSuccess && session->graph != NULL) {
        error = cudaGraphLaunch(session->graph, session->stream);
        session->stats.replays++;
    } else if (error == cudaSuccess) {
        session->stats.launches += module_plan_tick(session);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess) {
        error = queue_frames(session);
    }
    session->running = true;
    session->stats.ticks++;
    for (uint32_t i = 0; i < session->options.slot_count; i++) {
        const struct device_slot *slot = &session->host_slots[i];
        session->stats.steps += slot->active ? session->weights.steps - slot->skipped : 0;
    }
    session->stats.host_ns += now_ns() - start_ns;
    uint64_t slots = session->options.slot_count;
    session->stats.up_bytes +=
        slots * sizeof(struct device_slot) + module_draw_lists_bytes(session);
    session->stats.down_bytes += slots * sizeof(struct device_counts);
    return module_check(session, error, "starting a tick", why);
}

static int tick_finish(struct device_session *session, struct device_text *why)
{
    if (!session->running) {
        return module_refuse(why, "no tick is under way");
    }
    session->running = false;
    return module_check(session, cudaStreamSynchronize(session->stream), "a tick", why);
}

/* ---- pages ---- */

static int page_make(struct device_session *session, uint32_t page, const uint8_t *frame,
                     struct device_text *why)
{
    if (session->lost || session->running || page >= session->options.page_count) {
        return module_refuse(why, "no such page, or a tick is under way");
    }
    struct device_slot *record = &session->host_slots[session->options.slot_count];
    cudaError_t error = module_enter(session);
    if (error == cudaSuccess) {
        error = module_follow_copies(session);
    }
    if (error != cudaSuccess) {
        return module_check(session, error, "making a page", why);
    }
    record->active = 1;
    record->write_page = page;
    cudaMemcpyAsync(module_page_at(session, page), frame, DEVICE_FRAME_BYTES,
                    cudaMemcpyHostToDevice, session->stream);
    session->stats.launches += module_plan_maker(session);
    session->stats.up_bytes += DEVICE_FRAME_BYTES;
    error = cudaGetLastError();
    if (error == cudaSuccess) {
        error = cudaStreamSynchronize(session->stream);
    }
    return module_check(session, error, "making a page", why);
}

static int page_frame(struct device_session *session, uint32_t page, uint8_t *frame,
                      struct device_text *why)
{
    if (session->lost || session->running || page >= session->options.page_count) {
        return module_refuse(why, "no such page, or a tick is under way");
    }
    cudaError_t error = module_enter(session);
    if (error == cudaSuccess) {
        error = module_follow_copies(session);
    }
    if (error == cudaSuccess) {
        error = cudaMemcpyAsync(frame, module_page_at(session, page), DEVICE_FRAME_BYTES,
                                cudaMemcpyDeviceToHost, session->stream);
    }
    if (error == cudaSuccess) {
        error = cudaStreamSynchronize(session->stream);
    }
    session->stats.down_bytes += DEVICE_FRAME_BYTES;
    return module_check(session, error, "copying a frame", why);
}

static void *host_alloc(size_t bytes)
{
    void *memory = NULL;
    if (cudaMallocHost(&memory, bytes) != cudaSuccess) {
        gpu_error_take();
        return NULL;
    }
    return memory;
}

static void host_free(void *memory)
{
    cudaFreeHost(memory);
}

/* A page that a finished tick wrote needs no event: tick_finish has waited for it. */
static int page_save(struct device_session *session, uint32_t page, uint8_t *frame, void *memory,
                     struct device_text *why)
{
    if (session->lost || page >= session->options.page_count) {
        return module_refuse(why, "no such page");
    }
    session->stats.down_bytes +=
        module_memory_bytes(session) + (frame != NULL ? DEVICE_FRAME_BYTES : 0);
    const struct module_move move = {page, frame, static_cast<uint8_t *>(memory)};
    cudaError_t error = module_enter(session);
    if (error == cudaSuccess) {
        error = module_move_add(session, &move, false);
    }
    return module_check(session, error, "saving a page", why);
}

static int page_load(struct device_session *session, uint32_t page, const uint8_t *frame,
                     const void *memory, struct device_text *why)
{
    if (session->lost || page >= session->options.page_count) {
        return module_refuse(why, "no such page");
    }
    /* A move's pointers serve both ways; on this one nothing is written through them. */
    const struct module_move move = {page, const_cast<uint8_t *>(frame),
                                     static_cast<uint8_t *>(const_cast<void *>(memory))};
    cudaError_t error = module_enter(session);
    if (error == cudaSuccess) {
        error = module_move_add(session, &move, true);
    }
    session->stats.up_bytes += DEVICE_FRAME_BYTES + module_memory_bytes(session);
    return module_check(session, error, "loading a page", why);
}

static int page_start(struct device_session *session, struct device_text *why)
{
    if (session->lost) {
        return module_refuse(why, "the session is lost");
    }
    cudaError_t error = module_enter(session);
    if (error == cudaSuccess) {
        error = module_moves_start(session);
    }
    return module_check(session, error, "starting to copy pages", why);
}

static int page_wait(struct device_session *session, struct device_text *why)
{
    int fault = page_start(session, why);
    return fault == DEVICE_OK
               ? module_check(session, cudaStreamSynchronize(session->copies), "copying pages", why)
               : fault;
}

/* ---- maps ---- */

static int map_make(struct device_session *session, uint32_t map, const struct raster_map *source,
                    struct device_text *why)
{
    if (session->lost || session->running || map >= DEVICE_MAPS_MAX ||
        session->map_memory[map] != NULL) {
        return module_refuse(why, "no such map number, or it is in use, or a tick is under way");
    }
    cudaError_t error = module_enter(session);
    return error == cudaSuccess ? module_map_make(session, map, source, why)
                                : module_check(session, error, "making a map", why);
}

/* Of a session that is lost, close frees it. */
static void map_drop(struct device_session *session, uint32_t map)
{
    if (!session->lost && !session->running && map < DEVICE_MAPS_MAX &&
        session->map_memory[map] != NULL && module_enter(session) == cudaSuccess) {
        module_map_drop(session, map);
    }
}

static void stats_of(const struct device_session *session, struct device_stats *out)
{
    *out = session->stats;
}

/* ---- the module's symbol ---- */

static const struct device_ops module_ops = {
    DEVICE_ABI,
    sizeof(struct device_ops) + sizeof(struct device_model) + sizeof(struct device_options) +
        sizeof(struct device_slot) + sizeof(struct device_counts) + DRAW_LIST_BYTES_MAX +
        sizeof(struct device_view) + sizeof(struct device_rollouts) + sizeof(struct device_info),
#ifdef __CUDACC__
    "cuda",
#else
    "emulated",
#endif
    count_devices,
    describe,
    open_session,
    module_session_close,
    slots_of,
    layout_of,
    draw_list_of,
    frame_of,
    counts_of,
    tick_start,
    tick_finish,
    page_make,
    page_frame,
    host_alloc,
    host_free,
    module_memory_bytes,
    page_save,
    page_load,
    page_start,
    page_wait,
    map_make,
    map_drop,
    module_views_open,
    module_view_address,
    module_view_records,
    module_view_map,
    module_views_draw,
    module_view_copy,
    stats_of,
    module_bus_rate,
    module_products_tune,
    module_scale_run,
    module_rollouts_run,
};

extern "C" __attribute__((visibility("default"))) const struct device_ops *swerve_device_ops(void);

extern "C" const struct device_ops *swerve_device_ops(void)
{
    return &module_ops;
}
