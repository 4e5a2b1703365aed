-- What a store decided about the student's trust: slices frozen to the teacher, thawed again, the floor of audits.

-- Never changed. Kinds are those of enum trust_event_kind. A freeze holds until a thaw names it.
CREATE TABLE trust_events (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 2),
    student_hash TEXT NOT NULL, -- '': a floor
    student_sampler TEXT NOT NULL, -- behind the conditioning of a job's: 'euler2/bf16'
    teacher_hash TEXT NOT NULL, -- who answers instead
    teacher_sampler TEXT NOT NULL,
    weather TEXT NOT NULL, -- the slice: scenarios that have all of these values; '': any
    light TEXT NOT NULL,
    road TEXT NOT NULL,
    geography TEXT NOT NULL,
    actor TEXT NOT NULL,
    scenario_type TEXT NOT NULL,
    safety_critical INTEGER NOT NULL CHECK (safety_critical IN (0, 1)), -- these alone
    freeze_event INTEGER NOT NULL, -- of a thaw: which; else 0
    evaluation INTEGER NOT NULL, -- of a thaw: the event of models that passed; 0: it was forced
    forced INTEGER NOT NULL CHECK (forced IN (0, 1)), -- nobody asked for evidence
    jobs INTEGER NOT NULL, -- audited, that were judged
    disagreed INTEGER NOT NULL, -- of these
    agreement_low REAL NOT NULL, -- interval of their agreement
    agreement_high REAL NOT NULL,
    sounded_at INTEGER NOT NULL, -- the outcome that it began at; 0: none
    policy_hash TEXT NOT NULL, -- SHA-256 of the policy's file; '': the defaults, or none
    audit_rate REAL NOT NULL, -- of a floor
    audit_rate_safety_critical REAL NOT NULL,
    actor_name TEXT NOT NULL, -- who decided
    evidence TEXT NOT NULL,
    at_s INTEGER NOT NULL, -- wall clock, for people
    after_outcome INTEGER NOT NULL, -- the last one that there was
    digest BLOB NOT NULL -- SHA-256 over the event
) STRICT;

CREATE INDEX trust_events_thawing ON trust_events (freeze_event) WHERE kind = 1;
CREATE INDEX trust_events_by_kind ON trust_events (kind, id);

-- The freeze that concerns a job: it has moved to the teacher, or, of a student's, it was on its way when the freeze came.
ALTER TABLE jobs ADD COLUMN freeze_event INTEGER REFERENCES trust_events (id);
CREATE INDEX jobs_frozen ON jobs (freeze_event, id) WHERE freeze_event IS NOT NULL;
