/*
 * Workers: what they say of themselves, and their envelopes. See relay.h.
 */
#include "store/relay/relay_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- of themselves ---- */

static enum status read_scenarios(const struct json_cursor *root, struct error *error)
{
    char id[LIMIT_ID_BYTES];
    size_t count = 0;
    const struct json_cursor list = json_cursor_member(root, "scenarios");
    TRY(json_array_begin(&list, 1, RELAY_SCENARIOS_MAX, &count, error));
    for (size_t i = 0; i < count; i++) {
        const struct json_cursor element = json_cursor_element(&list, i);
        TRY(json_value_text(&element, id, sizeof id, error));
    }
    return STATUS_OK;
}

/* A worker of its own words; the members that are not looked at are for those who list it. */
static enum status read_worker(const struct json_cursor *root, struct relayed_worker *worker,
                               struct error *error)
{
    static const char *const members[] = {"worker", "places",    "world", "model",
                                          "tiers",  "scenarios", NULL};
    char unused[LIMIT_SPEC_BYTES];
    int64_t places = 0;
    size_t tiers = 0;
    const struct json_cursor list = json_cursor_member(root, "tiers");
    TRY(json_object_begin(root, members, error));
    TRY(json_member_text(root, "worker", true, worker->name, sizeof worker->name, error));
    TRY(json_member_text(root, "world", true, unused, sizeof unused, error));
    TRY(json_member_text(root, "model", true, unused, sizeof unused, error));
    TRY(json_member_integer(root, "places", true, 1, RELAY_PLACES_MAX, &places, error));
    TRY(json_array_begin(&list, 0, RELAY_PLACES_MAX, &tiers, error));
    TRY(read_scenarios(root, error));
    worker->places = (uint32_t)places;
    worker->room = (uint32_t)places;
    return STATUS_OK;
}

/* With the lock held. */
static enum status attach(struct relayed_worker *worker, const struct envelope *envelope,
                          struct error *error)
{
    static const char name[] = "attach";
    json_t *root = NULL;
    if (worker->attached != NULL || envelope->session != 0) {
        return error_set(error, STATUS_BAD_INPUT, "attach: expected one, of session 0");
    }
    TRY(json_read_text(name, envelope->text, envelope->text_bytes, &root, error));
    const struct json_cursor cursor = json_cursor_root(name, root);
    enum status status = read_worker(&cursor, worker, error);
    if (status != STATUS_OK) {
        json_decref(root);
        return status;
    }
    worker->attached = root;
    worker->relay->counts.workers++;
    log_event(worker->relay->options.logger, LOG_INFO,
              "worker %s is attached for %" PRIu32 " sessions", worker->name, worker->places);
    return STATUS_OK;
}

/* With the lock held. */
static enum status take_room(struct relayed_worker *worker, const struct envelope *envelope,
                             struct error *error)
{
    json_t *root = NULL;
    int64_t room = 0;
    TRY(json_read_text("room", envelope->text, envelope->text_bytes, &root, error));
    const struct json_cursor cursor = json_cursor_root("room", root);
    enum status status = json_value_integer(&cursor, 0, worker->places, &room, error);
    worker->room = status == STATUS_OK ? (uint32_t)room : worker->room;
    json_decref(root);
    return status;
}

/* With the lock held: whose sessions it takes up. */
static enum status take_kin(struct relayed_worker *worker, const struct envelope *envelope,
                            struct error *error)
{
    if (envelope->text_bytes >= sizeof worker->kin) {
        return error_set(error, STATUS_LIMIT,
                         "whose sessions it takes up: expected a text of at most %zu bytes, found "
                         "%zu",
                         sizeof worker->kin - 1, envelope->text_bytes);
    }
    memset(worker->kin, 0, sizeof worker->kin);
    if (envelope->text_bytes > 0) {
        memcpy(worker->kin, envelope->text, envelope->text_bytes);
    }
    return STATUS_OK;
}

/* ---- of their sessions ---- */

/* With the lock held: ticks since it told last. */
static enum status take_ticks(struct relayed_worker *worker, const struct envelope *envelope,
                              struct error *error)
{
    return ticks_take(&worker->relay->ticks, envelope->text, envelope->text_bytes, error);
}

/* With the lock held. NULL: it has gone, or is none of this worker. */
static struct relayed_client *client_of(const struct relayed_worker *worker, uint64_t session)
{
    struct relayed_client *client = worker->relay->clients;
    while (client != NULL && (client->session != session || client->worker != worker)) {
        client = client->next;
    }
    return client;
}

/* With the lock held. Whether it was one. */
static bool answer(const struct relayed_worker *worker, const struct envelope *envelope)
{
    struct question *question = worker->relay->questions;
    while (question != NULL &&
           (question->session != envelope->session || question->worker != worker)) {
        question = question->next;
    }
    if (question != NULL && !question->done) {
        question->done = true;
        question->refused = envelope->kind == ENVELOPE_CLOSE;
        question->text = envelope_text(envelope);
        pthread_cond_broadcast(&worker->relay->changed);
    }
    return question != NULL;
}

/* With the lock held. */
static void count_passed(struct relayed_worker *worker, const struct envelope *envelope)
{
    worker->passed.answers += envelope->kind == ENVELOPE_SAY;
    worker->passed.frames += envelope->kind == ENVELOPE_SHOW;
    worker->passed.bytes += envelope->text_bytes + envelope->byte_count;
}

