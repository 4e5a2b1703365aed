/*
 * The conformance suite's first half: getting jobs in and out. One test per sentence of
 * store/api/store.h. See conformance.h.
 *
 * Method: each test opens a store over empty storage and speaks only through struct store_ops. The
 * random part is in conformance_random.c.
 */
#include "base/check.h"
#include "base/rng.h"
#include "tests/claim_ids.h"
#include "tests/store/conformance/conformance_kit.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- scenarios and artifacts ---- */

/* Goal: bodies come back byte for byte; names that do not fit are refused. */
static void scenario_bodies_are_kept(void)
{
    char hash[SHA256_HEX_BYTES];
    char *body = NULL;
    size_t bytes = 0;

    open_store(true);
    put_scenario(hash);
    put_scenario(hash);
    EXPECT_OK(store->ops->scenario_get(store, hash, &body, &bytes, &error), error);
    EXPECT_INT(bytes, 10);
    EXPECT_TEXT(body, "{\"id\":\"a\"}");
    free(body);
    EXPECT_INT(store->ops->scenario_put(store, hash, "{}", 2, &error), STATUS_BAD_INPUT);
    hash[0] = hash[0] == '0' ? '1' : '0';
    EXPECT_INT(store->ops->scenario_get(store, hash, &body, &bytes, &error), STATUS_NOT_FOUND);
    close_store();
}

/* Goal: artifacts of any size come back; put twice is one; unknown and ill-formed names differ. */
static void artifacts_come_back(void)
{
    static uint8_t data[3 << 20];
    static const size_t sizes[] = {0, 1, 4096, sizeof data};
    char hash[SHA256_HEX_BYTES];
    char expected[SHA256_HEX_BYTES];

    open_store(true);
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(rng_mix(i / 3) >> 56);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *back = NULL;
        size_t bytes = 1;
        for (int twice = 0; twice < 2; twice++) {
            EXPECT_OK(store->ops->artifact_put(store, data, sizes[i], hash, &error), error);
        }
        sha256_hex(data, sizes[i], expected);
        EXPECT_TEXT(hash, expected);
        EXPECT_OK(store->ops->artifact_get(store, hash, &back, &bytes, &error), error);
        EXPECT_INT(bytes, sizes[i]);
        bool equal = memcmp(back, data, bytes) == 0;
        free(back);
        EXPECT(equal);
    }
    void *none = NULL;
    size_t bytes = 0;
    memset(hash, 'a', 64);
    EXPECT_INT(store->ops->artifact_get(store, hash, &none, &bytes, &error), STATUS_NOT_FOUND);
    EXPECT(store->ops->artifact_get(store, "../../etc/passwd", &none, &bytes, &error) != STATUS_OK);
    close_store();
}

/* ---- submitting ---- */

/* Goal: a key is accepted once per suite, whatever else is in the submission. */
static void submitting_is_idempotent(void)
{
    int64_t first;

    open_store(true);
    submit_plain("a", "k", 10);
    first = submitted[3].job_id;
    EXPECT(!submitted[3].existed && !submitted[3].memoised);
    submit_plain("a", "k", 12);
    EXPECT(submitted[3].existed && submitted[3].job_id == first);
    EXPECT(!submitted[11].existed);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 12);
    EXPECT_INT(status_of("a").rollouts_total, 12);
    /* The same key twice in one submission. */
    make_specs("a", "m", 2);
    memcpy(specs[1].key, specs[0].key, sizeof specs[0].key);
    submit_made("a", 1, 2);
    EXPECT(submitted[1].existed && submitted[1].job_id == submitted[0].job_id);
    close_store();
}

/* Goal: one bad job, and none is stored. */
static void submitting_is_all_or_nothing(void)
{
    open_store(true);
    submit_plain("a", "k", 1);
    make_specs("a", "m", 5);
    memset(specs[4].scenario_hash, 'b', 64);
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 5, submitted, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "scenario-4");
    make_specs("a", "m", 5);
    specs[4].rollout_count = 0;
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 5, submitted, &error), STATUS_LIMIT);
    make_specs("a", "m", 5);
    EXPECT_INT(store->ops->submit(store, "a", 0, specs, 5, submitted, &error), STATUS_BAD_INPUT);
    EXPECT_INT(store->ops->submit(store, "", 1, specs, 5, submitted, &error), STATUS_BAD_INPUT);
    specs[2].parent_job_id = 12345;
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 5, submitted, &error), STATUS_CONFLICT);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 1);
    EXPECT_INT(store->ops->submit(store, "empty", 1, specs, 0, submitted, &error), STATUS_OK);
    EXPECT_INT(status_of("empty").jobs[JOB_QUEUED], 0);
    close_store();
}

/* Goal: what was submitted comes back in the lease and in job(), to the last bit. */
static void specs_come_back(void)
{
    open_store(true);
    make_specs("a", "k", 1);
    struct job_spec *spec = &specs[0];
    spec->seed = UINT64_C(0xfedcba9876543210);
    spec->priority = -7;
    spec->rollout_count = 257;
    spec->attempts_max = 9;
    strcpy(spec->model_hash, "model");
    strcpy(spec->sampler, "euler-4");
    strcpy(spec->prefix_key, "map");
    memset(spec->planner, 'x', sizeof spec->planner - 1);
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 5), 1);
    EXPECT_INT(leases[0].job_id, submitted[0].job_id);
    EXPECT_INT(leases[0].epoch, 1);
    EXPECT_INT(leases[0].attempt, 1);
    EXPECT(memcmp(&leases[0].spec, spec, sizeof *spec) == 0);
    get_job(submitted[0].job_id);
    EXPECT(memcmp(&job.spec, spec, sizeof *spec) == 0);
    EXPECT_INT(job.state, JOB_LEASED);
    EXPECT_TEXT(job.worker_id, "w");
    EXPECT_INT(store->ops->job(store, 999999, &job, &error), STATUS_NOT_FOUND);
    close_store();
}

