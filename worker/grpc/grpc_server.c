/*
 * gRPC server. See grpc_server.h.
 *
 * A connection owns its streams, and a stream is one call: what came of its message, and what is
 * still to be sent of the answer. Sockets never block. A pass reads from everybody, sends to
 * everybody and answers one call, of the connection whose turn it is.
 */
#include "worker/grpc/grpc_server.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "worker/grpc/grpc_frame.h"
#include "worker/grpc/grpc_peer.h"
#include "worker/grpc/grpc_socket.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IN_BYTES = 1 << 16,
    WAIT_MS_MAX = 60000,
    ROUNDS_MAX = 16, /* of reading one connection, between looks at the others */
    METHOD_BYTES = 128,
    QUESTION_ROOM_MAX = GRPC_PREFIX_BYTES + GRPC_QUESTION_BYTES_MAX,
};

struct stream {
    struct stream *next;
    int32_t id;
    int64_t end_ns;     /* when it is reset, as what goes on with it now has it */
    int64_t timeout_ns; /* when the caller waits no more; INT64_MAX: it says nothing */
    char method[METHOD_BYTES];
    uint8_t *in; /* with its prefix */
    size_t in_bytes, in_room;
    bool too_long;
    bool asked; /* it came whole, and waits for its turn: end_ns does not hold */
    bool is_reset;
    struct grpc_answer answer;
    struct grpc_frame reply; /* the answer's message; empty where there is none */
};

struct connection {
    struct grpc_peer peer; /* first: sessions' callbacks count there */
    struct grpc_server *server;
    int fd; /* -1: free */
    nghttp2_session *session;
    struct stream *streams;
    const uint8_t *out; /* of nghttp2, what the socket has not taken */
    size_t out_bytes;
    int64_t idle_ns; /* since when it has no call */
    bool failed;
};

struct grpc_server {
    char address[GRPC_ADDRESS_BYTES];
    grpc_service *service;
    void *context;
    const struct logger *logger;
    int64_t told_ns; /* when the log was told last of a connection that was ended */
    uint32_t untold; /* connections that were ended since */
    int fd;
    struct grpc_server_times times;
    size_t question_room, answer_room; /* of all streams */
    int turn;                          /* the connection that was answered last */
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

static int64_t ends_at(const struct stream *stream)
{
    return !stream->asked && stream->end_ns < stream->timeout_ns ? stream->end_ns
                                                                 : stream->timeout_ns;
}

static void question_free(struct grpc_server *server, struct stream *stream)
{
    server->question_room -= stream->in_room;
    stream->in_room = 0;
    free(stream->in);
    stream->in = NULL;
}

/* Lets the service answer. Nobody else was read from or sent to meanwhile: others have as much more
 * time. */
static void serve(struct grpc_server *server, struct stream *stream)
{
    const int64_t begin_ns = clock_monotonic_ns();
    struct grpc_answer *answer = &stream->answer;
    server->service(server->context, stream->method, stream->in + GRPC_PREFIX_BYTES,
                    stream->in_bytes - GRPC_PREFIX_BYTES, answer);
    const int64_t spent_ns = clock_monotonic_ns() - begin_ns;
    for (int i = 0; i < GRPC_SERVER_CONNECTIONS; i++) {
        server->connections[i].idle_ns += spent_ns;
        for (struct stream *at = server->connections[i].streams; at != NULL; at = at->next) {
            at->end_ns += at != stream ? spent_ns : 0;
        }
    }
    if (answer->bytes > GRPC_ANSWERS_BYTES_MAX - server->answer_room) {
        free(answer->message);
        answer->message = NULL;
        answer->bytes = 0;
        refuse(answer, GRPC_RESOURCE_EXHAUSTED,
               "expected answers of at most 1 GiB, all together that are on their way");
    }
    server->answer_room += answer->bytes;
}

/* Answers a question that has come to its end. */
static void answer_call(struct connection *connection, struct stream *stream)
{
    static const nghttp2_nv headers[] = {
        {(uint8_t *)":status", (uint8_t *)"200", 7, 3, NGHTTP2_NV_FLAG_NONE},
        {(uint8_t *)"content-type", (uint8_t *)"application/grpc", 12, 16, NGHTTP2_NV_FLAG_NONE},
    };
    struct grpc_server *server = connection->server;
    struct grpc_answer *answer = &stream->answer;
    const int64_t now_ns = clock_monotonic_ns();
    stream->asked = false;
    grpc_peer_called(&connection->peer);
    stream->end_ns = now_ns + server->times.answer_ms * NS_PER_MS;
    answer->deadline_ns = ends_at(stream);
    if (now_ns >= answer->deadline_ns) {
        stream->timeout_ns = INT64_MAX;
        refuse(answer, GRPC_DEADLINE_EXCEEDED, "grpc-timeout was over before the call's turn came");
    } else if (stream->too_long) {
        refuse(answer, GRPC_RESOURCE_EXHAUSTED,
               "expected a message of at most 64 MiB, and 256 MiB of all that are on their way");
    } else if (stream->in_bytes > 0 && stream->in[0] != 0) {
        refuse(answer, GRPC_UNIMPLEMENTED, "expected a message that is not compressed");
    } else if (!grpc_frame_is_whole(stream->in, stream->in_bytes)) {
        refuse(answer, GRPC_INVALID_ARGUMENT, "expected one uncompressed gRPC message");
    } else {
        serve(server, stream);
    }
    question_free(server, stream);
    grpc_sentence_clean(answer->sentence);
    if (answer->code == GRPC_OK) {
        grpc_frame_begin(&stream->reply, answer->message, answer->bytes);
    }
    const nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = give_answer};
    if (answer->hang_up || nghttp2_submit_response(connection->session, stream->id, headers,
                                                   COUNT_OF(headers), &provider) != 0) {
        connection->failed = true;
    }
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
    stream->id = frame->hd.stream_id;
    stream->end_ns = clock_monotonic_ns() + connection->server->times.question_ms * NS_PER_MS;
    stream->timeout_ns = INT64_MAX;
    stream->next = connection->streams;
    connection->streams = stream;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
}

