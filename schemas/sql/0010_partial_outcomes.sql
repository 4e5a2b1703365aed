-- Outcomes of rollouts that are finished while their job goes on: whoever claims the job next does not
-- drive them again. They count nowhere; a job that ends for good has none.
CREATE TABLE partial_outcomes (
    job INTEGER NOT NULL REFERENCES jobs (id),
    branch_id TEXT NOT NULL,
    epoch INTEGER NOT NULL, -- of the attempt that drove it
    outcome TEXT NOT NULL,  -- JSON (schemas/outcome_json.h)
    digest BLOB NOT NULL,   -- over the outcome (store/sqlite/digest.h)
    PRIMARY KEY (job, branch_id)
) STRICT;
