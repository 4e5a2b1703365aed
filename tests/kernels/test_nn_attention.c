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

/* ---- heads of any dimension, keys and values that several share ---- */

/* Whether two tokens of a grid are near enough. */
static bool sees(const struct nn_wide_attention *a, uint32_t one, uint32_t other)
{
    int down = (int)(one / a->cols) - (int)(other / a->cols);
    int across = (int)(one % a->cols) - (int)(other % a->cols);
    return abs(down) <= (int)a->reach && abs(across) <= (int)a->reach;
}

/* Softmax attention of one query over rows of q, k, v in double precision. */
static void attend_wide(const struct nn_wide_attention *a, uint32_t head, uint32_t token,
                        double *out)
{
    const struct nn_heads *h = &a->heads;
    size_t row = (size_t)(h->heads + 2 * h->kv_heads) * h->dim;
    size_t past_row = 2 * (size_t)h->kv_heads * h->dim;
    size_t shared = head * h->kv_heads / h->heads * (size_t)h->dim;
    const float *q = a->qkv + token * row + (size_t)head * h->dim;
    double sum = 0.0;
    memset(out, 0, h->dim * sizeof *out);
    for (uint32_t j = 0; j < a->tokens * (1 + a->pages); j++) {
        const uint32_t frame = j / a->tokens;
        const uint32_t key = j % a->tokens;
        const float *k = frame == 0 ? a->qkv + key * row + (size_t)h->heads * h->dim
                                    : a->past[frame - 1] + key * past_row;
        double logit = 0.0;
        if ((a->cols != 0 && !sees(a, token, key)) || (frame > 0 && a->index[frame - 1][key] < 0)) {
            continue;
        }
        k += shared;
        for (uint32_t c = 0; c < h->dim; c++) {
            logit += (double)q[c] * k[c];
        }
        double weight = exp(logit / sqrt(h->dim));
        sum += weight;
        for (uint32_t c = 0; c < h->dim; c++) {
            out[c] += weight * k[(size_t)h->kv_heads * h->dim + c];
        }
    }
    for (uint32_t c = 0; c < h->dim; c++) {
        out[c] /= sum;
    }
}

/* Numbers as turn() leaves them. */
static struct buffer turned_numbers(const struct nn_kernels *kernels, size_t count,
                                    uint32_t *element)
{
    struct buffer out = buffer_make(count * sizeof(float));
    float *x = out.data;
    fill_floats(x, count, INPUT_TAME, element);
    for (size_t n = 0; n < count && kernels->precision == NN_BF16; n++) {
        uint16_t rounded;
        kernels->to_act(x + n, &rounded, 1);
        x[n] = (float)act_value(NN_BF16, &rounded, 0);
    }
    return out;
}

/* Over all tokens, and in windows of a grid of 6 x 6 with two past frames, tokens of which are not
 * there. */
static void wide_attention_is_the_formula(void)
{
    static const struct nn_heads shapes[] = {{8, 4, 16}, {3, 1, 32}, {2, 2, 64}, {4, 2, 128}};
    for (size_t i = 0; i < 4 * COUNT_OF(shapes); i++) {
        const struct nn_heads *h = &shapes[i / 4];
        enum nn_precision precision = i % 2 == 0 ? NN_FP32 : NN_BF16;
        enum { TOKENS = 36, PAST = 2 };
        struct nn_kernels kernels;
        uint32_t element = (uint32_t)i;
        int16_t index[PAST][TOKENS];
        size_t width = (size_t)h->heads * h->dim;
        nn_kernels_init(&kernels, precision, cpu_flags_detect());
        struct buffer qkv =
            turned_numbers(&kernels, TOKENS * (width + 2 * h->kv_heads * h->dim), &element);
        struct buffer past =
            turned_numbers(&kernels, PAST * TOKENS * 2 * h->kv_heads * h->dim, &element);
        struct buffer out = buffer_make(TOKENS * width * nn_act_bytes(precision));
        struct nn_wide_attention a = {
            .heads = *h, .tokens = TOKENS, .qkv = qkv.data, .out = out.data};
        for (uint32_t n = 0; n < PAST * TOKENS; n++) {
            index[n / TOKENS][n % TOKENS] = n % 5 == 3 ? -1 : (int16_t)(n % TOKENS);
        }
        if (i % 4 >= 2) {
            a.cols = 6;
            a.reach = 2;
            a.pages = PAST;
            for (uint32_t p = 0; p < PAST; p++) {
                a.past[p] = (float *)past.data + p * TOKENS * 2 * h->kv_heads * h->dim;
                a.index[p] = index[p];
            }
        }
        kernels.attention_wide(&a, 0, 1);
        kernels.attention_wide(&a, 1, h->heads);
        for (uint32_t token = 0; token < TOKENS; token++) {
            for (uint32_t head = 0; head < h->heads; head++) {
                double expected[NN_WIDE_HEAD_MAX];
                attend_wide(&a, head, token, expected);
                for (uint32_t c = 0; c < h->dim; c++) {
                    EXPECT_NEAR(
                        act_value(precision, out.data, token * width + (size_t)head * h->dim + c),
                        expected[c], precision == NN_FP32 ? 1e-6 : 1e-2);
                }
            }
        }
        buffer_end(&qkv);
        buffer_end(&past);
        buffer_end(&out);
    }
}

