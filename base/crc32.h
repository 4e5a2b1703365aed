/*
 * CRC-32 as in zlib, PNG and zip (ISO 3309).
 */
#ifndef SWERVE_BASE_CRC32_H
#define SWERVE_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32_of(const void *data, size_t bytes);

#endif
