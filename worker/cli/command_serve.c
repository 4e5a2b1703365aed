/*
 * swerve serve: the process that owns a store and serves it to workers and users on other machines.
 *
 * The main thread only waits for signals; they are blocked in every thread and taken by sigwait, so
 * that no handler runs anywhere. The first SIGTERM or SIGINT drains, a second one ends the process
 * at once: the store does not need a goodbye (a kill -9 loses nothing that was acknowledged).
 */
#include "worker/cli/cli.h"
#include "worker/report/drive_json.h"

#include "base/check.h"
#include "base/text.h"
#include "store/server/server.h"
#include "store/server/tokens.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct serve_options {
    const char *store_path;
    const char *listen;
    const char *tokens_path; /* NULL: STORE.tokens where that exists */
    const char *cert_path;
    const char *key_path;
    int64_t connections_max;
    int64_t peer_connections_max;
    bool insecure;
    bool verbose;
};

/* Everything that a running server stands on, in the order in which it is made. */
struct serving {
    int listen_fd; /* until the server has it */
    struct tcp_place place;
    struct tls_identity *tls;
    struct token_guard *guard;
    struct store_owner *owner;
    struct store_server *server;
};

static void block_signals(sigset_t *waited)
{
    sigemptyset(waited);
    sigaddset(waited, SIGTERM);
    sigaddset(waited, SIGINT);
    sigaddset(waited, SIGHUP);
    pthread_sigmask(SIG_BLOCK, waited, NULL);
}

