/*
 * Trust: monitors and what they freeze. Goals: a monitor errs no more often than it says, sounds
 * soon, and decides by facts alone; the slice that is sick is frozen, none that is healthy.
 * Methods: a million random facts against the definition; healthy sequences counted; simulated
 * weeks of audited jobs, healthy and with a planted damage in a crossed slice.
 */
#include "base/rng.h"
#include "scheduler/trust.h"
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state = 1;

static double draw(void)
{
    return (double)(rng_mix(++state) >> 11) * 0x1p-53;
}

/* Random policies and facts: the sum is the definition's, never negative; what sounds goes on
 * sounding and keeps its evidence; it sounds by trend exactly when the sum passes its threshold
 * first; the same facts give the same state; a good fact never raises the sum. */
static void a_million_random_facts_follow_the_definition(void)
{
    for (int round = 0; round < 2000; round++) {
        struct trust_monitor a = {0};
        struct trust_monitor b = {0};
        const struct trust_shift shift = {0.001 + 0.05 * draw(), 0.1 + 0.5 * draw()};
        double jobs = 100.0 + 1e5 * draw();
        double band = draw() < 0.5 ? 0.0 : 0.5 + 0.49 * draw();
        double rate = draw() * draw();
        double sum = 0.0;
        for (int64_t i = 1; i <= 500; i++) {
            bool bad = draw() < rate;
            struct trust_monitor before = a;
            trust_monitor_add(&a, &(struct trust_seen){0}, &shift, jobs, band, bad, i, 7 * i);
            trust_monitor_add(&b, &(struct trust_seen){0}, &shift, jobs, band, bad, i, 7 * i);
            sum = fmax(0.0, sum + (bad ? log(shift.shifted / shift.healthy)
                                       : log((1 - shift.shifted) / (1 - shift.healthy))));
            EXPECT_NEAR(a.sum, sum, 1e-9);
            EXPECT(memcmp(&a, &b, sizeof a) == 0);
            EXPECT(bad || a.sum <= before.sum);
            EXPECT(a.jobs == i && a.bad == before.bad + bad);
            if (before.alarm != TRUST_QUIET) {
                EXPECT(a.alarm == before.alarm && a.alarm_jobs == before.alarm_jobs &&
                       a.alarm_outcome == before.alarm_outcome &&
                       a.alarm_at_ms == before.alarm_at_ms);
            } else {
                EXPECT_INT(a.alarm == TRUST_TREND, sum >= log(jobs));
                EXPECT(a.alarm == TRUST_QUIET ||
                       (a.alarm_jobs == i && a.alarm_outcome == i && a.alarm_at_ms == 7 * i));
                EXPECT(a.alarm != TRUST_BAND || (band > 0.0 && (double)(i - a.bad) / i < band));
            }
        }
    }
}

/* At the healthy rate itself, with the default policy's bands: fewer than one alarm in as many jobs
 * as the policy says, over two million jobs. */
static void healthy_jobs_sound_seldom(void)
{
    const struct trust_policy policy = trust_policy_default();
    enum { JOBS = 2000000 };
    struct trust_monitor monitor = {0};
    int alarms = 0;
    for (int64_t i = 1; i <= JOBS; i++) {
        trust_monitor_add(&monitor, &(struct trust_seen){0}, &policy.disagreement,
                          policy.false_alarm_jobs, policy.safety_critical_band,
                          draw() < policy.disagreement.healthy, i, 0);
        if (monitor.alarm != TRUST_QUIET) {
            alarms++;
            memset(&monitor, 0, sizeof monitor);
        }
    }
    printf("# %d alarms in %d healthy jobs\n", alarms, JOBS);
    EXPECT(alarms <= JOBS / policy.false_alarm_jobs);
}

/* Jobs alike count once: a verdict that comes three, four and six times in a row, and scenarios
 * that a suite of 145 drives again and again. */
