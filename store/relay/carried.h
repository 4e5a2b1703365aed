/*
 * Luggage of a relayed session: with it another worker goes on when its own has gone. It holds what
 * that worker told last of itself, the client's messages that it had not taken, and how often the
 * session has moved. Nothing of it is read: a state is of workers alone.
 *
 * It is bounded: CARRIED_STATE_BYTES, and ENVELOPE_AHEAD messages of a client. So is what a session
 * may do to workers that die of it (carried_may_move()).
 *
 * One thread at a time. Private to the relay.
 */
#ifndef SWERVE_STORE_RELAY_CARRIED_H
#define SWERVE_STORE_RELAY_CARRIED_H

#include "base/websocket/envelope.h"
#include "schemas/limits.h"

#include <stdbool.h>

enum {
    CARRIED_STATE_BYTES = 1024,
    /* Frames that a session shows before its moves count no more: a minute at 10 Hz. */
    CARRIED_MOVE_FRAMES = 600,
    CARRIED_MOVES_MAX = 2,      /* until then .. */
    CARRIED_FRAMES_BETWEEN = 20 /* .. and frames that it shows between them */
};

/* Zeros are one of a session that nobody keeps. */
struct carried {
    char kept[LIMIT_ID_BYTES];      /* name under which the session is kept; "": it is not */
    char *state;                    /* behind the name; owned; NULL: no other could go on */
    char *messages[ENVELOPE_AHEAD]; /* that were sent and are not taken; owned */
    uint32_t first, count;          /* of these */
    uint32_t moves;                 /* since the session last showed CARRIED_MOVE_FRAMES */
    uint32_t frames;                /* since it last moved */
};

void carried_finish(struct carried *carried);

/* Whether one more message may be sent. */
bool carried_has_room(const struct carried *carried);
/* A message that is sent; copied. NO_MEMORY. There is room. */
enum status carried_send(struct carried *carried, const char *text, size_t bytes,
                         struct error *error);
/* The first of them is taken. Text of ENVELOPE_TAKEN: a name, and with a line feed between them a
 * state. LIMIT, NO_MEMORY. */
enum status carried_take(struct carried *carried, const char *text, size_t bytes,
                         struct error *error);
/* The message `index` < count that is not taken, the oldest first; borrowed. */
const char *carried_message(const struct carried *carried, uint32_t index);

/* One more frame is shown. */
void carried_show(struct carried *carried);
/* Whether the session, whose worker has gone, may be given to another: it is kept with a state, and
 * did not move CARRIED_MOVES_MAX times, nor, where something came of that worker, less than
 * CARRIED_FRAMES_BETWEEN frames ago. So one of which workers die ends few of them, and who was
 * asked as its machine went, with the worker before, does not count for more than one. */
bool carried_may_move(const struct carried *carried, bool answered);
/* It is given to another. */
void carried_move(struct carried *carried);

#endif
