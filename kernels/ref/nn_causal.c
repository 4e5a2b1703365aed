/*
 * Reference kernels of a small causal transformer, and the choice among their variants.
 */
#include "kernels/nn_causal.h"

#include "base/dmath.h"
#include "kernels/cpu.h"
#include "kernels/nn_causal_internal.h"
#include "kernels/ref/nn_scalar.h"

/* 1 / the deviation of a row, and its mean. */
static float inverse_deviation(const float *x, uint32_t width, float *mean)
{
    float lanes[NN_LANES] = {0};
    for (uint32_t i = 0; i < width; i++) {
        lanes[i % NN_LANES] += x[i];
    }
    *mean = nn_lanes_sum(lanes) / (float)width;
    memset(lanes, 0, sizeof lanes);
    for (uint32_t i = 0; i < width; i++) {
        float d = x[i] - *mean;
        lanes[i % NN_LANES] = fmaf(d, d, lanes[i % NN_LANES]);
    }
    float variance = nn_lanes_sum(lanes) / (float)width;
    return 1.0f / sqrtf(variance + NN_CAUSAL_EPSILON);
}

static void norm_ref(const float *x, uint32_t width, const float *scale, const float *shift,
                     float *out, size_t rows)
{
    for (; rows > 0; rows--, x += width, out += width) {
        float mean;
        const float inverse = inverse_deviation(x, width, &mean);
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

/* out[0 .. width - 1] = what weights of these `count` products give of the rows v. */
static void mix(float *products, const float *v, size_t stride, uint32_t count, uint32_t width,
                float *out)
{
    float lanes[NN_LANES] = {0};
    float largest = -INFINITY;
    for (uint32_t j = 0; j < count; j++) {
        products[j] *= NN_LOGIT_SCALE;
        largest = products[j] > largest ? products[j] : largest;
    }
    for (uint32_t j = 0; j < count; j++) {
        products[j] = nn_exp(products[j] - largest);
        lanes[j % NN_LANES] += products[j];
    }
    float inverse = 1.0f / nn_lanes_sum(lanes);
    for (uint32_t c = 0; c < width; c++) {
        float total = 0.0f;
        for (uint32_t j = 0; j < count; j++) {
            total = fmaf(products[j], v[j * stride + c], total);
        }
        out[c] = total * inverse;
    }
}

/* One query of one head; `count` tokens are not later than it. */
static void attend(const float *q, const float *k, const float *v, size_t stride, uint32_t count,
                   float *out)
{
    float products[NN_CAUSAL_TOKENS];
    for (uint32_t j = 0; j < count; j++) {
        products[j] = nn_dot(NN_FP32, 0.0f, q, k + j * stride, NN_CAUSAL_HEAD);
    }
    mix(products, v, stride, count, NN_CAUSAL_HEAD, out);
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

/* from + numbers * their matrix [NN_CAUSAL_NUMBERS][columns], of one column. */
static float add_numbers(float from, const float *numbers, const float *matrix, uint32_t columns)
{
    for (uint32_t k = 0; k < NN_CAUSAL_NUMBERS; k++) {
        from = fmaf(numbers[k], matrix[(size_t)k * columns], from);
    }
    return from;
}

static void enter_ref(const struct nn_causal_entry *e, const float (*numbers)[NN_CAUSAL_NUMBERS],
                      const uint16_t *words, uint32_t tokens, float *x, float *images)
{
    const size_t half = e->half;
    for (size_t t = 0; t < tokens; t++, x += 2 * half, images += e->columns) {
        const float *position = e->rows.positions + t * 2 * half;
        for (uint32_t i = 0; i < half; i++) {
            const float y = add_numbers(e->rows.bias[i], numbers[t], e->rows.numbers + i, e->half);
            x[i] = y + position[i];
            x[half + i] = e->rows.words[words[t] * half + i] + position[half + i];
        }
        float mean;
        const float inverse = inverse_deviation(x, 2 * e->half, &mean);
        for (uint32_t i = 0; i < e->columns; i++) {
            const float word = e->images.words[(size_t)words[t] * e->columns + i];
            const float y = add_numbers(word, numbers[t], e->images.numbers + i, e->columns) +
                            e->images.positions[t * e->columns + i];
            images[i] = fmaf(y, inverse, e->images.shift[i]);
        }
    }
}

static void pool_ref(const struct nn_causal_pool *p, uint32_t first_sequence, uint32_t end_sequence)
{
    for (size_t s = first_sequence; s < end_sequence; s++) {
        const float *x = p->x + s * p->tokens * p->width;
        for (size_t h = 0; h < NN_CAUSAL_HEADS; h++) {
            const size_t at = (s * NN_CAUSAL_HEADS + h) * p->width;
            float products[NN_CAUSAL_TOKENS];
            for (uint32_t j = 0; j < p->tokens; j++) {
                float lanes[NN_LANES] = {0};
                for (uint32_t c = 0; c < p->width; c++) {
                    const float y = x[(size_t)j * p->width + c];
                    lanes[c % NN_LANES] = fmaf(p->q[at + c], y, lanes[c % NN_LANES]);
                }
                products[j] = nn_lanes_sum(lanes);
            }
            mix(products, x, p->width, p->tokens, p->width, p->out + at);
        }
    }
}

void nn_causal_kernels_init(struct nn_causal_kernels *kernels, uint32_t flags)
{
    *kernels = (struct nn_causal_kernels){"c",           norm_ref,  gelu_ref, weights_ref,
                                          attention_ref, enter_ref, pool_ref};
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
