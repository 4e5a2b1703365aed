/*
 * Which kernel computes a product: choosing by time, keeping the choice, running it. See
 * gemm_tuner.h.
 */
#include "kernels/cuda/scale/gemm_tuner.h"

#include "kernels/cuda/common/gpu.h"
#include "kernels/cuda/scale/scale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PLANS_MAX = GEMM_TUNER_SHAPES_MAX,
    ALGORITHMS_MAX = 4, /* of the vendor's that are timed */
    CANDIDATES_MAX = STORE_TILES + ALGORITHMS_MAX,
    REPEATS = GPU_EMULATED ? 1 : 3,       /* of a candidate, after one that warms up */
    PEAK_SIDE = GPU_EMULATED ? 64 : 8192, /* of the product that shows the ceiling */
};
static_assert((int)GPU_TILE_LARGE + 1 == STORE_TILES, "numbers of the file");

/* A later candidate must be faster by this: what a clock cannot tell apart is no choice. */
#define GAIN_LEAST 0.02

/* One shape, and what was chosen for it. */
struct plan {
    struct gemm_tuner_shape shape;
    struct gemm_tuner_choice choice;
    uint64_t uses;
    double own_ms, chosen_ms; /* of one product, where it was timed */
};

struct gemm_tuner {
    struct gemm_vendor vendor;
    struct gemm_tuner_parts parts; /* its vendor and folder were borrowed */
    void *workspace;
    float *sums; /* of an item that the library multiplied */
    size_t sums_bytes;
    cudaEvent_t start, end;
    struct plan plans[PLANS_MAX];
    uint32_t plan_count;
    struct gemm_tuner_store store;
    uint64_t ways[GEMM_TUNER_WAYS];
    char text[512];
};

static int fault(struct device_text *why, const char *what, cudaError_t error)
{
    snprintf(why->text, sizeof why->text, "%s: %s", what, gpu_error_text(error));
    return error == cudaErrorMemoryAllocation ? DEVICE_FAULT_MEMORY : DEVICE_FAULT_LOST;
}

/* ---- life cycle ---- */

/* Store of this kind of device, and a warning's text or "". Without a file nothing is known. */
static void open_store(struct gemm_tuner_store *store, const char *folder, char *warning,
                       size_t warning_bytes)
{
    cudaDeviceProp properties;
    int device = 0;
    warning[0] = '\0';
    if (folder == NULL || cudaGetDevice(&device) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
        gpu_error_take();
        return;
    }
    gemm_tuner_store_open(store, folder, properties.name, warning, warning_bytes);
}

static bool names_library(const struct gemm_tuner_store *store)
{
    char digest[STORE_DIGEST_BYTES];
    gemm_tuner_store_digest(store, digest);
    return digest[0] != '\0';
}

/* Whether what is kept can be run by this library. */
static bool library_fits(const struct gemm_tuner_store *store, const struct gemm_vendor *vendor,
                         struct device_text *why)
{
    bool fits = vendor->context != NULL && vendor->version == store->version;
    if (!fits) {
        snprintf(why->text, sizeof why->text,
                 "%.250s has choices of products for cuBLASLt %llu, found: %.150s", store->path,
                 (unsigned long long)store->version, vendor->text);
    }
    return fits;
}

static void open_vendor(const struct gemm_tuner_parts *parts, struct gemm_vendor *out)
{
    if (parts->vendor != NULL) {
        *out = *parts->vendor;
    } else {
        gemm_vendor_open(out);
    }
}

