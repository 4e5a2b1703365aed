/*
 * Devices: opens the module that drives them (kernels/device.h) and asks it what there is. Nothing
 * of a device's libraries is linked; where the module is missing, worlds run on the CPU.
 */
#ifndef SWERVE_ENGINE_LEARNED_DEVICE_H
#define SWERVE_ENGINE_LEARNED_DEVICE_H

#include "base/status.h"
#include "kernels/device.h"

#include <stdbool.h>

enum { DEVICE_NAME_BYTES = 64 };

/* A device that worlds may run on, or the CPU. */
struct device {
    const struct device_ops *ops; /* NULL: the CPU */
    uint32_t index;
    bool reference; /* reference kernels, which modules of tests have */
    bool wgmma;     /* e4m3, and heads of 128 numbers, on a warpgroup's tensor cores */
    char products[DEVICE_PRODUCTS_BYTES]; /* as struct device_options has them */
    /* Property of the device that decides a rollout's bits: "cuda:sm_90"; "cuda:sm_90/mma.sync"
     * where that has no wgmma that agrees; "cuda:sm_90/0123456789abcdef" where products run on
     * choices that were timed; "cpu". */
    char backend[DEVICE_NAME_BYTES];
};

/* Looks for the module: $SWERVE_CUDA_MODULE (nothing else then), beside the executable,
 * ../lib/swerve beside its folder, ../kernels/cuda of a build folder, /usr/lib/swerve. The module
 * stays open until the process ends. STATUS_NOT_FOUND: there is none; STATUS_DEVICE: it cannot be
 * used (it does not load, is of another version). */
enum status device_module_open(const struct device_ops **out, struct error *error);

/* `name` as on the command line: "cpu", "auto" or "cuda:N". auto is the CPU where no device can be
 * used. STATUS_USAGE: another name; STATUS_DEVICE: no such device. */
enum status device_choose(const char *name, struct device *out, struct error *error);

/* A sentence about what there is, for people; returns whether a device can be used. */
int device_describe(char *text, size_t text_bytes);

/* Runs and measures a rank's share of a world step of a full-scale configuration
 * (kernels/trunk/trunk.h: "student-3b", ..); engine/bench/scale_ranks.h starts the ranks. */
enum status device_scale_run(const struct device *device, const char *config,
                             const struct device_ranks *ranks, struct device_scale *out,
                             struct error *error);

/* Times the ways to run a model's products at so many slots on a device that is not the CPU, and
 * keeps the fastest (struct device_ops, tune). A device that is chosen from then on may have
 * another backend. */
struct model;
enum status device_tune(const struct device *device, const struct model *model, uint32_t slots,
                        struct device_tuning *out, struct error *error);

/* Drives logs of the controls challenge on a device that is not the CPU. */
enum status device_rollouts_run(const struct device *device, struct device_rollouts *rollouts,
                                struct error *error);

/* A fault of the module's as the engine's status. */
enum status device_error(struct error *error, int fault, const char *what,
                         const struct device_text *why);

#endif
