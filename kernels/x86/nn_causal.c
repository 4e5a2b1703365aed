/*
 * Kernels of a small causal transformer on the vector units; ref/nn_causal.c is the definition.
 */
#include "kernels/nn_causal_internal.h"
#include "kernels/x86/nn_doubles.h"
#include "kernels/x86/nn_x86.h"

#include <math.h>

enum { NORM_ROWS = 4 };

/* Means and 1 / deviations of `rows` (a constant) rows in step: sums of one are chains that wait
 * for themselves. */
NN_INLINE void deviations(const float *x, uint32_t width, v16 mean[NORM_ROWS],
                          v16 inverse[NORM_ROWS], const int rows)
{
    v16 sum[NORM_ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        sum[r] = v16_zero();
    }
    for (uint32_t i = 0; i < width; i += NN_LANES) {
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            sum[r] = v16_add(sum[r], v16_load(x + r * width + i));
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        mean[r] = v16_set1(v16_sum(sum[r]) / (float)width);
        sum[r] = v16_zero();
    }
    for (uint32_t i = 0; i < width; i += NN_LANES) {
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            v16 d = v16_sub(v16_load(x + r * width + i), mean[r]);
            sum[r] = v16_fma(d, d, sum[r]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        const float variance = v16_sum(sum[r]) / (float)width;
        const __m128 root = _mm_sqrt_ss(_mm_set_ss(variance + NN_CAUSAL_EPSILON));
        inverse[r] = v16_set1(1.0f / _mm_cvtss_f32(root));
    }
}

NN_INLINE void norm_many(const float *x, uint32_t width, const float *scale, const float *shift,
                         float *out, const int rows)
{
    v16 mean[NORM_ROWS];
    v16 inverse[NORM_ROWS];
    deviations(x, width, mean, inverse, rows);
    for (uint32_t i = 0; i < width; i += NN_LANES) {
        const v16 by = v16_load(scale + i);
        const v16 to = v16_load(shift + i);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            v16 y = v16_mul(v16_sub(v16_load(x + r * width + i), mean[r]), inverse[r]);
            v16_store(out + r * width + i, v16_fma(y, by, to));
        }
    }
}

static void norm(const float *x, uint32_t width, const float *scale, const float *shift, float *out,
                 size_t rows)
{
    size_t r = 0;
    for (; r + NORM_ROWS <= rows; r += NORM_ROWS) {
        norm_many(x + r * width, width, scale, shift, out + r * width, NORM_ROWS);
    }
    for (; r < rows; r++) {
        norm_many(x + r * width, width, scale, shift, out + r * width, 1);
    }
}

NN_INLINE void gelu_many(float *x, const int count)
{
    v16 value[LOGISTIC_MAX];
    v16 y[LOGISTIC_MAX];
    for (int i = 0; i < count; i++) {
        value[i] = v16_load(x + i * NN_LANES);
        v16 cube = v16_mul(v16_mul(value[i], value[i]), v16_set1(NN_GELU_CUBE));
        y[i] = v16_mul(v16_fma(cube, value[i], value[i]), v16_set1(NN_GELU_FACTOR));
    }
    v16_logistic_many(y, count, false);
    for (int i = 0; i < count; i++) {
        v16_store(x + i * NN_LANES, v16_mul(value[i], y[i]));
    }
}

static void gelu(float *x, size_t count)
{
    size_t i = 0;
    for (; i + LOGISTIC_MAX * NN_LANES <= count; i += LOGISTIC_MAX * NN_LANES) {
        gelu_many(x + i, LOGISTIC_MAX);
    }
    for (; i < count; i += NN_LANES) {
        gelu_many(x + i, 1);
    }
}

/* exp of 16 floats, in double precision, rounded. */
NN_INLINE void exp_rounded(float *x)
{
    enum { PARTS = NN_LANES / DOUBLES };
    doubles exact[PARTS];
    doubles quick[PARTS];
    for (int i = 0; i < PARTS; i++) {
        exact[i] = quick[i] = doubles_load(x + i * DOUBLES);
    }
    const bool good = doubles_exp_quick(quick, PARTS);
    if (!good) {
        doubles_exp_many(exact, PARTS);
    }
    for (int i = 0; i < PARTS; i++) {
        doubles_store(x + i * DOUBLES, good ? quick[i] : exact[i]);
    }
}

