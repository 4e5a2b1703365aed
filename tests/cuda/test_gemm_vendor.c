/*
 * Goal: cuBLASLt is asked for the product that is meant, by the rules of its manual, and a product
 * that was prepared asks for nothing else, so that it can be captured.
 * Method: a made-up library (cublaslt/cublaslt.c), opened as the real one is, that judges
 * descriptors, addresses and algorithms and has our kernel compute what they say, they alone.
 * Outputs are compared with double precision.
 */
#include "kernels/cuda/scale/gemm_tuner.h"
#include "tests/cuda/compare.h"
#include "tests/cuda/cublaslt/double.h"
#include "tests/cuda/folder.h"

#include <dlfcn.h>
#include <stdlib.h>

enum {
    ROWS = 24,
    N = 48,
    K = 64,
    STRIDE = 80, /* of the activations' rows */
    OUT_STRIDE = 56,
    WEIGHTS = 2,
    MARGIN = 16, /* bytes that operands begin behind what is aligned to more */
};

static char folder[64] = "/tmp/swerve-vendor-XXXXXX";
static struct cublaslt_double *library;

static void compute(const struct cublaslt_product *p)
{
    const struct gpu_gemm g = {
        .type = p->e4m3 ? GPU_E4M3 : GPU_BF16,
        .epilogue = p->out_bf16 ? NN_STORE_ACT : NN_STORE,
        .items = 1,
        .rows = p->columns,
        .n = p->rows,
        .k = p->k,
        .a = p->b,
        .lda = p->b_stride,
        .b = p->a,
        .a_scale = p->b_scale,
        .b_scale = p->a_scale,
        .c = p->out_bf16 ? NULL : p->d,
        .out = p->out_bf16 ? p->d : NULL,
        .ldc = p->d_stride,
    };
    gpu_gemm_launch(&g, p->stream);
}

/* ---- products ---- */

static uint8_t a8[ROWS * STRIDE], b8[WEIGHTS][N * K];
static uint16_t a16[ROWS * STRIDE], b16[WEIGHTS][N * K];
static float a_scale[ROWS], b_scale[WEIGHTS][N];

static uint16_t small_number(uint32_t bits)
{
    float value = (float)(int)(bits & 255) / 128.0f - 1.0f;
    uint32_t image;
    memcpy(&image, &value, sizeof image);
    return (uint16_t)(image >> 16);
}

static void make_numbers(void)
{
    uint32_t state = 7;
    for (size_t i = 0; i < ROWS * STRIDE + WEIGHTS * N * K; i++) {
        bool is_a = i < ROWS * STRIDE;
        size_t at = is_a ? i : i - ROWS * STRIDE;
        state = state * 1664525u + 1013904223u;
        *(is_a ? &a8[at] : &b8[0][0] + at) = (uint8_t)(state >> 24 & 0xbf); /* at most 1.875 */
        *(is_a ? &a16[at] : &b16[0][0] + at) = small_number(state >> 8);
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        a_scale[i] = 0.01f * (float)(i % 5 + 1);
    }
    for (uint32_t i = 0; i < WEIGHTS * N; i++) {
        b_scale[i / N][i % N] = 0.003f * (float)(i % 7 + 1 + i / N);
    }
}

/* Device memory that is aligned to MARGIN bytes and no more. */
static void *upload_behind(const void *host, size_t bytes)
{
    static uint8_t image[MARGIN + sizeof b16[0]]; /* the largest */
    EXPECT(MARGIN + bytes <= sizeof image);
    memcpy(image + MARGIN, host, bytes);
    return (uint8_t *)rig_upload(image, MARGIN + bytes) + MARGIN;
}

static struct gpu_gemm make_matmul(enum gpu_type type, enum nn_epilogue epilogue, uint32_t weights)
{
    bool fp8 = type == GPU_E4M3;
    uint8_t *out = (uint8_t *)rig_alloc(2 * MARGIN + ROWS * OUT_STRIDE * 4) + MARGIN;
    return (struct gpu_gemm){
        .type = type,
        .epilogue = epilogue,
        .items = 1,
        .rows = ROWS,
        .n = N,
        .k = K,
        .a = fp8 ? upload_behind(a8, sizeof a8) : upload_behind(a16, sizeof a16),
        .lda = STRIDE,
        .b = fp8 ? upload_behind(b8[weights], sizeof b8[0])
                 : upload_behind(b16[weights], sizeof b16[0]),
        .a_scale = fp8 ? rig_upload(a_scale, sizeof a_scale) : NULL,
        .b_scale = fp8 ? rig_upload(b_scale[weights], sizeof b_scale[0]) : NULL,
        .c = epilogue == NN_STORE ? (float *)(void *)out : NULL,
        .out = epilogue == NN_STORE ? NULL : out,
        .ldc = OUT_STRIDE,
    };
}

