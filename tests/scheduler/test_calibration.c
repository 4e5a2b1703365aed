/*
 * Goal: forecasts are scored as their definition says, beside others of the same drives. Method:
 * few forecasts whose scores are in closed form, and drawn ones that are exact by construction.
 *
 *     test_calibration --coverage REPETITIONS     as docs/intervals.md has it
 */
#include "base/check.h"
#include "scheduler/calibration.h"
#include "tests/harness.h"
#include "tests/scheduler/draws.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLUSTERS = 4000 };
static struct paired_cluster clusters[CLUSTERS];

/* One at a time: they share the clusters. */
static struct calibration begin(void)
{
    memset(clusters, 0, sizeof clusters);
    return (struct calibration){.clusters = clusters, .cluster_max = CLUSTERS};
}

static void scores_are_mean_squares(void)
{
    struct calibration of = begin();
    calibration_add(&of, 1, 1, 0.0, 0.5, false);
    calibration_add(&of, 2, 2, 1.0, 0.5, true);
    calibration_add(&of, 3, 3, 0.3, 0.5, true);
    calibration_add(&of, 4, 4, NAN, 0.5, true);
    EXPECT_INT(of.forecasts, 3);
    EXPECT_INT(of.failed, 2);
    EXPECT_NEAR(calibration_score(&of), 0.49 / 3, 1e-12);
    EXPECT_NEAR(calibration_beside(&of).value, 0.49 / 3 - 0.25, 1e-12);
    EXPECT_INT(of.bins[0].forecasts, 1);
    EXPECT_INT(of.bins[0].failed, 0);
    EXPECT_INT(of.bins[1].failed, 1);
    EXPECT_INT(of.bins[CALIBRATION_BINS - 1].forecasts, 1);
}

static void seeds_of_a_case_are_no_further_draws(void)
{
    struct calibration of = begin();
    calibration_add(&of, 1, 1, 1.0, 0.0, true);
    for (int i = 0; i < 9; i++) {
        calibration_add(&of, 2, 2, 1.0, 0.0, false);
    }
    EXPECT_NEAR(calibration_score(&of), 0.5, 1e-12);
    EXPECT_NEAR(calibration_beside(&of).value, 0.0, 1e-12); /* 1 better, 1 worse */
    EXPECT_INT(calibration_beside(&of).clusters, 2);
}

/* Drives fail as often as said: the score is that of the truth, and below the base rate's. */
static void what_is_true_is_better_than_the_base_rate(void)
{
    enum { DRIVES = 4000 };
    struct calibration of = begin();
    double expected = 0.0;
    for (uint32_t i = 0; i < DRIVES; i++) {
        double probability = rng_uniform(1, RNG_STREAM_TEST, 0, i);
        bool failed = rng_uniform(1, RNG_STREAM_TEST, 1, i) < probability;
        expected += probability * (1 - probability) / DRIVES;
        calibration_add(&of, i + 1, i + 1, probability, 0.5, failed);
    }
    EXPECT_NEAR(calibration_score(&of), expected, 0.015);
    EXPECT(calibration_beside(&of).high < 0);
    for (int b = 0; b < CALIBRATION_BINS; b++) {
        double drives = (double)of.bins[b].forecasts;
        EXPECT_NEAR((double)of.bins[b].failed / drives, of.bins[b].said / drives, 0.06);
    }
}

/* ---- how often intervals hold the truth ---- */

/* Logical scenarios of 1 to `cases` cases. A case is said to fail with p = u^skew, u uniform, and
 * does with p times `wrong`, at most 1. Cases of one logical scenario share u with chance `alike`,
 * and with it the chance that decides. The other forecast always says 0.2. */
struct world {
    int logical;
    int cases;
    double skew;
    double wrong;
    double alike;
};

#define OTHER 0.2

static double chance(const struct world *world, double probability)
{
    return fmin(probability * world->wrong, 1.0);
}

static void draw_world(const struct world *world, struct calibration *of)
{
    int64_t case_key = 0;
    *of = begin();
    for (int l = 1; l <= world->logical; l++) {
        int cases = 1 + (int)(draw_uniform() * world->cases);
        double shared = draw_uniform();
        double shared_fate = draw_uniform();
        for (int c = 0; c < cases; c++) {
            bool alike = draw_uniform() < world->alike;
            double probability = pow(alike ? shared : draw_uniform(), world->skew);
            double fate = alike ? shared_fate : draw_uniform();
            calibration_add(of, l, ++case_key, probability, OTHER,
                            fate < chance(world, probability));
        }
    }
}

