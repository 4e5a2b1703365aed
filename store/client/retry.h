/*
 * Link: a struct store in front of one that may go away. Every call is repeated until it is
 * answered or a deadline passes; whoever answers next may be another process, or this one.
 *
 * All calls may simply be repeated (store.h), a claim under its id.
 *
 * After a lost answer `existed` of a submit and the count of a cancel tell what the repetition
 * found, which includes what the lost call did. Private to the store room.
 */
#ifndef SWERVE_STORE_CLIENT_RETRY_H
#define SWERVE_STORE_CLIENT_RETRY_H

#include "store/api/store.h"

enum { RETRY_DEADLINE_MS = 30000 };

/* Function by which a link waits between tries, for simulations. */
struct retry_pace {
    const struct clock *clock;
    void (*pause)(void *context, int64_t ns);
    void *context;
    uint64_t seed; /* of the jitter */
};

/* Destination of calls. Thread-safe. */
struct retry_source {
    /* The backend to use now. `lost`: the last one did not answer, look again. HTTP_UNREACHED:
     * nobody yet, ask again; other statuses end the call. The backend lives until close. */
    enum status (*locate)(void *context, bool lost, struct store **inner, struct error *error);
    /* A short text that names the other side, for messages. */
    void (*describe)(void *context, char *text, size_t capacity);
    void (*close)(void *context);
    void *context;
    const atomic_bool *stop;       /* set: claims come back with what they have; NULL: never */
    const struct retry_pace *pace; /* borrowed until close; NULL: the system's clock, sleep */
};

/* Takes over the source, on failure too. deadline_ms: how long a call goes on unanswered. */
enum status retry_create(const struct retry_source *source, int64_t deadline_ms, struct store **out,
                         struct error *error);

#endif
