-- The machine that a worker runs on, as the worker says. Workers that say nothing are machines of
-- their own.
ALTER TABLE workers ADD COLUMN host TEXT NOT NULL DEFAULT '';

-- 1: a job of this planner had a result.
ALTER TABLE contexts ADD COLUMN driven INTEGER NOT NULL DEFAULT 0;
UPDATE contexts SET driven = 1 WHERE id IN (SELECT context FROM outcomes);

-- Planners that could not be started, by host: a row goes when the host has driven the planner.
-- One host alone is taken to be badly set up; several, for a planner that nobody has driven, show
-- that it is the planner.
CREATE TABLE unstarted (
    planner TEXT NOT NULL,
    planner_hash TEXT NOT NULL,
    host TEXT NOT NULL,
    driven INTEGER NOT NULL, -- 1: somebody has driven it, so it is not the planner
    suite INTEGER NOT NULL REFERENCES suites (id), -- that last asked this host for it
    worker INTEGER NOT NULL REFERENCES workers (id), -- who last said so
    error TEXT NOT NULL,
    PRIMARY KEY (planner, planner_hash, host)
) STRICT, WITHOUT ROWID;

CREATE INDEX unstarted_by_suite ON unstarted (suite);
