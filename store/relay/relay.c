/*
 * Who may come, clients, questions of pages, and what is told of all. See relay.h; workers are in
 * relay_workers.c.
 */
#include "store/relay/relay_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "schemas/json_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- who may ---- */

static void remember(struct shown *token, const struct relay_guest *guest)
{
    token->limited = guest->limited;
    memcpy(token->id, guest->token, sizeof token->id);
    token->looked_ns = clock_monotonic_ns();
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

/* Whether a tenant may have one more session: the lower limit counts, its own (0: none) or the
 * server's. */
static enum status check_quota(const struct relay *relay, const char *tenant, uint32_t own_most,
                               int *code, struct error *error)
{
    uint32_t own = 0;
    uint32_t most = relay->options.sessions_tenant;
    most = own_most > 0 && own_most < most ? own_most : most;
    for (const struct relayed_client *each = relay->clients; each != NULL; each = each->next) {
        own += each->worker != NULL && strcmp(each->tenant, tenant) == 0;
    }
    if (own < most) {
        return STATUS_OK;
    }
    *code = 429;
    return error_set(error, STATUS_BUSY, "%s%s: %" PRIu32 " session%s at once, no more may be%s",
                     tenant[0] != '\0' ? "tenant " : "drivers of no tenant", tenant, own,
                     own == 1 ? "" : "s",
                     most == own_most ? " by its quota (swerve tenant set)" : "");
}

static enum status find_place(const struct relay *relay, const char *tenant, uint32_t own_most,
                              const char *wanted, struct relayed_worker **out, int *code,
                              struct error *error)
{
    const struct relayed_wish wish = {.tenant = tenant, .name = wanted};
    bool known;
    TRY(check_quota(relay, tenant, own_most, code, error));
    *out = relay_choose(relay, &wish, &known);
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
        status = find_place(relay, guest->tenant, guest->sessions_most, guest->worker, &unused,
                            code, error);
        relay->counts.refused += status != STATUS_OK;
    } else if (relay->worker_count >= RELAY_WORKERS_MAX) {
        status = error_set(error, STATUS_BUSY, "%d workers for sessions are attached already",
                           RELAY_WORKERS_MAX);
    }
    pthread_mutex_unlock(&relay->lock);
    return status;
}

/* ---- clients ---- */

/* Takes a place, or says why not and ends. A worker that takes up sessions tells of its own so that
 * others can. */
static void client_begun(void *context, struct wire *wire)
{
    struct relayed_client *client = context;
    struct relay *relay = client->relay;
    struct relayed_worker *worker = NULL;
    struct error error;
    int code = 0;
    client->wire = wire;
    pthread_mutex_lock(&relay->lock);
    enum status status = find_place(relay, client->tenant, client->sessions_most, client->wanted,
                                    &worker, &code, &error);
    THEN(status, relay_seat(client, worker, &error));
    if (status == STATUS_OK) {
        bool tells = worker->kin[0] != '\0';
        relay->counts.begun++;
        memcpy(client->kin, worker->kin, sizeof client->kin);
        wire_put(client->lane, tells ? ENVELOPE_GO_ON : ENVELOPE_OPEN, strdup(client->tenant));
    } else {
        relay->counts.refused++;
        relay_say(client, "error", error.text);
        wire_stop(wire, WIRE_TRY_AGAIN);
    }
    client->next = relay->clients;
    relay->clients = client;
    pthread_mutex_unlock(&relay->lock);
}

