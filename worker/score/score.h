/*
 * Scoring: the nuPlan closed-loop metrics plus Swerve's own, computed while a rollout runs.
 * Definitions with their sources: worker/METRICS.md. Fixed memory per rollout; a fork copies the
 * struct.
 */
#ifndef SWERVE_WORKER_SCORE_SCORE_H
#define SWERVE_WORKER_SCORE_SCORE_H

#include "base/status.h"
#include "engine/sensors/prepared.h"
#include "schemas/outcome.h"
#include "schemas/scene.h"

#include <stddef.h>

struct score;

/* Bytes of a score for a scenario of `horizon_ticks`; constant, so that a worker can preallocate.
 */
size_t score_bytes(uint32_t horizon_ticks, uint32_t agent_count);

/* Starts a score in caller's memory of score_bytes() bytes, aligned for any type. The stage is
 * borrowed and must outlive the score. */
struct score *score_init(void *memory, const struct prepared *prepared);

/* The same of the rest of a drive, from this tick on: of what is expected of a whole drive the
 * share of the horizon that is left. */
struct score *score_init_rest(void *memory, const struct prepared *prepared, uint32_t tick);

/* Copies a score (a fork); both were made for the same prepared scenario. */
void score_copy(struct score *to, const struct score *from);

/* One call per tick with the state at that tick, tick 0 (the start) included; ascending ticks. */
void score_update(struct score *score, const struct scene *scene);

/* The guardian: whether a rule-based monitor would override at the tick last given to
 * score_update (emergency braking needed, or leaving the drivable area within 1 s). */
bool score_guardian_active(const struct score *score);

/* The guardian acts in this rollout: it judges agents at any speed, also below that at which the
 * monitor stops predicting. */
void score_guardian_act(struct score *score);

/* The braking that the guardian counts on where ego is, above 0. */
double score_guardian_brake_mps2(const struct score *score);

/* Ego touched an agent or left the drivable area at the last tick such that going on is pointless:
 * true once ego has collided with a vehicle or vulnerable road user (the rollout may end there). */
bool score_ended(const struct score *score);

/* Whether ego has touched anything so far. */
bool score_touched_any(const struct score *score);

/* Whether a contact that was not ego's fault ended the rollout, and all that is held against ego is
 * what it might have done afterwards: the goal, progress, the score. */
bool score_cut_short(const struct score *score, uint32_t reasons);

/* Closes the books after the last tick: metrics, verdict and reasons by the scenario's criteria. */
void score_finish(const struct score *score, struct metrics *metrics, enum verdict *verdict,
                  uint32_t *reasons);

#endif
