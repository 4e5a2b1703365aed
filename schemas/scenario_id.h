/*
 * Scenario ids: where a grid made a scenario, its id ends with "/name=value,name=value". What
 * stands before that names the logical scenario (ISO 34501), of which the scenario is one concrete
 * case. An id without such an ending, also one that a suite's template composed, is its own logical
 * scenario.
 */
#ifndef SWERVE_SCHEMAS_SCENARIO_ID_H
#define SWERVE_SCHEMAS_SCENARIO_ID_H

#include "schemas/limits.h"

#include <stdbool.h>
#include <stddef.h>

struct scenario_id_parameter {
    const char *name; /* borrowed from the id, not terminated */
    size_t name_bytes;
    const char *value;
    size_t value_bytes;
};

/* Letters of ASCII, digits, _ and -: what may stand anywhere in an id. */
bool scenario_id_plain(char c);

/* Marks that may stand in an id behind its first character. */
#define SCENARIO_ID_MARKS "./=,+:"

/* An id of a name from elsewhere, cut to fit: plain characters and, behind the first, those of
 * `marks` ("": none) stay, each other byte becomes _, and nothing does too. */
void scenario_id_make(const char *name, const char *marks, char out[LIMIT_ID_BYTES]);

/* Bytes of the logical scenario's name at the start of the id. */
size_t scenario_id_logical_bytes(const char *id);

/* Order of ids by their logical scenarios: below 0, 0 (the same one) or above. */
int scenario_id_compare_logical(const char *a, const char *b);

/* Start of the parameters, for scenario_id_next(); an empty text: there are none. */
const char *scenario_id_parameters(const char *id);

/* The parameters in the id's order; *at moves behind the one that was read. False: no further one.
 */
bool scenario_id_next(const char **at, struct scenario_id_parameter *out);

#endif
