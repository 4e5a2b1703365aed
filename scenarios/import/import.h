/*
 * CommonRoad import: what others call of it.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_IMPORT_H
#define SWERVE_SCENARIOS_IMPORT_IMPORT_H

#include "base/status.h"

#include <stddef.h>

/* CommonRoad XML 2018b or 2020a to scenarios, one per planning problem, as resolved JSON documents
 * in (*texts)[*count] (each malloc'ed, the array too). `bytes` <= LIMIT_XML_BYTES. */
enum status import_commonroad(const char *name, const char *xml, size_t bytes, char ***texts,
                              size_t *count, struct error *error);

#endif
