-- Who answers in place of a flagged job, as its submitter fixed it: pool, tier, model and sampler of this context. NULL: nobody
-- was named, so the store's promoted teacher, where there is one; of jobs of earlier versions nothing is known.
ALTER TABLE job_specs ADD COLUMN escalation INTEGER REFERENCES contexts (id);
