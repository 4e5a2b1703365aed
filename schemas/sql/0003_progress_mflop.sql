-- An attempt that vanishes is charged what it had reported: also what it had computed.
ALTER TABLE jobs ADD COLUMN progress_mflop INTEGER NOT NULL DEFAULT 0;
