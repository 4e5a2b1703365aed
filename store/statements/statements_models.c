/*
 * Texts of the kept statements of models, goldens, labels and planners of suites, freezes and
 * redrives, and of budgets of suites. See statements.c.
 */
#include "store/statements/statements.h"

/* The greatest id that an outcome has had, dropped ones included; 0: there was none. */
#define LAST_OUTCOME                                                                    \
    "COALESCE((SELECT MAX(n.last) FROM (SELECT MAX(id) AS last FROM outcomes UNION ALL" \
    " SELECT MAX(last_outcome) AS last FROM redrives) n), 0)"

/* clang-format off */
/* Queued jobs of suite ?1: `state <= 1` is what jobs_open is made of. */
#define QUEUED_OF_SUITE "state <= 1 AND state = 0 AND suite = ?1"

/* Jobs `j` by pool and tier, and their planned ticks; those of shadows are counted nowhere. */
#define JOBS_IN_PARTS(jobs)                                                             \
    "SELECT j.pool, c.tier, COUNT(*), SUM(COALESCE(x.ticks, 0)) FROM (" jobs ") j"       \
    " CROSS JOIN job_specs s ON s.job = j.id CROSS JOIN contexts c ON c.id = s.context" \
    " LEFT JOIN scenarios x ON x.id = s.scenario GROUP BY j.pool, c.tier ORDER BY j.pool, c.tier LIMIT ?2 OFFSET ?3"

