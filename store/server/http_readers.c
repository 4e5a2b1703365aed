/*
 * Turns for readers. See http_readers.h.
 */
#include "store/server/http_readers.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"

#include <errno.h>
#include <string.h>

void http_readers_init(struct http_readers *readers)
{
    memset(readers, 0, sizeof *readers);
    pthread_mutex_init(&readers->mutex, NULL);
}

void http_readers_finish(struct http_readers *readers)
{
    CHECK(readers->first == NULL && readers->running == 0);
    pthread_mutex_destroy(&readers->mutex);
}

/* ---- with the mutex held ---- */

static void grant(struct http_readers *readers, struct http_reader *reader)
{
    readers->running++;
    readers->shares[reader->share].running++;
    readers->shares[reader->share].served = ++readers->turns;
    reader->granted = true;
}

static void stop_waiting(struct http_readers *readers, struct http_reader *reader)
{
    struct http_reader **link = &readers->first;
    while (*link != reader) {
        link = &(*link)->next;
    }
    *link = reader->next;
    readers->shares[reader->share].waiting--;
}

static bool comes_before(const struct http_readers *readers, const struct http_reader *a,
                         const struct http_reader *b)
{
    uint32_t running_a = readers->shares[a->share].running;
    uint32_t running_b = readers->shares[b->share].running;
    return running_a != running_b
               ? running_a < running_b
               : readers->shares[a->share].served < readers->shares[b->share].served;
}

static void give_turns(struct http_readers *readers)
{
    while (readers->running < HTTP_READERS_RUNNING_MAX && readers->first != NULL &&
           !readers->stopping) {
        struct http_reader *best = readers->first;
        for (struct http_reader *each = best->next; each != NULL; each = each->next) {
            best = comes_before(readers, each, best) ? each : best;
        }
        stop_waiting(readers, best);
        grant(readers, best);
        pthread_cond_signal(&best->turn);
    }
}

static enum status refuse_stopping(struct error *error)
{
    return error_set(error, STATUS_BUSY, "the server is stopping, try again");
}

/* ---- waiting ---- */

/* Mutex held: until the reader has its turn. */
static enum status wait_for_turn(struct http_readers *readers, struct http_reader *reader,
                                 int64_t wait_ms, struct error *error)
{
    struct http_reader **link = &readers->first;
    struct timespec until = clock_moment_in(wait_ms * NS_PER_MS);
    bool late = false;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    reader->next = NULL;
    *link = reader;
    readers->shares[reader->share].waiting++;
    while (!reader->granted && !readers->stopping && !late) {
        late = pthread_cond_timedwait(&reader->turn, &readers->mutex, &until) == ETIMEDOUT;
    }
    if (reader->granted) {
        return STATUS_OK;
    }
    stop_waiting(readers, reader);
    return readers->stopping ? refuse_stopping(error)
                             : error_set(error, STATUS_BUSY,
                                         "more is asked of the server than it answers to readers: "
                                         "no turn within %lld ms, try again later",
                                         (long long)wait_ms);
}

enum status http_readers_enter(struct http_readers *readers, struct http_reader *reader,
                               const char *token, int64_t wait_ms, int *code, struct error *error)
{
    enum status status = STATUS_OK;
    uint64_t hash = text_hash(token);
    memset(reader, 0, sizeof *reader);
    reader->share = (uint32_t)((hash ^ hash >> 32) % HTTP_READER_SHARES);
    clock_condition_init(&reader->turn);
    pthread_mutex_lock(&readers->mutex);
    if (readers->stopping) {
        status = refuse_stopping(error);
    } else if (readers->running < HTTP_READERS_RUNNING_MAX) {
        grant(readers, reader); /* nobody waits */
    } else if (readers->shares[reader->share].waiting >= HTTP_READERS_WAITING_MAX) {
        *code = 429;
        status = error_set(error, STATUS_BUSY,
                           "%d questions with this token wait already, try again later",
                           HTTP_READERS_WAITING_MAX);
    } else {
        status = wait_for_turn(readers, reader, wait_ms, error);
    }
    pthread_mutex_unlock(&readers->mutex);
    if (status != STATUS_OK) {
        pthread_cond_destroy(&reader->turn);
    }
    return status;
}

void http_readers_leave(struct http_readers *readers, struct http_reader *reader)
{
    pthread_mutex_lock(&readers->mutex);
    readers->running--;
    readers->shares[reader->share].running--;
    give_turns(readers);
    pthread_mutex_unlock(&readers->mutex);
    pthread_cond_destroy(&reader->turn);
}

void http_readers_stop(struct http_readers *readers)
{
    pthread_mutex_lock(&readers->mutex);
    readers->stopping = true;
    for (struct http_reader *each = readers->first; each != NULL; each = each->next) {
        pthread_cond_signal(&each->turn);
    }
    pthread_mutex_unlock(&readers->mutex);
}
