/*
 * Serving a store while a command runs. See serving.h.
 */
#include "cli/serving/serving.h"

#include "report/draw/draw_frames.h"
#include "report/drive_json.h"
#include "store/api/store_url.h"
#include "store/server/tokens.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static enum status open_tls(const struct serving_options *options, struct serving *serving,
                            struct error *error)
{
    if (options->cert_path == NULL && options->key_path == NULL) {
        return STATUS_OK;
    }
    if (options->cert_path == NULL || options->key_path == NULL) {
        return error_set(error, STATUS_USAGE, "--tls-cert and --tls-key go together");
    }
    return tls_identity_create(options->cert_path, options->key_path, NULL, &serving->tls, error);
}

/* The tokens given, or those beside the database's file, or none. */
static enum status open_tokens(const struct serving_options *options, struct serving *serving,
                               const struct logger *logger, struct error *error)
{
    char beside[LIMIT_PATH_BYTES];
    const char *path = options->tokens_path;
    if (path == NULL && !store_url_is_path(options->store_path)) {
        return STATUS_OK;
    }
    if (path == NULL) {
        int bytes = snprintf(beside, sizeof beside, "%s.tokens", options->store_path);
        if ((size_t)bytes >= sizeof beside) {
            return error_set(error, STATUS_LIMIT, "--store: expected a shorter path");
        }
        if (access(beside, F_OK) != 0 && errno == ENOENT) {
            return STATUS_OK;
        }
        path = beside;
    }
    return token_guard_create(path, clock_system(), logger, &serving->guard, error);
}

/* Beyond this machine nobody may come in without a token, and no token may travel in the clear. */
static enum status check_reach(const struct serving_options *options, const struct serving *serving,
                               const struct logger *logger, struct error *error)
{
    const struct tcp_place *place = &serving->place;
    if (serving->guard == NULL && !place->loopback) {
        return error_set(error, STATUS_USAGE,
                         "refusing to serve %s to everybody on %s, which other machines can reach: "
                         "make tokens first (swerve token add NAME --role ROLE --store %s), or "
                         "listen on 127.0.0.1",
                         options->store_path, place->text, options->store_path);
    }
    if (serving->tls == NULL && !place->loopback && !options->insecure) {
        return error_set(error, STATUS_USAGE,
                         "refusing to listen in the clear on %s, which other machines can reach: "
                         "give --tls-cert and --tls-key, or listen on 127.0.0.1, or give "
                         "--insecure where the network itself is private",
                         place->text);
    }
    if (serving->guard == NULL) {
        log_event(logger, LOG_WARNING,
                  "no tokens: every user and process of this machine may %s on %s",
                  options->read_only ? "look at everything" : "do everything", place->text);
    }
    if (serving->tls == NULL && !place->loopback) {
        log_event(logger, LOG_WARNING, "tokens and data travel in the clear on %s", place->text);
    }
    return STATUS_OK;
}

enum status serving_prepare(const struct serving_options *options, const struct logger *logger,
                            struct serving *serving, struct error *error)
{
    TRY(tcp_listen(options->listen, &serving->listen_fd, &serving->place, error));
    serving->listening = true;
    TRY(open_tls(options, serving, error));
    TRY(open_tokens(options, serving, logger, error));
    if (options->scaling_path != NULL) {
        TRY(scaling_open(options->scaling_path, &serving->scaling, error));
    }
    TRY(agreement_open(options->trust_path, &serving->agreement, error));
    return check_reach(options, serving, logger, error);
}

enum status serving_start(const struct serving_options *options, const struct store_config *config,
                          struct serving *serving, struct error *error)
{
    TRY(store_owner_open(options->store_path, config, &serving->owner, error));
    const struct store_server_options with = {
        .asks_again = true,
        .guard = serving->guard,
        .tls = serving->tls,
        .connections_max = options->connections_max,
        .peer_connections_max = options->peer_connections_max,
        .drive = drive_json_fetch,
        .frames = draw_frames_fetch,
        .scaling = serving->scaling != NULL ? scaling_advise : NULL,
        .scaling_context = serving->scaling,
        .agreement = agreement_tell,
        .agreement_context = serving->agreement,
        .planners_kept_max = options->planners_kept_max,
        .read_only = options->read_only,
        .sessions_tenant = options->sessions_tenant,
    };
    serving->listening = false; /* the server closes it, on failure too */
    return store_server_start_with(store_owner_store(serving->owner), serving->listen_fd, config,
                                   &with, &serving->server, error);
}

struct store *serving_store(const struct serving *serving)
{
    return serving->owner != NULL ? store_owner_store(serving->owner) : NULL;
}

const char *serving_scheme(const struct serving *serving)
{
    return serving->tls != NULL ? "https" : "http";
}

void serving_stop(struct serving *serving)
{
    store_server_stop(serving->server);
    store_owner_close(serving->owner);
    token_guard_destroy(serving->guard);
    tls_identity_destroy(serving->tls);
    if (serving->listening) {
        close(serving->listen_fd);
    }
    scaling_close(serving->scaling);
    agreement_close(serving->agreement);
    *serving = (struct serving){.listening = false};
}
