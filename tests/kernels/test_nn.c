/*
 * Products of the network kernels: matrix product and convolution. Every variant against the plain
 * C one bit for bit, on inputs from tame to pathological, all epilogues, odd row counts, strides
 * and row ranges; the plain C one against the formula in double precision; and a planted fault of
 * one last bit, which the comparison must see.
 */
#include "kernels/nn_peak.h"
#include "tests/kernels/nn_conv_rig.h"

struct gemm_case {
    uint32_t m, n, k;
    uint32_t split; /* rows of the first call; the second takes the rest */
};

static const struct gemm_case gemm_cases[] = {
    {1, 32, 32, 0},   {13, 64, 64, 5},    {37, 96, 96, 16}, {24, 160, 32, 24},
    {50, 32, 256, 7}, {33, 128, 544, 32}, {64, 64, 64, 33}, {17, 224, 128, 1},
};

/* Both tables on the same inputs; the outputs hold the same bytes before. */
struct gemm_run {
    struct buffer a, w, bias, gate, packed, out;
    struct nn_gemm call;
};

static void gemm_prepare(struct gemm_run *run, const struct nn_kernels *kernels,
                         const struct gemm_case *c, enum nn_epilogue epilogue, enum input_kind kind,
                         uint32_t seed)
{
    uint32_t element = seed;
    size_t act = nn_act_bytes(kernels->precision);
    size_t lda = c->k + (seed % 2 != 0 ? 64 : 0);
    size_t ldc = c->n + (seed % 3 != 0 ? 32 : 0);
    bool to_act = epilogue == NN_STORE_ACT || epilogue == NN_SILU_ACT;
    run->a = buffer_make(c->m * lda * act);
    run->w = buffer_make((size_t)c->n * c->k * sizeof(float));
    run->bias = buffer_make(c->n * sizeof(float));
    run->gate = buffer_make(c->n * sizeof(float));
    run->packed = buffer_make(kernels->packed_bytes(c->n, c->k));
    run->out = buffer_make(c->m * ldc * (to_act ? act : sizeof(float)));
    fill_act(kernels->precision, run->a.data, c->m * lda, kind, &element);
    /* Huge times huge is only infinite: weights of moderate size show more. */
    fill_floats(run->w.data, (size_t)c->n * c->k, kind == INPUT_HUGE ? INPUT_WIDE : kind, &element);
    fill_floats(run->bias.data, c->n, kind, &element);
    fill_floats(run->gate.data, c->n, kind, &element);
    if (!to_act) {
        fill_floats(run->out.data, c->m * ldc, INPUT_TAME, &element);
    }
    kernels->pack(run->w.data, c->n, c->k, run->packed.data);
    run->call = (struct nn_gemm){
        .m = c->m,
        .n = c->n,
        .k = c->k,
        .a = run->a.data,
        .lda = lda,
        .b = run->packed.data,
        .bias = seed % 5 != 0 ? run->bias.data : NULL,
        .epilogue = epilogue,
        .gate = seed % 7 < 4 ? run->gate.data : NULL,
        .c = to_act ? NULL : run->out.data,
        .out = to_act ? run->out.data : NULL,
        .ldc = ldc,
    };
}

static void gemm_finish(struct gemm_run *run)
{
    buffer_end(&run->a);
    buffer_end(&run->w);
    buffer_end(&run->bias);
    buffer_end(&run->gate);
    buffer_end(&run->packed);
    buffer_end(&run->out);
}

static void compare_gemm(const struct nn_kernels *found, const struct nn_kernels *reference,
                         const struct gemm_case *c, enum nn_epilogue epilogue, enum input_kind kind,
                         uint32_t seed)
{
    struct gemm_run x;
    struct gemm_run y;
    gemm_prepare(&x, found, c, epilogue, kind, seed);
    gemm_prepare(&y, reference, c, epilogue, kind, seed);
    found->gemm(&x.call, 0, c->split);
    found->gemm(&x.call, c->split, c->m);
    reference->gemm(&y.call, 0, c->m);
    size_t count = c->m * x.call.ldc;
    if (epilogue == NN_STORE_ACT || epilogue == NN_SILU_ACT) {
        expect_same_act("gemm", found, x.out.data, y.out.data, count);
    } else {
        expect_same_floats("gemm", found, x.out.data, y.out.data, count);
    }
    gemm_finish(&x);
    gemm_finish(&y);
}

