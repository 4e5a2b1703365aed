-- The job store, first version. What is stored here is read by people and by other tools as well
-- as by Swerve, so names are whole words and every unit is in its column's name.
--
-- No table holds a clock reading: clocks do not survive a reboot. Backoffs keep their length
-- (delay_ns) and get a new due_ns when the store is opened; leases live in memory alone.
--
-- State and verdict numbers are those of enum job_state, enum verdict and enum tier; an attempt's
-- end is numbered by enum attempt_end of store/sqlite/ledger.h.

CREATE TABLE suites (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    weight INTEGER NOT NULL CHECK (weight BETWEEN 1 AND 100),
    -- Counters, kept by the transactions that change what they count.
    jobs_queued INTEGER NOT NULL DEFAULT 0 CHECK (jobs_queued >= 0),
    jobs_leased INTEGER NOT NULL DEFAULT 0 CHECK (jobs_leased >= 0),
    jobs_done INTEGER NOT NULL DEFAULT 0 CHECK (jobs_done >= 0),
    jobs_flagged INTEGER NOT NULL DEFAULT 0 CHECK (jobs_flagged >= 0),
    jobs_dead INTEGER NOT NULL DEFAULT 0 CHECK (jobs_dead >= 0),
    jobs_cancelled INTEGER NOT NULL DEFAULT 0 CHECK (jobs_cancelled >= 0),
    jobs_memoised INTEGER NOT NULL DEFAULT 0,
    rollouts_total INTEGER NOT NULL DEFAULT 0,
    rollouts_pass INTEGER NOT NULL DEFAULT 0,
    rollouts_fail INTEGER NOT NULL DEFAULT 0,
    rollouts_planner_error INTEGER NOT NULL DEFAULT 0,
    rollouts_flagged INTEGER NOT NULL DEFAULT 0,
    ticks INTEGER NOT NULL DEFAULT 0,
    prefix_ticks_saved INTEGER NOT NULL DEFAULT 0,
    metres_mm INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE pools (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- One row per worker process that ever claimed a job.
CREATE TABLE workers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    pool INTEGER NOT NULL REFERENCES pools (id),
    device TEXT NOT NULL
) STRICT;

-- Canonical scenario documents by the SHA-256 of their text.
CREATE TABLE scenarios (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE prefixes (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
) STRICT;

-- What a result was or will be computed with; shared by many jobs and outcomes.
CREATE TABLE contexts (
    id INTEGER PRIMARY KEY,
    planner TEXT NOT NULL,
    planner_hash TEXT NOT NULL,
    pool TEXT NOT NULL,
    tier INTEGER NOT NULL,
    model_hash TEXT NOT NULL,
    sampler TEXT NOT NULL,
    backend TEXT NOT NULL,
    revision TEXT NOT NULL,
    UNIQUE (planner_hash, revision, tier, pool, model_hash, sampler, backend, planner)
) STRICT;

-- The life cycle of a job: the part that changes, kept small.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    suite INTEGER NOT NULL REFERENCES suites (id),
    pool INTEGER NOT NULL REFERENCES pools (id),
    prefix INTEGER NOT NULL DEFAULT 0, -- prefixes.id; 0: no affinity
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 5),
    priority INTEGER NOT NULL,
    rollouts INTEGER NOT NULL CHECK (rollouts >= 1),
    epoch INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0, -- claims that were not handed back
    lost INTEGER NOT NULL DEFAULT 0,     -- of these, ended by the loss of their worker
    worker INTEGER REFERENCES workers (id), -- who claimed it last
    due_ns INTEGER NOT NULL DEFAULT 0,   -- queued, backing off until then; 0: claimable
    delay_ns INTEGER NOT NULL DEFAULT 0, -- the length of that backoff
    progress_ns INTEGER NOT NULL DEFAULT 0, -- device time the running attempt has reported
    progress_mm INTEGER NOT NULL DEFAULT 0,
    memo_of INTEGER REFERENCES jobs (id) -- the job whose outcomes this one took over
) STRICT;

CREATE INDEX jobs_ready ON jobs (pool, suite, priority DESC, id)
    WHERE state = 0 AND due_ns = 0;
CREATE INDEX jobs_affine ON jobs (pool, prefix, suite, priority DESC, id)
    WHERE state = 0 AND due_ns = 0 AND prefix <> 0;
CREATE INDEX jobs_delayed ON jobs (due_ns) WHERE state = 0 AND due_ns > 0;
CREATE INDEX jobs_leased ON jobs (worker) WHERE state = 1;
CREATE INDEX jobs_dead ON jobs (suite, id) WHERE state = 4;

-- What was submitted: never changes.
CREATE TABLE job_specs (
    job INTEGER PRIMARY KEY REFERENCES jobs (id),
    suite INTEGER NOT NULL REFERENCES suites (id),
    key TEXT NOT NULL,
    scenario_id TEXT NOT NULL,
    scenario INTEGER REFERENCES scenarios (id), -- NULL: the job has no scenario body
    context INTEGER NOT NULL REFERENCES contexts (id),
    seed INTEGER NOT NULL, -- the 64 bits of an unsigned number
    attempts_max INTEGER NOT NULL CHECK (attempts_max >= 1),
    parent_job INTEGER REFERENCES jobs (id),
    UNIQUE (key, suite)
) STRICT;

