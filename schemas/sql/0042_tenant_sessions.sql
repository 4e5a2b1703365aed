-- Sessions at the wheel that drivers of a tenant hold at once, at one server. Who sits is known to that server alone.
ALTER TABLE tenants ADD COLUMN sessions_max INTEGER NOT NULL DEFAULT 0 CHECK (sessions_max >= 0); -- 0: as many as the server lets any
