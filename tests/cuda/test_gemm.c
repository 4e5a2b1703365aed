/*
 * Products on tensor cores: against sums in double precision, over odd sizes, strides, both types,
 * both tiles, all epilogues and schedules; NaN and infinities where the sum has them; an inactive
 * item is left alone; and a row's bits do not depend on its neighbours, its place or the tile.
 */
#include "kernels/capability.h"
#include "kernels/cuda/common/matrix.h"
#include "tests/cuda/compare.h"

enum { A_MAX = 16384, B_MAX = 40960, OUT_MAX = 20000, ITEMS_MAX = 4, N_MAX = 256 };

struct shape {
    uint32_t items, rows, n, k;
};

static uint8_t a[A_MAX * 2];
static uint8_t b[B_MAX * 2];
static float a_scale[512];
static float b_scale[N_MAX];
static float bias[N_MAX];
static float gate[ITEMS_MAX * N_MAX];
static uint8_t before[OUT_MAX * 4];
static uint8_t found[OUT_MAX * 4];
static uint8_t again[OUT_MAX * 4];

static bool to_float(enum nn_epilogue epilogue)
{
    return epilogue == NN_STORE || epilogue == NN_ADD_GATED;
}

static size_t out_bytes(const struct gpu_gemm *g)
{
    size_t elements = (g->items - 1) * g->c_item + (g->rows - 1) * g->ldc + g->n;
    return elements * (to_float(g->epilogue) ? 4 : 2);
}

static void fill_operands(enum gpu_type type, enum input_kind kind, uint32_t *element)
{
    if (type == GPU_BF16) {
        fill_act(NN_BF16, a, A_MAX, kind, element);
        /* Huge times huge is only infinite: weights of moderate size show more. */
        fill_act(NN_BF16, b, B_MAX, kind == INPUT_HUGE ? INPUT_WIDE : kind, element);
    } else {
        for (size_t i = 0; i < A_MAX; i++) {
            a[i] = (uint8_t)random_word(element) & (kind == INPUT_WILD ? 0xFF : 0xBF);
        }
        for (size_t i = 0; i < B_MAX; i++) {
            b[i] = (uint8_t)random_word(element) & 0xBF;
        }
    }
    fill_floats(a_scale, COUNT_OF(a_scale), INPUT_TAME, element);
    fill_floats(b_scale, COUNT_OF(b_scale), INPUT_TAME, element);
    fill_floats(bias, COUNT_OF(bias), INPUT_TAME, element);
    fill_floats(gate, COUNT_OF(gate), INPUT_TAME, element);
    fill_floats((float *)before, OUT_MAX, INPUT_TAME, element);
}

/* Everything on the device; strides a little more than needed where `loose`. */
static struct gpu_gemm gemm_of(const struct shape *s, enum gpu_type type, enum nn_epilogue epilogue,
                               bool loose)
{
    size_t lda = s->k + (loose ? 16 : 0);
    size_t ldc = s->n + (loose ? 2 : 0);
    struct gpu_gemm g = {
        .type = type,
        .epilogue = epilogue,
        .items = s->items,
        .rows = s->rows,
        .n = s->n,
        .k = s->k,
        .lda = lda,
        .a_item = s->rows * lda + (loose ? 32 : 0),
        .gate_item = s->n + (loose ? 4 : 0),
        .ldc = ldc,
        .c_item = s->rows * ldc + (loose ? 6 : 0),
    };
    size_t a_count = (s->items - 1) * g.a_item + (s->rows - 1) * lda + s->k;
    size_t b_count = (size_t)s->n * s->k;
    EXPECT(a_count <= A_MAX && b_count <= B_MAX && s->n <= N_MAX);
    EXPECT(out_bytes(&g) <= sizeof found && s->items * s->rows <= COUNT_OF(a_scale));
    g.a = rig_upload(a, a_count * gpu_type_bytes(type));
    g.b = rig_upload(b, b_count * gpu_type_bytes(type));
    g.a_scale = type == GPU_E4M3 ? rig_upload(a_scale, s->items * s->rows * 4) : NULL;
    g.b_scale = type == GPU_E4M3 ? rig_upload(b_scale, s->n * 4) : NULL;
    g.bias = rig_upload(bias, s->n * 4);
    g.gate = loose ? rig_upload(gate, ((s->items - 1) * g.gate_item + s->n) * 4) : NULL;
    g.out = rig_upload(before, out_bytes(&g));
    g.c = to_float(epilogue) ? g.out : NULL;
    return g;
}

static void run(const struct gpu_gemm *g, uint8_t *out)
{
    gpu_gemm_launch(g, rig_stream());
    RIG_CHECK(rig_download(out, g->out, out_bytes(g)));
}

static double old_value(const struct gpu_gemm *g, size_t at)
{
    return typed_value(to_float(g->epilogue) ? GPU_F32 : GPU_BF16, before, at);
}

