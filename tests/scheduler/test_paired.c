/*
 * Goal: tests and intervals of paired differences are right where the answer is known, and hold
 * what they promise where it is drawn. Method: closed forms (binomial, enumeration), published
 * arithmetic, and drawn clusters with a known mean.
 *
 *     test_paired --coverage REPETITIONS     the table of truths, as docs/intervals.md has it
 */
#include "scheduler/paired.h"

#include "base/check.h"
#include "base/rng.h"
#include "scheduler/rate.h"
#include "tests/harness.h"

#include <stdlib.h>

static void single_cases_are_mcnemar(void)
{
    /* 1 fixed, 9 broken: 2 * (C(10,0) + C(10,1)) / 2^10 */
    const int32_t net[] = {1, -1, -1, 0, -1, -1, -1, -1, -1, -1, -1, 0};
    EXPECT_NEAR(paired_exact_p(net, 12), 22.0 / 1024, 1e-15);
    const int32_t even[] = {1, -1, 0, 1, -1};
    EXPECT_NEAR(paired_exact_p(even, 5), 1.0, 1e-15);
    const int32_t none[] = {0, 0, 0};
    EXPECT_NEAR(paired_exact_p(none, 3), 1.0, 0);
    EXPECT_NEAR(paired_exact_p(none, 0), 1.0, 0);
}

static void clusters_count_once(void)
{
    /* All ten cases of one logical scenario broke: one draw proves nothing. */
    const int32_t one[] = {-10};
    EXPECT_NEAR(paired_exact_p(one, 1), 1.0, 1e-15);
    const int32_t two[] = {3, 1};
    EXPECT_NEAR(paired_exact_p(two, 2), 0.5, 1e-15);
}

/* Every pattern of signs, one by one. */
static void equals_enumeration(void)
{
    int32_t net[10];
    for (uint32_t trial = 0; trial < 50; trial++) {
        int32_t observed = 0;
        uint32_t far = 0;
        for (uint32_t i = 0; i < 10; i++) {
            net[i] = (int32_t)(rng_uniform(3, RNG_STREAM_TEST, trial, i) * 9) - 4;
            observed += net[i];
        }
        for (uint32_t signs = 0; signs < 1024; signs++) {
            int32_t sum = 0;
            for (uint32_t i = 0; i < 10; i++) {
                sum += (signs >> i & 1) != 0 ? net[i] : -net[i];
            }
            far += abs(sum) >= abs(observed);
        }
        EXPECT_NEAR(paired_exact_p(net, 10), far / 1024.0, 1e-12);
    }
}

static void many_clusters_are_near_the_normal(void)
{
    static int32_t net[20000];
    for (int i = 0; i < 20000; i++) {
        net[i] = i < 10141 ? 1 : -1; /* 282 more: z = 281 / sqrt(20000) with half a step */
    }
    EXPECT_NEAR(paired_exact_p(net, 20000), 0.0469, 2e-3);
}

static void holm_steps_down(void)
{
    double p[] = {0.01, NAN, 0.04, 0.03, 0.9};
    const double none[] = {0, 0, 0, 0, 0};
    uint32_t scratch[5];
    paired_holm(p, none, 5, scratch);
    EXPECT_NEAR(p[0], 0.04, 1e-15);
    EXPECT(isnan(p[1]));
    EXPECT_NEAR(p[3], 0.09, 1e-15);
    EXPECT_NEAR(p[2], 0.09, 1e-15);
    EXPECT_NEAR(p[4], 0.9, 1e-15);
}

/* Two tests of ten and six changed clusters beside eight of three, which can never be below 0.25.
 */
static void tests_that_cannot_find_cost_nothing(void)
{
    double p[10] = {0.002, 0.03125, 1, 0.25, 1, 1, 1, 0.25, 1, 1};
    double least[10];
    uint32_t scratch[10];
    for (int i = 0; i < 10; i++) {
        least[i] = paired_least_p(i == 0 ? 10 : i == 1 ? 7 : 3);
    }
    EXPECT_NEAR(least[0], 2.0 / 1024, 0);
    EXPECT_NEAR(least[2], 0.25, 0);
    EXPECT_NEAR(paired_least_p(0), 1, 0);
    paired_holm(p, least, 10, scratch);
    EXPECT_NEAR(p[0], 0.004, 1e-15);
    EXPECT_NEAR(p[1], 0.03125, 1e-15);
    EXPECT_NEAR(p[3], 1, 0);
}

static void means_have_their_ends(void)
{
    const struct paired_cluster still[] = {{0, 2}, {0, 1}};
    struct paired_mean mean = paired_mean(still, 2);
    EXPECT(mean.value == 0 && mean.low == 0 && mean.high == 0);
    const struct paired_cluster one[] = {{3, 2}};
    mean = paired_mean(one, 1);
    EXPECT_NEAR(mean.value, 1.5, 0);
    EXPECT(isinf(mean.low) && isinf(mean.high));
    mean = paired_mean(one, 0);
    EXPECT(isnan(mean.value));
    /* Deviations from the mean, in thirds: -1, 1, 2, -7, 5. */
    const struct paired_cluster some[] = {{1, 1}, {3, 2}, {2, 1}, {-1, 1}, {3, 1}};
    mean = paired_mean(some, 5);
    EXPECT_NEAR(mean.value, 8.0 / 6, 1e-15);
    double squares = (1 + 1 + 4 + 49 + 25) / 9.0;
    double fourths = (1 + 1 + 16 + 49 * 49 + 25 * 25) / 81.0;
    double half = rate_t95(squares * squares / fourths) * sqrt(squares * 5 / 4) / 6;
    EXPECT_NEAR(mean.low, mean.value - half, 1e-12);
    EXPECT_NEAR(mean.high, mean.value + half, 1e-12);
}

