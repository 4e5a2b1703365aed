/*
 * `swerve futures --settle`: where student and teacher of a suite gave different verdicts, workers
 * drive the futures from shortly before the two drives part, once, as jobs of the suite
 * (worker/careful/futures_job.h), and their answer is told.
 */
#ifndef SWERVE_CLI_FUTURES_SETTLE_H
#define SWERVE_CLI_FUTURES_SETTLE_H

#include "store/api/store.h"
#include "worker/planner/planner.h"

#include <stdbool.h>
#include <stdint.h>

enum { SETTLE_DRAWS = 16 };

/* All borrowed. */
struct settle_options {
    struct store *store;
    const char *url; /* of the store, for workers */
    const char *suite;
    const char *planner; /* whose disagreements alone; NULL: each planner's */
    int64_t draws;
    int64_t workers; /* processes that drive here; 0: workers elsewhere do */
    int64_t planner_deadline_ms;
    const struct planner_confinement *confinement;
    bool json;
};

/* Returns the exit code: 0, also where some are undecided; else as cli_fail(). */
int settle(const struct settle_options *options);

#endif
