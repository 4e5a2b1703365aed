/*
 * Second stage: a branch as a follow-up scene of its main line. NAVSIM scores a plan of 4 s, then
 * scenes that begin beside where it ends, and weighs these by how near they begin. Here something
 * else drives ego for a while (interventions of ego), then the planner goes on from where that
 * brought it. What the planner had planned when it was taken over says where it would have been.
 *
 *   ticks   .. takeover ........... handback ........... end
 *   ego        by interventions        by the planner: scored afresh, its plans compared
 *
 * Invariant: all of it depends on the branch alone, so a branch that is driven again without its
 * main line has the same figures.
 */
#ifndef SWERVE_WORKER_SCORE_FIELD_STAGE_H
#define SWERVE_WORKER_SCORE_FIELD_STAGE_H

#include "schemas/planner.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"
#include "worker/score/field/plans.h"
#include "worker/score/score.h"

#include <stdbool.h>
#include <stdint.h>

struct stage; /* of a branch that is one */

/* Whether a branch is a follow-up scene: all its interventions are ego's, and one of them gives ego
 * back to the planner before the horizon, for good. */
bool stage_is(const struct scenario *scenario, const struct branch *branch);

/* NULL: out of memory. Prepared is borrowed. */
struct stage *stage_create(const struct prepared *prepared, const struct branch *branch);
void stage_destroy(struct stage *stage); /* accepts NULL */

/* One call per tick with the state that is scored, before the planner is asked. */
void stage_update(struct stage *stage, const struct scene *scene);

/* Notes the planner's answer of that tick, as plans_add has it. */
void stage_plan(struct stage *stage, uint32_t tick, const struct swerve_observation *ego,
                const struct swerve_answer *answer);

/* Distance from its planned place at which ego was given back, and EPDMS from there on. NAN: it
 * never was, or the plan of the takeover does not reach so far. */
void stage_finish(const struct stage *stage, double *distance_m, double *epdms);

#endif
