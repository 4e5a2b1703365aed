/*
 * Random numbers: known answers of the Random123 distribution (kat_vectors, philox4x32 10) and of
 * SplitMix64's reference code, then the counter convention and a coarse look at the distribution.
 */
#include "base/check.h"
#include "base/rng.h"
#include "tests/harness.h"

struct philox_answer {
    uint32_t counter[4];
    uint32_t key[2];
    uint32_t out[4];
};

static const struct philox_answer philox_answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void philox_gives_the_known_answers(void)
{
    for (size_t i = 0; i < COUNT_OF(philox_answers); i++) {
        const struct philox_answer *answer = &philox_answers[i];
        uint32_t out[4];
        rng_philox((uint64_t)answer->key[1] << 32 | answer->key[0], answer->counter, out);
        for (int k = 0; k < 4; k++) {
            EXPECT_INT(out[k], answer->out[k]);
        }
    }
}

static void splitmix_gives_the_known_sequence(void)
{
    /* The reference generator seeded with 1234567: state k is seed + k * golden gamma. */
    static const uint64_t expected[] = {
        UINT64_C(6457827717110365317),  UINT64_C(3203168211198807973),
        UINT64_C(9817491932198370423),  UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821),
    };
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        EXPECT(rng_mix(1234567 + i * UINT64_C(0x9E3779B97F4A7C15)) == expected[i]);
    }
    EXPECT(rng_mix(0) == UINT64_C(0xE220A8397B1DCDAF));
}

static void uniform_is_the_first_word_of_its_counter(void)
{
    for (uint32_t i = 0; i < 200; i++) {
        uint64_t key = rng_mix(i);
        const uint32_t counter[4] = {i * 3, RNG_STREAM_BEV, i * 7, 0};
        uint32_t out[4];
        rng_philox(key, counter, out);
        EXPECT(rng_uniform(key, RNG_STREAM_BEV, i * 3, i * 7) == out[0] / 4294967296.0);
    }
}

/* Changing any one input must change the stream; equal draws by chance have odds of 2^-32. */
static void every_input_matters(void)
{
    int equal = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        double base = rng_uniform(5, RNG_STREAM_AGENT, i, i);
        equal += base == rng_uniform(6, RNG_STREAM_AGENT, i, i);
        equal += base == rng_uniform(5, RNG_STREAM_CAMERA, i, i);
        equal += base == rng_uniform(5, RNG_STREAM_AGENT, i + 1, i);
        equal += base == rng_uniform(5, RNG_STREAM_AGENT, i, i + 1);
        equal += base == rng_uniform(5 | UINT64_C(1) << 40, RNG_STREAM_AGENT, i, i);
    }
    EXPECT_INT(equal, 0);
}

/* Fixed seed, so this cannot flake; bounds are about five standard errors. */
static void uniform_fills_the_unit_interval_evenly(void)
{
    enum { DRAWS = 200000, BINS = 20 };
    int bins[BINS] = {0};
    double sum = 0;
    double lag = 0;
    double previous = 0.5;
    for (uint32_t i = 0; i < DRAWS; i++) {
        double u = rng_uniform(99, RNG_STREAM_TEST, i / 100, i % 100);
        EXPECT(u >= 0.0 && u < 1.0);
        bins[(int)(u * BINS)]++;
        sum += u;
        lag += (u - 0.5) * (previous - 0.5);
        previous = u;
    }
    EXPECT_NEAR(sum / DRAWS, 0.5, 5 * 0.2887 / sqrt(DRAWS));
    EXPECT_NEAR(lag / DRAWS, 0.0, 5 * (1.0 / 12) / sqrt(DRAWS));
    for (int b = 0; b < BINS; b++) {
        EXPECT_NEAR(bins[b], DRAWS / BINS, 5 * sqrt(DRAWS / BINS));
    }
}

int main(void)
{
    return TEST_RUN(TEST(philox_gives_the_known_answers), TEST(splitmix_gives_the_known_sequence),
                    TEST(uniform_is_the_first_word_of_its_counter), TEST(every_input_matters),
                    TEST(uniform_fills_the_unit_interval_evenly));
}
