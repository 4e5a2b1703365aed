/*
 * Lease keeper: one thread that renews the worker's lease, whatever the simulation is doing, and
 * knows when it is lost. Time to live counts from when a heartbeat was sent, on a clock that runs
 * through suspend.
 *
 * It is also the watchdog of code that may never return: see lease_keeper_watch.
 */
#ifndef SWERVE_WORKER_RUN_LEASE_KEEPER_H
#define SWERVE_WORKER_RUN_LEASE_KEEPER_H

#include "base/clock.h"
#include "store/api/store.h"

struct lease_keeper;

/* The store is borrowed. stuck_limit_ms: see lease_keeper_watch. */
enum status lease_keeper_start(struct store *store, const struct store_worker *worker,
                               int64_t stuck_limit_ms, const struct clock *clock,
                               const struct logger *logger, struct lease_keeper **out,
                               struct error *error);
void lease_keeper_stop(struct lease_keeper *keeper); /* accepts NULL; joins the thread */

/* Jobs that the worker holds now, to be sent with the next heartbeat; at most LIMIT_CLAIM_JOBS.
 */
void lease_keeper_report(struct lease_keeper *keeper, const struct store_progress *progress,
                         uint32_t count);

/* From now until the next call, the caller is inside this planner (a spec; cut when long); "": no
 * longer inside any. When that lasts longer than stuck_limit_ms the keeper logs an error and ends
 * the process with _exit(6): nothing else gets control back from code that hangs. */
void lease_keeper_watch(struct lease_keeper *keeper, const char *planner);

/* The lease was renewed by a claim that was sent at sent_ns. */
void lease_keeper_renewed(struct lease_keeper *keeper, int64_t sent_ns, int64_t ttl_ms);

/* Whether the lease has run out: what is held may be somebody else's now. */
bool lease_keeper_lost(struct lease_keeper *keeper);

/* When the store last answered a heartbeat, ns of the clock; 0: never. */
int64_t lease_keeper_answered_ns(struct lease_keeper *keeper);

/* An attempt that counts no more, or is to be handed back. */
struct lease_keeper_stop {
    int64_t job_id;
    int64_t epoch;
};

/* Moves the attempts that the store listed since the last call into stops[max]; returns how many.
 * They are those that a heartbeat reported: a later attempt at the same job is none of them. */
uint32_t lease_keeper_stopped(struct lease_keeper *keeper, struct lease_keeper_stop *stops,
                              uint32_t max);

#endif
