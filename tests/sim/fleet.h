/*
 * A simulated fleet: one server process with the real store, the real HTTP routes and a file on the
 * disk; worker, submitter and operator processes with the real client and its link; a network and a
 * fate between them. All of it in one thread (sim.h), each process a few fibers (fiber.h).
 *
 * What is real: store/ from the link's retries through the wire format to SQLite, and the choices
 * of scheduler/. What is simulated: time, the network, processes and their deaths, the work.
 *
 * Where invariants are checked: the backend between the routes and the store sees every call in the
 * order in which it took effect and compares it with the model (spy.c); after each restart, now and
 * then, and at the end, everything that the store shows is compared; what clients were told is kept
 * apart (struct fleet, `leased`, `told`, `acks`) and compared at the end.
 */
#ifndef SWERVE_TESTS_SIM_FLEET_H
#define SWERVE_TESTS_SIM_FLEET_H

#include "store/api/store.h"
#include "store/client/http_transport.h"
#include "store/client/retry.h"
#include "store/server/http_routes.h"
#include "store/sql/sqlite_db.h"
#include "tests/sim/fiber.h"
#include "tests/sim/sim.h"
#include "tests/store/model/model.h"

enum {
    FLEET_PROCESSES_MAX = 256,
    FLEET_LEASED_MAX = MODEL_ATTEMPTS_MAX,
    FLEET_ACKS_MAX = 4096,
    FLEET_WORKERS_MAX = 6,
    FLEET_PATH_BYTES = 256,
};

/* Faults of one seed's world; all chances are zero in the quiet tail. */
struct faults {
    double request_lost;
    double reply_lost;
    double duplicated;
    double late_claim;
    double claim_lost; /* its answer */
    double proxied;    /* a claim goes through a proxy, which holds it back */
    double slow;       /* a message takes seconds */
    double crash;      /* of the server, for each request */
    double disk_slow;
    double worker_crash; /* chances of each beat of fate, a few simulated seconds */
    double worker_pause;
    double partition;
    double server_crash;
    double clock_jump;
    double cancel;
    double false_gone; /* a living worker is reported gone */
    double versions;   /* a version of the student moves */
    double trust;      /* a slice is frozen or thawed */
};

struct fleet;

/* ---- processes (process.c) ---- */

struct task;

struct process {
    struct fleet *fleet;
    char name[LIMIT_ID_BYTES];
    struct sim_clock clock;
    struct retry_pace pace;
    struct store *link; /* its client of the server */
    bool dead;          /* killed: nothing that it does has any effect */
    int64_t paused_until_ns;
    bool deaf; /* partition: replies do not arrive */
    bool mute; /* requests do not arrive */
    int64_t timeout_ns;
    struct task *tasks;
    void *state; /* freed with the process */
};

/* A fiber of a process. */
struct task {
    struct process *process;
    struct fiber *fiber;
    void (*run)(struct task *task);
    void *context;
    uint64_t waits; /* raised when a wait ends, so that late wakes are told apart */
    bool waiting;
    bool ended;
    struct message *reply_to; /* the answer that it waits for */
    struct task *next;
};

struct process *process_create(struct fleet *fleet, const char *name);
/* The process's fibers run once more, to their ends, but reach nobody. */
void process_kill(struct process *process);
void process_start(struct process *process, void (*run)(struct task *task), void *context);
/* Inside a task: waits. False: the process was killed. */
bool task_sleep(struct task *task, int64_t ns);
int64_t process_now(const struct process *process);
/* Frees a process whose tasks have all ended. */
void process_destroy(struct process *process);

/* ---- network (process.c) ---- */

struct message {
    struct fleet *fleet;
    struct process *from;
    struct task *task;
    uint64_t incarnation; /* of the server at the other end of the connection */
    int references;
    char method[8];
    char *path;
    char *body;
    size_t body_bytes;
    bool packed;
    bool claims;
    bool proxied; /* it outlives the server's process */
    bool answered;
    bool reset; /* the connection broke */
    struct http_reply reply;
};

void message_drop(struct message *message);
/* The server's answer goes back; reply->data is taken over. */
void message_reply(struct message *message, struct http_reply *reply);
/* The client will see that the connection broke, if anything gets through to it. */
void message_reset(struct message *message);

/* ---- server (server.c) ---- */

struct spy {
    struct store store; /* first */
    struct fleet *fleet;
};

struct bug;

struct server {
    struct fleet *fleet;
    struct sim_clock clock;
    struct store *store; /* the real one */
    struct spy spy;
    struct http_context context;
    bool up;
    uint64_t incarnation;
    int64_t busy_until_ns;
    char path[FLEET_PATH_BYTES];
    /* A crash that is to happen in the middle of the present request. */
    int crash_commits; /* after so many commits; -1: none */
    int commits;
    bool snapped;
    struct model *before; /* the model before the call, and after its sweep */
    struct model *swept;
    bool uncertain; /* the call may have happened or not; if its last commit was kept, it has: */
    bool whole;
};

