/*
 * WebSocket by libwslay, over a connection that poll() watches. See wire.h.
 */
#include "base/websocket/wire.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "base/websocket/envelope.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wslay/wslay.h>

enum {
    OUT_BYTES = 16 << 10,   /* sent at a time: the library gives out 4 where it masks */
    ROUND_BYTES = 64 << 10, /* read at a time, between looks at what is to be sent or to stop */
    QUEUED_MAX = 64,        /* messages that are not sent; more, and nothing is read */
    PART_MS = 1000,         /* until a close frame has to be sent and read */
};

struct put_text {
    uint32_t kind;
    char *text; /* owned */
};

/* Guarded by its wire's lock. */
struct lane {
    struct wire *wire;
    uint64_t session;
    bool closed; /* goes when its last envelope is queued */
    bool held;   /* nothing of it is sent now */
    struct put_text texts[WIRE_TEXTS_MAX];
    uint32_t text_first, text_count;
    char *frame; /* NULL: none that is new */
    uint8_t *bytes;
    size_t byte_count;
    uint64_t shown; /* order in which lanes have had their turn */
    struct lane *next;
};

struct wire {
    struct wire_options options;
    int bell; /* eventfd: there is something to send, or to stop */
    wslay_event_context_ptr events;
    uint8_t *begin; /* bytes that were read before, owned */
    size_t begin_taken;
    int64_t heard_ns;
    int64_t pinged_ns;
    int64_t looked_ns;
    size_t out_first, out_end; /* of `out`, on their way */
    size_t round_bytes;        /* read since the last look */
    bool more;                 /* may be there beyond these */
    bool broken;               /* the connection, or what came of it */
    bool wrong;                /* a frame of the other side broke the protocol */
    uint64_t turns;
    void (*ended)(void *context);
    void *ended_context;
    /* of all threads */
    pthread_mutex_t lock;
    uint16_t stopping; /* close code by which it is to end; 0: it goes on */
    struct lane own;   /* of a wire of texts */
    struct lane *lanes;
    uint8_t out[OUT_BYTES];
};

/* ---- the library's calls ---- */

static ssize_t receive(const struct wire *wire, void *out, size_t capacity)
{
    const struct wire_options *options = &wire->options;
    return options->receive != NULL ? options->receive(options->end, out, capacity)
                                    : recv(options->fd, out, capacity, 0);
}

static ssize_t send_bytes(const struct wire *wire, const void *data, size_t count)
{
    const struct wire_options *options = &wire->options;
    return options->send != NULL ? options->send(options->end, data, count)
                                 : send(options->fd, data, count, MSG_NOSIGNAL);
}

