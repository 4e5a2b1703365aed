/*
 * Products of full-scale models, each on what was fastest when it was timed: our kernel, the
 * vendor's library (library_vendor.h) with one of its first algorithms, or, for fp8 that the
 * library has no algorithm for, the library in bf16 on expanded operands: weights once, activations
 * in every call.
 *
 * A shape is timed once, when it is prepared, and its choice kept in a file (library_store.h), so
 * that every process of a user on the same GPU and library has the same. The three differ in bits;
 * the bits of a choice are a function of the product alone.
 */
#ifndef SWERVE_KERNELS_CUDA_SCALE_LIBRARY_H
#define SWERVE_KERNELS_CUDA_SCALE_LIBRARY_H

#include "kernels/cuda/scale/library_vendor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct library;

/* How many products ran, by what they ran on. */
struct library_counts {
    uint64_t way[LIBRARY_WAYS];
};

/* What a test puts in place of the machine's. */
struct library_parts {
    const struct library_vendor *vendor; /* copied; closed by library_destroy */
    const char *folder;                  /* of the file; NULL: nothing is kept */
    uint64_t memory_bytes;               /* for expanded operands at most */
    /* What a candidate took, beside what a clock said; NULL: that. */
    double (*measured)(void *context, const struct gpu_gemm *g, const struct library_choice *choice,
                       double ms);
    void *context;
};

/* Works where there is no vendor's library too: then every product runs on gpu_gemm_launch. For the
 * products of one stream on the present device: they share a workspace. */
int library_create(struct library **out, struct device_text *why);
int library_create_with(const struct library_parts *parts, struct library **out,
                        struct device_text *why);
void library_destroy(struct library *library); /* accepts NULL; waits for nothing */

/* A sentence: the library's version, or why there is none. */
const char *library_describe(const struct library *library);

/* Chooses for each of these products, timing what no file knows; their outputs are overwritten. All
 * that a session will run at once: expanded weights of a shape are there for all of its products or
 * for none. Weights of prepared products stay where and what they are until library_destroy. */
int library_prepare(struct library *library, const struct gpu_gemm *const *products, uint32_t count,
                    void *stream, struct device_text *why);

/* What was chosen so far, and to go by the choices of another library on the same kind of device,
 * which this one neither times again nor keeps. */
const struct library_store *library_choices(const struct library *library);
void library_adopt(struct library *library, const struct library_store *choices);

/* A product with epilogue NN_STORE or NN_STORE_ACT, no bias, of one item or of items that lie one
 * after the other; others run on gpu_gemm_launch. `library` is a struct library, for struct
 * scale_options (scale.h). One that was not prepared is, so not in a capture. */
int library_product(void *library, const struct gpu_gemm *g, void *stream, struct device_text *why);

void library_count(const struct library *library, struct library_counts *out);

#ifdef __cplusplus
}
#endif

#endif
