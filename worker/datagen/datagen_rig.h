/*
 * Sensors of a rig in training shards: one tensor each, beside those of the shipped models
 * (engine/model.md).
 */
#ifndef SWERVE_WORKER_DATAGEN_DATAGEN_RIG_H
#define SWERVE_WORKER_DATAGEN_DATAGEN_RIG_H

#include "engine/sensors/prepared.h"
#include "schemas/rig/rig.h"
#include "schemas/scene.h"
#include "worker/datagen/shard_file.h"

struct datagen_rig;

/* `rig` is borrowed. */
enum status datagen_rig_create(const struct rig *rig, struct datagen_rig **out,
                               struct error *error);
void datagen_rig_destroy(struct datagen_rig *self); /* accepts NULL */

/* Tensors of a shard of so many clips of so many ticks, into tensors[*count] and on. Names stay
 * valid until destroy. LIMIT: a shard has no room for so many. */
enum status datagen_rig_tensors(struct datagen_rig *self, uint64_t clips, uint64_t ticks,
                                struct shard_tensor tensors[SHARD_TENSORS_MAX], uint32_t *count,
                                struct error *error);

/* Draws what every sensor saw in the tick `now`, which follows `before` (at a drive's first tick
 * the same), as tick number `frame` of the shard. */
enum status datagen_rig_write(struct datagen_rig *self, struct shard_file *file, uint64_t frame,
                              const struct prepared *prepared, const struct scene *before,
                              const struct scene *now, uint64_t seed, struct error *error);

#endif