static void expect_product(const struct gpu_gemm *g, uint32_t weights)
{
    static uint8_t found[ROWS * OUT_STRIDE * 4];
    bool fp8 = g->type == GPU_E4M3;
    enum gpu_type type = g->epilogue == NN_STORE ? GPU_F32 : GPU_BF16;
    const void *out = g->epilogue == NN_STORE ? (void *)g->c : g->out;
    RIG_CHECK(rig_download(found, out, ROWS * OUT_STRIDE * gpu_type_bytes(type)));
    for (uint32_t row = 0; row < ROWS; row++) {
        for (uint32_t n = 0; n < N; n++) {
            double sum = 0.0;
            double size = 0.0;
            for (uint32_t k = 0; k < K; k++) {
                double x = typed_value(g->type, fp8 ? (void *)a8 : (void *)a16, row * STRIDE + k);
                double w = typed_value(g->type, fp8 ? (void *)b8[weights] : (void *)b16[weights],
                                       n * K + k);
                sum += x * w;
                size += fabs(x * w);
            }
            double factor = fp8 ? (double)a_scale[row] * b_scale[weights][n] : 1.0;
            expect_close("product", row * N + n, typed_value(type, found, row * OUT_STRIDE + n),
                         sum * factor, size * factor * 0x1p-20, 0x1p-8);
        }
    }
}

static void reset(uint32_t algorithms)
{
    *library = (struct cublaslt_double){.compute = compute, .algorithms = algorithms};
}

/* The library's own first choice is the fastest, ours the slowest. */
static double first_is_fastest(void *context, const struct gpu_gemm *g,
                               const struct gemm_tuner_choice *choice, double ms)
{
    (void)context, (void)g, (void)ms;
    return choice->way == GEMM_TUNER_OWN ? 9.0 : 1.0;
}

static struct gemm_tuner *open_with(bool timing)
{
    struct gemm_vendor vendor;
    struct gemm_tuner *tuner = NULL;
    struct device_text why;
    gemm_vendor_open(&vendor);
    const struct gemm_tuner_parts parts = {
        .vendor = &vendor, .folder = folder, .timing = timing, .measured = first_is_fastest};
    if (vendor.context == NULL || gemm_tuner_create(&parts, &tuner, &why) != DEVICE_OK) {
        TEST_FAIL("%s, %s", vendor.text, why.text);
    }
    return tuner;
}

static int run(struct gemm_tuner *tuner, const struct gpu_gemm *g, struct device_text *why)
{
    uint32_t launches = 0;
    return gemm_tuner_matmul(tuner, g, &launches, rig_stream(), why);
}

static void must_run(struct gemm_tuner *tuner, const struct gpu_gemm *g)
{
    struct device_text why;
    if (run(tuner, g, &why) != DEVICE_OK) {
        TEST_FAIL("%s: %s", why.text, library->fault);
    }
}

/* Times a product of that shape and keeps the choice. */
static void choose(enum gpu_type type, enum nn_epilogue epilogue)
{
    const struct gpu_gemm g = make_matmul(type, epilogue, 0);
    struct gemm_tuner *tuner = open_with(true);
    must_run(tuner, &g);
    EXPECT(gemm_tuner_keep(tuner));
    gemm_tuner_destroy(tuner);
    EXPECT_INT(library->living, 0);
}

static void expect_no_fault(void)
{
    if (library->fault[0] != '\0') {
        TEST_FAIL("%s", library->fault);
    }
}

static void expect_all_on_library(struct gemm_tuner *tuner, uint32_t count)
{
    struct gemm_tuner_counts counts;
    gemm_tuner_count(tuner, &counts);
    EXPECT_INT(counts.way[GEMM_TUNER_LIBRARY], count);
    EXPECT_INT(counts.way[GEMM_TUNER_OWN], 0);
    expect_no_fault();
}

static void remove_choices(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -f %s/products-*", folder);
    EXPECT_INT(system(command), 0);
}

/* ---- tests ---- */

/* Two products of a shape in turns: each has its own weights, scales and output. */
static void a_product_is_what_was_meant(void)
{
    static const enum gpu_type types[] = {GPU_BF16, GPU_E4M3};
    static const enum nn_epilogue epilogues[] = {NN_STORE, NN_STORE_ACT};
    for (unsigned i = 0; i < 4; i++) {
        rig_begin(i % rig_schedules());
        remove_choices();
        reset(3);
        struct gpu_gemm g[WEIGHTS];
        choose(types[i % 2], epilogues[i / 2]);
        struct gemm_tuner *tuner = open_with(false);
        for (uint32_t w = 0; w < WEIGHTS; w++) {
            g[w] = make_matmul(types[i % 2], epilogues[i / 2], w);
        }
        must_run(tuner, &g[0]);
        expect_no_fault();
        library->prepared = true; /* as in a capture */
        uint32_t before = library->matmuls;
        for (uint32_t turn = 0; turn < 2 * WEIGHTS; turn++) {
            must_run(tuner, &g[turn % WEIGHTS]);
            expect_product(&g[turn % WEIGHTS], turn % WEIGHTS);
        }
        EXPECT_INT(library->matmuls, before + 2 * WEIGHTS);
        expect_all_on_library(tuner, 1 + 2 * WEIGHTS);
        gemm_tuner_destroy(tuner);
        EXPECT_INT(library->living, 0);
        RIG_CHECK(rig_end());
    }
}

