/*
 * gRPC server. See grpc_server.h.
 *
 * A connection owns its streams, and a stream is one call: what came of its message, and what is
 * still to be sent of the answer. Sockets never block.
 */
#include "worker/grpc/grpc_server.h"

#include "base/check.h"
#include "worker/grpc/grpc_frame.h"
#include "worker/grpc/grpc_socket.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IN_BYTES = 1 << 16,
    ROUNDS_MAX = 16, /* of reading one connection, between looks at the others */
    METHOD_BYTES = 128,
    WINDOW_BYTES = 16 << 20, /* of questions that are on their way */
    QUESTION_ROOM_MAX = GRPC_PREFIX_BYTES + GRPC_QUESTION_BYTES_MAX,
};

struct stream {
    struct stream *next;
    char method[METHOD_BYTES];
    uint8_t *in; /* with its prefix */
    size_t in_bytes, in_room;
    bool too_long;
    struct grpc_answer answer;
    struct grpc_frame reply; /* the answer's message; empty where there is none */
};

struct connection {
    struct grpc_server *server;
    int fd; /* -1: free */
    nghttp2_session *session;
    struct stream *streams;
    const uint8_t *out; /* of nghttp2, what the socket has not taken */
    size_t out_bytes;
    bool failed;
};

struct grpc_server {
    char address[GRPC_ADDRESS_BYTES];
    grpc_service *service;
    void *context;
    int fd;
    struct connection connections[GRPC_SERVER_CONNECTIONS];
    uint8_t in[IN_BYTES]; /* of whoever is read */
};

/* ---- answers ---- */

static ssize_t give_answer(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
                           uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct stream *stream = source->ptr;
    const struct grpc_answer *answer = &stream->answer;
    size_t now = grpc_frame_give(&stream->reply, to, room);
    (void)context;
    if (stream->reply.sent == stream->reply.bytes) {
        char code[12];
        snprintf(code, sizeof code, "%d", answer->code);
        const nghttp2_nv trailers[] = {
            {(uint8_t *)"grpc-status", (uint8_t *)code, 11, strlen(code), NGHTTP2_NV_FLAG_NONE},
            {(uint8_t *)"grpc-message", (uint8_t *)(uintptr_t)answer->sentence, 12,
             strlen(answer->sentence), NGHTTP2_NV_FLAG_NONE},
        };
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(session, id, trailers, answer->sentence[0] != '\0' ? 2 : 1) !=
            0) {
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
    }
    return (ssize_t)now;
}

void grpc_sentence_clean(char *sentence)
{
    for (char *at = sentence; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~' || *at == '%') {
            *at = '?';
        }
    }
}

static void refuse(struct grpc_answer *answer, int code, const char *sentence)
{
    answer->code = code;
    snprintf(answer->sentence, sizeof answer->sentence, "%s", sentence);
}

/* Answers a question that has come to its end. */
static int answer_call(struct connection *connection, struct stream *stream, int32_t id)
{
    static const nghttp2_nv headers[] = {
        {(uint8_t *)":status", (uint8_t *)"200", 7, 3, NGHTTP2_NV_FLAG_NONE},
        {(uint8_t *)"content-type", (uint8_t *)"application/grpc", 12, 16, NGHTTP2_NV_FLAG_NONE},
    };
    struct grpc_server *server = connection->server;
    struct grpc_answer *answer = &stream->answer;
    if (stream->too_long) {
        refuse(answer, GRPC_INVALID_ARGUMENT, "the message is longer than 64 MiB");
    } else if (!grpc_frame_is_whole(stream->in, stream->in_bytes)) {
        refuse(answer, GRPC_INVALID_ARGUMENT, "expected one uncompressed gRPC message");
    } else {
        server->service(server->context, stream->method, stream->in + GRPC_PREFIX_BYTES,
                        stream->in_bytes - GRPC_PREFIX_BYTES, answer);
    }
    free(stream->in);
    stream->in = NULL;
    if (answer->hang_up) {
        connection->failed = true;
        return 0;
    }
    if (answer->bytes > UINT32_MAX) {
        refuse(answer, GRPC_INTERNAL, "the answer has more than 4 GiB");
    }
    grpc_sentence_clean(answer->sentence);
    if (answer->code == GRPC_OK) {
        grpc_frame_begin(&stream->reply, answer->message, answer->bytes);
    }
    const nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = give_answer};
    return nghttp2_submit_response(connection->session, id, headers, COUNT_OF(headers), &provider);
}

