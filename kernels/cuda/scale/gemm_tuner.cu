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
    WEIGHTS_MAX = 1024,
    ALGORITHMS_MAX = 4, /* of the vendor's that are timed, in each type */
    CANDIDATES_MAX = 1 + 2 * ALGORITHMS_MAX,
    REPEATS = 3,                          /* of a candidate, after one that warms up */
    PEAK_SIDE = GPU_EMULATED ? 64 : 8192, /* of the product that shows the ceiling */
    RESERVE_BYTES = 1 << 30, /* of the device's memory, that expanded operands leave free */
};

/* A later candidate must be faster by this: what a clock cannot tell apart is no choice. */
#define GAIN_LEAST 0.02

/* One shape, and what was chosen for it. */
struct plan {
    struct gemm_tuner_shape shape;
    struct gemm_tuner_choice choice;
    uint16_t *activations; /* GEMM_TUNER_BF16: bf16 [m][k], of this call; plans may share it */
    size_t activation_bytes;
};

/* fp8 weights that are there in bf16 too. */
struct expanded {
    const void *b;
    const float *scale;
    uint32_t n, k;
    uint16_t *out; /* [n][k] */
};

struct gemm_tuner {
    struct gemm_vendor vendor;
    struct gemm_tuner_parts parts; /* its vendor and folder were borrowed */
    void *workspace;
    cudaEvent_t start, end;
    struct plan plans[PLANS_MAX];
    uint32_t plan_count;
    struct expanded weights[WEIGHTS_MAX];
    uint32_t weight_count;
    uint64_t expanded_bytes;
    struct gemm_tuner_store store;
    struct gemm_tuner_counts counts;
    char text[512];
};

static int fault(struct device_text *why, const char *what, cudaError_t error)
{
    snprintf(why->text, sizeof why->text, "%s: %s", what, gpu_error_text(error));
    return error == cudaErrorMemoryAllocation ? DEVICE_FAULT_MEMORY : DEVICE_FAULT_LOST;
}

/* ---- life cycle ---- */

/* Store of this kind of device, and a warning's text or "". Without a file all is timed anew. */
static void open_store(struct gemm_tuner_store *store, const char *folder, uint64_t version,
                       char *warning, size_t warning_bytes)
{
    cudaDeviceProp properties;
    int device = 0;
    warning[0] = '\0';
    if (folder == NULL || cudaGetDevice(&device) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
        gpu_error_take();
        return;
    }
    gemm_tuner_store_open(store, folder, properties.name, version, warning, warning_bytes);
}

static void open_choices(struct gemm_tuner *gemm_tuner, const char *folder)
{
    char warning[400];
    if (gemm_tuner->vendor.context == NULL) {
        return;
    }
    open_store(&gemm_tuner->store, folder, gemm_tuner->vendor.version, warning, sizeof warning);
    if (warning[0] != '\0') {
        size_t used = strlen(gemm_tuner->text);
        snprintf(gemm_tuner->text + used, sizeof gemm_tuner->text - used, "; %.200s", warning);
    }
}

extern "C" int gemm_tuner_create_with(const struct gemm_tuner_parts *parts, struct gemm_tuner **out,
                                      struct device_text *why)
{
    struct gemm_tuner *gemm_tuner = (struct gemm_tuner *)calloc(1, sizeof *gemm_tuner);
    if (gemm_tuner == NULL) {
        snprintf(why->text, sizeof why->text, "products: out of host memory");
        return DEVICE_FAULT_MEMORY;
    }
    gemm_tuner->parts = *parts;
    gemm_tuner->vendor = *parts->vendor;
    cudaError_t error = cudaMalloc(&gemm_tuner->workspace, GEMM_TUNER_WORKSPACE_BYTES);
    error = error == cudaSuccess ? cudaEventCreate(&gemm_tuner->start) : error;
    error = error == cudaSuccess ? cudaEventCreate(&gemm_tuner->end) : error;
    if (error != cudaSuccess) {
        gemm_tuner_destroy(gemm_tuner);
        return fault(why, "a workspace for products", error);
    }
    snprintf(gemm_tuner->text, sizeof gemm_tuner->text, "%s", gemm_tuner->vendor.text);
    open_choices(gemm_tuner, parts->folder);
    *out = gemm_tuner;
    return DEVICE_OK;
}

