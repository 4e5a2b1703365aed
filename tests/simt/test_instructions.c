/*
 * The instructions that kernels build on, one by one: tensor-core products and ldmatrix against
 * plain products, shuffles against their definition, number formats against theirs for every byte
 * and for floats around every rounding boundary. On a GPU the same program tests the wrappers.
 */
#include "tests/cuda/compare.h"
#include "tests/simt/instructions.h"

static void bf16_matmuls(void)
{
    uint16_t a[16][16];
    uint16_t b[16][8];
    uint16_t turned[8][16];
    float c[16][8];
    float found[16][8];
    uint32_t element = 0;
    for (uint32_t i = 0; i < 4 * rig_schedules(); i++) {
        fill_act(NN_BF16, a, 256, INPUT_TAME, &element);
        fill_act(NN_BF16, b, 128, INPUT_TAME, &element);
        fill_floats(&c[0][0], 128, INPUT_TAME, &element);
        for (int k = 0; k < 16; k++) {
            for (int n = 0; n < 8; n++) {
                turned[n][k] = b[k][n];
            }
        }
        rig_begin(i / 4);
        float *sums = rig_upload(c, sizeof c);
        bool transposed = i % 2 == 0;
        instruction_mma_bf16(rig_upload(a, sizeof a),
                             transposed ? rig_upload(b, sizeof b)
                                        : rig_upload(turned, sizeof turned),
                             sums, transposed, rig_stream());
        RIG_CHECK(rig_download(found, sums, sizeof found));
        RIG_CHECK(rig_end());
        for (int m = 0; m < 16; m++) {
            for (int n = 0; n < 8; n++) {
                double sum = (double)c[m][n];
                for (int k = 0; k < 16; k++) {
                    sum += typed_value(GPU_BF16, a, (size_t)m * 16 + k) *
                           typed_value(GPU_BF16, b, (size_t)k * 8 + n);
                }
                expect_close("mma bf16", (size_t)m * 8 + n, (double)found[m][n], sum, 1e-6, 1e-6);
            }
        }
    }
}

static void e4m3_matmuls(void)
{
    uint8_t a[16][32];
    uint8_t b[8][32];
    float c[16][8];
    float found[16][8];
    uint32_t element = 0;
    for (uint32_t i = 0; i < rig_schedules(); i++) {
        for (size_t j = 0; j < sizeof a; j++) {
            uint32_t word = random_word(&element);
            a[j / 32][j % 32] = (uint8_t)(word % 127 | (word & 128)); /* no NaN */
            word = random_word(&element);
            b[j / 32 % 8][j % 32] = (uint8_t)(word % 127 | (word & 128));
        }
        fill_floats(&c[0][0], 128, INPUT_TAME, &element);
        rig_begin(i);
        float *sums = rig_upload(c, sizeof c);
        instruction_mma_e4m3(rig_upload(a, sizeof a), rig_upload(b, sizeof b), sums, rig_stream());
        RIG_CHECK(rig_download(found, sums, sizeof found));
        RIG_CHECK(rig_end());
        for (int m = 0; m < 16; m++) {
            for (int n = 0; n < 8; n++) {
                double sum = (double)c[m][n];
                double magnitude = fabs(sum);
                for (int k = 0; k < 32; k++) {
                    double term = e4m3_value(a[m][k]) * e4m3_value(b[n][k]);
                    sum += term;
                    magnitude += fabs(term);
                }
                /* Hopper keeps 14 bits of an fp8 sum. */
                double tolerance = magnitude * (rig_emulated() ? 1e-6 : 0x1p-12);
                expect_close("mma e4m3", (size_t)m * 8 + n, (double)found[m][n], sum, tolerance,
                             0.0);
            }
        }
    }
}

