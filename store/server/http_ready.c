/*
 * Asking a store whether it answers. See http_ready.h.
 */
#include "store/server/http_ready.h"

#include "base/clock.h"
#include "base/units.h"

#include <string.h>

void http_ready_init(struct http_ready *ready)
{
    memset(ready, 0, sizeof *ready);
    pthread_mutex_init(&ready->mutex, NULL);
}

void http_ready_finish(struct http_ready *ready)
{
    pthread_mutex_destroy(&ready->mutex);
}

/* Reads, and where there is a writer has it say something: an id that no worker goes by is looked
 * for among the leases, which are the writer's. Nothing is written. */
static enum status ask(struct store *store, struct error *error)
{
    char ids[1][LIMIT_ID_BYTES];
    struct store_worker_owner owner;
    uint32_t count = 0;
    TRY(store->ops->suites(store, ids, 1, &count, error));
    return store->ops->worker_owner != NULL
               ? store->ops->worker_owner(store, "readyz", &owner, error)
               : STATUS_OK;
}

/* With the mutex held: what is known without asking. */
static enum status tell(const struct http_ready *ready, int64_t now_ns, struct error *error)
{
    int64_t asked_ms = (now_ns - ready->asked_ns) / NS_PER_MS;
    if (ready->asking && (!ready->heard || asked_ms > HTTP_READY_LATE_MS)) {
        return error_set(error, STATUS_BUSY, "the store has not answered for %lld.%lld s",
                         (long long)(asked_ms / 1000), (long long)(asked_ms % 1000 / 100));
    }
    const struct error *unwritten = &ready->unwritten;
    if (unwritten->status != STATUS_OK && ready->last.status == STATUS_OK &&
        now_ns - ready->unwritten_ns < HTTP_READY_UNWRITTEN_MS * NS_PER_MS) {
        return error_set(error, unwritten->status, "%s", unwritten->text);
    }
    return ready->last.status == STATUS_OK
               ? STATUS_OK
               : error_set(error, ready->last.status, "%s", ready->last.text);
}

void http_ready_wrote(struct http_ready *ready, const char *by, const struct error *result)
{
    pthread_mutex_lock(&ready->mutex);
    if (result->status == STATUS_IO) {
        ready->unwritten = *result;
        ready->unwritten_by = by;
        ready->unwritten_ns = clock_now_ns(clock_system());
    } else if (result->status == STATUS_OK && ready->unwritten_by == by) {
        ready->unwritten.status = STATUS_OK;
    }
    pthread_mutex_unlock(&ready->mutex);
}

enum status http_ready_check(struct http_ready *ready, struct store *store, struct error *error)
{
    struct error found = {.status = STATUS_OK};
    pthread_mutex_lock(&ready->mutex);
    int64_t now_ns = clock_now_ns(clock_system());
    bool fresh = ready->heard && now_ns - ready->heard_ns < HTTP_READY_FRESH_MS * NS_PER_MS;
    if (!ready->asking && !fresh) {
        ready->asking = true;
        ready->asked_ns = now_ns;
        pthread_mutex_unlock(&ready->mutex);
        found.status = ask(store, &found);
        pthread_mutex_lock(&ready->mutex);
        ready->asking = false;
        ready->heard = true;
        ready->heard_ns = clock_now_ns(clock_system());
        ready->last = found;
    }
    enum status status = tell(ready, now_ns, error);
    pthread_mutex_unlock(&ready->mutex);
    return status;
}
