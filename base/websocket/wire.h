/*
 * A WebSocket (RFC 6455) over a connection that stands, on either side of it: messages in, texts
 * and frames out, bounded both ways. One thread runs it; others may hand it what is to be sent.
 *
 * What is sent goes by lanes. Most wires have one, whose texts and frames are messages of their
 * own; a wire between a relay and a worker has one for each session, whose messages are envelopes
 * (base/websocket/envelope.h). Of a lane's frames the newest one alone is kept, so a reader that is
 * slow sees fewer of them and never old ones. Texts are answers: a reader that leaves more than
 * WIRE_TEXTS_MAX of a lane unread is cut off.
 */
#ifndef SWERVE_BASE_WEBSOCKET_WIRE_H
#define SWERVE_BASE_WEBSOCKET_WIRE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    WIRE_MESSAGE_BYTES = 4096, /* of a client, at most */
    WIRE_TEXTS_MAX = 32,
    WIRE_PING_MS = 10000,
    WIRE_SILENCE_MS = 30000, /* after which somebody who answers no ping is gone */
    WIRE_LOOK_MS = 1000,     /* between looks of whoever asked for them */
};

/* Close codes of a wire that is stopped. */
enum wire_code {
    WIRE_GOES_AWAY = 1001,
    WIRE_WRONG = 1002,  /* what was sent breaks the protocol */
    WIRE_UNREAD = 1008, /* answers that nobody takes */
    WIRE_TOO_LONG = 1009,
    WIRE_FAILED = 1011,
    WIRE_TRY_AGAIN = 1012, /* who was behind this side has gone; another may be there */
    WIRE_MAY_NOT = 3000,   /* somebody who may not be here any more (IANA: unauthorized) */
};

struct wire;
struct lane;

/* A whole message of the other side; from the thread that runs the wire. */
typedef void wire_message(void *context, const char *text, size_t bytes);

struct wire_options {
    int fd; /* connected; what it belongs to closes it */
    /* As recv() and send(), where bytes do not travel by the descriptor itself; NULL: they do. */
    ssize_t (*receive)(void *end, void *out, size_t capacity);
    ssize_t (*send)(void *end, const void *data, size_t bytes);
    void *end;
    bool client;       /* masks what it sends */
    const void *begin; /* bytes that were read of it already; copied */
    size_t begin_bytes;
    size_t message_max;     /* bytes of a message that is taken */
    wire_message *message;  /* a text; NULL: the wire has envelopes .. */
    wire_message *envelope; /* .. whose bytes come here */
    /* Called by the thread that runs it every WIRE_LOOK_MS, whatever passes; NULL: it is not. */
    void (*look)(void *context);
    void *context;
};

enum status wire_create(const struct wire_options *options, struct wire **out, struct error *error);
void wire_destroy(struct wire *wire); /* accepts NULL; closes nothing but what it made itself */

/* Returns when the other side has gone, breaks the protocol, or wire_stop() was called; then a
 * close frame has been sent, where it is taken within a second: 1001 stopped, 1002 protocol, 1003
 * bytes instead of text, 1008 one that reads or answers nothing, 1009 too long. */
void wire_run(struct wire *wire);
/* The same in a thread of its own, which takes no signals and calls `ended` last. False: there is
 * none. */
bool wire_start(struct wire *wire, void (*ended)(void *context), void *context);
/* Ends it when what is said already is sent; the first code counts. */
void wire_stop(struct wire *wire, enum wire_code code);

/* ---- lanes ---- */

/* The lane of a wire of texts. */
struct lane *wire_lane(struct wire *wire);
/* A lane of a wire of envelopes, which ends with the wire unless it is closed before. */
enum status lane_open(struct wire *wire, uint64_t session, struct lane **out, struct error *error);
/* Forgets what it has not sent; an envelope of that kind is its last (0: none), with a malloc'ed
 * text, taken. Accepts NULL as a lane, of kind 0. */
void lane_close(struct lane *lane, uint32_t kind, char *text);

/* Sends nothing of the lane until it is let go: answers to a message go before the frames that came
 * of it, also where another thread than the wire's obeys it. */
void lane_hold(struct lane *lane, bool held);

/* Takes a malloc'ed text, NULL: out of memory, which ends the wire. */
void wire_say(struct lane *lane, char *text);
/* The same in an envelope of another kind than ENVELOPE_SAY. */
void wire_put(struct lane *lane, uint32_t kind, char *text);
/* The newest frame: a malloc'ed text, taken, and a binary message behind it, copied. */
void wire_show(struct lane *lane, char *text, const uint8_t *bytes, size_t count);

#endif
