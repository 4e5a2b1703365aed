/*
 * Drift. Goal: ranks are those of a plain count; a healthy fleet is silent for a thousand weeks,
 * and a world whose agents slip away at 0.1 m/s, under every bound, is heard in the slice where
 * they do and in no other.
 *
 * Method: random facts with many ties against a naive count. Then a fleet on a simulated clock:
 * each week drives every scenario once, in the order of the suite, which is that of their
 * difficulty. A drive is 60 ticks; an agent is drawn at a distance that is the scenario's, the
 * drive's and the tick's, in decimetres as worker/models/health_world.c keeps it. The other
 * thirteen measures are noise of every skewness.
 */
#include "scheduler/drift.h"

#include "base/rng.h"
#include "schemas/outcome.h"
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SCENARIOS = 24, WEEKS = 1000, DRIVE_TICKS = 60, DRIVES = SCENARIOS * WEEKS };

#define OFFSET_BOUND_M 2.0
#define DRIFT_MPS 0.1
#define WEEK_MS INT64_C(604800000)

static uint64_t state;

static double draw(void)
{
    return (double)(rng_mix(++state) >> 11) * 0x1p-53;
}

/* ---- ranks ---- */

static double naive_evidence(const struct drift_fact *facts, uint32_t index)
{
    uint32_t earlier = 0;
    double rank = 0.5;
    for (uint32_t i = 0; i < index; i++) {
        bool own = facts[i].scenario == facts[index].scenario && !isnan(facts[i].value);
        earlier += own;
        rank += !own ? 0.0 : facts[i].value < facts[index].value ? 1.0 : 0.0;
        rank += own && facts[i].value == facts[index].value ? 0.5 : 0.0;
    }
    bool any = earlier > 0 && !isnan(facts[index].value);
    return any ? log(2.0 * rank / (earlier + 1.0)) : (double)NAN;
}

static void ranks_are_those_of_a_count(void)
{
    enum { FACTS = 60 };
    struct drift_fact facts[FACTS];
    double evidence[FACTS];
    struct error error;
    for (int round = 0; round < 300; round++) {
        uint32_t count = (uint32_t)(draw() * (FACTS + 1));
        double values = 1.0 + floor(draw() * 12.0);
        for (uint32_t i = 0; i < count; i++) {
            facts[i].scenario = (uint64_t)(draw() * 4.0) * UINT64_C(0x9e3779b97f4a7c15);
            facts[i].value = draw() < 0.1 ? (double)NAN : floor(draw() * values) - 3.0;
        }
        EXPECT_OK(drift_evidence(facts, count, evidence, &error), error);
        for (uint32_t i = 0; i < count; i++) {
            double expected = naive_evidence(facts, i);
            EXPECT(isnan(expected) ? isnan(evidence[i]) : evidence[i] == expected);
        }
    }
}

/* The likelihood ratio's mean over what a healthy drive may be is 1, whatever is tied: on that the
 * stated rate of false alarms rests. */
static void a_healthy_drive_says_nothing_on_average(void)
{
    enum { FACTS = 12 };
    struct drift_fact facts[FACTS];
    double evidence[FACTS];
    struct error error;
    for (int round = 0; round < 200; round++) {
        double ratios = 0.0;
        for (uint32_t i = 0; i < FACTS; i++) {
            facts[i] = (struct drift_fact){1, floor(draw() * 9.0)};
        }
        for (uint32_t last = 0; last < FACTS; last++) { /* each is as likely to come last */
            struct drift_fact first = facts[0];
            memmove(facts, facts + 1, (FACTS - 1) * sizeof *facts);
            facts[FACTS - 1] = first;
            EXPECT_OK(drift_evidence(facts, FACTS, evidence, &error), error);
            ratios += exp(evidence[FACTS - 1]) / FACTS;
        }
        EXPECT(fabs(ratios - 1.0) < 1e-12);
    }
}

/* ---- a fleet ---- */

struct drive {
    uint32_t scenario;
    int64_t at_ms;
    double value[MEASURE_COUNT]; /* means; greater is worse */
};

static struct drive drives[DRIVES];
static struct drift_fact facts[DRIVES];
static double evidence[MEASURE_COUNT][DRIVES];
static double offset_most_m;

static double bell(void)
{
    return draw() + draw() + draw() + draw() - 2.0; /* of variance 1/3 */
}

