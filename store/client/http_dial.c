/*
 * Upgrades of a client's connections to WebSockets, over libcurl. See http_dial.h.
 */
#include "store/client/http_dial.h"

#include "base/clock.h"
#include "base/units.h"
#include "base/websocket/handshake.h"
#include "store/client/http_transport.h"
#include "store/curl/curl_call.h"
#include "store/wire/http_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_BYTES = 16 << 10 };

struct http_dial {
    CURL *handle;
    curl_socket_t fd;
    char reply[REPLY_BYTES]; /* to the request, and what came behind it */
    size_t bytes;
    size_t head; /* bytes of these that were the answer */
};

static ssize_t dial_receive(void *end, void *out, size_t capacity)
{
    struct http_dial *dial = end;
    size_t count = 0;
    CURLcode code = curl_easy_recv(dial->handle, out, capacity, &count);
    if (code == CURLE_OK) {
        return (ssize_t)count;
    }
    errno = code == CURLE_AGAIN ? EAGAIN : EIO;
    return -1;
}

static ssize_t dial_send(void *end, const void *data, size_t bytes)
{
    struct http_dial *dial = end;
    size_t count = 0;
    CURLcode code = curl_easy_send(dial->handle, data, bytes, &count);
    if (code == CURLE_OK) {
        return (ssize_t)count;
    }
    errno = code == CURLE_AGAIN ? EAGAIN : EIO;
    return -1;
}

/* Until that moment waits for the connection. False: it is over. */
static bool wait_until(const struct http_dial *dial, short events, int64_t end_ns)
{
    struct pollfd fd = {dial->fd, events, 0};
    int64_t left_ns = end_ns - clock_monotonic_ns();
    return left_ns > 0 && (poll(&fd, 1, (int)(left_ns / NS_PER_MS) + 1) >= 0 || errno == EINTR);
}

static enum status send_request(struct http_dial *dial, const char *text, int64_t end_ns,
                                struct error *error)
{
    size_t sent = 0;
    while (sent < strlen(text)) {
        ssize_t count = dial_send(dial, text + sent, strlen(text) - sent);
        sent += count > 0 ? (size_t)count : 0;
        if (count < 0 && (errno != EAGAIN || !wait_until(dial, POLLOUT, end_ns))) {
            return error_set(error, HTTP_LOST, "the server does not take the request");
        }
    }
    return STATUS_OK;
}

/* The whole head of the answer, and what comes with it. */
static enum status take_reply(struct http_dial *dial, int64_t end_ns, struct error *error)
{
    while (strstr(dial->reply, "\r\n\r\n") == NULL) {
        size_t room = sizeof dial->reply - 1 - dial->bytes;
        ssize_t count = room > 0 ? dial_receive(dial, dial->reply + dial->bytes, room) : 0;
        if (count == 0 || (count < 0 && errno != EAGAIN)) {
            return error_set(error, HTTP_LOST, "the server ended the connection");
        }
        if (count < 0 && !wait_until(dial, POLLIN, end_ns)) {
            return error_set(error, HTTP_LOST, "the server did not answer within %d s",
                             HTTP_CONNECT_MS / 1000);
        }
        dial->bytes += count > 0 ? (size_t)count : 0;
        dial->reply[dial->bytes] = '\0';
    }
    dial->head = (size_t)(strstr(dial->reply, "\r\n\r\n") + 4 - dial->reply);
    return STATUS_OK;
}

/* Waits for the body of a refusal, as far as it fits. */
static void take_body(struct http_dial *dial, int64_t end_ns)
{
    const char *length = strcasestr(dial->reply, "\r\nContent-Length:");
    unsigned long body =
        length != NULL ? strtoul(length + strlen("\r\nContent-Length:"), NULL, 10) : 0;
    while (dial->bytes - dial->head < body && dial->bytes < sizeof dial->reply - 1) {
        ssize_t count =
            dial_receive(dial, dial->reply + dial->bytes, sizeof dial->reply - 1 - dial->bytes);
        if (count == 0 || (count < 0 && (errno != EAGAIN || !wait_until(dial, POLLIN, end_ns)))) {
            break;
        }
        dial->bytes += count > 0 ? (size_t)count : 0;
    }
}

