/*
 * PNG in memory, through libpng: pictures that a server sends.
 */
#ifndef SWERVE_BASE_PNG_PNG_DECODE_H
#define SWERVE_BASE_PNG_PNG_DECODE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A PNG file of exactly width x height pixels into out [height][width][3], RGB. BAD_INPUT says what
 * is wrong with it; *out is undefined then. */
enum status png_decode(const uint8_t *file, size_t bytes, uint32_t width, uint32_t height,
                       uint8_t *out, struct error *error);

#endif
