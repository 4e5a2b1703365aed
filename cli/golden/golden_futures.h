/*
 * `golden make --futures`: how sure the verdicts of a set are. Each recorded main line has its
 * futures driven from shortly before it is at its narrowest, as jobs of the set's suite.
 */
#ifndef SWERVE_CLI_GOLDEN_GOLDEN_FUTURES_H
#define SWERVE_CLI_GOLDEN_GOLDEN_FUTURES_H

#include "store/api/store.h"

/* Submits them, those that are there already left alone. Jobs that record have all ended. */
enum status golden_futures_ask(struct store *store, const char *suite_id, struct error *error);

#endif
