/*
 * Samples: futures drawn from a network of token traffic beside as many of drivers that differ
 * (TRAFFIC_MODEL_DRIVERS), against what became of a recorded scene. Private to correlate.
 */
#ifndef SWERVE_REPORT_CORRELATE_CORRELATE_SAMPLES_H
#define SWERVE_REPORT_CORRELATE_CORRELATE_SAMPLES_H

#include "report/correlate/correlate_foresight.h"

struct token_samples;

/* From the scene at tick 0. All that it is given is borrowed and outlives it: recordings
 * [agent_count], ego's recording, correlate with its network and its number of futures. */
enum status token_samples_create(struct prepared *prepared, const struct scene *start,
                                 const struct recording *recordings, const struct recording *ego,
                                 struct correlate *correlate, struct token_samples **out,
                                 struct error *error);
void token_samples_destroy(struct token_samples *samples); /* accepts NULL */

/* Takes ego and the lights after each tick, in order. */
void token_samples_see(struct token_samples *samples, const struct scene *scene);

/* Drives the futures, once all ticks are seen, and adds what comes out to correlate. */
enum status token_samples_judge(struct token_samples *samples, struct error *error);

#endif
