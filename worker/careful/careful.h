/*
 * Careful drivers: whether somebody careful would have avoided what went wrong. The scenario is
 * driven again from its start, with the outcome's seed, by the driver models of UN R157
 * (worker/planner/builtin/R157.md) in the object world.
 *
 * The models are of motorways and of vehicles that cut in, cut out or brake. What is not of that
 * domain gets no answer but the reason: a model that fails where it was never meant to drive says
 * nothing about the planner.
 */
#ifndef SWERVE_WORKER_CAREFUL_CAREFUL_H
#define SWERVE_WORKER_CAREFUL_CAREFUL_H

#include "base/status.h"
#include "schemas/outcome.h"
#include "schemas/scenario.h"

#include <jansson.h>
#include <stdbool.h>

enum careful_model {
    CAREFUL_DRIVER = 0, /* builtin:r157 */
    CAREFUL_FUZZY,      /* builtin:r157?fsm=1 */
    CAREFUL_MODELS
};

extern const char *const careful_names[CAREFUL_MODELS]; /* "driver", "fuzzy" */

struct careful_drive {
    bool avoids; /* touches nothing and breaks no criterion of safety (avoidance_is_safe) */
    bool collides;
    int32_t agent; /* touched first, -1: none */
    double impact_mps;
    double min_ttc_s;
};

struct careful {
    char outside[LIMIT_TEXT_BYTES]; /* why it is not of the domain, or has no answer; "": it has */
    struct careful_drive drives[CAREFUL_MODELS]; /* then alone */
};

/* Whether there is something to ask: a main line that failed, and not for want of progress. */
bool careful_asked(const struct outcome *outcome);

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

/* {"outside": ".."} or {"driver": {"avoids": .., "impact_mps": ..}, "fuzzy": {..}}; NULL: memory.
 */
json_t *careful_json(const struct careful *careful);

#endif
