/*
 * Deadlines of interactive sessions: which session's tick is computed next, by how much of a model,
 * and which sessions are let in. Pure functions: costs are what was measured, the clock is an
 * argument.
 *
 * Ticks are served by the earliest deadline (EDF); of equal deadlines the one that came first. A
 * tick gets the best tier that ends by its deadline and lets the next tick of every other session,
 * due already or soon, end by its own at the lowest tier that it accepts. A tick is never broken
 * off, so what is due soon counts. Where not even the lowest one is on time, it is late. A better
 * tier than the lowest leaves a margin besides, which every late tick widens and every other one
 * narrows a little: it settles where so few are late as is aimed at, however heavy the tail of the
 * costs is beyond their 95th percentile.
 * Nothing is shed from a session that was let in; sessions are refused before.
 */
#ifndef SWERVE_SCHEDULER_DEADLINE_H
#define SWERVE_SCHEDULER_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DEADLINE_TIERS_MAX = 8,
    DEADLINE_COSTS_MAX = DEADLINE_TIERS_MAX,
    DEADLINE_SESSIONS_MAX = 64,
    DEADLINE_SAMPLES = 128,   /* of a part's cost, the newest ones */
    DEADLINE_KNOWN = 20,      /* measurements of a part, before which nobody is refused by it */
    DEADLINE_GOOD_TICKS = 20, /* in a row, after which a pool that was late lets sessions in */
};

/* Share of the executor's time that sessions may need at their lowest tiers. */
#define DEADLINE_LOAD_MAX 0.8
/* A pool lets nobody in once more than this share of its ticks was late, in .. */
#define DEADLINE_LATE_MAX 0.01
#define DEADLINE_LATE_NS (60 * INT64_C(1000000000))

/* Share of ticks that may be late by better tiers having been chosen: the margin's aim; by how much
 * a late tick widens it, and how wide it gets. */
#define DEADLINE_LATE_AIM 0.004
#define DEADLINE_MARGIN_STEP_MS 2.0
#define DEADLINE_MARGIN_MAX_MS 200.0

/* Parts of what a tick costs. */
enum deadline_part {
    DEADLINE_CONTEXT = 0, /* before the first step: physics, conditioning, what was seen before */
    DEADLINE_STEP,        /* each step of the sampler */
    DEADLINE_OVERHEAD,    /* after the last: pictures, judging, sending */
    DEADLINE_PARTS
};

/* Way in which a frame is made. Tiers are a list, the best one first. */
struct deadline_tier {
    uint32_t costs; /* that hold for it, below DEADLINE_COSTS_MAX: tiers may share them */
    uint32_t steps; /* of a sampler, each of which costs a DEADLINE_STEP; 0: none does */
};

/* Newest measurements of one part, and their 95th percentile. */
struct deadline_cost {
    double samples_ms[DEADLINE_SAMPLES]; /* in a ring */
    double sorted_ms[DEADLINE_SAMPLES];
    uint64_t count; /* ever */
    double p95_ms;  /* 0: never measured */
};

struct deadline_pool {
    uint32_t tier_count;
    struct deadline_tier tiers[DEADLINE_TIERS_MAX];
    struct deadline_cost costs[DEADLINE_COSTS_MAX][DEADLINE_PARTS];
    /* Ticks of the running and of the last whole period of DEADLINE_LATE_NS. */
    int64_t period_began_ns;
    uint32_t period_ticks, period_lates;
    bool closed;         /* it lets nobody in */
    uint32_t good_ticks; /* on time, in a row */
    double margin_ms;    /* that better tiers leave */
};

/* A session as the pool sees it. */
struct deadline_session {
    int64_t period_ns;   /* between its ticks */
    int64_t limit_ns;    /* from a tick's moment to its deadline */
    uint32_t least;      /* the lowest tier that it accepts: an index */
    bool goes_on;        /* it has a next tick .. */
    int64_t due_ns;      /* .. which may be served from then on .. */
    int64_t deadline_ns; /* .. and is late after that */
};

struct deadline_choice {
    int32_t session; /* -1: none waits */
    uint32_t tier;   /* index */
    bool late;       /* not even its lowest tier is expected to be on time */
};

/* A measurement of a part of a tick, of one step for DEADLINE_STEP. */
void deadline_observe(struct deadline_pool *pool, uint32_t costs, enum deadline_part part,
                      double cost_ms);

/* Forgets what was measured: nobody sits any more, and what an idle pool measured last would refuse
 * those who come for ever. */
void deadline_forget(struct deadline_pool *pool);

/* 95th percentile of what a tick costs in a tier. */
double deadline_cost_ms(const struct deadline_pool *pool, uint32_t tier);

/* Share of the executor that the sessions and one more (NULL: none) need at their lowest tiers, 1:
 * all of its time. */
double deadline_load(const struct deadline_pool *pool, const struct deadline_session *sessions,
                     uint32_t count, const struct deadline_session *more);

enum deadline_refusal {
    DEADLINE_LET_IN = 0,
    DEADLINE_FULL,  /* there are as many sessions as a pool may have */
    DEADLINE_SLOW,  /* its lowest tier takes longer than its deadline */
    DEADLINE_LATE,  /* more than DEADLINE_LATE_MAX of the last minute's ticks were late */
    DEADLINE_LADEN, /* all sessions would need more than DEADLINE_LOAD_MAX at their lowest tiers */
};
/* Why a session is refused. */
enum deadline_refusal deadline_refusal(const struct deadline_pool *pool,
                                       const struct deadline_session *sessions, uint32_t count,
                                       const struct deadline_session *more);

/* The tick to serve next, at most DEADLINE_SESSIONS_MAX sessions. */
struct deadline_choice deadline_pick(const struct deadline_pool *pool,
                                     const struct deadline_session *sessions, uint32_t count,
                                     int64_t now_ns);

/* Whether a tick that is nobody's, of this tier, may be served now: no session's next tick is late
 * by it that would be on time without, at the lowest tiers that they accept. */
bool deadline_room(const struct deadline_pool *pool, const struct deadline_session *sessions,
                   uint32_t count, uint32_t tier, int64_t now_ns);

/* A tick has been served. */
void deadline_served(struct deadline_pool *pool, int64_t now_ns, bool late);

#endif
