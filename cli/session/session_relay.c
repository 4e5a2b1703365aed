/*
 * The connection to a relay and a thread for each of its sessions. See session_relay.h.
 *
 * Messages of a session wait in its box until the one before is obeyed, so a way back in one
 * session holds up no other. The relay sends no more than fit.
 */
#include "cli/session/session_relay.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "base/websocket/envelope.h"
#include "report/drive_json.h"
#include "store/api/store_url.h"
#include "store/client/http_dial.h"
#include "store/client/http_transport.h"
#include "store/relay/ticks.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { PAUSE_MS_MIN = 250, PAUSE_MS_MAX = 16000, HOST_BYTES = 48 };

/* Somebody at another place who drives here. */
struct relayed {
    struct session_relay *relay;
    uint64_t session;
    struct lane *lane;
    struct talk *talk;
    bool tells;         /* the relay what another worker needs to go on */
    char *name, *state; /* of a session of another worker, which goes on here; owned; NULL: none */
    pthread_cond_t changed;
    char *box[ENVELOPE_AHEAD];
    uint32_t first, count;
    bool closed; /* by the relay */
    struct relayed *next;
};

struct session_relay {
    struct session_relay_options options;
    char name[LIMIT_ID_BYTES];
    struct http_transport *transport;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct wire *wire; /* NULL: it is not attached */
    struct relayed *sessions;
    uint32_t session_count;
    /* Told to the relay; the wire's thread alone looks. */
    uint32_t room;
    struct tick_tier told[DEADLINE_TIERS_MAX];
    bool announced;
    bool stopping, refused;
    struct error why; /* it is refused */
};

/* ---- sessions ---- */

/* With the lock held: the next message; NULL: the session is over. */
static char *next_message(struct relayed *one)
{
    while (one->count == 0 && !one->closed) {
        pthread_cond_wait(&one->changed, &one->relay->lock);
    }
    if (one->closed) {
        return NULL;
    }
    char *text = one->box[one->first];
    one->first = (one->first + 1) % ENVELOPE_AHEAD;
    one->count--;
    return text;
}

static void free_relayed(struct relayed *one)
{
    free(one->name);
    free(one->state);
    free(one);
}

