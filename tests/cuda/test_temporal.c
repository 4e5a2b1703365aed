/*
 * Attention over the past: against the plain C kernel (kernels/ref/nn_attention.c) where that can
 * say it, and against the formula in double precision for shared heads, larger heads and fp8 pages;
 * pages out of order, missing pages and rows, no past at all; forks are copies of a table; a
 * token's bits do not depend on other items or on how many entries the table has.
 */
#include "kernels/cuda/common/matrix.h"
#include "tests/cuda/compare.h"

enum { TOKENS = 9, PAGES = 7, WIDTH_MAX = 6 * 128, ITEMS = 3, ROWS = 11 };

struct shape {
    enum gpu_type q_type, kv_type;
    uint32_t heads, kv_heads, head_dim, page_count;
    bool index, bias, sink;
};

static float q[ITEMS * TOKENS * (WIDTH_MAX + 8)];
static uint8_t arena[PAGES * (4 * ROWS * WIDTH_MAX + 1024)];
static float bias[8 * GPU_PAGES_MAX];
static float null_k[WIDTH_MAX];
static float null_v[WIDTH_MAX];
static int16_t index_of[ITEMS * GPU_PAGES_MAX * TOKENS + 1]; /* uploads are never empty */
static int32_t table[ITEMS * GPU_PAGES_MAX];
static uint16_t found[ITEMS * TOKENS * (WIDTH_MAX + 8)];
static uint16_t again[ITEMS * TOKENS * (WIDTH_MAX + 8)];

static void fill_inputs(const struct shape *s, enum input_kind kind, uint32_t *element)
{
    size_t count = COUNT_OF(q);
    if (s->q_type == GPU_BF16) {
        fill_act(NN_BF16, q, count, kind, element);
    } else {
        fill_floats(q, count, kind, element);
    }
    if (s->kv_type == GPU_BF16) {
        fill_act(NN_BF16, arena, sizeof arena / 2, kind, element);
    } else {
        for (size_t i = 0; i < sizeof arena; i++) {
            arena[i] = (uint8_t)random_word(element) & 0xBF;
        }
    }
    fill_floats(bias, COUNT_OF(bias), INPUT_TAME, element);
    fill_floats(null_k, COUNT_OF(null_k), INPUT_TAME, element);
    fill_floats(null_v, COUNT_OF(null_v), INPUT_TAME, element);
    for (size_t i = 0; i < COUNT_OF(index_of); i++) {
        index_of[i] = (int16_t)((int)(random_word(element) % (ROWS + 2)) - 2);
        index_of[i] = index_of[i] < 0 ? -1 : index_of[i];
    }
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        table[i] = (int32_t)(random_word(element) % (PAGES + 2)) - 2;
        table[i] = table[i] < 0 ? -1 : table[i];
    }
}

static struct gpu_temporal temporal_of(const struct shape *s, uint32_t items)
{
    uint32_t width = s->heads * s->head_dim;
    size_t kv_row = s->kv_heads * s->head_dim;
    size_t bytes = (ROWS * kv_row * gpu_type_bytes(s->kv_type) + 15) / 16 * 16;
    size_t scale_bytes = s->kv_type == GPU_E4M3 ? (ROWS * s->kv_heads * 4 + 15) / 16 * 16 : 0;
    struct gpu_temporal t = {
        .q_type = s->q_type,
        .kv_type = s->kv_type,
        .items = items,
        .tokens = TOKENS,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .head_dim = s->head_dim,
        .page_count = s->page_count,
        .q_row = width,
        .q_item = (size_t)TOKENS * width,
        .pages = {.page_bytes = 2 * bytes + 2 * scale_bytes,
                  .k_offset = bytes, /* values first: offsets are used, not assumed */
                  .k_scale_offset = 2 * bytes,
                  .v_scale_offset = 2 * bytes + scale_bytes,
                  .table_stride = GPU_PAGES_MAX},
        .kv_row = kv_row,
        .bias_stride = GPU_PAGES_MAX,
        .out_row = width + 8,
        .out_item = (size_t)TOKENS * (width + 8),
    };
    for (uint32_t i = 0; s->kv_type == GPU_E4M3 && i < PAGES * ROWS * s->kv_heads; i++) {
        size_t at = i / (ROWS * s->kv_heads) * t.pages.page_bytes + i % (ROWS * s->kv_heads) * 4;
        float scale = 0.01f * (float)(i % 13 + 1);
        memcpy(arena + at + t.pages.k_scale_offset, &scale, sizeof scale);
        memcpy(arena + at + t.pages.v_scale_offset, &scale, sizeof scale);
    }
    EXPECT(PAGES * t.pages.page_bytes <= sizeof arena && width <= WIDTH_MAX);
    t.q = rig_upload(q, items * t.q_item * gpu_type_bytes(s->q_type));
    t.pages.arena = rig_upload(arena, PAGES * t.pages.page_bytes);
    t.pages.table = rig_upload(table, items * GPU_PAGES_MAX * sizeof *table);
    if (s->index) {
        t.index = rig_upload(index_of, items * s->page_count * TOKENS * sizeof *index_of + 2);
    }
    t.bias = s->bias ? rig_upload(bias, s->heads * GPU_PAGES_MAX * sizeof *bias) : NULL;
    t.null_k = s->sink ? rig_upload(null_k, kv_row * sizeof *null_k) : NULL;
    t.null_v = s->sink ? rig_upload(null_v, kv_row * sizeof *null_v) : NULL;
    t.out = rig_alloc((items * t.out_item - 8) * 2);
    return t;
}

