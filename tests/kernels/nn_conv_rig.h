/*
 * A convolution in buffers with guard bytes, for the tests of every precision, and the comparison
 * of a variant with the plain C one.
 */
#ifndef SWERVE_TESTS_KERNELS_NN_CONV_RIG_H
#define SWERVE_TESTS_KERNELS_NN_CONV_RIG_H

#include "tests/kernels/nn_compare.h"

struct conv_case {
    uint32_t rows, cols;
    uint32_t in[2];
    uint32_t out;
    uint32_t first, split, end; /* row ranges of two calls */
    uint32_t unused[2];         /* channels of each input whose weights count as zero (NN_INT8) */
};

/* The type of the maps. */
static inline enum nn_precision conv_act(const struct nn_kernels *kernels)
{
    return kernels->precision == NN_FP32 ? NN_FP32 : NN_BF16;
}

/* The convolution that belongs to the table's precision. */
static inline void conv_call(const struct nn_kernels *kernels, const struct nn_conv *c,
                             uint32_t first, uint32_t end)
{
    (kernels->precision == NN_INT8 ? kernels->conv3x3_int8 : kernels->conv3x3)(c, first, end);
}

struct conv_run {
    struct buffer in[2], w, bias, add, scale, shift, packed, out;
    struct nn_conv call;
};

static inline void map_fill(enum nn_precision precision, void *map, const struct conv_case *c,
                            uint32_t channels, enum input_kind kind, uint32_t *element)
{
    size_t act = nn_act_bytes(precision);
    memset(map, 0, (size_t)(c->rows + 2) * (c->cols + 2) * channels * act);
    for (size_t row = 1; row <= c->rows; row++) {
        size_t first = (row * (c->cols + 2) + 1) * channels;
        fill_act(precision, (uint8_t *)map + first * act, (size_t)c->cols * channels, kind,
                 element);
    }
}

/* Bits of `options`: 1 add, 2 scale and shift, 4 silu, 8 floats out. */
static inline void conv_prepare(struct conv_run *run, const struct nn_kernels *kernels,
                                const struct conv_case *c, uint32_t options, enum input_kind kind,
                                uint32_t seed)
{
    uint32_t element = seed;
    enum nn_precision precision = conv_act(kernels);
    size_t act = nn_act_bytes(precision);
    size_t places = (size_t)(c->rows + 2) * (c->cols + 2);
    size_t flat = (size_t)c->rows * c->cols * c->out;
    const uint32_t in_count = c->in[1] != 0 ? 2 : 1;
    uint32_t k = 9 * (c->in[0] + c->in[1]);
    for (int i = 0; i < 2; i++) {
        run->in[i] = buffer_make(places * c->in[i] * act);
        map_fill(precision, run->in[i].data, c, c->in[i], kind, &element);
    }
    run->w = buffer_make((size_t)c->out * k * sizeof(float));
    fill_floats(run->w.data, (size_t)c->out * k, kind == INPUT_HUGE ? INPUT_WIDE : kind, &element);
    if (kernels->precision == NN_INT8) {
        run->packed = buffer_make(kernels->conv_packed_bytes_int8(c->out, in_count, c->in));
        const uint32_t used[2] = {c->in[0] - c->unused[0], c->in[1] - c->unused[1]};
        kernels->conv_pack_int8(run->w.data, c->out, in_count, c->in, used, run->packed.data);
    } else {
        run->packed = buffer_make(kernels->packed_bytes(c->out, k));
        kernels->pack(run->w.data, c->out, k, run->packed.data);
    }
    run->bias = buffer_make(c->out * sizeof(float));
    run->scale = buffer_make(c->out * sizeof(float));
    run->shift = buffer_make(c->out * sizeof(float));
    run->add = buffer_make(flat * sizeof(float));
    fill_floats(run->bias.data, c->out, kind, &element);
    fill_floats(run->scale.data, c->out, kind, &element);
    fill_floats(run->shift.data, c->out, kind, &element);
    fill_floats(run->add.data, flat, kind, &element);
    run->out = buffer_make(options & 8 ? flat * sizeof(float) : places * c->out * act);
    run->call = (struct nn_conv){
        .rows = c->rows,
        .cols = c->cols,
        .in_count = in_count,
        .in = {run->in[0].data, run->in[1].data},
        .in_channels = {c->in[0], c->in[1]},
        .out_channels = c->out,
        .b = run->packed.data,
        .bias = run->bias.data,
        .add = options & 1 ? run->add.data : NULL,
        .scale = options & 2 ? run->scale.data : NULL,
        .shift = options & 2 ? run->shift.data : NULL,
        .silu = options & 4 ? 1 : 0,
        .out = options & 8 ? NULL : run->out.data,
        .out_f32 = options & 8 ? run->out.data : NULL,
    };
}

static inline void conv_finish(struct conv_run *run)
{
    buffer_end(&run->in[0]);
    buffer_end(&run->in[1]);
    buffer_end(&run->w);
    buffer_end(&run->bias);
    buffer_end(&run->add);
    buffer_end(&run->scale);
    buffer_end(&run->shift);
    buffer_end(&run->packed);
    buffer_end(&run->out);
}

/* The outputs start as guard bytes, so a border that is written shows as a difference. */
static inline void compare_conv(const struct nn_kernels *found, const struct nn_kernels *reference,
                                const struct conv_case *c, uint32_t options, enum input_kind kind,
                                uint32_t seed)
{
    struct conv_run x;
    struct conv_run y;
    conv_prepare(&x, found, c, options, kind, seed);
    conv_prepare(&y, reference, c, options, kind, seed);
    conv_call(found, &x.call, c->first, c->split);
    conv_call(found, &x.call, c->split, c->end);
    conv_call(reference, &y.call, c->first, c->end);
    if (options & 8) {
        expect_same_floats("conv3x3", found, x.out.data, y.out.data, x.out.bytes / 4);
    } else {
        expect_same_act("conv3x3", found, x.out.data, y.out.data,
                        x.out.bytes / nn_act_bytes(conv_act(found)));
    }
    conv_finish(&x);
    conv_finish(&y);
}

/* Every case with a third of the options and one kind of inputs each, in turn; under sanitizers
 * with a ninth. */
static inline void compare_conv_cases(const struct nn_kernels *found,
                                      const struct nn_kernels *reference,
                                      const struct conv_case *cases, size_t count)
{
    uint32_t seed = 0;
    for (size_t i = 0; i < count; i++) {
        for (uint32_t options = seed % 3; options < 16; options += (uint32_t)test_rounds(3, 9)) {
            enum input_kind kind = (enum input_kind)(seed % INPUT_KIND_COUNT);
            compare_conv(found, reference, &cases[i], options, kind, seed);
            seed++;
        }
    }
}

#endif