extern "C" int gemm_tuner_create(struct gemm_tuner **out, struct device_text *why)
{
    struct gemm_vendor vendor;
    struct gemm_tuner_parts parts = {};
    char folder[STORE_PATH_BYTES - 300];
    gemm_vendor_open(&vendor);
    parts.vendor = &vendor;
    parts.folder = gemm_tuner_store_folder(folder) ? folder : NULL;
    parts.memory_bytes = UINT64_MAX;
    return gemm_tuner_create_with(&parts, out, why);
}

extern "C" void gemm_tuner_destroy(struct gemm_tuner *gemm_tuner)
{
    if (gemm_tuner == NULL) {
        return;
    }
    gemm_tuner_store_save(&gemm_tuner->store); /* or it is chosen again next time */
    for (uint32_t i = 0; i < gemm_tuner->plan_count; i++) {
        if (gemm_tuner->plans[i].activation_bytes > 0) {
            cudaFree(gemm_tuner->plans[i].activations);
        }
    }
    for (uint32_t i = 0; i < gemm_tuner->weight_count; i++) {
        cudaFree(gemm_tuner->weights[i].out);
    }
    if (gemm_tuner->vendor.context != NULL) {
        gemm_tuner->vendor.close(gemm_tuner->vendor.context);
    }
    if (gemm_tuner->start != NULL) {
        cudaEventDestroy(gemm_tuner->start);
    }
    if (gemm_tuner->end != NULL) {
        cudaEventDestroy(gemm_tuner->end);
    }
    cudaFree(gemm_tuner->workspace);
    free(gemm_tuner);
}

/* ---- expanded operands ---- */

/* Whether so many bytes more may be taken. */
static bool affordable(const struct gemm_tuner *gemm_tuner, uint64_t bytes)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) {
        gpu_error_take();
        return false;
    }
    return free_bytes >= RESERVE_BYTES && bytes <= free_bytes - RESERVE_BYTES &&
           gemm_tuner->expanded_bytes <= gemm_tuner->parts.memory_bytes &&
           bytes <= gemm_tuner->parts.memory_bytes - gemm_tuner->expanded_bytes;
}

static const struct expanded *find_weights(const struct gemm_tuner *gemm_tuner,
                                           const struct gpu_gemm *g)
{
    for (uint32_t i = 0; i < gemm_tuner->weight_count; i++) {
        const struct expanded *w = &gemm_tuner->weights[i];
        if (w->b == g->b && w->scale == g->b_scale && w->n == g->n && w->k == g->k) {
            return w;
        }
    }
    return NULL;
}

/* Bytes of what the products of g's shape still lack to run expanded. */
static uint64_t missing_bytes(const struct gemm_tuner *gemm_tuner, const struct plan *plan,
                              const struct gpu_gemm *const *matmuls, uint32_t count)
{
    uint64_t bytes = plan->activations == NULL ? (uint64_t)plan->shape.m * plan->shape.k * 2 : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct gemm_tuner_shape shape = gemm_tuner_shape_of(matmuls[i]);
        bool wanted = gemm_tuner_shape_same(&shape, &plan->shape) &&
                      find_weights(gemm_tuner, matmuls[i]) == NULL;
        for (uint32_t k = 0; wanted && k < i; k++) { /* counted already */
            wanted = matmuls[k]->b != matmuls[i]->b;
        }
        bytes += wanted ? (uint64_t)plan->shape.n * plan->shape.k * 2 : 0;
    }
    return bytes;
}

/* Room for the activations of a shape: another plan's, where it is large enough, since products run
 * one after the other. */
