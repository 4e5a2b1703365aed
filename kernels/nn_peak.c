/*
 * Chooses the loop whose instruction the best table of the flags uses; plain C has one of its own.
 */
#include "kernels/nn_peak.h"

#include "kernels/cpu.h"
#include "kernels/nn_internal.h"

static double peak_c(uint32_t rounds)
{
    enum { CHAINS = 16 };
    float sums[CHAINS] = {0.0f};
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < CHAINS; i++) {
            sums[i] = sums[i] * 0.75f + 0.25f;
        }
    }
    volatile float used = 0.0f;
    for (int i = 0; i < CHAINS; i++) {
        used = used + sums[i];
    }
    return 2.0 * CHAINS * rounds;
}

double nn_peak_run(enum nn_precision precision, uint32_t flags, uint32_t rounds)
{
#if defined(__x86_64__)
    if (precision == NN_INT8 && (flags & CPU_FLAG_AVX512_VNNI) && (flags & CPU_FLAG_AVX512)) {
        return nn_peak_int8_avx512vnni(rounds);
    }
    if (precision == NN_INT8 && (flags & CPU_FLAG_AVX512)) {
        return nn_peak_int8_avx512(rounds);
    }
    if (precision == NN_INT8 && (flags & CPU_FLAG_AVX2)) {
        return nn_peak_int8_avx2(rounds);
    }
    if (precision == NN_BF16 && (flags & CPU_FLAG_AMX) && (flags & CPU_FLAG_AVX512)) {
        return nn_peak_amx(rounds);
    }
    if (precision == NN_BF16 && (flags & CPU_FLAG_AVX512_BF16) && (flags & CPU_FLAG_AVX512)) {
        return nn_peak_avx512bf16(rounds);
    }
    if (flags & CPU_FLAG_AVX512) {
        return nn_peak_avx512(rounds);
    }
    if (flags & CPU_FLAG_AVX2) {
        return nn_peak_avx2(rounds);
    }
#else
    (void)precision;
    (void)flags;
#endif
    return peak_c(rounds);
}
