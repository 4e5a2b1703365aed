/*
 * Goal: the interval of a mean error over recorded scenes has the truth in it about as often as it
 * says, whatever the scenes are like; and known cases come out as arithmetic says. Method: scenes
 * drawn again and again from a known mean; closed forms.
 *
 *     test_worker_correlate_estimate --coverage REPETITIONS     the table of truths, as
 * docs/intervals.md has it
 *
 * A drawn scene: its mean error comes from a gamma distribution about 1 with a coefficient of
 * variation, its number of windows from a geometric distribution about 12, and each window's error
 * from a gamma distribution about the scene's.
 */
#include "base/check.h"
#include "report/correlate/correlate.h"
#include "scheduler/rate.h"
#include "tests/harness.h"
#include "tests/scheduler/draws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOWS_MEAN 12.0
#define WINDOW_SHAPE 1.5
enum { CHECKED_REPETITIONS = 600 };

static const int scenes[] = {5, 8, 11, 30, 100};
static const double variations[] = {0.3, 0.6, 1.0};

static struct correlate_estimate draw_scenes(int count, double variation)
{
    struct correlate_error errors = {0};
    double shape = 1 / (variation * variation);
    for (int s = 0; s < count; s++) {
        double mean = draw_gamma(shape) / shape;
        int windows = 1 + (int)(log(draw_uniform()) / log(1 - 1 / WINDOWS_MEAN));
        for (int w = 0; w < windows; w++) {
            correlate_error_add(&errors, mean * draw_gamma(WINDOW_SHAPE) / WINDOW_SHAPE);
        }
        correlate_error_close(&errors);
    }
    return correlate_estimate(&errors);
}

static double coverage(int count, double variation, int repetitions)
{
    int covered = 0;
    for (int i = 0; i < repetitions; i++) {
        struct correlate_estimate at = draw_scenes(count, variation);
        covered += at.low <= 1 && 1 <= at.high;
    }
    return 100.0 * covered / repetitions;
}

static int coverage_table(int repetitions)
{
    printf("| scenes | variation 0.3 | 0.6 | 1 |\n|---|---|---|---|\n");
    for (size_t n = 0; n < COUNT_OF(scenes); n++) {
        printf("| %d |", scenes[n]);
        for (size_t v = 0; v < COUNT_OF(variations); v++) {
            printf(" %.1f |", coverage(scenes[n], variations[v], repetitions));
        }
        printf("\n");
    }
    return 0;
}

/* Bounds are the table of docs/intervals.md, less three standard deviations of repetitions. */
static void intervals_cover_the_truth(void)
{
    draws_state = 1;
    for (size_t n = 0; n < COUNT_OF(scenes); n++) {
        EXPECT(coverage(scenes[n], 0.6, CHECKED_REPETITIONS) >= 91.0);
    }
}

/* Scenes of one size with errors that may be negative: the mean and Student's t of it. */
static void equal_scenes_are_a_plain_mean(void)
{
    const double values[] = {-1, 0, 2, 5, 9};
    struct correlate_error errors = {0};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        for (int w = 0; w < 3; w++) {
            correlate_error_add(&errors, values[i]);
        }
        correlate_error_close(&errors);
    }
    struct correlate_estimate at = correlate_estimate(&errors);
    const double squares = 16 + 9 + 1 + 4 + 36;
    const double fourths = 256 + 81 + 1 + 16 + 1296;
    double half = rate_t95(squares * squares / fourths) * sqrt(squares / 4 / 5);
    EXPECT_NEAR(at.mean, 3, 1e-12);
    EXPECT_NEAR(at.low, 3 - half, 1e-9);
    EXPECT_NEAR(at.high, 3 + half, 1e-9);
    EXPECT(at.windows == 15 && at.scenes == 5 && at.most == 9);
}

/* Few scenes say nothing of others; sizes have an interval above zero, about the mean as a factor.
 */
static void sizes_stay_above_zero(void)
{
    struct correlate_error errors = {0};
    for (int s = 1; s <= RATE_CLUSTERS_MIN; s++) {
        EXPECT(isnan(correlate_estimate(&errors).low));
        correlate_error_add(&errors, s * s);
        correlate_error_close(&errors);
    }
    struct correlate_estimate at = correlate_estimate(&errors);
    EXPECT(at.low > 0);
    EXPECT_NEAR(at.low * at.high, at.mean * at.mean, 1e-6);
}

/* No share is beyond 1, whatever its spread. */
static void shares_end_at_one(void)
{
    const double values[] = {1, 1, 0.2, 1, 0.9, 1};
    struct correlate_error shares = {0};
    struct correlate_error sizes = {0};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        correlate_error_add_share(&shares, values[i]);
        correlate_error_close(&shares);
        correlate_error_add(&sizes, values[i]);
        correlate_error_close(&sizes);
    }
    EXPECT(correlate_estimate(&sizes).high > 1);
    EXPECT_NEAR(correlate_estimate(&shares).high, 1, 0);
    EXPECT_NEAR(correlate_estimate(&shares).low, correlate_estimate(&sizes).low, 0);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--coverage") == 0) {
        return coverage_table(atoi(argv[2]));
    }
    return TEST_RUN(TEST(intervals_cover_the_truth), TEST(equal_scenes_are_a_plain_mean),
                    TEST(sizes_stay_above_zero), TEST(shares_end_at_one));
}
