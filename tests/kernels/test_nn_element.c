/*
 * Elementwise and rowwise network kernels: every variant against the plain C one bit for bit, all
 * short lengths and pathological inputs; the plain C one against the formulas; the noise against
 * Philox and its moments.
 */
#include "tests/kernels/nn_compare.h"

static void compare_norm(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    static const uint32_t widths[] = {16, 32, 48, 256, 272};
    uint32_t element = 0;
    for (uint32_t i = 0; i < COUNT_OF(widths) * INPUT_KIND_COUNT * 3; i++) {
        uint32_t width = widths[i % COUNT_OF(widths)];
        enum input_kind kind = (enum input_kind)(i / COUNT_OF(widths) % INPUT_KIND_COUNT);
        uint32_t form = i / COUNT_OF(widths) / INPUT_KIND_COUNT;
        enum { ROWS = 5 };
        struct buffer x = buffer_make(ROWS * width * sizeof(float));
        struct buffer scale = buffer_make(width * sizeof(float));
        struct buffer shift = buffer_make(width * sizeof(float));
        size_t bytes = ROWS * width * nn_act_bytes(found->precision);
        struct buffer a = buffer_make(bytes);
        struct buffer b = buffer_make(bytes);
        fill_floats(x.data, ROWS * width, kind, &element);
        fill_floats(scale.data, width, kind, &element);
        fill_floats(shift.data, width, kind, &element);
        const float *factor = form == 0 ? NULL : scale.data;
        const float *offset = form == 0 ? NULL : shift.data;
        float one = form == 1 ? 1.0f : 0.0f;
        found->norm(x.data, width, one, factor, offset, a.data, 0, 2);
        found->norm(x.data, width, one, factor, offset, a.data, 2, ROWS - 1);
        reference->norm(x.data, width, one, factor, offset, b.data, 0, ROWS - 1);
        expect_same_act("norm", found, a.data, b.data, ROWS * width);
        buffer_end(&x);
        buffer_end(&scale);
        buffer_end(&shift);
        buffer_end(&a);
        buffer_end(&b);
    }
}

static void compare_silu_and_act(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    uint32_t element = 0;
    for (uint32_t i = 0; i < 70 * INPUT_KIND_COUNT; i++) {
        size_t count = i % 70;
        struct buffer x = buffer_make(count * sizeof(float));
        struct buffer y = buffer_make(count * sizeof(float));
        struct buffer a = buffer_make(count * nn_act_bytes(found->precision));
        struct buffer b = buffer_make(count * nn_act_bytes(found->precision));
        fill_floats(x.data, count, (enum input_kind)(i / 70), &element);
        if (count > 2) {
            ((float *)x.data)[1] = -200.0f;
            ((float *)x.data)[2] = float_of(0x3F808000); /* halfway between two bfloat16 */
        }
        memcpy(y.data, x.data, count * sizeof(float));
        found->to_act(x.data, a.data, count);
        reference->to_act(x.data, b.data, count);
        expect_same_act("to_act", found, a.data, b.data, count);
        found->silu(x.data, count);
        reference->silu(y.data, count);
        expect_same_floats("silu", found, x.data, y.data, count);
        buffer_end(&x);
        buffer_end(&y);
        buffer_end(&a);
        buffer_end(&b);
    }
}

static void compare_noise(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    for (uint32_t count = 0; count < 140; count++) {
        struct buffer a = buffer_make(count * sizeof(float));
        struct buffer b = buffer_make(count * sizeof(float));
        uint32_t first = count % 3 == 0 ? UINT32_MAX - 255 : 4 * count;
        uint64_t key = rng_mix(count);
        found->noise(key, count * 7, RNG_STREAM_NOISE, first, count, a.data);
        reference->noise(key, count * 7, RNG_STREAM_NOISE, first, count, b.data);
        expect_same_floats("noise", found, a.data, b.data, count);
        buffer_end(&a);
        buffer_end(&b);
    }
}

