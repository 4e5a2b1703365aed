/*
 * The relay of sessions: clients at this server steer drives that workers make elsewhere. A worker
 * attaches by one WebSocket of its own, so it may stand behind any NAT; each client is another. The
 * relay has no engine and keeps no ticks: of what passes it reads who it is for and how long it is
 * (base/websocket/envelope.h).
 *
 * All is bounded. A client that reads slowly gets the newest frame and not those before; one that
 * writes faster than its worker obeys is read no further while ENVELOPE_AHEAD of its messages wait.
 * Whoever goes is told of to the other side at once. A session that its worker kept goes on at
 * another one that sees its folder, with what that worker told of it last and the messages that it
 * had not taken (carried.h); its client's connection stays. What the relay knows ends with it:
 * clients begin again, workers attach again.
 *
 * Functions may be called from any thread. Private to the store room.
 */
#ifndef SWERVE_STORE_RELAY_RELAY_H
#define SWERVE_STORE_RELAY_RELAY_H

#include "schemas/limits.h"
#include "store/relay/http_socket.h"

#include <jansson.h>

enum {
    RELAY_WORKERS_MAX = 256,
    RELAY_PLACES_MAX = 64, /* of a worker */
    RELAY_SCENARIOS_MAX = 4096,
    RELAY_ASK_MS = 10000,   /* that a worker has for a document */
    RELAY_TOKEN_BYTES = 13, /* of what names a token, terminated */
};

struct relay;

struct relay_options {
    uint32_t sessions_tenant; /* at once, of drivers of one tenant, where that has no lower limit */
    bool (*holds)(void *holder, const char *token); /* whether it is live still */
    void *holder;
    /* Bytes by a TLS session, as of struct http_sockets. */
    ssize_t (*receive)(void *session, void *out, size_t capacity);
    ssize_t (*send)(void *session, const void *data, size_t bytes);
    const struct logger *logger;
};

/* Somebody whose connection becomes a WebSocket. */
struct relay_guest {
    bool attaches; /* a worker; else a client */
    bool limited;  /* by a token, which is asked for again and again */
    char token[RELAY_TOKEN_BYTES];
    /* Whose a client is; "": nobody's. Of a worker: whose clients alone it is given; "": anybody's.
     */
    char tenant[LIMIT_ID_BYTES];
    uint32_t sessions_most;      /* of a client's tenant, at once; 0: as the relay has it */
    char worker[LIMIT_ID_BYTES]; /* that the client wants; "": any */
};

enum status relay_create(const struct relay_options *options, struct relay **out,
                         struct error *error);
/* Nobody waits here any more, and every WebSocket ends. */
void relay_stop(struct relay *relay);
void relay_destroy(struct relay *relay); /* accepts NULL; after the stop */

/* Whether the guest would be let in now. BUSY: no worker has room, or (*code = 429) the tenant has
 * as many as it may. NOT_FOUND: no worker of that name. */
enum status relay_look(struct relay *relay, const struct relay_guest *guest, int *code,
                       struct error *error);
/* The answer of code 101 to a request with that key, whose context of the HTTP library begins with
 * its guest. NULL as of http_socket_response(). */
struct MHD_Response *relay_response(struct relay *relay, const char *key);

/* The document of a scenario as an attached worker draws it (web/drive.js), best one at which the
 * guest has a session. *json is malloc'ed. NOT_FOUND, BUSY, TIMEOUT. */
enum status relay_ask(struct relay *relay, const struct relay_guest *guest, const char *scenario,
                      char **json, struct error *error);
/* Attached workers, what they have and how many sessions: those that serve anybody or the tenant,
 * all of them for NULL. NULL: out of memory. */
json_t *relay_list(struct relay *relay, const char *tenant);
/* Figures since the start: `begun`, `refused`, `attached`, `gone` (workers), `moved`, `ended`,
 * `gap_s`, and `workers`, a row of each name: `worker`, `places`, `taken`, `room`, `messages` of
 * clients, `answers` and `frames` of workers, `bytes` of all of these; "": what passed by those
 * that have gone; `ticks`, a text for Prometheus: those that workers told of (ticks.h). NULL: out
 * of memory. */
json_t *relay_figures(struct relay *relay);

#endif