/* ---- what nghttp2 tells ---- */

static int call_begins(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct connection *connection = context;
    struct stream *stream = NULL;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        return 0;
    }
    stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    stream->next = connection->streams;
    connection->streams = stream;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
}

static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                       void *context)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags;
    (void)context;
    if (stream != NULL && name_bytes == 5 && memcmp(name, ":path", 5) == 0) {
        snprintf(stream->method, sizeof stream->method, "%.*s", (int)value_bytes,
                 (const char *)value);
    }
    return 0;
}

static int take_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                     size_t bytes, void *context)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, id);
    (void)flags;
    (void)context;
    if (stream == NULL || stream->too_long || bytes > QUESTION_ROOM_MAX - stream->in_bytes) {
        if (stream != NULL) {
            stream->too_long = true;
        }
        return 0;
    }
    if (stream->in_bytes + bytes > stream->in_room) {
        size_t room = 2 * (stream->in_bytes + bytes);
        room = room < QUESTION_ROOM_MAX ? room : QUESTION_ROOM_MAX;
        uint8_t *now = realloc(stream->in, room);
        if (now == NULL) {
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
        stream->in = now;
        stream->in_room = room;
    }
    memcpy(stream->in + stream->in_bytes, data, bytes);
    stream->in_bytes += bytes;
    return 0;
}

static int take_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
                (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS);
    return stream != NULL && ends ? answer_call(context, stream, frame->hd.stream_id) : 0;
}

static void stream_free(struct stream *stream)
{
    free(stream->in);
    free(stream->answer.message);
    free(stream);
}

static int call_ends(nghttp2_session *session, int32_t id, uint32_t code, void *context)
{
    struct connection *connection = context;
    struct stream *stream = nghttp2_session_get_stream_user_data(session, id);
    struct stream **at = &connection->streams;
    (void)code;
    if (stream == NULL) {
        return 0;
    }
    while (*at != stream) {
        at = &(*at)->next;
    }
    *at = stream->next;
    stream_free(stream);
    return 0;
}

/* ---- connections ---- */

static void hang_up(struct connection *connection)
{
    nghttp2_session_del(connection->session);
    while (connection->streams != NULL) {
        struct stream *stream = connection->streams;
        connection->streams = stream->next;
        stream_free(stream);
    }
    if (connection->fd >= 0) {
        close(connection->fd);
    }
    *connection = (struct connection){.server = connection->server, .fd = -1};
}

static bool session_make(struct connection *connection)
{
    nghttp2_session_callbacks *callbacks = NULL;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_SERVER_CALLS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
    };
    if (nghttp2_session_callbacks_new(&callbacks) != 0) {
        return false;
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, call_begins);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, take_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, call_ends);
    int code = nghttp2_session_server_new(&connection->session, callbacks, connection);
    nghttp2_session_callbacks_del(callbacks);
    return code == 0 &&
           nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings,
                                   COUNT_OF(settings)) == 0 &&
           nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
                                                 WINDOW_BYTES) == 0;
}

