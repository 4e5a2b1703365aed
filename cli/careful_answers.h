/*
 * Careful drivers for commands that show failures: made when the first one is asked.
 */
#ifndef SWERVE_CLI_CAREFUL_ANSWERS_H
#define SWERVE_CLI_CAREFUL_ANSWERS_H

#include "report/report.h"
#include "worker/careful/careful_drivers.h"

struct careful_answers {
    struct report_careful careful;   /* for report_write() */
    struct careful_drivers *drivers; /* owned; NULL until somebody asks */
};

struct careful_answers careful_answers_begin(void);
void careful_answers_end(struct careful_answers *answers);

/* The answer for the scenario and seed of an outcome, whose scenario the store has. NOT_FOUND,
 * BAD_INPUT: the store has lost or damaged it; errors of the store and of drives. */
enum status careful_answer(struct careful_answers *answers, struct store *store,
                           const struct outcome *outcome, struct careful *out, struct error *error);

/* For each main line that ended unsafe: a list of {"outcome", "scenario_id", "seed"} and the
 * members of careful_json(). A scenario that the store has lost or damaged has no answer, and says
 * so. *out is the caller's. */
enum status careful_answers_json(struct careful_answers *answers, struct store *store,
                                 const struct summary *summary, json_t **out, struct error *error);

#endif
