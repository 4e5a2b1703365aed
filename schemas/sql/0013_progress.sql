-- What people are told of a suite that runs: since when it is there, whose planners it drives, and how far
-- it is by planned ticks.

-- Seconds since 1970 by the wall clock of the process that took it, for people: nothing is decided by it.
-- 0: submitted before this was kept.
ALTER TABLE suites ADD COLUMN submitted_s INTEGER NOT NULL DEFAULT 0;

-- Planned ticks of a scenario's rollouts, a shared past counted once; 0: its body does not say
-- (SCENARIO_TICKS of store/sqlite/statements.h).
ALTER TABLE scenarios ADD COLUMN ticks INTEGER NOT NULL DEFAULT 0;
UPDATE scenarios SET ticks = CASE WHEN length(body) <= 1048576 AND json_valid(CAST(body AS TEXT)) THEN
    (SELECT MAX(0, MIN(1000000000, CAST(h.n + COALESCE((SELECT SUM(MAX(0, h.n - CASE e.type WHEN 'object'
        THEN COALESCE(json_extract(e.value, '$.at_tick'), 0) ELSE h.n END))
        FROM json_each(CAST(body AS TEXT), '$.branches') e), 0) AS INTEGER)))
     FROM (SELECT COALESCE(ROUND(10 * json_extract(CAST(body AS TEXT), '$.horizon_s')), 0) AS n) h)
    ELSE 0 END;

-- Planners of a suite's jobs.
CREATE TABLE suite_planners (
    suite INTEGER NOT NULL REFERENCES suites (id),
    planner TEXT NOT NULL,
    PRIMARY KEY (suite, planner)
) STRICT, WITHOUT ROWID;

INSERT INTO suite_planners SELECT DISTINCT s.suite, c.planner FROM job_specs s
    JOIN contexts c ON c.id = s.context;

-- Jobs of a suite by pool and tier, but for those that took over another suite's result: how many are open
-- (queued or leased), their planned ticks, and the time in which some of them ran, shared among the suite's
-- tiers that ran at the same time.
CREATE TABLE suite_progress (
    suite INTEGER NOT NULL REFERENCES suites (id),
    pool INTEGER NOT NULL REFERENCES pools (id),
    tier INTEGER NOT NULL,
    jobs_open INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    ticks_open INTEGER NOT NULL, -- of these, of open jobs
    wall_ns INTEGER NOT NULL,
    PRIMARY KEY (suite, pool, tier)
) STRICT, WITHOUT ROWID;

INSERT INTO suite_progress
    SELECT j.suite, j.pool, c.tier, SUM(j.state <= 1), SUM(COALESCE(x.ticks, 0)),
        SUM(CASE WHEN j.state <= 1 THEN COALESCE(x.ticks, 0) ELSE 0 END), 0
    FROM jobs j JOIN job_specs s ON s.job = j.id JOIN contexts c ON c.id = s.context
    LEFT JOIN scenarios x ON x.id = s.scenario WHERE j.memo_of IS NULL GROUP BY 1, 2, 3;

-- Paces of earlier suites, the newest last.
CREATE INDEX suite_progress_paced ON suite_progress (pool, tier, suite) WHERE wall_ns > 0;
