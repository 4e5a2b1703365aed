/*
 * Makers of futures: what a worker does with a job that makes them (schemas/job.h, `makes`). The
 * drive is done again in the object world, with the futures of the models that foresee
 * (FUTURES_KEPT); its outcome is that of the drive, with what became of the futures, and its
 * artifact the drive's trace. What a job takes is bounded by its scenario: its horizon and, from
 * the tick on, 1 + 3 x draws drives.
 *
 * An outcome is a function of its job's question, tick and draws.
 */
#ifndef SWERVE_WORKER_CAREFUL_FUTURES_MAKE_H
#define SWERVE_WORKER_CAREFUL_FUTURES_MAKE_H

#include "worker/careful/futures.h"
#include "worker/run/claim_loop.h"

/* Keeps the runner of the last job, for as long as the next one asks for the same planner. */
struct futures_maker;
enum status futures_maker_create(uint32_t slot_count, struct futures_maker **out,
                                 struct error *error);
void futures_maker_destroy(struct futures_maker *maker); /* accepts NULL */

/* Of a claim loop, as clip_make() is (worker/datagen/clip.h), with the same errors. */
enum status futures_make(struct futures_maker *maker, const struct clip_task *task,
                         struct clip_made *out, struct error *error);
void futures_close_planners(struct futures_maker *maker);

#endif
