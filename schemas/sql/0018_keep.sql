-- Who asked a server for what, with which token: one row for each call that orders something (calls of workers are
-- attempts). Never changed but for `code`, which a call gets when it has been answered. The oldest rows go when there are
-- more than AUDIT_ROWS_MAX.
CREATE TABLE audit_log (
    id INTEGER PRIMARY KEY,
    at_s INTEGER NOT NULL, -- wall clock
    name TEXT NOT NULL, -- the token's, never its secret
    role TEXT NOT NULL,
    action TEXT NOT NULL, -- method and route: 'POST /v1/suites/*/cancel'
    subject TEXT NOT NULL, -- what stood for the stars
    code INTEGER NOT NULL CHECK (code = 0 OR code BETWEEN 100 AND 599) -- of HTTP; 0: begun, and nobody was answered
) STRICT;
