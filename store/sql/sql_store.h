/*
 * The embedded store's inside, shared by its files: sql_store.c (open, close, who waits),
 * submit.c (submit, cancel), lifecycle.c (complete), claim.c (who gets what next), lease.c
 * (workers), ledger.c (money), redrive.c (results that are
 * dropped), sql_read.c (reading).
 *
 * Threads: functions named *_op run on the writer thread inside its transaction; they alone touch
 * the members marked "writer". Readers borrow one of a few read-only connections of their lane.
 */
#ifndef SWERVE_STORE_SQLITE_SQLITE_STORE_H
#define SWERVE_STORE_SQLITE_SQLITE_STORE_H

#include "store/api/store.h"
#include "store/artifacts/artifacts.h"
#include "store/sql/claim.h"
#include "store/sql/freezes.h"
#include "store/sql/group_commit.h"
#include "store/sql/lease.h"
#include "store/sql/mains.h"
#include "store/sql/models.h"
#include "store/sql/ownership.h"
#include "store/sql/records.h"
#include "store/sql/tally.h"
#include "store/turns/handback.h"
#include "store/turns/turns.h"

#include <pthread.h>

enum {
    STORE_READERS = 2, /* of each lane */
    SQL_LOOKS = 8,     /* pools whose waiting jobs are remembered; others take turns */
    /* A database of others may be away so long, and the pauses between two tries. */
    SQL_STORE_AWAY_MS_MAX = 30000,
    SQL_STORE_AWAY_PAUSE_MS = 20,
};

/* Who waits for whose reads: the lanes have nothing in common. */
enum sql_lane { SQL_LANE_WORK = 0, SQL_LANE_READ, SQL_LANE_COUNT };

/* The same store as callers of one lane see it. */
struct sql_backend {
    struct store store; /* first */
    struct sql_store *owner;
    enum sql_lane lane;
};

/* Connections that only read, opened when they are first needed. */
struct sql_readers {
    struct db *db[STORE_READERS];
    bool busy[STORE_READERS];
};

/* A database that the store is in, and what is particular about it. */
struct store_medium {
    const char *name;
    /* Opens the writer's connection on a whole store (members db, path, artifacts). */
    enum status (*open)(struct sql_store *store, void *context, struct error *error);
    enum status (*open_reader)(struct sql_store *store, struct db **out, struct error *error);
    /* OK: what is written goes where everybody will look for it. NULL: not asked. */
    enum status (*intact)(void *store, int log_pages, struct error *error);
    /* Closes the writer's connection, and gives back what open took. After a failed open too. */
    void (*finish)(struct sql_store *store);
    /* Changes the table of calls. NULL: it stays as it is. */
    void (*adapt)(struct store_ops *ops);
    /* Other processes write too: their part in leases. NULL: this process alone writes. */
    const struct lease_peers *peers;
};

struct sql_store {
    struct sql_backend backends[SQL_LANE_COUNT]; /* first */
    const struct store_medium *medium;
    void *medium_context;
    struct store_ops ops;          /* of the backends */
    const struct store_ops *plain; /* before the medium changed them */
    const struct clock *clock;
    const struct logger *logger;
    enum store_intent intent;
    int64_t lease_ttl_ns;
    int64_t backoff_ns;
    int64_t bill_slack_ns;
    uint32_t planner_hosts;
    char path[LIMIT_PATH_BYTES]; /* the real one */
    struct artifacts artifacts;
    struct ownership *ownership; /* of the database file */
    int64_t page_bytes;

    struct db *db; /* writer */
    struct group_commit *group;
    struct leases leases;                           /* writer */
    struct turns turns;                             /* writer */
    struct handback_look looks[SQL_LOOKS];          /* writer: of pools */
    struct handback_owed owed[HANDBACK_SUITES_MAX]; /* writer */
    struct handback_job beats[LIMIT_CLAIM_JOBS]; /* writer: held by the worker that is heard of */
    struct claim_places claim_places;            /* writer */
    struct freezes freezes;                      /* writer */
    struct record_scenarios scenarios;           /* writer */
    struct paces paces;                          /* writer */
    uint64_t bills_capped;                       /* writer: that were cut down */
    int64_t outcome_floor; /* writer: ids up to here were given out (redrive.c) */
    bool made_ready;       /* writer: this group made jobs claimable */
    bool held;             /* writer: claims left jobs to a tenant's limit */