static cudaError_t place_activations(struct gemm_tuner *gemm_tuner, struct plan *plan)
{
    const size_t bytes = (size_t)plan->shape.m * plan->shape.k * 2;
    for (uint32_t i = 0; i < gemm_tuner->plan_count && plan->activations == NULL; i++) {
        const struct plan *other = &gemm_tuner->plans[i];
        plan->activations = other->activation_bytes >= bytes ? other->activations : NULL;
    }
    if (plan->activations != NULL) {
        return cudaSuccess;
    }
    cudaError_t error = cudaMalloc(&plan->activations, bytes);
    plan->activation_bytes = error == cudaSuccess ? bytes : 0;
    gemm_tuner->expanded_bytes += plan->activation_bytes;
    return error;
}

static cudaError_t expand_weights(struct gemm_tuner *gemm_tuner, const struct gpu_gemm *g,
                                  void *stream)
{
    if (find_weights(gemm_tuner, g) != NULL) {
        return cudaSuccess;
    }
    struct expanded w = {g->b, g->b_scale, g->n, g->k, NULL};
    const size_t bytes = (size_t)g->n * g->k * 2;
    cudaError_t error = gemm_tuner->weight_count == WEIGHTS_MAX ? cudaErrorMemoryAllocation
                                                                : cudaMalloc(&w.out, bytes);
    if (error == cudaSuccess) {
        const struct gpu_expand e = {g->n, g->k, g->b, g->k, g->b_scale, w.out};
        gpu_expand_launch(&e, stream);
        gemm_tuner->weights[gemm_tuner->weight_count++] = w;
        gemm_tuner->expanded_bytes += bytes;
        error = cudaPeekAtLastError();
    }
    return error;
}

/* Gives back what was only needed for timing; nothing of it may be queued. */
static void drop_expanded(struct gemm_tuner *gemm_tuner, struct plan *plan, uint32_t weights_before)
{
    while (gemm_tuner->weight_count > weights_before) {
        const struct expanded *w = &gemm_tuner->weights[--gemm_tuner->weight_count];
        gemm_tuner->expanded_bytes -= (uint64_t)w->n * w->k * 2;
        cudaFree(w->out);
    }
    if (plan->activation_bytes > 0) {
        cudaFree(plan->activations);
        gemm_tuner->expanded_bytes -= plan->activation_bytes;
        plan->activation_bytes = 0;
    }
    plan->activations = NULL;
}

/* The product in bf16: the same output of the same numbers, rounded. */
static struct gpu_gemm in_bf16(const struct gpu_gemm *g, const void *a, const void *b)
{
    struct gpu_gemm wide = *g;
    wide.type = GPU_BF16;
    wide.rows = g->items * g->rows;
    wide.items = 1;
    wide.a = a;
    wide.lda = g->k;
    wide.b = b;
    wide.a_scale = wide.b_scale = NULL;
    return wide;
}

/* ---- running ---- */

static int run(struct gemm_tuner *gemm_tuner, const struct plan *plan,
               const struct gemm_tuner_choice *choice, const struct gpu_gemm *g, void *stream,
               struct device_text *why)
{
    const struct gemm_vendor *vendor = &gemm_tuner->vendor;
    if (choice->way == GEMM_TUNER_OWN) {
        gpu_gemm_launch(g, stream);
        cudaError_t error = cudaPeekAtLastError();
        return error == cudaSuccess ? DEVICE_OK : fault(why, "a product", error);
    }
    if (choice->way == GEMM_TUNER_SAME) {
        return vendor->multiply(vendor->context, g, choice->algorithm, gemm_tuner->workspace,
                                stream, why);
    }
    const struct expanded *weights = find_weights(gemm_tuner, g);
    if (weights == NULL) {
        snprintf(why->text, sizeof why->text, "product %u x %u x %u: its weights were not expanded",
                 plan->shape.m, g->n, g->k);
        return DEVICE_FAULT_INPUT;
    }
    const struct gpu_expand e = {plan->shape.m, g->k, g->a, g->lda, g->a_scale, plan->activations};
    const struct gpu_gemm wide = in_bf16(g, plan->activations, weights->out);
    gpu_expand_launch(&e, stream);
    return vendor->multiply(vendor->context, &wide, choice->algorithm, gemm_tuner->workspace,
                            stream, why);
}

