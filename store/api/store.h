/*
 * Store: the job store's API. One table of functions, several backends: embedded SQLite, the HTTP
 * client, PostgreSQL; one conformance suite that every backend passes. Nothing here is SQL.
 *
 * Safety rests on epochs: a claim raises a job's epoch and completing needs the current one. Leases
 * belong to workers (one heartbeat row each) and only decide when a job may be claimed again.
 * Every mutating call is atomic and durable (synchronous=FULL) when it returns OK, and may be
 * repeated: submit by key, claim by (worker, claim id), complete by (job, epoch). After a failure
 * the contents of result arrays are undefined.
 *
 * Thread-safe: any thread may call any function of one store.
 */
#ifndef SWERVE_STORE_API_STORE_H
#define SWERVE_STORE_API_STORE_H

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "schemas/job.h"
#include "schemas/outcome.h"
#include "store/api/labels.h"
#include "store/api/models.h"
#include "store/api/tenants.h"
#include "store/api/trust.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

struct store_submit_result {
    int64_t job_id;
    bool existed;  /* this suite already had the key */
    bool lost;     /* existed, is done, but its artifact is no longer in the store */
    bool memoised; /* another suite's finished result was taken over; the job is already done */
};

/* Jobs of a planner: all of them, or those in one world. */
struct store_planner {
    char planner[LIMIT_SPEC_BYTES];
    char planner_hash[SHA256_HEX_BYTES];
    bool in_world; /* the following members count */
    enum tier tier;
    char model_hash[SHA256_HEX_BYTES];
    char sampler[LIMIT_ID_BYTES];
    char backend[LIMIT_ID_BYTES];
    char revision[SHA256_HEX_BYTES]; /* "": any */
};

enum { STORE_WITHOUT_MAX = 64 }; /* of these, which a claim leaves alone */

struct store_worker {
    char worker_id[LIMIT_ID_BYTES]; /* unique per worker process life */
    char pool[LIMIT_ID_BYTES];
    char device[LIMIT_ID_BYTES]; /* price table key: "cpu", "cuda" */
    /* Set by a server, never by its clients: the party of the worker's token that the call came
     * with (an id: store/server/tokens.h), and that token's name; "": whoever calls may speak for
     * every worker. */
    char holder[LIMIT_ID_BYTES];
    char holder_name[LIMIT_ID_BYTES];
    char host[LIMIT_ID_BYTES]; /* the machine; "": one of its own. Looked at by the first claim */
    /* Jobs that a claim does not take, borrowed: planners and worlds that do not start here. */
    const struct store_planner *without;
    uint32_t without_count;
};

/* Whose a worker is: whoever first spoke for it. */
struct store_holder {
    bool known;
    bool by_name;              /* not by id: it was made before ids were kept, and has not claimed
                                  since */
    char text[LIMIT_ID_BYTES]; /* "": nobody's in particular, or an administrator's */
};

struct store_worker_owner {
    char pool[LIMIT_ID_BYTES]; /* "": it never claimed a job */
    struct store_holder holder;
};

/* Whose results are meant: of all workers that a token holds, or of one by name; of those that are
 * both where both are given. */
struct store_author {
    char holder[LIMIT_ID_BYTES];    /* as in struct store_worker; "": whoever's */
    char worker_id[LIMIT_ID_BYTES]; /* "": any */
};

/* Cost so far of a job that is still running, sent with a heartbeat, so that an attempt that
 * vanishes is still charged. */
struct store_progress {
    int64_t job_id;
    int64_t epoch;
    int64_t device_ns; /* no more than has passed since the claim counts */
    int64_t metres_mm;
    int64_t mflop; /* of world models, in millions */
    int64_t ticks; /* driven, a shared past once; for people alone */
};

struct store_completion_result {
    enum status status;       /* OK, or STALE: fenced off, only its cost was kept */
    int64_t escalated_job_id; /* teacher job queued for a flagged one; 0: none */
    bool excused;             /* UNSTARTED: the attempt is not counted; this host is at fault */
};

enum { STORE_UNSTARTED_BYTES = 512 };

#define STORE_BUDGET_UUSD_MAX INT64_C(1000000000000000) /* a thousand million dollars */

/* Main lines in one tier, audits and shadows apart, by their end; the rate (store/api/share.h). */
struct store_mains {
    int64_t verdicts[VERDICT_COUNT];
    int64_t no_answer; /* dead jobs without an outcome of their main line */
    int64_t cancelled; /* likewise, of jobs that were cancelled .. */
    int64_t waiting;   /* .. or that wait or are being driven */
    int64_t scenarios; /* with a result */
    int64_t logical;   /* of these, logical scenarios */
    double rate;       /* NAN without any */
    double worst;      /* were everything without a result a failure, a dead job's scenario too */
    double best;       /* or a pass */
};

