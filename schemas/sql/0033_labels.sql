-- What people say of suites (store/api/labels.h).
CREATE TABLE labels (
    id INTEGER PRIMARY KEY,
    suite INTEGER NOT NULL REFERENCES suites (id),
    kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 4), -- enum label_kind
    text TEXT NOT NULL,
    at_s INTEGER NOT NULL, -- wall clock, for people
    UNIQUE (suite, kind, text)
) STRICT;

CREATE INDEX labels_by_kind ON labels (kind, id);
