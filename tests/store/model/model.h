/*
 * The model: what a job store is, without SQL, threads, disks or sums. It is told every call that
 * is made on a store, in the order in which they were made, and says what the answer must be; and
 * it can be compared with everything that the store shows. It keeps a list of jobs and a list of
 * attempts, and adds up anew whenever a sum is asked for. The simulated fleet and the conformance
 * suite's random calls are held against it.
 *
 * It knows nothing of the store's code but store/api/store.h, schemas/job.h and the numbers in
 * store/sql/lease.h (how often a job may be lost).
 */
#ifndef SWERVE_TESTS_STORE_MODEL_MODEL_H
#define SWERVE_TESTS_STORE_MODEL_MODEL_H

#include "store/api/store.h"

#include <stdbool.h>
#include <stdint.h>

/* The scenario of every job, put by whoever plays: 9 ticks of its own and 5 of its branch. */
#define MODEL_SCENARIO_BODY \
    "{\"branches\":[{\"at_tick\":4}],\"horizon_s\":0.9,\"id\":\"simulated\"}"

/* The same with a weather, as a scenario that decodes, for whoever freezes slices. */
#define MODEL_WEATHER_BODY                                                                     \
    "{\"branches\":[{\"at_tick\":4,\"id\":\"b1\",\"interventions\":[{\"kind\":\"conditions\"," \
    "\"conditions\":{\"weather\":\"fog\"}}]}],\"conditions\":{\"weather\":\"%s\"},"            \
    "\"ego\":{\"pose\":{\"x_m\":0,\"y_m\":0,\"heading_rad\":0},\"route\":[\"a\"]},"            \
    "\"horizon_s\":0.9,\"id\":\"simulated\",\"map\":{\"lanes\":[{\"id\":\"a\","                \
    "\"centre_line\":[[0,0],[9,0]]}]}}"

enum {
    MODEL_WEATHERS = 3,       /* slices that may be frozen */
    MODEL_BRANCH_WEATHER = 2, /* fog: the branch's, of every scenario */
    MODEL_SCENARIO_TICKS = 14,
    MODEL_SUITES_MAX = 8,
    MODEL_TENANTS = 3,                                /* the first one is nobody */
    MODEL_PARTIES = MODEL_SUITES_MAX + MODEL_TENANTS, /* that race: suites, then tenants */
    MODEL_WORKERS_MAX = 256,
    MODEL_JOBS_MAX = 512,
    MODEL_ATTEMPTS_MAX = 8192,
    MODEL_POOLS = 2,   /* bulk, teacher */
    MODEL_DEVICES = 2, /* cpu, cuda */
    MODEL_ROLLOUTS_MAX = 4,
    MODEL_PRICES_MAX = 16,
    MODEL_UNSTARTED_MAX = 64,
    MODEL_PLANNER_HOSTS = 2, /* by which a planner is at fault itself */
    MODEL_VERSIONS = 3,      /* of the student, that following jobs may be answered by */
    MODEL_WHY_BYTES = 1024,
};

extern const char *const model_pools[MODEL_POOLS];
extern const char *const model_devices[MODEL_DEVICES];
/* Names of the versions; the file of each is its name. In the beginning the first is promoted. */
extern const char *const model_versions[MODEL_VERSIONS];
extern const char *const model_weathers[MODEL_WEATHERS];
/* Hash of the scenario of a weather, and the freeze of that slice: the first version's to a
 * teacher.
 */
void model_weather_hash(int weather, char out[SHA256_HEX_BYTES]);
struct trust_event model_freeze_of(int weather);
/* The teacher that answers in a frozen slice. */
struct model_version model_teacher(void);

enum model_end {
    END_DONE = 0,
    END_FLAGGED,
    END_FAILED,
    END_RELEASED,
    END_LOST,
    END_STALE,
    END_COUNT
};

/* When something was taken in, by the store's wall clock. */
struct model_time {
    int64_t first_ms;
    int64_t last_ms;
};

