/*
 * The benchmark of a world model. A slot's tick here is what a learned world does per tick but for
 * drawing layouts: generate a frame from a full ring of pages, then make the memory of the new
 * page. The layout is pseudo-random bytes: no value makes a product faster.
 */
#include "engine/bench/bench_model.h"

#include "engine/bench/bench.h"
#include "engine/bench/machine.h"
#include "engine/learned/forward.h"
#include "engine/learned/model_internal.h"
#include "engine/learned/threads.h"
#include "kernels/cpu.h"
#include "kernels/nn_peak.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SQUARE = 512, PEAK_ROUNDS = 24, SLOTS_MAX = 1024 };

struct slot {
    uint8_t
        *pages[NN_PAGES_MAX + 1]; /* frame, padded to 64, then memory; newest first, one spare */
};

struct bench {
    const struct model *model;
    const struct clock *clock;
    uint32_t threads;
    struct workspace *workspace;
    struct slot *slots;
    uint32_t slot_count;
    uint32_t page_count;
    size_t frame_bytes; /* padded */
    uint8_t *pool;
    uint8_t *layout; /* [FRAME_BYTES] */
    float cond[COND_COUNT];
    int64_t last_ns;
    double phase_ns[BENCH_PHASES_MAX]; /* of the present tick */
    struct bench_model_result *result;
};

enum status bench_model_open(const char *path, const char *shape, enum nn_precision precision,
                             struct model **out, struct error *error)
{
    const struct model_open_options options = {.precision = precision,
                                               .cpu_flags = machine_cpu_flags(precision)};
    unsigned width = 0;
    unsigned layers = 0;
    char rest = 0;
    if (path != NULL) {
        return model_open(path, &options, out, error);
    }
    if (sscanf(shape, "%ux%u%c", &width, &layers, &rest) != 2 || width < 32 ||
        width > MODEL_WIDTH_MAX || layers < 1 || layers > MODEL_LAYERS_MAX) {
        return error_set(error, STATUS_USAGE,
                         "random weights: expected WIDTHxLAYERS, 32..%d by 1..%d, found \"%s\"",
                         MODEL_WIDTH_MAX, MODEL_LAYERS_MAX, shape);
    }
    struct model_config config = {
        .name = "random",
        .tier = TIER_STUDENT,
        .width = width,
        .layers = layers,
        .bev_channels = width >= 192 ? 64 : 32,
        .camera_channels = 32,
        .window = 6,
        .steps = 2,
        .schedule = {0.0, 0.5, 1.0},
    };
    for (uint32_t layer = 0; layer < layers; layer++) {
        config.joint[layer] = layer % 2 == 0;
    }
    return model_random(&config, &options, 1, out, error);
}

/* One thread is metered by its processor time, so that neighbours on the machine do not count. */
static int64_t bench_ns(const struct clock *clock, uint32_t threads)
{
    return threads == 1 ? clock_thread_cpu_ns(clock) : clock_now_ns(clock);
}

/* ---- the machine's own best ---- */

struct peak {
    const struct nn_kernels *kernels;
    struct nn_gemm gemm[THREADS_MAX];
    struct nn_int8_row rows[SQUARE];
};

static void peak_work(void *context, uint32_t first, uint32_t end)
{
    const struct peak *peak = context;
    const struct nn_kernels *kernels = peak->kernels;
    bool int8 = kernels->precision == NN_INT8;
    for (uint32_t thread = first; thread < end; thread++) {
        for (int round = 0; round < PEAK_ROUNDS; round++) {
            (int8 ? kernels->gemm_int8 : kernels->gemm)(&peak->gemm[thread], 0, SQUARE);
        }
    }
}

