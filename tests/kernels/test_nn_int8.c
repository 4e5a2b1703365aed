/*
 * Products of integers (NN_INT8). Every variant against the plain C one bit for bit: rows and
 * products, inputs from tame to pathological, all epilogues, odd row counts and row ranges, every
 * product at its extreme so that a sum that saturates on the way shows; the plain C one against the
 * formulas; what zero, huge and not finite rows become; and planted faults.
 */
#include "tests/kernels/nn_compare.h"

/* Beside enum input_kind: every activation and weight 1 or -1, so 127 steps, and all products of an
 * output of one sign. */
enum { KIND_EXTREME = INPUT_KIND_COUNT, KIND_COUNT };

struct gemm_case {
    uint32_t m, n, k;
    uint32_t split; /* rows of the first call; the second takes the rest */
};

static const struct gemm_case gemm_cases[] = {
    {1, 32, 32, 0},   {13, 64, 64, 5},    {37, 96, 96, 16}, {24, 160, 32, 24},
    {50, 32, 256, 7}, {33, 128, 544, 32}, {7, 64, 4096, 3}, {17, 224, 128, 1},
};

struct gemm_run {
    struct buffer act, q, rows, w, packed, bias, gate, out;
    struct nn_gemm call;
};

/* The first rows are the special ones, as far as there are as many. */
enum { ROW_ZERO, ROW_HUGE, ROW_NAN, ROW_INFINITE, ROW_TINY, ROW_TIES, SPECIAL_ROWS };

static void fill_rows(uint16_t *act, uint32_t m, uint32_t k, int kind, uint32_t *element)
{
    if (kind == KIND_EXTREME) {
        for (size_t i = 0; i < (size_t)m * k; i++) {
            act[i] = i / k % 2 == 0 ? 0x3F80 : 0xBF80;
        }
        return;
    }
    fill_act(NN_BF16, act, (size_t)m * k, (enum input_kind)kind, element);
    for (uint32_t row = 0; row < m && row < SPECIAL_ROWS; row++, act += k) {
        if (row == ROW_ZERO) {
            for (uint32_t i = 0; i < k; i++) {
                act[i] = i % 2 == 0 ? 0 : 0x8000;
            }
        } else if (row == ROW_TINY) {
            for (uint32_t i = 0; i < k; i++) {
                act[i] = (uint16_t)((127 - 101) << 7 | (i & 0x807F)); /* below 2^-100 */
            }
        } else if (row == ROW_TIES) {
            for (uint32_t i = 0; i < k; i++) {
                act[i] = i % 2 == 0 ? 0x42FE : 0x3F00; /* 127, so steps of 1, and half a step */
            }
        } else {
            act[k - 1] = row == ROW_HUGE ? 0x7F7F : row == ROW_NAN ? 0xFFC0 : 0xFF80;
        }
    }
}

static void gemm_prepare(struct gemm_run *run, const struct nn_kernels *kernels,
                         const struct gemm_case *c, enum nn_epilogue epilogue, int kind,
                         uint32_t seed)
{
    uint32_t element = seed;
    size_t ldc = c->n + (seed % 3 != 0 ? 32 : 0);
    size_t ldq = c->k + (seed % 2 != 0 ? 64 : 0);
    bool to_act = epilogue == NN_STORE_ACT || epilogue == NN_SILU_ACT;
    enum input_kind plain = kind == KIND_EXTREME ? INPUT_TAME : (enum input_kind)kind;
    run->act = buffer_make((size_t)c->m * c->k * sizeof(uint16_t));
    run->q = buffer_make(c->m * ldq);
    run->rows = buffer_make(c->m * sizeof(struct nn_int8_row));
    run->w = buffer_make((size_t)c->n * c->k * sizeof(float));
    run->packed = buffer_make(kernels->packed_bytes_int8(c->n, c->k));
    run->bias = buffer_make(c->n * sizeof(float));
    run->gate = buffer_make(c->n * sizeof(float));
    run->out = buffer_make(c->m * ldc * (to_act ? sizeof(uint16_t) : sizeof(float)));
    fill_rows(run->act.data, c->m, c->k, kind, &element);
    float *w = run->w.data;
    fill_floats(w, (size_t)c->n * c->k, plain, &element);
    for (size_t i = 0; kind == KIND_EXTREME && i < (size_t)c->n * c->k; i++) {
        w[i] = i / c->k % 3 == 0 ? -1.0f : 1.0f;
    }
    memset(w, 0, c->k * sizeof *w); /* an output without weights */
    fill_floats(run->bias.data, c->n, plain, &element);
    fill_floats(run->gate.data, c->n, plain, &element);
    if (!to_act) {
        fill_floats(run->out.data, c->m * ldc, INPUT_TAME, &element);
    }
    kernels->pack_int8(w, c->n, c->k, run->packed.data);
    run->call = (struct nn_gemm){
        .m = c->m,
        .n = c->n,
        .k = c->k,
        .a = run->q.data,
        .lda = ldq,
        .rows = run->rows.data,
        .b = run->packed.data,
        .bias = seed % 5 != 0 ? run->bias.data : NULL,
        .epilogue = epilogue,
        .gate = seed % 7 < 4 ? run->gate.data : NULL,
        .c = to_act ? NULL : run->out.data,
        .out = to_act ? run->out.data : NULL,
        .ldc = ldc,
    };
}

