/*
 * Products of integers in registers, compiled for AVX2, AVX-512 and AVX-512 with products of
 * four bytes.
 */
#include "kernels/x86/nn_lanes.h"

#if defined(__AVX512F__)
enum { CHAINS = 12 };
#else
enum { CHAINS = 4 }; /* of two registers each, and as many for products */
#endif

#if defined(__AVX512VNNI__)
enum { TERMS = 4 };
#define ADD_TERMS s16_add_bytes
#else
enum { TERMS = 2 };
#define ADD_TERMS s16_add_halves
#endif

double NN_NAME(peak_int8)(uint32_t rounds)
{
    s16 sums[CHAINS];
    for (int i = 0; i < CHAINS; i++) {
        sums[i] = s16_set1(i);
    }
    w16 word = w16_set1(0x02040608);
    const w16 factor = w16_set1(0x01030507);
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < CHAINS; i++) {
            w16_forget(&word); /* else its product is computed once for all */
            sums[i] = ADD_TERMS(sums[i], word, factor);
        }
    }
    v16 total = v16_zero();
    for (int i = 0; i < CHAINS; i++) {
        total = v16_add(total, s16_to_float(sums[i]));
    }
    volatile float used = v16_sum(total); /* so that the loop is not removed */
    (void)used;
    return 2.0 * TERMS * NN_LANES * CHAINS * rounds;
}
