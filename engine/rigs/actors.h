/*
 * Actors: whether those whom a camera must see stand where they are in the picture that a world
 * made. The renderer says which pixels are an actor's: those that change when it is taken away. In
 * the world's picture these must stand out from what is left and right of them in the same rows, in
 * whichever colours. Sums are in whole numbers, so that the same pictures give the same verdicts.
 *
 * Judged is with care, since a finding ends a rollout: an actor has to stand out clearly in the
 * renderer's picture (not in fog, at night, or behind another one), and to be missed several looks
 * in a row. Up to three actors a look, the largest.
 */
#ifndef SWERVE_ENGINE_RIGS_ACTORS_H
#define SWERVE_ENGINE_RIGS_ACTORS_H

#include "engine/sensors/raster.h"
#include "schemas/rig/rig.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stdint.h>

enum {
    ACTORS_PIXELS_MIN = 200, /* of the camera's, that an actor has to cover */
    ACTORS_LOOKS = 3,        /* in a row in which it is missed */
    ACTORS_LOOK_TICKS = 3,   /* between two looks */
};

enum actors_fault { ACTORS_FINE = 0, ACTORS_ABSENT, ACTORS_DISPLACED, ACTORS_FAULT_COUNT };
extern const char *const actors_fault_names[ACTORS_FAULT_COUNT];

/* A camera's smaller picture, and room to draw it in. */
struct actors;

enum status actors_create(const struct rig_camera *camera, uint32_t stream, struct actors **out,
                          struct error *error);
void actors_destroy(struct actors *actors); /* accepts NULL */

/* Of a drive: looks in a row that missed an agent. Begins zeroed; a fork copies it. */
struct actors_seen {
    uint8_t missed[LIMIT_AGENTS];
};

struct actors_finding {
    uint32_t agent;
    double found, expected; /* how far its pixels are from those beside it, levels of 255 */
};

/* Looks at a world's picture rgb[height][width][3] of the moment of the scene. */
enum actors_fault actors_look(struct actors *actors, const struct raster_layers *layers,
                              const struct scenario *scenario, const struct scene *scene,
                              uint64_t seed, const uint8_t *rgb, struct actors_seen *seen,
                              struct actors_finding *finding);

#endif
