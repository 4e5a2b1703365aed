/*
 * Helpers of the HTTP tests: a temporary directory, listening sockets, requests byte by byte, and a
 * relay that loses answers on purpose.
 */
#ifndef SWERVE_TESTS_STORE_HTTP_HTTP_SUPPORT_H
#define SWERVE_TESTS_STORE_HTTP_HTTP_SUPPORT_H

#include <stdatomic.h>
#include <stddef.h>

/* A fresh directory, removed with everything in it at exit; static storage. */
const char *support_directory(void);

/* A listening Unix socket at `path` (short); aborts on failure. */
int support_listen(const char *path);

/* A connected Unix socket; aborts on failure. */
int support_connect(const char *path);

/* Sends the bytes, then reads until the peer closes or a whole reply with its body is there.
 * reply: terminated. Returns the HTTP code, 0 when the peer closed without one. */
int support_request(int fd, const char *bytes, size_t count, char *reply, size_t capacity);

/* "METHOD PATH" with a JSON or other body on a fresh connection. */
int support_call(const char *socket_path, const char *method, const char *path, const char *body,
                 char *reply, size_t capacity);

/* Relays connections to a server, one request at a time; the answers whose number (from 1, over all
 * connections) is in [lose_from, lose_from + lose_count) are dropped together with their
 * connection. */
struct support_relay;
struct support_relay *support_relay_start(const char *listen_path, const char *server_path,
                                          int lose_from, int lose_count);
int support_relay_answers(const struct support_relay *relay); /* seen so far */
void support_relay_stop(struct support_relay *relay);

#endif
