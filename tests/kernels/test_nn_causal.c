/*
 * Kernels of a small causal transformer: every variant against the plain C one bit for bit, the
 * plain C one against the formulas in double precision.
 */
#include "kernels/nn_causal.h"
#include "tests/kernels/nn_compare.h"

#include <math.h>

static struct nn_causal_kernels reference;

static void expect_same(const char *what, const char *name, const float *a, const float *b,
                        size_t count)
{
    long at = first_difference(a, b, count);
    if (at >= 0) {
        TEST_FAIL("%s %s: element %ld: found %a, expected %a", name, what, at, (double)a[at],
                  (double)b[at]);
    }
}

static void compare_rows(const struct nn_causal_kernels *found)
{
    static const uint32_t widths[] = {16, 48, 128};
    static const enum input_kind kinds[] = {INPUT_TAME, INPUT_WIDE, INPUT_TINY};
    uint32_t element = 0;
    for (uint32_t i = 0; i < COUNT_OF(widths) * COUNT_OF(kinds); i++) {
        enum { ROWS = 5 };
        const uint32_t width = widths[i % COUNT_OF(widths)];
        const enum input_kind kind = kinds[i / COUNT_OF(widths)];
        const size_t count = ROWS * width;
        struct buffer x = buffer_make(count * sizeof(float));
        struct buffer y = buffer_make(count * sizeof(float));
        struct buffer out = buffer_make(count * sizeof(float));
        struct buffer scale = buffer_make(width * sizeof(float));
        struct buffer shift = buffer_make(width * sizeof(float));
        fill_floats(x.data, count, kind, &element);
        fill_floats(scale.data, width, kind, &element);
        fill_floats(shift.data, width, kind, &element);
        memcpy(y.data, x.data, count * sizeof(float));
        found->norm(x.data, width, scale.data, shift.data, out.data, ROWS);
        reference.norm(y.data, width, scale.data, shift.data, y.data, ROWS); /* in place */
        expect_same("norm", found->name, out.data, y.data, count);
        fill_floats(x.data, count, kind, &element);
        memcpy(y.data, x.data, count * sizeof(float));
        found->gelu(x.data, count);
        reference.gelu(y.data, count);
        expect_same("gelu", found->name, x.data, y.data, count);
        fill_floats(x.data, count, kind, &element);
        found->weights(x.data, 0.8f, out.data, count);
        reference.weights(x.data, 0.8f, y.data, count);
        expect_same("weights", found->name, out.data, y.data, count);
        buffer_end(&x);
        buffer_end(&y);
        buffer_end(&out);
        buffer_end(&scale);
        buffer_end(&shift);
    }
}

enum { HEADS = 2, WIDTH = HEADS * NN_CAUSAL_HEAD, SEQUENCES = 3 };

static struct nn_causal attention_of(uint32_t tokens, uint32_t first, const float *qkv, float *out)
{
    return (struct nn_causal){
        .tokens = tokens,
        .first = first,
        .heads = HEADS,
        .q = qkv,
        .q_stride = WIDTH,
        .k = qkv + SEQUENCES * NN_CAUSAL_TOKENS * WIDTH,
        .v = qkv + SEQUENCES * NN_CAUSAL_TOKENS * WIDTH + WIDTH,
        .kv_stride = 2 * WIDTH,
        .out = out,
    };
}

static void compare_attention(const struct nn_causal_kernels *found)
{
    uint32_t element = 0;
    for (uint32_t i = 0; i < 2 * NN_CAUSAL_TOKENS * 3; i++) {
        const uint32_t tokens = i % NN_CAUSAL_TOKENS + 1;
        const uint32_t firsts[] = {0, tokens - 1, tokens / 2};
        const uint32_t first = firsts[i / NN_CAUSAL_TOKENS % 3];
        const size_t count = (size_t)SEQUENCES * (tokens - first) * WIDTH;
        const size_t inputs = 3 * SEQUENCES * NN_CAUSAL_TOKENS * WIDTH;
        struct buffer qkv = buffer_make(inputs * sizeof(float));
        struct buffer a = buffer_make(count * sizeof(float));
        struct buffer b = buffer_make(count * sizeof(float));
        fill_floats(qkv.data, inputs, i % 2 == 0 ? INPUT_TAME : INPUT_WIDE, &element);
        struct nn_causal call = attention_of(tokens, first, qkv.data, a.data);
        found->attention(&call, 0, 1);
        found->attention(&call, 1, SEQUENCES);
        call.out = b.data;
        reference.attention(&call, 0, SEQUENCES);
        expect_same("attention", found->name, a.data, b.data, count);
        buffer_end(&qkv);
        buffer_end(&a);
        buffer_end(&b);
    }
}

