/*
 * Attention over tokens: against softmax in double precision, over ranges and windows, head
 * dimensions, shared key/value heads, past frames of which tokens are missing, and all schedules;
 * NaN stays in its row and range; and a token's bits do not depend on other ranges, items or its
 * place in the batch.
 */
#include "kernels/cuda/common/matrix.h"
#include "tests/cuda/compare.h"

enum { NUMBERS_MAX = 80000, TOKENS_MAX = 400, PAGES_MAX = 4 };

struct shape {
    uint32_t items, heads, kv_heads, head_dim;
    uint32_t range_count;
    struct gpu_range range[3];
    struct gpu_grid grid; /* instead of ranges */
    bool wgmma;
    bool gaps; /* tokens are missing in past frames */
};

/* Inputs on the host, bf16. */
static uint16_t q[NUMBERS_MAX];
static uint16_t k[NUMBERS_MAX];
static uint16_t v[NUMBERS_MAX];
static uint16_t past[2 * NUMBERS_MAX]; /* of a row keys, then values */
static int16_t places[2 * PAGES_MAX * TOKENS_MAX];
static const int32_t table[2][PAGES_MAX] = {{2, -1, 0, 3}, {-1, 3, 1, -1}};
static uint16_t found[NUMBERS_MAX];
static uint16_t again[NUMBERS_MAX];

static uint32_t tokens_of(const struct shape *s)
{
    uint32_t end = s->grid.first + s->grid.rows * s->grid.cols;
    for (uint32_t i = 0; i < s->range_count; i++) {
        uint32_t last = s->range[i].first + s->range[i].count;
        end = end > last ? end : last;
    }
    return end;
}

static void fill_bf16(uint16_t *out, size_t count, enum input_kind kind, float factor,
                      uint32_t *element)
{
    for (size_t i = 0; i < count; i++) {
        float x = random_float(kind, element) * factor;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        out[i] = (uint16_t)(bits >> 16);
    }
}

/* Logits should neither be equal nor leave one key alone: queries of 3, keys of 1. */
static void fill_inputs(enum input_kind kind, uint32_t *element)
{
    fill_bf16(q, NUMBERS_MAX, kind, 3.0f, element);
    fill_bf16(k, NUMBERS_MAX, kind, 1.0f, element);
    fill_bf16(v, NUMBERS_MAX, kind, 1.0f, element);
    fill_bf16(past, COUNT_OF(past), INPUT_TAME, 1.0f, element);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        places[i] = i * 7 % 11 < 4 ? -1 : (int16_t)(i % 50);
    }
}

static struct gpu_past past_of(const struct shape *s, uint32_t tokens)
{
    const size_t kv = (size_t)s->kv_heads * s->head_dim;
    const size_t count = s->items * s->grid.past * tokens * 2 * kv;
    EXPECT(count <= COUNT_OF(past));
    struct gpu_past of = {.row = 2 * kv, .stride = PAGES_MAX};
    of.k = rig_upload(past, count * sizeof *past);
    of.v = (const uint16_t *)of.k + kv;
    of.table = rig_upload(table, sizeof table);
    of.index = s->gaps ? rig_upload(places, s->items * PAGES_MAX * tokens * sizeof *places) : NULL;
    return of;
}

static size_t out_count(const struct gpu_attention *a, const struct shape *s)
{
    return a->out_item * (s->items - 1) + a->out_row * (tokens_of(s) - 1) +
           (size_t)s->heads * s->head_dim;
}