/* Those of one planner. */
struct store_planner_mains {
    char planner[LIMIT_SPEC_BYTES];
    enum tier tier;
    struct store_mains mains;
};

struct store_suite_status {
    struct store_mains mains[TIER_COUNT]; /* all zero: none, or of several planners */
    int64_t jobs[JOB_STATE_COUNT];
    int64_t rollouts_total; /* 1 + branches, over all jobs; escalated duplicates not counted */
    int64_t rollouts[VERDICT_COUNT];
    int64_t rollouts_audit; /* of audit jobs, whatever their verdict: in none of the other counts */
    int64_t audits_dead;    /* audit jobs among the dead jobs: no question is left open by them */
    int64_t ticks;          /* simulated for results that count; the shared prefix once */
    int64_t prefix_ticks_saved;
    int64_t metres_mm;              /* of results that count */
    int64_t device_ns;              /* of every attempt but those of shadows, whatever came of it */
    int64_t mflop;                  /* likewise */
    int64_t cost_uusd;              /* likewise */
    int64_t memoised_jobs;          /* results taken over from other suites, at no cost */
    int64_t submitted_s;            /* wall clock, seconds since 1970; 0: not known */
    char planner[LIMIT_SPEC_BYTES]; /* of the suite's jobs; of several the first by name */
    int64_t planner_count;
    char planner_hash[SHA256_HEX_BYTES]; /* of a suite of one planner */
    char rig[SHA256_HEX_BYTES];          /* that a job of it is driven with; "": the built-in one */
    char note[LABEL_BYTES];
    char commit[LABEL_BYTES];          /* that its client stood in */
    char tags[LABEL_NAMES_BYTES];      /* in the order in which they came, ", " between them */
    char baselines[LABEL_NAMES_BYTES]; /* likewise: the names of which it is the baseline */
    int64_t ticks_planned;             /* of jobs of its own; 0: not known */
    int64_t ticks_ended;               /* of these, of jobs that have ended */
    int64_t ticks_running;   /* .. and that jobs which are being driven have behind them */
    int64_t eta_ms;          /* until every job has ended, store/api/progress.h; -1: not known */
    int64_t unstarted_hosts; /* that could not start a planner of the suite, until they can */
    char unstarted[STORE_UNSTARTED_BYTES]; /* worker and reason of one of them */
    int64_t budget_uusd;                   /* what the suite may cost; 0: no limit */
    bool stopped_by_budget; /* it has cost as much: what waited was cancelled, what comes is too */
    enum suite_class of_class;
    int64_t jobs_handed_back; /* times that a job of it made way for one of a higher class */
};

/* Jobs of a suite that wait or are being driven. */
static inline int64_t store_jobs_open(const struct store_suite_status *status)
{
    return status->jobs[JOB_QUEUED] + status->jobs[JOB_LEASED];
}

/* Jobs of a suite that have ended, one way or another. */
static inline int64_t store_jobs_ended(const struct store_suite_status *status)
{
    return status->jobs[JOB_DONE] + status->jobs[JOB_FLAGGED] + status->jobs[JOB_DEAD] +
           status->jobs[JOB_CANCELLED];
}

/* Empty or zero members do not filter. */
struct store_outcome_filter {
    char suite_id[LIMIT_ID_BYTES];
    char scenario_id[LIMIT_ID_BYTES];
    int64_t job_id;
    int64_t outcome_id;
    bool by_verdict;
    enum verdict verdict;
    int64_t after_id; /* paging: ids greater than this */
    uint32_t limit;   /* 1..1000 */
    bool by_slice;
    uint32_t slice_kind; /* enum slice_kind */
    char slice_value[LIMIT_ID_BYTES];
    bool main_lines; /* no branches */
};

struct store_ledger_row {
    char pool[LIMIT_ID_BYTES];
    char device[LIMIT_ID_BYTES];
    enum tier tier;
    bool audit;               /* attempts at audit jobs */
    bool shadow;              /* .. at those of shadows: in no other sum of the suite */
    char end[LIMIT_ID_BYTES]; /* of the attempt: done, flagged, failed, released, lost, stale */
    struct ledger_totals totals;
};

struct store_job {
    int64_t id;
    enum job_state state;
    int64_t epoch;
    uint32_t attempts;
    char worker_id[LIMIT_ID_BYTES];
    char error[OUTCOME_ERROR_BYTES];
    int64_t freeze; /* event of trust that moved it to the teacher, or that it was in flight at */
    char token[LIMIT_ID_BYTES]; /* id of the token that holds the worker; "": it has none */
    int64_t handed_back;        /* times, because a job of a higher class waited .. */
    char handed_back_for[LIMIT_ID_BYTES]; /* .. and the suite of the last such one; "": never */
    struct job_spec spec;
};