static void jobs_of_one_scenario_count_once(void)
{
    const struct trust_policy policy = trust_policy_default();
    enum { JOBS = 1000000, SUITE = 145 };
    static const int alike[] = {3, 4, 6};
    for (size_t k = 0; k < sizeof alike / sizeof *alike; k++) {
        struct trust_monitor monitor = {0};
        int alarms = 0;
        for (int64_t i = 1; i <= JOBS; i += alike[k]) {
            struct trust_seen seen = {0};
            bool bad = draw() < policy.disagreement.healthy;
            for (int j = 0; j < alike[k]; j++) {
                trust_monitor_add(&monitor, &seen, &policy.disagreement, policy.false_alarm_jobs,
                                  policy.band, bad, i + j, 0);
            }
            if (monitor.alarm != TRUST_QUIET) {
                alarms++;
                memset(&monitor, 0, sizeof monitor);
            }
        }
        printf("# %d alike: %d alarms in %d healthy jobs\n", alike[k], alarms, JOBS);
        EXPECT(alarms <= JOBS / policy.false_alarm_jobs);
    }
    struct trust_seen seen[SUITE] = {{0}};
    struct trust_monitor monitor = {0};
    for (int64_t i = 0; i < 100 * SUITE; i++) { /* one scenario disagrees always */
        trust_monitor_add(&monitor, &seen[i % SUITE], &policy.disagreement, policy.false_alarm_jobs,
                          policy.band, i % SUITE == 7, i + 1, 0);
    }
    EXPECT(monitor.alarm == TRUST_QUIET && monitor.bad_scenarios == 1 && monitor.bad == 100);
    EXPECT_INT(monitor.scenarios, SUITE);
    for (int64_t i = 0; i < SUITE; i++) { /* then one in ten */
        trust_monitor_add(&monitor, &seen[i], &policy.disagreement, policy.false_alarm_jobs,
                          policy.band, i % 10 == 7, 100 * SUITE + i + 1, 0);
    }
    EXPECT(monitor.alarm == TRUST_TREND && monitor.bad_scenarios == 14);
}

/* Mean number of jobs until a damage is seen. */
static double delay_of(double rate)
{
    const struct trust_policy policy = trust_policy_default();
    int64_t sum = 0;
    for (int round = 0; round < 400; round++) {
        struct trust_monitor monitor = {0};
        while (monitor.alarm == TRUST_QUIET) {
            trust_monitor_add(&monitor, &(struct trust_seen){0}, &policy.disagreement,
                              policy.false_alarm_jobs, policy.band, draw() < rate, monitor.jobs + 1,
                              0);
        }
        sum += monitor.jobs;
    }
    return (double)sum / 400;
}

static void damage_sounds_soon(void)
{
    static const struct {
        double rate;
        double jobs_max; /* docs/trust.md */
    } rows[] = {{1.0, 7}, {0.5, 14}, {0.1, 100}, {0.05, 260}, {0.03, 900}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double jobs = delay_of(rows[i].rate);
        printf("# %3.0f%% disagree: %.0f audited jobs on average\n", 100 * rows[i].rate, jobs);
        EXPECT(jobs <= rows[i].jobs_max);
    }
}

/* ---- simulated weeks ---- */

enum { WEEK_JOBS = 600, SLICES_MAX = 32 };

static char values[WEEK_JOBS][SLICE_KIND_COUNT][LIMIT_ID_BYTES];
static struct trust_fact facts[WEEK_JOBS];
static bool used[WEEK_JOBS];
static struct trust_seen seen[WEEK_JOBS];

static const char *const weathers[] = {"clear", "rain", "fog"};
static const char *const lights[] = {"day", "night"};
static const char *const actors[] = {"car", "pedestrian", "cyclist"};

static struct trust_slice crossed(void)
{
    struct trust_slice slice = {.safety_critical = false};
    strcpy(slice.value[SLICE_WEATHER], "rain");
    strcpy(slice.value[SLICE_LIGHT], "night");
    strcpy(slice.value[SLICE_ACTOR], "pedestrian");
    return slice;
}

static uint32_t make_slices(struct trust_verdict *verdicts)
{
    uint32_t count = 0;
    memset(verdicts, 0, SLICES_MAX * sizeof *verdicts);
    count++; /* all */
    verdicts[count++].slice.safety_critical = true;
    for (int i = 0; i < 3; i++) {
        strcpy(verdicts[count++].slice.value[SLICE_WEATHER], weathers[i]);
        strcpy(verdicts[count++].slice.value[SLICE_ACTOR], actors[i]);
    }
    for (int i = 0; i < 2; i++) {
        strcpy(verdicts[count++].slice.value[SLICE_LIGHT], lights[i]);
    }
    verdicts[count++].slice = crossed();
    return count;
}

/* Disagreements come at `healthy`, within `sick` (NULL: none) at `damage`. */
static void make_week(double healthy, const struct trust_slice *sick, double damage)
{
    for (int i = 0; i < WEEK_JOBS; i++) {
        strcpy(values[i][SLICE_WEATHER], weathers[(int)(draw() * 3)]);
        strcpy(values[i][SLICE_LIGHT], lights[(int)(draw() * 2)]);
        strcpy(values[i][SLICE_ACTOR], actors[(int)(draw() * 3)]);
        facts[i] = (struct trust_fact){.outcome_id = i + 1,
                                       .logical = (uint32_t)i,
                                       .slice = values[i],
                                       .safety_critical = draw() < 0.3};
        bool hit = sick != NULL && trust_slice_has(sick, (const char(*)[LIMIT_ID_BYTES])values[i],
                                                   facts[i].safety_critical);
        facts[i].agrees = draw() >= (hit ? damage : healthy);
    }
}

