-- Outcomes say what their planner was shown, so that planners that are given more are not mixed with
-- those that perceive. Older outcomes say nothing; digests leave empty members out and still hold.
ALTER TABLE outcomes ADD COLUMN given TEXT NOT NULL DEFAULT '';
UPDATE partial_outcomes SET outcome = json_insert(outcome, '$.given', '') WHERE json_valid(outcome);