/* ---- what a server asks of the store that it serves ---- */

enum {
    STORE_STATS_POOLS_MAX = 64, /* further pools are counted together, under "other" */
    STORE_STATS_PAGES_MAX = 64, /* pools and tiers, by name; further ones are left out */
    STORE_STATS_BUCKETS = 10,
};

/* Upper bounds of the buckets below, the last one open. */
extern const uint32_t store_stats_group_bounds[STORE_STATS_BUCKETS - 1];    /* operations */
extern const int64_t store_stats_commit_bounds_ns[STORE_STATS_BUCKETS - 1]; /* of COMMIT */

struct store_pool_jobs {
    char pool[LIMIT_ID_BYTES];
    int64_t jobs[JOB_STATE_COUNT];
    int64_t handed_back; /* times that a job made way for one of a higher class */
};

/* Frame pages in use at the fullest, over rollouts of worlds that have any among the newest. */
struct store_pool_pages {
    char pool[LIMIT_ID_BYTES];
    enum tier tier;
    int64_t used_percent;
};

/* Since the store was opened, but for jobs and pages. */
struct store_stats {
    uint32_t pool_count;
    struct store_pool_jobs pools[STORE_STATS_POOLS_MAX];
    int64_t workers_alive; /* with a live lease */
    int64_t groups;        /* transactions that carried operations */
    int64_t operations;
    int64_t waiting;                             /* operations that no group has taken up yet */
    int64_t group_buckets[STORE_STATS_BUCKETS];  /* groups by number of operations */
    int64_t commit_buckets[STORE_STATS_BUCKETS]; /* commits by how long they took, fsync and all */
    int64_t commits;
    int64_t commit_ns;
    uint32_t pages_count;
    struct store_pool_pages pages[STORE_STATS_PAGES_MAX];
};

/* Outcomes of a suite under one value of one kind of slice, planners and tiers apart. */
struct store_slice {
    char planner[LIMIT_SPEC_BYTES];
    enum tier tier; /* of audits that of what they repeat */
    uint32_t kind;  /* enum slice_kind; SLICE_KIND_COUNT: all outcomes */
    char value[LIMIT_ID_BYTES];
    int64_t rollouts[VERDICT_COUNT]; /* main lines alone */
    int64_t branches[VERDICT_COUNT];
    int64_t audited; /* rollouts of audit jobs where both sides pass or fail .. */
    int64_t agreed;  /* .. and where both say the same */
};

enum { STORE_SLICES_MAX = 1024 }; /* of one page, which ends before more values come */

enum {
    STORE_DEMAND_ROWS_MAX = 64,   /* further pools and tiers are left out */
    STORE_DEMAND_ROLLOUTS = 2000, /* the store's newest, that say what a tick takes */
};

/* One call that ordered something of a server, by whom: what the audit log holds. */
struct store_audit {
    int64_t id;
    int64_t at_s;              /* wall clock */
    char name[LIMIT_ID_BYTES]; /* the token's */
    char role[LIMIT_ID_BYTES];
    char action[LIMIT_ID_BYTES]; /* method and route */
    char subject[256];           /* what stood for the route's stars */
    int64_t code;                /* of HTTP; 0: begun, and nobody was answered */
};

/* Jobs of one pool and tier that wait for workers, and what they will take. */
struct store_demand {
    char pool[LIMIT_ID_BYTES];
    enum tier tier;
    int64_t jobs_queued; /* those that wait out a delay included */
    int64_t jobs_leased;
    int64_t ticks_queued; /* planned, of the queued jobs */
    int64_t age_ms; /* since the oldest suite that has such jobs queued was submitted; 0: none */
    int64_t workers_alive; /* of the pool, whatever tier they are at .. */
    int64_t workers_busy;  /* .. and of these, with a job */
    /* Over rollouts of this pool and tier among the newest ones: device time of a simulated tick,
     * their mean, and the 99th percentile of rollouts. 0: none of them is. */
    int64_t rollouts_seen;
    int64_t tick_ns;
    int64_t tick_p99_ns;
};

/* Longest time that a drain asks about. */
#define STORE_SINCE_MS_MAX (INT64_C(365) * 24 * 3600 * 1000)

/* Jobs of a worker's pool that it could not claim just now, and that may come back. */
struct store_awaited {
    int64_t jobs_silent;  /* leased by others that have not been heard of lately .. */
    int64_t silent_ms;    /* .. and until the last of their leases ends, if they stay silent */
    int64_t jobs_delayed; /* that wait out the delay behind an attempt that failed .. */
    int64_t delayed_ms;   /* .. and until the last of them has */
};

