/*
 * Convolutions on the device: bf16 against the formula in double precision over the rounded
 * operands, float bit for bit against the plain C kernel; every epilogue, one and two inputs, row
 * counts that are no multiple of the tile, several images and slots; inactive slots untouched.
 */
#include "tests/cuda/compare.h"

enum {
    ROWS_MAX = 11,
    COLS_MAX = 32,
    IMAGES_MAX = 4, /* slots * images */
    CHANNELS_MAX = 96,
    MAP_MAX = IMAGES_MAX * (ROWS_MAX + 2) * (COLS_MAX + 2) * CHANNELS_MAX,
    FLAT_MAX = IMAGES_MAX * ROWS_MAX * COLS_MAX * CHANNELS_MAX,
    WEIGHTS_MAX = CHANNELS_MAX * 9 * 2 * CHANNELS_MAX,
    PAD_BYTE = 0xA5, /* what rig_alloc fills with */
};

/* Operands on the host; floats that a bfloat16 holds exactly. */
static float in[2][MAP_MAX];
static float weights[WEIGHTS_MAX];
static float bias[CHANNELS_MAX];
static float add[FLAT_MAX];
static float scale[2 * CHANNELS_MAX];
static float shift[2 * CHANNELS_MAX];
static uint8_t converted[(MAP_MAX > WEIGHTS_MAX ? MAP_MAX : WEIGHTS_MAX) * sizeof(float)];
static uint8_t found[MAP_MAX * sizeof(float)];
static float expected[FLAT_MAX];

struct shape {
    uint32_t slots, images, rows, cols, in_channels[2], out_channels;
    int silu, has_add, has_scale, to_map;
};

static const struct shape shapes[] = {
    {1, 1, 8, 16, {32, 0}, 32, 0, 0, 0, 0},  {1, 1, 8, 16, {32, 0}, 64, 1, 1, 1, 1},
    {2, 2, 5, 16, {64, 0}, 32, 1, 0, 0, 1},  {1, 1, 9, 32, {32, 32}, 64, 1, 0, 1, 1},
    {2, 1, 3, 16, {32, 32}, 96, 0, 1, 1, 0},
};
/* One thread per output: small ones. */
static const struct shape float_shapes[] = {
    {1, 1, 1, 16, {32, 0}, 32, 0, 0, 0, 0},
    {2, 2, 2, 16, {32, 0}, 32, 1, 1, 1, 1},
    {2, 1, 1, 16, {32, 32}, 32, 1, 0, 1, 0},
};

static uint32_t flat_count(const struct shape *s)
{
    return s->slots * s->images * s->rows * s->cols * s->out_channels;
}

static uint32_t map_count(const struct shape *s, uint32_t channels)
{
    return s->slots * s->images * (s->rows + 2) * (s->cols + 2) * channels;
}

/* Position of the map with its border: image, row, col from 0. */
static size_t map_position(const struct shape *s, uint32_t image, uint32_t row, uint32_t col)
{
    return ((size_t)image * (s->rows + 2) + row) * (s->cols + 2) + col;
}

static float rounded(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return float_of(bits & 0xFFFF0000u);
}

static void fill_map(const struct shape *s, float *map, uint32_t channels, enum input_kind kind,
                     uint32_t *element)
{
    memset(map, 0, map_count(s, channels) * sizeof *map);
    for (uint32_t image = 0; image < s->slots * s->images; image++) {
        for (uint32_t row = 1; row <= s->rows; row++) {
            float *line = map + map_position(s, image, row, 1) * channels;
            for (uint32_t i = 0; i < s->cols * channels; i++) {
                line[i] = rounded(random_float(kind, element));
            }
        }
    }
}

static void fill(const struct shape *s, enum input_kind kind, uint32_t *element)
{
    uint32_t depth = s->in_channels[0] + s->in_channels[1];
    for (int i = 0; i < 2; i++) {
        fill_map(s, in[i], s->in_channels[i], kind, element);
    }
    for (uint32_t i = 0; i < s->out_channels * 9 * depth; i++) {
        weights[i] = rounded(random_float(INPUT_TAME, element) / 8.0f);
    }
    fill_floats(bias, CHANNELS_MAX, INPUT_TAME, element);
    fill_floats(add, flat_count(s), INPUT_TAME, element);
    fill_floats(scale, COUNT_OF(scale), INPUT_TAME, element);
    fill_floats(shift, COUNT_OF(shift), INPUT_TAME, element);
}

