/*
 * Rates. Method: the streamed sums against the formula over arrays; Wilson's interval against the
 * two roots of the equation that it solves and against published values; and suites with a known
 * truth, drawn again and again, in which every interval must contain it about as often as it says.
 *
 *     test_rate --coverage REPETITIONS     the whole table of truths, as docs/intervals.md has it
 *
 * A drawn suite: logical scenarios of 1 to 8 cases; the pass rate of a logical scenario is drawn
 * from a beta distribution about the truth, that of a case from one about its logical scenario's
 * (intraclass correlations `between` and `within`), and each seed of a case passes by chance.
 */
#include "base/check.h"
#include "scheduler/rate.h"
#include "tests/harness.h"
#include "tests/scheduler/draws.h"

#include <math.h>
#include <stdlib.h>

enum { CASES_MAX = 8, CHECKED_REPETITIONS = 400, EXPECTED_FAILING = 10 };

/* A share about `mean` whose draws have that intraclass correlation. */
static double share_about(double mean, double correlation)
{
    if (correlation <= 0 || mean <= 0 || mean >= 1) {
        return mean;
    }
    double size = (1 - correlation) / correlation;
    double a = draw_gamma(mean * size);
    double b = draw_gamma((1 - mean) * size);
    return a + b > 0 ? a / (a + b) : (double)(draw_uniform() < mean);
}

struct truth {
    double pass;
    int logical;
    int seeds;
    double between;
    double within;
};

static void draw_suite(const struct truth *truth, struct rate *rate)
{
    *rate = (struct rate){0};
    for (int l = 0; l < truth->logical; l++) {
        int cases = 1;
        while (cases < CASES_MAX && draw_uniform() < 0.3) {
            cases++;
        }
        double at = share_about(truth->pass, truth->between);
        for (int c = 0; c < cases; c++) {
            double here = share_about(at, truth->within);
            for (int s = 0; s < truth->seeds; s++) {
                rate_add(rate, l + 1, l * CASES_MAX + c + 1, draw_uniform() < here);
            }
        }
    }
}

/* Coverage of the truth by the interval, in percent; its mean width; and how often Wilson's
 * has it with every drive as a draw. */
static double coverage(const struct truth *truth, int repetitions, double *width, double *naive)
{
    int covered = 0;
    int by_drives = 0;
    *width = 0;
    for (int i = 0; i < repetitions; i++) {
        struct rate rate;
        draw_suite(truth, &rate);
        struct rate_estimate at = rate_estimate(&rate);
        covered += at.low <= truth->pass && truth->pass <= at.high;
        *width += (at.high - at.low) / repetitions;
        double low;
        double high;
        rate_wilson(at.value, (double)at.drives, RATE_Z95, &low, &high);
        by_drives += low <= truth->pass && truth->pass <= high;
    }
    *naive = 100.0 * by_drives / repetitions;
    return 100.0 * covered / repetitions;
}

/* Coverage of the true difference by its interval: two planners on the same cases,
 * the second better by `gain` where the first fails, worse by `loss` where it passes. */
static double difference_coverage(const struct truth *truth, double gain, double loss,
                                  int repetitions)
{
    int covered = 0;
    double expected = (1 - truth->pass) * gain - truth->pass * loss;
    for (int i = 0; i < repetitions; i++) {
        struct rate gains = {0};
        struct rate losses = {0};
        for (int l = 0; l < truth->logical; l++) {
            double at = share_about(truth->pass, truth->between);
            for (int c = 0; c < 2; c++) {
                double here = share_about(at, truth->within);
                bool first = draw_uniform() < here;
                bool second = first ? draw_uniform() >= loss : draw_uniform() < gain;
                rate_add(&gains, l + 1, l * 2 + c + 1, second && !first);
                rate_add(&losses, l + 1, l * 2 + c + 1, first && !second);
            }
        }
        struct rate_difference at = rate_difference(&gains, &losses);
        covered += at.low <= expected && expected <= at.high;
    }
    return 100.0 * covered / repetitions;
}

