/*
 * Requests whose end is not said plainly.
 *
 * Goal: no request hidden in the body of another one takes effect, however the outer one says where
 * its body ends; what is refused ends the connection.
 * Method: each shape carries a submission in what one reading takes for its body and another for
 * the next request; afterwards the suite must not be there. Plain shapes must go on working.
 */
#include "tests/store/http/http_stack.h"

#include <sys/socket.h>
#include <unistd.h>

static const char hidden[] = "POST /v1/suites/hidden/cancel HTTP/1.1\r\nHost: x\r\n"
                             "Content-Length: 2\r\n\r\n{}";

/* Sends the bytes, no more, and reads until the server closes; the replies are in text. */
static void converse(const struct stack *stack, const char *bytes, char *text, size_t capacity)
{
    size_t used = 0;
    int fd = support_connect(stack->socket_path);
    (void)!send(fd, bytes, strlen(bytes), MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR); /* so that a server that takes all of it ends too */
    for (;;) {
        ssize_t got = recv(fd, text + used, capacity - used - 1, 0);
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
    }
    text[used] = '\0';
    close(fd);
}

static void ambiguous_framing_is_refused(void)
{
    static const char *const headers[] = {
        "Content-Length: 100\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 100\r\n",
        "Content-Length: 2\r\nContent-Length: 100\r\n",
        "Content-Length: 100\r\nContent-Length: 2\r\n",
        "Content-Length: 2\r\nContent-Length: 2\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Content-Length: +2\r\n",
        "Content-Length: -2\r\n",
        "Content-Length: 2, 2\r\n",
        "Content-Length: 0x2\r\n",
        "Content-Length:\r\n",
        "Content-Length : 2\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        "Content-Length: 1000000000000000000000\r\n",
    };
    static const char *const bodies[] = {"0\r\n\r\n", "{}"};
    static struct stack stack;
    static char request[4096];
    static char reply[65536];
    stack_start(&stack);
    int calls = atomic_load(&stack.control.calls);
    for (size_t i = 0; i < COUNT_OF(headers) * COUNT_OF(bodies); i++) {
        snprintf(request, sizeof request,
                 "POST /v1/suites/outer/cancel HTTP/1.1\r\nHost: x\r\n%s\r\n%s%s",
                 headers[i / COUNT_OF(bodies)], bodies[i % COUNT_OF(bodies)], hidden);
        converse(&stack, request, reply, sizeof reply); /* returns: the connection was closed */
        if (strstr(reply, "HTTP/1.1 2") != NULL) {
            TEST_FAIL("%s: taken", request);
        }
    }
    EXPECT_INT(atomic_load(&stack.control.calls), calls); /* no request reached the store */
    stack_stop(&stack);
}

static void plain_framing_is_taken(void)
{
    static struct stack stack;
    static char reply[65536];
    static char request[4096];
    stack_start(&stack);
    snprintf(request, sizeof request,
             "POST /v1/suites/a/cancel HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
             "POST /v1/suites/a/cancel HTTP/1.1\r\nHost: x\r\ntransfer-encoding: Chunked\r\n\r\n"
             "2\r\n{}\r\n0\r\n\r\n"
             "GET /v1/suites HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    converse(&stack, request, reply, sizeof reply);
    size_t count = 0;
    for (const char *at = reply; (at = strstr(at, "HTTP/1.1 200")) != NULL; at++) {
        count++;
    }
    EXPECT_INT(count, 3);
    EXPECT_INT(atomic_load(&stack.control.calls), 3);
    stack_stop(&stack);
}

static int code_of(const struct stack *stack, const char *request)
{
    static char reply[65536];
    converse(stack, request, reply, sizeof reply);
    return strncmp(reply, "HTTP/1.1 ", 9) == 0 ? atoi(reply + 9) : 0;
}

/* RFC 9112, 3.2.2: what proxies send. */
static void absolute_targets_are_taken(void)
{
    static const struct {
        const char *request; /* without the lines that all have */
        int code;
    } rows[] = {
        {"GET http://store.example:8080/v1/suites?max=3 HTTP/1.1\r\nHost: x\r\n", 200},
        {"GET HTTPS://store.example/v1/suites HTTP/1.1\r\nHost: store.example\r\n", 200},
        {"GET http://[::1]:80/healthz HTTP/1.1\r\nHost: x\r\n", 200},
        {"GET http://x HTTP/1.1\r\nHost: x\r\n", 200}, /* the page */
        {"GET http://x/v1/nothing HTTP/1.1\r\nHost: x\r\n", 404},
        {"GET http://x?max=3 HTTP/1.1\r\nHost: x\r\n", 400},
        {"GET http:///healthz HTTP/1.1\r\nHost: x\r\n", 400},
        {"GET http://user@x/healthz HTTP/1.1\r\nHost: x\r\n", 400},
        {"GET ftp://x/healthz HTTP/1.1\r\nHost: x\r\n", 404},
        /* Its host counts, not the header's: a page may only ask its own. */
        {"GET http://a/v1/suites HTTP/1.1\r\nHost: b\r\nOrigin: http://a\r\n", 200},
        {"GET http://a/v1/suites HTTP/1.1\r\nHost: b\r\nOrigin: http://b\r\n", 403},
    };
    static struct stack stack;
    char request[512];
    stack_start(&stack);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        snprintf(request, sizeof request, "%sConnection: close\r\n\r\n", rows[i].request);
        int code = code_of(&stack, request);
        if (code != rows[i].code) {
            TEST_FAIL("expected %d, found %d: %s", rows[i].code, code, rows[i].request);
        }
    }
    stack_stop(&stack);
}

/* RFC 9112, 3.2: whoever stands in between may have gone by the other one. */
static void one_host_is_named(void)
{
    static const struct {
        const char *lines;
        const char *version;
        int code;
    } rows[] = {
        {"Host: x\r\n", "1.1", 200},
        {"Host: x:8080\r\n", "1.1", 200},
        {"Host: [::1]:8080 \r\n", "1.1", 200},
        {"Host:\r\n", "1.1", 200},
        {"", "1.0", 200},
        {"", "1.1", 400},
        {"Host: x\r\nHost: y\r\n", "1.1", 400},
        {"Host: x\r\nhost: x\r\n", "1.1", 400},
        {"Host: x\r\nHost: x\r\n", "1.0", 400},
        {"Host: x, y\r\n", "1.1", 400},
        {"Host: x y\r\n", "1.1", 400},
        {"Host: x/y\r\n", "1.1", 400},
        {"Host: a@x\r\n", "1.1", 400},
    };
    static struct stack stack;
    char request[512];
    stack_start(&stack);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        snprintf(request, sizeof request, "GET /healthz HTTP/%s\r\n%sConnection: close\r\n\r\n",
                 rows[i].version, rows[i].lines);
        int code = code_of(&stack, request);
        if (code != rows[i].code) {
            TEST_FAIL("expected %d, found %d: %s", rows[i].code, code, request);
        }
    }
    stack_stop(&stack);
}

int main(void)
{
    return TEST_RUN(TEST(ambiguous_framing_is_refused), TEST(plain_framing_is_taken),
                    TEST(absolute_targets_are_taken), TEST(one_host_is_named));
}
