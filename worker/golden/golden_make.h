/*
 * Making and proving goldens: drives jobs in this process, without leases, and keeps or compares
 * what comes of them.
 */
#ifndef SWERVE_WORKER_GOLDEN_GOLDEN_MAKE_H
#define SWERVE_WORKER_GOLDEN_GOLDEN_MAKE_H

#include "store/api/store.h"
#include "worker/golden/golden_library.h"
#include "worker/run/submission.h"

#include <stdatomic.h>

struct golden_options {
    struct store *store;
    struct models *models; /* with the world that generates, or the set that is tried */
    const char *device;    /* as on the command line; NULL: auto */
    uint32_t slot_count;
    uint32_t thread_count;
    const struct planner_confinement *confinement; /* NULL: none */
    int64_t planner_deadline_ms;
    const atomic_int *stop; /* not 0: no further job begins; NULL: nobody stops */
    /* Told after each job; may be NULL. */
    void (*progress)(void *context, uint32_t done, uint32_t count);
    void *context;
};

struct golden_made {
    struct golden_set set;            /* as the store has it */
    uint32_t left_out;                /* jobs with a flagged rollout or a planner that failed */
    char reason[OUTCOME_ERROR_BYTES]; /* of the first of them */
    int64_t device_ns, ticks, rollouts;
};

/* Drives the jobs of a submission, all of one planner and one world that generates its pictures,
 * and keeps them as the set `name`. A job of which any rollout is flagged is left out, since it is
 * no result. BAD_INPUT, USAGE: these jobs cannot be goldens. Nothing but artifacts that nothing
 * refers to is left in the store when it fails. */
enum status golden_make(const struct golden_options *options, const char *name,
                        struct submission *submission, struct golden_made *out,
                        struct error *error);

struct golden_tried {
    uint32_t recordings;
    uint32_t damaged; /* recordings that cannot be read */
    uint32_t differ;  /* that come out otherwise when their planner is shown them */
    int64_t rollouts, device_ns, ticks;
    char reason[OUTCOME_ERROR_BYTES]; /* of the first that is damaged or differs */
};

/* Reads every recording of a set that `models` was lent, then shows it to the planner that was
 * recorded: each rollout's trace hash, which holds a digest of every picture, has to be the
 * generation's. STATUS_PLANNER: that planner is not here any more, or is another now. */
enum status golden_verify(const struct golden_options *options, struct golden_tried *out,
                          struct error *error);

#endif
