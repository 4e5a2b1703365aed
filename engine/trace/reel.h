/*
 * Reel: every frame that a world showed in one rollout, beside the ticks of its trace, for drives
 * that become goldens (worker/golden). All of it, as a planner would be shown it: the grid and all
 * cameras, to the last bit, each frame packed by zstd on its own so that any of them can be shown
 * at once. Behind them lies what else is to be kept of the tick (reel_add).
 *
 * Frame i is that of the trace's tick i. No verdict and no hash depends on a reel.
 */
#ifndef SWERVE_ENGINE_TRACE_REEL_H
#define SWERVE_ENGINE_TRACE_REEL_H

#include "base/status.h"
#include "engine/worlds/world.h"
#include "schemas/observation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a frame: the grid, then the cameras; packed, a zstd frame for each. */
enum { REEL_FRAME_BYTES = BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES };
enum reel_part { REEL_GRID = 1, REEL_CAMERAS = 2, REEL_ALL = 3 };

struct reel {
    uint64_t
        *room; /* bytes that reels of a job may still take, shared, borrowed; NULL: it is off */
    uint32_t count;
    uint32_t *sizes; /* [count], of packed frames; owned */
    uint8_t *data;   /* packed frames, one behind the other; owned */
    size_t bytes;
    size_t capacity;
};

void reel_finish(struct reel *reel); /* gives its room back */

/* Addresses of the parts of frame[REEL_FRAME_BYTES]. */
struct observation_buffers reel_buffers(uint8_t *frame);

/* Keeps what the slot's sensors see now, where the reel is on. NO_MEMORY, and LIMIT where its room
 * ends, leave it as it was. */
enum status reel_take(struct reel *reel, const struct world *world, uint32_t slot,
                      struct error *error);

/* Keeps bytes behind the newest frame. NO_MEMORY, LIMIT: likewise. */
enum status reel_add(struct reel *reel, const void *data, size_t bytes, struct error *error);

/* Bytes of a frame that were added behind it; NULL: it is damaged. */
const uint8_t *reel_added(const void *packed, size_t bytes, size_t *added_bytes);

/* Unpacks parts (of enum reel_part, or'ed) of a frame that lies anywhere into their places in
 * frame[REEL_FRAME_BYTES]; false: it is not one. */
bool reel_unpack(const void *packed, size_t bytes, unsigned parts, uint8_t *frame);

#endif
