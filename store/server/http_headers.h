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
