/*
 * Rows between products: residual and norm, activations quantised, keys turned, keys and values
 * stored in pages; each against its formula in double precision, over odd sizes and all schedules,
 * with NaN and huge numbers where they are defined; a row's bits do not depend on its neighbours.
 */
#include "kernels/cuda/common/matrix.h"
#include "tests/cuda/compare.h"

enum { WIDTH_MAX = 4100, ROWS_MAX = 7 };

static float x[ROWS_MAX * WIDTH_MAX];
static uint16_t y[ROWS_MAX * WIDTH_MAX];
static float gate[3 * WIDTH_MAX];
static float scale[3 * WIDTH_MAX];
static float shift[3 * WIDTH_MAX];
static float sum[ROWS_MAX * WIDTH_MAX];
static uint8_t found[ROWS_MAX * WIDTH_MAX * 2];
static uint8_t again[ROWS_MAX * WIDTH_MAX * 2];
static float steps[ROWS_MAX];

static void fill(enum input_kind kind, uint32_t *element)
{
    fill_floats(x, COUNT_OF(x), kind, element);
    fill_act(NN_BF16, y, COUNT_OF(y), kind, element);
    fill_floats(gate, COUNT_OF(gate), INPUT_TAME, element);
    fill_floats(scale, COUNT_OF(scale), INPUT_TAME, element);
    fill_floats(shift, COUNT_OF(shift), INPUT_TAME, element);
}

/* A stored row against the numbers that it should hold. */
static void expect_row(enum gpu_type type, uint32_t row, const double *wanted, uint32_t width)
{
    double largest = 0.0;
    for (uint32_t i = 0; i < width; i++) {
        largest = fmax(largest, fabs(wanted[i]));
    }
    double step = type == GPU_E4M3 ? (double)steps[row] : 1.0;
    if (type == GPU_E4M3) {
        expect_close("step", row, step, largest > 0.0 ? largest / 448.0 : 1.0, 1e-9, 1e-4);
    }
    for (uint32_t i = 0; i < width; i++) {
        size_t at = (size_t)row * width + i;
        expect_close("row", at, typed_value(type, found, at) * step, wanted[i],
                     type == GPU_E4M3 ? step * 0x1p-9 : 1e-5,
                     type == GPU_E4M3 ? 0x1.01p-4 : 0x1p-8);
    }
}

struct residual_case {
    uint32_t rows, width, group_rows;
};

/* bf16: of x, before and after. */
static struct gpu_residual residual_of(const struct residual_case *c, enum gpu_type type, bool bf16)
{
    static uint16_t rounded[ROWS_MAX * WIDTH_MAX];
    uint32_t groups = (c->rows - 1) / c->group_rows + 1;
    size_t bytes = (size_t)c->rows * c->width * sizeof(float);
    EXPECT(c->rows <= ROWS_MAX && c->width <= WIDTH_MAX && groups <= 3);
    for (uint32_t i = 0; bf16 && i < c->rows * c->width; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        rounded[i] = (uint16_t)(bits >> 16);
        bits &= 0xffff0000u;
        memcpy(&x[i], &bits, sizeof bits);
    }
    return (struct gpu_residual){
        .rows = c->rows,
        .width = c->width,
        .in_type = bf16 ? GPU_BF16 : GPU_F32,
        .x_type = bf16 ? GPU_BF16 : GPU_F32,
        .x_in = bf16 ? rig_upload(rounded, bytes / 2) : rig_upload(x, bytes),
        .x = rig_alloc(bytes),
        .y = rig_upload(y, bytes / 2),
        .gate = rig_upload(gate, groups * c->width * sizeof(float)),
        .one = 1.0f,
        .scale = rig_upload(scale, groups * c->width * sizeof(float)),
        .shift = rig_upload(shift, groups * c->width * sizeof(float)),
        .group_rows = c->group_rows,
        .group_stride = c->width,
        .out_type = type,
        .out = rig_alloc((size_t)c->rows * c->width * gpu_type_bytes(type)),
        .row_scale = rig_alloc(c->rows * sizeof(float)),
    };
}