static void *upload(enum gpu_type type, const float *values, size_t count)
{
    if (type == GPU_F32) {
        return rig_upload(values, count * sizeof *values);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        ((uint16_t *)converted)[i] = (uint16_t)(bits >> 16);
    }
    return rig_upload(converted, count * sizeof(uint16_t));
}

static struct gpu_conv conv_of(const struct shape *s, enum gpu_type type)
{
    struct gpu_conv c = {
        .type = type,
        .slots = s->slots,
        .images = s->images,
        .rows = s->rows,
        .cols = s->cols,
        .in_count = s->in_channels[1] > 0 ? 2 : 1,
        .in_channels = {s->in_channels[0], s->in_channels[1]},
        .out_channels = s->out_channels,
        .w = upload(type, weights,
                    (size_t)s->out_channels * 9 * (s->in_channels[0] + s->in_channels[1])),
        .bias = rig_upload(bias, sizeof bias),
        .add = s->has_add ? rig_upload(add, flat_count(s) * sizeof *add) : NULL,
        .scale = s->has_scale ? rig_upload(scale, sizeof scale) : NULL,
        .shift = s->has_scale ? rig_upload(shift, sizeof shift) : NULL,
        .mod_stride = CHANNELS_MAX,
        .silu = s->silu,
    };
    for (uint32_t i = 0; i < c.in_count; i++) {
        c.in[i] = upload(type, in[i], map_count(s, s->in_channels[i]));
    }
    if (s->to_map) {
        c.out = rig_alloc(map_count(s, s->out_channels) * gpu_type_bytes(type));
    } else {
        c.out_f32 = rig_alloc(flat_count(s) * sizeof(float));
    }
    return c;
}

/* Runs and brings the result to `found` as [images][rows][cols][channels] values; the border of a
 * map must be as it was. */
static void run(const struct shape *s, const struct gpu_conv *c, float *out)
{
    gpu_conv_launch(c, rig_stream());
    if (!s->to_map) {
        RIG_CHECK(rig_download(out, c->out_f32, flat_count(s) * sizeof *out));
        return;
    }
    size_t bytes = gpu_type_bytes(c->type);
    RIG_CHECK(rig_download(found, c->out, map_count(s, s->out_channels) * bytes));
    for (uint32_t image = 0; image < s->slots * s->images; image++) {
        for (uint32_t row = 0; row < s->rows + 2; row++) {
            for (uint32_t col = 0; col < s->cols + 2; col++) {
                size_t at = map_position(s, image, row, col) * s->out_channels;
                bool inside = row > 0 && row <= s->rows && col > 0 && col <= s->cols;
                for (uint32_t i = 0; i < s->out_channels; i++) {
                    if (!inside) {
                        EXPECT(found[(at + i) * bytes] == PAD_BYTE);
                        continue;
                    }
                    *out++ = (float)typed_value(c->type, found, at + i);
                }
            }
        }
    }
}

static double formula_sum(const struct shape *s, uint32_t image, uint32_t row, uint32_t col,
                          uint32_t channel)
{
    uint32_t depth = s->in_channels[0] + s->in_channels[1];
    double sum = 0.0;
    for (uint32_t tap = 0; tap < 9; tap++) {
        size_t position = map_position(s, image, row + tap / 3, col + tap % 3);
        for (uint32_t k = 0; k < depth; k++) {
            uint32_t input = k < s->in_channels[0] ? 0 : 1;
            size_t at = position * s->in_channels[input] + k - input * s->in_channels[0];
            sum += (double)in[input][at] * (double)weights[((size_t)channel * 9 + tap) * depth + k];
        }
    }
    return sum;
}

static void expect_formula(const struct shape *s, const struct gpu_conv *c, const float *out)
{
    uint32_t per_slot = flat_count(s) / s->slots;
    for (uint32_t i = 0; i < flat_count(s); i++) {
        uint32_t channel = i % s->out_channels;
        uint32_t col = i / s->out_channels % s->cols;
        uint32_t row = i / s->out_channels / s->cols % s->rows;
        uint32_t slot = i / per_slot;
        double y = formula_sum(s, i / s->out_channels / s->cols / s->rows, row, col, channel) +
                   (double)bias[channel];
        y += c->add != NULL ? (double)add[i] : 0.0;
        if (c->scale != NULL) {
            size_t at = slot * CHANNELS_MAX + channel;
            y = y * (1.0 + (double)scale[at]) + (double)shift[at];
        }
        y = s->silu ? y / (1.0 + exp(-y)) : y;
        double relative = s->to_map ? 0x1.04p-8 : 1e-5;
        expect_close("conv", i, (double)out[i], y, 1e-4, relative);
    }
}