/* With heads of 32 and keys of their own, the past is that of the other kernels, but for the order
 * of sums; and heads that share keys see what a copy of the keys for each shows. */
static void wide_temporal_is_the_other(void)
{
    enum { TOKENS = 9, HEADS = 4, PAGES = 3, WIDTH = HEADS * NN_HEAD, SHARED = WIDTH / 2 };
    struct temporal_run run;
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_FP32, 0);
    temporal_prepare(&run, NN_FP32, TOKENS, HEADS, PAGES, INPUT_TAME, 4);
    float *found = malloc(sizeof(float) * TOKENS * WIDTH);
    struct nn_temporal t = run.call;
    t.out = found;
    const struct nn_heads own = {HEADS, HEADS, NN_HEAD};
    kernels.temporal(&run.call, 0, TOKENS);
    kernels.temporal_wide(&t, &own, 0, 5);
    kernels.temporal_wide(&t, &own, 5, TOKENS);
    for (uint32_t i = 0; i < TOKENS * WIDTH; i++) {
        EXPECT_NEAR(found[i], ((float *)run.out.data)[i], 1e-6);
    }
    /* Heads 0, 1 take the first half of a narrower row, heads 2, 3 the second. */
    static float narrow[2 * PAGES + 2][(TOKENS + PAGES) * SHARED];
    float *wide[2 * PAGES + 2];
    for (uint32_t p = 0; p < PAGES; p++) {
        wide[2 * p] = run.k[p].data;
        wide[2 * p + 1] = run.v[p].data;
    }
    wide[2 * PAGES] = run.null_k.data;
    wide[2 * PAGES + 1] = run.null_v.data;
    for (uint32_t n = 0; n < 2 * PAGES + 2; n++) {
        uint32_t rows = n < 2 * PAGES ? TOKENS + n / 2 : 1;
        for (uint32_t i = 0; i < rows * WIDTH; i++) {
            uint32_t head = i % WIDTH / NN_HEAD;
            uint32_t from = i / WIDTH * SHARED + head / 2 * NN_HEAD + i % NN_HEAD;
            narrow[n][from] = head % 2 == 0 ? wide[n][i] : narrow[n][from];
            wide[n][i] = narrow[n][from];
        }
    }
    kernels.temporal_wide(&t, &own, 0, TOKENS);
    memcpy(run.out.data, found, sizeof(float) * TOKENS * WIDTH);
    for (uint32_t p = 0; p < PAGES; p++) {
        t.k[p] = narrow[2 * p];
        t.v[p] = narrow[2 * p + 1];
    }
    t.null_k = narrow[2 * PAGES];
    t.null_v = narrow[2 * PAGES + 1];
    kernels.temporal_wide(&t, &(struct nn_heads){HEADS, 2, NN_HEAD}, 0, TOKENS);
    EXPECT_INT(first_difference(found, run.out.data, (size_t)TOKENS * WIDTH), -1);
    free(found);
    temporal_end(&run);
}