/* Mean offset of a drive, by ticks. */
static double drive_offset_m(uint32_t scenario, double drift_mps)
{
    double level_m = 0.15 + 0.02 * scenario + 0.05 * bell();
    double sum_m = 0.0;
    for (uint32_t tick = 0; tick < DRIVE_TICKS; tick++) {
        double offset_m = fabs(level_m + 0.1 * bell() + drift_mps * 0.1 * tick);
        offset_m = floor(offset_m * 10.0) / 10.0;
        offset_most_m = fmax(offset_most_m, offset_m);
        sum_m += offset_m;
    }
    return sum_m / DRIVE_TICKS;
}

/* The first half of the suite is driven in rain, where agents slip from a week on. */
static bool in_rain(uint32_t scenario)
{
    return scenario < SCENARIOS / 2;
}

static void drive_fleet(uint64_t seed, uint32_t slips_from_week)
{
    state = seed;
    offset_most_m = 0.0;
    for (uint32_t i = 0; i < DRIVES; i++) {
        struct drive *drive = &drives[i];
        uint32_t week = i / SCENARIOS;
        drive->scenario = i % SCENARIOS;
        drive->at_ms = 1 + week * WEEK_MS + (int64_t)drive->scenario * 60000;
        bool slips = week >= slips_from_week && in_rain(drive->scenario);
        for (int m = 0; m < MEASURE_COUNT; m++) {
            drive->value[m] = m == MEASURE_OFFSET
                                  ? drive_offset_m(drive->scenario, slips ? DRIFT_MPS : 0.0)
                                  : pow(draw(), 1.0 + m) + 0.1 * drive->scenario;
        }
    }
}

static void judge(void)
{
    struct error error;
    for (int m = 0; m < MEASURE_COUNT; m++) {
        for (uint32_t i = 0; i < DRIVES; i++) {
            facts[i] = (struct drift_fact){drives[i].scenario, drives[i].value[m]};
        }
        EXPECT_OK(drift_evidence(facts, DRIVES, evidence[m], &error), error);
    }
}

/* State of a measure's monitor: of rain, of what is dry, or of all drives. */
enum slice { RAIN, DRY, ALL, SLICES };

static struct drift_monitor monitor_of(enum slice slice, int measure)
{
    struct drift_monitor monitor = {0};
    for (uint32_t i = 0; i < DRIVES; i++) {
        if (slice == ALL || in_rain(drives[i].scenario) == (slice == RAIN)) {
            drift_monitor_add(&monitor, MEASURE_COUNT, evidence[measure][i], i, drives[i].at_ms);
        }
    }
    return monitor;
}

static void a_thousand_healthy_weeks_are_silent(void)
{
    drive_fleet(1, WEEKS);
    judge();
    for (int slice = 0; slice < SLICES; slice++) {
        for (int m = 0; m < MEASURE_COUNT; m++) {
            struct drift_monitor monitor = monitor_of((enum slice)slice, m);
            int64_t once = slice == ALL ? SCENARIOS : SCENARIOS / 2;
            EXPECT_INT(monitor.drives, once * (WEEKS - 1)); /* a first drive has none to compare */
            EXPECT(!monitor.alarm);
        }
    }
}

static void a_drift_under_every_bound_is_heard_where_it_is(void)
{
    enum { FROM_WEEK = 20, HEARD_WEEKS = 3 };
    for (uint64_t seed = 1; seed <= 5; seed++) {
        drive_fleet(seed * 1000003, FROM_WEEK);
        EXPECT(offset_most_m < OFFSET_BOUND_M); /* no tick is sick */
        judge();
        for (int m = 0; m < MEASURE_COUNT; m++) {
            struct drift_monitor rain = monitor_of(RAIN, m);
            EXPECT(!monitor_of(DRY, m).alarm);
            EXPECT(rain.alarm == (m == MEASURE_OFFSET));
            if (rain.alarm) {
                printf("# seed %llu: offsets up to %.1f m, heard after %lld drives of rain\n",
                       (unsigned long long)seed, offset_most_m,
                       (long long)rain.alarm_drives - (FROM_WEEK - 1) * SCENARIOS / 2);
                EXPECT(rain.alarm_at_ms > FROM_WEEK * WEEK_MS);
                EXPECT(rain.alarm_at_ms < (FROM_WEEK + HEARD_WEEKS) * WEEK_MS);
                EXPECT_INT(drives[rain.alarm_outcome].at_ms, rain.alarm_at_ms);
            }
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(ranks_are_those_of_a_count), TEST(a_healthy_drive_says_nothing_on_average),
                    TEST(a_thousand_healthy_weeks_are_silent),
                    TEST(a_drift_under_every_bound_is_heard_where_it_is));
}