/* The time that a grpc-timeout gives a call: up to 8 digits and a unit. INT64_MAX: it is none. */
static int64_t timeout_read(const uint8_t *value, size_t bytes)
{
    static const char units[] = "HMSmun";
    static const int64_t unit_ns[] = {3600 * NS_PER_S, 60 * NS_PER_S, NS_PER_S, NS_PER_MS, 1000, 1};
    const char *unit = bytes >= 2 && bytes <= 9 ? memchr(units, value[bytes - 1], 6) : NULL;
    int64_t count = 0;
    for (size_t i = 0; i + 1 < bytes && unit != NULL; i++) {
        unit = value[i] >= '0' && value[i] <= '9' ? unit : NULL;
        count = 10 * count + (value[i] - '0');
    }
    return unit != NULL && count < 24 * 3600 * NS_PER_S / unit_ns[unit - units]
               ? clock_monotonic_ns() + count * unit_ns[unit - units]
               : INT64_MAX;
}

static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                       void *context)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags;
    if (!grpc_peer_header(context, name_bytes, value_bytes)) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (stream != NULL && name_bytes == 5 && memcmp(name, ":path", 5) == 0) {
        snprintf(stream->method, sizeof stream->method, "%.*s", (int)value_bytes,
                 (const char *)value);
    } else if (stream != NULL && name_bytes == 12 && memcmp(name, "grpc-timeout", 12) == 0) {
        stream->timeout_ns = timeout_read(value, value_bytes);
    }
    return 0;
}

static int take_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                     size_t bytes, void *context)
{
    struct grpc_server *server = ((struct connection *)context)->server;
    struct stream *stream = nghttp2_session_get_stream_user_data(session, id);
    (void)flags;
    if (stream == NULL || stream->too_long) {
        return 0;
    }
    if (stream->in_bytes + bytes > stream->in_room) {
        size_t room = 2 * (stream->in_bytes + bytes);
        room = room < QUESTION_ROOM_MAX ? room : QUESTION_ROOM_MAX;
        if (stream->in_bytes + bytes > QUESTION_ROOM_MAX ||
            room - stream->in_room > GRPC_QUESTIONS_BYTES_MAX - server->question_room) {
            stream->too_long = true;
            question_free(server, stream);
            return 0;
        }
        uint8_t *now = realloc(stream->in, room);
        if (now == NULL) {
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
        server->question_room += room - stream->in_room;
        stream->in = now;
        stream->in_room = room;
    }
    memcpy(stream->in + stream->in_bytes, data, bytes);
    stream->in_bytes += bytes;
    if (stream->in_bytes >= GRPC_PREFIX_BYTES &&
        grpc_frame_message_bytes(stream->in) > GRPC_QUESTION_BYTES_MAX) {
        stream->too_long = true; /* as its prefix says: what follows is not kept */
        question_free(server, stream);
    }
    return 0;
}

static int take_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
                (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS);
    (void)context;
    if (stream != NULL && ends) {
        stream->asked = !stream->is_reset;
    }
    return 0;
}

