/*
 * Messages that a client and the server of sessions say to each other, in JSON: one session a
 * connection. docs/interactive.md has the messages.
 */
#ifndef SWERVE_CLI_SESSION_SESSION_TALK_H
#define SWERVE_CLI_SESSION_SESSION_TALK_H

#include "base/websocket/wire.h"
#include "cli/session/session_memory.h"
#include "worker/interactive/interactive.h"

/* Deadline of hardware that asks for no other. */
#define TALK_HARDWARE_LIMIT_MS 40.0

struct talk;

struct talk_options {
    struct interactive *pool; /* borrowed */
    const char *world;
    const char *models;   /* folder that was named for them; NULL: none */
    const char *previous; /* name of the model that takes over; NULL: none */
    const char *device;   /* as --device named it; NULL: nobody did */
    const char *folder;   /* that saved scenarios are written to */
    bool keeps;           /* sessions, which can be taken up */
    /* The client is hardware, which finds its cameras in this memory and is shown no windscreen;
     * borrowed, outlives the talk. NULL: pictures are sent behind each frame. */
    struct session_memory *memory;
};

/* Messages of a client are to be given to talk_message() with the talk as context, one at a time,
 * once it is attached to a lane, which it is destroyed before. tenant: whose the client is, of at
 * most LIMIT_ID_BYTES - 1 bytes; copied; "": nobody's. LIMIT. */
enum status talk_create(const struct talk_options *options, const char *tenant, struct talk **out,
                        struct error *error);
void talk_attach(struct talk *talk, struct lane *lane); /* and greets the client */
wire_message talk_message;
/* Name under which its session is kept, borrowed until the next message; "": it is not. */
const char *talk_kept(const struct talk *talk);
/* malloc'ed: that name, and where another worker can go on with the session a line feed and what
 * talk_take_up() wants there. NULL: out of memory. */
char *talk_state(const struct talk *talk);
/* In place of talk_attach(): the session of that name goes on as another worker's talk said of it,
 * and its client is told "moved" where it was in the midst of it. Waits for its way there. BUSY,
 * NOT_FOUND, BAD_INPUT: nothing is said. */
enum status talk_take_up(struct talk *talk, struct lane *lane, const char *name, const char *state,
                         struct error *error);
void talk_destroy(struct talk *talk); /* accepts NULL */

#endif
