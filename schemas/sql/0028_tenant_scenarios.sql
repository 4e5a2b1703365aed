-- Bytes of scenarios that a tenant has brought: of bodies that the store did not have. What is there already is nobody's.
ALTER TABLE tenants ADD COLUMN scenario_bytes_max INTEGER NOT NULL DEFAULT 0 CHECK (scenario_bytes_max >= 0); -- 0: any number
ALTER TABLE scenarios ADD COLUMN tenant INTEGER REFERENCES tenants (id); -- who brought it; NULL: nobody in particular

-- Apart from the tenants' own rows, which claims for limited ones hold (tenants_hold).
CREATE TABLE tenant_scenarios (
    tenant INTEGER PRIMARY KEY REFERENCES tenants (id),
    bytes INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;
