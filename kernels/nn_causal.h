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
    NN_CAUSAL_NUMBERS = 4, /* that a token is made of, beside a word */
    NN_CAUSAL_HEADS = 4,   /* of a pool */
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

/* Rows of a sequence's tokens, and a linear image of their norms. A token is four numbers and a
 * word: its row x is (bias + numbers * their matrix, row of the word) + row of its position. A norm
 * is (x - mean) / deviation, and x - mean is a sum of what numbers, word and position bring: so the
 * image is (sum of theirs) / deviation + shift, and no matrix product is left. `images` have been
 * made of parts whose means were taken off. */
struct nn_causal_entry {
    uint32_t half;    /* of a row: its numbers, its word; a multiple of 16 */
    uint32_t columns; /* of an image; a multiple of 16 */
    struct {
        const float *bias;      /* [half] */
        const float *numbers;   /* [NN_CAUSAL_NUMBERS][half] */
        const float *words;     /* [word][half] */
        const float *positions; /* [token][2 half] */
    } rows;
    struct {
        const float *numbers;   /* [NN_CAUSAL_NUMBERS][columns] */
        const float *words;     /* [word][columns] */
        const float *positions; /* [token][columns], the bias among them */
        const float *shift;     /* [columns] */
    } images;
};

/* One query of every sequence over all its tokens, whose rows serve four heads as keys and as
 * values: logits, weights and output as in struct nn_causal, but q . x is summed in 16 interleaved
 * partial sums. */
struct nn_causal_pool {
    uint32_t tokens; /* 1 .. NN_CAUSAL_TOKENS */
    uint32_t width;  /* a multiple of 64 */
    const float *q;  /* [sequence][NN_CAUSAL_HEADS][width] */
    const float *x;  /* [sequence][tokens][width] */
    float *out;      /* [sequence][NN_CAUSAL_HEADS][width] */
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
    /* The `tokens` tokens of one sequence: rows x [tokens][2 half], images [tokens][columns]. Each
     * sum is one chain of fused multiply-adds: from the bias, from the word's image; the position's
     * part is added to it. Mean and variance of x as in `norm`. */
    void (*enter)(const struct nn_causal_entry *e, const float (*numbers)[NN_CAUSAL_NUMBERS],
                  const uint16_t *words, uint32_t tokens, float *x, float *images);
    void (*pool)(const struct nn_causal_pool *p, uint32_t first_sequence, uint32_t end_sequence);
};

/* The best variants that `flags` (enum cpu_flag) allows. */
void nn_causal_kernels_init(struct nn_causal_kernels *kernels, uint32_t flags);

#endif
