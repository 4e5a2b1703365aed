/*
 * Protocol Buffers writer: fields of messages in their wire format
 * (protobuf.dev/programming-guides/ encoding), into one growing buffer. Messages nest by begin and
 * end.
 *
 * Sticky failure: when memory runs out `failed` is set and every later call is a no-op.
 */
#ifndef SWERVE_REPORT_EXPORT_PROTOBUF_H
#define SWERVE_REPORT_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct protobuf {
    uint8_t *data; /* owned */
    size_t bytes;
    size_t capacity_bytes;
    bool failed;
};

/* A zeroed one is empty. Accepts a zeroed one. */
void protobuf_finish(struct protobuf *buffer);

/* Forgets what is written and keeps the memory. */
void protobuf_clear(struct protobuf *buffer);

/* uint32, uint64, non-negative int64, enum, bool. */
void protobuf_number(struct protobuf *buffer, uint32_t field, uint64_t value);
void protobuf_double(struct protobuf *buffer, uint32_t field, double value);
void protobuf_text(struct protobuf *buffer, uint32_t field, const char *text);

/* A field that is a message: what is written until the end is its content. Returns what the end is
 * called with. */
size_t protobuf_begin(struct protobuf *buffer, uint32_t field);
void protobuf_end(struct protobuf *buffer, size_t begin);

#endif
