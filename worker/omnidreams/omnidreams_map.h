/*
 * The map of a scenario as the contract has it: a ZIP of Parquet files in the public ClipGT schema.
 *
 * Tables: lane (rails), lane_line, road_boundary (rails beside which no lane of the road lies),
 * crosswalk, wait_line (stop lines), traffic_light and traffic_sign (above the end of their stop
 * lines; where plates hang our maps do not say), and the two that servers refuse to do without:
 * calibration_estimate (the rig's f-theta cameras) and egomotion_estimate (where ego begins). The
 * road is flat: all heights are 0.
 *
 * Source: NVIDIA Cosmos, World Scenario Parquet File Structure.
 */
#ifndef SWERVE_WORKER_OMNIDREAMS_MAP_H
#define SWERVE_WORKER_OMNIDREAMS_MAP_H

#include "base/status.h"
#include "engine/sensors/prepared.h"
#include "schemas/rig/rig.h"

#include <stddef.h>
#include <stdint.h>

/* *zip: malloc'ed, the caller's. The same scenario and rig give the same bytes. NO_MEMORY. */
enum status omnidreams_map(const struct prepared *prepared, const struct rig *rig, uint8_t **zip,
                           size_t *bytes, struct error *error);

#endif
