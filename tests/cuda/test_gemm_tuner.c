/*
 * Goal: a product runs on what was fastest when its shape was timed, for ever after and in every
 * process, and gives the product whatever that is.
 * Method: a made-up vendor's library, which computes with our kernel and says what it was asked,
 * and made-up times. Outputs are compared with double precision; choices are looked for in what
 * ran, again after the file was read by another library, and with too little memory. So are peaks,
 * which are measured once a device.
 */
#include "kernels/cuda/scale/gemm_tuner.h"
#include "tests/cuda/compare.h"
#include "tests/cuda/folder.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    ROWS = 24,
    N = 48,
    K = 64,
    STRIDE = 80, /* of the activations' rows */
    WEIGHTS = 3,
    ALGORITHMS = 3,
    PEAK_ROWS = 64,         /* of the product that shows a peak, under the emulator */
    WIDE_BYTES = N * K * 2, /* of expanded weights */
};

static char folder[64] = "/tmp/swerve-library-XXXXXX";

/* ---- the vendor ---- */

static struct {
    uint32_t known[2];           /* algorithms for bf16, for fp8 */
    bool refuses[2][ALGORITHMS]; /* to run them */
    bool forgets;                /* what it took once */
    uint32_t asked, ran[2][ALGORITHMS], closed;
    double ms[GEMM_TUNER_WAYS][ALGORITHMS]; /* that a candidate takes */
    uint32_t timed;
} fake;

/* Of the product that shows a peak. */
static uint32_t peak_side(void)
{
    return rig_emulated() ? 64 : 8192;
}

static uint32_t fake_algorithms(void *context, const struct gpu_gemm *g,
                                uint8_t (*out)[STORE_ALGORITHM_BYTES], uint32_t most)
{
    uint32_t count = fake.known[g->type == GPU_E4M3];
    (void)context;
    fake.asked++;
    count = count < most ? count : most;
    for (uint32_t i = 0; i < count; i++) {
        memset(out[i], 0x40 + (int)i, STORE_ALGORITHM_BYTES);
    }
    return count;
}

static bool fake_takes(void *context, const struct gpu_gemm *g, const uint8_t *algorithm)
{
    (void)context;
    return !fake.forgets && algorithm[5] - 0x40u < fake.known[g->type == GPU_E4M3];
}

static int fake_multiply(void *context, const struct gpu_gemm *g, const uint8_t *algorithm,
                         void *workspace, void *stream, struct device_text *why)
{
    uint32_t fp8 = g->type == GPU_E4M3;
    uint32_t index = algorithm[9] - 0x40u;
    (void)context;
    EXPECT(workspace != NULL && index < fake.known[fp8]);
    EXPECT(g->items * g->rows == ROWS || g->rows == peak_side());
    if (fake.refuses[fp8][index]) {
        snprintf(why->text, sizeof why->text, "not in the mood");
        return DEVICE_FAULT_LOST;
    }
    fake.ran[fp8][index]++;
    gpu_gemm_launch(g, stream);
    return DEVICE_OK;
}

static void fake_close(void *context)
{
    (void)context;
    fake.closed++;
}

static double fake_time(void *context, const struct gpu_gemm *g,
                        const struct gemm_tuner_choice *choice, double ms)
{
    (void)context;
    (void)g;
    EXPECT(ms >= 0.0);
    fake.timed++;
    return fake.ms[choice->way][choice->way == GEMM_TUNER_OWN ? 0 : choice->algorithm[0] - 0x40];
}

static const struct gemm_vendor vendor = {.context = &fake,
                                          .version = 7,
                                          .text = "a library",
                                          .algorithms = fake_algorithms,
                                          .takes = fake_takes,
                                          .multiply = fake_multiply,
                                          .close = fake_close};

static struct gemm_tuner *open_gemm_tuner(uint64_t memory_bytes)
{
    const struct gemm_tuner_parts parts = {
        .vendor = &vendor, .folder = folder, .memory_bytes = memory_bytes, .measured = fake_time};
    struct gemm_tuner *gemm_tuner = NULL;
    struct device_text why;
    if (gemm_tuner_create_with(&parts, &gemm_tuner, &why) != DEVICE_OK) {
        TEST_FAIL("%s", why.text);
    }
    return gemm_tuner;
}

static void forget_files(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -f %s/products-*", folder);
    EXPECT_INT(system(command), 0);
}

/* ---- products ---- */

