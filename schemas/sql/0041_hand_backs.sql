-- Attempts that were asked for because a job of a higher class waited, and the suite that it is of.
CREATE TABLE hand_backs (
    job INTEGER NOT NULL REFERENCES jobs (id),
    epoch INTEGER NOT NULL,
    for_suite INTEGER NOT NULL REFERENCES suites (id),
    returned INTEGER NOT NULL DEFAULT 0 CHECK (returned IN (0, 1)), -- 1: its worker handed it back
    PRIMARY KEY (job, epoch)
) STRICT, WITHOUT ROWID;
CREATE INDEX hand_backs_open ON hand_backs (for_suite) WHERE returned = 0;
-- Of these, how many were handed back; of the jobs of a suite, and of a pool.
ALTER TABLE suites ADD COLUMN jobs_handed_back INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pools ADD COLUMN jobs_handed_back INTEGER NOT NULL DEFAULT 0;