static void compare_euler(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    static const uint32_t shapes[][2] = {/* channels, stride of o */
                                         {22, 32},
                                         {12, 32},
                                         {16, 16},
                                         {1, 3},
                                         {33, 64}};
    static const float weights[] = {0.25f, 1.0f, 0.0f};
    uint32_t element = 0;
    for (uint32_t i = 0; i < COUNT_OF(shapes) * COUNT_OF(weights) * INPUT_KIND_COUNT; i++) {
        enum { POSITIONS = 7 };
        uint32_t channels = shapes[i % COUNT_OF(shapes)][0];
        uint32_t stride = shapes[i % COUNT_OF(shapes)][1];
        float weight = weights[i / COUNT_OF(shapes) % COUNT_OF(weights)];
        enum input_kind kind = (enum input_kind)(i / COUNT_OF(shapes) / COUNT_OF(weights));
        size_t count = POSITIONS * channels;
        /* o ends after its last channel, not after its last stride. */
        size_t o_count = (POSITIONS - 1) * stride + channels;
        struct buffer x = buffer_make(count * sizeof(float));
        struct buffer y = buffer_make(count * sizeof(float));
        struct buffer base = buffer_make(count * sizeof(float));
        struct buffer o = buffer_make(o_count * sizeof(float));
        fill_floats(x.data, count, kind, &element);
        fill_floats(base.data, count, kind, &element);
        fill_floats(o.data, o_count, kind, &element);
        memcpy(y.data, x.data, count * sizeof(float));
        found->euler(x.data, base.data, o.data, POSITIONS, channels, stride, weight);
        reference->euler(y.data, base.data, o.data, POSITIONS, channels, stride, weight);
        expect_same_floats("euler", found, x.data, y.data, count);
        buffer_end(&x);
        buffer_end(&y);
        buffer_end(&base);
        buffer_end(&o);
    }
}

static void compare_quantise(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    uint32_t element = 0;
    for (uint32_t i = 0; i < 40 * INPUT_KIND_COUNT; i++) {
        size_t count = i % 40;
        struct buffer x = buffer_make(count * sizeof(float));
        struct buffer a = buffer_make(count);
        struct buffer b = buffer_make(count);
        struct nn_counts found_counts = {3, 4};
        struct nn_counts counts = {3, 4};
        fill_floats(x.data, count, (enum input_kind)(i / 40), &element);
        for (size_t j = 0; j < count; j += 5) {
            ((float *)x.data)[j] *= 2.0f;
        }
        found->quantise(x.data, a.data, count, &found_counts);
        reference->quantise(x.data, b.data, count, &counts);
        EXPECT(memcmp(a.data, b.data, count) == 0);
        EXPECT(memcmp(&found_counts, &counts, sizeof counts) == 0);
        buffer_end(&x);
        buffer_end(&a);
        buffer_end(&b);
    }
}

static void compare_elements(const struct nn_kernels *found, const struct nn_kernels *reference)
{
    compare_norm(found, reference);
    compare_silu_and_act(found, reference);
    compare_noise(found, reference);
    compare_euler(found, reference);
    compare_quantise(found, reference);
}

static void element_variants_give_the_reference_bits(void)
{
    for_each_variant(compare_elements);
}

static void norm_is_the_formula(void)
{
    enum { WIDTH = 96 };
    static _Alignas(64) float x[WIDTH];
    static _Alignas(64) float scale[WIDTH];
    static _Alignas(64) float shift[WIDTH];
    static _Alignas(64) float out[WIDTH];
    struct nn_kernels kernels;
    uint32_t element = 0;
    nn_kernels_init(&kernels, NN_FP32, 0);
    fill_floats(x, WIDTH, INPUT_TAME, &element);
    fill_floats(scale, WIDTH, INPUT_TAME, &element);
    fill_floats(shift, WIDTH, INPUT_TAME, &element);
    kernels.norm(x, WIDTH, 1.0f, scale, shift, out, 0, 1);
    double mean = 0.0;
    double variance = 0.0;
    for (int i = 0; i < WIDTH; i++) {
        mean += x[i] / (double)WIDTH;
    }
    for (int i = 0; i < WIDTH; i++) {
        variance += (x[i] - mean) * (x[i] - mean) / WIDTH;
    }
    for (int i = 0; i < WIDTH; i++) {
        double y = (x[i] - mean) / sqrt(variance + 1e-6);
        EXPECT_NEAR(out[i], y * (1.0 + scale[i]) + shift[i], 2e-6);
    }
}

