/*
 * Chunks of an animated PNG. See apng.h.
 */
#include "report/draw/apng.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { FILTER_UP = 2, FILTER_NONE = 0, LEVEL = 6 };

struct rectangle {
    uint32_t x, y, width, height;
};

static void big_endian(uint8_t *out, uint32_t value)
{
    out[0] = (uint8_t)(value >> 24);
    out[1] = (uint8_t)(value >> 16);
    out[2] = (uint8_t)(value >> 8);
    out[3] = (uint8_t)value;
}

/* A chunk whose data is `head`, then `data`. */
static void put_chunk(struct apng *apng, const char type[4], const uint8_t *head, size_t head_bytes,
                      const uint8_t *data, size_t bytes)
{
    uint8_t word[4];
    uLong crc = crc32(0, (const Bytef *)type, 4);
    crc = head_bytes > 0 ? crc32(crc, head, (uInt)head_bytes) : crc;
    crc = bytes > 0 ? crc32(crc, data, (uInt)bytes) : crc;
    big_endian(word, (uint32_t)(head_bytes + bytes));
    fwrite(word, 1, 4, apng->out);
    fwrite(type, 1, 4, apng->out);
    fwrite(head, 1, head_bytes, apng->out);
    fwrite(data, 1, bytes, apng->out);
    big_endian(word, (uint32_t)crc);
    fwrite(word, 1, 4, apng->out);
}

enum status apng_begin(struct apng *apng, struct error *error)
{
    static const uint8_t magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t header[13] = {[8] = 8, [9] = 2}; /* 8 bits of red, green and blue */
    uint8_t animation[8] = {0};              /* plays without end */
    size_t lines_bytes = (size_t)apng->height * (1 + 3 * (size_t)apng->width);
    apng->packed_capacity = compressBound((uLong)lines_bytes);
    apng->before = malloc((size_t)apng->width * apng->height * 3);
    apng->lines = malloc(lines_bytes);
    apng->packed = malloc(apng->packed_capacity);
    if (apng->before == NULL || apng->lines == NULL || apng->packed == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", apng->place);
    }
    big_endian(header, apng->width);
    big_endian(header + 4, apng->height);
    big_endian(animation, apng->frame_count);
    fwrite(magic, 1, sizeof magic, apng->out);
    put_chunk(apng, "IHDR", header, sizeof header, header, 0);
    put_chunk(apng, "acTL", animation, sizeof animation, animation, 0);
    return STATUS_OK;
}

/* Rectangle that differs from the frame before; one pixel where nothing does. */
static struct rectangle changed(const struct apng *apng, const uint8_t *rgb)
{
    size_t stride = (size_t)apng->width * 3;
    uint32_t top = 0;
    uint32_t bottom = apng->height;
    if (apng->added == 0) {
        return (struct rectangle){0, 0, apng->width, apng->height};
    }
    while (top < bottom && memcmp(rgb + top * stride, apng->before + top * stride, stride) == 0) {
        top++;
    }
    if (top == bottom) {
        return (struct rectangle){0, 0, 1, 1};
    }
    while (memcmp(rgb + (bottom - 1) * stride, apng->before + (bottom - 1) * stride, stride) == 0) {
        bottom--;
    }
    size_t left = stride;
    size_t right = 0;
    for (uint32_t y = top; y < bottom; y++) {
        const uint8_t *a = rgb + y * stride;
        const uint8_t *b = apng->before + y * stride;
        size_t first = 0;
        size_t last = stride;
        while (first < left && a[first] == b[first]) {
            first++;
        }
        while (last > right && a[last - 1] == b[last - 1]) {
            last--;
        }
        left = first;
        right = last;
    }
    uint32_t x = (uint32_t)(left / 3);
    return (struct rectangle){x, top, (uint32_t)((right + 2) / 3) - x, bottom - top};
}

/* The lines of a rectangle, each less the one above it. */
static size_t filter(struct apng *apng, const uint8_t *rgb, const struct rectangle *at)
{
    uint8_t *out = apng->lines;
    for (uint32_t y = 0; y < at->height; y++) {
        const uint8_t *line = rgb + ((size_t)(at->y + y) * apng->width + at->x) * 3;
        const uint8_t *above = line - (size_t)apng->width * 3;
        *out++ = y > 0 ? FILTER_UP : FILTER_NONE;
        for (size_t i = 0; i < (size_t)at->width * 3; i++) {
            *out++ = y > 0 ? (uint8_t)(line[i] - above[i]) : line[i];
        }
    }
    return (size_t)(out - apng->lines);
}

enum status apng_add(struct apng *apng, const uint8_t *rgb, struct error *error)
{
    struct rectangle at = changed(apng, rgb);
    uint8_t control[26] = {0};
    uint8_t sequence[4];
    uLongf bytes = (uLongf)apng->packed_capacity;
    CHECK(apng->added < apng->frame_count);
    size_t lines_bytes = filter(apng, rgb, &at);
    if (compress2(apng->packed, &bytes, apng->lines, (uLong)lines_bytes, LEVEL) != Z_OK) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", apng->place);
    }
    big_endian(control, apng->sequence++);
    big_endian(control + 4, at.width);
    big_endian(control + 8, at.height);
    big_endian(control + 12, at.x);
    big_endian(control + 16, at.y);
    control[21] = 1; /* delay 1 / frames_a_second; stays, and replaces what is there */
    control[22] = (uint8_t)(apng->frames_a_second >> 8);
    control[23] = (uint8_t)apng->frames_a_second;
    put_chunk(apng, "fcTL", control, sizeof control, control, 0);
    if (apng->added == 0) {
        put_chunk(apng, "IDAT", control, 0, apng->packed, bytes);
    } else {
        big_endian(sequence, apng->sequence++);
        put_chunk(apng, "fdAT", sequence, sizeof sequence, apng->packed, bytes);
    }
    memcpy(apng->before, rgb, (size_t)apng->width * apng->height * 3);
    apng->added++;
    return STATUS_OK;
}

enum status apng_end(struct apng *apng, enum status so_far, struct error *error)
{
    static const uint8_t nothing[1];
    if (so_far == STATUS_OK) {
        CHECK(apng->added == apng->frame_count);
        put_chunk(apng, "IEND", nothing, 0, nothing, 0);
        if (fflush(apng->out) != 0 || ferror(apng->out)) {
            so_far =
                error_set(error, STATUS_IO, "%s: cannot write: %s", apng->place, strerror(errno));
        }
    }
    free(apng->before);
    free(apng->lines);
    free(apng->packed);
    apng->before = apng->lines = apng->packed = NULL;
    return so_far;
}
