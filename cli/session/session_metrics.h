/*
 * Metrics of sessions in the text format of Prometheus.
 */
#ifndef SWERVE_CLI_SESSION_SESSION_METRICS_H
#define SWERVE_CLI_SESSION_SESSION_METRICS_H

#include "worker/interactive/interactive.h"

/* Sessions, and by tier ticks and histograms of their parts. malloc'ed; NULL: out of memory. */
char *session_metrics(struct interactive *pool);

#endif