static uint8_t a8[ROWS * STRIDE];
static uint16_t a16[ROWS * STRIDE];
static uint8_t b8[WEIGHTS][N * K];
static uint16_t b16[WEIGHTS][N * K];
static float a_scale[ROWS];
static float b_scale[WEIGHTS][N];

struct matmuls {
    struct gpu_gemm g[WEIGHTS];
    const struct gpu_gemm *list[WEIGHTS];
    enum gpu_type type;
};

static void make_numbers(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < ROWS * STRIDE + WEIGHTS * N * K; i++) {
        state = state * 1664525u + 1013904223u;
        uint8_t byte = (uint8_t)(state >> 24);
        byte = (byte & 0x7f) > 0x60 ? (uint8_t)(byte & 0x9f) : byte; /* no NaN, nothing huge */
        float small = (float)(int)(state >> 8 & 255) / 128.0f - 1.0f;
        uint32_t bits;
        memcpy(&bits, &small, sizeof bits);
        bool is_a = i < ROWS * STRIDE;
        size_t at = is_a ? i : i - ROWS * STRIDE;
        size_t matrix = at / (N * K) % WEIGHTS;
        *(is_a ? &a8[at] : &b8[matrix][at % (N * K)]) = byte;
        *(is_a ? &a16[at] : &b16[matrix][at % (N * K)]) = (uint16_t)(bits >> 16);
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        a_scale[i] = 0.01f * (float)(i % 5 + 1);
    }
    for (uint32_t i = 0; i < WEIGHTS * N; i++) {
        b_scale[i / N][i % N] = 0.003f * (float)(i % 7 + 1);
    }
}

/* Products of one shape with weights each, the second half of the rows as an item of its own. */
static void make_matmuls(struct matmuls *p, enum gpu_type type)
{
    bool fp8 = type == GPU_E4M3;
    void *a = fp8 ? rig_upload(a8, sizeof a8) : rig_upload(a16, sizeof a16);
    void *scales = rig_upload(a_scale, sizeof a_scale);
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        p->g[i] = (struct gpu_gemm){
            .type = type,
            .epilogue = NN_STORE_ACT,
            .items = 2,
            .rows = ROWS / 2,
            .n = N,
            .k = K,
            .a = a,
            .lda = STRIDE,
            .a_item = ROWS / 2 * STRIDE,
            .b = fp8 ? rig_upload(b8[i], sizeof b8[i]) : rig_upload(b16[i], sizeof b16[i]),
            .a_scale = fp8 ? scales : NULL,
            .b_scale = fp8 ? rig_upload(b_scale[i], sizeof b_scale[i]) : NULL,
            .out = rig_alloc(ROWS * N * 2),
            .ldc = N,
            .c_item = ROWS / 2 * N,
        };
    }
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        p->list[i] = &p->g[i];
    }
    p->type = type;
}

/* One product of the library's, against double precision; its bits to `bits`. */
static void expect_matmul(struct gemm_tuner *gemm_tuner, const struct matmuls *p, uint32_t i,
                          uint16_t bits[ROWS * N])
{
    static uint16_t found[ROWS * N];
    struct device_text why;
    bool fp8 = p->type == GPU_E4M3;
    if (gemm_tuner_matmul(gemm_tuner, &p->g[i], rig_stream(), &why) != DEVICE_OK) {
        TEST_FAIL("%s", why.text);
    }
    RIG_CHECK(rig_download(found, p->g[i].out, sizeof found));
    for (uint32_t row = 0; row < ROWS; row++) {
        for (uint32_t n = 0; n < N; n++) {
            double sum = 0.0;
            double size = 0.0;
            for (uint32_t k = 0; k < K; k++) {
                double x = typed_value(p->type, fp8 ? (void *)a8 : (void *)a16, row * STRIDE + k);
                double w = typed_value(p->type, fp8 ? (void *)b8[i] : (void *)b16[i], n * K + k);
                sum += x * w;
                size += fabs(x * w);
            }
            double factor = fp8 ? (double)a_scale[row] * b_scale[i][n] : 1.0;
            /* Operands rounded to bf16 where they were expanded, and the result. */
            expect_close("product", row * N + n, typed_value(GPU_BF16, found, row * N + n),
                         sum * factor, size * factor * 0x1p-7, 0x1p-8);
        }
    }
    memcpy(bits, found, sizeof found);
}

