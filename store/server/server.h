/*
 * Serving a store to other machines: what a fleet's server process needs besides store.h. It owns a
 * database (so that nobody else can), listens on TCP, and answers the HTTP API of
 * schemas/openapi.yaml until it is stopped.
 */
#ifndef SWERVE_STORE_SERVER_SERVER_H
#define SWERVE_STORE_SERVER_SERVER_H

#include "store/api/store.h"

#include <jansson.h>

/* ---- owning a database ---- */

struct store_owner;

/* As store_open of a path, but for the one process that shall serve it: takes the owner's lock,
 * opens the embedded store and serves it on PATH.sock too. CONFLICT when another process owns the
 * path; the text names it. */
enum status store_owner_open(const char *path, const struct store_config *config,
                             struct store_owner **out, struct error *error);

/* The embedded store; lives until the owner is closed. */
struct store *store_owner_store(struct store_owner *owner);

/* Ends the calls on PATH.sock, closes the database, gives the lock back. Accepts NULL. Servers on
 * the store are to be stopped first. */
void store_owner_close(struct store_owner *owner);

/* ---- listening ---- */

enum { TCP_PLACE_BYTES = 320 };

/* A bound TCP address. */
struct tcp_place {
    char text[TCP_PLACE_BYTES]; /* "127.0.0.1:8080", "[::1]:8080": with the port that was chosen */
    bool loopback;              /* no other machine can reach it */
};

/* A listening socket at "ADDR:PORT" or "[ADDR]:PORT", a name or a number; port 0: a free one. *fd
 * is the caller's. USAGE when the text is no such place, STATUS_IO when it cannot be had. */
enum status tcp_listen(const char *place, int *fd, struct tcp_place *out, struct error *error);

/* A listening socket at the path, whatever its length, to which the user alone may connect. Takes
 * the place of what is there in one step: whoever calls knows that nobody is served by it. *fd is
 * the caller's. STORE. */
enum status unix_listen(const char *path, int *fd, struct error *error);

/* ---- TLS ---- */

/* A certificate chain and its private key. */
struct tls_identity;

/* Reads two PEM files: the server's certificate with what leads to its authority, and the key.
 * BAD_INPUT when they are no such files, do not belong together, or the certificate is not valid
 * now by `clock` (NULL: the system's); the text says which. */
enum status tls_identity_create(const char *cert_path, const char *key_path,
                                const struct clock *clock, struct tls_identity **out,
                                struct error *error);
/* Reads the files again; connections from now on get the new pair. On failure the old one stays. */
enum status tls_identity_reload(struct tls_identity *identity, struct error *error);
void tls_identity_destroy(struct tls_identity *identity); /* accepts NULL */

/* ---- serving ---- */

struct token_guard;

/* The drives of an outcome's job as a document for the player, "swerve-drive/1": *json is
 * malloc'ed, not terminated, the caller's. What knows traces and scenarios is above this room and
 * hands this in.
 */
typedef enum status store_server_drive(struct store *store, int64_t outcome_id, char **json,
                                       size_t *bytes, struct error *error);

/* Frames of the cameras at a tick of an outcome's drive, likewise. */
typedef enum status store_server_frames(struct store *store, int64_t outcome_id, uint32_t tick,
                                        char **json, size_t *bytes, struct error *error);

/* Advice on how many workers a pool should have, a JSON object that the caller owns; what knows
 * policies is above this room. NOT_FOUND: there is none for the pool. */
typedef enum status store_server_scaling(void *context, struct store *store, const char *pool,
                                         int64_t now_ms, json_t **out, struct error *error);

/* Alarms and frozen slices of a store, a JSON object with a page of its rows from `after` on, each
 * with its newest `days` days, that the caller owns; what knows monitors is above this room. Asked
 * by several threads at once. */
typedef enum status store_server_agreement(void *context, struct store *store, int64_t after,
                                           int64_t limit, int64_t days, json_t **out,
                                           struct error *error);

struct store_server_options {
    struct token_guard *guard;     /* store/server/tokens.h; NULL: everybody may do everything */
    struct tls_identity *tls;      /* NULL: in the clear */
    size_t connections_max;        /* further ones are answered 503; 0: 4,096 */
    size_t peer_connections_max;   /* of one address, further ones 429; 0: no limit */
    store_server_drive *drive;     /* NULL: this server cannot show drives */
    store_server_frames *frames;   /* NULL: nor their cameras */
    store_server_scaling *scaling; /* NULL: this server has no policies */
    void *scaling_context;
    store_server_agreement *agreement; /* NULL: this server does not follow it */
    void *agreement_context;
    /* Planners whose files suites may keep here, LABEL_FILES_BYTES each, for holders of tokens that
     * submit for the suite's tenant; 0: none. */
    uint32_t planners_kept_max;
    bool asks_again;          /* workers for whose results the disk has no room come again (503) */
    bool read_only;           /* whatever changes the store is refused, to every role */
    uint32_t sessions_tenant; /* relayed at once for drivers of one tenant; 0: none is relayed */
};

/* As store_server_start. What the options name is borrowed and must outlive the server. */
enum status store_server_start_with(struct store *store, int listen_fd,
                                    const struct store_config *config,
                                    const struct store_server_options *options,
                                    struct store_server **out, struct error *error);

#endif
