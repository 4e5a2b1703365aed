-- Jobs by which a version in state shadow drives production jobs again. Its share stands in canary_percent.

-- The version whose shadow a job is; NULL: none's. Such a job repeats another one of its suite (job_specs.audit_key) and is
-- in no counter of suites and pools. While it waits its due_ns is -1: it is for workers that find nothing else. The
-- ledger's `audit` is 2 for it.
ALTER TABLE jobs ADD COLUMN shadow INTEGER REFERENCES models (id);
CREATE INDEX jobs_shadow_ready ON jobs (pool, id) WHERE state = 0 AND due_ns = -1;
CREATE INDEX jobs_shadow_open ON jobs (shadow, id) WHERE state <= 1 AND shadow IS NOT NULL; -- that end with the shadow

-- One version of a tier at a time.
CREATE UNIQUE INDEX models_shadow ON models (tier) WHERE state = 1 AND canary_percent > 0;
