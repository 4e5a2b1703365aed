-- Authority and provenance, in rows: when an attempt began, which token holds a worker, and who has driven what is kept of a job.

-- When the attempt was claimed: nanoseconds since 1970 by the store's own clock (the database's), in the statement that leases. It
-- bills no more than has passed since. NULL: claimed before this was kept, so nothing is known to have passed.
ALTER TABLE jobs ADD COLUMN claimed_ns INTEGER;
ALTER TABLE attempts ADD COLUMN claimed_ns INTEGER;

-- Id of the token that holds a worker, of its rotation's first; '' for one that came without or with an administrator's. NULL: known
-- from before, by the token's name (holder). The first token of that name that claims for it is written here, and holds it from then on.
ALTER TABLE workers ADD COLUMN token TEXT;
UPDATE workers SET token = '' WHERE holder = '';

-- Whose worker drove it: the one of the attempt with that epoch.
ALTER TABLE partial_outcomes ADD COLUMN worker INTEGER REFERENCES workers (id);
UPDATE partial_outcomes SET worker = COALESCE(
    (SELECT a.worker FROM attempts a WHERE a.job = partial_outcomes.job AND a.epoch = partial_outcomes.epoch),
    (SELECT j.worker FROM jobs j WHERE j.id = partial_outcomes.job AND j.epoch = partial_outcomes.epoch));

-- workers.openings counts fifths of a lease from here on: those in which the store was open, since it was last opened with a word from
-- the worker, and heard nothing from it. What it counted before, openings of a fifth or more, is the same or less.

-- Raised by each change of a tenant's settings, so that one can be asked for that nobody has come before.
ALTER TABLE tenants ADD COLUMN version INTEGER NOT NULL DEFAULT 1 CHECK (version >= 1);
