-- Parts of scores that others publish (NAVSIM's EPDMS). NULL: driven before they were measured. Digests leave them out there.
ALTER TABLE outcomes ADD COLUMN lane_keeping REAL;
ALTER TABLE outcomes ADD COLUMN traffic_light REAL;
UPDATE partial_outcomes SET outcome =
    replace(outcome, '"total_cost":', '"lane_keeping":null,"traffic_light":null,"total_cost":');
