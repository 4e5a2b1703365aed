/*
 * Agreement. Method: the join against the double loop that defines it, on shuffled random outcomes;
 * counts against hand-written pairs; Wilson intervals against the two roots of the equation that
 * they solve, and against published values.
 */
#include "base/rng.h"
#include "scheduler/agreement.h"
#include "tests/harness.h"

#include <math.h>

enum { OUTCOMES = 300 };

static struct outcome outcomes[OUTCOMES];
static const struct outcome *scratch[OUTCOMES];
static struct agreement_pair pairs[OUTCOMES];
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    return rng_mix(++state) % below;
}

/* Unique (job, branch) as in a store: students have odd jobs, job 2 j is the twin of job 2 j - 1.
 */
static uint32_t make_outcomes(void)
{
    uint32_t count = 0;
    for (int64_t job = 1; job <= 60; job++) {
        for (int branch = 0; branch < 3 && count < OUTCOMES; branch++) {
            if (draw(4) == 0) {
                continue; /* not there (yet) */
            }
            struct outcome *outcome = &outcomes[count];
            memset(outcome, 0, sizeof *outcome);
            outcome->id = ++count;
            outcome->job_id = job;
            outcome->audit_of = job % 2 == 0 && job % 5 != 0 ? job - 1 : 0;
            snprintf(outcome->branch_id, sizeof outcome->branch_id, "%.*s", branch, "bb");
        }
    }
    for (uint32_t i = count; i > 1; i--) {
        uint32_t k = (uint32_t)draw(i);
        struct outcome swap = outcomes[i - 1];
        outcomes[i - 1] = outcomes[k];
        outcomes[k] = swap;
    }
    return count;
}

static void twins_are_joined(void)
{
    for (state = 0; state < 40000; state += 997) {
        uint32_t count = make_outcomes();
        uint32_t found = agreement_join(outcomes, count, scratch, pairs);
        uint32_t expected = 0;
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t k = 0; k < count; k++) {
                if (outcomes[k].audit_of == outcomes[i].job_id && outcomes[i].audit_of == 0 &&
                    strcmp(outcomes[i].branch_id, outcomes[k].branch_id) == 0) {
                    bool there = false;
                    for (uint32_t p = 0; p < found; p++) {
                        there = there || (pairs[p].student == &outcomes[i] &&
                                          pairs[p].teacher == &outcomes[k]);
                    }
                    EXPECT(there);
                    expected++;
                }
            }
        }
        EXPECT_INT(found, expected);
        EXPECT(found > 5);
        for (uint32_t p = 1; p < found; p++) {
            EXPECT(pairs[p - 1].student->job_id <= pairs[p].student->job_id);
        }
    }
    EXPECT_INT(agreement_join(outcomes, 0, scratch, pairs), 0);
    EXPECT_INT(agreement_join(outcomes, 1, scratch, pairs), 0);
}

static struct outcome outcome_of(enum verdict verdict, uint32_t collisions, uint32_t interventions,
                                 double distance_m)
{
    struct outcome outcome = {.verdict = verdict};
    outcome.metrics.collision_count = collisions;
    outcome.metrics.intervention_count = interventions;
    outcome.metrics.min_distance_m = distance_m;
    outcome.metrics.progress_m = 100 + distance_m;
    return outcome;
}

static void pairs_are_counted(void)
{
    const struct outcome clean = outcome_of(VERDICT_PASS, 0, 0, 4.0);
    const struct outcome crash = outcome_of(VERDICT_FAIL, 2, 3, 0.0);
    const struct outcome alone = outcome_of(VERDICT_PASS, 0, 0, INFINITY);
    const struct outcome flagged = outcome_of(VERDICT_FLAGGED, 0, 0, 1.0);
    const struct outcome broken = outcome_of(VERDICT_PLANNER_ERROR, 0, 0, 1.0);
    const struct agreement_pair list[] = {
        {&clean, &clean}, {&crash, &crash},   {&clean, &crash},  {&crash, &clean},
        {&alone, &clean}, {&clean, &flagged}, {&broken, &clean},
    };
    struct agreement sum = {0};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        agreement_add(&sum, &list[i], (int64_t)i);
    }
    EXPECT_INT(sum.pairs, 5);
    EXPECT_INT(sum.incomplete, 2);
    EXPECT_INT(sum.verdict.pairs, 3);
    EXPECT_INT(sum.collision.pairs, 3);
    EXPECT_INT(sum.interventions.pairs, 3);
    EXPECT_INT(sum.at_fault.pairs, 5);
    EXPECT_INT(sum.student_only_passes, 1);
    EXPECT_INT(sum.teacher_only_passes, 1);
    EXPECT_INT(sum.distance_pairs, 4);
    EXPECT(sum.distance_difference_sum_m == 0.0);
    EXPECT(sum.distance_difference_abs_sum_m == 8.0);
    EXPECT(sum.intervention_difference_sum == 0.0);
    EXPECT(sum.progress_difference_abs_sum_m == 8.0);
}

