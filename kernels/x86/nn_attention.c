/*
 * Attention on the vector units, compiled for AVX2 and for AVX-512; ref/nn_attention.c is the
 * definition. Within a frame, logits and outputs are products of tiles of rows
 * (x86/nn_matmul.h); over the past, the lanes are heads.
 */
#include "kernels/x86/nn_matmul.h"
#include "kernels/x86/nn_rotary.h"
#include "kernels/x86/nn_x86.h"

enum { HEAD_FLOATS = NN_TOKENS_MAX * NN_HEAD };

/* One head: operands rounded to the activation type, keys and values packed as panels. */
struct head {
    _Alignas(64) float query[HEAD_FLOATS]; /* act [tokens][32] */
    float key[HEAD_FLOATS];                /* panels over tokens, each [32][width] */
    float value[HEAD_FLOATS];              /* panels over the 32 columns, each of padded terms */
    float logits[MATMUL_ROWS][NN_TOKENS_MAX];
    float weights[MATMUL_ROWS][NN_TOKENS_MAX]; /* act, rows NN_TOKENS_MAX apart */
    float inverse[MATMUL_ROWS];
    float tile[MATMUL_ROWS * MATMUL_COLUMNS];
    uint32_t padded; /* tokens, rounded up to 32 */
    uint32_t terms;  /* of a sum over tokens */
};

NN_INLINE void load_queries(enum nn_precision precision, const struct nn_attention *a,
                            size_t offset, struct head *head)
{
    for (uint32_t t = 0; t < a->tokens; t++) {
        for (uint32_t c = 0; c < NN_HEAD; c += NN_LANES) {
            v16 x = v16_load(a->qkv + (size_t)t * 3 * a->width + offset + c);
            act_store(precision, head->query, t * NN_HEAD + c, rotary_turn(a, t, c, x));
        }
    }
}

NN_INLINE void load_keys(enum nn_precision precision, const struct nn_attention *a, size_t offset,
                         struct head *head)
{
    float *panel = head->key;
    uint32_t width;
    for (uint32_t first = 0; first < head->padded; first += width) {
        width = matmul_width(precision, head->padded, first);
        for (uint32_t j = 0; j < width; j++) {
            float row[NN_HEAD] = {0};
            uint32_t t = first + j;
            for (uint32_t c = 0; c < NN_HEAD && t < a->tokens; c += NN_LANES) {
                v16 x = v16_load(a->qkv + (size_t)t * 3 * a->width + a->width + offset + c);
                v16_store(row + c, act_round(precision, rotary_turn(a, t, c, x)));
            }
            for (uint32_t c = 0; c < NN_HEAD; c += 4) {
                panel_store_one(precision, panel + panel_rows(precision, c) * width + j, width,
                                row + c);
            }
        }
        panel += width * panel_rows(precision, NN_HEAD);
    }
}

NN_INLINE void load_values(enum nn_precision precision, const struct nn_attention *a, size_t offset,
                           struct head *head)
{
    float *panel = head->value;
    uint32_t width;
    for (uint32_t first = 0; first < NN_HEAD; first += width) {
        width = matmul_width(precision, NN_HEAD, first);
        for (uint32_t t = 0; t < head->padded; t += 4) {
            float *row = panel + panel_rows(precision, t) * width;
            for (uint32_t c = 0; c < width; c += NN_LANES) {
                v16 terms[4];
                for (uint32_t i = 0; i < 4; i++) {
                    const float *from = a->qkv + (size_t)(t + i) * 3 * a->width + 2 * a->width;
                    v16 x = t + i < a->tokens ? v16_load(from + offset + first + c) : v16_zero();
                    terms[i] = act_round(precision, x);
                }
                panel_store(precision, row + c, width, terms);
            }
        }
        panel += width * panel_rows(precision, head->padded);
    }
}

/* Row i of the logits to weights; lanes past the last token count for nothing. */
NN_INLINE void softmax(enum nn_precision precision, struct head *head, uint32_t i, uint32_t tokens)
{
    float *logits = head->logits[i];
    for (uint32_t j = tokens; j % NN_LANES != 0; j++) {
        logits[j] = logits[0];
    }
    v16 largest = v16_load(logits);
    for (uint32_t j = NN_LANES; j < tokens; j += NN_LANES) {
        largest = v16_max(largest, v16_load(logits + j));
    }
    const v16 maximum = v16_set1(v16_largest(largest));
    v16 sum = v16_zero();
    for (uint32_t j = 0; j < head->padded; j += NN_LANES) {
        v16 e = v16_zero();
        if (j < tokens) {
            e = v16_exp(v16_sub(v16_load(logits + j), maximum));
        }
        if (j < tokens && tokens - j < NN_LANES) {
            v16_store(logits + j, e);
            e = v16_load_part(logits + j, tokens - j);
        }
        sum = v16_add(sum, e);
        act_store(precision, head->weights, i * NN_TOKENS_MAX + j, e);
    }
    head->inverse[i] = 1.0f / v16_sum(sum);
}