/* Versions of the student, which each play begins with. */
void server_add_versions(struct store *store);
void server_open(struct server *server, struct fleet *fleet, const char *path);
void server_close(struct server *server);
/* An event: context is a message. */
void server_deliver(void *context, int64_t argument);
/* Between two requests; does nothing when it is dead already. */
void server_crash(struct server *server);
/* An event: context is the server. */
void server_restart(void *context, int64_t argument);
/* The server's timer: ends the leases and backoffs that are over. */
void server_tick(struct server *server);
/* Does the store show what the model says? */
void server_compare(struct server *server, const char *when);

/* ---- where the server's database is (medium_files.c, or medium_postgres.c) ---- */

extern const bool medium_files;          /* others may meddle with its files */
extern const bool medium_clock_restarts; /* with the server's machine */

/* The bug can be planted there. */
bool medium_plays(const struct bug *bug);
/* Makes the empty store that each play begins with; false: there is no such database here, and why
 * is on stdout. */
bool medium_prepare(const char *directory);
void medium_finish(void);
void medium_begin(struct server *server);
enum status medium_open(struct server *server, const struct store_config *config,
                        struct error *error);
enum status medium_script(struct server *server, const char *sql, struct error *error);
/* Sets aside what is committed now, and brings it back behind the server's death. */
/* From here on commits are counted, since one of them is to be the server's last. */
void medium_count(struct server *server);
void medium_snap(struct server *server);
void medium_restore(struct server *server);
/* At the end, the server closed: the rows fit together. */
bool medium_holds(struct server *server, char *why, size_t why_bytes);

/* Of the connection's probe: a transaction was committed; the text of a statement. */
void server_committed(void *context);
const char *server_text(void *context, enum statement statement, const char *sql);

/* spy.c */
void spy_init(struct spy *spy, struct fleet *fleet);
/* Action of a planted bug after each call that writes. */
void spy_after(struct fleet *fleet);

/* ---- planted bugs (bugs.c) ---- */

enum { BUG_SWAPS_MAX = 3 };

/* A statement's text is changed: the first `from` becomes `to`; from NULL: all of it. */
struct bug_swap {
    enum statement statement;
    const char *from;
    const char *to;
};

struct bug {
    const char *name;
    const char *what;
    uint64_t seed; /* one that finds it, tried before the others; 0: the first does */
    struct bug_swap swaps[BUG_SWAPS_MAX];
    /* A call is done wrongly. */
    enum status (*complete)(struct fleet *fleet, const struct job_completion *completions,
                            uint32_t count, struct store_completion_result *results,
                            struct error *error);
    enum status (*heartbeat)(struct fleet *fleet, const struct store_worker *worker,
                             const struct store_progress *progress, uint32_t count,
                             int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                             struct error *error);
    /* Action of a stranger who is not refused. */
    enum status (*stranger)(struct fleet *fleet, struct error *error);
    const char *setup;  /* SQL that is run at open, */
    const char *after;  /* and after each call that writes */
    bool files;         /* planted in SQLite alone */
    bool late_claims;   /* the server takes up claims that come late */
    bool new_claim_ids; /* clients do not repeat a claim under its id */
    bool forged_audits; /* audits ask another seed than what they repeat */
    bool old_version;   /* a worker goes on with the model that it opened first */
    bool one_holder;    /* the server takes all tokens for one */
    bool restarted;     /* planted in the server's second process and those behind it */
};

const struct bug *bug_at(size_t index); /* NULL: no more */
const struct bug *bug_named(const char *name);
/* The text of a statement with the bug in it; kept until the fleet ends. */
const char *bug_text(struct fleet *fleet, enum statement statement, const char *sql);

/* ---- the fleet (fleet.c) ---- */

/* Jobs that an application was handed. */
struct leased {
    int64_t job_id;
    int64_t epoch;
};

/* Answer that a worker got to a result. */
struct told {
    int64_t job_id;
    int64_t epoch;
    bool counts; /* OK, not STALE */
};

/* Answers that a submitter got. */
struct ack {
    int64_t job_id;
    char suite_id[LIMIT_ID_BYTES];
    char key[SHA256_HEX_BYTES];
};

struct fleet_options {
    uint64_t seed;
    bool trace;
    const struct bug *bug;
    const char *directory; /* for the database */
    struct fiber_pool *fibers;
};

/* Names of the model's tenants. */
extern const char *const fleet_tenants[MODEL_TENANTS];

