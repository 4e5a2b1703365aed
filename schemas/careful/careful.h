/*
 * Careful drivers: what somebody careful would have done where a planner failed. This is the
 * answer; worker/careful drives for it.
 */
#ifndef SWERVE_SCHEMAS_CAREFUL_CAREFUL_H
#define SWERVE_SCHEMAS_CAREFUL_CAREFUL_H

#include "schemas/outcome.h"

#include <jansson.h>
#include <stdbool.h>

enum careful_model {
    CAREFUL_DRIVER = 0, /* builtin:r157 */
    CAREFUL_FUZZY,      /* builtin:r157?fsm=1 */
    CAREFUL_MODELS
};

extern const char *const careful_names[CAREFUL_MODELS]; /* "driver", "fuzzy" */

struct careful_drive {
    bool avoids; /* careful_is_safe() */
    bool collides;
    int32_t agent; /* touched first, -1: none */
    double impact_mps;
    double min_ttc_s;
};

struct careful {
    char outside[LIMIT_TEXT_BYTES]; /* why it is not of the domain, or has no answer; "": it has */
    struct careful_drive drives[CAREFUL_MODELS]; /* then alone */
};

/* A drive is safe when ego touched nothing and broke no criterion of safety: what is left to break
 * are goal, progress, comfort and score, which a car that stops in time may miss. */
bool careful_is_safe(enum verdict verdict, uint32_t reasons, const struct metrics *metrics);

/* Whether there is something to ask: a main line that failed, and not for want of progress. */
bool careful_asked(const struct outcome *outcome);

/* {"outside": ".."} or {"driver": {"avoids": .., "impact_mps": ..}, "fuzzy": {..}}; NULL: memory.
 */
json_t *careful_json(const struct careful *careful);

#endif
