-- Questions are found again under the key that they were asked by, and events say where in the row of outcomes they lie.

-- Of a job that moved to another version: the key that it was submitted under. NULL: the one that it has.
ALTER TABLE job_specs ADD COLUMN asked_key TEXT;
CREATE INDEX job_specs_asked ON job_specs (asked_key, suite) WHERE asked_key IS NOT NULL;

-- The last outcome that the store had when it happened; 0: not known.
ALTER TABLE model_events ADD COLUMN after_outcome INTEGER NOT NULL DEFAULT 0;
