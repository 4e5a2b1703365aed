-- The registry of world models: immutable versions, where each is in its life, and what happened to it.

-- Tier and state numbers are those of enum tier and enum model_state. Weights and health bounds are artifacts.
CREATE TABLE models (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL, -- SHA-256 of the weights: what jobs and outcomes name
    health_hash TEXT NOT NULL, -- '': built-in bounds
    tier INTEGER NOT NULL CHECK (tier IN (2, 3)),
    precision TEXT NOT NULL,
    sampler TEXT NOT NULL, -- behind the conditioning of a job's sampler: 'euler2/bf16'
    agents_ticks INTEGER NOT NULL, -- trusted horizon of each conditioning
    map_ticks INTEGER NOT NULL,
    none_ticks INTEGER NOT NULL,
    parents TEXT NOT NULL,
    data_note TEXT NOT NULL,
    added_s INTEGER NOT NULL, -- wall clock, for people
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),
    canary_percent INTEGER NOT NULL CHECK (canary_percent BETWEEN 0 AND 100),
    digest BLOB NOT NULL, -- SHA-256 over what never changes
    UNIQUE (hash, precision)
) STRICT;

-- The pointers: one version answers for a tier, and at most one more for a part of its jobs.
CREATE UNIQUE INDEX models_promoted ON models (tier) WHERE state = 3;
CREATE UNIQUE INDEX models_canary ON models (tier) WHERE state = 2;

-- Never changed. Kinds are those of enum model_event_kind.
CREATE TABLE model_events (
    id INTEGER PRIMARY KEY,
    model INTEGER NOT NULL REFERENCES models (id),
    kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 2),
    from_state INTEGER NOT NULL CHECK (from_state BETWEEN 0 AND 4),
    to_state INTEGER NOT NULL CHECK (to_state BETWEEN 0 AND 4),
    canary_percent INTEGER NOT NULL,
    forced INTEGER NOT NULL CHECK (forced IN (0, 1)),
    jobs_moved INTEGER NOT NULL,
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)), -- of an evaluation
    expires_s INTEGER NOT NULL,                       -- likewise; 0: never
    against TEXT NOT NULL,
    report_hash TEXT NOT NULL, -- artifact; '': none
    actor TEXT NOT NULL,
    evidence TEXT NOT NULL,
    at_s INTEGER NOT NULL,
    digest BLOB NOT NULL -- SHA-256 over the event
) STRICT;

CREATE INDEX model_events_by_model ON model_events (model, id);

-- Jobs that ask for whatever answers for their tier, not for the version that they name.
ALTER TABLE jobs ADD COLUMN follows INTEGER NOT NULL DEFAULT 0 CHECK (follows IN (0, 1));
CREATE INDEX jobs_following ON jobs (id) WHERE state = 0 AND follows = 1;
-- A job that moves takes along what audits it.
CREATE INDEX job_specs_auditing ON job_specs (audit_key, suite) WHERE audit_key IS NOT NULL;
