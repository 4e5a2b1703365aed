/*
 * Connections of hardware: one thread takes them in, each then has a thread of its own. See
 * session_hardware.h.
 */
#include "cli/session/session_hardware.h"

#include "base/check.h"
#include "cli/session/session_memory.h"
#include "schemas/limits.h"
#include "store/server/server.h"
#include "store/server/unix_peer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 64,
    BREATH_MS = 100, /* where there are no descriptors left */
};

struct connection {
    struct session_hardware *hardware;
    int fd;
    struct session_memory *memory;
    struct talk *talk;
    struct wire *wire;
    struct connection *next;
};

struct session_hardware {
    struct talk_options talk;
    const struct logger *logger;
    char path[LIMIT_PATH_BYTES];
    ino_t inode; /* of the socket's file */
    int listen_fd;
    int bell; /* eventfd: it is to stop */
    bool runs;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t ended;
    struct connection *first;
    uint32_t count;
};

/* ---- connections ---- */

static void free_connection(struct connection *connection)
{
    talk_destroy(connection->talk); /* which shows nothing any more */
    session_memory_destroy(connection->memory);
    close(connection->fd);
    wire_destroy(connection->wire);
    free(connection);
}

/* Called by the wire's thread, last. */
static void end_connection(void *context)
{
    struct connection *connection = context;
    struct session_hardware *hardware = connection->hardware;
    pthread_mutex_lock(&hardware->lock);
    for (struct connection **at = &hardware->first; *at != NULL; at = &(*at)->next) {
        if (*at == connection) {
            *at = connection->next;
            break;
        }
    }
    pthread_mutex_unlock(&hardware->lock);
    log_event(hardware->logger, LOG_DEBUG, "hardware has gone");
    free_connection(connection); /* its seat is free before it counts as gone */
    pthread_mutex_lock(&hardware->lock);
    hardware->count--;
    pthread_cond_broadcast(&hardware->ended);
    pthread_mutex_unlock(&hardware->lock);
}

/* Takes the descriptor, on failure too. */
static enum status make_connection(struct session_hardware *hardware, int fd,
                                   struct connection **out, struct error *error)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        close(fd);
        return memory_check(connection, error, "session: out of memory");
    }
    connection->hardware = hardware;
    connection->fd = fd;
    enum status status = session_memory_create(&connection->memory, error);
    struct talk_options talk = hardware->talk;
    talk.memory = connection->memory;
    THEN(status, talk_create(&talk, "", &connection->talk, error));
    THEN(status, session_memory_greet(connection->memory, fd, error));
    const struct wire_options options = {.fd = fd,
                                         .message_max = WIRE_MESSAGE_BYTES,
                                         .message = talk_message,
                                         .context = connection->talk};
    THEN(status, wire_create(&options, &connection->wire, error));
    if (status != STATUS_OK) {
        free_connection(connection);
        return status;
    }
    *out = connection;
    return STATUS_OK;
}

/* Nobody else's process, and not one too many. */
static enum status check_guest(struct session_hardware *hardware, int fd, struct error *error)
{
    TRY(unix_peer_check(fd, error));
    pthread_mutex_lock(&hardware->lock);
    uint32_t count = hardware->count;
    pthread_mutex_unlock(&hardware->lock);
    return count < CONNECTIONS_MAX
               ? STATUS_OK
               : error_set(error, STATUS_BUSY, "session: %d connections of hardware are there",
                           CONNECTIONS_MAX);
}

static void take_in(struct session_hardware *hardware, int fd)
{
    struct connection *connection = NULL;
    struct error error;
    enum status status = check_guest(hardware, fd, &error);
    if (status != STATUS_OK) {
        close(fd);
    } else {
        status = make_connection(hardware, fd, &connection, &error);
    }
    if (status != STATUS_OK) {
        log_event(hardware->logger, LOG_WARNING, "hardware is not let in: %s", error.text);
        return;
    }
    pthread_mutex_lock(&hardware->lock);
    connection->next = hardware->first;
    hardware->first = connection;
    hardware->count++;
    pthread_mutex_unlock(&hardware->lock);
    talk_attach(connection->talk, wire_lane(connection->wire));
    if (!wire_start(connection->wire, end_connection, connection)) {
        end_connection(connection);
    }
}

