/*
 * Connections and their watchdog. See http_connections.h.
 */
#include "store/server/http_connections.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { DESCRIPTORS_RESERVED = 96 }; /* left to the rest of the process */

static int64_t now_ns(void)
{
    return clock_now_ns(clock_system());
}

static struct http_peer peer_of(const struct sockaddr *address)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct http_peer peer = {.known = false};
    if (address != NULL && address->sa_family == AF_INET) {
        struct sockaddr_in four;
        memcpy(&four, address, sizeof four);
        memcpy(peer.bytes, mapped, sizeof mapped);
        memcpy(peer.bytes + sizeof mapped, &four.sin_addr, sizeof four.sin_addr);
        peer.known = true;
    } else if (address != NULL && address->sa_family == AF_INET6) {
        struct sockaddr_in6 six;
        memcpy(&six, address, sizeof six);
        bool is_mapped = memcmp(six.sin6_addr.s6_addr, mapped, sizeof mapped) == 0;
        memcpy(peer.bytes, six.sin6_addr.s6_addr, is_mapped ? 16 : 8);
        peer.known = true;
    }
    return peer;
}

/* With the mutex held. */
static enum http_crowd judge_crowd(const struct http_connections *list,
                                   const struct http_peer *peer)
{
    size_t same = 0;
    for (const struct http_connection *each = list->first; each != NULL; each = each->next) {
        same += each->peer.known && memcmp(each->peer.bytes, peer->bytes, sizeof peer->bytes) == 0;
    }
    if (list->peer_max > 0 && peer->known && same >= list->peer_max) {
        return HTTP_CROWD_PEER;
    }
    return list->count >= list->server_max ? HTTP_CROWD_SERVER : HTTP_CROWD_NONE;
}

struct http_connection *http_connection_open(struct http_connections *list, void *owner, int fd,
                                             const struct sockaddr *address, int64_t allow_ms)
{
    struct http_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        return NULL;
    }
    connection->list = list;
    connection->owner = owner;
    connection->fd = fd;
    connection->peer = peer_of(address);
    connection->deadline_ns = now_ns() + allow_ms * NS_PER_MS;
    pthread_mutex_lock(&list->mutex);
    connection->crowd = judge_crowd(list, &connection->peer);
    connection->next = list->first;
    connection->link = &list->first;
    if (connection->next != NULL) {
        connection->next->link = &connection->next;
    }
    list->first = connection;
    list->count++;
    pthread_mutex_unlock(&list->mutex);
    return connection;
}

void http_connection_close(struct http_connection *connection)
{
    if (connection == NULL) {
        return;
    }
    struct http_connections *list = connection->list;
    pthread_mutex_lock(&list->mutex);
    *connection->link = connection->next;
    if (connection->next != NULL) {
        connection->next->link = connection->link;
    }
    list->count--;
    pthread_cond_broadcast(&list->changed);
    pthread_mutex_unlock(&list->mutex);
    free(connection);
}

void http_connection_phase(struct http_connection *connection, enum http_phase phase,
                           int64_t allow_ms)
{
    struct http_connections *list = connection->list;
    pthread_mutex_lock(&list->mutex);
    connection->phase = phase;
    connection->deadline_ns = now_ns() + allow_ms * NS_PER_MS;
    if (phase == HTTP_IDLE) {
        pthread_cond_broadcast(&list->changed);
    }
    pthread_mutex_unlock(&list->mutex);
}

/* With the mutex held: ends the connections that the caller's rule names; how many are left. */
static size_t shut(struct http_connections *list,
                   bool (*rule)(const struct http_connection *, int64_t time_ns))
{
    int64_t time_ns = now_ns();
    size_t left = 0;
    for (struct http_connection *each = list->first; each != NULL; each = each->next) {
        if (rule(each, time_ns)) {
            shutdown(each->fd, SHUT_RDWR);
        } else {
            left++;
        }
    }
    return left;
}

