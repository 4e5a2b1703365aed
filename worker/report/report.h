/*
 * Report: one self-contained HTML file of a suite: the whole in a paragraph, verdicts by slice with
 * confidence intervals, miles and $/mile by tier and pool, failures with their criteria, paths and
 * strips of keyframes, branches side by side. Frames are redrawn from the traces; nothing is
 * simulated but what a careful driver would have done where a planner failed. Bounded however long
 * the suite is: caps with a note (report_internal.h).
 */
#ifndef SWERVE_WORKER_REPORT_REPORT_H
#define SWERVE_WORKER_REPORT_REPORT_H

#include "store/api/store.h"
#include "worker/report/summary.h"

/* Writes to a temporary name beside `path`, then renames: a reader never sees half a report. The
 * summary is that of the suite. store_url (NULL: unknown) only appears in the commands shown; one
 * that carries credentials does not. IO: the file cannot be written; errors of the store. */
enum status report_write(struct store *store, const char *store_url, const char *suite_id,
                         const struct summary *summary, const char *path, struct error *error);

/* For each main line that ended unsafe, whether a careful driver would have avoided it: a list of
 * {"outcome", "scenario_id", "seed"} and the members of careful_json(). They are driven here. */
enum status report_careful_json(struct store *store, const struct summary *summary, json_t **out,
                                struct error *error);

/* Whether a report can be written at `path`, told before the work: creates and removes the
 * temporary file beside it. BAD_INPUT: no. */
enum status report_check(const char *path, struct error *error);

#endif
