/*
 * Questions: what outcomes, audits and successors of flagged jobs say beside what their jobs ask.
 * The store refuses what differs when it comes (store/sql/question.c); rows of earlier versions are
 * worth knowing, and no faults, since nothing can be done about them.
 */
#include "store/check/check_internal.h"

/* clang-format off */
static const struct {
    bool note;
    const char *kind;
    const char *what;
    const char *sql;
} queries[] = {
    {false, "spec", "who answers flagged jobs",
     "SELECT 'job ' || j.id, 'names context ' || s.escalation || ' to answer if it is flagged, which cannot be'"
     " FROM job_specs s JOIN jobs j ON j.id = s.job JOIN contexts c ON c.id = s.context"
     " LEFT JOIN contexts e ON e.id = s.escalation WHERE s.escalation IS NOT NULL AND (e.id IS NULL"
     " OR e.planner <> c.planner OR e.planner_hash <> c.planner_hash OR e.revision <> c.revision"
     " OR (e.tier <> 3 AND NOT (c.tier = 4 AND e.tier = 2)) OR s.audit_key IS NOT NULL"
     " OR (c.tier = 3 AND j.freeze_event IS NULL))"},
    {false, "spec", "successors of flagged jobs",
     "SELECT 'job ' || j.id, 'was flagged, and job ' || k.id || ', which answers instead, is not what its row says'"
     " FROM attempts a JOIN jobs j ON j.id = a.job JOIN job_specs s ON s.job = j.id"
     " JOIN contexts e ON e.id = s.escalation JOIN jobs k ON k.id = a.escalated_job JOIN job_specs t ON t.job = k.id"
     " JOIN contexts d ON d.id = t.context WHERE j.state = 3 AND a.ending = 1 AND (t.scenario_id <> s.scenario_id"
     " OR COALESCE(t.scenario, 0) <> COALESCE(s.scenario, 0) OR t.seed <> s.seed OR k.rollouts <> j.rollouts"
     " OR d.planner <> e.planner OR d.planner_hash <> e.planner_hash OR d.revision <> e.revision"
     " OR t.audit_key IS NOT NULL OR (k.follows = 0 AND k.freeze_event IS NULL AND (d.pool <> e.pool"
     " OR d.tier <> e.tier OR d.model_hash <> e.model_hash OR d.sampler <> e.sampler)))"},
    {true, "provenance", "flagged jobs of earlier versions",
     "SELECT 'store', COUNT(*) || ' flagged jobs are of an earlier version, in which workers said who answers instead'"
     " FROM jobs j JOIN job_specs s ON s.job = j.id WHERE j.state = 3 AND s.escalation IS NULL HAVING COUNT(*) > 0"},
    {true, "provenance", "questions of outcomes",
     "SELECT 'outcome ' || o.id, 'answers another question than its job ' || o.job || ' asks: an earlier version took"
     " what the worker said' FROM outcomes o JOIN job_specs s ON s.job = o.job WHERE o.context <> s.context"
     " OR o.scenario_id IS NOT NULL OR o.scenario_hash IS NOT NULL OR o.seed IS NOT NULL"},
    {true, "provenance", "device time of outcomes",
     "WITH n AS MATERIALIZED (SELECT job, SUM(device_ns) AS ns FROM outcomes GROUP BY job)"
     " SELECT 'job ' || n.job, 'has outcomes that took ' || n.ns || ' ns, and its attempts were charged ' || b.ns || ': an"
     " earlier version took what the worker said' FROM n JOIN (SELECT job, SUM(device_ns) AS ns FROM attempts GROUP BY job) b"
     " ON b.job = n.job WHERE n.ns > b.ns"},
    {true, "provenance", "ticks of outcomes",
     "WITH h AS MATERIALIZED (SELECT b.id, " SCENARIO_HORIZON("b.body") " AS ticks FROM scenarios b)"
     " SELECT 'outcome ' || o.id, 'has ' || o.ticks || ' ticks, its scenario ' || h.ticks || ': an earlier version took"
     " what the worker said' FROM outcomes o JOIN job_specs s ON s.job = o.job"
     " JOIN h ON h.id = s.scenario WHERE h.ticks > 0 AND o.ticks > h.ticks"},
    {true, "provenance", "questions of audits",
     "SELECT 'job ' || j.id, 'audits job ' || k.id || ', but asks something else, or no teacher: it counts nowhere'"
     " FROM jobs j JOIN job_specs s ON s.job = j.id JOIN contexts c ON c.id = s.context"
     " JOIN job_specs t ON t.key = s.audit_key AND t.suite = s.suite AND t.audit_key IS NULL"
     " JOIN jobs k ON k.id = t.job JOIN contexts d ON d.id = t.context WHERE s.audit_key IS NOT NULL AND s.makes = ''"
     " AND (c.planner <> d.planner OR c.planner_hash <> d.planner_hash OR c.revision <> d.revision"
     " OR COALESCE(s.scenario, 0) <> COALESCE(t.scenario, 0) OR j.rollouts <> k.rollouts"
     " OR (j.shadow IS NULL AND c.tier <> 3))"},
    {false, "spec", "futures",
     "SELECT 'job ' || j.id, 'makes ' || s.makes || ', and its futures are others, or those of another question'"
     " FROM jobs j JOIN job_specs s ON s.job = j.id JOIN contexts c ON c.id = s.context"
     " LEFT JOIN job_specs t ON t.key = s.audit_key AND t.suite = s.suite AND t.audit_key IS NULL"
     " LEFT JOIN contexts d ON d.id = t.context LEFT JOIN outcomes o ON o.job = j.id WHERE s.makes LIKE 'futures:%'"
     " AND (t.job IS NULL OR c.tier <> 1 OR c.planner <> d.planner OR c.planner_hash <> d.planner_hash"
     " OR COALESCE(s.scenario, 0) <> COALESCE(t.scenario, 0) OR s.seed <> t.seed"
     " OR (o.id IS NOT NULL AND (o.futures_state = 0 OR 'futures:' || o.futures_tick || ':' || o.futures_draws <> s.makes)))"},
    {false, "spec", "futures of other jobs",
     "SELECT 'outcome ' || o.id, 'has futures, and its job ' || o.job || ' makes none' FROM outcomes o"
     " JOIN job_specs s ON s.job = o.job WHERE o.futures_state <> 0 AND s.makes NOT LIKE 'futures:%'"},
};
/* clang-format on */

enum status check_questions(struct check *check, struct error *error)
{
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        TRY(check_query(check, queries[i].note, queries[i].kind, queries[i].what, queries[i].sql,
                        error));
    }
    return STATUS_OK;
}
