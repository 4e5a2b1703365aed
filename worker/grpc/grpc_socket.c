/*
 * Sockets of the gRPC client. See grpc_socket.h.
 */
#include "worker/grpc/grpc_socket.h"

#include "base/clock.h"
#include "base/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define UNIX_PREFIX "unix:"

struct place {
    char host[GRPC_ADDRESS_BYTES];
    char port[8];
};

bool grpc_socket_is_unix(const char *address)
{
    return strncmp(address, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0;
}

/* HOST:PORT or [IPV6]:PORT, of which port 0 is none where one connects. */
static bool take_apart(const char *address, int least_port, struct place *place)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || colon == address || strlen(address) >= GRPC_ADDRESS_BYTES) {
        return false;
    }
    size_t port_bytes = strlen(colon + 1);
    if (port_bytes == 0 || port_bytes > 5 || strspn(colon + 1, "0123456789") != port_bytes) {
        return false;
    }
    const char *host = address;
    size_t host_bytes = (size_t)(colon - address);
    if (address[0] == '[') {
        if (host_bytes < 3 || colon[-1] != ']') {
            return false;
        }
        host++;
        host_bytes -= 2;
    } else if (memchr(address, ':', host_bytes) != NULL) {
        return false;
    }
    int port = atoi(colon + 1);
    if (port < least_port || port > UINT16_MAX) {
        return false;
    }
    memcpy(place->host, host, host_bytes);
    place->host[host_bytes] = '\0';
    memcpy(place->port, colon + 1, port_bytes + 1);
    return true;
}

enum status grpc_address_check(const char *address, struct error *error)
{
    struct place place;
    const struct sockaddr_un *local = NULL;
    size_t bytes = strlen(address);
    if (grpc_socket_is_unix(address) && bytes > strlen(UNIX_PREFIX) &&
        bytes - strlen(UNIX_PREFIX) < sizeof local->sun_path && bytes < GRPC_ADDRESS_BYTES) {
        return STATUS_OK;
    }
    if (!grpc_socket_is_unix(address) && take_apart(address, 1, &place)) {
        return STATUS_OK;
    }
    return error_set(
        error, STATUS_BAD_INPUT,
        "address \"%s\": expected HOST:PORT, [IPV6]:PORT (ports 1 to 65535) or unix:PATH", address);
}

bool grpc_address_is_local(const char *address)
{
    struct place place;
    struct in_addr v4;
    struct in6_addr v6;
    if (grpc_socket_is_unix(address)) {
        return true;
    }
    if (!take_apart(address, 0, &place)) {
        return false;
    }
    if (inet_pton(AF_INET, place.host, &v4) == 1) {
        return ntohl(v4.s_addr) >> 24 == 127;
    }
    if (inet_pton(AF_INET6, place.host, &v6) == 1) {
        return IN6_IS_ADDR_LOOPBACK(&v6);
    }
    return strcmp(place.host, "localhost") == 0;
}

int grpc_socket_poll_ms(int64_t left_ns, const atomic_bool *abandoned)
{
    enum { STEP_MS = 50 };
    int64_t left_ms = left_ns > 0 ? left_ns / NS_PER_MS + 1 : 0;
    return (int)(abandoned != NULL && left_ms > STEP_MS ? STEP_MS : left_ms);
}

/* Waits for a connection that is on its way. 0, or an error number. */
static int finish_connect(int fd, int64_t end_ns, const atomic_bool *abandoned)
{
    for (;;) {
        int64_t left_ns = end_ns - clock_monotonic_ns();
        struct pollfd watched = {.fd = fd, .events = POLLOUT};
        int ready = poll(&watched, 1, grpc_socket_poll_ms(left_ns, abandoned));
        if (ready > 0) {
            int code = 0;
            socklen_t bytes = sizeof code;
            return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes) == 0 ? code : errno;
        }
        if (ready == 0 && left_ns <= 0) {
            return ETIMEDOUT;
        }
        if (abandoned != NULL && atomic_load(abandoned)) {
            return ECANCELED;
        }
        if (ready < 0 && errno != EINTR) {
            return errno;
        }
    }
}

/* 0, or an error number. */
static int connect_to(const struct sockaddr *to, socklen_t bytes, int64_t end_ns,
                      const atomic_bool *abandoned, int *fd)
{
    int code = 0;
    int made = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0) {
        return errno;
    }
    if (connect(made, to, bytes) != 0) {
        code = errno == EINPROGRESS ? finish_connect(made, end_ns, abandoned) : errno;
    }
    if (code != 0) {
        close(made);
        return code;
    }
    if (to->sa_family != AF_UNIX) {
        int on = 1;
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* slower without, no more */
    }
    *fd = made;
    return 0;
}

