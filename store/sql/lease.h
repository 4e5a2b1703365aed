/*
 * Leases: which workers are alive.
 *
 * They are kept in memory. A lease is liveness, never safety (that is the epoch), and the
 * clock that measures it does not survive a reboot. So a lease has its age in parts of its length,
 * in the worker's row: those in which the store was open and heard nothing from the worker, whether
 * in one opening or in several. Whoever opens a store gives every worker that holds jobs the rest:
 * a store that is opened again and again does not keep the dead alive, and one that was away for
 * long takes nobody for dead. The living are heard of every third of a lease.
 *
 * Where several processes write one database, its rows say until when each lease lasts
 * (struct lease_peers): a lease that ended here may have been renewed elsewhere, and one whose
 * process died is ended by another.
 */
#ifndef SWERVE_STORE_SQLITE_LEASE_H
#define SWERVE_STORE_SQLITE_LEASE_H

#include "base/status.h"
#include "schemas/limits.h"
#include "store/api/store.h"
#include "store/sql/sqlite_db.h"
#include "store/sql/tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LEASE_WORKERS_MAX = 65536, /* alive at one time */
    /* A job whose workers vanished this often is taken to be what kills them. Losses below that do
     * not count against attempts_max: machines come and go. */
    LEASE_LOST_MAX = 20,
    /* A poison job (JOB_LOST_POISON) runs alone; when it is lost this often more, the last time as
     * all that its worker held, there is nothing else to blame. */
    LEASE_LOST_ALONE_MAX = 3,
    LEASE_PARTS = 5, /* by which silence is counted; less than one in an opening counts nothing */
};

struct sql_store;

/* Reads (token, holder) of a worker's row. */
void lease_holder_read(struct query *query, int column, struct store_holder *out);
/* MISMATCH when the worker's token is not the one that holds it. */
enum status lease_holder_check(const struct store_worker *worker, const struct store_holder *holder,
                               struct error *error);

struct lease {
    char worker_id[LIMIT_ID_BYTES];
    int64_t until_ns;
    int64_t prefix; /* of the job claimed last; 0: none */
    struct store_holder holder;
    int64_t heard_ns; /* when it was made or lengthened last; of no use where `unheard` */
    int64_t requeued; /* its jobs that the running sweep has queued again */
    int64_t retry_ns; /* until a sweep tries again what it could not; 0: it could */
    int64_t row;      /* of its worker, and the pool of that; 0: not looked up yet */
    int64_t pool;
    bool unheard; /* its worker has not been heard of since this was made */
};

/* Leases as all processes on one database see them; times are the database's clock. Each function
 * runs inside a transaction of the writer. */
struct lease_peers {
    enum status (*renew)(struct db *db, const char *worker_id, int64_t until_ns,
                         struct error *error);
    /* *until_ns 0: nobody has one of this worker. */
    enum status (*until)(struct db *db, const char *worker_id, int64_t *until_ns,
                         struct error *error);
    enum status (*forget)(struct db *db, const char *worker_id, struct error *error);
    /* One worker above `after` whose lease has ended; "": none. */
    enum status (*next_ended)(struct db *db, int64_t now_ns, const char *after,
                              char worker_id[LIMIT_ID_BYTES], struct error *error);
    /* Tells the other processes that jobs became claimable, with the commit. */
    enum status (*announce)(struct db *db, struct error *error);
    /* Number of the present connection: for a lease's length from its beginning nobody is taken to
     * be gone, since renewals may have been in vain before. */
    int64_t (*connection)(const struct db *db);
    /* The clock was set back: no lease and no backoff ends later than it would if it began now. */
    enum status (*clamp)(struct db *db, int64_t now_ns, int64_t lease_ttl_ns, struct error *error);
};

struct leases {
    uint64_t *hashes; /* of worker_id, beside the rows so that a search stays in cache */
    struct lease *rows;
    size_t count;
    size_t capacity;
    int64_t requeued;   /* by the running sweep, over all rows */
    int64_t connection; /* struct lease_peers, and since when it is known */
    int64_t connected_ns;
    int64_t opening_ns; /* when the present part of silence ends; INT64_MAX: nobody is silent */
};

void leases_finish(struct leases *leases);
/* NULL: not alive. */
struct lease *leases_find(struct leases *leases, const char *worker_id);
/* Makes or lengthens one; *out until the next call. LIMIT, NO_MEMORY. */
enum status leases_renew(struct leases *leases, const char *worker_id, int64_t until_ns,
                         struct lease **out, struct error *error);
/* The last one takes its place. */
void leases_remove(struct leases *leases, size_t index);
/* The worker was heard of: registers or renews; a lease never gets shorter. Inside a transaction of
 * the writer. MISMATCH: another token holds the worker. */
enum status lease_renew(struct sql_store *store, struct db *db, const struct store_worker *worker,
                        int64_t until_ns, struct lease **out, struct error *error);

/* Gives every worker that holds jobs a lease: at open. */
enum status lease_restart(struct sql_store *store, struct error *error);

/* The sweep hook: requeues jobs of workers whose lease has ended, and jobs whose backoff is over.
 * Each worker by itself: rows that do not fit together hold up no other's. */
enum status lease_sweep(struct db *db, void *context, int64_t now_ns, int64_t *next_ns,
                        struct error *error);
/* The swept hook: says what was queued again. */
void lease_swept(void *context, bool committed);
/* The stalled hook: time in which the store did not listen does not count against workers. */
void lease_stalled(void *context, int64_t stalled_ns);

/* The attempt was handed back: counts it where its worker had been asked to
 * (store/turns/handback.h). Repeating changes nothing. */
enum status lease_handed_back(struct sql_store *store, struct db *db, int64_t job_id, int64_t epoch,
                              int64_t suite, int64_t pool, struct error *error);

/* A job with what ends its attempt. */
struct lease_job {
    bool found;
    int64_t state;
    int64_t epoch;
    int64_t worker;
    char worker_id[LIMIT_ID_BYTES];
    char device[LIMIT_ID_BYTES];
    int64_t attempts;
    int64_t lost;
    int64_t suite;
    int64_t pool;
    int64_t progress_ns;
    int64_t progress_mm;
    int64_t progress_mflop;
    int64_t context;
    int64_t ticks; /* planned */
    bool shadow;   /* in no counter of its suite and pool */
    int64_t claim_id;
    int64_t tenant;     /* 0: nobody's */
    bool budgeted;      /* its suite has a budget */
    int64_t claimed_ns; /* its present or last attempt; 0: not known */
    /* Of what is rare: */
    bool driven;    /* its context is marked so */
    bool unstarted; /* some planner could not be started by somebody, or other processes may say so
                     */
    bool partials;  /* it has partial outcomes, or other processes may add some */
    struct job_spec spec;
};
enum status lease_job_get(struct db *db, int64_t job_id, struct lease_job *job,
                          struct error *error);

/* The way that an attempt at a job of `rollouts` may bill: what the ticks of its scenario (all, as
 * planned; 0: not known) take ego at the fastest, where each rollout drives them all, as those of a
 * planner that does not fork do. */
int64_t lease_billable_mm(int64_t rollouts, int64_t ticks, int64_t metres_mm);

/* Ends the running attempt of a leased job without a completion: charged what it had reported, and
 * the job is queued again, dead (lost too often), or `to_state` JOB_CANCELLED. `alone`: its worker
 * held no other job. */
enum status lease_end_attempt(struct sql_store *store, struct tally *tally, int64_t job_id,
                              enum job_state to_state, bool alone, struct error *error);

#endif