struct model_outcome {
    struct model_time at;
    bool main_line;
    enum verdict verdict;
    uint32_t ticks;
    uint32_t prefix_ticks;
    int64_t metres_mm;
};

struct model_job {
    int64_t id;
    int suite;
    int pool;
    enum tier tier;
    char key[SHA256_HEX_BYTES];
    char planner[LIMIT_ID_BYTES];
    char scenario_id[LIMIT_ID_BYTES];
    uint64_t seed;
    uint32_t rollouts;
    uint32_t attempts_max;
    int64_t parent;
    bool audit;
    int audited; /* of an audit: the job that it repeats */
    bool moot;   /* of an audit: cancelled, and in no count, for the teacher answers that job */
    bool evaluates;
    bool memoised;
    bool follows;
    int weather;                    /* of its scenario; -1: none that a freeze is about */
    bool answered;                  /* the teacher answers it, by a freeze */
    bool in_flight;                 /* it was the student's, on its way, when a freeze came */
    char asked[SHA256_HEX_BYTES];   /* the key that it was submitted under */
    char teacher[SHA256_HEX_BYTES]; /* .. and the one that it has as the teacher's */
    bool escalates;                 /* its submitter named who answers if it is flagged .. */
    struct job_spec successor;      /* .. which is this job */
    bool moved;          /* its key is another than the one that it was submitted under */
    int version;         /* that it names; -1: another model */
    uint32_t percentile; /* of its tier's jobs */
    uint32_t shadow_percentile;
    int repeats; /* of a shadow's: the job that it drives again; -1: it is none. No answer names its
                    id: 0 until somebody has looked */
    enum job_state state;
    int64_t epoch;
    int64_t attempts;
    int64_t lost;
    int worker;         /* -1: nobody ever */
    int64_t claim_id;   /* of that worker's claim */
    int64_t claimed_ns; /* when, by the wall clock */
    int64_t
        asked_back;  /* the last of its attempts that was asked for, for a job of a higher class */
    int asked_times; /* .. and how many were */
    int64_t due_ns;
    int64_t delay_ns;
    int64_t progress_ns;
    int64_t progress_mm;
    int64_t progress_mflop;
    /* The result that counts, or the evidence of a flagged job; of a memoised one, its source's,
     * and the epoch is 0 until the store has shown which job that is. */
    int64_t outcome_epoch;
    char token[SHA256_HEX_BYTES]; /* trace hash: names the attempt that made it */
    uint32_t outcome_count;
    struct model_outcome outcomes[MODEL_ROLLOUTS_MAX];
    /* Of rollouts that are finished while the job goes on; epoch 0: none. */
    struct model_partial {
        int64_t epoch;
        int worker; /* who drove it */
        char token[SHA256_HEX_BYTES];
        struct model_time at;
    } partials[MODEL_ROLLOUTS_MAX];
};

struct model_attempt {
    int job;
    int64_t epoch;
    int worker;
    enum model_end end;
    int64_t claimed_ns; /* by the wall clock */
    int64_t device_ns;
    int64_t metres_mm;
    int64_t mflop;
    int pool;       /* of the job then */
    enum tier tier; /* likewise */
    int64_t price;  /* index into prices */
    int64_t escalated;
};

/* A host that could not start a planner, and has not driven it since. */
struct model_unstarted {
    char planner[LIMIT_ID_BYTES];
    char host[LIMIT_ID_BYTES];
    int suite; /* that asked for it last */
};

struct model_worker {
    char id[LIMIT_ID_BYTES];
    char host[LIMIT_ID_BYTES];
    int pool;
    int device;
    int64_t claim_id; /* of its last claim that leased jobs */
    bool leased;      /* has a lease, perhaps one that is over */
    int64_t until_ns;
    int64_t openings; /* parts of a lease in which the store heard nothing from it */
    bool unheard;     /* since the store was opened */
};

struct model_price {
    int pool;
    int device;
    int64_t uusd_per_hour;
};

