/*
 * Layer norm on the device: against the formula in double precision, over odd widths and row
 * counts, all types, all schedules; pathological inputs against the plain C kernel; and that a
 * row's bits do not depend on the rows around it.
 */
#include "kernels/cuda/common/matrix.h"
#include "tests/cuda/compare.h"

enum { WIDTH_MAX = 4100, ROWS_MAX = 37 };

static float x[ROWS_MAX * WIDTH_MAX];
static float scale[3 * WIDTH_MAX];
static float shift[3 * WIDTH_MAX];
static uint8_t found[ROWS_MAX * WIDTH_MAX * sizeof(float)];
static float row_scale[ROWS_MAX];

struct shape {
    uint32_t rows, width, group_rows;
};

/* The launcher's copy of a problem with everything on the device. */
static struct gpu_norm norm_of(const struct shape *s, enum gpu_type out_type, float one,
                               bool modulated)
{
    uint32_t groups = s->group_rows > 0 ? (s->rows - 1) / s->group_rows + 1 : 1;
    size_t stride = s->width + 4;
    return (struct gpu_norm){
        .rows = s->rows,
        .width = s->width,
        .x = rig_upload(x, (size_t)s->rows * s->width * sizeof *x),
        .one = one,
        .scale = modulated ? rig_upload(scale, groups * stride * sizeof *scale) : NULL,
        .shift = modulated ? rig_upload(shift, groups * stride * sizeof *shift) : NULL,
        .group_rows = s->group_rows,
        .group_stride = stride,
        .out_type = out_type,
        .out = rig_alloc((size_t)s->rows * s->width * gpu_type_bytes(out_type)),
        .row_scale = out_type == GPU_E4M3 ? rig_alloc(s->rows * sizeof(float)) : NULL,
    };
}

static void run(const struct gpu_norm *n)
{
    gpu_norm_launch(n, rig_stream());
    RIG_CHECK(
        rig_download(found, n->out, (size_t)n->rows * n->width * gpu_type_bytes(n->out_type)));
    if (n->out_type == GPU_E4M3) {
        RIG_CHECK(rig_download(row_scale, n->row_scale, n->rows * sizeof(float)));
    }
}

static void expect_rows(const struct shape *s, enum gpu_type type, double one, bool modulated)
{
    double wanted[WIDTH_MAX];
    for (uint32_t row = 0; row < s->rows; row++) {
        const float *in = x + (size_t)row * s->width;
        size_t group = s->group_rows > 0 ? row / s->group_rows : 0;
        double mean = 0.0;
        double variance = 0.0;
        double largest = 0.0;
        for (uint32_t i = 0; i < s->width; i++) {
            mean += (double)in[i] / s->width;
        }
        for (uint32_t i = 0; i < s->width; i++) {
            variance += (in[i] - mean) * (in[i] - mean) / s->width;
        }
        for (uint32_t i = 0; i < s->width; i++) {
            size_t at = group * (s->width + 4) + i;
            wanted[i] = (in[i] - mean) / sqrt(variance + 1e-6);
            wanted[i] =
                modulated ? wanted[i] * (one + (double)scale[at]) + (double)shift[at] : wanted[i];
            largest = fmax(largest, fabs(wanted[i]));
        }
        double factor = type == GPU_E4M3 ? (double)row_scale[row] : 1.0;
        if (type == GPU_E4M3) {
            expect_close("row scale", row, factor, largest > 0.0 ? largest / 448.0 : 1.0, 1e-9,
                         1e-5);
        }
        for (uint32_t i = 0; i < s->width; i++) {
            double relative = type == GPU_F32 ? 1e-5 : type == GPU_BF16 ? 0x1p-8 : 0x1.01p-4;
            double absolute = type == GPU_E4M3 ? factor * 0x1p-9 : 3e-6;
            size_t at = (size_t)row * s->width + i;
            expect_close("norm", at, typed_value(type, found, at) * factor, wanted[i], absolute,
                         relative);
        }
    }
}

static void norm_is_the_formula(void)
{
    static const struct shape shapes[] = {{5, 32, 0},   {9, 100, 4},  {8, 256, 3},  {17, 260, 0},
                                          {3, 1024, 2}, {2, 1028, 1}, {1, 3072, 0}, {2, 4100, 0}};
    uint32_t element = 0;
    fill_floats(x, COUNT_OF(x), INPUT_TAME, &element);
    fill_floats(scale, COUNT_OF(scale), INPUT_TAME, &element);
    fill_floats(shift, COUNT_OF(shift), INPUT_TAME, &element);
    for (uint32_t i = 0; i < COUNT_OF(shapes); i++) {
        for (uint32_t schedule = 0; schedule < rig_schedules(); schedule++) {
            enum gpu_type type = (enum gpu_type)((schedule + i) % 3);
            bool modulated = (schedule + i / 2) % 4 != 0;
            float one = schedule % 2 == 0 ? 1.0f : 0.0f;
            rig_begin(schedule);
            struct gpu_norm n = norm_of(&shapes[i], type, one, modulated);
            run(&n);
            expect_rows(&shapes[i], type, (double)one, modulated);
            RIG_CHECK(rig_end());
        }
    }
}