/* Every shape with every epilogue; under sanitizers a third of these pairs, with each of both. */
static void compare_gemms(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    uint32_t seed = 0;
    size_t step = (size_t)test_rounds(1, 3);
    for (size_t i = 0; i < COUNT_OF(gemm_cases); i++) {
        for (int epilogue = NN_STORE; epilogue <= NN_SILU_ACT; epilogue++) {
            enum input_kind kind = (enum input_kind)(seed % INPUT_KIND_COUNT);
            if ((i + (size_t)epilogue) % step == 0) {
                compare_gemm(found, reference, &gemm_cases[i], (enum nn_epilogue)epilogue, kind,
                             seed);
            }
            seed++;
        }
    }
    const struct gemm_case small = {19, 64, 96, 6};
    for (int kind = 0; kind < INPUT_KIND_COUNT; kind++) {
        for (int epilogue = NN_STORE; epilogue <= NN_SILU_ACT; epilogue++) {
            compare_gemm(found, reference, &small, (enum nn_epilogue)epilogue,
                         (enum input_kind)kind, seed++);
        }
    }
}

static void gemm_variants_give_the_reference_bits(void)
{
    for_each_variant(compare_gemms);
}

static const struct conv_case conv_cases[] = {
    {3, 16, {32, 0}, 32, 0, 1, 3, {0, 0}},  {5, 48, {32, 0}, 64, 0, 5, 5, {0, 0}},
    {4, 32, {64, 0}, 32, 1, 2, 4, {0, 0}},  {2, 16, {32, 64}, 96, 0, 1, 2, {0, 0}},
    {3, 96, {32, 32}, 32, 0, 2, 3, {0, 0}},
};

static void compare_convs(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    compare_conv_cases(found, reference, conv_cases, COUNT_OF(conv_cases));
}

static void conv_variants_give_the_reference_bits(void)
{
    for_each_variant(compare_convs);
}

/* Weights as the products see them. */
static double weight_value(enum nn_precision precision, const struct nn_kernels *kernels, float w)
{
    uint16_t rounded;
    if (precision == NN_FP32) {
        return w;
    }
    kernels->to_act(&w, &rounded, 1);
    return act_value(NN_BF16, &rounded, 0);
}

static void expect_close(double found, double expected, double scale, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * (fabs(expected) + scale))) {
        TEST_FAIL("expected %.9g, found %.9g", expected, found);
    }
}

static void gemm_is_the_formula(void)
{
    for (int precision = 0; precision < FLOAT_PRECISIONS; precision++) {
        const struct gemm_case c = {7, 32, 256, 0};
        struct nn_kernels kernels;
        struct gemm_run run;
        nn_kernels_init(&kernels, (enum nn_precision)precision, 0);
        gemm_prepare(&run, &kernels, &c, NN_STORE, INPUT_TAME, 1);
        kernels.gemm(&run.call, 0, c.m);
        const float *w = run.w.data;
        for (size_t i = 0; i < c.m; i++) {
            for (size_t j = 0; j < c.n; j++) {
                double y = run.call.bias[j];
                for (size_t k = 0; k < c.k; k++) {
                    y += act_value(kernels.precision, run.a.data, i * run.call.lda + k) *
                         weight_value(kernels.precision, &kernels, w[j * c.k + k]);
                }
                expect_close(run.call.c[i * run.call.ldc + j], y, 16.0, 1e-6);
            }
        }
        gemm_finish(&run);
    }
}

static double conv_value(const struct nn_kernels *kernels, const struct conv_run *run, long row,
                         long col, uint32_t o)
{
    const struct nn_conv *c = &run->call;
    const float *w =
        (const float *)run->w.data + (size_t)o * 9 * (c->in_channels[0] + c->in_channels[1]);
    double y = c->bias[o];
    for (long dy = -1; dy <= 1; dy++) {
        for (long dx = -1; dx <= 1; dx++) {
            for (uint32_t i = 0; i < c->in_count; i++) {
                for (uint32_t k = 0; k < c->in_channels[i]; k++, w++) {
                    long place = (row + 1 + dy) * (long)(c->cols + 2) + col + 1 + dx;
                    if (row + dy >= 0 && row + dy < (long)c->rows && col + dx >= 0 &&
                        col + dx < (long)c->cols) {
                        y += act_value(kernels->precision, c->in[i],
                                       (size_t)place * c->in_channels[i] + k) *
                             weight_value(kernels->precision, kernels, *w);
                    }
                }
            }
        }
    }
    return y;
}