/* Goal: another suite's finished result is taken over at no cost, and reported as the suite's. */
static void finished_results_are_taken_over(void)
{
    struct store_outcome_filter filter = {.limit = 10, .suite_id = "b"};
    uint32_t count = 0;

    open_store(true);
    submit_plain("a", "k", 2);
    int64_t original = submitted[0].job_id;
    EXPECT_INT(claim("w", 1), 1);
    complete_one("w", COMPLETION_DONE);
    int64_t cost = status_of("a").cost_uusd;
    submit_plain("b", "k", 2);
    EXPECT(submitted[0].memoised && !submitted[0].existed && submitted[0].job_id != original);
    EXPECT(!submitted[1].memoised);
    struct store_suite_status status = status_of("b");
    EXPECT_INT(status.jobs[JOB_DONE], 1);
    EXPECT_INT(status.jobs[JOB_QUEUED], 1);
    EXPECT_INT(status.memoised_jobs, 1);
    EXPECT_INT(status.rollouts[VERDICT_PASS], 1);
    EXPECT_INT(status.cost_uusd, 0);
    EXPECT_INT(status_of("a").cost_uusd, cost);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(outcomes[0].suite_id, "b");
    EXPECT_INT(outcomes[0].job_id, submitted[0].job_id);
    int64_t id = outcomes[0].id;
    filter = (struct store_outcome_filter){.limit = 10, .job_id = original};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(outcomes[0].id, id);
    EXPECT_TEXT(outcomes[0].suite_id, "a");
    /* Again, from the one that was itself taken over; and repeated. */
    int64_t taken = submitted[0].job_id;
    submit_plain("c", "k", 1);
    EXPECT(submitted[0].memoised);
    submit_plain("b", "k", 1);
    EXPECT(submitted[0].existed && submitted[0].memoised && submitted[0].job_id == taken);
    EXPECT_INT(status_of("c").rollouts[VERDICT_PASS], 1);
    filter = (struct store_outcome_filter){.limit = 10};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    close_store();
}

/* Goal: a key that is another question's answers nothing: keys are their submitters' words. Method:
 * jobs with the key of a finished one that differ in one member each. */
static void keys_of_other_questions_answer_nothing(void)
{
    enum { DIFFERENCES = 11 };

    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("w", 1), 1);
    complete_one("w", COMPLETION_DONE);
    for (int i = 0; i < DIFFERENCES; i++) {
        char suite[16];
        snprintf(suite, sizeof suite, "b-%d", i);
        make_specs(suite, "k", 1);
        struct job_spec *spec = &specs[0];
        char *const texts[] = {spec->planner, spec->planner_hash, spec->model_hash,  spec->sampler,
                               spec->backend, spec->revision,     spec->scenario_id, spec->rig};
        if (i < (int)COUNT_OF(texts)) {
            strcpy(texts[i], "other");
            if (texts[i] == spec->rig) {
                sha256_hex("other", 5, spec->rig);
            }
        } else if (i == 8) {
            spec->seed ^= UINT64_C(1) << 40;
        } else if (i == 9) {
            spec->tier = spec->tier == TIER_OBJECT ? TIER_REPLAY : TIER_OBJECT;
        } else {
            const char body[] = "{\"another\": 1}";
            sha256_hex(body, sizeof body - 1, spec->scenario_hash);
            EXPECT_OK(
                store->ops->scenario_put(store, spec->scenario_hash, body, sizeof body - 1, &error),
                error);
        }
        submit_made(suite, 1, 1);
        EXPECT(!submitted[0].memoised && !submitted[0].existed);
        EXPECT_INT(status_of(suite).jobs[JOB_QUEUED], 1);
    }
    submit_plain("c", "k", 1);
    EXPECT(submitted[0].memoised);
    close_store();
}

/* Goal: a job answers in place of one of its own suite alone. */
static void parents_are_of_the_suite(void)
{
    open_store(true);
    submit_plain("a", "k", 1);
    int64_t theirs = submitted[0].job_id;
    make_specs("b", "k", 1);
    specs[0].parent_job_id = theirs;
    EXPECT_INT(store->ops->submit(store, "b", 1, specs, 1, submitted, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "answer for");
    make_specs("a", "l", 1);
    specs[0].parent_job_id = theirs;
    submit_made("a", 1, 1);
    EXPECT(!submitted[0].existed);
    close_store();
}

/* Goal: suites are listed newest first. */
static void suites_are_listed(void)
{
    char ids[8][LIMIT_ID_BYTES];
    uint32_t count = 0;

    open_store(true);
    EXPECT_OK(store->ops->suites(store, ids, 8, &count, &error), error);
    EXPECT_INT(count, 0);
    submit_plain("first", "k", 1);
    submit_plain("second", "k", 1);
    submit_plain("first", "k", 1);
    EXPECT_OK(store->ops->suites(store, ids, 8, &count, &error), error);
    EXPECT_INT(count, 2);
    EXPECT_TEXT(ids[0], "second");
    EXPECT_OK(store->ops->suites(store, ids, 1, &count, &error), error);
    EXPECT_INT(count, 1);
    struct store_suite_status status;
    EXPECT_INT(store->ops->suite_status(store, "none", &status, &error), STATUS_NOT_FOUND);
    close_store();
}

/* ---- claiming ---- */

/* Goal: priority first, then age; other pools' jobs are not touched. */
static void claims_go_by_priority_and_age(void)
{
    static const int32_t priorities[] = {0, 5, 0, -1, 5};
    static const uint32_t expected[] = {1, 4, 0, 2, 3};

    open_store(true);
    make_specs("a", "k", 6);
    for (uint32_t i = 0; i < 5; i++) {
        specs[i].priority = priorities[i];
    }
    strcpy(specs[5].pool, "teacher");
    submit_made("a", 1, 6);
    EXPECT_INT(claim("w", 100), 5);
    for (uint32_t i = 0; i < 5; i++) {
        EXPECT_INT(leases[i].job_id, submitted[expected[i]].job_id);
    }
    EXPECT_INT(claim("w", 100), 0);
    EXPECT_INT(status_of("a").jobs[JOB_LEASED], 5);
    close_store();
}

/* Goal: a worker gets jobs that share its context first, in the batch and in its next claim. */
static void claims_prefer_the_same_prefix(void)
{
    open_store(true);
    make_specs("a", "k", 12);
    for (uint32_t i = 0; i < 12; i++) {
        snprintf(specs[i].prefix_key, sizeof specs[i].prefix_key, "map-%" PRIu32, i % 3);
    }
    submit_made("a", 1, 12);
    EXPECT_INT(claim("w", 3), 3);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_TEXT(leases[i].spec.prefix_key, "map-0");
    }
    EXPECT_INT(claim("other", 1), 1); /* has no context yet: the oldest */
    EXPECT_INT(leases[0].job_id, submitted[1].job_id);
    EXPECT_INT(claim("third", 2), 2);
    EXPECT_INT(leases[0].job_id, submitted[2].job_id);
    EXPECT_INT(leases[1].job_id, submitted[5].job_id);
    EXPECT_INT(claim("third", 1), 1);
    EXPECT_INT(leases[0].job_id, submitted[8].job_id);
    EXPECT_INT(claim("w", 2), 2);
    EXPECT_INT(leases[0].job_id, submitted[9].job_id); /* map-0, then the oldest */
    EXPECT_INT(leases[1].job_id, submitted[4].job_id);
    close_store();
}

/* Goal: suites get rollouts in proportion to their weights, with and without affinity, whatever
 * the size of their jobs. Method: three suites with more jobs than are claimed; compare shares. */