/* Cuts off a driver whose token holds no more. */
static bool client_holds(struct relayed_client *client)
{
    bool live = relay_holds(client->relay, &client->token);
    if (!live) {
        relay_say(client, "error", relay_gone_token);
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
    struct error error;
    pthread_mutex_lock(&relay->lock);
    while (client->worker != NULL && !carried_has_room(&client->carried) && !relay->stopping) {
        pthread_cond_wait(&relay->changed, &relay->lock);
    }
    if (memchr(text, '\0', bytes) != NULL) {
        wire_stop(client->wire, WIRE_WRONG);
    } else if (client->worker != NULL && !relay->stopping) {
        client->worker->passed.messages++;
        client->worker->passed.bytes += bytes;
        if (carried_send(&client->carried, text, bytes, &error) == STATUS_OK) {
            wire_say(client->lane, strndup(text, bytes));
        } else {
            wire_stop(client->wire, WIRE_FAILED);
        }
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
    carried_finish(&client->carried);
    free(client);
}

/* ---- connections ---- */

static enum status accept_worker(struct relay *relay, const struct relay_guest *guest,
                                 struct http_socket_life *out, struct error *error)
{
    struct relayed_worker *worker = calloc(1, sizeof *worker);
    TRY(memory_check(worker, error, "sessions: out of memory"));
    worker->relay = relay;
    remember(&worker->token, guest);
    memcpy(worker->tenant, guest->tenant, sizeof worker->tenant);
    relay_worker_life(worker, out);
    return STATUS_OK;
}

static enum status accept_client(struct relay *relay, const struct relay_guest *guest,
                                 struct http_socket_life *out, struct error *error)
{
    struct relayed_client *client = calloc(1, sizeof *client);
    TRY(memory_check(client, error, "sessions: out of memory"));
    client->relay = relay;
    remember(&client->token, guest);
    memcpy(client->tenant, guest->tenant, sizeof client->tenant);
    client->sessions_most = guest->sessions_most;
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
        if (each->attached == NULL || !relay_serves(each, guest->tenant) ||
            !has_scenario(each, scenario)) {
            continue;
        }
        found = each;
        for (const struct relayed_client *own = relay->clients; own != NULL; own = own->next) {
            if (own->worker == each && strcmp(own->token.id, guest->token) == 0) {
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

json_t *relay_list(struct relay *relay, const char *tenant)
{
    json_t *list = json_array();
    pthread_mutex_lock(&relay->lock);
    for (const struct relayed_worker *each = relay->workers; each != NULL; each = each->next) {
        if (each->attached != NULL && (tenant == NULL || relay_serves(each, tenant))) {
            json_t *row = json_deep_copy(each->attached);
            json_object_set_new(row, "taken", json_integer(each->taken));
            json_object_set_new(row, "room", json_integer(each->room));
            json_array_append_new(list, row);
        }
    }
    pthread_mutex_unlock(&relay->lock);
    return list;
}

/* The row of a name, made where there is none; NULL: out of memory. */
static json_t *row_of(json_t *rows, const char *name)
{
    size_t index;
    json_t *row;
    json_array_foreach (rows, index, row) {
        if (strcmp(json_string_value(json_object_get(row, "worker")), name) == 0) {
            return row;
        }
    }
    row = json_pack("{s:s}", "worker", name);
    json_array_append(rows, row);
    json_decref(row); /* the array holds it */
    return row;
}

static void add_to(json_t *row, const char *member, uint64_t value)
{
    json_int_t before = json_integer_value(json_object_get(row, member));
    json_object_set_new(row, member, json_integer(before + (json_int_t)value));
}

static void add_passed(json_t *row, const struct relayed_passed *passed)
{
    add_to(row, "messages", passed->messages);
    add_to(row, "answers", passed->answers);
    add_to(row, "frames", passed->frames);
    add_to(row, "bytes", passed->bytes);
}

json_t *relay_figures(struct relay *relay)
{
    json_t *rows = json_array();
    char *ticks = NULL;
    size_t bytes;
    FILE *out = open_memstream(&ticks, &bytes);
    if (out == NULL) {
        json_decref(rows);
        return NULL;
    }
    pthread_mutex_lock(&relay->lock);
    ticks_print(out, relay->ticks.rows, relay->ticks.count);
    const struct relay_counts counts = relay->counts;
    add_passed(row_of(rows, ""), &counts.passed);
    for (const struct relayed_worker *each = relay->workers; each != NULL; each = each->next) {
        if (each->attached != NULL) {
            json_t *row = row_of(rows, each->name);
            add_to(row, "places", each->places);
            add_to(row, "taken", each->taken);
            add_to(row, "room", each->room);
            add_passed(row, &each->passed);
        }
    }
    pthread_mutex_unlock(&relay->lock);
    json_t *text = fclose(out) == 0 ? json_string(ticks) : NULL;
    free(ticks);
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:o,s:o}", "begun", (json_int_t)counts.begun,
                     "refused", (json_int_t)counts.refused, "attached", (json_int_t)counts.workers,
                     "gone", (json_int_t)counts.workers_gone, "moved", (json_int_t)counts.moved,
                     "ended", (json_int_t)counts.ended, "gap_s", (double)counts.gap_ns / NS_PER_S,
                     "workers", rows, "ticks", text);
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
    relay->sockets.receive = options->receive;
    relay->sockets.send = options->send;
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
