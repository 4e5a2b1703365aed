/*
 * Tests of the gate. Method: random slices against the rules said otherwise, planned draws against
 * the evidence itself, and simulated evaluations that are looked at while draws come.
 */
#include "scheduler/gate.h"

#include "base/rng.h"
#include "tests/harness.h"

#include <math.h>

enum { SLICES = 4000 };

static uint64_t state;

static double draw(void)
{
    state = rng_mix(state + 1);
    return (double)(state >> 11) * 0x1p-53;
}

static struct gate_measure draw_measure(double band)
{
    struct looks looks = {.ones = (int64_t)(120 * draw()),
                          .zeros = draw() < 0.5 ? 0 : (int64_t)(12 * draw())};
    looks.ones = draw() < 0.1 ? 0 : looks.ones;
    return gate_measure(&looks, band);
}

/* Goal: nothing passes that a reader of the rules would refuse, and what is asked of one property
 * is asked of it alone. */
static void slices_pass_within_their_bands_alone(void)
{
    int64_t seen[GATE_RESULT_COUNT] = {0};
    int64_t about[GATE_PROPERTIES] = {0};
    for (int i = 0; i < SLICES; i++) {
        struct gate_bands bands = {.band = 0.3 + 0.6 * draw(),
                                   .safety_critical_band = 0.3 + 0.6 * draw(),
                                   .property = {[GATE_COLLISION] = draw() < 0.5 ? 0.0 : draw()},
                                   .worse_max = 0.01 * draw(),
                                   .below = draw() < 0.5 ? LOOKS_EVIDENCE : 1000.0};
        struct gate_agreement slice = {.safety_critical = draw() < 0.5,
                                       .optimistic = draw() < 0.8 ? 0 : 3,
                                       .incumbent = draw() < 0.5 ? NAN : draw()};
        enum gate_property property;
        bool shown = true;
        bool below = false;
        for (int p = 0; p < GATE_PROPERTIES; p++) {
            double band = gate_band(&bands, (enum gate_property)p, slice.safety_critical);
            slice.measure[p] = draw_measure(band);
            bool asked = p == GATE_VERDICT || (p == GATE_COLLISION && band > 0);
            shown = shown && (!asked || slice.measure[p].above >= log(LOOKS_EVIDENCE));
            below = below || (asked && slice.measure[p].below >= log(bands.below));
        }
        enum gate_result result = gate_judge(&bands, &slice, &property);
        double value = slice.measure[GATE_VERDICT].value;
        bool worse = value < slice.incumbent - bands.worse_max;
        bool optimistic = slice.safety_critical && slice.optimistic > 0;
        seen[result]++;
        about[property]++;
        EXPECT((result == GATE_PASSED) == (shown && !below && !worse && !optimistic));
        EXPECT((result == GATE_BELOW) == (below && !optimistic));
        EXPECT((result == GATE_WORSE) == (worse && !below && !optimistic));
    }
    for (int i = 0; i < GATE_RESULT_COUNT; i++) {
        EXPECT(seen[i] > SLICES / 1000);
    }
    EXPECT(about[GATE_COLLISION] > SLICES / 1000 && about[GATE_COMFORT] == 0);
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
    EXPECT(seen[GATE_PASSED] > SLICES / 1000 && seen[GATE_WORSE] > SLICES / 1000);
    EXPECT(seen[GATE_OPTIMISTIC] == 0);
}

/* Goal: the plan is the smallest number that does: 43 and 88 draws without a disagreement are what
 * bands of 0.90 and 0.95 take. */
static void the_plan_is_the_least_that_does(void)
{
    EXPECT_INT(looks_needed(1.0, 0.90), 43);
    EXPECT_INT(looks_needed(NAN, 0.95), 88);
    EXPECT_INT(looks_needed(0.95, 0.95), -1);
    EXPECT_INT(looks_needed(0.5, 0.0), 1);
    for (int64_t n = 1; n < 300; n++) {
        const struct looks looks = {.ones = n};
        EXPECT((looks_above(&looks, 0.90) >= log(LOOKS_EVIDENCE)) == (n >= 43));
        EXPECT(looks_low(&looks) < 1.0);
    }
}

/* Goal: evidence takes parts of draws for what they are: half an agreement is worth less than one
 * and more than none, in both directions; nothing shows nothing. */
