/*
 * swerve serve: the process that owns a store and serves it to workers and users on other machines.
 *
 * The main thread only waits for signals; they are blocked in every thread and taken by sigwait, so
 * that no handler runs anywhere. The first SIGTERM or SIGINT drains, a second one ends the process
 * at once: the store does not need a goodbye (a kill -9 loses nothing that was acknowledged).
 */
#include "worker/cli.h"

#include "base/check.h"
#include "store/server.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct serve_options {
    const char *store_path;
    const char *listen;
    bool insecure;
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

/* From here on a signal does what it does to any process. */
static void unblock_signals(const sigset_t *waited)
{
    pthread_sigmask(SIG_UNBLOCK, waited, NULL);
}

/* Nobody else's machine may talk to the store without having been let in. */
static enum status check_reach(const struct serve_options *options, const struct tcp_place *place,
                               struct error *error)
{
    if (place->loopback || options->insecure) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_USAGE,
                     "refusing to listen in the clear on %s, which other machines can reach; "
                     "listen on 127.0.0.1, or give --insecure",
                     place->text);
}

static enum status announce(const struct tcp_place *place, struct error *error)
{
    if (printf("http://%s\n", place->text) < 0 || fflush(stdout) != 0) {
        return error_set(error, STATUS_IO, "cannot write to stdout: %s", strerror(errno));
    }
    return STATUS_OK;
}

static void wait_for_end(const sigset_t *waited, const struct logger *logger)
{
    int number = 0;
    do {
        if (sigwait(waited, &number) != 0) {
            continue;
        }
    } while (number != SIGTERM && number != SIGINT);
    log_event(logger, LOG_INFO, "%s: finishing the requests in progress", strsignal(number));
}

static enum status serve(const struct serve_options *options, const struct logger *logger,
                         struct error *error)
{
    struct store_owner *owner = NULL;
    struct store_server *server = NULL;
    struct tcp_place place;
    sigset_t waited;
    int fd = -1;
    const struct store_config config = {.logger = logger};
    block_signals(&waited);
    enum status status = tcp_listen(options->listen, &fd, &place, error);
    if (status == STATUS_OK) {
        status = check_reach(options, &place, error);
    }
    if (status == STATUS_OK) {
        status = store_owner_open(cli_store_url(options->store_path), &config, &owner, error);
    }
    if (status == STATUS_OK) {
        status = store_server_start(store_owner_store(owner), fd, &config, &server, error);
        fd = -1;
    }
    if (status == STATUS_OK) {
        status = announce(&place, error);
    }
    if (status == STATUS_OK) {
        wait_for_end(&waited, logger);
    }
    unblock_signals(&waited);
    store_server_stop(server);
    store_owner_close(owner);
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

int command_serve(int argc, char **argv)
{
    struct serve_options options = {.listen = "127.0.0.1:8080"};
    const struct cli_option list[] = {
        {"--store", "PATH", "database to own and serve", .text = &options.store_path},
        {"--listen", "ADDR:PORT", "where; port 0 takes a free one (127.0.0.1:8080)",
         .text = &options.listen},
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