/* With the lock held. */
static enum status pass_on(struct relayed_worker *worker, const struct envelope *envelope,
                           struct error *error)
{
    struct relayed_client *client = client_of(worker, envelope->session);
    if (envelope->text_bytes > ENVELOPE_TEXT_BYTES) {
        return error_set(error, STATUS_LIMIT, "a text of %zu bytes, expected at most %d",
                         envelope->text_bytes, ENVELOPE_TEXT_BYTES);
    }
    if (client == NULL) { /* its client has gone meanwhile */
        return STATUS_OK;
    }
    struct lane *lane = wire_lane(client->wire);
    count_passed(worker, envelope);
    if (envelope->kind == ENVELOPE_CLOSE) {
        relay_worker_refuses(client, envelope);
        return STATUS_OK;
    }
    relay_worker_answers(client);
    if (envelope->kind == ENVELOPE_SHOW) {
        carried_show(&client->carried);
        wire_show(lane, envelope_text(envelope), envelope->bytes, envelope->byte_count);
    } else if (envelope->kind == ENVELOPE_SAY) {
        wire_say(lane, envelope_text(envelope));
    } else {
        TRY(carried_take(&client->carried, envelope->text, envelope->text_bytes, error));
        pthread_cond_broadcast(&worker->relay->changed);
    }
    return STATUS_OK;
}

static enum status obey(struct relayed_worker *worker, const struct envelope *envelope,
                        struct error *error)
{
    switch (envelope->kind) {
    case ENVELOPE_ATTACH:
        return attach(worker, envelope, error);
    case ENVELOPE_SAY:
    case ENVELOPE_CLOSE:
        return envelope->session == 0     ? take_room(worker, envelope, error)
               : answer(worker, envelope) ? STATUS_OK
                                          : pass_on(worker, envelope, error);
    case ENVELOPE_TAKEN:
        return envelope->session == 0 ? take_kin(worker, envelope, error)
                                      : pass_on(worker, envelope, error);
    case ENVELOPE_SHOW:
        return envelope->session == 0 ? take_ticks(worker, envelope, error)
                                      : pass_on(worker, envelope, error);
    default:
        return error_set(error, STATUS_BAD_INPUT, "expected no envelope of kind %d",
                         (int)envelope->kind);
    }
}

static void cut_off(const struct relayed_worker *worker, enum wire_code code, const char *why)
{
    log_event(worker->relay->options.logger, LOG_ERROR, "worker %s for sessions is cut off: %s",
              worker->name, why);
    wire_stop(worker->wire, code);
}

static void worker_envelope(void *context, const char *data, size_t bytes)
{
    struct relayed_worker *worker = context;
    struct relay *relay = worker->relay;
    struct envelope envelope;
    struct error error;
    pthread_mutex_lock(&relay->lock);
    enum status status = envelope_read(data, bytes, &envelope, &error);
    THEN(status, obey(worker, &envelope, &error));
    pthread_mutex_unlock(&relay->lock);
    if (status != STATUS_OK) {
        cut_off(worker, WIRE_WRONG, error.text);
    }
}

static void worker_look(void *context)
{
    struct relayed_worker *worker = context;
    if (!relay_holds(worker->relay, &worker->token)) {
        cut_off(worker, WIRE_MAY_NOT, relay_gone_token);
    }
}

static void worker_begun(void *context, struct wire *wire)
{
    struct relayed_worker *worker = context;
    struct relay *relay = worker->relay;
    worker->wire = wire;
    pthread_mutex_lock(&relay->lock);
    worker->number = ++relay->sessions;
    worker->next = relay->workers;
    relay->workers = worker;
    relay->worker_count++;
    pthread_mutex_unlock(&relay->lock);
}

/* With the lock held: what it passed on stays counted. */
static void count_gone(const struct relayed_worker *worker)
{
    struct relay_counts *counts = &worker->relay->counts;
    counts->workers_gone += worker->attached != NULL;
    counts->passed.messages += worker->passed.messages;
    counts->passed.answers += worker->passed.answers;
    counts->passed.frames += worker->passed.frames;
    counts->passed.bytes += worker->passed.bytes;
}

/* Its sessions go on elsewhere, or their clients are told, and whoever waits for it waits no more.
 */
static void worker_ended(void *context)
{
    struct relayed_worker *worker = context;
    struct relay *relay = worker->relay;
    pthread_mutex_lock(&relay->lock);
    for (struct relayed_worker **at = &relay->workers; *at != NULL; at = &(*at)->next) {
        if (*at == worker) {
            *at = worker->next;
            relay->worker_count--;
            break;
        }
    }
    count_gone(worker);
    for (struct relayed_client *each = relay->clients; each != NULL; each = each->next) {
        if (each->worker == worker) {
            relay_worker_gone(each);
        }
    }
    for (struct question *each = relay->questions; each != NULL; each = each->next) {
        each->worker = each->worker == worker ? NULL : each->worker;
    }
    pthread_cond_broadcast(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
    if (worker->attached != NULL) {
        log_event(relay->options.logger, LOG_INFO, "worker %s for sessions has gone", worker->name);
    }
    json_decref(worker->attached);
    free(worker);
}

void relay_worker_life(struct relayed_worker *worker, struct http_socket_life *out)
{
    *out = (struct http_socket_life){
        .wire = {.message_max = ENVELOPE_BYTES_MAX,
                 .envelope = worker_envelope,
                 .look = worker_look,
                 .context = worker},
        .begun = worker_begun,
        .ended = worker_ended,
    };
}
