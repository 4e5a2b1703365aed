/*
 * Tests of the pure functions behind a store's decisions about trust: slices, whose job a freeze is
 * about, what becomes of it, and who is audited. Method: properties over random jobs, each decided
 * twice; a floor against counting.
 */
#include "store/api/trust.h"

#include "base/rng.h"
#include "store/api/models.h"
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

enum { JOBS = 20000, SLICES = 500 };

static const char *const values[] = {"", "rain", "night", "car"};

static uint32_t draw(uint64_t *random, uint32_t below)
{
    *random = rng_mix(*random + 1);
    return (uint32_t)(*random >> 33) % below;
}

static struct trust_slice random_slice(uint64_t *random)
{
    struct trust_slice slice = {.safety_critical = draw(random, 4) == 0};
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        strcpy(slice.value[kind], values[draw(random, 4)]);
    }
    return slice;
}

static struct job_spec random_job(uint64_t *random)
{
    struct job_spec spec = {.tier = TIER_STUDENT, .seed = draw(random, 1000), .follows = true};
    snprintf(spec.scenario_hash, sizeof spec.scenario_hash, "%08x", draw(random, 1 << 30));
    strcpy(spec.planner, "builtin:reference");
    strcpy(spec.planner_hash, "p");
    strcpy(spec.pool, "bulk");
    memset(spec.model_hash, '5', sizeof spec.model_hash - 1);
    strcpy(spec.backend, draw(random, 2) == 0 ? "cpu" : "cuda:sm_90");
    strcpy(spec.sampler, draw(random, 2) == 0 ? "agents/euler2/bf16" : "map/euler2/bf16");
    job_key_make(&spec, draw(random, 3) == 0 ? draw(random, 1000) + 1 : 0);
    return spec;
}

static struct model_version teacher_of(const char *sampler, const char *precision)
{
    struct model_version teacher = {.tier = TIER_TEACHER};
    memset(teacher.hash, '7', sizeof teacher.hash - 1);
    strcpy(teacher.sampler, sampler);
    strcpy(teacher.precision, precision);
    return teacher;
}

/* Goal: a slice has what every part of it has, and no more; it equals itself alone. */
static void slices_are_conjunctions(void)
{
    uint64_t random = 1;
    for (int i = 0; i < SLICES; i++) {
        struct trust_slice slice = random_slice(&random);
        struct trust_slice of = random_slice(&random);
        bool expected = of.safety_critical || !slice.safety_critical;
        for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
            struct trust_slice part = {.safety_critical = false};
            strcpy(part.value[kind], slice.value[kind]);
            expected = expected && trust_slice_has(&part, of.value, of.safety_critical);
        }
        bool has = trust_slice_has(&slice, of.value, of.safety_critical);
        EXPECT_INT(has, expected);
        EXPECT_INT(trust_slice_has(&slice, of.value, of.safety_critical), has);
        EXPECT(trust_slice_equal(&slice, &slice));
        EXPECT_INT(trust_slice_equal(&slice, &of), memcmp(&slice, &of, sizeof of) == 0);
    }
    char text[TRUST_SLICE_TEXT_BYTES];
    EXPECT_TEXT(trust_slice_text(&(struct trust_slice){.value = {"rain"}}, text), "weather=rain");
    EXPECT_TEXT(trust_slice_text(&(struct trust_slice){.safety_critical = false}, text), "all");
}

/* Goal: a moved job is the teacher's in everything, the same each time, and no longer one that the
 * freeze is about; it keeps its conditioning and stays driven afresh. */