/* Both ways of a warpgroup's operands, every number of the tiles different. */
static void warpgroup_matmuls(void)
{
    enum { M = 64, N = 128, K = 64 };
    static uint16_t a[M][K];
    static uint16_t b[K][N];
    static uint16_t turned[N][K];
    static float c[M][N];
    static float found[M][N];
    uint32_t element = 0;
    if (!rig_has_wgmma()) {
        printf("# no products of a warpgroup on this device\n");
        return;
    }
    for (uint32_t i = 0; i < 2 * rig_schedules(); i++) {
        fill_act(NN_BF16, a, M * K, INPUT_TAME, &element);
        fill_act(NN_BF16, b, K * N, INPUT_TAME, &element);
        fill_floats(&c[0][0], M * N, INPUT_TAME, &element);
        for (int k = 0; k < K; k++) {
            for (int n = 0; n < N; n++) {
                turned[n][k] = b[k][n];
            }
        }
        rig_begin(i / 2);
        float *sums = rig_upload(c, sizeof c);
        if (i % 2 == 0) {
            instruction_wgmma(rig_upload(a, sizeof a), rig_upload(turned, sizeof turned), sums,
                              rig_stream());
        } else {
            instruction_wgmma_values(rig_upload(a, sizeof a), rig_upload(b, sizeof b), sums,
                                     rig_stream());
        }
        RIG_CHECK(rig_download(found, sums, sizeof found));
        RIG_CHECK(rig_end());
        for (int m = 0; m < M; m++) {
            for (int n = 0; n < N; n++) {
                double sum = (double)c[m][n];
                double size = fabs(sum);
                for (int k = 0; k < K; k++) {
                    double term = typed_value(GPU_BF16, a, (size_t)m * K + k) *
                                  typed_value(GPU_BF16, b, (size_t)k * N + n);
                    sum += term;
                    size += fabs(term);
                }
                /* A GPU adds up to 17 numbers at the exponent of the largest, and cuts. */
                expect_close("wgmma", (size_t)m * N + n, (double)found[m][n], sum, size * 0x1p-20,
                             0.0);
            }
        }
    }
}

static void warpgroup_products_of_e4m3(void)
{
    enum { M = 64, N = 128, K = 128 };
    static uint8_t a[M][K];
    static uint8_t b[N][K];
    static float c[M][N];
    static float found[M][N];
    uint32_t element = 7;
    for (uint32_t i = 0; i < rig_schedules() && rig_has_wgmma(); i++) {
        for (size_t j = 0; j < sizeof a + sizeof b; j++) {
            uint8_t byte = (uint8_t)(random_word(&element) & 0xBF); /* no NaN */
            *(j < sizeof a ? &a[j / K][j % K] : &b[j / K - M][j % K]) = byte;
        }
        fill_floats(&c[0][0], M * N, INPUT_TAME, &element);
        rig_begin(i);
        float *sums = rig_upload(c, sizeof c);
        instruction_wgmma_e4m3(rig_upload(a, sizeof a), rig_upload(b, sizeof b), sums,
                               rig_stream());
        RIG_CHECK(rig_download(found, sums, sizeof found));
        RIG_CHECK(rig_end());
        for (int m = 0; m < M; m++) {
            for (int n = 0; n < N; n++) {
                double sum = (double)c[m][n];
                double size = fabs(sum);
                for (int k = 0; k < K; k++) {
                    double term = e4m3_value(a[m][k]) * e4m3_value(b[n][k]);
                    sum += term;
                    size += fabs(term);
                }
                /* Hopper keeps 14 bits of an fp8 sum. */
                double tolerance = size * (rig_emulated() ? 1e-6 : 0x1p-12);
                expect_close("wgmma e4m3", (size_t)m * N + n, (double)found[m][n], sum, tolerance,
                             0.0);
            }
        }
    }
}

static void shuffles(void)
{
    float found[256];
    for (uint32_t schedule = 0; schedule < rig_schedules(); schedule++) {
        rig_begin(schedule);
        float *out = rig_alloc(sizeof found);
        instruction_shuffles(out, rig_stream());
        RIG_CHECK(rig_download(found, out, sizeof found));
        RIG_CHECK(rig_end());
        for (int lane = 0; lane < 32; lane++) {
            EXPECT_INT(found[lane], 5);
            EXPECT_INT(found[32 + lane], lane ^ 3);
            EXPECT_INT(found[64 + lane], lane < 2 ? lane : lane - 2);
            EXPECT_INT(found[96 + lane], lane > 27 ? lane : lane + 4);
            EXPECT_INT(found[128 + lane], lane ^ 4);
            EXPECT_INT(found[160 + lane], lane % 8 == 7 ? lane : lane + 1);
            EXPECT_INT(found[192 + lane], 11);
            EXPECT_INT(found[224 + lane], 2 * 31 * 16);
        }
    }
}

