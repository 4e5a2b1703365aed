/*
 * Planted bugs: what could be wrong with the store and its clients, so that the simulation shows
 * that it would notice. The product's code is as it is; statements get another text through the
 * connection's probe, and calls are done wrongly between the spy and the store.
 */
#include "tests/sim/fleet.h"

#include "base/check.h"
#include "schemas/job_context.h"
#include "store/sql/sql_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 16 };

static enum status pass_on(struct fleet *fleet, const struct job_completion *completions,
                           uint32_t count, struct store_completion_result *results,
                           struct error *error)
{
    struct store *store = fleet->server.store;
    return store->ops->complete(store, completions, count, results, error);
}

/* ---- completions ---- */

/* The worker's completion of a job counts whatever its epoch. */
static enum status complete_any_epoch(struct fleet *fleet, const struct job_completion *completions,
                                      uint32_t count, struct store_completion_result *results,
                                      struct error *error)
{
    struct job_completion changed[BATCH_MAX];
    struct store *store = fleet->server.store;
    struct store_job *job = calloc(1, sizeof *job);

    CHECK(job != NULL && count <= BATCH_MAX);
    for (uint32_t i = 0; i < count; i++) {
        changed[i] = completions[i];
        if (store->ops->job(store, completions[i].job_id, job, error) == STATUS_OK) {
            changed[i].epoch = job->epoch;
        }
    }
    free(job);
    return pass_on(fleet, changed, count, results, error);
}

/* Anybody's completion counts: UPDATE .. WHERE id = ? */
static enum status complete_by_id(struct fleet *fleet, const struct job_completion *completions,
                                  uint32_t count, struct store_completion_result *results,
                                  struct error *error)
{
    struct job_completion changed[BATCH_MAX];
    struct store *store = fleet->server.store;
    struct store_job *job = calloc(1, sizeof *job);

    CHECK(job != NULL && count <= BATCH_MAX);
    for (uint32_t i = 0; i < count; i++) {
        changed[i] = completions[i];
        if (store->ops->job(store, completions[i].job_id, job, error) == STATUS_OK) {
            changed[i].epoch = job->epoch;
            memcpy(changed[i].worker_id, job->worker_id, sizeof changed[i].worker_id);
        }
    }
    free(job);
    return pass_on(fleet, changed, count, results, error);
}

/* Outcomes that an attempt hands over count although its lease was lost, and the job is somebody
 * else's. */
static enum status partial_by_id(struct fleet *fleet, const struct job_completion *completions,
                                 uint32_t count, struct store_completion_result *results,
                                 struct error *error)
{
    return completions[0].kind == COMPLETION_PARTIAL
               ? complete_by_id(fleet, completions, count, results, error)
               : pass_on(fleet, completions, count, results, error);
}

static enum status complete_release_free(struct fleet *fleet,
                                         const struct job_completion *completions, uint32_t count,
                                         struct store_completion_result *results,
                                         struct error *error)
{
    struct job_completion changed[BATCH_MAX];

    CHECK(count <= BATCH_MAX);
    for (uint32_t i = 0; i < count; i++) {
        changed[i] = completions[i];
        if (changed[i].kind == COMPLETION_RELEASED) {
            changed[i].device_ns = 0;
            changed[i].metres_mm = 0;
            changed[i].mflop = 0;
        }
    }
    return pass_on(fleet, changed, count, results, error);
}

/* The teacher's job in a transaction of its own, when the flagged one is still held. */
static enum status escalate_apart(struct fleet *fleet, const struct job_completion *completion,
                                  struct error *error)
{
    struct store *store = fleet->server.store;
    struct store_submit_result result;
    struct store_job *job = calloc(1, sizeof *job);

    CHECK(job != NULL);
    enum status status = store->ops->job(store, completion->job_id, job, error);
    if (status == STATUS_OK && job->state == JOB_LEASED && job->epoch == completion->epoch &&
        strcmp(job->worker_id, completion->worker_id) == 0 && job->spec.escalate_pool[0] != '\0') {
        struct job_spec *spec = &job->spec;
        int suite = model_suite(fleet->model, spec->suite_id);
        struct job_spec flagged = *spec;
        job_escalation_take(&flagged, spec);
        job_key_make(spec, job_key_fresh(&flagged));
        spec->parent_job_id = completion->job_id;
        spec->evaluates = false;
        status = store->ops->submit(store, spec->suite_id, (uint32_t)fleet->model->weights[suite],
                                    spec, 1, &result, error);
    }
    free(job);
    return status;
}

