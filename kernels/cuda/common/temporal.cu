/*
 * Attention of every token over its own past: at most 16 keys, one per page of memory, and a
 * learned sink. Pages are found through a block table in device memory, so a fork is a copy of the
 * table and a captured launch never changes.
 *
 * A warp takes one key/value head of one token, and the query heads that share it one after the
 * other: keys and values are read and widened once. dim / 8 lanes share a page's row, 8 numbers
 * each, so 256 / dim pages are read at a time; what a page has once (its number, its scales, its
 * logit and its weight) is with one of these lanes. All keys and values are requested before the
 * first is used, for this is bound by memory. Operands are rounded to bf16 as in
 * kernels/ref/nn_attention.c; sums over pages run in a fixed tree, pages that are not there weigh
 * 0.
 */
#include "kernels/cuda/common/gpu.h"
#include "kernels/cuda/common/matrix.h"

enum {
    WARPS = 4,
    PIECE = 8, /* numbers of a row per lane */
};

#define LOG2E 1.4426950408889634f
#define NOWHERE UINT64_MAX

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
        gpu_e4m3_unpack(bits, x);
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

/* Places of a head of a token's past in the warp. */
template <int dim> struct shape {
    static constexpr int lanes = dim / PIECE; /* of a row */
    static constexpr int at_once = 32 / lanes;
    static constexpr int steps = GPU_PAGES_MAX / at_once;
    static_assert(lanes == 2 * steps, "two lanes of a row have each of its pages");

    /* First of the two lanes that have what the page of this lane's row has once. */
    static __device__ uint32_t owner(uint32_t lane, int step)
    {
        return lane / lanes * lanes + 2 * step;
    }
    /* That page, of a lane. */
    static __device__ uint32_t page(uint32_t lane)
    {
        return lane % lanes / 2 * at_once + lane / lanes;
    }
};

/* Sums over the lanes that share a row, of a step each: that of lane % lanes / 2. What is added to
 * what is as in row_sum, so the bits are. */
template <int dim> GPU_FN float row_sums(float x[shape<dim>::steps])
{
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int count = shape<dim>::steps / 2; count > 0; count /= 2) {
        const bool upper = (lane & (2 * count)) != 0;
#pragma unroll
        for (int i = 0; i < count; i++) {
            float given = upper ? x[i] : x[i + count];
            float kept = upper ? x[i + count] : x[i];
            x[i] = kept + __shfl_xor_sync(0xFFFFFFFFu, given, 2 * count);
        }
    }
    return x[0] + __shfl_xor_sync(0xFFFFFFFFu, x[0], 1);
}

/* A lane's part of keys and values, and what its page has once. */
template <int dim> struct past {
    float key[shape<dim>::steps][PIECE];
    float value[shape<dim>::steps][PIECE];
    float key_scale, value_scale;
    bool there;
};

template <int dim, bool fp8>
GPU_FN void load_past(const struct gpu_temporal &t, uint32_t item, uint32_t token, uint32_t kv_head,
                      struct past<dim> &past)
{
    using in = shape<dim>;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t column = lane % in::lanes * PIECE;
    const uint32_t page = in::page(lane);
    const int number = page < t.page_count ? t.pages.table[item * t.pages.table_stride + page] : -1;
    int row = (int)token;
    if (number >= 0 && t.index != NULL) {
        row = t.index[((size_t)item * t.page_count + page) * t.tokens + token];
    }
    past.there = number >= 0 && row >= 0;
    past.key_scale = 1.0f;
    past.value_scale = 1.0f;
    uint64_t keys = NOWHERE; /* in the arena, of the row of the lane's page */
    if (past.there) {
        keys = (uint64_t)number * t.pages.page_bytes;
        if (fp8) {
            size_t at = keys + ((size_t)row * t.kv_heads + kv_head) * sizeof(float);
            past.key_scale = *(const float *)(t.pages.arena + t.pages.k_scale_offset + at);
            past.value_scale = *(const float *)(t.pages.arena + t.pages.v_scale_offset + at);
        }
        keys += ((size_t)row * t.kv_row + (size_t)kv_head * dim) * (fp8 ? 1 : 2);
    }
    const uint8_t *first_key = t.pages.arena + t.pages.k_offset;
    const uint8_t *first_value = t.pages.arena + t.pages.v_offset;
    struct piece<fp8> key[in::steps];
    struct piece<fp8> value[in::steps];
#pragma unroll
    for (int step = 0; step < in::steps; step++) {
        const uint64_t from = __shfl_sync(0xFFFFFFFFu, keys, in::owner(lane, step));
        key[step] = {};
        value[step] = {};
        if (from != NOWHERE) {
            key[step].load(first_key + from, column);
            value[step].load(first_value + from, column);
        }
    }
#pragma unroll
    for (int step = 0; step < in::steps; step++) {
        key[step].widen(past.key[step]);
        value[step].widen(past.value[step]);
    }
}

