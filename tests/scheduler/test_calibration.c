/*
 * Goal: forecasts are scored as their definition says, beside others of the same drives. Method:
 * few forecasts whose scores are in closed form, and drawn ones that are exact by construction.
 */
#include "scheduler/calibration.h"
#include "tests/harness.h"

#include "base/rng.h"

#include <math.h>

static void scores_are_mean_squares(void)
{
    struct calibration of = {0};
    calibration_add(&of, 1, 1, 0.0, 0.5, false);
    calibration_add(&of, 2, 2, 1.0, 0.5, true);
    calibration_add(&of, 3, 3, 0.3, 0.5, true);
    calibration_add(&of, 4, 4, NAN, 0.5, true);
    EXPECT_INT(of.forecasts, 3);
    EXPECT_INT(of.failed, 2);
    EXPECT_NEAR(calibration_score(&of).value, 0.49 / 3, 1e-12);
    EXPECT_NEAR(calibration_beside(&of).value, 0.49 / 3 - 0.25, 1e-12);
    EXPECT_INT(of.bins[0].forecasts, 1);
    EXPECT_INT(of.bins[0].failed, 0);
    EXPECT_INT(of.bins[1].failed, 1);
    EXPECT_INT(of.bins[CALIBRATION_BINS - 1].forecasts, 1);
}

static void seeds_of_a_case_are_no_further_draws(void)
{
    struct calibration of = {0};
    calibration_add(&of, 1, 1, 1.0, 0.0, true);
    for (int i = 0; i < 9; i++) {
        calibration_add(&of, 2, 2, 1.0, 0.0, false);
    }
    EXPECT_NEAR(calibration_score(&of).value, 0.5, 1e-12);
    EXPECT_INT(calibration_score(&of).logical, 2);
}

/* Drives fail as often as said: the score is that of the truth, and below the base rate's. */
static void what_is_true_is_better_than_the_base_rate(void)
{
    enum { DRIVES = 4000 };
    struct calibration of = {0};
    double expected = 0.0;
    for (uint32_t i = 0; i < DRIVES; i++) {
        double probability = rng_uniform(1, RNG_STREAM_TEST, 0, i);
        bool failed = rng_uniform(1, RNG_STREAM_TEST, 1, i) < probability;
        expected += probability * (1 - probability) / DRIVES;
        calibration_add(&of, i + 1, i + 1, probability, 0.5, failed);
    }
    EXPECT_NEAR(calibration_score(&of).value, expected, 0.015);
    EXPECT(calibration_beside(&of).high < 0);
    for (int b = 0; b < CALIBRATION_BINS; b++) {
        double drives = (double)of.bins[b].forecasts;
        EXPECT_NEAR((double)of.bins[b].failed / drives, of.bins[b].said / drives, 0.06);
    }
}

int main(void)
{
    return TEST_RUN(TEST(scores_are_mean_squares), TEST(seeds_of_a_case_are_no_further_draws),
                    TEST(what_is_true_is_better_than_the_base_rate));
}
