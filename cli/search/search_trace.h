/*
 * Story of failures by their traces: where ego was touched, by whom, and when its driving
 * began to differ from that of the closest drive that passed.
 */
#ifndef SWERVE_CLI_SEARCH_SEARCH_TRACE_H
#define SWERVE_CLI_SEARCH_SEARCH_TRACE_H

#include "cli/search/search_run.h"

/* Fills in the failures of a logical scenario that are not described yet. A trace that is gone
 * leaves its failure without geometry and divergence. */
enum status search_trace_describe(struct search_run *run, struct search_logical *logical,
                                  struct error *error);

#endif
