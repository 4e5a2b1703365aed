/*
 * Events and who follows them. See http_events.h.
 */
#include "store/server/http_events.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "schemas/json_record.h"
#include "store/server/http_handlers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct http_event_text {
    uint32_t uses; /* by followers, and one as the newest */
    size_t bytes;
    char data[];
};

/* With the mutex held. */
static void drop(struct http_event_text *text)
{
    if (text != NULL && --text->uses == 0) {
        free(text);
    }
}

/* Mutex held: until the condition is signalled or that moment has come; true: it has come. The
 * clock says so and not the wait, which a storm of signals ends every time. */
static bool wait_until(struct http_events *events, pthread_cond_t *condition,
                       const struct timespec *moment)
{
    pthread_cond_timedwait(condition, &events->mutex, moment);
    return clock_monotonic_ns() >= moment->tv_sec * NS_PER_S + moment->tv_nsec;
}

/* ---- the thread that asks ---- */

/* The overview as an event; NULL: the store or memory did not give it this time. */
static struct http_event_text *make_text(struct http_events *events)
{
    struct error error;
    struct http_reader reader;
    json_t *overview = NULL;
    int code = 0;
    struct store *store = events->store;
    if (store->ops->reading != NULL) {
        store = store->ops->reading(store);
    }
    if (http_readers_enter(events->readers, &reader, "the events", HTTP_READER_WAIT_MS, &code,
                           &error) != STATUS_OK) {
        return NULL;
    }
    enum status status = http_overview(store, "", HTTP_OVERVIEW_SUITES, &overview, &error);
    http_readers_leave(events->readers, &reader);
    char *json = status == STATUS_OK ? json_compact_text(overview) : NULL;
    json_decref(status == STATUS_OK ? overview : NULL);
    size_t capacity = json != NULL ? strlen(json) + sizeof "data: \n\n" : 0;
    struct http_event_text *text = json != NULL ? malloc(sizeof *text + capacity) : NULL;
    if (text != NULL) {
        text->uses = 1;
        text->bytes = (size_t)snprintf(text->data, capacity, "data: %s\n\n", json);
    }
    free(json);
    return text;
}

/* Mutex held: the text becomes the newest, unless it says the same. */
static void publish(struct http_events *events, struct http_event_text *text)
{
    const struct http_event_text *newest = events->newest;
    if (newest != NULL && newest->bytes == text->bytes &&
        memcmp(newest->data, text->data, text->bytes) == 0) {
        free(text);
        return;
    }
    drop(events->newest);
    events->newest = text;
    events->generation++;
    pthread_cond_broadcast(&events->changed);
}

static void *ask_again_and_again(void *context)
{
    struct http_events *events = context;
    pthread_mutex_lock(&events->mutex);
    while (!events->stopping) {
        if (events->followers == 0) {
            pthread_cond_wait(&events->wanted, &events->mutex);
            continue;
        }
        pthread_mutex_unlock(&events->mutex);
        int64_t start_ns = clock_now_ns(clock_system());
        struct http_event_text *text = make_text(events);
        int64_t took_ms = (clock_now_ns(clock_system()) - start_ns) / NS_PER_MS;
        pthread_mutex_lock(&events->mutex);
        if (text != NULL) {
            publish(events, text);
        }
        int64_t rest_ms = took_ms * HTTP_EVENTS_REST_FACTOR;
        rest_ms = rest_ms > HTTP_EVENTS_PERIOD_MS ? rest_ms : HTTP_EVENTS_PERIOD_MS;
        /* One moment, however many come meanwhile: for them the newest text is good enough. */
        struct timespec next = clock_moment_in(rest_ms * NS_PER_MS);
        while (!events->stopping && !wait_until(events, &events->wanted, &next)) {
        }
    }
    pthread_mutex_unlock(&events->mutex);
    return NULL;
}