/* A worker with a live lease. */
struct store_live_worker {
    char worker_id[LIMIT_ID_BYTES];
    char pool[LIMIT_ID_BYTES]; /* with device and host "" until it has claimed a job */
    char device[LIMIT_ID_BYTES];
    char host[LIMIT_ID_BYTES];
    int64_t jobs; /* that it has leased */
};

/* Of one scenario's id, borrowed. */
typedef enum status store_scenario_visit(void *context, const char *scenario_id,
                                         struct error *error);

struct artifact_writer;
struct artifact_reader;

struct store_ops {
    const char *name;                   /* "sqlite", "shared" (behind store_open) */
    void (*close)(struct store *store); /* accepts NULL; waits for acknowledged work only */

    /* ---- submitting ---- */
    /* Content-addressed scenario body (canonical JSON); repeating is free. */
    enum status (*scenario_put)(struct store *store, const char *hash, const char *body,
                                size_t bytes, struct error *error);
    /* The same for a tenant, whose bytes those of a new body are: LIMIT. */
    enum status (*scenario_put_as)(struct store *store, const char *tenant, const char *hash,
                                   const char *body, size_t bytes, struct error *error);
    /* *body is malloc'ed and terminated, owned by the caller. NOT_FOUND. */
    enum status (*scenario_get)(struct store *store, const char *hash, char **body, size_t *bytes,
                                struct error *error);
    /* All or nothing, idempotent by (suite, key). results[count]. An audit job (audit_key) comes
     * after the job that it repeats, in this call or an earlier one. Two suites are fair to each
     * other; `weight` 1..100 is the suite's share. A student's job of a slice that is frozen
     * becomes the teacher's, and what audits it that job. MISMATCH: the store's floor asks for an
     * audit that the call does not bring, and no teacher is promoted that the store could name. */
    enum status (*submit)(struct store *store, const char *suite_id, uint32_t weight,
                          const struct job_spec *specs, uint32_t count,
                          struct store_submit_result *results, struct error *error);

    /* The same for a tenant. A suite is the tenant's that submitted it first ("": nobody's;
     * submit() asks for nobody in particular): MISMATCH for others. A tenant that is new has weight
     * 1 and no limits. A submission whose new jobs are more than a quota allows is refused whole:
     * LIMIT. tenant NULL: nobody in particular, as submit().
     *
     * budget_uusd: what the suite may cost from now on; 0: that stays as it is, at first without a
     * limit. The transaction that books as much cancels the jobs that wait, and whatever queues one
     * from then on cancels it again; jobs that are leased go on, and are booked. Another budget
     * than the suite had takes over what other suites have answered of those that were cancelled
     * so, and queues the rest again, as new ones for the tenant's quotas, unless it is spent too.
     *
     * of_class: the suite's class from now on, of whom its tenant's other suites give way to it
     * (store/turns/turns.h); SAME: that stays as it is, at first REGRESSION. */
    enum status (*submit_as)(struct store *store, const char *tenant, const char *suite_id,
                             uint32_t weight, enum suite_class of_class, int64_t budget_uusd,
                             const struct job_spec *specs, uint32_t count,
                             struct store_submit_result *results, struct error *error);

    /* ---- tenants ---- */
    /* By name, above `after` ("": all). */
    enum status (*tenants)(struct store *store, const char *after, struct tenant *out, uint32_t max,
                           uint32_t *count, struct error *error);
    /* Makes or changes one: of its weight and quotas those that are named (enum tenant_setting).
     * Others stay, whoever sets them now; a new tenant has weight 1 and no limits. CONFLICT: it has
     * another version than the change is for, and not these settings already. */
    enum status (*tenant_set)(struct store *store, const struct tenant *tenant, uint32_t settings,
                              struct error *error);

