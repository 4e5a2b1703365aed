/*
 * Reference kernels of a small causal transformer, and the choice among their variants.
 */
#include "kernels/nn_causal.h"

#include "base/dmath.h"
#include "kernels/cpu.h"
#include "kernels/nn_causal_internal.h"
#include "kernels/ref/nn_scalar.h"

static void norm_ref(const float *x, uint32_t width, const float *scale, const float *shift,
                     float *out, size_t rows)
{
    for (; rows > 0; rows--, x += width, out += width) {
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
        float inverse = 1.0f / sqrtf(variance + NN_CAUSAL_EPSILON);
        for (uint32_t i = 0; i < width; i++) {
            out[i] = fmaf((x[i] - mean) * inverse, scale[i], shift[i]);
        }
    }
}

static void gelu_ref(float *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float cube = x[i] * x[i] * NN_GELU_CUBE;
        x[i] *= nn_logistic(fmaf(cube, x[i], x[i]) * NN_GELU_FACTOR);
    }
}

static void weights_ref(const float *logits, float temperature, float *out, size_t count)
{
    float largest = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        out[i] = logits[i] / temperature;
        largest = out[i] > largest ? out[i] : largest;
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)dmath_exp((double)(out[i] - largest));
    }
}

/* One query of one head; `count` tokens are not later than it. */
static void attend(const float *q, const float *k, const float *v, size_t stride, uint32_t count,
                   float *out)
{
    float weights[NN_CAUSAL_TOKENS];
    float lanes[NN_LANES] = {0};
    float largest = -INFINITY;
    for (uint32_t j = 0; j < count; j++) {
        weights[j] = nn_dot(NN_FP32, 0.0f, q, k + j * stride, NN_CAUSAL_HEAD) * NN_LOGIT_SCALE;
        largest = weights[j] > largest ? weights[j] : largest;
    }
    for (uint32_t j = 0; j < count; j++) {
        weights[j] = nn_exp(weights[j] - largest);
        lanes[j % NN_LANES] += weights[j];
    }
    float inverse = 1.0f / nn_lanes_sum(lanes);
    for (uint32_t c = 0; c < NN_CAUSAL_HEAD; c++) {
        float total = 0.0f;
        for (uint32_t j = 0; j < count; j++) {
            total = fmaf(weights[j], v[j * stride + c], total);
        }
        out[c] = total * inverse;
    }
}

static void attention_ref(const struct nn_causal *a, uint32_t first_sequence, uint32_t end_sequence)
{
    const uint32_t queries = a->tokens - a->first;
    const size_t width = (size_t)a->heads * NN_CAUSAL_HEAD;
    for (size_t s = first_sequence; s < end_sequence; s++) {
        for (uint32_t i = 0; i < queries; i++) {
            for (uint32_t h = 0; h < a->heads; h++) {
                const size_t head = (size_t)h * NN_CAUSAL_HEAD;
                const size_t past = s * a->tokens * a->kv_stride + head;
                attend(a->q + (s * queries + i) * a->q_stride + head, a->k + past, a->v + past,
                       a->kv_stride, a->first + i + 1, a->out + (s * queries + i) * width + head);
            }
        }
    }
}

void nn_causal_kernels_init(struct nn_causal_kernels *kernels, uint32_t flags)
{
    *kernels = (struct nn_causal_kernels){"c", norm_ref, gelu_ref, weights_ref, attention_ref};
#if defined(__x86_64__)
    if (flags & CPU_FLAG_AVX2) {
        nn_causal_table_avx2(kernels);
    }
    if (flags & CPU_FLAG_AVX512) {
        nn_causal_table_avx512(kernels);
    }
#else
    (void)flags;
#endif
}
