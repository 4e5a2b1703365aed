/*
 * Tests of the advice on scaling. Method: random policies and days of random loads, of which each
 * step is held against what the rules promise, said otherwise; and a few days by hand.
 */
#include "scheduler/scale.h"

#include "base/rng.h"
#include "base/units.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POLICIES = 400, LOOKS = 300, MINUTE_MS = 60000 };

static uint64_t state;

static int64_t draw(int64_t below)
{
    state = rng_mix(state + 1);
    return (int64_t)(state >> 11) % below;
}

static struct scale_policy draw_policy(void)
{
    struct scale_policy policy = scale_policy_default();
    policy.workers_min = draw(4);
    policy.workers_max = policy.workers_min + 1 + draw(30);
    policy.starts_max = 1 + draw(4);
    policy.tick_p99_max_ns = draw(2) * NS_PER_S;
    policy.window_count = (uint32_t)draw(3);
    for (uint32_t i = 0; i < policy.window_count; i++) {
        policy.windows[i] = (struct scale_window){.from_min = (int32_t)draw(SCALE_DAY_MIN),
                                                  .until_min = (int32_t)draw(SCALE_DAY_MIN),
                                                  .workers_min = draw(40)};
        for (int day = 0; day < 7; day++) {
            policy.windows[i].days[day] = draw(2) == 0;
        }
    }
    return policy;
}

/* Goal: never above the most, nor more starts than allowed; up for a reason alone, down after quiet
 * alone, one change in a cooldown; the same looks give the same advice. */
static void advice_keeps_its_word(void)
{
    for (int i = 0; i < POLICIES; i++) {
        const struct scale_policy policy = draw_policy();
        struct scale_state memory = {0};
        struct scale_state twin = {0};
        struct scale_facts facts = {.now_ms = INT64_C(1790000000000) + draw(100000000)};
        int64_t target = -1;
        int64_t quiet_since_ms = -1;
        int64_t changed_ms = INT64_MIN / 2;
        for (int look = 0; look < LOOKS; look++) {
            facts.now_ms += draw(3) * MINUTE_MS / 2;
            facts.jobs_queued = draw(4) == 0 || look % 60 > 30 ? 0 : draw(200);
            facts.age_ms = facts.jobs_queued > 0 ? draw(2 * policy.age_max_ms) : 0;
            facts.tick_p99_ns = draw(2 * NS_PER_S);
            facts.device_ms_queued = draw(5) == 0 ? -1 : draw(100000000);
            facts.workers_busy = draw(facts.workers_alive + 1);
            struct scale_advice advice = scale_advise(&policy, &facts, &memory);
            struct scale_advice again = scale_advise(&policy, &facts, &twin);
            EXPECT(advice.workers == again.workers && advice.reason == again.reason);
            int64_t floor = scale_floor(&policy, facts.now_ms);
            target = target < 0 ? facts.workers_alive : target;
            quiet_since_ms = facts.jobs_queued > 0 ? -1
                             : quiet_since_ms < 0  ? facts.now_ms
                                                   : quiet_since_ms;
            EXPECT(advice.workers >= 0 && advice.workers <= policy.workers_max);
            EXPECT(advice.workers <= facts.workers_alive + policy.starts_max);
            EXPECT(memory.target >= floor);
            if (memory.target > target && advice.reason != SCALE_FLOOR) {
                EXPECT(facts.age_ms > policy.age_max_ms ||
                       (policy.tick_p99_max_ns > 0 && facts.tick_p99_ns > policy.tick_p99_max_ns));
                EXPECT(facts.jobs_queued > 0 && memory.target <= target + policy.starts_max);
            }
            if (memory.target < target) {
                EXPECT(quiet_since_ms >= 0 && facts.now_ms - quiet_since_ms >= policy.quiet_ms);
                EXPECT(memory.target >= facts.workers_busy || memory.target == policy.workers_max);
            }
            if (memory.target != target && advice.reason != SCALE_FLOOR) {
                EXPECT(facts.now_ms - changed_ms >= policy.cooldown_ms);
                changed_ms = facts.now_ms;
            } else if (advice.reason == SCALE_FLOOR) {
                /* A change by load may have been overruled: it counts as one. */
                changed_ms = memory.changed_ms > changed_ms ? memory.changed_ms : changed_ms;
            }
            target = memory.target;
            /* Workers come and go as they like. */
            facts.workers_alive = draw(6) == 0 ? draw(policy.workers_max + 1) : advice.workers;
        }
    }
}

/* Goal: a load in the morning, by hand: two, then two more after the cooldown, back to the warm one
 * ten minutes after the last job. */