    pthread_mutex_t mutex; /* guards everything below */
    pthread_cond_t changed;
    pthread_cond_t ready;      /* claims wait here: readers that come and go do not wake them */
    uint64_t ready_generation; /* raised whenever jobs became claimable */
    int64_t ready_ns;          /* when it was, last */
    bool closing;
    uint32_t calls; /* in progress */
    struct sql_readers readers[SQL_LANE_COUNT];
    struct mains_cache mains;
};

static inline struct sql_store *sql_store_of(struct store *store)
{
    return ((struct sql_backend *)store)->owner;
}

/* As store_sqlite_open, without a writer thread: see group_commit_create_stepped. */
enum status sql_store_open_stepped(const char *path, const struct store_config *config,
                                   struct store **out, struct error *error);
/* The store in a database. The context is the medium's, which finish gives back: on failure too,
 * but where there was no memory. */
enum status sql_store_open_medium(const struct store_medium *medium, void *context,
                                  const struct store_config *config, bool stepped,
                                  struct store **out, struct error *error);
/* Stepped only: ends the leases and backoffs that are over. */
void sql_store_tick(struct sql_store *store);

/* Brackets every call, so that close can wait for those in progress. */
enum status sql_store_enter(struct sql_store *store, struct error *error);
void sql_store_leave(struct sql_store *store);

/* enter, run on the writer thread, leave. */
enum status sql_store_write(struct sql_store *store, group_operation run, void *context,
                            struct error *error);
/* Its middle: a database that went away is waited for, and the operation repeated, which is what
 * operations are made for. */
enum status sql_store_run(struct sql_store *store, group_operation run, void *context,
                          struct error *error);

/* The same for an operation in two parts that bears others beside it: group_commit_run_beside. */
enum status sql_store_run_beside(struct sql_store *store, group_operation run,
                                 group_operation finish, bool takes, uint32_t jobs, void *context,
                                 struct error *error);
/* A pause for a database that is away. False: it stays away, or the store is being closed. */
bool sql_store_await(struct sql_store *store, int64_t until_ns);
/* Any thread: jobs may have become claimable. */
void sql_store_wake(struct sql_store *store);

/* enter and borrow a reader of the caller's lane, in a read transaction; every borrow needs its
 * return. */
enum status sql_store_read_begin(struct store *base, struct db **db, struct error *error);
void sql_store_read_end(struct sql_store *store, struct db *db);

/* sql_read.c: the same around one statement, which is begun and ended. Of rows, *count is what was
 * found unless the reading failed. */
enum status sql_read_begin(struct store *base, enum statement statement, struct query *query,
                           struct error *error);
enum status sql_read_end(struct store *base, struct query *query, struct error *error);
enum status sql_read_rows_end(struct store *base, struct query *query, uint32_t found,
                              uint32_t *count, struct error *error);

/* question.c, inside a writer's transaction. Outcomes of a completion answer what its job asks:
 * what they repeat of its spec, and of the slices of its scenario's rollouts, is equal. CONFLICT.
 */
struct door_scenario;
enum status question_check_outcomes(const struct job_completion *completion,
                                    const struct job_spec *spec,
                                    const struct door_scenario *scenario, struct error *error);
/* A job that answers for another one of its suite asks the same. */
enum status question_check_parent(struct db *db, int64_t suite, const struct job_spec *spec,
                                  struct error *error);
/* Job that an audit or a shadow's job repeats. */
struct question_audited {
    char key[SHA256_HEX_BYTES]; /* that it has now */
    /* The job, where the teacher answers it already, or one of its audits that asks the same model:
     * the same evidence does not count twice; else 0. */
    int64_t answered;
};
/* An audit job repeats a job of its own suite that is none itself (it may have moved since its
 * submitter knew it), asks the same, and asks a teacher, in that one's pool: the promoted one,
 * where there is one. */
enum status question_check_audit(struct db *db, int64_t suite, const struct job_spec *spec,
                                 bool shadow, struct question_audited *out, struct error *error);
/* Context of who answers if the job is flagged, as its spec says; *id 0: that names nobody. Where
 * the store has a promoted teacher, all but goldens escalate to that one, whoever is named. */
enum status question_escalation(struct db *db, const struct job_spec *spec, int64_t *id,
                                struct error *error);