static void run_residual(const struct gpu_residual *r)
{
    size_t count = (size_t)r->rows * r->width;
    gpu_residual_launch(r, rig_stream());
    RIG_CHECK(rig_download(sum, r->x, count * gpu_type_bytes(r->x_type)));
    if (r->out != NULL) {
        RIG_CHECK(rig_download(found, r->out, count * gpu_type_bytes(r->out_type)));
    }
    if (r->out_type == GPU_E4M3) {
        RIG_CHECK(rig_download(steps, r->row_scale, r->rows * sizeof(float)));
    }
}

static void expect_residual(const struct gpu_residual *r)
{
    static double wanted[WIDTH_MAX];
    for (uint32_t row = 0; row < r->rows; row++) {
        size_t group = (size_t)(row / r->group_rows) * r->width;
        double mean = 0.0;
        double variance = 0.0;
        for (uint32_t i = 0; i < r->width; i++) {
            size_t at = (size_t)row * r->width + i;
            double by = r->gate != NULL ? (double)gate[group + i] : 1.0;
            wanted[i] = (double)x[at] + by * typed_value(GPU_BF16, y, at);
            expect_close("sum", at, typed_value(r->x_type, sum, at), wanted[i], 1e-6,
                         r->x_type == GPU_BF16 ? 0x1p-8 : 1e-6);
            mean += wanted[i] / r->width;
        }
        for (uint32_t i = 0; i < r->width; i++) {
            variance += (wanted[i] - mean) * (wanted[i] - mean) / r->width;
        }
        for (uint32_t i = 0; i < r->width; i++) {
            wanted[i] = (wanted[i] - mean) / sqrt(variance + 1e-6);
            wanted[i] =
                wanted[i] * ((double)r->one + (double)scale[group + i]) + (double)shift[group + i];
        }
        if (r->out != NULL) {
            expect_row(r->out_type, row, wanted, r->width);
        }
    }
}

static void residual_is_the_formula(void)
{
    static const struct residual_case cases[] = {
        {5, 32, 2}, {3, 100, 3}, {7, 1024, 4}, {2, 1028, 1}, {1, 3072, 1}, {2, 4100, 2},
    };
    uint32_t element = 0;
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        for (uint32_t schedule = i % 2; schedule < rig_schedules(); schedule += 2) {
            fill(INPUT_TAME, &element);
            rig_begin(schedule);
            enum gpu_type type = schedule % 4 < 2 ? GPU_E4M3 : GPU_BF16;
            struct gpu_residual r = residual_of(&cases[i], type, schedule % 7 < 3);
            r.gate = schedule % 3 == 0 ? NULL : r.gate;
            r.one = schedule % 5 == 0 ? 0.0f : 1.0f;
            r.out = schedule == 9 ? NULL : r.out;
            r.out_type = r.out == NULL ? GPU_BF16 : r.out_type;
            r.x = schedule % 3 == 1 ? (void *)(uintptr_t)r.x_in : r.x;
            run_residual(&r);
            expect_residual(&r);
            RIG_CHECK(rig_end());
        }
    }
}

/* Wild and huge rows beside it change nothing for a tame row. */
static void rows_are_independent(void)
{
    const struct residual_case one = {1, 260, 7};
    const struct residual_case many = {5, 260, 7};
    uint32_t element = 7;
    for (uint32_t kind = INPUT_HUGE; kind <= INPUT_WILD; kind++) {
        fill(INPUT_TAME, &element);
        rig_begin(4);
        struct gpu_residual r = residual_of(&one, GPU_E4M3, false);
        run_residual(&r);
        memcpy(again, found, 260);
        float step = steps[0];
        memcpy(x + 3 * 260, x, 260 * sizeof *x);
        memcpy(y + 3 * 260, y, 260 * sizeof *y);
        fill_floats(x, (size_t)3 * 260, (enum input_kind)kind, &element);
        fill_floats(x + 4 * 260, 260, (enum input_kind)kind, &element);
        r = residual_of(&many, GPU_E4M3, false);
        run_residual(&r);
        EXPECT(memcmp(found + 3 * 260, again, 260) == 0 && step == steps[3]);
        RIG_CHECK(rig_end());
    }
}

