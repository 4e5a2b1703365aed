/*
 * Attention within a frame and over the past: every variant against the plain C one bit for bit,
 * with odd token counts, cut head and token ranges, missing pages and pathological inputs; the
 * plain C one against the formula in double precision.
 */
#include "tests/kernels/nn_compare.h"

struct attention_run {
    struct buffer qkv, cosine, sine, out;
    struct nn_attention call;
};

static void attention_prepare(struct attention_run *run, enum nn_precision precision,
                              uint32_t tokens, uint32_t heads, enum input_kind kind, uint32_t seed)
{
    uint32_t element = seed;
    uint32_t width = heads * NN_HEAD;
    run->qkv = buffer_make((size_t)tokens * 3 * width * sizeof(float));
    run->cosine = buffer_make((size_t)tokens * 16 * sizeof(float));
    run->sine = buffer_make((size_t)tokens * 16 * sizeof(float));
    run->out = buffer_make((size_t)tokens * width * nn_act_bytes(precision));
    fill_floats(run->qkv.data, (size_t)tokens * 3 * width, kind, &element);
    for (uint32_t i = 0; i < tokens * 16; i++) {
        double angle = random_float(INPUT_TAME, &element) * 4.0;
        ((float *)run->cosine.data)[i] = (float)cos(angle);
        ((float *)run->sine.data)[i] = (float)sin(angle);
    }
    run->call = (struct nn_attention){
        .tokens = tokens,
        .width = width,
        .qkv = run->qkv.data,
        .cosine = run->cosine.data,
        .sine = run->sine.data,
        .out = run->out.data,
    };
}

static void attention_end(struct attention_run *run)
{
    buffer_end(&run->qkv);
    buffer_end(&run->cosine);
    buffer_end(&run->sine);
    buffer_end(&run->out);
}

static void compare_attention(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    static const uint32_t counts[] = {1, 2, 15, 16, 17, 24, 31, 32, 33, 49, 64, 101, 144};
    uint32_t seed = 0;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        uint32_t heads = 1 + i % 3;
        struct attention_run x;
        struct attention_run y;
        enum input_kind kind = (enum input_kind)(i % INPUT_KIND_COUNT);
        attention_prepare(&x, found->precision, counts[i], heads, kind, seed);
        attention_prepare(&y, found->precision, counts[i], heads, kind, seed);
        found->attention(&x.call, 0, heads / 2);
        found->attention(&x.call, heads / 2, heads);
        reference->attention(&y.call, 0, heads);
        expect_same_act("attention", found, x.out.data, y.out.data,
                        (size_t)counts[i] * heads * NN_HEAD);
        attention_end(&x);
        attention_end(&y);
        seed += 1000;
    }
    struct attention_run x;
    struct attention_run y;
    attention_prepare(&x, found->precision, NN_TOKENS_MAX, 1, INPUT_WIDE, 1);
    attention_prepare(&y, found->precision, NN_TOKENS_MAX, 1, INPUT_WIDE, 1);
    found->attention(&x.call, 0, 1);
    reference->attention(&y.call, 0, 1);
    expect_same_act("attention", found, x.out.data, y.out.data, (size_t)NN_TOKENS_MAX * NN_HEAD);
    attention_end(&x);
    attention_end(&y);
}

static void attention_variants_give_the_reference_bits(void)
{
    for_each_variant(compare_attention);
}

static void turned(const struct attention_run *run, uint32_t token, size_t offset, double out[32])
{
    const struct nn_attention *a = &run->call;
    const float *x = a->qkv + (size_t)token * 3 * a->width + offset;
    for (uint32_t p = 0; p < 16; p++) {
        double c = a->cosine[token * 16 + p];
        double s = a->sine[token * 16 + p];
        out[2 * p] = x[2 * p] * c - x[2 * p + 1] * s;
        out[2 * p + 1] = x[2 * p] * s + x[2 * p + 1] * c;
    }
}