static void weights(const float *logits, float temperature, float *out, size_t count)
{
    v16 largest = v16_set1(-INFINITY);
    for (size_t i = 0; i < count; i += NN_LANES) {
        const v16 x = v16_div(v16_load(logits + i), v16_set1(temperature));
        largest = v16_max(largest, x);
        v16_store(out + i, x);
    }
    const v16 most = v16_set1(v16_largest(largest));
    for (size_t i = 0; i < count; i += NN_LANES) { /* no NaN: a difference of finite numbers */
        v16_store(out + i, v16_sub(v16_load(out + i), most));
        exp_rounded(out + i);
    }
}

enum { TOKENS = NN_CAUSAL_TOKENS, HEAD = NN_CAUSAL_HEAD };

/* The keys of one head with tokens along the lanes, four by four; what the last four tokens lack is
 * 0. */
static void turn(const float *k, size_t stride, uint32_t tokens, float out[HEAD][TOKENS])
{
    for (uint32_t j = 0; j < tokens; j += 4) {
        for (uint32_t c = 0; c < HEAD; c += 4) {
            __m128 rows[4];
            for (uint32_t i = 0; i < 4; i++) {
                rows[i] =
                    j + i < tokens ? _mm_loadu_ps(k + (j + i) * stride + c) : _mm_setzero_ps();
            }
            _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
            for (uint32_t i = 0; i < 4; i++) {
                _mm_store_ps(&out[c + i][j], rows[i]);
            }
        }
    }
}

#define TIMES_8(x) x, x, x, x, x, x, x, x
#define TIMES_32(x) TIMES_8(x), TIMES_8(x), TIMES_8(x), TIMES_8(x)
/* Of 32 lanes the first `count` count: the tables are read from TOKENS - count on. */
static const float kept_logits[2 * TOKENS] = {TIMES_32(INFINITY), TIMES_32(-INFINITY)};
static const float kept_weights[2 * TOKENS] = {TIMES_32(1.0f), TIMES_32(0.0f)};

/* Softmax of `vectors` vectors of products, of which `count` lanes count; the others become 0.
 * Returns 1 / sum of the weights. */
NN_INLINE float softmax(const v16 *products, uint32_t count, float weights[TOKENS],
                        const int vectors)
{
    v16 x[2];
    for (int i = 0; i < vectors; i++) {
        const float *kept = kept_logits + TOKENS - count + i * NN_LANES;
        x[i] = v16_min(v16_mul(products[i], v16_set1(NN_LOGIT_SCALE)), v16_load(kept));
    }
    const v16 largest = v16_set1(v16_largest(vectors > 1 ? v16_max(x[0], x[1]) : x[0]));
    for (int i = 0; i < vectors; i++) { /* exp is limited, so not 0 where the logit is -inf */
        const float *kept = kept_weights + TOKENS - count + i * NN_LANES;
        x[i] = v16_mul(v16_exp(v16_sub(x[i], largest)), v16_load(kept));
        v16_store(weights + i * NN_LANES, x[i]);
    }
    return 1.0f / v16_sum(vectors > 1 ? v16_add(x[0], x[1]) : x[0]);
}

/* Queries that go in step, so that their chains do not wait for themselves: what the registers
 * hold. */
#if defined(__AVX512F__)
enum { ATTEND = 8 };
#else
enum { ATTEND = 4 };
#endif

/* sums[2 i], sums[2 i + 1] += weights[i][j] * v[j], of the queries `first` to `count` - 1. */
NN_INLINE void add_value(const float weights[][TOKENS], const float *v, size_t stride, uint32_t j,
                         v16 *sums, const int first, const int count)
{
    const v16 low = v16_load(v + j * stride);
    const v16 high = v16_load(v + j * stride + NN_LANES);
#pragma GCC unroll 16
    for (int i = 0; i < 2 * count; i++) {
        if (i >= 2 * first) {
            sums[i] = v16_fma(v16_set1(weights[i / 2][j]), i % 2 == 0 ? low : high, sums[i]);
        }
    }
}

