/*
 * swerve session: somebody at the wheel, in real time.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/session/session_server.h"
#include "store/server/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SEATS = 16, PAUSE_MS = 100 };

struct session_command {
    const char *listen;
    const char *world;
    const char *folder;
    int64_t seats;
    bool allow_remote;
    bool verbose;
};

static enum status listen_at(const struct session_command *command, int *fd,
                             struct tcp_place *place, struct error *error)
{
    TRY(tcp_listen(command->listen, fd, place, error));
    if (place->loopback || command->allow_remote) {
        return STATUS_OK;
    }
    close(*fd);
    return error_set(error, STATUS_USAGE,
                     "--listen %s: other machines could reach it, in the clear; --allow-remote "
                     "lets them",
                     place->text);
}

static enum status announce(const struct tcp_place *place, const struct session_server *server,
                            struct error *error)
{
    if (text_print(stdout, "http://%s/#%s\n", place->text, session_server_key(server)) < 0 ||
        fflush(stdout) != 0) {
        return error_set(error, STATUS_IO, "cannot write to stdout: %s", strerror(errno));
    }
    return STATUS_OK;
}

static void wait_for_signal(void)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};
    const atomic_int *interrupted = cli_catch_interrupts();
    while (atomic_load(interrupted) == 0) {
        nanosleep(&pause, NULL);
    }
}

static void tell_counts(struct interactive *pool)
{
    struct interactive_counts counts = interactive_counts(pool);
    text_print(stderr, "swerve: %llu session%s, %llu refused, %llu ticks, %llu late\n",
               (unsigned long long)counts.sessions, counts.sessions == 1 ? "" : "s",
               (unsigned long long)counts.refused, (unsigned long long)counts.ticks,
               (unsigned long long)counts.lates);
}

static enum status serve(const struct session_command *command, const char *suite,
                         struct error *error)
{
    struct interactive *pool = NULL;
    struct session_server *server = NULL;
    struct tcp_place place;
    int fd;
    const struct interactive_options options = {
        .suite = suite,
        .world = command->world,
        .seats = (uint32_t)command->seats,
        .clock = clock_system(),
    };
    const struct logger logger = {STDERR_FILENO, command->verbose ? LOG_DEBUG : LOG_WARNING,
                                  "swerve session"};
    TRY(interactive_open(&options, &pool, error));
    const struct talk_options talk = {
        .pool = pool, .world = command->world, .folder = command->folder};
    enum status status = listen_at(command, &fd, &place, error);
    THEN(status, session_server_start(fd, &talk, &logger, &server, error));
    THEN(status, announce(&place, server, error));
    if (status == STATUS_OK) {
        wait_for_signal();
    }
    session_server_stop(server);
    if (status == STATUS_OK) {
        tell_counts(pool);
    }
    interactive_close(pool);
    return status;
}

int command_session(int argc, char **argv)
{
    struct session_command command = {
        .listen = "127.0.0.1:8090",
        .world = "object",
        .folder = ".",
        .seats = SEATS,
    };
    const struct cli_option options[] = {
        {"--listen", "ADDR:PORT", "where to serve; port 0 takes a free one (127.0.0.1:8090)",
         .text = &command.listen},
        {"--world", "NAME", "object or replay (object)", .text = &command.world},
        {"--sessions", "N", "at once, at most (16)", .number = &command.seats},
        {"--save", "DIR", "where drives are saved as scenarios (.)", .text = &command.folder},
        {"--allow-remote", NULL, "listen where other machines can reach it",
         .flag = &command.allow_remote},
        {"--verbose", NULL, "say what is going on", .flag = &command.verbose},
    };
    const struct cli_command session = {
        "session",
        "serve [SUITE] [options]",
        "Serves a page at which you drive the scenarios of a suite by keyboard or gamepad in real "
        "time: go back and drive otherwise, then save your drives as branches of a scenario. "
        "Prints the page's address with its key (docs/interactive.md).",
        CLI_ROWS(options, 1, 2),
    };
    const char *arguments[2] = {NULL, "smoke"};
    char path[LIMIT_PATH_BYTES];
    struct error error;
    CLI_PARSE(&session, argc, argv, arguments, NULL);
    if (strcmp(arguments[0], "serve") != 0) {
        error_set(&error, STATUS_USAGE, "session: expected serve, found %s", arguments[0]);
        return cli_fail(&error);
    }
    return serve(&command, cli_suite_path(arguments[1], path), &error) == STATUS_OK
               ? 0
               : cli_fail(&error);
}
