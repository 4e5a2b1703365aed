/*
 * Goal: a product runs on what was fastest when its shape was timed, for ever after and in every
 * process, and has the bits of our kernel's epilogue whatever that is.
 * Method: a made-up vendor's library, which computes with our kernel and says what it was asked,
 * and made-up times. Outputs, with bias, gates, activation and items that sit out, are compared
 * with our kernel's, bit by bit; choices are looked for in what ran, again after the file was read
 * by another process. So are peaks, which are measured once a device.
 */
#include "kernels/cuda/scale/gemm_tuner.h"
#include "tests/cuda/compare.h"
#include "tests/cuda/folder.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    ITEMS = 3,
    ROWS = 8, /* of an item */
    GAP = 2,  /* rows between items of the outputs */
    N = 48,
    K = 64,
    STRIDE = 80, /* of the activations' rows */
    ALGORITHMS = 3,
    OUT_NUMBERS = ITEMS * (ROWS + GAP) * N,
};

static char folder[64] = "/tmp/swerve-library-XXXXXX";

/* ---- the vendor ---- */

static struct {
    uint32_t known[2];           /* algorithms for bf16, for fp8 */
    bool refuses[2][ALGORITHMS]; /* to run them */
    bool forgets;                /* what it took once */
    uint32_t asked, ran[2][ALGORITHMS], closed;
    double tile_ms[STORE_TILES], library_ms[ALGORITHMS]; /* that a candidate takes */
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
    EXPECT(g->items == 1);
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
    EXPECT(g->items == 1 && g->bias == NULL && g->active == NULL);
    EXPECT(g->rows == ROWS || g->rows == peak_side());
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
    EXPECT(ms >= 0.0 && g->active == NULL);
    fake.timed++;
    return choice->way == GEMM_TUNER_OWN ? fake.tile_ms[choice->tile]
                                         : fake.library_ms[choice->algorithm[0] - 0x40];
}

static struct gemm_vendor vendor = {.context = &fake,
                                    .version = 7,
                                    .text = "a library",
                                    .algorithms = fake_algorithms,
                                    .takes = fake_takes,
                                    .multiply = fake_multiply,
                                    .close = fake_close};

static const struct gemm_tuner_parts parts = {
    .vendor = &vendor, .folder = folder, .measured = fake_time};
static const struct gemm_tuner_parts timing = {
    .vendor = &vendor, .folder = folder, .timing = true, .measured = fake_time};

static struct gemm_tuner *open_tuner(const struct gemm_tuner_parts *with)
{
    struct gemm_tuner *tuner = NULL;
    struct device_text why;
    if (gemm_tuner_create(with, &tuner, &why) != DEVICE_OK) {
        TEST_FAIL("%s", why.text);
    }
    return tuner;
}

static void forget_files(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -f %s/products-*", folder);
    EXPECT_INT(system(command), 0);
}

/* Times of our tiles, as chosen, flat, small, large, and of the library's algorithms. */
static void set_times(const double tiles[STORE_TILES], const double library[ALGORITHMS])
{
    memset(&fake, 0, sizeof fake);
    memcpy(fake.tile_ms, tiles, sizeof fake.tile_ms);
    memcpy(fake.library_ms, library, sizeof fake.library_ms);
}

/* ---- products ---- */

static uint32_t drawn = 1;

static uint32_t draw(void)
{
    drawn = drawn * 1664525u + 1013904223u;
    return drawn >> 8;
}

/* Device memory with small numbers of a type. */
static void *upload_numbers(enum gpu_type type, size_t count)
{
    uint8_t *bytes = calloc(count, 4);
    for (size_t i = 0; i < count; i++) {
        float value = (float)(int)(draw() & 255) / 128.0f - 1.0f;
        uint32_t image;
        memcpy(&image, &value, sizeof image);
        if (type == GPU_F32) {
            memcpy(bytes + 4 * i, &image, sizeof image);
        } else if (type == GPU_BF16) {
            bytes[2 * i] = (uint8_t)(image >> 16);
            bytes[2 * i + 1] = (uint8_t)(image >> 24);
        } else {
            bytes[i] = (uint8_t)(draw() & 0xbf); /* at most 1.875 */
        }
    }
    void *device = rig_upload(bytes, count * gpu_type_bytes(type));
    free(bytes);
    return device;
}

