/*
 * The convolution of integers (NN_INT8). Every variant against the plain C one bit for bit;
 * the plain C one against the formula on the exact inputs, within what quantising may cost; what
 * lines that are zero or not finite become; and planted faults.
 */
#include "tests/kernels/nn_conv_rig.h"

static const struct conv_case conv_cases[] = {
    {3, 16, {32, 0}, 32, 0, 1, 3, {0, 0}},    {5, 48, {32, 0}, 64, 0, 5, 5, {0, 0}},
    {4, 32, {64, 0}, 32, 1, 2, 4, {0, 0}},    {2, 16, {32, 64}, 96, 0, 1, 2, {0, 0}},
    {3, 96, {32, 32}, 32, 0, 2, 3, {0, 0}},   {7, 16, {96, 0}, 32, 2, 3, 7, {0, 0}},
    {1, 32, {128, 64}, 64, 0, 0, 1, {0, 0}},  {6, 80, {32, 32}, 160, 0, 4, 6, {0, 0}},
    {2, 16, {256, 256}, 32, 0, 1, 2, {0, 0}}, {4, 48, {32, 0}, 32, 0, 1, 4, {20, 0}},
    {3, 96, {32, 0}, 64, 0, 2, 3, {8, 0}},    {3, 16, {32, 64}, 32, 0, 1, 3, {4, 60}},
};

static void compare_convs(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    compare_conv_cases(found, reference, conv_cases, COUNT_OF(conv_cases));
}

static void variants_give_the_reference_bits(void)
{
    for_each_int8_variant(compare_convs);
}

/* From the smallest to the largest of a line's elements and 0. */
static double width_of_line(const struct nn_conv *c, int input, size_t line)
{
    double least = 0.0;
    double most = 0.0;
    const size_t count = (size_t)(c->cols + 2) * c->in_channels[input];
    for (size_t i = 0; i < count; i++) {
        const double value = act_value(NN_BF16, c->in[input], line * count + i);
        least = fmin(least, value);
        most = fmax(most, value);
    }
    return most - least;
}

/* The exact sum of one output, and how far quantising may take it: half a step of each line's
 * numbers times the weights, half a step of the weights times the numbers, and both. */
static double exact_sum(const struct conv_run *run, size_t row, size_t col, size_t o, double *slack)
{
    const struct nn_conv *c = &run->call;
    const uint32_t depth = nn_conv_depth(c->in_count, c->in_channels);
    const float *w = (const float *)run->w.data + o * 9 * depth;
    double largest = 0.0;
    for (uint32_t i = 0; i < 9 * depth; i++) {
        largest = fmax(largest, fabs((double)w[i]));
    }
    const double half_w = 0.5 * largest / 127.0;
    double sum = 0.0;
    *slack = 0.0;
    for (size_t tap = 0; tap < 9; tap++) {
        for (uint32_t input = 0; input < c->in_count; input++) {
            const double half = 0.5 * width_of_line(c, (int)input, row + tap / 3) / 254.0;
            const size_t at = (row + tap / 3) * (c->cols + 2) + col + tap % 3;
            for (uint32_t i = 0; i < c->in_channels[input]; i++, w++) {
                double a = act_value(NN_BF16, c->in[input], at * c->in_channels[input] + i);
                sum += a * *w;
                *slack += half * fabs(*w) + half_w * fabs(a) + half * half_w;
            }
        }
    }
    return sum;
}

static void the_sums_are_the_formula(void)
{
    const struct conv_case c = {3, 16, {32, 64}, 32, 0, 0, 3, {0, 0}};
    for (int kind = INPUT_TAME; kind <= INPUT_WIDE; kind++) {
        struct nn_kernels kernels;
        struct conv_run run;
        nn_kernels_init(&kernels, NN_INT8, 0);
        conv_prepare(&run, &kernels, &c, 8, (enum input_kind)kind, 3);
        kernels.conv3x3_int8(&run.call, 0, c.rows);
        const float *out = run.out.data;
        double worst = 0.0;
        for (size_t i = 0; i < (size_t)c.rows * c.cols * c.out; i++) {
            const size_t o = i % c.out;
            double slack;
            double sum = exact_sum(&run, i / c.out / c.cols, i / c.out % c.cols, o, &slack);
            double error = fabs(out[i] - (sum + run.call.bias[o]));
            EXPECT(error <= 1.0001 * slack + 1e-5 * (fabs(sum) + 1e-30));
            worst = fmax(worst, error / (slack + 1e-30));
        }
        EXPECT(worst > 0.01); /* it is quantised */
        conv_finish(&run);
    }
}