/* Logit (times log2 e) of the lane's page; -inf where there is none. */
template <int dim>
GPU_FN float page_logit(const struct gpu_temporal &t, uint32_t head, const float q[PIECE],
                        const struct past<dim> &past)
{
    using in = shape<dim>;
    float product[in::steps];
#pragma unroll
    for (int step = 0; step < in::steps; step++) {
        product[step] = dot(q, past.key[step]);
    }
    const float scale = LOG2E * rsqrtf((float)dim);
    float logit = row_sums<dim>(product) * past.key_scale * scale;
    if (!past.there) {
        return -INFINITY;
    }
    float bias = t.bias != NULL ? t.bias[head * t.bias_stride + in::page(threadIdx.x % 32)] : 0.0f;
    return fmaf(bias, LOG2E, logit);
}

/* Values of all rows, weighed; in the lanes of every row. The sum of the weights is returned. */
template <int dim> GPU_FN float mix(float weight, const struct past<dim> &past, float out[PIECE])
{
    using in = shape<dim>;
    const uint32_t lane = threadIdx.x % 32;
    const float factor = round_bf16(weight) * past.value_scale;
    float sum = 0.0f;
#pragma unroll
    for (int step = 0; step < in::steps; step++) {
        sum += __shfl_sync(0xFFFFFFFFu, weight, in::owner(lane, step));
        float f = __shfl_sync(0xFFFFFFFFu, factor, in::owner(lane, step));
#pragma unroll
        for (int i = 0; i < PIECE; i++) {
            out[i] = fmaf(f, past.value[step][i], out[i]);
        }
    }
#pragma unroll
    for (int by = in::lanes; by < 32; by *= 2) {
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, by);
#pragma unroll
        for (int i = 0; i < PIECE; i++) {
            out[i] += __shfl_xor_sync(0xFFFFFFFFu, out[i], by);
        }
    }
    return sum;
}

/* One query head: its past and the sink; `out` in the lanes of every row. */
template <int dim>
GPU_FN void attend(const struct gpu_temporal &t, uint32_t head, const float q[PIECE],
                   const struct past<dim> &past, const float sink_key[PIECE],
                   const float sink[PIECE], float out[PIECE])
{
    float sink_logit = -INFINITY;
    if (t.null_k != NULL) {
        sink_logit = row_sum<shape<dim>::lanes>(dot(q, sink_key)) * (LOG2E * rsqrtf((float)dim));
    }
    const float logit = page_logit<dim>(t, head, q, past);
    float maximum = fmaxf(sink_logit, logit);
#pragma unroll
    for (int by = 2; by < 32; by *= 2) {
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFFu, maximum, by));
    }
    maximum = maximum == -INFINITY ? 0.0f : maximum;
    float sum = mix<dim>(gpu_exp2(logit - maximum), past, out);
    const float weight = gpu_exp2(sink_logit - maximum);
    sum += weight;
    const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll
    for (int i = 0; i < PIECE; i++) {
        out[i] = fmaf(round_bf16(weight), sink[i], out[i]) * inverse;
    }
}

/* Grid: x over groups of WARPS key/value heads of all tokens, y over items. */
template <int dim, bool fp8>
static __global__ void __launch_bounds__(WARPS * 32, 2) temporal_kernel(const struct gpu_temporal t)
{
    const uint32_t item = blockIdx.y;
    const uint32_t number = blockIdx.x * WARPS + threadIdx.x / 32;
    if ((t.active != NULL && t.active[item] == 0) || number >= t.tokens * t.kv_heads) {
        return;
    }
    const uint32_t token = number / t.kv_heads;
    const uint32_t kv_head = number % t.kv_heads;
    const uint32_t group = t.heads / t.kv_heads;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t column = lane % shape<dim>::lanes * PIECE;
    float sink_key[PIECE] = {};
    float sink[PIECE] = {};
    struct past<dim> past;
    load_past<dim, fp8>(t, item, token, kv_head, past);
    if (t.null_k != NULL) {
        load_floats(t.null_k + (size_t)kv_head * dim + column, sink_key);
        load_floats(t.null_v + (size_t)kv_head * dim + column, sink);
    }
#pragma unroll 1
    for (uint32_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
        float q[PIECE];
        float out[PIECE] = {};
        load_query(t, item, token, head * dim + column, q);
        attend<dim>(t, head, q, past, sink_key, sink, out);
        if (lane < shape<dim>::lanes) {
            uint16_t *to = static_cast<uint16_t *>(t.out) + item * t.out_item + token * t.out_row +
                           head * dim + column;
            *reinterpret_cast<uint4 *>(to) =
                make_uint4(gpu_pack_bf16(out[0], out[1]), gpu_pack_bf16(out[2], out[3]),
                           gpu_pack_bf16(out[4], out[5]), gpu_pack_bf16(out[6], out[7]));
        }
    }
}

template <int dim> static void launch(const struct gpu_temporal *t, void *stream)
{
    const dim3 grid((t->tokens * t->kv_heads + WARPS - 1) / WARPS, t->items);
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
