/*
 * Invariants of a store's database. See invariants.h.
 */
#include "tests/store/faults/invariants.h"

#include "store/check/check.h"
#include "store/sql/sqlite_db.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Jobs that suites and pools count: all but those of shadows, and audits that a freeze made
 * pointless. */
#define COUNTED "(SELECT * FROM jobs WHERE shadow IS NULL AND (audit = 0 OR freeze_event IS NULL))"

/* Each query counts violations. */
static const struct {
    const char *what;
    const char *sql;
} invariants[] = {
    {"suites count their jobs",
     "SELECT COUNT(*) FROM suites u WHERE"
     "   jobs_queued <> (SELECT COUNT(*) FROM " COUNTED " j WHERE j.suite = u.id AND j.state = 0)"
     " OR jobs_leased <> (SELECT COUNT(*) FROM " COUNTED " j WHERE j.suite = u.id AND j.state = 1)"
     " OR jobs_done <> (SELECT COUNT(*) FROM " COUNTED " j WHERE j.suite = u.id AND j.state = 2)"
     " OR jobs_flagged <> (SELECT COUNT(*) FROM " COUNTED " j WHERE j.suite = u.id AND j.state = 3)"
     " OR jobs_dead <> (SELECT COUNT(*) FROM " COUNTED " j WHERE j.suite = u.id AND j.state = 4)"
     " OR jobs_cancelled <> (SELECT COUNT(*) FROM " COUNTED
     " j WHERE j.suite = u.id AND j.state = 5)"},
    {"suites count their rollouts",
     "SELECT COUNT(*) FROM suites u WHERE rollouts_pass + rollouts_fail + rollouts_planner_error"
     " + rollouts_flagged + rollouts_invalid + rollouts_audit <> (SELECT COUNT(*) FROM outcomes o "
     "JOIN " COUNTED " j ON j.id = o.job WHERE o.suite = u.id)"
     " + (SELECT COUNT(*) FROM memo_outcomes m JOIN " COUNTED
     " j ON j.id = m.job WHERE m.suite = u.id)"},
    {"every job has its spec",
     "SELECT COUNT(*) FROM jobs WHERE id NOT IN (SELECT job FROM job_specs)"},
    {"finished jobs have exactly their outcomes",
     "SELECT COUNT(*) FROM jobs j WHERE state = 2 AND memo_of IS NULL"
     " AND rollouts <> (SELECT COUNT(*) FROM outcomes o WHERE o.job = j.id)"},
    {"unfinished jobs have none",
     "SELECT COUNT(*) FROM outcomes o JOIN jobs j ON j.id = o.job WHERE j.state IN (0, 1, 5)"},
    {"an outcome's attempt is its job's last and counted",
     "SELECT COUNT(*) FROM outcomes o JOIN jobs j ON j.id = o.job LEFT JOIN attempts a"
     " ON a.job = o.job AND a.epoch = o.epoch"
     " WHERE a.job IS NULL OR a.ending NOT IN (0, 1) OR o.epoch <> j.epoch"},
    {"every epoch but a running one has ended once",
     "SELECT COUNT(*) FROM jobs j WHERE epoch - (state = 1) <>"
     " (SELECT COUNT(*) FROM attempts a WHERE a.job = j.id)"},
    {"the ledger is the sum of its attempts",
     "SELECT COUNT(*) FROM ledger l WHERE"
     " (l.attempts, l.device_ns, l.metres_mm, l.mflop, l.cost_uusd) <>"
     " (SELECT COUNT(*), COALESCE(SUM(a.device_ns), 0), COALESCE(SUM(a.metres_mm), 0),"
     "  COALESCE(SUM(a.mflop), 0), COALESCE(SUM(a.cost_uusd), 0) FROM attempts a JOIN jobs j ON "
     "j.id = a.job"
     "  WHERE j.suite = l.suite AND a.pool = l.pool AND a.device = l.device"
     "  AND a.tier = l.tier AND a.ending = l.ending AND IIF(j.shadow IS NULL, j.audit, 2) = "
     "l.audit)"},
    {"audit jobs and those of shadows, and only they, repeat a job of their suite",
     "SELECT COUNT(*) FROM jobs j JOIN job_specs s ON s.job = j.id LEFT JOIN job_specs t"
     " ON t.key = s.audit_key AND t.suite = s.suite AND t.audit_key IS NULL"
     " WHERE j.audit + (j.shadow IS NOT NULL) <> (s.audit_key IS NOT NULL)"
     " OR (s.audit_key IS NOT NULL) <> (t.job IS NOT NULL)"},
    {"no attempt is missing from the ledger",
     "SELECT (SELECT COUNT(*) FROM attempts) - (SELECT COALESCE(SUM(attempts), 0) FROM ledger)"},
    {"the cost is that of the sum",
     "SELECT COUNT(*) FROM (SELECT SUM(device_ns * price_uusd_per_hour) AS owed,"
     "  SUM(cost_uusd) AS cost, pool, device, price_uusd_per_hour AS price FROM attempts"
     "  GROUP BY pool, device, price_uusd_per_hour) s JOIN accounts c ON c.pool = s.pool"
     " AND c.device = s.device AND c.price_uusd_per_hour = s.price"
     " WHERE s.owed <> s.cost * 3600000000000 + c.carry"},
    {"pools count their jobs",
     "SELECT COUNT(*) FROM (SELECT pool, state, COUNT(*) AS jobs FROM " COUNTED
     " GROUP BY pool, state) j"
     " FULL JOIN (SELECT * FROM pool_jobs WHERE jobs <> 0) p"
     " ON p.pool = j.pool AND p.state = j.state WHERE p.jobs IS NOT j.jobs"},
    {"the ledger's totals are its sums",
     "SELECT COUNT(*) FROM (SELECT pool, device, tier, audit, ending, SUM(attempts) AS n,"
     "  SUM(device_ns) AS ns, SUM(metres_mm) AS mm, SUM(mflop) AS mflop, SUM(cost_uusd) AS uusd"
     "  FROM ledger GROUP BY pool, device, tier, audit, ending) l"
     " FULL JOIN ledger_totals t ON t.pool = l.pool AND t.device = l.device AND t.tier = l.tier"
     " AND t.audit = l.audit AND t.ending = l.ending"
     " WHERE (t.attempts, t.device_ns, t.metres_mm, t.mflop, t.cost_uusd) IS NOT"
     " (l.n, l.ns, l.mm, l.mflop, l.uusd)"},
    {"a suite that has cost its budget is stopped, and has nothing queued",
     "SELECT COUNT(*) FROM suites u WHERE budget_spent <> (budget_uusd > 0 AND budget_uusd <="
     " (SELECT COALESCE(SUM(l.cost_uusd), 0) FROM ledger l WHERE l.suite = u.id AND l.audit <> 2))"
     " OR (budget_spent = 1 AND EXISTS (SELECT 1 FROM " COUNTED
     " j WHERE j.suite = u.id AND j.state = 0))"},
    {"keys are unique within a suite",
     "SELECT COUNT(*) FROM (SELECT 1 FROM job_specs GROUP BY suite, key HAVING COUNT(*) > 1)"},
};

