/*
 * Reference kernels of models that no instruction set has a variant for: heads of any dimension,
 * keys and values that several heads share, any number of tokens, and products of e4m3.
 *
 * Operands are numbers of the activation type or of e4m3, whose products are exact in float; sums
 * of a head's terms and of a chunk run in 16 interleaved partial sums. Compilers may take several
 * lanes at once: that changes no order.
 */
#include "kernels/ref/nn_ref.h"
#include "kernels/ref/nn_scalar.h"

/* ---- numbers of e4m3 ---- */

enum { E4M3_LARGEST = 0x7E };

/* Nearest e4m3 (sign, four bits of exponent, three of fraction), ties to even, 448 beyond it. */
static uint8_t to_e4m3(float x)
{
    uint8_t sign = (uint8_t)(nn_bits(x) >> 24 & 0x80);
    float size = fabsf(x);
    if (size >= 448.0f) {
        return sign | E4M3_LARGEST;
    }
    if (size < 0x1p-6f) { /* multiples of 2^-9 */
        float shifted = size * 512.0f + NN_EXP_MAGIC;
        return sign | (uint8_t)(nn_bits(shifted) - nn_bits(NN_EXP_MAGIC));
    }
    uint32_t bits = nn_bits(size);
    return sign | (uint8_t)(((bits + 0x7FFFF + (bits >> 20 & 1)) >> 20) - ((127 - 7) << 3));
}

/* Value of a byte but NaN, which to_e4m3 never gives. */
static float e4m3_value(uint32_t byte)
{
    uint32_t size = byte & 0x7F;
    float value = size < 8 ? (float)size * 0x1p-9f : nn_from_bits((size + ((127 - 7) << 3)) << 20);
    return (byte & 0x80) != 0 ? -value : value;
}

/* count numbers to e4m3 of the returned scale: the largest magnitude is 448. A row below
 * NN_INT8_LEAST is zero with scale 0, one that is not finite zero with scale NaN. */
static float row_to_e4m3(const float *x, uint32_t count, uint8_t *out)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = nn_bits(x[i]) & 0x7FFFFFFF;
        largest = size > largest ? size : largest;
    }
    bool finite = largest < 0x7F800000;
    if (!finite || nn_from_bits(largest) < NN_INT8_LEAST) {
        memset(out, 0, count);
        return finite ? 0.0f : nn_from_bits(0x7FC00000);
    }
    float inverse = 448.0f / nn_from_bits(largest);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = to_e4m3(x[i] * inverse);
    }
    return nn_from_bits(largest) / 448.0f;
}

void nn_heads_to_e4m3_ref(const void *act, uint32_t dim, uint8_t *q, float *scale,
                          uint32_t first_row, uint32_t end_row)
{
    float x[NN_WIDE_HEAD_MAX];
    for (size_t row = first_row; row < end_row; row++) {
        for (uint32_t i = 0; i < dim; i++) {
            x[i] = nn_act_get(NN_BF16, act, row * dim + i);
        }
        scale[row] = row_to_e4m3(x, dim, q + row * dim);
    }
}

void nn_heads_from_e4m3_ref(const uint8_t *q, uint32_t dim, const float *scale, float *out,
                            uint32_t first_row, uint32_t end_row)
{
    for (size_t row = first_row; row < end_row; row++) {
        for (size_t i = row * dim; i < (row + 1) * dim; i++) {
            out[i] = e4m3_value(q[i]) * scale[row];
        }
    }
}

/* ---- attention ---- */

/* Numbers of a row of q, k and v. */
static size_t row_numbers(const struct nn_heads *h)
{
    return (size_t)(h->heads + 2 * h->kv_heads) * h->dim;
}

static void turn_token(enum nn_precision precision, const struct nn_heads *h, const float *cosine,
                       const float *sine, float *row)
{
    uint32_t turned = (h->heads + h->kv_heads) * h->dim;
    for (uint32_t i = 0; i < turned; i += 2) {
        uint32_t pair = i % h->dim / 2;
        float first = row[i] * cosine[pair] - row[i + 1] * sine[pair];
        float second = row[i + 1] * cosine[pair] + row[i] * sine[pair];
        row[i] = nn_act_round(precision, first);
        row[i + 1] = nn_act_round(precision, second);
    }
    for (size_t i = turned; i < row_numbers(h); i++) {
        row[i] = nn_act_round(precision, row[i]);
    }
}