/* ---- choosing ---- */

/* The least time of a few runs; a candidate that the vendor refuses to run is left out. */
static int time_candidate(struct gemm_tuner *gemm_tuner, const struct plan *plan,
                          const struct gemm_tuner_choice *choice, const struct gpu_gemm *g,
                          void *stream, bool *runs, double *ms, struct device_text *why)
{
    cudaStream_t on = (cudaStream_t)stream;
    struct device_text refusal = {""};
    double least = 0.0;
    *runs = run(gemm_tuner, plan, choice, g, stream, &refusal) == DEVICE_OK;
    cudaError_t error = cudaStreamSynchronize(on);
    for (int i = 0; *runs && error == cudaSuccess && i < REPEATS; i++) {
        float taken = 0.0f;
        error = cudaEventRecord(gemm_tuner->start, on);
        *runs = run(gemm_tuner, plan, choice, g, stream, &refusal) == DEVICE_OK;
        error = error == cudaSuccess ? cudaEventRecord(gemm_tuner->end, on) : error;
        error = error == cudaSuccess ? cudaEventSynchronize(gemm_tuner->end) : error;
        error = error == cudaSuccess
                    ? cudaEventElapsedTime(&taken, gemm_tuner->start, gemm_tuner->end)
                    : error;
        least = i == 0 || (double)taken < least ? (double)taken : least;
    }
    if (!*runs) {
        gpu_error_take(); /* of the candidate that is left out */
    }
    *ms = gemm_tuner->parts.measured != NULL
              ? gemm_tuner->parts.measured(gemm_tuner->parts.context, g, choice, least)
              : least;
    return error == cudaSuccess ? DEVICE_OK : fault(why, "timing products", error);
}

/* Adds the vendor's first algorithms for a product. */
static uint32_t add_algorithms(const struct gemm_tuner *gemm_tuner, enum gemm_tuner_way way,
                               const struct gpu_gemm *g, struct gemm_tuner_choice *out)
{
    uint8_t algorithm[ALGORITHMS_MAX][STORE_ALGORITHM_BYTES];
    const struct gemm_vendor *vendor = &gemm_tuner->vendor;
    uint32_t count = vendor->algorithms(vendor->context, g, algorithm, ALGORITHMS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = {};
        out[i].way = way;
        memcpy(out[i].algorithm, algorithm[i], STORE_ALGORITHM_BYTES);
    }
    return count;
}

/* The vendor's own first choice first, then our kernel, then what needs memory of its own: that
 * only for fp8 which the vendor has no algorithm for. */
static uint32_t candidates(const struct gemm_tuner *gemm_tuner, const struct plan *plan,
                           const struct gpu_gemm *const *matmuls, uint32_t count,
                           const struct gpu_gemm *g, struct gemm_tuner_choice out[CANDIDATES_MAX])
{
    uint32_t found = add_algorithms(gemm_tuner, GEMM_TUNER_SAME, g, out);
    const bool none = found == 0;
    out[found] = {}; /* ours */
    found++;
    if (none && g->type == GPU_E4M3 &&
        affordable(gemm_tuner, missing_bytes(gemm_tuner, plan, matmuls, count))) {
        const struct gpu_gemm wide = in_bf16(g, NULL, NULL);
        found += add_algorithms(gemm_tuner, GEMM_TUNER_BF16, &wide, out + found);
    }
    return found;
}

