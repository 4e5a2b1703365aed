/*
 * Ranges: the logical scenarios of a suite, each with the parameters that may vary and how far, and
 * the concrete scenario at any point of them. For searches; a suite that is run as it is takes the
 * defaults of parameters that only a range names.
 *
 * A parameter varies by "ranges" of the suite's entry, else of the scenario; one of the entry's
 * grid varies between its smallest and its largest number, or among its words. A logical scenario
 * is one entry of one suite file; without any range it is left out.
 */
#ifndef SWERVE_SCENARIOS_RANGES_RANGES_H
#define SWERVE_SCENARIOS_RANGES_RANGES_H

#include "base/status.h"
#include "scenarios/scenarios.h"

#include <jansson.h>
#include <stdint.h>

struct range {
    const char *name;      /* of the parameter; borrowed from the documents */
    uint32_t choice_count; /* 0: a number from low to high */
    const json_t *choices; /* array of choice_count words or numbers; borrowed */
    double low;
    double high;
};

struct range_scenario {
    char id[LIMIT_ID_BYTES]; /* of the logical scenario, unique in the set */
    const char *file;        /* where it is written */
    uint32_t range_count;
    struct range ranges[LIMIT_PARAMETERS];
};

struct range_set; /* owns all documents */

/* Reads the suite, the scenario or the suites that it includes; the whole has been loaded before
 * (suite_load), so what is refused here is what only a search cannot do. */
enum status range_set_load(const char *path, struct range_set **out, struct error *error);
void range_set_destroy(struct range_set *set); /* accepts NULL */

uint32_t range_set_count(const struct range_set *set);
const struct range_scenario *range_set_scenario(const struct range_set *set, uint32_t index);

/* Value of parameter `range` at `at` (0..1, or the index of a choice): a new reference. Numbers are
 * rounded to six digits, so that an id says them in full. NULL: no memory. */
json_t *range_value(const struct range *range, double at);

/* The scenario with its ranges at at[range_count], without branches, under an id that tells it from
 * all others. BAD_INPUT: nothing can be driven there. */
enum status range_set_document(struct range_set *set, uint32_t index, const double *at,
                               struct scenario_document **out, struct error *error);

#endif
