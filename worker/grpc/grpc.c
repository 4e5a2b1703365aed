/*
 * gRPC client. See grpc.h.
 *
 * libnghttp2 keeps the streams and makes the frames; this file moves bytes between it and a socket
 * that never blocks, and reads of each stream what gRPC puts there: a message behind five bytes of
 * length, and a status in the trailers.
 */
#include "worker/grpc/grpc.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "worker/grpc/grpc_frame.h"
#include "worker/grpc/grpc_peer.h"
#include "worker/grpc/grpc_socket.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    OUT_BYTES = 1 << 17,
    IN_BYTES = 1 << 16,
    ROUNDS_MAX = 16, /* of reading, between looks at the deadline */
    CLIENTS_MAX = 64,
    REVISION_BYTES = 32,
};

struct grpc_call {
    struct grpc_call *next;
    char method[96];
    struct grpc_frame question;
    uint8_t *reply; /* with its prefix */
    size_t reply_bytes, reply_room;
    int http_status; /* 0: not heard */
    int code;        /* gRPC's; -1: not heard */
    bool ended;
    char sentence[GRPC_MESSAGE_BYTES];
    char revision[REVISION_BYTES];
};

struct grpc_client {
    struct grpc_peer peer; /* first: the session's callbacks count there */
    char address[GRPC_ADDRESS_BYTES];
    int fd;
    uint32_t open_calls, reply_bytes_max;
    const atomic_bool *abandoned; /* borrowed; NULL: nobody gives it up */
    nghttp2_session *session;
    struct grpc_call *calls;
    uint8_t *out; /* [OUT_BYTES], what the socket has not taken: out[out_at .. out_end) */
    size_t out_at, out_end;
    bool ended;                       /* the server closed the connection */
    char goodbye[GRPC_MESSAGE_BYTES]; /* what it said with a GOAWAY; "": nothing */
    struct error why;                 /* STATUS_OK: nothing is wrong */
};

static const char *const code_names[] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

/* ---- what nghttp2 asks and tells ---- */

static ssize_t give_message(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room,
                            uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct grpc_call *call = source->ptr;
    size_t now = grpc_frame_give(&call->question, to, room);
    (void)session;
    (void)stream;
    (void)context;
    if (call->question.sent == call->question.bytes) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)now;
}

static int take_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                     size_t bytes, void *context)
{
    struct grpc_client *client = context;
    struct grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);
    (void)flags;
    if (call == NULL) {
        return 0;
    }
    const size_t room_max = GRPC_PREFIX_BYTES + (size_t)client->reply_bytes_max;
    if (bytes > room_max - call->reply_bytes) {
        error_set(&client->why, STATUS_IO, "%s answers with more than %u MiB", call->method,
                  client->reply_bytes_max >> 20);
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (call->reply_bytes + bytes > call->reply_room) {
        size_t room = 2 * (call->reply_bytes + bytes);
        room = room < room_max ? room : room_max;
        uint8_t *now = realloc(call->reply, room);
        if (now == NULL) {
            error_set(&client->why, STATUS_NO_MEMORY, "out of memory");
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
        call->reply = now;
        call->reply_room = room;
    }
    memcpy(call->reply + call->reply_bytes, data, bytes);
    call->reply_bytes += bytes;
    return 0;
}

/* A sentence whose bytes beyond ASCII are written %XX; what it holds is printed by others. */
static void take_sentence(char *to, size_t room, const uint8_t *from, size_t bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < bytes && used + 1 < room; i++) {
        uint8_t c = from[i];
        if (c == '%' && i + 2 < bytes && text_hex_digit(from[i + 1]) >= 0 &&
            text_hex_digit(from[i + 2]) >= 0) {
            c = (uint8_t)(16 * text_hex_digit(from[i + 1]) + text_hex_digit(from[i + 2]));
            i += 2;
        }
        to[used++] = (char)(c == '\0' || c == '\n' || c == '\r' ? ' ' : c);
    }
    to[used] = '\0';
}

static bool is_name(const uint8_t *name, size_t bytes, const char *expected)
{
    return bytes == strlen(expected) && memcmp(name, expected, bytes) == 0;
}

static int number_of(const uint8_t *value, size_t bytes)
{
    int number = 0;
    if (bytes == 0 || bytes > 4) {
        return -1;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (value[i] < '0' || value[i] > '9') {
            return -1;
        }
        number = 10 * number + (value[i] - '0');
    }
    return number;
}

