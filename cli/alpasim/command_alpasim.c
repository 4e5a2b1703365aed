/*
 * swerve alpasim: scenarios as services of AlpaSim.
 */
#include "base/text.h"
#include "cli/cli.h"
#include "worker/alpasim/alpasim.h"
#include "worker/grpc/grpc_socket.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct alpasim_command {
    const char *listen;
    const char *rig_file;
    bool allow_remote;
};

/* A descriptor that is readable when the command is told to end. */
static enum status quit_open(int *fd, struct error *error)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &ends, NULL) != 0 || (*fd = signalfd(-1, &ends, SFD_CLOEXEC)) < 0) {
        return error_set(error, STATUS_IO, "cannot wait for signals: %s", strerror(errno));
    }
    return STATUS_OK;
}

/* Serves until a signal comes; *signal is its number. */
static enum status serve(const struct alpasim_command *command, struct alpasim *alpasim,
                         int quit_fd, int *signal, struct error *error)
{
    static const struct logger logger = {STDERR_FILENO, LOG_WARNING, "swerve alpasim"};
    struct grpc_server *server = NULL;
    struct signalfd_siginfo told;
    TRY(grpc_server_open(command->listen, alpasim_serve, alpasim, &logger, &server, error));
    enum status status = STATUS_OK;
    if (text_print(stdout, "%s\n", grpc_server_address(server)) < 0 || fflush(stdout) != 0) {
        status = error_set(error, STATUS_IO, "cannot write to stdout: %s", strerror(errno));
    }
    THEN(status, grpc_server_run(server, quit_fd, error));
    if (status == STATUS_OK && read(quit_fd, &told, sizeof told) == (ssize_t)sizeof told) {
        *signal = (int)told.ssi_signo;
    }
    grpc_server_close(server);
    return status;
}

static enum status run(const struct alpasim_command *command, const char *path, int *signal,
                       struct error *error)
{
    struct suite *suite = NULL;
    struct alpasim *alpasim = NULL;
    int quit_fd = -1;
    if (command->listen == NULL) {
        return error_set(error, STATUS_USAGE, "alpasim: expected --listen HOST:PORT");
    }
    if (!command->allow_remote && !grpc_address_is_local(command->listen)) {
        return error_set(error, STATUS_USAGE,
                         "--listen %s: expected an address of this machine (127.0.0.1:PORT with a "
                         "port of 1 to 65535, unix:PATH): the connection has no TLS; "
                         "--allow-remote allows others",
                         command->listen);
    }
    struct rig *rig = malloc(sizeof *rig);
    TRY(memory_check(rig, error, "alpasim: out of memory"));
    rig_swerve(rig);
    enum status status =
        command->rig_file != NULL ? rig_read(command->rig_file, rig, NULL, error) : STATUS_OK;
    THEN(status, cli_suite_load(path, &suite, error));
    THEN(status, alpasim_create(suite, rig, &alpasim, error));
    THEN(status, quit_open(&quit_fd, error));
    THEN(status, serve(command, alpasim, quit_fd, signal, error));
    if (quit_fd >= 0) {
        close(quit_fd);
    }
    alpasim_destroy(alpasim);
    suite_destroy(suite);
    free(rig);
    return status;
}

int command_alpasim(int argc, char **argv)
{
    struct alpasim_command options = {.listen = NULL};
    const struct cli_option rows[] = {
        {"--listen", "HOST:PORT",
         "where; port 0: any that is free, which is printed (unix:PATH too)",
         .text = &options.listen},
        {"--rig", "FILE", "cameras that scenes without a rig of their own offer (the built-in rig)",
         .text = &options.rig_file},
        {"--allow-remote", NULL, "other machines may connect, without TLS",
         .flag = &options.allow_remote},
    };
    const struct cli_command command = {
        "alpasim",
        "SUITE --listen HOST:PORT [options]",
        "Scenarios as AlpaSim's SensorsimService, WorldModelService and TrafficService, drawn and\n"
        "driven as the object world does (docs/alpasim.md). It ends with a signal.",
        CLI_ROWS(rows, 1, 1),
    };
    const char *arguments[1] = {NULL};
    struct error error;
    int signal = 0;
    CLI_PARSE(&command, argc, argv, arguments, NULL);
    if (run(&options, arguments[0], &signal, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    return signal != 0 ? 128 + signal : 0;
}