static void end_session(struct relayed *one)
{
    struct session_relay *relay = one->relay;
    talk_destroy(one->talk);
    lane_close(one->lane, 0, NULL);
    pthread_mutex_lock(&relay->lock);
    for (struct relayed **at = &relay->sessions; *at != NULL; at = &(*at)->next) {
        if (*at == one) {
            *at = one->next;
            relay->session_count--;
            break;
        }
    }
    for (; one->count > 0; one->count--) {
        free(one->box[one->first]);
        one->first = (one->first + 1) % ENVELOPE_AHEAD;
    }
    pthread_cond_broadcast(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
    pthread_cond_destroy(&one->changed);
    free_relayed(one);
}

/* Greets the client, or goes on with its session. False: it cannot, and the relay is told why. */
static bool begin_talk(struct relayed *one)
{
    struct error error;
    if (one->name == NULL) {
        talk_attach(one->talk, one->lane);
        return true;
    }
    lane_hold(one->lane, true); /* one frame is shown of it, the last */
    enum status status = talk_take_up(one->talk, one->lane, one->name, one->state, &error);
    lane_hold(one->lane, false);
    if (status != STATUS_OK) {
        log_event(one->relay->options.logger, LOG_WARNING, "session %s does not go on here: %s",
                  one->name, error.text);
        lane_close(one->lane, ENVELOPE_CLOSE, strdup(error.text));
        one->lane = NULL;
    }
    return status == STATUS_OK;
}

static void *run_session(void *context)
{
    struct relayed *one = context;
    struct session_relay *relay = one->relay;
    bool begun = begin_talk(one);
    pthread_mutex_lock(&relay->lock);
    for (char *text; begun && (text = next_message(one)) != NULL;) {
        pthread_mutex_unlock(&relay->lock);
        lane_hold(one->lane, true);
        talk_message(one->talk, text, strlen(text));
        wire_put(one->lane, ENVELOPE_TAKEN,
                 one->tells ? talk_state(one->talk) : strdup(talk_kept(one->talk)));
        lane_hold(one->lane, false);
        free(text);
        pthread_mutex_lock(&relay->lock);
    }
    pthread_mutex_unlock(&relay->lock);
    end_session(one);
    return NULL;
}

/* Cuts off a text what is behind its first line; NULL: nothing is. */
static char *next_line(char *text)
{
    char *end = text != NULL ? strchr(text, '\n') : NULL;
    if (end != NULL) {
        *end++ = '\0';
    }
    return end;
}

/* Session of another worker, whose name and state come behind the tenant; none: a new one. */
static enum status take_luggage(struct relayed *one, char *lines, struct error *error)
{
    char *state = next_line(lines);
    if (lines != NULL) {
        one->name = strdup(lines);
        one->state = strdup(state != NULL ? state : "");
        TRY(memory_check(one->name, error, "session: out of memory"));
        TRY(memory_check(one->state, error, "session: out of memory"));
    }
    return STATUS_OK;
}

static void free_session(struct relayed *one)
{
    if (one != NULL) {
        talk_destroy(one->talk);
        free_relayed(one);
    }
}

/* With the lock held, on the wire's thread, whose signals are blocked. */
static enum status begin_session(struct session_relay *relay, const struct envelope *open,
                                 struct error *error)
{
    char *tenant = envelope_text(open);
    char *luggage = open->kind == ENVELOPE_GO_ON ? next_line(tenant) : NULL;
    pthread_t thread;
    struct relayed *one = NULL;
    /* Those that are about to end count. */
    enum status status =
        relay->session_count < 2 * relay->options.places
            ? STATUS_OK
            : error_set(error, STATUS_BUSY, "every seat is taken: sessions end, try again");
    if (status == STATUS_OK) {
        one = calloc(1, sizeof *one);
        status = memory_check(one, error, "session: out of memory");
    }
    THEN(status, memory_check(tenant, error, "session: out of memory"));
    THEN(status, take_luggage(one, luggage, error));
    THEN(status, talk_create(relay->options.talk, tenant, &one->talk, error));
    THEN(status, lane_open(relay->wire, open->session, &one->lane, error));
    free(tenant);
    if (status == STATUS_OK) {
        one->relay = relay;
        one->session = open->session;
        one->tells = open->kind == ENVELOPE_GO_ON;
        pthread_cond_init(&one->changed, NULL);
        one->next = relay->sessions;
        relay->sessions = one;
        relay->session_count++;
        if (pthread_create(&thread, NULL, run_session, one) == 0) {
            pthread_detach(thread);
            return STATUS_OK;
        }
        relay->sessions = one->next;
        relay->session_count--;
        pthread_cond_destroy(&one->changed);
        lane_close(one->lane, 0, NULL);
        status = error_set(error, STATUS_NO_MEMORY, "session: no thread for it");
    }
    free_session(one);
    return status;
}

/* With the lock held. NULL: it is over. */
static struct relayed *session_of(const struct session_relay *relay, uint64_t session)
{
    struct relayed *one = relay->sessions;
    while (one != NULL && (one->session != session || one->closed)) {
        one = one->next;
    }
    return one;
}

/* With the lock held: sessions end as soon as what they do is done. */
static void close_session(struct relayed *one)
{
    one->closed = true;
    pthread_cond_signal(&one->changed);
}

/* ---- what the relay says ---- */

/* One envelope of a session that has no lane, or none yet. */
static void say_once(struct session_relay *relay, uint64_t session, uint32_t kind, char *text)
{
    struct lane *lane = NULL;
    struct error error;
    if (lane_open(relay->wire, session, &lane, &error) != STATUS_OK) {
        free(text);
        wire_stop(relay->wire, WIRE_FAILED);
        return;
    }
    lane_close(lane, kind, text);
}

static enum status find_scenario(const struct session_relay *relay, const char *id,
                                 struct json_text *text, struct error *error)
{
    struct interactive *pool = relay->options.talk->pool;
    for (uint32_t i = 0; i < interactive_scenarios(pool); i++) {
        const struct scenario_document *document = interactive_document(pool, i);
        if (strcmp(document->scenario.id, id) == 0) {
            TRY(drive_json_begin(document, text, error));
            return text->bytes + ENVELOPE_HEAD_BYTES <= ENVELOPE_BYTES_MAX
                       ? STATUS_OK
                       : error_set(error, STATUS_LIMIT,
                                   "scenario %s: its document has %zu bytes, more than are relayed",
                                   id, text->bytes);
        }
    }
    return error_set(error, STATUS_NOT_FOUND, "there is no scenario \"%s\"", id);
}

static void answer(struct session_relay *relay, const struct envelope *envelope)
{
    struct json_text text = {0};
    struct error error;
    char *id = envelope_text(envelope);
    enum status status = memory_check(id, &error, "scenario: out of memory");
    THEN(status, find_scenario(relay, id, &text, &error));
    free(id);
    if (status == STATUS_OK) {
        say_once(relay, envelope->session, ENVELOPE_SAY, strndup(text.data, text.bytes));
    } else {
        say_once(relay, envelope->session, ENVELOPE_CLOSE, strdup(error.text));
    }
    free(text.data);
}

/* With the lock held. */
static enum status take(struct relayed *one, const struct envelope *envelope, struct error *error)
{
    char *text = envelope_text(envelope);
    TRY(memory_check(text, error, "session: out of memory"));
    if (one->count == ENVELOPE_AHEAD || envelope->text_bytes > WIRE_MESSAGE_BYTES) {
        free(text);
        return error_set(error, STATUS_LIMIT, "more or longer messages than are ordered");
    }
    one->box[(one->first + one->count++) % ENVELOPE_AHEAD] = text;
    pthread_cond_signal(&one->changed);
    return STATUS_OK;
}

/* With the lock held. */
static enum status obey(struct session_relay *relay, const struct envelope *envelope,
                        struct error *error)
{
    struct relayed *one = session_of(relay, envelope->session);
    if ((envelope->kind == ENVELOPE_OPEN || envelope->kind == ENVELOPE_GO_ON) && one == NULL) {
        struct error why;
        if (begin_session(relay, envelope, &why) != STATUS_OK) {
            say_once(relay, envelope->session, ENVELOPE_CLOSE, strdup(why.text));
        }
        return STATUS_OK;
    }
    if (envelope->kind == ENVELOPE_SAY) {
        return one != NULL ? take(one, envelope, error) : STATUS_OK;
    }
    if (envelope->kind == ENVELOPE_CLOSE) {
        if (one != NULL) {
            close_session(one);
        }
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT, "expected no envelope of kind %d",
                     (int)envelope->kind);
}

static void take_envelope(void *context, const char *data, size_t bytes)
{
    struct session_relay *relay = context;
    struct envelope envelope;
    struct error error;
    enum status status = envelope_read(data, bytes, &envelope, &error);
    if (status == STATUS_OK && envelope.kind == ENVELOPE_ASK) {
        answer(relay, &envelope);
        return;
    }
    pthread_mutex_lock(&relay->lock);
    THEN(status, obey(relay, &envelope, &error));
    pthread_mutex_unlock(&relay->lock);
    if (status != STATUS_OK) {
        log_event(relay->options.logger, LOG_ERROR, "%s: %s", relay->options.url, error.text);
        wire_stop(relay->wire, WIRE_WRONG);
    }
}

/* ---- the connection ---- */

/* Who this is and what it has. NULL: out of memory. */
static char *describe(const struct session_relay *relay)
{
    const struct talk_options *talk = relay->options.talk;
    struct tick_tier tiers[DEADLINE_TIERS_MAX];
    uint32_t count = interactive_ticks(talk->pool, NULL, tiers);
    json_t *ways = json_array();
    json_t *ids = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(
            ways, json_pack("{s:s,s:i}", "tier", tiers[i].tier, "steps", (int)tiers[i].steps));
    }
    for (uint32_t i = 0; i < interactive_scenarios(talk->pool); i++) {
        json_array_append_new(ids, json_string(interactive_document(talk->pool, i)->scenario.id));
    }
    json_t *object = json_pack("{s:s,s:i,s:s,s:s,s:o,s:o}", "worker", relay->name, "places",
                               (int)relay->options.places, "world", talk->world, "model",
                               relay->options.model, "tiers", ways, "scenarios", ids);
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}