static void activations_are_the_formula(void)
{
    static const struct residual_case cases[] = {{5, 32, 1}, {2, 1028, 1}, {1, 4100, 1}};
    static double wanted[WIDTH_MAX];
    uint32_t element = 11;
    for (uint32_t i = 0; i < 3 * rig_schedules(); i++) {
        const struct residual_case *c = &cases[i % 3];
        size_t count = (size_t)c->rows * c->width;
        enum gpu_type type = i / 3 % 2 == 0 ? GPU_E4M3 : GPU_BF16;
        fill(INPUT_TAME, &element);
        memset(y, 0, i % 4 == 0 ? c->width * sizeof *y : 0); /* a row of zeros */
        rig_begin(i / 3);
        struct gpu_activate a = {
            .rows = c->rows,
            .width = c->width,
            .x = rig_upload(y, count * 2),
            .silu = i % 2,
            .out_type = type,
            .out = rig_alloc(count * gpu_type_bytes(type)),
            .row_scale = rig_alloc(c->rows * sizeof(float)),
        };
        gpu_activate_launch(&a, rig_stream());
        RIG_CHECK(rig_download(found, a.out, count * gpu_type_bytes(type)));
        if (type == GPU_E4M3) {
            RIG_CHECK(rig_download(steps, a.row_scale, c->rows * sizeof(float)));
        }
        for (uint32_t row = 0; row < c->rows; row++) {
            for (uint32_t j = 0; j < c->width; j++) {
                double value = typed_value(GPU_BF16, y, (size_t)row * c->width + j);
                wanted[j] = a.silu != 0 ? value / (1.0 + exp(-value)) : value;
            }
            expect_row(type, row, wanted, c->width);
        }
        RIG_CHECK(rig_end());
    }
}

/* Numbers behind the heads are rounded alone, those behind the width are left. */
static void heads_are_turned(void)
{
    const uint32_t rows = 5;
    const uint32_t heads = 3;
    const uint32_t dim = 32;
    const uint32_t width = heads * dim + 8;
    const size_t stride = width + 8;
    uint32_t element = 13;
    for (uint32_t schedule = 0; schedule < rig_schedules(); schedule++) {
        const enum gpu_type type = schedule % 2 == 0 ? GPU_BF16 : GPU_F32;
        const void *from = type == GPU_F32 ? (const void *)x : (const void *)y;
        fill(INPUT_TAME, &element);
        x[heads * dim] = INFINITY; /* of the first row, behind its heads */
        rig_begin(schedule);
        struct gpu_rotate r = {
            .rows = rows,
            .heads = heads,
            .head_dim = dim,
            .width = width,
            .type = type,
            .x = rig_upload(from, rows * stride * gpu_type_bytes(type)),
            .row = stride,
            .out = rig_alloc(rows * stride * 2),
            .cosine = rig_upload(gate, rows * dim / 2 * sizeof(float)),
            .sine = rig_upload(scale, rows * dim / 2 * sizeof(float)),
        };
        if (type == GPU_BF16) { /* in place */
            r.out = (void *)(uintptr_t)r.x;
        }
        gpu_rotate_launch(&r, rig_stream());
        RIG_CHECK(rig_download(found, r.out, rows * stride * 2));
        for (uint32_t i = 0; i < rows * stride; i++) {
            uint32_t column = i % stride;
            size_t angle = (i / stride * dim + column % dim) / 2;
            double own = typed_value(type, from, i);
            double other = typed_value(type, from, i ^ 1);
            if (column >= width) {
                EXPECT_INT(((const uint16_t *)found)[i], type == GPU_F32 ? 0xA5A5 : y[i]);
                continue;
            }
            double wanted = column >= heads * dim
                                ? own
                                : own * (double)gate[angle] +
                                      (column % 2 == 0 ? -other : other) * (double)scale[angle];
            expect_close("turned", i, typed_value(GPU_BF16, found, i), wanted, 1e-6, 0x1p-8);
        }
        RIG_CHECK(rig_end());
    }
}

