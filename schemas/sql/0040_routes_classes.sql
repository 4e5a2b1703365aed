-- Reason for which a job's tier answers (schemas/outcome.h, enum route_reason; 0: none is kept) with its two figures.
ALTER TABLE job_specs ADD COLUMN route_reason INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_specs ADD COLUMN route_own INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_specs ADD COLUMN route_other INTEGER NOT NULL DEFAULT 0;