/* The wire is everybody's to stop while it runs. */
static void set_wire(struct session_relay *relay, struct wire *wire)
{
    pthread_mutex_lock(&relay->lock);
    relay->wire = wire;
    if (wire != NULL && relay->stopping) {
        wire_stop(wire, WIRE_GOES_AWAY);
    }
    pthread_mutex_unlock(&relay->lock);
}

static void end_sessions(struct session_relay *relay)
{
    pthread_mutex_lock(&relay->lock);
    for (struct relayed *one = relay->sessions; one != NULL; one = one->next) {
        close_session(one);
    }
    while (relay->sessions != NULL) {
        pthread_cond_wait(&relay->changed, &relay->lock);
    }
    pthread_mutex_unlock(&relay->lock);
}

/* The first time that it is attached, for whoever started it; later ones are in the log. */
static void announce(struct session_relay *relay)
{
    if (!relay->announced) {
        relay->announced =
            text_print(stdout, "%s/web/wheel.html as %s\n", relay->options.url, relay->name) >= 0 &&
            fflush(stdout) == 0;
    }
    log_event(relay->options.logger, LOG_INFO, "attached to %s as %s", relay->options.url,
              relay->name);
}

/* Tells the relay, when it has changed, how many sessions there is time for: it sends people to
 * workers that have some. */
