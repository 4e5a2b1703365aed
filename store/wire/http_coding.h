/*
 * Content codings: which form a body comes in, and which forms a client takes (RFC 9110, 8.4.1 and
 * 12.5.3). Artifacts travel as they are or as zstd frames, everything else as it is.
 * Private to the store room.
 */
#ifndef SWERVE_STORE_WIRE_HTTP_CODING_H
#define SWERVE_STORE_WIRE_HTTP_CODING_H

#include <stdbool.h>

enum http_coding { HTTP_CODING_IDENTITY = 0, HTTP_CODING_ZSTD, HTTP_CODING_OTHER };

/* Of a Content-Encoding header; NULL: there is none. */
enum http_coding http_coding_of(const char *value);

/* Whether an Accept-Encoding header names zstd; NULL: there is none. */
bool http_coding_accepted(const char *value);

#endif