static void stream_free(struct grpc_server *server, struct stream *stream)
{
    question_free(server, stream);
    server->answer_room -= stream->answer.bytes;
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
    stream_free(connection->server, stream);
    connection->idle_ns = clock_monotonic_ns();
    return 0;
}

/* ---- connections ---- */

static void hang_up(struct connection *connection)
{
    nghttp2_session_del(connection->session);
    while (connection->streams != NULL) {
        struct stream *stream = connection->streams;
        connection->streams = stream->next;
        stream_free(connection->server, stream);
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
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, GRPC_PEER_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_PEER_HEADER_BYTES},
    };
    if (nghttp2_session_callbacks_new(&callbacks) != 0) {
        return false;
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, call_begins);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, take_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, call_ends);
    connection->session = grpc_peer_session(&connection->peer, callbacks, true);
    nghttp2_session_callbacks_del(callbacks);
    return connection->session != NULL &&
           nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings,
                                   COUNT_OF(settings)) == 0 &&
           nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
                                                 GRPC_PEER_WINDOW_BYTES) == 0;
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

/* Tells the caller that no call is taken any more, and closes. */
static void retire(struct connection *connection)
{
    connection->failed = nghttp2_session_terminate_session(connection->session, 0) != 0;
    send_out(connection);
    hang_up(connection);
}

/* A free place, or that of the connection that has been without a call for longest; NULL: all have
 * calls. */
static struct connection *place_make(struct grpc_server *server)
{
    struct connection *oldest = NULL;
    for (int i = 0; i < GRPC_SERVER_CONNECTIONS; i++) {
        struct connection *connection = &server->connections[i];
        if (connection->fd < 0) {
            return connection;
        }
        if (connection->streams == NULL &&
            (oldest == NULL || connection->idle_ns < oldest->idle_ns)) {
            oldest = connection;
        }
    }
    if (oldest != NULL) {
        retire(oldest);
    }
    return oldest;
}

/* Takes a connection up; one too many is closed. */
static void take_connection(struct grpc_server *server)
{
    int fd = grpc_socket_accept(server->fd);
    struct connection *connection = fd >= 0 ? place_make(server) : NULL;
    if (connection == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    connection->fd = fd;
    connection->idle_ns = clock_monotonic_ns();
    if (!session_make(connection)) {
        hang_up(connection);
    }
}

/* Ends a call that its caller has not finished, or not taken the answer of. It has as long as for
 * an answer to take the reset; then its connection fails. */
static void reset(struct connection *connection, struct stream *stream, int64_t now_ns)
{
    connection->failed = connection->failed || stream->is_reset ||
                         nghttp2_submit_rst_stream(connection->session, NGHTTP2_FLAG_NONE,
                                                   stream->id, NGHTTP2_CANCEL) != 0;
    stream->is_reset = true;
    stream->timeout_ns = INT64_MAX;
    stream->end_ns = now_ns + connection->server->times.answer_ms * NS_PER_MS;
}

static bool is_over(const struct connection *connection)
{
    return connection->failed || (!nghttp2_session_want_read(connection->session) &&
                                  !nghttp2_session_want_write(connection->session));
}

/* Sends; closes what is at its end or has been without a call for too long, and resets calls that
 * have lasted too long, or answers that they did. Returns when to look again; INT64_MAX: there is
 * no connection. */
static int64_t expire(struct grpc_server *server, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;
    for (int i = 0; i < GRPC_SERVER_CONNECTIONS; i++) {
        struct connection *connection = &server->connections[i];
        if (connection->fd < 0) {
            continue;
        }
        int64_t end_ns = INT64_MAX;
        for (struct stream *stream = connection->streams; stream != NULL; stream = stream->next) {
            if (ends_at(stream) <= now_ns && stream->asked) {
                answer_call(connection, stream);
            } else if (ends_at(stream) <= now_ns) {
                reset(connection, stream, now_ns);
            }
            end_ns = ends_at(stream) < end_ns ? ends_at(stream) : end_ns;
        }
        send_out(connection);
        if (connection->streams == NULL) {
            end_ns = connection->idle_ns + server->times.idle_ms * NS_PER_MS;
        }
        if (is_over(connection)) {
            hang_up(connection);
        } else if (end_ns <= now_ns) {
            retire(connection);
        } else {
            next_ns = end_ns < next_ns ? end_ns : next_ns;
        }
    }
    return next_ns;
}

/* Says that a connection is ended, and why; at most once a second. */
static void tell_wrong(const struct connection *connection)
{
    struct grpc_server *server = connection->server;
    const int64_t now_ns = clock_monotonic_ns();
    if (server->told_ns != 0 && now_ns - server->told_ns < NS_PER_S) {
        server->untold++;
        return;
    }
    log_event(server->logger, LOG_WARNING, "%s: ended %u connections, the last one: %s",
              server->address, server->untold + 1, connection->peer.wrong);
    server->told_ns = now_ns;
    server->untold = 0;
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
        if (got > 0 && !grpc_peer_read(&connection->peer, connection->session, in, (size_t)got,
                                       connection->out_bytes == 0)) {
            send_out(connection);
            tell_wrong(connection);
            connection->failed = true;
        }
        connection->failed = connection->failed || got <= 0;
    }
}

