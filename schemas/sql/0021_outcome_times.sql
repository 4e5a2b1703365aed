-- When outcomes came: milliseconds since 1970 by the store's own clock, in the transaction that took them, a partial one
-- included, which keeps its time when its job ends. NULL: stored before. Not part of digests: no result is decided by it.
ALTER TABLE outcomes ADD COLUMN at_ms INTEGER;
ALTER TABLE partial_outcomes ADD COLUMN at_ms INTEGER;

-- Frame pages of the outcome's world in use at the fullest, in percent; 0: a world without any, or stored before.
ALTER TABLE outcomes ADD COLUMN pages_used_percent INTEGER NOT NULL DEFAULT 0;