static enum gemm_tuner_way way_of_last(const struct gemm_tuner *gemm_tuner,
                                       const struct gemm_tuner_counts *old)
{
    struct gemm_tuner_counts now;
    gemm_tuner_count(gemm_tuner, &now);
    for (int way = 0; way < GEMM_TUNER_WAYS; way++) {
        if (now.way[way] > old->way[way]) {
            return (enum gemm_tuner_way)way;
        }
    }
    TEST_FAIL("no product was counted");
}

static void set_times(double own, const double same[ALGORITHMS], const double wide[ALGORITHMS])
{
    memset(&fake, 0, sizeof fake);
    fake.ms[GEMM_TUNER_OWN][0] = own;
    for (int i = 0; i < ALGORITHMS; i++) {
        fake.ms[GEMM_TUNER_SAME][i] = same[i];
        fake.ms[GEMM_TUNER_BF16][i] = wide[i];
    }
}

/* ---- tests ---- */

struct choice_case {
    enum gpu_type type;
    uint32_t known[2]; /* bf16, fp8 */
    double own, same[ALGORITHMS], wide[ALGORITHMS];
    int refuses; /* an algorithm, or -1 */
    enum gemm_tuner_way way;
    uint32_t algorithm, timed;
};

static void check_choice(const struct choice_case *c, unsigned schedule)
{
    uint16_t bits[WEIGHTS][ROWS * N];
    uint16_t again[ROWS * N];
    struct gemm_tuner_counts none = {{0}};
    struct device_text why;
    uint32_t fp8 = c->type == GPU_E4M3;
    rig_begin(schedule);
    struct matmuls p;
    make_matmuls(&p, c->type);
    forget_files();
    set_times(c->own, c->same, c->wide);
    memcpy(fake.known, c->known, sizeof fake.known);
    if (c->refuses >= 0) {
        fake.refuses[c->way == GEMM_TUNER_BF16 ? 0 : fp8][c->refuses] = true;
    }
    struct gemm_tuner *gemm_tuner = open_gemm_tuner(1 << 20);
    EXPECT_INT(gemm_tuner_prepare(gemm_tuner, p.list, WEIGHTS, rig_stream(), &why), DEVICE_OK);
    EXPECT_INT(fake.timed, c->timed);
    memset(fake.ran, 0, sizeof fake.ran);
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        expect_matmul(gemm_tuner, &p, i, bits[i]);
        EXPECT_INT(way_of_last(gemm_tuner, &none), c->way);
    }
    if (c->way != GEMM_TUNER_OWN) {
        EXPECT_INT(fake.ran[c->way == GEMM_TUNER_BF16 ? 0 : fp8][c->algorithm], WEIGHTS);
    }
    EXPECT_INT(fake.timed, c->timed);
    gemm_tuner_destroy(gemm_tuner);
    EXPECT_INT(fake.closed, 1);
    /* Another process: nothing is timed, and the slowest is now the fastest. */
    for (int way = 0; way < GEMM_TUNER_WAYS; way++) {
        for (int i = 0; i < ALGORITHMS; i++) {
            fake.ms[way][i] = 1.0 / (fake.ms[way][i] + 1.0);
        }
    }
    gemm_tuner = open_gemm_tuner(1 << 20);
    fake.timed = 0;
    expect_matmul(gemm_tuner, &p, WEIGHTS - 1, again); /* in other company: alone */
    EXPECT(memcmp(again, bits[WEIGHTS - 1], sizeof again) == 0);
    EXPECT_INT(way_of_last(gemm_tuner, &none), c->way);
    EXPECT_INT(fake.timed, 0);
    gemm_tuner_destroy(gemm_tuner);
    RIG_CHECK(rig_end());
}

