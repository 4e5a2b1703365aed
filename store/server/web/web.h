/*
 * The dashboard's page: HTML, style and scripts as they are sent to a browser, compiled into the
 * binary. They hold no data; the page fetches it from the API with the token that its user types
 * in. A room of its own: knows neither the store nor HTTP.
 */
#ifndef SWERVE_STORE_SERVER_WEB_WEB_H
#define SWERVE_STORE_SERVER_WEB_WEB_H

#include <stddef.h>

/* Rights of a browser with the page: run its own scripts and styles, speak with its own server,
 * show pictures that its scripts have made. No inline script, no other host, in nobody's frame. */
#define WEB_POLICY                                                                  \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
    "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; "             \
    "frame-ancestors 'none'"

enum web_kind { WEB_HTML = 0, WEB_SCRIPT, WEB_STYLE, WEB_KIND_COUNT };

struct web_file {
    const char *text; /* terminated, static */
    size_t bytes;
    enum web_kind kind;
};

/* The file of this name, "" the page itself; NULL text: there is none. */
struct web_file web_file_find(const char *name);

#endif