    /* ---- working ---- */
    /* Heartbeats and claims of a worker that another token holds are MISMATCH. */
    /* Registers or renews a worker's lease. *ttl_ms is how long it lasts from when the call was
     * sent; never a timestamp. progress[count] may be NULL. cancelled[] (capacity `count`) are
     * jobs among those in progress whose result cannot count any more (cancelled, or claimed again
     * by another worker), then those to be released for a higher class (store/turns/handback.h). */
    enum status (*heartbeat)(struct store *store, const struct store_worker *worker,
                             const struct store_progress *progress, uint32_t count,
                             int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                             struct error *error);
    /* Up to `max` jobs for the worker's pool; renews the worker's lease. Waits up to wait_ms for
     * the first; 0 found is OK. Order: prefix affinity, the tenant's and the suite's turn
     * (store/turns), priority, age; jobs of shadows only where there is nothing else.
     * *claim_id names the claim among those of its worker: 1 for the first one, then what the last
     * answer said, which is the id of the next claim. An id leases jobs once, and is kept with
     * them. So a claim without an answer is repeated by calling again with the same id: it gets the
     * leases that it made and that have not ended since. An id at or below the worker's last one
     * that leased jobs never leases others; one whose leases have all ended gets none, and the next
     * id. A claim is for no fewer jobs than earlier ones with its id, for one that found none may
     * come a second time, late, and lease as many; else CONFLICT. */
    enum status (*claim)(struct store *store, const struct store_worker *worker, int64_t *claim_id,
                         uint32_t max, int64_t wait_ms, struct job_lease *leases, uint32_t *count,
                         int64_t *ttl_ms, struct error *error);
    /* One transaction for the batch; each element succeeds or is stale by itself. Replaying an
     * accepted completion answers OK again and changes nothing. A completion counts as long as
     * nobody has claimed or cancelled the job since, even when the lease has ended meanwhile,
     * unless the job has died of too many losses or has become another version's. DONE brings one
     * outcome per rollout. UNSTARTED counts as failed when so many hosts (store_config) have said
     * it of a planner that nobody has driven, as handed back before that: results[i].excused says
     * which. PARTIAL ends nothing: it brings outcomes of rollouts that are finished, none flagged,
     * and counts while this attempt holds its lease; of a rollout, the first one of a token's
     * workers stays. One with evidence and no trace is a checkpoint: the rollout is not finished,
     * and the next that comes replaces it. An artifact or a number of outcomes that contradicts the
     * store fails the whole call (CONFLICT), nothing is changed. */
    enum status (*complete)(struct store *store, const struct job_completion *completions,
                            uint32_t count, struct store_completion_result *results,
                            struct error *error);
    /* Jobs that whoever drains the worker's pool waits for. Silent are other workers that have not
     * been heard of in the last since_ms. NULL: the store cannot say. */
    enum status (*awaited)(struct store *store, const struct store_worker *worker, int64_t since_ms,
                           struct store_awaited *out, struct error *error);
    /* The worker is known to be gone: its leases end now (spawned children that died). */
    enum status (*worker_gone)(struct store *store, const char *worker_id, struct error *error);

    /* Partial outcomes of a job that goes on, for whoever has claimed it: by earlier attempts and
     * by this one, of workers that the same token holds. Those of another one's are not shown: they
     * stay until this one hands over the same rollout, or the job ends, which keeps none. out[max].
     * They are no results: what completes the job brings them. */
    enum status (*partials)(struct store *store, int64_t job_id, struct outcome *out, uint32_t max,
                            uint32_t *count, struct error *error);

    /* ---- reading ---- */
    enum status (*suite_status)(struct store *store, const char *suite_id,
                                struct store_suite_status *out, struct error *error);
    /* Ids of known suites, newest first; ids[max]. */
    enum status (*suites)(struct store *store, char (*ids)[LIMIT_ID_BYTES], uint32_t max,
                          uint32_t *count, struct error *error);
    /* Ascending id; *count <= filter->limit. A suite's outcomes include those that it took over
     * from another, with their own id and epoch, but under the asking suite and its job. */
    enum status (*outcomes)(struct store *store, const struct store_outcome_filter *filter,
                            struct outcome *out, uint32_t *count, struct error *error);
    enum status (*job)(struct store *store, int64_t job_id, struct store_job *out,
                       struct error *error);
    /* Dead jobs of a suite, ascending id after `after_id`. */
    enum status (*dead_jobs)(struct store *store, const char *suite_id, int64_t after_id,
                             struct store_job *out, uint32_t max, uint32_t *count,
                             struct error *error);
    /* Likewise, jobs in a state of job_state_names; shadows apart. BAD_INPUT: there is none so. */
    enum status (*jobs_in_state)(struct store *store, const char *suite_id, const char *state,
                                 int64_t after_id, struct store_job *out, uint32_t max,
                                 uint32_t *count, struct error *error);
    /* By planner, then tier; those of more than `max` rows are left out. */
    enum status (*mains)(struct store *store, const char *suite_id,
                         struct store_planner_mains *rows, uint32_t max, uint32_t *count,
                         struct error *error);
    /* suite_id NULL: all. rows[max]. */
    enum status (*ledger)(struct store *store, const char *suite_id, struct store_ledger_row *rows,
                          uint32_t max, uint32_t *count, struct error *error);
    /* Price in micro-dollars per device-hour for (pool, device), for attempts that end from now on;
     * pool "" is the price of every pool without one of its own. */
    enum status (*price_set)(struct store *store, const char *pool, const char *device,
                             int64_t price_uusd_per_hour, struct error *error);
    enum status (*price_get)(struct store *store, const char *pool, const char *device,
                             int64_t *price_uusd_per_hour, struct error *error);
    /* Commits that had been acknowledged and that damaged logs took away, over all openings. */
    enum status (*commits_lost)(struct store *store, int64_t *count, struct error *error);

