-- A fifth verdict: invalid, neither pass nor fail. A column's CHECK cannot be changed, so the table is
-- written again; ids, digests and what refers to them stay as they are.

ALTER TABLE suites ADD COLUMN rollouts_invalid INTEGER NOT NULL DEFAULT 0;

CREATE TABLE outcomes_judged (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL REFERENCES jobs (id),
    epoch INTEGER NOT NULL,
    suite INTEGER NOT NULL REFERENCES suites (id),
    context INTEGER NOT NULL REFERENCES contexts (id),
    scenario_id TEXT,
    scenario_hash TEXT,
    seed INTEGER,
    branch_id TEXT NOT NULL,
    verdict INTEGER NOT NULL CHECK (verdict BETWEEN 0 AND 4),
    reasons INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    prefix_ticks INTEGER NOT NULL,
    metres_mm INTEGER NOT NULL,
    device_ns INTEGER NOT NULL,
    trace_hash TEXT NOT NULL,
    artifact_hash TEXT NOT NULL,
    weather TEXT NOT NULL,
    light TEXT NOT NULL,
    road TEXT NOT NULL,
    geography TEXT NOT NULL,
    actor TEXT NOT NULL,
    scenario_type TEXT NOT NULL,
    safety_critical INTEGER NOT NULL,
    error TEXT NOT NULL,
    no_at_fault_collision REAL,
    drivable_area REAL,
    driving_direction REAL,
    making_progress REAL,
    progress REAL,
    ttc REAL,
    speed_limit REAL,
    comfort REAL,
    score REAL,
    min_ttc_s REAL,
    min_distance_m REAL,
    impact_speed_mps REAL,
    progress_m REAL,
    distance_m REAL,
    speed_max_mps REAL,
    accel_min_mps2 REAL,
    jerk_max_mps3 REAL,
    intervention_count INTEGER NOT NULL,
    collision_count INTEGER NOT NULL,
    collision_tick INTEGER, -- NULL: no contact
    collision_agent INTEGER NOT NULL,
    collision_kind INTEGER NOT NULL,
    at_fault INTEGER NOT NULL,
    goal_reached INTEGER NOT NULL,
    mflop INTEGER NOT NULL DEFAULT 0,
    health_check TEXT, -- what flagged it or makes it invalid; NULL: nothing
    health_tick INTEGER,
    health_value REAL, -- NULL: not a number
    health_threshold REAL,
    evidence_hash TEXT, -- artifact: PNG of the flagged frame
    digest BLOB -- SHA-256 over the outcome; NULL: stored before there were digests
) STRICT;

INSERT INTO outcomes_judged (
    id, job, epoch, suite, context, scenario_id, scenario_hash, seed, branch_id, verdict, reasons,
    ticks, prefix_ticks, metres_mm, device_ns, trace_hash, artifact_hash, weather, light, road,
    geography, actor, scenario_type, safety_critical, error, no_at_fault_collision, drivable_area,
    driving_direction, making_progress, progress, ttc, speed_limit, comfort, score, min_ttc_s,
    min_distance_m, impact_speed_mps, progress_m, distance_m, speed_max_mps, accel_min_mps2,
    jerk_max_mps3, intervention_count, collision_count, collision_tick, collision_agent,
    collision_kind, at_fault, goal_reached, mflop, health_check, health_tick, health_value,
    health_threshold, evidence_hash, digest
) SELECT
    id, job, epoch, suite, context, scenario_id, scenario_hash, seed, branch_id, verdict, reasons,
    ticks, prefix_ticks, metres_mm, device_ns, trace_hash, artifact_hash, weather, light, road,
    geography, actor, scenario_type, safety_critical, error, no_at_fault_collision, drivable_area,
    driving_direction, making_progress, progress, ttc, speed_limit, comfort, score, min_ttc_s,
    min_distance_m, impact_speed_mps, progress_m, distance_m, speed_max_mps, accel_min_mps2,
    jerk_max_mps3, intervention_count, collision_count, collision_tick, collision_agent,
    collision_kind, at_fault, goal_reached, mflop, health_check, health_tick, health_value,
    health_threshold, evidence_hash, digest
FROM outcomes;
DROP TABLE outcomes;
ALTER TABLE outcomes_judged RENAME TO outcomes;

CREATE INDEX outcomes_by_job ON outcomes (job);
CREATE INDEX outcomes_by_suite ON outcomes (suite);
CREATE INDEX outcomes_by_own_scenario ON outcomes (scenario_id) WHERE scenario_id IS NOT NULL;
CREATE INDEX outcomes_by_verdict ON outcomes (verdict);
CREATE INDEX outcomes_by_suite_verdict ON outcomes (suite, verdict);
