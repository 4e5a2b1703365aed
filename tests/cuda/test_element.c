/*
 * Elementwise kernels on the device: the bits of the plain C kernels, for odd sizes, pathological
 * inputs and all schedules.
 */
#include "tests/cuda/compare.h"

enum { COUNT_MAX = 3000 };

static float x[COUNT_MAX];
static float y[COUNT_MAX];
static float z[COUNT_MAX];
static uint8_t found[COUNT_MAX * sizeof(float)];
static uint8_t expected[COUNT_MAX * sizeof(float)];

static struct nn_kernels reference(enum gpu_type type)
{
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, type == GPU_BF16 ? NN_BF16 : NN_FP32, 0);
    return kernels;
}

static void expect_same(const char *what, enum gpu_type type, size_t count)
{
    struct nn_kernels kernels = reference(type);
    expect_same_act(what, &kernels, found, expected, count);
}

static void conversion_and_silu(void)
{
    static const uint32_t counts[] = {1, 2, 3, 4, 5, 1023, 1024, 1025, COUNT_MAX};
    uint32_t element = 0;
    for (uint32_t i = 0; i < COUNT_OF(counts) * INPUT_KIND_COUNT; i++) {
        uint32_t count = counts[i % COUNT_OF(counts)];
        fill_floats(x, count, (enum input_kind)(i / COUNT_OF(counts)), &element);
        x[0] = float_of(0x3F808000); /* halfway between two bfloat16 */
        rig_begin(i % rig_schedules());
        enum gpu_type type = (enum gpu_type)(i % 2);
        struct gpu_convert c = {.count = count,
                                .x = rig_upload(x, count * sizeof *x),
                                .out_type = type,
                                .out = rig_alloc(count * gpu_type_bytes(type))};
        gpu_convert_launch(&c, rig_stream());
        RIG_CHECK(rig_download(found, c.out, count * gpu_type_bytes(type)));
        struct nn_kernels kernels = reference(type);
        kernels.to_act(x, expected, count);
        expect_same("to_act", type, count);

        c.out = (void *)(size_t)c.x; /* in place */
        c.out_type = GPU_F32;
        c.silu = 1;
        gpu_convert_launch(&c, rig_stream());
        RIG_CHECK(rig_download(found, c.out, count * sizeof *x));
        kernels.silu(x, count);
        memcpy(expected, x, count * sizeof *x);
        expect_same("silu", GPU_F32, count);
        RIG_CHECK(rig_end());
    }
}

static void tables(void)
{
    enum { SLOTS = 3, LAYERS = 4, WIDTH = 6 * 33, STRIDE = WIDTH + 7 };
    uint32_t element = 9;
    fill_floats(x, SLOTS * STRIDE, INPUT_WIDE, &element);
    fill_floats(y, LAYERS * WIDTH, INPUT_WIDE, &element);
    for (uint32_t schedule = 0; schedule < rig_schedules(); schedule++) {
        rig_begin(schedule);
        struct gpu_table t = {.slots = SLOTS,
                              .layers = LAYERS,
                              .width = WIDTH,
                              .ada = rig_upload(x, SLOTS * STRIDE * sizeof *x),
                              .ada_stride = STRIDE,
                              .own = rig_upload(y, LAYERS * WIDTH * sizeof *y),
                              .out = rig_alloc(SLOTS * LAYERS * WIDTH * sizeof(float))};
        gpu_table_launch(&t, rig_stream());
        RIG_CHECK(rig_download(found, t.out, SLOTS * LAYERS * WIDTH * sizeof(float)));
        for (size_t i = 0; i < SLOTS * LAYERS * WIDTH; i++) {
            ((float *)expected)[i] =
                x[i / (LAYERS * WIDTH) * STRIDE + i % WIDTH] + y[i % (LAYERS * WIDTH)];
        }
        expect_same("table", GPU_F32, SLOTS * LAYERS * WIDTH);
        RIG_CHECK(rig_end());
    }
}

/* Each slot has the noise that its key and tick give alone. */
static void noise(void)
{
    enum { SLOTS = 3 };
    static const uint32_t counts[] = {1, 4, 7, 999};
    struct nn_kernels kernels = reference(GPU_F32);
    for (uint32_t i = 0; i < COUNT_OF(counts) * rig_schedules(); i++) {
        uint32_t count = counts[i % COUNT_OF(counts)];
        uint64_t keys[SLOTS] = {rng_mix(i), UINT64_MAX, i};
        uint32_t ticks[SLOTS] = {i, 0, UINT32_MAX};
        rig_begin(i / COUNT_OF(counts));
        struct gpu_noise n = {.slots = SLOTS,
                              .stream = RNG_STREAM_NOISE,
                              .first = i % 3 == 0 ? UINT32_MAX - 1023 : 8 * i,
                              .count = count,
                              .keys = rig_upload(keys, sizeof keys),
                              .ticks = rig_upload(ticks, sizeof ticks),
                              .slot_stride = count,
                              .out = rig_alloc((size_t)SLOTS * count * sizeof(float))};
        gpu_noise_launch(&n, rig_stream());
        RIG_CHECK(rig_download(found, n.out, (size_t)SLOTS * count * sizeof(float)));
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            kernels.noise(keys[slot], ticks[slot], n.stream, n.first, count,
                          (float *)expected + (size_t)slot * count);
        }
        expect_same("noise", GPU_F32, (size_t)SLOTS * count);
        RIG_CHECK(rig_end());
    }
}

static void euler(void)
{
    static const uint32_t shapes[][2] = {/* channels, stride of o */
                                         {22, 32},
                                         {12, 32},
                                         {1, 3}};
    static const float weights[] = {0.25f, 1.0f};
    enum { POSITIONS = 37 };
    struct nn_kernels kernels = reference(GPU_F32);
    uint32_t element = 4;
    for (uint32_t i = 0; i < 2 * COUNT_OF(shapes) * INPUT_KIND_COUNT; i++) {
        uint32_t channels = shapes[i % COUNT_OF(shapes)][0];
        uint32_t stride = shapes[i % COUNT_OF(shapes)][1];
        enum input_kind kind = (enum input_kind)(i / 2 / COUNT_OF(shapes));
        size_t count = (size_t)POSITIONS * channels;
        fill_floats(x, count, kind, &element);
        fill_floats(y, count, kind, &element);
        fill_floats(z, (size_t)POSITIONS * stride, kind, &element);
        rig_begin(i % rig_schedules());
        struct gpu_euler e = {.positions = POSITIONS,
                              .channels = channels,
                              .o_stride = stride,
                              .weight = weights[i / COUNT_OF(shapes) % 2],
                              .x = rig_upload(x, count * sizeof *x),
                              .base = rig_upload(y, count * sizeof *y),
                              .o = rig_upload(z, (size_t)POSITIONS * stride * sizeof *z)};
        gpu_euler_launch(&e, rig_stream());
        RIG_CHECK(rig_download(found, e.x, count * sizeof *x));
        kernels.euler(x, y, z, POSITIONS, channels, stride, e.weight);
        memcpy(expected, x, count * sizeof *x);
        expect_same("euler", GPU_F32, count);
        RIG_CHECK(rig_end());
    }
}

int main(void)
{
    return TEST_RUN(TEST(conversion_and_silu), TEST(tables), TEST(noise), TEST(euler));
}
