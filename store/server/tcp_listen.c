/*
 * Listening on TCP: from "ADDR:PORT" to a socket, and whether other machines can reach it. See
 * server.h.
 *
 * Loopback is judged by the address that was bound, not by the name that was given: a name that
 * resolves elsewhere is elsewhere.
 */
#include "store/server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

/* Splits "ADDR:PORT" and "[ADDR]:PORT". */
static enum status split_place(const char *place, char *host, size_t capacity, const char **port,
                               struct error *error)
{
    bool bracketed = place[0] == '[';
    const char *begin = bracketed ? place + 1 : place;
    const char *end = bracketed ? strchr(place, ']') : strrchr(place, ':');
    const char *colon = bracketed && end != NULL ? end + 1 : end;
    size_t bytes = end != NULL ? (size_t)(end - begin) : 0;
    bool good = end != NULL && *colon == ':' && bytes > 0 && bytes < capacity &&
                (bracketed || memchr(begin, ':', bytes) == NULL);
    size_t digits = good ? strspn(colon + 1, "0123456789") : 0;
    good = good && digits > 0 && digits <= 5 && colon[1 + digits] == '\0' &&
           strtol(colon + 1, NULL, 10) <= UINT16_MAX;
    if (!good) {
        return error_set(error, STATUS_USAGE,
                         "expected ADDR:PORT or [ADDR]:PORT with a port from 0 to 65535 to listen "
                         "on, found \"%.200s\"",
                         place);
    }
    memcpy(host, begin, bytes);
    host[bytes] = '\0';
    *port = colon + 1;
    return STATUS_OK;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)address;
        return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    return address->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static enum status describe(int fd, struct tcp_place *out, struct error *error)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    char host[NI_MAXHOST];
    char port[8];
    memset(&address, 0, sizeof address);
    if (getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
        return error_set(error, STATUS_IO, "cannot tell where the socket listens: %s",
                         strerror(errno));
    }
    int reason = getnameinfo((const struct sockaddr *)&address, bytes, host, sizeof host, port,
                             sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    if (reason != 0) {
        return error_set(error, STATUS_IO, "cannot tell where the socket listens: %s",
                         gai_strerror(reason));
    }
    snprintf(out->text, sizeof out->text, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
             port);
    out->loopback = is_loopback(&address);
    return STATUS_OK;
}

static int listen_at(const struct addrinfo *address)
{
    int on = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    /* A server that was killed shall come back at once, while old connections linger. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int reason = errno;
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

enum status tcp_listen(const char *place, int *fd, struct tcp_place *out, struct error *error)
{
    char host[256];
    const char *port = NULL;
    struct addrinfo *addresses = NULL;
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
    };
    TRY(split_place(place, host, sizeof host, &port, error));
    int reason = getaddrinfo(host, port, &hints, &addresses);
    if (reason != 0) {
        return error_set(error, reason == EAI_MEMORY ? STATUS_NO_MEMORY : STATUS_IO,
                         "cannot listen on %s: %s", place,
                         reason == EAI_SYSTEM ? strerror(errno) : gai_strerror(reason));
    }
    int listening = -1;
    for (const struct addrinfo *each = addresses; each != NULL && listening < 0;
         each = each->ai_next) {
        listening = listen_at(each);
    }
    int cause = errno;
    freeaddrinfo(addresses);
    if (listening < 0) {
        return error_set(error, STATUS_IO, "cannot listen on %s: %s", place, strerror(cause));
    }
    enum status status = describe(listening, out, error);
    if (status != STATUS_OK) {
        close(listening);
        return status;
    }
    *fd = listening;
    return STATUS_OK;
}
