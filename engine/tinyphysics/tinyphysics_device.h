/*
 * Tinyphysics on a device: many drives at once under the challenge's own controllers, each a block
 * of the device (kernels/cuda/tinyphysics/rollout.h). Costs are those of tinyphysics_run in single
 * precision, to the last bit.
 */
#ifndef SWERVE_ENGINE_TINYPHYSICS_TINYPHYSICS_DEVICE_H
#define SWERVE_ENGINE_TINYPHYSICS_TINYPHYSICS_DEVICE_H

#include "engine/learned/device.h"
#include "engine/tinyphysics/tinyphysics_run.h"

/* `device` is not the CPU; *device_s is what the drives took there, without the copies. NO_MEMORY,
 * and DEVICE with what it said: costs are not filled in. */
enum status tinyphysics_device_run(const struct device *device,
                                   const struct tinyphysics_weights *weights,
                                   enum tinyphysics_controller controller,
                                   struct tinyphysics_drive *drives, uint32_t count,
                                   double *device_s, struct error *error);

#endif