static void gemm_run_rows(const struct gemm_run *run, const struct nn_kernels *kernels,
                          uint32_t first, uint32_t end)
{
    kernels->to_int8(run->act.data, run->call.k, run->q.data, run->call.lda, run->rows.data, first,
                     end);
    kernels->gemm_int8(&run->call, first, end);
}

static void gemm_end(struct gemm_run *run)
{
    buffer_end(&run->act);
    buffer_end(&run->q);
    buffer_end(&run->rows);
    buffer_end(&run->w);
    buffer_end(&run->packed);
    buffer_end(&run->bias);
    buffer_end(&run->gate);
    buffer_end(&run->out);
}

static void expect_same_rows(const struct nn_kernels *found, const struct gemm_run *x,
                             const struct gemm_run *y)
{
    const struct nn_int8_row *a = x->rows.data;
    const struct nn_int8_row *b = y->rows.data;
    EXPECT(memcmp(x->q.data, y->q.data, x->q.bytes) == 0);
    for (uint32_t row = 0; row < x->call.m; row++) {
        expect_same_floats("to_int8", found, &a[row].scale, &b[row].scale, 1);
        EXPECT_INT(a[row].sum, b[row].sum);
    }
}

static void compare_gemm(const struct nn_kernels *found, const struct nn_kernels *reference,
                         const struct gemm_case *c, enum nn_epilogue epilogue, int kind,
                         uint32_t seed)
{
    struct gemm_run x;
    struct gemm_run y;
    gemm_prepare(&x, found, c, epilogue, kind, seed);
    gemm_prepare(&y, reference, c, epilogue, kind, seed);
    gemm_run_rows(&x, found, 0, c->split);
    gemm_run_rows(&x, found, c->split, c->m);
    gemm_run_rows(&y, reference, 0, c->m);
    expect_same_rows(found, &x, &y);
    size_t count = c->m * x.call.ldc;
    if (epilogue == NN_STORE_ACT || epilogue == NN_SILU_ACT) {
        expect_same_act("gemm_int8", found, x.out.data, y.out.data, count);
    } else {
        expect_same_floats("gemm_int8", found, x.out.data, y.out.data, count);
    }
    gemm_end(&x);
    gemm_end(&y);
}

static void compare_gemms(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    uint32_t seed = 0;
    for (size_t i = 0; i < COUNT_OF(gemm_cases); i++) {
        for (int epilogue = NN_STORE; epilogue <= NN_SILU_ACT; epilogue++, seed++) {
            compare_gemm(found, reference, &gemm_cases[i], (enum nn_epilogue)epilogue,
                         (int)seed % KIND_COUNT, seed);
        }
        compare_gemm(found, reference, &gemm_cases[i], NN_STORE, KIND_EXTREME, seed);
    }
    const struct gemm_case small = {19, 64, 96, 6};
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        for (int epilogue = NN_STORE; epilogue <= NN_SILU_ACT; epilogue++) {
            compare_gemm(found, reference, &small, (enum nn_epilogue)epilogue, kind, seed++);
        }
    }
}

static void variants_give_the_reference_bits(void)
{
    for_each_int8_variant(compare_gemms);
}

/* Whole numbers of a row lie within half a step of what they stand for, the largest at 127 steps
 * (but for the rounding of the two quotients). */