/* The library where it is needed, and what it needs. */
static int open_library(struct gemm_tuner *t, struct device_text *why)
{
    const bool kept = !t->parts.own && names_library(&t->store);
    if (!t->parts.timing && !kept) {
        snprintf(t->vendor.text, sizeof t->vendor.text, "our kernels alone");
        return DEVICE_OK;
    }
    open_vendor(&t->parts, &t->vendor);
    if (t->parts.timing) {
        gemm_tuner_store_renew(&t->store, t->vendor.context != NULL ? t->vendor.version : 0);
    } else if (!library_fits(&t->store, &t->vendor, why)) {
        return DEVICE_FAULT_INPUT;
    }
    cudaError_t error = t->vendor.context != NULL
                            ? cudaMalloc(&t->workspace, GEMM_TUNER_WORKSPACE_BYTES)
                            : cudaSuccess;
    error = error == cudaSuccess ? cudaEventCreate(&t->start) : error;
    error = error == cudaSuccess ? cudaEventCreate(&t->end) : error;
    return error == cudaSuccess ? (int)DEVICE_OK : fault(why, "a workspace for products", error);
}

extern "C" int gemm_tuner_create(const struct gemm_tuner_parts *parts, struct gemm_tuner **out,
                                 struct device_text *why)
{
    struct gemm_tuner *t = (struct gemm_tuner *)calloc(1, sizeof *t);
    char warning[400];
    if (t == NULL) {
        snprintf(why->text, sizeof why->text, "products: out of host memory");
        return DEVICE_FAULT_MEMORY;
    }
    t->parts = *parts;
    open_store(&t->store, parts->folder, warning, sizeof warning);
    int status = open_library(t, why);
    if (status != DEVICE_OK) {
        gemm_tuner_destroy(t);
        return status;
    }
    snprintf(t->text, sizeof t->text, "%s%s%.200s", t->vendor.text, warning[0] != '\0' ? "; " : "",
             warning);
    *out = t;
    return DEVICE_OK;
}

extern "C" void gemm_tuner_destroy(struct gemm_tuner *t)
{
    if (t == NULL) {
        return;
    }
    if (t->vendor.context != NULL) {
        t->vendor.close(t->vendor.context);
    }
    if (t->start != NULL) {
        cudaEventDestroy(t->start);
    }
    if (t->end != NULL) {
        cudaEventDestroy(t->end);
    }
    cudaFree(t->workspace);
    cudaFree(t->sums);
    free(t);
}

/* ---- running ---- */

static size_t bytes_of(const struct gpu_gemm *g)
{
    return g->type == GPU_E4M3 ? 1 : 2;
}

/* Item `item` of a product as one of its own. */
static struct gpu_gemm item_of(const struct gpu_gemm *g, uint32_t item)
{
    const size_t at = item * g->c_item;
    struct gpu_gemm one = *g;
    one.items = 1;
    one.a = (const uint8_t *)g->a + item * g->a_item * bytes_of(g);
    one.a_scale = g->a_scale != NULL ? g->a_scale + (size_t)item * g->rows : NULL;
    one.gate = g->gate != NULL ? g->gate + item * g->gate_item : NULL;
    one.c = g->c != NULL ? g->c + at : NULL;
    one.out = g->out != NULL ? (uint16_t *)g->out + at : NULL;
    one.active = g->active != NULL ? g->active + item : NULL;
    return one;
}

/* Whether nothing follows the sums but a rounding that the library knows. */
static bool plain(const struct gpu_gemm *g)
{
    return g->bias == NULL && g->active == NULL &&
           (g->epilogue == NN_STORE || g->epilogue == NN_STORE_ACT);
}

static int run_library(struct gemm_tuner *t, const uint8_t *algorithm, const struct gpu_gemm *g,
                       uint32_t *launches, void *stream, struct device_text *why)
{
    int status = DEVICE_OK;
    for (uint32_t item = 0; item < g->items && status == DEVICE_OK; item++) {
        const struct gpu_gemm one = item_of(g, item);
        struct gpu_gemm sums = one;
        if (!plain(g)) {
            sums.epilogue = NN_STORE;
            sums.bias = NULL;
            sums.active = NULL;
            sums.c = t->sums;
            sums.ldc = g->n;
        }
        status = t->vendor.multiply(t->vendor.context, &sums, algorithm, t->workspace, stream, why);
        *launches += 1;
        if (status == DEVICE_OK && !plain(g)) {
            gpu_gemm_finish_launch(&one, t->sums, stream);
            *launches += 1;
        }
    }
    return status;
}

