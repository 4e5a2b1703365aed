/*
 * cuBLASLt by dlopen. See library.h. Row-major [m][k] times [n][k] transposed is, to a library that
 * counts columns first, the n x m product of weights^T and activations.
 */
#include "kernels/cuda/gpu.h"

#include "kernels/cuda/library.h"
#include "kernels/cuda/library_store.h"

#include <stdio.h>
#include <stdlib.h>

#if !GPU_EMULATED && __has_include(<cublasLt.h>)
#define HAVE_LIBRARY 1
#include <cublasLt.h>
#include <dlfcn.h>
#else
#define HAVE_LIBRARY 0
#endif

enum { PLANS_MAX = 64, WORKSPACE_BYTES = 32 << 20 };

#if HAVE_LIBRARY

/* What the module calls of the library. */
struct library_calls {
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtDestroy) destroy;
    decltype(&cublasLtGetVersion) version;
    decltype(&cublasLtGetStatusName) status_name;
    decltype(&cublasLtMatmul) matmul;
    decltype(&cublasLtMatmulDescCreate) desc_create;
    decltype(&cublasLtMatmulDescDestroy) desc_destroy;
    decltype(&cublasLtMatmulDescSetAttribute) desc_set;
    decltype(&cublasLtMatrixLayoutCreate) layout_create;
    decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
    decltype(&cublasLtMatmulPreferenceCreate) preference_create;
    decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
    decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
    decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
    decltype(&cublasLtMatmulAlgoCheck) check;
};

/* One shape and what was chosen for it. */
struct library_plan {
    enum gpu_type type;
    enum nn_epilogue epilogue;
    uint32_t m, n, k;
    size_t lda, ldc;
    bool found; /* false: the library has no algorithm */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t weights, activations, out;
    cublasLtMatmulAlgo_t algorithm;
};

struct library {
    void *handle_dl;
    struct library_calls calls;
    cublasLtHandle_t handle;
    void *workspace;
    struct library_plan plans[PLANS_MAX];
    uint32_t plan_count;
    struct library_store store;
    uint64_t library_count, own_count;
    char text[256];
};

template <class T> static bool take(void *handle, const char *name, T *out)
{
    *out = reinterpret_cast<T>(dlsym(handle, name));
    return *out != NULL;
}

static bool take_all(void *handle, struct library_calls *c)
{
    return take(handle, "cublasLtCreate", &c->create) &&
           take(handle, "cublasLtDestroy", &c->destroy) &&
           take(handle, "cublasLtGetVersion", &c->version) &&
           take(handle, "cublasLtGetStatusName", &c->status_name) &&
           take(handle, "cublasLtMatmul", &c->matmul) &&
           take(handle, "cublasLtMatmulDescCreate", &c->desc_create) &&
           take(handle, "cublasLtMatmulDescDestroy", &c->desc_destroy) &&
           take(handle, "cublasLtMatmulDescSetAttribute", &c->desc_set) &&
           take(handle, "cublasLtMatrixLayoutCreate", &c->layout_create) &&
           take(handle, "cublasLtMatrixLayoutDestroy", &c->layout_destroy) &&
           take(handle, "cublasLtMatmulPreferenceCreate", &c->preference_create) &&
           take(handle, "cublasLtMatmulPreferenceDestroy", &c->preference_destroy) &&
           take(handle, "cublasLtMatmulPreferenceSetAttribute", &c->preference_set) &&
           take(handle, "cublasLtMatmulAlgoGetHeuristic", &c->heuristic) &&
           take(handle, "cublasLtMatmulAlgoCheck", &c->check);
}

/* What was chosen before on this kind of device. Without it choices are made anew. */
static void open_store(struct library *library)
{
    cudaDeviceProp properties;
    char folder[STORE_PATH_BYTES - 300];
    char warning[400];
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, device) != cudaSuccess ||
        !library_store_folder(folder)) {
        return;
    }
    const char *warned = library_store_open(&library->store, folder, properties.name,
                                            library->calls.version(), warning, sizeof warning);
    if (warned != NULL) {
        size_t used = strlen(library->text);
        snprintf(library->text + used, sizeof library->text - used, "; %.200s", warned);
    }
}

/* Opens the library of the toolkit's major version that the module was built with: where the loader
 * looks, else where the toolkit puts it, which loaders are often not told. */
static void open_library(struct library *library)
{
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/",
                                          "/usr/local/cuda/targets/x86_64-linux/lib/"};
    char name[96];
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(name, sizeof name, "%slibcublasLt.so.%d", folders[i], CUBLAS_VER_MAJOR);
        library->handle_dl = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library->handle_dl != NULL) {
            break;
        }
        if (i == 0) { /* the reason of the first is the one that helps */
            snprintf(library->text, sizeof library->text, "%s", dlerror());
        }
    }
    if (library->handle_dl == NULL) {
        return;
    }
    if (!take_all(library->handle_dl, &library->calls)) {
        snprintf(library->text, sizeof library->text, "%s lacks a function", name);
        return;
    }
    cublasStatus_t status = library->calls.create(&library->handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        library->handle = NULL;
        snprintf(library->text, sizeof library->text, "%s: %s", name,
                 library->calls.status_name(status));
        return;
    }
    snprintf(library->text, sizeof library->text, "cuBLASLt %zu", library->calls.version());
    open_store(library);
}