static void the_fastest_is_chosen_and_kept(void)
{
    static const struct choice_case cases[] = {
        /* fp8 that the library knows: its algorithms and ours, nothing expanded */
        {GPU_E4M3, {2, 3}, 9, {5, 3, 4}, {1, 1, 1}, -1, GEMM_TUNER_SAME, 1, 4},
        {GPU_E4M3, {2, 3}, 2, {5, 3, 4}, {1, 1, 1}, -1, GEMM_TUNER_OWN, 0, 4},
        {GPU_E4M3, {2, 3}, 9, {3, 1, 4}, {1, 1, 1}, 1, GEMM_TUNER_SAME, 0, 4}, /* it refuses one */
        /* fp8 that it does not know: ours, or in bf16 */
        {GPU_E4M3, {2, 0}, 9, {0, 0, 0}, {4, 3, 0}, -1, GEMM_TUNER_BF16, 1, 3},
        {GPU_E4M3, {2, 0}, 2, {0, 0, 0}, {4, 3, 0}, -1, GEMM_TUNER_OWN, 0, 3},
        {GPU_E4M3, {3, 0}, 9, {0, 0, 0}, {4, 5, 3}, 2, GEMM_TUNER_BF16, 0, 4},
        {GPU_E4M3, {0, 0}, 9, {0, 0, 0}, {0, 0, 0}, -1, GEMM_TUNER_OWN, 0, 0}, /* nothing to time */
        /* bf16 */
        {GPU_BF16, {3, 0}, 9, {5, 6, 4}, {0, 0, 0}, -1, GEMM_TUNER_SAME, 2, 4},
        {GPU_BF16, {0, 1}, 9, {5, 6, 4}, {0, 0, 0}, -1, GEMM_TUNER_OWN, 0, 0},
        /* Candidates that a clock cannot tell apart: the library's first; ours before what takes
           memory */
        {GPU_BF16, {3, 0}, 4.99, {5, 4.95, 4.99}, {0, 0, 0}, -1, GEMM_TUNER_SAME, 0, 4},
        {GPU_E4M3, {1, 0}, 5, {0, 0, 0}, {4.95, 0, 0}, -1, GEMM_TUNER_OWN, 0, 2},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        check_choice(&cases[i], i % rig_schedules());
    }
}

static void a_choice_that_the_library_forgot_is_made_anew(void)
{
    static const double same[ALGORITHMS] = {5, 3, 4};
    uint16_t bits[ROWS * N];
    struct gemm_tuner_counts none = {{0}};
    rig_begin(1);
    struct matmuls p;
    make_matmuls(&p, GPU_E4M3);
    forget_files();
    for (int round = 0; round < 3; round++) {
        set_times(9, same, same);
        fake.known[1] = 3;
        fake.forgets = round == 2;
        struct gemm_tuner *gemm_tuner = open_gemm_tuner(0);
        expect_matmul(gemm_tuner, &p, 0, bits);
        EXPECT_INT(way_of_last(gemm_tuner, &none), GEMM_TUNER_SAME);
        EXPECT_INT(fake.timed, round == 1 ? 0 : 4);
        gemm_tuner_destroy(gemm_tuner);
    }
    RIG_CHECK(rig_end());
}

/* All weights of a shape are expanded, or it is no candidate; and a choice that was made is kept or
 * fails. */
static void memory_decides_before_the_clock(void)
{
    static const double slow[ALGORITHMS] = {1, 1, 1};
    const uint64_t needed = WEIGHTS * WIDE_BYTES + ROWS * K * 2;
    uint16_t bits[ROWS * N];
    struct gemm_tuner_counts none = {{0}};
    struct device_text why;
    rig_begin(2);
    struct matmuls p;
    make_matmuls(&p, GPU_E4M3);
    forget_files();
    set_times(9, slow, slow);
    fake.known[0] = 1;
    struct gemm_tuner *gemm_tuner = open_gemm_tuner(needed - 1);
    EXPECT_INT(gemm_tuner_prepare(gemm_tuner, p.list, WEIGHTS, rig_stream(), &why), DEVICE_OK);
    expect_matmul(gemm_tuner, &p, 1, bits);
    EXPECT_INT(way_of_last(gemm_tuner, &none), GEMM_TUNER_OWN);
    EXPECT_INT(fake.timed, 0);
    gemm_tuner_destroy(gemm_tuner);
    gemm_tuner = open_gemm_tuner(needed);
    EXPECT_INT(gemm_tuner_prepare(gemm_tuner, p.list, WEIGHTS, rig_stream(), &why), DEVICE_OK);
    EXPECT_INT(fake.timed, 2); /* nothing was kept of what had not been timed */
    expect_matmul(gemm_tuner, &p, 1, bits);
    EXPECT_INT(way_of_last(gemm_tuner, &none), GEMM_TUNER_BF16);
    gemm_tuner_destroy(gemm_tuner);
    gemm_tuner = open_gemm_tuner(needed - 1);
    EXPECT_INT(gemm_tuner_prepare(gemm_tuner, p.list, WEIGHTS, rig_stream(), &why),
               DEVICE_FAULT_MEMORY);
    EXPECT_CONTAINS(why.text, "product 24 x 48 x 64 runs in bf16");
    EXPECT_CONTAINS(why.text, folder);
    gemm_tuner_destroy(gemm_tuner);
    RIG_CHECK(rig_end());
}

