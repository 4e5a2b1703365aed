/*
 * The table of one vector instruction set; all members but the fp32 conversion, which is a copy.
 */
#include "kernels/x86/nn_x86.h"

void NN_NAME(table)(struct nn_kernels *kernels, enum nn_precision precision)
{
    bool bf16 = precision == NN_BF16;
#if defined(__AVX512BF16__)
    kernels->name = "avx512bf16";
#elif defined(__AVX512F__)
    kernels->name = "avx512";
#else
    kernels->name = "avx2";
#endif
    kernels->packed_bytes = bf16 ? NN_NAME(packed_bytes_bf16) : NN_NAME(packed_bytes_fp32);
    kernels->pack = bf16 ? NN_NAME(pack_bf16) : NN_NAME(pack_fp32);
    kernels->gemm = bf16 ? NN_NAME(gemm_bf16) : NN_NAME(gemm_fp32);
    kernels->conv3x3 = bf16 ? NN_NAME(conv3x3_bf16) : NN_NAME(conv3x3_fp32);
    kernels->norm = bf16 ? NN_NAME(norm_bf16) : NN_NAME(norm_fp32);
    kernels->attention = bf16 ? NN_NAME(attention_bf16) : NN_NAME(attention_fp32);
    kernels->temporal = bf16 ? NN_NAME(temporal_bf16) : NN_NAME(temporal_fp32);
    if (bf16) {
        kernels->to_act = NN_NAME(to_act_bf16);
    }
    kernels->silu = NN_NAME(silu);
    kernels->noise = NN_NAME(noise);
    kernels->euler = NN_NAME(euler);
    kernels->quantise = NN_NAME(quantise);
}