NN_INLINE void attend_rows(enum nn_precision precision, const struct nn_attention *a, size_t offset,
                           struct head *head, uint32_t row, uint32_t rows)
{
    const struct matmul logits = {.segments = {{head->query, NN_HEAD, NN_HEAD}}, .count = 1};
    const struct matmul values = {.segments = {{head->weights, NN_TOKENS_MAX, head->terms}},
                                  .count = 1};
    uint32_t width;
    for (uint32_t col = 0; col < head->padded; col += width) {
        width = matmul_width(precision, head->padded, col);
        const float *keys = head->key + col * panel_rows(precision, NN_HEAD);
        matmul_tile(precision, &logits, row, rows, keys, width, head->tile);
        for (uint32_t i = 0; i < rows; i++) {
            for (uint32_t j = 0; j < width; j += NN_LANES) {
                v16 x = v16_load(head->tile + i * MATMUL_COLUMNS + j);
                v16_store(head->logits[i] + col + j, v16_mul(x, v16_set1(NN_LOGIT_SCALE)));
            }
        }
    }
    for (uint32_t i = 0; i < rows; i++) {
        softmax(precision, head, i, a->tokens);
    }
    for (uint32_t col = 0; col < NN_HEAD; col += width) {
        width = matmul_width(precision, NN_HEAD, col);
        const float *panel = head->value + col * panel_rows(precision, head->padded);
        matmul_tile(precision, &values, 0, rows, panel, width, head->tile);
        for (uint32_t i = 0; i < rows; i++) {
            for (uint32_t j = 0; j < width; j += NN_LANES) {
                v16 x = v16_load(head->tile + i * MATMUL_COLUMNS + j);
                act_store(precision, a->out, (size_t)(row + i) * a->width + offset + col + j,
                          v16_mul(x, v16_set1(head->inverse[i])));
            }
        }
    }
}

NN_INLINE void attention(enum nn_precision precision, const struct nn_attention *a,
                         uint32_t first_head, uint32_t end_head)
{
    struct head head;
    head.padded = (a->tokens + NN_BLOCK - 1) / NN_BLOCK * NN_BLOCK;
    head.terms = precision == NN_BF16 ? head.padded : a->tokens;
    const uint32_t step = matmul_rows(precision);
    for (uint32_t h = first_head; h < end_head; h++) {
        size_t offset = (size_t)h * NN_HEAD;
        load_queries(precision, a, offset, &head);
        load_keys(precision, a, offset, &head);
        load_values(precision, a, offset, &head);
        for (uint32_t row = 0; row < a->tokens; row += step) {
            uint32_t rows = a->tokens - row < step ? a->tokens - row : step;
            attend_rows(precision, a, offset, &head, row, rows);
        }
    }
}

enum { ENTRIES = NN_PAGES_MAX + 1 };

/* Up to 16 heads of a temporal call, and what they share over all tokens. */
struct heads {
    uint32_t first;
    uint32_t count;
    float bias[NN_PAGES_MAX][NN_LANES]; /* by page, then head */
    float null_key[NN_LANES * NN_HEAD]; /* rounded */
    float null_value[NN_LANES * NN_HEAD];
    float query[NN_LANES * NN_HEAD]; /* of the present token, rounded */
    v16 logits[ENTRIES];
    float weights[ENTRIES][NN_LANES]; /* rounded */
};

NN_INLINE void heads_init(enum nn_precision precision, const struct nn_temporal *t, uint32_t first,
                          struct heads *heads)
{
    heads->first = first;
    heads->count = t->width / NN_HEAD - first < NN_LANES ? t->width / NN_HEAD - first : NN_LANES;
    for (uint32_t p = 0; p < t->pages; p++) {
        for (uint32_t h = 0; h < NN_LANES; h++) {
            heads->bias[p][h] =
                h < heads->count ? t->bias[(size_t)(first + h) * t->bias_stride + p] : 0.0f;
        }
    }
    for (uint32_t c = 0; c < heads->count * NN_HEAD; c += NN_LANES) {
        size_t at = (size_t)first * NN_HEAD + c;
        v16_store(heads->null_key + c, act_round(precision, v16_load(t->null_k + at)));
        v16_store(heads->null_value + c, act_round(precision, v16_load(t->null_v + at)));
    }
}