static float bf16_value(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Keys and values of e4m3 stand for their bytes times the scale of their head: attention over them
 * is that over the same numbers in bf16. A head that is not finite is NaN, one of zeros zero. */
static void pages_of_e4m3_stand_for_their_numbers(void)
{
    enum { TOKENS = 6, HEADS = 4, PAGES = 3, ROWS = (TOKENS + PAGES) * HEADS };
    static uint8_t bytes[2][PAGES][ROWS * NN_HEAD];
    static float scales[2][PAGES][ROWS];
    static float back[ROWS * NN_HEAD];
    static uint16_t numbers[2][PAGES][ROWS * NN_HEAD];
    static uint16_t found[2][ROWS * NN_HEAD];
    const struct nn_heads heads = {HEADS, HEADS, NN_HEAD};
    struct nn_kernels kernels;
    struct temporal_run run;
    nn_kernels_init(&kernels, NN_BF16, 0);
    temporal_prepare(&run, NN_BF16, TOKENS, HEADS, PAGES, INPUT_TAME, 21);
    struct nn_temporal t = run.call;
    uint32_t element = 5;
    for (int i = 0; i < 2 * PAGES; i++) {
        uint16_t *to = numbers[i % 2][i / 2];
        uint8_t *q = bytes[i % 2][i / 2];
        float *scale = scales[i % 2][i / 2];
        fill_act(NN_BF16, to, ROWS * NN_HEAD, INPUT_TAME, &element);
        for (int row = 0; row < ROWS; row++) { /* a scale of 1 / 64, so that products are exact */
            to[row * NN_HEAD] = 0x40E0;        /* 7 = 448 / 64 */
        }
        kernels.heads_to_e4m3(to, NN_HEAD, q, scale, 0, ROWS);
        kernels.heads_from_e4m3(q, NN_HEAD, scale, back, 0, ROWS);
        for (int k = 0; k < ROWS * NN_HEAD; k++) {
            const float was = bf16_value(to[k]);
            EXPECT(fabsf(back[k] - was) <= fabsf(was) / 16 + 0x1p-16f);
            memcpy(&to[k], (const uint8_t *)&back[k] + 2, sizeof to[k]);
            EXPECT(bf16_value(to[k]) == back[k]);
        }
        EXPECT(scale[0] == 0x1p-6f);
    }
    for (int way = 0; way < 2; way++) {
        for (int page = 0; page < PAGES; page++) {
            t.k[page] = way == 0 ? (const void *)numbers[0][page] : bytes[0][page];
            t.v[page] = way == 0 ? (const void *)numbers[1][page] : bytes[1][page];
            t.k_scale[page] = way == 0 ? NULL : scales[0][page];
            t.v_scale[page] = way == 0 ? NULL : scales[1][page];
        }
        t.out = found[way];
        kernels.temporal_wide(&t, &heads, 0, TOKENS);
    }
    EXPECT(memcmp(found[0], found[1], sizeof found[0]) == 0);
    static const uint16_t wild[][2] = {{0, 0x8000}, {0x7F80, 0}, {0x7FC0, 0x3F80}};
    for (int i = 0; i < 3; i++) {
        uint16_t head[16] = {wild[i][0], wild[i][1]};
        kernels.heads_to_e4m3(head, 16, bytes[0][0], scales[0][0], 0, 1);
        kernels.heads_from_e4m3(bytes[0][0], 16, scales[0][0], back, 0, 1);
        for (int k = 0; k < 16; k++) {
            EXPECT(i == 0 ? back[k] == 0.0f : isnan(back[k]));
        }
    }
    temporal_end(&run);
}

int main(void)
{
    return TEST_RUN(TEST(attention_variants_give_the_reference_bits),
                    TEST(attention_is_the_formula), TEST(temporal_variants_give_the_reference_bits),
                    TEST(temporal_is_the_formula), TEST(no_past_gives_the_sink),
                    TEST(wide_attention_is_the_formula), TEST(wide_temporal_is_the_other),
                    TEST(pages_of_e4m3_stand_for_their_numbers));
}
