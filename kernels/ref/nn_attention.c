/*
 * Reference attention: within a frame, and of a token over its own past.
 *
 * Both round every operand of a product to the activation type, softmax weights included, and
 * divide by the sum of the weights before rounding, at the end. Weights are exp(logit - maximum),
 * so at most 1. The sum of the weights runs in 16 interleaved partial sums (attention) or in order
 * (temporal: newest page first, the learned sink last).
 */
#include "kernels/ref/nn_ref.h"
#include "kernels/ref/nn_scalar.h"

/* Columns of one head of q, k or v, rounded; the rotary turn first where cosine is not NULL. */
static void head_load(enum nn_precision precision, const struct nn_attention *a, size_t offset,
                      bool turn, float out[][NN_HEAD])
{
    for (uint32_t t = 0; t < a->tokens; t++) {
        const float *x = a->qkv + (size_t)t * 3 * a->width + offset;
        const float *cosine = a->cosine + (size_t)t * (NN_HEAD / 2);
        const float *sine = a->sine + (size_t)t * (NN_HEAD / 2);
        for (uint32_t p = 0; p < NN_HEAD / 2; p++) {
            float first = x[2 * p];
            float second = x[2 * p + 1];
            if (turn) {
                first = fmaf(x[2 * p], cosine[p], -(x[2 * p + 1] * sine[p]));
                second = fmaf(x[2 * p + 1], cosine[p], x[2 * p] * sine[p]);
            }
            out[t][2 * p] = nn_act_round(precision, first);
            out[t][2 * p + 1] = nn_act_round(precision, second);
        }
    }
}

/* Logits to weights exp(logit - maximum); returns 1 / their sum. */
static float softmax(float *logits, uint32_t count)
{
    float maximum = logits[0];
    for (uint32_t j = 1; j < count; j++) {
        maximum = maximum > logits[j] ? maximum : logits[j];
    }
    float lanes[NN_LANES] = {0};
    for (uint32_t j = 0; j < count; j++) {
        logits[j] = nn_exp(logits[j] - maximum);
        lanes[j % NN_LANES] += logits[j];
    }
    return 1.0f / nn_lanes_sum(lanes);
}

static void attention_head(enum nn_precision precision, const struct nn_attention *a, uint32_t head)
{
    float q[NN_TOKENS_MAX][NN_HEAD];
    float k[NN_TOKENS_MAX][NN_HEAD];
    float v[NN_TOKENS_MAX][NN_HEAD];
    size_t offset = (size_t)head * NN_HEAD;
    head_load(precision, a, offset, true, q);
    head_load(precision, a, a->width + offset, true, k);
    head_load(precision, a, 2 * (size_t)a->width + offset, false, v);
    /* NN_BF16 takes blocks of 32 terms: tokens that are not there have weight and value 0. */
    uint32_t terms = a->tokens;
    for (; precision == NN_BF16 && terms % NN_BLOCK != 0; terms++) {
        memset(v[terms], 0, sizeof v[terms]);
    }
    for (uint32_t i = 0; i < a->tokens; i++) {
        float weights[NN_TOKENS_MAX] = {0};
        for (uint32_t j = 0; j < a->tokens; j++) {
            weights[j] = nn_dot(precision, 0.0f, q[i], k[j], NN_HEAD) * NN_LOGIT_SCALE;
        }
        float inverse = softmax(weights, a->tokens);
        for (uint32_t j = 0; j < a->tokens; j++) {
            weights[j] = nn_act_round(precision, weights[j]);
        }
        for (uint32_t c = 0; c < NN_HEAD; c++) {
            float column[NN_TOKENS_MAX];
            for (uint32_t j = 0; j < terms; j++) {
                column[j] = v[j][c];
            }
            nn_act_put(precision, a->out, (size_t)i * a->width + offset + c,
                       nn_dot(precision, 0.0f, weights, column, terms) * inverse);
        }
    }
}