static int run(struct gemm_tuner *t, const struct gemm_tuner_choice *choice,
               const struct gpu_gemm *g, uint32_t *launches, void *stream, struct device_text *why)
{
    if (choice->way == GEMM_TUNER_LIBRARY) {
        return run_library(t, choice->algorithm, g, launches, stream, why);
    }
    struct gpu_gemm own = *g;
    own.tile = choice->items == g->items ? (enum gpu_tile)choice->tile : GPU_TILE_AUTO;
    gpu_gemm_launch(&own, stream);
    *launches += 1;
    cudaError_t error = cudaPeekAtLastError();
    return error == cudaSuccess ? (int)DEVICE_OK : fault(why, "a product", error);
}

/* The library's product of an item: as it is asked for algorithms. */
static struct gpu_gemm asked_of(const struct gpu_gemm *g)
{
    struct gpu_gemm one = item_of(g, 0);
    one.epilogue = plain(g) ? g->epilogue : NN_STORE;
    one.ldc = plain(g) ? g->ldc : g->n;
    return one;
}

/* Whether the library could compute this at all. */
static bool suits(const struct gemm_tuner *t, const struct gpu_gemm *g)
{
    const uintptr_t out = plain(g) ? (uintptr_t)(g->epilogue == NN_STORE ? g->c : g->out) : 0;
    const uintptr_t all = (uintptr_t)g->a | (uintptr_t)g->b | out | g->a_item * bytes_of(g);
    return t->vendor.context != NULL && all % GEMM_VENDOR_ALIGNMENT_BYTES == 0 && g->n % 16 == 0 &&
           g->k % 16 == 0;
}

/* Room for the sums of an item; what is queued may still read the old one. */
static int place_sums(struct gemm_tuner *t, const struct gpu_gemm *g, void *stream,
                      struct device_text *why)
{
    const size_t bytes = plain(g) ? 0 : (size_t)g->rows * g->n * sizeof(float);
    if (bytes <= t->sums_bytes) {
        return DEVICE_OK;
    }
    cudaError_t error = cudaStreamSynchronize((cudaStream_t)stream);
    if (error == cudaSuccess) {
        cudaFree(t->sums);
        t->sums = NULL;
        t->sums_bytes = 0;
        error = cudaMalloc(&t->sums, bytes);
    }
    t->sums_bytes = error == cudaSuccess ? bytes : 0;
    return error == cudaSuccess ? (int)DEVICE_OK : fault(why, "sums of a product", error);
}

/* ---- choosing ---- */

/* The least time of a few runs; a candidate that the vendor refuses to run is left out. */
static int time_candidate(struct gemm_tuner *t, const struct gemm_tuner_choice *choice,
                          const struct gpu_gemm *g, void *stream, bool *runs, double *ms,
                          struct device_text *why)
{
    cudaStream_t on = (cudaStream_t)stream;
    struct device_text refusal = {""};
    uint32_t launches = 0;
    double least = 0.0;
    *runs = run(t, choice, g, &launches, stream, &refusal) == DEVICE_OK;
    cudaError_t error = cudaStreamSynchronize(on);
    for (int i = 0; *runs && error == cudaSuccess && i < REPEATS; i++) {
        float taken = 0.0f;
        error = cudaEventRecord(t->start, on);
        *runs = run(t, choice, g, &launches, stream, &refusal) == DEVICE_OK;
        error = error == cudaSuccess ? cudaEventRecord(t->end, on) : error;
        error = error == cudaSuccess ? cudaEventSynchronize(t->end) : error;
        error = error == cudaSuccess ? cudaEventElapsedTime(&taken, t->start, t->end) : error;
        least = i == 0 || (double)taken < least ? (double)taken : least;
    }
    if (error != cudaSuccess) {
        return fault(why, refusal.text[0] != '\0' ? refusal.text : "timing products", error);
    }
    if (*runs) {
        *ms = t->parts.measured != NULL ? t->parts.measured(t->parts.context, g, choice, least)
                                        : least;
    }
    return DEVICE_OK;
}

