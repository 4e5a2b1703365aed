/*
 * Verdicts over a set of goldens that rest on a recording in doubt: one whose own verdict its
 * futures do not say (docs/goldens.md).
 */
#ifndef SWERVE_CLI_KEPT_GOLDEN_DOUBTS_H
#define SWERVE_CLI_KEPT_GOLDEN_DOUBTS_H

#include "report/summary.h"
#include "worker/golden/golden_make.h"

/* The list of a set, by its hash. The caller finishes it. */
enum status golden_doubts_list(struct store *store, const char *hash, struct golden_list *out,
                               struct error *error);

/* Recordings in doubt, as objects {scenario, seed, p_fail, low, high, answer}; NULL: no memory. */
json_t *golden_doubts_json(const struct golden_list *list);

/* Main lines of a suite that such recordings answered; where `json` is not NULL as its member
 * "golden_doubts", else told. Nothing where no set answered, or its list is gone. */
void golden_doubts_tell(struct store *store, const struct summary *summary, json_t *json);

#endif
