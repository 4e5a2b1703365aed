/*
 * Pairs of a real store. Goal: an audit that does not ask what the job asks that it repeats, or
 * that no teacher answered, is evidence of nothing: a hundred of them freeze nothing, and they are
 * told. Method: honest audits through the embedded store; then rows as an earlier version, which
 * did not compare, may have kept them, written into the file.
 */
#include "report/trust/follow.h"
#include "tests/store/conformance/conformance_file.h"

enum { HONEST = 40, FORGED = 100, JOBS = HONEST + FORGED };

static void submit_jobs(void)
{
    static struct job_spec plain;
    make_specs("suite", "-", 1);
    plain = specs[0];
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job_spec *spec = &specs[2 * i];
        struct job_spec *audit = &specs[2 * i + 1];
        *spec = plain;
        spec->seed = i;
        snprintf(spec->scenario_id, sizeof spec->scenario_id, "scene_%u", (unsigned)i);
        spec->tier = TIER_STUDENT;
        strcpy(spec->model_hash, "student");
        strcpy(spec->sampler, "agents/euler2/bf16");
        job_key_make(spec, 0);
        *audit = *spec;
        audit->tier = TIER_TEACHER;
        strcpy(audit->pool, "teacher");
        strcpy(audit->model_hash, "teacher");
        memcpy(audit->audit_key, spec->key, sizeof audit->audit_key);
        job_key_make(audit, 0);
        char key[SHA256_HEX_BYTES];
        job_key_audit(audit->key, key);
        memcpy(audit->key, key, sizeof key);
    }
    submit_made("suite", 1, 2 * JOBS);
}

/* The student passes everything; the teacher fails what is to be forged. */
static void answer_all(void)
{
    const char *worker;
    for (uint32_t count = claim_any(&worker, 100); count > 0; count = claim_any(&worker, 100)) {
        for (uint32_t i = 0; i < count; i++) {
            const struct job_spec *spec = &leases[i].spec;
            bool fails = spec->tier == TIER_TEACHER && spec->seed >= HONEST;
            make_completion(i, worker, COMPLETION_DONE);
            fill_outcome(&outcomes[i], spec, fails ? VERDICT_FAIL : VERDICT_PASS);
        }
        complete(count);
    }
}

static void expect_pairs(uint32_t honest, int64_t unlike, bool frozen)
{
    struct pairs pairs = {0};
    struct table table = {0};
    struct table followed = {0};
    struct follow *follow = NULL;
    const struct trust_policy policy = trust_policy_default();
    bool end = false;
    EXPECT_OK(pairs_read(store, &pairs, &error), error);
    EXPECT_INT(pairs.count, honest);
    EXPECT_INT(pairs.unlike, unlike);
    EXPECT_INT(pairs.missing, 0);
    EXPECT_OK(table_make(&pairs, &policy, &table, &error), error);
    EXPECT_INT(table.unlike, unlike);
    EXPECT_INT(table.frozen > 0, frozen);
    EXPECT_OK(follow_create(&policy, &follow, &error), error);
    while (!end) {
        EXPECT_OK(follow_step(follow, store, 1000, &end, &error), error);
    }
    EXPECT_OK(follow_table(follow, &followed, &error), error);
    EXPECT_INT(followed.unlike, unlike);
    EXPECT_INT(followed.frozen > 0, frozen);
    table_finish(&followed);
    table_finish(&table);
    follow_destroy(follow);
    pairs_finish(&pairs);
}

static void forged_audits_count_nowhere(void)
{
    static const char *const forgeries[] = {
        /* of another seed, scenario, planner, revision; by a student */
        "UPDATE job_specs SET seed = seed + 1000 WHERE",
        "UPDATE job_specs SET scenario_id = 'other' WHERE",
        "INSERT INTO contexts (planner, planner_hash, pool, tier, model_hash, sampler, backend,"
        " revision) SELECT 'exec:rival', planner_hash, pool, tier, model_hash, sampler, backend,"
        " revision FROM contexts WHERE tier = 3 LIMIT 1;"
        "UPDATE outcomes SET context = (SELECT MAX(id) FROM contexts) WHERE",
        "INSERT INTO contexts (planner, planner_hash, pool, tier, model_hash, sampler, backend,"
        " revision) SELECT planner, planner_hash, pool, tier, model_hash, sampler, backend,"
        " 'old' FROM contexts WHERE tier = 3 LIMIT 1;"
        "UPDATE outcomes SET context = (SELECT MAX(id) FROM contexts) WHERE",
        "INSERT INTO contexts (planner, planner_hash, pool, tier, model_hash, sampler, backend,"
        " revision) SELECT planner, planner_hash, pool, 2, 'rival', sampler, backend,"
        " revision FROM contexts WHERE tier = 3 LIMIT 1;"
        "UPDATE outcomes SET context = (SELECT MAX(id) FROM contexts) WHERE"};
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) {
        char sql[1024];
        open_store(true);
        submit_jobs();
        answer_all();
        expect_pairs(JOBS, 0, true);
        close_store();
        snprintf(sql, sizeof sql,
                 "%s job IN (SELECT job FROM job_specs WHERE audit_key IS NOT NULL AND seed >= %d)",
                 forgeries[i], HONEST);
        file_write(sql);
        open_store(false);
        expect_pairs(HONEST, FORGED, false);
        close_store();
    }
}

int main(void)
{
    return file_begin() ? file_finish(TEST_RUN(TEST(forged_audits_count_nowhere))) : 1;
}
