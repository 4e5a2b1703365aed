/*
 * Given: what a planner of version 3 (schemas/planner.h) is shown besides sensors: objects around
 * ego, and the map.
 *
 * A list of objects is a privilege that no car has, unless it holds only what sensors see. So where
 * it comes from is decided here, once per rollout, and named in every outcome: results of planners
 * that were given more are never mixed with those of planners that had to perceive.
 *
 * A function of the scene and of what was shown before; on the deterministic path.
 */
#ifndef SWERVE_WORKER_GIVEN_GIVEN_H
#define SWERVE_WORKER_GIVEN_GIVEN_H

#include "base/status.h"
#include "engine/sensors/conditioning.h"
#include "engine/sensors/prepared.h"
#include "engine/worlds/foreign.h"
#include "schemas/outcome.h"
#include "schemas/planner.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stdint.h>

/* Kinds of a list of objects in a world of a tier: _TRUE, or of learned worlds _GENERATED; _NONE
 * where the model is given the agents: what it makes of them is not followed there, and a list of
 * what it was given would not be what it shows. */
enum swerve_objects_source given_of_world(enum tier tier, enum conditioning conditioning);

/* Origin of a planner's list, of `wants` (enum swerve_planner_wants) and of what its
 * world has: SWERVE_OBJECTS_TRUE, _GENERATED or _NONE. */
enum swerve_objects_source given_source(uint32_t wants, enum swerve_objects_source of_world);

/* A bit beside enum swerve_planner_wants: points of lidars were shown. */
enum { GIVEN_LIDARS = 1 << 16 };

/* The outcome's member: "bev,cameras,objects:seen,map" with what was shown, in this order; "route"
 * for ego's state and route alone, which every planner is shown. */
void given_text(uint32_t wants, enum swerve_objects_source source, char out[LIMIT_ID_BYTES]);

/* Words that the outcome has besides of a world that makes frames ahead of time, in which a
 * planner's answer waits for the end of a chunk: ",chunks:9+12@30", frames of the first chunk and
 * of others, and their rate. "": it makes none, or is NULL. */
enum { GIVEN_CHUNKS_BYTES = 24 };
void given_chunks(const struct foreign *world, char out[GIVEN_CHUNKS_BYTES]);

/* One rollout's list. A plain value: a fork copies it. */
struct given_objects {
    int64_t time_ns; /* when it was made; -1: never */
    uint32_t count;
    uint32_t tick;                    /* of the headings */
    bool known[LIMIT_AGENTS];         /* it was there then */
    double heading_rad[LIMIT_AGENTS]; /* of each agent then, for its yaw rate */
    struct swerve_object objects[LIMIT_AGENTS];
    struct swerve_signal_state signals[LIMIT_SIGNALS];
};

void given_init(struct given_objects *given);

/*
 * Shows the scene; once per tick. `dark`: enum sensor_mask bits. *out is filled but for history,
 * and points into *given. Signals are true, and shown where `wants` asks for them.
 *
 * SEEN: an agent is listed when the lidar is on and any of eight points of its outline is in sight
 * of ego's centre (engine/sensors/visible.h: boxes hide what is behind them, unless they are low;
 * nothing is seen beyond the visibility), or when the lidar is dark and one of them is, and the
 * agent's centre is in the field of view of a camera that is on. While every sensor is dark the
 * last list stays, with its time.
 */
void given_look(struct given_objects *given, uint32_t wants, enum swerve_objects_source source,
                const struct scenario *scenario, const struct scene *scene, uint32_t dark,
                struct swerve_surroundings *out);

/* Says of the signals shown last how far ahead they stop ego, whose front edge is at front_s_m of
 * its route. */
void given_stops(struct given_objects *given, const struct prepared *prepared, double front_s_m);

/* ---- the map ---- */

struct given_map;

/* Of the scenario of a prepared scenario, which need not outlive it. */
enum status given_map_create(const struct prepared *prepared, struct given_map **out,
                             struct error *error);
void given_map_destroy(struct given_map *map); /* accepts NULL */
const struct swerve_map *given_map_of(const struct given_map *map);

#endif
