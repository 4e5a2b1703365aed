/*
 * Sensors: what a planner of version 4 (schemas/planner.h) is shown: frames of the sensors that it
 * chose of a rig. What it did not choose is neither drawn nor kept.
 *
 * `struct sensors` is a runner's: which sensors, and what drawing them needs. `struct shots` is a
 * rollout's: the last tick's frames of each. They depend on the scenes of two ticks alone, which
 * forks copy with the frames.
 */
#ifndef SWERVE_WORKER_GIVEN_SENSORS_H
#define SWERVE_WORKER_GIVEN_SENSORS_H

#include "engine/trace/reel.h"
#include "engine/worlds/world.h"
#include "schemas/planner.h"
#include "schemas/rig/rig_choice.h"

struct sensors;
struct shots;

/* Whether a world of these functions shows what the chosen sensors of the rig see. BAD_INPUT. */
enum status sensors_check(const struct rig *rig, const struct rig_choice *choice,
                          const struct world_ops *ops, struct error *error);

/* Whether a golden can keep what is shown of a rig that is not built in. BAD_INPUT: some cameras
 * are not JPEG. */
enum status sensors_check_kept(const struct rig *rig, const struct rig_choice *choice,
                               struct error *error);

/* A choice of at least one sensor. `ops` is the world's. BAD_INPUT: sensors_check. */
enum status sensors_create(const struct rig *rig, const struct rig_choice *choice,
                           const struct world_ops *ops, struct sensors **out, struct error *error);
void sensors_destroy(struct sensors *sensors); /* accepts NULL */

/* Grid, cameras and lidars among them: SWERVE_WANTS_BEV, SWERVE_WANTS_CAMERAS, GIVEN_LIDARS; of
 * NULL none. */
uint32_t sensors_wants(const struct sensors *sensors);

/* Whether they are those of the same rig, packed alike. */
bool sensors_are(const struct sensors *sensors, const struct rig *rig,
                 const struct rig_choice *choice);

/* Black frames, never taken. `sensors` is borrowed and outlives them. */
enum status shots_create(const struct sensors *sensors, struct shots **out, struct error *error);
void shots_destroy(struct shots *shots);                     /* accepts NULL */
void shots_copy(struct shots *to, const struct shots *from); /* of the same sensors */

/* Takes the tick's frames of every sensor that is not dark (enum sensor_mask); the others keep
 * theirs. */
enum status shots_take(struct shots *shots, const struct world *world, uint32_t slot, uint32_t dark,
                       int64_t now_ns, struct error *error);
/* Keeps what was taken of a world that makes pictures of a rig behind the newest frame of a reel:
 * for each camera a struct world_shot and its frames. BAD_INPUT: sensors_check_kept. */
enum status shots_keep(const struct shots *shots, const struct world *world, struct reel *reel,
                       struct error *error);
/* Of all frames as they were drawn, before they were packed. */
uint64_t shots_digest(const struct shots *shots);
/* Points into the shots, until the next shots_take. */
struct swerve_sensors shots_show(const struct shots *shots);

#endif
