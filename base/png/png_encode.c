/*
 * PNG in memory. See png_encode.h.
 */
#include "base/png/png_encode.h"

#include <png.h>
#include <stdlib.h>

static enum status encode(const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t flags,
                          uint8_t **png, size_t *bytes, struct error *error)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION,
        .width = width,
        .height = height,
        .format = PNG_FORMAT_RGB,
        .flags = flags,
    };
    /* A bound: asking for the size would compress everything as well. */
    png_alloc_size_t needed = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *written = malloc(needed);
    if (written == NULL || !png_image_write_to_memory(&image, written, &needed, 0, rgb, 0, NULL)) {
        free(written);
        return error_set(error, STATUS_NO_MEMORY, "cannot make a picture of %u x %u: %.200s", width,
                         height, image.message[0] != '\0' ? image.message : "out of memory");
    }
    uint8_t *fitted = realloc(written, needed);
    if (fitted != NULL) {
        written = fitted;
    }
    *png = written;
    *bytes = needed;
    return STATUS_OK;
}

enum status png_encode(const uint8_t *rgb, uint32_t width, uint32_t height, uint8_t **png,
                       size_t *bytes, struct error *error)
{
    return encode(rgb, width, height, 0, png, bytes, error);
}

enum status png_encode_quick(const uint8_t *rgb, uint32_t width, uint32_t height, uint8_t **png,
                             size_t *bytes, struct error *error)
{
    return encode(rgb, width, height, PNG_IMAGE_FLAG_FAST, png, bytes, error);
}
