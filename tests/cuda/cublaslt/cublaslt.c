/*
 * A made-up libcublasLt that keeps descriptors, judges what it is asked by the rules of the real
 * one's manual (cuBLASLt, "cublasLtMatmul", "Data Type Usage"), and has the test compute the
 * product from the descriptors alone. An algorithm names the product and the alignments it was
 * asked for.
 */
#include "cublasLt.h"
#include "double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAGIC = 0x5357,
    DEFAULT_ALIGNMENT_BYTES = 256, /* of a preference that names none */
    WORKSPACE_BYTES = 1 << 20,     /* of every algorithm */
    FP8_MULTIPLE = 16,             /* of rows, columns, k and addresses */
};

struct cublaslt_context {
    int unused;
};

struct cublaslt_desc {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    cublasOperation_t transposed;
    int8_t fast;
    int32_t mode[2];
    const float *pointer[2];
};

struct cublaslt_layout {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t stride;
};

struct cublaslt_preference {
    uint64_t workspace_bytes;
    uint32_t reduction;
    uint32_t alignment[4]; /* of a, b, c, d */
};

struct cublaslt_double cublaslt_double;

static cublasStatus_t broken(const char *rule)
{
    if (cublaslt_double.fault[0] == '\0') {
        snprintf(cublaslt_double.fault, sizeof cublaslt_double.fault, "%s", rule);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t make(void **out, size_t bytes)
{
    if (cublaslt_double.prepared) {
        return broken("something is made where products alone may run");
    }
    *out = calloc(1, bytes);
    cublaslt_double.living++;
    return *out != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

static cublasStatus_t drop(void *thing)
{
    if (thing == NULL) {
        return broken("nothing is destroyed");
    }
    free(thing);
    cublaslt_double.living--;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    if (cublaslt_double.create_status != CUBLAS_STATUS_SUCCESS) {
        return (cublasStatus_t)cublaslt_double.create_status;
    }
    return make((void **)handle, sizeof **handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return drop(handle);
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
        return "CUBLAS_STATUS_OTHER";
    }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    cublasStatus_t status = make((void **)desc, sizeof **desc);
    if (status == CUBLAS_STATUS_SUCCESS) {
        (*desc)->compute = compute;
        (*desc)->scale = scale;
    }
    return status;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return drop(desc);
}

static cublasStatus_t set(void *out, size_t out_bytes, const void *value, size_t bytes)
{
    if (bytes != out_bytes) {
        return broken("an attribute has another size");
    }
    memcpy(out, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes)
{
    bool pointer = name == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER ||
                   name == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER;
    if (cublaslt_double.prepared && !pointer) {
        return broken("a descriptor changes where products alone may run");
    }
    switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&desc->transposed, sizeof desc->transposed, value, bytes);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
        return set(&desc->fast, sizeof desc->fast, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
        return set(&desc->mode[0], sizeof desc->mode[0], value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
        return set(&desc->mode[1], sizeof desc->mode[1], value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        return set(&desc->pointer[0], sizeof desc->pointer[0], value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        return set(&desc->pointer[1], sizeof desc->pointer[1], value, bytes);
    }
    return broken("an attribute of a product that is not known");
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t stride)
{
    cublasStatus_t status = make((void **)layout, sizeof **layout);
    if (status == CUBLAS_STATUS_SUCCESS) {
        **layout = (struct cublaslt_layout){type, rows, columns, stride};
    }
    return status;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return drop(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    cublasStatus_t status = make((void **)preference, sizeof **preference);
    if (status == CUBLAS_STATUS_SUCCESS) {
        (*preference)->reduction = UINT32_MAX;
        for (int i = 0; i < 4; i++) {
            (*preference)->alignment[i] = DEFAULT_ALIGNMENT_BYTES;
        }
    }
    return status;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return drop(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t bytes)
{
    switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&preference->workspace_bytes, sizeof preference->workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(&preference->reduction, sizeof preference->reduction, value, bytes);
    default:
        return set(&preference->alignment[name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                   sizeof preference->alignment[0], value, bytes);
    }
}

static uint32_t number_bytes(cudaDataType_t type)
{
    return type == CUDA_R_32F ? 4 : type == CUDA_R_16BF ? 2 : 1;
}

/* The rules for a product of e4m3 with a scale a row and a column. */
static const char *rule_of_scales(const struct cublaslt_desc *desc, const struct cublaslt_layout *d)
{
    for (int i = 0; i < 2; i++) {
        if (desc->mode[i] != CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F) {
            return "e4m3 without a scale for each row and column";
        }
        if (desc->pointer[i] == NULL) {
            return "a scale is nowhere";
        }
    }
    return desc->fast != 1               ? "e4m3 without fast sums"
           : d->rows % FP8_MULTIPLE != 0 ? "rows of e4m3 that are no multiple of 16"
                                         : NULL;
}

/* NULL, or which rule the descriptors of a product break. */
static const char *rule_broken(const struct cublaslt_desc *desc, const struct cublaslt_layout *a,
                               const struct cublaslt_layout *b, const struct cublaslt_layout *c,
                               const struct cublaslt_layout *d)
{
    const struct cublaslt_layout *all[] = {a, b, d};
    if (desc->compute != CUBLAS_COMPUTE_32F || desc->scale != CUDA_R_32F) {
        return "sums are not of single precision";
    }
    if (desc->transposed != CUBLAS_OP_T) {
        return "weights are not transposed";
    }
    if (a->rows != b->rows || a->columns != d->rows || b->columns != d->columns || c != d) {
        return "matrices do not fit";
    }
    if (a->type != b->type || a->type == CUDA_R_32F) {
        return "operands are of two types";
    }
    for (int i = 0; i < 3; i++) {
        if (all[i]->stride < (int64_t)all[i]->rows) {
            return "columns overlap";
        }
        if (all[i]->stride * number_bytes(all[i]->type) % FP8_MULTIPLE != 0) {
            return "columns do not start at multiples of 16 bytes";
        }
    }
    if (a->type == CUDA_R_8F_E4M3) {
        return a->rows % FP8_MULTIPLE != 0 ? "k of e4m3 is no multiple of 16"
                                           : rule_of_scales(desc, d);
    }
    return desc->pointer[0] != NULL || desc->mode[0] != 0 ? "bf16 with scales" : NULL;
}

/* An algorithm's numbers: of which product it is, and how its addresses have to be aligned. */
static cublasLtMatmulAlgo_t algorithm_of(const struct cublaslt_layout *a,
                                         const struct cublaslt_layout *b,
                                         const struct cublaslt_layout *d, uint32_t index,
                                         const uint32_t alignment[4])
{
    cublasLtMatmulAlgo_t algorithm = {{MAGIC, index, (uint64_t)a->type << 32 | (uint64_t)d->type,
                                       d->rows, d->columns, a->rows,
                                       (uint64_t)b->stride << 32 | (uint64_t)d->stride, 0}};
    for (int i = 0; i < 4; i++) {
        algorithm.data[7] |= (uint64_t)alignment[i] << (16 * i);
    }
    return algorithm;
}

static bool algorithm_fits(const cublasLtMatmulAlgo_t *algorithm, const struct cublaslt_layout *a,
                           const struct cublaslt_layout *b, const struct cublaslt_layout *d)
{
    const uint32_t none[4] = {0};
    cublasLtMatmulAlgo_t own = algorithm_of(a, b, d, (uint32_t)algorithm->data[1], none);
    return algorithm->data[1] < cublaslt_double.algorithms &&
           memcmp(own.data, algorithm->data, 7 * sizeof own.data[0]) == 0;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    const char *rule =
        handle == NULL             ? "no handle"
        : cublaslt_double.prepared ? "algorithms are asked for too late"
        : preference->reduction != CUBLASLT_REDUCTION_SCHEME_NONE ? "sums over k may be split"
        : preference->workspace_bytes < WORKSPACE_BYTES           ? "there is no room to work in"
                                                                  : rule_broken(desc, a, b, c, d);
    *found = 0;
    if (rule != NULL) {
        return broken(rule);
    }
    for (uint32_t i = 0; i < cublaslt_double.algorithms && *found < wanted; i++) {
        results[*found] = (cublasLtMatmulHeuristicResult_t){
            .algo = algorithm_of(a, b, d, i, preference->alignment),
            .workspaceSize = WORKSPACE_BYTES,
            .state =
                i < cublaslt_double.refused ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS};
        ++*found;
    }
    return *found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    const char *rule = handle == NULL ? "no handle" : rule_broken(desc, a, b, c, d);
    if (rule != NULL) {
        return broken(rule);
    }
    *result = (cublasLtMatmulHeuristicResult_t){
        .algo = *algorithm, .workspaceSize = WORKSPACE_BYTES, .state = CUBLAS_STATUS_SUCCESS};
    return algorithm_fits(algorithm, a, b, d) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static bool aligned(const void *address, uint64_t bytes)
{
    return bytes == 0 || (uintptr_t)address % bytes == 0;
}

/* NULL, or which rule the addresses of a product break. */
static const char *address_broken(const cublasLtMatmulAlgo_t *algorithm, const void *const all[4],
                                  const void *workspace, size_t workspace_bytes)
{
    for (int i = 0; i < 4; i++) {
        if (all[i] == NULL) {
            return "a matrix is nowhere";
        }
        if (!aligned(all[i], algorithm->data[7] >> (16 * i) & 0xffff)) {
            return "an address is not aligned as the algorithm was asked for";
        }
    }
    return workspace == NULL || workspace_bytes < WORKSPACE_BYTES ? "there is no room to work in"
           : !aligned(workspace, DEFAULT_ALIGNMENT_BYTES)         ? "the workspace is not aligned"
                                                                  : NULL;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a_data, cublasLtMatrixLayout_t a, const void *b_data,
                              cublasLtMatrixLayout_t b, const void *beta, const void *c_data,
                              cublasLtMatrixLayout_t c, void *d_data, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    const void *all[4] = {a_data, b_data, c_data, d_data};
    const char *rule = handle == NULL ? "no handle" : rule_broken(desc, a, b, c, d);
    if (rule == NULL && (*(const float *)alpha != 1.0f || *(const float *)beta != 0.0f)) {
        rule = "the product is scaled, or added to what was there";
    }
    if (rule == NULL && (!algorithm_fits(algorithm, a, b, d) || c_data != d_data)) {
        rule = "the algorithm is of another product";
    }
    rule = rule != NULL ? rule : address_broken(algorithm, all, workspace, workspace_bytes);
    if (rule != NULL) {
        return broken(rule);
    }
    if (cublaslt_double.matmul_status != CUBLAS_STATUS_SUCCESS) {
        return (cublasStatus_t)cublaslt_double.matmul_status;
    }
    const struct cublaslt_product product = {.e4m3 = a->type == CUDA_R_8F_E4M3,
                                             .out_bf16 = d->type == CUDA_R_16BF,
                                             .rows = (uint32_t)d->rows,
                                             .columns = (uint32_t)d->columns,
                                             .k = (uint32_t)a->rows,
                                             .b_stride = (uint32_t)b->stride,
                                             .d_stride = (uint32_t)d->stride,
                                             .a = a_data,
                                             .b = b_data,
                                             .d = d_data,
                                             .a_scale = desc->pointer[0],
                                             .b_scale = desc->pointer[1],
                                             .stream = stream};
    cublaslt_double.matmuls++;
    cublaslt_double.compute(&product);
    return CUBLAS_STATUS_SUCCESS;
}
