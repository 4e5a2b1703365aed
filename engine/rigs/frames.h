/*
 * Frames: pictures of a camera of a rig at the times at which it takes them: several a tick where
 * it is faster than ticks, and row after row where its shutter rolls. Pure.
 *
 * A tick's frames lie at equal distances in time behind it, the last one at the tick itself. The
 * last row of a frame is exposed at the frame's time and the first one shutter_ms before, so that a
 * frame shows nothing later than its own time. Poses are those of a moment between two ticks for
 * each band of 8 rows, or columns; of a lidar's turn for each band of 8 azimuths.
 */
#ifndef SWERVE_ENGINE_RIGS_FRAMES_H
#define SWERVE_ENGINE_RIGS_FRAMES_H

#include "engine/rigs/scan.h"
#include "engine/sensors/raster.h"
#include "schemas/rig/rig.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stdint.h>

/* The scene at a share of the time between two ticks that follow each other; 0 and 1 are these to
 * the bit. Bodies move along cubic curves with the poses and speeds of both (Hermite); what jumps,
 * comes or goes is where the nearer tick has it, and signals and conditions are those of the later
 * one. share 0..1. `out` may be neither. */
void frames_scene(const struct scene *before, const struct scene *after, double share,
                  struct scene *out);

/* Frame `index` < rig_camera_frames of the tick `after`; `before` is the tick before it. Fills
 * out[height][width][3], RGB. A shutter that opened before the tick before is cut off there.
 * `rays`: of the camera. */
void frames_draw(const struct raster_layers *layers, const struct scenario *scenario,
                 const struct scene *before, const struct scene *after, uint64_t seed,
                 const struct rig_camera *camera, const struct raster_rays *rays, uint32_t index,
                 uint8_t *out);

/* Points of the turn of a lidar that ends with the tick `after`: scan_points of bands of 8
 * azimuths, each at its own moment. Returns their number; out[scan_points_max]. */
uint32_t frames_scan(const struct raster_layers *layers, const struct scenario *scenario,
                     const struct scene *before, const struct scene *after, uint64_t seed,
                     const struct rig_lidar *lidar, const struct scan *scan,
                     struct scan_point *out);

#endif
