-- Costs of the controls challenge, of outcomes whose world was tinyphysics. Digests leave them out elsewhere.
ALTER TABLE outcomes ADD COLUMN lataccel_cost REAL;
ALTER TABLE outcomes ADD COLUMN jerk_cost REAL;
ALTER TABLE outcomes ADD COLUMN total_cost REAL;
UPDATE partial_outcomes SET outcome = json_insert(outcome, '$.metrics.lataccel_cost', NULL,
    '$.metrics.jerk_cost', NULL, '$.metrics.total_cost', NULL) WHERE json_valid(outcome)
    AND json_type(outcome, '$.metrics') = 'object';
