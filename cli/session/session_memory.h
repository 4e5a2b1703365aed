/*
 * Pictures of a session in memory that its client maps: the planner protocol turned round. There a
 * planner that Swerve starts finds the sensors of its question in a slot; here a client that comes
 * to a session finds those of a frame in one. The slots are those of version 4
 * (worker/wire/planner_wire.h), with the cameras of the built-in rig.
 *
 * The client cannot write it, and nothing is read from it, so whatever a client does to it is its
 * own affair. Nobody waits for a reader: a slot is written again SESSION_MEMORY_SLOTS frames later,
 * and says by numbers before and behind its bytes of which frame they are.
 */
#ifndef SWERVE_CLI_SESSION_SESSION_MEMORY_H
#define SWERVE_CLI_SESSION_SESSION_MEMORY_H

#include "worker/interactive/interactive.h"

enum { SESSION_MEMORY_SLOTS = 4, SESSION_MEMORY_VERSION = 1 };

/* First bytes of a connection, with which the memory's descriptor comes (SCM_RIGHTS). */
struct session_memory_greeting {
    char magic[8]; /* "swervehw" */
    uint32_t version;
    uint32_t slot_count;
    uint64_t slot_bytes; /* slot k begins at k * slot_bytes; a multiple of a page */
};

/* Begins a slot; a page behind its beginning stands the slot of the planner protocol. A reader that
 * finds the frame's number in both after it has copied what it wants has that frame's bytes. */
struct session_memory_slot {
    uint64_t begun; /* number of the frame that is being written, or was last */
    uint64_t ended; /* .. of which all bytes are there */
};

struct session_memory;

/* NO_MEMORY, IO. */
enum status session_memory_create(struct session_memory **out, struct error *error);
void session_memory_destroy(struct session_memory *memory); /* accepts NULL */

/* Sends greeting and descriptor over a Unix socket on which nothing was sent yet. IO. */
enum status session_memory_greet(const struct session_memory *memory, int fd, struct error *error);

/* Writes a frame's cameras into the next slot; returns its number, from 1 on: it is in slot
 * number % SESSION_MEMORY_SLOTS. One call at a time. */
uint64_t session_memory_put(struct session_memory *memory, const struct interactive_frame *frame);

#endif