static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                       void *context)
{
    struct grpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags;
    if (!grpc_peer_header(context, name_bytes, value_bytes)) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (call == NULL) {
        return 0;
    }
    if (is_name(name, name_bytes, ":status")) {
        call->http_status = number_of(value, value_bytes);
    } else if (is_name(name, name_bytes, "grpc-status")) {
        call->code = number_of(value, value_bytes);
    } else if (is_name(name, name_bytes, "grpc-message")) {
        take_sentence(call->sentence, sizeof call->sentence, value, value_bytes);
    } else if (is_name(name, name_bytes, GRPC_REVISION_NAME)) {
        take_sentence(call->revision, sizeof call->revision, value, value_bytes);
    }
    return 0;
}

/* Keeps why the server wants no further call. */
static int take_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct grpc_client *client = context;
    char text[GRPC_MESSAGE_BYTES / 2];
    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        take_sentence(text, sizeof text, frame->goaway.opaque_data, frame->goaway.opaque_data_len);
        snprintf(client->goodbye, sizeof client->goodbye, "; it said GOAWAY (%s%s%s)",
                 nghttp2_http2_strerror(frame->goaway.error_code), text[0] != '\0' ? ": " : "",
                 text);
    }
    return 0;
}

/* Whether the reply is one whole message, or none. */
static bool is_whole(const struct grpc_call *call)
{
    return call->reply_bytes == 0 ? call->code != GRPC_OK
                                  : grpc_frame_is_whole(call->reply, call->reply_bytes);
}

static int take_end(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
    struct grpc_client *client = context;
    struct grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);
    if (call == NULL || call->ended) {
        return 0;
    }
    call->ended = true;
    client->open_calls--;
    grpc_peer_called(&client->peer);
    if (client->why.status != STATUS_OK) {
        return 0;
    }
    if (call->http_status != 200 && call->http_status != 0) {
        error_set(&client->why, STATUS_IO, "%s answers with HTTP status %d; expected a gRPC server",
                  call->method, call->http_status);
    } else if (call->code < 0) {
        error_set(&client->why, STATUS_IO, "%s ended without a gRPC status (HTTP/2 error %u: %s)%s",
                  call->method, code, nghttp2_http2_strerror(code), client->goodbye);
    } else if (!is_whole(call)) {
        error_set(&client->why, STATUS_IO,
                  "%s answers with %zu bytes that are not one uncompressed gRPC message",
                  call->method, call->reply_bytes);
    }
    return 0;
}

/* ---- open and close ---- */

static enum status session_make(struct grpc_client *client, struct error *error)
{
    nghttp2_session_callbacks *callbacks = NULL;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, GRPC_PEER_WINDOW_BYTES},
    };
    if (nghttp2_session_callbacks_new(&callbacks) != 0) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", client->address);
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, take_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, take_end);
    client->session = grpc_peer_session(&client->peer, callbacks, false);
    nghttp2_session_callbacks_del(callbacks);
    int code = client->session == NULL ? NGHTTP2_ERR_NOMEM
                                       : nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE,
                                                                 settings, COUNT_OF(settings));
    if (code == 0) {
        code = nghttp2_session_set_local_window_size(client->session, NGHTTP2_FLAG_NONE, 0,
                                                     GRPC_PEER_WINDOW_BYTES);
    }
    return code == 0 ? STATUS_OK
                     : error_set(error, STATUS_NO_MEMORY, "%s: %s", client->address,
                                 nghttp2_strerror(code));
}

enum status grpc_open(const char *address, int64_t deadline_ms, const atomic_bool *abandoned,
                      struct grpc_client **out, struct error *error)
{
    struct grpc_client *client = calloc(1, sizeof *client);
    TRY(memory_check(client, error, "%s: out of memory", address));
    snprintf(client->address, sizeof client->address, "%s", address);
    client->fd = -1;
    client->abandoned = abandoned;
    client->reply_bytes_max = GRPC_REPLY_BYTES_MAX;
    client->out = malloc(OUT_BYTES);
    enum status status = memory_check(client->out, error, "%s: out of memory", address);
    THEN(status, grpc_socket_connect(address, deadline_ms, abandoned, &client->fd, error));
    THEN(status, session_make(client, error));
    if (status != STATUS_OK) {
        grpc_close(client);
        return status;
    }
    *out = client;
    return STATUS_OK;
}