static void conv_is_the_formula(void)
{
    for (int precision = 0; precision < FLOAT_PRECISIONS; precision++) {
        const struct conv_case c = {3, 16, {32, 64}, 32, 0, 0, 3, {0, 0}};
        struct nn_kernels kernels;
        struct conv_run run;
        nn_kernels_init(&kernels, (enum nn_precision)precision, 0);
        conv_prepare(&run, &kernels, &c, 15, INPUT_TAME, 3);
        kernels.conv3x3(&run.call, 0, c.rows);
        for (uint32_t row = 0; row < c.rows; row++) {
            for (uint32_t col = 0; col < c.cols; col++) {
                for (uint32_t o = 0; o < c.out; o++) {
                    size_t flat = ((size_t)row * c.cols + col) * c.out + o;
                    double y = conv_value(&kernels, &run, row, col, o) + run.call.add[flat];
                    y = y * (1.0 + run.call.scale[o]) + run.call.shift[o];
                    /* The epilogue's SiLU is short in bf16. */
                    double tolerance = precision == NN_FP32 ? 1e-6 : 1e-5;
                    expect_close(run.call.out_f32[flat], y / (1.0 + exp(-y)), 32.0, tolerance);
                }
            }
        }
        conv_finish(&run);
    }
}

/* A sum whose exact value is just below the smallest normal number rounds up to it and is not
 * flushed; one step lower it is. */
static void blocks_flush_after_rounding(void)
{
    for (size_t i = 0; i <= COUNT_OF(variants); i++) {
        if (i > 0 && !variant_runs(&variants[i - 1])) {
            continue;
        }
        struct nn_kernels kernels;
        nn_kernels_init(&kernels, NN_BF16, i > 0 ? variants[i - 1].flags : 0);
        const struct gemm_case c = {1, 32, 32, 0};
        struct gemm_run run;
        gemm_prepare(&run, &kernels, &c, NN_STORE, INPUT_TAME, 0);
        uint16_t *a = run.a.data;
        float *w = run.w.data;
        memset(a, 0, 64);
        memset(w, 0, (size_t)32 * 32 * sizeof *w);
        a[0] = (127 - 63) << 7; /* 2^-63 */
        a[2] = 0x8000 | (127 - 74) << 7;
        for (int n = 0; n < 32; n++) {
            w[n * 32] = 0x1p-63f;
            w[n * 32 + 2] = n % 2 == 0 ? 0x1p-77f : 0x1p-75f; /* 2^-126 - 2^-151, - 2^-149 */
        }
        kernels.pack(w, 32, 32, run.packed.data);
        kernels.gemm(&run.call, 0, 1);
        for (int n = 0; n < 32; n++) {
            EXPECT(run.call.c[n] == (n % 2 == 0 ? FLT_MIN : 0.0f));
        }
        gemm_finish(&run);
    }
}

/* The comparison sees one flipped last bit, a NaN in one place and a touched guard. */
static void a_planted_fault_is_caught(void)
{
    float a[40];
    float b[40];
    uint32_t element = 0;
    fill_floats(a, COUNT_OF(a), INPUT_WILD, &element);
    memcpy(b, a, sizeof b);
    a[5] = NAN;
    b[5] = float_of(0x7FC00001);
    EXPECT_INT(first_difference(a, b, COUNT_OF(a)), -1);
    b[33] = nextafterf(a[33], 2.0f);
    EXPECT_INT(first_difference(a, b, COUNT_OF(a)), 33);
    b[7] = NAN;
    EXPECT_INT(first_difference(a, b, COUNT_OF(a)), 7);
    a[3] = 0.0f;
    b[3] = -0.0f;
    EXPECT_INT(first_difference(a, b, COUNT_OF(a)), 3);
    struct buffer buffer = buffer_make(100);
    EXPECT(buffer_intact(&buffer));
    ((uint8_t *)buffer.data)[100] ^= 1;
    EXPECT(!buffer_intact(&buffer));
    free(buffer.memory);
}

static struct nn_kernels wrong_from;

