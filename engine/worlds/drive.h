/*
 * Drive: the part of a rollout that no model generates: ego under the bicycle model among agents
 * whom the object world's traffic moves. What a slot of every world but the dummy begins with.
 *
 * Bits depend on (scenario, seed, actions, interventions) alone. For the engine's worlds, and for
 * traffic around an ego that somebody else drives.
 */
#ifndef SWERVE_ENGINE_WORLDS_DRIVE_H
#define SWERVE_ENGINE_WORLDS_DRIVE_H

#include "engine/sensors/foresee.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/story/story.h"
#include "engine/traffic/ego_model.h"
#include "engine/traffic/traffic.h"
#include "engine/worlds/tokens.h"

#include <stdbool.h>
#include <stdint.h>

struct drive {
    struct prepared *prepared;         /* a reference of its own; NULL: the slot is free */
    const struct foresight *foresight; /* a reference; NULL: agents do as the scenario says */
    const struct tokens *tokens;       /* that drive who is foreseen; NULL: default drivers alone */
    uint64_t seed;
    uint64_t traffic_seed; /* of the agents; the drive's until a branch gives another */
    struct ego_motion ego;
    struct scene scene;
    struct agent_motion motion[LIMIT_AGENTS];        /* [scene.agent_count] in use */
    struct token_driver token_drivers[LIMIT_AGENTS]; /* the same, in use where tokens drive */
    struct story_state story; /* in use where the scenario has a storyboard */
};

/* A free drive is zeros up to `motion`, from its allocation on, and drive_release makes it zeros
 * again: so neither a reset nor a copy has to clear the agents that a scenario does not have, whom
 * whoever looks at the scene sees. Of what follows nothing is read that is not in use. */

/* The scenario's start, on a free drive. Takes a reference on the prepared scenario. follow_logs:
 * see traffic_reset. */
void drive_reset(struct drive *drive, struct prepared *prepared, uint64_t seed, bool follow_logs);

/* From now on, tick 0, the agents that are present in the scene do what is foreseen of them
 * (engine/sensors/foresee.h), not what the scenario has them do; the others are out of it.
 * `tokens`: as the shipped token traffic moves them on. */
enum status drive_foresee(struct drive *drive, bool tokens, struct error *error);

/* One tick: agents (if `traffic`) act on what was, then ego moves. */
void drive_step(struct drive *drive, const struct action *action, bool traffic);

/* Interventions on everybody but ego. `traffic` makes ways for the agents, which takes memory: the
 * only one that does. */
enum status drive_intervene(struct drive *drive, const struct intervention *intervention,
                            struct error *error);

/* Copies what is in use onto a free drive, and takes a reference on the prepared scenario. */
void drive_copy(struct drive *to, const struct drive *from);

/* Gives the reference back; the drive is free. */
void drive_release(struct drive *drive);

#endif