/* q . k of each head; `keys` act (or float) from element `at` on. */
NN_INLINE v16 dots(enum nn_precision precision, const struct heads *heads, const void *keys,
                   size_t at)
{
    v16 rows[NN_LANES];
    for (uint32_t h = 0; h < NN_LANES; h++) {
        rows[h] = v16_zero();
    }
    for (uint32_t h = 0; h < heads->count; h++) {
        const float *q = heads->query + h * NN_HEAD;
        v16 low = v16_mul(v16_load(q), act_load(precision, keys, at + h * NN_HEAD));
        rows[h] = v16_fma(v16_load(q + NN_LANES),
                          act_load(precision, keys, at + h * NN_HEAD + NN_LANES), low);
    }
    return v16_sum_rows(rows);
}

NN_INLINE void temporal_token(enum nn_precision precision, const struct nn_temporal *t,
                              struct heads *heads, uint32_t token)
{
    const size_t column = (size_t)heads->first * NN_HEAD;
    const size_t place = (size_t)token * t->width + column;
    uint32_t page[NN_PAGES_MAX] = {0};
    uint32_t count = 0;
    for (uint32_t c = 0; c < heads->count * NN_HEAD; c += NN_LANES) {
        v16_store(heads->query + c, act_round(precision, v16_load(t->q + place + c)));
    }
    for (uint32_t p = 0; p < t->pages; p++) {
        if (t->index[p][token] >= 0) {
            size_t at = (size_t)t->index[p][token] * t->width + column;
            heads->logits[count] = v16_fma(dots(precision, heads, t->k[p], at),
                                           v16_set1(NN_LOGIT_SCALE), v16_load(heads->bias[p]));
            page[count++] = p;
        }
    }
    heads->logits[count] =
        v16_mul(dots(NN_FP32, heads, heads->null_key, 0), v16_set1(NN_LOGIT_SCALE));
    v16 maximum = heads->logits[0];
    for (uint32_t i = 1; i <= count; i++) {
        maximum = v16_max(maximum, heads->logits[i]);
    }
    v16 sum = v16_zero();
    for (uint32_t i = 0; i <= count; i++) {
        v16 e = v16_exp(v16_sub(heads->logits[i], maximum));
        sum = v16_add(sum, e);
        v16_store(heads->weights[i], act_round(precision, e));
    }
    float inverse[NN_LANES];
    v16_store(inverse, v16_div(v16_set1(1.0f), sum));
    for (uint32_t h = 0; h < heads->count; h++) {
        v16 low = v16_zero();
        v16 high = v16_zero();
        for (uint32_t i = 0; i < count; i++) {
            size_t at = (size_t)t->index[page[i]][token] * t->width + column + h * NN_HEAD;
            const void *values = t->v[page[i]];
            v16 weight = v16_set1(heads->weights[i][h]);
            low = v16_fma(weight, act_load(precision, values, at), low);
            high = v16_fma(weight, act_load(precision, values, at + NN_LANES), high);
        }
        v16 weight = v16_set1(heads->weights[count][h]);
        const float *null_value = heads->null_value + h * NN_HEAD;
        low = v16_fma(weight, v16_load(null_value), low);
        high = v16_fma(weight, v16_load(null_value + NN_LANES), high);
        size_t to = place + h * NN_HEAD;
        act_store(precision, t->out, to, v16_mul(low, v16_set1(inverse[h])));
        act_store(precision, t->out, to + NN_LANES, v16_mul(high, v16_set1(inverse[h])));
    }
}

NN_INLINE void temporal(enum nn_precision precision, const struct nn_temporal *t,
                        uint32_t first_token, uint32_t end_token)
{
    struct heads heads;
    for (uint32_t first = 0; first < t->width / NN_HEAD; first += NN_LANES) {
        heads_init(precision, t, first, &heads);
        for (uint32_t token = first_token; token < end_token; token++) {
            temporal_token(precision, t, &heads, token);
        }
    }
}

void NN_NAME(attention_fp32)(const struct nn_attention *a, uint32_t first_head, uint32_t end_head)
{
    attention(NN_FP32, a, first_head, end_head);
}

void NN_NAME(attention_bf16)(const struct nn_attention *a, uint32_t first_head, uint32_t end_head)
{
    attention(NN_BF16, a, first_head, end_head);
}

void NN_NAME(temporal_fp32)(const struct nn_temporal *t, uint32_t first_token, uint32_t end_token)
{
    temporal(NN_FP32, t, first_token, end_token);
}

void NN_NAME(temporal_bf16)(const struct nn_temporal *t, uint32_t first_token, uint32_t end_token)
{
    temporal(NN_BF16, t, first_token, end_token);
}