/* Ours as it chooses itself, ours in each tile where it has several, the library's algorithms. */
static uint32_t candidates(struct gemm_tuner *t, const struct gpu_gemm *g,
                           struct gemm_tuner_choice out[CANDIDATES_MAX])
{
    uint8_t found[ALGORITHMS_MAX][STORE_ALGORITHM_BYTES];
    const bool tiles = g->wgmma == 0 || !gpu_gemm_wgmma_suits(g);
    uint32_t count = 0;
    for (uint32_t tile = 0; tile < (tiles ? (uint32_t)STORE_TILES : 1); tile++) {
        out[count++] = {GEMM_TUNER_OWN, tile, g->items, {0}};
    }
    const struct gpu_gemm one = asked_of(g);
    const uint32_t algorithms =
        suits(t, g) ? t->vendor.algorithms(t->vendor.context, &one, found, ALGORITHMS_MAX) : 0;
    for (uint32_t i = 0; i < algorithms; i++) {
        out[count] = {GEMM_TUNER_LIBRARY, 0, 0, {0}};
        memcpy(out[count++].algorithm, found[i], STORE_ALGORITHM_BYTES);
    }
    return count;
}

/* Random numbers for operands: products of equal ones draw less power and run faster. */
static cudaError_t fill_operands(const struct gpu_gemm *g)
{
    cudaError_t error = cudaDeviceSynchronize();
    for (uint32_t item = 0; item < g->items; item++) {
        const struct gpu_gemm one = item_of(g, item);
        scale_fill(g->type, const_cast<void *>(one.a), (uint64_t)g->rows * g->lda, 3 + item);
        if (g->type == GPU_E4M3) {
            scale_fill(GPU_F32, const_cast<float *>(one.a_scale), g->rows, 5 + item);
        }
    }
    return error == cudaSuccess ? cudaDeviceSynchronize() : error;
}

/* The fastest candidate; of those that a clock cannot tell apart the first. */
static int choose(struct gemm_tuner *t, const struct gpu_gemm *asked, void *stream,
                  struct plan *plan, struct device_text *why)
{
    struct gemm_tuner_choice candidate[CANDIDATES_MAX];
    struct gpu_gemm g = *asked;
    g.active = NULL; /* all items, whether or not one takes part just now */
    const uint32_t found = candidates(t, &g, candidate);
    bool any = false;
    int status = place_sums(t, asked, stream, why);
    if (status == DEVICE_OK) {
        cudaError_t error = fill_operands(&g);
        status = error == cudaSuccess ? (int)DEVICE_OK : fault(why, "operands to time", error);
    }
    for (uint32_t i = 0; i < found && status == DEVICE_OK; i++) {
        double ms = 0.0;
        bool runs = false;
        status = time_candidate(t, &candidate[i], &g, stream, &runs, &ms, why);
        plan->own_ms = i == 0 ? ms : plan->own_ms;
        if (runs && (!any || ms < plan->chosen_ms * (1.0 - GAIN_LEAST))) {
            plan->choice = candidate[i];
            plan->chosen_ms = ms;
            any = true;
        }
    }
    return status;
}

static struct plan *find_plan(struct gemm_tuner *t, const struct gpu_gemm *g)
{
    const struct gemm_tuner_shape shape = gemm_tuner_shape_of(g);
    for (uint32_t i = 0; i < t->plan_count; i++) {
        if (gemm_tuner_shape_same(&t->plans[i].shape, &shape)) {
            return &t->plans[i];
        }
    }
    return NULL;
}

/* Whether a choice of the library can be run; it is a promise of bits that nothing else keeps. */
static bool runnable(const struct gemm_tuner *t, const struct gemm_tuner_choice *choice,
                     const struct gpu_gemm *g)
{
    const struct gpu_gemm one = asked_of(g);
    return choice->way == GEMM_TUNER_OWN ||
           (suits(t, g) && t->vendor.takes(t->vendor.context, &one, choice->algorithm));
}