    /* Shows the ids of scenarios that jobs of a suite (NULL: of the store) are of, or outcomes of
     * theirs: as many as take a moment, from *after on, which is 0 first and then what the last
     * page set it to; 0: there are no more. An id may be shown again. */
    enum status (*scenarios_page)(struct store *store, const char *suite_id, int64_t *after,
                                  store_scenario_visit *visit, void *context, struct error *error);

    /* Queues by pool and tier; rows[max]. NULL: the store cannot say. */
    enum status (*demand)(struct store *store, struct store_demand *rows, uint32_t max,
                          uint32_t *count, struct error *error);

    /* Queued and leased jobs of the suite become cancelled; *count of them, and of those that its
     * budget had cancelled, which no larger one queues again. A large suite in steps, with others
     * served in between: one that is not answered may have gone a part of the way; repeat it. */
    enum status (*cancel)(struct store *store, const char *suite_id, int64_t *count,
                          struct error *error);

    /* Drops the outcomes of jobs that are done and that an author has finished, with what other
     * suites took over of them, and queues those jobs again, as it does dead ones that count
     * failures or losses of the author's, which count no longer: *jobs of them. Costs stay on the
     * bill. In steps, as cancel; repeating is free. BAD_INPUT: nobody is named. NOT_FOUND: no such
     * worker has ever claimed here. */
    enum status (*redrive)(struct store *store, const struct store_author *author, int64_t *jobs,
                           struct error *error);
    /* A number that rises when outcomes are dropped: count anew. NULL: the store cannot say. */
    enum status (*redrives)(struct store *store, int64_t *count, struct error *error);

    /* ---- models ---- */
    /* Takes a version of a model as a candidate; its weights and health bounds are artifacts
     * already (CONFLICT). Repeating is free; another version of that name or of these weights:
     * CONFLICT. What the store sets of it is not looked at. */
    enum status (*model_add)(struct store *store, const struct model_version *version,
                             struct error *error);
    /* Versions by name, above `after` ("": all). */
    enum status (*models)(struct store *store, const char *after, struct model_version *out,
                          uint32_t max, uint32_t *count, struct error *error);
    /* MOVED or EVALUATED: what happens to a version, in one transaction with everything that
     * follows: a move sets the pointer of its tier, retires who was promoted, moves queued jobs
     * that follow, and makes or cancels jobs of shadows. *done: the event as it is stored. A move
     * to where the version is already changes nothing and answers its last event. MISMATCH: to
     * canary or promoted without `forced`, and its last evaluation did not pass, or has expired;
     * who was promoted before may come back. BAD_INPUT: forced, and no evidence says why. CONFLICT:
     * no such move. NOT_FOUND. */
    enum status (*model_event)(struct store *store, const struct model_event *event,
                               struct model_event *done, struct error *error);
    /* Ascending id after `after_id`. */
    enum status (*model_events)(struct store *store, int64_t after_id, struct model_event *out,
                                uint32_t max, uint32_t *count, struct error *error);

    /* ---- trust ---- */
    /* Freezes a slice of a student to the teacher, thaws one, or sets the floor of audits
     * (store/api/trust.h). A freeze marks the student's leased jobs of the slice and moves the
     * queued ones, with their keys: a step of them in the transaction that freezes, the rest in
     * steps of their own; what a step has not reached is moved when it is claimed. *done: the
     * event as it is stored. A slice of a student that is frozen already stays so: the answer is
     * its freeze, and what was not moved yet is. A freeze that is thawed already, likewise.
     * MISMATCH: a freeze without a teacher; a thaw that is not forced and names no evaluation of
     * that student that passed after the freeze and still counts. NOT_FOUND: no such freeze. */
    enum status (*trust_event)(struct store *store, const struct trust_event *event,
                               struct trust_event *done, struct error *error);
    /* Ascending id after `after_id`. */
    enum status (*trust_events)(struct store *store, int64_t after_id, struct trust_event *out,
                                uint32_t max, uint32_t *count, struct error *error);

    /* ---- goldens ---- */
    /* Keeps a set: its list and every recording that it names are artifacts already (CONFLICT), and
     * stay as long as the set does, whatever a policy of retention says. Repeating is free; another
     * set of that name, or this one under another name: CONFLICT. */
    enum status (*golden_add)(struct store *store, const struct golden_set *set,
                              struct error *error);
    /* Sets by name, above `after` ("": all). */
    enum status (*goldens)(struct store *store, const char *after, struct golden_set *out,
                           uint32_t max, uint32_t *count, struct error *error);
    /* Lets a set go: nothing keeps its artifacts any more. One that is not there is gone. */
    enum status (*golden_drop)(struct store *store, const char *name, struct error *error);