-- The ledger's entries: one per attempt, written when it ends.
CREATE TABLE attempts (
    job INTEGER NOT NULL REFERENCES jobs (id),
    epoch INTEGER NOT NULL,
    worker INTEGER NOT NULL REFERENCES workers (id),
    pool INTEGER NOT NULL REFERENCES pools (id),
    device TEXT NOT NULL,
    tier INTEGER NOT NULL,
    ending INTEGER NOT NULL,
    device_ns INTEGER NOT NULL,
    metres_mm INTEGER NOT NULL,
    price_uusd_per_hour INTEGER NOT NULL,
    cost_uusd INTEGER NOT NULL,
    escalated_job INTEGER REFERENCES jobs (id),
    artifact_hash TEXT,
    error TEXT,
    PRIMARY KEY (job, epoch)
) STRICT, WITHOUT ROWID;

-- Sums of attempts, kept by the same transactions.
CREATE TABLE ledger (
    suite INTEGER NOT NULL REFERENCES suites (id),
    pool INTEGER NOT NULL REFERENCES pools (id),
    device TEXT NOT NULL,
    tier INTEGER NOT NULL,
    ending INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    device_ns INTEGER NOT NULL,
    metres_mm INTEGER NOT NULL,
    cost_uusd INTEGER NOT NULL,
    PRIMARY KEY (suite, pool, device, tier, ending)
) STRICT, WITHOUT ROWID;

-- What is left over when device time is turned into whole micro-dollars, in units of
-- 1 uusd / 3.6e12 (nanoseconds x uusd per hour), so that nothing is lost to rounding.
CREATE TABLE accounts (
    pool INTEGER NOT NULL REFERENCES pools (id),
    device TEXT NOT NULL,
    price_uusd_per_hour INTEGER NOT NULL,
    carry INTEGER NOT NULL,
    PRIMARY KEY (pool, device, price_uusd_per_hour)
) STRICT, WITHOUT ROWID;

-- Price in force from now on; pool '' stands for every pool that has no row of its own.
CREATE TABLE prices (
    pool TEXT NOT NULL,
    device TEXT NOT NULL,
    price_uusd_per_hour INTEGER NOT NULL CHECK (price_uusd_per_hour >= 0),
    PRIMARY KEY (pool, device)
) STRICT, WITHOUT ROWID;

INSERT INTO prices (pool, device, price_uusd_per_hour) VALUES
    ('', 'cpu', 40000),
    ('', 'cuda', 2000000),
    ('bulk', 'cpu', 40000),
    ('bulk', 'cuda', 2000000),
    ('teacher', 'cpu', 40000),
    ('teacher', 'cuda', 2000000);

-- NULL in the scenario and seed columns: the job's own. NULL in a metric: it does not apply.
CREATE TABLE outcomes (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL REFERENCES jobs (id),
    epoch INTEGER NOT NULL,
    suite INTEGER NOT NULL REFERENCES suites (id),
    context INTEGER NOT NULL REFERENCES contexts (id),
    scenario_id TEXT,
    scenario_hash TEXT,
    seed INTEGER,
    branch_id TEXT NOT NULL,
    verdict INTEGER NOT NULL CHECK (verdict BETWEEN 0 AND 3),
    reasons INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    prefix_ticks INTEGER NOT NULL,
    metres_mm INTEGER NOT NULL,
    device_ns INTEGER NOT NULL,
    trace_hash TEXT NOT NULL,
    artifact_hash TEXT NOT NULL,
    weather TEXT NOT NULL,
    light TEXT NOT NULL,
    road TEXT NOT NULL,
    geography TEXT NOT NULL,
    actor TEXT NOT NULL,
    scenario_type TEXT NOT NULL,
    safety_critical INTEGER NOT NULL,
    error TEXT NOT NULL,
    no_at_fault_collision REAL,
    drivable_area REAL,
    driving_direction REAL,
    making_progress REAL,
    progress REAL,
    ttc REAL,
    speed_limit REAL,
    comfort REAL,
    score REAL,
    min_ttc_s REAL,
    min_distance_m REAL,
    impact_speed_mps REAL,
    progress_m REAL,
    distance_m REAL,
    speed_max_mps REAL,
    accel_min_mps2 REAL,
    jerk_max_mps3 REAL,
    intervention_count INTEGER NOT NULL,
    collision_count INTEGER NOT NULL,
    collision_tick INTEGER, -- NULL: no contact
    collision_agent INTEGER NOT NULL,
    collision_kind INTEGER NOT NULL,
    at_fault INTEGER NOT NULL,
    goal_reached INTEGER NOT NULL
) STRICT;

CREATE INDEX outcomes_by_job ON outcomes (job);
CREATE INDEX outcomes_by_suite ON outcomes (suite);

-- Outcomes that a suite took over from another's finished job, without copying them.
CREATE TABLE memo_outcomes (
    suite INTEGER NOT NULL REFERENCES suites (id),
    outcome INTEGER NOT NULL REFERENCES outcomes (id),
    job INTEGER NOT NULL REFERENCES jobs (id), -- the suite's own job
    PRIMARY KEY (suite, outcome)
) STRICT, WITHOUT ROWID;