static void turn(enum nn_precision precision, const struct nn_heads *h, const float *cosine,
                 const float *sine, float *qkv, uint32_t first_token, uint32_t end_token)
{
    for (size_t token = first_token; token < end_token; token++) {
        size_t pairs = token * (h->dim / 2);
        turn_token(precision, h, cosine + pairs, sine + pairs, qkv + token * row_numbers(h));
    }
}

static float dot(const float *a, const float *b, uint32_t count)
{
    float lanes[NN_LANES] = {0};
    for (uint32_t i = 0; i < count; i += NN_LANES) {
        for (uint32_t j = 0; j < NN_LANES; j++) {
            lanes[j] += a[i + j] * b[i + j];
        }
    }
    return nn_lanes_sum(lanes);
}

static float logit_scale(const struct nn_heads *h)
{
    return 1.0f / sqrtf((float)h->dim);
}

/* Keys that a query sees, each followed by its value kv_heads * dim numbers on. */
struct seen {
    const float *k[NN_WIDE_TOKENS_MAX];
    uint32_t count;
};

static void list_range(const struct nn_wide_attention *a, struct seen *seen)
{
    const float *k = a->qkv + (size_t)a->heads.heads * a->heads.dim;
    for (seen->count = 0; seen->count < a->tokens; seen->count++) {
        seen->k[seen->count] = k + seen->count * row_numbers(&a->heads);
    }
}

/* First and end of what is at most `reach` away of so many places. */
static void within(uint32_t at, uint32_t reach, uint32_t count, uint32_t *first, uint32_t *end)
{
    *first = at > reach ? at - reach : 0;
    *end = count - at > reach ? at + reach + 1 : count;
}

static void list_window(const struct nn_wide_attention *a, uint32_t query, struct seen *seen)
{
    const float *present = a->qkv + (size_t)a->heads.heads * a->heads.dim;
    const size_t past_row = (size_t)2 * a->heads.kv_heads * a->heads.dim;
    uint32_t rows[2];
    uint32_t cols[2];
    within(query / a->cols, a->reach, a->tokens / a->cols, &rows[0], &rows[1]);
    within(query % a->cols, a->reach, a->cols, &cols[0], &cols[1]);
    seen->count = 0;
    for (uint32_t frame = 0; frame <= a->pages; frame++) {
        for (uint32_t row = rows[0]; row < rows[1]; row++) {
            for (uint32_t col = cols[0]; col < cols[1]; col++) {
                size_t token = (size_t)row * a->cols + col;
                if (frame == 0) {
                    seen->k[seen->count++] = present + token * row_numbers(&a->heads);
                } else if (a->index[frame - 1][token] >= 0) {
                    seen->k[seen->count++] = a->past[frame - 1] + token * past_row;
                }
            }
        }
    }
}

/* One query of a head over what it sees. */
static void attend_query(enum nn_precision precision, const struct nn_wide_attention *a,
                         uint32_t query, uint32_t head, const struct seen *seen, float *weights)
{
    const struct nn_heads *h = &a->heads;
    const uint32_t kv_head = head / (h->heads / h->kv_heads);
    const size_t shared = (size_t)kv_head * h->dim;
    const size_t value = shared + (size_t)h->kv_heads * h->dim;
    const float *q = a->qkv + query * row_numbers(h) + (size_t)head * h->dim;
    const float scale = logit_scale(h);
    float maximum = -INFINITY;
    for (uint32_t j = 0; j < seen->count; j++) {
        weights[j] = dot(q, seen->k[j] + shared, h->dim) * scale;
        maximum = maximum > weights[j] ? maximum : weights[j];
    }
    float sums[NN_LANES] = {0};
    float out[NN_WIDE_HEAD_MAX] = {0};
    for (uint32_t j = 0; j < seen->count; j++) {
        float weight = nn_exp(weights[j] - maximum);
        sums[j % NN_LANES] += weight;
        weight = nn_act_round(precision, weight);
        for (uint32_t c = 0; c < h->dim; c++) {
            out[c] += weight * seen->k[j][value + c];
        }
    }
    float inverse = 1.0f / nn_lanes_sum(sums);
    for (uint32_t c = 0; c < h->dim; c++) {
        nn_act_put(precision, a->out, ((size_t)query * h->heads + head) * h->dim + c,
                   out[c] * inverse);
    }
}

static void attend(enum nn_precision precision, const struct nn_wide_attention *a,
                   uint32_t first_head, uint32_t end_head)
{
    float weights[NN_WIDE_TOKENS_MAX];
    struct seen seen;
    if (a->cols == 0) {
        list_range(a, &seen);
    }
    for (uint32_t query = 0; query < a->tokens; query++) {
        if (a->cols != 0) {
            list_window(a, query, &seen);
        }
        for (uint32_t head = first_head; head < end_head; head++) {
            attend_query(precision, a, query, head, &seen, weights);
        }
    }
}