static void parts_of_draws_count(void)
{
    for (int i = 0; i < 500; i++) {
        double part = 0.01 + 0.98 * draw();
        double band = 0.05 + 0.9 * draw();
        struct looks looks = {.ones = (int64_t)(50 * draw()), .zeros = (int64_t)(5 * draw())};
        struct looks more = looks;
        struct looks less = looks;
        more.ones++;
        less.zeros++;
        looks.parts = &part;
        looks.part_count = 1;
        EXPECT(looks_draws(&looks) == looks_draws(&more));
        EXPECT(looks_above(&less, band) < looks_above(&looks, band));
        EXPECT(looks_above(&looks, band) < looks_above(&more, band));
        EXPECT(looks_below(&more, band) < looks_below(&looks, band));
        EXPECT(looks_below(&looks, band) < looks_below(&less, band));
        double low = looks_low(&looks);
        EXPECT(low <= looks_mean(&looks));
        EXPECT(low == 0.0 || looks_above(&looks, low) >= log(LOOKS_EVIDENCE));
    }
    EXPECT(isnan(looks_mean(&(struct looks){.ones = 0})));
    EXPECT(looks_low(&(struct looks){.ones = 0}) == 0.0);
    EXPECT(fabs(looks_above(&(struct looks){.ones = 0}, 0.9)) < 1e-9);
}

enum { DRAWS = 145, EVALUATIONS = 1000, IN_PARTS = 60, EACH = 3, SEEDS = 4 };

/* Whether it is enough, above or below; known already of draws that are all whole. */
static bool shows(const struct looks *looks, double band, bool above)
{
    static double known[2][2][DRAWS + 1][DRAWS + 1]; /* 0: not yet */
    double *at = &known[band > 0.92][above][looks->ones][looks->zeros];
    double evidence = looks->part_count == 0 ? *at : 0.0;
    if (evidence == 0.0) {
        evidence = (above ? looks_above : looks_below)(looks, band);
        *at = looks->part_count == 0 ? evidence : *at;
    }
    return evidence >= log(LOOKS_EVIDENCE);
}

/* One slice that somebody looks at after every draw, and after every seed of a scenario whose
 * answers depend on it (`parts`): whether it is shown to be above before it is shown to be below.
 */
static bool show(double share, double band, bool parts)
{
    double part[DRAWS];
    struct looks looks = {.parts = part};
    for (int n = 0; n < DRAWS; n++) {
        if (!parts || draw() < 0.7) {
            bool one = draw() < share;
            looks.ones += one;
            looks.zeros += !one;
        } else {
            double of = share + (draw() - 0.5) * 2 * (1 - share);
            double agree = 0.0;
            looks.part_count++;
            for (int seed = 1; seed <= SEEDS; seed++) {
                agree += draw() < of;
                part[looks.part_count - 1] = agree / seed;
                if (shows(&looks, band, true)) {
                    return true;
                }
            }
        }
        if (shows(&looks, band, false)) {
            return false;
        }
        if (shows(&looks, band, true)) {
            return true;
        }
    }
    return false;
}

/* Share of evaluations, of some slices each, in which all are shown. */
static double passes(const double share[EACH], double band, bool parts)
{
    const int evaluations = parts ? IN_PARTS : EVALUATIONS;
    int64_t passed = 0;
    state = 7;
    for (int i = 0; i < evaluations; i++) {
        bool all = true;
        for (int s = 0; s < EACH && all; s++) {
            all = show(share[s], band, parts);
        }
        passed += all;
    }
    return (double)passed / evaluations;
}

/* Goal: of 1,000 evaluations (in parts 60) with a look after each draw at most 5% pass wrongly,
 * where every slice or one of them is just not above its band; and so many pass as the table says.
 */
static void looks_do_not_wear_out(void)
{
    for (int i = 0; i < 2; i++) {
        double band = i == 0 ? 0.90 : 0.95;
        for (int parts = 0; parts < 2; parts++) {
            const double alone[EACH] = {1.0, band, 1.0};
            const double every[EACH] = {band, band, band};
            double wrong = passes(alone, band, parts != 0);
            printf("# band %.2f%s: %.1f%% pass wrongly\n", band, parts != 0 ? ", parts" : "",
                   100 * wrong);
            EXPECT(wrong <= 0.05);
            EXPECT(passes(every, band, parts != 0) <= 0.01);
        }
        for (int k = 0; k < 3; k++) {
            const double shares[] = {0.97, 0.99, 0.995};
            const double good[EACH] = {1.0, shares[k], 1.0};
            double found = passes(good, band, false);
            double said = looks_power(shares[k], band, DRAWS);
            printf("# band %.2f, true %.3f: %.1f%% pass, %.1f%% by the table\n", band, shares[k],
                   100 * found, 100 * said);
            EXPECT(fabs(found - said) < 0.04);
        }
    }
    EXPECT(fabs(looks_power(0.97, 0.90, 145) - 0.823) < 0.001);
    EXPECT(fabs(looks_power(0.99, 0.95, 145) - 0.644) < 0.001);
    EXPECT(looks_power(1.0, 0.90, 42) < 1e-9 && looks_power(1.0, 0.90, 43) > 1 - 1e-9);
}

int main(void)
{
    return TEST_RUN(TEST(slices_pass_within_their_bands_alone),
                    TEST(shadows_pass_within_their_bands_alone),
                    TEST(the_plan_is_the_least_that_does), TEST(parts_of_draws_count),
                    TEST(looks_do_not_wear_out));
}
