/*
 * One picture of an observation. See snapshot.h.
 */
#include "worker/models/snapshot.h"

#include "base/png/png_encode.h"
#include "engine/sensors/picture.h"
#include "schemas/observation.h"

#include <stdlib.h>
#include <string.h>

enum {
    SNAPSHOT_SCALE = 2,
    SNAPSHOT_WIDTH = CAMERA_COUNT * CAMERA_COLS,
    SNAPSHOT_BEV_WIDTH = BEV_COLS * SNAPSHOT_SCALE,
    SNAPSHOT_BEV_ROWS = BEV_ROWS * SNAPSHOT_SCALE,
    SNAPSHOT_ROWS = SNAPSHOT_BEV_ROWS + CAMERA_ROWS,
};

_Static_assert((int)SNAPSHOT_BEV_WIDTH <= (int)SNAPSHOT_WIDTH, "the grid fits above the cameras");

static void compose(const uint8_t *frame, uint8_t *bev, uint8_t *rgb)
{
    const size_t left = (SNAPSHOT_WIDTH - SNAPSHOT_BEV_WIDTH) / 2;
    picture_bev(frame, SNAPSHOT_SCALE, bev);
    for (size_t row = 0; row < SNAPSHOT_BEV_ROWS; row++) {
        memcpy(rgb + (row * SNAPSHOT_WIDTH + left) * 3, bev + row * SNAPSHOT_BEV_WIDTH * 3,
               (size_t)SNAPSHOT_BEV_WIDTH * 3);
    }
    for (size_t camera = 0; camera < CAMERA_COUNT; camera++) {
        const uint8_t *image = frame + BEV_BYTES + camera * CAMERA_BYTES;
        for (size_t row = 0; row < CAMERA_ROWS; row++) {
            memcpy(rgb + ((SNAPSHOT_BEV_ROWS + row) * SNAPSHOT_WIDTH + camera * CAMERA_COLS) * 3,
                   image + row * CAMERA_COLS * 3, (size_t)CAMERA_COLS * 3);
        }
    }
}

enum status snapshot_png(const uint8_t *frame, uint8_t **png, size_t *bytes, struct error *error)
{
    uint8_t *bev = malloc((size_t)SNAPSHOT_BEV_ROWS * SNAPSHOT_BEV_WIDTH * 3);
    uint8_t *rgb = calloc((size_t)SNAPSHOT_ROWS * SNAPSHOT_WIDTH, 3);
    enum status status = STATUS_OK;
    if (bev == NULL || rgb == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "out of memory");
    } else {
        compose(frame, bev, rgb);
        status = png_encode(rgb, SNAPSHOT_WIDTH, SNAPSHOT_ROWS, png, bytes, error);
    }
    free(bev);
    free(rgb);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, "evidence");
}
