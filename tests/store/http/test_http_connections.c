/*
 * Places in a server, and who gets them.
 *
 * Goal: a few addresses that say nothing cannot keep out whoever has a token, however many
 * connections they open; who has shown one keeps its place; who has not is not waited for.
 * Method: the list of connections alone, with addresses that are made up, at socket pairs: one that
 * is shut down reads its end. Then a server with tokens over TCP, byte by byte.
 */
#include "base/check.h"
#include "store/server/http_connections.h"
#include "store/server/http_server.h"
#include "store/server/tokens.h"
#include "tests/harness.h"
#include "tests/store/http/http_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PLACES = 64, CROWD = 400, LONG_MS = 600000 };

static struct error error;

/* ---- the list ---- */

struct end {
    struct http_connection *connection;
    int fds[2];
};

static void come(struct http_connections *list, unsigned address, int64_t allow_ms, struct end *out)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    from.sin_addr.s_addr = htonl(0x0a000000U + address);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out->fds) == 0);
    out->connection =
        http_connection_open(list, NULL, out->fds[0], (struct sockaddr *)&from, allow_ms);
    CHECK(out->connection != NULL);
}

static void go(struct end *end)
{
    http_connection_close(end->connection);
    close(end->fds[0]);
    close(end->fds[1]);
}

static bool is_shut(const struct end *end)
{
    struct pollfd look = {.fd = end->fds[1], .events = POLLIN};
    return poll(&look, 1, 0) == 1;
}

static void four_addresses_crowd_out_each_other(void)
{
    static struct end silent[CROWD];
    struct http_connections list;
    struct end honest;
    size_t left[5] = {0};
    EXPECT_OK(http_connections_start(&list, 60000, PLACES, 0, &error), error);
    for (unsigned i = 0; i < CROWD / 2; i++) {
        come(&list, i % 4, LONG_MS, &silent[i]);
        EXPECT_INT(silent[i].connection->crowd, HTTP_CROWD_NONE);
    }
    for (unsigned i = 0; i < CROWD / 2; i++) {
        left[i % 4] += is_shut(&silent[i]) ? 0 : 1;
    }
    EXPECT_INT(left[0] + left[1] + left[2] + left[3], PLACES / 4 + 1);
    for (int i = 0; i < 4; i++) {
        EXPECT(left[i] >= PLACES / 16 && left[i] <= PLACES / 16 + 1);
    }
    /* The newest ones are left: the others had their time. */
    EXPECT(!is_shut(&silent[CROWD / 2 - 1]) && is_shut(&silent[0]));
    come(&list, 9, LONG_MS, &honest);
    for (unsigned i = CROWD / 2; i < CROWD; i++) {
        come(&list, i % 4, LONG_MS, &silent[i]);
    }
    EXPECT(!is_shut(&honest)); /* before it has said a word */
    for (int i = 0; i < CROWD; i++) {
        go(&silent[i]);
    }
    go(&honest);
    EXPECT_INT(list.count + list.unknown, 0);
    http_connections_finish(&list);
}

/* All of one address, as workers behind a router: those that have shown a token stay. */
static void who_is_known_keeps_its_place(void)
{
    static struct end known[PLACES];
    struct http_connections list;
    struct end last;
    EXPECT_OK(http_connections_start(&list, 60000, PLACES, 0, &error), error);
    for (int i = 0; i < PLACES; i++) {
        come(&list, 1, LONG_MS, &known[i]);
        EXPECT_INT(known[i].connection->crowd, HTTP_CROWD_NONE);
        http_connection_know(known[i].connection, true);
    }
    come(&list, 2, LONG_MS, &last);
    EXPECT_INT(last.connection->crowd, HTTP_CROWD_SERVER); /* it is really full */
    go(&last);
    go(&known[0]);
    come(&list, 1, LONG_MS, &known[0]); /* unknown: its place is anybody's */
    come(&list, 2, LONG_MS, &last);
    EXPECT(last.connection->crowd == HTTP_CROWD_NONE && is_shut(&known[0]));
    for (int i = 1; i < PLACES; i++) {
        EXPECT(!is_shut(&known[i]));
    }
    /* A token that was revoked meanwhile. */
    http_connection_know(known[7].connection, false);
    http_connection_phase(last.connection, HTTP_HANDLING, 0); /* is being answered: spared */
    struct end next;
    come(&list, 3, LONG_MS, &next);
    EXPECT(next.connection->crowd == HTTP_CROWD_NONE && is_shut(&known[7]) && !is_shut(&last));
    for (int i = 0; i < PLACES; i++) {
        go(&known[i]);
    }
    go(&last);
    go(&next);
    http_connections_finish(&list);
}

static void an_address_has_its_own_limit(void)
{
    struct http_connections list;
    struct end ends[4];
    EXPECT_OK(http_connections_start(&list, 60000, PLACES, 2, &error), error);
    for (int i = 0; i < 3; i++) {
        come(&list, 5, LONG_MS, &ends[i]);
        EXPECT_INT(ends[i].connection->crowd, i < 2 ? HTTP_CROWD_NONE : HTTP_CROWD_PEER);
    }
    come(&list, 6, LONG_MS, &ends[3]);
    EXPECT_INT(ends[3].connection->crowd, HTTP_CROWD_NONE);
    for (int i = 0; i < 4; i++) {
        go(&ends[i]);
    }
    http_connections_finish(&list);
}

