/*
 * Data generation: drives the object world with good and bad planners and writes what sensors
 * would have recorded, with what a learned world is given, as training shards (engine/model.md). Of
 * a learned world what it generated is beside that, and what its health checks say of each frame.
 *
 * Each clip is a job of a store (clip.h), made by any worker. When all are made they are written
 * down here, so that a set goes on where it was left, and comes out the same.
 *
 * Reproducible: a clip depends on the suite, the options and its own number alone.
 */
#ifndef SWERVE_WORKER_DATAGEN_DATAGEN_H
#define SWERVE_WORKER_DATAGEN_DATAGEN_H

#include "base/status.h"
#include "engine/worlds/world.h"
#include "scenarios/scenarios.h"
#include "schemas/outcome.h"
#include "schemas/rig/rig.h"
#include "schemas/scene.h"
#include "worker/planner/planner.h"
#include "worker/submission/submission.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DATAGEN_CLIPS_MAX = 1000000,
    DATAGEN_FRAMES_MAX = 600,
    DATAGEN_SHARD_CLIPS_MAX = 4096,
    DATAGEN_PLANNERS_MAX = 16,
};

/* Which scenarios' clips are wanted. */
enum datagen_part { DATAGEN_ALL = 0, DATAGEN_TRAIN, DATAGEN_HELD_OUT };

/* A world that generates its pictures, in the conditioning `agents`. Borrowed. */
struct datagen_world {
    const struct world_ops *ops;
    enum tier tier;
    const char *name, *hash, *sampler; /* as its jobs name it */
};

struct datagen_options {
    const struct datagen_world *world; /* NULL: the object world drives, and nothing is generated */
    const struct rig *rig; /* whose sensors are drawn beside, and every scenario's; NULL: none */
    struct store *store;
    /* Returns when every job of the suite has ended; not OK: nobody waits any longer. */
    enum status (*drive)(void *context, const char *suite_id, struct error *error);
    void *context;
    const char *directory;
    uint32_t clips;
    uint32_t frames; /* per clip */
    uint64_t seed;
    double held_out; /* share of the scenarios, 0..1 */
    enum datagen_part part;
    uint32_t shard_clips;
    uint32_t planner_count; /* 0: the usual mixture */
    const char *planners[DATAGEN_PLANNERS_MAX];
    /* Told of every finished shard; may be NULL. */
    void (*shard_done)(const char *path, uint32_t clips);
};

struct datagen_result {
    uint32_t shards;
    uint32_t train_clips;
    uint32_t held_out_clips;
    uint64_t frames;
    uint64_t bytes;
    uint32_t train_scenarios;    /* of those long enough for a clip */
    uint32_t held_out_scenarios; /* likewise */
};

enum status datagen_run(const struct suite *suite, const struct datagen_options *options,
                        struct datagen_result *result, struct error *error);

/* Whether a scenario's clips are kept from training: a hash of its id, so that the choice holds
 * across suites, seeds and revisions. */
bool datagen_is_held_out(const char *scenario_id, double fraction);

/* ---- one drive (datagen_drive.c) ---- */

enum { DRIVE_TICKS_MAX = 600 };

/* Ways to drive a rollout. */
struct drive_plan {
    uint64_t seed;
    struct planner *planner; /* borrowed, session 0 */
    uint32_t planner_wants;
    bool unruly; /* the planner is overridden now and then */
    bool has_conditions;
    struct conditions conditions; /* instead of the scenario's */
    /* Told of each action when the world has carried it out; then contact ends nothing. NULL:
     * nobody is. */
    void (*stepped)(void *context, const struct action *action);
    /* Told of each scene that is recorded, before the planner is; NULL: nobody is. */
    void (*looked)(void *context, const struct world *world, const struct scene *scene);
    /* Asked before each tick; false ends the drive (CANCELLED). NULL: nobody is. */
    bool (*goes_on)(void *context);
    void *context; /* of all three */
    /* Why the planner gave no answer, which ended the drive; untouched where it gave one. NULL: it
     * is not told. */
    char (*fault)[OUTCOME_ERROR_BYTES];
};

/* Drives the prepared scenario's scenario from tick 0 to its end (its horizon, a collision that
 * ends it, a planner that failed) or DRIVE_TICKS_MAX and records every scene:
 * scenes[DRIVE_TICKS_MAX]; NULL: none, and however long it lasts. */
enum status drive_record(struct world *world, struct prepared *prepared,
                         const struct drive_plan *plan, struct scene *scenes, uint32_t *count,
                         struct error *error);

#endif