enum { HALF = 32, COLUMNS = 48, WORDS = 5 };

static const float *take(const float **at, size_t count)
{
    const float *taken = *at;
    *at += count;
    return taken;
}

enum {
    ENTRY_ROWS = 1 + NN_CAUSAL_NUMBERS + WORDS + 2 * NN_CAUSAL_TOKENS,
    ENTRY_IMAGES = NN_CAUSAL_NUMBERS + WORDS + NN_CAUSAL_TOKENS + 1,
    ENTRY_FLOATS = ENTRY_ROWS * HALF + ENTRY_IMAGES * COLUMNS,
};

/* Its parts one after the other in ENTRY_FLOATS floats. */
static struct nn_causal_entry entry_of(const float *at)
{
    struct nn_causal_entry e = {.half = HALF, .columns = COLUMNS};
    e.rows.bias = take(&at, HALF);
    e.rows.numbers = take(&at, NN_CAUSAL_NUMBERS * HALF);
    e.rows.words = take(&at, WORDS * HALF);
    e.rows.positions = take(&at, NN_CAUSAL_TOKENS * 2 * HALF);
    e.images.numbers = take(&at, NN_CAUSAL_NUMBERS * COLUMNS);
    e.images.words = take(&at, WORDS * COLUMNS);
    e.images.positions = take(&at, NN_CAUSAL_TOKENS * COLUMNS);
    e.images.shift = take(&at, COLUMNS);
    return e;
}

static void compare_entry(const struct nn_causal_kernels *found)
{
    static const enum input_kind kinds[] = {INPUT_TAME, INPUT_WIDE, INPUT_TINY};
    uint32_t element = 0;
    for (uint32_t i = 0; i < 3 * NN_CAUSAL_TOKENS; i++) {
        const uint32_t tokens = i % NN_CAUSAL_TOKENS + 1;
        const size_t count = (size_t)tokens * (2 * HALF + COLUMNS);
        float numbers[NN_CAUSAL_TOKENS][NN_CAUSAL_NUMBERS];
        uint16_t words[NN_CAUSAL_TOKENS];
        struct buffer parts = buffer_make(ENTRY_FLOATS * sizeof(float));
        struct buffer a = buffer_make(count * sizeof(float));
        struct buffer b = buffer_make(count * sizeof(float));
        fill_floats(parts.data, ENTRY_FLOATS, kinds[i / NN_CAUSAL_TOKENS], &element);
        fill_floats(numbers[0], tokens * NN_CAUSAL_NUMBERS, INPUT_TAME, &element);
        for (uint32_t t = 0; t < tokens; t++) {
            words[t] = (uint16_t)((t * 7 + i) % WORDS);
        }
        const struct nn_causal_entry e = entry_of(parts.data);
        const size_t images = (size_t)tokens * 2 * HALF;
        found->enter(&e, numbers, words, tokens, a.data, (float *)a.data + images);
        reference.enter(&e, numbers, words, tokens, b.data, (float *)b.data + images);
        expect_same("enter", found->name, a.data, b.data, count);
        buffer_end(&parts);
        buffer_end(&a);
        buffer_end(&b);
    }
}

static void compare_pool(const struct nn_causal_kernels *found)
{
    static const uint32_t widths[] = {64, 128};
    uint32_t element = 0;
    for (uint32_t i = 0; i < 2 * NN_CAUSAL_TOKENS; i++) {
        const uint32_t width = widths[i / NN_CAUSAL_TOKENS];
        const uint32_t tokens = i % NN_CAUSAL_TOKENS + 1;
        const size_t count = (size_t)SEQUENCES * NN_CAUSAL_HEADS * width;
        const size_t inputs = (size_t)SEQUENCES * tokens * width;
        struct buffer q = buffer_make(count * sizeof(float));
        struct buffer x = buffer_make(inputs * sizeof(float));
        struct buffer a = buffer_make(count * sizeof(float));
        struct buffer b = buffer_make(count * sizeof(float));
        fill_floats(q.data, count, INPUT_TAME, &element);
        fill_floats(x.data, inputs, i % 2 == 0 ? INPUT_TAME : INPUT_WIDE, &element);
        struct nn_causal_pool call = {tokens, width, q.data, x.data, a.data};
        found->pool(&call, 0, 1);
        found->pool(&call, 1, SEQUENCES);
        call.out = b.data;
        reference.pool(&call, 0, SEQUENCES);
        expect_same("pool", found->name, a.data, b.data, count);
        buffer_end(&q);
        buffer_end(&x);
        buffer_end(&a);
        buffer_end(&b);
    }
}

