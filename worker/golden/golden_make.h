/*
 * Making and proving goldens. Jobs that make them are a store's, driven by whatever worker claims
 * them; when all have ended they are collected here. What is proved is driven in this process.
 */
#ifndef SWERVE_WORKER_GOLDEN_GOLDEN_MAKE_H
#define SWERVE_WORKER_GOLDEN_GOLDEN_MAKE_H

#include "store/api/store.h"
#include "worker/golden/golden_library.h"
#include "worker/submission/submission.h"

#include <stdatomic.h>

struct golden_options {
    struct store *store;
    struct models *models; /* with the set that is tried */
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
    uint32_t doubtful; /* recordings whose verdict their futures do not say */
    uint32_t futures;  /* recordings that have futures */
};

/* Before they are sent: whether these jobs can be goldens, and the name is free. All are of one
 * planner and one world that generates its pictures. BAD_INPUT, USAGE, CONFLICT. */
enum status golden_check(struct store *store, const char *name, struct submission *submission,
                         struct error *error);

/* Keeps what the jobs of a submission, which have all ended, recorded as the set `name`, of suite
 * `suite_id` as the list tells it: the same list however often their workers were lost. A job of
 * which any rollout is flagged is left out, since it is no result. PLANNER: one has no result at
 * all. MISMATCH: one is another world's. */
enum status golden_collect(struct store *store, struct models *models, const char *name,
                           const char *suite_id, struct submission *submission,
                           struct golden_made *out, struct error *error);

/* Whether futures of the main line do not say its verdict: they are undecided, or say the other.
 * False where none were driven, so that there is nothing to say. */
bool golden_entry_doubtful(const struct golden_entry *entry);

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