/* Takes a connection up; one too many is closed. */
static void take_connection(struct grpc_server *server)
{
    int fd = grpc_socket_accept(server->fd);
    for (int i = 0; i < GRPC_SERVER_CONNECTIONS && fd >= 0; i++) {
        struct connection *connection = &server->connections[i];
        if (connection->fd < 0) {
            connection->fd = fd;
            if (!session_make(connection)) {
                hang_up(connection);
            }
            return;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Sends until the socket takes no more. */
static void send_out(struct connection *connection)
{
    while (!connection->failed) {
        if (connection->out_bytes == 0) {
            ssize_t bytes = nghttp2_session_mem_send(connection->session, &connection->out);
            connection->failed = bytes < 0;
            if (bytes <= 0) {
                return;
            }
            connection->out_bytes = (size_t)bytes;
        }
        ssize_t sent = send(connection->fd, connection->out, connection->out_bytes, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        connection->failed = sent < 0;
        connection->out += sent > 0 ? sent : 0;
        connection->out_bytes -= sent > 0 ? (size_t)sent : 0;
    }
}

/* Reads what is there. */
static void receive(struct connection *connection)
{
    uint8_t *in = connection->server->in;
    for (int round = 0; round < ROUNDS_MAX && !connection->failed; round++) {
        ssize_t got = recv(connection->fd, in, IN_BYTES, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (got <= 0 || nghttp2_session_mem_recv(connection->session, in, (size_t)got) < 0) {
            connection->failed = true;
        }
    }
}

/* ---- the server ---- */

enum status grpc_server_open(const char *address, grpc_service *service, void *context,
                             struct grpc_server **out, struct error *error)
{
    struct grpc_server *server = calloc(1, sizeof *server);
    TRY(memory_check(server, error, "%s: out of memory", address));
    server->service = service;
    server->context = context;
    server->fd = -1;
    for (int i = 0; i < GRPC_SERVER_CONNECTIONS; i++) {
        server->connections[i] = (struct connection){.server = server, .fd = -1};
    }
    enum status status = grpc_socket_listen(address, &server->fd, server->address, error);
    if (status != STATUS_OK) {
        grpc_server_close(server);
        return status;
    }
    *out = server;
    return STATUS_OK;
}

const char *grpc_server_address(const struct grpc_server *server)
{
    return server->address;
}

enum status grpc_server_run(struct grpc_server *server, int quit_fd, struct error *error)
{
    enum { QUIT = 0, LISTEN, FIRST };
    struct pollfd watched[FIRST + GRPC_SERVER_CONNECTIONS];
    for (;;) {
        watched[QUIT] = (struct pollfd){quit_fd, POLLIN, 0};
        watched[LISTEN] = (struct pollfd){server->fd, POLLIN, 0};
        for (int i = 0; i < GRPC_SERVER_CONNECTIONS; i++) {
            const struct connection *connection = &server->connections[i];
            const int events = POLLIN | (connection->out_bytes > 0 ? POLLOUT : 0);
            watched[FIRST + i] = (struct pollfd){connection->fd, (short)events, 0};
        }
        if (poll(watched, COUNT_OF(watched), -1) < 0 && errno != EINTR) {
            return error_set(error, STATUS_IO, "%s: %s", server->address, strerror(errno));
        }
        if (watched[QUIT].revents != 0) {
            return STATUS_OK;
        }
        for (int i = 0; i < GRPC_SERVER_CONNECTIONS; i++) {
            struct connection *connection = &server->connections[i];
            if (connection->fd >= 0 && watched[FIRST + i].revents != 0) {
                receive(connection);
                send_out(connection);
            }
            if (connection->fd >= 0 &&
                (connection->failed || (!nghttp2_session_want_read(connection->session) &&
                                        !nghttp2_session_want_write(connection->session)))) {
                hang_up(connection);
            }
        }
        if (watched[LISTEN].revents != 0) {
            take_connection(server);
        }
    }
}

void grpc_server_close(struct grpc_server *server)
{
    if (server == NULL) {
        return;
    }
    for (int i = 0; i < GRPC_SERVER_CONNECTIONS; i++) {
        hang_up(&server->connections[i]);
    }
    if (server->fd >= 0) {
        close(server->fd);
        if (grpc_socket_is_unix(server->address)) {
            unlink(server->address + strlen("unix:"));
        }
    }
    free(server);
}
