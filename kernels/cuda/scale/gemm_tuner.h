/*
 * Products of full-scale models, each on what was fastest when it was timed: our kernel, the
 * vendor's library (gemm_vendor.h) with one of its first algorithms, or, for fp8 that the
 * library has no algorithm for, the library in bf16 on expanded operands: weights once, activations
 * in every call.
 *
 * A shape is timed once, when it is prepared, and its choice kept in a file (gemm_tuner_store.h),
 * so that every process of a user on the same GPU and library has the same. The three differ in
 * bits; the bits of a choice are a function of the product alone.
 */
#ifndef SWERVE_KERNELS_CUDA_SCALE_GEMM_TUNER_H
#define SWERVE_KERNELS_CUDA_SCALE_GEMM_TUNER_H

#include "kernels/cuda/scale/gemm_vendor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gemm_tuner;

/* Number of products that ran, by what they ran on. */
struct gemm_tuner_counts {
    uint64_t way[GEMM_TUNER_WAYS];
};

/* Functions that a test puts in place of the machine's. */
struct gemm_tuner_parts {
    const struct gemm_vendor *vendor; /* copied; closed by gemm_tuner_destroy */
    const char *folder;               /* of the file; NULL: nothing is kept */
    uint64_t memory_bytes;            /* for expanded operands at most */
    /* Time of a candidate, beside what a clock said; NULL: that. */
    double (*measured)(void *context, const struct gpu_gemm *g,
                       const struct gemm_tuner_choice *choice, double ms);
    void *context;
};

/* Works where there is no vendor's library too: then every product runs on gpu_gemm_launch. For the
 * products of one stream on the present device: they share a workspace. */
int gemm_tuner_create(struct gemm_tuner **out, struct device_text *why);
int gemm_tuner_create_with(const struct gemm_tuner_parts *parts, struct gemm_tuner **out,
                           struct device_text *why);
void gemm_tuner_destroy(struct gemm_tuner *gemm_tuner); /* accepts NULL; waits for nothing */

/* A sentence: the library's version, or why there is none. */
const char *gemm_tuner_describe(const struct gemm_tuner *gemm_tuner);

/* Chooses for each of these products, timing what no file knows; their outputs are overwritten. All
 * that a session will run at once: expanded weights of a shape are there for all of its products or
 * for none. Weights of prepared products stay where and what they are until gemm_tuner_destroy. */
int gemm_tuner_prepare(struct gemm_tuner *gemm_tuner, const struct gpu_gemm *const *matmuls,
                       uint32_t count, void *stream, struct device_text *why);

/* Choices made so far, and a way to go by the choices of another library on the same kind of
 * device, which this one neither times again nor keeps. */
const struct gemm_tuner_store *gemm_tuner_choices(const struct gemm_tuner *gemm_tuner);
void gemm_tuner_adopt(struct gemm_tuner *gemm_tuner, const struct gemm_tuner_store *choices);

/* A product with epilogue NN_STORE or NN_STORE_ACT, no bias, of one item or of items that lie one
 * after the other; others run on gpu_gemm_launch. `library` is a struct library, for struct
 * scale_options (scale.h). One that was not prepared is, so not in a capture. */
int gemm_tuner_matmul(void *gemm_tuner, const struct gpu_gemm *g, void *stream,
                      struct device_text *why);

/* Operations per second of one large product of the type, GPU_BF16 or GPU_E4M3: of the choice on
 * it, or of what was fastest where `choice` is NULL; `wgmma` as in struct gpu_gemm. 0: the clock
 * stands still. */
int gemm_tuner_rate(struct gemm_tuner *gemm_tuner, enum gpu_type type,
                    const struct gemm_tuner_choice *choice, uint32_t wgmma, void *stream,
                    double *out, struct device_text *why);

/* The same of what is fastest on the present device, which is measured once: parts->folder keeps it
 * in the device's own file, and no library is opened where it stands there. parts->vendor NULL: the
 * machine's, where it must be measured. Of several that measure at once the largest is kept. 0: not
 * known, since there was no memory for it or, as under the emulator without parts->measured, no
 * clock. On the default stream. */
double gemm_tuner_peak(const struct gemm_tuner_parts *parts, enum gpu_type type, uint32_t wgmma);

void gemm_tuner_count(const struct gemm_tuner *gemm_tuner, struct gemm_tuner_counts *out);

#ifdef __cplusplus
}
#endif

#endif