/* All that a product of a served model has; the second item sits out. */
static struct gpu_gemm make_product(enum gpu_type type, enum nn_epilogue epilogue)
{
    static const uint32_t active[ITEMS] = {1, 0, 7};
    const bool floats = epilogue == NN_STORE || epilogue == NN_ADD_GATED;
    return (struct gpu_gemm){
        .type = type,
        .epilogue = epilogue,
        .items = ITEMS,
        .rows = ROWS,
        .n = N,
        .k = K,
        .a = upload_numbers(type, ITEMS * ROWS * STRIDE),
        .lda = STRIDE,
        .a_item = ROWS * STRIDE,
        .b = upload_numbers(type, N * K),
        .a_scale = type == GPU_E4M3 ? upload_numbers(GPU_F32, ITEMS * ROWS) : NULL,
        .b_scale = type == GPU_E4M3 ? upload_numbers(GPU_F32, N) : NULL,
        .bias = upload_numbers(GPU_F32, N),
        .gate = epilogue == NN_ADD_GATED ? upload_numbers(GPU_F32, ITEMS * N) : NULL,
        .gate_item = N,
        .c = floats ? upload_numbers(GPU_F32, OUT_NUMBERS) : NULL,
        .out = floats ? NULL : upload_numbers(GPU_BF16, OUT_NUMBERS),
        .ldc = N,
        .c_item = (ROWS + GAP) * N,
        .active = rig_upload(active, sizeof active),
    };
}

static size_t out_bytes(const struct gpu_gemm *g)
{
    return OUT_NUMBERS * (g->c != NULL ? sizeof(float) : 2);
}

static void *out_of(const struct gpu_gemm *g)
{
    return g->c != NULL ? (void *)g->c : g->out;
}

/* The product has the bits of our kernel on the same numbers, and all else stays as it was. */
static void expect_product(struct gemm_tuner *tuner, const struct gpu_gemm *g)
{
    static uint8_t before[OUT_NUMBERS * 4], wanted[OUT_NUMBERS * 4], found[OUT_NUMBERS * 4];
    struct device_text why = {""};
    uint32_t launches = 0;
    struct gpu_gemm own = *g;
    RIG_CHECK(rig_download(before, out_of(g), out_bytes(g)));
    void *other = rig_upload(before, out_bytes(g));
    own.c = g->c != NULL ? other : NULL;
    own.out = g->c != NULL ? NULL : other;
    gpu_gemm_launch(&own, rig_stream());
    RIG_CHECK(rig_download(wanted, other, out_bytes(g)));
    if (gemm_tuner_matmul(tuner, g, &launches, rig_stream(), &why) != DEVICE_OK) {
        TEST_FAIL("%s", why.text);
    }
    RIG_CHECK(rig_download(found, out_of(g), out_bytes(g)));
    EXPECT(memcmp(wanted, found, out_bytes(g)) == 0);
    EXPECT(memcmp(before, found, out_bytes(g)) != 0);
    EXPECT(launches == 1 || launches == 2 * ITEMS);
}

/* ---- tests ---- */

struct choice_case {
    enum gpu_type type;
    enum nn_epilogue epilogue;
    uint32_t known[2]; /* bf16, fp8 */
    double tiles[STORE_TILES], library[ALGORITHMS];
    int refuses; /* an algorithm, or -1 */
    enum gemm_tuner_way way;
    uint32_t number; /* tile or algorithm */
    uint32_t timed;
};

