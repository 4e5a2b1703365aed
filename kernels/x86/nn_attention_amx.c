/*
 * Attention within a frame in NN_BF16 on tiles (AMX); ref/nn_attention.c is the definition. Per
 * head: queries as left tiles of 16 rows, keys and values as right tiles; logits of 16 rows go
 * through the first-level cache to the vector units and come back as weights.
 */
#include "kernels/x86/nn_amx.h"
#include "kernels/x86/nn_rotary.h"
#include "kernels/x86/nn_tiles_amx.h"

enum {
    KEY_TILES = NN_TOKENS_MAX / TILE_COLUMNS,
    VALUE_TILES = NN_TOKENS_MAX / NN_BLOCK * 2,
    TILE_WORDS = TILE_BYTES / 4,
    HEAD_WORDS = NN_HEAD / 2, /* a row of a head as pairs of bfloat16 */
};

struct head {
    _Alignas(64) uint16_t query[NN_TOKENS_MAX][NN_HEAD];
    _Alignas(64) uint32_t key[KEY_TILES][TILE_WORDS];     /* [pair of columns][token] */
    _Alignas(64) uint32_t value[VALUE_TILES][TILE_WORDS]; /* [pair of tokens][column] */
    _Alignas(64) float logits[TILE_ROWS][NN_TOKENS_MAX];
    _Alignas(64) uint16_t weights[TILE_ROWS][NN_TOKENS_MAX];
    _Alignas(64) float sums[TILE_ROWS][NN_HEAD];
    float inverse[TILE_ROWS];
    uint32_t terms; /* tokens, rounded up to 32 */
};

/* 16 x 16 words: out[j][i] = in[i][j]. */
static void transpose(const uint32_t *in, uint32_t *out)
{
    const __m512i rows = _mm512_mullo_epi32(w16_count_up(0), w16_set1(HEAD_WORDS));
    for (int j = 0; j < HEAD_WORDS; j++) {
        _mm512_storeu_si512(out + j * TILE_COLUMNS, _mm512_i32gather_epi32(rows, in + j, 4));
    }
}

static void load_row(const struct nn_attention *a, size_t offset, uint32_t token, uint16_t *out)
{
    for (uint32_t c = 0; c < NN_HEAD; c += NN_LANES) {
        v16 x = v16_load(a->qkv + (size_t)token * 3 * a->width + offset + c);
        v16_store_bf16(out + c, rotary_turn(a, token, c, x));
    }
}

static void load_keys(const struct nn_attention *a, size_t offset, struct head *head)
{
    for (uint32_t first = 0; first < head->terms; first += TILE_COLUMNS) {
        _Alignas(64) uint16_t rows[TILE_COLUMNS][NN_HEAD];
        uint32_t packed[TILE_WORDS];
        uint32_t count = a->tokens > first ? a->tokens - first : 0;
        count = count < TILE_COLUMNS ? count : TILE_COLUMNS;
        memset(rows[count], 0, (TILE_COLUMNS - count) * sizeof rows[0]);
        for (uint32_t j = 0; j < count; j++) {
            load_row(a, offset, first + j, rows[j]);
        }
        memcpy(packed, rows, sizeof packed);
        transpose(packed, head->key[first / TILE_COLUMNS]);
    }
}

/* Tokens 2 i and 2 i + 1 side by side; tokens that are not there are 0. */
static void load_values(const struct nn_attention *a, size_t offset, struct head *head)
{
    for (uint32_t t = 0; t < head->terms; t += 2) {
        for (uint32_t c = 0; c < NN_HEAD; c += NN_LANES) {
            w16 words[2] = {w16_set1(0), w16_set1(0)};
            for (uint32_t i = 0; i < 2 && t + i < a->tokens; i++) {
                const float *row = a->qkv + (size_t)(t + i) * 3 * a->width + offset + c;
                words[i] = v16_to_bf16(v16_load(row));
            }
            uint32_t *tile = head->value[t / NN_BLOCK * 2 + c / NN_LANES];
            w16 both = _mm512_or_si512(words[0], _mm512_slli_epi32(words[1], 16));
            _mm512_storeu_si512(tile + t % NN_BLOCK / 2 * TILE_COLUMNS, both);
        }
    }
}

