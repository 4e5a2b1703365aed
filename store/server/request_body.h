/*
 * The body of one request on its way in: counted as it arrives, kept in memory within what all
 * requests may hold together, or, for an artifact, passed on to the disk piece by piece. Knows
 * nothing of the HTTP library. Private to the store room.
 *
 * Invariant: the budget holds exactly the capacities of the bodies that are not finished.
 */
#ifndef SWERVE_STORE_SERVER_REQUEST_BODY_H
#define SWERVE_STORE_SERVER_REQUEST_BODY_H

#include "store/api/store.h"
#include "store/artifacts/artifacts.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes that all requests of a server hold together. */
struct http_budget {
    atomic_size_t bytes;   /* bodies and replies in memory */
    atomic_size_t uploads; /* artifacts on their way in */
    atomic_size_t downloads;
    atomic_size_t reader_bytes; /* of `bytes`, answers to those who only read */
    atomic_size_t reader_downloads;
};

/* False: it would be more than `max`, nothing was taken. */
bool http_budget_take(atomic_size_t *used, size_t count, size_t max);

/* An artifact on its way out; `reader`: to one who only reads. False: too many are. */
bool http_download_take(struct http_budget *budget, bool reader);
void http_download_give(struct http_budget *budget, bool reader);

struct request_body {
    struct http_budget *budget;
    bool refused; /* `error` answers the request; the body is discarded */
    int code;     /* of the answer, where the error's status does not decide it; 0: it does */
    struct error error;
    size_t body_max;
    size_t received_bytes;
    char *body; /* terminated when there is any */
    size_t body_bytes;
    size_t capacity;
    struct artifact_writer *writer; /* where the body goes; NULL: into memory */
};

void request_body_refuse(struct request_body *request_body, enum status status, int code,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The body goes to the store's disk; packed: it is a zstd frame. */
void request_body_stream(struct request_body *request_body, struct store *store, size_t bytes,
                         bool packed);

/* A refused body of this length is short enough to be read and dropped, so that the connection can
 * go on. */
bool request_body_worth_reading(const struct request_body *request_body, unsigned long long bytes);

/* Takes a piece. A refused body is dropped, so that the client gets to see the answer, but not
 * without end: false, the connection is to be cut. */
bool request_body_take(struct request_body *request_body, const char *data, size_t bytes);

/* Frees the body or gives up the upload. */
void request_body_finish(struct request_body *request_body);

/* The writer of a complete upload, which is the caller's from here on. */
struct artifact_writer *request_body_release(struct request_body *request_body);

#endif
