/*
 * The smallest student that a device can hold: random weights, one layer, one step, two pages.
 */
#ifndef SWERVE_TESTS_ENGINE_SMALL_MODEL_H
#define SWERVE_TESTS_ENGINE_SMALL_MODEL_H

#include "base/check.h"
#include "engine/learned/model.h"
#include "kernels/cpu.h"

/* The caller closes it. */
static inline struct model *small_model(void)
{
    struct model *model = NULL;
    struct error error;
    const struct model_config config = {
        .name = "random",
        .tier = TIER_STUDENT,
        .width = 32,
        .layers = 1,
        .bev_channels = 32,
        .camera_channels = 32,
        .window = 2,
        .steps = 1,
        .schedule = {0.0, 1.0},
        .horizon_ticks = {100, 100, 100},
    };
    const struct model_open_options options = {
        .precision = NN_BF16, .cpu_flags = cpu_flags_detect(), .device = true};
    CHECK(model_random(&config, &options, 4, &model, &error) == STATUS_OK);
    return model;
}

#endif
