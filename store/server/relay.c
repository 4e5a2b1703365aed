/*
 * Workers, clients and what passes between them. See relay.h.
 *
 * One lock guards who there is; it is never held while somebody waits for bytes. A client or worker
 * is on its list from before its wire runs until after it ran, so whoever is found there has a
 * wire.
 */
#include "store/server/relay.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "base/websocket/envelope.h"
#include "schemas/json_read.h"
#include "schemas/json_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A token that was shown, which the wire's thread alone asks for again while that runs. */
struct shown {
    bool limited;
    char id[TOKEN_ID_BYTES];
    int64_t looked_ns;
};

struct relayed_worker {
    struct relay *relay;
    struct wire *wire;
    struct shown token;
    char name[LIMIT_ID_BYTES];
    json_t *attached; /* what it said of itself; NULL: nothing yet */
    uint32_t places, taken;
    uint32_t room; /* sessions that it has time for in all, at most its places */
    struct relayed_worker *next;
};

struct relayed_client {
    struct relay *relay;
    struct wire *wire;
    struct shown token;
    char tenant[LIMIT_ID_BYTES];
    char wanted[LIMIT_ID_BYTES];
    uint64_t session;
    struct relayed_worker *worker; /* NULL: it has none, or it has gone */
    struct lane *lane;             /* of the worker's wire */
    uint32_t ahead;                /* messages that the worker has not taken */
    char kept[LIMIT_ID_BYTES];     /* name under which it keeps the session; "": it does not */
    struct relayed_client *next;
};

/* Somebody who waits for a document. */
struct question {
    uint64_t session;
    const struct relayed_worker *worker; /* NULL: it has gone */
    bool done, refused;
    char *text; /* NULL: out of memory */
    struct question *next;
};

struct relay {
    struct relay_options options;
    struct http_sockets sockets;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t sessions; /* numbers given */
    struct relayed_worker *workers;
    uint32_t worker_count;
    struct relayed_client *clients;
    struct question *questions;
    bool stopping;
};

/* ---- who may ---- */

static void remember(struct shown *token, const struct relay_guest *guest)
{
    token->limited = guest->limited;
    memcpy(token->id, guest->grant.id, sizeof token->id);
    token->looked_ns = clock_monotonic_ns();
}

static const char gone_token[] = "the token has expired or was revoked";

/* Whether the token is live still; one that is not is asked for again at once. */
static bool holds(const struct relay *relay, struct shown *token)
{
    bool live = !token->limited || token_guard_holds(relay->options.guard, token->id);
    token->looked_ns = live ? clock_monotonic_ns() : 0;
    return live;
}

/* ---- choosing, with the lock held ---- */

static bool has_scenario(const struct relayed_worker *worker, const char *scenario)
{
    size_t index;
    json_t *id;
    json_array_foreach (json_object_get(worker->attached, "scenarios"), index, id) {
        if (strcmp(json_string_value(id), scenario) == 0) {
            return true;
        }
    }
    return false;
}

/* Places that nobody has and for which there is time; below 0: for less than is taken. */
static int64_t free_room(const struct relayed_worker *worker)
{
    return (int64_t)worker->room - (int64_t)worker->taken;
}

/* The attached worker with a free place that has room for the most, or for none: who goes slowly
 * may be let in there too; of that name unless it is "". NULL: none has a place. */
static struct relayed_worker *choose(const struct relay *relay, const char *name, bool *known)
{
    struct relayed_worker *best = NULL;
    *known = false;
    for (struct relayed_worker *each = relay->workers; each != NULL; each = each->next) {
        if (each->attached == NULL || (name[0] != '\0' && strcmp(name, each->name) != 0)) {
            continue;
        }
        *known = true;
        if (each->taken < each->places && (best == NULL || free_room(each) > free_room(best))) {
            best = each;
        }
    }
    return best;
}

static enum status find_place(const struct relay *relay, const char *tenant, const char *wanted,
                              struct relayed_worker **out, int *code, struct error *error)
{
    uint32_t own = 0;
    bool known;
    for (const struct relayed_client *each = relay->clients; each != NULL; each = each->next) {
        own += each->worker != NULL && strcmp(each->tenant, tenant) == 0;
    }
    if (own >= relay->options.sessions_tenant) {
        *code = 429;
        return error_set(error, STATUS_BUSY, "%s%s: %" PRIu32 " sessions at once, no more may be",
                         tenant[0] != '\0' ? "tenant " : "drivers of no tenant", tenant, own);
    }
    *out = choose(relay, wanted, &known);
    if (*out == NULL && !known && wanted[0] != '\0') {
        return error_set(error, STATUS_NOT_FOUND, "no worker for sessions is called \"%s\"",
                         wanted);
    }
    if (*out == NULL) {
        return error_set(error, STATUS_BUSY,
                         known ? "every place for a session is taken, try again later"
                               : "no worker for sessions is attached, try again later");
    }
    return STATUS_OK;
}

