/*
 * Events: the overview of the store, sent to every browser that follows it, each time it has
 * changed (text/event-stream). One thread asks the store, once a second at most and only while
 * somebody follows; followers share its text. So a thousand of them cost the store as much as one,
 * and each costs the server a connection and its thread. Knows nothing of the HTTP library. Private
 * to the store room.
 *
 * The thread is a reader like others: it waits for its turn under a share of its own, asks on the
 * readers' connections, and rests twenty times as long as an answer took. A follower that does not
 * take what it is sent holds up nobody: the connections' watchdog ends it.
 *
 * Invariant: a text lives as long as it is the newest or a follower is in the middle of it.
 */
#ifndef SWERVE_STORE_SERVER_HTTP_EVENTS_H
#define SWERVE_STORE_SERVER_HTTP_EVENTS_H

#include "store/api/store.h"
#include "store/server/http_readers.h"
#include "store/server/tokens.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_FOLLOWERS_MAX = 512,
    HTTP_FOLLOWERS_TOKEN_MAX = 256, /* of one token */
    HTTP_EVENTS_PERIOD_MS = 1000,
    HTTP_EVENTS_REST_FACTOR = 20,
    HTTP_EVENTS_QUIET_MS = 15000, /* after which a follower gets a sign of life */
};

struct http_event_text;

struct http_events {
    struct store *store;
    struct http_readers *readers;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a new text, or the end: for followers */
    pthread_cond_t wanted;  /* somebody follows, or the end: for the thread */
    struct http_event_text *newest;
    uint64_t generation;
    uint32_t followers;
    uint16_t of_token[HTTP_READER_SHARES];
    bool stopping;
    bool started;
    pthread_t thread;
};

/* A browser that follows. */
struct http_follower {
    struct http_events *events;
    struct token_guard *guard; /* NULL: nobody is asked for a token */
    char token_id[TOKEN_ID_BYTES];
    uint32_t share;
    uint64_t seen;                /* generation of the text that it got last */
    struct http_event_text *text; /* that it is in the middle of */
    size_t sent;
};

enum status http_events_start(struct http_events *events, struct store *store,
                              struct http_readers *readers, struct error *error);
/* Followers' streams end soon after. */
void http_events_stop(struct http_events *events);
/* After stop, without followers left. Accepts one that was never started. */
void http_events_finish(struct http_events *events);

/* For as long as the token is live; guard and grant NULL: for anybody. BUSY: too many follow (*code
 * = 429: with this token). */
enum status http_events_follow(struct http_events *events, struct token_guard *guard,
                               const struct token *grant, struct http_follower **out, int *code,
                               struct error *error);
void http_events_leave(struct http_follower *follower); /* accepts NULL */

/* Whether a text is left to send without waiting. */
bool http_events_ready(struct http_follower *follower);
/* Up to `capacity` bytes of the stream; waits for them. 0: the stream is over. */
size_t http_events_read(struct http_follower *follower, char *out, size_t capacity);

#endif