/* The answer's body says why, where it is the server's own. */
static enum status refuse(struct http_dial *dial, const char *path, int code, int64_t end_ns,
                          struct error *error)
{
    struct error why = {.text = ""};
    take_body(dial, end_ns);
    bool again = code == 429 || code >= 500;
    http_error_decode("refusal", code, dial->reply + dial->head, dial->bytes - dial->head, &why);
    return error_set(error, again ? STATUS_BUSY : STATUS_STORE, "GET %s: HTTP %d: %.400s", path,
                     code, why.text);
}

static enum status check_reply(struct http_dial *dial, const char *path, const char *key,
                               int64_t end_ns, struct error *error)
{
    char accept[HANDSHAKE_ACCEPT_BYTES];
    int code = 0;
    if (sscanf(dial->reply, "HTTP/1.%*1d %3d", &code) != 1) {
        return error_set(error, STATUS_STORE, "GET %s: expected HTTP/1.1", path);
    }
    if (code != 101) {
        return refuse(dial, path, code, end_ns, error);
    }
    const char *found = strcasestr(dial->reply, "\r\nSec-WebSocket-Accept:");
    if (!handshake_accept(key, accept) || found == NULL || found >= dial->reply + dial->head ||
        strstr(found, accept) == NULL) {
        return error_set(error, STATUS_STORE, "GET %s: expected Sec-WebSocket-Accept of its key",
                         path);
    }
    return STATUS_OK;
}

/* `place` is the server's host, and what a proxy puts in front of its paths. */
static enum status upgrade(struct http_dial *dial, const char *place, const char *path,
                           const char *authorization, struct error *error)
{
    int host = (int)strcspn(place, "/");
    char key[HANDSHAKE_KEY_BYTES];
    char request[2048];
    int64_t end_ns = clock_monotonic_ns() + HTTP_CONNECT_MS * NS_PER_MS;
    handshake_key(key);
    int bytes = snprintf(request, sizeof request,
                         "GET %s%s HTTP/1.1\r\nHost: %.*s\r\n%sUpgrade: websocket\r\nConnection: "
                         "Upgrade\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n",
                         place + host, path, host, place, authorization, key);
    enum status status = bytes < (int)sizeof request
                             ? STATUS_OK
                             : error_set(error, STATUS_LIMIT, "the request is too long");
    THEN(status, send_request(dial, request, end_ns, error));
    explicit_bzero(request, sizeof request);
    THEN(status, take_reply(dial, end_ns, error));
    THEN(status, check_reply(dial, path, key, end_ns, error));
    return status;
}

enum status http_dial_open(struct http_transport *transport, const char *path,
                           struct http_dial **out, struct error *error)
{
    char authorization[HTTP_AUTHORIZATION_BYTES];
    void *handle = NULL;
    struct http_dial *dial = calloc(1, sizeof *dial);
    TRY(memory_check(dial, error, "out of memory for a WebSocket"));
    enum status status = http_transport_connect(transport, &handle, authorization, error);
    if (status != STATUS_OK) {
        free(dial);
        return status;
    }
    dial->handle = handle;
    bool connected = curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, &dial->fd) == CURLE_OK &&
                     dial->fd != CURL_SOCKET_BAD;
    status = connected ? upgrade(dial, http_transport_host(transport), path, authorization, error)
                       : error_set(error, HTTP_LOST, "the connection has ended");
    explicit_bzero(authorization, sizeof authorization);
    if (status != STATUS_OK) {
        http_dial_close(dial);
        return error_prefix(error, "%s", http_transport_host(transport));
    }
    *out = dial;
    return STATUS_OK;
}

void http_dial_close(struct http_dial *dial)
{
    if (dial != NULL) {
        curl_easy_cleanup(dial->handle);
        free(dial);
    }
}

void http_dial_wire(struct http_dial *dial, struct wire_options *out)
{
    out->fd = dial->fd;
    out->receive = dial_receive;
    out->send = dial_send;
    out->end = dial;
    out->client = true;
    out->begin = dial->reply + dial->head;
    out->begin_bytes = dial->bytes - dial->head;
}
