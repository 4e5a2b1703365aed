/*
 * cuBLASLt by dlopen. See gemm_vendor.h. Row-major [m][k] times [n][k] transposed is, to a
 * library that counts columns first, the n x m product of weights^T and activations.
 */
#include "kernels/cuda/common/gpu.h"

#include "kernels/cuda/scale/gemm_vendor.h"

#include <stdio.h>
#include <stdlib.h>

#if (!GPU_EMULATED || defined(GEMM_VENDOR_DOUBLE)) && __has_include(<cublasLt.h>)
#define HAVE_LIBRARY 1
#include <cublasLt.h>
#include <dlfcn.h>
#else
#define HAVE_LIBRARY 0
#endif

extern "C" struct gemm_tuner_shape gemm_tuner_shape_of(const struct gpu_gemm *g)
{
    struct gemm_tuner_shape shape = {};
    shape.type = (uint32_t)g->type;
    shape.epilogue = (uint32_t)g->epilogue;
    shape.m = g->rows;
    shape.n = g->n;
    shape.k = g->k;
    shape.lda = g->lda;
    shape.ldc = g->ldc;
    return shape;
}

#if HAVE_LIBRARY

enum { DESCRIBED_MAX = 2 * GEMM_TUNER_SHAPES_MAX, ASKED_MAX = 16 };

/* Functions of the library that the module calls. */
struct gemm_tuner_calls {
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

/* Descriptors that the library has for products of a shape. */
struct described {
    struct gemm_tuner_shape shape;
    bool good;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t weights, activations, out;
};

struct cublas {
    void *handle_dl;
    struct gemm_tuner_calls calls;
    cublasLtHandle_t handle;
    struct described described[DESCRIBED_MAX];
    uint32_t described_count;
};

template <class T> static bool take(void *handle, const char *name, T *out)
{
    *out = reinterpret_cast<T>(dlsym(handle, name));
    return *out != NULL;
}

static bool take_all(void *handle, struct gemm_tuner_calls *c)
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

/* The descriptor of a shape. OUTER_VEC_32F: a scale per channel of the weights and per row. */
static bool describe(const struct gemm_tuner_calls *calls, struct described *d,
                     const struct gpu_gemm *g)
{
    cublasOperation_t transposed = CUBLAS_OP_T;
    cudaDataType_t in = d->shape.type == GPU_E4M3 ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
    cudaDataType_t out = d->shape.epilogue == NN_STORE ? CUDA_R_32F : CUDA_R_16BF;
    if (calls->desc_create(&d->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS ||
        calls->desc_set(d->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed) !=
            CUBLAS_STATUS_SUCCESS ||
        calls->layout_create(&d->weights, in, d->shape.k, d->shape.n, (int64_t)d->shape.k) !=
            CUBLAS_STATUS_SUCCESS ||
        calls->layout_create(&d->activations, in, d->shape.k, d->shape.m, (int64_t)d->shape.lda) !=
            CUBLAS_STATUS_SUCCESS ||
        calls->layout_create(&d->out, out, d->shape.n, d->shape.m, (int64_t)d->shape.ldc) !=
            CUBLAS_STATUS_SUCCESS) {
        return false;
    }
    if (d->shape.type != GPU_E4M3) {
        return true;
    }
#if CUBLAS_VERSION < 120900
    return false; /* no scales per row and channel: our kernel computes it */
#else
    /* Sums stay in the tensor core's own format: what it rounds is below what fp8 did. */
    int8_t fast = 1;
    if (calls->desc_set(d->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast) !=
        CUBLAS_STATUS_SUCCESS) {
        return false;
    }
    int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    return calls->desc_set(d->desc, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &mode, sizeof mode) ==
               CUBLAS_STATUS_SUCCESS &&
           calls->desc_set(d->desc, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &mode, sizeof mode) ==
               CUBLAS_STATUS_SUCCESS &&
           calls->desc_set(d->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &g->b_scale,
                           sizeof g->b_scale) == CUBLAS_STATUS_SUCCESS &&
           calls->desc_set(d->desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &g->a_scale,
                           sizeof g->a_scale) == CUBLAS_STATUS_SUCCESS;
#endif
}

/* The description of a shape, made when it is first seen; NULL: the library has none. */
static struct described *describe_once(struct cublas *c, const struct gpu_gemm *g)
{
    const struct gemm_tuner_shape shape = gemm_tuner_shape_of(g);
    for (uint32_t i = 0; i < c->described_count; i++) {
        if (gemm_tuner_shape_same(&c->described[i].shape, &shape)) {
            return c->described[i].good ? &c->described[i] : NULL;
        }
    }
    if (c->described_count == DESCRIBED_MAX) {
        return NULL;
    }
    struct described *d = &c->described[c->described_count++];
    d->shape = shape;
    d->good = describe(&c->calls, d, g);
    return d->good ? d : NULL;
}

/* Preferences of algorithms. The library counts on matrices at multiples of 256 where none is set.
 */
static bool prefer(const struct gemm_tuner_calls *calls, cublasLtMatmulPreference_t preference)
{
    const size_t workspace_bytes = GEMM_TUNER_WORKSPACE_BYTES;
    const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE; /* no split of k */
    const uint32_t alignment = GEMM_VENDOR_ALIGNMENT_BYTES;
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    bool good =
        calls->preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                              &workspace_bytes, sizeof workspace_bytes) == CUBLAS_STATUS_SUCCESS &&
        calls->preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction,
                              sizeof reduction) == CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0; good && i < sizeof aligned / sizeof aligned[0]; i++) {
        good = calls->preference_set(preference, aligned[i], &alignment, sizeof alignment) ==
               CUBLAS_STATUS_SUCCESS;
    }
    return good;
}

