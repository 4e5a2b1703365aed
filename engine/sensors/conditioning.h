/*
 * Conditioning of learned worlds: one choice, made for a rollout and recorded in its outcome.
 */
#ifndef SWERVE_ENGINE_SENSORS_CONDITIONING_H
#define SWERVE_ENGINE_SENSORS_CONDITIONING_H

/* Share of the scene that a learned world is given, see engine/model.md. */
enum conditioning {
    CONDITIONING_AGENTS = 0,
    CONDITIONING_MAP,
    CONDITIONING_NONE,
    CONDITIONING_COUNT
};
extern const char *const conditioning_names[CONDITIONING_COUNT]; /* "agents", "map", "none" */

#endif
