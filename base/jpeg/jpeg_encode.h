/*
 * JPEG in memory, through libjpeg-turbo: pictures that planners are shown.
 */
#ifndef SWERVE_BASE_JPEG_JPEG_ENCODE_H
#define SWERVE_BASE_JPEG_JPEG_ENCODE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* rgb [height][width][3] as a JPEG file of a quality of 1 to 100, chroma halved both ways, into
 * out [room], of which *bytes are used. LIMIT: it has no room. */
enum status jpeg_encode(const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t quality,
                        uint8_t *out, size_t room, size_t *bytes, struct error *error);

#endif
