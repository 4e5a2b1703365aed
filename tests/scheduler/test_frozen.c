/*
 * Tests of frozen seeds' arithmetic. Method: Frechet's distance against its closed form where
 * covariances commute, and its laws on random ones; horizons against the rule said otherwise.
 */
#include "scheduler/frozen.h"

#include "base/rng.h"
#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { CASES = 300, HORIZONS = 100000 };

static uint64_t state;

static double draw(void)
{
    state = rng_mix(state + 1);
    return (double)(state >> 11) * 0x1p-53;
}

/* Features that depend on one another: x = A u + shift. */
static void fill(struct frozen_features *features, double a[FROZEN_FEATURES][FROZEN_FEATURES],
                 const double *shift, int count)
{
    memset(features, 0, sizeof *features);
    for (int n = 0; n < count; n++) {
        double value[FROZEN_FEATURES];
        double u[FROZEN_FEATURES];
        for (int i = 0; i < FROZEN_FEATURES; i++) {
            u[i] = draw() - 0.5;
        }
        for (int i = 0; i < FROZEN_FEATURES; i++) {
            value[i] = shift[i];
            for (int j = 0; j < FROZEN_FEATURES; j++) {
                value[i] += a[i][j] * u[j];
            }
        }
        frozen_features_add(features, value);
    }
}

static void draw_matrix(double a[FROZEN_FEATURES][FROZEN_FEATURES])
{
    for (int i = 0; i < FROZEN_FEATURES; i++) {
        for (int j = 0; j < FROZEN_FEATURES; j++) {
            a[i][j] = 4.0 * draw() - 2.0;
        }
    }
}

/* Goal: independent features that are shifted by s and stretched by k spreads lie s^2 + (k - 1)^2
 * apart each, in spreads of the recorded ones; so the distance is in units that do not matter. */
static void distance_of_shift_and_stretch_is_known(void)
{
    static const double unit[FROZEN_FEATURES] = {1.0, 1e-3, 50.0, 1.0, 7.0, 0.1};
    struct frozen_features recorded = {0};
    struct frozen_features generated = {0};
    double shift = 0.7;
    double stretch = 1.5;
    for (int n = 0; n < 1 << FROZEN_FEATURES; n++) { /* all corners: uncorrelated, spread 1 */
        double a[FROZEN_FEATURES];
        double b[FROZEN_FEATURES];
        for (int i = 0; i < FROZEN_FEATURES; i++) {
            double corner = n >> i & 1 ? 1.0 : -1.0;
            a[i] = unit[i] * corner;
            b[i] = unit[i] * (stretch * corner + shift);
        }
        frozen_features_add(&recorded, a);
        frozen_features_add(&generated, b);
    }
    double expected = FROZEN_FEATURES * (shift * shift + (stretch - 1.0) * (stretch - 1.0));
    EXPECT_NEAR(frozen_frechet(&generated, &recorded), expected, 1e-9);
    EXPECT_NEAR(frozen_frechet(&recorded, &recorded), 0.0, 1e-9);
}

/* Goal: the laws of a distance hold for any covariances, of less than full rank too: none to
 * itself, that of the means alone where only they differ, never below that of the means. */
static void distance_keeps_its_laws(void)
{
    for (int c = 0; c < CASES; c++) {
        double a[FROZEN_FEATURES][FROZEN_FEATURES];
        double b[FROZEN_FEATURES][FROZEN_FEATURES];
        double zero[FROZEN_FEATURES] = {0};
        double shift[FROZEN_FEATURES];
        struct frozen_features one;
        struct frozen_features moved;
        struct frozen_features other;
        draw_matrix(a);
        draw_matrix(b);
        if (c % 3 == 0) {
            memcpy(a[5], a[2], sizeof a[5]); /* two features are one */
        }
        for (int i = 0; i < FROZEN_FEATURES; i++) {
            shift[i] = 3.0 * draw();
        }
        uint64_t seed = state;
        fill(&one, a, zero, 100);
        state = seed;
        fill(&moved, a, shift, 100);
        fill(&other, b, shift, 100);
        EXPECT_NEAR(frozen_frechet(&one, &one), 0.0, 1e-6);
        double means = 0.0;
        for (int i = 0; i < FROZEN_FEATURES; i++) {
            double middle = one.sum[i] / 100.0;
            double variance = one.product[i][i] / 100.0 - middle * middle;
            means += shift[i] * shift[i] / variance;
        }
        EXPECT_NEAR(frozen_frechet(&moved, &one) / means, 1.0, 1e-6);
        EXPECT(frozen_frechet(&other, &one) > 1e-3);
        EXPECT(frozen_frechet(&other, &one) == frozen_frechet(&other, &one));
    }
    struct frozen_features few = {.count = FROZEN_FRECHET_LEAST - 1};
    EXPECT(isnan(frozen_frechet(&few, &few)));
}

/* Goal: a model is trusted up to the end of the last span before the first that falls short, and
 * for nothing that was not measured. */
static void horizons_end_before_the_first_shortfall(void)
{
    const struct frozen_bands bands = frozen_bands_default();
    int64_t seen[FROZEN_SPANS + 1] = {0};
    for (int c = 0; c < HORIZONS; c++) {
        struct frozen_mean spans[FROZEN_SPANS][FROZEN_MEASURES] = {0};
        uint32_t measured = (uint32_t)(draw() * (FROZEN_SPANS + 1));
        uint32_t shortfall = (uint32_t)(draw() * (FROZEN_SPANS + 1));
        for (uint32_t s = 0; s < measured; s++) {
            for (int i = 0; i < FROZEN_FRECHET; i++) {
                spans[s][i] = (struct frozen_mean){.sum = 9.99, .count = 10};
            }
            spans[s][FROZEN_VIEWS].sum = draw(); /* no least is asked of it */
        }
        if (shortfall < measured) {
            int which = (int)(draw() * 4.0);
            spans[shortfall][which].sum = 10.0 * bands.least[which] - 0.01;
        }
        uint32_t good = shortfall < measured ? shortfall : measured;
        uint32_t driven = 1 + (uint32_t)(draw() * 1200.0);
        uint32_t end = good > 0 ? frozen_span_ticks[good - 1] : 0;
        seen[good]++;
        EXPECT_INT(frozen_horizon(&bands, driven, spans), driven < end ? driven : end);
    }
    for (int i = 0; i <= FROZEN_SPANS; i++) {
        EXPECT(seen[i] > 500);
    }
    for (uint32_t tick = 1; tick < 2000; tick++) {
        uint32_t span = frozen_span(tick);
        EXPECT(tick <= frozen_span_ticks[span] &&
               (span == 0 || tick > frozen_span_ticks[span - 1]));
    }
    EXPECT(frozen_worse(&bands, 0.90, 0.91) && !frozen_worse(&bands, 0.906, 0.91));
    EXPECT(!frozen_worse(&bands, NAN, 0.91) && !frozen_worse(&bands, 0.1, NAN));
}

int main(void)
{
    return TEST_RUN(TEST(distance_of_shift_and_stretch_is_known), TEST(distance_keeps_its_laws),
                    TEST(horizons_end_before_the_first_shortfall));
}
