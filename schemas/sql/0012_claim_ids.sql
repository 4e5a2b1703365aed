-- A worker counts its claims, so that one that is repeated gets the leases that it made.
ALTER TABLE workers ADD COLUMN claim_id INTEGER NOT NULL DEFAULT 0; -- of its last claim that leased jobs
ALTER TABLE jobs ADD COLUMN claim_id INTEGER NOT NULL DEFAULT 0; -- the worker's claim that leased it last