static const double passes[] = {0.5, 0.7, 0.9, 0.95, 0.98, 0.99};
static const int sizes[] = {1, 2, 5, 10, 20, 50, 100, 200};
static const double betweens[] = {0.0, 0.1, 0.4};
static const double withins[] = {0.5, 0.98};

/* Rows: the pass rate and how many logical scenarios. Columns: one seed and ten, least and most
 * over the correlations. */
static int coverage_table(int repetitions)
{
    int outside = 0;
    int judged = 0;
    double sum = 0;
    double least_of_all = 100;
    int cells = 0;
    int below = 0;
    int above = 0;
    printf("| pass rate | logical scenarios | 1 seed: least to most | 10 seeds | mean width | 10 "
           "seeds, "
           "drives as draws |\n|---|---|---|---|---|---|\n");
    for (size_t p = 0; p < COUNT_OF(passes); p++) {
        for (size_t k = 0; k < COUNT_OF(sizes); k++) {
            double least[2] = {100, 100};
            double most[2] = {0, 0};
            double naive[2]; /* in the end those of ten seeds */
            double width = 0;
            for (int s = 0; s < 2; s++) {
                naive[0] = 100;
                naive[1] = 0;
                for (size_t b = 0; b < COUNT_OF(betweens) * COUNT_OF(withins); b++) {
                    struct truth truth = {passes[p], sizes[k], s == 0 ? 1 : 10,
                                          betweens[b / COUNT_OF(withins)],
                                          withins[b % COUNT_OF(withins)]};
                    double one;
                    double by_drives;
                    double at = coverage(&truth, repetitions, &one, &by_drives);
                    naive[0] = fmin(naive[0], by_drives);
                    naive[1] = fmax(naive[1], by_drives);
                    least[s] = fmin(least[s], at);
                    most[s] = fmax(most[s], at);
                    width += one / 12;
                    sum += at;
                    cells++;
                    below += at < 93;
                    above += at > 97;
                    least_of_all = fmin(least_of_all, at);
                    if (sizes[k] * (1 - passes[p]) >= EXPECTED_FAILING - 1e-9) {
                        judged++;
                        outside += at < 93 || at > 97;
                    }
                }
            }
            printf("| %.2f | %d | %.1f to %.1f | %.1f to %.1f | %.3f | %.0f to %.0f |\n", passes[p],
                   sizes[k], least[0], most[0], least[1], most[1], width, naive[0], naive[1]);
        }
    }
    printf("\nmean %.2f, least %.1f; %d of %d cells below 93, %d above 97; where %d or more "
           "logical scenarios are expected to fail, %d of "
           "%d cells lie outside 93 to 97\n\n",
           sum / cells, least_of_all, below, cells, above, EXPECTED_FAILING, outside, judged);
    printf("| first passes | gain | loss | logical scenarios | difference covered |\n"
           "|---|---|---|---|---|\n");
    static const double changes[][3] = {
        {0.9, 0.5, 0.02}, {0.9, 0.1, 0.1}, {0.7, 0.3, 0.1}, {0.5, 0.2, 0.2}};
    for (size_t c = 0; c < COUNT_OF(changes); c++) {
        for (size_t k = 4; k < COUNT_OF(sizes); k++) {
            struct truth truth = {changes[c][0], sizes[k], 1, 0.1, 0.5};
            printf("| %.2f | %.2f | %.2f | %d | %.1f |\n", changes[c][0], changes[c][1],
                   changes[c][2], sizes[k],
                   difference_coverage(&truth, changes[c][1], changes[c][2], repetitions));
        }
    }
    return 0;
}

