/*
 * Zip (PKWARE APPNOTE 6.3.3): for each file a local header, its name and its bytes; at the end the
 * directory with a header for each and its place.
 */
#include "cli/dump/npz.h"

#include "base/check.h"
#include "base/crc32.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCAL_BYTES = 30, CENTRAL_BYTES = 46, END_BYTES = 22, NAME_BYTES = 64, NPY_ALIGN = 64 };

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [NPZ_UINT8] = {"|u1", 1},
    [NPZ_INT64] = {"<i8", 8},
    [NPZ_FLOAT32] = {"<f4", 4},
    [NPZ_FLOAT64] = {"<f8", 8},
};

static size_t data_bytes(const struct npz_array *array)
{
    size_t bytes = types[array->type].bytes;
    for (uint32_t i = 0; i < array->dimensions; i++) {
        bytes *= array->shape[i];
    }
    return bytes;
}

/* The .npy header, padded so that the data are aligned; returns its bytes. */
static size_t npy_header(const struct npz_array *array, char out[3 * NPY_ALIGN])
{
    char shape[96] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < array->dimensions; i++) {
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%zu,", array->shape[i]);
    }
    char text[2 * NPY_ALIGN];
    int bytes =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                 types[array->type].name, shape);
    CHECK(bytes > 0 && (size_t)bytes < sizeof text);
    size_t whole = (10 + (size_t)bytes + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    memset(out, ' ', whole);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((whole - 10) & 0xFF);
    out[9] = (char)((whole - 10) >> 8);
    memcpy(out + 10, text, (size_t)bytes);
    out[whole - 1] = '\n';
    return whole;
}

static void put(uint8_t *at, uint32_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* The fields that local and central headers share, from "version needed" on; without times. */
static void put_common(uint8_t *at, uint32_t crc, uint32_t bytes, size_t name_bytes)
{
    memset(at, 0, 26);
    put(at, 20, 2);
    put(at + 8, 0x21, 2); /* 1 January 1980: equal contents give equal files */
    put(at + 10, crc, 4);
    put(at + 14, bytes, 4);
    put(at + 18, bytes, 4);
    put(at + 22, (uint32_t)name_bytes, 2);
}

struct archive {
    uint8_t *data;
    size_t bytes;
    uint8_t directory[NPZ_ARRAYS_MAX * (CENTRAL_BYTES + NAME_BYTES)];
    size_t directory_bytes;
};

static void add(struct archive *archive, const struct npz_array *array)
{
    char name[NAME_BYTES];
    char header[3 * NPY_ALIGN];
    size_t name_bytes = (size_t)snprintf(name, sizeof name, "%s.npy", array->name);
    CHECK(name_bytes < sizeof name);
    size_t header_bytes = npy_header(array, header);
    size_t array_bytes = data_bytes(array);
    uint8_t *local = archive->data + archive->bytes;
    uint8_t *body = local + LOCAL_BYTES + name_bytes;
    memcpy(body, header, header_bytes);
    memcpy(body + header_bytes, array->data, array_bytes);
    uint32_t bytes = (uint32_t)(header_bytes + array_bytes);
    uint32_t crc = crc32_of(body, bytes);
    put(local, 0x04034b50, 4);
    put_common(local + 4, crc, bytes, name_bytes);
    memcpy(local + LOCAL_BYTES, name, name_bytes);
    uint8_t *central = archive->directory + archive->directory_bytes;
    memset(central, 0, CENTRAL_BYTES);
    put(central, 0x02014b50, 4);
    put(central + 4, 20, 2);
    put_common(central + 6, crc, bytes, name_bytes);
    put(central + 42, (uint32_t)archive->bytes, 4);
    memcpy(central + CENTRAL_BYTES, name, name_bytes);
    archive->directory_bytes += CENTRAL_BYTES + name_bytes;
    archive->bytes += LOCAL_BYTES + name_bytes + bytes;
}

enum status npz_write(const char *path, const struct npz_array *arrays, uint32_t count,
                      struct error *error)
{
    size_t bound = END_BYTES;
    CHECK(count <= NPZ_ARRAYS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        bound +=
            data_bytes(&arrays[i]) + 3 * NPY_ALIGN + LOCAL_BYTES + CENTRAL_BYTES + 2 * NAME_BYTES;
    }
    if (bound > UINT32_MAX) {
        return error_set(error, STATUS_LIMIT, "%s: expected arrays of at most 4 GB", path);
    }
    struct archive *archive = calloc(1, sizeof *archive);
    if (archive != NULL) {
        archive->data = malloc(bound);
    }
    if (archive == NULL || archive->data == NULL) {
        free(archive);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path);
    }
    for (uint32_t i = 0; i < count; i++) {
        add(archive, &arrays[i]);
    }
    uint8_t *end = archive->data + archive->bytes;
    memcpy(end, archive->directory, archive->directory_bytes);
    end += archive->directory_bytes;
    memset(end, 0, END_BYTES);
    put(end, 0x06054b50, 4);
    put(end + 8, count, 2);
    put(end + 10, count, 2);
    put(end + 12, (uint32_t)archive->directory_bytes, 4);
    put(end + 16, (uint32_t)archive->bytes, 4);
    enum status status = file_replace(
        path, archive->data, archive->bytes + archive->directory_bytes + END_BYTES, 0644, error);
    free(archive->data);
    free(archive);
    return status;
}
