/*
 * gRPC server: unary calls over HTTP/2 without TLS, through libnghttp2. One thread serves all
 * connections; a call is answered in one piece by a function, one call at a time, the connections
 * in turn. Its times stand still for the others meanwhile, but for a grpc-timeout.
 *
 * Whoever can connect may call: what comes is untrusted, and bounded (connections, calls of each,
 * bytes of a message and of all, times; frames that bring nothing and headers: grpc_peer.h). A call
 * that breaks a bound is refused or reset, or its connection closed. Where all places are taken,
 * one more takes that of the connection that has been without a call for longest.
 *
 * Source: gRPC over HTTP2 (grpc/grpc, doc/PROTOCOL-HTTP2.md); RFC 9113.
 */
#ifndef SWERVE_WORKER_GRPC_SERVER_H
#define SWERVE_WORKER_GRPC_SERVER_H

#include "base/log.h"
#include "base/status.h"
#include "worker/grpc/grpc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GRPC_SERVER_CONNECTIONS = 32,
    GRPC_SERVER_CALLS = 8,                /* of a connection at once */
    GRPC_QUESTION_BYTES_MAX = 64 << 20,   /* of one message */
    GRPC_QUESTIONS_BYTES_MAX = 256 << 20, /* of all that are on their way */
    GRPC_ANSWERS_BYTES_MAX = 1 << 30
};

/* Longest times of a call, and of a connection without one. */
struct grpc_server_times {
    int64_t question_ms; /* until a question has come whole */
    int64_t answer_ms; /* from its turn on, until its answer is taken; grpc-timeout may say less */
    int64_t idle_ms;   /* of a connection without a call */
};

/* gRPC's statuses that a service answers with. */
enum {
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13
};

struct grpc_answer {
    int code; /* GRPC_OK, or why there is no message */
    char sentence[GRPC_MESSAGE_BYTES];
    uint8_t *message; /* malloc'ed, handed over; NULL with 0 bytes: an empty one */
    size_t bytes;
    bool hang_up;        /* the connection is closed instead, in mid-call */
    int64_t deadline_ns; /* given, of clock_monotonic_ns: nobody waits for the answer after it */
};

/* Answers a call of "/package.Service/method"; *answer begins as an empty message. */
typedef void grpc_service(void *context, const char *method, const uint8_t *message, size_t bytes,
                          struct grpc_answer *answer);

struct grpc_server;

/* Makes a sentence fit for a header, and for a text of a message: printable ASCII without "%". */
void grpc_sentence_clean(char *sentence);

/* Listens on HOST:PORT (port 0: any), [IPV6]:PORT or unix:PATH. The log, which is borrowed (NULL:
 * none), is told of connections that are ended for what they send. STATUS_BAD_INPUT, STATUS_IO. */
enum status grpc_server_open(const char *address, grpc_service *service, void *context,
                             const struct logger *logger, struct grpc_server **out,
                             struct error *error);

/* Other times than 30 s, 120 s and 10 minutes. */
void grpc_server_limit(struct grpc_server *server, struct grpc_server_times times);

/* The address that it listens on, with the port that it got. */
const char *grpc_server_address(const struct grpc_server *server);

/* Serves until `quit_fd` is readable or at its end. */
enum status grpc_server_run(struct grpc_server *server, int quit_fd, struct error *error);

void grpc_server_close(struct grpc_server *server); /* accepts NULL */

#endif
