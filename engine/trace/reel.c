/*
 * Reels. See reel.h.
 */
#include "engine/trace/reel.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { REEL_LEVEL = 3 };

void reel_finish(struct reel *reel)
{
    if (reel->room != NULL) {
        *reel->room += reel->bytes + reel->count * sizeof *reel->sizes;
    }
    free(reel->sizes);
    free(reel->data);
    *reel = (struct reel){.room = reel->room};
}

struct observation_buffers reel_buffers(uint8_t *frame)
{
    struct observation_buffers buffers = {.bev = frame};
    for (size_t i = 0; i < CAMERA_COUNT; i++) {
        buffers.camera[i] = frame + BEV_BYTES + i * CAMERA_BYTES;
    }
    return buffers;
}

static enum status reserve(struct reel *reel, size_t bytes, struct error *error)
{
    size_t capacity = reel->capacity > 0 ? reel->capacity : (size_t)1 << 20;
    while (capacity - reel->bytes < bytes) {
        capacity *= 2;
    }
    if (capacity == reel->capacity) {
        return STATUS_OK;
    }
    uint8_t *grown = realloc(reel->data, capacity);
    TRY(memory_check(grown, error, "reel: out of memory for %zu bytes", capacity));
    reel->data = grown;
    reel->capacity = capacity;
    return STATUS_OK;
}

/* Takes that much of the room that is left. */
static enum status take_room(struct reel *reel, size_t bytes, struct error *error)
{
    if (bytes > *reel->room) {
        return error_set(error, STATUS_LIMIT, "reel: %zu bytes more, expected at most %llu", bytes,
                         (unsigned long long)*reel->room);
    }
    *reel->room -= bytes;
    return STATUS_OK;
}

/* Packs a part behind what *packed bytes there are already; the room is the bound of both. */
static enum status pack(uint8_t *room, size_t *packed, const uint8_t *part, size_t bytes,
                        struct error *error)
{
    size_t made = ZSTD_compress(room + *packed, ZSTD_COMPRESSBOUND(bytes), part, bytes, REEL_LEVEL);
    if (ZSTD_isError(made)) {
        return error_set(error, STATUS_NO_MEMORY, "reel: %s", ZSTD_getErrorName(made));
    }
    *packed += made;
    return STATUS_OK;
}

enum status reel_take(struct reel *reel, const struct world *world, uint32_t slot,
                      struct error *error)
{
    const size_t most =
        ZSTD_COMPRESSBOUND(BEV_BYTES) + ZSTD_COMPRESSBOUND(REEL_FRAME_BYTES - BEV_BYTES);
    size_t bytes = 0;
    if (reel->room == NULL) {
        return STATUS_OK;
    }
    TRY(array_room(&reel->sizes, reel->count, sizeof *reel->sizes, error));
    TRY(reserve(reel, most, error));
    uint8_t *frame = calloc(1, REEL_FRAME_BYTES);
    TRY(memory_check(frame, error, "reel: out of memory"));
    const struct observation_buffers buffers = reel_buffers(frame);
    world->ops->slot_observe(world, slot, &buffers);
    enum status status = pack(reel->data + reel->bytes, &bytes, frame, BEV_BYTES, error);
    THEN(status, pack(reel->data + reel->bytes, &bytes, frame + BEV_BYTES,
                      REEL_FRAME_BYTES - BEV_BYTES, error));
    free(frame);
    THEN(status, take_room(reel, bytes + sizeof *reel->sizes, error));
    if (status == STATUS_OK) {
        reel->sizes[reel->count++] = (uint32_t)bytes;
        reel->bytes += bytes;
    }
    return status;
}

enum status reel_add(struct reel *reel, const void *data, size_t bytes, struct error *error)
{
    TRY(reserve(reel, bytes, error));
    TRY(take_room(reel, bytes, error));
    memcpy(reel->data + reel->bytes, data, bytes);
    reel->sizes[reel->count - 1] += (uint32_t)bytes;
    reel->bytes += bytes;
    return STATUS_OK;
}

/* Sizes of the packed grid and cameras; false: they are not there. */
static bool measure(const uint8_t *packed, size_t bytes, size_t *grid, size_t *cameras)
{
    *grid = ZSTD_findFrameCompressedSize(packed, bytes);
    if (ZSTD_isError(*grid)) {
        return false;
    }
    *cameras = ZSTD_findFrameCompressedSize(packed + *grid, bytes - *grid);
    return !ZSTD_isError(*cameras);
}

const uint8_t *reel_added(const void *packed, size_t bytes, size_t *added_bytes)
{
    size_t grid;
    size_t cameras;
    if (!measure(packed, bytes, &grid, &cameras)) {
        return NULL;
    }
    *added_bytes = bytes - grid - cameras;
    return (const uint8_t *)packed + grid + cameras;
}

static bool unpack(const uint8_t *packed, size_t packed_bytes, uint8_t *part, size_t bytes)
{
    return ZSTD_decompress(part, bytes, packed, packed_bytes) == bytes;
}

bool reel_unpack(const void *packed, size_t bytes, unsigned parts, uint8_t *frame)
{
    const uint8_t *data = packed;
    size_t grid;
    size_t cameras;
    return measure(data, bytes, &grid, &cameras) &&
           ((parts & REEL_GRID) == 0 || unpack(data, grid, frame, BEV_BYTES)) &&
           ((parts & REEL_CAMERAS) == 0 ||
            unpack(data + grid, cameras, frame + BEV_BYTES, REEL_FRAME_BYTES - BEV_BYTES));
}
