/*
 * Faults that one statement can find: each gives a row (place, sentence) per fault. State, verdict
 * and attempt end numbers are those of enum job_state, enum verdict and enum attempt_end.
 *
 * Every one was asked whether a client's call can bring its rows about, and tests/store/property
 * asks again by random calls. By what is told: refused at the door (store/door): numbers and texts
 * of outcomes, specs, models, events, goldens, labels, tenants and prices, names of suites, pools
 * and workers, rollouts of finished jobs, flags without evidence ("driven"), partial outcomes.
 * Refused by the call's transaction: parents, audits, results taken over (the whole question,
 * rollouts too), moves of models, thaws. Counted by the store alone, so that no call says them:
 * counters, units, the ledger, states, attempts, claims, progress (capped), digests, moves by
 * freezes. Found here only after damage: specs without jobs, references, losses of logs.
 *
 * Each looks at its rows once, with an index for what it looks up beside them; what groups all jobs
 * sorts them, in a temporary file where they are many.
 *
 * In words that store/postgres/dialect.h knows: the same statements look through a database there.
 */
#include "store/check/check_internal.h"

#include "base/check.h"
#include "store/door/invariants.h"
#include "store/statements/statements.h"
#include "store/turns/turns.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define JOB "'job ' || j.id"
#define SUITE "'suite ' || u.name"
#define ATTEMPT "'job ' || a.job || ', attempt ' || a.epoch"
#define STATES "CASE j.state WHEN 0 THEN 'queued' WHEN 1 THEN 'leased' WHEN 2 THEN 'done'" \
    " WHEN 3 THEN 'flagged' WHEN 4 THEN 'dead' ELSE 'cancelled' END"
/* Neither a shadow's nor an audit that a freeze made pointless. */
#define COUNTED "j.shadow IS NULL AND (j.audit = 0 OR j.freeze_event IS NULL)"
/* A counter of suites against what was counted, n. */
#define COUNTER(name) \
    " SELECT " SUITE ", 'counts " #name " as ' || u." #name " || ', its rows say ' || COALESCE(n." #name ", 0)" \
    " FROM suites u LEFT JOIN n ON n.suite = u.id WHERE u." #name " <> COALESCE(n." #name ", 0)"
/* A text that is shorter or longer than any that the store writes, or ends before its end. */
#define ODD(text, min, max) \
    "(length(CAST(" text " AS BLOB)) NOT BETWEEN " #min " AND " #max " OR instr(" text ", char(0)) > 0)"
#define ODD_TEXTS(place, table, texts) \
    "SELECT " place ", 'holds a text that is empty, cut off or longer than any that is stored' FROM " \
    table " WHERE " texts
/* Contexts of results: the outcome's own, and what was asked for. */
#define RESULTS \
    "r AS MATERIALIZED (SELECT DISTINCT o.context, s.context AS asked, j.state IN (2, 3) AS counts" \
    " FROM outcomes o JOIN jobs j ON j.id = o.job JOIN job_specs s ON s.job = o.job)"

/* Kind of what rows do not say that were stored before it was kept: notes, no faults. */
static const char unsaid[] = "unsaid";

