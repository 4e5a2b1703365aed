/*
 * Elementwise and rowwise network kernels, compiled for AVX2 and for AVX-512. The plain C ones
 * (ref/nn_element.c) are the definition; a part of a vector at the end of a row or of an array does
 * the same on fewer lanes.
 */
#include "kernels/x86/nn_x86.h"

NN_INLINE void norm_row(enum nn_precision precision, const float *x, uint32_t width, float one,
                        const float *scale, const float *shift, void *out, size_t first)
{
    v16 sum = v16_zero();
    for (uint32_t i = 0; i < width; i += NN_LANES) {
        sum = v16_add(sum, v16_load(x + i));
    }
    const v16 mean = v16_set1(v16_sum(sum) / (float)width);
    sum = v16_zero();
    for (uint32_t i = 0; i < width; i += NN_LANES) {
        v16 d = v16_sub(v16_load(x + i), mean);
        sum = v16_fma(d, d, sum);
    }
    float variance = v16_sum(sum) / (float)width;
    __m128 root = _mm_sqrt_ss(_mm_set_ss(variance + NN_NORM_EPSILON));
    const v16 inverse = v16_set1(1.0f / _mm_cvtss_f32(root));
    for (uint32_t i = 0; i < width; i += NN_LANES) {
        v16 y = v16_mul(v16_sub(v16_load(x + i), mean), inverse);
        if (scale != NULL) {
            v16 factor = v16_add(v16_set1(one), v16_load(scale + i));
            y = v16_fma(y, factor, v16_load(shift + i));
        }
        act_store(precision, out, first + i, y);
    }
}

void NN_NAME(norm_fp32)(const float *x, uint32_t width, float one, const float *scale,
                        const float *shift, void *out, uint32_t first_row, uint32_t end_row)
{
    for (size_t row = first_row; row < end_row; row++) {
        norm_row(NN_FP32, x + row * width, width, one, scale, shift, out, row * width);
    }
}

void NN_NAME(norm_bf16)(const float *x, uint32_t width, float one, const float *scale,
                        const float *shift, void *out, uint32_t first_row, uint32_t end_row)
{
    for (size_t row = first_row; row < end_row; row++) {
        norm_row(NN_BF16, x + row * width, width, one, scale, shift, out, row * width);
    }
}

void NN_NAME(silu)(float *x, size_t count)
{
    size_t i = 0;
    for (; i + 2 * NN_LANES <= count; i += 2 * NN_LANES) {
        v16 two[] = {v16_load(x + i), v16_load(x + i + NN_LANES)};
        v16_silu_many(two, 2, false);
        v16_store(x + i, two[0]);
        v16_store(x + i + NN_LANES, two[1]);
    }
    for (; i < count; i += NN_LANES) {
        uint32_t left = count - i < NN_LANES ? (uint32_t)(count - i) : NN_LANES;
        v16 one = v16_load_part(x + i, left);
        v16_silu_many(&one, 1, false);
        v16_store_part(x + i, one, left);
    }
}

void NN_NAME(to_act_bf16)(const float *x, void *out, size_t count)
{
    uint16_t *to = out;
    size_t i = 0;
    for (; i + NN_LANES <= count; i += NN_LANES) {
        v16_store_bf16(to + i, v16_load(x + i));
    }
    if (i < count) {
        uint32_t left = (uint32_t)(count - i);
        v16_store_bf16_part(to + i, v16_load_part(x + i, left), left);
    }
}

/* Philox4x32-10 (base/rng.c) of 16 counters (tick, stream, block + lane, 0). */
NN_INLINE void philox(uint64_t key, uint32_t tick, uint32_t stream, uint32_t block, w16 out[4])
{
    uint32_t key0 = (uint32_t)key;
    uint32_t key1 = (uint32_t)(key >> 32);
    w16 c0 = w16_set1(tick);
    w16 c1 = w16_set1(stream);
    w16 c2 = w16_count_up(block);
    w16 c3 = w16_set1(0);
    for (int round = 0; round < 10; round++) {
        w16 high0;
        w16 low0;
        w16 high1;
        w16 low1;
        w16_multiply(c0, 0xD2511F53, &high0, &low0);
        w16_multiply(c2, 0xCD9E8D57, &high1, &low1);
        c0 = w16_xor(w16_xor(high1, c1), w16_set1(key0));
        c2 = w16_xor(w16_xor(high0, c3), w16_set1(key1));
        c1 = low1;
        c3 = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void NN_NAME(noise)(uint64_t key, uint32_t tick, uint32_t stream, uint32_t first, uint32_t count,
                    float *out)
{
    enum { STEP = 4 * NN_LANES };
    for (uint32_t i = 0; i < count; i += STEP) {
        w16 words[4];
        v16 values[4];
        philox(key, tick, stream, (first + i) / 4, words);
        for (int j = 0; j < 4; j++) {
            values[j] = v16_mul(w16_byte_sums(words[j], 510), v16_set1(NN_NOISE_SCALE));
        }
        if (count - i >= STEP) {
            v16_store_interleaved(out + i, values);
        } else {
            float all[STEP];
            v16_store_interleaved(all, values);
            for (uint32_t j = 0; j < count - i; j++) {
                out[i + j] = all[j];
            }
        }
    }
}

void NN_NAME(euler)(float *x, const float *base, const float *o, size_t positions,
                    uint32_t channels, uint32_t o_stride, float weight)
{
    const v16 factor = v16_set1(weight);
    for (size_t p = 0; p < positions; p++, x += channels, base += channels, o += o_stride) {
        for (uint32_t c = 0; c < channels; c += NN_LANES) {
            uint32_t left = channels - c < NN_LANES ? channels - c : NN_LANES;
            v16 target = v16_add(v16_load_part(base + c, left), v16_load_part(o + c, left));
            if (weight != 1.0f) {
                v16 from = v16_load_part(x + c, left);
                target = v16_fma(v16_sub(target, from), factor, from);
            }
            v16_store_part(x + c, target, left);
        }
    }
}

void NN_NAME(quantise)(const float *x, uint8_t *out, size_t count, struct nn_counts *counts)
{
    uint64_t bad = 0;
    uint64_t far = 0;
    for (size_t i = 0; i < count; i += NN_LANES) {
        uint32_t left = count - i < NN_LANES ? (uint32_t)(count - i) : NN_LANES;
        uint32_t not_finite;
        uint32_t saturated;
        v16_store_quantised(out + i, v16_load_part(x + i, left), left, NN_SATURATION, &not_finite,
                            &saturated);
        bad += (uint64_t)__builtin_popcount(not_finite);
        far += (uint64_t)__builtin_popcount(saturated);
    }
    counts->not_finite += bad;
    counts->saturated += far;
}