/* Times what could compute the shape on the operands of one product of it. */
static int choose(struct gemm_tuner *gemm_tuner, struct plan *plan,
                  const struct gpu_gemm *const *matmuls, uint32_t count, const struct gpu_gemm *g,
                  void *stream, struct device_text *why)
{
    struct gemm_tuner_choice candidate[CANDIDATES_MAX];
    const uint32_t found = candidates(gemm_tuner, plan, matmuls, count, g, candidate);
    const uint32_t weights_before = gemm_tuner->weight_count;
    double best_ms = 0.0;
    bool any = false;
    plan->choice = {};
    if (found == 1) {
        return DEVICE_OK; /* ours alone: nothing to time, nothing to keep */
    }
    for (uint32_t i = 0; i < found; i++) {
        cudaError_t error = cudaSuccess;
        double ms = 0.0;
        bool runs = false;
        if (candidate[i].way == GEMM_TUNER_BF16) {
            error = place_activations(gemm_tuner, plan);
            error = error == cudaSuccess ? expand_weights(gemm_tuner, g, stream) : error;
        }
        if (error != cudaSuccess) {
            return fault(why, "operands of products in bf16", error);
        }
        int status = time_candidate(gemm_tuner, plan, &candidate[i], g, stream, &runs, &ms, why);
        if (status != DEVICE_OK) {
            return status;
        }
        if (runs && (!any || ms < best_ms * (1.0 - GAIN_LEAST))) {
            plan->choice = candidate[i];
            best_ms = ms;
            any = true;
        }
    }
    if (plan->choice.way != GEMM_TUNER_BF16) {
        drop_expanded(gemm_tuner, plan, weights_before);
    }
    gemm_tuner_store_put(&gemm_tuner->store, &plan->shape, &plan->choice);
    return DEVICE_OK;
}

/* Whether what a file says can be run here. */
static bool runnable(const struct gemm_tuner *gemm_tuner, const struct gemm_tuner_choice *choice,
                     const struct gpu_gemm *g)
{
    const struct gemm_vendor *vendor = &gemm_tuner->vendor;
    const struct gpu_gemm wide = in_bf16(g, NULL, NULL);
    switch (choice->way) {
    case GEMM_TUNER_OWN:
        return true;
    case GEMM_TUNER_SAME:
        return vendor->takes(vendor->context, g, choice->algorithm);
    case GEMM_TUNER_BF16:
        return g->type == GPU_E4M3 && vendor->takes(vendor->context, &wide, choice->algorithm);
    default:
        return false;
    }
}

/* Whether anything but our kernel could compute this: its items are one matrix, nothing follows the
 * sum. */
static bool suits(const struct gemm_tuner *gemm_tuner, const struct gpu_gemm *g)
{
    const void *out = g->epilogue == NN_STORE ? (const void *)g->c : g->out;
    bool aligned =
        ((uintptr_t)g->a | (uintptr_t)g->b | (uintptr_t)out) % GEMM_VENDOR_ALIGNMENT_BYTES == 0;
    bool dense = g->items == 1 || (g->a_item == g->rows * g->lda && g->c_item == g->rows * g->ldc);
    bool plain = g->bias == NULL && g->active == NULL &&
                 (g->epilogue == NN_STORE || g->epilogue == NN_STORE_ACT);
    return gemm_tuner->vendor.context != NULL && dense && plain && aligned && g->n % 16 == 0 &&
           g->k % 16 == 0;
}

static struct plan *find_plan(struct gemm_tuner *gemm_tuner, const struct gpu_gemm *g)
{
    const struct gemm_tuner_shape shape = gemm_tuner_shape_of(g);
    for (uint32_t i = 0; i < gemm_tuner->plan_count; i++) {
        if (gemm_tuner_shape_same(&gemm_tuner->plans[i].shape, &shape)) {
            return &gemm_tuner->plans[i];
        }
    }
    return NULL;
}

/* The expanded weights of a product whose shape runs in bf16. A choice is a promise of bits: where
 * the memory for it is gone, nothing else takes its place. */
