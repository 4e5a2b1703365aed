-- Digests that show an edit (store/sqlite/digest.h). Outcomes that are older than this have none, and are
-- not counted in their suite's.
ALTER TABLE outcomes ADD COLUMN digest BLOB; -- SHA-256 over the outcome; NULL: stored before
ALTER TABLE suites ADD COLUMN outcomes_digested INTEGER NOT NULL DEFAULT 0;
ALTER TABLE suites ADD COLUMN outcomes_digest BLOB NOT NULL
    DEFAULT x'0000000000000000000000000000000000000000000000000000000000000000'; -- over all of them
