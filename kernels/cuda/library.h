/*
 * Products through the vendor's library, cuBLASLt. The library is opened with dlopen when the first
 * session wants it, so that neither the program nor the module needs it to start.
 *
 * For every shape an algorithm is chosen once, without a split of k, and kept, in a file too
 * (library_store.h), so that every process of a user on the same GPU and library has the same; the
 * choice is asked of the library with a fixed workspace and no other condition. A product that the
 * library has no algorithm for runs on gpu_gemm_launch, from the first time on. Results of the two
 * differ in bits.
 */
#ifndef SWERVE_KERNELS_CUDA_LIBRARY_H
#define SWERVE_KERNELS_CUDA_LIBRARY_H

#include "kernels/cuda/matrix.h"
#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct library;

/* Works where there is no such library too: then every product runs on gpu_gemm_launch. For the
 * products of one stream: they share a workspace. */
int library_create(struct library **out, struct device_text *why);
void library_destroy(struct library *library); /* accepts NULL */

/* A sentence: the library's version, or why there is none. */
const char *library_describe(const struct library *library);

/* A product with epilogue NN_STORE or NN_STORE_ACT, no bias, of one item or of items that lie one
 * after the other; others run on gpu_gemm_launch. `library` is a struct library, for struct
 * scale_options (scale.h). Every shape must be run once before a capture. */
int library_product(void *library, const struct gpu_gemm *g, void *stream, struct device_text *why);

/* How many products ran on the library and on gpu_gemm_launch so far. */
void library_counts(const struct library *library, uint64_t *library_count, uint64_t *own_count);

#ifdef __cplusplus
}
#endif

#endif