static void check_choice(const struct choice_case *c, unsigned schedule)
{
    struct gemm_tuner_counts counts;
    struct device_text why;
    char digest[STORE_DIGEST_BYTES];
    const uint32_t fp8 = c->type == GPU_E4M3;
    rig_begin(schedule);
    struct gpu_gemm g = make_product(c->type, c->epilogue);
    forget_files();
    set_times(c->tiles, c->library);
    memcpy(fake.known, c->known, sizeof fake.known);
    if (c->refuses >= 0) {
        fake.refuses[fp8][c->refuses] = true;
    }
    /* Timed on products of its own numbers, and kept. */
    struct gpu_gemm scratch = make_product(c->type, c->epilogue);
    struct gemm_tuner *tuner = open_tuner(&timing);
    uint32_t launches = 0;
    EXPECT_INT(gemm_tuner_matmul(tuner, &scratch, &launches, rig_stream(), &why), DEVICE_OK);
    EXPECT_INT(fake.timed, c->timed);
    gemm_tuner_count(tuner, &counts);
    EXPECT_INT(counts.way[c->way], 1);
    EXPECT_NEAR(counts.own_ms, c->tiles[0], 1e-9);
    EXPECT_NEAR(counts.chosen_ms,
                c->way == GEMM_TUNER_OWN ? c->tiles[c->number] : c->library[c->number], 1e-9);
    EXPECT(gemm_tuner_keep(tuner));
    const struct gemm_tuner_store *store = gemm_tuner_choices(tuner);
    EXPECT_INT(store->count, 1);
    EXPECT_INT(c->way == GEMM_TUNER_OWN ? store->entry[0].choice.tile
                                        : store->entry[0].choice.algorithm[0] - 0x40u,
               c->number);
    gemm_tuner_destroy(tuner);
    EXPECT_INT(fake.closed, 1);
    /* Another process: nothing is timed, and it has the library where it needs it. */
    memset(fake.ran, 0, sizeof fake.ran);
    fake.timed = fake.closed = 0;
    tuner = open_tuner(&parts);
    expect_product(tuner, &g);
    g.items = 1; /* other company, and the same choice of the library */
    g.active = NULL;
    struct device_text text;
    EXPECT_INT(gemm_tuner_matmul(tuner, &g, &launches, rig_stream(), &text), DEVICE_OK);
    gemm_tuner_count(tuner, &counts);
    EXPECT_INT(counts.way[c->way], 2);
    if (c->way == GEMM_TUNER_LIBRARY) {
        EXPECT_INT(fake.ran[fp8][c->number], ITEMS + 1);
    }
    gemm_tuner_destroy(tuner);
    EXPECT_INT(fake.closed, c->way == GEMM_TUNER_LIBRARY);
    EXPECT_INT(fake.timed, 0);
    gemm_tuner_digest(&parts, digest, &why);
    EXPECT(why.text[0] == '\0' && (digest[0] != '\0') == (c->way == GEMM_TUNER_LIBRARY));
    RIG_CHECK(rig_end());
}

static void the_fastest_is_chosen_and_kept(void)
{
    static const struct choice_case cases[] = {
        {GPU_E4M3, NN_SILU_ACT, {2, 3}, {9, 9, 9, 9}, {5, 3, 4}, -1, GEMM_TUNER_LIBRARY, 1, 7},
        {GPU_E4M3, NN_ADD_GATED, {2, 3}, {9, 9, 9, 9}, {5, 3, 4}, -1, GEMM_TUNER_LIBRARY, 1, 7},
        {GPU_E4M3, NN_STORE, {2, 3}, {2, 9, 9, 9}, {5, 3, 4}, -1, GEMM_TUNER_OWN, 0, 7},
        {GPU_E4M3, NN_STORE_ACT, {2, 3}, {9, 9, 9, 9}, {3, 1, 4}, 1, GEMM_TUNER_LIBRARY, 0, 6},
        {GPU_E4M3, NN_STORE, {2, 0}, {9, 9, 5, 9}, {1, 1, 1}, -1, GEMM_TUNER_OWN, 2, 4},
        {GPU_BF16, NN_STORE, {3, 0}, {9, 8, 9, 9}, {5, 6, 4}, -1, GEMM_TUNER_LIBRARY, 2, 7},
        {GPU_BF16, NN_ADD_GATED, {3, 0}, {9, 8, 9, 9}, {5, 6, 4}, -1, GEMM_TUNER_LIBRARY, 2, 7},
        {GPU_BF16, NN_STORE_ACT, {0, 1}, {9, 8, 9, 7}, {5, 6, 4}, -1, GEMM_TUNER_OWN, 3, 4},
        /* Candidates that a clock cannot tell apart: ours, as it chooses itself */
        {GPU_BF16, NN_SILU_ACT, {3, 0}, {5, 4.95, 4.95, 5}, {4.95, 5, 6}, -1, GEMM_TUNER_OWN, 0, 7},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        if (cases[i].type != GPU_E4M3 || rig_has_e4m3()) {
            check_choice(&cases[i], i % rig_schedules());
        }
    }
}

static const double slow[STORE_TILES] = {9, 9, 9, 9};
static const double fast[ALGORITHMS] = {5, 3, 4};

