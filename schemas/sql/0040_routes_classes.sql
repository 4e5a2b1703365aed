-- Reason for which a job's tier answers (schemas/outcome.h, enum route_reason; 0: none is kept) with its two figures.
ALTER TABLE job_specs ADD COLUMN route_reason INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_specs ADD COLUMN route_own INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_specs ADD COLUMN route_other INTEGER NOT NULL DEFAULT 0;
-- Class of a suite (schemas/job.h, enum suite_class): 1 regression, as all were before, 2 interactive, 3 mining.
ALTER TABLE suites ADD COLUMN class INTEGER NOT NULL DEFAULT 1;
-- Jobs that were cancelled, which are listed and counted as main lines without a result.
CREATE INDEX jobs_cancelled ON jobs (suite, id) WHERE state = 5;