/* The beginning of a request does not give more time. */
static void the_time_of_an_unknown_peer_runs_on(void)
{
    struct http_connections list;
    struct end late;
    char byte;
    EXPECT_OK(http_connections_start(&list, 5, PLACES, 0, &error), error);
    come(&list, 1, 20, &late);
    http_connection_phase(late.connection, HTTP_RECEIVING, -1);
    EXPECT_INT(recv(late.fds[1], &byte, 1, 0), 0); /* waits until it is shut */
    go(&late);
    http_connections_finish(&list);
}

/* ---- a server ---- */

static struct {
    struct store *store;
    struct token_guard *guard;
    struct store_server *server;
    char token[TOKEN_SECRET_BYTES];
    int port;
} site;

static void site_start(size_t connections_max)
{
    static int serial;
    const struct http_server_times times = {.idle_ms = LONG_MS,
                                            .unknown_ms = 2000,
                                            .request_ms = LONG_MS,
                                            .watch_ms = 20,
                                            .drain_ms = 5000};
    struct token token = {.role = TOKEN_ROLE_ADMIN, .name = "a"};
    struct tcp_place place;
    char path[200];
    char tokens[220];
    int fd = -1;
    snprintf(path, sizeof path, "%s/c%d.db", support_directory(), serial++);
    snprintf(tokens, sizeof tokens, "%s.tokens", path);
    EXPECT_OK(tokens_add(tokens, &token, site.token, &error), error);
    EXPECT_OK(store_sqlite_open(path, NULL, &site.store, &error), error);
    EXPECT_OK(token_guard_create(tokens, clock_system(), NULL, &site.guard, &error), error);
    EXPECT_OK(tcp_listen("127.0.0.1:0", &fd, &place, &error), error);
    site.port = atoi(strrchr(place.text, ':') + 1);
    const struct store_server_options options = {.guard = site.guard,
                                                 .connections_max = connections_max};
    EXPECT_OK(http_server_start(site.store, fd, NULL, &options, &times, &site.server, &error),
              error);
}

static void site_stop(void)
{
    store_server_stop(site.server);
    token_guard_destroy(site.guard);
    site.store->ops->close(site.store);
}

static int dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)site.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

static int ask(int fd, bool with_token)
{
    char text[256];
    char reply[2048];
    int bytes = snprintf(text, sizeof text, "GET /v1/health HTTP/1.1\r\nHost: x\r\n%s%s%s\r\n",
                         with_token ? "Authorization: Bearer " : "", with_token ? site.token : "",
                         with_token ? "\r\n" : "");
    return support_request(fd, text, (size_t)bytes, reply, sizeof reply);
}

static void expect_end(int fd)
{
    char byte;
    EXPECT(recv(fd, &byte, 1, 0) <= 0); /* waits */
    close(fd);
}

static void silence_is_not_waited_for(void)
{
    static const char *const begins[] = {"", "GET /healthz HTTP/1.1\r\n",
                                         "GET /healthz HTTP/1.1\r\nHost: x\r\nX: "};
    int silent[COUNT_OF(begins) + 1];
    site_start(0);
    int known = dial();
    EXPECT_INT(ask(known, true), 200);
    for (size_t i = 0; i < COUNT_OF(begins); i++) {
        silent[i] = dial();
        EXPECT(send(silent[i], begins[i], strlen(begins[i]), MSG_NOSIGNAL) ==
               (ssize_t)strlen(begins[i]));
    }
    silent[COUNT_OF(begins)] = dial();
    EXPECT_INT(ask(silent[COUNT_OF(begins)], false), 401);
    for (size_t i = 0; i < COUNT_OF(silent); i++) {
        expect_end(silent[i]);
    }
    /* All that time it has said nothing either. */
    EXPECT_INT(ask(known, true), 200);
    close(known);
    site_stop();
}

static void a_token_finds_a_place_among_those_who_say_nothing(void)
{
    enum { SILENT = 60, SERVED = 8 };
    int silent[SILENT];
    site_start(SERVED);
    for (int i = 0; i < SILENT / 2; i++) {
        silent[i] = dial();
    }
    int known = dial();
    EXPECT_INT(ask(known, true), 200);
    for (int i = SILENT / 2; i < SILENT; i++) {
        silent[i] = dial();
    }
    int late = dial();
    EXPECT_INT(ask(late, true), 200);
    EXPECT_INT(ask(known, true), 200);
    for (int i = 0; i < SILENT; i++) {
        close(silent[i]);
    }
    close(late);
    close(known);
    site_stop();
}

int main(void)
{
    return TEST_RUN(TEST(four_addresses_crowd_out_each_other), TEST(who_is_known_keeps_its_place),
                    TEST(an_address_has_its_own_limit), TEST(the_time_of_an_unknown_peer_runs_on),
                    TEST(silence_is_not_waited_for),
                    TEST(a_token_finds_a_place_among_those_who_say_nothing));
}
