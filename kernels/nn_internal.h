/*
 * Parts that all variants of the network kernels share: the fill function of each instruction set
 * and the numbers of the common formulas. A variant gives the bits of the plain C one only because
 * every operation, its order and its constants are the same; kernels/ref/nn_scalar.h spells them
 * out.
 */
#ifndef SWERVE_KERNELS_NN_INTERNAL_H
#define SWERVE_KERNELS_NN_INTERNAL_H

#include "kernels/nn.h"

#include <stdbool.h>

/* Each overwrites the members that it has; the plain C one fills all. */
void nn_table_ref(struct nn_kernels *kernels, enum nn_precision precision);
void nn_table_avx2(struct nn_kernels *kernels, enum nn_precision precision);
void nn_table_avx512(struct nn_kernels *kernels, enum nn_precision precision);
void nn_table_avx512bf16(struct nn_kernels *kernels, enum nn_precision precision);
void nn_table_amx(struct nn_kernels *kernels, enum nn_precision precision);

/* The same for what NN_INT8 has beside the table of NN_BF16. */
void nn_table_int8_ref(struct nn_kernels *kernels);
void nn_table_int8_avx2(struct nn_kernels *kernels);
void nn_table_int8_avx512(struct nn_kernels *kernels);
void nn_table_int8_avx512vnni(struct nn_kernels *kernels);
void nn_table_conv_int8_avx2(struct nn_kernels *kernels);
void nn_table_conv_int8_avx512(struct nn_kernels *kernels);
void nn_table_conv_int8_avx512vnni(struct nn_kernels *kernels);

/* nn_peak_run of each. */
double nn_peak_avx2(uint32_t rounds);
double nn_peak_avx512(uint32_t rounds);
double nn_peak_avx512bf16(uint32_t rounds);
double nn_peak_amx(uint32_t rounds);
double nn_peak_int8_avx2(uint32_t rounds);
double nn_peak_int8_avx512(uint32_t rounds);
double nn_peak_int8_avx512vnni(uint32_t rounds);

enum {
    NN_BLOCK = 32, /* terms that NN_BF16 sums on their own */
    NN_LANES = 16, /* partial sums of norm, softmax and dot products */
};

/* exp(x) = 2^n 2^f, n + f = x / ln 2 with n rounded; 2^f is a minimax polynomial for |f| <= 1/2
 * that is 1 at 0: of degree 5, relative error 9.2e-8, or of degree 4 (SHORT), 2.9e-6. Arguments are
 * limited, so that 2^n stays a normal number. */
#define NN_EXP_LIMIT 87.0f
#define NN_EXP_LOG2E 0x1.715476p+0f
#define NN_EXP_MAGIC 0x1.8p+23f /* adding it rounds to an integer in the low bits */
#define NN_EXP_C1 0x1.62e42ap-1f
#define NN_EXP_C2 0x1.ebf9bcp-3f
#define NN_EXP_C3 0x1.c6b754p-5f
#define NN_EXP_C4 0x1.3cea8cp-7f
#define NN_EXP_C5 0x1.5bba10p-10f
#define NN_EXP_SHORT_C1 0x1.62e12cp-1f
#define NN_EXP_SHORT_C2 0x1.ec0378p-3f
#define NN_EXP_SHORT_C3 0x1.c9fc4ep-5f
#define NN_EXP_SHORT_C4 0x1.3a02cap-7f

/* 1 / d for d in 1 .. 2^126: the bits of a first guess within 5.1% are this minus d's bits. */
#define NN_INVERSE_MAGIC 0x7EF31000

#define NN_NORM_EPSILON 1e-6f
#define NN_LOGIT_SCALE 0x1.6a09e6p-3f /* 1 / sqrt(NN_HEAD) */
#define NN_NOISE_SCALE 0x1.bb68f6p-8f /* 1 / 147.80 */

#endif