static bool rule_late(const struct http_connection *connection, int64_t time_ns)
{
    return connection->phase != HTTP_HANDLING && time_ns > connection->deadline_ns;
}

static bool rule_idle(const struct http_connection *connection, int64_t time_ns)
{
    (void)time_ns;
    return connection->phase == HTTP_IDLE;
}

static bool rule_unhandled(const struct http_connection *connection, int64_t time_ns)
{
    (void)time_ns;
    return connection->phase != HTTP_HANDLING;
}

/* Waits for at most the watch time, mutex held. */
static void wait_for(struct http_connections *list, pthread_cond_t *condition)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + list->watch_ms * NS_PER_MS;
    until.tv_sec += ns / NS_PER_S;
    until.tv_nsec = ns % NS_PER_S;
    pthread_cond_timedwait(condition, &list->mutex, &until);
}

static void *watch(void *context)
{
    struct http_connections *list = context;
    pthread_mutex_lock(&list->mutex);
    int64_t next_ns = 0;
    while (!list->ends) {
        if (now_ns() >= next_ns) {
            shut(list, rule_late);
            next_ns = now_ns() + list->watch_ms * NS_PER_MS;
        }
        wait_for(list, &list->ending);
    }
    pthread_mutex_unlock(&list->mutex);
    return NULL;
}

void http_connections_drain(struct http_connections *list, int64_t drain_ms)
{
    int64_t grace_ns = now_ns() + drain_ms * NS_PER_MS;
    pthread_mutex_lock(&list->mutex);
    for (;;) {
        bool patient = now_ns() < grace_ns;
        if (shut(list, patient ? rule_idle : rule_unhandled) == 0) {
            break;
        }
        wait_for(list, &list->changed);
    }
    pthread_mutex_unlock(&list->mutex);
}

void http_connections_count(struct http_connections *list, size_t counts[HTTP_PHASE_COUNT])
{
    memset(counts, 0, HTTP_PHASE_COUNT * sizeof counts[0]);
    pthread_mutex_lock(&list->mutex);
    for (const struct http_connection *each = list->first; each != NULL; each = each->next) {
        counts[each->phase]++;
    }
    pthread_mutex_unlock(&list->mutex);
}

static void destroy(struct http_connections *list)
{
    pthread_cond_destroy(&list->changed);
    pthread_cond_destroy(&list->ending);
    pthread_mutex_destroy(&list->mutex);
}

enum status http_connections_start(struct http_connections *list, int64_t watch_ms,
                                   size_t server_max, size_t peer_max, struct error *error)
{
    pthread_condattr_t monotonic;
    sigset_t all;
    sigset_t before;
    memset(list, 0, sizeof *list);
    list->watch_ms = watch_ms;
    list->server_max = server_max;
    list->peer_max = peer_max;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&list->changed, &monotonic);
    pthread_cond_init(&list->ending, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&list->mutex, NULL);
    /* Signals belong to the program's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int reason = pthread_create(&list->watchdog, NULL, watch, list);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (reason != 0) {
        destroy(list);
        return error_set(error, STATUS_NO_MEMORY, "cannot start the server's watchdog: %s",
                         strerror(reason));
    }
    return STATUS_OK;
}

void http_connections_finish(struct http_connections *list)
{
    pthread_mutex_lock(&list->mutex);
    CHECK(list->first == NULL);
    list->ends = true;
    pthread_cond_broadcast(&list->ending);
    pthread_mutex_unlock(&list->mutex);
    pthread_join(list->watchdog, NULL);
    destroy(list);
}

size_t http_connections_limit(size_t wanted, size_t spare)
{
    struct rlimit files = {0};
    size_t reserved = spare + DESCRIPTORS_RESERVED;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY ||
        files.rlim_cur >= wanted + reserved) {
        return wanted;
    }
    return files.rlim_cur > 2 * reserved ? (size_t)files.rlim_cur - reserved : reserved;
}