const char *const statement_models_sql[STATEMENT_COUNT] = {
    [STATEMENT_MODEL_FIND] = "SELECT {model}, m.id FROM models m WHERE m.name = ?1",
    [STATEMENT_MODEL_INSERT] =
        "INSERT INTO models (digest, {model names}) VALUES (?1, {model ?2})"
        " ON CONFLICT (hash, precision) DO NOTHING",
    [STATEMENT_MODEL_SET] =
        "UPDATE models SET state = ?2, canary_percent = ?3 WHERE id = ?1",
    [STATEMENT_MODEL_PAGE] =
        "SELECT {model} FROM models m WHERE m.name > ?1 ORDER BY m.name LIMIT ?2",
    [STATEMENT_MODEL_POINTERS] =
        "SELECT {model}, m.id FROM models m WHERE m.tier = ?1 AND m.state = 3"
        " UNION ALL"
        " SELECT {model}, m.id FROM models m WHERE m.tier = ?1 AND m.state = 2"
        " UNION ALL"
        " SELECT {model}, m.id FROM models m WHERE m.tier = ?1 AND m.state = 1"
        " AND m.canary_percent > 0",
    [STATEMENT_MODEL_EVENT_ADD] =
        "INSERT INTO model_events (model, digest, {model_event names}) VALUES (?1, ?2, {model_event ?3})",
    [STATEMENT_MODEL_EVENT_NEXT] =
        "SELECT COALESCE((SELECT MAX(id) FROM model_events), 0) + 1,"
        " " LAST_OUTCOME,
    [STATEMENT_GOLDEN_FIND] = "SELECT {golden} FROM goldens g WHERE g.name = ?1",
    [STATEMENT_GOLDEN_INSERT] =
        "INSERT INTO goldens (digest, {golden names}) VALUES (?1, {golden ?2}) ON CONFLICT (hash) DO NOTHING",
    [STATEMENT_GOLDEN_KEEP] =
        "INSERT INTO golden_artifacts (golden, hash) VALUES"
        " ((SELECT id FROM goldens WHERE name = ?1), ?2) ON CONFLICT (golden, hash) DO NOTHING",
    [STATEMENT_GOLDEN_PAGE] =
        "SELECT {golden} FROM goldens g WHERE g.name > ?1 ORDER BY g.name LIMIT ?2",
    [STATEMENT_GOLDEN_LEAVE] =
        "DELETE FROM golden_artifacts WHERE golden = (SELECT id FROM goldens WHERE name = ?1)",
    [STATEMENT_GOLDEN_DROP] = "DELETE FROM goldens WHERE name = ?1",
    [STATEMENT_LABEL_ADD] = "INSERT INTO labels (suite, kind, text, at_s) VALUES (?1, ?2, ?3, ?4)",
    [STATEMENT_LABEL_LEAVE_SUITE] = "DELETE FROM labels WHERE kind = ?1 AND suite = ?2",
    [STATEMENT_LABEL_LEAVE_NAME] = /* of the tenant whose the suite is */
        "DELETE FROM labels WHERE kind = ?1 AND text = ?2 AND suite IN (SELECT u.id FROM suites u"
        " CROSS JOIN suites s ON s.id = ?3 WHERE COALESCE(u.tenant, 0) = COALESCE(s.tenant, 0))",
    [STATEMENT_LABEL_DROP] = "DELETE FROM labels WHERE suite = ?1 AND kind = ?2 AND text = ?3",
    [STATEMENT_FILES_OF_SUITE] =
        "SELECT l.text FROM suites u CROSS JOIN labels l ON l.suite = u.id WHERE u.name = ?1 AND l.kind = 4 ORDER BY l.id",
    [STATEMENT_LABELS] =
        "SELECT {label} FROM labels l CROSS JOIN suites u ON u.id = l.suite WHERE l.kind <> 4"
        " AND l.id > ?1 ORDER BY l.id LIMIT ?2",
    [STATEMENT_LABELS_OF_KIND] =
        "SELECT {label} FROM labels l CROSS JOIN suites u ON u.id = l.suite WHERE l.kind = ?3"
        " AND l.id > ?1 ORDER BY l.id LIMIT ?2",
    [STATEMENT_LABELS_OF_SUITE] = "SELECT kind, text FROM labels WHERE suite = ?1 ORDER BY id",
    [STATEMENT_PLANNERS_OF_SUITE] =
        "SELECT planner FROM suite_planners WHERE suite = ?1 ORDER BY planner",
    [STATEMENT_RUNNING_OF_SUITE] = /* by the leased jobs, of which there are few */
        "SELECT j.pool, c.tier, SUM(CASE WHEN j.progress_ticks < COALESCE(x.ticks, 0) THEN j.progress_ticks"
        "  ELSE COALESCE(x.ticks, 0) END), MIN(j.claimed_ns) FROM jobs j"
        " CROSS JOIN job_specs s ON s.job = j.id CROSS JOIN contexts c ON c.id = s.context"
        " LEFT JOIN scenarios x ON x.id = s.scenario WHERE j.state = 1 AND +j.suite = ?1"
        " AND j.claimed_ns > 0 GROUP BY j.pool, c.tier",
    [STATEMENT_CONTEXT_OF_SUITE] = /* of an open job, an answer, one taken over, a dead job */
        "SELECT c.planner_hash, s.rig FROM job_specs s CROSS JOIN contexts c ON c.id = s.context WHERE s.job = COALESCE("
        " (SELECT j.id FROM jobs j WHERE j.suite = ?1 AND j.state <= 1 LIMIT 1),"
        " (SELECT o.job FROM outcomes o WHERE o.suite = ?1 LIMIT 1),"
        " (SELECT o.job FROM memo_outcomes m CROSS JOIN outcomes o ON o.id = m.outcome WHERE m.suite = ?1 LIMIT 1),"
        " (SELECT j.id FROM jobs j WHERE j.suite = ?1 AND j.state = 4 LIMIT 1))",
    [STATEMENT_TRUST_NEXT] =
        "SELECT COALESCE((SELECT MAX(id) FROM trust_events), 0) + 1,"
        " " LAST_OUTCOME,
    [STATEMENT_TRUST_ADD] =
        "INSERT INTO trust_events (digest, {trust names}) VALUES (?1, {trust ?2})",
    [STATEMENT_TRUST_GET] = "SELECT {trust_told} FROM trust_events t WHERE t.id = ?1",
    [STATEMENT_TRUST_PAGE] =
        "SELECT {trust_told} FROM trust_events t WHERE t.id > ?1 ORDER BY t.id LIMIT ?2",
    [STATEMENT_TRUST_HOLDING] =
        "SELECT {trust} FROM trust_events t WHERE t.kind = 0 AND NOT EXISTS"
        " (SELECT 1 FROM trust_events e WHERE e.kind = 1 AND e.freeze_event = t.id) ORDER BY t.id",
    [STATEMENT_TRUST_FLOOR] =
        "SELECT {trust} FROM trust_events t WHERE t.kind = 2 ORDER BY t.id DESC LIMIT 1",
    [STATEMENT_TRUST_PASSED] =
        "SELECT 1 FROM model_events e CROSS JOIN models m ON m.id = e.model WHERE e.id = ?1"
        " AND e.kind = 2 AND e.passed = 1 AND (e.expires_s = 0 OR e.expires_s > ?2) AND m.hash = ?3"
        " AND m.sampler = ?4 AND e.after_outcome > ?5",
    [STATEMENT_FREEZE_SUITE] =
        "SELECT suite FROM jobs WHERE state <= 1 AND suite > ?1 ORDER BY suite LIMIT 1",
    [STATEMENT_FREEZE_JOBS] =
        "SELECT j.id, j.state, {spec} FROM jobs j" STATEMENT_SPEC_JOINS
        " WHERE j.state <= 1 AND j.suite = ?1 AND j.id > ?2 ORDER BY j.id LIMIT ?3",
    [STATEMENT_FREEZE_PLACE] =
        "SELECT j.suite, j.pool, COALESCE(x.ticks, 0) FROM jobs j CROSS JOIN job_specs s ON s.job = j.id"
        " LEFT JOIN scenarios x ON x.id = s.scenario WHERE j.id = ?1",
    [STATEMENT_FREEZE_MOVE] = "UPDATE jobs SET pool = ?2, follows = ?3, freeze_event = ?4 WHERE id = ?1",
    [STATEMENT_FREEZE_ROUTE] = "UPDATE job_specs SET route_reason = ?2, route_own = 0, route_other = 0 WHERE job = ?1",
    [STATEMENT_FREEZE_MARK] = "UPDATE jobs SET freeze_event = ?2 WHERE id = ?1 AND freeze_event IS NULL",
    [STATEMENT_FREEZE_UNMARK] =
        "UPDATE jobs SET freeze_event = NULL WHERE id = ?1 AND freeze_event IS NOT NULL",
    [STATEMENT_FREEZE_MOOT] = /* an audit that waits, and what it repeats the teacher answers */
        "SELECT j.freeze_event, a.suite, a.pool, COALESCE(x.ticks, 0) FROM jobs a"
        " CROSS JOIN job_specs r ON r.job = a.id"
        " CROSS JOIN job_specs s ON s.key = r.audit_key AND s.suite = r.suite"
        " CROSS JOIN jobs j ON j.id = s.job CROSS JOIN contexts c ON c.id = s.context"
        " LEFT JOIN scenarios x ON x.id = r.scenario WHERE a.id = ?1 AND a.state = 0 AND a.audit = 1"
        " AND s.audit_key IS NULL AND j.freeze_event IS NOT NULL AND c.tier = 3",
    [STATEMENT_FREEZE_DROP] =
        "UPDATE jobs SET state = 5, due_ns = 0, delay_ns = 0, freeze_event = ?2 WHERE id = ?1",
    [STATEMENT_AUDIT_FIND] =
        "SELECT 1 FROM job_specs s CROSS JOIN jobs j ON j.id = s.job"
        " WHERE s.audit_key = ?1 AND s.suite = ?2 AND s.makes = '' AND j.shadow IS NULL LIMIT 1",
    [STATEMENT_CHECK_TRUST] = "SELECT t.id, t.digest, {trust} FROM trust_events t",
    [STATEMENT_CHECK_GOLDENS] = "SELECT g.id, g.digest, {golden} FROM goldens g",
    [STATEMENT_CHECK_MODELS] = "SELECT m.id, m.digest, {model} FROM models m",
    [STATEMENT_CHECK_MODEL_EVENTS] =
        "SELECT e.id, e.digest, {model_event} FROM model_events e CROSS JOIN models m ON m.id = e.model",
    [STATEMENT_MODEL_EVENT_PAGE] =
        "SELECT {model_event} FROM model_events e CROSS JOIN models m ON m.id = e.model"
        " WHERE e.id > ?1 ORDER BY e.id LIMIT ?2",
    [STATEMENT_MODEL_EVENT_LAST] =
        "SELECT {model_event} FROM model_events e CROSS JOIN models m ON m.id = e.model"
        " WHERE e.model = ?1 ORDER BY e.id DESC LIMIT 1",
    /* The last evaluation decides; who has been promoted before may come back. */
    [STATEMENT_MODEL_FIT] =
        "SELECT COALESCE((SELECT CASE WHEN e.passed = 1 AND (e.expires_s = 0 OR e.expires_s > ?2)"
        "  THEN 1 ELSE 0 END"
        "  FROM model_events e WHERE e.model = ?1 AND e.kind = 2 ORDER BY e.id DESC LIMIT 1), 0),"
        " EXISTS (SELECT 1 FROM model_events e WHERE e.model = ?1 AND e.kind = 1 AND e.to_state = 3),"
        " EXISTS (SELECT 1 FROM model_events e WHERE e.model = ?1 AND e.kind = 2)",
    [STATEMENT_FOLLOWING_JOBS] =
        "SELECT j.id, {spec} FROM jobs j" STATEMENT_SPEC_JOINS
        " WHERE j.state = 0 AND j.follows = 1 AND j.id > ?1 ORDER BY j.id LIMIT ?2",
    [STATEMENT_FOLLOWER_MOVE] =
        "UPDATE job_specs SET asked_key = COALESCE(asked_key, key), key = ?2, context = ?3"
        " WHERE job = ?1"
        " AND NOT EXISTS (SELECT 1 FROM job_specs t WHERE t.key = ?2 AND t.suite = job_specs.suite)",
    [STATEMENT_FOLLOWER_LEFT] = "UPDATE jobs SET claim_id = 0 WHERE id = ?1",
    [STATEMENT_FOLLOWER_TWINS] =
        "UPDATE job_specs SET audit_key = ?2 WHERE audit_key = ?1"
        " AND suite = (SELECT suite FROM jobs WHERE id = ?3)",

    [STATEMENT_REDRIVE_AUTHOR] =
        "SELECT 1 FROM workers w WHERE (?1 = '' OR w.token = ?1) AND (?2 = '' OR w.name = ?2) LIMIT 1",
    [STATEMENT_REDRIVE_NEWEST] =
        "SELECT COALESCE((SELECT MAX(id) FROM jobs), 0), " LAST_OUTCOME,
    [STATEMENT_REDRIVE_COUNT] = "SELECT COALESCE(MAX(id), 0) FROM redrives",
    [STATEMENT_REDRIVE_FLOOR] = "SELECT COALESCE(MAX(last_outcome), 0) FROM redrives",
    [STATEMENT_REDRIVE_JOBS] =
        "SELECT j.id, j.suite, j.pool, c.tier, COALESCE(x.ticks, 0), j.audit, j.shadow IS NOT NULL, j.epoch,"
        " j.attempts, j.lost, j.state, j.state = 4 AND EXISTS (SELECT 1 FROM attempts f WHERE f.job = j.id AND f.ending = 1)"
        " FROM jobs j CROSS JOIN workers w ON w.id = j.worker"
        " CROSS JOIN job_specs s ON s.job = j.id CROSS JOIN contexts c ON c.id = s.context"
        " LEFT JOIN scenarios x ON x.id = s.scenario"
        " WHERE j.id > ?1 AND j.id <= ?2 AND (((j.state = 2 AND j.memo_of IS NULL"
        " OR j.state = 4 AND j.shadow IS NULL AND EXISTS (SELECT 1 FROM attempts f WHERE f.job = j.id AND f.ending = 1))"
        " AND (?3 = '' OR w.token = ?3) AND (?4 = '' OR w.name = ?4))"
        " OR (j.state = 4 AND j.shadow IS NULL AND NOT EXISTS (SELECT 1 FROM attempts f WHERE f.job = j.id AND f.ending = 1)"
        " AND EXISTS (SELECT 1 FROM attempts a JOIN workers v ON v.id = a.worker WHERE a.job = j.id"
        " AND a.ending IN (2, 4, 5) AND (?3 = '' OR v.token = ?3) AND (?4 = '' OR v.name = ?4))))"
        " ORDER BY j.id LIMIT ?5",
    [STATEMENT_REDRIVE_COUNTED] =
        "SELECT a.epoch, a.ending FROM attempts a JOIN workers w ON w.id = a.worker WHERE a.job = ?1"
        " AND a.ending IN (2, 4, 5) AND (?2 = '' OR w.token = ?2) AND (?3 = '' OR w.name = ?3) LIMIT ?4",
    [STATEMENT_REDRIVE_OUTCOMES] =
        "SELECT id, verdict, ticks, prefix_ticks, metres_mm, digest FROM outcomes WHERE job = ?1",
    /* Jobs with the same key, which is what finds them. */
    [STATEMENT_REDRIVE_TAKERS] =
        "SELECT j.id, j.suite, j.pool, c.tier, COALESCE(x.ticks, 0), j.audit, j.shadow IS NOT NULL"
        " FROM job_specs t CROSS JOIN job_specs s ON s.key = t.key CROSS JOIN jobs j ON j.id = s.job"
        " CROSS JOIN contexts c ON c.id = s.context LEFT JOIN scenarios x ON x.id = s.scenario"
        " WHERE t.job = ?1 AND j.memo_of = ?1 ORDER BY j.id LIMIT ?2",
    [STATEMENT_REDRIVE_UNLINK] =
        "DELETE FROM memo_outcomes WHERE suite = ?1 AND outcome IN (SELECT id FROM outcomes WHERE job = ?2)",
    [STATEMENT_REDRIVE_TAKER_QUEUE] = "UPDATE jobs SET memo_of = NULL, state = ?2 WHERE id = ?1",
    [STATEMENT_REDRIVE_DROP] = "DELETE FROM outcomes WHERE job = ?1",
    [STATEMENT_REDRIVE_ADD] =
        "INSERT INTO redrives (holder, worker, jobs, last_outcome, at_s) VALUES (?1, ?2, ?3, ?4, ?5)",
    [STATEMENT_REDRIVE_PARTIALS] =
        "DELETE FROM partial_outcomes WHERE worker IN (SELECT w.id FROM workers w"
        " WHERE (?1 = '' OR w.token = ?1) AND (?2 = '' OR w.name = ?2))",
    [STATEMENT_REDRIVE_UNDRIVEN] =
        "UPDATE contexts SET driven = 0 WHERE driven = 1 AND (planner, planner_hash) NOT IN"
        " (SELECT c.planner, c.planner_hash FROM jobs j JOIN job_specs s ON s.job = j.id"
        " JOIN contexts c ON c.id = s.context WHERE j.state IN (2, 3) AND j.memo_of IS NULL)",
    [STATEMENT_BUDGET_GET] = "SELECT budget_uusd, budget_spent, jobs_queued FROM suites WHERE id = ?1",
    /* One that was cancelled in person once its budget was spent keeps what it says of that. */
    [STATEMENT_BUDGET_SET] =
        "UPDATE suites SET budget_uusd = ?2, budget_spent = 0 WHERE id = ?1 AND NOT (budget_spent = 1"
        " AND EXISTS (SELECT 1 FROM jobs WHERE state = 5 AND suite = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM jobs WHERE over_budget = 1 AND suite = ?1))",
    [STATEMENT_BUDGET_SPENT] = "UPDATE suites SET budget_spent = 1 WHERE id = ?1",
    [STATEMENT_BUDGET_QUEUED] = JOBS_IN_PARTS("SELECT id, pool FROM jobs WHERE " QUEUED_OF_SUITE " AND shadow IS NULL"),
    [STATEMENT_BUDGET_PARTIALS] =
        "DELETE FROM partial_outcomes WHERE job IN (SELECT id FROM jobs WHERE " QUEUED_OF_SUITE ")",
    [STATEMENT_BUDGET_CANCEL] =
        "UPDATE jobs SET state = 5, due_ns = 0, delay_ns = 0,"
        " over_budget = CASE WHEN shadow IS NULL THEN 1 ELSE 0 END WHERE " QUEUED_OF_SUITE,
    [STATEMENT_BUDGET_CANCELLED] = JOBS_IN_PARTS("SELECT id, pool FROM jobs WHERE over_budget = 1 AND suite = ?1"),
    [STATEMENT_BUDGET_RESUME] = "UPDATE jobs SET state = 0, over_budget = 0 WHERE over_budget = 1 AND suite = ?1",
    [STATEMENT_BUDGET_KNOWN] =
        "SELECT j.id, j.pool, COALESCE(x.ticks, 0), j.audit, {spec} FROM jobs j" STATEMENT_SPEC_JOINS
        " WHERE j.over_budget = 1 AND j.suite = ?1 AND j.id > ?2 AND j.epoch = 0 AND EXISTS (SELECT 1 FROM job_specs o"
        " CROSS JOIN jobs d ON d.id = o.job WHERE o.key = s.key AND d.state = 2) ORDER BY j.id LIMIT ?3",
    [STATEMENT_BUDGET_TAKE] = "UPDATE jobs SET state = 2, over_budget = 0, memo_of = ?2 WHERE id = ?1",
    /* Jobs that somebody cancels in person stay so, whatever the budget becomes. */
    [STATEMENT_BUDGET_COUNT] = "SELECT COUNT(*) FROM jobs WHERE over_budget = 1 AND suite = ?1",
    [STATEMENT_BUDGET_FORGO] = "UPDATE jobs SET over_budget = 0 WHERE over_budget = 1 AND suite = ?1",
    [STATEMENT_WAITING_SUITE_NEXT] =
        "SELECT j.suite, u.class, u.tenant FROM jobs j CROSS JOIN suites u ON u.id = j.suite"
        " WHERE j.state = 0 AND j.due_ns = 0 AND j.pool = ?1 AND j.suite < ?2 ORDER BY j.suite DESC LIMIT 1",
    /* And attempts that were asked to make way for them, and go on. */
    [STATEMENT_WAITING_JOBS] =
        "SELECT (SELECT COUNT(*) FROM (SELECT id FROM jobs"
        " WHERE state = 0 AND due_ns = 0 AND pool = ?1 AND suite = ?2 LIMIT ?3) n),"
        " (SELECT COUNT(*) FROM hand_backs h CROSS JOIN jobs j ON j.id = h.job"
        " WHERE h.returned = 0 AND h.for_suite = ?2 AND j.state = 1 AND j.epoch = h.epoch)",
    [STATEMENT_HELD_OF_WORKER] =
        "SELECT j.id, j.epoch, u.tenant, u.class, j.claimed_ns, j.progress_ticks,"
        " (SELECT COUNT(*) FROM hand_backs h WHERE h.job = j.id AND h.epoch < j.epoch),"
        " (SELECT COUNT(*) FROM hand_backs h WHERE h.job = j.id AND h.epoch = j.epoch)"
        " FROM jobs j CROSS JOIN suites u ON u.id = j.suite"
        " WHERE j.state = 1 AND j.worker = ?1 AND j.shadow IS NULL ORDER BY j.id LIMIT ?2",
    /* They stand behind the scenario's body, so that they are read of single jobs. */
    [STATEMENT_HELD_TICKS] = "SELECT x.ticks FROM job_specs s CROSS JOIN scenarios x ON x.id = s.scenario WHERE s.job = ?1",
    [STATEMENT_HAND_BACK_ASK] = "INSERT INTO hand_backs (job, epoch, for_suite) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    [STATEMENT_HAND_BACK_FIND] = "SELECT for_suite FROM hand_backs WHERE job = ?1 AND epoch = ?2 AND returned = 0",
    [STATEMENT_HAND_BACK_DONE] = "UPDATE hand_backs SET returned = 1 WHERE job = ?1 AND epoch = ?2",
    [STATEMENT_HAND_BACK_COUNT_SUITE] = "UPDATE suites SET jobs_handed_back = jobs_handed_back + 1 WHERE id = ?1",
    [STATEMENT_HAND_BACK_COUNT_POOL] = "UPDATE pools SET jobs_handed_back = jobs_handed_back + 1 WHERE id = ?1",
    [STATEMENT_REDRIVE_RENUMBER] = "UPDATE outcomes SET id = ?2 WHERE id = ?1",
    [STATEMENT_REDRIVE_UNSTARTED] =
        "UPDATE unstarted SET driven = 0 WHERE driven = 1 AND (planner, planner_hash) NOT IN"
        " (SELECT planner, planner_hash FROM contexts WHERE driven = 1)",
};
/* clang-format on */
