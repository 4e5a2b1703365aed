/*
 * Names of samplers that take fewer steps than the model has: "agents/euler1/bf16" beside
 * "agents/euler2/bf16". Two names are two questions: outcomes of one are none of the other.
 */
#ifndef SWERVE_WORKER_MODELS_SAMPLER_H
#define SWERVE_WORKER_MODELS_SAMPLER_H

#include "base/status.h"
#include "schemas/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* Takes the model's own sampler to one whose ticks leave out so many steps. BAD_INPUT: it has not
 * so many, none are left in a conditioning in which nothing can be drawn, or it is a foreign
 * world's.
 */
enum status sampler_skip(char sampler[LIMIT_ID_BYTES], uint32_t skipped, struct error *error);

/* Whether a sampler is the model's own, or that with steps left out; then how many. */
bool sampler_skips(const char *own, const char *asked, uint32_t *skipped);

#endif
