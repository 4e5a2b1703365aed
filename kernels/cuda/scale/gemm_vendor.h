/*
 * The vendor's library of products, as what gemm_tuner.cu asks of it: a table of functions, so that
 * the choice between it and our kernels can be tested where there is no such library. The real one
 * is cuBLASLt, opened with dlopen when the first session wants it, so that neither the program nor
 * the module needs it to start.
 *
 * A product is described by a struct gpu_gemm of one item, without bias, with NN_STORE or
 * NN_STORE_ACT, n and k multiples of 16, and matrices at multiples of
 * GEMM_VENDOR_ALIGNMENT_BYTES. Its pointers count where it runs and not in a choice.
 */
#ifndef SWERVE_KERNELS_CUDA_SCALE_GEMM_VENDOR_H
#define SWERVE_KERNELS_CUDA_SCALE_GEMM_VENDOR_H

#include "kernels/cuda/common/matrix.h"
#include "kernels/cuda/scale/gemm_tuner_store.h"
#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GEMM_TUNER_WORKSPACE_BYTES = 32 << 20,
    GEMM_TUNER_SHAPES_MAX = 64, /* of one session */
    GEMM_VENDOR_ALIGNMENT_BYTES = 16,
};

struct gemm_vendor {
    void *context; /* NULL: there is none, and only `text` counts */
    uint64_t version;
    char text[256]; /* a sentence: its version, or why there is none */
    /* Algorithms for the product, its own first choice first: how many, at most `most`, 0: none.
     * None splits k, needs more workspace or gives different bits from run to run. */
    uint32_t (*algorithms)(void *context, const struct gpu_gemm *g,
                           uint8_t (*out)[STORE_ALGORITHM_BYTES], uint32_t most);
    /* Whether it runs the product with this one, which may come from a file. */
    bool (*takes)(void *context, const struct gpu_gemm *g, const uint8_t *algorithm);
    /* Queues the product; 0 or a device_fault. */
    int (*multiply)(void *context, const struct gpu_gemm *g, const uint8_t *algorithm,
                    void *workspace, void *stream, struct device_text *why);
    void (*close)(void *context);
};

/* Key of a choice. */
struct gemm_tuner_shape gemm_tuner_shape_of(const struct gpu_gemm *g);

/* The real one, or out->text says why not. What was opened stays loaded when it is closed: the
 * library does not survive being closed and opened again. */
void gemm_vendor_open(struct gemm_vendor *out);

#ifdef __cplusplus
}
#endif

#endif
