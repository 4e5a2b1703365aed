/*
 * Products of served models, each on what was fastest when it was timed: our kernel in one of its
 * tiles, or the vendor's library (gemm_vendor.h) with one of its first algorithms.
 *
 * A model's products are timed once, when somebody asks for it, and the choices kept in a file
 * (gemm_tuner_store.h), by which every later session on such a device goes. Where nothing is kept a
 * product runs on our kernel as it chooses itself. All tiles of ours have the same bits. An
 * algorithm has its own, so its choice is part of the device's backend (gemm_tuner_digest). It
 * multiplies item by item: bits of an item depend on no other, nor on how many there are. What
 * follows a sum (bias, activation, gate, inactive items) is a launch of ours behind it.
 */
#ifndef SWERVE_KERNELS_CUDA_SCALE_GEMM_TUNER_H
#define SWERVE_KERNELS_CUDA_SCALE_GEMM_TUNER_H

#include "kernels/cuda/scale/gemm_vendor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gemm_tuner;

/* Products that ran so far, and the time of those that were timed: on our kernel as it chooses
 * itself, and as chosen. */
struct gemm_tuner_counts {
    uint64_t way[GEMM_TUNER_WAYS]; /* products */
    double own_ms, chosen_ms;
};

struct gemm_tuner_parts {
    const struct gemm_vendor *vendor; /* copied; closed by gemm_tuner_destroy; NULL: the machine's,
                                       * opened where it is needed */
    const char *folder;               /* of the file; NULL: nothing is known or kept */
    bool timing; /* times what is not known, with other operands in place of g->a and a_scale; else
                  * that runs on our kernel */
    bool own;    /* passes over choices of the library */
    /* Time of a candidate, beside what a clock said; NULL: that. */
    double (*measured)(void *context, const struct gpu_gemm *g,
                       const struct gemm_tuner_choice *choice, double ms);
    void *context;
};

/* For the products of one stream on the present device: they share a workspace. A fault where
 * choices are kept that the library here is not of. */
int gemm_tuner_create(const struct gemm_tuner_parts *parts, struct gemm_tuner **out,
                      struct device_text *why);
void gemm_tuner_destroy(struct gemm_tuner *gemm_tuner); /* accepts NULL; waits for nothing */

/* A sentence: the library's version, or why there is none. */
const char *gemm_tuner_describe(const struct gemm_tuner *gemm_tuner);
const struct gemm_tuner_store *gemm_tuner_choices(const struct gemm_tuner *gemm_tuner);

/* Writes the file; false: nothing can be written there. */
bool gemm_tuner_keep(struct gemm_tuner *gemm_tuner);

/* Queues a product, and adds to *launches how many kernels that were. The first one of a shape may
 * wait and take memory, so not in a capture. DEVICE_FAULT_INPUT: the choice cannot be run. */
int gemm_tuner_matmul(struct gemm_tuner *gemm_tuner, const struct gpu_gemm *g, uint32_t *launches,
                      void *stream, struct device_text *why);

/* Operations per second of one large product of the type, GPU_BF16 or GPU_E4M3, on what is fastest
 * on the present device; `wgmma` as in struct gpu_gemm. It is measured once: parts->folder keeps
 * it, and no library is opened where it stands there. Of several that measure at once the largest
 * is kept. 0: not known, since there was no memory for it or, as under the emulator without
 * parts->measured, no clock. On the default stream. */
double gemm_tuner_peak(const struct gemm_tuner_parts *parts, enum gpu_type type, uint32_t wgmma);

/* Digest that the backend of the present device ends in (gemm_tuner_store_digest); "" also
 * where what is kept cannot be run here: then `why` says so, else it is "". */
void gemm_tuner_digest(const struct gemm_tuner_parts *parts, char out[STORE_DIGEST_BYTES],
                       struct device_text *why);

void gemm_tuner_count(const struct gemm_tuner *gemm_tuner, struct gemm_tuner_counts *out);

/* End of a product of one item (gemm_finish.cu): sums[rows][n] are what g's epilogue follows. */
void gpu_gemm_finish_launch(const struct gpu_gemm *g, const float *sums, void *stream);

#ifdef __cplusplus
}
#endif

#endif
