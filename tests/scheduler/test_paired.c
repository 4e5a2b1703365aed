/*
 * Goal: tests and intervals of paired differences are right where the answer is known, and hold
 * what they promise where it is drawn. Method: closed forms (binomial, enumeration), published
 * arithmetic, and drawn clusters with a known mean. `test_paired coverage` repeats the drawing
 * 1,000 times and prints a table.
 */
#include "scheduler/paired.h"

#include "base/rng.h"
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
    uint32_t scratch[5];
    paired_holm(p, 5, scratch);
    EXPECT_NEAR(p[0], 0.04, 1e-15);
    EXPECT(isnan(p[1]));
    EXPECT_NEAR(p[3], 0.09, 1e-15);
    EXPECT_NEAR(p[2], 0.09, 1e-15);
    EXPECT_NEAR(p[4], 0.9, 1e-15);
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
    const struct paired_cluster some[] = {{1, 1}, {3, 2}, {2, 1}, {-1, 1}};
    struct paired_mean again = paired_mean(some, 4);
    mean = paired_mean(some, 4);
    EXPECT_NEAR(mean.value, 1.0, 1e-15);
    EXPECT(mean.low == again.low && mean.high == again.high);
    EXPECT(mean.low < 1.0 && mean.high > 1.0);
}

static double normal(uint32_t a, uint32_t b)
{
    double u = rng_uniform(11, RNG_STREAM_TEST, a, 2 * b);
    double v = rng_uniform(11, RNG_STREAM_TEST, a, 2 * b + 1);
    return sqrt(-2 * log(u + 1e-12)) * cos(2 * 3.14159265358979 * v);
}

/* Share of drawn suites whose interval has the truth. zero: of how many clusters nothing changed.
 */
static double coverage(uint32_t repeats, uint32_t clusters, double zero, double truth)
{
    static struct paired_cluster drawn[400];
    uint32_t hits = 0;
    for (uint32_t r = 0; r < repeats; r++) {
        for (uint32_t i = 0; i < clusters; i++) {
            uint32_t at = r * 1000 + i;
            uint32_t cases = 1 + (uint32_t)(rng_uniform(5, RNG_STREAM_TEST, at, 0) * 4);
            bool same = rng_uniform(7, RNG_STREAM_TEST, at, 0) < zero;
            double shared = truth / (1 - zero) + 0.05 * normal(at, 0);
            drawn[i] = (struct paired_cluster){.cases = cases};
            for (uint32_t k = 0; k < cases && !same; k++) {
                drawn[i].sum += shared + 0.02 * normal(at, 1 + k);
            }
        }
        struct paired_mean mean = paired_mean(drawn, clusters);
        hits += mean.low <= truth && truth <= mean.high;
    }
    return (double)hits / repeats;
}

static void intervals_cover(void)
{
    EXPECT(coverage(200, 30, 0, 0.01) > 0.91);
    EXPECT(coverage(200, 100, 0.8, -0.04) > 0.91);
}

static int print_coverage(void)
{
    static const double zeros[] = {0, 0.5, 0.8};
    printf("clusters  unchanged  coverage of 1,000\n");
    for (uint32_t clusters = 10; clusters <= 300; clusters = clusters == 30 ? 100 : clusters * 3) {
        for (int z = 0; z < 3; z++) {
            printf("%8u  %9.1f  %.3f\n", clusters, zeros[z],
                   coverage(1000, clusters, zeros[z], -0.03));
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "coverage") == 0) {
        return print_coverage();
    }
    return TEST_RUN(TEST(single_cases_are_mcnemar), TEST(clusters_count_once),
                    TEST(equals_enumeration), TEST(many_clusters_are_near_the_normal),
                    TEST(holm_steps_down), TEST(means_have_their_ends), TEST(intervals_cover));
}
