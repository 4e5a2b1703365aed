/*
 * Link: a struct store in front of one that may go away. Every call is repeated until it is
 * answered or a deadline passes; whoever answers next may be another process, or this one.
 *
 * All calls but the claim may simply be repeated (store.h). A claim whose answer was lost may have
 * leased jobs to a worker that does not know of them, and whose heartbeats would keep them for
 * ever. So the link keeps the list of what each worker was given and has not completed; after a
 * lost answer it first asks what the worker holds, and hands over what is missing in that list as
 * the result of the claim. A claim that the server calls stale counts as lost, too: it may have
 * come twice, and the refusal be the answer to the second. Claims of one worker are therefore
 * served one after the other.
 *
 * After a lost answer `existed` of a submit and the count of a cancel tell what the repetition
 * found, which includes what the lost call did. Private to the store room.
 */
#ifndef SWERVE_STORE_CLIENT_RETRY_H
#define SWERVE_STORE_CLIENT_RETRY_H

#include "store/api/store.h"

enum { RETRY_DEADLINE_MS = 30000 };

/* How a link waits between tries, for simulations. */
struct retry_pace {
    const struct clock *clock;
    void (*pause)(void *context, int64_t ns);
    void *context;
    uint64_t seed; /* of the jitter */
};

/* Where calls go. Thread-safe. */
struct retry_source {
    /* The face to use now. `lost`: the last one did not answer, look again. HTTP_UNREACHED: nobody
     * yet, ask again; other statuses end the call. The face lives until close. */
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