/* Square products, one per thread, all operands in its cache, by one table. */
static enum status measure_table(const struct nn_kernels *kernels, struct threads *pool,
                                 const struct clock *clock, double *flops, struct error *error)
{
    bool int8 = kernels->precision == NN_INT8;
    uint32_t threads = threads_count(pool);
    size_t packed = (int8 ? kernels->packed_bytes_int8 : kernels->packed_bytes)(SQUARE, SQUARE);
    packed = (packed + 63) / 64 * 64;
    size_t each = packed + 2 * sizeof(float) * SQUARE * SQUARE;
    enum status status = STATUS_OK;
    struct peak *peak = calloc(1, sizeof *peak);
    float *w = calloc((size_t)SQUARE * SQUARE, sizeof *w);
    uint8_t *memory = aligned_alloc(64, each * threads);
    if (peak == NULL || memory == NULL || w == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to measure products");
        goto done;
    }
    memset(memory, 0, each * threads);
    peak->kernels = kernels;
    for (uint32_t i = 0; i < threads; i++) {
        uint8_t *at = memory + i * each;
        (int8 ? kernels->pack_int8 : kernels->pack)(w, SQUARE, SQUARE, at);
        peak->gemm[i] = (struct nn_gemm){.m = SQUARE,
                                         .n = SQUARE,
                                         .k = SQUARE,
                                         .a = at + packed,
                                         .lda = SQUARE,
                                         .rows = peak->rows,
                                         .b = at,
                                         .c = (float *)(void *)(at + packed) + SQUARE * SQUARE,
                                         .ldc = SQUARE};
    }
    for (int repeat = 0; repeat < BENCH_MODEL_REPEATS; repeat++) {
        int64_t start_ns = bench_ns(clock, threads);
        threads_run(pool, threads, 1, peak_work, peak);
        double ns = (double)(bench_ns(clock, threads) - start_ns);
        double rate = threads * (double)PEAK_ROUNDS * 2.0 * SQUARE * SQUARE * SQUARE / (ns * 1e-9);
        *flops = rate > *flops ? rate : *flops;
    }
done:
    free(w);
    free(memory);
    free(peak);
    return status;
}

/* The best that any table of the precision reaches here. */
static enum status measure_peak(const struct model *model, uint32_t threads,
                                const struct clock *clock, double *flops, struct error *error)
{
    struct threads *pool = NULL;
    struct nn_peaks tables;
    nn_peak_race(model->kernels.precision, cpu_flags_detect(), 0, clock, &tables);
    TRY(threads_create(threads, &pool, error));
    enum status status = STATUS_OK;
    *flops = 0.0;
    for (uint32_t i = 0; i < tables.count; i++) {
        struct nn_kernels kernels;
        nn_kernels_init(&kernels, model->kernels.precision, tables.tables[i].flags);
        THEN(status, measure_table(&kernels, pool, clock, flops, error));
    }
    threads_destroy(pool);
    return status;
}

/* ---- rollouts ---- */

static enum status open_slots(struct bench *bench, uint32_t threads, struct error *error)
{
    TRY(workspace_create(bench->model, threads, &bench->workspace, error));
    bench->frame_bytes = (FRAME_BYTES + 63) / 64 * 64;
    size_t page_bytes = bench->frame_bytes + (forward_memory_bytes(bench->model) + 63) / 64 * 64;
    uint32_t pages = bench->page_count + 1;
    bench->slots = calloc(bench->slot_count, sizeof *bench->slots);
    bench->pool = aligned_alloc(64, page_bytes * pages * bench->slot_count);
    bench->layout = malloc(FRAME_BYTES);
    if (bench->slots == NULL || bench->pool == NULL || bench->layout == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the pages of %u slots",
                         bench->slot_count);
    }
    for (uint32_t k = 0; k < FRAME_BYTES; k++) {
        bench->layout[k] = (uint8_t)(k * 2654435761u >> 24);
    }
    for (uint32_t k = 0; k < COND_COUNT; k++) {
        bench->cond[k] = (float)(k % 11) / 11.0f;
    }
    for (uint32_t s = 0; s < bench->slot_count; s++) {
        for (uint32_t p = 0; p < pages; p++) {
            uint8_t *page = bench->pool + ((size_t)s * pages + p) * page_bytes;
            memcpy(page, bench->layout, FRAME_BYTES);
            forward_memory(bench->model, bench->workspace, page, page + bench->frame_bytes);
            bench->slots[s].pages[p] = page;
        }
    }
    return STATUS_OK;
}

static void close_slots(struct bench *bench)
{
    workspace_destroy(bench->workspace);
    free(bench->slots);
    free(bench->pool);
    free(bench->layout);
}

static void mark(void *context, const char *name)
{
    struct bench *bench = context;
    struct bench_model_result *result = bench->result;
    int64_t now_ns = bench_ns(bench->clock, bench->threads);
    uint32_t i = 0;
    while (i < result->phase_count && strcmp(result->phases[i].name, name) != 0) {
        i++;
    }
    if (i == result->phase_count && i < BENCH_PHASES_MAX) {
        result->phases[result->phase_count++] = (struct bench_phase){name, INFINITY};
    }
    if (i < BENCH_PHASES_MAX) {
        bench->phase_ns[i] += (double)(now_ns - bench->last_ns);
    }
    bench->last_ns = now_ns;
}