static struct gpu_attention attention_of(const struct shape *s)
{
    uint32_t tokens = tokens_of(s);
    struct gpu_attention a = {
        .items = s->items,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .head_dim = s->head_dim,
        .range_count = s->range_count,
        .grid = s->grid,
        .q_row = s->heads * s->head_dim + 8,
        .kv_row = s->kv_heads * s->head_dim + 16,
        .kv_tokens = tokens,
        .wgmma = s->wgmma,
        .out_row = s->heads * s->head_dim + 2,
    };
    memcpy(a.range, s->range, sizeof s->range);
    a.q_item = tokens * a.q_row + 8;
    a.kv_item = tokens * a.kv_row + 16;
    a.out_item = tokens * a.out_row + 2;
    EXPECT(s->items * a.q_item <= NUMBERS_MAX && s->items * a.kv_item <= NUMBERS_MAX);
    EXPECT(s->items * tokens <= TOKENS_MAX && s->items <= COUNT_OF(table));
    a.q = rig_upload(q, s->items * a.q_item * sizeof *q);
    a.k = rig_upload(k, s->items * a.kv_item * sizeof *k);
    a.v = rig_upload(v, s->items * a.kv_item * sizeof *v);
    if (s->grid.past > 0) {
        a.past = past_of(s, tokens);
    }
    a.out = rig_alloc(out_count(&a, s) * 2);
    return a;
}

static void run(const struct gpu_attention *a, const struct shape *s, uint16_t *out)
{
    gpu_attention_launch(a, rig_stream());
    RIG_CHECK(rig_download(out, a->out, out_count(a, s) * 2));
}

/* ---- the formula ---- */

/* A key of the present frame, 0, or of a past one; value instead of key where `values`. */
static double kv_number(const struct gpu_attention *a, bool values, uint32_t frame, uint32_t item,
                        uint32_t token, uint32_t head, uint32_t c)
{
    const size_t column = (size_t)head * a->head_dim + c;
    if (frame > 0) {
        size_t row = ((size_t)item * a->grid.past + frame - 1) * a->kv_tokens + token;
        size_t width = (size_t)a->kv_heads * a->head_dim;
        return typed_value(GPU_BF16, past, row * 2 * width + (values ? width : 0) + column);
    }
    return typed_value(GPU_BF16, values ? v : k, item * a->kv_item + token * a->kv_row + column);
}

struct seen {
    uint32_t frame; /* 0: present */
    uint32_t token;
};

static uint32_t distance(uint32_t x, uint32_t y)
{
    return x > y ? x - y : y - x;
}

/* Row and column of a token of the grid. */
static void place_of(const struct gpu_grid *g, uint32_t token, uint32_t *row, uint32_t *col)
{
    *row = token / g->cols;
    *col = token % g->cols;
}

/* Number of tokens that a token attends to; its range, or the window. Returns 0 if it is in
 * neither. */
static uint32_t list_seen(const struct shape *s, uint32_t item, uint32_t token, struct seen *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->range_count; i++) {
        uint32_t first = s->range[i].first;
        for (uint32_t j = 0;
             token >= first && token < first + s->range[i].count && j < s->range[i].count; j++) {
            out[count++] = (struct seen){0, first + j};
        }
    }
    const struct gpu_grid *g = &s->grid;
    for (uint32_t frame = 0; g->rows > 0 && token >= g->first && frame <= g->past; frame++) {
        const size_t known = (size_t)item * PAGES_MAX + frame - 1;
        const int16_t *row = places + known * tokens_of(s);
        uint32_t own[2];
        uint32_t key[2];
        place_of(g, token - g->first, &own[0], &own[1]);
        for (uint32_t j = 0; (frame == 0 || table[item][frame - 1] >= 0) && j < g->rows * g->cols;
             j++) {
            place_of(g, j, &key[0], &key[1]);
            const bool there = frame == 0 || !s->gaps || row[g->first + j] >= 0;
            if (there && distance(key[0], own[0]) <= g->reach_rows &&
                distance(key[1], own[1]) <= g->reach_cols) {
                out[count++] = (struct seen){frame, g->first + j};
            }
        }
    }
    return count;
}

