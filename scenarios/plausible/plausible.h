/*
 * Plausibility: what is no mistake of form and breaks no law, but what hardly anybody means, such
 * as a pedestrian at 25 m/s (km/h written as m/s).
 */
#ifndef SWERVE_SCENARIOS_PLAUSIBLE_PLAUSIBLE_H
#define SWERVE_SCENARIOS_PLAUSIBLE_PLAUSIBLE_H

#include "schemas/scenario.h"

/* Called with a sentence. */
typedef void plausible_sink(void *context, const char *text);

void plausible_check(const struct scenario *scenario, plausible_sink *sink, void *context);

#endif
