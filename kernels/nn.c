/*
 * The table of network kernels: plain C first, then overwritten by each instruction set that the
 * flags allow, narrowest to widest.
 */
#include "kernels/nn.h"

#include "kernels/cpu.h"
#include "kernels/nn_internal.h"

const char *const nn_precision_names[NN_PRECISION_COUNT] = {"fp32", "bf16"};

void nn_kernels_init(struct nn_kernels *kernels, enum nn_precision precision, uint32_t flags)
{
    nn_table_ref(kernels, precision);
#if defined(__x86_64__)
    if (flags & CPU_FLAG_AVX2) {
        nn_table_avx2(kernels, precision);
    }
    if (flags & CPU_FLAG_AVX512) {
        nn_table_avx512(kernels, precision);
        if (flags & CPU_FLAG_AVX512_BF16) {
            nn_table_avx512bf16(kernels, precision);
        }
        if (flags & CPU_FLAG_AMX) {
            nn_table_amx(kernels, precision);
        }
    }
#else
    (void)flags;
#endif
}