static void suites_share_by_weight(void)
{
    static const uint32_t weights[] = {1, 3, 1};
    static const uint32_t sizes[] = {1, 1, 5};
    static const char *const names[] = {"a", "b", "c"};

    for (int affinity = 0; affinity < 2; affinity++) {
        for (uint32_t batch = 1; batch <= 16; batch *= 16) {
            int64_t rollouts[3] = {0};
            int64_t total = 0;
            open_store(true);
            for (int s = 0; s < 3; s++) {
                make_specs(names[s], names[s], 500);
                for (int i = 0; i < 500; i++) {
                    specs[i].rollout_count = sizes[s];
                    strcpy(specs[i].prefix_key, affinity ? names[s] : "");
                }
                submit_made(names[s], weights[s], 500);
            }
            while (total < 600) {
                uint32_t count = claim("w", batch);
                EXPECT_INT(count, batch);
                for (uint32_t i = 0; i < count; i++) {
                    rollouts[leases[i].spec.suite_id[0] - 'a'] += leases[i].spec.rollout_count;
                    total += leases[i].spec.rollout_count;
                }
            }
            /* 1/5, 3/5, 1/5, within what quantum and debt allow. */
            EXPECT_NEAR(rollouts[0], (double)total / 5, 60);
            EXPECT_NEAR(rollouts[1], (double)total * 3 / 5, 60);
            EXPECT_NEAR(rollouts[2], (double)total / 5, 60);
            close_store();
        }
    }
}

/* Goal: a few quick jobs do not wait for many slow ones of another suite, and the slow ones are not
 * forgotten. */
static void quick_jobs_pass_slow_ones(void)
{
    enum { SLOW = 40, QUICK = 300 };
    uint32_t first_slow = 0;
    uint32_t quick = 0;
    open_store(true);
    make_specs("slow", "s", SLOW);
    for (int i = 0; i < SLOW; i++) {
        specs[i].tier = TIER_STUDENT;
        specs[i].rollout_count = 2;
    }
    submit_made("slow", 1, SLOW);
    make_specs("quick", "q", QUICK);
    submit_made("quick", 1, QUICK);
    for (uint32_t taken = 1; quick < QUICK; taken++) {
        EXPECT_INT(claim("w", 1), 1);
        bool slow = leases[0].spec.tier == TIER_STUDENT;
        first_slow = slow && first_slow == 0 ? taken : first_slow;
        quick += !slow;
    }
    /* 2 x 128 units of cost before a slow one's turn, and eight in a round. */
    EXPECT(first_slow > 240 && first_slow <= 265);
    close_store();
}

static void set_tenant(struct tenant tenant)
{
    EXPECT_OK(store->ops->tenant_set(store, &tenant, TENANT_SETTINGS, &error), error);
}

static enum status submit_as(const char *tenant, const char *suite, uint32_t count)
{
    return store->ops->submit_as(store, tenant, suite, 1, SUITE_CLASS_SAME, 0, specs, count,
                                 submitted, &error);
}

/* Goal: tenants get rollouts in proportion to their weights, however many suites they have and
 * whatever those weigh, with and without affinity; what is nobody's counts as one. Method: as
 * above. */
static void tenants_share_by_weight(void)
{
    static const char *const owners[] = {"", "a", "a", "a", "b"};

    for (int affinity = 0; affinity < 2; affinity++) {
        for (uint32_t batch = 1; batch <= 16; batch *= 16) {
            int64_t rollouts[3] = {0};
            int64_t total = 0;
            open_store(true);
            set_tenant((struct tenant){.name = "a", .weight = 3});
            for (int s = 0; s < 5; s++) {
                char name[8];
                snprintf(name, sizeof name, "%c%d", owners[s][0] != '\0' ? owners[s][0] : 'c', s);
                make_specs(name, name, 500);
                for (int i = 0; i < 500; i++) {
                    specs[i].rollout_count = 1 + (uint32_t)s % 3;
                    strcpy(specs[i].prefix_key, affinity ? name : "");
                }
                EXPECT_OK(submit_as(owners[s], name, 500), error);
                submit_made(name, owners[s][0] == 'a' ? 1 : 7, 500);
            }
            while (total < 1000) {
                uint32_t count = claim("w", batch);
                EXPECT_INT(count, batch);
                for (uint32_t i = 0; i < count; i++) {
                    rollouts[leases[i].spec.suite_id[0] - 'a'] += leases[i].spec.rollout_count;
                    total += leases[i].spec.rollout_count;
                }
            }
            /* 3/5, 1/5, 1/5, within what quantum and debt allow. */
            EXPECT_NEAR(rollouts[0], (double)total * 3 / 5, 60);
            EXPECT_NEAR(rollouts[1], (double)total / 5, 60);
            EXPECT_NEAR(rollouts[2], (double)total / 5, 60);
            close_store();
        }
    }
}

static struct tenant tenant_now(const char *name)
{
    struct tenant found[8];
    uint32_t count = 0;
    EXPECT_OK(store->ops->tenants(store, "", found, 8, &count, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(found[i].name, name) == 0) {
            return found[i];
        }
    }
    TEST_FAIL("there is no tenant %s", name);
}

/* Goal: a suite is the tenant's that submitted it first. */
static void suites_belong_to_tenants(void)
{
    open_store(true);
    make_specs("a", "a", 2);
    EXPECT_OK(submit_as("acme", "a", 2), error);
    EXPECT_INT(submit_as("beta", "a", 2), STATUS_MISMATCH);
    EXPECT_INT(submit_as("", "a", 2), STATUS_MISMATCH);
    EXPECT_CONTAINS(error.text, "acme");
    EXPECT_OK(submit_as("acme", "a", 2), error);
    submit_made("a", 2, 2); /* in nobody's name: as who may do everything */
    make_specs("b", "b", 1);
    submit_made("b", 1, 1);
    EXPECT_INT(submit_as("acme", "b", 1), STATUS_MISMATCH);
    EXPECT_OK(submit_as("", "b", 1), error);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 2);
    EXPECT_INT(tenant_now("acme").weight, 1); /* as one that nobody has set is made */
    set_tenant((struct tenant){.name = "acme", .weight = 5, .uusd_day_max = 7});
    EXPECT_INT(tenant_now("acme").jobs_queued, 2);
    EXPECT_INT(tenant_now("acme").uusd_day_max, 7);
    struct tenant wrong = {.name = "acme", .weight = 0};
    EXPECT_INT(store->ops->tenant_set(store, &wrong, TENANT_SETTINGS, &error), STATUS_BAD_INPUT);
    close_store();
}

/* Goal: a change of a tenant touches what it names and nothing else; one that is for a version is
 * made while that is the tenant's, once, however often it is sent. */
