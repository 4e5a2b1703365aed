/*
 * The server of sessions: the page at which somebody drives, and a WebSocket a session. It serves
 * loopback addresses unless asked otherwise, and nobody without the key that it prints: other
 * users of this machine and pages of other sites can reach a port.
 */
#ifndef SWERVE_CLI_SESSION_SESSION_SERVER_H
#define SWERVE_CLI_SESSION_SESSION_SERVER_H

#include "base/log.h"
#include "cli/session/session_talk.h"

enum { SESSION_KEY_BYTES = 33 };

struct session_server;

/* Owns the listening socket from now on. `talk` is copied, what it points to outlives the server.
 */
enum status session_server_start(int listen_fd, const struct talk_options *talk,
                                 const struct logger *logger, struct session_server **out,
                                 struct error *error);
/* The key, in hexadecimal digits. */
const char *session_server_key(const struct session_server *server);
/* Ends all sessions. Accepts NULL. */
void session_server_stop(struct session_server *server);

#endif
