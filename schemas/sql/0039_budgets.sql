-- What a suite may cost in micro-dollars, 0: no limit; and whether what it has cost reached that, so that its queued jobs were cancelled.
ALTER TABLE suites ADD COLUMN budget_uusd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE suites ADD COLUMN budget_spent INTEGER NOT NULL DEFAULT 0;
-- 1: cancelled so; a larger budget queues it again.
ALTER TABLE jobs ADD COLUMN over_budget INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_over_budget ON jobs (suite) WHERE over_budget = 1;
