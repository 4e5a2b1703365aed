/*
 * Standard streams of a program. See streams.h.
 */
#include "base/program/streams.h"

#include "base/program/cli_options.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void streams_begin(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            (void)open("/dev/null", O_RDWR); /* the lowest number that is free: this one */
        }
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

int streams_end(int code)
{
    struct error error;
    struct pollfd out = {.fd = STDOUT_FILENO};
    errno = 0;
    bool written = fflush(stdout) == 0 && ferror(stdout) == 0;
    int why = errno; /* 0: of an earlier write, whose number is gone */
    bool left = why == EPIPE || (poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0);
    if (written || left || code != 0) {
        return code;
    }
    error_set(&error, STATUS_IO, "stdout: cannot write%s%s", why != 0 ? ": " : "",
              why != 0 ? strerror(why) : "");
    return cli_fail(&error);
}