static void tenants_are_set_by_field(void)
{
    static const uint32_t settings[] = {
        TENANT_WEIGHT,       TENANT_JOBS_QUEUED,    TENANT_UUSD_DAY, TENANT_UUSD_MONTH,
        TENANT_UNITS_LEASED, TENANT_SCENARIO_BYTES, TENANT_SESSIONS};
    struct tenant change = {.name = "acme",
                            .weight = 2,
                            .jobs_queued_max = 3,
                            .uusd_day_max = 4,
                            .uusd_month_max = 5,
                            .units_leased_max = 6,
                            .scenario_bytes_max = 7,
                            .sessions_max = 8};

    open_store(true);
    for (size_t i = 0; i < COUNT_OF(settings); i++) { /* nothing else of the record is looked at */
        struct tenant one = {.name = "acme", .weight = -9, .jobs_queued_max = -9};
        one.weight = settings[i] == TENANT_WEIGHT ? change.weight : one.weight;
        one.jobs_queued_max = settings[i] == TENANT_JOBS_QUEUED ? change.jobs_queued_max : -9;
        one.uusd_day_max = change.uusd_day_max;
        one.uusd_month_max = change.uusd_month_max;
        one.units_leased_max = change.units_leased_max;
        one.scenario_bytes_max = change.scenario_bytes_max;
        one.sessions_max = change.sessions_max;
        EXPECT_OK(store->ops->tenant_set(store, &one, settings[i], &error), error);
    }
    struct tenant now = tenant_now("acme");
    EXPECT_INT(now.version, 7);
    change.version = 7;
    EXPECT(memcmp(&now, &change, sizeof now) == 0);
    change.jobs_queued_max = 0;
    EXPECT_OK(store->ops->tenant_set(store, &change, TENANT_JOBS_QUEUED, &error), error);
    EXPECT_INT(tenant_now("acme").jobs_queued_max, 0);

    change = (struct tenant){.name = "acme", .weight = 9, .version = 8};
    for (int i = 0; i < 2; i++) { /* an answer that was lost */
        EXPECT_OK(store->ops->tenant_set(store, &change, TENANT_WEIGHT | TENANT_VERSION, &error),
                  error);
        EXPECT_INT(tenant_now("acme").version, 9);
    }
    change.weight = 10;
    EXPECT_INT(store->ops->tenant_set(store, &change, TENANT_WEIGHT | TENANT_VERSION, &error),
               STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "expected version 8, found 9");
    EXPECT_INT(tenant_now("acme").weight, 9);
    snprintf(change.name, sizeof change.name, "nobody");
    EXPECT_INT(store->ops->tenant_set(store, &change, TENANT_WEIGHT | TENANT_VERSION, &error),
               STATUS_CONFLICT);
    close_store();
}

/* Goal: what a quota does not allow is refused whole, and what is there goes on. */
static void quotas_refuse_what_is_new(void)
{
    enum { HOUR_MS = 3600 * 1000 };
    open_store(true);
    set_tenant((struct tenant){.name = "acme", .weight = 1, .jobs_queued_max = 10});
    make_specs("a", "a", 10);
    EXPECT_OK(submit_as("acme", "a", 10), error);
    make_specs("a", "more", 1);
    EXPECT_INT(submit_as("acme", "a", 1), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "may have 10 jobs queued and has 10");
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_LIMIT);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 10);
    make_specs("a", "a", 10);
    EXPECT_OK(submit_as("acme", "a", 10), error); /* brings nothing new */
    EXPECT_INT(claim("w", 1), 1);
    make_specs("a", "more", 1);
    EXPECT_OK(submit_as("acme", "a", 1), error);
    EXPECT_INT(tenant_now("acme").jobs_queued, 10);
    EXPECT_INT(tenant_now("acme").jobs_leased, 1);

    complete_one("w", COMPLETION_DONE);
    int64_t cost_uusd = ledger_of("a", NULL).cost_uusd;
    EXPECT(cost_uusd > 0);
    EXPECT_INT(tenant_now("acme").uusd_day, cost_uusd);
    set_tenant((struct tenant){.name = "acme", .weight = 1, .uusd_day_max = cost_uusd});
    make_specs("a", "late", 1);
    EXPECT_INT(submit_as("acme", "a", 1), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "in a day");
    EXPECT_INT(claim("w", 1), 1); /* what is queued goes on */
    advance_ms(24 * HOUR_MS);
    EXPECT_OK(submit_as("acme", "a", 1), error);
    EXPECT_INT(tenant_now("acme").uusd_day, ledger_of("a", NULL).cost_uusd - cost_uusd);
    set_tenant((struct tenant){.name = "acme", .weight = 1, .uusd_month_max = cost_uusd});
    make_specs("a", "later", 1);
    EXPECT_INT(submit_as("acme", "a", 1), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "in a month");
    advance_ms(INT64_C(20) * 24 * HOUR_MS); /* from the middle of a month */
    EXPECT_OK(submit_as("acme", "a", 1), error);
    close_store();
}

/* A scenario of so many bytes, other ones for another number. */
static enum status bring(const char *tenant, int number, size_t bytes)
{
    char body[320];
    char hash[SHA256_HEX_BYTES];
    snprintf(body, sizeof body, "{\"n\":%d}%250s", number, "");
    sha256_hex(body, bytes, hash);
    return tenant == NULL ? store->ops->scenario_put(store, hash, body, bytes, &error)
                          : store->ops->scenario_put_as(store, tenant, hash, body, bytes, &error);
}

/* Goal: the bytes of scenarios that a tenant brings stay under its quota; what is there already
 * costs nothing, whoever brought it, and nobody's scenarios are nobody's. */
static void scenario_bytes_stay_under_a_quota(void)
{
    open_store(true);
    set_tenant((struct tenant){.name = "acme", .weight = 1, .scenario_bytes_max = 250});
    EXPECT_OK(bring(NULL, 0, 200), error);
    EXPECT_OK(bring("acme", 0, 200), error);
    EXPECT_INT(tenant_now("acme").scenario_bytes, 0);
    EXPECT_OK(bring("acme", 1, 150), error);
    EXPECT_INT(bring("acme", 2, 101), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "may have 250 bytes of scenarios stored and has 150");
    EXPECT_INT(tenant_now("acme").scenario_bytes, 150);
    EXPECT_OK(bring("acme", 2, 100), error);
    EXPECT_INT(tenant_now("acme").scenario_bytes, 250);
    EXPECT_OK(bring("acme", 2, 100), error);
    EXPECT_INT(bring("acme", 3, 20), STATUS_LIMIT);
    EXPECT_OK(bring("beta", 3, 20), error); /* refused bodies are not there */
    EXPECT_INT(tenant_now("beta").scenario_bytes, 20);
    EXPECT_OK(bring("acme", 3, 20), error);
    set_tenant((struct tenant){.name = "acme", .weight = 1});
    EXPECT_OK(bring("acme", 4, 200), error);
    EXPECT_INT(tenant_now("acme").scenario_bytes, 450);
    EXPECT_INT(tenant_now("acme").scenario_bytes_max, 0);
    char longest[LIMIT_ID_BYTES + 1]; /* one byte longer than a name may be, so not another one's */
    memset(longest, 'a', LIMIT_ID_BYTES);
    longest[LIMIT_ID_BYTES] = '\0';
    EXPECT_INT(bring(longest, 5, 30), STATUS_LIMIT);
    make_specs("longest", "longest", 1);
    EXPECT_INT(submit_as(longest, "longest", 1), STATUS_LIMIT);
    struct tenant wrong = {.name = "acme", .weight = 1, .scenario_bytes_max = -1};
    EXPECT_INT(store->ops->tenant_set(store, &wrong, TENANT_SETTINGS, &error), STATUS_BAD_INPUT);
    close_store();
}

