/*
 * Serving: a command that owns a store and serves it over HTTP while it runs: `swerve serve` to
 * workers and users, `swerve run --dashboard` to a browser that only looks.
 *
 * Beyond this machine nobody comes in without a token, and no token travels in the clear: whoever
 * prepares a place that would allow it is refused before the store is touched.
 */
#ifndef SWERVE_CLI_SERVING_SERVING_H
#define SWERVE_CLI_SERVING_SERVING_H

#include "cli/serving/agreement.h"
#include "cli/serving/scaling.h"
#include "store/server/server.h"

struct serving_options {
    const char *store_path;  /* of the database; no URL */
    const char *listen;      /* "ADDR:PORT"; port 0: a free one */
    const char *tokens_path; /* NULL: STORE.tokens where that exists */
    const char *cert_path;   /* both or none */
    const char *key_path;
    size_t connections_max; /* as in struct store_server_options */
    size_t peer_connections_max;
    const char *scaling_path;   /* policies that pools are advised by; NULL: none */
    const char *trust_path;     /* policy by which slices are frozen; NULL: the defaults */
    bool insecure;              /* other machines may come in the clear */
    uint32_t planners_kept_max; /* as in struct store_server_options */
    uint32_t sessions_tenant;   /* as in struct store_server_options */
    bool read_only;             /* nobody may change anything, whatever the token */
};

/* Zeroed, it is stopped. In the order in which the parts are made. */
struct serving {
    int listen_fd; /* until the server has it, if `listening` */
    bool listening;
    struct tcp_place place;
    struct tls_identity *tls;
    struct token_guard *guard;
    struct store_owner *owner;
    struct store_server *server;
    struct scaling *scaling;
    struct agreement *agreement;
};

/* Takes the address, reads tokens and certificate, and refuses what is not safe; the store is not
 * touched. The serving is to be stopped also on failure. */
enum status serving_prepare(const struct serving_options *options, const struct logger *logger,
                            struct serving *serving, struct error *error);

/* Owns the store and answers from now on. CONFLICT when another process owns it. The options are
 * those that it was prepared with; `config` is borrowed until the stop. */
enum status serving_start(const struct serving_options *options, const struct store_config *config,
                          struct serving *serving, struct error *error);

/* The store that is served; NULL before it is owned. */
struct store *serving_store(const struct serving *serving);

/* "http" or "https". */
const char *serving_scheme(const struct serving *serving);

/* Ends the requests in progress, closes the store, gives everything back. */
void serving_stop(struct serving *serving);

#endif