static void rows_are_the_formula(void)
{
    for (int kind = INPUT_TAME; kind <= INPUT_WIDE; kind++) {
        enum { M = 20, K = 96 };
        const struct gemm_case c = {M, 32, K, 0};
        struct nn_kernels kernels;
        struct gemm_run run;
        nn_kernels_init(&kernels, NN_INT8, 0);
        gemm_prepare(&run, &kernels, &c, NN_STORE, kind, 1);
        gemm_run_rows(&run, &kernels, 0, M);
        const struct nn_int8_row *rows = run.rows.data;
        for (size_t row = ROW_TIES; row < M; row++) {
            const int8_t *q = (const int8_t *)run.q.data + row * run.call.lda;
            double largest = 0.0;
            int sum = 0;
            for (size_t i = 0; i < K; i++) {
                largest = fmax(largest, fabs(act_value(NN_BF16, run.act.data, row * K + i)));
            }
            double step = largest / 127.0;
            EXPECT(fabs(rows[row].scale - step) <= 1e-7 * step);
            for (size_t i = 0; i < K; i++) {
                double value = act_value(NN_BF16, run.act.data, row * K + i);
                EXPECT(fabs(value - q[i] * step) <= 0.500001 * step);
                EXPECT(fabs(value) < largest || abs(q[i]) == 127);
                sum += q[i];
            }
            EXPECT_INT(rows[row].sum, sum);
        }
        const int8_t *ties = (const int8_t *)run.q.data + ROW_TIES * run.call.lda;
        EXPECT_INT(ties[0], 127);
        EXPECT_INT(ties[1], 0); /* half a step, to even */
        gemm_end(&run);
    }
}

static double weight_steps(const float *w, uint32_t k, double *scale)
{
    double largest = 0.0;
    for (uint32_t i = 0; i < k; i++) {
        largest = fmax(largest, fabs((double)w[i]));
    }
    *scale = largest / 127.0;
    return largest > 0.0 ? 127.0 / largest : 0.0;
}

/* Products against the formula on the integers, in double precision; rows and outputs that no
 * float is too large for. Weights that lie within float's rounding of half a step are one step
 * wide: a slack of one step of one weight. */
static void gemm_is_the_formula(void)
{
    enum { M = 9, N = 32, K = 256 };
    const struct gemm_case c = {M, N, K, 0};
    struct nn_kernels kernels;
    struct gemm_run run;
    nn_kernels_init(&kernels, NN_INT8, 0);
    gemm_prepare(&run, &kernels, &c, NN_STORE, INPUT_TAME, 1);
    gemm_run_rows(&run, &kernels, 0, M);
    for (size_t row = ROW_TIES; row < M; row++) {
        const int8_t *q = (const int8_t *)run.q.data + row * run.call.lda;
        for (size_t n = 0; n < N; n++) {
            const float *w = (const float *)run.w.data + n * K;
            double scale;
            double steps = weight_steps(w, K, &scale);
            double sum = 0.0;
            for (size_t k = 0; k < K; k++) {
                sum += q[k] * rint(w[k] * steps);
            }
            scale *= run.call.rows[row].scale;
            double y = sum * scale + run.call.bias[n];
            double slack = 127.0 * scale + 1e-6 * (fabs(y) + 16.0);
            EXPECT(fabs(run.call.c[row * run.call.ldc + n] - y) <= slack);
        }
    }
    gemm_end(&run);
}

/* Rows of zeros and such that are too small give the bias; a NaN or an infinity makes all of its
 * own row NaN, so that it is counted in the end, and no other row. */
static void special_rows_end_as_stated(void)
{
    enum { M = SPECIAL_ROWS, N = 32, K = 64 };
    for (size_t v = 0; v <= COUNT_OF(int8_variants); v++) {
        const struct gemm_case c = {M, N, K, 0};
        struct nn_kernels kernels;
        struct gemm_run run;
        if (v > 0 && !variant_runs(&int8_variants[v - 1])) {
            continue;
        }
        nn_kernels_init(&kernels, NN_INT8, v > 0 ? int8_variants[v - 1].flags : 0);
        gemm_prepare(&run, &kernels, &c, NN_STORE, INPUT_TAME, 1);
        gemm_run_rows(&run, &kernels, 0, M);
        EXPECT(run.call.rows[ROW_ZERO].scale == 0.0f && run.call.rows[ROW_TINY].scale == 0.0f);
        for (size_t n = 0; n < N; n++) {
            const float *y = run.call.c + n;
            size_t ldc = run.call.ldc;
            float bias = run.call.bias[n];
            EXPECT(y[ROW_ZERO * ldc] == bias && y[ROW_TINY * ldc] == bias);
            EXPECT(isnan(y[ROW_NAN * ldc]) && isnan(y[ROW_INFINITE * ldc]));
            EXPECT(isfinite(y[ROW_HUGE * ldc]) && isfinite(y[ROW_TIES * ldc]));
            double huge = FLT_MAX * (double)((const float *)run.w.data)[n * K + K - 1];
            EXPECT(fabs(y[ROW_HUGE * ldc] - huge) < 0.01 * FLT_MAX);
        }
        gemm_end(&run);
    }
}