/* Fills it in for a job that is open and of which none is known. */
enum status question_fill_escalation(struct db *db, const struct job_spec *spec, int64_t job_id,
                                     struct error *error);
/* The job that answers in place of a flagged one, by its row; *found false: there is none, *why
 * says so, or is NULL. CONFLICT: what the flag says of it is not equal. */
enum status question_successor(struct sql_store *store, const struct job_spec *job,
                               const struct job_completion *completion, struct job_spec *out,
                               bool *found, const char **why, struct error *error);
/* Queues it, and notes in the flagged job's row who it is, where that says nothing. */
enum status question_escalate(struct sql_store *store, struct tally *tally, int64_t suite,
                              const struct job_spec *job, int64_t job_id,
                              struct job_spec *successor, int64_t *successor_id,
                              struct error *error);

/* Is the artifact gone that a column of a row names? False where it names none. */
enum status question_artifact_lost(struct sql_store *store, struct query *query, int column,
                                   bool *lost, struct error *error);
/* A finished job of any suite that answers the same question and whose artifact is still there: the
 * one that drove it; 0: none. */
enum status question_known(struct sql_store *store, struct db *db, const struct job_spec *spec,
                           int64_t *job_id, struct error *error);
/* The suite's job takes the outcomes of `source` over: they are linked, and counted in the suite,
 * but for those of a shadow. The job's row and its state are the caller's. */
enum status question_take(struct tally *tally, int64_t suite, int64_t job_id, int64_t source,
                          enum ledger_kind kind, struct error *error);

/* submit.c: inside a completion's transaction, the job that takes over from one of the suite (its
 * spec's parent_job_id): the suite's own with that key, one that takes over another suite's result,
 * or a new one. */
enum status submit_successor(struct sql_store *store, struct tally *tally, int64_t suite,
                             const struct job_spec *spec, int64_t *job_id, struct error *error);

/* submit.c: the job by which a shadow drives one of a suite again, where it has a share in it; one
 * that the suite has already is not made again. */
enum status submit_shadow(struct sql_store *store, struct tally *tally,
                          const struct models_shadow *shadow, const struct job_spec *spec,
                          struct error *error);
/* .. and the end of all that are open, whose version (by its row) is a shadow no longer. */
enum status submit_shadows_end(struct sql_store *store, struct tally *tally, int64_t version,
                               struct error *error);

/* The calls of store_ops, by file. submit.c: */
enum status lifecycle_submit(struct store *base, const char *suite_id, uint32_t weight,
                             const struct job_spec *specs, uint32_t count,
                             struct store_submit_result *results, struct error *error);
enum status lifecycle_scenario_put_as(struct store *base, const char *tenant, const char *hash,
                                      const char *body, size_t bytes, struct error *error);
enum status lifecycle_submit_as(struct store *base, const char *tenant, const char *suite_id,
                                uint32_t weight, enum suite_class of_class, int64_t budget_uusd,
                                const struct job_spec *specs, uint32_t count,
                                struct store_submit_result *results, struct error *error);
enum status lifecycle_cancel(struct store *base, const char *suite_id, int64_t *count,
                             struct error *error);

/* lifecycle.c: */
enum status lifecycle_complete(struct store *base, const struct job_completion *completions,
                               uint32_t count, struct store_completion_result *results,
                               struct error *error);

/* redrive.c: */
enum status redrive_author(struct store *base, const struct store_author *author, int64_t *jobs,
                           struct error *error);
enum status redrive_count(struct store *base, int64_t *count, struct error *error);
/* At open: reads store->outcome_floor. */
enum status redrive_restart(struct sql_store *store, struct error *error);

/* claim.c: */
enum status claim_jobs(struct store *base, const struct store_worker *worker, int64_t *claim_id,
                       uint32_t max, int64_t wait_ms, struct job_lease *leases, uint32_t *count,
                       int64_t *ttl_ms, struct error *error);
void claim_claimable_wait(struct store *base, uint64_t *generation, int64_t wait_ms);

/* lease.c: */
enum status lease_heartbeat(struct store *base, const struct store_worker *worker,
                            const struct store_progress *progress, uint32_t count,
                            int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                            struct error *error);
enum status lease_awaited(struct store *base, const struct store_worker *worker, int64_t since_ms,
                          struct store_awaited *out, struct error *error);
enum status lease_worker_gone(struct store *base, const char *worker_id, struct error *error);