static int make_ready(struct gemm_tuner *gemm_tuner, struct plan *plan, const struct gpu_gemm *g,
                      void *stream, struct device_text *why)
{
    if (plan->choice.way != GEMM_TUNER_BF16 ||
        (plan->activations != NULL && find_weights(gemm_tuner, g) != NULL)) {
        return DEVICE_OK;
    }
    const struct gpu_gemm *const one[] = {g};
    cudaError_t error = affordable(gemm_tuner, missing_bytes(gemm_tuner, plan, one, 1))
                            ? place_activations(gemm_tuner, plan)
                            : cudaErrorMemoryAllocation;
    error = error == cudaSuccess ? expand_weights(gemm_tuner, g, stream) : error;
    if (error == cudaErrorMemoryAllocation) {
        gpu_error_take();
        snprintf(
            why->text, sizeof why->text,
            "product %u x %u x %u runs in bf16, as %.200s says, and there is no memory for its "
            "weights",
            plan->shape.m, g->n, g->k,
            gemm_tuner->store.path[0] != '\0' ? gemm_tuner->store.path : "its timing");
        return DEVICE_FAULT_MEMORY;
    }
    return error == cudaSuccess ? DEVICE_OK : fault(why, "operands of products in bf16", error);
}

extern "C" int gemm_tuner_prepare(struct gemm_tuner *gemm_tuner,
                                  const struct gpu_gemm *const *matmuls, uint32_t count,
                                  void *stream, struct device_text *why)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct gpu_gemm *g = matmuls[i];
        if (!suits(gemm_tuner, g)) {
            continue;
        }
        struct plan *plan = find_plan(gemm_tuner, g);
        int status = DEVICE_OK;
        if (plan == NULL && gemm_tuner->plan_count == PLANS_MAX) {
            continue; /* on our kernel, now and later */
        }
        if (plan == NULL) {
            plan = &gemm_tuner->plans[gemm_tuner->plan_count++];
            plan->shape = gemm_tuner_shape_of(g);
            bool known = gemm_tuner_store_find(&gemm_tuner->store, &plan->shape, &plan->choice) &&
                         runnable(gemm_tuner, &plan->choice, g);
            status = known ? DEVICE_OK : choose(gemm_tuner, plan, matmuls, count, g, stream, why);
        }
        if (status == DEVICE_OK) {
            status = make_ready(gemm_tuner, plan, g, stream, why);
        }
        if (status != DEVICE_OK) {
            return status;
        }
    }
    return DEVICE_OK;
}

extern "C" int gemm_tuner_matmul(void *context, const struct gpu_gemm *g, void *stream,
                                 struct device_text *why)
{
    static const struct gemm_tuner_choice ours = {GEMM_TUNER_OWN, {0}};
    struct gemm_tuner *gemm_tuner = (struct gemm_tuner *)context;
    const bool suited = suits(gemm_tuner, g);
    const struct plan *plan = suited ? find_plan(gemm_tuner, g) : NULL;
    const bool ready = plan != NULL &&
                       (plan->choice.way != GEMM_TUNER_BF16 || find_weights(gemm_tuner, g) != NULL);
    if (suited && !ready) {
        int status = gemm_tuner_prepare(gemm_tuner, &g, 1, stream, why);
        if (status != DEVICE_OK) {
            return status;
        }
        plan = find_plan(gemm_tuner, g);
    }
    const struct gemm_tuner_choice *choice = plan != NULL ? &plan->choice : &ours;
    int status = run(gemm_tuner, plan, choice, g, stream, why);
    gemm_tuner->counts.way[choice->way] += status == DEVICE_OK ? 1 : 0;
    return status;
}

/* ---- peaks ---- */

