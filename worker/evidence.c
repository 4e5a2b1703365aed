/*
 * One picture of an observation, through libpng. See evidence.h.
 */
#include "worker/evidence.h"

#include "engine/picture.h"
#include "schemas/observation.h"

#include <png.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVIDENCE_SCALE = 2,
    EVIDENCE_WIDTH = CAMERA_COUNT * CAMERA_COLS,
    EVIDENCE_BEV_WIDTH = BEV_COLS * EVIDENCE_SCALE,
    EVIDENCE_BEV_ROWS = BEV_ROWS * EVIDENCE_SCALE,
    EVIDENCE_ROWS = EVIDENCE_BEV_ROWS + CAMERA_ROWS,
};

_Static_assert((int)EVIDENCE_BEV_WIDTH <= (int)EVIDENCE_WIDTH, "the grid fits above the cameras");

static void compose(const uint8_t *frame, uint8_t *bev, uint8_t *rgb)
{
    const size_t left = (EVIDENCE_WIDTH - EVIDENCE_BEV_WIDTH) / 2;
    picture_bev(frame, EVIDENCE_SCALE, bev);
    for (size_t row = 0; row < EVIDENCE_BEV_ROWS; row++) {
        memcpy(rgb + (row * EVIDENCE_WIDTH + left) * 3, bev + row * EVIDENCE_BEV_WIDTH * 3,
               (size_t)EVIDENCE_BEV_WIDTH * 3);
    }
    for (size_t camera = 0; camera < CAMERA_COUNT; camera++) {
        const uint8_t *image = frame + BEV_BYTES + camera * CAMERA_BYTES;
        for (size_t row = 0; row < CAMERA_ROWS; row++) {
            memcpy(rgb + ((EVIDENCE_BEV_ROWS + row) * EVIDENCE_WIDTH + camera * CAMERA_COLS) * 3,
                   image + row * CAMERA_COLS * 3, (size_t)CAMERA_COLS * 3);
        }
    }
}

enum status evidence_png(const uint8_t *frame, uint8_t **png, size_t *bytes, struct error *error)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION,
        .width = EVIDENCE_WIDTH,
        .height = EVIDENCE_ROWS,
        .format = PNG_FORMAT_RGB,
    };
    png_alloc_size_t needed = 0;
    uint8_t *written = NULL;
    uint8_t *bev = malloc((size_t)EVIDENCE_BEV_ROWS * EVIDENCE_BEV_WIDTH * 3);
    uint8_t *rgb = calloc((size_t)EVIDENCE_ROWS * EVIDENCE_WIDTH, 3);
    bool good = bev != NULL && rgb != NULL;
    if (good) {
        compose(frame, bev, rgb);
        /* The first call only measures. */
        good = png_image_write_to_memory(&image, NULL, &needed, 0, rgb, 0, NULL) != 0;
    }
    if (good) {
        written = malloc(needed);
        good = written != NULL &&
               png_image_write_to_memory(&image, written, &needed, 0, rgb, 0, NULL) != 0;
    }
    free(bev);
    free(rgb);
    if (!good) {
        free(written);
        return error_set(error, STATUS_NO_MEMORY, "evidence: cannot make a picture: %.200s",
                         image.message[0] != '\0' ? image.message : "out of memory");
    }
    *png = written;
    *bytes = needed;
    return STATUS_OK;
}