/* Goal: a tenant's sessions have a limit, which a server of the store asks for by its name. */
static void sessions_have_a_quota(void)
{
    int64_t most = -1;
    open_store(true);
    set_tenant((struct tenant){.name = "acme", .weight = 1, .sessions_max = 3});
    EXPECT_INT(tenant_now("acme").sessions_max, 3);
    if (store->ops->tenant_sessions != NULL) { /* a server's own store */
        EXPECT_OK(store->ops->tenant_sessions(store, "acme", &most, &error), error);
        EXPECT_INT(most, 3);
        EXPECT_OK(store->ops->tenant_sessions(store, "Acme", &most, &error), error);
        EXPECT_INT(most, 0);
    }
    set_tenant((struct tenant){.name = "acme", .weight = 1});
    EXPECT_INT(tenant_now("acme").sessions_max, 0);
    struct tenant wrong = {.name = "acme", .weight = 1, .sessions_max = -1};
    EXPECT_INT(store->ops->tenant_set(store, &wrong, TENANT_SESSIONS, &error), STATUS_BAD_INPUT);
    close_store();
}

/* Puts a scenario of tenant acme with a map and reads it again. */
static void expect_body_back(int number, const char *map, const char *end)
{
    static char body[64 << 10];
    char hash[SHA256_HEX_BYTES];
    char *found;
    size_t found_bytes;
    size_t bytes =
        (size_t)snprintf(body, sizeof body, "{\"id\":\"s%d\",\"map\":%s%s", number, map, end);
    EXPECT(bytes < sizeof body);
    sha256_hex(body, bytes, hash);
    int64_t before = number > 0 ? tenant_now("acme").scenario_bytes : 0;
    EXPECT_OK(store->ops->scenario_put_as(store, "acme", hash, body, bytes, &error), error);
    EXPECT_INT(tenant_now("acme").scenario_bytes - before, bytes);
    EXPECT_OK(store->ops->scenario_get(store, hash, &found, &found_bytes, &error), error);
    EXPECT_INT(found_bytes, bytes);
    EXPECT(memcmp(found, body, bytes) == 0);
    free(found);
}

/* Goal: a scenario comes back byte by byte, whether its map is long enough to be kept apart, others
 * have it, its texts look like its end, or it has none. */
static void long_maps_come_back(void)
{
    static char map[40 << 10];
    open_store(true);
    set_tenant((struct tenant){.name = "acme", .weight = 1});
    for (int filler = 8 << 10; filler <= 32 << 10; filler *= 2) {
        static const char *const texts[] = {"}", "\\\"}}", "{", "\\\\"};
        for (int i = 0; i < 4; i++) {
            snprintf(map, sizeof map, "{\"a\":{\"b\":\"%s\"},\"c\":\"%*s\"}", texts[i], filler, "");
            expect_body_back(filler + 2 * i, map, ",\"horizon_s\":5,\"prompt\":\"null\"}");
            expect_body_back(filler + 2 * i + 1, map, "}");
        }
    }
    map[strlen(map) - 1] = '\0'; /* never ends */
    expect_body_back(1, map, "");
    close_store();
}

/* Submits jobs `first` .. of a student's, whose rollouts cost 128 units each. */
static void submit_students(const char *tenant, const char *suite, uint32_t count)
{
    make_specs(suite, suite, count);
    for (uint32_t i = 0; i < count; i++) {
        specs[i].tier = TIER_STUDENT;
    }
    EXPECT_OK(submit_as(tenant, suite, count), error);
}

/* Goal: what is leased of a tenant at once stays under its limit, whatever claims ask for and
 * however leases end; others' jobs go on; with nothing leased one job goes, however large. */
static void leases_stay_under_a_limit(void)
{
    open_store(true);
    set_tenant((struct tenant){.name = "acme", .weight = 1, .units_leased_max = 2 * 128});
    submit_students("acme", "a", 6);
    EXPECT_INT(claim("w", 4), 2);
    EXPECT_INT(tenant_now("acme").units_leased, 2 * 128);
    EXPECT_INT(claim("v", 4), 0);
    submit_students("beta", "b", 2);
    EXPECT_INT(claim("v", 4), 2); /* nobody's limit but acme's */
    EXPECT(strcmp(leases[0].spec.suite_id, "b") == 0);
    EXPECT_INT(tenant_now("beta").units_leased, 2 * 128);
    EXPECT_INT(store->ops->worker_gone(store, "v", &error), STATUS_OK);
    EXPECT_INT(tenant_now("beta").units_leased, 0);

    EXPECT_INT(store->ops->worker_gone(store, "w", &error), STATUS_OK); /* acme's come back */
    EXPECT_INT(tenant_now("acme").units_leased, 0);
    EXPECT_INT(claim("x", 8), 4); /* two of each tenant */
    EXPECT_INT(tenant_now("acme").units_leased, 2 * 128);
    for (int i = 0; i < 4 && strcmp(leases[0].spec.suite_id, "a") != 0; i++) {
        leases[0] = leases[i];
    }
    complete_one("x", COMPLETION_DONE);
    EXPECT_INT(tenant_now("acme").units_leased, 128);
    EXPECT_INT(claim("y", 4), 1);

    set_tenant((struct tenant){.name = "acme", .weight = 1, .units_leased_max = 1});
    EXPECT_INT(claim("z", 4), 0);
    EXPECT_OK(store->ops->worker_gone(store, "x", &error), error);
    EXPECT_OK(store->ops->worker_gone(store, "y", &error), error);
    EXPECT_INT(tenant_now("acme").units_leased, 0);
    EXPECT_INT(claim("z", 1), 1);
    set_tenant((struct tenant){.name = "acme", .weight = 1});
    EXPECT_INT(claim("z", 8), 6); /* all that is left */
    int64_t cancelled = 0;
    EXPECT_OK(store->ops->cancel(store, "a", &cancelled, &error), error);
    EXPECT_INT(tenant_now("acme").units_leased, 0);
    close_store();
}

struct waiting {
    uint32_t count;
    enum status status;
    struct job_lease lease;
    struct error error;
};

static void *claim_waiting(void *context)
{
    struct waiting *waiting = context;
    struct store_worker worker = worker_of("waiter", "bulk");
    int64_t ttl_ms = 0;

    waiting->status = store->ops->claim(store, &worker, fresh_claim_id(), 1, 60000, &waiting->lease,
                                        &waiting->count, &ttl_ms, &waiting->error);
    return NULL;
}