/* The formula; *size is the sum of magnitudes, what rounding errors are in proportion to. */
static double expected_value(const struct gpu_gemm *g, uint32_t item, uint32_t row, uint32_t col,
                             double *size)
{
    double y = 0.0;
    *size = 0.0;
    for (uint32_t k = 0; k < g->k; k++) {
        double x = typed_value(g->type, a, item * g->a_item + row * g->lda + k) *
                   typed_value(g->type, b, (size_t)col * g->k + k);
        y += x;
        *size += fabs(x);
    }
    double factor = 1.0;
    if (g->type == GPU_E4M3) {
        factor = (double)a_scale[item * g->rows + row] * (double)b_scale[col];
    }
    double own_bias = g->bias != NULL ? (double)bias[col] : 0.0;
    y = y * factor + own_bias;
    *size = *size * fabs(factor) + fabs(own_bias);
    if (g->epilogue == NN_ADD_GATED) {
        double by = g->gate != NULL ? (double)gate[item * g->gate_item + col] : 1.0;
        double old = old_value(g, item * g->c_item + row * g->ldc + col);
        y = y * by + old;
        *size = *size * fabs(by) + fabs(old);
    }
    return g->epilogue == NN_SILU_ACT ? y / (1.0 + exp(-y)) : y;
}

static void expect_matmul(const struct gpu_gemm *g, const uint32_t *active)
{
    enum gpu_type out_type = to_float(g->epilogue) ? GPU_F32 : GPU_BF16;
    for (uint32_t i = 0; i < g->items * g->rows * g->n; i++) {
        uint32_t col = i % g->n;
        uint32_t row = i / g->n % g->rows;
        uint32_t item = i / g->n / g->rows;
        size_t at = item * g->c_item + row * g->ldc + col;
        double size;
        double expected = expected_value(g, item, row, col, &size);
        double relative = out_type == GPU_BF16 ? 0x1p-8 : 0.0;
        /* Hopper keeps 14 bits of an fp8 sum on a warpgroup. */
        double unit = g->wgmma != 0 && !rig_emulated() ? 0x1p-12 : 2e-6;
        double absolute = isfinite(size) ? unit * size + 1e-38 : 0.0;
        if (active != NULL && active[item] == 0) {
            expected = old_value(g, at);
            relative = absolute = 0.0;
        }
        expect_close("product", at, typed_value(out_type, found, at), expected, absolute, relative);
    }
}

static const struct shape shapes[] = {
    {1, 1, 8, 16},   {2, 37, 72, 96}, {3, 5, 40, 272},   {1, 65, 136, 208},
    {2, 64, 64, 32}, {4, 3, 34, 144}, {1, 130, 132, 48},
};

static void products_are_the_sums(void)
{
    static const uint32_t active[ITEMS_MAX] = {1, 0, 1, 1};
    uint32_t element = 0;
    for (uint32_t i = 0; i < COUNT_OF(shapes); i++) {
        for (uint32_t schedule = 0; schedule < rig_schedules(); schedule++) {
            enum gpu_type type = (schedule + i) % 2 == 0 ? GPU_BF16 : GPU_E4M3;
            enum nn_epilogue epilogue = (enum nn_epilogue)((schedule / 2 + i) % 4);
            bool some = schedule % 3 == 0 && shapes[i].items > 1;
            fill_operands(type, INPUT_TAME, &element);
            rig_begin(schedule);
            struct gpu_gemm g = gemm_of(&shapes[i], type, epilogue, schedule % 4 != 1);
            g.active = some ? rig_upload(active, sizeof active) : NULL;
            g.tile = (enum gpu_tile)((schedule + i / 2) % 4);
            run(&g, found);
            expect_matmul(&g, some ? active : NULL);
            RIG_CHECK(rig_end());
        }
    }
}

/* On a warpgroup: less than a tile and more than one each way, one to five chunks of k, whatever
 * follows the sum. */
static void products_on_a_warpgroup_are_the_sums(void)
{
    static const struct shape wide[] = {
        {1, 1, 8, 16},   {1, 65, 136, 208}, {1, 130, 132, 48},
        {3, 5, 40, 256}, {1, 24, 64, 640},  {2, 70, 40, 112},
    };
    static const uint32_t active[ITEMS_MAX] = {1, 0, 1, 1};
    uint32_t element = 11;
    for (uint32_t i = 0; i < COUNT_OF(wide) && rig_has_wgmma(); i++) {
        for (uint32_t schedule = i % 2; schedule < rig_schedules(); schedule += 2) {
            enum nn_epilogue epilogue = (enum nn_epilogue)((schedule / 2 + i) % 4);
            bool some = schedule % 4 < 2 && wide[i].items > 1;
            fill_operands(GPU_E4M3, schedule % 3 == 0 ? INPUT_WILD : INPUT_TAME, &element);
            rig_begin(schedule);
            struct gpu_gemm g = gemm_of(&wide[i], GPU_E4M3, epilogue, wide[i].items == 1);
            g.active = some ? rig_upload(active, sizeof active) : NULL;
            g.gate = rig_upload(gate, wide[i].items * g.gate_item * 4);
            g.wgmma = 1;
            EXPECT(gpu_gemm_wgmma_suits(&g));
            run(&g, found);
            expect_matmul(&g, some ? active : NULL);
            /* The emulator's sums are exact: the same bits, but where it adds to what is there, or
             * there are NaNs. */
            if (rig_emulated() && epilogue != NN_ADD_GATED && schedule % 3 != 0) {
                memcpy(again, found, out_bytes(&g));
                g.wgmma = 0;
                run(&g, found);
                EXPECT(memcmp(found, again, out_bytes(&g)) == 0);
            }
            RIG_CHECK(rig_end());
        }
    }
}