/* `count` (a constant, at most ATTEND) queries of one head from token `token` on, whose tokens lie
 * in the first `vectors` vectors; count * vectors is at most 8. Loops over registers are unrolled
 * by force, as in nn_matmul.c. */
NN_INLINE void attend(const struct nn_causal *a, const float *q, const float turned[HEAD][TOKENS],
                      const float *v, uint32_t token, float *out, size_t out_stride,
                      const int count, const int vectors)
{
    v16 products[8];
    v16 sums[2 * ATTEND];
    float weights[ATTEND][TOKENS];
    float inverse[ATTEND];
#pragma GCC unroll 8
    for (int i = 0; i < count * vectors; i++) {
        products[i] = v16_zero();
    }
    for (uint32_t c = 0; c < HEAD; c++) {
        v16 keys[2];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) {
            keys[j] = v16_load(turned[c] + j * NN_LANES);
        }
#pragma GCC unroll 8
        for (int i = 0; i < count * vectors; i++) {
            const v16 x = v16_set1(q[(size_t)(i / vectors) * a->q_stride + c]);
            products[i] = v16_fma(x, keys[i % vectors], products[i]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        inverse[i] = softmax(products + i * vectors, token + (uint32_t)i + 1, weights[i], vectors);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 2 * count; i++) {
        sums[i] = v16_zero();
    }
    for (uint32_t j = 0; j <= token; j++) {
        add_value(weights, v, a->kv_stride, j, sums, 0, count);
    }
    /* Later tokens are left out, not added with weight 0: that would lose a sum's sign at 0. */
#pragma GCC unroll 8
    for (int i = 1; i < count; i++) {
        add_value(weights, v, a->kv_stride, token + (uint32_t)i, sums, i, count);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 2 * count; i++) {
        v16_store(out + (size_t)(i / 2) * out_stride + i % 2 * NN_LANES,
                  v16_mul(sums[i], v16_set1(inverse[i / 2])));
    }
}

static void attention(const struct nn_causal *a, uint32_t first_sequence, uint32_t end_sequence)
{
    _Alignas(64) float turned[HEAD][TOKENS] = {{0}}; /* tokens that are not there stay 0 */
    const uint32_t queries = a->tokens - a->first;
    const size_t width = (size_t)a->heads * HEAD;
    for (size_t s = first_sequence; s < end_sequence; s++) {
        for (uint32_t h = 0; h < a->heads; h++) {
            const size_t head = (size_t)h * HEAD;
            const size_t past = s * a->tokens * a->kv_stride + head;
            const float *q = a->q + s * queries * a->q_stride + head;
            float *out = a->out + s * queries * width + head;
            uint32_t i = 0;
            turn(a->k + past, a->kv_stride, a->tokens, turned);
            for (; i + ATTEND <= queries && a->first + i + ATTEND <= NN_LANES; i += ATTEND) {
                attend(a, q + i * a->q_stride, turned, a->v + past, a->first + i, out + i * width,
                       width, ATTEND, 1);
            }
            for (; i + 4 <= queries && a->first + i + 4 <= NN_LANES; i += 4) {
                attend(a, q + i * a->q_stride, turned, a->v + past, a->first + i, out + i * width,
                       width, 4, 1);
            }
            for (; i + 4 <= queries; i += 4) {
                attend(a, q + i * a->q_stride, turned, a->v + past, a->first + i, out + i * width,
                       width, 4, 2);
            }
            for (; i < queries; i++) {
                attend(a, q + i * a->q_stride, turned, a->v + past, a->first + i, out + i * width,
                       width, 1, 2);
            }
        }
    }
}

/* sum[r] += numbers[r] * their matrix, of 16 columns of `rows` rows. */
NN_INLINE void add_numbers(v16 *sum, const float (*numbers)[NN_CAUSAL_NUMBERS], const float *matrix,
                           uint32_t columns, const int rows)
{
#pragma GCC unroll 4
    for (uint32_t k = 0; k < NN_CAUSAL_NUMBERS; k++) {
        const v16 w = v16_load(matrix + (size_t)k * columns);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            sum[r] = v16_fma(v16_set1(numbers[r][k]), w, sum[r]);
        }
    }
}