/* Whether it was timed with so many items, where that counts. */
static bool fits_items(const struct gemm_tuner_choice *choice, const struct gpu_gemm *g)
{
    return choice->way == GEMM_TUNER_LIBRARY || choice->items == g->items;
}

/* Settles what a shape runs on, when its first product comes. */
static int settle(struct gemm_tuner *t, const struct gpu_gemm *g, struct plan *plan, void *stream,
                  struct device_text *why)
{
    bool known = gemm_tuner_store_find(&t->store, &plan->shape, &plan->choice);
    if (known && t->parts.own && plan->choice.way == GEMM_TUNER_LIBRARY) {
        plan->choice = {};
    }
    const bool runs = !known || runnable(t, &plan->choice, g);
    if (t->parts.timing && !(known && runs && fits_items(&plan->choice, g))) {
        int status = choose(t, g, stream, plan, why);
        if (status == DEVICE_OK) {
            gemm_tuner_store_put(&t->store, &plan->shape, &plan->choice);
        }
        return status;
    }
    if (!runs) {
        snprintf(why->text, sizeof why->text,
                 "product %u x %u x %u: %.250s names an algorithm that %.100s does not take",
                 g->rows, g->n, g->k, t->store.path, t->vendor.text);
        return DEVICE_FAULT_INPUT;
    }
    return plan->choice.way == GEMM_TUNER_LIBRARY ? place_sums(t, g, stream, why) : (int)DEVICE_OK;
}

extern "C" int gemm_tuner_matmul(struct gemm_tuner *t, const struct gpu_gemm *g, uint32_t *launches,
                                 void *stream, struct device_text *why)
{
    static const struct gemm_tuner_choice ours = {};
    struct plan *plan = find_plan(t, g);
    if (plan == NULL && t->plan_count < PLANS_MAX) {
        struct plan next = {};
        next.shape = gemm_tuner_shape_of(g);
        int status = settle(t, g, &next, stream, why);
        if (status != DEVICE_OK) {
            return status;
        }
        plan = &t->plans[t->plan_count++];
        *plan = next;
    }
    const struct gemm_tuner_choice *choice = plan != NULL ? &plan->choice : &ours;
    if (choice->way == GEMM_TUNER_LIBRARY && !suits(t, g)) {
        snprintf(why->text, sizeof why->text,
                 "product %u x %u x %u: expected operands at multiples of %d bytes", g->rows, g->n,
                 g->k, GEMM_VENDOR_ALIGNMENT_BYTES);
        return DEVICE_FAULT_INPUT;
    }
    int status = run(t, choice, g, launches, stream, why);
    if (status == DEVICE_OK) {
        t->ways[choice->way]++;
        if (plan != NULL) {
            plan->uses++;
        }
    }
    return status;
}

/* ---- peaks ---- */

/* Operations per second of one large product on what is fastest; 0: the clock stands still. */
static int measure_rate(struct gemm_tuner *t, enum gpu_type type, uint32_t wgmma, double *out,
                        struct device_text *why)
{
    const size_t side = PEAK_SIDE;
    const size_t bytes = side * side * (type == GPU_E4M3 ? 1 : 2);
    uint8_t *operands = NULL;
    float *scales = NULL;
    void *result = NULL;
    struct plan plan = {};
    cudaError_t error = cudaMalloc(&operands, 2 * bytes);
    error = error == cudaSuccess ? cudaMalloc(&scales, side * sizeof(float)) : error;
    error = error == cudaSuccess ? cudaMalloc(&result, side * side * 2) : error;
    struct gpu_gemm g = {};
    g.type = type;
    g.epilogue = NN_STORE_ACT;
    g.items = 1;
    g.rows = g.n = g.k = PEAK_SIDE;
    g.a = operands;
    g.lda = side;
    g.b = operands + bytes;
    g.a_scale = g.b_scale = scales;
    g.out = result;
    g.ldc = side;
    g.wgmma = wgmma;
    if (error == cudaSuccess) {
        scale_fill(type, operands + bytes, side * side, 4);
        error = fill_operands(&g);
    }
    int status = error != cudaSuccess ? fault(why, "a large product", error)
                                      : choose(t, &g, NULL, &plan, why);
    cudaFree(operands);
    cudaFree(scales);
    cudaFree(result);
    const double ms = status == DEVICE_OK ? plan.chosen_ms : 0.0;
    *out = ms > 0.0 ? 2.0 * (double)side * (double)side * (double)side / (ms * 1e-3) : 0.0;
    return status;
}

