/*
 * Reference products: y = a w + bias and the 3 x 3 convolution, with their epilogues. One output at
 * a time, as kernels/nn.h states it; weights are packed as they are stored, [n][k], rounded to the
 * activation type and kept as floats; integers as [n] scales, then [n][k] bytes.
 */
#include "kernels/ref/nn_ref.h"
#include "kernels/ref/nn_scalar.h"

size_t nn_packed_bytes_ref(uint32_t n, uint32_t k)
{
    return (size_t)n * k * sizeof(float);
}

static void pack(enum nn_precision precision, const float *w, uint32_t n, uint32_t k, void *out)
{
    for (size_t i = 0; i < (size_t)n * k; i++) {
        ((float *)out)[i] = nn_act_round(precision, w[i]);
    }
}

void nn_gemm_store_ref(enum nn_precision precision, const struct nn_gemm *g, uint32_t row,
                       uint32_t col, float y)
{
    size_t index = row * g->ldc + col;
    switch (g->epilogue) {
    case NN_STORE:
        g->c[index] = y;
        break;
    case NN_ADD_GATED:
        g->c[index] = g->gate != NULL ? fmaf(g->gate[col], y, g->c[index]) : g->c[index] + y;
        break;
    case NN_STORE_ACT:
        nn_act_put(precision, g->out, index, y);
        break;
    case NN_SILU_ACT:
        nn_act_put(precision, g->out, index, nn_silu_act(precision, y));
        break;
    }
}

/* Terms that are read from the activations at a time. */
enum { CHUNK = 256 };

static float gemm_one(enum nn_precision precision, const struct nn_gemm *g, uint32_t row,
                      uint32_t col)
{
    const float *w = (const float *)g->b + (size_t)col * g->k;
    float total = 0.0f;
    float a[CHUNK];
    for (uint32_t k = 0; k < g->k; k += CHUNK) {
        uint32_t count = g->k - k < CHUNK ? g->k - k : CHUNK;
        for (uint32_t i = 0; i < count; i++) {
            a[i] = nn_act_get(precision, g->a, row * g->lda + k + i);
        }
        total = nn_dot(precision, total, a, w + k, count);
    }
    return g->bias != NULL ? total + g->bias[col] : total;
}

static void gemm(enum nn_precision precision, const struct nn_gemm *g, uint32_t first_row,
                 uint32_t end_row)
{
    for (uint32_t row = first_row; row < end_row; row++) {
        for (uint32_t col = 0; col < g->n; col++) {
            nn_gemm_store_ref(precision, g, row, col, gemm_one(precision, g, row, col));
        }
    }
}

/* Sum over the 3 x 3 neighbourhood of (row, col), for output channel o. */
static float conv_one(enum nn_precision precision, const struct nn_conv *c, uint32_t row,
                      uint32_t col, uint32_t o)
{
    uint32_t depth = nn_conv_depth(c->in_count, c->in_channels);
    const float *w = (const float *)c->b + (size_t)o * 9 * depth;
    float total = 0.0f;
    for (uint32_t tap = 0; tap < 9; tap++) {
        size_t position = (size_t)(row + tap / 3) * (c->cols + 2) + col + tap % 3;
        for (uint32_t i = 0; i < c->in_count; i++) {
            uint32_t channels = c->in_channels[i];
            for (uint32_t k = 0; k < channels; k += NN_BLOCK, w += NN_BLOCK) {
                float a[NN_BLOCK];
                for (uint32_t j = 0; j < NN_BLOCK; j++) {
                    a[j] = nn_act_get(precision, c->in[i], position * channels + k + j);
                }
                total = nn_dot(precision, total, a, w, NN_BLOCK);
            }
        }
    }
    return total;
}

void nn_conv_store_ref(enum nn_precision precision, const struct nn_conv *c, uint32_t row,
                       uint32_t col, uint32_t o, float total)
{
    size_t flat = ((size_t)row * c->cols + col) * c->out_channels + o;
    size_t mapped = ((size_t)(row + 1) * (c->cols + 2) + col + 1) * c->out_channels + o;
    float y = total + c->bias[o];
    if (c->add != NULL) {
        y += c->add[flat];
    }
    if (c->scale != NULL) {
        y = fmaf(y, 1.0f + c->scale[o], c->shift[o]);
    }
    if (c->silu) {
        y = nn_silu_act(precision, y);
    }
    if (c->out_f32 != NULL) {
        c->out_f32[flat] = y;
    } else {
        nn_act_put(precision, c->out, mapped, y);
    }
}

static void conv3x3(enum nn_precision precision, const struct nn_conv *c, uint32_t first_row,
                    uint32_t end_row)
{
    for (uint32_t row = first_row; row < end_row; row++) {
        for (uint32_t col = 0; col < c->cols; col++) {
            for (uint32_t o = 0; o < c->out_channels; o++) {
                nn_conv_store_ref(precision, c, row, col, o, conv_one(precision, c, row, col, o));
            }
        }
    }
}

void nn_pack_fp32_ref(const float *w, uint32_t n, uint32_t k, void *out)
{
    pack(NN_FP32, w, n, k, out);
}

void nn_pack_bf16_ref(const float *w, uint32_t n, uint32_t k, void *out)
{
    pack(NN_BF16, w, n, k, out);
}

void nn_gemm_fp32_ref(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row)
{
    gemm(NN_FP32, g, first_row, end_row);
}

void nn_gemm_bf16_ref(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row)
{
    gemm(NN_BF16, g, first_row, end_row);
}

void nn_conv3x3_fp32_ref(const struct nn_conv *c, uint32_t first_row, uint32_t end_row)
{
    conv3x3(NN_FP32, c, first_row, end_row);
}

void nn_conv3x3_bf16_ref(const struct nn_conv *c, uint32_t first_row, uint32_t end_row)
{
    conv3x3(NN_BF16, c, first_row, end_row);
}

size_t nn_packed_bytes_int8_ref(uint32_t n, uint32_t k)
{
    return n * (sizeof(float) + k);
}

void nn_pack_int8_ref(const float *w, uint32_t n, uint32_t k, void *out)
{
    float *scale = out;
    int8_t *q = (int8_t *)(scale + n);
    for (uint32_t col = 0; col < n; col++, w += k, q += k) {
        struct nn_int8_step step = nn_int8_weights(w, k);
        scale[col] = step.scale;
        for (uint32_t i = 0; i < k; i++) {
            q[i] = nn_to_int8(w[i], step);
        }
    }
}

void nn_gemm_int8_ref(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row)
{
    const float *scale = g->b;
    for (uint32_t row = first_row; row < end_row; row++) {
        const int8_t *a = (const int8_t *)g->a + row * g->lda;
        for (uint32_t col = 0; col < g->n; col++) {
            const int8_t *w = (const int8_t *)(scale + g->n) + (size_t)col * g->k;
            int32_t sum = 0;
            for (uint32_t k = 0; k < g->k; k++) {
                sum += a[k] * w[k];
            }
            float y = (float)sum * (g->rows[row].scale * scale[col]);
            nn_gemm_store_ref(NN_BF16, g, row, col, g->bias != NULL ? y + g->bias[col] : y);
        }
    }
}
