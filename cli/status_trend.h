/*
 * Rates of runs over time, for `swerve status --trend`: one series for each suite, planner, rig and
 * world, whose rates can be held against each other. Suites are one where they are runs of one
 * name.
 */
#ifndef SWERVE_CLI_STATUS_TREND_H
#define SWERVE_CLI_STATUS_TREND_H

#include "store/api/store.h"

struct status_trend {
    uint32_t count;
    struct status_trend_row *rows; /* owned */
};

/* Takes the rates of a run, to be called from the oldest to the newest: those of its status, and of
 * a suite of several planners each one's. */
enum status status_trend_add(struct status_trend *trend, const char *suite_id,
                             const struct store_suite_status *status,
                             const struct store_planner_mains *planners, uint32_t planner_count,
                             struct error *error);

/* Series behind each other, named, oldest rate first, and how far each moved. */
void status_trend_print(const struct status_trend *trend);
void status_trend_finish(struct status_trend *trend);

#endif
