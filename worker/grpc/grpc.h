/*
 * gRPC client: unary calls over one HTTP/2 connection without TLS, through libnghttp2.
 *
 * Calls are begun, then waited for together, over several connections at once if need be; what one
 * begins may be sent only while somebody waits. A call ends with a status of its own (the server
 * answered), or the connection fails and is of no more use. Not thread-safe: one thread a client.
 *
 * Source: gRPC over HTTP2 (grpc/grpc, doc/PROTOCOL-HTTP2.md); RFC 9113.
 */
#ifndef SWERVE_WORKER_GRPC_H
#define SWERVE_WORKER_GRPC_H

#include "base/status.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct grpc_client;
struct grpc_call;

enum {
    GRPC_OK = 0,
    GRPC_REPLY_BYTES_MAX =
        16 << 20,             /* of one answer, if nothing is said; more fails its connection */
    GRPC_MESSAGE_BYTES = 200, /* of the sentence that a status comes with */
};

/* Connects to HOST:PORT, [IPV6]:PORT or unix:PATH. Once `abandoned` (borrowed until
 * grpc_keep(); NULL: never) is set by another thread, connecting and waiting end (CANCELLED).
 * STATUS_BAD_INPUT: none of these addresses; STATUS_IO, STATUS_TIMEOUT: nobody listens there in
 * time. */
enum status grpc_open(const char *address, int64_t deadline_ms, const atomic_bool *abandoned,
                      struct grpc_client **out, struct error *error);
/* From now on nobody gives it up. */
void grpc_keep(struct grpc_client *client);
void grpc_close(struct grpc_client *client); /* accepts NULL; frees its calls */

/* Bytes that an answer may have, instead of GRPC_REPLY_BYTES_MAX. */
void grpc_limit(struct grpc_client *client, uint32_t reply_bytes_max);

/* As it was opened. */
const char *grpc_address(const struct grpc_client *client);

/* Begins a call of "/package.Service/method" with a message, which is borrowed until the call has
 * ended, or one on its client has failed. `revision`: metadata GRPC_REVISION_NAME; NULL: none. The
 * call belongs to the client until grpc_call_free. NO_MEMORY. */
enum status grpc_begin(struct grpc_client *client, const char *method, const void *message,
                       size_t bytes, const char *revision, struct grpc_call **out,
                       struct error *error);

/* Waits until every call that was begun on these has ended. Not OK: the sentence names the address
 * and a call that has no answer; the client that it is about can only be closed.
 * STATUS_TIMEOUT: no answer within the deadline; STATUS_IO: the connection ended, or what came is
 * not gRPC. */
enum status grpc_wait(struct grpc_client *const *clients, uint32_t count, int64_t deadline_ms,
                      struct error *error);

/* Of a call that has ended: its method without the service, gRPC's status (GRPC_OK ..), its name in
 * capitals, the server's sentence
 * ("" for none), the message that it answered with (NULL, 0 for none), and the revision of the
 * contract that the server said in its metadata ("" for none). All borrowed from the call. */
const char *grpc_call_method(const struct grpc_call *call);
int grpc_call_code(const struct grpc_call *call);
const char *grpc_call_code_name(const struct grpc_call *call);
const char *grpc_call_sentence(const struct grpc_call *call);
const uint8_t *grpc_call_reply(const struct grpc_call *call, size_t *bytes);
const char *grpc_call_revision(const struct grpc_call *call);

void grpc_call_free(struct grpc_client *client, struct grpc_call *call); /* accepts NULL */

/* Name of the metadata by which both ends of the egodriver contract say which revision of it they
 * speak. Source: carla-driver-interface, contract.py. */
#define GRPC_REVISION_NAME "carla-driver-interface-contract"

#endif