/* Between rows, or of those that are no records of their own. */
static const struct {
    const char *kind;
    const char *what;
    const char *sql;
} queries[] = {
    {"counter", "counters of jobs",
     "WITH n AS MATERIALIZED (SELECT j.suite, SUM(CAST(j.state = 0 AS INTEGER)) AS jobs_queued,"
     " SUM(CAST(j.state = 1 AS INTEGER)) AS jobs_leased, SUM(CAST(j.state = 2 AS INTEGER)) AS jobs_done,"
     " SUM(CAST(j.state = 3 AS INTEGER)) AS jobs_flagged, SUM(CAST(j.state = 4 AS INTEGER)) AS jobs_dead,"
     " SUM(CAST(j.state = 5 AS INTEGER)) AS jobs_cancelled, COUNT(j.memo_of) AS jobs_memoised,"
     " SUM(CASE WHEN s.parent_job IS NULL AND j.audit = 0 THEN j.rollouts ELSE 0 END) AS rollouts_total"
     " FROM jobs j LEFT JOIN job_specs s ON s.job = j.id WHERE " COUNTED " GROUP BY j.suite)"
     COUNTER(jobs_queued) " UNION ALL" COUNTER(jobs_leased) " UNION ALL" COUNTER(jobs_done)
     " UNION ALL" COUNTER(jobs_flagged) " UNION ALL" COUNTER(jobs_dead)
     " UNION ALL" COUNTER(jobs_cancelled) " UNION ALL" COUNTER(jobs_memoised)
     " UNION ALL" COUNTER(rollouts_total)},

    {"counter", "jobs that were handed back",
     "WITH n AS MATERIALIZED (SELECT j.suite, COUNT(*) AS jobs_handed_back FROM hand_backs h JOIN jobs j ON j.id = h.job"
     " WHERE h.returned = 1 GROUP BY j.suite)" COUNTER(jobs_handed_back)
     /* A job's pool may have become another one since. */
     " UNION ALL SELECT 'pools', 'count ' || p.jobs || ' jobs that were handed back, of ' || r.jobs FROM"
     " (SELECT COALESCE(SUM(jobs_handed_back), 0) AS jobs, MIN(jobs_handed_back) AS least FROM pools) p,"
     " (SELECT COUNT(*) AS jobs FROM hand_backs WHERE returned = 1) r WHERE p.jobs <> r.jobs OR p.least < 0"},
    {"attempt", "attempts that were asked for",
     "SELECT " JOB ", 'attempt ' || h.epoch || ' was asked for, for suite ' || h.for_suite || ' (' || h.returned ||"
     " '), which cannot be' FROM hand_backs h JOIN jobs j ON j.id = h.job JOIN suites u ON u.id = j.suite"
     " LEFT JOIN suites v ON v.id = h.for_suite WHERE h.epoch NOT BETWEEN 1 AND j.epoch"
     " OR h.returned NOT BETWEEN 0 AND 1 OR v.id IS NULL OR v.id = u.id"
     " OR COALESCE(v.tenant, 0) <> COALESCE(u.tenant, 0) OR (h.returned = 1 AND NOT EXISTS"
     " (SELECT 1 FROM attempts a WHERE a.job = h.job AND a.epoch = h.epoch))"},

    {"counter", "units of tenants",
     "WITH n AS MATERIALIZED (SELECT u.tenant, SUM(j.rollouts * CASE c.tier WHEN 3 THEN "
     STATEMENT_NUMBER(TURNS_UNITS_TEACHER) " WHEN 2 THEN " STATEMENT_NUMBER(TURNS_UNITS_STUDENT)
     " ELSE 1 END) AS units FROM jobs j JOIN suites u ON u.id = j.suite JOIN job_specs s ON s.job = j.id"
     " JOIN contexts c ON c.id = s.context WHERE j.state = 1 AND j.shadow IS NULL AND u.tenant IS NOT NULL"
     " GROUP BY u.tenant), c AS MATERIALIZED (SELECT tenant, SUM(CASE ended WHEN 0 THEN units ELSE -units END)"
     " AS units FROM tenant_units GROUP BY tenant)"
     " SELECT 'tenant ' || t.name, 'counts ' || COALESCE(c.units, 0) || ' units leased, its jobs say ' ||"
     " COALESCE(n.units, 0) FROM tenants t LEFT JOIN n ON n.tenant = t.id LEFT JOIN c ON c.tenant = t.id"
     " WHERE COALESCE(c.units, 0) <> COALESCE(n.units, 0)"},

    {"counter", "scenarios of tenants",
     "WITH n AS MATERIALIZED (SELECT s.tenant, SUM(length(s.body) + COALESCE(length(m.body) - 4, 0)) AS bytes"
     " FROM scenarios s LEFT JOIN maps m ON m.id = s.map WHERE s.tenant IS NOT NULL GROUP BY s.tenant)"
     " SELECT 'tenant ' || t.name, 'counts ' || COALESCE(b.bytes, 0) || ' bytes of scenarios, it has brought ' ||"
     " COALESCE(n.bytes, 0) FROM tenants t LEFT JOIN n ON n.tenant = t.id LEFT JOIN tenant_scenarios b ON b.tenant = t.id"
     " WHERE COALESCE(b.bytes, 0) <> COALESCE(n.bytes, 0)"},

    {"spec", "specs of jobs",
     "SELECT " JOB ", CASE WHEN s.job IS NULL THEN 'has no spec'"
     " WHEN s.suite <> j.suite THEN 'is of suite ' || j.suite || ', its spec of suite ' || s.suite"
     " ELSE 'is marked as an audit job (' || j.audit || ') or a shadow''s (' || COALESCE(j.shadow, 0) ||"
     "  '), and its spec says otherwise' END"
     " FROM jobs j LEFT JOIN job_specs s ON s.job = j.id"
     " WHERE s.job IS NULL OR s.suite <> j.suite OR j.audit + CAST(j.shadow IS NOT NULL AS INTEGER) <> CAST(s.audit_key IS NOT NULL OR s.makes <> '' AS INTEGER)"},
    {"spec", "jobs of shadows",
     "SELECT " JOB ", 'is the shadow''s of model ' || j.shadow || ' and drives in another'"
     " FROM jobs j JOIN job_specs s ON s.job = j.id JOIN contexts c ON c.id = s.context"
     " LEFT JOIN models m ON m.id = j.shadow WHERE j.shadow IS NOT NULL AND (m.id IS NULL OR m.tier <> c.tier"
     " OR m.hash <> c.model_hash OR substr(c.sampler, -length(m.sampler) - 1) <> '/' || m.sampler OR j.follows <> 0)"},
    {"spec", "open jobs of shadows",
     "SELECT " JOB ", 'is ' || " STATES " || ', and its model ' || m.id || ' is no shadow that has a share'"
     " FROM jobs j JOIN models m ON m.id = j.shadow WHERE j.state <= 1 AND (m.state <> 1 OR m.canary_percent = 0)"},
    {"spec", "specs without jobs",
     "SELECT 'job ' || s.job, 'has a spec and is not there' FROM job_specs s"
     " LEFT JOIN jobs j ON j.id = s.job WHERE j.id IS NULL"},
    {"spec", "pools of jobs",
     "SELECT " JOB ", 'waits in pool \"' || p.name || '\", its spec names \"' || c.pool || '\"'"
     " FROM jobs j JOIN job_specs s ON s.job = j.id JOIN contexts c ON c.id = s.context"
     " JOIN pools p ON p.id = j.pool WHERE p.name <> c.pool"},
    {"spec", "prefixes of jobs",
     "SELECT " JOB ", 'refers to prefix ' || j.prefix || ', which is not there' FROM jobs j"
     " WHERE j.prefix <> 0 AND NOT EXISTS (SELECT 1 FROM prefixes p WHERE p.id = j.prefix)"},
    {"spec", "numbers of jobs",
     "SELECT " JOB ", 'holds a number beyond what there is' FROM jobs j"
     " WHERE j.state NOT BETWEEN 0 AND 5 OR j.rollouts NOT BETWEEN 1 AND 257 OR j.audit NOT IN (0, 1)"},
    {"text", "names of suites", ODD_TEXTS(SUITE, "suites u", ODD("u.name", 1, 63))},
    {"text", "weights of suites",
     "SELECT " SUITE ", 'has weight ' || u.weight || ', which cannot be' FROM suites u"
     " WHERE u.weight NOT BETWEEN 1 AND 100"},
    {"text", "classes of suites",
     "SELECT " SUITE ", 'is of class ' || u.class || ', which cannot be' FROM suites u WHERE u.class NOT BETWEEN 1 AND 3"},
    {"text", "names of pools", ODD_TEXTS("'pool ' || p.id", "pools p", ODD("p.name", 1, 63))},
    {"text", "names of workers",
     ODD_TEXTS("'worker ' || w.id", "workers w", ODD("w.name", 1, 63) " OR " ODD("w.device", 1, 63)
               " OR " ODD("w.host", 0, 63) " OR " ODD("w.holder", 0, 63) " OR " ODD("w.token", 0, 63))},
    {unsaid, "workers without a token's id",
     "SELECT 'store', n || ' workers are known by the name of their token alone, until it claims for them' FROM"
     " (SELECT COUNT(*) AS n FROM workers WHERE token IS NULL) t WHERE n > 0"},
    {"text", "keys of prefixes", ODD_TEXTS("'prefix ' || p.id", "prefixes p", ODD("p.key", 1, 64))},
    {"text", "texts of specs",
     ODD_TEXTS("'job ' || s.job", "job_specs s", ODD("s.audit_key", 1, 64) " OR " ODD("s.asked_key", 1, 64)
               " OR (s.rig <> '' AND " ODD("s.rig", 64, 64) ")")},
    {"text", "texts of attempts",
     ODD_TEXTS(ATTEMPT, "attempts a", ODD("a.device", 1, 63) " OR " ODD("a.error", 1, 2047) " OR "
               ODD("a.artifact_hash", 64, 64))},
    {"text", "texts of prices",
     ODD_TEXTS("'price of ' || p.device || ' in pool ' || p.pool", "prices p",
               ODD("p.pool", 0, 63) " OR " ODD("p.device", 1, 63))},
    {"money", "prices",
     "SELECT 'price of ' || device || ' in pool ' || pool, 'is ' || price_uusd_per_hour || ' uusd per hour,"
     " which cannot be' FROM prices WHERE price_uusd_per_hour NOT BETWEEN 0 AND 1000000000000"},

    {"worker", "workers",
     "SELECT 'worker ' || id, 'was not heard of in ' || openings || ' openings and has claimed up to id '"
     " || claim_id || ', which cannot be' FROM workers WHERE openings NOT BETWEEN 0 AND 1000000 OR claim_id < 0"},
    {"worker", "workers beside their attempts",
     "SELECT " ATTEMPT ", 'was made in pool ' || a.pool || ' on ' || a.device || '; its worker ' || w.id ||"
     " ' is of pool ' || w.pool || ' and has ' || w.device FROM attempts a JOIN workers w ON w.id = a.worker"
     " WHERE a.pool <> w.pool OR a.device <> w.device"},
    {"worker", "workers beside their jobs",
     "SELECT " JOB ", 'is of pool ' || j.pool || ', its worker ' || w.id || ' of pool ' || w.pool"
     " FROM jobs j JOIN workers w ON w.id = j.worker WHERE w.pool <> j.pool"
     " AND (j.freeze_event IS NULL OR j.state IN (1, 2, 3))"},
    {"worker", "claims of jobs",
     "SELECT " JOB ", 'was leased by claim ' || j.claim_id || ' of a worker that has had leases up to claim ' ||"
     " COALESCE(w.claim_id, 0) FROM jobs j LEFT JOIN workers w ON w.id = j.worker"
     " WHERE j.claim_id NOT BETWEEN 0 AND COALESCE(w.claim_id, 0)"},

    {"progress", "what jobs have reported",
     "SELECT " JOB ", 'has reported ' || j.progress_ns || ' ns, ' || j.progress_mm || ' mm and ' ||"
     " j.progress_mflop || ' mflop in ' || j.progress_ticks || ' ticks, which cannot be' FROM jobs j"
     " WHERE j.progress_ns NOT BETWEEN 0 AND 1000000000000000"
     " OR j.progress_mm NOT BETWEEN 0 AND 10000000000000"
     " OR j.progress_mflop NOT BETWEEN 0 AND 1000000000000000 OR j.progress_ticks NOT BETWEEN 0 AND 1000000000000"
     " OR (j.epoch = 0 AND (j.progress_ns <> 0 OR j.progress_mm <> 0 OR j.progress_mflop <> 0 OR j.progress_ticks <> 0))"},
    {"progress", "what lost attempts had reported",
     "SELECT " ATTEMPT ", 'was lost and charged ' || a.device_ns || ' ns, ' || a.metres_mm || ' mm and ' ||"
     " a.mflop || ' mflop; its worker had reported ' || j.progress_ns || ', ' || j.progress_mm || ' and ' ||"
     " j.progress_mflop FROM jobs j JOIN attempts a ON a.job = j.id AND a.epoch = j.epoch"
     " WHERE a.ending = 4 AND j.state <> 1 AND (a.device_ns, a.metres_mm, a.mflop) <>"
     " (j.progress_ns, j.progress_mm, MIN(j.progress_mflop, (a.device_ns + " STATEMENT_NUMBER(LEDGER_MFLOP_SLACK_NS) ") * "
     STATEMENT_NUMBER(LEDGER_MFLOP_PER_NS) "))"
     /* Unless the books are full: what had no room was not charged. */
     " AND NOT (a.device_ns <= j.progress_ns AND a.metres_mm <= j.progress_mm AND a.mflop <= j.progress_mflop"
     "  AND EXISTS (SELECT 1 FROM (SELECT SUM(device_ns) AS ns, SUM(metres_mm) AS mm, SUM(mflop) AS mflop"
     "   FROM ledger_totals) b WHERE 9223372036854775807 IN (b.ns, b.mm, b.mflop)))"},

    {"driven", "marks of planners that were driven",
     "WITH " RESULTS " SELECT 'context ' || c.id, CASE WHEN c.driven NOT IN (0, 1) THEN"
     "  'is marked as driven with ' || c.driven ELSE"
     "  'is marked as driven, and no job of its planner has a result' END FROM contexts c"
     " WHERE c.driven NOT IN (0, 1) OR (c.driven = 1 AND NOT EXISTS (SELECT 1 FROM r JOIN contexts d"
     "  ON d.id IN (r.context, r.asked) WHERE d.planner = c.planner AND d.planner_hash = c.planner_hash))"},
    {"driven", "planners that were driven",
     "WITH " RESULTS " SELECT 'context ' || r.context, 'has results, and its planner is not marked as"
     " driven' FROM r WHERE r.counts AND NOT EXISTS (SELECT 1 FROM contexts c JOIN contexts d"
     "  ON d.planner = c.planner AND d.planner_hash = c.planner_hash AND d.driven = 1"
     "  WHERE c.id IN (r.context, r.asked))"},
    {"unstarted", "planners that did not start",
     "SELECT 'host ' || t.host || ', planner ' || t.planner, CASE"
     " WHEN w.id IS NULL THEN 'was told of by a worker that is not there'"
     " WHEN t.host <> CASE w.host WHEN '' THEN w.name ELSE w.host END THEN 'was told of by worker ' || w.id ||"
     "  ', which runs elsewhere'"
     " WHEN " ODD("t.error", 0, 2047) " THEN 'has a reason that is cut off or longer than any that is stored'"
     " WHEN t.driven IS NOT (SELECT MAX(c.driven) FROM contexts c WHERE c.planner = t.planner"
     "  AND c.planner_hash = t.planner_hash) THEN 'is marked as driven with ' || t.driven ||"
     "  ', its planner otherwise'"
     " ELSE 'was told of by worker ' || w.id || ', which handed no such job of suite ' || t.suite || ' back' END"
     " FROM unstarted t LEFT JOIN workers w ON w.id = t.worker WHERE w.id IS NULL"
     " OR t.host <> CASE w.host WHEN '' THEN w.name ELSE w.host END OR " ODD("t.error", 0, 2047)
     " OR t.driven IS NOT (SELECT MAX(c.driven) FROM contexts c WHERE c.planner = t.planner"
     "  AND c.planner_hash = t.planner_hash)"
     " OR NOT EXISTS (SELECT 1 FROM attempts a JOIN job_specs s ON s.job = a.job"
     "  JOIN contexts c ON c.id = s.context WHERE a.worker = t.worker AND a.ending IN (2, 3)"
     "  AND COALESCE(a.error, '') = t.error AND s.suite = t.suite AND c.planner = t.planner"
     "  AND c.planner_hash = t.planner_hash)"},

    {"spec", "jobs that moved",
     "SELECT " JOB ", 'was submitted under another key and follows no model' FROM jobs j"
     " JOIN job_specs s ON s.job = j.id WHERE s.asked_key IS NOT NULL AND j.follows = 0 AND j.freeze_event IS NULL"},
    {"spec", "jobs of freezes",
     "SELECT " JOB ", 'says that freeze ' || j.freeze_event || ' concerns it, which is none of its student''s' FROM jobs j"
     " JOIN job_specs s ON s.job = j.id JOIN contexts c ON c.id = s.context"
     " LEFT JOIN trust_events t ON t.id = j.freeze_event WHERE j.freeze_event IS NOT NULL AND (t.id IS NULL OR t.kind <> 0"
     " OR j.shadow IS NOT NULL OR (j.audit <> 0 AND j.state <> 5) OR c.tier NOT IN (2, 3) OR (c.tier = 2 AND (c.model_hash <> t.student_hash"
     " OR substr(c.sampler, -length(t.student_sampler) - 1) <> '/' || t.student_sampler)))"},

    {"spec", "jobs of evaluations",
     "SELECT " JOB ", 'evaluates, and is no student''s in its own right, of the model that it names' FROM jobs j"
     " JOIN job_specs s ON s.job = j.id JOIN contexts c ON c.id = s.context"
     " WHERE j.evaluates = 1 AND (c.tier <> 2 OR s.audit_key IS NOT NULL OR j.follows = 1 OR j.freeze_event IS NOT NULL)"},

    {"spec", "audit jobs",
     "SELECT " JOB ", 'repeats a job that its suite does not have' FROM jobs j"
     " JOIN job_specs s ON s.job = j.id WHERE s.audit_key IS NOT NULL AND NOT EXISTS"
     " (SELECT 1 FROM job_specs t WHERE t.key = s.audit_key AND t.suite = s.suite"
     "  AND t.audit_key IS NULL AND t.scenario_id = s.scenario_id AND t.seed = s.seed)"},

    {"state", "states that cannot be",
     "SELECT " JOB ", CASE"
     " WHEN j.state = 1 AND j.worker IS NULL THEN 'is leased and has no worker'"
     " WHEN j.memo_of IS NOT NULL AND j.state <> 2 THEN 'took a result over and is ' || " STATES
     " WHEN j.memo_of IS NOT NULL THEN 'took a result over and was claimed ' || j.epoch || ' times'"
     " WHEN j.epoch < 0 OR (j.epoch = 0 AND j.state IN (1, 2, 3, 4)) THEN"
     "  'is ' || " STATES " || ' at epoch ' || j.epoch"
     " WHEN (j.worker IS NULL) <> (j.epoch = 0) THEN"
     "  'has epoch ' || j.epoch || ' and ' || CASE WHEN j.worker IS NULL THEN 'no' ELSE 'a' END || ' worker'"
     " ELSE 'is ' || " STATES " || ' and due at ' || j.due_ns || ' after ' || j.delay_ns || ' ns' END"
     " FROM jobs j WHERE (j.state = 1 AND j.worker IS NULL)"
     " OR (j.memo_of IS NOT NULL AND (j.state <> 2 OR j.epoch <> 0)) OR j.epoch < 0"
     " OR (j.memo_of IS NULL AND j.epoch = 0 AND j.state IN (1, 2, 3, 4))"
     " OR (j.worker IS NULL) <> (j.epoch = 0)"
     " OR j.due_ns < -1 OR j.delay_ns < 0 OR (j.state <> 0 AND (j.due_ns <> 0 OR j.delay_ns <> 0))"
     " OR (j.due_ns > 0) <> (j.delay_ns > 0)"
     " OR (j.due_ns = -1) <> (j.shadow IS NOT NULL AND j.state = 0 AND j.delay_ns = 0)"},
    {"state", "sources of results that were taken over",
     "SELECT " JOB ", 'took over the result of job ' || j.memo_of || ', which'"
     " || CASE WHEN o.id IS NULL THEN ' is not there' WHEN o.state <> 2 THEN ' is not done'"
     "    WHEN t.key <> s.key OR t.seed <> s.seed OR t.scenario IS NOT s.scenario"
     "    THEN ' answers another question' ELSE ' has ' || o.rollouts || ' rollouts, not '"
     "    || j.rollouts END"
     " FROM jobs j LEFT JOIN jobs o ON o.id = j.memo_of LEFT JOIN job_specs s ON s.job = j.id"
     " LEFT JOIN job_specs t ON t.job = o.id WHERE j.memo_of IS NOT NULL AND (o.id IS NULL"
     " OR o.state <> 2 OR t.key <> s.key OR t.seed <> s.seed OR t.scenario IS NOT s.scenario"
     " OR o.rollouts <> j.rollouts OR o.memo_of IS NOT NULL)"},

    {"log", "what damaged logs took away",
     "SELECT 'log loss ' || id, 'a damaged log was opened and ' || lost || ' acknowledged commits in it were'"
     " || ' lost; the log was kept beside the store (-wal-damaged)' FROM log_losses WHERE lost > 0"},

    {"log", "losses of damaged logs",
     "SELECT 'log loss ' || id, 'says ' || frames || ' frames with ' || commits || ' commits, ' || lost ||"
     " ' of them acknowledged, which cannot be' FROM log_losses"
     " WHERE NOT (frames >= commits AND commits >= lost AND lost >= 0)"},

    {"missing", "outcomes of finished jobs",
     "SELECT " JOB ", 'is done with ' || j.rollouts || ' rollouts and has ' ||"
     " (SELECT COUNT(*) FROM outcomes o WHERE o.job = j.id) || ' outcomes' FROM jobs j"
     " WHERE j.state = 2 AND j.memo_of IS NULL"
     " AND j.rollouts <> (SELECT COUNT(*) FROM outcomes o WHERE o.job = j.id)"},
    {"missing", "outcomes of branches",
     "SELECT " JOB ", 'has two outcomes of one rollout' FROM jobs j WHERE j.state = 2 AND j.rollouts > 1"
     " AND j.memo_of IS NULL AND (SELECT COUNT(*) <> COUNT(DISTINCT o.branch_id)"
     "  FROM outcomes o WHERE o.job = j.id)"},
    {"missing", "outcomes that were taken over",
     "SELECT " JOB ", 'took over ' || (SELECT COUNT(*) FROM outcomes o WHERE o.job = j.memo_of)"
     " || ' outcomes of job ' || j.memo_of || ' and is linked with ' ||"
     " (SELECT COUNT(*) FROM outcomes o JOIN memo_outcomes m ON m.suite = j.suite"
     "  AND m.outcome = o.id AND m.job = j.id WHERE o.job = j.memo_of)"
     " FROM jobs j WHERE j.memo_of IS NOT NULL AND"
     " (SELECT COUNT(*) FROM outcomes o WHERE o.job = j.memo_of) <>"
     " (SELECT COUNT(*) FROM outcomes o JOIN memo_outcomes m ON m.suite = j.suite"
     "  AND m.outcome = o.id AND m.job = j.id WHERE o.job = j.memo_of)"},
    {"missing", "links of outcomes that were taken over",
     "SELECT 'outcome ' || m.outcome, 'is linked with suite ' || m.suite || ' by job ' || m.job ||"
     " ', which did not take it over' FROM memo_outcomes m LEFT JOIN outcomes o ON o.id = m.outcome"
     " LEFT JOIN jobs j ON j.id = m.job WHERE o.id IS NULL OR j.id IS NULL OR j.suite <> m.suite"
     " OR j.memo_of IS NULL OR j.memo_of <> o.job"},
    {"outcome", "jobs of outcomes",
     "SELECT 'outcome ' || o.id, CASE WHEN j.id IS NULL THEN 'its job ' || o.job || ' is not there'"
     " WHEN j.state NOT IN (2, 3, 4) THEN 'its job ' || j.id || ' is ' || " STATES
     " WHEN j.memo_of IS NOT NULL THEN 'its job ' || j.id || ' took its result over'"
     " WHEN o.suite <> j.suite THEN 'is of suite ' || o.suite || ', its job of ' || j.suite"
     " WHEN o.epoch <> j.epoch THEN 'is of epoch ' || o.epoch || ', its job ended at ' || j.epoch"
     " WHEN j.state = 2 THEN 'is flagged, and its job is done'"
     " ELSE 'is not flagged, and its job is ' || " STATES " END"
     " FROM outcomes o LEFT JOIN jobs j ON j.id = o.job WHERE j.id IS NULL OR j.state NOT IN (2, 3, 4)"
     " OR j.memo_of IS NOT NULL OR o.suite <> j.suite OR o.epoch <> j.epoch"
     " OR (j.state = 2) = (o.verdict = 3)"},
    {"outcome", "numbers of outcomes beside each other",
     "SELECT 'outcome ' || o.id, 'has more ticks before it began than ticks, or figures of a health check and no check'"
     " FROM outcomes o WHERE o.prefix_ticks > o.ticks"
     " OR (o.health_check IS NULL AND (o.health_tick IS NOT NULL OR o.health_value IS NOT NULL"
     "  OR o.health_threshold IS NOT NULL OR o.evidence_hash IS NOT NULL))"},

    {"attempt", "attempts of jobs",
     "SELECT " JOB ", 'is ' || " STATES " || ' at epoch ' || j.epoch || ' and has ' ||"
     " (SELECT COUNT(*) FROM attempts a WHERE a.job = j.id) || ' ended attempts' FROM jobs j"
     " WHERE j.epoch - CAST(j.state = 1 AS INTEGER) <> (SELECT COUNT(*) FROM attempts a WHERE a.job = j.id"
     "  AND a.epoch BETWEEN 1 AND j.epoch - CAST(j.state = 1 AS INTEGER))"
     " OR EXISTS (SELECT 1 FROM attempts a WHERE a.job = j.id AND a.epoch > j.epoch - CAST(j.state = 1 AS INTEGER))"},
    {"attempt", "attempts that were counted",
     "SELECT " JOB ", 'counts ' || j.attempts || ' attempts, ' || j.lost || ' of them lost; its'"
     " || ' attempts say otherwise' FROM jobs j WHERE j.epoch > 0 AND ("
     " j.attempts <> CAST(j.state = 1 AS INTEGER) + (SELECT COUNT(*) FROM attempts a WHERE a.job = j.id AND a.ending <> 3)"
     " OR j.lost <> (SELECT COUNT(*) FROM attempts a WHERE a.job = j.id AND a.ending IN (4, 5)))"
     " OR (j.epoch = 0 AND (j.attempts <> 0 OR j.lost <> 0))"},
    {"attempt", "last attempts",
     "SELECT " JOB ", 'is ' || " STATES " || ' and its last attempt ' ||"
     " CASE WHEN a.worker <> j.worker THEN 'was another worker''s' ELSE 'ended as number ' || a.ending END"
     " FROM jobs j JOIN attempts a ON a.job = j.id AND a.epoch = j.epoch WHERE j.state <> 1 AND"
     " (a.worker <> j.worker OR (j.state = 2) <> (a.ending = 0)"
     "  OR (a.ending = 1) <> (j.state = 3 OR (j.state = 4 AND a.ending = 1)))"},
    {"attempt", "claim times",
     "SELECT " JOB ", 'was claimed at nanosecond ' || COALESCE(j.claimed_ns, 0) || ', its attempt at ' ||"
     " COALESCE(a.claimed_ns, j.claimed_ns, 0) FROM jobs j LEFT JOIN attempts a ON a.job = j.id AND a.epoch = j.epoch"
     " WHERE j.claimed_ns < 1 OR (j.epoch = 0 AND j.claimed_ns IS NOT NULL)"
     " OR (a.job IS NOT NULL AND COALESCE(a.claimed_ns, 0) <> COALESCE(j.claimed_ns, 0))"
     " UNION ALL SELECT " ATTEMPT ", 'was claimed at nanosecond ' || a.claimed_ns FROM attempts a WHERE a.claimed_ns < 1"},
    {unsaid, "leases without a claim time",
     "SELECT 'store', n || ' jobs were leased before the times of claims were kept: what they cost is not charged' FROM"
     " (SELECT COUNT(*) AS n FROM jobs WHERE state = 1 AND claimed_ns IS NULL) t WHERE n > 0"},
    {"attempt", "attempts beside their jobs",
     "SELECT " ATTEMPT ", CASE WHEN j.id IS NULL THEN 'its job is not there'"
     " WHEN a.ending NOT BETWEEN 0 AND 5 THEN 'ended as number ' || a.ending || ', which there is not'"
     " WHEN a.epoch < j.epoch AND a.ending IN (0, 1) THEN 'finished its job, which was claimed again'"
     " WHEN a.pool <> j.pool THEN 'was made in pool ' || a.pool || ', its job waits in ' || j.pool"
     " WHEN a.tier <> c.tier THEN 'is of tier ' || a.tier || ', its job of ' || c.tier"
     " WHEN a.escalated_job IS NULL THEN 'was flagged and handed to no other job'"
     " ELSE 'was handed to job ' || a.escalated_job || ', which cannot be' END"
     " FROM attempts a LEFT JOIN jobs j ON j.id = a.job LEFT JOIN job_specs s ON s.job = j.id"
     " LEFT JOIN contexts c ON c.id = s.context LEFT JOIN jobs e ON e.id = a.escalated_job"
     " WHERE j.id IS NULL OR a.ending NOT BETWEEN 0 AND 5 OR (a.epoch < j.epoch AND a.ending IN (0, 1))"
     " OR ((a.pool <> j.pool OR a.tier <> c.tier) AND (j.freeze_event IS NULL OR a.ending IN (0, 1)))"
     " OR (a.ending = 1 AND j.state = 3) <> (a.escalated_job IS NOT NULL)"
     " OR (a.escalated_job IS NOT NULL AND (e.suite IS NOT j.suite OR e.id = j.id))"},

    {"partial", "partial outcomes",
     "SELECT 'job ' || p.job || ', branch \"' || p.branch_id || '\"', CASE"
     " WHEN j.id IS NULL THEN 'has a partial outcome and is not there'"
     " WHEN j.state NOT IN (0, 1) THEN 'has a partial outcome and is ' || " STATES
     " WHEN p.epoch NOT BETWEEN 1 AND j.epoch THEN 'has a partial outcome of epoch ' || p.epoch"
     "  || ' and is at epoch ' || j.epoch"
     " WHEN p.worker <> COALESCE((SELECT a.worker FROM attempts a WHERE a.job = p.job AND a.epoch = p.epoch),"
     "  CASE WHEN j.epoch = p.epoch THEN j.worker END, 0) THEN 'has a partial outcome of worker ' || p.worker ||"
     "  ', which had not claimed it at epoch ' || p.epoch"
     " ELSE 'has more partial outcomes than rollouts' END"
     " FROM partial_outcomes p LEFT JOIN jobs j ON j.id = p.job"
     " WHERE j.id IS NULL OR j.state NOT IN (0, 1) OR p.epoch NOT BETWEEN 1 AND j.epoch"
     " OR p.worker <> COALESCE((SELECT a.worker FROM attempts a WHERE a.job = p.job AND a.epoch = p.epoch),"
     "  CASE WHEN j.epoch = p.epoch THEN j.worker END, 0)"
     " OR (SELECT COUNT(*) FROM partial_outcomes q WHERE q.job = p.job) > j.rollouts"},

    {"ledger", "the ledger against attempts",
     "WITH n AS MATERIALIZED (SELECT j.suite, a.pool, a.device, a.tier, " STATEMENT_JOB_KIND " AS audit, a.ending,"
     " COUNT(*) AS attempts, SUM(a.device_ns) AS device_ns, SUM(a.metres_mm) AS metres_mm,"
     " SUM(a.mflop) AS mflop, SUM(a.cost_uusd) AS cost_uusd FROM attempts a JOIN jobs j ON j.id = a.job"
     " GROUP BY 1, 2, 3, 4, 5, 6)"
     " SELECT 'ledger of suite ' || l.suite || ', pool ' || l.pool || ', ' || l.device || ', tier ' ||"
     " l.tier || ', ending ' || l.ending,"
     " 'sums to ' || l.attempts || ' attempts, ' || l.device_ns || ' ns, ' || l.metres_mm || ' mm, ' ||"
     " l.mflop || ' mflop, ' || l.cost_uusd || ' uusd; the attempts themselves to ' ||"
     " COALESCE(n.attempts, 0) || ', ' || COALESCE(n.device_ns, 0) || ', ' || COALESCE(n.metres_mm, 0)"
     " || ', ' || COALESCE(n.mflop, 0) || ', ' || COALESCE(n.cost_uusd, 0)"
     " FROM ledger l LEFT JOIN n ON n.suite = l.suite AND n.pool = l.pool AND n.device = l.device"
     " AND n.tier = l.tier AND n.audit = l.audit AND n.ending = l.ending"
     " WHERE (l.attempts, l.device_ns, l.metres_mm, l.mflop, l.cost_uusd) <> (COALESCE(n.attempts, 0),"
     " COALESCE(n.device_ns, 0), COALESCE(n.metres_mm, 0), COALESCE(n.mflop, 0), COALESCE(n.cost_uusd, 0))"
     " UNION ALL SELECT 'ledger of suite ' || n.suite || ', pool ' || n.pool || ', ' || n.device,"
     " 'has no row for ' || n.attempts || ' attempts of tier ' || n.tier || ' that ended as number '"
     " || n.ending FROM n LEFT JOIN ledger l ON n.suite = l.suite AND n.pool = l.pool"
     " AND n.device = l.device AND n.tier = l.tier AND n.audit = l.audit AND n.ending = l.ending"
     " WHERE l.suite IS NULL"},
    {"counter", "jobs of pools",
     "WITH n AS MATERIALIZED (SELECT j.pool, j.state, COUNT(*) AS jobs FROM jobs j WHERE " COUNTED " GROUP BY 1, 2)"
     " SELECT 'pool ' || k.pool || ', state ' || k.state, 'counts ' || k.jobs || ' jobs, there are ' ||"
     " COALESCE(n.jobs, 0) FROM pool_jobs k LEFT JOIN n ON n.pool = k.pool AND n.state = k.state"
     " WHERE k.jobs <> COALESCE(n.jobs, 0) OR k.state NOT BETWEEN 0 AND 5"
     " UNION ALL SELECT 'pool ' || n.pool || ', state ' || n.state, 'does not count its ' || n.jobs ||"
     " ' jobs' FROM n LEFT JOIN pool_jobs k ON n.pool = k.pool AND n.state = k.state"
     " WHERE k.pool IS NULL"},
    {"counter", "progress of suites",
     "WITH n AS MATERIALIZED (SELECT j.suite, j.pool, c.tier, SUM(CAST(j.state <= 1 AS INTEGER)) AS jobs_open,"
     " SUM(COALESCE(x.ticks, 0)) AS ticks,"
     " SUM(CASE WHEN j.state <= 1 THEN COALESCE(x.ticks, 0) ELSE 0 END) AS ticks_open"
     " FROM jobs j JOIN job_specs s ON s.job = j.id JOIN contexts c ON c.id = s.context"
     " LEFT JOIN scenarios x ON x.id = s.scenario WHERE j.memo_of IS NULL AND " COUNTED " GROUP BY 1, 2, 3)"
     " SELECT 'progress of suite ' || k.suite || ', pool ' || k.pool || ', tier ' || k.tier,"
     " 'counts ' || k.jobs_open || ' open jobs, ' || k.ticks || ' and ' || k.ticks_open ||"
     " ' planned ticks in ' || k.wall_ns || ' ns; its jobs are ' || COALESCE(n.jobs_open, 0) || ', ' ||"
     " COALESCE(n.ticks, 0) || ' and ' || COALESCE(n.ticks_open, 0) FROM suite_progress k"
     " LEFT JOIN n ON n.suite = k.suite AND n.pool = k.pool AND n.tier = k.tier"
     " WHERE (k.jobs_open, k.ticks, k.ticks_open) <> (COALESCE(n.jobs_open, 0),"
     " COALESCE(n.ticks, 0), COALESCE(n.ticks_open, 0)) OR k.wall_ns < 0 OR (n.suite IS NULL AND NOT EXISTS"
     " (SELECT 1 FROM jobs f WHERE f.suite = k.suite AND (f.freeze_event IS NOT NULL OR f.memo_of IS NOT NULL)))"
     " UNION ALL SELECT 'progress of suite ' || n.suite || ', pool ' || n.pool || ', tier ' || n.tier,"
     " 'is not there for ' || n.jobs_open || ' open jobs of ' || n.ticks || ' planned ticks'"
     " FROM n LEFT JOIN suite_progress k ON n.suite = k.suite AND n.pool = k.pool AND n.tier = k.tier"
     " WHERE k.suite IS NULL AND (n.ticks <> 0 OR n.jobs_open <> 0)"},
    {"spec", "planners of suites",
     "WITH n AS MATERIALIZED (SELECT DISTINCT s.suite, c.planner FROM job_specs s"
     " JOIN contexts c ON c.id = s.context)"
     " SELECT 'suite ' || k.suite, 'names the planner ' || k.planner || ', which none of its jobs has'"
     " FROM suite_planners k LEFT JOIN n ON n.suite = k.suite AND n.planner = k.planner"
     " WHERE n.suite IS NULL UNION ALL SELECT 'suite ' || n.suite, 'does not name the planner ' ||"
     " n.planner || ' of its jobs' FROM n LEFT JOIN suite_planners k ON n.suite = k.suite"
     " AND n.planner = k.planner WHERE k.suite IS NULL"},
    {"scenario", "planned ticks of scenarios",
     "SELECT 'scenario ' || b.id, 'is planned at ' || b.ticks || ' ticks, its body says otherwise'"
     " FROM scenarios b WHERE b.ticks <> " SCENARIO_TICKS("b.body")},
    {"scenario", "places of maps",
     "SELECT 'scenario ' || b.id, CASE WHEN b.map IS NULL THEN 'has a place for a map and no map'"
     " ELSE 'has a map and no place for it' END"
     " FROM scenarios b WHERE (b.map IS NULL) <> (b.map_at IS NULL)"},
    {"text", "dates of suites",
     "SELECT " SUITE ", 'was submitted at second ' || u.submitted_s || ', which cannot be' FROM suites u"
     " WHERE u.submitted_s NOT BETWEEN 0 AND 100000000000"},
    {"counter", "budgets of suites",
     "WITH n AS MATERIALIZED (SELECT suite, SUM(cost_uusd) AS cost_uusd FROM ledger WHERE audit <> 2 GROUP BY 1)"
     " SELECT " SUITE ", 'has a budget of ' || u.budget_uusd || ' uusd, marked as spent (' || u.budget_spent ||"
     " '), has cost ' || COALESCE(n.cost_uusd, 0) || ', and ' || u.jobs_queued || ' jobs wait in it'"
     " FROM suites u LEFT JOIN n ON n.suite = u.id WHERE u.budget_spent NOT BETWEEN 0 AND 1"
     " OR u.budget_uusd NOT BETWEEN 0 AND 1000000000000000"
     " OR (u.budget_spent = 1 AND (u.jobs_queued > 0 OR u.budget_uusd = 0))"
     " OR (u.budget_spent = 0 AND u.budget_uusd > 0 AND COALESCE(n.cost_uusd, 0) >= u.budget_uusd)"},
    {"counter", "jobs that budgets cancelled",
     "SELECT " JOB ", 'is ' || " STATES " || ' and marked as cancelled by a budget (' || j.over_budget ||"
     " '), its suite has one of ' || u.budget_uusd || ' uusd' FROM jobs j JOIN suites u ON u.id = j.suite"
     " WHERE j.over_budget NOT BETWEEN 0 AND 1"
     " OR (j.over_budget = 1 AND (j.state <> 5 OR u.budget_spent = 0))"},
    /* Nothing is compared with them, nor they with one another: clocks are set, back as well. */
    {"outcome", "times of outcomes",
     "SELECT 'outcome ' || o.id, 'came at millisecond ' || o.at_ms || ', which cannot be' FROM outcomes o"
     " WHERE o.at_ms NOT BETWEEN 1 AND 100000000000000 UNION ALL"
     " SELECT 'job ' || p.job || ', branch \"' || p.branch_id || '\"', 'has a partial outcome of millisecond ' ||"
     " p.at_ms || ', which cannot be' FROM partial_outcomes p WHERE p.at_ms NOT BETWEEN 1 AND 100000000000000"},
    {"model", "versions of models",
     "SELECT 'model ' || m.id, 'has precision ' || m.precision || ' and sampler ' || m.sampler ||"
     " ', or health bounds of hash ' || m.health_hash FROM models m WHERE length(m.health_hash) NOT IN (0, 64)"
     " OR substr(m.sampler, -length(m.precision) - 1) <> '/' || m.precision"},
    {"model", "states of models",
     "SELECT 'model ' || m.id, 'is in state ' || m.state || ' with ' || m.canary_percent ||"
     " ' percent; its last event says otherwise' FROM models m WHERE NOT EXISTS"
     " (SELECT 1 FROM model_events e WHERE e.id = (SELECT MAX(f.id) FROM model_events f"
     "  WHERE f.model = m.id AND f.kind <> 2) AND e.to_state = m.state"
     "  AND e.canary_percent = m.canary_percent)"},
    {"model", "events of models",
     "SELECT 'event ' || e.id || ' of models', CASE WHEN m.id IS NULL THEN 'is of a model that is not there'"
     " WHEN e.from_state <> COALESCE((SELECT f.to_state FROM model_events f WHERE f.model = e.model"
     "  AND f.id < e.id ORDER BY f.id DESC LIMIT 1), 0) THEN 'does not begin where the one before it ended'"
     " ELSE 'says what events of its kind do not' END"
     " FROM model_events e LEFT JOIN models m ON m.id = e.model WHERE m.id IS NULL"
     " OR length(e.report_hash) NOT IN (0, 64)"
     " OR e.from_state <> COALESCE((SELECT f.to_state FROM model_events f WHERE f.model = e.model"
     "  AND f.id < e.id ORDER BY f.id DESC LIMIT 1), 0)"
     " OR (e.kind = 0) <> (NOT EXISTS"
     " (SELECT 1 FROM model_events f WHERE f.model = e.model AND f.id < e.id)) OR (e.kind = 2 AND e.to_state <> e.from_state)"
     " OR (e.kind <> 2 AND (e.passed <> 0 OR e.expires_s <> 0 OR e.report_hash <> ''))"
     " OR (e.kind <> 1 AND (e.forced <> 0 OR e.jobs_moved <> 0))"
     " OR (e.kind = 1 AND e.to_state = 2 AND e.canary_percent = 0)"
     " OR (e.canary_percent <> 0 AND (e.kind <> 1 OR e.to_state NOT IN (1, 2)))"},
    {"trust", "events of trust",
     "SELECT 'event ' || t.id || ' of trust', CASE"
     "  WHEN t.kind = 1 THEN 'thaws freeze ' || t.freeze_event || ', which is not there, or was thawed before'"
     "  ELSE 'says what events of its kind do not' END FROM trust_events t WHERE"
     " (t.kind = 1 AND NOT EXISTS (SELECT 1 FROM trust_events f WHERE f.id = t.freeze_event AND f.kind = 0 AND f.id < t.id))"
     " OR (t.kind = 1 AND EXISTS (SELECT 1 FROM trust_events f WHERE f.kind = 1 AND f.freeze_event = t.freeze_event AND f.id < t.id))"
     " OR (t.kind = 1 AND (t.evaluation > 0) = (t.forced = 1)) OR (t.kind <> 1 AND (t.freeze_event <> 0 OR t.evaluation <> 0))"
     " OR (t.kind = 0 AND (length(t.student_hash) <> 64 OR length(t.teacher_hash) <> 64))"
     " OR t.disagreed > t.jobs OR t.audit_rate NOT BETWEEN 0 AND 1 OR length(t.actor_name) > 63"
     " OR t.audit_rate_safety_critical NOT BETWEEN 0 AND 1"},
    {"golden", "sets of goldens",
     "SELECT 'golden ' || g.id, 'says that it has ' || g.recordings || ' recordings, and keeps more or none'"
     " FROM goldens g WHERE (SELECT COUNT(*) FROM golden_artifacts a WHERE a.golden = g.id) NOT BETWEEN 1 AND g.recordings"},
    {"golden", "artifacts of goldens",
     "SELECT 'golden ' || a.golden, 'is not there, and has artifacts' FROM golden_artifacts a"
     " LEFT JOIN goldens g ON g.id = a.golden WHERE g.id IS NULL"},
    {"label", "labels of suites",
     "SELECT 'label ' || l.id, CASE WHEN u.id IS NULL THEN 'is of a suite that is not there'"
     " WHEN l.kind = 4 THEN 'names no planner and no artifact' ELSE 'is a baseline that another suite is too' END"
     " FROM labels l LEFT JOIN suites u ON u.id = l.suite WHERE u.id IS NULL"
     " OR (l.kind = 4 AND (length(l.text) <> 129 OR substr(l.text, 65, 1) <> ' '))"
     " OR (l.kind = 2 AND EXISTS (SELECT 1 FROM labels m CROSS JOIN suites v ON v.id = m.suite WHERE m.kind = 2"
     "  AND m.text = l.text AND m.id < l.id AND COALESCE(v.tenant, 0) = COALESCE(u.tenant, 0)))"},
    {"tenant", "tenants",
     "SELECT " SUITE ", 'is of tenant ' || u.tenant || ', which is not there' FROM suites u"
     " LEFT JOIN tenants t ON t.id = u.tenant WHERE u.tenant IS NOT NULL AND t.id IS NULL"
     " UNION ALL SELECT 'tenant ' || d.tenant, 'is not there, and has days' FROM tenant_days d"
     " LEFT JOIN tenants t ON t.id = d.tenant WHERE t.id IS NULL"
     " UNION ALL SELECT 'tenant ' || t.name, 'has spent ' || t.days || ' uusd by its days and ' || t.suites ||"
     " ' by its suites' FROM (SELECT name, COALESCE((SELECT SUM(d.cost_uusd) FROM tenant_days d"
     "  WHERE d.tenant = t.id), 0) AS days, COALESCE((SELECT SUM(l.cost_uusd) FROM suites u"
     "  CROSS JOIN ledger l ON l.suite = u.id WHERE u.tenant = t.id AND l.audit <> 2), 0) AS suites"
     " FROM tenants t) t WHERE t.days <> t.suites"},
    {"ledger", "the ledger's sums over all suites",
     "WITH n AS MATERIALIZED (SELECT pool, device, tier, audit, ending, SUM(attempts) AS attempts,"
     " SUM(device_ns) AS device_ns, SUM(metres_mm) AS metres_mm, SUM(mflop) AS mflop,"
     " SUM(cost_uusd) AS cost_uusd FROM ledger GROUP BY 1, 2, 3, 4, 5)"
     " SELECT 'ledger of all suites, pool ' || l.pool || ', ' || l.device || ', tier ' || l.tier ||"
     " ', ending ' || l.ending, 'is not the sum of the ledgers of suites' FROM ledger_totals l"
     " LEFT JOIN n ON n.pool = l.pool AND n.device = l.device AND n.tier = l.tier"
     " AND n.audit = l.audit AND n.ending = l.ending"
     " WHERE (l.attempts, l.device_ns, l.metres_mm, l.mflop, l.cost_uusd) <> (COALESCE(n.attempts, 0),"
     " COALESCE(n.device_ns, 0), COALESCE(n.metres_mm, 0), COALESCE(n.mflop, 0), COALESCE(n.cost_uusd, 0))"
     " UNION ALL SELECT 'ledger of all suites, pool ' || n.pool || ', ' || n.device, 'has no row for '"
     " || n.attempts || ' attempts of tier ' || n.tier || ' that ended as number ' || n.ending"
     " FROM n LEFT JOIN ledger_totals l ON n.pool = l.pool AND n.device = l.device"
     " AND n.tier = l.tier AND n.audit = l.audit AND n.ending = l.ending WHERE l.pool IS NULL"
     " AND n.attempts <> 0"},
};
/* clang-format on */

