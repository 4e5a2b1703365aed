-- What a job is driven for, if not for its verdict (schemas/job.h): '': for that, as all jobs were before. Such a job is marked as an
-- audit is (jobs.audit), so that it is in the same counters and in no rate.
ALTER TABLE job_specs ADD COLUMN makes TEXT NOT NULL DEFAULT '';