/* Into page 1 of 3; the other pages stay as they are, and no page is written at -1. */
static void pages_hold_keys_and_values(void)
{
    const uint32_t rows = 5;
    const uint32_t heads = 3;
    const uint32_t dims[] = {32, 64, 128};
    uint32_t element = 17;
    for (uint32_t i = 0; i < 3 * rig_schedules(); i++) {
        const uint32_t dim = dims[i % 3];
        const size_t width = heads * dim;
        const int32_t page = i % 7 == 6 ? -1 : 1;
        struct gpu_page_store p = {
            .rows = rows,
            .heads = heads,
            .head_dim = dim,
            .kv_row = 2 * width + 8,
            .type = i % 2 == 0 ? GPU_E4M3 : GPU_BF16,
        };
        size_t bytes = rows * width * gpu_type_bytes(p.type);
        p.v_offset = (bytes + 15) / 16 * 16;
        p.k_scale_offset = 2 * p.v_offset;
        p.v_scale_offset = p.k_scale_offset + 64;
        p.page_bytes = p.v_scale_offset + 64;
        fill(i % 5 == 0 ? INPUT_WIDE : INPUT_TAME, &element);
        rig_begin(i / 3);
        p.kv = rig_upload(y, rows * p.kv_row * 2);
        p.arena = rig_alloc(3 * p.page_bytes);
        p.page = rig_upload(&page, sizeof page);
        gpu_page_store_launch(&p, rig_stream());
        uint8_t *all = malloc(3 * p.page_bytes);
        EXPECT(all != NULL);
        RIG_CHECK(rig_download(all, p.arena, 3 * p.page_bytes));
        for (size_t at = 0; at < 3 * p.page_bytes; at++) {
            if (page < 0 || at / p.page_bytes != 1) {
                EXPECT_INT(all[at], 0xA5);
            }
        }
        for (uint32_t j = 0; page >= 0 && j < 2 * rows * width; j++) {
            bool value = j >= rows * width;
            uint32_t at = j % (uint32_t)(rows * width);
            const uint8_t *base = all + p.page_bytes;
            size_t from = at / width * p.kv_row + (value ? width : 0) + at % width;
            double wanted = typed_value(GPU_BF16, y, from);
            double step = 1.0;
            if (p.type == GPU_E4M3) {
                double largest = 0.0;
                for (uint32_t c = 0; c < dim; c++) {
                    largest = fmax(largest, fabs(typed_value(GPU_BF16, y, from - at % dim + c)));
                }
                step = typed_value(GPU_F32, base + (value ? p.v_scale_offset : p.k_scale_offset),
                                   at / dim);
                expect_close("step", at / dim, step, largest / 448.0, 0.0, 1e-6);
            }
            expect_close("page", j, step * typed_value(p.type, base + (value ? p.v_offset : 0), at),
                         wanted, p.type == GPU_E4M3 ? step * 0x1p-9 : 0.0,
                         p.type == GPU_E4M3 ? 0x1.01p-4 : 0.0);
        }
        free(all);
        RIG_CHECK(rig_end());
    }
}

/* Pages of bytes of e4m3, K, V, their scales; `half` bytes of K, as of V. */
static void fill_pages(uint8_t *arena, uint32_t pages, size_t half, uint32_t scales)
{
    for (uint32_t page = 0; page < pages; page++) {
        uint8_t *to = arena + page * (2 * half + 2 * scales * sizeof(float));
        for (size_t i = 0; i < 2 * half; i++) {
            to[i] = (uint8_t)((i * 37 + page * 11) % 0x7F | (i % 3 == 0 ? 0x80 : 0));
        }
        for (uint32_t i = 0; i < 2 * scales; i++) {
            const float scale_of = 0.001f * (float)(i + 3 * page + 1);
            memcpy(to + 2 * half + i * sizeof(float), &scale_of, sizeof scale_of);
        }
    }
}

/* Number `at` of K or V of such a page, whose heads have `dim`. */
static double page_number(const uint8_t *page, size_t half, uint32_t scales, bool value, size_t at,
                          uint32_t dim)
{
    float step;
    const size_t which = (value ? scales : 0) + at / dim;
    memcpy(&step, page + 2 * half + which * sizeof step, sizeof step);
    return (double)step * typed_value(GPU_E4M3, page + (value ? half : 0), at);
}

/* Rows of pages come to the tokens that the index names them for, keys turned by the token's
 * angles; an item that is not active is left alone. */