/* Softmax attention of one query in double precision. */
static void attend(const struct attention_run *run, uint32_t head, uint32_t token, double out[32])
{
    const struct nn_attention *a = &run->call;
    size_t offset = (size_t)head * NN_HEAD;
    double q[32];
    double sum = 0.0;
    turned(run, token, offset, q);
    memset(out, 0, 32 * sizeof *out);
    for (uint32_t j = 0; j < a->tokens; j++) {
        double k[32];
        double logit = 0.0;
        turned(run, j, a->width + offset, k);
        for (int c = 0; c < 32; c++) {
            logit += q[c] * k[c];
        }
        double weight = exp(logit / sqrt(32.0));
        sum += weight;
        for (int c = 0; c < 32; c++) {
            out[c] += weight * a->qkv[(size_t)j * 3 * a->width + 2 * a->width + offset + (size_t)c];
        }
    }
    for (int c = 0; c < 32; c++) {
        out[c] /= sum;
    }
}

static void attention_is_the_formula(void)
{
    for (int precision = 0; precision < FLOAT_PRECISIONS; precision++) {
        struct nn_kernels kernels;
        struct attention_run run;
        double tolerance = precision == NN_FP32 ? 1e-6 : 1e-2;
        nn_kernels_init(&kernels, (enum nn_precision)precision, 0);
        attention_prepare(&run, (enum nn_precision)precision, 37, 2, INPUT_TAME, 5);
        kernels.attention(&run.call, 0, 2);
        for (uint32_t token = 0; token < 37; token++) {
            for (uint32_t head = 0; head < 2; head++) {
                double expected[32];
                attend(&run, head, token, expected);
                for (uint32_t c = 0; c < 32; c++) {
                    EXPECT_NEAR(
                        act_value(kernels.precision, run.out.data, token * 64 + head * NN_HEAD + c),
                        expected[c], tolerance);
                }
            }
        }
        attention_end(&run);
    }
}

struct temporal_run {
    struct buffer q, k[NN_PAGES_MAX], v[NN_PAGES_MAX], index[NN_PAGES_MAX], bias, null_k, null_v,
        out;
    struct nn_temporal call;
};

/* Page p has tokens + p rows; one entry in three is not there. */
static void temporal_prepare(struct temporal_run *run, enum nn_precision precision, uint32_t tokens,
                             uint32_t heads, uint32_t pages, enum input_kind kind, uint32_t seed)
{
    uint32_t element = seed;
    uint32_t width = heads * NN_HEAD;
    run->q = buffer_make((size_t)tokens * width * sizeof(float));
    run->bias = buffer_make((size_t)heads * (pages + 2) * sizeof(float));
    run->null_k = buffer_make(width * sizeof(float));
    run->null_v = buffer_make(width * sizeof(float));
    run->out = buffer_make((size_t)tokens * width * nn_act_bytes(precision));
    fill_floats(run->q.data, (size_t)tokens * width, kind, &element);
    fill_floats(run->bias.data, (size_t)heads * (pages + 2), kind, &element);
    fill_floats(run->null_k.data, width, kind, &element);
    fill_floats(run->null_v.data, width, kind, &element);
    run->call = (struct nn_temporal){
        .tokens = tokens,
        .width = width,
        .pages = pages,
        .q = run->q.data,
        .bias = run->bias.data,
        .bias_stride = pages + 2,
        .null_k = run->null_k.data,
        .null_v = run->null_v.data,
        .out = run->out.data,
    };
    for (uint32_t p = 0; p < pages; p++) {
        size_t count = (size_t)(tokens + p) * width;
        run->k[p] = buffer_make(count * nn_act_bytes(precision));
        run->v[p] = buffer_make(count * nn_act_bytes(precision));
        run->index[p] = buffer_make(tokens * sizeof(int16_t));
        fill_act(precision, run->k[p].data, count, kind, &element);
        fill_act(precision, run->v[p].data, count, kind, &element);
        int16_t *index = run->index[p].data;
        for (uint32_t t = 0; t < tokens; t++) {
            uint32_t word = random_word(&element);
            index[t] = word % 3 == 0 ? -1 : (int16_t)(word / 3 % (tokens + p));
        }
        run->call.k[p] = run->k[p].data;
        run->call.v[p] = run->v[p].data;
        run->call.index[p] = index;
    }
}