static int connect_by_name(const char *address, int64_t end_ns, const atomic_bool *abandoned,
                           int *fd, const char **why)
{
    struct place place;
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int code = ENOENT;
    if (!take_apart(address, 1, &place)) {
        return EINVAL;
    }
    int failure = getaddrinfo(place.host, place.port, &hints, &found);
    if (failure != 0) {
        *why = gai_strerror(failure);
        return EHOSTUNREACH;
    }
    for (const struct addrinfo *at = found; at != NULL && code != 0 && code != ECANCELED;
         at = at->ai_next) {
        code = connect_to(at->ai_addr, at->ai_addrlen, end_ns, abandoned, fd);
    }
    freeaddrinfo(found);
    return code;
}

enum status grpc_socket_connect(const char *address, int64_t deadline_ms,
                                const atomic_bool *abandoned, int *fd, struct error *error)
{
    const char *why = NULL;
    int code = 0;
    int64_t end_ns = clock_monotonic_ns() + deadline_ms * NS_PER_MS;
    TRY(grpc_address_check(address, error));
    if (grpc_socket_is_unix(address)) {
        struct sockaddr_un local = {.sun_family = AF_UNIX};
        snprintf(local.sun_path, sizeof local.sun_path, "%s", address + strlen(UNIX_PREFIX));
        code = connect_to((const struct sockaddr *)&local, sizeof local, end_ns, abandoned, fd);
    } else {
        code = connect_by_name(address, end_ns, abandoned, fd, &why);
    }
    if (code == 0) {
        return STATUS_OK;
    }
    return error_set(error,
                     code == ETIMEDOUT   ? STATUS_TIMEOUT
                     : code == ECANCELED ? STATUS_CANCELLED
                                         : STATUS_IO,
                     "cannot connect to %s: %s", address, why != NULL ? why : strerror(code));
}

/* ---- listening ---- */

/* 0, or an error number. */
static int listen_on(const struct sockaddr *at, socklen_t bytes, int *fd)
{
    int on = 1;
    int made = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0) {
        return errno;
    }
    if (at->sa_family != AF_UNIX) {
        setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (bind(made, at, bytes) != 0 || listen(made, SOMAXCONN) != 0) {
        int code = errno;
        close(made);
        return code;
    }
    *fd = made;
    return 0;
}

/* The port that a socket got; 0: it has none. */
static int port_of(int fd)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &bytes) != 0) {
        return 0;
    }
    return at.ss_family == AF_INET    ? ntohs(((const struct sockaddr_in *)&at)->sin_port)
           : at.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)&at)->sin6_port)
                                      : 0;
}

enum status grpc_socket_listen(const char *address, int *fd, char bound[GRPC_ADDRESS_BYTES],
                               struct error *error)
{
    struct place place;
    int code = 0;
    const char *why = NULL;
    snprintf(bound, GRPC_ADDRESS_BYTES, "%s", address);
    if (grpc_socket_is_unix(address)) {
        struct sockaddr_un local = {.sun_family = AF_UNIX};
        TRY(grpc_address_check(address, error));
        snprintf(local.sun_path, sizeof local.sun_path, "%s", address + strlen(UNIX_PREFIX));
        code = listen_on((const struct sockaddr *)&local, sizeof local, fd);
    } else {
        struct addrinfo *found = NULL;
        const struct addrinfo hints = {
            .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
        if (!take_apart(address, 0, &place)) {
            return grpc_address_check(address, error);
        }
        int failure = getaddrinfo(place.host, place.port, &hints, &found);
        why = failure != 0 ? gai_strerror(failure) : NULL;
        code = failure != 0 ? EINVAL : listen_on(found->ai_addr, found->ai_addrlen, fd);
        if (failure == 0) {
            freeaddrinfo(found);
        }
        if (code == 0) {
            const int host_bytes = (int)(strrchr(address, ':') - address);
            snprintf(bound, GRPC_ADDRESS_BYTES, "%.*s:%d", host_bytes, address, port_of(*fd));
        }
    }
    return code == 0 ? STATUS_OK
                     : error_set(error, STATUS_IO, "cannot listen on %s: %s", address,
                                 why != NULL ? why : strerror(code));
}

int grpc_socket_accept(int fd)
{
    int on = 1;
    int made = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (made >= 0) {
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails of a Unix socket */
    }
    return made;
}