static void tell_room(struct session_relay *relay)
{
    const struct interactive_counts counts = interactive_counts(relay->options.talk->pool);
    char text[16];
    if (counts.seated + counts.room != relay->room) {
        relay->room = counts.seated + counts.room;
        snprintf(text, sizeof text, "%" PRIu32, relay->room);
        say_once(relay, 0, ENVELOPE_SAY, strdup(text));
    }
}

/* Tells the relay, which may be too old to listen, what ticks took since it was told last. */
static void tell_ticks(struct session_relay *relay)
{
    struct tick_tier now[DEADLINE_TIERS_MAX];
    uint32_t count = interactive_ticks(relay->options.talk->pool, NULL, now);
    char *text = ticks_tell(now, relay->told, count);
    if (text != NULL && text[0] != '\0') {
        say_once(relay, 0, ENVELOPE_SHOW, text);
    } else {
        free(text);
    }
}

static void tell_news(void *context)
{
    struct session_relay *relay = context;
    tell_room(relay);
    tell_ticks(relay);
}

/* Tells a relay, which may be too old to listen, whose sessions this worker takes up; before it
 * attaches, for the lane that was opened last sends first. */
static void say_kin(struct session_relay *relay)
{
    char kin[SHA256_HEX_BYTES];
    interactive_kin(relay->options.talk->pool, kin);
    if (kin[0] != '\0') {
        say_once(relay, 0, ENVELOPE_TAKEN, strdup(kin));
    }
}

/* Attached until the connection ends. */
static enum status serve_once(struct session_relay *relay, struct error *error)
{
    struct http_dial *dial = NULL;
    struct wire *wire = NULL;
    struct wire_options options = {
        /* Of the relay: a client's message, a session to go on with, or a scenario's id. */
        .message_max = ENVELOPE_HEAD_BYTES + WIRE_MESSAGE_BYTES,
        .envelope = take_envelope,
        .look = tell_news,
        .context = relay,
    };
    TRY(http_dial_open(relay->transport, "/v1/sessions/worker", &dial, error));
    http_dial_wire(dial, &options);
    enum status status = wire_create(&options, &wire, error);
    if (status == STATUS_OK) {
        set_wire(relay, wire);
        say_once(relay, 0, ENVELOPE_ATTACH, describe(relay));
        say_kin(relay);
        relay->room = relay->options.places; /* as one is taken to have who says nothing */
        announce(relay);
        wire_run(wire);
        end_sessions(relay);
        set_wire(relay, NULL);
    }
    wire_destroy(wire);
    http_dial_close(dial);
    return status;
}