/* Rows of `rows` (a constant) tokens; `position` is that of the first. */
NN_INLINE void enter_rows(const struct nn_causal_entry *e,
                          const float (*numbers)[NN_CAUSAL_NUMBERS], const uint16_t *words,
                          const float *position, float *x, const int rows)
{
    const size_t width = 2 * (size_t)e->half;
    for (size_t i = 0; i < e->half; i += NN_LANES) {
        v16 y[NORM_ROWS];
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            y[r] = v16_load(e->rows.bias + i);
        }
        add_numbers(y, numbers, e->rows.numbers + i, e->half, rows);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const size_t at = (size_t)r * width + i;
            const v16 word = v16_load(e->rows.words + words[r] * (size_t)e->half + i);
            v16_store(x + at, v16_add(y[r], v16_load(position + at)));
            v16_store(x + at + e->half, v16_add(word, v16_load(position + at + e->half)));
        }
    }
}

/* Their images. The words of the next rows are fetched meanwhile: the table is larger than the
 * second-level cache has room for. */
NN_INLINE void enter_images(const struct nn_causal_entry *e,
                            const float (*numbers)[NN_CAUSAL_NUMBERS], const uint16_t *words,
                            const uint16_t *next, const float *position, const v16 *inverse,
                            float *images, const int rows)
{
    const size_t columns = e->columns;
    for (size_t i = 0; i < columns; i += NN_LANES) {
        const v16 shift = v16_load(e->images.shift + i);
        v16 y[NORM_ROWS];
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            y[r] = v16_load(e->images.words + words[r] * columns + i);
            _mm_prefetch((const char *)(e->images.words + next[r] * columns + i), _MM_HINT_T0);
        }
        add_numbers(y, numbers, e->images.numbers + i, e->columns, rows);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const size_t at = (size_t)r * columns + i;
            y[r] = v16_add(y[r], v16_load(position + at));
            v16_store(images + at, v16_fma(y[r], inverse[r], shift));
        }
    }
}

NN_INLINE void enter_many(const struct nn_causal_entry *e,
                          const float (*numbers)[NN_CAUSAL_NUMBERS], const uint16_t *words,
                          const uint16_t *next, size_t t, float *x, float *images, const int rows)
{
    const size_t width = 2 * (size_t)e->half;
    v16 mean[NORM_ROWS];
    v16 inverse[NORM_ROWS];
    enter_rows(e, numbers + t, words + t, e->rows.positions + t * width, x + t * width, rows);
    deviations(x + t * width, (uint32_t)width, mean, inverse, rows);
    enter_images(e, numbers + t, words + t, next, e->images.positions + t * e->columns, inverse,
                 images + t * e->columns, rows);
}

static void enter(const struct nn_causal_entry *e, const float (*numbers)[NN_CAUSAL_NUMBERS],
                  const uint16_t *words, uint32_t tokens, float *x, float *images)
{
    uint32_t t = 0;
    for (; t + NORM_ROWS <= tokens; t += NORM_ROWS) {
        const uint32_t next = t + 2 * NORM_ROWS <= tokens ? t + NORM_ROWS : t;
        enter_many(e, numbers, words, words + next, t, x, images, NORM_ROWS);
    }
    for (; t < tokens; t++) {
        enter_many(e, numbers, words, words + t, t, x, images, 1);
    }
}

enum { POOL_HEADS = NN_CAUSAL_HEADS, POOL_TOKENS = NN_LANES / POOL_HEADS };
/* Vectors of all heads' outputs that registers hold. */
#if defined(__AVX512F__)
enum { POOL_VECTORS = 4 };
#else
enum { POOL_VECTORS = 1 };
#endif

/* products[h][j] = q[h] . x[j], four tokens in step; what lies beyond the last token is no number
 * that counts. */