/* Padding with zeros has the bits of a convolution that takes it for what it is not. */
static void padding_costs_no_bits(const struct nn_kernels *found,
                                  const struct nn_kernels *reference)
{
    const struct conv_case all = {5, 48, {32, 32}, 64, 0, 0, 5, {0, 0}};
    const struct conv_case padded = {5, 48, {32, 32}, 64, 0, 0, 5, {20, 8}};
    struct conv_run x;
    struct conv_run y;
    conv_prepare(&x, reference, &all, 8, INPUT_WIDE, 11);
    conv_prepare(&y, found, &padded, 8, INPUT_WIDE, 11);
    for (size_t input = 0; input < 2; input++) {
        const size_t channels = all.in[input];
        const size_t used = channels - padded.unused[input];
        for (size_t i = 0; i < (size_t)(all.rows + 2) * (all.cols + 2) * channels; i++) {
            if (i % channels >= used) {
                ((uint16_t *)x.in[input].data)[i] = ((uint16_t *)y.in[input].data)[i] = 0;
            }
        }
    }
    reference->conv3x3_int8(&x.call, 0, all.rows);
    found->conv3x3_int8(&y.call, 0, all.rows);
    EXPECT_INT(first_difference(x.out.data, y.out.data, x.out.bytes / sizeof(float)), -1);
    conv_finish(&x);
    conv_finish(&y);
}

static void padding(void)
{
    for_each_int8_variant(padding_costs_no_bits);
}

/* Elements without sign have all steps to themselves: the same inputs come out with half the error
 * that they have when one element of the line is as far below zero. */
static double worst_error(bool below)
{
    const struct conv_case c = {1, 16, {32, 0}, 32, 0, 0, 1, {0, 0}};
    struct nn_kernels kernels;
    struct conv_run run;
    nn_kernels_init(&kernels, NN_INT8, 0);
    conv_prepare(&run, &kernels, &c, 8, INPUT_TAME, 9);
    const size_t line = (size_t)(c.cols + 2) * c.in[0];
    uint16_t *map = run.in[0].data;
    for (size_t i = 0; i < 3 * line; i++) {
        map[i] = map[i] & 0x7FFF;
    }
    for (size_t i = 0; below && i < 3; i++) {
        map[i * line] = 0xBF80; /* -1, in the border */
    }
    for (size_t i = 0; i < 3; i++) {
        map[i * line + 1] = 0x3F80;
    }
    kernels.conv3x3_int8(&run.call, 0, 1);
    const float *out = run.out.data;
    double square = 0.0;
    for (size_t i = 0; i < (size_t)c.cols * c.out; i++) {
        double slack;
        double sum = exact_sum(&run, 0, i / c.out, i % c.out, &slack);
        double error = out[i] - (sum + run.call.bias[i % c.out]);
        square += error * error;
    }
    conv_finish(&run);
    return sqrt(square);
}

static void all_steps_are_used(void)
{
    /* A third of the error is the weights'. */
    EXPECT(worst_error(false) < 0.8 * worst_error(true));
}

/* A line of zeros adds nothing; a NaN makes the three rows that see its line NaN, and no other. */
static void special_lines_end_as_stated(const struct nn_kernels *found,
                                        const struct nn_kernels *reference)
{
    const struct conv_case c = {8, 16, {32, 0}, 32, 0, 0, 8, {0, 0}};
    struct conv_run run;
    (void)reference;
    conv_prepare(&run, found, &c, 8, INPUT_TAME, 5);
    const size_t line = (size_t)(c.cols + 2) * c.in[0];
    uint16_t *map = run.in[0].data;
    memset(map, 0, 4 * line * sizeof *map);
    map[6 * line + 40] = 0xFFC0;
    found->conv3x3_int8(&run.call, 0, c.rows);
    const float *out = run.out.data;
    for (uint32_t row = 0; row < c.rows; row++) {
        for (uint32_t i = 0; i < c.cols * c.out; i++) {
            const float y = out[(size_t)row * c.cols * c.out + i];
            EXPECT(row < 2 ? y == run.call.bias[i % c.out] : isnan(y) == (row >= 4 && row <= 6));
        }
    }
    conv_finish(&run);
}

static void special_lines(void)
{
    for_each_int8_variant(special_lines_end_as_stated);
    struct nn_kernels plain;
    nn_kernels_init(&plain, NN_INT8, 0);
    special_lines_end_as_stated(&plain, &plain);
}

/* One weight a step further in the packed bytes shows. */
static void a_planted_fault_is_caught(void)
{
    const struct conv_case c = {2, 16, {32, 0}, 32, 0, 0, 2, {0, 0}};
    struct nn_kernels kernels;
    struct conv_run x;
    struct conv_run y;
    nn_kernels_init(&kernels, NN_INT8, 0);
    conv_prepare(&x, &kernels, &c, 8, INPUT_TAME, 7);
    conv_prepare(&y, &kernels, &c, 8, INPUT_TAME, 7);
    ((int8_t *)x.packed.data)[x.packed.bytes - 1] ^= 1;
    kernels.conv3x3_int8(&x.call, 0, c.rows);
    kernels.conv3x3_int8(&y.call, 0, c.rows);
    EXPECT(first_difference(x.out.data, y.out.data, x.out.bytes / sizeof(float)) >= 0);
    conv_finish(&x);
    conv_finish(&y);
}

int main(void)
{
    return TEST_RUN(TEST(variants_give_the_reference_bits), TEST(the_sums_are_the_formula),
                    TEST(all_steps_are_used), TEST(padding), TEST(special_lines),
                    TEST(a_planted_fault_is_caught));
}