static void expect_token(const struct gpu_attention *a, const struct seen *seen, uint32_t count,
                         uint32_t item, uint32_t token, uint32_t head)
{
    uint32_t kv_head = head * a->kv_heads / a->heads;
    size_t own = item * a->q_item + token * a->q_row + (size_t)head * a->head_dim;
    double weight[TOKENS_MAX * (1 + PAGES_MAX)];
    double maximum = -INFINITY;
    double sum = 0.0;
    for (uint32_t j = 0; j < count; j++) {
        double logit = 0.0;
        for (uint32_t c = 0; c < a->head_dim; c++) {
            logit += typed_value(GPU_BF16, q, own + c) *
                     kv_number(a, false, seen[j].frame, item, seen[j].token, kv_head, c);
        }
        weight[j] = logit / sqrt((double)a->head_dim);
        maximum = weight[j] > maximum || weight[j] != weight[j] ? weight[j] : maximum;
    }
    for (uint32_t j = 0; j < count; j++) {
        weight[j] = exp(weight[j] - maximum);
        sum += weight[j];
    }
    for (uint32_t c = 0; c < a->head_dim; c++) {
        double y = 0.0;
        double size = 0.0;
        for (uint32_t j = 0; j < count; j++) {
            double x = weight[j] / sum *
                       kv_number(a, true, seen[j].frame, item, seen[j].token, kv_head, c);
            y += x;
            size += fabs(x);
        }
        size_t at = item * a->out_item + token * a->out_row + (size_t)head * a->head_dim + c;
        /* Weights and result are rounded to bf16, half a unit in the 8th place each. */
        expect_close("attention", at, typed_value(GPU_BF16, found, at), y,
                     isfinite(size) ? 0x1.2p-8 * size + 1e-6 : 0.0, 0x1p-8);
    }
}

static void expect_attention(const struct gpu_attention *a, const struct shape *s, uint32_t step)
{
    static struct seen seen[TOKENS_MAX * (1 + PAGES_MAX)];
    uint32_t tokens = tokens_of(s);
    for (uint32_t i = 0; i < s->items * tokens * s->heads; i += step) {
        uint32_t item = i / s->heads / tokens;
        uint32_t token = i / s->heads % tokens;
        uint32_t count = list_seen(s, item, token, seen);
        if (count > 0) {
            expect_token(a, seen, count, item, token, i % s->heads);
        }
    }
}

/* ---- tests ---- */

static const struct shape shapes[] = {
    {2, 2, 2, 32, 2, {{0, 70}, {70, 13}}, {0}, false, false},
    {1, 2, 1, 64, 1, {{2, 40}}, {0}, false, false},
    {1, 1, 1, 128, 1, {{0, 66}}, {0}, false, false},
    {1, 4, 2, 64, 1, {{3, 70}}, {0}, false, false},
    {2, 2, 1, 128, 1, {{0, 65}}, {0}, false, false},
    {1, 3, 1, 64, 2, {{0, 16}, {16, 66}}, {0}, false, false},
    {1, 2, 2, 128, 1, {{1, 67}}, {0}, false, false},
    {2, 4, 2, 32, 3, {{0, 1}, {1, 2}, {5, 31}}, {0}, false, false},
    {2, 2, 1, 32, 0, {{0}}, {0, 9, 11, 2, 3, 0}, false, false},
    {1, 2, 2, 64, 0, {{0}}, {4, 10, 9, 1, 9, 3}, false, false},
    {1, 1, 1, 32, 0, {{0}}, {1, 3, 10, 1, 0, 4}, false, true},
    {2, 2, 1, 32, 0, {{0}}, {0, 17, 5, 4, 0, 4}, false, false},
    {1, 1, 1, 64, 0, {{0}}, {3, 5, 6, 5, 5, 2}, false, true},
    {1, 1, 1, 128, 0, {{0}}, {0, 9, 9, 1, 1, 1}, false, false},
    /* Many squares, some seen whole; edges; one row; past frames, with gaps and without. */
    {1, 1, 1, 32, 0, {{0}}, {2, 9, 20, 8, 16, 0}, false, false},
    {1, 2, 1, 128, 0, {{0}}, {0, 9, 11, 2, 3, 2}, false, true},
    {2, 2, 1, 32, 0, {{0}}, {4, 3, 31, 4, 7, 4}, false, false},
    {1, 1, 1, 64, 0, {{0}}, {0, 10, 10, 15, 15, 1}, false, true},
    /* one step, two and three; less than a warpgroup, a whole block, one more */
    {1, 3, 1, 128, 3, {{0, 1}, {1, 64}, {66, 129}}, {0}, true, false},
    {2, 1, 1, 128, 1, {{3, 128}}, {0}, true, false},
    {1, 1, 1, 128, 2, {{5, 130}, {135, 261}}, {0}, true, false},
};