static uint32_t cublas_algorithms(void *context, const struct gpu_gemm *g,
                                  uint8_t (*out)[STORE_ALGORITHM_BYTES], uint32_t most)
{
    struct cublas *c = (struct cublas *)context;
    const struct gemm_tuner_calls *calls = &c->calls;
    const struct described *d = describe_once(c, g);
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t results[ASKED_MAX] = {};
    static_assert(sizeof results[0].algo == STORE_ALGORITHM_BYTES, "kept as it is");
    int wanted = (int)most < ASKED_MAX ? (int)most : (int)ASKED_MAX;
    int found = 0;
    uint32_t count = 0;
    bool good = d != NULL && calls->preference_create(&preference) == CUBLAS_STATUS_SUCCESS &&
                prefer(calls, preference) &&
                calls->heuristic(c->handle, d->desc, d->weights, d->activations, d->out, d->out,
                                 preference, wanted, results, &found) == CUBLAS_STATUS_SUCCESS;
    if (preference != NULL) {
        calls->preference_destroy(preference);
    }
    for (int i = 0; good && i < found; i++) {
        if (results[i].state == CUBLAS_STATUS_SUCCESS) {
            memcpy(out[count++], &results[i].algo, STORE_ALGORITHM_BYTES);
        }
    }
    return count;
}

static bool cublas_takes(void *context, const struct gpu_gemm *g, const uint8_t *algorithm)
{
    struct cublas *c = (struct cublas *)context;
    const struct described *d = describe_once(c, g);
    cublasLtMatmulHeuristicResult_t result = {};
    cublasLtMatmulAlgo_t algo;
    memcpy(&algo, algorithm, sizeof algo);
    return d != NULL &&
           c->calls.check(c->handle, d->desc, d->weights, d->activations, d->out, d->out, &algo,
                          &result) == CUBLAS_STATUS_SUCCESS &&
           result.state == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= GEMM_TUNER_WORKSPACE_BYTES;
}

