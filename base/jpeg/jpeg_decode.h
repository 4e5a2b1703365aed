/*
 * JPEG files back into pixels, through libjpeg-turbo: pictures that were kept.
 */
#ifndef SWERVE_BASE_JPEG_JPEG_DECODE_H
#define SWERVE_BASE_JPEG_JPEG_DECODE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Decodes untrusted bytes into rgb [height][width][3], each side 1 to 4096. BAD_INPUT: no JPEG, or
 * one of another size. What is missing at the end of a damaged one is grey. */
enum status jpeg_decode(const uint8_t *data, size_t bytes, uint32_t width, uint32_t height,
                        uint8_t *rgb, struct error *error);

#endif
