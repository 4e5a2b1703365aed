/*
 * One exchange of the HTTP client: building the path, sending JSON or bytes, and taking the reply
 * apart. Statuses are those of http_client.h. Private to the store room.
 */
#ifndef SWERVE_STORE_CLIENT_HTTP_CALL_H
#define SWERVE_STORE_CLIENT_HTTP_CALL_H

#include "store/client/http_transport.h"
#include "store/wire/http_wire.h"

struct http_path {
    char text[1536]; /* fits every path: identifiers are bounded */
};

/* A path with its query, made or gone on with: %s is a text that has been checked, percent-coded,
 * and %lld a long long; nothing else is known. */
void http_path_make(struct http_path *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void http_path_add(struct http_path *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Goes on to the query's next member, up to its value. */
void http_path_key(struct http_path *path, const char *key);

/* JSON both ways. `body` is taken over; NULL: memory ran out, or the method is GET. *root is the
 * caller's. */
enum status http_exchange_json(struct http_transport *transport, struct http_call *call,
                               json_t *body, json_t **root, struct error *error);
enum status http_ask(struct http_transport *transport, const char *method,
                     const struct http_path *path, json_t *body, json_t **root,
                     struct error *error);
enum status http_put_bytes(struct http_transport *transport, const struct http_path *path,
                           const void *data, size_t bytes, struct error *error);
/* The same as a zstd frame, where that is shorter. */
enum status http_put_packed(struct http_transport *transport, const struct http_path *path,
                            const void *data, size_t bytes, struct error *error);
/* *data is malloc'ed, terminated, the caller's. */
enum status http_get_bytes(struct http_transport *transport, const struct http_path *path,
                           size_t max, char **data, size_t *bytes, struct error *error);
/* The same from a server that may answer with a zstd frame. */
enum status http_get_packed(struct http_transport *transport, const struct http_path *path,
                            size_t max, void **data, size_t *bytes, struct error *error);
/* The one list, the one integer, or the one record that a reply is; consumes root. `path` is for
 * messages. A record is written on success only. */
enum status http_take_list(const char *path, json_t *root, const char *name,
                           const struct wire_codec *codec, void *records, size_t max,
                           uint32_t *count, struct error *error);
enum status http_take_integer(const char *path, json_t *root, const char *name, int64_t *out,
                              struct error *error);
enum status http_take_record(const char *path, json_t *root, const struct wire_codec *codec,
                             void *record, struct error *error);

#endif
