/*
 * From a job's spec to a runner. See runner_open.h.
 */
#include "worker/run/runner_open.h"

#include "engine/learned/device.h"
#include "engine/worlds/foreign.h"
#include "engine/worlds/world.h"
#include "worker/models/sampler.h"

#include <string.h>

static bool learned(enum tier tier)
{
    return tier >= TIER_STUDENT;
}

enum status runner_find_model(struct models *models, const char *hash, enum nn_precision precision,
                              const struct models_model **out, struct error *error)
{
    enum status status = models_find(models, hash, precision, out, error);
    bool passes = status == STATUS_BUSY || status == STATUS_TIMEOUT || status == STATUS_NO_MEMORY ||
                  status == STATUS_IO;
    if (status != STATUS_OK && !passes) {
        status = error->status = STATUS_DEVICE;
    }
    return status;
}

/* The previous model that the job's sampler names, which the model's own then names too. */
static enum status choose_previous(const struct runner_source *source, const struct job_spec *spec,
                                   enum nn_precision precision, char sampler[LIMIT_ID_BYTES],
                                   struct runner_config *config, const struct models_model **out,
                                   struct error *error)
{
    char digits[SAMPLER_HASH_DIGITS + 1];
    if (!sampler_previous(spec->sampler, digits)) {
        return STATUS_OK;
    }
    TRY(runner_find_model(source->models, digits, precision, out, error));
    if ((*out)->foreign != NULL) {
        return error_set(error, STATUS_DEVICE, "sampler %s: its previous model is none of ours",
                         spec->sampler);
    }
    sampler_add_previous(sampler, (*out)->hash);
    config->previous = (*out)->model;
    config->previous_bounds = &(*out)->bounds;
    return STATUS_OK;
}

/* Fills the model's part of the configuration, after checking that it is what the job names. */
static enum status choose_model(const struct runner_source *source, const struct job_spec *spec,
                                struct runner_config *config, const struct models_model **out,
                                const struct models_model **previous, struct error *error)
{
    enum conditioning conditioning = CONDITIONING_AGENTS;
    enum nn_precision precision = NN_BF16;
    const struct models_model *model = NULL;
    const struct models_model *before = NULL;
    char sampler[LIMIT_ID_BYTES];
    if (source->models == NULL) {
        return error_set(error, STATUS_DEVICE, "tier %s: this process has no models",
                         tier_names[spec->tier]);
    }
    TRY(models_parse_sampler(spec->sampler, &conditioning, &precision, error));
    TRY(runner_find_model(source->models, spec->model_hash, precision, &model, error));
    models_sampler(source->models, model, conditioning, sampler);
    models_hold(source->models, model); /* while the other one is opened */
    enum status status = choose_previous(source, spec, precision, sampler, config, &before, error);
    models_release(source->models, model);
    TRY(status);
    bool may = model->foreign != NULL || model->config->tier == spec->tier;
    if (!may || !sampler_skips(sampler, spec->sampler, &config->skipped)) {
        return error_set(error, STATUS_DEVICE,
                         "model %s: the job wants tier %s with sampler %s, this model is tier %s "
                         "with sampler %s",
                         model->name, tier_names[spec->tier], spec->sampler,
                         tier_names[model->config->tier], sampler);
    }
    config->model = model->model;
    config->foreign = model->foreign;
    if (model->foreign != NULL) {
        config->world = foreign_world_ops(model->foreign, spec->tier);
    }
    config->conditioning = conditioning;
    config->bounds = &model->bounds;
    *out = model;
    *previous = before;
    return STATUS_OK;
}

/* The device of the job's backend: bits differ between backends, so no other will do. */
static enum status choose_device(const struct runner_source *source, const struct job_spec *spec,
                                 struct device *device, struct error *error)
{
    *device = (struct device){.backend = "cpu"};
    if (spec->backend[0] == '\0' || strcmp(spec->backend, device->backend) == 0) {
        return STATUS_OK;
    }
    TRY(device_choose(source->device != NULL ? source->device : "auto", device, error));
    if (strcmp(device->backend, spec->backend) != 0) {
        return error_set(error, STATUS_DEVICE,
                         "the job was submitted for %s, this worker runs on %s (--device)",
                         spec->backend, device->backend);
    }
    return STATUS_OK;
}

enum status runner_open(const struct runner_source *source, const struct job_spec *spec,
                        const struct rig *rig, struct open_runner *out, struct error *error)
{
    struct open_runner opened = {0};
    struct runner_config config = {
        .planner = spec->planner,
        .planner_hash = spec->planner_hash,
        .rig = rig,
        .rig_hash = spec->rig,
        .planner_config = source->planner_config,
        .slot_count = source->slot_count,
        .thread_count = source->thread_count,
        .overlap = source->overlap,
        .start_apart = source->start_apart,
        .checkpoint_ns = source->checkpoint_ns,
        .always_solo = source->always_solo,
        .observe_health = source->observe_health,
        .observe_context = source->observe_context,
        .picture_tally = source->picture_tally,
        .clock = source->clock,
        .logger = source->logger,
    };
    config.world = source->world_for_tier != NULL ? source->world_for_tier(spec->tier)
                                                  : world_ops_for_tier(spec->tier);
    if (config.world == NULL && spec->tier != TIER_GOLDEN) { /* that one comes with its model */
        return error_set(error, STATUS_DEVICE, "tier %s: this worker has no such world",
                         tier_names[spec->tier]);
    }
    enum status status = STATUS_OK;
    struct device device;
    if (learned(spec->tier)) {
        status = choose_model(source, spec, &config, &opened.model, &opened.previous, error);
        if (status == STATUS_OK) {
            models_hold(source->models, opened.model);
            models_hold(source->models, opened.previous);
            opened.models = source->models;
            status = choose_device(source, spec, &device, error);
            config.device = &device;
        }
        THEN(status, spill_create(NULL, source->spill_bytes_max, &opened.spill, error));
        if (status == STATUS_OK) {
            config.spill = spill_ops_of(opened.spill);
        }
    }
    THEN(status, runner_create(&config, &opened.runner, error));
    if (status != STATUS_OK) {
        runner_close(&opened);
        return status;
    }
    *out = opened;
    return STATUS_OK;
}

void runner_close(struct open_runner *open)
{
    runner_destroy(open->runner);
    spill_destroy(open->spill); /* the world's pages refer to it until it is closed */
    models_release(open->models, open->model);
    models_release(open->models, open->previous);
    *open = (struct open_runner){0};
}

enum status runner_drive(struct runner *runner, const struct job_lease *lease,
                         struct prepared *prepared, struct job_run **out, struct error *error)
{
    struct job_run *job = NULL;
    TRY(job_run_create(lease, prepared, &job, error));
    enum status status = runner_add(runner, job, ROLLOUT_ALL, error);
    if (status != STATUS_OK) {
        job_run_destroy(job);
        return status;
    }
    while ((*out = runner_take(runner)) == NULL) {
        runner_tick(runner);
    }
    return STATUS_OK;
}
