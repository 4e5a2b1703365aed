/*
 * The table of network kernels: plain C first, then overwritten by each instruction set that the
 * flags allow, narrowest to widest.
 */
#include "kernels/nn.h"

#include "kernels/cpu.h"
#include "kernels/nn_internal.h"

const char *const nn_precision_names[NN_PRECISION_COUNT] = {"fp32", "bf16", "int8"};

/* Functions that NN_INT8 has beside the table of NN_BF16. */
static void add_int8(struct nn_kernels *kernels, uint32_t flags)
{
    kernels->precision = NN_INT8;
    nn_table_int8_ref(kernels);
#if defined(__x86_64__)
    if (flags & CPU_FLAG_AVX2) {
        nn_table_int8_avx2(kernels);
        nn_table_conv_int8_avx2(kernels);
    }
    if (flags & CPU_FLAG_AVX512) {
        nn_table_int8_avx512(kernels);
        nn_table_conv_int8_avx512(kernels);
        if (flags & CPU_FLAG_AVX512_VNNI) {
            nn_table_int8_avx512vnni(kernels);
            nn_table_conv_int8_avx512vnni(kernels);
        }
    }
#else
    (void)flags;
#endif
}

void nn_kernels_init(struct nn_kernels *kernels, enum nn_precision precision, uint32_t flags)
{
    if (precision == NN_INT8) {
        nn_kernels_init(kernels, NN_BF16, flags);
        add_int8(kernels, flags);
        return;
    }
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