/* Goal: a waiting claim gets the job that is submitted while it waits. (Whether it waits yet when
 * the submission comes is up to the machine; both orders must end well.) */
static void claims_wait_for_work(void)
{
    static struct waiting waiting;
    pthread_t thread;

    open_store(true);
    memset(&waiting, 0, sizeof waiting);
    EXPECT_INT(pthread_create(&thread, NULL, claim_waiting, &waiting), 0);
    submit_plain("a", "k", 1);
    pthread_join(thread, NULL);
    EXPECT_OK(waiting.status, waiting.error);
    EXPECT_INT(waiting.count, 1);
    EXPECT_INT(waiting.lease.job_id, submitted[0].job_id);
    close_store();
}

/* Goal: the same of a claim that its tenant's limit holds up, when a lease under it has ended. */
static void leases_that_end_make_room(void)
{
    static struct waiting waiting;
    pthread_t thread;

    open_store(true);
    set_tenant((struct tenant){.name = "acme", .weight = 1, .units_leased_max = 128});
    submit_students("acme", "a", 2);
    EXPECT_INT(claim("w", 2), 1);
    memset(&waiting, 0, sizeof waiting);
    EXPECT_INT(pthread_create(&thread, NULL, claim_waiting, &waiting), 0);
    complete_one("w", COMPLETION_DONE);
    pthread_join(thread, NULL);
    EXPECT_OK(waiting.status, waiting.error);
    EXPECT_INT(waiting.count, 1);
    EXPECT_INT(tenant_now("acme").units_leased, 128);
    close_store();
}

/* Goal: a worker is what it said it was; nonsense is refused. */
static void workers_are_checked(void)
{
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    struct store_worker worker = worker_of("", "bulk");

    open_store(true);
    EXPECT_INT(
        store->ops->claim(store, &worker, fresh_claim_id(), 1, 0, leases, &count, &ttl_ms, &error),
        STATUS_BAD_INPUT);
    worker = worker_of("w", "bulk");
    EXPECT(store->ops->claim(store, &worker, fresh_claim_id(), 0, 0, leases, &count, &ttl_ms,
                             &error) != STATUS_OK);
    EXPECT_INT(claim("w", 1), 0);
    worker = worker_of("w", "teacher");
    EXPECT_INT(
        store->ops->claim(store, &worker, fresh_claim_id(), 1, 0, leases, &count, &ttl_ms, &error),
        STATUS_CONFLICT);
    worker = worker_of("v", "bulk");
    strcpy(worker.device, "abacus");
    EXPECT(store->ops->claim(store, &worker, fresh_claim_id(), 1, 0, leases, &count, &ttl_ms,
                             &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, "abacus");
    close_store();
}

/* ---- claims that are repeated ---- */

/* Answer to one claim: jobs and epochs. */
struct answer {
    uint32_t count;
    int64_t job_ids[8];
    int64_t epochs[8];
    int64_t next_id;
};

static struct answer claim_as(const char *worker_id, int64_t claim_id, uint32_t max)
{
    struct store_worker worker = worker_of(worker_id, "bulk");
    struct answer answer = {.next_id = claim_id};
    int64_t ttl_ms = 0;

    EXPECT_OK(store->ops->claim(store, &worker, &answer.next_id, max, 0, leases, &answer.count,
                                &ttl_ms, &error),
              error);
    EXPECT_INT(ttl_ms, TTL_MS);
    EXPECT(answer.count <= max && max <= 8);
    for (uint32_t i = 0; i < answer.count; i++) {
        answer.job_ids[i] = leases[i].job_id;
        answer.epochs[i] = leases[i].epoch;
        EXPECT(leases[i].attempt >= 1);
        EXPECT_TEXT(leases[i].spec.suite_id, "a");
    }
    return answer;
}

static void expect_same(struct answer found, struct answer expected)
{
    EXPECT_INT(found.count, expected.count);
    EXPECT_INT(found.next_id, expected.next_id);
    for (uint32_t i = 0; i < expected.count; i++) {
        EXPECT_INT(found.job_ids[i], expected.job_ids[i]);
        EXPECT_INT(found.epochs[i], expected.epochs[i]);
    }
}

/* Goal: the same claim gets the same leases, whoever has opened the store since, and no others;
 * each id leases once. */
static void a_repeated_claim_gets_its_leases(void)
{
    open_store(true);
    submit_plain("a", "k", 8);
    struct answer first = claim_as("w", 1, 3);
    EXPECT_INT(first.count, 3);
    EXPECT_INT(first.next_id, 2);
    expect_same(claim_as("w", 1, 3), first);
    expect_same(claim_as("w", 1, 5), first); /* for more jobs, too */
    EXPECT_INT(status_of("a").jobs[JOB_LEASED], 3);
    close_store();
    open_store(false);
    expect_same(claim_as("w", 1, 3), first);
    EXPECT_INT(status_of("a").jobs[JOB_LEASED], 3);
    struct answer second = claim_as("w", 2, 2);
    EXPECT_INT(second.count, 2);
    EXPECT_INT(second.next_id, 3);
    first.next_id = 3; /* one that comes late: its leases are in no danger */
    expect_same(claim_as("w", 1, 3), first);
    expect_same(claim_as("w", 2, 2), second);
    /* Each worker has ids of its own. */
    struct answer other = claim_as("v", 1, 3);
    EXPECT_INT(other.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT(other.job_ids[i] != first.job_ids[i]);
    }
    EXPECT_INT(status_of("a").jobs[JOB_LEASED], 8);
    close_store();
}

/* Goal: of the leases of a repeated claim only those come that have not ended, whatever ended the
 * others; where all have, none come, and the id of a claim that may lease. */
static void a_repeated_claim_finds_what_has_not_ended(void)
{
    open_store(true);
    submit_plain("a", "k", 4);
    struct answer first = claim_as("w", 1, 4);
    EXPECT_INT(first.count, 4);
    make_completion(0, "w", COMPLETION_DONE);
    make_completion(1, "w", COMPLETION_RELEASED);
    complete(2);
    struct answer left = claim_as("w", 1, 4);
    EXPECT_INT(left.count, 2);
    EXPECT_INT(left.job_ids[0], first.job_ids[2]);
    EXPECT_INT(left.job_ids[1], first.job_ids[3]);
    /* A job that was handed back comes again under another id, and stays out of this one. */
    struct answer again = claim_as("w", 2, 4);
    EXPECT_INT(again.count, 1);
    EXPECT_INT(again.job_ids[0], first.job_ids[1]);
    EXPECT_INT(again.epochs[0], 2);
    EXPECT_INT(claim_as("w", 1, 4).count, 2);
    /* The worker is not heard of for too long. */
    advance_ms(TTL_MS + 1);
    EXPECT_INT(claim("elsewhere", 1), 1);
    for (int start = 0; start < 2; start++) {
        struct answer none = claim_as("w", 2, 4);
        EXPECT_INT(none.count, 0);
        EXPECT_INT(none.next_id, 3);
        EXPECT_INT(claim_as("w", 1, 4).count, 0);
        close_store();
        open_store(false);
    }
    EXPECT_INT(claim_as("w", 3, 4).count, 2);
    EXPECT_INT(status_of("a").jobs[JOB_LEASED], 3);
    close_store();
}

/* Goal: an id that found nothing is used again, also after a restart, so that a claim of it which
 * comes late leases nothing that its worker will not hear of. */
static void an_id_without_leases_is_used_again(void)
{
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    int64_t claim_id = 1;
    struct store_worker worker = worker_of("w", "bulk");

    open_store(true);
    EXPECT_INT(claim_as("w", 1, 4).next_id, 1);
    close_store();
    open_store(false);
    submit_plain("a", "k", 4);
    struct answer late = claim_as("w", 1, 3);
    EXPECT_INT(late.count, 3);
    expect_same(claim_as("w", 1, 3), late);
    /* For fewer jobs than it has leased: some would be lost. */
    EXPECT_INT(store->ops->claim(store, &worker, &claim_id, 2, 0, leases, &count, &ttl_ms, &error),
               STATUS_CONFLICT);
    EXPECT_INT(claim_id, 1);
    expect_same(claim_as("w", 1, 3), late);
    for (claim_id = -1; claim_id < 1; claim_id++) {
        EXPECT_INT(
            store->ops->claim(store, &worker, &claim_id, 2, 0, leases, &count, &ttl_ms, &error),
            STATUS_BAD_INPUT);
    }
    close_store();
}

/* ---- leases ---- */

/* Goal: heartbeats keep jobs; without them they go to others, and what was reported is charged;
 * the late completion adds the difference only. */
static void leases_end_and_are_charged(void)
{
    struct store_worker worker = worker_of("w", "bulk");
    struct store_progress progress = {
        .device_ns = NS_PER_S, .metres_mm = 700, .mflop = 55, .ticks = 5};
    int64_t cancelled[1];
    uint32_t cancelled_count = 9;
    int64_t ttl_ms = 0;

    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("w", 1), 1);
    struct job_lease held = leases[0];
    progress.job_id = held.job_id;
    progress.epoch = held.epoch;
    for (int i = 0; i < 4; i++) {
        advance_ms(TTL_MS - 1);
        EXPECT_OK(store->ops->heartbeat(store, &worker, &progress, 1, cancelled, &cancelled_count,
                                        &ttl_ms, &error),
                  error);
        EXPECT_INT(cancelled_count, 0);
        EXPECT_INT(ttl_ms, TTL_MS);
        EXPECT_INT(status_of("a").ticks_running, 0); /* its scenario plans none */
        EXPECT_INT(claim("other", 1), 0);
    }
    advance_ms(TTL_MS);
    EXPECT_INT(claim("other", 1), 1);
    EXPECT_INT(leases[0].epoch, held.epoch + 1);
    EXPECT_INT(ledger_of("a", "lost").attempts, 1);
    EXPECT_INT(ledger_of("a", "lost").device_ns, NS_PER_S);
    EXPECT_INT(ledger_of("a", "lost").metres_mm, 700);
    EXPECT_INT(ledger_of("a", "lost").mflop, 55);
    /* It is told so when it comes back. */
    EXPECT_OK(store->ops->heartbeat(store, &worker, &progress, 1, cancelled, &cancelled_count,
                                    &ttl_ms, &error),
              error);
    EXPECT_INT(cancelled_count, 1);
    leases[0] = held;
    complete_one("w", COMPLETION_DONE);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    EXPECT_INT(ledger_of("a", NULL).attempts, 1);
    EXPECT_INT(ledger_of("a", "stale").device_ns, 2 * NS_PER_S);
    close_store();
}