/* Times a product so that the library has it, and keeps that. */
static void keep_library(enum gpu_type type, enum nn_epilogue epilogue)
{
    struct device_text why;
    uint32_t launches = 0;
    const struct gpu_gemm g = make_product(type, epilogue);
    struct gemm_tuner *tuner = open_tuner(&timing);
    EXPECT_INT(gemm_tuner_matmul(tuner, &g, &launches, rig_stream(), &why), DEVICE_OK);
    EXPECT(gemm_tuner_keep(tuner));
    gemm_tuner_destroy(tuner);
}

/* A choice is a promise of bits: nothing takes its place but where the caller asks for ours. */
static void a_choice_that_cannot_be_run_is_a_fault(void)
{
    struct gemm_tuner *tuner = NULL;
    struct gemm_tuner_counts counts;
    struct gemm_tuner_parts own = parts;
    struct device_text why = {""};
    char digest[STORE_DIGEST_BYTES];
    uint32_t launches = 0;
    rig_begin(1);
    struct gpu_gemm g = make_product(GPU_BF16, NN_STORE);
    forget_files();
    set_times(slow, fast);
    fake.known[0] = 3;
    keep_library(GPU_BF16, NN_STORE);
    fake.forgets = true;
    tuner = open_tuner(&parts);
    EXPECT_INT(gemm_tuner_matmul(tuner, &g, &launches, rig_stream(), &why), DEVICE_FAULT_INPUT);
    EXPECT_CONTAINS(why.text, "product 8 x 48 x 64: ");
    EXPECT_CONTAINS(why.text, folder);
    EXPECT_CONTAINS(why.text, "names an algorithm that a library does not take");
    gemm_tuner_destroy(tuner);
    vendor.version = 8;
    EXPECT_INT(gemm_tuner_create(&parts, &tuner, &why), DEVICE_FAULT_INPUT);
    EXPECT_CONTAINS(why.text, "choices of products for cuBLASLt 7, found: a library");
    gemm_tuner_digest(&parts, digest, &why);
    EXPECT(digest[0] == '\0');
    EXPECT_CONTAINS(why.text, "choices of products for cuBLASLt 7, found: a library");
    own.own = true;
    fake.asked = 0;
    tuner = open_tuner(&own);
    expect_product(tuner, &g);
    gemm_tuner_count(tuner, &counts);
    EXPECT(counts.way[GEMM_TUNER_OWN] == 1 && fake.asked == 0);
    gemm_tuner_destroy(tuner);
    fake.forgets = false; /* timed anew, the file is of the new one */
    keep_library(GPU_BF16, NN_STORE);
    gemm_tuner_digest(&parts, digest, &why);
    EXPECT(digest[0] != '\0' && why.text[0] == '\0');
    vendor.version = 7;
    RIG_CHECK(rig_end());
}

/* Nothing is kept, or the library cannot compute it. */
static void other_products_are_ours(void)
{
    struct gemm_tuner_counts counts;
    struct device_text why;
    uint32_t launches = 0;
    rig_begin(4);
    forget_files();
    set_times(slow, fast);
    fake.known[0] = 3;
    struct gpu_gemm g = make_product(GPU_BF16, NN_SILU_ACT);
    struct gemm_tuner *tuner = open_tuner(&parts);
    expect_product(tuner, &g);
    EXPECT_TEXT(gemm_tuner_describe(tuner), "our kernels alone");
    EXPECT_INT(fake.timed + fake.asked + fake.closed, 0);
    gemm_tuner_destroy(tuner);
    tuner = open_tuner(&timing);
    g.n -= 8; /* no multiple of 16 */
    EXPECT_INT(gemm_tuner_matmul(tuner, &g, &launches, rig_stream(), &why), DEVICE_OK);
    gemm_tuner_count(tuner, &counts);
    EXPECT(counts.way[GEMM_TUNER_OWN] == 1 && fake.asked == 0);
    gemm_tuner_destroy(tuner);
    gemm_tuner_destroy(NULL);
    RIG_CHECK(rig_end());
}

/* ---- peaks ---- */

/* Per second, of the product that shows the peak. */
static double rate_of(double ms)
{
    return 2.0 * peak_side() * peak_side() * peak_side() / (ms * 1e-3);
}

