/*
 * Hardware at the wheel, on the same machine: a Unix socket for the user alone, on which each
 * connection is a session (session_talk.h), with its pictures in shared memory (session_memory.h).
 * Whoever comes here is hardware, whatever it says, with a deadline of TALK_HARDWARE_LIMIT_MS
 * unless it asks for another.
 *
 * A connection is a WebSocket without its handshake: what comes first is the greeting with the
 * memory's descriptor. So who reads slowly, floods or dies is dealt with as there.
 */
#ifndef SWERVE_CLI_SESSION_SESSION_HARDWARE_H
#define SWERVE_CLI_SESSION_SESSION_HARDWARE_H

#include "base/log.h"
#include "cli/session/session_talk.h"

struct session_hardware;

/* Listens at the path, where nobody else does. `talk` is copied, what it points to outlives the
 * server. USAGE: something else stands there, or somebody is served by it. */
enum status session_hardware_start(const char *path, const struct talk_options *talk,
                                   const struct logger *logger, struct session_hardware **out,
                                   struct error *error);
/* Ends all sessions, and removes the socket. Accepts NULL. */
void session_hardware_stop(struct session_hardware *hardware);

#endif
