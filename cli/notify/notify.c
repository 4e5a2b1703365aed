/*
 * Notices to a webhook. Suites are remembered by id while they go on; the newest one seen tells
 * which are new, so that one that began and ended between two looks is told of too.
 */
#include "cli/notify/notify.h"

#include "base/clock.h"
#include "base/units.h"
#include "schemas/json_read.h"
#include "schemas/outcome.h"
#include "store/curl/curl_post.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUITES_WATCHED = 1000, SUITES_LISTED = 100, DEADLINE_MS = 5000, LOOK_MS = 1000 };

struct watched {
    char id[LIMIT_ID_BYTES];
    int tries; /* to tell of its end */
};

struct notify {
    const char *url;
    const struct logger *logger;
    bool looked;
    char newest[LIMIT_ID_BYTES];
    uint32_t count;
    struct watched watched[SUITES_WATCHED];
};

enum status notify_create(const char *url, const struct logger *logger, struct notify **out,
                          struct error *error)
{
    if (curl_post_check(url, error) != STATUS_OK) {
        return error_prefix(error, "--notify");
    }
    struct notify *notify = calloc(1, sizeof *notify);
    TRY(memory_check(notify, error, "--notify: out of memory"));
    notify->url = url;
    notify->logger = logger;
    *out = notify;
    return STATUS_OK;
}

void notify_destroy(struct notify *notify)
{
    free(notify);
}

/* Consumes the reference. False: it was not delivered. */
static bool post(struct notify *notify, json_t *json)
{
    struct error error;
    char *text = json != NULL ? json_compact_text(json) : NULL;
    enum status status = memory_check(text, &error, "out of memory");
    THEN(status, curl_post_json(notify->url, text, DEADLINE_MS, &error));
    if (status != STATUS_OK) {
        log_event(notify->logger, LOG_WARNING, "--notify: not delivered: %s", error.text);
    }
    free(text);
    json_decref(json);
    return status == STATUS_OK;
}

void notify_alarm(struct notify *notify, const char *text)
{
    if (notify != NULL) {
        post(notify, json_pack("{s:s, s:s}", "event", "alarm", "text", text));
    }
}

/* Counts main lines; where the store has not counted them, rollouts. */
static bool tell_end(struct notify *notify, const char *id, const struct store_suite_status *now)
{
    char text[256 + LIMIT_ID_BYTES];
    long long counts[VERDICT_COUNT] = {0};
    long long mains = 0;
    for (int v = 0; v < VERDICT_COUNT; v++) {
        for (int tier = 0; tier < TIER_COUNT; tier++) {
            counts[v] += (long long)now->mains[tier].verdicts[v];
        }
        mains += counts[v];
    }
    for (int v = 0; v < VERDICT_COUNT && mains == 0; v++) {
        counts[v] = (long long)now->rollouts[v];
    }
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "event", "suite_ended", "suite", id,
                  "planner", now->planner, "of", mains > 0 ? "main_lines" : "rollouts", "dead_jobs",
                  (json_int_t)now->jobs[JOB_DEAD], "cancelled_jobs",
                  (json_int_t)now->jobs[JOB_CANCELLED], "cost_uusd", (json_int_t)now->cost_uusd);
    for (int v = 0; v < VERDICT_COUNT && json != NULL; v++) {
        json_object_set_new(json, verdict_names[v], json_integer(counts[v]));
    }
    snprintf(text, sizeof text,
             "suite %s has ended: of its %s %lld pass, %lld fail, %lld are planner errors, %lld "
             "flagged or invalid; %lld jobs are dead, %lld cancelled",
             id, mains > 0 ? "main lines" : "rollouts", counts[VERDICT_PASS], counts[VERDICT_FAIL],
             counts[VERDICT_PLANNER_ERROR], counts[VERDICT_FLAGGED] + counts[VERDICT_INVALID],
             (long long)now->jobs[JOB_DEAD], (long long)now->jobs[JOB_CANCELLED]);
    if (json != NULL) {
        json_object_set_new(json, "text", json_string(text));
    }
    return post(notify, json);
}

/* Suites that are new since the last look; of the first look those that go on. */
static void take_new(struct notify *notify, struct store *store)
{
    char(*ids)[LIMIT_ID_BYTES] = calloc(SUITES_LISTED, sizeof *ids);
    uint32_t count = 0;
    struct error error;
    if (ids == NULL || store->ops->suites(store, ids, SUITES_LISTED, &count, &error) != STATUS_OK) {
        free(ids);
        return;
    }
    for (uint32_t i = 0; i < count && strcmp(ids[i], notify->newest) != 0; i++) {
        struct store_suite_status now;
        bool goes_on =
            notify->looked || (store->ops->suite_status(store, ids[i], &now, &error) == STATUS_OK &&
                               store_jobs_open(&now) > 0);
        if (goes_on && notify->count < SUITES_WATCHED) {
            struct watched *watched = &notify->watched[notify->count++];
            *watched = (struct watched){.tries = 0};
            memcpy(watched->id, ids[i], sizeof watched->id);
        }
    }
    if (count > 0) {
        memcpy(notify->newest, ids[0], sizeof notify->newest);
    }
    notify->looked = true;
    free(ids);
}

void notify_look(struct notify *notify, struct store *store)
{
    if (notify == NULL) {
        return;
    }
    take_new(notify, store);
    /* A webhook that fails or is slow is told of the others at the next look: who calls has more to
     * do. */
    const int64_t last_ns = clock_now_ns(clock_system()) + LOOK_MS * NS_PER_MS;
    bool answers = true;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < notify->count; i++) {
        struct watched *watched = &notify->watched[i];
        struct store_suite_status now;
        struct error error;
        bool known = store->ops->suite_status(store, watched->id, &now, &error) == STATUS_OK;
        bool over = false;
        if (known && store_jobs_open(&now) == 0 && answers &&
            clock_now_ns(clock_system()) < last_ns) {
            answers = tell_end(notify, watched->id, &now);
            over = answers || ++watched->tries == NOTIFY_TRIES;
        }
        if (!over && (known || error.status != STATUS_NOT_FOUND)) {
            notify->watched[kept++] = *watched;
        }
    }
    notify->count = kept;
}
