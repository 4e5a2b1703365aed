/*
 * Progress: how long a suite still takes, from how fast its parts have gone. Pure.
 *
 * A part is a suite's jobs of one pool and tier. Its pace is the time that some of its jobs ran
 * over the planned ticks of those that have ended, so workers, planners and whatever else shares
 * the machines are in it, and an object world's seconds say nothing of a teacher's hours. Before
 * the first of them has ended, the pace is an earlier suite's by the same planner (one behind a
 * network is a thousand times slower than a built-in one), else that of those which run: the ticks
 * behind them in the time since the first was claimed.
 */
#ifndef SWERVE_STORE_API_PROGRESS_H
#define SWERVE_STORE_API_PROGRESS_H

#include "schemas/outcome.h"
#include "store/api/store.h"

#include <stdint.h>

struct progress_part {
    int64_t pool; /* parts of one pool run one after the other, pools side by side */
    enum tier tier;
    int64_t jobs_open;
    int64_t ticks; /* planned */
    int64_t ticks_open;
    int64_t wall_ns;
    /* Of jobs that are being driven: ticks behind them, and the time since the first of them was
     * claimed. */
    int64_t ticks_running;
    int64_t running_ns;
    /* Of the newest other suite with this pool, tier and planner, for a part of which nothing has
     * ended; 0: there is none. */
    int64_t other_ticks;
    int64_t other_wall_ns;
};

/* Time until every open job has ended; -1: not known. */
int64_t progress_eta_ms(const struct progress_part *parts, uint32_t count);

/* Share of the planned ticks that are behind, 0..1; NAN: none are planned. */
double progress_share(const struct store_suite_status *status);

/* "[#####...............]  27% of ticks"; "": none are planned. Returns out. */
enum { PROGRESS_BAR_BYTES = 64 };
const char *progress_bar_text(const struct store_suite_status *status,
                              char out[PROGRESS_BAR_BYTES]);

enum { PROGRESS_TEXT_BYTES = 32, PROGRESS_RATES_BYTES = 128 };

/* "40 s", "12 min", "3.4 h"; "?" for what is not known. */
const char *progress_eta_text(int64_t eta_ms, char out[PROGRESS_TEXT_BYTES]);

/* "  object 96%", the share of main lines that pass in each tier that has a result. Returns out. */
const char *progress_rates_text(const struct store_suite_status *status,
                                char out[PROGRESS_RATES_BYTES]);

/* Jobs of a suite that ended without an answer: dead, but for audits, or cancelled. */
static inline int64_t progress_unanswered(const struct store_suite_status *status)
{
    return status->jobs[JOB_DEAD] - status->audits_dead + status->jobs[JOB_CANCELLED];
}

/* Main lines without a result. */
static inline int64_t progress_lacking(const struct store_mains *mains)
{
    return mains->verdicts[VERDICT_FLAGGED] + mains->verdicts[VERDICT_INVALID] + mains->no_answer +
           mains->cancelled + mains->waiting;
}

#endif