/* Pairs of one job are one draw: the interval is that of as many jobs, however many pairs they
 * have. Against the mean of shares, summed naively. */
static void an_interval_counts_jobs_not_pairs(void)
{
    const struct outcome clean = outcome_of(VERDICT_PASS, 0, 0, 4.0);
    const struct outcome crash = outcome_of(VERDICT_FAIL, 2, 3, 0.0);
    const struct agreement_pair same = {&clean, &clean};
    const struct agreement_pair other = {&clean, &crash};
    struct agreement six = {0};
    EXPECT(isnan(agreement_rate(&six, &six.verdict)));
    struct agreement_interval in = agreement_interval95(&six, &six.verdict);
    EXPECT(in.low == 0 && in.high == 1);
    for (int i = 0; i < 6; i++) {
        agreement_add(&six, &same, 0);
    }
    in = agreement_interval95(&six, &six.verdict);
    EXPECT(six.pairs == 6 && six.jobs == 1 && six.verdict.pairs == 6);
    EXPECT_NEAR(in.low, agreement_wilson(1, 1, AGREEMENT_Z95).low, 1e-12);
    EXPECT(in.low < 0.21 && in.high == 1);
    for (state = 1; state < 40; state++) {
        struct agreement sum = {0};
        double shares = 0;
        int64_t jobs = 1 + (int64_t)draw(9);
        int64_t all = 0;
        for (int64_t job = 0; job < jobs; job++) {
            int64_t count = 1 + (int64_t)draw(7);
            int64_t agree = 0;
            for (int64_t k = 0; k < count; k++) {
                bool agrees = draw(3) > 0;
                agree += agrees;
                agreement_add(&sum, agrees ? &same : &other, job);
            }
            shares += (double)agree / (double)count;
            all += agree;
        }
        EXPECT_INT(sum.jobs, jobs);
        EXPECT_INT(sum.verdict.pairs, all);
        EXPECT_NEAR(agreement_rate(&sum, &sum.verdict), shares / (double)jobs, 1e-12);
        EXPECT_NEAR(agreement_rate(&sum, &sum.collision), shares / (double)jobs, 1e-12);
        EXPECT_NEAR(agreement_rate(&sum, &sum.at_fault), 1.0, 0.0);
        in = agreement_interval95(&sum, &sum.verdict);
        struct agreement_interval naive = agreement_wilson(shares, (double)jobs, AGREEMENT_Z95);
        EXPECT_NEAR(in.low, naive.low, 1e-12);
        EXPECT_NEAR(in.high, naive.high, 1e-12);
    }
}

/* The bounds are the values of p at which |hits/n - p| is z standard deviations. */
static void intervals_solve_their_equation(void)
{
    for (int64_t n = 1; n < 200; n += 7) {
        for (int64_t hits = 0; hits <= n; hits++) {
            struct agreement_interval in = agreement_wilson((double)hits, (double)n, AGREEMENT_Z95);
            double p = (double)hits / (double)n;
            double ends[] = {in.low, in.high};
            EXPECT(in.low >= 0 && in.low <= p && p <= in.high && in.high <= 1);
            for (int e = 0; e < 2; e++) {
                double q = ends[e];
                double deviation = fabs(p - q);
                double sigma = sqrt(q * (1 - q) / (double)n);
                EXPECT(fabs(deviation - AGREEMENT_Z95 * sigma) < 1e-9);
            }
            struct agreement_interval other =
                agreement_wilson((double)(n - hits), (double)n, AGREEMENT_Z95);
            EXPECT(fabs(in.low - (1 - other.high)) < 1e-12);
        }
    }
    /* Newcombe, Statistics in Medicine 17 (1998), table I, method 3. */
    struct agreement_interval in = agreement_wilson(81, 263, AGREEMENT_Z95);
    EXPECT(fabs(in.low - 0.2553) < 5e-5 && fabs(in.high - 0.3662) < 5e-5);
    in = agreement_wilson(15, 148, AGREEMENT_Z95);
    EXPECT(fabs(in.low - 0.0624) < 5e-5 && fabs(in.high - 0.1605) < 5e-5);
    in = agreement_wilson(0, 0, AGREEMENT_Z95);
    EXPECT(in.low == 0 && in.high == 1);
}

int main(void)
{
    return TEST_RUN(TEST(twins_are_joined), TEST(pairs_are_counted),
                    TEST(an_interval_counts_jobs_not_pairs), TEST(intervals_solve_their_equation));
}
