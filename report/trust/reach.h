/*
 * Reach of a suite: which slices a gate could show at all, before anything is driven. A draw is a
 * logical scenario (scheduler/looks.h): more seeds, or more cases of its grid, are none.
 */
#ifndef SWERVE_REPORT_TRUST_REACH_H
#define SWERVE_REPORT_TRUST_REACH_H

#include "scenarios/scenarios.h"
#include "scheduler/trust.h"

#include <jansson.h>
#include <stdio.h>

struct reach_row {
    struct trust_slice slice;
    bool decides;
    double band;     /* the highest that is asked for */
    int64_t logical; /* scenarios of the suite with a rollout in the slice */
    int64_t needed;  /* without a disagreement; -1: no number will do */
};

struct reach {
    uint32_t count;
    struct reach_row *rows; /* owned: all, safety-critical, values of each kind, those that the
                               policy crosses, those that decide */
    uint32_t longer;        /* scenarios that last longer than `ticks_max` */
};

/* Scenarios of at most `ticks_max` ticks count. */
enum status reach_of(const struct suite *suite, const struct trust_policy *policy,
                     uint32_t ticks_max, struct reach *out, struct error *error);
void reach_finish(struct reach *reach);

bool reach_can(const struct reach_row *row);

/* Slices that the suite can show and that it cannot, and how likely those that decide pass. */
void reach_print(const struct reach *reach, FILE *stream);
json_t *reach_json(const struct reach *reach);

/* Whether a rollout of the scenario ends in the slice. */
bool reach_has(const struct scenario *scenario, const struct trust_slice *slice);

#endif
