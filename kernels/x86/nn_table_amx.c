/*
 * The table of the tile kernels: over the AVX-512 one, NN_BF16 alone.
 */
#include "kernels/nn_internal.h"
#include "kernels/x86/nn_amx.h"

void nn_table_amx(struct nn_kernels *kernels, enum nn_precision precision)
{
    kernels->name = "amx";
    if (precision != NN_BF16) {
        return;
    }
    kernels->packed_bytes = nn_packed_bytes_amx;
    kernels->pack = nn_pack_bf16_amx;
    kernels->gemm = nn_gemm_bf16_amx;
    kernels->conv3x3 = nn_conv3x3_bf16_amx;
    kernels->attention = nn_attention_bf16_amx;
}