/* Tables whose columns are members of records: what those may be, store/door/invariants.h says. */
static const struct {
    const char *kind;
    const char *table;
    const char *place; /* of its row t */
    const struct invariants *of;
    const char *apart; /* a column that holds a row's number where the record has its name */
} tables[] = {
    {"outcome", "outcomes", "'outcome ' || t.id", &invariants_outcome, ""},
    {"spec", "jobs", "'job ' || t.id", &invariants_spec, "pool"},
    {"spec", "job_specs", "'job ' || t.job", &invariants_spec, ""},
    {"spec", "contexts", "'context ' || t.id", &invariants_context, ""},
    {"model", "models", "'model ' || t.id", &invariants_model, ""},
    {"model", "model_events", "'event ' || t.id || ' of models'", &invariants_model_event, "model"},
    {"trust", "trust_events", "'event ' || t.id || ' of trust'", &invariants_trust_event, ""},
    {"golden", "goldens", "'golden ' || t.id", &invariants_golden, ""},
    {"label", "labels", "'label ' || t.id", &invariants_label, "suite"},
    {"tenant", "tenants", "'tenant ' || t.name", &invariants_tenant, ""},
};

enum status check_query(struct check *check, bool note, const char *kind, const char *what,
                        const char *sql, struct error *error)
{
    struct error why;
    struct query query = query_begin_sql(check->db, sql);
    while (query_row(&query)) {
        char place[192];
        char text[512];
        query_take_text(&query, place, sizeof place);
        query_take_text(&query, text, sizeof text);
        (note ? check_note : check_fault)(check, kind, place, "%s", text);
    }
    enum status status = query_end(&query, &why);
    return check_statement(check, what, status, &why, error);
}

struct column_of {
    struct db *db;
    const char *table;
    const char *apart;
};

static enum status has_column(void *context, const char *column, bool *has, struct error *error)
{
    const struct column_of *of = context;
    struct query query = query_begin(of->db, STATEMENT_SCHEMA_COLUMN);
    query_text(&query, of->table);
    query_text(&query, column);
    *has = query_row(&query) && strcmp(column, of->apart) != 0;
    return query_end(&query, error);
}

static enum status check_tables(struct check *check, struct error *error)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        struct column_of of = {check->db, tables[i].table, tables[i].apart};
        char *sql = NULL;
        TRY(invariants_sql(tables[i].of, tables[i].table, tables[i].place, has_column, &of, &sql,
                           error));
        enum status status =
            sql != NULL ? check_query(check, false, tables[i].kind, tables[i].table, sql, error)
                        : STATUS_OK;
        free(sql);
        TRY(status);
    }
    return STATUS_OK;
}

enum status check_queries(struct check *check, struct error *error)
{
    for (size_t i = 0; i < COUNT_OF(queries); i++) {
        TRY(check_query(check, queries[i].kind == unsaid, queries[i].kind, queries[i].what,
                        queries[i].sql, error));
    }
    return check_tables(check, error);
}