/* Weights of one row of logits; what lies past the last token weighs 0. */
static void softmax(struct head *head, uint32_t row, uint32_t tokens)
{
    const v16 scale = v16_set1(NN_LOGIT_SCALE);
    const float *logits = head->logits[row];
    const uint32_t whole = tokens / NN_LANES * NN_LANES;
    const __mmask16 last = lanes_mask(tokens - whole);
    v16 largest = v16_set1(logits[0] * NN_LOGIT_SCALE);
    for (uint32_t j = 0; j < whole; j += NN_LANES) {
        largest = v16_max(largest, v16_mul(v16_load(logits + j), scale));
    }
    if (whole < tokens) {
        v16 x = v16_mul(v16_load(logits + whole), scale);
        largest = _mm512_mask_max_ps(largest, last, largest, x);
    }
    const v16 maximum = v16_set1(v16_largest(largest));
    v16 sum = v16_zero();
    for (uint32_t j = 0; j < whole; j += NN_LANES) {
        v16 e = v16_exp(v16_sub(v16_mul(v16_load(logits + j), scale), maximum));
        sum = v16_add(sum, e);
        v16_store_bf16(head->weights[row] + j, e);
    }
    if (whole < tokens) {
        v16 e = v16_exp(v16_sub(v16_mul(v16_load(logits + whole), scale), maximum));
        e = _mm512_maskz_mov_ps(last, e);
        sum = v16_add(sum, e);
        v16_store_bf16(head->weights[row] + whole, e);
    }
    head->inverse[row] = 1.0f / v16_sum(sum);
}

/* Logits of 16 queries with all keys, four tiles at a time. */
static void multiply_keys(struct head *head, uint32_t first)
{
    enum { STRIDE = NN_TOKENS_MAX * sizeof(float) };
    const uint32_t tiles = head->terms / TILE_COLUMNS;
    _tile_loadd(4, head->query[first], TILE_ROW_BYTES);
    for (uint32_t j = 0; j < tiles; j += 2) {
        _tile_zero(0);
        _tile_loadd(6, head->key[j], TILE_ROW_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        _tile_zero(1);
        _tile_loadd(7, head->key[j + 1], TILE_ROW_BYTES);
        _tile_dpbf16ps(1, 4, 7);
        _tile_stored(0, head->logits[0] + j * TILE_COLUMNS, STRIDE);
        _tile_stored(1, head->logits[0] + (j + 1) * TILE_COLUMNS, STRIDE);
    }
}

static void multiply_values(struct head *head)
{
    enum { STRIDE = NN_TOKENS_MAX * sizeof(uint16_t), SUMS_STRIDE = NN_HEAD * sizeof(float) };
    tiles_fence(head);
    _tile_zero(2);
    _tile_zero(3);
    for (uint32_t t = 0; t < head->terms; t += NN_BLOCK) {
        _tile_loadd(5, head->weights[0] + t, STRIDE);
        _tile_loadd(6, head->value[t / NN_BLOCK * 2], TILE_ROW_BYTES);
        _tile_dpbf16ps(2, 5, 6);
        _tile_loadd(7, head->value[t / NN_BLOCK * 2 + 1], TILE_ROW_BYTES);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(2, head->sums[0], SUMS_STRIDE);
    _tile_stored(3, head->sums[0] + TILE_COLUMNS, SUMS_STRIDE);
}

static void attend(const struct nn_attention *a, size_t offset, struct head *head)
{
    uint16_t *out = a->out;
    for (uint32_t first = 0; first < a->tokens; first += TILE_ROWS) {
        const uint32_t rows = a->tokens - first < TILE_ROWS ? a->tokens - first : TILE_ROWS;
        multiply_keys(head, first);
        for (uint32_t i = 0; i < rows; i++) {
            softmax(head, i, a->tokens);
        }
        multiply_values(head);
        for (uint32_t i = 0; i < rows; i++) {
            for (uint32_t c = 0; c < NN_HEAD; c += NN_LANES) {
                v16 y = v16_mul(v16_load(head->sums[i] + c), v16_set1(head->inverse[i]));
                v16_store_bf16(out + (size_t)(first + i) * a->width + offset + c, y);
            }
        }
    }
}

void nn_attention_bf16_amx(const struct nn_attention *a, uint32_t first_head, uint32_t end_head)
{
    struct head head;
    head.terms = (a->tokens + NN_BLOCK - 1) / NN_BLOCK * NN_BLOCK;
    /* Rows and columns past the last token stay 0 throughout. */
    memset(head.query, 0, sizeof head.query);
    memset(head.weights, 0, sizeof head.weights);
    tiles_configure(TILE_ROWS);
    for (uint32_t h = first_head; h < end_head; h++) {
        size_t offset = (size_t)h * NN_HEAD;
        for (uint32_t t = 0; t < a->tokens; t++) {
            load_row(a, offset, t, head.query[t]);
        }
        load_keys(a, a->width + offset, &head);
        load_values(a, 2 * (size_t)a->width + offset, &head);
        tiles_fence(&head);
        attend(a, offset, &head);
    }
    _tile_release();
}
