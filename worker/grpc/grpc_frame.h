/*
 * A gRPC message as it goes over a stream: a byte that says whether it is compressed (never here),
 * its length in four, then its bytes. Both ends of a call write and read it.
 */
#ifndef SWERVE_WORKER_GRPC_FRAME_H
#define SWERVE_WORKER_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { GRPC_PREFIX_BYTES = 5 };

/* A message of at most UINT32_MAX bytes that is on its way. */
struct grpc_frame {
    uint8_t prefix[GRPC_PREFIX_BYTES];
    const uint8_t *message; /* borrowed */
    size_t bytes, sent;     /* with the prefix */
};

static inline void grpc_frame_begin(struct grpc_frame *frame, const uint8_t *message, size_t bytes)
{
    *frame = (struct grpc_frame){.message = message, .bytes = GRPC_PREFIX_BYTES + bytes};
    for (int i = 0; i < 4; i++) {
        frame->prefix[1 + i] = (uint8_t)(bytes >> (24 - 8 * i));
    }
}

/* Copies what comes next, at most `room` bytes; returns how many. */
static inline size_t grpc_frame_give(struct grpc_frame *frame, uint8_t *to, size_t room)
{
    size_t left = frame->bytes - frame->sent;
    size_t now = left < room ? left : room;
    size_t prefix = frame->sent < GRPC_PREFIX_BYTES ? GRPC_PREFIX_BYTES - frame->sent : 0;
    prefix = prefix < now ? prefix : now;
    memcpy(to, frame->prefix + frame->sent, prefix);
    if (now > prefix) {
        memcpy(to + prefix, frame->message + frame->sent + prefix - GRPC_PREFIX_BYTES,
               now - prefix);
    }
    frame->sent += now;
    return now;
}

/* Length of a message as its prefix says. */
static inline size_t grpc_frame_message_bytes(const uint8_t in[GRPC_PREFIX_BYTES])
{
    return (uint32_t)in[1] << 24 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 8 | (uint32_t)in[4];
}

/* Whether what came is one whole uncompressed message. */
static inline bool grpc_frame_is_whole(const uint8_t *in, size_t bytes)
{
    return bytes >= GRPC_PREFIX_BYTES && in[0] == 0 &&
           grpc_frame_message_bytes(in) == bytes - GRPC_PREFIX_BYTES;
}

#endif