enum status relay_look(struct relay *relay, const struct relay_guest *guest, int *code,
                       struct error *error)
{
    struct relayed_worker *unused;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&relay->lock);
    if (!guest->attaches) {
        status = find_place(relay, guest->grant.tenant, guest->worker, &unused, code, error);
    } else if (relay->worker_count >= RELAY_WORKERS_MAX) {
        status = error_set(error, STATUS_BUSY, "%d workers for sessions are attached already",
                           RELAY_WORKERS_MAX);
    }
    pthread_mutex_unlock(&relay->lock);
    return status;
}

/* ---- clients ---- */

static void say_error(struct wire *wire, const char *sentence)
{
    json_t *object =
        json_pack("{s:s,s:o}", "type", "error", "text", json_text_new(sentence, ERROR_TEXT_BYTES));
    wire_say(wire_lane(wire), object != NULL ? json_dumps(object, JSON_COMPACT) : NULL);
    json_decref(object);
}

/* Takes a place, or says why not and ends. */
static void client_begun(void *context, struct wire *wire)
{
    struct relayed_client *client = context;
    struct relay *relay = client->relay;
    struct relayed_worker *worker = NULL;
    struct error error;
    int code = 0;
    client->wire = wire;
    pthread_mutex_lock(&relay->lock);
    enum status status = find_place(relay, client->tenant, client->wanted, &worker, &code, &error);
    client->session = ++relay->sessions;
    THEN(status, lane_open(worker->wire, client->session, &client->lane, &error));
    if (status == STATUS_OK) {
        client->worker = worker;
        worker->taken++;
        wire_put(client->lane, ENVELOPE_OPEN, strdup(client->tenant));
    } else {
        say_error(wire, error.text);
        wire_stop(wire, WIRE_TRY_AGAIN);
    }
    client->next = relay->clients;
    relay->clients = client;
    pthread_mutex_unlock(&relay->lock);
}

/* Cuts off a driver whose token holds no more. */
static bool client_holds(struct relayed_client *client)
{
    bool live = holds(client->relay, &client->token);
    if (!live) {
        say_error(client->wire, gone_token);
        wire_stop(client->wire, WIRE_MAY_NOT);
    }
    return live;
}

static void client_look(void *context)
{
    client_holds(context);
}

/* Waits while the worker has too many: then nothing more of this client is read. */
static void client_message(void *context, const char *text, size_t bytes)
{
    struct relayed_client *client = context;
    struct relay *relay = client->relay;
    /* A flood of messages leaves no look between them. */
    bool looks = clock_monotonic_ns() - client->token.looked_ns >= WIRE_LOOK_MS * NS_PER_MS;
    if (looks && !client_holds(client)) {
        return;
    }
    pthread_mutex_lock(&relay->lock);
    while (client->worker != NULL && client->ahead >= ENVELOPE_AHEAD && !relay->stopping) {
        pthread_cond_wait(&relay->changed, &relay->lock);
    }
    if (memchr(text, '\0', bytes) != NULL) {
        wire_stop(client->wire, WIRE_WRONG);
    } else if (client->worker != NULL && !relay->stopping) {
        client->ahead++;
        wire_say(client->lane, strndup(text, bytes));
    }
    pthread_mutex_unlock(&relay->lock);
}

static void client_ended(void *context)
{
    struct relayed_client *client = context;
    struct relay *relay = client->relay;
    pthread_mutex_lock(&relay->lock);
    for (struct relayed_client **at = &relay->clients; *at != NULL; at = &(*at)->next) {
        if (*at == client) {
            *at = client->next;
            break;
        }
    }
    if (client->worker != NULL) {
        client->worker->taken--;
        lane_close(client->lane, ENVELOPE_CLOSE, strdup(""));
    }
    pthread_mutex_unlock(&relay->lock);
    free(client);
}

/* ---- workers ---- */

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
    log_event(worker->relay->options.logger, LOG_INFO,
              "worker %s is attached for %" PRIu32 " sessions", worker->name, worker->places);
    return STATUS_OK;
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

