-- Maps of 16 KiB or more that stood in bodies of scenarios, each once.
CREATE TABLE maps (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE, -- SHA-256 of its text
    body BLOB NOT NULL
) STRICT;

-- The map that belongs into a body in place of the four bytes "null" from byte map_at on. NULL: the body is whole.
ALTER TABLE scenarios ADD COLUMN map INTEGER REFERENCES maps (id);
ALTER TABLE scenarios ADD COLUMN map_at INTEGER CHECK ((map IS NULL) = (map_at IS NULL));
