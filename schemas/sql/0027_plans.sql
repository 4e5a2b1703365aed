-- Plans of planners that answer with trajectories (NAVSIM's extended comfort and second stage). NULL: driven before they were
-- measured, or without plans. Digests leave them out there.
ALTER TABLE outcomes ADD COLUMN extended_comfort REAL;
ALTER TABLE outcomes ADD COLUMN stage_distance_m REAL;
ALTER TABLE outcomes ADD COLUMN stage_epdms REAL;
UPDATE partial_outcomes SET outcome = replace(outcome, '"intervention_count":',
    '"extended_comfort":null,"stage_distance_m":null,"stage_epdms":null,"intervention_count":');
