/*
 * Report: one self-contained HTML file of a suite: verdicts by slice with confidence intervals,
 * miles and
 * $/mile by tier and pool, failures as film strips, branches side by side. Frames are redrawn from
 * the traces, so nothing is simulated again.
 */
#ifndef SWERVE_WORKER_REPORT_H
#define SWERVE_WORKER_REPORT_H

#include "store/store.h"
#include "worker/summary.h"

/* Writes to a temporary name beside `path`, then renames: a reader never sees half a report. */
enum status report_write(struct store *store, const char *suite_id, const struct summary *summary,
                         const char *path, struct error *error);

#endif
