/*
 * Agreement of a version in state shadow with the answers that counted, for `swerve model`: what a
 * table of agreement (report/trust/table.h) says of it.
 */
#ifndef SWERVE_CLI_MODEL_MODEL_SHADOW_H
#define SWERVE_CLI_MODEL_MODEL_SHADOW_H

#include "report/trust/table.h"
#include "scheduler/gate.h"
#include "store/api/store.h"

#include <jansson.h>
#include <stdio.h>

/* All agreement of a store by the default policy; reads every outcome. *out is to be finished. */
enum status model_shadow_read(struct store *store, struct table *out, struct error *error);

/* Over all slices, beside another version. */
struct gate_shadow model_shadow_whole(const struct table *table,
                                      const struct model_version *version,
                                      const struct model_version *beside);

/* A line for each version that it drove beside; none where it was no shadow. */
void model_shadow_print(const struct table *table, const struct model_version *version,
                        FILE *stream);

/* An array of all its rows, by slice; NULL: out of memory. */
json_t *model_shadow_json(const struct table *table, const struct model_version *version);

#endif