enum status http_events_start(struct http_events *events, struct store *store,
                              struct http_readers *readers, struct error *error)
{
    sigset_t all;
    sigset_t before;
    memset(events, 0, sizeof *events);
    events->store = store;
    events->readers = readers;
    clock_condition_init(&events->changed);
    clock_condition_init(&events->wanted);
    pthread_mutex_init(&events->mutex, NULL);
    /* Signals belong to the program's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int reason = pthread_create(&events->thread, NULL, ask_again_and_again, events);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    events->started = true;
    if (reason != 0) {
        events->stopping = true;
        events->thread = pthread_self();
        http_events_finish(events);
        return error_set(error, STATUS_NO_MEMORY, "cannot start the server's events: %s",
                         strerror(reason));
    }
    return STATUS_OK;
}

void http_events_stop(struct http_events *events)
{
    pthread_mutex_lock(&events->mutex);
    events->stopping = true;
    pthread_cond_broadcast(&events->changed);
    pthread_cond_broadcast(&events->wanted);
    pthread_mutex_unlock(&events->mutex);
}

void http_events_finish(struct http_events *events)
{
    if (!events->started) {
        return;
    }
    CHECK(events->stopping && events->followers == 0);
    if (!pthread_equal(events->thread, pthread_self())) {
        pthread_join(events->thread, NULL);
    }
    drop(events->newest);
    events->newest = NULL;
    events->started = false;
    pthread_cond_destroy(&events->changed);
    pthread_cond_destroy(&events->wanted);
    pthread_mutex_destroy(&events->mutex);
}

/* ---- those who follow ---- */

enum status http_events_follow(struct http_events *events, struct token_guard *guard,
                               const struct token *grant, struct http_follower **out, int *code,
                               struct error *error)
{
    enum status status = STATUS_OK;
    uint64_t hash = text_hash(grant != NULL ? grant->name : "");
    struct http_follower *follower = calloc(1, sizeof *follower);
    TRY(memory_check(follower, error, "events: out of memory"));
    follower->events = events;
    if (guard != NULL && grant != NULL) {
        follower->guard = guard;
        memcpy(follower->token_id, grant->id, sizeof follower->token_id);
    }
    follower->share = (uint32_t)((hash ^ hash >> 32) % HTTP_READER_SHARES);
    pthread_mutex_lock(&events->mutex);
    if (events->stopping) {
        status = error_set(error, STATUS_BUSY, "the server is stopping, try again");
    } else if (events->of_token[follower->share] >= HTTP_FOLLOWERS_TOKEN_MAX) {
        *code = 429;
        status = error_set(error, STATUS_BUSY, "%d browsers with this token follow already",
                           HTTP_FOLLOWERS_TOKEN_MAX);
    } else if (events->followers >= HTTP_FOLLOWERS_MAX) {
        status = error_set(error, STATUS_BUSY, "%d browsers follow already", HTTP_FOLLOWERS_MAX);
    } else {
        events->of_token[follower->share]++;
        events->followers++;
        pthread_cond_signal(&events->wanted);
    }
    pthread_mutex_unlock(&events->mutex);
    if (status != STATUS_OK) {
        free(follower);
        return status;
    }
    *out = follower;
    return STATUS_OK;
}

void http_events_leave(struct http_follower *follower)
{
    if (follower == NULL) {
        return;
    }
    struct http_events *events = follower->events;
    pthread_mutex_lock(&events->mutex);
    drop(follower->text);
    events->of_token[follower->share]--;
    events->followers--;
    pthread_mutex_unlock(&events->mutex);
    free(follower);
}

/* Mutex held. */
static bool has_news(const struct http_follower *follower)
{
    const struct http_events *events = follower->events;
    return follower->text != NULL || events->stopping || events->generation != follower->seen;
}

bool http_events_ready(struct http_follower *follower)
{
    pthread_mutex_lock(&follower->events->mutex);
    bool ready = has_news(follower);
    pthread_mutex_unlock(&follower->events->mutex);
    return ready;
}

/* Mutex held: the next bytes of the text that the follower is in. */
static size_t copy_part(struct http_follower *follower, char *out, size_t capacity)
{
    struct http_event_text *text = follower->text;
    size_t left = text->bytes - follower->sent;
    size_t part = left < capacity ? left : capacity;
    memcpy(out, text->data + follower->sent, part);
    follower->sent += part;
    if (part == left) {
        drop(text);
        follower->text = NULL;
    }
    return part;
}

size_t http_events_read(struct http_follower *follower, char *out, size_t capacity)
{
    static const char alive[] = ":\n\n";
    struct http_events *events = follower->events;
    size_t bytes = 0;
    bool late = false;
    struct timespec quiet = clock_moment_in(HTTP_EVENTS_QUIET_MS * NS_PER_MS);
    CHECK(capacity >= sizeof alive);
    pthread_mutex_lock(&events->mutex);
    while (!has_news(follower) && !late) {
        late = wait_until(events, &events->changed, &quiet);
    }
    if (follower->guard != NULL && !token_guard_holds(follower->guard, follower->token_id)) {
        pthread_mutex_unlock(&events->mutex);
        return 0;
    }
    if (follower->text == NULL && !events->stopping && events->generation != follower->seen) {
        follower->text = events->newest;
        follower->text->uses++;
        follower->seen = events->generation;
        follower->sent = 0;
    }
    if (follower->text != NULL) {
        bytes = copy_part(follower, out, capacity);
    } else if (!events->stopping) {
        memcpy(out, alive, sizeof alive - 1);
        bytes = sizeof alive - 1;
    }
    pthread_mutex_unlock(&events->mutex);
    return bytes;
}
