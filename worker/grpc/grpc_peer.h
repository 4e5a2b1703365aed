/*
 * Other end of an HTTP/2 connection, which is not trusted: what it may send beside messages, alike
 * for client and server. libnghttp2 bounds acknowledgements that are not read, entries of SETTINGS,
 * resets and CONTINUATION; frames that bring nothing and bytes of headers are counted here.
 *
 * Every frame brings nothing but DATA of GRPC_PEER_DATA_BYTES or more. A peer has some of them to
 * spend, and earns others: by time while it takes what it is sent, by DATA that it is sent (each
 * may open two windows), and by calls that are answered. Frames of types that libnghttp2 does not
 * know pass it unseen, as does what comes on a stream that was reset: their bytes are bounded, by
 * what a window lets be on its way where one is reset.
 *
 * Source: RFC 9113, section 10.5; CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2024-28182,
 * CVE-2025-8671.
 */
#ifndef SWERVE_WORKER_GRPC_PEER_H
#define SWERVE_WORKER_GRPC_PEER_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GRPC_PEER_FRAMES = 1000,      /* that bring nothing, at once */
    GRPC_PEER_FRAMES_S = 20,      /* earned a second */
    GRPC_PEER_FRAMES_CALL = 16,   /* earned by a call that is answered */
    GRPC_PEER_FRAMES_MAX = 32768, /* that can be saved */
    GRPC_PEER_DATA_BYTES = 256,   /* of a frame of DATA that brings something */
    GRPC_PEER_UNKNOWN_BYTES = 65536,
    GRPC_PEER_WINDOW_BYTES = 16 << 20, /* of messages that are on their way */
    GRPC_PEER_UNKNOWN_CALL = 1024,     /* earned by a call that is answered */
    GRPC_PEER_HEADER_BYTES = 16384     /* of all fields of a message's headers, or trailers */
};

/* Beginning of the context that a session's callbacks are given. */
struct grpc_peer {
    int64_t frames; /* that bring nothing, which it may still send */
    int64_t earned_ns;
    int64_t unknown_bytes; /* of what it sent, without frames that are known */
    size_t header_bytes;   /* of the headers that are being read */
    char wrong[128];       /* what it did, "it .."; "": nothing */
};

/* Makes a session whose callbacks, beside those given, count; `peer` begins their context. NULL: no
 * memory. */
nghttp2_session *grpc_peer_session(struct grpc_peer *peer, nghttp2_session_callbacks *callbacks,
                                   bool is_server);

/* Counts a field of headers. False: they are too many. To be called by on_header_callback. */
bool grpc_peer_header(struct grpc_peer *peer, size_t name_bytes, size_t value_bytes);

/* A call that it made, or answered, has come to its end. */
void grpc_peer_called(struct grpc_peer *peer);

/* Reads what came. `takes`: nothing that was to be sent waits for room. False: peer->wrong says why
 * the connection is of no more use, and a GOAWAY with it waits to be sent. */
bool grpc_peer_read(struct grpc_peer *peer, nghttp2_session *session, const uint8_t *in,
                    size_t bytes, bool takes);

#endif
