-- Every question has an index, and sums over everything are kept rather than counted.

CREATE INDEX job_specs_by_scenario ON job_specs (scenario_id);
CREATE INDEX outcomes_by_own_scenario ON outcomes (scenario_id) WHERE scenario_id IS NOT NULL;
CREATE INDEX outcomes_by_verdict ON outcomes (verdict);
CREATE INDEX outcomes_by_suite_verdict ON outcomes (suite, verdict);
CREATE INDEX jobs_open ON jobs (suite) WHERE state <= 1; -- what a cancel ends
CREATE INDEX jobs_audits_dead ON jobs (suite) WHERE state = 4 AND audit = 1;

-- Jobs by pool and state; a row that is not there is 0.
CREATE TABLE pool_jobs (
    pool INTEGER NOT NULL REFERENCES pools (id),
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 5),
    jobs INTEGER NOT NULL,
    PRIMARY KEY (pool, state)
) STRICT, WITHOUT ROWID;

INSERT INTO pool_jobs SELECT pool, state, COUNT(*) FROM jobs GROUP BY pool, state;

-- The ledger's sums over all suites.
CREATE TABLE ledger_totals (
    pool INTEGER NOT NULL REFERENCES pools (id),
    device TEXT NOT NULL,
    tier INTEGER NOT NULL,
    audit INTEGER NOT NULL,
    ending INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    device_ns INTEGER NOT NULL,
    metres_mm INTEGER NOT NULL,
    mflop INTEGER NOT NULL,
    cost_uusd INTEGER NOT NULL,
    PRIMARY KEY (pool, device, tier, audit, ending)
) STRICT, WITHOUT ROWID;

INSERT INTO ledger_totals
    SELECT pool, device, tier, audit, ending, SUM(attempts), SUM(device_ns), SUM(metres_mm),
        SUM(mflop), SUM(cost_uusd)
    FROM ledger GROUP BY pool, device, tier, audit, ending;
