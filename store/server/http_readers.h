/*
 * Readers: requests of those who only read, and how many of them are answered at one time. What
 * workers and submitters ask never passes here, so no number of readers holds them up.
 *
 * A reader waits for its turn. Turns go to the token with the fewest readers in progress, then to
 * the one that was longest without a turn, so that one token's crowd delays itself and not
 * another's single question. Nobody waits for longer than the limit, and of one token no more than
 * a few wait: the others are told to come again. Thread-safe. Private to the store room.
 *
 * Invariant: running <= HTTP_READERS_RUNNING_MAX, and a reader waits only while that many run.
 */
#ifndef SWERVE_STORE_SERVER_HTTP_READERS_H
#define SWERVE_STORE_SERVER_HTTP_READERS_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    HTTP_READERS_RUNNING_MAX = 4,
    HTTP_READERS_WAITING_MAX = 256, /* of one token */
    HTTP_READER_WAIT_MS = 5000,
    HTTP_READER_SHARES = 1024, /* tokens are told apart by a hash of this many values */
};

/* One reader in progress or waiting; lives on the stack of the thread that serves it. */
struct http_reader {
    uint32_t share;
    bool granted;
    pthread_cond_t turn;
    struct http_reader *next; /* that waits, in order of arrival */
};

struct http_readers {
    pthread_mutex_t mutex;
    struct http_reader *first; /* that waits */
    uint32_t running;
    uint64_t turns; /* given so far */
    bool stopping;
    struct {
        uint32_t running;
        uint32_t waiting;
        uint64_t served; /* its last turn */
    } shares[HTTP_READER_SHARES];
};

void http_readers_init(struct http_readers *readers);
void http_readers_finish(struct http_readers *readers);

/* Waits for a turn of this token ("": no tokens are asked for). BUSY: none came within wait_ms, the
 * server is stopping, or (*code = 429) the token has too many readers that wait. On OK, leave. */
enum status http_readers_enter(struct http_readers *readers, struct http_reader *reader,
                               const char *token, int64_t wait_ms, int *code, struct error *error);
void http_readers_leave(struct http_readers *readers, struct http_reader *reader);

/* From here on nobody gets a turn; those that wait are told now. */
void http_readers_stop(struct http_readers *readers);

#endif