static enum status complete_escalate_apart(struct fleet *fleet,
                                           const struct job_completion *completions, uint32_t count,
                                           struct store_completion_result *results,
                                           struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        if (completions[i].kind == COMPLETION_FLAGGED) {
            enum status status = escalate_apart(fleet, &completions[i], error);
            if (status != STATUS_OK) {
                return status;
            }
        }
    }
    return pass_on(fleet, completions, count, results, error);
}

/* The job's question is what the worker says it is. */
static enum status complete_as_rival(struct fleet *fleet, const struct job_completion *completions,
                                     uint32_t count, struct store_completion_result *results,
                                     struct error *error)
{
    struct job_completion changed[BATCH_MAX];
    struct outcome *lies = calloc(BATCH_MAX * MODEL_ROLLOUTS_MAX, sizeof *lies);

    CHECK(lies != NULL && count <= BATCH_MAX);
    for (uint32_t i = 0; i < count; i++) {
        changed[i] = completions[i];
        changed[i].outcomes = &lies[i * MODEL_ROLLOUTS_MAX];
        for (uint32_t k = 0; k < completions[i].outcome_count; k++) {
            struct outcome *lie = &lies[i * MODEL_ROLLOUTS_MAX + k];
            *lie = completions[i].outcomes[k];
            snprintf(lie->planner, sizeof lie->planner, "builtin:rival");
        }
    }
    enum status status = pass_on(fleet, changed, count, results, error);
    free(lies);
    return status;
}

/* The successor of a flagged job is what the worker says. */
static enum status complete_own_successor(struct fleet *fleet,
                                          const struct job_completion *completions, uint32_t count,
                                          struct store_completion_result *results,
                                          struct error *error)
{
    struct job_completion changed[BATCH_MAX];

    CHECK(count <= BATCH_MAX);
    for (uint32_t i = 0; i < count; i++) {
        changed[i] = completions[i];
        if (changed[i].kind == COMPLETION_FLAGGED) {
            snprintf(changed[i].escalate_pool, sizeof changed[i].escalate_pool, "%s",
                     model_pools[0]);
            changed[i].escalate_tier = TIER_STUDENT;
            snprintf(changed[i].escalate_model_hash, sizeof changed[i].escalate_model_hash, "own");
        }
    }
    return pass_on(fleet, changed, count, results, error);
}

/* A host on which a planner does not start is held against the job. */
static enum status complete_unstarted_fails(struct fleet *fleet,
                                            const struct job_completion *completions,
                                            uint32_t count, struct store_completion_result *results,
                                            struct error *error)
{
    struct job_completion changed[BATCH_MAX];

    CHECK(count <= BATCH_MAX);
    for (uint32_t i = 0; i < count; i++) {
        changed[i] = completions[i];
        if (changed[i].kind == COMPLETION_UNSTARTED) {
            changed[i].kind = COMPLETION_FAILED;
        }
    }
    return pass_on(fleet, changed, count, results, error);
}

/* ---- a second owner ---- */

/* It hands out the first job that is queued, counters and all, to a worker of its own. */
#define FIRST_QUEUED "(SELECT MIN(id) FROM jobs WHERE state = 0 AND due_ns = 0)"
static enum status second_owner(struct fleet *fleet, struct error *error)
{
    struct db *db = NULL;
    enum status status = sqlite_db_open(fleet->server.path, SQLITE_DB_WRITER, &db, error);

    if (status == STATUS_OK) {
        status = sqlite_db_script(
            db,
            "BEGIN IMMEDIATE;"
            "INSERT OR IGNORE INTO workers (name, pool, device)"
            " SELECT 'of the second owner', pool, 'cpu' FROM jobs WHERE id = " FIRST_QUEUED ";"
            "UPDATE suites SET jobs_queued = jobs_queued - 1, jobs_leased = jobs_leased + 1"
            " WHERE id = (SELECT suite FROM jobs WHERE id = " FIRST_QUEUED ");"
            "INSERT INTO pool_jobs (pool, state, jobs) SELECT pool, 1, 1 FROM jobs"
            " WHERE id = " FIRST_QUEUED " ON CONFLICT (pool, state) DO UPDATE SET jobs = jobs + 1;"
            "UPDATE pool_jobs SET jobs = jobs - 1 WHERE state = 0"
            " AND pool = (SELECT pool FROM jobs WHERE id = " FIRST_QUEUED ");"
            "UPDATE jobs SET state = 1, epoch = epoch + 1, attempts = attempts + 1, progress_ns = "
            "0,"
            " progress_mm = 0, progress_mflop = 0,"
            " worker = (SELECT id FROM workers WHERE name = 'of the second owner')"
            " WHERE id = " FIRST_QUEUED ";"
            "COMMIT",
            error);
    }
    db_close(db);
    return status;
}

