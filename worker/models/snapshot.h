/*
 * Evidence: what a flagged frame looked like, as a PNG for people: the BEV grid (ego looking up),
 * below it the three cameras side by side.
 */
#ifndef SWERVE_WORKER_MODELS_SNAPSHOT_H
#define SWERVE_WORKER_MODELS_SNAPSHOT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* frame: [BEV_BYTES], then [CAMERA_COUNT][CAMERA_BYTES]. *png is malloc'ed, owned by the caller. */
enum status snapshot_png(const uint8_t *frame, uint8_t **png, size_t *bytes, struct error *error);

#endif