static void attention_is_the_softmax(void)
{
    uint32_t element = 0;
    for (uint32_t i = 0; i < COUNT_OF(shapes); i++) {
        if (shapes[i].wgmma && !rig_has_wgmma()) {
            continue;
        }
        /* Shapes share the schedules: each pattern meets at least eight. */
        uint32_t first = i * 3 % 4;
        fill_inputs(INPUT_TAME, &element);
        for (uint32_t schedule = first; schedule < rig_schedules(); schedule += 4) {
            rig_begin(schedule);
            struct gpu_attention a = attention_of(&shapes[i]);
            run(&a, &shapes[i], schedule == first ? found : again);
            if (schedule == first) {
                expect_attention(&a, &shapes[i], 5);
            } else {
                EXPECT(memcmp(found, again, out_count(&a, &shapes[i]) * 2) == 0);
            }
            RIG_CHECK(rig_end());
        }
    }
}

/* NaN and infinities reach what attends to them, by the formula, and nothing else. */
static void wild_numbers_stay_where_they_are(void)
{
    const struct shape s = {1, 2, 1, 32, 2, {{0, 3}, {3, 66}}, {0}, false, false};
    static const enum input_kind kinds[] = {INPUT_WIDE, INPUT_TINY};
    uint32_t element = 3;
    for (uint32_t i = 0; i < COUNT_OF(kinds); i++) {
        fill_inputs(kinds[i], &element);
        rig_begin(4 + i);
        struct gpu_attention a = attention_of(&s);
        run(&a, &s, found);
        expect_attention(&a, &s, 1);
        RIG_CHECK(rig_end());
    }
    fill_inputs(INPUT_TAME, &element);
    rig_begin(4);
    struct gpu_attention a = attention_of(&s);
    run(&a, &s, again);
    RIG_CHECK(rig_end());
    q[5 * a.q_row] = 0x7FC0;       /* token 5, head 0: NaN */
    k[1 * a.kv_row + 2] = 0x7FC0;  /* token 1: all of the first range */
    v[66 * a.kv_row + 3] = 0x7FC0; /* token 66: number 3 of the second */
    q[7 * a.q_row + 32] = 0x7F60;  /* token 7, head 1: logits overflow */
    rig_begin(4);
    a = attention_of(&s);
    run(&a, &s, found);
    for (uint32_t at = 0; at < out_count(&a, &s); at++) {
        uint32_t token = at / (uint32_t)a.out_row;
        uint32_t column = at % (uint32_t)a.out_row;
        bool nan = token < 3 || column % 32 == 3 || (token == 5 && column < 32);
        if (column < 64 && !(token == 7 && column >= 32)) {
            EXPECT_INT(isnan(typed_value(GPU_BF16, found, at)), nan);
            EXPECT(nan || found[at] == again[at]);
        }
    }
    RIG_CHECK(rig_end());
}

