/*
 * Elementwise kernels: conversions, SiLU, gated residuals, modulation tables, noise and the
 * sampler's step. Every one gives the bits of kernels/ref. A thread does four neighbours where rows
 * allow it.
 */
#include "kernels/cuda/common/act.cuh"

enum { ELEMENT_THREADS = 256 };

static unsigned blocks_for(size_t threads)
{
    return (unsigned)((threads + ELEMENT_THREADS - 1) / ELEMENT_THREADS);
}

GPU_FN size_t thread_number(void)
{
    return (size_t)blockIdx.x * ELEMENT_THREADS + threadIdx.x;
}

/* ---- conversion ---- */

GPU_FN float convert_one(const struct gpu_convert &c, float x)
{
    return c.silu ? gpu_silu(x) : x;
}

__global__ void __launch_bounds__(ELEMENT_THREADS) convert_kernel(struct gpu_convert c)
{
    size_t at = thread_number() * 4;
    if (at + 4 <= c.count) {
        float4 x = gpu_act_get4(c.x_type, c.x, at);
        x.x = convert_one(c, x.x);
        x.y = convert_one(c, x.y);
        x.z = convert_one(c, x.z);
        x.w = convert_one(c, x.w);
        gpu_act_put4(c.out_type, c.out, at, x);
        return;
    }
    for (; at < c.count; at++) {
        gpu_act_put(c.out_type, c.out, at, convert_one(c, gpu_act_get(c.x_type, c.x, at)));
    }
}

extern "C" void gpu_convert_launch(const struct gpu_convert *convert, void *stream)
{
    if (convert->count > 0) {
        LAUNCH(convert_kernel, blocks_for((convert->count + 3) / 4), ELEMENT_THREADS, 0, stream,
               *convert);
    }
}

/* ---- modulation tables ---- */

__global__ void __launch_bounds__(ELEMENT_THREADS) table_kernel(struct gpu_table t)
{
    size_t i = thread_number();
    size_t slot = blockIdx.y;
    if (i >= (size_t)t.layers * t.width) {
        return;
    }
    t.out[slot * t.layers * t.width + i] = t.ada[slot * t.ada_stride + i % t.width] + t.own[i];
}

extern "C" void gpu_table_launch(const struct gpu_table *table, void *stream)
{
    size_t count = (size_t)table->layers * table->width;
    if (count > 0 && table->slots > 0) {
        LAUNCH(table_kernel, dim3(blocks_for(count), table->slots), ELEMENT_THREADS, 0, stream,
               *table);
    }
}

/* ---- noise ---- */

/* Philox4x32-10, as base/rng.c. */
GPU_FN uint4 philox(uint64_t key, uint4 counter)
{
    uint32_t low = (uint32_t)key;
    uint32_t high = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint32_t high0 = __umulhi(0xD2511F53u, counter.x);
        uint32_t low0 = 0xD2511F53u * counter.x;
        uint32_t high1 = __umulhi(0xCD9E8D57u, counter.z);
        uint32_t low1 = 0xCD9E8D57u * counter.z;
        counter = make_uint4(high1 ^ counter.y ^ low, low1, high0 ^ counter.w ^ high, low0);
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
    return counter;
}

GPU_FN float noise_of(uint32_t word)
{
    uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
    return (float)((int)sum - 510) * NN_NOISE_SCALE;
}

__global__ void __launch_bounds__(ELEMENT_THREADS) noise_kernel(struct gpu_noise n)
{
    size_t at = thread_number() * 4;
    size_t slot = blockIdx.y;
    if (at >= n.count) {
        return;
    }
    uint4 counter = make_uint4(n.ticks[slot], n.stream, (uint32_t)((n.first + at) / 4), 0);
    uint4 words = philox(n.keys[slot], counter);
    float values[4] = {noise_of(words.x), noise_of(words.y), noise_of(words.z), noise_of(words.w)};
    float *out = n.out + slot * n.slot_stride + at;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (at + i < n.count) {
            out[i] = values[i];
        }
    }
}

extern "C" void gpu_noise_launch(const struct gpu_noise *noise, void *stream)
{
    if (noise->count > 0 && noise->slots > 0) {
        LAUNCH(noise_kernel, dim3(blocks_for((noise->count + 3) / 4), noise->slots),
               ELEMENT_THREADS, 0, stream, *noise);
    }
}

/* ---- the sampler's step ---- */

__global__ void __launch_bounds__(ELEMENT_THREADS) euler_kernel(struct gpu_euler e)
{
    size_t i = thread_number();
    if (i >= e.positions * e.channels) {
        return;
    }
    float weight = e.weight;
    if (e.weights != NULL) {
        size_t slot = i / e.channels / e.slot_positions;
        if (e.active[slot] == 0) {
            return;
        }
        weight = e.weights[slot];
    }
    float target = e.base[i] + e.o[i / e.channels * e.o_stride + i % e.channels];
    e.x[i] = weight == 1.0f ? target : __fmaf_rn(target - e.x[i], weight, e.x[i]);
}

extern "C" void gpu_euler_launch(const struct gpu_euler *euler, void *stream)
{
    size_t count = euler->positions * euler->channels;
    if (count > 0) {
        LAUNCH(euler_kernel, blocks_for(count), ELEMENT_THREADS, 0, stream, *euler);
    }
}
