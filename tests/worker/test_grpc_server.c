/*
 * The gRPC server: whose turn it is, how long it bears with a caller, and what it keeps for one.
 * Callers write HTTP/2 frames of their own.
 */
#include "base/check.h"
#include "tests/harness.h"
#include "worker/grpc/grpc.h"
#include "worker/grpc/grpc_server.h"
#include "worker/grpc/grpc_socket.h"

#include <errno.h>
#include <malloc.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAIT_MS = 60000 };

enum {
    FRAME_BYTES = 9,
    FRAME_DATA = 0,
    FRAME_HEADERS,
    FRAME_PRIORITY,
    FRAME_RESET,
    FRAME_SETTINGS,
    FRAME_PING = 6,
    FRAME_GOAWAY,
    FRAME_WINDOW,
    FRAME_CONTINUATION,
    FRAME_UNKNOWN = 0xfa
};

static struct grpc_server *patient;
static int quit_fds[2], log_fds[2];
static pthread_t patient_thread;
static atomic_int served;
static sem_t arrived, gate;

/* Manner of the service: calls that wait at the gate (a bit each), how long the first takes, bytes
 * of an answer. */
static struct manner {
    uint64_t gated;
    int first_ms;
    size_t answer_bytes;
} manner;

static void count_call(void *context, const char *method, const uint8_t *message, size_t bytes,
                       struct grpc_answer *answer)
{
    const int call = ++served;
    (void)context;
    (void)method;
    (void)message;
    (void)bytes;
    if ((manner.gated >> call & 1) != 0) {
        CHECK(sem_post(&arrived) == 0 && sem_wait(&gate) == 0);
    }
    CHECK(poll(NULL, 0, call == 1 ? manner.first_ms : 0) == 0);
    answer->bytes = manner.answer_bytes;
    answer->message = manner.answer_bytes > 0 ? calloc(1, manner.answer_bytes) : NULL;
}

static void *patient_run(void *argument)
{
    struct error error;
    (void)argument;
    CHECK(grpc_server_run(patient, quit_fds[0], &error) == STATUS_OK);
    return NULL;
}

static void patient_begin(struct grpc_server_times times, struct manner how)
{
    static struct logger logger = {.level = LOG_WARNING, .name = "test"};
    struct error error;
    char address[64];
    snprintf(address, sizeof address, "unix:/tmp/swerve-patient-%d", (int)getpid());
    EXPECT(pipe(log_fds) == 0);
    logger.fd = log_fds[1];
    served = 0;
    manner = how;
    EXPECT(sem_init(&arrived, 0, 0) == 0 && sem_init(&gate, 0, 0) == 0 && pipe(quit_fds) == 0);
    EXPECT_OK(grpc_server_open(address, count_call, NULL, &logger, &patient, &error), error);
    grpc_server_limit(patient, times);
    EXPECT(pthread_create(&patient_thread, NULL, patient_run, NULL) == 0);
}

static void patient_end(void)
{
    EXPECT(write(quit_fds[1], "q", 1) == 1);
    pthread_join(patient_thread, NULL);
    grpc_server_close(patient);
    close(quit_fds[0]);
    close(quit_fds[1]);
    close(log_fds[0]);
    close(log_fds[1]);
}

static void caller_send(int fd, const void *from, size_t bytes)
{
    const uint8_t *at = from;
    while (bytes > 0) {
        struct pollfd watched = {fd, POLLOUT, 0};
        EXPECT(poll(&watched, 1, WAIT_MS) == 1);
        ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
        EXPECT(sent > 0);
        at += sent;
        bytes -= (size_t)sent;
    }
}

