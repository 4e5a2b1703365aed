/*
 * A scenario before it is driven: a picture with map, route, goal, ego, agents with their paths,
 * where these cross ego's route, and a legend; and the same in words.
 */
#ifndef SWERVE_REPORT_DRAW_DRAW_SCENARIO_H
#define SWERVE_REPORT_DRAW_DRAW_SCENARIO_H

#include "base/status.h"
#include "schemas/scenario.h"

#include <stddef.h>
#include <stdio.h>

/* The picture as PNG or SVG; *data is malloc'ed, the caller's. */
enum status draw_scenario_picture(const struct scenario *scenario, bool svg, void **data,
                                  size_t *bytes, struct error *error);

/* The words, one fact a line, through text_print. */
enum status draw_scenario_print(const struct scenario *scenario, FILE *stream, struct error *error);

#endif
