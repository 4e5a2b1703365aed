/*
 * The calibration drive. See calibrate.h.
 */
#include "worker/run/calibrate.h"

#include "base/check.h"
#include "engine/worlds/foreign.h"
#include "scenarios/scenarios.h"
#include "schemas/rig/rig.h"
#include "worker/run/runner_open.h"

#include <stdlib.h>
#include <string.h>

enum { CALIBRATE_SLOTS = 8 };

struct drive {
    const struct calibrate_options *options;
    struct health_calibration calibration;
    enum conditioning conditioning;
    struct runner *runner;
    char fault[FRAME_FAULT_BYTES]; /* of a foreign world, the first; "": none */
};

static void observe(void *context, const struct frame_stats *frame_stats, const double *statistic)
{
    struct drive *drive = context;
    if (drive->fault[0] == '\0') {
        memcpy(drive->fault, frame_stats->fault, sizeof drive->fault);
    }
    if (frame_stats->tick <= frame_stats->horizon_ticks) {
        health_calibration_add(&drive->calibration, drive->conditioning, statistic);
    }
}

/* Takes out what is finished. A broken job breaks the calibration: its ticks are missing. */
static enum status collect(struct drive *drive, struct error *error)
{
    struct job_run *job;
    enum status status = STATUS_OK;
    while ((job = runner_take(drive->runner)) != NULL) {
        if (job->failure != STATUS_OK && status == STATUS_OK) {
            status = error_set(error, job->failure, "calibrate: scenario %s: %.700s",
                               job->scenario->id, job->error);
        }
        drive->calibration.rollouts++;
        job_run_destroy(job);
    }
    if (status == STATUS_OK && drive->fault[0] != '\0') {
        status = error_set(error, STATUS_DEVICE, "calibrate: world %s", drive->fault);
    }
    return status;
}

static enum status drive_one(struct drive *drive, const struct scenario *scenario, uint64_t seed,
                             struct error *error)
{
    struct prepared *prepared = NULL;
    struct job_run *job = NULL;
    struct job_lease lease = {.epoch = 1, .spec = {.seed = seed}};
    enum status status = prepared_create(scenario, &prepared, error);
    THEN(status, job_run_create(&lease, prepared, &job, error));
    prepared_unref(prepared); /* the job has its own reference */
    if (status == STATUS_OK) {
        status = runner_add(drive->runner, job, ROLLOUT_MAIN, error);
        if (status != STATUS_OK) {
            job_run_destroy(job);
        }
    }
    while (status == STATUS_OK && runner_free_slots(drive->runner) == 0) {
        runner_tick(drive->runner);
        status = collect(drive, error);
    }
    return status;
}

/* `scenarios` has one per entry of the suite. */
static enum status drive_suite(struct drive *drive, const struct suite *suite,
                               const struct scenario *scenarios, struct error *error)
{
    uint32_t seeds = drive->options->seed_count;
    for (uint32_t e = 0; e < suite->entry_count; e++) {
        const struct suite_entry *entry = &suite->entries[e];
        uint32_t count = seeds > 0 ? seeds : entry->seed_count;
        for (uint32_t s = 0; s < count; s++) {
            TRY(drive_one(drive, &scenarios[e], seeds > 0 ? s + 1 : entry->seeds[s], error));
        }
    }
    while (runner_busy(drive->runner)) {
        runner_tick(drive->runner);
        TRY(collect(drive, error));
    }
    return STATUS_OK;
}

/* The suite's scenarios, no longer than the model is trusted in this degree: what comes after that
 * is not calibrated. Shallow copies, which live as long as the suite; the caller frees the array.
 */
static struct scenario *clip(const struct suite *suite, uint32_t horizon_ticks)
{
    struct scenario *scenarios = calloc(suite->entry_count, sizeof *scenarios);
    for (uint32_t e = 0; scenarios != NULL && e < suite->entry_count; e++) {
        scenarios[e] = suite->entries[e].document->scenario;
        if (scenarios[e].horizon_ticks > horizon_ticks) {
            scenarios[e].horizon_ticks = horizon_ticks;
        }
    }
    return scenarios;
}

static enum status drive_conditioning(struct drive *drive, const struct suite *suite,
                                      struct error *error)
{
    const struct calibrate_options *options = drive->options;
    struct open_runner open = {0};
    const struct runner_source source = {
        .models = options->models,
        .world_for_tier = options->world_for_tier,
        .planner_config = {.tick_deadline_ms = 1000},
        .slot_count = options->slot_count > 0 ? options->slot_count : CALIBRATE_SLOTS,
        .thread_count = 1,
        .clock = clock_system(),
        .observe_health = observe,
        .observe_context = drive,
        .picture_tally = &drive->calibration.pictures,
    };
    struct job_spec spec = {.tier = options->model->config->tier};
    if (strlen(options->planner) >= sizeof spec.planner) {
        return error_set(error, STATUS_LIMIT, "calibrate: the planner's spec is too long");
    }
    strcpy(spec.planner, options->planner);
    memcpy(spec.model_hash, options->model->hash, sizeof spec.model_hash);
    models_sampler(options->models, options->model, drive->conditioning, spec.sampler);
    if (options->rig != NULL) {
        TRY(rig_hash(options->rig, spec.rig, error));
    }
    struct scenario *scenarios =
        clip(suite, options->model->config->horizon_ticks[drive->conditioning]);
    TRY(memory_check(scenarios, error, "calibrate: no memory for %u scenarios",
                     suite->entry_count));
    enum status status = runner_open(&source, &spec, options->rig, &open, error);
    if (status == STATUS_OK) {
        drive->runner = open.runner;
        status = drive_suite(drive, suite, scenarios, error);
        runner_close(&open);
    }
    free(scenarios);
    return status;
}

enum status calibrate_run(const struct calibrate_options *options, struct calibrate_result *result,
                          struct error *error)
{
    struct drive drive = {.options = options};
    const struct registry *registry = models_registry(options->models);
    struct suite *suite = NULL;
    char name[LIMIT_ID_BYTES];
    enum status status = suite_load(options->suite, &suite, error);
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT && status == STATUS_OK;
         conditioning++) {
        drive.conditioning = (enum conditioning)conditioning;
        if (options->model->config->horizon_ticks[conditioning] > 0 &&
            (options->model->foreign == NULL ||
             foreign_drives_in(options->model->foreign, drive.conditioning))) {
            status = drive_conditioning(&drive, suite, error);
        }
    }
    suite_destroy(suite);
    if (status == STATUS_OK && drive.calibration.ticks == 0) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "calibrate: model %s is trusted for no tick of any layout",
                           options->model->name);
    }
    if (status == STATUS_OK) {
        const char *file = options->model->foreign != NULL
                               ? registry_world_name(options->model->hash, name)
                               : options->model->name;
        struct health_bounds bounds =
            health_calibration_bounds(&drive.calibration, options->model->hash, options->precision);
        status =
            health_calibration_save(&drive.calibration, &bounds, registry->directory, file, error);
    }
    if (status == STATUS_OK) {
        *result = (struct calibrate_result){.rollouts = (int64_t)drive.calibration.rollouts,
                                            .ticks = (int64_t)drive.calibration.ticks};
    }
    return status;
}
