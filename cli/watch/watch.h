/*
 * Watch: a canary of a tier beside the promoted version, over the outcomes that a store got since
 * it became one; scheduler/rollback.h decides, and who has to go is sent away. What was seen
 * is kept between two sweeps, so that a sweep reads what is new; a watch that begins anew reads
 * everything since the canary began and decides the same.
 *
 * A canary that has to go is recorded as evaluated and not passed, with what was measured, and
 * retired: its queued jobs are the promoted version's in the same transaction, and it takes no
 * jobs again without another evaluation. Nobody else is moved: the promoted version, whose files
 * workers still have, answered the other jobs all the time.
 */
#ifndef SWERVE_CLI_WATCH_WATCH_H
#define SWERVE_CLI_WATCH_WATCH_H

#include "scheduler/rollback.h"
#include "store/api/store.h"

struct watch;

enum watch_result {
    WATCH_IDLE = 0, /* no canary, or none any more at the end of the look */
    WATCH_STAYS,
    WATCH_ROLLED_BACK,
};

/* Findings of a sweep; borrowed from the watch until the next one. */
struct watch_report {
    enum watch_result result;
    enum tier tier;
    enum rollback_cause cause;
    const struct model_version *canary;
    const struct model_version *promoted;
    const struct rollback_side *canary_side;
    const struct rollback_side *promoted_side;
    int64_t jobs_moved; /* queued jobs that the promoted version answers since */
};

/* `tier`: student or teacher. A teacher is compared by what it drove, audits included, and by its
 * agreement with the students that it audited. `actor`: who says so in events (a server says the
 * token's name); borrowed. */
enum status watch_create(const struct rollback_policy *policy, enum tier tier, const char *actor,
                         struct watch **out, struct error *error);
void watch_destroy(struct watch *watch); /* accepts NULL */

/* One look, and what follows from it. What fails leaves the watch as a look that saw less. */
enum status watch_sweep(struct watch *watch, struct store *store, struct watch_report *out,
                        struct error *error);

/* One line about a report, in `out`; returns it. */
enum { WATCH_TEXT_BYTES = 512 };
const char *watch_text(const struct watch_report *report, char out[WATCH_TEXT_BYTES]);

#endif
