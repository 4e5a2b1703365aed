/*
 * Careful drivers: whether somebody careful would have avoided what went wrong. The scenario is
 * driven again from its start, with the outcome's seed, by the driver models of UN R157
 * (worker/planner/builtin/R157.md) in the object world.
 *
 * The models are of motorways and of vehicles that cut in, cut out or brake. What is not of that
 * domain gets no answer but the reason: a model that fails where it was never meant to drive says
 * nothing about the planner.
 */
#ifndef SWERVE_WORKER_CAREFUL_CAREFUL_DRIVERS_H
#define SWERVE_WORKER_CAREFUL_CAREFUL_DRIVERS_H

#include "base/status.h"
#include "schemas/careful/careful.h"
#include "schemas/scenario.h"

/* "" or why the models say nothing of this scenario. */
void careful_outside(const struct scenario *scenario, char out[LIMIT_TEXT_BYTES]);

/* Keeps its runners, and what it found by scenario and seed. */
struct careful_drivers;
enum status careful_drivers_create(struct careful_drivers **out, struct error *error);
void careful_drivers_destroy(struct careful_drivers *drivers); /* accepts NULL */

/* The scenario of that hash with that seed. */
enum status careful_ask(struct careful_drivers *drivers, const struct scenario *scenario,
                        const char *scenario_hash, uint64_t seed, struct careful *out,
                        struct error *error);

#endif
