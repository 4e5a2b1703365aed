/*
 * Texts of the kept statements, but for those of models, labels, freezes and redrives
 * (statements_models.c). State and verdict numbers are written as literals where a partial index
 * must be recognised: 0 queued, 1 leased, 2 done, 4 dead, 5 cancelled; so is due_ns.
 *
 * CROSS JOIN fixes the order of the loops: the first table is the one that an index narrows down.
 */
#include "store/statements/statements.h"

#include "store/statements/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The artifact behind job `j`: one for all its rollouts; NULL when it has none. */
#define ARTIFACT_COLUMN                                                               \
    "(SELECT o.artifact_hash FROM outcomes o WHERE o.job = COALESCE(j.memo_of, j.id)" \
    "  AND o.artifact_hash <> '' LIMIT 1)"

/* References to artifacts beside those of outcomes and attempts. Retention never lets these go. */
#define ARTIFACT_PINS                                                                       \
    "SELECT hash, 0 FROM models UNION ALL SELECT health_hash, 0 FROM models"                \
    " WHERE health_hash <> ''"                                                              \
    " UNION ALL SELECT report_hash, 0 FROM model_events WHERE report_hash <> ''"            \
    " UNION ALL SELECT hash, 0 FROM goldens UNION ALL SELECT hash, 0 FROM golden_artifacts" \
    " UNION ALL SELECT substr(text, 66), 0 FROM labels WHERE kind = 4"                      \
    " UNION ALL SELECT * FROM (SELECT json_extract(outcome, '$.artifact_hash') AS hash, 0"  \
    " FROM partial_outcomes WHERE json_valid(outcome)) p WHERE hash <> ''"                  \
    " UNION ALL SELECT * FROM (SELECT json_extract(outcome, '$.evidence_hash') AS hash, 0"  \
    " FROM partial_outcomes WHERE json_valid(outcome)) p WHERE hash <> ''"

/* Read by record_job_read, in this order. The last error, but where outcomes were dropped since. */
#define JOB_COLUMNS                                                               \
    "j.id, j.state, j.epoch, j.attempts, w.name,"                                 \
    " (SELECT a.error FROM attempts a WHERE a.job = j.id AND a.error IS NOT NULL" \
    "  AND NOT (j.state = 2 AND a.ending = 5) ORDER BY a.epoch DESC LIMIT 1),"    \
    " COALESCE(j.freeze_event, 0), w.token, " STATEMENT_HANDED_BACK ", {spec}"
#define JOB_JOINS STATEMENT_SPEC_JOINS " LEFT JOIN workers w ON w.id = j.worker"

/* As the mark {outcome} expects. */
#define OUTCOME_JOINS(join)                                                       \
    join " job_specs r ON r.job = j.id" join " job_specs s ON s.job = o.job" join \
         " suites u ON u.id = j.suite" join " contexts c ON c.id = o.context"     \
         " LEFT JOIN scenarios x ON x.id = s.scenario"

/* A column of the rollout that an audit job's outcome `o` repeats, where that passes or fails. */
#define AUDITED(column)                                                              \
    "(SELECT " column " FROM job_specs s"                                            \
    " CROSS JOIN job_specs r ON r.key = s.audit_key AND r.suite = s.suite"           \
    " CROSS JOIN jobs f ON f.id = r.job"                                             \
    " CROSS JOIN outcomes q ON q.job = COALESCE(f.memo_of, f.id)"                    \
    " CROSS JOIN contexts k ON k.id = q.context WHERE s.job = j.id AND s.makes = ''" \
    " AND q.branch_id = o.branch_id AND q.verdict <= 1 LIMIT 1)"

/* Of an outcome `o` of job `j`: id, kind of the job, verdict, branch, planner, tier, slices; of an
 * audit job's the tier and the verdict of the rollout that it repeats: pass, fail or NULL. */
#define SLICE_COLUMNS                                                                   \
    "o.id, " STATEMENT_JOB_KIND ", o.verdict, o.branch_id, c.planner,"                  \
    " COALESCE(CASE j.audit WHEN 1 THEN " AUDITED(                                      \
        "k.tier") " END, c.tier),"                                                      \
                  " o.weather, o.light, o.road, o.geography, o.actor, o.scenario_type," \
                  " CASE j.audit WHEN 1 THEN " AUDITED("q.verdict") " END"

/* The job with spec `s` is in none of the entries of a JSON list: [planner, planner_hash], or that
 * with [.., tier, model_hash, sampler, backend, revision or ""]. */
#define NOT_WITHOUT(list)                                                            \
    "s.context NOT IN (SELECT n.id FROM json_each(" list ") e CROSS JOIN contexts n" \
    " WHERE n.planner_hash = json_extract(e.value, '$[1]')"                          \
    " AND n.planner = json_extract(e.value, '$[0]')"                                 \
    " AND (json_array_length(e.value) = 2"                                           \
    " OR (n.tier = json_extract(e.value, '$[2]')"                                    \
    " AND n.model_hash = json_extract(e.value, '$[3]')"                              \
    " AND n.sampler = json_extract(e.value, '$[4]')"                                 \
    " AND n.backend = json_extract(e.value, '$[5]')"                                 \
    " AND json_extract(e.value, '$[6]') IN ('', n.revision))))"

/* clang-format off */
#define NOT_MADE "NOT IN (SELECT s.job FROM job_specs s CROSS JOIN suites u ON u.id = s.suite WHERE s.makes <> '' AND s.audit_key IS NULL AND u.jobs_queued + u.jobs_leased = 0)" /* while its suite is open it keeps what it makes; then who ordered that does */
/* Main lines, of outcomes `o` that count as a job's; length() keeps PostgreSQL from beginning with them. */
#define MAIN_JOINS(job)                                                                          \
    " CROSS JOIN jobs j ON j.id = " job " CROSS JOIN job_specs s ON s.job = " job " CROSS JOIN contexts c ON c.id = o.context"
#define MAIN_LINES " AND length(o.branch_id) < 1 AND j.audit = 0 AND j.shadow IS NULL"
/* Main lines that have no outcome, of jobs `j`. */
#define LACKING(verdict, from, where) " UNION ALL SELECT c.planner, c.tier, s.scenario_id, s.scenario, " verdict " FROM " from "jobs j CROSS JOIN job_specs s ON s.job = j.id CROSS JOIN contexts c ON c.id = s.context" \
    " WHERE j.suite = ?1 AND " where " AND j.audit = 0 AND j.shadow IS NULL AND NOT EXISTS (SELECT 1 FROM outcomes o WHERE o.job = j.id AND length(o.branch_id) < 1)"
#define JOBS_WHERE(condition) "SELECT " JOB_COLUMNS " FROM jobs j" JOB_JOINS " WHERE " condition " AND j.suite = ?1 AND j.id > ?2 AND j.shadow IS NULL ORDER BY j.id LIMIT ?3"
#define ENDED(verdict) " SUM(CASE verdict WHEN " verdict " THEN 1 ELSE 0 END),"

/* As a literal: PostgreSQL's plans then know that few rows are asked for, and read an index in its
 * order. Parts of a union are limited themselves: it would sort all of each otherwise. */
#define CHUNK(ids) "SELECT * FROM (" ids " LIMIT " STATEMENT_NUMBER(STATEMENT_OUTCOMES_CHUNK) ")"
#define MEMO_IDS                                                                                 \
    CHUNK("SELECT outcome, job FROM memo_outcomes WHERE suite = ?5 AND outcome > ?1 ORDER BY outcome") \
    " taken"