static void past_frames_are_gathered(void)
{
    enum { ITEMS = 2, TOKENS = 5, HEADS = 2, DIM = 32, FRAMES = 2, STRIDE = 3, PAGES = 3 };
    enum { WIDTH = HEADS * DIM, PAGE = 2 * TOKENS * WIDTH, SCALES = TOKENS * HEADS };
    static const int32_t table[ITEMS][STRIDE] = {{2, -1, 0}, {1, 0, 2}};
    static const uint32_t active[ITEMS] = {1, 0};
    enum { FP8 = PAGE + 2 * SCALES * 4 };
    static uint8_t arena[PAGES * FP8];
    int16_t index[ITEMS * STRIDE * TOKENS];
    uint32_t element = 23;
    fill_pages(arena, PAGES, PAGE / 2, SCALES);
    for (unsigned schedule = 0; schedule < rig_schedules(); schedule++) {
        const bool all = schedule % 2 == 0;
        const bool fp8 = schedule % 4 > 1;
        fill(INPUT_TAME, &element);
        for (uint32_t i = 0; i < ITEMS * STRIDE * TOKENS; i++) {
            index[i] = i % 4 == 1 ? -1 : (int16_t)(i * 3 % TOKENS);
        }
        rig_begin(schedule);
        struct gpu_gather g = {
            .items = ITEMS,
            .tokens = TOKENS,
            .heads = HEADS,
            .head_dim = DIM,
            .page_count = FRAMES,
            .pages = {.arena =
                          fp8 ? rig_upload(arena, sizeof arena) : rig_upload(y, PAGES * PAGE * 2),
                      .page_bytes = fp8 ? FP8 : PAGE * 2,
                      .v_offset = fp8 ? PAGE / 2 : PAGE,
                      .k_scale_offset = PAGE,
                      .v_scale_offset = PAGE + SCALES * 4,
                      .table = rig_upload(table, sizeof table),
                      .table_stride = STRIDE},
            .type = fp8 ? GPU_E4M3 : GPU_BF16,
            .index = rig_upload(index, sizeof index),
            .cosine = rig_upload(gate, ITEMS * TOKENS * DIM / 2 * sizeof(float)),
            .sine = rig_upload(scale, ITEMS * TOKENS * DIM / 2 * sizeof(float)),
            .out = rig_alloc(ITEMS * FRAMES * PAGE * 2),
            .active = all ? NULL : rig_upload(active, sizeof active),
        };
        gpu_gather_launch(&g, rig_stream());
        RIG_CHECK(rig_download(found, g.out, ITEMS * FRAMES * PAGE * 2));
        for (uint32_t i = 0; i < ITEMS * FRAMES * PAGE; i++) {
            const uint32_t item = i / (FRAMES * PAGE);
            const uint32_t frame = i / PAGE % FRAMES;
            const uint32_t token = i % PAGE / (2 * WIDTH);
            const uint32_t column = i % WIDTH;
            const bool value = i % (2 * WIDTH) >= WIDTH;
            const int32_t page = table[item][frame];
            const int row = page >= 0 ? index[(item * STRIDE + frame) * TOKENS + token] : -1;
            double wanted = 0.0;
            if (!all && active[item] == 0) {
                EXPECT_INT(((const uint16_t *)(const void *)found)[i], 0xA5A5);
                continue;
            }
            if (row >= 0) {
                const size_t in = (size_t)row * WIDTH + column;
                const size_t at = (size_t)page * PAGE + (value ? PAGE / 2 : 0) + in;
                const uint8_t *from = arena + (size_t)page * FP8;
                size_t angle = ((item * TOKENS + token) * DIM + column % DIM) / 2;
                double other = fp8 ? page_number(from, PAGE / 2, SCALES, value, in ^ 1, DIM)
                                   : typed_value(GPU_BF16, y, at ^ 1);
                wanted = fp8 ? page_number(from, PAGE / 2, SCALES, value, in, DIM)
                             : typed_value(GPU_BF16, y, at);
                wanted = value ? wanted
                               : wanted * (double)gate[angle] +
                                     (column % 2 == 0 ? -other : other) * (double)scale[angle];
            }
            expect_close("gathered", i, typed_value(GPU_BF16, found, i), wanted, 1e-6, 0x1p-8);
        }
        RIG_CHECK(rig_end());
    }
}

int main(void)
{
    return TEST_RUN(TEST(residual_is_the_formula), TEST(rows_are_independent),
                    TEST(activations_are_the_formula), TEST(heads_are_turned),
                    TEST(past_frames_are_gathered), TEST(pages_hold_keys_and_values));
}
