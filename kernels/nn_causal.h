/*
 * Kernels of a small causal transformer: what kernels/nn.h does not have for a network such as
 * tinyphysics (engine/tinyphysics/tinyphysics_model.h). All in single precision; products are those
 * of NN_FP32. As there, every variant gives the bits of the plain C one, and nothing allocates.
 * Inputs are finite; base pointers are aligned to 64 bytes.
 */
#ifndef SWERVE_KERNELS_NN_CAUSAL_H
#define SWERVE_KERNELS_NN_CAUSAL_H

#include <stddef.h>
#include <stdint.h>

enum {
    NN_CAUSAL_HEAD = 32,   /* dimension of a head */
    NN_CAUSAL_TOKENS = 32, /* at most, of a sequence */
};

/* Attention of the last tokens of every sequence over all that are not later. A query's logits are
 * q . k (one chain of fused multiply-adds) / sqrt(32); weights exp(logit - largest), summed in 16
 * interleaved partial sums; the output is one chain over the tokens, times 1 / sum. */
struct nn_causal {
    uint32_t tokens; /* 1 .. NN_CAUSAL_TOKENS */
    uint32_t first;  /* token of the first query, less than `tokens` */
    uint32_t heads;
    const float *q; /* [sequence][tokens - first] rows of heads * 32, q_stride floats apart */
    size_t q_stride;
    const float *k; /* [sequence][tokens] rows, kv_stride floats apart */
    const float *v;
    size_t kv_stride;
    float *out; /* [sequence][tokens - first][heads * 32] */
};

struct nn_causal_kernels {
    const char *name; /* "c", "avx2", "avx512" */
    /* out[r][i] = (x[r][i] - mean) / sqrt(variance + 1e-5) * scale[i] + shift[i]; width a multiple
     * of 16. Sums as in nn_kernels.norm. out may be x. */
    void (*norm)(const float *x, uint32_t width, const float *scale, const float *shift, float *out,
                 size_t rows);
    /* x[i] = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) in place; count a multiple of
     * 16. Computed as x times the logistic function of twice tanh's argument. */
    void (*gelu)(float *x, size_t count);
    /* out[i] = exp(logits[i] / temperature - largest of these quotients): quotient and difference
     * in single precision, dmath_exp of it in double, rounded; count a multiple of 16. */
    void (*weights)(const float *logits, float temperature, float *out, size_t count);
    void (*attention)(const struct nn_causal *a, uint32_t first_sequence, uint32_t end_sequence);
};

/* The best variants that `flags` (enum cpu_flag) allows. */
void nn_causal_kernels_init(struct nn_causal_kernels *kernels, uint32_t flags);

#endif
