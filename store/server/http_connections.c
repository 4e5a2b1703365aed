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

enum {
    DESCRIPTORS_RESERVED = 96, /* left to the rest of the process */
    UNKNOWN_PART = 4,          /* a quarter of the places */
};

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

/* ---- addresses: with the mutex held ---- */

static struct http_address **place_of(struct http_connections *list, const struct http_peer *peer)
{
    uint32_t hash = 2166136261U; /* FNV-1a: who can choose many addresses gains nothing by it */
    for (size_t i = 0; i < sizeof peer->bytes; i++) {
        hash = (hash ^ peer->bytes[i]) * 16777619U;
    }
    struct http_address **at = &list->addresses[hash % HTTP_ADDRESS_BUCKETS];
    while (*at != NULL && memcmp((*at)->peer.bytes, peer->bytes, sizeof peer->bytes) != 0) {
        at = &(*at)->next;
    }
    return at;
}

/* NULL: out of memory. */
static struct http_address *find_address(struct http_connections *list,
                                         const struct http_peer *peer)
{
    struct http_address **at = place_of(list, peer);
    if (*at == NULL) {
        *at = calloc(1, sizeof **at);
        if (*at != NULL) {
            (*at)->peer = *peer;
        }
    }
    return *at;
}

static void count(struct http_connection *connection, bool comes)
{
    size_t one = comes ? 1 : SIZE_MAX; /* sizes wrap */
    connection->list->count += one;
    connection->list->unknown += connection->known ? 0 : one;
    if (connection->address != NULL) {
        connection->address->count += one;
        connection->address->unknown += connection->known ? 0 : one;
    }
}

/* The oldest unknown connection of the address that has the most of them. One whose answer is being
 * made is spared. NULL: there is none. */
static struct http_connection *find_displaced(const struct http_connections *list,
                                              const struct http_connection *newcomer)
{
    struct http_connection *found = NULL;
    for (struct http_connection *each = list->first; each != NULL; each = each->next) {
        if (each == newcomer || each->known || each->displaced || each->phase == HTTP_HANDLING) {
            continue;
        }
        size_t mine = each->address->unknown;
        size_t most = found != NULL ? found->address->unknown : 0;
        if (mine > most || (mine == most && each->serial < found->serial)) {
            found = each;
        }
    }
    return found;
}

/* Makes a place for the newcomer, which is counted, or says why it has none. */
static enum http_crowd settle(struct http_connections *list, struct http_connection *newcomer)
{
    if (list->peer_max > 0 && newcomer->address != NULL &&
        newcomer->address->count > list->peer_max) {
        newcomer->crowd = HTTP_CROWD_PEER;
    }
    bool full = list->count > list->server_max;
    if (!full && list->unknown <= list->unknown_max) {
        return newcomer->crowd;
    }
    struct http_connection *displaced = find_displaced(list, newcomer);
    if (displaced != NULL) {
        count(displaced, false);
        displaced->displaced = true;
        shutdown(displaced->fd, SHUT_RDWR);
    } else if (full && newcomer->crowd == HTTP_CROWD_NONE) {
        return HTTP_CROWD_SERVER;
    }
    return newcomer->crowd;
}

/* ---- connections ---- */

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
    connection->known = !connection->peer.known; /* at a Unix socket */
    connection->deadline_ns = now_ns() + allow_ms * NS_PER_MS;
    pthread_mutex_lock(&list->mutex);
    if (connection->peer.known) {
        connection->address = find_address(list, &connection->peer);
        if (connection->address == NULL) {
            pthread_mutex_unlock(&list->mutex);
            free(connection);
            return NULL;
        }
        connection->address->holders++;
    }
    connection->serial = list->serial++;
    connection->next = list->first;
    connection->link = &list->first;
    if (connection->next != NULL) {
        connection->next->link = &connection->next;
    }
    list->first = connection;
    count(connection, true);
    connection->crowd = settle(list, connection);
    pthread_mutex_unlock(&list->mutex);
    return connection;
}

/* With the mutex held. An address whose connections are all displaced is still pointed to. */
static void leave_address(struct http_connections *list, const struct http_connection *connection)
{
    struct http_address *address = connection->address;
    if (address != NULL && --address->holders == 0) {
        struct http_address **at = place_of(list, &address->peer);
        *at = address->next;
        free(address);
    }
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
    if (!connection->displaced) {
        count(connection, false);
    }
    leave_address(list, connection);
    pthread_cond_broadcast(&list->changed);
    pthread_mutex_unlock(&list->mutex);
    free(connection);
}

void http_connection_know(struct http_connection *connection, bool known)
{
    struct http_connections *list = connection->list;
    pthread_mutex_lock(&list->mutex);
    known = known || connection->address == NULL;
    if (!connection->displaced && known != connection->known) {
        count(connection, false);
        connection->known = known;
        count(connection, true);
    }
    pthread_mutex_unlock(&list->mutex);
}

bool http_connection_known(struct http_connection *connection)
{
    pthread_mutex_lock(&connection->list->mutex);
    bool known = connection->known;
    pthread_mutex_unlock(&connection->list->mutex);
    return known;
}

void http_connection_phase(struct http_connection *connection, enum http_phase phase,
                           int64_t allow_ms)
{
    struct http_connections *list = connection->list;
    pthread_mutex_lock(&list->mutex);
    connection->phase = phase;
    if (allow_ms >= 0) {
        connection->deadline_ns = now_ns() + allow_ms * NS_PER_MS;
    }
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
    struct timespec until = clock_moment_in(list->watch_ms * NS_PER_MS);
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
    sigset_t all;
    sigset_t before;
    memset(list, 0, sizeof *list);
    list->watch_ms = watch_ms;
    list->server_max = server_max;
    list->peer_max = peer_max;
    list->unknown_max = server_max / UNKNOWN_PART + 1;
    clock_condition_init(&list->changed);
    clock_condition_init(&list->ending);
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
