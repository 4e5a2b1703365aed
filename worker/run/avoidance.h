/*
 * Avoidance: until when ego could have avoided what went wrong in a drive. The drive is run again
 * with a fork every few ticks in which ego brakes or swerves; the last fork that stays safe is the
 * last moment. The past is simulated once, so a sweep costs little more than its ends, and unlike a
 * bisection it does not take for granted that earlier is better.
 *
 * Only what ego controls is swept: a dry road or another driver who stops is another world, not a
 * way out. And a way out counts from the tick on from which ego's sensors see the agent that it
 * will touch without a break (engine/sensors/visible.h): before, nobody could have known.
 *
 * The same sweep over a drive that is safe says what the manoeuvre breaks: its harm.
 */
#ifndef SWERVE_WORKER_RUN_AVOIDANCE_H
#define SWERVE_WORKER_RUN_AVOIDANCE_H

#include "base/status.h"
#include "schemas/outcome.h"
#include "schemas/scenario.h"
#include "worker/run/runner.h"

enum avoidance_manoeuvre {
    AVOIDANCE_BRAKE = 0,   /* 8 m/s2, or what the tyres give, to a stop */
    AVOIDANCE_SWERVE_LEFT, /* 2.5 m within 1.5 s, then straight on */
    AVOIDANCE_SWERVE_RIGHT,
    AVOIDANCE_MANOEUVRES
};

extern const char *const avoidance_names[AVOIDANCE_MANOEUVRES];

struct avoidance {
    bool same;             /* the drive, run again, is what the outcome says; else nothing holds */
    bool safe;             /* the drive itself, run again */
    uint32_t end_tick;     /* of the first contact, else the last one */
    int32_t agent;         /* touched first, -1: none */
    uint32_t visible_tick; /* from which it stays in sight; 0 without an agent, UINT32_MAX never */
    uint32_t step_ticks;   /* from fork to fork */
    uint32_t forks[AVOIDANCE_MANOEUVRES];
    uint32_t safe_forks[AVOIDANCE_MANOEUVRES];
    uint32_t last_tick[AVOIDANCE_MANOEUVRES]; /* the last safe fork, UINT32_MAX: none */
};

/* Whether a manoeuvre was a way out that ego could have known of. */
bool avoidance_in_time(const struct avoidance *found, enum avoidance_manoeuvre manoeuvre);

/* Sweeps one drive in a runner that is idle and of the outcome's tier and planner. A drive that
 * comes out differently (trace_hash) is another planner's or simulation's: not `same`. */
enum status avoidance_sweep(struct runner *runner, const struct scenario *scenario,
                            const struct outcome *outcome, struct avoidance *out,
                            struct error *error);

#endif