static void a_day_by_hand(void)
{
    struct scale_policy policy = scale_policy_default();
    struct scale_state memory = {0};
    struct scale_facts facts = {.workers_alive = 1, .device_ms_queued = 100 * policy.drain_ms};
    int64_t seen[60];
    policy.workers_min = 1;
    for (int minute = 0; minute < 60; minute++) {
        facts.now_ms = INT64_C(1790000000000) + (int64_t)minute * MINUTE_MS;
        facts.jobs_queued = minute < 20 ? 500 : 0;
        facts.age_ms = minute < 20 ? (int64_t)minute * MINUTE_MS : 0;
        facts.workers_busy = minute < 25 ? facts.workers_alive : 0;
        seen[minute] = scale_advise(&policy, &facts, &memory).workers;
        facts.workers_alive = seen[minute];
    }
    EXPECT_INT(seen[5], 1); /* exactly five minutes are not over them */
    EXPECT_INT(seen[6], 3);
    EXPECT_INT(seen[10], 3);
    EXPECT_INT(seen[11], 5);
    EXPECT_INT(seen[16], 7);
    EXPECT_INT(seen[29], 7);
    EXPECT_INT(seen[30], 1);
    EXPECT_INT(seen[59], 1);
}

/* Goal: a queue that is worth one worker gets one, however old it is. */
static void a_small_queue_is_worth_little(void)
{
    struct scale_policy policy = scale_policy_default();
    struct scale_state memory = {0};
    struct scale_facts facts = {
        .now_ms = 1, .jobs_queued = 3, .age_ms = 100 * policy.age_max_ms, .device_ms_queued = 1000};
    EXPECT_INT(scale_advise(&policy, &facts, &memory).workers, 1);
}

/* Goal: windows over midnight and weekdays, by hand. 2026-11-23 is a Monday. */
static void windows_open_and_close(void)
{
    const int64_t monday_ms = INT64_C(1795392000000);
    struct scale_policy policy = scale_policy_default();
    policy.window_count = 1;
    policy.windows[0] = (struct scale_window){
        .days = {true}, .from_min = 22 * 60, .until_min = 6 * 60, .workers_min = 5};
    for (int64_t minute = -SCALE_DAY_MIN; minute < 3 * SCALE_DAY_MIN; minute++) {
        bool open = minute >= 22 * 60 && minute < SCALE_DAY_MIN + 6 * 60;
        EXPECT_INT(scale_floor(&policy, monday_ms + minute * MINUTE_MS), open ? 5 : 0);
    }
}

static enum status load(const char *text, struct scale_plan *plan, struct error *error)
{
    char path[] = "/tmp/swerve_scale_XXXXXX";
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    enum status status = scale_plan_load(path, plan, error);
    unlink(path);
    return status;
}

/* Goal: a policy comes in as it was written, and what is wrong is named. */
static void policies_are_read(void)
{
    struct scale_plan plan;
    struct error error;
    EXPECT_OK(
        load("{\"format\":\"swerve-scaling/1\",\"pools\":[{\"pool\":\"bulk\",\"workers_min\":1,"
             "\"workers_max\":20,\"age_s\":60,\"tick_p99_ms\":250,\"planned_tick_ms\":"
             "{\"student\":40},\"timetable\":[{\"days\":[\"sun\"],\"from\":\"07:30\","
             "\"until\":\"09:00\",\"workers\":9}]},{\"pool\":\"teacher\"}]}",
             &plan, &error),
        error);
    EXPECT_INT(plan.count, 2);
    EXPECT_INT(plan.pools[0].age_max_ms, 60000);
    EXPECT_INT(plan.pools[0].tick_p99_max_ns, 250 * NS_PER_MS);
    EXPECT_INT(plan.pools[0].planned_tick_ns[TIER_STUDENT], 40 * NS_PER_MS);
    EXPECT_INT(plan.pools[0].windows[0].from_min, 450);
    EXPECT(plan.pools[0].windows[0].days[6] && !plan.pools[0].windows[0].days[0]);
    EXPECT_INT(plan.pools[1].cooldown_ms, 300000);
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        {"{\"format\":\"x\",\"pools\":[]}", "swerve-scaling/1"},
        {"{\"format\":\"swerve-scaling/1\",\"pools\":[{\"pool\":\"a\"},{\"pool\":\"a\"}]}", "once"},
        {"{\"format\":\"swerve-scaling/1\",\"pools\":[{\"pool\":\"a\",\"workers_min\":9}]}",
         "workers_max"},
        {"{\"format\":\"swerve-scaling/1\",\"pools\":[{\"pool\":\"a\",\"timetable\":[{\"from\":"
         "\"24:00\",\"until\":\"1\",\"workers\":1}]}]}",
         "HH:MM"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EXPECT_INT(load(bad[i].text, &plan, &error), STATUS_BAD_INPUT);
        EXPECT(strstr(error.text, bad[i].says) != NULL);
    }
}

int main(void)
{
    return TEST_RUN(TEST(advice_keeps_its_word), TEST(a_day_by_hand),
                    TEST(a_small_queue_is_worth_little), TEST(windows_open_and_close),
                    TEST(policies_are_read));
}