/* ---- attention over the past ---- */

/* Keys or values of a page: row `row` and head `head` of those that heads share. */
static void read_page(enum nn_precision precision, const struct nn_heads *h, const void *from,
                      const float *scale, size_t row, uint32_t head, float out[NN_WIDE_HEAD_MAX])
{
    const size_t at = row * h->kv_heads + head;
    if (scale != NULL) {
        nn_heads_from_e4m3_ref((const uint8_t *)from + at * h->dim, h->dim, scale + at, out, 0, 1);
        return;
    }
    for (uint32_t c = 0; c < h->dim; c++) {
        out[c] = nn_act_get(precision, from, at * h->dim + c);
    }
}

static void temporal_head(enum nn_precision precision, const struct nn_temporal *t,
                          const struct nn_heads *h, uint32_t token, uint32_t head)
{
    const size_t own = ((size_t)token * h->heads + head) * h->dim;
    const uint32_t kv_head = head / (h->heads / h->kv_heads);
    const size_t shared = (size_t)kv_head * h->dim;
    float q[NN_WIDE_HEAD_MAX] = {0};
    float null_k[NN_WIDE_HEAD_MAX] = {0};
    float values[NN_PAGES_MAX + 1][NN_WIDE_HEAD_MAX];
    float logits[NN_PAGES_MAX + 1];
    float out[NN_WIDE_HEAD_MAX] = {0};
    uint32_t count = 0;
    for (uint32_t c = 0; c < h->dim; c++) {
        q[c] = nn_act_round(precision, t->q[own + c]);
    }
    for (uint32_t p = 0; p < t->pages; p++) {
        if (t->index[p][token] >= 0) {
            const size_t row = (size_t)t->index[p][token];
            float key[NN_WIDE_HEAD_MAX] = {0};
            read_page(precision, h, t->k[p], t->k_scale[p], row, kv_head, key);
            read_page(precision, h, t->v[p], t->v_scale[p], row, kv_head, values[count]);
            logits[count] =
                dot(q, key, h->dim) * logit_scale(h) + t->bias[(size_t)head * t->bias_stride + p];
            count++;
        }
    }
    for (uint32_t c = 0; c < h->dim; c++) {
        null_k[c] = nn_act_round(precision, t->null_k[shared + c]);
        values[count][c] = nn_act_round(precision, t->null_v[shared + c]);
    }
    logits[count++] = dot(q, null_k, h->dim) * logit_scale(h);
    float maximum = logits[0];
    for (uint32_t i = 1; i < count; i++) {
        maximum = maximum > logits[i] ? maximum : logits[i];
    }
    float sum = 0.0f;
    for (uint32_t i = 0; i < count; i++) {
        float weight = nn_exp(logits[i] - maximum);
        sum += weight;
        weight = nn_act_round(precision, weight);
        for (uint32_t c = 0; c < h->dim; c++) {
            out[c] += weight * values[i][c];
        }
    }
    float inverse = 1.0f / sum;
    for (uint32_t c = 0; c < h->dim; c++) {
        nn_act_put(precision, t->out, own + c, out[c] * inverse);
    }
}

static void temporal(enum nn_precision precision, const struct nn_temporal *t,
                     const struct nn_heads *h, uint32_t first_token, uint32_t end_token)
{
    for (uint32_t token = first_token; token < end_token; token++) {
        for (uint32_t head = 0; head < h->heads; head++) {
            temporal_head(precision, t, h, token, head);
        }
    }
}

void nn_turn_fp32_ref(const struct nn_heads *h, const float *cosine, const float *sine, float *qkv,
                      uint32_t first_token, uint32_t end_token)
{
    turn(NN_FP32, h, cosine, sine, qkv, first_token, end_token);
}

void nn_turn_bf16_ref(const struct nn_heads *h, const float *cosine, const float *sine, float *qkv,
                      uint32_t first_token, uint32_t end_token)
{
    turn(NN_BF16, h, cosine, sine, qkv, first_token, end_token);
}

void nn_attention_wide_fp32_ref(const struct nn_wide_attention *a, uint32_t first_head,
                                uint32_t end_head)
{
    attend(NN_FP32, a, first_head, end_head);
}

void nn_attention_wide_bf16_ref(const struct nn_wide_attention *a, uint32_t first_head,
                                uint32_t end_head)
{
    attend(NN_BF16, a, first_head, end_head);
}