static ssize_t take_bytes(wslay_event_context_ptr events, uint8_t *out, size_t capacity, int flags,
                          void *context)
{
    struct wire *wire = context;
    (void)flags;
    size_t left = wire->options.begin_bytes - wire->begin_taken;
    if (left > 0) {
        size_t count = left < capacity ? left : capacity;
        memcpy(out, wire->begin + wire->begin_taken, count);
        wire->begin_taken += count;
        return (ssize_t)count;
    }
    bool enough = wire->round_bytes >= ROUND_BYTES;
    ssize_t count = enough ? -1 : receive(wire, out, capacity);
    wire->more = enough;
    if (count > 0) {
        wire->round_bytes += (size_t)count;
        return count;
    }
    bool later =
        enough || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
    wire->broken = wire->broken || !later;
    wslay_event_set_error(events, later ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

/* Sends what is on its way, as much as is taken. */
static void flush(struct wire *wire)
{
    while (wire->out_first < wire->out_end) {
        ssize_t sent =
            send_bytes(wire, wire->out + wire->out_first, wire->out_end - wire->out_first);
        if (sent < 0) {
            wire->broken =
                wire->broken || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
            return;
        }
        wire->out_first += (size_t)sent;
    }
    wire->out_first = 0;
    wire->out_end = 0;
}

static ssize_t give_bytes(wslay_event_context_ptr events, const uint8_t *data, size_t count,
                          int flags, void *context)
{
    struct wire *wire = context;
    /* The library closes without a code where the head of a frame is wrong. */
    static const uint8_t bare[] = {0x88, 0};
    static const uint8_t coded[] = {0x88, 2, WSLAY_CODE_PROTOCOL_ERROR >> 8,
                                    WSLAY_CODE_PROTOCOL_ERROR & 0xff};
    bool last = wire->wrong && wslay_event_get_queued_msg_count(events) == 1 &&
                count == sizeof bare && memcmp(data, bare, sizeof bare) == 0;
    (void)flags;
    if (OUT_BYTES - wire->out_end < sizeof coded) {
        flush(wire);
    }
    size_t room = OUT_BYTES - wire->out_end;
    if (room < sizeof coded) {
        wslay_event_set_error(events,
                              wire->broken ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    size_t taken = last ? sizeof coded : count < room ? count : room;
    memcpy(wire->out + wire->out_end, last ? coded : data, taken);
    wire->out_end += taken;
    return last ? (ssize_t)sizeof bare : (ssize_t)taken;
}

/* Whether something is queued or on its way. */
static bool wants_write(const struct wire *wire)
{
    return wslay_event_want_write(wire->events) != 0 || wire->out_first < wire->out_end;
}

static bool send_some(struct wire *wire)
{
    bool good = wslay_event_send(wire->events) == 0;
    flush(wire);
    return good && !wire->broken;
}

static int make_mask(wslay_event_context_ptr events, uint8_t *mask, size_t bytes, void *context)
{
    (void)events;
    (void)context;
    return getrandom(mask, bytes, 0) == (ssize_t)bytes ? 0 : -1;
}

static void take_message(wslay_event_context_ptr events,
                         const struct wslay_event_on_msg_recv_arg *message, void *context)
{
    struct wire *wire = context;
    (void)events;
    wire->heard_ns = clock_monotonic_ns();
    const struct wire_options *options = &wire->options;
    bool text = message->opcode == WSLAY_TEXT_FRAME;
    wire_message *take = text ? options->message : options->envelope;
    if (!text && message->opcode != WSLAY_BINARY_FRAME) {
        return;
    }
    if (take != NULL) {
        take(options->context, (const char *)message->msg, message->msg_length);
    } else {
        wslay_event_queue_close(wire->events, WSLAY_CODE_UNSUPPORTED_DATA, NULL, 0);
    }
}

/* ---- life ---- */

enum status wire_create(const struct wire_options *options, struct wire **out, struct error *error)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = take_bytes,
        .send_callback = give_bytes,
        .genmask_callback = make_mask,
        .on_msg_recv_callback = take_message,
    };
    struct wire *wire = calloc(1, sizeof *wire);
    TRY(memory_check(wire, error, "WebSocket: out of memory"));
    wire->options = *options;
    wire->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    wire->begin = malloc(options->begin_bytes + 1);
    wire->heard_ns = clock_monotonic_ns();
    wire->own.wire = wire;
    wire->lanes = options->message != NULL ? &wire->own : NULL;
    pthread_mutex_init(&wire->lock, NULL);
    int flags = fcntl(options->fd, F_GETFL);
    bool good =
        wire->begin != NULL && wire->bell >= 0 && flags >= 0 &&
        fcntl(options->fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
        (options->client ? wslay_event_context_client_init(&wire->events, &callbacks, wire)
                         : wslay_event_context_server_init(&wire->events, &callbacks, wire)) == 0;
    if (!good) {
        wire_destroy(wire);
        return error_set(error, STATUS_NO_MEMORY, "WebSocket: cannot be set up: %s",
                         strerror(errno));
    }
    if (options->begin_bytes > 0) {
        memcpy(wire->begin, options->begin, options->begin_bytes);
    }
    wslay_event_config_set_max_recv_msg_length(wire->events, options->message_max);
    *out = wire;
    return STATUS_OK;
}

/* Forgets all that it would have sent. */
static void empty_lane(struct lane *lane)
{
    for (; lane->text_count > 0; lane->text_count--) {
        free(lane->texts[lane->text_first].text);
        lane->text_first = (lane->text_first + 1) % WIRE_TEXTS_MAX;
    }
    free(lane->frame);
    free(lane->bytes);
    lane->frame = NULL;
    lane->bytes = NULL;
    lane->byte_count = 0;
}

static void free_lane(struct lane *lane)
{
    empty_lane(lane);
    if (lane != &lane->wire->own) {
        free(lane);
    }
}

void wire_destroy(struct wire *wire)
{
    if (wire == NULL) {
        return;
    }
    if (wire->events != NULL) {
        wslay_event_context_free(wire->events);
    }
    for (struct lane *lane = wire->lanes; lane != NULL;) {
        struct lane *next = lane->next;
        free_lane(lane);
        lane = next;
    }
    if (wire->bell >= 0) {
        close(wire->bell);
    }
    free(wire->begin);
    pthread_mutex_destroy(&wire->lock);
    free(wire);
}

/* ---- what others hand over ---- */

static void ring(struct wire *wire)
{
    const uint64_t one = 1;
    /* Full, it rings already. */
    ssize_t unused = write(wire->bell, &one, sizeof one);
    (void)unused;
}

/* `lock` is held; the first reason counts. */
static void stop(struct wire *wire, uint16_t code)
{
    wire->stopping = wire->stopping != 0 ? wire->stopping : code;
}

void wire_stop(struct wire *wire, enum wire_code code)
{
    pthread_mutex_lock(&wire->lock);
    stop(wire, (uint16_t)code);
    pthread_mutex_unlock(&wire->lock);
    ring(wire);
}

struct lane *wire_lane(struct wire *wire)
{
    return &wire->own;
}

enum status lane_open(struct wire *wire, uint64_t session, struct lane **out, struct error *error)
{
    struct lane *lane = calloc(1, sizeof *lane);
    TRY(memory_check(lane, error, "WebSocket: out of memory"));
    lane->wire = wire;
    lane->session = session;
    pthread_mutex_lock(&wire->lock);
    lane->next = wire->lanes;
    wire->lanes = lane;
    pthread_mutex_unlock(&wire->lock);
    *out = lane;
    return STATUS_OK;
}

/* `lock` is held. Takes the text. */
static void put(struct lane *lane, uint32_t kind, char *text)
{
    if (text == NULL || lane->text_count == WIRE_TEXTS_MAX) {
        stop(lane->wire, text == NULL ? WIRE_FAILED : WIRE_UNREAD);
        free(text);
    } else {
        lane->texts[(lane->text_first + lane->text_count++) % WIRE_TEXTS_MAX] =
            (struct put_text){kind, text};
    }
}

void wire_put(struct lane *lane, uint32_t kind, char *text)
{
    struct wire *wire = lane->wire;
    pthread_mutex_lock(&wire->lock);
    put(lane, kind, text);
    pthread_mutex_unlock(&wire->lock);
    ring(wire);
}

void wire_say(struct lane *lane, char *text)
{
    wire_put(lane, ENVELOPE_SAY, text);
}

void lane_close(struct lane *lane, uint32_t kind, char *text)
{
    if (lane == NULL) {
        return;
    }
    struct wire *wire = lane->wire;
    pthread_mutex_lock(&wire->lock);
    empty_lane(lane);
    if (kind != 0) {
        put(lane, kind, text);
    }
    lane->closed = true;
    pthread_mutex_unlock(&wire->lock);
    ring(wire);
}

void lane_hold(struct lane *lane, bool held)
{
    struct wire *wire = lane->wire;
    pthread_mutex_lock(&wire->lock);
    lane->held = held;
    pthread_mutex_unlock(&wire->lock);
    if (!held) {
        ring(wire);
    }
}

void wire_show(struct lane *lane, char *text, const uint8_t *bytes, size_t count)
{
    struct wire *wire = lane->wire;
    pthread_mutex_lock(&wire->lock);
    if (lane->bytes == NULL || lane->byte_count != count) {
        free(lane->bytes);
        lane->bytes = malloc(count + 1);
        lane->byte_count = count;
    }
    free(lane->frame);
    lane->frame = text;
    if (text == NULL || lane->bytes == NULL) {
        stop(wire, WIRE_FAILED);
    } else {
        memcpy(lane->bytes, bytes, count);
    }
    pthread_mutex_unlock(&wire->lock);
    ring(wire);
}

/* ---- running ---- */

static void queue(struct wire *wire, uint8_t opcode, const void *data, size_t count)
{
    const struct wslay_event_msg message = {opcode, data, count};
    wire->broken = wslay_event_queue_msg(wire->events, &message) != 0 || wire->broken;
}

static void queue_envelope(struct wire *wire, const struct envelope *envelope)
{
    size_t count = 0;
    void *data = envelope_make(envelope, &count);
    if (data == NULL) {
        wire->broken = true;
        return;
    }
    queue(wire, WSLAY_BINARY_FRAME, data, count);
    free(data);
}

static void queue_text(struct lane *lane, const struct put_text *put)
{
    struct wire *wire = lane->wire;
    if (lane == &wire->own) {
        queue(wire, WSLAY_TEXT_FRAME, put->text, strlen(put->text));
    } else {
        queue_envelope(wire, &(struct envelope){.session = lane->session,
                                                .kind = (enum envelope_kind)put->kind,
                                                .text = put->text,
                                                .text_bytes = strlen(put->text)});
    }
}

static void queue_frame(struct lane *lane)
{
    struct wire *wire = lane->wire;
    if (lane == &wire->own) {
        queue(wire, WSLAY_TEXT_FRAME, lane->frame, strlen(lane->frame));
        queue(wire, WSLAY_BINARY_FRAME, lane->bytes, lane->byte_count);
    } else {
        queue_envelope(wire, &(struct envelope){.session = lane->session,
                                                .kind = ENVELOPE_SHOW,
                                                .text = lane->frame,
                                                .text_bytes = strlen(lane->frame),
                                                .bytes = lane->bytes,
                                                .byte_count = lane->byte_count});
    }
    free(lane->frame);
    lane->frame = NULL;
    lane->shown = ++wire->turns;
}

/* Texts of a lane, as many as are not too many. */
static void queue_texts(struct lane *lane)
{
    struct wire *wire = lane->wire;
    while (lane->text_count > 0 &&
           (wire->stopping != 0 || wslay_event_get_queued_msg_count(wire->events) < QUEUED_MAX)) {
        struct put_text *first = &lane->texts[lane->text_first];
        queue_text(lane, first);
        free(first->text);
        lane->text_first = (lane->text_first + 1) % WIRE_TEXTS_MAX;
        lane->text_count--;
    }
}

/* Texts go at once; a frame only when all before it is sent, of the lane that has waited longest.
 * Returns the close code by which it is to end, 0: it goes on. */
static uint16_t queue_what_is_new(struct wire *wire)
{
    uint64_t unused;
    struct lane *next = NULL;
    while (read(wire->bell, &unused, sizeof unused) > 0) {
    }
    pthread_mutex_lock(&wire->lock);
    for (struct lane **at = &wire->lanes; *at != NULL;) {
        struct lane *lane = *at;
        if (lane->held && !lane->closed && wire->stopping == 0) {
            at = &lane->next;
            continue;
        }
        queue_texts(lane);
        if (lane->closed && lane->text_count == 0) {
            *at = lane->next;
            free_lane(lane);
            continue;
        }
        if (lane->frame != NULL && (next == NULL || lane->shown < next->shown)) {
            next = lane;
        }
        at = &lane->next;
    }
    if (next != NULL && !wants_write(wire)) {
        queue_frame(next);
    }
    uint16_t code = wire->stopping;
    pthread_mutex_unlock(&wire->lock);
    return code;
}

/* Whether the other side still is there; it is asked now and then. */
static bool listens(struct wire *wire)
{
    int64_t now_ns = clock_monotonic_ns();
    int64_t silent_ns = now_ns - wire->heard_ns;
    if (silent_ns > WIRE_PING_MS * NS_PER_MS &&
        now_ns - wire->pinged_ns > WIRE_PING_MS * NS_PER_MS) {
        queue(wire, WSLAY_PING, NULL, 0);
        wire->pinged_ns = now_ns;
    }
    return silent_ns < WIRE_SILENCE_MS * NS_PER_MS;
}

static void look(struct wire *wire)
{
    int64_t now_ns = clock_monotonic_ns();
    if (wire->options.look != NULL && now_ns - wire->looked_ns >= WIRE_LOOK_MS * NS_PER_MS) {
        wire->looked_ns = now_ns;
        wire->options.look(wire->options.context);
    }
}

/* Until that moment waits for the socket. False: it is over. */
static bool wait_until(const struct wire *wire, short events, int64_t end_ns)
{
    struct pollfd fd = {wire->options.fd, events, 0};
    int64_t left_ns = end_ns - clock_monotonic_ns();
    return left_ns > 0 && (poll(&fd, 1, (int)(left_ns / NS_PER_MS) + 1) >= 0 || errno == EINTR);
}

/* Sends all that is queued, as far as it is taken until that moment. */
static void send_all(struct wire *wire, int64_t end_ns)
{
    while (!wire->broken && wants_write(wire) && send_some(wire)) {
        if (wants_write(wire) && !wait_until(wire, POLLOUT, end_ns)) {
            break;
        }
    }
}

/* Says why it ends where that is not said yet, and takes what still comes: a socket that is closed
 * with bytes unread takes back what is on its way. */
static void part(struct wire *wire, uint16_t code)
{
    uint8_t unused[4096];
    int64_t end_ns = clock_monotonic_ns() + PART_MS * NS_PER_MS;
    if (code != 0) {
        send_all(wire, end_ns); /* the library sends what closes before what was said */
        wslay_event_queue_close(wire->events, code, NULL, 0); /* refused where one is queued */
    }
    send_all(wire, end_ns);
    if (wire->options.send == NULL) {
        shutdown(wire->options.fd, SHUT_WR);
    }
    while (!wire->broken && wait_until(wire, POLLIN, end_ns)) {
        ssize_t count = receive(wire, unused, sizeof unused);
        wire->broken = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
    }
}

/* One wait for the socket or the bell, and what comes of it. False: it is over, or code has why. */
static bool go_on(struct wire *wire, uint16_t *code)
{
    bool reads = wslay_event_want_read(wire->events) != 0 &&
                 wslay_event_get_queued_msg_count(wire->events) < QUEUED_MAX;
    bool writes = wants_write(wire);
    if (!reads && !writes) {
        return false; /* closed by both sides */
    }
    struct pollfd fds[] = {
        {wire->options.fd, (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0},
        {wire->bell, POLLIN, 0},
    };
    bool waiting = wire->begin_taken < wire->options.begin_bytes || wire->more;
    int wait_ms = wire->options.look != NULL ? WIRE_LOOK_MS : WIRE_PING_MS;
    if (poll(fds, COUNT_OF(fds), waiting ? 0 : wait_ms) < 0 && errno != EINTR) {
        return false;
    }
    bool readable = reads && (waiting || (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0);
    wire->round_bytes = 0;
    if (readable && wslay_event_recv(wire->events) != 0) {
        *code = WSLAY_CODE_PROTOCOL_ERROR;
        wire->wrong = true;
        return false;
    }
    return !wants_write(wire) || send_some(wire);
}

void wire_run(struct wire *wire)
{
    uint16_t code = 0;
    bool goes_on = true;
    while (goes_on && !wire->broken) {
        look(wire);
        code = queue_what_is_new(wire);
        code = code == 0 && !listens(wire) ? WSLAY_CODE_POLICY_VIOLATION : code;
        goes_on = code == 0 && go_on(wire, &code);
    }
    part(wire, code);
}

static void *run_apart(void *context)
{
    struct wire *wire = context;
    void (*ended)(void *) = wire->ended;
    void *ended_context = wire->ended_context;
    wire_run(wire);
    ended(ended_context);
    return NULL;
}

bool wire_start(struct wire *wire, void (*ended)(void *context), void *context)
{
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    wire->ended = ended;
    wire->ended_context = context;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool started = pthread_create(&thread, NULL, run_apart, wire) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) {
        pthread_detach(thread);
    }
    return started;
}