static void moved_jobs_are_the_teachers(void)
{
    const struct model_version teacher = teacher_of("euler9/fp32", "fp32");
    struct trust_event freeze = {.kind = TRUST_FREEZE, .student_sampler = "euler2/bf16"};
    uint64_t random = 2;
    memset(freeze.student_hash, '5', sizeof freeze.student_hash - 1);
    for (int i = 0; i < JOBS; i++) {
        struct job_spec asked = random_job(&random);
        struct job_spec moved = asked;
        struct job_spec again = asked;
        struct job_spec made;
        char key[SHA256_HEX_BYTES];
        EXPECT(trust_freeze_is_of(&freeze, &asked));
        trust_job_move(&teacher, &moved);
        trust_job_move(&teacher, &again);
        EXPECT_INT(memcmp(&moved, &again, sizeof moved), 0);
        EXPECT(!trust_freeze_is_of(&freeze, &moved));
        EXPECT_TEXT(moved.pool, "teacher");
        EXPECT_TEXT(moved.model_hash, teacher.hash);
        EXPECT_TEXT(moved.backend, "cpu"); /* devices compute in bf16 */
        EXPECT_TEXT(trust_sampler(moved.sampler), "euler9/fp32");
        EXPECT_INT(moved.sampler[0], asked.sampler[0]);
        made = moved;
        job_key_make(&made, job_key_fresh(&asked));
        EXPECT_TEXT(moved.key, made.key);
        trust_job_audit(&teacher, &asked, &made);
        job_key_audit(moved.key, key);
        EXPECT_TEXT(made.key, key);
        EXPECT_TEXT(made.audit_key, asked.key);
    }
    freeze.student_hash[0] = '6';
    struct job_spec other = random_job(&random);
    EXPECT(!trust_freeze_is_of(&freeze, &other));
}

/* Goal: a job whose sampler has no conditioning is moved, too. */
static void plain_samplers_are_replaced(void)
{
    const struct model_version teacher = teacher_of("many", "many");
    uint64_t random = 3;
    struct job_spec spec = random_job(&random);
    strcpy(spec.sampler, "few");
    trust_job_move(&teacher, &spec);
    EXPECT_TEXT(spec.sampler, "many");
    EXPECT_TEXT(spec.model_hash, teacher.hash);
    EXPECT_INT(spec.tier, TIER_TEACHER);
}

/* Goal: a floor audits its share, the same jobs each time, and a higher one these and more. */
static void floors_are_nested(void)
{
    const struct trust_event floor = {.audit_rate = 0.05, .audit_rate_safety_critical = 0.1};
    uint64_t random = 4;
    int sampled[2] = {0};
    EXPECT(trust_floor_rate(&floor, false) == 0.05);
    EXPECT(trust_floor_rate(&floor, true) == 0.1);
    for (int i = 0; i < JOBS; i++) {
        struct job_spec spec = random_job(&random);
        bool low = trust_audit_sampled(spec.key, trust_floor_rate(&floor, false));
        bool high = trust_audit_sampled(spec.key, trust_floor_rate(&floor, true));
        EXPECT(high || !low);
        EXPECT_INT(trust_audit_sampled(spec.key, 0.05), low);
        EXPECT(trust_audit_sampled(spec.key, 1.0) && !trust_audit_sampled(spec.key, 0.0));
        sampled[0] += low;
        sampled[1] += high;
    }
    EXPECT(sampled[0] > JOBS / 25 && sampled[0] < JOBS / 16);
    EXPECT(sampled[1] > JOBS / 12 && sampled[1] < JOBS / 9);
}

/* Goal: what cannot be is refused with a sentence. */
static void impossible_events_are_refused(void)
{
    struct error error;
    struct trust_event freeze = {.kind = TRUST_FREEZE, .student_sampler = "euler2/bf16"};
    struct trust_event thaw = {.kind = TRUST_THAW, .freeze = 3};
    struct trust_event floor = {.kind = TRUST_FLOOR, .audit_rate = 0.05};
    EXPECT_INT(trust_event_check(&freeze, &error), STATUS_BAD_INPUT);
    memset(freeze.student_hash, '5', sizeof freeze.student_hash - 1);
    EXPECT_OK(trust_event_check(&freeze, &error), error);
    freeze.disagreed = 1;
    EXPECT_INT(trust_event_check(&freeze, &error), STATUS_BAD_INPUT);
    EXPECT_OK(trust_event_check(&thaw, &error), error);
    thaw.forced = true;
    EXPECT_INT(trust_event_check(&thaw, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "expected a reason");
    EXPECT_OK(trust_event_check(&floor, &error), error);
    floor.audit_rate = 1.5;
    EXPECT_INT(trust_event_check(&floor, &error), STATUS_BAD_INPUT);
    memset(floor.actor, 'a', sizeof floor.actor);
    EXPECT_INT(trust_event_check(&floor, &error), STATUS_LIMIT);
}

int main(void)
{
    return TEST_RUN(TEST(slices_are_conjunctions), TEST(moved_jobs_are_the_teachers),
                    TEST(plain_samplers_are_replaced), TEST(floors_are_nested),
                    TEST(impossible_events_are_refused));
}
