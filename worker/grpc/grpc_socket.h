/*
 * Sockets of the gRPC client: addresses, and connecting within a deadline. Private to the room, but
 * for what addresses are.
 */
#ifndef SWERVE_WORKER_GRPC_SOCKET_H
#define SWERVE_WORKER_GRPC_SOCKET_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { GRPC_ADDRESS_BYTES = 256 };

/* Whether an address is HOST:PORT, [IPV6]:PORT or unix:PATH; else STATUS_BAD_INPUT. */
enum status grpc_address_check(const char *address, struct error *error);

bool grpc_socket_is_unix(const char *address);

/* Whether an address stays on this machine: unix:PATH, localhost, 127.0.0.0/8, ::1. No name is
 * looked up. */
bool grpc_address_is_local(const char *address);

/* Milliseconds that a poll may take: those that are left, rounded up, fewer where somebody may give
 * up meanwhile (`abandoned`; NULL: nobody does). */
int grpc_socket_poll_ms(int64_t left_ns, const atomic_bool *abandoned);

/* *fd: a connected socket that does not block; the caller's. CANCELLED: `abandoned` was set; NULL:
 * nobody does. */
enum status grpc_socket_connect(const char *address, int64_t deadline_ms,
                                const atomic_bool *abandoned, int *fd, struct error *error);

/* *fd: a socket that listens on an address as above, of HOST:PORT also port 0: any that is free;
 * the caller's. `bound`: the address with the port that it got. STATUS_IO: somebody else has it. */
enum status grpc_socket_listen(const char *address, int *fd, char bound[GRPC_ADDRESS_BYTES],
                               struct error *error);

/* The next connection, a socket that does not block; -1: there is none. */
int grpc_socket_accept(int fd);

#endif