    /* ---- labels ---- */
    /* Adds a label to a suite, as its kind says (store/api/labels.h); repeating is free. LIMIT: the
     * suite has LABELS_MAX of the kind. CONFLICT: the artifact of `files` is not there.
     * NOT_FOUND. */
    enum status (*label_add)(struct store *store, const struct label *label, struct error *error);
    /* Takes a tag, a note or a baseline from a suite again; one that it does not have is gone. */
    enum status (*label_drop)(struct store *store, const struct label *label, struct error *error);
    /* Labels of a kind (NULL: of every one but `files`), in ascending id after `after_id`. */
    enum status (*labels)(struct store *store, const char *kind, int64_t after_id,
                          struct label *out, uint32_t max, uint32_t *count, struct error *error);

    /* Keeps a planner's files with a suite, as an artifact and a label `files`; repeating is free.
     * LIMIT: the suite has LABELS_MAX of them, or they are more than LABEL_FILES_BYTES. A server
     * takes them where it was told to, from who submits for the suite's tenant. */
    enum status (*planner_keep)(struct store *store, const char *suite, const char *planner_hash,
                                const void *data, size_t bytes, struct error *error);
    /* Those of a suite; a server shows them to its tenant. *data is malloc'ed, the caller's.
     * NOT_FOUND. */
    enum status (*planner_kept)(struct store *store, const char *suite, const char *planner_hash,
                                void **data, size_t *bytes, struct error *error);

    /* ---- artifacts ---- */
    /* Stores bytes (uncompressed) under their SHA-256, durable on return; repeating is free. */
    enum status (*artifact_put)(struct store *store, const void *data, size_t bytes,
                                char hash[SHA256_HEX_BYTES], struct error *error);
    /* *data is malloc'ed, the caller's; the hash is verified (a damaged file is STATUS_IO). */
    enum status (*artifact_get)(struct store *store, const char *hash, void **data, size_t *bytes,
                                struct error *error);

    /* ---- for a server in the same process; NULL but in the embedded backend ---- */
    /* Waits up to wait_ms until jobs may have become claimable since *generation, which is renewed;
     * 0: only that. Costs the writer nothing. */
    void (*claimable_wait)(struct store *store, uint64_t *generation, int64_t wait_ms);
    /* Whose a worker is that ever claimed a job, or was heard of since the store was opened. */
    enum status (*worker_owner)(struct store *store, const char *worker_id,
                                struct store_worker_owner *out, struct error *error);
    /* As outcomes, but looks at no more rows than take a moment. *next > 0: it stopped short of
     * both the limit and the end, and goes on from there as the next call's after_id; else 0. */
    enum status (*outcomes_page)(struct store *store, const struct store_outcome_filter *filter,
                                 struct outcome *out, uint32_t *count, int64_t *next,
                                 struct error *error);
    /* The same store for those who only read: on connections of their own, so that nobody else
     * waits for them, and with a time limit (TIMEOUT) on every answer. Not to be closed. */
    struct store *(*reading)(struct store *store);
    /* Ends what those are asking at this moment (BUSY); any thread. */
    void (*reading_end)(struct store *store);
    enum status (*stats)(struct store *store, struct store_stats *out, struct error *error);
    /* As suites, those that are older than `after` ("": all). */
    enum status (*suites_page)(struct store *store, const char *after, char (*ids)[LIMIT_ID_BYTES],
                               uint32_t max, uint32_t *count, struct error *error);
    /* The suite's outcomes with ids above `after`, counted by slice: as many of them as take a
     * moment. *next > 0: there may be more, above that one. out[STORE_SLICES_MAX]. */
    enum status (*slices_page)(struct store *store, const char *suite_id, int64_t after,
                               struct store_slice *out, uint32_t *count, int64_t *next,
                               struct error *error);
    /* Whose a suite is; "": nobody's. NOT_FOUND. */
    enum status (*suite_tenant)(struct store *store, const char *suite_id,
                                char name[LIMIT_ID_BYTES], struct error *error);
    /* Sessions that its drivers may hold at once; 0: it has no limit, or there is no tenant. */
    enum status (*tenant_sessions)(struct store *store, const char *tenant, int64_t *most,
                                   struct error *error);
    /* Live workers by name, above `after` ("": all). */
    enum status (*workers_page)(struct store *store, const char *after,
                                struct store_live_worker *out, uint32_t max, uint32_t *count,
                                struct error *error);
    /* The audit log: an entry before a call is carried out (sets its id and time), the code that it
     * was answered with after it; entries in ascending id after `after_id`. */
    enum status (*audit_begin)(struct store *store, struct store_audit *entry, struct error *error);
    enum status (*audit_end)(struct store *store, int64_t id, int64_t code, struct error *error);
    enum status (*audit_page)(struct store *store, int64_t after_id, struct store_audit *out,
                              uint32_t max, uint32_t *count, struct error *error);
    /* Artifacts piece by piece (store/artifacts/artifacts.h); to be finished before the store is
     * closed. */
    enum status (*artifact_write)(struct store *store, size_t bytes, bool packed,
                                  struct artifact_writer **out, struct error *error);
    enum status (*artifact_read)(struct store *store, const char *hash, bool *packed,
                                 struct artifact_reader **out, size_t *bytes, struct error *error);

