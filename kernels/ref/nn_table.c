/*
 * The plain C tables: every member of every precision. What kernels/nn.c starts from.
 */
#include "kernels/nn_internal.h"
#include "kernels/ref/nn_ref.h"

void nn_table_ref(struct nn_kernels *kernels, enum nn_precision precision)
{
    bool bf16 = precision == NN_BF16;
    *kernels = (struct nn_kernels){
        .precision = precision,
        .name = "c",
        .packed_bytes = nn_packed_bytes_ref,
        .pack = bf16 ? nn_pack_bf16_ref : nn_pack_fp32_ref,
        .gemm = bf16 ? nn_gemm_bf16_ref : nn_gemm_fp32_ref,
        .conv3x3 = bf16 ? nn_conv3x3_bf16_ref : nn_conv3x3_fp32_ref,
        .norm = bf16 ? nn_norm_bf16_ref : nn_norm_fp32_ref,
        .attention = bf16 ? nn_attention_bf16_ref : nn_attention_fp32_ref,
        .temporal = bf16 ? nn_temporal_bf16_ref : nn_temporal_fp32_ref,
        .turn = bf16 ? nn_turn_bf16_ref : nn_turn_fp32_ref,
        .attention_wide = bf16 ? nn_attention_wide_bf16_ref : nn_attention_wide_fp32_ref,
        .temporal_wide = bf16 ? nn_temporal_wide_bf16_ref : nn_temporal_wide_fp32_ref,
        .packed_bytes_e4m3 = bf16 ? nn_packed_bytes_e4m3_ref : NULL,
        .pack_e4m3 = bf16 ? nn_pack_e4m3_ref : NULL,
        .keep_e4m3 = bf16 ? nn_keep_e4m3_ref : NULL,
        .to_e4m3 = bf16 ? nn_to_e4m3_ref : NULL,
        .heads_to_e4m3 = bf16 ? nn_heads_to_e4m3_ref : NULL,
        .heads_from_e4m3 = bf16 ? nn_heads_from_e4m3_ref : NULL,
        .gemm_e4m3 = bf16 ? nn_gemm_e4m3_ref : NULL,
        .silu = nn_silu_ref,
        .to_act = bf16 ? nn_to_act_bf16_ref : nn_to_act_fp32_ref,
        .noise = nn_noise_ref,
        .euler = nn_euler_ref,
        .quantise = nn_quantise_ref,
    };
}

void nn_table_int8_ref(struct nn_kernels *kernels)
{
    kernels->name = "c";
    kernels->packed_bytes_int8 = nn_packed_bytes_int8_ref;
    kernels->pack_int8 = nn_pack_int8_ref;
    kernels->to_int8 = nn_to_int8_ref;
    kernels->gemm_int8 = nn_gemm_int8_ref;
    kernels->conv_packed_bytes_int8 = nn_conv_packed_bytes_int8_ref;
    kernels->conv_pack_int8 = nn_conv_pack_int8_ref;
    kernels->conv3x3_int8 = nn_conv3x3_int8_ref;
}
