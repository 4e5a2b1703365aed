-- Fills an empty PostgreSQL store with made-up outcomes, to measure readers of many.
--
--   swerve status --store URL                                    makes the tables
--   psql URL -v suites=20 -v jobs=12500 -f scripts/fleet/fill_outcomes.sql
--
-- Each suite has so many jobs of the student, each with a main line and three branches, over 1,000
-- scenarios; one job in twenty is audited by the teacher. Verdicts, metrics and costs are functions
-- of the numbers, so that two fillings are equal. Each job names an artifact, but there are none, and
-- no scenario bodies.
\set ON_ERROR_STOP on
SET synchronous_commit = off;
SET session_replication_role = replica; -- references hold by construction
BEGIN;
INSERT INTO pools (id, name) VALUES (1, 'bulk');
INSERT INTO workers (id, name, pool, device) VALUES (1, 'w', 1, 'cpu');
INSERT INTO contexts (id, planner, planner_hash, pool, tier, model_hash, sampler, backend, revision)
  SELECT tier - 1, 'builtin:reference', 'p', 'bulk', tier, repeat(CAST(tier AS TEXT), 64), '', 'cpu',
         'r' FROM generate_series(2, 3) tier;
INSERT INTO suites (id, name, weight, submitted_s)
  SELECT n, 'suite-' || n, 1, 0 FROM generate_series(1, :suites) n;
-- Ids: the student's jobs first, then the teacher's.
CREATE TEMP TABLE made AS
  SELECT n + 1 AS id, n / :jobs + 1 AS suite, 0 AS audit, n AS student
    FROM generate_series(0, CAST(:suites AS BIGINT) * :jobs - 1) n
  UNION ALL
  SELECT CAST(:suites AS BIGINT) * :jobs + n / 20 + 1, n / :jobs + 1, 1, n
    FROM generate_series(0, CAST(:suites AS BIGINT) * :jobs - 1, 20) n;
INSERT INTO jobs (id, suite, pool, state, priority, rollouts, epoch, attempts, worker, audit)
  SELECT id, suite, 1, 2, 0, 4, 1, 1, 1, audit FROM made;
INSERT INTO job_specs (job, suite, key, scenario_id, context, seed, attempts_max, audit_key)
  SELECT id, suite, audit || md5('key' || student) || md5('yek' || student),
         'scenario-' || student % 1000, audit + 1, student / 1000, 3,
         CASE audit WHEN 1 THEN 0 || md5('key' || student) || md5('yek' || student) END FROM made;
INSERT INTO attempts (job, epoch, worker, pool, device, tier, ending, device_ns, metres_mm,
                      price_uusd_per_hour, cost_uusd)
  SELECT id, 1, 1, 1, 'cpu', audit + 2, 0, 4000000, 800000, 0, 0 FROM made;
INSERT INTO outcomes (job, epoch, suite, context, branch_id, verdict, reasons, ticks, prefix_ticks,
                      metres_mm, device_ns, trace_hash, artifact_hash, weather, light, road,
                      geography, actor, scenario_type, safety_critical, error, no_at_fault_collision,
                      drivable_area, driving_direction, making_progress, progress, ttc, speed_limit,
                      comfort, score, min_ttc_s, min_distance_m, impact_speed_mps, progress_m,
                      distance_m, speed_max_mps, accel_min_mps2, jerk_max_mps3, intervention_count,
                      collision_count, collision_agent, collision_kind, at_fault, goal_reached)
  SELECT m.id, 1, m.suite, m.audit + 1, CASE b WHEN 0 THEN '' ELSE 'branch-' || b END, v.fails,
         v.fails, 100, CASE b WHEN 0 THEN 0 ELSE 20 END, 200000, 1000000,
         md5('trace' || m.id || b) || md5('ecart' || m.id || b),
         md5('artifact' || m.id) || md5('tcafitra' || m.id),
         (ARRAY['clear', 'rain', 'fog'])[1 + m.student % 3],
         (ARRAY['day', 'night'])[1 + m.student % 2],
         (ARRAY['urban', 'motorway', 'rural'])[1 + m.student % 5 % 3], 'europe', 'car',
         'type-' || m.student % 8, m.student % 10 / 9, '', 1.0 - v.fails, 1.0, 1.0, 1.0, 0.9, 1.0,
         1.0, 1.0, 0.9 * (1.0 - v.fails), 2.5, 3.0 * (1.0 - v.fails), 0.0, 200.0, 200.0, 13.9, -2.5,
         3.1, 0, v.fails, -1, 0, v.fails, 1
    FROM made m CROSS JOIN generate_series(0, 3) b
    CROSS JOIN LATERAL (SELECT CASE WHEN (m.student * 7 + b + m.audit) % 50 = 0 THEN 1 ELSE 0 END
                        AS fails) v ORDER BY m.student, m.audit, b;
INSERT INTO suite_planners (suite, planner) SELECT id, 'builtin:reference' FROM suites;
UPDATE suites u SET jobs_done = n.jobs, rollouts_pass = n.pass, rollouts_fail = n.fail,
       rollouts_total = n.pass + n.fail, rollouts_audit = n.audit, ticks = 0, metres_mm = n.mm
  FROM (SELECT o.suite, COUNT(DISTINCT o.job) AS jobs, SUM(o.metres_mm) AS mm,
               COUNT(*) FILTER (WHERE m.audit = 0 AND verdict = 0) AS pass,
               COUNT(*) FILTER (WHERE m.audit = 0 AND verdict = 1) AS fail,
               COUNT(*) FILTER (WHERE m.audit = 1) AS audit
          FROM outcomes o JOIN made m ON m.id = o.job GROUP BY o.suite) n WHERE n.suite = u.id;
INSERT INTO pool_jobs (pool, state, jobs) SELECT 1, 2, COUNT(*) FROM made;
SELECT setval(pg_get_serial_sequence('jobs', 'id'), MAX(id)) FROM jobs;
SELECT setval(pg_get_serial_sequence('suites', 'id'), MAX(id)) FROM suites;
COMMIT;
ANALYZE;
SELECT COUNT(*) AS outcomes, pg_size_pretty(pg_database_size(current_database())) AS size
  FROM outcomes;