/* The worker has no room for it after all. */
static void end_client(const struct relayed_client *client, const struct envelope *envelope)
{
    char *why = envelope_text(envelope);
    say_error(client->wire, why != NULL ? why : "out of memory");
    wire_stop(client->wire, WIRE_TRY_AGAIN);
    free(why);
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
    if (envelope->kind == ENVELOPE_SHOW) {
        wire_show(lane, envelope_text(envelope), envelope->bytes, envelope->byte_count);
    } else if (envelope->kind == ENVELOPE_SAY) {
        wire_say(lane, envelope_text(envelope));
    } else if (envelope->kind == ENVELOPE_CLOSE) {
        end_client(client, envelope);
    } else {
        client->ahead -= client->ahead > 0;
        snprintf(client->kept, sizeof client->kept, "%.*s", (int)envelope->text_bytes,
                 envelope->text);
        pthread_cond_broadcast(&worker->relay->changed);
    }
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
    case ENVELOPE_SHOW:
    case ENVELOPE_TAKEN:
        return pass_on(worker, envelope, error);
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
    if (!holds(worker->relay, &worker->token)) {
        cut_off(worker, WIRE_MAY_NOT, gone_token);
    }
}

static void worker_begun(void *context, struct wire *wire)
{
    struct relayed_worker *worker = context;
    struct relay *relay = worker->relay;
    worker->wire = wire;
    pthread_mutex_lock(&relay->lock);
    worker->next = relay->workers;
    relay->workers = worker;
    relay->worker_count++;
    pthread_mutex_unlock(&relay->lock);
}

static void say_gone(const struct relayed_client *client)
{
    char text[256];
    bool kept = client->kept[0] != '\0';
    snprintf(text, sizeof text, "the worker of this session has gone, and %s%s%s",
             kept ? "kept it: \"begin\" with \"resume\": \"" : "did not keep it: begin again",
             client->kept, kept ? "\" goes on at one that sees its folder" : "");
    say_error(client->wire, text);
}

