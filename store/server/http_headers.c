/*
 * Headers of replies and the origin of requests. See http_headers.h.
 */
#include "store/server/http_headers.h"

#include "base/check.h"
#include "store/server/web/web.h"
#include "store/wire/http_wire.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const content_types[HTTP_CONTENT_COUNT] = {
    [HTTP_CONTENT_BYTES] = "application/octet-stream",
    [HTTP_CONTENT_JSON] = "application/json",
    [HTTP_CONTENT_METRICS] = "text/plain; version=0.0.4; charset=utf-8",
    [HTTP_CONTENT_EVENTS] = "text/event-stream; charset=utf-8",
    [HTTP_CONTENT_HTML] = "text/html; charset=utf-8",
    [HTTP_CONTENT_SCRIPT] = "text/javascript; charset=utf-8",
    [HTTP_CONTENT_STYLE] = "text/css; charset=utf-8",
};

static void add(struct http_headers *headers, const char *name, const char *value)
{
    CHECK(headers->count < HTTP_HEADERS_MAX);
    headers->list[headers->count].name = name;
    headers->list[headers->count++].value = value;
}

void http_headers_make(const struct http_reply *reply, const char *uri, bool takes_packed,
                       bool close_after, struct http_headers *out)
{
    out->count = 0;
    add(out, "Content-Type", content_types[reply->content]);
    add(out, "X-Content-Type-Options", "nosniff");
    if (reply->content >= HTTP_CONTENT_HTML) {
        add(out, "Content-Security-Policy", WEB_POLICY);
        add(out, "X-Frame-Options", "DENY");
        add(out, "Referrer-Policy", "no-referrer");
        add(out, "Cross-Origin-Opener-Policy", "same-origin");
        add(out, "Cross-Origin-Resource-Policy", "same-origin");
        add(out, "Cache-Control", "no-cache");
    } else {
        add(out, "Cache-Control", "no-store");
    }
    if (reply->packed) {
        add(out, "Content-Encoding", "zstd");
    }
    if (reply->stream != NULL) {
        add(out, "Vary", "Accept-Encoding");
    }
    if (reply->code == 415) {
        add(out, "Accept-Encoding", takes_packed ? "zstd" : "identity");
    }
    if (close_after) {
        add(out, "Connection", "close");
    }
    if (reply->code == 401) {
        add(out, "WWW-Authenticate", "Bearer");
    }
    if (reply->code == 405) {
        http_route_methods(uri, out->texts[0], sizeof out->texts[0]);
        add(out, "Allow", out->texts[0]);
    }
    if (reply->code == 429 || reply->code == 503) {
        snprintf(out->texts[1], sizeof out->texts[1], "%d", HTTP_RETRY_S);
        add(out, "Retry-After", out->texts[1]);
    }
}

/* ---- request targets ---- */

bool http_host_is_plain(const char *host)
{
    size_t bytes = strcspn(host, " \t/@?#\\\"<>,");
    return host[bytes + strspn(host + bytes, " \t")] == '\0';
}

enum status http_target_split(const char *target, struct http_target *out, struct error *error)
{
    static const char *const schemes[] = {"http://", "https://"};
    const char *authority = NULL;
    out->path = target;
    out->authority[0] = '\0';
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        if (strncasecmp(target, schemes[i], strlen(schemes[i])) == 0) {
            authority = target + strlen(schemes[i]);
        }
    }
    if (authority == NULL) {
        return STATUS_OK;
    }
    size_t bytes = strcspn(authority, "/?#");
    if (bytes == 0 || bytes >= sizeof out->authority) {
        return error_set(error, STATUS_BAD_INPUT, "request target: expected a host behind ://");
    }
    memcpy(out->authority, authority, bytes);
    out->authority[bytes] = '\0';
    if (!http_host_is_plain(out->authority)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "request target: expected HOST or HOST:PORT behind ://, found \"%.100s\"",
                         out->authority);
    }
    out->path = authority + bytes;
    if (out->path[0] != '/') {
        snprintf(out->root, sizeof out->root, "/%s", out->path);
        out->path = out->root;
    }
    return STATUS_OK;
}

/* ---- origins ---- */

/* "localhost", "127.0.0.1", "[::1]", each perhaps with a port. */
static bool is_own_name(const char *host)
{
    char name[64];
    struct in6_addr six;
    struct in_addr four;
    bool bracketed = host[0] == '[';
    const char *begin = bracketed ? host + 1 : host;
    size_t bytes = strcspn(begin, bracketed ? "]" : ":");
    if (bytes >= sizeof name) {
        return false;
    }
    memcpy(name, begin, bytes);
    name[bytes] = '\0';
    return bracketed ? inet_pton(AF_INET6, name, &six) == 1
                     : strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &four) == 1;
}

enum status http_origin_check(const struct http_origin *origin, bool trusting, struct error *error)
{
    const char *host = origin->host != NULL ? origin->host : "";
    if (origin->origin != NULL) {
        const char *name = strstr(origin->origin, "://");
        if (name == NULL || strcasecmp(name + 3, host) != 0) {
            return error_set(error, STATUS_STORE,
                             "a page of \"%.100s\" sent this request; browsers may send those of "
                             "this server's own page alone",
                             origin->origin);
        }
    }
    if (origin->fetch_site != NULL && strcmp(origin->fetch_site, "same-origin") != 0 &&
        strcmp(origin->fetch_site, "none") != 0) {
        return error_set(error, STATUS_STORE,
                         "another site's page sent this request (Sec-Fetch-Site: %.40s); browsers "
                         "may send those of this server's own page alone",
                         origin->fetch_site);
    }
    if (trusting && host[0] != '\0' && !is_own_name(host)) {
        return error_set(error, STATUS_STORE,
                         "a server without tokens answers those who call it localhost or by its "
                         "address, not \"%.100s\"",
                         host);
    }
    return STATUS_OK;
}