static double normal(uint32_t a, uint32_t b)
{
    double u = rng_uniform(11, RNG_STREAM_TEST, a, 2 * b);
    double v = rng_uniform(11, RNG_STREAM_TEST, a, 2 * b + 1);
    return sqrt(-2 * log(u + 1e-12)) * cos(2 * 3.14159265358979 * v);
}

enum kind { NORMAL, SKEWED, EITHER, KINDS };
static const char *const kind_names[KINDS] = {"normal", "skewed", "either way"};

/* The deviation of a cluster from the truth. Either way: something is far better or far worse. */
static double deviation(enum kind kind, uint32_t at)
{
    double u = rng_uniform(13, RNG_STREAM_TEST, at, 0);
    return kind == NORMAL   ? 0.05 * normal(at, 0)
           : kind == SKEWED ? 0.05 * (-log(u + 1e-12) - 1)
                            : (u < 0.5 ? -0.3 : 0.3);
}

/* Percent of drawn suites whose interval has the truth, of those that have one; their percentage
 * and mean width. zero: of how many clusters nothing changed. */
struct held {
    double percent;
    double printed;
    double width;
};

static struct held coverage(uint32_t repeats, uint32_t clusters, enum kind kind, double zero,
                            double truth)
{
    static struct paired_cluster drawn[400];
    struct held held = {0};
    for (uint32_t r = 0; r < repeats; r++) {
        for (uint32_t i = 0; i < clusters; i++) {
            uint32_t at = r * 1000 + i;
            uint32_t cases = 1 + (uint32_t)(rng_uniform(5, RNG_STREAM_TEST, at, 0) * 4);
            bool same = rng_uniform(7, RNG_STREAM_TEST, at, 0) < zero;
            double shared = truth / (1 - zero) + deviation(kind, at);
            drawn[i] = (struct paired_cluster){.cases = cases};
            for (uint32_t k = 0; k < cases && !same; k++) {
                drawn[i].sum += shared + 0.02 * normal(at, 1 + k);
            }
        }
        struct paired_mean mean = paired_mean(drawn, clusters);
        if (mean.changed > 0 && isfinite(mean.low)) {
            held.printed++;
            held.width += mean.high - mean.low;
            held.percent += mean.low <= truth && truth <= mean.high;
        }
    }
    held.percent *= 100 / held.printed;
    held.width /= held.printed;
    held.printed *= 100.0 / repeats;
    return held;
}

static const double zeros[] = {0, 0.5, 0.8};
static const uint32_t sizes[] = {5, 10, 20, 30, 100, 300};

/* Bounds are three standard deviations of the repetitions below the table's least. */
static void intervals_cover(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        EXPECT(coverage(300, 10, (enum kind)kind, 0, 0.01).percent > 89);
        EXPECT(coverage(300, 30, (enum kind)kind, 0.8, -0.04).percent > 89);
        EXPECT(coverage(300, 100, (enum kind)kind, 0.5, 0.01).percent > 91.5);
    }
}

static int print_coverage(uint32_t repeats)
{
    uint32_t outside = 0;
    uint32_t cells = 0;
    printf(
        "| logical scenarios | of these unchanged | normal | skewed | either way | mean width |\n"
        "|---|---|---|---|---|---|\n");
    for (size_t n = 0; n < COUNT_OF(sizes); n++) {
        for (size_t z = 0; z < COUNT_OF(zeros); z++) {
            double width = 0;
            printf("| %u | %.0f%% |", sizes[n], 100 * zeros[z]);
            for (int kind = 0; kind < KINDS; kind++) {
                struct held held = coverage(repeats, sizes[n], (enum kind)kind, zeros[z], -0.03);
                printf(" %.1f |", held.percent);
                width += held.width / KINDS;
                outside += held.percent < 93 || held.percent > 97;
                cells++;
            }
            printf(" %.3f |\n", width);
        }
    }
    printf("\n%u of %u cells lie outside 93 to 97; columns: what changes by (%s, %s, %s)\n",
           outside, cells, kind_names[0], kind_names[1], kind_names[2]);
    return 0;
}

/* With few clusters, or none that changed, there is a word and no interval; a single cluster that
 * changed among many makes one that is wide and can be read. */
static void few_clusters_have_a_word(void)
{
    char text[PAIRED_TEXT_BYTES];
    struct paired_cluster some[40] = {0};
    for (int i = 0; i < 40; i++) {
        some[i].cases = 2;
    }
    struct paired_mean mean = paired_mean(some, 40);
    EXPECT_TEXT(paired_mean_text(&mean, text), "+0 (the same everywhere)");
    some[0].sum = 0.5;
    mean = paired_mean(some, 4);
    EXPECT(isinf(mean.low) && isinf(mean.high));
    EXPECT_TEXT(paired_mean_text(&mean, text), "+0.0625 (of 4: too few for an interval)");
    mean = paired_mean(some, 40);
    EXPECT(mean.low < 0 && mean.high > mean.value);
    EXPECT(mean.high - mean.low < 26 * mean.value); /* t of one degree of freedom, twice */
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--coverage") == 0) {
        return print_coverage((uint32_t)atoi(argv[2]));
    }
    return TEST_RUN(TEST(single_cases_are_mcnemar), TEST(clusters_count_once),
                    TEST(equals_enumeration), TEST(many_clusters_are_near_the_normal),
                    TEST(holm_steps_down), TEST(tests_that_cannot_find_cost_nothing),
                    TEST(means_have_their_ends), TEST(few_clusters_have_a_word),
                    TEST(intervals_cover));
}
