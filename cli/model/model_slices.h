/*
 * Slices of a version's audits before the gate (scheduler/gate.h): what each is judged to be, for
 * an evaluation and for whoever drives what one lacks.
 */
#ifndef SWERVE_CLI_MODEL_MODEL_SLICES_H
#define SWERVE_CLI_MODEL_MODEL_SLICES_H

#include "report/trust/table.h"
#include "store/api/models.h"

#include <jansson.h>
#include <stdio.h>

/* All borrowed; the table is of table_make_judged(). */
struct model_slices {
    const struct table *table;
    const struct trust_policy *policy;
    const struct model_version *version;
    const struct model_version *incumbent; /* NULL: nobody is */
};

/* Whether a row is about a version: its weights, as it samples them and in its precision. */
bool model_slices_is_of(const struct table_row *row, const struct model_version *version);

struct table_judgement model_slices_judge(const struct model_slices *slices,
                                          const struct table_row *row);

json_t *model_slices_json(const struct model_slices *slices, const struct table_row *row,
                          const struct table_judgement *judged);
void model_slices_print(const struct table_row *row, const struct table_judgement *judged,
                        FILE *stream);

#endif
