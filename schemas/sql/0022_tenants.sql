-- Tenants: parties that share a store. Claims are fair between them by weight, and each has limits of its own.
CREATE TABLE tenants (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    weight INTEGER NOT NULL CHECK (weight BETWEEN 1 AND 100),
    jobs_queued_max INTEGER NOT NULL CHECK (jobs_queued_max >= 0), -- 0: any number; so the next two
    uusd_day_max INTEGER NOT NULL CHECK (uusd_day_max >= 0),
    uusd_month_max INTEGER NOT NULL CHECK (uusd_month_max >= 0)
) STRICT;

-- Whose a suite is, from its first submission on. NULL: nobody's.
ALTER TABLE suites ADD COLUMN tenant INTEGER REFERENCES tenants (id);
CREATE INDEX suites_of_tenant ON suites (tenant) WHERE tenant IS NOT NULL;

-- What attempts at jobs of a tenant's suites cost, by the day on which they were booked; those of shadows are not in it.
CREATE TABLE tenant_days (
    tenant INTEGER NOT NULL REFERENCES tenants (id),
    day INTEGER NOT NULL, -- since 1970-01-01, UTC
    cost_uusd INTEGER NOT NULL,
    PRIMARY KEY (tenant, day)
) STRICT, WITHOUT ROWID;