/* Reads a frame; false: the connection ended before. */
static bool caller_reads(int fd, uint8_t head[FRAME_BYTES], uint8_t in[16384])
{
    size_t held = 0, bytes = 0; /* of the head, then of what follows */
    while (held < FRAME_BYTES || bytes > 0) {
        struct pollfd watched = {fd, POLLIN, 0};
        EXPECT(poll(&watched, 1, WAIT_MS) == 1);
        uint8_t *to = held < FRAME_BYTES ? head + held : in + held - FRAME_BYTES;
        ssize_t got = recv(fd, to, held < FRAME_BYTES ? FRAME_BYTES - held : bytes, 0);
        if (got <= 0) {
            return false;
        }
        bytes -= held < FRAME_BYTES ? 0 : (size_t)got;
        held += (size_t)got;
        bytes = held == FRAME_BYTES ? (size_t)head[1] << 8 | head[2] : bytes;
    }
    return true;
}

/* Reads frames to the end of one of a kind; false: the connection ended before. */
static bool caller_hears(int fd, int kind)
{
    uint8_t head[FRAME_BYTES], in[16384];
    while (caller_reads(fd, head, in)) {
        if (head[3] == kind) {
            return true;
        }
    }
    return false;
}

/* Reads to the end of a call; its gRPC status. `inflater`: of the connection's headers. */
static int caller_status(int fd, nghttp2_hd_inflater *inflater)
{
    uint8_t head[FRAME_BYTES], in[16384];
    int code = -1;
    while (code < 0 && caller_reads(fd, head, in)) {
        const uint8_t *at = in;
        size_t left = head[3] == FRAME_HEADERS ? (size_t)head[1] << 8 | head[2] : 0;
        for (int flags = 0; left > 0 || (flags & NGHTTP2_HD_INFLATE_EMIT) != 0;) {
            nghttp2_nv field;
            ssize_t used = nghttp2_hd_inflate_hd2(inflater, &field, &flags, at, left, 1);
            EXPECT(used >= 0);
            at += used;
            left -= (size_t)used;
            if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0 &&
                strcmp((const char *)field.name, "grpc-status") == 0) {
                code = atoi((const char *)field.value);
            }
        }
        nghttp2_hd_inflate_end_headers(inflater);
    }
    return code;
}

/* A connection that greeted, with windows of 2 GiB, and was greeted. */
static int caller_open(void)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                "\0\0\6\4\0\0\0\0\0\0\4\x7f\xff\xff\xff"
                                "\0\0\4\x8\0\0\0\0\0\x7f\0\0\0";
    static const uint8_t heard[FRAME_BYTES] = {0, 0, 0, FRAME_SETTINGS, 1};
    struct error error;
    int fd = -1;
    EXPECT_OK(grpc_socket_connect(grpc_server_address(patient), WAIT_MS, NULL, &fd, &error), error);
    caller_send(fd, hello, sizeof hello - 1);
    EXPECT(caller_hears(fd, FRAME_SETTINGS));
    caller_send(fd, heard, sizeof heard);
    return fd;
}

/* Writes the frames of a call with a grpc-timeout, which ends if told to; returns their bytes. */
static size_t caller_write(uint8_t *to, uint8_t id, const char *timeout, bool ends)
{
    static const uint8_t head[] = "\x83\x86\x01\x01h\x00\x05:path\x04/a/b\x00\x0cgrpc-timeout";
    const uint8_t message[] = {0, 0, 5, FRAME_DATA, 1, 0, 0, 0, id, 0, 0, 0, 0, 0};
    const uint8_t begin[FRAME_BYTES] = {
        0, 0, (uint8_t)(sizeof head + strlen(timeout)), FRAME_HEADERS, 4, 0, 0, 0, id};
    size_t bytes = FRAME_BYTES + sizeof head - 1;
    memcpy(to, begin, sizeof begin);
    memcpy(to + FRAME_BYTES, head, sizeof head - 1);
    to[bytes++] = (uint8_t)strlen(timeout);
    memcpy(to + bytes, timeout, strlen(timeout));
    bytes += strlen(timeout);
    memcpy(to + bytes, message, sizeof message);
    return bytes + (ends ? sizeof message : 0);
}

static void caller_ask(int fd, const char *timeout, bool ends)
{
    uint8_t out[128];
    caller_send(fd, out, caller_write(out, 1, timeout, ends));
}

