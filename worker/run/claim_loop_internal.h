/*
 * Claim loop internals, shared by claim_loop.c (claims, rounds, silence of the store),
 * claim_loop_report.c (completions and what the lease keeper hears), claim_loop_partial.c (what is
 * finished of jobs that go on) and claim_loop_clip.c (clips of training data). Nobody else includes
 * this.
 *
 * Invariant: a claimed job is counted in running_count until the store took its completion, and is
 * in one place: a runner of the cache, `waiting`, `unsent`, `clips`, or `pending`. One thread alone
 * touches all this.
 */
#ifndef SWERVE_WORKER_RUN_CLAIM_LOOP_INTERNAL_H
#define SWERVE_WORKER_RUN_CLAIM_LOOP_INTERNAL_H

#include "worker/run/claim_loop.h"
#include "worker/run/lease_keeper.h"
#include "worker/run/prepared_cache.h"
#include "worker/run/runner_cache.h"
#include "worker/run/unstarted.h"

enum {
    CLAIM_LOOP_FAILURES_TOLD = 10,     /* failed attempts that a drain prints */
    CLAIM_LOOP_COMPLETION_BATCH = 32,  /* at most this many wait for one commit */
    CLAIM_LOOP_FAULT_PAUSE_MS = 100,   /* no claims after a fault of this host, doubled each time */
    CLAIM_LOOP_BUSY_DOUBLINGS_MAX = 6, /* of that pause, while a clip's model is not to be had */
    CLAIM_LOOP_FAULTS_MAX = 8,         /* of this host, in a row: then the loop ends */
    CLAIM_LOOP_FAULTS_JOB = 3,   /* times that this host gives a job back before it is blamed */
    CLAIM_LOOP_FAULTY_JOBS = 64, /* of which these are counted */
};

/* A job whose planner starts. */
struct claim_waiting {
    struct job_lease lease;
    bool given_up;
};

/* A job that makes a clip and waits for its turn. */
struct claim_clip {
    struct job_lease lease;
    struct prepared *prepared;
    struct clip_made made; /* for a store that is silent; no data: it is made yet */
    bool cancelled;
    struct claim_clip *next;
};

struct claim_loop {
    const struct claim_loop_config *config;
    const struct clock *clock;
    struct lease_keeper *keeper;
    struct prepared_cache *prepared_scenarios;
    struct runner_cache cache;
    struct job_lease *leases; /* [LIMIT_CLAIM_JOBS] */
    int64_t claim_id;         /* of the next claim */
    uint32_t claim_room;      /* most jobs that were asked for under that id */
    int64_t nothing_ns;       /* when the last claim found nothing; 0: it found jobs */
    uint32_t running_count;   /* jobs claimed and not yet reported */
    struct job_completion pending[CLAIM_LOOP_COMPLETION_BATCH];
    struct store_planner pending_planners[CLAIM_LOOP_COMPLETION_BATCH]; /* of their jobs */
    uint32_t pending_count;
    int64_t pending_since_ns;
    int64_t reported_ns;
    int64_t leaves_ns; /* when what still runs is handed back; 0: nobody asked to leave */
    int64_t idle_wait_ms;
    uint32_t idle_doublings;
    /* Finished, but their artifacts did not reach the store yet; counted as running. */
    struct job_run *unsent[LIMIT_CLAIM_JOBS];
    uint32_t unsent_count;
    struct claim_clip *clips; /* counted as running, too */
    bool clips_go_back;
    /* Jobs whose planners start, counted as running too; what is claimed meanwhile is of others. */
    struct claim_waiting *waiting; /* [LIMIT_CLAIM_JOBS] */
    uint32_t waiting_count;
    bool waiting_goes_back;
    struct store_planner without[STORE_WITHOUT_MAX]; /* of a claim */
    int64_t offline_ns; /* when the store was found silent; 0: it answers */
    int64_t silent_ns; /* since when nothing was written; heartbeats may have been answered since */
    bool alone;        /* poison jobs are about: one job at a time, nothing held beside it */
    bool runners_full; /* a job had to be released: no claims until a runner is idle */
    bool made_way;     /* a job was given up for another one, which is to be claimed at once */
    /* Of a drain: since when there is nothing to claim (0: there is), and whether it waits then for
     * jobs that may come back; that is said once. */
    int64_t drained_ns;
    bool awaits;
    bool awaits_told;
    bool looked_again;     /* nothing was left, and a claim after that found nothing either */
    int64_t queued_count;  /* jobs that a drain found queued and not to be claimed; 0: none */
    int64_t queued_ns;     /* since when so many */
    uint32_t failed_count; /* attempts that broke here */
    bool keeps_nothing;    /* the store takes no partial outcomes */
    struct unstarted unstarted;
    struct error refusal; /* why the loop ends: the store, or this host; OK: it goes on */
    /* Faults of this host since it last finished a job, and when it claims again. */
    uint32_t fault_count;
    int64_t paused_until_ns;
    uint32_t busy_doublings; /* of the pause for a model, since a clip was made */
    struct {
        int64_t job_id;
        uint32_t times;
    } faulty_jobs[CLAIM_LOOP_FAULTY_JOBS];
    uint32_t faulty_next;
    struct claim_loop_stats stats;
};