/* ---- heartbeats ---- */

/* A heartbeat that names a job leases it again, although the lease had ended. */
static enum status heartbeat_revives(struct fleet *fleet, const struct store_worker *worker,
                                     const struct store_progress *progress, uint32_t count,
                                     int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                     struct error *error)
{
    struct store *store = fleet->server.store;
    enum status status = store->ops->heartbeat(store, worker, progress, count, cancelled,
                                               cancelled_count, ttl_ms, error);

    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        char sql[256];
        snprintf(sql, sizeof sql,
                 "UPDATE jobs SET state = 1 WHERE id = %" PRId64 " AND epoch = %" PRId64
                 " AND state = 0",
                 progress[i].job_id, progress[i].epoch);
        status = medium_script(&fleet->server, sql, error);
    }
    return status;
}

/* ---- the list ---- */

/* Texts that both databases understand. */
#define EPOCH_BEFORE "j.epoch - CASE WHEN j.epoch > 0 THEN 1 ELSE 0 END"

static const struct bug bugs[] = {
    {.name = "any-epoch",
     .seed = 3,
     .what = "completing does not look at the epoch",
     .complete = complete_any_epoch},
    {.name = "by-id",
     .seed = 3,
     .what = "completing looks at the job's id alone",
     .complete = complete_by_id},
    {.name = "same-epoch",
     .what = "a second claim does not raise the epoch",
     .swaps = {{STATEMENT_READY_RUN, "j.epoch", EPOCH_BEFORE},
               {STATEMENT_READY_RUN_FROM, "j.epoch", EPOCH_BEFORE},
               {STATEMENT_AFFINE_RUN, "j.epoch", EPOCH_BEFORE}}},
    {.name = "late-ledger",
     .what = "the ledger is written after the commit",
     .files = true,
     .setup = "CREATE TEMP TABLE late (suite, pool, device, tier, audit, ending, attempts,"
              " device_ns, metres_mm, mflop, cost_uusd)",
     .swaps = {{STATEMENT_LEDGER_ADD, NULL,
                "INSERT INTO temp.late VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"}},
     .after = "INSERT INTO ledger SELECT * FROM temp.late WHERE true"
              " ON CONFLICT (suite, pool, device, tier, audit, ending) DO UPDATE SET"
              " attempts = attempts + excluded.attempts,"
              " device_ns = device_ns + excluded.device_ns,"
              " metres_mm = metres_mm + excluded.metres_mm, mflop = mflop + excluded.mflop,"
              " cost_uusd = cost_uusd + excluded.cost_uusd;"
              "DELETE FROM temp.late"},
    {.name = "late-escalation",
     .seed = 26,
     .what = "the teacher's job is queued in a transaction of its own",
     .complete = complete_escalate_apart},
    {.name = "rival-planner",
     .what = "a worker completes a job as another planner's",
     .complete = complete_as_rival},
    {.name = "own-successor",
     .what = "a flag names a pool and a model of its own",
     .complete = complete_own_successor},
    {.name = "odd-successor",
     .what = "a flagged job is answered in another pool than its row says",
     .swaps = {{STATEMENT_JOB_HELD, "e.pool", "CASE WHEN e.id IS NULL THEN NULL ELSE c.pool END"}}},
    {.name = "forged-audit",
     .what = "an audit asks another question than the job that it repeats",
     .forged_audits = true},
    {.name = "reviving-heartbeat",
     .what = "a heartbeat leases a job again whose lease had ended",
     .heartbeat = heartbeat_revives},
    {.name = "memo-any-planner",
     .seed = 8,
     .what = "memoisation does not look at the planner",
     .swaps = {{STATEMENT_MEMO_FIND,
                "s.key = ?1 AND j.state = 2 AND c.planner = ?2 AND c.planner_hash = ?3",
                "substr(s.key, 1, 40) = substr(?1, 1, 40) AND j.state = 2"
                " AND (c.planner = ?2 OR c.planner_hash = ?3 OR j.state = 2)"}}},
    {.name = "partial-by-id",
     .seed = 13,
     .what = "a partial outcome counts although its lease was lost",
     .complete = partial_by_id},
    {.name = "billed-twice",
     .seed = 2,
     .what = "what is handed over is billed once more when its attempt is lost",
     .files = true,
     .swaps = {{STATEMENT_JOB_PROGRESS_SET, "progress_ns = ?2",
                "progress_ns = ?2 + COALESCE((SELECT SUM(json_extract(outcome, '$.device_ns'))"
                " FROM partial_outcomes p WHERE p.job = ?1 AND p.epoch = jobs.epoch), 0)"}}},
    {.name = "partial-again",
     .what = "a later partial outcome replaces the first",
     .swaps = {{STATEMENT_PARTIAL_ADD, "<> '' OR NOT", "<> '' OR 1 = 1 OR NOT"}}},
    {.name = "partial-for-ever",
     .what = "a job that has ended keeps its partial outcomes",
     .swaps = {{STATEMENT_PARTIAL_DROP, "job = ?1", "job = ?1 AND 1 = 0"}}},
    {.name = "partial-of-others",
     .what =
         "tokens are not told apart, and what one's workers have finished is given to another's",
     .one_holder = true},
    {.name = "forgotten-claims",
     .what =
         "when attempts were claimed is not known after a restart, and they bill what they like",
     .files = true,
     .restarted = true,
     .swaps = {{STATEMENT_JOB_HELD, "j.claimed_ns", "1"},
               {STATEMENT_JOB_PROGRESS_GET, "j.claimed_ns", "1"}}},
    {.name = "free-release",
     .seed = 2,
     .what = "a job that is handed back costs nothing",
     .complete = complete_release_free},
    {.name = "submit-twice",
     .seed = 2,
     .what = "submitting is not idempotent",
     .swaps =
         {{STATEMENT_SPEC_FIND, "s.suite = ?2", "s.suite = ?2 AND 1 = 0"},
          {STATEMENT_SPEC_INSERT, "(?1, ?2, ?3,",
           "(?1, ?2, CASE WHEN EXISTS (SELECT 1 FROM job_specs WHERE key = ?3 AND suite = ?2)"
           " THEN substr(?3, 1, 50) || '~' || CAST(CAST(?1 AS BIGINT) AS TEXT) ELSE ?3 END,"}}},
    {.name = "free-loss",
     .what = "an attempt whose worker vanished costs nothing",
     .swaps = {{STATEMENT_JOB_HELD, "j.progress_ns", "0"}}},
    {.name = "cancel-queued",
     .seed = 2,
     .what = "cancelling forgets the jobs that are running",
     .swaps = {{STATEMENT_OPEN_OF_SUITE, "state <= 1", "state = 0"}}},
    {.name = "counted-audits",
     .what = "an audit's outcomes are counted as the suite's",
     .swaps = {{STATEMENT_SUITE_COUNT, "rollouts_pass + ?10", "rollouts_pass + ?10 + ?18"}}},
    {.name = "no-backoff",
     .seed = 3,
     .what = "a failed job is claimable at once",
     .swaps = {{STATEMENT_JOB_END, "due_ns = ?5", "due_ns = 0 * CAST(?5 AS BIGINT)"}}},
    {.name = "lost-once",
     .seed = 2,
     .what = "only the first loss of a job is noticed",
     .swaps = {{STATEMENT_LEASED_OF_WORKER, "j.state = 1", "j.state = 1 AND j.lost < 1"}}},
    {.name = "first-suite",
     .seed = 3,
     .what = "the first suite is served before all others",
     .swaps = {{STATEMENT_READY_SUITE_NEXT, "j.suite > ?2", "j.suite > ?2 AND ?2 = 0"}}},
    {.name = "charged-unstarted",
     .what = "a host on which a planner does not start is charged to the job",
     .complete = complete_unstarted_fails},
    {.name = "never-excused",
     .what = "one host on which a planner does not start is enough to blame the planner",
     .swaps = {{STATEMENT_UNSTARTED_HOSTS, "COUNT(*)", "COUNT(*) + 64"}}},
    {.name = "always-excused",
     .what = "a planner that starts nowhere is never blamed",
     .swaps = {{STATEMENT_UNSTARTED_HOSTS, "COUNT(*)", "0"}}},
    {.name = "second-owner",
     .what = "a second process owns the database and hands out jobs from it",
     .files = true,
     .stranger = second_owner},
    {.name = "claim-id-ignored",
     .what = "a claim that is repeated, or delivered twice, leases twice",
     .swaps = {{STATEMENT_WORKER_CLAIM, "claim_id = ?2", "claim_id = 0 * CAST(?2 AS BIGINT)"}}},
    {.name = "claim-id-late",
     .seed = 17,
     .what = "a claim that comes after the worker's next one leases jobs",
     .late_claims = true},
    {.name = "ended-leases",
     .seed = 3,
     .what = "a claim that is repeated finds leases that have ended",
     .swaps = {{STATEMENT_CLAIM_LEASES, "j.state = 1", "j.state <= 1"}}},
    {.name = "new-claim-id",
     .seed = 6,
     .what = "a client whose claim was not answered claims again under a new id",
     .new_claim_ids = true},
    {.name = "old-version",
     .seed = 9,
     .what = "a worker goes on with the model that it opened first",
     .old_version = true},
    {.name = "unmoved-queue",
     .seed = 5,
     .what = "moving the pointer leaves the queue as it is",
     .swaps = {{STATEMENT_FOLLOWING_JOBS, "j.follows = 1", "j.follows = 2"}}},
    {.name = "unmoved-claim",
     .seed = 5,
     .what = "a job that comes back into the queue is leased for the old version",
     .swaps = {{STATEMENT_READY_RUN, "j.follows", "0"},
               {STATEMENT_READY_RUN_FROM, "j.follows", "0"},
               {STATEMENT_AFFINE_RUN, "j.follows", "0"}}},
    {.name = "counted-shadows",
     .seed = 5,
     .what = "an answer of a shadow's is counted as the suite's",
     .swaps = {{STATEMENT_JOB_HELD, "j.shadow IS NOT NULL", "0"}}},
    {.name = "forgotten-freeze",
     .what = "every other freeze is forgotten by whoever claims and submits",
     .swaps = {{STATEMENT_TRUST_HOLDING, "t.kind = 0", "t.kind = 0 AND t.id % 2 = 0"}}},
    {.name = "frozen-queue",
     .what = "a freeze leaves the queue as it is",
     .swaps = {{STATEMENT_FREEZE_JOBS, "j.state <= 1", "j.state = 1"}}},
    {.name = "late-model",
     .seed = 17,
     .what = "a late answer counts although the job is another model's by now",
     .swaps = {{STATEMENT_FOLLOWER_LEFT, "claim_id = 0", "claim_id = claim_id"}}},
    {.name = "unmarked-flight",
     .seed = 11,
     .what = "nobody knows that a student was on its way when its slice was frozen",
     .swaps = {{STATEMENT_FREEZE_MARK, "freeze_event IS NULL", "freeze_event = 0"}}},
    {.name = "repeated-teacher",
     .seed = 55,
     .what = "an audit goes on although a freeze has given its job to the teacher",
     .swaps = {{STATEMENT_FREEZE_MOOT, "a.state = 0", "a.state = 7"}}},
    {.name = "shadows-stay",
     .seed = 11,
     .what = "a version that is no shadow any more goes on with its running jobs",
     .swaps = {{STATEMENT_OPEN_OF_SHADOW, "state <= 1", "state = 0"}}},
};