/* Outcomes of which a statement gives (outcome, job), in the order of ids: the first ?2 of them above ?1.
 * In front of each: the id, how many were looked at, and whether all that belongs to it is
 * there. Left out are those that are not of scenario ?3 ('': any) and verdict ?4 (-1: any), but for
 * the last, which says where the next chunk begins. */
#define OUTCOMES(ids)                                                                            \
    "WITH ids AS MATERIALIZED (" CHUNK(ids " ORDER BY outcome") " chunk ORDER BY outcome LIMIT ?2)" \
    " SELECT i.outcome, (SELECT COUNT(*) FROM ids),"                                             \
    " r.job IS NOT NULL AND s.job IS NOT NULL AND u.id IS NOT NULL AND c.id IS NOT NULL, {outcome}" \
    " FROM ids i LEFT JOIN outcomes o ON o.id = i.outcome LEFT JOIN jobs j ON j.id = i.job"      \
    OUTCOME_JOINS(" LEFT JOIN")                                                                  \
    " WHERE ((?3 = '' OR COALESCE(o.scenario_id, s.scenario_id) = ?3) AND (?4 < 0 OR o.verdict = ?4))" \
    " OR i.outcome = (SELECT MAX(outcome) FROM ids) ORDER BY i.outcome"

/* The same of what nothing is left out of: whole rows of outcomes, with the job `asked` that each is
 * reported under. Each table is asked once a job or less, where the database keeps what it has found. */
#define OUTCOMES_EACH(rows)                                                                      \
    "SELECT o.id, NULL,"                                                                         \
    " r.job IS NOT NULL AND s.job IS NOT NULL AND u.id IS NOT NULL AND c.id IS NOT NULL, {outcome}" \
    " FROM (" rows ") o LEFT JOIN jobs j ON j.id = o.asked"                                      \
    OUTCOME_JOINS(" LEFT JOIN") " ORDER BY o.id LIMIT ?2"

/* A setting that a change names, or what it is without one. */
#define GIVEN(parameter, otherwise) "COALESCE(CAST(" parameter " AS BIGINT), " otherwise ")"

/* A tenant's limit, and what it has leased where there is one. */
#define LIMIT_COLUMNS                                                                            \
    "COALESCE(t.units_leased_max, 0), CASE WHEN t.units_leased_max > 0 THEN " STATEMENT_TENANT_LEASED " ELSE 0 END"
#define LIMIT_JOINS                                                                              \
    " CROSS JOIN suites u ON u.id = j.suite LEFT JOIN tenants t ON t.id = u.tenant"

/* A suite with jobs, and its tenant. */
#define SUITE_NEXT                                                                               \
    "SELECT j.suite, u.weight, u.class, u.tenant, COALESCE(t.weight, 1), " LIMIT_COLUMNS " FROM jobs j" \
    LIMIT_JOINS

/* The next job of a suite. */
#define READY_HEAD                                                                               \
    "SELECT j.rollouts, c.tier, " LIMIT_COLUMNS ", j.priority, j.id FROM jobs j" LIMIT_JOINS      \
    " CROSS JOIN job_specs s ON s.job = j.id CROSS JOIN contexts c ON c.id = s.context"

/* Jobs as they are leased, and their prefixes. */
#define LEASES "SELECT {lease}, j.prefix FROM jobs j" STATEMENT_SPEC_JOINS

/* Workers `a` and `b` are one party's: they are the same, or held by one token. */
#define ONE_PARTY(a, b)                                                                          \
    "EXISTS (SELECT 1 FROM workers one CROSS JOIN workers other WHERE one.id = " a " AND other.id = " b \
    " AND (one.id = other.id OR one.token = other.token))"

/* A sum that stops at the largest integer: what workers report must not keep a row from being
 * written, and with it the leases of others from ending. The part may be what an attempt's first
 * charge is corrected by, which is negative. */
#define ADD(column, part)                                                                        \
    "MIN(" column ", 9223372036854775807 - CASE WHEN " part " > 0 THEN " part " ELSE 0 END) + " part