/* Answers the oldest question of the next connection that has one. False: there is none. */
static bool answer_next(struct grpc_server *server)
{
    for (int i = 0; i < GRPC_SERVER_CONNECTIONS; i++) {
        server->turn = (server->turn + 1) % GRPC_SERVER_CONNECTIONS;
        struct connection *connection = &server->connections[server->turn];
        struct stream *oldest = NULL;
        for (struct stream *stream = connection->streams; stream != NULL; stream = stream->next) {
            oldest = stream->asked ? stream : oldest;
        }
        if (oldest != NULL) {
            answer_call(connection, oldest);
            send_out(connection);
            return true;
        }
    }
    return false;
}

/* ---- the server ---- */

enum status grpc_server_open(const char *address, grpc_service *service, void *context,
                             const struct logger *logger, struct grpc_server **out,
                             struct error *error)
{
    struct grpc_server *server = calloc(1, sizeof *server);
    TRY(memory_check(server, error, "%s: out of memory", address));
    server->service = service;
    server->context = context;
    server->logger = logger;
    server->fd = -1;
    server->times = (struct grpc_server_times){30000, 120000, 600000};
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

void grpc_server_limit(struct grpc_server *server, struct grpc_server_times times)
{
    server->times = times;
}

const char *grpc_server_address(const struct grpc_server *server)
{
    return server->address;
}

enum status grpc_server_run(struct grpc_server *server, int quit_fd, struct error *error)
{
    enum { QUIT = 0, LISTEN, FIRST };
    struct pollfd watched[FIRST + GRPC_SERVER_CONNECTIONS];
    int64_t next_ns = 0; /* when somebody has to be looked at */
    for (;;) {
        const int64_t left_ms = (next_ns - clock_monotonic_ns()) / NS_PER_MS + 1;
        const int wait_ms = left_ms < 0 ? 0 : left_ms < WAIT_MS_MAX ? (int)left_ms : WAIT_MS_MAX;
        watched[QUIT] = (struct pollfd){quit_fd, POLLIN, 0};
        watched[LISTEN] = (struct pollfd){server->fd, POLLIN, 0};
        for (int i = 0; i < GRPC_SERVER_CONNECTIONS; i++) {
            const struct connection *connection = &server->connections[i];
            const int events = POLLIN | (connection->out_bytes > 0 ? POLLOUT : 0);
            watched[FIRST + i] = (struct pollfd){connection->fd, (short)events, 0};
        }
        if (poll(watched, COUNT_OF(watched), wait_ms) < 0 && errno != EINTR) {
            return error_set(error, STATUS_IO, "%s: %s", server->address, strerror(errno));
        }
        const int64_t now_ns = clock_monotonic_ns();
        if (watched[QUIT].revents != 0) {
            return STATUS_OK;
        }
        for (int i = 0; i < GRPC_SERVER_CONNECTIONS; i++) {
            struct connection *connection = &server->connections[i];
            if (connection->fd >= 0 && watched[FIRST + i].revents != 0) {
                receive(connection);
            }
        }
        if (watched[LISTEN].revents != 0) {
            take_connection(server);
        }
        next_ns = expire(server, now_ns);
        next_ns = answer_next(server) ? 0 : next_ns;
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
