/*
 * WebSocket by libwslay, over a socket that poll() watches. See session_wire.h.
 */
#include "cli/session/session_wire.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wslay/wslay.h>

enum {
    ROUND_BYTES = 64 << 10, /* read at a time, between looks at what is to be sent or to stop */
    QUEUED_MAX = 64,        /* messages that are not sent; more, and nothing is read */
    PART_MS = 1000,         /* until a close frame has to be sent and read */
};

struct wire {
    int fd;
    int bell; /* eventfd: there is something to send, or to stop */
    wslay_event_context_ptr events;
    wire_message *message;
    void *context;
    uint8_t *begin; /* bytes that were read before, owned */
    size_t begin_bytes, begin_taken;
    int64_t heard_ns;
    int64_t pinged_ns;
    size_t round_bytes; /* read since the last look */
    bool broken;        /* the socket, or what came of it */
    bool wrong;         /* a frame of the client broke the protocol */
    /* of all threads */
    pthread_mutex_t lock;
    uint16_t stopping; /* close code by which it is to end; 0: it goes on */
    char *texts[WIRE_TEXTS_MAX];
    uint32_t text_first, text_count;
    char *frame; /* NULL: none that is new */
    uint8_t *bytes;
    size_t byte_count;
};

/* ---- the library's calls ---- */

static ssize_t take_bytes(wslay_event_context_ptr events, uint8_t *out, size_t capacity, int flags,
                          void *context)
{
    struct wire *wire = context;
    (void)flags;
    size_t left = wire->begin_bytes - wire->begin_taken;
    if (left > 0) {
        size_t count = left < capacity ? left : capacity;
        memcpy(out, wire->begin + wire->begin_taken, count);
        wire->begin_taken += count;
        return (ssize_t)count;
    }
    bool enough = wire->round_bytes >= ROUND_BYTES;
    ssize_t count = enough ? -1 : recv(wire->fd, out, capacity, 0);
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
    ssize_t sent = last ? send(wire->fd, coded, sizeof coded, MSG_NOSIGNAL)
                        : send(wire->fd, data, count, MSG_NOSIGNAL);
    if (sent >= 0) {
        return last ? (ssize_t)sizeof bare : sent;
    }
    bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    wire->broken = wire->broken || !later;
    wslay_event_set_error(events, later ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static void take_message(wslay_event_context_ptr events,
                         const struct wslay_event_on_msg_recv_arg *message, void *context)
{
    struct wire *wire = context;
    (void)events;
    wire->heard_ns = clock_monotonic_ns();
    if (message->opcode == WSLAY_TEXT_FRAME) {
        wire->message(wire->context, (const char *)message->msg, message->msg_length);
    } else if (message->opcode == WSLAY_BINARY_FRAME) {
        wslay_event_queue_close(wire->events, WSLAY_CODE_UNSUPPORTED_DATA, NULL, 0);
    }
}

/* ---- life ---- */

enum status wire_create(int fd, const void *begin, size_t begin_bytes, wire_message *message,
                        void *context, struct wire **out, struct error *error)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = take_bytes,
        .send_callback = give_bytes,
        .on_msg_recv_callback = take_message,
    };
    struct wire *wire = calloc(1, sizeof *wire);
    TRY(memory_check(wire, error, "WebSocket: out of memory"));
    wire->fd = fd;
    wire->message = message;
    wire->context = context;
    wire->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    wire->begin = malloc(begin_bytes + 1);
    wire->heard_ns = clock_monotonic_ns();
    pthread_mutex_init(&wire->lock, NULL);
    int flags = fcntl(fd, F_GETFL);
    bool good = wire->begin != NULL && wire->bell >= 0 && flags >= 0 &&
                fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
                wslay_event_context_server_init(&wire->events, &callbacks, wire) == 0;
    if (!good) {
        wire_destroy(wire);
        return error_set(error, STATUS_NO_MEMORY, "WebSocket: cannot be set up: %s",
                         strerror(errno));
    }
    memcpy(wire->begin, begin, begin_bytes);
    wire->begin_bytes = begin_bytes;
    wslay_event_config_set_max_recv_msg_length(wire->events, WIRE_MESSAGE_BYTES);
    *out = wire;
    return STATUS_OK;
}

