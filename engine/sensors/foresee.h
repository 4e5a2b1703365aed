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
 * Bits depend on (scenario, scene at tick 0, seed, ego, interventions) alone.
 */
#ifndef SWERVE_ENGINE_SENSORS_FORESEE_H
#define SWERVE_ENGINE_SENSORS_FORESEE_H

#include "base/status.h"
#include "engine/traffic/traffic.h"
#include "schemas/scene.h"

#include <stdint.h>

#define FORESEE_LEAVE_ONE_IN 1024

struct prepared;
struct foresight;
struct traffic_plan;

/* Foresight of the scenario from its scene at tick 0, the same for all who ask; made by the first
 * of them, from whatever thread, and the prepared scenario's to destroy. */
enum status foresight_of(struct prepared *prepared, const struct scene *start,
                         const struct foresight **out, struct error *error);
void foresight_destroy(struct foresight *foresight); /* accepts NULL */

/* Traffic plan that moves its agents; of a scenario of its own, with the same agents by index. */
const struct traffic_plan *foresight_traffic(const struct foresight *foresight);

/* Fills motion[agent_count] and the scene's agents for tick 0. */
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
