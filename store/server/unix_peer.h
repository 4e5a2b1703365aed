/*
 * The process at the other end of a Unix socket. Whoever may speak on the socket beside a store may
 * do everything, so the file's mode is not the only guard: a planner in a sandbox runs as the same
 * user, and may have found a way to the path. Private to the store room.
 */
#ifndef SWERVE_STORE_SERVER_UNIX_PEER_H
#define SWERVE_STORE_SERVER_UNIX_PEER_H

#include "base/status.h"

/* STATUS_OK: `fd` is no Unix socket, or the process that connected runs as our user or as root, in
 * our user namespace. STATUS_USAGE: it does not, has ended, or cannot be looked at. The process is
 * held by a descriptor while it is looked at, so that its number cannot come to mean another one.
 * Root, which an ordinary user may not look at, is taken at its word. */
enum status unix_peer_check(int fd, struct error *error);

#endif
