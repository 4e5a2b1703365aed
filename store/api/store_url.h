/*
 * Which backend a store's URL names. One place decides it, for whoever opens a store and whoever
 * only wants to know whether there are files.
 *
 * The known schemes are addresses; everything else is a path, colons and all. A path that nobody
 * means is refused: one that looks like an address without its scheme, where no such file is.
 */
#ifndef SWERVE_STORE_API_STORE_URL_H
#define SWERVE_STORE_API_STORE_URL_H

#include "base/status.h"

#include <stdbool.h>

enum store_url_kind {
    STORE_URL_PATH = 0,
    STORE_URL_HTTP, /* http://, https:// */
    STORE_URL_UNIX, /* unix:PATH.sock */
    STORE_URL_POSTGRES,
};

/* USAGE: a scheme that is not known, or "HOST:PORT" or "http:HOST", which the sentence puts right.
 */
enum status store_url_kind(const char *url, enum store_url_kind *out, struct error *error);

/* Whether it is a path; false too where store_url_kind refuses it. */
bool store_url_is_path(const char *url);
/* Whether others answer for it, who may be on another machine. */
bool store_url_is_http(const char *url);

#endif