/* The fastest on a device counts, type by type, and nothing is asked again; it is no choice. */
static void a_peak_is_measured_once(void)
{
    static const struct gemm_vendor none = {.text = "no library"};
    struct gemm_tuner_parts with = parts;
    struct device_text why;
    char digest[STORE_DIGEST_BYTES];
    rig_begin(5);
    forget_files();
    set_times(slow, fast);
    fake.known[0] = 3;
    EXPECT_NEAR(gemm_tuner_peak(&with, GPU_BF16, 0), rate_of(3), 1.0);
    EXPECT_INT(fake.timed, STORE_TILES + 3);
    EXPECT_INT(fake.closed, 1);
    fake.tile_ms[0] = 1;
    fake.timed = fake.asked = fake.closed = 0;
    EXPECT_NEAR(gemm_tuner_peak(&with, GPU_BF16, 0), rate_of(3), 1.0);
    EXPECT_INT(fake.timed + fake.asked + fake.closed, 0);
    gemm_tuner_digest(&with, digest, &why);
    EXPECT(digest[0] == '\0');
    with.vendor = NULL; /* the machine's is not opened for what is known */
    EXPECT_NEAR(gemm_tuner_peak(&with, GPU_BF16, 0), rate_of(3), 1.0);
    with.vendor = &none;
    if (rig_has_e4m3()) {
        EXPECT_NEAR(gemm_tuner_peak(&with, GPU_E4M3, rig_has_wgmma()), rate_of(1), 1.0);
        EXPECT_INT(fake.timed, rig_has_wgmma() ? 1 : STORE_TILES);
    }
    RIG_CHECK(rig_end());
}

/* Another process measures while this one does, and finds more or less. */
static double time_beside(void *context, const struct gpu_gemm *g,
                          const struct gemm_tuner_choice *choice, double ms)
{
    const double *other_ms = context;
    fake.tile_ms[0] = *other_ms;
    EXPECT_NEAR(gemm_tuner_peak(&parts, GPU_BF16, 0), rate_of(*other_ms), 1.0);
    fake.tile_ms[0] = 4;
    return fake_time(NULL, g, choice, ms);
}

static void the_largest_peak_is_kept(void)
{
    for (double other_ms = 2; other_ms < 10; other_ms += 6) {
        struct gemm_tuner_parts with = parts;
        const double least_ms = other_ms < 4 ? other_ms : 4;
        with.measured = time_beside;
        with.context = &other_ms;
        rig_begin(7);
        forget_files();
        set_times((const double[]){4, 9, 9, 9}, fast);
        EXPECT_NEAR(gemm_tuner_peak(&with, GPU_BF16, 0), rate_of(least_ms), 1.0);
        with.measured = NULL;
        EXPECT_NEAR(gemm_tuner_peak(&with, GPU_BF16, 0), rate_of(least_ms), 1.0);
        RIG_CHECK(rig_end());
    }
}

/* No clock, no memory, no folder: nothing is known, or nothing kept. */
static void a_peak_that_cannot_be_measured_is_not_known(void)
{
    static const double tiles[STORE_TILES] = {2, 9, 9, 9};
    struct gemm_tuner_parts with = parts;
    uint64_t failed = 0;
    rig_begin(6);
    forget_files();
    set_times(tiles, fast);
    with.measured = NULL;
    EXPECT(gemm_tuner_peak(&with, GPU_BF16, 0) > 0.0 || rig_emulated()); /* which has no clock */
    forget_files();
    for (double found = 0.0; found == 0.0; failed++) {
        rig_fail_allocations(failed, 1);
        found = gemm_tuner_peak(&parts, GPU_BF16, 0);
        rig_fail_allocations(0, 0);
        EXPECT(found == 0.0 || found == rate_of(2));
    }
    EXPECT_INT(failed, rig_emulated() ? 4 + 1 : 1); /* a workspace, three operands of the product */
    with = parts;
    with.folder = NULL;
    for (int i = 0; i < 2; i++) {
        fake.timed = 0;
        EXPECT_NEAR(gemm_tuner_peak(&with, GPU_BF16, 0), rate_of(2), 1.0);
        EXPECT_INT(fake.timed, STORE_TILES); /* ours alone */
    }
    RIG_CHECK(rig_end());
}

int main(void)
{
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    int failed =
        TEST_RUN(TEST(the_fastest_is_chosen_and_kept), TEST(a_choice_that_cannot_be_run_is_a_fault),
                 TEST(other_products_are_ours), TEST(a_peak_is_measured_once),
                 TEST(the_largest_peak_is_kept), TEST(a_peak_that_cannot_be_measured_is_not_known));
    return folder_remove(folder, failed);
}
