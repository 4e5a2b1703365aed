/*
 * Drift: whether the measures of drives get worse, long before one of them is beyond its bound.
 * Pure functions: the same drives in the same order give the same alarm.
 *
 * A drive is held against the earlier drives of the same scenario, so that neither how hard
 * scenarios are nor their order in a suite says anything. Its sequential rank among them, halves
 * for ties, is as likely to be any while nothing changes, whatever the measure's distribution
 * (Barndorff-Nielsen, Skand. Aktuarietidskr. 46, 1963). A cumulative sum (Page, Biometrika 41,
 * 1954) adds log(2 u) of the rank's share u, the likelihood ratio of drives that are each as bad as
 * the worse of two (Lehmann, Ann. Math. Stat. 24, 1953). The mean of 2 u over the ranks is 1, so
 * the mean number of healthy drives before the sum passes log(N) is at least N (Lorden, Ann. Math.
 * Stat. 42, 1971). Drives that repeat one exactly add 0.
 */
#ifndef SWERVE_SCHEDULER_DRIFT_H
#define SWERVE_SCHEDULER_DRIFT_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Mean number of healthy drives of a slice before one of its measures sounds, at the least. */
#define DRIFT_FALSE_ALARM_DRIVES 1e6

/* One measure of one drive. */
struct drift_fact {
    uint64_t scenario; /* drives with the same number are compared */
    double value;      /* greater is worse; NAN: it does not apply */
};

/* Evidence that each drive [count], in order, gives of a change for the worse: log(2 u); NAN: it
 * does not apply, or is the first of its scenario. evidence[count]. NO_MEMORY. */
enum status drift_evidence(const struct drift_fact *facts, uint32_t count, double *evidence,
                           struct error *error);

/* State of a slice's monitor of one measure. Begins as zeros. */
struct drift_monitor {
    int64_t drives; /* with evidence */
    double sum;     /* of evidence, never below 0 */
    bool alarm;     /* it sounded, and goes on sounding */
    int64_t alarm_drives;
    int64_t alarm_outcome;
    int64_t alarm_at_ms; /* 0: not known */
};

/* Adds the evidence of a drive; NAN says nothing. `measures`: how many monitors the slice has. */
void drift_monitor_add(struct drift_monitor *monitor, uint32_t measures, double evidence,
                       int64_t outcome_id, int64_t at_ms);

#endif