/* Lead of one suite of another of its tenant, or of one tenant of another, in one pool while both
 * have claimable jobs. */
struct model_race {
    int64_t served[MODEL_PARTIES][MODEL_PARTIES]; /* cost of [i] while [j] had some too */
};

struct model {
    int64_t ttl_ns;
    int64_t backoff_ns;
    int64_t bill_slack_ns; /* beyond what has passed since a claim; 0: bills have no bounds */
    bool parties;          /* two tokens hold the workers, by turns: model_party() */
    bool goes_on; /* the store's clock outlives its process, and leases and backoffs with it */
    int64_t restart_ns; /* goes_on: within one time to live of it no lease ends */
    bool affinity;      /* jobs have prefixes: suites may run into debt */
    uint32_t rollouts_max;
    int suite_count;
    char suites[MODEL_SUITES_MAX][LIMIT_ID_BYTES];
    int64_t weights[MODEL_PARTIES];
    int tenants[MODEL_SUITES_MAX];
    enum suite_class classes[MODEL_SUITES_MAX]; /* SAME: regression */
    bool classed;                               /* not all of them are that */
    /* When a tenant's jobs of a class could be claimed last; 0: never since the store was opened.
     */
    int64_t waited_ns[MODEL_POOLS][MODEL_TENANTS][SUITE_CLASS_COUNT];
    int64_t asked_back;                     /* attempts */
    int64_t jobs_queued_max[MODEL_TENANTS]; /* 0: any number */
    int64_t units_max[MODEL_TENANTS];       /* of what is leased at once; 0: any number */
    int64_t held;                           /* claims that got less, by that */
    int64_t refused;                        /* submissions, by a quota */
    int worker_count;
    int job_count;
    int attempt_count;
    int price_count;
    int64_t race_max;   /* largest lead seen, in cost per weight */
    int64_t now_ns;     /* the server's clock during the call */
    int64_t stall_ns;   /* the call's reads of it may be later by as much */
    int64_t wall_ns;    /* wall clock minus that clock */
    int64_t opening_ns; /* when the present part of silence ends; INT64_MAX: nobody is silent */
    struct model_price prices[MODEL_PRICES_MAX];
    int64_t price_now[MODEL_POOLS][MODEL_DEVICES]; /* index into prices */
    struct model_race races[MODEL_POOLS];
    int64_t cost_max[MODEL_POOLS]; /* of a job that was ever in the pool */
    struct model_worker workers[MODEL_WORKERS_MAX];
    struct model_job jobs[MODEL_JOBS_MAX];
    struct model_attempt attempts[MODEL_ATTEMPTS_MAX];
    int64_t claims_again; /* that found leases of an earlier answer */
    int64_t claims_late;  /* whose worker has had leases under a higher id */
    bool versioned;       /* the store has the versions */
    enum model_state version_state[MODEL_VERSIONS];
    int64_t version_percent[MODEL_VERSIONS]; /* of a canary, of a shadow */
    int64_t freezes[MODEL_WEATHERS];         /* that hold; 0: none */
    int unstarted_count;
    struct model_unstarted unstarted[MODEL_UNSTARTED_MAX];
    char why[MODEL_WHY_BYTES]; /* of the last function that returned false */
};

void model_init(struct model *model, int64_t ttl_ns, int64_t backoff_ns);
/* The token that holds a worker, where there are two: by the number in its name. */
int model_party(const char *worker_id);

/* ---- what calls must answer; false: they did not, see why ---- */

/* Whether an outcome says a time at which it was taken in. */
bool model_time_fits(const struct model_time *time, const struct outcome *outcome);
/* Time has come to now_ns by the server's clock: leases and backoffs that are over end. To be told
 * before each call that writes. */
void model_time(struct model *model, int64_t now_ns);
/* The server was deaf for so long. */
void model_stalled(struct model *model, int64_t stalled_ns);

bool model_submit(struct model *model, const char *suite_id, uint32_t weight,
                  const struct job_spec *specs, uint32_t count,
                  const struct store_submit_result *results, enum status status);
