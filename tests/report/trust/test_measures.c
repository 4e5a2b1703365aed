/*
 * Monitors of measures over drives. Goal: a measure that worsens is heard in the slices that hold
 * its drives, of the student that drove them, by the end that is sick; a version that is worse than
 * the one before is heard, one that is better is not; conditionings are not compared; a thaw makes
 * history.
 *
 * Method: outcomes of four scenarios, two in rain, by weeks, with measures drawn around a level.
 */
#include "report/trust/measures.h"

#include "base/rng.h"
#include "schemas/scenario_json.h"
#include "tests/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SCENARIOS = 4 };

static uint64_t state = 1;
static int64_t next_id = 1;
static struct drives drives;
static struct trust_policy policy;
static struct measures_alarm *alarms;
static uint32_t alarm_count;
static struct error error;

static double draw(void)
{
    return (double)(rng_mix(++state) >> 11) * 0x1p-53;
}

/* Weeks of drives of a model; in rain offsets are so much worse, and layouts overlap less. */
static void drive(const char *model, const char *sampler, int weeks, double offset_m, double layout)
{
    for (int i = 0; i < weeks * SCENARIOS; i++) {
        struct outcome outcome = {.id = next_id++, .at_ms = 1000 + next_id, .tier = TIER_STUDENT};
        bool rain = i % SCENARIOS < 2;
        snprintf(outcome.scenario_hash, sizeof outcome.scenario_hash, "scenario %d", i % SCENARIOS);
        snprintf(outcome.model_hash, sizeof outcome.model_hash, "%s", model);
        snprintf(outcome.sampler, sizeof outcome.sampler, "%s", sampler);
        snprintf(outcome.slice[SLICE_WEATHER], LIMIT_ID_BYTES, "%s", rain ? "rain" : "clear");
        outcome.health.measured_ticks = 60;
        for (int m = 0; m < MEASURE_COUNT; m++) {
            outcome.health.mean[m] = m == MEASURE_CAMERA ? (double)NAN : draw();
        }
        outcome.health.mean[MEASURE_OFFSET] += rain ? offset_m : 0.0;
        outcome.health.mean[MEASURE_LAYOUT] -= rain ? layout : 0.0;
        EXPECT_OK(drives_add(&drives, &outcome, &error), error);
    }
}

static void begin(void)
{
    policy = trust_policy_default();
    drives_finish(&drives);
    drives.keeps_measures = true;
}

static void judge(void)
{
    free(alarms);
    alarms = NULL;
    alarm_count = 0;
    EXPECT_OK(measures_alarms(&drives, &policy, &alarms, &alarm_count, &error), error);
}

/* Whether the measure sounds in the weather's drives of a student ("": in all). */
static bool sounds(enum health_measure measure, const char *weather, uint32_t student)
{
    struct trust_slice slice = {.safety_critical = false};
    snprintf(slice.value[SLICE_WEATHER], sizeof slice.value[SLICE_WEATHER], "%s", weather);
    for (uint32_t i = 0; i < alarm_count; i++) {
        if (alarms[i].measure == measure && alarms[i].student == student &&
            trust_slice_equal(&alarms[i].slice, &slice)) {
            EXPECT(alarms[i].monitor.alarm && alarms[i].monitor.alarm_outcome > 0);
            EXPECT(alarms[i].monitor.alarm_at_ms > 1000);
            return true;
        }
    }
    return false;
}

static void what_worsens_is_heard_where_it_does(void)
{
    begin();
    drive("one", "agents/euler2/bf16", 200, 0.0, 0.0);
    judge();
    EXPECT_INT(alarm_count, 0);
    drive("one", "agents/euler2/bf16", 60, 1.0, 0.0);
    judge();
    EXPECT(sounds(MEASURE_OFFSET, "rain", 0) && !sounds(MEASURE_OFFSET, "clear", 0));
    EXPECT(!sounds(MEASURE_LAYOUT, "rain", 0));
    begin();
    drive("one", "agents/euler2/bf16", 200, 0.0, 0.0);
    drive("one", "agents/euler2/bf16", 60, -1.0, 1.0); /* offsets are better, layouts worse */
    judge();
    EXPECT(sounds(MEASURE_LAYOUT, "rain", 0) && !sounds(MEASURE_LAYOUT, "clear", 0));
    EXPECT(!sounds(MEASURE_OFFSET, "rain", 0) && !sounds(MEASURE_OFFSET, "", 0));
    json_t *json = measures_json(&drives, alarms, alarm_count);
    EXPECT_INT(json_array_size(json), alarm_count);
    json_t *row = json_array_get(json, alarm_count - 1);
    EXPECT_TEXT(json_string_value(json_object_get(row, "measure")), "layout");
    EXPECT_TEXT(json_string_value(
                    json_object_get(json_object_get(row, "slice"), slice_names[SLICE_WEATHER])),
                "rain");
    json_decref(json);
}

static void a_worse_version_is_heard(void)
{
    begin();
    drive("one", "agents/euler2/bf16", 100, 0.0, 0.0);
    drive("two", "agents/euler2/bf16", 60, 1.0, 0.0);
    judge();
    EXPECT(sounds(MEASURE_OFFSET, "rain", 1) && !sounds(MEASURE_OFFSET, "rain", 0));
    begin();
    drive("one", "map/euler2/bf16", 100, 0.0, 0.0);
    drive("one", "agents/euler2/bf16", 60, 1.0, 0.0); /* another conditioning, from its begin */
    judge();
    EXPECT_INT(alarm_count, 0);
}

static void a_thaw_makes_history(void)
{
    begin();
    drive("one", "agents/euler2/bf16", 200, 0.0, 0.0);
    drive("one", "agents/euler2/bf16", 60, 1.0, 0.0);
    policy.thaws[0].after_outcome = next_id - 1;
    strcpy(policy.thaws[0].slice.value[SLICE_WEATHER], "rain");
    policy.thaw_count = 1;
    drive("one", "agents/euler2/bf16", 60, 1.0, 0.0); /* as it is now */
    judge();
    EXPECT_INT(alarm_count, 0);
    drive("one", "agents/euler2/bf16", 60, 2.0, 0.0);
    judge();
    EXPECT(sounds(MEASURE_OFFSET, "rain", 0));
}

int main(void)
{
    int failed = TEST_RUN(TEST(what_worsens_is_heard_where_it_does), TEST(a_worse_version_is_heard),
                          TEST(a_thaw_makes_history));
    drives_finish(&drives);
    free(alarms);
    return failed;
}
