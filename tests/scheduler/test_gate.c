/*
 * Tests of the gate. Method: a million random slices against the rules said otherwise, and planned
 * draws against the interval itself.
 */
#include "scheduler/gate.h"

#include "base/rng.h"
#include "scheduler/rate.h"
#include "tests/harness.h"

#include <math.h>

enum { SLICES = 1000000 };

static uint64_t state;

static double draw(void)
{
    state = rng_mix(state + 1);
    return (double)(state >> 11) * 0x1p-53;
}

/* Goal: nothing passes that a reader of the rules would refuse; the same facts give the same
 * answer. */
static void slices_pass_within_their_bands_alone(void)
{
    int64_t seen[GATE_RESULT_COUNT] = {0};
    for (int i = 0; i < SLICES; i++) {
        const struct gate_bands bands = {
            .band = draw(), .safety_critical_band = draw(), .worse_max = 0.01 * draw()};
        double share = draw() < 0.1 ? NAN : draw();
        const struct gate_agreement slice = {.safety_critical = draw() < 0.5,
                                             .share = share,
                                             .low = isnan(share) ? 0.0 : share * draw(),
                                             .optimistic = draw() < 0.8 ? 0 : 3,
                                             .incumbent = draw() < 0.5 ? NAN : draw()};
        double band = slice.safety_critical ? bands.safety_critical_band : bands.band;
        enum gate_result result = gate_judge(&bands, &slice);
        seen[result]++;
        EXPECT(gate_judge(&bands, &slice) == result);
        bool fit = slice.low >= band && !(slice.safety_critical && slice.optimistic > 0) &&
                   (isnan(share) || isnan(slice.incumbent) ||
                    slice.share >= slice.incumbent - bands.worse_max);
        EXPECT((result == GATE_PASSED) == fit);
        if (result == GATE_NOT_SHOWN) {
            EXPECT(isnan(share) || gate_draws_needed(share, band) > 0);
        }
        if (result == GATE_BELOW) {
            EXPECT_INT(gate_draws_needed(share, band), -1);
        }
    }
    for (int i = 0; i < GATE_RESULT_COUNT; i++) {
        EXPECT(seen[i] > 1000);
    }
}

/* Goal: a shadow passes when enough was shown, in its band, and it is not flagged more often. */
static void shadows_pass_within_their_bands_alone(void)
{
    int64_t seen[GATE_RESULT_COUNT] = {0};
    for (int i = 0; i < SLICES; i++) {
        const struct gate_shadow_bands bands = {
            .jobs = (int64_t)(100 * draw()), .band = draw(), .flagged_worse = 0.1 * draw()};
        const struct gate_shadow shadow = {.pairs = (int64_t)(150 * draw()),
                                           .incomplete = (int64_t)(20 * draw()),
                                           .low = draw(),
                                           .flagged = (int64_t)(20 * draw()),
                                           .flagged_answers = (int64_t)(20 * draw())};
        enum gate_result result = gate_judge_shadow(&bands, &shadow);
        double more = (double)(shadow.flagged - shadow.flagged_answers);
        bool shown = shadow.pairs > 0 && shadow.pairs >= bands.jobs;
        bool healthy =
            more <= bands.flagged_worse * (double)(shadow.pairs + shadow.incomplete) + 1e-9;
        seen[result]++;
        EXPECT((result != GATE_NOT_SHOWN) == shown);
        EXPECT(!shown || (result == GATE_BELOW) == (shadow.low < bands.band));
        EXPECT(result != GATE_PASSED || healthy);
    }
    EXPECT(seen[GATE_PASSED] > 1000 && seen[GATE_WORSE] > 1000 && seen[GATE_OPTIMISTIC] == 0);
}

/* Goal: the plan is the smallest number that does. 45 and 92 draws without a disagreement are what
 * bands of 0.90 and 0.95 take. */
static void the_plan_is_the_least_that_does(void)
{
    EXPECT_INT(gate_draws_needed(1.0, 0.90), 45);
    EXPECT_INT(gate_draws_needed(NAN, 0.95), 92);
    EXPECT_INT(gate_draws_needed(0.95, 0.95), -1);
    for (int i = 0; i < 20000; i++) {
        double band = 0.5 + 0.49 * draw();
        double share = band + 0.005 + (1.0 - band - 0.005) * draw();
        double low = 0.0;
        double high = 0.0;
        int64_t needed = gate_draws_needed(share, band);
        EXPECT(needed > 0);
        rate_interval(share, (double)needed, &low, &high);
        EXPECT(low >= band);
        if (needed > 1) {
            rate_interval(share, (double)(needed - 1), &low, &high);
            EXPECT(low < band);
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(slices_pass_within_their_bands_alone),
                    TEST(shadows_pass_within_their_bands_alone),
                    TEST(the_plan_is_the_least_that_does));
}
