/*
 * Fused multiply-adds in registers, compiled for AVX2, AVX-512 and AVX-512 with products of
 * bfloat16 pairs. NN_BF16 on the first two runs on the same instruction as NN_FP32.
 */
#include "kernels/x86/nn_x86.h"

#if defined(__AVX512F__)
enum { CHAINS = 12 };
#else
enum { CHAINS = 6 }; /* of two registers each */
#endif

double NN_NAME(peak)(uint32_t rounds)
{
    v16 sums[CHAINS];
    for (int i = 0; i < CHAINS; i++) {
        sums[i] = v16_set1((float)i);
    }
    const v16 factor = v16_set1(0.75f);
    const v16 term = v16_set1(0.25f);
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < CHAINS; i++) {
            sums[i] = v16_add_terms(factor, term, sums[i]);
        }
    }
    for (int i = 1; i < CHAINS; i++) {
        sums[0] = v16_add(sums[0], sums[i]);
    }
    volatile float used = v16_sum(sums[0]); /* so that the loop is not removed */
    (void)used;
    return 2.0 * WORD_TERMS * NN_LANES * CHAINS * rounds;
}
