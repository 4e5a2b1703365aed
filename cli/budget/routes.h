/*
 * Who answers a submission's jobs, and why, as commands tell it.
 */
#ifndef SWERVE_CLI_BUDGET_ROUTES_H
#define SWERVE_CLI_BUDGET_ROUTES_H

#include "worker/submission/submission.h"

#include <jansson.h>

/* Says on stdout which scenarios the teacher answers for a frozen student, and what became of those
 * that last longer than the models are trusted; nothing where there are none. */
void routes_tell(const struct submission *submission);

/* Says on stderr how many jobs go to which tier for which reason. The submission's first page is at
 * hand again. */
void routes_tell_reasons(struct submission *submission);

/* Members "degraded", "clipped", "frozen", "rerouted" and "routes" of a command's JSON. The first
 * page is at hand again. */
void routes_put(struct submission *submission, json_t *json);

#endif