/* A choice that a file kept runs again; where the library has no such algorithm any more, another
 * one is chosen by who times, and nothing takes its place before. */
static void a_kept_algorithm_is_checked(void)
{
    struct device_text why;
    rig_begin(1);
    remove_choices();
    reset(3);
    library->refused = 2; /* so that the third is kept */
    choose(GPU_E4M3, NN_STORE_ACT);
    struct gpu_gemm g = make_matmul(GPU_E4M3, NN_STORE_ACT, 0);
    for (uint32_t round = 0; round < 3; round++) {
        reset(round == 0 ? 3 : 1);
        if (round == 2) {
            choose(GPU_E4M3, NN_STORE_ACT);
        }
        uint32_t before = library->matmuls;
        struct gemm_tuner *tuner = open_with(false);
        if (round == 1) {
            EXPECT_INT(run(tuner, &g, &why), DEVICE_FAULT_INPUT);
            EXPECT_CONTAINS(why.text, "names an algorithm that cuBLASLt 990000 does not take");
        } else {
            must_run(tuner, &g);
            expect_product(&g, 0);
            expect_all_on_library(tuner, 1);
        }
        EXPECT_INT(library->matmuls, before + (round != 1));
        gemm_tuner_destroy(tuner);
        EXPECT_INT(library->living, 0);
    }
    RIG_CHECK(rig_end());
}

/* A shape that it has no algorithm for, and weights at another address than algorithms may count
 * on. */
static void what_the_library_lacks_is_ours(void)
{
    struct gemm_tuner_counts counts;
    rig_begin(2);
    remove_choices();
    for (uint32_t i = 0; i < 2; i++) {
        reset(i);
        struct gpu_gemm g = make_matmul(GPU_BF16, NN_STORE_ACT, 1);
        g.out = (uint16_t *)g.out + 2 * i;
        struct gemm_tuner *tuner = open_with(true);
        must_run(tuner, &g);
        expect_no_fault();
        gemm_tuner_count(tuner, &counts);
        EXPECT_INT(counts.way[GEMM_TUNER_OWN], 1);
        gemm_tuner_destroy(tuner);
        EXPECT_INT(library->living, 0);
    }
    RIG_CHECK(rig_end());
}

static void a_product_that_fails_says_which(void)
{
    struct device_text why = {""};
    rig_begin(3);
    remove_choices();
    reset(1);
    choose(GPU_E4M3, NN_STORE);
    struct gpu_gemm g = make_matmul(GPU_E4M3, NN_STORE, 0);
    struct gemm_tuner *tuner = open_with(false);
    must_run(tuner, &g);
    expect_no_fault();
    library->matmul_status = 13;
    EXPECT_INT(run(tuner, &g, &why), DEVICE_FAULT_LOST);
    EXPECT_CONTAINS(why.text, "product 24 x 48 x 64: CUBLAS_STATUS_EXECUTION_FAILED");
    gemm_tuner_destroy(tuner);
    RIG_CHECK(rig_end());
}

static void a_library_that_does_not_open_says_why(void)
{
    struct gemm_vendor vendor;
    reset(1);
    library->create_status = 1;
    gemm_vendor_open(&vendor);
    EXPECT(vendor.context == NULL);
    EXPECT_CONTAINS(vendor.text, "libcublasLt.so.99: CUBLAS_STATUS_NOT_INITIALIZED");
    EXPECT_INT(library->living, 0);
}

int main(void)
{
    void *handle = dlopen("libcublasLt.so.99", RTLD_NOW);
    library = handle != NULL ? dlsym(handle, "cublaslt_double") : NULL;
    if (library == NULL || mkdtemp(folder) == NULL) {
        fprintf(stderr, "%s\n", handle == NULL ? dlerror() : "no library or folder");
        return 1;
    }
    make_numbers();
    int failed =
        TEST_RUN(TEST(a_product_is_what_was_meant), TEST(a_kept_algorithm_is_checked),
                 TEST(what_the_library_lacks_is_ours), TEST(a_product_that_fails_says_which),
                 TEST(a_library_that_does_not_open_says_why));
    return folder_remove(folder, failed);
}
