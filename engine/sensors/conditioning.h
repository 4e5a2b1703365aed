/*
 * Conditioning of learned worlds: one choice, made for a rollout and recorded in its outcome.
 */
#ifndef SWERVE_ENGINE_SENSORS_CONDITIONING_H
#define SWERVE_ENGINE_SENSORS_CONDITIONING_H

/* How much of the scene a learned world is given, see engine/model.md. */
enum layout_degree { LAYOUT_AGENTS = 0, LAYOUT_MAP, LAYOUT_NONE, LAYOUT_DEGREE_COUNT };
extern const char *const layout_degree_names[LAYOUT_DEGREE_COUNT]; /* "agents", "map", "none" */

#endif
