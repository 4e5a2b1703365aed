/*
 * Tests of the arithmetic behind versions of models: which version answers a job, and what becomes
 * of its key. Method: properties over random jobs.
 */
#include "store/api/models.h"

#include "base/rng.h"
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

enum { JOBS = 20000 };

static struct job_spec random_job(uint64_t number)
{
    struct job_spec spec = {.tier = TIER_STUDENT, .seed = number % 1000};
    snprintf(spec.scenario_hash, sizeof spec.scenario_hash, "%016llx",
             (unsigned long long)rng_mix(number / 1000));
    strcpy(spec.planner, "builtin:reference");
    strcpy(spec.planner_hash, "p");
    strcpy(spec.model_hash, "old");
    strcpy(spec.backend, "cpu");
    strcpy(spec.sampler, number % 2 == 0 ? "agents/euler2/bf16" : "map/euler2/bf16");
    job_key_make(&spec, number % 7 == 0 ? number + 1 : 0);
    return spec;
}

static struct model_version version_of(const char *hash, const char *sampler, int64_t percent)
{
    struct model_version version = {.tier = TIER_STUDENT, .canary_percent = percent};
    const char *precision = strrchr(sampler, '/');
    strcpy(version.hash, hash);
    strcpy(version.sampler, sampler);
    strcpy(version.precision, precision != NULL ? precision + 1 : "bf16");
    return version;
}

/* Goal: a share takes that share; a larger one takes the same jobs and more; who answers does not
 * change which side a job is on. */
static void shares_are_nested(void)
{
    static const int64_t percents[] = {1, 5, 25, 50, 99, 100};
    const struct model_version promoted = version_of("new", "euler2/bf16", 0);
    for (uint64_t i = 0; i < JOBS; i++) {
        struct job_spec spec = random_job(i);
        uint32_t percentile = model_job_percentile(&spec);
        EXPECT(percentile < 100);
        strcpy(spec.model_hash, "other");
        EXPECT_INT(model_job_percentile(&spec), percentile);
    }
    bool before[JOBS] = {false};
    for (size_t p = 0; p < sizeof percents / sizeof *percents; p++) {
        const struct model_version canary = version_of("canary", "euler2/bf16", percents[p]);
        uint32_t taken = 0;
        for (uint64_t i = 0; i < JOBS; i++) {
            struct job_spec spec = random_job(i);
            bool on_canary = model_assigned(&spec, &promoted, &canary) == &canary;
            EXPECT(on_canary || !before[i]);
            before[i] = on_canary;
            taken += on_canary;
        }
        EXPECT_NEAR((double)taken / JOBS, (double)percents[p] / 100.0, 0.02);
    }
}

/* Goal: a job that moves is what a submission under the new version makes, fresh or not; there and
 * back it is what it was. */
static void moved_jobs_are_those_of_a_new_submission(void)
{
    const struct model_version old = version_of("old", "euler2/bf16", 0);
    const struct model_version next = version_of("new", "euler3/int8", 0);
    for (uint64_t i = 0; i < JOBS; i++) {
        struct job_spec spec = random_job(i);
        struct job_spec asked = spec;
        bool fresh = job_key_fresh(&spec) != 0;
        EXPECT(fresh == (i % 7 == 0));
        EXPECT(!model_job_move(&old, &spec));
        EXPECT(model_job_move(&next, &spec));
        EXPECT_TEXT(spec.model_hash, "new");
        EXPECT_TEXT(spec.sampler, i % 2 == 0 ? "agents/euler3/int8" : "map/euler3/int8");
        EXPECT(strcmp(spec.key, asked.key) != 0);
        char first[SHA256_HEX_BYTES];
        memcpy(first, spec.key, sizeof first);
        EXPECT((job_key_fresh(&spec) != 0) == fresh);
        job_key_make(&asked, 0);
        EXPECT(model_job_move(&old, &spec));
        EXPECT((strcmp(spec.key, asked.key) == 0) == !fresh);
    }
}

/* Devices compute in bf16 alone: a job that another precision answers is a processor's. */
static void precisions_are_computed_where_they_can_be(void)
{
    static const char *const samplers[] = {"euler3/int8", "euler3/fp32", "euler3/bf16"};
    for (size_t i = 0; i < sizeof samplers / sizeof *samplers; i++) {
        const struct model_version next = version_of("new", samplers[i], 0);
        struct job_spec spec = random_job(i);
        strcpy(spec.backend, "cuda:sm_90");
        job_key_make(&spec, 0);
        EXPECT(model_job_move(&next, &spec));
        EXPECT_TEXT(spec.backend, i == 2 ? "cuda:sm_90" : "cpu");
        struct job_spec asked = spec;
        job_key_make(&asked, 0);
        EXPECT_TEXT(spec.key, asked.key);
    }
}

static void audit_jobs_keep_keys_of_their_own(void)
{
    const struct model_version next = version_of("new", "euler3/bf16", 0);
    struct job_spec spec = random_job(1);
    struct job_spec audit = spec;
    char key[SHA256_HEX_BYTES];
    memcpy(audit.audit_key, spec.key, sizeof audit.audit_key);
    job_key_audit(spec.key, key);
    EXPECT_INT(strlen(key), 64);
    EXPECT(strcmp(key, spec.key) != 0);
    memcpy(audit.key, key, sizeof audit.key);
    EXPECT(model_job_move(&next, &spec));
    EXPECT(model_job_move(&next, &audit));
    job_key_audit(spec.key, key);
    EXPECT_TEXT(audit.key, key);
    job_key_apart(&spec);
    EXPECT(strcmp(audit.key, spec.key) != 0);
}

/* Goal: no version leaves production by itself, and none comes into it past the states that the
 * gate looks at. */
static void states_follow_the_life_of_a_model(void)
{
    for (int from = 0; from < MODEL_STATE_COUNT; from++) {
        for (int to = 0; to < MODEL_STATE_COUNT; to++) {
            bool may = model_may_move((enum model_state)from, (enum model_state)to);
            EXPECT(!may || from != MODEL_PROMOTED);
            EXPECT(!may || from != to || from == MODEL_CANARY || from == MODEL_SHADOW);
        }
        EXPECT(model_may_move((enum model_state)from, MODEL_PROMOTED) == (from != MODEL_PROMOTED));
    }
}

int main(void)
{
    return TEST_RUN(TEST(shares_are_nested), TEST(moved_jobs_are_those_of_a_new_submission),
                    TEST(precisions_are_computed_where_they_can_be),
                    TEST(audit_jobs_keep_keys_of_their_own),
                    TEST(states_follow_the_life_of_a_model));
}