/* A caller's second call is not begun before the first is answered, others have theirs in between,
 * and whoever tells the server to quit is heard before all are answered. */
static void callers_take_turns(void)
{
    uint8_t out[512];
    size_t bytes = 0;
    patient_begin((struct grpc_server_times){60000, 60000, 60000},
                  (struct manner){.gated = 1 << 2 | 1 << 4});
    int fd = caller_open(), other = caller_open();
    for (uint8_t id = 1; id <= 5; id += 2) {
        bytes += caller_write(out + bytes, id, "9H", true);
    }
    caller_send(fd, out, bytes);
    EXPECT(caller_hears(fd, FRAME_DATA)); /* the second is at the gate, or not begun */
    bytes = caller_write(out, 1, "9H", true);
    bytes += caller_write(out + bytes, 3, "9H", true);
    caller_send(other, out, bytes);
    EXPECT(sem_post(&gate) == 0);
    EXPECT(caller_hears(other, FRAME_DATA)); /* the third call; the fourth is at the gate */
    EXPECT(sem_wait(&arrived) == 0 && sem_wait(&arrived) == 0);
    EXPECT(write(quit_fds[1], "q", 1) == 1 && sem_post(&gate) == 0);
    patient_end();
    EXPECT_INT(served, 4);
    close(fd);
    close(other);
}

/* A question of 2 MiB is not late where the server answers somebody else for longer than it has;
 * one whose own grpc-timeout is over by then is answered that it is late. */
static void time_stands_still_for_others(void)
{
    static uint8_t frame[FRAME_BYTES + 16384];
    enum { FRAMES = 128, QUESTION_BYTES = FRAMES * 16384 - 5 };
    uint8_t out[256];
    patient_begin((struct grpc_server_times){400, 60000, 60000}, (struct manner){.first_ms = 500});
    int fd = caller_open();
    size_t bytes = caller_write(out, 1, "9H", false);
    bytes += caller_write(out + bytes, 3, "9H", true);
    bytes += caller_write(out + bytes, 5, "99m", true);
    caller_send(fd, out, bytes);
    for (int i = 0; i < FRAMES; i++) {
        const uint8_t head[] = {0, 0x40, 0, FRAME_DATA, i == FRAMES - 1, 0, 0, 0, 1};
        const uint8_t prefix[] = {0, 0, QUESTION_BYTES >> 16, QUESTION_BYTES >> 8 & 255,
                                  QUESTION_BYTES & 255};
        memcpy(frame, head, sizeof head);
        memset(frame + sizeof head, 0, 5);
        memcpy(frame + sizeof head, prefix, i == 0 ? sizeof prefix : 0);
        caller_send(fd, frame, sizeof frame);
    }
    for (int i = 0; i < 6; i++) { /* begin and end of each answer */
        EXPECT(caller_hears(fd, FRAME_HEADERS));
    }
    EXPECT_INT(served, 2);
    close(fd);
    patient_end();
}

/* A reset that the socket has no room for ends its call alone, unless its time is over too. */
static void resets_wait_for_room(void)
{
    uint8_t out[256];
    struct manner large = {.answer_bytes = 4 << 20};
    patient_begin((struct grpc_server_times){50, 60000, 60000}, large);
    int fd = caller_open();
    size_t bytes = caller_write(out, 1, "9H", true);
    bytes += caller_write(out + bytes, 3, "9H", false);
    caller_send(fd, out, bytes); /* the answer to the first fills the socket */
    int later = caller_open();
    caller_ask(later, "9H", false);
    EXPECT(caller_hears(later, FRAME_RESET)); /* the second is reset by then */
    EXPECT(caller_hears(fd, FRAME_RESET));
    EXPECT(caller_hears(fd, FRAME_HEADERS)); /* the end of the first */
    close(fd);
    close(later);
    patient_end();
    patient_begin((struct grpc_server_times){60000, 50, 60000}, large);
    fd = caller_open();
    caller_ask(fd, "9H", true);
    struct pollfd watched = {fd, 0, 0};
    EXPECT(poll(&watched, 1, WAIT_MS) == 1 && watched.revents == POLLHUP);
    close(fd);
    patient_end();
}