/* A submission said the suite's class. */
void model_class(struct model *model, const char *suite_id, enum suite_class of_class);
/* The same for a tenant, by its number. A refusal by its quota (LIMIT) is checked. */
bool model_submit_as(struct model *model, int tenant, const char *suite_id, uint32_t weight,
                     const struct job_spec *specs, uint32_t count,
                     const struct store_submit_result *results, enum status status);
bool model_heartbeat(struct model *model, const struct store_worker *worker,
                     const struct store_progress *progress, uint32_t count,
                     const int64_t *cancelled, uint32_t cancelled_count);
/* The worker has had leases under a higher id. */
bool model_claim_late(const struct model *model, const char *worker_id, int64_t claim_id);
/* next_id: what the answer says; status: OK, or CONFLICT. */
bool model_claim(struct model *model, const struct store_worker *worker, int64_t claim_id,
                 uint32_t max, const struct job_lease *leases, uint32_t count, int64_t next_id,
                 enum status status);
bool model_complete(struct model *model, const struct job_completion *completions, uint32_t count,
                    const struct store_completion_result *results);
void model_worker_gone(struct model *model, const char *worker_id);
bool model_cancel(struct model *model, const char *suite_id, int64_t count, enum status status);
void model_price_set(struct model *model, const char *pool, const char *device, int64_t price);
/* A version moves, by force. */
bool model_version_moved(struct model *model, const struct model_event *event, enum status status);
/* A freeze or a thaw was ordered; `done` is the answer. */
bool model_trusted(struct model *model, const struct trust_event *event,
                   const struct trust_event *done, enum status status);
/* Whether a job waits as the student's in a slice that is frozen: it came back. Who claims may
 * find it, and then it is the teacher's. Or as an audit of what the teacher answers by now: who
 * claims drops it. `job`: as the store has it now. */
bool model_is_strayed(const struct model *model, const struct model_job *job);
bool model_strayed_found(struct model *model, const struct store_job *job);
/* A job that the store has since the last call and that no answer named: one of a shadow's. */
bool model_shadow_found(struct model *model, const struct store_job *found);
/* There is no job of a shadow's that has not been found. */
bool model_shadows_found(struct model *model);
int64_t model_last_id(const struct model *model); /* the highest of its jobs */
void model_version_hash(int version, char out[SHA256_HEX_BYTES]);
int model_version_named(const char *hash); /* -1: none of them */
/* Asks whether a second process that opens the database changes nothing: where the clock goes on
 * and was set back, it cuts those backoffs short that end later than if they began now. */
bool model_bears_peer(const struct model *model, int64_t now_ns);
/* The server started anew: leases begin again, and backoffs. */
void model_restart(struct model *model, int64_t now_ns);

/* ---- looking ---- */

struct model_job *model_job(struct model *model, int64_t job_id); /* NULL: unknown */
int model_suite(const struct model *model, const char *suite_id); /* -1: unknown */
bool model_terminal(const struct model_job *job);
bool model_all_terminal(const struct model *model);
/* Jobs that a claim by the pool could get now. */
uint32_t model_claimable(const struct model *model, int pool, int suite);
/* .. by this worker, which leaves planners alone. */
uint32_t model_claimable_by(const struct model *model, const struct store_worker *worker, int pool,
                            int suite);

/* The rollout that an outcome is of, by its branch. */
uint32_t model_rollout(const struct outcome *outcome);
bool model_partials(struct model *model, int64_t job_id, const struct outcome *outcomes,
                    uint32_t count);

/* ---- model_check.c: does the store show what the model says? ---- */

bool model_check_status(struct model *model, const char *suite_id,
                        const struct store_suite_status *status);
bool model_check_job(struct model *model, const struct store_job *job);
/* Everything: jobs, outcomes, ledger, suites. */
bool model_check_store(struct model *model, struct store *store);

/* For model.c and model_check.c: sets why, returns false. */
bool model_differ(struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