int library_create(struct library **out, struct device_text *why)
{
    struct library *library = (struct library *)calloc(1, sizeof *library);
    if (library == NULL) {
        snprintf(why->text, sizeof why->text, "products: out of host memory");
        return DEVICE_FAULT_MEMORY;
    }
    cudaError_t error = cudaMalloc(&library->workspace, WORKSPACE_BYTES);
    if (error != cudaSuccess) {
        free(library);
        snprintf(why->text, sizeof why->text, "a workspace for products: %s",
                 cudaGetErrorString(error));
        return DEVICE_FAULT_MEMORY;
    }
    open_library(library);
    *out = library;
    return DEVICE_OK;
}

static void drop_plan(const struct library_calls *calls, struct library_plan *plan)
{
    if (plan->weights != NULL) {
        calls->layout_destroy(plan->weights);
    }
    if (plan->activations != NULL) {
        calls->layout_destroy(plan->activations);
    }
    if (plan->out != NULL) {
        calls->layout_destroy(plan->out);
    }
    if (plan->desc != NULL) {
        calls->desc_destroy(plan->desc);
    }
}

void library_destroy(struct library *library)
{
    if (library == NULL) {
        return;
    }
    library_store_save(&library->store); /* or it is chosen again next time */
    for (uint32_t i = 0; i < library->plan_count; i++) {
        drop_plan(&library->calls, &library->plans[i]);
    }
    if (library->handle != NULL) {
        library->calls.destroy(library->handle);
    }
    cudaFree(library->workspace);
    /* The library itself stays: it does not survive being closed and opened again. */
    free(library);
}

/* The descriptor of a shape. OUTER_VEC_32F: a scale per channel of the weights and per row. */
static bool describe(const struct library_calls *calls, struct library_plan *plan,
                     const struct gpu_gemm *g)
{
    cublasOperation_t transposed = CUBLAS_OP_T;
    cudaDataType_t in = plan->type == GPU_E4M3 ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
    cudaDataType_t out = plan->epilogue == NN_STORE ? CUDA_R_32F : CUDA_R_16BF;
    if (calls->desc_create(&plan->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS ||
        calls->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed) !=
            CUBLAS_STATUS_SUCCESS ||
        calls->layout_create(&plan->weights, in, plan->k, plan->n, (int64_t)plan->k) !=
            CUBLAS_STATUS_SUCCESS ||
        calls->layout_create(&plan->activations, in, plan->k, plan->m, (int64_t)plan->lda) !=
            CUBLAS_STATUS_SUCCESS ||
        calls->layout_create(&plan->out, out, plan->n, plan->m, (int64_t)plan->ldc) !=
            CUBLAS_STATUS_SUCCESS) {
        return false;
    }
    if (plan->type != GPU_E4M3) {
        return true;
    }
#if CUBLAS_VERSION < 120900
    return false; /* no scales per row and channel: our kernel computes it */
#else
    /* Sums stay in the tensor core's own format: what it rounds is below what fp8 did. */
    int8_t fast = 1;
    if (calls->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast) !=
        CUBLAS_STATUS_SUCCESS) {
        return false;
    }
    int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    return calls->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &mode, sizeof mode) ==
               CUBLAS_STATUS_SUCCESS &&
           calls->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &mode, sizeof mode) ==
               CUBLAS_STATUS_SUCCESS &&
           calls->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &g->b_scale,
                           sizeof g->b_scale) == CUBLAS_STATUS_SUCCESS &&
           calls->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &g->a_scale,
                           sizeof g->a_scale) == CUBLAS_STATUS_SUCCESS;
#endif
}

/* The library's first choice among algorithms that do not split k. */
static bool choose(struct library *library, struct library_plan *plan)
{
    const struct library_calls *calls = &library->calls;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result = {};
    size_t workspace_bytes = WORKSPACE_BYTES;
    uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
    int count = 0;
    bool good =
        calls->preference_create(&preference) == CUBLAS_STATUS_SUCCESS &&
        calls->preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                              &workspace_bytes, sizeof workspace_bytes) == CUBLAS_STATUS_SUCCESS &&
        calls->preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction,
                              sizeof reduction) == CUBLAS_STATUS_SUCCESS &&
        calls->heuristic(library->handle, plan->desc, plan->weights, plan->activations, plan->out,
                         plan->out, preference, 1, &result, &count) == CUBLAS_STATUS_SUCCESS &&
        count > 0 && result.state == CUBLAS_STATUS_SUCCESS;
    if (preference != NULL) {
        calls->preference_destroy(preference);
    }
    plan->algorithm = result.algo;
    return good;
}

