/*
 * swerve serve: the process that owns a store and serves it to workers and users on other machines.
 *
 * The main thread only waits for signals; they are blocked in every thread and taken by sigwait, so
 * that no handler runs until then. The first SIGTERM or SIGINT drains, one a second later ends the
 * process at once: the store does not need a goodbye (a kill -9 loses nothing that was
 * acknowledged).
 */
#include "worker/cli/cli.h"
#include "worker/serving/serving.h"

#include "base/check.h"
#include "base/text.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct serve_options {
    struct serving_options serving;
    const char *store_path;
    int64_t connections_max;
    int64_t peer_connections_max;
    bool verbose;
};

static void block_signals(sigset_t *waited)
{
    sigemptyset(waited);
    sigaddset(waited, SIGTERM);
    sigaddset(waited, SIGINT);
    sigaddset(waited, SIGHUP);
    pthread_sigmask(SIG_BLOCK, waited, NULL);
}

static enum status announce(const struct serving *serving, struct error *error)
{
    if (text_print(stdout, "%s://%s\n", serving_scheme(serving), serving->place.text) < 0 ||
        fflush(stdout) != 0) {
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

static void end_at_once(int number)
{
    if (cli_signal_insists()) {
        _exit(128 + number);
    }
}

/* From here on a signal that insists ends the process. The one that was waited for is noted. */
static void let_signals_through(const sigset_t *waited)
{
    struct sigaction action = {.sa_handler = end_at_once};
    (void)cli_signal_insists();
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, waited, NULL);
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

static enum status serve(const struct serving_options *options, const struct logger *logger,
                         struct error *error)
{
    struct serving serving = {.listening = false};
    const struct store_config config = {.logger = logger};
    sigset_t waited;
    block_signals(&waited);
    enum status status = serving_prepare(options, logger, &serving, error);
    THEN(status, serving_start(options, &config, &serving, error));
    THEN(status, announce(&serving, error));
    if (status == STATUS_OK) {
        wait_for_end(&waited, &serving, logger);
    }
    let_signals_through(&waited);
    serving_stop(&serving);
    return status;
}

int command_serve(int argc, char **argv)
{
    struct serve_options options = {
        .serving = {.listen = "127.0.0.1:8080"},
        .connections_max = 4096,
        .peer_connections_max = 1024,
    };
    const struct cli_option list[] = {
        {"--store", "PATH", "database to own and serve", .text = &options.store_path},
        {"--listen", "ADDR:PORT", "where; port 0 takes a free one (127.0.0.1:8080)",
         .text = &options.serving.listen},
        {"--tokens", "FILE", "who may ask, see swerve token (PATH.tokens)",
         .text = &options.serving.tokens_path},
        {"--tls-cert", "FILE", "certificate chain in PEM; read again on SIGHUP",
         .text = &options.serving.cert_path},
        {"--tls-key", "FILE", "its private key in PEM", .text = &options.serving.key_path},
        {"--connections", "N", "at most at one time, further ones are answered 503 (4096)",
         .number = &options.connections_max},
        {"--peer-connections", "N", "at most from one address, further ones 429; 0: as many (1024)",
         .number = &options.peer_connections_max},
        {"--scaling", "FILE", "how many workers pools should have, for /v1/scaling (docs/fleet.md)",
         .text = &options.serving.scaling_path},
        {"--insecure", NULL, "allow other machines in the clear",
         .flag = &options.serving.insecure},
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
    options.serving.store_path = cli_store_url(options.store_path);
    options.serving.connections_max = (size_t)options.connections_max;
    options.serving.peer_connections_max = (size_t)options.peer_connections_max;
    const struct logger logger = {STDERR_FILENO, options.verbose ? LOG_INFO : LOG_WARNING,
                                  "swerve serve"};
    enum status status = serve(&options.serving, &logger, &error);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