/* The job waits for its planner, which starts. */
void claim_loop_wait(struct claim_loop *loop, const struct job_lease *lease);
/* Fills loop->without: planners that do not start here, and those that start now. Their number. */
uint32_t claim_loop_leave_alone(struct claim_loop *loop);

/* Adds a completion for a leased job, of no kind yet. There must be room. */
struct job_completion *claim_loop_pending_add(struct claim_loop *loop,
                                              const struct job_lease *lease);
/* Frees what waits, without sending it. */
void claim_loop_pending_clear(struct claim_loop *loop);
/* Sends what waits. STATUS_TIMEOUT: the store is silent, and it goes on waiting. */
enum status claim_loop_flush(struct claim_loop *loop, struct error *error);
/* Sends what waits when another completion would find no room. */
enum status claim_loop_make_room(struct claim_loop *loop, struct error *error);

/* The attempt broke. */
void claim_loop_fail_completion(struct claim_loop *loop, struct job_completion *completion,
                                const char *text);

/* The attempt broke, or could not begin: what broke it decides whether that is charged to the job.
 * Completes it either way. */
void claim_loop_end_broken(struct claim_loop *loop, struct job_completion *completion,
                           const struct job_lease *lease, enum status status, const char *text);

/* Whether this host has had a fault and claims nothing for a while. */
bool claim_loop_paused(const struct claim_loop *loop);

/* Turns what left the runners into completions, and sends those when their time has come, or at
 * once with `force`. */
enum status claim_loop_collect(struct claim_loop *loop, bool force, struct error *error);

/* Cost of the attempt, but for rollouts that go on. */
void claim_loop_add_costs(struct job_completion *completion, const struct job_run *job);

/* A full or broken disk of the store's: no fault of the job, and the next one will meet it too. */
bool claim_loop_store_refuses(enum status status);

/* Puts the traces of finished rollouts whose outcomes the store does not keep yet; hash is written
 * when there are any. */
enum status claim_loop_put_traces(struct claim_loop *loop, const struct job_run *job,
                                  const struct trace *main_trace, char hash[SHA256_HEX_BYTES],
                                  struct error *error);

/* Hands over what is finished of jobs that have gone on for a while since they began or last handed
 * something over; with `all`, of every job. STATUS_TIMEOUT: the store is silent. */
enum status claim_loop_hand_over(struct claim_loop *loop, bool all, struct error *error);

/* Hands over what is finished of an attempt that the store wants stopped, and stops it before its
 * next tick: it comes back as released. Where its result counts no more, nothing of it is taken.
 * Once a store was silent, nothing more is handed over until it answers. */
void claim_loop_give_up(struct claim_loop *loop, int64_t job_id, int64_t epoch);

/* Notes a call that the store did not answer: what needs it waits until it does. */
void claim_loop_fell_silent(struct claim_loop *loop, const struct error *error);

/* The store is silent: an operating fault with a policy. What needs it waits until a heartbeat,
 * which another thread goes on sending, was answered; the simulation goes on. Consumes
 * STATUS_TIMEOUT unless it has lasted too long. */
enum status claim_loop_note_offline(struct claim_loop *loop, enum status status,
                                    struct error *error);
/* Whether the store is (still) silent. Not OK: for too long. */
enum status claim_loop_check_offline(struct claim_loop *loop, bool *offline, struct error *error);

/* Device time between checkpoints. */
int64_t claim_loop_checkpoint_ns(const struct claim_loop_config *config);

/* Takes over what earlier attempts at the job finished, and how far its main line came. */
enum status claim_loop_restore(struct claim_loop *loop, struct job_run *job, struct error *error);

/* Tells the lease keeper what is held now, for the next heartbeat. */
void claim_loop_report_to_keeper(struct claim_loop *loop);

/* The job's planner did not start, now or before. */
void claim_loop_hand_back_unstarted(struct claim_loop *loop, const struct job_lease *lease,
                                    const struct error *why);

/* Takes the scenario over, on failure too. */
enum status claim_loop_clip_add(struct claim_loop *loop, const struct job_lease *lease,
                                struct prepared *prepared, struct error *error);
/* Makes one clip, the first that waits; before that releases those that are cancelled, and when
 * they go back all but one that is made. goes_on(loop): as of a clip_task. STATUS_TIMEOUT: the
 * store is silent, and what is made waits on. */
enum status claim_loop_clip_make(struct claim_loop *loop, bool (*goes_on)(void *loop), bool *busy,
                                 struct error *error);
/* Forgets them, and closes their planners. */
void claim_loop_clips_drop(struct claim_loop *loop);

/* Destroys a job's run; its scenario goes back into the cache. */
void claim_loop_drop_job(struct claim_loop *loop, struct job_run *job);

#endif