/* ledger.c: */
enum status ledger_rows(struct store *base, const char *suite_id, struct store_ledger_row *rows,
                        uint32_t max, uint32_t *count, struct error *error);
enum status ledger_price_set(struct store *base, const char *pool, const char *device,
                             int64_t price_uusd_per_hour, struct error *error);
enum status ledger_price_get(struct store *base, const char *pool, const char *device,
                             int64_t *price_uusd_per_hour, struct error *error);

/* sql_read.c: */
enum status sql_read_scenario(struct store *base, const char *hash, char **body, size_t *bytes,
                              struct error *error);
enum status sql_read_suite_status(struct store *base, const char *suite_id,
                                  struct store_suite_status *out, struct error *error);
enum status sql_read_suites(struct store *base, char (*ids)[LIMIT_ID_BYTES], uint32_t max,
                            uint32_t *count, struct error *error);
enum status sql_read_outcomes(struct store *base, const struct store_outcome_filter *filter,
                              struct outcome *out, uint32_t *count, struct error *error);
enum status look_outcomes_page(struct store *base, const struct store_outcome_filter *filter,
                               struct outcome *out, uint32_t *count, int64_t *next,
                               struct error *error);
enum status look_scenarios_page(struct store *base, const char *suite_id, int64_t *after,
                                store_scenario_visit *visit, void *context, struct error *error);
enum status sql_read_job(struct store *base, int64_t job_id, struct store_job *out,
                         struct error *error);
enum status sql_read_dead_jobs(struct store *base, const char *suite_id, int64_t after_id,
                               struct store_job *out, uint32_t max, uint32_t *count,
                               struct error *error);
enum status sql_read_jobs_in_state(struct store *base, const char *suite_id, const char *state,
                                   int64_t after_id, struct store_job *out, uint32_t max,
                                   uint32_t *count, struct error *error);

enum status sql_read_partials(struct store *base, int64_t job_id, struct outcome *out, uint32_t max,
                              uint32_t *count, struct error *error);

/* labels.c: */
enum status labels_add(struct store *base, const struct label *label, struct error *error);
enum status labels_drop(struct store *base, const struct label *label, struct error *error);
enum status labels_planner_keep(struct store *base, const char *suite, const char *planner_hash,
                                const void *data, size_t bytes, struct error *error);
enum status labels_planner_kept(struct store *base, const char *suite, const char *planner_hash,
                                void **data, size_t *bytes, struct error *error);
enum status labels_page(struct store *base, const char *kind, int64_t after_id, struct label *out,
                        uint32_t max, uint32_t *count, struct error *error);
/* Members note, commit, tags and baselines of a suite. */
enum status labels_read(struct db *db, int64_t suite, struct store_suite_status *out,
                        struct error *error);

/* sql_stats.c: */
enum status stats_worker_owner(struct store *base, const char *worker_id,
                               struct store_worker_owner *out, struct error *error);
enum status stats_commits_lost(struct store *base, int64_t *count, struct error *error);
enum status stats_read(struct store *base, struct store_stats *out, struct error *error);
/* Planners, planned ticks and ETA of a suite. */
enum status stats_read_progress(const struct sql_store *store, struct db *db, int64_t suite,
                                struct store_suite_status *out, struct error *error);
enum status look_suites_page(struct store *base, const char *after, char (*ids)[LIMIT_ID_BYTES],
                             uint32_t max, uint32_t *count, struct error *error);
enum status look_slices_page(struct store *base, const char *suite_id, int64_t after,
                             struct store_slice *out, uint32_t *count, int64_t *next,
                             struct error *error);
enum { AUDIT_ROWS_MAX = 200000 }; /* of the log that stay */
enum status audit_begin(struct store *base, struct store_audit *entry, struct error *error);
enum status audit_end(struct store *base, int64_t id, int64_t code, struct error *error);
/* The row of STATEMENT_AUDIT_PAGE that the query stands on. */
void audit_row(struct query *query, struct store_audit *out);
enum status audit_page(struct store *base, int64_t after_id, struct store_audit *out, uint32_t max,
                       uint32_t *count, struct error *error);
enum status stats_demand(struct store *base, struct store_demand *rows, uint32_t max,
                         uint32_t *count, struct error *error);
enum status stats_workers_page(struct store *base, const char *after, struct store_live_worker *out,
                               uint32_t max, uint32_t *count, struct error *error);

#endif
