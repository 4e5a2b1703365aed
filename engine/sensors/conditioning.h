/*
 * Conditioning of learned worlds: one choice, made for a rollout and recorded in its outcome.
 */
#ifndef SWERVE_ENGINE_SENSORS_CONDITIONING_H
#define SWERVE_ENGINE_SENSORS_CONDITIONING_H

#include <stdbool.h>

/* Share of the scene that a learned world is given, see engine/model.md. */
enum conditioning {
    CONDITIONING_AGENTS = 0,
    CONDITIONING_MAP,
    CONDITIONING_NONE,
    CONDITIONING_COUNT, /* of those that networks are trained in, with horizons and bounds */
    /* The network draws agents as in `agents`; they are those of the first frame, driven on by
     * engine/sensors/foresee.h. */
    CONDITIONING_FORESEE = CONDITIONING_COUNT,
    CONDITIONING_TOKENS, /* the same, as token traffic drives them on (engine/worlds/tokens.h) */
    CONDITIONING_CHOICES
};
/* "agents", "map", "none", "foresee", "tokens" */
extern const char *const conditioning_names[CONDITIONING_CHOICES];

/* Whether agents are foreseen from the first frame. */
static inline bool conditioning_foresees(enum conditioning conditioning)
{
    return conditioning == CONDITIONING_FORESEE || conditioning == CONDITIONING_TOKENS;
}

/* Conditioning that the network is given, and whose bounds hold. */
static inline enum conditioning conditioning_of_network(enum conditioning conditioning)
{
    return conditioning_foresees(conditioning) ? CONDITIONING_AGENTS : conditioning;
}

#endif
