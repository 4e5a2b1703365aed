/*
 * Opening a runner for what a job asks: its tier's world, and for a learned one the very model and
 * sampler that it names. A worker that does not have them says so; it never runs another model.
 */
#ifndef SWERVE_WORKER_RUN_RUNNER_OPEN_H
#define SWERVE_WORKER_RUN_RUNNER_OPEN_H

#include "engine/worlds/world.h"
#include "schemas/job.h"
#include "worker/models/models.h"
#include "worker/run/runner.h"
#include "worker/run/spill.h"

struct runner_source {
    struct models *models; /* borrowed; NULL: learned tiers cannot be run */
    /* NULL: world_ops_for_tier; tests put a double here. */
    const struct world_ops *(*world_for_tier)(enum tier tier);
    struct planner_config planner_config;
    uint32_t slot_count;
    uint32_t thread_count; /* per learned world */
    bool overlap;          /* as of struct runner_config */
    bool start_apart;      /* .. then runner_starts() and runner_started() after runner_open() */
    const char *device;    /* that learned worlds may use, as on the command line; NULL: auto */
    uint64_t spill_bytes_max;
    int64_t checkpoint_ns; /* as of struct runner_config */
    bool always_solo;
    const struct clock *clock;
    const struct logger *logger;
    void (*observe_health)(void *context, const struct frame_stats *frame_stats,
                           const double *statistic);
    void *observe_context;
    struct watch_tally *picture_tally; /* of struct world_config */
};

struct open_runner {
    struct runner *runner; /* NULL: none */
    struct spill *spill;
    struct models *models;               /* borrowed, where a model is held: */
    const struct models_model *model;    /* NULL: none */
    const struct models_model *previous; /* held too; NULL: none */
};

/* The model that a job names, as models_find. Whatever is wrong with it, its file or its bounds, is
 * wrong here: the job has only named it (DEVICE). NO_MEMORY, IO: this host is short of something;
 * BUSY, TIMEOUT: it is not to be had now. */
enum status runner_find_model(struct models *models, const char *hash, enum nn_precision precision,
                              const struct models_model **out, struct error *error);

/* Of the spec: tier, planner, planner_hash ("" for any), model_hash, sampler, rig, backend ("" is
 * "cpu"). `rig`: of the job's scenario, NULL: the built-in one. STATUS_DEVICE: no such world,
 * model, sampler or device here. STATUS_BUSY: all models that may be open are held. */
enum status runner_open(const struct runner_source *source, const struct job_spec *spec,
                        const struct rig *rig, struct open_runner *out, struct error *error);
void runner_close(struct open_runner *open); /* accepts one that is not open */

/* Drives one job in an idle runner to its end, whatever that is; the caller destroys *out. */
enum status runner_drive(struct runner *runner, const struct job_lease *lease,
                         struct prepared *prepared, struct job_run **out, struct error *error);

#endif