struct fleet {
    struct sim sim; /* first */
    const struct fleet_options *options;
    const struct bug *bug;
    struct faults faults;
    uint32_t badly_set_up[2]; /* hosts, a bit each, on which planner p0, p1 does not start */
    struct task *current;     /* whose fiber runs */
    struct server server;
    struct model *model;
    char *swapped[STATEMENT_COUNT];
    bool quiet; /* the tail: no faults any more */
    bool stopping;
    int64_t end_ns;           /* of the faults */
    int submitting;           /* suites that are not wholly submitted yet */
    int workers[MODEL_POOLS]; /* alive */
    int worker_lives;
    int suites;
    int batches; /* of each suite */
    uint32_t batch_jobs;
    uint32_t weights[MODEL_SUITES_MAX];
    const char *tenants[MODEL_SUITES_MAX]; /* of fleet_tenants; NULL: nobody says */
    enum suite_class classes[MODEL_SUITES_MAX];
    int64_t job_ms_max; /* of most jobs */
    int checkpoint_pages;
    double audit_rate;
    bool one_tier; /* nothing but object worlds in one pool: suites compete */
    bool follows;  /* students' jobs are answered by the version that is pointed to */
    bool freezes;  /* slices are frozen to the teacher and thawed */
    int process_count;
    struct process *processes[FLEET_PROCESSES_MAX];
    uint32_t leased_count;
    struct leased leased[FLEET_LEASED_MAX];
    uint32_t told_count;
    struct told told[FLEET_LEASED_MAX];
    uint32_t ack_count;
    struct ack acks[FLEET_ACKS_MAX];
    int64_t requests;
    int64_t deaths;
    int64_t deaths_in_calls;
    int64_t intrusions; /* second openers */
    int64_t takings;    /* files moved away under the server */
    int64_t moves;      /* of versions */
    int64_t events;     /* of trust */
};

/* Counts of events: a simulation in which nothing does shows nothing. */
struct fleet_figures {
    int64_t events;
    int64_t requests;
    int64_t deaths; /* of the server */
    int64_t deaths_in_calls;
    int64_t intrusions;
    int64_t takings;
    int64_t moves;    /* of versions */
    int64_t trusted;  /* events of trust */
    int64_t answered; /* jobs that the teacher answers for the student */
    int64_t in_flight;
    int64_t processes;
    int64_t claims_again;
    int64_t claims_late;
    int64_t asked_back; /* attempts, for jobs of a higher class */
    int64_t jobs;
    int64_t memoised;
    int64_t audits;
    int64_t shadows;
    int64_t shadows_done;
    int64_t attempts;
    int64_t states[JOB_STATE_COUNT];
    int64_t ends[END_COUNT];
    int64_t race_max; /* the largest lead of a suite, rollouts per weight */
};

struct fleet_result {
    bool failed;
    char why[SIM_WHY_BYTES];
    uint64_t digest;
    struct fleet_figures figures;
};

/* The identity of a result: what it is computed from, and with which planner. */
void fleet_key(const char *scenario_id, uint64_t seed, enum tier tier, const char *planner,
               char key[SHA256_HEX_BYTES]);
/* An application was handed a lease. */
void fleet_leased(struct fleet *fleet, const struct process *process,
                  const struct job_lease *lease);
/* A worker was told whether a result counts. */
void fleet_told(struct fleet *fleet, const struct job_completion *completion, enum status status);
/* A submitter was told that a job is in the store. */
void fleet_acknowledged(struct fleet *fleet, const struct job_spec *spec, int64_t job_id);
/* A worker process has ended, one way or another. */
void fleet_worker_ended(struct fleet *fleet, struct process *process,
                        const struct store_worker *worker);
void fleet_submitter_ended(struct fleet *fleet, struct process *process, int suite);

/* Plays one seed from beginning to end. */
void fleet_play(const struct fleet_options *options, struct fleet_result *result);

/* ---- strangers (strangers.c) ---- */

/* Now and then somebody opens the running server's database, who must be refused. */
void strangers_open(struct server *server);
/* Somebody moves one of its files away and puts it back: the server may not answer a call in
 * between, nor ever again. For a server that is about to die. */
void strangers_take(struct server *server);

/* ---- actors (workers.c, submitters.c) ---- */

/* A worker process's life. */
void worker_start(struct fleet *fleet, int pool);
void submitter_start(struct fleet *fleet, int suite);
/* Somebody outside calls once, as long as it takes. */
void operator_cancel(struct fleet *fleet, const char *suite_id);
void operator_gone(struct fleet *fleet, const char *worker_id);
void operator_price(struct fleet *fleet, int pool, int device, int64_t price);
/* A floor of audits, which the submitters keep. */
void operator_floor(struct fleet *fleet, double rate);
/* The slice of a weather is frozen, or thawed where it is. */
void operator_trust(struct fleet *fleet, int weather);
void operator_version(struct fleet *fleet, int version, enum model_state to,
                      int64_t canary_percent);

#endif
