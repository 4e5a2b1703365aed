/*
 * A worker of sessions: it attaches to a store's server by one WebSocket that it opens itself, and
 * serves those whom the server relays (store/relay/relay.h) as the server of sessions serves those
 * who come here. When the connection ends so do its sessions, and it attaches again, after longer
 * pauses while that fails.
 */
#ifndef SWERVE_CLI_SESSION_SESSION_RELAY_H
#define SWERVE_CLI_SESSION_SESSION_RELAY_H

#include "base/log.h"
#include "cli/session/session_talk.h"

struct session_relay;

struct session_relay_options {
    const char *url; /* of the store's server, http(s)://host:port */
    const struct talk_options *talk;
    const char *model; /* hash of the model; "": there is none */
    uint32_t places;
    const struct logger *logger;
};

/* Options are borrowed. Does not connect yet; token and authority are those of SWERVE_TOKEN_FILE
 * and SWERVE_CA_FILE. */
enum status session_relay_start(const struct session_relay_options *options,
                                struct session_relay **out, struct error *error);
/* Whether it has given up since the server refuses it; *error says why. */
bool session_relay_refused(struct session_relay *relay, struct error *error);
/* Ends all sessions. Accepts NULL. */
void session_relay_stop(struct session_relay *relay);

#endif
