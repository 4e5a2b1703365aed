/*
 * Job codec: what is submitted, what a claim returns, what a completion says, to and from JSON.
 * Member names are those of the records in job.h; see json_record.h for how values are written.
 */
#ifndef SWERVE_SCHEMAS_JOB_JSON_H
#define SWERVE_SCHEMAS_JOB_JSON_H

#include "base/status.h"
#include "schemas/job.h"
#include "schemas/json_read.h"
#include "schemas/json_record.h"
#include "schemas/json_scan.h"

/* All members of struct job_spec, job_lease, ledger_totals. */
extern const struct json_field_list job_spec_field_list;
/* Members of a spec that many jobs have alike, so that the store keeps them once. */
extern const struct json_field_list job_shared_field_list;
extern const struct json_field_list job_lease_field_list;
extern const struct json_field_list job_completion_field_list; /* but for its outcomes */
extern const struct json_field_list ledger_totals_field_list;

/* New reference, owned by the caller; NULL when memory runs out. `common` may be NULL: members
 * equal to its are left out, which makes batches of similar jobs small. */
json_t *job_spec_encode(const struct job_spec *spec, const struct job_spec *common);

/* With `common`, absent members are taken from it; without, every member must be there. *out is
 * written only on success. */
enum status job_spec_decode(const struct json_cursor *cursor, const struct job_spec *common,
                            struct job_spec *out, struct error *error);

/* outcomes: [outcome_count] inside the object. */
json_t *job_completion_encode(const struct job_completion *completion);
/* *outcomes is malloc'ed (NULL when there are none), owned by the caller, and what
 * out->outcomes points to; at most 1 + LIMIT_BRANCHES. */
enum status job_completion_decode(const struct json_cursor *cursor, struct job_completion *out,
                                  struct outcome **outcomes, struct error *error);

/* The same without a document (json_scan.h). False: not understood, *out is void, and there are no
 * outcomes to free. */
bool job_completion_scan(struct scan *scan, struct job_completion *out, struct outcome **outcomes);

#endif
