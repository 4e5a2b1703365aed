/*
 * Clips: consecutive ticks of one drive as training data (engine/model.md), each made by a job
 * (schemas/job.h, `makes`). A clip is a function of its job's question: scenario, planner, world,
 * rig, revision, and the seed, which is the key that everything else is drawn by: the drive's own
 * seed, conditions, whether the planner is overridden now and then, first tick, anchor.
 *
 * Its artifact is a shard of one clip, whose record does not say yet which scenario of the set it
 * is of. Of a drive that ends before it is long enough there is none.
 */
#ifndef SWERVE_WORKER_DATAGEN_CLIP_H
#define SWERVE_WORKER_DATAGEN_CLIP_H

#include "worker/datagen/datagen_rig.h"
#include "worker/datagen/shard_file.h"
#include "worker/models/models.h"
#include "worker/planner/planner.h"
#include "worker/run/claim_loop.h"

#define CLIP_FORMAT "swerve-clip/1"

/* Opens planners and worlds as jobs want them, and keeps them. `models` (NULL: none) is borrowed.
 */
struct clip_maker;
enum status clip_maker_create(struct models *models, uint32_t thread_count, struct clip_maker **out,
                              struct error *error);
void clip_maker_destroy(struct clip_maker *maker); /* accepts NULL */

/* Of claim_loop_config; `maker`: a struct clip_maker. CANCELLED: it was to end. PLANNER, DEVICE: it
 * does not start here. BUSY, TIMEOUT: its model is not to be had now. NO_MEMORY, IO: this host is
 * short of something, or the world cannot be reached any more. CONFLICT: what else is the job's
 * own. */
enum status clip_make(void *maker, const struct clip_task *task, struct clip_made *out,
                      struct error *error);
void clip_close_planners(void *maker);

/* Tensors of a shard of so many clips of `t` ticks; the record of a clip, int64 [4]: the drive's
 * seed, the scenario's number in the suite, the first tick, held out or not, is the first.
 * `generated`: with what a learned world showed. `rig`: NULL or whose sensors are drawn beside. */
enum status clip_tensors(uint64_t clips, uint64_t t, bool generated, struct datagen_rig *rig,
                         struct shard_tensor tensors[SHARD_TENSORS_MAX], uint32_t *count,
                         struct error *error);

/* Choices under a clip's key that are made before there is a job: 0 .. count - 1. */
enum clip_draw { CLIP_DRAW_PLANNER, CLIP_DRAW_SCENARIO };
uint32_t clip_draw(uint64_t key, enum clip_draw purpose, uint32_t count);

#endif
