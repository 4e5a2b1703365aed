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

struct model_slice {
    bool decides;
    enum gate_result result;
    enum gate_property property; /* that it is about */
    double band;                 /* of that */
    int64_t needed;              /* draws that its agreement would take; -1: no number will do */
    double incumbent;            /* agreement of verdicts; NAN: not known */
};

/* Whether a row is about a version: its weights, as it samples them and in its precision. */
bool model_slices_is_of(const struct table_row *row, const struct model_version *version);

/* Of one that decides nothing, being below its band takes evidence for as many slices as there are
 * of its kind: of many that are looked at one seems to be below by chance. */
struct model_slice model_slices_judge(const struct model_slices *slices,
                                      const struct table_row *row);

json_t *model_slices_json(const struct model_slices *slices, const struct table_row *row,
                          const struct model_slice *judged);
void model_slices_print(const struct table_row *row, const struct model_slice *judged,
                        FILE *stream);

#endif