/* Everywhere between the clamps, and the signs and limits beyond them. */
static void silu_is_the_formula(void)
{
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_FP32, 0);
    for (int i = -86000; i <= 200000; i++) {
        float x = (float)i * 0.001f;
        float y = x;
        double expected = x / (1.0 + exp(-(double)x));
        kernels.silu(&y, 1);
        EXPECT_NEAR(y, expected, (4e-7 + 3e-8 * fabs((double)x)) * fabs(expected));
    }
    float extremes[] = {-1e30f, 1e30f, INFINITY, NAN, -0.0f, FLT_MIN};
    kernels.silu(extremes, COUNT_OF(extremes));
    EXPECT(fabsf(extremes[0]) < 1e-6f * 1e30f);
    EXPECT(extremes[1] == 1e30f);
    EXPECT(extremes[2] == INFINITY);
    EXPECT(extremes[3] != extremes[3]);
    EXPECT(extremes[4] == 0.0f && signbit(extremes[4]));
    EXPECT(extremes[5] == FLT_MIN / 2.0f);
}

static void bfloat16_rounds_to_nearest_even(void)
{
    static const struct {
        uint32_t from;
        uint16_t to;
    } cases[] = {
        {0x3F800000, 0x3F80}, {0x3F808000, 0x3F80}, {0x3F818000, 0x3F82}, {0x3F808001, 0x3F81},
        {0x7F7FFFFF, 0x7F80}, {0x7F800000, 0x7F80}, {0xFF800000, 0xFF80}, {0x7F800001, 0x7FC0},
        {0xFFFFFFFF, 0x7FC0}, {0x007FFFFF, 0x0000}, {0x80000001, 0x8000}, {0x80000000, 0x8000},
        {0x00800000, 0x0080}, {0xC2F6E979, 0xC2F7},
    };
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_BF16, 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        float x = float_of(cases[i].from);
        uint16_t y;
        kernels.to_act(&x, &y, 1);
        EXPECT_INT(y, cases[i].to);
    }
}

static void noise_is_philox_bytes(void)
{
    enum { COUNT = 40000 };
    static float out[COUNT];
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_FP32, 0);
    kernels.noise(5, 9, RNG_STREAM_NOISE, 400, COUNT, out);
    double mean = 0.0;
    double square = 0.0;
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t counter[4] = {9, RNG_STREAM_NOISE, (400 + i) / 4, 0};
        uint32_t words[4];
        int sum = -510;
        rng_philox(5, counter, words);
        for (int b = 0; b < 4; b++) {
            sum += (int)(words[i % 4] >> 8 * b & 255);
        }
        EXPECT_NEAR(out[i], sum / 147.80, 3e-7);
        mean += out[i] / COUNT;
        square += (double)out[i] * out[i] / COUNT;
    }
    EXPECT_NEAR(mean, 0.0, 0.03);
    EXPECT_NEAR(square, 1.0, 0.03);
}

/* Every byte comes back from its latent; limits, NaN and counts. */
static void quantise_inverts_the_latents(void)
{
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_FP32, 0);
    struct nn_counts counts = {0, 0};
    for (int b = 0; b < 256; b++) {
        float x = (float)(b / 127.5 - 1.0);
        uint8_t byte;
        kernels.quantise(&x, &byte, 1, &counts);
        EXPECT_INT(byte, b);
    }
    EXPECT_INT(counts.saturated + counts.not_finite, 0);
    const float x[] = {-3.0f, 3.0f, NAN, INFINITY, -INFINITY, 1.5f, -1.0000001f, FLT_MAX};
    static const uint8_t expected[] = {0, 255, 128, 128, 128, 255, 0, 255};
    uint8_t bytes[COUNT_OF(x)];
    kernels.quantise(x, bytes, COUNT_OF(x), &counts);
    EXPECT(memcmp(bytes, expected, sizeof bytes) == 0);
    EXPECT_INT(counts.not_finite, 3);
    EXPECT_INT(counts.saturated, 3);
}

/* The table follows its flags, and names what it took. */
static void flags_choose_the_variant(void)
{
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_BF16, 0);
    EXPECT_TEXT(kernels.name, "c");
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        if (variant_runs(&variants[i])) {
            nn_kernels_init(&kernels, NN_BF16, variants[i].flags);
            EXPECT_TEXT(kernels.name, variants[i].name);
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(element_variants_give_the_reference_bits), TEST(norm_is_the_formula),
                    TEST(silu_is_the_formula), TEST(bfloat16_rounds_to_nearest_even),
                    TEST(noise_is_philox_bytes), TEST(quantise_inverts_the_latents),
                    TEST(flags_choose_the_variant));
}