/* q . k of one head: 16 partial sums of two terms, then halves. */
static float temporal_dot(const float q[NN_HEAD], const float k[NN_HEAD])
{
    float lanes[NN_LANES];
    for (uint32_t j = 0; j < NN_LANES; j++) {
        lanes[j] = fmaf(q[j + NN_LANES], k[j + NN_LANES], q[j] * k[j]);
    }
    return nn_lanes_sum(lanes);
}

static void temporal_head(enum nn_precision precision, const struct nn_temporal *t, uint32_t token,
                          uint32_t head)
{
    size_t offset = (size_t)head * NN_HEAD;
    float q[NN_HEAD];
    float k[NN_HEAD];
    float values[NN_PAGES_MAX + 1][NN_HEAD];
    float logits[NN_PAGES_MAX + 1];
    uint32_t count = 0;
    for (uint32_t c = 0; c < NN_HEAD; c++) {
        q[c] = nn_act_round(precision, t->q[(size_t)token * t->width + offset + c]);
    }
    for (uint32_t p = 0; p < t->pages; p++) {
        if (t->index[p][token] < 0) {
            continue;
        }
        size_t row = (size_t)t->index[p][token] * t->width + offset;
        for (uint32_t c = 0; c < NN_HEAD; c++) {
            k[c] = nn_act_get(precision, t->k[p], row + c);
            values[count][c] = nn_act_get(precision, t->v[p], row + c);
        }
        logits[count++] =
            fmaf(temporal_dot(q, k), NN_LOGIT_SCALE, t->bias[(size_t)head * t->bias_stride + p]);
    }
    for (uint32_t c = 0; c < NN_HEAD; c++) {
        k[c] = nn_act_round(precision, t->null_k[offset + c]);
        values[count][c] = nn_act_round(precision, t->null_v[offset + c]);
    }
    logits[count++] = temporal_dot(q, k) * NN_LOGIT_SCALE;
    float maximum = logits[0];
    for (uint32_t i = 1; i < count; i++) {
        maximum = maximum > logits[i] ? maximum : logits[i];
    }
    float sum = 0.0f;
    float out[NN_HEAD] = {0};
    for (uint32_t i = 0; i < count; i++) {
        float weight = nn_exp(logits[i] - maximum);
        sum += weight;
        for (uint32_t c = 0; c < NN_HEAD; c++) {
            out[c] = fmaf(nn_act_round(precision, weight), values[i][c], out[c]);
        }
    }
    float inverse = 1.0f / sum;
    for (uint32_t c = 0; c < NN_HEAD; c++) {
        nn_act_put(precision, t->out, (size_t)token * t->width + offset + c, out[c] * inverse);
    }
}

static void attention(enum nn_precision precision, const struct nn_attention *a,
                      uint32_t first_head, uint32_t end_head)
{
    for (uint32_t head = first_head; head < end_head; head++) {
        attention_head(precision, a, head);
    }
}

static void temporal(enum nn_precision precision, const struct nn_temporal *t, uint32_t first_token,
                     uint32_t end_token)
{
    for (uint32_t token = first_token; token < end_token; token++) {
        for (uint32_t head = 0; head < t->width / NN_HEAD; head++) {
            temporal_head(precision, t, token, head);
        }
    }
}

void nn_attention_fp32_ref(const struct nn_attention *a, uint32_t first_head, uint32_t end_head)
{
    attention(NN_FP32, a, first_head, end_head);
}

void nn_attention_bf16_ref(const struct nn_attention *a, uint32_t first_head, uint32_t end_head)
{
    attention(NN_BF16, a, first_head, end_head);
}

void nn_temporal_fp32_ref(const struct nn_temporal *t, uint32_t first_token, uint32_t end_token)
{
    temporal(NN_FP32, t, first_token, end_token);
}

void nn_temporal_bf16_ref(const struct nn_temporal *t, uint32_t first_token, uint32_t end_token)
{
    temporal(NN_BF16, t, first_token, end_token);
}
