/*
 * Records to and from rows, by the tables of columns.h, and the names that are stored once and
 * referred to by number.
 */
#ifndef SWERVE_STORE_SQLITE_RECORDS_H
#define SWERVE_STORE_SQLITE_RECORDS_H

#include "base/status.h"
#include "schemas/outcome.h"
#include "store/api/digest.h"
#include "store/api/store.h"
#include "store/door/door.h"
#include "store/sql/sqlite_db.h"
#include "store/statements/columns.h"

#include <stdint.h>

/* Ids of names, inserted where they are new. An empty prefix is 0. */
enum status record_pool_id(struct db *db, const char *name, int64_t *id, struct error *error);
enum status record_prefix_id(struct db *db, const char *key, int64_t *id, struct error *error);
/* Of what jobs have alike (RECORD_CONTEXT): contexts.id stands for all of it. */
enum status record_context_id(struct db *db, const struct job_spec *spec, int64_t *id,
                              struct error *error);
/* The id that a statement with one text parameter finds; 0: none. */
enum status record_find(struct db *db, enum statement statement, const char *text, int64_t *id,
                        struct error *error);
/* The suite of that id, or NOT_FOUND. */
enum status record_find_suite(struct db *db, const char *suite_id, int64_t *id,
                              struct error *error);

/* Takes the columns of the row that the record's mark stands for (store/statements/columns.h). */
void record_read(struct query *query, enum record kind, void *record);
/* The same of up to `max` rows, into records of `bytes` each; so many there were. */
uint32_t record_read_rows(struct query *query, enum record kind, size_t bytes, void *out,
                          uint32_t max);
/* Takes a column that holds a digest; zeros where it holds none. */
void record_digest_take(struct query *query, struct digest *out);
/* Binds a parameter for each column that is written. */
void record_write(struct query *query, enum record kind, const void *record);
void record_job_read(struct query *query, struct store_job *job);
/* The spec of a job, zeros where there is none; *found (may be NULL): there is one. */
enum status record_spec_get(struct db *db, int64_t job_id, struct job_spec *spec, bool *found,
                            struct error *error);

/* Place that an outcome's row belongs to; its own ids are not looked at. */
struct record_outcome_place {
    int64_t job_id;
    int64_t epoch;
    int64_t suite;
    int64_t worker;              /* who holds the job: the author of a partial outcome */
    int64_t context;             /* of the job */
    const struct job_spec *spec; /* of the job */
    int64_t at_ms;               /* now, by the store's clock */
    int64_t device_ns;           /* that it is taken to have cost */
    int64_t floor;               /* ids up to here were given out */
    const struct slices *slices; /* of its rollout; NULL: as the outcome says */
    bool evidence;               /* stored as flagged, whatever its verdict says */
    bool partials;               /* the job may have partial outcomes */
};

/* A partial outcome of the same rollout lends its time. Also adds the outcome to the digest of its
 * suite's outcomes, *suite_digest. */
enum status record_outcome_insert(struct db *db, const struct record_outcome_place *place,
                                  const struct outcome *outcome, struct digest *suite_digest,
                                  struct error *error);

/* Partial outcomes: those of a job that goes on. The first one of a rollout stays, unless it is of
 * another token's worker or a checkpoint. */
enum status record_partial_insert(struct db *db, const struct record_outcome_place *place,
                                  const struct outcome *outcome, struct error *error);
/* Reads (job, branch_id, epoch, outcome, digest, at_ms) of a job with this spec. STATUS_STORE: it
 * is not what was stored. */
enum status record_partial_read(struct query *query, const struct job_spec *spec,
                                struct outcome *outcome, struct error *error);
/* Branches and facts of the scenarios that were asked for last, which never change. Writer thread.
 */
enum { RECORD_SCENARIOS_KNOWN = 256 };
struct record_scenario {
    char scenario_hash[SHA256_HEX_BYTES];
    bool there; /* its body is in the store */
    uint32_t count;
    char (*names)[LIMIT_ID_BYTES]; /* owned; NULL: they do not all have names of their own */
    bool decoded;                  /* what follows is known */
    struct slices *of_branch;      /* owned, for the facts; NULL: no branch has its own */
    struct door_facts facts;
};
struct record_scenarios {
    struct record_scenario rows[RECORD_SCENARIOS_KNOWN];
    uint32_t next;
};
void record_scenarios_finish(struct record_scenarios *scenarios);
/* Those of the job's scenario, borrowed until the next call. */
enum status record_scenarios_find(struct db *db, struct record_scenarios *scenarios,
                                  const struct job_spec *spec, struct door_scenario *out,
                                  struct error *error);

/* Adds a scenario, its long map once; tenant 0: nobody's. */
enum status record_scenario_insert(struct db *db, const char *hash, const char *body, size_t bytes,
                                   int64_t tenant, struct error *error);

/* The whole body from three columns of a row, its own text, map_at and the map's: malloc'ed, with a
 * byte 0 behind it. NULL: out of memory. What does not fit together gives another text. */
char *record_scenario_body(const struct query *query, int column, size_t *bytes);
/* A job keeps no more partial outcomes than it has rollouts: CONFLICT. */
enum status record_partials_count(struct db *db, int64_t job_id, uint32_t rollout_count,
                                  struct error *error);

/* Those of a job that comes to this state: one that has ended keeps none. */
enum status record_partials_drop(struct db *db, int64_t job_id, enum job_state state,
                                 struct error *error);

#endif
