/*
 * Outcome codec: outcomes and metrics to and from JSON, for the HTTP API, `--json` output and the
 * store's rows. Member names are those of the records; `reasons` is a list of names, `metrics`,
 * `slices` (by slice name), `health` and `futures` (where there are any) are objects. See
 * json_record.h for how values are written; a round trip is exact but for NaN payloads and
 * ill-formed UTF-8.
 */
#ifndef SWERVE_SCHEMAS_OUTCOME_JSON_H
#define SWERVE_SCHEMAS_OUTCOME_JSON_H

#include "base/status.h"
#include "schemas/json_read.h"
#include "schemas/json_record.h"
#include "schemas/outcome.h"

/* Every member: reasons, metrics, slices, health and futures come last. */
extern const struct json_field_list outcome_record;

/* The flat members: of struct outcome, of its metrics, of its health, and of its futures. */
extern const struct json_field_list outcome_field_list;
extern const struct json_field_list metric_field_list;
extern const struct json_field_list drive_health_field_list;
extern const struct json_field_list outcome_futures_field_list;

/* A new reference, owned by the caller; NULL when memory runs out. */
json_t *outcome_encode(const struct outcome *outcome);

/* Strict: every member must be there and no other. *out is written only on success. */
enum status outcome_decode(const struct json_cursor *cursor, struct outcome *out,
                           struct error *error);

#endif
