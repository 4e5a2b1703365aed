-- Goldens: drives of a learned world, recorded once, that answer other planners. The set's list and each recording of it
-- are artifacts, which stay as long as the set does.
CREATE TABLE goldens (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL UNIQUE, -- of the set's list: what jobs and outcomes name
    model_hash TEXT NOT NULL, -- of the world that generated them
    sampler TEXT NOT NULL, -- likewise
    recordings INTEGER NOT NULL CHECK (recordings >= 1),
    bytes INTEGER NOT NULL CHECK (bytes >= 0), -- of the recordings, as they are sent
    made_s INTEGER NOT NULL, -- wall clock, for people
    digest BLOB NOT NULL -- SHA-256 over the set
) STRICT;

-- Two recordings may be the same: seeds that change nothing.
CREATE TABLE golden_artifacts (
    golden INTEGER NOT NULL REFERENCES goldens (id),
    hash TEXT NOT NULL,
    PRIMARY KEY (golden, hash)
) STRICT, WITHOUT ROWID;