/* Not of huge numbers: there the order of the sum decides what overflows. */
static void odd_numbers_are_the_sums(void)
{
    static const enum input_kind kinds[] = {INPUT_WIDE, INPUT_TINY, INPUT_WILD};
    uint32_t element = 5;
    for (uint32_t i = 0; i < 2 * COUNT_OF(kinds); i++) {
        enum gpu_type type = i % 2 == 0 ? GPU_BF16 : GPU_E4M3;
        fill_operands(type, kinds[i / 2], &element);
        rig_begin(4 + i);
        struct gpu_gemm g = gemm_of(&shapes[1], type, NN_STORE, true);
        run(&g, found);
        expect_matmul(&g, NULL);
        RIG_CHECK(rig_end());
    }
}

/* The last row of a batch of wild, huge rows has the bits that it has alone, in either tile. */
static void rows_are_independent(void)
{
    const struct shape one = {1, 1, 72, 304};
    const struct shape many = {3, 7, 72, 304};
    uint32_t element = 9;
    for (uint32_t i = 0; i < 8; i++) {
        bool wgmma = i == 5 || i == 7;
        enum gpu_type type = i % 2 == 0 ? GPU_BF16 : GPU_E4M3;
        size_t bytes = one.k * gpu_type_bytes(type);
        size_t last = many.items * many.rows - 1;
        fill_operands(type, INPUT_HUGE, &element);
        if (type == GPU_BF16) {
            fill_act(NN_BF16, a, one.k, INPUT_TAME, &element);
        }
        memcpy(a + last * bytes, a, bytes);
        a_scale[last] = a_scale[0];
        rig_begin(3 + i);
        struct gpu_gemm g = gemm_of(&one, type, NN_STORE, false);
        g.wgmma = wgmma && rig_has_wgmma();
        run(&g, found);
        g = gemm_of(&many, type, NN_STORE, false);
        g.tile = (enum gpu_tile)(i % 3 + 1);
        g.wgmma = wgmma && rig_has_wgmma();
        run(&g, again);
        EXPECT(memcmp(found, again + last * one.n * 4, one.n * 4) == 0);
        RIG_CHECK(rig_end());
    }
}

/* A row of every capability, its name and whether it multiplies e4m3. */
#define NAMED(major, minor, code, block, multiprocessor, threads, e4m3, wgmma) \
    {#major "." #minor, e4m3},

/* Each capability has the bits of each other one in every tile, with as much shared memory as its
 * blocks can have; e4m3 on mma.sync where there is such a thing. */
static void every_capability_multiplies(void)
{
    static const struct {
        const char *name;
        int e4m3;
    } capability[] = {GPU_CAPABILITIES(NAMED)};
    const struct shape s = {1, 130, 132, 112};
    uint32_t element = 13;
    unsigned tried = 0;
    for (uint32_t type = 0; type < 2; type++) {
        fill_operands(type == 0 ? GPU_BF16 : GPU_E4M3, INPUT_TAME, &element);
        bool first = true;
        for (uint32_t i = 0; i < COUNT_OF(capability); i++) {
            for (uint32_t tile = GPU_TILE_FLAT; tile <= GPU_TILE_LARGE; tile++) {
                if ((type == 1 && !capability[i].e4m3) || !rig_capability(capability[i].name)) {
                    continue;
                }
                rig_begin(tile % 3 + 2);
                struct gpu_gemm g = gemm_of(&s, type == 0 ? GPU_BF16 : GPU_E4M3, NN_STORE, false);
                g.tile = (enum gpu_tile)tile;
                run(&g, first ? found : again);
                EXPECT(first || memcmp(found, again, out_bytes(&g)) == 0);
                first = false;
                tried++;
                RIG_CHECK(rig_end());
            }
        }
    }
    EXPECT(!rig_emulated() || tried == 3 * (COUNT_OF(capability) + 4));
    rig_capability("9.0");
}

int main(void)
{
    return TEST_RUN(TEST(products_are_the_sums), TEST(products_on_a_warpgroup_are_the_sums),
                    TEST(odd_numbers_are_the_sums), TEST(rows_are_independent),
                    TEST(every_capability_multiplies));
}
