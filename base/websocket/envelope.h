/*
 * Envelopes: what a relay and a worker say to each other, one a binary message. Who relays reads
 * the head alone: whose session it is, and how long its text is; bytes of a frame fill the rest.
 *
 *     session   8 bytes  a number that the relay gives once; 0: the worker itself
 *     kind      4        enum envelope_kind
 *     text      4        bytes of the text, which follows; then the frame's
 *
 * Numbers are little-endian. Texts are UTF-8 without NUL.
 */
#ifndef SWERVE_BASE_WEBSOCKET_ENVELOPE_H
#define SWERVE_BASE_WEBSOCKET_ENVELOPE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ENVELOPE_HEAD_BYTES = 16,
    ENVELOPE_TEXT_BYTES = 256 << 10, /* of a text that is relayed */
    ENVELOPE_BYTES_MAX = 4 << 20, /* of a worker, with the head; what it was asked for included */
    ENVELOPE_AHEAD = 8,           /* messages of a session that its worker has not taken */
};

enum envelope_kind {
    ENVELOPE_ATTACH = 1, /* worker, session 0: who it is and what it has, in JSON */
    ENVELOPE_OPEN,       /* relay: somebody wants a session; the text is the tenant, "": nobody's */
    ENVELOPE_SAY,        /* a message of a client, or an answer to one; worker, session 0: how many
                            sessions it has time for in all, in digits */
    ENVELOPE_SHOW,       /* worker: a frame; session 0: its ticks since it told of them last, a
                            document of store/relay/ticks.h */
    ENVELOPE_TAKEN,      /* worker: one more message of the client is obeyed; the text is the name
                            under which its session is kept, "": it is not; after ENVELOPE_GO_ON
                            with a line feed and its state behind it. Session 0: it takes up
                            sessions of workers that say the same text */
    ENVELOPE_ASK,        /* relay: the document of that scenario, for ENVELOPE_SAY .. */
    ENVELOPE_CLOSE, /* .. or this with why not; worker: nor is there room; relay: it has gone */
    ENVELOPE_GO_ON, /* relay, to a worker that takes up sessions: as ENVELOPE_OPEN; with a line feed
                       and what ENVELOPE_TAKEN told behind it, the session that is to go on */
    ENVELOPE_KINDS
};

struct envelope {
    uint64_t session;
    enum envelope_kind kind;
    const char *text; /* not terminated; borrowed from what was read */
    size_t text_bytes;
    const uint8_t *bytes;
    size_t byte_count;
};

/* BAD_INPUT: it is none, or bytes follow the text of another kind than ENVELOPE_SHOW. */
enum status envelope_read(const void *data, size_t bytes, struct envelope *out,
                          struct error *error);
/* malloc'ed, of *bytes; NULL: out of memory. */
void *envelope_make(const struct envelope *envelope, size_t *bytes);
/* Its text, malloc'ed and terminated; NULL: out of memory. */
char *envelope_text(const struct envelope *envelope);

#endif
