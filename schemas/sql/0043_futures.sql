-- How a drive might have ended, of outcomes of jobs that make futures (struct outcome_futures of schemas/outcome.h). 0 each: of another job.
ALTER TABLE outcomes ADD COLUMN futures_state INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN futures_tick INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN futures_draws INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN futures_idm_passed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN futures_idm_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN futures_drivers_passed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN futures_drivers_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN futures_constant_passed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN futures_constant_failed INTEGER NOT NULL DEFAULT 0;
