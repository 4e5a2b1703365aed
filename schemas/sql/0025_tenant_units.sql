-- What a tenant may have leased at once, in units of device time: what claims count by (store/turns/turns.h).
ALTER TABLE tenants ADD COLUMN units_leased_max INTEGER NOT NULL DEFAULT 0 CHECK (units_leased_max >= 0); -- 0: any number
CREATE INDEX tenants_limited ON tenants (id) WHERE units_leased_max > 0;

-- Units of a tenant's jobs that were ever leased, and of those among them whose lease has ended. Two sums, because claims
-- write the first one and what ends leases the second: neither waits for the other's row. Shadows' jobs are in neither.
CREATE TABLE tenant_units (
    tenant INTEGER NOT NULL REFERENCES tenants (id),
    ended INTEGER NOT NULL CHECK (ended IN (0, 1)),
    units INTEGER NOT NULL CHECK (units >= 0),
    PRIMARY KEY (tenant, ended)
) STRICT, WITHOUT ROWID;

INSERT INTO tenant_units (tenant, ended, units)
    SELECT u.tenant, 0, SUM(j.rollouts * CASE c.tier WHEN 3 THEN 512 WHEN 2 THEN 128 ELSE 1 END) FROM jobs j
    JOIN suites u ON u.id = j.suite JOIN job_specs s ON s.job = j.id JOIN contexts c ON c.id = s.context
    WHERE j.state = 1 AND j.shadow IS NULL AND u.tenant IS NOT NULL GROUP BY u.tenant;
