/*
 * The gRPC server: whose turn it is, how long it bears with a caller, and what it keeps for one.
 * Callers write HTTP/2 frames of their own.
 */
#include "base/check.h"
#include "tests/harness.h"
#include "worker/grpc/grpc.h"
#include "worker/grpc/grpc_server.h"
#include "worker/grpc/grpc_socket.h"

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
    FRAME_RESET = 3,
    FRAME_SETTINGS,
    FRAME_GOAWAY = 7
};

static struct grpc_server *patient;
static int quit_fds[2];
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
    struct error error;
    char address[64];
    snprintf(address, sizeof address, "unix:/tmp/swerve-patient-%d", (int)getpid());
    served = 0;
    manner = how;
    EXPECT(sem_init(&arrived, 0, 0) == 0 && sem_init(&gate, 0, 0) == 0 && pipe(quit_fds) == 0);
    EXPECT_OK(grpc_server_open(address, count_call, NULL, &patient, &error), error);
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

/* Reads frames to the end of one of a kind; false: the connection ended before. */
static bool caller_hears(int fd, int kind)
{
    for (;;) {
        uint8_t head[FRAME_BYTES] = {0}, in[16384] = {0};
        size_t held = 0, bytes = 0; /* of the head, then of what follows */
        while (held < FRAME_BYTES || bytes > 0) {
            struct pollfd watched = {fd, POLLIN, 0};
            EXPECT(poll(&watched, 1, WAIT_MS) == 1);
            uint8_t *to = held < FRAME_BYTES ? head + held : in;
            ssize_t got = recv(fd, to, held < FRAME_BYTES ? FRAME_BYTES - held : bytes, 0);
            if (got <= 0) {
                return false;
            }
            bytes -= held < FRAME_BYTES ? 0 : (size_t)got;
            held += (size_t)got;
            bytes = held == FRAME_BYTES ? (size_t)head[1] << 8 | head[2] : bytes;
        }
        if (head[3] == kind) {
            return true;
        }
    }
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
    EXPECT_OK(grpc_socket_connect(grpc_server_address(patient), WAIT_MS, &fd, &error), error);
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
    EXPECT_OK(grpc_open(grpc_server_address(patient), WAIT_MS, &client, &error), error);
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

int main(void)
{
    return TEST_RUN(TEST(callers_take_turns), TEST(time_stands_still_for_others),
                    TEST(resets_wait_for_room), TEST(answers_that_nobody_takes_are_bounded),
                    TEST(calls_end_with_their_time), TEST(idle_connections_make_way));
}