    /* Takes every call that store_calls_relay() has led here (store/api/calls.h); NULL: none. */
    enum status (*call)(struct store *store, unsigned call, const void *args, struct error *error);
};

/* First member of every backend's own struct. */
struct store {
    const struct store_ops *ops;
};

/* The use that a store is opened for. */
enum store_intent {
    STORE_MAKE = 0, /* to work with; made where there is none */
    STORE_WORK,     /* to work with: one that is there */
    STORE_ASK,      /* to ask or to order: one that is there, and nothing is made beside it */
};

struct store_config {
    enum store_intent intent;
    const struct clock *clock;   /* NULL: the system's */
    const struct logger *logger; /* NULL: silent; borrowed */
    int64_t lease_ttl_ms;        /* 0: 15,000 */
    int64_t backoff_ms;          /* first retry delay, doubled each time; 0: 1,000 */
    /* Clients of http(s)://; NULL: the environment's SWERVE_TOKEN_FILE, SWERVE_CA_FILE. Borrowed
     * while opening. The token file is read again when it changes. */
    const char *token_file;
    const char *ca_file; /* PEM, authorities that may vouch for the server; else the system's */
    int64_t call_deadline_ms; /* how long a call goes on unanswered; 0: 30,000 */
    /* Clients: a claim that waits at a server comes back soon after this is set, with what it has;
     * NULL: never. Borrowed. */
    const atomic_bool *stop;
    /* Device time that an attempt may bill beyond what has passed since its claim: clocks of
     * processor time go in steps. 0: 100 */
    int64_t bill_slack_ms;
    uint32_t planner_hosts; /* that a planner must fail to start on to be at fault itself; 0: 2 */
    int checkpoint_pages;   /* of the log, before it is copied into the database; 0: 1,000 */
};

/* Opens a store URL (store/api/store_url.h). STORE: there is none, and the intent is not to make
 * one; nothing is left where it was looked for. A path: takes the owner's lock and serves others on
 * PATH.sock, or becomes a client of the process that has it; when that one dies, calls find or make
 * a new owner and go on (DESIGN: one writer). `http(s)://..`: a client. `postgresql://..`: a
 * process beside others on one database. */
enum status store_open(const char *url, const struct store_config *config, struct store **out,
                       struct error *error);

/* Every outcome of a suite (NULL: of the store) in ascending id, those of audits too, until one is
 * refused. Memory does not grow with their number. The store may be asked for the next ones from
 * another thread meanwhile. */
typedef enum status store_visit(void *context, const struct outcome *outcome, struct error *error);
enum status store_outcomes_each(struct store *store, const char *suite_id, store_visit *visit,
                                void *context, struct error *error);

/* store_ops.redrives; 0 of a store that cannot say. */
enum status store_redrives(struct store *store, int64_t *count, struct error *error);

/* Every scenario of a suite's jobs and outcomes (NULL: of the store's), some more than once. */
enum status store_scenarios_each(struct store *store, const char *suite_id,
                                 store_scenario_visit *visit, void *context, struct error *error);

/* The embedded backend alone, without server: tests and benchmarks. CONFLICT when somebody else
 * owns the file (store/sql/ownership.h). */
enum status store_sqlite_open(const char *path, const struct store_config *config,
                              struct store **out, struct error *error);

/* The client backend alone: "unix:PATH.sock" or "http://host:port". */
enum status store_http_open(const char *url, const struct store_config *config, struct store **out,
                            struct error *error);

/* The HTTP server over any store. listen_fd is a bound, listening socket, owned by the server from
 * here on; the store is borrowed and must outlive it. */
struct store_server;
enum status store_server_start(struct store *store, int listen_fd,
                               const struct store_config *config, struct store_server **out,
                               struct error *error);
void store_server_stop(struct store_server *server); /* accepts NULL; drains */

#endif