static const char *const statement_sql[STATEMENT_COUNT] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_BEGIN_BESIDE] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_SAVEPOINT] = "SAVEPOINT operation",
    [STATEMENT_ROLLBACK_TO] = "ROLLBACK TO operation",
    [STATEMENT_RELEASE] = "RELEASE operation",
    [STATEMENT_BOOKS] = "SELECT 1",
    [STATEMENT_READ_BEGIN] = "BEGIN",

    [STATEMENT_SCHEMA_LIST] = "SELECT type, name FROM sqlite_schema WHERE substr(name, 1, 7) <> 'sqlite_'",
    [STATEMENT_SCHEMA_OBJECT] = "SELECT 1 FROM sqlite_schema WHERE name = ?1",
    [STATEMENT_SCHEMA_COLUMN] = "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2",

    [STATEMENT_SUITE_FIND] =
        "SELECT u.id, u.weight, u.tenant, t.name, u.budget_uusd, u.class FROM suites u LEFT JOIN tenants t ON t.id = u.tenant"
        " WHERE u.name = ?1",
    [STATEMENT_SUITE_INSERT] =
        "INSERT INTO suites (name, weight, submitted_s, tenant, digest, class) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [STATEMENT_SUITE_WEIGHT] = "UPDATE suites SET weight = ?2, class = ?3 WHERE id = ?1",
    [STATEMENT_SUITE_COUNT] =
        "UPDATE suites SET jobs_queued = jobs_queued + ?2, jobs_leased = jobs_leased + ?3,"
        " jobs_done = jobs_done + ?4, jobs_flagged = jobs_flagged + ?5,"
        " jobs_dead = jobs_dead + ?6, jobs_cancelled = jobs_cancelled + ?7,"
        " jobs_memoised = jobs_memoised + ?8, rollouts_total = rollouts_total + ?9,"
        " rollouts_pass = rollouts_pass + ?10, rollouts_fail = rollouts_fail + ?11,"
        " rollouts_planner_error = rollouts_planner_error + ?12,"
        " rollouts_flagged = rollouts_flagged + ?13, rollouts_invalid = rollouts_invalid + ?14,"
        " ticks = ticks + ?15,"
        " prefix_ticks_saved = prefix_ticks_saved + ?16, metres_mm = metres_mm + ?17,"
        " rollouts_audit = rollouts_audit + ?18, outcomes_digested = outcomes_digested + ?19,"
        " outcomes_digest = COALESCE(?20, outcomes_digest) WHERE id = ?1",
    [STATEMENT_SUITE_DIGEST] = "SELECT outcomes_digest FROM suites WHERE id = ?1",
    [STATEMENT_POOL_COUNT] =
        "INSERT INTO pool_jobs (pool, state, jobs) VALUES (?1, ?2, ?3), (?1, ?4, ?5)"
        " ON CONFLICT (pool, state) DO UPDATE SET jobs = pool_jobs.jobs + excluded.jobs",
    [STATEMENT_SUITE_STATUS] =
        "SELECT id, jobs_queued, jobs_leased, jobs_done, jobs_flagged, jobs_dead,"
        " jobs_cancelled, jobs_memoised, rollouts_total, rollouts_pass, rollouts_fail,"
        " rollouts_planner_error, rollouts_flagged, rollouts_invalid, ticks, prefix_ticks_saved,"
        " metres_mm, rollouts_audit, submitted_s, budget_uusd, budget_spent, class, jobs_handed_back FROM suites WHERE name = ?1",
    [STATEMENT_SUITES] = "SELECT name FROM suites ORDER BY id DESC LIMIT ?1",
    [STATEMENT_POOL_FIND] = "SELECT id FROM pools WHERE name = ?1",
    [STATEMENT_POOL_INSERT] = "INSERT INTO pools (name) VALUES (?1)",
    [STATEMENT_PREFIX_FIND] = "SELECT id FROM prefixes WHERE key = ?1",
    [STATEMENT_PREFIX_INSERT] = "INSERT INTO prefixes (key) VALUES (?1)",
    [STATEMENT_CONTEXT_FIND] = "SELECT c.id FROM contexts c WHERE ({context}) = ({context ?1})",
    [STATEMENT_CONTEXT_INSERT] = "INSERT INTO contexts ({context names}) VALUES ({context ?1})",
    [STATEMENT_SCENARIO_FIND] = "SELECT id FROM scenarios WHERE hash = ?1",
    [STATEMENT_SCENARIO_INSERT] =
        "INSERT INTO scenarios (hash, body, tenant, ticks, map, map_at)"
        " VALUES (?1, ?2, ?3, " SCENARIO_TICKS("?2") ", ?4, ?5)",
    [STATEMENT_MAP_FIND] = "SELECT id FROM maps WHERE hash = ?1",
    [STATEMENT_MAP_INSERT] = "INSERT INTO maps (hash, body) VALUES (?1, ?2)",
    [STATEMENT_SCENARIO_TICKS] = "SELECT ticks FROM scenarios WHERE id = ?1",
    [STATEMENT_PROGRESS_COUNT] =
        "INSERT INTO suite_progress (suite, pool, tier, jobs_open, ticks, ticks_open, wall_ns)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (suite, pool, tier) DO UPDATE SET"
        " jobs_open = suite_progress.jobs_open + ?4, ticks = suite_progress.ticks + ?5,"
        " ticks_open = suite_progress.ticks_open + ?6,"
        " wall_ns = " ADD("suite_progress.wall_ns", "?7"),
    [STATEMENT_PLANNER_COUNT] = "INSERT INTO suite_planners (suite, planner) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    [STATEMENT_SCENARIO_BODY] =
        "SELECT s.body, s.map_at, m.body FROM scenarios s LEFT JOIN maps m ON m.id = s.map"
        " WHERE s.hash = ?1",
    [STATEMENT_WORKER_FIND] = "SELECT id, pool, device, claim_id, token, holder FROM workers WHERE name = ?1",
    [STATEMENT_WORKER_INSERT] =
        "INSERT INTO workers (name, pool, device, holder, host, token) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [STATEMENT_WORKER_HOLD] = "UPDATE workers SET token = ?2 WHERE name = ?1 AND token IS NULL",
    [STATEMENT_WORKER_CLAIM] = "UPDATE workers SET claim_id = ?2 WHERE id = ?1",
    [STATEMENT_WORKER_HOST] = "SELECT CASE host WHEN '' THEN name ELSE host END FROM workers WHERE id = ?1",
    [STATEMENT_WORKER_OWNER] =
        "SELECT p.name, w.token, w.holder FROM workers w CROSS JOIN pools p ON p.id = w.pool WHERE w.name = ?1",

    [STATEMENT_SPEC_FIND] =
        "SELECT s.job, j.memo_of IS NOT NULL, j.state = 2, " ARTIFACT_COLUMN
        ", j.state <= 1 AND s.escalation IS NULL"
        " FROM job_specs s JOIN jobs j ON j.id = s.job WHERE s.key = ?1 AND s.suite = ?2"
        " UNION ALL"
        " SELECT s.job, j.memo_of IS NOT NULL, j.state = 2, " ARTIFACT_COLUMN
        ", j.state <= 1 AND s.escalation IS NULL"
        " FROM job_specs s JOIN jobs j ON j.id = s.job WHERE s.asked_key = ?1 AND s.suite = ?2"
        " LIMIT 1",
    /* Found by its key: with a bare scenario_id, SQLite walks all jobs of the scenario instead. */
    [STATEMENT_MEMO_FIND] =
        "SELECT COALESCE(j.memo_of, j.id), " ARTIFACT_COLUMN
        " FROM job_specs s CROSS JOIN jobs j ON j.id = s.job"
        " CROSS JOIN contexts c ON c.id = s.context LEFT JOIN scenarios x ON x.id = s.scenario"
        " WHERE s.key = ?1 AND j.state = 2 AND c.planner = ?2 AND c.planner_hash = ?3 AND c.tier = ?4"
        " AND c.model_hash = ?5 AND c.sampler = ?6 AND c.backend = ?7 AND c.revision = ?8"
        " AND s.scenario_id || '' = ?9 AND COALESCE(x.hash, '') = ?10 AND s.seed = ?11 AND j.rollouts = ?12 AND s.rig = ?13 AND s.makes = ?14",
    [STATEMENT_AUDITED_FIND] =
        "SELECT s.key, j.id, j.freeze_event IS NOT NULL AND c.tier = 3 FROM job_specs s"
        " CROSS JOIN jobs j ON j.id = s.job CROSS JOIN contexts c ON c.id = s.context"
        " WHERE s.key = ?1 AND s.suite = ?2 AND s.audit_key IS NULL"
        " UNION ALL"
        " SELECT s.key, j.id, j.freeze_event IS NOT NULL AND c.tier = 3 FROM job_specs s"
        " CROSS JOIN jobs j ON j.id = s.job CROSS JOIN contexts c ON c.id = s.context"
        " WHERE s.asked_key = ?1 AND s.suite = ?2 AND s.audit_key IS NULL LIMIT 1",
    [STATEMENT_AUDIT_SAME] =
        "SELECT s.job FROM job_specs s CROSS JOIN jobs j ON j.id = s.job"
        " CROSS JOIN contexts c ON c.id = s.context WHERE s.audit_key = ?1 AND s.suite = ?2"
        " AND j.shadow IS NULL AND c.model_hash = ?3 AND c.sampler = ?4 ORDER BY s.job LIMIT 1",
    [STATEMENT_JOB_INSERT] =
        "INSERT INTO jobs (suite, pool, prefix, state, priority, rollouts, memo_of, audit, follows, due_ns,"
        " shadow, freeze_event, evaluates) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    [STATEMENT_SPEC_INSERT] =
        "INSERT INTO job_specs (job, suite, key, scenario_id, scenario, context, seed,"
        " attempts_max, parent_job, audit_key, asked_key, escalation, rig, makes, route_reason, route_own, route_other)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    [STATEMENT_ESCALATION_SET] = "UPDATE job_specs SET escalation = ?2 WHERE job = ?1 AND escalation IS NULL",
    [STATEMENT_MEMO_SOURCE] = "SELECT verdict, COUNT(*) FROM outcomes WHERE job = ?1 GROUP BY verdict",
    [STATEMENT_MEMO_LINK] =
        "INSERT INTO memo_outcomes (suite, outcome, job)"
        " SELECT ?2, id, ?3 FROM outcomes WHERE job = ?1",
    [STATEMENT_READY_SUITE_NEXT] =
        SUITE_NEXT
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.pool = ?1 AND j.suite > ?2"
        " ORDER BY j.suite LIMIT 1",
    [STATEMENT_READY_SUITE_NEXT_WITHOUT] =
        SUITE_NEXT
        " CROSS JOIN job_specs s ON s.job = j.id"
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.pool = ?1 AND j.suite > ?2"
        " AND " NOT_WITHOUT("?3") " ORDER BY j.suite LIMIT 1",
    [STATEMENT_READY_HEAD] =
        READY_HEAD
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.pool = ?1 AND j.suite = ?2"
        " ORDER BY j.priority DESC, j.id LIMIT 1",
    [STATEMENT_READY_HEAD_WITHOUT] =
        READY_HEAD
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.pool = ?1 AND j.suite = ?2"
        " AND " NOT_WITHOUT("?3") " ORDER BY j.priority DESC, j.id LIMIT 1",
    [STATEMENT_READY_HEAD_FROM] =
        READY_HEAD
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.pool = ?1 AND j.suite = ?2"
        " AND j.priority = ?3 AND j.id >= ?4 ORDER BY j.priority DESC, j.id LIMIT 1",
    [STATEMENT_READY_RUN] =
        LEASES
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.pool = ?1 AND j.suite = ?2"
        " ORDER BY j.priority DESC, j.id LIMIT ?3",
    [STATEMENT_READY_RUN_WITHOUT] =
        LEASES
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.pool = ?1 AND j.suite = ?2"
        " AND " NOT_WITHOUT("?4") " ORDER BY j.priority DESC, j.id LIMIT ?3",
    [STATEMENT_READY_RUN_FROM] =
        LEASES
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.pool = ?1 AND j.suite = ?2"
        " AND j.priority = ?4 AND j.id >= ?5 ORDER BY j.priority DESC, j.id LIMIT ?3",
    [STATEMENT_AFFINE_SUITE_NEXT] =
        SUITE_NEXT
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.prefix <> 0 AND j.pool = ?1"
        " AND j.prefix = ?2 AND j.suite > ?3 ORDER BY j.suite LIMIT 1",
    [STATEMENT_AFFINE_SUITE_NEXT_WITHOUT] =
        SUITE_NEXT
        " CROSS JOIN job_specs s ON s.job = j.id"
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.prefix <> 0 AND j.pool = ?1"
        " AND j.prefix = ?2 AND j.suite > ?3 AND " NOT_WITHOUT("?4") " ORDER BY j.suite LIMIT 1",
    [STATEMENT_AFFINE_RUN] =
        LEASES
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.prefix <> 0 AND j.pool = ?1"
        " AND j.suite = ?2 AND j.prefix = ?4 ORDER BY j.priority DESC, j.id LIMIT ?3",
    [STATEMENT_AFFINE_RUN_WITHOUT] =
        LEASES
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.prefix <> 0 AND j.pool = ?1"
        " AND j.suite = ?2 AND j.prefix = ?4 AND " NOT_WITHOUT("?5") " ORDER BY j.priority DESC, j.id LIMIT ?3",
    [STATEMENT_SHADOW_RUN] =
        LEASES
        " WHERE j.state = 0 AND j.due_ns = -1 AND j.pool = ?1 ORDER BY j.id LIMIT ?2",
    [STATEMENT_SHADOW_RUN_WITHOUT] =
        LEASES
        " WHERE j.state = 0 AND j.due_ns = -1 AND j.pool = ?1 AND " NOT_WITHOUT("?3")
        " ORDER BY j.id LIMIT ?2",
    [STATEMENT_JOB_LEASE] =
        "UPDATE jobs SET state = 1, epoch = ?2, attempts = ?3, worker = ?4, claim_id = ?5, claimed_ns = ?6, due_ns = 0,"
        " progress_ns = 0, progress_mm = 0, progress_mflop = 0, progress_ticks = 0 WHERE id = ?1",
    [STATEMENT_CLAIM_LEASES] =
        LEASES
        " WHERE j.state = 1 AND j.worker = ?1 AND j.claim_id = ?2 ORDER BY j.id",
    [STATEMENT_JOB_HELD] =
        "SELECT j.state, j.epoch, w.id, w.name, w.device, j.attempts, j.lost, j.suite, j.pool,"
        " j.progress_ns, j.progress_mm, j.progress_mflop, s.context,"
        " COALESCE(x.ticks, 0), j.shadow IS NOT NULL, j.claim_id,"
        " u.tenant, u.budget_uusd, j.claimed_ns, c.driven,"
        " CASE WHEN EXISTS (SELECT 1 FROM unstarted) THEN 1 ELSE 0 END,"
        " CASE WHEN EXISTS (SELECT 1 FROM partial_outcomes o WHERE o.job = j.id) THEN 1 ELSE 0 END, {spec}"
        " FROM jobs j" STATEMENT_SPEC_JOINS " LEFT JOIN workers w ON w.id = j.worker WHERE j.id = ?1",
    [STATEMENT_JOB_END] =
        "UPDATE jobs SET state = ?2, attempts = ?3, lost = ?4, due_ns = ?5, delay_ns = ?6 WHERE id = ?1",
    [STATEMENT_JOB_PROGRESS_GET] = "SELECT j.state, j.epoch, w.name, j.progress_ns, j.progress_mm, j.progress_mflop,"
        " j.claimed_ns, j.suite, j.progress_ticks, j.rollouts, COALESCE(x.ticks, 0) FROM jobs j LEFT JOIN workers w"
        " ON w.id = j.worker LEFT JOIN job_specs s ON s.job = j.id LEFT JOIN scenarios x ON x.id = s.scenario WHERE j.id = ?1",
    [STATEMENT_JOB_PROGRESS_SET] = "UPDATE jobs SET progress_ns = ?2, progress_mm = ?3, progress_mflop = ?4,"
        " progress_ticks = CASE WHEN progress_ticks < ?5 THEN ?5 ELSE progress_ticks END WHERE id = ?1",
    [STATEMENT_ATTEMPT_GET] =
        "SELECT a.ending, w.name, a.device_ns, a.metres_mm, a.price_uusd_per_hour, a.cost_uusd,"
        " a.escalated_job, a.pool, a.device, a.tier, a.mflop, a.claimed_ns FROM attempts a"
        " CROSS JOIN workers w ON w.id = a.worker WHERE a.job = ?1 AND a.epoch = ?2",
    [STATEMENT_ATTEMPTS_NS] = "SELECT SUM(device_ns) FROM attempts WHERE job = ?1",
    [STATEMENT_ATTEMPT_INSERT] =
        "INSERT INTO attempts (job, epoch, worker, pool, device, tier, ending, device_ns,"
        " metres_mm, mflop, price_uusd_per_hour, cost_uusd, escalated_job, artifact_hash, error,"
        " claimed_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    [STATEMENT_ATTEMPT_UPDATE] =
        "UPDATE attempts SET ending = ?3, device_ns = ?4, metres_mm = ?5, mflop = ?6,"
        " cost_uusd = ?7, escalated_job = ?8, artifact_hash = ?9, error = ?10 WHERE job = ?1 AND epoch = ?2",
    [STATEMENT_OUTCOME_INSERT] =
        "INSERT INTO outcomes (job, epoch, suite, context, branch_id, digest, health_check, health_tick,"
        " health_value, health_threshold, evidence_hash, at_ms, {outcome names})"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, {outcome ?13})",
    [STATEMENT_LEASED_OF_WORKER] =
        "SELECT j.id FROM workers w CROSS JOIN jobs j ON j.worker = w.id"
        " WHERE w.name = ?1 AND j.state = 1 AND j.id > ?2 ORDER BY j.id LIMIT ?3",
    [STATEMENT_LEASED_WORKERS] =
        "SELECT name, openings, token, holder FROM workers"
        " WHERE id IN (SELECT DISTINCT worker FROM jobs WHERE state = 1)",
    /* A worker's pool is that of the jobs that it holds. */
    [STATEMENT_LEASED_OF_POOL] =
        "SELECT w.name, (SELECT COUNT(*) FROM jobs j WHERE j.worker = w.id AND j.state = 1) FROM workers w"
        " CROSS JOIN pools p ON p.id = w.pool WHERE p.name = ?1 AND w.name > ?2"
        " AND w.id IN (SELECT DISTINCT worker FROM jobs WHERE state = 1) ORDER BY w.name LIMIT ?3",
    [STATEMENT_DELAYED_OF_POOL] =
        "SELECT COUNT(*), COALESCE(MAX(j.due_ns), 0) FROM jobs j CROSS JOIN pools p ON p.id = j.pool"
        " WHERE j.state = 0 AND j.due_ns > 0 AND p.name = ?1",
    [STATEMENT_WORKER_UNHEARD] = "UPDATE workers SET openings = openings + ?2 WHERE name = ?1",
    [STATEMENT_WORKER_HEARD] = "UPDATE workers SET openings = 0 WHERE name = ?1 AND openings <> 0",
    /* `state <= 1` is what jobs_open is made of. */
    [STATEMENT_OPEN_OF_SUITE] =
        "SELECT j.id, j.state, j.pool, c.tier, COALESCE(x.ticks, 0), j.shadow IS NOT NULL FROM jobs j"
        " CROSS JOIN job_specs s ON s.job = j.id CROSS JOIN contexts c ON c.id = s.context"
        " LEFT JOIN scenarios x ON x.id = s.scenario"
        " WHERE j.state <= 1 AND j.suite = ?1 AND j.id <= ?2 ORDER BY j.id LIMIT ?3",
    [STATEMENT_OPEN_OF_SHADOW] = "SELECT id, state FROM jobs WHERE state <= 1 AND shadow = ?1 ORDER BY id LIMIT ?2",
    [STATEMENT_OPEN_LAST] = "SELECT id FROM jobs WHERE state <= 1 AND suite = ?1 ORDER BY id DESC LIMIT 1",
    [STATEMENT_CANCEL_QUEUED] = "UPDATE jobs SET state = 5, due_ns = 0, delay_ns = 0 WHERE id = ?1",
    [STATEMENT_DELAYED_PROMOTE] =
        "UPDATE jobs SET due_ns = CASE WHEN shadow IS NULL THEN 0 ELSE -1 END, delay_ns = 0"
        " WHERE state = 0 AND due_ns > 0 AND due_ns <= ?1",
    [STATEMENT_DELAYED_NEXT] =
        "SELECT due_ns FROM jobs WHERE state = 0 AND due_ns > 0 ORDER BY due_ns LIMIT 1",
    [STATEMENT_DELAYED_RESTART] =
        "UPDATE jobs SET due_ns = ?1 + delay_ns WHERE state = 0 AND due_ns > 0",

    [STATEMENT_AUDIT_ADD] =
        "INSERT INTO audit_log (at_s, name, role, action, subject, code) VALUES (?1, ?2, ?3, ?4, ?5, 0)",
    [STATEMENT_AUDIT_END] = "UPDATE audit_log SET code = ?2 WHERE id = ?1",
    [STATEMENT_AUDIT_DROP] = "DELETE FROM audit_log WHERE id <= ?1",
    [STATEMENT_AUDIT_PAGE] =
        "SELECT id, at_s, name, role, action, subject, code FROM audit_log WHERE id > ?1 ORDER BY id LIMIT ?2",
    [STATEMENT_LOG_LOSS_ADD] =
        "INSERT INTO log_losses (frames, commits, lost) VALUES (?1, ?2, ?3)",
    [STATEMENT_UNSTARTED_HOSTS] =
        "SELECT COUNT(*), COALESCE(SUM(CASE WHEN host = ?3 THEN 1 ELSE 0 END), 0), COALESCE(MAX(driven), 0) FROM unstarted"
        " WHERE planner = ?1 AND planner_hash = ?2",
    [STATEMENT_UNSTARTED_SET] =
        "INSERT INTO unstarted (planner, planner_hash, host, driven, suite, worker, error)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
        " ON CONFLICT (planner, planner_hash, host) DO UPDATE SET driven = ?4, suite = ?5,"
        " worker = ?6, error = ?7",
    [STATEMENT_UNSTARTED_DRIVEN] =
        "UPDATE unstarted SET driven = 1 WHERE planner = ?1 AND planner_hash = ?2",
    [STATEMENT_UNSTARTED_CLEAR] =
        "DELETE FROM unstarted WHERE planner = ?1 AND planner_hash = ?2 AND host = ?3",
    [STATEMENT_PLANNER_DRIVEN] =
        "SELECT 1 FROM contexts WHERE planner_hash = ?2 AND planner = ?1 AND driven = 1 LIMIT 1",
    [STATEMENT_CONTEXT_DRIVEN] =
        "UPDATE contexts SET driven = 1"
        " WHERE id = (SELECT context FROM job_specs WHERE job = ?1) AND driven = 0",
    [STATEMENT_UNSTARTED_SUITE] =
        "SELECT COUNT(DISTINCT t.host), w.name, t.error FROM unstarted t CROSS JOIN workers w ON w.id = t.worker"
        " WHERE t.suite = ?1",
    /* The first one of a rollout stays, among those of one party, but for a checkpoint. */
    [STATEMENT_PARTIAL_ADD] =
        "INSERT INTO partial_outcomes (job, branch_id, epoch, outcome, digest, at_ms, worker)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (job, branch_id) DO UPDATE SET epoch = ?3, outcome = ?4,"
        " digest = ?5, at_ms = ?6, worker = ?7 WHERE json_extract(partial_outcomes.outcome, '$.evidence_hash') <> '' OR NOT " ONE_PARTY("partial_outcomes.worker", "?7"),
    [STATEMENT_PARTIAL_TIME] = "SELECT p.at_ms FROM partial_outcomes p CROSS JOIN jobs j ON j.id = p.job WHERE p.job = ?1"
        " AND p.branch_id = ?2 AND json_extract(outcome, '$.evidence_hash') = '' AND " ONE_PARTY("p.worker", "j.worker"),
    [STATEMENT_PARTIAL_COUNT] = "SELECT COUNT(*) FROM partial_outcomes WHERE job = ?1",
    [STATEMENT_PARTIAL_DROP] = "DELETE FROM partial_outcomes WHERE job = ?1",

    [STATEMENT_LOG_LOST] = "SELECT COALESCE(SUM(lost), 0) FROM log_losses",
    [STATEMENT_PRICE_GET] =
        "SELECT COALESCE((SELECT price_uusd_per_hour FROM prices WHERE pool = ?1 AND device = ?2),"
        " (SELECT price_uusd_per_hour FROM prices WHERE pool = '' AND device = ?2))",
    [STATEMENT_PRICE_SET] =
        "INSERT INTO prices (pool, device, price_uusd_per_hour) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (pool, device) DO UPDATE SET price_uusd_per_hour = ?3",
    [STATEMENT_ACCOUNT_GET] =
        "SELECT carry FROM accounts WHERE pool = ?1 AND device = ?2"
        " AND price_uusd_per_hour = ?3",
    [STATEMENT_ACCOUNT_SET] =
        "INSERT INTO accounts (pool, device, price_uusd_per_hour, carry)"
        " VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT (pool, device, price_uusd_per_hour) DO UPDATE SET carry = ?4",
    [STATEMENT_LEDGER_ADD] =
        "INSERT INTO ledger (suite, pool, device, tier, audit, ending, attempts, device_ns,"
        " metres_mm, mflop, cost_uusd) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
        " ON CONFLICT (suite, pool, device, tier, audit, ending) DO UPDATE SET"
        " attempts = ledger.attempts + ?7, device_ns = " ADD("ledger.device_ns", "?8") ","
        " metres_mm = " ADD("ledger.metres_mm", "?9") ", mflop = " ADD("ledger.mflop", "?10") ","
        " cost_uusd = " ADD("ledger.cost_uusd", "?11"),
    [STATEMENT_LEDGER_TOTAL_ADD] =
        "INSERT INTO ledger_totals (pool, device, tier, audit, ending, attempts, device_ns,"
        " metres_mm, mflop, cost_uusd) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        " ON CONFLICT (pool, device, tier, audit, ending) DO UPDATE SET"
        " attempts = ledger_totals.attempts + ?6, device_ns = " ADD("ledger_totals.device_ns", "?7") ","
        " metres_mm = " ADD("ledger_totals.metres_mm", "?8") ", mflop = " ADD("ledger_totals.mflop", "?9") ","
        " cost_uusd = " ADD("ledger_totals.cost_uusd", "?10"),
    /* Of suites that are a tenant's. */
    [STATEMENT_TENANT_SPEND] =
        "INSERT INTO tenant_days (tenant, day, cost_uusd) SELECT tenant, ?2, ?3 FROM suites"
        " WHERE id = ?1 AND tenant IS NOT NULL ON CONFLICT (tenant, day) DO UPDATE SET"
        " cost_uusd = " ADD("tenant_days.cost_uusd", "?3"),
    [STATEMENT_TENANT_FIND] = "SELECT id FROM tenants WHERE name = ?1",
    [STATEMENT_TENANT_SET] =
        "INSERT INTO tenants (name, weight, jobs_queued_max, uusd_day_max, uusd_month_max,"
        " units_leased_max, scenario_bytes_max, sessions_max) VALUES (?1, " GIVEN("?2", "1") ", " GIVEN("?3", "0") ","
        " " GIVEN("?4", "0") ", " GIVEN("?5", "0") ", " GIVEN("?6", "0") ", " GIVEN("?7", "0") ", " GIVEN("?8", "0") ")"
        " ON CONFLICT (name) DO UPDATE SET weight = " GIVEN("?2", "tenants.weight") ","
        " jobs_queued_max = " GIVEN("?3", "tenants.jobs_queued_max") ", uusd_day_max = " GIVEN("?4", "tenants.uusd_day_max")
        ", uusd_month_max = " GIVEN("?5", "tenants.uusd_month_max") ","
        " units_leased_max = " GIVEN("?6", "tenants.units_leased_max") ","
        " scenario_bytes_max = " GIVEN("?7", "tenants.scenario_bytes_max") ", sessions_max = " GIVEN("?8", "tenants.sessions_max")
        ", version = tenants.version + 1",
    [STATEMENT_TENANT_LIMITED] = "SELECT id FROM tenants WHERE units_leased_max > 0 ORDER BY id", /* see tenants.h */
    [STATEMENT_TENANT_UNITS] =
        "INSERT INTO tenant_units (tenant, ended, units) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (tenant, ended) DO UPDATE SET units = tenant_units.units + ?3",
    [STATEMENT_TENANT_BRING] =
        "INSERT INTO tenant_scenarios (tenant, bytes) VALUES (?1, ?2)"
        " ON CONFLICT (tenant) DO UPDATE SET bytes = tenant_scenarios.bytes + ?2",
    [STATEMENT_TENANT_BROUGHT] =
        "SELECT t.scenario_bytes_max, b.bytes FROM tenants t CROSS JOIN tenant_scenarios b ON b.tenant = t.id"
        " WHERE t.id = ?1",
    [STATEMENT_TENANT_PAGE] = "SELECT {tenant} FROM tenants t WHERE t.name > ?1 ORDER BY t.name LIMIT ?4",
    [STATEMENT_TENANT_SESSIONS] = "SELECT sessions_max FROM tenants WHERE name = ?1",
    [STATEMENT_TENANT_ONE] = "SELECT {tenant} FROM tenants t WHERE t.name = ?1",
    [STATEMENT_LEDGER_SUITE] =
        "SELECT p.name, l.device, l.tier, l.audit, l.ending, l.attempts, l.device_ns,"
        " l.metres_mm, l.mflop, l.cost_uusd FROM suites u CROSS JOIN ledger l ON l.suite = u.id"
        " CROSS JOIN pools p ON p.id = l.pool WHERE u.name = ?2 AND l.attempts > 0"
        " ORDER BY p.name, l.device, l.tier, l.audit, l.ending LIMIT ?1",
    [STATEMENT_LEDGER_ALL] =
        "SELECT p.name, t.device, t.tier, t.audit, t.ending, t.attempts, t.device_ns,"
        " t.metres_mm, t.mflop, t.cost_uusd FROM pools p CROSS JOIN ledger_totals t ON t.pool = p.id"
        " WHERE t.attempts > 0 ORDER BY p.name, t.device, t.tier, t.audit, t.ending LIMIT ?1",
    [STATEMENT_LEDGER_BOOKED] = "SELECT device_ns, metres_mm, mflop FROM ledger_totals",
    [STATEMENT_LEDGER_COST] =
        "SELECT SUM(device_ns), SUM(cost_uusd), SUM(mflop) FROM ledger WHERE suite = ?1 AND audit <> 2",

    [STATEMENT_AUDITS_DEAD] = "SELECT COUNT(*) FROM jobs j JOIN job_specs s ON s.job = j.id WHERE j.state = 4 AND j.suite = ?1 AND j.audit = 1 AND (s.makes = '' OR s.audit_key IS NOT NULL)",
    [STATEMENT_MAINS_OF_SUITE] =
        "SELECT planner, tier, name, " ENDED("0") ENDED("1") ENDED("2") ENDED("3") ENDED("4")
        ENDED("5") ENDED("6") " SUM(CASE verdict WHEN 7 THEN 1 ELSE 0 END) FROM (SELECT c.planner, c.tier, s.scenario_id AS name, s.scenario, o.verdict"
        " FROM outcomes o" MAIN_JOINS("o.job") " WHERE o.suite = ?1" MAIN_LINES
        " UNION ALL SELECT c.planner, c.tier, s.scenario_id, s.scenario, o.verdict FROM memo_outcomes m"
        " CROSS JOIN outcomes o ON o.id = m.outcome" MAIN_JOINS("m.job") " WHERE m.suite = ?1" MAIN_LINES
        LACKING("5", "", "j.state = 4") LACKING("7", "", "j.state <= 1") LACKING("6", "suites u CROSS JOIN ", "u.id = ?1 AND u.jobs_cancelled > 0 AND j.state = 5") ") lines GROUP BY planner, tier, name, scenario ORDER BY planner, tier, name",
    [STATEMENT_JOB_GET] = "SELECT " JOB_COLUMNS " FROM jobs j" JOB_JOINS " WHERE j.id = ?1",
    [STATEMENT_DEAD_JOBS] = JOBS_WHERE("j.state = 4"),
    [STATEMENT_CANCELLED_JOBS] = JOBS_WHERE("j.state = 5"),
    [STATEMENT_JOBS_OPEN_IN] = JOBS_WHERE("j.state <= 1 AND j.state = ?4"),
    [STATEMENT_JOBS_IN_STATE] = JOBS_WHERE("j.state = ?4"),
    [STATEMENT_OUTCOMES_EACH] =
        OUTCOMES_EACH(CHUNK("SELECT *, job AS asked FROM outcomes WHERE id > ?1 ORDER BY id") " each"),
    [STATEMENT_OUTCOMES_EACH_SUITE] = OUTCOMES_EACH(
        CHUNK("SELECT *, job AS asked FROM outcomes WHERE suite = ?3 AND id > ?1 ORDER BY id")
        " own UNION ALL "
        CHUNK("SELECT f.*, m.job AS asked FROM memo_outcomes m CROSS JOIN outcomes f ON f.id = m.outcome"
              " WHERE m.suite = ?3 AND m.outcome > ?1 ORDER BY m.outcome") " taken"),
    [STATEMENT_OUTCOMES_ALL] = OUTCOMES("SELECT id AS outcome, job FROM outcomes WHERE id > ?1"),
    [STATEMENT_OUTCOMES_JOB] = OUTCOMES(
        "SELECT o.id AS outcome, j.id AS job FROM jobs j"
        " CROSS JOIN outcomes o ON o.job = COALESCE(j.memo_of, j.id) WHERE o.id > ?1 AND j.id = ?5"),
    [STATEMENT_OUTCOMES_SUITE] = OUTCOMES(
        CHUNK("SELECT id AS outcome, job FROM outcomes WHERE suite = ?5 AND id > ?1 ORDER BY id")
        " own UNION ALL " MEMO_IDS),
    [STATEMENT_OUTCOMES_VERDICT] =
        OUTCOMES("SELECT id AS outcome, job FROM outcomes WHERE verdict = ?4 AND id > ?1"),
    [STATEMENT_OUTCOMES_SUITE_VERDICT] = OUTCOMES(
        CHUNK("SELECT id AS outcome, job FROM outcomes WHERE suite = ?5 AND verdict = ?4 AND id > ?1"
              " ORDER BY id") " own UNION ALL " MEMO_IDS),
    /* An outcome's scenario is its job's, or one of its own. */
    [STATEMENT_OUTCOMES_SCENARIO] = OUTCOMES(
        "SELECT o.id AS outcome, o.job AS job FROM job_specs s"
        " CROSS JOIN outcomes o ON o.job = s.job"
        " WHERE s.scenario_id = ?3 AND o.scenario_id IS NULL AND o.id > ?1"
        " UNION ALL"
        " SELECT id, job FROM outcomes WHERE scenario_id = ?3 AND id > ?1"),
    [STATEMENT_OUTCOMES_SUITE_SCENARIO] = OUTCOMES(
        "SELECT o.id AS outcome, o.job AS job FROM job_specs s"
        " CROSS JOIN outcomes o ON o.job = s.job"
        " WHERE s.scenario_id = ?3 AND s.suite = ?5 AND o.scenario_id IS NULL AND o.id > ?1"
        " UNION ALL"
        " SELECT m.outcome, m.job FROM job_specs s CROSS JOIN outcomes o ON o.job = s.job"
        " CROSS JOIN memo_outcomes m ON m.suite = ?5 AND m.outcome = o.id"
        " WHERE s.scenario_id = ?3 AND o.scenario_id IS NULL AND o.id > ?1"
        " UNION ALL"
        " SELECT id, job FROM outcomes WHERE scenario_id = ?3 AND suite = ?5 AND id > ?1"
        " UNION ALL"
        " SELECT m.outcome, m.job FROM outcomes o"
        " CROSS JOIN memo_outcomes m ON m.suite = ?5 AND m.outcome = o.id"
        " WHERE o.scenario_id = ?3 AND o.id > ?1"),
    /* Of suite ?2 (0: all), over the next 10,000 jobs above ?1, and where those end. An outcome's own
     * scenario is rare, and may be taken over from another suite. */
    [STATEMENT_SCENARIO_IDS] =
        "WITH chunk AS MATERIALIZED (SELECT job, suite, scenario_id FROM job_specs WHERE job > ?1"
        " ORDER BY job LIMIT 10000), ends AS MATERIALIZED (SELECT MAX(job) AS job FROM chunk)"
        " SELECT n.scenario_id, e.job FROM ends e CROSS JOIN (SELECT CASE WHEN ?2 = 0 OR suite = ?2"
        " THEN scenario_id ELSE '' END AS scenario_id FROM chunk"
        " UNION SELECT o.scenario_id FROM outcomes o WHERE o.scenario_id IS NOT NULL AND o.job > ?1"
        " AND o.job <= (SELECT job FROM ends)) n",
    [STATEMENT_SCENARIO_JOBS] =
        "SELECT COUNT(*) FROM (SELECT 1 FROM job_specs WHERE scenario_id = ?1 LIMIT ?2) n",
    [STATEMENT_PARTIALS_OF_JOB] =
        "SELECT p.job, p.branch_id, p.epoch, p.outcome, p.digest, p.at_ms FROM partial_outcomes p"
        " CROSS JOIN jobs j ON j.id = p.job WHERE p.job = ?1 AND " ONE_PARTY("p.worker", "j.worker")
        " ORDER BY p.branch_id LIMIT ?2",
    [STATEMENT_POOL_JOBS] =
        "SELECT p.name, n.state, n.jobs, p.jobs_handed_back FROM pools p CROSS JOIN pool_jobs n ON n.pool = p.id"
        " ORDER BY p.id, n.state",
    [STATEMENT_SUITES_OLDER] =
        "SELECT name FROM suites WHERE id < (SELECT id FROM suites WHERE name = ?1)"
        " ORDER BY id DESC LIMIT ?2",
    [STATEMENT_PROGRESS_OF_SUITE] =
        "SELECT pool, tier, jobs_open, ticks, ticks_open, wall_ns FROM suite_progress"
        " WHERE suite = ?1",
    [STATEMENT_PROGRESS_ELSEWHERE] =
        "SELECT ticks - ticks_open, wall_ns FROM suite_progress o"
        " WHERE wall_ns > 0 AND pool = ?1 AND tier = ?2 AND suite <> ?3 AND EXISTS (SELECT 1"
        " FROM suite_planners m CROSS JOIN suite_planners t ON t.suite = o.suite AND t.planner = m.planner"
        " WHERE m.suite = ?3) ORDER BY suite DESC LIMIT 1",
    /* Suites with open jobs by steps through their index, since most suites have none. */
    [STATEMENT_DEMAND] =
        "WITH RECURSIVE unfinished (suite) AS (SELECT MIN(suite) FROM jobs WHERE state <= 1"
        " UNION ALL SELECT (SELECT MIN(suite) FROM jobs WHERE state <= 1 AND suite > u.suite)"
        " FROM unfinished u WHERE u.suite IS NOT NULL),"
        " held AS MATERIALIZED (SELECT j.suite AS suite, j.pool AS pool, c.tier AS tier,"
        " COUNT(*) AS jobs, SUM(COALESCE(x.ticks, 0)) AS ticks"
        " FROM jobs j CROSS JOIN job_specs s ON s.job = j.id"
        " CROSS JOIN contexts c ON c.id = s.context LEFT JOIN scenarios x ON x.id = s.scenario"
        " WHERE j.state = 1 AND j.shadow IS NULL GROUP BY 1, 2, 3)"
        " SELECT p.name, n.tier, SUM(n.jobs_open - COALESCE(h.jobs, 0)),"
        " SUM(COALESCE(h.jobs, 0)), SUM(n.ticks_open - COALESCE(h.ticks, 0)),"
        " MIN(CASE WHEN n.jobs_open > COALESCE(h.jobs, 0) THEN t.submitted_s END)"
        " FROM unfinished u CROSS JOIN suite_progress n ON n.suite = u.suite"
        " CROSS JOIN pools p ON p.id = n.pool CROSS JOIN suites t ON t.id = n.suite"
        " LEFT JOIN held h ON h.suite = n.suite AND h.pool = n.pool AND h.tier = n.tier"
        " WHERE n.jobs_open > 0 GROUP BY p.id, p.name, n.tier ORDER BY p.id, n.tier LIMIT ?1",
    [STATEMENT_DEMAND_TICKS] =
        "SELECT c.pool, c.tier, o.device_ns, o.ticks - o.prefix_ticks FROM outcomes o"
        " CROSS JOIN contexts c ON c.id = o.context"
        " WHERE o.id > (SELECT MAX(id) FROM outcomes) - ?1"
        " AND (SELECT j.shadow FROM jobs j WHERE j.id = o.job) IS NULL",
    [STATEMENT_PAGES_USED] =
        "SELECT c.pool, c.tier, MAX(o.pages_used_percent) FROM outcomes o"
        " CROSS JOIN contexts c ON c.id = o.context"
        " WHERE o.id > (SELECT MAX(id) FROM outcomes) - ?1 AND o.pages_used_percent > 0"
        " GROUP BY c.pool, c.tier ORDER BY c.pool, c.tier LIMIT ?2",
    [STATEMENT_SLICES_OF_SUITE] =
        "SELECT * FROM (SELECT " SLICE_COLUMNS " FROM outcomes o CROSS JOIN jobs j ON j.id = o.job"
        " CROSS JOIN contexts c ON c.id = o.context WHERE o.suite = ?2 AND o.id > ?1"
        " ORDER BY o.id LIMIT ?3) own"
        " UNION ALL SELECT * FROM (SELECT " SLICE_COLUMNS " FROM memo_outcomes m"
        " CROSS JOIN outcomes o ON o.id = m.outcome CROSS JOIN jobs j ON j.id = m.job"
        " CROSS JOIN contexts c ON c.id = o.context WHERE m.suite = ?2 AND m.outcome > ?1"
        " ORDER BY m.outcome LIMIT ?3) taken"
        " ORDER BY 1 LIMIT ?3",
    [STATEMENT_WORKER_LIVE] =
        "SELECT p.name, w.device, w.host,"
        " (SELECT COUNT(*) FROM jobs j WHERE j.worker = w.id AND j.state = 1)"
        " FROM workers w CROSS JOIN pools p ON p.id = w.pool WHERE w.name = ?1",
    [STATEMENT_CHECK_SUITES] =
        "SELECT u.id, u.name, rollouts_pass, rollouts_fail, rollouts_planner_error, rollouts_flagged,"
        " rollouts_invalid, rollouts_audit, ticks, prefix_ticks_saved, metres_mm, outcomes_digested, outcomes_digest,"
        " digest, COALESCE(t.name, ''), submitted_s FROM suites u LEFT JOIN tenants t ON t.id = u.tenant ORDER BY u.id",
    [STATEMENT_CHECK_OUTCOMES] =
        "SELECT {outcome}, o.suite, " STATEMENT_JOB_KIND ", o.digest FROM outcomes o"
        " CROSS JOIN jobs j ON j.id = o.job" OUTCOME_JOINS(" CROSS JOIN") " ORDER BY o.id",
    [STATEMENT_CHECK_PARTIALS] =
        "SELECT job, branch_id, epoch, outcome, digest, at_ms FROM partial_outcomes ORDER BY job",
    [STATEMENT_CHECK_SPEC] = "SELECT {spec} FROM jobs j" STATEMENT_SPEC_JOINS " WHERE j.id = ?1",
    [STATEMENT_CHECK_MEMOS] =
        "SELECT m.suite, " STATEMENT_JOB_KIND ", o.verdict, COUNT(*) FROM memo_outcomes m"
        " JOIN outcomes o ON o.id = m.outcome JOIN jobs j ON j.id = m.job GROUP BY 1, 2, 3",
    [STATEMENT_CHECK_ATTEMPTS] =
        "SELECT job, epoch, device_ns, metres_mm, mflop, price_uusd_per_hour, cost_uusd"
        " FROM attempts",
    [STATEMENT_CHECK_ACCOUNTS] =
        "WITH n AS MATERIALIZED (SELECT pool, device, price_uusd_per_hour AS price,"
        " SUM(device_ns) AS device_ns, SUM(cost_uusd) AS cost_uusd FROM attempts GROUP BY 1, 2, 3)"
        " SELECT n.pool, n.device, n.price, n.device_ns, n.cost_uusd, c.carry FROM n"
        " LEFT JOIN accounts c ON c.pool = n.pool AND c.device = n.device"
        " AND c.price_uusd_per_hour = n.price"
        " UNION ALL SELECT c.pool, c.device, c.price_uusd_per_hour, 0, 0, c.carry FROM accounts c"
        " LEFT JOIN n ON c.pool = n.pool AND c.device = n.device"
        " AND c.price_uusd_per_hour = n.price WHERE n.pool IS NULL",
    [STATEMENT_CHECK_SCENARIOS] =
        "SELECT s.id, s.hash, s.body, s.map_at, m.body FROM scenarios s"
        " LEFT JOIN maps m ON m.id = s.map",
    [STATEMENT_CHECK_MAPS] = "SELECT id, hash, body FROM maps",
    [STATEMENT_CHECK_RETAINED] =
        "SELECT o.artifact_hash, o.evidence_hash, o.verdict, c.tier, o.safety_critical,"
        " s.audit_key IS NOT NULL OR EXISTS (SELECT 1 FROM job_specs a WHERE a.audit_key = s.key)"
        " OR EXISTS (SELECT 1 FROM job_specs a WHERE a.audit_key = s.asked_key),"
        " o.weather, o.light, o.road, o.geography, o.actor, o.scenario_type"
        " FROM outcomes o CROSS JOIN job_specs s ON s.job = o.job"
        " CROSS JOIN contexts c ON c.id = o.context WHERE o.artifact_hash <> '' AND (s.makes = '' OR s.audit_key IS NOT NULL)",
    [STATEMENT_CHECK_PINS] = ARTIFACT_PINS,
    [STATEMENT_CHECK_ARTIFACTS] =
        "SELECT artifact_hash, id FROM outcomes WHERE artifact_hash <> '' AND job " NOT_MADE
        " UNION ALL SELECT evidence_hash, id FROM outcomes WHERE evidence_hash IS NOT NULL"
        " UNION ALL SELECT artifact_hash, 0 FROM attempts WHERE artifact_hash IS NOT NULL AND job " NOT_MADE
        " UNION ALL " ARTIFACT_PINS,
};
/* clang-format on */

const char *statement_pattern(enum statement statement)
{
    const char *text = statement_sql[statement];
    return text != NULL ? text : statement_models_sql[statement];
}

char *statement_text(enum statement statement)
{
    const char *pattern = statement_pattern(statement);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL) {
        return NULL;
    }
    while (*pattern != '\0') {
        size_t plain = strcspn(pattern, "{");
        size_t mark = strcspn(pattern + plain, "}");
        fwrite(pattern, 1, plain, out);
        pattern += plain;
        if (*pattern == '{') {
            columns_put(out, pattern + 1, mark - 1);
            pattern += mark + 1;
        }
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