static void run_tick(struct bench *bench, uint32_t slot, uint32_t tick, bool marked)
{
    struct slot *s = &bench->slots[slot];
    uint8_t *spare = s->pages[bench->page_count];
    struct forward_input input = {
        .seed = slot,
        .tick = tick,
        .conditioning = CONDITIONING_AGENTS,
        .ego = {16.0, 48.0, 0.1},
        .cond = bench->cond,
        .layout_bev = bench->layout,
        .layout_cameras = bench->layout + FRAME_BEV_BYTES,
        .page_count = bench->page_count,
    };
    for (uint32_t p = 0; p < bench->page_count; p++) {
        input.pages[p] =
            (struct forward_page){s->pages[p], s->pages[p] + bench->frame_bytes, {0, 0}};
    }
    struct forward_output output = {
        .frame = spare, .mark = marked ? mark : NULL, .probe_context = bench};
    forward_tick(bench->model, bench->workspace, &input, &output);
    forward_memory(bench->model, bench->workspace, spare, spare + bench->frame_bytes);
    if (marked) {
        mark(bench, "memory");
    }
    memmove(s->pages + 1, s->pages, bench->page_count * sizeof s->pages[0]);
    s->pages[0] = spare;
}

static void measure(struct bench *bench, uint32_t ticks)
{
    double repeats[BENCH_MODEL_REPEATS];
    uint32_t rounds = (ticks + bench->slot_count - 1) / bench->slot_count;
    uint32_t tick = 0;
    for (uint32_t slot = 0; slot < bench->slot_count; slot++) {
        run_tick(bench, slot, tick, false);
    }
    for (int repeat = 0; repeat < BENCH_MODEL_REPEATS; repeat++) {
        int64_t start_ns = bench_ns(bench->clock, bench->threads);
        for (uint32_t round = 0; round < rounds; round++, tick++) {
            for (uint32_t slot = 0; slot < bench->slot_count; slot++) {
                run_tick(bench, slot, tick, false);
            }
        }
        double ns = (double)(bench_ns(bench->clock, bench->threads) - start_ns);
        repeats[repeat] = ns / ((double)rounds * bench->slot_count);
    }
    bench->result->tick_ns = engine_bench_median(repeats, BENCH_MODEL_REPEATS);
    for (uint32_t i = 0; i < ticks; i++) {
        memset(bench->phase_ns, 0, sizeof bench->phase_ns);
        bench->last_ns = bench_ns(bench->clock, bench->threads);
        run_tick(bench, i % bench->slot_count, tick, true);
        for (uint32_t k = 0; k < bench->result->phase_count; k++) {
            struct bench_phase *phase = &bench->result->phases[k];
            phase->ns = phase->ns < bench->phase_ns[k] ? phase->ns : bench->phase_ns[k];
        }
    }
}

enum status bench_model_run(const struct model *model, uint32_t slots, uint32_t threads,
                            uint32_t ticks, const struct clock *clock,
                            struct bench_model_result *out, struct error *error)
{
    if (slots < 1 || slots > SLOTS_MAX) {
        return error_set(error, STATUS_USAGE, "slots: expected 1 to %d, found %u", SLOTS_MAX,
                         slots);
    }
    struct bench_model_result result = {.flop = model_tick_flop(model, 0)};
    struct bench bench = {
        .model = model,
        .clock = clock,
        .threads = threads,
        .slot_count = slots,
        .page_count = model_config(model)->window,
        .result = &result,
    };
    enum status status = measure_peak(model, threads, clock, &result.peak_flops, error);
    THEN(status, open_slots(&bench, threads, error));
    if (status == STATUS_OK) {
        measure(&bench, ticks);
        *out = result;
    }
    close_slots(&bench);
    return status;
}

enum status bench_model_race(const struct model *const *models, uint32_t count,
                             const struct clock *clock, double *tick_ns, struct error *error)
{
    enum { TURNS = 4 }; /* the first fills the caches */
    struct bench *benches = calloc(count, sizeof *benches);
    TRY(memory_check(benches, error, "no memory to race %u models", count));
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count; i++) {
        benches[i] = (struct bench){.model = models[i],
                                    .clock = clock,
                                    .threads = 1,
                                    .slot_count = 1,
                                    .page_count = model_config(models[i])->window};
        tick_ns[i] = INFINITY;
        THEN(status, open_slots(&benches[i], 1, error));
    }
    for (uint32_t turn = 0; turn < TURNS && status == STATUS_OK; turn++) {
        for (uint32_t i = 0; i < count; i++) {
            int64_t start_ns = bench_ns(clock, 1);
            run_tick(&benches[i], 0, turn, false);
            double ns = (double)(bench_ns(clock, 1) - start_ns);
            tick_ns[i] = turn > 0 && ns < tick_ns[i] ? ns : tick_ns[i];
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        close_slots(&benches[i]);
    }
    free(benches);
    return status;
}