/* A function that NN_INT8 does not have of its own is NN_BF16's. */
static void the_rest_is_bf16(void)
{
    struct nn_kernels a;
    struct nn_kernels b;
    nn_kernels_init(&a, NN_INT8, cpu_flags_detect());
    nn_kernels_init(&b, NN_BF16, cpu_flags_detect());
    EXPECT_INT(a.precision, NN_INT8);
    EXPECT_INT((int)nn_act_bytes(NN_INT8), 2);
    EXPECT(b.gemm_int8 == NULL && b.pack_int8 == NULL && b.to_int8 == NULL);
    EXPECT(a.gemm == b.gemm && a.pack == b.pack && a.conv3x3 == b.conv3x3 && a.norm == b.norm);
    EXPECT(a.attention == b.attention && a.temporal == b.temporal && a.to_act == b.to_act);
}

static struct nn_kernels right;

/* The reference with sums of two products held at 16 bits, as VPMADDUBSW on bytes plus 128 would.
 */
static void saturating_gemm(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row)
{
    const float *scale = g->b;
    right.gemm_int8(g, first_row, end_row);
    for (uint32_t row = first_row; row < end_row; row++) {
        const int8_t *a = (const int8_t *)g->a + row * g->lda;
        for (uint32_t col = 0; col < g->n; col++) {
            const int8_t *w = (const int8_t *)(scale + g->n) + (size_t)col * g->k;
            int32_t sum = -128 * g->rows[row].sum;
            for (uint32_t k = 0; k < g->k; k += 2) {
                int32_t pair = a[k] * (w[k] + 128) + a[k + 1] * (w[k + 1] + 128);
                sum += pair > INT16_MAX ? INT16_MAX : pair < INT16_MIN ? INT16_MIN : pair;
            }
            g->c[row * g->ldc + col] = (float)sum * (g->rows[row].scale * scale[col]);
        }
    }
}

/* As kind `kind`, with another gemm, or with one weight a step further in the packed bytes. */
static bool fault_shows(int kind, bool weight)
{
    const struct gemm_case c = {5, 32, 64, 2};
    struct gemm_run x;
    struct gemm_run y;
    gemm_prepare(&x, &right, &c, NN_STORE, kind, 0);
    gemm_prepare(&y, &right, &c, NN_STORE, kind, 0);
    if (weight) {
        ((int8_t *)x.packed.data)[x.packed.bytes - 1] ^= 1;
        gemm_run_rows(&x, &right, 0, c.m);
    } else {
        right.to_int8(x.act.data, c.k, x.q.data, x.call.lda, x.rows.data, 0, c.m);
        saturating_gemm(&x.call, 0, c.m);
    }
    gemm_run_rows(&y, &right, 0, c.m);
    bool shows = first_difference(x.call.c, y.call.c, c.m * x.call.ldc) >= 0;
    gemm_end(&x);
    gemm_end(&y);
    return shows;
}

static void planted_faults_are_caught(void)
{
    nn_kernels_init(&right, NN_INT8, 0);
    EXPECT(fault_shows(INPUT_TAME, true));
    EXPECT(fault_shows(KIND_EXTREME, false));
}

/* ---- e4m3 ---- */

/* The number that a byte stands for, but for NaN: OCP 8-bit floating point, section 5. */
static double e4m3(uint8_t byte)
{
    int exponent = byte >> 3 & 15;
    double size = exponent == 0 ? ldexp(byte & 7, -9) : ldexp(8 + (byte & 7), exponent - 10);
    return byte & 0x80 ? -size : size;
}

/* The nearest of all 254 numbers, of two as near the one whose byte is even. */
static uint8_t nearest_e4m3(double x)
{
    uint8_t best = 0;
    for (int byte = 0; byte < 256; byte++) {
        double gain = fabs(e4m3(best) - x) - fabs(e4m3((uint8_t)byte) - x);
        if ((byte & 0x7F) != 0x7F && signbit(x) == (byte >> 7) &&
            (gain > 0.0 || (gain == 0.0 && byte % 2 == 0) || signbit(x) != best >> 7)) {
            best = (uint8_t)byte;
        }
    }
    return best;
}

