-- SHA-256 of the rig whose sensors the planner is shown (schemas/rig/rig.h); '': the built-in one, of which all jobs were before.
ALTER TABLE job_specs ADD COLUMN rig TEXT NOT NULL DEFAULT '';
