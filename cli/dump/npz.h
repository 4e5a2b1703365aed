/*
 * npz: arrays for numpy.load, as a zip archive of .npy files (numpy.lib.format 1.0), uncompressed.
 */
#ifndef SWERVE_CLI_DUMP_NPZ_H
#define SWERVE_CLI_DUMP_NPZ_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { NPZ_ARRAYS_MAX = 64, NPZ_DIMENSIONS_MAX = 3 };

enum npz_type { NPZ_UINT8, NPZ_INT64, NPZ_FLOAT32, NPZ_FLOAT64 };

struct npz_array {
    const char *name; /* without ".npy" */
    enum npz_type type;
    uint32_t dimensions; /* 0: a scalar */
    size_t shape[NPZ_DIMENSIONS_MAX];
    const void *data; /* little-endian, C order; borrowed */
};

/* Writes the file whole or not at all. IO and BAD_INPUT as file_replace, NO_MEMORY. */
enum status npz_write(const char *path, const struct npz_array *arrays, uint32_t count,
                      struct error *error);

#endif
