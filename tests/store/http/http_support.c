/*
 * Helpers of the HTTP tests. See http_support.h.
 */
#include "tests/store/http/http_support.h"

#include "base/check.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { RELAY_CONNECTIONS_MAX = 256, RELAY_BYTES = 1 << 20 };

static char directory[64];

static void remove_directory(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    if (system(command) != 0) {
        fprintf(stderr, "# cannot remove %s\n", directory);
    }
}

const char *support_directory(void)
{
    if (directory[0] == '\0') {
        /* In memory where that is possible: these tests are not about disks. */
        strcpy(directory, "/dev/shm/swerve-test-XXXXXX");
        if (mkdtemp(directory) == NULL) {
            strcpy(directory, "/tmp/swerve-test-XXXXXX");
            CHECK(mkdtemp(directory) != NULL);
        }
        atexit(remove_directory);
    }
    return directory;
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(strlen(path) < sizeof address.sun_path);
    strcpy(address.sun_path, path);
    return address;
}

int support_listen(const char *path)
{
    struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(path);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(fd, 4096) == 0);
    return fd;
}

int support_connect(const char *path)
{
    struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

/* Bytes of a whole reply, or 0 while it is not complete. */
static size_t reply_length(const char *reply, size_t bytes)
{
    const char *end = memmem(reply, bytes, "\r\n\r\n", 4);
    if (end == NULL) {
        return 0;
    }
    const char *length = strcasestr(reply, "content-length:");
    size_t body = length != NULL && length < end ? strtoul(length + 15, NULL, 10) : 0;
    size_t whole = (size_t)(end - reply) + 4 + body;
    return bytes >= whole ? whole : 0;
}

int support_request(int fd, const char *bytes, size_t count, char *reply, size_t capacity)
{
    size_t used = 0;
    int code = 0;
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0) {
            break; /* refused early: the answer may be there all the same */
        }
        bytes += sent;
        count -= (size_t)sent;
    }
    reply[0] = '\0';
    while (used + 1 < capacity && reply_length(reply, used) == 0) {
        ssize_t got = recv(fd, reply + used, capacity - used - 1, 0);
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
        reply[used] = '\0';
    }
    if (sscanf(reply, "HTTP/1.1 %d", &code) != 1) {
        return 0;
    }
    return code;
}

int support_call(const char *socket_path, const char *method, const char *path, const char *body,
                 char *reply, size_t capacity)
{
    size_t bytes = strlen(body);
    char *text = malloc(bytes + strlen(path) + 256);
    CHECK(text != NULL);
    int count = sprintf(text, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", method,
                        path, bytes, body);
    int fd = support_connect(socket_path);
    int code = support_request(fd, text, (size_t)count, reply, capacity);
    close(fd);
    free(text);
    return code;
}

/* ---- relay ---- */

struct support_relay {
    char server_path[108];
    int listen_fd;
    int lose_from;
    int lose_count;
    atomic_int answers;
    pthread_t acceptor;
    pthread_t threads[RELAY_CONNECTIONS_MAX];
    int fds[RELAY_CONNECTIONS_MAX];
    int count;
};

struct relay_connection {
    struct support_relay *relay;
    int client;
};

/* False: the peer closed. */
static bool forward_bytes(int from, int to)
{
    char bytes[16384];
    ssize_t got = recv(from, bytes, sizeof bytes, 0);
    if (got <= 0) {
        return false;
    }
    return send(to, bytes, (size_t)got, MSG_NOSIGNAL) == got;
}

/* Reads a whole reply and passes it on, or not. False: the connection ends here. */
static bool relay_answer(struct support_relay *relay, int server, int client, char *reply)
{
    size_t used = 0;
    reply[0] = '\0';
    while (reply_length(reply, used) == 0) {
        ssize_t got = recv(server, reply + used, RELAY_BYTES - used - 1, 0);
        if (got <= 0) {
            return false;
        }
        used += (size_t)got;
        reply[used] = '\0';
    }
    int number = atomic_fetch_add(&relay->answers, 1) + 1;
    if (number >= relay->lose_from && number < relay->lose_from + relay->lose_count) {
        return false;
    }
    return send(client, reply, used, MSG_NOSIGNAL) == (ssize_t)used;
}

static void *relay_connection(void *context)
{
    struct relay_connection connection = *(struct relay_connection *)context;
    int server = support_connect(connection.relay->server_path);
    char *reply = malloc(RELAY_BYTES);
    bool open = reply != NULL;
    free(context);
    while (open) {
        struct pollfd ends[2] = {{.fd = connection.client, .events = POLLIN},
                                 {.fd = server, .events = POLLIN}};
        if (poll(ends, 2, -1) < 0) {
            break;
        }
        if (ends[0].revents != 0) {
            open = forward_bytes(connection.client, server);
        } else if (ends[1].revents != 0) {
            open = relay_answer(connection.relay, server, connection.client, reply);
        }
    }
    free(reply);
    close(server);
    shutdown(connection.client, SHUT_RDWR);
    return NULL;
}

static void *relay_accept(void *context)
{
    struct support_relay *relay = context;
    for (;;) {
        int client = accept(relay->listen_fd, NULL, NULL);
        if (client < 0) {
            return NULL;
        }
        struct relay_connection *connection = malloc(sizeof *connection);
        CHECK(connection != NULL && relay->count < RELAY_CONNECTIONS_MAX);
        *connection = (struct relay_connection){relay, client};
        relay->fds[relay->count] = client;
        CHECK(pthread_create(&relay->threads[relay->count], NULL, relay_connection, connection) ==
              0);
        relay->count++;
    }
}

struct support_relay *support_relay_start(const char *listen_path, const char *server_path,
                                          int lose_from, int lose_count)
{
    struct support_relay *relay = calloc(1, sizeof *relay);
    CHECK(relay != NULL);
    snprintf(relay->server_path, sizeof relay->server_path, "%s", server_path);
    relay->listen_fd = support_listen(listen_path);
    relay->lose_from = lose_from;
    relay->lose_count = lose_count;
    CHECK(pthread_create(&relay->acceptor, NULL, relay_accept, relay) == 0);
    return relay;
}

int support_relay_answers(const struct support_relay *relay)
{
    return atomic_load(&relay->answers);
}

void support_relay_stop(struct support_relay *relay)
{
    shutdown(relay->listen_fd, SHUT_RDWR);
    pthread_join(relay->acceptor, NULL);
    for (int i = 0; i < relay->count; i++) {
        shutdown(relay->fds[i], SHUT_RDWR);
        pthread_join(relay->threads[i], NULL);
        close(relay->fds[i]);
    }
    close(relay->listen_fd);
    free(relay);
}