/* The least time of the product by the choice, or by what is fastest. */
static int time_matmul(struct gemm_tuner *gemm_tuner, const struct gpu_gemm *g,
                       const struct gemm_tuner_choice *choice, void *stream, double *ms,
                       struct device_text *why)
{
    const struct gemm_tuner_choice ours = {};
    bool runs = false;
    int status =
        choice == NULL ? gemm_tuner_prepare(gemm_tuner, &g, 1, stream, why) : (int)DEVICE_OK;
    const struct plan *plan = find_plan(gemm_tuner, g);
    if (choice == NULL) {
        choice = plan != NULL ? &plan->choice : &ours;
    }
    if (status == DEVICE_OK) {
        status = time_candidate(gemm_tuner, plan, choice, g, stream, &runs, ms, why);
    }
    *ms = runs ? *ms : 0.0;
    return status;
}

/* Its numbers are random: products of equal ones draw less power and run faster. */
extern "C" int gemm_tuner_rate(struct gemm_tuner *gemm_tuner, enum gpu_type type,
                               const struct gemm_tuner_choice *choice, uint32_t wgmma, void *stream,
                               double *out, struct device_text *why)
{
    const size_t side = PEAK_SIDE;
    const size_t bytes = side * side * (type == GPU_E4M3 ? 1 : 2);
    uint8_t *operands = NULL;
    float *scales = NULL;
    void *result = NULL;
    double ms = 0.0;
    cudaError_t error = cudaMalloc(&operands, 2 * bytes);
    error = error == cudaSuccess ? cudaMalloc(&scales, side * sizeof(float)) : error;
    error = error == cudaSuccess ? cudaMalloc(&result, side * side * 2) : error;
    if (error == cudaSuccess) {
        scale_fill(type, operands, 2 * side * side, 3);
        scale_fill(GPU_F32, scales, side, 4);
        error = cudaDeviceSynchronize();
    }
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
    int status = error == cudaSuccess ? time_matmul(gemm_tuner, &g, choice, stream, &ms, why)
                                      : fault(why, "a large product", error);
    cudaFree(operands);
    cudaFree(scales);
    cudaFree(result);
    *out = ms > 0.0 ? 2.0 * (double)side * (double)side * (double)side / (ms * 1e-3) : 0.0;
    return status;
}

static double measure_peak(const struct gemm_tuner_parts *given, enum gpu_type type, uint32_t wgmma)
{
    struct gemm_tuner_parts parts = *given;
    struct gemm_tuner *gemm_tuner = NULL;
    struct gemm_vendor vendor;
    struct device_text why;
    double flops = 0.0;
    if (parts.vendor == NULL) {
        gemm_vendor_open(&vendor);
        parts.vendor = &vendor;
    }
    if (gemm_tuner_create_with(&parts, &gemm_tuner, &why) != DEVICE_OK ||
        gemm_tuner_rate(gemm_tuner, type, NULL, wgmma, NULL, &flops, &why) != DEVICE_OK) {
        gpu_error_take(); /* a session does without it */
        flops = 0.0;
    }
    gemm_tuner_destroy(gemm_tuner);
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
    open_store(store, parts->folder, 0, warning, sizeof warning);
    double flops = (double)store->peak_flops[type];
    if (flops == 0.0 && (!GPU_EMULATED || parts->measured != NULL)) {
        flops = measure_peak(parts, type, wgmma);
        /* Who measured beside others found less than the first or the last of them. */
        open_store(store, parts->folder, 0, warning, sizeof warning);
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

extern "C" const struct gemm_tuner_store *gemm_tuner_choices(const struct gemm_tuner *gemm_tuner)
{
    return &gemm_tuner->store;
}

extern "C" void gemm_tuner_adopt(struct gemm_tuner *gemm_tuner,
                                 const struct gemm_tuner_store *choices)
{
    gemm_tuner->store = *choices;
    gemm_tuner->store.path[0] = '\0';
    gemm_tuner->store.changed = false;
}

extern "C" const char *gemm_tuner_describe(const struct gemm_tuner *gemm_tuner)
{
    return gemm_tuner->text;
}

extern "C" void gemm_tuner_count(const struct gemm_tuner *gemm_tuner, struct gemm_tuner_counts *out)
{
    *out = gemm_tuner->counts;
}