void wire_destroy(struct wire *wire)
{
    if (wire == NULL) {
        return;
    }
    if (wire->events != NULL) {
        wslay_event_context_free(wire->events);
    }
    for (uint32_t i = 0; i < wire->text_count; i++) {
        free(wire->texts[(wire->text_first + i) % WIRE_TEXTS_MAX]);
    }
    if (wire->bell >= 0) {
        close(wire->bell);
    }
    free(wire->frame);
    free(wire->bytes);
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

void wire_stop(struct wire *wire)
{
    pthread_mutex_lock(&wire->lock);
    stop(wire, WSLAY_CODE_GOING_AWAY);
    pthread_mutex_unlock(&wire->lock);
    ring(wire);
}

void wire_say(struct wire *wire, char *text)
{
    pthread_mutex_lock(&wire->lock);
    if (text == NULL || wire->text_count == WIRE_TEXTS_MAX) {
        stop(wire, text == NULL ? WSLAY_CODE_INTERNAL_SERVER_ERROR : WSLAY_CODE_POLICY_VIOLATION);
        free(text);
    } else {
        wire->texts[(wire->text_first + wire->text_count++) % WIRE_TEXTS_MAX] = text;
    }
    pthread_mutex_unlock(&wire->lock);
    ring(wire);
}

void wire_show(struct wire *wire, char *text, const uint8_t *bytes, size_t count)
{
    pthread_mutex_lock(&wire->lock);
    if (wire->byte_count != count) {
        free(wire->bytes);
        wire->bytes = malloc(count + 1);
        wire->byte_count = count;
    }
    free(wire->frame);
    wire->frame = text;
    if (text == NULL || wire->bytes == NULL) {
        stop(wire, WSLAY_CODE_INTERNAL_SERVER_ERROR);
    } else {
        memcpy(wire->bytes, bytes, count);
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

/* Texts go at once; a frame only when all before it is sent. Returns the close code by which it is
 * to end, 0: it goes on. */
static uint16_t queue_what_is_new(struct wire *wire)
{
    uint64_t unused;
    while (read(wire->bell, &unused, sizeof unused) > 0) {
    }
    pthread_mutex_lock(&wire->lock);
    for (; wire->text_count > 0; wire->text_count--) {
        char *text = wire->texts[wire->text_first];
        queue(wire, WSLAY_TEXT_FRAME, text, strlen(text));
        free(text);
        wire->text_first = (wire->text_first + 1) % WIRE_TEXTS_MAX;
    }
    if (wire->frame != NULL && !wslay_event_want_write(wire->events)) {
        queue(wire, WSLAY_TEXT_FRAME, wire->frame, strlen(wire->frame));
        queue(wire, WSLAY_BINARY_FRAME, wire->bytes, wire->byte_count);
        free(wire->frame);
        wire->frame = NULL;
    }
    uint16_t code = wire->stopping;
    pthread_mutex_unlock(&wire->lock);
    return code;
}

/* Whether the client still is there; it is asked now and then. */
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

/* Until that moment waits for the socket. False: it is over. */
static bool wait_until(const struct wire *wire, short events, int64_t end_ns)
{
    struct pollfd fd = {wire->fd, events, 0};
    int64_t left_ns = end_ns - clock_monotonic_ns();
    return left_ns > 0 && (poll(&fd, 1, (int)(left_ns / NS_PER_MS) + 1) >= 0 || errno == EINTR);
}

/* Says why it ends where that is not said yet, and takes what still comes: a socket that is closed
 * with bytes unread takes back what is on its way. */
static void part(struct wire *wire, uint16_t code)
{
    uint8_t unused[4096];
    int64_t end_ns = clock_monotonic_ns() + PART_MS * NS_PER_MS;
    if (code != 0) {
        wslay_event_queue_close(wire->events, code, NULL, 0); /* refused where one is queued */
    }
    while (!wire->broken && wslay_event_want_write(wire->events)) {
        if (wslay_event_send(wire->events) != 0 || !wait_until(wire, POLLOUT, end_ns)) {
            break;
        }
    }
    shutdown(wire->fd, SHUT_WR);
    while (!wire->broken && wait_until(wire, POLLIN, end_ns)) {
        ssize_t count = recv(wire->fd, unused, sizeof unused, 0);
        wire->broken = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
    }
}

/* One wait for the socket or the bell, and what comes of it. False: it is over, or code has why. */
static bool go_on(struct wire *wire, uint16_t *code)
{
    bool reads = wslay_event_want_read(wire->events) != 0 &&
                 wslay_event_get_queued_msg_count(wire->events) < QUEUED_MAX;
    bool writes = wslay_event_want_write(wire->events) != 0;
    if (!reads && !writes) {
        return false; /* closed by both sides */
    }
    struct pollfd fds[] = {
        {wire->fd, (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0},
        {wire->bell, POLLIN, 0},
    };
    bool waiting = wire->begin_taken < wire->begin_bytes;
    if (poll(fds, COUNT_OF(fds), waiting ? 0 : WIRE_PING_MS) < 0 && errno != EINTR) {
        return false;
    }
    bool readable = reads && (waiting || (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0);
    wire->round_bytes = 0;
    if (readable && wslay_event_recv(wire->events) != 0) {
        *code = WSLAY_CODE_PROTOCOL_ERROR;
        wire->wrong = true;
        return false;
    }
    return !wslay_event_want_write(wire->events) || wslay_event_send(wire->events) == 0;
}

void wire_run(struct wire *wire)
{
    uint16_t code = 0;
    bool goes_on = true;
    while (goes_on && !wire->broken) {
        code = queue_what_is_new(wire);
        code = code == 0 && !listens(wire) ? WSLAY_CODE_POLICY_VIOLATION : code;
        goes_on = code == 0 && go_on(wire, &code);
    }
    part(wire, code);
}
