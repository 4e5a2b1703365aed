/*
 * OpenSCENARIO XML (1.0 to 1.3) to scenarios: one per file, or one per point of the grid that a
 * parameter value distribution spans.
 *
 * Ego is driven by a planner: it starts where the file puts it, and what else the file has it do is
 * noted. scenarios/import/openscenario.md says what is read, what is refused and what is
 * approximated.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_OPENSCENARIO_OPENSCENARIO_H
#define SWERVE_SCENARIOS_IMPORT_OPENSCENARIO_OPENSCENARIO_H

#include "base/status.h"
#include "scenarios/import/import.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct osc_options {
    const char *ego;       /* entity; NULL: "Ego", else the first vehicle */
    double horizon_s;      /* NAN: by the file's stop trigger, else 30 */
    double goal_m;         /* along ego's lane from its start, to be reached; NAN: none */
    bool fit_speed;        /* ego starts no faster than its bend holds */
    uint32_t combinations; /* of a distribution that has more, one of each part of it; 0: all */
    uint32_t search_count;
    const char *const *search; /* folders below which files are that are not beside the one that
                                  names them */
};

/* Hands each scenario's document to `take` with `taker`, one at a time, and fails as that does;
 * scenarios with one map share it. *notes is a malloc'ed text, a line each ("": none).
 * STATUS_BAD_INPUT names file, line, element, what was expected and what was found. */
enum status import_openscenario(const char *path, const struct osc_options *options,
                                import_take *take, void *taker, char **notes, struct error *error);

#endif
