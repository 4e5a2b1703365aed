/*
 * Luggage of a relayed session. See carried.h.
 */
#include "store/relay/carried.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

static void drop_first(struct carried *carried)
{
    free(carried->messages[carried->first]);
    carried->messages[carried->first] = NULL;
    carried->first = (carried->first + 1) % ENVELOPE_AHEAD;
    carried->count--;
}

void carried_finish(struct carried *carried)
{
    while (carried->count > 0) {
        drop_first(carried);
    }
    free(carried->state);
    carried->state = NULL;
}

bool carried_has_room(const struct carried *carried)
{
    return carried->count < ENVELOPE_AHEAD;
}

enum status carried_send(struct carried *carried, const char *text, size_t bytes,
                         struct error *error)
{
    CHECK(carried_has_room(carried));
    char *copy = strndup(text, bytes);
    TRY(memory_check(copy, error, "session: out of memory"));
    carried->messages[(carried->first + carried->count++) % ENVELOPE_AHEAD] = copy;
    return STATUS_OK;
}

enum status carried_take(struct carried *carried, const char *text, size_t bytes,
                         struct error *error)
{
    const char *end = bytes > 0 ? memchr(text, '\n', bytes) : NULL;
    size_t name_bytes = end != NULL ? (size_t)(end - text) : bytes;
    size_t state_bytes = end != NULL ? bytes - name_bytes - 1 : 0;
    char *state = NULL;
    if (name_bytes >= sizeof carried->kept || state_bytes > CARRIED_STATE_BYTES) {
        return error_set(error, STATUS_LIMIT,
                         "the name of a session of %zu bytes with a state of %zu, expected at most "
                         "%zu and %d",
                         name_bytes, state_bytes, sizeof carried->kept - 1, CARRIED_STATE_BYTES);
    }
    if (end != NULL && name_bytes > 0) {
        state = strndup(end + 1, state_bytes);
        TRY(memory_check(state, error, "session: out of memory"));
    }
    free(carried->state);
    carried->state = state;
    memset(carried->kept, 0, sizeof carried->kept);
    if (name_bytes > 0) {
        memcpy(carried->kept, text, name_bytes);
    }
    if (carried->count > 0) {
        drop_first(carried);
    }
    return STATUS_OK;
}

const char *carried_message(const struct carried *carried, uint32_t index)
{
    CHECK(index < carried->count);
    return carried->messages[(carried->first + index) % ENVELOPE_AHEAD];
}

void carried_show(struct carried *carried)
{
    if (carried->frames < CARRIED_MOVE_FRAMES && ++carried->frames == CARRIED_MOVE_FRAMES) {
        carried->moves = 0;
    }
}

bool carried_may_move(const struct carried *carried, bool answered)
{
    bool soon = answered && carried->moves > 0 && carried->frames < CARRIED_FRAMES_BETWEEN;
    return carried->state != NULL && carried->moves < CARRIED_MOVES_MAX && !soon;
}

void carried_move(struct carried *carried)
{
    carried->moves++;
    carried->frames = 0;
}