static double measure_peak(const struct gemm_tuner_parts *given, enum gpu_type type, uint32_t wgmma)
{
    struct gemm_tuner_parts parts = *given;
    struct gemm_tuner *t = NULL;
    struct device_text why;
    double flops = 0.0;
    parts.folder = NULL; /* of no model: not kept as a choice */
    parts.timing = true;
    if (gemm_tuner_create(&parts, &t, &why) != DEVICE_OK ||
        measure_rate(t, type, wgmma, &flops, &why) != DEVICE_OK) {
        gpu_error_take(); /* a session does without it */
        flops = 0.0;
    }
    gemm_tuner_destroy(t);
    return flops;
}

extern "C" double gemm_tuner_peak(const struct gemm_tuner_parts *parts, enum gpu_type type,
                                  uint32_t wgmma)
{
    auto *store = (struct gemm_tuner_store *)calloc(1, sizeof(struct gemm_tuner_store));
    char warning[400];
    if (store == NULL) {
        return 0.0;
    }
    open_store(store, parts->folder, warning, sizeof warning);
    double flops = (double)store->peak_flops[type];
    if (flops == 0.0 && (!GPU_EMULATED || parts->measured != NULL)) {
        flops = measure_peak(parts, type, wgmma);
        /* Who measured beside others found less than the first or the last of them. */
        open_store(store, parts->folder, warning, sizeof warning);
        if (flops >= 1.0 && flops > (double)store->peak_flops[type]) {
            gemm_tuner_store_put_peak(store, (uint32_t)type, (uint64_t)flops);
            gemm_tuner_store_save(store); /* or it is measured again next time */
        }
        flops = fmax(flops, (double)store->peak_flops[type]);
    }
    free(store);
    return flops;
}

/* ---- what others ask ---- */

extern "C" void gemm_tuner_digest(const struct gemm_tuner_parts *parts,
                                  char out[STORE_DIGEST_BYTES], struct device_text *why)
{
    auto *store = (struct gemm_tuner_store *)calloc(1, sizeof(struct gemm_tuner_store));
    struct gemm_vendor vendor = {};
    out[0] = why->text[0] = '\0';
    if (store == NULL) {
        snprintf(why->text, sizeof why->text, "products: out of host memory");
        return;
    }
    open_store(store, parts->folder, why->text, sizeof why->text);
    gemm_tuner_store_digest(store, out);
    if (out[0] != '\0') {
        open_vendor(parts, &vendor);
        if (!library_fits(store, &vendor, why)) {
            out[0] = '\0';
        }
    }
    if (vendor.context != NULL) {
        vendor.close(vendor.context);
    }
    free(store);
}

extern "C" bool gemm_tuner_keep(struct gemm_tuner *t)
{
    return t->store.path[0] != '\0' && gemm_tuner_store_save(&t->store);
}

extern "C" const struct gemm_tuner_store *gemm_tuner_choices(const struct gemm_tuner *t)
{
    return &t->store;
}

extern "C" const char *gemm_tuner_describe(const struct gemm_tuner *t)
{
    return t->text;
}

extern "C" void gemm_tuner_count(const struct gemm_tuner *t, struct gemm_tuner_counts *out)
{
    *out = {};
    memcpy(out->way, t->ways, sizeof out->way);
    for (uint32_t i = 0; i < t->plan_count; i++) {
        out->own_ms += (double)t->plans[i].uses * t->plans[i].own_ms;
        out->chosen_ms += (double)t->plans[i].uses * t->plans[i].chosen_ms;
    }
}