void nn_temporal_wide_fp32_ref(const struct nn_temporal *t, const struct nn_heads *h,
                               uint32_t first_token, uint32_t end_token)
{
    temporal(NN_FP32, t, h, first_token, end_token);
}

void nn_temporal_wide_bf16_ref(const struct nn_temporal *t, const struct nn_heads *h,
                               uint32_t first_token, uint32_t end_token)
{
    temporal(NN_BF16, t, h, first_token, end_token);
}

/* ---- products of e4m3 ---- */

enum {
    E4M3_CHUNK = 128, /* terms that are summed on their own */
    E4M3_ROWS = 16,   /* of a block whose operands are read from the table once */
    E4M3_COLS = 64,
};

size_t nn_packed_bytes_e4m3_ref(uint32_t n, uint32_t k)
{
    return n * (sizeof(float) + k);
}

void nn_pack_e4m3_ref(const float *w, uint32_t n, uint32_t k, void *out)
{
    float *scale = out;
    uint8_t *q = (uint8_t *)(scale + n);
    for (size_t row = 0; row < n; row++) {
        scale[row] = row_to_e4m3(w + row * k, k, q + row * k);
    }
}

void nn_keep_e4m3_ref(const uint8_t *w, const float *scale, uint32_t n, uint32_t k, void *out)
{
    memcpy(out, scale, n * sizeof *scale);
    memcpy((float *)out + n, w, (size_t)n * k);
}

void nn_to_e4m3_ref(const void *act, uint32_t k, int8_t *q, size_t ldq, struct nn_int8_row *rows,
                    uint32_t first_row, uint32_t end_row)
{
    float x[NN_E4M3_TERMS_MAX];
    for (size_t row = first_row; row < end_row; row++) {
        for (uint32_t i = 0; i < k; i++) {
            x[i] = nn_act_get(NN_BF16, act, row * k + i);
        }
        rows[row] = (struct nn_int8_row){row_to_e4m3(x, k, (uint8_t *)q + row * ldq), 0};
    }
}

static void e4m3_values(float table[256])
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        table[byte] = e4m3_value(byte);
    }
}

/* Terms k .. k + count - 1 of some rows, as numbers; zeros up to a whole chunk. */
static void read_chunk(const float table[256], const uint8_t *from, size_t stride, uint32_t rows,
                       uint32_t count, float out[][E4M3_CHUNK])
{
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t i = 0; i < E4M3_CHUNK; i++) {
            out[row][i] = i < count ? table[from[row * stride + i]] : 0.0f;
        }
    }
}

static void block_e4m3(const struct nn_gemm *g, const float table[256], uint32_t first_row,
                       uint32_t rows, uint32_t first_col, uint32_t cols)
{
    const float *scale = g->b;
    const uint8_t *a = (const uint8_t *)g->a + first_row * g->lda;
    const uint8_t *w = (const uint8_t *)(scale + g->n) + (size_t)first_col * g->k;
    float left[E4M3_ROWS][E4M3_CHUNK];
    float right[E4M3_COLS][E4M3_CHUNK];
    float total[E4M3_ROWS][E4M3_COLS] = {{0}};
    for (uint32_t k = 0; k < g->k; k += E4M3_CHUNK) {
        uint32_t count = g->k - k < E4M3_CHUNK ? g->k - k : E4M3_CHUNK;
        read_chunk(table, a + k, g->lda, rows, count, left);
        read_chunk(table, w + k, g->k, cols, count, right);
        for (uint32_t row = 0; row < rows; row++) {
            for (uint32_t col = 0; col < cols; col++) {
                total[row][col] += dot(left[row], right[col], E4M3_CHUNK);
            }
        }
    }
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t col = 0; col < cols; col++) {
            uint32_t n = first_col + col;
            float y = total[row][col] * (g->rows[first_row + row].scale * scale[n]);
            nn_gemm_store_ref(NN_BF16, g, first_row + row, n, g->bias != NULL ? y + g->bias[n] : y);
        }
    }
}

void nn_gemm_e4m3_ref(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row)
{
    float table[256];
    e4m3_values(table);
    for (uint32_t row = first_row; row < end_row; row += E4M3_ROWS) {
        uint32_t rows = end_row - row < E4M3_ROWS ? end_row - row : E4M3_ROWS;
        for (uint32_t col = 0; col < g->n; col += E4M3_COLS) {
            uint32_t cols = g->n - col < E4M3_COLS ? g->n - col : E4M3_COLS;
            block_e4m3(g, table, row, rows, col, cols);
        }
    }
}
