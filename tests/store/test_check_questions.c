/*
 * Check of questions. Goal: what an earlier version took of its workers and submitters (an outcome
 * or an audit of another question, a successor that no row fixed) is told as a note, and what this
 * version cannot have written is a fault. Method: a store whose jobs went every way, each edit of
 * its rows by itself.
 */
#include "store/check/check.h"
#include "tests/store/conformance/conformance_file.h"

/* Job 1 is flagged and answered by job 3; job 2 audits it. All have ended. */
static void make_store(void)
{
    struct store_worker teacher = worker_of("t", "teacher");
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    open_store(true);
    make_specs("a", "-", 2);
    specs[0].tier = TIER_STUDENT;
    strcpy(specs[0].model_hash, "student");
    strcpy(specs[0].sampler, "agents/euler2/fp32");
    name_teacher(&specs[0]);
    job_key_make(&specs[0], 0);
    specs[1] = specs[0];
    job_escalation_clear(&specs[1]);
    specs[1].tier = TIER_TEACHER;
    strcpy(specs[1].pool, "teacher");
    strcpy(specs[1].key, "audit");
    memcpy(specs[1].audit_key, specs[0].key, sizeof specs[1].audit_key);
    submit_made("a", 1, 2);
    EXPECT_INT(claim("w", 1), 1);
    make_completion(0, "w", COMPLETION_FLAGGED);
    fill_outcome(&outcomes[0], &leases[0].spec, VERDICT_FLAGGED);
    completions[0].outcomes = outcomes;
    completions[0].outcome_count = 1;
    complete(1);
    EXPECT_INT(completed[0].escalated_job_id, 3);
    EXPECT_OK(
        store->ops->claim(store, &teacher, fresh_claim_id(), 9, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(count, 2);
    make_completion(0, "t", COMPLETION_DONE);
    make_completion(1, "t", COMPLETION_DONE);
    complete(2);
    close_store();
}

static struct {
    int notes;
    int faults; /* of a kind that is looked for */
    const char *kind;
} seen;

static void note(void *context, const struct store_check_finding *finding)
{
    (void)context;
    seen.notes += finding->note && strcmp(finding->kind, "provenance") == 0;
    seen.faults += !finding->note && strcmp(finding->kind, "spec") == 0;
}

static void check_store(const char *sql)
{
    const struct store_check_options options = {.found = note};
    struct store_check_summary summary;
    make_store();
    if (sql != NULL) {
        file_write(sql);
    }
    memset(&seen, 0, sizeof seen);
    EXPECT_OK(store_check(file_path, &options, &summary, &error), error);
    EXPECT(sql != NULL || summary.faults + summary.notes == 0);
}

#define CONTEXT_LIKE(job, set)                                                                \
    "INSERT INTO contexts (planner, planner_hash, pool, tier, model_hash, sampler, backend, " \
    "revision) SELECT " set                                                                   \
    " FROM contexts c, job_specs s WHERE s.context = c.id AND s.job = " job ";"
#define LAST_CONTEXT "(SELECT MAX(id) FROM contexts)"

static void questions_of_earlier_versions_are_notes(void)
{
    static const char *const edits[] = {
        "UPDATE outcomes SET seed = 77 WHERE job = 3",
        "UPDATE outcomes SET scenario_id = 'other' WHERE job = 1",
        CONTEXT_LIKE("3", "'exec:rival', planner_hash, pool, tier, model_hash, sampler, backend, "
                          "revision") "UPDATE outcomes SET context = " LAST_CONTEXT
                                      " WHERE job = 3",
        CONTEXT_LIKE("2", "'exec:rival', planner_hash, pool, tier, model_hash, sampler, backend, "
                          "revision") "UPDATE job_specs SET context = " LAST_CONTEXT
                                      " WHERE job = 2",
        "UPDATE job_specs SET escalation = NULL WHERE job = 1",
        "UPDATE outcomes SET device_ns = 1 + (SELECT device_ns FROM attempts WHERE job = 3)"
        " WHERE job = 3",
        /* Rollouts of five seconds; all of them together last longer. */
        "UPDATE scenarios SET body = CAST('{\"horizon_s\": 5, \"branches\": [{\"at_tick\": 1}]}' "
        "AS BLOB)"};
    check_store(NULL);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        check_store(edits[i]);
        EXPECT(seen.notes > 0);
    }
}

static void successors_that_cannot_be_are_faults(void)
{
    static const char *const edits[] = {
        "PRAGMA foreign_keys = OFF; UPDATE job_specs SET escalation = 12345 WHERE job = 1",
        "UPDATE job_specs SET escalation = context WHERE job = 1",
        "UPDATE job_specs SET escalation = (SELECT escalation FROM job_specs WHERE job = 1) "
        "WHERE job = 2",
        "UPDATE job_specs SET escalation = (SELECT escalation FROM job_specs WHERE job = 1) "
        "WHERE job = 3",
        CONTEXT_LIKE("3", "planner, planner_hash, pool, tier, 'rival', sampler, backend, "
                          "revision") "UPDATE job_specs SET context = " LAST_CONTEXT
                                      " WHERE job = 3",
        "UPDATE job_specs SET seed = 77 WHERE job = 3"};
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        check_store(edits[i]);
        EXPECT(seen.faults > 0);
    }
}

int main(void)
{
    return file_begin() ? file_finish(TEST_RUN(TEST(questions_of_earlier_versions_are_notes),
                                               TEST(successors_that_cannot_be_are_faults)))
                        : 1;
}