/* The nearest e4m3, ties to the even byte, beyond the largest to the largest. */
static uint8_t nearest_e4m3(float x)
{
    if (isnan(x)) {
        return 0x7f;
    }
    int best = 0;
    for (int byte = 1; byte < 127; byte++) {
        double now = fabs(e4m3_value((uint8_t)byte) - fabs((double)x));
        double before = fabs(e4m3_value((uint8_t)best) - fabs((double)x));
        best = now < before || (now == before && byte % 2 == 0) ? byte : best;
    }
    return (uint8_t)(best | (signbit(x) ? 128 : 0));
}

static uint16_t nearest_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) {
        return 0x7fff;
    }
    uint32_t down = bits & 0xFFFF0000u;
    uint32_t rest = bits & 0xFFFFu;
    bool up = rest > 0x8000 || (rest == 0x8000 && (bits & 0x10000) != 0);
    return (uint16_t)((down >> 16) + up);
}

static void number_formats(void)
{
    enum { COUNT = 3 * 254 + 2000 };
    static float x[COUNT];
    static uint8_t bytes[COUNT];
    static uint32_t halves[COUNT];
    float back[2][256]; /* low and high bytes of a pair */
    uint32_t count = 0;
    uint32_t element = 3;
    for (int byte = 0; byte < 254; byte++) {
        int up = byte % 128 < 126 ? byte + 1 : byte;
        float middle = (float)((e4m3_value((uint8_t)byte) + e4m3_value((uint8_t)up)) / 2.0);
        middle = isnan(middle) ? 1.0f : middle;
        x[count++] = middle;
        x[count++] = nextafterf(middle, 1e30f);
        x[count++] = nextafterf(middle, -1e30f);
    }
    for (; count < COUNT; count++) {
        enum input_kind kind = (enum input_kind)(count % INPUT_KIND_COUNT);
        x[count] = random_float(kind, &element) * (count % 2 ? 300.0f : 1.0f);
    }
    x[COUNT - 1] = 464.0f; /* between 448 and what would follow */
    x[COUNT - 2] = -INFINITY;
    x[COUNT - 3] = NAN;
    rig_begin(0);
    uint8_t *device_bytes = rig_alloc(sizeof bytes);
    float *device_back = rig_alloc(sizeof back);
    uint32_t *device_halves = rig_alloc(sizeof halves);
    instruction_convert(rig_upload(x, sizeof x), COUNT, device_bytes, device_back, device_halves,
                        rig_stream());
    RIG_CHECK(rig_download(bytes, device_bytes, sizeof bytes));
    RIG_CHECK(rig_download(back, device_back, sizeof back));
    RIG_CHECK(rig_download(halves, device_halves, sizeof halves));
    RIG_CHECK(rig_end());
    for (uint32_t i = 0; i < COUNT; i++) {
        if (bytes[i] != nearest_e4m3(x[i]) && !(isnan(x[i]) && (bytes[i] & 127) == 127)) {
            TEST_FAIL("e4m3 of %a: expected %02x, found %02x", (double)x[i], nearest_e4m3(x[i]),
                      bytes[i]);
        }
        float next = x[i + 1 < COUNT ? i + 1 : i];
        EXPECT_INT(halves[i], nearest_bf16(x[i]) | (uint32_t)nearest_bf16(next) << 16);
    }
    for (int byte = 0; byte < 256; byte++) {
        EXPECT(is_near((double)back[0][byte], e4m3_value((uint8_t)byte), 0.0, 0.0));
        EXPECT(is_near((double)back[1][byte], e4m3_value((uint8_t)byte), 0.0, 0.0));
    }
}

int main(void)
{
    return TEST_RUN(TEST(bf16_matmuls), TEST(e4m3_matmuls), TEST(warpgroup_matmuls),
                    TEST(warpgroup_products_of_e4m3), TEST(shuffles), TEST(number_formats));
}