/* Its clients are told, and whoever waits for it waits no more. */
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
    for (struct relayed_client *each = relay->clients; each != NULL; each = each->next) {
        if (each->worker == worker) {
            each->worker = NULL;
            each->lane = NULL; /* it ends with its wire */
            say_gone(each);
            wire_stop(each->wire, WIRE_TRY_AGAIN);
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

/* ---- connections ---- */

static enum status accept_worker(struct relay *relay, const struct relay_guest *guest,
                                 struct http_socket_life *out, struct error *error)
{
    struct relayed_worker *worker = calloc(1, sizeof *worker);
    TRY(memory_check(worker, error, "sessions: out of memory"));
    worker->relay = relay;
    remember(&worker->token, guest);
    *out = (struct http_socket_life){
        .wire = {.message_max = ENVELOPE_BYTES_MAX,
                 .envelope = worker_envelope,
                 .look = worker_look,
                 .context = worker},
        .begun = worker_begun,
        .ended = worker_ended,
    };
    return STATUS_OK;
}

static enum status accept_client(struct relay *relay, const struct relay_guest *guest,
                                 struct http_socket_life *out, struct error *error)
{
    struct relayed_client *client = calloc(1, sizeof *client);
    TRY(memory_check(client, error, "sessions: out of memory"));
    client->relay = relay;
    remember(&client->token, guest);
    memcpy(client->tenant, guest->grant.tenant, sizeof client->tenant);
    memcpy(client->wanted, guest->worker, sizeof client->wanted);
    *out = (struct http_socket_life){
        .wire = {.message_max = WIRE_MESSAGE_BYTES,
                 .message = client_message,
                 .look = client_look,
                 .context = client},
        .begun = client_begun,
        .ended = client_ended,
    };
    return STATUS_OK;
}

static enum status accept_guest(void *owner, void *request, struct http_socket_life *out,
                                struct error *error)
{
    const struct relay_guest *guest = request;
    return guest->attaches ? accept_worker(owner, guest, out, error)
                           : accept_client(owner, guest, out, error);
}

struct MHD_Response *relay_response(struct relay *relay, const char *key)
{
    return http_socket_response(&relay->sockets, key);
}

/* ---- questions ---- */

/* With the lock held: who has the scenario, one at which the guest has a session before others. */
static struct relayed_worker *who_knows(const struct relay *relay, const struct relay_guest *guest,
                                        const char *scenario)
{
    struct relayed_worker *found = NULL;
    for (struct relayed_worker *each = relay->workers; each != NULL; each = each->next) {
        if (each->attached == NULL || !has_scenario(each, scenario)) {
            continue;
        }
        found = each;
        for (const struct relayed_client *own = relay->clients; own != NULL; own = own->next) {
            if (own->worker == each && strcmp(own->token.id, guest->grant.id) == 0) {
                return each;
            }
        }
    }
    return found;
}

/* With the lock held: until the question is done, its worker has gone or the time is over. */
static enum status wait_for_answer(struct relay *relay, const struct question *question,
                                   struct error *error)
{
    const struct timespec until = clock_moment_in(RELAY_ASK_MS * NS_PER_MS);
    int waited = 0;
    while (!question->done && question->worker != NULL && !relay->stopping && waited == 0) {
        waited = pthread_cond_timedwait(&relay->changed, &relay->lock, &until);
    }
    if (question->done) {
        return question->refused
                   ? error_set(error, STATUS_NOT_FOUND, "%.400s",
                               question->text != NULL ? question->text : "out of memory")
                   : memory_check(question->text, error, "scenario: out of memory");
    }
    return waited != 0
               ? error_set(error, STATUS_TIMEOUT, "scenario: its worker did not answer within %d s",
                           RELAY_ASK_MS / 1000)
               : error_set(error, STATUS_BUSY, "scenario: its worker has gone, try again");
}

static void enter_question(struct relay *relay, struct question *question)
{
    question->next = relay->questions;
    relay->questions = question;
}

static void leave_question(struct relay *relay, const struct question *question)
{
    struct question **at = &relay->questions;
    while (*at != question) {
        at = &(*at)->next;
    }
    *at = question->next;
}

enum status relay_ask(struct relay *relay, const struct relay_guest *guest, const char *scenario,
                      char **json, struct error *error)
{
    struct lane *lane = NULL;
    struct question question = {.text = NULL};
    pthread_mutex_lock(&relay->lock);
    struct relayed_worker *worker = who_knows(relay, guest, scenario);
    question.session = ++relay->sessions;
    question.worker = worker;
    enum status status = worker != NULL
                             ? lane_open(worker->wire, question.session, &lane, error)
                             : error_set(error, STATUS_NOT_FOUND,
                                         "no attached worker has the scenario \"%s\"", scenario);
    if (status == STATUS_OK) {
        enter_question(relay, &question);
        wire_put(lane, ENVELOPE_ASK, strdup(scenario));
        status = wait_for_answer(relay, &question, error);
        leave_question(relay, &question);
        lane_close(question.worker != NULL ? lane : NULL, 0, NULL);
    }
    pthread_mutex_unlock(&relay->lock);
    if (status != STATUS_OK) {
        free(question.text);
        return status;
    }
    *json = question.text;
    return STATUS_OK;
}

json_t *relay_list(struct relay *relay)
{
    json_t *list = json_array();
    pthread_mutex_lock(&relay->lock);
    for (const struct relayed_worker *each = relay->workers; each != NULL; each = each->next) {
        if (each->attached != NULL) {
            json_t *row = json_deep_copy(each->attached);
            json_object_set_new(row, "taken", json_integer(each->taken));
            json_object_set_new(row, "room", json_integer(each->room));
            json_array_append_new(list, row);
        }
    }
    pthread_mutex_unlock(&relay->lock);
    return list;
}

/* ---- starting and stopping ---- */

enum status relay_create(const struct relay_options *options, struct relay **out,
                         struct error *error)
{
    struct relay *relay = calloc(1, sizeof *relay);
    TRY(memory_check(relay, error, "sessions: out of memory"));
    relay->options = *options;
    pthread_mutex_init(&relay->lock, NULL);
    clock_condition_init(&relay->changed);
    http_sockets_init(&relay->sockets, true, accept_guest, relay, options->logger);
    *out = relay;
    return STATUS_OK;
}

void relay_stop(struct relay *relay)
{
    if (relay != NULL) {
        pthread_mutex_lock(&relay->lock);
        relay->stopping = true;
        pthread_cond_broadcast(&relay->changed);
        pthread_mutex_unlock(&relay->lock);
        http_sockets_stop(&relay->sockets);
    }
}

void relay_destroy(struct relay *relay)
{
    if (relay != NULL) {
        http_sockets_finish(&relay->sockets);
        pthread_cond_destroy(&relay->changed);
        pthread_mutex_destroy(&relay->lock);
        free(relay);
    }
}
