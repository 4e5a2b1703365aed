/*
 * CommonRoad import: what others call of it, and how importers hand out documents.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_IMPORT_H
#define SWERVE_SCENARIOS_IMPORT_IMPORT_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>

/* Takes a resolved document, and with it a reference, on failure too. Documents may share parts,
 * which nobody changes. */
typedef enum status import_take(void *taker, json_t *document, struct error *error);

/* CommonRoad XML 2018b or 2020a to scenarios, one per planning problem, as resolved JSON documents
 * in (*texts)[*count] (each malloc'ed, the array too). `bytes` <= LIMIT_XML_BYTES. */
enum status import_commonroad(const char *name, const char *xml, size_t bytes, char ***texts,
                              size_t *count, struct error *error);

#endif
