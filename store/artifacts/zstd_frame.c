/*
 * One zstd frame. See zstd_frame.h.
 */
#include "store/artifacts/zstd_frame.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd_errors.h>

/* Others begin skippable frames, which stand for nothing. */
static bool is_frame(const uint8_t *head, size_t bytes)
{
    static const uint8_t magic[4] = {0x28, 0xb5, 0x2f, 0xfd}; /* RFC 8878, section 3.1.1 */
    return bytes >= sizeof magic && memcmp(head, magic, sizeof magic) == 0;
}

enum status zstd_frame_size(const char *what, const void *head, size_t head_bytes,
                            size_t frame_bytes, size_t max, size_t *size, struct error *error)
{
    unsigned long long found = is_frame(head, head_bytes)
                                   ? ZSTD_getFrameContentSize(head, head_bytes)
                                   : ZSTD_CONTENTSIZE_ERROR;
    if (found == ZSTD_CONTENTSIZE_ERROR) {
        return error_set(error, STATUS_BAD_INPUT, "%s: expected a zstd frame, found something else",
                         what);
    }
    if (found == ZSTD_CONTENTSIZE_UNKNOWN) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected a zstd frame that says the size of its contents", what);
    }
    if (found > max) {
        return error_set(error, STATUS_LIMIT,
                         "%s: expected a zstd frame of at most %zu bytes unpacked, found %llu",
                         what, max, found);
    }
    size_t bound = ZSTD_compressBound((size_t)found);
    if (frame_bytes > bound) { /* empty blocks, to fill the disk with */
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected a zstd frame of at most %zu bytes for %llu bytes, found %zu",
                         what, bound, found, frame_bytes);
    }
    *size = (size_t)found;
    return STATUS_OK;
}

ZSTD_DCtx *zstd_frame_expander(void)
{
    ZSTD_DCtx *expander = ZSTD_createDCtx();
    if (expander != NULL && ZSTD_isError(ZSTD_DCtx_setParameter(expander, ZSTD_d_windowLogMax,
                                                                ZSTD_FRAME_WINDOW_LOG_MAX))) {
        ZSTD_freeDCtx(expander);
        expander = NULL;
    }
    return expander;
}

/* Into the room that the frame's own size asks for. */
static enum status unpack_into(const char *what, ZSTD_DCtx *expander, const void *frame,
                               size_t frame_bytes, void *data, size_t bytes, struct error *error)
{
    ZSTD_inBuffer in = {.src = frame, .size = frame_bytes, .pos = 0};
    ZSTD_outBuffer out = {.dst = data, .size = bytes, .pos = 0};
    size_t left = 1;
    for (;;) {
        size_t before = in.pos + out.pos;
        left = ZSTD_decompressStream(expander, &out, &in);
        if (ZSTD_isError(left) || left == 0 || in.pos + out.pos == before) {
            break;
        }
    }
    if (ZSTD_isError(left) && ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", what);
    }
    if (left != 0 || in.pos != in.size || out.pos != out.size) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected one whole zstd frame, found one that does not unpack (%s)",
                         what, ZSTD_isError(left) ? ZSTD_getErrorName(left) : "its end");
    }
    return STATUS_OK;
}

enum status zstd_frame_unpack(const char *what, const void *frame, size_t frame_bytes, size_t max,
                              void **data, size_t *bytes, struct error *error)
{
    size_t size = 0;
    TRY(zstd_frame_size(what, frame,
                        frame_bytes < ZSTD_FRAME_HEAD_BYTES ? frame_bytes : ZSTD_FRAME_HEAD_BYTES,
                        frame_bytes, max, &size, error));
    enum status status = STATUS_OK;
    char *buffer = malloc(size + 1);
    ZSTD_DCtx *expander = zstd_frame_expander();
    if (buffer == NULL || expander == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "%s: out of memory", what);
    } else {
        status = unpack_into(what, expander, frame, frame_bytes, buffer, size, error);
    }
    ZSTD_freeDCtx(expander);
    if (status != STATUS_OK) {
        free(buffer);
        return status;
    }
    buffer[size] = '\0';
    *data = buffer;
    *bytes = size;
    return STATUS_OK;
}

enum status zstd_frame_pack(const char *what, const void *data, size_t bytes, void **frame,
                            size_t *frame_bytes, struct error *error)
{
    if (bytes == 0) {
        *frame = NULL;
        return STATUS_OK;
    }
    /* No more room than makes it shorter; zstd gives up when it runs out. */
    void *buffer = malloc(bytes);
    TRY(memory_check(buffer, error, "%s: out of memory", what));
    size_t packed = ZSTD_compress(buffer, bytes - 1, data, bytes, ZSTD_FRAME_COMPRESSION_LEVEL);
    if (ZSTD_isError(packed)) {
        free(buffer);
        if (ZSTD_getErrorCode(packed) == ZSTD_error_memory_allocation) {
            return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", what);
        }
        *frame = NULL;
        return STATUS_OK;
    }
    *frame = buffer;
    *frame_bytes = packed;
    return STATUS_OK;
}