/* Ranks: one times, the others go by it, and the file is the first one's. */
static void choices_can_be_adopted(void)
{
    static const double same[ALGORITHMS] = {5, 3, 4};
    uint16_t bits[2][ROWS * N];
    struct gemm_tuner_counts none = {{0}};
    struct device_text why;
    rig_begin(3);
    struct matmuls p;
    make_matmuls(&p, GPU_E4M3);
    forget_files();
    set_times(9, same, same);
    fake.known[1] = 3;
    struct gemm_tuner *first = open_gemm_tuner(0);
    struct gemm_tuner *second = open_gemm_tuner(0);
    EXPECT_INT(gemm_tuner_prepare(first, p.list, WEIGHTS, rig_stream(), &why), DEVICE_OK);
    fake.timed = 0;
    gemm_tuner_adopt(second, gemm_tuner_choices(first));
    for (int i = 0; i < 2; i++) {
        expect_matmul(i == 0 ? first : second, &p, 0, bits[i]);
        EXPECT_INT(way_of_last(i == 0 ? first : second, &none), GEMM_TUNER_SAME);
    }
    EXPECT_INT(fake.ran[1][1], 1 + 3 + 2); /* tried and timed once, then two products */
    EXPECT_INT(fake.timed, 0);
    gemm_tuner_destroy(second);
    EXPECT(access(gemm_tuner_choices(first)->path, F_OK) != 0);
    gemm_tuner_destroy(first);
    forget_files();
    RIG_CHECK(rig_end());
}

/* Per second, of the product that shows the peak. */
static double rate_of(double ms)
{
    return 2.0 * peak_side() * peak_side() * peak_side() / (ms * 1e-3);
}

/* The fastest on a device counts, type by type, and nothing is asked again. */
static void a_peak_is_measured_once(void)
{
    static const double same[ALGORITHMS] = {5, 3, 4};
    static const struct gemm_vendor none = {.text = "no library"};
    struct gemm_tuner_parts parts = {.vendor = &vendor, .folder = folder, .measured = fake_time};
    rig_begin(5);
    forget_files();
    set_times(9, same, same);
    fake.known[0] = 3;
    EXPECT_NEAR(gemm_tuner_peak(&parts, GPU_BF16, 0), rate_of(3), 1.0);
    EXPECT_INT(fake.timed, 4 + 1); /* candidates, and what was chosen */
    EXPECT_INT(fake.closed, 1);
    set_times(1, same, same);
    EXPECT_NEAR(gemm_tuner_peak(&parts, GPU_BF16, 0), rate_of(3), 1.0);
    EXPECT_INT(fake.timed + fake.asked + fake.closed, 0);
    parts.vendor = NULL; /* the machine's is not opened for what is known */
    EXPECT_NEAR(gemm_tuner_peak(&parts, GPU_BF16, 0), rate_of(3), 1.0);
    parts.vendor = &none;
    if (rig_has_e4m3()) {
        EXPECT_NEAR(gemm_tuner_peak(&parts, GPU_E4M3, rig_has_wgmma()), rate_of(1), 1.0);
        EXPECT_INT(fake.timed, 1);
    }
    RIG_CHECK(rig_end());
}

/* Another process measures while this one does, and finds more or less. */
static double time_beside(void *context, const struct gpu_gemm *g,
                          const struct gemm_tuner_choice *choice, double ms)
{
    const double *other_ms = context;
    struct gemm_tuner_parts parts = {.vendor = &vendor, .folder = folder, .measured = fake_time};
    fake.ms[GEMM_TUNER_OWN][0] = *other_ms;
    EXPECT_NEAR(gemm_tuner_peak(&parts, GPU_BF16, 0), rate_of(*other_ms), 1.0);
    fake.ms[GEMM_TUNER_OWN][0] = 4;
    return fake_time(NULL, g, choice, ms);
}

