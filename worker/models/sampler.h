/*
 * Names of samplers that take fewer steps than the model has: "agents/euler1/bf16" beside
 * "agents/euler2/bf16". Two names are two questions: outcomes of one are none of the other. Where a
 * previous model can take over for a tick the name has the first digits of its hash,
 * "agents/euler2+0123..cdef/bf16".
 */
#ifndef SWERVE_WORKER_MODELS_SAMPLER_H
#define SWERVE_WORKER_MODELS_SAMPLER_H

#include "base/status.h"
#include "schemas/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLER_HASH_DIGITS = 32 };

/* Takes the model's own sampler to one whose ticks leave out so many steps. BAD_INPUT: it has not
 * so many, none are left in a conditioning in which nothing can be drawn, or it is a foreign
 * world's.
 */
enum status sampler_skip(char sampler[LIMIT_ID_BYTES], uint32_t skipped, struct error *error);

/* Whether a sampler is the model's own, or that with steps left out; then how many. */
bool sampler_skips(const char *own, const char *asked, uint32_t *skipped);

/* Puts the previous model's hash, or its first SAMPLER_HASH_DIGITS, behind the steps of a sampler
 * of a model of ours that has none yet. */
void sampler_add_previous(char sampler[LIMIT_ID_BYTES], const char *hash);
/* The digits that stand there; false: there are none. */
bool sampler_previous(const char *sampler, char digits[SAMPLER_HASH_DIGITS + 1]);

#endif
