/*
 * Choice: a user's pick among the scenarios of a suite, by words, ids or earlier results, and the
 * parameters that he sets in them.
 */
#ifndef SWERVE_SCENARIOS_CHOICE_CHOICE_H
#define SWERVE_SCENARIOS_CHOICE_CHOICE_H

#include "scenarios/scenarios.h"

/* One scenario and seed of a suite. */
struct suite_pick {
    char scenario[LIMIT_ID_BYTES];
    uint64_t seed;
};

/* By scenario, then seed: below, at or above 0. */
int suite_pick_compare(const struct suite_pick *a, const struct suite_pick *b);

/* Choice of a user's: what is changed in a suite, and what of it is left. Zeroed: nothing, all. */
struct suite_choice {
    uint32_t set_count;
    const char *const *sets; /* "ego_kph=40": the parameter of all scenarios that have it */
    const char *expression;  /* words of ids, tags and slices with and, or, not, (); NULL: all */
    uint32_t id_count;
    const char *const *ids; /* of scenarios, or of logical ones with all their points */
    bool picked;            /* the picks alone, were there none */
    uint32_t pick_count;
    const struct suite_pick *picks; /* [pick_count], ascending */
};

/* Loads a suite, changed and cut down to what the choice leaves. A choice that leaves nothing, sets
 * what no scenario has or cannot be read is USAGE. */
enum status suite_load_chosen(const char *path, const struct suite_choice *choice,
                              struct suite **out, struct error *error);

#endif