/* Share in percent of repetitions whose interval holds the truth. */
static double coverage(const struct world *world, int repetitions)
{
    enum { POINTS = 100000 };
    double truth = 0.0;
    double held = 0.0;
    for (int i = 0; i < POINTS; i++) {
        double probability = pow((i + 0.5) / POINTS, world->skew);
        double fails = chance(world, probability);
        truth += (probability * probability - 2 * probability * fails) / POINTS;
        truth -= (OTHER * OTHER - 2 * OTHER * fails) / POINTS;
    }
    for (int r = 0; r < repetitions; r++) {
        struct calibration of;
        draw_world(world, &of);
        struct paired_mean beside = calibration_beside(&of);
        held += (beside.low <= truth && truth <= beside.high) * 100.0 / repetitions;
    }
    return held;
}

static void intervals_cover_the_truth(void)
{
    const struct world worlds[] = {{40, 1, 4, 1, 0}, {40, 4, 2, 1.5, 0.7}, {150, 3, 8, 2, 0.5}};
    for (uint32_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        draws_state = i;
        EXPECT(coverage(&worlds[i], 400) >= 90);
    }
}

/* Draws that an outcome keeps say as much as its models: sure where all are, undecided where they
 * contradict each other, have no verdict or too few draws, and nothing without futures. */
static void kept_draws_answer(void)
{
    static const struct {
        struct outcome_futures futures;
        double value, low, high;
        enum forecast_answer answer;
    } rows[] = {
        {{FUTURES_DRIVEN, 5, 16, 16, 0, 16, 0, 16, 0}, 0, 0, 0.2407360, FORECAST_PASS},
        {{FUTURES_DRIVEN, 5, 16, 1, 15, 0, 16, 2, 14}, 45.0 / 48, 0.6041, 1, FORECAST_FAIL},
        {{FUTURES_DRIVEN, 5, 16, 16, 0, 16, 0, 0, 16}, 1.0 / 3, 0, 1, FORECAST_UNDECIDED},
        {{FUTURES_DRIVEN, 5, 16, 16, 0, 16, 0, 0, 0}, 0, 0, 1, FORECAST_UNDECIDED},
        {{FUTURES_DRIVEN, 5, 5, 5, 0, 5, 0, 5, 0}, 0, 0, 0.5371, FORECAST_UNDECIDED},
        {{FUTURES_FAILED_BEFORE, 5, 16, 0, 0, 0, 0, 0, 0}, NAN, 0, 1, FORECAST_UNDECIDED},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct forecast_share share = forecast_kept(&rows[i].futures);
        EXPECT(isnan(rows[i].value) ? isnan(share.value) : share.value == rows[i].value);
        EXPECT_NEAR(share.low, rows[i].low, 1e-4);
        EXPECT_NEAR(share.high, rows[i].high, 1e-4);
        EXPECT_INT(forecast_answer(&share), rows[i].answer);
        for (int own = 0; own < VERDICT_COUNT; own++) {
            bool same = forecast_says(rows[i].answer, (enum verdict)own);
            EXPECT_INT(forecast_settles(&rows[i].futures, (enum verdict)own),
                       same ? rows[i].answer : FORECAST_UNDECIDED);
        }
    }
    EXPECT(forecast_says(FORECAST_PASS, VERDICT_PASS) &&
           forecast_says(FORECAST_FAIL, VERDICT_FAIL));
    EXPECT(!forecast_says(FORECAST_PASS, VERDICT_FAIL) &&
           !forecast_says(FORECAST_UNDECIDED, VERDICT_PASS) &&
           !forecast_says(FORECAST_FAIL, VERDICT_INVALID));
}

static int coverage_table(int repetitions)
{
    static const int logical[] = {20, 40, 150};
    static const int cases[] = {1, 4};
    static const double skews[] = {1, 4, 10};
    static const double wrongs[] = {0.5, 1, 2};
    printf("logical,cases,skew,wrong,alike,held\n");
    for (int i = 0; i < 3 * 2 * 3 * 3 * 2; i++) {
        struct world world = {logical[i % 3], cases[i / 3 % 2], skews[i / 6 % 3],
                              wrongs[i / 18 % 3], i / 54 % 2 == 0 ? 0 : 0.7};
        draws_state = (uint64_t)i;
        printf("%d,%d,%g,%g,%g,%.2f\n", world.logical, world.cases, world.skew, world.wrong,
               world.alike, coverage(&world, repetitions));
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--coverage") == 0) {
        return coverage_table(atoi(argv[2]));
    }
    return TEST_RUN(TEST(intervals_cover_the_truth), TEST(scores_are_mean_squares),
                    TEST(kept_draws_answer), TEST(seeds_of_a_case_are_no_further_draws),
                    TEST(what_is_true_is_better_than_the_base_rate));
}