/* A row whose largest is 448 has a scale of 1: its bytes are its numbers, rounded. */
static void e4m3_is_the_nearest(void)
{
    enum { COUNT = 4096 };
    static float row[COUNT];
    static uint8_t packed[sizeof(float) + COUNT];
    struct nn_kernels kernels;
    uint32_t element = 3;
    nn_kernels_init(&kernels, NN_BF16, 0);
    EXPECT_INT(kernels.packed_bytes_e4m3(1, COUNT), sizeof packed);
    row[0] = -448.0f;
    for (uint32_t i = 1; i < COUNT; i++) { /* every number, every middle, and what lies between */
        double low = e4m3((uint8_t)(i / 16 % 126));
        double high = e4m3((uint8_t)(i / 16 % 126 + 1));
        double part = i % 16 < 9 ? i % 16 / 8.0 : (random_float(INPUT_TAME, &element) + 1.0) / 2.0;
        row[i] = (float)((low + (high - low) * part) * (i / 2048 == 0 ? 1.0 : -1.0));
    }
    kernels.pack_e4m3(row, 1, COUNT, packed);
    float scale;
    memcpy(&scale, packed, sizeof scale);
    EXPECT_NEAR(scale, 1.0, 0.0);
    for (uint32_t i = 0; i < COUNT; i++) {
        EXPECT_INT(packed[sizeof scale + i], nearest_e4m3(row[i]));
    }
}

static void e4m3_rows_end_as_stated(void)
{
    enum { K = 32 };
    struct nn_kernels kernels;
    uint16_t act[3][K] = {{0}};
    int8_t q[3][K + 4];
    struct nn_int8_row rows[3];
    nn_kernels_init(&kernels, NN_BF16, 0);
    act[0][3] = 0x7F80; /* infinite */
    act[1][3] = 0x0800; /* 3.9e-34 */
    act[2][3] = 0xC200; /* -32 */
    kernels.to_e4m3(act, K, q[0], K + 4, rows, 0, 3);
    EXPECT(isnan(rows[0].scale) && q[0][3] == 0);
    EXPECT(rows[1].scale == 0.0f && q[1][3] == 0);
    EXPECT(rows[2].scale == 32.0f / 448.0f && (uint8_t)q[2][3] == 0xFE);
}

/* A product of what was rounded, in double precision; with terms and rows that fill no block. */
static void e4m3_products_are_the_formula(void)
{
    enum { M = 19, N = 96, K = 160 };
    static float w[N * K];
    static float c[M * N];
    static float bias[N];
    static uint16_t act[M * K];
    static int8_t q[M * K];
    static uint8_t packed[N * (sizeof(float) + K)] __attribute__((aligned(64)));
    struct nn_int8_row rows[M];
    struct nn_kernels kernels;
    uint32_t element = 8;
    nn_kernels_init(&kernels, NN_BF16, 0);
    fill_floats(w, N * K, INPUT_TAME, &element);
    fill_floats(bias, N, INPUT_TAME, &element);
    fill_act(NN_BF16, act, M * K, INPUT_TAME, &element);
    kernels.pack_e4m3(w, N, K, packed);
    kernels.to_e4m3(act, K, q, K, rows, 0, M);
    const struct nn_gemm g = {.m = M,
                              .n = N,
                              .k = K,
                              .a = q,
                              .lda = K,
                              .rows = rows,
                              .b = packed,
                              .bias = bias,
                              .epilogue = NN_STORE,
                              .c = c,
                              .ldc = N};
    kernels.gemm_e4m3(&g, 0, 5);
    kernels.gemm_e4m3(&g, 5, M);
    const float *scale = (const float *)packed;
    const uint8_t *bytes = packed + N * sizeof(float);
    for (uint32_t m = 0; m < M; m++) {
        for (uint32_t n = 0; n < N; n++) {
            double sum = 0.0;
            double size = 0.0;
            for (uint32_t k = 0; k < K; k++) {
                double term = e4m3((uint8_t)q[m * K + k]) * e4m3(bytes[n * K + k]);
                sum += term;
                size += fabs(term);
            }
            double unit = (double)rows[m].scale * scale[n];
            EXPECT_NEAR(c[m * N + n], sum * unit + bias[n], (size * unit + 1.0) * 1e-6);
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(variants_give_the_reference_bits), TEST(rows_are_the_formula),
                    TEST(gemm_is_the_formula), TEST(special_rows_end_as_stated),
                    TEST(the_rest_is_bf16), TEST(planted_faults_are_caught),
                    TEST(e4m3_is_the_nearest), TEST(e4m3_rows_end_as_stated),
                    TEST(e4m3_products_are_the_formula));
}