/* With the lock held: a pause from half of that time to all of it, so that workers of a server that
 * comes back do not come at once. */
static void pause_for(struct session_relay *relay, int64_t ms)
{
    uint32_t random = 0;
    CHECK(getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random);
    const struct timespec until = clock_moment_in((ms / 2 + random % (ms / 2)) * NS_PER_MS);
    while (!relay->stopping && pthread_cond_timedwait(&relay->changed, &relay->lock, &until) == 0) {
    }
}

static void *run(void *context)
{
    struct session_relay *relay = context;
    int64_t pause_ms = PAUSE_MS_MIN;
    pthread_mutex_lock(&relay->lock);
    while (!relay->stopping && !relay->refused) {
        struct error error = {.text = "the connection has ended"};
        pthread_mutex_unlock(&relay->lock);
        enum status status = serve_once(relay, &error);
        pthread_mutex_lock(&relay->lock);
        if (status == STATUS_STORE || status == STATUS_USAGE) {
            relay->refused = true;
            relay->why = error;
        } else if (!relay->stopping) {
            pause_ms = status == STATUS_OK ? PAUSE_MS_MIN : pause_ms;
            log_event(relay->options.logger, LOG_WARNING, "%s: %s; attaching again",
                      relay->options.url, error.text);
            pause_for(relay, pause_ms);
            pause_ms = 2 * pause_ms < PAUSE_MS_MAX ? 2 * pause_ms : PAUSE_MS_MAX;
        }
    }
    pthread_mutex_unlock(&relay->lock);
    return NULL;
}

/* ---- life ---- */

bool session_relay_refused(struct session_relay *relay, struct error *error)
{
    pthread_mutex_lock(&relay->lock);
    bool refused = relay->refused;
    if (refused) {
        *error = relay->why;
    }
    pthread_mutex_unlock(&relay->lock);
    return refused;
}

static void finish(struct session_relay *relay)
{
    http_transport_destroy(relay->transport);
    pthread_cond_destroy(&relay->changed);
    pthread_mutex_destroy(&relay->lock);
    free(relay);
}

enum status session_relay_start(const struct session_relay_options *options,
                                struct session_relay **out, struct error *error)
{
    char host[HOST_BYTES] = "";
    sigset_t all;
    sigset_t before;
    if (!store_url_is_http(options->url) || strncmp(options->url, "unix:", 5) == 0) {
        return error_set(error, STATUS_USAGE,
                         "--relay: expected the http(s):// address of a store's server, found "
                         "\"%.200s\"",
                         options->url);
    }
    struct session_relay *relay = calloc(1, sizeof *relay);
    TRY(memory_check(relay, error, "sessions: out of memory"));
    relay->options = *options;
    pthread_mutex_init(&relay->lock, NULL);
    clock_condition_init(&relay->changed);
    (void)gethostname(host, sizeof host - 1);
    snprintf(relay->name, sizeof relay->name, "%s-%ld", host, (long)getpid());
    enum status status = http_transport_create(options->url, getenv("SWERVE_TOKEN_FILE"),
                                               getenv("SWERVE_CA_FILE"), &relay->transport, error);
    if (status == STATUS_OK) {
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        if (pthread_create(&relay->thread, NULL, run, relay) != 0) {
            status = error_set(error, STATUS_NO_MEMORY, "sessions: no thread for the relay");
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (status != STATUS_OK) {
        finish(relay);
        return status;
    }
    *out = relay;
    return STATUS_OK;
}

void session_relay_stop(struct session_relay *relay)
{
    if (relay == NULL) {
        return;
    }
    pthread_mutex_lock(&relay->lock);
    relay->stopping = true;
    if (relay->wire != NULL) {
        wire_stop(relay->wire, WIRE_GOES_AWAY);
    }
    pthread_cond_broadcast(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
    pthread_join(relay->thread, NULL);
    finish(relay);
}
