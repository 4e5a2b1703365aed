-- Jobs of an evaluation: no freeze of their student concerns them, for they are the evidence that a thaw asks for.

ALTER TABLE jobs ADD COLUMN evaluates INTEGER NOT NULL DEFAULT 0 CHECK (evaluates IN (0, 1));