static void the_largest_peak_is_kept(void)
{
    static const double same[ALGORITHMS] = {5, 3, 4};
    for (double other_ms = 2; other_ms < 10; other_ms += 6) {
        struct gemm_tuner_parts parts = {
            .vendor = &vendor, .folder = folder, .measured = time_beside, .context = &other_ms};
        const double least_ms = other_ms < 4 ? other_ms : 4;
        rig_begin(7);
        forget_files();
        set_times(4, same, same);
        EXPECT_NEAR(gemm_tuner_peak(&parts, GPU_BF16, 0), rate_of(least_ms), 1.0);
        parts.measured = NULL;
        EXPECT_NEAR(gemm_tuner_peak(&parts, GPU_BF16, 0), rate_of(least_ms), 1.0);
        RIG_CHECK(rig_end());
    }
}

/* No clock, no memory, no folder: nothing is known, or nothing kept. */
static void a_peak_that_cannot_be_measured_is_not_known(void)
{
    static const double same[ALGORITHMS] = {5, 3, 4};
    struct gemm_tuner_parts parts = {.vendor = &vendor, .folder = folder};
    uint64_t failed = 0;
    rig_begin(6);
    forget_files();
    set_times(2, same, same);
    EXPECT(gemm_tuner_peak(&parts, GPU_BF16, 0) > 0.0 || rig_emulated()); /* which has no clock */
    forget_files();
    parts.measured = fake_time;
    for (double found = 0.0; found == 0.0; failed++) {
        rig_fail_allocations(failed, 1);
        found = gemm_tuner_peak(&parts, GPU_BF16, 0);
        rig_fail_allocations(0, 0);
        EXPECT(found == 0.0 || found == rate_of(2));
    }
    EXPECT_INT(failed, rig_emulated() ? 4 + 1 : 1); /* a workspace, three operands of the product */
    parts.folder = NULL;
    for (int i = 0; i < 2; i++) {
        fake.timed = 0;
        EXPECT_NEAR(gemm_tuner_peak(&parts, GPU_BF16, 0), rate_of(2), 1.0);
        EXPECT_INT(fake.timed, 1); /* ours alone */
    }
    RIG_CHECK(rig_end());
}

static void other_products_are_ours(void)
{
    static const double fast[ALGORITHMS] = {1, 1, 1};
    uint16_t bits[ROWS * N];
    struct gemm_tuner_counts counts;
    struct device_text why;
    rig_begin(4);
    struct matmuls p;
    make_matmuls(&p, GPU_BF16);
    set_times(9, fast, fast);
    fake.known[0] = 1;
    struct gemm_tuner *gemm_tuner = open_gemm_tuner(0);
    p.g[0].a_item += STRIDE - K; /* not one matrix; the numbers do not matter */
    p.g[0].rows--;
    EXPECT_INT(gemm_tuner_prepare(gemm_tuner, p.list, 1, rig_stream(), &why), DEVICE_OK);
    EXPECT_INT(gemm_tuner_matmul(gemm_tuner, &p.g[0], rig_stream(), &why), DEVICE_OK);
    p.g[1].bias = rig_upload(b_scale, sizeof b_scale);
    EXPECT_INT(gemm_tuner_matmul(gemm_tuner, &p.g[1], rig_stream(), &why), DEVICE_OK);
    gemm_tuner_count(gemm_tuner, &counts);
    EXPECT_INT(counts.way[GEMM_TUNER_OWN], 2);
    EXPECT_INT(fake.asked, 0);
    gemm_tuner_destroy(gemm_tuner);
    gemm_tuner_destroy(NULL);
    RIG_CHECK(rig_end());
    /* The real one, where it may be missing. */
    rig_begin(4);
    make_matmuls(&p, GPU_BF16);
    setenv("SWERVE_CACHE", folder, 1);
    EXPECT_INT(gemm_tuner_create(&gemm_tuner, &why), DEVICE_OK);
    EXPECT(gemm_tuner_describe(gemm_tuner)[0] != '\0');
    expect_matmul(gemm_tuner, &p, 0, bits);
    gemm_tuner_destroy(gemm_tuner);
    RIG_CHECK(rig_end());
}

int main(void)
{
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    make_numbers();
    int failed = TEST_RUN(
        TEST(the_fastest_is_chosen_and_kept), TEST(a_choice_that_the_library_forgot_is_made_anew),
        TEST(memory_decides_before_the_clock), TEST(choices_can_be_adopted),
        TEST(a_peak_is_measured_once), TEST(the_largest_peak_is_kept),
        TEST(a_peak_that_cannot_be_measured_is_not_known), TEST(other_products_are_ours));
    return folder_remove(folder, failed);
}
