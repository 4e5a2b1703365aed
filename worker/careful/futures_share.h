/*
 * P(fail) of futures that were driven, and its interval (scheduler/calibration.h).
 */
#ifndef SWERVE_WORKER_CAREFUL_FUTURES_SHARE_H
#define SWERVE_WORKER_CAREFUL_FUTURES_SHARE_H

#include "scheduler/calibration.h"
#include "worker/careful/futures.h"

/* Of one model, and of several of those that the futures have; each has the same weight. */
struct forecast_share futures_share_of(const struct futures *futures, enum traffic_model model);
struct forecast_share futures_share_over(const struct futures *futures, uint32_t models);

#endif