NN_INLINE void pool_products(const float *q, const float *x, uint32_t width, uint32_t tokens,
                             float products[POOL_HEADS][TOKENS])
{
    for (uint32_t j = 0; j < tokens; j += POOL_TOKENS) {
        const float *row[POOL_TOKENS];
        v16 sums[NN_LANES];
        float all[NN_LANES];
#pragma GCC unroll 16
        for (uint32_t i = 0; i < NN_LANES; i++) {
            sums[i] = v16_zero();
        }
        for (uint32_t i = 0; i < POOL_TOKENS; i++) {
            row[i] = x + (size_t)(j + i < tokens ? j + i : tokens - 1) * width;
        }
        for (uint32_t c = 0; c < width; c += NN_LANES) {
#pragma GCC unroll 4
            for (uint32_t i = 0; i < POOL_TOKENS; i++) {
                const v16 y = v16_load(row[i] + c);
#pragma GCC unroll 4
                for (uint32_t h = 0; h < POOL_HEADS; h++) {
                    v16 *sum = &sums[h * POOL_TOKENS + i];
                    *sum = v16_fma(v16_load(q + (size_t)h * width + c), y, *sum);
                }
            }
        }
        v16_store(all, v16_sum_rows(sums));
        for (uint32_t h = 0; h < POOL_HEADS; h++) {
            memcpy(&products[h][j], all + (size_t)h * POOL_TOKENS, POOL_TOKENS * sizeof *all);
        }
    }
}

/* out[h] = sum of weights[h][j] * x[j], times inverse[h]. */
NN_INLINE void pool_rows(const float weights[POOL_HEADS][TOKENS], const float *inverse,
                         const float *x, uint32_t width, uint32_t tokens, float *out)
{
    enum { SUMS = POOL_HEADS * POOL_VECTORS };
    for (uint32_t c = 0; c < width; c += POOL_VECTORS * NN_LANES) {
        v16 sums[SUMS];
#pragma GCC unroll 16
        for (uint32_t i = 0; i < SUMS; i++) {
            sums[i] = v16_zero();
        }
        for (uint32_t j = 0; j < tokens; j++) {
            v16 y[POOL_VECTORS];
#pragma GCC unroll 4
            for (uint32_t i = 0; i < POOL_VECTORS; i++) {
                y[i] = v16_load(x + (size_t)j * width + c + (size_t)i * NN_LANES);
            }
#pragma GCC unroll 16
            for (uint32_t i = 0; i < SUMS; i++) {
                const v16 weight = v16_set1(weights[i / POOL_VECTORS][j]);
                sums[i] = v16_fma(weight, y[i % POOL_VECTORS], sums[i]);
            }
        }
#pragma GCC unroll 16
        for (uint32_t i = 0; i < SUMS; i++) {
            const size_t at = (size_t)(i / POOL_VECTORS) * width + c + i % POOL_VECTORS * NN_LANES;
            v16_store(out + at, v16_mul(sums[i], v16_set1(inverse[i / POOL_VECTORS])));
        }
    }
}

static void pool(const struct nn_causal_pool *p, uint32_t first_sequence, uint32_t end_sequence)
{
    float products[POOL_HEADS][TOKENS] = {{0}};
    for (size_t s = first_sequence; s < end_sequence; s++) {
        const float *x = p->x + s * p->tokens * p->width;
        const size_t at = s * POOL_HEADS * p->width;
        float weights[POOL_HEADS][TOKENS];
        float inverse[POOL_HEADS];
        pool_products(p->q + at, x, p->width, p->tokens, products);
        for (uint32_t h = 0; h < POOL_HEADS; h++) {
            const v16 both[] = {v16_load(products[h]), v16_load(products[h] + NN_LANES)};
            inverse[h] = softmax(both, p->tokens, weights[h], 2);
        }
        pool_rows(weights, inverse, x, p->width, p->tokens, p->out + at);
    }
}

void NN_NAME(causal_table)(struct nn_causal_kernels *kernels)
{
#if defined(__AVX512F__)
    kernels->name = "avx512";
#else
    kernels->name = "avx2";
#endif
    kernels->norm = norm;
    kernels->gelu = gelu;
    kernels->weights = weights;
    kernels->attention = attention;
    kernels->enter = enter;
    kernels->pool = pool;
}
