/*
 * Agreement. Method: the join against the double loop that defines it, on shuffled random outcomes;
 * counts against hand-written pairs; rates against naive means; dates against libc's calendar, and
 * days against a count that looks at each day by itself.
 */
#include "base/rng.h"
#include "scheduler/agreement.h"
#include "scheduler/day.h"
#include "tests/harness.h"

#include <math.h>
#include <time.h>

enum { OUTCOMES = 300 };

static struct outcome outcomes[OUTCOMES];
static const struct outcome *scratch[OUTCOMES];
static struct agreement_pair pairs[OUTCOMES];
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    return rng_mix(++state) % below;
}

/* Unique (job, branch) as in a store: students have odd jobs, job 2 j is the audit job of job 2 j
 * - 1.
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

static void audits_are_joined(void)
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

/* Futures of an audited drive are no second opinion, whichever comes first. */
static void futures_are_in_no_pair(void)
{
    for (int first = 0; first < 2; first++) {
        const struct outcome three[] = {
            {.id = 1, .job_id = 1},
            {.id = 3 - first, .job_id = 3 - first, .audit_of = 1, .verdict = VERDICT_FAIL},
            {.id = 2 + first,
             .job_id = 2 + first,
             .audit_of = 1,
             .futures = {.state = FUTURES_DRIVEN, .draws = 1}}};
        EXPECT_INT(agreement_join(three, 3, scratch, pairs), 1);
        EXPECT(pairs[0].student == &three[0] && pairs[0].teacher == &three[1]);
        EXPECT(outcome_is_made(&three[2]));
    }
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
        agreement_add(&sum, &list[i], (int64_t)i + 1, (int64_t)i + 1);
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

/* Pairs of one scenario count once, however many jobs and branches they are of. */
static void a_rate_counts_scenarios_not_pairs(void)
{
    const struct outcome clean = outcome_of(VERDICT_PASS, 0, 0, 4.0);
    const struct outcome crash = outcome_of(VERDICT_FAIL, 2, 3, 0.0);
    struct agreement six = {0};
    for (int i = 0; i < 6; i++) {
        agreement_add(&six, &(struct agreement_pair){&clean, &clean}, 1, 1);
    }
    struct rate_estimate at = rate_estimate(&six.verdict.rate);
    EXPECT(six.pairs == 6 && six.jobs == 1 && six.verdict.pairs == 6);
    EXPECT(at.cases == 1 && at.value == 1 && at.low < 0.21 && at.high == 1);
    for (state = 1; state < 40; state++) {
        struct agreement sum = {0};
        double shares = 0;
        int64_t scenarios = 1 + (int64_t)draw(9);
        int64_t all = 0;
        int64_t jobs = 0;
        for (int64_t s = 0; s < scenarios; s++) {
            int64_t count = 1 + (int64_t)draw(7);
            int64_t agree = 0;
            for (int64_t k = 0; k < count; k++) {
                bool agrees = draw(3) > 0;
                struct outcome student = clean;
                student.job_id = s * 10 + k / 2;
                agree += agrees;
                jobs += k % 2 == 0;
                agreement_add(&sum, &(struct agreement_pair){&student, agrees ? &clean : &crash},
                              s / 2 + 1, s + 1);
            }
            shares += (double)agree / (double)count;
            all += agree;
        }
        at = rate_estimate(&sum.verdict.rate);
        EXPECT_INT(sum.jobs, jobs);
        EXPECT_INT(sum.verdict.pairs, all);
        EXPECT_INT(at.cases, scenarios);
        EXPECT_INT(at.logical, (scenarios + 1) / 2);
        EXPECT_NEAR(at.value, shares / (double)scenarios, 1e-12);
        EXPECT_NEAR(rate_estimate(&sum.at_fault.rate).value, 1.0, 0.0);
    }
}

/* ---- by day ---- */

enum { MS_PER_DAY = 86400000, DAYS_TO_9999 = 2932896 /* 9999-12-31 */ };

static void days_are_those_of_the_calendar(void)
{
    struct error error;
    char text[DAY_MOMENT_BYTES];
    char expected[64];
    for (int round = 0; round < 20000; round++) {
        int64_t at_ms = round == 0   ? 1
                        : round == 1 ? (int64_t)DAYS_TO_9999 * MS_PER_DAY + MS_PER_DAY - 1
                                     : 1 + (int64_t)draw((uint64_t)DAYS_TO_9999 * MS_PER_DAY);
        time_t at_s = (time_t)(at_ms / 1000);
        struct tm tm;
        int64_t day = 0;
        EXPECT(gmtime_r(&at_s, &tm) != NULL);
        EXPECT_INT(day_of_ms(at_ms), at_ms / MS_PER_DAY);
        strftime(expected, sizeof expected, "%Y-%m-%d %H:%M:%S UTC", &tm);
        EXPECT_TEXT(day_moment_text(at_ms, text), expected);
        expected[10] = '\0';
        EXPECT_TEXT(day_text(day_of_ms(at_ms), text), expected);
        EXPECT_OK(day_parse(text, &day, &error), error);
        EXPECT_INT(day, at_ms / MS_PER_DAY);
    }
    EXPECT_TEXT(day_moment_text(0, text), "not known");
    EXPECT_TEXT(day_moment_text(INT64_MAX, text), "not known");
    EXPECT_TEXT(day_moment_text(-1, text), "not known");
    EXPECT_INT(day_of_ms(-1), -1);
    EXPECT_TEXT(day_text(DAYS_TO_9999 + 1, text), "not known");
    static const char *const none[] = {"",           "2026-02-30",  "2026-13-01", "1969-12-31",
                                       "2026-11-7",  "2026-11-27 ", "26-11-27",   "2026-11-00",
                                       "2100-02-29", "2026/11/27",  "+026-11-27", "2026-11-2x"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        int64_t day = 7;
        EXPECT_INT(day_parse(none[i], &day, &error), STATUS_BAD_INPUT);
        EXPECT_INT(day, 7);
    }
}

enum { DAY_PAIRS = 3000 };

static void days_are_counted_apart(void)
{
    static struct day_pair day_pairs[DAY_PAIRS];
    static int64_t day_scratch[DAY_PAIRS];
    static struct day_table table;
    for (uint64_t seed = 0; seed < 40; seed++) {
        state = seed * 100003;
        int64_t span = 1 + (int64_t)draw(seed % 2 == 0 ? 60 : 400);
        int64_t before = seed % 3 == 0 ? 20000 + (int64_t)draw((uint64_t)span) : DAY_NEVER;
        uint32_t count = (uint32_t)draw(DAY_PAIRS);
        for (uint32_t i = 0; i < count; i++) {
            int64_t day = 20000 + (int64_t)draw((uint64_t)span);
            bool agrees = draw(day % 7 == 0 ? 2 : 20) > 0;
            day_pairs[i] = (struct day_pair){.day = draw(30) == 0 ? DAY_NOT_KNOWN : day,
                                             .logical_key = 1 + i / 8,
                                             .case_key = 1 + i / 4,
                                             .agrees = agrees,
                                             .optimistic = !agrees && draw(2) == 0};
        }
        day_table_make(day_pairs, count, before, day_scratch, &table);
        uint32_t found = 0;
        int64_t older = 0;
        int64_t not_known = 0;
        for (int64_t day = 20000 + span; day >= 20000; day--) {
            struct rate rate = {0};
            struct day_agreement sum = {.day = day};
            for (uint32_t i = 0; i < count; i++) {
                not_known += day == 20000 && day_pairs[i].day == DAY_NOT_KNOWN;
                if (day_pairs[i].day == day) {
                    sum.pairs++;
                    sum.agree += day_pairs[i].agrees;
                    sum.optimistic += day_pairs[i].optimistic;
                    rate_add(&rate, day_pairs[i].logical_key, day_pairs[i].case_key,
                             day_pairs[i].agrees);
                }
            }
            if (day >= before || sum.pairs == 0) {
                continue;
            }
            if (found == DAY_MAX) {
                older += sum.pairs;
                continue;
            }
            const struct day_agreement *row = &table.days[found++];
            struct rate_estimate expected = rate_estimate(&rate);
            EXPECT(found <= table.count);
            EXPECT(row->day == day && row->pairs == sum.pairs && row->agree == sum.agree &&
                   row->optimistic == sum.optimistic);
            EXPECT(row->rate.value == expected.value && row->rate.low == expected.low &&
                   row->rate.high == expected.high);
        }
        EXPECT_INT(table.count, found);
        EXPECT_INT(table.older, older);
        EXPECT_INT(table.not_known, not_known);
    }
}

/* A student that begins to be wrong on a known day: that day and no other before it shows it. */
static void a_change_shows_on_its_day(void)
{
    static struct day_pair day_pairs[DAY_PAIRS];
    static int64_t day_scratch[DAY_PAIRS];
    static struct day_table table;
    enum { DAYS = 30, CHANGE = 20000 + 17 };
    state = 5;
    for (uint32_t i = 0; i < DAY_PAIRS; i++) {
        int64_t day = 20000 + (int64_t)draw(DAYS);
        bool agrees = draw(1000) >= (day >= CHANGE ? 400 : 5);
        day_pairs[i] = (struct day_pair){day, 1 + i, 1 + i, agrees, !agrees};
    }
    day_table_make(day_pairs, DAY_PAIRS, DAY_NEVER, day_scratch, &table);
    EXPECT_INT(table.count, DAYS);
    for (uint32_t i = 0; i < table.count; i++) {
        const struct day_agreement *row = &table.days[i];
        if (row->day >= CHANGE) {
            EXPECT(row->rate.high < 0.9 && row->optimistic > 10);
        } else {
            EXPECT(row->rate.value > 0.95 && row->optimistic <= 4);
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(audits_are_joined), TEST(futures_are_in_no_pair), TEST(pairs_are_counted),
                    TEST(a_rate_counts_scenarios_not_pairs), TEST(days_are_those_of_the_calendar),
                    TEST(days_are_counted_apart), TEST(a_change_shows_on_its_day));
}
