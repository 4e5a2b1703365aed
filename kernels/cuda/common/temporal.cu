/*
 * Attention of every token over its own past: at most 16 keys, one per page of memory, and a
 * learned sink. Pages are found through a block table in device memory, so a fork is a copy of the
 * table and a captured launch never changes.
 *
 * A warp takes one query head of one token: dim / 8 lanes share a page's row, 8 numbers each, so
 * 256 / dim pages are read at a time. All keys and values are requested before the first is used,
 * for this is bound by memory. Operands are rounded to bf16 as in kernels/ref/nn_attention.c; sums
 * over pages run in a fixed tree, pages that are not there weigh 0.
 */
#include "kernels/cuda/common/gpu.h"
#include "kernels/cuda/common/matrix.h"

enum {
    WARPS = 4,
    PIECE = 8, /* numbers of a row per lane */
};

#define LOG2E 1.4426950408889634f

GPU_FN float round_bf16(float x)
{
    return gpu_bf16_to_float(gpu_act_bf16(x));
}

/* Part that one lane reads of a row, as it lies in memory. */
template <bool fp8> struct piece;
template <> struct piece<false> {
    uint4 bits;
    __device__ void load(const uint8_t *row, uint32_t column)
    {
        bits = *reinterpret_cast<const uint4 *>(row + column * 2);
    }
    __device__ void widen(float x[PIECE]) const
    {
        const uint32_t word[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            x[2 * i] = __uint_as_float(word[i] << 16);
            x[2 * i + 1] = __uint_as_float(word[i] & 0xFFFF0000u);
        }
    }
};
template <> struct piece<true> {
    uint2 bits;
    __device__ void load(const uint8_t *row, uint32_t column)
    {
        bits = *reinterpret_cast<const uint2 *>(row + column);
    }
    __device__ void widen(float x[PIECE]) const
    {
#pragma unroll
        for (int i = 0; i < PIECE; i++) {
            x[i] = gpu_e4m3_to_float((uint8_t)((i < 4 ? bits.x : bits.y) >> i % 4 * 8));
        }
    }
};

/* Sum over the dim / 8 lanes that share a row. */
template <int lanes> GPU_FN float row_sum(float x)
{
#pragma unroll
    for (int by = lanes / 2; by > 0; by /= 2) {
        x += __shfl_xor_sync(0xFFFFFFFFu, x, by);
    }
    return x;
}

GPU_FN float dot(const float a[PIECE], const float b[PIECE])
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PIECE; i++) {
        sum = fmaf(a[i], b[i], sum);
    }
    return sum;
}

GPU_FN void load_floats(const float *from, float x[PIECE])
{
    float4 low = *reinterpret_cast<const float4 *>(from);
    float4 high = *reinterpret_cast<const float4 *>(from + 4);
    const float all[PIECE] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < PIECE; i++) {
        x[i] = round_bf16(all[i]);
    }
}

GPU_FN void load_query(const struct gpu_temporal &t, uint32_t item, uint32_t token, uint32_t column,
                       float q[PIECE])
{
    size_t at = item * t.q_item + token * t.q_row + column;
    if (t.q_type == GPU_F32) {
        load_floats(static_cast<const float *>(t.q) + at, q);
    } else {
        struct piece<false> p;
        p.bits = *reinterpret_cast<const uint4 *>(static_cast<const uint16_t *>(t.q) + at);
        p.widen(q);
    }
}

/* The rows that a lane has part in, and their logits (times log2 e); -inf where there is none. */
template <int dim, bool fp8> struct rows {
    static constexpr int lanes = dim / PIECE; /* of a row */
    static constexpr int at_once = 32 / lanes;
    static constexpr int steps = GPU_PAGES_MAX / at_once;
    struct piece<fp8> value[steps];
    float value_scale[steps];
    float logit[steps];
};

template <int dim, bool fp8>
GPU_FN void load_rows(const struct gpu_temporal &t, uint32_t item, uint32_t token, uint32_t head,
                      const float q[PIECE], struct rows<dim, fp8> &r)
{
    using shape = struct rows<dim, fp8>;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t column = lane % shape::lanes * PIECE;
    const uint32_t kv_head = head / (t.heads / t.kv_heads);
    const uint32_t element_bytes = fp8 ? 1 : 2;
    const float scale = LOG2E * rsqrtf((float)dim);
    struct piece<fp8> key[shape::steps];
    float key_scale[shape::steps];
    bool there[shape::steps];
#pragma unroll
    for (int step = 0; step < shape::steps; step++) {
        uint32_t page = step * shape::at_once + lane / shape::lanes;
        int number = page < t.page_count ? t.pages.table[item * t.pages.table_stride + page] : -1;
        int row = (int)token;
        if (number >= 0 && t.index != NULL) {
            row = t.index[((size_t)item * t.page_count + page) * t.tokens + token];
        }
        there[step] = number >= 0 && row >= 0;
        key[step] = {};
        r.value[step] = {};
        key_scale[step] = 1.0f;
        r.value_scale[step] = 1.0f;
        if (there[step]) {
            const uint8_t *base = t.pages.arena + (size_t)number * t.pages.page_bytes;
            size_t at = ((size_t)row * t.kv_row + (size_t)kv_head * dim) * element_bytes;
            key[step].load(base + t.pages.k_offset + at, column);
            r.value[step].load(base + t.pages.v_offset + at, column);
            if (fp8) {
                size_t scale_at = ((size_t)row * t.kv_heads + kv_head) * sizeof(float);
                key_scale[step] =
                    *reinterpret_cast<const float *>(base + t.pages.k_scale_offset + scale_at);
                r.value_scale[step] =
                    *reinterpret_cast<const float *>(base + t.pages.v_scale_offset + scale_at);
            }
        }
    }
#pragma unroll
    for (int step = 0; step < shape::steps; step++) {
        uint32_t page = step * shape::at_once + lane / shape::lanes;
        float k[PIECE];
        key[step].widen(k);
        float product = row_sum<shape::lanes>(dot(q, k)) * key_scale[step] * scale;
        float bias = there[step] && t.bias != NULL ? t.bias[head * t.bias_stride + page] : 0.0f;
        r.logit[step] = there[step] ? fmaf(bias, LOG2E, product) : -INFINITY;
    }
}