void grpc_keep(struct grpc_client *client)
{
    client->abandoned = NULL;
}

static void call_destroy(struct grpc_call *call)
{
    free(call->reply);
    free(call);
}

void grpc_close(struct grpc_client *client)
{
    if (client == NULL) {
        return;
    }
    nghttp2_session_del(client->session);
    while (client->calls != NULL) {
        struct grpc_call *call = client->calls;
        client->calls = call->next;
        call_destroy(call);
    }
    if (client->fd >= 0) {
        close(client->fd);
    }
    free(client->out);
    free(client);
}

void grpc_limit(struct grpc_client *client, uint32_t reply_bytes_max)
{
    client->reply_bytes_max = reply_bytes_max;
}

const char *grpc_address(const struct grpc_client *client)
{
    return client->address;
}

/* ---- calls ---- */

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

enum status grpc_begin(struct grpc_client *client, const char *method, const void *message,
                       size_t bytes, const char *revision, struct grpc_call **out,
                       struct error *error)
{
    const nghttp2_nv headers[] = {
        header(":method", "POST"),
        header(":scheme", "http"),
        header(":path", method),
        /* gRPC servers refuse an authority with a path in it. */
        header(":authority", grpc_socket_is_unix(client->address) ? "localhost" : client->address),
        header("content-type", "application/grpc"),
        header("te", "trailers"),
        header(GRPC_REVISION_NAME, revision != NULL ? revision : ""),
    };
    struct grpc_call *call = calloc(1, sizeof *call);
    if (call == NULL || bytes > UINT32_MAX) {
        free(call);
        return error_set(error, STATUS_NO_MEMORY, "%s: %s: out of memory for %zu bytes",
                         client->address, method, bytes);
    }
    grpc_frame_begin(&call->question, message, bytes);
    const char *short_name = strrchr(method, '/');
    snprintf(call->method, sizeof call->method, "%s", short_name != NULL ? short_name + 1 : method);
    call->code = -1;
    const nghttp2_data_provider provider = {.source.ptr = call, .read_callback = give_message};
    int32_t stream = nghttp2_submit_request(
        client->session, NULL, headers, COUNT_OF(headers) - (revision == NULL), &provider, call);
    if (stream < 0) {
        call_destroy(call);
        return error_set(error, STATUS_IO, "%s: %s: %s", client->address, method,
                         nghttp2_strerror(stream));
    }
    call->next = client->calls;
    client->calls = call;
    client->open_calls++;
    *out = call;
    return STATUS_OK;
}

void grpc_call_free(struct grpc_client *client, struct grpc_call *call)
{
    if (call == NULL) {
        return;
    }
    CHECK(call->ended);
    struct grpc_call **at = &client->calls;
    while (*at != call) {
        at = &(*at)->next;
    }
    *at = call->next;
    call_destroy(call);
}

const char *grpc_call_method(const struct grpc_call *call)
{
    return call->method;
}

int grpc_call_code(const struct grpc_call *call)
{
    CHECK(call->ended);
    return call->code;
}

const char *grpc_call_code_name(const struct grpc_call *call)
{
    return (size_t)call->code < COUNT_OF(code_names) ? code_names[call->code] : "an unknown status";
}

const char *grpc_call_sentence(const struct grpc_call *call)
{
    return call->sentence;
}

const uint8_t *grpc_call_reply(const struct grpc_call *call, size_t *bytes)
{
    *bytes = call->reply_bytes > GRPC_PREFIX_BYTES ? call->reply_bytes - GRPC_PREFIX_BYTES : 0;
    return *bytes > 0 ? call->reply + GRPC_PREFIX_BYTES : NULL;
}

const char *grpc_call_revision(const struct grpc_call *call)
{
    return call->revision;
}

/* ---- waiting ---- */

/* Fills the buffer with frames, as long as one of the largest fits. */
static void fill_out(struct grpc_client *client)
{
    while (client->out_end + (1 << 15) <= OUT_BYTES) {
        const uint8_t *data = NULL;
        ssize_t bytes = nghttp2_session_mem_send(client->session, &data);
        if (bytes < 0 && client->why.status == STATUS_OK) {
            error_set(&client->why, STATUS_IO, "%s", nghttp2_strerror((int)bytes));
        }
        if (bytes <= 0) {
            return;
        }
        CHECK((size_t)bytes <= OUT_BYTES - client->out_end);
        memcpy(client->out + client->out_end, data, (size_t)bytes);
        client->out_end += (size_t)bytes;
    }
}

