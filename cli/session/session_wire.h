/*
 * A WebSocket (RFC 6455) on the server's side: text messages in, texts and frames out, bounded both
 * ways. One thread runs it; others may hand it what is to be sent.
 *
 * Of frames the newest one alone is kept, so a reader that is slow sees fewer of them and never old
 * ones. Texts are answers: a reader that leaves more than WIRE_TEXTS_MAX unread is cut off.
 */
#ifndef SWERVE_CLI_SESSION_SESSION_WIRE_H
#define SWERVE_CLI_SESSION_SESSION_WIRE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_MESSAGE_BYTES = 4096, /* of a client, at most */
    WIRE_TEXTS_MAX = 32,
    WIRE_PING_MS = 10000,
    WIRE_SILENCE_MS = 30000, /* after which a client that answers no ping is gone */
};

struct wire;

/* A whole text message of the client; from the thread that runs the wire. */
typedef void wire_message(void *context, const char *text, size_t bytes);

/* Owns the connected socket from now on. `begin` are bytes that were read of it already. */
enum status wire_create(int fd, const void *begin, size_t begin_bytes, wire_message *message,
                        void *context, struct wire **out, struct error *error);
void wire_destroy(struct wire *wire); /* accepts NULL; closes nothing but what it made itself */

/* Returns when the client has gone, breaks the protocol, or wire_stop() was called; then a close
 * frame has been sent, where the client takes it within a second: 1001 stopped, 1002 protocol, 1003
 * bytes instead of text, 1008 a client that reads or answers nothing, 1009 too long. */
void wire_run(struct wire *wire);
void wire_stop(struct wire *wire);

/* Takes a malloc'ed text, NULL: out of memory, which ends the wire. */
void wire_say(struct wire *wire, char *text);
/* The newest frame: a malloc'ed text, taken, and a binary message behind it, copied. */
void wire_show(struct wire *wire, char *text, const uint8_t *bytes, size_t count);

#endif