/* Quotients by whole numbers are made without a division in the vector variants. */
static void compare_weights(const struct nn_causal_kernels *found)
{
    enum { COUNT = 1024, ROUNDS = 200 };
    static _Alignas(64) float x[COUNT], a[COUNT], b[COUNT];
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const float size = 0x1p-20f * (float)(1 << round % 28);
        for (uint32_t i = 0; i < COUNT; i++) {
            const uint32_t word = (round * COUNT + i) * 2654435761u;
            x[i] = size * ((float)(word >> 8) / 0x1p23f - 1.0f);
        }
        found->weights(x, 0.8f, a, COUNT);
        reference.weights(x, 0.8f, b, COUNT);
        expect_same("weights", found->name, a, b, COUNT);
    }
}

static void variants_give_the_same_bits(void)
{
    static const uint32_t flags[] = {CPU_FLAG_AVX2, CPU_FLAG_AVX2 | CPU_FLAG_AVX512};
    nn_causal_kernels_init(&reference, 0);
    EXPECT_TEXT(reference.name, "c");
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        struct nn_causal_kernels found;
        if ((cpu_flags_detect() & flags[i]) != flags[i]) {
            printf("# variant %zu: not on this machine\n", i);
            continue;
        }
        nn_causal_kernels_init(&found, flags[i]);
        EXPECT(strcmp(found.name, "c") != 0);
        compare_rows(&found);
        compare_weights(&found);
        compare_attention(&found);
        compare_entry(&found);
        compare_pool(&found);
    }
}