/* The algorithm that was kept for the shape, if the library still takes it; else its choice. */
static bool recall_or_choose(struct library *library, struct library_plan *plan)
{
    const struct library_shape shape = {(uint32_t)plan->type,
                                        (uint32_t)plan->epilogue,
                                        plan->m,
                                        plan->n,
                                        plan->k,
                                        plan->lda,
                                        plan->ldc};
    static_assert(sizeof plan->algorithm == STORE_ALGORITHM_BYTES, "kept as it is");
    cublasLtMatmulHeuristicResult_t result = {};
    if (library_store_find(&library->store, &shape, &plan->algorithm) &&
        library->calls.check(library->handle, plan->desc, plan->weights, plan->activations,
                             plan->out, plan->out, &plan->algorithm,
                             &result) == CUBLAS_STATUS_SUCCESS &&
        result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= WORKSPACE_BYTES) {
        return true;
    }
    if (!choose(library, plan)) {
        return false;
    }
    library_store_put(&library->store, &shape, &plan->algorithm);
    return true;
}

static bool same(const struct library_plan *a, const struct library_plan *b)
{
    return a->type == b->type && a->epilogue == b->epilogue && a->m == b->m && a->n == b->n &&
           a->k == b->k && a->lda == b->lda && a->ldc == b->ldc;
}

/* The plan of a shape, made when it is first seen; NULL when no more can be kept. */
static struct library_plan *plan_of(struct library *library, const struct gpu_gemm *g)
{
    struct library_plan wanted = {};
    wanted.type = g->type;
    wanted.epilogue = g->epilogue;
    wanted.m = g->items * g->rows;
    wanted.n = g->n;
    wanted.k = g->k;
    wanted.lda = g->lda;
    wanted.ldc = g->ldc;
    for (uint32_t i = 0; i < library->plan_count; i++) {
        if (same(&library->plans[i], &wanted)) {
            return &library->plans[i];
        }
    }
    if (library->plan_count == PLANS_MAX) {
        return NULL;
    }
    struct library_plan *plan = &library->plans[library->plan_count++];
    *plan = wanted;
    plan->found = describe(&library->calls, plan, g) && recall_or_choose(library, plan);
    return plan;
}

/* Whether the library could compute this: its items are one matrix, nothing follows the sum. */
static bool suits(const struct library *library, const struct gpu_gemm *g)
{
    bool dense = g->items == 1 || (g->a_item == g->rows * g->lda && g->c_item == g->rows * g->ldc);
    bool plain = g->bias == NULL && g->active == NULL &&
                 (g->epilogue == NN_STORE || g->epilogue == NN_STORE_ACT);
    return library->handle != NULL && dense && plain && g->n % 16 == 0 && g->k % 16 == 0;
}

int library_product(void *context, const struct gpu_gemm *g, void *stream, struct device_text *why)
{
    struct library *library = (struct library *)context;
    struct library_plan *plan = suits(library, g) ? plan_of(library, g) : NULL;
    if (plan == NULL || !plan->found) {
        gpu_gemm_launch(g, stream);
        library->own_count++;
        return DEVICE_OK;
    }
    const float one = 1.0f;
    const float zero = 0.0f;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (g->type == GPU_E4M3) {
        status = library->calls.desc_set(plan->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                                         &g->b_scale, sizeof g->b_scale);
        if (status == CUBLAS_STATUS_SUCCESS) {
            status = library->calls.desc_set(plan->desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                                             &g->a_scale, sizeof g->a_scale);
        }
    }
    void *out = g->epilogue == NN_STORE ? (void *)g->c : g->out;
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = library->calls.matmul(library->handle, plan->desc, &one, g->b, plan->weights, g->a,
                                       plan->activations, &zero, out, plan->out, out, plan->out,
                                       &plan->algorithm, library->workspace, WORKSPACE_BYTES,
                                       (cudaStream_t)stream);
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
        snprintf(why->text, sizeof why->text, "cuBLASLt, product %u x %u x %u: %s", plan->m,
                 plan->n, plan->k, library->calls.status_name(status));
        return DEVICE_FAULT_LOST;
    }
    library->library_count++;
    return DEVICE_OK;
}

#else

struct library {
    uint64_t library_count, own_count;
    char text[256];
};

int library_create(struct library **out, struct device_text *why)
{
    struct library *library = (struct library *)calloc(1, sizeof *library);
    if (library == NULL) {
        snprintf(why->text, sizeof why->text, "products: out of host memory");
        return DEVICE_FAULT_MEMORY;
    }
    snprintf(library->text, sizeof library->text, "built without cuBLASLt");
    *out = library;
    return DEVICE_OK;
}

void library_destroy(struct library *library)
{
    free(library);
}

int library_product(void *context, const struct gpu_gemm *g, void *stream, struct device_text *why)
{
    (void)why;
    gpu_gemm_launch(g, stream);
    ((struct library *)context)->own_count++;
    return DEVICE_OK;
}

#endif

const char *library_describe(const struct library *library)
{
    return library->text;
}

void library_counts(const struct library *library, uint64_t *library_count, uint64_t *own_count)
{
    *library_count = library->library_count;
    *own_count = library->own_count;
}
