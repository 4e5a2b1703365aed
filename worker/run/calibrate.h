/*
 * Calibration: drives a suite in one model, every degree of layout, with its health checks only
 * watching, and writes what healthy rollouts show as that model's bounds. So for a foreign world
 * that is lent to the models, of the form RIG its pictures; what breaks its word breaks the
 * calibration.
 */
#ifndef SWERVE_WORKER_RUN_CALIBRATE_H
#define SWERVE_WORKER_RUN_CALIBRATE_H

#include "base/status.h"
#include "engine/worlds/world.h"
#include "worker/models/models.h"

struct calibrate_options {
    struct models *models;
    const struct models_model *model; /* one of them */
    enum nn_precision precision;
    const char *suite;     /* file */
    const char *planner;   /* spec */
    uint32_t seed_count;   /* 0: the suite's seeds */
    uint32_t slot_count;   /* 0: 8 */
    const struct rig *rig; /* whose cameras a world of the form RIG makes; NULL: the built-in one */
    const struct world_ops *(*world_for_tier)(enum tier tier); /* NULL: the engine's */
};

struct calibrate_result {
    int64_t rollouts;
    int64_t ticks;
};

/* Only ticks within the model's trusted horizon count; degrees without one keep built-in bounds. */
enum status calibrate_run(const struct calibrate_options *options, struct calibrate_result *result,
                          struct error *error);

#endif