/* Weights and values of all rows and the sink; the lanes of the first row store the result. */
template <int dim, bool fp8>
GPU_FN void mix(const struct gpu_temporal &t, uint32_t head, uint32_t column, const float q[PIECE],
                const struct rows<dim, fp8> &r, float out[PIECE])
{
    using shape = struct rows<dim, fp8>;
    const size_t sink_at = (size_t)(head / (t.heads / t.kv_heads)) * dim + column;
    float sink[PIECE] = {};
    float sink_logit = -INFINITY;
    if (t.null_k != NULL) {
        float k[PIECE];
        load_floats(t.null_k + sink_at, k);
        load_floats(t.null_v + sink_at, sink);
        sink_logit = row_sum<shape::lanes>(dot(q, k)) * (LOG2E * rsqrtf((float)dim));
    }
    float maximum = sink_logit;
#pragma unroll
    for (int step = 0; step < shape::steps; step++) {
        maximum = fmaxf(maximum, r.logit[step]);
    }
#pragma unroll
    for (int by = shape::lanes; by < 32; by *= 2) {
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFFu, maximum, by));
    }
    maximum = maximum == -INFINITY ? 0.0f : maximum;
    float sum = 0.0f;
#pragma unroll
    for (int step = 0; step < shape::steps; step++) {
        float weight = gpu_exp2(r.logit[step] - maximum);
        float v[PIECE];
        r.value[step].widen(v);
        sum += weight;
        float factor = round_bf16(weight) * r.value_scale[step];
#pragma unroll
        for (int i = 0; i < PIECE; i++) {
            out[i] = fmaf(factor, v[i], out[i]);
        }
    }
#pragma unroll
    for (int by = shape::lanes; by < 32; by *= 2) {
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, by);
#pragma unroll
        for (int i = 0; i < PIECE; i++) {
            out[i] += __shfl_xor_sync(0xFFFFFFFFu, out[i], by);
        }
    }
    float weight = gpu_exp2(sink_logit - maximum);
    sum += weight;
    float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll
    for (int i = 0; i < PIECE; i++) {
        out[i] = fmaf(round_bf16(weight), sink[i], out[i]) * inverse;
    }
}

/* Grid: x over groups of WARPS heads of all tokens, y over items. */
template <int dim, bool fp8>
static __global__ void __launch_bounds__(WARPS * 32) temporal_kernel(const struct gpu_temporal t)
{
    const uint32_t item = blockIdx.y;
    const uint32_t number = blockIdx.x * WARPS + threadIdx.x / 32;
    if ((t.active != NULL && t.active[item] == 0) || number >= t.tokens * t.heads) {
        return;
    }
    const uint32_t token = number / t.heads;
    const uint32_t head = number % t.heads;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t column = lane % (dim / PIECE) * PIECE;
    float q[PIECE];
    float out[PIECE] = {};
    struct rows<dim, fp8> r;
    load_query(t, item, token, head * dim + column, q);
    load_rows<dim, fp8>(t, item, token, head, q, r);
    mix<dim, fp8>(t, head, column, q, r, out);
    if (lane < dim / PIECE) {
        uint16_t *to = static_cast<uint16_t *>(t.out) + item * t.out_item + token * t.out_row +
                       head * dim + column;
        *reinterpret_cast<uint4 *>(to) =
            make_uint4(gpu_pack_bf16(out[0], out[1]), gpu_pack_bf16(out[2], out[3]),
                       gpu_pack_bf16(out[4], out[5]), gpu_pack_bf16(out[6], out[7]));
    }
}

template <int dim> static void launch(const struct gpu_temporal *t, void *stream)
{
    const dim3 grid((t->tokens * t->heads + WARPS - 1) / WARPS, t->items);
    if (t->kv_type == GPU_E4M3) {
        LAUNCH((temporal_kernel<dim, true>), grid, WARPS * 32, 0, stream, *t);
    } else {
        LAUNCH((temporal_kernel<dim, false>), grid, WARPS * 32, 0, stream, *t);
    }
}

extern "C" void gpu_temporal_launch(const struct gpu_temporal *t, void *stream)
{
    if (t->items == 0 || t->tokens == 0) {
        return;
    }
    if (t->head_dim == 32) {
        launch<32>(t, stream);
    } else if (t->head_dim == 64) {
        launch<64>(t, stream);
    } else {
        launch<128>(t, stream);
    }
}