const struct bug *bug_at(size_t index)
{
    return index < sizeof bugs / sizeof bugs[0] ? &bugs[index] : NULL;
}

const struct bug *bug_named(const char *name)
{
    const struct bug *bug = NULL;
    for (size_t i = 0; (bug = bug_at(i)) != NULL && strcmp(bug->name, name) != 0; i++) {
    }
    return bug;
}

const char *bug_text(struct fleet *fleet, enum statement statement, const char *sql)
{
    if (fleet->bug != NULL && fleet->bug->restarted && fleet->server.incarnation < 2) {
        return sql;
    }
    for (size_t i = 0; fleet->bug != NULL && i < BUG_SWAPS_MAX; i++) {
        const struct bug_swap *swap = &fleet->bug->swaps[i];
        if (swap->to == NULL || swap->statement != statement) {
            continue;
        }
        if (swap->from == NULL) {
            return swap->to;
        }
        const char *at = strstr(sql, swap->from);
        CHECK(at != NULL); /* the statement has changed: the bug must, too */
        free(fleet->swapped[statement]);
        CHECK(asprintf(&fleet->swapped[statement], "%.*s%s%s", (int)(at - sql), sql, swap->to,
                       at + strlen(swap->from)) > 0);
        return fleet->swapped[statement];
    }
    return sql;
}