struct first_fault {
    char *why;
    size_t why_bytes;
    bool found;
};

static void on_finding(void *context, const struct store_check_finding *finding)
{
    struct first_fault *first = context;

    /* Tests put scenarios under names that are no hashes of theirs. */
    if (!finding->note && !first->found && strcmp(finding->kind, "scenario") != 0) {
        first->found = true;
        snprintf(first->why, first->why_bytes, "check: %s: %s", finding->place, finding->text);
    }
}

/* Findings of `swerve check`, which must not be more than what is wrong. */
static bool check_holds(const char *path, char *why, size_t why_bytes)
{
    struct first_fault first = {.why = why, .why_bytes = why_bytes};
    struct store_check_summary summary;
    struct error error;
    const struct store_check_options options = {
        .skip_artifacts = true, .findings_max = 1000, .found = on_finding, .context = &first};

    if (store_check(path, &options, &summary, &error) != STATUS_OK) {
        snprintf(why, why_bytes, "check: %s", error.text);
        return false;
    }
    return !first.found;
}

bool invariants_hold(const char *path, char *why, size_t why_bytes)
{
    struct db *db = NULL;
    struct error error;
    bool hold = true;

    if (sqlite_db_open(path, SQLITE_DB_READER, &db, &error) != 0) {
        snprintf(why, why_bytes, "%s", error.text);
        return false;
    }
    if (sqlite_db_check(db, &error) != STATUS_OK) {
        snprintf(why, why_bytes, "%s", error.text);
        hold = false;
    }
    for (size_t i = 0; i < sizeof invariants / sizeof invariants[0] && hold; i++) {
        int64_t violations = -1;
        if (sqlite_db_scalar(db, invariants[i].sql, &violations, &error) != STATUS_OK) {
            snprintf(why, why_bytes, "%s: %s", invariants[i].what, error.text);
            hold = false;
        } else if (violations != 0) {
            snprintf(why, why_bytes, "not true: %s (%lld times)", invariants[i].what,
                     (long long)violations);
            hold = false;
        }
    }
    db_close(db);
    return hold && check_holds(path, why, why_bytes);
}