/* Bounds are three standard deviations of the repetitions wider than 93 and 97. */
static void intervals_cover_the_truth(void)
{
    static const struct truth truths[] = {
        {0.5, 20, 1, 0.1, 0.5},   {0.5, 100, 10, 0.4, 0.98},  {0.7, 50, 10, 0.1, 0.98},
        {0.9, 100, 1, 0.1, 0.5},  {0.9, 100, 10, 0.1, 0.98},  {0.9, 200, 10, 0.4, 0.98},
        {0.95, 200, 1, 0.4, 0.5}, {0.95, 200, 10, 0.1, 0.98},
    };
    static const struct truth rare[] = {
        {0.9, 10, 10, 0.4, 0.98}, {0.95, 20, 10, 0.1, 0.98},  {0.98, 50, 1, 0.4, 0.5},
        {0.99, 10, 1, 0.0, 0.5},  {0.99, 100, 10, 0.4, 0.98},
    };
    double width;
    double naive;
    draws_state = 1;
    for (size_t i = 0; i < COUNT_OF(truths); i++) {
        double at = coverage(&truths[i], CHECKED_REPETITIONS, &width, &naive);
        EXPECT(at >= 91.5 && at <= 98.5);
    }
    /* With rare failures coverage moves in steps: it may be higher, never lower. */
    for (size_t i = 0; i < COUNT_OF(rare); i++) {
        EXPECT(coverage(&rare[i], CHECKED_REPETITIONS, &width, &naive) >= 90.5);
    }
    struct truth two = {0.9, 100, 1, 0.1, 0.5};
    double at = difference_coverage(&two, 0.5, 0.02, CHECKED_REPETITIONS);
    EXPECT(at >= 91.5 && at <= 98.5);
}

/* Ten seeds that repeat one drive narrow nothing, and an interval of drives would be wrong. */
static void seeds_of_one_drive_narrow_nothing(void)
{
    struct truth truth = {0.9, 100, 1, 0.1, 0.98};
    struct rate one;
    struct rate ten = {0};
    draws_state = 5;
    draw_suite(&truth, &one);
    draws_state = 7;
    for (int l = 0; l < 60; l++) {
        double value = l % 6 != 0;
        for (int s = 0; s < 10; s++) {
            rate_add(&ten, l + 1, l + 1, value);
        }
    }
    struct rate_estimate at = rate_estimate(&ten);
    double low;
    double high;
    rate_wilson(5.0 / 6, 60, RATE_Z95, &low, &high);
    EXPECT_INT(at.drives, 600);
    EXPECT_INT(at.cases, 60);
    EXPECT(at.low < low + 0.01 && at.high > high - 0.01);
}

static void streamed_sums_are_the_formula(void)
{
    for (draws_state = 3; draws_state < 400; draws_state++) {
        enum { LOGICAL = 12 };
        double y[LOGICAL] = {0};
        double n[LOGICAL] = {0};
        double total = 0;
        double cases = 0;
        double worst = 0;
        double best = 0;
        struct rate rate = {0};
        for (int l = 0; l < LOGICAL; l++) {
            int count = 1 + (int)(draw_uniform() * 4);
            for (int c = 0; c < count; c++) {
                int seeds = 1 + (int)(draw_uniform() * 3);
                double sum = 0;
                for (int s = 0; s < seeds; s++) {
                    double value = draw_uniform() < 0.6;
                    sum += value;
                    rate_add(&rate, l + 1, l * 10 + c + 1, value);
                }
                bool lacks = draw_uniform() < 0.2;
                if (lacks) {
                    rate_add(&rate, l + 1, l * 10 + c + 1, NAN);
                }
                worst += sum / (seeds + lacks);
                best += (sum + lacks) / (seeds + lacks);
                y[l] += sum / seeds;
                n[l]++;
                total += sum / seeds;
                cases++;
            }
        }
        struct rate_estimate at = rate_estimate(&rate);
        double p = total / cases;
        double variance = 0;
        for (int l = 0; l < LOGICAL; l++) {
            variance += pow(y[l] - p * n[l], 2) * LOGICAL / (LOGICAL - 1) / (cases * cases);
        }
        EXPECT_NEAR(at.value, p, 1e-12);
        EXPECT_NEAR(at.worst, worst / cases, 1e-12);
        EXPECT_NEAR(at.best, best / cases, 1e-12);
        EXPECT_INT(at.logical, LOGICAL);
        double low;
        double high;
        double t = rate_t95(LOGICAL - 1);
        double draws = p * (1 - p) / variance * RATE_Z95 * RATE_Z95 / (t * t);
        rate_wilson(p, draws, RATE_Z95, &low, &high);
        /* The number of draws is bounded above, so it may be wider than this, never narrower. */
        EXPECT(at.low <= low + 1e-9 && at.high >= high - 1e-9);
    }
}