static void no_healthy_slice_is_frozen_in_a_thousand_weeks(void)
{
    const struct trust_policy policy = trust_policy_default();
    struct trust_verdict verdicts[SLICES_MAX];
    uint32_t count = make_slices(verdicts);
    uint32_t frozen = 0;
    for (int week = 0; week < 1000; week++) {
        make_week(0.005, NULL, 0.0);
        frozen += trust_judge(&policy, facts, WEEK_JOBS, verdicts, count, used, seen);
    }
    printf("# %u slices frozen in 1,000 healthy weeks of %d audited jobs\n", frozen, WEEK_JOBS);
    EXPECT_INT(frozen, 0);
}

/* Damage in a crossed slice: it is frozen, and the slices that contain its jobs are not. Half of
 * the verdicts there flip; it is a 1/18 of the jobs. */
static void the_sick_slice_is_frozen_and_no_other(void)
{
    const struct trust_policy policy = trust_policy_default();
    struct trust_verdict verdicts[SLICES_MAX];
    uint32_t count = make_slices(verdicts);
    const struct trust_slice sick = crossed();
    int missed = 0;
    int others = 0;
    for (int week = 0; week < 1000; week++) {
        make_week(0.005, &sick, 0.5);
        trust_judge(&policy, facts, WEEK_JOBS, verdicts, count, used, seen);
        for (uint32_t i = 0; i < count; i++) {
            bool right = trust_slice_equal(&verdicts[i].slice, &sick);
            missed += right && !verdicts[i].frozen;
            others += !right && verdicts[i].frozen;
        }
    }
    printf("# of 1,000 sick weeks %d missed, %d other slices frozen\n", missed, others);
    EXPECT(missed <= 10 && others <= 10);
}

/* Evidence that a thaw covers is history to every monitor; what comes later is not. */
static void a_thaw_begins_anew(void)
{
    static struct trust_policy policy;
    struct trust_verdict verdicts[SLICES_MAX];
    uint32_t count = make_slices(verdicts);
    const struct trust_slice sick = crossed();
    policy = trust_policy_default();
    make_week(0.0, &sick, 1.0);
    EXPECT_INT(trust_judge(&policy, facts, WEEK_JOBS, verdicts, count, used, seen), 1);
    EXPECT(verdicts[count - 1].frozen && verdicts[count - 1].monitor.alarm_outcome > 0);
    policy.thaw_count = 1;
    policy.thaws[0] = (struct trust_thaw){.slice = sick, .after_outcome = WEEK_JOBS};
    EXPECT_INT(trust_judge(&policy, facts, WEEK_JOBS, verdicts, count, used, seen), 0);
    EXPECT_INT(verdicts[count - 1].monitor.jobs, 0);
    int64_t others = WEEK_JOBS;
    for (int i = 0; i < WEEK_JOBS; i++) {
        others -= trust_slice_has(&sick, (const char(*)[LIMIT_ID_BYTES])values[i], false);
    }
    EXPECT_INT(verdicts[0].monitor.jobs, others);  /* who contains them sees them no more either */
    policy.thaws[0].after_outcome = WEEK_JOBS / 2; /* what came later is sick again */
    EXPECT_INT(trust_judge(&policy, facts, WEEK_JOBS, verdicts, count, used, seen), 1);
    EXPECT(verdicts[count - 1].frozen && verdicts[count - 1].monitor.alarm_outcome > WEEK_JOBS / 2);
}

/* The index is zero for equal shares, symmetric, never negative, and of two values what its
 * definition says. */
static void the_stability_index_measures_shifts(void)
{
    for (int round = 0; round < 1000; round++) {
        int64_t before[8];
        int64_t after[8];
        int64_t more[8];
        for (int i = 0; i < 8; i++) {
            before[i] = 1 + (int64_t)(draw() * 100);
            after[i] = 1 + (int64_t)(draw() * 100);
            more[i] = before[i] * 7;
        }
        double index = trust_stability_index(before, after, 8);
        EXPECT(index >= 0.0);
        EXPECT_NEAR(index, trust_stability_index(after, before, 8), 1e-12);
        EXPECT_NEAR(trust_stability_index(before, more, 8), 0.0, 1e-12);
    }
    const int64_t even[] = {50, 50};
    const int64_t odd[] = {80, 20};
    EXPECT_NEAR(trust_stability_index(even, odd, 2), 0.3 * log(1.6) - 0.3 * log(0.4), 1e-12);
    const int64_t none[] = {100, 0};
    EXPECT(trust_stability_index(none, odd, 2) > TRUST_DRIFT_INDEX);
}

