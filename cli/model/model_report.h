/*
 * `swerve model report NAME --store URL`: what the last evaluation of a version found, as a page
 * that a person can put a name under: who was compared with whom, by which policy, on which jobs,
 * every verdict, when by the store's clock, and what was decided since.
 */
#ifndef SWERVE_CLI_MODEL_MODEL_REPORT_H
#define SWERVE_CLI_MODEL_MODEL_REPORT_H

#include "base/status.h"
#include "store/api/store.h"

#include <stdbool.h>

/* `html`: a file; NULL: text on stdout, or with `json` one object. NOT_FOUND: no such version, or
 * it was never evaluated. */
enum status model_report(const char *name, const char *html, bool json, struct store *store,
                         struct error *error);

#endif