/* Goal: losing workers does not use up attempts, but a job that loses every worker is dead. */
static void lost_jobs_are_not_tried_for_ever(void)
{
    int claims = 0;

    open_store(true);
    submit_plain("a", "k", 1);
    while (claims < 1000 && claim("w", 1) == 1) {
        claims++;
        EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    }
    EXPECT(claims > 3 && claims < 100);
    EXPECT_INT(status_of("a").jobs[JOB_DEAD], 1);
    EXPECT_INT(ledger_of("a", "lost").attempts, claims);
    get_job(submitted[0].job_id);
    EXPECT_CONTAINS(job.error, "vanished");
    close_store();
}

/* Goal: cancelling ends queued and running jobs; their workers are told; late work costs. */
static void cancelled_jobs_stay_cancelled(void)
{
    struct store_worker worker = worker_of("w", "bulk");
    struct store_progress progress[2];
    int64_t cancelled[2] = {0};
    uint32_t cancelled_count = 0;
    int64_t ttl_ms = 0;
    int64_t count = 0;

    open_store(true);
    submit_plain("b", "kb", 1);
    submit_plain("a", "k", 5);
    EXPECT_INT(claim("w", 3), 3);
    uint32_t of_a = strcmp(leases[0].spec.suite_id, "a") == 0 ? 0 : 1;
    EXPECT_TEXT(leases[of_a].spec.suite_id, "a");
    for (uint32_t i = 0; i < 2; i++) {
        progress[i] = (struct store_progress){
            .job_id = leases[i].job_id, .epoch = leases[i].epoch, .device_ns = 100};
    }
    EXPECT_OK(store->ops->cancel(store, "a", &count, &error), error);
    EXPECT_INT(count, 5);
    EXPECT_INT(status_of("a").jobs[JOB_CANCELLED], 5);
    EXPECT_INT(status_of("b").jobs[JOB_CANCELLED], 0);
    EXPECT_OK(store->ops->heartbeat(store, &worker, progress, 2, cancelled, &cancelled_count,
                                    &ttl_ms, &error),
              error);
    EXPECT(cancelled_count >= 1);
    make_completion(of_a, "w", COMPLETION_DONE);
    EXPECT_OK(store->ops->complete(store, &completions[of_a], 1, completed, &error), error);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    EXPECT_INT(ledger_of("a", "stale").device_ns, 2 * NS_PER_S);
    EXPECT_INT(status_of("a").jobs[JOB_CANCELLED], 5);
    EXPECT_OK(store->ops->cancel(store, "a", &count, &error), error);
    EXPECT_INT(count, 0);
    EXPECT_INT(store->ops->cancel(store, "none", &count, &error), STATUS_NOT_FOUND);
    close_store();
}
/* ---- life ---- */