static void run(const struct gpu_temporal *t, uint16_t *out)
{
    gpu_temporal_launch(t, rig_stream());
    RIG_CHECK(rig_download(out, t->out, (t->items * t->out_item - 8) * 2));
}

static double rounded(double x)
{
    float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (double)float_of((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u);
}

static double page_number(const struct gpu_temporal *t, bool value, int page, int row,
                          uint32_t head, uint32_t c)
{
    const uint8_t *base = arena + (size_t)page * t->pages.page_bytes;
    const uint8_t *from = base + (value ? t->pages.v_offset : t->pages.k_offset);
    float scale = 1.0f;
    if (t->kv_type == GPU_E4M3) {
        size_t at = value ? t->pages.v_scale_offset : t->pages.k_scale_offset;
        memcpy(&scale, base + at + ((size_t)row * t->kv_heads + head) * 4, sizeof scale);
    }
    return (double)scale *
           typed_value(t->kv_type, from, (size_t)row * t->kv_row + head * t->head_dim + c);
}

static double q_number(const struct gpu_temporal *t, uint32_t item, uint32_t token, uint32_t at)
{
    return rounded(typed_value(t->q_type, q, item * t->q_item + token * t->q_row + at));
}

/* One head of one token by the formula, into out[head_dim]. */
static void expected_head(const struct gpu_temporal *t, uint32_t item, uint32_t token,
                          uint32_t head, double *out)
{
    uint32_t kv_head = head * t->kv_heads / t->heads;
    double weight[GPU_PAGES_MAX + 1];
    int page[GPU_PAGES_MAX + 1];
    int row[GPU_PAGES_MAX + 1];
    uint32_t count = 0;
    double sum = 0.0;
    double maximum = -INFINITY;
    for (uint32_t p = 0; p <= t->page_count; p++) {
        bool sink = p == t->page_count;
        page[count] = sink ? -1 : table[item * GPU_PAGES_MAX + p];
        row[count] = (int)token;
        if (!sink && t->index != NULL) {
            row[count] = index_of[(item * t->page_count + p) * TOKENS + token];
        }
        if (sink ? t->null_k == NULL : page[count] < 0 || row[count] < 0) {
            continue;
        }
        double logit = 0.0;
        for (uint32_t c = 0; c < t->head_dim; c++) {
            double key = sink ? rounded((double)null_k[kv_head * t->head_dim + c])
                              : page_number(t, false, page[count], row[count], kv_head, c);
            logit += q_number(t, item, token, head * t->head_dim + c) * key;
        }
        logit /= sqrt((double)t->head_dim);
        logit += sink || t->bias == NULL ? 0.0 : (double)bias[head * GPU_PAGES_MAX + p];
        maximum = fmax(maximum, logit);
        weight[count++] = logit;
    }
    memset(out, 0, t->head_dim * sizeof *out);
    for (uint32_t i = 0; i < count; i++) {
        weight[i] = exp(weight[i] - maximum);
        sum += weight[i];
    }
    for (uint32_t c = 0; c < t->head_dim; c++) {
        for (uint32_t i = 0; i < count; i++) {
            double value = page[i] < 0 ? rounded((double)null_v[kv_head * t->head_dim + c])
                                       : page_number(t, true, page[i], row[i], kv_head, c);
            out[c] += weight[i] / sum * value;
        }
    }
}

static void expect_temporal(const struct gpu_temporal *t)
{
    double wanted[128];
    for (uint32_t i = 0; i < t->items * TOKENS * t->heads; i++) {
        uint32_t item = i / t->heads / TOKENS;
        uint32_t token = i / t->heads % TOKENS;
        uint32_t head = i % t->heads;
        expected_head(t, item, token, head, wanted);
        for (uint32_t c = 0; c < t->head_dim; c++) {
            size_t at = item * t->out_item + token * t->out_row + head * t->head_dim + c;
            expect_close("temporal", at, typed_value(GPU_BF16, found, at), wanted[c], 0x1p-8,
                         0x1p-8);
        }
    }
}

static void temporal_is_the_formula(void)
{
    static const struct shape shapes[] = {
        {GPU_F32, GPU_BF16, 3, 3, 32, 6, true, true, true},
        {GPU_BF16, GPU_E4M3, 6, 2, 128, 12, false, false, false},
        {GPU_BF16, GPU_BF16, 4, 2, 64, 16, true, true, false},
        {GPU_F32, GPU_E4M3, 5, 1, 32, 3, true, false, true},
        {GPU_BF16, GPU_BF16, 3, 1, 128, 5, false, true, true},
        {GPU_F32, GPU_BF16, 2, 2, 32, 0, true, true, true},
        {GPU_F32, GPU_BF16, 2, 2, 32, 0, true, true, false},
        {GPU_BF16, GPU_E4M3, 2, 1, 64, 16, true, false, true},
    };
    uint32_t element = 0;
    for (uint32_t i = 0; i < COUNT_OF(shapes); i++) {
        for (uint32_t schedule = 0; schedule < rig_schedules(); schedule++) {
            fill_inputs(&shapes[i], INPUT_TAME, &element);
            rig_begin(schedule);
            struct gpu_temporal t = temporal_of(&shapes[i], schedule % ITEMS + 1);
            run(&t, found);
            expect_temporal(&t);
            RIG_CHECK(rig_end());
        }
    }
}

/* The plain C kernel's numbers, wild ones included. */
static void temporal_is_as_in_plain_c(void)
{
    static uint16_t expected[TOKENS * 96];
    const struct shape s = {GPU_F32, GPU_BF16, 3, 3, 32, 6, true, true, true};
    struct nn_kernels reference;
    nn_kernels_init(&reference, NN_BF16, 0);
    uint32_t element = 23;
    for (int kind = 0; kind < INPUT_KIND_COUNT; kind++) {
        fill_inputs(&s, (enum input_kind)kind, &element);
        rig_begin(4);
        struct gpu_temporal t = temporal_of(&s, 1);
        struct nn_temporal c = {.tokens = TOKENS,
                                .width = 96,
                                .q = q,
                                .bias_stride = GPU_PAGES_MAX,
                                .null_k = null_k,
                                .null_v = null_v,
                                .out = expected};
        float by_place[3 * GPU_PAGES_MAX];
        for (uint32_t p = 0; p < s.page_count; p++) {
            if (table[p] >= 0) { /* the C kernel's list has no holes; its bias goes by place */
                const uint8_t *base = arena + (size_t)table[p] * t.pages.page_bytes;
                for (uint32_t head = 0; head < 3; head++) {
                    by_place[head * GPU_PAGES_MAX + c.pages] = bias[head * GPU_PAGES_MAX + p];
                }
                c.k[c.pages] = base + t.pages.k_offset;
                c.v[c.pages] = base + t.pages.v_offset;
                c.index[c.pages++] = index_of + p * TOKENS;
            }
        }
        c.bias = by_place;
        reference.temporal(&c, 0, TOKENS);
        run(&t, found);
        for (uint32_t i = 0; i < TOKENS * 96; i++) {
            size_t at = i / 96 * t.out_row + i % 96;
            double wanted = typed_value(GPU_BF16, expected, i);
            double near = kind == INPUT_HUGE ? 0.0 : 0x1p-7;
            if (kind == INPUT_HUGE && !isnan(wanted)) {
                continue; /* which sums overflow depends on their order */
            }
            expect_close("temporal", at, typed_value(GPU_BF16, found, at), wanted, near, 0x1p-6);
        }
        RIG_CHECK(rig_end());
    }
}

/* A copied row of the table gives the same bits in another slot, whatever the others do. */
static void a_fork_is_a_copy_of_the_table(void)
{
    const struct shape s = {GPU_BF16, GPU_E4M3, 3, 1, 128, 12, true, true, true};
    static const uint32_t active[ITEMS] = {1, 0, 1};
    uint32_t element = 31;
    fill_inputs(&s, INPUT_TAME, &element);
    memcpy(table + 2 * GPU_PAGES_MAX, table, GPU_PAGES_MAX * sizeof *table);
    memcpy(index_of + 2 * 12 * TOKENS, index_of, 12 * TOKENS * sizeof *index_of);
    memcpy((uint16_t *)q + 2 * TOKENS * 384, q, TOKENS * 384 * sizeof(uint16_t));
    rig_begin(6);
    struct gpu_temporal t = temporal_of(&s, 1);
    run(&t, again);
    t = temporal_of(&s, 3);
    t.active = rig_upload(active, sizeof active);
    run(&t, found);
    for (uint32_t token = 0; token < TOKENS; token++) {
        const uint16_t *alone = again + token * t.out_row;
        EXPECT(memcmp(found + token * t.out_row, alone, 384 * 2) == 0);
        EXPECT(memcmp(found + 2 * t.out_item + token * t.out_row, alone, 384 * 2) == 0);
        EXPECT_INT(found[t.out_item + token * t.out_row], 0xA5A5);
    }
    RIG_CHECK(rig_end());
}

int main(void)
{
    return TEST_RUN(TEST(temporal_is_the_formula), TEST(temporal_is_as_in_plain_c),
                    TEST(a_fork_is_a_copy_of_the_table));
}