/* Jobs of the same kinds as before: where the index is asked at all, it stays below the bound;
 * where it is not, it would not. */
static void a_few_jobs_are_no_shift(void)
{
    enum { VALUES = 10, ROUNDS = 400 };
    int asked_over = 0;
    int other_over = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before[VALUES] = {0};
        int64_t after[VALUES] = {0};
        int64_t few[VALUES] = {0};
        for (int i = 0; i < 1000; i++) {
            before[(int)(draw() * VALUES)]++;
        }
        for (int i = 0; i < 250; i++) {
            after[(int)(draw() * VALUES)]++;
        }
        for (int i = 0; i < 5; i++) {
            few[(int)(draw() * VALUES)]++;
        }
        EXPECT(trust_stability_noise(before, after, VALUES) <= TRUST_DRIFT_NOISE);
        EXPECT(trust_stability_noise(before, few, VALUES) > TRUST_DRIFT_NOISE);
        asked_over += trust_stability_index(before, after, VALUES) > TRUST_DRIFT_INDEX;
        other_over += trust_stability_index(before, few, VALUES) > TRUST_DRIFT_INDEX;
    }
    EXPECT_INT(asked_over, 0);
    EXPECT(other_over > ROUNDS / 2);
}

/* ---- the document ---- */

static char path[64];

static enum status load(const char *text, struct trust_policy *out, struct error *error)
{
    FILE *stream = fopen(path, "w");
    EXPECT(stream != NULL && fputs(text, stream) >= 0 && fclose(stream) == 0);
    return trust_policy_load(path, out, error);
}

static void policies_are_read_or_refused(void)
{
    static struct trust_policy policy;
    struct error error;
    char text[TRUST_SLICE_TEXT_BYTES];
    EXPECT_OK(load("{\"format\": \"swerve-trust/1\", \"band\": 0.8, \"crossed\": [{\"weather\": "
                   "\"rain\", \"light\": \"night\"}], \"disagreement\": {\"healthy\": 0.02, "
                   "\"shifted\": 0.1}, \"thawed\": [{\"slice\": {\"safety_critical\": true}, "
                   "\"after_outcome\": 7, \"evidence\": \"evaluation 3\"}]}",
                   &policy, &error),
              error);
    EXPECT(policy.band == 0.8 && policy.safety_critical_band == 0.95);
    EXPECT(policy.disagreement.healthy == 0.02);
    EXPECT_TEXT(trust_slice_text(&policy.crossed[0], text), "weather=rain, light=night");
    EXPECT_TEXT(trust_slice_text(&policy.thaws[0].slice, text), "safety critical");
    EXPECT_INT(policy.thaws[0].after_outcome, 7);
    static const char *const bad[] = {
        "{}",
        "{\"format\": \"swerve-trust/2\"}",
        "{\"format\": \"swerve-trust/1\", \"band\": 2}",
        "{\"format\": \"swerve-trust/1\", \"audit_floor\": {}}",
        "{\"format\": \"swerve-trust/1\", \"disagreement\": {\"healthy\": 0.1, \"shifted\": 0.1}}",
        "{\"format\": \"swerve-trust/1\", \"crossed\": [{\"wether\": \"rain\"}]}",
        "{\"format\": \"swerve-trust/1\", \"crossed\": [{}]}",
        "{\"format\": \"swerve-trust/1\", \"crossed\": [{\"safety_critical\": false}]}",
        "{\"format\": \"swerve-trust/1\", \"thawed\": [{\"slice\": {}, \"after_outcome\": 1}]}",
        "[]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EXPECT_INT(load(bad[i], &policy, &error), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, path);
    }
    EXPECT(policy.band == 0.8); /* as it was */
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/swerve-trust-policy-%d.json", (int)getpid());
    int failed =
        TEST_RUN(TEST(a_million_random_facts_follow_the_definition),
                 TEST(healthy_jobs_sound_seldom), TEST(jobs_of_one_scenario_count_once),
                 TEST(damage_sounds_soon), TEST(no_healthy_slice_is_frozen_in_a_thousand_weeks),
                 TEST(the_sick_slice_is_frozen_and_no_other), TEST(a_thaw_begins_anew),
                 TEST(the_stability_index_measures_shifts), TEST(a_few_jobs_are_no_shift),
                 TEST(policies_are_read_or_refused));
    unlink(path);
    return failed;
}