/* Goal: everything is there after reopening; leases and backoffs start again from then. */
static void reopening_keeps_everything(void)
{
    open_store(true);
    submit_plain("a", "k", 5);
    EXPECT_INT(claim("w", 3), 3);
    make_completion(0, "w", COMPLETION_DONE);
    make_completion(1, "w", COMPLETION_FAILED);
    complete(2);
    struct job_lease held = leases[2];
    close_store();
    manual.now_ns = 5 * NS_PER_S; /* the machine was started again */
    open_store(false);
    struct store_suite_status status = status_of("a");
    EXPECT_INT(status.jobs[JOB_DONE], 1);
    EXPECT_INT(status.jobs[JOB_LEASED], 1);
    EXPECT_INT(status.jobs[JOB_QUEUED], 3);
    EXPECT_INT(claim("v", 9), 2);
    advance_ms(BACKOFF_MS - 1);
    EXPECT_INT(claim("v", 9), 0);
    advance_ms(1);
    EXPECT_INT(claim("v", 9), 1);
    leases[0] = held;
    complete_one("w", COMPLETION_DONE);
    EXPECT_INT(completed[0].status, STATUS_OK);
    advance_ms(TTL_MS + 1);
    EXPECT_INT(claim("x", 9), 3);
    close_store();
}

struct crew_member {
    char name[16];
    uint32_t done;
    enum status status;
    struct error error;
};

static void *crew_work(void *context)
{
    struct crew_member *member = context;
    struct store_worker worker = worker_of(member->name, "bulk");
    struct job_lease *own = calloc(4, sizeof *own);
    struct job_completion *ends = calloc(4, sizeof *ends);
    struct outcome *results = calloc(4, sizeof *results);
    struct store_completion_result answers[4];
    uint32_t count = 1;
    int64_t ttl_ms;

    while (count > 0 && member->status == STATUS_OK) {
        member->status = store->ops->claim(store, &worker, fresh_claim_id(), 4, 0, own, &count,
                                           &ttl_ms, &member->error);
        for (uint32_t i = 0; i < count && member->status == STATUS_OK; i++) {
            memset(&ends[i], 0, sizeof ends[i]);
            ends[i].job_id = own[i].job_id;
            ends[i].epoch = own[i].epoch;
            memcpy(ends[i].worker_id, worker.worker_id, sizeof worker.worker_id);
            fill_outcome(&results[i], &own[i].spec, VERDICT_PASS);
            ends[i].outcomes = &results[i];
            ends[i].outcome_count = 1;
            ends[i].device_ns = 1;
        }
        if (member->status == STATUS_OK && count > 0) {
            member->status = store->ops->complete(store, ends, count, answers, &member->error);
        }
        for (uint32_t i = 0; i < count && member->status == STATUS_OK; i++) {
            member->done += answers[i].status == STATUS_OK;
        }
    }
    free(own);
    free(ends);
    free(results);
    return NULL;
}

/* Goal: many threads at once; every job is done exactly once. */
static void crews_share_the_work(void)
{
    enum { CREW = 6, JOBS = 300 };
    struct crew_member crew[CREW];
    pthread_t threads[CREW];
    uint32_t done = 0;

    open_store(true);
    submit_plain("a", "k", JOBS);
    for (int i = 0; i < CREW; i++) {
        crew[i] = (struct crew_member){.status = STATUS_OK};
        snprintf(crew[i].name, sizeof crew[i].name, "w%d", i);
        EXPECT_INT(pthread_create(&threads[i], NULL, crew_work, &crew[i]), 0);
    }
    for (int i = 0; i < CREW; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < CREW; i++) {
        EXPECT_OK(crew[i].status, crew[i].error);
        done += crew[i].done;
    }
    EXPECT_INT(done, JOBS);
    EXPECT_INT(status_of("a").jobs[JOB_DONE], JOBS);
    EXPECT_INT(status_of("a").rollouts[VERDICT_PASS], JOBS);
    EXPECT_INT(ledger_of("a", "done").attempts, JOBS);
    close_store();
}

/* Goal: any sequence of calls does what the model says. */
static void random_calls_match_the_model(void)
{
    char why[1024];
    bool thorough = getenv("SWERVE_TEST_LONG") != NULL;
    uint64_t seed = 0;
    uint64_t end = thorough ? 40 : random_sequences(4, &seed);

    for (end += seed; seed < end; seed++) {
        open_store(true);
        const struct random_config config = {
            .store = store,
            .clock = &manual,
            .lease_ttl_ms = TTL_MS,
            .backoff_ms = BACKOFF_MS,
            .seed = seed,
            .steps = thorough ? 600 : 300,
        };
        if (!conformance_random(&config, why, sizeof why)) {
            TEST_FAIL("seed %d: %s", (int)seed, why);
        }
        close_store();
    }
}

int conformance_queue(const struct conformance_backend *tested)
{
    backend = tested;
    return finish_half(TEST_RUN(
        TEST(scenario_bodies_are_kept), TEST(artifacts_come_back), TEST(submitting_is_idempotent),
        TEST(submitting_is_all_or_nothing), TEST(specs_come_back),
        TEST(finished_results_are_taken_over), TEST(keys_of_other_questions_answer_nothing),
        TEST(parents_are_of_the_suite), TEST(suites_are_listed),
        TEST(claims_go_by_priority_and_age), TEST(claims_prefer_the_same_prefix),
        TEST(suites_share_by_weight), TEST(tenants_share_by_weight), TEST(suites_belong_to_tenants),
        TEST(tenants_are_set_by_field), TEST(quotas_refuse_what_is_new),
        TEST(scenario_bytes_stay_under_a_quota), TEST(sessions_have_a_quota),
        TEST(long_maps_come_back), TEST(leases_stay_under_a_limit), TEST(leases_that_end_make_room),
        TEST(quick_jobs_pass_slow_ones), TEST(claims_wait_for_work), TEST(workers_are_checked),
        TEST(a_repeated_claim_gets_its_leases), TEST(a_repeated_claim_finds_what_has_not_ended),
        TEST(an_id_without_leases_is_used_again), TEST(leases_end_and_are_charged),
        TEST(lost_jobs_are_not_tried_for_ever), TEST(cancelled_jobs_stay_cancelled),
        TEST(reopening_keeps_everything), TEST(crews_share_the_work),
        TEST(random_calls_match_the_model)));
}

int conformance_main(int argc, char **argv, const struct conformance_backend *tested)
{
    const char *part = argc > 1 ? argv[1] : "queue";
    if (strcmp(part, "models") == 0) {
        return conformance_models(tested);
    }
    if (strcmp(part, "trust") == 0) {
        return conformance_trust(tested);
    }
    if (strcmp(part, "door") == 0) {
        return conformance_door(tested);
    }
    if (strcmp(part, "budget") == 0) {
        return conformance_budget(tested);
    }
    if (strcmp(part, "classes") == 0) {
        return conformance_classes(tested);
    }
    return strcmp(part, "results") == 0 ? conformance_results(tested) : conformance_queue(tested);
}
