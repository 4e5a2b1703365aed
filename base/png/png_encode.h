/*
 * PNG in memory, through libpng: evidence files and the report's pictures.
 */
#ifndef SWERVE_BASE_PNG_PNG_ENCODE_H
#define SWERVE_BASE_PNG_PNG_ENCODE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* rgb [height][width][3] as a PNG; *png is malloc'ed, owned by the caller. NO_MEMORY. */
enum status png_encode(const uint8_t *rgb, uint32_t width, uint32_t height, uint8_t **png,
                       size_t *bytes, struct error *error);

/* The same picture in a quarter of the time, a tenth larger where it is drawn of few colours: for
 * pages, which nobody knows by their hash. */
enum status png_encode_quick(const uint8_t *rgb, uint32_t width, uint32_t height, uint8_t **png,
                             size_t *bytes, struct error *error);

#endif
