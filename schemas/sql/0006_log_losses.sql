-- Commits that a damaged write-ahead log took away, one row for each opening that found some: `lost` of them
-- had been acknowledged, the last one of `commits` may have been.
CREATE TABLE log_losses (
    id INTEGER PRIMARY KEY,
    frames INTEGER NOT NULL,
    commits INTEGER NOT NULL,
    lost INTEGER NOT NULL
) STRICT;
