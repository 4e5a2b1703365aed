/*
 * Hand-backs: which leased jobs make way, at a tick boundary, for jobs of a higher class that wait.
 * Pure: what waits in a pool, as the store saw it last, and the jobs that one worker holds.
 *
 * A job makes way for one of its own tenant alone, of a class above its own, and one job for one.
 * It was claimed before that class began to wait: what is claimed later has its class's turn
 * (turns.h), and keeps its slot. It makes way HANDBACK_TIMES_MAX times at the most, and not in the
 * last HANDBACK_LAST_PART of its planned ticks. Lower classes go first, then jobs with fewer ticks
 * behind them. What has only just begun to wait is left to workers that are idle.
 */
#ifndef SWERVE_STORE_TURNS_HANDBACK_H
#define SWERVE_STORE_TURNS_HANDBACK_H

#include "base/units.h"
#include "schemas/job.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    HANDBACK_TIMES_MAX = 3,
    HANDBACK_LAST_PART = 8,    /* an eighth */
    HANDBACK_SUITES_MAX = 128, /* suites of a pool that are looked at, the newest */
};
#define HANDBACK_IDLE_NS (100 * NS_PER_MS) /* that a job waits for an idle worker first */
#define HANDBACK_LOOK_NS (200 * NS_PER_MS) /* between two looks at what waits in a pool */

/* A suite with claimable jobs. */
struct handback_waiting {
    int64_t suite;
    int64_t tenant; /* 0: nobody's */
    enum suite_class of_class;
    int64_t jobs;     /* that nobody was asked to make way for yet */
    int64_t since_ns; /* wall clock; since when its tenant has had waiting jobs of its class */
};

/* Suites that wait in one pool, but for mining: that is above nothing. Begins as zeros. */
struct handback_look {
    int64_t pool;
    int64_t at_ns; /* of the look, monotonic; 0: none yet */
    uint32_t count;
    struct handback_waiting rows[HANDBACK_SUITES_MAX];
};

/* Places that were handed back for a suite's jobs and that none of them has taken yet. They are
 * taken before anybody's turn: whoever gave a place away for a job of his own is not to lose it to
 * another tenant, who would have his turn. */
struct handback_owed {
    int64_t pool, suite;
    int64_t jobs; /* 0: free */
};

/* A leased job. */
struct handback_job {
    int64_t id;
    int64_t epoch;
    int64_t tenant;
    enum suite_class of_class;
    int64_t claimed_ns;    /* wall clock; 0: not known */
    int64_t ticks;         /* driven, as its worker said last */
    int64_t ticks_planned; /* 0: not known */
    int64_t times;         /* that it was asked for, this attempt apart */
    bool asked;            /* for this attempt, too */
    int64_t for_suite;     /* set: for whose job it makes way; 0: it goes on */
};

/* Takes over, into a new look at a pool, since when each row's class has waited: as the look before
 * says, or since began_ns where it had none of that class and tenant. */
void handback_keep_since(struct handback_look *now, const struct handback_look *before,
                         int64_t began_ns);

/* Whether any class that waits there is above one of the jobs. */
bool handback_concerns(const struct handback_look *look, const struct handback_job *jobs,
                       uint32_t count);

/* Sets for_suite of the jobs that make way now, and takes them off what waits; jobs that were asked
 * for before stay so. now_ns: the wall clock. The jobs are brought into another order. */
void handback_choose(struct handback_look *look, struct handback_job *jobs, uint32_t count,
                     int64_t now_ns);

/* One place more; where there is no room it is nobody's. owed [HANDBACK_SUITES_MAX]. */
void handback_owe(struct handback_owed *owed, int64_t pool, int64_t suite);
/* The pool's next one, from NULL on; NULL: no more. */
struct handback_owed *handback_owed_next(struct handback_owed *owed, int64_t pool,
                                         struct handback_owed *after);

#endif
