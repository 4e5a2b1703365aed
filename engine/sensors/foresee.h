/*
 * Foresee: a scene in, its next states out, for worlds that are told who was there at the start and
 * nothing of what the scenario has them do.
 *
 * Who is present in the scene at tick 0 is known with kind, size, place, heading, speed, and the
 * acceleration of the first tick (recorded agents: by their recording), as two frames show them.
 * From then on a default driver moves each of them on the map (engine/traffic): IDM, wanting the
 * speed that explains the acceleration or that is allowed, along its lane without changing it, and
 * where lanes part along the one that turns least. What IDM does not explain of the acceleration
 * dies out over HABIT_S. People and animals go straight on. Static agents stay where they are.
 *
 * Who goes out of ego's sight drives on unseen and comes back. In each tick out of sight a moving
 * agent has left for good with a chance of 1 to FORESEE_LEAVE_ONE_IN: 2% in 2 s, 9.3% in 10 s.
 *
 * A drive can also be handed over to a traffic model at any tick (`traffic` of a branch): the same,
 * from two frames of that tick. Each model has as many futures as there are draws:
 *   idm       default drivers as above; a draw varies their speeds and headways as a seed does
 *   drivers   a draw gives each of them speed, headway, gap, acceleration and braking of its own,
 *             and one in ten does not look at ego
 *   constant  acceleration and rate of turn go on for CONSTANT_S, then the speed; a draw adds what
 *             two frames do not tell of both
 *   tokens    default drivers, as token traffic (engine/worlds/tokens.h) moves them on; a draw is
 *             one of its network's
 * Draw 0 of each is its nominal future. Their spreads are assumptions, measured nowhere.
 *
 * Bits depend on (scenario, scene at the start, model, seed, ego, interventions) alone.
 */
#ifndef SWERVE_ENGINE_SENSORS_FORESEE_H
#define SWERVE_ENGINE_SENSORS_FORESEE_H

#include "base/status.h"
#include "engine/traffic/traffic.h"
#include "schemas/scene.h"

#include <stdint.h>

#define FORESEE_LEAVE_ONE_IN 1024
#define CONSTANT_S 3.0

struct prepared;
struct foresight;
struct traffic_plan;

/* Foresight of the scenario from its scene at tick 0, the same for all who ask; made by the first
 * of them, from whatever thread, and the prepared scenario's to destroy. */
enum status foresight_of(struct prepared *prepared, const struct scene *start,
                         const struct foresight **out, struct error *error);

/* Foresight of the scenario from two scenes, a tick apart, in a draw of a model that does not know
 * what is written (`now` being the scene in which it begins). The caller has the one reference. */
enum status foresight_create(const struct prepared *prepared, const struct scene *now,
                             const struct scene *next, enum traffic_model model, uint32_t draw,
                             const struct foresight **out, struct error *error);

/* References: the last one that goes frees it. Both accept NULL. The prepared scenario outlives it.
 */
const struct foresight *foresight_ref(const struct foresight *foresight);
void foresight_unref(const struct foresight *foresight);

/* Traffic plan that moves its agents; of a scenario of its own, with the same agents by index. */
const struct traffic_plan *foresight_traffic(const struct foresight *foresight);

/* Tick at which it begins. */
uint32_t foresight_begins(const struct foresight *foresight);

/* Fills motion[agent_count] and the scene's agents for the tick at which foresight begins. */
void foresee_reset(const struct foresight *foresight, uint64_t seed, struct scene *scene,
                   struct agent_motion *motion);

/* Moves every agent from scene->tick to the next; does not change tick, ego or lights. */
void foresee_step(const struct foresight *foresight, uint64_t seed, struct scene *scene,
                  struct agent_motion *motion);

/* Interventions on agents, as traffic_intervene. An agent that was not there at the start, or has
 * left, appears where the scenario or the drive had it last. */
enum status foresee_intervene(const struct foresight *foresight,
                              const struct intervention *intervention, struct scene *scene,
                              struct agent_motion *motion, struct error *error);

#endif
