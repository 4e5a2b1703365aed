-- Learned tiers: what they compute, what flagged them, and the twins that audit them.

-- A twin repeats another job of its suite on the teacher. Its outcomes are not the suite's results:
-- they are in none of the counters but rollouts_audit; what it costs is in the ledger, on rows of
-- its own.
ALTER TABLE jobs ADD COLUMN audit INTEGER NOT NULL DEFAULT 0 CHECK (audit IN (0, 1));
ALTER TABLE job_specs ADD COLUMN audit_key TEXT; -- key of the job that it repeats; NULL: not a twin
ALTER TABLE suites ADD COLUMN rollouts_audit INTEGER NOT NULL DEFAULT 0;

-- Millions of operations, counted from the shapes of the model; 0 for worlds without one.
ALTER TABLE attempts ADD COLUMN mflop INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN mflop INTEGER NOT NULL DEFAULT 0;

-- The evidence of a flagged rollout; NULL where none was flagged.
ALTER TABLE outcomes ADD COLUMN health_check TEXT;
ALTER TABLE outcomes ADD COLUMN health_tick INTEGER;
ALTER TABLE outcomes ADD COLUMN health_value REAL; -- NULL: not a number
ALTER TABLE outcomes ADD COLUMN health_threshold REAL;
ALTER TABLE outcomes ADD COLUMN evidence_hash TEXT; -- artifact: PNG of the flagged frame

CREATE TABLE ledger_by_audit (
    suite INTEGER NOT NULL REFERENCES suites (id),
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
    PRIMARY KEY (suite, pool, device, tier, audit, ending)
) STRICT, WITHOUT ROWID;

INSERT INTO ledger_by_audit
    SELECT suite, pool, device, tier, 0, ending, attempts, device_ns, metres_mm, 0, cost_uusd
    FROM ledger;
DROP TABLE ledger;
ALTER TABLE ledger_by_audit RENAME TO ledger;
