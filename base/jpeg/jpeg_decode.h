/*
 * JPEG files back into pixels, through libjpeg-turbo: pictures that were kept, or that a server
 * sends.
 */
#ifndef SWERVE_BASE_JPEG_JPEG_DECODE_H
#define SWERVE_BASE_JPEG_JPEG_DECODE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A JPEG file of exactly width x height pixels into out [height][width][3], RGB. The file is
 * trusted in nothing: BAD_INPUT says what is wrong with it, also where it ends too early; *out is
 * undefined then. */
enum status jpeg_decode(const uint8_t *file, size_t bytes, uint32_t width, uint32_t height,
                        uint8_t *out, struct error *error);

#endif