/* Takes connections in until the bell rings. */
static void *run(void *context)
{
    struct session_hardware *hardware = context;
    struct pollfd fds[] = {{hardware->listen_fd, POLLIN, 0}, {hardware->bell, POLLIN, 0}};
    while ((fds[1].revents & POLLIN) == 0) {
        if (poll(fds, COUNT_OF(fds), -1) < 0 || (fds[0].revents & POLLIN) == 0) {
            continue;
        }
        int fd = accept4(hardware->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            take_in(hardware, fd);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            log_event(hardware->logger, LOG_WARNING, "hardware cannot be let in: %s",
                      strerror(errno));
            poll(&fds[1], 1, BREATH_MS);
        }
    }
    return NULL;
}

/* ---- starting and stopping ---- */

/* A socket that a server has left may be replaced, and nothing else. */
static enum status check_path(const char *path, struct error *error)
{
    struct stat about;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        return error_set(error, STATUS_USAGE,
                         "--hardware: expected a path of at most %zu bytes, found %zu",
                         sizeof address.sun_path - 1, strlen(path));
    }
    if (lstat(path, &about) != 0) {
        return STATUS_OK; /* whoever listens says why it cannot */
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool served = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0) {
        close(fd);
    }
    if (S_ISSOCK(about.st_mode) && !served) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_USAGE, "--hardware %s: expected no file, found %s", path,
                     served ? "a socket that somebody serves" : "one that is no socket");
}

static enum status open_socket(struct session_hardware *hardware, struct error *error)
{
    struct stat about;
    TRY(check_path(hardware->path, error));
    TRY(unix_listen(hardware->path, &hardware->listen_fd, error));
    hardware->inode = lstat(hardware->path, &about) == 0 ? about.st_ino : 0;
    hardware->bell = eventfd(0, EFD_CLOEXEC);
    return hardware->bell >= 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "session: no eventfd: %s", strerror(errno));
}

enum status session_hardware_start(const char *path, const struct talk_options *talk,
                                   const struct logger *logger, struct session_hardware **out,
                                   struct error *error)
{
    sigset_t all;
    sigset_t before;
    struct session_hardware *hardware = calloc(1, sizeof *hardware);
    TRY(memory_check(hardware, error, "session: out of memory"));
    hardware->talk = *talk;
    hardware->logger = logger;
    hardware->listen_fd = hardware->bell = -1;
    snprintf(hardware->path, sizeof hardware->path, "%s", path);
    pthread_mutex_init(&hardware->lock, NULL);
    pthread_cond_init(&hardware->ended, NULL);
    enum status status = open_socket(hardware, error);
    if (status != STATUS_OK) {
        error_prefix(error, "--hardware %s", path);
    }
    if (status == STATUS_OK) {
        sigfillset(&all); /* signals belong to the program's own threads */
        pthread_sigmask(SIG_BLOCK, &all, &before);
        hardware->runs = pthread_create(&hardware->thread, NULL, run, hardware) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        status = hardware->runs ? STATUS_OK
                                : error_set(error, STATUS_IO, "session: cannot start a thread");
    }
    if (status != STATUS_OK) {
        session_hardware_stop(hardware);
        return status;
    }
    *out = hardware;
    return STATUS_OK;
}

void session_hardware_stop(struct session_hardware *hardware)
{
    struct stat about;
    if (hardware == NULL) {
        return;
    }
    if (hardware->runs) {
        CHECK(eventfd_write(hardware->bell, 1) == 0);
        pthread_join(hardware->thread, NULL);
    }
    pthread_mutex_lock(&hardware->lock);
    for (struct connection *each = hardware->first; each != NULL; each = each->next) {
        wire_stop(each->wire, WIRE_GOES_AWAY);
    }
    while (hardware->count > 0) {
        pthread_cond_wait(&hardware->ended, &hardware->lock);
    }
    pthread_mutex_unlock(&hardware->lock);
    if (hardware->listen_fd >= 0) {
        if (lstat(hardware->path, &about) == 0 && about.st_ino == hardware->inode) {
            unlink(hardware->path);
        }
        close(hardware->listen_fd);
    }
    if (hardware->bell >= 0) {
        close(hardware->bell);
    }
    pthread_cond_destroy(&hardware->ended);
    pthread_mutex_destroy(&hardware->lock);
    free(hardware);
}