/* bfloat16 in: the same as float in of the same values. */
static void bf16_input_is_the_same(void)
{
    static uint16_t halves[8 * 256];
    static uint8_t first[sizeof halves];
    const struct shape s = {8, 256, 0};
    uint32_t element = 7;
    fill_act(NN_BF16, halves, COUNT_OF(halves), INPUT_TAME, &element);
    for (size_t i = 0; i < COUNT_OF(halves); i++) {
        x[i] = (float)typed_value(GPU_BF16, halves, i);
    }
    rig_begin(4);
    struct gpu_norm n = norm_of(&s, GPU_BF16, 1.0f, true);
    run(&n);
    memcpy(first, found, sizeof first);
    n.x = rig_upload(halves, sizeof halves);
    n.x_type = GPU_BF16;
    run(&n);
    EXPECT(memcmp(first, found, sizeof first) == 0);
    RIG_CHECK(rig_end());
}

/* Rounded to bf16 first, a row of e4m3 is what the rows' kernel makes of one of bf16. */
static void rounded_rows_are_those_of_two_launches(void)
{
    static const uint32_t widths[] = {32, 256, 1028, 3072, 4100};
    static uint8_t bytes[9 * WIDTH_MAX];
    float scales[9];
    uint32_t element = 19;
    uint32_t others = 0;
    for (unsigned i = 0; i < 2 * COUNT_OF(widths); i++) {
        const struct shape s = {9, widths[i / 2], 4};
        const size_t count = (size_t)s.rows * s.width;
        fill_floats(x, count, i % 2 == 0 ? INPUT_TAME : INPUT_WILD, &element);
        fill_floats(scale, COUNT_OF(scale), INPUT_TAME, &element);
        fill_floats(shift, COUNT_OF(shift), INPUT_TAME, &element);
        rig_begin(i);
        struct gpu_norm n = norm_of(&s, GPU_E4M3, 1.0f, true);
        run(&n);
        memcpy(bytes, found, count);
        n.rounded = 1;
        run(&n);
        others += memcmp(bytes, found, count) != 0;
        memcpy(bytes, found, count);
        memcpy(scales, row_scale, sizeof scales);
        n.out_type = GPU_BF16;
        n.out = rig_alloc(count * 2);
        gpu_norm_launch(&n, rig_stream());
        const struct gpu_activate a = {.rows = s.rows,
                                       .width = s.width,
                                       .x = n.out,
                                       .out_type = GPU_E4M3,
                                       .out = rig_alloc(count),
                                       .row_scale = rig_alloc(sizeof scales)};
        gpu_activate_launch(&a, rig_stream());
        RIG_CHECK(rig_download(found, a.out, count));
        RIG_CHECK(rig_download(row_scale, a.row_scale, sizeof scales));
        EXPECT(memcmp(bytes, found, count) == 0);
        EXPECT(memcmp(scales, row_scale, sizeof scales) == 0);
        RIG_CHECK(rig_end());
    }
    EXPECT(others > 0); /* else rounding did nothing */
}

/* A row in another place among other neighbours has the same bits. */
static void neighbours_do_not_matter(void)
{
    static const uint32_t widths[] = {256, 1028};
    uint32_t element = 3;
    for (uint32_t i = 0; i < COUNT_OF(widths); i++) {
        uint32_t width = widths[i];
        uint8_t alone[1028 * 2];
        fill_floats(x, width, INPUT_TAME, &element);
        rig_begin(0);
        struct gpu_norm n = norm_of(&(struct shape){1, width, 0}, GPU_BF16, 1.0f, false);
        run(&n);
        memcpy(alone, found, (size_t)width * 2);
        RIG_CHECK(rig_end());
        memcpy(x + 5 * (size_t)width, x, width * sizeof *x);
        fill_floats(x, 5 * (size_t)width, INPUT_WILD, &element);
        fill_floats(x + 6 * (size_t)width, 5 * (size_t)width, INPUT_HUGE, &element);
        rig_begin(5);
        n = norm_of(&(struct shape){11, width, 0}, GPU_BF16, 1.0f, false);
        run(&n);
        EXPECT(memcmp(found + (size_t)5 * width * 2, alone, (size_t)width * 2) == 0);
        RIG_CHECK(rig_end());
    }
}

/* NaN, infinities and overflow give NaN where the plain C kernel does. */
static void wild_rows_are_as_in_plain_c(void)
{
    static uint8_t expected[ROWS_MAX * 256 * sizeof(float)];
    const struct shape s = {ROWS_MAX, 256, 0};
    struct nn_kernels reference;
    nn_kernels_init(&reference, NN_FP32, 0);
    uint32_t element = 11;
    for (int kind = INPUT_WIDE; kind < INPUT_KIND_COUNT; kind++) {
        fill_floats(x, (size_t)s.rows * s.width, (enum input_kind)kind, &element);
        reference.norm(x, s.width, 1.0f, NULL, NULL, expected, 0, s.rows);
        rig_begin(4);
        struct gpu_norm n = norm_of(&s, GPU_F32, 1.0f, false);
        run(&n);
        for (size_t i = 0; i < (size_t)s.rows * s.width; i++) {
            expect_close("wild", i, typed_value(GPU_F32, found, i),
                         typed_value(GPU_F32, expected, i), 1e-5, 1e-5);
        }
        RIG_CHECK(rig_end());
    }
}

int main(void)
{
    return TEST_RUN(TEST(norm_is_the_formula), TEST(bf16_input_is_the_same),
                    TEST(rounded_rows_are_those_of_two_launches), TEST(neighbours_do_not_matter),
                    TEST(wild_rows_are_as_in_plain_c));
}