static void rows_follow_their_formulas(void)
{
    enum { WIDTH_ONE = 128 };
    _Alignas(64) float x[WIDTH_ONE], y[WIDTH_ONE], scale[WIDTH_ONE], shift[WIDTH_ONE];
    uint32_t element = 0;
    nn_causal_kernels_init(&reference, 0);
    fill_floats(scale, WIDTH_ONE, INPUT_TAME, &element);
    fill_floats(shift, WIDTH_ONE, INPUT_TAME, &element);
    double mean = 0.0;
    double variance = 0.0;
    for (int i = 0; i < WIDTH_ONE; i++) {
        x[i] = 0.002f * (float)(i * 37 % 101) + 0.3f; /* a variance that 1e-5 tells on */
        mean += (double)x[i] / WIDTH_ONE;
    }
    for (int i = 0; i < WIDTH_ONE; i++) {
        variance += ((double)x[i] - mean) * ((double)x[i] - mean) / WIDTH_ONE;
    }
    reference.norm(x, WIDTH_ONE, scale, shift, y, 1);
    for (int i = 0; i < WIDTH_ONE; i++) {
        double expected =
            ((double)x[i] - mean) / sqrt(variance + 1e-5) * (double)scale[i] + (double)shift[i];
        EXPECT(fabs((double)y[i] - expected) < 2e-6);
        x[i] = 0.08f * (float)(i - 64);
        y[i] = x[i];
    }
    reference.gelu(y, WIDTH_ONE);
    for (int i = 0; i < WIDTH_ONE; i++) {
        double v = (double)x[i];
        double expected = 0.5 * v * (1.0 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
        EXPECT(fabs((double)y[i] - expected) < 1e-6);
    }
    reference.weights(x, 0.5f, y, WIDTH_ONE);
    for (int i = 0; i < WIDTH_ONE; i++) {
        const double expected = exp(((double)x[i] - (double)x[WIDTH_ONE - 1]) / 0.5);
        EXPECT(fabs((double)y[i] - expected) < 2e-6 * expected);
    }
}

static void attention_follows_its_formula(void)
{
    enum { TOKENS = 20 };
    static _Alignas(64) float qkv[3 * SEQUENCES * NN_CAUSAL_TOKENS * WIDTH];
    static _Alignas(64) float out[SEQUENCES * TOKENS * WIDTH];
    uint32_t element = 0;
    nn_causal_kernels_init(&reference, 0);
    fill_floats(qkv, COUNT_OF(qkv), INPUT_TAME, &element);
    const struct nn_causal a = attention_of(TOKENS, 0, qkv, out);
    reference.attention(&a, 0, SEQUENCES);
    for (uint32_t row = 0; row < SEQUENCES * TOKENS; row++) {
        for (uint32_t column = 0; column < WIDTH; column++) {
            const size_t head = column / NN_CAUSAL_HEAD * NN_CAUSAL_HEAD;
            double total = 0.0;
            double weights = 0.0;
            for (uint32_t j = 0; j <= row % TOKENS; j++) {
                const size_t past = (size_t)(row / TOKENS * TOKENS + j) * a.kv_stride;
                double dot = 0.0;
                for (uint32_t c = 0; c < NN_CAUSAL_HEAD; c++) {
                    dot += (double)a.q[row * a.q_stride + head + c] * (double)a.k[past + head + c];
                }
                weights += exp(dot / sqrt(32.0));
                total += exp(dot / sqrt(32.0)) * (double)a.v[past + column];
            }
            EXPECT(fabs((double)out[row * WIDTH + column] - total / weights) < 1e-6);
        }
    }
}

static double weighted(const float *numbers, const float *matrix, uint32_t columns, uint32_t column)
{
    double sum = 0.0;
    for (uint32_t k = 0; k < NN_CAUSAL_NUMBERS; k++) {
        sum += (double)numbers[k] * (double)matrix[k * columns + column];
    }
    return sum;
}

/* One token, the third. */
static void entry_follows_its_formula(void)
{
    enum { TOKENS = 3, AT = TOKENS - 1, WORD = 4 };
    static _Alignas(64) float parts[ENTRY_FLOATS], x[TOKENS][2 * HALF], images[TOKENS][COLUMNS];
    const uint16_t words[TOKENS] = {0, 1, WORD};
    float numbers[TOKENS][NN_CAUSAL_NUMBERS];
    uint32_t element = 0;
    double mean = 0.0;
    double variance = 0.0;
    nn_causal_kernels_init(&reference, 0);
    fill_floats(parts, ENTRY_FLOATS, INPUT_TAME, &element);
    fill_floats(numbers[0], TOKENS * NN_CAUSAL_NUMBERS, INPUT_TAME, &element);
    const struct nn_causal_entry e = entry_of(parts);
    reference.enter(&e, numbers, words, TOKENS, x[0], images[0]);
    for (uint32_t i = 0; i < HALF; i++) {
        const float *position = e.rows.positions + AT * 2 * HALF + i;
        const double state = (double)e.rows.bias[i] +
                             weighted(numbers[AT], e.rows.numbers, HALF, i) + (double)position[0];
        const double word = (double)e.rows.words[WORD * HALF + i] + (double)position[HALF];
        EXPECT(fabs((double)x[AT][i] - state) < 1e-6);
        EXPECT(fabs((double)x[AT][HALF + i] - word) < 1e-6);
        mean += (state + word) / (2 * HALF);
    }
    for (uint32_t i = 0; i < 2 * HALF; i++) {
        const double d = (double)x[AT][i] - mean;
        variance += d * d / (2 * HALF);
    }
    for (uint32_t i = 0; i < COLUMNS; i++) {
        const double sum = weighted(numbers[AT], e.images.numbers, COLUMNS, i) +
                           (double)e.images.words[WORD * COLUMNS + i] +
                           (double)e.images.positions[AT * COLUMNS + i];
        EXPECT(fabs((double)images[AT][i] - sum / sqrt(variance + 1e-5) -
                    (double)e.images.shift[i]) < 1e-5);
    }
}

static void pool_follows_its_formula(void)
{
    enum { TOKENS = 20, POOL_WIDTH = 64 };
    static _Alignas(64) float q[NN_CAUSAL_HEADS][POOL_WIDTH], x[TOKENS][POOL_WIDTH];
    static _Alignas(64) float out[NN_CAUSAL_HEADS][POOL_WIDTH];
    const struct nn_causal_pool p = {TOKENS, POOL_WIDTH, q[0], x[0], out[0]};
    uint32_t element = 0;
    nn_causal_kernels_init(&reference, 0);
    fill_floats(q[0], sizeof q / sizeof(float), INPUT_TAME, &element);
    fill_floats(x[0], sizeof x / sizeof(float), INPUT_TAME, &element);
    reference.pool(&p, 0, 1);
    for (uint32_t h = 0; h < NN_CAUSAL_HEADS; h++) {
        double totals[POOL_WIDTH] = {0};
        double weights = 0.0;
        for (uint32_t j = 0; j < TOKENS; j++) {
            double dot = 0.0;
            for (uint32_t c = 0; c < POOL_WIDTH; c++) {
                dot += (double)q[h][c] * (double)x[j][c];
            }
            weights += exp(dot / sqrt(32.0));
            for (uint32_t c = 0; c < POOL_WIDTH; c++) {
                totals[c] += exp(dot / sqrt(32.0)) * (double)x[j][c];
            }
        }
        for (uint32_t c = 0; c < POOL_WIDTH; c++) {
            EXPECT(fabs((double)out[h][c] - totals[c] / weights) < 1e-6);
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(variants_give_the_same_bits), TEST(rows_follow_their_formulas),
                    TEST(attention_follows_its_formula), TEST(entry_follows_its_formula),
                    TEST(pool_follows_its_formula));
}