static int cublas_multiply(void *context, const struct gpu_gemm *g, const uint8_t *algorithm,
                           void *workspace, void *stream, struct device_text *why)
{
    struct cublas *c = (struct cublas *)context;
    const struct described *d = describe_once(c, g);
    const float one = 1.0f;
    const float zero = 0.0f;
    cublasLtMatmulAlgo_t algo;
    cublasStatus_t status = d != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    memcpy(&algo, algorithm, sizeof algo);
    if (d != NULL && g->type == GPU_E4M3) {
        status = c->calls.desc_set(d->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &g->b_scale,
                                   sizeof g->b_scale);
        if (status == CUBLAS_STATUS_SUCCESS) {
            status = c->calls.desc_set(d->desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &g->a_scale,
                                       sizeof g->a_scale);
        }
    }
    void *out = g->epilogue == NN_STORE ? (void *)g->c : g->out;
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = c->calls.matmul(c->handle, d->desc, &one, g->b, d->weights, g->a, d->activations,
                                 &zero, out, d->out, out, d->out, &algo, workspace,
                                 GEMM_TUNER_WORKSPACE_BYTES, (cudaStream_t)stream);
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
        snprintf(why->text, sizeof why->text, "cuBLASLt, product %u x %u x %u: %s", g->rows, g->n,
                 g->k, c->calls.status_name(status));
        return DEVICE_FAULT_LOST;
    }
    return DEVICE_OK;
}

static void cublas_close(void *context)
{
    struct cublas *c = (struct cublas *)context;
    for (uint32_t i = 0; i < c->described_count; i++) {
        const struct described *d = &c->described[i];
        if (d->weights != NULL) {
            c->calls.layout_destroy(d->weights);
        }
        if (d->activations != NULL) {
            c->calls.layout_destroy(d->activations);
        }
        if (d->out != NULL) {
            c->calls.layout_destroy(d->out);
        }
        if (d->desc != NULL) {
            c->calls.desc_destroy(d->desc);
        }
    }
    if (c->handle != NULL) {
        c->calls.destroy(c->handle);
    }
    free(c);
}

/* Opens the library of the toolkit's major version that the module was built with: where the loader
 * looks, else where the toolkit puts it, which loaders are often not told. */
static bool open_gemm_tuner(struct cublas *c, char *text, size_t text_bytes)
{
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/",
                                          "/usr/local/cuda/targets/x86_64-linux/lib/"};
    char name[96];
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(name, sizeof name, "%slibcublasLt.so.%d", folders[i], CUBLAS_VER_MAJOR);
        c->handle_dl = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (c->handle_dl != NULL) {
            break;
        }
        if (i == 0) { /* the reason of the first is the one that helps */
            snprintf(text, text_bytes, "%s", dlerror());
        }
    }
    if (c->handle_dl == NULL) {
        return false;
    }
    if (!take_all(c->handle_dl, &c->calls)) {
        snprintf(text, text_bytes, "%s lacks a function", name);
        return false;
    }
    cublasStatus_t status = c->calls.create(&c->handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        c->handle = NULL;
        snprintf(text, text_bytes, "%s: %s", name, c->calls.status_name(status));
        return false;
    }
    snprintf(text, text_bytes, "cuBLASLt %zu", c->calls.version());
    return true;
}

extern "C" void gemm_vendor_open(struct gemm_vendor *out)
{
    *out = {};
    struct cublas *c = (struct cublas *)calloc(1, sizeof *c);
    if (c == NULL) {
        snprintf(out->text, sizeof out->text, "cuBLASLt: out of host memory");
        return;
    }
    if (!open_gemm_tuner(c, out->text, sizeof out->text)) {
        cublas_close(c);
        return;
    }
    out->context = c;
    out->version = c->calls.version();
    out->algorithms = cublas_algorithms;
    out->takes = cublas_takes;
    out->multiply = cublas_multiply;
    out->close = cublas_close;
}

#else

extern "C" void gemm_vendor_open(struct gemm_vendor *out)
{
    *out = {};
    snprintf(out->text, sizeof out->text, "built without cuBLASLt");
}

#endif
