/*
 * PNG in memory. See png_decode.h.
 */
#include "base/png/png_decode.h"

#include <png.h>

enum status png_decode(const uint8_t *file, size_t bytes, uint32_t width, uint32_t height,
                       uint8_t *out, struct error *error)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, file, bytes)) {
        return error_set(error, STATUS_BAD_INPUT, "a PNG of %zu bytes: %.160s", bytes,
                         image.message);
    }
    if (image.width != width || image.height != height) {
        error_set(error, STATUS_BAD_INPUT, "a PNG of %u x %u pixels, expected %u x %u", image.width,
                  image.height, width, height);
        png_image_free(&image);
        return STATUS_BAD_INPUT;
    }
    image.format = PNG_FORMAT_RGB;
    const png_color black = {0, 0, 0}; /* behind what is translucent */
    return png_image_finish_read(&image, &black, out, 0, NULL)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT, "a PNG of %zu bytes: %.160s", bytes,
                           image.message);
}