static void temporal_end(struct temporal_run *run)
{
    buffer_end(&run->q);
    buffer_end(&run->bias);
    buffer_end(&run->null_k);
    buffer_end(&run->null_v);
    buffer_end(&run->out);
    for (uint32_t p = 0; p < run->call.pages; p++) {
        buffer_end(&run->k[p]);
        buffer_end(&run->v[p]);
        buffer_end(&run->index[p]);
    }
}

static void compare_temporal(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    static const uint32_t cases[][3] = {/* tokens, heads, pages */
                                        {1, 1, 0},  {5, 2, 1},  {9, 8, 3},  {24, 3, 8},
                                        {7, 16, 5}, {4, 17, 2}, {3, 24, 4}, {11, 4, 16},
                                        {6, 8, 16}, {13, 8, 7}};
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        uint32_t tokens = cases[i][0];
        struct temporal_run x;
        struct temporal_run y;
        enum input_kind kind = (enum input_kind)(i % INPUT_KIND_COUNT);
        temporal_prepare(&x, found->precision, tokens, cases[i][1], cases[i][2], kind, i * 100);
        temporal_prepare(&y, found->precision, tokens, cases[i][1], cases[i][2], kind, i * 100);
        found->temporal(&x.call, 0, tokens / 3);
        found->temporal(&x.call, tokens / 3, tokens);
        reference->temporal(&y.call, 0, tokens);
        expect_same_act("temporal", found, x.out.data, y.out.data,
                        (size_t)tokens * cases[i][1] * NN_HEAD);
        temporal_end(&x);
        temporal_end(&y);
    }
}

static void temporal_variants_give_the_reference_bits(void)
{
    for_each_variant(compare_temporal);
}

static double temporal_logit(const struct temporal_run *run, uint32_t token, uint32_t head,
                             uint32_t page)
{
    const struct nn_temporal *t = &run->call;
    double sum = 0.0;
    for (uint32_t c = head * NN_HEAD; c < (head + 1) * NN_HEAD; c++) {
        double k = page == t->pages ? t->null_k[c]
                                    : act_value(NN_FP32, t->k[page],
                                                (size_t)t->index[page][token] * t->width + c);
        sum += t->q[(size_t)token * t->width + c] * k;
    }
    double bias = page == t->pages ? 0.0 : t->bias[head * t->bias_stride + page];
    return sum / sqrt(32.0) + bias;
}

static void temporal_is_the_formula(void)
{
    struct nn_kernels kernels;
    struct temporal_run run;
    nn_kernels_init(&kernels, NN_FP32, 0);
    temporal_prepare(&run, NN_FP32, 12, 3, 6, INPUT_TAME, 9);
    kernels.temporal(&run.call, 0, 12);
    const struct nn_temporal *t = &run.call;
    for (uint32_t token = 0; token < 12; token++) {
        for (uint32_t column = 0; column < 96; column++) {
            double sum = 0.0;
            double value = 0.0;
            for (uint32_t page = 0; page <= 6; page++) {
                if (page < 6 && t->index[page][token] < 0) {
                    continue;
                }
                double weight = exp(temporal_logit(&run, token, column / NN_HEAD, page));
                sum += weight;
                value +=
                    weight * (page == 6 ? t->null_v[column]
                                        : act_value(NN_FP32, t->v[page],
                                                    (size_t)t->index[page][token] * 96 + column));
            }
            EXPECT_NEAR(((float *)run.out.data)[token * 96 + column], value / sum, 1e-6);
        }
    }
    temporal_end(&run);
}

/* A token whose pages are all missing takes the learned sink alone. */
static void no_past_gives_the_sink(void)
{
    struct temporal_run run;
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_FP32, cpu_flags_detect());
    temporal_prepare(&run, NN_FP32, 2, 2, 3, INPUT_TAME, 1);
    for (uint32_t p = 0; p < 3; p++) {
        memset(run.index[p].data, 0xFF, 2 * sizeof(int16_t));
    }
    kernels.temporal(&run.call, 0, 2);
    EXPECT_INT(first_difference(run.out.data, run.null_v.data, 64), -1);
    temporal_end(&run);
}

int main(void)
{
    return TEST_RUN(TEST(attention_variants_give_the_reference_bits),
                    TEST(attention_is_the_formula), TEST(temporal_variants_give_the_reference_bits),
                    TEST(temporal_is_the_formula), TEST(no_past_gives_the_sink));
}