/* The reference with the chains of a block merged into one: another rounding, nothing else. */
static void wrong_gemm(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row)
{
    wrong_from.gemm(g, first_row, end_row);
    for (uint32_t row = first_row; row < end_row; row++) {
        for (uint32_t col = 0; col < g->n; col++) {
            float y = 0.0f;
            for (uint32_t k = 0; k < g->k; k++) {
                y = fmaf((float)act_value(NN_BF16, g->a, row * g->lda + k),
                         ((const float *)g->b)[(size_t)col * g->k + k], y);
            }
            g->c[row * g->ldc + col] = y;
        }
    }
}

static void a_wrong_order_of_sums_is_caught(void)
{
    const struct gemm_case c = {5, 32, 64, 2};
    struct gemm_run x;
    struct gemm_run y;
    nn_kernels_init(&wrong_from, NN_BF16, 0);
    struct nn_kernels wrong = wrong_from;
    wrong.gemm = wrong_gemm;
    gemm_prepare(&x, &wrong, &c, NN_STORE, INPUT_TAME, 0);
    gemm_prepare(&y, &wrong_from, &c, NN_STORE, INPUT_TAME, 0);
    wrong.gemm(&x.call, 0, c.m);
    wrong_from.gemm(&y.call, 0, c.m);
    EXPECT(first_difference(x.call.c, y.call.c, c.m * x.call.ldc) >= 0);
    gemm_finish(&x);
    gemm_finish(&y);
}

/* The tables that one machine has, with what their loops reach, and the one to take. */
struct race_case {
    struct nn_peaks tables;
    const char *winner;
};

static const struct race_case race_cases[] = {
    /* Pairs at half the rate of multiply-adds, and the other way round. */
    {{3, {{"avx2", 1, 90e9}, {"avx512", 3, 178e9}, {"avx512bf16", 11, 89e9}}}, "avx512"},
    {{3, {{"avx2", 1, 92e9}, {"avx512", 3, 117e9}, {"avx512bf16", 11, 234e9}}}, "avx512bf16"},
    {{4, {{"avx2", 1, 90e9}, {"avx512", 3, 160e9}, {"avx512bf16", 11, 160e9}, {"amx", 15, 2e12}}},
     "amx"},
    /* Wide registers in two halves: noise does not decide. */
    {{2, {{"avx2", 1, 100e9}, {"avx512", 3, 96e9}}}, "avx512"},
    {{2, {{"avx2", 1, 100e9}, {"avx512", 3, 94e9}}}, "avx2"},
    {{1, {{"c", 0, 2e9}}}, "c"},
};

static void the_fastest_table_wins(void)
{
    for (size_t i = 0; i < COUNT_OF(race_cases); i++) {
        const struct nn_peaks *tables = &race_cases[i].tables;
        EXPECT_TEXT(tables->tables[nn_peak_winner(tables)].name, race_cases[i].winner);
    }
}

/* Every machine that can be made of this one by masking: what wins is a table that it has, and
 * nn_kernels_init takes it by the flags of the race. */
static void a_race_is_among_the_tables_of_the_flags(void)
{
    for (uint32_t mask = 0; mask <= CPU_FLAG_ALL; mask++) {
        const uint32_t flags = cpu_flags_detect() & mask;
        for (int p = 0; p < NN_PRECISION_COUNT && (flags == mask); p++) {
            const enum nn_precision precision = (enum nn_precision)p;
            struct nn_peaks tables;
            struct nn_kernels kernels;
            nn_peak_race(precision, flags, 1, clock_system(), &tables);
            for (uint32_t i = 0; i < tables.count; i++) {
                EXPECT((tables.tables[i].flags & ~flags) == 0);
                EXPECT(tables.tables[i].flops > 0.0);
                nn_kernels_init(&kernels, precision, tables.tables[i].flags);
                EXPECT_TEXT(kernels.name, tables.tables[i].name);
            }
            double peak_flops = 0.0;
            EXPECT((nn_peak_flags(precision, flags, clock_system(), &peak_flops) & ~flags) == 0);
            EXPECT(peak_flops > 0.0);
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(gemm_variants_give_the_reference_bits),
                    TEST(conv_variants_give_the_reference_bits), TEST(gemm_is_the_formula),
                    TEST(conv_is_the_formula), TEST(blocks_flush_after_rounding),
                    TEST(a_planted_fault_is_caught), TEST(a_wrong_order_of_sums_is_caught),
                    TEST(the_fastest_table_wins), TEST(a_race_is_among_the_tables_of_the_flags));
}
