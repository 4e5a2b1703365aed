/*
 * The headers of a reply, and where a request may come from when a browser sends it. Knows nothing
 * of the HTTP library. Private to the store room.
 *
 * A browser sends requests to any server that a page which it shows names, with whatever rights the
 * browser's machine has. A server without tokens trusts its machine, so a strange page in a browser
 * there could cancel suites. So requests that another page has sent are refused, on every server.
 */
#ifndef SWERVE_STORE_SERVER_HTTP_HEADERS_H
#define SWERVE_STORE_SERVER_HTTP_HEADERS_H

#include "store/server/http_routes.h"
#include "store/wire/http_wire.h"

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_HEADERS_MAX = 16 };

struct http_headers {
    size_t count;
    struct {
        const char *name;
        const char *value;
    } list[HTTP_HEADERS_MAX];
    char texts[2][64]; /* values that are made up; the struct is not to be copied */
};

/* takes_packed: the request's path takes zstd frames. */
void http_headers_make(const struct http_reply *reply, const char *uri, bool takes_packed,
                       bool close_after, struct http_headers *out);

/* ---- request targets (RFC 9112, 3.2) ---- */

enum { HTTP_AUTHORITY_BYTES = 256 };

/* A target in absolute form, "http://HOST[:PORT]/PATH", as proxies send it: *path is where its path
 * and query begin ("/" where it has no path, in `root`), `authority` its HOST[:PORT], which counts
 * instead of the Host header. Others are left alone, and have no authority: "". BAD_INPUT. */
struct http_target {
    const char *path;
    char root[HTTP_URI_BYTES_MAX]; /* for the path where one has to be made up */
    char authority[HTTP_AUTHORITY_BYTES];
};
enum status http_target_split(const char *target, struct http_target *out, struct error *error);

/* Whether a Host header's value is one host, perhaps with a port, or nothing (RFC 9110, 7.2). */
bool http_host_is_plain(const char *host);

/* Headers of a request on where it comes from; NULL: it does not. */
struct http_origin {
    const char *host;
    const char *origin;
    const char *fetch_site; /* Sec-Fetch-Site */
};

/* STATUS_OK: no browser sent it, or one that shows this server's own page. `trusting`: whoever
 * reaches the server over TCP may do everything, so the name that it was reached by must be one
 * that no stranger's name server can point here (DNS rebinding): an address or localhost. */
enum status http_origin_check(const struct http_origin *origin, bool trusting, struct error *error);

#endif
