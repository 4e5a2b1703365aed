-- Orders to drop what workers reported and to drive it again (store/sql/redrive.c).
CREATE TABLE redrives (
    id INTEGER PRIMARY KEY,
    holder TEXT NOT NULL, -- of the workers' token; '': not by token
    worker TEXT NOT NULL, -- its name; '': not by name
    jobs INTEGER NOT NULL CHECK (jobs >= 0),
    -- The greatest id that an outcome had had: none is given out twice, since who follows outcomes
    -- asks for those above the last one that was seen.
    last_outcome INTEGER NOT NULL CHECK (last_outcome >= 0),
    at_s INTEGER NOT NULL -- seconds since 1970
) STRICT;

-- Who took an outcome over, when it is dropped.
CREATE INDEX memo_outcomes_by_outcome ON memo_outcomes (outcome);