static void ends_say_what_is_known(void)
{
    struct rate none = {0};
    struct rate_estimate at = rate_estimate(&none);
    EXPECT(isnan(at.value) && at.low == 0 && at.high == 1);
    struct rate all = {0};
    for (int l = 0; l < 40; l++) {
        for (int c = 0; c < 5; c++) {
            rate_add(&all, l + 1, l * 5 + c + 1, 1);
        }
    }
    at = rate_estimate(&all);
    double low;
    double high;
    rate_wilson(1, 40, RATE_Z95, &low, &high);
    EXPECT_NEAR(at.low, low, 1e-12); /* 40 draws, not 200 */
    EXPECT(at.value == 1 && at.high == 1);
    rate_add(&all, 41, 1000, NAN); /* a case of which nothing is known */
    at = rate_estimate(&all);
    EXPECT_INT(at.cases, 200);
    EXPECT_INT(at.missing, 1);
    EXPECT_NEAR(at.worst, 200.0 / 201, 1e-12);
    EXPECT(at.best == 1);
    struct rate_difference same = rate_difference(&none, &none);
    EXPECT(isnan(same.value) && same.low == -1 && same.high == 1);
}

/* The bounds are the values of p at which |share - p| is z standard deviations. */
static void wilson_solves_its_equation(void)
{
    double low;
    double high;
    for (int n = 1; n < 200; n += 7) {
        for (int hits = 0; hits <= n; hits++) {
            double p = (double)hits / n;
            rate_wilson(p, n, RATE_Z95, &low, &high);
            double ends[] = {low, high};
            EXPECT(low >= 0 && low <= p && p <= high && high <= 1);
            for (int e = 0; e < 2; e++) {
                double sigma = sqrt(ends[e] * (1 - ends[e]) / n);
                EXPECT(fabs(fabs(p - ends[e]) - RATE_Z95 * sigma) < 1e-9);
            }
        }
    }
    /* Newcombe, Statistics in Medicine 17 (1998), table I, method 3. */
    rate_wilson(81.0 / 263, 263, RATE_Z95, &low, &high);
    EXPECT(fabs(low - 0.2553) < 5e-5 && fabs(high - 0.3662) < 5e-5);
    rate_wilson(15.0 / 148, 148, RATE_Z95, &low, &high);
    EXPECT(fabs(low - 0.0624) < 5e-5 && fabs(high - 0.1605) < 5e-5);
    rate_wilson(0, 0, RATE_Z95, &low, &high);
    EXPECT(low == 0 && high == 1);
}

/* Tables of Student's t. */
static void quantiles_are_the_tables(void)
{
    static const double known[][2] = {{1, 12.7062}, {2, 4.3027},  {3, 3.1824},  {5, 2.5706},
                                      {9, 2.2622},  {30, 2.0423}, {120, 1.9799}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        EXPECT_NEAR(rate_t95(known[i][0]), known[i][1], 0.01);
    }
    /* Between whole degrees: the quantile of scipy.stats.t. */
    static const double between[][2] = {{1.25, 8.02795}, {1.5, 6.01666}, {1.75, 4.94885},
                                        {2.5, 3.57465},  {3.5, 2.94009}, {0.5, 12.7062}};
    for (size_t i = 0; i < COUNT_OF(between); i++) {
        EXPECT_NEAR(rate_t95(between[i][0]) / between[i][1], 1, 0.03);
    }
    EXPECT_NEAR(rate_degrees(6, 6, 10), 6, 1e-12); /* six clusters, all alike */
    EXPECT_NEAR(rate_degrees(4, 16, 10), 1, 1e-12);
    EXPECT_NEAR(rate_degrees(0, 0, 10), 10, 0);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--coverage") == 0) {
        return coverage_table(atoi(argv[2]));
    }
    return TEST_RUN(TEST(intervals_cover_the_truth), TEST(seeds_of_one_drive_narrow_nothing),
                    TEST(streamed_sums_are_the_formula), TEST(ends_say_what_is_known),
                    TEST(wilson_solves_its_equation), TEST(quantiles_are_the_tables));
}