/* Reads what is there; bounded, so that a server which sends without end cannot keep us here. */
static void receive(struct grpc_client *client)
{
    uint8_t in[IN_BYTES];
    for (int round = 0; round < ROUNDS_MAX; round++) {
        ssize_t got = recv(client->fd, in, sizeof in, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (got <= 0) {
            client->ended = true;
            return;
        }
        if (!grpc_peer_read(&client->peer, client->session, in, (size_t)got,
                            client->out_at == client->out_end)) {
            if (client->why.status == STATUS_OK) {
                error_set(&client->why, STATUS_IO, "%s", client->peer.wrong);
            }
            return;
        }
        if ((size_t)got < sizeof in) {
            return;
        }
    }
}

/* Sends until the socket takes no more. */
static void send_out(struct grpc_client *client)
{
    for (;;) {
        if (client->out_at == client->out_end) {
            client->out_at = client->out_end = 0;
            fill_out(client);
            if (client->out_end == 0) {
                return;
            }
        }
        ssize_t sent = send(client->fd, client->out + client->out_at,
                            client->out_end - client->out_at, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (sent < 0) {
            receive(client); /* what it said before */
            client->ended = true;
            client->out_at = client->out_end = 0;
            return;
        }
        client->out_at += (size_t)sent;
    }
}

/* A call without an answer, for sentences. */
static const char *waits_for(const struct grpc_client *client)
{
    const struct grpc_call *oldest = NULL;
    for (const struct grpc_call *call = client->calls; call != NULL; call = call->next) {
        oldest = call->ended ? oldest : call;
    }
    return oldest != NULL ? oldest->method : "nothing";
}

static enum status failed(const struct grpc_client *client, struct error *error)
{
    if (client->why.status != STATUS_OK) {
        return error_set(error, client->why.status, "%s: %s", client->address, client->why.text);
    }
    if (client->ended && client->open_calls > 0) {
        return error_set(error, STATUS_IO, "%s closed the connection before it answered %s%s",
                         client->address, waits_for(client), client->goodbye);
    }
    if (client->open_calls > 0 && nghttp2_session_want_read(client->session) == 0 &&
        nghttp2_session_want_write(client->session) == 0) {
        return error_set(error, STATUS_IO, "%s: it does not speak HTTP/2", client->address);
    }
    return STATUS_OK;
}

enum status grpc_wait(struct grpc_client *const *clients, uint32_t count, int64_t deadline_ms,
                      struct error *error)
{
    struct pollfd watched[CLIENTS_MAX];
    int64_t end_ns = clock_monotonic_ns() + deadline_ms * NS_PER_MS;
    bool late = false;
    CHECK(count <= CLIENTS_MAX);
    for (;;) {
        const struct grpc_client *open = NULL;
        for (uint32_t i = 0; i < count; i++) {
            struct grpc_client *client = clients[i];
            if (client->open_calls > 0 && !client->ended) {
                send_out(client);
            }
            TRY(failed(client, error));
            bool wanted = client->open_calls > 0;
            open = wanted ? client : open;
            watched[i] = (struct pollfd){
                .fd = wanted ? client->fd : -1,
                .events = (short)(POLLIN | (client->out_at < client->out_end ? POLLOUT : 0)),
            };
        }
        if (open == NULL) {
            return STATUS_OK;
        }
        /* Answers that came by the deadline have been read. */
        if (late) {
            return error_set(error, STATUS_TIMEOUT, "%s: no answer to %s within %lld ms",
                             open->address, waits_for(open), (long long)deadline_ms);
        }
        if (open->abandoned != NULL && atomic_load(open->abandoned)) {
            return error_set(error, STATUS_CANCELLED, "%s: %s was given up", open->address,
                             waits_for(open));
        }
        int64_t left_ns = end_ns - clock_monotonic_ns();
        late = left_ns <= 0;
        poll(watched, count, grpc_socket_poll_ms(left_ns, open->abandoned));
        for (uint32_t i = 0; i < count; i++) {
            if ((watched[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
                receive(clients[i]);
            }
        }
    }
}
