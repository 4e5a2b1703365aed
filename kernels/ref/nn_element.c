/*
 * Reference kernels that work element by element or row by row: normalisation, SiLU, conversion,
 * noise, the sampler's step and the way back to bytes.
 */
#include "kernels/ref/nn_ref.h"
#include "kernels/ref/nn_scalar.h"

#include "base/rng.h"

static void norm_row(enum nn_precision precision, const float *x, uint32_t width, float one,
                     const float *scale, const float *shift, void *out, size_t first)
{
    float lanes[NN_LANES] = {0};
    for (uint32_t i = 0; i < width; i++) {
        lanes[i % NN_LANES] += x[i];
    }
    float mean = nn_lanes_sum(lanes) / (float)width;
    memset(lanes, 0, sizeof lanes);
    for (uint32_t i = 0; i < width; i++) {
        float d = x[i] - mean;
        lanes[i % NN_LANES] = fmaf(d, d, lanes[i % NN_LANES]);
    }
    float variance = nn_lanes_sum(lanes) / (float)width;
    float inverse = 1.0f / sqrtf(variance + NN_NORM_EPSILON);
    for (uint32_t i = 0; i < width; i++) {
        float y = (x[i] - mean) * inverse;
        if (scale != NULL) {
            y = fmaf(y, one + scale[i], shift[i]);
        }
        nn_act_put(precision, out, first + i, y);
    }
}

void nn_norm_fp32_ref(const float *x, uint32_t width, float one, const float *scale,
                      const float *shift, void *out, uint32_t first_row, uint32_t end_row)
{
    for (size_t row = first_row; row < end_row; row++) {
        norm_row(NN_FP32, x + row * width, width, one, scale, shift, out, row * width);
    }
}

void nn_norm_bf16_ref(const float *x, uint32_t width, float one, const float *scale,
                      const float *shift, void *out, uint32_t first_row, uint32_t end_row)
{
    for (size_t row = first_row; row < end_row; row++) {
        norm_row(NN_BF16, x + row * width, width, one, scale, shift, out, row * width);
    }
}

void nn_to_act_fp32_ref(const float *x, void *out, size_t count)
{
    memcpy(out, x, count * sizeof *x);
}

void nn_to_act_bf16_ref(const float *x, void *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ((uint16_t *)out)[i] = nn_to_bf16(x[i]);
    }
}

void nn_to_int8_ref(const void *act, uint32_t k, int8_t *q, size_t ldq, struct nn_int8_row *rows,
                    uint32_t first_row, uint32_t end_row)
{
    for (size_t row = first_row; row < end_row; row++) {
        const uint16_t *x = (const uint16_t *)act + row * k;
        uint32_t largest = 0;
        for (uint32_t i = 0; i < k; i++) {
            uint32_t bits = x[i] & 0x7FFF;
            largest = bits > largest ? bits : largest;
        }
        struct nn_int8_step step = nn_int8_step(largest << 16);
        rows[row] = (struct nn_int8_row){.scale = step.scale};
        for (uint32_t i = 0; i < k; i++) {
            q[row * ldq + i] = nn_to_int8(nn_from_bf16(x[i]), step);
            rows[row].sum += q[row * ldq + i];
        }
    }
}

void nn_silu_ref(float *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        x[i] = nn_silu(x[i]);
    }
}

void nn_noise_ref(uint64_t key, uint32_t tick, uint32_t stream, uint32_t first, uint32_t count,
                  float *out)
{
    for (uint32_t i = 0; i < count; i += 4) {
        const uint32_t counter[4] = {tick, stream, (first + i) / 4, 0};
        uint32_t words[4];
        rng_philox(key, counter, words);
        for (uint32_t j = 0; j < 4 && i + j < count; j++) {
            uint32_t word = words[j];
            uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
            out[i + j] = (float)((int32_t)sum - 510) * NN_NOISE_SCALE;
        }
    }
}

void nn_euler_ref(float *x, const float *base, const float *o, size_t positions, uint32_t channels,
                  uint32_t o_stride, float weight)
{
    for (size_t p = 0; p < positions; p++) {
        for (uint32_t c = 0; c < channels; c++) {
            size_t i = p * channels + c;
            float target = base[i] + o[p * o_stride + c];
            x[i] = weight == 1.0f ? target : fmaf(target - x[i], weight, x[i]);
        }
    }
}

void nn_quantise_ref(const float *x, uint8_t *out, size_t count, struct nn_counts *counts)
{
    for (size_t i = 0; i < count; i++) {
        float magnitude = fabsf(x[i]);
        if (!(magnitude <= FLT_MAX)) {
            counts->not_finite++;
            out[i] = 128;
            continue;
        }
        counts->saturated += magnitude > NN_SATURATION;
        float clamped = x[i] < -1.0f ? -1.0f : x[i];
        clamped = clamped > 1.0f ? 1.0f : clamped;
        int32_t byte =
            (int32_t)fmaf(clamped, 127.5f, 128.0f); /* at least 0.5: truncation is floor */
        out[i] = (uint8_t)(byte > 255 ? 255 : byte);
    }
}