/* The same on a warpgroup, whose tiles are larger; and it is not the other kernel that answers. */
static void wild_numbers_stay_in_their_rows_of_a_warpgroup(void)
{
    struct shape s = {1, 1, 1, 128, 2, {{0, 3}, {3, 140}}, {0}, true, false};
    uint32_t element = 3;
    if (!rig_has_wgmma()) {
        return;
    }
    fill_inputs(INPUT_WIDE, &element);
    rig_begin(5);
    struct gpu_attention a = attention_of(&s);
    run(&a, &s, found);
    expect_attention(&a, &s, 3);
    fill_inputs(INPUT_TAME, &element);
    s.wgmma = false;
    a = attention_of(&s);
    run(&a, &s, found);
    s.wgmma = true;
    a = attention_of(&s);
    run(&a, &s, again);
    EXPECT(memcmp(found, again, out_count(&a, &s) * 2) != 0);
    RIG_CHECK(rig_end());
    q[5 * a.q_row] = 0x7FC0;        /* token 5 */
    k[1 * a.kv_row + 2] = 0x7FC0;   /* token 1: all of the first range */
    v[137 * a.kv_row + 3] = 0x7FC0; /* token 137: number 3 of the second */
    rig_begin(4);
    a = attention_of(&s);
    run(&a, &s, found);
    for (uint32_t at = 0; at < out_count(&a, &s); at++) {
        uint32_t token = at / (uint32_t)a.out_row;
        uint32_t column = at % (uint32_t)a.out_row;
        if (column < 128) {
            bool nan = token < 3 || column == 3 || token == 5;
            EXPECT_INT(isnan(typed_value(GPU_BF16, found, at)), nan);
            EXPECT(nan || found[at] == again[at]);
        }
    }
    RIG_CHECK(rig_end());
}

/* A range among others, in the last item of a batch, has the bits that it has alone. */
static void neighbours_do_not_matter(void)
{
    static uint16_t alone[71 * 130];
    uint32_t element = 17;
    for (uint32_t way = 0; way < 2; way++) {
        bool wgmma = way == 1;
        uint32_t heads = wgmma ? 1 : 2; /* together 128 numbers */
        struct shape one = {1, heads, 1, 128 / heads, 1, {{0, 71}}, {0}, wgmma, false};
        struct shape many = one;
        many.items = 2;
        many.range_count = 2;
        many.range[0] = (struct gpu_range){0, 13};
        many.range[1] = (struct gpu_range){13, 71};
        if (wgmma && !rig_has_wgmma()) {
            continue;
        }
        fill_inputs(INPUT_TAME, &element);
        rig_begin(6);
        struct gpu_attention a = attention_of(&one);
        run(&a, &one, alone);
        size_t rows = a.out_row;
        uint32_t active[2] = {0, 1};
        /* The same numbers as range 1 of item 1. */
        struct gpu_attention b = attention_of(&many);
        memmove(q + b.q_item + 13 * b.q_row, q, 71 * b.q_row * sizeof *q);
        memmove(k + b.kv_item + 13 * b.kv_row, k, 71 * b.kv_row * sizeof *k);
        memmove(v + b.kv_item + 13 * b.kv_row, v, 71 * b.kv_row * sizeof *v);
        b = attention_of(&many);
        b.active = rig_upload(active, sizeof active);
        run(&b, &many, found);
        for (uint32_t token = 0; token < 71; token++) {
            EXPECT(memcmp(found + b.out_item + (13 + token) * b.out_row, alone + token * rows,
                          128 * sizeof(uint16_t)) == 0);
        }
        for (uint32_t at = 0; at < b.out_item; at++) {
            EXPECT_INT(found[at], 0xA5A5); /* the inactive item was left alone */
        }
        RIG_CHECK(rig_end());
    }
}

int main(void)
{
    return TEST_RUN(TEST(attention_is_the_softmax), TEST(wild_numbers_stay_where_they_are),
                    TEST(wild_numbers_stay_in_their_rows_of_a_warpgroup),
                    TEST(neighbours_do_not_matter));
}
