/*
 * Whole things as one zstd frame (RFC 8878): how artifacts lie on the disk, and how they travel
 * (Content-Encoding: zstd, RFC 9659). Such a frame says how large its contents are, and whoever
 * unpacks it needs at most 8 MiB of window. What comes from outside is checked for both before
 * anything is unpacked. Private to the store room.
 */
#ifndef SWERVE_STORE_ARTIFACTS_ZSTD_FRAME_H
#define SWERVE_STORE_ARTIFACTS_ZSTD_FRAME_H

#include "base/status.h"

#include <stddef.h>
#include <zstd.h>

enum {
    ZSTD_FRAME_HEAD_BYTES = 18,     /* the longest header: RFC 8878, section 3.1.1.1 */
    ZSTD_FRAME_WINDOW_LOG_MAX = 23, /* RFC 9659, section 3 */
    /* Traces of many agents get smaller than by level 3, in a quarter of the time. */
    ZSTD_FRAME_COMPRESSION_LEVEL = 1,
};

/* Size of the contents, from the frame's first bytes (ZSTD_FRAME_HEAD_BYTES, or all of a shorter
 * one). frame_bytes: of the whole frame. LIMIT: contents of more than `max` bytes. BAD_INPUT: no
 * such frame, or one far longer than its contents can need. */
enum status zstd_frame_size(const char *what, const void *head, size_t head_bytes,
                            size_t frame_bytes, size_t max, size_t *size, struct error *error);

/* Refuses frames that need a larger window; for frames from outside. NULL: out of memory; freed
 * with ZSTD_freeDCtx. */
ZSTD_DCtx *zstd_frame_expander(void);

/* Unpacks one frame and nothing beside it. *data is malloc'ed (terminated, the terminator not
 * counted), owned by the caller. BAD_INPUT, LIMIT, NO_MEMORY. */
enum status zstd_frame_unpack(const char *what, const void *frame, size_t frame_bytes, size_t max,
                              void **data, size_t *bytes, struct error *error);

/* *frame: malloc'ed, owned by the caller; NULL where it would not be shorter. */
enum status zstd_frame_pack(const char *what, const void *data, size_t bytes, void **frame,
                            size_t *frame_bytes, struct error *error);

#endif