static void answers_that_nobody_takes_are_bounded(void)
{
    struct grpc_client *client = NULL;
    struct grpc_call *call = NULL;
    struct error error;
    patient_begin((struct grpc_server_times){60000, 60000, 60000},
                  (struct manner){.answer_bytes = GRPC_ANSWERS_BYTES_MAX / 2 + 1});
    int fd = caller_open();
    caller_ask(fd, "9H", true);
    EXPECT(caller_hears(fd, FRAME_HEADERS));
    EXPECT_OK(grpc_open(grpc_server_address(patient), WAIT_MS, NULL, &client, &error), error);
    EXPECT_OK(grpc_begin(client, "/a/b", NULL, 0, NULL, &call, &error), error);
    EXPECT_OK(grpc_wait(&client, 1, WAIT_MS, &error), error);
    EXPECT_INT(grpc_call_code(call), GRPC_RESOURCE_EXHAUSTED);
    grpc_close(client);
    close(fd);
    patient_end();
}

static void calls_end_with_their_time(void)
{
    patient_begin((struct grpc_server_times){50, 60000, 60000}, (struct manner){0});
    int fd = caller_open();
    caller_ask(fd, "1n", true);
    EXPECT(caller_hears(fd, FRAME_HEADERS)); /* it is answered that it is late */
    EXPECT_INT(served, 0);
    close(fd);
    fd = caller_open();
    caller_ask(fd, "9H", true);
    EXPECT(caller_hears(fd, FRAME_DATA));
    EXPECT_INT(served, 1);
    close(fd);
    fd = caller_open();
    caller_ask(fd, "9H", false); /* a question that never ends */
    EXPECT(caller_hears(fd, FRAME_RESET));
    EXPECT_INT(served, 1);
    close(fd);
    patient_end();
}

/* A question of 4 MiB that is reset on its way is no flood: its connection goes on. */
static void what_is_on_its_way_to_a_reset_call_is_no_flood(void)
{
    static uint8_t frame[FRAME_BYTES + 16384] = {0, 0x40, 0, FRAME_DATA, 0, 0, 0, 0, 1};
    uint8_t out[128];
    patient_begin((struct grpc_server_times){50, 60000, 60000}, (struct manner){0});
    int fd = caller_open();
    caller_ask(fd, "9H", false);
    EXPECT(caller_hears(fd, FRAME_RESET));
    for (int i = 0; i < 256; i++) {
        caller_send(fd, frame, sizeof frame);
    }
    caller_send(fd, out, caller_write(out, 3, "9H", true));
    EXPECT(caller_hears(fd, FRAME_DATA));
    EXPECT_INT(served, 1);
    close(fd);
    patient_end();
}

static void idle_connections_make_way(void)
{
    int fds[GRPC_SERVER_CONNECTIONS + 1];
    patient_begin((struct grpc_server_times){60000, 60000, 50}, (struct manner){0});
    int fd = caller_open();
    EXPECT(caller_hears(fd, FRAME_GOAWAY));
    EXPECT(!caller_hears(fd, FRAME_DATA)); /* and it was closed */
    close(fd);
    patient_end();
    patient_begin((struct grpc_server_times){60000, 60000, 60000}, (struct manner){0});
    for (int i = 0; i <= GRPC_SERVER_CONNECTIONS; i++) {
        fds[i] = caller_open();
        caller_ask(fds[i], "9H", i != 0); /* the first has a call that goes on */
        EXPECT(i == 0 || caller_hears(fds[i], FRAME_DATA));
    }
    EXPECT_INT(served, GRPC_SERVER_CONNECTIONS);
    EXPECT(caller_hears(fds[1], FRAME_GOAWAY)); /* without a call for longest */
    for (int i = 0; i <= GRPC_SERVER_CONNECTIONS; i++) {
        close(fds[i]);
    }
    patient_end();
}

