/*
 * `swerve bench engine --plan`: a world step on GPUs that are not here (engine/bench/bench_plan.h),
 * printed as tables or as one JSON object.
 */
#ifndef SWERVE_CLI_BENCH_PLAN_H
#define SWERVE_CLI_BENCH_PLAN_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The plan of a model's file, or (NULL) of a configuration's name or file; exactly one of them.
 * ranks 0: none exchange. */
enum status bench_plan_print(const char *model, const char *config, int64_t ranks, bool json,
                             struct error *error);

#endif