static void bf16_is_the_formula(void)
{
    static float out[FLAT_MAX];
    uint32_t element = 0;
    for (uint32_t i = 0; i < COUNT_OF(shapes); i++) {
        fill(&shapes[i], INPUT_TAME, &element);
        static float first[FLAT_MAX];
        for (uint32_t schedule = 0; schedule < rig_schedules(); schedule++) {
            rig_begin(schedule);
            struct gpu_conv c = conv_of(&shapes[i], GPU_BF16);
            run(&shapes[i], &c, out);
            if (schedule == 0) {
                expect_formula(&shapes[i], &c, out);
                memcpy(first, out, flat_count(&shapes[i]) * sizeof *out);
            }
            EXPECT(memcmp(first, out, flat_count(&shapes[i]) * sizeof *out) == 0);
            RIG_CHECK(rig_end());
        }
    }
}

/* The plain C kernel, image by image. */
static void plain(const struct shape *s, float *out)
{
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_FP32, 0);
    for (uint32_t image = 0; image < s->slots * s->images; image++) {
        uint32_t slot = image / s->images;
        size_t flat = (size_t)image * s->rows * s->cols * s->out_channels;
        struct nn_conv c = {
            .rows = s->rows,
            .cols = s->cols,
            .in_count = s->in_channels[1] > 0 ? 2 : 1,
            .in = {in[0] + map_position(s, image, 0, 0) * s->in_channels[0],
                   in[1] + map_position(s, image, 0, 0) * s->in_channels[1]},
            .in_channels = {s->in_channels[0], s->in_channels[1]},
            .out_channels = s->out_channels,
            .b = weights,
            .bias = bias,
            .add = s->has_add ? add + flat : NULL,
            .scale = s->has_scale ? scale + (size_t)slot * CHANNELS_MAX : NULL,
            .shift = s->has_scale ? shift + (size_t)slot * CHANNELS_MAX : NULL,
            .silu = s->silu,
            .out_f32 = out + flat,
        };
        kernels.conv3x3(&c, 0, s->rows);
    }
}

static void float_is_plain_c(void)
{
    static float out[FLAT_MAX];
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_FP32, 0);
    uint32_t element = 3;
    for (uint32_t i = 0; i < COUNT_OF(float_shapes) * INPUT_KIND_COUNT; i++) {
        const struct shape *s = &float_shapes[i % COUNT_OF(float_shapes)];
        fill(s, (enum input_kind)(i / COUNT_OF(float_shapes)), &element);
        rig_begin(i % rig_schedules());
        struct gpu_conv c = conv_of(s, GPU_F32);
        run(s, &c, out);
        plain(s, expected);
        expect_same_floats("conv", &kernels, out, expected, flat_count(s));
        RIG_CHECK(rig_end());
    }
}

/* A slot that is not active is left alone, and one that is has the bits that it has alone. */
static void slots_do_not_matter(void)
{
    static float both[FLAT_MAX];
    static float one[FLAT_MAX];
    const struct shape two = shapes[4];
    struct shape alone = two;
    const uint32_t active[2] = {0, 1};
    uint32_t element = 8;
    fill(&two, INPUT_TAME, &element);
    rig_begin(4);
    struct gpu_conv c = conv_of(&two, GPU_BF16);
    c.active = rig_upload(active, sizeof active);
    run(&two, &c, both);
    RIG_CHECK(rig_end());
    alone.slots = 1;
    for (int i = 0; i < 2; i++) {
        size_t count = map_count(&alone, alone.in_channels[i]);
        memmove(in[i], in[i] + count, count * sizeof(float));
    }
    size_t half = flat_count(&alone);
    memmove(add, add + half, half * sizeof *add);
    memmove(scale, scale + CHANNELS_MAX, sizeof scale / 2);
    memmove(shift, shift + CHANNELS_MAX, sizeof shift / 2);
    rig_begin(6);
    c = conv_of(&alone, GPU_BF16);
    run(&alone, &c, one);
    RIG_CHECK(rig_end());
    EXPECT(memcmp(both + half, one, half * sizeof *one) == 0);
    for (size_t i = 0; i < half * sizeof *both; i++) {
        EXPECT(((const uint8_t *)both)[i] == PAD_BYTE);
    }
}

int main(void)
{
    return TEST_RUN(TEST(bf16_is_the_formula), TEST(float_is_plain_c), TEST(slots_do_not_matter));
}