/* ---- abuse ---- */

enum { ABUSE_BYTES = 1 << 16, ABUSE_BYTES_MAX = 64 << 20 };

/* A frame's head; returns its bytes. */
static size_t abuse_head(uint8_t *to, size_t bytes, int kind, int flags, uint32_t stream)
{
    const uint8_t head[FRAME_BYTES] = {
        (uint8_t)(bytes >> 16),  (uint8_t)(bytes >> 8),  (uint8_t)bytes,
        (uint8_t)kind,           (uint8_t)flags,         (uint8_t)(stream >> 24),
        (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
    memcpy(to, head, sizeof head);
    return sizeof head;
}

/* HEADERS of a call that goes on. */
static size_t abuse_call(uint8_t *to, uint32_t stream)
{
    static const char fields[] = "\x83\x86\x01\x01h\x00\x05:path\x04/a/b";
    size_t head = abuse_head(to, sizeof fields - 1, FRAME_HEADERS, 4, stream);
    memcpy(to + head, fields, sizeof fields - 1);
    return head + sizeof fields - 1;
}

/* Frames of one kind of `bytes` zeros. */
static size_t abuse_frame(uint8_t *to, int kind, uint32_t stream, size_t bytes)
{
    size_t head = abuse_head(to, bytes, kind, 0, stream);
    memset(to + head, 0, bytes);
    return head + bytes;
}

/* Kinds of abuse; each writes its round's frames, at most 1 KiB but for headers. */
enum abuse {
    ABUSE_PING,
    ABUSE_SETTINGS,
    ABUSE_WINDOW,
    ABUSE_PRIORITY,
    ABUSE_UNKNOWN,
    ABUSE_EMPTY_DATA,
    ABUSE_SMALL_DATA,
    ABUSE_RESET,      /* calls, reset at once */
    ABUSE_MADE_RESET, /* calls that the server has to reset */
    ABUSE_STREAMS,    /* calls beyond their number */
    ABUSE_CONTINUATION,
    ABUSE_COUNT
};

static size_t abuse_write(uint8_t *to, enum abuse kind, uint32_t round)
{
    const uint32_t stream = 2 * round + 1;
    size_t bytes = 0;
    switch (kind) {
    case ABUSE_PING:
        return abuse_frame(to, FRAME_PING, 0, 8);
    case ABUSE_SETTINGS:
        return abuse_frame(to, FRAME_SETTINGS, 0, 0);
    case ABUSE_WINDOW:
        bytes = abuse_frame(to, FRAME_WINDOW, 0, 4);
        to[bytes - 1] = 1;
        return bytes;
    case ABUSE_PRIORITY:
        return abuse_frame(to, FRAME_PRIORITY, stream, 5);
    case ABUSE_UNKNOWN:
        return abuse_frame(to, FRAME_UNKNOWN, 0, 0);
    case ABUSE_EMPTY_DATA:
    case ABUSE_SMALL_DATA:
        bytes = round == 0 ? abuse_call(to, 1) : 0;
        return bytes + abuse_frame(to + bytes, FRAME_DATA, 1, kind == ABUSE_SMALL_DATA);
    case ABUSE_RESET:
        bytes = abuse_call(to, stream);
        return bytes + abuse_frame(to + bytes, FRAME_RESET, stream, 4);
    case ABUSE_MADE_RESET: /* a window that opens by 0 */
        bytes = abuse_call(to, stream);
        return bytes + abuse_frame(to + bytes, FRAME_WINDOW, stream, 4);
    case ABUSE_STREAMS:
        return abuse_call(to, stream);
    default: /* headers that never end */
        bytes = round == 0 ? abuse_call(to, 1) : 0;
        to[4] = 0;
        return round == 0 ? bytes : abuse_frame(to, FRAME_CONTINUATION, 1, 0);
    }
}

/* Sends frames of a kind until the connection has ended; returns how many bytes it bore. `reads`:
 * what comes back is taken. */
static size_t abuse(int fd, enum abuse kind, bool reads)
{
    static uint8_t out[ABUSE_BYTES + 1024], in[ABUSE_BYTES];
    size_t all = 0, at = 0, end = 0;
    for (uint32_t round = 0; all < ABUSE_BYTES_MAX;) {
        while (end < ABUSE_BYTES && at == 0) {
            end += abuse_write(out + end, kind, round++);
        }
        struct pollfd watched = {fd, (short)(POLLOUT | (reads ? POLLIN : 0)), 0};
        EXPECT(poll(&watched, 1, WAIT_MS) == 1);
        if (reads && (watched.revents & POLLIN) != 0 && recv(fd, in, sizeof in, 0) <= 0) {
            return all;
        }
        ssize_t sent = send(fd, out + at, end - at, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) {
            return all;
        }
        all += sent > 0 ? (size_t)sent : 0;
        at += sent > 0 ? (size_t)sent : 0;
        end = at == end ? 0 : end;
        at = end == 0 ? 0 : at;
    }
    return all;
}

/* A neighbour's call is answered. */
static void neighbour_is_served(struct grpc_client *neighbour)
{
    struct grpc_call *call = NULL;
    struct error error;
    EXPECT_OK(grpc_begin(neighbour, "/a/b", NULL, 0, NULL, &call, &error), error);
    EXPECT_OK(grpc_wait(&neighbour, 1, WAIT_MS, &error), error);
    EXPECT_INT(grpc_call_code(call), GRPC_OK);
    grpc_call_free(neighbour, call);
}

static struct grpc_client *neighbour_open(void)
{
    struct grpc_client *neighbour = NULL;
    struct error error;
    EXPECT_OK(grpc_open(grpc_server_address(patient), WAIT_MS, NULL, &neighbour, &error), error);
    return neighbour;
}

/* Waits for a line of the log. */
static void expect_log(const char *sentence)
{
    char line[1024] = "";
    struct pollfd watched = {log_fds[0], POLLIN, 0};
    EXPECT(poll(&watched, 1, WAIT_MS) == 1 && read(log_fds[0], line, sizeof line - 1) > 0);
    EXPECT_CONTAINS(line, sentence);
}

/* Goal: every kind of frame that costs the sender little ends its connection, with a sentence,
 * whether or not the sender reads; the memory that it took is given back, and others are served. */
static void floods_end_their_connection(void)
{
    enum { MEMORY_BYTES = 1 << 16, BORNE_BYTES = 1 << 20 };
    static const char ours[] = "it floods the connection with frames that bring nothing";
    static const char *const sentences[ABUSE_COUNT] = {
        ours,
        ours,
        ours,
        ours,
        ours,
        ours,
        ours,
        ours,
        NULL,
        NULL,
        "it does not speak HTTP/2 (Too many CONTINUATION frames"};
    for (int i = 0; i < 2 * ABUSE_COUNT; i++) {
        patient_begin((struct grpc_server_times){60000, 60000, 60000}, (struct manner){0});
        struct grpc_client *neighbour = neighbour_open();
        neighbour_is_served(neighbour);
        const size_t before = mallinfo2().uordblks;
        int fd = caller_open();
        EXPECT(abuse(fd, (enum abuse)(i / 2), i % 2 == 0) < BORNE_BYTES);
        neighbour_is_served(neighbour);
        EXPECT(mallinfo2().uordblks < before + MEMORY_BYTES);
        if (sentences[i / 2] != NULL) { /* else libnghttp2 says goodbye by itself */
            expect_log(sentences[i / 2]);
        }
        close(fd);
        grpc_close(neighbour);
        patient_end();
    }
}

/* A field of 3,000 bytes, named 13,000 times by a byte each. */
static void headers_that_unpack_to_much_end_their_connection(void)
{
    static uint8_t out[FRAME_BYTES + (62 << 8)];
    static const uint8_t field[] = {0x83, 0x40, 1, 'x', 0x7f, 0xb9, 0x16}; /* 3,000 */
    patient_begin((struct grpc_server_times){60000, 60000, 60000}, (struct manner){0});
    int fd = caller_open();
    struct grpc_client *neighbour = neighbour_open();
    memset(out, 0xbe, sizeof out);
    abuse_head(out, 62 << 8, FRAME_HEADERS, 4, 1);
    memcpy(out + FRAME_BYTES, field, sizeof field);
    memset(out + FRAME_BYTES + sizeof field, 'v', 3000);
    caller_send(fd, out, sizeof out);
    EXPECT(caller_hears(fd, FRAME_GOAWAY));
    EXPECT(!caller_hears(fd, FRAME_GOAWAY)); /* and it was closed */
    expect_log("ended 1 connections, the last one: it sends more than 16 KiB of headers at once");
    neighbour_is_served(neighbour);
    grpc_close(neighbour);
    close(fd);
    patient_end();
}

/* Messages that no service is asked: a length of 4 GB, compressed bytes, none at all; the call ends
 * with a status, its connection goes on. */
static void messages_that_are_none_are_refused(void)
{
    static const uint8_t prefixes[3][5] = {{0, 255, 255, 255, 255}, {1, 0, 0, 0, 1}, {0}};
    static const size_t bytes[3] = {5, 6, 0};
    static const int codes[3] = {GRPC_RESOURCE_EXHAUSTED, GRPC_UNIMPLEMENTED,
                                 GRPC_INVALID_ARGUMENT};
    uint8_t out[128];
    patient_begin((struct grpc_server_times){60000, 60000, 60000}, (struct manner){0});
    int fd = caller_open();
    nghttp2_hd_inflater *inflater = NULL;
    EXPECT_INT(nghttp2_hd_inflate_new(&inflater), 0);
    for (uint32_t i = 0; i < 3; i++) {
        size_t at = abuse_call(out, 2 * i + 1);
        at += abuse_head(out + at, bytes[i], FRAME_DATA, 1, 2 * i + 1);
        memcpy(out + at, prefixes[i], 5);
        out[at + 5] = 'x';
        caller_send(fd, out, at + bytes[i]);
        EXPECT_INT(caller_status(fd, inflater), codes[i]);
    }
    EXPECT_INT(served, 0);
    caller_send(fd, out, caller_write(out, 7, "9H", true));
    EXPECT_INT(caller_status(fd, inflater), GRPC_OK);
    nghttp2_hd_inflate_del(inflater);
    close(fd);
    patient_end();
}

/* An answer for which no window opens is reset when its time is over; a GOAWAY of the caller ends
 * none of its calls. */
static void windows_and_goodbyes(void)
{
    uint8_t out[128] = {0, 0, 6, FRAME_SETTINGS, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0};
    patient_begin((struct grpc_server_times){60000, 50, 60000},
                  (struct manner){.answer_bytes = 1000});
    int fd = caller_open();
    caller_send(fd, out, 15);
    caller_ask(fd, "9H", true);
    EXPECT(caller_hears(fd, FRAME_RESET));
    close(fd);
    fd = caller_open();
    size_t bytes = caller_write(out, 1, "9H", true);
    bytes += abuse_frame(out + bytes, FRAME_GOAWAY, 0, 8);
    caller_send(fd, out, bytes);
    EXPECT(caller_hears(fd, FRAME_DATA));
    close(fd);
    patient_end();
}

int main(void)
{
    (void)mallopt(M_ARENA_MAX, 1); /* of which mallinfo2 tells; sanitizers have none */
    return TEST_RUN(
        TEST(callers_take_turns), TEST(time_stands_still_for_others), TEST(resets_wait_for_room),
        TEST(answers_that_nobody_takes_are_bounded), TEST(calls_end_with_their_time),
        TEST(what_is_on_its_way_to_a_reset_call_is_no_flood), TEST(idle_connections_make_way),
        TEST(floods_end_their_connection), TEST(headers_that_unpack_to_much_end_their_connection),
        TEST(messages_that_are_none_are_refused), TEST(windows_and_goodbyes));
}