static enum status open_tls(const struct serve_options *options, struct serving *serving,
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

/* The tokens given, or those beside the database, or none. */
static enum status open_tokens(const struct serve_options *options, struct serving *serving,
                               const struct logger *logger, struct error *error)
{
    char beside[LIMIT_PATH_BYTES];
    const char *path = options->tokens_path;
    if (path == NULL) {
        int bytes =
            snprintf(beside, sizeof beside, "%s.tokens", cli_store_url(options->store_path));
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
static enum status check_reach(const struct serve_options *options, const struct serving *serving,
                               const struct logger *logger, struct error *error)
{
    const struct tcp_place *place = &serving->place;
    if (serving->guard == NULL && !place->loopback) {
        return error_set(error, STATUS_USAGE,
                         "refusing to serve %s to everybody on %s, which other machines can reach: "
                         "make tokens first (swerve token add NAME --role ROLE --store %s), or "
                         "listen on 127.0.0.1",
                         cli_store_url(options->store_path), place->text,
                         cli_store_url(options->store_path));
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
                  "no tokens: every user and process of this machine may do everything on %s",
                  place->text);
    }
    if (serving->tls == NULL && !place->loopback) {
        log_event(logger, LOG_WARNING, "tokens and data travel in the clear on %s", place->text);
    }
    return STATUS_OK;
}

static enum status announce(const struct serving *serving, struct error *error)
{
    const char *scheme = serving->tls != NULL ? "https" : "http";
    if (text_print(stdout, "%s://%s\n", scheme, serving->place.text) < 0 || fflush(stdout) != 0) {
        return error_set(error, STATUS_IO, "cannot write to stdout: %s", strerror(errno));
    }
    return STATUS_OK;
}

/* SIGHUP: certificate and key are read again. Tokens need no signal. */
static void reload(struct serving *serving, const struct logger *logger)
{
    struct error error;
    if (serving->tls == NULL) {
        log_event(logger, LOG_INFO, "hangup: there is no certificate to read again");
    } else if (tls_identity_reload(serving->tls, &error) != STATUS_OK) {
        log_event(logger, LOG_ERROR, "%s; the certificate read before stays in use", error.text);
    } else {
        log_event(logger, LOG_INFO, "hangup: the certificate was read again");
    }
}

static void wait_for_end(const sigset_t *waited, struct serving *serving,
                         const struct logger *logger)
{
    int number = 0;
    while (number != SIGTERM && number != SIGINT) {
        if (sigwait(waited, &number) == 0 && number == SIGHUP) {
            reload(serving, logger);
        }
    }
    log_event(logger, LOG_INFO, "%s: finishing the requests in progress", strsignal(number));
}

static enum status start(const struct serve_options *options, struct serving *serving,
                         const struct logger *logger, struct error *error)
{
    const struct store_config config = {.logger = logger};
    TRY(tcp_listen(options->listen, &serving->listen_fd, &serving->place, error));
    TRY(open_tls(options, serving, error));
    TRY(open_tokens(options, serving, logger, error));
    TRY(check_reach(options, serving, logger, error));
    TRY(store_owner_open(cli_store_url(options->store_path), &config, &serving->owner, error));
    const struct store_server_options with = {
        .guard = serving->guard,
        .tls = serving->tls,
        .connections_max = (size_t)options->connections_max,
        .peer_connections_max = (size_t)options->peer_connections_max,
        .drive = drive_json_fetch,
    };
    int fd = serving->listen_fd;
    serving->listen_fd = -1;
    TRY(store_server_start_with(store_owner_store(serving->owner), fd, &config, &with,
                                &serving->server, error));
    return announce(serving, error);
}

static void stop(struct serving *serving)
{
    store_server_stop(serving->server);
    store_owner_close(serving->owner);
    token_guard_destroy(serving->guard);
    tls_identity_destroy(serving->tls);
    if (serving->listen_fd >= 0) {
        close(serving->listen_fd);
    }
}

static enum status serve(const struct serve_options *options, const struct logger *logger,
                         struct error *error)
{
    struct serving serving = {.listen_fd = -1};
    sigset_t waited;
    block_signals(&waited);
    enum status status = start(options, &serving, logger, error);
    if (status == STATUS_OK) {
        wait_for_end(&waited, &serving, logger);
    }
    /* From here on a signal does what it does to any process. */
    pthread_sigmask(SIG_UNBLOCK, &waited, NULL);
    stop(&serving);
    return status;
}

int command_serve(int argc, char **argv)
{
    struct serve_options options = {
        .listen = "127.0.0.1:8080",
        .connections_max = 4096,
        .peer_connections_max = 1024,
    };
    const struct cli_option list[] = {
        {"--store", "PATH", "database to own and serve", .text = &options.store_path},
        {"--listen", "ADDR:PORT", "where; port 0 takes a free one (127.0.0.1:8080)",
         .text = &options.listen},
        {"--tokens", "FILE", "who may ask, see swerve token (PATH.tokens)",
         .text = &options.tokens_path},
        {"--tls-cert", "FILE", "certificate chain in PEM; read again on SIGHUP",
         .text = &options.cert_path},
        {"--tls-key", "FILE", "its private key in PEM", .text = &options.key_path},
        {"--connections", "N", "at most at one time, further ones are answered 503 (4096)",
         .number = &options.connections_max},
        {"--peer-connections", "N", "at most from one address, further ones 429; 0: as many (1024)",
         .number = &options.peer_connections_max},
        {"--insecure", NULL, "allow other machines in the clear", .flag = &options.insecure},
        {"--verbose", NULL, "say what is going on", .flag = &options.verbose},
    };
    const struct cli_command command = {
        "serve",
        "--store PATH --listen ADDR:PORT [options]",
        "Owns a store and serves it over HTTP; prints its URL when it is ready.",
        list,
        COUNT_OF(list),
        0,
        0,
    };
    uint32_t count;
    bool help;
    struct error error;
    int code = cli_parse(&command, argc, argv, NULL, &count, &help);
    if (code != 0 || help) {
        return code;
    }
    if (options.connections_max < 1 || options.connections_max > 65536) {
        error_set(&error, STATUS_USAGE, "--connections: expected 1 to 65536");
        return cli_fail(&error);
    }
    if (options.peer_connections_max < 0 || options.peer_connections_max > 65536) {
        error_set(&error, STATUS_USAGE, "--peer-connections: expected 0 to 65536");
        return cli_fail(&error);
    }
    if (strstr(cli_store_url(options.store_path), "://") != NULL) {
        error_set(&error, STATUS_USAGE,
                  "--store: expected the path of a database to serve, found "
                  "a URL");
        return cli_fail(&error);
    }
    const struct logger logger = {STDERR_FILENO, options.verbose ? LOG_INFO : LOG_WARNING,
                                  "swerve serve"};
    enum status status = serve(&options, &logger, &error);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
